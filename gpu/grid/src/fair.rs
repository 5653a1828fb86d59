//! Deficit round robin: who of many that have work waiting comes next, so that each gets the time of its weight, whatever it asks for.
//!
//! In each round a flow is given some time and may begin work while it has any left. What its work has really taken is subtracted
//! afterwards: whoever took more is passed over in as many rounds as that was worth.

use std::collections::{BTreeMap, VecDeque};

/// Time that a flow of weight 1 is given in a round.
const QUANTUM_NS: i64 = 100_000;
/// Number of flows that are kept while they have nothing to do, so that the next one finds its memory.
const KEPT: usize = 16;
/// The least and the most that a turn counts: one which takes no time counts too, and one during which the machine slept is not owed for
/// in millions of rounds.
const COUNTED_NS: (i64, i64) = (1_000, 100_000_000);

/// Nothing waits. Keys are less than this and the next.
const NOBODY: u64 = u64::MAX;
/// Work of several waits.
pub(crate) const SEVERAL: u64 = u64::MAX - 1;

/// Returns whether anybody but `key` waits, by what [`Fair::waiting`] has returned.
pub(crate) fn others_wait(waiting: u64, key: u64) -> bool {
    waiting != NOBODY && waiting != key
}

#[derive(Debug)]
struct Flow<Q> {
    queue: Q,
    /// Time that it has left.
    left_ns: i64,
    /// Time that it is given in a round: what a flow counts among the others.
    quantum_ns: i64,
    /// Number of turns that have begun and were not charged.
    begun: usize,
    /// Whether something waits in its queue.
    waits: bool,
}

/// Flows, which have queues of a kind that is not known here.
#[derive(Debug)]
pub(crate) struct Fair<Q> {
    flows: BTreeMap<u64, Flow<Q>>,
    /// Those with something in their queues; the first one has its turn.
    ring: VecDeque<u64>,
}

impl<Q> Default for Fair<Q> {
    fn default() -> Self {
        Self { flows: BTreeMap::new(), ring: VecDeque::new() }
    }
}

impl<Q: Default> Fair<Q> {
    /// Lets `add` put something into the queue of a flow, which gets `weight` times the time of one of weight 1.
    pub(crate) fn add(&mut self, key: u64, weight: u32, add: impl FnOnce(&mut Q)) {
        let quantum_ns = QUANTUM_NS * i64::from(weight.max(1));
        let new = || Flow { queue: Q::default(), left_ns: quantum_ns, quantum_ns, begun: 0, waits: false };
        let flow = self.flows.entry(key).or_insert_with(new);
        flow.quantum_ns = quantum_ns;
        add(&mut flow.queue);
        if std::mem::replace(&mut flow.waits, true) {
            return;
        }
        // Whoever goes on with what was begun has not ended its turn.
        if flow.begun > 0 {
            self.ring.push_front(key);
        } else {
            flow.left_ns = flow.quantum_ns;
            self.ring.push_back(key);
        }
    }

    /// Begins a turn of the flow whose turn it is: `take` takes something from its queue, and returns whether something is left there.
    /// [`charge`](Self::charge) has to follow.
    pub(crate) fn begin<T>(&mut self, take: impl FnOnce(&mut Q) -> (Option<T>, bool)) -> Option<T> {
        let flow = loop {
            let flow = self.flows.get_mut(self.ring.front()?)?;
            if flow.left_ns > 0 {
                break flow;
            }
            flow.left_ns += flow.quantum_ns;
            self.ring.rotate_left(1);
        };
        let (taken, waits) = take(&mut flow.queue);
        flow.begun += usize::from(taken.is_some());
        flow.waits = waits;
        if !waits {
            self.ring.pop_front();
        }
        taken
    }

    /// Subtracts the time that a turn of a flow has taken, also within its queue. What a flow owes that has nothing more to do is
    /// forgotten.
    pub(crate) fn charge(&mut self, key: u64, taken_ns: u64, within: impl FnOnce(&mut Q)) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        within(&mut flow.queue);
        flow.left_ns -= i64::try_from(taken_ns).unwrap_or(i64::MAX).clamp(COUNTED_NS.0, COUNTED_NS.1);
        flow.begun = flow.begun.saturating_sub(1);
        if flow.begun == 0 && !flow.waits && self.flows.len() > KEPT {
            self.flows.remove(&key);
        }
    }

    /// Returns whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the flow that waits and its queue, if it is only one.
    pub(crate) fn only(&self) -> Option<(u64, &Q)> {
        let key = self.ring.front().filter(|_| self.ring.len() == 1)?;
        self.flows.get(key).map(|flow| (*key, &flow.queue))
    }
}

impl<Q: Default> Fair<Fair<Q>> {
    /// Returns a number that says who waits among the flows of all flows, for [`others_wait`].
    pub(crate) fn waiting(&self) -> u64 {
        if self.is_empty() {
            return NOBODY;
        }
        self.only().and_then(|(_, within)| within.only()).map_or(SEVERAL, |(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Line = Fair<VecDeque<u64>>;

    fn add(line: &mut Line, key: u64, item: u64) {
        add_weighted(line, key, 1, item);
    }

    fn add_weighted(line: &mut Line, key: u64, weight: u32, item: u64) {
        line.add(key, weight, |queue| queue.push_back(item));
    }

    fn only(line: &Line) -> Option<u64> {
        line.only().map(|(key, _)| key)
    }

    fn begin(line: &mut Line) -> Option<u64> {
        line.begin(|queue| (queue.pop_front(), !queue.is_empty()))
    }

    /// Returns how often each of two flows with these weights had a turn until the first had 1,000, when their turns take so long.
    fn turns(takes_ns: [u64; 2], weights: [u32; 2]) -> [u64; 2] {
        let (mut line, mut turns) = (Line::default(), [0; 2]);
        (0..2).for_each(|key| add_weighted(&mut line, key, weights[key as usize], key));
        while turns[0] < 1000 {
            let key = begin(&mut line).expect("both always wait");
            turns[key as usize] += 1;
            add_weighted(&mut line, key, weights[key as usize], key);
            line.charge(key, takes_ns[key as usize], |_| ());
        }
        turns
    }

    #[test]
    fn each_gets_time_by_its_weight_however_long_its_turns_take() {
        for takes_ns in
            [[50_000, 50_000], [10_000, 50_000], [50_000, 4_000_000], [1_000, 3_000], [500_000, 130_000]]
        {
            for weights in [[1, 1], [1, 3], [7, 2], [100, 1], [0, 1]] {
                let turns = turns(takes_ns, weights);
                // In time of weight 1.
                let time = |key: usize| turns[key] * takes_ns[key] / u64::from(weights[key].max(1));
                let (a, b) = (time(0), time(1));
                let most = 2 * takes_ns.into_iter().max().unwrap_or(0) + 2 * QUANTUM_NS as u64;
                assert!(a.abs_diff(b) <= most, "{takes_ns:?}, weights {weights:?}: {a} and {b} ns");
            }
        }
    }

    #[test]
    fn however_much_one_asks_for_another_waits_for_a_quantum_of_it() {
        let mut line = Line::default();
        (0..1000).for_each(|item| add(&mut line, 7, item));
        let first = begin(&mut line);
        assert_eq!((first, only(&line)), (Some(0), Some(7)));
        add(&mut line, 8, 5000);
        assert_eq!((only(&line), line.is_empty()), (None, false));
        line.charge(7, QUANTUM_NS as u64 / 2, |_| ());
        let next: Vec<_> = (0..2)
            .map(|_| {
                let item = begin(&mut line).expect("there is more");
                line.charge(if item == 5000 { 8 } else { 7 }, QUANTUM_NS as u64, |_| ());
                item
            })
            .collect();
        assert_eq!(next, [1, 5000]);
        assert_eq!(
            (0..998).filter_map(|_| begin(&mut line)).collect::<Vec<_>>(),
            (2..1000).collect::<Vec<_>>()
        );
        assert!(begin(&mut line).is_none() && line.is_empty());
    }

    #[test]
    fn who_has_nothing_to_do_is_forgotten_and_begins_anew() {
        let mut line = Line::default();
        let most = KEPT as u64 + 100;
        for key in 0..most {
            add(&mut line, key, key);
            assert_eq!(begin(&mut line), Some(key));
            line.charge(key, u64::MAX, |_| ());
        }
        assert!(line.flows.len() <= KEPT && line.ring.is_empty());
        // What was owed is not: neither by those that are kept, nor by the others.
        (0..most).rev().for_each(|key| add(&mut line, key, key));
        let turns: Vec<_> = std::iter::from_fn(|| begin(&mut line)).collect();
        assert_eq!(turns, (0..most).rev().collect::<Vec<_>>());
    }
}
