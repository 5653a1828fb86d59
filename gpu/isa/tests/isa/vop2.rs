//! Tests of vector instructions with two sources.

use crate::bench::{Bench, QNAN, QUIETED, SNAN, check, check2, f};

#[test]
fn integers() {
    check2(&[0x68060501], "v_add_u32 v3, v1, v2", &[(1, 2, 3), (u32::MAX, 2, 1), (0, 0, 0)]);
    check2(&[0x6c060501], "v_subrev_u32 v3, v1, v2", &[(1, 2, 1), (2, 1, u32::MAX)]);
    check2(&[0x7a060501], "v_xnor_b32 v3, v1, v2", &[(0xff00, 0x0ff0, !0xf0f0)]);
    let signed = [(0xff_ffff, 2, -2i32 as u32), (0x80_0000, 0x80_0000, 0), (0x1234_5678, 1, 0x34_5678)];
    check2(&[0x0c060501], "v_mul_i32_i24 v3, v1, v2", &signed);
    check2(
        &[0x12060501],
        "v_mul_hi_u32_u24 v3, v1, v2",
        &[(0xff_ffff, 0xff_ffff, 0xffff), (0xff00_0001, 5, 0)],
    );
}

#[test]
fn shift_counts_are_masked() {
    check2(&[0x24060501], "v_lshlrev_b32 v3, v1, v2", &[(4, 1, 16), (32, 7, 7), (63, 1, 1 << 31), (0, 9, 9)]);
    check2(&[0x20060501], "v_lshrrev_b32 v3, v1, v2", &[(31, u32::MAX, 1), (33, 8, 4)]);
    check2(
        &[0x22060501],
        "v_ashrrev_i32 v3, v1, v2",
        &[(31, 1 << 31, u32::MAX), (36, 0x8000_0000, 0xf800_0000)],
    );
    check2(&[0x54060501], "v_lshlrev_b16 v3, v1, v2", &[(4, 0xffff_1234, 0x2340), (17, 1, 2)]);
    check2(&[0x58060501], "v_ashrrev_i16 v3, v1, v2", &[(15, 0x1234_8000, 0xffff), (4, 0x8000, 0xf800)]);
}

#[test]
fn halves_clear_the_upper_half() {
    check2(&[0x52060501], "v_mul_lo_u16 v3, v1, v2", &[(0xffff_0003, 0xaaaa_5556, 2)]);
    check2(
        &[0x3e060501],
        "v_add_f16 v3, v1, v2",
        &[
            (0xffff_3c00, 0x1234_3c00, 0x4000),
            (0x7bff, 0x7bff, 0x7c00),
            (0x0001, 0x0001, 0x0002),
            (0x3c00, 0x1000, 0x3c00), // 1 + 2^-11: a tie, to even
            (0x3c01, 0x1000, 0x3c02),
            (0x8000, 0x8000, 0x8000),
            (0x7c00, 0x7c00, 0x7c00),
        ],
    );
    check2(
        &[0x5a060501],
        "v_max_f16 v3, v1, v2",
        &[
            (0x3c00, 0x4000, 0x4000),
            (0x8000, 0x0000, 0x0000),
            (0x7e01, 0x3c00, 0x3c00),
            (0x7c01, 0x3c00, 0x7e01),
        ],
    );
    check2(
        &[0x66060501],
        "v_ldexp_f16 v3, v1, v2",
        &[
            (0x3c00, 3, 0x4800),
            (0x3c00, 0xffe8, 0x0001),
            (0x3c00, 0xffe7, 0x0000),
            (0x3c01, 0xffe7, 0x0001),
            (0x3c00, 0x7fff, 0x7c00),
        ],
    );
}

#[test]
fn floats() {
    check2(
        &[0x02060501],
        "v_add_f32 v3, v1, v2",
        &[
            (f(1.0), f(2.0), f(3.0)),
            (f(-0.0), f(-0.0), f(-0.0)),
            (f(0.0), f(-0.0), f(0.0)),
            (f(f32::MAX), f(f32::MAX), f(f32::INFINITY)),
            (1, 1, 2),
            (0x0080_0000, 0x8000_0001, 0x007f_ffff),
            (QNAN, f(1.0), QNAN),
            (SNAN, f(1.0), QUIETED),
        ],
    );
    check2(&[0x04060501], "v_sub_f32 v3, v1, v2", &[(f(1.0), f(3.0), f(-2.0)), (f(1.0), f(1.0), 0)]);
    check2(
        &[0x0a060501],
        "v_mul_f32 v3, v1, v2",
        &[(f(3.0), f(-0.5), f(-1.5)), (f(1e-30), f(1e-10), f(1e-40)), (f(-0.0), f(5.0), f(-0.0))],
    );
}

#[test]
fn minimum_and_maximum_prefer_numbers_and_know_signs_of_zero() {
    let cases = |min: bool| {
        let pick = |low: u32, high: u32| if min { low } else { high };
        [
            (f(1.0), f(2.0), pick(f(1.0), f(2.0))),
            (f(2.0), f(1.0), pick(f(1.0), f(2.0))),
            (f(0.0), f(-0.0), pick(f(-0.0), f(0.0))),
            (f(-0.0), f(0.0), pick(f(-0.0), f(0.0))),
            (QNAN, f(1.0), f(1.0)),
            (f(1.0), QNAN, f(1.0)),
            (QNAN, QNAN, QNAN),
            (SNAN, f(1.0), QUIETED),
            (f(1.0), SNAN, QUIETED),
            (f(f32::INFINITY), f(-1.0), pick(f(-1.0), f(f32::INFINITY))),
            (1, 2, pick(1, 2)),
        ]
    };
    check2(&[0x14060501], "v_min_f32 v3, v1, v2", &cases(true));
    check2(&[0x16060501], "v_max_f32 v3, v1, v2", &cases(false));
}

#[test]
fn multiply_add_with_a_constant() {
    check2(&[0x2e060501, 0x40400000], "v_fmamk_f32 v3, v1, 0x40400000, v2", &[(f(2.0), f(1.0), f(7.0))]);
    check2(&[0x30060501, 0x40400000], "v_fmaak_f32 v3, v1, v2, 0x40400000", &[(f(2.0), f(5.0), f(13.0))]);
}

#[test]
fn accumulation_reads_the_destination() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| f(lane as f32));
    bench.fill(2, |_| f(2.0));
    bench.fill(3, |_| f(0.5));
    bench.run(&[0x76060501, 0x76060501]); // v_fmac_f32 v3, v1, v2, twice
    for lane in 0..64 {
        assert_eq!(bench.wave.row(3)[lane], f(lane as f32 * 4.0 + 0.5));
    }
    bench.fill(1, |_| 0x3c00_4000); // 2, 1
    bench.fill(2, |_| 0xc000_4200); // 3, -2
    bench.fill(3, |_| f(0.25));
    bench.run(&[0x6e060501]); // v_dot2c_f32_f16 v3, v1, v2
    assert_eq!(*bench.wave.row(3), [f(4.25); 64]);
    bench.fill(1, |_| 0x01ff_0280);
    bench.fill(2, |_| 0x0302_017f);
    bench.fill(3, |_| 10);
    bench.run(&[0x72060501]); // v_dot4c_i32_i8 v3, v1, v2
    assert_eq!(*bench.wave.row(3), [(10 + 3 - 2 + 2 - 128 * 127) as u32; 64]);
}

#[test]
fn carries_go_through_vcc_and_scalar_pairs() {
    let mut bench = Bench::default();
    bench.fill(1, |lane| if lane % 2 == 0 { u32::MAX } else { 1 });
    bench.fill(2, |_| 1);
    bench.wave.set_vcc(u64::MAX);
    bench.wave.set_exec(0x0000_ffff_ffff_ffff);
    bench.run(&[0x32060501]); // v_add_co_u32 v3, vcc, v1, v2
    assert_eq!(bench.wave.vcc(), 0x0000_5555_5555_5555, "inactive lanes give 0");
    assert_eq!(bench.wave.row(3)[0], 0);
    assert_eq!(bench.wave.row(3)[1], 2);
    bench.run(&[0x38060501]); // v_addc_co_u32 v3, vcc, v1, v2, vcc
    assert_eq!(bench.wave.row(3)[0], 1);
    assert_eq!(bench.wave.row(3)[1], 2);
    assert_eq!(bench.wave.vcc(), 0x0000_5555_5555_5555);
    bench.fill(1, |_| 0);
    bench.fill(2, |_| 0);
    bench.wave.set_pair(6, 0b1);
    bench.run(&[0xd11d0403, 0x001a0501]); // v_subb_co_u32 v3, s[4:5], v1, v2, s[6:7]
    assert_eq!(bench.wave.row(3)[..2], [u32::MAX, 0]);
    assert_eq!(bench.wave.pair(4), 1);
}

#[test]
fn a_mask_chooses() {
    let mut bench = Bench::default();
    bench.fill(1, |_| 1);
    bench.fill(2, |_| f(-2.0));
    bench.wave.set_vcc(0xff);
    bench.run(&[0x00060501]); // v_cndmask_b32 v3, v1, v2, vcc
    assert_eq!(bench.wave.row(3)[7..9], [f(-2.0), 1]);
    bench.wave.set_pair(6, 0xf0);
    bench.run(&[0xd1000203, 0x201a0501]); // v_cndmask_b32 v3, -v1, |v2|, s[6:7]
    assert_eq!(bench.wave.row(3)[3..5], [0x8000_0001, f(2.0)]);
}

#[test]
fn clamping() {
    check2(&[0xd1348003, 0x00020501], "v_add_u32 v3, v1, v2 clamp", &[(u32::MAX, 2, u32::MAX), (1, 2, 3)]);
    check2(&[0xd1278003, 0x00020501], "v_sub_u16 v3, v1, v2 clamp", &[(1, 2, 0), (5, 2, 3)]);
    check2(
        &[0xd1018103, 0x40020501],
        "v_add_f32 v3, |v1|, -v2 clamp",
        &[
            (f(-3.0), f(2.5), f(0.5)),
            (f(-3.0), f(1.0), f(1.0)),
            (f(1.0), f(3.0), f(0.0)),
            (QNAN, f(1.0), f(0.0)),
            (f(0.0), f(0.0), f(0.0)),
        ],
    );
}

#[test]
fn scalars_and_constants_as_sources() {
    let mut bench = Bench::default();
    bench.wave.sgpr[5] = 100;
    bench.fill(2, |lane| lane as u32);
    bench.run(&[0x68060405]); // v_add_u32 v3, s5, v2
    assert_eq!(bench.wave.row(3)[63], 163);
    check2(&[0x680604c0], "v_add_u32 v3, 64, v2", &[(0, 1, 65)]);
    check2(&[0x680604d0], "v_add_u32 v3, -16, v2", &[(0, 1, -15i32 as u32)]);
    check2(&[0x0a0604f8], "v_mul_f32 v3, 0.15915494, v2", &[(0, f(1.0), 0x3e22_f983)]);
    check2(&[0x020604ff, 0x40490fdb], "v_add_f32 v3, 0x40490fdb, v2", &[(0, f(0.0), 0x4049_0fdb)]);
    check2(&[0x440604f0], "v_mul_f16 v3, 0.5, v2", &[(0, 0x4000, 0x3c00)]);
}

#[test]
fn denormals_go_where_the_mode_says_so() {
    let mut bench = Bench::default();
    bench.fill(1, |_| 3);
    bench.fill(2, |_| f(-0.0));
    bench.wave.mode.0 &= !0x30; // neither operands nor results of f32
    bench.run(&[0x02060501]); // v_add_f32 v3, v1, v2
    assert_eq!(bench.wave.row(3)[0], 0);
    bench.wave.mode.0 |= 0x10; // operands stay, results do not
    bench.fill(2, |_| f(2f32.powi(-126)));
    bench.fill(1, |_| 0x8000_0001);
    bench.run(&[0x02060501]); // v_add_f32 v3, v1, v2
    assert_eq!(bench.wave.row(3)[0], 0);
    bench.wave.mode.0 |= 0x20;
    bench.run(&[0x02060501]); // v_add_f32 v3, v1, v2
    assert_eq!(bench.wave.row(3)[0], 0x007f_ffff);
}

#[test]
fn any_three_register_case_runs_under_any_mask() {
    // The helper itself: a wrong expectation must not pass.
    let wrong = std::panic::catch_unwind(|| check(&[0x68060501], "v_add_u32 v3, v1, v2", &[(1, 2, 0, 4)]));
    assert!(wrong.is_err());
}
