//! The program's code: registered fat binaries, loaded modules, and a cache of recently used kernels.

pub(crate) mod code;
pub mod module;
pub(crate) mod recent;
pub(crate) mod register;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use hipr_proto::{HipError, HipResult};

use crate::command;
use crate::convert::{Function, Module, Ptr};
use crate::stream::mirror::Mirrors;
use crate::worker::{Worker, lock};
use code::{CodeImage, Known};
use module::LoadedModule;
use recent::Kernel;

/// The code that the program has loaded in this session.
#[derive(Debug, Default)]
pub struct Program {
    modules: Mutex<HashMap<Module, Arc<LoadedModule>>>,
    functions: Mutex<HashMap<Function, Arc<command::Function>>>,
    registered: Mutex<Registered>,
    known_code: Mutex<Known>,
}

/// Code that the compiler registered and that this session has loaded, by device.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// Loaded modules by device and number of the fat binary.
    pub(crate) modules: HashMap<(i32, usize), Arc<LoadedModule>>,
    /// Loaded kernels by device and the host address that the program launches.
    pub(crate) functions: HashMap<(i32, Ptr), Arc<command::Function>>,
}

/// The state that is needed to load code.
#[derive(Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) mirrors: &'a Mirrors,
    pub(crate) program: &'a Program,
}

impl Loader<'_> {
    /// Returns the code object for a device from an image.
    ///
    /// # Errors
    /// `hipErrorNoBinaryForGpu` when there is none, `hipErrorInvalidImage` when the image is damaged.
    pub(crate) fn code<'a>(&self, device: i32, image: &'a [u8]) -> HipResult<CodeImage<'a>> {
        let architecture = self.worker.properties(device)?.gcn_arch_name;
        CodeImage::find(image, architecture.as_str(), &self.program.known_code)
    }
}

impl Program {
    /// Locks the table of modules that the program loaded.
    pub(crate) fn modules(&self) -> MutexGuard<'_, HashMap<Module, Arc<LoadedModule>>> {
        lock(&self.modules)
    }

    /// Locks the table of kernels that have handles, most of which are in those modules.
    pub(crate) fn functions(&self) -> MutexGuard<'_, HashMap<Function, Arc<command::Function>>> {
        lock(&self.functions)
    }

    /// Locks the table of registered code that is loaded.
    pub(crate) fn registered(&self) -> MutexGuard<'_, Registered> {
        lock(&self.registered)
    }

    /// Returns the kernel with this handle.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`.
    pub(crate) fn function(&self, function: Function) -> HipResult<Arc<command::Function>> {
        recent::kernel(Kernel::Handle(function.0), || {
            self.functions().get(&function).cloned().ok_or(HipError::INVALID_HANDLE)
        })
    }

    /// Returns the kernel with this handle on the wire, unless a thread is changing the tables: never waits.
    pub(crate) fn peek(&self, handle: u64) -> Option<Arc<command::Function>> {
        let is_it = |function: &&Arc<command::Function>| function.handle == handle;
        let functions = self.functions.try_lock().ok();
        let found = functions.and_then(|functions| functions.values().find(is_it).cloned());
        found.or_else(|| self.registered.try_lock().ok()?.functions.values().find(is_it).cloned())
    }

    /// Unloads the code that was loaded for a device.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn unload_all(&self, loader: Loader<'_>, device: i32) -> HipResult<()> {
        let mut loaded: Vec<_> = self.modules().values().map(Arc::clone).collect();
        loaded.extend(self.registered().modules.values().map(Arc::clone));
        loaded.retain(|module| module.device == device);
        self.clear(device);
        loaded.into_iter().try_for_each(|module| module.unload(loader))
    }

    /// Removes the code that was loaded for a device.
    pub(crate) fn clear(&self, device: i32) {
        self.modules().retain(|_, module| module.device != device);
        let mut registered = self.registered();
        registered.modules.retain(|(of, _), _| *of != device);
        registered.functions.retain(|(of, _), _| *of != device);
        recent::forget();
    }
}
