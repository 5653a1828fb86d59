//! A client's context: handles, events and modules, and the methods of the contract. Methods fail with `INVALID_HANDLE` for
//! an unknown handle, and with `INVALID_VALUE` for a range that is not in one allocation.

mod mappings;

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;

use hipr_device::{
    BlockSize, Context, FunctionInfo, Launch, Load, Mappings, MemoryKind, ModuleLoad, Origin, Param, Printed,
    Region, Room, Share, WaitFor, Waker, WorkFailure, WorkTimes,
};
use hipr_grid::lock;
use hipr_isa::mem::Block;
use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult};

use crate::alloc::{Allocator, Reach};
use crate::attribute::{OfDevice, attribute};
use crate::budget::Budget;
use crate::device::Inner;
use crate::event::{Event, Record};
use crate::launch::Setup;
use crate::module::{Function, Module, Processor};
use crate::property::{self, Model};
use crate::shared::{Shared, State};
use crate::stream::{Task, Wait, Work, number_of};
use crate::transfer::{Pattern, Span, Transfer};
use crate::unused::Unused;
use crate::watch::{Allocated, Loaded, Moved};

const LIMIT_STACK_SIZE: i32 = hipr_abi::hipLimitStackSize;
const LIMIT_MALLOC_HEAP_SIZE: i32 = hipr_abi::hipLimitMallocHeapSize;
const STACK_DEFAULT_BYTES: u64 = 1024;
const STACK_GRANULE_BYTES: u64 = 16;
const STACK_MAX_BYTES: u64 = (128 << 10) - STACK_GRANULE_BYTES;
const MALLOC_HEAP_BYTES: u64 = 8 << 20;
/// The first handle, above those that HIP reserves.
const FIRST_HANDLE: u64 = 0x1000;

/// One client's emulated GPUs: its own address space, handles and errors. Nothing blocks; dropping it stops its work.
pub struct SimContext {
    gpu: Arc<Inner>,
    /// The device that is current.
    device: usize,
    shared: Arc<Shared>,
    next_handle: u64,
    /// The size of a kernel's stack, by device.
    stack_bytes: Vec<u64>,
    /// hipLimitMallocHeapSize of each device.
    malloc_heap_bytes: Vec<u64>,
    events: BTreeMap<u64, Event>,
    modules: BTreeMap<u64, Module>,
    functions: BTreeMap<u64, Arc<Function>>,
    /// The work that the error comes from which was returned last.
    failure: Option<Box<WorkFailure>>,
}

impl SimContext {
    pub(crate) fn new(gpu: Arc<Inner>, waker: Waker) -> Self {
        let allocator = Allocator::new(gpu.budgets.clone());
        let shared = Shared::new(&gpu, waker, allocator, Arc::default());
        Self {
            stack_bytes: vec![STACK_DEFAULT_BYTES; gpu.budgets.len()],
            malloc_heap_bytes: vec![MALLOC_HEAP_BYTES; gpu.budgets.len()],
            gpu,
            device: 0,
            shared,
            next_handle: FIRST_HANDLE,
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            failure: None,
        }
    }

    fn handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle
    }

    /// Checks the number of a device.
    fn check_device(&self, device: i32) -> HipResult<usize> {
        let number = usize::try_from(device).ok().filter(|&device| device < self.gpu.budgets.len());
        number.ok_or(HipError::INVALID_DEVICE)
    }

    /// Returns the memory of the current device.
    fn budget(&self) -> &Arc<Budget> {
        &self.gpu.budgets[self.device]
    }

    fn span(&self, region: Region) -> HipResult<Span> {
        let state = lock(&self.shared.state);
        Span::new(region, |ptr, len_bytes| state.allocator.block(ptr, len_bytes))
    }

    fn block(&self, ptr: u64, len_bytes: u64) -> HipResult<Arc<Block>> {
        lock(&self.shared.state).allocator.block(ptr, len_bytes).ok_or(HipError::INVALID_VALUE)
    }

    fn transfer(&self, transfer: Transfer, stream: u64) -> HipResult<()> {
        self.shared.enqueue(stream, Work::Task(Task::Transfer(transfer)))
    }

    fn record(&self, what: WaitFor) -> HipResult<Option<Arc<Record>>> {
        match what {
            WaitFor::Event(event) => Ok(self.event(event)?.record()),
            WaitFor::Device | WaitFor::Stream(_) => Ok(None),
        }
    }

    /// Returns a record after asking for a notification of its completion.
    fn observed(&self, record: Option<Arc<Record>>) -> Option<Arc<Record>> {
        record.inspect(|record| record.observe(self.shared.id, &self.shared))
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes memory; where there is none, also what no kernel calls the host with.
    fn take_memory<T>(&self, take: impl Fn(&mut Allocator) -> HipResult<T>) -> HipResult<T> {
        let taken = take(&mut lock(&self.shared.state).allocator);
        match taken {
            Err(HipError::OUT_OF_MEMORY) if self.shared.hostcalls.release_idle(&*self.shared) => {
                take(&mut lock(&self.shared.state).allocator)
            }
            taken => taken,
        }
    }

    /// Becomes ready when all work of all devices is done.
    fn poll_idle(state: &mut State) -> Poll<()> {
        loop {
            match state.streams.wait_for_all() {
                Wait::On(fence) if !fence.watch() => return Poll::Pending,
                Wait::On(_) => {}
                Wait::Over => return Poll::Ready(()),
            }
        }
    }

    /// Unmaps an allocation when the work is done that may use it.
    fn poll_unmap(
        &mut self,
        ptr: u64,
        unmap: impl FnOnce(&mut Allocator, u64) -> Option<Arc<Block>>,
    ) -> Poll<HipResult<()>> {
        let mut state = lock(&self.shared.state);
        if !state.allocator.owns(ptr) {
            return Poll::Ready(Err(HipError::INVALID_VALUE));
        }
        match Self::poll_idle(&mut state) {
            Poll::Ready(()) if state.allocator.clear_shared(ptr) => {
                // The rest in another turn: others wait for this thread.
                self.shared.waker.wake();
                Poll::Pending
            }
            Poll::Ready(()) => {
                let freed = unmap(&mut state.allocator, ptr);
                drop(state);
                self.shared.note_freed(ptr);
                self.shared.discard(freed.into_iter().map(Unused::Block).collect());
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Tells what sees the work of an allocation.
    fn note_allocated(&self, ptr: u64, len_bytes: u64, kind: MemoryKind, is_shared: bool) {
        let (context, is_of_kernels) = (self.shared.id, false);
        self.shared.note_allocated(|| Allocated { context, ptr, len_bytes, kind, is_shared, is_of_kernels });
    }

    fn event(&self, event: u64) -> HipResult<&Event> {
        self.events.get(&event).ok_or(HipError::INVALID_HANDLE)
    }

    fn loaded(&self, function: u64) -> HipResult<&Arc<Function>> {
        self.functions.get(&function).ok_or(HipError::INVALID_HANDLE)
    }
}

/// Returns the first row of `region` from packed offset `offset` on, `len` bytes of it, if it has no gaps, else all of it.
fn part(region: &Region, offset: u64, len: usize) -> Region {
    if region.is_contiguous() { Region::flat(region.ptr + offset, len as u64) } else { *region }
}

impl Context for SimContext {
    // ---- devices and limits ----

    fn device_count(&self) -> HipResult<i32> {
        i32::try_from(self.gpu.budgets.len()).map_err(|_| HipError::UNKNOWN)
    }

    fn device(&self) -> i32 {
        self.device as i32
    }

    fn set_device(&mut self, device: i32) -> HipResult<()> {
        self.device = self.check_device(device)?;
        let mut state = lock(&self.shared.state);
        state.allocator.set_current(self.device);
        state.streams.set_current(self.device);
        Ok(())
    }

    fn keep_apart(&mut self, number: u32, parts: u32) {
        lock(&self.shared.state).allocator.keep_apart(number, parts);
    }

    /// All devices can address each other's memory.
    fn can_access_peer(&self, device: i32, peer: i32) -> HipResult<bool> {
        Ok(self.check_device(device)? != self.check_device(peer)?)
    }

    fn set_peer_access(&mut self, peer: i32, enabled: bool) -> HipResult<()> {
        let peer = self.check_device(peer)?;
        if peer == self.device {
            return Err(HipError::INVALID_DEVICE);
        }
        lock(&self.shared.state).allocator.set_peer_access(peer, enabled)
    }

    fn set_share(&mut self, share: Share) {
        self.shared.set_share(share);
    }

    fn queued_bytes(&self) -> u64 {
        self.shared.queued_bytes()
    }

    fn load(&self) -> Option<Arc<Load>> {
        Some(Arc::clone(&self.shared.load))
    }

    fn device_ns(&self) -> Option<Arc<AtomicU64>> {
        Some(Arc::clone(&self.shared.device_ns))
    }

    fn limit_working(&mut self, max_bytes: u64) -> bool {
        let limit = || self.shared.residents.limit(max_bytes);
        limit() || self.shared.hostcalls.release_idle(&*self.shared) && limit()
    }

    fn poll_room(&mut self, room: Room) -> Poll<()> {
        self.shared.poll_room(room)
    }

    fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply> {
        let device = self.check_device(device)?;
        Ok(property::properties(self.gpu.arch, device, self.budget().total_bytes()))
    }

    fn attribute(&self, device: i32, code: i32) -> HipResult<i32> {
        let of = OfDevice { number: self.check_device(device)?, memory_bytes: self.budget().total_bytes() };
        attribute(self.gpu.arch, code, of).ok_or(HipError::INVALID_VALUE)
    }

    fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        self.check_device(device).map(property::uuid)
    }

    fn limit(&self, limit: i32) -> HipResult<u64> {
        match limit {
            LIMIT_STACK_SIZE => Ok(self.stack_bytes[self.device]),
            LIMIT_MALLOC_HEAP_SIZE => Ok(self.malloc_heap_bytes[self.device]),
            _ => Err(HipError::UNSUPPORTED_LIMIT),
        }
    }

    /// Sets a limit. The stack size is less than 128 KiB and rounded up to a multiple of 16; kernels use it if the compiler does not know their stack
    /// depth. The heap size is at most the device's memory; it is only reported, as the heap of kernels grows by itself.
    fn set_limit(&mut self, limit: i32, value: u64) -> HipResult<()> {
        match limit {
            LIMIT_STACK_SIZE if value <= STACK_MAX_BYTES => {
                self.stack_bytes[self.device] = value.next_multiple_of(STACK_GRANULE_BYTES);
                Ok(())
            }
            LIMIT_MALLOC_HEAP_SIZE if value <= self.budget().total_bytes() => {
                self.malloc_heap_bytes[self.device] = value;
                Ok(())
            }
            LIMIT_STACK_SIZE | LIMIT_MALLOC_HEAP_SIZE => Err(HipError::INVALID_VALUE),
            _ => Err(HipError::UNSUPPORTED_LIMIT),
        }
    }

    fn version(&self) -> HipResult<i32> {
        Ok(property::VERSION)
    }

    fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        Ok(property::STREAM_PRIORITIES)
    }

    /// Returns free and total memory; that of all contexts counts.
    fn mem_info(&self) -> HipResult<(u64, u64)> {
        Ok((self.budget().free_bytes(), self.budget().total_bytes()))
    }

    /// Resets the context; handles and addresses are not reused, and the window stays.
    fn reset(&mut self) -> HipResult<()> {
        let allocator = lock(&self.shared.state).allocator.successor();
        self.shared.close();
        let device_ns = Arc::clone(&self.shared.device_ns);
        let printed = self.shared.hostcalls.take_printed(&*self.shared);
        self.shared = Shared::new(&self.gpu, self.shared.waker.clone(), allocator, device_ns);
        self.shared.hostcalls.put_back(printed);
        lock(&self.shared.state).streams.set_current(self.device);
        self.stack_bytes.fill(STACK_DEFAULT_BYTES);
        self.malloc_heap_bytes.fill(MALLOC_HEAP_BYTES);
        self.events.clear();
        self.modules.clear();
        self.functions.clear();
        Ok(())
    }

    // ---- memory ----

    /// Allocates zeroed memory; all kinds count as device memory.
    fn malloc(&mut self, size_bytes: u64, kind: MemoryKind, _flags: u32) -> HipResult<u64> {
        let ptr = self.take_memory(|allocator| allocator.allocate(size_bytes, kind.into()))?.base();
        self.note_allocated(ptr, size_bytes, kind, false);
        Ok(ptr)
    }

    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        self.poll_unmap(ptr, Allocator::finish_free)
    }

    fn address_window(&mut self) -> HipResult<Range<u64>> {
        Ok(lock(&self.shared.state).allocator.window())
    }

    fn reservable(&self) -> HipResult<u64> {
        Ok(self.budget().available_bytes())
    }

    fn reserve(&mut self, bytes: u64) -> HipResult<()> {
        self.take_memory(|allocator| allocator.reserve(bytes))
    }

    fn unreserve(&mut self, bytes: u64) -> HipResult<()> {
        lock(&self.shared.state).allocator.unreserve(bytes);
        Ok(())
    }

    fn malloc_at(&mut self, ptr: u64, size_bytes: u64, kind: MemoryKind, _flags: u32) -> HipResult<()> {
        lock(&self.shared.state).allocator.allocate_at(ptr, size_bytes, kind.into())?;
        self.note_allocated(ptr, size_bytes, kind, false);
        Ok(())
    }

    fn share_host_memory(&mut self) -> HipResult<OwnedFd> {
        lock(&self.shared.state).allocator.share()
    }

    fn malloc_shared(&mut self, ptr: u64, size_bytes: u64, kind: MemoryKind, _flags: u32) -> HipResult<()> {
        lock(&self.shared.state).allocator.allocate_shared(ptr, size_bytes)?;
        self.note_allocated(ptr, size_bytes, kind, true);
        Ok(())
    }

    fn poll_free_reserved(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        self.poll_unmap(ptr, Allocator::finish_free_reserved)
    }

    fn malloc_async(&mut self, size_bytes: u64, stream: u64) -> HipResult<u64> {
        lock(&self.shared.state).streams.flags(stream)?;
        self.malloc(size_bytes, MemoryKind::Device, 0)
    }

    fn mappings(&mut self) -> Option<&mut dyn Mappings> {
        Some(self)
    }

    fn frees_at_once(&self) -> bool {
        self.shared.watch.is_some()
    }

    fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()> {
        let mut state = lock(&self.shared.state);
        state.streams.flags(stream)?;
        state.allocator.start_free(ptr)?;
        drop(state);
        self.shared.enqueue(stream, Work::Free(ptr))
    }

    fn enqueue_write(&mut self, dst: Region, bytes: Box<[u8]>, stream: u64) -> HipResult<()> {
        let dst = self.span(dst)?;
        if dst.len_bytes() != bytes.len() as u64 {
            return Err(HipError::INVALID_VALUE);
        }
        self.transfer(Transfer::Write { dst, bytes }, stream)
    }

    fn order_all_behind(&mut self, stream: u64) -> HipResult<()> {
        lock(&self.shared.state).streams.order_all_behind(stream)
    }

    fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()> {
        let extent = |region: &Region| [region.width, region.height, region.depth];
        if extent(&dst) != extent(&src) {
            return Err(HipError::INVALID_VALUE);
        }
        let (dst, src) = (self.span(dst)?, self.span(src)?);
        self.transfer(Transfer::Copy { dst, src }, stream)
    }

    fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()> {
        let dst = self.span(dst)?;
        let pattern = Pattern::new(value, element_bytes)?;
        self.transfer(Transfer::Fill { dst, pattern }, stream)
    }

    fn write(&mut self, dst: &Region, offset: u64, bytes: &[u8]) -> HipResult<()> {
        self.span(*dst)?.write(offset, bytes)?;
        self.shared.note_moved(None, || Moved::Write { dst: part(dst, offset, bytes.len()) });
        Ok(())
    }

    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()> {
        self.span(*src)?.read(offset, out)?;
        self.shared.note_moved(None, || Moved::Read { src: part(src, offset, out.len()) });
        Ok(())
    }

    fn watch(&mut self, ptr: u64, len_bytes: u64) -> HipResult<bool> {
        self.block(ptr, len_bytes)?.keep_marks();
        Ok(true)
    }

    fn take_changes(&mut self, ptr: u64, len_bytes: u64) -> HipResult<Vec<Range<u64>>> {
        let block = self.block(ptr, len_bytes)?;
        let offset = block.exact_offset(ptr, len_bytes).ok_or(HipError::INVALID_VALUE)?;
        let runs = block.take_marks(offset, len_bytes as usize).ok_or(HipError::INVALID_VALUE)?;
        let base = block.base();
        Ok(runs.into_iter().map(|run| base + run.start as u64..base + run.end as u64).collect())
    }

    // ---- waits ----

    fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        let record = match self.record(what) {
            Ok(record) => self.observed(record),
            Err(error) => return Poll::Ready(Err(error)),
        };
        // Errors of another context's streams are for that context.
        let own = record.as_deref().filter(|record| record.is_of(self.shared.id));
        let mut state = lock(&self.shared.state);
        loop {
            match state.streams.wait(what, record.as_deref()) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) => {
                    let failed = state.streams.take_error(what, own).err();
                    drop(state);
                    let Some(failed) = failed else { return Poll::Ready(Ok(())) };
                    self.failure = failed.work;
                    return Poll::Ready(Err(failed.error));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn note_times(&mut self, origin: Origin) {
        lock(&self.shared.state).streams.times.note(origin);
    }

    fn take_times(&mut self, into: &mut Vec<WorkTimes>) -> u32 {
        lock(&self.shared.state).streams.times.take(into)
    }

    fn has_printed(&self) -> bool {
        self.shared.hostcalls.has_printed()
    }

    fn take_printed(&mut self) -> Vec<Printed> {
        self.shared.hostcalls.take_printed(&*self.shared)
    }

    fn take_failure(&mut self) -> Option<WorkFailure> {
        self.failure.take().map(|failure| *failure)
    }

    fn poll_ready(&mut self, stream: u64) -> Poll<()> {
        let mut state = lock(&self.shared.state);
        loop {
            match state.streams.wait_turn(stream) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    fn query(&mut self, what: WaitFor) -> HipResult<()> {
        let record = self.record(what)?;
        match lock(&self.shared.state).streams.wait(what, record.as_deref())? {
            Wait::Over => Ok(()),
            Wait::On(_) => Err(HipError::NOT_READY),
        }
    }

    fn poll_query(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        let record = match self.record(what) {
            Ok(record) => self.observed(record),
            Err(error) => return Poll::Ready(Err(error)),
        };
        let mut state = lock(&self.shared.state);
        loop {
            match state.streams.wait(what, record.as_deref()) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) => return Poll::Ready(Ok(())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    // ---- streams and events ----

    /// Creates a stream; its priority is clamped to the device's range and has no effect.
    fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64> {
        let handle = self.handle();
        lock(&self.shared.state).streams.create(handle, flags, priority)?;
        Ok(handle)
    }

    fn stream_destroy(&mut self, stream: u64) -> HipResult<()> {
        lock(&self.shared.state).streams.destroy(stream)
    }

    fn stream_wait_event(&mut self, stream: u64, event: u64, _flags: u32) -> HipResult<()> {
        let record = self.observed(self.event(event)?.record());
        let after = record.iter().map(|record| Arc::clone(&record.fence)).collect();
        self.shared.update(|state| (state.streams.enqueue(stream, Work::Wait, Arc::default(), after), false))
    }

    fn stream_flags(&self, stream: u64) -> HipResult<u32> {
        lock(&self.shared.state).streams.flags(stream)
    }

    fn stream_priority(&self, stream: u64) -> HipResult<i32> {
        lock(&self.shared.state).streams.priority(stream)
    }

    fn event_create(&mut self, flags: u32) -> HipResult<u64> {
        let event = Event::new(flags)?;
        let handle = self.handle();
        self.events.insert(handle, event);
        Ok(handle)
    }

    fn event_destroy(&mut self, event: u64) -> HipResult<()> {
        self.events.remove(&event).map(|_| ()).ok_or(HipError::INVALID_HANDLE)
    }

    fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()> {
        let event = self.event(event)?;
        let record = Record::new(self.shared.id, number_of(stream, self.device));
        self.shared.update(|state| {
            let (work, fence) = (Work::Record(Arc::clone(&record)), Arc::clone(&record.fence));
            (state.streams.enqueue(stream, work, fence, Vec::new()), false)
        })?;
        event.set_record(record);
        Ok(())
    }

    fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32> {
        self.event(start)?.elapsed_ms(self.event(stop)?)
    }

    // ---- what contexts of one device lend each other (HIP API: hipIpcGetMemHandle and its kin) ----

    fn share_memory(&mut self, ptr: u64, _size_bytes: u64) -> HipResult<[u8; 64]> {
        let memory = Arc::clone(lock(&self.shared.state).allocator.lendable(ptr)?);
        self.gpu.loans.lend_memory(&memory)
    }

    /// Opens shared memory at its owner's address; it is released when the last context frees it.
    fn open_memory(&mut self, handle: &[u8; 64], _flags: u32, room_bytes: u64) -> HipResult<(u64, u64)> {
        let memory = self.gpu.loans.borrow_memory(handle)?;
        if memory.block.len_bytes() > room_bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        let block = lock(&self.shared.state).allocator.borrow(memory)?;
        self.note_allocated(block.base(), block.len_bytes(), MemoryKind::Device, true);
        Ok((block.base(), block.len_bytes()))
    }

    fn share_event(&mut self, event: u64) -> HipResult<[u8; 64]> {
        self.gpu.loans.lend_event(self.event(event)?.lendable()?)
    }

    fn open_event(&mut self, handle: &[u8; 64]) -> HipResult<u64> {
        let event = Event::of(self.gpu.loans.borrow_event(handle)?);
        let handle = self.handle();
        self.events.insert(handle, event);
        Ok(handle)
    }

    // ---- modules and kernels ----

    fn module_load_within(&mut self, image: Vec<u8>, room_bytes: u64) -> HipResult<ModuleLoad> {
        // The image is there until it is loaded.
        let Some(room_bytes) = room_bytes.checked_sub(image.len() as u64) else {
            return Ok(ModuleLoad::NoRoom(image));
        };
        let mut allocated = None;
        let processor = Processor { arch: self.gpu.arch, level: self.gpu.level, device: self.device };
        let shared = &self.shared;
        let allocate = |len_bytes| {
            let block = lock(&shared.state).allocator.allocate(len_bytes, Reach::Device)?;
            allocated = Some(block.base());
            Ok(block)
        };
        let module = Module::load(&image, processor, room_bytes, allocate, |block, code, elf| {
            let Some(watch) = &shared.watch else { return };
            let (base, len_bytes) = (block.base(), block.len_bytes());
            let variables: Vec<_> = code
                .globals()
                .iter()
                .map(|global| (&*global.name, base + global.vaddr..base + global.vaddr + global.size))
                .collect();
            watch.loaded(&Loaded { context: shared.id, base, len_bytes, elf, variables: &variables });
        });
        match module {
            Ok(Some(loaded)) => {
                let module = self.handle();
                let memory_bytes = loaded.cost_bytes();
                self.modules.insert(module, loaded);
                Ok(ModuleLoad::Loaded { module, memory_bytes })
            }
            Ok(None) => Ok(ModuleLoad::NoRoom(image)),
            Err(error) => {
                if let Some(ptr) = allocated {
                    lock(&self.shared.state).allocator.finish_free(ptr);
                }
                Err(error)
            }
        }
    }

    fn module_unload(&mut self, module: u64) -> HipResult<()> {
        let unloaded = self.modules.remove(&module).ok_or(HipError::INVALID_HANDLE)?;
        self.functions.retain(|_, function| function.module != module);
        let ptr = unloaded.block.base();
        self.shared.update(|state| {
            let result = state.allocator.start_free(ptr);
            state.streams.enqueue_after_all(Work::Free(ptr));
            (result, false)
        })
    }

    fn function(&mut self, module: u64, name: &str) -> HipResult<FunctionInfo> {
        let next_handle = self.next_handle + 1;
        let loaded = self.modules.get_mut(&module).ok_or(HipError::INVALID_HANDLE)?;
        let handle = match loaded.functions.get(name) {
            Some(&handle) => handle,
            None => {
                let function = loaded.function(name, module).ok_or(HipError::NOT_FOUND)?;
                loaded.functions.insert(name.to_owned(), next_handle);
                self.functions.insert(next_handle, Arc::new(function));
                self.next_handle = next_handle;
                next_handle
            }
        };
        let kernel = &self.loaded(handle)?.kernel;
        let params = kernel.param_layout().into_iter().map(|(offset, size)| Param { offset, size }).collect();
        Ok(FunctionInfo { handle, kernarg_size_bytes: kernel.kernarg_bytes, params: Some(params) })
    }

    fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)> {
        let module = self.modules.get(&module).ok_or(HipError::INVALID_HANDLE)?;
        module.global(name).ok_or(HipError::NOT_FOUND)
    }

    fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply> {
        let function = self.loaded(function)?;
        let attributes = function.needs().attributes(Model::of(function.arch).capability);
        let size = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        Ok(FuncGetAttributesReply {
            shared_size_bytes: size(attributes.sharedSizeBytes),
            const_size_bytes: size(attributes.constSizeBytes),
            local_size_bytes: size(attributes.localSizeBytes),
            num_regs: attributes.numRegs,
            max_threads_per_block: attributes.maxThreadsPerBlock,
            ptx_version: attributes.ptxVersion,
            binary_version: attributes.binaryVersion,
            cache_mode_ca: attributes.cacheModeCA,
            max_dynamic_shared_size_bytes: attributes.maxDynamicSharedSizeBytes,
            preferred_shared_memory_carveout: attributes.preferredShmemCarveout,
        })
    }

    fn set_function_attribute(&mut self, function: u64, attribute: i32, value: i32) -> HipResult<()> {
        let is_valid = self.loaded(function)?.needs().accepts(attribute, value);
        if is_valid { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }

    fn max_active_blocks(&self, function: u64, block_size: i32, shared_mem_bytes: u64) -> HipResult<i32> {
        let needs = self.loaded(function)?.needs();
        let block_size =
            u32::try_from(block_size).ok().filter(|&size| size > 0).ok_or(HipError::INVALID_VALUE)?;
        Ok(needs.groups_per_cu(block_size, shared_mem_bytes) as i32)
    }

    fn max_potential_block_size(
        &self,
        function: u64,
        shared_mem_bytes: u64,
        limit: i32,
    ) -> HipResult<BlockSize> {
        let compute_units = Model::of(self.gpu.arch).compute_units;
        let needs = self.loaded(function)?.needs();
        let block_size = needs.best_block_size(limit);
        Ok(BlockSize {
            min_grid_size: needs.groups(block_size, shared_mem_bytes, compute_units) as i32,
            block_size: block_size as i32,
        })
    }

    fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()> {
        let function = Arc::clone(self.loaded(launch.function)?);
        let device = lock(&self.shared.state).streams.device(launch.stream)?;
        // HIP API: hipModuleLaunchKernel on a device that has not loaded the kernel.
        if function.device != device {
            return Err(HipError::INVALID_DEVICE);
        }
        for event in launch.start_event.iter().chain(&launch.stop_event) {
            self.event(*event)?;
        }
        let setup = Setup::new(function, launch, self.stack_bytes[device])?;
        if let Some(event) = launch.start_event {
            self.event_record(event, launch.stream)?;
        }
        self.shared.enqueue(launch.stream, Work::Task(Task::Launch(Box::new(setup))))?;
        launch.stop_event.map_or(Ok(()), |event| self.event_record(event, launch.stream))
    }
}

impl Drop for SimContext {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl std::fmt::Debug for SimContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimContext")
            .field("state", &*lock(&self.shared.state))
            .field("events", &self.events.len())
            .field("modules", &self.modules.len())
            .finish_non_exhaustive()
    }
}
