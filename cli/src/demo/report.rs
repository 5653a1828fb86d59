//! What the demo's program tells the demo, as one line of JSON on standard output.

use serde::{Deserialize, Serialize};

/// The whole run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProgramReport {
    /// Name of the device, as HIP gives it.
    pub(crate) device: String,
    /// The library that the program opened.
    pub(crate) library: String,
    /// One entry per kernel.
    pub(crate) cases: Vec<CaseReport>,
}

/// One kernel, checked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CaseReport {
    pub(crate) kernel: String,
    pub(crate) size: String,
    pub(crate) max_error: f64,
    pub(crate) tolerance: f64,
    pub(crate) elapsed_ms: f64,
}

impl CaseReport {
    /// Whether the result is as right as the kernel's arithmetic allows. A NaN is not.
    pub(crate) fn passed(&self) -> bool {
        self.max_error <= self.tolerance
    }
}
