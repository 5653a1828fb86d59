//! Functions about events.

use hipr_abi::*;
use hipr_proto::{HipError, HipResult, op};

use crate::command::Command;
use crate::convert::{Event, Out, Stream};
use crate::session::Session;
use crate::stream::order::LEGACY;
use crate::thread;
use crate::worker::Wait;

/// Every flag that HIP defines for events.
const ALL_FLAGS: u32 = hipEventBlockingSync
    | hipEventDisableTiming
    | hipEventInterprocess
    | hipEventDisableSystemFence
    | hipEventReleaseToDevice
    | hipEventReleaseToSystem;

/// `hipEventCreate`.
pub(crate) fn create(session: &Session, event: Out<Event>) -> HipResult<()> {
    create_with_flags(session, event, 0)
}

/// `hipEventCreateWithFlags`.
pub(crate) fn create_with_flags(session: &Session, event: Out<Event>, flags: u32) -> HipResult<()> {
    let out = event.check()?;
    // HIP API: an event between processes cannot have times.
    let between_processes = flags & (hipEventInterprocess | hipEventDisableTiming) == hipEventInterprocess;
    let both = hipEventReleaseToDevice | hipEventReleaseToSystem;
    if flags & !ALL_FLAGS != 0 || between_processes || flags & both == both {
        return Err(HipError::INVALID_VALUE);
    }
    let event = Event::from_wire(session.worker().create(&op::EventCreate { flags })?);
    session.streams().events.add(event, flags, thread::device());
    out.set(event);
    Ok(())
}

/// `hipIpcGetEventHandle`.
pub(crate) fn ipc_handle(session: &Session, handle: Out<hipIpcEventHandle_t>, event: Event) -> HipResult<()> {
    let out = handle.check()?;
    session.streams().events.info(event).map_err(|_| HipError::INVALID_VALUE)?;
    let reply = session.worker().ask(&op::IpcGetEventHandle { event: event.wire() })?;
    out.set(hipIpcEventHandle_t { reserved: chars_of(reply.handle) });
    Ok(())
}

/// `hipIpcOpenEventHandle`.
pub(crate) fn ipc_open(session: &Session, event: Out<Event>, handle: hipIpcEventHandle_t) -> HipResult<()> {
    let out = event.check()?;
    let request = op::IpcOpenEventHandle { handle: bytes_of(handle.reserved) };
    let opened = Event::from_wire(session.worker().ask(&request)?.event);
    let flags = hipEventInterprocess | hipEventDisableTiming;
    session.streams().events.add(opened, flags, thread::device());
    out.set(opened);
    Ok(())
}

/// `hipEventDestroy`.
pub(crate) fn destroy(session: &Session, event: Event) -> HipResult<()> {
    if event.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    session.streams().events.info(event).map_err(|_| HipError::CONTEXT_IS_DESTROYED)?;
    session.streams().graphs.forget_event(event);
    session.submit(LEGACY, Command::DestroyEvent(event))
}

/// `hipEventRecord`.
pub(crate) fn record(session: &Session, event: Event, stream: Stream) -> HipResult<()> {
    if event.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    let stream = session.handle(stream)?;
    check_device(session, event, stream)?;
    session.submit(stream, Command::Record(event))
}

/// Checks that an event can be recorded on a stream.
///
/// # Errors
/// `hipErrorInvalidHandle`: there is no such event, or it is of another device.
fn check_device(session: &Session, event: Event, stream: u64) -> HipResult<()> {
    let streams = session.streams();
    let is_here = streams.events.info(event)?.device == streams.order.device_of(stream);
    if is_here { Ok(()) } else { Err(HipError::INVALID_HANDLE) }
}

/// `hipEventRecordWithFlags`: 0, or 1 for captures, which changes nothing outside of them.
pub(crate) fn record_with_flags(
    session: &Session,
    event: Event,
    stream: Stream,
    flags: u32,
) -> HipResult<()> {
    if flags > hipEventRecordExternal { Err(HipError::INVALID_VALUE) } else { record(session, event, stream) }
}

/// `hipEventSynchronize`. An event that was never recorded has happened.
pub(crate) fn synchronize(session: &Session, event: Event) -> HipResult<()> {
    session.wait(Wait::Event(event))
}

/// `hipEventQuery`. An event that was never recorded has happened.
pub(crate) fn query(session: &Session, event: Event) -> HipResult<()> {
    session.wait(Wait::QueryEvent(event))
}

/// `hipEventElapsedTime`.
pub(crate) fn elapsed_time(session: &Session, ms: Out<f32>, start: Event, stop: Event) -> HipResult<()> {
    let out = ms.check()?;
    let streams = session.streams();
    let devices = [start, stop].map(|event| streams.events.info(event).map(|info| info.device));
    let mut are_settled = true;
    for event in [start, stop] {
        streams.graphs.check_recorded(event)?;
        let info = streams.events.info(event)?;
        if info.flags & hipEventDisableTiming != 0 || info.recorded.is_none() {
            return Err(HipError::INVALID_HANDLE);
        }
        if streams.host_functions.is_to_be_recorded(event) {
            return Err(HipError::NOT_READY);
        }
        are_settled &= streams.is_event_settled(&info);
    }
    if devices[0]? != devices[1]? {
        return Err(HipError::INVALID_HANDLE);
    }
    let mut elapsed = session.elapsed_ms(start, stop);
    if are_settled && elapsed == Err(HipError::NOT_READY) {
        session.worker().ask(&op::EventSynchronize { event: stop.wire() })?;
        session.worker().ask(&op::EventSynchronize { event: start.wire() })?;
        elapsed = session.elapsed_ms(start, stop);
    }
    out.set(elapsed?);
    Ok(())
}
