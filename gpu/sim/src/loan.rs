//! Memory and events that contexts of one device share, by handles that cannot be guessed. (HIP API: hipIpcGetMemHandle,
//! hipIpcGetEventHandle.)

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, Weak};

use hipr_grid::lock;
use hipr_proto::{HipError, HipResult};

use crate::alloc::Memory;
use crate::event::Slot;
use crate::name::{LoanHandle, Name};
use crate::physical::Physical;

/// The shared memory and events of the device. Once all contexts have released something it cannot be opened any more.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    memory: Mutex<Table<Memory>>,
    physical: Mutex<Table<Physical>>,
    events: Mutex<Table<Slot>>,
}

#[derive(Debug)]
struct Table<T> {
    lent: HashMap<LoanHandle, Weak<T>>,
    /// Table size at which released entries are removed.
    tidy_len: usize,
}

const TIDY_LEN_MIN: usize = 64;

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { lent: HashMap::new(), tidy_len: TIDY_LEN_MIN }
    }
}

impl<T> Table<T> {
    fn lend(&mut self, thing: &Arc<T>, name: &Name) -> HipResult<LoanHandle> {
        if let Some(handle) = name.0.get() {
            return Ok(*handle);
        }
        let handle = random()?;
        if self.lent.len() >= self.tidy_len {
            self.lent.retain(|_, lent| lent.strong_count() > 0);
            self.tidy_len = (2 * self.lent.len()).max(TIDY_LEN_MIN);
        }
        self.lent.insert(handle, Arc::downgrade(thing));
        // Nobody else sets it: the table is locked.
        Ok(*name.0.get_or_init(|| handle))
    }

    fn borrow(&self, handle: &LoanHandle) -> HipResult<Arc<T>> {
        self.lent.get(handle).and_then(Weak::upgrade).ok_or(HipError::INVALID_VALUE)
    }
}

fn random() -> HipResult<LoanHandle> {
    let mut bytes = [0; size_of::<LoanHandle>()];
    let filled = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    filled.map_err(|_| HipError::OPERATING_SYSTEM)?;
    Ok(bytes)
}

impl Loans {
    /// Returns a handle with which another session can open the memory.
    ///
    /// # Errors
    /// `OPERATING_SYSTEM`: there are no random numbers; as below.
    pub(crate) fn lend_memory(&self, memory: &Arc<Memory>) -> HipResult<LoanHandle> {
        lock(&self.memory).lend(memory, &memory.name)
    }

    /// Returns the memory of a handle.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is none; as below.
    pub(crate) fn borrow_memory(&self, handle: &LoanHandle) -> HipResult<Arc<Memory>> {
        lock(&self.memory).borrow(handle)
    }

    /// Returns the handle of physical memory.
    pub(crate) fn lend_physical(&self, physical: &Arc<Physical>) -> HipResult<LoanHandle> {
        lock(&self.physical).lend(physical, &physical.name)
    }

    /// Returns the physical memory of a handle.
    pub(crate) fn borrow_physical(&self, handle: &LoanHandle) -> HipResult<Arc<Physical>> {
        lock(&self.physical).borrow(handle)
    }

    /// Returns the handle of an event.
    pub(crate) fn lend_event(&self, event: &Arc<Slot>) -> HipResult<LoanHandle> {
        lock(&self.events).lend(event, &event.name)
    }

    /// Returns the event of a handle.
    pub(crate) fn borrow_event(&self, handle: &LoanHandle) -> HipResult<Arc<Slot>> {
        lock(&self.events).borrow(handle)
    }
}
