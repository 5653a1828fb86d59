//! A HIP program for the latency test: sets up, prints `ready`, waits for a line, then makes streams and events, launches 300 kernels,
//! sets and copies memory, and checks one result. Exits with 0 if the result is right.

use hip_sys::Hip;
use hipr_tests::add_floats;
use std::ffi::c_int;
use std::io::BufRead;
use std::process::ExitCode;
use std::ptr::null_mut;

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN: usize = 1024;
const LAUNCHES: usize = 300;
const STREAMS: usize = 3;
const EVENTS: usize = 33;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_DEVICE: c_int = 3;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(why) => {
            eprintln!("launch-many: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let (x, y) = (hip.zeroed::<f32>(LEN)?, hip.zeroed::<f32>(LEN)?);
    hip.synchronize()?;
    println!("ready");
    std::io::stdin().lock().read_line(&mut String::new())?;

    let ones = [1.0f32; LEN];
    let len_bytes = size_of_val(&ones);
    // SAFETY: the buffers on both sides have `len_bytes` bytes.
    let codes = unsafe {
        [
            (hip.hipMemset)(y.pointer(), 0, len_bytes),
            (hip.hipMemcpy)(x.pointer(), ones.as_ptr().cast(), len_bytes, HOST_TO_DEVICE),
        ]
    };
    let mut streams = [null_mut(); STREAMS];
    let mut made = true;
    for stream in &mut streams {
        // SAFETY: the handle is written to `stream`.
        made &= unsafe { (hip.hipStreamCreateWithFlags)(stream, 0) } == 0;
    }
    for index in 0..EVENTS {
        let mut event = null_mut();
        // SAFETY: the handle is written to `event`, and is one then.
        let codes = unsafe {
            [
                (hip.hipEventCreateWithFlags)(&mut event, 0),
                (hip.hipEventRecord)(event, streams[index % STREAMS]),
            ]
        };
        made &= codes == [0, 0];
    }
    for _ in 0..LAUNCHES {
        // SAFETY: both buffers have `LEN` floats.
        unsafe { add_floats(&saxpy, x.pointer(), y.pointer(), LEN) }?;
    }
    // SAFETY: both buffers have `len_bytes` bytes.
    let copied = unsafe { (hip.hipMemcpy)(x.pointer(), y.pointer(), len_bytes, DEVICE_TO_DEVICE) };
    let result = x.download()?;
    Ok(made && codes == [0, 0] && copied == 0 && result.iter().all(|value| *value == LAUNCHES as f32))
}
