use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hipr_proto::{Fatal, Outbox};

use crate::{Batch, Body, Peer};

/// Names a connection for as long as the loop runs: a slot, and how often the slot was used before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    slot: u32,
    generation: u32,
}

impl ConnId {
    pub(crate) fn new(slot: u32, generation: u32) -> Self {
        Self { slot, generation }
    }

    /// The place in the loop's table.
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

/// Why a connection says nothing more.
#[derive(Debug)]
pub enum End {
    /// The peer closed its side between two messages.
    Eof,
    /// The peer broke the protocol; also: it closed in the middle of a message.
    Protocol(Fatal),
    /// No complete message within [`crate::Config::first_message_timeout_ms`].
    FirstMessageTimeout,
    /// Silence in the middle of a message for [`crate::Config::mid_message_timeout_ms`].
    MidMessageTimeout,
    /// The socket failed.
    Socket(std::io::Error),
    /// The worker stops.
    Stopped,
}

impl End {
    /// Whether replies to what came before can still be delivered.
    pub fn is_writable(&self) -> bool {
        matches!(self, Self::Eof | Self::Protocol(_))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eof => f.write_str("the peer closed it"),
            Self::Protocol(why) => write!(f, "protocol error: {why}"),
            Self::FirstMessageTimeout => f.write_str("no complete message in time"),
            Self::MidMessageTimeout => f.write_str("silence in the middle of a message"),
            Self::Socket(why) => write!(f, "socket error: {why}"),
            Self::Stopped => f.write_str("the worker stops"),
        }
    }
}

/// What the loop tells its [`Handler`](crate::Handler). Events of one connection come in order.
#[derive(Debug)]
pub enum Event {
    /// A connection's first complete message is about to come.
    Opened {
        /// The connection.
        conn: ConnId,
        /// Who it is.
        peer: Peer,
    },
    /// A connection said something.
    Batch {
        /// The connection.
        conn: ConnId,
        /// What it said. To be given back in a [`Notice`].
        batch: Batch,
    },
    /// The connection's unsent bytes fell to what a notice asked to be told of, or below.
    Drained {
        /// The connection.
        conn: ConnId,
        /// Bytes sent since it was opened.
        sent_bytes: u64,
    },
    /// The connection will say nothing more, but can still be answered: finish what came before, then close it.
    Ended {
        /// The connection.
        conn: ConnId,
    },
    /// The connection is gone. Nothing refers to it any more.
    Closed {
        /// The connection.
        conn: ConnId,
    },
}

/// What the dispatch tells the loop about one connection.
#[derive(Debug)]
pub struct Notice {
    /// The connection.
    pub conn: ConnId,
    /// Bytes to send.
    pub outbox: Option<Outbox<Body>>,
    /// Requests completed since the last notice.
    pub completed: usize,
    /// Batches that are done with.
    pub returned: Vec<Batch>,
    /// Asks for one [`Event::Drained`], when so many unsent bytes, or fewer, are left.
    pub wants_drain: Option<usize>,
    /// Close the connection when everything is sent.
    pub close: bool,
}

impl Notice {
    /// A notice that says nothing yet.
    pub fn new(conn: ConnId) -> Self {
        Self { conn, outbox: None, completed: 0, returned: Vec::new(), wants_drain: None, close: false }
    }
}

/// The way from the dispatch to the loop.
pub struct Mailbox {
    notices: Mutex<Vec<Notice>>,
    asleep: AtomicBool,
    /// Somebody wants the loop to have a turn, and that has not begun.
    wanted: AtomicBool,
    stop: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("notices", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Mailbox {
    /// A mailbox whose loop is woken by `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            notices: Mutex::default(),
            asleep: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            wake: Box::new(wake),
        }
    }

    /// Leaves a notice. Wakes the loop only if it sleeps.
    pub fn post(&self, notice: Notice) {
        self.lock().push(notice);
        self.wake_sleeper();
    }

    /// Ends the loop, from any thread.
    pub fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.wake_sleeper();
    }

    /// Loop side: whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(SeqCst)
    }

    /// Loop side: takes everything that was left, into an empty `into` whose memory is reused.
    pub fn take(&self, into: &mut Vec<Notice>) {
        debug_assert!(into.is_empty());
        std::mem::swap(&mut *self.lock(), into);
    }

    /// Wants the loop's handler to have a turn that begins after this, from any thread. Wakes the loop only if it sleeps.
    pub fn rouse(&self) {
        self.wanted.store(true, SeqCst);
        self.wake_sleeper();
    }

    /// Loop side: says that it is about to sleep. `false`: something is here already, do not sleep. Between this and
    /// [`Mailbox::awake`] every notice calls `wake` (at least once).
    pub fn prepare_sleep(&self) -> bool {
        self.asleep.store(true, SeqCst);
        if self.lock().is_empty() && !self.is_stopped() && !self.wanted.load(SeqCst) {
            return true;
        }
        self.asleep.store(false, SeqCst);
        false
    }

    /// Loop side: says that it is awake and begins a turn.
    pub fn awake(&self) {
        self.asleep.store(false, SeqCst);
        self.wanted.store(false, SeqCst);
    }

    fn wake_sleeper(&self) {
        if self.asleep.swap(false, SeqCst) {
            (self.wake)();
        }
    }

    /// A panic while the lock is held leaves a whole vector, so poison says nothing.
    fn lock(&self) -> MutexGuard<'_, Vec<Notice>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
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
