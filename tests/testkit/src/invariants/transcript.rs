//! Compares two runs of a script with bytes cut into different pieces.

use hipr_proto::{HipError, Opcode};

use super::Violation;
use crate::model::Learned;
use crate::options::{Direction, FaultKind};
use crate::script::{Case, Kind};
use crate::trace::{Event, Trace};

/// Checks that the pieces of bytes do not matter: the server delivers and executes the same requests and sends the same
/// replies, and the client learns the same.
///
/// After a fault the connection ends, and *when* the other side hears of it is a matter of time. Then what one run saw has to
/// be the beginning of what the other saw.
///
/// # Errors
/// They differ.
pub fn chunking_is_invisible(case: &Case, one: &Trace, other: &Trace) -> Result<(), Violation> {
    let (one, other) = (Transcript::of(one), Transcript::of(other));
    let fault = case.options.fault.as_ref();
    let ends =
        case.script.0.iter().any(|call| call.kind == Kind::TooLong || call.hangs_for_ever(&case.options));
    let is_whole_up = fault.is_none() && !ends;
    let is_whole_down = fault.is_none_or(|fault| match fault.kind {
        FaultKind::HalfClose => true,
        FaultKind::Reset => false,
        FaultKind::Insert(_) | FaultKind::Flip(_) => fault.direction == Direction::Down,
    });
    compare("the server's requests", &one.requests, &other.requests, is_whole_up)?;
    compare("what is carried out", &one.executed, &other.executed, is_whole_up)?;
    compare("the server's replies", &one.frames, &other.frames, is_whole_up)?;
    compare("what callers learn", &one.learned, &other.learned, is_whole_down)?;
    compare("what the client is notified of", &one.heard, &other.heard, is_whole_up)
}

fn compare<T: PartialEq + std::fmt::Debug>(
    of: &str,
    one: &[T],
    other: &[T],
    is_whole: bool,
) -> Result<(), Violation> {
    let differs = one.iter().zip(other).position(|(one, other)| one != other);
    let at = differs.or_else(|| (is_whole && one.len() != other.len()).then(|| one.len().min(other.len())));
    let Some(at) = at else { return Ok(()) };
    let what = format!("{of} differ at {at}: {:?} in pieces, {:?} whole", one.get(at), other.get(at));
    Err(Violation { invariant: "chunking_is_invisible", call: None, what })
}

#[derive(Default)]
struct Transcript<'t> {
    requests: Vec<(u32, Opcode, bool, Option<HipError>, u64)>,
    executed: Vec<u64>,
    frames: Vec<(u32, Opcode, u32, Option<i32>, u64)>,
    learned: Vec<(usize, &'t Learned, bool)>,
    heard: Vec<(usize, u64, bool)>,
}

impl<'t> Transcript<'t> {
    fn of(trace: &'t Trace) -> Self {
        let mut transcript = Self::default();
        let mut missing = 0;
        for event in &trace.events {
            match event {
                Event::Request { id, op, wants_reply, refusal, tail, .. } => {
                    transcript.requests.push((*id, *op, *wants_reply, *refusal, *tail));
                    missing = *tail;
                }
                Event::RequestData { bytes, .. } => missing = missing.saturating_sub(bytes.len),
                Event::Executed { sequence } => transcript.executed.push(*sequence),
                Event::Frame { id, op, flags, error, payload_len, .. } => {
                    transcript.frames.push((*id, *op, *flags, *error, *payload_len));
                }
                Event::Heard { call, len, intact } => transcript.heard.push((*call, *len, *intact)),
                Event::Resolved { call, learned: Some(learned), intact } => {
                    transcript.learned.push((*call, learned, *intact));
                }
                _ => {}
            }
        }
        if missing > 0
            && let Some((cut, ..)) = transcript.requests.pop()
        {
            // A client that leaves while it sends: how far it got says nothing.
            transcript.frames.pop_if(|(id, ..)| *id == cut);
        }
        transcript
    }
}
