//! State of the program's threads: last error, current device, capture mode, and the launch configurations that `<<<>>>` has
//! pushed.

use hipr_abi::dim3;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::convert::Stream;

/// A launch configuration, pushed by `<<<>>>` and popped by the kernel's stub.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Number of blocks in each dimension.
    pub grid: dim3,
    /// Number of threads of a block in each dimension.
    pub block: dim3,
    /// Size of dynamic shared memory (LDS) in bytes.
    pub shared_mem: usize,
    /// The stream of the launch.
    pub stream: Stream,
}

thread_local! {
    static LAST_ERROR: Cell<i32> = const { Cell::new(0) };
    static LAST_RESULT: Cell<i32> = const { Cell::new(0) };
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static CAPTURE_MODE: Cell<i32> = const { Cell::new(0) };
    static STREAM_PER_THREAD: Cell<bool> = const { Cell::new(false) };
    static DEVICES: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// Stores the result of a call for [`last_error`]: in HIP 6.4, whose version this library has, the last error is the result of
/// the last call, success included (HIP API: hipGetLastError).
pub fn record(code: i32) {
    LAST_ERROR.set(code);
    LAST_RESULT.set(code);
}

/// Returns the thread's last error without clearing it; 0 if there is none.
pub fn last_error() -> i32 {
    LAST_ERROR.get()
}

/// Returns the thread's last error and clears it.
pub fn take_last_error() -> i32 {
    LAST_ERROR.replace(0)
}

/// Returns the result of the thread's last call, success included, and clears it.
pub fn take_last_result() -> i32 {
    LAST_RESULT.replace(0)
}

/// Returns the thread's current device.
pub fn device() -> i32 {
    DEVICE.get()
}

/// Makes `device` the thread's current one. Whether it exists is for the caller to find out.
pub fn set_device(device: i32) {
    DEVICE.set(device);
}

/// Returns the thread's capture mode (HIP API: hipStreamCaptureMode).
pub fn capture_mode() -> i32 {
    CAPTURE_MODE.get()
}

/// Sets the thread's capture mode to `mode` and returns the old one.
pub fn exchange_capture_mode(mode: i32) -> i32 {
    CAPTURE_MODE.replace(mode)
}

/// Makes `device` current until [`pop_device`].
pub fn push_device(device: i32) {
    // The list is gone only at the end of the thread.
    let _ = DEVICES.try_with(|all| all.borrow_mut().push(DEVICE.get()));
    DEVICE.set(device);
}

/// Restores the device that was current before [`push_device`]; returns false if there was none.
pub fn pop_device() -> bool {
    let before = DEVICES.try_with(|all| all.borrow_mut().pop()).ok().flatten();
    if let Some(device) = before {
        DEVICE.set(device);
    }
    before.is_some()
}

/// Runs `body` with the null stream meaning the calling thread's own (the `_spt` functions).
pub fn with_stream_per_thread<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            STREAM_PER_THREAD.set(self.0);
        }
    }
    let _restore = Restore(STREAM_PER_THREAD.replace(true));
    body()
}

/// Returns whether the null stream means the calling thread's own now.
pub fn is_stream_per_thread() -> bool {
    STREAM_PER_THREAD.get()
}

/// Pushes a launch configuration.
pub fn push_configuration(configuration: Configuration) {
    // The list is gone only at the end of the thread, when nothing is launched any more.
    let _ = CONFIGURATIONS.try_with(|all| all.borrow_mut().push(configuration));
}

/// Pops the launch configuration that was pushed last.
pub fn pop_configuration() -> Option<Configuration> {
    CONFIGURATIONS.try_with(|all| all.borrow_mut().pop()).ok().flatten()
}

/// Returns the calling thread's number, which no other thread of the process has.
pub fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    NUMBER.get()
}

#[cfg(test)]
mod tests {
    use hipr_proto::HipError;

    use super::*;

    #[test]
    fn last_error_is_kept_until_it_is_read_or_another_call_is_made() {
        record(HipError::INVALID_VALUE.0);
        assert_eq!(last_error(), HipError::INVALID_VALUE.0);
        assert_eq!(take_last_error(), HipError::INVALID_VALUE.0);
        assert_eq!(take_last_error(), 0);
        record(HipError::INVALID_VALUE.0);
        record(0);
        assert_eq!(last_error(), 0);
    }

    #[test]
    fn the_last_result_is_kept_beside_the_last_error() {
        record(HipError::NOT_READY.0);
        assert_eq!(take_last_error(), HipError::NOT_READY.0);
        assert_eq!(take_last_result(), HipError::NOT_READY.0);
        assert_eq!(take_last_result(), 0);
    }

    #[test]
    fn threads_have_their_own_errors_and_devices() {
        record(HipError::INVALID_VALUE.0);
        set_device(3);
        let other = std::thread::spawn(|| (last_error(), device())).join();
        assert_eq!(other.ok(), Some((0, 0)));
        assert_eq!((take_last_error(), device()), (HipError::INVALID_VALUE.0, 3));
    }

    #[test]
    fn configurations_nest() {
        let one = |x| Configuration {
            grid: dim3 { x, y: 1, z: 1 },
            block: dim3 { x: 1, y: 1, z: 1 },
            shared_mem: 0,
            stream: Stream::NULL,
        };
        push_configuration(one(1));
        push_configuration(one(2));
        let popped = [pop_configuration(), pop_configuration(), pop_configuration()];
        assert_eq!(popped.map(|c| c.map(|c| c.grid.x)), [Some(2), Some(1), None]);
    }

    #[test]
    fn the_null_stream_is_the_threads_own_only_inside() {
        assert!(!is_stream_per_thread());
        assert!(with_stream_per_thread(is_stream_per_thread));
        assert!(!is_stream_per_thread());
    }
}
