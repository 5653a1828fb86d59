//! Stream captures.
//!
//! A stream that captures records what it is given as nodes of a graph; each node depends on the one before it. A stream that
//! waits for an event that was recorded in a capture joins it, and its next node depends on the work before the record.
//! The capture ends where it began, and everything that joined must have been waited for there.

use std::collections::{BTreeSet, HashMap};

use hipr_proto::{HipError, HipResult};

use crate::{Graphs, Work};

/// What else may be called while a stream captures (HIP API: hipStreamCaptureMode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing that could disturb the capture, on any thread.
    Global,
    /// The same, on the thread that captures.
    ThreadLocal,
    /// Everything.
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

/// Whether a stream captures (HIP API: hipStreamCaptureStatus).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// It works.
    #[default]
    None = 0,
    /// It captures.
    Active = 1,
    /// It captures, and something went wrong: it will give no graph.
    Invalidated = 2,
}

/// What is known of the capture of a stream (HIP API: hipStreamGetCaptureInfo_v2).
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    /// Active or invalidated.
    pub status: Status,
    /// Different for every capture.
    pub id: u64,
    /// Where nodes go.
    pub graph: u64,
    /// What the stream's next node depends on.
    pub dependencies: &'a BTreeSet<u64>,
}

#[derive(Debug)]
struct Capture {
    graph: u64,
    origin: u64,
    mode: Mode,
    /// Who began it: a number of the thread.
    thread: u64,
    is_valid: bool,
    /// The graph was there before and stays, whatever happens.
    is_given: bool,
}

#[derive(Debug)]
struct Branch {
    capture: u64,
    dependencies: BTreeSet<u64>,
    /// Whether the stream and the legacy null stream wait for each other.
    is_blocking: bool,
}

/// The streams of one client that capture.
#[derive(Debug, Default)]
pub struct Captures {
    captures: HashMap<u64, Capture>,
    branches: HashMap<u64, Branch>,
    /// Events that were last recorded in a capture: which, and the work before them.
    events: HashMap<u64, (u64, BTreeSet<u64>)>,
    last: u64,
}

impl Captures {
    /// Whether no stream captures and no event was recorded in a capture: then nothing has to be asked here.
    pub fn is_empty(&self) -> bool {
        self.branches.is_empty() && self.events.is_empty()
    }

    /// Whether a stream captures.
    pub fn is_capturing(&self, stream: u64) -> bool {
        self.branches.contains_key(&stream)
    }

    /// Starts a capture into a new graph, or into `given` behind the nodes named there (HIP API: hipStreamBeginCapture,
    /// hipStreamBeginCaptureToGraph). `thread` is whoever calls.
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

    /// What is known of a stream's capture.
    pub fn info(&self, stream: u64) -> Option<Info<'_>> {
        let branch = self.branches.get(&stream)?;
        let capture = self.captures.get(&branch.capture)?;
        let status = if capture.is_valid { Status::Active } else { Status::Invalidated };
        let Branch { capture: id, dependencies, .. } = branch;
        Some(Info { status, id: *id, graph: capture.graph, dependencies })
    }

    /// Whether a stream captures.
    pub fn status(&self, stream: u64) -> Status {
        self.info(stream).map_or(Status::None, |info| info.status)
    }

    /// The graph and the dependencies of the stream's next node.
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

    /// `node`, made from what [`next`](Self::next) said, is what the stream's next node depends on.
    pub fn advance(&mut self, stream: u64, node: u64) {
        self.branches.entry(stream).and_modify(|branch| branch.dependencies = BTreeSet::from([node]));
    }

    /// Records work of a capturing stream; `None` is an empty node.
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

    /// Sets the nodes that the stream's next one depends on, or adds to them (HIP API: hipStreamUpdateCaptureDependencies).
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

    /// An event is recorded in a stream. `true`: in a capture, and nothing else is to be done.
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

    /// A stream, blocking or not, is to wait for an event. `true`: in a capture, which it may have joined now; nothing else
    /// is to be done.
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

    /// Whether an event was last recorded in a capture that goes on: then the host cannot wait for it or ask for it.
    pub fn is_captured(&self, event: u64) -> bool {
        self.events.contains_key(&event)
    }

    /// The host waits for an event, or asks for it, that was last recorded in a capture: that spoils the capture.
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

    /// The host waits for a stream, asks for its state, or gives it what cannot be a node: that spoils its capture.
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

    /// Work is put on the legacy null stream, which would wait for blocking streams that capture.
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

    /// A call is made that must not be made during a capture unless that is relaxed. `thread` is whoever calls, and `mode` what
    /// that thread asked for (HIP API: hipThreadExchangeStreamCaptureMode): global until it says otherwise; thread-local
    /// disregards what other threads capture, relaxed everything.
    ///
    /// # Errors
    /// `STREAM_CAPTURE_UNSUPPORTED`.
    pub fn check_safe(&self, thread: u64, mode: Mode) -> HipResult<()> {
        let forbids = |capture: &Capture| match (mode, capture.mode) {
            (Mode::Relaxed, _) | (_, Mode::Relaxed) => false,
            (Mode::Global, Mode::Global) => true,
            (Mode::ThreadLocal, _) | (_, Mode::ThreadLocal) => capture.thread == thread,
        };
        if self.captures.values().any(forbids) { Err(HipError::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// The capture of a stream will give no graph.
    pub fn invalidate(&mut self, stream: u64) {
        if let Some(capture) = self.branches.get(&stream).map(|branch| branch.capture) {
            self.spoil(capture);
        }
    }

    fn spoil(&mut self, capture: u64) {
        self.captures.entry(capture).and_modify(|capture| capture.is_valid = false);
    }

    /// Ends a capture and gives its graph (HIP API: hipStreamEndCapture). `thread` is whoever calls. Whether or not there is
    /// a graph, the streams work again; only a call at the wrong place changes nothing.
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

    /// A stream is destroyed: its capture, if it has one, gives no graph; if it began there, it is over.
    pub fn forget_stream<W: Work>(&mut self, graphs: &mut Graphs<W>, stream: u64) {
        self.invalidate(stream);
        let Some(id) = self.branches.remove(&stream).map(|branch| branch.capture) else { return };
        let Some(capture) = self.captures.get(&id).filter(|capture| capture.origin == stream) else { return };
        if !capture.is_given {
            let _ = graphs.destroy(capture.graph);
        }
        self.forget(id);
    }

    /// An event is destroyed.
    pub fn forget_event(&mut self, event: u64) {
        self.events.remove(&event);
    }
}
