//! hipDeviceGetAttribute: THE table, one row per hipDeviceAttribute_t of HIP 6 that has a value here.
//!
//! Not in the table, and answered with an error: the ones without a meaning on Linux (Luid…), unused numbers, and those whose
//! value is an address in the asking process (Hdp…FlushCntl). A 0 says that the emulated device lacks the feature: it has no
//! image instructions, its memory pools and virtual memory management are not reachable, and host memory is another machine's.

use crate::Arch;
use crate::property::{self as p, Model};

/// A row: `hipDeviceAttribute_t`, its name without the prefix, its value.
type Row = (i32, &'static str, fn(&Model) -> i32);

macro_rules! attributes {
    ($model:ident: $($code:literal $name:ident = $value:expr;)*) => {
        /// In ascending order.
        const ATTRIBUTES: &[Row] = &[$(($code, stringify!($name), |$model| { let _ = $model; $value })),*];
    };
}

attributes! {
    model:
    0 EccEnabled = 0;
    1 AccessPolicyMaxWindowSize = 0;
    2 AsyncEngineCount = 4;
    3 CanMapHostMemory = 1;
    4 CanUseHostPointerForRegisteredMem = 1;
    5 ClockRate = model.clock_khz;
    6 ComputeMode = 0;
    7 ComputePreemptionSupported = 0;
    8 ConcurrentKernels = 1;
    9 ConcurrentManagedAccess = 0;
    10 CooperativeLaunch = 1;
    11 CooperativeMultiDeviceLaunch = 0;
    12 DeviceOverlap = 1;
    13 DirectManagedMemAccessFromHost = 0;
    14 GlobalL1CacheSupported = 1;
    15 HostNativeAtomicSupported = 0;
    16 Integrated = 0;
    17 IsMultiGpuBoard = 0;
    18 KernelExecTimeout = 0;
    19 L2CacheSize = model.l2_bytes;
    20 LocalL1CacheSupported = 1;
    23 ComputeCapabilityMajor = model.capability[0];
    24 ManagedMemory = 1;
    25 MaxBlocksPerMultiProcessor = p::GROUPS_PER_CU as i32;
    26 MaxBlockDimX = p::GROUP_MAX[0] as i32;
    27 MaxBlockDimY = p::GROUP_MAX[1] as i32;
    28 MaxBlockDimZ = p::GROUP_MAX[2] as i32;
    29 MaxGridDimX = p::GRID_MAX[0] as i32;
    30 MaxGridDimY = p::GRID_MAX[1] as i32;
    31 MaxGridDimZ = p::GRID_MAX[2] as i32;
    32 MaxSurface1D = 0;
    33 MaxSurface1DLayered = 0;
    34 MaxSurface2D = 0;
    35 MaxSurface2DLayered = 0;
    36 MaxSurface3D = 0;
    37 MaxSurfaceCubemap = 0;
    38 MaxSurfaceCubemapLayered = 0;
    39 MaxTexture1DWidth = 0;
    40 MaxTexture1DLayered = 0;
    41 MaxTexture1DLinear = 0;
    42 MaxTexture1DMipmap = 0;
    43 MaxTexture2DWidth = 0;
    44 MaxTexture2DHeight = 0;
    45 MaxTexture2DGather = 0;
    46 MaxTexture2DLayered = 0;
    47 MaxTexture2DLinear = 0;
    48 MaxTexture2DMipmap = 0;
    49 MaxTexture3DWidth = 0;
    50 MaxTexture3DHeight = 0;
    51 MaxTexture3DDepth = 0;
    52 MaxTexture3DAlt = 0;
    53 MaxTextureCubemap = 0;
    54 MaxTextureCubemapLayered = 0;
    55 MaxThreadsDim = p::GROUP_MAX[0] as i32;
    56 MaxThreadsPerBlock = p::THREADS_PER_GROUP as i32;
    57 MaxThreadsPerMultiProcessor = p::THREADS_PER_CU as i32;
    58 MaxPitch = i32::MAX;
    59 MemoryBusWidth = model.memory_bus_bits;
    60 MemoryClockRate = model.memory_clock_khz;
    61 ComputeCapabilityMinor = model.capability[1];
    62 MultiGpuBoardGroupID = 0;
    63 MultiprocessorCount = model.compute_units as i32;
    65 PageableMemoryAccess = 0;
    66 PageableMemoryAccessUsesHostPageTables = 0;
    67 PciBusId = p::PCI[1];
    68 PciDeviceId = p::PCI[2];
    69 PciDomainID = p::PCI[0];
    70 PersistingL2CacheMaxSize = 0;
    71 MaxRegistersPerBlock = p::REGISTERS_PER_GROUP as i32;
    72 MaxRegistersPerMultiprocessor = (p::VGPRS_PER_SIMD * p::SIMDS_PER_CU * p::WAVE_LANES) as i32;
    73 ReservedSharedMemPerBlock = 0;
    74 MaxSharedMemoryPerBlock = p::LDS_BYTES as i32;
    75 SharedMemPerBlockOptin = p::LDS_BYTES as i32;
    76 SharedMemPerMultiprocessor = p::LDS_BYTES as i32;
    77 SingleToDoublePrecisionPerfRatio = 2;
    78 StreamPrioritiesSupported = 1;
    79 SurfaceAlignment = 0;
    80 TccDriver = 0;
    81 TextureAlignment = p::PITCH_BYTES;
    82 TexturePitchAlignment = p::PITCH_BYTES;
    83 TotalConstantMemory = i32::MAX;
    85 UnifiedAddressing = 1;
    87 WarpSize = p::WAVE_LANES as i32;
    88 MemoryPoolsSupported = 0;
    89 VirtualMemoryManagementSupported = 0;
    90 HostRegisterSupported = 1;
    91 MemoryPoolSupportedHandleTypes = 0;
    10000 ClockInstructionRate = p::WALL_CLOCK_KHZ;
    10002 MaxSharedMemoryPerMultiprocessor = p::LDS_BYTES as i32;
    10007 CooperativeMultiDeviceUnmatchedFunc = 0;
    10008 CooperativeMultiDeviceUnmatchedGridDim = 0;
    10009 CooperativeMultiDeviceUnmatchedBlockDim = 0;
    10010 CooperativeMultiDeviceUnmatchedSharedMem = 0;
    10011 IsLargeBar = 0;
    10012 AsicRevision = 1;
    10013 CanUseStreamWaitValue = 0;
    10014 ImageSupport = 0;
    10015 PhysicalMultiProcessorCount = model.compute_units as i32;
    10016 FineGrainSupport = 0;
    10017 WallClockRate = p::WALL_CLOCK_KHZ;
}

/// TotalGlobalMem, the one whose value depends on the configuration.
pub const TOTAL_GLOBAL_MEM: i32 = 84;

/// The value of `attribute` on a device of this kind with `memory_bytes` bytes, if it has one. Sizes beyond an `int` are its
/// largest value.
pub fn attribute(arch: Arch, attribute: i32, memory_bytes: u64) -> Option<i32> {
    if attribute == TOTAL_GLOBAL_MEM {
        return Some(i32::try_from(memory_bytes).unwrap_or(i32::MAX));
    }
    let row = ATTRIBUTES.binary_search_by_key(&attribute, |&(code, ..)| code).ok()?;
    ATTRIBUTES.get(row).map(|(_, _, value)| value(arch.model()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_ascend_so_that_the_search_finds_them() {
        assert!(ATTRIBUTES.is_sorted_by(|a, b| a.0 < b.0));
        for arch in Arch::ALL {
            for &(code, name, value) in ATTRIBUTES {
                assert_eq!(attribute(arch, code, 0), Some(value(arch.model())), "{name}");
            }
        }
    }
}
