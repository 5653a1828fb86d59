//! Passes descriptors between processes, with the bytes of a unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Sends bytes without blocking, and the descriptor with the first of them; returns how many were sent.
///
/// # Errors
/// Those of the system; nothing was sent then.
pub fn pass(socket: impl AsFd, slices: &[IoSlice<'_>], descriptor: impl AsFd) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    Ok(sendmsg(socket, slices, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

/// Receives bytes, and a descriptor that was passed with them into `passed`; returns how many bytes there are, and 0 at the end. Of several
/// descriptors the last is kept.
///
/// # Errors
/// Those of the system.
pub fn receive(
    socket: impl AsFd,
    into: &mut [u8],
    passed: &mut Option<OwnedFd>,
    waits: Waits,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let how = match waits {
        Waits::No => RecvFlags::DONTWAIT,
        Waits::ForSome => RecvFlags::empty(),
        Waits::ForAll => RecvFlags::WAITALL,
    };
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(into)], &mut ancillary, how | RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            *passed = descriptors.last().or(passed.take());
        }
    }
    Ok(received.bytes)
}

/// What [`receive`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Nothing.
    No,
    /// The first bytes.
    ForSome,
    /// As many bytes as there is room for, as far as the socket's time limit allows.
    ForAll,
}
