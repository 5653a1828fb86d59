//! The report of the demo's HIP program, one line of JSON on its standard output.

use serde::{Deserialize, Serialize};

/// The report of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProgramReport {
    /// Name of the device, as HIP returns it.
    pub(crate) device: String,
    /// Path of the library that the program opened.
    pub(crate) library: String,
    /// One entry per kernel.
    pub(crate) cases: Vec<CaseReport>,
}

/// The result of one kernel.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CaseReport {
    pub(crate) kernel: String,
    pub(crate) size: String,
    pub(crate) max_error: f64,
    pub(crate) tolerance: f64,
    pub(crate) elapsed_ms: f64,
}

impl CaseReport {
    /// Returns whether the error is acceptable; a NaN is not.
    pub(crate) fn passed(&self) -> bool {
        self.max_error <= self.tolerance
    }
}
