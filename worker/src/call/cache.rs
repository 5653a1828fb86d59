//! Operations of the cache of uploads.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation, Upload};
use hipr_device::Region;

/// Opens the cache for the session.
pub(super) fn open(call: &mut Call<'_>, r: CacheOpen) -> HipResult<Continuation> {
    call.check_feature(Features::CACHE)?;
    call.owned.tenant.open(r.key)?;
    call.done()
}

/// Looks for chunks; the session goes on with their names.
pub(super) fn have(call: &mut Call<'_>, _r: CacheHave, tail: &[u8]) -> HipResult<Continuation> {
    call.check_feature(Features::CACHE)?;
    let (names, rest) = tail.as_chunks::<CACHE_NAME_BYTES>();
    if !call.owned.tenant.is_open() || names.len() > CACHE_NAMES_MAX || !rest.is_empty() {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(Continuation::Have(names.to_vec()))
}

/// Copies a chunk from the client.
pub(super) fn put(call: &mut Call<'_>, r: CachePut) -> HipResult<Continuation> {
    call.check_feature(Features::CACHE)?;
    let CachePut { dst, size, offset, length, stream, waits, .. } = r;
    let dst = call.part_of_copy(dst, size, offset, length, stream)?;
    if !call.owned.tenant.is_open() {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(Continuation::Write { dst, stream, waits: waits != 0, what: Upload::Kept })
}

/// Copies a chunk that the session was promised.
pub(super) fn copy(call: &mut Call<'_>, r: CacheCopy) -> HipResult<Continuation> {
    call.check_feature(Features::CACHE)?;
    let CacheCopy { chunk, dst, size, offset, length, stream, waits, .. } = r;
    // A promise is for one copy, also for one that fails.
    let chunk = call.owned.tenant.take(&chunk, length);
    let dst = call.part_of_copy(dst, size, offset, length, stream)?;
    Ok(Continuation::CopyKept { dst, stream, waits: waits != 0, chunk: chunk? })
}

impl Call<'_> {
    /// Checks a copy to the device as `MEMCPY_HTOD` does; returns the part of it that a chunk is for.
    fn part_of_copy(
        &mut self,
        dst: u64,
        size: u64,
        offset: u64,
        length: u64,
        stream: u64,
    ) -> HipResult<Region> {
        self.owned.check_stream(stream)?;
        self.owned.check_region(&Region::flat(dst, size))?;
        self.check_uncaptured_stream(stream)?;
        let is_chunk = (CACHE_CHUNK_MIN_BYTES..=CACHE_CHUNK_MAX_BYTES).contains(&length);
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= size);
        if !is_chunk || !is_inside {
            return Err(HipError::INVALID_VALUE);
        }
        // The sum is inside a region that was checked.
        Ok(Region::flat(dst.saturating_add(offset), length))
    }
}
