//! Graphs made ready to be launched.

use hipr_proto::{HipError, HipResult};

use crate::Work;

/// How a ready graph fared with an update (HIP API: hipGraphExecUpdateResult).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum UpdateResult {
    /// It has the parameters of the other graph now.
    Success = 0,
    /// The other graph cannot be made ready.
    Error = 1,
    /// It has other nodes or edges.
    TopologyChanged = 2,
    /// A node is of another kind.
    NodeTypeChanged = 3,
}

/// Why a ready graph cannot have the parameters of another, and at which of that one's nodes it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// What differs.
    pub result: UpdateResult,
    /// The node, if it is one's fault.
    pub node: Option<u64>,
}

/// One node of a ready graph.
#[derive(Clone, Debug)]
pub struct Step<W> {
    node: u64,
    node_type: i32,
    /// Places of the nodes that it depends on.
    after: Vec<usize>,
    work: Option<W>,
    is_enabled: bool,
}

impl<W: Work> Step<W> {
    pub(crate) fn new(node: u64, node_type: i32, after: Vec<usize>, work: Option<W>) -> Self {
        Self { node, node_type, after, work, is_enabled: true }
    }

    /// The handle that the node had in its graph.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// What is to be done; `None` for a node that only joins others, one that is switched off, and a child graph, whose
    /// nodes come behind it.
    pub fn work(&self) -> Option<&W> {
        self.work.as_ref().filter(|_| self.is_enabled)
    }
}

/// A graph made ready: every step comes after those that it depends on.
#[derive(Clone, Debug)]
pub struct Exec<W> {
    steps: Vec<Step<W>>,
    weight: usize,
}

impl<W: Work> Exec<W> {
    pub(crate) fn new(steps: Vec<Step<W>>) -> Self {
        let mut exec = Self { steps, weight: 0 };
        exec.weigh();
        exec
    }

    fn weigh(&mut self) {
        let of = |step: &Step<W>| step.work.as_ref().map_or(1, Work::weight) + step.after.len();
        self.weight = 1 + self.steps.iter().map(of).sum::<usize>();
    }

    /// What it counts against a limit of handles.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// What a launch does, in this order.
    pub fn steps(&self) -> &[Step<W>] {
        &self.steps
    }

    fn step(&mut self, node: u64) -> HipResult<&mut Step<W>> {
        self.steps.iter_mut().find(|step| step.node == node).ok_or(HipError::INVALID_VALUE)
    }

    /// What a node of the graph does here.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such node, or nothing for it to do; so in all that follow.
    pub fn work(&self, node: u64) -> HipResult<&W> {
        let found = self.steps.iter().find(|step| step.node == node);
        found.and_then(|step| step.work.as_ref()).ok_or(HipError::INVALID_VALUE)
    }

    /// Gives a node something else of the same kind to do (HIP API: hipGraphExecKernelNodeSetParams and its kin).
    ///
    /// # Errors
    /// As [`work`](Self::work), also for a node of another kind.
    pub fn set_work(&mut self, node: u64, work: W) -> HipResult<()> {
        let step = self.step(node)?;
        let known = step.work.as_mut().filter(|known| known.node_type() == work.node_type());
        *known.ok_or(HipError::INVALID_VALUE)? = work;
        self.weigh();
        Ok(())
    }

    /// Whether a node does what it is there for (HIP API: hipGraphNodeGetEnabled).
    ///
    /// # Errors
    /// As [`work`](Self::work).
    pub fn is_enabled(&self, node: u64) -> HipResult<bool> {
        let found = self.steps.iter().find(|step| step.node == node);
        found.map(|step| step.is_enabled).ok_or(HipError::INVALID_VALUE)
    }

    /// Switches a node on or off (HIP API: hipGraphNodeSetEnabled).
    ///
    /// # Errors
    /// As [`work`](Self::work).
    pub fn set_enabled(&mut self, node: u64, is_enabled: bool) -> HipResult<()> {
        self.step(node)?.is_enabled = is_enabled;
        Ok(())
    }

    /// Takes over what the nodes of a graph of the same shape do (HIP API: hipGraphExecUpdate); nodes correspond by
    /// their place in the order.
    ///
    /// # Errors
    /// Where the shapes differ; then nothing has changed.
    pub fn update(&mut self, other: &Self) -> Result<(), Mismatch> {
        let differs = |result, node| Err(Mismatch { result, node });
        if self.steps.len() != other.steps.len() {
            return differs(UpdateResult::TopologyChanged, None);
        }
        for (mine, theirs) in self.steps.iter().zip(&other.steps) {
            if mine.after != theirs.after {
                return differs(UpdateResult::TopologyChanged, Some(theirs.node));
            }
            if mine.node_type != theirs.node_type {
                return differs(UpdateResult::NodeTypeChanged, Some(theirs.node));
            }
        }
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.work.clone_from(&theirs.work);
        }
        self.weigh();
        Ok(())
    }
}
