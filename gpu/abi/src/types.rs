//! C types of the HIP API.
//!
//! Names and fields are those of the C headers. Every structure and union is checked by the compiler against `data/structs.tsv`; an
//! enumeration is an `int`, because a library may return values that this one does not know.

use core::ffi::{c_char, c_int, c_longlong, c_uchar, c_uint, c_ulonglong, c_void};

use hipr_ctype::c_types;

use crate::layout;
use crate::zero::Zero;

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident = $opaque:ident;)*) => {
        $($(#[$doc])* pub type $handle = *mut $opaque;)*
        c_types! { opaque { $(#[doc = concat!("What a [`", stringify!($handle), "`] points to.")] $opaque,)* } declared {} }
    };
}

macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident;)*) => { $($(#[$doc])* pub type $name = c_int;)* };
}

/// Checks a type's size, alignment and fields against the data.
macro_rules! checked {
    ($name:ident { $($field:ident: $ty:ty,)* }) => {
        const _: () = layout::check(
            stringify!($name),
            [size_of::<$name>(), align_of::<$name>()],
            concat!(stringify!($name), " is not what data/structs.tsv says: size, alignment or number of fields"),
            &[$((
                stringify!($field),
                [core::mem::offset_of!($name, $field), size_of::<$ty>()],
                concat!(stringify!($name), ".", stringify!($field), " is not what data/structs.tsv says"),
            )),*],
        );

        impl Default for $name {
            /// Returns a value whose bytes are all zero.
            fn default() -> Self {
                Self::ZERO
            }
        }
    };
}

macro_rules! structures {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "the fields are those of the C structure")]
            pub struct $name { $(pub $field: $ty,)* }

            checked! { $name { $($field: $ty,)* } }

            impl Zero for $name {
                const ZERO: Self = Self { $($field: <$ty>::ZERO,)* };
            }
        )*
        c_types! { opaque {} declared { $($name,)* } }
    };
}

/// Defines unions; the first field of a union is as large as the union.
macro_rules! unions {
    ($($(#[$meta:meta])* $name:ident { $first:ident: $first_ty:ty, $($field:ident: $ty:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy)]
            #[allow(missing_docs, reason = "the fields are those of the C union")]
            pub union $name { pub $first: $first_ty, $(pub $field: $ty,)* }

            checked! { $name { $first: $first_ty, $($field: $ty,)* } }

            impl Zero for $name {
                const ZERO: Self = Self { $first: <$first_ty>::ZERO };
            }

            impl core::fmt::Debug for $name {
                fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                    f.debug_struct(stringify!($name)).finish_non_exhaustive()
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
    /// A context: what a device is for a thread.
    hipCtx_t = ihipCtx_t;
    /// A kernel of a module.
    hipFunction_t = ihipModuleSymbol_t;
    /// A pool of memory.
    hipMemPool_t = ihipMemPoolHandle_t;
    /// Physical memory.
    hipMemGenericAllocationHandle_t = ihipMemGenericAllocationHandle;
    /// A graph.
    hipGraph_t = ihipGraph;
    /// A node of a graph.
    hipGraphNode_t = hipGraphNode;
    /// An instantiated graph, which can be launched.
    hipGraphExec_t = hipGraphExec;
    /// An array of texels, as textures use it.
    hipArray_t = hipArray;
}

/// An address in device memory.
pub type hipDeviceptr_t = *mut c_void;
/// A device in the driver API: its ordinal.
pub type hipDevice_t = c_int;
/// A host function that is called in stream order; it must not call HIP.
pub type hipHostFn_t = Option<unsafe extern "C" fn(*mut c_void)>;
/// A host function that is called in stream order, with the stream and its status.
pub type hipStreamCallback_t = Option<unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void)>;

enumerations! {
    /// The result of a HIP function; 0 is `hipSuccess`.
    hipError_t;
    /// An attribute of a device.
    hipDeviceAttribute_t;
    /// An attribute of the link between two devices.
    hipDeviceP2PAttr;
    /// How `hipGetProcAddress` found a function, or why it did not.
    hipDriverProcAddressQueryResult;
    /// The number format of a texel's channels.
    hipChannelFormatKind;
    /// The number format of an array's channels, with their bits.
    hipArray_Format;
    /// How many threads may use a device.
    hipComputeMode;
    /// How likely it is that memory is accessed again.
    hipAccessProperty;
    /// The kind of a launch attribute.
    hipLaunchAttributeID;
    /// The domain in which a launch's memory accesses are synchronised.
    hipLaunchMemSyncDomain;
    /// How a thread waits for a device.
    hipSynchronizationPolicy;
    /// An operation on a value in memory.
    hipStreamBatchMemOpType;
    /// What is told of the memory that graphs allocate.
    hipGraphMemAttributeType;
    /// What one end of a copy is.
    hipMemcpy3DOperandType;
    /// When the source of a copy may be read.
    hipMemcpySrcAccessOrder;
    /// When the destructor of a user object runs.
    hipUserObjectFlags;
    /// Whose references to a user object a graph gets.
    hipUserObjectRetainFlags;
    /// How much the description of a graph says.
    hipGraphDebugDotFlags;
    /// Flags for instantiating a graph.
    hipGraphInstantiateFlags;
    /// The result of instantiating a graph.
    hipGraphInstantiateResult;
    /// An attribute of a kernel that can be set.
    hipFuncAttribute;
    /// How a device's memory is divided between cache and LDS.
    hipFuncCache_t;
    /// An attribute of a kernel.
    hipFunction_attribute;
    /// The result of updating an instantiated graph.
    hipGraphExecUpdateResult;
    /// The type of a graph node. Release 5.2 has other numbers: kernel 1, memcpy 2, memset 3, host 4, graph 5, empty 6, wait 7,
    /// record 8.
    hipGraphNodeType;
    /// An option of the run-time compiler.
    hipJitOption;
    /// A limit of a device.
    hipLimit_t;
    /// The access that a device has to memory.
    hipMemAccessFlags;
    /// A granularity of physical memory.
    hipMemAllocationGranularity_flags;
    /// The kind of handle by which a pool's memory can be exported.
    hipMemAllocationHandleType;
    /// The kind of memory in a pool.
    hipMemAllocationType;
    /// The kind of location of memory: a device or the host.
    hipMemLocationType;
    /// An attribute of a pool.
    hipMemPoolAttr;
    /// An attribute of managed memory.
    hipMemRangeAttribute;
    /// How coherent the pages of a range of managed memory are.
    hipMemRangeCoherencyMode;
    /// The direction of a copy.
    hipMemcpyKind;
    /// Advice about managed memory.
    hipMemoryAdvise;
    /// The kind of memory at an address. Release 5 has other numbers: host 0, device 1, array 2, unified 3.
    hipMemoryType;
    /// An attribute of a pointer.
    hipPointer_attribute;
    /// The bank width of LDS.
    hipSharedMemConfig;
    /// The calls that a capture forbids in other threads.
    hipStreamCaptureMode;
    /// Whether a stream is being captured.
    hipStreamCaptureStatus;
}

structures! {
    /// Features of an architecture, as bit fields in one word.
    hipDeviceArch_t {
        bits: c_uint,
    }
    /// A grid or block size.
    #[derive(PartialEq, Eq)]
    dim3 {
        x: u32,
        y: u32,
        z: u32,
    }
    /// A device's permanent identifier.
    #[derive(PartialEq, Eq)]
    hipUUID {
        bytes: [c_char; 16],
    }
    /// Properties of a device, since release 6.0.
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
    /// Properties of a device, before release 6.0; later releases fill them under the old name of the function.
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
    /// Attributes of a pointer.
    hipPointerAttribute_t {
        r#type: hipMemoryType,
        device: c_int,
        devicePointer: *mut c_void,
        hostPointer: *mut c_void,
        isManaged: c_int,
        allocationFlags: c_uint,
    }
    /// Attributes of a kernel.
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
    /// A position in an array.
    hipPos {
        x: usize,
        y: usize,
        z: usize,
    }
    /// The size of a three-dimensional box.
    hipExtent {
        width: usize,
        height: usize,
        depth: usize,
    }
    /// Memory that is divided into rows of a given pitch.
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
    /// A location of memory: a device or the host.
    #[derive(PartialEq, Eq)]
    hipMemLocation {
        r#type: hipMemLocationType,
        id: c_int,
    }
    /// The access that a device has to a pool.
    hipMemAccessDesc {
        location: hipMemLocation,
        flags: hipMemAccessFlags,
    }
    /// Properties of a memory pool.
    hipMemPoolProps {
        allocType: hipMemAllocationType,
        handleTypes: hipMemAllocationHandleType,
        location: hipMemLocation,
        win32SecurityAttributes: *mut c_void,
        maxSize: usize,
        reserved: [u8; 56],
    }
    /// A handle to memory of another process.
    hipIpcMemHandle_t {
        reserved: [c_char; 64],
    }
    /// A handle to an event of another process.
    hipIpcEventHandle_t {
        reserved: [c_char; 64],
    }
    /// Parameters of a graph node that calls a host function.
    hipHostNodeParams {
        r#fn: hipHostFn_t,
        userData: *mut c_void,
    }
    /// Parameters of a graph node that launches a kernel.
    hipKernelNodeParams {
        blockDim: dim3,
        extra: *mut *mut c_void,
        func: *mut c_void,
        gridDim: dim3,
        kernelParams: *mut *mut c_void,
        sharedMemBytes: c_uint,
    }
    /// Parameters of a graph node that fills memory.
    hipMemsetParams {
        dst: *mut c_void,
        elementSize: c_uint,
        height: usize,
        pitch: usize,
        value: c_uint,
        width: usize,
    }
    /// Parameters of a graph node that copies memory, with the fields that `hipGraphNodeParams` puts before them.
    hipMemcpyNodeParams {
        flags: c_int,
        reserved: [c_int; 3],
        copyParams: hipMemcpy3DParms,
    }
    /// Parameters of a graph node of any type. In C `reserved1` is an unnamed union with the structure of each kind.
    hipGraphNodeParams {
        r#type: hipGraphNodeType,
        reserved0: [c_int; 3],
        reserved1: [c_longlong; 29],
        reserved2: c_longlong,
    }
    /// Parameters and result of instantiating a graph.
    hipGraphInstantiateParams {
        errNode_out: hipGraphNode_t,
        flags: c_ulonglong,
        result_out: hipGraphInstantiateResult,
        uploadStream: hipStream_t,
    }
    /// A copy of a box between two devices.
    hipMemcpy3DPeerParms {
        srcArray: hipArray_t,
        srcPos: hipPos,
        srcPtr: hipPitchedPtr,
        srcDevice: c_int,
        dstArray: hipArray_t,
        dstPos: hipPos,
        dstPtr: hipPitchedPtr,
        dstDevice: c_int,
        extent: hipExtent,
    }
    /// A copy of a box, for functions of the driver API.
    HIP_MEMCPY3D {
        srcXInBytes: usize,
        srcY: usize,
        srcZ: usize,
        srcLOD: usize,
        srcMemoryType: hipMemoryType,
        srcHost: *const c_void,
        srcDevice: hipDeviceptr_t,
        srcArray: hipArray_t,
        srcPitch: usize,
        srcHeight: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstZ: usize,
        dstLOD: usize,
        dstMemoryType: hipMemoryType,
        dstHost: *mut c_void,
        dstDevice: hipDeviceptr_t,
        dstArray: hipArray_t,
        dstPitch: usize,
        dstHeight: usize,
        WidthInBytes: usize,
        Height: usize,
        Depth: usize,
    }
    /// A copy of rows, for functions of the driver API.
    hip_Memcpy2D {
        srcXInBytes: usize,
        srcY: usize,
        srcMemoryType: hipMemoryType,
        srcHost: *const c_void,
        srcDevice: hipDeviceptr_t,
        srcArray: hipArray_t,
        srcPitch: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstMemoryType: hipMemoryType,
        dstHost: *mut c_void,
        dstDevice: hipDeviceptr_t,
        dstArray: hipArray_t,
        dstPitch: usize,
        WidthInBytes: usize,
        Height: usize,
    }
    /// A texel's format: the bits of each channel and their number format.
    hipChannelFormatDesc {
        x: c_int,
        y: c_int,
        z: c_int,
        w: c_int,
        f: hipChannelFormatKind,
    }
    /// A flat array: its size in elements, and what an element is.
    HIP_ARRAY_DESCRIPTOR {
        Width: usize,
        Height: usize,
        Format: hipArray_Format,
        NumChannels: c_uint,
    }
    /// An array: its size in elements, what an element is, and flags (`hipArrayLayered` and others).
    HIP_ARRAY3D_DESCRIPTOR {
        Width: usize,
        Height: usize,
        Depth: usize,
        Format: hipArray_Format,
        NumChannels: c_uint,
        Flags: c_uint,
    }
    /// One launch of a launch on several devices.
    hipLaunchParams {
        func: *mut c_void,
        gridDim: dim3,
        blockDim: dim3,
        args: *mut *mut c_void,
        sharedMem: usize,
        stream: hipStream_t,
    }
    /// A range of memory that should stay in the cache.
    hipAccessPolicyWindow {
        base_ptr: *mut c_void,
        hitProp: hipAccessProperty,
        hitRatio: f32,
        missProp: hipAccessProperty,
        num_bytes: usize,
    }
    /// The memory synchronisation domains of a launch.
    hipLaunchMemSyncDomainMap {
        default_: c_uchar,
        remote: c_uchar,
    }
    /// An attribute of a launch.
    hipLaunchAttribute {
        id: hipLaunchAttributeID,
        pad: [c_char; 4],
        value: hipLaunchAttributeValue,
    }
    /// The size of a launch, its stream and its attributes.
    hipLaunchConfig_t {
        gridDim: dim3,
        blockDim: dim3,
        dynamicSmemBytes: usize,
        stream: hipStream_t,
        attrs: *mut hipLaunchAttribute,
        numAttrs: c_uint,
    }
    /// One launch of a launch of functions on several devices.
    hipFunctionLaunchParams {
        function: hipFunction_t,
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        hStream: hipStream_t,
        kernelParams: *mut *mut c_void,
    }
    /// An operation that waits for a value, and one that writes it: the first 40 of the 48 bytes of `hipStreamBatchMemOpParams`.
    hipStreamMemOpWaitValueParams_t {
        operation: hipStreamBatchMemOpType,
        address: *mut c_void,
        value64: u64,
        flags: c_uint,
        alias: *mut c_void,
    }
    /// Parameters of a graph node that waits for values in memory and writes them.
    hipBatchMemOpNodeParams {
        ctx: hipCtx_t,
        count: c_uint,
        paramArray: *mut hipStreamMemOpWaitValueParams_t,
        flags: c_uint,
    }
    /// Parameters of a graph node that allocates memory.
    hipMemAllocNodeParams {
        poolProps: hipMemPoolProps,
        accessDescs: *const hipMemAccessDesc,
        accessDescCount: usize,
        bytesize: usize,
        dptr: *mut c_void,
    }
    /// Properties of physical memory.
    hipMemAllocationProp {
        r#type: hipMemAllocationType,
        requestedHandleType: hipMemAllocationHandleType,
        location: hipMemLocation,
        win32HandleMetaData: *mut c_void,
        allocFlags: [u8; 4],
    }
    /// Parameters of a graph node that fills memory, for functions of the driver API of release 6.
    HIP_MEMSET_NODE_PARAMS {
        dst: *mut c_void,
        pitch: usize,
        value: c_uint,
        elementSize: c_uint,
        width: usize,
        height: usize,
    }
    /// One end of a copy that is not an array.
    hipMemcpy3DOperandPtr {
        ptr: *mut c_void,
        rowLength: usize,
        layerHeight: usize,
        locHint: hipMemLocation,
    }
    /// One end of a copy.
    hipMemcpy3DOperand {
        r#type: hipMemcpy3DOperandType,
        op: hipMemcpy3DOperandPtr,
    }
    /// One of several copies.
    hipMemcpy3DBatchOp {
        src: hipMemcpy3DOperand,
        dst: hipMemcpy3DOperand,
        extent: hipExtent,
        srcAccessOrder: hipMemcpySrcAccessOrder,
        flags: c_uint,
    }
    /// The size of a launch, its stream and its attributes, for functions of the driver API.
    HIP_LAUNCH_CONFIG {
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        hStream: hipStream_t,
        attrs: *mut hipLaunchAttribute,
        numAttrs: c_uint,
    }
}

unions! {
    /// The value of a launch attribute.
    hipLaunchAttributeValue {
        pad: [c_char; 64],
        accessPolicyWindow: hipAccessPolicyWindow,
        cooperative: c_int,
        priority: c_int,
        syncPolicy: hipSynchronizationPolicy,
        memSyncDomainMap: hipLaunchMemSyncDomainMap,
        memSyncDomain: hipLaunchMemSyncDomain,
    }
}
