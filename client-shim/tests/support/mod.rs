//! Shared parts of the tests: the C functions as a program declares them, programs in their own processes, and workers.
#![allow(dead_code, reason = "each test uses some of it")]

use std::env;
use std::ffi::{c_char, c_void};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

#[path = "../../../client/tests/support/mod.rs"]
mod workers;
pub(crate) use workers::*;

/// HIP's functions, as C declares them.
pub(crate) mod hip {
    use super::{c_char, c_void};

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub(crate) struct Dim3 {
        pub(crate) x: u32,
        pub(crate) y: u32,
        pub(crate) z: u32,
    }

    #[repr(C)]
    pub(crate) struct PointerAttribute {
        pub(crate) kind: i32,
        pub(crate) device: i32,
        pub(crate) device_pointer: *mut c_void,
        pub(crate) host_pointer: *mut c_void,
        pub(crate) is_managed: i32,
        pub(crate) flags: u32,
    }

    #[repr(C)]
    pub(crate) struct MemsetParams {
        pub(crate) dst: Ptr,
        pub(crate) element_size: u32,
        pub(crate) height: usize,
        pub(crate) pitch: usize,
        pub(crate) value: u32,
        pub(crate) width: usize,
    }

    pub(crate) type Ptr = *mut c_void;

    // The functions are in the library that is being tested.
    use amdhip64 as _;
    unsafe extern "C" {
        pub(crate) fn hipInit(flags: u32) -> i32;
        pub(crate) fn hipGetDeviceCount(count: *mut i32) -> i32;
        pub(crate) fn hipSetDevice(device: i32) -> i32;
        pub(crate) fn hipGetDevice(device: *mut i32) -> i32;
        pub(crate) fn hipDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> i32;
        pub(crate) fn hipDriverGetVersion(version: *mut i32) -> i32;
        pub(crate) fn hipDeviceSynchronize() -> i32;
        pub(crate) fn hipGetLastError() -> i32;
        pub(crate) fn hipPeekAtLastError() -> i32;
        pub(crate) fn hipGetErrorName(code: i32) -> *const c_char;
        pub(crate) fn hipMalloc(ptr: *mut Ptr, size: usize) -> i32;
        pub(crate) fn hipFree(ptr: Ptr) -> i32;
        pub(crate) fn hipMallocAsync(ptr: *mut Ptr, size: usize, stream: Ptr) -> i32;
        pub(crate) fn hipFreeAsync(ptr: Ptr, stream: Ptr) -> i32;
        pub(crate) fn hipMallocPitch(ptr: *mut Ptr, pitch: *mut usize, width: usize, height: usize) -> i32;
        pub(crate) fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> i32;
        pub(crate) fn hipHostMalloc(ptr: *mut Ptr, size: usize, flags: u32) -> i32;
        pub(crate) fn hipHostFree(ptr: Ptr) -> i32;
        pub(crate) fn hipHostRegister(ptr: Ptr, size: usize, flags: u32) -> i32;
        pub(crate) fn hipHostUnregister(ptr: Ptr) -> i32;
        pub(crate) fn hipHostGetDevicePointer(out: *mut Ptr, host: Ptr, flags: u32) -> i32;
        pub(crate) fn hipMallocManaged(ptr: *mut Ptr, size: usize, flags: u32) -> i32;
        pub(crate) fn hipMemcpy(dst: Ptr, src: *const c_void, size: usize, kind: i32) -> i32;
        pub(crate) fn hipMemcpyAsync(
            dst: Ptr,
            src: *const c_void,
            size: usize,
            kind: i32,
            stream: Ptr,
        ) -> i32;
        pub(crate) fn hipMemcpy2D(
            d: Ptr,
            dp: usize,
            s: *const c_void,
            sp: usize,
            w: usize,
            h: usize,
            kind: i32,
        ) -> i32;
        pub(crate) fn hipMemset(dst: Ptr, value: i32, size: usize) -> i32;
        pub(crate) fn hipMemsetAsync(dst: Ptr, value: i32, size: usize, stream: Ptr) -> i32;
        pub(crate) fn hipMemset2D(dst: Ptr, pitch: usize, value: i32, width: usize, height: usize) -> i32;
        pub(crate) fn hipMemsetD16(dst: Ptr, value: u16, count: usize) -> i32;
        pub(crate) fn hipPointerGetAttributes(attributes: *mut PointerAttribute, ptr: *const c_void) -> i32;
        pub(crate) fn hipEventCreate(event: *mut Ptr) -> i32;
        pub(crate) fn hipEventCreateWithFlags(event: *mut Ptr, flags: u32) -> i32;
        pub(crate) fn hipEventDestroy(event: Ptr) -> i32;
        pub(crate) fn hipEventRecord(event: Ptr, stream: Ptr) -> i32;
        pub(crate) fn hipEventSynchronize(event: Ptr) -> i32;
        pub(crate) fn hipEventQuery(event: Ptr) -> i32;
        pub(crate) fn hipStreamCreate(stream: *mut Ptr) -> i32;
        pub(crate) fn hipStreamCreateWithFlags(stream: *mut Ptr, flags: u32) -> i32;
        pub(crate) fn hipStreamCreateWithPriority(stream: *mut Ptr, flags: u32, priority: i32) -> i32;
        pub(crate) fn hipStreamGetFlags(stream: Ptr, flags: *mut u32) -> i32;
        pub(crate) fn hipStreamGetPriority(stream: Ptr, priority: *mut i32) -> i32;
        pub(crate) fn hipDeviceReset() -> i32;
        pub(crate) fn hipStreamQuery(stream: Ptr) -> i32;
        pub(crate) fn hipStreamSynchronize(stream: Ptr) -> i32;
        pub(crate) fn hipStreamWaitEvent(stream: Ptr, event: Ptr, flags: u32) -> i32;
        pub(crate) fn hipStreamDestroy(stream: Ptr) -> i32;
        pub(crate) fn hipLaunchHostFunc(stream: Ptr, function: Option<extern "C" fn(Ptr)>, data: Ptr) -> i32;
        pub(crate) fn hipModuleLoadData(module: *mut Ptr, image: *const c_void) -> i32;
        pub(crate) fn hipModuleLoad(module: *mut Ptr, path: *const c_char) -> i32;
        pub(crate) fn hipModuleUnload(module: Ptr) -> i32;
        pub(crate) fn hipModuleGetFunction(function: *mut Ptr, module: Ptr, name: *const c_char) -> i32;
        pub(crate) fn hipModuleGetGlobal(
            address: *mut Ptr,
            bytes: *mut usize,
            module: Ptr,
            name: *const c_char,
        ) -> i32;
        pub(crate) fn hipFuncGetAttribute(value: *mut i32, attribute: i32, function: Ptr) -> i32;
        pub(crate) fn hipFuncSetAttribute(function: *const c_void, attribute: i32, value: i32) -> i32;
        pub(crate) fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
            blocks: *mut i32,
            function: Ptr,
            block_size: i32,
            lds: usize,
        ) -> i32;
        pub(crate) fn hipModuleOccupancyMaxPotentialBlockSize(
            grid: *mut i32,
            block: *mut i32,
            function: Ptr,
            lds: usize,
            limit: i32,
        ) -> i32;
        pub(crate) fn hipModuleLaunchKernel(
            function: Ptr,
            grid_x: u32,
            grid_y: u32,
            grid_z: u32,
            block_x: u32,
            block_y: u32,
            block_z: u32,
            lds: u32,
            stream: Ptr,
            params: *mut Ptr,
            extra: *mut Ptr,
        ) -> i32;
        pub(crate) fn hipGraphCreate(graph: *mut Ptr, flags: u32) -> i32;
        pub(crate) fn hipGraphAddMemsetNode(
            node: *mut Ptr,
            graph: Ptr,
            dependencies: *const Ptr,
            count: usize,
            params: *const MemsetParams,
        ) -> i32;
        pub(crate) fn hipGraphInstantiate(
            exec: *mut Ptr,
            graph: Ptr,
            error_node: Ptr,
            log: Ptr,
            log_bytes: usize,
        ) -> i32;
        pub(crate) fn hipGraphExecMemsetNodeSetParams(
            exec: Ptr,
            node: Ptr,
            params: *const MemsetParams,
        ) -> i32;
        pub(crate) fn hipGraphLaunch(exec: Ptr, stream: Ptr) -> i32;
        pub(crate) fn hipGraphExecDestroy(exec: Ptr) -> i32;
        pub(crate) fn hipMemPoolExportPointer(export_data: Ptr, dev_ptr: Ptr) -> i32;
        pub(crate) fn hiprtcVersion(major: *mut i32, minor: *mut i32) -> i32;
        pub(crate) fn __hipRegisterFatBinary(wrapper: *const c_void) -> *mut Ptr;
        pub(crate) fn __hipRegisterFunction(
            modules: *mut Ptr,
            host: *const c_void,
            device: *const c_char,
            name: *const c_char,
            limit: u32,
            tid: Ptr,
            bid: Ptr,
            block: Ptr,
            grid: Ptr,
            warp: *mut i32,
        );
        pub(crate) fn __hipRegisterVar(
            modules: *mut Ptr,
            var: Ptr,
            host_var: *mut c_char,
            device_var: *mut c_char,
            ext: i32,
            size: usize,
            constant: i32,
            global: i32,
        );
        pub(crate) fn hipGetSymbolAddress(address: *mut Ptr, symbol: *const c_void) -> i32;
        pub(crate) fn hipMemcpyToSymbol(
            symbol: *const c_void,
            src: *const c_void,
            size: usize,
            offset: usize,
            kind: i32,
        ) -> i32;
        pub(crate) fn hipMemcpyToSymbolAsync(
            symbol: *const c_void,
            src: *const c_void,
            size: usize,
            offset: usize,
            kind: i32,
            stream: Ptr,
        ) -> i32;
        pub(crate) fn __hipUnregisterFatBinary(modules: *mut Ptr);
        pub(crate) fn hipLaunchKernel(
            f: *const c_void,
            grid: Dim3,
            block: Dim3,
            args: *mut Ptr,
            lds: usize,
            stream: Ptr,
        ) -> i32;
    }

    pub(crate) const H2D: i32 = 1;
    pub(crate) const D2H: i32 = 2;
    pub(crate) const D2D: i32 = 3;
    pub(crate) const DEFAULT: i32 = 4;
}

/// Environment variable that is set for a test which runs as the program of another test.
const PROGRAM: &str = "HIPR_TEST_PROGRAM";

/// Returns whether this test runs as a program, with a library that has not been used yet. Programs are marked `ignore`, since
/// they are parts of other tests.
pub(crate) fn is_program() -> bool {
    env::var_os(PROGRAM).is_some()
}

/// Returns the command that runs the test `name` of this file as a program.
pub(crate) fn program(name: &str, worker: impl ToString) -> Command {
    let mut command = Command::new(env::current_exe().expect("this test's file"));
    command
        .args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PROGRAM, name)
        .env("HIPR_WORKER", worker.to_string())
        .env_remove("HIPR_LOG")
        .env_remove("HIPR_STATS_FILE")
        .env_remove("HIPR_CONNECT_TIMEOUT_MS")
        .env_remove("HIPR_EXTENSION")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a program to its end, which must be successful, and returns its standard error.
pub(crate) fn run(mut command: Command) -> String {
    finish(command.spawn().expect("the program starts"))
}

/// Runs a program as [`run`] does; returns its standard error, and the library's counters from `HIPR_STATS_FILE`.
pub(crate) fn run_counted(mut command: Command) -> (String, impl Fn(&str) -> u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stats.json");
    command.env("HIPR_STATS_FILE", &file);
    let stderr = run(command);
    let line = std::fs::read_to_string(&file).expect("the file was written");
    let number = move |name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name}: {line}"));
        rest.split([',', '}']).next().and_then(|n| n.parse().ok()).expect("a number")
    };
    (stderr, number)
}

/// Waits for a program's end, which must be successful, and returns its standard error.
pub(crate) fn finish(child: Child) -> String {
    let output = child.wait_with_output().expect("the program ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    assert!(out.contains("1 passed"), "the program ran: {out}");
    err.into_owned()
}

/// Returns the lines that the library logged.
pub(crate) fn log_lines(stderr: &str) -> Vec<&str> {
    stderr.lines().filter(|line| line.starts_with("hipr: ")).collect()
}

/// Writes a line and waits for one, so that a program and its test take turns.
pub(crate) fn tell_test() {
    println!("\nready");
    std::io::stdout().flush().expect("somebody reads");
    let mut byte = [0];
    let _ = std::io::stdin().read(&mut byte);
}
