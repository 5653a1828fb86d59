//! When bytes arrive at the far end of a link with a delay and a bandwidth.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Bytes that wait in front of a link at most, as in the buffers of a sender.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// Bytes that are under way at most on a link with a delay and an unlimited bandwidth.
const UNDER_WAY_BYTES_MAX: usize = 256 << 20;
/// Length in bytes of a full packet on an Ethernet.
const PACKET_BYTES: usize = 1448;
/// Longest piece, in bytes, that arrives as a whole.
const PIECE_BYTES_MAX: usize = 256 << 10;

/// A link between client and worker, the same in each direction. The default is one without delay and limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// How long each byte takes, in each direction: half of the round trip.
    pub delay: Duration,
    /// Bits that enter the link per second, in each direction; None if there is no limit.
    pub bits_per_s: Option<NonZeroU64>,
    /// When connections are cut; None if they are not.
    pub cuts: Option<Cuts>,
}

/// When a connection is cut: both sides see its end, and what was under way is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// At this age.
    After(Duration),
    /// Behind a random byte: up to 2 to the power of a random exponent, which is at least 4 and at most this.
    Within(u32),
}

impl Link {
    /// Returns how many bytes a direction takes at most before they have arrived: those that are under way and those that wait.
    #[must_use]
    pub fn holds_bytes(&self) -> usize {
        let under_way = match self.bits_per_s {
            _ if self.delay.is_zero() => 0,
            None => return UNDER_WAY_BYTES_MAX,
            Some(bits_per_s) => (u128::from(bits_per_s.get()) / 8 * self.delay.as_micros()) / 1_000_000,
        };
        usize::try_from(under_way).unwrap_or(UNDER_WAY_BYTES_MAX).min(UNDER_WAY_BYTES_MAX) + WAITING_BYTES_MAX
    }

    /// Returns the length in bytes of the pieces in which bytes travel: what enters the link in a millisecond, but no less than a
    /// packet.
    #[must_use]
    pub fn piece_bytes(&self) -> usize {
        let Some(bits_per_s) = self.bits_per_s else { return PIECE_BYTES_MAX };
        let bytes = usize::try_from(bits_per_s.get() / 8_000).unwrap_or(PIECE_BYTES_MAX);
        bytes.clamp(PACKET_BYTES, PIECE_BYTES_MAX)
    }
}

/// One direction of a [`Link`]. A token bucket without a burst: a byte enters the link when the one before it has.
#[derive(Debug)]
pub struct Direction {
    link: Link,
    /// When the last byte so far has entered the link.
    entered: Option<Instant>,
}

impl Direction {
    /// Creates a direction that is free.
    #[must_use]
    pub fn new(link: Link) -> Self {
        Self { link, entered: None }
    }

    /// Puts `len_bytes` bytes on the link at `now`, behind those before them; returns when the last of them arrives.
    pub fn arrival(&mut self, now: Instant, len_bytes: usize) -> Instant {
        let begins = self.entered.map_or(now, |entered| entered.max(now));
        let takes = self.link.bits_per_s.map_or(Duration::ZERO, |bits_per_s| {
            let nanos = len_bytes as u128 * 8 * 1_000_000_000 / u128::from(bits_per_s.get());
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        });
        let entered = begins + takes;
        self.entered = Some(entered);
        entered + self.link.delay
    }
}
