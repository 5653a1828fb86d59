//! What contexts of one device lend each other: memory and events, by handles that nobody can guess. (HIP API:
//! hipIpcGetMemHandle, hipIpcGetEventHandle.)

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use hipr_proto::{HipError, HipResult};

use crate::alloc::Memory;
use crate::event::Slot;
use crate::executor::lock;

/// Names something that a context lends: 64 random bytes.
pub type LoanHandle = [u8; 64];

/// A handle that is made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Name(OnceLock<LoanHandle>);

/// Loans of the device. What is gone for its lender and all borrowers cannot be borrowed any more.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    memory: Mutex<Table<Memory>>,
    events: Mutex<Table<Slot>>,
}

#[derive(Debug)]
struct Table<T> {
    lent: HashMap<LoanHandle, Weak<T>>,
    /// At this length what is gone is thrown out.
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
    /// The handle of memory.
    ///
    /// # Errors
    /// `OPERATING_SYSTEM`: there are no random numbers; as below.
    pub(crate) fn lend_memory(&self, memory: &Arc<Memory>) -> HipResult<LoanHandle> {
        lock(&self.memory).lend(memory, &memory.name)
    }

    /// The memory of a handle.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is none; as below.
    pub(crate) fn borrow_memory(&self, handle: &LoanHandle) -> HipResult<Arc<Memory>> {
        lock(&self.memory).borrow(handle)
    }

    /// The handle of an event.
    pub(crate) fn lend_event(&self, event: &Arc<Slot>) -> HipResult<LoanHandle> {
        lock(&self.events).lend(event, &event.name)
    }

    /// The event of a handle.
    pub(crate) fn borrow_event(&self, handle: &LoanHandle) -> HipResult<Arc<Slot>> {
        lock(&self.events).borrow(handle)
    }
}
