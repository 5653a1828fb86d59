//! What sees the execution of workgroups: checkers and profilers.

use std::fmt;

use hipr_isa::watch::Watch;
use hipr_isa::wave::Wave;

use crate::dispatch::{Dispatch, GroupStart};

/// Sees the waves of one workgroup. One thread at a time works on a workgroup, not always the same.
pub trait GroupWatch: Watch {
    /// Wave `wave` is the one whose instructions come next.
    fn turn(&mut self, wave: u32);

    /// Wave `wave` is at a barrier, behind whose instruction its program counter is.
    fn at_barrier(&mut self, wave: u32, state: &Wave);

    /// All waves that have not ended are at a barrier and go on.
    fn barrier(&mut self);

    /// Wave `wave` has ended.
    fn wave_ended(&mut self, wave: u32);

    /// The workgroup has ended, or, if `is_whole` is false, is given up.
    fn ended(&mut self, is_whole: bool);

    /// Returns this as what sees instructions.
    fn as_watch(&mut self) -> &mut dyn Watch;
}

impl fmt::Debug for dyn GroupWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupWatch")
    }
}

/// Makes what sees each workgroup of a grid.
pub trait GridWatch: Send + Sync {
    /// Returns what sees the workgroup that begins.
    fn group(&self, dispatch: &Dispatch, start: &GroupStart) -> Box<dyn GroupWatch>;
}
