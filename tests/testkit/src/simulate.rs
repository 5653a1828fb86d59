//! Running cases and saying what failed.

use std::fmt;

use crate::invariants::Violation;
use crate::script::Case;

/// A kind of world: runs a case and says what did not hold.
pub type World = fn(&Case) -> Result<(), Failure>;

/// A case in which something did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What, at least one.
    pub violations: Vec<Violation>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Violation { invariant, call, what } in &self.violations {
            match call {
                Some(call) => writeln!(f, "{invariant}: call {call}: {what}")?,
                None => writeln!(f, "{invariant}: {what}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
