//! A HIP program for the latency test: it launches kernels and asks for an event, again and again, until they are done, and never waits.
//! Prints how often it was told that they are not. Exits with 0 if the kernels did their work.

use hip_sys::Hip;
use hipr_tests::add_floats;
use std::ffi::c_int;
use std::process::ExitCode;
use std::ptr::null_mut;

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN: usize = 1 << 16;
const ROUNDS: usize = 10;
const LAUNCHES: usize = 3;
const NOT_READY: c_int = 600;
const DISABLE_TIMING: u32 = 2;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;

fn main() -> ExitCode {
    match run() {
        Ok(polls) => {
            println!("{polls}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("polls: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<usize, Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let (x, y) = (hip.zeroed::<f32>(LEN)?, hip.zeroed::<f32>(LEN)?);
    let ones = vec![1.0f32; LEN];
    let mut event = null_mut();
    // SAFETY: the buffers on both sides have as many floats; the handle is written to `event`.
    let codes = unsafe {
        [
            (hip.hipMemcpy)(x.pointer(), ones.as_ptr().cast(), LEN * 4, HOST_TO_DEVICE),
            (hip.hipEventCreateWithFlags)(&mut event, DISABLE_TIMING),
        ]
    };
    if codes != [0, 0] {
        return Err(format!("set-up: {codes:?}").into());
    }
    hip.synchronize()?;
    let mut polls = 0;
    for _ in 0..ROUNDS {
        for _ in 0..LAUNCHES {
            // SAFETY: both have so many floats.
            unsafe { add_floats(&saxpy, x.pointer(), y.pointer(), LEN) }?;
        }
        // SAFETY: the event exists.
        let recorded = unsafe { (hip.hipEventRecord)(event, null_mut()) };
        // SAFETY: the same.
        while unsafe { (hip.hipEventQuery)(event) } == NOT_READY {
            polls += 1;
            std::thread::yield_now();
        }
        // SAFETY: the same.
        let codes = [recorded, unsafe { (hip.hipEventQuery)(event) }];
        if codes != [0, 0] {
            return Err(format!("an event: {codes:?}").into());
        }
    }
    let mut sums = vec![0.0f32; LEN];
    // SAFETY: both buffers have as many floats.
    let code = unsafe { (hip.hipMemcpy)(sums.as_mut_ptr().cast(), y.pointer(), LEN * 4, DEVICE_TO_HOST) };
    if code != 0 || sums != vec![(ROUNDS * LAUNCHES) as f32; LEN] {
        return Err(format!("wrong sums: {code}, {}", sums[0]).into());
    }
    Ok(polls)
}
