//! The submission and completion queues of an io_uring.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use tracing::debug;

use crate::refusal;
use crate::token::{Op, Token};

/// Capacity of the submission queue: requests that can be queued without a system call.
const SUBMISSIONS: u32 = 1024;
/// Capacity of the completion queue; further completions wait in the kernel.
const COMPLETIONS: u32 = 8192;

/// A completion of a request, or of one shot of a multishot request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) token: Token,
    /// The operation's result; a negated errno if negative.
    pub(crate) result: i32,
    /// The number of the receive buffer that was filled.
    pub(crate) buffer: Option<u16>,
    /// Whether the request stays in flight.
    pub(crate) more: bool,
}

impl Completion {
    /// Returns the operation's result.
    pub(crate) fn result(&self) -> io::Result<usize> {
        usize::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(-self.result))
    }
}

/// An io_uring. It is created on one thread and used on the one that calls [`Ring::enable`].
pub(crate) struct Ring {
    uring: IoUring,
    /// Requests for which the submission queue had no room.
    waiting: VecDeque<squeue::Entry>,
}

/// When the kernel runs completion work, best mode first: on this thread when it asks for completions (Linux 6.1), or on
/// this thread whenever it enters the kernel (5.19).
const MODES: [(&str, Mode); 2] = [
    ("deferred", |builder| builder.setup_single_issuer().setup_defer_taskrun()),
    ("cooperative", |builder| builder.setup_coop_taskrun()),
];
type Mode = fn(&mut io_uring::Builder) -> &mut io_uring::Builder;

impl Ring {
    /// Creates a ring that queues requests and submits them once it is enabled.
    ///
    /// # Errors
    /// The kernel has no io_uring, too old a one, or does not permit it.
    pub(crate) fn new() -> io::Result<Self> {
        // When a ring goes, the kernel interrupts system calls of each thread that made or used it, and other threads than the
        // loop's may not expect that. So it is made on one that has gone by then.
        let made = thread::scope(|scope| {
            thread::Builder::new().spawn_scoped(scope, || Self::in_first_of(&MODES)).map(|made| made.join())
        });
        made?.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn in_first_of(modes: &[(&str, Mode)]) -> io::Result<Self> {
        let mut refused = None;
        for (mode, set) in modes {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(COMPLETIONS).setup_clamp().setup_submit_all().setup_taskrun_flag();
            builder.setup_r_disabled();
            set(&mut builder);
            match builder.build(SUBMISSIONS) {
                Ok(uring) => {
                    debug!(mode, "io_uring");
                    check(&uring)?;
                    return Ok(Self { uring, waiting: VecDeque::new() });
                }
                Err(why) => refused = Some(why),
            }
            if refused.as_ref().and_then(io::Error::raw_os_error) != Some(libc::EINVAL) {
                break;
            }
        }
        Err(refusal::explain(&refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOSYS))))
    }

    /// Binds the ring to this thread.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn enable(&self) -> io::Result<()> {
        self.uring.submitter().register_enable_rings()
    }

    /// Returns the submitter, to register memory.
    pub(crate) fn submitter(&self) -> io_uring::Submitter<'_> {
        self.uring.submitter()
    }

    /// Queues a request, which the next [`Ring::enter`] submits.
    ///
    /// # Safety
    /// The memory that it points to stays as it is until it completed, and the file that it names stays open until it was
    /// submitted.
    pub(crate) unsafe fn push(&mut self, token: Token, entry: squeue::Entry) {
        let entry = entry.user_data(token.pack());
        // SAFETY: what the caller promises.
        if !self.waiting.is_empty() || unsafe { self.uring.submission().push(&entry) }.is_err() {
            self.waiting.push_back(entry);
        }
    }

    /// Submits the queued requests and waits for a completion, at most `timeout`.
    ///
    /// # Errors
    /// Those of the system that time does not heal.
    pub(crate) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        while !self.waiting.is_empty() {
            tolerate(self.uring.submit())?;
            let mut queue = self.uring.submission();
            if queue.is_full() {
                // The kernel takes no more before its completions are taken.
                return Ok(());
            }
            while let Some(entry) = self.waiting.front() {
                // SAFETY: promised to `Ring::push`.
                if unsafe { queue.push(entry) }.is_err() {
                    break;
                }
                self.waiting.pop_front();
            }
        }
        let queue = self.uring.submission();
        let has_work = !queue.is_empty() || queue.taskrun() || queue.cq_overflow();
        drop(queue);
        let submitter = self.uring.submitter();
        tolerate(match timeout {
            None => submitter.submit_and_wait(1),
            Some(Duration::ZERO) if !has_work => return Ok(()),
            Some(Duration::ZERO) => submitter.submit(),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
        })
    }

    /// Returns whether all queued requests have been submitted.
    pub(crate) fn is_submitted(&mut self) -> bool {
        self.waiting.is_empty() && self.uring.submission().is_empty()
    }

    /// Moves the available completions to `into`.
    pub(crate) fn reap(&mut self, into: &mut Vec<Completion>) {
        into.extend(self.uring.completion().filter_map(|entry| {
            Some(Completion {
                token: Token::unpack(entry.user_data())?,
                result: entry.result(),
                buffer: cqueue::buffer_select(entry.flags()),
                more: cqueue::more(entry.flags()),
            })
        }));
    }
}

/// Checks that the kernel has the features that the loop needs.
fn check(uring: &IoUring) -> io::Result<()> {
    let mut probe = Probe::new();
    uring.submitter().register_probe(&mut probe).map_err(|why| refusal::explain(&why))?;
    // There is no way to ask for receiving more than once; that came together with sending without a copy.
    let needed = [
        (opcode::SendZc::CODE, "multishot receive"),
        (opcode::AcceptMulti::CODE, "accept"),
        (opcode::SendMsg::CODE, "sendmsg"),
        (opcode::PollAdd::CODE, "poll"),
        (opcode::AsyncCancel2::CODE, "cancel"),
        (opcode::Read::CODE, "read"),
    ];
    match needed.into_iter().find(|(code, _)| !probe.is_supported(*code)) {
        Some((_, name)) => Err(refusal::lacks(name)),
        None if !uring.params().is_feature_ext_arg() => Err(refusal::lacks("timeouts for waiting")),
        None if !uring.params().is_feature_nodrop() => Err(refusal::lacks("unlimited completions")),
        None => Ok(()),
    }
}

/// Ignores errors that need no handling: a signal, a timeout, and a kernel that is short of memory or wants its completions
/// taken first.
fn tolerate(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Err(why) => match why.raw_os_error() {
            Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(why),
        },
        Ok(_) => Ok(()),
    }
}

/// Builds a request that cancels all requests for a descriptor.
pub(crate) fn cancel_all(fd: std::os::fd::RawFd) -> squeue::Entry {
    let which = io_uring::types::CancelBuilder::fd(io_uring::types::Fd(fd)).all();
    opcode::AsyncCancel2::new(which).build()
}

/// Builds a request that cancels another.
pub(crate) fn cancel(op: Op, port: u32) -> squeue::Entry {
    opcode::AsyncCancel::new(Token::new(op, port).pack()).build()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Checks every mode, including the one that only older lent use.
    #[test]
    fn every_mode_carries_requests_out() {
        for mode in MODES {
            let Ok(mut ring) = Ring::in_first_of(&[mode]) else { continue };
            ring.enable().unwrap();
            let event = rustix::event::eventfd(7, rustix::event::EventfdFlags::CLOEXEC).unwrap();
            let mut value = Box::new(0u64);
            let fd = io_uring::types::Fd(event.as_raw_fd());
            let entry = opcode::Read::new(fd, (&raw mut *value).cast(), 8).build();
            // SAFETY: the value and the descriptor outlive the request, which completes below.
            unsafe { ring.push(Token::new(Op::Wake, 5), entry) };
            assert!(!ring.is_submitted());
            let mut completions = Vec::new();
            while completions.is_empty() {
                ring.enter(None).unwrap();
                ring.reap(&mut completions);
            }
            assert!(ring.is_submitted());
            let [Completion { token, result: 8, more: false, .. }] = completions[..] else {
                panic!("{}: {completions:?}", mode.0);
            };
            assert_eq!((token, *value), (Token::new(Op::Wake, 5), 7));
            // Nothing is left to do, nor to wait for.
            ring.enter(Some(Duration::ZERO)).unwrap();
            ring.enter(Some(Duration::from_millis(1))).unwrap();
            ring.reap(&mut completions);
            assert_eq!(completions.len(), 1);
        }
    }

    /// Queues more requests than the submission queue holds.
    #[test]
    fn requests_wait_for_room() {
        let Ok(mut ring) = Ring::new() else { return };
        ring.enable().unwrap();
        let count = 3 * SUBMISSIONS;
        for number in 0..count {
            // SAFETY: it points to nothing.
            unsafe { ring.push(Token::new(Op::Cancel, number), opcode::Nop::new().build()) };
        }
        let mut completions = Vec::new();
        while completions.len() < count as usize {
            ring.enter(None).unwrap();
            ring.reap(&mut completions);
        }
        assert!((0..count).zip(&completions).all(|(number, completion)| completion.token.port == number));
    }
}
