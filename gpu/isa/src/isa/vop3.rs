//! Vector instructions with three sources, or that exist only in this encoding.

use crate::isa::rows;
use crate::sem::bits::{
    Permutation, align, bfe_i32, bfe_u32, bfi, bfm, i24, lerp_u8, mad_i64_i32, mad_u64_u32, med3 as med3_int,
    msad_u8, mul_hi_i32, mul_hi_u32, perm, quad_sad, sad_u8, sad_u16, shift_add_u64, u24,
};
use crate::sem::convert::{byte, pack, pack_f16_toward_zero, saturate_i16, saturate_u16, snorm16, unorm16};
use crate::sem::cube::{cube_face, cube_major, cube_s, cube_t};
use crate::sem::divide::{
    div_fixup16, div_fixup32, div_fixup64, div_fmas32, div_fmas64, div_scale32, div_scale64,
};
use crate::sem::float::{exact_product_to_odd, fma64, ldexp32, ldexp64, mad32, max, max3, med3, min, min3};
use crate::sem::fp8::{BF8, FP8};
use crate::sem::half::F16;
use crate::sem::preop::trig_preop64;
use crate::sem::rounding;
use crate::shape::fused::fma;
use crate::shape::half::half3;
use crate::shape::lane::{count_below, readlane, v2_byte, writelane};
use crate::shape::quad::v3_quad;
use crate::shape::rounding::{round2, round3, round3_vcc};
use crate::shape::vector::{
    accumulate, v2, v2_clamp, v3, v3_clamp, v3_flag, v3_prepared, v3_uniform, v3_vcc,
};

rows! {
    /// Instructions that exist in VOP3 only.
    VOP3 [1024] {
        0x1c0 v_mad_legacy_f32 gfx90a = v3(|a: f32, b: f32, c: f32| {
            if a == 0.0 || b == 0.0 { mad32(0.0, 0.0, c) } else { mad32(a, b, c) }
        }) directed round3(|a: f32, b: f32, c: f32, r| {
            if a == 0.0 || b == 0.0 { rounding::mad32(0.0, 0.0, c, r) } else { rounding::mad32(a, b, c, r) }
        });
        0x1c1 v_mad_f32 gfx90a = v3(mad32) directed round3(rounding::mad32);
        0x1c2 v_mad_i32_i24 = v3_clamp(
            |a: u32, b: u32, c: i32| i24(a).wrapping_mul(i24(b)).wrapping_add(c),
            |a: u32, b: u32, c: i32| i64::from(i24(a)).wrapping_mul(i64::from(i24(b))).wrapping_add(i64::from(c))
                .clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32);
        0x1c3 v_mad_u32_u24 = v3_clamp(
            |a: u32, b: u32, c: u32| u24(a).wrapping_mul(u24(b)).wrapping_add(c),
            |a: u32, b: u32, c: u32| (u64::from(u24(a)) * u64::from(u24(b)) + u64::from(c)).min(0xffff_ffff) as u32);
        0x1c4 v_cubeid_f32 = v3(cube_face);
        0x1c5 v_cubesc_f32 = v3(cube_s);
        0x1c6 v_cubetc_f32 = v3(cube_t);
        0x1c7 v_cubema_f32 = v3(cube_major);
        0x1c8 v_bfe_u32 = v3(bfe_u32);
        0x1c9 v_bfe_i32 = v3(bfe_i32);
        0x1ca v_bfi_b32 = v3(bfi);
        0x1cb v_fma_f32 = fma() directed round3(rounding::fma::<f32>);
        0x1cc v_fma_f64 = v3(fma64) directed round3(rounding::fma::<f64>);
        0x1cd v_lerp_u8 = v3(lerp_u8);
        0x1ce v_alignbit_b32 = v3(|a, b, c: u32| align(a, b, c & 31));
        0x1cf v_alignbyte_b32 = v3(|a, b, c: u32| align(a, b, (c & 3) * 8));
        0x1d0 v_min3_f32 = v3(min3::<f32>);
        0x1d1 v_min3_i32 = v3(|a: i32, b: i32, c: i32| a.min(b).min(c));
        0x1d2 v_min3_u32 = v3(|a: u32, b: u32, c: u32| a.min(b).min(c));
        0x1d3 v_max3_f32 = v3(max3::<f32>);
        0x1d4 v_max3_i32 = v3(|a: i32, b: i32, c: i32| a.max(b).max(c));
        0x1d5 v_max3_u32 = v3(|a: u32, b: u32, c: u32| a.max(b).max(c));
        0x1d6 v_med3_f32 = v3(med3::<f32>);
        0x1d7 v_med3_i32 = v3(med3_int::<i32>);
        0x1d8 v_med3_u32 = v3(med3_int::<u32>);
        0x1d9 v_sad_u8 = v3(sad_u8);
        0x1da v_sad_hi_u8 = v3(|a, b, c: u32| (sad_u8(a, b, 0) << 16).wrapping_add(c));
        0x1db v_sad_u16 = v3(sad_u16);
        0x1dc v_sad_u32 = v3(|a: u32, b: u32, c: u32| a.abs_diff(b).wrapping_add(c));
        0x1dd v_cvt_pk_u8_f32 = v3(|a: f32, b: u32, c: u32| {
            bfi(0xff << ((b & 3) * 8), u32::from(byte(a)) << ((b & 3) * 8), c)
        });
        0x1de v_div_fixup_f32 = v3(div_fixup32);
        0x1df v_div_fixup_f64 = v3(div_fixup64);
        0x1e0 v_div_scale_f32 = v3_flag(div_scale32);
        0x1e1 v_div_scale_f64 = v3_flag(div_scale64);
        0x1e2 v_div_fmas_f32 = v3_vcc(div_fmas32) directed round3_vcc(rounding::div_fmas::<f32>);
        0x1e3 v_div_fmas_f64 = v3_vcc(div_fmas64) directed round3_vcc(rounding::div_fmas::<f64>);
        0x1e4 v_msad_u8 = v3(msad_u8);
        0x1e5 v_qsad_pk_u16_u8 = v3(|a, b, c| quad_sad(a, b, c, sad_u8));
        0x1e6 v_mqsad_pk_u16_u8 = v3(|a, b, c| quad_sad(a, b, c, msad_u8));
        0x1e7 v_mqsad_u32_u8 = v3_quad(|a: u64, b: u32, c: [u32; 4]| {
            std::array::from_fn(|index| msad_u8((a >> (index * 8)) as u32, b, c[index]))
        });
        0x1e8 v_mad_u64_u32 = v3_flag(mad_u64_u32);
        0x1e9 v_mad_i64_i32 = v3_flag(mad_i64_i32);
        0x1ea v_mad_legacy_f16 = v3(F16::mul_then_add) directed round3(rounding::mul_then_add::<F16>);
        0x1eb v_mad_legacy_u16 = v3(|a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c));
        0x1ec v_mad_legacy_i16 = v3(|a: i16, b: i16, c: i16| a.wrapping_mul(b).wrapping_add(c));
        0x1ed v_perm_b32 = v3_prepared(Permutation::new, Permutation::apply, perm);
        0x1ee v_fma_legacy_f16 once = half3(exact_product_to_odd) directed round3(rounding::fma::<F16>);
        0x1ef v_div_fixup_legacy_f16 = v3(div_fixup16);
        0x1f0 v_cvt_pkaccum_u8_f32 = accumulate(|a: f32, b: u32, old: u32| {
            bfi(0xff << ((b & 3) * 8), u32::from(byte(a)) << ((b & 3) * 8), old)
        });
        0x1f1 v_mad_u32_u16 = v3(|a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c));
        0x1f2 v_mad_i32_i16 = v3(|a: i16, b: i16, c: i32| (i32::from(a) * i32::from(b)).wrapping_add(c));
        0x1f3 v_xad_u32 = v3(|a: u32, b: u32, c: u32| (a ^ b).wrapping_add(c));
        0x1f4 v_min3_f16 = v3(min3::<F16>);
        0x1f5 v_min3_i16 = v3(|a: i16, b: i16, c: i16| a.min(b).min(c));
        0x1f6 v_min3_u16 = v3(|a: u16, b: u16, c: u16| a.min(b).min(c));
        0x1f7 v_max3_f16 = v3(max3::<F16>);
        0x1f8 v_max3_i16 = v3(|a: i16, b: i16, c: i16| a.max(b).max(c));
        0x1f9 v_max3_u16 = v3(|a: u16, b: u16, c: u16| a.max(b).max(c));
        0x1fa v_med3_f16 = v3(med3::<F16>);
        0x1fb v_med3_i16 = v3(med3_int::<i16>);
        0x1fc v_med3_u16 = v3(med3_int::<u16>);
        0x1fd v_lshl_add_u32 = v3(|a: u32, b: u32, c: u32| (a << (b & 31)).wrapping_add(c));
        0x1fe v_add_lshl_u32 = v3(|a: u32, b: u32, c: u32| a.wrapping_add(b) << (c & 31));
        0x1ff v_add3_u32 = v3(|a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c));
        0x200 v_lshl_or_b32 = v3(|a: u32, b: u32, c: u32| a << (b & 31) | c);
        0x201 v_and_or_b32 = v3(|a: u32, b: u32, c: u32| a & b | c);
        0x202 v_or3_b32 = v3(|a: u32, b: u32, c: u32| a | b | c);
        0x203 v_mad_f16 = v3(F16::mul_then_add) directed round3(rounding::mul_then_add::<F16>);
        0x204 v_mad_u16 = v3_clamp(
            |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c),
            |a: u16, b: u16, c: u16| saturate_u16((u32::from(a) * u32::from(b)).saturating_add(u32::from(c))));
        0x205 v_mad_i16 = v3_clamp(
            |a: i16, b: i16, c: i16| a.wrapping_mul(b).wrapping_add(c),
            |a: i16, b: i16, c: i16| saturate_i16((i32::from(a) * i32::from(b)).saturating_add(i32::from(c))) as i16);
        0x206 v_fma_f16 once = half3(exact_product_to_odd) directed round3(rounding::fma::<F16>);
        0x207 v_div_fixup_f16 = v3(div_fixup16);
        0x208 v_lshl_add_u64 gfx942 = v3_uniform(shift_add_u64);
        0x280 v_add_f64 = v2(|a: f64, b: f64| a + b) directed round2(rounding::add::<f64>);
        0x281 v_mul_f64 = v2(|a: f64, b: f64| a * b) directed round2(rounding::mul::<f64>);
        0x282 v_min_f64 = v2(min::<f64>);
        0x283 v_max_f64 = v2(max::<f64>);
        0x284 v_ldexp_f64 = v2(ldexp64) directed round2(rounding::ldexp::<f64>);
        0x285 v_mul_lo_u32 = v2(u32::wrapping_mul);
        0x286 v_mul_hi_u32 = v2(mul_hi_u32);
        0x287 v_mul_hi_i32 = v2(mul_hi_i32);
        0x288 v_ldexp_f32 = v2(ldexp32) directed round2(rounding::ldexp::<f32>);
        0x289 v_readlane_b32 = readlane();
        0x28a v_writelane_b32 = writelane();
        0x28b v_bcnt_u32_b32 = v2(|a: u32, b: u32| a.count_ones().wrapping_add(b));
        0x28c v_mbcnt_lo_u32_b32 = count_below(0);
        0x28d v_mbcnt_hi_u32_b32 = count_below(32);
        0x28f v_lshlrev_b64 = v2(|a: u32, b: u64| b << (a & 63));
        0x290 v_lshrrev_b64 = v2(|a: u32, b: u64| b >> (a & 63));
        0x291 v_ashrrev_i64 = v2(|a: u32, b: i64| b >> (a & 63));
        0x292 v_trig_preop_f64 = v2(trig_preop64);
        0x293 v_bfm_b32 = v2(bfm);
        0x294 v_cvt_pknorm_i16_f32 = v2(|a: f32, b: f32| pack(snorm16(a) as u16, snorm16(b) as u16));
        0x295 v_cvt_pknorm_u16_f32 = v2(|a: f32, b: f32| pack(unorm16(a), unorm16(b)));
        0x296 v_cvt_pkrtz_f16_f32 = v2(pack_f16_toward_zero);
        0x297 v_cvt_pk_u16_u32 = v2(|a: u32, b: u32| pack(saturate_u16(a), saturate_u16(b)));
        0x298 v_cvt_pk_i16_i32 = v2(|a: i32, b: i32| pack(saturate_i16(a), saturate_i16(b)));
        0x299 v_cvt_pknorm_i16_f16 = v2(|a: F16, b: F16| pack(a.to_snorm16(), b.to_snorm16()));
        0x29a v_cvt_pknorm_u16_f16 = v2(|a: F16, b: F16| pack(a.to_unorm16(), b.to_unorm16()));
        0x29c v_add_i32 = v2_clamp(i32::wrapping_add, i32::saturating_add);
        0x29d v_sub_i32 = v2_clamp(i32::wrapping_sub, i32::saturating_sub);
        0x29e v_add_i16 = v2_clamp(i16::wrapping_add, i16::saturating_add);
        0x29f v_sub_i16 = v2_clamp(i16::wrapping_sub, i16::saturating_sub);
        0x2a0 v_pack_b32_f16 = v2(|a: F16, b: F16| pack(a.0, b.0));
        0x2a1 v_mul_legacy_f32 = v2(|a: f32, b: f32| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }) directed round2(|a: f32, b: f32, r| if a == 0.0 || b == 0.0 { 0.0 } else { rounding::mul(a, b, r) });
        0x2a2 v_cvt_pk_fp8_f32 gfx942 = v2(|a: f32, b: f32| u16::from_le_bytes([FP8.encode(a), FP8.encode(b)]));
        0x2a3 v_cvt_pk_bf8_f32 gfx942 = v2(|a: f32, b: f32| u16::from_le_bytes([BF8.encode(a), BF8.encode(b)]));
        0x2a4 v_cvt_sr_fp8_f32 gfx942 = v2_byte(|a: f32, b: u32| FP8.encode_stochastic(a, b));
        0x2a5 v_cvt_sr_bf8_f32 gfx942 = v2_byte(|a: f32, b: u32| BF8.encode_stochastic(a, b));
    }
}
