//! What the runtime prints for kernels, which it does through the C library of its process.

use std::io::{self, PipeReader, Read};

use hipr_device::Printed;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::ioctl_fionread;
use rustix::pipe::fcntl_setpipe_size;

/// Bytes that wait in the pipe; the runtime, and the kernel for which it prints, wait where there are more.
const PIPE_BYTES: usize = 1 << 20;

/// The end of a pipe whose other end is this process's standard output.
#[derive(Debug)]
pub(super) struct Output(PipeReader);

impl Output {
    /// Makes standard output a pipe, which the C library writes at once.
    pub(super) fn take() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let flags = fcntl_getfl(&reader)?;
        fcntl_setfl(&reader, flags | OFlags::NONBLOCK)?;
        if let Err(why) = fcntl_setpipe_size(&reader, PIPE_BYTES) {
            tracing::debug!(%why, "the pipe for what kernels print stays small");
        }
        rustix::stdio::dup2_stdout(writer)?;
        write_at_once();
        Ok(Self(reader))
    }

    /// Returns whether something was printed.
    pub(super) fn is_there(&self) -> bool {
        ioctl_fionread(&self.0).is_ok_and(|bytes| bytes > 0)
    }

    /// Takes what was printed.
    pub(super) fn read(&self) -> Vec<Printed> {
        let mut text = vec![0; PIPE_BYTES];
        let len_bytes = (&self.0).read(&mut text).unwrap_or(0);
        text.truncate(len_bytes);
        if text.is_empty() { Vec::new() } else { vec![Printed { is_error: false, text }] }
    }
}

/// Lets the C library write standard output without keeping any of it.
#[allow(unsafe_code, reason = "it calls the C library")]
fn write_at_once() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: the C library's stream, which it has made before it runs a program; without a buffer there is nothing to be kept alive.
    let result = unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IONBF, 0) };
    if result != 0 {
        tracing::debug!("the C library keeps what kernels print for a while");
    }
}
