//! The C types of the HIP API that the table needs.
//!
//! Names and fields are those of the C headers. Every structure is checked by the compiler against `data/structs.tsv`; an
//! enumeration is an `int`, because a library may return values that this one does not know.

use std::ffi::{c_char, c_int, c_uint, c_void};

use hipr_dynlib::c_types;

use crate::layout;

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident = $opaque:ident;)*) => {
        $($(#[$doc])* pub type $handle = *mut $opaque;)*
        c_types! { opaque { $(#[doc = concat!("What a [`", stringify!($handle), "`] points to.")] $opaque,)* } declared {} }
    };
}

macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident;)*) => { $($(#[$doc])* pub type $name = c_int;)* };
}

macro_rules! structures {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "the fields are those of the C structure")]
            pub struct $name { $(pub $field: $ty,)* }

            const _: () = layout::check(
                stringify!($name),
                [size_of::<$name>(), align_of::<$name>()],
                concat!(stringify!($name), " is not what data/structs.tsv says: size, alignment or number of fields"),
                &[$((
                    stringify!($field),
                    [std::mem::offset_of!($name, $field), size_of::<$ty>()],
                    concat!(stringify!($name), ".", stringify!($field), " is not what data/structs.tsv says"),
                )),*],
            );

            impl Default for $name {
                fn default() -> Self {
                    // SAFETY: every field is a number, a raw pointer, a function that may be absent, or an array or a structure
                    // of these: all bytes zero is a value of each.
                    unsafe { std::mem::zeroed() }
                }
            }
        )*
        c_types! { opaque {} declared { $($name,)* } }
    };
}

handles! {
    /// A stream; null is the legacy null stream.
    hipStream_t = ihipStream_t;
    /// An event.
    hipEvent_t = ihipEvent_t;
    /// A loaded module.
    hipModule_t = ihipModule_t;
    /// A kernel of a module.
    hipFunction_t = ihipModuleSymbol_t;
    /// A pool of memory.
    hipMemPool_t = ihipMemPoolHandle_t;
    /// A graph.
    hipGraph_t = ihipGraph;
    /// A node of a graph.
    hipGraphNode_t = hipGraphNode;
    /// A graph that is ready to be launched.
    hipGraphExec_t = hipGraphExec;
    /// An array of texels.
    hipArray_t = hipArray;
}

/// An address in device memory.
pub type hipDeviceptr_t = *mut c_void;
/// A device of the driver's functions: its ordinal.
pub type hipDevice_t = c_int;
/// A host function in the order of a stream; it must not call HIP.
pub type hipHostFn_t = Option<unsafe extern "C" fn(*mut c_void)>;
/// A host function in the order of a stream, with the stream and its state.
pub type hipStreamCallback_t = Option<unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void)>;

enumerations! {
    /// What a function returns; 0 is hipSuccess.
    hipError_t;
    /// An attribute of a device.
    hipDeviceAttribute_t;
    /// An attribute of the link between two devices.
    hipDeviceP2PAttr;
    /// How a function was found.
    hipDriverProcAddressQueryResult;
    /// An attribute of a kernel that can be set.
    hipFuncAttribute;
    /// How cache and LDS are divided.
    hipFuncCache_t;
    /// An attribute of a kernel.
    hipFunction_attribute;
    /// How the update of a graph went.
    hipGraphExecUpdateResult;
    /// What a node does. Release 5.2 has other numbers: kernel 1, memcpy 2, memset 3, host 4, graph 5, empty 6, wait 7, record 8.
    hipGraphNodeType;
    /// An option of the compiler in the driver.
    hipJitOption;
    /// A limit of a device.
    hipLimit_t;
    /// What a device may do with memory.
    hipMemAccessFlags;
    /// How memory of a pool is shared.
    hipMemAllocationHandleType;
    /// Kind of memory in a pool.
    hipMemAllocationType;
    /// What kind of place memory is in.
    hipMemLocationType;
    /// An attribute of a pool.
    hipMemPoolAttr;
    /// An attribute of managed memory.
    hipMemRangeAttribute;
    /// Where the two sides of a copy are.
    hipMemcpyKind;
    /// Advice about managed memory.
    hipMemoryAdvise;
    /// Where memory is. Release 5 has other numbers: host 0, device 1, array 2, unified 3.
    hipMemoryType;
    /// An attribute of a pointer.
    hipPointer_attribute;
    /// The bank width of LDS.
    hipSharedMemConfig;
    /// What a capture forbids other threads.
    hipStreamCaptureMode;
    /// Whether a stream is being captured.
    hipStreamCaptureStatus;
}

structures! {
    /// What an architecture can do: bit fields in one word.
    hipDeviceArch_t {
        bits: c_uint,
    }
    /// A grid or block size.
    dim3 {
        x: u32,
        y: u32,
        z: u32,
    }
    /// What names a device for ever.
    hipUUID {
        bytes: [c_char; 16],
    }
    /// What a device is, since release 6.0.
    hipDeviceProp_tR0600 {
        name: [c_char; 256],
        uuid: hipUUID,
        luid: [c_char; 8],
        luidDeviceNodeMask: c_uint,
        totalGlobalMem: usize,
        sharedMemPerBlock: usize,
        regsPerBlock: c_int,
        warpSize: c_int,
        memPitch: usize,
        maxThreadsPerBlock: c_int,
        maxThreadsDim: [c_int; 3],
        maxGridSize: [c_int; 3],
        clockRate: c_int,
        totalConstMem: usize,
        major: c_int,
        minor: c_int,
        textureAlignment: usize,
        texturePitchAlignment: usize,
        deviceOverlap: c_int,
        multiProcessorCount: c_int,
        kernelExecTimeoutEnabled: c_int,
        integrated: c_int,
        canMapHostMemory: c_int,
        computeMode: c_int,
        maxTexture1D: c_int,
        maxTexture1DMipmap: c_int,
        maxTexture1DLinear: c_int,
        maxTexture2D: [c_int; 2],
        maxTexture2DMipmap: [c_int; 2],
        maxTexture2DLinear: [c_int; 3],
        maxTexture2DGather: [c_int; 2],
        maxTexture3D: [c_int; 3],
        maxTexture3DAlt: [c_int; 3],
        maxTextureCubemap: c_int,
        maxTexture1DLayered: [c_int; 2],
        maxTexture2DLayered: [c_int; 3],
        maxTextureCubemapLayered: [c_int; 2],
        maxSurface1D: c_int,
        maxSurface2D: [c_int; 2],
        maxSurface3D: [c_int; 3],
        maxSurface1DLayered: [c_int; 2],
        maxSurface2DLayered: [c_int; 3],
        maxSurfaceCubemap: c_int,
        maxSurfaceCubemapLayered: [c_int; 2],
        surfaceAlignment: usize,
        concurrentKernels: c_int,
        ECCEnabled: c_int,
        pciBusID: c_int,
        pciDeviceID: c_int,
        pciDomainID: c_int,
        tccDriver: c_int,
        asyncEngineCount: c_int,
        unifiedAddressing: c_int,
        memoryClockRate: c_int,
        memoryBusWidth: c_int,
        l2CacheSize: c_int,
        persistingL2CacheMaxSize: c_int,
        maxThreadsPerMultiProcessor: c_int,
        streamPrioritiesSupported: c_int,
        globalL1CacheSupported: c_int,
        localL1CacheSupported: c_int,
        sharedMemPerMultiprocessor: usize,
        regsPerMultiprocessor: c_int,
        managedMemory: c_int,
        isMultiGpuBoard: c_int,
        multiGpuBoardGroupID: c_int,
        hostNativeAtomicSupported: c_int,
        singleToDoublePrecisionPerfRatio: c_int,
        pageableMemoryAccess: c_int,
        concurrentManagedAccess: c_int,
        computePreemptionSupported: c_int,
        canUseHostPointerForRegisteredMem: c_int,
        cooperativeLaunch: c_int,
        cooperativeMultiDeviceLaunch: c_int,
        sharedMemPerBlockOptin: usize,
        pageableMemoryAccessUsesHostPageTables: c_int,
        directManagedMemAccessFromHost: c_int,
        maxBlocksPerMultiProcessor: c_int,
        accessPolicyMaxWindowSize: c_int,
        reservedSharedMemPerBlock: usize,
        hostRegisterSupported: c_int,
        sparseHipArraySupported: c_int,
        hostRegisterReadOnlySupported: c_int,
        timelineSemaphoreInteropSupported: c_int,
        memoryPoolsSupported: c_int,
        gpuDirectRDMASupported: c_int,
        gpuDirectRDMAFlushWritesOptions: c_uint,
        gpuDirectRDMAWritesOrdering: c_int,
        memoryPoolSupportedHandleTypes: c_uint,
        deferredMappingHipArraySupported: c_int,
        ipcEventSupported: c_int,
        clusterLaunch: c_int,
        unifiedFunctionPointers: c_int,
        reserved: [c_int; 63],
        hipReserved: [c_int; 32],
        gcnArchName: [c_char; 256],
        maxSharedMemoryPerMultiProcessor: usize,
        clockInstructionRate: c_int,
        arch: hipDeviceArch_t,
        hdpMemFlushCntl: *mut c_uint,
        hdpRegFlushCntl: *mut c_uint,
        cooperativeMultiDeviceUnmatchedFunc: c_int,
        cooperativeMultiDeviceUnmatchedGridDim: c_int,
        cooperativeMultiDeviceUnmatchedBlockDim: c_int,
        cooperativeMultiDeviceUnmatchedSharedMem: c_int,
        isLargeBar: c_int,
        asicRevision: c_int,
    }
    /// What a device is, before release 6.0; later releases fill it under the old name of the function.
    hipDeviceProp_tR0000 {
        name: [c_char; 256],
        totalGlobalMem: usize,
        sharedMemPerBlock: usize,
        regsPerBlock: c_int,
        warpSize: c_int,
        maxThreadsPerBlock: c_int,
        maxThreadsDim: [c_int; 3],
        maxGridSize: [c_int; 3],
        clockRate: c_int,
        memoryClockRate: c_int,
        memoryBusWidth: c_int,
        totalConstMem: usize,
        major: c_int,
        minor: c_int,
        multiProcessorCount: c_int,
        l2CacheSize: c_int,
        maxThreadsPerMultiProcessor: c_int,
        computeMode: c_int,
        clockInstructionRate: c_int,
        arch: hipDeviceArch_t,
        concurrentKernels: c_int,
        pciDomainID: c_int,
        pciBusID: c_int,
        pciDeviceID: c_int,
        maxSharedMemoryPerMultiProcessor: usize,
        isMultiGpuBoard: c_int,
        canMapHostMemory: c_int,
        gcnArch: c_int,
        gcnArchName: [c_char; 256],
        integrated: c_int,
        cooperativeLaunch: c_int,
        cooperativeMultiDeviceLaunch: c_int,
        maxTexture1DLinear: c_int,
        maxTexture1D: c_int,
        maxTexture2D: [c_int; 2],
        maxTexture3D: [c_int; 3],
        hdpMemFlushCntl: *mut c_uint,
        hdpRegFlushCntl: *mut c_uint,
        memPitch: usize,
        textureAlignment: usize,
        texturePitchAlignment: usize,
        kernelExecTimeoutEnabled: c_int,
        ECCEnabled: c_int,
        tccDriver: c_int,
        cooperativeMultiDeviceUnmatchedFunc: c_int,
        cooperativeMultiDeviceUnmatchedGridDim: c_int,
        cooperativeMultiDeviceUnmatchedBlockDim: c_int,
        cooperativeMultiDeviceUnmatchedSharedMem: c_int,
        isLargeBar: c_int,
        asicRevision: c_int,
        managedMemory: c_int,
        directManagedMemAccessFromHost: c_int,
        concurrentManagedAccess: c_int,
        pageableMemoryAccess: c_int,
        pageableMemoryAccessUsesHostPageTables: c_int,
    }
    /// What a pointer points to.
    hipPointerAttribute_t {
        r#type: hipMemoryType,
        device: c_int,
        devicePointer: *mut c_void,
        hostPointer: *mut c_void,
        isManaged: c_int,
        allocationFlags: c_uint,
    }
    /// What a kernel is.
    hipFuncAttributes {
        binaryVersion: c_int,
        cacheModeCA: c_int,
        constSizeBytes: usize,
        localSizeBytes: usize,
        maxDynamicSharedSizeBytes: c_int,
        maxThreadsPerBlock: c_int,
        numRegs: c_int,
        preferredShmemCarveout: c_int,
        ptxVersion: c_int,
        sharedSizeBytes: usize,
    }
    /// A place in an array.
    hipPos {
        x: usize,
        y: usize,
        z: usize,
    }
    /// The size of a box.
    hipExtent {
        width: usize,
        height: usize,
        depth: usize,
    }
    /// Rows in memory.
    hipPitchedPtr {
        ptr: *mut c_void,
        pitch: usize,
        xsize: usize,
        ysize: usize,
    }
    /// A copy of a box.
    hipMemcpy3DParms {
        srcArray: hipArray_t,
        srcPos: hipPos,
        srcPtr: hipPitchedPtr,
        dstArray: hipArray_t,
        dstPos: hipPos,
        dstPtr: hipPitchedPtr,
        extent: hipExtent,
        kind: hipMemcpyKind,
    }
    /// Where memory is.
    hipMemLocation {
        r#type: hipMemLocationType,
        id: c_int,
    }
    /// Who may access a pool.
    hipMemAccessDesc {
        location: hipMemLocation,
        flags: hipMemAccessFlags,
    }
    /// What a pool is.
    hipMemPoolProps {
        allocType: hipMemAllocationType,
        handleTypes: hipMemAllocationHandleType,
        location: hipMemLocation,
        win32SecurityAttributes: *mut c_void,
        maxSize: usize,
        reserved: [u8; 56],
    }
    /// Memory of another process.
    hipIpcMemHandle_t {
        reserved: [c_char; 64],
    }
    /// An event of another process.
    hipIpcEventHandle_t {
        reserved: [c_char; 64],
    }
    /// A host function of a graph.
    hipHostNodeParams {
        r#fn: hipHostFn_t,
        userData: *mut c_void,
    }
    /// A launch of a graph.
    hipKernelNodeParams {
        blockDim: dim3,
        extra: *mut *mut c_void,
        func: *mut c_void,
        gridDim: dim3,
        kernelParams: *mut *mut c_void,
        sharedMemBytes: c_uint,
    }
    /// A fill of a graph.
    hipMemsetParams {
        dst: *mut c_void,
        elementSize: c_uint,
        height: usize,
        pitch: usize,
        value: c_uint,
        width: usize,
    }
}
