//! Virtual memory of the process: reserved addresses, physical memory, and what is mapped where. Nothing here is sent.

use std::collections::BTreeMap;

use hipr_abi::{hipMemAllocationHandleType, hipMemAllocationType};
use hipr_proto::{HipError, HipResult};

use crate::convert::Ptr;

/// What the program has said of physical memory that it made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Properties {
    /// The kind of memory.
    pub allocation_type: hipMemAllocationType,
    /// The kind of handle by which it can be shared.
    pub handle_type: hipMemAllocationHandleType,
    /// The device that has it.
    pub device: i32,
    /// The flags, which mean nothing here.
    pub flags: [u8; 4],
}

/// Physical memory, by its handle.
#[derive(Clone, Copy, Debug)]
struct Physical {
    size: usize,
    properties: Properties,
    /// Number of times that the program has the handle.
    handles: usize,
    mappings: usize,
}

/// Physical memory at an address.
#[derive(Clone, Debug)]
struct Mapping {
    size: usize,
    physical: Ptr,
    /// The access that devices have, as far as it was set.
    access: BTreeMap<i32, i32>,
}

/// What the process has reserved, allocated and mapped.
#[derive(Debug, Default)]
pub struct Mappings {
    ranges: BTreeMap<usize, usize>,
    physical: BTreeMap<Ptr, Physical>,
    mapped: BTreeMap<usize, Mapping>,
}

impl Mappings {
    /// Adds a reserved range.
    pub fn add_range(&mut self, ptr: Ptr, size: usize) {
        self.ranges.insert(ptr.0, size);
    }

    /// Removes a reserved range.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if it is none, or something is mapped in it.
    pub fn remove_range(&mut self, ptr: Ptr, size: usize) -> HipResult<()> {
        let is_one = self.ranges.get(&ptr.0) == Some(&size);
        if !is_one || self.mapped.range(ptr.0..ptr.0.saturating_add(size)).next().is_some() {
            return Err(HipError::INVALID_VALUE);
        }
        self.ranges.remove(&ptr.0);
        Ok(())
    }

    /// Adds physical memory, of which the program has the handle once.
    pub fn add_physical(&mut self, handle: Ptr, size: usize, properties: Properties) {
        self.physical.insert(handle, Physical { size, properties, handles: 1, mappings: 0 });
    }

    /// Returns physical memory of which the program has the handle.
    fn physical(&mut self, handle: Ptr) -> HipResult<&mut Physical> {
        self.physical.get_mut(&handle).filter(|it| it.handles > 0).ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the properties of physical memory.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for what is no handle.
    pub fn properties(&mut self, handle: Ptr) -> HipResult<Properties> {
        self.physical(handle).map(|physical| physical.properties)
    }

    /// Gives up a handle once; returns whether the memory is to be given back.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for what is no handle.
    pub fn release(&mut self, handle: Ptr) -> HipResult<bool> {
        self.physical(handle)?.handles -= 1;
        Ok(self.drop_unused(handle))
    }

    /// Removes physical memory if nothing has it.
    fn drop_unused(&mut self, handle: Ptr) -> bool {
        let is_unused = self.physical.get(&handle).is_some_and(|it| it.handles == 0 && it.mappings == 0);
        if is_unused {
            self.physical.remove(&handle);
        }
        is_unused
    }

    /// Returns the handle of the memory that is mapped at an address, which the program then has once more.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if nothing is mapped there.
    pub fn retain(&mut self, ptr: Ptr) -> HipResult<Ptr> {
        let handle = self.at(ptr)?.physical;
        if let Some(physical) = self.physical.get_mut(&handle) {
            physical.handles += 1;
        }
        Ok(handle)
    }

    /// Returns the mapping that contains an address.
    fn at(&self, ptr: Ptr) -> HipResult<&Mapping> {
        let (base, mapping) = self.mapped.range(..=ptr.0).next_back().ok_or(HipError::INVALID_VALUE)?;
        if ptr.0 - base < mapping.size { Ok(mapping) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Maps all of physical memory at an address; returns the device that has it.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for what is no handle, a size that the memory does not have, and addresses that are not all of one reserved range or
    /// have something.
    pub fn map(&mut self, ptr: Ptr, size: usize, handle: Ptr) -> HipResult<i32> {
        let physical = *self.physical(handle)?;
        let end = ptr.0.checked_add(size).filter(|_| size == physical.size).ok_or(HipError::INVALID_VALUE)?;
        let range = self.ranges.range(..=ptr.0).next_back();
        let is_reserved = range.is_some_and(|(base, size)| end <= base + size);
        let before = self.mapped.range(..end).next_back();
        let is_free = before.is_none_or(|(at, before)| at + before.size <= ptr.0);
        if !is_reserved || !is_free {
            return Err(HipError::INVALID_VALUE);
        }
        self.physical(handle)?.mappings += 1;
        self.mapped.insert(ptr.0, Mapping { size, physical: handle, access: BTreeMap::new() });
        Ok(physical.properties.device)
    }

    /// Sets the access of devices to the mappings that are these bytes.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if the bytes are not whole mappings that follow each other.
    pub fn set_access(&mut self, ptr: Ptr, size: usize, access: &[(i32, i32)]) -> HipResult<()> {
        let end = ptr.0.checked_add(size).filter(|end| *end > ptr.0).ok_or(HipError::INVALID_VALUE)?;
        let mut next = ptr.0;
        for (&at, mapping) in self.mapped.range(ptr.0..end) {
            if at != next {
                break;
            }
            next = at + mapping.size;
        }
        if next != end {
            return Err(HipError::INVALID_VALUE);
        }
        for (_, mapping) in self.mapped.range_mut(ptr.0..end) {
            mapping.access.extend(access.iter().copied());
        }
        Ok(())
    }

    /// Returns the access that a device has at an address.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if nothing is mapped there, or the device's access was never set.
    pub fn access(&self, ptr: Ptr, device: i32) -> HipResult<i32> {
        self.at(ptr)?.access.get(&device).copied().ok_or(HipError::INVALID_VALUE)
    }

    /// Ends a mapping; returns the handle of its memory if that is to be given back.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` if it is none.
    pub fn unmap(&mut self, ptr: Ptr, size: usize) -> HipResult<Option<Ptr>> {
        let physical = match self.mapped.get(&ptr.0) {
            Some(mapping) if mapping.size == size => mapping.physical,
            _ => return Err(HipError::INVALID_VALUE),
        };
        self.mapped.remove(&ptr.0);
        if let Some(physical) = self.physical.get_mut(&physical) {
            physical.mappings -= 1;
        }
        Ok(self.drop_unused(physical).then_some(physical))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: HipError = HipError::INVALID_VALUE;

    fn mappings() -> Mappings {
        let mut mappings = Mappings::default();
        mappings.add_range(Ptr(0x1000), 0x800);
        mappings.add_range(Ptr(0x1800), 0x800);
        mappings.add_physical(Ptr(1), 0x200, Properties::default());
        mappings.add_physical(Ptr(2), 0x100, Properties::default());
        mappings
    }

    #[test]
    fn memory_is_mapped_whole_in_one_range_beside_others() {
        for (ptr, size, handle, expected) in [
            (0x1000, 0x200, 1, Ok(0)),
            (0x1600, 0x200, 1, Ok(0)),
            (0x1700, 0x200, 1, Err(REFUSED)),
            (0x1e00, 0x200, 1, Ok(0)),
            (0x1e01, 0x200, 1, Err(REFUSED)),
            (0xf00, 0x200, 1, Err(REFUSED)),
            (0x1000, 0x100, 1, Err(REFUSED)),
            (0x1000, 0, 1, Err(REFUSED)),
            (usize::MAX, 0x200, 1, Err(REFUSED)),
            (0x1000, 0x200, 3, Err(REFUSED)),
        ] {
            assert_eq!(mappings().map(Ptr(ptr), size, Ptr(handle)), expected, "{ptr:#x} {size:#x} {handle}");
        }
        let mut mappings = mappings();
        mappings.map(Ptr(0x1200), 0x200, Ptr(1)).expect("a place");
        for (ptr, is_free) in [(0x1100, true), (0x1101, false), (0x13ff, false), (0x1400, true)] {
            assert_eq!(mappings.map(Ptr(ptr), 0x100, Ptr(2)).is_ok(), is_free, "{ptr:#x}");
        }
        assert_eq!(mappings.remove_range(Ptr(0x1000), 0x800), Err(REFUSED), "something is mapped");
        for (ptr, size) in [(0x1200, 0x100), (0x1201, 0x1ff), (0x1100, 0x300), (0x1600, 0x200)] {
            assert_eq!(mappings.unmap(Ptr(ptr), size), Err(REFUSED), "{ptr:#x} {size:#x}");
        }
        for (ptr, size) in [(0x1200, 0x200), (0x1100, 0x100), (0x1400, 0x100)] {
            assert_eq!(mappings.unmap(Ptr(ptr), size), Ok(None));
        }
        assert_eq!(mappings.remove_range(Ptr(0x1000), 0x7ff), Err(REFUSED));
        assert_eq!(mappings.remove_range(Ptr(0x1000), 0x800), Ok(()));
    }

    #[test]
    fn access_is_that_of_whole_mappings() {
        let mut mappings = mappings();
        mappings.map(Ptr(0x1000), 0x200, Ptr(1)).expect("a place");
        mappings.map(Ptr(0x1200), 0x200, Ptr(1)).expect("a place");
        mappings.map(Ptr(0x1500), 0x100, Ptr(2)).expect("a place");
        assert_eq!(mappings.access(Ptr(0x1000), 0), Err(REFUSED), "it was never set");
        for (ptr, size) in
            [(0x1000, 0x100), (0x1100, 0x100), (0x1000, 0x500), (0x1000, 0x600), (0x1400, 0x100)]
        {
            assert_eq!(mappings.set_access(Ptr(ptr), size, &[(0, 3)]), Err(REFUSED), "{ptr:#x} {size:#x}");
        }
        assert_eq!(mappings.set_access(Ptr(0x1000), 0x400, &[(0, 3), (1, 1)]), Ok(()));
        let access = |ptr, device| mappings.access(Ptr(ptr), device);
        assert_eq!((access(0x1000, 0), access(0x13ff, 1), access(0x1000, 2)), (Ok(3), Ok(1), Err(REFUSED)));
        assert_eq!((access(0x1400, 0), access(0x1500, 0)), (Err(REFUSED), Err(REFUSED)));
    }

    #[test]
    fn memory_is_given_back_when_nothing_has_it() {
        let mut mappings = mappings();
        mappings.map(Ptr(0x1000), 0x200, Ptr(1)).expect("a place");
        assert_eq!(mappings.retain(Ptr(0x11ff)), Ok(Ptr(1)));
        assert_eq!(mappings.retain(Ptr(0x1200)), Err(REFUSED));
        assert_eq!((mappings.release(Ptr(1)), mappings.release(Ptr(1))), (Ok(false), Ok(false)));
        assert_eq!(mappings.release(Ptr(1)), Err(REFUSED), "the program has no handle");
        assert_eq!(mappings.map(Ptr(0x1400), 0x200, Ptr(1)), Err(REFUSED));
        assert_eq!(mappings.retain(Ptr(0x1000)), Ok(Ptr(1)), "it is mapped");
        assert_eq!(mappings.release(Ptr(1)), Ok(false));
        assert_eq!(mappings.unmap(Ptr(0x1000), 0x200), Ok(Some(Ptr(1))));
        assert_eq!(mappings.release(Ptr(2)), Ok(true));
        assert!(mappings.properties(Ptr(2)).is_err());
    }
}
