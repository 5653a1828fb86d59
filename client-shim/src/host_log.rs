//! The log of what the program allocates and frees, with call stacks, for `hipr check`: written to the file that `HIPR_CHECK` names.
//!
//! Lines of words with tabs between them; a stack is `MODULE+OFFSET` in hexadecimal, with commas between the frames, the innermost first.
//! `MODULE` is the number of a line `module`, `OFFSET` a byte of its file.
//!
//! ```text
//! module  PID  NUMBER  PATH
//! alloc   PID  FUNCTION  ADDRESS  BYTES  STACK
//! free    PID  FUNCTION  ADDRESS  STACK            memory is freed
//! refused PID  FUNCTION  ADDRESS  STACK            what is freed is no such memory
//! large   PID  FUNCTION  KERNEL   STACK            a cooperative launch has more blocks than the device holds at once
//! ```

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, read_to_string};
use std::io::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

use hipr_proto::{HipError, HipResult};

use crate::calls;
use crate::convert::Ptr;
use crate::thread;

/// The most frames of a stack.
const FRAMES_MAX: usize = 32;

/// A mapped part of a file.
struct Mapped {
    start: usize,
    end: usize,
    offset: usize,
    module: usize,
}

#[derive(Default)]
struct Log {
    file: Option<File>,
    /// The process that has written the modules' lines.
    pid: u32,
    modules: Vec<String>,
    mapped: Vec<Mapped>,
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

/// Notes a cooperative launch of more blocks than the device holds at once.
pub(crate) fn too_large(kernel: &str) {
    if let Some(log) = log() {
        write(log, "large", kernel);
    }
}

/// Writes a line, and before it the lines of modules that its stack is the first to name. All of it is one write, so that it is there as a
/// whole if the program crashes.
fn write(log: &Mutex<Log>, what: &str, words: &str) {
    let mut addresses = Vec::with_capacity(FRAMES_MAX);
    backtrace::trace(|frame| {
        addresses.push(frame.ip().addr());
        addresses.len() < FRAMES_MAX
    });
    let function = calls::name_of(thread::call()).map_or("?", |(name, _)| name);
    let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = std::process::id();
    if log.pid != pid {
        let file = log.file.take();
        *log = Log { file, pid, ..Log::default() };
    }
    let mut lines = String::new();
    let stack: Vec<String> =
        addresses.into_iter().filter_map(|address| log.frame(address, &mut lines)).collect();
    // Writing to a String does not fail.
    let _ = writeln!(lines, "{what}\t{pid}\t{function}\t{words}\t{}", stack.join(","));
    if let Some(file) = &mut log.file
        && let Err(why) = file.write_all(lines.as_bytes())
    {
        tracing::warn!("cannot write the log of allocations: {why}");
        log.file = None;
    }
}

impl Log {
    /// Returns a frame as the log has it, by its return address. Adds the line of its module to `lines` if it is new.
    fn frame(&mut self, return_address: usize, lines: &mut String) -> Option<String> {
        // The call is before the address that it returns to.
        let address = return_address.checked_sub(1)?;
        if self.find(address).is_none() {
            self.read_maps(lines);
        }
        let mapped = self.find(address)?;
        Some(format!("{:x}+{:x}", mapped.module, address - mapped.start + mapped.offset))
    }

    fn find(&self, address: usize) -> Option<&Mapped> {
        self.mapped.iter().find(|mapped| (mapped.start..mapped.end).contains(&address))
    }

    /// Reads which code the process has mapped.
    fn read_maps(&mut self, lines: &mut String) {
        self.mapped.clear();
        for line in read_to_string("/proc/self/maps").unwrap_or_default().lines() {
            let mut words = line.splitn(6, ' ');
            let (range, rights, offset) = (words.next(), words.next(), words.next());
            let path = words.nth(2).map_or("", str::trim);
            let Some((start, end)) = range.and_then(|range| range.split_once('-')) else { continue };
            if !rights.is_some_and(|rights| rights.contains('x')) || !path.starts_with('/') {
                continue;
            }
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            let (Some(start), Some(end), Some(offset)) =
                (number(start), number(end), offset.and_then(number))
            else {
                continue;
            };
            let module = self.modules.iter().position(|known| known == path).unwrap_or_else(|| {
                self.modules.push(path.to_owned());
                let module = self.modules.len() - 1;
                // Writing to a String does not fail.
                let _ = writeln!(lines, "module\t{}\t{module:x}\t{path}", self.pid);
                module
            });
            self.mapped.push(Mapped { start, end, offset, module });
        }
    }
}
