//! The program of a shim world: its acts become calls of the stream layer, as the functions of HIP make them.

use std::collections::VecDeque;
use std::sync::Arc;

use amdhip64::command::{
    Command, Function, HostFunction, KernelLaunch, LaunchConfiguration, MemoryBox, MemoryCopy, MemoryFill,
    PassedArguments, Pattern, Size,
};
use amdhip64::convert::{Event as EventHandle, Module, Ptr};
use amdhip64::stream::graphs::released;
use amdhip64::stream::order::{LEGACY, is_legacy};
use amdhip64::stream::{Call, WaitCall};
use amdhip64::worker::Wait;
use hipr_proto::HipError;

use super::{Doing, Life, POLLS_MAX, Part, RELAXED, Runner, Running, Slot, Thread};
use crate::shim_world::machine::{FILLS, Sheet, WORD, Write};
use crate::shim_world::script::{Act, MemoryKind, Place, StreamKind, Target};
use crate::shim_world::trace::{Ask, Event, ITEMS_MAX, Item, ItemKind, Outcome, Shows, Who};

impl Life<'_> {
    pub(super) fn step_program(&mut self, thread: usize) -> bool {
        let Some((runner, progress)) = self.programs.get_mut(thread) else { return false };
        if runner.is_in_call {
            let mut runner = std::mem::replace(runner, Runner::new(Thread::Program(thread)));
            let (moved, ended) = self.drive(&mut runner);
            if let Some(result) = ended {
                runner.is_in_call = false;
                runner.parts.clear();
                runner.doing = Doing::Phase;
                let outcome = match result {
                    Ok(()) => Outcome::Ok,
                    Err(HipError::NOT_READY) => Outcome::NotReady,
                    Err(error) => Outcome::Error(error.0),
                };
                if outcome != Outcome::Ok {
                    self.forget_expected(thread);
                }
                if outcome == Outcome::NotReady && self.is_stale(thread) {
                    self.note(Event::Stale { thread });
                }
                let is_idle = runner.commands == self.machine.0.borrow().count();
                self.note(Event::Ended { thread, outcome, is_idle });
            }
            if let Some((place, progress)) = self.programs.get_mut(thread) {
                *place = runner;
                if let Some(result) = ended {
                    progress.uses = (None, None);
                    progress.items.clear();
                    let index = progress.next.wrapping_sub(1);
                    let act = self.case.script.0.get(thread).and_then(|acts| acts.get(index));
                    let is_query = matches!(act, Some(Act::Query(_)));
                    if is_query && result == Err(HipError::NOT_READY) && progress.polls < POLLS_MAX {
                        progress.polls += 1;
                        progress.next = index;
                    } else {
                        progress.polls = 0;
                    }
                }
            }
            return moved;
        }
        let index = progress.next;
        let Some(act) = self.case.script.0.get(thread).and_then(|acts| acts.get(index)) else { return false };
        progress.next += 1;
        progress.uses = (act.stream(), act.event());
        let id = thread * 64 + index + 1;
        if !self.begin(thread, id, act)
            && let Some((_, progress)) = self.programs.get_mut(thread)
        {
            progress.uses = (None, None);
        }
        true
    }

    /// A call that failed puts no work on its stream.
    fn forget_expected(&mut self, thread: usize) {
        let items = self.programs.get(thread).map(|(_, progress)| progress.items.as_slice());
        let items = items.unwrap_or_default();
        let mut state = self.machine.0.borrow_mut();
        let refused: Vec<_> = state.expected.extract_if(.., |(_, _, item)| items.contains(item)).collect();
        refused.into_iter().for_each(|(_, _, item)| state.note(Event::Refused { item }));
    }

    fn slot(&self, stream: usize) -> Slot {
        self.stream_slots.get(stream).copied().flatten()
    }

    fn event(&self, event: usize) -> Slot {
        self.event_slots.get(event).copied().flatten()
    }

    fn address(&self, place: Place) -> Ptr {
        Ptr(self.bases.get(place.memory).copied().unwrap_or(0) + place.word * WORD)
    }

    fn kind(&self, place: Place) -> MemoryKind {
        self.case.options.memory.get(place.memory).copied().unwrap_or(MemoryKind::Pageable)
    }

    /// Begins an act of a thread; returns whether the call that it makes has more phases.
    fn begin(&mut self, thread: usize, id: usize, act: &Act) -> bool {
        match act {
            Act::Read(place) => self.read(Who::Thread(thread), *place),
            Act::Write(place) => self.write(Who::Thread(thread), *place),
            Act::Open(gate) => self.open(Some(Who::Thread(thread)), *gate),
            Act::Launch { stream, .. }
            | Act::Fill { stream, .. }
            | Act::Copy { stream, .. }
            | Act::Function { stream, .. } => return self.begin_work(thread, id, act, *stream).is_some(),
            Act::Wait(target) | Act::Query(target) => {
                let is_query = matches!(act, Act::Query(_));
                return self.begin_wait(thread, *target, is_query).is_some();
            }
            Act::Record { event, stream } => {
                return self.begin_event(thread, *event, *stream, true).is_some();
            }
            Act::Await { event, stream } => {
                return self.begin_event(thread, *event, *stream, false).is_some();
            }
            Act::DestroyStream(stream) => return self.begin_destroy_stream(thread, *stream).is_some(),
            Act::CreateStream(stream) => {
                if self.slot(*stream).is_none() {
                    self.create_stream(*stream);
                }
            }
            Act::DestroyEvent(event) => return self.begin_destroy_event(thread, *event).is_some(),
            Act::CreateEvent(event) => {
                if self.event(*event).is_none() {
                    self.create_event(*event);
                }
            }
            Act::BeginCapture(stream) => drop(self.begin_capture(thread, *stream)),
            Act::EndCapture(graph) => drop(self.end_capture(thread, *graph)),
            Act::LaunchGraph { graph, stream } => {
                return self.begin_graph(thread, *graph, *stream).is_some();
            }
            Act::DestroyGraph(graph) => return self.begin_destroy_graph(thread, *graph).is_some(),
        }
        false
    }

    /// Returns whether a query of a thread that has not asked the worker could know that its work is done: the worker has nothing more to
    /// tell. What host functions hold up is not done.
    fn is_stale(&self, thread: usize) -> bool {
        let Some(query) = self.programs.get(thread).and_then(|(_, progress)| progress.query) else {
            return false;
        };
        let mut state = self.machine.0.borrow_mut();
        self.streams.host_functions.is_idle() && state.has_told_all() && state.awaited(query).is_empty()
    }

    fn call(&mut self, thread: usize, stream: u64, ask: Ask, parts: VecDeque<Part>) -> Option<()> {
        let is_at_rest =
            |running: &Option<Running>, doing: &Doing| running.is_none() || matches!(doing, Doing::Deeds(..));
        let is_idle = self.machine.0.borrow().is_idle()
            && self.queues.iter().all(|(runner, running)| is_at_rest(running, &runner.doing));
        self.note(Event::Began { thread, ask, is_idle });
        let commands = self.machine.0.borrow().count();
        let (runner, _) = self.programs.get_mut(thread)?;
        runner.commands = commands;
        (runner.parts, runner.stream, runner.is_in_call) = (parts, stream, true);
        runner.doing = Doing::Phase;
        Some(())
    }

    pub(super) fn read(&mut self, who: Who, place: Place) {
        let at = self.address(place);
        let mut state = self.machine.0.borrow_mut();
        let bytes = state.read_host_bytes(at.0, WORD);
        let value = bytes.as_slice().try_into().map_or(0, u32::from_le_bytes);
        state.note(Event::Read { who, place, value });
    }

    pub(super) fn write(&mut self, who: Who, place: Place) {
        let at = self.address(place);
        self.machine.0.borrow_mut().write_word(Write { who, place, at: at.0 });
    }

    /// Finds a thread that is about to write and is in no call: it may do so while another one's call compares memory. Returns the thread.
    pub(super) fn let_race(&self, other: Thread) -> Option<usize> {
        let mut state = self.machine.0.borrow_mut();
        if state.haste & 4 == 0 {
            return None;
        }
        let steps = state.haste >> 6;
        self.programs.iter().enumerate().find_map(|(thread, (runner, progress))| {
            let next = self.case.script.0.get(thread).and_then(|acts| acts.get(progress.next));
            match next {
                Some(Act::Write(place)) if !runner.is_in_call && other != Thread::Program(thread) => {
                    let at = self.address(*place).0;
                    let write = Write { who: Who::Thread(thread), place: *place, at };
                    state.notes.racing = Some((steps, write));
                    Some(thread)
                }
                _ => None,
            }
        })
    }

    /// Ends the time in which a thread may write; it goes on behind its write if it has.
    pub(super) fn end_race(&mut self, thread: usize) {
        if self.machine.0.borrow_mut().notes.racing.take().is_none()
            && let Some((_, progress)) = self.programs.get_mut(thread)
        {
            progress.next += 1;
        }
    }

    /// Returns the command of an act, and notes what it means.
    fn command(&mut self, id: usize, act: &Act) -> Command {
        let fails = matches!(act, Act::Launch { fails: true, .. });
        let is_decided = self.is_decided(act);
        let is_pageable = |place: &Place| self.kind(*place) == MemoryKind::Pageable;
        let is_awaited = matches!(act, Act::Copy { waits, to, from, .. } if *waits || is_pageable(to) || is_pageable(from));
        let kernel_of = match act {
            Act::Launch { stream, .. } => Some(self.case.options.device_of_stream(*stream)),
            _ => None,
        };
        let sheet = |to, from, words, known| Sheet {
            to,
            from,
            words,
            known,
            kernel_of,
            fails,
            is_decided,
            is_awaited,
        };
        let (command, sheet) = match act {
            Act::Launch { stream, to, from, named, .. } => {
                let address = |life: &Self, place| life.address(place).wire();
                let addresses = [address(self, *to), address(self, *from)];
                let words: Vec<u8> = if *named {
                    addresses.iter().flat_map(|word| word.to_le_bytes()).collect()
                } else {
                    vec![0; 16]
                };
                let function = Function::new(id as u64, String::new(), Module(0), None, None);
                let function = function.of_device(self.case.options.device_of_stream(*stream));
                let passed = PassedArguments::Buffer(Ptr::from(words.as_ptr()), words.len());
                let arguments = passed.encode(&function).expect("a buffer with a size");
                let config = LaunchConfiguration {
                    grid: [1; 3],
                    block: [1; 3],
                    shared_mem_bytes: 0,
                    start: EventHandle::NULL,
                    stop: EventHandle::NULL,
                    ext_flags: 0,
                    is_cooperative: false,
                };
                let known = (!named).then_some((addresses[0], addresses[1]));
                let kernel = KernelLaunch::new(Arc::new(function), config, arguments);
                (Command::Kernel(kernel), sheet(*to, Some(*from), 1, known))
            }
            Act::Fill { to, words, .. } => {
                let pattern = Pattern::Word(FILLS + id as u32);
                let dst = self.address(*to);
                let fill = MemoryFill { dst, pitch: 0, pattern, width: *words, height: 1 };
                (Command::Fill(fill), sheet(*to, None, *words, None))
            }
            Act::Copy { to, from, words, .. } => {
                let len = words * WORD;
                // The number of rows means nothing where there is one; here it is the number of the command.
                let side = |at, rows| MemoryBox { at, pitch: len, rows, is_device: None };
                let (dst, src) = (side(self.address(*to), id), side(self.address(*from), 1));
                let copy = MemoryCopy { dst, src, size: Size { width: len, height: 1, depth: 1 } };
                (Command::Copy(copy), sheet(*to, Some(*from), *words, None))
            }
            Act::Function { is_callback, deeds, .. } => {
                self.functions.push((id, deeds.clone()));
                let function = if *is_callback {
                    HostFunction::Callback(None, amdhip64::convert::Stream(0), Ptr(id))
                } else {
                    HostFunction::Plain(None, Ptr(id))
                };
                let nowhere = Place { memory: usize::MAX, word: 0 };
                (Command::Host(function), sheet(nowhere, None, 0, None))
            }
            _ => unreachable!("only work has commands"),
        };
        self.machine.0.borrow_mut().sheets.insert(id, sheet);
        command
    }

    /// Creates an item for a command that will be executed on a stream.
    fn expect(&mut self, id: usize, (stream, number): (u64, usize)) -> Option<usize> {
        let is_function = self.functions.iter().any(|(function, _)| *function == id);
        let kind = if is_function { ItemKind::Function } else { ItemKind::Work };
        let sheet = self.machine.0.borrow().sheets.get(&id).cloned()?;
        let writes = (0..sheet.words).map(|at| Place { word: sheet.to.word + at, ..sheet.to }).collect();
        let name = format!("command {id} on the stream {stream:#x}");
        let is_decided = sheet.is_decided;
        let item =
            self.new_item(Item { kind, name, writes, stream: Some(number), beside: None, is_decided })?;
        self.machine.0.borrow_mut().expected.push((id, stream, item));
        Some(item)
    }

    /// Returns whether an act writes to memory of the device what is known when it is sent.
    fn is_decided(&self, act: &Act) -> bool {
        match act {
            Act::Fill { to, .. } => self.kind(*to) == MemoryKind::Device,
            Act::Launch { to, .. } | Act::Copy { to, .. } if self.case.options.is_lazy => {
                self.kind(*to) == MemoryKind::Device
            }
            Act::Copy { to, from, .. } => {
                self.kind(*to) == MemoryKind::Device && self.kind(*from) != MemoryKind::Device
            }
            _ => false,
        }
    }

    fn begin_work(&mut self, thread: usize, id: usize, act: &Act, stream: usize) -> Option<()> {
        let (handle, number) = self.slot(stream)?;
        let waits = matches!(act, Act::Fill { waits: true, .. } | Act::Copy { waits: true, .. });
        if self.is_captured(stream, Some(thread)) {
            return None;
        }
        let capture = self.programs.get(thread).and_then(|(_, progress)| progress.capture.as_ref());
        let is_captured = capture.is_some_and(|(captures, _)| *captures == stream);
        let kinds = match act {
            Act::Copy { to, from, .. } => Some((self.kind(*to), self.kind(*from))),
            _ => None,
        };
        if is_captured
            && (waits || kinds.is_some_and(|(to, from)| !to.is_of_kernels() || !from.is_of_kernels()))
        {
            return None;
        }
        if self.machine.0.borrow().trace.items.len() >= ITEMS_MAX {
            return None;
        }
        let command = self.command(id, act);
        let ask = if is_captured {
            let (_, progress) = self.programs.get_mut(thread)?;
            progress.capture.as_mut()?.1.push(id);
            Ask::Nothing
        } else {
            let item = self.expect(id, (handle, number))?;
            self.programs.get_mut(thread)?.1.items = vec![item];
            let on_device = |kind| kind == MemoryKind::Device;
            let shows = match (act, kinds) {
                (Act::Copy { waits: true, .. }, Some((to, from))) => match (on_device(to), on_device(from)) {
                    (true, true) => Shows::Nothing,
                    (true, false) => Shows::Later,
                    (false, true) => Shows::All,
                    // Where no kernel has seen the memory, the bytes never leave the process.
                    (false, false) => Shows::Own,
                },
                (Act::Fill { to, waits: true, .. }, _) if !on_device(self.kind(*to)) => Shows::Own,
                _ => Shows::Nothing,
            };
            // HIP API: asynchronous copies with memory that HIP does not know may wait. Synchronous ones between devices do.
            let may_wait = match (act, kinds) {
                (Act::Copy { to, from, waits: true, .. }, _)
                    if self.is_between_devices(*to, *from, stream) =>
                {
                    true
                }
                (Act::Copy { .. }, Some((to, from))) => {
                    shows != Shows::Nothing || to == MemoryKind::Pageable || from == MemoryKind::Pageable
                }
                _ => shows != Shows::Nothing,
            };
            Ask::Work { stream: number, items: vec![item], shows, may_wait }
        };
        let mut parts = VecDeque::new();
        let is_blocking = waits && matches!(act, Act::Copy { .. });
        if let (Act::Fill { .. }, Command::Fill(fill), true) = (act, &command, waits) {
            parts.push_back(Part::Finish(fill.dst, false));
        }
        parts.push_front(Part::Call(Box::new(Call::new(command, handle, is_blocking))));
        self.call(thread, handle, ask, parts)
    }

    fn begin_wait(&mut self, thread: usize, target: Target, is_query: bool) -> Option<()> {
        let (wait, target) = match target {
            Target::Device(device) => (Wait::Device(device), target),
            Target::Stream(stream) => {
                let (handle, number) = self.slot(stream)?;
                let wait = if is_query { Wait::QueryStream(handle) } else { Wait::Stream(handle) };
                (wait, Target::Stream(number))
            }
            Target::Event(event) => {
                let (handle, number) = self.event(event)?;
                let handle = EventHandle::from_wire(handle);
                let wait = if is_query { Wait::QueryEvent(handle) } else { Wait::Event(handle) };
                (wait, Target::Event(number))
            }
        };
        if let Some((_, progress)) = self.programs.get_mut(thread) {
            progress.query = is_query.then_some(wait);
        }
        let ask = if is_query { Ask::Query(target) } else { Ask::Wait(target) };
        self.call(thread, LEGACY, ask, VecDeque::from([Part::Wait(WaitCall::new(wait))]))
    }

    fn begin_event(&mut self, thread: usize, event: usize, stream: usize, records: bool) -> Option<()> {
        let (handle, number) = self.slot(stream)?;
        if self.is_captured(stream, None) {
            return None;
        }
        let options = &self.case.options;
        // HIP API: hipEventRecord refuses a stream of another device.
        if records && options.are_apart && options.device_of_event(event) != options.device_of_stream(stream)
        {
            return None;
        }
        let (event_handle, event) = self.event(event)?;
        let event_handle = EventHandle::from_wire(event_handle);
        let (command, ask) = if records {
            (Command::Record(event_handle), Ask::Record { event, stream: number })
        } else {
            (Command::Wait(event_handle, 0), Ask::Await { event, stream: number })
        };
        let parts = VecDeque::from([Part::Call(Box::new(Call::new(command, handle, false)))]);
        self.call(thread, handle, ask, parts)
    }

    /// Returns whether another thread is in a call with this stream or event, which a program must not destroy then.
    fn is_used(&self, thread: usize, stream: Option<usize>, event: Option<usize>) -> bool {
        self.programs.iter().enumerate().any(|(other, (_, progress))| {
            let captures = progress.capture.as_ref().map(|(captures, _)| *captures);
            let (of_stream, of_event) = progress.uses;
            let in_call = other != thread && (of_stream == stream || of_event == event);
            (stream.is_some() && (captures == stream || in_call && of_stream == stream))
                || (event.is_some() && in_call && of_event == event)
        })
    }

    /// Returns whether a thread captures a stream, apart from one thread.
    fn is_captured(&self, stream: usize, but: Option<usize>) -> bool {
        self.programs.iter().enumerate().any(|(thread, (_, progress))| {
            Some(thread) != but && progress.capture.as_ref().is_some_and(|(captures, _)| *captures == stream)
        })
    }

    pub(super) fn begin_destroy_stream(&mut self, thread: usize, stream: usize) -> Option<()> {
        let (handle, _) = self.slot(stream)?;
        let kind = self.case.options.streams.get(stream).map(|stream| stream.kind);
        let is_own = matches!(kind, Some(StreamKind::Legacy | StreamKind::PerThread));
        if is_own || self.is_used(thread, Some(stream), None) {
            return None;
        }
        *self.stream_slots.get_mut(stream)? = None;
        self.streams.forget_stream(handle);
        let beside = self.streams.end_sides(handle).into_iter();
        let calls = beside.chain([Call::new(Command::DestroyStream, handle, false)]);
        self.call(thread, handle, Ask::End, calls.map(|call| Part::Call(Box::new(call))).collect())
    }

    pub(super) fn begin_destroy_event(&mut self, thread: usize, event: usize) -> Option<()> {
        let (handle, _) = self.event(event)?;
        if self.is_used(thread, None, Some(event)) {
            return None;
        }
        *self.event_slots.get_mut(event)? = None;
        let handle = EventHandle::from_wire(handle);
        self.streams.graphs.forget_event(handle);
        let call = Call::new(Command::DestroyEvent(handle), LEGACY, false);
        self.call(thread, LEGACY, Ask::End, VecDeque::from([Part::Call(Box::new(call))]))
    }

    fn begin_capture(&mut self, thread: usize, stream: usize) -> Option<()> {
        let (handle, _) = self.slot(stream)?;
        // A program whose threads use a stream that captures cannot tell what is captured.
        if is_legacy(handle) || self.is_used(thread, Some(stream), None) {
            return None;
        }
        let is_blocking = self.streams.order.is_blocking(handle);
        self.streams.graphs.begin(thread as u64 + 1, handle, is_blocking, RELAXED, None).ok()?;
        let (_, progress) = self.programs.get_mut(thread)?;
        progress.capture = Some((stream, Vec::new()));
        Some(())
    }

    pub(super) fn end_capture(&mut self, thread: usize, graph: usize) -> Option<()> {
        let (stream, commands) = self.programs.get_mut(thread)?.1.capture.take()?;
        let (handle, _) = self.slot(stream)?;
        let captured = self.streams.graphs.end(thread as u64 + 1, handle).ok()?;
        let exec = self.streams.graphs.with(|tables| {
            let exec = tables.graphs.instantiate(captured)?;
            let exec = tables.add_exec(exec);
            tables.graphs.destroy(captured).map(|()| exec)
        });
        let graphs = &mut self.programs.get_mut(thread)?.1.graphs;
        graphs.resize(graphs.len().max(graph + 1), None);
        *graphs.get_mut(graph)? = Some((exec.ok()?, commands));
        Some(())
    }

    fn begin_graph(&mut self, thread: usize, graph: usize, stream: usize) -> Option<()> {
        let (handle, number) = self.slot(stream)?;
        if self.is_captured(stream, None) {
            return None;
        }
        let (exec, commands) = self.programs.get(thread)?.1.graphs.get(graph)?.clone()?;
        if self.machine.0.borrow().trace.items.len() + commands.len() > ITEMS_MAX {
            return None;
        }
        let items: Vec<usize> = commands.iter().filter_map(|id| self.expect(*id, (handle, number))).collect();
        self.programs.get_mut(thread)?.1.items.clone_from(&items);
        let ask = if items.is_empty() {
            Ask::Nothing
        } else {
            Ask::Work { stream: number, items, shows: Shows::Nothing, may_wait: false }
        };
        self.note(Event::Began { thread, ask, is_idle: false });
        self.machine.0.borrow_mut().next_step(handle);
        let launched = self.streams.launch_graph(&self.caller(Thread::Program(thread)), exec, handle);
        let (runner, progress) = self.programs.get_mut(thread)?;
        match launched {
            Ok(calls) => {
                let (items, on) = (&progress.items, calls.iter().map(Call::stream));
                self.machine.0.borrow_mut().expect_beside(handle, items, on);
                runner.parts = calls.into_iter().map(|call| Part::Call(Box::new(call))).collect();
                (runner.stream, runner.is_in_call, runner.doing) = (handle, true, Doing::Phase);
            }
            Err(error) => {
                self.forget_expected(thread);
                self.note(Event::Ended { thread, outcome: Outcome::Error(error.0), is_idle: false });
                return None;
            }
        }
        Some(())
    }

    /// Returns whether a command on a stream accesses device memory of another worker than the stream's.
    fn is_between_devices(&self, to: Place, from: Place, stream: usize) -> bool {
        [to, from].iter().any(|place| self.case.options.is_far(place.memory, stream))
    }

    pub(super) fn begin_destroy_graph(&mut self, thread: usize, graph: usize) -> Option<()> {
        let (exec, _) = self.programs.get_mut(thread)?.1.graphs.get_mut(graph)?.take()?;
        let remote = self.streams.graphs.destroy_exec(exec).ok()?.remote;
        let parts = released(remote).into_iter().map(|call| Part::Call(Box::new(call))).collect();
        self.call(thread, LEGACY, Ask::End, parts)
    }
}
