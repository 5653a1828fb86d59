//! The table of device attributes (hipDeviceGetAttribute): one row per hipDeviceAttribute_t of HIP 6 that has a value here.
//!
//! Not in the table, and answered with an error: the ones without a meaning on Linux (Luid…), unused numbers, and those whose
//! value is an address in the asking process (Hdp…FlushCntl). A 0 says that the emulated device lacks the feature: it has no
//! image instructions, its memory pools and virtual memory management are not reachable, and host memory is another machine's.

use hipr_abi::*;

use crate::property::{self as p, Model};
use hipr_isa::Arch;

/// A row: `hipDeviceAttribute_t`, its name, its value.
type Row = (i32, &'static str, fn(&Model) -> i32);

macro_rules! attributes {
    ($model:ident: $($code:ident = $value:expr;)*) => {
        /// The rows in ascending order.
        const ATTRIBUTES: &[Row] = &[$(($code, stringify!($code), |$model| { let _ = $model; $value })),*];
    };
}

attributes! {
    model:
    hipDeviceAttributeEccEnabled = 0;
    hipDeviceAttributeAccessPolicyMaxWindowSize = 0;
    hipDeviceAttributeAsyncEngineCount = 4;
    hipDeviceAttributeCanMapHostMemory = 1;
    hipDeviceAttributeCanUseHostPointerForRegisteredMem = 1;
    hipDeviceAttributeClockRate = model.clock_khz;
    hipDeviceAttributeComputeMode = 0;
    hipDeviceAttributeComputePreemptionSupported = 0;
    hipDeviceAttributeConcurrentKernels = 1;
    hipDeviceAttributeConcurrentManagedAccess = 0;
    hipDeviceAttributeCooperativeLaunch = 1;
    hipDeviceAttributeCooperativeMultiDeviceLaunch = 0;
    hipDeviceAttributeDeviceOverlap = 1;
    hipDeviceAttributeDirectManagedMemAccessFromHost = 0;
    hipDeviceAttributeGlobalL1CacheSupported = 1;
    hipDeviceAttributeHostNativeAtomicSupported = 0;
    hipDeviceAttributeIntegrated = 0;
    hipDeviceAttributeIsMultiGpuBoard = 0;
    hipDeviceAttributeKernelExecTimeout = 0;
    hipDeviceAttributeL2CacheSize = model.l2_bytes;
    hipDeviceAttributeLocalL1CacheSupported = 1;
    hipDeviceAttributeComputeCapabilityMajor = model.capability[0];
    hipDeviceAttributeManagedMemory = 1;
    hipDeviceAttributeMaxBlocksPerMultiProcessor = p::GROUPS_PER_CU as i32;
    hipDeviceAttributeMaxBlockDimX = p::GROUP_MAX[0] as i32;
    hipDeviceAttributeMaxBlockDimY = p::GROUP_MAX[1] as i32;
    hipDeviceAttributeMaxBlockDimZ = p::GROUP_MAX[2] as i32;
    hipDeviceAttributeMaxGridDimX = p::GRID_MAX[0] as i32;
    hipDeviceAttributeMaxGridDimY = p::GRID_MAX[1] as i32;
    hipDeviceAttributeMaxGridDimZ = p::GRID_MAX[2] as i32;
    hipDeviceAttributeMaxSurface1D = 0;
    hipDeviceAttributeMaxSurface1DLayered = 0;
    hipDeviceAttributeMaxSurface2D = 0;
    hipDeviceAttributeMaxSurface2DLayered = 0;
    hipDeviceAttributeMaxSurface3D = 0;
    hipDeviceAttributeMaxSurfaceCubemap = 0;
    hipDeviceAttributeMaxSurfaceCubemapLayered = 0;
    hipDeviceAttributeMaxTexture1DWidth = 0;
    hipDeviceAttributeMaxTexture1DLayered = 0;
    hipDeviceAttributeMaxTexture1DLinear = 0;
    hipDeviceAttributeMaxTexture1DMipmap = 0;
    hipDeviceAttributeMaxTexture2DWidth = 0;
    hipDeviceAttributeMaxTexture2DHeight = 0;
    hipDeviceAttributeMaxTexture2DGather = 0;
    hipDeviceAttributeMaxTexture2DLayered = 0;
    hipDeviceAttributeMaxTexture2DLinear = 0;
    hipDeviceAttributeMaxTexture2DMipmap = 0;
    hipDeviceAttributeMaxTexture3DWidth = 0;
    hipDeviceAttributeMaxTexture3DHeight = 0;
    hipDeviceAttributeMaxTexture3DDepth = 0;
    hipDeviceAttributeMaxTexture3DAlt = 0;
    hipDeviceAttributeMaxTextureCubemap = 0;
    hipDeviceAttributeMaxTextureCubemapLayered = 0;
    hipDeviceAttributeMaxThreadsDim = p::GROUP_MAX[0] as i32;
    hipDeviceAttributeMaxThreadsPerBlock = p::THREADS_PER_GROUP as i32;
    hipDeviceAttributeMaxThreadsPerMultiProcessor = p::THREADS_PER_CU as i32;
    hipDeviceAttributeMaxPitch = i32::MAX;
    hipDeviceAttributeMemoryBusWidth = model.memory_bus_bits;
    hipDeviceAttributeMemoryClockRate = model.memory_clock_khz;
    hipDeviceAttributeComputeCapabilityMinor = model.capability[1];
    hipDeviceAttributeMultiGpuBoardGroupID = 0;
    hipDeviceAttributeMultiprocessorCount = model.compute_units as i32;
    hipDeviceAttributePageableMemoryAccess = 0;
    hipDeviceAttributePageableMemoryAccessUsesHostPageTables = 0;
    hipDeviceAttributePciDeviceId = p::PCI[2];
    hipDeviceAttributePciDomainID = p::PCI[0];
    hipDeviceAttributePersistingL2CacheMaxSize = 0;
    hipDeviceAttributeMaxRegistersPerBlock = p::REGISTERS_PER_GROUP as i32;
    hipDeviceAttributeMaxRegistersPerMultiprocessor = (p::VGPRS_PER_SIMD * p::SIMDS_PER_CU * p::WAVE_LANES) as i32;
    hipDeviceAttributeReservedSharedMemPerBlock = 0;
    hipDeviceAttributeMaxSharedMemoryPerBlock = p::LDS_BYTES as i32;
    hipDeviceAttributeSharedMemPerBlockOptin = p::LDS_BYTES as i32;
    hipDeviceAttributeSharedMemPerMultiprocessor = p::LDS_BYTES as i32;
    hipDeviceAttributeSingleToDoublePrecisionPerfRatio = 2;
    hipDeviceAttributeStreamPrioritiesSupported = 1;
    hipDeviceAttributeSurfaceAlignment = 0;
    hipDeviceAttributeTccDriver = 0;
    hipDeviceAttributeTextureAlignment = p::PITCH_BYTES;
    hipDeviceAttributeTexturePitchAlignment = p::PITCH_BYTES;
    hipDeviceAttributeTotalConstantMemory = i32::MAX;
    hipDeviceAttributeUnifiedAddressing = 1;
    hipDeviceAttributeWarpSize = p::WAVE_LANES as i32;
    hipDeviceAttributeMemoryPoolsSupported = 0;
    hipDeviceAttributeVirtualMemoryManagementSupported = 1;
    hipDeviceAttributeHostRegisterSupported = 1;
    hipDeviceAttributeMemoryPoolSupportedHandleTypes = 0;
    hipDeviceAttributeClockInstructionRate = p::WALL_CLOCK_KHZ;
    hipDeviceAttributeMaxSharedMemoryPerMultiprocessor = p::LDS_BYTES as i32;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc = 0;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim = 0;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim = 0;
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem = 0;
    hipDeviceAttributeIsLargeBar = 0;
    hipDeviceAttributeAsicRevision = 1;
    hipDeviceAttributeCanUseStreamWaitValue = 0;
    hipDeviceAttributeImageSupport = 0;
    hipDeviceAttributePhysicalMultiProcessorCount = model.compute_units as i32;
    hipDeviceAttributeFineGrainSupport = 0;
    hipDeviceAttributeWallClockRate = p::WALL_CLOCK_KHZ;
}

// The rows whose values differ from device to device.
const TOTAL_GLOBAL_MEM: i32 = hipDeviceAttributeTotalGlobalMem;
const PCI_BUS: i32 = hipDeviceAttributePciBusId;

/// What differs from device to device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfDevice {
    /// The number of the device.
    pub number: usize,
    /// The size of its memory.
    pub memory_bytes: u64,
}

/// Returns the value of `attribute` on this device, if it has one. Sizes that do not fit an `int` become its largest value.
pub fn attribute(arch: Arch, attribute: i32, of: OfDevice) -> Option<i32> {
    if attribute == TOTAL_GLOBAL_MEM {
        return Some(i32::try_from(of.memory_bytes).unwrap_or(i32::MAX));
    }
    if attribute == PCI_BUS {
        return Some(p::pci(of.number)[1]);
    }
    let row = ATTRIBUTES.binary_search_by_key(&attribute, |&(code, ..)| code).ok()?;
    ATTRIBUTES.get(row).map(|(_, _, value)| value(Model::of(arch)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_ascend_so_that_the_search_finds_them() {
        assert!(ATTRIBUTES.is_sorted_by(|a, b| a.0 < b.0));
        let of = OfDevice { number: 0, memory_bytes: 0 };
        for arch in Arch::ALL {
            for &(code, name, value) in ATTRIBUTES {
                assert_eq!(attribute(arch, code, of), Some(value(Model::of(arch))), "{name}");
            }
        }
    }
}
