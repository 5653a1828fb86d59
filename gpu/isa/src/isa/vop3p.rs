//! Packed and matrix instructions.

use crate::isa::rows;
use crate::sem::bits::{dot_signed, dot_unsigned};
use crate::sem::convert::{saturate_i16, saturate_u16};
use crate::sem::dot::{accumulate_i32, accumulate_u32, dot2};
use crate::sem::float::{exact_product_to_odd, max, min};
use crate::sem::half::F16;
use crate::sem::matrix::{Bf8Bf8, Bf8Fp8, Bf16, F16s, F32, F64, Fp8Bf8, Fp8Fp8, I8, Xf32};
use crate::sem::rounding;
use crate::shape::half::{dot2_halves, pk_half2, pk_half3};
use crate::shape::lane::{acc_read, acc_write};
use crate::shape::matrix::mfma;
use crate::shape::packed::{
    dot, fma_mix, fma_mix_half, pk_fma_f32, pk_mov, pk2, pk2_clamp, pk2_f32, pk3_clamp,
};
use crate::shape::rounding::{
    round_fma_mix, round_fma_mix_half, round_pk_fma, round_pk_fma_f32, round_pk2, round_pk2_f32,
};
use crate::shape::sparse::smfmac;

rows! {
    /// VOP3P: packed and matrix instructions.
    VOP3P [128] {
        0x00 v_pk_mad_i16 = pk3_clamp(
            |a: i16, b: i16, c: i16| a.wrapping_mul(b).wrapping_add(c),
            |a: i16, b: i16, c: i16| saturate_i16((i32::from(a) * i32::from(b)).saturating_add(i32::from(c))) as i16);
        0x01 v_pk_mul_lo_u16 = pk2(u16::wrapping_mul);
        0x02 v_pk_add_i16 = pk2_clamp(i16::wrapping_add, i16::saturating_add);
        0x03 v_pk_sub_i16 = pk2_clamp(i16::wrapping_sub, i16::saturating_sub);
        0x04 v_pk_lshlrev_b16 = pk2(|a: u16, b: u16| b << (a & 15));
        0x05 v_pk_lshrrev_b16 = pk2(|a: u16, b: u16| b >> (a & 15));
        0x06 v_pk_ashrrev_i16 = pk2(|a: i16, b: i16| b >> (a & 15));
        0x07 v_pk_max_i16 = pk2(|a: i16, b: i16| a.max(b));
        0x08 v_pk_min_i16 = pk2(|a: i16, b: i16| a.min(b));
        0x09 v_pk_mad_u16 = pk3_clamp(
            |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c),
            |a: u16, b: u16, c: u16| saturate_u16((u32::from(a) * u32::from(b)).saturating_add(u32::from(c))));
        0x0a v_pk_add_u16 = pk2_clamp(u16::wrapping_add, u16::saturating_add);
        0x0b v_pk_sub_u16 = pk2_clamp(u16::wrapping_sub, u16::saturating_sub);
        0x0c v_pk_max_u16 = pk2(|a: u16, b: u16| a.max(b));
        0x0d v_pk_min_u16 = pk2(|a: u16, b: u16| a.min(b));
        0x0e v_pk_fma_f16 once = pk_half3(exact_product_to_odd) directed round_pk_fma();
        0x0f v_pk_add_f16 once = pk_half2(|a, b| a + b) directed round_pk2(rounding::add::<F16>);
        0x10 v_pk_mul_f16 once = pk_half2(|a, b| a * b) directed round_pk2(rounding::mul::<F16>);
        0x11 v_pk_min_f16 = pk2(min::<F16>);
        0x12 v_pk_max_f16 = pk2(max::<F16>);
        0x20 v_fma_mix_f32 = fma_mix() directed round_fma_mix();
        0x21 v_fma_mixlo_f16 = fma_mix_half(0) directed round_fma_mix_half(0);
        0x22 v_fma_mixhi_f16 = fma_mix_half(16) directed round_fma_mix_half(16);
        0x23 v_dot2_f32_f16 once = dot2_halves(dot2);
        0x26 v_dot2_i32_i16 = dot(|a, b, sum, clamp| accumulate_i32(dot_signed::<16>(a, b), sum, clamp));
        0x27 v_dot2_u32_u16 = dot(|a, b, sum, clamp| accumulate_u32(dot_unsigned::<16>(a, b), sum, clamp));
        0x28 v_dot4_i32_i8 = dot(|a, b, sum, clamp| accumulate_i32(dot_signed::<8>(a, b), sum, clamp));
        0x29 v_dot4_u32_u8 = dot(|a, b, sum, clamp| accumulate_u32(dot_unsigned::<8>(a, b), sum, clamp));
        0x2a v_dot8_i32_i4 = dot(|a, b, sum, clamp| accumulate_i32(dot_signed::<4>(a, b), sum, clamp));
        0x2b v_dot8_u32_u4 = dot(|a, b, sum, clamp| accumulate_u32(dot_unsigned::<4>(a, b), sum, clamp));
        0x30 v_pk_fma_f32 = pk_fma_f32() directed round_pk_fma_f32();
        0x31 v_pk_mul_f32 = pk2_f32(|a, b| a * b) directed round_pk2_f32(rounding::mul::<f32>);
        0x32 v_pk_add_f32 = pk2_f32(|a, b| a + b) directed round_pk2_f32(rounding::add::<f32>);
        0x33 v_pk_mov_b32 = pk_mov();
        0x3e v_mfma_f32_16x16x8_xf32 gfx942 once = mfma::<16, 16, 8, 1, Xf32>();
        0x3f v_mfma_f32_32x32x4_xf32 gfx942 once = mfma::<32, 32, 4, 1, Xf32>();
        0x40 v_mfma_f32_32x32x1_2b_f32 once = mfma::<32, 32, 1, 2, F32>() [v_mfma_f32_32x32x1f32];
        0x41 v_mfma_f32_16x16x1_4b_f32 once = mfma::<16, 16, 1, 4, F32>() [v_mfma_f32_16x16x1f32];
        0x42 v_mfma_f32_4x4x1_16b_f32 once = mfma::<4, 4, 1, 16, F32>() [v_mfma_f32_4x4x1f32];
        0x44 v_mfma_f32_32x32x2_f32 once = mfma::<32, 32, 2, 1, F32>() [v_mfma_f32_32x32x2f32];
        0x45 v_mfma_f32_16x16x4_f32 once = mfma::<16, 16, 4, 1, F32>() [v_mfma_f32_16x16x4f32];
        0x48 v_mfma_f32_32x32x4_2b_f16 once = mfma::<32, 32, 4, 2, F16s>() [v_mfma_f32_32x32x4f16];
        0x49 v_mfma_f32_16x16x4_4b_f16 once = mfma::<16, 16, 4, 4, F16s>() [v_mfma_f32_16x16x4f16];
        0x4a v_mfma_f32_4x4x4_16b_f16 once = mfma::<4, 4, 4, 16, F16s>() [v_mfma_f32_4x4x4f16];
        0x4c v_mfma_f32_32x32x8_f16 once = mfma::<32, 32, 8, 1, F16s>() [v_mfma_f32_32x32x8f16];
        0x4d v_mfma_f32_16x16x16_f16 once = mfma::<16, 16, 16, 1, F16s>() [v_mfma_f32_16x16x16f16];
        0x50 v_mfma_i32_32x32x4_2b_i8 once = mfma::<32, 32, 4, 2, I8>() [v_mfma_i32_32x32x4i8];
        0x51 v_mfma_i32_16x16x4_4b_i8 once = mfma::<16, 16, 4, 4, I8>() [v_mfma_i32_16x16x4i8];
        0x52 v_mfma_i32_4x4x4_16b_i8 once = mfma::<4, 4, 4, 16, I8>() [v_mfma_i32_4x4x4i8];
        0x54 v_mfma_i32_32x32x8i8 gfx90a once = mfma::<32, 32, 8, 1, I8>();
        0x55 v_mfma_i32_16x16x16i8 gfx90a once = mfma::<16, 16, 16, 1, I8>();
        0x56 v_mfma_i32_32x32x16_i8 gfx942 once = mfma::<32, 32, 16, 1, I8>();
        0x57 v_mfma_i32_16x16x32_i8 gfx942 once = mfma::<16, 16, 32, 1, I8>();
        0x58 v_accvgpr_read_b32 = acc_read();
        0x59 v_accvgpr_write_b32 = acc_write();
        0x5d v_mfma_f32_32x32x4_2b_bf16 gfx942 once = mfma::<32, 32, 4, 2, Bf16>();
        0x5e v_mfma_f32_16x16x4_4b_bf16 gfx942 once = mfma::<16, 16, 4, 4, Bf16>();
        0x5f v_mfma_f32_4x4x4_16b_bf16 gfx942 once = mfma::<4, 4, 4, 16, Bf16>();
        0x60 v_mfma_f32_32x32x8_bf16 gfx942 once = mfma::<32, 32, 8, 1, Bf16>();
        0x61 v_mfma_f32_16x16x16_bf16 gfx942 once = mfma::<16, 16, 16, 1, Bf16>();
        0x62 v_smfmac_f32_16x16x32_f16 gfx942 = smfmac::<16, 32, F16s>();
        0x63 v_mfma_f32_32x32x4bf16_1k gfx90a once = mfma::<32, 32, 4, 2, Bf16>();
        0x64 v_mfma_f32_16x16x4bf16_1k gfx90a once = mfma::<16, 16, 4, 4, Bf16>();
        0x64 v_smfmac_f32_32x32x16_f16 gfx942 = smfmac::<32, 16, F16s>();
        0x65 v_mfma_f32_4x4x4bf16_1k gfx90a once = mfma::<4, 4, 4, 16, Bf16>();
        0x66 v_mfma_f32_32x32x8bf16_1k gfx90a once = mfma::<32, 32, 8, 1, Bf16>();
        0x66 v_smfmac_f32_16x16x32_bf16 gfx942 = smfmac::<16, 32, Bf16>();
        0x67 v_mfma_f32_16x16x16bf16_1k gfx90a once = mfma::<16, 16, 16, 1, Bf16>();
        0x68 v_mfma_f32_32x32x2bf16 gfx90a once = mfma::<32, 32, 2, 2, Bf16>();
        0x68 v_smfmac_f32_32x32x16_bf16 gfx942 = smfmac::<32, 16, Bf16>();
        0x69 v_mfma_f32_16x16x2bf16 gfx90a once = mfma::<16, 16, 2, 4, Bf16>();
        0x6a v_smfmac_i32_16x16x64_i8 gfx942 = smfmac::<16, 64, I8>();
        0x6b v_mfma_f32_4x4x2bf16 gfx90a once = mfma::<4, 4, 2, 16, Bf16>();
        0x6c v_mfma_f32_32x32x4bf16 gfx90a once = mfma::<32, 32, 4, 1, Bf16>();
        0x6c v_smfmac_i32_32x32x32_i8 gfx942 = smfmac::<32, 32, I8>();
        0x6d v_mfma_f32_16x16x8bf16 gfx90a once = mfma::<16, 16, 8, 1, Bf16>();
        0x6e v_mfma_f64_16x16x4_f64 once = mfma::<16, 16, 4, 1, F64>() [v_mfma_f64_16x16x4f64];
        0x6f v_mfma_f64_4x4x4_4b_f64 once = mfma::<4, 4, 4, 4, F64>() [v_mfma_f64_4x4x4f64];
        0x70 v_mfma_f32_16x16x32_bf8_bf8 gfx942 once = mfma::<16, 16, 32, 1, Bf8Bf8>();
        0x71 v_mfma_f32_16x16x32_bf8_fp8 gfx942 once = mfma::<16, 16, 32, 1, Bf8Fp8>();
        0x72 v_mfma_f32_16x16x32_fp8_bf8 gfx942 once = mfma::<16, 16, 32, 1, Fp8Bf8>();
        0x73 v_mfma_f32_16x16x32_fp8_fp8 gfx942 once = mfma::<16, 16, 32, 1, Fp8Fp8>();
        0x74 v_mfma_f32_32x32x16_bf8_bf8 gfx942 once = mfma::<32, 32, 16, 1, Bf8Bf8>();
        0x75 v_mfma_f32_32x32x16_bf8_fp8 gfx942 once = mfma::<32, 32, 16, 1, Bf8Fp8>();
        0x76 v_mfma_f32_32x32x16_fp8_bf8 gfx942 once = mfma::<32, 32, 16, 1, Fp8Bf8>();
        0x77 v_mfma_f32_32x32x16_fp8_fp8 gfx942 once = mfma::<32, 32, 16, 1, Fp8Fp8>();
        0x78 v_smfmac_f32_16x16x64_bf8_bf8 gfx942 = smfmac::<16, 64, Bf8Bf8>();
        0x79 v_smfmac_f32_16x16x64_bf8_fp8 gfx942 = smfmac::<16, 64, Bf8Fp8>();
        0x7a v_smfmac_f32_16x16x64_fp8_bf8 gfx942 = smfmac::<16, 64, Fp8Bf8>();
        0x7b v_smfmac_f32_16x16x64_fp8_fp8 gfx942 = smfmac::<16, 64, Fp8Fp8>();
        0x7c v_smfmac_f32_32x32x32_bf8_bf8 gfx942 = smfmac::<32, 32, Bf8Bf8>();
        0x7d v_smfmac_f32_32x32x32_bf8_fp8 gfx942 = smfmac::<32, 32, Bf8Fp8>();
        0x7e v_smfmac_f32_32x32x32_fp8_bf8 gfx942 = smfmac::<32, 32, Fp8Bf8>();
        0x7f v_smfmac_f32_32x32x32_fp8_fp8 gfx942 = smfmac::<32, 32, Fp8Fp8>();
    }
}
