//! Instantiated graphs, which can be launched.

use std::ops::Range;

use hipr_proto::{HipError, HipResult};

use crate::{Work, node_type};

/// The result of updating an instantiated graph (HIP API: hipGraphExecUpdateResult).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum UpdateResult {
    /// The graph has the parameters of the other graph now.
    Success = 0,
    /// The other graph cannot be instantiated.
    Error = 1,
    /// The other graph has different nodes or edges.
    TopologyChanged = 2,
    /// A node of the other graph has a different type.
    NodeTypeChanged = 3,
    /// A node of the other graph has parameters that an instantiated node cannot take.
    ParametersChanged = 5,
}

/// Why an instantiated graph cannot take the parameters of another graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The kind of difference.
    pub result: UpdateResult,
    /// The node of the other graph that differs, if it is a single one.
    pub node: Option<u64>,
}

/// A node of an instantiated graph, as a launch executes it.
#[derive(Clone, Debug)]
pub struct ExecStep<W> {
    node: u64,
    node_type: i32,
    /// Indices of the nodes that it depends on.
    after: Vec<usize>,
    work: Option<W>,
    is_enabled: bool,
    /// The number of nodes behind it that belong to its child graph.
    pub(crate) inside: usize,
}

impl<W: Work> ExecStep<W> {
    pub(crate) fn new(node: u64, node_type: i32, after: Vec<usize>, work: Option<W>) -> Self {
        Self { node, node_type, after, work, is_enabled: true, inside: 0 }
    }

    /// Returns the handle of the node in the graph that was instantiated.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// Returns the work to do; `None` for an empty node, a disabled node, and a child graph, whose nodes follow it.
    pub fn work(&self) -> Option<&W> {
        self.work.as_ref().filter(|_| self.is_enabled)
    }
}

/// An instantiated graph: its nodes in an order in which every node follows those that it depends on.
#[derive(Clone, Debug)]
pub struct Exec<W> {
    steps: Vec<ExecStep<W>>,
    weight: usize,
}

impl<W: Work> Exec<W> {
    pub(crate) fn new(steps: Vec<ExecStep<W>>) -> Self {
        let mut exec = Self { steps, weight: 0 };
        exec.weigh();
        exec
    }

    fn weigh(&mut self) {
        let of = |step: &ExecStep<W>| step.work.as_ref().map_or(1, Work::weight) + step.after.len();
        self.weight = 1 + self.steps.iter().map(of).sum::<usize>();
    }

    /// Returns how much the graph counts against a limit of handles.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Returns the nodes in the order in which a launch executes them.
    pub fn steps(&self) -> &[ExecStep<W>] {
        &self.steps
    }

    fn step(&mut self, node: u64) -> HipResult<&mut ExecStep<W>> {
        self.steps.iter_mut().find(|step| step.node == node).ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the work of a node.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such node, or nothing for it to do; so in all that follow.
    pub fn work(&self, node: u64) -> HipResult<&W> {
        let found = self.steps.iter().find(|step| step.node == node);
        found.and_then(|step| step.work.as_ref()).ok_or(HipError::INVALID_VALUE)
    }

    /// Replaces the work of a node by work of the same type (HIP API: hipGraphExecKernelNodeSetParams and similar
    /// functions).
    ///
    /// # Errors
    /// As [`work`](Self::work), also for a node of another kind, and for what the node [cannot become](Work::can_become).
    pub fn set_work(&mut self, node: u64, work: W) -> HipResult<()> {
        let step = self.step(node)?;
        let is_same = |known: &W| known.node_type() == work.node_type() && known.can_become(&work);
        let known = step.work.as_mut().filter(|known| is_same(known));
        let known = known.ok_or(HipError::INVALID_VALUE)?;
        let (before, after) = (known.weight(), work.weight());
        *known = work;
        self.weight = self.weight - before + after;
        Ok(())
    }

    /// Returns whether a node is enabled (HIP API: hipGraphNodeGetEnabled).
    ///
    /// # Errors
    /// As [`work`](Self::work).
    pub fn is_enabled(&self, node: u64) -> HipResult<bool> {
        let found = self.steps.iter().find(|step| step.node == node);
        found.map(|step| step.is_enabled).ok_or(HipError::INVALID_VALUE)
    }

    /// Enables or disables a node (HIP API: hipGraphNodeSetEnabled).
    ///
    /// # Errors
    /// As [`work`](Self::work).
    pub fn set_enabled(&mut self, node: u64, is_enabled: bool) -> HipResult<()> {
        self.step(node)?.is_enabled = is_enabled;
        Ok(())
    }

    /// Takes the parameters of all nodes from a graph of the same shape (HIP API: hipGraphExecUpdate). Nodes correspond by
    /// their index.
    ///
    /// # Errors
    /// Where the shapes differ; then nothing has changed.
    pub fn update(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.take(0..self.steps.len(), other)
    }

    /// Takes the parameters of a child graph's nodes from a graph of the same shape (HIP API:
    /// hipGraphExecChildGraphNodeSetParams).
    ///
    /// # Errors
    /// As [`work`](Self::work), also for a node without a child graph; `UNKNOWN`, as with AMD's runtime: the shapes differ. Then
    /// nothing has changed.
    pub fn set_child(&mut self, node: u64, other: &Self) -> HipResult<()> {
        let is_it = |step: &ExecStep<W>| step.node == node && step.node_type == node_type::GRAPH;
        let found = self.steps.iter().enumerate().find(|(_, step)| is_it(step));
        let (at, step) = found.ok_or(HipError::INVALID_VALUE)?;
        let first = at + 1;
        self.take(first..first + step.inside, other).map_err(|_| HipError::UNKNOWN)
    }

    /// Takes the parameters of the nodes of a range, which depend on no others, from a graph of the same shape.
    fn take(&mut self, range: Range<usize>, other: &Self) -> Result<(), Mismatch> {
        let differs = |result, node| Err(Mismatch { result, node });
        let first = range.start;
        let steps = self.steps.get_mut(range).unwrap_or_default();
        if steps.len() != other.steps.len() {
            return differs(UpdateResult::TopologyChanged, None);
        }
        for (mine, theirs) in steps.iter().zip(&other.steps) {
            let after = theirs.after.iter().map(|before| before + first);
            if mine.inside != theirs.inside || !mine.after.iter().copied().eq(after) {
                return differs(UpdateResult::TopologyChanged, Some(theirs.node));
            }
            if mine.node_type != theirs.node_type {
                return differs(UpdateResult::NodeTypeChanged, Some(theirs.node));
            }
            if let (Some(known), Some(new)) = (&mine.work, &theirs.work)
                && !known.can_become(new)
            {
                return differs(UpdateResult::ParametersChanged, Some(theirs.node));
            }
        }
        for (mine, theirs) in steps.iter_mut().zip(&other.steps) {
            mine.work.clone_from(&theirs.work);
        }
        self.weigh();
        Ok(())
    }
}
