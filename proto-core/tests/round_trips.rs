//! Encodes and decodes every operation, as a value and as a message: extreme numbers, tails at their limits, missing bytes.
//! New rows are covered without a change here.

mod support;

use hipr_proto::op::{ForOp, Param, with_op};
use hipr_proto::{
    Answer, Array, Client, FLAG_HAS_INLINE_DATA, FLAG_RESPONSE, Fatal, HipError, Info, Inline, Limits, OPS,
    Op, Opcode, Outbox, Outcome, Receiver, ReplyMode, Rx, Sender, Server, Tail, TailLen, Wire, WireError,
};
use proptest::prelude::*;
use smallvec::SmallVec;
use support::values::{self, EDGES};
use support::{flat, proptest_config, raw, request, seen};

/// Calls `task` for every row of the table.
fn every_operation<T: ForOp<Out = ()> + Copy>(task: T) {
    for info in OPS {
        with_op(info.code, task).unwrap_or_else(|| panic!("{} has no types", info.name));
    }
}

/// Decodes `bytes`, compares the value with its expected text, encodes it again, and decodes truncated bytes.
fn value_round_trip<T: Wire + PartialEq + std::fmt::Debug>(bytes: &[u8], said: Option<&str>) {
    let name = std::any::type_name::<T>();
    assert_eq!(bytes.len(), T::SIZE, "{name}");
    // Exactly the value is taken.
    let longer = [bytes, b"more"].concat();
    let mut input = longer.as_slice();
    let value = T::take(&mut input).expect("whole");
    assert_eq!(input, b"more", "{name}");
    let debug = format!("{value:?}");
    if let Some(said) = said {
        assert_eq!(values::without_types(&debug), values::without_types(said), "{name}");
    }
    let (mut vec, mut small) = (Vec::new(), SmallVec::<[u8; 32]>::new());
    value.put(&mut vec);
    value.put(&mut small);
    assert!(
        vec == bytes && small.as_slice() == bytes,
        "{name}: {debug} is encoded as {vec:?}, not {bytes:?}"
    );
    let again = T::take(&mut vec.as_slice()).expect("whole");
    assert!(again == value || debug.contains("NaN"), "{name}: {debug} and {again:?}");
    for len in 0..T::SIZE {
        let short = T::take(&mut &bytes[..len]);
        assert!(matches!(short, Err(WireError::Short { .. })), "{name} of {len} bytes: {short:?}");
    }
}

#[derive(Clone, Copy)]
struct ValuesAtTheEdges;

impl ForOp for ValuesAtTheEdges {
    type Out = ();

    fn call<O: Op>(self) {
        let info = O::OPCODE.info().expect("a row");
        assert_eq!((info.request.size, info.reply.size), (O::SIZE, <O::Reply as Wire>::SIZE));
        at_the_edges::<O>();
        at_the_edges::<O::Reply>();
    }
}

fn at_the_edges<T: Wire + PartialEq + std::fmt::Debug>() {
    let mut zeros = Vec::new();
    T::ZERO.put(&mut zeros);
    assert_eq!(zeros, vec![0; T::SIZE]);
    // Every number takes every edge, beside numbers that are at another one.
    for first in 0..EDGES.len() {
        let mut edges = EDGES.iter().cycle().skip(first);
        let (mut bytes, mut said) = (Vec::new(), String::new());
        values::put(&T::LAYOUT, &mut || *edges.next().expect("a cycle"), &mut bytes, &mut said);
        value_round_trip::<T>(&bytes, Some(&said));
    }
}

#[test]
fn values_at_the_edges_survive() {
    every_operation(ValuesAtTheEdges);
    assert_eq!(with_op(Opcode(0x0fff), ValuesAtTheEdges), None);
}

#[derive(Clone, Copy)]
struct AnyBytes<'a>(&'a [u8]);

impl ForOp for AnyBytes<'_> {
    type Out = ();

    fn call<O: Op>(self) {
        value_round_trip::<O>(&self.0[..O::SIZE], None);
        value_round_trip::<O::Reply>(&self.0[..<O::Reply as Wire>::SIZE], None);
    }
}

proptest! {
    #![proptest_config(proptest_config(300))]

    #[test]
    fn any_bytes_survive(row in 0..OPS.len(), bytes in proptest::collection::vec(any::<u8>(), 1024)) {
        with_op(OPS[row].code, AnyBytes(&bytes));
    }
}

/// Returns a request whose numbers are all `number`, including kinds of copies, lengths and counts.
fn all<O: Op>(number: u64) -> O {
    O::take(&mut values::all(&O::LAYOUT, number).as_slice()).expect("whole")
}

fn pattern(len: u64) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + 1) as u8).collect()
}

/// Returns tail lengths that the layout allows, lengths with bytes to be skipped, and a length that is too short.
fn lengths(len: TailLen) -> (Vec<u64>, Vec<u64>, Option<u64>) {
    match len {
        TailLen::Exact(n) => (vec![n], vec![n + 1], n.checked_sub(1)),
        TailLen::AtLeast(n) => (vec![n, n + 1, n + 77], vec![], n.checked_sub(1)),
        TailLen::AtMost(n) => (vec![0, n / 2, n], vec![n + 1], None),
    }
}

/// A delivered request: refusal, fixed part, tail.
type Delivered = (Option<HipError>, Vec<u8>, Vec<u8>);

/// Reads the one request in `bytes` with a server that has `limits`.
fn delivered(limits: Limits, bytes: &[u8]) -> Result<Delivered, Fatal> {
    let mut receiver = Receiver::new(limits);
    let mut input = bytes;
    let Rx::Request { ticket, fixed, tail, .. } = receiver.handle_input(&mut input)? else {
        panic!("no request in {bytes:?}")
    };
    let (refusal, fixed) = (ticket.refusal(), fixed.to_vec());
    let mut data = Vec::new();
    while let Rx::Data { bytes, last } = receiver.handle_input(&mut input)? {
        data.extend_from_slice(bytes);
        assert_eq!(last, data.len() as u64 == tail);
    }
    assert_eq!((data.len() as u64, receiver.handle_eof()), (tail, Ok(())));
    Ok((refusal, fixed, data))
}

#[derive(Clone, Copy)]
struct Requests;

impl ForOp for Requests {
    type Out = ();

    fn call<O: Op>(self) {
        let info = O::OPCODE.info().expect("a row");
        for number in 0..=4 {
            let request = all::<O>(number);
            let fixed = values::all(&O::LAYOUT, number);
            assert_eq!(info.tail_len(&fixed), Ok(request.tail_len()), "{}", info.name);
            let (good, longer, short) = lengths(request.tail_len());
            for len in good {
                send_request(info, &request, &fixed, &pattern(len));
            }
            for len in longer {
                let bytes = raw(O::OPCODE, 1, 0, &[fixed.as_slice(), &pattern(len)].concat());
                let expected = Ok((None, fixed.clone(), pattern(len - 1)));
                assert_eq!(delivered(Limits::default(), &bytes), expected, "{}", info.name);
            }
            if let Some(len) = short {
                let bytes = raw(O::OPCODE, 1, 0, &[fixed.as_slice(), &pattern(len)].concat());
                let expected = Ok((Some(HipError::INVALID_VALUE), fixed.clone(), vec![]));
                assert_eq!(delivered(Limits::default(), &bytes), expected, "{}", info.name);
            }
        }
        shorter_fixed_parts::<O>();
    }
}

/// Sends a request and receives it with a server whose limits lie at and below what it needs.
fn send_request<O: Op>(info: &Info, request: &O, fixed: &[u8], tail: &[u8]) {
    let (name, len) = (info.name, tail.len() as u64);
    for (reply_mode, flags) in [(ReplyMode::Always, 0), (ReplyMode::Never, 8), (ReplyMode::AsUsual, u32::MAX)]
    {
        let mut sender = Sender::<Vec<u8>>::new();
        let call = sender.request_with(request, tail, None, reply_mode).expect("a good request");
        let quiet = if flags == u32::MAX { u32::from(!request.wants_reply()) * 8 } else { flags };
        assert_eq!(call.is_none(), quiet != 0, "{name}");
        let inline = if info.request.tail == Tail::Bulk && len > 0 { FLAG_HAS_INLINE_DATA } else { 0 };
        let mut outbox = Outbox::new();
        sender.poll_transmit(&mut outbox);
        let bytes = flat(&outbox);
        assert_eq!(bytes, raw(O::OPCODE, 1, quiet | inline, &[fixed, tail].concat()), "{name}");

        let good = Ok((None, fixed.to_vec(), tail.to_vec()));
        let payload = (fixed.len() + tail.len()) as u64;
        let limits = Limits { payload_max: payload, small_tail_max: len, open_max: 1 };
        assert_eq!(delivered(limits, &bytes), good, "{name}");
        if let Some(max) = payload.checked_sub(1) {
            let too_long = Err(Fatal::TooLong { op: O::OPCODE, length: payload, max });
            assert_eq!(delivered(Limits { payload_max: max, ..limits }, &bytes), too_long, "{name}");
        }
        if let Some(small_tail_max) = len.checked_sub(1) {
            let refused = Ok((Some(HipError::INVALID_VALUE), fixed.to_vec(), vec![]));
            let expected = if info.request.tail == Tail::Small { refused } else { good };
            assert_eq!(delivered(Limits { small_tail_max, ..limits }, &bytes), expected, "{name}");
        }
    }
}

fn shorter_fixed_parts<O: Op>() {
    let fixed = values::all(&O::LAYOUT, 1);
    for len in 0..fixed.len() {
        let refused = Ok((Some(HipError::INVALID_VALUE), fixed[..len].to_vec(), vec![]));
        assert_eq!(delivered(Limits::default(), &raw(O::OPCODE, 1, 0, &fixed[..len])), refused);
    }
}

#[test]
fn requests_arrive_as_they_were_sent() {
    every_operation(Requests);
}

#[derive(Clone, Copy)]
struct CutShort;

impl ForOp for CutShort {
    type Out = ();

    fn call<O: Op>(self) {
        let tail = match all::<O>(1).tail_len() {
            TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len) => pattern(len),
        };
        let bytes = request(&all::<O>(1), 1, 0, &tail);
        for len in 1..bytes.len() {
            let mut receiver = Receiver::new(Limits::default());
            let mut input = &bytes[..len];
            while !matches!(receiver.handle_input(&mut input), Ok(Rx::NeedMore)) {}
            assert_eq!(receiver.handle_eof(), Err(Fatal::EofInsideMessage), "{:?}, {len} bytes", O::OPCODE);
        }
    }
}

#[test]
fn requests_that_are_cut_short_are_noticed_at_every_byte() {
    every_operation(CutShort);
}

/// Returns how many numbers and texts a request has.
fn numbers_of<O: Op>() -> usize {
    let mut count = 0;
    values::put(
        &O::LAYOUT,
        &mut || {
            count += 1;
            0
        },
        &mut Vec::new(),
        &mut String::new(),
    );
    count
}

/// Returns a request's bytes with one number set to `number` and all others to `others`.
fn with_number<O: Op>(index: usize, number: u64, others: u64) -> Vec<u8> {
    let (mut at, mut bytes) = (0..numbers_of::<O>(), Vec::new());
    let mut next = || if at.next() == Some(index) { number } else { others };
    values::put(&O::LAYOUT, &mut next, &mut bytes, &mut String::new());
    bytes
}

#[derive(Clone, Copy)]
struct CountsAtTheEdges;

impl ForOp for CountsAtTheEdges {
    type Out = ();

    /// Checks that a request without the tail that its counts announce is refused, and one that needs no tail is not.
    fn call<O: Op>(self) {
        for (index, number) in (0..numbers_of::<O>()).flat_map(|index| EDGES.map(|number| (index, number))) {
            // The others are 1: a copy from the host, a row, a byte.
            let fixed = with_number::<O>(index, number, 1);
            let request = O::take(&mut fixed.as_slice()).expect("whole");
            let needs = match request.tail_len() {
                TailLen::Exact(need) | TailLen::AtLeast(need) => need,
                TailLen::AtMost(_) => 0,
            };
            let refusal = Some(HipError::INVALID_VALUE).filter(|_| needs > 0);
            let expected = Ok((refusal, fixed.clone(), vec![]));
            assert_eq!(delivered(Limits::default(), &raw(O::OPCODE, 1, 0, &fixed)), expected, "{request:?}");
            // The client does not send it either.
            let refused = Sender::<Vec<u8>>::new().request(&request, &[], None).is_err();
            assert_eq!(refused, needs > 0, "{request:?}");
        }
    }
}

#[test]
fn counts_at_the_edges_are_believed_only_with_their_bytes() {
    every_operation(CountsAtTheEdges);
}

#[derive(Clone, Copy)]
struct LargestArrays;

impl ForOp for LargestArrays {
    type Out = ();

    /// Checks, for every count, the value that makes a small tail as long as allowed.
    fn call<O: Op>(self) {
        let info = O::OPCODE.info().expect("a row");
        if info.request.tail != Tail::Small {
            return;
        }
        let max = Limits::default().small_tail_max;
        let need = |request: &O| match request.tail_len() {
            TailLen::Exact(need) | TailLen::AtLeast(need) => need,
            TailLen::AtMost(_) => panic!("a request has no such tail"),
        };
        let with = |index: usize, count: u64| {
            O::take(&mut with_number::<O>(index, count, 0).as_slice()).expect("whole")
        };
        let base = need(&O::ZERO);
        let counting: Vec<_> = (0..numbers_of::<O>()).filter(|index| need(&with(*index, 1)) > base).collect();
        assert_eq!(counting.is_empty(), info.request.tail_layout.contains("cstr"), "{}", info.name);
        for index in counting {
            let size = need(&with(index, 1)) - base;
            for (count, refusal) in [(max / size, None), (max / size + 1, Some(HipError::INVALID_VALUE))] {
                let request = with(index, count);
                let tail = pattern(count * size);
                let bytes = support::request(&request, 1, 0, &tail);
                let (got, _, data) = delivered(Limits::default(), &bytes).expect("good bytes");
                assert_eq!((got, data == tail), (refusal, refusal.is_none()), "{}", info.name);
            }
        }
    }
}

#[test]
fn the_largest_arrays_arrive() {
    every_operation(LargestArrays);
}

#[derive(Clone, Copy)]
struct Replies;

impl ForOp for Replies {
    type Out = ();

    fn call<O: Op>(self) {
        for number in 0..=4 {
            let request = all::<O>(number);
            let reply = values::all(&<O::Reply as Wire>::LAYOUT, number + 1);
            let (good, longer, short) = lengths(request.reply_tail_len());
            for len in good {
                let bytes = answer::<O>(&request, &reply, &pattern(len));
                assert_eq!(learned(&request, &bytes), Ok((Ok(reply.clone()), pattern(len))), "{request:?}");
                ends_inside_replies(&request, &bytes);
            }
            for len in longer {
                let bytes = answer::<O>(&request, &reply, &pattern(len));
                assert_eq!(
                    learned(&request, &bytes),
                    Ok((Ok(reply.clone()), pattern(len - 1))),
                    "{request:?}"
                );
            }
            // Too few bytes: of the error code, of the fixed part, of what follows.
            let all = [&[0; 4], reply.as_slice()].concat();
            (0..all.len()).for_each(|len| is_short(&request, &all[..len]));
            if let Some(len) = short {
                is_short(&request, &[all, pattern(len)].concat());
            }
            failures(&request);
        }
    }
}

/// Lets a server complete `request` with `reply` and `tail`; returns the bytes it sends.
fn answer<O: Op>(request: &O, reply: &[u8], tail: &[u8]) -> Vec<u8> {
    let reply = O::Reply::take(&mut &reply[..]).expect("whole");
    let outcome = Outcome::ok(&reply).with_inline(Inline::Whole(tail.to_vec()));
    let sent = served(request, outcome);
    let inline = if tail.is_empty() { 0 } else { FLAG_HAS_INLINE_DATA };
    assert_eq!(seen(&sent)[0].flags, FLAG_RESPONSE | inline);
    sent
}

fn served<O: Op>(request: &O, outcome: Outcome<Vec<u8>>) -> Vec<u8> {
    let (TailLen::Exact(tail) | TailLen::AtLeast(tail) | TailLen::AtMost(tail)) = request.tail_len();
    let bytes = support::request(request, 1, 0, &pattern(tail));
    let mut server = Server::new(Limits::default());
    let Ok(Rx::Request { ticket, .. }) = server.handle_input(&mut bytes.as_slice()) else {
        panic!("a request")
    };
    server.complete(ticket, outcome).expect("a good outcome");
    let mut outbox = Outbox::new();
    server.poll_transmit(&mut outbox);
    flat(&outbox)
}

type Learned = (Result<Vec<u8>, HipError>, Vec<u8>);

/// Returns a client that waits for the reply to `request`.
fn waiting<O: Op>(request: &O) -> Client<Vec<u8>> {
    let (TailLen::Exact(tail) | TailLen::AtLeast(tail) | TailLen::AtMost(tail)) = request.tail_len();
    let mut client = Client::new(Limits::default());
    let call = client.request_with(request, &pattern(tail), None, ReplyMode::Always).expect("a good request");
    assert!(call.is_some());
    client
}

/// Returns what a client reads from `bytes`: the reply, encoded again, and its tail.
fn learned<O: Op>(request: &O, bytes: &[u8]) -> Result<Learned, Fatal> {
    let mut client = waiting(request);
    let mut input = bytes;
    let Answer::Reply(reply) = client.handle_input(&mut input)? else { panic!("no reply in {bytes:?}") };
    let inline = reply.inline;
    let read = reply.read::<O>().expect("whole").map(|reply| {
        let mut fixed = Vec::new();
        reply.put(&mut fixed);
        fixed
    });
    let mut data = Vec::new();
    while let Answer::Data { bytes, last } = client.handle_input(&mut input)? {
        data.extend_from_slice(bytes);
        assert_eq!(last, data.len() as u64 == inline);
    }
    assert_eq!((data.len() as u64, client.waiting(), client.handle_eof()), (inline, 0, Ok(())));
    Ok((read, data))
}

fn is_short<O: Op>(request: &O, body: &[u8]) {
    let tail = match request.reply_tail_len() {
        TailLen::Exact(n) | TailLen::AtLeast(n) => n,
        TailLen::AtMost(_) => 0,
    };
    let need = 4 + <O::Reply as Wire>::SIZE as u64 + tail;
    let short = Fatal::ShortReply { op: O::OPCODE, need, have: body.len() as u64 };
    assert_eq!(learned(request, &raw(O::OPCODE, 1, FLAG_RESPONSE, body)), Err(short), "{request:?}");
}

fn ends_inside_replies<O: Op>(request: &O, bytes: &[u8]) {
    for len in 0..bytes.len() {
        let mut client = waiting(request);
        let mut input = &bytes[..len];
        while !matches!(client.handle_input(&mut input), Ok(Answer::NeedMore)) {}
        let expected = if len == 0 { Fatal::EofBeforeReply { waiting: 1 } } else { Fatal::EofInsideMessage };
        assert_eq!(client.handle_eof(), Err(expected), "{request:?}, {len} bytes");
    }
}

/// Checks that a failed reply has a zeroed fixed part, and that a client accepts one without it.
fn failures<O: Op>(request: &O) {
    let size = <O::Reply as Wire>::SIZE;
    let inline = Inline::Whole(b"never seen".to_vec());
    let bytes = served(request, Outcome::error(HipError::LAUNCH_FAILURE).with_inline(inline));
    assert_eq!(seen(&bytes)[0].body, vec![0; size]);
    assert_eq!(learned(request, &bytes), Ok((Err(HipError::LAUNCH_FAILURE), vec![])));
    for len in 0..size {
        let body = [&HipError::LAUNCH_FAILURE.0.to_le_bytes(), &[0xee; 1024][..len]].concat();
        let shorter = raw(O::OPCODE, 1, FLAG_RESPONSE, &body);
        assert_eq!(learned(request, &shorter), Ok((Err(HipError::LAUNCH_FAILURE), vec![])));
    }
}

#[test]
fn replies_arrive_as_they_were_given() {
    every_operation(Replies);
}

#[test]
fn arrays_are_read_as_far_as_they_are_there() {
    let bytes = [[1u8, 0, 0, 0, 2, 0, 0, 0], [3, 0, 0, 0, 4, 0, 0, 0]].concat();
    let both = [Param { offset: 1, size: 2 }, Param { offset: 3, size: 4 }];
    for count in 0..=3 {
        let mut tail = bytes.as_slice();
        let array = Array::<Param>::take(&mut tail, count);
        if count == 3 {
            assert_eq!(array, Err(WireError::Short { need: 24, have: 16 }));
            continue;
        }
        let (array, count) = (array.expect("whole"), count as usize);
        assert_eq!((array.len(), array.is_empty(), tail.len()), (count, count == 0, 16 - 8 * count));
        assert_eq!(array.iter().collect::<Vec<_>>(), both[..count]);
        assert_eq!((array.at(count), array.at(usize::MAX)), (None, None));
        assert_eq!(format!("{array:?}"), format!("{:?}", &both[..count]));
        let same = array;
        assert_eq!(same.clone(), array);
    }
    for count in [u64::MAX, u64::MAX / 8 + 1, 1 << 61] {
        let taken = Array::<Param>::take(&mut bytes.as_slice(), count);
        assert!(matches!(taken, Err(WireError::Short { have: 16, .. })), "{count}: {taken:?}");
    }
    // Values of no size have no number.
    let array = Array::<()>::take(&mut bytes.as_slice(), 5).expect("nothing is needed");
    assert_eq!((array.len(), array.iter().len()), (0, 0));
}
