//! Stream captures, which record the work of streams into a graph.
//!
//! A stream that captures records what it is given as nodes of a graph; each node depends on the one before it. A stream that
//! waits for an event that was recorded in a capture joins it, and its next node depends on the work before the record.
//! The capture ends where it began, and everything that joined must have been waited for there.

use std::collections::{BTreeSet, HashMap};

use hipr_proto::{HipError, HipResult};

use crate::{Graphs, Work};

/// Which other calls are allowed while a stream is being captured (HIP API: hipStreamCaptureMode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No thread may call what could disturb the capture.
    Global,
    /// The capturing thread may not call what could disturb the capture.
    ThreadLocal,
    /// All calls are allowed.
    Relaxed,
}

impl TryFrom<i32> for Mode {
    type Error = HipError;

    fn try_from(mode: i32) -> HipResult<Self> {
        match mode {
            0 => Ok(Self::Global),
            1 => Ok(Self::ThreadLocal),
            2 => Ok(Self::Relaxed),
            _ => Err(HipError::INVALID_VALUE),
        }
    }
}

/// The capture status of a stream (HIP API: hipStreamCaptureStatus).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The stream is not being captured.
    #[default]
    None = 0,
    /// The stream is being captured.
    Active = 1,
    /// The stream is being captured, but the capture failed and will produce no graph.
    Invalidated = 2,
}

/// The capture of a stream (HIP API: hipStreamGetCaptureInfo_v2).
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    /// [`Status::Active`] or [`Status::Invalidated`].
    pub status: Status,
    /// Number that identifies the capture.
    pub id: u64,
    /// The graph that nodes are added to.
    pub graph: u64,
    /// The nodes that the stream's next node depends on.
    pub dependencies: &'a BTreeSet<u64>,
}

#[derive(Debug)]
struct Capture {
    graph: u64,
    origin: u64,
    mode: Mode,
    /// The thread that began the capture, as a number.
    thread: u64,
    is_valid: bool,
    /// Whether the graph existed before the capture, so that it is kept when the capture fails.
    is_given: bool,
}

#[derive(Debug)]
struct Branch {
    capture: u64,
    dependencies: BTreeSet<u64>,
    /// Whether the stream and the legacy null stream wait for each other.
    is_blocking: bool,
}

/// The captured streams of one client.
#[derive(Debug, Default)]
pub struct Captures {
    captures: HashMap<u64, Capture>,
    branches: HashMap<u64, Branch>,
    /// Events that were last recorded in a capture, with the capture and the nodes before them.
    events: HashMap<u64, (u64, BTreeSet<u64>)>,
    last: u64,
}

impl Captures {
    /// Returns whether no stream is being captured and no event was last recorded in a capture, so that the other methods
    /// need not be called.
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.events.is_empty()
    }

    /// Returns whether a stream is being captured.
    pub fn is_capturing(&self, stream: u64) -> bool {
        self.branches.contains_key(&stream)
    }

    /// Begins a capture into a new graph, or into the graph `given` behind the given nodes (HIP API: hipStreamBeginCapture,
    /// hipStreamBeginCaptureToGraph). `thread` is the calling thread.
    ///
    /// # Errors
    /// `ILLEGAL_STATE`: the stream captures. `INVALID_VALUE`: `given` is no graph, or has no such nodes.
    pub fn begin<W: Work>(
        &mut self,
        graphs: &mut Graphs<W>,
        stream: u64,
        is_blocking: bool,
        mode: Mode,
        thread: u64,
        given: Option<(u64, &[u64])>,
    ) -> HipResult<()> {
        if self.is_capturing(stream) {
            return Err(HipError::ILLEGAL_STATE);
        }
        let (graph, dependencies) = match given {
            Some((graph, nodes)) => (graph, Self::checked(graphs, graph, nodes)?),
            None => (graphs.create(), BTreeSet::new()),
        };
        self.last += 1;
        let id = self.last;
        let is_given = given.is_some();
        let capture = Capture { graph, origin: stream, mode, thread, is_valid: true, is_given };
        self.captures.insert(id, capture);
        self.branches.insert(stream, Branch { capture: id, dependencies, is_blocking });
        Ok(())
    }

    fn checked<W: Work>(graphs: &Graphs<W>, graph: u64, nodes: &[u64]) -> HipResult<BTreeSet<u64>> {
        let known: BTreeSet<u64> = graphs.nodes(graph)?.collect();
        let wanted: BTreeSet<u64> = nodes.iter().copied().collect();
        if wanted.is_subset(&known) { Ok(wanted) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Returns the capture of a stream.
    pub fn info(&self, stream: u64) -> Option<Info<'_>> {
        let branch = self.branches.get(&stream)?;
        let capture = self.captures.get(&branch.capture)?;
        let status = if capture.is_valid { Status::Active } else { Status::Invalidated };
        let Branch { capture: id, dependencies, .. } = branch;
        Some(Info { status, id: *id, graph: capture.graph, dependencies })
    }

    /// Returns the capture status of a stream.
    pub fn status(&self, stream: u64) -> Status {
        self.info(stream).map_or(Status::None, |info| info.status)
    }

    /// Returns the graph and the dependencies of the stream's next node.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_INVALIDATED`; `ILLEGAL_STATE` for a stream that does not capture.
    pub fn next(&self, stream: u64) -> HipResult<(u64, Vec<u64>)> {
        let info = self.info(stream).ok_or(HipError::ILLEGAL_STATE)?;
        if info.status == Status::Invalidated {
            return Err(HipError::STREAM_CAPTURE_INVALIDATED);
        }
        Ok((info.graph, info.dependencies.iter().copied().collect()))
    }

    /// Makes the stream's next node depend on `node`, which was created from the result of [`next`](Self::next).
    pub fn advance(&mut self, stream: u64, node: u64) {
        self.branches.entry(stream).and_modify(|branch| branch.dependencies = BTreeSet::from([node]));
    }

    /// Adds work of a captured stream to its graph; `None` adds an empty node.
    ///
    /// # Errors
    /// Those of [`next`](Self::next).
    pub fn record_work<W: Work>(
        &mut self,
        graphs: &mut Graphs<W>,
        stream: u64,
        work: Option<W>,
    ) -> HipResult<u64> {
        let (graph, dependencies) = self.next(stream)?;
        let node = graphs.add(graph, &dependencies, work)?;
        self.advance(stream, node);
        Ok(node)
    }

    /// Replaces or extends the nodes that the stream's next node depends on (HIP API: hipStreamUpdateCaptureDependencies).
    ///
    /// # Errors
    /// Those of [`next`](Self::next); `INVALID_VALUE` for nodes that are not in the graph.
    pub fn update_dependencies<W: Work>(
        &mut self,
        graphs: &Graphs<W>,
        stream: u64,
        nodes: &[u64],
        adds: bool,
    ) -> HipResult<()> {
        let (graph, _) = self.next(stream)?;
        let nodes = Self::checked(graphs, graph, nodes)?;
        let branch = self.branches.get_mut(&stream).ok_or(HipError::ILLEGAL_STATE)?;
        if adds {
            branch.dependencies.extend(nodes);
        } else {
            branch.dependencies = nodes;
        }
        Ok(())
    }

    /// Records an event in a stream. Returns true if the stream is being captured, so that nothing else has to be done.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_INVALIDATED`.
    pub fn record_event(&mut self, event: u64, stream: u64) -> HipResult<bool> {
        if !self.is_capturing(stream) {
            self.events.remove(&event);
            return Ok(false);
        }
        let (_, dependencies) = self.next(stream)?;
        let capture = self.branches.get(&stream).map_or(0, |branch| branch.capture);
        self.events.insert(event, (capture, dependencies.into_iter().collect()));
        Ok(true)
    }

    /// Makes a stream wait for an event. Returns true if the event belongs to a capture, which the stream has then joined,
    /// so that nothing else has to be done. `is_blocking` says whether the stream and the legacy null stream wait for each
    /// other.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_ISOLATION`: a capturing stream and an event from outside. `STREAM_CAPTURE_MERGE`: an event of another
    /// capture. Both spoil what captures here. `STREAM_CAPTURE_INVALIDATED`.
    pub fn wait_event(&mut self, stream: u64, event: u64, is_blocking: bool) -> HipResult<bool> {
        let own = self.branches.get(&stream).map(|branch| branch.capture);
        match (self.events.get(&event).cloned(), own) {
            (None, None) => return Ok(false),
            (None, Some(_)) => {
                self.next(stream)?;
                self.invalidate(stream);
                return Err(HipError::STREAM_CAPTURE_ISOLATION);
            }
            (Some((capture, _)), Some(own)) if own != capture => {
                self.spoil(capture);
                self.spoil(own);
                return Err(HipError::STREAM_CAPTURE_MERGE);
            }
            (Some((capture, dependencies)), _) => {
                if self.captures.get(&capture).is_none_or(|capture| !capture.is_valid) {
                    return Err(HipError::STREAM_CAPTURE_INVALIDATED);
                }
                let new = || Branch { capture, dependencies: BTreeSet::new(), is_blocking };
                self.branches.entry(stream).or_insert_with(new).dependencies.extend(dependencies);
            }
        }
        Ok(true)
    }

    /// Returns whether an event was last recorded in a capture that has not ended, so that the host can neither wait for it
    /// nor query it.
    pub fn is_captured(&self, event: u64) -> bool {
        self.events.contains_key(&event)
    }

    /// Checks that the host may wait for or query an event. If the event was last recorded in a capture, this invalidates
    /// the capture.
    ///
    /// # Errors
    /// `CAPTURED_EVENT`.
    pub fn check_event(&mut self, event: u64) -> HipResult<()> {
        match self.events.get(&event).map(|(capture, _)| *capture) {
            None => Ok(()),
            Some(capture) => {
                self.spoil(capture);
                Err(HipError::CAPTURED_EVENT)
            }
        }
    }

    /// Checks that the host may wait for or query a stream, or give it work that cannot be captured. If the stream is being
    /// captured, this invalidates the capture.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`.
    pub fn check_idle(&mut self, stream: u64) -> HipResult<()> {
        if !self.is_capturing(stream) {
            return Ok(());
        }
        self.invalidate(stream);
        Err(HipError::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Checks that work may be put on the legacy null stream, which waits for blocking streams. It fails if one of them is
    /// being captured.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_IMPLICIT`.
    pub fn check_legacy(&self) -> HipResult<()> {
        if self.branches.values().any(|branch| branch.is_blocking) {
            Err(HipError::STREAM_CAPTURE_IMPLICIT)
        } else {
            Ok(())
        }
    }

    /// Checks that a call is allowed that only relaxed captures permit. `thread` is the calling thread and `mode` its mode
    /// (HIP API: hipThreadExchangeStreamCaptureMode): `Global`, the default, respects the captures of all threads,
    /// `ThreadLocal` only its own, `Relaxed` none.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`.
    pub fn check_safe(&self, thread: u64, mode: Mode) -> HipResult<()> {
        if self.forbidding(thread, mode).is_empty() {
            Ok(())
        } else {
            Err(HipError::STREAM_CAPTURE_UNSUPPORTED)
        }
    }

    /// Does the same, and invalidates the captures that forbid the call: those of the calling thread if it has any, else all.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`.
    pub fn refuse_unsafe(&mut self, thread: u64, mode: Mode) -> HipResult<()> {
        let forbidding = self.forbidding(thread, mode);
        self.refuse(forbidding, HipError::STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Refuses a call that no capture permits, with this error, and invalidates all captures.
    ///
    /// # Errors
    /// `error`, if any stream is being captured.
    pub fn refuse_all(&mut self, error: HipError) -> HipResult<()> {
        self.refuse(self.captures.keys().copied().collect(), error)
    }

    /// Does what [`check_legacy`](Self::check_legacy) does, and invalidates the captures of blocking streams.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_IMPLICIT`.
    pub fn refuse_legacy(&mut self) -> HipResult<()> {
        let blocking = self.branches.values().filter(|branch| branch.is_blocking);
        self.refuse(blocking.map(|branch| branch.capture).collect(), HipError::STREAM_CAPTURE_IMPLICIT)
    }

    fn refuse(&mut self, captures: Vec<u64>, error: HipError) -> HipResult<()> {
        if captures.is_empty() {
            return Ok(());
        }
        captures.into_iter().for_each(|capture| self.spoil(capture));
        Err(error)
    }

    /// Returns the captures that forbid a call.
    fn forbidding(&self, thread: u64, mode: Mode) -> Vec<u64> {
        let those = |forbids: &dyn Fn(&Capture) -> bool| {
            let captures = self.captures.iter().filter(|(_, capture)| forbids(capture));
            captures.map(|(id, _)| *id).collect::<Vec<_>>()
        };
        if mode == Mode::Relaxed {
            return Vec::new();
        }
        let own = those(&|capture| capture.thread == thread && capture.mode != Mode::Relaxed);
        if own.is_empty() && mode == Mode::Global {
            return those(&|capture| capture.mode == Mode::Global);
        }
        own
    }

    /// Invalidates the capture of a stream: it will produce no graph.
    pub fn invalidate(&mut self, stream: u64) {
        if let Some(capture) = self.branches.get(&stream).map(|branch| branch.capture) {
            self.spoil(capture);
        }
    }

    fn spoil(&mut self, capture: u64) {
        self.captures.entry(capture).and_modify(|capture| capture.is_valid = false);
    }

    /// Ends a capture and returns its graph (HIP API: hipStreamEndCapture). `thread` is the calling thread. The streams are
    /// no longer captured afterwards, whether or not there is a graph; only a call on a wrong stream or thread changes
    /// nothing.
    ///
    /// # Errors
    /// `ILLEGAL_STATE`: the stream does not capture. `STREAM_CAPTURE_UNMATCHED`, `STREAM_CAPTURE_WRONG_THREAD`: the capture
    /// did not begin there. `STREAM_CAPTURE_INVALIDATED`. `STREAM_CAPTURE_UNJOINED`: a stream that joined was not
    /// waited for.
    pub fn end<W: Work>(&mut self, graphs: &mut Graphs<W>, stream: u64, thread: u64) -> HipResult<u64> {
        let branch = self.branches.get(&stream).ok_or(HipError::ILLEGAL_STATE)?;
        let id = branch.capture;
        let capture = self.captures.get(&id).ok_or(HipError::ILLEGAL_STATE)?;
        if capture.origin != stream {
            return Err(HipError::STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != Mode::Relaxed && capture.thread != thread {
            return Err(HipError::STREAM_CAPTURE_WRONG_THREAD);
        }
        let graph = capture.graph;
        let others = self.branches.values().filter(|other| other.capture == id);
        let wanted: BTreeSet<u64> = others.flat_map(|other| other.dependencies.iter().copied()).collect();
        // The program can learn of the graph while it is being made, and may have destroyed it.
        let result = if !capture.is_valid || graphs.check(graph).is_err() {
            Err(HipError::STREAM_CAPTURE_INVALIDATED)
        } else if !graphs.are_before(&wanted, &branch.dependencies) {
            Err(HipError::STREAM_CAPTURE_UNJOINED)
        } else {
            Ok(graph)
        };
        if result.is_err() && !capture.is_given {
            let _ = graphs.destroy(graph);
        }
        self.forget(id);
        result
    }

    fn forget(&mut self, id: u64) {
        self.captures.remove(&id);
        self.branches.retain(|_, branch| branch.capture != id);
        self.events.retain(|_, (capture, _)| *capture != id);
    }

    /// Handles the destruction of a stream: invalidates its capture, and ends it if it began in that stream.
    pub fn forget_stream<W: Work>(&mut self, graphs: &mut Graphs<W>, stream: u64) {
        self.invalidate(stream);
        let Some(id) = self.branches.remove(&stream).map(|branch| branch.capture) else { return };
        let Some(capture) = self.captures.get(&id).filter(|capture| capture.origin == stream) else { return };
        if !capture.is_given {
            let _ = graphs.destroy(capture.graph);
        }
        self.forget(id);
    }

    /// Handles the destruction of an event.
    pub fn forget_event(&mut self, event: u64) {
        self.events.remove(&event);
    }
}
