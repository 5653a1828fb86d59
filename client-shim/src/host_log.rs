//! The log of what the program allocates and frees, with call stacks, for `hipr check`: written to the file that `HIPR_CHECK` names.
//!
//! Lines of words with tabs between them; a stack is `MODULE+OFFSET` in hexadecimal, with commas between the frames, the innermost first.
//! `MODULE` is the number of a line `module`, `OFFSET` a byte of its file.
//!
//! ```text
//! module  PID  NUMBER  PATH
//! alloc   PID  FUNCTION  ADDRESS  BYTES  STACK
//! free    PID  FUNCTION  ADDRESS  STACK            memory is freed
//! refused PID  FUNCTION  ADDRESS  STACK            what is freed is no such memory, or none of this function's, so that `free` follows
//! large   PID  FUNCTION  KERNEL   STACK            a cooperative launch has more blocks than the device holds at once
//! ```

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use hipr_proto::{HipError, HipResult};

use crate::calls;
use crate::convert::Ptr;
use crate::maps::{Maps, return_addresses};
use crate::thread;

/// The most frames of a stack.
const FRAMES_MAX: usize = 32;

#[derive(Default)]
struct Log {
    file: Option<File>,
    /// The process that has written the modules' lines.
    pid: u32,
    maps: Maps,
    /// The number of files whose lines are written.
    modules: usize,
}

static LOG: OnceLock<Option<Mutex<Log>>> = OnceLock::new();

fn log() -> Option<&'static Mutex<Log>> {
    let open = || {
        let path = std::env::var_os("HIPR_CHECK").filter(|path| !path.is_empty())?;
        match OpenOptions::new().append(true).create(true).open(&path) {
            Ok(file) => Some(Mutex::new(Log { file: Some(file), ..Log::default() })),
            Err(why) => {
                tracing::warn!("cannot write {}: {why}", path.display());
                None
            }
        }
    };
    LOG.get_or_init(open).as_ref()
}

/// Returns whether `hipr check` runs the program.
pub(crate) fn is_on() -> bool {
    log().is_some()
}

/// Notes memory that the program has allocated.
pub(crate) fn allocated(base: Ptr, size_bytes: usize) {
    if let Some(log) = log() {
        write(log, "alloc", &format!("{:x}\t{size_bytes}", base.0));
    }
}

/// Notes that the program frees memory, and whether it could; returns `result`. Errors that say nothing of the pointer, as those of
/// a capture or of a kernel before, are not noted.
pub(crate) fn freed(ptr: Ptr, result: HipResult<()>) -> HipResult<()> {
    if let Some(log) = log().filter(|_| !ptr.is_null()) {
        let what = match result {
            Ok(()) => Some("free"),
            Err(HipError::INVALID_VALUE | HipError::CONTEXT_IS_DESTROYED) => Some("refused"),
            Err(_) => None,
        };
        if let Some(what) = what {
            write(log, what, &format!("{:x}", ptr.0));
        }
    }
    result
}

/// Notes that the program is about to free memory by a function that is not for it, which HIP lets it.
pub(crate) fn freed_by_other(ptr: Ptr) {
    if let Some(log) = log() {
        write(log, "refused", &format!("{:x}", ptr.0));
    }
}

/// Notes a cooperative launch of more blocks than the device holds at once.
pub(crate) fn too_large(kernel: &str) {
    if let Some(log) = log() {
        write(log, "large", kernel);
    }
}

/// Writes a line, and before it the lines of modules that its stack is the first to name. All of it is one write, so that it is there as a
/// whole if the program crashes.
fn write(log: &Mutex<Log>, what: &str, words: &str) {
    let addresses = return_addresses(FRAMES_MAX);
    let function = calls::name_of(thread::call()).map_or("?", |(name, _)| name);
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if log.pid != pid {
        let file = log.file.take();
        *log = Log { file, pid, ..Log::default() };
    }
    let log = &mut *log;
    let calls = addresses.into_iter().filter_map(|address| log.maps.call(address));
    let stack: Vec<String> = calls.map(|(module, offset)| format!("{module:x}+{offset:x}")).collect();
    let mut lines = String::new();
    for (number, path) in log.maps.modules().iter().enumerate().skip(log.modules) {
        // Writing to a String does not fail.
        let _ = writeln!(lines, "module\t{pid}\t{number:x}\t{path}");
    }
    log.modules = log.maps.modules().len();
    // Writing to a String does not fail.
    let _ = writeln!(lines, "{what}\t{pid}\t{function}\t{words}\t{}", stack.join(","));
    if let Some(file) = &mut log.file
        && let Err(why) = file.write_all(lines.as_bytes())
    {
        tracing::warn!("cannot write the log of allocations: {why}");
        log.file = None;
    }
}
