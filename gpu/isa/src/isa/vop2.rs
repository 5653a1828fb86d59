//! Vector instructions with two sources.

use crate::isa::rows;
use crate::sem::bits::{add_carry, dot_signed, i24, mul_hi_i24, mul_hi_u24, sub_borrow, u24};
use crate::sem::dot::{accumulate_i32, dot2};
use crate::sem::float::{exact_product_to_odd, fma64, ldexp16, mad32, max, min};
use crate::sem::half::F16;
use crate::sem::rounding;
use crate::shape::fused::{fma_literal, fmac};
use crate::shape::half::{dot2_accumulate, half2, pk_half_accumulate};
use crate::shape::rounding::{round_accumulate, round_literal, round_pk_fmac, round2};
use crate::shape::vector::{accumulate, carry, carry_out, select, v2, v2_clamp, with_literal};

rows! {
    /// VOP2 instructions; in VOP3, opcodes from 0x100 on.
    VOP2 [64] {
        0x00 v_cndmask_b32 = select();
        0x01 v_add_f32 = v2(|a: f32, b: f32| a + b) directed round2(rounding::add::<f32>);
        0x02 v_sub_f32 = v2(|a: f32, b: f32| a - b) directed round2(rounding::sub::<f32>);
        0x03 v_subrev_f32 = v2(|a: f32, b: f32| b - a) directed round2(|a: f32, b: f32, r| rounding::sub(b, a, r));
        0x04 v_fmac_f64 = accumulate(fma64) directed round_accumulate(rounding::fma::<f64>);
        0x05 v_mul_f32 = v2(|a: f32, b: f32| a * b) directed round2(rounding::mul::<f32>);
        0x06 v_mul_i32_i24 = v2(|a: u32, b: u32| i24(a).wrapping_mul(i24(b)));
        0x07 v_mul_hi_i32_i24 = v2(mul_hi_i24);
        0x08 v_mul_u32_u24 = v2(|a: u32, b: u32| u24(a).wrapping_mul(u24(b)));
        0x09 v_mul_hi_u32_u24 = v2(mul_hi_u24);
        0x0a v_min_f32 = v2(min::<f32>);
        0x0b v_max_f32 = v2(max::<f32>);
        0x0c v_min_i32 = v2(|a: i32, b: i32| a.min(b));
        0x0d v_max_i32 = v2(|a: i32, b: i32| a.max(b));
        0x0e v_min_u32 = v2(|a: u32, b: u32| a.min(b));
        0x0f v_max_u32 = v2(|a: u32, b: u32| a.max(b));
        0x10 v_lshrrev_b32 = v2(|a: u32, b: u32| b >> (a & 31));
        0x11 v_ashrrev_i32 = v2(|a: u32, b: i32| b >> (a & 31));
        0x12 v_lshlrev_b32 = v2(|a: u32, b: u32| b << (a & 31));
        0x13 v_and_b32 = v2(|a: u32, b: u32| a & b);
        0x14 v_or_b32 = v2(|a: u32, b: u32| a | b);
        0x15 v_xor_b32 = v2(|a: u32, b: u32| a ^ b);
        0x16 v_mac_f32 gfx90a = accumulate(mad32) directed round_accumulate(rounding::mad32);
        0x17 v_madmk_f32 e32 gfx90a = with_literal(|a: f32, b, k| mad32(a, k, b)) directed round_literal(|a, b, k, r| rounding::mad32(a, k, b, r));
        0x18 v_madak_f32 e32 gfx90a = with_literal(mad32) directed round_literal(rounding::mad32);
        0x17 v_fmamk_f32 e32 gfx942 = fma_literal(|a, b, k| [a, k, b]) directed round_literal(|a: f32, b, k, r| rounding::fma(a, k, b, r));
        0x18 v_fmaak_f32 e32 gfx942 = fma_literal(|a, b, k| [a, b, k]) directed round_literal(rounding::fma::<f32>);
        0x19 v_add_co_u32 = carry_out(add_carry);
        0x1a v_sub_co_u32 = carry_out(sub_borrow);
        0x1b v_subrev_co_u32 = carry_out(|a, b, borrow| sub_borrow(b, a, borrow));
        0x1c v_addc_co_u32 = carry(add_carry);
        0x1d v_subb_co_u32 = carry(sub_borrow);
        0x1e v_subbrev_co_u32 = carry(|a, b, borrow| sub_borrow(b, a, borrow));
        0x1f v_add_f16 once = half2(|a, b| a + b) directed round2(rounding::add::<F16>);
        0x20 v_sub_f16 once = half2(|a, b| a - b) directed round2(rounding::sub::<F16>);
        0x21 v_subrev_f16 once = half2(|a, b| b - a) directed round2(|a: F16, b: F16, r| rounding::sub(b, a, r));
        0x22 v_mul_f16 once = half2(|a, b| a * b) directed round2(rounding::mul::<F16>);
        0x23 v_mac_f16 = accumulate(F16::mul_then_add) directed round_accumulate(rounding::mul_then_add::<F16>);
        0x24 v_madmk_f16 e32 = with_literal(|a: F16, b, k| a.mul_then_add(k, b)) directed round_literal(|a: F16, b, k, r| rounding::mul_then_add(a, k, b, r));
        0x25 v_madak_f16 e32 = with_literal(|a: F16, b, k| a.mul_then_add(b, k)) directed round_literal(rounding::mul_then_add::<F16>);
        0x26 v_add_u16 = v2_clamp(u16::wrapping_add, u16::saturating_add);
        0x27 v_sub_u16 = v2_clamp(u16::wrapping_sub, u16::saturating_sub);
        0x28 v_subrev_u16 = v2_clamp(|a: u16, b: u16| b.wrapping_sub(a), |a: u16, b: u16| b.saturating_sub(a));
        0x29 v_mul_lo_u16 = v2(u16::wrapping_mul);
        0x2a v_lshlrev_b16 = v2(|a: u16, b: u16| b << (a & 15));
        0x2b v_lshrrev_b16 = v2(|a: u16, b: u16| b >> (a & 15));
        0x2c v_ashrrev_i16 = v2(|a: u16, b: i16| b >> (a & 15));
        0x2d v_max_f16 = v2(max::<F16>);
        0x2e v_min_f16 = v2(min::<F16>);
        0x2f v_max_u16 = v2(|a: u16, b: u16| a.max(b));
        0x30 v_max_i16 = v2(|a: i16, b: i16| a.max(b));
        0x31 v_min_u16 = v2(|a: u16, b: u16| a.min(b));
        0x32 v_min_i16 = v2(|a: i16, b: i16| a.min(b));
        0x33 v_ldexp_f16 = v2(ldexp16) directed round2(|a: F16, b: i16, r| rounding::ldexp(a, b.into(), r));
        0x34 v_add_u32 = v2_clamp(u32::wrapping_add, u32::saturating_add);
        0x35 v_sub_u32 = v2_clamp(u32::wrapping_sub, u32::saturating_sub);
        0x36 v_subrev_u32 = v2_clamp(|a: u32, b: u32| b.wrapping_sub(a), |a: u32, b: u32| b.saturating_sub(a));
        0x37 v_dot2c_f32_f16 once = dot2_accumulate(dot2);
        0x38 v_dot2c_i32_i16 = accumulate(|a: u32, b: u32, sum: u32| accumulate_i32(dot_signed::<16>(a, b), sum, false));
        0x39 v_dot4c_i32_i8 = accumulate(|a: u32, b: u32, sum: u32| accumulate_i32(dot_signed::<8>(a, b), sum, false));
        0x3a v_dot8c_i32_i4 = accumulate(|a: u32, b: u32, sum: u32| accumulate_i32(dot_signed::<4>(a, b), sum, false));
        0x3b v_fmac_f32 = fmac() directed round_accumulate(rounding::fma::<f32>);
        0x3c v_pk_fmac_f16 once = pk_half_accumulate(exact_product_to_odd) directed round_pk_fmac();
        0x3d v_xnor_b32 = v2(|a: u32, b: u32| !(a ^ b));
    }
}
