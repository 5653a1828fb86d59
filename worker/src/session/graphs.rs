//! A client's graphs, ready graphs and captures.

use std::collections::BTreeMap;
use std::rc::Rc;

use hipr_graph::{Captures, Exec, Graphs, Work, node_type};
use hipr_proto::op::Param;
use hipr_proto::{HipError, HipResult};

use crate::device::Region;

/// Bytes of kernel arguments that count as much as a handle.
const ARGS_WEIGHT_BYTES: usize = 256;

/// What a node of a graph does. Everything that it names is checked when the node is made and again at each launch: what it
/// names may be gone by then.
#[derive(Clone, Debug)]
pub(crate) enum NodeWork {
    /// A launch.
    Kernel(Rc<KernelNode>),
    /// A copy between memory of the client's.
    Copy {
        /// Where to.
        dst: Region,
        /// Where from; of the same width, height and depth.
        src: Region,
    },
    /// A fill.
    Fill {
        /// What is filled.
        dst: Region,
        /// With what: its low bytes.
        value: u32,
        /// Bytes of an element: 1, 2 or 4.
        element_bytes: u32,
    },
    /// The recording of an event.
    Record(u64),
    /// A wait for an event.
    Wait(u64),
    /// A function of the client's program: the client calls it; here it is a place in the order.
    Host,
}

/// A launch as a node has it.
#[derive(Debug)]
pub(crate) struct KernelNode {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_mem_bytes: u32,
    /// Where each argument's value is in `data`; `None`: `data` is the explicit part of the kernarg segment.
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

/// The tables.
#[derive(Default)]
pub(crate) struct GraphTables {
    pub(crate) graphs: Graphs<NodeWork>,
    pub(crate) captures: Captures,
    execs: BTreeMap<u64, Rc<Exec<NodeWork>>>,
    execs_weight: usize,
}

impl GraphTables {
    /// What everything here counts as handles.
    pub(crate) fn weight(&self) -> usize {
        self.graphs.weight() + self.execs_weight
    }

    /// Adds a ready graph.
    pub(crate) fn add_exec(&mut self, exec: Exec<NodeWork>) -> u64 {
        let handle = self.graphs.new_handle();
        self.execs_weight += exec.weight();
        self.execs.insert(handle, Rc::new(exec));
        handle
    }

    /// A ready graph.
    pub(crate) fn exec(&self, exec: u64) -> HipResult<&Rc<Exec<NodeWork>>> {
        self.execs.get(&exec).ok_or(HipError::INVALID_VALUE)
    }

    /// Changes a ready graph; a launch of it that is under way goes on with what it was.
    pub(crate) fn change_exec<T>(
        &mut self,
        exec: u64,
        change: impl FnOnce(&mut Exec<NodeWork>) -> HipResult<T>,
    ) -> HipResult<T> {
        let exec = self.execs.get_mut(&exec).ok_or(HipError::INVALID_VALUE)?;
        let before = exec.weight();
        let result = change(Rc::make_mut(exec));
        self.execs_weight = self.execs_weight - before + exec.weight();
        result
    }

    /// Forgets a ready graph.
    pub(crate) fn remove_exec(&mut self, exec: u64) -> HipResult<()> {
        let gone = self.execs.remove(&exec).ok_or(HipError::INVALID_VALUE)?;
        self.execs_weight -= gone.weight();
        Ok(())
    }
}
