//! Flat, global and scratch memory.

use std::ops::{Add, BitAnd, BitOr, BitXor};

use crate::isa::rows;
use crate::sem::atomic::{
    add_bf16_pair, add_f16_pair, compare_swap, decrement_u32, decrement_u64, increment_u32, increment_u64,
    max_f64, min_f64, sign8, sign16, swap,
};
use crate::shape::memory::flat::{Flat, Global, Private, load_lds};
use crate::shape::memory::{atomic, atomic2, load, load_words, store, store_words};

rows! {
    /// FLAT: the address determines which memory is accessed.
    FLAT [128] {
        0x10 flat_load_ubyte = load::<Flat, u8>(u32::from);
        0x11 flat_load_sbyte = load::<Flat, u8>(sign8);
        0x12 flat_load_ushort = load::<Flat, u16>(u32::from);
        0x13 flat_load_sshort = load::<Flat, u16>(sign16);
        0x14 flat_load_dword = load_words::<Flat, 1>();
        0x15 flat_load_dwordx2 = load_words::<Flat, 2>();
        0x16 flat_load_dwordx3 = load_words::<Flat, 3>();
        0x17 flat_load_dwordx4 = load_words::<Flat, 4>();
        0x18 flat_store_byte = store::<Flat, u8>(|a| a as u8);
        0x19 flat_store_byte_d16_hi = store::<Flat, u8>(|a| (a >> 16) as u8);
        0x1a flat_store_short = store::<Flat, u16>(|a| a as u16);
        0x1b flat_store_short_d16_hi = store::<Flat, u16>(|a| (a >> 16) as u16);
        0x1c flat_store_dword = store_words::<Flat, 1>();
        0x1d flat_store_dwordx2 = store_words::<Flat, 2>();
        0x1e flat_store_dwordx3 = store_words::<Flat, 3>();
        0x1f flat_store_dwordx4 = store_words::<Flat, 4>();
        0x20 flat_load_ubyte_d16 = load::<Flat, u8>(u32::from);
        0x21 flat_load_ubyte_d16_hi = load::<Flat, u8>(|a| u32::from(a) << 16);
        0x22 flat_load_sbyte_d16 = load::<Flat, u8>(|a| sign8(a) & 0xffff);
        0x23 flat_load_sbyte_d16_hi = load::<Flat, u8>(|a| sign8(a) << 16);
        0x24 flat_load_short_d16 = load::<Flat, u16>(u32::from);
        0x25 flat_load_short_d16_hi = load::<Flat, u16>(|a| u32::from(a) << 16);
        0x40 flat_atomic_swap once = atomic::<Flat, u32>(swap);
        0x41 flat_atomic_cmpswap once = atomic2::<Flat, u32>(compare_swap);
        0x42 flat_atomic_add once = atomic::<Flat, u32>(u32::wrapping_add);
        0x43 flat_atomic_sub once = atomic::<Flat, u32>(u32::wrapping_sub);
        0x44 flat_atomic_smin once = atomic::<Flat, i32>(i32::min);
        0x45 flat_atomic_umin once = atomic::<Flat, u32>(u32::min);
        0x46 flat_atomic_smax once = atomic::<Flat, i32>(i32::max);
        0x47 flat_atomic_umax once = atomic::<Flat, u32>(u32::max);
        0x48 flat_atomic_and once = atomic::<Flat, u32>(u32::bitand);
        0x49 flat_atomic_or once = atomic::<Flat, u32>(u32::bitor);
        0x4a flat_atomic_xor once = atomic::<Flat, u32>(u32::bitxor);
        0x4b flat_atomic_inc once = atomic::<Flat, u32>(increment_u32);
        0x4c flat_atomic_dec once = atomic::<Flat, u32>(decrement_u32);
        0x4d flat_atomic_add_f32 gfx942 once = atomic::<Flat, f32>(f32::add);
        0x4e flat_atomic_pk_add_f16 gfx942 once = atomic::<Flat, u32>(add_f16_pair);
        0x4f flat_atomic_add_f64 once = atomic::<Flat, f64>(f64::add);
        0x50 flat_atomic_min_f64 once = atomic::<Flat, f64>(min_f64);
        0x51 flat_atomic_max_f64 once = atomic::<Flat, f64>(max_f64);
        0x52 flat_atomic_pk_add_bf16 gfx942 once = atomic::<Flat, u32>(add_bf16_pair);
        0x60 flat_atomic_swap_x2 once = atomic::<Flat, u64>(swap);
        0x61 flat_atomic_cmpswap_x2 once = atomic2::<Flat, u64>(compare_swap);
        0x62 flat_atomic_add_x2 once = atomic::<Flat, u64>(u64::wrapping_add);
        0x63 flat_atomic_sub_x2 once = atomic::<Flat, u64>(u64::wrapping_sub);
        0x64 flat_atomic_smin_x2 once = atomic::<Flat, i64>(i64::min);
        0x65 flat_atomic_umin_x2 once = atomic::<Flat, u64>(u64::min);
        0x66 flat_atomic_smax_x2 once = atomic::<Flat, i64>(i64::max);
        0x67 flat_atomic_umax_x2 once = atomic::<Flat, u64>(u64::max);
        0x68 flat_atomic_and_x2 once = atomic::<Flat, u64>(u64::bitand);
        0x69 flat_atomic_or_x2 once = atomic::<Flat, u64>(u64::bitor);
        0x6a flat_atomic_xor_x2 once = atomic::<Flat, u64>(u64::bitxor);
        0x6b flat_atomic_inc_x2 once = atomic::<Flat, u64>(increment_u64);
        0x6c flat_atomic_dec_x2 once = atomic::<Flat, u64>(decrement_u64);
    }
}
rows! {
    /// GLOBAL: device memory.
    GLOBAL [128] {
        0x10 global_load_ubyte = load::<Global, u8>(u32::from);
        0x11 global_load_sbyte = load::<Global, u8>(sign8);
        0x12 global_load_ushort = load::<Global, u16>(u32::from);
        0x13 global_load_sshort = load::<Global, u16>(sign16);
        0x14 global_load_dword = load_words::<Global, 1>();
        0x15 global_load_dwordx2 = load_words::<Global, 2>();
        0x16 global_load_dwordx3 = load_words::<Global, 3>();
        0x17 global_load_dwordx4 = load_words::<Global, 4>();
        0x18 global_store_byte = store::<Global, u8>(|a| a as u8);
        0x19 global_store_byte_d16_hi = store::<Global, u8>(|a| (a >> 16) as u8);
        0x1a global_store_short = store::<Global, u16>(|a| a as u16);
        0x1b global_store_short_d16_hi = store::<Global, u16>(|a| (a >> 16) as u16);
        0x1c global_store_dword = store_words::<Global, 1>();
        0x1d global_store_dwordx2 = store_words::<Global, 2>();
        0x1e global_store_dwordx3 = store_words::<Global, 3>();
        0x1f global_store_dwordx4 = store_words::<Global, 4>();
        0x20 global_load_ubyte_d16 = load::<Global, u8>(u32::from);
        0x21 global_load_ubyte_d16_hi = load::<Global, u8>(|a| u32::from(a) << 16);
        0x22 global_load_sbyte_d16 = load::<Global, u8>(|a| sign8(a) & 0xffff);
        0x23 global_load_sbyte_d16_hi = load::<Global, u8>(|a| sign8(a) << 16);
        0x24 global_load_short_d16 = load::<Global, u16>(u32::from);
        0x25 global_load_short_d16_hi = load::<Global, u16>(|a| u32::from(a) << 16);
        0x26 global_load_lds_ubyte gfx942 = load_lds::<Global, u8>(u32::from);
        0x27 global_load_lds_sbyte gfx942 = load_lds::<Global, u8>(sign8);
        0x28 global_load_lds_ushort gfx942 = load_lds::<Global, u16>(u32::from);
        0x29 global_load_lds_sshort gfx942 = load_lds::<Global, u16>(sign16);
        0x2a global_load_lds_dword gfx942 = load_lds::<Global, u32>(|a| a);
        0x40 global_atomic_swap once = atomic::<Global, u32>(swap);
        0x41 global_atomic_cmpswap once = atomic2::<Global, u32>(compare_swap);
        0x42 global_atomic_add once = atomic::<Global, u32>(u32::wrapping_add);
        0x43 global_atomic_sub once = atomic::<Global, u32>(u32::wrapping_sub);
        0x44 global_atomic_smin once = atomic::<Global, i32>(i32::min);
        0x45 global_atomic_umin once = atomic::<Global, u32>(u32::min);
        0x46 global_atomic_smax once = atomic::<Global, i32>(i32::max);
        0x47 global_atomic_umax once = atomic::<Global, u32>(u32::max);
        0x48 global_atomic_and once = atomic::<Global, u32>(u32::bitand);
        0x49 global_atomic_or once = atomic::<Global, u32>(u32::bitor);
        0x4a global_atomic_xor once = atomic::<Global, u32>(u32::bitxor);
        0x4b global_atomic_inc once = atomic::<Global, u32>(increment_u32);
        0x4c global_atomic_dec once = atomic::<Global, u32>(decrement_u32);
        0x4d global_atomic_add_f32 once = atomic::<Global, f32>(f32::add);
        0x4e global_atomic_pk_add_f16 once = atomic::<Global, u32>(add_f16_pair);
        0x4f global_atomic_add_f64 once = atomic::<Global, f64>(f64::add);
        0x50 global_atomic_min_f64 once = atomic::<Global, f64>(min_f64);
        0x51 global_atomic_max_f64 once = atomic::<Global, f64>(max_f64);
        0x52 global_atomic_pk_add_bf16 gfx942 once = atomic::<Global, u32>(add_bf16_pair);
        0x60 global_atomic_swap_x2 once = atomic::<Global, u64>(swap);
        0x61 global_atomic_cmpswap_x2 once = atomic2::<Global, u64>(compare_swap);
        0x62 global_atomic_add_x2 once = atomic::<Global, u64>(u64::wrapping_add);
        0x63 global_atomic_sub_x2 once = atomic::<Global, u64>(u64::wrapping_sub);
        0x64 global_atomic_smin_x2 once = atomic::<Global, i64>(i64::min);
        0x65 global_atomic_umin_x2 once = atomic::<Global, u64>(u64::min);
        0x66 global_atomic_smax_x2 once = atomic::<Global, i64>(i64::max);
        0x67 global_atomic_umax_x2 once = atomic::<Global, u64>(u64::max);
        0x68 global_atomic_and_x2 once = atomic::<Global, u64>(u64::bitand);
        0x69 global_atomic_or_x2 once = atomic::<Global, u64>(u64::bitor);
        0x6a global_atomic_xor_x2 once = atomic::<Global, u64>(u64::bitxor);
        0x6b global_atomic_inc_x2 once = atomic::<Global, u64>(increment_u64);
        0x6c global_atomic_dec_x2 once = atomic::<Global, u64>(decrement_u64);
    }
}
rows! {
    /// SCRATCH: the lane's own memory.
    SCRATCH [128] {
        0x10 scratch_load_ubyte = load::<Private, u8>(u32::from);
        0x11 scratch_load_sbyte = load::<Private, u8>(sign8);
        0x12 scratch_load_ushort = load::<Private, u16>(u32::from);
        0x13 scratch_load_sshort = load::<Private, u16>(sign16);
        0x14 scratch_load_dword = load_words::<Private, 1>();
        0x15 scratch_load_dwordx2 = load_words::<Private, 2>();
        0x16 scratch_load_dwordx3 = load_words::<Private, 3>();
        0x17 scratch_load_dwordx4 = load_words::<Private, 4>();
        0x18 scratch_store_byte = store::<Private, u8>(|a| a as u8);
        0x19 scratch_store_byte_d16_hi = store::<Private, u8>(|a| (a >> 16) as u8);
        0x1a scratch_store_short = store::<Private, u16>(|a| a as u16);
        0x1b scratch_store_short_d16_hi = store::<Private, u16>(|a| (a >> 16) as u16);
        0x1c scratch_store_dword = store_words::<Private, 1>();
        0x1d scratch_store_dwordx2 = store_words::<Private, 2>();
        0x1e scratch_store_dwordx3 = store_words::<Private, 3>();
        0x1f scratch_store_dwordx4 = store_words::<Private, 4>();
        0x20 scratch_load_ubyte_d16 = load::<Private, u8>(u32::from);
        0x21 scratch_load_ubyte_d16_hi = load::<Private, u8>(|a| u32::from(a) << 16);
        0x22 scratch_load_sbyte_d16 = load::<Private, u8>(|a| sign8(a) & 0xffff);
        0x23 scratch_load_sbyte_d16_hi = load::<Private, u8>(|a| sign8(a) << 16);
        0x24 scratch_load_short_d16 = load::<Private, u16>(u32::from);
        0x25 scratch_load_short_d16_hi = load::<Private, u16>(|a| u32::from(a) << 16);
        0x26 scratch_load_lds_ubyte gfx942 = load_lds::<Private, u8>(u32::from);
        0x27 scratch_load_lds_sbyte gfx942 = load_lds::<Private, u8>(sign8);
        0x28 scratch_load_lds_ushort gfx942 = load_lds::<Private, u16>(u32::from);
        0x29 scratch_load_lds_sshort gfx942 = load_lds::<Private, u16>(sign16);
        0x2a scratch_load_lds_dword gfx942 = load_lds::<Private, u32>(|a| a);
    }
}
