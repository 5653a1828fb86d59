//! A call that waits for work, or queries whether it has finished; afterwards, fetches what the device wrote. It asks the worker only
//! if something is pending that can still show the program something, or fail.

use hipr_proto::{HipError, HipResult};

use super::mirror::{Target, Waited};
use super::pending::Covered;
use super::{Asked, Caller, Next, Streams};
use crate::convert::Event;
use crate::worker::{Port, Wait};

/// The origin of a wait.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A wait or query of the program.
    Program(Wait),
    /// A wait for what the worker has to do, within another call.
    Within(Wait),
    /// A wait for the host functions of a stream, and the commands behind them, at the end of another call.
    Functions(u64),
}

#[derive(Debug)]
enum Phase {
    /// Checks whether captures allow the wait, behind queued steps for streams, as HIP does.
    Check,
    Gate,
    Gated,
    Before,
    /// The worker was asked: what has to be fetched then, and what is over if it was a wait.
    Waited(Waited, Option<Covered>),
    /// The same, of which a part is being fetched.
    Fetching(Waited, Option<Covered>),
}

/// A call that waits or queries.
#[derive(Debug)]
pub struct WaitCall {
    kind: Kind,
    phase: Phase,
    answer: Option<HipResult<()>>,
    /// The watch that began with the query, and the work that is watched.
    watch: Option<(u64, Covered)>,
}

impl WaitCall {
    /// Creates the call for a wait or query of the program.
    pub fn new(wait: Wait) -> Self {
        // A stream that is synchronized is checked when its functions have returned.
        let phase = if matches!(wait, Wait::Stream(_)) { Phase::Gate } else { Phase::Check };
        Self { kind: Kind::Program(wait), phase, answer: None, watch: None }
    }

    /// Creates the wait for a stream at the end of a synchronous call.
    pub fn end_of_call(stream: u64) -> Self {
        Self { kind: Kind::Within(Wait::Stream(stream)), phase: Phase::Before, answer: None, watch: None }
    }

    /// Creates the wait, as a part of another call, for all work of a device that was sent to the worker.
    pub fn of_worker(device: i32) -> Self {
        Self { kind: Kind::Within(Wait::Device(device)), phase: Phase::Before, answer: None, watch: None }
    }

    /// Creates the query for an event of the library.
    pub fn of_library(event: Event) -> Self {
        Self { kind: Kind::Within(Wait::QueryEvent(event)), phase: Phase::Before, answer: None, watch: None }
    }

    /// Creates the wait for the host functions of a stream, and the commands behind them, at the end of a synchronous call.
    pub fn functions(stream: u64) -> Self {
        Self { kind: Kind::Functions(stream), phase: Phase::Gate, answer: None, watch: None }
    }

    /// Passes the result of the action that [`Next`] asked for.
    pub fn resume(&mut self, result: HipResult<()>) {
        self.answer = Some(result);
    }

    /// Executes the next phase.
    pub fn next(&mut self, streams: &Streams, caller: &Caller<'_>) -> Next {
        let next = if self.is_first(streams) {
            self.ask_at_once(streams, caller)
        } else {
            self.step(streams, caller)
        };
        next.unwrap_or_else(|error| Next::Done(Err(error)))
    }

    /// Returns whether the phases before the wait have nothing to do, as with most calls.
    fn is_first(&self, streams: &Streams) -> bool {
        matches!(self.phase, Phase::Check | Phase::Gate) && streams.are_unhindered()
    }

    /// Does all phases before the wait, if [`is_first`](Self::is_first).
    fn ask_at_once(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        match self.wait() {
            Wait::Device(_) | Wait::Stream(_) => streams.host_functions.take_error()?,
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                if streams.events.info(event)?.recorded.is_none() {
                    return Ok(Next::Done(Ok(())));
                }
            }
            Wait::QueryStream(_) | Wait::WatchStream(..) => {}
        }
        self.ask(streams, caller.port)
    }

    /// Asks the worker, unless nothing is pending that can still show the program something or fail.
    fn ask(&mut self, streams: &Streams, port: &dyn Port) -> HipResult<Next> {
        let wait = self.wait();
        let target = match wait {
            Wait::Device(device) => Target::Device(device),
            Wait::Stream(stream) | Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                Target::Stream(stream)
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => Target::Event(event),
        };
        let mirrors = streams.mirror_of_wait(|| wait);
        let mut waited = mirrors.before_wait(&streams.order, target);
        let Some(covered) = streams.pass(port, wait, true)? else {
            return self.fetch(streams, port, mirrors.instead_of_wait(), None);
        };
        let mut asked = settled(streams, wait);
        if asked.is_query() {
            match streams.watch(port, asked) {
                Asked::Nobody => {
                    waited.says_nothing_of_pushes();
                    return self.fetch(streams, port, waited, None);
                }
                Asked::Later => {
                    port.flush()?;
                    return Err(HipError::NOT_READY);
                }
                Asked::Worker(query, watch) => (asked, self.watch) = (query, watch),
            }
        }
        let next = mirrors.wait(port, asked, &mut waited)?;
        // A query does not tell of errors.
        self.phase = Phase::Waited(waited, (!asked.is_query()).then_some(covered));
        Ok(next)
    }

    /// Fetches what the device wrote, step by step, and ends the call.
    fn fetch(
        &mut self,
        streams: &Streams,
        port: &dyn Port,
        mut waited: Waited,
        covered: Option<Covered>,
    ) -> HipResult<Next> {
        if let Some(next) = streams.mirror_of_wait(|| self.wait()).fetch(port, &mut waited)? {
            self.phase = Phase::Fetching(waited, covered);
            return Ok(next);
        }
        covered.iter().for_each(|covered| streams.ended(self.wait(), covered));
        Ok(Next::Done(Ok(())))
    }

    fn wait(&self) -> Wait {
        match self.kind {
            Kind::Program(wait) | Kind::Within(wait) => wait,
            Kind::Functions(stream) => Wait::Stream(stream),
        }
    }

    fn then(&mut self, phase: Phase) -> HipResult<Next> {
        self.phase = phase;
        Ok(Next::Continue)
    }

    fn step(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        match std::mem::replace(&mut self.phase, Phase::Before) {
            Phase::Check => self.check(streams, caller),
            Phase::Gate => {
                let functions = &streams.host_functions;
                let steps = match self.wait() {
                    _ if caller.is_host_thread => Vec::new(),
                    Wait::Device(device) => functions.all_of(&streams.order, device),
                    Wait::Stream(stream) => functions.included(&streams.order, stream),
                    Wait::Event(event) => functions.recording(event),
                    _ => Vec::new(),
                };
                self.phase = Phase::Gated;
                if steps.is_empty() { Ok(Next::Continue) } else { Ok(Next::WaitForSteps(steps)) }
            }
            Phase::Gated => {
                if matches!(self.wait(), Wait::Device(_) | Wait::Stream(_)) {
                    streams.host_functions.take_error()?;
                }
                match self.kind {
                    Kind::Functions(_) => return Ok(Next::Done(Ok(()))),
                    Kind::Program(Wait::Stream(stream)) => streams.graphs.check_stream(caller, stream)?,
                    _ => {}
                }
                self.then(Phase::Before)
            }
            Phase::Before => self.ask(streams, caller.port),
            Phase::Waited(waited, covered) => {
                let answer = self.answer.take().unwrap_or(Ok(()));
                if let Some(watch) = self.watch.take() {
                    streams.watched(self.wait(), &watch, answer);
                }
                match answer {
                    Ok(()) => self.fetch(streams, caller.port, waited, covered),
                    Err(error) => {
                        streams.mirror_of_wait(|| self.wait()).forget(&waited);
                        Err(error)
                    }
                }
            }
            Phase::Fetching(waited, covered) => self.fetch(streams, caller.port, waited, covered),
        }
    }

    fn check(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        let (graphs, functions) = (&streams.graphs, &streams.host_functions);
        match self.wait() {
            Wait::Device(_) => graphs.check_none(HipError::STREAM_CAPTURE_UNSUPPORTED)?,
            Wait::Stream(stream) => graphs.check_stream(caller, stream)?,
            Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                graphs.check_stream(caller, stream)?;
                if !functions.included(&streams.order, stream).is_empty() {
                    return Err(HipError::NOT_READY);
                }
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                let info = streams.events.info(event)?;
                graphs.check_event(caller, event)?;
                // An event that was never recorded has happened.
                if info.recorded.is_none() {
                    return Ok(Next::Done(Ok(())));
                }
                if self.wait().is_query() && functions.is_to_be_recorded(event) {
                    return Err(HipError::NOT_READY);
                }
            }
        }
        self.then(Phase::Gate)
    }
}

/// Replaces a query by a wait if the work counts as finished.
fn settled(streams: &Streams, wait: Wait) -> Wait {
    let is_settled =
        |event: Event| streams.events.info(event).is_ok_and(|info| streams.is_event_settled(&info));
    match wait {
        Wait::QueryStream(stream) if streams.is_settled(stream) => Wait::Stream(stream),
        Wait::QueryEvent(event) if is_settled(event) => Wait::Event(event),
        other => other,
    }
}
