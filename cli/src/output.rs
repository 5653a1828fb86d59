//! What the commands print on standard output. Who reads it may have seen enough (`hipr info | head -1`): then the program ends,
//! quietly and with success, and cleans up on its way.

use std::any::Any;
use std::fmt;
use std::io::{self, ErrorKind, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

/// `println!` for a reader who may go away.
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::output::line(format_args!($($arg)*))
    };
}
pub(crate) use say;

/// What unwinds when nobody reads any more.
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

/// Runs a command until it is over or its reader has gone.
pub(crate) fn until_unread(command: impl FnOnce() -> Result<ExitCode, String>) -> Result<ExitCode, String> {
    let ended = panic::catch_unwind(AssertUnwindSafe(command));
    ended.unwrap_or_else(|why: Box<dyn Any + Send>| {
        if why.is::<ReaderGone>() { Ok(ExitCode::SUCCESS) } else { panic::resume_unwind(why) }
    })
}
