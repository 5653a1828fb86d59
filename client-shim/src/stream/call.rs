//! A call that puts a command on a stream: with what it has in common with `at_once`, **the** only way to the worker for all work
//! that has an order.

use hipr_abi::hipEventWaitExternal;
use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};
use smallvec::SmallVec;

use super::at_once::{outcome_of_copy, send_copy, send_fill, settles};
use super::events::EventInfo;
use super::mirror::{Place, Target, Waited};
use super::pending::{Covered, Outcome, Scope, State};
use super::{Caller, Next, Streams};
use crate::command::{Arguments, Command, HostFunction, MemoryCopy, Node, Pattern, Transfer};
use crate::convert::Event;
use crate::worker::{Port, Wait};

/// The command of a call: its own, or that of a graph's node.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "launches are the most frequent commands and cost no allocation"
)]
enum Work {
    Own(Command),
    Node(Node),
}

impl Work {
    fn command(&self) -> &Command {
        match self {
            Self::Own(command) => command,
            Self::Node(node) => node,
        }
    }

    fn node(&self) -> Node {
        match self {
            Self::Own(command) => Node::new(command.clone()),
            Self::Node(node) => node.clone(),
        }
    }
}

/// The origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A call of the program.
    Program,
    /// A launch of a graph.
    Graph,
    /// A queue behind host functions: the number of the step.
    Held(u64),
}

impl Origin {
    /// Returns the number of the step.
    fn step(self) -> Option<u64> {
        if let Self::Held(step) = self { Some(step) } else { None }
    }
}

/// How far a command is that this process carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Here {
    /// It has not been looked at.
    New,
    /// It waits for the work that is before it.
    Waits,
    /// That is over.
    HasWaited,
}

/// The next phase of a call.
#[derive(Debug)]
enum Phase {
    Capture,
    Hold,
    /// The steps for which the command waits have finished.
    Gated,
    Prepare,
    Send(Box<Prepared>),
    /// The uses of mirrored memory have been sent.
    Sent,
    /// This event of the library has happened, behind which a command is that concerns another worker.
    Awaited(Event),
    /// The command has been sent, and the call has to wait for it; a host function is called afterwards.
    BeforeWait,
    /// The worker has finished what the call waits for: what is to be fetched, and what is over.
    Waited(Waited, Covered),
    /// The same, of which a part is being fetched.
    Fetching(Waited, Covered),
    /// The host function has returned, or bytes that the program does not rely on have arrived: what is over then.
    Returned(Waited, Covered),
}

/// A command that can be sent.
#[derive(Debug)]
enum Prepared {
    /// A launch; with new arguments if host addresses had to be replaced by device addresses.
    Kernel(Option<Box<Arguments>>),
    /// A copy from, to or within the device.
    Copy(Transfer),
    /// A fill of device memory from this address on.
    Fill(u64),
    /// A part of a graph, by its handle on the worker.
    Graph(u64),
}

/// A call that puts a command on a stream.
#[derive(Debug)]
pub struct Call {
    work: Work,
    stream: u64,
    origin: Origin,
    /// Whether the program relies on the command being finished when the call returns, as for copies.
    is_blocking: bool,
    phase: Phase,
    /// Whether the command writes to mirrored memory.
    is_mirrored: bool,
    /// Whether the command reads or writes memory that worker and process both map.
    is_shared: bool,
    /// Whether such a write is announced, so that other threads do not take mirrored memory for idle.
    is_announced: bool,
    /// Whether the program may change the mirrored memory that the command reads when the call returns.
    is_read_at_once: bool,
    /// Whether, as HIP documents, the stream has finished when the call returns.
    settles: bool,
    /// Whether a command that this process carries out waits, or has waited, for the work that is before it.
    here: Here,
    /// Nodes to execute after this command, the next one last: the rest of a part of a graph whose copy on the worker is
    /// outdated.
    rest: Vec<Node>,
    answer: Option<HipResult<()>>,
}

impl Call {
    #[inline]
    fn with(work: Work, stream: u64, origin: Origin, is_blocking: bool, phase: Phase) -> Self {
        Self {
            work,
            stream,
            origin,
            is_blocking,
            phase,
            is_mirrored: false,
            is_shared: false,
            is_announced: false,
            is_read_at_once: false,
            settles: false,
            here: Here::New,
            rest: Vec::new(),
            answer: None,
        }
    }

    /// Creates the call for a command of the program. `is_blocking` says whether the program relies on the command being over
    /// when the call returns.
    #[inline]
    pub fn new(command: Command, stream: u64, is_blocking: bool) -> Self {
        Self::with(Work::Own(command), stream, Origin::Program, is_blocking, Phase::Capture)
    }

    /// Creates the call for a node of a launched graph, on a stream that does not capture.
    pub fn node(node: Node, stream: u64) -> Self {
        Self::with(Work::Node(node), stream, Origin::Graph, false, Phase::Hold)
    }

    /// Creates the call for a node of a launched graph, which is recorded if the stream captures.
    pub fn captured_node(node: Node, stream: u64) -> Self {
        Self::with(Work::Node(node), stream, Origin::Graph, false, Phase::Capture)
    }

    /// Creates the call that carries out a step: a command that was queued behind host functions, which have finished.
    pub fn held(step: u64, command: Command, stream: u64) -> Self {
        Self::with(Work::Own(command), stream, Origin::Held(step), false, Phase::Prepare)
    }

    /// Returns the stream on which the command is put.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// Passes the result of the action that [`Next`] asked for.
    pub fn resume(&mut self, result: HipResult<()>) {
        self.answer = Some(result);
    }

    /// Executes the next phase.
    pub fn next(&mut self, streams: &Streams, caller: &Caller<'_>) -> Next {
        let is_simple = matches!(self.phase, Phase::Capture)
            && streams.are_unhindered()
            && !streams.crosses(caller.port, self.work.command(), self.stream);
        let next = if is_simple { self.at_once(streams, caller) } else { self.step(streams, caller) };
        let next = next.unwrap_or_else(|error| Next::Done(Err(error)));
        if self.is_announced && matches!(next, Next::Done(_)) {
            self.is_announced = false;
            streams.mirror(self.stream).retract();
        }
        next
    }

    /// Does all phases up to the first wait, as those before sending have nothing to do.
    fn at_once(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        let Self { stream, is_blocking, .. } = *self;
        let sent = match self.work.command() {
            Command::Kernel(kernel) => streams.launch_at_once(caller.port, kernel, stream),
            Command::Copy(copy) => streams.copy_at_once(caller.port, copy, stream, is_blocking),
            Command::Fill(fill) => streams.fill_at_once(caller.port, fill, stream),
            _ => None,
        };
        match sent {
            Some(result) => result.map(|()| Next::Done(Ok(()))),
            None => self.prepare_and_send(streams, caller),
        }
    }

    /// Does the phases up to the first wait one after the other.
    fn prepare_and_send(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        match self.work.command() {
            Command::Host(_) => return self.hold(streams, caller),
            // Events that are recorded are looked up once.
            Command::Record(_) => {}
            _ if self.check(streams)? => return Ok(Next::Done(Ok(()))),
            _ => {}
        }
        match self.prepare(streams, caller.port)? {
            Some(prepared) => self.send(streams, caller.port, prepared),
            None => self.end(streams),
        }
    }

    /// Announces a write to mirrored memory, until it has been sent or the call ends.
    fn announce(&mut self, streams: &Streams) {
        self.is_mirrored = true;
        if !self.is_announced {
            self.is_announced = true;
            streams.mirror(self.stream).announce();
        }
    }

    fn then(&mut self, phase: Phase) -> HipResult<Next> {
        self.phase = phase;
        Ok(Next::Continue)
    }

    fn step(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        match std::mem::replace(&mut self.phase, Phase::Capture) {
            Phase::Capture => {
                if self.capture(streams)? {
                    return Ok(Next::Done(Ok(())));
                }
                self.then(Phase::Hold)
            }
            Phase::Hold => self.hold(streams, caller),
            Phase::Gated => {
                streams.host_functions.take_error()?;
                self.then(Phase::Prepare)
            }
            Phase::Prepare if matches!(self.work.command(), Command::Host(_)) => {
                streams.join_legacy(caller.port, self.stream)?;
                self.then(Phase::BeforeWait)
            }
            Phase::Prepare
                if self.here == Here::New
                    && streams.crosses(caller.port, self.work.command(), self.stream) =>
            {
                let step = self.origin.step();
                let mark = streams.mark_before(caller.port, self.work.command(), self.stream, step)?;
                self.phase = Phase::Awaited(mark);
                Ok(Next::CallHost(HostFunction::Await(mark), Ok(())))
            }
            Phase::Awaited(mark) => {
                streams.forget_mark(caller.port, mark)?;
                self.answer.take().unwrap_or(Ok(()))?;
                self.here = Here::HasWaited;
                streams.carry_across(caller.port, self.work.command(), self.stream)?;
                streams.carried_out_here(caller.port, self.stream)?;
                streams.put(self.stream, Outcome::Open);
                self.end(streams)
            }
            Phase::Prepare
                if self.origin.step().is_some() && self.comes_here_later(streams, caller.port)? =>
            {
                self.here = Here::Waits;
                self.then(Phase::BeforeWait)
            }
            Phase::Prepare => match self.prepare(streams, caller.port)? {
                Some(prepared) => self.then(Phase::Send(Box::new(prepared))),
                None => self.end(streams),
            },
            Phase::Send(prepared) => self.send(streams, caller.port, *prepared),
            Phase::Sent => {
                if std::mem::take(&mut self.is_announced) {
                    streams.mirror(self.stream).sent(self.stream);
                }
                if self.is_blocking {
                    // The program may look at the destination when the call returns, and change the source if the device has it as well.
                    return self.then(Phase::BeforeWait);
                }
                self.end(streams)
            }
            Phase::BeforeWait => {
                let (wait, target) = (Wait::Stream(self.stream), Target::Stream(self.stream));
                let mut waited = streams.mirror(self.stream).before_wait(&streams.order, target);
                let asked = match streams.pass(caller.port, wait, false) {
                    Ok(Some(covered)) => {
                        let next = streams.mirror(self.stream).wait(caller.port, wait, &mut waited);
                        self.phase = Phase::Waited(waited, covered);
                        next
                    }
                    passed => {
                        self.phase =
                            Phase::Waited(streams.mirror(self.stream).instead_of_wait(), Covered::default());
                        passed.map(|_| Next::Continue)
                    }
                };
                asked.or_else(|error| {
                    self.answer = Some(Err(error));
                    Ok(Next::Continue)
                })
            }
            Phase::Waited(waited, covered) => match self.answer.take().unwrap_or(Ok(())) {
                Ok(()) => self.fetch(streams, caller.port, waited, covered),
                Err(error) => {
                    streams.mirror(self.stream).forget(&waited);
                    self.fetched(streams, Err(error), &covered)
                }
            },
            Phase::Fetching(waited, covered) => self.fetch(streams, caller.port, waited, covered),
            Phase::Returned(waited, covered) => {
                self.answer.take().unwrap_or(Ok(()))?;
                streams.mirror(self.stream).over(&waited);
                streams.pending.end(&covered);
                self.end(streams)
            }
        }
    }

    /// Fetches what the device wrote, step by step.
    fn fetch(
        &mut self,
        streams: &Streams,
        port: &dyn Port,
        mut waited: Waited,
        covered: Covered,
    ) -> HipResult<Next> {
        match streams.mirror(self.stream).fetch(port, &mut waited) {
            Ok(Some(next)) => {
                self.phase = Phase::Fetching(waited, covered);
                Ok(next)
            }
            Ok(None) => self.fetched(streams, Ok(()), &covered),
            Err(error) => self.fetched(streams, Err(error), &covered),
        }
    }

    /// Goes on when the wait is over and what the device wrote is there, or one of the two has failed.
    fn fetched(&mut self, streams: &Streams, result: HipResult<()>, covered: &Covered) -> HipResult<Next> {
        if result.is_ok() {
            streams.pending.end(covered);
        }
        if let Command::Host(function) = self.work.command() {
            self.phase = Phase::Returned(Waited::default(), Covered::default());
            return Ok(Next::CallHost(*function, result));
        }
        result?;
        if self.here == Here::Waits {
            self.here = Here::HasWaited;
            return self.then(Phase::Prepare);
        }
        self.end(streams)
    }

    /// Ends the call: the command is finished.
    fn end(&mut self, streams: &Streams) -> HipResult<Next> {
        if let Some(next) = self.rest.pop() {
            self.work = Work::Node(next);
            (self.is_mirrored, self.is_shared, self.settles) = (false, false, false);
            return self.then(Phase::Prepare);
        }
        if self.settles && self.origin == Origin::Program {
            streams.settle(self.stream);
        }
        Ok(Next::Done(Ok(())))
    }

    /// Records the command if the stream captures.
    fn capture(&self, streams: &Streams) -> HipResult<bool> {
        let (graphs, stream) = (&streams.graphs, self.stream);
        if !graphs.has_captures() {
            return Ok(false);
        }
        let record = || graphs.record(stream, || self.work.node());
        match self.work.command() {
            _ if self.origin == Origin::Graph => record(),
            Command::Copy(copy) => copy.check_shape().and_then(|_| record()),
            Command::Kernel(_) | Command::Fill(_) => record(),
            Command::Host(HostFunction::Plain(..) | HostFunction::Value(_)) => record(),
            Command::Host(HostFunction::Callback(..)) => graphs.check_callback(stream).map(|()| false),
            Command::Record(event) => {
                streams.events.info(*event)?;
                graphs.record_event(*event, stream)
            }
            Command::Wait(event, flags) => {
                streams.events.info(*event)?;
                // HIP API: a node of the graph, which waits for what is recorded when it is launched.
                if *flags == hipEventWaitExternal
                    && graphs.record(stream, || Node::new(Command::Wait(*event, 0)))?
                {
                    return Ok(true);
                }
                graphs.wait_event(stream, *event, streams.order.is_blocking(stream))
            }
            _ => Ok(false),
        }
    }

    /// Checks the event of the command; returns whether there is nothing to do.
    fn check(&self, streams: &Streams) -> HipResult<bool> {
        match self.work.command() {
            // HIP API: one that was never recorded is no reason to wait.
            Command::Wait(event, _) if streams.events.info(*event)?.recorded.is_none() => Ok(true),
            Command::Wait(_, flags) if *flags > hipEventWaitExternal => Err(HipError::INVALID_VALUE),
            Command::Record(event) => streams.events.info(*event).map(|_| false),
            _ => Ok(false),
        }
    }

    /// Queues the command if unfinished host functions come before it.
    fn hold(&mut self, streams: &Streams, caller: &Caller<'_>) -> HipResult<Next> {
        let (queue, order, stream) = (&streams.host_functions, &streams.order, self.stream);
        let command = self.work.command();
        if let Command::Host(_) = command {
            queue.add(order, caller, stream, command.clone())?;
            return Ok(Next::Done(Ok(())));
        }
        if self.check(streams)? {
            return Ok(Next::Done(Ok(())));
        }
        let crosses = streams.crosses(caller.port, command, stream);
        if crosses && !self.is_blocking || self.comes_here_later(streams, caller.port)? {
            streams.check_ahead(caller.port, command, stream)?;
            queue.add(order, caller, stream, command.clone())?;
            return Ok(Next::Done(Ok(())));
        }
        if queue.is_idle() {
            return self.then(Phase::Prepare);
        }
        if crosses || !self.may_be_held(streams, caller.port)? {
            let steps = if caller.is_host_thread { Vec::new() } else { queue.behind(order, stream) };
            self.phase = Phase::Gated;
            return Ok(Next::WaitForSteps(steps));
        }
        let records: SmallVec<[Event; 2]> = command.records().collect();
        if matches!(command, Command::Kernel(_)) && queue.is_busy(order, stream) {
            records.iter().try_for_each(|event| streams.expect_record(*event, stream))?;
        }
        let is_held = if command.ends_a_resource() {
            queue.hold_behind_all(caller, stream, || command.clone())?
        } else {
            queue.hold(order, caller, stream, || command.clone(), command.awaits(), &records)?
        };
        if !is_held {
            return self.then(Phase::Prepare);
        }
        if let Command::Record(event) = command {
            streams.expect_record(*event, stream)?;
        }
        Ok(Next::Done(Ok(())))
    }

    /// Returns whether the command moves bytes that only this process has, behind work that may not be over: who sees the bytes may take that
    /// for done. The call does not wait for it, so that it becomes a step of the stream.
    fn comes_here_later(&self, streams: &Streams, port: &dyn Port) -> HipResult<bool> {
        if self.is_blocking || self.here != Here::New || streams.mirrors.is_empty() {
            return Ok(false);
        }
        let stream = self.stream;
        let is_here = match self.work.command() {
            Command::Fill(fill) => streams.place_of_fill(port, fill, stream)? == Some(Place::Host),
            Command::Copy(copy) => {
                copy.check_shape()? > 0 && streams.places(port, copy, stream)? == [Place::Host; 2]
            }
            _ => false,
        };
        Ok(is_here && streams.pending.look(&streams.order, Scope::Stream(self.stream)).0 != State::Nothing)
    }

    /// Returns whether the call may return before the command is executed. Otherwise it waits for the host functions before
    /// it.
    fn may_be_held(&self, streams: &Streams, port: &dyn Port) -> HipResult<bool> {
        if !streams.host_functions.is_busy(&streams.order, self.stream) {
            return Ok(true);
        }
        match self.work.command() {
            Command::Copy(_) if self.origin == Origin::Graph => Ok(true),
            Command::Copy(copy) => {
                copy.check_shape()?;
                if self.is_blocking {
                    // HIP API: copies within a device are not waited for.
                    return streams.is_copy_within_a_device(port, copy, self.stream);
                }
                streams.may_come_later(port, copy, self.stream)
            }
            Command::PeerCopy(_) => Ok(!self.is_blocking),
            Command::Fill(fill) => Ok(fill.is_aligned() && streams.may_fill_later(port, fill, self.stream)?),
            _ => Ok(true),
        }
    }

    /// Prepares the command for sending: first sends what the program wrote to memory that it uses. Returns None if the command
    /// needs no more than that, and has been sent or carried out here.
    fn prepare(&mut self, streams: &Streams, port: &dyn Port) -> HipResult<Option<Prepared>> {
        let (mirrors, stream) = (streams.mirror(self.stream), self.stream);
        // What kernels write is known when they are over.
        if matches!(self.work.command(), Command::Kernel(_) | Command::Graph(_)) && !mirrors.is_empty() {
            self.announce(streams);
        }
        match self.work.command() {
            Command::Kernel(kernel) => {
                let arguments = if !self.is_announced {
                    None
                } else {
                    Some(Box::new(streams.device_arguments(port, kernel, stream)?))
                };
                return Ok(Some(Prepared::Kernel(arguments)));
            }
            Command::Graph(part) => {
                mirrors.before_other(port, stream)?;
                if let Some(remote) = part.on_worker()
                    && streams.is_current(port, part, stream)?
                {
                    return Ok(Some(Prepared::Graph(remote.exec)));
                }
                self.rest = part.nodes().cloned().collect();
                self.rest.reverse();
            }
            Command::Copy(copy) => {
                let copy = *copy;
                return self.prepare_copy(streams, port, &copy);
            }
            Command::Fill(fill) => match streams.place_of_fill(port, fill, stream)? {
                Some(Place::Device(address)) => {
                    mirrors.before_other(port, stream)?;
                    return Ok(Some(Prepared::Fill(address)));
                }
                Some(Place::Shared(address)) => {
                    self.is_shared = true;
                    mirrors.before_other(port, stream)?;
                    return Ok(Some(Prepared::Fill(address)));
                }
                Some(Place::Mirrored(address)) => {
                    self.announce(streams);
                    mirrors.before_use(port, stream)?;
                    return Ok(Some(Prepared::Fill(address)));
                }
                Some(Place::Host) => {
                    // Pinned or managed memory that no kernel has seen: the host's bytes are the only ones.
                    let bytes = match fill.pattern {
                        Pattern::Byte(value) => vec![value; fill.width],
                        Pattern::Half(value) => value.to_ne_bytes().repeat(fill.width),
                        Pattern::Word(value) => value.to_ne_bytes().repeat(fill.width),
                    };
                    (0..fill.height).for_each(|y| port.write_host(fill.row(y), &bytes));
                    streams.carried_out_here(port, stream)?;
                }
                Some(Place::Unknown) | None => {}
            },
            Command::Record(event) => {
                let _kept = streams.keep_records(port, &[*event], self.origin.step())?;
                let is_shared = streams.begin_record(*event, stream)?.is_shared();
                port.record(*event, stream, is_shared)?;
                streams.end_record(*event, stream);
            }
            Command::Wait(event, flags) => {
                let info = streams.events.info(*event).ok();
                if info.as_ref().is_some_and(EventInfo::is_shared) {
                    streams.awaits_others();
                }
                let scope = info.and_then(|info| info.scope());
                let before = scope.map_or(State::Open, |scope| streams.pending.look(&streams.order, scope).0);
                let is_kept = match self.origin.step() {
                    Some(step) => streams.await_for_step(port, step, *event, stream, *flags)?,
                    None => {
                        mirrors.event_awaited(stream, *event);
                        port.await_event(*event, stream, *flags)?;
                        false
                    }
                };
                // What is known of the event is not what was kept of it.
                let is_decided = before < State::Open && !is_kept;
                streams.put(stream, if is_decided { Outcome::Decided } else { Outcome::Open });
            }
            Command::PeerCopy(copy) => {
                port.copy_peer(copy, self.is_blocking)?;
                streams.put(stream, Outcome::Open);
            }
            Command::Free(ptr) => {
                port.forget_allocation(*ptr);
                port.free_async(*ptr, stream)?;
                streams.put(stream, Outcome::Open);
            }
            Command::DestroyStream => {
                mirrors.forget_stream(port, &streams.order, stream)?;
                streams.pending.forget(stream, &streams.order);
                // Only now: what it had is over here, and its handle is not given anew before the worker has destroyed it.
                streams.order.remove(stream);
                port.destroy_stream(stream)?;
            }
            Command::DestroyEvent(event) => {
                streams.events.remove(*event);
                streams.pending.forget_event(*event);
                streams.mirrors.forget_event(*event);
                port.destroy_event(*event)?;
            }
            Command::DestroyGraph(exec) => port.destroy_exec(*exec)?,
            // They are not sent: the first waits for what its stream has, the next is done command by command.
            Command::Host(_) | Command::Values(_) | Command::GraphAllocate(_) | Command::GraphFree(_) => {}
        }
        Ok(None)
    }

    fn prepare_copy(
        &mut self,
        streams: &Streams,
        port: &dyn Port,
        copy: &MemoryCopy,
    ) -> HipResult<Option<Prepared>> {
        let (stream, is_blocking) = (self.stream, self.is_blocking);
        let mirrors = streams.mirror(stream);
        if copy.check_shape()? == 0 {
            return Ok(None);
        }
        let [to, from] = streams.places(port, copy, stream)?;
        let on_device = [to, from].map(|place| matches!(place, Place::Device(_)));
        self.settles = settles([to, from], is_blocking);
        self.is_shared = [to, from].iter().any(|place| matches!(place, Place::Shared(_)));
        if matches!(to, Place::Mirrored(_)) {
            self.announce(streams);
            mirrors.before_use(port, stream)?;
        } else if matches!(from, Place::Mirrored(_)) {
            mirrors.before_read(port, stream)?;
            self.is_read_at_once = is_blocking;
        } else if on_device.contains(&true) || self.is_shared {
            mirrors.before_other(port, stream)?;
        }
        let address = |place: Place| match place {
            Place::Device(address) | Place::Mirrored(address) | Place::Shared(address) => Some(address),
            Place::Host | Place::Unknown => None,
        };
        let (kind, to, from) = match (address(to), address(from)) {
            (None, None) => {
                port.copy_host(copy);
                streams.carried_out_here(port, stream)?;
                return Ok(None);
            }
            (Some(to), None) => (kind::HOST_TO_DEVICE, to, copy.src.at.wire()),
            (Some(to), Some(from)) => (kind::DEVICE_TO_DEVICE, to, from),
            (None, Some(from)) => (kind::DEVICE_TO_HOST, copy.dst.at.wire(), from),
        };
        Ok(Some(Prepared::Copy(Transfer { kind, to, from, copy: *copy, stream, is_blocking })))
    }

    /// Sends the command.
    fn send(&mut self, streams: &Streams, port: &dyn Port, prepared: Prepared) -> HipResult<Next> {
        let stream = self.stream;
        let mut records: SmallVec<[Event; 2]> = SmallVec::new();
        let outcome = match (self.work.command(), prepared) {
            (Command::Kernel(kernel), Prepared::Kernel(arguments)) => {
                records.extend(self.work.command().records());
                let _kept = streams.keep_records(port, &records, self.origin.step())?;
                records.iter().try_for_each(|event| streams.begin_record(*event, stream).map(drop))?;
                port.launch(kernel, arguments.as_deref().unwrap_or(&kernel.arguments), stream)?;
                Outcome::Open
            }
            (Command::Fill(fill), Prepared::Fill(address)) => {
                send_fill(port, fill, address, stream)?;
                self.unless_mirrored(Outcome::Decided)
            }
            (_, Prepared::Copy(transfer)) if transfer.kind == kind::DEVICE_TO_HOST => {
                let (_, covered) = streams.pending.look(&streams.order, Scope::Stream(stream));
                let mut waited =
                    streams.mirror(self.stream).before_wait(&streams.order, Target::Stream(stream));
                let next = streams.mirror(stream).receive(port, transfer, &mut waited)?;
                self.phase = if self.is_blocking || waited.has_asked() {
                    Phase::Waited(waited, covered)
                } else {
                    Phase::Returned(waited, covered)
                };
                return Ok(next);
            }
            (_, Prepared::Copy(transfer)) => {
                send_copy(streams, port, &transfer)?;
                self.unless_mirrored(outcome_of_copy(&transfer))
            }
            (_, Prepared::Graph(exec)) => {
                port.launch_graph(exec, stream)?;
                Outcome::Open
            }
            _ => return Err(HipError::UNKNOWN),
        };
        streams.put(stream, outcome);
        records.iter().for_each(|event| streams.end_record(*event, stream));
        if self.is_read_at_once {
            streams.mirror(stream).has_been_read(port, stream)?;
        }
        if self.is_mirrored || (self.is_shared && self.is_blocking) {
            return self.then(Phase::Sent);
        }
        if matches!(self.work.command(), Command::Kernel(_) | Command::Graph(_)) {
            // Memory that is mirrored since may be reached through other memory.
            streams.mirror(stream).sent(stream);
        }
        self.end(streams)
    }

    /// Returns the outcome of the command if it is not about memory on both sides, which is open.
    fn unless_mirrored(&self, outcome: Outcome) -> Outcome {
        if self.is_mirrored || self.is_shared { Outcome::Open } else { outcome }
    }
}
