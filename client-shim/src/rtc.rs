//! The runtime compiler, `hiprtc*`, which forwards to AMD's library. It needs no GPU, so it runs where the program runs, and
//! what it makes is loaded with `hipModuleLoadData` like any code object.
//!
//! The library is looked for at the first call; it asks hipr for the GPU's name where the program gives no `--offload-arch`.

use std::env;
use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::OnceLock;

use hipr_dynlib::{Library, LoadError, Names, open};
use hipr_proto::{HipError, HipResult};

use crate::convert::{In, Out, Ptr, Str};
use crate::types::RtcResult;

/// Names of the compiler's library, with the release of this library first. A program that is linked to one of them has it
/// already.
const NAMES: Names = Names {
    what: "HIP runtime compiler",
    files: &["libhiprtc.so.6", "libhiprtc.so.7", "libhiprtc.so.5", "libhiprtc.so"],
    folders: &["/opt/rocm/lib"],
};
/// Environment variable that names another library: in releases before 6, the compiler is part of AMD's libamdhip64.
const VARIABLE: &str = "HIPR_HIPRTC_LIBRARY";
/// A function that every release has.
const ANY_FUNCTION: &str = "hiprtcVersion";

/// Returns the compiler's function `name`; None if there is no compiler or it lacks the function. The log says why.
///
/// # Safety
/// `F` is the function pointer type of the C function.
pub(crate) unsafe fn function<F: Copy>(name: &'static str) -> Option<F> {
    static COMPILER: OnceLock<Option<Library>> = OnceLock::new();
    let compiler = COMPILER.get_or_init(|| match load() {
        Ok(compiler) => {
            tracing::info!("runtime compiler: {}", compiler.path().display());
            Some(compiler)
        }
        Err(why) => {
            tracing::error!(
                "{name} needs AMD's runtime compiler on this machine: install it (Debian: libhiprtc6), or name the \
                 library in {VARIABLE}. {why}"
            );
            None
        }
    });
    // SAFETY: the caller's promise.
    let function = unsafe { compiler.as_ref()?.function(&[name]) };
    if function.is_none() {
        tracing::error!("the runtime compiler does not have {name}");
    }
    function
}

fn load() -> Result<Library, String> {
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let library = named.map_or_else(|| NAMES.open(), |path| open(NAMES.what, [path])).map_err(one_line)?;
    // SAFETY: only the address is looked at; a pointer to any function has its size.
    let theirs = unsafe { library.function::<unsafe extern "C" fn()>(&[ANY_FUNCTION]) };
    let path = library.path().display();
    match theirs.map(|function| (function as *const ()).expose_provenance()) {
        None => Err(format!("{path} is no {}: it does not export {ANY_FUNCTION}", NAMES.what)),
        // It would ask itself for ever. Which library it is the address of its function does not tell: where the compiler is loaded ahead of
        // this library, the name means its function here, too.
        Some(theirs) if base_of(theirs) == base_of((base_of as *const ()).expose_provenance()) => {
            Err(format!("{path} is this library itself"))
        }
        Some(_) => Ok(library),
    }
}

/// Returns where the library is loaded that has the code at an address.
fn base_of(address: usize) -> Option<usize> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be asked for; `info` is one that can be written.
    let found = unsafe { libc::dladdr(std::ptr::with_exposed_provenance(address), info.as_mut_ptr()) };
    // SAFETY: zeros are one, too.
    (found != 0).then(|| unsafe { info.assume_init() }.dli_fbase.expose_provenance())
}

fn one_line(why: LoadError) -> String {
    why.to_string().replace("\n ", "")
}

/// Names of the `hiprtcResult` values, as every release of the compiler has them.
const RESULTS: [(i32, &CStr); 13] = [
    (0, c"HIPRTC_SUCCESS"),
    (1, c"HIPRTC_ERROR_OUT_OF_MEMORY"),
    (2, c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE"),
    (3, c"HIPRTC_ERROR_INVALID_INPUT"),
    (4, c"HIPRTC_ERROR_INVALID_PROGRAM"),
    (5, c"HIPRTC_ERROR_INVALID_OPTION"),
    (6, c"HIPRTC_ERROR_COMPILATION"),
    (7, c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE"),
    (8, c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION"),
    (9, c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION"),
    (10, c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID"),
    (11, c"HIPRTC_ERROR_INTERNAL_ERROR"),
    (100, c"HIPRTC_ERROR_LINKING"),
];

/// Returns the text of a result as `hiprtcGetErrorString` does; works without a compiler, too. AMD's gives no text for a number
/// that is no result.
pub(crate) fn error_string(result: i32) -> Str {
    RESULTS.iter().find(|(code, _)| *code == result).map_or(Str::NULL, |(_, name)| Str::of(name))
}

// ---- linking, by HIP's own functions: the state is the compiler's ----------------------------------------------------------

/// Returns the error for a result of the compiler.
fn of_result(result: RtcResult) -> HipResult<()> {
    match result.0 {
        0 => Ok(()),
        // HIPRTC_ERROR_OUT_OF_MEMORY.
        1 => Err(HipError::OUT_OF_MEMORY),
        // HIPRTC_ERROR_INTERNAL_ERROR, which is also what there is where the compiler is missing.
        11 => Err(HipError::NOT_SUPPORTED),
        _ => Err(HipError::INVALID_VALUE),
    }
}

macro_rules! of_compiler {
    ($name:literal ($($arg:ident: $ty:ty),*)) => {{
        // SAFETY: the type is that of the C function in every release.
        let function = unsafe { function::<unsafe extern "C" fn($($ty),*) -> RtcResult>($name) };
        let function = function.ok_or(HipError::NOT_SUPPORTED)?;
        // SAFETY: what the C caller promises of HIP's function it promises of the compiler's, whose parameters are the same.
        of_result(unsafe { function($($arg),*) })
    }};
}

/// `hipLinkCreate`.
pub(crate) fn link_create(count: u32, options: Ptr, values: In<Ptr>, state: Out<Ptr>) -> HipResult<()> {
    state.check()?;
    of_compiler!("hiprtcLinkCreate" (count: u32, options: Ptr, values: In<Ptr>, state: Out<Ptr>))
}

/// `hipLinkAddData`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn link_add_data(
    state: Ptr,
    kind: i32,
    data: Ptr,
    size: usize,
    name: Str,
    count: u32,
    options: Ptr,
    values: In<Ptr>,
) -> HipResult<()> {
    state.check()?;
    data.check()?;
    of_compiler!("hiprtcLinkAddData" (
        state: Ptr, kind: i32, data: Ptr, size: usize, name: Str, count: u32, options: Ptr, values: In<Ptr>
    ))
}

/// `hipLinkAddFile`.
pub(crate) fn link_add_file(
    state: Ptr,
    kind: i32,
    path: Str,
    count: u32,
    options: Ptr,
    values: In<Ptr>,
) -> HipResult<()> {
    state.check()?;
    path.bytes().ok_or(HipError::INVALID_VALUE)?;
    of_compiler!("hiprtcLinkAddFile" (
        state: Ptr, kind: i32, path: Str, count: u32, options: Ptr, values: In<Ptr>
    ))
}

/// `hipLinkComplete`: the code object is the state's.
pub(crate) fn link_complete(state: Ptr, code: Out<Ptr>, size: Out<usize>) -> HipResult<()> {
    state.check()?;
    code.check()?;
    size.check()?;
    of_compiler!("hiprtcLinkComplete" (state: Ptr, code: Out<Ptr>, size: Out<usize>))
}

/// `hipLinkDestroy`.
pub(crate) fn link_destroy(state: Ptr) -> HipResult<()> {
    state.check()?;
    of_compiler!("hiprtcLinkDestroy" (state: Ptr))
}
