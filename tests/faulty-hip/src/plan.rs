//! What the library is told, and what it tells: by the environment and two files.

use std::str::FromStr;

/// Names the real runtime.
pub const LIBRARY: &str = "FAULTY_HIP_LIBRARY";
/// Names the plan.
pub const PLAN: &str = "FAULTY_HIP_PLAN";
/// Names the trace.
pub const TRACE: &str = "FAULTY_HIP_TRACE";

/// Which call fails: `hipMalloc 3 2 0` in the file is the third call of hipMalloc, with error 2. A call number 0 is none: then
/// calls are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The function's name.
    pub function: String,
    /// Which of its calls, from 1 on; 0 for none; or [`EVERY`].
    pub call: u64,
    /// What it returns, or [`HANG`].
    pub error: i32,
    /// Calls that succeed before any fails.
    pub spared: u64,
}

/// No number of a call: every call that is not spared fails as long as the plan is there.
pub const EVERY: u64 = u64::MAX;
/// No error: the call does not return.
pub const HANG: i32 = i32::MAX;

impl Plan {
    /// The text of the file.
    pub fn text(&self) -> String {
        format!("{} {} {} {}\n", self.function, self.call, self.error, self.spared)
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no plan: a function and three numbers are");
        let [function, call, error, spared] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let error = error.parse().map_err(|_| wrong())?;
        let (call, spared) = (call.parse().map_err(|_| wrong())?, spared.parse().map_err(|_| wrong())?);
        Ok(Self { function: function.into(), call, error, spared })
    }
}

/// What a line of the trace says: the function, and whether the call failed by plan.
pub fn called(line: &str) -> (&str, bool) {
    line.strip_suffix(FAILED).map_or((line, false), |function| (function, true))
}

/// What is appended to the name of a call that failed by plan.
pub const FAILED: &str = " failed";
