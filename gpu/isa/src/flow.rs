//! Where execution goes after an instruction.

use crate::fault::Cause;

/// Why [`run`](crate::step::run) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// `s_endpgm`: the wave has ended.
    End,
    /// `s_barrier`: go on when every live wave of the workgroup is here.
    Barrier,
    /// The budget is used up, or the wave sleeps (`s_sleep`) or waits for another workgroup: another wave should run.
    Budget,
}

/// Where execution goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Execution continues with the next instruction.
    Next,
    /// Execution continues at this address.
    Jump(u64),
    /// Execution pauses; it continues with the next instruction.
    Stop(Stop),
    /// Execution pauses; other waves run, then this instruction is executed again.
    Again,
}

/// The result of an instruction: where execution continues, or the fault.
pub(crate) type Outcome = Result<Flow, Cause>;
