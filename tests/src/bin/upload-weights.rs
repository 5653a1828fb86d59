//! A HIP program that copies as many MiB to the device as its argument says, the same bytes each time, and says how long that took.
//! With a second argument it copies all of them back, without it the last ones. With `small` as the third they are small whole numbers,
//! which can be packed, else like noise. Exits with 0 if they are right.

use hip_sys::Hip;
use std::process::ExitCode;
use std::time::Instant;

const HOST_TO_DEVICE: i32 = 1;
const DEVICE_TO_HOST: i32 = 2;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("upload-weights: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mib: usize = args.next().ok_or("usage: upload-weights MIB [all [small]]")?.parse()?;
    let looks_at_all = args.next().is_some();
    // Four whole numbers below 8 in a word.
    let mask = if args.next().as_deref() == Some("small") { 0x0007_0007_0007_0007 } else { u64::MAX };
    let weights: Vec<u64> = weights(mib << 17).into_iter().map(|word| word & mask).collect();
    let hip = Hip::load()?;
    let buffer = hip.zeroed::<u64>(weights.len())?;
    hip.synchronize()?;
    let len = size_of_val(weights.as_slice());
    let start = Instant::now();
    // SAFETY: the buffer has as many bytes as are copied.
    let code = unsafe { (hip.hipMemcpy)(buffer.pointer(), weights.as_ptr().cast(), len, HOST_TO_DEVICE) };
    if code != 0 {
        return Err(format!("hipMemcpy: {code}").into());
    }
    hip.synchronize()?;
    println!("{mib} MiB in {:.2} s", start.elapsed().as_secs_f64());
    let count = if looks_at_all { weights.len() } else { 512 };
    let expected = &weights[weights.len() - count..];
    let mut back = vec![0u64; count];
    let from = buffer.pointer().wrapping_byte_add((weights.len() - count) * size_of::<u64>());
    // SAFETY: `back` has `count` words, and so has the buffer from there on.
    let code = unsafe {
        (hip.hipMemcpy)(back.as_mut_ptr().cast(), from, size_of_val(back.as_slice()), DEVICE_TO_HOST)
    };
    if looks_at_all {
        println!("and back in {:.2} s together", start.elapsed().as_secs_f64());
    }
    if code != 0 || back != expected {
        return Err(format!("hipMemcpy: {code}, or other bytes than were copied there").into());
    }
    Ok(())
}

/// Returns so many words, which look like noise.
fn weights(count: usize) -> Vec<u64> {
    let mut x = 1u64;
    let word = |_| {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        x ^ x >> 29
    };
    (0..count).map(word).collect()
}
