//! Functions that call host functions in stream order.

use hipr_abi::{hipHostFn_t, hipStreamCallback_t};
use hipr_proto::{HipError, HipResult};

use crate::command::{Command, HostFunction};
use crate::convert::{Ptr, Stream};
use crate::session::Session;

/// `hipLaunchHostFunc`.
pub(crate) fn launch(session: &Session, stream: Stream, function: hipHostFn_t, data: Ptr) -> HipResult<()> {
    function.ok_or(HipError::INVALID_VALUE)?;
    let wire = session.handle(stream)?;
    session.submit(wire, Command::Host(HostFunction::Plain(function, data)))
}

/// `hipStreamAddCallback`: `flags` must be 0.
pub(crate) fn add(
    session: &Session,
    stream: Stream,
    callback: hipStreamCallback_t,
    data: Ptr,
    flags: u32,
) -> HipResult<()> {
    callback.ok_or(HipError::INVALID_VALUE)?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let wire = session.handle(stream)?;
    session.submit(wire, Command::Host(HostFunction::Callback(callback, stream, data)))
}
