//! The table of every function of the HIP runtime that hipr's worker and tools call.
//!
//! A row is a C prototype and whether the function must be there. Required is what release 5.2 has and nothing works without;
//! an optional function that a release lacks is an absent capability: `hip.hipX` is `None`, and calling it returns
//! hipErrorNotSupported. What takes structures that changed between releases is not here (hipDrvMemcpy3D: 32-bit fields in
//! release 5.2; hipMemcpyParam2D: other numbers for kinds of memory). `tests/census.rs` holds the rows against the prototypes of the headers.

use std::ffi::{c_char, c_int, c_uint, c_void};

use hipr_dynlib::{Names, functions};

use hipr_abi::*;

/// Locations where releases install the runtime: the library names from the newest release to the oldest, and ROCm's folder.
pub const NAMES: Names = Names {
    what: "HIP runtime",
    files: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"],
    folders: &["/opt/rocm/lib"],
};

/// Passes the rows of the table to another macro, behind `head`: `hip_functions! { callback! { head } }`. A row names types of
/// this crate and of `std::ffi`, which have to be in scope.
#[macro_export]
macro_rules! hip_functions {
    ($callback:ident! { $($head:tt)* }) => { $callback! {
        $($head)*

        // Initialization, versions and errors.
        optional hipInit(flags: c_uint) -> hipError_t;
        required hipRuntimeGetVersion(runtime_version: *mut c_int) -> hipError_t;
        required hipDriverGetVersion(driver_version: *mut c_int) -> hipError_t;
        required hipGetLastError() -> hipError_t;
        optional hipPeekAtLastError() -> hipError_t;
        required hipGetErrorName(hip_error: hipError_t) -> *const c_char;
        required hipGetErrorString(hip_error: hipError_t) -> *const c_char;
        optional hipDrvGetErrorName(hip_error: hipError_t, error_string: *mut *const c_char) -> hipError_t;
        optional hipDrvGetErrorString(hip_error: hipError_t, error_string: *mut *const c_char) -> hipError_t;
        optional hipGetProcAddress(symbol: *const c_char, pfn: *mut *mut c_void, hip_version: c_int, flags: u64, symbol_status: *mut hipDriverProcAddressQueryResult) -> hipError_t;

        // Devices.
        required hipGetDeviceCount(count: *mut c_int) -> hipError_t;
        required hipGetDevice(device_id: *mut c_int) -> hipError_t;
        required hipSetDevice(device_id: c_int) -> hipError_t;
        required hipGetDeviceProperties(prop: *mut hipDeviceProp_tR0000, device: c_int) -> hipError_t;
        optional hipGetDevicePropertiesR0600(prop: *mut hipDeviceProp_tR0600, device_id: c_int) -> hipError_t;
        optional hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) -> hipError_t;
        required hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) -> hipError_t;
        required hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) -> hipError_t;
        required hipDeviceGetAttribute(pi: *mut c_int, attr: hipDeviceAttribute_t, device_id: c_int) -> hipError_t;
        optional hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t) -> hipError_t;
        optional hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) -> hipError_t;
        optional hipDeviceGetPCIBusId(pci_bus_id: *mut c_char, len: c_int, device: c_int) -> hipError_t;
        optional hipDeviceGetByPCIBusId(device: *mut c_int, pci_bus_id: *const c_char) -> hipError_t;
        required hipDeviceSynchronize() -> hipError_t;
        optional hipDeviceReset() -> hipError_t;
        optional hipDeviceGetLimit(p_value: *mut usize, limit: hipLimit_t) -> hipError_t;
        optional hipDeviceSetLimit(limit: hipLimit_t, value: usize) -> hipError_t;
        optional hipDeviceGetCacheConfig(cache_config: *mut hipFuncCache_t) -> hipError_t;
        optional hipDeviceSetCacheConfig(cache_config: hipFuncCache_t) -> hipError_t;
        optional hipDeviceGetSharedMemConfig(p_config: *mut hipSharedMemConfig) -> hipError_t;
        optional hipDeviceSetSharedMemConfig(config: hipSharedMemConfig) -> hipError_t;
        optional hipGetDeviceFlags(flags: *mut c_uint) -> hipError_t;
        optional hipSetDeviceFlags(flags: c_uint) -> hipError_t;
        optional hipSetValidDevices(device_arr: *mut c_int, len: c_int) -> hipError_t;
        optional hipChooseDevice(device: *mut c_int, prop: *const hipDeviceProp_tR0000) -> hipError_t;
        optional hipChooseDeviceR0600(device: *mut c_int, prop: *const hipDeviceProp_tR0600) -> hipError_t;
        optional hipDeviceGetStreamPriorityRange(least_priority: *mut c_int, greatest_priority: *mut c_int) -> hipError_t;
        optional hipDeviceCanAccessPeer(can_access_peer: *mut c_int, device_id: c_int, peer_device_id: c_int) -> hipError_t;
        optional hipDeviceEnablePeerAccess(peer_device_id: c_int, flags: c_uint) -> hipError_t;
        optional hipDeviceDisablePeerAccess(peer_device_id: c_int) -> hipError_t;
        optional hipDeviceGetP2PAttribute(value: *mut c_int, attr: hipDeviceP2PAttr, src_device: c_int, dst_device: c_int) -> hipError_t;
        optional hipExtGetLinkTypeAndHopCount(device1: c_int, device2: c_int, linktype: *mut u32, hopcount: *mut u32) -> hipError_t;

        // Memory.
        required hipMalloc(ptr: *mut *mut c_void, size: usize) -> hipError_t;
        required hipFree(ptr: *mut c_void) -> hipError_t;
        optional hipExtMallocWithFlags(ptr: *mut *mut c_void, size_bytes: usize, flags: c_uint) -> hipError_t;
        optional hipMallocManaged(dev_ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t;
        optional hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) -> hipError_t;
        optional hipMemAllocPitch(dptr: *mut hipDeviceptr_t, pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: c_uint) -> hipError_t;
        required hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t;
        optional hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize) -> hipError_t;
        optional hipMemGetAddressRange(pbase: *mut hipDeviceptr_t, psize: *mut usize, dptr: hipDeviceptr_t) -> hipError_t;
        required hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t;
        required hipHostFree(ptr: *mut c_void) -> hipError_t;
        optional hipHostGetDevicePointer(dev_ptr: *mut *mut c_void, hst_ptr: *mut c_void, flags: c_uint) -> hipError_t;
        optional hipHostGetFlags(flags_ptr: *mut c_uint, host_ptr: *mut c_void) -> hipError_t;
        optional hipHostRegister(host_ptr: *mut c_void, size_bytes: usize, flags: c_uint) -> hipError_t;
        optional hipHostUnregister(host_ptr: *mut c_void) -> hipError_t;
        optional hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void) -> hipError_t;
        optional hipPointerGetAttribute(data: *mut c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t) -> hipError_t;
        optional hipPointerSetAttribute(value: *const c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t) -> hipError_t;
        optional hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int) -> hipError_t;
        optional hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t) -> hipError_t;
        optional hipMemRangeGetAttribute(data: *mut c_void, data_size: usize, attribute: hipMemRangeAttribute, dev_ptr: *const c_void, count: usize) -> hipError_t;
        optional hipStreamAttachMemAsync(stream: hipStream_t, dev_ptr: *mut c_void, length: usize, flags: c_uint) -> hipError_t;

        // Memory in stream order.
        optional hipMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: hipStream_t) -> hipError_t;
        optional hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t) -> hipError_t;
        optional hipMemPoolCreate(mem_pool: *mut hipMemPool_t, pool_props: *const hipMemPoolProps) -> hipError_t;
        optional hipMemPoolDestroy(mem_pool: hipMemPool_t) -> hipError_t;
        optional hipMemPoolSetAttribute(mem_pool: hipMemPool_t, attr: hipMemPoolAttr, value: *mut c_void) -> hipError_t;
        optional hipMemPoolGetAttribute(mem_pool: hipMemPool_t, attr: hipMemPoolAttr, value: *mut c_void) -> hipError_t;
        optional hipMemPoolSetAccess(mem_pool: hipMemPool_t, desc_list: *const hipMemAccessDesc, count: usize) -> hipError_t;
        optional hipMemPoolGetAccess(flags: *mut hipMemAccessFlags, mem_pool: hipMemPool_t, location: *mut hipMemLocation) -> hipError_t;
        optional hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize) -> hipError_t;
        optional hipMallocFromPoolAsync(dev_ptr: *mut *mut c_void, size: usize, mem_pool: hipMemPool_t, stream: hipStream_t) -> hipError_t;
        optional hipDeviceGetDefaultMemPool(mem_pool: *mut hipMemPool_t, device: c_int) -> hipError_t;
        optional hipDeviceGetMemPool(mem_pool: *mut hipMemPool_t, device: c_int) -> hipError_t;
        optional hipDeviceSetMemPool(device: c_int, mem_pool: hipMemPool_t) -> hipError_t;

        // Memory and events of another process.
        optional hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, dev_ptr: *mut c_void) -> hipError_t;
        optional hipIpcOpenMemHandle(dev_ptr: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint) -> hipError_t;
        optional hipIpcCloseMemHandle(dev_ptr: *mut c_void) -> hipError_t;
        optional hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t) -> hipError_t;
        optional hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t) -> hipError_t;

        // Copies.
        required hipMemcpy(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind) -> hipError_t;
        required hipMemcpyAsync(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
        optional hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
        optional hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, size_bytes: usize) -> hipError_t;
        optional hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *mut c_void, size_bytes: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, size_bytes: usize) -> hipError_t;
        optional hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, size_bytes: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, size_bytes: usize) -> hipError_t;
        optional hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, size_bytes: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemcpyPeer(dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device_id: c_int, size_bytes: usize) -> hipError_t;
        optional hipMemcpyPeerAsync(dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device: c_int, size_bytes: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind) -> hipError_t;
        optional hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t) -> hipError_t;
        optional hipMemcpy3D(p: *const hipMemcpy3DParms) -> hipError_t;
        optional hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) -> hipError_t;

        // Fills.
        required hipMemset(dst: *mut c_void, value: c_int, size_bytes: usize) -> hipError_t;
        required hipMemsetAsync(dst: *mut c_void, value: c_int, size_bytes: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemsetD8(dest: hipDeviceptr_t, value: u8, count: usize) -> hipError_t;
        optional hipMemsetD8Async(dest: hipDeviceptr_t, value: u8, count: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemsetD16(dest: hipDeviceptr_t, value: u16, count: usize) -> hipError_t;
        optional hipMemsetD16Async(dest: hipDeviceptr_t, value: u16, count: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemsetD32(dest: hipDeviceptr_t, value: c_int, count: usize) -> hipError_t;
        optional hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) -> hipError_t;
        optional hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t) -> hipError_t;
        optional hipMemset3D(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent) -> hipError_t;
        optional hipMemset3DAsync(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t) -> hipError_t;

        // Virtual memory.
        optional hipMemGetAllocationGranularity(granularity: *mut usize, prop: *const hipMemAllocationProp, option: hipMemAllocationGranularity_flags) -> hipError_t;
        optional hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, addr: *mut c_void, flags: u64) -> hipError_t;
        optional hipMemAddressFree(dev_ptr: *mut c_void, size: usize) -> hipError_t;
        optional hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, prop: *const hipMemAllocationProp, flags: u64) -> hipError_t;
        optional hipMemRelease(handle: hipMemGenericAllocationHandle_t) -> hipError_t;
        optional hipMemExportToShareableHandle(shareable_handle: *mut c_void, handle: hipMemGenericAllocationHandle_t, handle_type: hipMemAllocationHandleType, flags: u64) -> hipError_t;
        optional hipMemImportFromShareableHandle(handle: *mut hipMemGenericAllocationHandle_t, os_handle: *mut c_void, sh_handle_type: hipMemAllocationHandleType) -> hipError_t;
        optional hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: u64) -> hipError_t;
        optional hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize) -> hipError_t;
        optional hipMemUnmap(ptr: *mut c_void, size: usize) -> hipError_t;

        // Streams.
        optional hipStreamCreate(stream: *mut hipStream_t) -> hipError_t;
        required hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) -> hipError_t;
        optional hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int) -> hipError_t;
        optional hipExtStreamCreateWithCUMask(stream: *mut hipStream_t, cu_mask_size: u32, cu_mask: *const u32) -> hipError_t;
        optional hipExtStreamGetCUMask(stream: hipStream_t, cu_mask_size: u32, cu_mask: *mut u32) -> hipError_t;
        required hipStreamDestroy(stream: hipStream_t) -> hipError_t;
        required hipStreamSynchronize(stream: hipStream_t) -> hipError_t;
        required hipStreamQuery(stream: hipStream_t) -> hipError_t;
        required hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t;
        optional hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) -> hipError_t;
        optional hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int) -> hipError_t;
        optional hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t) -> hipError_t;
        optional hipStreamAddCallback(stream: hipStream_t, callback: hipStreamCallback_t, user_data: *mut c_void, flags: c_uint) -> hipError_t;
        optional hipLaunchHostFunc(stream: hipStream_t, function: hipHostFn_t, user_data: *mut c_void) -> hipError_t;
        optional hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t;
        optional hipStreamEndCapture(stream: hipStream_t, p_graph: *mut hipGraph_t) -> hipError_t;
        optional hipStreamIsCapturing(stream: hipStream_t, p_capture_status: *mut hipStreamCaptureStatus) -> hipError_t;
        optional hipStreamGetCaptureInfo(stream: hipStream_t, p_capture_status: *mut hipStreamCaptureStatus, p_id: *mut u64) -> hipError_t;
        optional hipStreamGetCaptureInfo_v2(stream: hipStream_t, capture_status: *mut hipStreamCaptureStatus, id: *mut u64, graph: *mut hipGraph_t, dependencies: *mut *const hipGraphNode_t, num_dependencies: *mut usize) -> hipError_t;
        optional hipStreamUpdateCaptureDependencies(stream: hipStream_t, dependencies: *mut hipGraphNode_t, num_dependencies: usize, flags: c_uint) -> hipError_t;
        optional hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode) -> hipError_t;

        // Events.
        optional hipEventCreate(event: *mut hipEvent_t) -> hipError_t;
        required hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) -> hipError_t;
        required hipEventDestroy(event: hipEvent_t) -> hipError_t;
        required hipEventRecord(event: hipEvent_t, stream: hipStream_t) -> hipError_t;
        optional hipEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint) -> hipError_t;
        required hipEventSynchronize(event: hipEvent_t) -> hipError_t;
        required hipEventQuery(event: hipEvent_t) -> hipError_t;
        required hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t;

        // Modules and kernels.
        required hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) -> hipError_t;
        optional hipModuleLoadDataEx(module: *mut hipModule_t, image: *const c_void, num_options: c_uint, options: *mut hipJitOption, option_values: *mut *mut c_void) -> hipError_t;
        required hipModuleUnload(module: hipModule_t) -> hipError_t;
        required hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, kname: *const c_char) -> hipError_t;
        required hipModuleGetGlobal(dptr: *mut hipDeviceptr_t, bytes: *mut usize, hmod: hipModule_t, name: *const c_char) -> hipError_t;
        optional hipFuncGetAttribute(value: *mut c_int, attrib: hipFunction_attribute, hfunc: hipFunction_t) -> hipError_t;
        optional hipFuncGetAttributes(attr: *mut hipFuncAttributes, func: *const c_void) -> hipError_t;
        optional hipFuncSetAttribute(func: *const c_void, attr: hipFuncAttribute, value: c_int) -> hipError_t;
        optional hipFuncSetCacheConfig(func: *const c_void, config: hipFuncCache_t) -> hipError_t;
        optional hipFuncSetSharedMemConfig(func: *const c_void, config: hipSharedMemConfig) -> hipError_t;
        optional hipModuleOccupancyMaxPotentialBlockSize(grid_size: *mut c_int, block_size: *mut c_int, f: hipFunction_t, dyn_shared_mem_per_blk: usize, block_size_limit: c_int) -> hipError_t;
        optional hipModuleOccupancyMaxPotentialBlockSizeWithFlags(grid_size: *mut c_int, block_size: *mut c_int, f: hipFunction_t, dyn_shared_mem_per_blk: usize, block_size_limit: c_int, flags: c_uint) -> hipError_t;
        optional hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(num_blocks: *mut c_int, f: hipFunction_t, block_size: c_int, dyn_shared_mem_per_blk: usize) -> hipError_t;
        optional hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(num_blocks: *mut c_int, f: hipFunction_t, block_size: c_int, dyn_shared_mem_per_blk: usize, flags: c_uint) -> hipError_t;
        required hipModuleLaunchKernel(f: hipFunction_t, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint, block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: hipStream_t, kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> hipError_t;
        optional hipExtModuleLaunchKernel(f: hipFunction_t, global_work_size_x: u32, global_work_size_y: u32, global_work_size_z: u32, local_work_size_x: u32, local_work_size_y: u32, local_work_size_z: u32, shared_mem_bytes: usize, h_stream: hipStream_t, kernel_params: *mut *mut c_void, extra: *mut *mut c_void, start_event: hipEvent_t, stop_event: hipEvent_t, flags: u32) -> hipError_t
            as "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j";
        optional hipModuleLaunchCooperativeKernel(f: hipFunction_t, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint, block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: hipStream_t, kernel_params: *mut *mut c_void) -> hipError_t;

        // Graphs.
        optional hipGraphCreate(p_graph: *mut hipGraph_t, flags: c_uint) -> hipError_t;
        optional hipGraphDestroy(graph: hipGraph_t) -> hipError_t;
        optional hipGraphClone(p_graph_clone: *mut hipGraph_t, original_graph: hipGraph_t) -> hipError_t;
        optional hipGraphInstantiate(p_graph_exec: *mut hipGraphExec_t, graph: hipGraph_t, p_error_node: *mut hipGraphNode_t, p_log_buffer: *mut c_char, buffer_size: usize) -> hipError_t;
        optional hipGraphInstantiateWithFlags(p_graph_exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64) -> hipError_t;
        optional hipGraphExecDestroy(graph_exec: hipGraphExec_t) -> hipError_t;
        optional hipGraphExecUpdate(h_graph_exec: hipGraphExec_t, h_graph: hipGraph_t, h_error_node: *mut hipGraphNode_t, update_result: *mut hipGraphExecUpdateResult) -> hipError_t;
        optional hipGraphUpload(graph_exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
        optional hipGraphLaunch(graph_exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t;
        optional hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, num_nodes: *mut usize) -> hipError_t;
        optional hipGraphGetRootNodes(graph: hipGraph_t, p_root_nodes: *mut hipGraphNode_t, p_num_root_nodes: *mut usize) -> hipError_t;
        optional hipGraphGetEdges(graph: hipGraph_t, from: *mut hipGraphNode_t, to: *mut hipGraphNode_t, num_edges: *mut usize) -> hipError_t;
        optional hipGraphAddDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, num_dependencies: usize) -> hipError_t;
        optional hipGraphRemoveDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, num_dependencies: usize) -> hipError_t;
        optional hipGraphDestroyNode(node: hipGraphNode_t) -> hipError_t;
        optional hipGraphNodeGetType(node: hipGraphNode_t, p_type: *mut hipGraphNodeType) -> hipError_t;
        optional hipGraphNodeGetDependencies(node: hipGraphNode_t, p_dependencies: *mut hipGraphNode_t, p_num_dependencies: *mut usize) -> hipError_t;
        optional hipGraphNodeGetDependentNodes(node: hipGraphNode_t, p_dependent_nodes: *mut hipGraphNode_t, p_num_dependent_nodes: *mut usize) -> hipError_t;
        optional hipGraphNodeFindInClone(p_node: *mut hipGraphNode_t, original_node: hipGraphNode_t, cloned_graph: hipGraph_t) -> hipError_t;
        optional hipGraphAddEmptyNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize) -> hipError_t;
        optional hipGraphAddKernelNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, p_node_params: *const hipKernelNodeParams) -> hipError_t;
        optional hipGraphKernelNodeGetParams(node: hipGraphNode_t, p_node_params: *mut hipKernelNodeParams) -> hipError_t;
        optional hipGraphKernelNodeSetParams(node: hipGraphNode_t, p_node_params: *const hipKernelNodeParams) -> hipError_t;
        optional hipGraphExecKernelNodeSetParams(h_graph_exec: hipGraphExec_t, node: hipGraphNode_t, p_node_params: *const hipKernelNodeParams) -> hipError_t;
        optional hipGraphAddMemcpyNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, p_copy_params: *const hipMemcpy3DParms) -> hipError_t;
        optional hipGraphAddMemcpyNode1D(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind) -> hipError_t;
        optional hipGraphExecMemcpyNodeSetParams1D(h_graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind) -> hipError_t;
        optional hipGraphAddMemsetNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, p_memset_params: *const hipMemsetParams) -> hipError_t;
        optional hipGraphExecMemsetNodeSetParams(h_graph_exec: hipGraphExec_t, node: hipGraphNode_t, p_node_params: *const hipMemsetParams) -> hipError_t;
        optional hipGraphAddHostNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, p_node_params: *const hipHostNodeParams) -> hipError_t;
        optional hipGraphExecHostNodeSetParams(h_graph_exec: hipGraphExec_t, node: hipGraphNode_t, p_node_params: *const hipHostNodeParams) -> hipError_t;
        optional hipGraphAddChildGraphNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, child_graph: hipGraph_t) -> hipError_t;
        optional hipGraphAddEventRecordNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, event: hipEvent_t) -> hipError_t;
        optional hipGraphAddEventWaitNode(p_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, p_dependencies: *const hipGraphNode_t, num_dependencies: usize, event: hipEvent_t) -> hipError_t;
    } };
}

hip_functions! { functions! {
    /// The loaded library: one function pointer per row of the table, and a method of the same name that calls it.
    pub struct Hip, names NAMES, absent hipErrorNotSupported;
} }
