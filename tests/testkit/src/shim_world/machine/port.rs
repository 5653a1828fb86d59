//! What the stream layer of a shim world asks of the worker and of the process's memory.

use std::borrow::Cow;

use amdhip64::command::{Arguments, KernelLaunch, MemoryCopy, Pattern, Transfer};
use amdhip64::convert::{Event as EventHandle, Ptr};
use amdhip64::stream::sync_mode::AHEAD_REQUESTS_MAX;
use amdhip64::worker::memory::{Allocation, Kind};
use amdhip64::worker::{Ahead, ChangesAnswer, HostMemory, Port, Wait};
use hipr_proto::op::{MemChanges, MemcpyPeer, kind};
use hipr_proto::{HipError, HipResult};

use super::super::trace::{By, Event};
use super::{FILLS, GARBAGE, Machine, Question, Sheet, WORD, Work, changes, words};
use crate::shim_world::script::Place;

impl HostMemory for Machine {
    fn read_host(&self, at: Ptr, into: &mut [u8]) {
        let mut state = self.0.borrow_mut();
        into.copy_from_slice(&state.read_host_bytes(at.0, into.len()));
        state.let_others_write();
    }

    fn write_host(&self, at: Ptr, bytes: &[u8]) {
        let mut state = self.0.borrow_mut();
        state.write_host_bytes(at.0, bytes);
        if state.is_fetching {
            return;
        }
        // A fill of memory that only the process has.
        let value = bytes.get(..WORD).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
        let (id, stream) = (value.wrapping_sub(FILLS) as usize, state.stream);
        let Some(item) = state.take_expected(id, stream, &Work::Nothing) else { return };
        let Some(Sheet { to, words, .. }) = state.sheets.get(&id).cloned() else { return };
        let writes = (0..words).map(|at| (Place { word: to.word + at, ..to }, value)).collect();
        state.note(Event::Executed { item, reads: Vec::new(), writes, by: By::Process });
    }
}

impl Port for Machine {
    fn allocation(&self, ptr: Ptr) -> Option<Allocation> {
        let state = self.0.borrow();
        let found = state.allocations.iter().find(|(base, len, _)| (*base..base + len).contains(&ptr.0));
        found.map(|(base, len, device)| Allocation {
            base: Ptr(*base),
            size_bytes: *len,
            kind: Kind::Device,
            device: *device,
            flags: 0,
            is_ambiguous: false,
        })
    }

    fn forget_allocation(&self, ptr: Ptr) {
        self.0.borrow_mut().allocations.retain(|(base, ..)| *base != ptr.0);
    }

    fn host_bytes(&self, at: Ptr, len: usize) -> Cow<'_, [u8]> {
        let mut state = self.0.borrow_mut();
        let passing = state.passing.take_if(|(passing, bytes)| (*passing, bytes.len()) == (at.0, len));
        Cow::Owned(passing.map_or_else(|| state.read_host_bytes(at.0, len), |(_, bytes)| bytes))
    }

    fn copy_host(&self, copy: &MemoryCopy) {
        let mut state = self.0.borrow_mut();
        let bytes = state.read_host_bytes(copy.src.at.0, copy.size.width);
        state.write_host_bytes(copy.dst.at.0, &bytes);
        let (id, stream) = (copy.dst.rows, state.stream);
        let Some(item) = state.take_expected(id, stream, &Work::Nothing) else { return };
        let Some(Sheet { to, from: Some(from), is_awaited, .. }) = state.sheets.get(&id).cloned() else {
            return;
        };
        let (reads, writes) = (words(from, &bytes), words(to, &bytes));
        let by = if is_awaited { By::Call } else { By::Process };
        state.note(Event::Executed { item, reads, writes, by });
    }

    fn allocate(&self, device: i32, host: Ptr, len: usize) -> HipResult<u64> {
        let mut state = self.0.borrow_mut();
        if !state.are_apart || state.elsewhere.contains(&host.0) {
            return Ok(state.allocate(device, len));
        }
        state.place(device, host.wire(), vec![GARBAGE; len]);
        Ok(host.wire())
    }

    fn create_event(&self, device: i32) -> HipResult<EventHandle> {
        Ok(EventHandle::from_wire(self.0.borrow_mut().create_event(device)))
    }

    fn create_stream(&self, device: i32) -> HipResult<u64> {
        Ok(self.0.borrow_mut().create_stream(true, device))
    }

    fn fetch(&self, ranges: &[(u64, usize)], stream: u64) -> HipResult<Vec<Vec<u8>>> {
        let mut state = self.0.borrow_mut();
        let haste = state.haste & 15;
        state.reach(stream, haste);
        state.is_fetching = true;
        let worker = state.worker(stream);
        Ok(ranges.iter().map(|(at, len)| state.read_device(worker, *at, *len)).collect())
    }

    fn tells_changes(&self) -> bool {
        self.0.borrow().changes.iter().all(changes::Changes::is_told)
    }

    fn changes(&self, ranges: &[MemChanges]) -> HipResult<Vec<ChangesAnswer>> {
        let mut state = self.0.borrow_mut();
        let answers = ranges.iter().map(|range| Ok(state.tell_changes(range))).collect();
        state.is_fetching = true;
        Ok(answers)
    }

    fn can_ask_behind(&self, _copy: &Transfer) -> bool {
        true
    }

    fn ask(&self, question: u64, ahead: Ahead<'_>, ranges: &[MemChanges]) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let Some(stream) = ranges.first().map(|range| range.stream) else {
            return Err(HipError::INVALID_VALUE);
        };
        let (wait, copy) = match ahead {
            Ahead::Nothing => (None, None),
            Ahead::Wait(wait) => (Some(wait), None),
            Ahead::Copy(transfer) => (None, state.receive(transfer)),
        };
        let mut awaited = wait.map(|wait| state.awaited(wait)).unwrap_or_default();
        awaited.extend(copy);
        let command = state.put(stream, Work::Look { question, ranges: ranges.to_vec() }, None, None);
        if let Some(command) = state.commands.get_mut(command) {
            command.after.extend(awaited);
        }
        // The worker does what it is sent later when this is answered.
        let worker = state.worker(stream);
        state.hold_up(worker, vec![command]);
        state.questions.insert(question, Question { command, wait, copy, answers: Vec::new() });
        Ok(())
    }

    fn answers(&self, question: u64) -> (HipResult<()>, Vec<ChangesAnswer>) {
        let mut state = self.0.borrow_mut();
        state.is_fetching = true;
        let Some(Question { copy, answers, .. }) = state.questions.remove(&question) else {
            return (Err(HipError::UNKNOWN), Vec::new());
        };
        let was_refused = copy.is_some_and(|copy| state.was_refused(&[copy]));
        (if was_refused { Err(HipError::LAUNCH_FAILURE) } else { Ok(()) }, answers)
    }

    fn watch(&self, at: u64, len: usize, device: i32) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let worker = state.worker_of(device);
        if let Some(changes) = state.changes.get_mut(worker) {
            changes.watch(at, len);
        }
        Ok(())
    }

    fn begin_capture(&self, stream: u64) -> HipResult<()> {
        self.0.borrow_mut().recording = Some((stream, Vec::new()));
        Ok(())
    }

    fn end_capture(&self, stream: u64) -> HipResult<u64> {
        let mut state = self.0.borrow_mut();
        let Some((_, works)) = state.recording.take().filter(|(recorder, _)| *recorder == stream) else {
            return Err(HipError::ILLEGAL_STATE);
        };
        let graph = state.handle();
        state.graphs.insert(graph, works);
        Ok(graph)
    }

    fn instantiate(&self, graph: u64) -> HipResult<u64> {
        let mut state = self.0.borrow_mut();
        let works = state.graphs.get(&graph).cloned().ok_or(HipError::INVALID_VALUE)?;
        let exec = state.handle();
        state.execs.insert(exec, works);
        Ok(exec)
    }

    fn wait(&self, _wait: Wait) -> HipResult<()> {
        // The stream layer asks its caller to wait.
        Err(HipError::NOT_SUPPORTED)
    }

    fn can_watch(&self) -> bool {
        self.0.borrow().has_watches
    }

    fn hear(&self) {
        // The world decides what is heard, and when.
    }

    fn is_quiet(&self) -> bool {
        true
    }

    fn ahead(&self) -> (u64, u64) {
        // Every 16 commands the worker answers something.
        (self.0.borrow().count() as u64 % 16 * (AHEAD_REQUESTS_MAX / 12), 0)
    }

    fn flush(&self) -> HipResult<()> {
        Ok(())
    }

    fn wait_in_order(&self, wait: Wait) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let worker = state.worker_of_wait(wait);
        let barrier = state.awaited(wait).into_iter().chain(state.held_up_by(worker)).collect();
        state.hold_up(worker, barrier);
        Ok(())
    }

    fn receive(&self, transfer: &Transfer) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let Transfer { from, copy, stream, .. } = *transfer;
        let (haste, worker) = (state.haste & 15, state.worker(stream));
        state.reach(stream, haste);
        let bytes = state.read_device(worker, from, copy.size.width);
        let to = copy.dst.at.0;
        if state.host_place(to, bytes.len()).is_none() {
            state.passing = Some((to, bytes));
            return Ok(());
        }
        state.write_host_bytes(to, &bytes);
        state.carried_out(copy.dst.rows, &bytes);
        Ok(())
    }

    fn launch(&self, kernel: &KernelLaunch, arguments: &Arguments, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let id = kernel.function.handle as usize;
        // Behind the one descriptor.
        let word =
            |at: usize| arguments.tail.get(8 + 8 * at..16 + 8 * at).and_then(|word| word.try_into().ok());
        let named = [word(0), word(1)].map(|word| word.map_or(0, u64::from_le_bytes));
        let known = state.sheets.get(&id).and_then(|sheet| sheet.known);
        let (to, from) = known.unwrap_or((named[0], named[1]));
        state.put_of(stream, id, Work::Kernel { to, from });
        Ok(())
    }

    fn copy(&self, transfer: &Transfer, inline: &[u8]) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let Transfer { to, from, copy, stream, is_blocking, .. } = *transfer;
        let is_write = transfer.kind == kind::HOST_TO_DEVICE;
        let work = if is_write {
            Work::Write { to, bytes: inline.to_vec() }
        } else {
            Work::Copy { to, from, len: copy.size.width }
        };
        let command = state.put_of(stream, copy.dst.rows, work);
        if is_write && is_blocking {
            let worker = state.worker(stream);
            state.hold_up(worker, command.into_iter().collect());
        }
        Ok(())
    }

    fn copy_peer(&self, _copy: &MemcpyPeer, _is_blocking: bool) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    fn copy_between(&self, copy: &MemoryCopy, dst_stream: u64, src_stream: u64) -> HipResult<bool> {
        let mut state = self.0.borrow_mut();
        // Some workers cannot reach each other.
        if state.haste & 32 == 0 {
            return Ok(false);
        }
        let (haste, from) = (state.haste & 15, state.worker(src_stream));
        state.reach(src_stream, haste);
        let bytes = state.read_device(from, copy.src.at.wire(), copy.size.width);
        let work = Work::Write { to: copy.dst.at.wire(), bytes };
        let command = state.put_of(dst_stream, copy.dst.rows, work);
        let to = state.worker(dst_stream);
        state.hold_up(to, command.into_iter().collect());
        state.reach(dst_stream, haste);
        Ok(true)
    }

    fn write(&self, to: u64, _from: Ptr, bytes: &[u8], stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let worker = state.worker(stream);
        state.learn(worker, to, bytes);
        state.put(stream, Work::Write { to, bytes: bytes.to_vec() }, None, None);
        Ok(())
    }

    fn fill(&self, to: u64, pattern: Pattern, count: usize, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        match pattern {
            Pattern::Word(value) => {
                let bytes = value.to_le_bytes().repeat(count);
                state.put_of(stream, value.wrapping_sub(FILLS) as usize, Work::Fill { to, bytes });
            }
            // Memory that kernels can reach from now on is zeroed.
            Pattern::Byte(value) => {
                state.put(stream, Work::Fill { to, bytes: vec![value; count] }, None, None);
            }
            Pattern::Half(_) => return Err(HipError::NOT_SUPPORTED),
        }
        Ok(())
    }

    fn record(&self, event: EventHandle, stream: u64, _is_shared: bool) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        if state.known_event(event, stream).is_some() {
            let command = state.put(stream, Work::Nothing, None, None);
            state.events.entry(event.wire()).and_modify(|(recorded, _)| *recorded = Some(command));
        }
        Ok(())
    }

    fn await_event(&self, event: EventHandle, stream: u64, _flags: u32) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        if let Some(recorded) = state.known_event(event, stream) {
            state.put(stream, Work::Nothing, None, recorded);
        }
        Ok(())
    }

    fn launch_graph(&self, exec: u64, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        let works = state.execs.get(&exec).cloned();
        if works.is_none() {
            state.note(Event::Unasked { what: format!("the graph {exec:#x}, which is no more") });
        }
        for (id, work) in works.unwrap_or_default() {
            state.put_of(stream, id, work);
        }
        Ok(())
    }

    fn free_async(&self, _ptr: Ptr, _stream: u64) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    fn destroy_stream(&self, stream: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        match state.streams.get_mut(&stream).filter(|tail| !tail.is_destroyed) {
            Some(tail) => {
                tail.is_destroyed = true;
                state.free_streams.push(stream);
            }
            None => state.note(Event::Unasked { what: format!("the end of the stream {stream:#x}, again") }),
        }
        Ok(())
    }

    fn destroy_event(&self, event: EventHandle) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        match state.events.remove(&event.wire()) {
            Some(_) => state.free_events.push(event.wire()),
            None => state.note(Event::Unasked { what: format!("the end of {event:?}, again") }),
        }
        Ok(())
    }

    fn destroy_graph(&self, graph: u64) -> HipResult<()> {
        self.0.borrow_mut().graphs.remove(&graph);
        Ok(())
    }

    fn destroy_exec(&self, exec: u64) -> HipResult<()> {
        let mut state = self.0.borrow_mut();
        if state.execs.remove(&exec).is_none() {
            state.note(Event::Unasked { what: format!("the end of the graph {exec:#x}, again") });
        }
        Ok(())
    }
}
