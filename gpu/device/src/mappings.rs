//! Physical memory that is mapped at reserved addresses.

use std::task::Poll;

use hipr_proto::HipResult;

/// Physical memory, and the addresses at which it is mapped (HIP API: virtual memory management). Handles and ranges have been checked, as
/// for contexts: addresses and sizes are multiples of the granularity, ranges are whole ranges, and mappings whole mappings.
pub trait Mappings {
    /// Returns of what addresses and sizes are multiples on a device, in bytes (HIP API: hipMemGetAllocationGranularity).
    fn granularity(&self, device: i32) -> HipResult<u64>;

    /// Reserves `size_bytes` > 0 bytes of addresses, at `wanted` if that is not 0 and they are free there; returns the first, which is a
    /// multiple of `alignment` otherwise, a power of two (HIP API: hipMemAddressReserve). Fails with `OUT_OF_MEMORY` if there are not so many.
    fn reserve(&mut self, size_bytes: u64, alignment: u64, wanted: u64) -> HipResult<u64>;

    /// Gives a reserved range back, in which nothing is mapped (HIP API: hipMemAddressFree).
    fn free(&mut self, ptr: u64, size_bytes: u64) -> HipResult<()>;

    /// Allocates `size_bytes` > 0 bytes of a device's memory without an address; returns its handle, which is not 0 (HIP API: hipMemCreate).
    fn create(&mut self, size_bytes: u64, device: i32) -> HipResult<u64>;

    /// Gives up a handle. The memory is there as long as it is mapped (HIP API: hipMemRelease).
    fn release(&mut self, physical: u64) -> HipResult<()>;

    /// Returns a name by which other contexts have the memory, which nobody can guess; it ends with the last handle and mapping of the
    /// memory (HIP API: hipMemExportToShareableHandle).
    fn export(&mut self, physical: u64) -> HipResult<[u8; 64]>;

    /// Returns a handle of the memory with this name, if it has at most `room_bytes`, and its size in bytes (HIP API:
    /// hipMemImportFromShareableHandle).
    fn import(&mut self, name: &[u8; 64], room_bytes: u64) -> HipResult<(u64, u64)>;

    /// Maps memory, all of it, at reserved addresses of one range where nothing is mapped. Nobody may access it there yet (HIP API: hipMemMap).
    fn map(&mut self, ptr: u64, size_bytes: u64, physical: u64) -> HipResult<()>;

    /// Says whether a device may access what is mapped in these bytes: mappings of one range that follow each other without a gap
    /// (HIP API: hipMemSetAccess; `access` is a hipMemAccessFlags). Regions may extend over accessible neighbours. Access is taken away behind
    /// the work that may use it.
    fn poll_set_access(&mut self, ptr: u64, size_bytes: u64, device: i32, access: u32)
    -> Poll<HipResult<()>>;

    /// Ends a mapping, behind the work that may use it (HIP API: hipMemUnmap).
    fn poll_unmap(&mut self, ptr: u64, size_bytes: u64) -> Poll<HipResult<()>>;
}
