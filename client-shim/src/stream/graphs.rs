//! The program's graphs and stream captures.
//!
//! They are kept here and not on the worker: their copies name the program's own memory, which is read and written at each
//! launch; their kernels may be given host memory, whose device address can differ from launch to launch; and their
//! host functions are the program's. A first launch sends what the nodes ask for, one after the other in the order of the stream,
//! in one go: none of it waits, unless the program's own memory or functions take part. Later launches of the same are one
//! message each (see `remote`).

mod devices;
mod memory;
mod remote;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hipr_abi::hipGraphInstantiateFlagAutoFreeOnLaunch;
use hipr_graph::{Captures, Content, Exec, Graphs, Mode, Status};
use hipr_proto::{HipError, HipResult};

use super::{Call, Caller, Streams};
use crate::command::{Command, GraphPart, HostFunction, Node, RemoteGraph, nodes};
use crate::convert::{Event, Ptr};
use crate::worker::{Port, lock};
pub(super) use devices::Sides;
pub use memory::GraphMemory;
use memory::MemoryNodes;

/// The flag of an instantiated graph that frees at a launch what the last one has allocated.
const FREES_FIRST: u64 = hipGraphInstantiateFlagAutoFreeOnLaunch as u64;

/// The program's graphs and captures.
#[derive(Debug, Default)]
pub struct Tables {
    /// Graphs and their nodes.
    pub graphs: Graphs<Node>,
    /// Streams that capture.
    pub captures: Captures,
    /// The destructors of user objects.
    pub destructors: HashMap<u64, HostFunction>,
    /// The memory that graphs allocate.
    pub memory: GraphMemory,
    execs: HashMap<u64, InstantiatedGraph>,
}

/// An instantiated graph.
#[derive(Clone, Debug)]
struct InstantiatedGraph {
    exec: Arc<Exec<Node>>,
    /// The flags that it was instantiated with (HIP API: hipGraphInstantiateFlags).
    flags: u64,
    /// What it does with memory.
    memory: MemoryNodes,
    /// Number of launches since it was instantiated or changed.
    launches: u32,
    /// The worker's copy of it; `Some(None)` if the worker refused one.
    remote: Option<Option<Arc<RemoteGraph>>>,
    /// The user objects that it keeps, with the number of its references.
    kept: BTreeMap<u64, u64>,
    /// The streams on which it was launched, if it keeps user objects.
    launched_on: BTreeSet<u64>,
}

/// What is left of an instantiated graph that was destroyed.
#[derive(Debug)]
pub struct DestroyedGraph {
    /// The worker's copy, which has to be [released].
    pub remote: Option<Arc<RemoteGraph>>,
    /// The user objects that it kept, with the number of its references: they are released when the launches have ended.
    pub kept: BTreeMap<u64, u64>,
    /// The streams on which it was launched, if it kept user objects.
    pub launched_on: BTreeSet<u64>,
    /// Memory that has to be given back.
    pub memory: Vec<Ptr>,
}

impl Tables {
    /// Returns the instantiated graph with this handle; fails if there is none.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: there is none of this handle.
    pub fn exec(&self, exec: Ptr) -> HipResult<&Exec<Node>> {
        self.execs.get(&exec.wire()).map(|entry| &*entry.exec).ok_or(HipError::INVALID_VALUE)
    }

    fn entry(&mut self, exec: Ptr) -> HipResult<&mut InstantiatedGraph> {
        self.execs.get_mut(&exec.wire()).ok_or(HipError::INVALID_VALUE)
    }

    /// Adds an instantiated graph and returns its handle.
    pub fn add_exec(&mut self, exec: Exec<Node>) -> Ptr {
        self.add_keeping(exec, 0, MemoryNodes::default(), BTreeMap::new())
    }

    /// Instantiates a graph and returns the handle. The instance keeps the user objects of the graph.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no graph, or one with a cycle; `hipErrorNotSupported`: one that allocates memory, of which there is an instance.
    pub fn instantiate(&mut self, graph: u64, flags: u64) -> HipResult<Ptr> {
        let exec = self.graphs.instantiate(graph)?;
        let memory = self.memory_nodes(graph)?;
        self.memory.instantiate(&memory.allocated)?;
        let kept = self.graphs.keep_all(graph)?;
        Ok(self.add_keeping(exec, flags, memory, kept))
    }

    /// Returns the flags that a graph was instantiated with.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no instantiated graph.
    pub fn flags(&mut self, exec: Ptr) -> HipResult<u64> {
        self.entry(exec).map(|entry| entry.flags)
    }

    /// Returns the memory that the nodes of a graph allocate and free.
    fn memory_nodes(&self, graph: u64) -> HipResult<MemoryNodes> {
        let mut found = MemoryNodes::default();
        for node in self.graphs.nodes(graph)? {
            let Content::Work(node) = self.graphs.content(node)? else { continue };
            match &**node {
                Command::GraphAllocate(allocation) => found.allocated.push(allocation.at),
                Command::GraphFree(at) => found.freed.push(*at),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Checks that no node of a graph allocates or frees memory.
    ///
    /// # Errors
    /// `hipErrorNotSupported`: one does; `hipErrorInvalidValue`: no graph.
    pub fn check_without_memory(&self, graph: u64) -> HipResult<()> {
        if self.memory_nodes(graph)?.is_empty() { Ok(()) } else { Err(HipError::NOT_SUPPORTED) }
    }

    /// Destroys a graph; returns the memory that has to be given back.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no graph.
    pub fn destroy(&mut self, graph: u64) -> HipResult<Vec<Ptr>> {
        let memory = self.memory_nodes(graph)?;
        self.graphs.destroy(graph)?;
        Ok(self.memory.forget_graph(&memory.allocated))
    }

    fn add_keeping(
        &mut self,
        exec: Exec<Node>,
        flags: u64,
        memory: MemoryNodes,
        kept: BTreeMap<u64, u64>,
    ) -> Ptr {
        let handle = self.graphs.new_handle();
        let (exec, launched_on) = (Arc::new(exec), BTreeSet::new());
        let (launches, remote) = (0, None);
        self.execs
            .insert(handle, InstantiatedGraph { exec, flags, memory, launches, remote, kept, launched_on });
        Ptr::from_wire(handle)
    }

    /// Returns the destructors of the user objects whose last reference is gone; each is returned once.
    pub fn take_destructors(&mut self) -> Vec<HostFunction> {
        let ended = self.graphs.objects.take_ended();
        ended.iter().filter_map(|object| self.destructors.remove(object)).collect()
    }
}

/// The graphs of a session.
#[derive(Debug, Default)]
pub struct SessionGraphs {
    tables: Mutex<Tables>,
    /// Whether any stream may be capturing.
    has_captures: AtomicBool,
    /// For each device, the stream on which its graphs are captured for the worker; whoever holds the lock may use them.
    recorders: Mutex<HashMap<i32, u64>>,
}

impl SessionGraphs {
    /// Calls `body` with the tables locked. No other lock of the session may be taken meanwhile.
    pub fn with<T>(&self, body: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = lock(&self.tables);
        let result = body(&mut tables);
        self.has_captures.store(!tables.captures.is_empty(), Ordering::Release);
        result
    }

    /// Returns whether any stream is capturing.
    pub fn has_captures(&self) -> bool {
        self.has_captures.load(Ordering::Acquire)
    }

    /// Records the node that `task` returns if the stream captures; returns false if it does not, so that the caller executes
    /// the work now.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub fn record(&self, stream: u64, task: impl FnOnce() -> Node) -> HipResult<bool> {
        if !self.has_captures() {
            return Ok(false);
        }
        self.with(|tables| {
            if !tables.captures.is_capturing(stream) {
                return Ok(false);
            }
            tables.captures.record_work(&mut tables.graphs, stream, Some(task())).map(|_| true)
        })
    }

    /// Checks that a stream may be asked for its capture: the legacy null stream may not while a blocking stream captures.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureImplicit`.
    pub fn check_legacy(&self, stream: u64) -> HipResult<()> {
        if stream != 0 || !self.has_captures() {
            return Ok(());
        }
        self.with(|tables| tables.captures.check_legacy())
    }

    fn check(&self, check: impl FnOnce(&mut Captures) -> HipResult<()>) -> HipResult<()> {
        if self.has_captures() { self.with(|tables| check(&mut tables.captures)) } else { Ok(()) }
    }

    /// Checks that the caller may wait for a stream, or query it: not for one that captures, and for another one only where
    /// [`check_safe`](Self::check_safe) allows it. The legacy null stream, to which nothing is captured, is always allowed.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureUnsupported`, and the captures are spoilt.
    pub fn check_stream(&self, caller: &Caller<'_>, stream: u64) -> HipResult<()> {
        let mode = Mode::try_from(caller.capture_mode)?;
        self.check(|captures| {
            if stream == 0 {
                return Ok(());
            }
            captures.check_idle(stream)?;
            captures.refuse_unsafe(caller.thread, mode)
        })
    }

    /// Checks that a stream may be given a callback (HIP API: hipStreamAddCallback), which cannot be captured.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureUnsupported`: the stream captures; `hipErrorStreamCaptureImplicit`: it is the legacy null stream, and
    /// a blocking stream captures. The captures are spoilt.
    pub fn check_callback(&self, stream: u64) -> HipResult<()> {
        self.check(
            |captures| if stream == 0 { captures.refuse_legacy() } else { captures.check_idle(stream) },
        )
    }

    /// Checks that the caller may wait for an event, or query it.
    ///
    /// # Errors
    /// `hipErrorCapturedEvent`; `hipErrorStreamCaptureUnsupported`, where [`check_safe`](Self::check_safe) says so. The captures
    /// are spoilt.
    pub fn check_event(&self, caller: &Caller<'_>, event: Event) -> HipResult<()> {
        let mode = Mode::try_from(caller.capture_mode)?;
        self.check(|captures| {
            captures.check_event(event.wire())?;
            captures.refuse_unsafe(caller.thread, mode)
        })
    }

    /// Checks that the times between events may be asked for.
    ///
    /// # Errors
    /// `hipErrorCapturedEvent`, and the capture is spoilt.
    pub fn check_recorded(&self, event: Event) -> HipResult<()> {
        self.check(|captures| captures.check_event(event.wire()))
    }

    /// Checks that no capture forbids a call that could wait for the streams that capture (HIP API: hipStreamCaptureMode);
    /// relaxed captures never do.
    ///
    /// # Errors
    /// `hipErrorStreamCaptureUnsupported`; the captures are spoilt if the call `spoils` them.
    pub fn check_safe(&self, caller: &Caller<'_>, spoils: bool) -> HipResult<()> {
        let mode = Mode::try_from(caller.capture_mode)?;
        self.check(|captures| {
            if spoils {
                captures.refuse_unsafe(caller.thread, mode)
            } else {
                captures.check_safe(caller.thread, mode)
            }
        })
    }

    /// Checks that nothing is captured at all.
    ///
    /// # Errors
    /// `error`, and all captures are spoilt.
    pub fn check_none(&self, error: HipError) -> HipResult<()> {
        self.check(|captures| captures.refuse_all(error))
    }

    /// Records an event in a capture; returns false if the stream does not capture.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub fn record_event(&self, event: Event, stream: u64) -> HipResult<bool> {
        if !self.has_captures() {
            return Ok(false);
        }
        self.with(|tables| tables.captures.record_event(event.wire(), stream))
    }

    /// Makes a capturing stream wait for an event. Returns false if the event was not recorded in a capture: the stream itself then waits for it, and
    /// the graph gets no node for it. HIP API: AMD's runtime accepts such an event, and the capture stays valid.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub fn wait_event(&self, stream: u64, event: Event, is_blocking: bool) -> HipResult<bool> {
        if !self.has_captures() {
            return Ok(false);
        }
        self.with(|tables| {
            let is_from_outside = !tables.captures.is_captured(event.wire());
            if is_from_outside && tables.captures.status(stream) == Status::Active {
                return Ok(false);
            }
            tables.captures.wait_event(stream, event.wire(), is_blocking)
        })
    }

    /// Removes a destroyed stream from the captures.
    pub fn forget_stream(&self, stream: u64) {
        if self.has_captures() {
            self.with(|tables| tables.captures.forget_stream(&mut tables.graphs, stream));
        }
    }

    /// Removes a destroyed event from the captures.
    pub fn forget_event(&self, event: Event) {
        if self.has_captures() {
            self.with(|tables| tables.captures.forget_event(event.wire()));
        }
    }

    /// Begins a capture, into an existing graph or a new one.
    ///
    /// # Errors
    /// What HIP says of this stream and graph.
    pub fn begin(
        &self,
        thread: u64,
        stream: u64,
        is_blocking: bool,
        mode: i32,
        into: Option<(u64, &[u64])>,
    ) -> HipResult<()> {
        let mode = Mode::try_from(mode)?;
        self.with(|tables| tables.captures.begin(&mut tables.graphs, stream, is_blocking, mode, thread, into))
    }

    /// Ends a capture and returns its graph.
    ///
    /// # Errors
    /// What HIP says of this capture.
    pub fn end(&self, thread: u64, stream: u64) -> HipResult<u64> {
        self.with(|tables| tables.captures.end(&mut tables.graphs, stream, thread))
    }

    /// Returns whether a stream captures.
    pub fn status(&self, stream: u64) -> Status {
        if self.has_captures() { self.with(|tables| tables.captures.status(stream)) } else { Status::None }
    }

    /// Changes an instantiated graph; returns the worker's copy, which has to be [released].
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no instantiated graph.
    pub fn change_exec<T>(
        &self,
        exec: Ptr,
        change: impl FnOnce(&mut Exec<Node>) -> HipResult<T>,
    ) -> HipResult<(Option<Arc<RemoteGraph>>, HipResult<T>)> {
        self.with(|tables| {
            let entry = tables.entry(exec)?;
            let result = change(Arc::make_mut(&mut entry.exec));
            entry.launches = 0;
            Ok((entry.remote.take().flatten(), result))
        })
    }

    /// Destroys an instantiated graph; returns what the caller has to release.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no instantiated graph.
    pub fn destroy_exec(&self, exec: Ptr) -> HipResult<DestroyedGraph> {
        self.with(|tables| {
            let gone = tables.execs.remove(&exec.wire()).ok_or(HipError::INVALID_VALUE)?;
            let InstantiatedGraph { remote, kept, launched_on, memory, .. } = gone;
            let memory = tables.memory.forget_exec(&memory.allocated);
            Ok(DestroyedGraph { remote: remote.flatten(), kept, launched_on, memory })
        })
    }
}

/// Returns the calls that destroy the worker's copy of an instantiated graph.
pub fn released(remote: Option<Arc<RemoteGraph>>) -> Vec<Call> {
    let parts = remote.iter().flat_map(|remote| &remote.parts);
    let execs = parts.filter_map(|(_, part)| part.as_ref().map(|part| part.exec));
    execs.map(|exec| Call::new(Command::DestroyGraph(exec), 0, false)).collect()
}

impl Streams {
    /// Returns what a node does, as nodes of one command each.
    fn each(&self, port: &dyn Port, node: &Node, stream: u64) -> Vec<Node> {
        match &**node {
            Command::Values(values) => values
                .ops
                .iter()
                .flat_map(|op| self.value_commands(port, op, stream))
                .map(Node::new)
                .collect(),
            work if work.is_only_noted() => Vec::new(),
            _ => vec![node.clone()],
        }
    }

    /// Launches an instantiated graph: returns the calls to make, in order and up to the first error. If the stream captures,
    /// they record the nodes.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no instantiated graph; those of giving it to the worker.
    pub fn launch_graph(&self, caller: &Caller<'_>, exec: Ptr, stream: u64) -> HipResult<Vec<Call>> {
        // Once for all nodes: a capture that begins meanwhile takes none of them.
        let is_captured = self.graphs.status(stream) != Status::None;
        let (instance, launches) = self.graphs.with(|tables| {
            let Tables { execs, memory, .. } = tables;
            let entry = execs.get_mut(&exec.wire()).ok_or(HipError::INVALID_VALUE)?;
            if !entry.memory.is_empty() {
                if is_captured {
                    return Err(HipError::NOT_SUPPORTED);
                }
                memory.launch(&entry.memory, entry.flags & FREES_FIRST != 0)?;
            }
            entry.launches = entry.launches.saturating_add(1);
            if !entry.kept.is_empty() {
                entry.launched_on.insert(stream);
            }
            HipResult::Ok((Arc::clone(&entry.exec), entry.launches))
        })?;
        let work = instance.steps().iter().filter_map(|step| step.work());
        if is_captured {
            return Ok(work.map(|node| Call::captured_node(node.clone(), stream)).collect());
        }
        let (remote, mut calls) =
            if launches > 1 { self.upload_graph(caller.port, exec, stream)? } else { (None, Vec::new()) };
        // The worker's copy can be launched on streams of one device.
        let here = self.order.device_of(stream);
        let Some(remote) = remote.filter(|remote| remote.device == here) else {
            let each = work.flat_map(|node| self.each(caller.port, node, stream));
            calls.extend(self.call_each(caller.port, each, stream)?);
            return Ok(calls);
        };
        for (index, (steps, part)) in remote.parts.iter().enumerate() {
            if part.is_some() {
                let part = GraphPart { remote: Arc::clone(&remote), exec: Arc::clone(&instance), index };
                calls.push(Call::node(Node::new(Command::Graph(part)), stream));
            } else {
                let nodes =
                    nodes(&instance, steps.clone()).flat_map(|node| self.each(caller.port, node, stream));
                calls.extend(self.call_each(caller.port, nodes, stream)?);
            }
        }
        Ok(calls)
    }

    /// Copies an instantiated graph to the worker unless it is already there. If the worker refuses it, for a limit of graphs
    /// for example, it is launched node by node.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no instantiated graph; a lost connection.
    pub fn upload_graph(
        &self,
        port: &dyn Port,
        exec: Ptr,
        stream: u64,
    ) -> HipResult<(Option<Arc<RemoteGraph>>, Vec<Call>)> {
        let graphs = &self.graphs;
        if let Some(remote) = graphs.with(|tables| tables.entry(exec).map(|entry| entry.remote.clone()))? {
            return Ok((remote, Vec::new()));
        }
        let device = self.order.device_of(stream);
        let mut recorders = lock(&graphs.recorders);
        let InstantiatedGraph { exec: steps, remote: None, .. } =
            graphs.with(|tables| tables.entry(exec).cloned())?
        else {
            // Another thread was first; its next launch finds it.
            return Ok((None, Vec::new()));
        };
        let recording = match recorders.entry(device) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => *place.insert(port.create_stream(device)?),
        };
        let uploaded = self.upload(port, &steps, recording, stream);
        let uploaded = uploaded.inspect_err(
            |error| tracing::debug!(%error, "launching a graph node by node, because the worker cannot"),
        );
        let remote = uploaded.unwrap_or(None).map(Arc::new);
        let is_kept = graphs.with(|tables| {
            let entry = tables.entry(exec).ok().filter(|entry| Arc::ptr_eq(&entry.exec, &steps));
            entry.map(|entry| entry.remote = Some(remote.clone())).is_some()
        });
        // Else it was changed meanwhile.
        if is_kept { Ok((remote, Vec::new())) } else { Ok((None, released(remote))) }
    }
}
