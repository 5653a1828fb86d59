//! Printing on standard output. If its reader has closed it (`hipr info | head -1`), the program ends quietly and
//! successfully, after cleaning up.

use std::any::Any;
use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

/// Prints a line like `println!`, for a reader that may stop reading.
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::output::line(format_args!($($arg)*))
    };
}
pub(crate) use say;

/// The panic payload that unwinds when standard output was closed.
struct ReaderGone;

/// Prints a line.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    let printed = out.write_fmt(text).and_then(|()| out.write_all(b"\n"));
    match printed {
        Ok(()) => {}
        // Says nothing, unlike a panic.
        Err(why) if why.kind() == ErrorKind::BrokenPipe => panic::resume_unwind(Box::new(ReaderGone)),
        Err(why) => panic!("cannot print: {why}"),
    }
}

/// Runs a command until it ends or its reader has gone.
pub(crate) fn until_unread(command: impl FnOnce() -> Result<ExitCode, String>) -> Result<ExitCode, String> {
    let ended = panic::catch_unwind(AssertUnwindSafe(command));
    ended.unwrap_or_else(|why: Box<dyn Any + Send>| {
        if why.is::<ReaderGone>() { Ok(ExitCode::SUCCESS) } else { panic::resume_unwind(why) }
    })
}
