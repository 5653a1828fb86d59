//! The interface of the library with its tests: environment variables and two files.

use std::str::FromStr;

/// Environment variable with the path of the real runtime.
pub const LIBRARY: &str = "FAULTY_HIP_LIBRARY";
/// Environment variable with the path of the plan.
pub const PLAN: &str = "FAULTY_HIP_PLAN";
/// Environment variable with the path of the trace.
pub const TRACE: &str = "FAULTY_HIP_TRACE";

/// Environment variable that makes new memory have bytes in it.
pub const SOILED: &str = "FAULTY_HIP_SOILED";
/// The byte in such memory.
pub const SOIL: i32 = 0xaa;
/// Environment variable with a folder and the address of a TCP service, separated by a comma: what the process may do is tried out.
pub const BREAK_OUT: &str = "FAULTY_HIP_BREAK_OUT";
/// Name of a file in that folder.
pub const SECRET: &str = "secret";
/// Name of a unix socket in that folder.
pub const SERVICE: &str = "service";

/// The call that fails: `hipMalloc 3 2 0` in the file is the third call of hipMalloc, with error 2. With call number 0
/// calls are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Name of the function.
    pub function: String,
    /// Number of the call from 1; 0 for none, or [`EVERY`].
    pub call: u64,
    /// The error that it returns, or [`HANG`].
    pub error: i32,
    /// Number of calls that succeed before any fails.
    pub spared: u64,
}

/// Call number that stands for all calls.
pub const EVERY: u64 = u64::MAX;
/// Error number that stands for a call that does not return.
pub const HANG: i32 = i32::MAX;

impl Plan {
    /// Returns the text of the file.
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

/// Parses a line of the trace: the function, and whether the call failed.
pub fn called(line: &str) -> (&str, bool) {
    line.strip_suffix(FAILED).map_or((line, false), |function| (function, true))
}

/// Suffix of the name of a failed call in the trace.
pub const FAILED: &str = " failed";
