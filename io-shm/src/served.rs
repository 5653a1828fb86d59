use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use hipr_io::Link;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    SocketType, recv, send, sendmsg, shutdown, socketpair,
};

use crate::RING_BYTES;
use crate::descriptor::pass;
use crate::memory::Memory;
use crate::ring::{Direction, Receiving, Sending, mapping_bytes};

/// The first bytes that a client sends: a name and a version.
pub const HELLO: [u8; 8] = *b"HIPRSHM\x01";

/// Maximum number of reads of the control socket per call; one read takes all bells (bytes that wake this side) that wait there.
const READS: usize = 16;

/// Size of the worker's answer in bytes.
pub(crate) const ANSWER: usize = 12;

/// The worker's answer: the hello again, and the size of a ring. The mapping and a socket are passed along.
pub(crate) struct Answer {
    pub(crate) capacity: u32,
}

impl Answer {
    fn put(&self) -> [u8; ANSWER] {
        let mut bytes = [0; ANSWER];
        bytes[..8].copy_from_slice(&HELLO);
        bytes[8..].copy_from_slice(&self.capacity.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8; ANSWER]) -> Option<Self> {
        let (hello, capacity) = bytes.split_first_chunk::<8>()?;
        let capacity = u32::from_le_bytes(capacity.try_into().ok()?);
        (*hello == HELLO).then_some(Self { capacity })
    }
}

/// The worker's end of a connection; it never blocks. A bell makes the control socket readable; whoever polls that socket
/// has to call [`handle_bell`](Self::handle_bell).
#[derive(Debug)]
pub struct Served {
    control: OwnedFd,
    /// Number of bytes of the hello that have arrived.
    greeted: usize,
    rings: Option<Rings>,
    /// Whether the client will write no more than what is in the ring.
    ended: bool,
}

#[derive(Debug)]
struct Rings {
    /// The socket that carries the bell for the client's writing thread.
    room: OwnedFd,
    sending: Sending,
    receiving: Receiving,
}

impl Served {
    /// Creates the worker's end for a client that has connected.
    pub fn new(control: impl Into<OwnedFd>) -> Self {
        Self { control: control.into(), greeted: 0, rings: None, ended: false }
    }

    /// Reads the control socket: the hello, after which the rings are created, a bell, or its end.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if the client says something else; those of the system.
    pub fn handle_bell(&mut self) -> io::Result<()> {
        let mut bytes = [0; 512];
        // A client that rings all the time is heard as often as any.
        for _ in 0..READS {
            let len = match recv(&self.control, &mut bytes, RecvFlags::DONTWAIT).map_err(io::Error::from) {
                Ok((_, len)) => len,
                Err(why) if why.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(why) if why.kind() == ErrorKind::Interrupted => continue,
                Err(why) => return Err(why),
            };
            if len == 0 {
                self.ended = true;
                return Ok(());
            }
            if self.rings.is_none() {
                let said = bytes.get(..len).unwrap_or_default();
                if !HELLO.get(self.greeted..).is_some_and(|rest| rest.starts_with(said)) {
                    let why = "the client did not begin with the shared-memory hello";
                    return Err(io::Error::new(ErrorKind::InvalidData, why));
                }
                self.greeted += len;
                if self.greeted == HELLO.len() {
                    self.rings = Some(Rings::pass_to(&self.control)?);
                }
            }
        }
        Ok(())
    }

    /// Returns whether the client will write no more than what is in the ring, and will not ring.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns whether reading would return bytes or an error.
    pub fn has_input(&mut self) -> bool {
        self.rings.as_mut().is_some_and(|rings| rings.receiving.has_input().unwrap_or(true))
    }

    /// Returns whether writing would write bytes or return an error.
    pub fn has_room(&mut self) -> bool {
        self.rings.as_mut().is_some_and(|rings| rings.sending.has_room().unwrap_or(true))
    }

    /// Asks the client to ring when there is `input`, and when there is `room`, because this side is about to sleep.
    /// Returns false if it must not sleep, because that is so already. Has to be called before each sleep.
    pub fn prepare_sleep(&mut self, input: bool, room: bool) -> bool {
        let Some(rings) = &mut self.rings else { return true };
        let may_sleep = (!input || rings.receiving.prepare_sleep().unwrap_or(false))
            && (!room || rings.sending.prepare_sleep().unwrap_or(false));
        if !may_sleep {
            self.awake();
        }
        may_sleep
    }

    /// Passes a link's descriptor to the client, and rings. A client that does not read its bells gets none.
    pub fn pass_from(&self, link: &mut Link) {
        let Some(descriptor) = link.take_descriptor() else { return };
        if let Err(why) = pass(&self.control, &[IoSlice::new(b"\0")], descriptor) {
            tracing::debug!(conn = %link.conn(), %why, "cannot pass a descriptor");
        }
    }

    /// Announces that this side is awake.
    pub fn awake(&mut self) {
        if let Some(rings) = &self.rings {
            rings.receiving.awake();
            rings.sending.awake();
        }
    }

    /// Closes the sending or receiving side; what was written is still read.
    ///
    /// # Errors
    /// Those of the system.
    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        let how = match how {
            std::net::Shutdown::Read => Shutdown::Read,
            std::net::Shutdown::Write => Shutdown::Write,
            std::net::Shutdown::Both => Shutdown::Both,
        };
        Ok(shutdown(&self.control, how)?)
    }
}

/// Reads what is there; returns 0 when the client has closed its side and everything was read. Fails with
/// [`ErrorKind::InvalidData`] if the client wrote invalid positions.
impl io::Read for Served {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Self { rings, ended, .. } = self;
        let read = match rings {
            Some(rings) => rings.receiving.read(into, || ring(&rings.room))?,
            None => 0,
        };
        if read == 0 && !*ended && !into.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { Ok(read) }
    }
}

/// Writes as many bytes as fit; fails like reading.
impl io::Write for Served {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = match &mut self.rings {
            Some(rings) => rings.sending.write(slices, || ring(&self.control))?,
            None => 0,
        };
        if written == 0 && slices.iter().any(|slice| !slice.is_empty()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Served {
    /// Returns the control socket.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl From<Served> for OwnedFd {
    fn from(served: Served) -> Self {
        served.control
    }
}

impl Rings {
    /// Creates rings and passes them to the client.
    fn pass_to(control: &OwnedFd) -> io::Result<Self> {
        let capacity = RING_BYTES;
        let (memory, file) = Memory::make(mapping_bytes(capacity))?;
        let memory = Arc::new(memory);
        let (room, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [file.as_fd(), theirs.as_fd()];
        if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
            return Err(ErrorKind::OutOfMemory.into());
        }
        let answer = Answer { capacity }.put();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent = sendmsg(control, &[IoSlice::new(&answer)], &mut ancillary, flags)?;
        if sent != ANSWER {
            return Err(ErrorKind::WriteZero.into());
        }
        Ok(Self {
            room,
            sending: Sending::new(&memory, capacity, Direction::ToClient),
            receiving: Receiving::new(&memory, capacity, Direction::ToWorker),
        })
    }
}

/// Wakes the client through one of its bells. If the client does not read it the socket is full, which does not matter.
fn ring(bell: &OwnedFd) {
    let _ = send(bell, b"\0", SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}
