//! What holds in every world. Each is a function with a name; each has a bug in [`mutation`](crate::mutation) that it
//! catches.

use crate::model::Model;
use crate::script::Case;
use crate::trace::Trace;

/// An invariant did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// The call that shows it, by its place in the script.
    pub call: Option<usize>,
    /// What happened instead.
    pub what: String,
}

/// An invariant: its name and its function.
pub type Invariant = (&'static str, fn(&Case, &Model, &Trace) -> Result<(), Violation>);

/// All that look at one trace.
pub static INVARIANTS: &[Invariant] = &[];

/// What does not hold in this trace.
pub fn violations(case: &Case, model: &Model, trace: &Trace) -> Vec<Violation> {
    INVARIANTS.iter().filter_map(|(_, holds)| holds(case, model, trace).err()).collect()
}
