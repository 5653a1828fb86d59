//! Tests of single operations: successful and refused calls. (What all of them have in common is tested elsewhere.)

mod common;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult, Text};

const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);
const NO_DEVICE: HipResult<()> = Err(HipError::INVALID_DEVICE);

#[test]
fn devices() {
    let (worker, _) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    assert_eq!(peer.call(&GetDeviceCount {}).unwrap().count, 1);
    assert_eq!(peer.call(&SetDevice { device_id: 0 }), Ok(()));
    assert_eq!(peer.call(&GetDevice {}).unwrap().device_id, 0);
    assert_eq!(peer.call(&GetDeviceProperties { device_id: 0 }).unwrap().warp_size, 64);
    assert_eq!(peer.call(&DeviceGetAttribute { device_id: 0, attribute: 87 }).unwrap().value, 87);
    assert_eq!(peer.call(&DeviceGet { ordinal: 0 }).unwrap().device, 0);
    assert_eq!(peer.call(&DeviceGetName { device: 0, len: 256 }).unwrap().name, Text::new("hipr script"));
    assert_eq!(peer.call(&DeviceGetName { device: 0, len: 5 }).unwrap().name, Text::new("hipr"));
    assert_eq!(peer.call(&DeviceTotalMem { device: 0 }).unwrap().bytes, 8 << 30);
    assert_eq!(peer.call(&DeviceComputeCapability { device: 0 }).unwrap().major, 0);
    let address = Text::new("0000:00:00.0");
    assert_eq!(peer.call(&DeviceGetPciBusId { device: 0, len: 32 }).unwrap().pci_bus_id, address);
    assert_eq!(peer.call(&DeviceGetByPciBusId { pci_bus_id: address }).unwrap().device, 0);
    assert_eq!(peer.call(&DeviceGetByPciBusId { pci_bus_id: Text::new("0001:00:00.0") }).map(drop), INVALID);
    assert_eq!(
        peer.call(&DeviceCanAccessPeer { device_id: 0, peer_device_id: 0 }).unwrap().can_access_peer,
        0
    );
    assert_eq!(peer.call(&DeviceGetStreamPriorityRange {}).unwrap().greatest_priority, 0);
    let choose = |total_global_mem| ChooseDevice {
        total_global_mem,
        major: 0,
        minor: 0,
        multi_processor_count: 0,
        warp_size: 0,
        max_threads_per_block: 0,
    };
    assert_eq!(peer.call(&choose(1 << 30)).unwrap().device, 0);
    assert_eq!(peer.call(&choose(u64::MAX)).unwrap().device, 0, "the nearest one is better than none");
    assert_eq!(peer.call_with(&SetValidDevices { len: 1 }, &[0; 4]), Ok(()));
    assert_eq!(peer.call_with(&SetValidDevices { len: 1 }, &[9; 4]), NO_DEVICE);
    assert_eq!(peer.call(&RuntimeGetVersion {}).unwrap().version, 60_443_484);
    assert_eq!(peer.call(&DriverGetVersion {}).unwrap().version, 60_443_484);

    for device_id in [-1, 1, i32::MIN, i32::MAX] {
        assert_eq!(peer.call(&SetDevice { device_id }), NO_DEVICE);
        assert_eq!(peer.call(&GetDeviceProperties { device_id }).map(drop), NO_DEVICE);
        assert_eq!(peer.call(&DeviceGetAttribute { device_id, attribute: 87 }).map(drop), NO_DEVICE);
        assert_eq!(peer.call(&DeviceGet { ordinal: device_id }).map(drop), NO_DEVICE);
        assert_eq!(peer.call(&DeviceGetPciBusId { device: device_id, len: 32 }).map(drop), NO_DEVICE);
        assert_eq!(peer.call(&DeviceEnablePeerAccess { peer_device_id: device_id, flags: 0 }), NO_DEVICE);
        let access = DeviceCanAccessPeer { device_id: 0, peer_device_id: device_id };
        assert_eq!(peer.call(&access).map(drop), NO_DEVICE);
    }
    for device in [1, 1 << 31, 1 << 32, u64::MAX] {
        assert_eq!(peer.call(&DeviceGetName { device, len: 9 }).map(drop), NO_DEVICE);
        assert_eq!(peer.call(&DeviceTotalMem { device }).map(drop), NO_DEVICE);
    }
    assert_eq!(peer.call(&DeviceEnablePeerAccess { peer_device_id: 0, flags: 1 }), INVALID);
    assert_eq!(peer.call(&DeviceDisablePeerAccess { peer_device_id: 0, flags: 0 }), NO_DEVICE, "of itself");
    for len in [0, -1, i32::MIN] {
        assert_eq!(peer.call(&DeviceGetName { device: 0, len }).map(drop), INVALID);
    }
}

#[test]
fn settings_are_kept_by_session() {
    let (worker, _) = scripted(|_| {});
    let (mut a, mut b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    a.call(&SetDeviceFlags { flags: 4 }).unwrap();
    a.call(&DeviceSetCacheConfig { cache_config: 2 }).unwrap();
    a.call(&DeviceSetSharedMemConfig { shared_mem_config: 2 }).unwrap();
    a.call(&DeviceSetLimit { limit: 0, value: 4096 }).unwrap();
    let read = |peer: &mut Peer| {
        let flags = peer.call(&GetDeviceFlags {}).unwrap().flags;
        let cache = peer.call(&DeviceGetCacheConfig {}).unwrap().cache_config;
        let shared = peer.call(&DeviceGetSharedMemConfig {}).unwrap().shared_mem_config;
        (flags, cache, shared, peer.call(&DeviceGetLimit { limit: 0, value: 0 }).map(|limit| limit.value))
    };
    assert_eq!(read(&mut a), (4, 2, 2, Ok(4096)));
    assert_eq!(read(&mut b), (1, 0, 1, Err(HipError::UNSUPPORTED_LIMIT)));
    assert_eq!(a.call(&DeviceSetCacheConfig { cache_config: 4 }), INVALID);
    assert_eq!(a.call(&DeviceSetSharedMemConfig { shared_mem_config: -1 }), INVALID);
}

#[test]
fn errors_have_names_and_messages() {
    let (worker, _) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    for (error_code, name, message) in [
        (0, "hipSuccess", "no error"),
        (1, "hipErrorInvalidValue", "invalid argument"),
        (700, "hipErrorIllegalAddress", "an illegal memory access was encountered"),
        (12345, "hipErrorUnknown", "unknown error"),
        (-7, "hipErrorUnknown", "unknown error"),
    ] {
        assert_eq!(peer.call(&GetErrorName { error_code }).unwrap().error_string, Text::new(name));
        assert_eq!(peer.call(&GetErrorString { error_code }).unwrap().error_string, Text::new(message));
    }
    assert_eq!(peer.call(&PeekAtLastError {}), Ok(()));
}

#[test]
fn memory_of_every_kind() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    let device = peer.malloc(100);
    let host = peer.call(&MallocHost { size: 200, flags: 3 }).unwrap().device_ptr;
    let managed = peer.call(&MallocManaged { size: 300, flags: 1 }).unwrap().device_ptr;
    let stream = peer.stream_create();
    let ordered = peer.call(&MallocAsync { size: 400, stream }).unwrap().device_ptr;
    let pitched = peer.call(&MemAllocPitch { width_in_bytes: 257, height: 3, element_size: 4 }).unwrap();
    assert_eq!(pitched.pitch, 512);

    let mut attributes = |ptr| {
        let a = peer.call(&PointerGetAttributes { ptr }).unwrap();
        let size = peer.call(&MemPtrGetInfo { ptr }).unwrap().size;
        (a.memory_type, a.device_pointer, a.host_pointer, a.is_managed, a.allocation_flags, size)
    };
    assert_eq!(attributes(device + 99), (2, device + 99, 0, 0, 0, 100));
    assert_eq!(attributes(host), (1, host, host, 0, 3, 200));
    assert_eq!(attributes(managed + 8), (3, managed + 8, managed + 8, 1, 1, 300));
    assert_eq!(attributes(ordered), (2, ordered, 0, 0, 0, 400));
    assert_eq!(attributes(pitched.dptr).5, 3 * 512);
    let mut attribute =
        |attribute| peer.call(&PointerGetAttribute { ptr: host + 5, attribute, reserved: 0 }).map(|r| r.data);
    let expected = [(2, 1), (3, host + 5), (4, host + 5), (8, 0), (9, 0), (11, host), (12, 200), (13, 1)];
    for (number, value) in expected {
        assert_eq!(attribute(number), Ok(value), "{number}");
    }
    assert_eq!((attribute(0), attribute(18)), (Err(HipError::INVALID_VALUE), Err(HipError::INVALID_VALUE)));
    assert_eq!(attribute(1), Err(HipError::NOT_SUPPORTED));
    assert_eq!(
        peer.call(&HostGetDevicePointer { host_ptr: host + 7, flags: 0 }).unwrap().device_ptr,
        host + 7
    );
    assert_eq!(peer.call(&HostGetDevicePointer { host_ptr: device, flags: 0 }).map(drop), INVALID);
    let advise = |dev_ptr, count| MemAdvise { dev_ptr, count, advice: 1, device: 0 };
    assert_eq!(peer.call(&advise(managed, 300)), Ok(()));
    assert_eq!(peer.call(&advise(managed, 301)), INVALID);
    assert_eq!(peer.call(&advise(device, 1)), INVALID);
    let prefetch = |device| MemPrefetchAsync { dev_ptr: managed, count: 300, device, reserved: 0, stream };
    assert_eq!((peer.call(&prefetch(0)), peer.call(&prefetch(-1))), (Ok(()), Ok(())));
    assert_eq!(peer.call(&prefetch(3)), NO_DEVICE);

    let info = peer.call(&MemGetInfo {}).unwrap();
    assert_eq!(info.total_bytes - info.free_bytes, 100 + 200 + 300 + 400 + 3 * 512);
    assert_eq!(peer.call(&FreeHost { device_ptr: device }), INVALID);
    assert_eq!(peer.call(&Free { device_ptr: device + 1 }), INVALID);
    peer.call(&FreeHost { device_ptr: host }).unwrap();
    peer.call(&Free { device_ptr: managed }).unwrap();
    peer.call(&FreeAsync { device_ptr: ordered, stream }).unwrap();
    peer.call(&Free { device_ptr: pitched.dptr }).unwrap();
    peer.call(&Free { device_ptr: device }).unwrap();
    assert_eq!(peer.call(&Free { device_ptr: device }), INVALID, "twice");
    for null in [Free { device_ptr: 0 }, Free { device_ptr: 0 }] {
        assert_eq!(peer.call(&null), Ok(()));
    }
    assert_eq!(script.live().allocations, 1, "a pool keeps what is freed in stream order");
    peer.call(&StreamSynchronize { stream }).unwrap();
    assert_eq!(script.live().allocations, 0);

    // HIP API: an allocation of nothing is the null pointer, except where it is an error.
    assert_eq!(peer.malloc(0), 0);
    assert_eq!(peer.call(&MallocAsync { size: 0, stream }).unwrap().device_ptr, 0);
    assert_eq!(peer.call(&MallocManaged { size: 0, flags: 1 }).map(drop), INVALID);
    for (width_in_bytes, height, element_size) in
        [(0, 1, 4), (1, 0, 4), (1, 1, 3), (u64::MAX, 1, 4), (1 << 40, 1 << 40, 16)]
    {
        let pitch = MemAllocPitch { width_in_bytes, height, element_size };
        assert_eq!(peer.call(&pitch).map(drop), INVALID);
    }
    assert_eq!(peer.call(&Malloc { size: u64::MAX, flags: 0 }).map(drop), Err(HipError::OUT_OF_MEMORY));
}

#[test]
fn streams_and_events() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    let plain = peer.call(&StreamCreateWithFlags(StreamCreate { flags: 1, priority: -1 })).unwrap().stream;
    let urgent =
        peer.call(&StreamCreateWithPriority(StreamCreate { flags: 0, priority: -1 })).unwrap().stream;
    assert_eq!(peer.call(&StreamGetFlags { stream: plain }).unwrap().flags, 1);
    assert_eq!(peer.call(&StreamGetPriority { stream: plain }).unwrap().priority, 0);
    assert_eq!(peer.call(&StreamGetPriority { stream: urgent }).unwrap().priority, -1);
    assert_eq!(peer.call(&StreamCreate { flags: 2, priority: 0 }).map(drop), INVALID);
    assert_eq!(peer.call(&StreamIsCapturing { stream: plain }).unwrap().capture_status, 0);
    assert_eq!(peer.call(&StreamGetCaptureInfo { stream: 0 }).unwrap().graph, 0);
    for predefined in [0, 1, 2] {
        assert_eq!(peer.call(&StreamQuery { stream: predefined }), Ok(()));
        assert_eq!(peer.call(&StreamDestroy { stream: predefined }), Err(HipError::INVALID_HANDLE));
    }

    let (start_event, stop_event) = (peer.event_create(), peer.event_create());
    let elapsed = EventElapsedTime { start_event, stop_event };
    assert_eq!(peer.call(&elapsed).map(drop), Err(HipError::INVALID_HANDLE), "never recorded");
    peer.call(&EventRecord { event: start_event, stream: plain }).unwrap();
    script.hold(0, plain);
    peer.call(&EventRecord { event: stop_event, stream: plain }).unwrap();
    peer.call(&StreamWaitEvent { stream: urgent, event: stop_event, flags: 0 }).unwrap();
    let queries = [
        peer.call(&EventQuery { event: stop_event }),
        peer.call(&StreamQuery { stream: plain }),
        peer.call(&StreamQuery { stream: urgent }),
    ];
    assert_eq!(queries, [Err(HipError::NOT_READY); 3]);
    assert_eq!(peer.call(&EventQuery { event: start_event }), Ok(()));
    assert_eq!(peer.call(&elapsed).map(drop), Err(HipError::NOT_READY));
    let wait =
        peer.send(&EventSynchronize { event: stop_event }, &[], hipr_proto::ReplyMode::Always).unwrap();
    peer.flush();
    script.release(0, plain);
    peer.reply::<EventSynchronize>(wait).unwrap();
    assert_eq!(peer.call(&StreamQuery { stream: plain }), Ok(()));
    assert_eq!(peer.call(&StreamSynchronize { stream: urgent }), Ok(()));
    assert!(peer.call(&elapsed).unwrap().milliseconds > 0.0);
    peer.call(&EventDestroy { event: start_event }).unwrap();
    assert_eq!(peer.call(&elapsed).map(drop), Err(HipError::INVALID_HANDLE));
    peer.call(&StreamDestroy { stream: plain }).unwrap();
    assert_eq!(peer.call(&StreamQuery { stream: plain }), Err(HipError::INVALID_HANDLE));
}

#[test]
fn modules_and_kernels() {
    let (worker, script) = scripted(|_| {});
    script.define_kernel("k", 264, &[(0, 8)]);
    script.define_global("g", 16);
    let mut peer = Peer::hello(worker.local_addr());
    let module = peer.call_with(&ModuleLoadDataEx(ModuleLoadData { data_size: 3 }), b"elf").unwrap().module;
    let function = peer.function(module, "k");
    let mut name = Vec::new();
    put_name("g", &mut name).unwrap();
    let global = peer.call_with(&ModuleGetGlobal { module }, &name).unwrap();
    assert_eq!(global.size, 16);
    peer.h2d(global.device_ptr, b"0123456789abcdef", 0);
    assert_eq!(peer.d2h(global.device_ptr + 6, 10, 0).unwrap(), b"6789abcdef");
    assert_eq!(peer.call(&Free { device_ptr: global.device_ptr }), INVALID, "a variable is not freed");
    assert_eq!(peer.call(&FuncGetAttributes { function }).unwrap().max_threads_per_block, 1024);
    assert_eq!(peer.call(&FuncSetCacheConfig { function, cache_config: 1 }), Ok(()));
    assert_eq!(peer.call(&FuncSetCacheConfig { function, cache_config: 9 }), INVALID);
    let not_supported = Err(HipError::NOT_SUPPORTED);
    assert_eq!(peer.call(&FuncSetAttribute { function, attribute: 8, value: 1 }), not_supported);
    let blocks = |block_size| OccupancyMaxActiveBlocksPerSm { function, block_size, dyn_shared_mem: 0 };
    assert_eq!(peer.call(&blocks(64)).map(drop), not_supported);
    assert_eq!(peer.call(&blocks(0)).map(drop), INVALID);

    let (start_event, stop_event) = (peer.event_create(), peer.event_create());
    let timed = LaunchKernel { num_args: 1, start_event, stop_event, ..launch(function) };
    let args = [0, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    peer.call_with(&ModuleLaunchKernel(timed), &args).unwrap();
    assert!(peer.call(&EventElapsedTime { start_event, stop_event }).unwrap().milliseconds > 0.0);
    assert_eq!(script.launches().len(), 1);

    peer.call(&ModuleUnload { module }).unwrap();
    assert_eq!(peer.d2h(global.device_ptr, 1, 0).map(drop), INVALID);
    assert_eq!(peer.call_with(&launch(function), &[]), Err(HipError::INVALID_HANDLE));
    assert_eq!(peer.call(&ModuleUnload { module }), Err(HipError::INVALID_HANDLE));
}

#[test]
fn the_management_interface() {
    let (worker, _) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    assert_eq!(peer.call(&SmiInit { init_flags: 0 }), Ok(()));
    assert_eq!(peer.call(&SmiGetProcessorCount {}).unwrap().processor_count, 1);
    peer.malloc(1000);
    let usage = peer.call(&SmiGetVramUsage { processor_index: 0 }).unwrap();
    assert_eq!((usage.vram_total, usage.vram_used), (8 << 30, 1000));
    assert_eq!(peer.call(&SmiGetVramUsage { processor_index: 1 }).map(drop), NO_DEVICE);
    let info = peer.call(&SmiGetAsicInfo { processor_index: 0 }).unwrap();
    assert_eq!((info.market_name, info.vendor_id), (Text::new("hipr script"), 0x1002));
    assert_eq!(peer.call(&SmiShutdown {}), Ok(()));
}
