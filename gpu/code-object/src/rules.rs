//! What hipr's emulated GPUs say of a kernel: its attributes, and how many of its workgroups fit on a compute unit. All of it follows from
//! the code object and a few numbers of the device, so that a client which has both needs not ask.

use hipr_abi::{
    hipFuncAttributeMax, hipFuncAttributeMaxDynamicSharedMemorySize,
    hipFuncAttributePreferredSharedMemoryCarveout, hipFuncAttributes,
};

use crate::Kernel;

/// Work-items of a wave.
pub const WAVE_LANES: u32 = 64;
/// SIMDs of a compute unit.
pub const SIMDS_PER_CU: u32 = 4;
/// Waves that a SIMD holds.
pub const WAVES_PER_SIMD: u32 = 8;
/// Vector registers of a SIMD's lane, architected and accumulation together.
pub const VGPRS_PER_SIMD: u32 = 512;
/// A wave's vector registers are allocated in multiples of this.
pub const VGPR_GRANULE: u32 = 8;
/// Workgroups that a compute unit holds.
pub const GROUPS_PER_CU: u32 = SIMDS_PER_CU * WAVES_PER_SIMD;
/// LDS of a compute unit in bytes; one workgroup may use all of it.
pub const LDS_BYTES: u32 = 64 << 10;
/// Work-items of a workgroup.
pub const THREADS_PER_GROUP: u32 = 1024;

/// The resources of a compute unit that a kernel needs, and what else the device says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelNeeds {
    /// Vector registers of a lane that the metadata names.
    pub named_vgprs: u32,
    /// Vector registers that a lane gets, both kinds.
    pub vgprs: u32,
    /// LDS of a workgroup that the kernel itself declares, in bytes.
    pub lds_bytes: u32,
    /// Scratch of a lane in bytes.
    pub private_bytes: u32,
    /// Largest workgroup that the kernel was compiled for.
    pub max_block_size: u32,
}

impl Kernel {
    /// Returns the LDS of a workgroup that the kernel itself declares, in bytes.
    pub fn static_lds_bytes(&self) -> u32 {
        self.descriptor.group_segment_bytes.max(self.group_segment_bytes)
    }

    /// Returns what the kernel needs on a processor (`gfx942`).
    pub fn needs(&self, processor: &str) -> KernelNeeds {
        KernelNeeds {
            named_vgprs: self.vgpr_count,
            vgprs: self.descriptor.vgprs(processor),
            lds_bytes: self.static_lds_bytes(),
            private_bytes: self.descriptor.private_segment_bytes,
            max_block_size: self.max_flat_workgroup_size,
        }
    }
}

impl KernelNeeds {
    /// Returns the kernel's attributes (HIP API: hipFuncGetAttributes) on a device with this compute capability, major and minor.
    pub fn attributes(&self, [major, minor]: [i32; 2]) -> hipFuncAttributes {
        let version = major.saturating_mul(10).saturating_add(minor);
        hipFuncAttributes {
            binaryVersion: version,
            cacheModeCA: 0,
            constSizeBytes: 0,
            localSizeBytes: self.private_bytes as usize,
            maxDynamicSharedSizeBytes: int(self.free_lds_bytes()),
            maxThreadsPerBlock: int(self.max_block_size),
            numRegs: int(self.named_vgprs),
            preferredShmemCarveout: 0,
            ptxVersion: version,
            sharedSizeBytes: self.lds_bytes as usize,
        }
    }

    /// Returns whether a `hipFuncAttribute` of the kernel can be set to a value. It has no effect, because every kernel can use all LDS.
    pub fn accepts(&self, attribute: i32, value: i32) -> bool {
        if attribute == hipFuncAttributeMaxDynamicSharedMemorySize {
            u32::try_from(value).is_ok_and(|value| value <= self.free_lds_bytes())
        } else if attribute == hipFuncAttributePreferredSharedMemoryCarveout {
            (-1..=100).contains(&value)
        } else {
            (0..=hipFuncAttributeMax).contains(&attribute)
        }
    }

    fn free_lds_bytes(&self) -> u32 {
        LDS_BYTES.saturating_sub(self.lds_bytes)
    }

    /// Returns how many workgroups of `block_size` work-items with `dynamic_bytes` of dynamic LDS fit on a compute unit at a time. As on AMD's
    /// runtime the largest workgroup that the kernel was compiled for does not count.
    pub fn groups_per_cu(&self, block_size: u32, dynamic_bytes: u64) -> u32 {
        if block_size == 0 || block_size > THREADS_PER_GROUP {
            return 0;
        }
        let by_waves = self.waves_per_cu() / block_size.div_ceil(WAVE_LANES);
        by_waves.min(self.groups_by_lds(dynamic_bytes))
    }

    /// Returns how many waves of the kernel fit on a compute unit at a time.
    fn waves_per_cu(&self) -> u32 {
        let vgprs = self.vgprs.max(1).next_multiple_of(VGPR_GRANULE);
        WAVES_PER_SIMD.min(VGPRS_PER_SIMD / vgprs) * SIMDS_PER_CU
    }

    /// Returns how many workgroups the LDS of a compute unit is enough for.
    fn groups_by_lds(&self, dynamic_bytes: u64) -> u32 {
        let lds_bytes = u64::from(self.lds_bytes).saturating_add(dynamic_bytes);
        let groups = u64::from(LDS_BYTES).checked_div(lds_bytes).unwrap_or(u64::MAX);
        groups.min(u64::from(GROUPS_PER_CU)) as u32
    }

    /// Returns how many workgroups fit on a device with `compute_units` at a time.
    pub fn groups(&self, block_size: u32, dynamic_bytes: u64, compute_units: u32) -> u32 {
        self.groups_per_cu(block_size, dynamic_bytes).saturating_mul(compute_units)
    }

    /// Returns the block size that AMD's runtime advises: the most work-items of whole waves that `limit`, or the device where `limit` is not
    /// positive, allows and that fit on a compute unit. LDS and the largest workgroup that the kernel was compiled for do not count.
    pub fn best_block_size(&self, limit: i32) -> u32 {
        let limit = u32::try_from(limit).ok().filter(|&limit| limit > 0).unwrap_or(u32::MAX);
        let most = limit.min(THREADS_PER_GROUP).next_multiple_of(WAVE_LANES);
        most.min(self.waves_per_cu() * WAVE_LANES)
    }
}

fn int(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: KernelNeeds =
        KernelNeeds { named_vgprs: 8, vgprs: 8, lds_bytes: 0, private_bytes: 0, max_block_size: 1024 };

    #[test]
    fn wave_slots_limit_small_kernels() {
        let of = |block_size| SMALL.groups_per_cu(block_size, 0);
        assert_eq!([of(1), of(64), of(65), of(1024), of(1025)], [32, 32, 16, 2, 0]);
        assert_eq!(SMALL.groups(256, 0, 304), 8 * 304);
    }

    #[test]
    fn registers_limit_large_ones() {
        let of = |vgprs| KernelNeeds { vgprs, ..SMALL }.groups_per_cu(256, 0);
        assert_eq!([of(64), of(65), of(128), of(129), of(256), of(512)], [8, 7, 4, 3, 2, 1]);
        assert_eq!(KernelNeeds { vgprs: 512, ..SMALL }.groups_per_cu(512, 0), 0);
    }

    #[test]
    fn lds_is_shared_by_the_groups_of_a_compute_unit() {
        let fits = [(1, 32), (16 << 10, 4), ((16 << 10) + 1, 3), (64 << 10, 1), ((64 << 10) + 1, 0)];
        for (bytes, groups) in fits {
            assert_eq!(SMALL.groups_per_cu(64, bytes.into()), groups, "{bytes} bytes of dynamic LDS");
            let of_kernel = KernelNeeds { lds_bytes: bytes, ..SMALL };
            assert_eq!(of_kernel.groups_per_cu(64, 0), groups, "{bytes} bytes of the kernel's own");
        }
        assert_eq!(SMALL.groups_per_cu(64, u64::MAX), 0);
    }

    /// The numbers are those of AMD's runtimes 6.4.3 and 7.2.4.
    #[test]
    fn the_best_block_size_has_whole_waves() {
        let sizes =
            [(0, 1024), (1, 64), (63, 64), (65, 128), (200, 256), (1000, 1024), (5000, 1024), (-1, 1024)];
        for (limit, size) in sizes {
            assert_eq!(SMALL.best_block_size(limit), size, "limit {limit}");
            let bounded = KernelNeeds { max_block_size: 64, ..SMALL };
            assert_eq!(bounded.best_block_size(limit), size, "limit {limit}, launch bounds");
        }
        assert_eq!(KernelNeeds { vgprs: 512, ..SMALL }.best_block_size(0), 256);
    }

    #[test]
    fn launch_bounds_do_not_limit_occupancy() {
        let bounded = KernelNeeds { max_block_size: 128, ..SMALL };
        let of = |block_size| bounded.groups_per_cu(block_size, 0);
        assert_eq!([of(128), of(192), of(256), of(1000), of(1024), of(1025)], [16, 10, 8, 2, 2, 0]);
    }
}
