//! Operations that the stream layer needs from the worker and the process's memory.

use std::borrow::Cow;
use std::ops::Range;

use hipr_proto::HipResult;
use hipr_proto::op::{MemChanges, MemChangesReply, MemcpyPeer};

use super::memory::Allocation;
use crate::command::{Arguments, KernelLaunch, MemoryCopy, Pattern, Transfer};
use crate::convert::{Event, Ptr};

/// Memory on the worker that has to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Device memory, freed by `FREE`.
    Device(u64),
    /// Host memory, freed by `FREE_HOST`.
    Host(u64),
}

/// Work of the worker that a thread waits for or queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// All work of this device.
    Device(i32),
    /// The work of a stream.
    Stream(u64),
    /// An event.
    Event(Event),
    /// A query whether a stream has finished: `hipErrorNotReady` if it has not.
    QueryStream(u64),
    /// A query whether an event has happened: `hipErrorNotReady` if it has not.
    QueryEvent(Event),
    /// The same for a stream, and if it has not finished, the worker tells when it has, with this number.
    WatchStream(u64, u64),
    /// The same for an event.
    WatchEvent(Event, u64),
}

impl Wait {
    /// Returns whether it is answered at once.
    pub fn is_query(self) -> bool {
        match self {
            Self::Device(_) | Self::Stream(_) | Self::Event(_) => false,
            Self::QueryStream(_) | Self::QueryEvent(_) | Self::WatchStream(..) | Self::WatchEvent(..) => true,
        }
    }
}

/// What is sent ahead of a question what has changed, in the same flight.
#[derive(Clone, Copy, Debug)]
pub enum Ahead<'a> {
    /// Nothing.
    Nothing,
    /// A wait or a query.
    Wait(Wait),
    /// A copy from the device into the program's memory.
    Copy(&'a Transfer),
}

/// The worker's answer to the question what has changed.
pub type ChangesAnswer = HipResult<(MemChangesReply, Vec<u8>)>;

/// The host side of mirrored memory, which the program may use at any time.
pub trait HostMemory {
    /// Reads bytes from `at` on.
    fn read_host(&self, at: Ptr, into: &mut [u8]);
    /// Writes bytes from `at` on.
    fn write_host(&self, at: Ptr, bytes: &[u8]);
}

/// A number for what has been written to tracked pages: if it is the same as before, nothing has been written to a page since that was not
/// written before as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Number of first writes to pages, and of whatever else looks like one.
    pub faults: u64,
    /// Number of the period of time, for writes that are not counted.
    pub period: u64,
}

/// Which pages of the program's memory have been written. The default says that all may have been at any time.
pub trait WrittenPages {
    /// Begins to note which pages of some memory are written. Those that may have other bytes than zeros now count as written. Returns the
    /// addresses that are noted, which may be fewer; `None` if that cannot be. `is_own` says that the memory was mapped by this library.
    fn track(&self, _at: Ptr, _len: usize, _is_own: bool) -> Option<Range<usize>> {
        None
    }

    /// Ends that.
    fn untrack(&self, _range: Range<usize>) {}

    /// Returns the number of the last write. Ask for it before pages are taken: what is written later makes it another one.
    fn writes(&self) -> Writes {
        Writes::default()
    }

    /// Returns the addresses of the pages that may have been written since the last time, in their order. What is written from now on is
    /// told the next time, so that the bytes of pages have to be read after this. `None` if it is not known, now and from now on.
    fn take(&self, _range: Range<usize>) -> Option<Vec<Range<usize>>> {
        None
    }
}

/// The worker and the process's memory. [`Worker`](super::Worker) is the real one; a simulation has its own.
///
/// Methods that return a value wait for an answer, except those that make something where the client chooses the handles. All others
/// send a request and return; an error of such a request comes with a later answer. Requests take effect in the order in which these methods are called, each in the order of its stream.
pub trait Port: HostMemory + WrittenPages {
    /// Returns the device allocation that contains an address.
    fn allocation(&self, ptr: Ptr) -> Option<Allocation>;
    /// Removes the device allocation that begins at an address.
    fn forget_allocation(&self, ptr: Ptr);

    /// Returns the program's memory at an address, the source of a copy.
    fn host_bytes(&self, at: Ptr, len: usize) -> Cow<'_, [u8]>;
    /// Copies within the program's memory.
    fn copy_host(&self, copy: &MemoryCopy);

    /// Allocates memory of a device for host memory at `host`; returns its address, which is that one if the device's worker can have
    /// memory there.
    ///
    /// # Errors
    /// What the worker answers.
    fn allocate(&self, device: i32, host: Ptr, len: usize) -> HipResult<u64>;
    /// Creates an event of a device, without timing.
    ///
    /// # Errors
    /// What the worker answers.
    fn create_event(&self, device: i32) -> HipResult<Event>;
    /// Creates a stream that does not wait for the legacy null stream.
    ///
    /// # Errors
    /// What the worker answers.
    fn create_stream(&self, device: i32) -> HipResult<u64>;
    /// Reads ranges of device memory, addresses and lengths, in the order of a stream.
    ///
    /// # Errors
    /// What the worker answers.
    fn fetch(&self, ranges: &[(u64, usize)], stream: u64) -> HipResult<Vec<Vec<u8>>>;
    /// Returns whether the worker tells what has changed in memory on both sides.
    fn tells_changes(&self) -> bool;
    /// Asks what has changed in ranges of device memory, in one flight; returns the answer to each: its fixed part, and the bytes behind
    /// that.
    ///
    /// # Errors
    /// A lost connection.
    fn changes(&self, ranges: &[MemChanges]) -> HipResult<Vec<ChangesAnswer>>;
    /// Returns whether a question can be sent behind this copy in one flight, rather than a copy in several.
    fn can_ask_behind(&self, copy: &Transfer) -> bool;
    /// Sends a question what has changed in ranges of device memory, behind what comes ahead of it, without waiting for the answers. The
    /// program's memory that is copied to is in use until [`answers`](Self::answers) has returned.
    ///
    /// # Errors
    /// A lost connection.
    fn ask(&self, question: u64, ahead: Ahead<'_>, ranges: &[MemChanges]) -> HipResult<()>;
    /// Waits for what was sent with a question: returns the answer to what was ahead of it, success if that was nothing, and that to each
    /// range.
    fn answers(&self, question: u64) -> (HipResult<()>, Vec<ChangesAnswer>);
    /// Starts recording a stream into a graph of the worker.
    ///
    /// # Errors
    /// What the worker answers.
    fn begin_capture(&self, stream: u64) -> HipResult<()>;
    /// Ends recording a stream, and returns the graph.
    ///
    /// # Errors
    /// What the worker answers.
    fn end_capture(&self, stream: u64) -> HipResult<u64>;
    /// Instantiates a graph of the worker, and returns the handle.
    ///
    /// # Errors
    /// What the worker answers.
    fn instantiate(&self, graph: u64) -> HipResult<u64>;

    /// Waits for work, or queries it.
    ///
    /// # Errors
    /// What the worker answers.
    fn wait(&self, wait: Wait) -> HipResult<()>;
    /// Returns whether the worker tells when something is done that is [watched](Wait::WatchStream), before any later reply, and nothing else
    /// can tell the program.
    fn can_watch(&self) -> bool;
    /// Passes on what the worker has told, without waiting for anything.
    fn hear(&self);
    /// Returns whether no request has been sent since the last answer that may still fail, apart from work on streams.
    fn is_quiet(&self) -> bool;
    /// Returns how many requests and bytes have been sent since the worker answered last.
    fn ahead(&self) -> (u64, u64);
    /// Sends everything that is buffered.
    ///
    /// # Errors
    /// A lost connection.
    fn flush(&self) -> HipResult<()>;
    /// Makes the worker wait for work before it does what is sent later, and sends everything that is buffered; returns at once.
    ///
    /// # Errors
    /// A lost connection.
    fn wait_in_order(&self, wait: Wait) -> HipResult<()>;
    /// Copies from the device into the program's memory and waits for the bytes.
    ///
    /// # Errors
    /// What the worker answers.
    fn receive(&self, transfer: &Transfer) -> HipResult<()>;

    /// Launches a kernel with these arguments.
    ///
    /// # Errors
    /// A lost connection.
    fn launch(&self, kernel: &KernelLaunch, arguments: &Arguments, stream: u64) -> HipResult<()>;
    /// Copies memory; `inline` holds the bytes of a copy from the program's memory.
    ///
    /// # Errors
    /// A lost connection.
    fn copy(&self, transfer: &Transfer, inline: &[u8]) -> HipResult<()>;
    /// Copies between devices. If it `is_blocking`, the copy comes before all that the worker is sent later.
    ///
    /// # Errors
    /// A lost connection.
    fn copy_peer(&self, copy: &MemcpyPeer, is_blocking: bool) -> HipResult<()>;
    /// Copies from memory of one worker to memory of another, from worker to worker, behind the work that two streams have: one on the device of the
    /// destination, one on that of the source. Waits until the bytes are there. Returns false if these workers cannot do so; then nothing was
    /// copied, or some of it.
    ///
    /// # Errors
    /// What a worker answers.
    fn copy_between(&self, copy: &MemoryCopy, dst_stream: u64, src_stream: u64) -> HipResult<bool>;
    /// Writes what the program changed in mirrored memory at `from` to its device address.
    ///
    /// # Errors
    /// A lost connection.
    fn write(&self, to: u64, from: Ptr, bytes: &[u8], stream: u64) -> HipResult<()>;
    /// Begins to ask the worker of a device what changes in a range of device memory, of which all bytes are zeros or become so.
    ///
    /// # Errors
    /// A lost connection.
    fn watch(&self, at: u64, len: usize, device: i32) -> HipResult<()>;
    /// Fills device memory with `count` elements.
    ///
    /// # Errors
    /// A lost connection.
    fn fill(&self, to: u64, pattern: Pattern, count: usize, stream: u64) -> HipResult<()>;
    /// Records an event; if another process can use it, waits until the worker has recorded it.
    ///
    /// # Errors
    /// A lost connection.
    fn record(&self, event: Event, stream: u64, is_shared: bool) -> HipResult<()>;
    /// Makes a stream wait for an event.
    ///
    /// # Errors
    /// A lost connection.
    fn await_event(&self, event: Event, stream: u64, flags: u32) -> HipResult<()>;
    /// Launches an instantiated graph of the worker.
    ///
    /// # Errors
    /// A lost connection.
    fn launch_graph(&self, exec: u64, stream: u64) -> HipResult<()>;
    /// Frees device memory in the order of a stream.
    ///
    /// # Errors
    /// A lost connection.
    fn free_async(&self, ptr: Ptr, stream: u64) -> HipResult<()>;
    /// Destroys a stream.
    ///
    /// # Errors
    /// A lost connection.
    fn destroy_stream(&self, stream: u64) -> HipResult<()>;
    /// Destroys an event.
    ///
    /// # Errors
    /// A lost connection.
    fn destroy_event(&self, event: Event) -> HipResult<()>;
    /// Destroys a graph of the worker.
    ///
    /// # Errors
    /// A lost connection.
    fn destroy_graph(&self, graph: u64) -> HipResult<()>;
    /// Destroys an instantiated graph of the worker.
    ///
    /// # Errors
    /// A lost connection.
    fn destroy_exec(&self, exec: u64) -> HipResult<()>;
}
