//! A session: a client's unfinished requests, the work that it waits for, and the resources that it owns.
//!
//! Requests take effect in the order in which they came. A session that waits (for work of the device, or for the peer to
//! take what it was sent) stands still with its queue, and gives the thread back for the others; see
//! [`Session::turn`].

mod cache;
mod capability;
mod changes;
mod clock;
mod counted;
mod failure;
mod frames;
mod from_peer;
mod loading;
mod look;
mod packed;
mod printed;
mod recall;
mod replay;
mod state;
mod told;
mod traced;
mod wait;
mod watched;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use hipr_device::Context;
use hipr_io::{Batch, Body, ConnId, Item, Notice, Peer, Span};
use hipr_proto::{HipError, HipResult, Inline, Misuse, Opcode, Outbox, Outcome, Responder, Tail, Ticket};

use crate::SessionLimits;
use crate::call::{Call, Continuation};
use crate::env::Env;
use crate::owned::{Owned, Unfit};
use crate::stats::{DeviceCounts, Failures, Tally};

use capability::Lender;
pub(crate) use capability::Lending;
use clock::TurnClock;
use failure::FailedWork;
use state::{Arriving, Collected, Replay, State, Wait, Write};
use traced::Times;

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There is more to do in the next turn.
    More,
    /// There is nothing to do until an event or a wake-up.
    Blocked,
    /// It is over; close the connection when everything is sent.
    Over,
}

/// The session of one client.
pub(crate) struct Session {
    conn: ConnId,
    responder: Responder<Body>,
    owned: Owned,
    queue: VecDeque<Batch>,
    state: State,
    /// The fixed part of a request that is not done at once, the small tail of one that arrived in pieces, and a reply's fixed part; kept to
    /// reuse the memory.
    fixed: Vec<u8>,
    tail: Vec<u8>,
    reply: Vec<u8>,
    completed: usize,
    returned: Vec<Batch>,
    tally: Tally,
    /// Number of requests that have begun.
    requests: u64,
    /// Bytes transferred to or from the device in this turn.
    turn_bytes: usize,
    /// Whether the last request may have taken longer than others.
    may_be_slow: bool,
    handed_bytes: u64,
    sent_bytes: u64,
    draining: Draining,
    /// How many bytes have to be sent in all until the client has what kernels printed on standard error; `None` where it has all of that, and the
    /// device has been told.
    errors_end_bytes: Option<u64>,
    ended: bool,
    /// Number of the last request whose fixed part is in `fixed`.
    fixed_of: Option<u32>,
    /// The work whose error the request is about to be completed with.
    failed_work: Option<FailedWork>,
    /// Whether text of kernels was dropped, because the client cannot be told.
    has_dropped_text: bool,
    /// A bug of the worker, after which replies could be wrong.
    broken: Option<Misuse>,
    /// Where requests that fail are counted.
    failures: Arc<Failures>,
    /// What the client is told for its trace, if it wants to be.
    times: Option<Box<Times>>,
    /// Whose memory the current request reads.
    lender: Lender,
    /// The context of another session, as long as the turn lasts.
    borrowed: Option<Box<dyn Context>>,
    /// Whether the client was let in by a capability, and may do nothing else but read what that is for.
    is_by_capability: bool,
}

/// Whether the session waits for its peer to receive replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draining {
    No,
    /// The session is stalled and asks the loop for an event when at most this many bytes are unsent.
    Ask {
        left_bytes: usize,
    },
    /// The loop has been asked.
    Asked,
}

impl Session {
    /// Maximum number of items handled in one turn.
    const TURN_ITEMS: usize = 4096;

    /// Creates a session without requests, of a client at `peer`; counts those that fail.
    pub(crate) fn new(conn: ConnId, peer: Peer, failures: Arc<Failures>) -> Self {
        Self {
            conn,
            responder: Responder::new(),
            owned: Owned::new(peer.is_local()),
            queue: VecDeque::new(),
            state: State::Idle,
            fixed: Vec::new(),
            tail: Vec::new(),
            reply: Vec::new(),
            completed: 0,
            returned: Vec::new(),
            tally: Tally::default(),
            requests: 0,
            turn_bytes: 0,
            may_be_slow: false,
            handed_bytes: 0,
            sent_bytes: 0,
            draining: Draining::No,
            errors_end_bytes: None,
            ended: false,
            fixed_of: None,
            failed_work: None,
            has_dropped_text: false,
            broken: None,
            failures,
            times: None,
            lender: Lender::Own,
            borrowed: None,
            is_by_capability: false,
        }
    }

    /// Lets the client do nothing else but read by a capability.
    pub(crate) fn restrict_to_capability(&mut self) {
        self.is_by_capability = true;
    }

    /// Queues a batch received from the client.
    pub(crate) fn handle_batch(&mut self, batch: Batch) {
        if let Some(times) = &mut self.times {
            times.received();
        }
        self.queue.push_back(batch);
        if self.owned.recall.open.is_some() {
            self.take_early();
        }
    }

    /// Handles that the peer has received `sent_bytes` in all.
    pub(crate) fn handle_drained(&mut self, sent_bytes: u64) {
        self.sent_bytes = self.sent_bytes.max(sent_bytes);
        self.draining = Draining::No;
    }

    /// Notes that the client has ended its sending side.
    pub(crate) fn handle_end(&mut self) {
        self.ended = true;
    }

    /// Takes what the session owns, as far as it may be released on any thread, if that takes long.
    pub(crate) fn take_long(&mut self) -> Option<Owned> {
        let owned = &mut self.owned;
        if owned.loads_apart && owned.is_long() {
            return Some(mem::take(owned));
        }
        let graphs = owned.graphs.are_long().then(|| mem::take(&mut owned.graphs));
        graphs.map(Owned::with_graphs)
    }

    /// Returns the bytes that count against what all sessions may have together.
    pub(crate) fn weight_bytes(&self) -> u64 {
        let times_bytes = self.times.as_ref().map_or(0, |times| times.weight_bytes());
        self.owned.weight_bytes().saturating_add(self.unsent_bytes()).saturating_add(times_bytes)
    }

    /// Returns the session's limits where all sessions may have `room_bytes` besides what the others have, and perhaps more of it.
    pub(crate) fn limits_within(
        &self,
        room_bytes: u64,
        limits: &SessionLimits,
        has_more: bool,
    ) -> SessionLimits {
        self.owned.limits_within(room_bytes, self.unsent_bytes(), limits, has_more)
    }

    /// Returns how many bytes more the session needs soon.
    pub(crate) fn ahead_bytes(&self, limits: &SessionLimits) -> u64 {
        self.owned.ahead_bytes(limits).saturating_add(self.unsent_bytes())
    }

    /// Returns the bytes of memory that the session has of those that it may have.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.owned.memory_bytes()
    }

    /// Returns where the device counts the session's time, and its work that is not finished; `None` before the session has a context.
    pub(crate) fn device(&self) -> Option<DeviceCounts> {
        let load = self.owned.context_ref().ok()?.load();
        Some(DeviceCounts { time_ns: self.owned.device_ns.clone(), load })
    }

    /// Returns how many requests have begun.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns how many bytes were handed to the loop, to be sent.
    pub(crate) fn handed_bytes(&self) -> u64 {
        self.handed_bytes
    }

    /// Returns the time that the session's work has had on the device, in nanoseconds, if the device knows.
    pub(crate) fn device_ns(&self) -> Option<u64> {
        self.owned.device_ns.as_ref().map(|counted| counted.load(Relaxed))
    }

    /// Returns the error of an unanswered request that no reply has reported.
    pub(crate) fn untold(&self) -> Option<HipError> {
        self.responder.kept()
    }

    /// Works on the queue until it is empty, something has to be waited for, or the turn is over.
    pub(crate) fn turn(&mut self, env: &Env<'_>) -> Turn {
        let turn = self.work(env);
        if self.is_told() {
            self.check_told();
        }
        self.check_printed();
        self.check_watched();
        self.tally.count(env.requests);
        self.count_lease(env.leases);
        turn
    }

    fn work(&mut self, env: &Env<'_>) -> Turn {
        self.turn_bytes = 0;
        let mut clock = TurnClock::default();
        for _ in 0..Self::TURN_ITEMS {
            if self.turn_bytes >= env.turn_max_bytes || clock.is_over(mem::take(&mut self.may_be_slow)) {
                return Turn::More;
            }
            if self.lacks_context() {
                return Turn::More;
            }
            if let Some(misuse) = self.broken {
                tracing::error!(conn = %self.conn, %misuse, "closing the connection after a bug of the worker");
                return Turn::Over;
            }
            let window_bytes = self.window_bytes(env);
            if self.unsent_bytes() >= window_bytes as u64 {
                if self.draining == Draining::No {
                    self.draining = Draining::Ask { left_bytes: window_bytes / 2 };
                }
                return Turn::Blocked;
            }
            match self.step(env) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Turn::Over,
                Poll::Pending => return Turn::Blocked,
            }
        }
        Turn::More
    }

    /// Returns the notice for the loop after a turn; `None` if there is nothing to say.
    pub(crate) fn notice(&mut self, close: bool) -> Option<Notice> {
        // The bytes that a device did not take yet are still those of the batch at the front.
        let is_held = matches!(self.state, State::Held { .. });
        if !is_held && self.queue.front().is_some_and(Batch::is_empty) {
            self.give_back();
        }
        let mut outbox = Outbox::new();
        if self.responder.poll_transmit(&mut outbox) {
            self.handed_bytes += outbox.len_bytes() as u64;
        }
        let wants_drain = match self.draining {
            Draining::Ask { left_bytes } => Some(left_bytes),
            Draining::No | Draining::Asked => None,
        };
        if wants_drain.is_some() {
            self.draining = Draining::Asked;
        }
        let nothing = outbox.is_empty()
            && self.completed == 0
            && self.returned.is_empty()
            && wants_drain.is_none()
            && !close;
        (!nothing).then(|| Notice {
            descriptor: self.owned.passing.take(),
            outbox: (!outbox.is_empty()).then_some(outbox),
            completed: mem::take(&mut self.completed),
            returned: mem::take(&mut self.returned),
            wants_drain,
            close,
            ..Notice::new(self.conn)
        })
    }

    /// Returns the bytes of replies that the peer has not received, as far as it is known here.
    fn unsent_bytes(&self) -> u64 {
        self.handed_bytes.saturating_sub(self.sent_bytes) + self.responder.queued_bytes() as u64
    }

    /// Returns the number of unsent bytes at which the session stops: what is read from device memory should still be in
    /// the cache when it is sent.
    fn window_bytes(&self, env: &Env<'_>) -> usize {
        match self.state {
            State::Read { .. } => env.limits.read_ahead_bytes.min(env.limits.unsent_max_bytes),
            _ => env.limits.unsent_max_bytes,
        }
    }

    // ---- steps -------------------------------------------------------------------------------------------------------

    /// Does one step; `Ready(false)` means that the session has ended.
    fn step(&mut self, env: &Env<'_>) -> Poll<bool> {
        // Most steps begin here: without moving the state out and in.
        if matches!(self.state, State::Idle) {
            return self.next_request(env);
        }
        match mem::replace(&mut self.state, State::Idle) {
            State::Wait { ticket, wait } => match self.poll_wait(env, &wait) {
                Poll::Pending => {
                    self.state = State::Wait { ticket, wait };
                    return Poll::Pending;
                }
                Poll::Ready(result) => self.finish_wait(env, ticket, wait, result),
            },
            State::Replay(replay) => return self.replay(env, replay).map(|()| true),
            State::Lent(lent) => return self.poll_lent(env, lent),
            State::Loading(loading) => return self.poll_loading(env, loading),
            State::Read { src, stream, offset } => {
                return self.read_chunk(env, src, stream, offset).map(|()| true);
            }
            State::Short(retry) => return self.try_again(env, retry).map_or(Poll::Pending, Poll::Ready),
            State::Look { ticket, look } => return self.look(env, ticket, look).map(|()| true),
            State::Tell(telling) => self.tell_more(env, telling),
            State::PackChanges { ticket, packing } => self.pack_changes(env, ticket, packing),
            State::Have { ticket, asked } => return self.poll_have(ticket, asked),
            State::Unpack { write, unpacking } => return self.unpack(env, write, unpacking).map(|()| true),
            State::Pack { ticket, packing } => return self.pack(env, ticket, packing).map(|()| true),
            State::SendPacked(packed) => self.send_packed(env, packed),
            State::CapabilityCopy { write, from } => {
                return self.copy_capability(env, write, from).map(|()| true);
            }
            State::CopyKept { write, chunk } => return self.copy_kept(env, write, chunk).map(|()| true),
            State::Write { write, ready: false } => {
                let stream = write.stream;
                let ready = match self.owned.context() {
                    Ok(context) => context.poll_ready(stream),
                    Err(_) => Poll::Ready(()),
                };
                self.state = State::Write { write, ready: ready.is_ready() };
                if ready.is_pending() {
                    return Poll::Pending;
                }
                self.owned.unstage(Some(stream));
            }
            State::Held { write, span, from, last } => {
                return self.write_bytes(env, write, span, from, last).map(|()| true);
            }
            State::Write { write, ready: true } => match self.next_item() {
                Some(Item::Data { span, last }) => {
                    return self.write_bytes(env, write, span, 0, last).map(|()| true);
                }
                Some(Item::Request { .. }) => return Poll::Ready(false),
                None => return self.starved(State::Write { write, ready: true }),
            },
            state => match self.next_item() {
                Some(Item::Data { span, last }) => {
                    let Some(batch) = self.queue.pop_front() else { return Poll::Ready(true) };
                    self.handle_data(env, state, batch.bytes(span), last);
                    self.queue.push_front(batch);
                }
                // The next request although the tail is not over: the loop does not do that.
                Some(Item::Request { .. }) => return Poll::Ready(false),
                None => return self.starved(state),
            },
        }
        Poll::Ready(true)
    }

    /// Starts the next request, if there is one.
    fn next_request(&mut self, env: &Env<'_>) -> Poll<bool> {
        if self.owned.poll_room(env.limits).is_pending() && self.has_items() {
            return Poll::Pending;
        }
        match self.next_item() {
            Some(Item::Request { ticket, fixed, tail, follows }) => {
                self.tally.add(ticket.op(), ticket.wants_reply(), env.requests);
                self.requests += 1;
                if self.times.is_some() {
                    self.note_begin(&ticket);
                }
                Poll::Ready(self.begin(env, ticket, fixed, tail, follows))
            }
            // Data without a request: of one that was answered before its tail was over. There is none such.
            Some(Item::Data { .. }) => Poll::Ready(true),
            None => self.starved(State::Idle),
        }
    }

    /// Returns whether there is a next item.
    fn has_items(&self) -> bool {
        self.queue.iter().any(|batch| !batch.is_empty())
    }

    /// Returns the next item; its bytes are those of the first batch until the next call.
    fn next_item(&mut self) -> Option<Item> {
        loop {
            if let Some(item) = self.queue.front_mut()?.pop() {
                return Some(item);
            }
            self.give_back();
        }
    }

    /// Gives the first batch back to the loop.
    fn give_back(&mut self) {
        self.returned.extend(self.queue.pop_front());
        if let Some(times) = &mut self.times {
            times.given_back();
        }
    }

    /// Waits for more input, or ends the session if there will be none.
    fn starved(&mut self, state: State) -> Poll<bool> {
        if self.ended {
            return Poll::Ready(false);
        }
        self.state = state;
        Poll::Pending
    }

    /// Starts a request with `follows` bytes of its tail to come; returns false if the session has ended.
    fn begin(&mut self, env: &Env<'_>, ticket: Ticket, fixed: Span, tail: Span, follows: u64) -> bool {
        self.lender = Lender::Own;
        let unfit = if self.owned.names.is_idle() { None } else { self.begin_named(ticket.op()) };
        let unfit = if self.may_ask(ticket.op()) { unfit } else { Some(HipError::NOT_SUPPORTED) };
        if let Some(error) = self.responder.admit(&ticket).or(unfit) {
            self.fail(ticket, error, follows > 0);
            return true;
        }
        self.owned.launches.set_request(ticket.id(), ticket.op());
        self.owned.recall.begin();
        let Some(batch) = self.queue.front() else { return false };
        let (op, fixed, tail) = (ticket.op(), batch.bytes(fixed), batch.bytes(tail));
        self.may_be_slow = !clock::is_quick(op);
        if follows > 0 && op.info().is_some_and(|info| info.request.tail == Tail::Small) {
            copy_into(&mut self.fixed, fixed);
            self.fixed_of = Some(ticket.id());
            self.tail.clear();
            self.state = State::Small { ticket };
            return true;
        }
        let mut call = Call {
            owned: &mut self.owned,
            reply: &mut self.reply,
            collected: None,
            limits: env.limits,
            more: env.more,
            capabilities: env.peers.map(|peers| &*peers.capabilities),
            conn: self.conn,
        };
        let continuation = call.carry_out(env, op, fixed, tail);
        // What most requests come to, before the value is moved once more.
        if matches!(continuation, Ok(Continuation::Reply)) {
            self.reply(ticket);
            return true;
        }
        // To say what it has asked for if it fails, and to go on when the rest of it is there.
        copy_into(&mut self.fixed, fixed);
        self.fixed_of = Some(ticket.id());
        // What is not whole yet cannot be tried again.
        if follows == 0 && matches!(continuation, Err(HipError::OUT_OF_MEMORY)) {
            let (fixed, tail) = (fixed.to_vec(), tail.to_vec());
            if self.falls_short(env, op, &continuation) {
                self.wait_for_memory(ticket, fixed, tail, None);
                return true;
            }
        }
        self.go_on(env, ticket, continuation, follows)
    }

    /// Gives the name of the `NAME` before it to what the next request makes; returns the error of a request that cannot have it.
    #[inline(never)]
    fn begin_named(&mut self, op: Opcode) -> Option<HipError> {
        match self.owned.names.begin(op) {
            Ok(()) => None,
            Err(Unfit::OfRequest(error)) => Some(error),
            Err(Unfit::OfName(error)) => {
                self.responder.keep(error);
                None
            }
        }
    }

    /// Executes the request whose fixed part is in `self.fixed`.
    fn call(
        &mut self,
        env: &Env<'_>,
        op: Opcode,
        collected: Option<Vec<u8>>,
        tail: &[u8],
    ) -> HipResult<Continuation> {
        let (owned, reply) = (&mut self.owned, &mut self.reply);
        let (limits, more, capabilities) =
            (env.limits, env.more, env.peers.map(|peers| &*peers.capabilities));
        let mut call = Call { owned, reply, collected, limits, more, capabilities, conn: self.conn };
        call.carry_out(env, op, &self.fixed, tail)
    }

    /// Continues a request after its operation's function has returned `continuation`; `tail` bytes of the tail are still to arrive.
    fn go_on(
        &mut self,
        env: &Env<'_>,
        ticket: Ticket,
        continuation: HipResult<Continuation>,
        tail: u64,
    ) -> bool {
        let continuation = match continuation {
            Ok(continuation) => continuation,
            Err(error) => {
                self.fail(ticket, error, tail > 0);
                return true;
            }
        };
        self.state = match continuation {
            Continuation::Write { dst, .. } if tail == 0 || dst.len_bytes() != Some(tail) => {
                let error = (dst.len_bytes() != Some(tail)).then_some(HipError::INVALID_VALUE);
                match error {
                    Some(error) => self.fail(ticket, error, tail > 0),
                    None => self.complete(ticket, Outcome::ok(&())),
                }
                return true;
            }
            Continuation::Write { dst, stream, waits, what } => {
                let what = Arriving::new(env, what, tail);
                let write = Write { ticket, dst, stream, offset: 0, waits, what };
                return self.begin_write(env, write, tail);
            }
            Continuation::Unpack(unpack) => {
                self.begin_unpack(env, ticket, *unpack);
                return true;
            }
            Continuation::CopyKept { dst, stream, waits, chunk } => {
                let write = Write { ticket, dst, stream, offset: 0, waits, what: Arriving::Written };
                State::CopyKept { write, chunk }
            }
            Continuation::Have(names) => {
                self.have(env, ticket, names);
                return true;
            }
            Continuation::Collect if tail > 0 => {
                let is_short = ticket.op() == Opcode::PUT_PACKED;
                let collect = if is_short { Collected::short } else { Collected::new };
                State::Collect { ticket, collected: collect(env.budget) }
            }
            Continuation::Collect => {
                let continuation = self.call(env, ticket.op(), Some(Vec::new()), &[]);
                return match continuation {
                    Ok(Continuation::Collect) => false,
                    continuation => self.go_on(env, ticket, continuation, 0),
                };
            }
            // The layouts of all others have no bulk tail.
            Continuation::Copied(stream) => {
                match self.owned.context().and_then(|context| context.order_all_behind(stream)) {
                    Ok(()) => State::Wait { ticket, wait: Wait::Written(stream) },
                    Err(error) => {
                        self.fail(ticket, error, false);
                        return true;
                    }
                }
            }
            Continuation::Reply => {
                self.reply(ticket);
                return true;
            }
            Continuation::Variables(told, list) => {
                self.broken = self.broken.or(self.responder.notify(&told, &list).err());
                self.complete(ticket, Outcome::ok(&()));
                return true;
            }
            Continuation::List(tail) => {
                let outcome = Outcome::ok_raw(&self.reply).with_inline(Inline::Whole(tail.into()));
                self.complete(ticket, outcome);
                return true;
            }
            Continuation::Wait(what) => State::Wait { ticket, wait: Wait::Sync(what) },
            Continuation::Free(ptr) => State::Wait { ticket, wait: Wait::Free(ptr) },
            Continuation::Remap(remap) => State::Wait { ticket, wait: Wait::Remap(remap) },
            Continuation::Reset => State::Wait { ticket, wait: Wait::Reset },
            Continuation::Read { src, stream, packs } => {
                State::Wait { ticket, wait: Wait::Read { src, stream, packs } }
            }
            Continuation::Changes { base, src, stream, packs } => {
                State::Wait { ticket, wait: Wait::Changes { base, src, stream, packs } }
            }
            Continuation::CapabilityRead { what, offset, len_bytes } => {
                self.begin_capability(ticket, what, offset, len_bytes);
                return true;
            }
            Continuation::CapabilityCopy { dst, stream, from } => {
                let what = Arriving::Written;
                self.begin_copy(env, Write { ticket, dst, stream, offset: 0, waits: true, what }, *from);
                return true;
            }
            Continuation::Replay { exec, stream, stage } => {
                State::Replay(Replay { ticket, exec, stream, stage, next: 0 })
            }
            Continuation::Load(load) => {
                self.load(env, ticket, *load);
                return true;
            }
            Continuation::Lend(work) => {
                self.lend(env, ticket, work);
                return true;
            }
            Continuation::Shutdown => {
                self.tell_times();
                self.times = None;
                self.owned = Owned::default();
                self.complete(ticket, Outcome::ok(&()));
                return false;
            }
        };
        true
    }

    /// Starts a copy to the device: its bytes are written at once if the stream is idle, collected and enqueued if they are
    /// few, else written when the stream is idle.
    fn begin_write(&mut self, env: &Env<'_>, write: Write, tail: u64) -> bool {
        let stream = write.stream;
        let ready = match self.owned.context() {
            Ok(context) => context.poll_ready(stream).is_ready(),
            Err(error) => {
                self.fail(write.ticket, error, true);
                return true;
            }
        };
        if ready {
            self.owned.unstage(Some(stream));
        }
        let limits = env.limits;
        let room =
            limits.staged_max_bytes.saturating_sub(self.owned.staged_bytes()).min(limits.stage_max_bytes);
        self.state = match usize::try_from(tail) {
            // A chunk for the cache arrives as a whole.
            Ok(len) if !ready && len <= room && !matches!(write.what, Arriving::Kept(_)) => {
                State::Stage { write, bytes: Vec::with_capacity(len) }
            }
            _ => State::Write { write, ready },
        };
        true
    }

    /// Writes the bytes of `span`, in the first batch, from `from` on.
    fn write_bytes(
        &mut self,
        env: &Env<'_>,
        mut write: Write,
        span: Span,
        mut from: usize,
        last: bool,
    ) -> Poll<()> {
        let bytes = self.queue.front().map_or(&[][..], |batch| batch.bytes(span));
        while let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) {
            let Write { dst, offset, stream, .. } = write;
            let taken = match self.owned.context() {
                Ok(context) => context.poll_write(&dst, offset, rest, stream),
                Err(error) => Poll::Ready(Err(error)),
            };
            match taken {
                Poll::Ready(Ok(len)) => {
                    let taken = rest.get(..len).unwrap_or_default();
                    match &mut write.what {
                        Arriving::Written => {}
                        Arriving::Known => {
                            self.owned.learn(dst.ptr.saturating_add(offset), taken, env.limits);
                        }
                        Arriving::Kept(keeping) => keeping.push(taken),
                    }
                    from += len;
                    write.offset += len as u64;
                    self.turn_bytes += len;
                }
                Poll::Ready(Err(error)) => {
                    self.fail(write.ticket, error, !last);
                    return Poll::Ready(());
                }
                Poll::Pending => {
                    self.state = State::Held { write, span, from, last };
                    return Poll::Pending;
                }
            }
        }
        if !last {
            self.state = State::Write { write, ready: true };
            return Poll::Ready(());
        }
        self.arrived(env, write);
        Poll::Ready(())
    }

    /// Ends a copy whose last bytes the device has taken.
    fn arrived(&mut self, env: &Env<'_>, mut write: Write) {
        if let Arriving::Kept(keeping) = mem::replace(&mut write.what, Arriving::Written)
            && let Some(cache) = env.cache
        {
            self.owned.tenant.keep(cache, *keeping);
        }
        self.written(write);
    }

    /// Handles bytes of a tail.
    fn handle_data(&mut self, env: &Env<'_>, state: State, bytes: &[u8], last: bool) {
        match state {
            State::Small { ticket } => {
                self.tail.extend_from_slice(bytes);
                if !last {
                    self.state = State::Small { ticket };
                    return;
                }
                let tail = mem::take(&mut self.tail);
                let continuation = self.call(env, ticket.op(), None, &tail);
                if self.falls_short(env, ticket.op(), &continuation) {
                    return self.wait_for_memory(ticket, self.fixed.clone(), tail, None);
                }
                self.tail = tail;
                self.tail.shrink_to(env.limits.stage_max_bytes);
                self.go_on(env, ticket, continuation, 0);
            }
            State::Collect { ticket, mut collected } => {
                if let Err((limit, max)) = collected.push(bytes, env.limits) {
                    let error = self.owned.refuse(self.conn, limit, max as u64);
                    return self.fail(ticket, error, !last);
                }
                if !last {
                    self.state = State::Collect { ticket, collected };
                    return;
                }
                let (collected, mut counted) = collected.into_bytes();
                if let Err((limit, max)) = packed::count_beside(&mut counted, env, ticket.op(), &self.fixed) {
                    let error = self.owned.refuse(self.conn, limit, max as u64);
                    return self.fail(ticket, error, false);
                }
                let again = self.may_fall_short(env, collected.len()).then(|| collected.clone());
                let mut continuation = self.call(env, ticket.op(), Some(collected), &[]);
                if let Ok(Continuation::Load(load)) = &mut continuation {
                    load.again = again;
                    self.go_on(env, ticket, continuation, 0);
                    return self.count_load(counted);
                }
                if again.is_some() && self.falls_short(env, ticket.op(), &continuation) {
                    return self.wait_for_memory(ticket, self.fixed.clone(), Vec::new(), again);
                }
                match continuation {
                    Ok(Continuation::Collect) => self.fail(ticket, HipError::INVALID_VALUE, false),
                    Ok(Continuation::Unpack(_)) => {
                        self.go_on(env, ticket, continuation, 0);
                        self.count_unpacking(counted);
                    }
                    continuation => drop(self.go_on(env, ticket, continuation, 0)),
                }
            }
            State::Stage { write, bytes: mut staged } => {
                staged.extend_from_slice(bytes);
                if !last {
                    self.state = State::Stage { write, bytes: staged };
                    return;
                }
                let Write { ticket, dst, stream, what, waits, .. } = write;
                let len = staged.len();
                if matches!(what, Arriving::Known) {
                    self.owned.learn(dst.ptr, &staged, env.limits);
                }
                let result = self.owned.context().and_then(|context| {
                    context.enqueue_write(dst, staged.into_boxed_slice(), stream)?;
                    if waits { context.order_all_behind(stream) } else { Ok(()) }
                });
                if result.is_ok() {
                    self.owned.stage(stream, len);
                }
                self.complete(ticket, result.into());
            }
            State::Skip { ticket, error } if last => self.complete(ticket, Outcome::error(error)),
            // All others do not wait for data, or take it themselves.
            state => self.state = state,
        }
    }

    // ---- ends --------------------------------------------------------------------------------------------------------

    /// Fails a request; the rest of its tail is skipped.
    fn fail(&mut self, ticket: Ticket, error: HipError, has_tail: bool) {
        if has_tail {
            self.state = State::Skip { ticket, error };
        } else {
            self.complete(ticket, Outcome::error(error));
        }
    }

    /// Completes a request successfully with the fixed part in `self.reply`.
    fn reply(&mut self, ticket: Ticket) {
        self.completed += 1;
        if self.is_told() {
            self.check_told_before(ticket.op(), false, ticket.wants_reply());
        }
        self.tell_before(ticket.wants_reply());
        let (op, wants_reply) = (ticket.op(), ticket.wants_reply());
        let done = self.responder.complete_with(ticket, None, || Outcome::ok_raw(&self.reply));
        self.broken = self.broken.or(done.err());
        if self.times.is_some() || op == Opcode::OFFER {
            self.note_end(wants_reply);
        }
    }

    fn complete(&mut self, ticket: Ticket, outcome: Outcome<Body>) {
        self.completed += 1;
        if let Some(error) = outcome.failure() {
            self.failures.count(error);
        }
        let (id, op) = (ticket.id(), ticket.op());
        if self.is_told() {
            self.check_told_before(op, outcome.is_error(), ticket.wants_reply());
        }
        self.tell_before(ticket.wants_reply());
        let failed_work = self.failed_work.take().filter(|_| outcome.is_error());
        let is_told = failed_work.is_some_and(|failed| self.tell_work(failed));
        let tells = !is_told && !ticket.wants_reply() && self.tells_failure();
        let wants_reply = ticket.wants_reply();
        self.broken = self.broken.or(self.responder.complete(ticket, outcome).err());
        if self.times.is_some() {
            self.note_end(wants_reply);
        }
        if tells && let Some(error) = self.responder.kept() {
            self.tell_failure(id, op, error);
        }
    }
}

/// Replaces the content of `vec` without a new allocation.
fn copy_into(vec: &mut Vec<u8>, bytes: &[u8]) {
    vec.clear();
    vec.extend_from_slice(bytes);
}
