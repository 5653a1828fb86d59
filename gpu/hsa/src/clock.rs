//! The clock that kernels, copies and the host have in common.

use rustix::time::{ClockId, clock_gettime};

/// The system clock counts nanoseconds.
pub(crate) const CLOCK_HZ: u64 = 1_000_000_000;

/// Returns the time of the system's clock, in nanoseconds. Kernels, copies and the host have this one clock.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * CLOCK_HZ + time.tv_nsec as u64
}
