//! One client's view of the device: what the client's thread holds, which is handles, events and modules.

mod kernel;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use hipr_proto::op::GetDevicePropertiesReply;
use hipr_proto::{HipError, HipResult};

use crate::alloc::Allocator;
use crate::attribute::attribute;
use crate::event::{Event, Record};
use crate::executor::lock;
use crate::gpu::Inner;
use crate::loan::LoanHandle;
use crate::module::{Function, Module};
use crate::property;
use crate::shared::Shared;
use crate::stream::{Task, Wait, WaitFor, Work};
use crate::transfer::{Region, Span, Transfer, pattern};

pub use kernel::{BlockSize, FunctionInfo};

/// Called, from any thread, when a pending poll may be ready.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// Where an allocation lives, as far as a program can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// `hipMalloc`: device memory.
    Device,
    /// `hipHostMalloc`: host memory that the device can address.
    Host,
    /// `hipMallocManaged`: memory that migrates.
    Managed,
}

/// hipLimitStackSize.
const LIMIT_STACK_SIZE: i32 = 0;
/// hipLimitMallocHeapSize.
const LIMIT_MALLOC_HEAP_SIZE: i32 = 2;
const STACK_DEFAULT_BYTES: u64 = 1024;
const STACK_MAX_BYTES: u64 = 128 << 10;
const MALLOC_HEAP_BYTES: u64 = 8 << 20;
/// The first handle that is given out: above those that HIP reserves.
const FIRST_HANDLE: u64 = 0x1000;

/// One client's emulated GPU: its own address space, handles and errors. Nothing blocks; dropping it stops its work.
pub struct Context {
    gpu: Arc<Inner>,
    shared: Arc<Shared>,
    next_handle: u64,
    stack_bytes: u64,
    events: BTreeMap<u64, Event>,
    modules: BTreeMap<u64, Module>,
    functions: BTreeMap<u64, Arc<Function>>,
}

impl Context {
    pub(crate) fn new(gpu: Arc<Inner>, waker: Waker) -> Self {
        let allocator = Allocator::new(Arc::clone(&gpu.budget));
        let shared = Shared::new(&gpu, waker, allocator);
        Self {
            gpu,
            shared,
            next_handle: FIRST_HANDLE,
            stack_bytes: STACK_DEFAULT_BYTES,
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
        }
    }

    fn handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle
    }

    /// There is one device, number 0.
    fn check_device(device: i32) -> HipResult<()> {
        if device == 0 { Ok(()) } else { Err(HipError::INVALID_DEVICE) }
    }
}

/// Devices and limits.
impl Context {
    /// How many devices there are.
    pub fn device_count(&self) -> i32 {
        1
    }

    /// The device that later calls mean.
    pub fn device(&self) -> i32 {
        0
    }

    /// Chooses it.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for any but 0.
    pub fn set_device(&mut self, device: i32) -> HipResult<()> {
        Self::check_device(device)
    }

    /// HIP API: hipGetDeviceProperties.
    ///
    /// # Errors
    /// `INVALID_DEVICE`.
    pub fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply> {
        Self::check_device(device)?;
        Ok(property::properties(self.gpu.arch, self.gpu.budget.total_bytes()))
    }

    /// HIP API: hipDeviceGetAttribute.
    ///
    /// # Errors
    /// `INVALID_DEVICE`; `INVALID_VALUE` for an attribute without a value.
    pub fn attribute(&self, device: i32, code: i32) -> HipResult<i32> {
        Self::check_device(device)?;
        attribute(self.gpu.arch, code, self.gpu.budget.total_bytes()).ok_or(HipError::INVALID_VALUE)
    }

    /// HIP API: hipDeviceGetUuid.
    ///
    /// # Errors
    /// `INVALID_DEVICE`.
    pub fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        Self::check_device(device).map(|()| property::UUID)
    }

    /// HIP API: hipDeviceGetLimit.
    ///
    /// # Errors
    /// `UNSUPPORTED_LIMIT`.
    pub fn limit(&self, limit: i32) -> HipResult<u64> {
        match limit {
            LIMIT_STACK_SIZE => Ok(self.stack_bytes),
            LIMIT_MALLOC_HEAP_SIZE => Ok(MALLOC_HEAP_BYTES),
            _ => Err(HipError::UNSUPPORTED_LIMIT),
        }
    }

    /// HIP API: hipDeviceSetLimit. The stack size counts for kernels whose stack depth the compiler does not know.
    ///
    /// # Errors
    /// `UNSUPPORTED_LIMIT` for all but the stack size; `INVALID_VALUE` for one above 128 KiB.
    pub fn set_limit(&mut self, limit: i32, value: u64) -> HipResult<()> {
        match limit {
            LIMIT_STACK_SIZE if value <= STACK_MAX_BYTES => {
                self.stack_bytes = value;
                Ok(())
            }
            LIMIT_STACK_SIZE => Err(HipError::INVALID_VALUE),
            _ => Err(HipError::UNSUPPORTED_LIMIT),
        }
    }

    /// Free and total bytes of device memory, of all contexts together.
    pub fn mem_info(&self) -> (u64, u64) {
        (self.gpu.budget.free_bytes(), self.gpu.budget.total_bytes())
    }

    /// Ends all work and releases everything. Handles and addresses are not given out a second time.
    pub fn reset(&mut self) {
        self.shared.close();
        let allocator = Allocator::new(Arc::clone(&self.gpu.budget));
        self.shared = Shared::new(&self.gpu, Arc::clone(&self.shared.waker), allocator);
        self.stack_bytes = STACK_DEFAULT_BYTES;
        self.events.clear();
        self.modules.clear();
        self.functions.clear();
    }
}

/// Memory.
impl Context {
    /// Allocates zeroed memory, 256-byte aligned. All kinds count against the device's memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` for 0 bytes; `OUT_OF_MEMORY`.
    pub fn malloc(&mut self, size_bytes: u64, _kind: MemoryKind) -> HipResult<u64> {
        Ok(lock(&self.shared.state).allocator.allocate(size_bytes)?.base())
    }

    /// Frees an allocation when all work of the context is done.
    ///
    /// # Errors
    /// `INVALID_VALUE` if no allocation starts at `ptr`.
    pub fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        let mut state = lock(&self.shared.state);
        if !state.allocator.owns(ptr) {
            return Poll::Ready(Err(HipError::INVALID_VALUE));
        }
        loop {
            match state.streams.wait(WaitFor::Device, None) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) => {
                    let freed = state.allocator.finish_free(ptr);
                    drop(state);
                    self.shared.discard(freed.into_iter().collect());
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Allocates for work of `stream`; the address is good at once.
    ///
    /// # Errors
    /// As [`malloc`](Self::malloc); `INVALID_HANDLE` for an unknown stream.
    pub fn malloc_async(&mut self, size_bytes: u64, stream: u64) -> HipResult<u64> {
        lock(&self.shared.state).streams.flags(stream)?;
        self.malloc(size_bytes, MemoryKind::Device)
    }

    /// Frees in stream order.
    ///
    /// # Errors
    /// `INVALID_VALUE` if no allocation starts at `ptr`; `INVALID_HANDLE` for an unknown stream.
    pub fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()> {
        let mut state = lock(&self.shared.state);
        state.streams.flags(stream)?;
        state.allocator.start_free(ptr)?;
        drop(state);
        self.shared.enqueue(stream, Work::Free(ptr))
    }

    fn span(&self, region: Region) -> HipResult<Span> {
        let state = lock(&self.shared.state);
        Span::new(region, |ptr, len_bytes| state.allocator.block(ptr, len_bytes))
    }

    /// Enqueues a write of `bytes`, packed.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the region is not in one allocation or has another length; `INVALID_HANDLE` for an unknown stream.
    pub fn enqueue_write(&mut self, dst: Region, bytes: Box<[u8]>, stream: u64) -> HipResult<()> {
        let dst = self.span(dst)?;
        if dst.len_bytes() != bytes.len() as u64 {
            return Err(HipError::INVALID_VALUE);
        }
        self.transfer(Transfer::Write { dst, bytes }, stream)
    }

    /// Enqueues a copy between regions of equal width, height and depth.
    ///
    /// # Errors
    /// `INVALID_VALUE` if a region is not in one allocation or they differ; `INVALID_HANDLE` for an unknown stream.
    pub fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()> {
        let extent = |region: &Region| [region.width, region.height, region.depth];
        if extent(&dst) != extent(&src) {
            return Err(HipError::INVALID_VALUE);
        }
        let (dst, src) = (self.span(dst)?, self.span(src)?);
        self.transfer(Transfer::Copy { dst, src }, stream)
    }

    /// Enqueues a fill: every `element_bytes` (1, 2 or 4) bytes of `dst` become the low bytes of `value`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the region is not in one allocation or for another element size; `INVALID_HANDLE` for an unknown
    /// stream.
    pub fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()> {
        let dst = self.span(dst)?;
        let pattern = pattern(value, element_bytes)?;
        self.transfer(Transfer::Fill { dst, pattern, period: u64::from(element_bytes) }, stream)
    }

    fn transfer(&self, transfer: Transfer, stream: u64) -> HipResult<()> {
        self.shared.enqueue(stream, Work::Task(Task::Transfer(transfer)))
    }

    /// Writes `bytes` at packed offset `offset` of `dst`, at once: after [`poll_ready`](Self::poll_ready).
    ///
    /// # Errors
    /// `INVALID_VALUE` if they do not fit or the region is not in one allocation.
    pub fn write(&mut self, dst: &Region, offset: u64, bytes: &[u8]) -> HipResult<()> {
        self.span(*dst)?.write(offset, bytes)
    }

    /// Fills `out` with packed bytes of `src` from `offset` on, at once: after [`poll_sync`](Self::poll_sync).
    ///
    /// # Errors
    /// `INVALID_VALUE` if there are not as many or the region is not in one allocation.
    pub fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()> {
        self.span(*src)?.read(offset, out)
    }
}

/// Waits.
impl Context {
    fn record(&self, what: WaitFor) -> HipResult<Option<Arc<Record>>> {
        match what {
            WaitFor::Event(event) => Ok(self.event(event)?.record()),
            WaitFor::Device | WaitFor::Stream(_) => Ok(None),
        }
    }

    /// A record that this context hears of when it is passed.
    fn observed(&self, record: Option<Arc<Record>>) -> Option<Arc<Record>> {
        record.inspect(|record| record.observe(&self.shared))
    }

    /// Ready when all that `what` covers is done. An error that surfaced on a stream that it covers is the result, once.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream or event; what a kernel did.
    pub fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        let record = match self.record(what) {
            Ok(record) => self.observed(record),
            Err(error) => return Poll::Ready(Err(error)),
        };
        // Errors of another context's streams are for that context.
        let own = record.as_deref().filter(|record| record.is_of(&self.shared));
        let mut state = lock(&self.shared.state);
        loop {
            match state.streams.wait(what, record.as_deref()) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) => return Poll::Ready(state.streams.take_error(what, own)),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Ready when a copy that is ordered in `stream` could run now. An unknown stream is ready.
    pub fn poll_ready(&mut self, stream: u64) -> Poll<()> {
        let state = lock(&self.shared.state);
        loop {
            match state.streams.wait_turn(stream) {
                Ok(Wait::On(fence)) if !fence.watch() => return Poll::Pending,
                Ok(Wait::On(_)) => {}
                Ok(Wait::Over) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// Whether all that `what` covers is done.
    ///
    /// # Errors
    /// `NOT_READY` if not; `INVALID_HANDLE` for an unknown stream or event.
    pub fn query(&mut self, what: WaitFor) -> HipResult<()> {
        let record = self.record(what)?;
        match lock(&self.shared.state).streams.wait(what, record.as_deref())? {
            Wait::Over => Ok(()),
            Wait::On(_) => Err(HipError::NOT_READY),
        }
    }
}

/// Streams and events.
impl Context {
    /// HIP API: hipStreamCreateWithPriority. The priority is kept, clamped to the device's range, and changes nothing else.
    ///
    /// # Errors
    /// `INVALID_VALUE` for unknown flags.
    pub fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64> {
        let handle = self.handle();
        lock(&self.shared.state).streams.create(handle, flags, priority)?;
        Ok(handle)
    }

    /// Destroys a stream; what is enqueued still runs.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub fn stream_destroy(&mut self, stream: u64) -> HipResult<()> {
        lock(&self.shared.state).streams.destroy(stream)
    }

    /// Later work of `stream` waits for the event's last record before this call.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream or event.
    pub fn stream_wait_event(&mut self, stream: u64, event: u64) -> HipResult<()> {
        let record = self.observed(self.event(event)?.record());
        let after = record.iter().map(|record| Arc::clone(&record.fence)).collect();
        self.shared.update(|state| (state.streams.enqueue(stream, Work::Wait, Arc::default(), after), false))
    }

    /// The flags that the stream has.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub fn stream_flags(&self, stream: u64) -> HipResult<u32> {
        lock(&self.shared.state).streams.flags(stream)
    }

    /// The priority that the stream has.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub fn stream_priority(&self, stream: u64) -> HipResult<i32> {
        lock(&self.shared.state).streams.priority(stream)
    }

    /// HIP API: hipEventCreateWithFlags.
    ///
    /// # Errors
    /// `INVALID_VALUE` for unknown flags.
    pub fn event_create(&mut self, flags: u32) -> HipResult<u64> {
        let event = Event::new(flags)?;
        let handle = self.handle();
        self.events.insert(handle, event);
        Ok(handle)
    }

    /// Destroys an event; what waits for it goes on waiting.
    ///
    /// # Errors
    /// `INVALID_HANDLE`.
    pub fn event_destroy(&mut self, event: u64) -> HipResult<()> {
        self.events.remove(&event).map(|_| ()).ok_or(HipError::INVALID_HANDLE)
    }

    /// Enqueues a record of the event.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown stream or event.
    pub fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()> {
        let event = self.event(event)?;
        let record = Record::new(self.shared.id, stream);
        self.shared.update(|state| {
            let (work, fence) = (Work::Record(Arc::clone(&record)), Arc::clone(&record.fence));
            (state.streams.enqueue(stream, work, fence, Vec::new()), false)
        })?;
        event.set_record(record);
        Ok(())
    }

    /// Milliseconds between two records.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an unknown event and one that was never recorded or keeps no time; `NOT_READY`.
    pub fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32> {
        self.event(start)?.elapsed_ms(self.event(stop)?)
    }

    fn event(&self, event: u64) -> HipResult<&Event> {
        self.events.get(&event).ok_or(HipError::INVALID_HANDLE)
    }
}

/// What contexts of one device lend each other (HIP API: hipIpcGetMemHandle and its kin).
impl Context {
    /// A handle by which other contexts of the device can use the allocation that starts at `ptr`; the same each time.
    ///
    /// # Errors
    /// `INVALID_VALUE` if this context allocated nothing there; `OPERATING_SYSTEM` without random numbers.
    pub fn lend_memory(&mut self, ptr: u64) -> HipResult<LoanHandle> {
        let memory = Arc::clone(lock(&self.shared.state).allocator.lendable(ptr)?);
        self.gpu.loans.lend_memory(&memory)
    }

    /// Maps the allocation that a handle names; its address, the lender's, and its length in bytes. [`poll_free`](Self::poll_free)
    /// lets go of it. The bytes live until the last context that has them frees them.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an unknown handle; `INVALID_CONTEXT` if it is mapped here already; `OUT_OF_MEMORY` if it has more than
    /// `room_bytes` bytes, or its addresses are taken.
    pub fn borrow_memory(&mut self, handle: &LoanHandle, room_bytes: u64) -> HipResult<(u64, u64)> {
        let memory = self.gpu.loans.borrow_memory(handle)?;
        if memory.block.len_bytes() > room_bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        let block = lock(&self.shared.state).allocator.borrow(memory)?;
        Ok((block.base(), block.len_bytes()))
    }

    /// A handle by which other contexts of the device can record an event and wait for it; the same each time.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; `INVALID_CONFIGURATION` for an event that was not made for that; `OPERATING_SYSTEM` without random
    /// numbers.
    pub fn lend_event(&mut self, event: u64) -> HipResult<LoanHandle> {
        self.gpu.loans.lend_event(self.event(event)?.lendable()?)
    }

    /// A handle of this context for the event that a loan's handle names.
    ///
    /// # Errors
    /// `INVALID_VALUE` for an unknown one.
    pub fn borrow_event(&mut self, handle: &LoanHandle) -> HipResult<u64> {
        let event = Event::of(self.gpu.loans.borrow_event(handle)?);
        let handle = self.handle();
        self.events.insert(handle, event);
        Ok(handle)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("state", &*lock(&self.shared.state))
            .field("events", &self.events.len())
            .field("modules", &self.modules.len())
            .finish_non_exhaustive()
    }
}
