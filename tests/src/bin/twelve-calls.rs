//! A small HIP program of twelve calls with one result: loads a kernel, copies its inputs to the device, launches, waits, copies the
//! result back and releases everything. Exits with 0 if the result is right.

use hip_sys::Hip;
use std::process::ExitCode;
use std::ptr::from_mut;

static KERNELS: &[u8] = include_bytes!("../../../cli/demo/kernels.co");
const LEN: usize = 1024;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(why) => {
            eprintln!("twelve-calls: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let module = hip.module(KERNELS)?;
    let saxpy = module.function("saxpy")?;
    let input: Vec<f32> = (0..LEN).map(|i| i as f32).collect();
    let (x, y) = (hip.upload(&input)?, hip.upload(&input)?);
    let (mut a, mut px, mut py, mut len) = (2.0f32, x.pointer(), y.pointer(), LEN as u32);
    let args = &mut [
        from_mut(&mut a).cast(),
        from_mut(&mut px).cast(),
        from_mut(&mut py).cast(),
        from_mut(&mut len).cast(),
    ];
    // SAFETY: saxpy takes a float, two pointers to `len` floats and `len`.
    unsafe { saxpy.launch([LEN as u32 / 256, 1, 1], [256, 1, 1], 0, args) }?;
    hip.synchronize()?;
    let result = y.download()?;
    Ok(result.iter().zip(&input).all(|(result, input)| *result == 3.0 * input))
}
