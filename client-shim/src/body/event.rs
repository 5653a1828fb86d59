//! Events.

use hipr_proto::{HipError, HipResult, op};

use crate::callbacks::Role;
use crate::convert::{Event, Out, Stream};
use crate::session::{EventInfo, Session};
use crate::types::IpcHandle;

/// `hipEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;
/// `hipEventInterprocess`.
const INTERPROCESS: u32 = 4;
/// Every flag that HIP defines for events.
const ALL_FLAGS: u32 = 1 | DISABLE_TIMING | INTERPROCESS | 0x2000_0000 | 0x4000_0000 | 0x8000_0000;

/// `hipEventCreate`.
pub(crate) fn create(session: &Session, event: Out<Event>) -> HipResult<()> {
    create_with_flags(session, event, 0)
}

/// `hipEventCreateWithFlags`.
pub(crate) fn create_with_flags(session: &Session, event: Out<Event>, flags: u32) -> HipResult<()> {
    let out = event.check()?;
    // HIP API: an event between processes cannot have times.
    let between_processes = flags & (INTERPROCESS | DISABLE_TIMING) == INTERPROCESS;
    if flags & !ALL_FLAGS != 0 || between_processes {
        return Err(HipError::INVALID_VALUE);
    }
    let event = Event::from_wire(session.ask(&op::EventCreate { flags })?.event);
    session.events().insert(event, EventInfo { flags, recorded: recorded_elsewhere(flags) });
    out.set(event);
    Ok(())
}

/// Where a new event may have been recorded already: one that others have is asked for in any case.
fn recorded_elsewhere(flags: u32) -> Option<Stream> {
    (flags & INTERPROCESS != 0).then_some(Stream::NULL)
}

/// `hipIpcGetEventHandle`.
pub(crate) fn ipc_handle(session: &Session, handle: Out<IpcHandle>, event: Event) -> HipResult<()> {
    let out = handle.check()?;
    info(session, event).map_err(|_| HipError::INVALID_VALUE)?;
    out.set(IpcHandle(session.ask(&op::IpcGetEventHandle { event: event.wire() })?.handle));
    Ok(())
}

/// `hipIpcOpenEventHandle`.
pub(crate) fn ipc_open(session: &Session, event: Out<Event>, handle: IpcHandle) -> HipResult<()> {
    let out = event.check()?;
    let opened = Event::from_wire(session.ask(&op::IpcOpenEventHandle { handle: handle.0 })?.event);
    let flags = INTERPROCESS | DISABLE_TIMING;
    session.events().insert(opened, EventInfo { flags, recorded: recorded_elsewhere(flags) });
    out.set(opened);
    Ok(())
}

/// `hipEventDestroy`.
pub(crate) fn destroy(session: &Session, event: Event) -> HipResult<()> {
    if event.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    if !session.events().contains_key(&event) {
        return Err(HipError::CONTEXT_IS_DESTROYED);
    }
    session.graphs().forget_event(event);
    session.callbacks().after_all(session, move |session| {
        session.events().remove(&event);
        session.mirrors().forget_event(event.wire());
        session.tell(&op::EventDestroy { event: event.wire() })
    })
}

/// `hipEventRecord`.
pub(crate) fn record(session: &Session, event: Event, stream: Stream) -> HipResult<()> {
    if event.is_null() {
        return Err(HipError::INVALID_HANDLE);
    }
    let wire = session.stream(stream)?;
    info(session, event)?;
    if session.graphs().record_event(event, wire)? {
        return Ok(());
    }
    enqueue_record(session, event, wire)
}

/// Records an event in the order of a stream.
///
/// # Errors
/// `hipErrorInvalidHandle`: there is none of this handle; a lost connection.
pub(crate) fn enqueue_record(session: &Session, event: Event, stream: u64) -> HipResult<()> {
    // Another process may wait for it as soon as this returns.
    let is_shared = info(session, event)?.flags & INTERPROCESS != 0;
    let record = move |session: &Session| {
        note_recorded(session, event, Stream::from_wire(stream))?;
        let request = op::EventRecord { event: event.wire(), stream };
        if is_shared { session.ask(&request) } else { session.tell(&request) }
    };
    if session.callbacks().hold(session, stream, Role::Records(&[event]), || Box::new(record))? {
        return note_recorded(session, event, Stream::from_wire(stream));
    }
    record(session)
}

/// Lets a stream wait for an event. One that was never recorded is no reason to wait.
///
/// # Errors
/// As [`enqueue_record`].
pub(crate) fn enqueue_wait(session: &Session, event: Event, stream: u64, flags: u32) -> HipResult<()> {
    if info(session, event)?.recorded.is_none() {
        return Ok(());
    }
    let wait = move |session: &Session| {
        session.mirrors().event_awaited(stream, event.wire());
        session.tell(&op::StreamWaitEvent { stream, event: event.wire(), flags })
    };
    session.callbacks().in_order(session, stream, Role::Waits(event), wait)
}

/// `hipEventRecordWithFlags`: 0, or 1 for captures, which changes nothing outside of them.
pub(crate) fn record_with_flags(
    session: &Session,
    event: Event,
    stream: Stream,
    flags: u32,
) -> HipResult<()> {
    if flags > 1 { Err(HipError::INVALID_VALUE) } else { record(session, event, stream) }
}

/// An event is being recorded, by itself or with a launch.
pub(crate) fn note_recorded(session: &Session, event: Event, stream: Stream) -> HipResult<()> {
    session.events().get_mut(&event).ok_or(HipError::INVALID_HANDLE)?.recorded = Some(stream);
    session.mirrors().event_recorded(session, event.wire(), stream.wire());
    Ok(())
}

fn info(session: &Session, event: Event) -> HipResult<EventInfo> {
    session.events().get(&event).copied().ok_or(HipError::INVALID_HANDLE)
}

/// `hipEventSynchronize`. An event that was never recorded has happened.
pub(crate) fn synchronize(session: &Session, event: Event) -> HipResult<()> {
    session.graphs().check_event(event)?;
    if info(session, event)?.recorded.is_none() {
        return Ok(());
    }
    session.callbacks().gate_event(event);
    let event = event.wire();
    session.mirrors().wait_event(session, event, || session.ask(&op::EventSynchronize { event }))
}

/// `hipEventQuery`. An event that was never recorded has happened.
pub(crate) fn query(session: &Session, event: Event) -> HipResult<()> {
    session.graphs().check_event(event)?;
    if info(session, event)?.recorded.is_none() {
        return Ok(());
    }
    if session.callbacks().is_to_be_recorded(event) {
        return Err(HipError::NOT_READY);
    }
    let event = event.wire();
    session.mirrors().wait_event(session, event, || session.ask(&op::EventQuery { event }))
}

/// `hipEventElapsedTime`.
pub(crate) fn elapsed_time(session: &Session, ms: Out<f32>, start: Event, stop: Event) -> HipResult<()> {
    let out = ms.check()?;
    for event in [start, stop] {
        session.graphs().check_event(event)?;
        let info = info(session, event)?;
        if info.flags & DISABLE_TIMING != 0 || info.recorded.is_none() {
            return Err(HipError::INVALID_HANDLE);
        }
        if session.callbacks().is_to_be_recorded(event) {
            return Err(HipError::NOT_READY);
        }
    }
    let request = op::EventElapsedTime { start_event: start.wire(), stop_event: stop.wire() };
    out.set(session.ask(&request)?.milliseconds);
    Ok(())
}
