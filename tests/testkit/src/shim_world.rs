//! The shim world: the client library's stream layer without threads and sockets, driven phase by phase.
//!
//! ```text
//!  threads of the program ─► Call, WaitCall ─► Streams ─► Port ─► machine: a worker and two memories
//!  threads of functions  ─► HostFunctions ──────┘
//! ```
//!
//! Threads of a program, threads of host functions and the worker take turns in a drawn order; each turn is one phase of a call, one deed of
//! a function or one command of the worker. While the schedule has bytes they choose whose turn it is. When it is used up, everybody gets
//! turns until nobody can do anything; where a function still waits at a gate, the gate is opened.
//!
//! * [`Case`] the script: memory, streams, events, and what each thread does.
//! * [`run`] carries it out. What happened at the doors of the program and of the worker is a [`Trace`].
//! * `model` says what HIP's rules make of it, and [`invariants`] judge it.

pub mod invariants;
pub mod script;
pub mod trace;

mod life;
mod machine;
mod model;

use std::fmt;

pub use life::run;
pub use script::{Case, Script};
pub use trace::Trace;

use crate::simulate::Failure;

/// Runs a case.
///
/// # Errors
/// The invariants that did not hold.
pub fn check(case: &Case) -> Result<(), Failure> {
    let violations = invariants::violations(&run(case));
    if violations.is_empty() { Ok(()) } else { Err(Failure { violations }) }
}

/// Runs the case of a seed.
///
/// # Errors
/// The invariants that did not hold.
pub fn check_seed(seed: u64) -> Result<(), Failure> {
    check(&Case::from_seed(seed))
}

/// A failing case, and a smaller one that violates the same invariant.
#[derive(Debug)]
pub struct Found {
    /// The violations.
    pub failure: Failure,
    /// The smaller case.
    pub smallest: Case,
    /// Its violations.
    pub smallest_failure: Failure,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\nshrunk, {}", self.failure, self.smallest)?;
        writeln!(f, "\nin which:\n{}", self.smallest_failure)?;
        write!(f, "\nwhat happened there:\n{}", run(&self.smallest))
    }
}

/// Shrinks a failing case by leaving things out, as long as it violates the first invariant of `failure`.
pub fn shrink(case: Case, failure: Failure) -> Found {
    let invariant = failure.violations.first().map_or("", |violation| violation.invariant);
    let (mut smallest, mut smallest_failure) = (case, failure.clone());
    let mut attempt = |smaller: Case, smallest: &mut Case| match check(&smaller) {
        Err(failure) if failure.names(invariant) => {
            *smallest = smaller;
            smallest_failure = failure;
            true
        }
        _ => false,
    };
    loop {
        let mut is_smaller = false;
        for thread in 0..smallest.script.0.len() {
            let mut index = 0;
            while smallest.script.0.get(thread).is_some_and(|acts| index < acts.len()) {
                let mut case = smallest.clone();
                if let Some(acts) = case.script.0.get_mut(thread) {
                    acts.remove(index);
                }
                if attempt(case, &mut smallest) {
                    is_smaller = true;
                } else {
                    index += 1;
                }
            }
        }
        for len in [0, smallest.schedule.len() / 2, smallest.schedule.len().saturating_sub(1)] {
            let mut case = smallest.clone();
            case.schedule.truncate(len);
            is_smaller |= case != smallest && attempt(case, &mut smallest);
        }
        if !is_smaller {
            return Found { failure, smallest, smallest_failure };
        }
    }
}
