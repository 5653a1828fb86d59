//! Fuzz targets that run scripts, on a server alone and in the core world.

use std::collections::VecDeque;

use hipr_proto::{
    Class, FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, Fatal, Header, HipError, Inline,
    Limits, Outbox, Outcome, Receiver, Responder, Rx, Server, Ticket, Wire,
};

use crate::choices::Choices;
use crate::core_world;
use crate::model::{Learned, Model};
use crate::options::Options;
use crate::script::{Bytes, Call, Case, Device, Kind, When, pattern};

/// Runs the core world: both ends, the pipe between them and its faults, as the bytes decide.
pub fn pair(data: &[u8]) {
    let case = Case::from_bytes(data);
    if let Err(failure) = core_world::check(&case) {
        panic!("{failure}\n{}\n{}", case.options, case.script);
    }
}

/// Runs a script on a server without a client: requests are encoded by hand, with any ids and unknown flags, cut into any
/// pieces, and completed as late as the limits allow; the replies are parsed by hand and compared with the model.
pub fn server_script(data: &[u8]) {
    let calm = |choices: &mut Choices<'_>| Options { fault: None, hang: None, ..Options::draw(choices) };
    let case = Case::draw(data, calm);
    let model = Model::of(&case.script, &case.options);
    let mut choices = Choices::new(&case.schedule);
    let base_id = choices.below(1 << 32) as u32;
    let calls = &case.script.0;
    let requests: Vec<u8> = (0..)
        .zip(calls)
        .flat_map(|(index, call)| request(index, call, base_id.wrapping_add(index as u32), &mut choices))
        .collect();
    let mut worker = Worker::new(calls, case.options.limits);
    let end = worker.run(&requests, &mut choices, case.options.chunk_max_bytes);
    match calls.iter().find(|call| call.kind == Kind::TooLong) {
        Some(call) => {
            assert!(matches!(end, Err(Fatal::TooLong { op, .. }) if op == call.op), "{end:?}");
        }
        None => assert_eq!(end, Ok(()), "\n{}", case.script),
    }
    let executed: Vec<bool> = model.calls.iter().map(|expected| expected.executed).collect();
    assert_eq!(worker.executed, executed, "what is carried out of\n{}", case.script);

    let mut sent = worker.sent.as_slice();
    for (index, expected) in model.calls.iter().enumerate() {
        if let (Some(learned), Some(call)) = (&expected.learned, calls.get(index)) {
            reply(index, call, learned, base_id.wrapping_add(index as u32), &mut sent);
        }
    }
    assert!(sent.is_empty(), "{} bytes that nobody asked for", sent.len());
}

/// Encodes a request, without its payload if the server does not read it.
fn request(index: usize, call: &Call, id: u32, choices: &mut Choices<'_>) -> Vec<u8> {
    let silent = if call.loud { 0 } else { FLAG_NO_REPLY };
    let meaningless = (choices.below(16) as u32) << 28;
    let inline = if choices.one_in(2) { FLAG_HAS_INLINE_DATA } else { 0 };
    let len = call.fixed.len() as u64 + call.tail_len;
    let mut header = Header::new(call.op, id, len, silent | inline | meaningless);
    header.version |= choices.below(4) as u16;
    let mut bytes = header.to_bytes().to_vec();
    if call.kind != Kind::TooLong {
        bytes.extend_from_slice(&call.fixed);
        bytes.extend_from_slice(pattern(index, Bytes::RequestTail, 0, call.tail_len));
    }
    bytes
}

/// Parses and checks the reply to a call at the front of `sent`.
fn reply(index: usize, call: &Call, learned: &Learned, id: u32, sent: &mut &[u8]) {
    let header = Header::take(sent).expect("a reply for each call that asks");
    assert_eq!((header.op, header.request_id), (call.op, id), "call {index}");
    let error = if learned.error.is_some() { FLAG_ERROR } else { 0 };
    let inline = if learned.inline_len > 0 { FLAG_HAS_INLINE_DATA } else { 0 };
    assert_eq!(header.flags, FLAG_RESPONSE | error | inline, "call {index}");
    assert_eq!(header.payload_length, 4 + learned.fixed_len as u64 + learned.inline_len, "call {index}");
    let code = i32::take(sent).expect("an error code");
    assert_eq!(code, learned.error.map_or(0, |error| error.0), "call {index}");
    let (fixed, rest) = sent.split_at_checked(learned.fixed_len).expect("the fixed part");
    match learned.error {
        Some(_) => assert!(fixed.iter().all(|byte| *byte == 0), "call {index} fails with data"),
        None => assert_eq!(fixed, pattern(index, Bytes::ReplyFixed, 0, fixed.len() as u64), "call {index}"),
    }
    let (tail, rest) = rest.split_at_checked(learned.inline_len as usize).expect("all inline bytes");
    assert_eq!(tail, pattern(index, Bytes::ReplyTail, 0, learned.inline_len), "call {index}");
    *sent = rest;
}

/// Both halves of a server, and a device that follows the script.
struct Worker<'c> {
    calls: &'c [Call],
    limits: Limits,
    receiver: Receiver,
    responder: Responder<&'static [u8]>,
    open: VecDeque<Ticket>,
    /// The call whose tail is arriving, and how much of it has arrived.
    arriving: (usize, u64),
    /// For each completed call, whether it was executed.
    executed: Vec<bool>,
    dead: Option<HipError>,
    outbox: Outbox<&'static [u8]>,
    sent: Vec<u8>,
}

impl<'c> Worker<'c> {
    fn new(calls: &'c [Call], limits: Limits) -> Self {
        let (receiver, responder) = Server::new(limits).into_halves();
        Self {
            calls,
            limits,
            receiver,
            responder,
            open: VecDeque::new(),
            arriving: (0, 0),
            executed: Vec::new(),
            dead: None,
            outbox: Outbox::new(),
            sent: Vec::new(),
        }
    }

    /// Reads all of `bytes` in pieces and completes all requests; returns how the connection ended.
    fn run(&mut self, mut bytes: &[u8], choices: &mut Choices<'_>, piece_max: u64) -> Result<(), Fatal> {
        let mut end = Ok(());
        while !bytes.is_empty() && end.is_ok() {
            let len = 1 + choices.below(piece_max) as usize;
            let (mut piece, rest) = bytes.split_at(len.min(bytes.len()));
            bytes = rest;
            end = self.read(&mut piece, choices);
        }
        if end.is_ok() {
            end = self.receiver.handle_eof();
        }
        self.work(usize::MAX);
        assert_eq!(self.receiver.open(), 0, "tickets are left");
        self.write(usize::MAX);
        end
    }

    fn read(&mut self, piece: &mut &[u8], choices: &mut Choices<'_>) -> Result<(), Fatal> {
        loop {
            match self.receiver.handle_input(piece)? {
                Rx::Request { ticket, op, fixed, tail } => {
                    let index = self.executed.len() + self.open.len();
                    let call = self.calls.get(index).expect("no more requests than calls");
                    assert_eq!(
                        (op, ticket.wants_reply(), ticket.refusal()),
                        (call.op, call.loud, call.refusal())
                    );
                    assert!(call.refusal().is_some() || fixed == call.fixed, "call {index}: {fixed:?}");
                    assert_eq!(tail, call.delivered_len(), "call {index}");
                    self.open.push_back(ticket);
                    self.arriving = (index, 0);
                    assert!(self.receiver.open() <= self.limits.open_max, "more are open than may be");
                }
                Rx::Data { bytes, last } => {
                    let (index, at) = self.arriving;
                    let call = self.calls.get(index).expect("no more requests than calls");
                    let len = bytes.len() as u64;
                    assert!(
                        len > 0 && bytes == pattern(index, Bytes::RequestTail, at, len),
                        "call {index} at {at}"
                    );
                    assert_eq!(last, at + len == call.delivered_len(), "call {index} at {at}");
                    self.arriving.1 += len;
                }
                Rx::Paused => {
                    assert_eq!(self.receiver.open(), self.limits.open_max, "it pauses too early");
                    self.work(1 + choices.index(self.limits.open_max));
                }
                Rx::NeedMore => break,
            }
        }
        assert!(piece.is_empty(), "input that is needed is left");
        if choices.one_in(3) {
            self.work(1 + choices.index(8));
        }
        if choices.one_in(3) {
            self.write(1 + choices.index(500));
        }
        Ok(())
    }

    /// Completes up to `n` requests.
    fn work(&mut self, n: usize) {
        for _ in 0..n {
            let Some(ticket) = self.open.pop_front() else { return };
            let index = self.executed.len();
            let call = self.calls.get(index).expect("no more requests than calls");
            self.surface(call, When::Before);
            let executed = self.responder.admit(&ticket).is_none();
            self.executed.push(executed);
            self.surface(call, When::During);
            let outcome = if executed { self.carry_out(index, call) } else { Outcome::ok_raw(&[7]) };
            self.responder.complete(ticket, outcome).expect("in order, and of the right size");
            while self.responder.stream_left() > 0 {
                let left = self.responder.stream_left();
                let part = pattern(index, Bytes::ReplyTail, call.reply_len - left, left.min(777));
                self.responder.push_data(part).expect("no more than is owed");
            }
            self.receiver.retire(1);
        }
    }

    fn surface(&mut self, call: &Call, at: When) {
        if let Some((when, error)) = call.surfaces
            && when == at
        {
            self.responder.keep(error);
        }
    }

    fn carry_out(&mut self, index: usize, call: &Call) -> Outcome<&'static [u8]> {
        if let Some(death) = self.dead
            && call.class() != Class::Exempt
        {
            return Outcome::error(death);
        }
        match call.device {
            Device::Error(error) | Device::Hang(error) => Outcome::error(error),
            Device::Death(error) => Outcome::error(*self.dead.insert(error)),
            Device::Ok => {
                let fixed = pattern(index, Bytes::ReplyFixed, 0, call.reply_size() as u64);
                let tail = pattern(index, Bytes::ReplyTail, 0, call.reply_len);
                let streamed = call.streamed && call.reply_len > 0;
                let inline = if streamed { Inline::Stream(call.reply_len) } else { Inline::Whole(tail) };
                Outcome::ok_raw(fixed).with_inline(inline)
            }
        }
    }

    /// Writes up to `n` bytes.
    fn write(&mut self, n: usize) {
        self.responder.poll_transmit(&mut self.outbox);
        let n = n.min(self.outbox.len_bytes());
        self.sent.extend(self.outbox.slices().flatten().take(n));
        self.outbox.advance(n);
    }
}
