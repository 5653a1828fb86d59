//! What the worker asks of a GPU.
//!
//! [`Device`] is one source of GPUs (the emulator, a machine's real ones, a script); [`Context`] is one client's view of it:
//! its own address space, handles and errors. A session owns one context and drops it when the client goes.
//!
//! Three rules hold for every implementation:
//!
//! - **Nothing blocks.** Every method is called on the dispatch's thread, which serves all sessions. Work that takes time is
//!   enqueued; a wait is a `poll_*` method that returns [`Poll::Pending`] and is asked again after the [`Waker`] was called.
//! - **Handles and addresses come checked.** The session table refuses what the session does not own and what leaves an
//!   allocation. A context still answers an unknown handle with an error (never a panic), because a kernel computes its own.
//! - **Errors come in two kinds.** What a method can judge at once is its result. What surfaces while work runs (a wild
//!   access in a kernel) is kept and is the result of the next [`Context::poll_sync`] that covers that work, once.
//!
//! Stream handles 0 and 1 are the legacy null stream, 2 is the per-thread stream (HIP API: hipStreamLegacy,
//! hipStreamPerThread); all others were made by [`Context::stream_create`].

mod choice;
pub mod hip;
pub mod null;
pub mod script;
pub mod sim;

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

pub use choice::{DeviceChoice, DeviceKind, open};
pub use hipr_proto::op::Param;
use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult};

/// Why a device cannot be had.
#[derive(Debug)]
pub enum NoDevice {
    /// There is none of this name.
    Unknown(String),
    /// There is no HIP runtime that can be used.
    NoRuntime(hip_sys::LoadError),
    /// The system does not give what it needs.
    System(&'static str, std::io::Error),
}

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(f, "there is no device '{name}'; there are auto, hip, sim and null")
            }
            Self::NoRuntime(why) => write!(f, "the device 'hip' cannot be had: {why}"),
            Self::System(name, why) => write!(f, "the device '{name}' cannot be had: {why}"),
        }
    }
}

impl std::error::Error for NoDevice {}

/// The device of this name: `auto`, `hip`, `sim` or `null`. (Tests make their [`script::Script`] themselves.)
///
/// # Errors
/// There is none, or it cannot be had.
pub fn by_name(name: &str) -> Result<Arc<dyn Device>, NoDevice> {
    open(&name.parse::<DeviceKind>()?.into())
}

/// A source of GPUs.
pub trait Device: Send + Sync {
    /// The name by which the device is chosen and logged: `sim`, `null`, `script`, `hip`.
    fn name(&self) -> &str;

    /// Whether calls may block for longer than it takes to carry out a request, for example because a driver does. Then they
    /// are made on a thread that serves no sockets. The default is no.
    fn may_block(&self) -> bool {
        false
    }

    /// A new context. `waker` is to be called, from any thread, whenever a `poll_*` method of the context that returned
    /// `Pending` may return something else now.
    ///
    /// # Errors
    /// What HIP's initialization would return, for example `NO_DEVICE`.
    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>>;
}

/// Tells the dispatch that a pending wait of one context may be over. Cheap, callable from any thread, any number of
/// times; a call too many costs a poll.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// A waker that calls `wake`.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// A waker that does nothing.
    pub fn noop() -> Self {
        Self::new(|| {})
    }

    /// Wakes the dispatch.
    pub fn wake(&self) {
        (self.0)();
    }

    /// The function itself, for a device that has a waker type of its own.
    pub fn into_inner(self) -> Arc<dyn Fn() + Send + Sync> {
        self.0
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// Where an allocation lives (HIP API: hipMemoryType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// `hipMalloc`: device memory.
    Device,
    /// `hipHostMalloc`: the worker's host memory that the device can address.
    Host,
    /// `hipMallocManaged`: memory that migrates.
    Managed,
}

/// What a wait covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitFor {
    /// All work of all streams of the context.
    Device,
    /// All work of one stream; for the legacy null stream also what it is ordered after (work of blocking streams).
    Stream(u64),
    /// The work before the event's last record; an event that was never recorded is complete.
    Event(u64),
}

/// A box of bytes in device memory: `depth` slices of `height` rows of `width` bytes. A flat range is one row.
///
/// *Packed* below means the same bytes one after another without gaps, as they travel on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Address of the first byte.
    pub ptr: u64,
    /// Bytes from one row to the next.
    pub pitch: u64,
    /// Bytes from one slice to the next.
    pub slice: u64,
    /// Bytes in a row.
    pub width: u64,
    /// Rows in a slice.
    pub height: u64,
    /// Slices.
    pub depth: u64,
}

impl Region {
    /// The flat range of `len_bytes` bytes at `ptr`.
    pub const fn flat(ptr: u64, len_bytes: u64) -> Self {
        Self { ptr, pitch: len_bytes, slice: len_bytes, width: len_bytes, height: 1, depth: 1 }
    }

    /// Bytes that the region names, without the gaps; `None` if that does not fit 64 bits.
    pub fn len_bytes(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }

    /// Bytes from the first to the last one named, gaps included: what an allocation must hold from `ptr` on. 0 for an empty
    /// region; `None` if it, or the address of its end, does not fit 64 bits.
    pub fn span_bytes(&self) -> Option<u64> {
        if self.width == 0 || self.height == 0 || self.depth == 0 {
            return Some(0);
        }
        let rows = self.pitch.checked_mul(self.height - 1)?;
        let slices = self.slice.checked_mul(self.depth - 1)?;
        let span = slices.checked_add(rows)?.checked_add(self.width)?;
        self.ptr.checked_add(span)?;
        Some(span)
    }

    /// Whether the bytes lie one after another in memory.
    pub fn is_contiguous(&self) -> bool {
        let rows = self.height <= 1 || self.pitch == self.width;
        let slices = self.depth <= 1 || Some(self.slice) == self.width.checked_mul(self.height);
        rows && slices
    }

    /// The longest contiguous run that starts at packed offset `offset`: its address and its length in bytes. `None` past the
    /// end. Only for regions whose [`span_bytes`](Self::span_bytes) is known to fit.
    pub fn run_at(&self, offset: u64) -> Option<(u64, u64)> {
        let len = self.len_bytes()?;
        if offset >= len {
            return None;
        }
        if self.is_contiguous() {
            return Some((self.ptr.checked_add(offset)?, len - offset));
        }
        let (row, column) = (offset / self.width, offset % self.width);
        let (slice, row) = (row / self.height, row % self.height);
        let rows = self.pitch.checked_mul(row)?;
        let slices = self.slice.checked_mul(slice)?;
        let ptr = self.ptr.checked_add(slices)?.checked_add(rows)?.checked_add(column)?;
        Some((ptr, self.width - column))
    }

    /// The contiguous runs that packed bytes `offset .. offset + len` occupy, as (address, start in those bytes, length).
    pub fn runs(&self, offset: u64, len: u64) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let region = *self;
        let mut done = 0;
        std::iter::from_fn(move || {
            let left = len.checked_sub(done).filter(|&left| left > 0)?;
            let (ptr, run) = region.run_at(offset.checked_add(done)?)?;
            let (at, run) = (done, run.min(left));
            done += run;
            Some((ptr, at, run))
        })
    }
}

/// A kernel found in a module.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionInfo {
    /// The function's handle.
    pub handle: u64,
    /// Size of the kernarg segment in bytes, hidden arguments included.
    pub kernarg_size_bytes: u32,
    /// The explicit parameters in order, offsets in the kernarg segment; `None` where the device has no metadata, and then
    /// nothing about arguments is checked.
    pub params: Option<Vec<Param>>,
}

/// A launch's explicit arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Args<'a> {
    /// Argument `i` is `data[table[i].offset ..][.. table[i].size]`; every entry lies inside `data`, and number and sizes
    /// agree with [`FunctionInfo::params`] where those are known. (HIP API: hipModuleLaunchKernel, kernelParams.)
    Params {
        /// Where each argument's value is in `data`.
        table: &'a [Param],
        /// The values.
        data: &'a [u8],
    },
    /// The explicit part of the kernarg segment as it is. (HIP API: hipModuleLaunchKernel, extra.)
    Flat(&'a [u8]),
}

/// A kernel launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Launch<'a> {
    /// The kernel: a [`FunctionInfo::handle`].
    pub function: u64,
    /// Workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a group in x, y, z.
    pub block: [u32; 3],
    /// Dynamic LDS in bytes.
    pub shared_mem_bytes: u32,
    /// The stream that it is enqueued on.
    pub stream: u64,
    /// The explicit arguments.
    pub args: Args<'a>,
    /// Takes the time at which the kernel starts.
    pub start_event: Option<u64>,
    /// Takes the time at which the kernel ends, and completes then.
    pub stop_event: Option<u64>,
    /// All groups must be resident at once (HIP API: hipModuleLaunchCooperativeKernel).
    pub cooperative: bool,
}

/// An answer to "which block size fills the device" (HIP API: hipModuleOccupancyMaxPotentialBlockSize).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Workgroups that fill the device.
    pub min_grid_size: i32,
    /// Work-items of a group.
    pub block_size: i32,
}

/// Pools of memory in stream order that the device keeps itself (HIP API: hipMemPool_t). Handles come checked, as a context's do.
pub trait MemPools {
    /// A pool of a device's memory that holds at most so many bytes, 0 for no limit (HIP API: hipMemPoolCreate).
    fn create(&mut self, device: i32, max_size_bytes: u64) -> HipResult<u64>;

    /// Destroys a pool; what is allocated from it lives on (HIP API: hipMemPoolDestroy).
    fn destroy(&mut self, pool: u64) -> HipResult<()>;

    /// HIP API: hipMemPoolGetAttribute.
    fn attribute(&mut self, pool: u64, attribute: i32) -> HipResult<u64>;

    /// HIP API: hipMemPoolSetAttribute.
    fn set_attribute(&mut self, pool: u64, attribute: i32, value: u64) -> HipResult<()>;

    /// Gives memory that is not in use back until the pool holds no more than that (HIP API: hipMemPoolTrimTo).
    fn trim(&mut self, pool: u64, min_bytes_to_hold: u64) -> HipResult<()>;

    /// Allocates from a pool, as [`Context::malloc_async`]. It is freed as all memory (HIP API: hipMallocFromPoolAsync).
    fn malloc(&mut self, size_bytes: u64, pool: u64, stream: u64) -> HipResult<u64>;
}

/// One client's GPUs. See the [module](self) for the three rules; dropping a context stops its work and releases everything.
///
/// Methods with a default body are those that a device may lack; the default is `NOT_SUPPORTED` unless its text says otherwise.
pub trait Context: Send {
    // ---- devices -----------------------------------------------------------------------------------------------------

    /// What every request is answered with that needs a device, on a machine without one: `NO_DEVICE`. The default is for
    /// devices that are there.
    fn available(&self) -> HipResult<()> {
        Ok(())
    }

    /// How many devices there are (HIP API: hipGetDeviceCount).
    fn device_count(&self) -> HipResult<i32>;

    /// The device that later calls mean (HIP API: hipGetDevice).
    fn device(&self) -> i32;

    /// Chooses it; `INVALID_DEVICE` if there is none with this number (HIP API: hipSetDevice).
    fn set_device(&mut self, device: i32) -> HipResult<()>;

    /// HIP API: hipGetDeviceProperties.
    fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply>;

    /// HIP API: hipDeviceGetAttribute; `attribute` is a `hipDeviceAttribute_t` of HIP 6.
    fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32>;

    /// 16 bytes that name the device for ever (HIP API: hipDeviceGetUuid).
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

    /// Free and total bytes of device memory (HIP API: hipMemGetInfo).
    fn mem_info(&self) -> HipResult<(u64, u64)>;

    /// Whether `device` can address `peer`'s memory. The default is no.
    fn can_access_peer(&self, _device: i32, _peer: i32) -> HipResult<bool> {
        Ok(false)
    }

    /// Lets the current device address `peer`'s memory, or ends it. The default is `PEER_ACCESS_UNSUPPORTED`.
    fn set_peer_access(&mut self, _peer: i32, _enabled: bool) -> HipResult<()> {
        Err(HipError::PEER_ACCESS_UNSUPPORTED)
    }

    /// Lowest and highest stream priority, as numbers: lowest first (HIP API: hipDeviceGetStreamPriorityRange).
    fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        Ok((0, 0))
    }

    /// Ends all work, clears kept errors and releases what is left, back to the state after `open` (HIP API: hipDeviceReset).
    fn reset(&mut self) -> HipResult<()>;

    // ---- memory ------------------------------------------------------------------------------------------------------

    /// Allocates `size_bytes` (more than 0) bytes, at least 256-byte aligned. `flags` are those of the HIP call of the kind.
    fn malloc(&mut self, size_bytes: u64, kind: MemoryKind, flags: u32) -> HipResult<u64>;

    /// Frees an allocation after the work that may use it (HIP API: hipFree waits).
    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>>;

    /// Allocates in stream order (HIP API: hipMallocAsync). The address is good for later work of the stream at once.
    fn malloc_async(&mut self, size_bytes: u64, stream: u64) -> HipResult<u64>;

    /// Frees in stream order (HIP API: hipFreeAsync).
    fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()>;

    /// The device's own pools. The default is a device without: the session keeps pools for it, with
    /// [`malloc_async`](Self::malloc_async) and [`free_async`](Self::free_async).
    fn mem_pools(&mut self) -> Option<&mut dyn MemPools> {
        None
    }

    /// How managed memory will be used (HIP API: hipMemAdvise). The default is a device to which that makes no difference.
    fn advise(&mut self, _ptr: u64, _len_bytes: u64, _advice: i32, _device: i32) -> HipResult<()> {
        Ok(())
    }

    /// Moves managed memory in stream order (HIP API: hipMemPrefetchAsync). The default is as [`advise`](Self::advise)'s.
    fn prefetch(&mut self, _ptr: u64, _len_bytes: u64, _device: i32, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    // What sessions share. A handle comes from outside, so nobody may be able to guess one; what a context has lent ends with its
    // allocation, its event, or itself.

    /// The handle by which other contexts can use device memory of this one (HIP API: hipIpcGetMemHandle).
    fn share_memory(&mut self, _ptr: u64, _size_bytes: u64) -> HipResult<[u8; 64]> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// The memory of another context that a handle names, if it has at most `room_bytes` bytes: its address here, and its size in
    /// bytes. [`poll_free`](Self::poll_free) closes it. (HIP API: hipIpcOpenMemHandle.)
    fn open_memory(&mut self, _handle: &[u8; 64], _flags: u32, _room_bytes: u64) -> HipResult<(u64, u64)> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// The handle by which other contexts can use an event of this one (HIP API: hipIpcGetEventHandle).
    fn share_event(&mut self, _event: u64) -> HipResult<[u8; 64]> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// The event of another context that a handle names, as an event of this one (HIP API: hipIpcOpenEventHandle).
    fn open_event(&mut self, _handle: &[u8; 64]) -> HipResult<u64> {
        Err(HipError::NOT_SUPPORTED)
    }

    // Bytes to the device. A device with memory of its own takes them piece by piece in stream order: `poll_write`. One
    // whose memory is at hand writes at once, when the stream is ready: `poll_ready`, `write`, and `enqueue_write` until then.

    /// Ready when a copy that is ordered in `stream` could be given to the device now. Reports no error: those stay for
    /// `poll_sync`. The default is a device that keeps the order itself.
    fn poll_ready(&mut self, _stream: u64) -> Poll<()> {
        Poll::Ready(())
    }

    /// Enqueues a write of `bytes` (packed, exactly the region's length). Only called while `poll_ready` is pending.
    #[allow(clippy::boxed_local, reason = "devices that have it keep the bytes")]
    fn enqueue_write(&mut self, _dst: Region, _bytes: Box<[u8]>, _stream: u64) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Writes `bytes` at packed offset `offset` of `dst`, at once. Called after [`poll_ready`](Self::poll_ready) was ready.
    fn write(&mut self, _dst: &Region, _offset: u64, _bytes: &[u8]) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Takes bytes that belong at packed offset `offset` of `dst`, to be written in the order of `stream`, and says how many: at
    /// least one, from the first on. Called after [`poll_ready`](Self::poll_ready) was ready. The default
    /// [`write`](Self::write)s them all.
    fn poll_write(
        &mut self,
        dst: &Region,
        offset: u64,
        bytes: &[u8],
        _stream: u64,
    ) -> Poll<HipResult<usize>> {
        Poll::Ready(self.write(dst, offset, bytes).map(|()| bytes.len()))
    }

    /// Ready when what [`poll_write`](Self::poll_write) took for the stream has arrived: a copy that the client calls
    /// synchronous ends then. The default is a device that writes at once.
    fn poll_written(&mut self, _stream: u64) -> Poll<HipResult<()>> {
        Poll::Ready(Ok(()))
    }

    // Bytes from the device.

    /// How many of the `len` (more than 0) packed bytes at `offset` of `src` can be [read](Self::read) now: at least one. Called
    /// after [`poll_sync`](Self::poll_sync) was ready, with rising offsets; a device may go on with the bytes behind
    /// these meanwhile. The default is a device that reads at once.
    fn poll_fetched(
        &mut self,
        _src: &Region,
        _offset: u64,
        len: usize,
        _stream: u64,
    ) -> Poll<HipResult<usize>> {
        Poll::Ready(Ok(len))
    }

    /// Whether all memory reads as zeros, so that [`read`](Self::read) need not be called. The default is that it does not.
    fn reads_zeros(&self) -> bool {
        false
    }

    /// Reads packed bytes from `offset` on, at once, and fills `out`, which is not longer than
    /// [`poll_fetched`](Self::poll_fetched) said.
    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()>;

    /// Enqueues a copy between regions of equal width, height and depth.
    fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()>;

    /// Enqueues a fill: every `element_bytes` (1, 2 or 4) bytes of `dst` become the low bytes of `value`.
    fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()>;

    // ---- waits -------------------------------------------------------------------------------------------------------

    /// Ready when everything that `what` covers is done. An error that surfaced in it is the result once, and then is gone.
    fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>>;

    /// `Ok` if everything that `what` covers is done, else `NOT_READY`. (HIP API: hipStreamQuery, hipEventQuery.)
    fn query(&mut self, what: WaitFor) -> HipResult<()>;

    // ---- streams and events ------------------------------------------------------------------------------------------

    /// HIP API: hipStreamCreateWithPriority. Flag 1 is hipStreamNonBlocking.
    fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64>;

    /// Destroys a stream after its work (does not wait for it).
    fn stream_destroy(&mut self, stream: u64) -> HipResult<()>;

    /// Later work of `stream` waits for the event's last record before this call.
    fn stream_wait_event(&mut self, stream: u64, event: u64, flags: u32) -> HipResult<()>;

    /// The flags that the stream has; 0 for the null stream.
    fn stream_flags(&self, stream: u64) -> HipResult<u32>;

    /// The priority that the stream has, clamped to the device's range.
    fn stream_priority(&self, stream: u64) -> HipResult<i32>;

    /// HIP API: hipEventCreateWithFlags.
    fn event_create(&mut self, flags: u32) -> HipResult<u64>;

    /// Destroys an event; work that waits for it goes on as if it still was.
    fn event_destroy(&mut self, event: u64) -> HipResult<()>;

    /// Enqueues a record of the event.
    fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()>;

    /// Milliseconds between two completed records; `NOT_READY` while one is pending, `INVALID_HANDLE` for one without time.
    fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32>;

    // ---- modules and kernels -----------------------------------------------------------------------------------------

    /// Loads a code object: an ELF or an offload bundle, also a compressed one (HIP API: hipModuleLoadData).
    fn module_load(&mut self, image: Vec<u8>) -> HipResult<u64>;

    /// Unloads a module; its functions and globals end with it.
    fn module_unload(&mut self, module: u64) -> HipResult<()>;

    /// A kernel by its name; `NOT_FOUND` if there is none. The same handle for the same name.
    fn function(&mut self, module: u64, name: &str) -> HipResult<FunctionInfo>;

    /// Address and size in bytes of a device variable; `NOT_FOUND` if there is none.
    fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)>;

    /// HIP API: hipFuncGetAttributes.
    fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply>;

    /// HIP API: hipFuncSetAttribute.
    fn set_function_attribute(&mut self, _function: u64, _attribute: i32, _value: i32) -> HipResult<()> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Workgroups of `block_size` work-items that one CU holds at a time.
    fn max_active_blocks(&self, _function: u64, _block_size: i32, _shared_mem_bytes: u64) -> HipResult<i32> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// The block size that fills the device; a `limit` of 0 is none.
    fn max_potential_block_size(
        &self,
        _function: u64,
        _shared_mem_bytes: u64,
        _limit: i32,
    ) -> HipResult<BlockSize> {
        Err(HipError::NOT_SUPPORTED)
    }

    /// Enqueues a kernel. Grid and block sizes that the device cannot run are an error at once.
    fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()>;
}
