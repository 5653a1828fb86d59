//! Modules: loading code objects, finding kernels and variables.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use hipr_proto::{HipError, HipResult, op};

use crate::convert::{Function, In, Module, Out, Ptr, Str};
use crate::module::{LoadedFunction, LoadedModule, code_for, image_at};
use crate::recent::{self, Kernel};
use crate::register;
use crate::session::Session;
use crate::state;
use crate::types::FuncAttributes;

fn load_image(session: &Session, out: Out<Module>, image: &[u8]) -> HipResult<()> {
    let device = state::device();
    let code = code_for(session, device, image)?;
    let module = LoadedModule::load(session, device, &code)?;
    let handle = module.handle;
    session.modules().insert(handle, Arc::new(module));
    out.set(handle);
    Ok(())
}

/// `hipModuleLoad`.
pub(crate) fn load(session: &Session, module: Out<Module>, path: Str) -> HipResult<()> {
    let out = module.check()?;
    let path = path.bytes().ok_or(HipError::INVALID_VALUE)?;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    let image = fs::read(path).map_err(|error| {
        tracing::warn!("cannot read the module {}: {error}", path.display());
        HipError::FILE_NOT_FOUND
    })?;
    load_image(session, out, &image)
}

/// `hipModuleLoadData`, `hipModuleLoadFatBinary`.
pub(crate) fn load_data(session: &Session, module: Out<Module>, image: Ptr) -> HipResult<()> {
    let out = module.check()?;
    load_image(session, out, image_at(image.check()?)?)
}

/// `hipModuleLoadDataEx`: options are for compilers, and there is none.
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

fn find(session: &Session, module: Module) -> HipResult<Arc<LoadedModule>> {
    session.modules().get(&module).cloned().ok_or(HipError::INVALID_HANDLE)
}

/// `hipModuleUnload`.
pub(crate) fn unload(session: &Session, module: Module) -> HipResult<()> {
    session.callbacks().gate_all()?;
    let module = session.modules().remove(&module).ok_or(HipError::INVALID_HANDLE)?;
    session.functions().retain(|_, function| function.module != module.handle);
    recent::forget();
    module.unload(session)
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
    let function = module.function(session, name)?;
    out.set(note(session, function));
    Ok(())
}

fn note(session: &Session, function: LoadedFunction) -> Function {
    let handle = Function::from_wire(function.handle);
    session.functions().insert(handle, Arc::new(function));
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
    let (base, size) = find(session, module)?.global(session, text(name)?)?;
    address.set(base);
    bytes.set(size);
    Ok(())
}

/// The kernel that a handle means.
pub(crate) fn by_handle(session: &Session, function: Function) -> HipResult<Arc<LoadedFunction>> {
    recent::kernel(Kernel::Handle(function.0), || {
        session.functions().get(&function).cloned().ok_or(HipError::INVALID_HANDLE)
    })
}

/// `hipGetFuncBySymbol`.
pub(crate) fn by_symbol(session: &Session, function: Out<Function>, symbol: Ptr) -> HipResult<()> {
    let out = function.check()?;
    let found = register::find_function(session, symbol.check()?)?;
    let handle = Function::from_wire(found.handle);
    session.functions().insert(handle, found);
    out.set(handle);
    Ok(())
}

fn attributes_of(session: &Session, function: u64) -> HipResult<FuncAttributes> {
    let reply = session.ask(&op::FuncGetAttributes { function })?;
    let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
    Ok(FuncAttributes {
        binary_version: reply.binary_version,
        cache_mode_ca: reply.cache_mode_ca,
        const_size_bytes: size(reply.const_size_bytes),
        local_size_bytes: size(reply.local_size_bytes),
        max_dynamic_shared_size_bytes: reply.max_dynamic_shared_size_bytes,
        max_threads_per_block: reply.max_threads_per_block,
        num_regs: reply.num_regs,
        preferred_shmem_carveout: reply.preferred_shared_memory_carveout,
        ptx_version: reply.ptx_version,
        shared_size_bytes: size(reply.shared_size_bytes),
    })
}

/// `hipFuncGetAttributes`.
pub(crate) fn attributes(session: &Session, attributes: Out<FuncAttributes>, function: Ptr) -> HipResult<()> {
    let out = attributes.check()?;
    let function = register::find_function(session, function)?;
    out.set(attributes_of(session, function.handle)?);
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
    let function = by_handle(session, function)?;
    let all = attributes_of(session, function.handle)?;
    let size = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    // hipFunction_attribute.
    out.set(match attribute {
        0 => all.max_threads_per_block,
        1 => size(all.shared_size_bytes),
        2 => size(all.const_size_bytes),
        3 => size(all.local_size_bytes),
        4 => all.num_regs,
        5 => all.ptx_version,
        6 => all.binary_version,
        7 => all.cache_mode_ca,
        8 => all.max_dynamic_shared_size_bytes,
        9 => all.preferred_shmem_carveout,
        _ => return Err(HipError::INVALID_VALUE),
    });
    Ok(())
}

/// `hipFuncSetAttribute`.
pub(crate) fn set_attribute(session: &Session, function: Ptr, attribute: i32, value: i32) -> HipResult<()> {
    // hipFuncAttributeMaxDynamicSharedMemorySize and PreferredSharedMemoryCarveout.
    if !matches!(attribute, 8 | 9) {
        return Err(HipError::INVALID_VALUE);
    }
    // Programs pass a kernel's handle as well as its address (hipFunction_t is a pointer to them).
    let handle = match session.functions().get(&Function(function.0)).cloned() {
        Some(known) => known.handle,
        None => register::find_function(session, function)?.handle,
    };
    session.ask(&op::FuncSetAttribute { function: handle, attribute, value })
}

/// `hipFuncSetCacheConfig`: a wish that AMD's devices do not have.
pub(crate) fn set_cache_config(session: &Session, function: Ptr, config: i32) -> HipResult<()> {
    if !(0..=3).contains(&config) {
        return Err(HipError::INVALID_VALUE);
    }
    let function = register::find_function(session, function)?.handle;
    session.tell(&op::FuncSetCacheConfig { function, cache_config: config })
}

/// `hipFuncSetSharedMemConfig`: a wish that AMD's devices do not have.
pub(crate) fn set_shared_mem_config(session: &Session, function: Ptr, config: i32) -> HipResult<()> {
    if !(0..=2).contains(&config) {
        return Err(HipError::INVALID_VALUE);
    }
    register::find_function(session, function).map(drop)
}
