//! What a session is in the middle of.

use std::cell::Cell;
use std::rc::Rc;

use hipr_graph::Exec;
use hipr_io::Span;
use hipr_proto::{HipError, Ticket};

use crate::SessionLimits;
use crate::device::{Region, WaitFor};
use crate::session::NodeWork;

/// The request that is being carried out. Tickets are completed in order, so there is one at a time.
#[derive(Debug)]
pub(super) enum State {
    /// None.
    Idle,
    /// A small tail is coming in.
    Small { ticket: Ticket },
    /// A bulk tail is being collected.
    Collect { ticket: Ticket, collected: Collected },
    /// Bytes are being collected to be enqueued in stream order.
    Stage { ticket: Ticket, dst: Region, stream: u64, bytes: Vec<u8> },
    /// Bytes go to the device as they come in, once it is ready for them.
    Write { write: Write, ready: bool },
    /// The device takes no more of the bytes at hand, which are those of `span` from `from` on.
    Held { write: Write, span: Span, from: usize, last: bool },
    /// The request failed, its tail is still coming in.
    Skip { ticket: Ticket, error: HipError },
    /// A graph's nodes are given to the device, from `next` on.
    Replay { ticket: Ticket, exec: Rc<Exec<NodeWork>>, stream: u64, next: usize },
    /// The device is waited for.
    Wait { ticket: Ticket, wait: Wait },
    /// A reply's bytes are being read, as fast as the peer takes them.
    Read { src: Region, stream: u64, offset: u64 },
}

/// A copy to the device whose bytes are coming in.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) ticket: Ticket,
    pub(super) dst: Region,
    pub(super) stream: u64,
    /// Bytes that the device has taken.
    pub(super) offset: u64,
    /// Whether the client relies on the bytes having arrived when the copy is over.
    pub(super) waits: bool,
}

/// What is waited for, and for what.
#[derive(Debug)]
pub(super) enum Wait {
    /// To say that it is over.
    Sync(WaitFor),
    /// To end a copy to the device, whose bytes are on their way.
    Written(u64),
    /// To read memory after the work of the stream.
    Read { src: Region, stream: u64 },
    /// To read memory, once the first bytes are there.
    Fetch { src: Region, stream: u64 },
    /// To free an allocation after the work that uses it.
    Free(u64),
    /// To reset the device.
    Reset,
}

/// A tail that is collected: grows as bytes arrive, never by what a message announces, and counts what all sessions hold.
#[derive(Debug)]
pub(super) struct Collected {
    bytes: Vec<u8>,
    total_bytes: Rc<Cell<usize>>,
}

impl Collected {
    pub(super) fn new(total_bytes: &Rc<Cell<usize>>) -> Self {
        Self { bytes: Vec::new(), total_bytes: total_bytes.clone() }
    }

    /// Adds bytes; above a limit its name and value instead.
    pub(super) fn push(&mut self, bytes: &[u8], limits: &SessionLimits) -> Result<(), (&'static str, usize)> {
        let (len, total) = (self.bytes.len() + bytes.len(), self.total_bytes.get() + bytes.len());
        if len > limits.collect_max_bytes {
            return Err(("collect_max_bytes", limits.collect_max_bytes));
        }
        if total > limits.collect_total_max_bytes {
            return Err(("collect_total_max_bytes", limits.collect_total_max_bytes));
        }
        self.bytes.try_reserve(bytes.len()).map_err(|_| ("host memory", len))?;
        self.bytes.extend_from_slice(bytes);
        self.total_bytes.set(total);
        Ok(())
    }

    /// All of them; they count no more.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.bytes);
        self.total_bytes.set(self.total_bytes.get() - bytes.len());
        bytes
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.total_bytes.set(self.total_bytes.get() - self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collected_bytes_have_limits_and_are_given_back() {
        let total = Rc::new(Cell::new(0));
        let limits =
            SessionLimits { collect_max_bytes: 10, collect_total_max_bytes: 15, ..SessionLimits::default() };
        let mut a = Collected::new(&total);
        assert_eq!(a.push(&[1; 10], &limits), Ok(()));
        assert_eq!(a.push(&[1], &limits), Err(("collect_max_bytes", 10)), "one has a limit");
        let mut b = Collected::new(&total);
        assert_eq!(b.push(&[2; 6], &limits), Err(("collect_total_max_bytes", 15)), "all have a limit");
        assert_eq!(b.push(&[2; 5], &limits), Ok(()));
        assert_eq!(total.get(), 15);
        drop(b);
        assert_eq!((a.into_bytes(), total.get()), (vec![1; 10], 0));
    }
}
