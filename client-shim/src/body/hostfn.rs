//! Functions of the program in the order of a stream.

use hipr_proto::{HipError, HipResult};

use crate::convert::{Ptr, Stream};
use crate::graphs::Task;
use crate::session::Session;
use crate::types::{HostFn, StreamCallback};

/// `hipLaunchHostFunc`.
pub(crate) fn launch(session: &Session, stream: Stream, function: HostFn, data: Ptr) -> HipResult<()> {
    function.ok_or(HipError::INVALID_VALUE)?;
    let wire = session.stream(stream)?;
    if session.graphs().record(wire, || Task::Host(function, data))? {
        return Ok(());
    }
    enqueue(session, wire, function, data)
}

/// Calls a function in the order of a stream.
///
/// # Errors
/// Those of `hipLaunchHostFunc`.
pub(crate) fn enqueue(session: &Session, stream: u64, function: HostFn, data: Ptr) -> HipResult<()> {
    let function = function.ok_or(HipError::INVALID_VALUE)?;
    session.callbacks().add(
        session,
        stream,
        Box::new(move |result| {
            // SAFETY: the program gives the function and what it is called with; HIP API: it runs once, on a
            // thread of the runtime.
            unsafe { function(data) }
            result
        }),
    )
}

/// `hipStreamAddCallback`: `flags` must be 0.
pub(crate) fn add(
    session: &Session,
    stream: Stream,
    callback: StreamCallback,
    data: Ptr,
    flags: u32,
) -> HipResult<()> {
    let callback = callback.ok_or(HipError::INVALID_VALUE)?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let wire = session.stream(stream)?;
    session.graphs().check_stream(wire)?;
    session.callbacks().add(
        session,
        wire,
        Box::new(move |result| {
            let status = result.err().map_or(0, |error| error.0);
            // SAFETY: as in `launch`.
            unsafe { callback(stream, status, data) }
            Ok(())
        }),
    )
}
