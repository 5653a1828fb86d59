//! What one command of a stream waits for when it waits for all commands of many streams.
//!
//! The commands are counted in rounds. A command that waits for all of them ends the round, and waits for the one fence of the round:
//! however many streams there are, none of them is asked.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::fence::Fence;

/// The commands that were enqueued between two that wait for all before them.
#[derive(Debug, Default)]
struct Round {
    /// Number of commands that are not finished.
    pending: usize,
    /// Complete when none is pending; made when somebody waits for that.
    fence: Option<Arc<Fence>>,
}

/// The unfinished commands of many streams, in rounds. Whoever ends a round belongs to the next one, or to none and stands in the way of
/// all that do: so when nothing of the last round is pending, nothing is.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// The number of the first round that is kept.
    first: u64,
    /// Rounds that are over and have pending commands or such before them, and the current one.
    over: VecDeque<Round>,
    current: Round,
}

impl Rounds {
    /// Adds a command; returns the number of its round.
    pub(crate) fn join(&mut self) -> u64 {
        self.current.pending += 1;
        self.first + self.over.len() as u64
    }

    /// Handles that a command of this round is finished; returns the fence of the round if it was the last one that somebody waits
    /// for.
    pub(crate) fn leave(&mut self, round: u64) -> Option<Arc<Fence>> {
        let index = usize::try_from(round.checked_sub(self.first)?).ok()?;
        let round = self.over.get_mut(index).unwrap_or(&mut self.current);
        round.pending = round.pending.saturating_sub(1);
        let fence = if round.pending == 0 { round.fence.take() } else { None };
        while self.over.pop_front_if(|round| round.pending == 0).is_some() {
            self.first += 1;
        }
        fence
    }

    /// Returns the fence of all pending commands, if there are any.
    pub(crate) fn pending(&mut self) -> Option<Arc<Fence>> {
        (self.current.pending > 0).then(|| Arc::clone(self.current.fence.get_or_insert_default()))
    }

    /// Ends the round for a command that waits for it; returns its fence if commands of it are pending.
    pub(crate) fn end(&mut self) -> Option<Arc<Fence>> {
        let fence = self.pending()?;
        self.over.push_back(std::mem::take(&mut self.current));
        Some(fence)
    }

    /// Finishes all commands; returns the fences that somebody waits for.
    pub(crate) fn clear(&mut self) -> Vec<Arc<Fence>> {
        let Self { over, current, .. } = std::mem::take(self);
        over.into_iter().chain([current]).filter_map(|round| round.fence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_over_with_its_last_command_in_any_order() {
        let mut rounds = Rounds::default();
        assert!(rounds.pending().is_none() && rounds.end().is_none(), "nobody waits for nothing");
        let (a, b) = (rounds.join(), rounds.join());
        let first = rounds.end().expect("two are pending");
        let c = rounds.join();
        let second = rounds.pending().expect("one is pending");
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(
            rounds.leave(c).is_some_and(|fence| Arc::ptr_eq(&fence, &second)),
            "rounds do not wait for each other"
        );
        assert!(rounds.pending().is_none());
        let d = rounds.join();
        assert!(rounds.leave(b).is_none());
        assert!(rounds.leave(a).is_some_and(|fence| Arc::ptr_eq(&fence, &first)));
        assert!(rounds.leave(d).is_none(), "nobody waited for the last one");
        assert_eq!((rounds.over.len(), rounds.current.pending), (0, 0));
    }

    #[test]
    fn what_is_cleared_is_told_to_all_who_wait() {
        let mut rounds = Rounds::default();
        for _ in 0..3 {
            rounds.join();
            rounds.end();
        }
        rounds.join();
        assert_eq!(rounds.clear().len(), 3, "nobody waits for the last round");
        assert!(rounds.pending().is_none());
    }
}
