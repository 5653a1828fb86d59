//! Constants of the HIP API, by their C names.
//!
//! The list names them; their values come, at compile time, from `data/enums.tsv`, which was read from the headers of release
//! 6.4.3. Those of 7.2.4 agree; where release 5 differs, the type says so.

#![allow(non_upper_case_globals, reason = "the names are those of the C headers")]

use std::ffi::{c_int, c_uint};

use crate::data::{Columns, count, lines, number, same};
use crate::types::*;

const DATA: &[u8] = include_bytes!("../data/enums.tsv");
static ROWS: [Columns; count(DATA)] = lines(DATA);

/// The value of a constant; stops the build if the data does not have it.
const fn value(group: &str, name: &str, absent: &str) -> i64 {
    let mut row = 0;
    while row < ROWS.len() {
        let [of, this, value, ..] = ROWS[row];
        if same(this, name.as_bytes()) && same(of, group.as_bytes()) {
            return number(value);
        }
        row += 1;
    }
    panic!("{}", absent);
}

macro_rules! constants {
    ($($ty:ident { $($name:ident,)* })*) => {
        $($(
            #[doc = concat!("`", stringify!($name), "` of `", stringify!($ty), "`.")]
            pub const $name: $ty = value(
                stringify!($ty),
                stringify!($name),
                concat!("data/enums.tsv has no ", stringify!($name), " of ", stringify!($ty)),
            ) as $ty;
        )*)*
    };
}

constants! {
    hipMemcpyKind {
        hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice,
        hipMemcpyDefault, hipMemcpyDeviceToDeviceNoCU,
    }
    hipMemoryType {
        hipMemoryTypeUnregistered, hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeManaged,
        hipMemoryTypeArray, hipMemoryTypeUnified,
    }
    hipLimit_t {
        hipLimitStackSize, hipLimitPrintfFifoSize, hipLimitMallocHeapSize,
    }
    hipFuncCache_t {
        hipFuncCachePreferNone, hipFuncCachePreferShared, hipFuncCachePreferL1, hipFuncCachePreferEqual,
    }
    hipSharedMemConfig {
        hipSharedMemBankSizeDefault, hipSharedMemBankSizeFourByte, hipSharedMemBankSizeEightByte,
    }
    hipDeviceP2PAttr {
        hipDevP2PAttrPerformanceRank, hipDevP2PAttrAccessSupported, hipDevP2PAttrNativeAtomicSupported,
        hipDevP2PAttrHipArrayAccessSupported,
    }
    hipFunction_attribute {
        HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
        HIP_FUNC_ATTRIBUTE_NUM_REGS, HIP_FUNC_ATTRIBUTE_PTX_VERSION, HIP_FUNC_ATTRIBUTE_BINARY_VERSION,
        HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, HIP_FUNC_ATTRIBUTE_MAX,
    }
    hipFuncAttribute {
        hipFuncAttributeMaxDynamicSharedMemorySize, hipFuncAttributePreferredSharedMemoryCarveout,
        hipFuncAttributeMax,
    }
    hipPointer_attribute {
        HIP_POINTER_ATTRIBUTE_CONTEXT, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE,
        HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, HIP_POINTER_ATTRIBUTE_HOST_POINTER,
        HIP_POINTER_ATTRIBUTE_P2P_TOKENS, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS,
        HIP_POINTER_ATTRIBUTE_BUFFER_ID, HIP_POINTER_ATTRIBUTE_IS_MANAGED,
        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE,
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
        HIP_POINTER_ATTRIBUTE_MAPPED, HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
        HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS,
        HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
    }
    hipStreamCaptureMode {
        hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed,
    }
    hipStreamCaptureStatus {
        hipStreamCaptureStatusNone, hipStreamCaptureStatusActive, hipStreamCaptureStatusInvalidated,
    }
    hipMemPoolAttr {
        hipMemPoolReuseFollowEventDependencies, hipMemPoolReuseAllowOpportunistic,
        hipMemPoolReuseAllowInternalDependencies, hipMemPoolAttrReleaseThreshold,
        hipMemPoolAttrReservedMemCurrent, hipMemPoolAttrReservedMemHigh, hipMemPoolAttrUsedMemCurrent,
        hipMemPoolAttrUsedMemHigh,
    }
    hipMemLocationType {
        hipMemLocationTypeInvalid, hipMemLocationTypeDevice,
    }
    hipMemAllocationType {
        hipMemAllocationTypeInvalid, hipMemAllocationTypePinned, hipMemAllocationTypeMax,
    }
    hipMemAllocationHandleType {
        hipMemHandleTypeNone, hipMemHandleTypePosixFileDescriptor, hipMemHandleTypeWin32,
        hipMemHandleTypeWin32Kmt,
    }
    hipMemAccessFlags {
        hipMemAccessFlagsProtNone, hipMemAccessFlagsProtRead, hipMemAccessFlagsProtReadWrite,
    }
    hipMemoryAdvise {
        hipMemAdviseSetReadMostly, hipMemAdviseUnsetReadMostly, hipMemAdviseSetPreferredLocation,
        hipMemAdviseUnsetPreferredLocation, hipMemAdviseSetAccessedBy, hipMemAdviseUnsetAccessedBy,
        hipMemAdviseSetCoarseGrain, hipMemAdviseUnsetCoarseGrain,
    }
    hipMemRangeAttribute {
        hipMemRangeAttributeReadMostly, hipMemRangeAttributePreferredLocation,
        hipMemRangeAttributeAccessedBy, hipMemRangeAttributeLastPrefetchLocation,
        hipMemRangeAttributeCoherencyMode,
    }
    hipGraphNodeType {
        hipGraphNodeTypeKernel, hipGraphNodeTypeMemcpy, hipGraphNodeTypeMemset, hipGraphNodeTypeHost,
        hipGraphNodeTypeGraph, hipGraphNodeTypeEmpty, hipGraphNodeTypeWaitEvent,
        hipGraphNodeTypeEventRecord, hipGraphNodeTypeExtSemaphoreSignal, hipGraphNodeTypeExtSemaphoreWait,
        hipGraphNodeTypeMemAlloc, hipGraphNodeTypeMemFree, hipGraphNodeTypeMemcpyFromSymbol,
        hipGraphNodeTypeMemcpyToSymbol, hipGraphNodeTypeBatchMemOp, hipGraphNodeTypeCount,
    }
    hipGraphExecUpdateResult {
        hipGraphExecUpdateSuccess, hipGraphExecUpdateError, hipGraphExecUpdateErrorTopologyChanged,
        hipGraphExecUpdateErrorNodeTypeChanged, hipGraphExecUpdateErrorFunctionChanged,
        hipGraphExecUpdateErrorParametersChanged, hipGraphExecUpdateErrorNotSupported,
        hipGraphExecUpdateErrorUnsupportedFunctionChange,
    }
    hipError_t {
        hipSuccess, hipErrorInvalidValue, hipErrorOutOfMemory, hipErrorMemoryAllocation,
        hipErrorNotInitialized, hipErrorInitializationError, hipErrorDeinitialized,
        hipErrorProfilerDisabled, hipErrorProfilerNotInitialized, hipErrorProfilerAlreadyStarted,
        hipErrorProfilerAlreadyStopped, hipErrorInvalidConfiguration, hipErrorInvalidPitchValue,
        hipErrorInvalidSymbol, hipErrorInvalidDevicePointer, hipErrorInvalidMemcpyDirection,
        hipErrorInsufficientDriver, hipErrorMissingConfiguration, hipErrorPriorLaunchFailure,
        hipErrorInvalidDeviceFunction, hipErrorNoDevice, hipErrorInvalidDevice, hipErrorInvalidImage,
        hipErrorInvalidContext, hipErrorContextAlreadyCurrent, hipErrorMapFailed,
        hipErrorMapBufferObjectFailed, hipErrorUnmapFailed, hipErrorArrayIsMapped, hipErrorAlreadyMapped,
        hipErrorNoBinaryForGpu, hipErrorAlreadyAcquired, hipErrorNotMapped, hipErrorNotMappedAsArray,
        hipErrorNotMappedAsPointer, hipErrorECCNotCorrectable, hipErrorUnsupportedLimit,
        hipErrorContextAlreadyInUse, hipErrorPeerAccessUnsupported, hipErrorInvalidKernelFile,
        hipErrorInvalidGraphicsContext, hipErrorInvalidSource, hipErrorFileNotFound,
        hipErrorSharedObjectSymbolNotFound, hipErrorSharedObjectInitFailed, hipErrorOperatingSystem,
        hipErrorInvalidHandle, hipErrorInvalidResourceHandle, hipErrorIllegalState, hipErrorNotFound,
        hipErrorNotReady, hipErrorIllegalAddress, hipErrorLaunchOutOfResources, hipErrorLaunchTimeOut,
        hipErrorPeerAccessAlreadyEnabled, hipErrorPeerAccessNotEnabled, hipErrorSetOnActiveProcess,
        hipErrorContextIsDestroyed, hipErrorAssert, hipErrorHostMemoryAlreadyRegistered,
        hipErrorHostMemoryNotRegistered, hipErrorLaunchFailure, hipErrorCooperativeLaunchTooLarge,
        hipErrorNotSupported, hipErrorStreamCaptureUnsupported, hipErrorStreamCaptureInvalidated,
        hipErrorStreamCaptureMerge, hipErrorStreamCaptureUnmatched, hipErrorStreamCaptureUnjoined,
        hipErrorStreamCaptureIsolation, hipErrorStreamCaptureImplicit, hipErrorCapturedEvent,
        hipErrorStreamCaptureWrongThread, hipErrorGraphExecUpdateFailure, hipErrorInvalidChannelDescriptor,
        hipErrorInvalidTexture, hipErrorUnknown, hipErrorRuntimeMemory, hipErrorRuntimeOther, hipErrorTbd,
    }
    hipDeviceAttribute_t {
        hipDeviceAttributeCudaCompatibleBegin, hipDeviceAttributeEccEnabled,
        hipDeviceAttributeAccessPolicyMaxWindowSize, hipDeviceAttributeAsyncEngineCount,
        hipDeviceAttributeCanMapHostMemory, hipDeviceAttributeCanUseHostPointerForRegisteredMem,
        hipDeviceAttributeClockRate, hipDeviceAttributeComputeMode,
        hipDeviceAttributeComputePreemptionSupported, hipDeviceAttributeConcurrentKernels,
        hipDeviceAttributeConcurrentManagedAccess, hipDeviceAttributeCooperativeLaunch,
        hipDeviceAttributeCooperativeMultiDeviceLaunch, hipDeviceAttributeDeviceOverlap,
        hipDeviceAttributeDirectManagedMemAccessFromHost, hipDeviceAttributeGlobalL1CacheSupported,
        hipDeviceAttributeHostNativeAtomicSupported, hipDeviceAttributeIntegrated,
        hipDeviceAttributeIsMultiGpuBoard, hipDeviceAttributeKernelExecTimeout,
        hipDeviceAttributeL2CacheSize, hipDeviceAttributeLocalL1CacheSupported, hipDeviceAttributeLuid,
        hipDeviceAttributeLuidDeviceNodeMask, hipDeviceAttributeComputeCapabilityMajor,
        hipDeviceAttributeManagedMemory, hipDeviceAttributeMaxBlocksPerMultiProcessor,
        hipDeviceAttributeMaxBlockDimX, hipDeviceAttributeMaxBlockDimY, hipDeviceAttributeMaxBlockDimZ,
        hipDeviceAttributeMaxGridDimX, hipDeviceAttributeMaxGridDimY, hipDeviceAttributeMaxGridDimZ,
        hipDeviceAttributeMaxSurface1D, hipDeviceAttributeMaxSurface1DLayered,
        hipDeviceAttributeMaxSurface2D, hipDeviceAttributeMaxSurface2DLayered,
        hipDeviceAttributeMaxSurface3D, hipDeviceAttributeMaxSurfaceCubemap,
        hipDeviceAttributeMaxSurfaceCubemapLayered, hipDeviceAttributeMaxTexture1DWidth,
        hipDeviceAttributeMaxTexture1DLayered, hipDeviceAttributeMaxTexture1DLinear,
        hipDeviceAttributeMaxTexture1DMipmap, hipDeviceAttributeMaxTexture2DWidth,
        hipDeviceAttributeMaxTexture2DHeight, hipDeviceAttributeMaxTexture2DGather,
        hipDeviceAttributeMaxTexture2DLayered, hipDeviceAttributeMaxTexture2DLinear,
        hipDeviceAttributeMaxTexture2DMipmap, hipDeviceAttributeMaxTexture3DWidth,
        hipDeviceAttributeMaxTexture3DHeight, hipDeviceAttributeMaxTexture3DDepth,
        hipDeviceAttributeMaxTexture3DAlt, hipDeviceAttributeMaxTextureCubemap,
        hipDeviceAttributeMaxTextureCubemapLayered, hipDeviceAttributeMaxThreadsDim,
        hipDeviceAttributeMaxThreadsPerBlock, hipDeviceAttributeMaxThreadsPerMultiProcessor,
        hipDeviceAttributeMaxPitch, hipDeviceAttributeMemoryBusWidth, hipDeviceAttributeMemoryClockRate,
        hipDeviceAttributeComputeCapabilityMinor, hipDeviceAttributeMultiGpuBoardGroupID,
        hipDeviceAttributeMultiprocessorCount, hipDeviceAttributeUnused1,
        hipDeviceAttributePageableMemoryAccess, hipDeviceAttributePageableMemoryAccessUsesHostPageTables,
        hipDeviceAttributePciBusId, hipDeviceAttributePciDeviceId, hipDeviceAttributePciDomainID,
        hipDeviceAttributePersistingL2CacheMaxSize, hipDeviceAttributeMaxRegistersPerBlock,
        hipDeviceAttributeMaxRegistersPerMultiprocessor, hipDeviceAttributeReservedSharedMemPerBlock,
        hipDeviceAttributeMaxSharedMemoryPerBlock, hipDeviceAttributeSharedMemPerBlockOptin,
        hipDeviceAttributeSharedMemPerMultiprocessor, hipDeviceAttributeSingleToDoublePrecisionPerfRatio,
        hipDeviceAttributeStreamPrioritiesSupported, hipDeviceAttributeSurfaceAlignment,
        hipDeviceAttributeTccDriver, hipDeviceAttributeTextureAlignment,
        hipDeviceAttributeTexturePitchAlignment, hipDeviceAttributeTotalConstantMemory,
        hipDeviceAttributeTotalGlobalMem, hipDeviceAttributeUnifiedAddressing, hipDeviceAttributeUnused2,
        hipDeviceAttributeWarpSize, hipDeviceAttributeMemoryPoolsSupported,
        hipDeviceAttributeVirtualMemoryManagementSupported, hipDeviceAttributeHostRegisterSupported,
        hipDeviceAttributeMemoryPoolSupportedHandleTypes, hipDeviceAttributeCudaCompatibleEnd,
        hipDeviceAttributeAmdSpecificBegin, hipDeviceAttributeClockInstructionRate,
        hipDeviceAttributeUnused3, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor,
        hipDeviceAttributeUnused4, hipDeviceAttributeUnused5, hipDeviceAttributeHdpMemFlushCntl,
        hipDeviceAttributeHdpRegFlushCntl, hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem, hipDeviceAttributeIsLargeBar,
        hipDeviceAttributeAsicRevision, hipDeviceAttributeCanUseStreamWaitValue,
        hipDeviceAttributeImageSupport, hipDeviceAttributePhysicalMultiProcessorCount,
        hipDeviceAttributeFineGrainSupport, hipDeviceAttributeWallClockRate,
        hipDeviceAttributeAmdSpecificEnd, hipDeviceAttributeVendorSpecificBegin,
    }
    c_uint {
        hipStreamAddCaptureDependencies, hipStreamSetCaptureDependencies,
        hipStreamDefault, hipStreamNonBlocking, hipEventDefault, hipEventBlockingSync,
        hipEventDisableTiming, hipEventInterprocess, hipEventDisableSystemFence, hipEventReleaseToDevice,
        hipEventReleaseToSystem, hipHostMallocDefault, hipHostMallocPortable, hipHostMallocMapped,
        hipHostMallocWriteCombined, hipHostMallocNumaUser, hipHostMallocCoherent, hipHostMallocNonCoherent,
        hipHostRegisterDefault, hipHostRegisterPortable, hipHostRegisterMapped, hipMemAttachGlobal,
        hipMemAttachHost, hipMemAttachSingle, hipDeviceMallocDefault, hipDeviceMallocFinegrained,
        hipDeviceMallocUncached, hipDeviceMallocContiguous, hipDeviceScheduleAuto, hipDeviceScheduleSpin,
        hipDeviceScheduleYield, hipDeviceScheduleBlockingSync,
    }
    c_int {
        hipCpuDeviceId, hipInvalidDeviceId,
    }
    usize {
        HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END,
        hipStreamLegacy, hipStreamPerThread,
    }
}
