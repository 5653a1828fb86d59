//! How the process of a session has memory lent by the supervisor ([`memory_books`](super::memory_books)), and hears what others need.

use super::memory_books::Kind;
use hipr_io::{Lack, Lender, LenderWords};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, thread};
use tracing::debug;

/// What the supervisor says without being asked, a byte each.
const RECALL: u8 = b'R';
const TURN: u8 = b'T';

/// The supervisor's end of the socket through which a process is told what others need.
#[derive(Debug)]
pub(super) struct Telling(UnixStream);

impl Telling {
    /// Creates the socket; returns it with the process's end.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (socket, given) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        Ok((Self(socket), given.into()))
    }

    /// Says what is to be said to the process. One that does not listen is not waited for, and is said nothing more.
    pub(super) fn tell(&mut self, words: LenderWords) {
        let LenderWords { is_recalled, is_turn } = words;
        for word in [is_recalled.then_some(RECALL), is_turn.then_some(TURN)].into_iter().flatten() {
            if let Err(why) = self.0.write_all(&[word]) {
                debug!(%why, "a session's process cannot be told that others need memory");
            }
        }
    }
}

/// Asks the supervisor, by the number of a kind and an amount; returns how much is granted.
type Ask = Box<dyn Fn(u32, u64) -> u64 + Send + Sync>;

type Wake = Box<dyn Fn() + Send + Sync>;

/// Has memory lent by the supervisor.
pub(super) struct Borrowing {
    ask: Ask,
    is_recalled: AtomicBool,
    is_turn: AtomicBool,
    wake: Mutex<Option<Wake>>,
}

impl fmt::Debug for Borrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowing").finish_non_exhaustive()
    }
}

impl Borrowing {
    /// Takes what asks the supervisor, and the socket on which it says what others need; listens to that on a thread of its own.
    pub(super) fn start(ask: Ask, told: OwnedFd) -> Arc<Self> {
        let (is_recalled, is_turn, wake) = Default::default();
        let borrowing = Arc::new(Self { ask, is_recalled, is_turn, wake });
        let (listening, mut told) = (Arc::clone(&borrowing), UnixStream::from(told));
        thread::spawn(move || {
            let mut word = [0];
            loop {
                match told.read(&mut word) {
                    Ok(1) => listening.hear(word[0]),
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    // The supervisor has ended, and this process is about to.
                    _ => return,
                }
            }
        });
        borrowing
    }

    fn hear(&self, word: u8) {
        match word {
            RECALL => self.is_recalled.store(true, SeqCst),
            TURN => self.is_turn.store(true, SeqCst),
            _ => return,
        }
        if let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner) {
            wake();
        }
    }

    fn ask(&self, kind: Kind, amount: u64) -> u64 {
        (self.ask)(kind as u32, amount)
    }
}

impl Lender for Borrowing {
    fn take(&self, bytes: u64) -> u64 {
        self.ask(Kind::Take, bytes)
    }

    fn give_back(&self, bytes: u64) {
        self.ask(Kind::GiveBack, bytes);
    }

    fn left_bytes(&self) -> u64 {
        self.ask(Kind::Left, 0)
    }

    fn ask_others(&self, lack: Lack) {
        match lack {
            Lack::Bound { needed_bytes } => self.ask(Kind::Short, needed_bytes),
            Lack::Device => self.ask(Kind::ShortOfAll, 0),
        };
    }

    fn has_tried(&self) {
        self.ask(Kind::Tried, 0);
    }

    fn has_returned(&self) {
        self.ask(Kind::Returned, 0);
    }

    fn words(&self) -> LenderWords {
        let (is_recalled, is_turn) = (self.is_recalled.swap(false, SeqCst), self.is_turn.swap(false, SeqCst));
        LenderWords { is_recalled, is_turn }
    }

    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>) {
        *self.wake.lock().unwrap_or_else(PoisonError::into_inner) = Some(wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_told_anything_holds_up_nobody() {
        let (mut telling, given) = Telling::pair().expect("a socket");
        let all = LenderWords { is_recalled: true, is_turn: true };
        (0..100_000).for_each(|_| telling.tell(all));
        drop(given);
        telling.tell(all);
    }
}
