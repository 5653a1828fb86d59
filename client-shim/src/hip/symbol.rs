//! Functions about variables that exist on host and device: `__device__`, `__constant__`, `__managed__`.

use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use super::copy::{Waits, linear};
use crate::convert::{Out, Ptr, Stream};
use crate::session::Session;

/// `hipGetSymbolAddress`.
pub(crate) fn address(session: &Session, out: Out<Ptr>, symbol: Ptr) -> HipResult<()> {
    let out = out.check()?;
    out.set(session.find_variable(symbol)?.0);
    Ok(())
}

/// `hipGetSymbolSize`.
pub(crate) fn size(session: &Session, out: Out<usize>, symbol: Ptr) -> HipResult<()> {
    let out = out.check()?;
    out.set(session.find_variable(symbol)?.1);
    Ok(())
}

/// Returns the address of `len` bytes, `offset` bytes into a variable; fails if they go beyond its end.
fn part(session: &Session, symbol: Ptr, len: usize, offset: usize) -> HipResult<Ptr> {
    let (address, size) = session.find_variable(symbol)?;
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(address.offset(offset)),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// Checks the kind of a copy to or from a symbol, whose side is the device.
fn check_kind(kind: i32, host: i32) -> HipResult<()> {
    let is_right = kind == host || matches!(kind, kind::DEVICE_TO_DEVICE | kind::DEFAULT);
    if is_right { Ok(()) } else { Err(HipError::INVALID_MEMCPY_DIRECTION) }
}

/// `hipMemcpyToSymbol`.
pub(crate) fn copy_to(
    s: &Session,
    symbol: Ptr,
    src: Ptr,
    len: usize,
    offset: usize,
    kind: i32,
) -> HipResult<()> {
    check_kind(kind, kind::HOST_TO_DEVICE)?;
    let dst = part(s, symbol, len, offset)?;
    linear(s, dst, src.check()?, len, kind, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyToSymbolAsync`.
pub(crate) fn copy_to_async(
    session: &Session,
    symbol: Ptr,
    src: Ptr,
    len: usize,
    offset: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    check_kind(kind, kind::HOST_TO_DEVICE)?;
    let dst = part(session, symbol, len, offset)?;
    linear(session, dst, src.check()?, len, kind, stream, Waits::No)
}

/// `hipMemcpyFromSymbol`.
pub(crate) fn copy_from(
    s: &Session,
    dst: Ptr,
    symbol: Ptr,
    len: usize,
    offset: usize,
    kind: i32,
) -> HipResult<()> {
    check_kind(kind, kind::DEVICE_TO_HOST)?;
    let src = part(s, symbol, len, offset)?;
    linear(s, dst.check()?, src, len, kind, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyFromSymbolAsync`.
pub(crate) fn copy_from_async(
    session: &Session,
    dst: Ptr,
    symbol: Ptr,
    len: usize,
    offset: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    check_kind(kind, kind::DEVICE_TO_HOST)?;
    let src = part(session, symbol, len, offset)?;
    linear(session, dst.check()?, src, len, kind, stream, Waits::No)
}
