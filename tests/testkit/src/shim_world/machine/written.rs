//! What the operating system of a shim world notes of writes to the process's memory, and threads that write while notes are taken.
//!
//! A piece of memory is one page. The first write to it after its note was taken is a fault, which is counted; the notes may say that a
//! page was written that was not, and may end.

use std::collections::BTreeMap;
use std::ops::Range;

use amdhip64::convert::Ptr;
use amdhip64::worker::{Writes, WrittenPages};

use super::super::script::Place;
use super::super::trace::{Event, ITEMS_MAX, Item, ItemKind, Who};
use super::{Machine, State, value_of};

/// A write of a thread that is not in a call.
#[derive(Debug)]
pub(in super::super) struct Write {
    pub(in super::super) who: Who,
    pub(in super::super) place: Place,
    pub(in super::super) at: usize,
}

/// The notes about the process's memory.
#[derive(Debug, Default)]
pub(in super::super) struct Notes {
    /// Whether there are any.
    pub(in super::super) are_kept: bool,
    faults: u64,
    /// Begin and end of each tracked piece, and whether it was written.
    pieces: BTreeMap<usize, (usize, bool)>,
    /// A write that another thread does while memory is compared, behind so many steps of that.
    pub(in super::super) racing: Option<(u64, Write)>,
}

impl Notes {
    /// Notes a write.
    pub(super) fn mark(&mut self, at: usize) {
        if let Some((_, (end, is_written))) = self.pieces.range_mut(..=at).next_back()
            && at < *end
            && !std::mem::replace(is_written, true)
        {
            self.faults += 1;
        }
    }
}

impl State {
    /// Lets a thread of the program, or a host function, write to a word.
    pub(in super::super) fn write_word(&mut self, Write { who, place, at }: Write) {
        let item = self.trace.items.len();
        if item >= ITEMS_MAX {
            return;
        }
        let (kind, name) = (ItemKind::Write, format!("a write to {place}"));
        self.trace.items.push(Item {
            kind,
            name,
            writes: vec![place],
            stream: None,
            beside: None,
            is_decided: true,
        });
        let value = value_of(item);
        self.write_host_bytes(at, &value.to_le_bytes());
        self.note(Event::Wrote { who, item, place, value });
    }

    /// Does one step of comparing memory, behind which another thread may write.
    pub(super) fn let_others_write(&mut self) {
        match self.notes.racing.take() {
            Some((0, write)) => self.write_word(write),
            Some((steps, write)) => self.notes.racing = Some((steps - 1, write)),
            None => {}
        }
    }
}

impl WrittenPages for Machine {
    fn track(&self, at: Ptr, len: usize, _is_own: bool) -> Option<Range<usize>> {
        let notes = &mut self.0.borrow_mut().notes;
        notes.are_kept.then(|| {
            notes.pieces.insert(at.0, (at.0 + len, true));
            at.0..at.0 + len
        })
    }

    fn untrack(&self, range: Range<usize>) {
        self.0.borrow_mut().notes.pieces.remove(&range.start);
    }

    fn writes(&self) -> Writes {
        let mut state = self.0.borrow_mut();
        let faults = state.notes.faults;
        state.let_others_write();
        Writes { faults, period: 0 }
    }

    fn take(&self, range: Range<usize>) -> Option<Vec<Range<usize>>> {
        let mut state = self.0.borrow_mut();
        let haste = state.haste;
        let (_, is_written) = state.notes.pieces.get_mut(&range.start)?;
        let is_told = std::mem::take(is_written) || haste & 3 == 3;
        state.let_others_write();
        if haste >= 0xf8 {
            state.notes.pieces.remove(&range.start);
            return None;
        }
        Some(if is_told { vec![range] } else { Vec::new() })
    }
}
