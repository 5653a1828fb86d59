//! Operations of the cache of uploads.

use std::ops::RangeInclusive;

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation, Upload};
use hipr_device::Region;

/// Sizes of a chunk in bytes.
pub(super) const CHUNK_BYTES: RangeInclusive<u64> = CACHE_CHUNK_MIN_BYTES..=CACHE_CHUNK_MAX_BYTES;

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
    let dst = call.part_of_copy(dst, size, offset, length, stream, CHUNK_BYTES)?;
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
    let dst = call.part_of_copy(dst, size, offset, length, stream, CHUNK_BYTES)?;
    Ok(Continuation::CopyKept { dst, stream, waits: waits != 0, chunk: chunk? })
}

impl Call<'_> {
    /// Checks a copy of `size` bytes to or from `at` as `MEMCPY_HTOD` and `MEMCPY_DTOH` do; returns a part of it, whose length has to be
    /// one of `lengths`.
    pub(super) fn part_of_copy(
        &mut self,
        at: u64,
        size: u64,
        offset: u64,
        length: u64,
        stream: u64,
        lengths: RangeInclusive<u64>,
    ) -> HipResult<Region> {
        self.owned.check_stream(stream)?;
        self.owned.check_region(&Region::flat(at, size))?;
        self.check_uncaptured_stream(stream)?;
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= size);
        if !lengths.contains(&length) || !is_inside {
            return Err(HipError::INVALID_VALUE);
        }
        // The sum is inside a region that was checked.
        Ok(Region::flat(at.saturating_add(offset), length))
    }
}
