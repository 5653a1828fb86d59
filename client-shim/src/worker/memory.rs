//! The process's device memory, to classify addresses without asking the worker.

use std::collections::{BTreeMap, BTreeSet};

use hipr_proto::{HipError, HipResult};

use crate::convert::Ptr;
use crate::worker::reserve::Reserved;

/// The origin of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `hipMalloc` and similar functions.
    Device,
    /// A variable of a module.
    Global,
    /// An IPC handle of another process.
    Ipc,
    /// Physical memory that is mapped at reserved addresses. Such mappings that follow each other are used like one allocation.
    Mapped,
}

/// A contiguous piece of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Address of the first byte.
    pub base: Ptr,
    /// Size in bytes.
    pub size_bytes: usize,
    /// Origin of the memory.
    pub kind: Kind,
    /// The device that has the memory.
    pub device: i32,
    /// Flags of the allocation.
    pub flags: u32,
    /// Whether the process has memory of its own at the same addresses, as determined when the allocation was added.
    pub is_ambiguous: bool,
}

impl Allocation {
    /// Returns the number of bytes from `address` to the end.
    #[inline]
    pub fn bytes_from(&self, address: Ptr) -> usize {
        (self.base.0 + self.size_bytes).saturating_sub(address.0)
    }
}

/// All device memory of the process.
#[derive(Debug, Default)]
pub struct Memory {
    by_base: BTreeMap<usize, Allocation>,
    /// The allocations on which operations wait, by their bases.
    synchronous: BTreeSet<usize>,
    /// The devices of which memory was ever allocated.
    used: BTreeSet<i32>,
    reserved: Reserved,
}

impl Memory {
    /// Creates the table without allocations, for the memory of one worker or of several.
    pub(crate) fn new(are_several: bool) -> Self {
        let reserved = if are_several { Reserved::with_low() } else { Reserved::default() };
        Self { reserved, ..Self::default() }
    }

    /// Reserves addresses for device memory; returns false if the process uses some of them.
    pub(crate) fn claim(&mut self, base: Ptr, size_bytes: usize) -> bool {
        self.reserved.claim(base, size_bytes)
    }

    /// Adds an allocation. One of no bytes is not noted: it has no address.
    pub fn insert(&mut self, mut allocation: Allocation) {
        if allocation.size_bytes > 0 {
            allocation.is_ambiguous = !self.claim(allocation.base, allocation.size_bytes);
            self.by_base.insert(allocation.base.0, allocation);
            self.used.insert(allocation.device);
        }
    }

    /// Returns the device of an allocation that has some of these bytes and whose device is not `but_for`.
    pub(crate) fn device_within(
        &self,
        base: Ptr,
        size_bytes: usize,
        but_for: impl Fn(i32) -> bool,
    ) -> Option<i32> {
        let end = base.0.saturating_add(size_bytes);
        let others = self.by_base.range(..end).rev().map(|(_, allocation)| allocation);
        let mut overlapping = others.take_while(|other| other.base.0 + other.size_bytes > base.0);
        overlapping.find(|other| !but_for(other.device)).map(|other| other.device)
    }

    /// Returns whether memory of a device was ever allocated.
    pub(crate) fn was_used(&self, device: i32) -> bool {
        self.used.contains(&device)
    }

    /// Gives addresses that device memory had back to the process. Does nothing if device memory still has some of them.
    pub fn release(&mut self, base: Ptr, len: usize) {
        if self.device_within(base, len, |_| false).is_none() {
            self.reserved.release(base, len);
        }
    }

    /// Removes the allocation that begins at `base`, and returns it.
    pub fn remove(&mut self, base: Ptr) -> Option<Allocation> {
        self.synchronous.remove(&base.0);
        self.by_base.remove(&base.0)
    }

    /// Notes whether operations on the allocation that contains `address` wait. Returns false if there is none.
    pub fn set_synchronous(&mut self, address: Ptr, is_synchronous: bool) -> bool {
        let Some(Allocation { base, .. }) = self.find(address) else { return false };
        if is_synchronous {
            self.synchronous.insert(base.0);
        } else {
            self.synchronous.remove(&base.0);
        }
        true
    }

    /// Returns whether operations on the allocation that contains `address` wait.
    pub fn is_synchronous(&self, address: Ptr) -> bool {
        self.find(address).is_some_and(|found| self.synchronous.contains(&found.base.0))
    }

    /// Returns the allocation that contains `address`.
    #[inline(always)]
    pub fn find(&self, address: Ptr) -> Option<Allocation> {
        self.at(address).copied()
    }

    #[inline(always)]
    fn at(&self, address: Ptr) -> Option<&Allocation> {
        let (_, allocation) = self.by_base.range(..=address.0).next_back()?;
        (allocation.bytes_from(address) > 0).then_some(allocation)
    }

    /// Returns the allocation that contains `address`, of mappings with all that follow it without a gap: the memory to which an operation
    /// may extend.
    #[inline(always)]
    pub fn extent(&self, address: Ptr) -> Option<Allocation> {
        match self.at(address) {
            Some(found) if found.kind == Kind::Mapped => Some(self.with_neighbours(*found)),
            found => found.copied(),
        }
    }

    #[cold]
    fn with_neighbours(&self, mut found: Allocation) -> Allocation {
        let next = |end: usize| self.by_base.get(&end).filter(|next| next.kind == Kind::Mapped);
        while let Some(next) = next(found.base.0 + found.size_bytes) {
            found.size_bytes += next.size_bytes;
        }
        found
    }

    /// Returns the allocation that contains `address`; fails if `len` bytes from there on go beyond its end.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`.
    pub fn check_range(&self, address: Ptr, len: usize) -> HipResult<Option<Allocation>> {
        match self.extent(address) {
            Some(allocation) if allocation.bytes_from(address) < len => Err(HipError::INVALID_VALUE),
            found => Ok(found),
        }
    }

    /// Returns the addresses of the memory of a device that the program has allocated.
    pub(crate) fn device_memory(&self, device: i32) -> Vec<Ptr> {
        let is_own =
            |allocation: &&Allocation| allocation.device == device && allocation.kind == Kind::Device;
        self.by_base.values().filter(is_own).map(|allocation| allocation.base).collect()
    }

    /// Removes all allocations on `device`.
    pub fn clear(&mut self, device: i32) {
        self.by_base.retain(|_, allocation| allocation.device != device);
        self.synchronous.retain(|base| self.by_base.contains_key(base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(ranges: &[(usize, usize)]) -> Memory {
        let mut memory = Memory::default();
        for (base, size_bytes) in ranges {
            memory.insert(Allocation {
                base: Ptr(*base),
                size_bytes: *size_bytes,
                kind: Kind::Device,
                device: 0,
                flags: 0,
                is_ambiguous: false,
            });
        }
        memory
    }

    #[test]
    fn addresses_belong_to_the_allocation_they_are_in() {
        let memory = memory(&[(0x1000, 0x100), (0x2000, 1)]);
        let base = |address| memory.find(Ptr(address)).map(|a| a.base.0);
        assert_eq!(base(0xfff), None);
        assert_eq!(base(0x1000), Some(0x1000));
        assert_eq!(base(0x10ff), Some(0x1000));
        assert_eq!(base(0x1100), None);
        assert_eq!(base(0x2000), Some(0x2000));
        assert_eq!(base(0x2001), None);
    }

    #[test]
    fn ranges_end_where_their_allocation_ends() {
        let memory = memory(&[(0x1000, 0x100)]);
        assert!(memory.check_range(Ptr(0x1080), 0x80).is_ok_and(|found| found.is_some()));
        assert_eq!(memory.check_range(Ptr(0x1080), 0x81), Err(HipError::INVALID_VALUE));
        assert_eq!(memory.check_range(Ptr(0x3000), 5), Ok(None));
    }

    #[test]
    fn mappings_that_follow_each_other_are_one_extent() {
        let mut memory = memory(&[(0x1300, 0x100)]);
        for base in [0x1000, 0x1100, 0x1200, 0x1500] {
            memory.insert(Allocation {
                base: Ptr(base),
                size_bytes: 0x100,
                kind: Kind::Mapped,
                device: 0,
                flags: 0,
                is_ambiguous: false,
            });
        }
        assert!(memory.check_range(Ptr(0x1080), 0x280).is_ok_and(|found| found.is_some()));
        assert_eq!(memory.check_range(Ptr(0x1080), 0x281), Err(HipError::INVALID_VALUE), "another kind");
        assert_eq!(memory.check_range(Ptr(0x1300), 0x101), Err(HipError::INVALID_VALUE));
        assert_eq!(
            memory.find(Ptr(0x1180)).map(|found| (found.base, found.size_bytes)),
            Some((Ptr(0x1100), 0x100))
        );
        memory.remove(Ptr(0x1100));
        assert_eq!(memory.check_range(Ptr(0x1080), 0x81), Err(HipError::INVALID_VALUE));
    }

    #[test]
    fn what_is_removed_is_unknown() {
        let mut memory = memory(&[(0x1000, 0x100)]);
        assert!(memory.remove(Ptr(0x1001)).is_none());
        assert!(memory.remove(Ptr(0x1000)).is_some());
        assert!(memory.find(Ptr(0x1000)).is_none());
    }

    #[test]
    fn what_waits_is_forgotten_with_its_allocation() {
        let mut memory = memory(&[(0x1000, 0x100)]);
        assert!(!memory.set_synchronous(Ptr(0x1100), true));
        assert!(memory.set_synchronous(Ptr(0x1080), true));
        assert!(memory.is_synchronous(Ptr(0x1001)));
        let Some(allocation) = memory.remove(Ptr(0x1000)) else { panic!("the allocation is there") };
        memory.insert(allocation);
        assert!(!memory.is_synchronous(Ptr(0x1001)));
    }
}
