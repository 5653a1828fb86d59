//! Reads from another worker by a capability, on a thread of its own, for a session that copies it to its memory.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::task::Poll;
use std::thread;

use hipr_device::Waker;
use hipr_proto::{HipError, HipResult};

use crate::capabilities::{Capabilities, CapabilityToken};

/// Maximum number of copies from other workers at a time.
const COPIES_MAX: usize = 64;
/// Number of pieces that have arrived and wait for the device.
const AHEAD_PIECES: usize = 2;
/// Bytes that such a copy has of the worker's memory at most: pieces that arrive, and those that wait.
pub(crate) const COPY_BYTES: usize = 16 << 20;

/// What a worker needs for copies between workers.
#[derive(Clone)]
pub struct Peers {
    /// The capabilities that the worker's sessions have given.
    pub capabilities: Arc<Capabilities>,
    /// What reads from other workers.
    pub reader: Arc<dyn CapabilityReader>,
    copies: Arc<AtomicUsize>,
}

/// A capability of another worker's session.
#[derive(Clone, PartialEq, Eq)]
pub struct PeerCapability {
    /// The other worker: HOST:PORT.
    pub address: String,
    /// The fingerprint of its key, if it asks for keys.
    pub worker: Option<[u8; 32]>,
    /// The token.
    pub token: CapabilityToken,
    /// Number of bytes.
    pub len_bytes: u64,
}

impl fmt::Debug for PeerCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secret.
        write!(f, "{} bytes of {}", self.len_bytes, self.address)
    }
}

/// Reads from other workers. A worker does not know how: this is the program's that links it.
pub trait CapabilityReader: Send + Sync {
    /// Reads all bytes that a capability is for. Passes each piece, of 8 MiB at most together with those that are on their way, to `take`, which
    /// returns a buffer to use again, or `None` if nobody wants the rest. Waits as long as bytes arrive.
    ///
    /// # Errors
    /// `PEER_ACCESS_UNSUPPORTED` if the other worker may not or cannot be reached, does not let this one read, or stops before the end; what
    /// it says of its memory and streams.
    fn read(
        &self,
        capability: &PeerCapability,
        take: &mut dyn FnMut(Vec<u8>) -> Option<Vec<u8>>,
    ) -> HipResult<()>;
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

impl Peers {
    /// Returns what a worker needs whose sessions have these capabilities.
    pub fn new(capabilities: Arc<Capabilities>, reader: Arc<dyn CapabilityReader>) -> Self {
        Self { capabilities, reader, copies: Arc::default() }
    }

    /// Begins to read; calls `waker` when there is something to [take](Arriving::poll).
    ///
    /// # Errors
    /// `PEER_ACCESS_UNSUPPORTED` if there are as many copies already as there may be, or there is no thread.
    pub(crate) fn begin(&self, capability: PeerCapability, waker: Waker) -> HipResult<Arriving> {
        let place = Place::take(&self.copies).ok_or(HipError::PEER_ACCESS_UNSUPPORTED)?;
        let (sender, pieces) = sync_channel(AHEAD_PIECES);
        let (used, free) = channel();
        let reader = Arc::clone(&self.reader);
        let work = move || {
            let read = catch_unwind(AssertUnwindSafe(|| {
                reader.read(&capability, &mut |piece| pass(piece, &sender, &free, &waker))
            }));
            // Nobody listens any more if the session is over.
            let _ = sender.send(Piece::End(read.unwrap_or(Err(HipError::UNKNOWN))));
            drop(place);
            waker.wake();
        };
        let spawned = thread::Builder::new().name("hipr-peer".into()).spawn(work);
        spawned.map_err(|error| {
            tracing::warn!(%error, "there is no thread for a copy from another worker");
            HipError::PEER_ACCESS_UNSUPPORTED
        })?;
        Ok(Arriving { pieces, used })
    }
}

fn pass(
    piece: Vec<u8>,
    sender: &SyncSender<Piece>,
    free: &Receiver<Vec<u8>>,
    waker: &Waker,
) -> Option<Vec<u8>> {
    sender.send(Piece::Bytes(piece)).ok()?;
    waker.wake();
    Some(free.try_recv().unwrap_or_default())
}

/// One of the copies that there may be at a time.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(copies: &Arc<AtomicUsize>) -> Option<Self> {
        let taken = copies.fetch_update(SeqCst, SeqCst, |copies| (copies < COPIES_MAX).then_some(copies + 1));
        taken.is_ok().then(|| Self(Arc::clone(copies)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

enum Piece {
    Bytes(Vec<u8>),
    End(HipResult<()>),
}

/// Bytes that arrive from another worker. Dropping this ends that.
#[derive(Debug)]
pub(crate) struct Arriving {
    pieces: Receiver<Piece>,
    used: Sender<Vec<u8>>,
}

impl Arriving {
    /// Becomes ready with the next bytes; with `None` when all have been passed.
    ///
    /// # Errors
    /// Those of [`CapabilityReader::read`].
    pub(crate) fn poll(&self) -> Poll<HipResult<Option<Vec<u8>>>> {
        match self.pieces.try_recv() {
            Ok(Piece::Bytes(bytes)) => Poll::Ready(Ok(Some(bytes))),
            Ok(Piece::End(Ok(()))) => Poll::Ready(Ok(None)),
            Ok(Piece::End(Err(error))) => Poll::Ready(Err(error)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(Err(HipError::PEER_ACCESS_UNSUPPORTED)),
        }
    }

    /// Gives a buffer back.
    pub(crate) fn give_back(&self, buffer: Vec<u8>) {
        // Nobody needs it behind the last bytes.
        let _ = self.used.send(buffer);
    }
}
