//! The operations: **the** table.
//!
//! A row is written once, here. From it come the request and reply structs with their codecs, [`Opcode`]'s constants, the
//! client's default for `NO_REPLY`, the worker's [`Visit`] (an operation that it does not have does not compile), the
//! lengths that both ends check, [`OPS`] and with it `docs/protocol.md`.
//!
//! A row reads:
//!
//! ```text
//! /// What it does.
//! code NAME visitor_method "HIP function" "who specified it" reply-rule Class:
//!     Request { fixed part } + tail => Reply { fixed part } + tail;
//! ```
//!
//! * `Request(Other)` has the layout of another operation's request; the visitor gets that one.
//! * `=> ()` answers with nothing but the `error_code` that every response starts with.
//! * Reply rule: `sync` the client waits, `forget` it sets `NO_REPLY`, `when("…", condition)` it depends on the request.
//!   A worker obeys the header's bit, whatever the rule says.
//! * `Class` is what [`deferred`](crate::deferred) asks for.
//! * A tail is what follows the fixed part: `Small` (collected before the request is carried out) or `Bulk` (streamed, or
//!   collected under the worker's own limit), its layout, and its length in bytes as far as the fixed part says it.
//!
//! Codes are the field's own; rows are sorted by code. A row that is not needed any more stays.

mod define;
mod info;
mod tail;

#[cfg(test)]
use alloc::vec::Vec;
use core::fmt;

use TailLen::{AtLeast, AtMost, Exact};
use define::operations;
use tail::{d2h, h2d, is_d2h, items};

pub(crate) use info::max_size;
pub use info::{Class, ForOp, Info, Op, Part, ReplyRule, Tail, TailLen};
pub use tail::{
    Edge, LaunchArgs, LaunchMode, NAME_FIELD_BYTES, NAME_MAX_BYTES, Param, kind, name_of, put_name,
};

use crate::wire::Text;

operations! {
    /// Opens the session. Sent first, once.
    0x0001 INIT init "" "seed" sync Exempt:
        Init {} => ();

    /// Closes the session: everything it owns is released, then the answer leaves.
    0x0002 SHUTDOWN shutdown "" "seed" sync Exempt:
        Shutdown {} => ();

    /// Asks for an answer and nothing else.
    0x0003 PING ping "" "seed" sync Exempt:
        Ping {} => ();

    /// Number of devices.
    0x0100 GET_DEVICE_COUNT get_device_count "hipGetDeviceCount" "seed" sync Plain:
        GetDeviceCount {} => GetDeviceCountReply { count: i32 };

    /// Makes `device_id` the connection's current device.
    0x0101 SET_DEVICE set_device "hipSetDevice" "seed" sync Plain:
        SetDevice { device_id: i32 } => ();

    /// The connection's current device.
    0x0102 GET_DEVICE get_device "hipGetDevice" "seed" sync Plain:
        GetDevice {} => GetDeviceReply { device_id: i32 };

    /// What device `device_id` is. Memory sizes are in bytes, clock rates in kHz, the bus width in bits.
    0x0103 GET_DEVICE_PROPERTIES get_device_properties
        "hipGetDeviceProperties" "seed; fields after total_global_mem: supplement" sync Plain:
        GetDeviceProperties { device_id: i32 }
        => GetDevicePropertiesReply {
            name: Text<256>, total_global_mem: u64, shared_mem_per_block: u64, regs_per_block: i32,
            warp_size: i32, max_threads_per_block: i32, max_threads_dim: [i32; 3], max_grid_size: [i32; 3],
            clock_rate: i32, memory_clock_rate: i32, memory_bus_width: i32, major: i32, minor: i32,
            multi_processor_count: i32, l2_cache_size: i32, max_threads_per_multi_processor: i32,
            compute_mode: i32, pci_bus_id: i32, pci_device_id: i32, pci_domain_id: i32, integrated: i32,
            can_map_host_memory: i32, concurrent_kernels: i32, gcn_arch_name: Text<256>,
        };

    /// Waits for all work of the current device.
    0x0104 DEVICE_SYNCHRONIZE device_synchronize "hipDeviceSynchronize" "seed" sync Synchronizes:
        DeviceSynchronize {} => ();

    /// Releases everything the session has on the current device.
    0x0105 DEVICE_RESET device_reset "hipDeviceReset" "supplement" sync Plain:
        DeviceReset {} => ();

    /// One attribute (`hipDeviceAttribute_t`) of a device.
    0x0106 DEVICE_GET_ATTRIBUTE device_get_attribute "hipDeviceGetAttribute" "seed" sync Plain:
        DeviceGetAttribute { device_id: i32, attribute: i32 } => DeviceGetAttributeReply { value: i32 };

    /// A limit (`hipLimit_t`) of the current device. `value` of the request means nothing.
    0x0107 DEVICE_GET_LIMIT device_get_limit "hipDeviceGetLimit" "seed" sync Plain:
        DeviceGetLimit { limit: i32, value: u64 } => DeviceGetLimitReply { value: u64 };

    /// Sets a limit (`hipLimit_t`) of the current device.
    0x0108 DEVICE_SET_LIMIT device_set_limit "hipDeviceSetLimit" "seed" forget Plain:
        DeviceSetLimit { limit: i32, value: u64 } => ();

    /// Whether `device_id` can reach the memory of `peer_device_id`: 1 or 0.
    0x0109 DEVICE_CAN_ACCESS_PEER device_can_access_peer "hipDeviceCanAccessPeer" "supplement" sync Plain:
        DeviceCanAccessPeer { device_id: i32, peer_device_id: i32 }
        => DeviceCanAccessPeerReply { can_access_peer: i32 };

    /// Lets the current device reach the memory of a peer.
    0x010A DEVICE_ENABLE_PEER_ACCESS device_enable_peer_access
        "hipDeviceEnablePeerAccess" "seed names it fire-and-forget; layout: supplement" forget Plain:
        DeviceEnablePeerAccess { peer_device_id: i32, flags: u32 } => ();

    /// Ends what `DEVICE_ENABLE_PEER_ACCESS` began. `flags` is 0.
    0x010B DEVICE_DISABLE_PEER_ACCESS device_disable_peer_access
        "hipDeviceDisablePeerAccess" "supplement" forget Plain:
        DeviceDisablePeerAccess { peer_device_id: i32, flags: u32 } => ();

    /// Handle of the device with that ordinal.
    0x010C DEVICE_GET device_get "hipDeviceGet" "supplement" sync Plain:
        DeviceGet { ordinal: i32 } => DeviceGetReply { device: u64 };

    /// Name of a device, at most `len` bytes of it with the NUL.
    0x010D DEVICE_GET_NAME device_get_name "hipDeviceGetName" "supplement" sync Plain:
        DeviceGetName { device: u64, len: i32 } => DeviceGetNameReply { name: Text<256> };

    /// Memory of a device in bytes.
    0x010E DEVICE_TOTAL_MEM device_total_mem "hipDeviceTotalMem" "supplement" sync Plain:
        DeviceTotalMem { device: u64 } => DeviceTotalMemReply { bytes: u64 };

    /// PCI address of a device as text (`0000:c1:00.0`), at most `len` bytes of it with the NUL.
    0x010F DEVICE_GET_PCI_BUS_ID device_get_pci_bus_id "hipDeviceGetPCIBusId" "supplement" sync Plain:
        DeviceGetPciBusId { device: i32, len: i32 } => DeviceGetPciBusIdReply { pci_bus_id: Text<32> };

    /// Device at a PCI address.
    0x0110 DEVICE_GET_BY_PCI_BUS_ID device_get_by_pci_bus_id "hipDeviceGetByPCIBusId" "supplement" sync Plain:
        DeviceGetByPciBusId { pci_bus_id: Text<32> } => DeviceGetByPciBusIdReply { device: i32 };

    /// Major and minor number of a device.
    0x0111 DEVICE_COMPUTE_CAPABILITY device_compute_capability "hipDeviceComputeCapability" "supplement" sync Plain:
        DeviceComputeCapability { device: u64 } => DeviceComputeCapabilityReply { major: i32, minor: i32 };

    /// The 16 bytes that name a device.
    0x0112 DEVICE_GET_UUID device_get_uuid "hipDeviceGetUuid" "supplement" sync Plain:
        DeviceGetUuid { device: u64 } => DeviceGetUuidReply { uuid: [u8; 16] };

    /// How the current device divides cache and LDS (`hipFuncCache_t`).
    0x0113 DEVICE_GET_CACHE_CONFIG device_get_cache_config "hipDeviceGetCacheConfig" "supplement" sync Plain:
        DeviceGetCacheConfig {} => DeviceGetCacheConfigReply { cache_config: i32 };

    /// Asks for a division of cache and LDS (`hipFuncCache_t`).
    0x0114 DEVICE_SET_CACHE_CONFIG device_set_cache_config "hipDeviceSetCacheConfig" "supplement" forget Plain:
        DeviceSetCacheConfig { cache_config: i32 } => ();

    /// Bank width of LDS (`hipSharedMemConfig`).
    0x0115 DEVICE_GET_SHARED_MEM_CONFIG device_get_shared_mem_config
        "hipDeviceGetSharedMemConfig" "supplement" sync Plain:
        DeviceGetSharedMemConfig {} => DeviceGetSharedMemConfigReply { shared_mem_config: i32 };

    /// Asks for a bank width of LDS (`hipSharedMemConfig`).
    0x0116 DEVICE_SET_SHARED_MEM_CONFIG device_set_shared_mem_config
        "hipDeviceSetSharedMemConfig" "supplement" forget Plain:
        DeviceSetSharedMemConfig { shared_mem_config: i32 } => ();

    /// Flags of the current device (`hipDeviceSchedule*`, …).
    0x0117 SET_DEVICE_FLAGS set_device_flags "hipSetDeviceFlags" "supplement" sync Plain:
        SetDeviceFlags { flags: u32 } => ();

    /// Flags of the current device.
    0x0118 GET_DEVICE_FLAGS get_device_flags "hipGetDeviceFlags" "supplement" sync Plain:
        GetDeviceFlags {} => GetDeviceFlagsReply { flags: u32 };

    /// One attribute (`hipDeviceP2PAttr`) of the link between two devices.
    0x0119 DEVICE_GET_P2P_ATTRIBUTE device_get_p2p_attribute "hipDeviceGetP2PAttribute" "supplement" sync Plain:
        DeviceGetP2pAttribute { attr: i32, src_device: i32, dst_device: i32 }
        => DeviceGetP2pAttributeReply { value: i32 };

    /// Limits the devices that may be used to the listed ones.
    0x011A SET_VALID_DEVICES set_valid_devices "hipSetValidDevices" "supplement" sync Plain:
        SetValidDevices { len: i32 }
            + Small("devices:i32[len]", |r| Exact(items::<i32>(r.len)))
        => ();

    /// The device nearest to the wanted properties; 0 means no wish.
    0x011B CHOOSE_DEVICE choose_device "hipChooseDevice" "supplement" sync Plain:
        ChooseDevice {
            total_global_mem: u64, major: i32, minor: i32, multi_processor_count: i32, warp_size: i32,
            max_threads_per_block: i32,
        }
        => ChooseDeviceReply { device: i32 };

    /// Least and greatest stream priority; the greatest is the smallest number.
    0x011C DEVICE_GET_STREAM_PRIORITY_RANGE device_get_stream_priority_range
        "hipDeviceGetStreamPriorityRange" "supplement" sync Plain:
        DeviceGetStreamPriorityRange {}
        => DeviceGetStreamPriorityRangeReply { least_priority: i32, greatest_priority: i32 };

    /// Allocates `size` bytes of device memory.
    0x0200 MALLOC malloc "hipMalloc" "seed" sync Creates:
        Malloc { size: u64, flags: u32 } => MallocReply { device_ptr: u64 };

    /// Frees device memory, after the work that uses it. 0 is allowed and does nothing.
    0x0201 FREE free "hipFree" "seed" forget Plain:
        Free { device_ptr: u64 } => ();

    /// Allocates `size` bytes of the worker's pinned memory. `flags`: `hipHostMalloc*`.
    0x0202 MALLOC_HOST malloc_host "hipHostMalloc" "supplement" sync Creates:
        MallocHost { size: u64, flags: u32 } => MallocHostReply { device_ptr: u64 };

    /// Frees what `MALLOC_HOST` gave.
    0x0203 FREE_HOST free_host "hipHostFree" "supplement" forget Plain:
        FreeHost { device_ptr: u64 } => ();

    /// Allocates `size` bytes of managed memory. `flags`: `hipMemAttach*`.
    0x0204 MALLOC_MANAGED malloc_managed "hipMallocManaged" "supplement" sync Creates:
        MallocManaged { size: u64, flags: u32 } => MallocManagedReply { device_ptr: u64 };

    /// Allocates `size` bytes of device memory in the order of a stream.
    0x0205 MALLOC_ASYNC malloc_async "hipMallocAsync" "seed" sync Creates:
        MallocAsync { size: u64, stream: u64 } => MallocAsyncReply { device_ptr: u64 };

    /// Frees device memory in the order of a stream.
    0x0206 FREE_ASYNC free_async "hipFreeAsync" "seed" forget Plain:
        FreeAsync { device_ptr: u64, stream: u64 } => ();

    /// Copies `size` bytes. `kind` (`hipMemcpyKind`) says where the bytes are: host to device brings them along,
    /// device to host takes them back.
    0x0210 MEMCPY memcpy
        "hipMemcpy" "seed; layout: supplement" when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy { dst: u64, src: u64, size: u64, kind: i32, stream: u64 }
            + Bulk("[H2D: inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(h2d(r.kind, r.size)))
        => ()
            + Bulk("[D2H: inline bytes of length size]", |r| Exact(d2h(r.kind, r.size)));

    /// Copies `size` bytes in the order of a stream; see `MEMCPY`.
    0x0211 MEMCPY_ASYNC memcpy_async
        "hipMemcpyAsync" "seed" when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        MemcpyAsync(Memcpy)
            + Bulk("[H2D: inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(h2d(r.kind, r.size)))
        => ()
            + Bulk("[D2H: inline bytes of length size]", |r| Exact(d2h(r.kind, r.size)));

    /// Copies `height` rows of `width` bytes; pitches are bytes from row to row. Rows on the wire are packed.
    0x0212 MEMCPY_2D memcpy_2d
        "hipMemcpy2D" "seed; layout: supplement" when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy2D {
            dst: u64, dpitch: u64, src: u64, spitch: u64, width: u64, height: u64, kind: i32, reserved: u32,
            stream: u64,
        }
            + Bulk("[H2D: inline rows, tightly packed, width*height bytes]", |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies rows in the order of a stream; see `MEMCPY_2D`.
    0x0213 MEMCPY_2D_ASYNC memcpy_2d_async
        "hipMemcpy2DAsync" "supplement" when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy2DAsync(Memcpy2D)
            + Bulk("[H2D: inline rows, tightly packed, width*height bytes]", |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies a box of `width` bytes by `height` rows by `depth` slices. `src_pitch` is bytes from row to row,
    /// `src_height` rows from slice to slice, `src_x` bytes, `src_y` rows and `src_z` slices to the box; so for
    /// `dst`.
    0x0214 MEMCPY_3D memcpy_3d
        "hipMemcpy3D" "supplement" when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy3D {
            src_ptr: u64, src_pitch: u64, src_height: u64, src_x: u64, src_y: u64, src_z: u64, dst_ptr: u64,
            dst_pitch: u64, dst_height: u64, dst_x: u64, dst_y: u64, dst_z: u64, width: u64, height: u64,
            depth: u64, kind: i32, reserved: u32, stream: u64,
        }
            + Bulk("[H2D: inline rows, tightly packed, width*height*depth bytes]",
                |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies a box in the order of a stream; see `MEMCPY_3D`.
    0x0215 MEMCPY_3D_ASYNC memcpy_3d_async
        "hipMemcpy3DAsync" "supplement" when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy3DAsync(Memcpy3D)
            + Bulk("[H2D: inline rows, tightly packed, width*height*depth bytes]",
                |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies from device to device; the name says it, whatever `kind` is.
    0x0216 MEMCPY_DTOD memcpy_dtod "hipMemcpyDtoD" "supplement" forget Plain:
        MemcpyDtod(Memcpy) => ();

    /// Copies from device to device in the order of a stream.
    0x0217 MEMCPY_DTOD_ASYNC memcpy_dtod_async "hipMemcpyDtoDAsync" "supplement" forget Plain:
        MemcpyDtodAsync(Memcpy) => ();

    /// Copies from host to device; the name says it, whatever `kind` is.
    0x0218 MEMCPY_HTOD memcpy_htod "hipMemcpyHtoD" "supplement" forget Plain:
        MemcpyHtod(Memcpy)
            + Bulk("[inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(r.size))
        => ();

    /// Copies from host to device in the order of a stream.
    0x0219 MEMCPY_HTOD_ASYNC memcpy_htod_async "hipMemcpyHtoDAsync" "supplement" forget Plain:
        MemcpyHtodAsync(Memcpy)
            + Bulk("[inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(r.size))
        => ();

    /// Copies from device to host; the name says it, whatever `kind` is.
    0x021A MEMCPY_DTOH memcpy_dtoh "hipMemcpyDtoH" "supplement" sync Synchronizes:
        MemcpyDtoh(Memcpy)
        => ()
            + Bulk("[inline bytes of length size]", |r| Exact(r.size));

    /// Copies from device to host in the order of a stream.
    0x021B MEMCPY_DTOH_ASYNC memcpy_dtoh_async "hipMemcpyDtoHAsync" "supplement" sync Synchronizes:
        MemcpyDtohAsync(Memcpy)
        => ()
            + Bulk("[inline bytes of length size]", |r| Exact(r.size));

    /// Copies `size` bytes from one device to another.
    0x021C MEMCPY_PEER memcpy_peer "hipMemcpyPeer" "seed; layout: supplement" forget Plain:
        MemcpyPeer { dst: u64, dst_device: i32, src: u64, src_device: i32, size: u64, stream: u64 } => ();

    /// Copies from one device to another in the order of a stream.
    0x021D MEMCPY_PEER_ASYNC memcpy_peer_async "hipMemcpyPeerAsync" "supplement" forget Plain:
        MemcpyPeerAsync(MemcpyPeer) => ();

    /// Sets `size` bytes to the low byte of `value`.
    0x0220 MEMSET memset "hipMemset" "seed" forget Plain:
        Memset { dst: u64, value: i32, size: u64, stream: u64 } => ();

    /// Sets bytes in the order of a stream.
    0x0221 MEMSET_ASYNC memset_async "hipMemsetAsync" "seed" forget Plain:
        MemsetAsync(Memset) => ();

    /// Sets `size` bytes to the low byte of `value`.
    0x0222 MEMSET_D8 memset_d8 "hipMemsetD8" "supplement" forget Plain:
        MemsetD8(Memset) => ();

    /// Sets `size` 16-bit elements to the low half of `value`.
    0x0223 MEMSET_D16 memset_d16 "hipMemsetD16" "supplement" forget Plain:
        MemsetD16(Memset) => ();

    /// Sets `size` 32-bit elements to `value`.
    0x0224 MEMSET_D32 memset_d32 "hipMemsetD32" "supplement" forget Plain:
        MemsetD32(Memset) => ();

    /// Free and total memory of the current device in bytes.
    0x0230 MEM_GET_INFO mem_get_info "hipMemGetInfo" "supplement" sync Plain:
        MemGetInfo {} => MemGetInfoReply { free_bytes: u64, total_bytes: u64 };

    /// What an address is. `memory_type` is a `hipMemoryType`.
    0x0231 POINTER_GET_ATTRIBUTES pointer_get_attributes "hipPointerGetAttributes" "supplement" sync Plain:
        PointerGetAttributes { ptr: u64 }
        => PointerGetAttributesReply {
            memory_type: i32, device: i32, device_pointer: u64, host_pointer: u64, is_managed: i32,
            allocation_flags: u32,
        };

    /// One attribute (`hipPointer_attribute`) of an address.
    0x0232 POINTER_GET_ATTRIBUTE pointer_get_attribute "hipPointerGetAttribute" "supplement" sync Plain:
        PointerGetAttribute { ptr: u64, attribute: i32, reserved: u32 }
        => PointerGetAttributeReply { data: u64 };

    /// Handle by which another session can open an allocation.
    0x0240 IPC_GET_MEM_HANDLE ipc_get_mem_handle "hipIpcGetMemHandle" "supplement" sync Plain:
        IpcGetMemHandle { device_ptr: u64 } => IpcGetMemHandleReply { handle: [u8; 64] };

    /// Opens the allocation that a handle names.
    0x0241 IPC_OPEN_MEM_HANDLE ipc_open_mem_handle "hipIpcOpenMemHandle" "supplement" sync Creates:
        IpcOpenMemHandle { handle: [u8; 64], flags: u32 } => IpcOpenMemHandleReply { device_ptr: u64 };

    /// Closes what `IPC_OPEN_MEM_HANDLE` opened.
    0x0242 IPC_CLOSE_MEM_HANDLE ipc_close_mem_handle "hipIpcCloseMemHandle" "supplement" forget Plain:
        IpcCloseMemHandle { device_ptr: u64 } => ();

    /// Handle by which another session can open an event.
    0x0243 IPC_GET_EVENT_HANDLE ipc_get_event_handle "hipIpcGetEventHandle" "supplement" sync Plain:
        IpcGetEventHandle { event: u64 } => IpcGetEventHandleReply { handle: [u8; 64] };

    /// Opens the event that a handle names.
    0x0244 IPC_OPEN_EVENT_HANDLE ipc_open_event_handle "hipIpcOpenEventHandle" "supplement" sync Creates:
        IpcOpenEventHandle { handle: [u8; 64] } => IpcOpenEventHandleReply { event: u64 };

    /// Creates a memory pool (`hipMemPoolProps`). `max_size` is in bytes, 0 for no limit.
    0x0250 MEM_POOL_CREATE mem_pool_create "hipMemPoolCreate" "supplement" sync Creates:
        MemPoolCreate {
            alloc_type: i32, handle_types: i32, location_type: i32, location_id: i32, max_size: u64,
            reserved: [u8; 32],
        }
        => MemPoolCreateReply { mem_pool: u64 };

    /// Destroys a memory pool.
    0x0251 MEM_POOL_DESTROY mem_pool_destroy "hipMemPoolDestroy" "supplement" forget Plain:
        MemPoolDestroy { mem_pool: u64 } => ();

    /// Sets an attribute (`hipMemPoolAttr`) of a memory pool.
    0x0252 MEM_POOL_SET_ATTRIBUTE mem_pool_set_attribute "hipMemPoolSetAttribute" "supplement" sync Plain:
        MemPoolSetAttribute { mem_pool: u64, attr: i32, reserved: u32, value: u64 } => ();

    /// One attribute (`hipMemPoolAttr`) of a memory pool.
    0x0253 MEM_POOL_GET_ATTRIBUTE mem_pool_get_attribute "hipMemPoolGetAttribute" "supplement" sync Plain:
        MemPoolGetAttribute { mem_pool: u64, attr: i32 } => MemPoolGetAttributeReply { value: u64 };

    /// Allocates `size` bytes from a memory pool in the order of a stream.
    0x0254 MALLOC_FROM_POOL_ASYNC malloc_from_pool_async "hipMallocFromPoolAsync" "supplement" sync Creates:
        MallocFromPoolAsync { size: u64, mem_pool: u64, stream: u64 }
        => MallocFromPoolAsyncReply { device_ptr: u64 };

    /// Gives memory of a pool back until it holds `min_bytes_to_hold` bytes.
    0x0255 MEM_POOL_TRIM_TO mem_pool_trim_to "hipMemPoolTrimTo" "supplement" forget Plain:
        MemPoolTrimTo { mem_pool: u64, min_bytes_to_hold: u64 } => ();

    /// The memory pool that a device starts with.
    0x0256 DEVICE_GET_DEFAULT_MEM_POOL device_get_default_mem_pool
        "hipDeviceGetDefaultMemPool" "supplement" sync Plain:
        DeviceGetDefaultMemPool { device: i32 } => DeviceGetDefaultMemPoolReply { mem_pool: u64 };

    /// Makes a memory pool the current one of a device.
    0x0257 DEVICE_SET_MEM_POOL device_set_mem_pool "hipDeviceSetMemPool" "supplement" forget Plain:
        DeviceSetMemPool { device: i32, reserved: u32, mem_pool: u64 } => ();

    /// The current memory pool of a device.
    0x0258 DEVICE_GET_MEM_POOL device_get_mem_pool "hipDeviceGetMemPool" "supplement" sync Plain:
        DeviceGetMemPool { device: i32 } => DeviceGetMemPoolReply { mem_pool: u64 };

    /// Registers the client's range as memory that a device may reach. Creates: an unannounced registration would
    /// stay for ever.
    0x0260 HOST_REGISTER host_register "hipHostRegister" "supplement" sync Creates:
        HostRegister { host_ptr: u64, size_bytes: u64, flags: u32 } => ();

    /// Ends a registration.
    0x0261 HOST_UNREGISTER host_unregister "hipHostUnregister" "supplement" sync Plain:
        HostUnregister { host_ptr: u64 } => ();

    /// Device address of registered or pinned host memory. `flags` is 0.
    0x0262 HOST_GET_DEVICE_POINTER host_get_device_pointer "hipHostGetDevicePointer" "supplement" sync Plain:
        HostGetDevicePointer { host_ptr: u64, flags: u32 } => HostGetDevicePointerReply { device_ptr: u64 };

    /// Allocates `height` rows of at least `width_in_bytes` bytes; `pitch` is the bytes from row to row.
    0x0266 MEM_ALLOC_PITCH mem_alloc_pitch "hipMemAllocPitch" "supplement" sync Creates:
        MemAllocPitch { width_in_bytes: u64, height: u64, element_size: u32 }
        => MemAllocPitchReply { dptr: u64, pitch: u64 };

    /// Says how `count` bytes will be used (`hipMemoryAdvise`).
    0x0270 MEM_ADVISE mem_advise "hipMemAdvise" "supplement" forget Plain:
        MemAdvise { dev_ptr: u64, count: u64, advice: i32, device: i32 } => ();

    /// Moves `count` bytes of managed memory to a device in the order of a stream.
    0x0271 MEM_PREFETCH_ASYNC mem_prefetch_async "hipMemPrefetchAsync" "supplement" forget Plain:
        MemPrefetchAsync { dev_ptr: u64, count: u64, device: i32, reserved: u32, stream: u64 } => ();

    /// Creates a stream. `flags`: 1 is `hipStreamNonBlocking`.
    0x0300 STREAM_CREATE stream_create "hipStreamCreate" "seed" sync Creates:
        StreamCreate { flags: u32, priority: i32 } => StreamCreateReply { stream: u64 };

    /// Creates a stream; the priority means nothing.
    0x0301 STREAM_CREATE_WITH_FLAGS stream_create_with_flags "hipStreamCreateWithFlags" "supplement" sync Creates:
        StreamCreateWithFlags(StreamCreate) => StreamCreateReply;

    /// Creates a stream with a priority.
    0x0302 STREAM_CREATE_WITH_PRIORITY stream_create_with_priority
        "hipStreamCreateWithPriority" "supplement" sync Creates:
        StreamCreateWithPriority(StreamCreate) => StreamCreateReply;

    /// Destroys a stream once its work is done.
    0x0303 STREAM_DESTROY stream_destroy "hipStreamDestroy" "seed" forget Plain:
        StreamDestroy { stream: u64 } => ();

    /// Waits for all work of a stream.
    0x0304 STREAM_SYNCHRONIZE stream_synchronize "hipStreamSynchronize" "seed" sync Synchronizes:
        StreamSynchronize { stream: u64 } => ();

    /// Whether the work of a stream is done: no error, or `hipErrorNotReady`.
    0x0305 STREAM_QUERY stream_query "hipStreamQuery" "supplement" sync Plain:
        StreamQuery { stream: u64 } => ();

    /// Makes later work of a stream wait for an event.
    0x0306 STREAM_WAIT_EVENT stream_wait_event "hipStreamWaitEvent" "seed" forget Plain:
        StreamWaitEvent { stream: u64, event: u64, flags: u32 } => ();

    /// Flags that a stream was created with.
    0x0307 STREAM_GET_FLAGS stream_get_flags "hipStreamGetFlags" "supplement" sync Plain:
        StreamGetFlags { stream: u64 } => StreamGetFlagsReply { flags: u32 };

    /// Priority of a stream.
    0x0308 STREAM_GET_PRIORITY stream_get_priority "hipStreamGetPriority" "supplement" sync Plain:
        StreamGetPriority { stream: u64 } => StreamGetPriorityReply { priority: i32 };

    /// Whether a stream is being captured (`hipStreamCaptureStatus`), and into which graph.
    0x0309 STREAM_GET_CAPTURE_INFO stream_get_capture_info "hipStreamGetCaptureInfo" "supplement" sync Plain:
        StreamGetCaptureInfo { stream: u64 }
        => StreamGetCaptureInfoReply { capture_status: i32, graph: u64, reserved: u32 };

    /// Sets or adds to the nodes that the next captured node depends on.
    0x030A STREAM_UPDATE_CAPTURE_DEPENDENCIES stream_update_capture_dependencies
        "hipStreamUpdateCaptureDependencies" "supplement" sync Plain:
        StreamUpdateCaptureDependencies { stream: u64, num_dependencies: u32, flags: u32 }
            + Small("nodes:u64[num_dependencies]", |r| Exact(items::<u64>(r.num_dependencies)))
        => ();

    /// Creates an event. `flags`: `hipEvent*`.
    0x0400 EVENT_CREATE event_create "hipEventCreate" "seed" sync Creates:
        EventCreate { flags: u32 } => EventCreateReply { event: u64 };

    /// Creates an event; the same as `EVENT_CREATE`.
    0x0401 EVENT_CREATE_WITH_FLAGS event_create_with_flags "hipEventCreateWithFlags" "supplement" sync Creates:
        EventCreateWithFlags { flags: u32 } => EventCreateWithFlagsReply { event: u64 };

    /// Destroys an event.
    0x0402 EVENT_DESTROY event_destroy "hipEventDestroy" "seed" forget Plain:
        EventDestroy { event: u64 } => ();

    /// Records an event after the work that a stream has now.
    0x0403 EVENT_RECORD event_record "hipEventRecord" "seed" forget Plain:
        EventRecord { event: u64, stream: u64 } => ();

    /// Waits until an event has happened.
    0x0404 EVENT_SYNCHRONIZE event_synchronize "hipEventSynchronize" "seed" sync Synchronizes:
        EventSynchronize { event: u64 } => ();

    /// Whether an event has happened: no error, or `hipErrorNotReady`.
    0x0405 EVENT_QUERY event_query "hipEventQuery" "seed" sync Plain:
        EventQuery { event: u64 } => ();

    /// Milliseconds between two events that have happened.
    0x0406 EVENT_ELAPSED_TIME event_elapsed_time "hipEventElapsedTime" "seed" sync Plain:
        EventElapsedTime { start_event: u64, stop_event: u64 }
        => EventElapsedTimeReply { milliseconds: f32 };

    /// Loads a code object (an ELF or an offload bundle).
    0x0500 MODULE_LOAD_DATA module_load_data "hipModuleLoadData" "seed" sync Creates:
        ModuleLoadData { data_size: u64 }
            + Bulk("code_object:inline bytes[data_size]", |r| Exact(r.data_size))
        => ModuleLoadDataReply { module: u64 };

    /// Loads a code object; options do not travel.
    0x0501 MODULE_LOAD_DATA_EX module_load_data_ex "hipModuleLoadDataEx" "supplement" sync Creates:
        ModuleLoadDataEx(ModuleLoadData)
            + Bulk("code_object:inline bytes[data_size]", |r| Exact(r.data_size))
        => ModuleLoadDataReply;

    /// Unloads a module.
    0x0502 MODULE_UNLOAD module_unload "hipModuleUnload" "seed" forget Plain:
        ModuleUnload { module: u64 } => ();

    /// A kernel of a module. `num_args` is its kernarg segment's size in bytes, `num_params` the number of its
    /// explicit parameters; entries of `params` past it are zero.
    0x0503 MODULE_GET_FUNCTION module_get_function
        "hipModuleGetFunction" "seed; fixed array length: supplement" sync Plain:
        ModuleGetFunction { module: u64 }
            + Small("function_name:cstr[256]", |_| AtLeast(1))
        => ModuleGetFunctionReply { function: u64, num_args: u32, num_params: u32, params: [Param; 64] };

    /// Address and size in bytes of a module's variable.
    0x0504 MODULE_GET_GLOBAL module_get_global "hipModuleGetGlobal" "supplement" sync Plain:
        ModuleGetGlobal { module: u64 }
            + Small("name:cstr[256]", |_| AtLeast(1))
        => ModuleGetGlobalReply { device_ptr: u64, size: u64 };

    /// Launches a kernel; the grid is counted in blocks, `shared_mem` is dynamic LDS in bytes. `LaunchArgs` reads
    /// the arguments.
    0x0510 LAUNCH_KERNEL launch_kernel
        "hipModuleLaunchKernel" "seed" when("forget; sync when start_event or stop_event is not 0", |r| r.is_timed()) Plain:
        LaunchKernel {
            function: u64, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32,
            block_dim_y: u32, block_dim_z: u32, shared_mem: u32, stream: u64, num_args: u32,
            launch_flags: u32, start_event: u64, stop_event: u64, ext_flags: u32,
        }
            + Small("args:{offset:u32 size:u32}[num_args] arg_data:bytes", |r| AtLeast(items::<Param>(r.num_args)))
        => ();

    /// Launches a kernel whose blocks all run at once.
    0x0511 LAUNCH_COOPERATIVE_KERNEL launch_cooperative_kernel
        "hipModuleLaunchCooperativeKernel" "supplement" forget Plain:
        LaunchCooperativeKernel(LaunchKernel)
            + Small("args:{offset:u32 size:u32}[num_args] arg_data:bytes", |r| AtLeast(items::<Param>(r.num_args)))
        => ();

    /// Launches a kernel with events around it and `ext_flags`.
    0x0512 MODULE_LAUNCH_KERNEL module_launch_kernel
        "hipExtModuleLaunchKernel" "supplement" when("forget; sync when start_event or stop_event is not 0", |r| r.is_timed()) Plain:
        ModuleLaunchKernel(LaunchKernel)
            + Small("args:{offset:u32 size:u32}[num_args] arg_data:bytes", |r| AtLeast(items::<Param>(r.num_args)))
        => ();

    /// What a kernel needs; sizes are in bytes.
    0x0514 FUNC_GET_ATTRIBUTES func_get_attributes "hipFuncGetAttributes" "supplement" sync Plain:
        FuncGetAttributes { function: u64 }
        => FuncGetAttributesReply {
            shared_size_bytes: i32, const_size_bytes: i32, local_size_bytes: i32, num_regs: i32,
            max_threads_per_block: i32, ptx_version: i32, binary_version: i32, cache_mode_ca: i32,
            max_dynamic_shared_size_bytes: i32, preferred_shared_memory_carveout: i32,
        };

    /// Sets an attribute (`hipFuncAttribute`) of a kernel.
    0x0515 FUNC_SET_ATTRIBUTE func_set_attribute "hipFuncSetAttribute" "supplement" sync Plain:
        FuncSetAttribute { function: u64, attribute: i32, value: i32 } => ();

    /// Asks for a division of cache and LDS (`hipFuncCache_t`) for a kernel.
    0x0516 FUNC_SET_CACHE_CONFIG func_set_cache_config "hipFuncSetCacheConfig" "supplement" forget Plain:
        FuncSetCacheConfig { function: u64, cache_config: i32 } => ();

    /// The worker's last error, which is then forgotten: `error_code` of the answer says it.
    0x0600 GET_LAST_ERROR get_last_error "hipGetLastError" "supplement" sync Plain:
        GetLastError {} => ();

    /// The worker's last error: `error_code` of the answer says it.
    0x0601 PEEK_AT_LAST_ERROR peek_at_last_error "hipPeekAtLastError" "supplement" sync Plain:
        PeekAtLastError {} => ();

    /// Message of an error code.
    0x0602 GET_ERROR_STRING get_error_string "hipGetErrorString" "supplement" sync Plain:
        GetErrorString { error_code: i32 } => GetErrorStringReply { error_string: Text<256> };

    /// Name of an error code.
    0x0603 GET_ERROR_NAME get_error_name "hipGetErrorName" "supplement" sync Plain:
        GetErrorName { error_code: i32 } => GetErrorNameReply { error_string: Text<256> };

    /// Adds a copy of `height` rows of `width` bytes to a graph.
    0x0640 GRAPH_ADD_MEMCPY_NODE graph_add_memcpy_node "hipGraphAddMemcpyNode" "supplement" sync Creates:
        GraphAddMemcpyNode {
            graph: u64, num_deps: u32, reserved: u32, dst: u64, src: u64, width: u64, height: u64,
            dst_pitch: u64, src_pitch: u64, kind: i32, reserved2: u32,
        }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddMemcpyNodeReply { node: u64 };

    /// Adds a fill of `height` rows of `width` elements of `element_size` bytes to a graph.
    0x0641 GRAPH_ADD_MEMSET_NODE graph_add_memset_node "hipGraphAddMemsetNode" "supplement" sync Creates:
        GraphAddMemsetNode {
            graph: u64, num_deps: u32, reserved: u32, dst: u64, pitch: u64, value: i32, element_size: u32,
            width: u64, height: u64,
        }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddMemsetNodeReply { node: u64 };

    /// Adds a launch to a graph; the grid is counted in blocks.
    0x0642 GRAPH_ADD_KERNEL_NODE graph_add_kernel_node "hipGraphAddKernelNode" "supplement" sync Creates:
        GraphAddKernelNode {
            graph: u64, num_deps: u32, reserved: u32, func: u64, grid_dim: [u32; 3], block_dim: [u32; 3],
            shared_mem_bytes: u32, num_args: u32,
        }
            + Small("deps:u64[num_deps] args:u64[num_args]",
                |r| Exact(items::<u64>(r.num_deps) + items::<u64>(r.num_args)))
        => GraphAddKernelNodeReply { node: u64 };

    /// Adds edges to a graph. Creates: sent again after a kept error, edges that are there already would be
    /// refused.
    0x0643 GRAPH_ADD_DEPENDENCIES graph_add_dependencies "hipGraphAddDependencies" "supplement" sync Creates:
        GraphAddDependencies { graph: u64, num_deps: u32 }
            + Small("edges:{from:u64 to:u64}[num_deps]", |r| Exact(items::<Edge>(r.num_deps)))
        => ();

    /// Adds a node that only joins others.
    0x0644 GRAPH_ADD_EMPTY_NODE graph_add_empty_node "hipGraphAddEmptyNode" "supplement" sync Creates:
        GraphAddEmptyNode { graph: u64, num_deps: u32 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddEmptyNodeReply { node: u64 };

    /// Nodes of a graph, at most `max_nodes`.
    0x0645 GRAPH_GET_NODES graph_get_nodes "hipGraphGetNodes" "supplement" sync Plain:
        GraphGetNodes { graph: u64, max_nodes: u32 }
        => GraphGetNodesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Nodes of a graph that depend on none, at most `max_nodes`.
    0x0646 GRAPH_GET_ROOT_NODES graph_get_root_nodes "hipGraphGetRootNodes" "supplement" sync Plain:
        GraphGetRootNodes { graph: u64, max_nodes: u32 }
        => GraphGetRootNodesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Edges of a graph, at most `max_edges`.
    0x0647 GRAPH_GET_EDGES graph_get_edges "hipGraphGetEdges" "supplement" sync Plain:
        GraphGetEdges { graph: u64, max_edges: u32 }
        => GraphGetEdgesReply { num_edges: u32, reserved: u32 }
            + Small("edges:{from:u64 to:u64}[num_edges]", |r| AtMost(items::<Edge>(r.max_edges)));

    /// What a node does (`hipGraphNodeType`).
    0x0648 GRAPH_NODE_GET_TYPE graph_node_get_type "hipGraphNodeGetType" "supplement" sync Plain:
        GraphNodeGetType { node: u64 } => GraphNodeGetTypeReply { r#type: i32 };

    /// Takes a node and its edges out of its graph.
    0x0649 GRAPH_DESTROY_NODE graph_destroy_node "hipGraphDestroyNode" "supplement" sync Plain:
        GraphDestroyNode { node: u64 } => ();

    /// Adds a copy of `count` bytes to a graph.
    0x064A GRAPH_ADD_MEMCPY_NODE_1D graph_add_memcpy_node_1d "hipGraphAddMemcpyNode1D" "supplement" sync Creates:
        GraphAddMemcpyNode1D { graph: u64, num_deps: u32, reserved: u32, dst: u64, src: u64, count: u64, kind: i32 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddMemcpyNode1DReply { node: u64 };

    /// Adds a host function to a graph.
    0x064B GRAPH_ADD_HOST_NODE graph_add_host_node "hipGraphAddHostNode" "supplement" sync Creates:
        GraphAddHostNode { graph: u64, num_deps: u32, reserved: u32 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddHostNodeReply { node: u64 };

    /// Adds a whole graph as one node.
    0x064C GRAPH_ADD_CHILD_GRAPH_NODE graph_add_child_graph_node
        "hipGraphAddChildGraphNode" "supplement" sync Creates:
        GraphAddChildGraphNode { graph: u64, num_deps: u32, reserved: u32, child: u64 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddChildGraphNodeReply { node: u64 };

    /// Adds the recording of an event to a graph.
    0x064D GRAPH_ADD_EVENT_RECORD_NODE graph_add_event_record_node
        "hipGraphAddEventRecordNode" "supplement" sync Creates:
        GraphAddEventRecordNode { graph: u64, num_deps: u32, reserved: u32, event: u64 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddEventRecordNodeReply { node: u64 };

    /// Adds a wait for an event to a graph.
    0x064E GRAPH_ADD_EVENT_WAIT_NODE graph_add_event_wait_node "hipGraphAddEventWaitNode" "supplement" sync Creates:
        GraphAddEventWaitNode { graph: u64, num_deps: u32, reserved: u32, event: u64 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddEventWaitNodeReply { node: u64 };

    /// Version of the runtime: major * 10^7 + minor * 10^5 + patch.
    0x0700 RUNTIME_GET_VERSION runtime_get_version "hipRuntimeGetVersion" "seed" sync Plain:
        RuntimeGetVersion {} => RuntimeGetVersionReply { version: i32 };

    /// Version of the driver, in the same form.
    0x0701 DRIVER_GET_VERSION driver_get_version "hipDriverGetVersion" "seed" sync Plain:
        DriverGetVersion {} => DriverGetVersionReply { version: i32 };

    /// Block size at which a kernel fills the device best, and the blocks needed for it.
    0x0710 OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE occupancy_max_potential_block_size
        "hipModuleOccupancyMaxPotentialBlockSize" "supplement" sync Plain:
        OccupancyMaxPotentialBlockSize { function: u64, dyn_shared_mem: u64, block_size_limit: i32, flags: u32 }
        => OccupancyMaxPotentialBlockSizeReply { min_grid_size: i32, block_size: i32 };

    /// Blocks of a kernel that one compute unit holds at once. `dyn_shared_mem` is in bytes.
    0x0711 OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_SM occupancy_max_active_blocks_per_sm
        "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor" "supplement" sync Plain:
        OccupancyMaxActiveBlocksPerSm { function: u64, block_size: i32, dyn_shared_mem: u64 }
        => OccupancyMaxActiveBlocksPerSmReply { num_blocks: i32 };

    /// Creates a graph.
    0x0720 GRAPH_CREATE graph_create "hipGraphCreate" "supplement" sync Creates:
        GraphCreate { flags: u32 } => GraphCreateReply { graph: u64 };

    /// Destroys a graph.
    0x0721 GRAPH_DESTROY graph_destroy
        "hipGraphDestroy" "seed names it fire-and-forget; layout: supplement" forget Plain:
        GraphDestroy { graph: u64 } => ();

    /// Makes a graph ready to be launched.
    0x0722 GRAPH_INSTANTIATE graph_instantiate "hipGraphInstantiate" "supplement" sync Creates:
        GraphInstantiate { graph: u64, flags: u32 } => GraphInstantiateReply { graph_exec: u64 };

    /// Launches a ready graph in the order of a stream.
    0x0723 GRAPH_LAUNCH graph_launch
        "hipGraphLaunch" "seed names it fire-and-forget; layout: supplement" forget Plain:
        GraphLaunch { graph_exec: u64, stream: u64 } => ();

    /// Destroys a ready graph.
    0x0724 GRAPH_EXEC_DESTROY graph_exec_destroy "hipGraphExecDestroy" "supplement" forget Plain:
        GraphExecDestroy { graph_exec: u64 } => ();

    /// Starts to record the work of a stream instead of doing it. Creates: an unannounced capture would hold the
    /// stream.
    0x0725 STREAM_BEGIN_CAPTURE stream_begin_capture "hipStreamBeginCapture" "supplement" sync Creates:
        StreamBeginCapture { stream: u64, mode: i32 } => ();

    /// Ends a capture and gives its graph. Not Creates: unexecuted, the stream would stay captured; a graph that
    /// is not announced goes with the session.
    0x0726 STREAM_END_CAPTURE stream_end_capture "hipStreamEndCapture" "supplement" sync Plain:
        StreamEndCapture { stream: u64 } => StreamEndCaptureReply { graph: u64 };

    /// Whether a stream is being captured (`hipStreamCaptureStatus`).
    0x0727 STREAM_IS_CAPTURING stream_is_capturing "hipStreamIsCapturing" "supplement" sync Plain:
        StreamIsCapturing { stream: u64 } => StreamIsCapturingReply { capture_status: i32 };

    /// Copies a graph.
    0x0728 GRAPH_CLONE graph_clone "hipGraphClone" "supplement" sync Creates:
        GraphClone { original_graph: u64 } => GraphCloneReply { cloned_graph: u64 };

    /// Nodes that a node depends on, at most `max_nodes`.
    0x0729 GRAPH_NODE_GET_DEPENDENCIES graph_node_get_dependencies
        "hipGraphNodeGetDependencies" "supplement" sync Plain:
        GraphNodeGetDependencies { node: u64, max_nodes: u32 }
        => GraphNodeGetDependenciesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Nodes that depend on a node, at most `max_nodes`.
    0x072A GRAPH_NODE_GET_DEPENDENT_NODES graph_node_get_dependent_nodes
        "hipGraphNodeGetDependentNodes" "supplement" sync Plain:
        GraphNodeGetDependentNodes { node: u64, max_nodes: u32 }
        => GraphNodeGetDependentNodesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Gives a ready graph the parameters of another graph of the same shape (`hipGraphExecUpdateResult`).
    0x072B GRAPH_EXEC_UPDATE graph_exec_update "hipGraphExecUpdate" "supplement" sync Plain:
        GraphExecUpdate { graph_exec: u64, graph: u64 } => GraphExecUpdateReply { update_result: i32 };

    /// Changes one launch of a ready graph.
    0x072C GRAPH_EXEC_KERNEL_NODE_SET_PARAMS graph_exec_kernel_node_set_params
        "hipGraphExecKernelNodeSetParams" "supplement" sync Plain:
        GraphExecKernelNodeSetParams {
            graph_exec: u64, node: u64, func: u64, grid_dim: [u32; 3], block_dim: [u32; 3], shared_mem: u32,
            num_params: u32,
        }
            + Small("params:u64[num_params]", |r| Exact(items::<u64>(r.num_params)))
        => ();

    /// Registers a callback of the client after the work that a stream has now. Creates: an unannounced callback
    /// would run unasked.
    0x0730 STREAM_ADD_CALLBACK stream_add_callback "hipStreamAddCallback" "supplement" sync Creates:
        StreamAddCallback { stream: u64, callback_id: u64, flags: u32 } => ();

    /// `MODULE_LOAD_DATA` and `MODULE_GET_FUNCTION` in one round trip.
    0x0744 MODULE_LOAD_AND_GET_FUNCTION module_load_and_get_function
        "hipModuleLoadData + hipModuleGetFunction" "seed" sync Creates:
        ModuleLoadAndGetFunction { data_size: u64, name_length: u32, pad: u32 }
            + Bulk("name:bytes[name_length] code_object:bytes[data_size]",
                |r| Exact(r.data_size.saturating_add(u64::from(r.name_length))))
        => ModuleLoadAndGetFunctionReply {
            module: u64, function: u64, num_args: u32, num_params: u32, params: [Param; 64],
        };

    /// Allocates up to 64 buffers in one round trip. `count` says how many of the sizes (in bytes) and pointers
    /// are meant.
    0x0745 MALLOC_BATCH malloc_batch "hipMalloc x count" "seed; pads: supplement" sync Creates:
        MallocBatch { count: u32, pad: u32, sizes: [u64; 64] }
        => MallocBatchReply { count: u32, pad: u32, ptrs: [u64; 64] };

    /// Creates up to 32 streams in one round trip.
    0x0746 STREAM_CREATE_BATCH stream_create_batch
        "hipStreamCreateWithFlags x count" "seed; pad: supplement" sync Creates:
        StreamCreateBatch { count: u32, flags: u32 }
        => StreamCreateBatchReply { count: u32, pad: u32, handles: [u64; 32] };

    /// Creates up to 32 events in one round trip.
    0x0747 EVENT_CREATE_BATCH event_create_batch
        "hipEventCreateWithFlags x count" "seed; pad: supplement" sync Creates:
        EventCreateBatch { count: u32, flags: u32 }
        => EventCreateBatchReply { count: u32, pad: u32, handles: [u64; 32] };

    /// Size in bytes of the allocation at an address.
    0x0751 MEM_PTR_GET_INFO mem_ptr_get_info "hipMemPtrGetInfo" "supplement" sync Plain:
        MemPtrGetInfo { ptr: u64 } => MemPtrGetInfoReply { size: u64 };

    /// Opens the management interface.
    0x0800 SMI_INIT smi_init "" "supplement" sync Plain:
        SmiInit { init_flags: u64 } => ();

    /// Closes the management interface.
    0x0801 SMI_SHUTDOWN smi_shutdown "" "supplement" sync Plain:
        SmiShutdown {} => ();

    /// Number of processors that the management interface knows.
    0x0802 SMI_GET_PROCESSOR_COUNT smi_get_processor_count "" "supplement" sync Plain:
        SmiGetProcessorCount {} => SmiGetProcessorCountReply { processor_count: u32 };

    /// Temperatures in °C, power in W, activity in percent, clocks in MHz, memory in bytes. No worker of hipr has it:
    /// HIP has no function for it, only a management library, and an emulated device has nothing of the kind to measure.
    0x0820 SMI_GET_GPU_METRICS smi_get_gpu_metrics "" "supplement" sync Plain:
        SmiGetGpuMetrics { processor_index: u32 }
        => SmiGetGpuMetricsReply {
            temperature_edge: i32, temperature_hotspot: i32, temperature_mem: i32, average_socket_power: u32,
            gfx_activity: u32, umc_activity: u32, mm_activity: u32, current_gfxclk: u32, current_uclk: u32,
            current_socclk: u32, vram_total: u64, vram_used: u64, fan_speed_rpm: u32, pcie_bandwidth: u32,
            throttle_status: u32, reserved: u32,
        };

    /// Total and used memory in bytes.
    0x0825 SMI_GET_VRAM_USAGE smi_get_vram_usage "" "supplement" sync Plain:
        SmiGetVramUsage { processor_index: u32 }
        => SmiGetVramUsageReply { vram_total: u64, vram_used: u64 };

    /// What a processor is.
    0x0830 SMI_GET_ASIC_INFO smi_get_asic_info "" "supplement" sync Plain:
        SmiGetAsicInfo { processor_index: u32 }
        => SmiGetAsicInfoReply {
            market_name: Text<256>, vendor_id: u32, device_id: u32, rev_id: u32, num_compute_units: u32,
            asic_serial: Text<64>,
        };
}

/// Every operation, sorted by code.
pub static OPS: &[Info] = TABLE;

/// The row of each code; `NO_ROW` where there is none.
static INDEX: [u8; INDEX_LEN] = {
    assert!(TABLE.len() < NO_ROW as usize);
    let mut index = [NO_ROW; INDEX_LEN];
    let mut row = 0;
    while row < TABLE.len() {
        let code = TABLE[row].code.0;
        assert!(
            row == 0 || TABLE[row - 1].code.0 < code,
            "rows are sorted by code, and no code occurs twice"
        );
        index[code as usize] = row as u8;
        row += 1;
    }
    index
};
const INDEX_LEN: usize = TABLE[TABLE.len() - 1].code.0 as usize + 1;
const NO_ROW: u8 = u8::MAX;

impl Opcode {
    /// The operation's row; none for a code that is not in the table.
    #[inline]
    pub fn info(self) -> Option<&'static Info> {
        OPS.get(self.row()?)
    }

    /// The place of its row in [`OPS`]; none for a code that is not in the table.
    #[inline]
    pub fn row(self) -> Option<usize> {
        INDEX.get(usize::from(self.0)).filter(|row| **row != NO_ROW).map(|row| usize::from(*row))
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => f.pad(info.name),
            None => write!(f, "Opcode({:#06x})", self.0),
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::wire::{Wire, WireError};

    /// A visitor that gives the operation's name and what it was given.
    pub(super) struct Names;

    pub(super) fn bytes_of(value: &impl Wire) -> Vec<u8> {
        let mut out = Vec::new();
        value.put(&mut out);
        out
    }

    #[test]
    fn every_request_is_given_to_its_own_method() {
        for info in OPS {
            let fixed: Vec<u8> = (1..=info.request.size).map(|i| (i * 41) as u8).collect();
            let all = [fixed.as_slice(), b"tail"].concat();
            assert_eq!(visit(info.code, &fixed, b"tail", &mut Names), Ok((info.name, all)));
            if let Some((_, shorter)) = fixed.split_last() {
                assert!(matches!(visit(info.code, shorter, &[], &mut Names), Err(WireError::Short { .. })));
            }
        }
        assert_eq!(visit(Opcode(0x0fff), &[], &[], &mut Names), Ok(("unknown", Vec::new())));
    }
}
