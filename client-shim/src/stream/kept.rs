//! Keeps the record of an event that a queued wait means, when the event is recorded anew.
//!
//! A step that lets a stream wait for an event is sent later than the program has asked for it, and means the record that there was then.
//! Whoever records the event meanwhile does not wait for the step, which may be behind a function that waits for the program. So before the
//! new record is sent, the old one is carried over to an event of this library: a stream that has nothing else waits for the program's event
//! and records that one, for which the step waits instead.

use std::collections::HashMap;
use std::sync::MutexGuard;

use hipr_proto::HipResult;

use super::Streams;
use crate::convert::Event;
use crate::worker::{Port, lock};

/// What is kept; locked while a record is sent that could be taken for another one, and while such a step is sent.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// For each device, the stream on which records of its events are carried over; created when first needed.
    streams: HashMap<i32, u64>,
    /// What steps wait for instead of the program's event.
    events: HashMap<u64, Event>,
}

/// Holds up steps that wait for events, and records, until it is dropped.
pub(super) type Held<'a> = Option<MutexGuard<'a, Kept>>;

impl Streams {
    /// Prepares that events are recorded, by the step `step` or by a call: keeps the records that earlier steps mean. The new ones have to be
    /// sent before what this returns is dropped.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn keep_records(
        &self,
        port: &dyn Port,
        events: &[Event],
        step: Option<u64>,
    ) -> HipResult<Held<'_>> {
        if events.is_empty() || self.host_functions.is_idle() {
            return Ok(None);
        }
        let mut kept = lock(&self.kept);
        for event in events {
            for waiting in self.host_functions.awaiting(*event, step) {
                let (copy, _) = self.carry_over(port, &mut kept, *event)?;
                kept.events.insert(waiting, copy);
                self.host_functions.awaits_no_more(*event, waiting);
            }
        }
        Ok(Some(kept))
    }

    /// Records an event of this library where the present record of the program's is; returns it, and the stream on which it is recorded.
    fn carry_over(&self, port: &dyn Port, kept: &mut Kept, event: Event) -> HipResult<(Event, u64)> {
        let device = self.events.info(event).map_or(0, |info| info.device);
        let stream = match kept.streams.get(&device) {
            Some(stream) => *stream,
            None => *kept.streams.entry(device).or_insert(port.create_stream(device)?),
        };
        let copy = port.create_event(device)?;
        port.await_event(event, stream, 0)?;
        port.record(copy, stream, false)?;
        self.mirrors.of_device(device).event_copied(event, copy);
        Ok((copy, stream))
    }

    /// Returns an event of this library that a thread can wait for in place of an event of the program, for the step `step`: for what was
    /// kept of it if it was recorded since.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn copy_for_step(&self, port: &dyn Port, step: Option<u64>, event: Event) -> HipResult<Event> {
        let device = self.events.info(event).map_or(0, |info| info.device);
        let mut kept = lock(&self.kept);
        let known = step.and_then(|step| kept.events.remove(&step));
        let (copy, stream) = match known {
            Some(copy) => (copy, kept.streams.get(&device).copied().unwrap_or_default()),
            None => self.carry_over(port, &mut kept, event)?,
        };
        if let Some(step) = step.filter(|_| known.is_none()) {
            self.host_functions.awaits_no_more(event, step);
        }
        self.events.add(copy, 0, device);
        self.events.begin_record(copy, stream)?;
        self.end_record(copy, stream);
        Ok(copy)
    }

    /// Lets a stream wait for an event, for the step `step`: for what was kept of it if it was recorded since. Returns whether that is so.
    ///
    /// # Errors
    /// A lost connection.
    pub(super) fn await_for_step(
        &self,
        port: &dyn Port,
        step: u64,
        event: Event,
        stream: u64,
        flags: u32,
    ) -> HipResult<bool> {
        let mut kept = lock(&self.kept);
        let Some(copy) = kept.events.remove(&step) else {
            self.mirror(stream).event_awaited(stream, event);
            port.await_event(event, stream, flags)?;
            self.host_functions.awaits_no_more(event, step);
            return Ok(false);
        };
        self.mirror(stream).event_awaited(stream, copy);
        port.await_event(copy, stream, 0)?;
        self.mirrors.forget_event(copy);
        port.destroy_event(copy)?;
        Ok(true)
    }
}
