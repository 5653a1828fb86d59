//! A HIP program for the traffic test: io_uring reads files into pinned and mapped memory that is registered with it, between launches of a
//! kernel that reads that memory. Exits with 0 if the kernel always saw what was read, and with 3 if there is no io_uring.

use hip_sys::Hip;
use hipr_tests::add_floats;
use std::ffi::{c_int, c_void};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::ExitCode;
use std::ptr::null_mut;

use io_uring::{IoUring, opcode, types};

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN: usize = 1 << 18;
const BYTES: usize = LEN * 4;
const ROUNDS: usize = 5;
const DEVICE_TO_HOST: c_int = 2;
const MAPPED: u32 = 2;

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(why) => {
            eprintln!("ring-reads: {why}");
            ExitCode::FAILURE
        }
    }
}

fn done(code: c_int) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err(format!("error {code}").into()) }
}

fn run() -> Result<bool, Failed> {
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let sums = hip.zeroed::<f32>(LEN)?;
    let mut shared: *mut c_void = null_mut();
    // SAFETY: the pointer is good.
    done(unsafe { (hip.hipHostMalloc)(&mut shared, BYTES, MAPPED) })?;
    let mut out = vec![0.0f32; LEN];
    let mut expected = 0.0;
    // Adds the memory's values to the sums, all of which are to be `value` larger then.
    let mut check = |value: f32| -> Result<(), Failed> {
        // SAFETY: both have so many floats.
        unsafe { add_floats(&saxpy, shared, sums.pointer(), LEN) }?;
        // SAFETY: both buffers have as many bytes.
        done(unsafe { (hip.hipMemcpy)(out.as_mut_ptr().cast(), sums.pointer(), BYTES, DEVICE_TO_HOST) })?;
        expected += value;
        match out.iter().find(|sum| **sum != expected) {
            Some(sum) => Err(format!("the kernel sees {sum} where {expected} is right").into()),
            None => Ok(()),
        }
    };
    // SAFETY: the memory has so many floats, and no kernel runs.
    unsafe { shared.cast::<f32>().cast::<[f32; LEN]>().write([1.0; LEN]) };
    check(1.0)?;
    let Ok(mut ring) = IoUring::new(8) else { return Ok(false) };
    let buffer = libc::iovec { iov_base: shared, iov_len: BYTES };
    // SAFETY: the memory lives until the program ends.
    unsafe { ring.submitter().register_buffers(&[buffer]) }?;
    for round in 0..ROUNDS {
        let value = (2 + round) as f32;
        let mut file = tempfile::tempfile()?;
        file.write_all(&value.to_ne_bytes().repeat(LEN))?;
        let read =
            opcode::ReadFixed::new(types::Fd(file.as_raw_fd()), shared.cast(), BYTES as u32, 0).build();
        // SAFETY: the file is open and the memory is there until the read has ended.
        unsafe { ring.submission().push(&read) }?;
        ring.submit_and_wait(1)?;
        let read = ring.completion().next().map(|entry| entry.result());
        if read != Some(BYTES as i32) {
            return Err(format!("io_uring has read {read:?}").into());
        }
        check(value)?;
        check(value)?;
    }
    Ok(true)
}
