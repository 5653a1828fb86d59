//! The state of a process: its session with the worker.
//!
//! **Fork.** A child inherits memory but cannot share the connection. The handlers registered here make it start
//! anew: it has no session until its first HIP call, which opens one of its own; handles and device pointers of
//! the parent mean nothing in it. What the compiler's registration functions said stays known, because the child
//! has the same program.
//!
//! **Exit.** The destructor of the library runs after those of the program. It sends what is still in the buffer and tells
//! the worker good-bye. Only if something is pending that can still fail it waits for the answer (at most 5 seconds), and logs the
//! error that no call has reported. What the worker has not answered by then, it carries out and logs all the same.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use std::sync::{Once, OnceLock};
use std::time::Duration;

use hipr_proto::{Features, HipError, HipResult, op};

pub use crate::session::Session;

use crate::calls::{self, Exported};
use crate::program::{recent, register};
use crate::worker::links::LINKS_MAX;
use crate::{names, stats, thread, trace};
use hipr_client::{Failure, Stats};

/// Longest time that the end of the process waits for the worker.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);

type Cell_ = OnceLock<HipResult<Session>>;

/// The session of this process; null before the first call and in a newly forked child.
static SESSION: AtomicPtr<Cell_> = AtomicPtr::new(core::ptr::null_mut());

/// The file descriptors of [`SESSION`], two for each worker, which a forked child has to close; -1 if there is none.
static DESCRIPTORS: [[AtomicI32; 2]; LINKS_MAX] = [const { [const { AtomicI32::new(-1) }; 2] }; LINKS_MAX];

/// Whether the process has run its destructors.
static ENDED: AtomicBool = AtomicBool::new(false);

#[inline]
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

/// Returns the session with the worker; opens it on the process's first call.
///
/// # Errors
/// `hipErrorNoDevice` when the worker cannot be reached, from then on for every call, as on a machine without a
/// GPU; `hipErrorDeinitialized` when the process has ended the session.
#[inline(always)]
pub fn session() -> HipResult<&'static Session> {
    if ENDED.load(Ordering::Relaxed) {
        return Err(HipError::DEINITIALIZED);
    }
    cell().get_or_init(open).as_ref().map_err(|error| *error)
}

fn open() -> HipResult<Session> {
    let session = Session::open()?;
    let features = session.worker().features();
    for (link, places) in session.worker().links().all().iter().zip(&DESCRIPTORS) {
        let note = move |descriptors: [RawFd; 2]| {
            for (place, descriptor) in places.iter().zip(descriptors) {
                place.store(descriptor, Ordering::Relaxed);
            }
        };
        let (number, connection) = (link.number(), &link.connection);
        note(connection.raw_fds());
        connection.on_reconnect(move |descriptors| {
            note(descriptors);
            trace::reconnected();
        });
        connection.on_failure(move |failure| log_failure(number, failure));
        connection.note_callers(thread::call);
        connection.on_printed(print);
        connection.on_watch_over(|number, error| {
            if let Some(session) = session_if_open() {
                session.streams().watch_is_over(number, error);
            }
        });
        if features.contains(Features::PLACES) {
            connection.on_recall(move |recall| answer_recall(number, recall));
        }
    }
    Ok(session)
}

/// Gives back what this process does not use of the lease of the worker with this number.
fn answer_recall(number: usize, recall: u64) {
    // It may come while the session is being opened.
    let session = (0..100).find_map(|_| {
        let session = session_if_open();
        if session.is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        session
    });
    let Some(worker) = session.map(Session::worker) else { return };
    let answered = worker.links().all().get(number).map(|link| worker.answer_recall(link, recall));
    if let Some(Err(error)) = answered {
        tracing::debug!("cannot answer a recall of memory: {error:?}");
    }
}

/// Prints what kernels have printed, through the C library of the program: so its order with what the program prints is that of AMD's runtime.
fn print(is_error: bool, text: &[u8]) {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
        static stderr: *mut libc::FILE;
    }
    // SAFETY: the C library's streams, which it has made before it loads a library, and bytes that are there for the length of the call.
    unsafe {
        let stream = if is_error { stderr } else { stdout };
        libc::fwrite(text.as_ptr().cast(), 1, text.len(), stream);
    }
}

/// Writes to the log which call it was whose error a call that waits returns.
fn log_failure(number: usize, failure: &Failure) {
    let kernel = session_if_open().and_then(|session| {
        let link = session.worker().links().all().get(number)?;
        session.program().peek(link.marked(failure.function))
    });
    let call = failure.caller.and_then(calls::name_of);
    let line = failure.line(call, kernel.as_ref().map(|kernel| &*kernel.name));
    tracing::warn!("{line}; a call that waits returns the error");
}

/// Returns the session if it is open.
pub fn session_if_open() -> Option<&'static Session> {
    let cell = SESSION.load(Ordering::Acquire);
    if cell.is_null() || ENDED.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: as in `cell`.
    unsafe { &*cell }.get()?.as_ref().ok()
}

/// Initialises the log and counts the call; every C function calls it first.
#[inline]
pub(crate) fn enter(function: Exported) {
    static LOG: Once = Once::new();
    LOG.call_once(|| {
        crate::log::init();
        function.learn_names();
    });
    thread::set_call(function.call(stats::count_call()));
    tracing::trace!("{}", function.name());
}

/// Installs the fork handlers and notes the library's names; runs when the library is loaded.
extern "C" fn loaded() {
    names::note();
    // SAFETY: the handlers are functions of this library, which is never unloaded; they only do what is
    // allowed between fork and exec: atomics, close, unlocking.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child)) };
}

/// Closes the session; runs when the process ends, after the program's own destructors.
extern "C" fn unloaded() {
    // Whatever happens here, the process ends; a panic must not turn that into an abort.
    let _ = std::panic::catch_unwind(|| {
        let (mut connection, mut pages_compared) = (Stats::default(), 0);
        let is_traced = trace::end_program();
        if let Some(session) = session_if_open() {
            ENDED.store(true, Ordering::Relaxed);
            // A trace is to have the last of the workers' times, too.
            let is_decided = session.streams().is_decided() && !is_traced;
            for link in session.worker().links().all() {
                let link = &link.connection;
                if is_decided {
                    // No work is left that could fail. If another request does, the worker logs it.
                    link.leave(GOODBYE_TIMEOUT);
                } else if let Err(error) = link.close_asking(&op::DeviceSynchronize {}, GOODBYE_TIMEOUT) {
                    // Who launches and ends has looked at nothing: what went wrong is said here.
                    tracing::error!("{error}, from work that the program did not wait for");
                }
            }
            connection = session.worker().stats();
            pages_compared = session.worker().pages_compared();
        }
        stats::write_file(connection, pages_compared);
        trace::finish();
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
    trace::forget_in_child();
    // The parent's notes of written pages are of the parent's memory.
    let notes = session_if_open().map_or([-1; 2], |session| session.worker().raw_fds());
    // The parent's session stays in memory, untouched: its locks may be held by threads that do not exist here.
    SESSION.store(core::ptr::null_mut(), Ordering::Release);
    let connection = DESCRIPTORS.iter().flatten().map(|place| place.swap(-1, Ordering::Relaxed));
    for descriptor in connection.chain(notes) {
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
