//! Tests of instructions in which the gfx90a differs from the gfx942.

use crate::bench::{Bench, Random, f};
use hipr_isa::Arch;
use hipr_isa::aperture::PRIVATE_BUFFER;
use hipr_isa::fault::Cause;

fn bench() -> Bench {
    Bench { arch: Arch::Gfx90a, ..Bench::default() }
}

/// Runs an instruction on v1, v2, v4 and the old v3, and returns the new v3.
fn result(words: &[u32], [a, b, c, old]: [u32; 4]) -> u32 {
    let mut bench = bench();
    for (register, value) in [(1, a), (2, b), (4, c), (3, old)] {
        bench.fill(register, |_| value);
    }
    bench.run(words);
    bench.wave.row(3)[40]
}

#[test]
fn unfused_multiply_add_rounds_twice_and_knows_no_denormals() {
    const MAD: [u32; 2] = [0xd1c1_0003, 0x0412_0501];
    let (a, b) = (f(1.0 + f32::EPSILON), f(1.0 - f32::EPSILON / 2.0));
    // The product is 1 + 2^-24 - 2^-47, rounded 1; fused, the sum would be 2^-24 - 2^-47.
    assert_eq!(result(&MAD, [a, b, f(-1.0), 0]), 0);
    assert_eq!(result(&MAD, [f(2.0), f(3.0), f(0.5), 0]), f(6.5));
    assert_eq!(result(&MAD, [1, f(1.0), 0, 0]), 0, "operand");
    assert_eq!(result(&MAD, [f(-1.0), 0x0080_0001, 0x0080_0000, 0]), 0x8000_0000, "result");
    assert_eq!(result(&MAD, [f(f32::INFINITY), 0, 0, 0]) & 0x7fc0_0000, 0x7fc0_0000);
    // v_mac_f32, v_madmk_f32, v_madak_f32
    assert_eq!(result(&[0x2c06_0501], [f(2.0), f(3.0), 0, f(1.0)]), f(7.0));
    assert_eq!(result(&[0x2e06_0501, 0x4000_0000], [f(5.0), f(3.0), 0, 0]), f(13.0));
    assert_eq!(result(&[0x3006_0501, 0x4000_0000], [f(5.0), f(3.0), 0, 0]), f(17.0));
    // v_mad_legacy_f32: 0 times anything is 0.
    const LEGACY: [u32; 2] = [0xd1c0_0003, 0x0412_0501];
    assert_eq!(result(&LEGACY, [0, f(f32::INFINITY), f(2.0), 0]), f(2.0));
    assert_eq!(result(&LEGACY, [f(f32::NAN), 0x8000_0000, f(2.0), 0]), f(2.0));
    assert_eq!(result(&LEGACY, [f(3.0), f(4.0), f(2.0), 0]), f(14.0));
}

#[test]
fn what_the_gfx942_has_more_is_no_instruction() {
    // v_mov_b64, v_lshl_add_u64, v_mfma_f32_16x16x32_fp8_fp8, v_mfma_f32_16x16x8_xf32
    let words: [(&[u32], &str); 4] = [
        (&[0x7e10_7104], "v_mov_b64"),
        (&[0xd208_0008, 0x0418_0306], "v_lshl_add_u64"),
        (&[0xd3f3_000a, 0x042a_0902], "v_mfma_f32_16x16x32_fp8_fp8"),
        (&[0xd3be_000a, 0x042a_0902], "v_mfma_f32_16x16x8_xf32"),
    ];
    for (words, name) in words {
        let Err(fault) = bench().try_run(words) else { panic!("{name} ran") };
        assert!(
            matches!(fault.cause, Cause::Unknown { mnemonic: Some(found), .. } if found == name),
            "{fault}"
        );
    }
}

/// A scratch instruction has an address register or a scalar one, never both.
#[test]
fn scratch_has_one_address() {
    let mut bench = bench();
    bench.fill(1, |lane| lane as u32 % 4 * 4);
    bench.fill(2, |lane| lane as u32 + 100);
    bench.wave.sgpr[2] = 32;
    // scratch_store_dword v1, v2, off; scratch_store_dword off, v2, s2 offset:8
    bench.run(&[0xdc70_4000, 0x007f_0201, 0xdc70_4008, 0x0002_0200]);
    // scratch_load_dword v3, v1, off offset:4; v1 means nothing to: scratch_load_dword v5, off, s2 offset:4
    bench.run(&[0xdc50_4004, 0x037f_0001, 0xdc50_4004, 0x0502_0000]);
    for lane in 0..64 {
        let own = lane as u32 + 100;
        assert_eq!(bench.scratch.load_u32(lane, lane as u32 % 4 * 4), Some(own), "lane {lane}");
        assert_eq!(bench.scratch.load_u32(lane, 40), Some(own), "lane {lane}");
        assert_eq!(bench.wave.row(3)[lane], 0, "lane {lane}");
        assert_eq!(bench.wave.row(5)[lane], 0, "lane {lane}");
    }
}

/// Scratch can also be accessed as a buffer, whose scalar offset counts the bytes of all lanes.
#[test]
fn scratch_is_a_buffer() {
    let mut bench = bench();
    bench.wave.set_pair(0, PRIVATE_BUFFER | 1 << 63);
    bench.wave.set_pair(2, 1 << 14 | 0x00e8_0000u64 << 32);
    bench.wave.sgpr[32] = 16 * 64;
    bench.fill(1, |lane| 20 + lane as u32 % 3 * 4);
    bench.fill(2, |lane| lane as u32 * 0x0101_0101);
    // buffer_store_dword v2, off, s[0:3], s32 offset:4; buffer_store_byte v2, v1, s[0:3], 0 offen offset:1
    bench.run(&[0xe070_0004, 0x2000_0200]);
    // buffer_load_dword v3, v1, s[0:3], 0 offen
    bench.run(&[0xe050_1000, 0x8000_0301]);
    for lane in 0..64 {
        let own = lane as u32 * 0x0101_0101;
        assert_eq!(bench.scratch.load_u32(lane, 20), Some(own), "lane {lane}");
        assert_eq!(bench.wave.row(3)[lane], if lane % 3 == 0 { own } else { 0 }, "lane {lane}");
    }
    bench.fill(2, |_| 0xff);
    bench.run(&[0xe060_1001, 0x8000_0201]);
    assert_eq!(bench.scratch.load_u32(2, 28), Some(0xff00));
    // buffer_load_dword v3, off, s[0:3], s32 offset:4
    bench.run(&[0xe050_0004, 0x2000_0300]);
    assert_eq!(bench.wave.row(3)[33], 0x2121_ff21);
    bench.fill(1, |_| 256);
    let Err(fault) = bench.try_run(&[0xe050_1000, 0x8000_0301]) else { panic!("beyond the end of scratch") };
    assert!(matches!(fault.cause, Cause::IllegalAddress { lane: Some(0), write: false, .. }), "{fault}");
}

/// Checks D = A * B + C on small integers, for instructions whose shapes only the gfx90a has.
fn check_matrix(words: [u32; 2], text: &str, [m, k, blocks]: [usize; 3], bits: usize, is_float: bool) {
    let mut random = Random::new(11);
    let mut bench = bench();
    let each = k * m * blocks / 64;
    let per_word = 32 / bits;
    let mut operand = |first: usize| -> Vec<Vec<i32>> {
        let values: Vec<Vec<i32>> =
            (0..64).map(|_| (0..each).map(|_| (random.u32() % 9) as i32 - 4).collect()).collect();
        for word in 0..each / per_word {
            bench.fill(first + word, |lane| {
                (0..per_word).fold(0, |bits_of_word, index| {
                    let value = values[lane][word * per_word + index];
                    let raw = if is_float { (value as f32).to_bits() >> 16 } else { value as u8 as u32 };
                    bits_of_word | raw << (index * bits)
                })
            });
        }
        values
    };
    let (a, b) = (operand(2), operand(4));
    let results = m * m * blocks / 64;
    (0..results).for_each(|register| bench.fill(10 + register, |_| 0));
    bench.run(&words);
    for block in 0..blocks {
        for i in 0..m {
            for j in 0..m {
                let at = |l: usize| l / each * m * blocks + block * m;
                let sum: i32 = (0..k).map(|l| a[at(l) + i][l % each] * b[at(l) + j][l % each]).sum();
                let groups = 64 / m;
                let (register, lane) = match m {
                    4 => (i, block * m + j),
                    _ => (block * m * m / 64 + i / (4 * groups) * 4 + i % 4, i / 4 % groups * m + j),
                };
                let expected = if is_float { (sum as f32).to_bits() } else { sum as u32 };
                let got = bench.wave.row(10 + register)[lane];
                assert_eq!(got, expected, "{text}: block {block}, row {i}, column {j}");
            }
        }
    }
}

#[test]
fn matrices_of_its_own() {
    // A in v2 or v[2:3], B in v4 or v[4:5], C is 0, D from v10 on.
    let source = 0x0202_0902;
    let float = |op: u32, text, shape| check_matrix([0xd380_000a | op << 16, source], text, shape, 16, true);
    float(0x68, "v_mfma_f32_32x32x2bf16", [32, 2, 2]);
    float(0x69, "v_mfma_f32_16x16x2bf16", [16, 2, 4]);
    float(0x6b, "v_mfma_f32_4x4x2bf16", [4, 2, 16]);
    float(0x6c, "v_mfma_f32_32x32x4bf16", [32, 4, 1]);
    float(0x6d, "v_mfma_f32_16x16x8bf16", [16, 8, 1]);
    float(0x63, "v_mfma_f32_32x32x4bf16_1k", [32, 4, 2]);
    float(0x64, "v_mfma_f32_16x16x4bf16_1k", [16, 4, 4]);
    float(0x65, "v_mfma_f32_4x4x4bf16_1k", [4, 4, 16]);
    float(0x66, "v_mfma_f32_32x32x8bf16_1k", [32, 8, 1]);
    float(0x67, "v_mfma_f32_16x16x16bf16_1k", [16, 16, 1]);
    check_matrix([0xd3d4_000a, source], "v_mfma_i32_32x32x8i8", [32, 8, 1], 8, false);
    check_matrix([0xd3d5_000a, source], "v_mfma_i32_16x16x16i8", [16, 16, 1], 8, false);
}

#[test]
fn cache_instructions_do_nothing_here() {
    // buffer_wbinvl1, buffer_wbinvl1_vol
    bench().run(&[0xe0f8_0000, 0, 0xe0fc_0000, 0]);
}
