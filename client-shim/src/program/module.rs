//! Code objects loaded on the worker, and the kernel metadata that launches need.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

use hipr_code_object::{CodeObject, Measure, Need, SelectError, Target, select};
use hipr_proto::op::{self, Param, kind, put_name};
use hipr_proto::{HipError, HipResult};

use super::Loader;
use crate::command::Function;
use crate::convert::{Module, Ptr};
use crate::stream::mirror::Origin;
use crate::worker::memory::{Allocation, Kind};
use crate::worker::{Worker, lock};
use hipr_client::Extra;

/// Number of parameters that the reply to `MODULE_GET_FUNCTION` has room for.
const PARAMS_IN_REPLY: usize = 64;
/// Suffix that the compiler appends to a `__managed__` variable's name to name its initial value.
const MANAGED_SUFFIX: &str = ".managed";

/// A loaded module.
#[derive(Debug)]
pub struct LoadedModule {
    /// The module's handle.
    pub handle: Module,
    /// The device for which the module was loaded.
    pub device: i32,
    /// Metadata of the kernels in the code object, by name.
    kernels: HashMap<String, KernelFacts>,
    /// Metadata of the `__managed__` variables in the code object, by name.
    managed_facts: HashMap<String, ManagedFacts>,
    /// The module's `__managed__` variables by name: host address and size in bytes. Only for modules that the program
    /// loaded itself; variables that the compiler registered have their memory before a module is loaded.
    managed: HashMap<String, (Ptr, usize)>,
    /// Variables that have been looked up: name, device address and size in bytes.
    globals: Mutex<HashMap<String, (Ptr, usize)>>,
}

/// Metadata of a `__managed__` variable in a code object.
#[derive(Clone, Copy, Debug)]
struct ManagedFacts {
    /// Size of the variable in bytes.
    size: usize,
    /// Distance from the variable's pointer to its initial value, in bytes.
    distance: u64,
}

/// The part of a kernel's metadata that launches need.
#[derive(Debug, Default)]
struct KernelFacts {
    /// Largest number of threads in a block (`__launch_bounds__`).
    max_threads: u32,
    /// Layout of the parameters, if they are more than the reply has room for.
    long_params: Option<Vec<Param>>,
}

/// Returns the bytes of the image at `image`, whose size its headers say.
///
/// # Errors
/// `hipErrorInvalidImage` for what is no code object, bundle or compressed bundle.
pub(crate) fn image_at<'a>(image: Ptr) -> HipResult<&'a [u8]> {
    let mut measure = Measure::new();
    let mut known = 0;
    loop {
        // SAFETY: the program says that an image is here; `measure` asks for bytes only that the image is sure to
        // have.
        let prefix = unsafe { image.host_bytes(known) };
        match measure.advance(prefix) {
            // SAFETY: as above.
            Ok(Need::Total(len)) => return Ok(unsafe { image.host_bytes(usize_of(len)?) }),
            Ok(Need::More(len)) if usize_of(len)? > known => known = usize_of(len)?,
            Ok(Need::More(_)) => return Err(HipError::INVALID_IMAGE),
            Err(error) => {
                tracing::warn!("cannot load the image at {image:?}: {error}");
                return Err(HipError::INVALID_IMAGE);
            }
        }
    }
}

fn usize_of(len: u64) -> HipResult<usize> {
    usize::try_from(len).map_err(|_| HipError::INVALID_IMAGE)
}

/// Returns the code object for a device from an image. If the device's architecture is unknown, returns the whole image.
///
/// # Errors
/// `hipErrorNoBinaryForGpu` when there is none, `hipErrorInvalidImage` when the image is damaged.
pub(crate) fn code_for<'a>(worker: &Worker, device: i32, image: &'a [u8]) -> HipResult<Cow<'a, [u8]>> {
    let properties = worker.properties(device)?;
    let architecture = properties.gcn_arch_name.as_str();
    if architecture.is_empty() {
        return Ok(Cow::Borrowed(image));
    }
    let target: Target = architecture.parse().map_err(|error| {
        tracing::warn!(
            "cannot use the architecture {architecture:?} of the worker's device {device}: {error}"
        );
        HipError::NO_BINARY_FOR_GPU
    })?;
    select(image, &target).map_err(|error| {
        tracing::warn!("cannot load any code: {error}");
        match error {
            SelectError::NoMatch { .. } => HipError::NO_BINARY_FOR_GPU,
            SelectError::Image(_) => HipError::INVALID_IMAGE,
        }
    })
}

impl LoadedModule {
    /// Loads a code object on a device; returns the module.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn load(worker: &Worker, device: i32, code: &[u8]) -> HipResult<Self> {
        let extra = Extra { inline: code, ..worker.extra() };
        let reply =
            worker.connection().ask_with(&op::ModuleLoadData { data_size: code.len() as u64 }, extra)?;
        Ok(Self::of(reply.module, device, code))
    }

    /// Loads a code object and finds one of its kernels, in one round trip.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn load_with_function(
        worker: &Worker,
        device: i32,
        code: &[u8],
        name: &str,
    ) -> HipResult<(Self, Function)> {
        let name_length = u32::try_from(name.len()).map_err(|_| HipError::INVALID_VALUE)?;
        let request = op::ModuleLoadAndGetFunction { data_size: code.len() as u64, name_length, pad: 0 };
        let extra = Extra { tail: name.as_bytes(), inline: code, ..worker.extra() };
        let reply = worker.connection().ask_with(&request, extra)?;
        let module = Self::of(reply.module, device, code);
        let function = module.function_of(name, reply.function, reply.num_params, &reply.params)?;
        Ok((module, function))
    }

    fn of(handle: u64, device: i32, code: &[u8]) -> Self {
        let object = parse(code);
        Self {
            handle: Module::from_wire(handle),
            device,
            kernels: object.as_ref().map(kernel_facts).unwrap_or_default(),
            managed_facts: object.as_ref().map(managed_facts).unwrap_or_default(),
            managed: HashMap::new(),
            globals: Mutex::default(),
        }
    }

    /// Allocates and initialises the module's `__managed__` variables.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn allocate_managed(&mut self, loader: Loader<'_>) -> HipResult<()> {
        let Loader { worker, mirrors, .. } = loader;
        for (name, ManagedFacts { size, .. }) in self.managed_facts.clone() {
            let there = self.managed_memory(worker, &name)?;
            let memory = match there {
                Some(remote) => mirrors.adopt_memory(worker, remote, size)?,
                None => mirrors.allocate_managed(worker, size, hipr_abi::hipMemAttachGlobal)?,
            };
            self.managed.insert(name.clone(), (memory, size));
            let src = match there {
                Some(remote) => remote,
                None => self.global(worker, &format!("{name}{MANAGED_SUFFIX}"))?.0.wire(),
            };
            let bytes = size as u64;
            let request = op::Memcpy { dst: 0, src, size: bytes, kind: kind::DEVICE_TO_HOST, stream: 0 };
            // SAFETY: memory of this size that was mapped above and that nobody else knows of.
            let memory_bytes = unsafe { memory.host_bytes_mut(size) };
            worker.connection().read(&request, worker.extra(), memory_bytes)?;
            if there.is_none() {
                self.set_managed(worker, &name, mirrors.device_address(worker, memory)?)?;
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
        let Some(facts) = self.managed_facts.get(name) else { return Ok(None) };
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
        Ok(worker.connection().tell_with(&request, extra)?)
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

    fn function_of(
        &self,
        name: &str,
        handle: u64,
        num_params: u32,
        params: &[Param; PARAMS_IN_REPLY],
    ) -> HipResult<Function> {
        let facts = self.kernels.get(name);
        let count = num_params as usize;
        let params = match params.get(..count) {
            Some(params) => params.to_vec(),
            None => match facts.and_then(|facts| facts.long_params.as_ref()) {
                Some(params) if params.len() == count => params.clone(),
                _ => {
                    tracing::error!(
                        "kernel {name} has {count} parameters, and its metadata does not say where they lie"
                    );
                    return Err(HipError::INVALID_IMAGE);
                }
            },
        };
        let max_threads = facts.map(|facts| facts.max_threads);
        Ok(Function { handle, name: name.to_owned(), params, max_threads, module: self.handle })
    }

    /// Returns a kernel of the module; fails if the module has none of that name.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn function(&self, worker: &Worker, name: &str) -> HipResult<Function> {
        let mut tail = Vec::new();
        put_name(name, &mut tail).map_err(|_| HipError::NOT_FOUND)?;
        let extra = Extra { tail: &tail, ..worker.extra() };
        let request = op::ModuleGetFunction { module: self.handle.wire() };
        let reply = worker.connection().ask_with(&request, extra)?;
        self.function_of(name, reply.function, reply.num_params, &reply.params)
    }

    /// Returns address and size of a variable of the module; asks the worker only the first time.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn global(&self, worker: &Worker, name: &str) -> HipResult<(Ptr, usize)> {
        if let Some(known) = lock(&self.globals).get(name) {
            return Ok(*known);
        }
        let mut tail = Vec::new();
        put_name(name, &mut tail).map_err(|_| HipError::NOT_FOUND)?;
        let extra = Extra { tail: &tail, ..worker.extra() };
        let request = op::ModuleGetGlobal { module: self.handle.wire() };
        let reply = worker.connection().ask_with(&request, extra)?;
        let (base, size_bytes) = (Ptr::from_wire(reply.device_ptr), reply.size as usize);
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
        worker.tell(&op::ModuleUnload { module: self.handle.wire() })
    }
}

/// Parses a code object. Returns empty metadata if that fails: the worker decides whether it can be loaded.
fn parse(code: &[u8]) -> Option<CodeObject> {
    CodeObject::parse(code).inspect_err(|error| tracing::debug!("cannot parse a code object: {error}")).ok()
}

/// Returns the `__managed__` variables of a code object: such a variable is a pointer, beside which the compiler puts its
/// initial value.
fn managed_facts(object: &CodeObject) -> HashMap<String, ManagedFacts> {
    let values = object.globals().iter();
    let managed = values.filter_map(|value| {
        let name = value.name.strip_suffix(MANAGED_SUFFIX)?;
        let pointer = object.global(name)?;
        let size = usize::try_from(value.size).ok().filter(|size| *size > 0)?;
        let distance = value.vaddr.wrapping_sub(pointer.vaddr);
        (pointer.size == size_of::<u64>() as u64).then(|| (name.to_owned(), ManagedFacts { size, distance }))
    });
    managed.collect()
}

/// Returns the metadata of a code object's kernels.
fn kernel_facts(object: &CodeObject) -> HashMap<String, KernelFacts> {
    let facts = object.kernels().iter().map(|kernel| {
        let layout = kernel.param_layout();
        let is_long = layout.len() > PARAMS_IN_REPLY;
        let params = || layout.into_iter().map(|(offset, size)| Param { offset, size }).collect();
        let facts =
            KernelFacts { max_threads: kernel.max_flat_workgroup_size, long_params: is_long.then(params) };
        (kernel.name.clone(), facts)
    });
    facts.collect()
}
