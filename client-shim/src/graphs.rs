//! The program's graphs and stream captures.
//!
//! They are kept here and not on the worker: their copies name the program's own memory, which is read and written at each
//! launch; their kernels may be given host memory, whose device address can differ from launch to launch; and their
//! host functions are the program's. A first launch sends what the nodes ask for, one after the other in the order of the stream,
//! in one go: none of it waits, unless the program's own memory or functions take part. Later launches of the same are one
//! message each (see `remote`).

mod remote;

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
use crate::state;
use crate::types::HostFn;
use remote::Remote;

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
    /// Whether the worker can do it whenever it likes, without this process.
    ///
    /// # Errors
    /// Those of doing it.
    fn needs_only_the_worker(&self, session: &Session) -> HipResult<bool> {
        match self {
            Self::Kernel(kernel) => Ok(!kernel.is_timed()),
            Self::Copy(copy) => copy.is_on_device(session),
            Self::Fill(fill) => fill.is_on_device(session),
            Self::Record(_) | Self::Wait(_) | Self::Host(..) => Ok(false),
        }
    }

    /// Does it in the order of a stream, once functions of the program have returned that come before.
    ///
    /// # Errors
    /// Those of the call that does it once.
    fn enqueue(&self, session: &Session, stream: u64) -> HipResult<()> {
        let is_held = session.callbacks().is_waiting(session, stream)
            && match self {
                Self::Kernel(kernel) => KernelTask::clone(kernel).hold(session, stream)?,
                Self::Copy(copy) => copy.hold(session, stream)?,
                Self::Fill(fill) => fill.hold(session, stream)?,
                Self::Record(_) | Self::Wait(_) | Self::Host(..) => false,
            };
        if is_held { Ok(()) } else { self.enqueue_now(session, stream) }
    }

    /// Does it in the order of a stream.
    ///
    /// # Errors
    /// Those of the call that does it once.
    fn enqueue_now(&self, session: &Session, stream: u64) -> HipResult<()> {
        match self {
            Self::Kernel(kernel) => kernel.enqueue(session, stream),
            Self::Copy(copy) => copy.enqueue(session, stream),
            Self::Fill(fill) => fill.enqueue(session, stream),
            Self::Record(event) => event::enqueue_record(session, *event, stream),
            Self::Wait(event) => event::enqueue_wait(session, *event, stream, 0),
            Self::Host(function, data) => hostfn::enqueue(session, stream, *function, *data),
        }
    }
}

/// What the program has of them.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) graphs: Graphs<Task>,
    pub(crate) captures: Captures,
    execs: HashMap<u64, Ready>,
}

/// A ready graph.
#[derive(Clone, Debug)]
struct Ready {
    exec: Arc<Exec<Task>>,
    /// Launches since it was made or changed.
    launches: u32,
    /// What the worker has of it; `Some(None)`: nothing, and it should not be asked again.
    remote: Option<Option<Arc<Remote>>>,
}

impl Tables {
    /// A ready graph.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: there is none of this handle.
    pub(crate) fn exec(&self, exec: Ptr) -> HipResult<&Exec<Task>> {
        self.execs.get(&exec.wire()).map(|ready| &*ready.exec).ok_or(HipError::INVALID_VALUE)
    }

    fn ready(&mut self, exec: Ptr) -> HipResult<&mut Ready> {
        self.execs.get_mut(&exec.wire()).ok_or(HipError::INVALID_VALUE)
    }

    /// Adds a ready graph; its handle.
    pub(crate) fn add_exec(&mut self, exec: Exec<Task>) -> Ptr {
        let handle = self.graphs.new_handle();
        self.execs.insert(handle, Ready { exec: Arc::new(exec), launches: 0, remote: None });
        Ptr::from_wire(handle)
    }
}

/// The graphs of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionGraphs {
    tables: Mutex<Tables>,
    /// Whether a capture has to be thought of at all.
    has_captures: AtomicBool,
    /// The stream that the worker's graphs are recorded on. Who has the lock records.
    recorder: Mutex<Option<u64>>,
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

    /// Checks a stream that is asked about: the legacy null stream waits for blocking streams, and so cannot be while they capture.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureImplicit`.
    pub(crate) fn check_legacy(&self, stream: u64) -> HipResult<()> {
        if stream != 0 || !self.has_captures() {
            return Ok(());
        }
        self.with(|tables| tables.captures.check_legacy())
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
        if !self.has_captures() {
            return Ok(());
        }
        let mode = Mode::try_from(state::capture_mode())?;
        self.with(|tables| tables.captures.check_safe(thread(), mode))
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
    pub(crate) fn launch(&self, session: &Session, exec: Ptr, stream: Stream) -> HipResult<()> {
        let wire = session.stream(stream)?;
        let ready = self.with(|tables| {
            let ready = tables.ready(exec)?;
            ready.launches = ready.launches.saturating_add(1);
            HipResult::Ok(ready.clone())
        })?;
        let is_captured = self.status(wire) != Status::None;
        if ready.launches > 1
            && !is_captured
            && let Some(remote) = self.remote(session, exec, wire)?
        {
            return remote.launch(session, &ready.exec, wire);
        }
        for task in ready.exec.steps().iter().filter_map(|step| step.work()) {
            if !self.record(wire, || task.clone())? {
                task.enqueue(session, wire)?;
            }
        }
        Ok(())
    }

    /// What the worker has of a ready graph; it gets it now if it has not. Where the worker refuses it, for a limit of graphs for
    /// example, everything stays here.
    fn remote(&self, session: &Session, exec: Ptr, stream: u64) -> HipResult<Option<Arc<Remote>>> {
        let known = |ready: Ready| ready.remote.map(|remote| (ready.exec, remote));
        if let Some((_, remote)) = self.with(|tables| tables.ready(exec).cloned()).map(known)? {
            return Ok(remote);
        }
        let mut recorder = lock(&self.recorder);
        let Ready { exec: steps, remote: None, .. } = self.with(|tables| tables.ready(exec).cloned())? else {
            // Another thread was first; its next launch finds it.
            return Ok(None);
        };
        let stream_there = match *recorder {
            Some(stream) => stream,
            None => *recorder.insert(remote::new_recorder(session)?),
        };
        let given = Remote::give(session, &steps, stream_there, stream);
        let remote = given.inspect_err(|error| tracing::debug!(%error, "a graph is launched node by node"));
        let remote = remote.unwrap_or(None).map(Arc::new);
        let is_kept = self.with(|tables| {
            let ready = tables.ready(exec).ok().filter(|ready| Arc::ptr_eq(&ready.exec, &steps));
            ready.map(|ready| ready.remote = Some(remote.clone())).is_some()
        });
        if !is_kept {
            // It was changed meanwhile.
            remote.iter().try_for_each(|remote| remote.release(session))?;
            return Ok(None);
        }
        Ok(remote)
    }

    /// Brings a ready graph to where it is launched.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no ready graph; a lost connection.
    pub(crate) fn upload(&self, session: &Session, exec: Ptr, stream: Stream) -> HipResult<()> {
        let wire = session.stream(stream)?;
        self.remote(session, exec, wire).map(drop)
    }

    /// Changes a ready graph.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no ready graph; those of the change.
    pub(crate) fn change_exec<T>(
        &self,
        session: &Session,
        exec: Ptr,
        change: impl FnOnce(&mut Exec<Task>) -> HipResult<T>,
    ) -> HipResult<T> {
        let (old, result) = self.with(|tables| {
            let ready = tables.ready(exec)?;
            let result = change(Arc::make_mut(&mut ready.exec));
            ready.launches = 0;
            HipResult::Ok((ready.remote.take(), result))
        })?;
        old.flatten().iter().try_for_each(|remote| remote.release(session))?;
        result
    }

    /// Destroys a ready graph.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no ready graph; a lost connection.
    pub(crate) fn destroy_exec(&self, session: &Session, exec: Ptr) -> HipResult<()> {
        let gone = self.with(|tables| tables.execs.remove(&exec.wire())).ok_or(HipError::INVALID_VALUE)?;
        gone.remote.flatten().iter().try_for_each(|remote| remote.release(session))
    }
}
