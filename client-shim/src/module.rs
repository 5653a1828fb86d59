//! Code objects on the worker, and what has to be known of their kernels to launch them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hipr_code_object::{CodeObject, Measure, Need, SelectError, Target, select};
use hipr_proto::op::{self, Param, put_name};
use hipr_proto::{HipError, HipResult};

use crate::client::Extra;
use crate::convert::{Module, Ptr};
use crate::memory::{Allocation, Kind};
use crate::session::{Session, lock};

/// The parameters that the reply to `MODULE_GET_FUNCTION` has room for.
const PARAMS_IN_REPLY: usize = 64;

/// A module.
#[derive(Debug)]
pub struct LoadedModule {
    /// Its handle.
    pub handle: Module,
    /// The device it was loaded for.
    pub device: i32,
    /// What the code object says of its kernels, by name.
    kernels: HashMap<String, KernelFacts>,
    /// Its variables that were asked for: name, address and size in bytes.
    globals: Mutex<HashMap<String, (Ptr, usize)>>,
}

/// What a code object says of a kernel, as far as it is needed here.
#[derive(Debug, Default)]
struct KernelFacts {
    /// Threads of a block that it was compiled for at most (`__launch_bounds__`).
    max_threads: u32,
    /// Where its parameters lie, if they are more than a reply has room for.
    long_params: Option<Vec<Param>>,
}

/// A kernel.
#[derive(Debug)]
pub struct LoadedFunction {
    /// Its handle on the wire.
    pub handle: u64,
    /// Its name.
    pub name: String,
    /// Where its explicit parameters lie in the kernarg segment, in bytes.
    pub params: Vec<Param>,
    /// Threads of a block that it was compiled for at most; None where that is not known.
    pub max_threads: Option<u32>,
    /// Its module.
    pub module: Module,
}

/// What the compiler registered and this session has loaded, by device.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// By fat binary.
    pub(crate) modules: HashMap<(i32, usize), Arc<LoadedModule>>,
    /// By the address that the program launches.
    pub(crate) functions: HashMap<(i32, Ptr), Arc<LoadedFunction>>,
}

/// The bytes of the image that begins at `image`: its headers say how many.
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
                tracing::warn!("the image at {image:?} cannot be loaded: {error}");
                return Err(HipError::INVALID_IMAGE);
            }
        }
    }
}

fn usize_of(len: u64) -> HipResult<usize> {
    usize::try_from(len).map_err(|_| HipError::INVALID_IMAGE)
}

/// The code object for a device out of an image: what is sent to the worker. A device that does not say what it is gets the
/// image whole.
///
/// # Errors
/// `hipErrorNoBinaryForGpu` when there is none, `hipErrorInvalidImage` when the image is damaged.
pub(crate) fn code_for<'a>(session: &Session, device: i32, image: &'a [u8]) -> HipResult<Cow<'a, [u8]>> {
    let properties = session.properties(device)?;
    let architecture = properties.gcn_arch_name.as_str();
    if architecture.is_empty() {
        return Ok(Cow::Borrowed(image));
    }
    let target: Target = architecture.parse().map_err(|error| {
        tracing::warn!("the worker's device {device} has the architecture {architecture:?}: {error}");
        HipError::NO_BINARY_FOR_GPU
    })?;
    select(image, &target).map_err(|error| {
        tracing::warn!("no code can be loaded: {error}");
        match error {
            SelectError::NoMatch { .. } => HipError::NO_BINARY_FOR_GPU,
            SelectError::Image(_) => HipError::INVALID_IMAGE,
        }
    })
}

impl LoadedModule {
    /// Loads a code object.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn load(session: &Session, device: i32, code: &[u8]) -> HipResult<Self> {
        let extra = Extra { inline: code, ..session.extra() };
        let reply =
            session.connection().ask_with(&op::ModuleLoadData { data_size: code.len() as u64 }, extra)?;
        Ok(Self::of(reply.module, device, code))
    }

    /// Loads a code object and finds one of its kernels, in one round trip.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn load_with_function(
        session: &Session,
        device: i32,
        code: &[u8],
        name: &str,
    ) -> HipResult<(Self, LoadedFunction)> {
        let name_length = u32::try_from(name.len()).map_err(|_| HipError::INVALID_VALUE)?;
        let request = op::ModuleLoadAndGetFunction { data_size: code.len() as u64, name_length, pad: 0 };
        let extra = Extra { tail: name.as_bytes(), inline: code, ..session.extra() };
        let reply = session.connection().ask_with(&request, extra)?;
        let module = Self::of(reply.module, device, code);
        let function = module.function_of(name, reply.function, reply.num_params, &reply.params)?;
        Ok((module, function))
    }

    fn of(handle: u64, device: i32, code: &[u8]) -> Self {
        Self {
            handle: Module::from_wire(handle),
            device,
            kernels: kernel_facts(code),
            globals: Mutex::default(),
        }
    }

    fn function_of(
        &self,
        name: &str,
        handle: u64,
        num_params: u32,
        params: &[Param; PARAMS_IN_REPLY],
    ) -> HipResult<LoadedFunction> {
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
        Ok(LoadedFunction { handle, name: name.to_owned(), params, max_threads, module: self.handle })
    }

    /// A kernel of the module.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn function(&self, session: &Session, name: &str) -> HipResult<LoadedFunction> {
        let mut tail = Vec::new();
        put_name(name, &mut tail).map_err(|_| HipError::NOT_FOUND)?;
        let extra = Extra { tail: &tail, ..session.extra() };
        let request = op::ModuleGetFunction { module: self.handle.wire() };
        let reply = session.connection().ask_with(&request, extra)?;
        self.function_of(name, reply.function, reply.num_params, &reply.params)
    }

    /// Address and size of a variable of the module; asked once.
    ///
    /// # Errors
    /// `hipErrorNotFound`, or what else the worker answers.
    pub(crate) fn global(&self, session: &Session, name: &str) -> HipResult<(Ptr, usize)> {
        if let Some(known) = lock(&self.globals).get(name) {
            return Ok(*known);
        }
        let mut tail = Vec::new();
        put_name(name, &mut tail).map_err(|_| HipError::NOT_FOUND)?;
        let extra = Extra { tail: &tail, ..session.extra() };
        let request = op::ModuleGetGlobal { module: self.handle.wire() };
        let reply = session.connection().ask_with(&request, extra)?;
        let (base, size_bytes) = (Ptr::from_wire(reply.device_ptr), reply.size as usize);
        let allocation = Allocation {
            base,
            size_bytes,
            kind: Kind::Global,
            device: self.device,
            flags: 0,
            is_ambiguous: false,
        };
        session.memory().insert(allocation);
        lock(&self.globals).insert(name.to_owned(), (base, size_bytes));
        Ok((base, size_bytes))
    }

    /// Unloads the module.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn unload(&self, session: &Session) -> HipResult<()> {
        let mut memory = session.memory();
        for (base, _) in lock(&self.globals).values() {
            memory.remove(*base);
        }
        drop(memory);
        session.tell(&op::ModuleUnload { module: self.handle.wire() })
    }
}

/// What a code object says of its kernels. Of one that cannot be parsed here nothing is known: the worker has the last word
/// on it.
fn kernel_facts(code: &[u8]) -> HashMap<String, KernelFacts> {
    let object = match CodeObject::parse(code) {
        Ok(object) => object,
        Err(error) => {
            tracing::debug!("a code object that cannot be parsed: {error}");
            return HashMap::new();
        }
    };
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
