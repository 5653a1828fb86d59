//! The table of operations: one row per operation of the protocol.
//!
//! A row is written once, here. The macros generate from it the request and reply structs with their codecs, the
//! constants of [`Opcode`], the client's default for `NO_REPLY`, a method of the worker's [`Visit`] (a worker without it
//! does not compile), the lengths that both ends check, and the entry in [`OPS`], from which `docs/protocol.md` is made.
//!
//! A row reads:
//!
//! ```text
//! /// Does something.
//! code NAME visitor_method "HIP function" Source reply-rule Class:
//!     Request { fixed part } + tail => Reply { fixed part } + tail;
//! ```
//!
//! * [`Source`] names the document that defines the operation.
//! * `Request(Other)` has the layout of another operation's request; the visitor's method is given that type.
//! * `=> ()` replies with nothing but the `error_code` that every response starts with.
//! * Reply rule: with `sync` the client waits, with `forget` it sets `NO_REPLY`, with `when("…", condition)` it depends on
//!   the request. A worker obeys the header's flag, whatever the rule says. With `notify` the row is no request: the worker sends it.
//! * [`Class`] says how the operation treats a kept error ([`deferred`](crate::deferred)).
//! * `static [domain, …]` behind the class marks an operation whose reply never changes in a session ([`StaticInfo`]).
//! * A tail is what follows the fixed part: `Small` (collected before the request is executed) or `Bulk` (streamed, or
//!   collected under the worker's own limit), its layout, and its length in bytes as far as the fixed part determines it.
//!
//! Codes are part of the protocol and never change; rows are sorted by code. A row that is no longer used stays.

mod cache;
mod capability;
mod define;
mod handle;
mod info;
mod packed;
mod pages;
mod statics;
mod tail;
mod times;
mod trace;
mod variables;
mod watch;

#[cfg(test)]
use alloc::vec::Vec;
use core::fmt;

use TailLen::{AtLeast, AtMost, Exact};
use define::operations;
use pages::changes_max;
use tail::{d2h, h2d, is_d2h, items};

pub use cache::{
    CACHE_CHUNK_MAX_BYTES, CACHE_CHUNK_MIN_BYTES, CACHE_KEY_BYTES, CACHE_NAME_BYTES, CACHE_NAMES_MAX,
};
pub use capability::{
    CAPABILITIES_MAX, CAPABILITY_ADDRESS_MAX_BYTES, CAPABILITY_PIECE_MAX_BYTES, CAPABILITY_TIMEOUT_MAX_MS,
    CAPABILITY_TOKEN_BYTES,
};
pub use handle::{ClientName, Handle, Handles};
pub use info::{Class, Domain, ForOp, Info, Op, Part, ReplyRule, Source, StaticInfo, Tail, TailLen};
pub(crate) use info::{Sizes, max_size};
pub use packed::{
    PACKED_MIN_BYTES, PACKED_PART_MAX_BYTES, PACKED_WINDOW_LOG, packed_max_bytes, packed_worth_bytes, purpose,
};
pub use pages::{Changes, PACKED_PAGES_MAX, PAGE_BYTES, PAGE_RUNS_MAX, PageRun, Pages};
pub use statics::{
    DEVICES_MAX, STATIC_DEVICES_MAX, STATIC_LIST_MAX_BYTES, STATIC_REQUEST_MAX_BYTES, StaticEntry,
    StaticHead, is_lasting,
};
pub use tail::{
    Edge, LaunchArgs, LaunchMode, NAME_FIELD_BYTES, NAME_MAX_BYTES, Param, kind, name_of, put_name,
};
pub use times::{EventPair, EventTime, TIMES_MAX};
pub use trace::{TRACED_MAX, TraceEntry, trace_kind};
pub use variables::{VARIABLE_NAMES_MAX_BYTES, VARIABLES_MAX, Variable, put_variable_names, variable_names};
pub use watch::WATCHES_MAX;

use crate::wire::Text;

operations! {
    /// Opens the session. A client sends it first, once.
    0x0001 INIT init "" Hipr10 sync Exempt:
        Init {} => ();

    /// Closes the session: the worker releases everything the session owns, then replies.
    0x0002 SHUTDOWN shutdown "" Hipr10 sync Exempt:
        Shutdown {} => ();

    /// Does nothing but reply.
    0x0003 PING ping "" Hipr10 sync Exempt:
        Ping {} => ();

    /// Offers features of the extension (bits; 1 is STATIC, 2 NAMES, 4 PAGES, 8 KERNEL_RULES, 16 CACHE, 32 NOTIFICATIONS, 64 PLACES,
    /// 128 PACKED, 512 MEM_INFO, 1024 WORK_ERRORS, 2048 WATCHES, 4096 VARIABLES, 8192 TRACE, 16384 MAPPINGS, 32768 APART,
    /// 65536 CAPABILITIES, 131072 PRINTF, 262144 TIMES, 524288 PACKED_CHANGES), right behind `INIT` and without waiting for its reply.
    /// Returns those that the worker accepts, never one that was not offered. With APART `part` says which part of the worker's
    /// addresses the session's memory is to have: its low 32 bits the number of the part, from 0, and its high 32 bits how many parts there
    /// are, at most 256. Without APART it is 0 and ignored. A session is offered features once; without this operation, or if it fails, it
    /// has none.
    0x0004 OFFER offer "" Extension sync Exempt:
        Offer { features: u64, part: u64 } => OfferReply { features: u64 };

    /// Returns the replies to the requests of static operations (marked below), as far as `max_bytes` and the worker's own limit
    /// allow: each with the current device to which it belongs (-1: to any), an error instead of a reply where that is the lasting
    /// answer, and in any order. A client skips entries of operations that it does not know. A session that has the feature
    /// STATIC may ask once.
    0x0005 STATIC static_replies "" Extension sync Plain:
        Static { max_bytes: u32, reserved: u32 }
        => StaticReply { count: u32, reserved: u32 }
            + Small("entries:{op:u16 request_length:u16 device:i32 error_code:i32 reply_length:u32 request:bytes[request_length] \
                reply:bytes[reply_length]}[count]", |r| AtMost(u64::from(r.max_bytes)));

    /// Tells at once that a request which is not answered has failed, where its error is kept for the next answered request.
    /// `request` and `operation` are those of its header, `function` and `stream` the handles that it names (0: none); the text, UTF-8,
    /// has its fields.
    0x0008 REQUEST_FAILED request_failed "" Extension notify Exempt:
        RequestFailed {
            request: u32, operation: u32, error_code: i32, text_length: u32, function: u64, stream: u64,
        }
            + Small("text:bytes[text_length]", |r| Exact(u64::from(r.text_length)))
        => ();

    /// Names what the next request makes: it is used by `name` instead of a handle that the worker chooses. The next request makes
    /// one stream, event, memory pool, module, function, graph or instantiated graph. Rule 9 says which names there are.
    0x0010 NAME name "" Extension forget Exempt:
        Name { name: u64 } => ();

    /// Returns the number of devices.
    0x0100 GET_DEVICE_COUNT get_device_count "hipGetDeviceCount" Hipr10 sync Plain static []:
        GetDeviceCount {} => GetDeviceCountReply { count: i32 };

    /// Makes `device_id` the connection's current device.
    0x0101 SET_DEVICE set_device "hipSetDevice" Hipr10 sync Plain:
        SetDevice { device_id: i32 } => ();

    /// Returns the connection's current device.
    0x0102 GET_DEVICE get_device "hipGetDevice" Hipr10 sync Plain:
        GetDevice {} => GetDeviceReply { device_id: i32 };

    /// Returns the properties of device `device_id`. Memory sizes are in bytes, clock rates in kHz, the bus width in bits.
    0x0103 GET_DEVICE_PROPERTIES get_device_properties
        "hipGetDeviceProperties" Hipr10Except("fields after total_global_mem") sync Plain static [Device]:
        GetDeviceProperties { device_id: i32 }
        => GetDevicePropertiesReply {
            name: Text<256>, total_global_mem: u64, shared_mem_per_block: u64, regs_per_block: i32,
            warp_size: i32, max_threads_per_block: i32, max_threads_dim: [i32; 3], max_grid_size: [i32; 3],
            clock_rate: i32, memory_clock_rate: i32, memory_bus_width: i32, major: i32, minor: i32,
            multi_processor_count: i32, l2_cache_size: i32, max_threads_per_multi_processor: i32,
            compute_mode: i32, pci_bus_id: i32, pci_device_id: i32, pci_domain_id: i32, integrated: i32,
            can_map_host_memory: i32, concurrent_kernels: i32, gcn_arch_name: Text<256>,
        };

    /// Waits until all work of the current device is done.
    0x0104 DEVICE_SYNCHRONIZE device_synchronize "hipDeviceSynchronize" Hipr10 sync Synchronizes:
        DeviceSynchronize {} => ();

    /// Releases everything the session owns on the current device.
    0x0105 DEVICE_RESET device_reset "hipDeviceReset" Extension sync Plain:
        DeviceReset {} => ();

    /// Returns one attribute (`hipDeviceAttribute_t`) of a device.
    0x0106 DEVICE_GET_ATTRIBUTE device_get_attribute
        "hipDeviceGetAttribute" Hipr10 sync Plain static [Device, Attribute]:
        DeviceGetAttribute { device_id: i32, attribute: i32 } => DeviceGetAttributeReply { value: i32 };

    /// Returns a limit (`hipLimit_t`) of the current device. The request's `value` is ignored.
    0x0107 DEVICE_GET_LIMIT device_get_limit "hipDeviceGetLimit" Hipr10 sync Plain:
        DeviceGetLimit { limit: i32, value: u64 } => DeviceGetLimitReply { value: u64 };

    /// Sets a limit (`hipLimit_t`) of the current device.
    0x0108 DEVICE_SET_LIMIT device_set_limit "hipDeviceSetLimit" Hipr10 forget Plain:
        DeviceSetLimit { limit: i32, value: u64 } => ();

    /// Returns 1 if `device_id` can access the memory of `peer_device_id`, else 0.
    0x0109 DEVICE_CAN_ACCESS_PEER device_can_access_peer
        "hipDeviceCanAccessPeer" Extension sync Plain static [Device, Device]:
        DeviceCanAccessPeer { device_id: i32, peer_device_id: i32 }
        => DeviceCanAccessPeerReply { can_access_peer: i32 };

    /// Lets the current device access the memory of a peer.
    0x010A DEVICE_ENABLE_PEER_ACCESS device_enable_peer_access
        "hipDeviceEnablePeerAccess" Hipr10Except("layout") forget Plain:
        DeviceEnablePeerAccess { peer_device_id: i32, flags: u32 } => ();

    /// Ends the access that `DEVICE_ENABLE_PEER_ACCESS` gave. `flags` is 0.
    0x010B DEVICE_DISABLE_PEER_ACCESS device_disable_peer_access
        "hipDeviceDisablePeerAccess" Extension forget Plain:
        DeviceDisablePeerAccess { peer_device_id: i32, flags: u32 } => ();

    /// Returns the handle of the device with that ordinal.
    0x010C DEVICE_GET device_get "hipDeviceGet" Extension sync Plain static [Device]:
        DeviceGet { ordinal: i32 } => DeviceGetReply { device: u64 };

    /// Returns the name of a device, at most `len` bytes of it including the NUL.
    0x010D DEVICE_GET_NAME device_get_name "hipDeviceGetName" Extension sync Plain static [Device, Asked]:
        DeviceGetName { device: u64, len: i32 } => DeviceGetNameReply { name: Text<256> };

    /// Returns the size of a device's memory in bytes.
    0x010E DEVICE_TOTAL_MEM device_total_mem "hipDeviceTotalMem" Extension sync Plain static [Device]:
        DeviceTotalMem { device: u64 } => DeviceTotalMemReply { bytes: u64 };

    /// Returns the PCI address of a device as text (`0000:c1:00.0`), at most `len` bytes of it including the NUL.
    0x010F DEVICE_GET_PCI_BUS_ID device_get_pci_bus_id
        "hipDeviceGetPCIBusId" Extension sync Plain static [Device, Asked]:
        DeviceGetPciBusId { device: i32, len: i32 } => DeviceGetPciBusIdReply { pci_bus_id: Text<32> };

    /// Returns the device at a PCI address.
    0x0110 DEVICE_GET_BY_PCI_BUS_ID device_get_by_pci_bus_id
        "hipDeviceGetByPCIBusId" Extension sync Plain static [Asked]:
        DeviceGetByPciBusId { pci_bus_id: Text<32> } => DeviceGetByPciBusIdReply { device: i32 };

    /// Returns the major and minor compute capability of a device.
    0x0111 DEVICE_COMPUTE_CAPABILITY device_compute_capability
        "hipDeviceComputeCapability" Extension sync Plain static [Device]:
        DeviceComputeCapability { device: u64 } => DeviceComputeCapabilityReply { major: i32, minor: i32 };

    /// Returns the UUID of a device, 16 bytes.
    0x0112 DEVICE_GET_UUID device_get_uuid "hipDeviceGetUuid" Extension sync Plain static [Device]:
        DeviceGetUuid { device: u64 } => DeviceGetUuidReply { uuid: [u8; 16] };

    /// Returns how the current device divides memory between cache and LDS (`hipFuncCache_t`).
    0x0113 DEVICE_GET_CACHE_CONFIG device_get_cache_config "hipDeviceGetCacheConfig" Extension sync Plain:
        DeviceGetCacheConfig {} => DeviceGetCacheConfigReply { cache_config: i32 };

    /// Requests a division of memory between cache and LDS (`hipFuncCache_t`) for the current device.
    0x0114 DEVICE_SET_CACHE_CONFIG device_set_cache_config "hipDeviceSetCacheConfig" Extension forget Plain:
        DeviceSetCacheConfig { cache_config: i32 } => ();

    /// Returns the bank width of LDS (`hipSharedMemConfig`).
    0x0115 DEVICE_GET_SHARED_MEM_CONFIG device_get_shared_mem_config
        "hipDeviceGetSharedMemConfig" Extension sync Plain:
        DeviceGetSharedMemConfig {} => DeviceGetSharedMemConfigReply { shared_mem_config: i32 };

    /// Requests a bank width of LDS (`hipSharedMemConfig`).
    0x0116 DEVICE_SET_SHARED_MEM_CONFIG device_set_shared_mem_config
        "hipDeviceSetSharedMemConfig" Extension forget Plain:
        DeviceSetSharedMemConfig { shared_mem_config: i32 } => ();

    /// Sets the flags of the current device (`hipDeviceSchedule*`, …).
    0x0117 SET_DEVICE_FLAGS set_device_flags "hipSetDeviceFlags" Extension sync Plain:
        SetDeviceFlags { flags: u32 } => ();

    /// Returns the flags of the current device.
    0x0118 GET_DEVICE_FLAGS get_device_flags "hipGetDeviceFlags" Extension sync Plain:
        GetDeviceFlags {} => GetDeviceFlagsReply { flags: u32 };

    /// Returns one attribute (`hipDeviceP2PAttr`) of the link between two devices.
    0x0119 DEVICE_GET_P2P_ATTRIBUTE device_get_p2p_attribute
        "hipDeviceGetP2PAttribute" Extension sync Plain static [Asked, Device, Device]:
        DeviceGetP2pAttribute { attr: i32, src_device: i32, dst_device: i32 }
        => DeviceGetP2pAttributeReply { value: i32 };

    /// Restricts the devices that may be used to the listed ones.
    0x011A SET_VALID_DEVICES set_valid_devices "hipSetValidDevices" Extension sync Plain:
        SetValidDevices { len: i32 }
            + Small("devices:i32[len]", |r| Exact(items::<i32>(r.len)))
        => ();

    /// Returns the device that matches the requested properties best; 0 in a field requests nothing.
    0x011B CHOOSE_DEVICE choose_device
        "hipChooseDevice" Extension sync Plain static [Asked, Asked, Asked, Asked, Asked, Asked]:
        ChooseDevice {
            total_global_mem: u64, major: i32, minor: i32, multi_processor_count: i32, warp_size: i32,
            max_threads_per_block: i32,
        }
        => ChooseDeviceReply { device: i32 };

    /// Returns the least and the greatest stream priority; the greatest priority is the smallest number.
    0x011C DEVICE_GET_STREAM_PRIORITY_RANGE device_get_stream_priority_range
        "hipDeviceGetStreamPriorityRange" Extension sync Plain static (current) []:
        DeviceGetStreamPriorityRange {}
        => DeviceGetStreamPriorityRangeReply { least_priority: i32, greatest_priority: i32 };

    /// Allocates `size` bytes of device memory.
    0x0200 MALLOC malloc "hipMalloc" Hipr10 sync Creates:
        Malloc { size: u64, flags: u32 } => MallocReply { device_ptr: u64 };

    /// Frees device memory after the work that uses it. Freeing address 0 does nothing.
    0x0201 FREE free "hipFree" Hipr10 forget Plain:
        Free { device_ptr: u64 } => ();

    /// Allocates `size` bytes of the worker's pinned memory. `flags`: `hipHostMalloc*`.
    0x0202 MALLOC_HOST malloc_host "hipHostMalloc" Extension sync Creates:
        MallocHost { size: u64, flags: u32 } => MallocHostReply { device_ptr: u64 };

    /// Frees memory that `MALLOC_HOST` allocated.
    0x0203 FREE_HOST free_host "hipHostFree" Extension forget Plain:
        FreeHost { device_ptr: u64 } => ();

    /// Allocates `size` bytes of managed memory. `flags`: `hipMemAttach*`.
    0x0204 MALLOC_MANAGED malloc_managed "hipMallocManaged" Extension sync Creates:
        MallocManaged { size: u64, flags: u32 } => MallocManagedReply { device_ptr: u64 };

    /// Allocates `size` bytes of device memory in the order of a stream.
    0x0205 MALLOC_ASYNC malloc_async "hipMallocAsync" Hipr10 sync Creates:
        MallocAsync { size: u64, stream: u64 } => MallocAsyncReply { device_ptr: u64 };

    /// Frees device memory in the order of a stream.
    0x0206 FREE_ASYNC free_async "hipFreeAsync" Hipr10 forget Plain:
        FreeAsync { device_ptr: u64, stream: u64 } => ();

    /// Copies `size` bytes. `kind` (`hipMemcpyKind`) says where the bytes are: host to device carries them in the request,
    /// device to host in the reply.
    0x0210 MEMCPY memcpy
        "hipMemcpy" Hipr10Except("layout") when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy { dst: u64, src: u64, size: u64, kind: i32, stream: u64 }
            + Bulk("[H2D: inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(h2d(r.kind, r.size)))
        => ()
            + Bulk("[D2H: inline bytes of length size]", |r| Exact(d2h(r.kind, r.size)));

    /// Copies `size` bytes in the order of a stream; see `MEMCPY`.
    0x0211 MEMCPY_ASYNC memcpy_async
        "hipMemcpyAsync" Hipr10 when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        MemcpyAsync(Memcpy)
            + Bulk("[H2D: inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(h2d(r.kind, r.size)))
        => ()
            + Bulk("[D2H: inline bytes of length size]", |r| Exact(d2h(r.kind, r.size)));

    /// Copies `height` rows of `width` bytes; pitches are the bytes from one row to the next. Rows on the wire are packed.
    0x0212 MEMCPY_2D memcpy_2d
        "hipMemcpy2D" Hipr10Except("layout") when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy2D {
            dst: u64, dpitch: u64, src: u64, spitch: u64, width: u64, height: u64, kind: i32, reserved: u32,
            stream: u64,
        }
            + Bulk("[H2D: inline rows, tightly packed, width*height bytes]", |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies rows in the order of a stream; see `MEMCPY_2D`.
    0x0213 MEMCPY_2D_ASYNC memcpy_2d_async
        "hipMemcpy2DAsync" Extension when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy2DAsync(Memcpy2D)
            + Bulk("[H2D: inline rows, tightly packed, width*height bytes]", |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies a box of `width` bytes by `height` rows by `depth` slices. `src_pitch` is the bytes from one row to the next
    /// and `src_height` the rows from one slice to the next; the box begins at byte `src_x`, row `src_y`, slice `src_z`.
    /// The `dst` fields mean the same.
    0x0214 MEMCPY_3D memcpy_3d
        "hipMemcpy3D" Extension when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
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
        "hipMemcpy3DAsync" Extension when("by kind: H2D and D2D forget, D2H sync", |r| is_d2h(r.kind)) Synchronizes:
        Memcpy3DAsync(Memcpy3D)
            + Bulk("[H2D: inline rows, tightly packed, width*height*depth bytes]",
                |r| Exact(h2d(r.kind, r.len_bytes())))
        => ()
            + Bulk("[D2H: inline rows, tightly packed]", |r| Exact(d2h(r.kind, r.len_bytes())));

    /// Copies from device to device; `kind` is ignored.
    0x0216 MEMCPY_DTOD memcpy_dtod "hipMemcpyDtoD" Extension forget Plain:
        MemcpyDtod(Memcpy) => ();

    /// Copies from device to device in the order of a stream.
    0x0217 MEMCPY_DTOD_ASYNC memcpy_dtod_async "hipMemcpyDtoDAsync" Extension forget Plain:
        MemcpyDtodAsync(Memcpy) => ();

    /// Copies from host to device; `kind` is ignored.
    0x0218 MEMCPY_HTOD memcpy_htod "hipMemcpyHtoD" Extension forget Plain:
        MemcpyHtod(Memcpy)
            + Bulk("[inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(r.size))
        => ();

    /// Copies from host to device in the order of a stream.
    0x0219 MEMCPY_HTOD_ASYNC memcpy_htod_async "hipMemcpyHtoDAsync" Extension forget Plain:
        MemcpyHtodAsync(Memcpy)
            + Bulk("[inline bytes of length size, flag HAS_INLINE_DATA]", |r| Exact(r.size))
        => ();

    /// Copies from device to host; `kind` is ignored.
    0x021A MEMCPY_DTOH memcpy_dtoh "hipMemcpyDtoH" Extension sync Synchronizes:
        MemcpyDtoh(Memcpy)
        => ()
            + Bulk("[inline bytes of length size]", |r| Exact(r.size));

    /// Copies from device to host in the order of a stream.
    0x021B MEMCPY_DTOH_ASYNC memcpy_dtoh_async "hipMemcpyDtoHAsync" Extension sync Synchronizes:
        MemcpyDtohAsync(Memcpy)
        => ()
            + Bulk("[inline bytes of length size]", |r| Exact(r.size));

    /// Copies `size` bytes from one device to another.
    0x021C MEMCPY_PEER memcpy_peer "hipMemcpyPeer" Hipr10Except("layout") forget Plain:
        MemcpyPeer { dst: u64, dst_device: i32, src: u64, src_device: i32, size: u64, stream: u64 } => ();

    /// Copies from one device to another in the order of a stream.
    0x021D MEMCPY_PEER_ASYNC memcpy_peer_async "hipMemcpyPeerAsync" Extension forget Plain:
        MemcpyPeerAsync(MemcpyPeer) => ();

    /// Sets `size` bytes to the low byte of `value`.
    0x0220 MEMSET memset "hipMemset" Hipr10 forget Plain:
        Memset { dst: u64, value: i32, size: u64, stream: u64 } => ();

    /// Sets `size` bytes to the low byte of `value` in the order of a stream.
    0x0221 MEMSET_ASYNC memset_async "hipMemsetAsync" Hipr10 forget Plain:
        MemsetAsync(Memset) => ();

    /// Sets `size` bytes to the low byte of `value`.
    0x0222 MEMSET_D8 memset_d8 "hipMemsetD8" Extension forget Plain:
        MemsetD8(Memset) => ();

    /// Sets `size` 16-bit elements to the low half of `value`.
    0x0223 MEMSET_D16 memset_d16 "hipMemsetD16" Extension forget Plain:
        MemsetD16(Memset) => ();

    /// Sets `size` 32-bit elements to `value`.
    0x0224 MEMSET_D32 memset_d32 "hipMemsetD32" Extension forget Plain:
        MemsetD32(Memset) => ();

    /// Returns the free and the total memory of the current device in bytes.
    0x0230 MEM_GET_INFO mem_get_info "hipMemGetInfo" Extension sync Plain:
        MemGetInfo {} => MemGetInfoReply { free_bytes: u64, total_bytes: u64 };

    /// Returns the attributes of an address. `memory_type` is a `hipMemoryType`.
    0x0231 POINTER_GET_ATTRIBUTES pointer_get_attributes "hipPointerGetAttributes" Extension sync Plain:
        PointerGetAttributes { ptr: u64 }
        => PointerGetAttributesReply {
            memory_type: i32, device: i32, device_pointer: u64, host_pointer: u64, is_managed: i32,
            allocation_flags: u32,
        };

    /// Returns one attribute (`hipPointer_attribute`) of an address.
    0x0232 POINTER_GET_ATTRIBUTE pointer_get_attribute "hipPointerGetAttribute" Extension sync Plain:
        PointerGetAttribute { ptr: u64, attribute: i32, reserved: u32 }
        => PointerGetAttributeReply { data: u64 };

    /// Returns a handle by which another session can open an allocation.
    0x0240 IPC_GET_MEM_HANDLE ipc_get_mem_handle "hipIpcGetMemHandle" Extension sync Plain:
        IpcGetMemHandle { device_ptr: u64 } => IpcGetMemHandleReply { handle: [u8; 64] };

    /// Opens the allocation that a handle names.
    0x0241 IPC_OPEN_MEM_HANDLE ipc_open_mem_handle "hipIpcOpenMemHandle" Extension sync Creates:
        IpcOpenMemHandle { handle: [u8; 64], flags: u32 } => IpcOpenMemHandleReply { device_ptr: u64 };

    /// Closes an allocation that `IPC_OPEN_MEM_HANDLE` opened.
    0x0242 IPC_CLOSE_MEM_HANDLE ipc_close_mem_handle "hipIpcCloseMemHandle" Extension forget Plain:
        IpcCloseMemHandle { device_ptr: u64 } => ();

    /// Returns a handle by which another session can open an event.
    0x0243 IPC_GET_EVENT_HANDLE ipc_get_event_handle "hipIpcGetEventHandle" Extension sync Plain:
        IpcGetEventHandle { event: u64 } => IpcGetEventHandleReply { handle: [u8; 64] };

    /// Opens the event that a handle names.
    0x0244 IPC_OPEN_EVENT_HANDLE ipc_open_event_handle "hipIpcOpenEventHandle" Extension sync Creates:
        IpcOpenEventHandle { handle: [u8; 64] } => IpcOpenEventHandleReply { event: u64 };

    /// Creates a memory pool (`hipMemPoolProps`). `max_size` is in bytes, 0 for no limit.
    0x0250 MEM_POOL_CREATE mem_pool_create "hipMemPoolCreate" Extension sync Creates:
        MemPoolCreate {
            alloc_type: i32, handle_types: i32, location_type: i32, location_id: i32, max_size: u64,
            reserved: [u8; 32],
        }
        => MemPoolCreateReply { mem_pool: u64 };

    /// Destroys a memory pool.
    0x0251 MEM_POOL_DESTROY mem_pool_destroy "hipMemPoolDestroy" Extension forget Plain:
        MemPoolDestroy { mem_pool: u64 } => ();

    /// Sets an attribute (`hipMemPoolAttr`) of a memory pool.
    0x0252 MEM_POOL_SET_ATTRIBUTE mem_pool_set_attribute "hipMemPoolSetAttribute" Extension sync Plain:
        MemPoolSetAttribute { mem_pool: u64, attr: i32, reserved: u32, value: u64 } => ();

    /// Returns one attribute (`hipMemPoolAttr`) of a memory pool.
    0x0253 MEM_POOL_GET_ATTRIBUTE mem_pool_get_attribute "hipMemPoolGetAttribute" Extension sync Plain:
        MemPoolGetAttribute { mem_pool: u64, attr: i32 } => MemPoolGetAttributeReply { value: u64 };

    /// Allocates `size` bytes from a memory pool in the order of a stream.
    0x0254 MALLOC_FROM_POOL_ASYNC malloc_from_pool_async "hipMallocFromPoolAsync" Extension sync Creates:
        MallocFromPoolAsync { size: u64, mem_pool: u64, stream: u64 }
        => MallocFromPoolAsyncReply { device_ptr: u64 };

    /// Releases idle memory of a pool until it holds at most `min_bytes_to_hold` bytes.
    0x0255 MEM_POOL_TRIM_TO mem_pool_trim_to "hipMemPoolTrimTo" Extension forget Plain:
        MemPoolTrimTo { mem_pool: u64, min_bytes_to_hold: u64 } => ();

    /// Returns the memory pool that a device starts with.
    0x0256 DEVICE_GET_DEFAULT_MEM_POOL device_get_default_mem_pool
        "hipDeviceGetDefaultMemPool" Extension sync Plain:
        DeviceGetDefaultMemPool { device: i32 } => DeviceGetDefaultMemPoolReply { mem_pool: u64 };

    /// Makes a memory pool the current pool of a device.
    0x0257 DEVICE_SET_MEM_POOL device_set_mem_pool "hipDeviceSetMemPool" Extension forget Plain:
        DeviceSetMemPool { device: i32, reserved: u32, mem_pool: u64 } => ();

    /// Returns the current memory pool of a device.
    0x0258 DEVICE_GET_MEM_POOL device_get_mem_pool "hipDeviceGetMemPool" Extension sync Plain:
        DeviceGetMemPool { device: i32 } => DeviceGetMemPoolReply { mem_pool: u64 };

    /// Registers a range of the client's memory as accessible to the device. Creates: a registration that the client does
    /// not know of would stay until the session ends.
    0x0260 HOST_REGISTER host_register "hipHostRegister" Extension sync Creates:
        HostRegister { host_ptr: u64, size_bytes: u64, flags: u32 } => ();

    /// Ends the registration of a range of host memory.
    0x0261 HOST_UNREGISTER host_unregister "hipHostUnregister" Extension sync Plain:
        HostUnregister { host_ptr: u64 } => ();

    /// Returns the device address of registered or pinned host memory. `flags` is 0.
    0x0262 HOST_GET_DEVICE_POINTER host_get_device_pointer "hipHostGetDevicePointer" Extension sync Plain:
        HostGetDevicePointer { host_ptr: u64, flags: u32 } => HostGetDevicePointerReply { device_ptr: u64 };

    /// Allocates `height` rows of at least `width_in_bytes` bytes; `pitch` is the bytes from one row to the next.
    0x0266 MEM_ALLOC_PITCH mem_alloc_pitch "hipMemAllocPitch" Extension sync Creates:
        MemAllocPitch { width_in_bytes: u64, height: u64, element_size: u32 }
        => MemAllocPitchReply { dptr: u64, pitch: u64 };

    /// Advises the device how `count` bytes will be used (`hipMemoryAdvise`).
    0x0270 MEM_ADVISE mem_advise "hipMemAdvise" Extension forget Plain:
        MemAdvise { dev_ptr: u64, count: u64, advice: i32, device: i32 } => ();

    /// Moves `count` bytes of managed memory to a device in the order of a stream.
    0x0271 MEM_PREFETCH_ASYNC mem_prefetch_async "hipMemPrefetchAsync" Extension forget Plain:
        MemPrefetchAsync { dev_ptr: u64, count: u64, device: i32, reserved: u32, stream: u64 } => ();

    /// Begins to tell which of the `length` bytes at `address` change. From now on the client is taken to know that all of them are
    /// zeros, so that anything else is a change. They lie in one allocation, of which one range is watched: another one replaces it.
    /// It ends with the allocation. A session needs the feature PAGES for this, and for the next two.
    0x0280 MEM_WATCH mem_watch "" Extension forget Plain:
        MemWatch { address: u64, length: u64 } => ();

    /// Copies what the client changed in watched memory, in the order of a stream. As `MEMCPY_HTOD_ASYNC`, but the client is taken to
    /// know these bytes.
    0x0281 MEM_PUSH mem_push "hipMemcpyHtoDAsync" Extension forget Plain:
        MemPush { address: u64, length: u64, stream: u64 }
            + Bulk("[inline bytes of length length, flag HAS_INLINE_DATA]", |r| Exact(r.length))
        => ();

    /// Returns what has changed in watched memory and the client does not know, when the work that `stream` has is done, as
    /// `MEMCPY_DTOH_ASYNC` does: pages of 4096 bytes, counted from `address`, where a page of the watched range begins. They are in
    /// runs; then come the bytes of those whose `kind` is 0 (1 stands for zeros), the last page cut off where the range ends. The
    /// client is taken to know them. `covered` says how many bytes were looked at, in whole pages or all; the others have to be asked
    /// for again. With `is_known` 0 the worker does not know what the client knows, and the bytes have to be copied.
    0x0282 MEM_CHANGES mem_changes "" Extension sync Synchronizes:
        MemChanges { address: u64, length: u64, stream: u64 }
        => MemChangesReply { covered: u64, num_runs: u32, is_known: u32 }
            + Bulk("runs:{first:u32 count:u32 kind:u32}[num_runs] pages:bytes", |r| AtMost(changes_max(r.length)));

    /// Returns what `MEM_CHANGES` does. With `is_packed` 1 the bytes of the pages, `pages_length` of them, at most 32 MiB, are packed (rule 14);
    /// the worker chooses, and covers less where there are more. A session needs the features PAGES and PACKED_CHANGES for this.
    0x0283 MEM_CHANGES_PACKED mem_changes_packed "" Extension sync Synchronizes:
        MemChangesPacked { address: u64, length: u64, stream: u64 }
        => MemChangesPackedReply {
            covered: u64, num_runs: u32, is_known: u32, pages_length: u64, is_packed: u32, reserved: u32,
        }
            + Bulk("runs:{first:u32 count:u32 kind:u32}[num_runs] pages:bytes", |r| AtMost(changes_max(r.length)));

    /// Opens the cache of uploads for the session, once: it has the chunks that sessions with the same `key` put there, and no others. The
    /// name of a chunk is the keyed BLAKE3 hash of its bytes, with this key. A session needs the feature CACHE for this, and for the next
    /// three.
    0x0290 CACHE_OPEN cache_open "" Extension forget Exempt:
        CacheOpen { key: [u8; 32] } => ();

    /// Returns which of at most 256 chunks the cache has: a bit for each, the first is the lowest of the first number. These chunks stay
    /// in the cache until the session has copied each as often as it was told of it here, or ends.
    0x0291 CACHE_HAVE cache_have "" Extension sync Exempt:
        CacheHave { count: u32, reserved: u32 }
            + Small("names:bytes[32 * count]", |r| Exact(CACHE_NAME_BYTES as u64 * u64::from(r.count)))
        => CacheHaveReply { has: [u64; 4] };

    /// Copies a chunk from the client, in the order of a stream, and puts it into the cache: `length` bytes (64 KiB to 4 MiB) at `offset`
    /// of a copy of `size` bytes to `dst`. What `MEMCPY_HTOD_ASYNC` refuses for the whole copy is refused for each chunk. With `waits` 1
    /// later requests come behind the copy, as with `MEMCPY_HTOD`. A cache that has no room forgets older chunks, or does not keep this one.
    0x0292 CACHE_PUT cache_put "hipMemcpyHtoDAsync" Extension forget Synchronizes:
        CachePut { dst: u64, size: u64, offset: u64, length: u64, stream: u64, waits: u32, reserved: u32 }
            + Bulk("[inline bytes of length length, flag HAS_INLINE_DATA]", |r| Exact(r.length))
        => ();

    /// Copies a chunk from the cache as `CACHE_PUT` copies one from the client. The session was told by
    /// `CACHE_HAVE` that the cache has it, once for each copy.
    0x0293 CACHE_COPY cache_copy "hipMemcpyHtoDAsync" Extension forget Synchronizes:
        CacheCopy {
            chunk: [u8; 32], dst: u64, size: u64, offset: u64, length: u64, stream: u64, waits: u32, reserved: u32,
        } => ();

    /// Grants a lease of the current device's memory: bytes and allocations that the client may place by itself, added to what it has
    /// left. Nobody else gets them, and they count against the session's limits. With `want_bytes` 0 the worker adds what it likes,
    /// perhaps nothing; otherwise at least one allocation and `want_bytes`, or it fails with `hipErrorOutOfMemory`, exactly when `MALLOC`
    /// would. Also returns the session's window of addresses, which nobody else has and which stays the same; `window_bytes` is 0
    /// if there is none, and then nothing is added. A session has a lease on one device at a time, and on any other no window. It
    /// needs the feature PLACES for this, and for the next two. Rule 12 says how a lease is counted.
    0x02A0 MEM_LEASE mem_lease "" Extension sync Creates:
        MemLease { want_bytes: u64 }
        => MemLeaseReply { window_start: u64, window_bytes: u64, added_bytes: u64, added_allocations: u64 };

    /// Allocates `size` bytes at `device_ptr`, out of the lease. `kind` is a `hipMemoryType`: 1 allocates what `MALLOC_HOST` does, 2
    /// `MALLOC`, 3 `MALLOC_MANAGED`; `flags` are theirs. Fails with `hipErrorInvalidValue` for an address that rule 12 does not
    /// allow, with `hipErrorInvalidDevice` if the lease is one of another device, and with `hipErrorOutOfMemory` if the lease does
    /// not cover it, or the worker's host has no memory.
    0x02A1 MALLOC_AT malloc_at "hipMalloc" Extension forget Plain:
        MallocAt { device_ptr: u64, size: u64, kind: u32, flags: u32 } => ();

    /// Gives unused bytes and allocations of the lease back. `recall` is the number of the `MEM_RECALL` that it answers, or 0: then it fails
    /// with `hipErrorInvalidValue` if there are fewer.
    0x02A2 MEM_RETURN mem_return "" Extension forget Exempt:
        MemReturn { bytes: u64, allocations: u64, recall: u64 } => ();

    /// Asks the client to give back what it does not use of its lease, because somebody needs memory: with one `MEM_RETURN`, of what is
    /// unused when that is sent. The next recall comes when this one was answered.
    0x02A3 MEM_RECALL mem_recall "" Extension notify Exempt:
        MemRecall { number: u64 } => ();

    /// Returns what `MEM_GET_INFO` does, and asks to be told when it no longer holds. That is, for the client, what it was told less what
    /// it has placed since, and more by what of that it has freed (`MALLOC_AT` and `MALLOC_SHARED`; `FREE` and `FREE_HOST` of what comes
    /// back to the lease). When the free memory of the device becomes another one for any other reason, or one of these requests fails, one
    /// `MEM_INFO_CHANGED` with this `number` comes, before any reply that is later than the change. The session's next `MEM_INFO`
    /// takes the place of this one. A session needs the features NOTIFICATIONS, PLACES and MEM_INFO for this.
    0x02A4 MEM_INFO mem_info "hipMemGetInfo" Extension sync Plain:
        MemInfo { number: u64 } => MemGetInfoReply;

    /// Tells that the free memory of the device is another one than the reply to the `MEM_INFO` with this number says. It comes once for
    /// each, and may come although the memory is the same again.
    0x02A5 MEM_INFO_CHANGED mem_info_changed "" Extension notify Exempt:
        MemInfoChanged { number: u64 } => ();
    /// Makes the memory that client and worker have in common: a file that begins with the first byte of the session's window of
    /// addresses and ends with the last, sealed at its size (`F_SEAL_SHRINK`, `F_SEAL_GROW`, `F_SEAL_SEAL`). Its descriptor
    /// goes to the client over the unix socket (`SCM_RIGHTS`) with a byte that leaves before this reply does, or is the first of it; over shared
    /// memory that is a byte that rings. `is_passed` is 1 then; once there is a file it is 0, and this request only says that those before it
    /// were carried out, so that what they freed is zeros and can be placed anew. `file_bytes` is its length. A
    /// session needs the feature SHARED for this and for the next, and has that only where descriptors can be passed. `DEVICE_RESET` ends the use
    /// of the file.
    0x02B0 MEM_SHARE mem_share "" Extension sync Exempt:
        MemShare {} => MemShareReply { file_bytes: u64, is_passed: u32, reserved: u32 };

    /// Allocates as `MALLOC_AT` does, of the file's bytes for these addresses; `kind` is 1 or 3, and `size` a multiple of 4096. What either
    /// side writes there the other one sees at once. FREE clears it; FREE_ASYNC fails. Also fails with `hipErrorInvalidValue` without a
    /// file, and with `hipErrorOutOfMemory` if the client has written to more of the file than its allocations and its lease have.
    0x02B1 MALLOC_SHARED malloc_shared "hipHostMalloc" Extension forget Plain:
        MallocShared { device_ptr: u64, size: u64, kind: u32, flags: u32 } => ();

    /// Gives a capability: whoever has its `token`, 32 random bytes, may read a box of bytes once: `depth` slices of `height` rows of `width`
    /// bytes, the first at `address`, rows `pitch` bytes apart and slices `slice` bytes, when the work is done that `stream` has then. It belongs
    /// to the first session of this worker that uses it (`CAPABILITY_READ`), which has to be within `timeout_ms` milliseconds, at most 60000. It
    /// ends when all was read, when that session ends, when this one does, or when the memory is freed. A session has at most 16 that have not
    /// ended; one more fails with `hipErrorNotReady`. A session needs the feature CAPABILITIES for this and for the next two.
    0x02C0 CAPABILITY_GIVE capability_give "" Extension sync Plain:
        CapabilityGive {
            token: [u8; 32], address: u64, pitch: u64, slice: u64, width: u64, height: u64, depth: u64, stream: u64,
            timeout_ms: u32, reserved: u32,
        } => ();

    /// Returns `length` bytes, at most 4 MiB, of those that a capability is for, without gaps: those from `offset` on, which is how many were read
    /// before. Without bytes, behind the last ones, it ends the capability, and reports what a read before it has failed with. Fails with
    /// `hipErrorInvalidHandle` if there is no such capability for this session, with `hipErrorInvalidValue` for other bytes than the next ones, with what
    /// the work of the capability's stream failed with, and with `hipErrorContextIsDestroyed` when the memory is gone.
    0x02C1 CAPABILITY_READ capability_read "" Extension sync Synchronizes:
        CapabilityRead { token: [u8; 32], offset: u64, length: u64 }
        => ()
            + Bulk("[inline bytes of length length]", |r| Exact(r.length));

    /// Copies bytes for which a session of another worker has given a capability to a box of as many bytes, in the order of a stream: the first at
    /// `dst`, and as in `CAPABILITY_GIVE`. This worker connects to the other one, which is at `address` (HOST:PORT, at most 256 bytes, over TCP), with encryption
    /// if the bytes of `worker` are not all 0: they are the fingerprint of its key. Replies when the bytes are there. Fails with
    /// `hipErrorPeerAccessUnsupported` if this worker may not or cannot reach the other one, or that one does not let it read; then nothing was copied,
    /// or some of it.
    0x02C2 CAPABILITY_COPY capability_copy "hipMemcpyPeerAsync" Extension sync Synchronizes:
        CapabilityCopy {
            token: [u8; 32], worker: [u8; 32], dst: u64, pitch: u64, slice: u64, width: u64, height: u64, depth: u64,
            stream: u64, address_length: u32, reserved: u32,
        }
            + Small("address:bytes[address_length]", |r| Exact(u64::from(r.address_length)))
        => ();

    /// Tells which request an error of the device's work comes from, right before the reply that has the error, or where it is kept for the
    /// next one. `launches` is how many launches it may be: 1 if it is certain, 0 if nothing is known. `request` and `operation` are those
    /// of the header of the launch, of the last one of several; `function` and `stream` the handles of its kernel and its stream (0: not
    /// known). Behind them come the name of the kernel and what the device says, UTF-8, both cut where they are long. A session needs the features
    /// NOTIFICATIONS and WORK_ERRORS for this.
    0x02C8 WORK_FAILED work_failed "" Extension notify Exempt:
        WorkFailed {
            request: u32, operation: u32, error_code: i32, launches: u32, kernel_length: u32, text_length: u32, function: u64,
            stream: u64,
        }
            + Small("kernel:bytes[kernel_length] text:bytes[text_length]",
                |r| Exact(u64::from(r.kernel_length) + u64::from(r.text_length)))
        => ();

    /// Says what kernels have printed: `length` bytes (1 byte to 16 KiB) for standard output, or with `is_error` 1 for standard error. It comes in the
    /// order in which they have printed it, and before anything that says that their work is done. A session needs the feature PRINTF for this.
    0x02C9 PRINTED printed "" Extension notify Exempt:
        Printed { is_error: u32, length: u32 }
            + Small("text:bytes[length]", |r| Exact(u64::from(r.length)))
        => ();

    /// Copies a part of a copy from the client, in the order of a stream: `length` bytes (1 byte to 4 MiB) at `offset` of `size` bytes to
    /// `dst`. What `MEMCPY_HTOD_ASYNC` refuses for the whole copy is refused for each part. There are `packed` inline bytes: `length` if
    /// they are not packed, fewer if they are (rule 14). With `purpose` 1 the client is taken to know the bytes, as with `MEM_PUSH`; with 2
    /// they are put into the cache, as with `CACHE_PUT`; otherwise it is 0. With `waits` 1 later requests come behind the copy. A
    /// session needs the feature PACKED for this and for the next two.
    0x02D0 PUT_PACKED put_packed "hipMemcpyHtoDAsync" Extension forget Synchronizes:
        PutPacked {
            dst: u64, size: u64, offset: u64, length: u64, packed: u64, stream: u64, waits: u32, purpose: u32,
        }
            + Bulk("[inline bytes of length packed, flag HAS_INLINE_DATA]", |r| Exact(r.packed))
        => ();

    /// Returns a part of a copy to the client when the work that `stream` has is done, as `MEMCPY_DTOH_ASYNC` does: `length` bytes (1 byte
    /// to 4 MiB) at `offset` of `size` bytes from `src`. With `is_packed` 1 the inline bytes are packed (rule 14), else they are `length`
    /// bytes; the worker chooses.
    0x02D1 GET_PACKED get_packed "hipMemcpyDtoHAsync" Extension sync Synchronizes:
        GetPacked { src: u64, size: u64, offset: u64, length: u64, stream: u64 }
        => GetPackedReply { is_packed: u32, reserved: u32 }
            + Bulk("[inline bytes]", |r| AtMost(packed_max_bytes(r.length)));

    /// Loads a code object of `data_size` bytes that is packed (rule 14) in `packed` bytes, which are fewer.
    0x02D2 MODULE_LOAD_PACKED module_load_packed "hipModuleLoadData" Extension sync Creates:
        ModuleLoadPacked { data_size: u64, packed: u64 }
            + Bulk("packed:inline bytes[packed]", |r| Exact(r.packed))
        => ModuleLoadDataReply;

    /// Returns what `STREAM_QUERY` does. If that is `hipErrorNotReady`, one `WATCH_OVER` with this `number` comes when a `STREAM_QUERY`
    /// would return something else: before any reply that is later than that. A request for the same stream takes the place of this
    /// one. The session need not have more than 64 such streams and events at a time; of another one `WATCH_OVER` says at
    /// once that it is not watched. A session needs the features NOTIFICATIONS and WATCHES for this and for the next two.
    0x02D8 STREAM_WATCH stream_watch "hipStreamQuery" Extension sync Plain:
        StreamWatch { stream: u64, number: u64 } => ();

    /// Returns what `EVENT_QUERY` does, and asks to be told as `STREAM_WATCH` does. If the event is recorded anew it is watched until that
    /// record is done.
    0x02D9 EVENT_WATCH event_watch "hipEventQuery" Extension sync Plain:
        EventWatch { event: u64, number: u64 } => ();

    /// Tells that a query of the stream or event of the request with this `number` would now return something else: `error_code`, 0 if its
    /// work is done. `hipErrorNotReady` says that it is not watched. It comes once for each, and not for those whose stream or event a
    /// `DEVICE_RESET` destroyed. Errors of the work stay for a wait. `reserved` is 0.
    0x02DA WATCH_OVER watch_over "" Extension notify Exempt:
        WatchOver { number: u64, error_code: i32, reserved: u32 } => ();

    /// Asks for the variables of a module with these names, each of which is followed by a NUL: at most 64, in at most 8192 bytes. One
    /// `VARIABLES_TOLD` with this `number` comes, before any later reply. For `VARIABLE_PUT` they are numbered from 0 on, until
    /// the next such request for the module. A session needs the features NOTIFICATIONS and VARIABLES for this and for the next two.
    0x02E0 MODULE_VARIABLES module_variables "hipModuleGetGlobal" Extension forget Exempt:
        ModuleVariables { module: u64, number: u64, count: u32, names_length: u32 }
            + Small("names:bytes[names_length]", |r| Exact(u64::from(r.names_length)))
        => ();

    /// Tells what `MODULE_GET_GLOBAL` would return for each name of the `MODULE_VARIABLES` with this `number`, in their order; zeros for a
    /// name for which it would fail. `reserved` is 0.
    0x02E1 VARIABLES_TOLD variables_told "" Extension notify Exempt:
        VariablesTold { number: u64, count: u32, reserved: u32 }
            + Small("variables:{address:u64 size:u64}[count]", |r| Exact(items::<Variable>(r.count)))
        => ();

    /// Copies from the client to a variable, in the order of a stream: `length` bytes at `offset` of the variable with this number in the
    /// last `MODULE_VARIABLES` of the module. As `MEMCPY_HTOD_ASYNC`; with `waits` 1 later requests come behind the copy, as with
    /// `MEMCPY_HTOD`. Fails as `MODULE_GET_GLOBAL` if it was not found, with `hipErrorInvalidValue` if nothing has this number or it has fewer bytes.
    0x02E2 VARIABLE_PUT variable_put "hipMemcpyHtoDAsync" Extension forget Plain:
        VariablePut { module: u64, variable: u32, waits: u32, offset: u64, length: u64, stream: u64 }
            + Bulk("[inline bytes of length length, flag HAS_INLINE_DATA]", |r| Exact(r.length))
        => ();

    /// Asks to be told the times between events of these pairs, at most 64. One `TIMES_TOLD` with this `number` comes right before the next
    /// reply, for which the worker may have waited until the events happened; not before that to `SHUTDOWN`. The session's next such request takes
    /// the place of one that was not told. A session needs the features NOTIFICATIONS and TIMES for this.
    0x02E4 EVENT_TIMES event_times "hipEventElapsedTime" Extension forget Exempt:
        EventTimes { number: u64, count: u32, reserved: u32 }
            + Small("pairs:{start:u64 stop:u64}[count]", |r| Exact(items::<EventPair>(r.count)))
        => ();

    /// Tells for each pair of the `EVENT_TIMES` with this `number`, in their order, what `EVENT_ELAPSED_TIME` would return: the milliseconds, or with
    /// 0 the error. `reserved` is 0.
    0x02E5 TIMES_TOLD times_told "" Extension notify Exempt:
        TimesTold { number: u64, count: u32, reserved: u32 }
            + Small("times:{milliseconds:f32 error_code:i32}[count]", |r| Exact(items::<EventTime>(r.count)))
        => ();

    /// Tells when requests of the session were carried out, and when the device did their work, in nanoseconds of a clock that began with
    /// the session. `kind` 1 is a request: it was received at `first_ns`, its turn began at `begin_ns`, and it was completed at `end_ns`.
    /// `kind` 2 is work on the device: it was enqueued at `first_ns`, began at `begin_ns` and ended at `end_ns`. `stream` and
    /// `function` are the handles of the work's stream and kernel (0: none, or not known). Entries come in no order, and at most 512 at a
    /// time; those of an answered request and of what was done before come right behind its reply. `lost` is how many were left
    /// out since the last time. A session needs the features NOTIFICATIONS and TRACE for this.
    0x02E8 TRACED traced "" Extension notify Exempt:
        Traced { count: u32, lost: u32 }
            + Small("entries:{request:u32 kind:u32 stream:u64 function:u64 first_ns:u64 begin_ns:u64 end_ns:u64}[count]",
                |r| Exact(items::<TraceEntry>(r.count)))
        => ();

    /// Returns the granularity of a device's mappings in bytes: every address and size of the requests from here to `MEM_UNMAP` is a
    /// multiple of it. A session needs the feature MAPPINGS for this and for those.
    0x02F0 MEM_GRANULARITY mem_granularity "hipMemGetAllocationGranularity" Extension sync Plain static [Device]:
        MemGranularity { device: i32 } => MemGranularityReply { granularity: u64 };

    /// Reserves `size` bytes of addresses, at `wanted` if that is not 0 and they are free there; otherwise the first is a multiple of
    /// `alignment`, a power of two or 0.
    0x02F1 ADDRESS_RESERVE address_reserve "hipMemAddressReserve" Extension sync Creates:
        AddressReserve { size: u64, alignment: u64, wanted: u64 } => AddressReserveReply { device_ptr: u64 };

    /// Gives reserved addresses back: a whole range, in which nothing is mapped.
    0x02F2 ADDRESS_FREE address_free "hipMemAddressFree" Extension forget Plain:
        AddressFree { device_ptr: u64, size: u64 } => ();

    /// Allocates `size` bytes of a device's memory that have no address. `reserved` is 0.
    0x02F3 PHYSICAL_CREATE physical_create "hipMemCreate" Extension sync Creates:
        PhysicalCreate { size: u64, device: i32, reserved: u32 } => PhysicalCreateReply { physical: u64 };

    /// Gives up the handle of physical memory, which is there until it is not mapped any more.
    0x02F4 PHYSICAL_RELEASE physical_release "hipMemRelease" Extension forget Plain:
        PhysicalRelease { physical: u64 } => ();

    /// Returns a name by which another session can have this physical memory, too, as long as somebody has it.
    0x02F5 PHYSICAL_EXPORT physical_export "hipMemExportToShareableHandle" Extension sync Plain:
        PhysicalExport { physical: u64 } => PhysicalExportReply { handle: [u8; 64] };

    /// Returns a handle of the physical memory with this name. It counts as the session's memory.
    0x02F6 PHYSICAL_IMPORT physical_import "hipMemImportFromShareableHandle" Extension sync Creates:
        PhysicalImport { handle: [u8; 64] } => PhysicalImportReply { physical: u64, size: u64 };

    /// Maps physical memory, all of its `size` bytes, at `device_ptr`: addresses of one range that are reserved and have nothing. Nobody may
    /// access them before `MEM_SET_ACCESS`.
    0x02F7 MEM_MAP mem_map "hipMemMap" Extension forget Plain:
        MemMap { device_ptr: u64, size: u64, physical: u64 } => ();

    /// Says whether a device may access the memory that is mapped in these bytes: whole mappings, which follow each other without a gap. `access`
    /// is 0 for none, 1 to read, 3 to read and write. Accessible mappings that follow each other are used like one allocation.
    /// With `access` 0 it comes behind all work of the device.
    0x02F8 MEM_SET_ACCESS mem_set_access "hipMemSetAccess" Extension forget Plain:
        MemSetAccess { device_ptr: u64, size: u64, device: i32, access: u32 } => ();

    /// Ends a mapping, behind all work of the device. The addresses stay reserved.
    0x02F9 MEM_UNMAP mem_unmap "hipMemUnmap" Extension forget Plain:
        MemUnmap { device_ptr: u64, size: u64 } => ();

    /// Creates a stream. `flags`: 1 is `hipStreamNonBlocking`.
    0x0300 STREAM_CREATE stream_create "hipStreamCreate" Hipr10 sync Creates:
        StreamCreate { flags: u32, priority: i32 } => StreamCreateReply { stream: u64 };

    /// Creates a stream; `priority` is ignored.
    0x0301 STREAM_CREATE_WITH_FLAGS stream_create_with_flags "hipStreamCreateWithFlags" Extension sync Creates:
        StreamCreateWithFlags(StreamCreate) => StreamCreateReply;

    /// Creates a stream with a priority.
    0x0302 STREAM_CREATE_WITH_PRIORITY stream_create_with_priority
        "hipStreamCreateWithPriority" Extension sync Creates:
        StreamCreateWithPriority(StreamCreate) => StreamCreateReply;

    /// Destroys a stream once its work is done.
    0x0303 STREAM_DESTROY stream_destroy "hipStreamDestroy" Hipr10 forget Plain:
        StreamDestroy { stream: u64 } => ();

    /// Waits for all work of a stream.
    0x0304 STREAM_SYNCHRONIZE stream_synchronize "hipStreamSynchronize" Hipr10 sync Synchronizes:
        StreamSynchronize { stream: u64 } => ();

    /// Replies without an error if the work of a stream is done, else with `hipErrorNotReady`.
    0x0305 STREAM_QUERY stream_query "hipStreamQuery" Extension sync Plain:
        StreamQuery { stream: u64 } => ();

    /// Makes later work of a stream wait for an event.
    0x0306 STREAM_WAIT_EVENT stream_wait_event "hipStreamWaitEvent" Hipr10 forget Plain:
        StreamWaitEvent { stream: u64, event: u64, flags: u32 } => ();

    /// Returns the flags that a stream was created with.
    0x0307 STREAM_GET_FLAGS stream_get_flags "hipStreamGetFlags" Extension sync Plain:
        StreamGetFlags { stream: u64 } => StreamGetFlagsReply { flags: u32 };

    /// Returns the priority of a stream.
    0x0308 STREAM_GET_PRIORITY stream_get_priority "hipStreamGetPriority" Extension sync Plain:
        StreamGetPriority { stream: u64 } => StreamGetPriorityReply { priority: i32 };

    /// Returns whether a stream is being captured (`hipStreamCaptureStatus`), and into which graph.
    0x0309 STREAM_GET_CAPTURE_INFO stream_get_capture_info "hipStreamGetCaptureInfo" Extension sync Plain:
        StreamGetCaptureInfo { stream: u64 }
        => StreamGetCaptureInfoReply { capture_status: i32, graph: u64, reserved: u32 };

    /// Replaces or extends the list of nodes that the next captured node depends on.
    0x030A STREAM_UPDATE_CAPTURE_DEPENDENCIES stream_update_capture_dependencies
        "hipStreamUpdateCaptureDependencies" Extension sync Plain:
        StreamUpdateCaptureDependencies { stream: u64, num_dependencies: u32, flags: u32 }
            + Small("nodes:u64[num_dependencies]", |r| Exact(items::<u64>(r.num_dependencies)))
        => ();

    /// Creates an event. `flags`: `hipEvent*`.
    0x0400 EVENT_CREATE event_create "hipEventCreate" Hipr10 sync Creates:
        EventCreate { flags: u32 } => EventCreateReply { event: u64 };

    /// Creates an event, like `EVENT_CREATE`.
    0x0401 EVENT_CREATE_WITH_FLAGS event_create_with_flags "hipEventCreateWithFlags" Extension sync Creates:
        EventCreateWithFlags { flags: u32 } => EventCreateWithFlagsReply { event: u64 };

    /// Destroys an event.
    0x0402 EVENT_DESTROY event_destroy "hipEventDestroy" Hipr10 forget Plain:
        EventDestroy { event: u64 } => ();

    /// Records an event behind the work that a stream has been given so far.
    0x0403 EVENT_RECORD event_record "hipEventRecord" Hipr10 forget Plain:
        EventRecord { event: u64, stream: u64 } => ();

    /// Waits until an event is complete.
    0x0404 EVENT_SYNCHRONIZE event_synchronize "hipEventSynchronize" Hipr10 sync Synchronizes:
        EventSynchronize { event: u64 } => ();

    /// Replies without an error if an event is complete, else with `hipErrorNotReady`.
    0x0405 EVENT_QUERY event_query "hipEventQuery" Hipr10 sync Plain:
        EventQuery { event: u64 } => ();

    /// Returns the milliseconds between two complete events.
    0x0406 EVENT_ELAPSED_TIME event_elapsed_time "hipEventElapsedTime" Hipr10 sync Plain:
        EventElapsedTime { start_event: u64, stop_event: u64 }
        => EventElapsedTimeReply { milliseconds: f32 };

    /// Loads a code object (an ELF or an offload bundle).
    0x0500 MODULE_LOAD_DATA module_load_data "hipModuleLoadData" Hipr10 sync Creates:
        ModuleLoadData { data_size: u64 }
            + Bulk("code_object:inline bytes[data_size]", |r| Exact(r.data_size))
        => ModuleLoadDataReply { module: u64 };

    /// Loads a code object; `hipModuleLoadDataEx`'s options are not transmitted.
    0x0501 MODULE_LOAD_DATA_EX module_load_data_ex "hipModuleLoadDataEx" Extension sync Creates:
        ModuleLoadDataEx(ModuleLoadData)
            + Bulk("code_object:inline bytes[data_size]", |r| Exact(r.data_size))
        => ModuleLoadDataReply;

    /// Unloads a module.
    0x0502 MODULE_UNLOAD module_unload "hipModuleUnload" Hipr10 forget Plain:
        ModuleUnload { module: u64 } => ();

    /// Returns a kernel of a module. `num_args` is the size of its kernarg segment in bytes, `num_params` the number of its
    /// explicit parameters; entries of `params` beyond it are zero.
    0x0503 MODULE_GET_FUNCTION module_get_function
        "hipModuleGetFunction" Hipr10Except("array length") sync Plain:
        ModuleGetFunction { module: u64 }
            + Small("function_name:cstr[256]", |_| AtLeast(1))
        => ModuleGetFunctionReply { function: u64, num_args: u32, num_params: u32, params: [Param; 64] };

    /// Returns the address and the size in bytes of a module's variable.
    0x0504 MODULE_GET_GLOBAL module_get_global "hipModuleGetGlobal" Extension sync Plain:
        ModuleGetGlobal { module: u64 }
            + Small("name:cstr[256]", |_| AtLeast(1))
        => ModuleGetGlobalReply { device_ptr: u64, size: u64 };

    /// Launches a kernel. The grid is counted in blocks, `shared_mem` is dynamic LDS in bytes. `LaunchArgs` reads the
    /// arguments.
    0x0510 LAUNCH_KERNEL launch_kernel
        "hipModuleLaunchKernel" Hipr10 when("forget; sync when start_event or stop_event is not 0", |r| r.is_timed()) Plain:
        LaunchKernel {
            function: u64, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32,
            block_dim_y: u32, block_dim_z: u32, shared_mem: u32, stream: u64, num_args: u32,
            launch_flags: u32, start_event: u64, stop_event: u64, ext_flags: u32,
        }
            + Small("args:{offset:u32 size:u32}[num_args] arg_data:bytes", |r| AtLeast(items::<Param>(r.num_args)))
        => ();

    /// Launches a kernel whose blocks are all resident at the same time.
    0x0511 LAUNCH_COOPERATIVE_KERNEL launch_cooperative_kernel
        "hipModuleLaunchCooperativeKernel" Extension forget Plain:
        LaunchCooperativeKernel(LaunchKernel)
            + Small("args:{offset:u32 size:u32}[num_args] arg_data:bytes", |r| AtLeast(items::<Param>(r.num_args)))
        => ();

    /// Launches a kernel, recording `start_event` before and `stop_event` after it, with `ext_flags`.
    0x0512 MODULE_LAUNCH_KERNEL module_launch_kernel
        "hipExtModuleLaunchKernel" Extension when("forget; sync when start_event or stop_event is not 0", |r| r.is_timed()) Plain:
        ModuleLaunchKernel(LaunchKernel)
            + Small("args:{offset:u32 size:u32}[num_args] arg_data:bytes", |r| AtLeast(items::<Param>(r.num_args)))
        => ();

    /// Returns the attributes of a kernel; sizes are in bytes.
    0x0514 FUNC_GET_ATTRIBUTES func_get_attributes "hipFuncGetAttributes" Extension sync Plain:
        FuncGetAttributes { function: u64 }
        => FuncGetAttributesReply {
            shared_size_bytes: i32, const_size_bytes: i32, local_size_bytes: i32, num_regs: i32,
            max_threads_per_block: i32, ptx_version: i32, binary_version: i32, cache_mode_ca: i32,
            max_dynamic_shared_size_bytes: i32, preferred_shared_memory_carveout: i32,
        };

    /// Sets an attribute (`hipFuncAttribute`) of a kernel.
    0x0515 FUNC_SET_ATTRIBUTE func_set_attribute "hipFuncSetAttribute" Extension sync Plain:
        FuncSetAttribute { function: u64, attribute: i32, value: i32 } => ();

    /// Requests a division of memory between cache and LDS (`hipFuncCache_t`) for a kernel.
    0x0516 FUNC_SET_CACHE_CONFIG func_set_cache_config "hipFuncSetCacheConfig" Extension forget Plain:
        FuncSetCacheConfig { function: u64, cache_config: i32 } => ();

    /// Returns the worker's last error in the reply's `error_code` and resets it.
    0x0600 GET_LAST_ERROR get_last_error "hipGetLastError" Extension sync Plain:
        GetLastError {} => ();

    /// Returns the worker's last error in the reply's `error_code` without resetting it.
    0x0601 PEEK_AT_LAST_ERROR peek_at_last_error "hipPeekAtLastError" Extension sync Plain:
        PeekAtLastError {} => ();

    /// Returns the message of an error code.
    0x0602 GET_ERROR_STRING get_error_string "hipGetErrorString" Extension sync Plain:
        GetErrorString { error_code: i32 } => GetErrorStringReply { error_string: Text<256> };

    /// Returns the name of an error code.
    0x0603 GET_ERROR_NAME get_error_name "hipGetErrorName" Extension sync Plain:
        GetErrorName { error_code: i32 } => GetErrorNameReply { error_string: Text<256> };

    /// Adds a copy of `height` rows of `width` bytes to a graph.
    0x0640 GRAPH_ADD_MEMCPY_NODE graph_add_memcpy_node "hipGraphAddMemcpyNode" Extension sync Creates:
        GraphAddMemcpyNode {
            graph: u64, num_deps: u32, reserved: u32, dst: u64, src: u64, width: u64, height: u64,
            dst_pitch: u64, src_pitch: u64, kind: i32, reserved2: u32,
        }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddMemcpyNodeReply { node: u64 };

    /// Adds a fill of `height` rows of `width` elements of `element_size` bytes to a graph.
    0x0641 GRAPH_ADD_MEMSET_NODE graph_add_memset_node "hipGraphAddMemsetNode" Extension sync Creates:
        GraphAddMemsetNode {
            graph: u64, num_deps: u32, reserved: u32, dst: u64, pitch: u64, value: i32, element_size: u32,
            width: u64, height: u64,
        }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddMemsetNodeReply { node: u64 };

    /// Adds a launch to a graph; the grid is counted in blocks.
    0x0642 GRAPH_ADD_KERNEL_NODE graph_add_kernel_node "hipGraphAddKernelNode" Extension sync Creates:
        GraphAddKernelNode {
            graph: u64, num_deps: u32, reserved: u32, func: u64, grid_dim: [u32; 3], block_dim: [u32; 3],
            shared_mem_bytes: u32, num_args: u32,
        }
            + Small("deps:u64[num_deps] args:u64[num_args]",
                |r| Exact(items::<u64>(r.num_deps) + items::<u64>(r.num_args)))
        => GraphAddKernelNodeReply { node: u64 };

    /// Adds edges to a graph. Creates: if a kept error hid that the edges were added, a client that repeats the request
    /// would be refused.
    0x0643 GRAPH_ADD_DEPENDENCIES graph_add_dependencies "hipGraphAddDependencies" Extension sync Creates:
        GraphAddDependencies { graph: u64, num_deps: u32 }
            + Small("edges:{from:u64 to:u64}[num_deps]", |r| Exact(items::<Edge>(r.num_deps)))
        => ();

    /// Adds a node that does nothing; other nodes can depend on it.
    0x0644 GRAPH_ADD_EMPTY_NODE graph_add_empty_node "hipGraphAddEmptyNode" Extension sync Creates:
        GraphAddEmptyNode { graph: u64, num_deps: u32 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddEmptyNodeReply { node: u64 };

    /// Returns the nodes of a graph, at most `max_nodes`.
    0x0645 GRAPH_GET_NODES graph_get_nodes "hipGraphGetNodes" Extension sync Plain:
        GraphGetNodes { graph: u64, max_nodes: u32 }
        => GraphGetNodesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Returns the nodes of a graph that depend on no other, at most `max_nodes`.
    0x0646 GRAPH_GET_ROOT_NODES graph_get_root_nodes "hipGraphGetRootNodes" Extension sync Plain:
        GraphGetRootNodes { graph: u64, max_nodes: u32 }
        => GraphGetRootNodesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Returns the edges of a graph, at most `max_edges`.
    0x0647 GRAPH_GET_EDGES graph_get_edges "hipGraphGetEdges" Extension sync Plain:
        GraphGetEdges { graph: u64, max_edges: u32 }
        => GraphGetEdgesReply { num_edges: u32, reserved: u32 }
            + Small("edges:{from:u64 to:u64}[num_edges]", |r| AtMost(items::<Edge>(r.max_edges)));

    /// Returns the type of a node (`hipGraphNodeType`).
    0x0648 GRAPH_NODE_GET_TYPE graph_node_get_type "hipGraphNodeGetType" Extension sync Plain:
        GraphNodeGetType { node: u64 } => GraphNodeGetTypeReply { r#type: i32 };

    /// Removes a node and its edges from its graph.
    0x0649 GRAPH_DESTROY_NODE graph_destroy_node "hipGraphDestroyNode" Extension sync Plain:
        GraphDestroyNode { node: u64 } => ();

    /// Adds a copy of `count` bytes to a graph.
    0x064A GRAPH_ADD_MEMCPY_NODE_1D graph_add_memcpy_node_1d "hipGraphAddMemcpyNode1D" Extension sync Creates:
        GraphAddMemcpyNode1D { graph: u64, num_deps: u32, reserved: u32, dst: u64, src: u64, count: u64, kind: i32 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddMemcpyNode1DReply { node: u64 };

    /// Adds a host function to a graph.
    0x064B GRAPH_ADD_HOST_NODE graph_add_host_node "hipGraphAddHostNode" Extension sync Creates:
        GraphAddHostNode { graph: u64, num_deps: u32, reserved: u32 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddHostNodeReply { node: u64 };

    /// Adds a whole graph as one node of another.
    0x064C GRAPH_ADD_CHILD_GRAPH_NODE graph_add_child_graph_node
        "hipGraphAddChildGraphNode" Extension sync Creates:
        GraphAddChildGraphNode { graph: u64, num_deps: u32, reserved: u32, child: u64 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddChildGraphNodeReply { node: u64 };

    /// Adds the recording of an event to a graph.
    0x064D GRAPH_ADD_EVENT_RECORD_NODE graph_add_event_record_node
        "hipGraphAddEventRecordNode" Extension sync Creates:
        GraphAddEventRecordNode { graph: u64, num_deps: u32, reserved: u32, event: u64 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddEventRecordNodeReply { node: u64 };

    /// Adds a wait for an event to a graph.
    0x064E GRAPH_ADD_EVENT_WAIT_NODE graph_add_event_wait_node "hipGraphAddEventWaitNode" Extension sync Creates:
        GraphAddEventWaitNode { graph: u64, num_deps: u32, reserved: u32, event: u64 }
            + Small("deps:u64[num_deps]", |r| Exact(items::<u64>(r.num_deps)))
        => GraphAddEventWaitNodeReply { node: u64 };

    /// Returns the version of the runtime: major * 10^7 + minor * 10^5 + patch.
    0x0700 RUNTIME_GET_VERSION runtime_get_version "hipRuntimeGetVersion" Hipr10 sync Plain static []:
        RuntimeGetVersion {} => RuntimeGetVersionReply { version: i32 };

    /// Returns the version of the driver: major * 10^7 + minor * 10^5 + patch.
    0x0701 DRIVER_GET_VERSION driver_get_version "hipDriverGetVersion" Hipr10 sync Plain static []:
        DriverGetVersion {} => DriverGetVersionReply { version: i32 };

    /// Returns the block size at which a kernel uses the device best, and the number of blocks that this takes.
    0x0710 OCCUPANCY_MAX_POTENTIAL_BLOCK_SIZE occupancy_max_potential_block_size
        "hipModuleOccupancyMaxPotentialBlockSize" Extension sync Plain:
        OccupancyMaxPotentialBlockSize { function: u64, dyn_shared_mem: u64, block_size_limit: i32, flags: u32 }
        => OccupancyMaxPotentialBlockSizeReply { min_grid_size: i32, block_size: i32 };

    /// Returns how many blocks of a kernel one compute unit holds at the same time. `dyn_shared_mem` is in bytes.
    0x0711 OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_SM occupancy_max_active_blocks_per_sm
        "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor" Extension sync Plain:
        OccupancyMaxActiveBlocksPerSm { function: u64, block_size: i32, dyn_shared_mem: u64 }
        => OccupancyMaxActiveBlocksPerSmReply { num_blocks: i32 };

    /// Creates a graph.
    0x0720 GRAPH_CREATE graph_create "hipGraphCreate" Extension sync Creates:
        GraphCreate { flags: u32 } => GraphCreateReply { graph: u64 };

    /// Destroys a graph.
    0x0721 GRAPH_DESTROY graph_destroy
        "hipGraphDestroy" Hipr10Except("layout") forget Plain:
        GraphDestroy { graph: u64 } => ();

    /// Instantiates a graph, so that it can be launched.
    0x0722 GRAPH_INSTANTIATE graph_instantiate "hipGraphInstantiate" Extension sync Creates:
        GraphInstantiate { graph: u64, flags: u32 } => GraphInstantiateReply { graph_exec: u64 };

    /// Launches an instantiated graph in the order of a stream.
    0x0723 GRAPH_LAUNCH graph_launch
        "hipGraphLaunch" Hipr10Except("layout") forget Plain:
        GraphLaunch { graph_exec: u64, stream: u64 } => ();

    /// Destroys an instantiated graph.
    0x0724 GRAPH_EXEC_DESTROY graph_exec_destroy "hipGraphExecDestroy" Extension forget Plain:
        GraphExecDestroy { graph_exec: u64 } => ();

    /// Begins to record the work of a stream instead of executing it. Creates: a capture that the client does not know of
    /// would block the stream.
    0x0725 STREAM_BEGIN_CAPTURE stream_begin_capture "hipStreamBeginCapture" Extension sync Creates:
        StreamBeginCapture { stream: u64, mode: i32 } => ();

    /// Ends a capture and returns its graph. Not Creates: if the request were not executed, the stream would stay in
    /// capture; a graph that the client does not know of is destroyed with the session.
    0x0726 STREAM_END_CAPTURE stream_end_capture "hipStreamEndCapture" Extension sync Plain:
        StreamEndCapture { stream: u64 } => StreamEndCaptureReply { graph: u64 };

    /// Returns whether a stream is being captured (`hipStreamCaptureStatus`).
    0x0727 STREAM_IS_CAPTURING stream_is_capturing "hipStreamIsCapturing" Extension sync Plain:
        StreamIsCapturing { stream: u64 } => StreamIsCapturingReply { capture_status: i32 };

    /// Copies a graph.
    0x0728 GRAPH_CLONE graph_clone "hipGraphClone" Extension sync Creates:
        GraphClone { original_graph: u64 } => GraphCloneReply { cloned_graph: u64 };

    /// Returns the nodes that a node depends on, at most `max_nodes`.
    0x0729 GRAPH_NODE_GET_DEPENDENCIES graph_node_get_dependencies
        "hipGraphNodeGetDependencies" Extension sync Plain:
        GraphNodeGetDependencies { node: u64, max_nodes: u32 }
        => GraphNodeGetDependenciesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Returns the nodes that depend on a node, at most `max_nodes`.
    0x072A GRAPH_NODE_GET_DEPENDENT_NODES graph_node_get_dependent_nodes
        "hipGraphNodeGetDependentNodes" Extension sync Plain:
        GraphNodeGetDependentNodes { node: u64, max_nodes: u32 }
        => GraphNodeGetDependentNodesReply { num_nodes: u32, reserved: u32 }
            + Small("nodes:u64[num_nodes]", |r| AtMost(items::<u64>(r.max_nodes)));

    /// Updates an instantiated graph with the parameters of another graph of the same shape; returns a
    /// `hipGraphExecUpdateResult`.
    0x072B GRAPH_EXEC_UPDATE graph_exec_update "hipGraphExecUpdate" Extension sync Plain:
        GraphExecUpdate { graph_exec: u64, graph: u64 } => GraphExecUpdateReply { update_result: i32 };

    /// Changes the parameters of one kernel node of an instantiated graph.
    0x072C GRAPH_EXEC_KERNEL_NODE_SET_PARAMS graph_exec_kernel_node_set_params
        "hipGraphExecKernelNodeSetParams" Extension sync Plain:
        GraphExecKernelNodeSetParams {
            graph_exec: u64, node: u64, func: u64, grid_dim: [u32; 3], block_dim: [u32; 3], shared_mem: u32,
            num_params: u32,
        }
            + Small("params:u64[num_params]", |r| Exact(items::<u64>(r.num_params)))
        => ();

    /// Queues a callback of the client behind the work that a stream has been given so far. Creates: a callback that the
    /// client believes failed would still run.
    0x0730 STREAM_ADD_CALLBACK stream_add_callback "hipStreamAddCallback" Extension sync Creates:
        StreamAddCallback { stream: u64, callback_id: u64, flags: u32 } => ();

    /// Loads a code object and returns one of its kernels: `MODULE_LOAD_DATA` and `MODULE_GET_FUNCTION` in one round trip.
    0x0744 MODULE_LOAD_AND_GET_FUNCTION module_load_and_get_function
        "hipModuleLoadData + hipModuleGetFunction" Hipr10 sync Creates:
        ModuleLoadAndGetFunction { data_size: u64, name_length: u32, pad: u32 }
            + Bulk("name:bytes[name_length] code_object:bytes[data_size]",
                |r| Exact(r.data_size.saturating_add(u64::from(r.name_length))))
        => ModuleLoadAndGetFunctionReply {
            module: u64, function: u64, num_args: u32, num_params: u32, params: [Param; 64],
        };

    /// Allocates up to 64 buffers in one round trip. Only the first `count` sizes (in bytes) and pointers are used.
    0x0745 MALLOC_BATCH malloc_batch "hipMalloc x count" Hipr10Except("padding") sync Creates:
        MallocBatch { count: u32, pad: u32, sizes: [u64; 64] }
        => MallocBatchReply { count: u32, pad: u32, ptrs: [u64; 64] };

    /// Creates up to 32 streams in one round trip.
    0x0746 STREAM_CREATE_BATCH stream_create_batch
        "hipStreamCreateWithFlags x count" Hipr10Except("padding") sync Creates:
        StreamCreateBatch { count: u32, flags: u32 }
        => StreamCreateBatchReply { count: u32, pad: u32, handles: [u64; 32] };

    /// Creates up to 32 events in one round trip.
    0x0747 EVENT_CREATE_BATCH event_create_batch
        "hipEventCreateWithFlags x count" Hipr10Except("padding") sync Creates:
        EventCreateBatch { count: u32, flags: u32 }
        => EventCreateBatchReply { count: u32, pad: u32, handles: [u64; 32] };

    /// Returns the size in bytes of the allocation at an address.
    0x0751 MEM_PTR_GET_INFO mem_ptr_get_info "hipMemPtrGetInfo" Extension sync Plain:
        MemPtrGetInfo { ptr: u64 } => MemPtrGetInfoReply { size: u64 };

    /// Opens the management interface.
    0x0800 SMI_INIT smi_init "" Extension sync Plain:
        SmiInit { init_flags: u64 } => ();

    /// Closes the management interface.
    0x0801 SMI_SHUTDOWN smi_shutdown "" Extension sync Plain:
        SmiShutdown {} => ();

    /// Returns the number of processors that the management interface lists.
    0x0802 SMI_GET_PROCESSOR_COUNT smi_get_processor_count "" Extension sync Plain:
        SmiGetProcessorCount {} => SmiGetProcessorCountReply { processor_count: u32 };

    /// Returns measurements: temperatures in °C, power in W, activity in percent, clocks in MHz, memory in bytes. hipr's
    /// workers do not support it: HIP has no function for it, and an emulated device has nothing to measure.
    0x0820 SMI_GET_GPU_METRICS smi_get_gpu_metrics "" Extension sync Plain:
        SmiGetGpuMetrics { processor_index: u32 }
        => SmiGetGpuMetricsReply {
            temperature_edge: i32, temperature_hotspot: i32, temperature_mem: i32, average_socket_power: u32,
            gfx_activity: u32, umc_activity: u32, mm_activity: u32, current_gfxclk: u32, current_uclk: u32,
            current_socclk: u32, vram_total: u64, vram_used: u64, fan_speed_rpm: u32, pcie_bandwidth: u32,
            throttle_status: u32, reserved: u32,
        };

    /// Returns the total and the used memory in bytes.
    0x0825 SMI_GET_VRAM_USAGE smi_get_vram_usage "" Extension sync Plain:
        SmiGetVramUsage { processor_index: u32 }
        => SmiGetVramUsageReply { vram_total: u64, vram_used: u64 };

    /// Returns the name, vendor and numbers that identify a processor.
    0x0830 SMI_GET_ASIC_INFO smi_get_asic_info "" Extension sync Plain:
        SmiGetAsicInfo { processor_index: u32 }
        => SmiGetAsicInfoReply {
            market_name: Text<256>, vendor_id: u32, device_id: u32, rev_id: u32, num_compute_units: u32,
            asic_serial: Text<64>,
        };
}

/// All operations, sorted by code.
pub static OPS: &[Info] = TABLE;

const _: () = statics::check_marks(TABLE);

/// Index into [`OPS`] by operation code; `NO_ROW` where the table has no row.
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
    /// Returns the operation's row, or `None` if its code is not in the table.
    #[inline]
    pub fn info(self) -> Option<&'static Info> {
        OPS.get(self.row()?)
    }

    /// Returns the operation's index in [`OPS`], or `None` if its code is not in the table.
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

    /// A visitor that returns the operation's name and the bytes it was given.
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
