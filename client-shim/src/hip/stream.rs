//! Functions about streams.

use hipr_abi::{
    hipEventWaitExternal, hipLaunchAttributePriority, hipLaunchAttributeSynchronizationPolicy,
    hipStreamCaptureModeGlobal, hipStreamCaptureModeRelaxed, hipStreamNonBlocking, hipSyncPolicyAuto,
    hipSyncPolicyBlockingSync,
};
use hipr_proto::{HipError, HipResult, op};

use crate::command::Command;
use crate::convert::{Event, In, Out, Ptr, Stream};
use crate::process;
use crate::program::recent;
use crate::session::Session;
use crate::stream::order::is_legacy;
use crate::thread;
use crate::worker::{StreamInfo, Wait};

/// `hipStreamCreate`.
pub(crate) fn create(session: &Session, stream: Out<Stream>) -> HipResult<()> {
    create_with_priority(session, stream, 0, 0)
}

/// `hipStreamCreateWithFlags`.
pub(crate) fn create_with_flags(session: &Session, stream: Out<Stream>, flags: u32) -> HipResult<()> {
    create_with_priority(session, stream, flags, 0)
}

/// `hipStreamCreateWithPriority`: a priority out of range is clamped to it, as in HIP.
pub(crate) fn create_with_priority(
    session: &Session,
    stream: Out<Stream>,
    flags: u32,
    priority: i32,
) -> HipResult<()> {
    let out = stream.check()?;
    if flags > hipStreamNonBlocking {
        return Err(HipError::INVALID_VALUE);
    }
    let request = op::StreamCreate { flags, priority };
    let handle = if priority == 0 {
        session.worker().create(&request)?
    } else {
        session.worker().create(&op::StreamCreateWithPriority(request))?
    };
    let stream = Stream::from_wire(handle);
    let info = StreamInfo { flags, priority, device: thread::device(), cu_mask: Vec::new() };
    session.worker().stream_table().insert(stream, info);
    session.streams().order.add(handle, flags & hipStreamNonBlocking == 0, thread::device());
    out.set(stream);
    Ok(())
}

/// `hipStreamDestroy`: work that is still under way is finished first, by the worker.
pub(crate) fn destroy(session: &Session, stream: Stream) -> HipResult<()> {
    if stream.0 <= 2 {
        return Err(HipError::INVALID_HANDLE);
    }
    session.worker().stream_table().remove(&stream).ok_or(HipError::CONTEXT_IS_DESTROYED)?;
    recent::forget();
    session.streams().forget_stream(stream.wire());
    session.submit_all(session.streams().end_sides(stream.wire()))?;
    session.submit(stream.wire(), Command::DestroyStream)
}

/// `hipStreamSynchronize`.
pub(crate) fn synchronize(session: &Session, stream: Stream) -> HipResult<()> {
    session.wait(Wait::Stream(session.handle(stream)?))
}

/// `hipStreamQuery`.
pub(crate) fn query(session: &Session, stream: Stream) -> HipResult<()> {
    session.wait(Wait::QueryStream(session.handle(stream)?))
}

/// `hipStreamWaitEvent`. An event that was never recorded is no reason to wait.
pub(crate) fn wait_event(session: &Session, stream: Stream, event: Event, flags: u32) -> HipResult<()> {
    if flags > hipEventWaitExternal {
        return Err(HipError::INVALID_VALUE);
    }
    if event.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    session.submit(session.valid_handle(stream)?, Command::Wait(event, flags))
}

/// `hipStreamGetFlags`. HIP API: not of the null stream.
pub(crate) fn flags(session: &Session, stream: Stream, flags: Out<u32>) -> HipResult<()> {
    let out = flags.check()?;
    // The null stream that is the thread's own has flags.
    if is_legacy(session.handle(stream)?) && stream.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(session.worker().stream_table().get(&stream).map_or(0, |info| info.flags));
    Ok(())
}

/// `hipStreamGetPriority`.
pub(crate) fn priority(session: &Session, stream: Stream, priority: Out<i32>) -> HipResult<()> {
    let out = priority.check()?;
    let handle = session.handle(stream)?;
    let wanted = session.worker().stream_table().get(&stream).map_or(0, |info| info.priority);
    // Every range has 0; any other may have been clamped.
    let priority = match wanted {
        0 => 0,
        _ => session.worker().ask_on(handle, |stream| op::StreamGetPriority { stream })?.priority,
    };
    out.set(priority);
    Ok(())
}

/// `hipStreamGetDevice`.
pub(crate) fn device(session: &Session, stream: Stream, device: Out<i32>) -> HipResult<()> {
    let out = device.check()?;
    session.handle(stream)?;
    out.set(device_of(session, stream));
    Ok(())
}

/// `hipGetStreamDeviceId`: the device, or -1.
pub(crate) fn device_id(stream: Stream) -> i32 {
    match process::session() {
        Ok(session) if session.handle(stream).is_ok() => device_of(session, stream),
        _ => -1,
    }
}

/// Returns the device that has a stream; the null streams, and what is no stream, are the current device's.
pub(super) fn device_of(session: &Session, stream: Stream) -> i32 {
    match session.handle(stream) {
        Ok(number) => session.streams().order.device_of(number),
        Err(_) => thread::device(),
    }
}

/// `hipStreamGetId` (HIP 7): returns the handle, which is unique.
pub(crate) fn id(session: &Session, stream: Stream, id: Out<u64>) -> HipResult<()> {
    let out = id.check()?;
    out.set(session.handle(stream)?);
    Ok(())
}

/// Returns the compute units of a device, as the words of a mask with all of them.
fn all_units(session: &Session, device: i32) -> HipResult<Vec<u32>> {
    let units = u32::try_from(session.worker().properties(device)?.multi_processor_count).unwrap_or(0);
    let word = |first: u32| u32::MAX >> (u32::BITS - (units - first).min(u32::BITS));
    Ok((0..units).step_by(u32::BITS as usize).map(word).collect())
}

/// `hipExtStreamCreateWithCUMask`: the mask of compute units is only a hint. It can be asked for; one without any unit is none.
pub(crate) fn create_with_cu_mask(
    session: &Session,
    stream: Out<Stream>,
    mask_words: u32,
    mask: In<u32>,
) -> HipResult<()> {
    if stream.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    if mask_words == 0 || mask.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let counted = all_units(session, thread::device())?.len().min(mask_words as usize);
    let cu_mask: Vec<u32> = (0..counted).filter_map(|word| mask.at(word)).collect();
    create(session, stream)?;
    if let Some(stream) = stream.value()
        && cu_mask.iter().any(|word| *word != 0)
        && let Some(info) = session.worker().stream_table().get_mut(&stream)
    {
        info.cu_mask = cu_mask;
    }
    Ok(())
}

/// `hipExtStreamGetCUMask`: units of which the program said nothing are in the mask.
pub(crate) fn cu_mask(session: &Session, stream: Stream, mask_words: u32, mask: Out<u32>) -> HipResult<()> {
    let out = mask.check()?;
    session.handle(stream)?;
    let all = all_units(session, device_of(session, stream))?;
    if mask_words == 0 || (mask_words as usize) < all.len() {
        return Err(HipError::INVALID_VALUE);
    }
    let streams = session.worker().stream_table();
    let said = streams.get(&stream).map_or(&[][..], |info| &info.cu_mask);
    for (index, word) in all.into_iter().enumerate() {
        out.set_at(index, word & said.get(index).copied().unwrap_or(u32::MAX));
    }
    Ok(())
}

/// `hipThreadExchangeStreamCaptureMode`: the mode is the program's to set and read; what a capture forbids goes by the mode that
/// it was begun with.
pub(crate) fn exchange_capture_mode(_session: &Session, mode: Out<i32>) -> HipResult<()> {
    let new = mode.check()?.value().unwrap_or_default();
    // hipStreamCaptureModeGlobal, ThreadLocal, Relaxed.
    if !(hipStreamCaptureModeGlobal..=hipStreamCaptureModeRelaxed).contains(&new) {
        return Err(HipError::INVALID_VALUE);
    }
    mode.set(thread::exchange_capture_mode(new));
    Ok(())
}

/// `hipDeviceGetStreamPriorityRange`.
pub(crate) fn priority_range(session: &Session, least: Out<i32>, greatest: Out<i32>) -> HipResult<()> {
    let range = session.worker().ask(&op::DeviceGetStreamPriorityRange {})?;
    least.set(range.least_priority);
    greatest.set(range.greatest_priority);
    Ok(())
}

/// `hipStreamGetAttribute` (HIP 7): HIP knows two of a stream's attributes.
pub(crate) fn attribute(session: &Session, stream: Stream, attr: i32, value: Ptr) -> HipResult<()> {
    let out = Out::<i32>::at_address(value).check()?;
    let handle = session.valid_handle(stream)?;
    match attr {
        hipLaunchAttributeSynchronizationPolicy => {
            out.set(session.streams().sync_policy(handle));
            Ok(())
        }
        hipLaunchAttributePriority => priority(session, stream, out),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipStreamSetAttribute` (HIP 7): only how threads wait for the stream can be changed, which is kept and has no effect.
pub(crate) fn set_attribute(session: &Session, stream: Stream, attr: i32, value: Ptr) -> HipResult<()> {
    let value = In::<i32>::at_address(value).check()?;
    let handle = session.valid_handle(stream)?;
    if attr != hipLaunchAttributeSynchronizationPolicy
        || !(hipSyncPolicyAuto..=hipSyncPolicyBlockingSync).contains(&value)
    {
        return Err(HipError::INVALID_VALUE);
    }
    session.streams().set_sync_policy(handle, value);
    Ok(())
}

/// `hipStreamCopyAttributes` (HIP 7).
pub(crate) fn copy_attributes(session: &Session, to: Stream, from: Stream) -> HipResult<()> {
    let (to, from) = (session.valid_handle(to)?, session.valid_handle(from)?);
    session.streams().set_sync_policy(to, session.streams().sync_policy(from));
    Ok(())
}
