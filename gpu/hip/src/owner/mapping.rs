//! Virtual memory: physical memory, reserved addresses, and what is mapped where. The library trusts its caller here as well: it ends the
//! process for some mappings that are wrong, so that everything is checked before.

use core::ffi::c_int;
use core::ptr::null_mut;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use hip_sys::*;
use hipr_proto::{HipError, HipResult};

use super::resource::{Memory, Origin};
use super::{Owner, number, ptr, size, void};

/// The first release that takes a file descriptor in place of the address of one.
const DESCRIPTOR_BY_VALUE: i32 = 70_100_000;

/// Physical memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Physical {
    len_bytes: u64,
    device: i32,
    /// Whether it has to be cleared before anybody sees it.
    is_new: bool,
}

/// Reserved addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    len_bytes: u64,
    /// What the library has reserved, which may be more: the first address, and how many.
    whole: (u64, u64),
}

fn properties(device: i32) -> hipMemAllocationProp {
    hipMemAllocationProp {
        r#type: hipMemAllocationTypePinned,
        requestedHandleType: hipMemHandleTypePosixFileDescriptor,
        location: location(device),
        win32HandleMetaData: null_mut(),
        allocFlags: [0; 4],
    }
}

fn location(device: i32) -> hipMemLocation {
    hipMemLocation { r#type: hipMemLocationTypeDevice, id: device }
}

impl Owner {
    /// HIP API: hipMemGetAllocationGranularity, the one that is recommended.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn granularity(&self, device: i32) -> HipResult<u64> {
        // AMD's library crashes in a thread that has no current device.
        self.enter_device(device)?;
        let (mut granularity, properties) = (0, properties(device));
        // SAFETY: the places outlive the call.
        self.check(unsafe {
            self.hip.hipMemGetAllocationGranularity(
                &mut granularity,
                &properties,
                hipMemAllocationGranularityRecommended,
            )
        })?;
        if granularity > 0 { Ok(granularity as u64) } else { Err(HipError::UNKNOWN) }
    }

    /// HIP API: hipMemAddressReserve. The library knows no alignment but that of pages, so that for another one more is reserved.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn reserve(&mut self, len_bytes: u64, alignment: u64, wanted: u64) -> HipResult<u64> {
        let mut whole = self.reserve_now(len_bytes, wanted)?;
        if whole.0 != wanted && !whole.0.is_multiple_of(alignment) {
            self.free_range_now(whole)?;
            let more_bytes = len_bytes.checked_add(alignment).ok_or(HipError::OUT_OF_MEMORY)?;
            whole = self.reserve_now(more_bytes, 0)?;
        }
        let address = if whole.0 == wanted { wanted } else { whole.0.next_multiple_of(alignment) };
        self.ranges.insert(address, Range { len_bytes, whole });
        Ok(address)
    }

    /// Reserves addresses; returns the first, and how many.
    fn reserve_now(&self, len_bytes: u64, wanted: u64) -> HipResult<(u64, u64)> {
        self.enter()?;
        let mut address = null_mut();
        // SAFETY: the place outlives the call; a wanted address is only a wish.
        self.check(unsafe {
            self.hip.hipMemAddressReserve(&mut address, size(len_bytes)?, 0, void(wanted), 0)
        })?;
        Ok((number(address), len_bytes))
    }

    /// HIP API: hipMemAddressFree.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is no reserved range, or has mappings; those of HIP.
    pub(crate) fn free_range(&mut self, address: u64, len_bytes: u64) -> HipResult<()> {
        let range = self.ranges.get(&address).copied().filter(|range| range.len_bytes == len_bytes);
        let range = range.ok_or(HipError::INVALID_VALUE)?;
        if self.mappings_in(address, len_bytes).next().is_some() {
            return Err(HipError::INVALID_VALUE);
        }
        self.ranges.remove(&address);
        self.free_range_now(range.whole)
    }

    fn free_range_now(&self, (address, len_bytes): (u64, u64)) -> HipResult<()> {
        self.enter()?;
        // SAFETY: reserved by this owner, freed once, and nothing is mapped there.
        self.check(unsafe { self.hip.hipMemAddressFree(void(address), size(len_bytes)?) })
    }

    /// Returns the mappings that begin in these bytes: their addresses, and the handles of their memory.
    fn mappings_in(&self, address: u64, len_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
        let all = self.memory.range(address..address.saturating_add(len_bytes));
        all.filter_map(|(&address, memory)| match memory.origin {
            Origin::Mapped(physical) => Some((address, physical)),
            _ => None,
        })
    }

    /// HIP API: hipMemCreate.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn create(&mut self, len_bytes: u64, device: i32) -> HipResult<u64> {
        self.enter_device(device)?;
        let (mut handle, properties) = (null_mut(), properties(device));
        // SAFETY: the places outlive the call.
        self.check(unsafe { self.hip.hipMemCreate(&mut handle, size(len_bytes)?, &properties, 0) })?;
        Ok(self.add_physical(handle, len_bytes, device, self.shares_process))
    }

    fn add_physical(
        &mut self,
        handle: hipMemGenericAllocationHandle_t,
        len_bytes: u64,
        device: i32,
        is_new: bool,
    ) -> u64 {
        self.physical.insert(number(handle), Physical { len_bytes, device, is_new });
        number(handle)
    }

    fn physical(&self, handle: u64) -> HipResult<Physical> {
        self.physical.get(&handle).copied().ok_or(HipError::INVALID_HANDLE)
    }

    /// HIP API: hipMemRelease.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for what was not created; those of HIP.
    pub(crate) fn release_physical(&mut self, handle: u64) -> HipResult<()> {
        let physical = self.physical.remove(&handle).ok_or(HipError::INVALID_HANDLE)?;
        self.release_physical_now(handle, &physical)
    }

    pub(super) fn release_physical_now(&self, handle: u64, physical: &Physical) -> HipResult<()> {
        self.enter_device(physical.device)?;
        // SAFETY: created or imported by this owner, and released once.
        self.check(unsafe { self.hip.hipMemRelease(ptr(handle)) })
    }

    /// Returns a file that stands for physical memory, and the length of that (HIP API: hipMemExportToShareableHandle).
    ///
    /// # Errors
    /// `INVALID_HANDLE` for what was not created; those of HIP.
    pub(crate) fn export(&self, handle: u64) -> HipResult<(OwnedFd, u64)> {
        let physical = self.physical(handle)?;
        self.enter_device(physical.device)?;
        let mut descriptor: c_int = -1;
        // SAFETY: the memory exists, the place outlives the call.
        self.check(unsafe {
            self.hip.hipMemExportToShareableHandle(
                (&raw mut descriptor).cast(),
                ptr(handle),
                hipMemHandleTypePosixFileDescriptor,
                0,
            )
        })?;
        if descriptor < 0 {
            return Err(HipError::UNKNOWN);
        }
        // SAFETY: a new descriptor of the caller's.
        Ok((unsafe { OwnedFd::from_raw_fd(descriptor) }, physical.len_bytes))
    }

    /// Returns a handle of the physical memory of a file (HIP API: hipMemImportFromShareableHandle).
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn import(&mut self, file: &OwnedFd, len_bytes: u64) -> HipResult<u64> {
        self.enter()?;
        let (mut handle, mut descriptor) = (null_mut(), file.as_raw_fd());
        let version = self.hip.runtime_version().map_err(|error| HipError(error.code))?;
        let shareable = if version < DESCRIPTOR_BY_VALUE {
            (&raw mut descriptor).cast()
        } else {
            core::ptr::without_provenance_mut(descriptor as usize)
        };
        // SAFETY: the places outlive the call, as does the descriptor.
        self.check(unsafe {
            self.hip.hipMemImportFromShareableHandle(
                &mut handle,
                shareable,
                hipMemHandleTypePosixFileDescriptor,
            )
        })?;
        let handle_number = number(handle);
        if self.physical.contains_key(&handle_number) {
            return Err(HipError::INVALID_VALUE);
        }
        // Who shares it has cleared it.
        Ok(self.add_physical(handle, len_bytes, self.device, false))
    }

    /// HIP API: hipMemMap.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_VALUE` for another length than the memory's, addresses that are not all of one range, or that have something;
    /// those of HIP.
    pub(crate) fn map(&mut self, address: u64, len_bytes: u64, handle: u64) -> HipResult<()> {
        let physical = self.physical(handle)?;
        let end = address.checked_add(len_bytes).ok_or(HipError::INVALID_VALUE)?;
        let range = self.ranges.range(..=address).next_back();
        let is_reserved = range.is_some_and(|(base, range)| end <= base + range.len_bytes);
        let before = self.memory.range(..end).next_back();
        let is_free = before.is_none_or(|(base, before)| base + before.len_bytes <= address);
        if physical.len_bytes != len_bytes || !is_reserved || !is_free {
            return Err(HipError::INVALID_VALUE);
        }
        self.enter_device(physical.device)?;
        // SAFETY: the memory exists, has so many bytes, and the addresses are reserved and have nothing.
        self.check(unsafe { self.hip.hipMemMap(void(address), size(len_bytes)?, 0, ptr(handle), 0) })?;
        self.add_memory(address, len_bytes, Origin::Mapped(handle), physical.device);
        Ok(())
    }

    /// HIP API: hipMemSetAccess. Memory is cleared before somebody sees it for the first time.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what are not whole mappings; those of HIP.
    pub(crate) fn set_access(
        &mut self,
        address: u64,
        len_bytes: u64,
        device: i32,
        access: u32,
    ) -> HipResult<()> {
        let mappings: Vec<_> = self.mappings_in(address, len_bytes).collect();
        let is_first = mappings.first().is_some_and(|(first, _)| *first == address);
        if !is_first || self.check_range(address, len_bytes).is_err() {
            return Err(HipError::INVALID_VALUE);
        }
        self.enter_device(device)?;
        let flags = hipMemAccessFlags::try_from(access).map_err(|_| HipError::INVALID_VALUE)?;
        let is_new = |handle: &u64| self.physical.get(handle).is_some_and(|physical| physical.is_new);
        let new: Vec<_> = mappings.into_iter().filter(|(_, handle)| access != 0 && is_new(handle)).collect();
        if !new.is_empty() {
            self.give_access(address, len_bytes, device, hipMemAccessFlagsProtReadWrite)?;
        }
        for (address, handle) in new {
            let Physical { len_bytes, .. } = self.physical(handle)?;
            self.clear_in_order(address, len_bytes, device)?;
            if let Some(physical) = self.physical.get_mut(&handle) {
                physical.is_new = false;
            }
        }
        self.give_access(address, len_bytes, device, flags)
    }

    fn give_access(
        &self,
        address: u64,
        len_bytes: u64,
        device: i32,
        flags: hipMemAccessFlags,
    ) -> HipResult<()> {
        let access = hipMemAccessDesc { location: location(device), flags };
        // SAFETY: whole mappings; the place outlives the call.
        self.check(unsafe { self.hip.hipMemSetAccess(void(address), size(len_bytes)?, &access, 1) })
    }

    /// HIP API: hipMemUnmap.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is no mapping; those of HIP.
    pub(crate) fn unmap(&mut self, address: u64, len_bytes: u64) -> HipResult<()> {
        let found = self.memory.get(&address);
        let is_one = found.is_some_and(|memory| {
            matches!(memory.origin, Origin::Mapped(_)) && memory.len_bytes == len_bytes
        });
        if is_one { self.free(address) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Gives back all physical memory and all reserved addresses; nothing is mapped any more.
    pub(super) fn release_mapped(&mut self) {
        for (handle, physical) in std::mem::take(&mut self.physical) {
            Self::note(self.release_physical_now(handle, &physical));
        }
        for range in std::mem::take(&mut self.ranges).into_values() {
            Self::note(self.free_range_now(range.whole));
        }
    }

    /// Returns the number of bytes from `base` on, of an allocation of `len_bytes`, to which a copy may extend: mappings that follow each other
    /// are like one.
    pub(super) fn extent(&self, base: u64, memory: &Memory) -> u64 {
        let mut len_bytes = memory.len_bytes;
        if matches!(memory.origin, Origin::Mapped(_)) {
            while let Some(next) = self.memory.get(&(base + len_bytes))
                && matches!(next.origin, Origin::Mapped(_))
            {
                len_bytes += next.len_bytes;
            }
        }
        len_bytes
    }
}
