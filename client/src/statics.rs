//! Replies that never change in a session: those that the worker lists when the session opens, and those that were asked for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hipr_proto::op::{
    DEVICES_MAX, GetDeviceCountReply, STATIC_REQUEST_MAX_BYTES, StaticEntry, StaticInfo, StaticReply,
};
use hipr_proto::{HipError, HipResult, Op, Opcode, Wire};

use crate::replies::Whole;

/// Maximum number of replies that are remembered: a program can ask for any number of different ones.
const REMEMBERED_MAX: usize = 1 << 16;

/// A request of a static operation, and the current device where the reply is that of the current device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    op: Opcode,
    device: Option<i32>,
    /// The request's fixed part, padded with zeros: the operation says how long it is.
    request: [u8; STATIC_REQUEST_MAX_BYTES],
}

impl Question {
    /// Returns the question that a request asks; `None` if its answer may change, or may be that of a device which is not known
    /// here.
    pub(crate) fn of<O: Op>(request: &O, device: Option<i32>) -> Option<Self> {
        let StaticInfo { of_current_device, .. } = O::STATICS?;
        let device = if of_current_device { Some(device?) } else { None };
        let mut bytes = Vec::with_capacity(O::SIZE);
        request.put(&mut bytes);
        Self::new(O::OPCODE, device, &bytes)
    }

    fn new(op: Opcode, device: Option<i32>, bytes: &[u8]) -> Option<Self> {
        let mut request = [0; STATIC_REQUEST_MAX_BYTES];
        request.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { op, device, request })
    }
}

/// Replies, or the errors in their place, by what was asked.
type Answers = HashMap<Question, HipResult<Box<[u8]>>>;

/// The replies that are known.
#[derive(Debug, Default)]
pub(crate) struct Statics {
    known: Mutex<Answers>,
}

impl Statics {
    fn known(&self) -> MutexGuard<'_, Answers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer to a question, if it is known.
    pub(crate) fn answer(&self, question: &Question) -> Option<Whole> {
        let known = self.known();
        let (error, fixed) = match known.get(question)? {
            Ok(reply) => (None, reply.to_vec()),
            Err(error) => (Some(*error), Vec::new()),
        };
        Some(Whole { error, fixed, tail: Vec::new(), inline_bytes: 0 })
    }

    /// Remembers the answer to a question. An error may be that of an earlier request, and is not remembered.
    pub(crate) fn remember(&self, question: Question, answer: &Whole) {
        let mut known = self.known();
        if answer.error.is_none() && known.len() < REMEMBERED_MAX {
            known.insert(question, Ok(answer.fixed.as_slice().into()));
        }
    }

    /// Adds the worker's list.
    ///
    /// # Errors
    /// What is wrong with the list, of which nothing is then used.
    pub(crate) fn add_list(&self, head: StaticReply, list: &[u8]) -> Result<(), String> {
        let listed = read_list(head, list)?;
        self.known().extend(listed);
        Ok(())
    }
}

/// Reads a list. Entries of operations that are not in this client's table, or not static there, are skipped.
fn read_list(head: StaticReply, mut list: &[u8]) -> Result<Answers, String> {
    let mut known = HashMap::new();
    for number in 0..head.count {
        let wrong = |what: &str| format!("entry {number} {what}");
        let entry = StaticEntry::take(&mut list).map_err(|error| wrong(&format!("is malformed: {error}")))?;
        let StaticEntry { op, device, request, reply } = entry;
        let Some((info, mark)) = op.info().and_then(|info| Some((info, info.statics?))) else { continue };
        if request.len() != info.request.size || reply.is_ok_and(|reply| reply.len() != info.reply.size) {
            return Err(wrong(&format!("has not the size of {op}")));
        }
        if device.is_some() != mark.of_current_device || device.is_some_and(|device| device >= DEVICES_MAX) {
            return Err(wrong(&format!("of {op} has the wrong current device")));
        }
        let question = Question::new(op, device, request).ok_or_else(|| wrong("is too long"))?;
        if let (Opcode::GET_DEVICE_COUNT, Ok(mut reply)) = (op, reply) {
            let reply = GetDeviceCountReply::take(&mut reply).map_err(|error| wrong(&error.to_string()))?;
            check_device_count(reply.count).map_err(|_| wrong("has an impossible number of devices"))?;
        }
        if known.insert(question, reply.map(Into::into)).is_some() {
            return Err(wrong(&format!("of {op} comes twice")));
        }
    }
    if list.is_empty() { Ok(known) } else { Err(format!("{} bytes follow the last entry", list.len())) }
}

/// Checks a number of devices that a worker says.
///
/// # Errors
/// `hipErrorUnknown` for a number that no machine has.
pub(crate) fn check_device_count(count: i32) -> HipResult<i32> {
    if (0..=DEVICES_MAX).contains(&count) { Ok(count) } else { Err(HipError::UNKNOWN) }
}
