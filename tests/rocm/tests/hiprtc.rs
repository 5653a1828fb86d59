//! Tests the client library's `hiprtc*` functions with AMD's own compiler, which needs no GPU: that of release 6.4.3 is a
//! library of its own, that of 5.2.3 is inside AMD's libamdhip64. `cli/tests/programs.rs` runs what such a compiler
//! produces.

use std::env;
use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::process::Command;
use std::ptr::{null, null_mut};

use hipr_code_object::CodeObject;
use hipr_rocm_tests::Rocm;

// The functions are in the library that is being tested.
use amdhip64 as _;
unsafe extern "C" {
    fn hiprtcCreateProgram(
        program: *mut *mut c_void,
        source: *const c_char,
        name: *const c_char,
        header_count: i32,
        headers: *const *const c_char,
        header_names: *const *const c_char,
    ) -> i32;
    fn hiprtcDestroyProgram(program: *mut *mut c_void) -> i32;
    fn hiprtcAddNameExpression(program: *mut c_void, name: *const c_char) -> i32;
    fn hiprtcGetLoweredName(program: *mut c_void, name: *const c_char, lowered: *mut *const c_char) -> i32;
    fn hiprtcCompileProgram(program: *mut c_void, count: i32, options: *const *const c_char) -> i32;
    fn hiprtcGetProgramLogSize(program: *mut c_void, size: *mut usize) -> i32;
    fn hiprtcGetProgramLog(program: *mut c_void, log: *mut c_char) -> i32;
    fn hiprtcGetCodeSize(program: *mut c_void, size: *mut usize) -> i32;
    fn hiprtcGetCode(program: *mut c_void, code: *mut c_char) -> i32;
    fn hiprtcGetErrorString(result: i32) -> *const c_char;
    fn hiprtcVersion(major: *mut i32, minor: *mut i32) -> i32;
}

/// Environment variable that the client library reads.
const VARIABLE: &str = "HIPR_HIPRTC_LIBRARY";
/// `HIPRTC_ERROR_COMPILATION`, `HIPRTC_ERROR_INTERNAL_ERROR`.
const COMPILATION: i32 = 6;
const INTERNAL_ERROR: i32 = 11;

const SOURCE: &CStr = c"
template <typename T> __global__ void scale(T* out, const T* in, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * factor;
}";

fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: a string of the compiler's or of the library's that is tested.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// Compiles for gfx90a, which both releases support; returns the result and the log.
///
/// # Safety
/// `program` is one of the compiler's.
unsafe fn compile(program: *mut c_void) -> (i32, String) {
    let options = [c"--gpu-architecture=gfx90a".as_ptr(), c"-O3".as_ptr()];
    // SAFETY: the caller's promise, and good pointers.
    unsafe {
        let result = hiprtcCompileProgram(program, 2, options.as_ptr());
        let mut size = 0;
        assert_eq!(hiprtcGetProgramLogSize(program, &mut size), 0);
        let mut log = vec![0_u8; size];
        assert_eq!(hiprtcGetProgramLog(program, log.as_mut_ptr().cast()), 0);
        (result, String::from_utf8_lossy(&log).into_owned())
    }
}

#[test]
fn kernels_are_compiled_by_every_release() {
    if Rocm::library().is_none() {
        let set = |rocm: &Rocm, command: &mut Command| {
            command.env(VARIABLE, &rocm.compiler);
        };
        return Rocm::on_every_release("kernels_are_compiled_by_every_release", |rocm| &rocm.compiler, set);
    }
    // SAFETY: C calls with good pointers.
    unsafe {
        let (mut program, name) = (null_mut(), c"scale<float>".as_ptr());
        assert_eq!(
            hiprtcCreateProgram(&mut program, SOURCE.as_ptr(), c"scale.hip".as_ptr(), 0, null(), null()),
            0
        );
        assert_eq!(hiprtcAddNameExpression(program, name), 0);
        let (result, log) = compile(program);
        assert_eq!(result, 0, "{log}");
        let mut lowered = null();
        assert_eq!(hiprtcGetLoweredName(program, name, &mut lowered), 0);
        let lowered = text(lowered);
        let mut size = 0;
        assert_eq!(hiprtcGetCodeSize(program, &mut size), 0);
        let mut code = vec![0_u8; size];
        assert_eq!(hiprtcGetCode(program, code.as_mut_ptr().cast()), 0);
        let object = CodeObject::parse(&code).expect("a code object");
        let kernels: Vec<_> = object.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(kernels, [lowered.as_str()]);
        assert_eq!(hiprtcDestroyProgram(&mut program), 0);

        let broken = c"__global__ void broken() { no_such_thing(); }";
        let create =
            hiprtcCreateProgram(&mut program, broken.as_ptr(), c"broken.hip".as_ptr(), 0, null(), null());
        assert_eq!(create, 0);
        let (result, log) = compile(program);
        assert_eq!(result, COMPILATION);
        assert!(log.contains("no_such_thing"), "{log}");
        assert_eq!(hiprtcDestroyProgram(&mut program), 0);
    }
}

/// Compares hipr's own names of results with the compiler's: programs ask for them also where there is no compiler.
#[test]
fn results_have_the_names_that_the_compiler_gives_them() {
    let Some((release, library)) = Rocm::library() else {
        let test = "results_have_the_names_that_the_compiler_gives_them";
        return Rocm::on_every_release(test, |rocm| &rocm.compiler, |_, _| ());
    };
    let library = hipr_dynlib::open("runtime compiler", [library]).expect("the compiler");
    type Named = unsafe extern "C" fn(i32) -> *const c_char;
    // SAFETY: its C prototype.
    let theirs: Named = unsafe { library.function(&["hiprtcGetErrorString"]) }.expect("the function");
    for result in -1..110 {
        // SAFETY: both take any number.
        let (ours, theirs) = unsafe { (hiprtcGetErrorString(result), theirs(result)) };
        // Linking is newer than 5.2.
        if theirs.is_null() && !(result == 100 && release.starts_with('5')) {
            assert!(ours.is_null(), "{result}");
        } else if !theirs.is_null() {
            assert_eq!(text(ours), text(theirs), "{result}");
        }
    }
}

/// Checks that the library reports an error if it is given itself as the compiler, instead of calling itself.
#[test]
fn the_library_does_not_ask_itself() {
    if env::var_os(VARIABLE).is_none() {
        let this = env::current_exe().expect("a test program");
        let library: PathBuf = this.with_file_name("libamdhip64.so");
        assert!(library.exists(), "{}", library.display());
        let mut command = Command::new(&this);
        command.args(["--exact", "the_library_does_not_ask_itself", "--nocapture"]);
        let output = command.env(VARIABLE, &library).output().expect("the test runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert!(said.contains("is this library itself"), "{said}");
        return;
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: good pointers.
    assert_eq!(unsafe { hiprtcVersion(&mut major, &mut minor) }, INTERNAL_ERROR);
}
