//! Code objects loaded on the worker, and the kernel metadata that launches need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hipr_proto::op::{self, kind, put_name};
use hipr_proto::{Features, HipError, HipResult, Op};

use super::Loader;
use super::code::{Code, CodeImage, MANAGED_SUFFIX, Managed};
use crate::command::{Function, KernelFacts};
use crate::convert::{Module, Ptr};
use crate::stream::mirror::Origin;
use crate::trace;
use crate::worker::memory::{Allocation, Kind};
use crate::worker::{Worker, lock};
use hipr_client::Extra;

/// Minimum size in bytes of a code object that is packed although that costs a round trip.
const PACKED_ALONE_BYTES: usize = 4 << 20;

/// A loaded module.
#[derive(Debug)]
pub struct LoadedModule {
    /// The module's handle.
    pub handle: Module,
    /// The device for which the module was loaded.
    pub device: i32,
    /// The code object's metadata; None if the client could not parse it.
    code: Option<Arc<Code>>,
    /// Kernels that have been looked up, by name.
    functions: Mutex<HashMap<String, Arc<Function>>>,
    /// The module's `__managed__` variables by name: host address and size in bytes. Only for modules that the program
    /// loaded itself; variables that the compiler registered have their memory before a module is loaded.
    managed: HashMap<String, (Ptr, usize)>,
    /// Variables that have been looked up: name, device address and size in bytes.
    globals: Mutex<HashMap<String, (Ptr, usize)>>,
    /// The request for where the variables are, and how many of the usable ones it is for.
    asked: Option<(u64, usize)>,
}

/// A variable that the worker knows by a number, while its address is not known here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    module: u64,
    number: u32,
    /// Size in bytes.
    pub(crate) size: usize,
}

impl Numbered {
    /// Copies bytes of the program to `offset` of the variable, in the order of a stream; if it `is_blocking`, before later requests.
    /// What it can fail with is noted by the stream layer.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn put(
        self,
        worker: &Worker,
        offset: usize,
        bytes: &[u8],
        stream: u64,
        is_blocking: bool,
    ) -> HipResult<()> {
        let Self { module, number: variable, .. } = self;
        let (offset, length, waits) = (offset as u64, bytes.len() as u64, is_blocking.into());
        let (stream, extra) = worker.on(stream);
        let request = op::VariablePut { module, variable, waits, offset, length, stream };
        let extra = Extra { inline: bytes, is_noted: true, ..extra };
        worker.tell_with(&request, extra)
    }
}

impl LoadedModule {
    /// Loads a code object on a device; returns the module. Where the worker lets the client name what it makes, nothing is waited for if
    /// the code object has been parsed and needs little memory.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn load(worker: &Worker, device: i32, image: CodeImage<'_>) -> HipResult<Self> {
        worker.make_room(image.memory_bytes())?;
        let data_size = image.bytes.len() as u64;
        let needs_answer = !image.needs_no_answer();
        let handle = match worker.connection_of(device).pack(&image.bytes) {
            Some(packed) => {
                let request = op::ModuleLoadPacked { data_size, packed: packed.len() as u64 };
                Self::send(worker, &request, &packed, needs_answer)?
            }
            None => Self::send(worker, &op::ModuleLoadData { data_size }, &image.bytes, needs_answer)?,
        };
        Self::of(worker, handle, device, image.code)
    }

    /// Sends a request that loads a module; returns the module's handle.
    fn send<O: Op<Reply = op::ModuleLoadDataReply>>(
        worker: &Worker,
        request: &O,
        inline: &[u8],
        needs_answer: bool,
    ) -> HipResult<u64> {
        let extra = Extra { inline, ..worker.extra() };
        if needs_answer {
            Ok(worker.links().ask_with(request, extra)?.module)
        } else {
            Ok(worker.links().create(request, extra)?)
        }
    }

    /// Loads a code object and finds one of its kernels, in at most one round trip; in two if it is long and packed, which is sooner.
    ///
    /// # Errors
    /// `hipErrorNotFound` if it has no kernel of that name, which is not asked; what the worker answers.
    pub(crate) fn load_with_function(
        worker: &Worker,
        device: i32,
        image: CodeImage<'_>,
        name: &str,
    ) -> HipResult<(Self, Arc<Function>)> {
        check_kernel(image.code.as_deref(), name)?;
        let is_packed =
            image.bytes.len() >= PACKED_ALONE_BYTES && worker.connection_of(device).packs(image.bytes.len());
        if is_packed || image.needs_no_answer() && worker.features().contains(Features::NAMES) {
            let module = Self::load(worker, device, image)?;
            let function = module.function(worker, name)?;
            return Ok((module, function));
        }
        let name_length = u32::try_from(name.len()).map_err(|_| HipError::INVALID_VALUE)?;
        let request =
            op::ModuleLoadAndGetFunction { data_size: image.bytes.len() as u64, name_length, pad: 0 };
        worker.make_room(image.memory_bytes())?;
        let extra = Extra { tail: name.as_bytes(), inline: &image.bytes, ..worker.extra() };
        let reply = worker.links().ask_with(&request, extra)?;
        let module = Self::of(worker, reply.module, device, image.code)?;
        let function = module.add_function(name, reply.function);
        Ok((module, function))
    }

    fn of(worker: &Worker, handle: u64, device: i32, code: Option<Arc<Code>>) -> HipResult<Self> {
        let names = code.iter().flat_map(|code| code.usable_globals());
        // It fails only if the module was not loaded, which is noted.
        let link = worker.links().of_handle(handle);
        let extra = Extra { device: Some(worker.there(device)), is_noted: true, ..Extra::default() };
        let asked = link.connection.ask_variables(link.unmarked(handle), names, extra)?;
        Ok(Self {
            handle: Module::from_wire(handle),
            device,
            code,
            functions: Mutex::default(),
            managed: HashMap::new(),
            globals: Mutex::default(),
            asked,
        })
    }

    /// Allocates and initialises the module's `__managed__` variables.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn allocate_managed(&mut self, loader: Loader<'_>) -> HipResult<()> {
        let Loader { worker, mirrors, .. } = loader;
        let Some(code) = self.code.clone() else { return Ok(()) };
        for (name, Managed { size, .. }) in code.all_managed() {
            let there = self.managed_memory(worker, name)?;
            let memory = match there {
                Some(remote) => mirrors.adopt_memory(worker, remote, size)?,
                None => mirrors.allocate_managed(worker, size, hipr_abi::hipMemAttachGlobal)?,
            };
            self.managed.insert(name.to_owned(), (memory, size));
            let src = match there {
                Some(remote) => remote,
                None => self.global(worker, &format!("{name}{MANAGED_SUFFIX}"))?.0.wire(),
            };
            let bytes = size as u64;
            let request = op::Memcpy { dst: 0, src, size: bytes, kind: kind::DEVICE_TO_HOST, stream: 0 };
            // SAFETY: memory of this size that was mapped above and that nobody else knows of.
            let memory_bytes = unsafe { memory.host_bytes_mut(size) };
            worker.links().read(&request, worker.extra(), memory_bytes)?;
            if there.is_none() {
                self.set_managed(worker, name, mirrors.device_address(worker, memory)?)?;
            }
        }
        Ok(())
    }

    /// Returns the address of a `__managed__` variable's memory if the worker's runtime has allocated it, as AMD's does; None
    /// if the module's pointer to it has to be set. What is found under the variable's name is then the memory, or the pointer,
    /// of which the code object says how far it is from the initial value.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn managed_memory(&self, worker: &Worker, name: &str) -> HipResult<Option<u64>> {
        let facts = self.code.as_ref().and_then(|code| code.managed(name));
        let Some(facts) = facts else { return Ok(None) };
        let (address, _) = self.global(worker, name)?;
        match self.global(worker, &format!("{name}{MANAGED_SUFFIX}")) {
            Ok((initial, _)) if initial.wire().wrapping_sub(address.wire()) == facts.distance => {
                return Ok(None);
            }
            Ok(_) | Err(HipError::NOT_FOUND) => {}
            Err(error) => return Err(error),
        }
        // It is no memory of the device's alone.
        lock(&self.globals).remove(name);
        worker.memory().remove(address);
        Ok(Some(address.wire()))
    }

    /// Sets the module's pointer to the memory of a `__managed__` variable.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn set_managed(&self, worker: &Worker, name: &str, remote: u64) -> HipResult<()> {
        let (pointer, _) = self.global(worker, name)?;
        let size = size_of::<u64>() as u64;
        let request = op::Memcpy { dst: pointer.wire(), src: 0, size, kind: kind::HOST_TO_DEVICE, stream: 0 };
        let extra = Extra { inline: &remote.to_le_bytes(), ..worker.extra() };
        worker.tell_with(&request, extra)
    }

    /// Returns address and size of a variable as the program sees it: for a `__managed__` one those of its memory, not of
    /// the module's pointer to it.
    ///
    /// # Errors
    /// As [`global`](Self::global).
    pub(crate) fn variable(&self, worker: &Worker, name: &str) -> HipResult<(Ptr, usize)> {
        match self.managed.get(name) {
            Some(known) => Ok(*known),
            None => self.global(worker, name),
        }
    }

    /// Adds a kernel that the worker has found.
    fn add_function(&self, name: &str, handle: u64) -> Arc<Function> {
        let facts = self.code.as_ref().and_then(|code| code.kernel(name));
        let (params, needs) = (facts.map(KernelFacts::layout), facts.map(|facts| facts.needs));
        let function = Function::new(handle, name.to_owned(), self.handle, params, needs);
        let function = Arc::new(function.of_device(self.device));
        trace::named(handle, name);
        lock(&self.functions).insert(name.to_owned(), Arc::clone(&function));
        function
    }

    /// Returns a kernel of the module; asks the worker only the first time, and not for what the code object does not have. What the
    /// worker says of the kernel's parameters is not used.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn function(&self, worker: &Worker, name: &str) -> HipResult<Arc<Function>> {
        if let Some(known) = lock(&self.functions).get(name) {
            return Ok(Arc::clone(known));
        }
        check_kernel(self.code.as_deref(), name)?;
        let mut tail = Vec::new();
        put_name(name, &mut tail).map_err(|_| HipError::NOT_FOUND)?;
        let extra = Extra { tail: &tail, ..worker.extra() };
        let request = op::ModuleGetFunction { module: self.handle.wire() };
        let handle = match &self.code {
            // There is such a kernel.
            Some(_) => worker.links().create(&request, extra)?,
            None => worker.links().ask_with(&request, extra)?.function,
        };
        Ok(self.add_function(name, handle))
    }

    /// Returns the names of the kernels, sorted.
    ///
    /// # Errors
    /// `hipErrorNotSupported`: only the worker could read the code object, and it does not tell.
    pub(crate) fn kernel_names(&self) -> HipResult<Vec<&str>> {
        let code = self.code.as_ref().ok_or(HipError::NOT_SUPPORTED)?;
        Ok(code.kernel_names().collect())
    }

    /// Returns the request in which the worker was asked where a variable is, and its number there.
    fn place(&self, name: &str) -> Option<(u64, usize)> {
        let (request, count) = self.asked?;
        let names = self.code.as_ref()?.usable_globals();
        Some((request, names.take(count).position(|other| other == name)?))
    }

    /// Returns a variable by its number if its address is not known, although the worker knows it by that.
    pub(crate) fn numbered(&self, worker: &Worker, name: &str) -> Option<Numbered> {
        let (request, place) = self.place(name)?;
        let code = self.code.as_ref()?;
        // What is found under the name of a managed one may be its memory.
        if code.managed(name).is_some() || lock(&self.globals).contains_key(name) {
            return None;
        }
        let connection = worker.connection_of(self.device);
        connection.hear_arrived();
        if connection.variable(request, place).is_some() {
            return None;
        }
        let size = usize::try_from(code.global_bytes(name)?).ok()?;
        Some(Numbered { module: self.handle.wire(), number: u32::try_from(place).ok()?, size })
    }

    /// Returns address and size of a variable of the module; asks the worker only the first time, and not for what it has told of, or
    /// the code object does not have.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn global(&self, worker: &Worker, name: &str) -> HipResult<(Ptr, usize)> {
        if let Some(known) = lock(&self.globals).get(name) {
            return Ok(*known);
        }
        if self.code.as_ref().is_some_and(|code| code.global_bytes(name).is_none()) {
            return Err(HipError::NOT_FOUND);
        }
        let op::Variable { address, size } = match self.told(worker, name) {
            Some(told) => told,
            None => self.ask_variable(worker, name)?,
        };
        let (base, size_bytes) = (Ptr::of_memory(address, size)?, size as usize);
        let allocation = Allocation {
            base,
            size_bytes,
            kind: Kind::Global,
            device: self.device,
            flags: 0,
            is_ambiguous: false,
        };
        worker.memory().insert(allocation);
        lock(&self.globals).insert(name.to_owned(), (base, size_bytes));
        Ok((base, size_bytes))
    }

    /// Returns what the worker has told of a variable.
    fn told(&self, worker: &Worker, name: &str) -> Option<op::Variable> {
        let (request, place) = self.place(name)?;
        let connection = worker.connection_of(self.device);
        connection.hear_arrived();
        connection.variable(request, place)
    }

    /// Asks the worker where a variable is.
    fn ask_variable(&self, worker: &Worker, name: &str) -> HipResult<op::Variable> {
        let mut tail = Vec::new();
        put_name(name, &mut tail).map_err(|_| HipError::NOT_FOUND)?;
        let extra = Extra { tail: &tail, ..worker.extra() };
        let request = op::ModuleGetGlobal { module: self.handle.wire() };
        let reply = worker.links().ask_with(&request, extra)?;
        Ok(op::Variable { address: reply.device_ptr, size: reply.size })
    }

    /// Unloads the module.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn unload(&self, loader: Loader<'_>) -> HipResult<()> {
        let Loader { worker, mirrors, .. } = loader;
        let mut memory = worker.memory();
        for (base, _) in lock(&self.globals).values() {
            memory.remove(*base);
        }
        drop(memory);
        for (memory, _) in self.managed.values() {
            mirrors.free(worker, *memory, Origin::Managed)?;
        }
        if let Some((request, _)) = self.asked {
            worker.connection_of(self.device).forget_variables(request);
        }
        let module = self.handle.wire();
        worker.destroy(&op::ModuleUnload { module }, module)?;
        for function in lock(&self.functions).values() {
            worker.links().free_name(function.handle);
        }
        Ok(())
    }
}

/// Checks that a code object has a kernel; one that the client could not parse may have any.
fn check_kernel(code: Option<&Code>, name: &str) -> HipResult<()> {
    match code {
        Some(code) if code.kernel(name).is_none() => Err(HipError::NOT_FOUND),
        _ => Ok(()),
    }
}
