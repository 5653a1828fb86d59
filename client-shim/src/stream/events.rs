//! The program's events, with the stream and the time of their last recording.

use std::collections::HashMap;
use std::sync::Mutex;

use hipr_abi::hipEventInterprocess;
use hipr_proto::{HipError, HipResult};

use crate::convert::Event;
use crate::worker::lock;

/// State of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventInfo {
    /// Flags of the event, `hipEvent*`.
    pub flags: u32,
    /// The stream on which the event was last recorded; None if it has not been.
    pub recorded: Option<u64>,
    /// Sequence number of its last recording (see `settled`).
    pub number: u64,
}

impl EventInfo {
    /// Creates the state of a new event. One that other processes have may have been recorded already: it is asked for in any
    /// case.
    pub fn new(flags: u32) -> Self {
        let recorded = (flags & hipEventInterprocess != 0).then_some(0);
        Self { flags, recorded, number: 0 }
    }

    /// Returns whether other processes can use the event.
    pub fn is_shared(&self) -> bool {
        self.flags & hipEventInterprocess != 0
    }
}

/// All events.
#[derive(Debug, Default)]
pub struct Events {
    table: Mutex<HashMap<Event, EventInfo>>,
}

impl Events {
    /// Adds an event.
    pub fn add(&self, event: Event, flags: u32) {
        lock(&self.table).insert(event, EventInfo::new(flags));
    }

    /// Removes an event.
    pub fn remove(&self, event: Event) {
        lock(&self.table).remove(&event);
    }

    /// Returns the state of an event; fails if there is no such event.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub fn info(&self, event: Event) -> HipResult<EventInfo> {
        lock(&self.table).get(&event).copied().ok_or(HipError::INVALID_HANDLE)
    }

    /// Notes that an event is recorded; returns its new state.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub(super) fn record(&self, event: Event, stream: u64, number: u64) -> HipResult<EventInfo> {
        let mut table = lock(&self.table);
        let info = table.get_mut(&event).ok_or(HipError::INVALID_HANDLE)?;
        (info.recorded, info.number) = (Some(stream), number);
        Ok(*info)
    }
}
