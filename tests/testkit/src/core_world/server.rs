//! The server's end of the core world, and the device that executes its requests.

use std::collections::VecDeque;

use hipr_proto::op::RequestFailed;
use hipr_proto::{
    Class, Fatal, HipError, Inline, Misuse, Outbox, Outcome, Receiver, Responder, Rx, Server, Ticket,
};

use super::client::Inline as Noise;
use super::pipe::{Found, Pipe};
use super::tap::Tap;
use super::{Moves, PROBES, notification};
use crate::options::{Hang, Options};
use crate::script::{Bytes, Call, Device, Script, When, pattern};
use crate::trace::{Event, Pieces, Side, Trace};

/// The server, whole or in halves.
enum ServerForm {
    Whole(Server<Noise>),
    Halves {
        receiver: Receiver,
        responder: Responder<Noise>,
        /// Number of completed requests that have not been reported to the receiver.
        completed: usize,
    },
}

impl ServerForm {
    fn open(&self) -> usize {
        match self {
            Self::Whole(server) => server.open(),
            Self::Halves { receiver, .. } => receiver.open(),
        }
    }

    fn admit(&self, ticket: &Ticket) -> Option<HipError> {
        match self {
            Self::Whole(server) => server.admit(ticket),
            Self::Halves { responder, .. } => responder.admit(ticket),
        }
    }

    fn handle_input<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Result<Rx<'s>, Fatal> {
        match self {
            Self::Whole(server) => server.handle_input(input),
            Self::Halves { receiver, .. } => receiver.handle_input(input),
        }
    }

    fn handle_eof(&mut self) -> Result<(), Fatal> {
        match self {
            Self::Whole(server) => server.handle_eof(),
            Self::Halves { receiver, .. } => receiver.handle_eof(),
        }
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome<Noise>) -> Result<(), Misuse> {
        match self {
            Self::Whole(server) => server.complete(ticket, outcome),
            Self::Halves { responder, completed, .. } => {
                responder.complete(ticket, outcome)?;
                *completed += 1;
                Ok(())
            }
        }
    }

    fn stream_left(&self) -> u64 {
        match self {
            Self::Whole(server) => server.stream_left(),
            Self::Halves { responder, .. } => responder.stream_left(),
        }
    }

    fn push_data(&mut self, bytes: Noise) -> Result<(), Misuse> {
        match self {
            Self::Whole(server) => server.push_data(bytes),
            Self::Halves { responder, .. } => responder.push_data(bytes),
        }
    }

    fn keep(&mut self, error: HipError) {
        match self {
            Self::Whole(server) => server.keep(error),
            Self::Halves { responder, .. } => responder.keep(error),
        }
    }

    fn notify(&mut self, notification: &RequestFailed, tail: &[u8]) -> Result<(), Misuse> {
        match self {
            Self::Whole(server) => server.notify(notification, tail),
            Self::Halves { responder, .. } => responder.notify(notification, tail),
        }
    }

    fn poll_transmit(&mut self, outbox: &mut Outbox<Noise>) -> bool {
        match self {
            Self::Whole(server) => server.poll_transmit(outbox),
            Self::Halves { responder, .. } => responder.poll_transmit(outbox),
        }
    }
}

/// State of the server's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incoming {
    Open,
    /// The pipe has ended, but bytes read before may be unused.
    Ending,
    Ended,
}

/// A request that is being executed.
#[derive(Debug, Clone, Copy)]
struct Doing {
    /// Time at which the device finishes; `None` if it never does.
    due_ms: Option<u64>,
}

/// A tail that is arriving.
#[derive(Debug, Clone, Copy)]
struct Arriving {
    index: usize,
    have: u64,
    left: u64,
}

/// A reply that is being streamed.
#[derive(Debug, Clone, Copy)]
struct Streaming {
    index: usize,
    sent: u64,
}

pub(super) struct ServerSide<'c> {
    script: &'c Script,
    hang: Option<Hang>,
    form: ServerForm,
    input: Vec<u8>,
    incoming: Incoming,
    /// Number of delivered requests.
    delivered: usize,
    arriving: Option<Arriving>,
    /// Script indices and tickets of the open requests.
    open: VecDeque<(usize, Ticket)>,
    doing: Option<Doing>,
    streaming: Option<Streaming>,
    death: Option<HipError>,
    outbox: Outbox<Noise>,
    tap: Tap,
    has_ended: bool,
}

impl<'c> ServerSide<'c> {
    pub(super) fn new(script: &'c Script, options: &Options) -> Self {
        let server = Server::new(options.limits);
        let form = if options.server_in_halves {
            let (receiver, responder) = server.into_halves();
            ServerForm::Halves { receiver, responder, completed: 0 }
        } else {
            ServerForm::Whole(server)
        };
        Self {
            script,
            hang: options.hang,
            form,
            input: Vec::new(),
            incoming: Incoming::Open,
            delivered: 0,
            arriving: None,
            open: VecDeque::new(),
            doing: None,
            streaming: None,
            death: None,
            outbox: Outbox::new(),
            tap: Tap::default(),
            has_ended: false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the event with the open requests at the end of the world.
    pub(super) fn at_rest(&self) -> Event {
        Event::Rest { unspent: self.open.len(), open: self.form.open() }
    }

    // ---- requests in -------------------------------------------------------------------------------------------------

    /// Reads bytes from the pipe.
    pub(super) fn read(&mut self, moves: &mut Moves<'_>, up: &mut Pipe, trace: &mut Trace) -> Found {
        // What is left over goes first: the receiver pauses while too many requests are open.
        if self.incoming == Incoming::Open && self.input.is_empty() {
            let found = moves.read(up, &mut self.input);
            match found {
                Found::Bytes(0) => {}
                Found::Bytes(_) => self.parse(trace),
                Found::End => self.incoming = Incoming::Ending,
                Found::Reset => return Found::Reset,
            }
            return found;
        }
        let before = (self.input.len(), self.incoming);
        if self.incoming != Incoming::Ended {
            self.parse(trace);
        }
        if self.incoming == Incoming::Ending && self.input.is_empty() {
            let end = self.form.handle_eof();
            trace.events.push(Event::ServerEnd(end));
            if end.is_err() {
                self.probe(trace);
            }
            self.incoming = Incoming::Ended;
        }
        Found::Bytes(usize::from(before != (self.input.len(), self.incoming)))
    }

    fn parse(&mut self, trace: &mut Trace) {
        let mut input = self.input.as_slice();
        loop {
            match self.form.handle_input(&mut input) {
                Ok(Rx::Request { ticket, op, fixed, tail }) => {
                    let index = self.delivered;
                    let call = self.script.0.get(index);
                    let expected = call.map_or(&[][..], |call| call.fixed.as_slice());
                    let fixed = Pieces {
                        len: fixed.len() as u64,
                        // A refused request may come without its fixed part.
                        wrong_at: (fixed != expected && ticket.refusal().is_none()).then_some(0),
                    };
                    self.delivered += 1;
                    self.arriving = (tail > 0).then_some(Arriving { index, have: 0, left: tail });
                    let (sequence, id) = (ticket.sequence(), ticket.id());
                    let (wants_reply, refusal) = (ticket.wants_reply(), ticket.refusal());
                    self.open.push_back((index, ticket));
                    let open = self.form.open();
                    let request =
                        Event::Request { sequence, id, op, wants_reply, refusal, fixed, tail, open };
                    trace.events.push(request);
                }
                Ok(Rx::Data { bytes, last }) => {
                    let Arriving { index, have, left } =
                        self.arriving.unwrap_or(Arriving { index: usize::MAX, have: 0, left: 0 });
                    let bytes = Pieces::compare(bytes, have, |offset, len| {
                        pattern(index, Bytes::RequestTail, offset, len)
                    });
                    let (have, left) = (have + bytes.len, left.saturating_sub(bytes.len));
                    self.arriving = (left > 0).then_some(Arriving { index, have, left });
                    trace.events.push(Event::RequestData { bytes, last });
                }
                Ok(Rx::NeedMore) => {
                    if !input.is_empty() {
                        trace.events.push(Event::InputLeft { side: Side::Server, len: input.len() });
                    }
                    self.input.clear();
                    return;
                }
                Ok(Rx::Paused) => {
                    let used = self.input.len() - input.len();
                    self.input.drain(..used);
                    return;
                }
                Err(why) => {
                    trace.events.push(Event::ServerEnd(Err(why)));
                    self.input.clear();
                    self.incoming = Incoming::Ended;
                    self.probe(trace);
                    return;
                }
            }
        }
    }

    /// Checks after the end that further input always returns the same error.
    fn probe(&mut self, trace: &mut Trace) {
        for probe in PROBES {
            let event = match self.form.handle_input(&mut &**probe) {
                Err(why) => Event::ServerEnd(Err(why)),
                Ok(Rx::Request { ticket, .. }) => {
                    self.open.push_back((usize::MAX, ticket));
                    Event::Revived { side: Side::Server }
                }
                Ok(_) => Event::Revived { side: Side::Server },
            };
            trace.events.push(event);
        }
        trace.events.push(Event::ServerEnd(self.form.handle_eof()));
    }

    /// Reports completed requests to the receiver.
    pub(super) fn retire(&mut self, moves: &mut Moves<'_>, trace: &mut Trace) -> bool {
        let ServerForm::Halves { receiver, completed, .. } = &mut self.form else { return false };
        if *completed == 0 {
            return false;
        }
        let n = moves.some_of(*completed);
        receiver.retire(n);
        *completed -= n;
        trace.events.push(Event::Retired { open: receiver.open() });
        true
    }

    // ---- the device --------------------------------------------------------------------------------------------------

    /// Returns whether the device hangs forever.
    pub(super) fn hangs(&self) -> bool {
        self.doing.is_some_and(|doing| doing.due_ms.is_none())
    }

    /// Returns the time at which the device finishes, if it is busy.
    pub(super) fn next_due_ms(&self) -> Option<u64> {
        self.doing.and_then(|doing| doing.due_ms)
    }

    /// Lets the device do one step.
    pub(super) fn work(&mut self, moves: &mut Moves<'_>, trace: &mut Trace) -> bool {
        if let Some(Streaming { index, sent }) = self.streaming {
            let left = self.form.stream_left();
            let n = moves.some_of(usize::try_from(left).unwrap_or(usize::MAX)) as u64;
            let bytes = pattern(index, Bytes::ReplyTail, sent, n);
            if let Err(why) = self.form.push_data(bytes) {
                trace.events.push(Event::Refused { side: Side::Server, why });
                self.streaming = None;
                return true;
            }
            // A reply that owes more than its call has gets no more.
            let more = self.form.stream_left() > 0 && !bytes.is_empty();
            self.streaming = more.then_some(Streaming { index, sent: sent + n });
            return true;
        }
        let Some((index, ticket)) = self.open.front() else { return false };
        let (index, sequence, wants_more) =
            (*index, ticket.sequence(), self.arriving.is_some_and(|arriving| arriving.index == *index));
        if wants_more {
            if self.incoming != Incoming::Ended {
                return false;
            }
            // Its end will never come.
            let outcome = Outcome::error(HipError::INVALID_VALUE);
            self.complete(outcome, trace);
            return true;
        }
        let call = self.script.0.get(index).filter(|call| call.op == ticket.op());
        let Some(Doing { due_ms }) = self.doing else {
            surface(&mut self.form, call, When::Before, trace);
            let Some((_, ticket)) = self.open.front() else { return false };
            if self.form.admit(ticket).is_some() {
                surface(&mut self.form, call, When::During, trace);
                // Any outcome will do; this one would be wrong in every respect.
                self.complete(Outcome::ok_raw(&[1]).with_inline(Inline::Stream(9)), trace);
                return true;
            }
            trace.events.push(Event::Executed { sequence });
            self.doing = Some(Doing { due_ms: self.due_ms(call, moves.now_ms) });
            return true;
        };
        if due_ms.is_none_or(|due_ms| due_ms > moves.now_ms) {
            return false;
        }
        self.doing = None;
        surface(&mut self.form, call, When::During, trace);
        let outcome = self.outcome(index, call);
        self.complete(outcome, trace);
        true
    }

    fn due_ms(&self, call: Option<&Call>, now_ms: u64) -> Option<u64> {
        let Some(call) = call.filter(|call| !self.is_dead_for(call)) else { return Some(now_ms) };
        match (call.device, self.hang) {
            (Device::Hang(_), Some(Hang::ForEver)) => None,
            (Device::Hang(_), Some(Hang::TimeOutMs(time_out_ms))) => Some(now_ms + time_out_ms),
            _ => Some(now_ms + call.slow_ms),
        }
    }

    fn is_dead_for(&self, call: &Call) -> bool {
        self.death.is_some() && call.class() != Class::Exempt
    }

    fn outcome(&mut self, index: usize, call: Option<&Call>) -> Outcome<Noise> {
        let size =
            self.open.front().and_then(|(_, ticket)| ticket.op().info()).map_or(0, |info| info.reply.size);
        let ok = Outcome::ok_raw(pattern(index, Bytes::ReplyFixed, 0, size as u64));
        let Some(call) = call else { return ok };
        if self.is_dead_for(call) {
            return Outcome::error(self.death.unwrap_or(HipError::UNKNOWN));
        }
        match call.device {
            Device::Error(error) | Device::Hang(error) => Outcome::error(error),
            Device::Death(error) => Outcome::error(*self.death.insert(error)),
            Device::Ok if call.reply_len == 0 => ok,
            Device::Ok if call.streamed => ok.with_inline(Inline::Stream(call.reply_len)),
            Device::Ok => ok.with_inline(Inline::Whole(pattern(index, Bytes::ReplyTail, 0, call.reply_len))),
        }
    }

    fn complete(&mut self, outcome: Outcome<Noise>, trace: &mut Trace) {
        let Some((index, ticket)) = self.open.pop_front() else { return };
        let sequence = ticket.sequence();
        if let Err(why) = self.form.complete(ticket, outcome) {
            trace.events.push(Event::Refused { side: Side::Server, why });
            return;
        }
        let stream_left = self.form.stream_left();
        self.streaming = (stream_left > 0).then_some(Streaming { index, sent: 0 });
        trace.events.push(Event::Completed { sequence, stream_left });
        let notifies = self.script.0.get(index).and_then(|call| call.notifies);
        if let Some(len) = notifies {
            let (notification, text) = notification(index, len);
            if let Err(why) = self.form.notify(&notification, text) {
                trace.events.push(Event::Refused { side: Side::Server, why });
            }
        }
        if let ServerForm::Whole(server) = &self.form {
            trace.events.push(Event::Retired { open: server.open() });
        }
    }

    // ---- replies out -------------------------------------------------------------------------------------------------

    /// Writes queued bytes to the pipe; closes it after the last ones.
    pub(super) fn write(&mut self, moves: &mut Moves<'_>, down: &mut Pipe, trace: &mut Trace) -> bool {
        if self.has_ended {
            return false;
        }
        self.form.poll_transmit(&mut self.outbox);
        let tap = &mut self.tap;
        let moved = moves.write(&mut self.outbox, down, |down, bytes| tap.pass(bytes, down, trace));
        let is_done = self.incoming == Incoming::Ended && self.open.is_empty() && self.streaming.is_none();
        if is_done && self.outbox.is_empty() && !self.form.poll_transmit(&mut self.outbox) {
            down.close();
            self.has_ended = true;
            return true;
        }
        moved
    }

    /// Ends the connection: open requests fail, and no reply is sent.
    pub(super) fn lose(&mut self, up: &mut Pipe, down: &mut Pipe, trace: &mut Trace) {
        if self.has_ended {
            return;
        }
        self.has_ended = true;
        trace.events.push(Event::Lost(Side::Server));
        self.incoming = Incoming::Ended;
        self.input.clear();
        up.abandon();
        down.close();
        let mut moves = Moves::all();
        while self.streaming.is_some() {
            self.work(&mut moves, trace);
        }
        self.doing = None;
        while !self.open.is_empty() {
            self.complete(Outcome::error(HipError::UNKNOWN), trace);
            self.streaming = None;
        }
        self.retire(&mut moves, trace);
    }
}

fn surface(form: &mut ServerForm, call: Option<&Call>, at: When, trace: &mut Trace) {
    if let Some((when, error)) = call.and_then(|call| call.surfaces)
        && when == at
    {
        form.keep(error);
        trace.events.push(Event::Surfaced { error });
    }
}
