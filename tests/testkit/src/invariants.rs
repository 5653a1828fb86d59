//! The invariants of all worlds. Each is a function with a name, and [`mutation`](crate::mutation) has a bug that it
//! catches.
//!
//! They look at a [`Trace`], at what happened at the public doors, and most of them need nothing else: they hold for
//! whatever a peer sends. Three compare with the [`Model`], as far as what the script says arrived unharmed.

mod story;
mod transcript;

use std::collections::BTreeMap;

use hipr_proto::op::Info;
use hipr_proto::{
    COALESCE_BYTES, FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_RESPONSE, Fatal, Misuse, Opcode, Tail,
};

pub use self::story::Story;
pub use self::transcript::chunking_is_invisible;
use crate::model::Model;
use crate::script::{Case, call_of};
use crate::trace::{Event, Pieces, Side, Trace};

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Index of the call that shows it.
    pub call: Option<usize>,
    /// Description of the violation.
    pub what: String,
}

/// The result of an invariant: if it is violated, the call that shows it, if there is one, and what happened.
type Verdict = Result<(), (Option<usize>, String)>;

/// An invariant: its name and its function.
pub type Invariant = (&'static str, fn(&Story<'_>) -> Verdict);

macro_rules! invariants {
    ($($name:ident),* $(,)?) => {
        /// All invariants of a single trace. [`chunking_is_invisible`] compares two.
        pub static INVARIANTS: &[Invariant] = &[$((stringify!($name), $name)),*];
    };
}

invariants! {
    nothing_panics,
    replies_leave_in_request_order,
    exactly_one_reply_iff_asked_for,
    kept_errors_are_reported_once,
    outcomes_are_the_models,
    nothing_after_fatal,
    limits_hold,
    every_ticket_is_spent,
    inline_bytes_add_up,
    calls_resolve_once,
    what_is_owed_arrives,
    rightful_commands_are_accepted,
    ends_are_told_apart,
    notifications_arrive_in_order,
}

/// Returns the invariants that a trace violates.
pub fn violations(case: &Case, model: &Model, trace: &Trace) -> Vec<Violation> {
    let story = Story::new(case, model, trace);
    let broken = |(invariant, holds): &Invariant| {
        holds(&story).err().map(|(call, what)| Violation { invariant, call, what })
    };
    INVARIANTS.iter().filter_map(broken).collect()
}

fn fail<T>(call: impl Into<Option<usize>>, what: impl Into<String>) -> Result<T, (Option<usize>, String)> {
    Err((call.into(), what.into()))
}

/// No client, server or worker panics, whatever a peer or a device does.
fn nothing_panics(story: &Story<'_>) -> Verdict {
    match &story.trace.panic {
        None => Ok(()),
        Some(message) => fail(None, message.clone()),
    }
}

/// Replies leave in the order of their requests, and nothing but replies leaves.
fn replies_leave_in_request_order(story: &Story<'_>) -> Verdict {
    let mut requests = story.requests.iter();
    for frame in &story.frames {
        if !requests.any(|request| (request.id, request.op) == (frame.id, frame.op)) {
            return fail(None, format!("a reply to {} (id {}) comes too late or again", frame.op, frame.id));
        }
    }
    for event in &story.trace.events {
        if let Event::NoFrame { magic } = event {
            return fail(None, format!("bytes left that are no reply: {magic:#010x}"));
        }
    }
    Ok(())
}

/// A request that asked for a reply gets one when it is completed; one that asked for none gets none.
fn exactly_one_reply_iff_asked_for(story: &Story<'_>) -> Verdict {
    // Asked for, and seen, per request id: ids repeat only where somebody garbles them.
    let mut replies: BTreeMap<(u32, Opcode), (usize, usize)> = BTreeMap::new();
    for (index, request) in story.requests.iter().enumerate().filter(|(_, request)| request.completed) {
        let said = story.call(index).filter(|_| story.is_request_intact(index)).map(|call| call.loud);
        let asked = said.unwrap_or(request.wants_reply);
        replies.entry((request.id, request.op)).or_default().0 += usize::from(asked);
    }
    for frame in &story.frames {
        replies.entry((frame.id, frame.op)).or_default().1 += 1;
    }
    for ((id, op), (asked, seen)) in replies {
        // What a lost connection did not take is no reply that is missing.
        let may_miss = story.has_lost(Side::Server) || !story.is_at_rest();
        if seen > asked || (seen < asked && !may_miss) {
            let call = story.requests.iter().position(|request| request.id == id);
            return fail(call, format!("{seen} replies to {op} (id {id}), {asked} asked for"));
        }
    }
    Ok(())
}

/// A kept error is reported exactly once, by the first reply that may report it, and the first error wins.
fn kept_errors_are_reported_once(story: &Story<'_>) -> Verdict {
    for (index, frame) in story.intact_frames() {
        let Some(expected) = story.model.calls.get(index) else { break };
        let Some(learned) = &expected.learned else { continue };
        let error = frame.error();
        if error == learned.error {
            continue;
        }
        if expected.reports {
            let (want, got) = (story::error_text(learned.error), story::error_text(error));
            return fail(index, format!("it reports {got} where {want} is the first that is kept"));
        }
        if error.and_then(call_of).is_some_and(|other| other != index) {
            let got = story::error_text(error);
            return fail(index, format!("it reports {got}, which was not kept then, or not any more"));
        }
    }
    Ok(())
}

/// The executed and refused requests and the replies that clients receive agree with the model.
fn outcomes_are_the_models(story: &Story<'_>) -> Verdict {
    for (index, request) in story.intact_requests() {
        let (Some(call), Some(expected)) = (story.call(index), story.model.calls.get(index)) else {
            break;
        };
        if (request.op, request.wants_reply) != (call.op, call.loud) {
            return fail(index, format!("it arrives as {}, answered: {}", request.op, request.wants_reply));
        }
        if request.refusal != call.refusal() {
            return fail(index, format!("it is refused with {:?}", request.refusal));
        }
        if request.tail != call.delivered_len() {
            return fail(index, format!("{} bytes of tail are announced", request.tail));
        }
        if let Some(at) = request.wrong_at {
            return fail(index, format!("byte {at} of the request is another when it arrives"));
        }
        if request.settled && request.executed != expected.executed {
            let done = if request.executed { "it is carried out" } else { "it is not carried out" };
            return fail(index, done);
        }
        if request.completed_before_loss
            && let Some(learned) = &expected.learned
        {
            let stream = if call.streamed && learned.error.is_none() { learned.inline_len } else { 0 };
            if request.stream_left != stream {
                return fail(index, format!("{} bytes of its reply are to be streamed", request.stream_left));
            }
        }
    }
    for (index, frame) in story.intact_frames() {
        let Some(learned) = story.model.calls.get(index).and_then(|call| call.learned.as_ref()) else {
            continue;
        };
        let mut flags = FLAG_RESPONSE;
        flags |= if learned.error.is_some() { FLAG_ERROR } else { 0 };
        flags |= if learned.inline_len > 0 { FLAG_HAS_INLINE_DATA } else { 0 };
        let payload_len = 4 + learned.fixed_len as u64 + learned.inline_len;
        let want = (learned.error.map_or(0, |error| error.0), flags, payload_len);
        let got = (frame.error, frame.flags, frame.payload_len);
        if got != (Some(want.0), want.1, want.2) {
            return fail(
                index,
                format!("error, flags and length of its reply are {got:?} instead of {want:?}"),
            );
        }
    }
    for resolved in &story.resolved {
        let expected = story.model.calls.get(resolved.call).and_then(|call| call.learned.as_ref());
        let Some(learned) = resolved.learned else { continue };
        if story.is_reply_intact(resolved.call) && (Some(learned) != expected || !resolved.intact) {
            let bytes = if resolved.intact { "" } else { ", with wrong bytes" };
            return fail(
                resolved.call,
                format!("its caller learns {learned:?}{bytes} instead of {expected:?}"),
            );
        }
    }
    if let Some((index, call)) = story.too_long()
        && !story
            .trace
            .events
            .iter()
            .any(|event| matches!(event, Event::ServerEnd(Err(Fatal::TooLong { op, .. })) if *op == call.op))
    {
        return fail(index, "its payload is above the limit, and the connection goes on");
    }
    Ok(())
}

/// After a peer has broken the protocol, nothing more of it is read, and the error stays the same.
fn nothing_after_fatal(story: &Story<'_>) -> Verdict {
    let mut ends = BTreeMap::new();
    for event in &story.trace.events {
        let (side, says) = match event {
            Event::ClientEnd(end) => (0, Some(*end)),
            Event::Reply { .. } | Event::ReplyData { .. } | Event::Revived { side: Side::Client } => {
                (0, None)
            }
            Event::ServerEnd(end) => (1, Some(*end)),
            Event::Request { .. } | Event::RequestData { .. } | Event::Revived { side: Side::Server } => {
                (1, None)
            }
            _ => continue,
        };
        let who = if side == 0 { "the client" } else { "the server" };
        match (ends.get(&side), says) {
            (None, Some(end)) => _ = ends.insert(side, end),
            (Some(first), Some(end)) if *first != end => {
                return fail(None, format!("{who} ends with {first:?}, and then with {end:?}"));
            }
            (Some(first), None) => {
                return fail(None, format!("{who} ends with {first:?}, and then: {event:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Open requests, waiting calls and buffered bytes stay within the limits.
fn limits_hold(story: &Story<'_>) -> Verdict {
    let (options, limits) = (&story.case.options, &story.case.options.limits);
    for event in &story.trace.events {
        match *event {
            Event::Request { open, .. } | Event::Retired { open } if open > limits.open_max => {
                return fail(None, format!("{open} requests are open, {} may be", limits.open_max));
            }
            Event::Request { op, tail, .. } if tail > tail_max(op.info(), limits) => {
                return fail(None, format!("{op} announces a tail of {tail} bytes"));
            }
            Event::Asked { call, waiting, queued_bytes, .. } => {
                if waiting > options.client_open_max {
                    return fail(call, format!("{waiting} calls wait, {} may", options.client_open_max));
                }
                if queued_bytes >= COALESCE_BYTES {
                    return fail(call, format!("it comes on top of {queued_bytes} gathered bytes"));
                }
            }
            Event::Declined { call, why, waiting, queued_bytes } => {
                let is_right = match why {
                    Misuse::TooManyCalls { .. } => waiting >= options.client_open_max,
                    Misuse::Unflushed { .. } => queued_bytes >= COALESCE_BYTES,
                    _ => false,
                };
                if !is_right {
                    return fail(
                        call,
                        format!("{why}; {waiting} calls wait, {queued_bytes} bytes are gathered"),
                    );
                }
            }
            Event::InputLeft { side, len } => {
                return fail(None, format!("{side:?} wants more bytes and leaves {len}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn tail_max(info: Option<&Info>, limits: &hipr_proto::Limits) -> u64 {
    match info.map(|info| info.request.tail) {
        Some(Tail::Small) => limits.small_tail_max,
        Some(Tail::Bulk) => limits.payload_max,
        Some(Tail::None) | None => 0,
    }
}

/// Every request has one ticket; at the end all are completed.
fn every_ticket_is_spent(story: &Story<'_>) -> Verdict {
    let (mut delivered, mut completed) = (0, 0);
    for event in &story.trace.events {
        match *event {
            Event::Request { sequence, open, .. } => {
                if sequence != delivered {
                    return fail(None, format!("request {delivered} has ticket {sequence}"));
                }
                delivered += 1;
                if (open as u64) < delivered - completed {
                    let really = delivered - completed;
                    return fail(None, format!("{open} requests are said to be open, {really} are"));
                }
            }
            Event::Completed { sequence, .. } => {
                if sequence != completed {
                    return fail(None, format!("ticket {sequence} is taken where {completed} is next"));
                }
                completed += 1;
            }
            Event::Rest { unspent, open } if (unspent, open) != (0, 0) || delivered != completed => {
                return fail(None, format!("at the end {unspent} tickets are unspent, {open} requests open"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Tails and inline bytes are as long as announced, and exactly their last piece is marked as the last.
fn inline_bytes_add_up(story: &Story<'_>) -> Verdict {
    let mut left = [0u64; 2];
    for event in &story.trace.events {
        let (side, data, announced) = match *event {
            Event::Request { tail, .. } => (0, None, tail),
            Event::RequestData { bytes, last } => (0, Some((bytes, last)), 0),
            Event::Reply { inline, .. } => (1, None, inline),
            Event::ReplyData { bytes, last } => (1, Some((bytes, last)), 0),
            _ => continue,
        };
        let Some(owed) = left.get_mut(side) else { continue };
        let who = if side == 0 { "a request" } else { "a reply" };
        match data {
            None if *owed > 0 => return fail(None, format!("{who} ends {owed} bytes early")),
            None => *owed = announced,
            Some((Pieces { len, .. }, last)) => {
                let Some(rest) = owed.checked_sub(len).filter(|_| len > 0) else {
                    return fail(None, format!("{len} bytes of {who} where {owed} are owed"));
                };
                if last != (rest == 0) {
                    return fail(None, format!("{rest} bytes of {who} are owed, and last is {last}"));
                }
                *owed = rest;
            }
        }
    }
    // What is owed when a side hears the other's orderly end never comes.
    let ends = |end: &Event| matches!(end, Event::ServerEnd(Ok(())));
    match left {
        [owed, _] if owed > 0 && story.trace.events.iter().any(ends) => {
            fail(None, format!("the last request ends {owed} bytes early"))
        }
        _ => Ok(()),
    }
}

/// Each call that is answered resolves exactly once and in order: with its reply, or with the loss of the connection.
fn calls_resolve_once(story: &Story<'_>) -> Verdict {
    let asked = story.asked.iter().filter(|asked| asked.id.is_some());
    let mut resolved = story.resolved.iter();
    for asked in asked {
        match resolved.next() {
            Some(resolved) if resolved.call == asked.call => {}
            Some(resolved) => {
                return fail(resolved.call, format!("it resolves where call {} is next", asked.call));
            }
            None if story.is_at_rest() => return fail(asked.call, "it never resolves"),
            None => return Ok(()),
        }
    }
    if let Some(resolved) = resolved.next() {
        return fail(resolved.call, "it resolves again, or nobody asked");
    }
    let mut ids = story.asked.iter().filter_map(|asked| asked.id);
    for event in &story.trace.events {
        if let Event::Reply { id, .. } = event
            && ids.next() != Some(*id)
        {
            return fail(None, format!("a reply is taken for that to request {id}"));
        }
    }
    Ok(())
}

/// When faults are over, every reply that is still due arrives.
fn what_is_owed_arrives(story: &Story<'_>) -> Verdict {
    if story.trace.events.iter().any(|event| matches!(event, Event::Stuck)) {
        return fail(None, "the world stands still although something is owed");
    }
    if !story.is_at_rest() {
        return Ok(());
    }
    if story.is_calm() && story.asked.len() < story.case.script.0.len() && !story.model.ends {
        return fail(story.asked.len(), "the client never takes it");
    }
    for resolved in &story.resolved {
        let expected = story.model.calls.get(resolved.call);
        let is_owed = expected.is_some_and(|expected| expected.learned.is_some());
        if is_owed && resolved.learned.is_none() && story.is_reply_owed(resolved.call) {
            return fail(resolved.call, "its reply does not arrive");
        }
    }
    Ok(())
}

/// A caller that keeps the rules of the crate never gets [`Misuse`].
fn rightful_commands_are_accepted(story: &Story<'_>) -> Verdict {
    for event in &story.trace.events {
        if let Event::Refused { side, why } = event {
            return fail(None, format!("{side:?}: {why}"));
        }
    }
    Ok(())
}

/// An orderly end, an end inside a message and an end before all replies are reported as different things.
fn ends_are_told_apart(story: &Story<'_>) -> Verdict {
    for event in &story.trace.events {
        let (who, end, expected) = match event {
            Event::ServerEnd(end) => ("the server", end, story.server_end()),
            Event::ClientEnd(end) => ("the client", end, story.client_end()),
            _ => continue,
        };
        let is_end = matches!(end, Ok(()) | Err(Fatal::EofInsideMessage | Fatal::EofBeforeReply { .. }));
        if is_end && expected.is_some_and(|expected| expected != *end) {
            return fail(None, format!("{who} hears {end:?} where {expected:?} would be right"));
        }
    }
    Ok(())
}

/// Each notification is read once, whole, and in order: between the replies before which and behind which it was sent.
fn notifications_arrive_in_order(story: &Story<'_>) -> Verdict {
    if story.is_down_garbled() {
        return Ok(());
    }
    let completed = story.requests.iter().enumerate().filter(|(_, request)| request.completed);
    let mut expected = completed.filter_map(|(index, _)| Some((index, story.call(index)?.notifies?)));
    for event in &story.trace.events {
        let Event::Heard { call, len, intact } = event else { continue };
        match expected.next() {
            Some(next) if next == (*call, *len) && *intact => {}
            next => {
                return fail(
                    *call,
                    format!("{len} bytes are read, intact: {intact}, where {next:?} is next"),
                );
            }
        }
    }
    let may_miss = story.has_lost(Side::Server) || story.has_lost(Side::Client) || !story.is_at_rest();
    match expected.next() {
        Some((call, _)) if !may_miss && story.is_calm() => fail(call, "its notification does not arrive"),
        _ => Ok(()),
    }
}
