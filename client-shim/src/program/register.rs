//! Registration of fat binaries, kernels and variables, which compiled code performs before `main`.
//!
//! Clang puts a constructor into each object file that calls these functions, and a destructor that undoes it. They run
//! in any program that contains device code, whether it uses it or not, so nothing here needs a device or the network:
//! it is only written down. Code is sent to the worker when something of it is first used.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use hipr_abi::dim3;
use hipr_proto::{HipError, HipResult};

use super::Loader;
use super::code::{CodeImage, image_at};
use super::module::{LoadedModule, Numbered};
use crate::command::Function;
use crate::convert::{In, Out, Ptr, Str, Stream};
use crate::program::recent::{self, Kernel};
use crate::thread::{self, Configuration};
use crate::worker::{lock, map};

/// The wrapper around a fat binary that clang emits into `.hipFatBinSegment`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Wrapper {
    /// The magic number `HIPF`.
    magic: u32,
    version: u32,
    binary: Ptr,
    unused: Ptr,
}

const WRAPPER_MAGIC: u32 = 0x4849_5046;

/// A registered variable that exists on host and device.
#[derive(Clone, Debug)]
struct Variable {
    binary: usize,
    name: String,
    size: usize,
}

/// A `__managed__` variable.
#[derive(Clone, Debug)]
struct ManagedVariable {
    binary: usize,
    name: String,
    /// Address of its host memory.
    memory: Ptr,
    size: usize,
}

/// Everything registered so far. A binary's number is its index in the list; numbers are not reused.
#[derive(Debug, Default)]
struct Registry {
    binaries: Vec<Option<Ptr>>,
    /// Registered kernels, by the address of the handle variable that a launch names.
    functions: HashMap<Ptr, (usize, String)>,
    /// Registered variables, by the address of the host's shadow.
    variables: HashMap<Ptr, Variable>,
    managed: Vec<ManagedVariable>,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with<R>(body: impl FnOnce(&mut Registry) -> R) -> R {
    body(lock(&REGISTRY).get_or_insert_default())
}

/// Holds the registry's lock during a fork, so that the child finds it consistent and unlocked.
struct HeldForFork(UnsafeCell<Option<MutexGuard<'static, Option<Registry>>>>);

// SAFETY: used only between the fork handlers, which the C library does not run at the same time.
unsafe impl Sync for HeldForFork {}

static HELD_FOR_FORK: HeldForFork = HeldForFork(UnsafeCell::new(None));

/// Locks the registry before a fork.
pub(crate) fn lock_for_fork() {
    let guard = lock(&REGISTRY);
    // SAFETY: see `HeldForFork`; having the lock, nobody else is here.
    unsafe { *HELD_FOR_FORK.0.get() = Some(guard) };
}

/// Unlocks the registry after a fork, in both processes.
pub(crate) fn unlock_after_fork() {
    // SAFETY: see `HeldForFork`; the guard was put there by `lock_for_fork` of the thread that forked.
    drop(unsafe { (*HELD_FOR_FORK.0.get()).take() });
}

/// `__hipRegisterFatBinary`. What is returned is the binary's number, not an address.
pub(crate) fn fat_binary(wrapper: Ptr) -> Ptr {
    let Some(wrapper) = In::<Wrapper>::at_address(wrapper).value() else { return Ptr::NULL };
    if wrapper.magic != WRAPPER_MAGIC || wrapper.version != 1 || wrapper.binary.is_null() {
        let (magic, version) = (wrapper.magic, wrapper.version);
        tracing::error!("ignoring a fat binary of an unknown kind (magic {magic:#x}, version {version})");
        return Ptr::NULL;
    }
    with(|registry| {
        registry.binaries.push(Some(wrapper.binary));
        Ptr(registry.binaries.len())
    })
}

/// Returns the index that a number returned to the program stands for.
fn index(binary: Ptr) -> Option<usize> {
    binary.0.checked_sub(1)
}

/// Removes a fat binary and what it registered; returns its index in the list.
pub(crate) fn forget_binary(binary: Ptr) -> Option<usize> {
    let index = index(binary)?;
    with(|registry| {
        if let Some(entry) = registry.binaries.get_mut(index) {
            *entry = None;
        }
        registry.functions.retain(|_, (binary, _)| *binary != index);
        registry.variables.retain(|_, variable| variable.binary != index);
        registry.managed.retain(|variable| variable.binary != index);
    });
    Some(index)
}

/// Unloads the code of a fat binary, given by its index in the list.
pub(crate) fn unload_binary(loader: Loader<'_>, index: usize) {
    let mut registered = loader.program.registered();
    let loaded: Vec<_> = registered.modules.keys().filter(|(_, binary)| *binary == index).copied().collect();
    for key in loaded {
        if let Some(module) = registered.modules.remove(&key) {
            registered.functions.retain(|_, function| function.module != module.handle);
            recent::forget();
            // A connection that is lost is no concern of a destructor.
            let _ = module.unload(loader);
        }
    }
}

/// `__hipRegisterFunction`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn function(
    binary: Ptr,
    host_function: Ptr,
    _device_function: Str,
    device_name: Str,
    _thread_limit: u32,
    _tid: Ptr,
    _bid: Ptr,
    _block_dim: Out<dim3>,
    _grid_dim: Out<dim3>,
    _warp_size: Out<i32>,
) {
    let (Some(index), Some(name)) = (index(binary), name(device_name)) else { return };
    with(|registry| registry.functions.insert(host_function, (index, name)));
}

/// `__hipRegisterVar`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn variable(
    binary: Ptr,
    var: Ptr,
    _host_var: Str,
    device_var: Str,
    _ext: i32,
    size: usize,
    _constant: i32,
    _global: i32,
) {
    let (Some(binary), Some(name)) = (index(binary), name(device_var)) else { return };
    with(|registry| registry.variables.insert(var, Variable { binary, name, size }));
}

/// `__hipRegisterManagedVar`: gives the variable its memory at once, since the program may use it before any HIP call.
pub(crate) fn managed_variable(
    binary: Ptr,
    pointer: Out<Ptr>,
    init_value: Ptr,
    device_name: Str,
    size: usize,
    _align: u32,
) {
    let (Some(binary), Some(name)) = (index(binary), name(device_name)) else { return };
    let Some(memory) = map::anywhere(size.max(1), &map::Source::New) else {
        tracing::error!("out of memory for the managed variable {name}");
        return;
    };
    if !init_value.is_null() {
        // SAFETY: the compiler's initial value has `size` bytes, and the memory was mapped above.
        unsafe { memory.host_bytes_mut(size).copy_from_slice(init_value.host_bytes(size)) };
    }
    pointer.set(memory);
    with(|registry| {
        // The host's shadow of such a variable is the pointer.
        let variable = Variable { binary, name: name.clone(), size: size_of::<Ptr>() };
        registry.variables.insert(pointer.address(), variable);
        registry.managed.push(ManagedVariable { binary, name, memory, size });
    });
}

/// `__hipRegisterTexture`: textures are not supported; logs a warning.
pub(crate) fn texture(_: Ptr, _: Ptr, _: Str, device_var: Str, _: i32, _: i32, _: i32) {
    let name = name(device_var).unwrap_or_default();
    tracing::warn!("the texture {name} is not supported by hipr; kernels that use it fail");
}

/// `__hipRegisterSurface`.
pub(crate) fn surface(_: Ptr, _: Ptr, _: Str, device_var: Str, _: i32, _: i32) {
    let name = name(device_var).unwrap_or_default();
    tracing::warn!("the surface {name} is not supported by hipr; kernels that use it fail");
}

fn name(name: Str) -> Option<String> {
    let name = name.bytes()?;
    let text = core::str::from_utf8(name).ok().filter(|text| !text.is_empty());
    if text.is_none() {
        tracing::error!("ignoring a registration with an invalid name");
    }
    text.map(str::to_owned)
}

/// `__hipPushCallConfiguration`.
pub(crate) fn push(grid: dim3, block: dim3, shared_mem: usize, stream: Stream) -> i32 {
    thread::push_configuration(Configuration { grid, block, shared_mem, stream, arguments: Vec::new() });
    0
}

/// `__hipPopCallConfiguration`.
pub(crate) fn pop(grid: Out<dim3>, block: Out<dim3>, shared_mem: Out<usize>, stream: Out<Stream>) -> i32 {
    let Some(configuration) = thread::pop_configuration() else { return HipError::MISSING_CONFIGURATION.0 };
    grid.set(configuration.grid);
    block.set(configuration.block);
    shared_mem.set(configuration.shared_mem);
    stream.set(configuration.stream);
    0
}

/// Returns the name of the kernel with this host address.
pub(crate) fn function_name(host_function: Ptr) -> Option<String> {
    with(|registry| registry.functions.get(&host_function).map(|(_, name)| name.clone()))
}

/// Returns the kernel with this host address on the calling thread's device; loads its code if necessary.
///
/// # Errors
/// `hipErrorInvalidDeviceFunction` for an address that was not registered, or what the worker answers.
pub(crate) fn find_function(loader: Loader<'_>, host_function: Ptr) -> HipResult<Arc<Function>> {
    let device = thread::device();
    recent::kernel(Kernel::Host(host_function.0, device), || find_on(loader, host_function, device))
}

fn find_on(loader: Loader<'_>, host_function: Ptr, device: i32) -> HipResult<Arc<Function>> {
    let mut registered = loader.program.registered();
    if let Some(known) = registered.functions.get(&(device, host_function)) {
        return Ok(Arc::clone(known));
    }
    let found = with(|registry| registry.functions.get(&host_function).cloned());
    let (binary, name) = found.ok_or(HipError::INVALID_DEVICE_FUNCTION)?;
    let function = match registered.modules.get(&(device, binary)) {
        Some(module) => module.function(loader.worker, &name),
        None => {
            let code = code_of(loader, device, binary)?;
            let loaded = LoadedModule::load_with_function(loader.worker, device, code, &name);
            loaded.and_then(|(module, function)| {
                attach_managed(loader, binary, &module)?;
                registered.modules.insert((device, binary), Arc::new(module));
                Ok(function)
            })
        }
    };
    let function = function.map_err(|error| match error {
        HipError::NOT_FOUND => HipError::INVALID_DEVICE_FUNCTION,
        other => other,
    })?;
    registered.functions.insert((device, host_function), Arc::clone(&function));
    Ok(function)
}

/// Returns the address by which the program launches a kernel: its registered host address, or else its `hipFunction_t`.
pub(crate) fn launched_as(loader: Loader<'_>, function: &Arc<Function>) -> Ptr {
    let registered = loader.program.registered();
    let mut known = registered.functions.iter();
    let found = known.find_map(|((_, address), known)| Arc::ptr_eq(known, function).then_some(*address));
    found.unwrap_or(Ptr::from_wire(function.handle))
}

/// Returns address and size of the device variable with this host address.
///
/// # Errors
/// `hipErrorInvalidSymbol` for an address that was not registered, or what the worker answers.
pub(crate) fn find_variable(loader: Loader<'_>, shadow: Ptr) -> HipResult<(Ptr, usize)> {
    let (module, variable) = module_of_variable(loader, shadow)?;
    let (address, size) = module.global(loader.worker, &variable.name).map_err(|error| match error {
        HipError::NOT_FOUND => HipError::INVALID_SYMBOL,
        other => other,
    })?;
    if size != variable.size {
        let (name, host) = (&variable.name, variable.size);
        tracing::debug!("variable {name} has {size} bytes on the device and {host} on the host");
    }
    Ok((address, size))
}

/// Returns the device variable with this host address by its number if its address is not known, although the worker knows it by that.
///
/// # Errors
/// As [`find_variable`].
pub(crate) fn find_numbered(loader: Loader<'_>, shadow: Ptr) -> HipResult<Option<Numbered>> {
    let (module, variable) = module_of_variable(loader, shadow)?;
    Ok(module.numbered(loader.worker, &variable.name))
}

/// Returns the module with the device variable that has this host address, and what was registered of it; loads the code if necessary.
fn module_of_variable(loader: Loader<'_>, shadow: Ptr) -> HipResult<(Arc<LoadedModule>, Variable)> {
    let device = thread::device();
    let found = with(|registry| registry.variables.get(&shadow).cloned());
    let variable = found.ok_or(HipError::INVALID_SYMBOL)?;
    let module = {
        let mut registered = loader.program.registered();
        match registered.modules.get(&(device, variable.binary)) {
            Some(module) => Arc::clone(module),
            None => {
                let code = code_of(loader, device, variable.binary)?;
                let module = Arc::new(LoadedModule::load(loader.worker, device, code)?);
                attach_managed(loader, variable.binary, &module)?;
                registered.modules.insert((device, variable.binary), Arc::clone(&module));
                module
            }
        }
    };
    Ok((module, variable))
}

/// Returns the code object of a fat binary for a device.
fn code_of(loader: Loader<'_>, device: i32, binary: usize) -> HipResult<CodeImage<'static>> {
    let image = with(|registry| registry.binaries.get(binary).copied().flatten());
    // Images are part of the program or of a library it has not unloaded: unloading unregisters them.
    loader.code(device, image_at(image.ok_or(HipError::INVALID_DEVICE_FUNCTION)?)?)
}

/// Sets a module's pointers to its managed variables.
fn attach_managed(loader: Loader<'_>, binary: usize, module: &LoadedModule) -> HipResult<()> {
    let managed: Vec<_> = with(|registry| {
        registry.managed.iter().filter(|variable| variable.binary == binary).cloned().collect()
    });
    for variable in managed {
        let Loader { worker, mirrors, .. } = loader;
        let there = module.managed_memory(worker, &variable.name)?;
        let remote = mirrors.adopt_variable(worker, variable.memory, variable.size, there)?;
        match there {
            None => module.set_managed(worker, &variable.name, remote)?,
            // AMD's runtime does not let a module's pointer be changed, and this is the module of another device.
            Some(there) if there != remote => tracing::warn!(
                "the managed variable {} is another one on device {}",
                variable.name,
                module.device
            ),
            Some(_) => {}
        }
    }
    Ok(())
}
