//! Scalar memory.

use crate::isa::rows;
use crate::sem::atomic::{compare_swap, decrement_u32, decrement_u64, increment_u32, increment_u64};
use crate::shape::memory::smem::{
    clock, s_atomic, s_buffer_atomic, s_buffer_load, s_buffer_store, s_load, s_scratch_load, s_scratch_store,
    s_store,
};
use crate::shape::scalar::{memory_fence, nothing};

/// Frequency of `s_memtime`, which counts cycles at the device's highest clock rate.
const MEMTIME_HZ: u64 = 2_100_000_000;
/// Frequency of `s_memrealtime`, which counts a constant clock.
const MEMREALTIME_HZ: u64 = 100_000_000;

rows! {
    /// SMEM: scalar memory instructions.
    SMEM [256] scalar {
        0x00 s_load_dword = s_load::<1>();
        0x01 s_load_dwordx2 = s_load::<2>();
        0x02 s_load_dwordx4 = s_load::<4>();
        0x03 s_load_dwordx8 = s_load::<8>();
        0x04 s_load_dwordx16 = s_load::<16>();
        0x05 s_scratch_load_dword = s_scratch_load::<1>();
        0x06 s_scratch_load_dwordx2 = s_scratch_load::<2>();
        0x07 s_scratch_load_dwordx4 = s_scratch_load::<4>();
        0x08 s_buffer_load_dword = s_buffer_load::<1>();
        0x09 s_buffer_load_dwordx2 = s_buffer_load::<2>();
        0x0a s_buffer_load_dwordx4 = s_buffer_load::<4>();
        0x0b s_buffer_load_dwordx8 = s_buffer_load::<8>();
        0x0c s_buffer_load_dwordx16 = s_buffer_load::<16>();
        0x10 s_store_dword = s_store::<1>();
        0x11 s_store_dwordx2 = s_store::<2>();
        0x12 s_store_dwordx4 = s_store::<4>();
        0x15 s_scratch_store_dword = s_scratch_store::<1>();
        0x16 s_scratch_store_dwordx2 = s_scratch_store::<2>();
        0x17 s_scratch_store_dwordx4 = s_scratch_store::<4>();
        0x18 s_buffer_store_dword = s_buffer_store::<1>();
        0x19 s_buffer_store_dwordx2 = s_buffer_store::<2>();
        0x1a s_buffer_store_dwordx4 = s_buffer_store::<4>();
        0x20 s_dcache_inv = memory_fence();
        0x21 s_dcache_wb = memory_fence();
        0x22 s_dcache_inv_vol = memory_fence();
        0x23 s_dcache_wb_vol = memory_fence();
        0x24 s_memtime = clock(MEMTIME_HZ);
        0x25 s_memrealtime = clock(MEMREALTIME_HZ);
        0x26 s_atc_probe = nothing();
        0x27 s_atc_probe_buffer = nothing();
        0x28 s_dcache_discard = nothing();
        0x29 s_dcache_discard_x2 = nothing();
        0x40 s_buffer_atomic_swap = s_buffer_atomic::<u32>(|_, a, _| a);
        0x41 s_buffer_atomic_cmpswap = s_buffer_atomic::<u32>(compare_swap);
        0x42 s_buffer_atomic_add = s_buffer_atomic::<u32>(|old, a, _| old.wrapping_add(a));
        0x43 s_buffer_atomic_sub = s_buffer_atomic::<u32>(|old, a, _| old.wrapping_sub(a));
        0x44 s_buffer_atomic_smin = s_buffer_atomic::<i32>(|old, a, _| old.min(a));
        0x45 s_buffer_atomic_umin = s_buffer_atomic::<u32>(|old, a, _| old.min(a));
        0x46 s_buffer_atomic_smax = s_buffer_atomic::<i32>(|old, a, _| old.max(a));
        0x47 s_buffer_atomic_umax = s_buffer_atomic::<u32>(|old, a, _| old.max(a));
        0x48 s_buffer_atomic_and = s_buffer_atomic::<u32>(|old, a, _| old & a);
        0x49 s_buffer_atomic_or = s_buffer_atomic::<u32>(|old, a, _| old | a);
        0x4a s_buffer_atomic_xor = s_buffer_atomic::<u32>(|old, a, _| old ^ a);
        0x4b s_buffer_atomic_inc = s_buffer_atomic::<u32>(|old, a, _| increment_u32(old, a));
        0x4c s_buffer_atomic_dec = s_buffer_atomic::<u32>(|old, a, _| decrement_u32(old, a));
        0x60 s_buffer_atomic_swap_x2 = s_buffer_atomic::<u64>(|_, a, _| a);
        0x61 s_buffer_atomic_cmpswap_x2 = s_buffer_atomic::<u64>(compare_swap);
        0x62 s_buffer_atomic_add_x2 = s_buffer_atomic::<u64>(|old, a, _| old.wrapping_add(a));
        0x63 s_buffer_atomic_sub_x2 = s_buffer_atomic::<u64>(|old, a, _| old.wrapping_sub(a));
        0x64 s_buffer_atomic_smin_x2 = s_buffer_atomic::<i64>(|old, a, _| old.min(a));
        0x65 s_buffer_atomic_umin_x2 = s_buffer_atomic::<u64>(|old, a, _| old.min(a));
        0x66 s_buffer_atomic_smax_x2 = s_buffer_atomic::<i64>(|old, a, _| old.max(a));
        0x67 s_buffer_atomic_umax_x2 = s_buffer_atomic::<u64>(|old, a, _| old.max(a));
        0x68 s_buffer_atomic_and_x2 = s_buffer_atomic::<u64>(|old, a, _| old & a);
        0x69 s_buffer_atomic_or_x2 = s_buffer_atomic::<u64>(|old, a, _| old | a);
        0x6a s_buffer_atomic_xor_x2 = s_buffer_atomic::<u64>(|old, a, _| old ^ a);
        0x6b s_buffer_atomic_inc_x2 = s_buffer_atomic::<u64>(|old, a, _| increment_u64(old, a));
        0x6c s_buffer_atomic_dec_x2 = s_buffer_atomic::<u64>(|old, a, _| decrement_u64(old, a));
        0x80 s_atomic_swap = s_atomic::<u32>(|_, a, _| a);
        0x81 s_atomic_cmpswap = s_atomic::<u32>(compare_swap);
        0x82 s_atomic_add = s_atomic::<u32>(|old, a, _| old.wrapping_add(a));
        0x83 s_atomic_sub = s_atomic::<u32>(|old, a, _| old.wrapping_sub(a));
        0x84 s_atomic_smin = s_atomic::<i32>(|old, a, _| old.min(a));
        0x85 s_atomic_umin = s_atomic::<u32>(|old, a, _| old.min(a));
        0x86 s_atomic_smax = s_atomic::<i32>(|old, a, _| old.max(a));
        0x87 s_atomic_umax = s_atomic::<u32>(|old, a, _| old.max(a));
        0x88 s_atomic_and = s_atomic::<u32>(|old, a, _| old & a);
        0x89 s_atomic_or = s_atomic::<u32>(|old, a, _| old | a);
        0x8a s_atomic_xor = s_atomic::<u32>(|old, a, _| old ^ a);
        0x8b s_atomic_inc = s_atomic::<u32>(|old, a, _| increment_u32(old, a));
        0x8c s_atomic_dec = s_atomic::<u32>(|old, a, _| decrement_u32(old, a));
        0xa0 s_atomic_swap_x2 = s_atomic::<u64>(|_, a, _| a);
        0xa1 s_atomic_cmpswap_x2 = s_atomic::<u64>(compare_swap);
        0xa2 s_atomic_add_x2 = s_atomic::<u64>(|old, a, _| old.wrapping_add(a));
        0xa3 s_atomic_sub_x2 = s_atomic::<u64>(|old, a, _| old.wrapping_sub(a));
        0xa4 s_atomic_smin_x2 = s_atomic::<i64>(|old, a, _| old.min(a));
        0xa5 s_atomic_umin_x2 = s_atomic::<u64>(|old, a, _| old.min(a));
        0xa6 s_atomic_smax_x2 = s_atomic::<i64>(|old, a, _| old.max(a));
        0xa7 s_atomic_umax_x2 = s_atomic::<u64>(|old, a, _| old.max(a));
        0xa8 s_atomic_and_x2 = s_atomic::<u64>(|old, a, _| old & a);
        0xa9 s_atomic_or_x2 = s_atomic::<u64>(|old, a, _| old | a);
        0xaa s_atomic_xor_x2 = s_atomic::<u64>(|old, a, _| old ^ a);
        0xab s_atomic_inc_x2 = s_atomic::<u64>(|old, a, _| increment_u64(old, a));
        0xac s_atomic_dec_x2 = s_atomic::<u64>(|old, a, _| decrement_u64(old, a));
    }
}
