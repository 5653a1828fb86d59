//! Functions about what a program says of managed memory: advice, prefetches, the stream that uses it. What moves between host and device
//! moves with launches and synchronizations in any case (see `mirror`); what was said can be asked for.

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use crate::convert::{In, Out, Ptr, Stream};
use crate::session::Session;
use crate::stream::mirror::{Advice, Origin};
use crate::stream::order::is_legacy;

/// Checks the number of a location: a device, or the host.
fn check_location(session: &Session, location: i32) -> HipResult<()> {
    if location == hipCpuDeviceId { Ok(()) } else { session.worker().check_device(location) }
}

/// `hipMemAdvise`.
pub(crate) fn advise(session: &Session, ptr: Ptr, count: usize, advice: i32, device: i32) -> HipResult<()> {
    // HIP API: the device of these two means nothing.
    if !matches!(advice, hipMemAdviseSetReadMostly | hipMemAdviseUnsetReadMostly)
        && count > 0
        && !ptr.is_null()
    {
        check_location(session, device)?;
    }
    let change: fn(&mut Advice, i32) = match advice {
        hipMemAdviseSetReadMostly => |said, _| said.is_read_mostly = true,
        hipMemAdviseUnsetReadMostly => |said, _| said.is_read_mostly = false,
        hipMemAdviseSetPreferredLocation => |said, device| said.preferred = device,
        hipMemAdviseUnsetPreferredLocation => |said, _| said.preferred = hipInvalidDeviceId,
        hipMemAdviseSetAccessedBy => |said, device| said.set_accessed_by(device, true),
        hipMemAdviseUnsetAccessedBy => |said, device| said.set_accessed_by(device, false),
        hipMemAdviseSetCoarseGrain => |said, _| said.is_coarse_grained = true,
        hipMemAdviseUnsetCoarseGrain => |said, _| said.is_coarse_grained = false,
        _ => return Err(HipError::INVALID_VALUE),
    };
    if count == 0 || ptr.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let is_managed = session.streams().mirrors.advise(ptr, count, |said| change(said, device));
    if is_managed { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipMemPrefetchAsync`: other memory that HIP knows is where it is.
pub(crate) fn prefetch(
    session: &Session,
    ptr: Ptr,
    count: usize,
    device: i32,
    stream: Stream,
) -> HipResult<()> {
    ptr.check()?;
    if count == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let known = session.streams().mirrors.info(ptr);
    if known.is_some_and(|(info, offset, _)| info.len - offset < count) {
        return Err(HipError::INVALID_VALUE);
    }
    check_location(session, device)?;
    session.handle(stream)?;
    if session.streams().mirrors.advise(ptr, count, |said| said.prefetched = device) {
        return Ok(());
    }
    match known {
        Some((info, ..)) if info.origin != Origin::Managed => Ok(()),
        Some(_) => Err(HipError::INVALID_VALUE),
        None => match session.worker().memory().check_range(ptr, count)? {
            // The program's own memory is where it is to be.
            None if device != hipCpuDeviceId => Err(HipError::NOT_SUPPORTED),
            _ => Ok(()),
        },
    }
}

/// Returns the device number that HIP 6's functions use for a location of HIP 7's: a device, or the host's.
fn device_at(location: hipMemLocation) -> HipResult<i32> {
    match location.r#type {
        // -1 is the host for HIP 6 only. Here it is the number of no device, as the smallest number is for all checks.
        hipMemLocationTypeDevice if location.id == hipCpuDeviceId => Ok(i32::MIN),
        hipMemLocationTypeDevice => Ok(location.id),
        hipMemLocationTypeHost | hipMemLocationTypeHostNuma | hipMemLocationTypeHostNumaCurrent => {
            Ok(hipCpuDeviceId)
        }
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipMemAdvise_v2` (HIP 7).
pub(crate) fn advise_at(
    session: &Session,
    ptr: Ptr,
    count: usize,
    advice: i32,
    location: hipMemLocation,
) -> HipResult<()> {
    advise(session, ptr, count, advice, device_at(location)?)
}

/// `hipMemPrefetchAsync_v2` (HIP 7): `flags` must be 0.
pub(crate) fn prefetch_at(
    session: &Session,
    ptr: Ptr,
    count: usize,
    location: hipMemLocation,
    flags: u32,
    stream: Stream,
) -> HipResult<()> {
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    prefetch(session, ptr, count, device_at(location)?, stream)
}

/// `hipStreamAttachMemAsync`: all streams may use managed memory in any case. A length is that of the whole allocation.
pub(crate) fn attach(session: &Session, stream: Stream, ptr: Ptr, len: usize, flags: u32) -> HipResult<()> {
    ptr.check()?;
    if !matches!(flags, hipMemAttachGlobal | hipMemAttachHost | hipMemAttachSingle)
        || (stream.is_null() && is_legacy(session.handle(stream)?) && flags == hipMemAttachSingle)
    {
        return Err(HipError::INVALID_VALUE);
    }
    let is_known = match session.streams().mirrors.info(ptr) {
        Some((info, _, _)) => len == 0 || len == info.len,
        None => session.worker().memory().find(ptr).is_some(),
    };
    if is_known { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// Checks that an attribute of a range can be written to so many bytes.
fn check_attribute(attribute: i32, size: usize) -> HipResult<()> {
    let is_right = match attribute {
        hipMemRangeAttributeAccessedBy => size > 0 && size.is_multiple_of(size_of::<i32>()),
        hipMemRangeAttributeReadMostly
        | hipMemRangeAttributePreferredLocation
        | hipMemRangeAttributeLastPrefetchLocation
        | hipMemRangeAttributeCoherencyMode => size == size_of::<i32>(),
        _ => false,
    };
    if is_right { Ok(()) } else { Err(HipError::INVALID_VALUE) }
}

/// Writes an attribute of a range to `size` bytes at `data`: what holds for all parts of the range.
fn write_attribute(data: Ptr, size: usize, attribute: i32, parts: &[Advice]) {
    let data = Out::<i32>::at_address(data);
    let all = |holds: &dyn Fn(&Advice) -> bool| parts.iter().all(holds);
    let location = |of: fn(&Advice) -> i32| {
        let first = parts.first().map_or(hipInvalidDeviceId, of);
        if all(&|part| of(part) == first) { first } else { hipInvalidDeviceId }
    };
    match attribute {
        hipMemRangeAttributeAccessedBy => {
            let first = parts.first().map_or(&[][..], Advice::accessed_by);
            let mut locations =
                first.iter().filter(|location| all(&|part| part.accessed_by().contains(location)));
            for index in 0..size / size_of::<i32>() {
                data.set_at(index, locations.next().copied().unwrap_or(hipInvalidDeviceId));
            }
        }
        hipMemRangeAttributeReadMostly => data.set(all(&|part| part.is_read_mostly).into()),
        hipMemRangeAttributePreferredLocation => data.set(location(|part| part.preferred)),
        hipMemRangeAttributeLastPrefetchLocation => data.set(location(|part| part.prefetched)),
        _ => data.set(if all(&|part| part.is_coarse_grained) {
            hipMemRangeCoherencyModeCoarseGrain
        } else if all(&|part| !part.is_coarse_grained) {
            hipMemRangeCoherencyModeFineGrain
        } else {
            hipMemRangeCoherencyModeIndeterminate
        }),
    }
}

fn advice_of(session: &Session, ptr: Ptr, count: usize) -> HipResult<Vec<Advice>> {
    if count == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    session.streams().mirrors.advice(ptr.check()?, count).ok_or(HipError::INVALID_VALUE)
}

/// `hipMemRangeGetAttribute`.
pub(crate) fn range_attribute(
    session: &Session,
    data: Ptr,
    data_size: usize,
    attribute: i32,
    ptr: Ptr,
    count: usize,
) -> HipResult<()> {
    let data = data.check()?;
    check_attribute(attribute, data_size)?;
    write_attribute(data, data_size, attribute, &advice_of(session, ptr, count)?);
    Ok(())
}

/// `hipMemRangeGetAttributes`.
pub(crate) fn range_attributes(
    session: &Session,
    data: In<Ptr>,
    sizes: In<usize>,
    attributes: In<i32>,
    num_attributes: usize,
    ptr: Ptr,
    count: usize,
) -> HipResult<()> {
    if num_attributes == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let each = |index| {
        let place = data.at(index).ok_or(HipError::INVALID_VALUE)?.check()?;
        let size = sizes.at(index).ok_or(HipError::INVALID_VALUE)?;
        let attribute = attributes.at(index).ok_or(HipError::INVALID_VALUE)?;
        check_attribute(attribute, size)?;
        Ok((place, size, attribute))
    };
    let asked: Vec<_> = (0..num_attributes).map(each).collect::<HipResult<_>>()?;
    let parts = advice_of(session, ptr, count)?;
    for (place, size, attribute) in asked {
        write_attribute(place, size, attribute, &parts);
    }
    Ok(())
}
