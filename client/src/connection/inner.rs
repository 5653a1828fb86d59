//! What the threads of a process do with their connection: they queue requests, send them, wait for replies, and end the session.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hipr_io::gather;
use hipr_proto::{HipError, HipResult, Misuse, Op, Outbox, ReplyMode, op};

use super::{Borrowed, Extra, Inner, Writer};
use crate::CallError;
use crate::flusher::{Buffered, Flusher};
use crate::listener::{Heard, Listener};
use crate::observer::Requested;
use crate::replies::{Bulk, Whole};
use crate::unanswered::Unanswered;
use crate::uploads::LinkSpeed;

impl Heard for Inner {
    fn listener(&self) -> &Listener {
        &self.listener
    }

    fn reads(&self) -> u64 {
        self.replies.reads()
    }

    fn listen(&self) -> bool {
        self.replies.listen(&self.counters).unwrap_or_else(|reason| {
            self.lose_open(&reason);
            false
        })
    }
}

impl Buffered for Inner {
    fn flusher(&self) -> &Flusher {
        &self.flusher
    }

    fn flush(&self) {
        if let Ok(mut writer) = self.writer() {
            // A failure is kept: the next call says it.
            let _ = self.send(&mut writer);
        }
    }
}

impl Inner {
    /// Returns which requests may still have left an error.
    pub(super) fn unanswered(&self) -> &Unanswered {
        &self.replies.listeners().unanswered
    }

    /// Reads what has arrived, without waiting.
    pub(super) fn hear_arrived(&self) {
        if let Err(reason) = self.replies.hear_arrived(&self.counters) {
            self.lose_open(&reason);
        }
    }

    /// Marks the connection as lost, unless this side has said good-bye: then the worker ends it.
    fn lose_open(&self, reason: &str) {
        if !self.is_closing.load(Ordering::SeqCst) {
            self.lose(reason);
        }
    }

    /// Locks the sending side; fails if the connection is closed or lost.
    #[inline]
    pub(super) fn writer(&self) -> Result<MutexGuard<'_, Writer>, CallError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.closed || self.lost.get().is_some() { Err(CallError::Lost) } else { Ok(writer) }
    }

    pub(super) fn ask<O: Op>(&self, op: &O, extra: Extra<'_>, bulk: Bulk) -> Result<Whole, CallError> {
        let mut writer = self.writer()?;
        let id = self.queue(&mut writer, op, extra, Some(bulk))?;
        let sent = self.send_if_wanted(&mut writer);
        let before = self.unanswered().before(&self.counters);
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        // Memory was lent: the wait has to be over before this returns, even where nothing was sent.
        let whole = self.wait(id);
        if let Ok(whole) = &whole {
            self.unanswered().answered(O::OPCODE, before, whole.error);
        }
        sent.and(whole)
    }

    pub(super) fn ask_all<O: Op>(
        &self,
        requests: Vec<(&O, Bulk)>,
        device: Option<i32>,
    ) -> Result<Vec<Whole>, CallError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let mut writer = self.writer()?;
        let mut ids = Vec::with_capacity(requests.len());
        let extra = Extra { device, ..Extra::default() };
        let mut queued = Ok(());
        for (op, bulk) in requests {
            match self.queue(&mut writer, op, extra, Some(bulk)) {
                Ok(id) => ids.push(id),
                Err(error) => {
                    queued = Err(error);
                    break;
                }
            }
            if writer.sender.queued_bytes() >= hipr_proto::COALESCE_BYTES / 2 {
                queued = self.send(&mut writer);
            }
        }
        let sent = queued.and_then(|()| self.send(&mut writer));
        let before = self.unanswered().before(&self.counters);
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        // Memory was lent for each: all waits have to be over before this returns.
        let wholes: Vec<_> = ids.into_iter().map(|id| self.wait(id)).collect();
        sent?;
        for whole in wholes.iter().flatten() {
            self.unanswered().answered(O::OPCODE, before, whole.error);
        }
        wholes.into_iter().collect()
    }

    pub(super) fn wait(&self, id: u32) -> Result<Whole, CallError> {
        let whole = self.observed_wait(id, || self.replies.wait(id, &self.counters));
        whole.map_err(|reason| {
            if let Some(reason) = reason {
                self.lose(&reason);
            }
            CallError::Lost
        })
    }

    /// Calls `wait`, which waits for the reply to call `id`, and lets the observer see it.
    pub(super) fn observed_wait<E>(
        &self,
        id: u32,
        wait: impl FnOnce() -> Result<Whole, E>,
    ) -> Result<Whole, E> {
        let Some(observer) = &self.observer else { return wait() };
        let since = Instant::now();
        let whole = wait();
        observer.waited(id, whole.as_ref().map_or(0, |whole| whole.inline_bytes), since);
        whole
    }

    /// Lets the observer see the request that was queued last.
    #[inline(always)]
    pub(super) fn observe<O: Op>(&self, writer: &Writer, op: &O, behind_bytes: usize, is_answered: bool) {
        if self.observer.is_some() {
            self.observe_now(writer.sender.last_id(), op, behind_bytes, is_answered);
        }
    }

    #[cold]
    #[inline(never)]
    fn observe_now<O: Op>(&self, request: u32, op: &O, behind_bytes: usize, is_answered: bool) {
        if let Some(observer) = &self.observer {
            observer.requested(&Requested::new(request, op, behind_bytes, is_answered));
        }
    }

    /// Encodes a request, behind the `SET_DEVICE` that it may need. With `bulk` it is answered, and the call's id is
    /// returned; otherwise it is not answered. The sender may then hold borrowed bytes, so the caller has to call
    /// `send_if_wanted` next.
    pub(super) fn queue<O: Op>(
        &self,
        writer: &mut Writer,
        op: &O,
        extra: Extra<'_>,
        bulk: Option<Bulk>,
    ) -> Result<u32, CallError> {
        if let Some(device) = extra.device
            && device != writer.device
        {
            // The caller knows that the device exists, so nothing is waited for.
            let set = op::SetDevice { device_id: device };
            let queued = writer.sender.request_with(&set, &[], None, ReplyMode::Never);
            self.queued(queued.map(drop))?;
            self.replies.listeners().callers.note(writer.sender.last_id());
            self.observe(writer, &set, 0, false);
            writer.device = device;
            if writer.sender.wants_flush() {
                self.send(writer)?;
            }
        }
        let reply_mode = if bulk.is_some() { ReplyMode::Always } else { ReplyMode::Never };
        self.replies.listeners().memory.note(O::OPCODE);
        if bulk.is_none() {
            self.unanswered().told(O::OPCODE, extra.is_noted);
        }
        let inline = (!extra.inline.is_empty()).then_some(Borrowed(extra.inline));
        let queued = writer.sender.request_with(op, extra.tail, inline, reply_mode);
        let call = self.queued(queued)?;
        self.replies.listeners().callers.note(writer.sender.last_id());
        self.observe(writer, op, extra.tail.len() + extra.inline.len(), bulk.is_some());
        tracing::trace!("request {}", O::OPCODE);
        match (call, bulk) {
            (Some(call), Some(bulk)) => {
                self.replies.expect(call, bulk);
                Ok(call.id())
            }
            _ => Ok(0),
        }
    }

    #[inline]
    pub(super) fn queued<T>(&self, queued: Result<T, Misuse>) -> Result<T, CallError> {
        match queued {
            Ok(value) => {
                self.counters.add_locked(|c| &c.frames_sent, 1);
                Ok(value)
            }
            Err(misuse) => {
                tracing::error!("cannot encode a request: {misuse}; this is a bug of hipr");
                Err(CallError::Hip(HipError::UNKNOWN))
            }
        }
    }

    /// Sends the buffered requests that cannot wait; leaves others to the flusher.
    #[inline]
    pub(super) fn send_if_wanted(&self, writer: &mut Writer) -> Result<(), CallError> {
        if writer.sender.wants_flush() {
            self.send(writer)
        } else {
            self.flusher.due(&self.this);
            Ok(())
        }
    }

    #[inline(never)]
    pub(super) fn send(&self, writer: &mut Writer) -> Result<(), CallError> {
        self.transmit(writer).map_err(|error| {
            self.lose(&error.to_string());
            CallError::Lost
        })
    }

    /// Writes everything that is queued. Afterwards the sender holds no borrowed bytes, even after an error.
    pub(super) fn transmit(&self, writer: &mut Writer) -> io::Result<()> {
        let Writer { sender, outbox, speed, .. } = writer;
        while sender.poll_transmit(outbox) {
            // Who launches kernels does not pay for two looks at the clock.
            let is_measured = outbox.len_bytes() >= LinkSpeed::WRITE_MIN_BYTES;
            let start = (is_measured || self.observer.is_some()).then(Instant::now);
            match gather(outbox.slices(), |slices| self.transport.write(slices)) {
                Ok(n) => {
                    if let Some(start) = start.filter(|_| is_measured) {
                        speed.note(n as u64, start, Instant::now());
                    }
                    if let (Some(observer), Some(start)) = (&self.observer, start) {
                        observer.sent(n as u64, sender.last_id(), start);
                    }
                    self.counters.add_locked(|c| &c.writes, 1);
                    self.counters.add_locked(|c| &c.bytes_sent, n as u64);
                    outbox.advance(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    *outbox = Outbox::new();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Marks the connection as lost: logs the reason once and wakes all waiting threads.
    pub(super) fn lose(&self, reason: &str) {
        if self.lost.set(()).is_ok() {
            tracing::error!(
                "lost the connection to the worker at {}: {reason}; every further HIP call for its devices fails",
                self.address
            );
        }
        // Whoever reads wakes up as well.
        self.transport.shutdown();
        self.replies.close();
    }

    /// Ends the session with SHUTDOWN, behind a last request if there is one; returns the error of that.
    pub(super) fn close<O: Op>(
        &self,
        timeout: Duration,
        reply_mode: ReplyMode,
        last: Option<&O>,
    ) -> HipResult<()> {
        let end = Instant::now() + timeout;
        // At the end of a process other threads may hold the lock for ever.
        let mut writer = loop {
            match self.writer.try_lock() {
                Ok(writer) => break writer,
                Err(std::sync::TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) if Instant::now() >= end => return Ok(()),
                Err(std::sync::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if writer.closed || self.lost.get().is_some() {
            return Ok(());
        }
        writer.closed = true;
        self.is_closing.store(true, Ordering::SeqCst);
        for unread in [&self.listing, &self.first_lease] {
            if let Ok(Some(call)) = unread.try_lock().map(|mut unread| unread.take()) {
                self.replies.abandon(call.id());
            }
        }
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let _ = self.transport.set_timeout(Some(left));
        let asked = last.map(|last| {
            let call = writer.sender.request_with(last, &[], None, ReplyMode::Always);
            self.observe(&writer, last, 0, true);
            call
        });
        let shutdown = writer.sender.request_with(&op::Shutdown {}, &[], None, reply_mode);
        self.observe(&writer, &op::Shutdown {}, 0, reply_mode == ReplyMode::Always);
        let mut calls = Vec::new();
        for call in asked.into_iter().chain([shutdown]).flatten() {
            self.counters.add_locked(|c| &c.frames_sent, 1);
            if let Some(call) = call {
                calls.push(call.id());
                self.replies.expect(call, Bulk::Collect(Vec::new()));
            }
        }
        let sent = self.transmit(&mut writer);
        drop(writer);
        // Another thread that waits for a reply reads instead of us, for as long as its reply takes.
        let mut result = Ok(());
        if sent.is_ok() && !calls.is_empty() && self.replies.waiting() == calls.len() {
            self.counters.add(|c| &c.round_trips, 1);
            for call in calls {
                let wait = || self.replies.wait_until(call, &self.counters, Some(end));
                match self.observed_wait(call, wait) {
                    Ok(whole) => result = result.and(whole.error.map_or(Ok(()), Err)),
                    Err(Some(reason)) => tracing::debug!("no reply at the end of the session: {reason}"),
                    Err(None) => {}
                }
            }
        }
        self.transport.shutdown();
        let _ = self.lost.set(());
        self.replies.close();
        result
    }
}
