//! The submission and completion queues.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};
use tracing::debug;

use crate::refusal;
use crate::token::{Op, Token};

/// Requests that can be queued between two turns without a system call.
const SUBMISSIONS: u32 = 1024;
/// Completions that the kernel may post between two turns; more wait in the kernel.
const COMPLETIONS: u32 = 8192;

/// What became of a request, or of one shot of many.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) token: Token,
    /// The operation's result, an errno if negative.
    pub(crate) result: i32,
    /// The buffer of the ring that was filled.
    pub(crate) buffer: Option<u16>,
    /// The request goes on.
    pub(crate) more: bool,
}

impl Completion {
    /// The operation's result.
    pub(crate) fn result(&self) -> io::Result<usize> {
        usize::try_from(self.result).map_err(|_| io::Error::from_raw_os_error(-self.result))
    }
}

/// An io_uring. Made on one thread, used on the one that calls [`Ring::enable`].
pub(crate) struct Ring {
    uring: IoUring,
    /// Requests for which there was no room.
    waiting: VecDeque<squeue::Entry>,
}

/// How the kernel runs what completes later, best first: on this thread and only when it asks (6.1), or on this thread
/// whenever it is in the kernel (5.19).
const MODES: [(&str, Mode); 2] = [
    ("deferred", |builder| builder.setup_single_issuer().setup_defer_taskrun()),
    ("cooperative", |builder| builder.setup_coop_taskrun()),
];
type Mode = fn(&mut io_uring::Builder) -> &mut io_uring::Builder;

impl Ring {
    /// A ring that takes requests, and gives them to the kernel once it is enabled.
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

    /// For registering memory.
    pub(crate) fn submitter(&self) -> io_uring::Submitter<'_> {
        self.uring.submitter()
    }

    /// Queues a request. It goes to the kernel with the next [`Ring::enter`].
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

    /// Gives the kernel what is queued, and waits for a completion, for no longer than `timeout`.
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

    /// Whether the kernel has all that was queued.
    pub(crate) fn is_submitted(&mut self) -> bool {
        self.waiting.is_empty() && self.uring.submission().is_empty()
    }

    /// Takes the completions that are here.
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

/// Whether the kernel can do what the loop asks for.
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
        None if !uring.params().is_feature_ext_arg() => Err(refusal::lacks("time-out for waiting")),
        None if !uring.params().is_feature_nodrop() => Err(refusal::lacks("memory for completions")),
        None => Ok(()),
    }
}

/// What is no error: a signal, a time-out, and a kernel that first wants its completions taken or is short of memory now.
fn tolerate(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Err(why) => match why.raw_os_error() {
            Some(libc::EINTR | libc::ETIME | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(why),
        },
        Ok(_) => Ok(()),
    }
}

/// A request to cancel whatever the kernel has for this descriptor.
pub(crate) fn cancel_all(fd: std::os::fd::RawFd) -> squeue::Entry {
    let which = io_uring::types::CancelBuilder::fd(io_uring::types::Fd(fd)).all();
    opcode::AsyncCancel2::new(which).build()
}

/// A request to cancel another.
pub(crate) fn cancel(op: Op, port: u32) -> squeue::Entry {
    opcode::AsyncCancel::new(Token::new(op, port).pack()).build()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Also the mode that is only for older kernels.
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

    /// More requests than the queue holds.
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
