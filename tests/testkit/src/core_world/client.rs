//! The client's end of the core world, and the program that makes its calls.

use std::collections::VecDeque;

use hipr_proto::op::{ForOp, RequestFailed, with_op};
use hipr_proto::{
    Answer, Client, Fatal, Header, Limits, Misuse, Op, Outbox, Reply, ReplyMode, ReplyReceiver, Sender,
};

use super::pipe::{Found, Pipe};
use super::{Moves, PROBES, ZEROS, notification};
use crate::model::Learned;
use crate::options::Options;
use crate::script::{Bytes, Call, Script, pattern};
use crate::trace::{Event, Pieces, Side, Trace};

/// The type of inline bytes: parts of the constant noise.
pub(super) type Inline = &'static [u8];

/// The client, whole or in halves.
enum ClientForm {
    Whole(Client<Inline>),
    Halves(Sender<Inline>, ReplyReceiver),
}

impl ClientForm {
    fn waiting(&self) -> usize {
        match self {
            Self::Whole(client) => client.waiting(),
            Self::Halves(_, receiver) => receiver.waiting(),
        }
    }

    fn wants_flush(&self) -> bool {
        match self {
            Self::Whole(client) => client.wants_flush(),
            Self::Halves(sender, _) => sender.wants_flush(),
        }
    }

    fn flush(&mut self) {
        match self {
            Self::Whole(client) => client.flush(),
            Self::Halves(sender, _) => sender.flush(),
        }
    }

    fn poll_transmit(&mut self, outbox: &mut Outbox<Inline>) -> bool {
        match self {
            Self::Whole(client) => client.poll_transmit(outbox),
            Self::Halves(sender, _) => sender.poll_transmit(outbox),
        }
    }

    fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Answer<'s>, Fatal> {
        match self {
            Self::Whole(client) => client.handle_input(input),
            Self::Halves(_, receiver) => receiver.handle_input(input),
        }
    }

    fn handle_eof(&mut self) -> Result<(), Fatal> {
        match self {
            Self::Whole(client) => client.handle_eof(),
            Self::Halves(_, receiver) => receiver.handle_eof(),
        }
    }

    /// Makes a call; returns its request id if it is answered.
    fn ask(&mut self, index: usize, call: &Call) -> Result<Option<u32>, Misuse> {
        let tail = pattern(index, Bytes::RequestTail, 0, call.copied_len);
        let left = call.tail_len - call.copied_len;
        let inline = (left > 0).then(|| pattern(index, Bytes::RequestTail, call.copied_len, left));
        let asked = match call.typed {
            true => with_op(call.op, Typed { form: self, call, tail, inline }).flatten(),
            false => None,
        };
        if let Some(asked) = asked {
            return asked;
        }
        let fixed = [call.fixed.as_slice(), tail].concat();
        let sent = match self {
            Self::Whole(client) => client.request_raw(call.op, &fixed, inline, call.loud)?,
            Self::Halves(sender, receiver) => {
                let sent = sender.request_raw(call.op, &fixed, inline, call.loud)?;
                sent.map_or(Ok(()), |sent| receiver.expect(sent))?;
                sent
            }
        };
        Ok(sent.map(|sent| sent.id()))
    }
}

struct Typed<'a> {
    form: &'a mut ClientForm,
    call: &'a Call,
    tail: Inline,
    inline: Option<Inline>,
}

impl ForOp for Typed<'_> {
    /// The result of a call; `None` when its bytes are not a request of the table.
    type Out = Option<Result<Option<u32>, Misuse>>;

    fn call<O: Op>(self) -> Self::Out {
        let request = O::take(&mut self.call.fixed.as_slice()).ok()?;
        let reply_mode = match self.call.loud {
            loud if loud == request.wants_reply() => ReplyMode::AsUsual,
            true => ReplyMode::Always,
            false => ReplyMode::Never,
        };
        let sent = match self.form {
            ClientForm::Whole(client) => client.request_with(&request, self.tail, self.inline, reply_mode),
            ClientForm::Halves(sender, receiver) => {
                let expect = |sent: Option<hipr_proto::Call>| {
                    sent.map_or(Ok(()), |sent| receiver.expect(sent))?;
                    Ok(sent)
                };
                sender.request_with(&request, self.tail, self.inline, reply_mode).and_then(expect)
            }
        };
        Some(sent.map(|sent| sent.map(|sent| sent.id())))
    }
}

/// A notification whose text is still arriving.
struct Hearing {
    call: usize,
    len: u64,
    intact: bool,
    left: u64,
}

/// A reply whose tail is still arriving.
struct Arriving {
    call: usize,
    learned: Learned,
    intact: bool,
    left: u64,
}

pub(super) struct ClientSide<'c> {
    script: &'c Script,
    form: ClientForm,
    outbox: Outbox<Inline>,
    input: Vec<u8>,
    open_max: usize,
    /// Index of the next call.
    next: usize,
    /// Request ids and script indices of the calls that have not been resolved.
    unresolved: VecDeque<(u32, usize)>,
    arriving: Option<Arriving>,
    hearing: Option<Hearing>,
    asked_bytes: u64,
    polled_bytes: u64,
    has_half_closed: bool,
    has_ended: bool,
}

impl<'c> ClientSide<'c> {
    pub(super) fn new(script: &'c Script, options: &Options) -> Self {
        let limits = Limits { open_max: options.client_open_max, ..Limits::default() };
        let mut client = Client::new(limits);
        if options.notify_percent > 0 {
            client.accept_notifications();
        }
        let form = if options.client_in_halves {
            let (sender, receiver) = client.into_halves();
            ClientForm::Halves(sender, receiver)
        } else {
            ClientForm::Whole(client)
        };
        Self {
            script,
            form,
            outbox: Outbox::new(),
            input: Vec::new(),
            open_max: options.client_open_max,
            next: 0,
            unresolved: VecDeque::new(),
            arriving: None,
            hearing: None,
            asked_bytes: 0,
            polled_bytes: 0,
            has_half_closed: false,
            has_ended: false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns whether all calls were made and all their bytes written.
    pub(super) fn has_said_all(&self) -> bool {
        self.next >= self.script.0.len() && self.asked_bytes == self.polled_bytes && self.outbox.is_empty()
    }

    /// Makes the next call, unless the program waits for a reply.
    pub(super) fn ask(&mut self, waits: bool, up: &mut Pipe, trace: &mut Trace) -> bool {
        let index = self.next;
        if self.has_ended || self.has_half_closed || (waits && !self.unresolved.is_empty()) {
            return false;
        }
        let Some(call) = self.script.0.get(index) else {
            self.form.flush();
            return false;
        };
        let waiting = self.form.waiting();
        let queued_bytes = (self.asked_bytes - self.polled_bytes) as usize;
        let is_full = waiting >= self.open_max && call.loud;
        if is_full && matches!(self.form, ClientForm::Halves(..)) {
            // Whoever has the halves on two threads looks first.
            return false;
        }
        match self.form.ask(index, call) {
            Ok(id) => {
                self.next += 1;
                self.asked_bytes += (Header::SIZE + call.fixed.len()) as u64 + call.tail_len;
                up.note_message_end(self.asked_bytes);
                self.unresolved.extend(id.map(|id| (id, index)));
                let waiting = self.form.waiting();
                let end_byte = self.asked_bytes;
                trace.events.push(Event::Asked { call: index, id, waiting, queued_bytes, end_byte });
                true
            }
            Err(why @ (Misuse::Unflushed { .. } | Misuse::TooManyCalls { .. })) => {
                trace.events.push(Event::Declined { call: index, why, waiting, queued_bytes });
                false
            }
            Err(why) => {
                self.next += 1;
                trace.events.push(Event::Refused { side: Side::Client, why });
                true
            }
        }
    }

    /// Writes queued bytes to the pipe.
    pub(super) fn write(&mut self, moves: &mut Moves<'_>, flushes_late: bool, up: &mut Pipe) -> bool {
        if self.has_ended || self.has_half_closed {
            return false;
        }
        if self.form.wants_flush() || (!flushes_late && moves.perhaps()) {
            let before = self.outbox.len_bytes();
            self.form.poll_transmit(&mut self.outbox);
            self.polled_bytes += (self.outbox.len_bytes() - before) as u64;
        }
        moves.write(&mut self.outbox, up, |_, _| {})
    }

    /// Reads bytes from the pipe.
    pub(super) fn read(
        &mut self,
        moves: &mut Moves<'_>,
        (up, down): (&mut Pipe, &mut Pipe),
        trace: &mut Trace,
    ) -> Found {
        if self.has_ended {
            return Found::Bytes(0);
        }
        let mut input = std::mem::take(&mut self.input);
        let found = moves.read(down, &mut input);
        match found {
            Found::Bytes(0) => {}
            Found::Bytes(_) => {
                if self.parse(&input, trace).is_err() {
                    self.probe(trace);
                    self.lose(up, down, trace);
                }
            }
            Found::End => {
                let end = self.form.handle_eof();
                trace.events.push(Event::ClientEnd(end));
                if end.is_err() {
                    self.probe(trace);
                }
                if end.is_ok() && self.has_half_closed {
                    self.has_ended = true;
                } else {
                    self.lose(up, down, trace);
                }
            }
            Found::Reset => self.lose(up, down, trace),
        }
        input.clear();
        self.input = input;
        found
    }

    fn parse(&mut self, mut input: &[u8], trace: &mut Trace) -> Result<(), Fatal> {
        loop {
            let answer = match self.form.handle_input(&mut input) {
                Ok(answer) => answer,
                Err(why) => {
                    trace.events.push(Event::ClientEnd(Err(why)));
                    return Err(why);
                }
            };
            match answer {
                Answer::NeedMore => {
                    if !input.is_empty() {
                        trace.events.push(Event::InputLeft { side: Side::Client, len: input.len() });
                    }
                    return Ok(());
                }
                Answer::Reply(reply) => {
                    let (call, event) = seen(&reply, &self.unresolved);
                    let Event::Reply { error, fixed, inline, .. } = event else { continue };
                    trace.events.push(event);
                    let Some(call) = call else { continue };
                    let learned = Learned { error, fixed_len: fixed.len as usize, inline_len: inline };
                    let intact = fixed.wrong_at.is_none();
                    self.arriving = Some(Arriving { call, learned, intact, left: inline });
                }
                Answer::Notification(heard) => {
                    let call = heard.read::<RequestFailed>().map_or(usize::MAX, |it| it.request as usize);
                    let (expected, _) = notification(call, heard.inline);
                    let intact = heard.read() == Some(expected);
                    let hearing = Hearing { call, len: heard.inline, intact, left: heard.inline };
                    self.hearing = Some(hearing);
                }
                Answer::Data { bytes, last } if self.hearing.is_some() => {
                    let Some(hearing) = &mut self.hearing else { continue };
                    let offset = hearing.len - hearing.left;
                    let expected = pattern(hearing.call, Bytes::Notification, offset, bytes.len() as u64);
                    hearing.left = hearing.left.saturating_sub(bytes.len() as u64);
                    hearing.intact &= expected == bytes && last == (hearing.left == 0);
                }
                Answer::Data { bytes, last } => {
                    let Some(arriving) = &mut self.arriving else {
                        let bytes = Pieces { len: bytes.len() as u64, wrong_at: Some(0) };
                        trace.events.push(Event::ReplyData { bytes, last });
                        continue;
                    };
                    let offset = arriving.learned.inline_len - arriving.left;
                    let call = arriving.call;
                    let bytes = Pieces::compare(bytes, offset, |offset, len| {
                        pattern(call, Bytes::ReplyTail, offset, len)
                    });
                    arriving.intact &= bytes.wrong_at.is_none();
                    arriving.left = arriving.left.saturating_sub(bytes.len);
                    trace.events.push(Event::ReplyData { bytes, last });
                }
            }
            if let Some(Hearing { call, len, intact, .. }) = self.hearing.take_if(|hearing| hearing.left == 0)
            {
                trace.events.push(Event::Heard { call, len, intact });
            }
            if let Some(Arriving { call, learned, intact, .. }) =
                self.arriving.take_if(|arriving| arriving.left == 0)
            {
                self.unresolved.retain(|(_, place)| *place != call);
                trace.events.push(Event::Resolved { call, learned: Some(learned), intact });
            }
        }
    }

    /// Checks after the end that further input always returns the same error.
    fn probe(&mut self, trace: &mut Trace) {
        for probe in PROBES {
            let event = match self.form.handle_input(&mut &**probe) {
                Err(why) => Event::ClientEnd(Err(why)),
                Ok(Answer::Reply(reply)) => seen(&reply, &self.unresolved).1,
                Ok(Answer::Data { bytes, last }) => {
                    Event::ReplyData { bytes: Pieces { len: bytes.len() as u64, wrong_at: None }, last }
                }
                Ok(Answer::NeedMore | Answer::Notification(_)) => Event::Revived { side: Side::Client },
            };
            trace.events.push(event);
        }
        trace.events.push(Event::ClientEnd(self.form.handle_eof()));
    }

    /// Closes the sending side after the last call.
    pub(super) fn half_close(&mut self, up: &mut Pipe) -> bool {
        up.close();
        !std::mem::replace(&mut self.has_half_closed, true)
    }

    /// Ends the connection for this side.
    pub(super) fn lose(&mut self, up: &mut Pipe, down: &mut Pipe, trace: &mut Trace) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        trace.events.push(Event::Lost(Side::Client));
        up.close();
        down.abandon();
        let lost = self.unresolved.drain(..);
        trace.events.extend(lost.map(|(_, call)| Event::Resolved { call, learned: None, intact: true }));
    }
}

/// Returns the trace's event for a reply, and the call that it answers.
fn seen(reply: &Reply<'_>, unresolved: &VecDeque<(u32, usize)>) -> (Option<usize>, Event) {
    let id = reply.call.id();
    let call = unresolved.iter().find(|(waiting, _)| *waiting == id).map(|(_, call)| *call);
    let fixed = Pieces::compare(reply.fixed, 0, |offset, len| match (reply.error, call) {
        (None, Some(call)) => pattern(call, Bytes::ReplyFixed, offset, len),
        _ => usize::try_from(len).ok().and_then(|len| ZEROS.get(..len)).unwrap_or(&[]),
    });
    let (op, error, inline) = (reply.call.op(), reply.error, reply.inline);
    (call, Event::Reply { id, op, error, fixed, inline })
}
