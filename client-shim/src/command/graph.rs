//! Graphs as commands: a node's command, and the parts of an instantiated graph that exist on the worker.

use std::ops::{Deref, Range};
use std::sync::Arc;

use hipr_graph::Exec;

use super::{Arguments, Command};

/// The command of a graph node. Copies of a node share it.
#[derive(Clone, Debug)]
pub struct Node(pub Arc<Command>);

impl Node {
    /// Creates a node that executes `command`.
    pub fn new(command: Command) -> Self {
        Self(Arc::new(command))
    }
}

impl Deref for Node {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.0
    }
}

/// An instantiated graph, divided into parts that exist on the worker and parts that cannot.
#[derive(Debug)]
pub struct RemoteGraph {
    /// The device on whose streams it can be launched.
    pub device: i32,
    /// The parts in order: their range of steps, and the worker's copy if there is one.
    pub parts: Vec<(Range<usize>, Option<RemotePart>)>,
}

/// A part of an instantiated graph on the worker.
#[derive(Debug)]
pub struct RemotePart {
    /// The worker's handle of the part.
    pub exec: u64,
    /// The arguments of the part's kernels, in order. Host memory can have another address on the device at another time.
    pub arguments: Vec<Arguments>,
}

/// The launch of one part of an instantiated graph.
#[derive(Clone, Debug)]
pub struct GraphPart {
    /// The parts on the worker.
    pub remote: Arc<RemoteGraph>,
    /// The instantiated graph.
    pub exec: Arc<Exec<Node>>,
    /// Index of the part.
    pub index: usize,
}

impl GraphPart {
    /// Returns the worker's copy of the part; None if the worker has none.
    pub fn on_worker(&self) -> Option<&RemotePart> {
        self.remote.parts.get(self.index)?.1.as_ref()
    }

    /// Returns the nodes of the part.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let steps = self.remote.parts.get(self.index).map_or(0..0, |(steps, _)| steps.clone());
        nodes(&self.exec, steps)
    }
}

/// Returns the nodes of a range of steps of an instantiated graph that have something to do.
pub fn nodes(exec: &Exec<Node>, steps: Range<usize>) -> impl Iterator<Item = &Node> {
    exec.steps()
        .get(steps)
        .unwrap_or_default()
        .iter()
        .filter_map(|step| step.work())
        .filter(|node| !node.is_only_noted())
}
