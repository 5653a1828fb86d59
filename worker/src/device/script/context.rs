//! The context of a scripted device.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult, Text, Wire};

use super::{Launched, Live, Script, State, TOTAL_BYTES};
use hipr_device::{
    Args, Context, FunctionInfo, Launch, MemoryKind, ModuleLoad, Region, Room, WaitFor, Waker,
};

/// The per-thread stream, the last of those that exist without being created; those before it are the legacy null stream.
const PER_THREAD_STREAM: u64 = hipr_abi::hipStreamPerThread as u64;

enum Work {
    Write(Region, Box<[u8]>),
    Copy(Region, Region),
    Fill(Region, u32, u32),
    Record(u64),
    WaitEvent(u64),
    /// All later work, of whatever stream, comes behind this.
    BeforeAll,
    Launch(Launched, Option<u64>, Option<u64>),
    Free(u64),
}

pub(super) struct ContextState {
    id: usize,
    /// The number of devices, and the current one.
    devices: i32,
    device: i32,
    waker: Waker,
    /// The lowest address or handle that has not been used.
    next: u64,
    /// Number of finished calls of each method.
    counts: BTreeMap<&'static str, u64>,
    /// The error of every call since the device was lost.
    pub(super) dead: Option<HipError>,
    spoiled: Vec<(Range<u64>, HipError)>,
    memory: BTreeMap<u64, Vec<u8>>,
    reserved_bytes: u64,
    streams: BTreeMap<u64, (u32, i32)>,
    /// Times at which events were last recorded, by the clock.
    events: BTreeMap<u64, Option<u64>>,
    /// Modules and the addresses of their variables.
    modules: BTreeMap<u64, Vec<u64>>,
    functions: BTreeMap<u64, String>,
    held: BTreeSet<u64>,
    queue: VecDeque<(u64, Work)>,
    errors: Vec<(u64, HipError)>,
    limits: BTreeMap<i32, u64>,
    /// Number of pieces of work that have been done.
    clock: u64,
}

impl ContextState {
    pub(super) fn new(id: usize, devices: i32, waker: Waker, spoiled: Vec<(Range<u64>, HipError)>) -> Self {
        let (memory, streams, events, modules, functions) = Default::default();
        let (held, queue, errors, limits, clock, counts) = Default::default();
        Self {
            id,
            devices,
            device: 0,
            waker,
            next: Script::first_address(id),
            counts,
            dead: None,
            spoiled,
            memory,
            reserved_bytes: 0,
            streams,
            events,
            modules,
            functions,
            held,
            queue,
            errors,
            limits,
            clock,
        }
    }

    /// Returns the counter of a method's finished calls.
    pub(super) fn count(&mut self, call: &'static str) -> &mut u64 {
        self.counts.entry(call).or_default()
    }

    /// Returns a new address or handle with `room` free addresses before the next.
    fn handle(&mut self, room: u64) -> u64 {
        let handle = self.next;
        self.next += room.next_multiple_of(Script::ALIGN) + Script::ALIGN;
        handle
    }

    /// Resets the context to its initial state, except for used addresses and counted calls.
    fn reset(&mut self) {
        let spoiled = std::mem::take(&mut self.spoiled);
        let (next, counts, dead) = (self.next, std::mem::take(&mut self.counts), self.dead);
        let new = Self::new(self.id, self.devices, self.waker(), spoiled);
        *self = Self { next, counts, dead, device: self.device, ..new };
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    pub(super) fn add_to(&self, live: &mut Live) {
        live.allocations += self.memory.len();
        live.streams += self.streams.len();
        live.events += self.events.len();
        live.modules += self.modules.len();
    }

    pub(super) fn hold(&mut self, stream: u64) {
        self.held.insert(stream);
    }

    pub(super) fn release(&mut self, stream: u64, launches: &mut Vec<Launched>) {
        self.held.remove(&stream);
        for (at, work) in std::mem::take(&mut self.queue) {
            self.enqueue(at, work, launches);
        }
    }

    pub(super) fn surface(&mut self, stream: u64, error: HipError) {
        self.errors.push((stream, error));
    }

    fn is_busy(&self, what: WaitFor) -> bool {
        self.queue.iter().any(|(stream, work)| match (what, work) {
            (WaitFor::Device, _) => true,
            (WaitFor::Stream(of), _) => self.covers(of, *stream),
            (WaitFor::Event(of), Work::Record(event)) => of == *event,
            (WaitFor::Event(of), Work::Launch(_, start, stop)) => [*start, *stop].contains(&Some(of)),
            (WaitFor::Event(_), _) => false,
        })
    }

    fn is_blocking(&self, stream: u64) -> bool {
        self.streams.get(&stream).is_none_or(|(flags, _)| flags & hipr_abi::hipStreamNonBlocking == 0)
    }

    /// Returns whether new work of `stream` waits for work of `other`: they are the same stream, or one is the legacy null
    /// stream and the other a blocking one.
    fn comes_behind(&self, stream: u64, other: u64) -> bool {
        let is_null = |stream| stream < PER_THREAD_STREAM;
        stream == other
            || (is_null(stream) || is_null(other)) && self.is_blocking(stream) && self.is_blocking(other)
    }

    /// Returns whether a wait for the stream `of` includes work of `stream`.
    fn covers(&self, of: u64, stream: u64) -> bool {
        of == stream || (of < PER_THREAD_STREAM && self.comes_behind(of, stream))
    }

    /// Returns whether work that is enqueued on `stream` now would have to wait for other work.
    fn has_work_before(&self, stream: u64) -> bool {
        self.queue.iter().any(|(at, work)| matches!(work, Work::BeforeAll) || self.comes_behind(stream, *at))
    }

    fn take_error(&mut self, what: WaitFor) -> HipResult<()> {
        let at = self.errors.iter().position(|(stream, _)| match what {
            WaitFor::Device | WaitFor::Event(_) => true,
            WaitFor::Stream(of) => self.covers(of, *stream),
        });
        at.map_or(Ok(()), |at| Err(self.errors.remove(at).1))
    }

    /// Executes work, or queues it if its stream is held or has work before it.
    fn enqueue(&mut self, stream: u64, work: Work, launches: &mut Vec<Launched>) {
        let waits = match work {
            Work::WaitEvent(event) => self.is_busy(WaitFor::Event(event)),
            _ => false,
        };
        if waits || self.held.contains(&stream) || self.has_work_before(stream) {
            self.queue.push_back((stream, work));
        } else if let Err(error) = self.run(work, launches) {
            self.errors.push((stream, error));
        }
    }

    fn run(&mut self, work: Work, launches: &mut Vec<Launched>) -> HipResult<()> {
        self.clock += 1;
        match work {
            Work::Write(dst, bytes) => self.write(&dst, 0, &bytes)?,
            Work::Copy(dst, src) => {
                let mut bytes = vec![0; usize::try_from(src.len_bytes().unwrap_or(0)).unwrap_or(0)];
                self.read(&src, 0, &mut bytes)?;
                self.write(&dst, 0, &bytes)?;
            }
            Work::Fill(dst, value, element_bytes) => {
                let element: Vec<u8> = value.to_le_bytes().into_iter().take(element_bytes as usize).collect();
                let len = usize::try_from(dst.len_bytes().unwrap_or(0)).unwrap_or(0);
                let bytes: Vec<u8> = element.into_iter().cycle().take(len).collect();
                self.write(&dst, 0, &bytes)?;
            }
            Work::Record(event) => self.record(event),
            Work::WaitEvent(_) | Work::BeforeAll => {}
            Work::Launch(launched, start, stop) => {
                start.into_iter().for_each(|event| self.record(event));
                launches.push(launched);
                self.clock += 1;
                stop.into_iter().for_each(|event| self.record(event));
            }
            Work::Free(ptr) => drop(self.memory.remove(&ptr)),
        }
        Ok(())
    }

    fn record(&mut self, event: u64) {
        let clock = self.clock;
        self.events.entry(event).and_modify(|at| *at = Some(clock));
    }

    fn bytes(&mut self, ptr: u64, len: u64) -> HipResult<&mut [u8]> {
        let touched =
            |spoiled: &Range<u64>| ptr < spoiled.end && spoiled.start - ptr.min(spoiled.start) < len;
        if let Some((_, error)) = self.spoiled.iter().find(|(spoiled, _)| touched(spoiled)) {
            return Err(*error);
        }
        let (base, bytes) = self.memory.range_mut(..=ptr).next_back().ok_or(HipError::ILLEGAL_ADDRESS)?;
        let start = usize::try_from(ptr - base).map_err(|_| HipError::ILLEGAL_ADDRESS)?;
        let len = usize::try_from(len).map_err(|_| HipError::ILLEGAL_ADDRESS)?;
        bytes.get_mut(start..).and_then(|rest| rest.get_mut(..len)).ok_or(HipError::ILLEGAL_ADDRESS)
    }

    fn write(&mut self, dst: &Region, offset: u64, bytes: &[u8]) -> HipResult<()> {
        for (ptr, at, len) in dst.runs(offset, bytes.len() as u64) {
            let from = bytes.get(at as usize..).and_then(|rest| rest.get(..len as usize));
            self.bytes(ptr, len)?.copy_from_slice(from.ok_or(HipError::ILLEGAL_ADDRESS)?);
        }
        Ok(())
    }

    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()> {
        for (ptr, at, len) in src.runs(offset, out.len() as u64) {
            let to = out.get_mut(at as usize..).and_then(|rest| rest.get_mut(..len as usize));
            to.ok_or(HipError::ILLEGAL_ADDRESS)?.copy_from_slice(self.bytes(ptr, len)?);
        }
        Ok(())
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.memory.values().map(|bytes| bytes.len() as u64).sum()
    }

    fn available_bytes(&self) -> u64 {
        TOTAL_BYTES - self.used_bytes() - self.reserved_bytes
    }

    /// Places memory. The script does not check what the worker has to: it is for the tests to find out.
    fn place(&mut self, ptr: u64, size_bytes: u64) -> HipResult<()> {
        self.reserved_bytes = self.reserved_bytes.checked_sub(size_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
        let len = usize::try_from(size_bytes).map_err(|_| HipError::OUT_OF_MEMORY)?;
        self.memory.insert(ptr, vec![0; len]);
        Ok(())
    }
}

/// The context of a scripted device as the worker uses it. Its state lies in the script, where the test can reach it.
pub(super) struct ScriptContext {
    script: Script,
    id: usize,
}

impl ScriptContext {
    pub(super) fn new(script: Script, id: usize) -> Self {
        Self { script, id }
    }

    fn enter<T>(
        &self,
        call: &'static str,
        body: impl FnOnce(&mut ContextState) -> HipResult<T>,
    ) -> HipResult<T> {
        let mut state = self.script.enter(self.id, call)?;
        body(state.contexts.get_mut(&self.id).ok_or(HipError::INVALID_CONTEXT)?)
    }

    /// Executes a call that creates something, with a new handle before which `room` addresses are free.
    fn create<T>(
        &self,
        call: &'static str,
        room: u64,
        body: impl FnOnce(&mut ContextState, u64) -> HipResult<T>,
    ) -> HipResult<T> {
        self.enter(call, |state| {
            let handle = state.handle(room);
            body(state, handle)
        })
    }

    fn poll<T>(
        &self,
        call: &'static str,
        what: WaitFor,
        body: impl FnOnce(&mut ContextState) -> T,
    ) -> Poll<HipResult<T>> {
        self.script.enter_wait(self.id, call, |state| state.is_busy(what)).map(|entered| {
            let mut state = entered?;
            state.contexts.get_mut(&self.id).ok_or(HipError::INVALID_CONTEXT).map(body)
        })
    }

    fn enqueue(&self, call: &'static str, stream: u64, work: Work) -> HipResult<()> {
        let mut guard = self.script.enter(self.id, call)?;
        let State { contexts, launches, .. } = &mut *guard;
        let context = contexts.get_mut(&self.id).ok_or(HipError::INVALID_CONTEXT)?;
        if stream > PER_THREAD_STREAM && !context.streams.contains_key(&stream) {
            return Err(HipError::INVALID_HANDLE);
        }
        context.enqueue(stream, work, launches);
        Ok(())
    }
}

impl Drop for ScriptContext {
    fn drop(&mut self) {
        while self.script.lock().ends_held {
            thread::sleep(Duration::from_millis(1));
        }
        self.script.lock().contexts.remove(&self.id);
    }
}

fn known<T>(entry: Option<T>) -> HipResult<T> {
    entry.ok_or(HipError::INVALID_HANDLE)
}

impl Context for ScriptContext {
    fn device_count(&self) -> HipResult<i32> {
        self.enter("device_count", |context| Ok(context.devices))
    }

    fn device(&self) -> i32 {
        self.script.lock().contexts.get(&self.id).map_or(0, |context| context.device)
    }

    fn set_device(&mut self, device: i32) -> HipResult<()> {
        self.enter("set_device", |context| {
            context.device = device;
            Ok(())
        })
    }

    /// Returns a range by which the current device can be told.
    fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        self.enter("stream_priority_range", |context| Ok((0, -context.device)))
    }

    fn properties(&self, _device: i32) -> HipResult<GetDevicePropertiesReply> {
        self.enter("properties", |_| {
            let (name, total_global_mem) = (Text::new("hipr script"), TOTAL_BYTES);
            let gcn_arch_name = Text::new("gfx942");
            Ok(GetDevicePropertiesReply {
                name,
                total_global_mem,
                warp_size: 64,
                gcn_arch_name,
                ..Wire::ZERO
            })
        })
    }

    fn attribute(&self, _device: i32, attribute: i32) -> HipResult<i32> {
        self.enter("attribute", |_| Ok(attribute))
    }

    fn version(&self) -> HipResult<i32> {
        self.enter("version", |_| Ok(60_443_484))
    }

    fn limit(&self, limit: i32) -> HipResult<u64> {
        self.enter("limit", |state| state.limits.get(&limit).copied().ok_or(HipError::UNSUPPORTED_LIMIT))
    }

    fn set_limit(&mut self, limit: i32, value: u64) -> HipResult<()> {
        self.enter("set_limit", |state| {
            state.limits.insert(limit, value);
            Ok(())
        })
    }

    fn mem_info(&self) -> HipResult<(u64, u64)> {
        self.enter("mem_info", |state| Ok((TOTAL_BYTES - state.used_bytes(), TOTAL_BYTES)))
    }

    fn reset(&mut self) -> HipResult<()> {
        self.enter("reset", |state| {
            state.reset();
            Ok(())
        })
    }

    fn malloc(&mut self, size_bytes: u64, _kind: MemoryKind, _flags: u32) -> HipResult<u64> {
        self.create("malloc", size_bytes.min(TOTAL_BYTES), |state, ptr| {
            if size_bytes > state.available_bytes() {
                return Err(HipError::OUT_OF_MEMORY);
            }
            let len = usize::try_from(size_bytes).map_err(|_| HipError::OUT_OF_MEMORY)?;
            state.memory.insert(ptr, vec![0; len]);
            Ok(ptr)
        })
    }

    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        self.poll("poll_free", WaitFor::Device, |state| drop(state.memory.remove(&ptr)))
    }

    fn address_window(&mut self) -> HipResult<Range<u64>> {
        self.enter("address_window", |state| Ok(Script::window(state.id)))
    }

    fn reservable(&self) -> HipResult<u64> {
        self.enter("reservable", |state| Ok(state.available_bytes()))
    }

    fn reserve(&mut self, bytes: u64) -> HipResult<()> {
        self.enter("reserve", |state| {
            if bytes > state.available_bytes() {
                return Err(HipError::OUT_OF_MEMORY);
            }
            state.reserved_bytes += bytes;
            Ok(())
        })
    }

    fn unreserve(&mut self, bytes: u64) -> HipResult<()> {
        self.enter("unreserve", |state| {
            state.reserved_bytes -= bytes.min(state.reserved_bytes);
            Ok(())
        })
    }

    fn malloc_at(&mut self, ptr: u64, size_bytes: u64, _kind: MemoryKind, _flags: u32) -> HipResult<()> {
        self.enter("malloc_at", |state| state.place(ptr, size_bytes))
    }

    fn poll_free_reserved(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        self.poll("poll_free_reserved", WaitFor::Device, |state| {
            let gone = state.memory.remove(&ptr).map_or(0, |bytes| bytes.len() as u64);
            state.reserved_bytes += gone;
        })
    }

    fn malloc_async(&mut self, size_bytes: u64, _stream: u64) -> HipResult<u64> {
        self.malloc(size_bytes, MemoryKind::Device, 0)
    }

    fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()> {
        self.enqueue("free_async", stream, Work::Free(ptr))
    }

    fn enqueue_write(&mut self, dst: Region, bytes: Box<[u8]>, stream: u64) -> HipResult<()> {
        self.enqueue("enqueue_write", stream, Work::Write(dst, bytes))
    }

    fn order_all_behind(&mut self, stream: u64) -> HipResult<()> {
        self.enqueue("order_all_behind", stream, Work::BeforeAll)
    }

    /// Counts held commands only, and each as no bytes.
    fn poll_room(&mut self, room: Room) -> Poll<()> {
        let commands = self.script.lock().contexts.get(&self.id).map_or(0, |state| state.queue.len());
        if room.has_place_beside(commands, 0) { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_ready(&mut self, stream: u64) -> Poll<()> {
        self.script.enter_wait(self.id, "poll_ready", |state| state.has_work_before(stream)).map(drop)
    }

    fn poll_write(
        &mut self,
        dst: &Region,
        offset: u64,
        bytes: &[u8],
        _stream: u64,
    ) -> Poll<HipResult<usize>> {
        let taken = self.script.enter_wait(self.id, "poll_write", |_| false).map_ok(drop);
        taken.map_ok(|()| self.write(dst, offset, bytes).map(|()| bytes.len())).map(Result::flatten)
    }

    fn write(&mut self, dst: &Region, offset: u64, bytes: &[u8]) -> HipResult<()> {
        self.enter("write", |state| state.write(dst, offset, bytes))
    }

    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()> {
        self.enter("read", |state| state.read(src, offset, out))
    }

    fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()> {
        self.enqueue("copy", stream, Work::Copy(dst, src))
    }

    fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()> {
        self.enqueue("fill", stream, Work::Fill(dst, value, element_bytes))
    }

    fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        self.poll("poll_sync", what, |state| state.take_error(what)).map(Result::flatten)
    }

    fn query(&mut self, what: WaitFor) -> HipResult<()> {
        self.enter("query", |state| if state.is_busy(what) { Err(HipError::NOT_READY) } else { Ok(()) })
    }

    fn poll_query(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        self.poll("poll_query", what, |_| ())
    }

    fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64> {
        self.create("stream_create", 0, |state, stream| {
            state.streams.insert(stream, (flags, priority));
            Ok(stream)
        })
    }

    fn stream_destroy(&mut self, stream: u64) -> HipResult<()> {
        self.enter("stream_destroy", |state| known(state.streams.remove(&stream)).map(drop))
    }

    fn stream_wait_event(&mut self, stream: u64, event: u64, _flags: u32) -> HipResult<()> {
        self.enqueue("stream_wait_event", stream, Work::WaitEvent(event))
    }

    fn stream_flags(&self, stream: u64) -> HipResult<u32> {
        self.enter("stream_flags", |state| Ok(state.streams.get(&stream).map_or(0, |(flags, _)| *flags)))
    }

    fn stream_priority(&self, stream: u64) -> HipResult<i32> {
        self.enter("stream_priority", |state| {
            Ok(state.streams.get(&stream).map_or(0, |(_, priority)| *priority))
        })
    }

    fn event_create(&mut self, _flags: u32) -> HipResult<u64> {
        self.create("event_create", 0, |state, event| {
            state.events.insert(event, None);
            Ok(event)
        })
    }

    fn event_destroy(&mut self, event: u64) -> HipResult<()> {
        self.enter("event_destroy", |state| known(state.events.remove(&event)).map(drop))
    }

    fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()> {
        self.enqueue("event_record", stream, Work::Record(event))
    }

    fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32> {
        self.enter("event_elapsed_ms", |state| {
            if state.is_busy(WaitFor::Event(start)) || state.is_busy(WaitFor::Event(stop)) {
                return Err(HipError::NOT_READY);
            }
            let at = |event| known(state.events.get(&event).copied().flatten());
            Ok((at(stop)? as f32) - (at(start)? as f32))
        })
    }

    fn module_load_within(&mut self, image: Vec<u8>, room_bytes: u64) -> HipResult<ModuleLoad> {
        while self.script.lock().loads_held {
            thread::sleep(Duration::from_millis(1));
        }
        let memory_bytes = image.len() as u64;
        if memory_bytes > room_bytes {
            return Ok(ModuleLoad::NoRoom(image));
        }
        self.create("module_load", 0, |state, module| {
            if image.is_empty() {
                return Err(HipError::INVALID_IMAGE);
            }
            state.modules.insert(module, Vec::new());
            Ok(ModuleLoad::Loaded { module, memory_bytes })
        })
    }

    fn module_unload(&mut self, module: u64) -> HipResult<()> {
        self.enter("module_unload", |state| {
            let globals = known(state.modules.remove(&module))?;
            globals.into_iter().for_each(|ptr| drop(state.memory.remove(&ptr)));
            Ok(())
        })
    }

    fn function(&mut self, _module: u64, name: &str) -> HipResult<FunctionInfo> {
        let defined = self.script.lock().functions.get(name).cloned();
        self.create("function", 0, |state, handle| {
            let (kernarg_size_bytes, params) = defined.ok_or(HipError::NOT_FOUND)?;
            state.functions.insert(handle, name.into());
            Ok(FunctionInfo { handle, kernarg_size_bytes, params: Some(params) })
        })
    }

    fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)> {
        let defined = self.script.lock().globals.get(name).copied();
        self.create("global", defined.unwrap_or(0), |state, ptr| {
            let size_bytes = defined.ok_or(HipError::NOT_FOUND)?;
            known(state.modules.get_mut(&module))?.push(ptr);
            state.memory.insert(ptr, vec![0; usize::try_from(size_bytes).unwrap_or(0)]);
            Ok((ptr, size_bytes))
        })
    }

    fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply> {
        self.enter("function_attributes", |state| {
            known(state.functions.get(&function))?;
            Ok(FuncGetAttributesReply { max_threads_per_block: 1024, ..Wire::ZERO })
        })
    }

    fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()> {
        let kernel = self.enter("launch", |state| known(state.functions.get(&launch.function).cloned()))?;
        let args = match launch.args {
            Args::Flat(data) => vec![data.to_vec()],
            Args::Params { table, data } => {
                let arg = |offset: u32, size: u32| data.get(offset as usize..)?.get(..size as usize);
                let all = table.iter().map(|param| arg(param.offset, param.size).map(<[u8]>::to_vec));
                all.collect::<Option<_>>().ok_or(HipError::INVALID_VALUE)?
            }
        };
        let Launch { grid, block, shared_mem_bytes, cooperative, .. } = *launch;
        let launched =
            Launched { context: self.id, kernel, grid, block, shared_mem_bytes, args, cooperative };
        self.enqueue(
            "launch_work",
            launch.stream,
            Work::Launch(launched, launch.start_event, launch.stop_event),
        )
    }
}
