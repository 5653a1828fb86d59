//! Streams.

use hipr_proto::{HipError, HipResult, op};

use super::event::enqueue_wait;
use crate::callbacks::Role;
use crate::convert::{Event, In, Out, Stream};
use crate::recent;
use crate::session::{Session, StreamInfo};
use crate::state;

/// `hipStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

/// `hipStreamCreate`.
pub(crate) fn create(session: &Session, stream: Out<Stream>) -> HipResult<()> {
    create_with_priority(session, stream, 0, 0)
}

/// `hipStreamCreateWithFlags`.
pub(crate) fn create_with_flags(session: &Session, stream: Out<Stream>, flags: u32) -> HipResult<()> {
    create_with_priority(session, stream, flags, 0)
}

/// `hipStreamCreateWithPriority`: a priority out of range is brought into it, as HIP has it.
pub(crate) fn create_with_priority(
    session: &Session,
    stream: Out<Stream>,
    flags: u32,
    priority: i32,
) -> HipResult<()> {
    let out = stream.check()?;
    if flags > NON_BLOCKING {
        return Err(HipError::INVALID_VALUE);
    }
    let handle = if priority == 0 {
        session.ask(&op::StreamCreate { flags, priority })?.stream
    } else {
        session.ask(&op::StreamCreateWithPriority(op::StreamCreate { flags, priority }))?.stream
    };
    let stream = Stream::from_wire(handle);
    session.streams().insert(stream, StreamInfo { flags, device: state::device() });
    out.set(stream);
    Ok(())
}

/// `hipStreamDestroy`: work that is still under way is finished first, by the worker.
pub(crate) fn destroy(session: &Session, stream: Stream) -> HipResult<()> {
    if stream.0 <= 2 {
        return Err(HipError::INVALID_HANDLE);
    }
    session.streams().remove(&stream).ok_or(HipError::CONTEXT_IS_DESTROYED)?;
    recent::forget();
    let stream = stream.wire();
    session.graphs().forget_stream(stream);
    let destroy = move |session: &Session| {
        session.mirrors().forget_stream(session, stream)?;
        session.tell(&op::StreamDestroy { stream })
    };
    session.callbacks().in_order(session, stream, Role::Records(&[]), destroy)
}

/// `hipStreamSynchronize`.
pub(crate) fn synchronize(session: &Session, stream: Stream) -> HipResult<()> {
    let stream = session.idle_stream(stream)?;
    session.graphs().check_stream(stream)?;
    session.mirrors().wait_stream(session, stream, || session.ask(&op::StreamSynchronize { stream }))
}

/// `hipStreamQuery`.
pub(crate) fn query(session: &Session, stream: Stream) -> HipResult<()> {
    let stream = session.stream(stream)?;
    session.graphs().check_stream(stream)?;
    if session.callbacks().is_waiting(session, stream) {
        return Err(HipError::NOT_READY);
    }
    session.mirrors().wait_stream(session, stream, || session.ask(&op::StreamQuery { stream }))
}

/// `hipStreamWaitEvent`. An event that was never recorded is no reason to wait.
pub(crate) fn wait_event(session: &Session, stream: Stream, event: Event, flags: u32) -> HipResult<()> {
    if event.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    let stream = session.stream(stream)?;
    let known = session.events().get(&event).copied();
    match known {
        None => Err(HipError::INVALID_HANDLE),
        Some(_) if session.graphs().wait_event(stream, event, is_blocking(session, stream))? => Ok(()),
        Some(info) if info.recorded.is_none() => Ok(()),
        // hipEventWaitDefault and hipEventWaitExternal.
        Some(_) if flags > 1 => Err(HipError::INVALID_VALUE),
        Some(_) => enqueue_wait(session, event, stream, flags),
    }
}

/// `hipStreamGetFlags`.
pub(crate) fn flags(session: &Session, stream: Stream, flags: Out<u32>) -> HipResult<()> {
    let out = flags.check()?;
    session.stream(stream)?;
    out.set(session.streams().get(&stream).map_or(0, |info| info.flags));
    Ok(())
}

/// `hipStreamGetPriority`.
pub(crate) fn priority(session: &Session, stream: Stream, priority: Out<i32>) -> HipResult<()> {
    let out = priority.check()?;
    let handle = session.stream(stream)?;
    let priority = if session.streams().contains_key(&stream) {
        session.ask(&op::StreamGetPriority { stream: handle })?.priority
    } else {
        0
    };
    out.set(priority);
    Ok(())
}

/// `hipStreamGetDevice`.
pub(crate) fn device(session: &Session, stream: Stream, device: Out<i32>) -> HipResult<()> {
    let out = device.check()?;
    session.stream(stream)?;
    out.set(device_of(session, stream));
    Ok(())
}

/// `hipGetStreamDeviceId`: the device, or -1.
pub(crate) fn device_id(stream: Stream) -> i32 {
    match state::session() {
        Ok(session) if session.stream(stream).is_ok() => device_of(session, stream),
        _ => -1,
    }
}

fn device_of(session: &Session, stream: Stream) -> i32 {
    session.streams().get(&stream).map_or_else(state::device, |info| info.device)
}

/// `hipStreamGetId` (HIP 7): handles are unique, so the handle is the number.
pub(crate) fn id(session: &Session, stream: Stream, id: Out<u64>) -> HipResult<()> {
    let out = id.check()?;
    out.set(session.stream(stream)?);
    Ok(())
}

/// Whether a stream and the legacy null stream wait for each other.
pub(crate) fn is_blocking(session: &Session, stream: u64) -> bool {
    let info = session.streams().get(&Stream::from_wire(stream)).copied();
    info.is_none_or(|info| info.flags & NON_BLOCKING == 0)
}

/// `hipExtStreamCreateWithCUMask`: which compute units a stream may use is a wish.
pub(crate) fn create_with_cu_mask(
    session: &Session,
    stream: Out<Stream>,
    mask_words: u32,
    mask: In<u32>,
) -> HipResult<()> {
    if mask_words == 0 || mask.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    create(session, stream)
}

/// `hipThreadExchangeStreamCaptureMode`: the mode is the program's to set and read; what a capture forbids goes by the mode that
/// it was begun with.
pub(crate) fn exchange_capture_mode(_session: &Session, mode: Out<i32>) -> HipResult<()> {
    let new = mode.check()?.value().unwrap_or_default();
    // hipStreamCaptureModeGlobal, ThreadLocal, Relaxed.
    if !(0..=2).contains(&new) {
        return Err(HipError::INVALID_VALUE);
    }
    mode.set(state::exchange_capture_mode(new));
    Ok(())
}

/// `hipDeviceGetStreamPriorityRange`.
pub(crate) fn priority_range(session: &Session, least: Out<i32>, greatest: Out<i32>) -> HipResult<()> {
    let range = session.ask(&op::DeviceGetStreamPriorityRange {})?;
    least.set(range.least_priority);
    greatest.set(range.greatest_priority);
    Ok(())
}
