//! Fuzz targets that give arbitrary bytes to a server or a client.

use hipr_proto::op::{ForOp, RequestFailed, with_op};
use hipr_proto::{
    Answer, Client, Fatal, Header, HipError, Inline, Limits, OPS, Op, Opcode, Outbox, Outcome, Rx, Server,
    TailLen, Ticket, Wire,
};

use crate::choices::Choices;

/// Maximum length of a reply's tail; the device refuses requests for more.
const REPLY_TAIL_MAX_BYTES: u64 = 8192;
const FLAG_ERROR: u32 = 2;
const FLAG_RESPONSE: u32 = 1;

fn limits(choices: &mut Choices<'_>) -> Limits {
    Limits {
        payload_max: *choices.pick(&[1 << 38, 0, 100, 5000]).unwrap_or(&5000),
        small_tail_max: *choices.pick(&[64 << 10, 0, 24, 300]).unwrap_or(&300),
        open_max: *choices.pick(&[1000, 1, 2, 5]).unwrap_or(&5),
    }
}

/// Draws the lengths of the pieces into which input is cut, repeatedly.
fn cuts(choices: &mut Choices<'_>) -> Vec<usize> {
    (0..4).map(|_| 1 + choices.below(40) as usize).collect()
}

/// Cuts `bytes` into pieces of these lengths.
fn pieces<'a>(mut bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for len in cuts.iter().copied().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at(len.min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// What an end read from its input, regardless of how it was cut.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Message { op: Opcode, id: u32, error: Option<HipError>, fixed: Vec<u8>, tail: Vec<u8>, announced: u64 },
    Fatal(Fatal),
    End,
}

/// Returns the last message's tail so far, and its announced length.
fn last_tail(seen: &mut [Seen]) -> (&mut Vec<u8>, u64) {
    match seen.last_mut() {
        Some(Seen::Message { tail, announced, .. }) => (tail, *announced),
        other => panic!("bytes of a tail after {other:?}"),
    }
}

fn add(seen: &mut [Seen], bytes: &[u8], last: bool) {
    assert!(!bytes.is_empty(), "nothing is delivered");
    let (tail, announced) = last_tail(seen);
    tail.extend_from_slice(bytes);
    assert!(tail.len() as u64 <= announced, "more bytes than the {announced} that were announced");
    assert_eq!(last, tail.len() as u64 == announced, "the last bytes, and only those, are called the last");
}

/// Gives arbitrary bytes to a server whose device accepts everything, at once and in pieces: it has to read and answer the
/// same, with one reply for every request that asks for one.
pub fn server_bytes(data: &[u8]) {
    let mut choices = Choices::new(data);
    let limits = limits(&mut choices);
    let cuts = cuts(&mut choices);
    let bytes = choices.rest();
    let whole = serve(limits, &[bytes]);
    assert_eq!(whole, serve(limits, &pieces(bytes, &cuts)), "in pieces of {cuts:?}");
}

/// Returns what a server read from its input, and the bytes that it sent.
fn serve(limits: Limits, input: &[&[u8]]) -> (Vec<Seen>, Vec<u8>) {
    let mut service =
        Service { server: Server::new(limits), open: Vec::new(), asked: Vec::new(), sent: Vec::new() };
    let mut seen = Vec::new();
    let mut held = Vec::new();
    for piece in input {
        held.extend_from_slice(piece);
        let mut rest = held.as_slice();
        match service.read(&mut rest, limits, &mut seen) {
            Ok(()) => assert!(rest.is_empty(), "input that is needed is left"),
            Err(why) => return service.died(why, seen),
        }
        held.clear();
    }
    match service.server.handle_eof() {
        Ok(()) => seen.push(Seen::End),
        Err(why) => return service.died(why, seen),
    }
    service.complete_all();
    (seen, service.finish())
}

/// A server and its device.
struct Service {
    server: Server<Vec<u8>>,
    open: Vec<(Ticket, Option<Outcome<Vec<u8>>>)>,
    /// Operation and id of the requests that are answered.
    asked: Vec<(Opcode, u32)>,
    sent: Vec<u8>,
}

impl Service {
    fn read(&mut self, rest: &mut &[u8], limits: Limits, seen: &mut Vec<Seen>) -> Result<(), Fatal> {
        loop {
            match self.server.handle_input(rest)? {
                Rx::Request { ticket, op, fixed, tail } => {
                    assert_eq!((ticket.op(), ticket.sequence()), (op, seen.len() as u64));
                    assert!(tail == 0 || ticket.refusal().is_none(), "bytes of a refused request");
                    let outcome = accept(&ticket, fixed);
                    seen.push(Seen::Message {
                        op,
                        id: ticket.id(),
                        error: ticket.refusal(),
                        fixed: fixed.to_vec(),
                        tail: Vec::new(),
                        announced: tail,
                    });
                    if ticket.wants_reply() {
                        self.asked.push((op, ticket.id()));
                    }
                    self.open.push((ticket, Some(outcome)));
                    assert!(self.server.open() <= limits.open_max, "more requests than may be are open");
                }
                Rx::Data { bytes, last } => add(seen, bytes, last),
                Rx::Paused => {
                    assert_eq!(self.server.open(), limits.open_max, "it pauses too early");
                    self.complete_all();
                }
                Rx::NeedMore => return Ok(()),
            }
        }
    }

    fn complete_all(&mut self) {
        for (ticket, outcome) in std::mem::take(&mut self.open) {
            let outcome = match self.server.admit(&ticket) {
                // Whatever is said to it, this is its answer.
                Some(_) => Outcome::ok_raw(&[0; 3]),
                None => outcome.unwrap_or_else(|| Outcome::error(HipError::UNKNOWN)),
            };
            self.server.complete(ticket, outcome).expect("in order, and of the right size");
            while self.server.stream_left() > 0 {
                let len = self.server.stream_left().min(1000);
                self.server.push_data(vec![0x77; len as usize]).expect("no more than is owed");
            }
        }
        assert_eq!(self.server.open(), 0);
        let mut outbox = Outbox::new();
        self.server.poll_transmit(&mut outbox);
        self.sent.extend(outbox.slices().flatten());
    }

    /// Checks that a server whose peer broke the protocol keeps its error, and still answers earlier requests.
    fn died(mut self, why: Fatal, mut seen: Vec<Seen>) -> (Vec<Seen>, Vec<u8>) {
        for _ in 0..2 {
            let ping = Header::new(Opcode::PING, 1, 0, 0).to_bytes();
            assert_eq!(
                self.server.handle_input(&mut ping.as_slice()).err(),
                Some(why),
                "it came back to life"
            );
            assert_eq!(self.server.handle_eof(), Err(why));
        }
        assert!(!why.to_string().is_empty());
        seen.push(Seen::Fatal(why));
        self.complete_all();
        (seen, self.finish())
    }

    /// Checks that exactly the requests that asked have replies, in order.
    fn finish(self) -> Vec<u8> {
        let mut bytes = self.sent.as_slice();
        for (op, id) in self.asked {
            let header = Header::take(&mut bytes).expect("a reply for each request that asked");
            assert_eq!((header.op, header.request_id), (op, id), "replies come in the order of the requests");
            let len = usize::try_from(header.payload_length).expect("it is in memory");
            let (payload, rest) = bytes.split_at_checked(len).expect("all of the reply");
            let code = i32::take(&mut { payload }).expect("an error code");
            assert!(header.has(FLAG_RESPONSE) && header.has(FLAG_ERROR) == (code != 0), "{header:?} {code}");
            bytes = rest;
        }
        assert!(bytes.is_empty(), "{} bytes that nobody asked for", bytes.len());
        self.sent
    }
}

/// Executes any request: replies with zeros, and with as many bytes as it asks for.
fn accept(ticket: &Ticket, fixed: &[u8]) -> Outcome<Vec<u8>> {
    struct Zeros<'a>(&'a [u8]);

    impl ForOp for Zeros<'_> {
        type Out = Option<(Vec<u8>, TailLen)>;

        fn call<O: Op>(mut self) -> Self::Out {
            let request = O::take(&mut self.0).ok()?;
            Some((vec![0; <O::Reply as Wire>::SIZE], request.reply_tail_len()))
        }
    }

    let Some(Some((reply, tail))) = with_op(ticket.op(), Zeros(fixed)) else {
        return Outcome::error(HipError::INVALID_VALUE);
    };
    let (TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) = tail;
    let inline = match len {
        0 => Inline::None,
        1..=64 => Inline::Whole(vec![0x77; len as usize]),
        65..=REPLY_TAIL_MAX_BYTES => Inline::Stream(len),
        _ => return Outcome::error(HipError::OUT_OF_MEMORY),
    };
    Outcome::ok_raw(&reply).with_inline(inline)
}

/// Gives arbitrary bytes to a client that waits for replies, once whole and once in pieces, and checks that it reads the same and
/// never more than it asked for. The bytes are raw or the bodies of well-formed replies.
pub fn client_bytes(data: &[u8]) {
    let mut choices = Choices::new(data);
    let limits = limits(&mut choices);
    let cuts = cuts(&mut choices);
    let calls: Vec<(Opcode, Vec<u8>)> = (0..1 + choices.below(limits.open_max.min(4) as u64))
        .filter_map(|_| {
            let info = choices.pick(OPS)?;
            let number = *choices.pick(&[0u8, 1, 2, 5]).unwrap_or(&0);
            Some((info.code, vec![number; info.request.size]))
        })
        .collect();
    let is_framed = choices.one_in(2);
    let bytes = if is_framed { replies(&calls, choices) } else { choices.rest().to_vec() };
    let whole = listen(limits, &calls, &[&bytes]);
    assert_eq!(whole, listen(limits, &calls, &pieces(&bytes, &cuts)), "in pieces of {cuts:?}");
}

/// Draws replies to the calls with any flags, lengths, error codes and bodies.
fn replies(calls: &[(Opcode, Vec<u8>)], mut choices: Choices<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for ((op, _), id) in calls.iter().zip(1..) {
        let size = op.info().map_or(0, |info| info.reply.size) as u64 + 4;
        let len = size + choices.below(70) - choices.below(size.min(6) + 1);
        let flags = FLAG_RESPONSE | choices.below(16) as u32;
        Header::new(*op, id, len, flags).put(&mut bytes);
        let code = *choices.pick(&[0i32, 0, 0, 1, -1, 719]).unwrap_or(&0);
        let body: Vec<u8> = (0..len.saturating_sub(4)).map(|_| choices.below(256) as u8).collect();
        bytes.extend(code.to_le_bytes().into_iter().chain(body).take(len as usize));
        if choices.one_in(4) {
            let text_length = choices.below(40) as u32;
            let len =
                (RequestFailed::SIZE as u64 + u64::from(text_length) + choices.below(3)).saturating_sub(1);
            Header::new(RequestFailed::OPCODE, 0, len, choices.below(16) as u32).put(&mut bytes);
            RequestFailed { text_length, ..RequestFailed::ZERO }.put(&mut bytes);
            bytes.extend(
                (0..len.saturating_sub(RequestFailed::SIZE as u64)).map(|_| choices.below(256) as u8),
            );
        }
    }
    bytes.extend_from_slice(choices.rest());
    bytes
}

/// Makes a typed request, so that the client knows what follows the fixed part of the reply.
struct Ask<'a>(&'a mut Client<Vec<u8>>, &'a [u8]);

impl ForOp for Ask<'_> {
    type Out = bool;

    fn call<O: Op>(mut self) -> bool {
        let Ok(request) = O::take(&mut self.1) else { return false };
        let (TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) = request.tail_len();
        if len > REPLY_TAIL_MAX_BYTES {
            return false;
        }
        let tail = vec![0; len as usize];
        let sent = self.0.request_with(&request, &tail, None, hipr_proto::ReplyMode::Always);
        assert!(sent.is_ok_and(|call| call.is_some()), "{request:?} is not sent");
        true
    }
}

fn listen(limits: Limits, calls: &[(Opcode, Vec<u8>)], input: &[&[u8]]) -> Vec<Seen> {
    let mut client = Client::<Vec<u8>>::new(limits);
    if calls.len().is_multiple_of(2) {
        client.accept_notifications();
    }
    for (op, fixed) in calls {
        if with_op(*op, Ask(&mut client, fixed)) != Some(true) {
            let sent = client.request_raw(*op, fixed, None, true);
            assert!(sent.is_ok_and(|call| call.is_some()), "{op} is not sent");
        }
        client.poll_transmit(&mut Outbox::new());
    }
    let mut seen = Vec::new();
    let mut answered = 0;
    for piece in input {
        let mut rest = *piece;
        loop {
            match client.handle_input(&mut rest) {
                Ok(Answer::Reply(reply)) => {
                    let (op, id) = (reply.call.op(), reply.call.id());
                    assert_eq!((Some(&op), id), (calls.get(answered).map(|(op, _)| op), answered as u32 + 1));
                    assert!(reply.inline == 0 || reply.error.is_none(), "bytes of a failed reply");
                    answered += 1;
                    seen.push(Seen::Message {
                        op,
                        id,
                        error: reply.error,
                        fixed: reply.fixed.to_vec(),
                        tail: Vec::new(),
                        announced: reply.inline,
                    });
                }
                Ok(Answer::Notification(notification)) => seen.push(Seen::Message {
                    op: notification.op,
                    id: 0,
                    error: None,
                    fixed: notification.fixed.to_vec(),
                    tail: Vec::new(),
                    announced: notification.inline,
                }),
                Ok(Answer::Data { bytes, last }) => add(&mut seen, bytes, last),
                Ok(Answer::NeedMore) => break,
                Err(why) => return ended(client, why, seen),
            }
        }
        assert!(rest.is_empty(), "input that is needed is left");
    }
    assert!(client.waiting() + answered <= calls.len());
    match client.handle_eof() {
        Ok(()) => {
            assert_eq!(answered, calls.len(), "it ends well without all answers");
            seen.push(Seen::End);
            seen
        }
        Err(why) => ended(client, why, seen),
    }
}

fn ended(mut client: Client<Vec<u8>>, why: Fatal, mut seen: Vec<Seen>) -> Vec<Seen> {
    for _ in 0..2 {
        assert_eq!(client.handle_input(&mut [0x52].as_slice()), Err(why), "it came back to life");
        assert_eq!(client.handle_eof(), Err(why));
    }
    assert!(!why.to_string().is_empty());
    seen.push(Seen::Fatal(why));
    seen
}
