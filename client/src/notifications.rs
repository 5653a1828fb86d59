//! What the worker says without being asked: notifications, and who is told of them.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use hipr_proto::op::{
    ForOp, Handle, MemInfoChanged, MemRecall, Printed, RequestFailed, TimesTold, TraceEntry, Traced,
    VariablesTold, WatchOver, WorkFailed, with_op,
};
use hipr_proto::{HipError, Op, Opcode, Wire};

use crate::callers::Callers;
use crate::free_memory::FreeMemory;
use crate::observer::Observer;
use crate::times::Times;
use crate::unanswered::Unanswered;
use crate::variables::Variables;

/// Maximum number of characters of a worker's text that are shown, and of a kernel's name.
const TEXT_MAX_CHARS: usize = 512;
const KERNEL_MAX_CHARS: usize = 256;

/// What has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The request was refused.
    Request,
    /// What the request has launched.
    Work,
    /// One of so many launches, at most, of which the request is the last.
    OneOf(u32),
    /// Work of which nothing is known.
    Unknown,
}

/// An error that a call returns which waits, but does not come from that call; this says where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Number of the request among those of the connection, from 1 on; modulo 2^32.
    pub request: u32,
    /// The operation.
    pub op: Opcode,
    /// What has failed.
    pub what: Failed,
    /// Who has made the request, if callers [are noted](crate::Connection::note_callers) and it was not too long ago.
    pub caller: Option<u64>,
    /// The error.
    pub error: HipError,
    /// The handle of the kernel that it names; 0 if it names none.
    pub function: u64,
    /// The handle of the stream that it names; 0 if it names none.
    pub stream: u64,
    /// The name of the kernel, if the worker says it.
    pub kernel: String,
    /// The fields of a refused request, or what happened to the work, in the worker's words.
    pub text: String,
}

/// Says whether an operation names a stream.
struct NamesStream;

impl ForOp for NamesStream {
    type Out = bool;

    fn call<O: Op>(self) -> bool {
        let (mut zero, mut names) = (O::ZERO, false);
        zero.handles(|kind, _| names |= kind == Handle::Stream);
        names
    }
}

impl Failure {
    /// Returns one line that says what has failed: the function of HIP, `call` if it is known, with its number among the calls of the
    /// program; the error; the kernel, with this name if the worker has said none; the stream, and what the worker says.
    pub fn line(&self, call: Option<(&str, u64)>, kernel: Option<&str>) -> String {
        let hip_function = self.op.info().map(|info| info.hip_function).filter(|name| !name.is_empty());
        let function = match (call, hip_function) {
            (Some((name, number)), _) => format!("{name} (call {number})"),
            (None, Some(name)) => name.to_owned(),
            (None, None) => self.op.to_string(),
        };
        let error = self.error;
        let mut line = match self.what {
            Failed::Request => format!("{function} failed on the worker with {error}"),
            Failed::Work => format!("the work of {function} failed with {error}"),
            Failed::OneOf(most) => {
                format!(
                    "work failed with {error}: one of at most {most} launches, the last of them by {function}"
                )
            }
            Failed::Unknown => {
                return format!("work failed with {error}; nothing is known of where that comes from");
            }
        };
        let kernel = kernel.filter(|_| self.kernel.is_empty()).unwrap_or(&self.kernel);
        let mut parts = Vec::new();
        if !kernel.is_empty() {
            parts.push(format!("kernel {}", shown(kernel, KERNEL_MAX_CHARS)));
        }
        match self.stream {
            0 if with_op(self.op, NamesStream) == Some(true) => parts.push("the null stream".to_owned()),
            0 => {}
            stream => parts.push(format!("stream {stream:#x}")),
        }
        parts.push(match self.text.as_str() {
            "" => format!("request {}", self.request),
            text => format!("request {}: {}", self.request, shown(text, TEXT_MAX_CHARS)),
        });
        line.push_str(&format!(" ({})", parts.join(", ")));
        line
    }
}

/// Returns a worker's text, which may have anything in it and any length, to be shown.
fn shown(text: &str, max_chars: usize) -> String {
    text.chars().take(max_chars).flat_map(char::escape_debug).collect()
}

impl fmt::Display for Failure {
    /// Writes the function of HIP, the error, and what was asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(None, None))
    }
}

/// Writes what kernels print to this process's streams; one that is closed loses it.
fn print(is_error: bool, text: &[u8]) {
    let _ = if is_error { io::stderr().write_all(text) } else { io::stdout().write_all(text) };
}

fn opcode(operation: u32) -> Opcode {
    Opcode(u16::try_from(operation).unwrap_or(u16::MAX))
}

type OnFailure = Box<dyn Fn(&Failure) + Send + Sync>;
type OnRecall = Box<dyn Fn(u64) + Send + Sync>;
type OnPrinted = Box<dyn Fn(bool, &[u8]) + Send + Sync>;
type OnWatchOver = Box<dyn Fn(u64, Option<HipError>) + Send + Sync>;

/// What notifications are passed to. Functions run on the thread that reads, so they wait for nothing.
#[derive(Default)]
pub(crate) struct Listeners {
    failure: OnceLock<OnFailure>,
    recall: OnceLock<OnRecall>,
    watch_over: OnceLock<OnWatchOver>,
    printed: OnceLock<OnPrinted>,
    /// What is known of changes of free memory.
    pub(crate) memory: FreeMemory,
    /// What is known of the variables of modules.
    pub(crate) variables: Variables,
    /// What is known of the times between events.
    pub(crate) times: Times,
    /// Which requests may still have left an error.
    pub(crate) unanswered: Unanswered,
    /// Who has made which request.
    pub(crate) callers: Callers,
    observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

impl Listeners {
    /// Returns what no function listens to yet.
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer, ..Self::default() }
    }

    /// Sets the function that is told of failures; has no effect the second time.
    pub(crate) fn on_failure(&self, listener: OnFailure) {
        let _ = self.failure.set(listener);
    }

    /// Sets the function that is told of recalls; has no effect the second time.
    pub(crate) fn on_recall(&self, listener: OnRecall) {
        let _ = self.recall.set(listener);
    }

    /// Sets the function that is told of ends of watches; has no effect the second time.
    pub(crate) fn on_watch_over(&self, listener: OnWatchOver) {
        let _ = self.watch_over.set(listener);
    }

    /// Sets the function that is passed what kernels print; has no effect the second time.
    pub(crate) fn on_printed(&self, listener: OnPrinted) {
        let _ = self.printed.set(listener);
    }

    fn tell(&self, failure: &Failure) {
        self.unanswered.heard_failure();
        match self.failure.get() {
            Some(listener) => listener(failure),
            None => tracing::error!("{failure}; a call that waits returns the error"),
        }
    }

    /// Passes a notification on. One that is not known here, or not whole, is ignored.
    pub(crate) fn hear(&self, op: Opcode, mut fixed: &[u8], tail: &[u8]) {
        if op == RequestFailed::OPCODE
            && let Ok(failed) = RequestFailed::take(&mut fixed)
        {
            // It may have been memory; and who asks for free memory is told the error.
            self.memory.change();
            self.tell(&Failure {
                request: failed.request,
                op: opcode(failed.operation),
                what: Failed::Request,
                caller: self.callers.find(failed.request),
                error: HipError(failed.error_code),
                function: failed.function,
                stream: failed.stream,
                kernel: String::new(),
                text: String::from_utf8_lossy(tail).into_owned(),
            });
        }
        if op == WorkFailed::OPCODE
            && let Ok(failed) = WorkFailed::take(&mut fixed)
            && let Some((kernel, text)) = tail.split_at_checked(failed.kernel_length as usize)
        {
            self.tell(&Failure {
                request: failed.request,
                op: opcode(failed.operation),
                what: match failed.launches {
                    0 => Failed::Unknown,
                    1 => Failed::Work,
                    launches => Failed::OneOf(launches),
                },
                caller: self.callers.find(failed.request),
                error: HipError(failed.error_code),
                function: failed.function,
                stream: failed.stream,
                kernel: String::from_utf8_lossy(kernel).into_owned(),
                text: String::from_utf8_lossy(text).into_owned(),
            });
        }
        if op == Printed::OPCODE
            && let Ok(printed) = Printed::take(&mut fixed)
        {
            match self.printed.get() {
                Some(listener) => listener(printed.is_error != 0, tail),
                None => print(printed.is_error != 0, tail),
            }
        }
        if op == MemRecall::OPCODE
            && let (Ok(recall), Some(listener)) = (MemRecall::take(&mut fixed), self.recall.get())
        {
            listener(recall.number);
        }
        if op == WatchOver::OPCODE
            && let (Ok(over), Some(listener)) = (WatchOver::take(&mut fixed), self.watch_over.get())
        {
            let error = (over.error_code != 0).then_some(HipError(over.error_code));
            listener(over.number, error);
        }
        if op == VariablesTold::OPCODE
            && let Ok(told) = VariablesTold::take(&mut fixed)
        {
            self.variables.learn(told, tail);
        }
        if op == TimesTold::OPCODE
            && let Ok(told) = TimesTold::take(&mut fixed)
        {
            self.times.learn(told, tail);
        }
        if op == Traced::OPCODE
            && let (Ok(traced), Some(observer)) = (Traced::take(&mut fixed), &self.observer)
        {
            let mut left = tail;
            let entries = (0..traced.count).map_while(|_| TraceEntry::take(&mut left).ok());
            observer.told(&entries.collect::<Vec<_>>(), traced.lost);
        }
        if op == MemInfoChanged::OPCODE
            && let Ok(changed) = MemInfoChanged::take(&mut fixed)
        {
            self.memory.end(changed.number);
        }
    }
}
