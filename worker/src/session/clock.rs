//! The time that a turn takes.

use std::time::{Duration, Instant};

use hipr_proto::Opcode;

/// Time of a turn: when it is over, the session's current request is finished and the next session has its turn.
const TURN: Duration = Duration::from_millis(2);
/// Number of quick steps between two looks at the clock.
const STEPS: u32 = 16;

/// The clock of a turn. It is looked at now and then: a look takes as long as a tenth of a short request.
#[derive(Debug, Default)]
pub(super) struct TurnClock {
    steps: u32,
    /// Time of the first look.
    since: Option<Instant>,
}

impl TurnClock {
    /// Counts a step, which may have been a slow one; returns whether the turn has taken its time.
    #[inline]
    pub(super) fn is_over(&mut self, may_be_slow: bool) -> bool {
        self.steps += 1;
        (may_be_slow || self.steps.is_multiple_of(STEPS)) && self.look()
    }

    #[cold]
    fn look(&mut self) -> bool {
        let now = Instant::now();
        now.duration_since(*self.since.get_or_insert(now)) >= TURN
    }
}

/// Returns whether an operation always takes a short time, whatever the session has and asks for.
#[inline]
pub(super) fn is_quick(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::LAUNCH_KERNEL
            | Opcode::MEMCPY
            | Opcode::MEMCPY_ASYNC
            | Opcode::MEMSET
            | Opcode::MEMSET_ASYNC
            | Opcode::MEMSET_D8
            | Opcode::MEMSET_D16
            | Opcode::MEMSET_D32
            | Opcode::EVENT_RECORD
            | Opcode::STREAM_WAIT_EVENT
            | Opcode::STREAM_SYNCHRONIZE
            | Opcode::EVENT_SYNCHRONIZE
            | Opcode::SET_DEVICE
            | Opcode::NAME
            | Opcode::PING
    )
}
