//! One direction of a connection: delayed bytes, and the faults that they suffer.

use std::collections::VecDeque;

use crate::options::{Fault, FaultKind};

/// The result of reading from a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// This many bytes; 0 when none have arrived.
    Bytes(usize),
    /// The end of the stream.
    End,
    /// The connection was reset.
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Close,
    Reset,
}

/// A pipe keeps the order of bytes and loses none; their delay and the pieces in which they arrive vary.
#[derive(Debug)]
pub(super) struct Pipe {
    bytes: VecDeque<u8>,
    window_bytes: usize,
    /// Number of bytes written by the sender.
    written: u64,
    /// Bytes that have not arrived, as pairs (number, time of arrival), in order.
    delayed: VecDeque<(usize, u64)>,
    /// What follows the bytes in the pipe; nothing can be written any more.
    ending: Option<Ending>,
    reader_is_gone: bool,
    fault: Option<Fault>,
    /// Position of the fault, once the messages before it are known.
    fault_at: Option<u64>,
    /// Number of messages before the fault whose ends are not known yet.
    messages_left: usize,
    /// Position at which the fault happened.
    struck_at: Option<u64>,
}

impl Pipe {
    pub(super) fn new(window_bytes: usize, fault: Option<Fault>) -> Self {
        let messages_left = fault.as_ref().map_or(0, |fault| fault.message);
        let fault_at = fault.as_ref().filter(|_| messages_left == 0).map(|fault| fault.byte);
        Self {
            bytes: VecDeque::new(),
            window_bytes,
            written: 0,
            delayed: VecDeque::new(),
            ending: None,
            reader_is_gone: false,
            fault,
            fault_at,
            messages_left,
            struck_at: None,
        }
    }

    /// Notes that a message about to be written ends at `end_byte`.
    pub(super) fn note_message_end(&mut self, end_byte: u64) {
        if self.messages_left > 0 {
            self.messages_left -= 1;
            if self.messages_left == 0 {
                self.fault_at = self.fault.as_ref().map(|fault| end_byte + fault.byte);
            }
        }
    }

    /// Returns how many bytes can be written now.
    pub(super) fn room(&self) -> usize {
        if self.is_deaf() { usize::MAX } else { self.window_bytes.saturating_sub(self.bytes.len()) }
    }

    /// Returns whether written bytes are discarded.
    fn is_deaf(&self) -> bool {
        self.ending.is_some() || self.reader_is_gone
    }

    /// Writes bytes that arrive at `due_ms`.
    pub(super) fn write(&mut self, bytes: &[u8], due_ms: u64) {
        let before = self.bytes.len();
        let mut rest = bytes;
        while let Some(at) = self.fault_at
            && let Some((head, tail)) =
                usize::try_from(at.saturating_sub(self.written)).ok().and_then(|n| rest.split_at_checked(n))
        {
            self.accept(head);
            rest = tail;
            let Some(fault) = self.fault.as_ref() else { break };
            match &fault.kind {
                FaultKind::HalfClose => self.end(Ending::Close),
                FaultKind::Reset => self.end(Ending::Reset),
                FaultKind::Insert(garbage) if self.ending.is_none() => self.bytes.extend(garbage),
                FaultKind::Insert(_) => {}
                FaultKind::Flip(mask) => {
                    // It needs a byte to strike.
                    let Some((byte, tail)) = rest.split_first() else { break };
                    let struck = [byte ^ mask];
                    self.accept(&struck);
                    rest = tail;
                }
            }
            self.struck_at = Some(at);
            self.fault_at = None;
        }
        self.accept(rest);
        let accepted = self.bytes.len().saturating_sub(before);
        if accepted > 0 {
            self.delayed.push_back((accepted, due_ms));
        }
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        if !self.is_deaf() {
            self.bytes.extend(bytes);
        }
    }

    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    /// Closes the sending side.
    pub(super) fn close(&mut self) {
        self.end(Ending::Close);
    }

    /// Closes the receiving side.
    pub(super) fn abandon(&mut self) {
        self.reader_is_gone = true;
        self.bytes.clear();
        self.delayed.clear();
    }

    /// Ends delays and the limit of bytes in the pipe.
    pub(super) fn heal(&mut self) {
        self.delayed.iter_mut().for_each(|(_, due_ms)| *due_ms = 0);
        self.window_bytes = self.window_bytes.max(64 * 1024);
    }

    /// Appends up to `most` bytes that have arrived to `buffer`.
    pub(super) fn read(&mut self, buffer: &mut Vec<u8>, most: usize, now_ms: u64) -> Found {
        if self.bytes.is_empty() {
            return match self.ending {
                None => Found::Bytes(0),
                Some(Ending::Close) => Found::End,
                Some(Ending::Reset) => Found::Reset,
            };
        }
        let mut moved = 0;
        while let Some((left, due_ms)) = self.delayed.front_mut()
            && *due_ms <= now_ms
            && moved < most
        {
            let n = (*left).min(most - moved);
            *left -= n;
            moved += n;
            if *left == 0 {
                self.delayed.pop_front();
            }
        }
        let (front, back) = self.bytes.as_slices();
        let from_front = moved.min(front.len());
        buffer.extend_from_slice(front.get(..from_front).unwrap_or(front));
        buffer.extend_from_slice(back.get(..moved - from_front).unwrap_or(back));
        self.bytes.drain(..moved);
        Found::Bytes(moved)
    }

    /// Returns the position at which the fault happened.
    pub(super) fn struck_at(&self) -> Option<u64> {
        self.struck_at
    }
}
