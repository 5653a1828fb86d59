//! Functions about libraries (HIP 7): modules whose kernels have handles of their own. Here a library is the module, and a kernel is the
//! function.

use std::ffi::CString;
use std::sync::Arc;

use hipr_proto::{HipError, HipResult};

use super::misc::keep;
use super::module;
use crate::command::Function as Kernel;
use crate::convert::{Function, In, Module, Out, Ptr, Str};
use crate::program::module::LoadedModule;
use crate::session::Session;

/// Returns the library; HIP has one error for all that is none.
fn find(session: &Session, library: Ptr) -> HipResult<Arc<LoadedModule>> {
    module::find(session, Module(library.0)).map_err(|_| HipError::INVALID_VALUE)
}

/// Loads a library with `load`. The options of a compiler of other GPUs' code are refused, as HIP does.
fn load(
    library: Out<Ptr>,
    jit_options: u32,
    load: impl FnOnce(Out<Module>) -> HipResult<()>,
) -> HipResult<()> {
    let out = library.check()?;
    if jit_options > 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let mut module = Module::NULL;
    load(Out::to(&mut module))?;
    out.set(Ptr(module.0));
    Ok(())
}

/// `hipLibraryLoadData`: the options of libraries say when their code is loaded, which is at once.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn load_data(
    session: &Session,
    library: Out<Ptr>,
    code: Ptr,
    _jit_options: Ptr,
    _jit_values: In<Ptr>,
    jit_count: u32,
    _options: Ptr,
    _values: In<Ptr>,
    _count: u32,
) -> HipResult<()> {
    load(library, jit_count, |module| module::load_data(session, module, code))
}

/// `hipLibraryLoadFromFile`: as [`load_data`].
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn load_file(
    session: &Session,
    library: Out<Ptr>,
    path: Str,
    _jit_options: Ptr,
    _jit_values: In<Ptr>,
    jit_count: u32,
    _options: Ptr,
    _values: In<Ptr>,
    _count: u32,
) -> HipResult<()> {
    load(library, jit_count, |module| {
        module::load(session, module, path).map_err(|error| match error {
            HipError::FILE_NOT_FOUND => HipError::INVALID_VALUE,
            error => error,
        })
    })
}

/// `hipLibraryUnload`.
pub(crate) fn unload(session: &Session, library: Ptr) -> HipResult<()> {
    module::unload(session, Module(library.0))
}

/// `hipLibraryGetKernel`.
pub(crate) fn kernel(session: &Session, kernel: Out<Ptr>, library: Ptr, name: Str) -> HipResult<()> {
    let out = kernel.check()?;
    find(session, library)?;
    if name.bytes().is_some_and(<[u8]>::is_empty) {
        return Err(HipError::NOT_FOUND);
    }
    let mut function = Function::NULL;
    module::function(session, Out::to(&mut function), Module(library.0), name)?;
    out.set(Ptr(function.0));
    Ok(())
}

/// `hipLibraryGetKernelCount`.
pub(crate) fn kernel_count(session: &Session, count: Out<u32>, library: Ptr) -> HipResult<()> {
    let out = count.check()?;
    out.set(find(session, library)?.kernel_names()?.len() as u32);
    Ok(())
}

/// `hipModuleGetFunctionCount`.
pub(crate) fn function_count(session: &Session, count: Out<u32>, module: Module) -> HipResult<()> {
    let module = module::find(session, module)?;
    count.check()?.set(module.kernel_names()?.len() as u32);
    Ok(())
}

/// `hipLibraryEnumerateKernels`: gives as many as there are, at most `count`.
pub(crate) fn kernels(session: &Session, kernels: Out<Ptr>, count: u32, library: Ptr) -> HipResult<()> {
    let out = kernels.check()?;
    let library = find(session, library)?;
    for (index, name) in library.kernel_names()?.into_iter().take(count as usize).enumerate() {
        let function = module::note(session, library.function(session.worker(), name)?);
        out.set_at(index, Ptr(function.0));
    }
    Ok(())
}

/// Returns the kernel with a handle.
fn of_handle(session: &Session, kernel: Ptr) -> HipResult<Arc<Kernel>> {
    session.program().function(Function(kernel.check()?.0))
}

/// `hipKernelGetName`: the name is good for ever.
pub(crate) fn name(session: &Session, name: Out<Str>, kernel: Ptr) -> HipResult<()> {
    let out = name.check()?;
    let kernel = of_handle(session, kernel)?;
    CString::new(&*kernel.name).map_err(|_| HipError::NOT_FOUND)?;
    out.set(keep(kernel.name.clone()));
    Ok(())
}

/// `hipKernelGetLibrary`.
pub(crate) fn of_kernel(session: &Session, library: Out<Ptr>, kernel: Ptr) -> HipResult<()> {
    let out = library.check()?;
    out.set(Ptr(of_handle(session, kernel)?.module.0));
    Ok(())
}
