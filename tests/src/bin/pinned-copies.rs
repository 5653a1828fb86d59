//! A HIP program that measures synchronous copies of 64 MiB from and to pinned memory, beside a copy in memory, in turn: prints the copy in
//! memory in GB/s, and both as a multiple of it (medians of nine).

use hip_sys::Hip;
use std::ffi::{c_int, c_void};
use std::process::ExitCode;
use std::ptr::null_mut;
use std::time::Instant;

const BYTES: usize = 64 << 20;
const ROUNDS: usize = 9;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pinned-copies: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let device = hip.zeroed::<u8>(BYTES)?;
    let mut pinned: *mut c_void = null_mut();
    // SAFETY: the pointer is good.
    let code = unsafe { (hip.hipHostMalloc)(&mut pinned, BYTES, 0) };
    if code != 0 {
        return Err(format!("hipHostMalloc: {code}").into());
    }
    let (from, mut to) = (vec![1u8; BYTES], vec![2u8; BYTES]);
    let mut codes = Vec::new();
    let mut seconds = [const { Vec::new() }; 3];
    // The first round makes the pages, and does not count.
    for round in 0..=ROUNDS {
        for (kind, seconds) in seconds.iter_mut().enumerate() {
            let begin = Instant::now();
            codes.push(match kind {
                0 => {
                    to.copy_from_slice(std::hint::black_box(&from));
                    std::hint::black_box(&mut to);
                    0
                }
                // SAFETY: both memories have as many bytes.
                1 => unsafe { (hip.hipMemcpy)(device.pointer(), pinned, BYTES, HOST_TO_DEVICE) },
                // SAFETY: the same.
                _ => unsafe { (hip.hipMemcpy)(pinned, device.pointer(), BYTES, DEVICE_TO_HOST) },
            });
            if round > 0 {
                seconds.push(begin.elapsed().as_secs_f64());
            }
        }
    }
    if let Some(code) = codes.into_iter().find(|code| *code != 0) {
        return Err(format!("hipMemcpy: {code}").into());
    }
    let [memory, up, down] = seconds.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    });
    println!(
        "a copy in memory: {:.1} GB/s; to the device {:.2}, to the host {:.2} of it",
        BYTES as f64 / memory / 1e9,
        memory / up,
        memory / down
    );
    Ok(())
}
