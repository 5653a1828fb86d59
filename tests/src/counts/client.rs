//! Counts the instructions of HIP functions in the client library, called by a program through the C API.

use std::ffi::c_void;
use std::ptr::{from_mut, null_mut};

use hip_sys::{Hip, hipMemcpyHostToDevice, hipStream_t};

use super::worker::KERNEL;
use crate::library;

/// Number of calls between two synchronizations.
const CALLS: u64 = 100;

/// Opens the library that cargo built, as a program does; `HIPR_WORKER` names the worker.
fn load() -> Hip {
    Hip::load_from(&library()).expect("the client library")
}

/// Makes `operations` calls in groups of 100, each followed by a synchronization.
fn groups(hip: &Hip, operations: u64, mut call: impl FnMut()) {
    for _ in 0..operations / CALLS {
        (0..CALLS).for_each(|_| call());
        hip.synchronize().expect("the work succeeds");
    }
}

/// Launches a kernel with six arguments of 8 bytes.
pub(super) fn launch(operations: u64) {
    let hip = load();
    let module = hip.module(KERNEL).expect("a kernel for gfx942");
    let function = module.function("six").expect("the kernel");
    let sum = hip.zeroed::<u64>(1).expect("8 bytes");
    let mut values = [sum.pointer().expose_provenance(), 1, 2, 3, 4, 5];
    let mut args = values.each_mut().map(|value| from_mut(value).cast::<c_void>());
    groups(&hip, operations, || {
        // SAFETY: the kernel has six parameters of 8 bytes, and writes one number to the buffer.
        unsafe { function.launch([1, 1, 1], [64, 1, 1], 0, &mut args) }.expect("a launch");
    });
}

/// Copies 64 bytes to the device asynchronously.
pub(super) fn copy(operations: u64) {
    let hip = load();
    let (device, host) = (hip.zeroed::<u8>(64).expect("64 bytes"), [7_u8; 64]);
    groups(&hip, operations, || {
        let stream: hipStream_t = null_mut();
        // SAFETY: both ends have the length that is passed; bytes of the program's memory are read before the call returns.
        let code = unsafe {
            hip.hipMemcpyAsync(device.pointer(), host.as_ptr().cast(), 64, hipMemcpyHostToDevice, stream)
        };
        hip.check("hipMemcpyAsync", code).expect("a copy");
    });
}

/// Asks whether the null stream has finished.
pub(super) fn query(operations: u64) {
    let hip = load();
    groups(&hip, operations, || {
        // SAFETY: the null stream.
        let code = unsafe { hip.hipStreamQuery(null_mut()) };
        hip.check("hipStreamQuery", code).expect("an idle stream");
    });
}

/// Waits for the null stream.
pub(super) fn synchronize(operations: u64) {
    let hip = load();
    groups(&hip, operations, || {
        // SAFETY: the null stream.
        let code = unsafe { hip.hipStreamSynchronize(null_mut()) };
        hip.check("hipStreamSynchronize", code).expect("an idle stream");
    });
}
