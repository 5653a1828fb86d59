//! Buffer instructions.

use std::ops::{Add, BitAnd, BitOr, BitXor};

use crate::isa::rows;
use crate::sem::atomic::{
    add_f16_pair, compare_swap, decrement_u32, decrement_u64, increment_u32, increment_u64, max_f64, min_f64,
    sign8, sign16, swap,
};
use crate::shape::memory::buffer::{Buffer, load_unit, load_word};
use crate::shape::memory::format::{By, In, load_format, store_format};
use crate::shape::memory::{atomic, atomic2, load, load_words, store, store_words};
use crate::shape::scalar::memory_fence;

rows! {
    /// MUBUF: untyped buffer accesses.
    MUBUF [128] {
        0x00 buffer_load_format_x = load_format::<1>(By::Resource, In::Words);
        0x01 buffer_load_format_xy = load_format::<2>(By::Resource, In::Words);
        0x02 buffer_load_format_xyz = load_format::<3>(By::Resource, In::Words);
        0x03 buffer_load_format_xyzw = load_format::<4>(By::Resource, In::Words);
        0x04 buffer_store_format_x = store_format::<1>(By::Resource, In::Words);
        0x05 buffer_store_format_xy = store_format::<2>(By::Resource, In::Words);
        0x06 buffer_store_format_xyz = store_format::<3>(By::Resource, In::Words);
        0x07 buffer_store_format_xyzw = store_format::<4>(By::Resource, In::Words);
        0x08 buffer_load_format_d16_x = load_format::<1>(By::Resource, In::Halves);
        0x09 buffer_load_format_d16_xy = load_format::<2>(By::Resource, In::Halves);
        0x0a buffer_load_format_d16_xyz = load_format::<3>(By::Resource, In::Halves);
        0x0b buffer_load_format_d16_xyzw = load_format::<4>(By::Resource, In::Halves);
        0x0c buffer_store_format_d16_x = store_format::<1>(By::Resource, In::Halves);
        0x0d buffer_store_format_d16_xy = store_format::<2>(By::Resource, In::Halves);
        0x0e buffer_store_format_d16_xyz = store_format::<3>(By::Resource, In::Halves);
        0x0f buffer_store_format_d16_xyzw = store_format::<4>(By::Resource, In::Halves);
        0x10 buffer_load_ubyte = load_unit::<u8>(u32::from);
        0x11 buffer_load_sbyte = load_unit::<u8>(sign8);
        0x12 buffer_load_ushort = load_unit::<u16>(u32::from);
        0x13 buffer_load_sshort = load_unit::<u16>(sign16);
        0x14 buffer_load_dword = load_word();
        0x15 buffer_load_dwordx2 = load_words::<Buffer, 2>();
        0x16 buffer_load_dwordx3 = load_words::<Buffer, 3>();
        0x17 buffer_load_dwordx4 = load_words::<Buffer, 4>();
        0x18 buffer_store_byte = store::<Buffer, u8>(|a| a as u8);
        0x19 buffer_store_byte_d16_hi = store::<Buffer, u8>(|a| (a >> 16) as u8);
        0x1a buffer_store_short = store::<Buffer, u16>(|a| a as u16);
        0x1b buffer_store_short_d16_hi = store::<Buffer, u16>(|a| (a >> 16) as u16);
        0x1c buffer_store_dword = store_words::<Buffer, 1>();
        0x1d buffer_store_dwordx2 = store_words::<Buffer, 2>();
        0x1e buffer_store_dwordx3 = store_words::<Buffer, 3>();
        0x1f buffer_store_dwordx4 = store_words::<Buffer, 4>();
        0x20 buffer_load_ubyte_d16 = load::<Buffer, u8>(u32::from);
        0x21 buffer_load_ubyte_d16_hi = load::<Buffer, u8>(|a| u32::from(a) << 16);
        0x22 buffer_load_sbyte_d16 = load::<Buffer, u8>(|a| sign8(a) & 0xffff);
        0x23 buffer_load_sbyte_d16_hi = load::<Buffer, u8>(|a| sign8(a) << 16);
        0x24 buffer_load_short_d16 = load::<Buffer, u16>(u32::from);
        0x25 buffer_load_short_d16_hi = load::<Buffer, u16>(|a| u32::from(a) << 16);
        0x26 buffer_load_format_d16_hi_x = load_format::<1>(By::Resource, In::UpperHalf);
        0x27 buffer_store_format_d16_hi_x = store_format::<1>(By::Resource, In::UpperHalf);
        0x28 buffer_wbl2 = memory_fence();
        0x29 buffer_inv = memory_fence() [buffer_invl2];
        0x3e buffer_wbinvl1 gfx90a = memory_fence();
        0x3f buffer_wbinvl1_vol gfx90a = memory_fence();
        0x40 buffer_atomic_swap once = atomic::<Buffer, u32>(swap);
        0x41 buffer_atomic_cmpswap once = atomic2::<Buffer, u32>(compare_swap);
        0x42 buffer_atomic_add once = atomic::<Buffer, u32>(u32::wrapping_add);
        0x43 buffer_atomic_sub once = atomic::<Buffer, u32>(u32::wrapping_sub);
        0x44 buffer_atomic_smin once = atomic::<Buffer, i32>(i32::min);
        0x45 buffer_atomic_umin once = atomic::<Buffer, u32>(u32::min);
        0x46 buffer_atomic_smax once = atomic::<Buffer, i32>(i32::max);
        0x47 buffer_atomic_umax once = atomic::<Buffer, u32>(u32::max);
        0x48 buffer_atomic_and once = atomic::<Buffer, u32>(u32::bitand);
        0x49 buffer_atomic_or once = atomic::<Buffer, u32>(u32::bitor);
        0x4a buffer_atomic_xor once = atomic::<Buffer, u32>(u32::bitxor);
        0x4b buffer_atomic_inc once = atomic::<Buffer, u32>(increment_u32);
        0x4c buffer_atomic_dec once = atomic::<Buffer, u32>(decrement_u32);
        0x4d buffer_atomic_add_f32 once = atomic::<Buffer, f32>(f32::add);
        0x4e buffer_atomic_pk_add_f16 once = atomic::<Buffer, u32>(add_f16_pair);
        0x4f buffer_atomic_add_f64 once = atomic::<Buffer, f64>(f64::add);
        0x50 buffer_atomic_min_f64 once = atomic::<Buffer, f64>(min_f64);
        0x51 buffer_atomic_max_f64 once = atomic::<Buffer, f64>(max_f64);
        0x60 buffer_atomic_swap_x2 once = atomic::<Buffer, u64>(swap);
        0x61 buffer_atomic_cmpswap_x2 once = atomic2::<Buffer, u64>(compare_swap);
        0x62 buffer_atomic_add_x2 once = atomic::<Buffer, u64>(u64::wrapping_add);
        0x63 buffer_atomic_sub_x2 once = atomic::<Buffer, u64>(u64::wrapping_sub);
        0x64 buffer_atomic_smin_x2 once = atomic::<Buffer, i64>(i64::min);
        0x65 buffer_atomic_umin_x2 once = atomic::<Buffer, u64>(u64::min);
        0x66 buffer_atomic_smax_x2 once = atomic::<Buffer, i64>(i64::max);
        0x67 buffer_atomic_umax_x2 once = atomic::<Buffer, u64>(u64::max);
        0x68 buffer_atomic_and_x2 once = atomic::<Buffer, u64>(u64::bitand);
        0x69 buffer_atomic_or_x2 once = atomic::<Buffer, u64>(u64::bitor);
        0x6a buffer_atomic_xor_x2 once = atomic::<Buffer, u64>(u64::bitxor);
        0x6b buffer_atomic_inc_x2 once = atomic::<Buffer, u64>(increment_u64);
        0x6c buffer_atomic_dec_x2 once = atomic::<Buffer, u64>(decrement_u64);
    }
}
rows! {
    /// MTBUF: typed buffer accesses.
    MTBUF [16] {
        0x00 tbuffer_load_format_x = load_format::<1>(By::Instruction, In::Words);
        0x01 tbuffer_load_format_xy = load_format::<2>(By::Instruction, In::Words);
        0x02 tbuffer_load_format_xyz = load_format::<3>(By::Instruction, In::Words);
        0x03 tbuffer_load_format_xyzw = load_format::<4>(By::Instruction, In::Words);
        0x04 tbuffer_store_format_x = store_format::<1>(By::Instruction, In::Words);
        0x05 tbuffer_store_format_xy = store_format::<2>(By::Instruction, In::Words);
        0x06 tbuffer_store_format_xyz = store_format::<3>(By::Instruction, In::Words);
        0x07 tbuffer_store_format_xyzw = store_format::<4>(By::Instruction, In::Words);
        0x08 tbuffer_load_format_d16_x = load_format::<1>(By::Instruction, In::Halves);
        0x09 tbuffer_load_format_d16_xy = load_format::<2>(By::Instruction, In::Halves);
        0x0a tbuffer_load_format_d16_xyz = load_format::<3>(By::Instruction, In::Halves);
        0x0b tbuffer_load_format_d16_xyzw = load_format::<4>(By::Instruction, In::Halves);
        0x0c tbuffer_store_format_d16_x = store_format::<1>(By::Instruction, In::Halves);
        0x0d tbuffer_store_format_d16_xy = store_format::<2>(By::Instruction, In::Halves);
        0x0e tbuffer_store_format_d16_xyz = store_format::<3>(By::Instruction, In::Halves);
        0x0f tbuffer_store_format_d16_xyzw = store_format::<4>(By::Instruction, In::Halves);
    }
}
