//! Parses what a server sends without using the protocol crate.

use hipr_proto::Opcode;

use super::pipe::Pipe;
use crate::trace::{Event, Trace};

/// A parser of a stream of replies and notifications.
#[derive(Debug, Default)]
pub(super) struct Tap {
    /// An incomplete header and error code.
    head: Vec<u8>,
    /// Remaining bytes of the message after them.
    left: u64,
    end_byte: u64,
    is_lost: bool,
}

const HEADER_BYTES: usize = 24;
const MAGIC: u32 = 0x4849_5052;
const ERROR_CODE_BYTES: u64 = 4;
/// The flag that replies have and notifications have not.
const RESPONSE: u32 = 1;

impl Tap {
    /// Parses bytes that are about to be written.
    pub(super) fn pass(&mut self, mut bytes: &[u8], down: &mut Pipe, trace: &mut Trace) {
        while !bytes.is_empty() && !self.is_lost {
            let n = usize::try_from(self.left).map_or(bytes.len(), |left| left.min(bytes.len()));
            if n > 0 {
                bytes = bytes.get(n..).unwrap_or(&[]);
                self.left -= n as u64;
                continue;
            }
            // A header; then an error code, if the payload has room for one.
            let want = if self.head.len() < HEADER_BYTES {
                HEADER_BYTES
            } else {
                HEADER_BYTES + ERROR_CODE_BYTES as usize
            };
            let n = (want - self.head.len()).min(bytes.len());
            let (head, rest) = bytes.split_at(n);
            self.head.extend_from_slice(head);
            bytes = rest;
            if self.head.len() == want {
                self.take_head(down, trace);
            }
        }
    }

    fn take_head(&mut self, down: &mut Pipe, trace: &mut Trace) {
        let payload_len = u64::from_le_bytes(self.at(12));
        let magic = u32::from_le_bytes(self.at(0));
        if magic != MAGIC {
            self.is_lost = true;
            trace.events.push(Event::NoFrame { magic });
            return;
        }
        let has_code = self.head.len() > HEADER_BYTES;
        if !has_code {
            self.end_byte += HEADER_BYTES as u64 + payload_len;
            down.note_message_end(self.end_byte);
            if payload_len >= ERROR_CODE_BYTES {
                return;
            }
        }
        let (op, flags) = (Opcode(u16::from_le_bytes(self.at(6))), u32::from_le_bytes(self.at(20)));
        let end_byte = self.end_byte;
        trace.events.push(if flags & RESPONSE == 0 {
            Event::Notified { op, payload_len, end_byte }
        } else {
            let error = has_code.then(|| i32::from_le_bytes(self.at(HEADER_BYTES)));
            Event::Frame { id: u32::from_le_bytes(self.at(8)), op, flags, error, payload_len, end_byte }
        });
        self.left = if has_code { payload_len - ERROR_CODE_BYTES } else { payload_len };
        self.head.clear();
    }

    fn at<const N: usize>(&self, offset: usize) -> [u8; N] {
        self.head.get(offset..offset + N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }
}
