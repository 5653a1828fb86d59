//! The stream layer: decides the order in which calls take effect, without threads, clocks or sockets.
//!
//! A [`Call`] carries out one [`Command`](crate::command::Command), a [`WaitCall`] one wait. Both are state machines: [`Call::next`] does
//! the next phase and says what to do before the one after it. What they ask of the worker and of the process's memory goes through a
//! [`Port`], threads for host functions through [`Threads`]. Whoever drives them decides when
//! the next phase of which thread runs: the shim does all phases of a call at once (see `submit`), a simulation mixes those of many threads.
//!
//! ```text
//! Call:     capture → hold → prepare (mirror: send changes) → send → sent (→ wait → fetch)
//! WaitCall: check → host functions → before → wait → fetch and finish
//! ```
//!
//! * [`order`] is the rule of the legacy null stream.
//! * [`graphs`] has captures and graphs, [`host_functions`] has the commands that are queued behind functions of the program.
//! * [`mirror`] keeps memory that exists on both sides in agreement.
//! * `at_once` sends the most frequent commands in one phase where the phases before sending have nothing to do.
//! * `settled` knows which work counts as finished by HIP's documentation, although nobody has waited for it.

pub mod call;
pub mod events;
pub mod graphs;
pub mod host_functions;
pub mod mirror;
pub mod order;
pub mod wait;

mod at_once;
mod place;
mod settled;

use std::sync::Mutex;

use hipr_proto::HipResult;

pub use call::{Call, Next};
pub use wait::WaitCall;

use crate::convert::Event;
use crate::worker::{Port, lock};
use events::{EventInfo, Events};
use graphs::SessionGraphs;
use host_functions::{HostFunctions, Threads};
use mirror::Mirrors;
use order::Order;
use settled::Settled;

/// The thread that makes a call, with the worker, the memory and the threads that it uses.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The worker and the process's memory.
    pub port: &'a dyn Port,
    /// Starter of threads for host functions.
    pub threads: &'a dyn Threads,
    /// Number of the thread.
    pub thread: u64,
    /// The thread's current device.
    pub device: i32,
    /// The thread's capture mode (`hipStreamCaptureMode`).
    pub capture_mode: i32,
    /// Whether the thread executes queued steps, and so must not wait for them.
    pub is_host_thread: bool,
}

/// The streams of a session with all of their state.
#[derive(Debug, Default)]
pub struct Streams {
    /// The implicit order between streams.
    pub order: Order,
    /// The program's events.
    pub events: Events,
    /// Mirrored memory.
    pub mirrors: Mirrors,
    /// Graphs and captures.
    pub graphs: SessionGraphs,
    /// Host functions, and the commands queued behind them.
    pub host_functions: HostFunctions,
    settled: Settled,
    /// Event that is put on streams for their order; created when first needed.
    join_event: Mutex<Option<Event>>,
}

impl Streams {
    /// Notes that work is put on a stream.
    #[inline]
    pub fn put(&self, stream: u64) {
        self.settled.put(stream);
    }

    /// Notes that a synchronous call on a stream has returned, so that the stream's work counts as finished.
    pub fn settle(&self, stream: u64) {
        self.settled.settle(stream);
    }

    /// Notes that a call that waits for all streams has returned.
    pub fn settle_all(&self) {
        self.settled.settle_all();
    }

    /// Returns whether a synchronous call followed all work of a stream.
    pub fn is_settled(&self, stream: u64) -> bool {
        self.settled.is_settled(&self.order, stream)
    }

    /// Returns whether a synchronous call followed the last recording of an event. What another process records is not known
    /// here.
    pub fn is_event_settled(&self, info: &EventInfo) -> bool {
        let covers = |stream| self.settled.covers(&self.order, stream, info.number);
        !info.is_shared() && info.recorded.is_some_and(covers)
    }

    /// Removes a stream that the program destroys from the captures. Everything else about it is known until
    /// [`Command::DestroyStream`](crate::command::Command::DestroyStream) is executed, behind the work that it still has.
    pub fn forget_stream(&self, stream: u64) {
        self.graphs.forget_stream(stream);
    }

    /// Makes the worker's work on a stream follow that of the streams which it and the legacy null stream wait for, although nothing else
    /// is put on it: a host function comes behind that work, and the worker does not know of the function.
    fn join_legacy(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if !self.order.is_blocking(stream) {
            return Ok(());
        }
        let mut event = lock(&self.join_event);
        let event = match *event {
            Some(event) => event,
            None => *event.insert(port.create_event()?),
        };
        // Whoever records it: nobody waits for the event, but for the stream.
        port.record(event, stream, false)
    }

    /// Notes that an event is recorded behind the present work of a stream; returns its new state.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is no such event.
    fn note_recorded(&self, event: Event, stream: u64) -> HipResult<EventInfo> {
        let info = self.events.record(event, stream, self.settled.now())?;
        self.mirrors.event_recorded(&self.order, event, stream);
        Ok(info)
    }
}
