//! What sessions do when memory is short although some have leases that they do not use: whoever needs memory stands still, the
//! others are asked to give back what they do not use (`MEM_RECALL`), and each answer (`MEM_RETURN`) lets the request be tried again.

use std::cell::Cell;
use std::mem;

use hipr_io::{Item, Lack};
use hipr_proto::op::{MallocAt, MallocShared, MemRecall, MemReturn};
use hipr_proto::{Features, HipError, HipResult, Op, Opcode, Ticket, Wire};

use super::Session;
use super::state::{Kept, Replay, Retry, State};
use crate::call::{Continuation, Stage};
use crate::env::Env;
use crate::owned::Sought;

/// Returns whether an operation takes memory from the lease.
fn places(op: Opcode) -> bool {
    [MallocAt::OPCODE, MallocShared::OPCODE].contains(&op)
}

impl Session {
    /// Handles that a request has failed for lack of memory: it will be tried again. Returns false if nobody has memory to give back, or
    /// the request is one that takes from the lease.
    pub(super) fn falls_short(
        &mut self,
        env: &Env<'_>,
        op: Opcode,
        result: &HipResult<Continuation>,
    ) -> bool {
        if !matches!(result, Err(HipError::OUT_OF_MEMORY)) {
            return false;
        }
        let is_own_limit = mem::take(&mut self.owned.recall.is_own_limit);
        let has_more = env.more.is_there && !is_own_limit;
        // What was withdrawn from a lease is asked for like other memory.
        (has_more || env.leases.get() > 0) && (!places(op) || self.owned.withdrawn_bytes > 0)
    }

    /// Returns whether the device is so short of memory that a code object of `len` bytes may not fit, so that it has to be kept to be
    /// loaded again.
    pub(super) fn may_fall_short(&self, env: &Env<'_>, len: usize) -> bool {
        /// Memory that a code object may need beside what is in it.
        const VARIABLES_BYTES: u64 = 4 << 30;
        if env.leases.get() == 0 && !env.more.is_there {
            return false;
        }
        let need_bytes = (len as u64).saturating_mul(4).saturating_add(VARIABLES_BYTES);
        let room = env.limits.memory_max_bytes.saturating_sub(self.owned.claimed_bytes());
        let free = self.owned.context_ref().and_then(|context| context.reservable());
        free.is_ok_and(|free| free.min(room) < need_bytes)
    }

    /// Waits for memory that others give back, to try a request again.
    #[cold]
    pub(super) fn wait_for_memory(
        &mut self,
        ticket: Ticket,
        fixed: Vec<u8>,
        tail: Vec<u8>,
        collected: Option<Vec<u8>>,
    ) {
        let request = Kept { fixed, tail, collected, is_last: false, is_due: false };
        self.state = State::Short(Box::new(Retry { ticket, request }));
        self.owned.recall.has_fallen_short = true;
    }

    /// Waits on to try a request again that has fallen short once more. If so far not all were asked, more are asked now.
    pub(super) fn wait_on(&mut self, ticket: Ticket, request: Kept) {
        self.state = State::Short(Box::new(Retry { ticket, request }));
        let sought = self.owned.recall.sought;
        self.owned.recall.has_fallen_short |= [Sought::Lender, Sought::AnsweredTenant].contains(&sought);
    }

    /// Returns whether a request is about to be tried for the last time.
    pub(crate) fn tries_last(&self) -> bool {
        match &self.state {
            State::Short(retry) => retry.request.is_last && retry.request.is_due,
            State::Loading(loading) => loading.retry.as_ref().is_some_and(|retry| retry.is_last),
            _ => false,
        }
    }

    /// Returns whether a request may still need memory that the session has room for now.
    pub(crate) fn needs_room(&self) -> bool {
        let is_checked = |replay: &Replay| replay.stage == Stage::Check;
        match &self.state {
            State::Short(_) | State::Loading(_) | State::Lent(_) => true,
            State::Replay(replay) => is_checked(replay),
            _ => false,
        }
    }

    /// Begins to ask on behalf of a request that has fallen short; returns whether so far nobody was asked, and how many bytes the request
    /// lacks if that is known.
    pub(crate) fn begin_asking(&mut self) -> (bool, Option<u64>) {
        let lacking_bytes = self.owned.recall.lacking_bytes.take();
        let is_first = self.owned.recall.sought == Sought::Nobody;
        self.owned.recall.sought = if is_first { Sought::Lender } else { Sought::Everybody };
        (is_first, lacking_bytes)
    }

    /// Returns what there is too little of for the request that has fallen short, for which this process would have to be lent
    /// `needed_bytes`, if that is known.
    pub(crate) fn lack(&self, needed_bytes: u64) -> Lack {
        if self.owned.recall.is_bound { Lack::Bound { needed_bytes } } else { Lack::Device }
    }

    /// Returns whether those of the session's tenant who may have memory to spare were asked for the request.
    pub(crate) fn has_asked_tenant(&self) -> bool {
        self.owned.recall.sought == Sought::AnsweredTenant
    }

    /// Notes that those who may have memory to spare are asked for the request: all, or the tenant's.
    pub(crate) fn asks(&mut self, only_tenant: bool) {
        self.owned.recall.sought = if only_tenant { Sought::Tenant } else { Sought::Everybody };
    }

    /// Tries a request again, if there is more memory; returns false if the session has ended.
    pub(super) fn try_again(&mut self, env: &Env<'_>, mut retry: Box<Retry>) -> Option<bool> {
        if !std::mem::take(&mut retry.request.is_due) {
            self.state = State::Short(retry);
            return None;
        }
        let Retry { ticket, mut request } = *retry;
        self.owned.recall.is_bound = false;
        if request.is_last {
            // What comes after it has other limits.
            self.turn_bytes = usize::MAX / 2;
        }
        self.fixed.clone_from(&request.fixed);
        let op = ticket.op();
        let image = if request.is_last { request.collected.take() } else { request.collected.clone() };
        let result = self.call(env, op, image, &request.tail);
        if matches!(result, Ok(Continuation::Load(_))) {
            let goes_on = self.go_on(env, ticket, result, 0);
            self.keep_retry(Some(request));
            return Some(goes_on);
        }
        if !request.is_last && self.falls_short(env, op, &result) {
            self.wait_on(ticket, request);
            return None;
        }
        Some(self.go_on(env, ticket, result, 0))
    }

    /// Lets a request that has fallen short be tried again; for the last time if nobody is left who could give something back.
    pub(crate) fn retry(&mut self, mut is_last: bool) {
        if is_last && self.owned.recall.sought == Sought::Tenant {
            (self.owned.recall.sought, is_last) = (Sought::AnsweredTenant, false);
        }
        let retry = match &mut self.state {
            State::Short(retry) => Some(&mut retry.request),
            // It may be told while it is being tried.
            State::Loading(loading) => loading.retry.as_mut(),
            _ => None,
        };
        if let Some(retry) = retry {
            retry.is_due = true;
            retry.is_last |= is_last;
        }
    }

    /// Returns whether a request has fallen short since the last time.
    pub(crate) fn take_shortage(&mut self) -> bool {
        std::mem::take(&mut self.owned.recall.has_fallen_short)
    }

    /// Returns whether the client has answered a recall since the last time.
    pub(crate) fn take_answer(&mut self) -> bool {
        std::mem::take(&mut self.owned.recall.has_answered)
    }

    /// Asks the client to give back what it does not use, unless it has been asked; returns whether it will answer.
    ///
    /// A request that asks for a lease is not held up by its own session: what that has left is taken into account by the client.
    pub(crate) fn recall(&mut self, number: u64) -> bool {
        if self.owned.recall.open.is_some() {
            return true;
        }
        let asks_for_lease =
            matches!(&self.state, State::Short(retry) if retry.ticket.op() == Opcode::MEM_LEASE);
        if !self.can_be_recalled() || asks_for_lease {
            return false;
        }
        let sent = self.responder.notify(&MemRecall { number }, &[]);
        self.broken = self.broken.or(sent.err());
        self.owned.recall.open = Some(number);
        self.take_early();
        true
    }

    fn can_be_recalled(&self) -> bool {
        let needed = Features::PLACES.union(Features::NOTIFICATIONS);
        let lease = &self.owned.lease;
        let has_some = if self.owned.recall.is_away {
            // It cannot answer, so that all there is to get is what can be withdrawn.
            self.owned.reserved_bytes() > 0
        } else {
            (lease.bytes(), lease.allocations()) != (0, 0)
        };
        has_some && self.owned.features.is_some_and(|features| features.contains(needed))
    }

    /// Counts the session among those that have a lease, or no more.
    pub(super) fn count_lease(&mut self, leases: &Cell<usize>) {
        let counts = self.can_be_recalled();
        match (std::mem::replace(&mut self.owned.recall.counts, counts), counts) {
            (false, true) => leases.set(leases.get() + 1),
            (true, false) => leases.set(leases.get().saturating_sub(1)),
            _ => {}
        }
    }

    /// Takes the session out of the count of those that have a lease.
    pub(crate) fn forget_lease(&mut self, leases: &Cell<usize>) {
        if std::mem::take(&mut self.owned.recall.counts) {
            leases.set(leases.get().saturating_sub(1));
        }
    }

    /// Looks whether the client's answer to a recall is among the requests that wait for their turn, and gives back what it returns: who
    /// needs memory is not to wait for this session's work. What requests before the answer place is left in the lease.
    pub(super) fn take_early(&mut self) {
        let Some(open) = self.owned.recall.open else { return };
        // With the context on another thread nothing can be given back; it is looked again when that is back.
        if matches!(self.state, State::Loading(_)) {
            return;
        }
        let (placed_bytes, placed, returned) = self.waiting_places(open);
        let Some(returned) = returned else { return };
        let lease = &self.owned.lease;
        let bytes = returned.bytes.min(lease.bytes().saturating_sub(placed_bytes));
        let allocations = returned.allocations.min(lease.allocations().saturating_sub(placed));
        if self.owned.give_back(bytes, allocations).is_ok() {
            self.owned.recall.early.insert(open, (bytes, allocations));
        }
        self.owned.recall.close();
    }

    /// Takes back the unused part of the lease of a client that is away and has not answered the recall. For memory that it has placed meanwhile,
    /// bytes are reserved again when the request has its turn; what it does not use it gives back with its answer.
    pub(crate) fn withdraw(&mut self) {
        let Some(open) = self.owned.recall.open.filter(|_| self.owned.recall.is_away) else { return };
        if matches!(self.state, State::Loading(_)) {
            return;
        }
        let (placed_bytes, ..) = self.waiting_places(open);
        // If that fails the lease stays as it is.
        let _ = self.owned.withdraw(placed_bytes);
    }

    /// Notes whether the client has a connection.
    pub(crate) fn set_away(&mut self, is_away: bool) {
        self.owned.recall.is_away = is_away;
    }

    /// Looks through the requests that wait for their turn, up to the client's answer to the recall with the number `open`. Returns the bytes and the
    /// number of the allocations that they place, and the answer if it is there.
    fn waiting_places(&self, open: u64) -> (u64, u64, Option<MemReturn>) {
        let (mut placed_bytes, mut placed) = (0u64, 0);
        let requests = self.queue.iter().flat_map(|batch| {
            batch.items().filter_map(|item| match item {
                Item::Request { ticket, fixed, .. } => Some((ticket.op(), batch.bytes(*fixed))),
                Item::Data { .. } => None,
            })
        });
        for (op, mut fixed) in requests {
            if places(op) {
                // Both requests have the same fields.
                placed += 1;
                placed_bytes =
                    placed_bytes.saturating_add(MallocAt::take(&mut fixed).map_or(0, |at| at.size));
                continue;
            }
            let Ok(returned) = MemReturn::take(&mut fixed) else { continue };
            if op != MemReturn::OPCODE || returned.recall != open {
                continue;
            }
            return (placed_bytes, placed, Some(returned));
        }
        (placed_bytes, placed, None)
    }
}
