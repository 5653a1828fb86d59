//! Tests of packed instructions.

use crate::bench::{Bench, Wide, check, check_wide, check2, f};

fn pair(low: f32, high: f32) -> u64 {
    u64::from(f(low)) | u64::from(f(high)) << 32
}

#[test]
fn halves_of_floats() {
    check2(&[0xd38f4003, 0x18020501], "v_pk_add_f16 v3, v1, v2", &[(0x3c00_4000, 0x4200_3c00, 0x4400_4200)]);
    let crossed = "v_pk_add_f16 v3, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]";
    check2(&[0xd38f4803, 0x10020501], crossed, &[(0x3c00_4000, 0x4200_3c00, 0x4500_4000)]);
    let negated = "v_pk_fma_f16 v3, v1, v2, v4 neg_lo:[1,0,0] neg_hi:[0,0,1]";
    // low: -2 * 3 + 1, high: 1 * 2 - 4
    check(&[0xd38e4403, 0x3c120501], negated, &[(0x3c00_4000, 0x4000_4200, 0x4400_3c00, 0xc000_c500)]);
    check2(
        &[0xd38fc003, 0x18020501],
        "v_pk_add_f16 v3, v1, v2 clamp",
        &[(0xbc00_3c00, 0x0000_3c00, 0x0000_3c00)],
    );
}

#[test]
fn halves_of_integers() {
    check2(&[0xd38a4003, 0x18020501], "v_pk_add_u16 v3, v1, v2", &[(0xffff_0001, 0x0002_0003, 0x0001_0004)]);
    check2(
        &[0xd38ac003, 0x18020501],
        "v_pk_add_u16 v3, v1, v2 clamp",
        &[(0xffff_0001, 0x0002_0003, 0xffff_0004)],
    );
    check2(
        &[0xd3824003, 0x08010301],
        "v_pk_add_i16 v3, v1, 1 op_sel_hi:[1,0]",
        &[(0xffff_7fff, 0, 0x0000_8000)],
    );
    check2(
        &[0xd3854003, 0x18020501],
        "v_pk_lshrrev_b16 v3, v1, v2",
        &[(0x0004_0011, 0xff00_8000, 0x0ff0_4000)],
    );
    check2(
        &[0xd3864003, 0x18020501],
        "v_pk_ashrrev_i16 v3, v1, v2",
        &[(0x0004_000f, 0xff00_8000, 0xfff0_ffff)],
    );
    check2(
        &[0xd3814003, 0x18020501],
        "v_pk_mul_lo_u16 v3, v1, v2",
        &[(0x0100_0003, 0x0101_0005, 0x0100_000f)],
    );
    check2(&[0xd3874003, 0x18020501], "v_pk_max_i16 v3, v1, v2", &[(0xffff_0005, 0x0001_8000, 0x0001_0005)]);
    check(
        &[0xd3804003, 0x1c120501],
        "v_pk_mad_i16 v3, v1, v2, v4",
        &[(0xffff_0002, 0x0003_0003, 0x0005_0001, 0x0002_0007)],
    );
}

#[test]
fn mixed_precision() {
    check(&[0xd3a00003, 0x04120501], "v_fma_mix_f32 v3, v1, v2, v4", &[(f(2.0), f(3.0), f(1.0), f(7.0))]);
    let halves = "v_fma_mix_f32 v3, v1, v2, v4 op_sel:[1,0,0] op_sel_hi:[1,1,0]";
    check(&[0xd3a00803, 0x1c120501], halves, &[(0x4000_7777, 0x7777_4200, f(0.5), f(6.5))]);
    check(
        &[0xd3a00203, 0x24120501],
        "v_fma_mix_f32 v3, -v1, |v2|, v4",
        &[(f(2.0), f(-3.0), f(1.0), f(-5.0))],
    );
    check(
        &[0xd3a10003, 0x04120501],
        "v_fma_mixlo_f16 v3, v1, v2, v4",
        &[(f(2.0), f(3.0), f(1.0), 0xdead_4700)],
    );
    let high = "v_fma_mixhi_f16 v3, v1, v2, v4 op_sel_hi:[0,0,1]";
    check(&[0xd3a24003, 0x04120501], high, &[(f(2.0), f(3.0), 0x7777_3c00, 0x4700_beef)]);
}

#[test]
fn dot_products() {
    check(
        &[0xd3a34003, 0x1c120501],
        "v_dot2_f32_f16 v3, v1, v2, v4",
        &[(0x3c00_4000, 0xc000_4200, f(0.25), f(4.25))],
    );
    check(
        &[0xd3a94003, 0x1c120501],
        "v_dot4_u32_u8 v3, v1, v2, v4",
        &[(0xff01_0203, 0xff02_0304, 5, 65025 + 2 + 6 + 12 + 5)],
    );
    check(&[0xd3a84003, 0x1c120501], "v_dot4_i32_i8 v3, v1, v2, v4", &[(0xff01_0203, 0xff02_03fc, 5, 2)]);
    check(&[0xd3a9c003, 0x1c120501], "v_dot4_u32_u8 v3, v1, v2, v4 clamp", &[(2, 2, u32::MAX - 1, u32::MAX)]);
    check(&[0xd3a64003, 0x1c120501], "v_dot2_i32_i16 v3, v1, v2, v4", &[(0xffff_0002, 0x0003_0004, 10, 15)]);
    check(&[0xd3ab4003, 0x1c120501], "v_dot8_u32_u4 v3, v1, v2, v4", &[(0x1234_5678, 0x1111_1111, 1, 37)]);
}

#[test]
fn pairs_of_floats() {
    check_wide(
        &[0xd3b04008, 0x1c2a0d04],
        "v_pk_fma_f32 v[8:9], v[4:5], v[6:7], v[10:11]",
        &[(
            Wide { v4: pair(2.0, 3.0), v6: pair(5.0, 7.0), v10: pair(1.0, -1.0), ..Wide::default() },
            pair(11.0, 20.0),
        )],
    );
    let crossed = "v_pk_mul_f32 v[8:9], v[4:5], v[6:7] op_sel:[1,0] op_sel_hi:[0,1]";
    let operands = Wide { v4: pair(2.0, 3.0), v6: pair(5.0, 7.0), ..Wide::default() };
    check_wide(&[0xd3b14808, 0x10020d04], crossed, &[(operands, pair(15.0, 14.0))]);
    check_wide(
        &[0xd3b14008, 0x0801e904],
        "v_pk_mul_f32 v[8:9], v[4:5], 2.0 op_sel_hi:[1,0]",
        &[(operands, pair(4.0, 6.0))],
    );
    check_wide(
        &[0xd3b34808, 0x18020d04],
        "v_pk_mov_b32 v[8:9], v[4:5], v[6:7] op_sel:[1,0]",
        &[(operands, pair(3.0, 5.0))],
    );
    check_wide(
        &[0xd3b35008, 0x18020d04],
        "v_pk_mov_b32 v[8:9], v[4:5], v[6:7] op_sel:[0,1]",
        &[(operands, pair(2.0, 7.0))],
    );
    let mut bench = Bench::default();
    bench.fill64(4, |_| pair(2.0, 3.0));
    bench.wave.set_pair(6, pair(10.0, 20.0));
    bench.run(&[0xd3b24108, 0x38000d04]); // v_pk_add_f32 v[8:9], v[4:5], s[6:7] neg_lo:[1,0] neg_hi:[1,0]
    assert_eq!(bench.row64(8)[5], pair(8.0, 17.0));
    bench.run(&[0xd3b24804, 0x10020904]); // v_pk_add_f32 v[4:5], v[4:5], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]
    assert_eq!(bench.row64(4)[5], pair(5.0, 5.0), "the low result is not a source of the high one");
}
