//! HIP graphs and stream captures, independent of devices and connections.
//!
//! [`Graphs`] holds one client's graphs and nodes and answers what is asked about them; [`Exec`] is a graph made ready: its
//! nodes in one order in which every node comes after those it depends on. Whoever launches it does the [`ExecStep`]s one
//! after the other in the order of one stream; branches that could run side by side do not. [`Captures`] says which
//! streams record instead of working, and into which graph.
//!
//! What a node does is the caller's own type, a [`Work`]: the worker's nodes name memory that its session owns, the client
//! library's nodes also name memory and functions of the program.

#![forbid(unsafe_code)]

mod capture;
mod exec;
mod graphs;
mod objects;

pub use capture::{Captures, Info, Mode, Status};
pub use exec::{Exec, ExecStep, Mismatch, UpdateResult};
pub use graphs::{Content, Graphs, HEIGHT_MAX};
pub use objects::Objects;

/// The types of nodes (HIP API: hipGraphNodeType).
pub mod node_type {
    /// Launches a kernel.
    pub const KERNEL: i32 = hipr_abi::hipGraphNodeTypeKernel;
    /// Copies memory.
    pub const MEMCPY: i32 = hipr_abi::hipGraphNodeTypeMemcpy;
    /// Fills memory.
    pub const MEMSET: i32 = hipr_abi::hipGraphNodeTypeMemset;
    /// Calls a host function of the program.
    pub const HOST: i32 = hipr_abi::hipGraphNodeTypeHost;
    /// Executes a child graph.
    pub const GRAPH: i32 = hipr_abi::hipGraphNodeTypeGraph;
    /// Does nothing; other nodes can depend on it.
    pub const EMPTY: i32 = hipr_abi::hipGraphNodeTypeEmpty;
    /// Waits for an event.
    pub const WAIT_EVENT: i32 = hipr_abi::hipGraphNodeTypeWaitEvent;
    /// Records an event.
    pub const EVENT_RECORD: i32 = hipr_abi::hipGraphNodeTypeEventRecord;
}

/// The work of a node that is neither empty nor a child graph.
pub trait Work: Clone {
    /// Returns the type of node as HIP numbers it, one of the constants in [`node_type`].
    fn node_type(&self) -> i32;

    /// Returns how much the node counts against a limit of handles; a node with small parameters counts as 1.
    fn weight(&self) -> usize {
        1
    }

    /// Returns whether a node of an instantiated graph that does this can do `other`, which is of the same type, instead.
    fn can_become(&self, _other: &Self) -> bool {
        true
    }
}
