//! The two traits that a GPU implements, and the types of their parameters.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use std::time::Duration;

use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult};

use crate::{
    BlockSize, FunctionInfo, Launch, Load, Mappings, ModuleLoad, Origin, Printed, Region, Room, Waker,
    WorkFailure, WorkTimes,
};

/// A GPU, or all GPUs of a runtime: opens contexts.
pub trait Device: Send + Sync {
    /// Returns the name by which the device is chosen and logged: `sim`, `null`, `script`, `hip`.
    fn name(&self) -> &str;

    /// Returns whether calls may block for long, for example in a driver; they are then made on a thread that serves no
    /// sockets. The default is false.
    fn may_block(&self) -> bool {
        false
    }

    /// Returns whether contexts say of a kernel's attributes and occupancy what `hipr_code_object::rules` says, so that a client need not
    /// ask. The default is false.
    fn has_kernel_rules(&self) -> bool {
        false
    }

    /// Returns whether contexts let a client place memory: [`Context::address_window`] and what belongs to it. The default is false.
    fn can_place(&self) -> bool {
        false
    }

    /// Returns a number that is another one whenever the free memory of a GPU ([`Context::mem_info`]) is another one, whoever has
    /// changed it. Only asked of a device that [can place](Self::can_place) memory.
    fn memory_changes(&self) -> u64 {
        0
    }

    /// Calls `waker` once, on any thread, when [`memory_changes`](Self::memory_changes) is no longer `seen`, which may be now. It takes
    /// the place of one that was not called yet. It may be called while the device is in use, so it must not use the device.
    fn watch_memory(&self, _seen: u64, _waker: Waker) {}

    /// Returns whether a client on the same machine can map a context's host memory: [`Context::share_host_memory`] and what belongs to it,
    /// for which a client has to place memory. The default is false.
    fn can_share(&self) -> bool {
        false
    }

    /// Returns whether contexts map physical memory at reserved addresses: [`Context::mappings`]. The default is false.
    fn can_map(&self) -> bool {
        false
    }

    /// Returns whether contexts give memory addresses of one part of all: [`Context::keep_apart`]. The default is false.
    fn can_keep_apart(&self) -> bool {
        false
    }

    /// Returns whether loading a module takes long and may be done on any thread, to which the context is then lent. The default is false.
    fn loads_apart(&self) -> bool {
        false
    }

    /// Returns whether contexts say which launch an error comes from: [`Context::take_failure`]. The default is false.
    fn tells_failures(&self) -> bool {
        false
    }

    /// Opens a context. It calls `waker`, on any thread, whenever a `poll_*` method that returned `Pending` may return
    /// something else.
    ///
    /// # Errors
    /// What HIP's initialization would return, for example `NO_DEVICE`.
    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>>;
}

/// The location of an allocation (HIP API: hipMemoryType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// `hipMalloc`: device memory.
    Device,
    /// `hipHostMalloc`: the worker's host memory that the device can address.
    Host,
    /// `hipMallocManaged`: memory that migrates.
    Managed,
}

/// Who gets a part of the device's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The tenant, whose contexts share what it gets.
    pub tenant: u64,
    /// How much the tenant gets in relation to others that want time as well; a context without a tenant has weight 1.
    pub weight: u32,
    /// The longest time of a kernel, where that is less than the device's own.
    pub kernel_timeout: Option<Duration>,
}

/// The work that a wait covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitFor {
    /// All work of the streams of the context's current device.
    Device,
    /// All work of one stream; for the legacy null stream also what it is ordered after (work of blocking streams).
    Stream(u64),
    /// The work before the event's last record; an event that was never recorded is complete.
    Event(u64),
}

/// Memory pools that the device manages itself (HIP API: hipMemPool_t). Handles have been checked, as for contexts.
pub trait MemPools {
    /// Creates a pool of a device's memory of at most `max_size_bytes`, 0 for no limit (HIP API: hipMemPoolCreate).
    fn create(&mut self, device: i32, max_size_bytes: u64) -> HipResult<u64>;

    /// Destroys a pool; what is allocated from it lives on (HIP API: hipMemPoolDestroy).
    fn destroy(&mut self, pool: u64) -> HipResult<()>;

    /// HIP API: hipMemPoolGetAttribute.
    fn attribute(&mut self, pool: u64, attribute: i32) -> HipResult<u64>;

    /// HIP API: hipMemPoolSetAttribute.
    fn set_attribute(&mut self, pool: u64, attribute: i32, value: u64) -> HipResult<()>;

    /// Releases idle memory until the pool holds at most `min_bytes_to_hold` (HIP API: hipMemPoolTrimTo).
    fn trim(&mut self, pool: u64, min_bytes_to_hold: u64) -> HipResult<()>;

    /// Allocates from a pool, as [`Context::malloc_async`]. It is freed as all memory (HIP API: hipMallocFromPoolAsync).
    fn malloc(&mut self, size_bytes: u64, pool: u64, stream: u64) -> HipResult<u64>;
}

/// A client's GPUs. The [crate] documentation has the three rules; dropping a context stops its work and releases
/// everything.
///
/// Methods with a default body are those that a device may lack; the default is `NOT_SUPPORTED` unless its text says otherwise.
pub trait Context: Send {
    // ---- devices -----------------------------------------------------------------------------------------------------

    /// Fails with `NO_DEVICE` on a machine without a device, as every request does that needs one. The default is success.
    fn available(&self) -> HipResult<()> {
        Ok(())
    }

    /// Returns the number of devices (HIP API: hipGetDeviceCount).
    fn device_count(&self) -> HipResult<i32>;

    /// Returns the current device, to which later calls refer (HIP API: hipGetDevice).
    fn device(&self) -> i32;

    /// Sets the current device; fails with `INVALID_DEVICE` if there is none with this number (HIP API: hipSetDevice).
    fn set_device(&mut self, device: i32) -> HipResult<()>;

    /// Becomes ready when the commands that were enqueued and are not finished leave some of `room`. Asked before each command, so that
    /// one may exceed the room and no second. The default is always ready, for a device that finishes everything at once.
    fn poll_room(&mut self, _room: Room) -> Poll<()> {
        Poll::Ready(())
    }

    /// Says whose device time the work takes, before any is enqueued. The default does nothing, for a device whose driver divides its time
    /// and whose kernels cannot be ended.
    fn set_share(&mut self, _share: Share) {}

    /// Returns the bytes of host memory that commands take which are not finished. The default is a device of which that is not known.
    fn queued_bytes(&self) -> u64 {
        0
    }

    /// Returns where the time is counted that the context's work has had on the device's threads, in nanoseconds; it is counted on when the
    /// context is gone. The default is a device of which that is not known.
    fn device_ns(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Returns where the work is counted that is not finished; it is counted on when the context is gone. The default is a device of which
    /// that is not known.
    fn load(&self) -> Option<Arc<Load>> {
        None
    }

    /// Sets the most bytes of host memory that running kernels may have for their workgroups, scratch above all; every device has a
    /// minimum that is not counted. Returns false if they have more, and then nothing changes. The default is a device that needs none.
    fn limit_working(&mut self, _max_bytes: u64) -> bool {
        true
    }

    /// Returns the properties of a device (HIP API: hipGetDeviceProperties).
    fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply>;

    /// HIP API: hipDeviceGetAttribute; `attribute` is a `hipDeviceAttribute_t` of HIP 6.
    fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32>;

    /// Returns the 16 bytes that identify the device permanently (HIP API: hipDeviceGetUuid).
    fn uuid(&self, _device: i32) -> HipResult<[u8; 16]> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// `hipDriverGetVersion`, `hipRuntimeGetVersion`: major * 10^7 + minor * 10^5 + patch.
    fn version(&self) -> HipResult<i32>;

    /// HIP API: hipDeviceGetLimit.
    fn limit(&self, _limit: i32) -> HipResult<u64> {
        Err(HipError::UNSUPPORTED_LIMIT)
    }

    /// HIP API: hipDeviceSetLimit.
    fn set_limit(&mut self, _limit: i32, _value: u64) -> HipResult<()> {
        Err(HipError::UNSUPPORTED_LIMIT)
    }

    /// Returns free and total bytes of device memory (HIP API: hipMemGetInfo).
    fn mem_info(&self) -> HipResult<(u64, u64)>;

    /// Gives all memory from now on addresses of the part `number` of `parts` of those that the context chooses itself. Only asked of a
    /// device that [can](Device::can_keep_apart), before anything is allocated. The default does nothing.
    fn keep_apart(&mut self, _number: u32, _parts: u32) {}

    /// Returns whether `device` can address the memory of `peer`. The default is false.
    fn can_access_peer(&self, _device: i32, _peer: i32) -> HipResult<bool> {
        Ok(false)
    }

    /// Allows or forbids the current device to address the memory of `peer`. The default is `PEER_ACCESS_UNSUPPORTED`.
    fn set_peer_access(&mut self, _peer: i32, _enabled: bool) -> HipResult<()> {
        Err(HipError::PEER_ACCESS_UNSUPPORTED)
    }

    /// Returns the lowest and the highest stream priority, in this order (HIP API: hipDeviceGetStreamPriorityRange).
    fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        Ok((0, 0))
    }

    /// Ends all work, clears errors and releases everything, so that the context is as after `open` (HIP API:
    /// hipDeviceReset).
    fn reset(&mut self) -> HipResult<()>;

    // ---- memory ------------------------------------------------------------------------------------------------------

    /// Allocates `size_bytes` > 0 bytes, aligned to at least 256. `flags` are those of the kind's HIP function.
    fn malloc(&mut self, size_bytes: u64, kind: MemoryKind, flags: u32) -> HipResult<u64>;

    /// Frees an allocation after the work that may use it, of any device (HIP API: hipFree waits).
    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>>;

    /// Allocates in stream order (HIP API: hipMallocAsync). The address can be used at once in later work of the stream.
    fn malloc_async(&mut self, size_bytes: u64, stream: u64) -> HipResult<u64>;

    /// Returns whether what is freed in the order of a stream is to be given back to the device at once, instead of being kept for the next
    /// allocation of its pool: something sees each allocation. The default is false.
    fn frees_at_once(&self) -> bool {
        false
    }

    /// Frees in stream order (HIP API: hipFreeAsync).
    fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()>;

    // Memory at addresses that the client chooses, out of bytes that were reserved before. Reserved bytes are free memory for everybody
    // who asks how much there is, and for nobody who wants some. `reset` ends every reservation.

    /// Returns the addresses at which memory of the current device can be placed: always the same, and those of no other context of the
    /// device; an empty range if there are none left.
    fn address_window(&mut self) -> HipResult<Range<u64>> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Returns how many bytes of the current device [`reserve`](Self::reserve) could add.
    fn reservable(&self) -> HipResult<u64> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Adds bytes of the current device to those that are reserved; fails with `OUT_OF_MEMORY` if there are fewer.
    fn reserve(&mut self, _bytes: u64) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Gives reserved bytes back, at most those that there are.
    fn unreserve(&mut self, _bytes: u64) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Allocates `size_bytes` > 0 of the reserved bytes at `ptr`, as [`malloc`](Self::malloc). Fails with `INVALID_VALUE` if the address or the
    /// bytes from there on are not free, or not in the window; with `OUT_OF_MEMORY` if fewer bytes are reserved, or the host has
    /// no memory. Every method frees it like other memory.
    fn malloc_at(&mut self, _ptr: u64, _size_bytes: u64, _kind: MemoryKind, _flags: u32) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Makes the file of the memory that client and device have in common, and returns a descriptor of it. It is as long as the window, its
    /// bytes are those of the window in order, and its length is sealed. Pages that are not allocated are zeros, and those that are freed
    /// become so, once the work that may use them is done. The client may change its bytes at any time. Fails with `INVALID_VALUE`
    /// if there is one; `reset` ends its use.
    fn share_host_memory(&mut self) -> HipResult<OwnedFd> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Allocates as [`malloc_at`](Self::malloc_at), of the memory in that file, whole pages of 4096 bytes. Fails with `INVALID_VALUE` without
    /// a file, too, and with `OUT_OF_MEMORY` if the client has written to more of it than it can have allocated.
    fn malloc_shared(
        &mut self,
        _ptr: u64,
        _size_bytes: u64,
        _kind: MemoryKind,
        _flags: u32,
    ) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Does what [`poll_free`](Self::poll_free) does for memory that was placed and never shared, and reserves its bytes again.
    fn poll_free_reserved(&mut self, _ptr: u64) -> Poll<HipResult<()>> {
        Poll::Ready(Err(HipError::NOT_SUPPORTED))
    }

    /// Returns the device's own pools. By default there are none: the session manages pools with
    /// [`malloc_async`](Self::malloc_async) and [`free_async`](Self::free_async).
    fn mem_pools(&mut self) -> Option<&mut dyn MemPools> {
        None
    }

    /// Returns what maps physical memory. By default there is nothing.
    fn mappings(&mut self) -> Option<&mut dyn Mappings> {
        None
    }

    /// Advises how managed memory will be used (HIP API: hipMemAdvise). The default ignores it.
    fn advise(&mut self, _ptr: u64, _len_bytes: u64, _advice: i32, _device: i32) -> HipResult<()> {
        Ok(())
    }

    /// Moves managed memory in stream order (HIP API: hipMemPrefetchAsync). The default ignores it.
    fn prefetch(&mut self, _ptr: u64, _len_bytes: u64, _device: i32, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    // What sessions share. A handle comes from outside, so nobody may be able to guess one; what a context has lent ends with its
    // allocation, its event, or itself.

    /// Returns a handle by which other contexts can use device memory of this one (HIP API: hipIpcGetMemHandle).
    fn share_memory(&mut self, _ptr: u64, _size_bytes: u64) -> HipResult<[u8; 64]> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Opens the memory of another context that a handle names, if it has at most `room_bytes`; returns its address here
    /// and its size in bytes. [`poll_free`](Self::poll_free) closes it. (HIP API: hipIpcOpenMemHandle.)
    fn open_memory(&mut self, _handle: &[u8; 64], _flags: u32, _room_bytes: u64) -> HipResult<(u64, u64)> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Returns a handle by which other contexts can use an event of this one (HIP API: hipIpcGetEventHandle).
    fn share_event(&mut self, _event: u64) -> HipResult<[u8; 64]> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Opens the event of another context that a handle names (HIP API: hipIpcOpenEventHandle).
    fn open_event(&mut self, _handle: &[u8; 64]) -> HipResult<u64> {
        Err(HipError::NOT_SUPPORTED)
    }

    // Bytes to the device. A device with memory of its own takes them piece by piece in stream order: `poll_write`. One
    // whose memory is at hand writes at once, when the stream is ready: `poll_ready`, `write`, and `enqueue_write` until then.

    /// Becomes ready when a copy in the order of `stream` can be passed to the device. Reports no errors, which stay for
    /// `poll_sync`. By default it is always ready, for a device that keeps the order itself.
    fn poll_ready(&mut self, _stream: u64) -> Poll<()> {
        Poll::Ready(())
    }

    /// Enqueues a write of `bytes` (packed, exactly the region's length). Only called while `poll_ready` is pending.
    #[allow(clippy::boxed_local, reason = "devices that have it keep the bytes")]
    fn enqueue_write(&mut self, _dst: Region, _bytes: Box<[u8]>, _stream: u64) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Lets all work that is enqueued or asked for from now on, on whatever stream, come behind what `stream` has now. Called after
    /// [`enqueue_write`](Self::enqueue_write) of a synchronous copy, and before [`poll_written`](Self::poll_written) after one between
    /// devices (HIP API: hipMemcpy). The default does nothing, for a device whose `poll_written` becomes ready when the copy is over.
    fn order_all_behind(&mut self, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    /// Writes `bytes` at packed offset `offset` of `dst` immediately. Called after [`poll_ready`](Self::poll_ready) was
    /// ready.
    fn write(&mut self, _dst: &Region, _offset: u64, _bytes: &[u8]) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Takes bytes for packed offset `offset` of `dst`, to be written in the order of `stream`; returns how many it took,
    /// at least one, from the first on. Called after [`poll_ready`](Self::poll_ready) was ready. The default
    /// [`write`](Self::write)s all.
    fn poll_write(
        &mut self,
        dst: &Region,
        offset: u64,
        bytes: &[u8],
        _stream: u64,
    ) -> Poll<HipResult<usize>> {
        Poll::Ready(self.write(dst, offset, bytes).map(|()| bytes.len()))
    }

    /// Becomes ready when what [`poll_write`](Self::poll_write) took for the stream has arrived, and a copy between devices on it is over,
    /// which ends a synchronous copy. The default is always ready, for a device that writes immediately and orders all work behind copies
    /// between devices ([`order_all_behind`](Self::order_all_behind)).
    fn poll_written(&mut self, _stream: u64) -> Poll<HipResult<()>> {
        Poll::Ready(Ok(()))
    }

    // Bytes from the device.

    /// Becomes ready when a copy from the device in the order of `stream` can read its bytes: when all work is done that a
    /// command enqueued now would wait for. Returns an error of the stream's work once.
    fn poll_readable(&mut self, stream: u64) -> Poll<HipResult<()>> {
        match self.poll_ready(stream) {
            Poll::Ready(()) => self.poll_sync(WaitFor::Stream(stream)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Returns how many of the `len` (more than 0) packed bytes at `offset` of `src` can be [read](Self::read) now: at least
    /// one. Called after [`poll_readable`](Self::poll_readable) was ready, with rising offsets; a device may go on with the
    /// bytes behind these meanwhile. The default is a device that reads at once.
    fn poll_fetched(
        &mut self,
        _src: &Region,
        _offset: u64,
        len: usize,
        _stream: u64,
    ) -> Poll<HipResult<usize>> {
        Poll::Ready(Ok(len))
    }

    /// Returns whether all memory reads as zeros, so that [`read`](Self::read) need not be called. The default is false.
    fn reads_zeros(&self) -> bool {
        false
    }

    /// Reads packed bytes from `offset` on into `out`, which is not longer than [`poll_fetched`](Self::poll_fetched)
    /// allowed.
    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()>;

    // Which memory has changed. A device that does not know is compared with a copy.

    /// Begins to note which pages of the `len_bytes` bytes at `ptr`, in one allocation, are written by whatever it is; returns whether
    /// the device can. It ends with the allocation. The default is false.
    fn watch(&mut self, _ptr: u64, _len_bytes: u64) -> HipResult<bool> {
        Ok(false)
    }

    /// Takes the notes about watched bytes: returns ranges of addresses that contain all bytes written since the last time, sorted and
    /// apart, and forgets them. A page that lies only in part within the bytes is not forgotten. Bytes that are
    /// read afterwards are as new as the notes; a write that comes between is noted for the next time.
    fn take_changes(&mut self, _ptr: u64, _len_bytes: u64) -> HipResult<Vec<Range<u64>>> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Enqueues a copy between regions of equal width, height and depth.
    fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()>;

    /// Enqueues a fill: every `element_bytes` (1, 2 or 4) bytes of `dst` become the low bytes of `value`.
    fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()>;

    // ---- waits -------------------------------------------------------------------------------------------------------

    /// Becomes ready when all work of `what` is done. Returns an error of that work once.
    fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>>;

    /// Returns which launch the error comes from that a `poll_*` method has returned last, once. The default is `None`: the device
    /// does not know.
    fn take_failure(&mut self) -> Option<WorkFailure> {
        None
    }

    /// Returns whether kernels have printed something; the default is false.
    fn has_printed(&self) -> bool {
        false
    }

    /// Takes what kernels have printed, in order, before it is known of any later work that it is done; the owner is woken when there is some. What
    /// a kernel prints after so many bytes waits. The default is a device whose runtime prints by itself.
    fn take_printed(&mut self) -> Vec<Printed> {
        Vec::new()
    }

    /// Says that all text for standard error that was taken has been sent; a runtime may end the process once it has printed it. The default does
    /// nothing, for a device that goes on.
    fn printed_was_sent(&mut self) {}

    /// Says which request enqueues what comes next, and that the times of its work are to be noted; asked before each request, for a trace.
    /// The default does nothing, for a device that notes none.
    fn note_times(&mut self, _origin: Origin) {}

    /// Takes the times of work that has ended, at most [`TIMES_MAX`](crate::TIMES_MAX), and returns how many others are lost.
    fn take_times(&mut self, _into: &mut Vec<WorkTimes>) -> u32 {
        0
    }

    /// Returns `Ok` if all work of `what` is done, else `NOT_READY`. (HIP API: hipStreamQuery, hipEventQuery.)
    fn query(&mut self, what: WaitFor) -> HipResult<()>;

    /// Becomes ready when [`query`](Self::query) returns something else than `NOT_READY`, with that. Errors of the work stay for
    /// [`poll_sync`](Self::poll_sync). Many may be pending at a time.
    fn poll_query(&mut self, what: WaitFor) -> Poll<HipResult<()>>;

    // ---- streams and events ------------------------------------------------------------------------------------------

    /// Creates a stream (HIP API: hipStreamCreateWithPriority). Flag 1 is hipStreamNonBlocking.
    fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64>;

    /// Destroys a stream once its work is done, without waiting.
    fn stream_destroy(&mut self, stream: u64) -> HipResult<()>;

    /// Makes later work of `stream` wait for the event's last record before this call.
    fn stream_wait_event(&mut self, stream: u64, event: u64, flags: u32) -> HipResult<()>;

    /// Returns the flags of a stream; 0 for the null stream.
    fn stream_flags(&self, stream: u64) -> HipResult<u32>;

    /// Returns the priority of a stream, clamped to the device's range.
    fn stream_priority(&self, stream: u64) -> HipResult<i32>;

    /// HIP API: hipEventCreateWithFlags.
    fn event_create(&mut self, flags: u32) -> HipResult<u64>;

    /// Destroys an event; work that waits for it still does.
    fn event_destroy(&mut self, event: u64) -> HipResult<()>;

    /// Enqueues a record of the event.
    fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()>;

    /// Returns the milliseconds between two complete records; `NOT_READY` while one is pending, `INVALID_HANDLE` for one
    /// without time.
    fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32>;

    // ---- modules and kernels -----------------------------------------------------------------------------------------

    /// Loads a code object: an ELF or an offload bundle, also a compressed one (HIP API: hipModuleLoadData). The device says what it
    /// costs; what needs more than `room_bytes`, while it is loaded or afterwards, is not loaded.
    fn module_load_within(&mut self, image: Vec<u8>, room_bytes: u64) -> HipResult<ModuleLoad>;

    /// Loads a code object, whatever it costs; returns the module.
    fn module_load(&mut self, image: Vec<u8>) -> HipResult<u64> {
        match self.module_load_within(image, u64::MAX)? {
            ModuleLoad::Loaded { module, .. } => Ok(module),
            ModuleLoad::NoRoom(_) => Err(HipError::OUT_OF_MEMORY),
        }
    }

    /// Unloads a module with its functions and variables.
    fn module_unload(&mut self, module: u64) -> HipResult<()>;

    /// Returns the kernel with a name, always with the same handle; fails with `NOT_FOUND` if there is none.
    fn function(&mut self, module: u64, name: &str) -> HipResult<FunctionInfo>;

    /// Returns address and size in bytes of a device variable; fails with `NOT_FOUND` if there is none.
    fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)>;

    /// HIP API: hipFuncGetAttributes.
    fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply>;

    /// HIP API: hipFuncSetAttribute.
    fn set_function_attribute(&mut self, _function: u64, _attribute: i32, _value: i32) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Returns how many workgroups of `block_size` work-items one compute unit holds at a time.
    fn max_active_blocks(&self, _function: u64, _block_size: i32, _shared_mem_bytes: u64) -> HipResult<i32> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Returns the block size that uses the device best; a `limit` of 0 is none.
    fn max_potential_block_size(
        &self,
        _function: u64,
        _shared_mem_bytes: u64,
        _limit: i32,
    ) -> HipResult<BlockSize> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Enqueues a kernel. Fails at once for grid and block sizes that the device cannot run.
    fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()>;
}
