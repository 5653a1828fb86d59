//! What the runtime prints for kernels, which it does through the C library of its process.
//!
//! Standard output is a pipe, which a thread empties: whoever prints may be the thread that takes what was printed. Standard error stays what it
//! is, for it has the runtime's last words: of what the runtime writes there, a session is told which assertions failed ([`super::asserted`]).

use std::io::{self, PipeReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hipr_device::{Printed, Waker};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::ioctl_fionread;

use super::asserted;

/// Bytes that wait to be taken; the runtime, and the kernel for which it prints, wait where there are more, and the pipe is full.
const KEPT_BYTES: usize = 4 << 20;
/// Bytes that are read from the pipe at a time.
const PIECE_BYTES: usize = 64 << 10;

/// How long an assertion waits at most until its text has been sent; a session that executes a long request does not get to it.
const SENT_TIMEOUT: Duration = Duration::from_millis(500);

/// The end of a pipe whose other end is this process's standard output.
#[derive(Debug)]
pub(super) struct Output(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pipe: PipeReader,
    kept: Mutex<Kept>,
    taken: Condvar,
    sent: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    text: Vec<u8>,
    /// Lines of standard error that say which assertions failed.
    assertions: Vec<u8>,
    /// Number of those lines that there were, that were taken, and that were sent.
    lines: u64,
    taken_lines: u64,
    sent_lines: u64,
    /// Who is woken when there is text.
    waker: Option<Waker>,
}

impl Output {
    /// Makes standard output a pipe, which the C library writes at once.
    pub(super) fn take() -> io::Result<Self> {
        let (pipe, writer) = io::pipe()?;
        let flags = fcntl_getfl(&pipe)?;
        fcntl_setfl(&pipe, flags | OFlags::NONBLOCK)?;
        rustix::stdio::dup2_stdout(writer)?;
        write_at_once();
        let shared =
            Arc::new(Shared { pipe, kept: Mutex::default(), taken: Condvar::new(), sent: Condvar::new() });
        let reader = Arc::clone(&shared);
        thread::Builder::new().name("hipr-printed".into()).spawn(move || reader.keep_all())?;
        let listener = Arc::clone(&shared);
        asserted::listen(move |line| listener.keep_assertion(line))?;
        Ok(Self(shared))
    }

    /// Sets who is woken when something was printed.
    pub(super) fn set_waker(&self, waker: Waker) {
        self.0.lock().waker = Some(waker);
    }

    /// Returns whether something was printed.
    pub(super) fn is_there(&self) -> bool {
        let kept = self.0.lock();
        !kept.text.is_empty()
            || !kept.assertions.is_empty()
            || ioctl_fionread(&self.0.pipe).is_ok_and(|bytes| bytes > 0)
    }

    /// Takes what was printed.
    pub(super) fn read(&self) -> Vec<Printed> {
        let mut kept = self.0.lock();
        while self.0.read_into(&mut kept) {}
        let text = std::mem::take(&mut kept.text);
        let assertions = std::mem::take(&mut kept.assertions);
        kept.taken_lines = kept.lines;
        self.0.taken.notify_one();
        let parts = [Printed { is_error: false, text }, Printed { is_error: true, text: assertions }];
        parts.into_iter().filter(|part| !part.text.is_empty()).collect()
    }

    /// Says that what was taken has been sent.
    pub(super) fn was_sent(&self) {
        let mut kept = self.0.lock();
        kept.sent_lines = kept.taken_lines;
        self.0.sent.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is in the pipe, up to a piece; returns whether there was any, and may be more.
    fn read_into(&self, kept: &mut Kept) -> bool {
        let mut piece = [0; PIECE_BYTES];
        let len_bytes = (&self.pipe).read(&mut piece).unwrap_or(0);
        kept.text.extend_from_slice(&piece[..len_bytes]);
        len_bytes > 0 && kept.text.len() < KEPT_BYTES
    }

    /// Keeps a line for the session, and waits until it has been sent, as the runtime may end the process next.
    fn keep_assertion(&self, line: &[u8]) {
        let mut kept = self.lock();
        // The session does not get to the one before.
        let is_late = kept.sent_lines < kept.lines;
        kept.lines += 1;
        if kept.assertions.len() < KEPT_BYTES {
            kept.assertions.extend_from_slice(line);
        }
        if let Some(waker) = kept.waker.clone().filter(|_| !is_late) {
            drop(kept);
            waker.wake();
            let is_unsent = |kept: &mut Kept| kept.sent_lines < kept.lines;
            let waited = self.sent.wait_timeout_while(self.lock(), SENT_TIMEOUT, is_unsent);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Keeps what is printed until it is taken, as long as the process lives.
    fn keep_all(&self) {
        loop {
            match poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => {
                    tracing::warn!(%why, "what kernels print is no longer taken");
                    return;
                }
            }
            let kept = self.lock();
            let is_full = |kept: &mut Kept| kept.text.len() >= KEPT_BYTES;
            let mut kept = self.taken.wait_while(kept, is_full).unwrap_or_else(PoisonError::into_inner);
            self.read_into(&mut kept);
            let waker = kept.waker.clone().filter(|_| !kept.text.is_empty());
            drop(kept);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
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
