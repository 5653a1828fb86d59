//! Copies and writes on streams, as accesses that kernels on other streams may race with.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_device::Region;
use hipr_sim::watch::{Moved, Order};

use crate::lock::{Lock, lock};

/// The number of transfers that are remembered.
const TRANSFERS_MAX: usize = 256;

/// What is said of work of two streams.
pub(crate) const NO_ORDER: &str =
    "nothing orders the work of the two streams: no event, no wait of the program";

/// One side of a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub(crate) order: Order,
    region: Region,
    pub(crate) is_store: bool,
}

impl Transfer {
    /// Returns whether it accesses one of the bytes from `start` to `end`.
    pub(crate) fn has(&self, start: u64, end: u64) -> bool {
        let region = &self.region;
        let Some(span_bytes) = region.span_bytes() else { return false };
        if end <= region.ptr || start >= region.ptr + span_bytes {
            return false;
        }
        if region.is_contiguous() {
            return true;
        }
        let offset = start.saturating_sub(region.ptr);
        let column = offset % region.slice.max(1) % region.pitch.max(1);
        column < region.width || column + (end - start) > region.pitch
    }
}

/// The last transfers of a context.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    /// Number of transfers.
    count: AtomicU64,
    last: Lock<Vec<Arc<Transfer>>>,
}

impl Transfers {
    /// Notes what is moved; returns its sides.
    pub(crate) fn note(&self, order: &Order, moved: &Moved) -> Vec<Arc<Transfer>> {
        let side = |region: Region, is_store| Arc::new(Transfer { order: order.clone(), region, is_store });
        let sides = match *moved {
            Moved::Write { dst } => vec![side(dst, true)],
            Moved::Copy { dst, src } => vec![side(dst, true), side(src, false)],
            Moved::Read { src } => vec![side(src, false)],
        };
        let mut last = lock(&self.last);
        if last.len() + sides.len() > TRANSFERS_MAX {
            last.drain(..TRANSFERS_MAX / 2);
        }
        last.extend(sides.iter().cloned());
        self.count.fetch_add(1, Ordering::Release);
        sides
    }

    /// Returns a number that is another one when there are more transfers.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Returns the transfers without an order before or behind the command of this order.
    pub(crate) fn beside(&self, order: &Order) -> Vec<Arc<Transfer>> {
        let unordered = |transfer: &&Arc<Transfer>| {
            let other = &transfer.order;
            !order.is_behind(other.stream, other.number) && !other.is_behind(order.stream, order.number)
        };
        lock(&self.last).iter().filter(unordered).cloned().collect()
    }
}
