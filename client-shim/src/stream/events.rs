//! The program's events, with the stream and the place of their last recording.

use std::collections::HashMap;
use std::sync::Mutex;

use hipr_abi::hipEventInterprocess;
use hipr_proto::{HipError, HipResult};

use super::pending::{Mark, Scope};
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
}

impl EventInfo {
    /// Creates the state of a new event of a device. One that other processes have may have been recorded already: it is asked for in any
    /// case.
    pub fn new(flags: u32, device: i32) -> Self {
        let recorded = (flags & hipEventInterprocess != 0).then_some(0);
        Self { flags, device, recorded, mark: None, sending: 0, is_muddled: false }
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
    table: Mutex<HashMap<Event, EventInfo>>,
}

impl Events {
    /// Adds an event of a device.
    pub fn add(&self, event: Event, flags: u32, device: i32) {
        lock(&self.table).insert(event, EventInfo::new(flags, device));
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

    /// Notes that an event will be recorded on a stream, by a command that is queued.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub(super) fn expect(&self, event: Event, stream: u64) -> HipResult<()> {
        self.change(event, |info| (info.recorded, info.mark) = (Some(stream), None))
    }

    /// Notes that the recording of an event is about to be sent; returns the event's new state.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is none of this handle.
    pub(super) fn begin_record(&self, event: Event, stream: u64) -> HipResult<EventInfo> {
        self.change(event, |info| {
            (info.recorded, info.mark) = (Some(stream), None);
            info.sending += 1;
            info.is_muddled = info.sending > 1;
            *info
        })
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

    fn change<T>(&self, event: Event, change: impl FnOnce(&mut EventInfo) -> T) -> HipResult<T> {
        lock(&self.table).get_mut(&event).map(change).ok_or(HipError::INVALID_HANDLE)
    }
}
