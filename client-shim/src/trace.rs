//! The trace of a process (`HIPR_TRACE`): what its threads call, what they wait for, what the connection does, and what the
//! worker tells of it.
//!
//! Threads note events in buffers of their own; a thread of the library turns them into a file every 50 ms. When events come faster than
//! they are written, those for which there is no room are lost, and counted.

mod arguments;
mod events;
mod file;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hipr_client::{Observer, Requested};
use hipr_proto::op::TraceEntry;

pub(crate) use arguments::{SHOWN_MAX, Shown, ShownAs, number, shown_of};
use events::{Call, Event, Wait};
use file::Writer;

use crate::calls::Exported;
use crate::maps::return_addresses;
use crate::thread;

/// The environment variable that names the file; `%p` in it stands for the number of the process.
const FILE: &str = "HIPR_TRACE";
/// The environment variable that says how many seconds of the trace are kept.
const LAST: &str = "HIPR_TRACE_LAST_S";

/// How often events are written.
const PERIOD: Duration = Duration::from_millis(50);
/// Most events that are not written.
const EVENTS_MAX: usize = 1 << 18;
/// Number of events at which the thread that writes them is woken.
const EVENTS_MANY: usize = EVENTS_MAX / 4;
/// Most frames of a stack.
const FRAMES_MAX: usize = 16;

/// Whether there is a trace: not known yet, no, or yes.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

/// The trace, once there is one. It is never freed, as threads use it until the process ends.
static TRACE: AtomicPtr<Trace> = AtomicPtr::new(core::ptr::null_mut());

/// The events of a thread that are not written.
#[derive(Debug)]
struct Buffer {
    tid: u32,
    name: String,
    events: Mutex<Vec<Event>>,
}

/// The trace of this process.
#[derive(Debug)]
pub(crate) struct Trace {
    /// A time, and what the monotonic clock said then, in nanoseconds.
    base: (Instant, u64),
    buffers: Mutex<Vec<Arc<Buffer>>>,
    /// Number of events that are not written.
    pending: AtomicUsize,
    lost: AtomicU64,
    /// The buffer of what happens when the thread's own is gone, at the end of the process.
    late: OnceLock<Arc<Buffer>>,
    writer: Mutex<Writer>,
    is_over: AtomicBool,
    /// Wakes the thread that writes.
    many: Condvar,
    many_lock: Mutex<()>,
}

thread_local! {
    /// The thread's buffer, and the trace that has it.
    static BUFFER: RefCell<Option<(&'static Trace, Arc<Buffer>)>> = const { RefCell::new(None) };
    /// Whether the call that the thread makes has waited for an answer.
    static HAS_WAITED: Cell<bool> = const { Cell::new(false) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written to; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the trace, if there is one.
#[inline]
fn trace() -> Option<&'static Trace> {
    if STATE.load(Ordering::Relaxed) != ON {
        return None;
    }
    // SAFETY: null, or made by `Box::into_raw` and never freed.
    unsafe { TRACE.load(Ordering::Acquire).as_ref() }
}

/// Begins the trace of this process if the environment wants one.
#[cold]
fn start() {
    static STARTS: Mutex<()> = Mutex::new(());
    // A child of `fork` may have got it locked by a thread that it does not have.
    let Ok(_guard) = STARTS.try_lock() else { return };
    if STATE.load(Ordering::Relaxed) != UNKNOWN {
        return;
    }
    let Some(writer) = open() else {
        STATE.store(OFF, Ordering::Relaxed);
        return;
    };
    let trace = Box::leak(Box::new(Trace {
        base: (Instant::now(), monotonic_ns()),
        buffers: Mutex::default(),
        pending: AtomicUsize::new(0),
        lost: AtomicU64::new(0),
        late: OnceLock::new(),
        writer: Mutex::new(writer),
        is_over: AtomicBool::new(false),
        many: Condvar::new(),
        many_lock: Mutex::new(()),
    }));
    let trace: &'static Trace = trace;
    TRACE.store(core::ptr::from_ref(trace).cast_mut(), Ordering::Release);
    STATE.store(ON, Ordering::Release);
    let thread = std::thread::Builder::new().name("hipr-trace".to_owned());
    if let Err(why) = thread.spawn(move || trace.write_until_over()) {
        tracing::warn!(
            "cannot start the thread that writes the trace: {why}; it is written when the program ends"
        );
    }
}

fn open() -> Option<Writer> {
    let path = std::env::var_os(FILE).filter(|path| !path.is_empty())?;
    let path = match path.to_str() {
        Some(text) => PathBuf::from(text.replace("%p", &std::process::id().to_string())),
        None => PathBuf::from(path),
    };
    let seconds = std::env::var(LAST).ok().and_then(|text| text.trim().parse().ok());
    match Writer::open(&path, seconds.map(Duration::from_secs)) {
        Ok(writer) => Some(writer),
        Err(why) => {
            tracing::error!("cannot write the trace to {}: {why}", path.display());
            None
        }
    }
}

/// Returns what is to see what the connection does, if there is a trace.
pub(crate) fn observer() -> Option<Arc<dyn Observer>> {
    trace().map(|trace| Arc::new(Seen(trace)) as Arc<dyn Observer>)
}

/// Notes that the connection is there again after it was cut.
pub(crate) fn reconnected() {
    if let Some(trace) = trace() {
        trace.note(Event::Reconnected { at_ns: monotonic_ns() });
    }
}

/// Notes the name of a kernel.
pub(crate) fn named(function: u64, symbol: &str) {
    if let Some(trace) = trace() {
        trace.note(Event::Named { function, symbol: symbol.into() });
    }
}

/// Makes a child of `fork` begin a trace of its own with its first call.
pub(crate) fn forget_in_child() {
    TRACE.store(core::ptr::null_mut(), Ordering::Release);
    if STATE.load(Ordering::Relaxed) == ON {
        STATE.store(UNKNOWN, Ordering::Release);
    }
}

/// Notes that the program is over, and returns whether there is a trace: what the connection still does is not the program's.
pub(crate) fn end_program() -> bool {
    trace().inspect(|trace| lock(&trace.writer).end_program(monotonic_ns())).is_some()
}

/// Writes what is not written, at the end of the process.
pub(crate) fn finish() {
    if let Some(trace) = trace() {
        trace.is_over.store(true, Ordering::Release);
        let mut writer = lock(&trace.writer);
        trace.write(&mut writer);
        writer.finish(monotonic_ns());
    }
}

/// A call that is noted when it returns.
pub(crate) struct Open {
    trace: &'static Trace,
    began_ns: u64,
    shown: [u64; SHOWN_MAX],
}

/// Returns whether there is no trace. The first call, which begins one, does not know.
#[inline(always)]
pub(crate) fn is_off() -> bool {
    STATE.load(Ordering::Relaxed) == OFF
}

/// Returns those of these arguments that a trace shows; `None` without one, which then costs no more than to find out.
macro_rules! shown {
    ($($arg:ident),*) => {
        if $crate::trace::is_off() {
            None
        } else {
            Some($crate::trace::shown_of([$($crate::trace::number(&$arg)),*]))
        }
    };
}
pub(crate) use shown;

/// Notes that a call begins, with those of its arguments that are shown; `None` without a trace. The first call begins the trace.
#[cold]
pub(crate) fn begin(shown: [u64; SHOWN_MAX]) -> Option<Open> {
    if STATE.load(Ordering::Relaxed) == UNKNOWN {
        start();
    }
    let trace = trace()?;
    HAS_WAITED.set(false);
    Some(Open { trace, began_ns: monotonic_ns(), shown })
}

impl Open {
    /// Notes that the call returns an error, or 0.
    #[cold]
    pub(crate) fn end(self, function: Exported, code: i32) {
        let ended_ns = monotonic_ns();
        let Self { trace, began_ns, shown } = self;
        let stack = HAS_WAITED.take().then(|| return_addresses(FRAMES_MAX).into_boxed_slice());
        let call = thread::call();
        trace.note(Event::Call(Call { function, call, began_ns, ended_ns, code, shown, stack }));
    }
}

impl Trace {
    /// Notes an event of the calling thread.
    fn note(&'static self, event: Event) {
        let pending = self.pending.fetch_add(1, Ordering::Relaxed);
        if pending >= EVENTS_MAX {
            self.pending.fetch_sub(1, Ordering::Relaxed);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut event = Some(event);
        let put = BUFFER.try_with(|buffer| {
            let mut buffer = buffer.borrow_mut();
            let is_ours = buffer.as_ref().is_some_and(|(of, _)| core::ptr::eq(*of, self));
            if !is_ours {
                *buffer = Some((self, self.add_thread()));
            }
            if let Some((_, buffer)) = &*buffer {
                lock(&buffer.events).extend(event.take());
            }
        });
        if put.is_err() {
            lock(&self.late.get_or_init(|| self.add_thread()).events).extend(event);
        }
        if pending == EVENTS_MANY {
            self.many.notify_one();
        }
    }

    fn add_thread(&self) -> Arc<Buffer> {
        // SAFETY: it returns a number and has no conditions.
        let tid = u32::try_from(unsafe { libc::gettid() }).unwrap_or(0);
        let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
        let name = name.trim().to_owned();
        let buffer = Arc::new(Buffer { tid, name, events: Mutex::default() });
        lock(&self.buffers).push(Arc::clone(&buffer));
        buffer
    }

    fn ns(&self, time: Instant) -> u64 {
        let (base, base_ns) = self.base;
        match time.checked_duration_since(base) {
            Some(later) => base_ns + later.as_nanos() as u64,
            None => base_ns.saturating_sub(base.duration_since(time).as_nanos() as u64),
        }
    }

    fn write_until_over(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            let guard = lock(&self.many_lock);
            drop(self.many.wait_timeout(guard, PERIOD));
            let mut writer = lock(&self.writer);
            if !self.is_over.load(Ordering::Acquire) {
                self.write(&mut writer);
            }
        }
    }

    /// Writes the events that are there.
    fn write(&self, writer: &mut Writer) {
        let mut buffers = lock(&self.buffers);
        let mut taken = Vec::new();
        for buffer in buffers.iter() {
            let events = std::mem::take(&mut *lock(&buffer.events));
            if !events.is_empty() {
                self.pending.fetch_sub(events.len(), Ordering::Relaxed);
                taken.push((buffer.tid, buffer.name.clone(), events));
            }
        }
        // Those of threads that have ended are empty now.
        buffers.retain(|buffer| Arc::strong_count(buffer) > 1);
        drop(buffers);
        writer.write(taken, self.lost.swap(0, Ordering::Relaxed));
    }
}

/// Sees what the connection does.
#[derive(Debug)]
struct Seen(&'static Trace);

impl Observer for Seen {
    fn connected(&self, since: Instant) {
        let Self(trace) = self;
        HAS_WAITED.set(true);
        let (began_ns, ended_ns) = (trace.ns(since), monotonic_ns());
        trace.note(Event::Connected { began_ns, ended_ns, call: thread::call() });
    }

    fn requested(&self, request: &Requested) {
        self.0.note(Event::Requested(*request));
    }

    fn sent(&self, len_bytes: u64, last_request: u32, since: Instant) {
        let Self(trace) = self;
        let (began_ns, ended_ns) = (trace.ns(since), monotonic_ns());
        trace.note(Event::Sent { began_ns, ended_ns, len_bytes, last_request });
    }

    fn received(&self, len_bytes: u64) {
        self.0.note(Event::Received { at_ns: monotonic_ns(), len_bytes });
    }

    fn waited(&self, request: u32, len_bytes: u64, since: Instant) {
        let Self(trace) = self;
        HAS_WAITED.set(true);
        let (began_ns, ended_ns) = (trace.ns(since), monotonic_ns());
        trace.note(Event::Waited(Wait { request, len_bytes, began_ns, ended_ns, call: thread::call() }));
    }

    fn told(&self, entries: &[TraceEntry], lost: u32) {
        self.0.note(Event::Told { entries: entries.into(), lost });
    }
}
