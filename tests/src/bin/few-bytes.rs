//! A HIP program for the traffic test: a kernel writes a few words of a large piece of memory that host and device share, the program
//! others in the same pages, and each sees what the other wrote. Exits with 0 if that is so. With the argument `copy` the program waits
//! with a copy of other bytes to the host, not with a synchronization; another argument is how many MiB the memory has.

use hip_sys::{Function, Hip};
use std::ffi::{c_int, c_uint, c_void};
use std::process::ExitCode;
use std::ptr::{from_mut, null_mut};

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN_BYTES: usize = 64 << 20;
/// With the argument `copy`: of a worker that compares all of it, and in a debug build.
const LESS_BYTES: usize = 2 << 20;
const ROUNDS: usize = 10;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;
const MAPPED: c_uint = 2;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("few-bytes: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1);
    let copies = argument.as_deref() == Some("copy");
    let len_bytes = match argument {
        None => LEN_BYTES,
        Some(_) if copies => LESS_BYTES,
        Some(mib) => mib.parse::<usize>()? << 20,
    };
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let one = hip.zeroed::<f32>(1)?;
    let mut shared: *mut c_void = null_mut();
    // SAFETY: the pointers are good, and the buffer has four bytes.
    let codes = unsafe {
        [
            (hip.hipHostMalloc)(&mut shared, len_bytes, MAPPED),
            (hip.hipMemcpy)(one.pointer(), 1.0f32.to_le_bytes().as_ptr().cast(), 4, HOST_TO_DEVICE),
        ]
    };
    if codes != [0, 0] {
        return Err(format!("set-up: {codes:?}").into());
    }
    // SAFETY: the memory has `len_bytes` bytes and is zeroed. The library writes it during calls, which is why it is volatile.
    let get = |at: usize| unsafe { shared.cast::<u8>().wrapping_add(at).read_volatile() };
    // SAFETY: the same.
    let put = |at: usize, byte: u8| unsafe { shared.cast::<u8>().wrapping_add(at).write_volatile(byte) };
    // The first, a middle and the last page; the program's bytes are in two of them.
    let words = [4, len_bytes / 2 + 4092, len_bytes - 8];
    let bytes = [9, len_bytes - 1];
    for round in 1..=ROUNDS {
        for at in words {
            // One is added to the word.
            launch(&saxpy, one.pointer(), shared.wrapping_byte_add(at))?;
        }
        bytes.iter().for_each(|at| put(*at, round as u8));
        if copies {
            let mut word = [0u8; 4];
            // SAFETY: the buffers on both sides have four bytes.
            let code = unsafe { (hip.hipMemcpy)(word.as_mut_ptr().cast(), one.pointer(), 4, DEVICE_TO_HOST) };
            if (code, f32::from_le_bytes(word)) != (0, 1.0) {
                return Err(format!("round {round}: a copy: {code}, {word:?}").into());
            }
        } else {
            hip.synchronize()?;
        }
        let word = |at: usize| f32::from_le_bytes([get(at), get(at + 1), get(at + 2), get(at + 3)]);
        if words.map(word) != [round as f32; 3] || bytes.map(get) != [round as u8; 2] {
            return Err(format!("round {round}: {:?} {:?}", words.map(word), bytes.map(get)).into());
        }
    }
    // SAFETY: the memory has so many bytes, whole words, and nobody writes now.
    let all = unsafe { std::slice::from_raw_parts(shared.cast::<u64>(), len_bytes / 8) };
    let others: usize =
        all.iter().map(|word| word.to_ne_bytes().iter().filter(|byte| **byte != 0).count()).sum();
    // 10.0 has two bytes that are not zero.
    if others != 2 * words.len() + bytes.len() {
        return Err(format!("{others} bytes are not zero").into());
    }
    Ok(())
}

/// Adds the float at `x` to that at `y`.
fn launch(saxpy: &Function<'_>, mut x: *mut c_void, mut y: *mut c_void) -> Result<(), hip_sys::Error> {
    let (mut a, mut len) = (1.0f32, 1u32);
    let args = &mut [
        from_mut(&mut a).cast(),
        from_mut(&mut x).cast(),
        from_mut(&mut y).cast(),
        from_mut(&mut len).cast(),
    ];
    // SAFETY: saxpy takes a float, two pointers to `len` floats and `len`.
    unsafe { saxpy.launch([1, 1, 1], [256, 1, 1], 0, args) }
}
