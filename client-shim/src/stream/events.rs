//! The program's events, with the stream and the place of their last recording.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hipr_abi::{hipEventDisableTiming, hipEventInterprocess};
use hipr_proto::op::EventTime;
use hipr_proto::{HipError, HipResult};

use super::pending::{Mark, Scope};
pub use super::times::Pair;
use super::times::Times;
use crate::convert::Event;
use crate::worker::lock;

/// State of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    /// Flags of the event, `hipEvent*`.
    pub flags: u32,
    /// The device on whose streams it can be recorded.
    pub device: i32,
    /// The stream on which the event was last recorded; None if it has not been.
    pub recorded: Option<u64>,
    /// The place of its last recording; None if it is not known which that is, or it has not been sent.
    mark: Option<Mark>,
    /// Number of recordings that are being sent.
    sending: u32,
    /// Whether recordings were sent at the same time, so that nobody knows which was the last.
    is_muddled: bool,
    /// Number of its last recording, as [`Times`] counts them; None if it was not recorded, or has no times (`hipEventDisableTiming`).
    number: Option<u64>,
}

impl EventInfo {
    /// Creates the state of a new event of a device. One that other processes have may have been recorded already: it is asked for in any
    /// case.
    pub fn new(flags: u32, device: i32) -> Self {
        let recorded = (flags & hipEventInterprocess != 0).then_some(0);
        Self { flags, device, recorded, mark: None, sending: 0, is_muddled: false, number: None }
    }

    /// Returns whether other processes can use the event.
    pub fn is_shared(&self) -> bool {
        self.flags & hipEventInterprocess != 0
    }

    /// Returns the work that the event comes behind; None if it is not known, or other processes may have recorded the event.
    pub(super) fn scope(&self) -> Option<Scope> {
        if self.is_shared() { None } else { Some(Scope::Record(self.recorded?, self.mark?)) }
    }
}

/// All events.
#[derive(Debug, Default)]
pub struct Events {
    table: Mutex<Table>,
    /// Whether the program has asked for a time between events.
    asks_times: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    events: HashMap<Event, EventInfo>,
    times: Times,
}

impl Table {
    /// Numbers a recording of an event that has times.
    fn number(&mut self, event: Event) {
        if let Some(info) = self.events.get_mut(&event)
            && info.flags & hipEventDisableTiming == 0
        {
            info.number = Some(self.times.recorded(event));
        }
    }

    /// Returns whether a recording is the last one of its event, and was sent.
    fn is_last(events: &HashMap<Event, EventInfo>, event: Event, number: u64) -> bool {
        events
            .get(&event)
            .is_some_and(|info| info.number == Some(number) && info.sending == 0 && !info.is_muddled)
    }

    /// Does what [`Times::likely`] does.
    fn likely(&mut self, from: Option<u64>) -> Vec<Pair> {
        self.times.likely(from, |event, number| Self::is_last(&self.events, event, number))
    }
}

impl Events {
    /// Adds an event of a device.
    pub fn add(&self, event: Event, flags: u32, device: i32) {
        lock(&self.table).events.insert(event, EventInfo::new(flags, device));
    }

    /// Removes an event.
    pub fn remove(&self, event: Event) {
        lock(&self.table).events.remove(&event);
    }

    /// Returns the state of an event; fails if there is no such event.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub fn info(&self, event: Event) -> HipResult<EventInfo> {
        lock(&self.table).events.get(&event).copied().ok_or(HipError::INVALID_HANDLE)
    }

    /// Notes that an event will be recorded on a stream, by a command that is queued.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub(super) fn expect(&self, event: Event, stream: u64) -> HipResult<()> {
        self.change(event, |info| (info.recorded, info.mark, info.number) = (Some(stream), None, None))
    }

    /// Notes that the recording of an event is about to be sent; returns the event's new state.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub(super) fn begin_record(&self, event: Event, stream: u64) -> HipResult<EventInfo> {
        let mut table = lock(&self.table);
        table.number(event);
        let info = table.events.get_mut(&event).ok_or(HipError::INVALID_HANDLE)?;
        (info.recorded, info.mark) = (Some(stream), None);
        info.sending += 1;
        info.is_muddled = info.sending > 1;
        Ok(*info)
    }

    /// Notes that the recording of an event has been sent, and its place; does nothing if the event was destroyed meanwhile.
    pub(super) fn end_record(&self, event: Event, mark: Mark) {
        // Refused only then.
        let _ = self.change(event, |info| {
            info.sending = info.sending.saturating_sub(1);
            if !info.is_muddled {
                info.mark = Some(mark);
            }
        });
    }

    /// Returns whether the program has asked for a time between events.
    #[inline]
    pub fn asks_times(&self) -> bool {
        self.asks_times.load(Ordering::Relaxed)
    }

    /// Returns the pairs of events of whose times the worker is to tell ahead of a wait.
    pub fn pairs_before_wait(&self) -> Vec<Pair> {
        let mut table = lock(&self.table);
        if table.times.are_wanted() { table.likely(None) } else { Vec::new() }
    }

    /// Returns the milliseconds between two events if the worker has told them; otherwise the pairs of whose times it is to tell when it is asked
    /// for these.
    pub fn elapsed_ms(&self, start: Event, stop: Event) -> Result<f32, Vec<Pair>> {
        let mut table = lock(&self.table);
        let number_of = |event: Event| {
            let number = table.events.get(&event)?.number?;
            Table::is_last(&table.events, event, number).then_some(number)
        };
        let Some(numbers) = number_of(start).zip(number_of(stop)) else { return Err(Vec::new()) };
        if let Some(milliseconds) = table.times.get(numbers) {
            return Ok(milliseconds);
        }
        table.times.wanted(numbers);
        self.asks_times.store(true, Ordering::Relaxed);
        Err(table.likely(Some(numbers.0.min(numbers.1))))
    }

    /// Notes that the worker was asked for the times of these pairs, with the request of this number.
    pub fn asked_times(&self, number: u64, pairs: Vec<Pair>) {
        lock(&self.table).times.asked_for(number, pairs);
    }

    /// Returns whether the worker was asked for times and its answer is not known yet.
    pub fn expects_times(&self) -> bool {
        lock(&self.table).times.are_expected()
    }

    /// Learns the times that the worker has told: `told` returns those of the request of a number.
    pub fn learn_times(&self, told: impl Fn(u64) -> Option<Box<[EventTime]>>) {
        lock(&self.table).times.learn_told(told);
    }

    /// Forgets the times that were told, or will be, because the worker has released the events.
    pub fn forget_times(&self) {
        lock(&self.table).times.forget();
    }

    fn change<T>(&self, event: Event, change: impl FnOnce(&mut EventInfo) -> T) -> HipResult<T> {
        lock(&self.table).events.get_mut(&event).map(change).ok_or(HipError::INVALID_HANDLE)
    }
}
