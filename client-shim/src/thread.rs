//! State of the program's threads: last error, current device, capture mode, and the launch configurations that `<<<>>>` has
//! pushed.

use hipr_abi::dim3;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::convert::Stream;

/// A launch configuration, pushed by `<<<>>>` and popped by the kernel's stub, or by `hipConfigureCall` and `hipLaunchByPtr`.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Number of blocks in each dimension.
    pub grid: dim3,
    /// Number of threads of a block in each dimension.
    pub block: dim3,
    /// Size of dynamic shared memory (LDS) in bytes.
    pub shared_mem: usize,
    /// The stream of the launch.
    pub stream: Stream,
    /// The arguments, as far as `hipSetupArgument` has set them.
    pub arguments: Vec<u8>,
}

/// What the stream layer has to know of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Number of the thread, which no other thread of the process has.
    pub number: u64,
    /// The thread's current device.
    pub device: i32,
    /// The thread's capture mode (HIP API: hipStreamCaptureMode).
    pub capture_mode: i32,
    /// Whether the thread executes queued steps, and so must not wait for them.
    pub is_host_thread: bool,
}

/// The state that every call uses. It is one variable, as a library has to look up the address of each.
struct State {
    last_error: Cell<i32>,
    last_result: Cell<i32>,
    /// The number is 0 until it is asked for.
    identity: Cell<Identity>,
    /// The call that is being made.
    call: Cell<u64>,
    is_stream_per_thread: Cell<bool>,
}

const NEW: Identity = Identity { number: 0, device: 0, capture_mode: 0, is_host_thread: false };

thread_local! {
    static STATE: State = const {
        State {
            last_error: Cell::new(0),
            last_result: Cell::new(0),
            identity: Cell::new(NEW),
            call: Cell::new(0),
            is_stream_per_thread: Cell::new(false),
        }
    };
    static DEVICES: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// Stores the result of a call for [`last_error`]: in HIP 6.4, whose version this library has, the last error is the result of
/// the last call, success included (HIP API: hipGetLastError).
pub fn record(code: i32) {
    STATE.with(|state| {
        state.last_error.set(code);
        state.last_result.set(code);
    });
}

/// Returns the thread's last error without clearing it; 0 if there is none.
pub fn last_error() -> i32 {
    STATE.with(|state| state.last_error.get())
}

/// Returns the thread's last error and clears it.
pub fn take_last_error() -> i32 {
    STATE.with(|state| state.last_error.replace(0))
}

/// Returns the result of the thread's last call, success included, and clears it.
pub fn take_last_result() -> i32 {
    STATE.with(|state| state.last_result.replace(0))
}

/// Notes the call on whose behalf the thread does what it does next: its function and number, in one word.
pub fn set_call(call: u64) {
    STATE.with(|state| state.call.set(call));
}

/// Returns the call on whose behalf the thread acts; 0 if it is none.
pub fn call() -> u64 {
    STATE.with(|state| state.call.get())
}

/// Returns the thread's current device.
pub fn device() -> i32 {
    STATE.with(|state| state.identity.get().device)
}

/// Makes `device` the thread's current one. Whether it exists is for the caller to find out.
pub fn set_device(device: i32) {
    change(|identity| identity.device = device);
}

/// Runs `body` with `device` as the thread's current one; afterwards the one from before is current again.
pub fn with_device<R>(device: i32, body: impl FnOnce() -> R) -> R {
    struct Restore(i32);
    impl Drop for Restore {
        fn drop(&mut self) {
            set_device(self.0);
        }
    }
    let _restore = Restore(change(|identity| core::mem::replace(&mut identity.device, device)));
    body()
}

/// Sets the thread's capture mode to `mode` and returns the old one.
pub fn exchange_capture_mode(mode: i32) -> i32 {
    change(|identity| core::mem::replace(&mut identity.capture_mode, mode))
}

/// Notes that the thread executes queued steps.
pub fn become_host_thread() {
    change(|identity| identity.is_host_thread = true);
}

fn change<T>(change: impl FnOnce(&mut Identity) -> T) -> T {
    STATE.with(|state| {
        let mut identity = state.identity.get();
        let result = change(&mut identity);
        state.identity.set(identity);
        result
    })
}

/// Appends the context of `device` to the thread's list of contexts; each device has one context.
pub fn push_device(device: i32) {
    // The list is gone only at the end of the thread.
    let _ = DEVICES.try_with(|all| all.borrow_mut().push(device));
}

/// Removes the last context from the thread's list and returns its device; `None` if the list is empty.
pub fn pop_device() -> Option<i32> {
    DEVICES.try_with(|all| all.borrow_mut().pop()).ok().flatten()
}

/// Returns the device of the last context in the thread's list.
pub fn last_pushed() -> Option<i32> {
    DEVICES.try_with(|all| all.borrow().last().copied()).ok().flatten()
}

/// Runs `body` with the null stream meaning the calling thread's own (the `_spt` functions).
pub fn with_stream_per_thread<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            STATE.with(|state| state.is_stream_per_thread.set(self.0));
        }
    }
    let _restore = Restore(STATE.with(|state| state.is_stream_per_thread.replace(true)));
    body()
}

/// Returns whether the null stream means the calling thread's own now.
pub fn is_stream_per_thread() -> bool {
    STATE.with(|state| state.is_stream_per_thread.get())
}

/// Pushes a launch configuration.
pub fn push_configuration(configuration: Configuration) {
    // The list is gone only at the end of the thread, when nothing is launched any more.
    let _ = CONFIGURATIONS.try_with(|all| all.borrow_mut().push(configuration));
}

/// Changes the launch configuration that was pushed last; returns false if there is none.
pub fn change_configuration(change: impl FnOnce(&mut Configuration)) -> bool {
    CONFIGURATIONS.try_with(|all| all.borrow_mut().last_mut().map(change)).ok().flatten().is_some()
}

/// Pops the launch configuration that was pushed last.
pub fn pop_configuration() -> Option<Configuration> {
    CONFIGURATIONS.try_with(|all| all.borrow_mut().pop()).ok().flatten()
}

/// Returns what the stream layer has to know of the calling thread.
pub fn identity() -> Identity {
    STATE.with(|state| match state.identity.get() {
        Identity { number: 0, .. } => numbered(state),
        identity => identity,
    })
}

/// Returns the calling thread's number, which no other thread of the process has.
pub fn number() -> u64 {
    identity().number
}

#[cold]
fn numbered(state: &State) -> Identity {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    state.identity.set(Identity { number, ..state.identity.get() });
    state.identity.get()
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
            arguments: Vec::new(),
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
