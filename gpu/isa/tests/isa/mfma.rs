//! Tests of matrix instructions against plain matrix multiplication, with AMD's published layouts written out.

use crate::bench::{Bench, Random};

/// A matrix instruction's shape and types. Elements of A and B are small integers, so that every order of summation gives the
/// same.
struct Shape {
    text: &'static str,
    words: [u32; 2],
    /// M (and N), K, number of blocks.
    size: [usize; 3],
    /// Size of an element of A and B in bits, and the conversion of a small integer to such an element.
    element: (usize, fn(i32) -> u64),
    /// Size of an element of C and D in bits (32 or 64), and the conversion of an integer to such an element.
    sum: (usize, fn(i32) -> u64),
}

fn f32_bits(x: i32) -> u64 {
    u64::from((x as f32).to_bits())
}
fn f16_bits(x: i32) -> u64 {
    u64::from(half::f16::from_f32(x as f32).to_bits())
}
fn bf16_bits(x: i32) -> u64 {
    u64::from((x as f32).to_bits() >> 16)
}
fn f64_bits(x: i32) -> u64 {
    f64::from(x).to_bits()
}
fn i8_bits(x: i32) -> u64 {
    u64::from(x as u8)
}
fn i32_bits(x: i32) -> u64 {
    u64::from(x as u32)
}
/// Returns an integer from -4 to 4 as E4M3 with bias 8.
fn fp8_bits(x: i32) -> u64 {
    [0, 0x40, 0x48, 0x4c, 0x50][x.unsigned_abs() as usize] | if x < 0 { 0x80 } else { 0 }
}
/// Returns an integer from -4 to 4 as E5M2 with bias 16.
fn bf8_bits(x: i32) -> u64 {
    [0, 0x40, 0x44, 0x46, 0x48][x.unsigned_abs() as usize] | if x < 0 { 0x80 } else { 0 }
}

const A: usize = 0; // v0…
const B: usize = 8; // v8…
const D: usize = 64; // a0…, C too

macro_rules! shapes {
    ($($text:literal, [$w0:literal, $w1:literal], [$m:literal, $k:literal, $b:literal], ($bits:literal, $element:ident), ($sum_bits:literal, $sum:ident);)*) => {
        [$(Shape { text: $text, words: [$w0, $w1], size: [$m, $k, $b], element: ($bits, $element), sum: ($sum_bits, $sum) }),*]
    };
}

/// Returns the register (counted from the operand's first) and the lane of an element of D.
fn position_of_sum(m: usize, blocks: usize, wide: bool, block: usize, i: usize, j: usize) -> (usize, usize) {
    match (m, wide) {
        // Rows 8 r / 4 + 4 (lane / 32) + r mod 4.
        (32, false) => (block * 16 + i / 8 * 4 + i % 4, i / 4 % 2 * 32 + j),
        (16, false) => (block * 4 + i % 4, i / 4 * 16 + j),
        (4, false) => (i, block * 4 + j),
        (16, true) => (i / 4 * 2, i % 4 * 16 + j),
        (4, true) => (0, i * 16 + block * 4 + j),
        _ => panic!("no layout for {m} with {blocks} blocks"),
    }
}

fn put(bench: &mut Bench, first: usize, lane: usize, index: usize, bits: usize, value: u64) {
    let register = first + index * bits / 32;
    let shift = index * bits % 32;
    let word = &mut bench.wave.row_mut(register)[lane];
    match bits {
        64 => {
            *word = value as u32;
            bench.wave.row_mut(register + 1)[lane] = (value >> 32) as u32;
        }
        32 => *word = value as u32,
        _ => *word = *word & !(((1 << bits) - 1) << shift) | (value as u32) << shift,
    }
}

fn check(shape: &Shape) {
    let mut bench = Bench { wave: hipr_isa::wave::Wave::new(128, 64), ..Bench::default() };
    let mut random = Random::new(11);
    let mut small = || (random.u32() % 9) as i32 - 4;
    let [m, k, blocks] = shape.size;
    let wide = shape.sum.0 == 64;
    let each = k * m * blocks / 64;
    let mut expected = Vec::new();
    for block in 0..blocks {
        let a: Vec<i32> = (0..m * k).map(|_| small()).collect();
        let b: Vec<i32> = (0..m * k).map(|_| small()).collect();
        for (index, (&a, &b)) in a.iter().zip(&b).enumerate() {
            let (row, column) = (index / k, index % k);
            let lane = column / each * m * blocks + block * m + row;
            put(&mut bench, A, lane, column % each, shape.element.0, shape.element.1(a));
            put(&mut bench, B, lane, column % each, shape.element.0, shape.element.1(b));
        }
        for i in 0..m {
            for j in 0..m {
                let c = small();
                let (register, lane) = position_of_sum(m, blocks, wide, block, i, j);
                put(&mut bench, D + register, lane, 0, shape.sum.0, shape.sum.1(c));
                let sum = c + (0..k).map(|k_| a[i * k + k_] * b[j * k + k_]).sum::<i32>();
                expected.push((register, lane, i, j, shape.sum.1(sum)));
            }
        }
    }
    bench.wave.set_exec(0); // does not matter
    bench.run(&shape.words);
    for (register, lane, i, j, sum) in expected {
        let mut got = u64::from(bench.wave.row(D + register)[lane]);
        if wide {
            got |= u64::from(bench.wave.row(D + register + 1)[lane]) << 32;
        }
        assert_eq!(got, sum, "{}: row {i}, column {j}", shape.text);
    }
}

#[test]
fn layouts() {
    for shape in &SHAPES {
        check(shape);
    }
}

const SHAPES: [Shape; 27] = shapes! {
    "v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v8, a[0:31]", [0xd3c08000, 0x04021100], [32, 1, 2], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_16x16x1_4b_f32 a[0:15], v0, v8, a[0:15]", [0xd3c18000, 0x04021100], [16, 1, 4], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_4x4x1_16b_f32 a[0:3], v0, v8, a[0:3]", [0xd3c28000, 0x04021100], [4, 1, 16], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_32x32x2_f32 a[0:15], v0, v8, a[0:15]", [0xd3c48000, 0x04021100], [32, 2, 1], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_16x16x4_f32 a[0:3], v0, v8, a[0:3]", [0xd3c58000, 0x04021100], [16, 4, 1], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_16x16x8_xf32 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3be8000, 0x04021100], [16, 8, 1], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_32x32x4_xf32 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3bf8000, 0x04021100], [32, 4, 1], (32, f32_bits), (32, f32_bits);
    "v_mfma_f32_32x32x4_2b_f16 a[0:31], v[0:1], v[8:9], a[0:31]", [0xd3c88000, 0x04021100], [32, 4, 2], (16, f16_bits), (32, f32_bits);
    "v_mfma_f32_16x16x4_4b_f16 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3c98000, 0x04021100], [16, 4, 4], (16, f16_bits), (32, f32_bits);
    "v_mfma_f32_4x4x4_16b_f16 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3ca8000, 0x04021100], [4, 4, 16], (16, f16_bits), (32, f32_bits);
    "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3cc8000, 0x04021100], [32, 8, 1], (16, f16_bits), (32, f32_bits);
    "v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3cd8000, 0x04021100], [16, 16, 1], (16, f16_bits), (32, f32_bits);
    "v_mfma_f32_32x32x4_2b_bf16 a[0:31], v[0:1], v[8:9], a[0:31]", [0xd3dd8000, 0x04021100], [32, 4, 2], (16, bf16_bits), (32, f32_bits);
    "v_mfma_f32_4x4x4_16b_bf16 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3df8000, 0x04021100], [4, 4, 16], (16, bf16_bits), (32, f32_bits);
    "v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3e08000, 0x04021100], [32, 8, 1], (16, bf16_bits), (32, f32_bits);
    "v_mfma_f32_16x16x16_bf16 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3e18000, 0x04021100], [16, 16, 1], (16, bf16_bits), (32, f32_bits);
    "v_mfma_i32_32x32x4_2b_i8 a[0:31], v0, v8, a[0:31]", [0xd3d08000, 0x04021100], [32, 4, 2], (8, i8_bits), (32, i32_bits);
    "v_mfma_i32_16x16x4_4b_i8 a[0:15], v0, v8, a[0:15]", [0xd3d18000, 0x04021100], [16, 4, 4], (8, i8_bits), (32, i32_bits);
    "v_mfma_i32_4x4x4_16b_i8 a[0:3], v0, v8, a[0:3]", [0xd3d28000, 0x04021100], [4, 4, 16], (8, i8_bits), (32, i32_bits);
    "v_mfma_i32_32x32x16_i8 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3d68000, 0x04021100], [32, 16, 1], (8, i8_bits), (32, i32_bits);
    "v_mfma_i32_16x16x32_i8 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3d78000, 0x04021100], [16, 32, 1], (8, i8_bits), (32, i32_bits);
    "v_mfma_f64_16x16x4_f64 a[0:7], v[0:1], v[8:9], a[0:7]", [0xd3ee8000, 0x04021100], [16, 4, 1], (64, f64_bits), (64, f64_bits);
    "v_mfma_f64_4x4x4_4b_f64 a[0:1], v[0:1], v[8:9], a[0:1]", [0xd3ef8000, 0x04021100], [4, 4, 4], (64, f64_bits), (64, f64_bits);
    "v_mfma_f32_16x16x32_bf8_bf8 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3f08000, 0x04021100], [16, 32, 1], (8, bf8_bits), (32, f32_bits);
    "v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[0:1], v[8:9], a[0:3]", [0xd3f38000, 0x04021100], [16, 32, 1], (8, fp8_bits), (32, f32_bits);
    "v_mfma_f32_32x32x16_fp8_fp8 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3f78000, 0x04021100], [32, 16, 1], (8, fp8_bits), (32, f32_bits);
    "v_mfma_f32_32x32x16_bf8_bf8 a[0:15], v[0:1], v[8:9], a[0:15]", [0xd3f48000, 0x04021100], [32, 16, 1], (8, bf8_bits), (32, f32_bits);
};

/// C is a constant for all elements; A of one block is used for two.
#[test]
fn constants_and_broadcasts() {
    let mut bench = Bench::default();
    bench.fill(0, |lane| (lane as f32).to_bits());
    bench.fill(8, |_| 1f32.to_bits());
    bench.run(&[0xd3c08000, 0x03d21100]); // v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v8, 2.0
    assert_eq!(bench.wave.row(D)[0], 2f32.to_bits());
    assert_eq!(bench.wave.row(D + 16)[0], 34f32.to_bits());
    bench.run(&[0xd3c08900, 0x03d21100]); // v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v8, 2.0 cbsz:1 abid:1
    assert_eq!(bench.wave.row(D)[0], 34f32.to_bits());
    assert_eq!(bench.wave.row(D + 16)[0], 34f32.to_bits());
    bench.fill(8, |lane| (lane as f32).to_bits());
    bench.fill(0, |_| 1f32.to_bits());
    bench.run(&[0xd3c08000, 0x43d21100]); // v_mfma_f32_32x32x1_2b_f32 a[0:31], v0, v8, 2.0 blgp:2
    assert_eq!(bench.wave.row(D)[5], 39f32.to_bits());
    assert_eq!(bench.wave.row(D + 16)[5], 39f32.to_bits());
}

/// f32 products are fused with the sum, so that each step rounds once.
#[test]
fn f32_is_a_chain_of_fused_operations() {
    let mut bench = Bench::default();
    let x = 1.0 + 2f32.powi(-12);
    bench.fill(0, |lane| if lane < 16 { x } else { 0.0 }.to_bits());
    bench.fill(8, |_| x.to_bits());
    for register in 16..20 {
        bench.fill(register, |_| (-1f32).to_bits());
    }
    bench.run(&[0xd3c50014, 0x04421100]); // v_mfma_f32_16x16x4_f32 v[20:23], v0, v8, v[16:19]
    assert_eq!(f32::from_bits(bench.wave.row(20)[0]), x.mul_add(x, -1.0));
}
