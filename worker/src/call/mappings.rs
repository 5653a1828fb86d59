//! Virtual memory: physical memory, reserved addresses, and what is mapped where.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::memory::with_idle_released;
use super::{Call, Continuation};
use crate::owned::{Owned, Remap};

impl Call<'_> {
    /// Returns what maps memory, if the session has the feature.
    fn mapper(&mut self) -> HipResult<&mut dyn hipr_device::Mappings> {
        self.check_feature(Features::MAPPINGS)?;
        Owned::mapper(self.context()?)
    }

    /// Checks that a size is more than 0 and a multiple of a device's granularity.
    fn check_granularity(&mut self, size_bytes: u64, device: i32) -> HipResult<()> {
        let granularity = self.mapper()?.granularity(device)?;
        let is_whole = size_bytes > 0 && size_bytes.is_multiple_of(granularity);
        if is_whole { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }
}

pub(super) fn granularity(call: &mut Call<'_>, r: MemGranularity) -> HipResult<Continuation> {
    let granularity = call.mapper()?.granularity(r.device)?;
    call.reply(MemGranularityReply { granularity })
}

pub(super) fn reserve(call: &mut Call<'_>, r: AddressReserve) -> HipResult<Continuation> {
    let device = call.context_ref()?.device();
    call.check_granularity(r.size, device)?;
    let alignment = r.alignment.max(1);
    if !alignment.is_power_of_two() {
        return Err(HipError::INVALID_VALUE);
    }
    call.check_room(1)?;
    let device_ptr = call.mapper()?.reserve(r.size, alignment, r.wanted)?;
    call.owned.mappings.add_range(device_ptr, r.size);
    call.reply(AddressReserveReply { device_ptr })
}

pub(super) fn free(call: &mut Call<'_>, r: AddressFree) -> HipResult<Continuation> {
    call.mapper()?;
    call.owned.mappings.remove_range(r.device_ptr, r.size)?;
    call.mapper()?.free(r.device_ptr, r.size)?;
    call.done()
}

pub(super) fn create(call: &mut Call<'_>, r: PhysicalCreate) -> HipResult<Continuation> {
    call.check_granularity(r.size, r.device)?;
    call.check_memory(r.size)?;
    let physical = with_idle_released(call, |context| Owned::mapper(context)?.create(r.size, r.device))?;
    call.owned.add_physical(physical, r.size, r.device);
    call.reply(PhysicalCreateReply { physical })
}

pub(super) fn release(call: &mut Call<'_>, r: PhysicalRelease) -> HipResult<Continuation> {
    call.mapper()?;
    call.owned.release_physical(r.physical)?;
    call.done()
}

pub(super) fn export(call: &mut Call<'_>, r: PhysicalExport) -> HipResult<Continuation> {
    call.mapper()?;
    call.owned.mappings.check_physical(r.physical)?;
    let handle = call.mapper()?.export(r.physical)?;
    call.reply(PhysicalExportReply { handle })
}

/// Opens physical memory of any session. It counts as this session's, because its owner may have given it up already.
pub(super) fn import(call: &mut Call<'_>, r: PhysicalImport) -> HipResult<Continuation> {
    call.mapper()?;
    call.check_room(1)?;
    let room_bytes = call.memory_left();
    let (physical, size) = call.mapper()?.import(&r.handle, room_bytes)?;
    let device = call.context_ref()?.device();
    call.owned.add_physical(physical, size, device);
    call.owned.make_room(0, call.limits);
    call.reply(PhysicalImportReply { physical, size })
}

pub(super) fn map(call: &mut Call<'_>, r: MemMap) -> HipResult<Continuation> {
    let MemMap { device_ptr, size, physical } = r;
    let device = call.context_ref()?.device();
    let granularity = call.mapper()?.granularity(device)?;
    call.owned.mappings.check_map(device_ptr, size, physical)?;
    if !device_ptr.is_multiple_of(granularity) {
        return Err(HipError::INVALID_VALUE);
    }
    // The mapping, and what a client may access of it.
    call.check_room(2)?;
    call.mapper()?.map(device_ptr, size, physical)?;
    call.owned.mappings.add_mapping(device_ptr, size, physical);
    call.done()
}

pub(super) fn set_access(call: &mut Call<'_>, r: MemSetAccess) -> HipResult<Continuation> {
    call.mapper()?;
    let MemSetAccess { device_ptr: ptr, size: size_bytes, device, access } = r;
    if access > hipr_abi::hipMemAccessFlagsProtReadWrite.cast_unsigned() {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.mappings.whole(ptr, size_bytes)?;
    Ok(Continuation::Remap(Remap::SetAccess { ptr, size_bytes, device, access }))
}

pub(super) fn unmap(call: &mut Call<'_>, r: MemUnmap) -> HipResult<Continuation> {
    call.mapper()?;
    call.owned.mappings.check_mapping(r.device_ptr, r.size)?;
    Ok(Continuation::Remap(Remap::Unmap { ptr: r.device_ptr, size_bytes: r.size }))
}
