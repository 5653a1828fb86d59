//! Compares how requests and replies are read from a stream in arbitrary pieces, complete, truncated and damaged, with a
//! model that has the whole stream at once. Limits lie at, below and above what the messages need.

mod support;

use std::collections::VecDeque;

use hipr_proto::op::{ForOp, with_op};
use hipr_proto::{
    Answer, Call, FLAG_ERROR, FLAG_NO_REPLY, FLAG_RESPONSE, Fatal, Header, HipError, Info, Layout, Limits,
    OPS, Op, Opcode, Receiver, ReplyMode, ReplyReceiver, Rx, Sender, Tail, TailLen, Wire,
};
use proptest::prelude::*;
use proptest::sample::Index;
use support::naive::{self, Way, belonging, near, nearness};
use support::{proptest_config, values};

/// What a receiver returned, with the pieces of a tail joined.
#[derive(Debug, PartialEq)]
enum Event {
    Request { id: u32, op: Opcode, wants_reply: bool, refusal: Option<HipError>, fixed: Vec<u8>, tail: u64 },
    Reply { id: u32, error: Option<HipError>, fixed: Vec<u8>, inline: u64 },
    Data { bytes: Vec<u8>, last: bool },
}

/// Everything that was read from a stream, and how it ended.
type Transcript = (Vec<Event>, Result<(), Fatal>);

fn push_data(events: &mut Vec<Event>, piece: &[u8], piece_is_last: bool) {
    assert!(!piece.is_empty());
    match events.last_mut() {
        Some(Event::Data { bytes, last }) => {
            assert!(!*last, "bytes after the last ones");
            bytes.extend_from_slice(piece);
            *last = piece_is_last;
        }
        _ => events.push(Event::Data { bytes: piece.to_vec(), last: piece_is_last }),
    }
}

/// Generates the code of an operation, or a number that may not be one.
fn opcode() -> impl Strategy<Value = Opcode> {
    prop_oneof![9 => (0..OPS.len()).prop_map(|row| OPS[row].code), 1 => any::<u16>().prop_map(Opcode)]
}

/// Generates an error in a length: mostly 0, sometimes a few bytes more or less.
fn slip() -> impl Strategy<Value = i64> {
    prop_oneof![6 => Just(0), 1 => -3..=3i64, 1 => Just(40)]
}

fn pattern(len: u64) -> impl Iterator<Item = u8> {
    (0..len).map(|i| (i * 7 + 1) as u8)
}

#[derive(Debug, Clone)]
struct Request {
    op: Opcode,
    /// The value of all numbers in the fixed part, or the bytes of the fixed part.
    number: Result<u64, Vec<u8>>,
    /// Difference between the tail's length and what the fixed part says.
    slip: i64,
    /// Length to which the payload is truncated.
    cut: Option<usize>,
    version: u16,
    flags: u32,
}

impl Request {
    fn any() -> impl Strategy<Value = Self> {
        let number = prop_oneof![
            9 => (0..5u64).prop_map(Ok),
            1 => proptest::collection::vec(any::<u8>(), 600).prop_map(Err),
        ];
        let cut = proptest::option::weighted(0.1, 0..40usize);
        let version = prop_oneof![20 => Just(0x0100), 4 => 0x0100..=0x01ffu16, 1 => any::<u16>()];
        let flags = prop_oneof![20 => (0..4u32).prop_map(|bits| bits << 2), 1 => any::<u32>()];
        (opcode(), number, slip(), cut, version, flags).prop_map(|(op, number, slip, cut, version, flags)| {
            Self { op, number, slip, cut, version, flags }
        })
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = self.op.info().map_or(Vec::new(), |info| match &self.number {
            Ok(number) => values::all(&Layout::Fields(info.request.fields), *number),
            Err(bytes) => bytes.iter().copied().cycle().take(info.request.size).collect(),
        });
        payload.extend(pattern(self.tail(&payload).saturating_add_signed(self.slip).min(300)));
        payload.truncate(self.cut.unwrap_or(usize::MAX));
        payload
    }

    /// Returns the length of the tail that `fixed` determines.
    fn tail(&self, fixed: &[u8]) -> u64 {
        match self.op.info().map(|info| info.tail_len(fixed)) {
            Some(Ok(TailLen::Exact(n) | TailLen::AtLeast(n) | TailLen::AtMost(n))) => n,
            _ => 0,
        }
    }
}

fn read_naively(limits: &Limits, bytes: &[u8]) -> Transcript {
    let (mut events, mut rest) = (Vec::new(), bytes);
    let end = loop {
        if rest.is_empty() {
            break Ok(());
        }
        let message = match naive::message(rest, limits.payload_max) {
            None => break Err(Fatal::EofInsideMessage),
            Some(Err(why)) => break Err(why),
            Some(Ok(message)) if message.flags & FLAG_RESPONSE != 0 => {
                break Err(Fatal::NotARequest { op: message.op });
            }
            Some(Ok(message)) => message,
        };
        let info = OPS.iter().find(|info| info.code == message.op);
        let size = info.map_or(0, |info| info.request.size as u64).min(message.length) as usize;
        let Some(fixed) = message.payload.get(..size) else { break Err(Fatal::EofInsideMessage) };
        let (tail, refusal) = match judge(limits, info, fixed, message.length - size as u64) {
            Ok(tail) => (tail, None),
            Err(error) => (0, Some(error)),
        };
        let (id, op, wants_reply) = (message.id, message.op, message.flags & FLAG_NO_REPLY == 0);
        events.push(Event::Request { id, op, wants_reply, refusal, fixed: fixed.to_vec(), tail });
        events.extend(message.tail(size, tail).map(|(bytes, last)| Event::Data { bytes, last }));
        if !message.is_whole() {
            break Err(Fatal::EofInsideMessage);
        }
        rest = &rest[24 + message.payload.len()..];
    };
    (events, end)
}

fn judge(limits: &Limits, info: Option<&Info>, fixed: &[u8], follows: u64) -> Result<u64, HipError> {
    let info = info.ok_or(HipError::NOT_SUPPORTED)?;
    if fixed.len() < info.request.size {
        return Err(HipError::INVALID_VALUE);
    }
    let len = info.tail_len(fixed).expect("the fixed part is whole");
    let tail = belonging(len, follows).ok_or(HipError::INVALID_VALUE)?;
    if info.request.tail == Tail::Small && tail > limits.small_tail_max {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(tail)
}

/// Reads requests piece by piece; retires them when the receiver pauses or `retire` says so.
fn read_requests(limits: Limits, bytes: &[u8], way: &Way, retire: &[bool]) -> Transcript {
    let mut receiver = Receiver::new(limits);
    assert_eq!(receiver.limits(), &limits);
    let mut retire = retire.iter().cycle();
    let (mut events, mut taken, mut sequence) = (Vec::new(), 0, 0);
    let mut ends = way.ends(bytes.len());
    let mut end = ends.next();
    while let Some(until) = end {
        let mut input = &bytes[taken..until];
        match receiver.handle_input(&mut input) {
            Ok(Rx::Request { ticket, op, fixed, tail }) => {
                let (id, wants_reply, refusal) = (ticket.id(), ticket.wants_reply(), ticket.refusal());
                assert_eq!((ticket.op(), ticket.sequence()), (op, sequence));
                sequence += 1;
                events.push(Event::Request { id, op, wants_reply, refusal, fixed: fixed.to_vec(), tail });
                assert!(receiver.open() <= limits.open_max);
                if *retire.next().expect("a cycle") {
                    receiver.retire(receiver.open());
                }
            }
            Ok(Rx::Data { bytes, last }) => push_data(&mut events, bytes, last),
            Ok(Rx::NeedMore) => {
                assert!(input.is_empty(), "it needs more and has not taken everything");
                end = ends.next();
            }
            Ok(Rx::Paused) => {
                assert_eq!(receiver.open(), limits.open_max);
                let before = input;
                assert!(matches!(receiver.handle_input(&mut input), Ok(Rx::Paused)), "it stays so");
                assert_eq!(input, before, "nothing is taken");
                receiver.retire(1);
            }
            Err(why) => {
                assert_eq!(receiver.handle_input(&mut input).map(|_| ()), Err(why), "it stays so");
                assert_eq!(receiver.handle_eof(), Err(why));
                return (events, Err(why));
            }
        }
        taken = until - input.len();
    }
    let end = receiver.handle_eof();
    assert_eq!(receiver.handle_eof(), end, "it stays so");
    if let Err(why) = end {
        let mut good = &Header::new(Opcode::PING, 1, 0, 0).to_bytes()[..];
        assert_eq!(receiver.handle_input(&mut good).map(|_| ()), Err(why), "nothing comes after the end");
    }
    assert_eq!(receiver.is_between_messages(), end.is_ok());
    (events, end)
}

proptest! {
    #![proptest_config(proptest_config(3000))]

    #[test]
    fn requests_are_read_in_any_pieces(
        requests in proptest::collection::vec(Request::any(), 0..6),
        way in Way::any(),
        payload_max in nearness(),
        small_tail_max in nearness(),
        open_max in 1..4usize,
        retire in proptest::collection::vec(any::<bool>(), 1..5),
    ) {
        let (mut bytes, mut payloads, mut tails) = (Vec::new(), Vec::new(), Vec::new());
        for (id, request) in (1..).zip(&requests) {
            let payload = request.payload();
            let header = Header { version: request.version, ..Header::new(request.op, id, payload.len() as u64, request.flags) };
            header.put(&mut bytes);
            bytes.extend_from_slice(&payload);
            payloads.push(payload.len() as u64);
            tails.push((payload.len() - request.op.info().map_or(0, |info| info.request.size).min(payload.len())) as u64);
        }
        let limits = Limits {
            payload_max: near(&payloads, payload_max, 1 << 38),
            small_tail_max: near(&tails, small_tail_max, 1 << 16),
            open_max,
        };
        let bytes = way.spoil(bytes);
        prop_assert_eq!(read_requests(limits, &bytes, &way, &retire), read_naively(&limits, &bytes));
    }

    #[test]
    fn replies_are_read_in_any_pieces(
        answers in proptest::collection::vec(Reply::any(), 0..6),
        way in Way::any(),
        payload_max in nearness(),
        expected in proptest::option::weighted(0.1, any::<Index>()),
    ) {
        let (mut bytes, mut payloads, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        let mut sender = Sender::new();
        for answer in &answers {
            let expected = answer.ask(&mut sender);
            let payload = answer.payload(&expected);
            let id = expected.call.id().wrapping_add(answer.id_slip);
            let op = Opcode(expected.call.op().0 ^ answer.op_slip);
            for _ in 0..answer.times {
                Header::new(op, id, payload.len() as u64, answer.flags).put(&mut bytes);
                bytes.extend_from_slice(&payload);
            }
            payloads.push(payload.len() as u64);
            calls.push(expected);
        }
        // Mostly all calls are expected; else the last replies come unasked.
        if let Some(expected) = expected {
            calls.truncate(expected.index(calls.len() + 1));
        }
        let payload_max = near(&payloads, payload_max, 1 << 38);
        let bytes = way.spoil(bytes);
        let limits = Limits { payload_max, open_max: calls.len(), ..Limits::default() };
        prop_assert_eq!(read_replies(limits, &calls, &bytes, &way), read_replies_naively(&limits, &calls, &bytes));
    }
}

/// A call and the reply to it.
#[derive(Debug, Clone)]
struct Reply {
    op: Opcode,
    number: u64,
    error: i32,
    /// Bytes by which the fixed part with its error code, and the tail, are longer than their layout.
    slips: (i64, i64),
    id_slip: u32,
    op_slip: u16,
    flags: u32,
    times: usize,
}

/// A call that waits, with the size of its reply's fixed part and the length of its tail.
struct Expected {
    call: Call,
    size: usize,
    tail: TailLen,
}

impl Expected {
    /// Returns the minimum and maximum length of the reply's tail.
    fn tail(&self) -> (u64, u64) {
        match self.tail {
            TailLen::Exact(n) | TailLen::AtLeast(n) => (n, n),
            TailLen::AtMost(n) => (0, n),
        }
    }
}

struct Ask<'a> {
    sender: &'a mut Sender<Vec<u8>>,
    number: u64,
}

impl ForOp for Ask<'_> {
    type Out = Expected;

    fn call<O: Op>(self) -> Expected {
        let op = O::take(&mut values::all(&O::LAYOUT, self.number).as_slice()).expect("whole");
        let (TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) = op.tail_len();
        let tail: Vec<u8> = pattern(len).collect();
        let call = self.sender.request_with(&op, &tail, None, ReplyMode::Always);
        let call = call.expect("a good request").expect("it waits");
        Expected { call, size: <O::Reply as Wire>::SIZE, tail: op.reply_tail_len() }
    }
}

impl Reply {
    fn any() -> impl Strategy<Value = Self> {
        let error = prop_oneof![4 => Just(0), 1 => any::<i32>()];
        let flags = prop_oneof![
            20 => Just(FLAG_RESPONSE),
            5 => Just(FLAG_RESPONSE | FLAG_ERROR),
            1 => any::<u32>(),
        ];
        let id_slip = prop_oneof![20 => Just(0), 1 => any::<u32>()];
        let op_slip = prop_oneof![20 => Just(0), 1 => any::<u16>()];
        let times = prop_oneof![20 => Just(1), 1 => Just(0), 1 => Just(2)];
        (opcode(), 0..4u64, error, (slip(), slip()), id_slip, op_slip, flags, times).prop_map(
            |(op, number, error, slips, id_slip, op_slip, flags, times)| Self {
                op,
                number,
                error,
                slips,
                id_slip,
                op_slip,
                flags,
                times,
            },
        )
    }

    fn ask(&self, sender: &mut Sender<Vec<u8>>) -> Expected {
        let known = with_op(self.op, Ask { sender, number: self.number });
        known.unwrap_or_else(|| {
            let call = sender.request_raw(self.op, &[1, 2, 3], None, true);
            let call = call.expect("a good request").expect("it waits");
            Expected { call, size: 0, tail: TailLen::AtLeast(0) }
        })
    }

    fn payload(&self, expected: &Expected) -> Vec<u8> {
        let fixed = (4 + expected.size as u64).saturating_add_signed(self.slips.0);
        let tail = expected.tail().1.saturating_add_signed(self.slips.1);
        let mut payload: Vec<u8> =
            self.error.to_le_bytes().into_iter().chain(pattern(fixed + tail)).collect();
        payload.truncate((fixed + tail) as usize);
        payload
    }
}

fn read_replies_naively(limits: &Limits, calls: &[Expected], bytes: &[u8]) -> Transcript {
    let (mut events, mut rest, mut calls) = (Vec::new(), bytes, VecDeque::from_iter(calls));
    let end = loop {
        match (rest, calls.len()) {
            ([], 0) => break Ok(()),
            ([], waiting) => break Err(Fatal::EofBeforeReply { waiting }),
            _ => {}
        }
        let message = match naive::message(rest, limits.payload_max) {
            None => break Err(Fatal::EofInsideMessage),
            Some(Err(why)) => break Err(why),
            Some(Ok(message)) => message,
        };
        let (id, op) = (message.id, message.op);
        if message.flags & FLAG_RESPONSE == 0 {
            break Err(Fatal::NotAReply { op });
        }
        let Some(next) = calls.pop_front() else { break Err(Fatal::UnexpectedReply { id, op }) };
        let (expected_id, expected) = (next.call.id(), next.call.op());
        if (id, op) != (expected_id, expected) {
            break Err(Fatal::WrongReply { expected_id, expected, id, op });
        }
        let whole = 4 + next.size;
        let short = Fatal::ShortReply { op, need: whole as u64 + next.tail().0, have: message.length };
        let len = message.length.min(whole as u64) as usize;
        let Some(head) = message.payload.get(..len) else { break Err(Fatal::EofInsideMessage) };
        let Some((code, fixed)) = head.split_first_chunk() else { break Err(short) };
        let error = Some(i32::from_le_bytes(*code)).filter(|code| *code != 0).map(HipError);
        let inline = match error {
            Some(_) => 0,
            None if len < whole => break Err(short),
            None => match belonging(next.tail, message.length - len as u64) {
                None => break Err(short),
                Some(inline) => inline,
            },
        };
        events.push(Event::Reply { id, error, fixed: fixed.to_vec(), inline });
        events.extend(message.tail(len, inline).map(|(bytes, last)| Event::Data { bytes, last }));
        if !message.is_whole() {
            break Err(Fatal::EofInsideMessage);
        }
        rest = &rest[24 + message.payload.len()..];
    };
    (events, end)
}

fn read_replies(limits: Limits, calls: &[Expected], bytes: &[u8], way: &Way) -> Transcript {
    let mut receiver = ReplyReceiver::new(limits);
    for expected in calls {
        receiver.expect(expected.call).expect("as many as may");
    }
    let (mut events, mut taken, mut replies) = (Vec::new(), 0, 0);
    for end in way.ends(bytes.len()) {
        let mut input = &bytes[taken..end];
        loop {
            match receiver.handle_input(&mut input) {
                Ok(Answer::Reply(reply)) => {
                    assert_eq!(reply.call, calls[replies].call);
                    replies += 1;
                    let (id, fixed) = (reply.call.id(), reply.fixed.to_vec());
                    events.push(Event::Reply { id, error: reply.error, fixed, inline: reply.inline });
                    assert_eq!(receiver.waiting(), calls.len() - replies);
                }
                Ok(Answer::Data { bytes, last }) => push_data(&mut events, bytes, last),
                Ok(Answer::Notification(other)) => panic!("nobody accepts it: {other:?}"),
                Ok(Answer::NeedMore) => break,
                Err(why) => {
                    assert_eq!(receiver.handle_input(&mut input), Err(why), "it stays so");
                    assert_eq!(receiver.handle_eof(), Err(why));
                    return (events, Err(why));
                }
            }
        }
        assert!(input.is_empty(), "it needs more and has not taken everything");
        taken = end;
    }
    let end = receiver.handle_eof();
    assert_eq!(receiver.handle_eof(), end, "it stays so");
    if let Err(why) = end {
        assert_eq!(receiver.handle_input(&mut &[0; 500][..]), Err(why), "nothing comes after the end");
    }
    (events, end)
}
