//! Copies whose bytes are packed: a piece is unpacked or packed at a time, so that others have their turns between two.

use std::task::Poll;

use hipr_device::Region;
use hipr_io::{PackError, Packer, Unpacker};
use hipr_proto::op::{GetPackedReply, ModuleLoadPacked};
use hipr_proto::{HipError, HipResult, Inline, Opcode, Outcome, Ticket, Wire};

use super::Session;
use super::counted::Counted;
use super::frames::{Packed, Packing, Unpacking};
use super::state::{Arriving, State, Write};
use crate::call::Unpack;
use crate::env::Env;

/// Counts what a request takes beside its collected tail; fails with the name and value of the limit that it exceeds.
pub(super) fn count_beside(
    counted: &mut Counted,
    env: &Env<'_>,
    op: Opcode,
    mut fixed: &[u8],
) -> Result<(), (&'static str, usize)> {
    match op {
        // A session has one of these at a time.
        Opcode::PUT_PACKED => {
            counted.add_bounded(Unpacker::MAX_BYTES);
            Ok(())
        }
        Opcode::MODULE_LOAD_PACKED => {
            let size = ModuleLoadPacked::take(&mut fixed).map_or(0, |r| r.data_size);
            let bytes = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(Unpacker::MAX_BYTES);
            counted.add(bytes, env.limits)
        }
        _ => Ok(()),
    }
}

pub(super) fn error_of(why: PackError) -> HipError {
    match why {
        PackError::Damaged => HipError::INVALID_VALUE,
        PackError::Memory => HipError::OUT_OF_MEMORY,
    }
}

impl Session {
    /// Begins to unpack bytes for the device.
    pub(super) fn begin_unpack(&mut self, env: &Env<'_>, ticket: Ticket, unpack: Unpack) {
        let Unpack { packed, dst, stream, waits, what } = unpack;
        let len = dst.len_bytes().unwrap_or(0);
        match Unpacker::new(len) {
            Ok(unpacker) => {
                let what = Arriving::new(env, what, len);
                let write = Write { ticket, dst, stream, offset: 0, waits, what };
                let unpacking = Unpacking::new(packed, unpacker);
                self.state = State::Unpack { write, unpacking: Box::new(unpacking) };
            }
            Err(why) => self.complete(ticket, Outcome::error(error_of(why))),
        }
    }

    /// Counts what is being unpacked until the device has it.
    pub(super) fn count_unpacking(&mut self, counted: Counted) {
        if let State::Unpack { unpacking, .. } = &mut self.state {
            unpacking.counted = Some(counted);
        }
    }

    /// Unpacks the next bytes and writes them, as those of a copy from the client.
    pub(super) fn unpack(
        &mut self,
        env: &Env<'_>,
        mut write: Write,
        mut unpacking: Box<Unpacking>,
    ) -> Poll<()> {
        if self.poll_begin(&write).is_pending() {
            self.state = State::Unpack { write, unpacking };
            return Poll::Pending;
        }
        self.may_be_slow = true;
        let piece = match unpacking.piece(env.limits.chunk_bytes) {
            Ok(piece) => piece,
            Err(why) => {
                self.complete(write.ticket, Outcome::error(error_of(why)));
                return Poll::Ready(());
            }
        };
        let at = write.dst.ptr.saturating_add(write.offset);
        match self.write_piece(&mut write, piece) {
            Poll::Ready(Ok(len)) => {
                let taken = piece.get(..len).unwrap_or_default();
                match &mut write.what {
                    Arriving::Written => {}
                    Arriving::Known => self.owned.learn(at, taken, env.limits),
                    Arriving::Kept(keeping) => keeping.push(taken),
                }
                unpacking.taken += len;
                if write.dst.len_bytes() == Some(write.offset) {
                    self.arrived(env, write);
                } else {
                    self.state = State::Unpack { write, unpacking };
                }
                Poll::Ready(())
            }
            Poll::Ready(Err(error)) => {
                self.complete(write.ticket, Outcome::error(error));
                Poll::Ready(())
            }
            Poll::Pending => {
                self.state = State::Unpack { write, unpacking };
                Poll::Pending
            }
        }
    }

    /// Becomes ready when the stream is, before the first bytes of a copy that the worker has all of.
    pub(super) fn poll_begin(&mut self, write: &Write) -> Poll<()> {
        match self.owned.context() {
            Ok(context) if write.offset == 0 => context.poll_ready(write.stream),
            // What cannot be written to says so itself.
            _ => Poll::Ready(()),
        }
    }

    /// Writes the next bytes of such a copy; returns how many the device has taken.
    pub(super) fn write_piece(&mut self, write: &mut Write, piece: &[u8]) -> Poll<HipResult<usize>> {
        let Write { dst, stream, offset, .. } = *write;
        let context = self.owned.context()?;
        let written = context.poll_write(&dst, offset, piece, stream);
        if let Poll::Ready(Ok(len)) = written {
            self.turn_bytes += len;
            write.offset += len as u64;
            if offset == 0 {
                self.owned.unstage(Some(stream));
            }
        }
        written
    }

    /// Begins to read bytes whose first ones the device has fetched; they are packed if there is memory for it and somebody gets them.
    pub(super) fn begin_pack(&mut self, env: &Env<'_>, ticket: Ticket, src: Region, stream: u64) {
        let len = src.len_bytes().unwrap_or(0);
        let is_told = ticket.wants_reply() && self.responder.kept().is_none();
        let bytes = usize::try_from(len).unwrap_or(usize::MAX).saturating_add(Packer::MAX_BYTES);
        let counted = Counted::new(bytes, env.budget, env.limits).ok().filter(|_| is_told);
        let packing = counted.and_then(|counted| {
            let packer = Packer::new().ok()?;
            Some(Packing { src, stream, offset: 0, packer, packed: Vec::new(), counted })
        });
        match packing {
            Some(packing) => self.state = State::Pack { ticket, packing: Box::new(packing) },
            None => {
                if self.send_unpacked(ticket, len) {
                    self.state = State::Read { src, stream, offset: 0 };
                }
            }
        }
    }

    /// Begins a reply with `len` bytes as they are; returns whether any are to be sent.
    fn send_unpacked(&mut self, ticket: Ticket, len: u64) -> bool {
        let reply = GetPackedReply { is_packed: 0, reserved: 0 };
        self.complete(ticket, Outcome::ok(&reply).with_inline(Inline::Stream(len)));
        self.responder.stream_left() > 0
    }

    /// Reads and packs the next bytes of a reply, and sends it when it has all. If the first bytes show that it does not pay, all are sent
    /// as they are.
    pub(super) fn pack(&mut self, env: &Env<'_>, ticket: Ticket, mut packing: Box<Packing>) -> Poll<()> {
        let Packing { src, stream, offset, .. } = *packing;
        let length = src.len_bytes().unwrap_or(0);
        self.may_be_slow = true;
        let piece = match self.read_piece(env, &src, offset, length, stream) {
            Poll::Ready(Ok(piece)) => piece,
            Poll::Ready(Err(error)) => {
                self.complete(ticket, Outcome::error(error));
                return Poll::Ready(());
            }
            Poll::Pending => {
                self.state = State::Pack { ticket, packing };
                return Poll::Pending;
            }
        };
        let bytes = piece.as_ref();
        let read = offset + bytes.len() as u64;
        self.turn_bytes += bytes.len();
        let Packing { packer, packed, .. } = &mut *packing;
        if offset == 0 && !packer.is_worth(bytes, packed) {
            if self.send_unpacked(ticket, length) {
                self.broken = self.broken.or(self.responder.push_data(piece).err());
                if self.responder.stream_left() > 0 {
                    self.state = State::Read { src, stream, offset: read };
                }
            }
            return Poll::Ready(());
        }
        match pack_piece(packer, packed, bytes, offset == 0, length, read == length) {
            Ok(()) if read == length => {
                let inline = Inline::Stream(packed.len() as u64);
                let reply = GetPackedReply { is_packed: 1, reserved: 0 };
                self.complete(ticket, Outcome::ok(&reply).with_inline(inline));
                if self.responder.stream_left() > 0 {
                    let Packing { packed: bytes, counted, .. } = *packing;
                    self.state = State::SendPacked(Packed { bytes, _counted: counted });
                }
            }
            Ok(()) => {
                packing.offset = read;
                self.state = State::Pack { ticket, packing };
            }
            Err(why) => self.complete(ticket, Outcome::error(error_of(why))),
        }
        Poll::Ready(())
    }

    /// Sends the next bytes of a frame.
    pub(super) fn send_packed(&mut self, env: &Env<'_>, packed: Packed) {
        let left = usize::try_from(self.responder.stream_left()).unwrap_or(usize::MAX);
        let at = packed.bytes.len().saturating_sub(left);
        let rest = packed.bytes.get(at..).unwrap_or_default();
        let piece = rest.get(..env.limits.chunk_bytes).unwrap_or(rest);
        let body = env.bodies.body(piece.len(), |bytes| bytes.copy_from_slice(piece));
        self.turn_bytes += piece.len();
        self.broken = self.broken.or(self.responder.push_data(body).err());
        if self.responder.stream_left() > 0 {
            self.state = State::SendPacked(packed);
        }
    }

    /// Reads the bytes of a region from `offset` on that the device has fetched.
    fn read_piece(
        &mut self,
        env: &Env<'_>,
        src: &Region,
        offset: u64,
        length: u64,
        stream: u64,
    ) -> Poll<HipResult<hipr_io::Body>> {
        let left = usize::try_from(length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let max = left.min(env.limits.chunk_bytes);
        let context = self.owned.context()?;
        let len = match context.poll_fetched(src, offset, max, stream) {
            Poll::Ready(fetched) => fetched?.clamp(1, max.max(1)),
            Poll::Pending => return Poll::Pending,
        };
        if context.reads_zeros() {
            return Poll::Ready(Ok(env.bodies.zeros(len)));
        }
        let mut read = Ok(());
        let body = env.bodies.body(len, |bytes| read = context.read(src, offset, bytes));
        Poll::Ready(read.map(|()| body))
    }
}

/// Packs a piece of `length` bytes, the first one and the last one with the frame's begin and end.
pub(super) fn pack_piece(
    packer: &mut Packer,
    packed: &mut Vec<u8>,
    piece: &[u8],
    is_first: bool,
    length: u64,
    is_last: bool,
) -> Result<(), PackError> {
    if is_first {
        packed.clear();
        packer.begin(length)?;
    }
    packer.push(piece, packed)?;
    if is_last { packer.finish(packed) } else { Ok(()) }
}
