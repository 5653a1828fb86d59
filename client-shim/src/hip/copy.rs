//! Functions that copy memory.
//!
//! Where the bytes are is told from the addresses, as HIP does it: what the process knows as device memory is device
//! memory, whatever the copy's kind says; the kind speaks for addresses nobody knows, which are host memory, and for those
//! that both sides use (see `reserve`).
//!
//! A copy to the device returns when its bytes have left or are in our buffer; a copy from the device waits. Both hold
//! for the asynchronous forms as well: the first is then merely faster than it has to be, the second slower.

mod shaped;

use hipr_abi::hipMemcpyDefault;
use hipr_graph::Status;
use hipr_proto::op::{self, kind};
use hipr_proto::{HipError, HipResult};

use crate::command::{Command, MemoryCopy};
use crate::convert::{Ptr, Stream};
use crate::session::Session;

pub(super) use shaped::of_driver;
pub(crate) use shaped::{
    batch, batch_3d, drv_3d, drv_3d_async, memcpy_2d, memcpy_2d_async, memcpy_3d, memcpy_3d_async,
    memcpy_3d_peer, memcpy_3d_peer_async, param_2d, param_2d_async,
};

/// Whether the caller relies on the copy being finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Yes,
    No,
}

/// Puts a copy on a stream; all copy functions end here.
fn copy(session: &Session, copy: MemoryCopy, stream: Stream, waits: Waits) -> HipResult<()> {
    let stream = session.handle(stream)?;
    session.submit_copy(stream, &copy, waits == Waits::Yes)?;
    let is_synchronous = || session.is_synchronous(copy.dst.at) || session.is_synchronous(copy.src.at);
    if waits == Waits::Yes && is_synchronous() { finish(session, stream) } else { Ok(()) }
}

/// Waits for what is on a stream, at the end of a call that need not wait by itself; a capture has nothing to wait for.
pub(super) fn finish(session: &Session, stream: u64) -> HipResult<()> {
    if session.streams().graphs.status(stream) != Status::None {
        return Ok(());
    }
    session.wait_for_functions(stream)?;
    session.end_call(stream)?;
    session.streams().settle(stream);
    Ok(())
}

/// Copies `len` consecutive bytes.
pub(crate) fn linear(
    session: &Session,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
    stream: Stream,
    waits: Waits,
) -> HipResult<()> {
    match MemoryCopy::linear(dst, src, len, kind) {
        Ok(described) => copy(session, described, stream, waits),
        Err(error) => of_wrong_kind((dst, src, len), waits, error),
    }
}

/// Returns what a copy of a kind that is none answers. HIP API: one that waits is wrong only if there is something to copy.
#[cold]
fn of_wrong_kind((dst, src, len): (Ptr, Ptr, usize), waits: Waits, error: HipError) -> HipResult<()> {
    match waits {
        Waits::Yes if len == 0 => Ok(()),
        Waits::Yes => dst.check().and(src.check()).and(Err(error)),
        Waits::No => Err(error),
    }
}

/// `hipMemcpy`.
pub(crate) fn memcpy(session: &Session, dst: Ptr, src: Ptr, len: usize, kind: i32) -> HipResult<()> {
    linear(session, dst, src, len, kind, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyAsync`.
pub(crate) fn memcpy_async(
    s: &Session,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    linear(s, dst, src, len, kind, stream, Waits::No)
}

/// `hipMemcpyWithStream`: copies in stream order and waits until the copy has finished.
pub(crate) fn memcpy_with_stream(
    s: &Session,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
    stream: Stream,
) -> HipResult<()> {
    s.streams().graphs.check_stream(&s.caller(), s.handle(stream)?)?;
    linear(s, dst, src, len, kind, stream, Waits::Yes)
}

macro_rules! directed {
    ($($(#[$doc:meta])* $name:ident $name_async:ident $kind:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(session: &Session, dst: Ptr, src: Ptr, len: usize) -> HipResult<()> {
            linear(session, dst, src, len, $kind, Stream::NULL, Waits::Yes)
        }

        $(#[$doc])*
        pub(crate) fn $name_async(s: &Session, dst: Ptr, src: Ptr, len: usize, stream: Stream) -> HipResult<()> {
            linear(s, dst, src, len, $kind, stream, Waits::No)
        }
    )*};
}

directed! {
    /// `hipMemcpyHtoD`, `hipMemcpyHtoDAsync`.
    htod htod_async kind::HOST_TO_DEVICE;
    /// `hipMemcpyDtoH`, `hipMemcpyDtoHAsync`.
    dtoh dtoh_async kind::DEVICE_TO_HOST;
    /// `hipMemcpyDtoD`, `hipMemcpyDtoDAsync`.
    dtod dtod_async kind::DEVICE_TO_DEVICE;
}

/// `hipMemcpyPeer`.
pub(crate) fn peer(
    session: &Session,
    dst: Ptr,
    dst_device: i32,
    src: Ptr,
    src_device: i32,
    len: usize,
) -> HipResult<()> {
    peer_of(session, (dst, dst_device), (src, src_device), len, Stream::NULL, Waits::Yes)
}

/// `hipMemcpyPeerAsync`.
pub(crate) fn peer_async(
    session: &Session,
    dst: Ptr,
    dst_device: i32,
    src: Ptr,
    src_device: i32,
    len: usize,
    stream: Stream,
) -> HipResult<()> {
    peer_of(session, (dst, dst_device), (src, src_device), len, stream, Waits::No)
}

/// Copies between the memories of two devices. If the call `waits`, a copy between workers is over when it returns; one within a worker comes
/// before all that the worker is sent later, of whatever stream.
fn peer_of(
    session: &Session,
    (dst, dst_device): (Ptr, i32),
    (src, src_device): (Ptr, i32),
    len: usize,
    stream: Stream,
    waits: Waits,
) -> HipResult<()> {
    session.worker().check_device(dst_device)?;
    session.worker().check_device(src_device)?;
    let wire = session.handle(stream)?;
    if len == 0 {
        return Ok(());
    }
    let is_of_device =
        |ptr: Ptr| session.worker().memory().check_range(ptr.check()?, len).map(|found| found.is_some());
    let is_known = |ptr: Ptr| session.streams().mirrors.info(ptr).is_some();
    let (dst_of_device, src_of_device) = (is_of_device(dst)?, is_of_device(src)?);
    if !(dst_of_device && src_of_device) {
        // HIP API: only one of the two may be the program's own memory. The numbers of the devices mean nothing then.
        if !(dst_of_device || src_of_device || is_known(dst) || is_known(src)) {
            return Err(HipError::INVALID_VALUE);
        }
        return linear(session, dst, src, len, hipMemcpyDefault, stream, waits);
    }
    if dst_device == src_device {
        return linear(session, dst, src, len, kind::DEVICE_TO_DEVICE, stream, waits);
    }
    let (dst, src, size, stream) = (dst.wire(), src.wire(), len as u64, wire);
    let copy = Command::PeerCopy(op::MemcpyPeer { dst, dst_device, src, src_device, size, stream });
    session.submit_blocking(stream, copy, waits == Waits::Yes)
}
