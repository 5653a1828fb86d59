//! A session's graphs, instantiated graphs and captures.

use std::collections::BTreeMap;
use std::sync::Arc;

use hipr_graph::{Captures, Exec, Graphs, Work, node_type};
use hipr_proto::op::Param;
use hipr_proto::{HipError, HipResult};

use hipr_device::Region;

/// Number of bytes of kernel arguments that count as one handle.
const ARGS_WEIGHT_BYTES: usize = 256;

/// The work of a graph's node. Its handles and addresses are checked when the node is created and again at each launch,
/// because they may have been destroyed since.
#[derive(Clone, Debug)]
pub(crate) enum NodeWork {
    /// Launches a kernel.
    Kernel(Arc<KernelNode>),
    /// Copies between memory of the session.
    Copy {
        /// The destination.
        dst: Region,
        /// The source, of the same width, height and depth.
        src: Region,
    },
    /// Fills memory.
    Fill {
        /// The filled region.
        dst: Region,
        /// The value, in its low bytes.
        value: u32,
        /// Size of an element in bytes: 1, 2 or 4.
        element_bytes: u32,
    },
    /// Records an event.
    Record(u64),
    /// Waits for an event.
    Wait(u64),
    /// Calls a host function of the program; the client does that, so that this only orders other nodes.
    Host,
}

/// The launch of a kernel node.
#[derive(Debug)]
pub(crate) struct KernelNode {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_mem_bytes: u32,
    /// Position of each argument in `data`; if `None`, `data` is the explicit part of the kernarg segment.
    pub(crate) table: Option<Vec<Param>>,
    pub(crate) data: Vec<u8>,
    pub(crate) cooperative: bool,
}

impl Work for NodeWork {
    fn node_type(&self) -> i32 {
        match self {
            Self::Kernel(_) => node_type::KERNEL,
            Self::Copy { .. } => node_type::MEMCPY,
            Self::Fill { .. } => node_type::MEMSET,
            Self::Record(_) => node_type::EVENT_RECORD,
            Self::Wait(_) => node_type::WAIT_EVENT,
            Self::Host => node_type::HOST,
        }
    }

    fn weight(&self) -> usize {
        let Self::Kernel(kernel) = self else { return 1 };
        let table_bytes = kernel.table.as_ref().map_or(0, |table| table.len() * size_of::<Param>());
        1 + (kernel.data.len() + table_bytes) / ARGS_WEIGHT_BYTES
    }
}

/// The graphs, instantiated graphs and captures of a session.
#[derive(Default)]
pub(crate) struct GraphTables {
    pub(crate) graphs: Graphs<NodeWork>,
    pub(crate) captures: Captures,
    execs: BTreeMap<u64, Arc<Exec<NodeWork>>>,
    execs_weight: usize,
}

/// Weight of graphs from which on what looks at all of their nodes may take longer than a turn.
const LONG_WEIGHT: usize = 2048;

impl GraphTables {
    /// Returns how much all of them count against the limit of handles.
    pub(crate) fn weight(&self) -> usize {
        self.graphs.weight() + self.execs_weight
    }

    /// Returns whether what looks at all nodes may take longer than a turn.
    pub(crate) fn are_long(&self) -> bool {
        self.weight() >= LONG_WEIGHT
    }

    /// Adds an instantiated graph; returns its handle.
    pub(crate) fn add_exec(&mut self, exec: Exec<NodeWork>) -> u64 {
        let handle = self.graphs.new_handle();
        self.execs_weight += exec.weight();
        self.execs.insert(handle, Arc::new(exec));
        handle
    }

    /// Returns an instantiated graph.
    pub(crate) fn exec(&self, exec: u64) -> HipResult<&Arc<Exec<NodeWork>>> {
        self.execs.get(&exec).ok_or(HipError::INVALID_VALUE)
    }

    /// Changes an instantiated graph; a launch in progress continues with the old one.
    pub(crate) fn change_exec<T>(
        &mut self,
        exec: u64,
        change: impl FnOnce(&mut Exec<NodeWork>) -> HipResult<T>,
    ) -> HipResult<T> {
        let exec = self.execs.get_mut(&exec).ok_or(HipError::INVALID_VALUE)?;
        let before = exec.weight();
        let result = change(Arc::make_mut(exec));
        self.execs_weight = self.execs_weight - before + exec.weight();
        result
    }

    /// Removes an instantiated graph.
    pub(crate) fn remove_exec(&mut self, exec: u64) -> HipResult<()> {
        let gone = self.execs.remove(&exec).ok_or(HipError::INVALID_VALUE)?;
        self.execs_weight -= gone.weight();
        Ok(())
    }
}
