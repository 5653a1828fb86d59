//! Tests of arithmetic in all four rounding directions, and with denormals replaced by zeros.
//!
//! Expected values were computed with rational numbers.

use crate::bench::{Bench, f};
use hipr_isa::wave::Mode;

/// An instruction's words and text, its operands, and its results to nearest even, upward, downward and toward zero.
type Case<T> = (&'static [u32], &'static str, [T; 3], [T; 4]);

/// Instructions from v1, v2, v4 to v3 that are rounded by the field of MODE for f32.
#[rustfmt::skip]
const SINGLE: &[Case<u32>] = &[
    (&[0x02060501], "v_add_f32 v3, v1, v2", [0x3f8ccccd, 0xc02ccccd, 0x3089705f], [0xbfcccccd, 0xbfcccccd, 0xbfcccccd, 0xbfcccccd]),
    (&[0x0a060501], "v_mul_f32 v3, v1, v2", [0x3f8ccccd, 0xc02ccccd, 0x3089705f], [0xc03e147b, 0xc03e147b, 0xc03e147c, 0xc03e147b]),
    (&[0xd1cb_0003, 0x0412_0501], "v_fma_f32 v3, v1, v2, v4", [0x3f8ccccd, 0xc02ccccd, 0x3089705f], [0xc03e147b, 0xc03e147b, 0xc03e147c, 0xc03e147b]),
    (&[0xd3a0_0003, 0x0412_0501], "v_fma_mix_f32 v3, v1, v2, v4", [0x3f8ccccd, 0xc02ccccd, 0x3089705f], [0xc03e147b, 0xc03e147b, 0xc03e147c, 0xc03e147b]),
    (&[0x02060501], "v_add_f32 v3, v1, v2", [0x7f7fc99e, 0x7f5a2bf8, 0x3fc00000], [0x7f800000, 0x7f800000, 0x7f7fffff, 0x7f7fffff]),
    (&[0x0a060501], "v_mul_f32 v3, v1, v2", [0x7f7fc99e, 0x7f5a2bf8, 0x3fc00000], [0x7f800000, 0x7f800000, 0x7f7fffff, 0x7f7fffff]),
    (&[0xd1cb_0003, 0x0412_0501], "v_fma_f32 v3, v1, v2, v4", [0x7f7fc99e, 0x7f5a2bf8, 0x3fc00000], [0x7f800000, 0x7f800000, 0x7f7fffff, 0x7f7fffff]),
    (&[0xd3a0_0003, 0x0412_0501], "v_fma_mix_f32 v3, v1, v2, v4", [0x7f7fc99e, 0x7f5a2bf8, 0x3fc00000], [0x7f800000, 0x7f800000, 0x7f7fffff, 0x7f7fffff]),
    (&[0x02060501], "v_add_f32 v3, v1, v2", [0x9e8dabc6, 0x1ed481a9, 0x0], [0x1e0dabc6, 0x1e0dabc6, 0x1e0dabc6, 0x1e0dabc6]),
    (&[0x0a060501], "v_mul_f32 v3, v1, v2", [0x9e8dabc6, 0x1ed481a9, 0x0], [0x8003acd0, 0x8003acd0, 0x8003acd1, 0x8003acd0]),
    (&[0xd1cb_0003, 0x0412_0501], "v_fma_f32 v3, v1, v2, v4", [0x9e8dabc6, 0x1ed481a9, 0x0], [0x8003acd0, 0x8003acd0, 0x8003acd1, 0x8003acd0]),
    (&[0xd3a0_0003, 0x0412_0501], "v_fma_mix_f32 v3, v1, v2, v4", [0x9e8dabc6, 0x1ed481a9, 0x0], [0x8003acd0, 0x8003acd0, 0x8003acd1, 0x8003acd0]),
    (&[0x02060501], "v_add_f32 v3, v1, v2", [0x4aaaaaab, 0x3eaaaaab, 0xc0a00000], [0x4aaaaaac, 0x4aaaaaac, 0x4aaaaaab, 0x4aaaaaab]),
    (&[0x0a060501], "v_mul_f32 v3, v1, v2", [0x4aaaaaab, 0x3eaaaaab, 0xc0a00000], [0x49e38e3a, 0x49e38e3a, 0x49e38e39, 0x49e38e39]),
    (&[0xd1cb_0003, 0x0412_0501], "v_fma_f32 v3, v1, v2, v4", [0x4aaaaaab, 0x3eaaaaab, 0xc0a00000], [0x49e38e12, 0x49e38e12, 0x49e38e11, 0x49e38e11]),
    (&[0xd3a0_0003, 0x0412_0501], "v_fma_mix_f32 v3, v1, v2, v4", [0x4aaaaaab, 0x3eaaaaab, 0xc0a00000], [0x49e38e12, 0x49e38e12, 0x49e38e11, 0x49e38e11]),
    (&[0xd288_0003, 0x0002_0501], "v_ldexp_f32 v3, v1, v2", [0x80b91d15, 0xffffffec, 0x0], [0x8000000c, 0x8000000b, 0x8000000c, 0x8000000b]),
    (&[0x7e060d01], "v_cvt_f32_u32 v3, v1", [0xffffffff, 0x0, 0x0], [0x4f800000, 0x4f800000, 0x4f7fffff, 0x4f7fffff]),
    (&[0x7e060d01], "v_cvt_f32_u32 v3, v1", [0x1000001, 0x0, 0x0], [0x4b800000, 0x4b800001, 0x4b800000, 0x4b800000]),
    (&[0x7e060d01], "v_cvt_f32_u32 v3, v1", [0xb2d05e01, 0x0, 0x0], [0x4f32d05e, 0x4f32d05f, 0x4f32d05e, 0x4f32d05e]),
    (&[0x7e060b01], "v_cvt_f32_i32 v3, v1", [0xfeffffff, 0x0, 0x0], [0xcb800000, 0xcb800000, 0xcb800001, 0xcb800000]),
    (&[0x7e060b01], "v_cvt_f32_i32 v3, v1", [0x80000001, 0x0, 0x0], [0xcf000000, 0xceffffff, 0xcf000000, 0xceffffff]),
    (&[0x7e060b01], "v_cvt_f32_i32 v3, v1", [0x2000003, 0x0, 0x0], [0x4c000001, 0x4c000001, 0x4c000000, 0x4c000000]),
];

/// Instructions from v1, v2, v4 to v3 that are rounded by the field of MODE for f16 and f64.
#[rustfmt::skip]
const HALF: &[Case<u32>] = &[
    (&[0x7e061501], "v_cvt_f16_f32 v3, v1", [0x3f8009d5, 0x0, 0x0], [0x3c00, 0x3c01, 0x3c00, 0x3c00]),
    (&[0x7e061501], "v_cvt_f16_f32 v3, v1", [0xbf8009d5, 0x0, 0x0], [0xbc00, 0xbc00, 0xbc01, 0xbc00]),
    (&[0x7e061501], "v_cvt_f16_f32 v3, v1", [0x477fef00, 0x0, 0x0], [0x7bff, 0x7c00, 0x7bff, 0x7bff]),
    (&[0x7e061501], "v_cvt_f16_f32 v3, v1", [0xb3d6bf95, 0x0, 0x0], [0x8002, 0x8001, 0x8002, 0x8001]),
    (&[0x7e061501], "v_cvt_f16_f32 v3, v1", [0x3089705f, 0x0, 0x0], [0x0, 0x1, 0x0, 0x0]),
    (&[0x3e060501], "v_add_f16 v3, v1, v2", [0x3c66, 0xc166, 0x135f], [0xbe66, 0xbe66, 0xbe66, 0xbe66]),
    (&[0x44060501], "v_mul_f16 v3, v1, v2", [0x3c66, 0xc166, 0x135f], [0xc1f0, 0xc1ef, 0xc1f0, 0xc1ef]),
    (&[0xd206_0003, 0x0412_0501], "v_fma_f16 v3, v1, v2, v4", [0x3c66, 0xc166, 0x135f], [0xc1ef, 0xc1ef, 0xc1f0, 0xc1ef]),
    (&[0xd38f_4003, 0x1802_0501], "v_pk_add_f16 v3, v1, v2", [0x3c663c66, 0xc166c166, 0x135f135f], [0xbe66be66, 0xbe66be66, 0xbe66be66, 0xbe66be66]),
    (&[0xd38e_4003, 0x1c12_0501], "v_pk_fma_f16 v3, v1, v2, v4", [0x3c663c66, 0xc166c166, 0x135f135f], [0xc1efc1ef, 0xc1efc1ef, 0xc1f0c1f0, 0xc1efc1ef]),
    (&[0x3e060501], "v_add_f16 v3, v1, v2", [0x7b53, 0x7a1a, 0xc200], [0x7c00, 0x7c00, 0x7bff, 0x7bff]),
    (&[0x44060501], "v_mul_f16 v3, v1, v2", [0x7b53, 0x7a1a, 0xc200], [0x7c00, 0x7c00, 0x7bff, 0x7bff]),
    (&[0xd206_0003, 0x0412_0501], "v_fma_f16 v3, v1, v2, v4", [0x7b53, 0x7a1a, 0xc200], [0x7c00, 0x7c00, 0x7bff, 0x7bff]),
    (&[0xd38f_4003, 0x1802_0501], "v_pk_add_f16 v3, v1, v2", [0x7b537b53, 0x7a1a7a1a, 0xc200c200], [0x7c007c00, 0x7c007c00, 0x7bff7bff, 0x7bff7bff]),
    (&[0xd38e_4003, 0x1c12_0501], "v_pk_fma_f16 v3, v1, v2, v4", [0x7b537b53, 0x7a1a7a1a, 0xc200c200], [0x7c007c00, 0x7c007c00, 0x7bff7bff, 0x7bff7bff]),
    (&[0x3e060501], "v_add_f16 v3, v1, v2", [0x8cea, 0xa8e, 0x0], [0x868c, 0x868c, 0x868c, 0x868c]),
    (&[0x44060501], "v_mul_f16 v3, v1, v2", [0x8cea, 0xa8e, 0x0], [0x8001, 0x8001, 0x8002, 0x8001]),
    (&[0xd206_0003, 0x0412_0501], "v_fma_f16 v3, v1, v2, v4", [0x8cea, 0xa8e, 0x0], [0x8001, 0x8001, 0x8002, 0x8001]),
    (&[0xd38f_4003, 0x1802_0501], "v_pk_add_f16 v3, v1, v2", [0x8cea8cea, 0xa8e0a8e, 0x0], [0x868c868c, 0x868c868c, 0x868c868c, 0x868c868c]),
    (&[0xd38e_4003, 0x1c12_0501], "v_pk_fma_f16 v3, v1, v2, v4", [0x8cea8cea, 0xa8e0a8e, 0x0], [0x80018001, 0x80018001, 0x80028002, 0x80018001]),
];

/// Instructions from v[4:5], v[6:7], v[10:11] to v[8:9] that are rounded by the field of MODE for f32.
#[rustfmt::skip]
const PAIR: &[Case<u64>] = &[
    (&[0xd3b2_4008, 0x1802_0d04], "v_pk_add_f32 v[8:9], v[4:5], v[6:7]", [0x3f8ccccd3f8ccccd, 0xc02ccccdc02ccccd, 0x3089705f3089705f], [0xbfcccccdbfcccccd, 0xbfcccccdbfcccccd, 0xbfcccccdbfcccccd, 0xbfcccccdbfcccccd]),
    (&[0xd3b0_4008, 0x1c2a_0d04], "v_pk_fma_f32 v[8:9], v[4:5], v[6:7], v[10:11]", [0x3f8ccccd3f8ccccd, 0xc02ccccdc02ccccd, 0x3089705f3089705f], [0xc03e147bc03e147b, 0xc03e147bc03e147b, 0xc03e147cc03e147c, 0xc03e147bc03e147b]),
    (&[0xd3b2_4008, 0x1802_0d04], "v_pk_add_f32 v[8:9], v[4:5], v[6:7]", [0x9e8dabc69e8dabc6, 0x1ed481a91ed481a9, 0x0], [0x1e0dabc61e0dabc6, 0x1e0dabc61e0dabc6, 0x1e0dabc61e0dabc6, 0x1e0dabc61e0dabc6]),
    (&[0xd3b0_4008, 0x1c2a_0d04], "v_pk_fma_f32 v[8:9], v[4:5], v[6:7], v[10:11]", [0x9e8dabc69e8dabc6, 0x1ed481a91ed481a9, 0x0], [0x8003acd08003acd0, 0x8003acd08003acd0, 0x8003acd18003acd1, 0x8003acd08003acd0]),
];

/// Instructions from v[4:5], v[6:7], v[10:11] to v[8:9] that are rounded by the field of MODE for f16 and f64.
#[rustfmt::skip]
const DOUBLE: &[Case<u64>] = &[
    (&[0xd280_0008, 0x0002_0d04], "v_add_f64 v[8:9], v[4:5], v[6:7]", [0x3ff199999999999a, 0xc00599999999999a, 0x39b4484bfeebc2a0], [0xbff999999999999a, 0xbff999999999999a, 0xbff999999999999a, 0xbff999999999999a]),
    (&[0xd281_0008, 0x0002_0d04], "v_mul_f64 v[8:9], v[4:5], v[6:7]", [0x3ff199999999999a, 0xc00599999999999a, 0x39b4484bfeebc2a0], [0xc007c28f5c28f5c4, 0xc007c28f5c28f5c3, 0xc007c28f5c28f5c4, 0xc007c28f5c28f5c3]),
    (&[0xd1cc_0008, 0x042a_0d04], "v_fma_f64 v[8:9], v[4:5], v[6:7], v[10:11]", [0x3ff199999999999a, 0xc00599999999999a, 0x39b4484bfeebc2a0], [0xc007c28f5c28f5c4, 0xc007c28f5c28f5c3, 0xc007c28f5c28f5c4, 0xc007c28f5c28f5c3]),
    (&[0xd280_0008, 0x0002_0d04], "v_add_f64 v[8:9], v[4:5], v[6:7]", [0x7fee42d130773b76, 0x7fe55c576d815726, 0xbff0000000000000], [0x7ff0000000000000, 0x7ff0000000000000, 0x7fefffffffffffff, 0x7fefffffffffffff]),
    (&[0xd281_0008, 0x0002_0d04], "v_mul_f64 v[8:9], v[4:5], v[6:7]", [0x7fee42d130773b76, 0x7fe55c576d815726, 0xbff0000000000000], [0x7ff0000000000000, 0x7ff0000000000000, 0x7fefffffffffffff, 0x7fefffffffffffff]),
    (&[0xd1cc_0008, 0x042a_0d04], "v_fma_f64 v[8:9], v[4:5], v[6:7], v[10:11]", [0x7fee42d130773b76, 0x7fe55c576d815726, 0xbff0000000000000], [0x7ff0000000000000, 0x7ff0000000000000, 0x7fefffffffffffff, 0x7fefffffffffffff]),
    (&[0xd280_0008, 0x0002_0d04], "v_add_f64 v[8:9], v[4:5], v[6:7]", [0x96825eed8ffb39c1, 0x2714a8729fc3ddb7, 0x1], [0x2714a8729fc3ddb7, 0x2714a8729fc3ddb7, 0x2714a8729fc3ddb6, 0x2714a8729fc3ddb6]),
    (&[0xd281_0008, 0x0002_0d04], "v_mul_f64 v[8:9], v[4:5], v[6:7]", [0x96825eed8ffb39c1, 0x2714a8729fc3ddb7, 0x1], [0x8000000000002f70, 0x8000000000002f70, 0x8000000000002f71, 0x8000000000002f70]),
    (&[0xd1cc_0008, 0x042a_0d04], "v_fma_f64 v[8:9], v[4:5], v[6:7], v[10:11]", [0x96825eed8ffb39c1, 0x2714a8729fc3ddb7, 0x1], [0x8000000000002f6f, 0x8000000000002f6f, 0x8000000000002f70, 0x8000000000002f6f]),
    (&[0xd280_0008, 0x0002_0d04], "v_add_f64 v[8:9], v[4:5], v[6:7]", [0x3fd5555555555555, 0x4008000000000000, 0xbff0000000000000], [0x400aaaaaaaaaaaab, 0x400aaaaaaaaaaaab, 0x400aaaaaaaaaaaaa, 0x400aaaaaaaaaaaaa]),
    (&[0xd281_0008, 0x0002_0d04], "v_mul_f64 v[8:9], v[4:5], v[6:7]", [0x3fd5555555555555, 0x4008000000000000, 0xbff0000000000000], [0x3ff0000000000000, 0x3ff0000000000000, 0x3fefffffffffffff, 0x3fefffffffffffff]),
    (&[0xd1cc_0008, 0x042a_0d04], "v_fma_f64 v[8:9], v[4:5], v[6:7], v[10:11]", [0x3fd5555555555555, 0x4008000000000000, 0xbff0000000000000], [0xbc90000000000000, 0xbc90000000000000, 0xbc90000000000000, 0xbc90000000000000]),
];

/// Instructions from v[4:5] to v3 that are rounded by the field of MODE for f32.
#[rustfmt::skip]
const NARROWING: &[Case<u64>] = &[
    (&[0x7e061f04], "v_cvt_f32_f64 v3, v[4:5]", [0x3ff00000080d9595, 0x0, 0x0], [0x3f800000, 0x3f800001, 0x3f800000, 0x3f800000]),
    (&[0x7e061f04], "v_cvt_f32_f64 v3, v[4:5]", [0xbff00000080d9595, 0x0, 0x0], [0xbf800000, 0xbf800000, 0xbf800001, 0xbf800000]),
    (&[0x7e061f04], "v_cvt_f32_f64 v3, v[4:5]", [0x47effffff0000000, 0x0, 0x0], [0x7f800000, 0x7f800000, 0x7f7fffff, 0x7f7fffff]),
    (&[0x7e061f04], "v_cvt_f32_f64 v3, v[4:5]", [0x366244ce242c5561, 0x0, 0x0], [0x0, 0x1, 0x0, 0x0]),
];

const PLAIN: u32 = Mode::DEFAULT.0;

/// Returns modes with `direction` in the field at `shift` and any direction in the other one.
fn modes(direction: usize, shift: u32) -> impl Iterator<Item = Mode> {
    (0..4).map(move |other| Mode(PLAIN | (direction as u32) << shift | other << (2 - shift)))
}

fn check_narrow(cases: &[Case<u32>], shift: u32) {
    for (words, text, [a, b, c], results) in cases {
        for (direction, expected) in results.iter().enumerate() {
            for mode in modes(direction, shift) {
                let mut bench = Bench::default();
                bench.wave.mode = mode;
                for (register, value) in [(1, *a), (2, *b), (4, *c)] {
                    bench.fill(register, |_| value);
                }
                bench.run(words);
                let got = bench.wave.row(3)[17];
                assert_eq!(
                    got, *expected,
                    "{text}: {a:#x}, {b:#x}, {c:#x}, {mode:x?}: {got:#x}, not {expected:#x}"
                );
            }
        }
    }
}

fn wide(words: &[u32], [a, b, c]: [u64; 3], mode: Mode) -> Bench {
    let mut bench = Bench::default();
    bench.wave.mode = mode;
    for (register, value) in [(4, a), (6, b), (10, c)] {
        bench.fill64(register, |_| value);
    }
    bench.run(words);
    bench
}

fn check_wide(cases: &[Case<u64>], shift: u32, result: impl Fn(&Bench) -> u64) {
    for (words, text, operands, results) in cases {
        for (direction, expected) in results.iter().enumerate() {
            for mode in modes(direction, shift) {
                let got = result(&wide(words, *operands, mode));
                assert_eq!(got, *expected, "{text}: {operands:x?}, {mode:x?}: {got:#x}, not {expected:#x}");
            }
        }
    }
}

#[test]
fn results_of_f32_are_rounded_as_mode_says() {
    check_narrow(SINGLE, 0);
    check_wide(PAIR, 0, |bench| bench.row64(8)[17]);
    check_wide(NARROWING, 0, |bench| bench.wave.row(3)[17].into());
}

#[test]
fn results_of_f16_and_f64_are_rounded_as_mode_says() {
    check_narrow(HALF, 2);
    check_wide(DOUBLE, 2, |bench| bench.row64(8)[17]);
}

/// An infinite, NaN or zero operand gives the same result in every rounding direction.
#[test]
fn what_is_no_number_is_not_rounded() {
    for (a, b, sum) in [
        (f(f32::INFINITY), f(1.0), f(f32::INFINITY)),
        (f(f32::INFINITY), f(f32::NEG_INFINITY), 0xffc0_0000),
        (0x7f80_0001, f(1.0), 0x7fc0_0001),
        (f(-0.0), f(-0.0), f(-0.0)),
        (f(1.5), f(-1.5), f(-0.0)),
        (f(0.0), f(-0.0), f(-0.0)),
    ] {
        let mut bench = Bench::default();
        bench.wave.mode = Mode(PLAIN | 2);
        bench.fill(1, |_| a);
        bench.fill(2, |_| b);
        bench.run(&[0x02060501]);
        let got = bench.wave.row(3)[0];
        let same = got == sum || (f32::from_bits(got).is_nan() && sum == 0xffc0_0000);
        assert!(same, "v_add_f32 of {a:#x} and {b:#x}, downward: {got:#x}, not {sum:#x}");
    }
}

#[test]
fn inactive_lanes_stay_as_they_are() {
    let mut bench = Bench::default();
    bench.wave.mode = Mode(PLAIN | 0xf);
    bench.wave.set_exec(1);
    bench.fill(3, |_| 77);
    bench.run(&[0x02060501]);
    assert_eq!(bench.wave.row(3)[1], 77);
    assert_eq!(bench.wave.row(3)[0], 0);
}

/// MODE decides separately for f32 and for f16 and f64 whether denormals, in operands and in results, become zeros.
#[test]
fn denormals_are_zeros_where_mode_says_so() {
    const KEEP_32: [u32; 2] = [0x10, 0x20];
    const KEEP_16_64: [u32; 2] = [0x40, 0x80];
    let narrow = |words: &[u32], operands: [u32; 2], mode: u32| {
        let mut bench = Bench::default();
        bench.wave.mode = Mode(mode);
        bench.fill(1, |_| operands[0]);
        bench.fill(2, |_| operands[1]);
        bench.fill(4, |_| 0);
        bench.run(words);
        bench.wave.row(3)[5]
    };
    let double = |operands: [u64; 2], mode: u32| {
        wide(&[0xd280_0008, 0x0002_0d04], [operands[0], operands[1], 0], Mode(mode)).row64(8)[5]
    };
    for rounding in [0, 0xf] {
        let mode = |bits: &[u32]| rounding | bits.iter().sum::<u32>();
        // v_add_f32: a denormal operand, a denormal result.
        let add = |operands, bits: &[u32]| narrow(&[0x02060501], operands, mode(bits));
        assert_eq!(add([0x8000_0003, 0], &KEEP_32), 0x8000_0003);
        assert_eq!(add([0x8000_0003, 0x8000_0000], &KEEP_32[1..]), 0x8000_0000, "operand");
        assert_eq!(add([0x0080_0001, 0x8080_0000], &KEEP_32[..1]), 0, "result");
        assert_eq!(add([0x8080_0001, 0x0080_0000], &KEEP_32[..1]), 0x8000_0000, "result, with its sign");
        assert_eq!(add([0x0080_0001, 0x8080_0000], &KEEP_16_64), 0, "the other field is for others");
        // v_pk_add_f16 and v_fma_mix_f32 look at their operands, too.
        let pk_add = |operands, bits: &[u32]| narrow(&[0xd38f_4003, 0x1802_0501], operands, mode(bits));
        assert_eq!(pk_add([0x0003_8005, 0], &KEEP_16_64), 0x0003_8005);
        assert_eq!(pk_add([0x0003_8005, 0x0000_8000], &KEEP_16_64[1..]), 0x0000_8000, "operand");
        assert_eq!(pk_add([0x0401_8401, 0x8400_0400], &KEEP_16_64[..1]), 0x0000_8000, "result");
        let mix = |operands, bits: &[u32]| narrow(&[0xd3a0_0003, 0x0412_0501], operands, mode(bits));
        assert_eq!(mix([0x0000_0010, f(2.0)], &KEEP_32), 0x20);
        assert_eq!(mix([0x0000_0010, f(2.0)], &KEEP_32[1..]), 0, "operand");
        // v_pk_add_f32 in its low half, v_add_f64.
        let pair = |operand: u64, bits: &[u32]| {
            wide(&[0xd3b2_4008, 0x1802_0d04], [operand, 0, 0], Mode(mode(bits))).row64(8)[5]
        };
        assert_eq!(pair(0x3f80_0000_0000_0007, &KEEP_32), 0x3f80_0000_0000_0007);
        assert_eq!(pair(0x3f80_0000_0000_0007, &KEEP_32[1..]), 0x3f80_0000_0000_0000);
        assert_eq!(double([7, 0], mode(&KEEP_16_64)), 7);
        assert_eq!(double([7, 0], mode(&KEEP_16_64[1..])), 0);
        assert_eq!(double([0x10_0000_0000_0001, 0x8010_0000_0000_0000], mode(&KEEP_16_64[..1])), 0);
    }
}
