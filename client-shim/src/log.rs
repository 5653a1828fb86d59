//! The log of a program that uses the library: lines on standard error, from level `warn` on.
//!
//! `HIPR_LOG` sets another level or filter (`off`, `info`, `debug`, `trace`, or as in `RUST_LOG`). The shared
//! library has its own copy of the logging machinery, so this never meets a subscriber of the program; where the
//! Rust library is linked into a program that has one, that one stays.

use hipr_log::Style;

/// Starts the log, unless the program has installed one.
pub(crate) fn init() {
    hipr_log::start(Style::Named, "warn");
}
