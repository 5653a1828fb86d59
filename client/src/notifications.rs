//! What the worker says without being asked: notifications, and who is told of them.

use std::fmt;
use std::sync::OnceLock;

use hipr_proto::op::{MemInfoChanged, MemRecall, RequestFailed};
use hipr_proto::{HipError, Op, Opcode, Wire};

use crate::free_memory::FreeMemory;

/// A request that was not answered and failed. The next call that waits returns the error; this says where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Number of the request among those of the connection, from 1 on; modulo 2^32.
    pub request: u32,
    /// The operation.
    pub op: Opcode,
    /// The error.
    pub error: HipError,
    /// The handle of the kernel that it names; 0 if it names none.
    pub function: u64,
    /// The handle of the stream that it names; 0 if it names none.
    pub stream: u64,
    /// The fields of the request, in the worker's words.
    pub text: String,
}

impl fmt::Display for Failure {
    /// Writes the function of HIP, the error, and what was asked for.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.op.info().map_or("", |info| info.hip_function);
        match function {
            "" => write!(f, "{}", self.op)?,
            name => f.write_str(name)?,
        }
        write!(f, " failed on the worker with {} (request {}", self.error, self.request)?;
        if !self.text.is_empty() {
            // A worker's text may have anything in it.
            write!(f, ": {}", self.text.escape_debug())?;
        }
        f.write_str(")")
    }
}

type OnFailure = Box<dyn Fn(&Failure) + Send + Sync>;
type OnRecall = Box<dyn Fn(u64) + Send + Sync>;

/// What notifications are passed to. Functions run on the thread that reads, so they wait for nothing.
#[derive(Default)]
pub(crate) struct Listeners {
    failure: OnceLock<OnFailure>,
    recall: OnceLock<OnRecall>,
    /// What is known of changes of free memory.
    pub(crate) memory: FreeMemory,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

impl Listeners {
    /// Sets the function that is told of failures; has no effect the second time.
    pub(crate) fn on_failure(&self, listener: OnFailure) {
        let _ = self.failure.set(listener);
    }

    /// Sets the function that is told of recalls; has no effect the second time.
    pub(crate) fn on_recall(&self, listener: OnRecall) {
        let _ = self.recall.set(listener);
    }

    /// Passes a notification on. One that is not known here, or not whole, is ignored.
    pub(crate) fn hear(&self, op: Opcode, mut fixed: &[u8], tail: &[u8]) {
        if op == RequestFailed::OPCODE
            && let Ok(failed) = RequestFailed::take(&mut fixed)
        {
            let failure = Failure {
                request: failed.request,
                op: Opcode(u16::try_from(failed.operation).unwrap_or(u16::MAX)),
                error: HipError(failed.error_code),
                function: failed.function,
                stream: failed.stream,
                text: String::from_utf8_lossy(tail).into_owned(),
            };
            // It may have been memory; and who asks for free memory is told the error.
            self.memory.change();
            match self.failure.get() {
                Some(listener) => listener(&failure),
                None => tracing::error!("{failure}; the next call that waits returns the error"),
            }
        }
        if op == MemRecall::OPCODE
            && let (Ok(recall), Some(listener)) = (MemRecall::take(&mut fixed), self.recall.get())
        {
            listener(recall.number);
        }
        if op == MemInfoChanged::OPCODE
            && let Ok(changed) = MemInfoChanged::take(&mut fixed)
        {
            self.memory.end(changed.number);
        }
    }
}
