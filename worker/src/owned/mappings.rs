//! Physical memory, reserved addresses, and which memory is mapped where.
//!
//! What a client may access of it is in the table of allocations: one allocation for each mapping, with [`Origin::Mapped`].

use std::collections::BTreeMap;
use std::task::Poll;

use hipr_device::{Context, MemoryKind};
use hipr_proto::{HipError, HipResult};

use super::{Allocation, Origin, Owned};

/// What a session has mapped.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    /// The reserved ranges: first address and size.
    ranges: BTreeMap<u64, u64>,
    physical: BTreeMap<u64, Physical>,
    /// The mappings by their first addresses.
    mapped: BTreeMap<u64, Mapping>,
}

/// Physical memory, by the device's handle.
#[derive(Clone, Copy, Debug)]
struct Physical {
    size_bytes: u64,
    device: i32,
    mappings: usize,
    /// Whether the client has given the handle up. The device has it until nothing is mapped any more, so that it gives no other memory
    /// the same one.
    is_released: bool,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    size_bytes: u64,
    physical: u64,
}

/// A change of mappings for which the device's work may have to be waited.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Remap {
    /// Gives or takes access.
    SetAccess { ptr: u64, size_bytes: u64, device: i32, access: u32 },
    /// Ends a mapping.
    Unmap { ptr: u64, size_bytes: u64 },
}

impl Remap {
    /// Makes the change; becomes ready when it is made.
    pub(crate) fn poll(self, context: &mut dyn Context) -> Poll<HipResult<()>> {
        let mapper = match Owned::mapper(context) {
            Ok(mapper) => mapper,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match self {
            Self::SetAccess { ptr, size_bytes, device, access } => {
                mapper.poll_set_access(ptr, size_bytes, device, access)
            }
            Self::Unmap { ptr, size_bytes } => mapper.poll_unmap(ptr, size_bytes),
        }
    }
}

impl Mappings {
    /// Returns the number of ranges, pieces of memory and mappings.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len() + self.physical.len() + self.mapped.len()
    }

    /// Adds a reserved range.
    pub(crate) fn add_range(&mut self, ptr: u64, size_bytes: u64) {
        self.ranges.insert(ptr, size_bytes);
    }

    /// Removes a reserved range.
    ///
    /// # Errors
    /// `INVALID_VALUE` if it is none, or something is mapped in it.
    pub(crate) fn remove_range(&mut self, ptr: u64, size_bytes: u64) -> HipResult<()> {
        let is_one = self.ranges.get(&ptr) == Some(&size_bytes);
        if !is_one || self.mapped.range(ptr..ptr.saturating_add(size_bytes)).next().is_some() {
            return Err(HipError::INVALID_VALUE);
        }
        self.ranges.remove(&ptr);
        Ok(())
    }

    /// Returns the physical memory with a handle.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    fn physical(&self, handle: u64) -> HipResult<&Physical> {
        self.physical.get(&handle).filter(|it| !it.is_released).ok_or(HipError::INVALID_HANDLE)
    }

    /// Checks that physical memory exists.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub(crate) fn check_physical(&self, handle: u64) -> HipResult<()> {
        self.physical(handle).map(drop)
    }

    /// Checks that physical memory of this size can be mapped at an address.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_VALUE` if it has another size, if the addresses are not all of one range, or if something is mapped there.
    pub(crate) fn check_map(&self, ptr: u64, size_bytes: u64, handle: u64) -> HipResult<()> {
        let has_size = self.physical(handle)?.size_bytes == size_bytes;
        let end = ptr.checked_add(size_bytes).filter(|_| has_size).ok_or(HipError::INVALID_VALUE)?;
        let range = self.ranges.range(..=ptr).next_back();
        let is_reserved = range.is_some_and(|(base, size)| end <= base + size);
        let before = self.mapped.range(..end).next_back();
        let is_free = before.is_none_or(|(at, before)| at + before.size_bytes <= ptr);
        if is_reserved && is_free { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Adds a mapping that was checked.
    pub(crate) fn add_mapping(&mut self, ptr: u64, size_bytes: u64, handle: u64) {
        self.mapped.insert(ptr, Mapping { size_bytes, physical: handle });
        if let Some(physical) = self.physical.get_mut(&handle) {
            physical.mappings += 1;
        }
    }

    /// Checks that a mapping is at an address.
    ///
    /// # Errors
    /// `INVALID_VALUE`.
    pub(crate) fn check_mapping(&self, ptr: u64, size_bytes: u64) -> HipResult<()> {
        let found = self.mapped.get(&ptr).filter(|mapping| mapping.size_bytes == size_bytes);
        found.map(drop).ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the mappings that are these bytes: address, size, and the device that has the memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the bytes are not whole mappings of one range that follow each other.
    pub(crate) fn whole(&self, ptr: u64, size_bytes: u64) -> HipResult<Vec<(u64, u64, i32)>> {
        let end = ptr.checked_add(size_bytes).filter(|end| *end > ptr).ok_or(HipError::INVALID_VALUE)?;
        let range = self.ranges.range(..=ptr).next_back();
        let is_reserved = range.is_some_and(|(base, size)| end <= base + size);
        let (mut found, mut next) = (Vec::new(), ptr);
        for (&at, mapping) in self.mapped.range(ptr..end) {
            if at != next {
                break;
            }
            let device = self.physical.get(&mapping.physical).map_or(0, |physical| physical.device);
            found.push((at, mapping.size_bytes, device));
            next = at + mapping.size_bytes;
        }
        if is_reserved && next == end { Ok(found) } else { Err(HipError::INVALID_VALUE) }
    }
}

impl Owned {
    /// Returns the context's mappings.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` if the device maps nothing.
    pub(crate) fn mapper(context: &mut dyn Context) -> HipResult<&mut dyn hipr_device::Mappings> {
        context.mappings().ok_or(HipError::NOT_SUPPORTED)
    }

    /// Adds physical memory of the session.
    pub(crate) fn add_physical(&mut self, handle: u64, size_bytes: u64, device: i32) {
        self.memory_bytes = self.memory_bytes.saturating_add(size_bytes);
        let physical = Physical { size_bytes, device, mappings: 0, is_released: false };
        self.mappings.physical.insert(handle, physical);
    }

    /// Gives up the handle of physical memory.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of the device.
    pub(crate) fn release_physical(&mut self, handle: u64) -> HipResult<()> {
        self.mappings.check_physical(handle)?;
        if let Some(physical) = self.mappings.physical.get_mut(&handle) {
            physical.is_released = true;
        }
        self.drop_unused(handle)
    }

    /// Gives physical memory back if nothing has it any more.
    fn drop_unused(&mut self, handle: u64) -> HipResult<()> {
        let found = self.mappings.physical.get(&handle).copied();
        let Some(unused) = found.filter(|it| it.is_released && it.mappings == 0) else { return Ok(()) };
        self.mappings.physical.remove(&handle);
        self.memory_bytes = self.memory_bytes.saturating_sub(unused.size_bytes);
        Self::mapper(self.context()?)?.release(handle)
    }

    /// Handles that mappings have changed.
    ///
    /// # Errors
    /// Those of the device.
    pub(crate) fn remapped(&mut self, remap: Remap) -> HipResult<()> {
        match remap {
            Remap::SetAccess { ptr, size_bytes, access, .. } => self.access_set(ptr, size_bytes, access != 0),
            Remap::Unmap { ptr, .. } => self.unmapped(ptr),
        }
    }

    /// # Errors
    /// `INVALID_VALUE`: see [`Mappings::whole`].
    fn access_set(&mut self, ptr: u64, size_bytes: u64, is_accessible: bool) -> HipResult<()> {
        for (base, size_bytes, device) in self.mappings.whole(ptr, size_bytes)? {
            if is_accessible {
                let (kind, origin) = (MemoryKind::Device, Origin::Mapped);
                self.add_allocation(Allocation { base, size_bytes, kind, flags: 0, device, origin });
            } else {
                self.allocations.remove(&base);
            }
        }
        Ok(())
    }

    /// # Errors
    /// Those of the device.
    fn unmapped(&mut self, ptr: u64) -> HipResult<()> {
        self.allocations.remove(&ptr);
        let Some(mapping) = self.mappings.mapped.remove(&ptr) else { return Ok(()) };
        if let Some(physical) = self.mappings.physical.get_mut(&mapping.physical) {
            physical.mappings = physical.mappings.saturating_sub(1);
        }
        self.drop_unused(mapping.physical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_lies_in_one_range_and_beside_others() {
        let mut owned = Owned::default();
        owned.add_physical(1, 0x200, 3);
        owned.add_physical(2, 0x100, 3);
        assert_eq!(owned.memory_bytes(), 0x300);
        let refused = Err(HipError::INVALID_VALUE);
        assert_eq!(owned.mappings.check_map(0x1000, 0x200, 1), refused, "no range");
        owned.mappings.add_range(0x1000, 0x800);
        owned.mappings.add_range(0x1800, 0x800);
        for (ptr, size, expected) in [
            (0x1000, 0x200, Ok(())),
            (0x1600, 0x200, Ok(())),
            (0x1700, 0x200, refused),
            (0x1800, 0x200, Ok(())),
            (0x1e01, 0x200, refused),
            (0xfff, 0x200, refused),
            (0x1000, 0x100, refused),
            (u64::MAX, 0x200, refused),
        ] {
            assert_eq!(owned.mappings.check_map(ptr, size, 1), expected, "{ptr:#x} {size:#x}");
        }
        assert_eq!(owned.mappings.check_map(0x1000, 0x200, 7), Err(HipError::INVALID_HANDLE));
        owned.mappings.add_mapping(0x1200, 0x200, 1);
        for (ptr, expected) in
            [(0x1100, Ok(())), (0x1101, refused), (0x13ff, refused), (0x1400, Ok(())), (0x1200, refused)]
        {
            assert_eq!(owned.mappings.check_map(ptr, 0x100, 2), expected, "{ptr:#x}");
        }
        assert_eq!(owned.mappings.remove_range(0x1000, 0x800), refused, "in use");
        assert_eq!(owned.mappings.remove_range(0x1800, 0x700), refused);
        assert_eq!(owned.mappings.remove_range(0x1800, 0x800), Ok(()));
    }

    #[test]
    fn a_region_extends_over_accessible_neighbours_only() {
        let mut owned = Owned::default();
        let check = |owned: &Owned, ptr, len| owned.check_region(&hipr_device::Region::flat(ptr, len));
        owned.add_physical(1, 0x100, 0);
        owned.mappings.add_range(0x1000, 0x800);
        for ptr in [0x1000, 0x1100, 0x1200, 0x1400] {
            owned.mappings.add_mapping(ptr, 0x100, 1);
        }
        let refused = Err(HipError::INVALID_VALUE);
        assert_eq!(check(&owned, 0x1000, 1), refused, "nobody may access it");
        owned.access_set(0x1000, 0x300, true).expect("whole mappings");
        owned.access_set(0x1400, 0x100, true).expect("a whole mapping");
        assert_eq!(check(&owned, 0x1001, 0x2ff), Ok(()));
        assert_eq!(check(&owned, 0x1001, 0x300), refused);
        for (ptr, size) in [(0x1000, 0x80), (0x1080, 0x100), (0x1200, 0x200), (0x1200, 0x300), (0x1000, 0)] {
            assert_eq!(owned.access_set(ptr, size, true), refused, "{ptr:#x} {size:#x}");
        }
        owned.access_set(0x1100, 0x100, false).expect("a whole mapping");
        assert_eq!(check(&owned, 0x1000, 0x101), refused);
        assert_eq!(check(&owned, 0x1200, 0x100), Ok(()));
        // The neighbour of an allocation of another kind is not joined to it.
        let (kind, origin) = (MemoryKind::Device, Origin::Client);
        owned.add_allocation(Allocation {
            base: 0x1500,
            size_bytes: 0x100,
            kind,
            flags: 0,
            device: 0,
            origin,
        });
        assert_eq!(check(&owned, 0x1400, 0x101), refused);
    }

    #[test]
    fn memory_counts_until_it_is_neither_had_nor_mapped() {
        let mut owned = Owned::default();
        owned.add_physical(1, 0x100, 0);
        owned.mappings.add_range(0x1000, 0x800);
        owned.mappings.add_mapping(0x1000, 0x100, 1);
        owned.access_set(0x1000, 0x100, true).expect("a whole mapping");
        assert_eq!((owned.memory_bytes(), owned.handles()), (0x100, 4));
        owned.release_physical(1).expect("a handle");
        assert_eq!(owned.release_physical(1), Err(HipError::INVALID_HANDLE));
        assert_eq!(owned.memory_bytes(), 0x100, "it is mapped");
        // The device is told, and there is none here.
        assert_eq!(owned.unmapped(0x1000), Err(HipError::NOT_INITIALIZED));
        assert_eq!((owned.memory_bytes(), owned.handles()), (0, 1));
    }
}
