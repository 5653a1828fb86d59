use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hipr_proto::{Fatal, Outbox};
use hipr_tls::{Admission, Fault};

use crate::{Account, Batch, Body, Peer, Stream};

/// Identifies a connection for the lifetime of the loop: a slot, and how often the slot was used before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

impl ConnId {
    pub(crate) fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// Returns the index in the loop's table.
    pub fn slot(self) -> u32 {
        self.slot
    }

    pub(crate) fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Debug for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// Why a connection ended.
#[derive(Debug)]
pub enum End {
    /// The peer closed its side between two messages.
    Eof,
    /// The peer broke the protocol, or closed its side in the middle of a message.
    Protocol(Fatal),
    /// The peer is not let in, breaks the rules of encryption, or closed its side without a good-bye.
    Channel(Fault),
    /// The peer breaks the rules of sessions that outlive their connections.
    Frames(hipr_resume::Fault),
    /// All seats are taken, and the connection does not go on with a session.
    NoSeat,
    /// Nobody has gone on with the session within [`crate::Config::resume_timeout_ms`].
    NotResumed,
    /// The connection was cut, and the client's tenant has as many sessions without one as it may have.
    ParkedMax,
    /// The client has sent more than can be taken or kept for now.
    NoRoom,
    /// No complete message arrived within [`crate::Config::first_message_timeout_ms`].
    FirstMessageTimeout,
    /// Nothing arrived for [`crate::Config::mid_message_timeout_ms`] in the middle of a message.
    MidMessageTimeout,
    /// Nothing was sent or owed for [`crate::Config::idle_timeout_ms`].
    IdleTimeout,
    /// The socket failed.
    Socket(std::io::Error),
    /// The worker shuts down.
    Stopped,
}

impl End {
    /// Returns whether replies to earlier requests can still be delivered.
    pub fn is_writable(&self) -> bool {
        matches!(self, Self::Eof | Self::Protocol(_) | Self::Channel(_))
    }

    /// Returns a word for the reason, which does not change.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Eof => "closed",
            Self::Protocol(_) | Self::Frames(_) => "protocol",
            Self::Channel(why) => why.word(),
            Self::NoSeat => "no-seat",
            Self::NotResumed => "not-resumed",
            Self::ParkedMax => "parked-max",
            Self::NoRoom => "no-room",
            Self::FirstMessageTimeout => "first-message-timeout",
            Self::MidMessageTimeout => "mid-message-timeout",
            Self::IdleTimeout => "idle-timeout",
            Self::Socket(_) => "socket",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => f.write_str("the peer closed the connection"),
            Self::Protocol(why) => write!(f, "protocol error: {why}"),
            Self::Channel(why) => why.fmt(f),
            Self::Frames(why) => write!(f, "protocol error: {why}"),
            Self::NoSeat => f.write_str("all seats are taken"),
            Self::NotResumed => f.write_str("its client did not come back in time"),
            Self::ParkedMax => f.write_str(
                "the link was cut, and its tenant has as many sessions without one as it may have",
            ),
            Self::NoRoom => {
                f.write_str("its client has sent more than there is memory to keep while it takes nothing")
            }
            Self::FirstMessageTimeout => f.write_str("timeout: no complete first message"),
            Self::MidMessageTimeout => f.write_str("timeout in the middle of a message"),
            Self::IdleTimeout => f.write_str("timeout: it was idle for too long"),
            Self::Socket(why) => write!(f, "socket error: {why}"),
            Self::Stopped => f.write_str("the worker shuts down"),
        }
    }
}

/// An event that the loop reports to its [`Handler`](crate::Handler). Events of one connection arrive in order.
#[derive(Debug)]
pub enum Event {
    /// A connection was opened; its first complete message follows.
    Opened {
        /// The connection.
        conn: ConnId,
        /// The client's end.
        peer: Peer,
        /// What the client may do, if it has proved who it is.
        grant: Option<Arc<Admission>>,
    },
    /// A connection received requests or data.
    Batch {
        /// The connection.
        conn: ConnId,
        /// The received messages. Has to be returned in a [`Notice`].
        batch: Batch,
    },
    /// The connection's unsent bytes fell to the number in [`Notice::wants_drain`], or below.
    Drained {
        /// The connection.
        conn: ConnId,
        /// Total number of bytes sent on the connection.
        sent_bytes: u64,
    },
    /// The connection will receive no more, but replies can still be sent: finish its requests, then close it.
    Ended {
        /// The connection.
        conn: ConnId,
    },
    /// The connection was cut, and its session is kept for its client.
    Parked {
        /// The connection.
        conn: ConnId,
        /// Why it ended.
        reason: String,
    },
    /// The session goes on over another connection, which has the name of the one before.
    Resumed {
        /// The connection.
        conn: ConnId,
        /// The client's end of it.
        peer: Peer,
    },
    /// The connection is closed; no further event refers to it.
    Closed {
        /// The connection.
        conn: ConnId,
        /// What it has moved, and why it ended.
        account: Box<Account>,
    },
}

/// A message from the dispatch to the loop about one connection.
#[derive(Debug)]
pub struct Notice {
    /// The connection.
    pub conn: ConnId,
    /// A descriptor for a client on this machine, which is passed ahead of the bytes of this notice, or with the first of those that are
    /// sent.
    pub descriptor: Option<OwnedFd>,
    /// Bytes to send.
    pub outbox: Option<Outbox<Body>>,
    /// Number of requests completed since the last notice.
    pub completed: usize,
    /// Batches that are finished, for reuse.
    pub returned: Vec<Batch>,
    /// Asks for one [`Event::Drained`] when at most this many bytes are unsent.
    pub wants_drain: Option<usize>,
    /// Whether to close the connection when everything is sent.
    pub close: bool,
}

impl Notice {
    /// Creates an empty notice.
    pub fn new(conn: ConnId) -> Self {
        Self {
            conn,
            descriptor: None,
            outbox: None,
            completed: 0,
            returned: Vec::new(),
            wants_drain: None,
            close: false,
        }
    }
}

/// The queue of notices from the dispatch to the loop.
pub struct Mailbox {
    notices: Mutex<Vec<Notice>>,
    asleep: AtomicBool,
    /// Whether a turn of the loop is wanted that has not begun.
    wanted: AtomicBool,
    /// Connections that were accepted elsewhere.
    handed: Mutex<Vec<Stream>>,
    has_handed: AtomicBool,
    stop: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("notices", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Mailbox {
    /// Maximum number of handed connections that wait.
    const HANDED_MAX: usize = 16;

    /// Creates a mailbox that wakes its loop by calling `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            notices: Mutex::default(),
            asleep: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            handed: Mutex::default(),
            has_handed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Queues a notice; wakes the loop if it sleeps.
    pub fn post(&self, notice: Notice) {
        self.lock().push(notice);
        self.wake_sleeper();
    }

    /// Stops the loop. Can be called from any thread.
    pub fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.wake_sleeper();
    }

    /// Returns whether the loop has to stop. For the loop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst)
    }

    /// Moves all queued notices to `into`, which has to be empty and whose memory is reused. For the loop.
    pub fn take(&self, into: &mut Vec<Notice>) {
        debug_assert!(into.is_empty());
        std::mem::swap(&mut *self.lock(), into);
    }

    /// Makes the loop run its handler's turn, beginning after this call; wakes the loop if it sleeps. Can be called from
    /// any thread.
    pub fn rouse(&self) {
        self.wanted.store(true, SeqCst);
        self.wake_sleeper();
    }

    /// Hands the loop a connection that was accepted elsewhere and may only go on with a session of this loop. Drops it if the loop has not
    /// taken as many as may wait. Can be called from any thread.
    pub fn hand(&self, stream: Stream) {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        if handed.len() < Self::HANDED_MAX {
            handed.push(stream);
        }
        drop(handed);
        self.has_handed.store(true, SeqCst);
        self.rouse();
    }

    /// Returns the connections that were [handed](Self::hand) to the loop. For the loop.
    pub fn take_handed(&self) -> Vec<Stream> {
        if !self.has_handed.load(SeqCst) || !self.has_handed.swap(false, SeqCst) {
            return Vec::new();
        }
        std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Announces that the loop is about to sleep; returns false if it must not, because something is queued. From this
    /// until [`Mailbox::awake`], every notice calls `wake` at least once. For the loop.
    pub fn prepare_sleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        if self.lock().is_empty() && !self.is_stopped() && !self.wanted.load(SeqCst) {
            return true;
        }
        self.asleep.store(false, SeqCst);
        false
    }

    /// Announces that the loop is awake and begins a turn. For the loop.
    pub fn awake(&self) {
        self.asleep.store(false, SeqCst);
        self.wanted.store(false, SeqCst);
    }

    fn wake_sleeper(&self) {
        if self.asleep.swap(false, SeqCst) {
            (self.wake)();
        }
    }

    /// Locks the queue. Poisoning is ignored: a panic leaves the vector intact.
    fn lock(&self) -> MutexGuard<'_, Vec<Notice>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn the_loop_is_woken_only_when_it_sleeps() {
        let wakes = Arc::new(AtomicUsize::new(0));
        let count = wakes.clone();
        let mailbox = Mailbox::new(move || {
            count.fetch_add(1, SeqCst);
        });
        let conn = ConnId::new(1, 0);
        mailbox.post(Notice::new(conn));
        assert_eq!(wakes.load(SeqCst), 0);
        assert!(!mailbox.prepare_sleep(), "a notice is waiting");
        let mut notices = Vec::new();
        mailbox.take(&mut notices);
        assert_eq!(notices.len(), 1);
        assert!(mailbox.prepare_sleep());
        mailbox.post(Notice::new(conn));
        mailbox.post(Notice::new(conn));
        assert_eq!(wakes.load(SeqCst), 1);
        let mut notices = Vec::new();
        mailbox.take(&mut notices);
        mailbox.awake();
        mailbox.rouse();
        assert_eq!(wakes.load(SeqCst), 1);
        assert!(!mailbox.prepare_sleep(), "somebody wants a turn");
        mailbox.awake();
        assert!(mailbox.prepare_sleep(), "the turn has begun");
        mailbox.rouse();
        assert_eq!(wakes.load(SeqCst), 2);
        mailbox.stop();
        assert!(mailbox.is_stopped() && !mailbox.prepare_sleep());
    }
}
