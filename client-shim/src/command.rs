//! Commands: the work that HIP calls request, as plain data that can be stored in graphs, queued behind host functions, and
//! sent.

mod arguments;
mod copy;
mod fill;
mod function;
mod graph;
mod kernel;
mod value;

use hipr_abi::{
    hipGraphNodeTypeBatchMemOp, hipGraphNodeTypeMemAlloc, hipGraphNodeTypeMemFree, hipHostFn_t,
    hipStreamCallback_t,
};
use hipr_graph::{Work, node_type};

use crate::convert::{Event, Ptr, Stream};

pub use arguments::{Arguments, PassedArguments};
pub use copy::{MemoryBox, MemoryCopy, Size, Transfer, hints};
pub use fill::{MemoryFill, Pattern};
pub use function::{Function, KernelFacts};
pub use graph::{GraphPart, Node, RemoteGraph, RemotePart, nodes};
pub use kernel::{CacheWindow, KernelLaunch, LaunchConfiguration, NodeAttribute};
pub use value::{ValueOp, ValueOps, ValueWait, ValueWidth};

/// A command for a stream.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "launches are the most frequent commands and cost no allocation"
)]
pub enum Command {
    /// Launches a kernel.
    Kernel(KernelLaunch),
    /// Copies memory.
    Copy(MemoryCopy),
    /// Copies between the memories of two devices.
    PeerCopy(hipr_proto::op::MemcpyPeer),
    /// Fills memory.
    Fill(MemoryFill),
    /// Records an event.
    Record(Event),
    /// Waits for an event, with the flags of `hipStreamWaitEvent`.
    Wait(Event, u32),
    /// Calls a host function.
    Host(HostFunction),
    /// Waits for values and writes them: a graph node, of which a launch makes one command for each.
    Values(ValueOps),
    /// Launches a part of a graph that the worker has.
    Graph(GraphPart),
    /// Frees device memory in the order of the stream.
    Free(Ptr),
    /// A graph node that allocates memory: nothing to do for the device, which has it.
    GraphAllocate(GraphAllocation),
    /// A graph node that frees memory which a node has allocated: nothing to do for the device, either.
    GraphFree(Ptr),
    /// Destroys the stream.
    DestroyStream,
    /// Destroys an event once nothing uses it.
    DestroyEvent(Event),
    /// Destroys a graph of the worker once nothing launches it.
    DestroyGraph(u64),
}

/// Memory that a graph node allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphAllocation {
    /// The address.
    pub at: Ptr,
    /// Size in bytes.
    pub bytes: usize,
    /// The device that has it.
    pub device: i32,
}

/// A function of the program that is called in stream order.
#[derive(Clone, Copy, Debug)]
pub enum HostFunction {
    /// A function from `hipLaunchHostFunc` or a graph node, with its argument.
    Plain(hipHostFn_t, Ptr),
    /// A function from `hipStreamAddCallback`, which is passed the stream's error.
    Callback(hipStreamCallback_t, Stream, Ptr),
    /// No function of the program, but what takes its place in a stream: a wait for a value in memory, or a write of one to the program's
    /// memory.
    Value(ValueOp),
    /// No function of the program either: a wait until an event of the library has happened, which is of another worker.
    Await(Event),
}

impl Command {
    /// Returns the events that the command records.
    pub fn records(&self) -> impl Iterator<Item = Event> {
        let events = match self {
            Self::Kernel(kernel) => [kernel.config.start, kernel.config.stop],
            Self::Record(event) => [*event, Event::NULL],
            _ => [Event::NULL; 2],
        };
        events.into_iter().filter(|event| !event.is_null())
    }

    /// Returns the event that the stream waits for.
    pub fn awaits(&self) -> Option<Event> {
        if let Self::Wait(event, _) = self { Some(*event) } else { None }
    }

    /// Returns whether a launch of the graph has nothing to do for the command: memory that a graph allocates and frees is only noted.
    pub fn is_only_noted(&self) -> bool {
        matches!(self, Self::GraphAllocate(_) | Self::GraphFree(_))
    }

    /// Returns whether the command destroys an event or a graph, and so has to follow everything queued, on any stream.
    pub fn ends_a_resource(&self) -> bool {
        matches!(self, Self::DestroyEvent(_) | Self::DestroyGraph(_))
    }
}

impl Work for Node {
    fn node_type(&self) -> i32 {
        match &**self {
            Command::Kernel(_) => node_type::KERNEL,
            Command::Copy(_) | Command::PeerCopy(_) => node_type::MEMCPY,
            Command::Fill(_) => node_type::MEMSET,
            Command::Record(_) => node_type::EVENT_RECORD,
            Command::Wait(..) => node_type::WAIT_EVENT,
            Command::Host(HostFunction::Value(_)) | Command::Values(_) => hipGraphNodeTypeBatchMemOp,
            Command::Host(_) => node_type::HOST,
            Command::GraphAllocate(_) => hipGraphNodeTypeMemAlloc,
            Command::GraphFree(_) | Command::Free(_) => hipGraphNodeTypeMemFree,
            // The others are never captured and have no functions that add them to graphs.
            _ => node_type::EMPTY,
        }
    }

    /// HIP API: the direction of a copy stays, and so does memory.
    fn can_become(&self, other: &Self) -> bool {
        match (&**self, &**other) {
            (Command::Copy(mine), Command::Copy(other)) => mine.direction() == other.direction(),
            (Command::GraphAllocate(mine), Command::GraphAllocate(other)) => mine == other,
            (Command::GraphFree(mine), Command::GraphFree(other)) => mine == other,
            _ => true,
        }
    }
}
