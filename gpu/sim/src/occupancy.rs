//! Occupancy: how many workgroups fit on a compute unit with its registers, LDS and wave slots.

use crate::property as p;

/// The resources of a compute unit that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Vector registers of a lane, both kinds.
    pub vgprs: u32,
    /// LDS of a workgroup in bytes, static and dynamic.
    pub lds_bytes: u64,
    /// Largest workgroup that the kernel was compiled for.
    pub max_block_size: u32,
}

impl Demand {
    /// Returns how many workgroups of `block_size` work-items fit on a compute unit at a time.
    pub fn groups_per_cu(&self, block_size: u32) -> u32 {
        if block_size == 0 || block_size > p::THREADS_PER_GROUP.min(self.max_block_size) {
            return 0;
        }
        let vgprs = self.vgprs.max(1).next_multiple_of(p::VGPR_GRANULE);
        let waves_per_simd = p::WAVES_PER_SIMD.min(p::VGPRS_PER_SIMD / vgprs);
        let waves_per_group = block_size.div_ceil(p::WAVE_LANES);
        let by_waves = waves_per_simd * p::SIMDS_PER_CU / waves_per_group;
        let lds_bytes = self.lds_bytes.next_multiple_of(u64::from(p::LDS_GRANULE_BYTES));
        let by_lds = u64::from(p::LDS_BYTES).checked_div(lds_bytes).unwrap_or(u64::MAX);
        by_lds.min(u64::from(by_waves.min(p::GROUPS_PER_CU))) as u32
    }

    /// Returns how many workgroups of `block_size` work-items fit on a device at a time.
    pub fn groups(&self, block_size: u32, compute_units: u32) -> u32 {
        self.groups_per_cu(block_size) * compute_units
    }

    /// Returns the largest block size, at most `limit` if that is not 0, with the most work-items on a compute unit.
    pub fn best_block_size(&self, limit: u32) -> u32 {
        let most =
            p::THREADS_PER_GROUP.min(self.max_block_size).min(if limit == 0 { u32::MAX } else { limit });
        let whole_waves = (1..=most / p::WAVE_LANES).map(|waves| waves * p::WAVE_LANES);
        // Less than a wave is a choice only when nothing else is.
        let sizes = whole_waves.chain((most < p::WAVE_LANES && most > 0).then_some(most));
        sizes.max_by_key(|&size| (self.groups_per_cu(size) * size, size)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Demand = Demand { vgprs: 8, lds_bytes: 0, max_block_size: 1024 };

    #[test]
    fn wave_slots_limit_small_kernels() {
        assert_eq!(SMALL.groups_per_cu(1), 32);
        assert_eq!(SMALL.groups_per_cu(64), 32);
        assert_eq!(SMALL.groups_per_cu(65), 16);
        assert_eq!(SMALL.groups_per_cu(1024), 2);
        assert_eq!(SMALL.groups_per_cu(1025), 0);
        assert_eq!(SMALL.groups(256, 304), 8 * 304);
    }

    #[test]
    fn registers_limit_large_ones() {
        let of = |vgprs| Demand { vgprs, ..SMALL }.groups_per_cu(256);
        assert_eq!([of(64), of(65), of(128), of(129), of(256), of(512)], [8, 7, 4, 3, 2, 1]);
        assert_eq!(Demand { vgprs: 512, ..SMALL }.groups_per_cu(512), 0);
    }

    #[test]
    fn lds_is_shared_by_the_groups_of_a_compute_unit() {
        let of = |lds_bytes| Demand { lds_bytes, ..SMALL }.groups_per_cu(64);
        assert_eq!(
            [of(1), of(16 << 10), of((16 << 10) + 1), of(64 << 10), of((64 << 10) + 1)],
            [32, 4, 3, 1, 0]
        );
    }

    #[test]
    fn the_best_block_size_fills_the_compute_unit() {
        assert_eq!(SMALL.best_block_size(0), 1024);
        assert_eq!(SMALL.best_block_size(300), 256);
        assert_eq!(SMALL.best_block_size(10), 10);
        assert_eq!(Demand { max_block_size: 64, ..SMALL }.best_block_size(0), 64);
        assert_eq!(Demand { vgprs: 512, ..SMALL }.best_block_size(0), 256);
    }
}
