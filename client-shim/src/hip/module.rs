//! Functions about modules: loading code objects, finding kernels and variables.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use hipr_abi::*;
use hipr_code_object::rules::KernelNeeds;
use hipr_proto::op::GetDevicePropertiesReply;
use hipr_proto::{Features, HipError, HipResult, op};

use super::symbol::symbol_error;
use crate::command::Function as Kernel;
use crate::convert::{Function, In, Module, Out, Ptr, Str};
use crate::program::code::image_at;
use crate::program::module::LoadedModule;
use crate::program::recent;
use crate::session::Session;
use crate::thread;

fn load_image(session: &Session, out: Out<Module>, image: &[u8]) -> HipResult<()> {
    let device = thread::device();
    let code = session.loader().code(device, image)?;
    let mut module = LoadedModule::load(session.worker(), device, code)?;
    if let Err(error) = module.allocate_managed(session.loader()) {
        module.unload(session.loader())?;
        return Err(error);
    }
    let handle = module.handle;
    session.program().modules().insert(handle, Arc::new(module));
    out.set(handle);
    Ok(())
}

/// `hipModuleLoad`.
pub(crate) fn load(session: &Session, module: Out<Module>, path: Str) -> HipResult<()> {
    let out = module.check()?;
    let path = path.bytes().filter(|path| !path.is_empty()).ok_or(HipError::INVALID_VALUE)?;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let image = fs::read(path).map_err(|error| {
        tracing::warn!("cannot read the module {}: {error}", path.display());
        // HIP API: a folder is there, and has nothing in it.
        if error.kind() == ErrorKind::IsADirectory {
            HipError::INVALID_VALUE
        } else {
            HipError::FILE_NOT_FOUND
        }
    })?;
    load_image(session, out, &image)
}

/// `hipModuleLoadData`, `hipModuleLoadFatBinary`.
pub(crate) fn load_data(session: &Session, module: Out<Module>, image: Ptr) -> HipResult<()> {
    let out = module.check()?;
    load_image(session, out, image_at(image.check()?)?)
}

/// `hipModuleLoadDataEx`: the options, which are for a run-time compiler, are ignored.
pub(crate) fn load_data_ex(
    session: &Session,
    module: Out<Module>,
    image: Ptr,
    _num_options: u32,
    _options: Ptr,
    _values: In<Ptr>,
) -> HipResult<()> {
    load_data(session, module, image)
}

/// Returns a module that the program has loaded.
pub(super) fn find(session: &Session, module: Module) -> HipResult<Arc<LoadedModule>> {
    session.program().modules().get(&module).cloned().ok_or(unknown(module))
}

/// Returns the error for a module that is not there.
fn unknown(module: Module) -> HipError {
    if module.is_null() { HipError::INVALID_HANDLE } else { HipError::NOT_FOUND }
}

/// `hipModuleUnload`.
pub(crate) fn unload(session: &Session, module: Module) -> HipResult<()> {
    session.wait_for_host_functions()?;
    let module = session.program().modules().remove(&module).ok_or(unknown(module))?;
    session.program().functions().retain(|_, function| function.module != module.handle);
    recent::forget();
    module.unload(session.loader())
}

fn text<'a>(name: Str) -> HipResult<&'a str> {
    let name = name.bytes().ok_or(HipError::INVALID_VALUE)?;
    if name.is_empty() {
        return Err(HipError::INVALID_VALUE);
    }
    core::str::from_utf8(name).map_err(|_| HipError::NOT_FOUND)
}

/// `hipModuleGetFunction`.
pub(crate) fn function(
    session: &Session,
    function: Out<Function>,
    module: Module,
    name: Str,
) -> HipResult<()> {
    let out = function.check()?;
    let name = text(name)?;
    let module = find(session, module)?;
    out.set(note(session, module.function(session.worker(), name)?));
    Ok(())
}

/// Adds a kernel to those that have handles; returns its handle.
pub(super) fn note(session: &Session, function: Arc<Kernel>) -> Function {
    let handle = Function::from_wire(function.handle);
    session.program().functions().insert(handle, function);
    handle
}

/// `hipModuleGetGlobal`.
pub(crate) fn global(
    session: &Session,
    address: Out<Ptr>,
    bytes: Out<usize>,
    module: Module,
    name: Str,
) -> HipResult<()> {
    if address.is_null() && bytes.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let name = text(name)?;
    let (base, size) = match find(session, module)?.variable(session.worker(), name) {
        // HIP API: a program that only asks for a size is not told that there is none.
        Err(HipError::NOT_FOUND) if address.is_null() => return Ok(()),
        Err(error) => {
            address.set(Ptr::NULL);
            return Err(error);
        }
        Ok(found) => found,
    };
    address.set(base);
    bytes.set(size);
    Ok(())
}

/// `hipGetFuncBySymbol`.
pub(crate) fn by_symbol(session: &Session, function: Out<Function>, symbol: Ptr) -> HipResult<()> {
    let found = session.find_function(symbol)?;
    function.check()?.set(note(session, found));
    Ok(())
}

/// Returns what the current device says of a kernel, if it follows from the code object.
///
/// # Errors
/// What the worker answers when it is asked for the device's properties.
pub(super) fn rules_of<'a>(
    session: &'a Session,
    function: &Kernel,
) -> HipResult<Option<(KernelNeeds, &'a GetDevicePropertiesReply)>> {
    match function.needs {
        Some(needs) if session.worker().features().contains(Features::KERNEL_RULES) => {
            Ok(Some((needs, session.worker().properties(thread::device())?)))
        }
        _ => Ok(None),
    }
}

/// Returns the attributes of a kernel; asks the worker only the first time, and not where they follow from the code object.
///
/// # Errors
/// What the worker answers.
pub(super) fn attributes_of(session: &Session, function: &Kernel) -> HipResult<hipFuncAttributes> {
    match rules_of(session, function)? {
        Some((needs, device)) => Ok(needs.attributes([device.major, device.minor])),
        None => function.attributes(|| ask_attributes(session, function.handle)),
    }
}

fn ask_attributes(session: &Session, function: u64) -> HipResult<hipFuncAttributes> {
    let reply = session.worker().ask(&op::FuncGetAttributes { function })?;
    let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
    Ok(hipFuncAttributes {
        binaryVersion: reply.binary_version,
        cacheModeCA: reply.cache_mode_ca,
        constSizeBytes: size(reply.const_size_bytes),
        localSizeBytes: size(reply.local_size_bytes),
        maxDynamicSharedSizeBytes: reply.max_dynamic_shared_size_bytes,
        maxThreadsPerBlock: reply.max_threads_per_block,
        numRegs: reply.num_regs,
        preferredShmemCarveout: reply.preferred_shared_memory_carveout,
        ptxVersion: reply.ptx_version,
        sharedSizeBytes: size(reply.shared_size_bytes),
    })
}

/// `hipFuncGetAttributes`.
pub(crate) fn attributes(
    session: &Session,
    attributes: Out<hipFuncAttributes>,
    function: Ptr,
) -> HipResult<()> {
    let out = attributes.check()?;
    let found = session.find_function(function);
    let function = found.map_err(|error| symbol_error(function, error))?;
    out.set(attributes_of(session, &function)?);
    Ok(())
}

/// `hipFuncGetAttribute`.
pub(crate) fn attribute(
    session: &Session,
    value: Out<i32>,
    attribute: i32,
    function: Function,
) -> HipResult<()> {
    let out = value.check()?;
    let function = session.program().function(function)?;
    let all = attributes_of(session, &function)?;
    let size = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    out.set(match attribute {
        HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => all.maxThreadsPerBlock,
        HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => size(all.sharedSizeBytes),
        HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => size(all.constSizeBytes),
        HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => size(all.localSizeBytes),
        HIP_FUNC_ATTRIBUTE_NUM_REGS => all.numRegs,
        HIP_FUNC_ATTRIBUTE_PTX_VERSION => all.ptxVersion,
        HIP_FUNC_ATTRIBUTE_BINARY_VERSION => all.binaryVersion,
        HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA => all.cacheModeCA,
        HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => all.maxDynamicSharedSizeBytes,
        HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => all.preferredShmemCarveout,
        _ => return Err(HipError::INVALID_VALUE),
    });
    Ok(())
}

/// `hipFuncSetAttribute`.
pub(crate) fn set_attribute(session: &Session, function: Ptr, attribute: i32, value: i32) -> HipResult<()> {
    if function.is_null() {
        return Err(HipError::INVALID_DEVICE_FUNCTION);
    }
    if !matches!(
        attribute,
        hipFuncAttributeMaxDynamicSharedMemorySize
            | hipFuncAttributePreferredSharedMemoryCarveout
            | hipFuncAttributeMax
    ) {
        return Err(HipError::INVALID_VALUE);
    }
    // Programs pass a kernel's handle as well as its address (hipFunction_t is a pointer to them).
    let known = session.program().functions().get(&Function(function.0)).cloned();
    let function = match known {
        Some(known) => known,
        None => session.find_function(function)?,
    };
    // HIP API: hipFuncAttributeMax is accepted, and has no effect.
    if attribute == hipFuncAttributeMax {
        return Ok(());
    }
    if let Some((needs, _)) = rules_of(session, &function)? {
        // It has no effect.
        return if needs.accepts(attribute, value) { Ok(()) } else { Err(HipError::INVALID_VALUE) };
    }
    function.forget_attributes();
    session.worker().ask(&op::FuncSetAttribute { function: function.handle, attribute, value })
}

/// `hipFuncSetCacheConfig`: a hint without effect on AMD's devices. HIP API: an unknown kernel is no error.
pub(crate) fn set_cache_config(session: &Session, function: Ptr, config: i32) -> HipResult<()> {
    if function.is_null() {
        return Err(HipError::INVALID_DEVICE_FUNCTION);
    }
    if !(hipFuncCachePreferNone..=hipFuncCachePreferEqual).contains(&config) {
        return Err(HipError::INVALID_VALUE);
    }
    let Ok(known) = session.find_function(function) else { return Ok(()) };
    session.worker().tell(&op::FuncSetCacheConfig { function: known.handle, cache_config: config })
}

/// `hipFuncSetSharedMemConfig`: a hint without effect on AMD's devices, as [`set_cache_config`].
pub(crate) fn set_shared_mem_config(_session: &Session, function: Ptr, config: i32) -> HipResult<()> {
    if function.is_null() {
        return Err(HipError::INVALID_DEVICE_FUNCTION);
    }
    if !(hipSharedMemBankSizeDefault..=hipSharedMemBankSizeEightByte).contains(&config) {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(())
}
