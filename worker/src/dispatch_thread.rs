//! The thread of the dispatch: the event loop's, or one of its own.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use hipr_io::{ConnId, Event, Handler, Mailbox};

use crate::dispatch::Dispatch;

/// A function that devices call on any thread to wake a session.
pub(crate) type Wake = Box<dyn Fn(ConnId) + Send + Sync>;

// ---- on the loop's thread --------------------------------------------------------------------------------------------

/// A dispatch on the loop's thread, so that requests need no hand-over and their bytes are still in the cache. For devices
/// whose calls never block.
pub(crate) struct Inline {
    dispatch: Dispatch,
    wakes: Arc<Wakes>,
    /// Kept to reuse its memory.
    woken: Vec<ConnId>,
}

/// Sessions that devices have woken.
#[derive(Debug, Default)]
struct Wakes(Mutex<Vec<ConnId>>);

impl Wakes {
    /// Locks the list. Poisoning is ignored: a panic leaves the vector intact.
    fn lock(&self) -> MutexGuard<'_, Vec<ConnId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inline {
    /// Creates the dispatch with `make`, for the loop of `mailbox`.
    pub(crate) fn new(mailbox: Arc<Mailbox>, make: impl FnOnce(Wake) -> Dispatch) -> Self {
        let wakes = Arc::new(Wakes::default());
        let list = wakes.clone();
        let dispatch = make(Box::new(move |conn| {
            list.lock().push(conn);
            mailbox.rouse();
        }));
        Self { dispatch, wakes, woken: Vec::new() }
    }
}

impl Handler for Inline {
    fn handle_event(&mut self, event: Event) {
        self.dispatch.handle_event(event);
    }

    fn turn(&mut self) -> bool {
        std::mem::swap(&mut *self.wakes.lock(), &mut self.woken);
        self.woken.drain(..).for_each(|conn| self.dispatch.handle_wake(conn));
        self.dispatch.turn()
    }
}

// ---- on a thread of its own ------------------------------------------------------------------------------------------

/// A message to a dispatch on a thread of its own.
#[derive(Debug)]
enum Message {
    /// The events of one turn of the loop.
    Events(Vec<Event>),
    /// A device wakes a session.
    Wake(ConnId),
    /// The worker shuts down.
    Stop,
}

/// Number of messages taken before the next session gets its turn.
const MESSAGES: usize = 64;

/// A dispatch on a thread of its own, for devices whose calls may block. [`DispatchThread::end`] stops it.
#[derive(Debug)]
pub(crate) struct DispatchThread {
    sender: Sender<Message>,
    thread: JoinHandle<()>,
}

/// Stops the loop when the dispatch thread ends for any reason.
struct StopLoop(Arc<Mailbox>);

impl Drop for StopLoop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl DispatchThread {
    /// Starts the thread; creates the dispatch with `make`, for the loop of `mailbox`.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub(crate) fn spawn(
        mailbox: Arc<Mailbox>,
        make: impl FnOnce(Wake) -> Dispatch + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, inbox) = channel();
        let wakes = sender.clone();
        let thread = thread::Builder::new().name("hipr-dispatch".into()).spawn(move || {
            let _guard = StopLoop(mailbox);
            // After the end nobody listens, and there is nothing to wake.
            serve(make(Box::new(move |conn| drop(wakes.send(Message::Wake(conn))))), &inbox);
        })?;
        Ok(Self { sender, thread })
    }

    /// Returns the handler for the loop.
    pub(crate) fn handler(&self) -> HandOver {
        HandOver { events: Vec::new(), sender: self.sender.clone() }
    }

    /// Stops the thread after the loop has ended, and waits for its end.
    ///
    /// # Errors
    /// It panicked.
    pub(crate) fn end(self) -> io::Result<()> {
        // An error means that it is gone already, with a panic.
        let _ = self.sender.send(Message::Stop);
        self.thread.join().map_err(|_| io::Error::other("the dispatch thread panicked"))
    }
}

/// Handles the inbox's events until it is told to stop. The channel cannot close before, because `dispatch` has a sender.
fn serve(mut dispatch: Dispatch, inbox: &Receiver<Message>) {
    let mut has_turns = false;
    loop {
        let mut next = if has_turns { inbox.try_recv().ok() } else { inbox.recv().ok() };
        for left in (0..MESSAGES).rev() {
            match next.take() {
                None => break,
                Some(Message::Stop) => return,
                Some(Message::Events(events)) => {
                    events.into_iter().for_each(|event| dispatch.handle_event(event));
                }
                Some(Message::Wake(conn)) => dispatch.handle_wake(conn),
            }
            if left > 0 {
                next = inbox.try_recv().ok();
            }
        }
        has_turns = dispatch.step();
    }
}

/// Passes the loop's events to the dispatch thread, once in each turn.
#[derive(Debug)]
pub(crate) struct HandOver {
    events: Vec<Event>,
    sender: Sender<Message>,
}

impl Handler for HandOver {
    fn handle_event(&mut self, event: Event) {
        self.events.push(event);
    }

    fn turn(&mut self) -> bool {
        if !self.events.is_empty() {
            // The thread only goes when it is told to, or with a panic; then its guard stops the loop.
            let _ = self.sender.send(Message::Events(std::mem::take(&mut self.events)));
        }
        false
    }
}
