//! A HIP program for the traffic test: it forks while it has pinned and mapped memory that a kernel reads. What a child writes there is the
//! child's, which may use HIP by itself; what the parent writes reaches its kernels as before. Exits with 0 if that is so.

use hip_sys::Hip;
use hipr_tests::add_floats;
use std::ffi::{c_int, c_void};
use std::process::ExitCode;
use std::ptr::null_mut;

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN: usize = 1 << 18;
const BYTES: usize = LEN * 4;
const DEVICE_TO_HOST: c_int = 2;
const MAPPED: u32 = 2;

type Failed = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let result = Hip::load().map_err(Failed::from).and_then(|hip| run(&hip));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("forks: {why}");
            ExitCode::FAILURE
        }
    }
}

fn done(code: c_int) -> Result<(), Failed> {
    if code == 0 { Ok(()) } else { Err(format!("error {code}").into()) }
}

/// Allocates pinned memory that kernels can use.
fn pinned(hip: &Hip) -> Result<*mut c_void, Failed> {
    let mut shared: *mut c_void = null_mut();
    // SAFETY: the pointer is good.
    done(unsafe { (hip.hipHostMalloc)(&mut shared, BYTES, MAPPED) }).map(|()| shared)
}

/// Writes a value to all of the memory.
fn write(shared: *mut c_void, value: f32) {
    // SAFETY: the memory has so many floats, and no kernel runs.
    unsafe { std::slice::from_raw_parts_mut(shared.cast::<f32>(), LEN) }.fill(value);
}

/// Checks that a kernel sees this value in all of the memory.
fn check(hip: &Hip, shared: *mut c_void, value: f32) -> Result<(), Failed> {
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let sums = hip.zeroed::<f32>(LEN)?;
    // SAFETY: both have so many floats.
    unsafe { add_floats(&saxpy, shared, sums.pointer(), LEN) }?;
    let mut out = vec![0.0f32; LEN];
    // SAFETY: both buffers have as many bytes.
    done(unsafe { (hip.hipMemcpy)(out.as_mut_ptr().cast(), sums.pointer(), BYTES, DEVICE_TO_HOST) })?;
    match out.iter().find(|seen| **seen != value) {
        Some(seen) => Err(format!("a kernel sees {seen} where {value} is right").into()),
        None => Ok(()),
    }
}

/// Does something in a child, and waits for its end.
fn in_a_child(work: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
    // SAFETY: this program has no other thread of its own; the library's are the library's to care for.
    match unsafe { libc::fork() } {
        0 => {
            let result = work().inspect_err(|why| eprintln!("forks: in the child: {why}"));
            // SAFETY: ends the child, without what the parent has to do at its end.
            unsafe { libc::_exit(c_int::from(result.is_err())) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the child is this process's, and `status` takes how it ended.
            let waited = unsafe { libc::waitpid(child, &mut status, 0) };
            if (waited, status) == (child, 0) { Ok(()) } else { Err(format!("the child: {status}").into()) }
        }
    }
}

fn run(hip: &Hip) -> Result<(), Failed> {
    let shared = pinned(hip)?;
    write(shared, 1.0);
    check(hip, shared, 1.0)?;
    // The child writes to its copy alone.
    in_a_child(|| {
        write(shared, 7.0);
        Ok(())
    })?;
    check(hip, shared, 1.0)?;
    write(shared, 2.0);
    check(hip, shared, 2.0)?;
    // It has a session of its own.
    in_a_child(|| {
        let own = pinned(hip)?;
        for value in [3.0, 4.0] {
            write(own, value);
            check(hip, own, value)?;
        }
        Ok(())
    })?;
    check(hip, shared, 2.0)?;
    write(shared, 5.0);
    check(hip, shared, 5.0)
}
