//! Functions about variables that exist on host and device: `__device__`, `__constant__`, `__managed__`.

use hipr_abi::hipMemcpyDeviceToDeviceNoCU;
use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use super::copy::{Waits, linear};
use crate::convert::{Out, Ptr, Stream};
use crate::session::Session;

/// Maximum number of bytes of a copy to a variable whose address is not known that is sent all the same. More are worth a round trip: they
/// may be packed, or on the worker already.
const NUMBERED_MAX_BYTES: usize = 64 << 10;

/// Turns `hipErrorInvalidDeviceFunction` for an address that is not null into `hipErrorInvalidSymbol`. HIP API: some functions return that error for an
/// address that is not a kernel's.
pub(super) fn symbol_error(function: Ptr, error: HipError) -> HipError {
    let is_of_symbol = error == HipError::INVALID_DEVICE_FUNCTION && !function.is_null();
    if is_of_symbol { HipError::INVALID_SYMBOL } else { error }
}

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
pub(super) fn part(session: &Session, symbol: Ptr, len: usize, offset: usize) -> HipResult<Ptr> {
    let (address, size) = session.find_variable(symbol)?;
    match offset.checked_add(len) {
        Some(end) if end <= size => Ok(address.offset(offset)),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// Checks the kind of a copy to or from a symbol, whose side is the device.
fn check_kind(kind: i32, host: i32) -> HipResult<()> {
    let is_right = kind == host || matches!(kind, kind::DEVICE_TO_DEVICE | hipMemcpyDeviceToDeviceNoCU);
    if is_right { Ok(()) } else { Err(HipError::INVALID_MEMCPY_DIRECTION) }
}

/// Copies `len` bytes to `offset` of a variable. If its address is not known yet, few bytes of the program are sent without it.
fn copy_in(
    session: &Session,
    symbol: Ptr,
    src: Ptr,
    (len, offset): (usize, usize),
    kind: i32,
    stream: Stream,
    waits: Waits,
) -> HipResult<()> {
    check_kind(kind, kind::HOST_TO_DEVICE)?;
    let is_of_program = kind == kind::HOST_TO_DEVICE && !src.is_null();
    if is_of_program
        && (1..=NUMBERED_MAX_BYTES).contains(&len)
        && let Some(variable) = session.find_numbered(symbol)?
    {
        if offset.checked_add(len).is_none_or(|end| end > variable.size) {
            return Err(HipError::INVALID_VALUE);
        }
        let (worker, stream, is_blocking) = (session.worker(), session.handle(stream)?, waits == Waits::Yes);
        let send = |bytes: &[u8]| variable.put(worker, offset, bytes, stream, is_blocking);
        let sent = session.streams().copy_to_at_once(worker, src, len, stream, is_blocking, send);
        if let Some(sent) = sent {
            return sent;
        }
    }
    let dst = part(session, symbol, len, offset)?;
    linear(session, dst, src.check()?, len, kind, stream, waits)
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
    copy_in(s, symbol, src, (len, offset), kind, Stream::NULL, Waits::Yes)
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
    copy_in(session, symbol, src, (len, offset), kind, stream, Waits::No)
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
