//! The smallest world: a client and a server of `hipr-proto`, and a pipe between them.

use crate::invariants::{self, Violation};
use crate::model::Model;
use crate::script::Case;
use crate::simulate::Failure;
use crate::trace::Trace;

/// Runs a case; what did not hold in it.
///
/// # Errors
/// The invariants that did not hold.
pub fn check(case: &Case) -> Result<(), Failure> {
    let model = Model::of(&case.script, &case.options);
    let trace = run(case);
    let violations: Vec<Violation> = invariants::violations(case, &model, &trace);
    if violations.is_empty() { Ok(()) } else { Err(Failure { violations }) }
}

/// What happens in a case.
pub fn run(_case: &Case) -> Trace {
    Trace::default()
}
