//! Receiving replies: many threads wait for replies on one connection, and one of them reads.
//!
//! Of the threads that wait, one reads: it delivers the replies of the others and stops when it has its own; then another
//! one reads. Only while none waits a thread of the library may read, to hear what the worker says by itself (`listener.rs`).
//! Bulk bytes go from the socket straight into the memory that the waiting caller gave.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hipr_proto::{Answer, Call, HipError, Limits, Opcode, ReplyReceiver};
use hipr_tls::is_alert;

use crate::notifications::Listeners;
use crate::observer::Observer;
use crate::stats::Counters;
use crate::transport::Transport;

/// Rows of host memory that receive a reply's inline bytes: contiguous on the wire, with pitches in memory.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Pointer to the first byte of the first row.
    pub start: *mut u8,
    /// Size of a row in bytes.
    pub width: usize,
    /// Number of rows in a slice.
    pub height: usize,
    /// Distance between the starts of two rows, in bytes.
    pub pitch: usize,
    /// Distance between the starts of two slices, in bytes.
    pub slice: usize,
}

impl Rows {
    /// Returns one row of `len` bytes.
    pub fn one(start: *mut u8, len: usize) -> Self {
        Self { start, width: len, height: 1, pitch: len, slice: len }
    }

    /// Returns where byte `at` of the contiguous bytes belongs, and the number of bytes from it to the end of the row.
    fn place(&self, at: usize) -> (*mut u8, usize) {
        let (row, column) = (at / self.width, at % self.width);
        let (slice, row) = (row / self.height, row % self.height);
        let left = self.width - column;
        (self.start.wrapping_add(slice * self.slice + row * self.pitch + column), left)
    }
}

/// The destination of a reply's inline bytes.
#[derive(Debug)]
pub(crate) enum Bulk {
    /// Collect them in a vector; for short lists.
    Collect(Vec<u8>),
    /// Write them to the caller's memory, which stays valid until the wait is over.
    Into(Rows),
}

// SAFETY: the rows belong to the thread that waits; it does not touch them until its wait is over, and the one
// thread that reads the socket is the only one that writes them.
unsafe impl Send for Bulk {}

/// A reply that has arrived completely.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) error: Option<HipError>,
    pub(crate) fixed: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    /// The length of what came behind the fixed part, wherever it was put.
    pub(crate) inline_bytes: u64,
}

/// Values by the ids of calls, which this end has counted: nobody can choose them so that their hashes collide.
type ById<T> = HashMap<u32, T, BuildHasherDefault<IdHasher>>;

/// Hashes the id of a call with one multiplication, which is enough for numbers that follow on each other.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32((*byte).into()));
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug, Default)]
struct State {
    /// Calls that have not yet been announced to the proto-core client, in the order of their requests.
    expected: VecDeque<Call>,
    /// Destination of the inline bytes of each reply that has not begun to arrive.
    waiting: ById<Bulk>,
    /// Replies that have arrived and that no caller has taken yet.
    arrived: ById<Whole>,
    /// Whether a thread reads from the connection now.
    reading: bool,
    /// Whether the receiving side is closed.
    closed: bool,
    /// Number of times that a thread has begun to read.
    reads: u64,
    /// Number of threads that wait for a change; if none does, the system call that wakes them is saved.
    sleepers: usize,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(crate) struct Replies {
    state: Mutex<State>,
    /// Signalled when a reply has arrived, the reading thread has stopped, or the receiving side is closed.
    changed: Condvar,
    /// The reading state, locked by the thread that reads.
    reader: Mutex<Reader>,
    listeners: Listeners,
    observer: Option<Arc<dyn Observer>>,
}

#[derive(Debug)]
struct Reader {
    transport: Arc<Transport>,
    receiver: ReplyReceiver,
    buffer: Box<[u8]>,
    /// The last value passed to `Transport::set_wake_bytes`.
    wake_bytes: usize,
    /// Whether anything was read.
    has_read: bool,
    /// The reply or notification whose inline bytes are arriving.
    current: Option<Current>,
}

/// What a message from the worker is.
#[derive(Debug)]
enum Message {
    /// The reply to the call with this id.
    Reply(u32),
    /// A notification.
    Notification(Opcode),
}

#[derive(Debug)]
struct Current {
    message: Message,
    whole: Whole,
    bulk: Bulk,
    /// Bulk bytes that have arrived, and how many there will be.
    have: usize,
    len: u64,
}

const BUFFER_BYTES: usize = 64 * 1024;
/// Number of bytes that are read at once directly into the caller's memory, and that must have arrived before the reading
/// thread is woken, because a wake-up for each packet costs the sender more than the packet. Reading a long copy at once is a
/// third slower: the kernel then holds more bytes than a cache does.
const DIRECT_BYTES: usize = 512 * 1024;

impl Replies {
    pub(crate) fn new(
        transport: Arc<Transport>,
        limits: Limits,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        let reader = Reader {
            transport,
            receiver: ReplyReceiver::new(limits),
            buffer,
            wake_bytes: 1,
            has_read: false,
            current: None,
        };
        let (state, changed, reader) = (Mutex::default(), Condvar::new(), Mutex::new(reader));
        let listeners = Listeners::new(observer.clone());
        Self { state, changed, reader, listeners, observer }
    }

    /// Returns the functions that notifications are passed to.
    pub(crate) fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    /// Accepts notifications, before they are offered to be taken.
    pub(crate) fn accept_notifications(&self) {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).receiver.accept_notifications();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces a reply, before its request can have been sent. Calls must come in the order of the requests.
    pub(crate) fn expect(&self, call: Call, bulk: Bulk) {
        let mut state = self.state();
        state.expected.push_back(call);
        state.waiting.insert(call.id(), bulk);
    }

    /// Ends the receiving: wakes all waiting threads, whose calls fail. Memory of callers is not written after their waits
    /// are over.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        self.wake(&state);
    }

    /// Wakes the threads that wait for a change of `state`.
    fn wake(&self, state: &State) {
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Waits for the reply to call `id`; reads from the connection if no other thread does.
    ///
    /// # Errors
    /// Why the connection is of no more use; `None` when it was lost before.
    pub(crate) fn wait(&self, id: u32, counters: &Counters) -> Result<Whole, Option<String>> {
        self.wait_until(id, counters, None)
    }

    /// Does what [`wait`](Self::wait) does; if another thread reads, only until `end`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn wait_until(
        &self,
        id: u32,
        counters: &Counters,
        end: Option<Instant>,
    ) -> Result<Whole, Option<String>> {
        let mut state = self.state();
        loop {
            if let Some(whole) = state.arrived.remove(&id) {
                return Ok(whole);
            }
            if state.reading {
                // Also when all is over: whoever reads may still be writing to our memory.
                state.sleepers += 1;
                state = match end.map(|end| end.saturating_duration_since(Instant::now())) {
                    None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                    Some(Duration::ZERO) => {
                        state.sleepers -= 1;
                        state.waiting.remove(&id);
                        return Err(None);
                    }
                    Some(left) => {
                        self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                state.sleepers -= 1;
                continue;
            }
            if state.closed {
                state.waiting.remove(&id);
                return Err(None);
            }
            state.reading = true;
            state.reads += 1;
            drop(state);
            let outcome = self.read_until(id, counters);
            state = self.state();
            state.reading = false;
            if outcome.is_err() {
                state.closed = true;
            }
            self.wake(&state);
            if let Err(reason) = outcome {
                return Err(Some(reason));
            }
        }
    }

    /// Returns the number of times that a thread has begun to read.
    pub(crate) fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Reads once, unless another thread reads or nothing can be read any more; returns whether more can be.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn listen(&self, counters: &Counters) -> Result<bool, String> {
        let mut state = self.state();
        if state.closed || state.reading {
            return Ok(!state.closed);
        }
        state.reading = true;
        drop(state);
        let outcome = {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            self.step(&mut reader, counters)
        };
        let mut state = self.state();
        state.reading = false;
        state.closed |= outcome.is_err();
        self.wake(&state);
        outcome.map(|()| true)
    }

    /// Reads what has arrived and takes no time, unless another thread reads.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub(crate) fn hear_arrived(&self, counters: &Counters) -> Result<(), String> {
        /// A worker may send without end.
        const READS_MAX: u32 = 16;
        let mut state = self.state();
        if state.closed || state.reading {
            return Ok(());
        }
        state.reading = true;
        drop(state);
        let outcome = {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            // The rest of a long reply is for the thread that waits for it.
            (0..READS_MAX).try_for_each(|_| {
                let is_there = reader.current.is_none() && reader.transport.has_input();
                if is_there { self.step(&mut reader, counters) } else { Ok(()) }
            })
        };
        let mut state = self.state();
        state.reading = false;
        state.closed |= outcome.is_err();
        self.wake(&state);
        outcome
    }

    /// Reads until the reply to `id` has arrived.
    fn read_until(&self, id: u32, counters: &Counters) -> Result<(), String> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        // One read may bring many replies.
        while !self.state().arrived.contains_key(&id) {
            self.step(reader, counters)?;
        }
        Ok(())
    }

    /// Reads once and handles the bytes that arrived.
    fn step(&self, reader: &mut Reader, counters: &Counters) -> Result<(), String> {
        // Straight into the caller's memory, where the next bytes are known to belong there.
        let (into, room, left) = match &reader.current {
            Some(Current { bulk: Bulk::Into(rows), have, len, .. }) => {
                let (place, together) = rows.place(*have);
                let left = usize::try_from(*len).unwrap_or(usize::MAX) - have;
                (place, together.min(left).min(DIRECT_BYTES), left)
            }
            _ => (core::ptr::null_mut(), 0, 0),
        };
        // However much of the room is filled when the thread falls asleep, so many are still to come.
        let wake_bytes = if room == DIRECT_BYTES && left - room >= DIRECT_BYTES { DIRECT_BYTES } else { 1 };
        if core::mem::replace(&mut reader.wake_bytes, wake_bytes) != wake_bytes {
            reader.transport.set_wake_bytes(wake_bytes);
        }
        let direct = room >= reader.buffer.len() / 4;
        let buffer = if direct {
            // SAFETY: the rows of a thread that waits in `wait`, see `Bulk`; nobody else touches them.
            unsafe { core::slice::from_raw_parts_mut(into, room) }
        } else {
            &mut *reader.buffer
        };
        let n = loop {
            let read = if direct { reader.transport.read_all(buffer) } else { reader.transport.read(buffer) };
            match read {
                Ok(n) => break n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        };
        counters.add_locked(|c| &c.bytes_received, n as u64);
        if let Some(observer) = &self.observer {
            observer.received(n as u64);
        }
        {
            let mut state = self.state();
            for call in state.expected.drain(..) {
                reader.receiver.expect(call).map_err(|misuse| misuse.to_string())?;
            }
        }
        if !core::mem::replace(&mut reader.has_read, true) && is_alert(buffer.get(..n).unwrap_or_default()) {
            return Err("the worker wants encryption: write hipr:// before its address".to_owned());
        }
        if n == 0 {
            return Err(match reader.receiver.handle_eof() {
                Ok(()) => "the worker closed the connection".to_owned(),
                Err(fatal) => fatal.to_string(),
            });
        }

        let mut input = buffer.get(..n).unwrap_or_default();
        loop {
            let answer = reader.receiver.handle_input(&mut input).map_err(|fatal| fatal.to_string())?;
            match answer {
                Answer::NeedMore => return Ok(()),
                Answer::Reply(reply) => {
                    counters.add_locked(|c| &c.frames_received, 1);
                    let id = reply.call.id();
                    let (fixed, inline_bytes) = (reply.fixed.to_vec(), reply.inline);
                    let whole = Whole { error: reply.error, fixed, tail: Vec::new(), inline_bytes };
                    let bulk = self.state().waiting.remove(&id).unwrap_or(Bulk::Collect(Vec::new()));
                    let (message, len) = (Message::Reply(id), reply.inline);
                    if len == 0 {
                        self.arrive(message, whole);
                    } else {
                        reader.current = Some(Current { message, whole, bulk, have: 0, len });
                    }
                }
                Answer::Notification(notification) => {
                    counters.add_locked(|c| &c.frames_received, 1);
                    let fixed = notification.fixed.to_vec();
                    let inline_bytes = notification.inline;
                    let whole = Whole { error: None, fixed, tail: Vec::new(), inline_bytes };
                    let (message, len) = (Message::Notification(notification.op), notification.inline);
                    if len == 0 {
                        self.arrive(message, whole);
                    } else {
                        let bulk = Bulk::Collect(Vec::new());
                        reader.current = Some(Current { message, whole, bulk, have: 0, len });
                    }
                }
                Answer::Data { bytes, last: done } => {
                    let Some(current) = &mut reader.current else {
                        return Err("bulk bytes without a reply".to_owned());
                    };
                    current.take(bytes);
                    if done && let Some(Current { message, mut whole, bulk, .. }) = reader.current.take() {
                        if let Bulk::Collect(tail) = bulk {
                            whole.tail = tail;
                        }
                        self.arrive(message, whole);
                    }
                }
            }
        }
    }

    /// Keeps a reply for the thread that waits for it; passes a notification on.
    fn arrive(&self, message: Message, whole: Whole) {
        let id = match message {
            Message::Reply(id) => id,
            Message::Notification(op) => return self.listeners.hear(op, &whole.fixed, &whole.tail),
        };
        let mut state = self.state();
        state.arrived.insert(id, whole);
        self.wake(&state);
    }
}

impl Current {
    /// Copies received bytes to where the caller wants them; bytes that were read straight to their place stay there.
    fn take(&mut self, bytes: &[u8]) {
        match &mut self.bulk {
            Bulk::Collect(tail) => tail.extend_from_slice(bytes),
            Bulk::Into(rows) => {
                let mut rest = bytes;
                let mut at = self.have;
                while !rest.is_empty() {
                    let (place, together) = rows.place(at);
                    let n = together.min(rest.len());
                    let (now, later) = rest.split_at(n);
                    if !core::ptr::eq(place, now.as_ptr()) {
                        // SAFETY: `place` is in the rows of a thread that waits, see `Bulk`: the reply has as many
                        // bytes as the request said (checked by the receiver), and the request said as many as
                        // the rows have. The source is the reader's own buffer.
                        unsafe { core::ptr::copy_nonoverlapping(now.as_ptr(), place, n) };
                    }
                    at += n;
                    rest = later;
                }
            }
        }
        self.have += bytes.len();
    }
}

impl Replies {
    /// Notes that nobody will wait for the reply to call `id`.
    pub(crate) fn abandon(&self, id: u32) {
        self.state().waiting.remove(&id);
    }

    /// Returns the number of replies that threads wait for.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_find_their_places() {
        let mut memory = [0u8; 64];
        let start = memory.as_mut_ptr();
        let rows = Rows { start, width: 4, height: 2, pitch: 10, slice: 30 };
        let at = |n| {
            let (place, together) = rows.place(n);
            (place as usize - start as usize, together)
        };
        assert_eq!(at(0), (0, 4));
        assert_eq!(at(3), (3, 1));
        assert_eq!(at(4), (10, 4));
        assert_eq!(at(8), (30, 4));
        assert_eq!(at(13), (41, 3));
    }

    #[test]
    fn pieces_of_any_size_land_in_their_rows() {
        for piece in 1..=12 {
            let mut memory = [0u8; 24];
            let rows = Rows { start: memory.as_mut_ptr(), width: 3, height: 4, pitch: 6, slice: 24 };
            let whole = Whole { error: None, fixed: Vec::new(), tail: Vec::new(), inline_bytes: 0 };
            let mut current =
                Current { message: Message::Reply(1), whole, bulk: Bulk::Into(rows), have: 0, len: 12 };
            let sent: Vec<u8> = (1..=12).collect();
            sent.chunks(piece).for_each(|bytes| current.take(bytes));
            let row = |n: u8| [3 * n + 1, 3 * n + 2, 3 * n + 3, 0, 0, 0];
            assert_eq!(memory.to_vec(), (0..4).flat_map(row).collect::<Vec<_>>(), "pieces of {piece}");
        }
    }
}
