//! The program's graphs and stream captures.
//!
//! They are kept here and not on the worker: their copies name the program's own memory, which is read and written at each
//! launch; their kernels may be given host memory, whose device address can differ from launch to launch; and their
//! host functions are the program's. A launch sends what the nodes ask for, one after the other in the order of the stream,
//! in one go: none of it waits, unless the program's own memory or functions take part.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hipr_graph::{Captures, Exec, Graphs, Mode, Status, Work, node_type};
use hipr_proto::{HipError, HipResult};

use crate::body::copy::CopyTask;
use crate::body::fill::FillTask;
use crate::body::launch::KernelTask;
use crate::body::{event, hostfn};
use crate::convert::{Event, Ptr, Stream};
use crate::session::{Session, lock};
use crate::types::HostFn;

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Task {
    /// A launch.
    Kernel(Arc<KernelTask>),
    /// A copy.
    Copy(CopyTask),
    /// A fill.
    Fill(FillTask),
    /// The recording of an event.
    Record(Event),
    /// A wait for an event.
    Wait(Event),
    /// A function of the program's, and what it is given.
    Host(HostFn, Ptr),
}

impl Work for Task {
    fn node_type(&self) -> i32 {
        match self {
            Self::Kernel(_) => node_type::KERNEL,
            Self::Copy(_) => node_type::MEMCPY,
            Self::Fill(_) => node_type::MEMSET,
            Self::Record(_) => node_type::EVENT_RECORD,
            Self::Wait(_) => node_type::WAIT_EVENT,
            Self::Host(..) => node_type::HOST,
        }
    }
}

impl Task {
    /// Does it, in the order of a stream.
    ///
    /// # Errors
    /// Those of the call that does it once.
    fn enqueue(&self, session: &'static Session, stream: Stream) -> HipResult<()> {
        match self {
            Self::Kernel(kernel) => kernel.enqueue(session, session.stream(stream)?),
            Self::Copy(copy) => copy.enqueue(session, session.stream(stream)?),
            Self::Fill(fill) => fill.enqueue(session, session.stream(stream)?),
            Self::Record(event) => event::enqueue_record(session, *event, session.stream(stream)?),
            Self::Wait(event) => event::enqueue_wait(session, *event, session.stream(stream)?),
            Self::Host(function, data) => hostfn::enqueue(session, stream, *function, *data),
        }
    }
}

/// What the program has of them.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) graphs: Graphs<Task>,
    pub(crate) captures: Captures,
    pub(crate) execs: HashMap<u64, Arc<Exec<Task>>>,
}

impl Tables {
    /// A ready graph.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: there is none of this handle.
    pub(crate) fn exec(&mut self, exec: Ptr) -> HipResult<&mut Arc<Exec<Task>>> {
        self.execs.get_mut(&exec.wire()).ok_or(HipError::INVALID_VALUE)
    }
}

/// The graphs of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionGraphs {
    tables: Mutex<Tables>,
    /// Whether a capture has to be thought of at all.
    has_captures: AtomicBool,
}

/// A number of the calling thread.
fn thread() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static THREAD: Cell<u64> = const { Cell::new(0) };
    }
    if THREAD.get() == 0 {
        THREAD.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    THREAD.get()
}

impl SessionGraphs {
    /// Does something with the tables. No other lock of the session may be taken meanwhile.
    pub(crate) fn with<T>(&self, body: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = lock(&self.tables);
        let result = body(&mut tables);
        self.has_captures.store(!tables.captures.is_empty(), Ordering::Release);
        result
    }

    /// Whether a capture goes on anywhere.
    fn has_captures(&self) -> bool {
        self.has_captures.load(Ordering::Acquire)
    }

    /// Records `task` if the stream captures. `false`: it does not, and the task is to be done now.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub(crate) fn record(&self, stream: u64, task: impl FnOnce() -> Task) -> HipResult<bool> {
        if !self.has_captures() {
            return Ok(false);
        }
        self.with(|tables| {
            if stream == 0 {
                tables.captures.check_legacy()?;
            }
            if !tables.captures.is_capturing(stream) {
                return Ok(false);
            }
            tables.captures.record_work(&mut tables.graphs, stream, Some(task())).map(|_| true)
        })
    }

    /// Checks a stream that is waited for or given what cannot be recorded.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureUnsupported`, and the capture is spoilt; `hipErrorStreamCaptureImplicit`.
    pub(crate) fn check_stream(&self, stream: u64) -> HipResult<()> {
        if !self.has_captures() {
            return Ok(());
        }
        self.with(|tables| {
            if stream == 0 {
                tables.captures.check_legacy()?;
            }
            tables.captures.check_idle(stream)
        })
    }

    /// Checks an event that is waited for or asked for.
    ///
    /// # Errors
    /// `hipErrorCapturedEvent`, and the capture is spoilt.
    pub(crate) fn check_event(&self, event: Event) -> HipResult<()> {
        if self.has_captures() {
            self.with(|tables| tables.captures.check_event(event.wire()))
        } else {
            Ok(())
        }
    }

    /// Checks a call that a capture forbids unless it is relaxed.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureUnsupported`.
    pub(crate) fn check_safe(&self) -> HipResult<()> {
        if self.has_captures() { self.with(|tables| tables.captures.check_safe(thread())) } else { Ok(()) }
    }

    /// An event is recorded. `true`: in a capture, and nothing is to be done now.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub(crate) fn record_event(&self, event: Event, stream: u64) -> HipResult<bool> {
        if !self.has_captures() {
            return Ok(false);
        }
        self.with(|tables| {
            if stream == 0 {
                tables.captures.check_legacy()?;
            }
            tables.captures.record_event(event.wire(), stream)
        })
    }

    /// A stream is to wait for an event. `true`: in a capture, and nothing is to be done now.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub(crate) fn wait_event(&self, stream: u64, event: Event, is_blocking: bool) -> HipResult<bool> {
        if !self.has_captures() {
            return Ok(false);
        }
        self.with(|tables| tables.captures.wait_event(stream, event.wire(), is_blocking))
    }

    /// A stream is destroyed.
    pub(crate) fn forget_stream(&self, stream: u64) {
        if self.has_captures() {
            self.with(|tables| tables.captures.forget_stream(&mut tables.graphs, stream));
        }
    }

    /// An event is destroyed.
    pub(crate) fn forget_event(&self, event: Event) {
        if self.has_captures() {
            self.with(|tables| tables.captures.forget_event(event.wire()));
        }
    }

    /// Starts a capture, into a graph that is there or a new one.
    ///
    /// # Errors
    /// What HIP says of this stream and graph.
    pub(crate) fn begin(
        &self,
        stream: u64,
        is_blocking: bool,
        mode: i32,
        given: Option<(u64, &[u64])>,
    ) -> HipResult<()> {
        let mode = Mode::try_from(mode)?;
        self.with(|tables| {
            tables.captures.begin(&mut tables.graphs, stream, is_blocking, mode, thread(), given)
        })
    }

    /// Ends a capture and gives its graph.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub(crate) fn end(&self, stream: u64) -> HipResult<u64> {
        self.with(|tables| tables.captures.end(&mut tables.graphs, stream, thread()))
    }

    /// Whether a stream captures.
    pub(crate) fn status(&self, stream: u64) -> Status {
        if self.has_captures() { self.with(|tables| tables.captures.status(stream)) } else { Status::None }
    }

    /// Launches a ready graph, or records its nodes if the stream captures. The first error ends it.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no ready graph; those of its nodes.
    pub(crate) fn launch(&self, session: &'static Session, exec: Ptr, stream: Stream) -> HipResult<()> {
        let wire = session.stream(stream)?;
        let exec = self.with(|tables| tables.exec(exec).cloned())?;
        for task in exec.steps().iter().filter_map(|step| step.work()) {
            if !self.record(wire, || task.clone())? {
                task.enqueue(session, stream)?;
            }
        }
        Ok(())
    }
}
