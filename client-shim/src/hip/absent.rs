//! What is wrong with the parameters of functions for which the devices have nothing: external memory and semaphores.
//! If nothing is wrong, the `unsupported` route answers `hipErrorNotSupported`.

use core::ops::RangeInclusive;

use hipr_proto::{HipError, HipResult};

use crate::convert::{In, Out, Ptr, Stream};

/// All values of `hipExternalMemoryHandleType`.
const MEMORY_TYPES: RangeInclusive<i32> = 1..=8;
/// All values of `hipExternalSemaphoreHandleType`.
const SEMAPHORE_TYPES: RangeInclusive<i32> = 1..=10;

/// Checks functions that end a handle.
pub(crate) fn end(handle: Ptr) -> HipResult<()> {
    handle.check().map(drop)
}

/// Checks a description, which begins with the type of a handle.
fn import(out: Out<Ptr>, desc: Ptr, types: &RangeInclusive<i32>) -> HipResult<()> {
    out.check()?;
    let handle_type = In::<i32>::at_address(desc).check()?;
    if types.contains(&handle_type) { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// Checks `hipImportExternalMemory`.
pub(crate) fn import_memory(out: Out<Ptr>, desc: Ptr) -> HipResult<()> {
    import(out, desc, &MEMORY_TYPES)
}

/// Checks `hipImportExternalSemaphore`.
pub(crate) fn import_semaphore(out: Out<Ptr>, desc: Ptr) -> HipResult<()> {
    import(out, desc, &SEMAPHORE_TYPES)
}

/// Checks `hipExternalMemoryGetMappedBuffer`.
pub(crate) fn mapped_buffer(out: Out<Ptr>, memory: Ptr, desc: Ptr) -> HipResult<()> {
    out.check()?;
    memory.check()?;
    desc.check().map(drop)
}

/// Checks `hipSignalExternalSemaphoresAsync`, `hipWaitExternalSemaphoresAsync`.
pub(crate) fn semaphores(list: In<Ptr>, params: Ptr, count: u32, _stream: Stream) -> HipResult<()> {
    params.check()?;
    if list.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let each = |index| list.at(index).unwrap_or(Ptr::NULL).check().map(drop);
    (0..count as usize).try_for_each(each)
}
