//! The encryption of a link: what the socket gave becomes bytes of HIPR, and what a notice brings becomes what the socket takes.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use hipr_proto::Outbox;
use hipr_resume::{Claim, Terms};
use hipr_tls::{Admission, Fault, LentKey, PIECE_BYTES, PublicKey, ServerChannel, TurnedAway};

use crate::{Body, BodyPool, Config, Peer, gather_some};

/// The encryption of one connection.
#[derive(Debug)]
pub(crate) struct Secured {
    /// What a connection fails with that cannot have a channel.
    channel: Result<ServerChannel, Fault>,
    /// The pieces of output that were not sent: their length, and the number of the dispatch's bytes in them.
    pieces: VecDeque<(usize, usize)>,
    /// Number of bytes of the first piece that were sent.
    sent_of_first: usize,
    /// Number of the dispatch's bytes that were not sent.
    unsent_bytes: usize,
    /// What the kernel may still encrypt with the key that it has; `None` while this process encrypts.
    kernel_left_bytes: Option<u64>,
    kernel_max_bytes: u64,
}

/// What encrypting a record takes of what one key may encrypt, besides its bytes.
const RECORD_COST_BYTES: u64 = 48;
/// The most bytes in a record.
const RECORD_MAX_BYTES: u64 = 16 << 10;

/// Buffers for long encrypted pieces, shared by all connections. A copy to a client fills and frees some again and again; without the pool the
/// allocator gives their memory back to the system each time.
static SEALED: LazyLock<BodyPool> = LazyLock::new(|| BodyPool::new(sealed_max_bytes(PIECE_BYTES)));

/// Returns the most bytes that a piece becomes: those of the header and the tag of each record are fewer.
const fn sealed_max_bytes(plain: usize) -> usize {
    plain + plain / 512 + 512
}

impl Secured {
    /// Creates the encryption of a connection, if there is to be one: TCP connections of a worker that has an identity.
    pub(crate) fn new(peer: Peer, config: &Config) -> Option<Self> {
        let identity = config.identity.as_ref().filter(|_| matches!(peer, Peer::Tcp(_)))?;
        let (pieces, sent_of_first, unsent_bytes) = Default::default();
        let make = if config.ktls { ServerChannel::lending } else { ServerChannel::new };
        let (kernel_left_bytes, kernel_max_bytes) = (None, config.ktls_key_max_bytes);
        let channel = make(identity.clone());
        Some(Self { channel, pieces, sent_of_first, unsent_bytes, kernel_left_bytes, kernel_max_bytes })
    }

    // ---- encryption by the kernel ------------------------------------------------------------------------------------

    /// Returns the key with which the kernel can encrypt what is sent from now on; [`lend`](Self::lend) has to follow. `None` if that
    /// cannot be now, or never. A key that does not do for every session is not lent to one that ends with its connection.
    pub(crate) fn key_to_lend(&mut self, outlives: bool) -> Option<LentKey> {
        let channel = self.channel.as_mut().ok()?.channel();
        let key = channel.key_to_lend()?;
        if key.cipher.key_max_bytes().is_some() && !outlives {
            channel.lend(false);
            return None;
        }
        Some(key)
    }

    /// Returns whether [`key_to_lend`](Self::key_to_lend) may return a key some time.
    pub(crate) fn may_lend(&self) -> bool {
        self.channel.as_ref().is_ok_and(ServerChannel::may_lend)
    }

    /// Notes whether the kernel encrypts from now on.
    pub(crate) fn lend(&mut self, key: &LentKey, is_taken: bool) {
        if let Ok(channel) = &mut self.channel {
            channel.channel().lend(is_taken);
            let max = key.cipher.key_max_bytes().unwrap_or(u64::MAX).min(self.kernel_max_bytes);
            self.kernel_left_bytes = is_taken.then_some(max);
        }
    }

    /// Returns whether the kernel encrypts what is sent.
    pub(crate) fn is_in_kernel(&self) -> bool {
        self.kernel_left_bytes.is_some()
    }

    /// Returns whether the kernel has encrypted as much as its key may.
    pub(crate) fn is_key_over(&self) -> bool {
        self.kernel_left_bytes == Some(0)
    }

    /// Returns the alert to send behind everything else, if the kernel encrypts.
    pub(crate) fn alert(&self) -> Option<[u8; 2]> {
        self.channel.as_ref().ok()?.alert()
    }

    /// Notes that the alert was sent.
    pub(crate) fn handle_alert_sent(&mut self) {
        if let Ok(channel) = &mut self.channel {
            channel.channel().handle_alert_sent();
        }
    }

    /// Decrypts; see [`ServerChannel::receive`].
    pub(crate) fn receive(&mut self, sealed: &mut &[u8], into: &mut [u8]) -> Result<usize, Fault> {
        self.channel.as_mut().map_err(|why| why.clone())?.receive(sealed, into)
    }

    /// Returns what the client may do, once it was let in.
    pub(crate) fn grant(&self) -> Option<Arc<Admission>> {
        self.channel.as_ref().ok()?.grant().cloned()
    }

    /// Returns what is known of a client that was not let in.
    pub(crate) fn turned_away(&self) -> Option<&TurnedAway> {
        self.channel.as_ref().ok()?.turned_away()
    }

    /// Returns the session that the client claims, and its key; `None` when that was answered.
    pub(crate) fn claim(&self) -> Option<(Claim, Option<PublicKey>)> {
        let channel = self.channel.as_ref().ok()?;
        Some((channel.claim()?, channel.key()))
    }

    /// Answers the claim.
    pub(crate) fn answer(&mut self, terms: Result<Terms, String>) {
        if let Ok(channel) = &mut self.channel {
            channel.answer(terms);
        }
    }

    /// Returns whether the client has said good-bye.
    pub(crate) fn is_ended(&mut self) -> bool {
        self.channel.as_mut().is_ok_and(|channel| channel.channel().is_ended())
    }

    /// Handles the end of what the socket gives.
    ///
    /// # Errors
    /// The client has not said good-bye.
    pub(crate) fn handle_eof(&self) -> Result<(), Fault> {
        self.channel.as_ref().map_err(Clone::clone)?.handle_eof()
    }

    /// Appends what the channel itself has to say; returns its length in bytes.
    pub(crate) fn take_output(&mut self, into: &mut VecDeque<Outbox<Body>>) -> usize {
        self.take(0, into)
    }

    /// Encrypts an outbox and appends it; returns the length in bytes of what was appended.
    pub(crate) fn seal(&mut self, mut outbox: Outbox<Body>, into: &mut VecDeque<Outbox<Body>>) -> usize {
        let mut len = 0;
        if let (Some(_), Ok(channel)) = (self.kernel_left_bytes, &mut self.channel) {
            if !channel.channel().is_mute() {
                len = outbox.len_bytes();
                self.unsent_bytes += len;
                into.push_back(outbox);
            }
            return len;
        }
        while let Ok(channel) = &mut self.channel
            && !outbox.is_empty()
        {
            // Small ones share a record.
            let plain = gather_some(outbox.slices(), PIECE_BYTES, |slices| {
                channel.channel().send(slices);
                slices.iter().map(|slice| slice.len()).sum()
            });
            outbox.advance(plain);
            len += self.take(plain, into);
        }
        len
    }

    /// Says good-bye; returns the length in bytes of what was appended.
    pub(crate) fn close(&mut self, into: &mut VecDeque<Outbox<Body>>) -> usize {
        if let Ok(channel) = &mut self.channel {
            channel.channel().close();
        }
        self.take(0, into)
    }

    fn take(&mut self, plain: usize, into: &mut VecDeque<Outbox<Body>>) -> usize {
        let Ok(channel) = &mut self.channel else { return 0 };
        if !channel.channel().has_output() {
            return 0;
        }
        let mut seal = |sealed: &mut Vec<u8>| {
            sealed.reserve(sealed_max_bytes(plain));
            channel.channel().take_output(sealed);
        };
        // A short piece does not hold a long buffer.
        let sealed = if plain >= PIECE_BYTES / 2 {
            SEALED.appended(seal)
        } else {
            let mut sealed = Vec::new();
            seal(&mut sealed);
            sealed.into()
        };
        let len = sealed.as_ref().len();
        let mut outbox = Outbox::new();
        outbox.put_inline(sealed);
        into.push_back(outbox);
        self.pieces.push_back((len, plain));
        self.unsent_bytes += plain;
        len
    }

    /// Returns the number of the dispatch's bytes that were not sent.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Notes that `len` bytes of output were sent; returns how many of the dispatch's bytes these end. A piece counts when all of it was
    /// sent.
    pub(crate) fn handle_sent(&mut self, len: usize) -> u64 {
        if let Some(left) = &mut self.kernel_left_bytes {
            let len_bytes = len as u64;
            *left = left.saturating_sub(len_bytes + len_bytes.div_ceil(RECORD_MAX_BYTES) * RECORD_COST_BYTES);
            self.unsent_bytes = self.unsent_bytes.saturating_sub(len);
            return len_bytes;
        }
        self.sent_of_first += len;
        let mut plain = 0;
        while let Some((piece, of_dispatch)) =
            self.pieces.front().copied().filter(|(piece, _)| *piece <= self.sent_of_first)
        {
            self.sent_of_first -= piece;
            plain += of_dispatch;
            self.pieces.pop_front();
        }
        self.unsent_bytes = self.unsent_bytes.saturating_sub(plain);
        plain as u64
    }
}
