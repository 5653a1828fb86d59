//! Objects of the program that graphs keep alive: how many references there are to each.

use std::collections::HashMap;

use hipr_proto::{HipError, HipResult};

/// The numbers of references to a client's user objects (HIP API: hipUserObject_t).
#[derive(Debug, Default)]
pub struct Objects {
    references: HashMap<u64, u64>,
    /// Objects without references that [`take_ended`](Self::take_ended) has not returned yet.
    ended: Vec<u64>,
}

impl Objects {
    /// Adds an object with its first references (HIP API: hipUserObjectCreate).
    pub fn insert(&mut self, object: u64, count: u64) {
        self.references.insert(object, count);
    }

    /// Adds references (HIP API: hipUserObjectRetain).
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such object.
    pub fn retain(&mut self, object: u64, count: u64) -> HipResult<()> {
        let known = self.references.get_mut(&object).ok_or(HipError::INVALID_VALUE)?;
        *known = known.saturating_add(count);
        Ok(())
    }

    /// Removes references (HIP API: hipUserObjectRelease). With the last one the object ends.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is no such object, or it has fewer references; then nothing has changed.
    pub fn release(&mut self, object: u64, count: u64) -> HipResult<()> {
        self.check(object, count)?;
        let left = self.references.get(&object).map_or(0, |known| known - count);
        if left > 0 {
            self.references.insert(object, left);
        } else {
            self.references.remove(&object);
            self.ended.push(object);
        }
        Ok(())
    }

    /// Checks that an object has at least `count` references.
    pub(crate) fn check(&self, object: u64, count: u64) -> HipResult<()> {
        let known = self.references.get(&object).filter(|known| **known >= count);
        known.map(drop).ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the objects whose last reference is gone, in the order in which they ended; each is returned once.
    pub fn take_ended(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.ended)
    }
}
