//! A script with every operation of the protocol in one session, which records the outcome of each, so that two workers can
//! be compared.
//!
//! What a worker answers is written down with what differs between two runs left out: addresses, handles, times, free memory.

mod graphs;
mod mappings;
mod packed;
mod sharing;

use crate::WireClient;
use hipr_proto::op::{self, Param, kind};
use hipr_proto::{Features, HipError, Op, Opcode, ReplyMode, Text, Wire};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

/// The demo's kernels, a bundle with a code object for each GPU that can be emulated.
static KERNELS: &[u8] = include_bytes!("../../cli/demo/kernels.co");
/// A bundle whose code object has `float coefficients[8]`.
static VARIABLES: &[u8] = include_bytes!("../programs/prebuilt/symbols.O3.co");

/// An address and handle that no session was given, also used if something could not be created.
const NOWHERE: u64 = 0xdead_0000_0000;
const BUFFER_BYTES: u64 = 4096;
/// A length of more than two of the pieces in which a worker copies, and not a multiple of them.
const LONG_BYTES: usize = (5 << 18) + 13;

/// The outcome of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The operation.
    pub op: Opcode,
    /// The parts of the reply that are the same in every run, or the reason why there is no reply.
    pub result: Result<String, Failure>,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The reply was this error.
    Error(HipError),
    /// The worker ended the connection.
    Lost,
}

/// Runs the suite in a session of its own, until its end or until the connection is lost. Panics if it cannot connect, or
/// if the worker does not answer.
pub fn run(worker: SocketAddr) -> Vec<Outcome> {
    run_observed(worker, &mut |_| {})
}

/// Runs the suite like [`run`], and calls `observe` after each request that was answered.
pub fn run_observed(worker: SocketAddr, observe: &mut dyn FnMut(Opcode)) -> Vec<Outcome> {
    let mut suite = Suite { wire: WireClient::connect(worker), outcomes: Vec::new(), observe };
    // The connection may be lost at any step; what is to be said of that stands in the last outcome.
    let _ = suite.every_operation();
    suite.outcomes
}

/// The connection is lost.
struct Lost;

struct Suite<'a> {
    wire: WireClient,
    outcomes: Vec<Outcome>,
    observe: &'a mut dyn FnMut(Opcode),
}

/// The reply of a request, if it was not an error.
type Answer<R> = Result<Option<R>, Lost>;

fn nothing<R>(_: &R) -> String {
    String::new()
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} bytes {:016x}", bytes.len(), hasher.finish())
}

fn name(name: &str) -> Vec<u8> {
    let mut tail = Vec::new();
    op::put_name(name, &mut tail).expect("a short name");
    tail
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Returns arguments of saxpy that add twice the 64 values at `x` to those at `y`.
pub fn saxpy_arguments(x: u64, y: u64) -> Vec<u8> {
    let mut values = Vec::new();
    values.extend_from_slice(&2f32.to_le_bytes());
    values.extend_from_slice(&[0; 4]);
    values.extend_from_slice(&x.to_le_bytes());
    values.extend_from_slice(&y.to_le_bytes());
    values.extend_from_slice(&64u32.to_le_bytes());
    let params = [(0, 4), (8, 8), (16, 8), (24, 4)].map(|(offset, size)| Param { offset, size });
    let mut tail = Vec::new();
    op::LaunchArgs::put(&params, &values, &mut tail);
    tail
}

/// Returns a launch of saxpy with [`saxpy_arguments`] in one workgroup; an event of 0 is none.
pub fn saxpy(function: u64, stream: u64, start_event: u64, stop_event: u64) -> op::LaunchKernel {
    op::LaunchKernel {
        function,
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x: 64,
        block_dim_y: 1,
        block_dim_z: 1,
        shared_mem: 0,
        stream,
        num_args: 4,
        launch_flags: 0,
        start_event,
        stop_event,
        ext_flags: 0,
    }
}

impl Suite<'_> {
    fn note<O: Op>(&mut self, result: Result<String, Failure>) {
        self.outcomes.push(Outcome { op: O::OPCODE, result });
        (self.observe)(O::OPCODE);
    }

    /// Sends a request, waits for its reply, and records what `show` returns for it and a digest of its bytes.
    fn request<O: Op>(
        &mut self,
        op: &O,
        tail: &[u8],
        inline: Option<Vec<u8>>,
        show: impl Fn(&O::Reply) -> String,
    ) -> Answer<O::Reply> {
        let sent = self.wire.try_send(op, tail, inline, ReplyMode::Always);
        let Ok(replied) = sent.and_then(|()| self.wire.try_wait::<O>()) else {
            self.note::<O>(Err(Failure::Lost));
            return Err(Lost);
        };
        let bytes = if replied.inline.is_empty() { String::new() } else { digest(&replied.inline) };
        let shown = replied.result.as_ref().map(|reply| show(reply) + &bytes);
        self.note::<O>(shown.map_err(|error| Failure::Error(*error)));
        Ok(replied.result.ok())
    }

    /// Sends a request and records the whole reply.
    fn ask<O: Op>(&mut self, op: &O) -> Answer<O::Reply> {
        self.request(op, &[], None, |reply| format!("{reply:?}"))
    }

    /// Sends a request that creates something; returns its handle or address.
    fn make<O: Op>(&mut self, op: &O, handle: impl Fn(&O::Reply) -> u64) -> Result<u64, Lost> {
        Ok(self.request(op, &[], None, nothing)?.map_or(NOWHERE, |reply| handle(&reply)))
    }

    /// Sends a request that is not answered; later replies show its effect.
    fn tell<O: Op>(&mut self, op: &O, tail: &[u8], inline: Option<Vec<u8>>) -> Result<(), Lost> {
        self.wire.try_send(op, tail, inline, ReplyMode::Never).map_err(|_| {
            self.note::<O>(Err(Failure::Lost));
            Lost
        })
    }

    /// Sends a request twice: answered, then unanswered.
    fn both<O: Op>(&mut self, op: &O, tail: &[u8], inline: Option<Vec<u8>>) -> Result<(), Lost> {
        self.request(op, tail, inline.clone(), nothing)?;
        self.tell(op, tail, inline)
    }

    fn every_operation(&mut self) -> Result<(), Lost> {
        self.request(&op::Init {}, &[], None, nothing)?;
        let features = Features::STATIC.union(Features::NAMES).union(Features::PAGES).union(Features::CACHE);
        let features =
            features.union(Features::PACKED).union(Features::NOTIFICATIONS).union(Features::WATCHES);
        let features = features.union(Features::VARIABLES).union(Features::MAPPINGS).union(Features::TIMES);
        let features = features.union(Features::PACKED_CHANGES);
        self.wire.hear();
        self.ask(&op::Offer { features: features.bits(), part: 0 })?;
        self.ask(&op::Ping {})?;
        // Some of each kind: who fails every call of the runtime fails each that the list needs.
        self.ask(&op::Static { max_bytes: 1000, reserved: 0 })?;
        self.devices()?;
        let stream = self.make(&op::StreamCreate { flags: 0, priority: 0 }, |reply| reply.stream)?;
        let buffer = self.make(&op::Malloc { size: BUFFER_BYTES, flags: 0 }, |reply| reply.device_ptr)?;
        self.memory(stream)?;
        self.pointers(buffer)?;
        self.fills(buffer, stream)?;
        self.flat_copies(buffer, stream)?;
        self.shaped_copies(buffer, stream)?;
        self.long_copy(stream)?;
        self.streams()?;
        let (start, stop) = self.events(stream)?;
        self.kernels(buffer, stream, start, stop)?;
        self.system_management()?;
        self.pools(stream)?;
        self.registered_memory()?;
        self.sharing(buffer, stream)?;
        self.mappings()?;
        self.changes(stream)?;
        self.cache(stream)?;
        self.capabilities(buffer, stream)?;
        self.packed(buffer, stream)?;
        self.places()?;
        self.what_no_worker_has()?;
        self.tell(&op::EventDestroy { event: start }, &[], None)?;
        self.request(&op::EventDestroy { event: stop }, &[], None, nothing)?;
        self.tell(&op::Free { device_ptr: buffer }, &[], None)?;
        self.both(&op::StreamDestroy { stream }, &[], None)?;
        // The second one names what is gone, which is told once.
        self.ask(&op::GetLastError {})?;
        self.ask(&op::GetLastError {})?;
        self.ask(&op::DeviceReset {})?;
        // What is made now the worker has to release after the session's end.
        self.batches()?;
        self.faults()?;
        self.request(&op::Shutdown {}, &[], None, nothing).map(drop)
    }

    fn devices(&mut self) -> Result<(), Lost> {
        self.ask(&op::GetDeviceCount {})?;
        self.ask(&op::SetDevice { device_id: 0 })?;
        self.ask(&op::SetDevice { device_id: 9 })?;
        self.ask(&op::GetDevice {})?;
        self.ask(&op::GetDeviceProperties { device_id: 0 })?;
        for attribute in [1, 23, 56, 87] {
            self.ask(&op::DeviceGetAttribute { device_id: 0, attribute })?;
        }
        const MALLOC_HEAP_SIZE: i32 = 2;
        const STACK_SIZE: i32 = 0;
        self.ask(&op::DeviceGetLimit { limit: MALLOC_HEAP_SIZE, value: 0 })?;
        self.both(&op::DeviceSetLimit { limit: STACK_SIZE, value: 4096 }, &[], None)?;
        self.ask(&op::DeviceGetLimit { limit: STACK_SIZE, value: 0 })?;
        self.ask(&op::DeviceCanAccessPeer { device_id: 0, peer_device_id: 0 })?;
        self.ask(&op::DeviceEnablePeerAccess { peer_device_id: 1, flags: 0 })?;
        self.ask(&op::DeviceDisablePeerAccess { peer_device_id: 1, flags: 0 })?;
        self.ask(&op::DeviceGet { ordinal: 0 })?;
        self.ask(&op::DeviceGetName { device: 0, len: 256 })?;
        self.ask(&op::DeviceTotalMem { device: 0 })?;
        let address = self.ask(&op::DeviceGetPciBusId { device: 0, len: 32 })?;
        let pci_bus_id = address.map_or(Text::new("0000:00:00.0"), |reply| reply.pci_bus_id);
        self.ask(&op::DeviceGetByPciBusId { pci_bus_id })?;
        self.ask(&op::DeviceComputeCapability { device: 0 })?;
        self.ask(&op::DeviceGetUuid { device: 0 })?;
        self.ask(&op::DeviceSetCacheConfig { cache_config: 2 })?;
        self.ask(&op::DeviceGetCacheConfig {})?;
        self.ask(&op::DeviceSetSharedMemConfig { shared_mem_config: 1 })?;
        self.ask(&op::DeviceGetSharedMemConfig {})?;
        self.ask(&op::SetDeviceFlags { flags: 4 })?;
        self.ask(&op::GetDeviceFlags {})?;
        self.ask(&op::DeviceGetP2pAttribute { attr: 1, src_device: 0, dst_device: 0 })?;
        self.request(&op::SetValidDevices { len: 1 }, &0i32.to_le_bytes(), None, nothing)?;
        let any = op::ChooseDevice {
            total_global_mem: 1 << 20,
            major: 0,
            minor: 0,
            multi_processor_count: 0,
            warp_size: 64,
            max_threads_per_block: 0,
        };
        self.ask(&any)?;
        self.ask(&op::DeviceGetStreamPriorityRange {})?;
        self.ask(&op::RuntimeGetVersion {})?;
        self.ask(&op::DriverGetVersion {})?;
        self.ask(&op::PeekAtLastError {})?;
        self.ask(&op::GetErrorString { error_code: 700 })?;
        self.ask(&op::GetErrorName { error_code: 700 })?;
        Ok(())
    }

    fn memory(&mut self, stream: u64) -> Result<(), Lost> {
        let host = self.make(&op::MallocHost { size: 256, flags: 0 }, |reply| reply.device_ptr)?;
        self.request(&op::HostGetDevicePointer { host_ptr: host, flags: 0 }, &[], None, nothing)?;
        self.both(&op::Memset { dst: host, value: 5, size: 256, stream: 0 }, &[], None)?;
        self.read(host, 256)?;
        self.request(&op::FreeHost { device_ptr: host }, &[], None, nothing)?;
        let managed = self.make(&op::MallocManaged { size: 512, flags: 1 }, |reply| reply.device_ptr)?;
        self.both(&op::MemAdvise { dev_ptr: managed, count: 512, advice: 1, device: 0 }, &[], None)?;
        let prefetch = op::MemPrefetchAsync { dev_ptr: managed, count: 512, device: 0, reserved: 0, stream };
        self.both(&prefetch, &[], None)?;
        self.request(&op::Free { device_ptr: managed }, &[], None, nothing)?;
        let ordered = self.make(&op::MallocAsync { size: 64, stream }, |reply| reply.device_ptr)?;
        self.request(&op::FreeAsync { device_ptr: ordered, stream }, &[], None, nothing)?;
        let pitched = op::MemAllocPitch { width_in_bytes: 100, height: 4, element_size: 4 };
        let pitched = self.request(&pitched, &[], None, |reply| format!("pitch {}", reply.pitch))?;
        let device_ptr = pitched.map_or(NOWHERE, |reply| reply.dptr);
        self.request(&op::Free { device_ptr }, &[], None, nothing)?;
        self.request(&op::MemGetInfo {}, &[], None, |reply| format!("total {}", reply.total_bytes))?;
        self.ask(&op::Malloc { size: 1 << 60, flags: 0 })?;
        self.ask(&op::Free { device_ptr: NOWHERE })?;
        Ok(())
    }

    fn changes(&mut self, stream: u64) -> Result<(), Lost> {
        const PAGE: u64 = op::PAGE_BYTES;
        let address = self.make(&op::MallocHost { size: 3 * PAGE, flags: 0 }, |reply| reply.device_ptr)?;
        let set = |at, value, size| op::MemsetAsync(op::Memset { dst: address + at, value, size, stream });
        let changes = |at, length| op::MemChanges { address: address + at, length, stream };
        self.ask(&changes(0, PAGE))?;
        self.both(&op::MemWatch { address, length: 3 * PAGE }, &[], None)?;
        // Answered: kept, its error would hide that of the next request.
        self.ask(&op::MemWatch { address, length: 3 * PAGE + 1 })?;
        self.both(&set(0, 0, 3 * PAGE), &[], None)?;
        self.both(&set(PAGE - 1, 7, 2), &[], None)?;
        let push = op::MemPush { address: address + 2 * PAGE, length: 5, stream };
        self.both(&push, &[], Some(vec![1, 2, 3, 4, 5]))?;
        for request in
            [changes(0, 3 * PAGE), changes(0, 3 * PAGE), changes(PAGE, 2 * PAGE + 1), changes(1, 1)]
        {
            self.ask(&request)?;
        }
        self.both(&set(0, 3, PAGE), &[], None)?;
        self.ask(&op::MemChangesPacked { address, length: 3 * PAGE, stream })?;
        self.request(&op::FreeHost { device_ptr: address }, &[], None, nothing)?;
        Ok(())
    }

    /// Asks for what not every device can do: the feature for it is not offered.
    fn places(&mut self) -> Result<(), Lost> {
        self.ask(&op::MemLease { want_bytes: 0 })?;
        self.ask(&op::MallocAt { device_ptr: NOWHERE, size: 1, kind: 2, flags: 0 })?;
        self.ask(&op::MemReturn { bytes: 0, allocations: 0, recall: 0 })?;
        self.request(&op::MemInfo { number: 1 }, &[], None, |reply| format!("total {}", reply.total_bytes))?;
        self.ask(&op::MemShare {})?;
        self.ask(&op::MallocShared { device_ptr: NOWHERE, size: 1, kind: 1, flags: 0 })?;
        Ok(())
    }

    /// Asks for what goes from worker to worker: the feature for it is not offered, as a session with a process of its own has it not.
    fn capabilities(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        let (token, size) = ([1; 32], BUFFER_BYTES);
        let capability = op::CapabilityGive {
            token,
            address: buffer,
            pitch: size,
            slice: size,
            width: size,
            height: 1,
            depth: 1,
            stream,
            timeout_ms: 1,
            reserved: 0,
        };
        self.ask(&capability)?;
        self.ask(&op::CapabilityRead { token, offset: 0, length: 1 })?;
        let copy = op::CapabilityCopy {
            token,
            worker: [0; 32],
            dst: buffer,
            pitch: size,
            slice: size,
            width: size,
            height: 1,
            depth: 1,
            stream,
            address_length: 1,
            reserved: 0,
        };
        self.request(&copy, b"a", None, nothing).map(drop)
    }

    fn cache(&mut self, stream: u64) -> Result<(), Lost> {
        const KEY: [u8; 32] = [1; 32];
        let bytes = vec![3; op::CACHE_CHUNK_MIN_BYTES as usize];
        let chunk = *blake3::keyed_hash(&KEY, &bytes).as_bytes();
        let length = op::CACHE_CHUNK_MIN_BYTES;
        let dst = self.make(&op::Malloc { size: length, flags: 0 }, |reply| reply.device_ptr)?;
        self.ask(&op::CacheOpen { key: KEY })?;
        let put = op::CachePut { dst, size: length, offset: 0, length, stream, waits: 1, reserved: 0 };
        self.both(&put, &[], Some(bytes))?;
        let has = |reply: &op::CacheHaveReply| format!("{:?}", reply.has);
        self.request(&op::CacheHave { count: 1, reserved: 0 }, &chunk, None, has)?;
        let copy =
            op::CacheCopy { chunk, dst, size: length, offset: 0, length, stream, waits: 1, reserved: 0 };
        // The first copy was promised, the second was not.
        self.ask(&copy)?;
        self.ask(&copy)?;
        self.request(&op::Free { device_ptr: dst }, &[], None, nothing)?;
        Ok(())
    }

    fn pointers(&mut self, buffer: u64) -> Result<(), Lost> {
        let attributes = |reply: &op::PointerGetAttributesReply| {
            let offset = reply.device_pointer.wrapping_sub(buffer);
            format!("{} {} +{offset} {}", reply.memory_type, reply.device, reply.is_managed)
        };
        self.request(&op::PointerGetAttributes { ptr: buffer + 9 }, &[], None, attributes)?;
        const RANGE_SIZE: i32 = 12;
        self.ask(&op::PointerGetAttribute { ptr: buffer, attribute: RANGE_SIZE, reserved: 0 })?;
        self.ask(&op::MemPtrGetInfo { ptr: buffer })?;
        Ok(())
    }

    /// Reads device memory and records a digest.
    fn read(&mut self, src: u64, size: u64) -> Result<(), Lost> {
        let copy = op::Memcpy { dst: 0, src, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
        self.request(&copy, &[], None, nothing).map(drop)
    }

    fn fills(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        let fill = |dst, value, size, stream| op::Memset { dst: buffer + dst, value, size, stream };
        self.both(&fill(0, 1, BUFFER_BYTES, 0), &[], None)?;
        self.both(&op::MemsetAsync(fill(0, 2, 100, stream)), &[], None)?;
        self.both(&op::MemsetD8(fill(200, 3, 100, 0)), &[], None)?;
        self.both(&op::MemsetD16(fill(400, 0x1234, 50, 0)), &[], None)?;
        self.both(&op::MemsetD32(fill(600, 0x1234_5678, 25, 0)), &[], None)?;
        self.request(&op::StreamSynchronize { stream }, &[], None, nothing)?;
        self.read(buffer, BUFFER_BYTES)
    }

    fn flat_copies(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        let (up, down, across) = (kind::HOST_TO_DEVICE, kind::DEVICE_TO_HOST, kind::DEVICE_TO_DEVICE);
        let copy = |dst, src, kind, stream| op::Memcpy { dst, src, size: 100, kind, stream };
        let bytes = Some(pattern(100));
        self.both(&copy(buffer, 0, up, 0), &[], bytes.clone())?;
        self.both(&op::MemcpyAsync(copy(buffer + 128, 0, up, stream)), &[], bytes.clone())?;
        self.both(&op::MemcpyHtod(copy(buffer + 256, 0, up, 0)), &[], bytes.clone())?;
        self.both(&op::MemcpyHtodAsync(copy(buffer + 384, 0, up, stream)), &[], bytes)?;
        self.both(&op::MemcpyDtod(copy(buffer + 512, buffer, across, 0)), &[], None)?;
        self.both(&op::MemcpyDtodAsync(copy(buffer + 640, buffer, across, stream)), &[], None)?;
        let peer = |dst, stream| op::MemcpyPeer {
            dst,
            dst_device: 0,
            src: buffer,
            src_device: 0,
            size: 100,
            stream,
        };
        self.both(&peer(buffer + 768, 0), &[], None)?;
        self.both(&op::MemcpyPeerAsync(peer(buffer + 896, stream)), &[], None)?;
        self.request(&op::StreamSynchronize { stream }, &[], None, nothing)?;
        self.request(&op::MemcpyAsync(copy(0, buffer, down, stream)), &[], None, nothing)?;
        self.request(&op::MemcpyDtoh(copy(0, buffer + 128, down, 0)), &[], None, nothing)?;
        self.request(&op::MemcpyDtohAsync(copy(0, buffer + 256, down, stream)), &[], None, nothing)?;
        self.ask(&copy(NOWHERE, buffer, across, 0))?;
        self.read(buffer, BUFFER_BYTES)
    }

    fn shaped_copies(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        let plane = |dst, src, kind, stream| op::Memcpy2D {
            dst,
            dpitch: 64,
            src,
            spitch: 64,
            width: 16,
            height: 4,
            kind,
            reserved: 0,
            stream,
        };
        self.both(&plane(buffer, 0, kind::HOST_TO_DEVICE, 0), &[], Some(pattern(64)))?;
        let up = op::Memcpy2DAsync(plane(buffer + 512, 0, kind::HOST_TO_DEVICE, stream));
        self.both(&up, &[], Some(pattern(64)))?;
        self.both(&plane(buffer + 1024, buffer, kind::DEVICE_TO_DEVICE, 0), &[], None)?;
        self.request(&plane(0, buffer, kind::DEVICE_TO_HOST, 0), &[], None, nothing)?;
        let space = |src_ptr, dst_ptr, kind, stream| op::Memcpy3D {
            src_ptr,
            src_pitch: 32,
            src_height: 4,
            dst_ptr,
            dst_pitch: 32,
            dst_height: 4,
            width: 16,
            height: 2,
            depth: 3,
            kind,
            stream,
            ..op::Memcpy3D::ZERO
        };
        self.both(&space(0, buffer, kind::HOST_TO_DEVICE, 0), &[], Some(pattern(96)))?;
        let up = op::Memcpy3DAsync(space(0, buffer + 1024, kind::HOST_TO_DEVICE, stream));
        self.both(&up, &[], Some(pattern(96)))?;
        self.both(&space(buffer, buffer + 2048, kind::DEVICE_TO_DEVICE, 0), &[], None)?;
        self.request(&space(buffer, 0, kind::DEVICE_TO_HOST, 0), &[], None, nothing)?;
        self.read(buffer, BUFFER_BYTES)
    }

    fn long_copy(&mut self, stream: u64) -> Result<(), Lost> {
        let size = LONG_BYTES as u64;
        let there = self.make(&op::Malloc { size, flags: 0 }, |reply| reply.device_ptr)?;
        let up = op::Memcpy { dst: there, src: 0, size, kind: kind::HOST_TO_DEVICE, stream };
        self.tell(&op::MemcpyAsync(up), &[], Some(pattern(LONG_BYTES)))?;
        let down = op::Memcpy { dst: 0, src: there, size, kind: kind::DEVICE_TO_HOST, stream };
        self.request(&op::MemcpyAsync(down), &[], None, nothing)?;
        self.request(&op::Free { device_ptr: there }, &[], None, nothing).map(drop)
    }

    fn streams(&mut self) -> Result<(), Lost> {
        let asked = op::StreamCreate { flags: 1, priority: 0 };
        let a = self.make(&op::StreamCreateWithFlags(asked), |reply| reply.stream)?;
        let b = self.make(&op::StreamCreateWithPriority(asked), |reply| reply.stream)?;
        self.ask(&op::StreamGetFlags { stream: a })?;
        self.ask(&op::StreamGetPriority { stream: b })?;
        self.ask(&op::StreamQuery { stream: a })?;
        self.ask(&op::StreamWatch { stream: a, number: 1 })?;
        self.request(&op::StreamGetCaptureInfo { stream: a }, &[], None, |reply| {
            reply.capture_status.to_string()
        })?;
        self.ask(&op::StreamIsCapturing { stream: a })?;
        self.ask(&op::StreamSynchronize { stream: NOWHERE })?;
        self.tell(&op::StreamDestroy { stream: a }, &[], None)?;
        self.request(&op::StreamDestroy { stream: b }, &[], None, nothing).map(drop)
    }

    /// Records two events and returns them.
    fn events(&mut self, stream: u64) -> Result<(u64, u64), Lost> {
        let name = op::ClientName::new(0, 0).map_or(0, op::ClientName::number);
        self.ask(&op::Name { name })?;
        let start = self.make(&op::EventCreate { flags: 0 }, |reply| reply.event)?;
        let stop = self.make(&op::EventCreateWithFlags { flags: 0 }, |reply| reply.event)?;
        self.both(&op::EventRecord { event: start, stream }, &[], None)?;
        self.both(&op::StreamWaitEvent { stream, event: start, flags: 0 }, &[], None)?;
        self.both(&op::EventRecord { event: stop, stream }, &[], None)?;
        self.request(&op::EventSynchronize { event: stop }, &[], None, nothing)?;
        self.ask(&op::EventQuery { event: stop })?;
        self.ask(&op::EventQuery { event: NOWHERE })?;
        self.ask(&op::EventWatch { event: stop, number: 2 })?;
        self.ask(&op::EventWatch { event: NOWHERE, number: 3 })?;
        self.request(&op::EventElapsedTime { start_event: start, stop_event: stop }, &[], None, nothing)?;
        Ok((start, stop))
    }

    fn kernels(&mut self, buffer: u64, stream: u64, start: u64, stop: u64) -> Result<(), Lost> {
        let load = |image: &[u8]| op::ModuleLoadData { data_size: image.len() as u64 };
        let loaded = self.request(&load(KERNELS), &[], Some(KERNELS.to_vec()), nothing)?;
        let module = loaded.map_or(NOWHERE, |reply| reply.module);
        let described = |reply: &op::ModuleGetFunctionReply| {
            let params = reply.params.get(..reply.num_params as usize).unwrap_or_default();
            format!("{} {params:?}", reply.num_args)
        };
        let find = op::ModuleGetFunction { module };
        self.request(&find, &name("no such kernel"), None, described)?;
        let found = self.request(&find, &name("saxpy"), None, described)?;
        let function = found.map_or(NOWHERE, |reply| reply.function);
        let occupancy =
            op::OccupancyMaxPotentialBlockSize { function, dyn_shared_mem: 0, block_size_limit: 0, flags: 0 };
        self.ask(&occupancy)?;
        self.ask(&op::OccupancyMaxActiveBlocksPerSm { function, block_size: 64, dyn_shared_mem: 0 })?;
        self.ask(&op::FuncGetAttributes { function })?;
        self.ask(&op::FuncSetAttribute { function, attribute: 8, value: 1024 })?;
        self.both(&op::FuncSetCacheConfig { function, cache_config: 1 }, &[], None)?;

        let ones = 1f32.to_le_bytes().repeat(256);
        let up = op::Memcpy { dst: buffer, src: 0, size: 1024, kind: kind::HOST_TO_DEVICE, stream };
        self.tell(&up, &[], Some(ones))?;
        let arguments = saxpy_arguments(buffer, buffer + 256);
        self.both(&saxpy(function, stream, 0, 0), &arguments, None)?;
        self.both(&op::LaunchCooperativeKernel(saxpy(function, stream, 0, 0)), &arguments, None)?;
        let timed = op::ModuleLaunchKernel(saxpy(function, stream, start, stop));
        self.request(&timed, &arguments, None, nothing)?;
        self.request(&op::EventSynchronize { event: stop }, &[], None, nothing)?;
        self.request(&op::EventElapsedTime { start_event: start, stop_event: stop }, &[], None, nothing)?;
        let pair = [start.to_le_bytes(), stop.to_le_bytes()].concat();
        let times = op::EventTimes { number: 1, count: 1, reserved: 0 };
        self.request(&times, &pair, None, nothing)?;
        self.times();
        self.tell(&times, &pair, None)?;
        self.ask(&op::DeviceSynchronize {})?;
        self.times();
        self.read(buffer, 1024)?;

        self.graphs(buffer, stream, start, function)?;
        let bad = vec![0x55; 1000];
        self.request(&load(&bad), &[], Some(bad.clone()), nothing)?;
        let other = op::ModuleLoadDataEx(load(VARIABLES));
        let loaded = self.request(&other, &[], Some(VARIABLES.to_vec()), nothing)?;
        let other = loaded.map_or(NOWHERE, |reply| reply.module);
        let global = op::ModuleGetGlobal { module: other };
        let found = self.request(&global, &name("coefficients"), None, |reply| reply.size.to_string())?;
        self.read(found.map_or(NOWHERE, |reply| reply.device_ptr), 32)?;
        let variables = op::ModuleVariables { module: other, number: 1, count: 1, names_length: 13 };
        self.request(&variables, b"coefficients\0", None, nothing)?;
        let (length, stream) = (32, 0);
        let put = op::VariablePut { module: other, variable: 0, waits: 1, offset: 0, length, stream };
        self.request(&put, &[], Some(vec![7; 32]), nothing)?;
        self.read(found.map_or(NOWHERE, |reply| reply.device_ptr), 32)?;
        self.tell(&op::ModuleUnload { module: other }, &[], None)?;
        self.request(&op::ModuleUnload { module }, &[], None, nothing)?;
        Ok(())
    }

    /// Records whether the worker has told the times that it was asked for, or an error.
    fn times(&mut self) {
        let told = self.wire.take_times();
        let error = told.iter().find(|time| time.error_code != 0);
        let result = match error {
            Some(time) => Err(Failure::Error(HipError(time.error_code))),
            None => Ok(format!("{} times", told.len())),
        };
        self.note::<op::EventTimes>(result);
    }

    /// Launches a faulty kernel, whose error the next synchronization reports once.
    fn faults(&mut self) -> Result<(), Lost> {
        let stream = self.make(&op::StreamCreate { flags: 1, priority: 0 }, |reply| reply.stream)?;
        let buffer = self.make(&op::Malloc { size: 512, flags: 0 }, |reply| reply.device_ptr)?;
        let kernel = "saxpy";
        let op = op::ModuleLoadAndGetFunction {
            data_size: KERNELS.len() as u64,
            name_length: kernel.len() as u32,
            pad: 0,
        };
        let loaded = self.request(&op, kernel.as_bytes(), Some(KERNELS.to_vec()), nothing)?;
        let function = loaded.map_or(NOWHERE, |reply| reply.function);
        self.tell(&saxpy(function, stream, 0, 0), &saxpy_arguments(NOWHERE, NOWHERE + 256), None)?;
        self.ask(&op::DeviceSynchronize {})?;
        self.ask(&op::DeviceSynchronize {})?;
        self.tell(&saxpy(function, stream, 0, 0), &saxpy_arguments(buffer, buffer + 256), None)?;
        self.request(&op::StreamSynchronize { stream }, &[], None, nothing).map(drop)
    }

    fn batches(&mut self) -> Result<(), Lost> {
        let mut sizes = [0; 64];
        sizes[..3].fill(64);
        let made = self.request(&op::MallocBatch { count: 3, pad: 0, sizes }, &[], None, nothing)?;
        for device_ptr in made.iter().flat_map(|reply| &reply.ptrs[..3]) {
            self.tell(&op::Free { device_ptr: *device_ptr }, &[], None)?;
        }
        self.request(&op::StreamCreateBatch { count: 2, flags: 0 }, &[], None, nothing)?;
        self.request(&op::EventCreateBatch { count: 2, flags: 0 }, &[], None, nothing)?;
        Ok(())
    }

    fn system_management(&mut self) -> Result<(), Lost> {
        self.ask(&op::SmiInit { init_flags: 0 })?;
        self.ask(&op::SmiGetProcessorCount {})?;
        self.request(&op::SmiGetVramUsage { processor_index: 0 }, &[], None, |reply| {
            reply.vram_total.to_string()
        })?;
        self.ask(&op::SmiGetAsicInfo { processor_index: 0 })?;
        self.ask(&op::SmiShutdown {})?;
        Ok(())
    }

    fn pools(&mut self, stream: u64) -> Result<(), Lost> {
        const RELEASE_THRESHOLD: i32 = 4;
        const NUMBERS: std::ops::RangeInclusive<i32> = 1..=9;
        let create = op::MemPoolCreate { alloc_type: 1, location_type: 1, ..op::MemPoolCreate::ZERO };
        self.request(&op::MemPoolCreate::ZERO, &[], None, nothing)?;
        self.request(&op::MemPoolCreate { location_id: 9, ..create }, &[], None, nothing)?;
        let pool = self.make(&create, |reply| reply.mem_pool)?;
        let threshold =
            op::MemPoolSetAttribute { mem_pool: pool, attr: RELEASE_THRESHOLD, reserved: 0, value: 1 << 20 };
        self.ask(&threshold)?;
        self.ask(&op::MemPoolSetAttribute { attr: 5, ..threshold })?;
        self.ask(&op::MemPoolSetAttribute { mem_pool: NOWHERE, ..threshold })?;
        let malloc = op::MallocFromPoolAsync { size: 4096, mem_pool: pool, stream };
        let first = self.make(&malloc, |reply| reply.device_ptr)?;
        let second = self.make(&malloc, |reply| reply.device_ptr)?;
        self.both(&op::Memset { dst: first, value: 3, size: 4096, stream }, &[], None)?;
        self.both(&op::FreeAsync { device_ptr: second, stream }, &[], None)?;
        self.ask(&op::GetLastError {})?;
        for attr in NUMBERS {
            self.ask(&op::MemPoolGetAttribute { mem_pool: pool, attr })?;
        }
        self.request(&malloc, &[], None, |reply| format!("again: {}", reply.device_ptr == second))?;
        self.request(&op::FreeAsync { device_ptr: second, stream }, &[], None, nothing)?;
        // A trim takes only what nothing works with any more.
        self.ask(&op::StreamSynchronize { stream })?;
        self.both(&op::MemPoolTrimTo { mem_pool: pool, min_bytes_to_hold: 0 }, &[], None)?;
        for attr in NUMBERS {
            self.ask(&op::MemPoolGetAttribute { mem_pool: pool, attr })?;
        }
        let default = self.make(&op::DeviceGetDefaultMemPool { device: 0 }, |reply| reply.mem_pool)?;
        let which = move |found: u64| format!("default {}, made {}", found == default, found == pool);
        let current = op::DeviceGetMemPool { device: 0 };
        self.request(&current, &[], None, |reply| which(reply.mem_pool))?;
        self.both(&op::DeviceSetMemPool { device: 0, reserved: 0, mem_pool: pool }, &[], None)?;
        self.request(&current, &[], None, |reply| which(reply.mem_pool))?;
        self.request(&op::MemPoolDestroy { mem_pool: default }, &[], None, nothing)?;
        // Destroyed, and destroyed again, which is told once.
        self.both(&op::MemPoolDestroy { mem_pool: pool }, &[], None)?;
        self.ask(&op::GetLastError {})?;
        self.request(&current, &[], None, |reply| which(reply.mem_pool))?;
        self.request(&malloc, &[], None, nothing)?;
        let copy = op::Memcpy { dst: 0, src: first, size: 4096, kind: kind::DEVICE_TO_HOST, stream };
        self.request(&copy, &[], None, nothing)?;
        self.request(&op::FreeAsync { device_ptr: first, stream }, &[], None, nothing).map(drop)
    }

    fn registered_memory(&mut self) -> Result<(), Lost> {
        const HERE: u64 = 0x5000_0000;
        let register = op::HostRegister { host_ptr: HERE, size_bytes: 4096, flags: 0 };
        self.ask(&register)?;
        self.ask(&op::HostRegister { host_ptr: HERE + 4095, ..register })?;
        let inside = op::HostGetDevicePointer { host_ptr: HERE + 8, flags: 0 };
        let found = self.request(&inside, &[], None, nothing)?;
        let there = found.map_or(NOWHERE, |reply| reply.device_ptr);
        self.both(&op::Memset { dst: there, value: 9, size: 4088, stream: 0 }, &[], None)?;
        self.read(there, 4088)?;
        self.ask(&op::HostUnregister { host_ptr: HERE + 8 })?;
        self.ask(&op::HostUnregister { host_ptr: HERE })?;
        self.ask(&op::HostUnregister { host_ptr: HERE })?;
        self.read(there, 4088)
    }

    fn what_no_worker_has(&mut self) -> Result<(), Lost> {
        macro_rules! empty {
            ($($Request:ident)*) => { $(self.request(&op::$Request::ZERO, &[], None, nothing)?;)* };
        }
        empty! {
            SmiGetGpuMetrics
        }
        Ok(())
    }
}
