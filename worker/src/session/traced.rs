//! Tells a client when its requests were carried out, and when the device did their work (`TRACED`), for a trace.

use std::collections::VecDeque;
use std::time::Instant;

use hipr_device::{Origin, TIMES_MAX, WorkTimes};
use hipr_proto::op::{Handle, TRACED_MAX, TraceEntry, Traced, trace_kind};
use hipr_proto::{Features, Ticket, Wire};

use super::Session;

/// Number of requests after which the client is told although none of them is answered.
const TOLD_AFTER: usize = TRACED_MAX / 2;

/// When requests were carried out.
pub(super) struct Times {
    /// Time zero.
    epoch: Instant,
    /// When the batches of the queue were received.
    batches: VecDeque<Instant>,
    /// The request that is being carried out, if it began after the first one that is told of.
    current: Option<TraceEntry>,
    /// What the client has not been told, of which it is told soon.
    entries: Vec<TraceEntry>,
    work: Vec<WorkTimes>,
}

impl Times {
    fn new(queued: usize) -> Self {
        let epoch = Instant::now();
        let batches = std::iter::repeat_n(epoch, queued).collect();
        Self { epoch, batches, current: None, entries: Vec::new(), work: Vec::new() }
    }

    /// Notes that a batch is received.
    pub(super) fn received(&mut self) {
        self.batches.push_back(Instant::now());
    }

    /// Notes that the first batch is done with.
    pub(super) fn given_back(&mut self) {
        self.batches.pop_front();
    }

    /// Returns the bytes of memory that it takes, those of the device included.
    pub(super) fn weight_bytes(&self) -> u64 {
        let entries = self.entries.capacity() * size_of::<TraceEntry>();
        let work = (self.work.capacity() + TIMES_MAX) * size_of::<WorkTimes>();
        (entries + work + self.batches.capacity() * size_of::<Instant>()) as u64
    }

    fn ns(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    fn now_ns(&self) -> u64 {
        self.ns(Instant::now())
    }
}

impl Session {
    /// Notes that a request's turn begins.
    #[cold]
    pub(super) fn note_begin(&mut self, ticket: &Ticket) {
        let Some(times) = &mut self.times else { return };
        let begin_ns = times.now_ns();
        let first_ns = times.batches.front().map_or(begin_ns, |received| times.ns(*received));
        let request = ticket.id();
        let kind = trace_kind::REQUEST;
        times.current = Some(TraceEntry { request, kind, first_ns, begin_ns, ..TraceEntry::ZERO });
        if let Ok(context) = self.owned.context() {
            context.note_times(Origin { request, op: ticket.op() });
        }
    }

    /// Notes that the request is completed; tells the client if it is answered, or there is much to tell.
    #[cold]
    pub(super) fn note_end(&mut self, wants_reply: bool) {
        let wants = self.owned.features.is_some_and(|features| features.contains(Features::TRACE));
        let Some(times) = &mut self.times else {
            if wants {
                self.times = Some(Box::new(Times::new(self.queue.len())));
            }
            return;
        };
        let end_ns = times.now_ns();
        times.entries.extend(times.current.take().map(|current| TraceEntry { end_ns, ..current }));
        if wants_reply || times.entries.len() >= TOLD_AFTER {
            self.tell_times();
        }
    }

    /// Tells the client what it has not been told.
    pub(super) fn tell_times(&mut self) {
        let Some(times) = &mut self.times else { return };
        let mut lost = self.owned.context().map_or(0, |context| context.take_times(&mut times.work));
        for work in std::mem::take(&mut times.work) {
            let known = |kind, handle| self.owned.names.known(kind, handle);
            let (first_ns, begin_ns, end_ns) =
                (times.ns(work.enqueued), times.ns(work.began), times.ns(work.ended));
            times.entries.push(TraceEntry {
                request: work.origin.request,
                kind: trace_kind::WORK,
                stream: known(Handle::Stream, work.stream),
                function: known(Handle::Function, work.function),
                first_ns,
                begin_ns,
                end_ns,
            });
        }
        for entries in times.entries.chunks(TRACED_MAX) {
            let mut tail = Vec::with_capacity(entries.len() * TraceEntry::SIZE);
            entries.iter().for_each(|entry| entry.put(&mut tail));
            let traced = Traced { count: entries.len() as u32, lost: std::mem::take(&mut lost) };
            self.broken = self.broken.or(self.responder.notify(&traced, &tail).err());
        }
        times.entries.clear();
    }
}
