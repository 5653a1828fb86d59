//! A HIP program that measures what pinned and mapped memory costs that exists twice: launches of a kernel on device memory with a
//! synchronization each, beside so many bytes of it, all of them written; and the same where kernel and program write a few bytes of it.
//!
//! `beside-pinned BYTES ROUNDS` prints one line, in microseconds a round. `docs/distance.md` says how it is run.

use hip_sys::{Function, Hip};
use std::ffi::{c_int, c_uint, c_void};
use std::process::ExitCode;
use std::ptr::{from_mut, null_mut};
use std::time::Instant;

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const HOST_TO_DEVICE: c_int = 1;
const MAPPED: c_uint = 2;
/// Number of rounds in which kernel and program write.
const WRITING_ROUNDS: usize = 100;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("beside-pinned: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let (Some(Ok(len_bytes)), Some(Ok(rounds))) = (arguments.next(), arguments.next()) else {
        return Err("say how many bytes and how many rounds".into());
    };
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let (one, own) = (hip.zeroed::<f32>(1)?, hip.zeroed::<f32>(1)?);
    // SAFETY: the pointers are good, and the buffer has four bytes.
    let code =
        unsafe { (hip.hipMemcpy)(one.pointer(), 1.0f32.to_le_bytes().as_ptr().cast(), 4, HOST_TO_DEVICE) };
    if code != 0 {
        return Err(format!("a copy: {code}").into());
    }
    let mut pinned: *mut c_void = null_mut();
    if len_bytes > 0 {
        // SAFETY: the pointer is good; the memory has so many bytes.
        unsafe {
            let code = (hip.hipHostMalloc)(&mut pinned, len_bytes, MAPPED);
            if code != 0 {
                return Err(format!("pinned memory: {code}").into());
            }
            pinned.write_bytes(0x20, len_bytes);
        }
    }
    // What is there at first goes to the worker.
    launch(&saxpy, one.pointer(), own.pointer())?;
    hip.synchronize()?;
    let took = timed(rounds, |_| {
        launch(&saxpy, one.pointer(), own.pointer())?;
        Ok(hip.synchronize()?)
    })?;
    print!(
        "{len_bytes} bytes: {:.1} us a launch and synchronization, median {:.1}",
        took.mean_us, took.median_us
    );
    if len_bytes >= 1 << 20 {
        // SAFETY: the offsets lie in the memory. The library uses it during calls, which is why it is volatile.
        let put = |at: usize, byte: u8| unsafe { pinned.cast::<u8>().wrapping_add(at).write_volatile(byte) };
        // SAFETY: the same.
        let get = |at: usize| unsafe { pinned.cast::<u8>().wrapping_add(at).read_volatile() };
        let words = [4, len_bytes / 2 + 4092, len_bytes - 8];
        words.iter().for_each(|at| (0..4).for_each(|byte| put(at + byte, 0)));
        let bytes = [9, len_bytes - 1];
        let took = timed(WRITING_ROUNDS, |round| {
            bytes.iter().for_each(|at| put(*at, round as u8));
            for at in words {
                launch(&saxpy, one.pointer(), pinned.wrapping_byte_add(at))?;
            }
            hip.synchronize()?;
            let word = |at: usize| f32::from_le_bytes([get(at), get(at + 1), get(at + 2), get(at + 3)]);
            let is_right = words.map(word) == [round as f32 + 1.0; 3] && bytes.map(get) == [round as u8; 2];
            if is_right {
                Ok(())
            } else {
                Err(format!("round {round}: {:?} {:?}", words.map(word), bytes.map(get)).into())
            }
        })?;
        print!(
            "; {:.1} us, median {:.1}, for three launches that write a word each where the program writes two bytes",
            took.mean_us, took.median_us
        );
    }
    println!();
    Ok(())
}

/// How long rounds took.
struct Took {
    mean_us: f64,
    median_us: f64,
}

fn timed(
    rounds: usize,
    mut run: impl FnMut(usize) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<Took, Box<dyn std::error::Error>> {
    let mut all = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let begin = Instant::now();
        run(round)?;
        all.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    all.sort_by(f64::total_cmp);
    let median_us = all.get(rounds / 2).copied().unwrap_or_default();
    Ok(Took { mean_us: all.iter().sum::<f64>() / rounds.max(1) as f64, median_us })
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
