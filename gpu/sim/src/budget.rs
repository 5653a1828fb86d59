//! What of each device's memory is given out, and which windows of addresses: what all contexts share.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hipr_device::Waker;
use hipr_grid::lock;
use hipr_proto::{HipError, HipResult};

use crate::windows::{APART_PAGES, PLAIN_PAGES, Slot, Windows};

/// The memory of one device, and the addresses of all, which all contexts share.
#[derive(Debug)]
pub(crate) struct Budget {
    total_bytes: u64,
    /// The number of the device.
    device: usize,
    pub(crate) common: Arc<Common>,
}

/// What the devices have in common.
#[derive(Debug)]
pub(crate) struct Common {
    ledger: Mutex<Ledger>,
    pub(crate) next_page: AtomicU64,
    /// Number of the operating system's mappings that blocks of physical memory take.
    pub(crate) pieces: Arc<AtomicUsize>,
}

/// What of a device is given out.
#[derive(Clone, Debug, Default)]
struct Given {
    /// Bytes of memory that is allocated.
    used_bytes: u64,
    /// Bytes that contexts have reserved and not used.
    reserved_bytes: u64,
}

/// What of the devices is given out.
#[derive(Debug)]
struct Ledger {
    /// By the number of the device.
    devices: Vec<Given>,
    windows: Windows,
    /// Number of changes of `used_bytes` of any device.
    changes: u64,
    /// Who is told of the next one.
    watcher: Option<Waker>,
}

impl Ledger {
    /// Handles that the bytes of memory that is allocated have changed; returns who has to be told of it when the ledger is unlocked.
    #[must_use]
    fn used_changed(&mut self) -> Option<Waker> {
        self.changes += 1;
        self.watcher.take()
    }
}

impl Budget {
    /// Creates the memory of so many devices of `total_bytes` each.
    pub(crate) fn of_devices(count: usize, total_bytes: u64) -> Vec<Arc<Self>> {
        let (windows, changes, watcher) = Default::default();
        let ledger = Ledger { devices: vec![Given::default(); count], windows, changes, watcher };
        let common = Arc::new(Common {
            ledger: Mutex::new(ledger),
            next_page: AtomicU64::new(0),
            pieces: Arc::default(),
        });
        let budget = |device| Arc::new(Self { total_bytes, device, common: Arc::clone(&common) });
        (0..count).map(budget).collect()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.common.ledger)
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the bytes that nothing uses; what is reserved is among them.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.total_bytes - self.ledger().devices[self.device].used_bytes
    }

    /// Returns the number of times that the free bytes of any device have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.ledger().changes
    }

    /// Calls `waker` when the number of changes is no longer `seen`.
    pub(crate) fn watch(&self, seen: u64, waker: Waker) {
        let mut ledger = self.ledger();
        if ledger.changes == seen {
            ledger.watcher = Some(waker);
        } else {
            drop(ledger);
            waker.wake();
        }
    }

    /// Changes the bytes of memory that is allocated, and tells who watches them.
    fn change(&self, change: impl FnOnce(&mut Ledger) -> Option<Waker>) {
        Self::change_locked(self.ledger(), change);
    }

    /// Changes the ledger, unlocks it, and tells who watches the bytes of memory that is allocated.
    fn change_locked(mut ledger: MutexGuard<'_, Ledger>, change: impl FnOnce(&mut Ledger) -> Option<Waker>) {
        let watcher = change(&mut ledger);
        drop(ledger);
        if let Some(watcher) = watcher {
            watcher.wake();
        }
    }

    /// Returns the bytes that can be used or reserved.
    pub(crate) fn available_bytes(&self) -> u64 {
        self.available(&self.ledger())
    }

    fn available(&self, ledger: &Ledger) -> u64 {
        let Given { used_bytes, reserved_bytes } = ledger.devices[self.device];
        self.total_bytes - used_bytes - reserved_bytes
    }

    /// Takes available bytes: changes the ledger if it has them.
    fn take(&self, bytes: u64, change: impl FnOnce(&mut Ledger) -> Option<Waker>) -> HipResult<()> {
        let ledger = self.ledger();
        if bytes > self.available(&ledger) {
            return Err(HipError::OUT_OF_MEMORY);
        }
        Self::change_locked(ledger, change);
        Ok(())
    }

    /// Takes bytes for an allocation.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY` if there are fewer.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> HipResult<Reservation> {
        self.take(bytes, |ledger| {
            ledger.devices[self.device].used_bytes += bytes;
            ledger.used_changed()
        })?;
        Ok(Reservation { budget: Arc::clone(self), bytes })
    }

    /// Returns the window that nobody has and whose pages suit, if there is one.
    pub(crate) fn choose_window(self: &Arc<Self>, suits: impl Fn(&Range<u64>) -> bool) -> Option<Window> {
        let (slot, pages) = self.ledger().windows.choose(suits)?;
        Some(Window { budget: Arc::clone(self), slot: Some(slot), pages })
    }

    /// Returns the window of contexts whose clients have several devices like this one, each with a context of its own: it has the same
    /// addresses for all of them. What one of them lends may be where another one has its own memory, and is not borrowed then.
    pub(crate) fn common_window(self: &Arc<Self>) -> Window {
        Window { budget: Arc::clone(self), slot: None, pages: APART_PAGES..PLAIN_PAGES }
    }

    /// Returns where to search for free pages: behind the last allocation of any context.
    pub(crate) fn next_place(&self, pages: u64) -> u64 {
        let place = |page: u64| if page.saturating_add(pages) <= PLAIN_PAGES { page } else { 0 };
        let next = |page| Some(place(page).saturating_add(pages));
        let before = self.common.next_page.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        place(before.unwrap_or(0))
    }
}

/// A used part of the budget, released when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reservation {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.change(|ledger| {
                ledger.devices[self.budget.device].used_bytes -= self.bytes;
                ledger.used_changed()
            });
        }
    }
}

/// The bytes that a context has reserved, released when dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Arc<Budget>,
    pub(crate) bytes: u64,
}

impl Reserved {
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    pub(crate) fn add(&mut self, bytes: u64) -> HipResult<()> {
        self.budget.take(bytes, |ledger| {
            ledger.devices[self.budget.device].reserved_bytes += bytes;
            None
        })?;
        self.bytes += bytes;
        Ok(())
    }

    pub(crate) fn give_back(&mut self, bytes: u64) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.ledger().devices[self.budget.device].reserved_bytes -= bytes;
    }

    /// Takes bytes for an allocation.
    pub(crate) fn take(&mut self, bytes: u64) -> HipResult<Reservation> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(HipError::OUT_OF_MEMORY)?;
        self.budget.change(|ledger| {
            let given = &mut ledger.devices[self.budget.device];
            given.reserved_bytes -= bytes;
            given.used_bytes += bytes;
            ledger.used_changed()
        });
        Ok(Reservation { budget: Arc::clone(&self.budget), bytes })
    }

    /// Adds the bytes of an allocation that is gone; nobody can have them in between.
    pub(crate) fn put(&mut self, mut reservation: Reservation) {
        let bytes = std::mem::take(&mut reservation.bytes);
        self.bytes += bytes;
        self.budget.change(|ledger| {
            let given = &mut ledger.devices[self.budget.device];
            given.reserved_bytes += bytes;
            given.used_bytes -= bytes;
            ledger.used_changed()
        });
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.give_back(u64::MAX);
    }
}

/// A window of addresses, given back when dropped.
#[derive(Debug)]
pub(crate) struct Window {
    budget: Arc<Budget>,
    /// Its number; `None` for the one that contexts have together.
    slot: Option<Slot>,
    pub(crate) pages: Range<u64>,
}

impl Drop for Window {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.budget.ledger().windows.give_back(slot);
        }
    }
}
