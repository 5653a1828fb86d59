//! When kernels and copies began and ended. All clocks are the system's, and times are always kept.

use crate::pointer::Out;
use crate::queue;
use crate::runtime::runtime;
use crate::signal;
use crate::status::{HsaResult, Status};
use crate::types::{Agent, ProfilingTime, QueuePtr, Signal};

/// `hsa_amd_profiling_set_profiler_enabled`.
pub(crate) fn set_queue(queue: QueuePtr, _enable: i32) -> HsaResult {
    runtime()?;
    queue::check(queue)
}

/// `hsa_amd_profiling_async_copy_enable`.
pub(crate) fn set_copies(_enable: bool) -> HsaResult {
    runtime().map(drop)
}

/// `hsa_amd_profiling_get_dispatch_time`.
pub(crate) fn dispatch_time(agent: Agent, signal: Signal, time: Out<ProfilingTime>) -> HsaResult {
    let runtime = runtime()?;
    if time.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    runtime.gpu(agent)?;
    time.put(signal::times(signal)?)
}

/// `hsa_amd_profiling_get_async_copy_time`.
pub(crate) fn copy_time(signal: Signal, time: Out<ProfilingTime>) -> HsaResult {
    runtime()?;
    if time.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    time.put(signal::times(signal)?)
}

/// `hsa_amd_profiling_convert_tick_to_system_domain`: an agent's tick is one of the system already.
pub(crate) fn to_system_tick(agent: Agent, agent_tick: u64, system_tick: Out<u64>) -> HsaResult {
    let runtime = runtime()?;
    if system_tick.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    runtime.gpu(agent)?;
    system_tick.put(agent_tick)
}
