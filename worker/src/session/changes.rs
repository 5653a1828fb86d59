//! Finding what has changed in watched memory, and telling the client.
//!
//! A session looks at a range in steps: it takes the device's notes about a part of it (or all of the part, if the device takes none),
//! reads these pages and compares them with what the client knows. What differs is in the reply, from the twin and not read again, so
//! that the client is told exactly what it is taken to know.

use std::ops::Range;
use std::task::Poll;

use hipr_proto::op::{MemChangesPackedReply, MemChangesReply, PAGE_BYTES, PageRun};
use hipr_proto::{HipError, HipResult, Inline, Opcode, Outcome, Ticket, Wire};

use super::Session;
use super::frames::Packed;
use super::look::{Look, PackingChanges, Telling, packer_for};
use super::packed::{error_of, pack_piece};
use super::state::State;
use crate::env::Env;
use crate::owned::Difference;
use hipr_device::Region;

/// Smallest number of pages of which the device's notes are taken at once. What was taken is told, so that each of them needs room for a
/// run in the reply; where there is more room, more are taken.
const PART_PAGES_MIN: u64 = 1024;

impl Session {
    /// Begins to look at a range when the work before it is done. If the reply cannot tell anything, nothing is taken.
    pub(super) fn begin_look(&mut self, ticket: Ticket, look: Look) {
        if ticket.wants_reply() && self.responder.kept().is_none() {
            self.state = State::Look { ticket, look: Box::new(look) };
        } else {
            self.say_unknown(ticket);
        }
    }

    /// Takes the notes about the next part of a range, or compares the next pages.
    pub(super) fn look(&mut self, env: &Env<'_>, ticket: Ticket, mut look: Box<Look>) -> Poll<()> {
        if !self.owned.watches.is_known(look.base) {
            self.say_unknown(ticket);
            return Poll::Ready(());
        }
        let looked = match look.open.front().cloned() {
            Some(pages) => self.compare(env, &mut look, pages),
            None => {
                let room = look.room();
                if look.taken == look.src.width || room < PART_PAGES_MIN {
                    self.tell(env, ticket, *look);
                    return Poll::Ready(());
                }
                Poll::Ready(self.take_part(&mut look, room))
            }
        };
        match looked {
            Poll::Ready(Err(error)) => {
                // What was taken is lost.
                self.owned.watches.give_up(look.base);
                self.complete(ticket, Outcome::error(error));
                Poll::Ready(())
            }
            looked => {
                self.state = State::Look { ticket, look };
                looked.map(drop)
            }
        }
    }

    /// Takes the device's notes about the next pages of the range, at most this many.
    fn take_part(&mut self, look: &mut Look, pages_max: u64) -> HipResult<()> {
        let Region { ptr, width, .. } = look.src;
        let end = width.min(look.taken + pages_max * PAGE_BYTES);
        let part = look.taken..end;
        look.taken = end;
        if !self.owned.watches.is_noted(look.base) {
            look.open(&part, part.clone());
            return Ok(());
        }
        let changed = self.owned.context()?.take_changes(ptr + part.start, end - part.start)?;
        for addresses in changed {
            // A page that the device names may begin before the range.
            look.open(&part, addresses.start.saturating_sub(ptr)..addresses.end.saturating_sub(ptr));
        }
        Ok(())
    }

    /// Reads some of the pages that may have changed, and compares them.
    fn compare(&mut self, env: &Env<'_>, look: &mut Look, pages: Range<u64>) -> Poll<HipResult<()>> {
        let piece_max = (env.limits.chunk_bytes as u64).next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let len = (pages.end - pages.start).min(piece_max) as usize;
        look.piece.resize(len, 0);
        let context = self.owned.context()?;
        let from = pages.start + look.have as u64;
        let read = match context.poll_fetched(&look.src, from, len - look.have, look.stream) {
            Poll::Ready(fetched) => fetched?.clamp(1, len - look.have),
            Poll::Pending => return Poll::Pending,
        };
        let place = look.piece.get_mut(look.have..look.have + read).ok_or(HipError::INVALID_VALUE)?;
        if context.reads_zeros() {
            place.fill(0);
        } else {
            context.read(&look.src, from, place)?;
        }
        look.have += read;
        self.turn_bytes += read;
        if look.have < len {
            return Poll::Ready(Ok(()));
        }
        look.have = 0;
        let room = self.owned.twin_room(env.limits);
        let piece = std::mem::take(&mut look.piece);
        for (index, page) in (0..).zip(piece.chunks(PAGE_BYTES as usize)) {
            let offset = pages.start + index * PAGE_BYTES;
            match self.owned.watches.compare(look.base, look.src.ptr + offset, page, room) {
                Difference::None => {}
                Difference::Bytes => look.add(offset, PageRun::BYTES),
                Difference::Zeros => look.add(offset, PageRun::ZEROS),
            }
        }
        look.piece = piece;
        let end = pages.start + len as u64;
        match look.open.front_mut().filter(|first| end < first.end) {
            Some(first) => first.start = end,
            None => drop(look.open.pop_front()),
        }
        Poll::Ready(Ok(()))
    }

    /// Replies that the client has to copy the range.
    fn say_unknown(&mut self, ticket: Ticket) {
        let outcome = outcome(ticket.op(), MemChangesPackedReply::ZERO);
        self.complete(ticket, outcome);
    }

    /// Replies with what has been found, or begins to pack it.
    fn tell(&mut self, env: &Env<'_>, ticket: Ticket, look: Look) {
        let Look { base, src, taken, runs, packs, .. } = look;
        let mut table = Vec::with_capacity(runs.len() * PageRun::SIZE);
        runs.iter().for_each(|run| run.put(&mut table));
        let with_bytes = runs.iter().filter(|run| run.kind == PageRun::BYTES);
        let len_bytes = with_bytes.map(|run| run.bytes(src.width).1).sum();
        let mut telling = Telling { base, src, runs, table, sent: (0, 0, 0) };
        let Some((packer, counted)) = packs.then(|| packer_for(env, len_bytes)).flatten() else {
            return self.tell_unpacked(ticket, telling, taken, len_bytes);
        };
        // The table stays as it is.
        telling.sent.0 = telling.table.len();
        let (at, packed) = (0, Vec::new());
        let packing = PackingChanges { telling, covered: taken, len_bytes, at, packer, packed, counted };
        self.state = State::PackChanges { ticket, packing: Box::new(packing) };
    }

    /// Replies with what has been found, as it is: `len_bytes` of pages.
    fn tell_unpacked(&mut self, ticket: Ticket, telling: Telling, covered: u64, len_bytes: u64) {
        let len = telling.table.len() as u64 + len_bytes;
        let reply = MemChangesPackedReply {
            covered,
            num_runs: telling.runs.len() as u32,
            is_known: 1,
            pages_length: len_bytes,
            ..MemChangesPackedReply::ZERO
        };
        let inline = if len > 0 { Inline::Stream(len) } else { Inline::None };
        let outcome = outcome(ticket.op(), reply).with_inline(inline);
        self.complete(ticket, outcome);
        if len == 0 {
            return;
        }
        if self.responder.stream_left() == 0 {
            // The reply has become an error.
            return self.owned.watches.give_up(telling.base);
        }
        self.state = State::Tell(Box::new(telling));
    }

    /// Packs the next bytes of pages, and replies when all are. If the first bytes show that it does not pay, all are sent as they are.
    pub(super) fn pack_changes(&mut self, env: &Env<'_>, ticket: Ticket, mut packing: Box<PackingChanges>) {
        self.may_be_slow = true;
        let PackingChanges { telling, covered, len_bytes, at, packer, packed, .. } = &mut *packing;
        let (covered, len_bytes, base) = (*covered, *len_bytes, telling.base);
        let left = usize::try_from(len_bytes - *at).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(env.limits.chunk_bytes)];
        telling.fill(&self.owned.watches, &mut piece);
        self.turn_bytes += piece.len();
        let is_first = *at == 0;
        if is_first && !packer.is_worth(&piece, packed) {
            let mut telling = packing.telling;
            telling.sent = (0, 0, 0);
            return self.tell_unpacked(ticket, telling, covered, len_bytes);
        }
        *at += piece.len() as u64;
        let is_last = *at == len_bytes;
        if let Err(why) = pack_piece(packer, packed, &piece, is_first, len_bytes, is_last) {
            // What was taken is lost.
            self.owned.watches.give_up(base);
            return self.complete(ticket, Outcome::error(error_of(why)));
        }
        if !is_last {
            self.state = State::PackChanges { ticket, packing };
            return;
        }
        let PackingChanges { telling: Telling { runs, table: mut bytes, .. }, packed, counted, .. } =
            *packing;
        bytes.extend_from_slice(&packed);
        let reply = MemChangesPackedReply {
            covered,
            num_runs: runs.len() as u32,
            is_known: 1,
            pages_length: len_bytes,
            is_packed: 1,
            reserved: 0,
        };
        self.complete(ticket, Outcome::ok(&reply).with_inline(Inline::Stream(bytes.len() as u64)));
        if self.responder.stream_left() == 0 {
            // The reply has become an error.
            return self.owned.watches.give_up(base);
        }
        self.state = State::SendPacked(Packed { bytes, _counted: counted });
    }

    /// Sends the next bytes of a reply.
    pub(super) fn tell_more(&mut self, env: &Env<'_>, mut telling: Box<Telling>) {
        let left = usize::try_from(self.responder.stream_left()).unwrap_or(usize::MAX);
        let len = left.min(env.limits.chunk_bytes);
        let watches = &self.owned.watches;
        let chunk = env.bodies.body(len, |bytes| telling.fill(watches, bytes));
        self.turn_bytes += len;
        self.broken = self.broken.or(self.responder.push_data(chunk).err());
        if self.responder.stream_left() > 0 {
            self.state = State::Tell(telling);
        }
    }
}

/// Returns the outcome of one of the two operations that tell changes.
fn outcome<B>(op: Opcode, reply: MemChangesPackedReply) -> Outcome<B> {
    if op == Opcode::MEM_CHANGES_PACKED {
        return Outcome::ok(&reply);
    }
    let MemChangesPackedReply { covered, num_runs, is_known, .. } = reply;
    Outcome::ok(&MemChangesReply { covered, num_runs, is_known })
}
