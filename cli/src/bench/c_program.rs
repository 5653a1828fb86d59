//! A HIP program that launches and copies on command: it opens libamdhip64.so as any HIP program does and calls the C API.
//! It reads lines with a task and a number of seconds, and answers each with the rate it achieved.

use super::program::{BLOCK, KERNEL, KERNEL_NAME, LAUNCHES, SUMMANDS, Task, rate};
use crate::output::say;
use clap::{Args, ValueEnum};
use hip_sys::{DeviceBuffer, Error, Hip, hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use std::ffi::c_void;
use std::io::BufRead;
use std::ptr::from_mut;
use std::time::Duration;

/// Options of the hidden `hipr bench c-program`.
#[derive(Debug, Args)]
pub(crate) struct CProgram {
    /// Size of a copy in bytes.
    #[arg(long)]
    size: usize,
}

/// The buffers that are copied, for the lifetime of the program.
struct Memory<'h> {
    device: DeviceBuffer<'h, u8>,
    host: Vec<u8>,
}

/// Executes tasks until its input ends.
pub(crate) fn run(options: &CProgram) -> Result<(), String> {
    let hip = Hip::load().map_err(|why| why.to_string())?;
    let mut memory = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|why| why.to_string())?;
        let (task, time) = parse(&line).ok_or_else(|| format!("unknown task '{line}'"))?;
        let rate = turn(&hip, &mut memory, task, time, options.size);
        say!("{}", rate.map_err(|why| why.to_string())?);
    }
    Ok(())
}

fn parse(line: &str) -> Option<(Task, Duration)> {
    let (task, seconds) = line.split_once(' ')?;
    Some((Task::from_str(task, false).ok()?, Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?))
}

fn turn<'h>(
    hip: &'h Hip,
    memory: &mut Option<Memory<'h>>,
    task: Task,
    time: Duration,
    size_bytes: usize,
) -> Result<f64, Error> {
    if task == Task::Launch {
        return launches(hip, time);
    }
    let memory = match memory {
        Some(memory) => memory,
        None => memory.insert(Memory { device: hip.zeroed(size_bytes)?, host: vec![0x5a; size_bytes] }),
    };
    copies(hip, memory, task, time)
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

fn copies(hip: &Hip, memory: &mut Memory<'_>, task: Task, time: Duration) -> Result<f64, Error> {
    let Memory { device, host } = memory;
    let size_bytes = host.len();
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
