//! The dispatch thread: the one thread that calls devices.
//!
//! One channel brings everything that can happen: what the loop says, wake-ups of devices, stop. Sessions that have something
//! to do stand in one line and get a turn each, so none holds up another.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender};

use hipr_io::{BodyPool, ConnId, Event, Mailbox, Notice};
use tracing::{debug, error};

use crate::SessionLimits;
use crate::device::{Device, Waker};
use crate::session::{Env, Session, Turn};
use crate::stats::Requests;

/// What can happen.
#[derive(Debug)]
pub(crate) enum Message {
    /// The loop says something.
    Event(Event),
    /// A device has news for a session.
    Wake(ConnId),
    /// The worker stops.
    Stop,
}

struct Seat {
    session: Session,
    /// Whether a wake-up is on its way already.
    woken: Arc<AtomicBool>,
    /// Whether it stands in line.
    in_line: bool,
}

/// The dispatch thread's state.
pub(crate) struct Actor {
    device: Arc<dyn Device>,
    limits: SessionLimits,
    mailbox: Arc<Mailbox>,
    inbox: Receiver<Message>,
    /// For the wakers.
    sender: Sender<Message>,
    requests: Arc<Requests>,
    seats: BTreeMap<ConnId, Seat>,
    line: VecDeque<ConnId>,
    collected_bytes: Rc<Cell<usize>>,
    bodies: BodyPool,
}

impl Actor {
    /// Messages taken before the next session gets its turn.
    const MESSAGES: usize = 64;

    pub(crate) fn new(
        device: Arc<dyn Device>,
        limits: SessionLimits,
        mailbox: Arc<Mailbox>,
        (sender, inbox): (Sender<Message>, Receiver<Message>),
        requests: Arc<Requests>,
    ) -> Self {
        let (seats, line, collected_bytes) = Default::default();
        let bodies = BodyPool::new(limits.chunk_bytes);
        Self { device, limits, mailbox, inbox, sender, requests, seats, line, collected_bytes, bodies }
    }

    /// Serves until it is told to stop.
    pub(crate) fn run(mut self) {
        loop {
            let mut next = self.next_message(self.line.is_empty());
            for left in (0..Self::MESSAGES).rev() {
                match next.take() {
                    None => break,
                    Some(Message::Stop) => return self.stop(),
                    Some(Message::Event(event)) => self.handle_event(event),
                    Some(Message::Wake(conn)) => self.handle_wake(conn),
                }
                if left > 0 {
                    next = self.next_message(false);
                }
            }
            if let Some(conn) = self.line.pop_front() {
                self.run_session(conn);
            }
        }
    }

    /// The channel cannot end while `sender` lives.
    fn next_message(&self, wait: bool) -> Option<Message> {
        if wait { self.inbox.recv().ok() } else { self.inbox.try_recv().ok() }
    }

    fn stop(mut self) {
        debug!(sessions = self.seats.len(), "dispatch stops");
        while let Some((&conn, _)) = self.seats.first_key_value() {
            self.remove(conn);
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Opened { conn, peer } => {
                debug!(%conn, %peer, "session opened");
                let seat = Seat { session: Session::new(conn), woken: Arc::default(), in_line: false };
                self.seats.insert(conn, seat);
            }
            Event::Batch { conn, batch } => self.tell(conn, |session| session.handle_batch(batch)),
            Event::Drained { conn, sent_bytes } => {
                self.tell(conn, |session| session.handle_drained(sent_bytes))
            }
            Event::Ended { conn } => self.tell(conn, Session::handle_end),
            Event::Closed { conn } => self.remove(conn),
        }
    }

    /// A session that is over may be told something more; that is lost.
    fn tell(&mut self, conn: ConnId, say: impl FnOnce(&mut Session)) {
        if let Some(seat) = self.seats.get_mut(&conn) {
            say(&mut seat.session);
            Self::enqueue(&mut self.line, conn, seat);
        }
    }

    fn handle_wake(&mut self, conn: ConnId) {
        if let Some(seat) = self.seats.get_mut(&conn) {
            seat.woken.store(false, SeqCst);
            Self::enqueue(&mut self.line, conn, seat);
        }
    }

    fn enqueue(line: &mut VecDeque<ConnId>, conn: ConnId, seat: &mut Seat) {
        if !std::mem::replace(&mut seat.in_line, true) {
            line.push_back(conn);
        }
    }

    fn run_session(&mut self, conn: ConnId) {
        let Some(seat) = self.seats.get_mut(&conn) else { return };
        seat.in_line = false;
        let (sender, woken) = (&self.sender, &seat.woken);
        let env = Env {
            device: &*self.device,
            limits: &self.limits,
            requests: &self.requests,
            collected_bytes: &self.collected_bytes,
            bodies: &self.bodies,
            waker: &|| {
                let (sender, woken) = (sender.clone(), woken.clone());
                Waker::new(move || {
                    if !woken.swap(true, SeqCst) {
                        // After the end nobody listens, and there is nothing to wake.
                        let _ = sender.send(Message::Wake(conn));
                    }
                })
            },
        };
        // A device that panics takes its session along, not the others.
        let Ok(turn) = catch_unwind(AssertUnwindSafe(|| seat.session.turn(&env))) else {
            error!(%conn, device = self.device.name(), "panic while a request was carried out: the session ends");
            self.mailbox.post(Notice { close: true, ..Notice::new(conn) });
            self.remove(conn);
            return;
        };
        if let Some(notice) = seat.session.notice(turn == Turn::Over) {
            self.mailbox.post(notice);
        }
        match turn {
            Turn::More => Self::enqueue(&mut self.line, conn, seat),
            Turn::Blocked => {}
            Turn::Over => self.remove(conn),
        }
    }

    /// Drops a session and with it everything it owns.
    fn remove(&mut self, conn: ConnId) {
        let Some(seat) = self.seats.remove(&conn) else { return };
        if catch_unwind(AssertUnwindSafe(|| drop(seat))).is_err() {
            error!(%conn, device = self.device.name(), "panic while a session was released");
        }
        debug!(%conn, "session closed");
    }
}
