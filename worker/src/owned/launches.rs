//! Which request the session's launches belong to, and which of them an error may come from where the device does not say.

use std::collections::VecDeque;

use hipr_device::{Origin, WaitFor};
use hipr_proto::Opcode;

/// Maximum number of launches that are remembered one by one.
const RECENT_MAX: usize = 64;
/// The last handle of the null stream; work on other streams may be covered by a wait for it.
const NULL_STREAM_LAST: u64 = hipr_abi::hipStreamLegacy as u64;

/// A launch that no wait has followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    pub(crate) origin: Origin,
    /// Handle of the kernel.
    pub(crate) function: u64,
    pub(crate) stream: u64,
}

/// The launches of a session.
#[derive(Debug)]
pub(crate) struct Launches {
    /// The request that is being executed.
    current: Origin,
    /// Whether launches are remembered, because the client wants to know and the device does not.
    notes: bool,
    /// The last launches that no wait has followed.
    recent: VecDeque<Launched>,
    /// Number of those before them.
    older: u64,
}

impl Default for Launches {
    fn default() -> Self {
        Self { current: Origin::NONE, notes: false, recent: VecDeque::new(), older: 0 }
    }
}

impl Launches {
    /// Notes the request that is about to be executed.
    #[inline]
    pub(crate) fn set_request(&mut self, request: u32, op: Opcode) {
        self.current = Origin { request, op };
    }

    /// Begins to remember launches.
    pub(crate) fn note(&mut self) {
        self.notes = true;
    }

    /// Handles that a kernel is about to be launched on a stream; returns the request that it belongs to.
    #[inline]
    pub(crate) fn begin(&mut self, function: u64, stream: u64) -> Origin {
        if self.notes {
            if self.recent.len() == RECENT_MAX {
                self.recent.pop_front();
                self.older += 1;
            }
            self.recent.push_back(Launched { origin: self.current, function, stream });
        }
        self.current
    }

    /// Forgets what a wait has covered that is over; returns how many launches that were at most, and the last of them.
    pub(crate) fn take(&mut self, what: WaitFor) -> (u64, Option<Launched>) {
        let last = match what {
            WaitFor::Stream(stream) if stream > NULL_STREAM_LAST => {
                let last = self.recent.iter().rfind(|launched| launched.stream == stream).copied();
                let before = self.recent.len();
                self.recent.retain(|launched| launched.stream != stream);
                // Those that are not remembered may be on other streams.
                return ((before - self.recent.len()) as u64 + self.older, last);
            }
            WaitFor::Device | WaitFor::Stream(_) | WaitFor::Event(_) => self.recent.back().copied(),
        };
        let count = self.older + self.recent.len() as u64;
        match what {
            WaitFor::Device => self.clear(),
            WaitFor::Stream(_) => self.recent.retain(|launched| launched.stream > NULL_STREAM_LAST),
            WaitFor::Event(_) => {}
        }
        (count, last)
    }

    /// Forgets all launches.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.older = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(request: u32, stream: u64) -> Launched {
        let origin = Origin { request, op: Opcode::LAUNCH_KERNEL };
        Launched { origin, function: 7, stream }
    }

    /// Launches on these streams, as requests from 1 on.
    fn launches(streams: &[u64]) -> Launches {
        let mut launches = Launches::default();
        launches.note();
        for (request, stream) in (1..).zip(streams) {
            launches.set_request(request, Opcode::LAUNCH_KERNEL);
            assert_eq!(launches.begin(7, *stream), launched(request, *stream).origin);
        }
        launches
    }

    #[test]
    fn a_wait_takes_what_it_covers() {
        let mut all = launches(&[9, 8, 9, 8]);
        assert_eq!(
            all.take(WaitFor::Event(5)),
            (4, Some(launched(4, 8))),
            "nobody knows of which stream it is"
        );
        assert_eq!(all.take(WaitFor::Stream(9)), (2, Some(launched(3, 9))));
        assert_eq!(all.take(WaitFor::Stream(9)), (0, None));
        assert_eq!(
            all.take(WaitFor::Stream(0)),
            (2, Some(launched(4, 8))),
            "the null stream waits for others"
        );
        assert_eq!(all.take(WaitFor::Device), (2, Some(launched(4, 8))));
        assert_eq!(all.take(WaitFor::Device), (0, None));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let mut all = launches(&[9; RECENT_MAX + 5]);
        assert_eq!(all.recent.len(), RECENT_MAX);
        let count = RECENT_MAX as u64 + 5;
        assert_eq!(all.take(WaitFor::Stream(9)), (count, Some(launched(count as u32, 9))));
        all.clear();
        assert_eq!(all.take(WaitFor::Device), (0, None));
    }

    #[test]
    fn nothing_is_remembered_for_a_device_that_says_it_by_itself() {
        let mut all = Launches::default();
        all.set_request(3, Opcode::GRAPH_LAUNCH);
        assert_eq!(all.begin(7, 0), Origin { request: 3, op: Opcode::GRAPH_LAUNCH });
        assert_eq!(all.take(WaitFor::Device), (0, None));
    }
}
