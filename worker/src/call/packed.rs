//! Copies whose bytes are packed on their way.

use std::ops::RangeInclusive;

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::cache::CHUNK_BYTES;
use super::{Call, Continuation, Upload};
use hipr_device::Region;

/// Sizes of a part of a copy in bytes.
const PART_BYTES: RangeInclusive<u64> = 1..=PACKED_PART_MAX_BYTES;

/// Packed bytes for a region.
#[derive(Debug)]
pub(crate) struct Unpack {
    pub(crate) packed: Vec<u8>,
    /// As long as the bytes are when they are unpacked.
    pub(crate) dst: Region,
    pub(crate) stream: u64,
    /// Whether the bytes must have arrived before the next request begins.
    pub(crate) waits: bool,
    /// What becomes of the bytes besides.
    pub(crate) what: Upload,
}

/// Copies a part of a copy from the client; it is collected first if it is packed.
pub(super) fn put(call: &mut Call<'_>, r: PutPacked) -> HipResult<Continuation> {
    call.check_feature(Features::PACKED)?;
    let PutPacked { dst, size, offset, length, packed, stream, waits, purpose } = r;
    let (what, lengths) = match purpose {
        purpose::WRITTEN => (Upload::Written, PART_BYTES),
        purpose::KNOWN => {
            call.check_feature(Features::PAGES)?;
            (Upload::Known, PART_BYTES)
        }
        purpose::KEPT => {
            call.check_feature(Features::CACHE)?;
            (Upload::Kept, CHUNK_BYTES)
        }
        _ => return Err(HipError::INVALID_VALUE),
    };
    let dst = call.part_of_copy(dst, size, offset, length, stream, lengths)?;
    let may_be_kept = what != Upload::Kept || call.owned.tenant.is_open();
    if packed > length || !may_be_kept {
        return Err(HipError::INVALID_VALUE);
    }
    let waits = waits != 0;
    match call.collected.take() {
        _ if packed == length => Ok(Continuation::Write { dst, stream, waits, what }),
        None => Ok(Continuation::Collect),
        Some(packed) => Ok(Continuation::Unpack(Box::new(Unpack { packed, dst, stream, waits, what }))),
    }
}

/// Copies a part of a copy to the client.
pub(super) fn get(call: &mut Call<'_>, r: GetPacked) -> HipResult<Continuation> {
    call.check_feature(Features::PACKED)?;
    let src = call.part_of_copy(r.src, r.size, r.offset, r.length, r.stream, PART_BYTES)?;
    Ok(Continuation::Read { src, stream: r.stream, packs: true })
}
