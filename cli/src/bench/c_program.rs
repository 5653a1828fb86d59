//! A HIP program that launches and copies when it is told to: it opens libamdhip64.so as any HIP program does and calls
//! the C API. It reads lines of a task and seconds, and answers each with what it achieved in a second.

use super::program::{BLOCK, KERNEL, KERNEL_NAME, LAUNCHES, SUMMANDS, Task, rate};
use crate::output::say;
use clap::{Args, ValueEnum};
use hip_sys::{Error, Hip, hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use std::ffi::c_void;
use std::io::BufRead;
use std::ptr::from_mut;
use std::time::Duration;

/// Options of the hidden `hipr bench c-program`.
#[derive(Debug, Args)]
pub(crate) struct CProgram {
    /// Bytes to copy at a time.
    #[arg(long)]
    size: usize,
}

/// Runs until its input ends.
pub(crate) fn run(options: &CProgram) -> Result<(), String> {
    let hip = Hip::load().map_err(|why| why.to_string())?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|why| why.to_string())?;
        let (task, time) = parse(&line).ok_or_else(|| format!("'{line}' is no task"))?;
        say!("{}", turn(&hip, task, time, options.size).map_err(|why| why.to_string())?);
    }
    Ok(())
}

fn parse(line: &str) -> Option<(Task, Duration)> {
    let (task, seconds) = line.split_once(' ')?;
    Some((Task::from_str(task, false).ok()?, Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?))
}

fn turn(hip: &Hip, task: Task, time: Duration, size_bytes: usize) -> Result<f64, Error> {
    match task {
        Task::Launch => launches(hip, time),
        Task::H2d | Task::D2h => copies(hip, task, time, size_bytes),
    }
}

fn launches(hip: &Hip, time: Duration) -> Result<f64, Error> {
    let module = hip.module(KERNEL)?;
    let function = module.function(KERNEL_NAME)?;
    let sum = hip.zeroed::<u64>(1)?;
    let mut address = sum.pointer();
    let mut summands = SUMMANDS;
    let [a, b, c, d, e] = summands.each_mut().map(|summand| from_mut(summand).cast::<c_void>());
    let mut args = [from_mut(&mut address).cast(), a, b, c, d, e];
    let mut launch = || {
        // SAFETY: the kernel has these six parameters of 8 bytes, and writes one number to the buffer.
        (0..LAUNCHES).try_for_each(|_| unsafe { function.launch([1, 1, 1], BLOCK, 0, &mut args) })
    };
    rate(time, LAUNCHES as f64, &mut launch, || hip.synchronize())
}

fn copies(hip: &Hip, task: Task, time: Duration, size_bytes: usize) -> Result<f64, Error> {
    let device = hip.zeroed::<u8>(size_bytes)?;
    let mut host = vec![0x5a_u8; size_bytes];
    let copy = || {
        let (to, from, kind) = match task {
            Task::D2h => {
                (host.as_mut_ptr().cast::<c_void>(), device.pointer().cast_const(), hipMemcpyDeviceToHost)
            }
            _ => (device.pointer(), host.as_ptr().cast::<c_void>(), hipMemcpyHostToDevice),
        };
        // SAFETY: both ends have the length that is passed.
        hip.check("hipMemcpy", unsafe { hip.hipMemcpy(to, from, size_bytes, kind) })
    };
    rate(time, size_bytes as f64, copy, || hip.synchronize())
}
