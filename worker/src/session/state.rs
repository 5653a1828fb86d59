//! The state of a session's current request.

use std::sync::Arc;

use hipr_graph::Exec;
use hipr_io::{Budget, Span};
use hipr_proto::{HipError, HipResult, Ticket};

use super::counted::Counted;
use super::frames::{Packed, Packing, Unpacking};
use super::from_peer::FromPeer;
use super::look::{Look, PackingChanges, Telling};
use crate::SessionLimits;
use crate::apart::Outstanding;
use crate::cache::{Asked, Keeping, Promise};
use crate::call::{Call, Continuation, Load, Stage, Upload};
use crate::env::Env;
use crate::owned::{GraphTables, NodeWork, Remap};
use hipr_device::{Context, ModuleLoad, Region, WaitFor};

/// The request that is being executed. Tickets are completed in order, so there is one at a time.
#[derive(Debug)]
pub(super) enum State {
    /// There is no current request.
    Idle,
    /// A small tail is arriving.
    Small { ticket: Ticket },
    /// A bulk tail is being collected.
    Collect { ticket: Ticket, collected: Collected },
    /// Bytes are being collected to be enqueued in stream order.
    Stage { write: Write, bytes: Vec<u8> },
    /// Bytes are written to the device as they arrive, once it is ready for them.
    Write { write: Write, ready: bool },
    /// The device cannot take the remaining bytes of `span`, from `from` on, yet.
    Held { write: Write, span: Span, from: usize, last: bool },
    /// The request failed; the rest of its tail is skipped.
    Skip { ticket: Ticket, error: HipError },
    /// A graph's nodes are being checked, enqueued or captured.
    Replay(Replay),
    /// The graphs are lent to another thread.
    Lent(Lent),
    /// The context is lent to another thread, which loads a module.
    Loading(Box<Loading>),
    /// The request failed for lack of memory, and is tried again when others have given some back.
    Short(Box<Retry>),
    /// The session waits for the device.
    Wait { ticket: Ticket, wait: Wait },
    /// A reply's bytes are read from the device, as fast as the peer receives them.
    Read { src: Region, stream: u64, offset: u64 },
    /// The session looks for what has changed in watched memory.
    Look { ticket: Ticket, look: Box<Look> },
    /// A chunk of the cache is written to the device, once it is ready for it.
    CopyKept { write: Write, chunk: Arc<Promise> },
    /// Bytes that arrive from another worker are written to the device, once it is ready for them.
    CapabilityCopy { write: Write, from: Box<FromPeer> },
    /// Bytes are unpacked and written to the device, once it is ready for them.
    Unpack { write: Write, unpacking: Box<Unpacking> },
    /// A reply's bytes are read from the device and packed.
    Pack { ticket: Ticket, packing: Box<Packing> },
    /// A reply's packed bytes are sent, as fast as the peer receives them.
    SendPacked(Packed),
    /// Files are looked for that are chunks of the cache.
    Have { ticket: Ticket, asked: Asked },
    /// The changes are sent, as fast as the peer receives them.
    Tell(Box<Telling>),
    /// The pages of the changes are packed.
    PackChanges { ticket: Ticket, packing: Box<PackingChanges> },
}

/// A copy to the device whose bytes are arriving.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) ticket: Ticket,
    pub(super) dst: Region,
    pub(super) stream: u64,
    /// Number of bytes that the device has taken.
    pub(super) offset: u64,
    /// Whether the bytes must have arrived when the copy is completed.
    pub(super) waits: bool,
    pub(super) what: Arriving,
}

/// What becomes of arriving bytes besides that they are written.
#[derive(Debug)]
pub(super) enum Arriving {
    /// Nothing.
    Written,
    /// The client is taken to know them, in memory that is watched.
    Known,
    /// They are a chunk for the cache of uploads.
    Kept(Box<Keeping>),
}

impl Arriving {
    /// Returns what becomes of `len` arriving bytes.
    pub(super) fn new(env: &Env<'_>, what: Upload, len: u64) -> Self {
        match (what, env.cache) {
            (Upload::Kept, Some(cache)) => Self::Kept(Box::new(Keeping::new(cache, len))),
            (Upload::Known, _) => Self::Known,
            (Upload::Written, _) | (Upload::Kept, None) => Self::Written,
        }
    }
}

/// A request that failed for lack of memory and is tried again.
#[derive(Debug)]
pub(super) struct Retry {
    pub(super) ticket: Ticket,
    pub(super) request: Kept,
}

/// What is kept of a request that is tried again.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) fixed: Vec<u8>,
    pub(super) tail: Vec<u8>,
    pub(super) collected: Option<Vec<u8>>,
    /// Whether the request has been tried for the last time when it is tried again.
    pub(super) is_last: bool,
    /// Whether to try again now.
    pub(super) is_due: bool,
}

/// A launch of a graph in progress.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) ticket: Ticket,
    pub(super) exec: Arc<Exec<NodeWork>>,
    pub(super) stream: u64,
    pub(super) stage: Stage,
    /// Number of nodes of the stage that are done.
    pub(super) next: usize,
}

/// The graphs of a session, while another thread does something with them.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) ticket: Ticket,
    pub(super) graphs: Outstanding<(GraphTables, HipResult<u64>)>,
    pub(super) then: fn(&mut Call<'_>, u64) -> HipResult<Continuation>,
}

/// A context with what became of the code object that it loaded.
pub(super) type Loaded = (Box<dyn Context>, HipResult<ModuleLoad>);

/// A module that is being loaded.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) ticket: Ticket,
    pub(super) load: Load,
    pub(super) loaded: Outstanding<Loaded>,
    /// Counts the code object meanwhile.
    pub(super) counted: Option<Counted>,
    /// The request, if it is being tried again; it waits on if it fails for lack of memory once more and is not tried for the last time.
    pub(super) retry: Option<Kept>,
}

/// Work that a session waits for, with the action that follows.
#[derive(Debug)]
pub(super) enum Wait {
    /// Work; then the request is completed.
    Sync(WaitFor),
    /// The bytes of a copy to the device; then the copy is completed.
    Written(u64),
    /// The work of a stream; then memory is read, and packed if `packs` says so and it pays.
    Read { src: Region, stream: u64, packs: bool },
    /// The work of a stream; then the session looks for what has changed in the allocation at `base`.
    Changes { base: u64, src: Region, stream: u64, packs: bool },
    /// The first bytes of a read; then they are sent.
    Fetch { src: Region, stream: u64, packs: bool },
    /// The work of a stream of another session and the first bytes of that session's memory, by a capability; then they are sent.
    Readable { src: Region, stream: u64, offset: u64, len_bytes: u64 },
    /// The work that uses an allocation; then it is freed.
    Free(u64),
    /// Until mappings are changed.
    Remap(Remap),
    /// The device; then it is reset.
    Reset,
}

/// A collected tail. It grows as bytes arrive, not by what a message announces, and counts against the limit of all sessions.
#[derive(Debug)]
pub(super) struct Collected {
    bytes: Vec<u8>,
    counted: Counted,
    /// Whether the tail is so short that it is collected in any case: a copy may not fail for what others collect.
    is_short: bool,
}

impl Collected {
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self { bytes: Vec::new(), counted: Counted::nothing(budget), is_short: false }
    }

    /// Collects a tail that has a bound of its own.
    pub(super) fn short(budget: &Arc<Budget>) -> Self {
        Self { is_short: true, ..Self::new(budget) }
    }

    /// Adds bytes; fails with the name and value of a limit that is exceeded.
    pub(super) fn push(&mut self, bytes: &[u8], limits: &SessionLimits) -> Result<(), (&'static str, usize)> {
        let len = self.bytes.len() + bytes.len();
        if len > limits.collect_max_bytes {
            return Err(("collect_max_bytes", limits.collect_max_bytes));
        }
        self.bytes.try_reserve(bytes.len()).map_err(|_| ("host memory", len))?;
        if self.is_short {
            self.counted.add_bounded(bytes.len());
        } else {
            self.counted.add(bytes.len(), limits)?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns all bytes, and what counts them as long as they are there.
    pub(super) fn into_bytes(self) -> (Vec<u8>, Counted) {
        (self.bytes, self.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collected_bytes_have_limits_and_are_given_back() {
        let budget = Arc::new(Budget::default());
        budget.set_max(1000);
        let total_bytes = || 1000 - budget.room();
        let limits =
            SessionLimits { collect_max_bytes: 10, collect_total_max_bytes: 15, ..SessionLimits::default() };
        let mut a = Collected::new(&budget);
        assert_eq!(a.push(&[1; 10], &limits), Ok(()));
        assert_eq!(a.push(&[1], &limits), Err(("collect_max_bytes", 10)), "one has a limit");
        let mut b = Collected::new(&budget);
        assert_eq!(b.push(&[2; 6], &limits), Err(("collect_total_max_bytes", 15)), "all have a limit");
        assert_eq!(b.push(&[2; 5], &limits), Ok(()));
        assert_eq!(total_bytes(), 15);
        let mut short = Collected::short(&budget);
        assert_eq!(short.push(&[3; 4], &limits), Ok(()), "a short one is collected in any case");
        assert_eq!((total_bytes(), short.push(&[3; 7], &limits)), (19, Err(("collect_max_bytes", 10))));
        drop((b, short));
        let (bytes, counted) = a.into_bytes();
        assert_eq!((bytes, total_bytes()), (vec![1; 10], 10), "they are somewhere");
        drop(counted);
        assert_eq!(total_bytes(), 0);
    }
}
