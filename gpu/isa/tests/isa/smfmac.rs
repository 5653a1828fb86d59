//! Tests of sparse matrices: D += A * B, where A stores two of each four elements.

use crate::bench::{Bench, Random};

/// Index values for two of four elements, with the lower position in the lower bits.
const PAIRS: [u32; 6] = [0x4, 0x8, 0xc, 0x9, 0xd, 0xe];

/// Returns random indices for all lanes: one for each four elements, eight of them in a register.
fn indices(random: &mut Random) -> [u32; 64] {
    std::array::from_fn(|_| (0..8).fold(0, |word, _| word << 4 | PAIRS[random.u32() as usize % 6]))
}

/// Properties of a sparse matrix instruction.
struct Shape {
    rows: usize,
    depth: usize,
    /// Size of an element of A and B in bits.
    bits: usize,
    /// Number of the part of an index register that is used.
    set: usize,
}

/// Returns the dense A of `shape`, from the elements that lanes hold (`a`) and their indices.
fn dense(shape: &Shape, a: impl Fn(usize, usize) -> i32, indices: &[u32; 64]) -> Vec<Vec<i32>> {
    let kept = shape.depth * shape.rows / 128;
    let mut matrix = vec![vec![0; shape.depth]; shape.rows];
    for lane in 0..64 {
        for element in 0..kept {
            let position = indices[lane] >> (shape.set * kept * 2 + element * 2) & 3;
            let k = lane / shape.rows * kept * 2 + element / 2 * 4 + position as usize;
            matrix[lane % shape.rows][k] = a(lane, element);
        }
    }
    matrix
}

/// Checks an instruction on small integers, which `encode` converts to elements, against a matrix product.
fn check(words: &[u32], text: &str, shape: &Shape, encode: impl Fn(i32, bool) -> u32, is_float: bool) {
    let mut random = Random::new(5);
    let mut bench = Bench::default();
    let (per_word, each) = (32 / shape.bits, shape.depth * shape.rows / 64);
    let value = |random: &mut Random| (random.u32() % 7) as i32 - 3;
    let a: Vec<Vec<i32>> = (0..64).map(|_| (0..each / 2).map(|_| value(&mut random)).collect()).collect();
    let b: Vec<Vec<i32>> = (0..64).map(|_| (0..each).map(|_| value(&mut random)).collect()).collect();
    let indices = indices(&mut random);
    let word = |elements: &[i32], first: usize, of_a: bool| {
        (0..per_word)
            .fold(0, |word, index| word | encode(elements[first + index], of_a) << (index * shape.bits))
    };
    (0..each / 2 / per_word).for_each(|n| bench.fill(2 + n, |lane| word(&a[lane], n * per_word, true)));
    (0..each / per_word).for_each(|n| bench.fill(4 + n, |lane| word(&b[lane], n * per_word, false)));
    bench.fill(1, |lane| indices[lane]);
    let before = |register: usize, lane: usize| (register * 3 + lane) as i32 % 11;
    let bits = |value: i32| if is_float { (value as f32).to_bits() } else { value as u32 };
    let results = shape.rows * shape.rows / 64;
    (0..results).for_each(|n| bench.fill(10 + n, |lane| bits(before(n, lane))));
    // Lanes are not asked.
    bench.wave.set_exec(0x1234);
    bench.run(words);
    let a = dense(shape, |lane, element| a[lane][element], &indices);
    let groups = 64 / shape.rows;
    for n in 0..results {
        for lane in 0..64 {
            let (i, j) = (n / 4 * 4 * groups + lane / shape.rows * 4 + n % 4, lane % shape.rows);
            let product: i32 =
                (0..shape.depth).map(|k| a[i][k] * b[k / each * shape.rows + j][k % each]).sum();
            let got = bench.wave.row(10 + n)[lane];
            assert_eq!(got, bits(before(n, lane) + product), "{text}: v{}, lane {lane}", 10 + n);
        }
    }
}

fn f16(value: i32) -> u32 {
    // -3 to 3.
    u32::from([0xc200u16, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200][(value + 3) as usize])
}

/// Converts an integer to FNUZ: bias 8 and three bits of mantissa, or (`bf8`) bias 16 and two.
fn fp8(value: i32, bf8: bool) -> u32 {
    let magnitude = match (value.abs(), bf8) {
        (0, _) => return 0,
        (1, false) => 0x40,
        (2, false) => 0x48,
        (_, false) => 0x4c,
        (1, true) => 0x40,
        (2, true) => 0x44,
        (_, true) => 0x46,
    };
    magnitude | if value < 0 { 0x80 } else { 0 }
}

#[test]
fn of_halves() {
    let shape = |set| Shape { rows: 16, depth: 32, bits: 16, set };
    let text = "v_smfmac_f32_16x16x32_f16 v[10:13], v[2:3], v[4:7], v1";
    check(&[0xd3e2_000a, 0x0406_0902], text, &shape(0), |value, _| f16(value), true);
    let text = "v_smfmac_f32_16x16x32_f16 v[10:13], v[2:3], v[4:7], v1 abid:2";
    check(&[0xd3e2_100a, 0x0406_0902], text, &shape(2), |value, _| f16(value), true);
    let text = "v_smfmac_f32_32x32x16_bf16 v[10:25], v[2:3], v[4:7], v1";
    let bf16 = |value: i32, _| (value as f32).to_bits() >> 16;
    check(&[0xd3e8_000a, 0x0406_0902], text, &Shape { rows: 32, depth: 16, bits: 16, set: 0 }, bf16, true);
}

#[test]
fn of_bytes() {
    let text = "v_smfmac_i32_32x32x32_i8 v[10:25], v[2:3], v[4:7], v1 abid:1";
    let shape = Shape { rows: 32, depth: 32, bits: 8, set: 1 };
    check(&[0xd3ec_080a, 0x0406_0902], text, &shape, |value, _| value as u8 as u32, false);
    let text = "v_smfmac_i32_16x16x64_i8 v[10:13], v[2:3], v[4:7], v1";
    let shape = Shape { rows: 16, depth: 64, bits: 8, set: 0 };
    check(&[0xd3ea_000a, 0x0406_0902], text, &shape, |value, _| value as u8 as u32, false);
    // A constant in CBSZ: ABID means nothing.
    let text = "v_smfmac_f32_16x16x64_fp8_bf8 v[10:13], v[2:3], v[4:7], v1 cbsz:1 abid:1";
    check(&[0xd3fa_090a, 0x0406_0902], text, &shape, |value, of_a| fp8(value, !of_a), true);
}

/// The instructions that differ from the tested ones only in the types of their elements.
#[test]
fn of_all_types() {
    for (op, a_is_bf8, b_is_bf8) in [(0, true, true), (1, true, false), (2, false, true), (3, false, false)] {
        for (first, rows, depth) in [(0xd3f8_000a, 16, 64), (0xd3fc_000a, 32, 32)] {
            let words = [first + (op << 16), 0x0406_0902];
            let encode = |value, of_a| fp8(value, if of_a { a_is_bf8 } else { b_is_bf8 });
            let shape = Shape { rows, depth, bits: 8, set: 0 };
            check(&words, &format!("v_smfmac of 8 bits {op}, {rows} rows"), &shape, encode, true);
        }
    }
    let bf16 = |value: i32, _| (value as f32).to_bits() >> 16;
    let shape = Shape { rows: 16, depth: 32, bits: 16, set: 0 };
    check(&[0xd3e6_000a, 0x0406_0902], "v_smfmac_f32_16x16x32_bf16", &shape, bf16, true);
    let shape = Shape { rows: 32, depth: 16, bits: 16, set: 0 };
    check(&[0xd3e4_000a, 0x0406_0902], "v_smfmac_f32_32x32x16_f16", &shape, |value, _| f16(value), true);
}
