//! What the worker of a shim world knows of memory on both sides: which pieces were written since it told of them, and what the client
//! knows of each. A piece is smaller than a page, so a page is all of it.

use std::collections::BTreeMap;

use hipr_proto::Wire;
use hipr_proto::op::{MemChanges, MemChangesReply, PageRun};

use super::super::script::Tells;
use super::{State, Work};

/// Watched memory.
#[derive(Debug)]
struct Watch {
    /// What the client knows; `None` if that is not known any more.
    twin: Option<Vec<u8>>,
    is_marked: bool,
    /// How often it has been told.
    told: usize,
}

/// What the worker knows of memory on both sides.
#[derive(Debug, Default)]
pub(in super::super) struct Changes {
    /// What it tells; `None` before the world begins.
    pub(in super::super) tells: Option<Tells>,
    watched: BTreeMap<u64, Watch>,
    /// Bytes that the client has sent behind questions: the last of these that is not answered, the address, and the bytes.
    unlearned: Vec<(usize, u64, Vec<u8>)>,
}

impl Changes {
    /// Number of times that a worker can tell of a piece before it has no memory for that, if it can for a while.
    const WHILE: usize = 2;

    /// Returns whether the worker tells changes.
    pub(super) fn is_told(&self) -> bool {
        self.tells != Some(Tells::Nothing)
    }

    /// Returns whether the worker has a bug: it clears a mark after it has read the page.
    fn clears_late(&self) -> bool {
        self.tells == Some(Tells::ChangesClearedLate)
    }

    /// Begins to watch memory, of which the client knows that all of it are zeros.
    pub(super) fn watch(&mut self, at: u64, len: usize) {
        self.watched.insert(at, Watch { twin: Some(vec![0; len]), is_marked: false, told: 0 });
    }

    fn at(&mut self, at: u64) -> Option<(usize, &mut Watch)> {
        let (base, watch) = self.watched.range_mut(..=at).next_back()?;
        let offset = (at - base) as usize;
        watch.twin.as_ref().is_some_and(|twin| offset < twin.len()).then_some((offset, watch))
    }

    /// Notes that memory was written.
    pub(super) fn mark(&mut self, at: u64) {
        if let Some((_, watch)) = self.at(at) {
            watch.is_marked = true;
        }
    }

    /// Notes bytes that the client has sent.
    fn learn(&mut self, at: u64, bytes: &[u8]) {
        if let Some((offset, watch)) = self.at(at)
            && let Some(twin) = &mut watch.twin
            && let Some(place) = twin.get_mut(offset..offset + bytes.len())
        {
            place.copy_from_slice(bytes);
        }
    }
}

impl State {
    /// Returns whether the workers clear a mark after they have read the page.
    fn clear_late(&self) -> bool {
        self.changes.iter().any(Changes::clears_late)
    }

    fn watched(&mut self, worker: usize, at: u64) -> Option<(usize, &mut Watch)> {
        self.changes.get_mut(worker)?.at(at)
    }

    /// Notes bytes that the client sends. The worker looks at a request when those before it are answered.
    pub(super) fn learn(&mut self, worker: usize, at: u64, bytes: &[u8]) {
        let is_question = |number: &usize| {
            self.commands.get(*number).is_some_and(|command| matches!(command.work, Work::Look { .. }))
        };
        let question = self.held_up_by(worker).filter(is_question).max();
        let Some(changes) = self.changes.get_mut(worker) else { return };
        match question {
            Some(question) => changes.unlearned.push((question, at, bytes.to_vec())),
            None => changes.learn(at, bytes),
        }
    }

    /// Notes bytes that the client has sent behind a question, now that it is answered.
    pub(super) fn learn_what_came_behind(&mut self, question: usize) {
        let is_meant = |(behind, _, _): &mut (usize, u64, Vec<u8>)| *behind == question;
        for changes in &mut self.changes {
            let sent: Vec<_> = changes.unlearned.extract_if(.., is_meant).collect();
            sent.iter().for_each(|(_, at, bytes)| changes.learn(*at, bytes));
        }
    }

    /// Tells what has changed in a piece of memory, when the stream's work is done. Others get on between the two steps of it.
    pub(super) fn tell_changes(&mut self, range: &MemChanges) -> (MemChangesReply, Vec<u8>) {
        self.reach(range.stream, if self.clear_late() { 0 } else { self.haste & 15 });
        self.look_for_changes(range)
    }

    /// Tells what has changed in a piece of memory. Others get on between the two steps of it.
    pub(super) fn look_for_changes(&mut self, range: &MemChanges) -> (MemChangesReply, Vec<u8>) {
        let (clears_late, worker) = (self.clear_late(), self.worker(range.stream));
        let for_a_while = self.changes.iter().all(|all| all.tells == Some(Tells::ChangesForAWhile));
        // With the bug, whoever gets on does so where it does harm.
        let between = if clears_late { self.haste } else { self.haste >> 4 };
        let read = |state: &mut Self| state.read_device(worker, range.address, range.length as usize);
        let take = |state: &mut Self| match state.watched(worker, range.address) {
            Some((_, watch)) => std::mem::take(&mut watch.is_marked),
            None => false,
        };
        let (is_marked, now) = if clears_late {
            let now = read(self);
            self.get_on(between);
            (take(self), now)
        } else {
            let is_marked = take(self);
            self.get_on(between);
            (is_marked, read(self))
        };
        let unknown = (MemChangesReply { covered: 0, num_runs: 0, is_known: 0 }, Vec::new());
        let Some((_, watch)) = self.watched(worker, range.address) else { return unknown };
        watch.told += 1;
        if for_a_while && watch.told > Changes::WHILE {
            watch.twin = None;
            return unknown;
        }
        let mut reply = MemChangesReply { covered: range.length, num_runs: 0, is_known: 1 };
        let mut tail = Vec::new();
        if is_marked && watch.twin.as_ref() != Some(&now) {
            let is_zero = now.iter().all(|byte| *byte == 0);
            reply.num_runs = 1;
            let kind = if is_zero { PageRun::ZEROS } else { PageRun::BYTES };
            PageRun { first: 0, count: 1, kind }.put(&mut tail);
            if !is_zero {
                tail.extend_from_slice(&now);
            }
            watch.twin = Some(now);
        }
        (reply, tail)
    }
}
