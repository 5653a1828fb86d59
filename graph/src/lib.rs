//! HIP graphs and stream captures, without a device and without a connection.
//!
//! [`Graphs`] holds one client's graphs and nodes and answers what is asked about them; [`Exec`] is a graph made ready: its
//! nodes in one order in which every node comes after those it depends on. Whoever launches it does the [`Step`]s one
//! after the other in the order of one stream; branches that could run side by side do not. [`Captures`] says which
//! streams record instead of working, and into which graph.
//!
//! What a node does is the caller's own type, a [`Work`]: the worker's nodes name memory that its session owns, the client
//! library's nodes also name memory and functions of the program.

#![forbid(unsafe_code)]

mod capture;
mod exec;
mod graphs;

pub use capture::{Captures, Info, Mode, Status};
pub use exec::{Exec, Mismatch, Step, UpdateResult};
pub use graphs::{Content, Graphs, HEIGHT_MAX};

/// What nodes do (HIP API: hipGraphNodeType).
pub mod node_type {
    /// A kernel.
    pub const KERNEL: i32 = 0;
    /// A copy.
    pub const MEMCPY: i32 = 1;
    /// A fill.
    pub const MEMSET: i32 = 2;
    /// A function of the program.
    pub const HOST: i32 = 3;
    /// A whole graph.
    pub const GRAPH: i32 = 4;
    /// Nothing; it joins others.
    pub const EMPTY: i32 = 5;
    /// A wait for an event.
    pub const WAIT_EVENT: i32 = 6;
    /// The recording of an event.
    pub const EVENT_RECORD: i32 = 7;
}

/// What a node does, unless it is empty or a graph.
pub trait Work: Clone {
    /// One of [`node_type`].
    fn node_type(&self) -> i32;

    /// How much it counts against a limit of handles; a node with small parameters counts as 1.
    fn weight(&self) -> usize {
        1
    }
}
