//! Executes requests: a method for each operation.
//!
//! A row names the function that carries an operation out; the functions are in the rooms `extension`, `device`, `memory`, `pool`,
//! `lease`, `mappings`, `changes`, `cache`, `packed`, `capability`, `ipc`, `copy`, `stream`, `module`, `launch`, `graph` and `capture`. An operation that is in the protocol and not here
//! does not compile ([`Visit`]); one that this worker does not have is in the last part of the table, and all of those share one
//! answer, `NOT_SUPPORTED`, with the operations that nobody knows.

mod cache;
mod capability;
mod capture;
mod changes;
mod copy;
mod device;
mod extension;
mod graph;
mod ipc;
mod launch;
mod lease;
mod mappings;
mod memory;
mod module;
mod packed;
mod pool;
mod stream;

use std::sync::Arc;

use hipr_graph::Exec;
use hipr_io::ConnId;
use hipr_proto::op::*;
use hipr_proto::{Class, HipError, HipResult, Wire};

use crate::SessionLimits;
use crate::cache::Promise;
use crate::capabilities::{Capabilities, Readable};
use crate::env::{Env, More};
use crate::owned::{NodeWork, Owned, Remap, Sought};
use crate::peers::PeerCapability;
use hipr_device::{Context, Region, WaitFor};

pub(crate) use graph::{GraphWork, Stage, capture_node, check_work, enqueue, finish_work, launch_stage};
pub(crate) use module::{Load, finish_load};
pub(crate) use packed::Unpack;

/// What becomes of the bytes of a copy to the device, besides that they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upload {
    /// Nothing.
    Written,
    /// The client is taken to know them, in memory that is watched.
    Known,
    /// They are a chunk for the cache of uploads.
    Kept,
}

/// The rest of a request after its function has returned.
#[derive(Debug)]
pub(crate) enum Continuation {
    /// Reply with the fixed part in [`Call::reply`].
    Reply,
    /// Reply with the fixed part in [`Call::reply`], followed by these bytes.
    List(Vec<u8>),
    /// Wait, then reply without fields.
    Wait(WaitFor),
    /// Wait until the address is freed, then reply without fields.
    Free(u64),
    /// Change mappings, behind the device's work if that is needed, then reply without fields.
    Remap(Remap),
    /// Wait for the device, reset it, then reply without fields.
    Reset,
    /// Write the tail to a region in the order of a stream, then reply without fields.
    Write {
        /// The destination.
        dst: Region,
        /// The stream.
        stream: u64,
        /// Whether the bytes must have arrived before the next request begins.
        waits: bool,
        /// What becomes of the bytes besides.
        what: Upload,
    },
    /// Let all later work, on whatever stream, come behind the copy that was enqueued on this stream; then reply without fields.
    Copied(u64),
    /// Write a chunk of the cache to a region in the order of a stream, then reply without fields.
    CopyKept {
        /// The destination.
        dst: Region,
        /// The stream.
        stream: u64,
        /// Whether the bytes must have arrived before the next request begins.
        waits: bool,
        /// The chunk, which is as long as the region.
        chunk: Arc<Promise>,
    },
    /// Unpack bytes into a region in the order of a stream, then reply without fields.
    Unpack(Box<Unpack>),
    /// Look for chunks with these names in the cache, then reply which there are.
    Have(Vec<[u8; CACHE_NAME_BYTES]>),
    /// Wait for the stream, then reply with a region's bytes.
    Read {
        /// The source.
        src: Region,
        /// The stream.
        stream: u64,
        /// Whether the bytes are packed if that pays.
        packs: bool,
    },
    /// Wait for the stream of another session, then reply with bytes of its memory.
    CapabilityRead {
        /// What the capability is for.
        what: Readable,
        /// The first byte, of all that the capability is for.
        offset: u64,
        /// Number of bytes.
        len_bytes: u64,
    },
    /// Write what a session of another worker has given a capability for to a region in the order of a stream, then reply without fields.
    CapabilityCopy {
        /// The destination.
        dst: Region,
        /// The stream.
        stream: u64,
        /// The other worker, and the capability.
        from: Box<PeerCapability>,
    },
    /// Wait for the stream, then reply with what has changed in a watched range.
    Changes {
        /// The address of the allocation.
        base: u64,
        /// The range.
        src: Region,
        /// The stream.
        stream: u64,
        /// Whether the bytes of its pages are packed if that pays.
        packs: bool,
    },
    /// Check and execute a graph's nodes one after another, or add them to the graph that is being captured; then reply without fields.
    Replay {
        /// The graph.
        exec: Arc<Exec<NodeWork>>,
        /// The stream.
        stream: u64,
        /// What is done with the nodes first.
        stage: Stage,
    },
    /// Lend the graphs to a thread that does something with them, then continue with its result.
    Lend(GraphWork),
    /// Load a code object, on another thread.
    Load(Box<Load>),
    /// Collect the tail, then call again with it in [`Call::collected`].
    Collect,
    /// Tell the client where variables are, with this tail, then reply without fields.
    Variables(VariablesTold, Vec<u8>),
    /// Release everything, reply, and close the connection.
    Shutdown,
}

/// A request that is being executed.
pub(crate) struct Call<'a> {
    /// The resources that the session owns.
    pub(crate) owned: &'a mut Owned,
    /// The buffer for the reply's fixed part.
    pub(crate) reply: &'a mut Vec<u8>,
    /// The tail, after [`Continuation::Collect`].
    pub(crate) collected: Option<Vec<u8>>,
    /// The limits of a session.
    pub(crate) limits: &'a SessionLimits,
    /// What the session could have beyond them.
    pub(crate) more: More<'a>,
    /// The capabilities of all sessions, if there are any.
    pub(crate) capabilities: Option<&'a Capabilities>,
    /// The connection, for logs, and by which other sessions know this one.
    pub(crate) conn: ConnId,
}

impl Call<'_> {
    /// Executes a request.
    pub(crate) fn carry_out(
        &mut self,
        env: &Env<'_>,
        op: Opcode,
        fixed: &[u8],
        tail: &[u8],
    ) -> HipResult<Continuation> {
        // What reads another session's memory needs no context of its own.
        if op.info().is_some_and(|info| info.class != Class::Exempt) && op != Opcode::CAPABILITY_READ {
            self.owned.open(env.device, env.limits.share, env.waker)?;
            if needs_device(op) {
                self.owned.context_ref()?.available()?;
            }
        }
        self.reply.clear();
        self.check_capture(op)?;
        visit(op, fixed, tail, self).unwrap_or_else(|short| Err(short.into()))
    }

    /// Puts the device's handles in place of those by which the client knows its objects, names above all.
    #[inline(always)]
    fn resolve(&self, request: &mut impl Handles) {
        request.handles(|kind, handle| *handle = self.owned.names.resolve(kind, *handle));
    }

    fn context(&mut self) -> HipResult<&mut dyn Context> {
        self.owned.context()
    }

    fn context_ref(&self) -> HipResult<&dyn Context> {
        self.owned.context_ref()
    }

    /// Completes the request with a reply.
    fn reply<R: Wire>(&mut self, reply: R) -> HipResult<Continuation> {
        reply.put(self.reply);
        Ok(Continuation::Reply)
    }

    /// Completes the request with a reply without fields.
    fn done(&mut self) -> HipResult<Continuation> {
        Ok(Continuation::Reply)
    }

    /// Checks that the session may have `count` more handles.
    fn check_room(&mut self, count: usize) -> HipResult<()> {
        let max = self.limits.handles_max;
        let has_place = |owned: &mut Owned| owned.claimed_handles().saturating_add(count) <= max;
        self.check_limit("handles_max", max as u64, true, has_place)?;
        // What it takes to know of them is memory as well.
        let limits = self.limits;
        let is_own = self.owned.claimed_bytes_with(count) > self.more.memory_max_bytes;
        self.check_limit("memory_max_bytes", limits.memory_max_bytes, is_own, |owned| {
            owned.handles_left(0, limits) >= count
        })
    }

    /// Checks that the session may have one more handle and `size_bytes` more memory.
    fn check_memory(&mut self, size_bytes: u64) -> HipResult<()> {
        self.check_room(1)?;
        let (limits, max) = (self.limits, self.limits.memory_max_bytes);
        let lacking_bytes = self.owned.lacking_bytes(size_bytes, limits, self.more);
        if lacking_bytes > 0 {
            self.owned.recall.lacking_bytes = Some(lacking_bytes);
            self.owned.recall.is_bound = true;
            if self.owned.recall.sought == Sought::Nobody {
                return Err(HipError::OUT_OF_MEMORY);
            }
        }
        let is_own = self.owned.claimed_bytes_with(1).saturating_add(size_bytes) > self.more.memory_max_bytes;
        self.check_limit("memory_max_bytes", max, is_own, |owned| {
            owned.claimed_bytes_with(1).saturating_add(size_bytes) <= max
                && owned.take_working(size_bytes, limits)
        })?;
        self.owned.make_room(size_bytes, self.limits);
        Ok(())
    }

    /// Checks a limit; releases idle memory of pools if it is exceeded. `is_own` says whether it is one that nobody else can lift.
    fn check_limit(
        &mut self,
        limit: &'static str,
        max: u64,
        is_own: bool,
        has_room: impl Fn(&mut Owned) -> bool,
    ) -> HipResult<()> {
        if has_room(self.owned) {
            return Ok(());
        }
        // What is free costs less than what a pool keeps.
        if is_own || !self.asks_first() {
            self.release_idle()?;
            if has_room(self.owned) {
                return Ok(());
            }
        }
        Err(self.refuse(limit, max, is_own))
    }

    /// Returns whether the request asks for what is free before it takes from what the session has.
    fn asks_first(&self) -> bool {
        self.more.is_there && self.owned.recall.sought == Sought::Nobody
    }

    /// Returns the error for exceeding a limit. One that others can lift is not logged as long as the request is tried again.
    fn refuse(&mut self, limit: &'static str, max: u64, is_own: bool) -> HipError {
        self.owned.recall.is_bound = !is_own;
        if self.more.is_there && !is_own {
            return HipError::OUT_OF_MEMORY;
        }
        self.owned.recall.is_own_limit = is_own;
        self.owned.refuse(self.conn, limit, max)
    }

    /// Releases idle memory of pools.
    fn release_idle(&mut self) -> HipResult<()> {
        let (pools, context) = self.owned.pools()?;
        pools.release_idle(context)
    }

    /// Returns how many more bytes of memory the session may have.
    fn memory_left(&self) -> u64 {
        match self.limits.memory_max_bytes {
            u64::MAX => u64::MAX,
            max => max.saturating_sub(self.owned.claimed_bytes()),
        }
    }

    /// Returns the error for more memory than the session may have.
    fn refuse_memory(&mut self) -> HipError {
        self.refuse("memory_max_bytes", self.limits.memory_max_bytes, false)
    }

    /// Returns the free and total memory that the session may use, in bytes.
    fn memory_info(&self) -> HipResult<(u64, u64)> {
        self.owned.mem_info(self.more.could_have_bytes(self.limits))
    }
}

macro_rules! routes {
    (
        fixed { $($method:ident($Request:ty) = $body:expr;)* }
        with_tail { $($tail_method:ident($TailRequest:ty) = $tail_body:expr;)* }
        not_supported { $($missing:ident($Missing:ty),)* }
    ) => {
        $(
            fn $method(&mut self, mut request: $Request, _tail: &[u8]) -> Self::Out {
                self.resolve(&mut request);
                $body(self, request)
            }
        )*
        $(
            fn $tail_method(&mut self, mut request: $TailRequest, tail: &[u8]) -> Self::Out {
                self.resolve(&mut request);
                $tail_body(self, request, tail)
            }
        )*
        $(
            fn $missing(&mut self, _request: $Missing, _tail: &[u8]) -> Self::Out {
                not_supported()
            }
        )*
    };
}

/// Returns whether an operation fails on a machine without a device. Versions and texts of errors are available there.
fn needs_device(op: Opcode) -> bool {
    !matches!(
        op,
        Opcode::RUNTIME_GET_VERSION
            | Opcode::DRIVER_GET_VERSION
            | Opcode::GET_ERROR_NAME
            | Opcode::GET_ERROR_STRING
    )
}

/// Fails an operation that this worker does not support.
///
/// - `SMI_GET_GPU_METRICS`. Temperatures, clocks and power are known to a management library and not to HIP; an emulated device has
///   none, and numbers that nobody measured help no one.
/// - Notifications, which only the worker sends.
fn not_supported() -> HipResult<Continuation> {
    Err(HipError::NOT_SUPPORTED)
}

/// Succeeds without doing anything.
fn nothing<R>(call: &mut Call<'_>, _request: R) -> HipResult<Continuation> {
    call.done()
}

impl Visit for Call<'_> {
    type Out = HipResult<Continuation>;

    fn unknown(&mut self, _op: Opcode) -> Self::Out {
        not_supported()
    }

    routes! {
        fixed {
        init(Init) = nothing;
        shutdown(Shutdown) = |_: &mut Self, _| Ok(Continuation::Shutdown);
        ping(Ping) = nothing;
        offer(Offer) = extension::offer;
        static_replies(Static) = extension::static_replies;
        name(Name) = extension::name;

        get_device_count(GetDeviceCount) = device::count;
        set_device(SetDevice) = device::set;
        get_device(GetDevice) = device::current;
        get_device_properties(GetDeviceProperties) = device::properties;
        device_synchronize(DeviceSynchronize) = |_: &mut Self, _| Ok(Continuation::Wait(WaitFor::Device));
        device_reset(DeviceReset) = |_: &mut Self, _| Ok(Continuation::Reset);
        device_get_attribute(DeviceGetAttribute) = device::attribute;
        device_get_limit(DeviceGetLimit) = device::limit;
        device_set_limit(DeviceSetLimit) = device::set_limit;
        device_can_access_peer(DeviceCanAccessPeer) = device::can_access_peer;
        device_enable_peer_access(DeviceEnablePeerAccess) = device::enable_peer_access;
        device_disable_peer_access(DeviceDisablePeerAccess) = device::disable_peer_access;
        device_get(DeviceGet) = device::by_ordinal;
        device_get_name(DeviceGetName) = device::name;
        device_total_mem(DeviceTotalMem) = device::total_mem;
        device_get_pci_bus_id(DeviceGetPciBusId) = device::pci_bus_id;
        device_get_by_pci_bus_id(DeviceGetByPciBusId) = device::by_pci_bus_id;
        device_compute_capability(DeviceComputeCapability) = device::compute_capability;
        device_get_uuid(DeviceGetUuid) = device::uuid;
        device_get_cache_config(DeviceGetCacheConfig) = device::cache_config;
        device_set_cache_config(DeviceSetCacheConfig) = device::set_cache_config;
        device_get_shared_mem_config(DeviceGetSharedMemConfig) = device::shared_mem_config;
        device_set_shared_mem_config(DeviceSetSharedMemConfig) = device::set_shared_mem_config;
        set_device_flags(SetDeviceFlags) = device::set_flags;
        get_device_flags(GetDeviceFlags) = device::flags;
        device_get_p2p_attribute(DeviceGetP2pAttribute) = device::p2p_attribute;
        choose_device(ChooseDevice) = device::choose;
        device_get_stream_priority_range(DeviceGetStreamPriorityRange) = device::stream_priority_range;
        runtime_get_version(RuntimeGetVersion) = device::runtime_version;
        driver_get_version(DriverGetVersion) = device::driver_version;
        get_last_error(GetLastError) = nothing;
        peek_at_last_error(PeekAtLastError) = nothing;
        get_error_string(GetErrorString) = device::error_string;
        get_error_name(GetErrorName) = device::error_name;
        smi_init(SmiInit) = nothing;
        smi_shutdown(SmiShutdown) = nothing;
        smi_get_processor_count(SmiGetProcessorCount) = device::smi_count;
        smi_get_vram_usage(SmiGetVramUsage) = device::smi_vram_usage;
        smi_get_asic_info(SmiGetAsicInfo) = device::smi_asic_info;

        malloc(Malloc) = memory::malloc;
        free(Free) = memory::free;
        malloc_host(MallocHost) = memory::malloc_host;
        free_host(FreeHost) = memory::free_host;
        malloc_managed(MallocManaged) = memory::malloc_managed;
        malloc_async(MallocAsync) = pool::malloc_from_current;
        free_async(FreeAsync) = memory::free_async;
        malloc_batch(MallocBatch) = memory::malloc_batch;
        mem_alloc_pitch(MemAllocPitch) = memory::malloc_pitch;
        memset(Memset) = |call: &mut Self, r| memory::fill(call, r, 1);
        memset_async(Memset) = |call: &mut Self, r| memory::fill(call, r, 1);
        memset_d8(Memset) = |call: &mut Self, r| memory::fill(call, r, 1);
        memset_d16(Memset) = |call: &mut Self, r| memory::fill(call, r, 2);
        memset_d32(Memset) = |call: &mut Self, r| memory::fill(call, r, 4);
        mem_get_info(MemGetInfo) = memory::info;
        pointer_get_attributes(PointerGetAttributes) = memory::pointer_attributes;
        pointer_get_attribute(PointerGetAttribute) = memory::pointer_attribute;
        mem_ptr_get_info(MemPtrGetInfo) = memory::pointer_size;
        host_get_device_pointer(HostGetDevicePointer) = memory::device_pointer;
        host_register(HostRegister) = memory::register;
        host_unregister(HostUnregister) = memory::unregister;
        mem_advise(MemAdvise) = memory::advise;
        mem_prefetch_async(MemPrefetchAsync) = memory::prefetch;
        mem_watch(MemWatch) = changes::watch;
        mem_push(MemPush) = changes::push;
        mem_changes(MemChanges) = changes::changes;
        mem_changes_packed(MemChangesPacked) = changes::packed;
        mem_lease(MemLease) = lease::lease;
        malloc_at(MallocAt) = lease::allocate;
        mem_share(MemShare) = lease::share;
        malloc_shared(MallocShared) = lease::allocate_shared;
        mem_return(MemReturn) = lease::give_back;
        mem_info(MemInfo) = memory::watched_info;
        mem_granularity(MemGranularity) = mappings::granularity;
        address_reserve(AddressReserve) = mappings::reserve;
        address_free(AddressFree) = mappings::free;
        physical_create(PhysicalCreate) = mappings::create;
        physical_release(PhysicalRelease) = mappings::release;
        physical_export(PhysicalExport) = mappings::export;
        physical_import(PhysicalImport) = mappings::import;
        mem_map(MemMap) = mappings::map;
        mem_set_access(MemSetAccess) = mappings::set_access;
        mem_unmap(MemUnmap) = mappings::unmap;
        capability_give(CapabilityGive) = capability::give;
        capability_read(CapabilityRead) = capability::read;
        cache_open(CacheOpen) = cache::open;
        cache_put(CachePut) = cache::put;
        cache_copy(CacheCopy) = cache::copy;
        put_packed(PutPacked) = packed::put;
        get_packed(GetPacked) = packed::get;
        module_load_packed(ModuleLoadPacked) = module::load_packed;

        ipc_get_mem_handle(IpcGetMemHandle) = ipc::memory_handle;
        ipc_open_mem_handle(IpcOpenMemHandle) = ipc::open_memory;
        ipc_close_mem_handle(IpcCloseMemHandle) = ipc::close_memory;
        ipc_get_event_handle(IpcGetEventHandle) = ipc::event_handle;
        ipc_open_event_handle(IpcOpenEventHandle) = ipc::open_event;

        mem_pool_create(MemPoolCreate) = pool::create;
        mem_pool_destroy(MemPoolDestroy) = pool::destroy;
        mem_pool_set_attribute(MemPoolSetAttribute) = pool::set_attribute;
        mem_pool_get_attribute(MemPoolGetAttribute) = pool::attribute;
        malloc_from_pool_async(MallocFromPoolAsync) = pool::malloc;
        mem_pool_trim_to(MemPoolTrimTo) = pool::trim;
        device_get_default_mem_pool(DeviceGetDefaultMemPool) = pool::default_of;
        device_set_mem_pool(DeviceSetMemPool) = pool::set_current;
        device_get_mem_pool(DeviceGetMemPool) = pool::current_of;

        memcpy(Memcpy) = copy::flat;
        memcpy_async(Memcpy) = |call: &mut Self, r| copy::unawaited(copy::flat(call, r));
        memcpy_2d(Memcpy2D) = copy::rows;
        memcpy_2d_async(Memcpy2D) = |call: &mut Self, r| copy::unawaited(copy::rows(call, r));
        memcpy_3d(Memcpy3D) = copy::slices;
        memcpy_3d_async(Memcpy3D) = |call: &mut Self, r| copy::unawaited(copy::slices(call, r));
        memcpy_dtod(Memcpy) = |call: &mut Self, r| copy::flat(call, Memcpy { kind: kind::DEVICE_TO_DEVICE, ..r });
        memcpy_dtod_async(Memcpy) = |call: &mut Self, r| {
            copy::unawaited(copy::flat(call, Memcpy { kind: kind::DEVICE_TO_DEVICE, ..r }))
        };
        memcpy_htod(Memcpy) = |call: &mut Self, r| copy::flat(call, Memcpy { kind: kind::HOST_TO_DEVICE, ..r });
        memcpy_htod_async(Memcpy) = |call: &mut Self, r| {
            copy::unawaited(copy::flat(call, Memcpy { kind: kind::HOST_TO_DEVICE, ..r }))
        };
        memcpy_dtoh(Memcpy) = |call: &mut Self, r| copy::flat(call, Memcpy { kind: kind::DEVICE_TO_HOST, ..r });
        memcpy_dtoh_async(Memcpy) = |call: &mut Self, r| copy::flat(call, Memcpy { kind: kind::DEVICE_TO_HOST, ..r });
        variable_put(VariablePut) = copy::to_variable;
        memcpy_peer(MemcpyPeer) = copy::peer;
        memcpy_peer_async(MemcpyPeer) = |call: &mut Self, r| copy::unawaited(copy::peer(call, r));

        stream_create(StreamCreate) = stream::create;
        stream_create_with_flags(StreamCreate) = |call: &mut Self, r| stream::create(call, StreamCreate { priority: 0, ..r });
        stream_create_with_priority(StreamCreate) = stream::create;
        stream_create_batch(StreamCreateBatch) = stream::create_batch;
        stream_destroy(StreamDestroy) = stream::destroy;
        stream_synchronize(StreamSynchronize) = stream::synchronize;
        stream_query(StreamQuery) = stream::query;
        stream_watch(StreamWatch) = stream::watch;
        stream_wait_event(StreamWaitEvent) = stream::wait_event;
        stream_get_flags(StreamGetFlags) = stream::flags;
        stream_get_priority(StreamGetPriority) = stream::priority;
        event_create(EventCreate) = stream::event_create;
        event_create_with_flags(EventCreateWithFlags) = |call: &mut Self, r: EventCreateWithFlags| {
            stream::event_create(call, EventCreate { flags: r.flags })
        };
        event_create_batch(EventCreateBatch) = stream::event_create_batch;
        event_destroy(EventDestroy) = stream::event_destroy;
        event_record(EventRecord) = stream::event_record;
        event_synchronize(EventSynchronize) = stream::event_synchronize;
        event_query(EventQuery) = stream::event_query;
        event_watch(EventWatch) = stream::event_watch;
        event_elapsed_time(EventElapsedTime) = stream::event_elapsed_time;

        module_load_data(ModuleLoadData) = module::load;
        module_load_data_ex(ModuleLoadData) = module::load;
        module_load_and_get_function(ModuleLoadAndGetFunction) = module::load_and_find;
        module_unload(ModuleUnload) = module::unload;
        func_get_attributes(FuncGetAttributes) = module::function_attributes;
        func_set_attribute(FuncSetAttribute) = module::set_function_attribute;
        func_set_cache_config(FuncSetCacheConfig) = module::set_function_cache_config;
        occupancy_max_potential_block_size(OccupancyMaxPotentialBlockSize) = module::max_potential_block_size;
        occupancy_max_active_blocks_per_sm(OccupancyMaxActiveBlocksPerSm) = module::max_active_blocks;

        stream_get_capture_info(StreamGetCaptureInfo) = capture::info;
        stream_is_capturing(StreamIsCapturing) = capture::is_capturing;
        stream_begin_capture(StreamBeginCapture) = capture::begin;
        stream_end_capture(StreamEndCapture) = capture::end;
        stream_add_callback(StreamAddCallback) = capture::add_callback;
        graph_create(GraphCreate) = graph::create;
        graph_destroy(GraphDestroy) = graph::destroy;
        graph_instantiate(GraphInstantiate) = graph::instantiate;
        graph_launch(GraphLaunch) = graph::launch;
        graph_exec_destroy(GraphExecDestroy) = graph::exec_destroy;
        graph_clone(GraphClone) = graph::clone;
        graph_get_nodes(GraphGetNodes) = graph::nodes;
        graph_get_root_nodes(GraphGetRootNodes) = graph::roots;
        graph_get_edges(GraphGetEdges) = graph::edges;
        graph_node_get_type(GraphNodeGetType) = graph::node_type;
        graph_destroy_node(GraphDestroyNode) = graph::destroy_node;
        graph_node_get_dependencies(GraphNodeGetDependencies) = graph::dependencies;
        graph_node_get_dependent_nodes(GraphNodeGetDependentNodes) = graph::dependents;
        graph_exec_update(GraphExecUpdate) = graph::exec_update;

        }
        with_tail {
        capability_copy(CapabilityCopy) = capability::copy;
        cache_have(CacheHave) = cache::have;
        set_valid_devices(SetValidDevices) = device::set_valid;
        module_get_function(ModuleGetFunction) = module::function;
        module_get_global(ModuleGetGlobal) = module::global;
        module_variables(ModuleVariables) = module::variables;
        event_times(EventTimes) = stream::event_times;
        launch_kernel(LaunchKernel) = |call: &mut Self, r, tail| launch::launch(call, &r, tail, false);
        launch_cooperative_kernel(LaunchKernel) = |call: &mut Self, r, tail| launch::launch(call, &r, tail, true);
        module_launch_kernel(LaunchKernel) = |call: &mut Self, r, tail| launch::launch(call, &r, tail, false);

        stream_update_capture_dependencies(StreamUpdateCaptureDependencies) = capture::update_dependencies;
        graph_add_memcpy_node(GraphAddMemcpyNode) = graph::add_memcpy;
        graph_add_memcpy_node_1d(GraphAddMemcpyNode1D) = graph::add_memcpy_1d;
        graph_add_memset_node(GraphAddMemsetNode) = graph::add_memset;
        graph_add_kernel_node(GraphAddKernelNode) = graph::add_kernel;
        graph_add_dependencies(GraphAddDependencies) = graph::add_dependencies;
        graph_add_empty_node(GraphAddEmptyNode) = graph::add_empty;
        graph_add_host_node(GraphAddHostNode) = graph::add_host;
        graph_add_child_graph_node(GraphAddChildGraphNode) = graph::add_child;
        graph_add_event_record_node(GraphAddEventRecordNode) = graph::add_event_record;
        graph_add_event_wait_node(GraphAddEventWaitNode) = graph::add_event_wait;
        graph_exec_kernel_node_set_params(GraphExecKernelNodeSetParams) = graph::exec_set_kernel;

        }
        not_supported {
        smi_get_gpu_metrics(SmiGetGpuMetrics),
        request_failed(RequestFailed),
        mem_recall(MemRecall),
        mem_info_changed(MemInfoChanged),
        work_failed(WorkFailed),
        printed(Printed),
        watch_over(WatchOver),
        variables_told(VariablesTold),
        times_told(TimesTold),
        traced(Traced),
        }
    }
}
