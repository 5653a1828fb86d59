//! A HIP program whose kernels fail: each kernel in each way that it can be launched, with each way to wait for it. Prints a line for each
//! case: the number of the call that launched it among this program's, the kernel, the function, whether the stream has a handle, what the
//! wait returned, and what the next one did.
//!
//! `failing-kernels faults` has kernels that do what they must not, `failing-kernels bounds` one that runs until it is stopped.

use hip_sys::Hip;
use hipr_abi::{hipEvent_t, hipFunction_t, hipStream_t};
use std::error::Error;
use std::ffi::{CString, c_void};
use std::process::ExitCode;
use std::ptr::{from_mut, null_mut};

static FAULTS: &[u8] = include_bytes!("../../programs/prebuilt/faults.O3.co");
static ATOMICS: &[u8] = include_bytes!("../../programs/prebuilt/atomics.O3.co");
const WILD: u64 = 0x1234_5678_9000;
const DEVICE_TO_HOST: i32 = 2;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("failing-kernels: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A kernel with the words that it is given.
struct Kernel {
    name: &'static str,
    arguments: Vec<u64>,
    function: hipFunction_t,
}

/// Counts the calls of HIP, and checks what they return.
struct Calls {
    count: u64,
}

impl Calls {
    fn made(&mut self, what: &str, code: i32) -> Result<(), String> {
        self.count += 1;
        if code == 0 { Ok(()) } else { Err(format!("{what}: {code}")) }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let bounds = match std::env::args().nth(1).as_deref() {
        Some("faults") => false,
        Some("bounds") => true,
        _ => return Err("which kernels?".into()),
    };
    let hip = Hip::load()?;
    let mut calls = Calls { count: 0 };
    let (mut module, mut data, mut stream, mut event) = (null_mut(), null_mut(), null_mut(), null_mut());
    let image = if bounds { ATOMICS } else { FAULTS };
    // SAFETY: the pointers are good, and the image is a whole code object.
    unsafe {
        calls.made("hipModuleLoadData", hip.hipModuleLoadData(&mut module, image.as_ptr().cast()))?;
        calls.made("hipMalloc", hip.hipMalloc(&mut data, 256))?;
        calls.made("hipMemset", hip.hipMemset(data, 1, 256))?;
        calls.made("hipStreamCreateWithFlags", hip.hipStreamCreateWithFlags(&mut stream, 0))?;
        calls.made("hipEventCreateWithFlags", hip.hipEventCreateWithFlags(&mut event, 0))?;
    }
    let address = data as u64;
    let kernels: &[(&str, &[u64])] = if bounds {
        &[("with_lock", &[address, address + 128])]
    } else {
        &[("write_at", &[WILD, 1]), ("read_at", &[WILD, address]), ("trap_if", &[address, 0x0101_0101])]
    };
    for (name, arguments) in kernels {
        let mut function = null_mut();
        let c_name = CString::new(*name)?;
        // SAFETY: the pointers are good.
        let code = unsafe { hip.hipModuleGetFunction(&mut function, module, c_name.as_ptr()) };
        calls.made("hipModuleGetFunction", code)?;
        let kernel = Kernel { name, arguments: arguments.to_vec(), function };
        all_ways(&hip, &mut calls, &kernel, stream, event, data)?;
    }
    Ok(())
}

/// Launches a kernel in every way, and waits in every way.
fn all_ways(
    hip: &Hip,
    calls: &mut Calls,
    kernel: &Kernel,
    stream: hipStream_t,
    event: hipEvent_t,
    data: *mut c_void,
) -> Result<(), String> {
    let mut values = kernel.arguments.clone();
    let mut parameters: Vec<*mut c_void> = values.iter_mut().map(|value| from_mut(value).cast()).collect();
    let parameters = parameters.as_mut_ptr();
    // SAFETY: each kernel takes two words; of an int the lower half is taken.
    let launch = |on: hipStream_t| unsafe {
        hip.hipModuleLaunchKernel(kernel.function, 1, 1, 1, 64, 1, 1, 0, on, parameters, null_mut())
    };
    let (mut graph, mut exec) = (null_mut(), null_mut());
    // SAFETY: the handles and pointers are good.
    unsafe {
        calls.made("hipStreamBeginCapture", hip.hipStreamBeginCapture(stream, 2))?;
        calls.made("hipModuleLaunchKernel", launch(stream))?;
        calls.made("hipStreamEndCapture", hip.hipStreamEndCapture(stream, &mut graph))?;
        let instantiated = hip.hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0);
        calls.made("hipGraphInstantiate", instantiated)?;
    }
    let mut host = [0u8; 64];
    for (way, on) in
        [("hipModuleLaunchKernel", null_mut()), ("hipModuleLaunchKernel", stream), ("hipGraphLaunch", stream)]
    {
        for wait in 0..4 {
            // SAFETY: the handles are good, and as many bytes are copied as both have.
            let (code, after) = unsafe {
                let launched =
                    if way == "hipGraphLaunch" { hip.hipGraphLaunch(exec, on) } else { launch(on) };
                calls.made(way, launched)?;
                print!("{} {} {way} {}", calls.count, kernel.name, !on.is_null());
                calls.made("hipEventRecord", hip.hipEventRecord(event, on))?;
                let code = match wait {
                    0 => hip.hipDeviceSynchronize(),
                    1 => hip.hipStreamSynchronize(on),
                    2 => hip.hipEventSynchronize(event),
                    // The null stream, which waits for the other one.
                    _ => hip.hipMemcpy(host.as_mut_ptr().cast(), data, host.len(), DEVICE_TO_HOST),
                };
                calls.count += 2;
                (code, hip.hipDeviceSynchronize())
            };
            println!(" {code} {after}");
        }
    }
    Ok(())
}
