//! Vector instructions with one source.

use crate::isa::rows;
use crate::sem::bits::{first_high, first_low, first_unlike_sign};
use crate::sem::convert::{f32_pair, round_down, round_half_up, saturate_u8, sixteenths, widen};
use crate::sem::float::{
    ceil32, ceil64, floor32, floor64, fract32, fract64, frexp_exponent32, frexp_exponent64, frexp_mantissa32,
    frexp_mantissa64, rndne32, rndne64, trunc32, trunc64,
};
use crate::sem::fp8::{BF8, FP8};
use crate::sem::half::F16;
use crate::sem::rounding::{convert, of_integer};
use crate::sem::screen::screen_partition;
use crate::sem::transcendental::{cos32, exp2_32, log2_32, rcp32, rsq32, sin32, sqrt32};
use crate::shape::lane::{acc_move, readfirstlane, swap};
use crate::shape::rounding::round1;
use crate::shape::scalar::nothing;
use crate::shape::vector::v1;

rows! {
    /// VOP1 instructions; in VOP3, opcodes from 0x140 on.
    VOP1 [128] {
        0x00 v_nop e32 = nothing();
        0x01 v_mov_b32 = v1(|a: u32| a);
        0x02 v_readfirstlane_b32 e32 = readfirstlane();
        0x03 v_cvt_i32_f64 = v1(|a: f64| a as i32);
        0x04 v_cvt_f64_i32 = v1(|a: i32| f64::from(a));
        0x05 v_cvt_f32_i32 = v1(|a: i32| a as f32) directed round1(|a: i32, r| of_integer::<f32>(a, r));
        0x06 v_cvt_f32_u32 = v1(|a: u32| a as f32) directed round1(|a: u32, r| of_integer::<f32>(a, r));
        0x07 v_cvt_u32_f32 = v1(|a: f32| a as u32);
        0x08 v_cvt_i32_f32 = v1(|a: f32| a as i32);
        0x0a v_cvt_f16_f32 = v1(F16::from_f32) directed round1(|a: f32, r| convert(a, r, F16::from_f32));
        0x0b v_cvt_f32_f16 = v1(widen);
        0x0c v_cvt_rpi_i32_f32 = v1(round_half_up);
        0x0d v_cvt_flr_i32_f32 = v1(round_down);
        0x0e v_cvt_off_f32_i4 = v1(sixteenths);
        0x0f v_cvt_f32_f64 = v1(|a: f64| a as f32) directed round1(|a: f64, r| convert(a, r, |a| a as f32));
        0x10 v_cvt_f64_f32 = v1(|a: f32| f64::from(a));
        0x11 v_cvt_f32_ubyte0 = v1(|a: u32| (a & 0xff) as f32);
        0x12 v_cvt_f32_ubyte1 = v1(|a: u32| (a >> 8 & 0xff) as f32);
        0x13 v_cvt_f32_ubyte2 = v1(|a: u32| (a >> 16 & 0xff) as f32);
        0x14 v_cvt_f32_ubyte3 = v1(|a: u32| (a >> 24) as f32);
        0x15 v_cvt_u32_f64 = v1(|a: f64| a as u32);
        0x16 v_cvt_f64_u32 = v1(|a: u32| f64::from(a));
        0x17 v_trunc_f64 = v1(trunc64);
        0x18 v_ceil_f64 = v1(ceil64);
        0x19 v_rndne_f64 = v1(rndne64);
        0x1a v_floor_f64 = v1(floor64);
        0x1b v_fract_f32 = v1(fract32);
        0x1c v_trunc_f32 = v1(trunc32);
        0x1d v_ceil_f32 = v1(ceil32);
        0x1e v_rndne_f32 = v1(rndne32);
        0x1f v_floor_f32 = v1(floor32);
        0x20 v_exp_f32 = v1(exp2_32);
        0x21 v_log_f32 = v1(log2_32);
        0x22 v_rcp_f32 = v1(rcp32);
        0x23 v_rcp_iflag_f32 = v1(rcp32);
        0x24 v_rsq_f32 = v1(rsq32);
        0x25 v_rcp_f64 = v1(|a: f64| 1.0 / a);
        0x26 v_rsq_f64 = v1(|a: f64| 1.0 / a.sqrt());
        0x27 v_sqrt_f32 = v1(sqrt32);
        0x28 v_sqrt_f64 = v1(f64::sqrt);
        0x29 v_sin_f32 = v1(sin32);
        0x2a v_cos_f32 = v1(cos32);
        0x2b v_not_b32 = v1(|a: u32| !a);
        0x2c v_bfrev_b32 = v1(u32::reverse_bits);
        0x2d v_ffbh_u32 = v1(first_high);
        0x2e v_ffbl_b32 = v1(first_low);
        0x2f v_ffbh_i32 = v1(first_unlike_sign);
        0x30 v_frexp_exp_i32_f64 = v1(frexp_exponent64);
        0x31 v_frexp_mant_f64 = v1(frexp_mantissa64);
        0x32 v_fract_f64 = v1(fract64);
        0x33 v_frexp_exp_i32_f32 = v1(frexp_exponent32);
        0x34 v_frexp_mant_f32 = v1(frexp_mantissa32);
        0x35 v_clrexcp e32 = nothing();
        0x37 v_screen_partition_4se_b32 = v1(screen_partition);
        0x38 v_mov_b64 gfx942 = v1(|a: u64| a);
        0x39 v_cvt_f16_u16 = v1(|a: u16| F16::from_f32(f32::from(a))) directed round1(|a: u16, r| of_integer::<F16>(a, r));
        0x3a v_cvt_f16_i16 = v1(|a: i16| F16::from_f32(f32::from(a))) directed round1(|a: i16, r| of_integer::<F16>(a, r));
        0x3b v_cvt_u16_f16 = v1(|a: F16| a.to_f32() as u16);
        0x3c v_cvt_i16_f16 = v1(|a: F16| a.to_f32() as i16);
        0x3d v_rcp_f16 = v1(|a: F16| a.map(rcp32));
        0x3e v_sqrt_f16 = v1(|a: F16| a.map(sqrt32));
        0x3f v_rsq_f16 = v1(|a: F16| a.map(rsq32));
        0x40 v_log_f16 = v1(|a: F16| a.map(log2_32));
        0x41 v_exp_f16 = v1(|a: F16| a.map(exp2_32));
        0x42 v_frexp_mant_f16 = v1(|a: F16| a.map(frexp_mantissa32));
        0x43 v_frexp_exp_i16_f16 = v1(|a: F16| frexp_exponent32(a.to_f32()) as i16);
        0x44 v_floor_f16 = v1(|a: F16| a.map(floor32));
        0x45 v_ceil_f16 = v1(|a: F16| a.map(ceil32));
        0x46 v_trunc_f16 = v1(|a: F16| a.map(trunc32));
        0x47 v_rndne_f16 = v1(|a: F16| a.map(rndne32));
        0x48 v_fract_f16 = v1(|a: F16| a.map(fract32).below_one());
        0x49 v_sin_f16 = v1(|a: F16| a.map(sin32));
        0x4a v_cos_f16 = v1(|a: F16| a.map(cos32));
        0x4b v_exp_legacy_f32 = v1(exp2_32);
        0x4c v_log_legacy_f32 = v1(log2_32);
        0x4d v_cvt_norm_i16_f16 = v1(F16::to_snorm16);
        0x4e v_cvt_norm_u16_f16 = v1(F16::to_unorm16);
        0x4f v_sat_pk_u8_i16 = v1(|a: u32| saturate_u8(a as u16) | saturate_u8((a >> 16) as u16) << 8);
        0x51 v_swap_b32 e32 = swap();
        0x52 v_accvgpr_mov_b32 e32 = acc_move();
        0x54 v_cvt_f32_fp8 gfx942 = v1(|a: u32| FP8.decode(a as u8));
        0x55 v_cvt_f32_bf8 gfx942 = v1(|a: u32| BF8.decode(a as u8));
        0x56 v_cvt_pk_f32_fp8 gfx942 = v1(|a: u32| f32_pair(FP8.decode(a as u8), FP8.decode((a >> 8) as u8)));
        0x57 v_cvt_pk_f32_bf8 gfx942 = v1(|a: u32| f32_pair(BF8.decode(a as u8), BF8.decode((a >> 8) as u8)));
    }
}
