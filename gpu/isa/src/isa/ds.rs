//! LDS instructions.

use std::ops::{Add, BitAnd, BitOr, BitXor};

use crate::gws::Action;
use crate::isa::rows;
use crate::sem::atomic::{
    add_bf16_pair, add_f16_pair, compare_swap, conditional_swap, decrement_u32, decrement_u64, increment_u32,
    increment_u64, max_f32, max_f64, min_f32, min_f64, sign8, sign16, swap, swizzle_source, wrap,
};
use crate::shape::memory::ds::{
    Local, count_lanes, exchange2, global_wave_sync, permute, permute_back, read, read_by_lane, read2,
    swizzle, write2,
};
use crate::shape::memory::{atomic, atomic2, load, store, store_words};

rows! {
    /// DS instructions: LDS accesses and exchanges between lanes.
    DS [256] {
        0x00 ds_add_u32 once = atomic::<Local, u32>(u32::wrapping_add);
        0x01 ds_sub_u32 once = atomic::<Local, u32>(u32::wrapping_sub);
        0x02 ds_rsub_u32 once = atomic::<Local, u32>(|old, a| a.wrapping_sub(old));
        0x03 ds_inc_u32 once = atomic::<Local, u32>(increment_u32);
        0x04 ds_dec_u32 once = atomic::<Local, u32>(decrement_u32);
        0x05 ds_min_i32 once = atomic::<Local, i32>(i32::min);
        0x06 ds_max_i32 once = atomic::<Local, i32>(i32::max);
        0x07 ds_min_u32 once = atomic::<Local, u32>(u32::min);
        0x08 ds_max_u32 once = atomic::<Local, u32>(u32::max);
        0x09 ds_and_b32 once = atomic::<Local, u32>(u32::bitand);
        0x0a ds_or_b32 once = atomic::<Local, u32>(u32::bitor);
        0x0b ds_xor_b32 once = atomic::<Local, u32>(u32::bitxor);
        0x0c ds_mskor_b32 once = atomic2::<Local, u32>(|old, mask, a| old & !mask | a);
        0x0d ds_write_b32 = store_words::<Local, 1>();
        0x0e ds_write2_b32 = write2::<1, 4>();
        0x0f ds_write2st64_b32 = write2::<1, 256>();
        0x10 ds_cmpst_b32 once = atomic2::<Local, u32>(|old, compare, new| compare_swap(old, new, compare));
        0x11 ds_cmpst_f32 once = atomic2::<Local, f32>(|old, compare, new| compare_swap(old, new, compare));
        0x12 ds_min_f32 once = atomic::<Local, f32>(min_f32);
        0x13 ds_max_f32 once = atomic::<Local, f32>(max_f32);
        0x15 ds_add_f32 once = atomic::<Local, f32>(f32::add);
        0x17 ds_pk_add_f16 gfx942 once = atomic::<Local, u32>(add_f16_pair);
        0x18 ds_pk_add_bf16 gfx942 once = atomic::<Local, u32>(add_bf16_pair);
        0x1e ds_write_b8 = store::<Local, u8>(|a| a as u8);
        0x1f ds_write_b16 = store::<Local, u16>(|a| a as u16);
        0x20 ds_add_rtn_u32 once = atomic::<Local, u32>(u32::wrapping_add);
        0x21 ds_sub_rtn_u32 once = atomic::<Local, u32>(u32::wrapping_sub);
        0x22 ds_rsub_rtn_u32 once = atomic::<Local, u32>(|old, a| a.wrapping_sub(old));
        0x23 ds_inc_rtn_u32 once = atomic::<Local, u32>(increment_u32);
        0x24 ds_dec_rtn_u32 once = atomic::<Local, u32>(decrement_u32);
        0x25 ds_min_rtn_i32 once = atomic::<Local, i32>(i32::min);
        0x26 ds_max_rtn_i32 once = atomic::<Local, i32>(i32::max);
        0x27 ds_min_rtn_u32 once = atomic::<Local, u32>(u32::min);
        0x28 ds_max_rtn_u32 once = atomic::<Local, u32>(u32::max);
        0x29 ds_and_rtn_b32 once = atomic::<Local, u32>(u32::bitand);
        0x2a ds_or_rtn_b32 once = atomic::<Local, u32>(u32::bitor);
        0x2b ds_xor_rtn_b32 once = atomic::<Local, u32>(u32::bitxor);
        0x2c ds_mskor_rtn_b32 once = atomic2::<Local, u32>(|old, mask, a| old & !mask | a);
        0x2d ds_wrxchg_rtn_b32 once = atomic::<Local, u32>(swap);
        0x2e ds_wrxchg2_rtn_b32 = exchange2::<u32, 4>();
        0x2f ds_wrxchg2st64_rtn_b32 = exchange2::<u32, 256>();
        0x30 ds_cmpst_rtn_b32 once = atomic2::<Local, u32>(|old, compare, new| compare_swap(old, new, compare));
        0x31 ds_cmpst_rtn_f32 once = atomic2::<Local, f32>(|old, compare, new| compare_swap(old, new, compare));
        0x32 ds_min_rtn_f32 once = atomic::<Local, f32>(min_f32);
        0x33 ds_max_rtn_f32 once = atomic::<Local, f32>(max_f32);
        0x34 ds_wrap_rtn_b32 once = atomic2::<Local, u32>(wrap);
        0x35 ds_add_rtn_f32 once = atomic::<Local, f32>(f32::add);
        0x36 ds_read_b32 = read::<1>();
        0x37 ds_read2_b32 = read2::<1, 4>();
        0x38 ds_read2st64_b32 = read2::<1, 256>();
        0x39 ds_read_i8 = load::<Local, u8>(sign8);
        0x3a ds_read_u8 = load::<Local, u8>(u32::from);
        0x3b ds_read_i16 = load::<Local, u16>(sign16);
        0x3c ds_read_u16 = load::<Local, u16>(u32::from);
        0x3d ds_swizzle_b32 = swizzle(swizzle_source);
        0x3e ds_permute_b32 = permute();
        0x3f ds_bpermute_b32 = permute_back();
        0x40 ds_add_u64 once = atomic::<Local, u64>(u64::wrapping_add);
        0x41 ds_sub_u64 once = atomic::<Local, u64>(u64::wrapping_sub);
        0x42 ds_rsub_u64 once = atomic::<Local, u64>(|old, a| a.wrapping_sub(old));
        0x43 ds_inc_u64 once = atomic::<Local, u64>(increment_u64);
        0x44 ds_dec_u64 once = atomic::<Local, u64>(decrement_u64);
        0x45 ds_min_i64 once = atomic::<Local, i64>(i64::min);
        0x46 ds_max_i64 once = atomic::<Local, i64>(i64::max);
        0x47 ds_min_u64 once = atomic::<Local, u64>(u64::min);
        0x48 ds_max_u64 once = atomic::<Local, u64>(u64::max);
        0x49 ds_and_b64 once = atomic::<Local, u64>(u64::bitand);
        0x4a ds_or_b64 once = atomic::<Local, u64>(u64::bitor);
        0x4b ds_xor_b64 once = atomic::<Local, u64>(u64::bitxor);
        0x4c ds_mskor_b64 once = atomic2::<Local, u64>(|old, mask, a| old & !mask | a);
        0x4d ds_write_b64 = store_words::<Local, 2>();
        0x4e ds_write2_b64 = write2::<2, 8>();
        0x4f ds_write2st64_b64 = write2::<2, 512>();
        0x50 ds_cmpst_b64 once = atomic2::<Local, u64>(|old, compare, new| compare_swap(old, new, compare));
        0x51 ds_cmpst_f64 once = atomic2::<Local, f64>(|old, compare, new| compare_swap(old, new, compare));
        0x52 ds_min_f64 once = atomic::<Local, f64>(min_f64);
        0x53 ds_max_f64 once = atomic::<Local, f64>(max_f64);
        0x54 ds_write_b8_d16_hi = store::<Local, u8>(|a| (a >> 16) as u8);
        0x55 ds_write_b16_d16_hi = store::<Local, u16>(|a| (a >> 16) as u16);
        0x56 ds_read_u8_d16 = load::<Local, u8>(u32::from);
        0x57 ds_read_u8_d16_hi = load::<Local, u8>(|a| u32::from(a) << 16);
        0x58 ds_read_i8_d16 = load::<Local, u8>(|a| sign8(a) & 0xffff);
        0x59 ds_read_i8_d16_hi = load::<Local, u8>(|a| sign8(a) << 16);
        0x5a ds_read_u16_d16 = load::<Local, u16>(u32::from);
        0x5b ds_read_u16_d16_hi = load::<Local, u16>(|a| u32::from(a) << 16);
        0x5c ds_add_f64 once = atomic::<Local, f64>(f64::add);
        0x60 ds_add_rtn_u64 once = atomic::<Local, u64>(u64::wrapping_add);
        0x61 ds_sub_rtn_u64 once = atomic::<Local, u64>(u64::wrapping_sub);
        0x62 ds_rsub_rtn_u64 once = atomic::<Local, u64>(|old, a| a.wrapping_sub(old));
        0x63 ds_inc_rtn_u64 once = atomic::<Local, u64>(increment_u64);
        0x64 ds_dec_rtn_u64 once = atomic::<Local, u64>(decrement_u64);
        0x65 ds_min_rtn_i64 once = atomic::<Local, i64>(i64::min);
        0x66 ds_max_rtn_i64 once = atomic::<Local, i64>(i64::max);
        0x67 ds_min_rtn_u64 once = atomic::<Local, u64>(u64::min);
        0x68 ds_max_rtn_u64 once = atomic::<Local, u64>(u64::max);
        0x69 ds_and_rtn_b64 once = atomic::<Local, u64>(u64::bitand);
        0x6a ds_or_rtn_b64 once = atomic::<Local, u64>(u64::bitor);
        0x6b ds_xor_rtn_b64 once = atomic::<Local, u64>(u64::bitxor);
        0x6c ds_mskor_rtn_b64 once = atomic2::<Local, u64>(|old, mask, a| old & !mask | a);
        0x6d ds_wrxchg_rtn_b64 once = atomic::<Local, u64>(swap);
        0x6e ds_wrxchg2_rtn_b64 = exchange2::<u64, 8>();
        0x6f ds_wrxchg2st64_rtn_b64 = exchange2::<u64, 512>();
        0x70 ds_cmpst_rtn_b64 once = atomic2::<Local, u64>(|old, compare, new| compare_swap(old, new, compare));
        0x71 ds_cmpst_rtn_f64 once = atomic2::<Local, f64>(|old, compare, new| compare_swap(old, new, compare));
        0x72 ds_min_rtn_f64 once = atomic::<Local, f64>(min_f64);
        0x73 ds_max_rtn_f64 once = atomic::<Local, f64>(max_f64);
        0x76 ds_read_b64 = read::<2>();
        0x77 ds_read2_b64 = read2::<2, 8>();
        0x78 ds_read2st64_b64 = read2::<2, 512>();
        0x7c ds_add_rtn_f64 once = atomic::<Local, f64>(f64::add);
        0x7e ds_condxchg32_rtn_b64 once = atomic::<Local, u64>(conditional_swap);
        0x98 ds_gws_sema_release_all once = global_wave_sync(Action::ReleaseAll);
        0x99 ds_gws_init once = global_wave_sync(Action::Init);
        0x9a ds_gws_sema_v once = global_wave_sync(Action::Release);
        0x9b ds_gws_sema_br once = global_wave_sync(Action::ReleaseMany);
        0x9c ds_gws_sema_p once = global_wave_sync(Action::Pass);
        0x9d ds_gws_barrier once = global_wave_sync(Action::Barrier);
        0xb6 ds_read_addtid_b32 = read_by_lane();
        0xb7 ds_pk_add_rtn_f16 gfx942 once = atomic::<Local, u32>(add_f16_pair);
        0xb8 ds_pk_add_rtn_bf16 gfx942 once = atomic::<Local, u32>(add_bf16_pair);
        0xbd ds_consume = count_lanes(u32::wrapping_sub);
        0xbe ds_append = count_lanes(u32::wrapping_add);
        0xde ds_write_b96 = store_words::<Local, 3>();
        0xdf ds_write_b128 = store_words::<Local, 4>();
        0xfe ds_read_b96 = read::<3>();
        0xff ds_read_b128 = read::<4>();
    }
}
