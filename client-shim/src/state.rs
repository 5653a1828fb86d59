//! What a process and its threads remember: the session with the worker, and per thread the last error, the
//! current device, and the launch configurations that `<<<>>>` has pushed.
//!
//! **Fork.** A child inherits memory but cannot share the connection. The handlers registered here make it start
//! anew: it has no session until its first HIP call, which opens one of its own; handles and device pointers of
//! the parent mean nothing in it. What the compiler's registration functions said stays known, because the child
//! has the same program.
//!
//! **Exit.** The destructor of the library runs after those of the program. It writes what is still in the
//! buffer, tells the worker good-bye and waits for its answer (at most 5 seconds), so that a program that
//! launches kernels and ends has launched them.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use hipr_proto::{HipError, HipResult};

pub use crate::session::Session;

use crate::client::Stats;
use crate::convert::Stream;
use crate::types::Dim3;
use crate::{recent, register, stats};

/// How long the end of the process waits for the worker.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

/// A launch configuration, pushed by `<<<>>>` and popped by the kernel's stub.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic LDS, in bytes.
    pub shared_mem: usize,
    /// Where the launch goes.
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

/// Remembers the result of a call for [`last_error`]: in HIP 6.4, whose version this library has, the last error is
/// the result of the last call, success included (HIP API: hipGetLastError).
pub fn record(code: i32) {
    LAST_ERROR.set(code);
    LAST_RESULT.set(code);
}

/// The thread's last error, which stays; 0 if there is none.
pub fn last_error() -> i32 {
    LAST_ERROR.get()
}

/// The thread's last error, which is then forgotten.
pub fn take_last_error() -> i32 {
    LAST_ERROR.replace(0)
}

/// What the thread's last call returned, success included; then forgotten.
pub fn take_last_result() -> i32 {
    LAST_RESULT.replace(0)
}

/// The thread's current device.
pub fn device() -> i32 {
    DEVICE.get()
}

/// Makes `device` the thread's current one. Whether it exists is for the caller to find out.
pub fn set_device(device: i32) {
    DEVICE.set(device);
}

/// The thread's capture mode (HIP API: hipStreamCaptureMode).
pub fn capture_mode() -> i32 {
    CAPTURE_MODE.get()
}

/// The thread's capture mode, which becomes `mode`.
pub fn exchange_capture_mode(mode: i32) -> i32 {
    CAPTURE_MODE.replace(mode)
}

/// Makes `device` current until [`pop_device`].
pub fn push_device(device: i32) {
    // The list is gone only at the end of the thread.
    let _ = DEVICES.try_with(|all| all.borrow_mut().push(DEVICE.get()));
    DEVICE.set(device);
}

/// Makes the device current that was so before [`push_device`]; false if there was none.
pub fn pop_device() -> bool {
    let before = DEVICES.try_with(|all| all.borrow_mut().pop()).ok().flatten();
    if let Some(device) = before {
        DEVICE.set(device);
    }
    before.is_some()
}

/// Runs `body` with the null stream meaning the thread's own (the `_spt` functions).
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

/// Whether the null stream means the thread's own now.
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

type Cell_ = OnceLock<HipResult<Session>>;

/// The session of this process; null before the first call and in a child that has just been forked.
static SESSION: AtomicPtr<Cell_> = AtomicPtr::new(core::ptr::null_mut());

/// The descriptors of [`SESSION`], -1 where there is none: what a forked child has to close.
static DESCRIPTORS: [AtomicI32; 2] = [const { AtomicI32::new(-1) }; 2];

/// Set when the process is past its destructors.
static ENDED: AtomicBool = AtomicBool::new(false);

fn cell() -> &'static Cell_ {
    let mut cell = SESSION.load(Ordering::Acquire);
    if cell.is_null() {
        let new = Box::into_raw(Box::<Cell_>::default());
        match SESSION.compare_exchange(core::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => cell = new,
            Err(theirs) => {
                // SAFETY: made by `into_raw` above and given to nobody.
                drop(unsafe { Box::from_raw(new) });
                cell = theirs;
            }
        }
    }
    // SAFETY: made by `into_raw` and never freed: a cell lives as long as its process.
    unsafe { &*cell }
}

/// The session with the worker, opened by the first call of the process.
///
/// # Errors
/// `hipErrorNoDevice` when the worker cannot be reached, from then on for every call, as on a machine without a
/// GPU; `hipErrorDeinitialized` when the process has ended the session.
pub fn session() -> HipResult<&'static Session> {
    if ENDED.load(Ordering::Relaxed) {
        return Err(HipError::DEINITIALIZED);
    }
    let session = cell().get_or_init(|| {
        let session = Session::open()?;
        for (place, descriptor) in DESCRIPTORS.iter().zip(session.connection().raw_fds()) {
            place.store(descriptor, Ordering::Relaxed);
        }
        Ok(session)
    });
    session.as_ref().map_err(|error| *error)
}

/// The session if there is one; opens none.
pub fn session_if_open() -> Option<&'static Session> {
    let cell = SESSION.load(Ordering::Acquire);
    if cell.is_null() || ENDED.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: as in `cell`.
    unsafe { &*cell }.get()?.as_ref().ok()
}

/// What every C function does first.
pub(crate) fn enter(name: &'static str) {
    static LOG: Once = Once::new();
    LOG.call_once(crate::log::init);
    stats::count_call();
    tracing::trace!("{name}");
}

/// Runs when the library is loaded.
extern "C" fn loaded() {
    // SAFETY: the handlers are functions of this library, which is never unloaded; they only do what is
    // allowed between fork and exec: atomics, close, unlocking.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child)) };
}

/// Runs when the process ends, after the program's own destructors.
extern "C" fn unloaded() {
    // Whatever happens here, the process ends; a panic must not turn that into an abort.
    let _ = std::panic::catch_unwind(|| {
        let mut connection = Stats::default();
        if let Some(session) = session_if_open() {
            ENDED.store(true, Ordering::Relaxed);
            session.connection().close(GOODBYE_TIMEOUT);
            connection = session.connection().stats();
        }
        stats::write_file(connection);
    });
}

extern "C" fn before_fork() {
    register::lock_for_fork();
}

extern "C" fn after_fork() {
    register::unlock_after_fork();
}

extern "C" fn after_fork_in_child() {
    register::unlock_after_fork();
    recent::forget();
    stats::reset();
    // The parent's session stays in memory, untouched: its locks may be held by threads that do not exist here.
    SESSION.store(core::ptr::null_mut(), Ordering::Release);
    for place in &DESCRIPTORS {
        let descriptor = place.swap(-1, Ordering::Relaxed);
        if descriptor >= 0 {
            // SAFETY: the child's own copy of the descriptor, which nothing in the child uses.
            unsafe { libc::close(descriptor) };
        }
    }
}

#[cfg(target_os = "linux")]
mod hooks {
    // The loader calls what stands in these sections; Rust has no other word for "when the library is loaded".
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = super::loaded;

    #[used]
    #[unsafe(link_section = ".fini_array")]
    static UNLOADED: extern "C" fn() = super::unloaded;
}

#[cfg(test)]
mod tests {
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
            grid: Dim3 { x, y: 1, z: 1 },
            block: Dim3 { x: 1, y: 1, z: 1 },
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
