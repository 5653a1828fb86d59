//! The stream layer: decides the order in which calls take effect, without threads, clocks or sockets.
//!
//! A [`Call`] carries out one [`Command`](crate::command::Command), a [`WaitCall`] one wait. Both are state machines: [`Call::next`] does
//! the next phase and says what to do before the one after it. What they ask of the worker and of the process's memory goes through a
//! [`Port`], threads for host functions through [`Threads`]. Whoever drives them decides when
//! the next phase of which thread runs: the shim does all phases of a call at once (see `submit`), a simulation mixes those of many threads.
//!
//! ```text
//! Call:     capture → hold → prepare (mirror: send changes) → send → sent (→ wait → fetch)
//! WaitCall: check → host functions → before → wait, and ask what has changed → fetch and finish
//! ```
//!
//! * [`order`] is the rule of the legacy null stream.
//! * [`graphs`] has captures and graphs, [`host_functions`] has the commands that are queued behind functions of the program.
//! * [`mirror`] keeps memory that exists on both sides in agreement.
//! * `across` has the commands that concern another worker than that of their stream.
//! * `at_once` sends the most frequent commands in one phase where the phases before sending have nothing to do.
//! * [`pending`] knows what each stream and each event has pending, so that a synchronization asks the worker only where there is need.

pub mod call;
pub mod events;
pub mod graphs;
pub mod host_functions;
pub mod mirror;
pub mod order;
pub mod pending;
pub mod sync_mode;
pub mod wait;

mod across;
mod at_once;
mod kept;
mod next;
mod place;
mod times;
mod watches;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

use hipr_proto::{HipError, HipResult};

pub use call::Call;
pub use next::Next;
pub use wait::WaitCall;

use crate::convert::Event;
use crate::worker::{Port, Wait, lock};
use across::Awaited;
use events::{EventInfo, Events};
use graphs::{SessionGraphs, Sides};
use host_functions::{HostFunctions, Threads};
use kept::Kept;
use mirror::{Mirrors, Side};
use order::Order;
use pending::{Covered, Outcome, Pending, Said, Scope, State};
use sync_mode::SyncMode;

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
    /// The call of the program that the thread makes ([`crate::thread::call`]).
    pub call: u64,
    /// The thread's capture mode (`hipStreamCaptureMode`).
    pub capture_mode: i32,
    /// Whether the thread executes queued steps, and so must not wait for them.
    pub is_host_thread: bool,
}

/// The streams of a session with all of their state.
#[derive(Debug, Default)]
pub struct Streams {
    /// The implicit order between streams.
    pub order: Arc<Order>,
    /// The program's events.
    pub events: Events,
    /// Mirrored memory.
    pub mirrors: Mirrors,
    /// Graphs and captures.
    pub graphs: SessionGraphs,
    /// Host functions, and the commands queued behind them.
    pub host_functions: HostFunctions,
    pending: Pending,
    sync_mode: SyncMode,
    /// The events of which workers will tell steps of other workers' streams.
    awaited: Awaited,
    /// Records of events that steps mean.
    kept: Mutex<Kept>,
    /// For each device, the event that is put on its streams for their order; created when first needed.
    join_events: Mutex<HashMap<i32, Event>>,
    /// For each device, the stream on which its memory is read that other streams wait for; created when first needed.
    looking_streams: Mutex<HashMap<i32, u64>>,
    /// The streams for kernels of other devices in graphs.
    sides: Sides,
    /// How threads are to wait for streams (HIP API: hipSynchronizationPolicy), where the program said so.
    sync_policies: Mutex<HashMap<u64, i32>>,
}

/// Who answers a query.
enum Asked {
    /// The worker, asked so; with the watch that begins with it, and the work that is watched.
    Worker(Wait, Option<(u64, Covered)>),
    /// Nobody: what it is for is done.
    Nobody,
    /// Nobody: what it is for is not done, and the worker will tell when it is.
    Later,
}

impl Streams {
    /// Creates the state of a session without streams, in which synchronizations wait as this mode says.
    pub fn new(sync_mode: SyncMode) -> Self {
        Self::of_workers(sync_mode, Vec::new())
    }

    /// Does what [`new`](Self::new) does for a program with several workers: `workers` says of each device which one has it.
    pub fn of_workers(sync_mode: SyncMode, workers: Vec<usize>) -> Self {
        let order = Arc::default();
        Self { sync_mode, mirrors: Mirrors::new(&order, workers), order, ..Self::default() }
    }

    /// Returns mirrored memory as the worker of a stream has it.
    #[inline]
    fn mirror(&self, stream: u64) -> &Side {
        self.mirrors.of(|| self.order.device_of(stream))
    }

    /// Returns mirrored memory as the worker has it that is asked to wait.
    #[inline]
    fn mirror_of_wait(&self, wait: impl FnOnce() -> Wait) -> &Side {
        self.mirrors.of(|| match wait() {
            Wait::Device(device) => device,
            Wait::Stream(stream) | Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                self.order.device_of(stream)
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                self.events.info(event).map_or(0, |info| info.device)
            }
        })
    }

    /// Notes that work has been sent for a stream.
    #[inline]
    pub(crate) fn put(&self, stream: u64, outcome: Outcome) {
        self.pending.put(&self.order, stream, outcome);
    }

    /// Notes that a synchronous call on a stream has returned, so that the stream's work counts as finished.
    pub fn settle(&self, stream: u64) {
        self.pending.settle(&self.order, stream);
    }

    /// Notes that a call that waits for all streams of a device has returned.
    pub fn settle_all(&self, device: i32) {
        self.pending.settle_all(&self.order, device);
    }

    /// Returns whether a synchronous call followed all work of a stream.
    fn is_settled(&self, stream: u64) -> bool {
        self.pending.is_settled(&self.order, Scope::Stream(stream))
    }

    /// Returns whether a synchronous call followed the last recording of an event. What another process records is not known
    /// here.
    pub fn is_event_settled(&self, info: &EventInfo) -> bool {
        info.scope().is_some_and(|scope| self.pending.is_settled(&self.order, scope))
    }

    /// Notes that other devices than the first are used, or memory that other processes have: from now on all waits ask the worker,
    /// as what is pending is known only for one device and one process.
    pub fn share(&self) {
        self.pending.share();
    }

    /// Notes that a stream waits for what other processes do, which a lazy wait must not pass over.
    fn awaits_others(&self) {
        if self.sync_mode != SyncMode::Strict {
            self.share();
        }
    }

    /// Forgets all work, because the device was reset.
    pub fn forget_work(&self) {
        self.pending.clear();
        lock(&self.join_events).clear();
        *lock(&self.kept) = Kept::default();
        lock(&self.looking_streams).clear();
        self.sides.clear();
    }

    /// Returns whether nothing is pending that could still fail.
    pub fn is_decided(&self) -> bool {
        self.host_functions.is_idle() && self.pending.look(&self.order, Scope::Device(0)).0 < State::Open
    }

    /// Returns what is pending of the work that a wait is for, and what a wait covers that is sent after this.
    fn look(&self, wait: Wait) -> (State, Covered) {
        let scope = match wait {
            Wait::Device(device) => Scope::Device(device),
            Wait::Stream(stream) | Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                Scope::Stream(stream)
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                match self.events.info(event).ok().and_then(|info| info.scope()) {
                    Some(scope) => scope,
                    None => return (State::Unknown, Covered::default()),
                }
            }
        };
        self.pending.look(&self.order, scope)
    }

    /// Makes a wait unnecessary if nothing that it is for can still show the program something or fail, or, where it `may_run_ahead`, if
    /// that is so but for errors and the [mode](SyncMode) is lazy: sends what is buffered, and where work is pending, makes the worker
    /// wait for it before it does what is sent later. Otherwise returns what the wait covers, which is to be passed to [`Pending::end`]
    /// when the wait is answered.
    ///
    /// # Errors
    /// A lost connection.
    fn pass(&self, port: &dyn Port, wait: Wait, may_run_ahead: bool) -> HipResult<Option<Covered>> {
        let (state, covered) = self.look(wait);
        let is_decided = state < State::Open && port.is_quiet();
        let is_passed = is_decided || may_run_ahead && state <= State::Open && self.runs_ahead(port);
        if !is_passed {
            return Ok(Some(covered));
        }
        match state {
            State::Nothing => port.flush()?,
            _ => port.wait_in_order(wait)?,
        }
        self.ended(wait, &covered);
        Ok(None)
    }

    /// Returns whether the program may go on without knowing whether its work is over: it can see nothing of it, and is not too far ahead.
    fn runs_ahead(&self, port: &dyn Port) -> bool {
        self.sync_mode != SyncMode::Strict
            && !self.pending.has_orphans()
            && self.mirrors.show_nothing()
            && self.sync_mode.allows(port.ahead())
    }

    /// Notes that a wait is over, with success.
    fn ended(&self, wait: Wait, covered: &Covered) {
        // If the event was recorded anew meanwhile, nobody knows which record the worker has waited for.
        let is_certain =
            !matches!(wait, Wait::Event(_) | Wait::QueryEvent(_)) || self.look(wait).1 == *covered;
        if is_certain {
            self.pending.end(covered);
        }
    }

    /// Returns what a query is that is about to ask the worker: what the worker has told answers it, or it begins a watch, where the worker
    /// can tell.
    fn watch(&self, port: &dyn Port, query: Wait) -> Asked {
        if !port.can_watch() {
            return Asked::Worker(query, None);
        }
        port.hear();
        let (state, covered) = self.look(query);
        if state != State::Open {
            // What others take part in is known to the worker alone; the rest is asked for the sake of its errors.
            return Asked::Worker(query, None);
        }
        match self.pending.said(query, &covered) {
            Said::Done if port.is_quiet() => return Asked::Nobody,
            Said::NotDone => return Asked::Later,
            Said::Done | Said::Nothing => {}
        }
        let Some(number) = self.pending.begin_watch(query, &covered) else {
            return Asked::Worker(query, None);
        };
        let watch = match query {
            Wait::QueryStream(stream) => Wait::WatchStream(stream, number),
            Wait::QueryEvent(event) => Wait::WatchEvent(event, number),
            other => other,
        };
        Asked::Worker(watch, Some((number, covered)))
    }

    /// Handles the answer to a query that began a watch.
    fn watched(&self, query: Wait, (number, covered): &(u64, Covered), answer: HipResult<()>) {
        let is_event = matches!(query, Wait::QueryEvent(_));
        // If the event was recorded anew meanwhile, nobody knows which record the worker was asked about.
        let is_certain = !is_event || self.look(query).1 == *covered;
        if is_certain && answer == Err(HipError::NOT_READY) {
            self.pending.open_watch(*number);
        } else {
            self.pending.end_watch(*number, is_certain && answer.is_ok());
        }
    }

    /// Handles that the worker tells of the end of a watch: its work is done, or a query would return this error.
    pub fn watch_is_over(&self, number: u64, error: Option<HipError>) {
        self.awaited.is_over(number);
        self.pending.end_watch(number, error.is_none());
    }

    /// Removes a stream that the program destroys from the captures. Everything else about it is known until
    /// [`Command::DestroyStream`](crate::command::Command::DestroyStream) is executed, behind the work that it still has.
    pub fn forget_stream(&self, stream: u64) {
        lock(&self.sync_policies).remove(&stream);
        self.graphs.forget_stream(stream);
    }

    /// Makes the worker's work on a stream follow that of the streams which it and the legacy null stream wait for, although nothing else
    /// is put on it: a host function comes behind that work, and the worker does not know of the function; nor of what this process
    /// carries out by itself.
    fn join_legacy(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if !self.order.is_blocking(stream) {
            return Ok(());
        }
        let device = self.order.device_of(stream);
        let event = match lock(&self.join_events).entry(device) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => *place.insert(port.create_event(device)?),
        };
        // Whoever records it: nobody waits for the event, but for the stream.
        port.record(event, stream, false)?;
        self.put(stream, Outcome::Decided);
        Ok(())
    }

    /// Returns how threads are to wait for a stream.
    pub fn sync_policy(&self, stream: u64) -> i32 {
        lock(&self.sync_policies).get(&stream).copied().unwrap_or(hipr_abi::hipSyncPolicyAuto)
    }

    /// Sets how threads are to wait for a stream.
    pub fn set_sync_policy(&self, stream: u64, policy: i32) {
        lock(&self.sync_policies).insert(stream, policy);
    }

    /// Returns a stream that follows no other, to read memory of a device while streams wait for what it will have.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn looking_stream(&self, port: &dyn Port, device: i32) -> HipResult<u64> {
        match lock(&self.looking_streams).entry(device) {
            Entry::Occupied(entry) => Ok(*entry.get()),
            Entry::Vacant(entry) => Ok(*entry.insert(self.create_own_stream(port, device)?)),
        }
    }

    /// Creates a non-blocking stream for work of the client library's own.
    fn create_own_stream(&self, port: &dyn Port, device: i32) -> HipResult<u64> {
        let stream = port.create_stream(device)?;
        self.order.add(stream, false, device);
        Ok(stream)
    }

    /// Creates an event of this library, for commands that are carried out like the program's.
    fn create_own_event(&self, port: &dyn Port, device: i32) -> HipResult<Event> {
        let event = port.create_event(device)?;
        self.events.add(event, 0, device);
        Ok(event)
    }

    /// Notes that a command of a stream was carried out by this process: what comes behind it comes behind what is before it.
    fn carried_out_here(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if self.pending.others_before(&self.order, stream) { self.join_legacy(port, stream) } else { Ok(()) }
    }

    /// Notes that an event is about to be recorded behind the present work of a stream; returns its new state. When it has been sent
    /// [`end_record`](Self::end_record) has to follow.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is no such event.
    fn begin_record(&self, event: Event, stream: u64) -> HipResult<EventInfo> {
        let info = self.events.begin_record(event, stream)?;
        self.pending.forget_event(event);
        self.mirror(stream).event_recorded(&self.order, event, stream);
        Ok(info)
    }

    /// Notes that the recording of an event has been sent.
    fn end_record(&self, event: Event, stream: u64) {
        self.events.end_record(event, self.pending.record(&self.order, stream));
        // A query may have asked for the record before, and may have been sent behind this.
        self.pending.forget_event(event);
    }

    /// Notes that an event will be recorded by a command that is queued.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle`: there is no such event.
    fn expect_record(&self, event: Event, stream: u64) -> HipResult<()> {
        self.events.expect(event, stream)?;
        self.mirror(stream).event_recorded(&self.order, event, stream);
        Ok(())
    }
}
