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
    /// The stream on which records are carried over; created when first needed.
    stream: Option<u64>,
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
                let stream = match kept.stream {
                    Some(stream) => stream,
                    None => *kept.stream.insert(port.create_stream(0)?),
                };
                let copy = port.create_event(0)?;
                port.await_event(*event, stream, 0)?;
                port.record(copy, stream, false)?;
                self.mirrors.event_copied(*event, copy);
                kept.events.insert(waiting, copy);
                self.host_functions.awaits_no_more(*event, waiting);
            }
        }
        Ok(Some(kept))
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
            self.mirrors.event_awaited(stream, event);
            port.await_event(event, stream, flags)?;
            self.host_functions.awaits_no_more(event, step);
            return Ok(false);
        };
        self.mirrors.event_awaited(stream, copy);
        port.await_event(copy, stream, 0)?;
        self.mirrors.forget_event(copy);
        port.destroy_event(copy)?;
        Ok(true)
    }
}
