//! Constants of the HIP API, by their C names.
//!
//! The list names them; their values come, while compiling, from `data/enums.tsv`, which was read from the headers of releases
//! 6.4.3 and 7.2.4: the build stops at a name that neither has, or whose values differ. Where release 5 differs, the type says so.

#![allow(non_upper_case_globals, reason = "the names are those of the C headers")]

use core::ffi::{c_int, c_uint};

use crate::data::{Columns, count, lines, number, same};
use crate::types::*;

const DATA: &[u8] = include_bytes!("../data/enums.tsv");
static ROWS: [Columns; count(DATA)] = lines(DATA);

/// Returns the values of a constant in the two releases; stops the build if the data does not have it.
const fn values(group: &str, name: &str, absent: &str) -> [&'static [u8]; 2] {
    let mut row = 0;
    while row < ROWS.len() {
        let [of, this, older, newer, ..] = ROWS[row];
        if same(this, name.as_bytes()) && same(of, group.as_bytes()) {
            return [older, newer];
        }
        row += 1;
    }
    panic!("{}", absent);
}

/// Returns the value of a constant; stops the build if the data does not have it, or two values of it.
const fn value(group: &str, name: &str, wrong: &str) -> i64 {
    match values(group, name, wrong) {
        [value, b"-"] | [b"-", value] => number(value),
        [older, newer] if same(older, newer) => number(older),
        _ => panic!("{}", wrong),
    }
}

/// The version of HIP whose functions and structures hipr has: `HIP_VERSION` of release 6.4.3.
pub const HIP_VERSION: c_int =
    number(values("c_int", "HIP_VERSION", "data/enums.tsv has no HIP_VERSION")[0]) as c_int;

macro_rules! constants {
    ($($ty:ident { $($name:ident,)* })*) => {
        $($(
            #[doc = concat!("`", stringify!($name), "` of `", stringify!($ty), "`.")]
            pub const $name: $ty = value(
                stringify!($ty),
                stringify!($name),
                concat!("data/enums.tsv has not one value of ", stringify!($name), " of ", stringify!($ty)),
            ) as $ty;
        )*)*

        /// Every constant of this crate: its type, its name and its value.
        pub const CONSTANTS: &[(&str, &str, i64)] = &[$($((stringify!($ty), stringify!($name), $name as i64),)*)*];
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
        hipMemLocationTypeInvalid, hipMemLocationTypeDevice, hipMemLocationTypeNone, hipMemLocationTypeHost,
        hipMemLocationTypeHostNuma, hipMemLocationTypeHostNumaCurrent,
    }
    hipMemAllocationType {
        hipMemAllocationTypeInvalid, hipMemAllocationTypePinned, hipMemAllocationTypeMax,
        hipMemAllocationTypeUncached,
    }
    hipMemAllocationHandleType {
        hipMemHandleTypeNone, hipMemHandleTypePosixFileDescriptor, hipMemHandleTypeWin32,
        hipMemHandleTypeWin32Kmt,
    }
    hipMemAllocationGranularity_flags {
        hipMemAllocationGranularityMinimum, hipMemAllocationGranularityRecommended,
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
    hipMemRangeCoherencyMode {
        hipMemRangeCoherencyModeFineGrain, hipMemRangeCoherencyModeCoarseGrain,
        hipMemRangeCoherencyModeIndeterminate,
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
    hipDriverProcAddressQueryResult {
        HIP_GET_PROC_ADDRESS_SUCCESS, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND,
        HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
    }
    hipUserObjectFlags { hipUserObjectNoDestructorSync, }
    hipUserObjectRetainFlags { hipGraphUserObjectMove, }
    hipGraphDebugDotFlags {
        hipGraphDebugDotFlagsVerbose, hipGraphDebugDotFlagsKernelNodeParams,
        hipGraphDebugDotFlagsMemcpyNodeParams, hipGraphDebugDotFlagsMemsetNodeParams,
        hipGraphDebugDotFlagsHostNodeParams, hipGraphDebugDotFlagsEventNodeParams,
        hipGraphDebugDotFlagsExtSemasSignalNodeParams, hipGraphDebugDotFlagsExtSemasWaitNodeParams,
        hipGraphDebugDotFlagsKernelNodeAttributes, hipGraphDebugDotFlagsHandles,
    }
    hipGraphInstantiateFlags {
        hipGraphInstantiateFlagAutoFreeOnLaunch, hipGraphInstantiateFlagUpload,
        hipGraphInstantiateFlagDeviceLaunch, hipGraphInstantiateFlagUseNodePriority,
    }
    hipGraphInstantiateResult {
        hipGraphInstantiateSuccess, hipGraphInstantiateError, hipGraphInstantiateInvalidStructure,
        hipGraphInstantiateNodeOperationNotSupported, hipGraphInstantiateMultipleDevicesNotSupported,
    }
    hipAccessProperty { hipAccessPropertyNormal, hipAccessPropertyStreaming, hipAccessPropertyPersisting, }
    hipStreamBatchMemOpType {
        hipStreamMemOpWaitValue32, hipStreamMemOpWriteValue32, hipStreamMemOpWaitValue64, hipStreamMemOpWriteValue64, hipStreamMemOpBarrier, hipStreamMemOpFlushRemoteWrites,
    }
    hipGraphMemAttributeType {
        hipGraphMemAttrUsedMemCurrent, hipGraphMemAttrUsedMemHigh, hipGraphMemAttrReservedMemCurrent, hipGraphMemAttrReservedMemHigh,
    }
    hipSynchronizationPolicy {
        hipSyncPolicyAuto, hipSyncPolicySpin, hipSyncPolicyYield, hipSyncPolicyBlockingSync,
    }
    hipMemcpy3DOperandType {
        hipMemcpyOperandTypePointer, hipMemcpyOperandTypeArray,
    }
    hipMemcpySrcAccessOrder {
        hipMemcpySrcAccessOrderStream, hipMemcpySrcAccessOrderDuringApiCall, hipMemcpySrcAccessOrderAny,
    }
    hipLaunchAttributeID {
        hipLaunchAttributeAccessPolicyWindow, hipLaunchAttributeCooperative, hipLaunchAttributePriority,
        hipLaunchAttributeSynchronizationPolicy, hipLaunchAttributeMemSyncDomainMap,
        hipLaunchAttributeMemSyncDomain, hipLaunchAttributeMax,
    }
    hipChannelFormatKind {
        hipChannelFormatKindSigned, hipChannelFormatKindUnsigned, hipChannelFormatKindFloat,
        hipChannelFormatKindNone,
    }
    hipArray_Format {
        HIP_AD_FORMAT_UNSIGNED_INT8, HIP_AD_FORMAT_UNSIGNED_INT16, HIP_AD_FORMAT_UNSIGNED_INT32,
        HIP_AD_FORMAT_SIGNED_INT8, HIP_AD_FORMAT_SIGNED_INT16, HIP_AD_FORMAT_SIGNED_INT32, HIP_AD_FORMAT_HALF,
        HIP_AD_FORMAT_FLOAT,
    }
    hipComputeMode {
        hipComputeModeDefault, hipComputeModeExclusive, hipComputeModeProhibited,
        hipComputeModeExclusiveProcess,
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
        hipDeviceAttributePciDomainId, hipDeviceAttributeHostNumaId, hipDeviceAttributeNumberOfXccs,
        hipDeviceAttributeMaxAvailableVgprsPerThread, hipDeviceAttributePciChipId,
    }
    c_uint {
        hipStreamAddCaptureDependencies, hipStreamSetCaptureDependencies, hipStreamDefault,
        hipStreamNonBlocking, hipEventDefault, hipEventBlockingSync, hipEventDisableTiming,
        hipEventInterprocess, hipEventRecordDefault, hipEventRecordExternal, hipEventWaitDefault,
        hipEventWaitExternal, hipEventDisableSystemFence, hipEventReleaseToDevice, hipEventReleaseToSystem,
        hipHostMallocDefault, hipHostMallocPortable, hipHostMallocMapped, hipHostMallocWriteCombined,
        hipHostMallocUncached, hipHostMallocNumaUser, hipHostMallocCoherent, hipHostMallocNonCoherent,
        hipHostRegisterDefault, hipHostRegisterPortable, hipHostRegisterMapped, hipHostRegisterIoMemory,
        hipHostRegisterReadOnly, hipMemAttachGlobal, hipMemAttachHost, hipMemAttachSingle,
        hipDeviceMallocDefault, hipDeviceMallocFinegrained, hipMallocSignalMemory, hipDeviceMallocUncached,
        hipDeviceMallocContiguous, hipDeviceScheduleAuto, hipDeviceScheduleSpin, hipDeviceScheduleYield,
        hipDeviceScheduleBlockingSync, hipDeviceScheduleMask, hipDeviceMapHost, hipDeviceLmemResizeToMax,
        hipIpcMemLazyEnablePeerAccess, hipOccupancyDefault, hipOccupancyDisableCachingOverride,
        hipExtAnyOrderLaunch, hipStreamWaitValueGte, hipStreamWaitValueEq, hipStreamWaitValueAnd,
        hipStreamWaitValueNor, hipCooperativeLaunchMultiDeviceNoPreSync,
        hipCooperativeLaunchMultiDeviceNoPostSync, hipEnableDefault, hipEnableLegacyStream,
        hipEnablePerThreadDefaultStream, hipArrayLayered, hipArraySurfaceLoadStore, hipArrayCubemap,
        hipArrayTextureGather, HIP_TRSA_OVERRIDE_FORMAT,
    }
    c_int {
        hipCpuDeviceId, hipInvalidDeviceId,
    }
    usize {
        HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END,
        hipStreamLegacy, hipStreamPerThread, HIP_IPC_HANDLE_SIZE,
    }
}
