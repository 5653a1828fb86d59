//! What the worker has told of free memory, and what follows from it.

use hipr_proto::op::MemGetInfoReply;

/// What the worker has told of free memory.
#[derive(Debug, Default)]
pub(super) struct ToldMemory {
    /// Number of the last `MEM_INFO`.
    last: u64,
    known: Option<Known>,
}

/// The reply to a `MEM_INFO`, and what was known when it left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Number of the `MEM_INFO`.
    pub(super) number: u64,
    /// Its reply.
    pub(super) reply: MemGetInfoReply,
    /// Bytes that were placed.
    pub(super) placed_bytes: u64,
    /// Number of requests that may have changed free memory.
    pub(super) changes: u64,
}

impl ToldMemory {
    /// Returns a number for the next `MEM_INFO`.
    pub(super) fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Learns what the worker has told, unless that was forgotten, or asked for again, meanwhile.
    pub(super) fn learn(&mut self, known: Known) {
        if known.number == self.last {
            self.known = Some(known);
        }
    }

    /// Ends what was told, also by a reply that is on its way.
    pub(super) fn forget(&mut self) {
        self.known = None;
        self.last += 1;
    }

    /// Returns what the worker would say if `placed_bytes` are placed now, as long as `holds` says that the reply with this number and
    /// this number of changes holds.
    pub(super) fn answer(
        &self,
        placed_bytes: u64,
        holds: impl FnOnce(u64, u64) -> bool,
    ) -> Option<MemGetInfoReply> {
        let known = self.known.filter(|known| holds(known.number, known.changes))?;
        // A worker may say anything: where it makes no sense it is asked again.
        let free_bytes = known.reply.free_bytes.checked_add(known.placed_bytes)?.checked_sub(placed_bytes)?;
        Some(MemGetInfoReply { free_bytes, ..known.reply })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(free_bytes: u64, placed_bytes: u64) -> ToldMemory {
        let reply = MemGetInfoReply { free_bytes, total_bytes: 1000 };
        ToldMemory { last: 1, known: Some(Known { number: 1, reply, placed_bytes, changes: 5 }) }
    }

    #[test]
    fn what_was_placed_and_freed_is_reckoned() {
        let told = told(600, 100);
        for (placed_bytes, free_bytes) in [(100, 600), (0, 700), (150, 550), (700, 0)] {
            let answer = told.answer(placed_bytes, |number, changes| (number, changes) == (1, 5));
            assert_eq!(answer, Some(MemGetInfoReply { free_bytes, total_bytes: 1000 }), "{placed_bytes}");
        }
        assert_eq!(told.answer(100, |_, _| false), None);
    }

    #[test]
    fn a_worker_may_say_anything() {
        assert_eq!(told(600, 100).answer(701, |_, _| true), None, "more is placed than there was");
        assert_eq!(told(u64::MAX, 1).answer(0, |_, _| true), None);
        assert!(told(u64::MAX, 0).answer(u64::MAX, |_, _| true).is_some());
    }

    #[test]
    fn what_is_forgotten_is_not_learned_from_a_reply_on_its_way() {
        let mut told = told(600, 100);
        told.forget();
        assert_eq!((told.answer(100, |_, _| true), told.last), (None, 2));
    }
}
