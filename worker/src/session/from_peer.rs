//! Bytes of a copy from another worker, between their arrival and the device.

use std::mem;
use std::task::Poll;

use hipr_proto::HipResult;

use super::counted::Counted;
use crate::peers::Arriving;

/// Bytes of a copy from another worker.
#[derive(Debug)]
pub(super) struct FromPeer {
    arriving: Arriving,
    piece: Vec<u8>,
    /// Number of bytes of the piece that the device has taken.
    taken: usize,
    _counted: Counted,
}

impl FromPeer {
    /// Returns bytes that have not arrived; `counted` counts their memory.
    pub(super) fn new(arriving: Arriving, counted: Counted) -> Self {
        Self { arriving, piece: Vec::new(), taken: 0, _counted: counted }
    }

    /// Becomes ready when there are bytes that the device has not taken; with false when there are no more.
    ///
    /// # Errors
    /// Those of [`CapabilityReader::read`](crate::CapabilityReader::read).
    pub(super) fn poll(&mut self) -> Poll<HipResult<bool>> {
        if self.taken < self.piece.len() {
            return Poll::Ready(Ok(true));
        }
        let next = match self.arriving.poll() {
            Poll::Ready(next) => next?,
            Poll::Pending => return Poll::Pending,
        };
        let Some(piece) = next else { return Poll::Ready(Ok(false)) };
        let used = mem::replace(&mut self.piece, piece);
        self.arriving.give_back(used);
        self.taken = 0;
        Poll::Ready(Ok(true))
    }

    /// Returns bytes that the device has not taken, at most `max_bytes`.
    pub(super) fn bytes(&self, max_bytes: usize) -> &[u8] {
        let rest = self.piece.get(self.taken..).unwrap_or_default();
        rest.get(..max_bytes).unwrap_or(rest)
    }

    /// Notes that the device has taken bytes.
    pub(super) fn take(&mut self, len_bytes: usize) {
        self.taken += len_bytes;
    }
}
