//! Brings the clocks of client and worker together.

/// The times of a request and its answer, in nanoseconds: on the client's clock when it was sent and when the answer had arrived, on the
/// worker's when it was received and when it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the client sent it.
    pub sent_ns: u64,
    /// When the worker had received it.
    pub received_ns: u64,
    /// When the worker had answered it.
    pub answered_ns: u64,
    /// When the client had the answer.
    pub heard_ns: u64,
}

/// How far the client's clock is ahead of the worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The difference in nanoseconds, modulo 2^64.
    pub ns: u64,
    /// How much the difference may be wrong, in nanoseconds: half of the time that the exchange spent on its way.
    pub uncertainty_ns: u64,
}

impl Offset {
    /// Returns the client's time for one of the worker.
    pub fn client_ns(self, worker_ns: u64) -> u64 {
        worker_ns.wrapping_add(self.ns)
    }
}

/// The best measurement of the difference between two clocks so far: that of the exchange that was on its way for the shortest time.
///
/// ```
/// use hipr_trace::{Clocks, Exchange};
///
/// let mut clocks = Clocks::default();
/// // The worker's clock is 1000 behind; 10 there, 5 for the work, 30 back.
/// clocks.measure(Exchange { sent_ns: 2000, received_ns: 1010, answered_ns: 1015, heard_ns: 2045 });
/// let offset = clocks.offset().expect("it was measured");
/// assert_eq!((offset.client_ns(1010), offset.uncertainty_ns), (2020, 20));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks(Option<Offset>);

impl Clocks {
    /// Takes the times of an exchange into account; those that contradict each other are ignored.
    pub fn measure(&mut self, exchange: Exchange) {
        let Exchange { sent_ns, received_ns, answered_ns, heard_ns } = exchange;
        let (Some(whole_ns), Some(there_ns)) =
            (heard_ns.checked_sub(sent_ns), answered_ns.checked_sub(received_ns))
        else {
            return;
        };
        let Some(way_ns) = whole_ns.checked_sub(there_ns) else { return };
        let uncertainty_ns = way_ns / 2;
        if self.0.is_none_or(|best| uncertainty_ns < best.uncertainty_ns) {
            let ns = sent_ns.wrapping_add(uncertainty_ns).wrapping_sub(received_ns);
            self.0 = Some(Offset { ns, uncertainty_ns });
        }
    }

    /// Returns the best measurement.
    pub fn offset(self) -> Option<Offset> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_counts() {
        let mut clocks = Clocks::default();
        assert_eq!(clocks.offset(), None);
        let at = |way_ns: u64| Exchange {
            sent_ns: 5000,
            received_ns: 100,
            answered_ns: 400,
            heard_ns: 5300 + 2 * way_ns,
        };
        for (way_ns, best_ns) in [(50, 50), (80, 50), (20, 20), (40, 20)] {
            clocks.measure(at(way_ns));
            assert_eq!(clocks.offset().map(|offset| offset.uncertainty_ns), Some(best_ns));
        }
        assert_eq!(clocks.offset().map(|offset| offset.client_ns(400)), Some(5320));
        // An answer that came before it was sent, and one that took longer than the wait for it.
        clocks.measure(Exchange { sent_ns: 10, received_ns: 0, answered_ns: 1, heard_ns: 9 });
        clocks.measure(Exchange { sent_ns: 10, received_ns: 0, answered_ns: 100, heard_ns: 20 });
        assert_eq!(clocks.offset().map(|offset| offset.uncertainty_ns), Some(20));
    }
}
