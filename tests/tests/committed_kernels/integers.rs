//! Tests integers of all widths.

use crate::check::{Random, blocks, equal};
use bytemuck::Pod;
use hipr_tests::{Gpu, args};
use std::fmt::Debug;

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Launches `kernel(a, b, out, n)` and compares `RESULTS` results of each pair.
fn each_pair<T: Pod + Debug, const RESULTS: usize>(
    gpu: &mut Gpu,
    kernel: &str,
    a: &[T],
    b: &[T],
    results: impl Fn(T, T) -> [T; RESULTS],
) {
    let want: Vec<T> = a.iter().zip(b).flat_map(|(a, b)| results(*a, *b)).collect();
    let (da, db, dout) = (gpu.upload(a), gpu.upload(b), gpu.zeroed::<T>(want.len()));
    gpu.launch(kernel, blocks(a.len(), 256), 256, 0, args![da, db, dout, a.len() as i32]);
    equal(kernel, &gpu.download(dout), &want);
}

pub(crate) fn hash64(gpu: &mut Gpu) {
    const N: usize = 2000;
    const LENGTH: usize = 20;
    let mut random = Random(11);
    let data: Vec<u8> = random.bits(N * LENGTH);
    let fnv = |bytes: &[u8]| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
    };
    let want: Vec<u64> =
        (0..).zip(data.chunks(LENGTH)).map(|(i, bytes)| mix(fnv(bytes).wrapping_add(i))).collect();
    let (ddata, dout) = (gpu.upload(&data), gpu.zeroed::<u64>(N));
    gpu.launch("hash_bytes", blocks(N, 128), 128, 0, args![ddata, dout, N as i32, LENGTH as i32]);
    equal("hash", &gpu.download(dout), &want);

    // All magnitudes.
    let mut magnitudes = || (0..N).map(|_| random.u64() >> random.below(64)).collect::<Vec<u64>>();
    let (mut a, mut b) = (magnitudes(), magnitudes());
    (a[0], b[0], a[1], b[1], a[2], b[2]) = (u64::MAX, 1, 0, u64::MAX, 1 << 63, 3);
    each_pair(gpu, "arithmetic_u64", &a, &b, |x, y| {
        let y = y | 1;
        let shift = (y >> 3) as u32 & 63;
        [
            x / y,
            x % y,
            ((u128::from(x) * u128::from(y)) >> 64) as u64,
            x.rotate_left(shift),
            x << shift,
            x >> shift,
            x.wrapping_sub(y),
            if x > y { x ^ y } else { !x & y },
        ]
    });
    let signed = |values: &[u64], flip: bool| -> Vec<i64> {
        (0..).zip(values).map(|(i, v)| if flip && i % 2 == 1 { !*v as i64 } else { *v as i64 }).collect()
    };
    each_pair(gpu, "arithmetic_i64", &signed(&a, true), &signed(&b, false), |x, y| {
        let y = if y | 1 == -1 { 3 } else { y | 1 };
        let shift = (y >> 5) as u32 & 63;
        let counts = x.count_ones() * 1000 + x.leading_zeros() * 10 + y.trailing_zeros() + 1;
        [
            x / y,
            x % y,
            ((i128::from(x) * i128::from(y)) >> 64) as i64,
            x >> shift,
            x.min(y),
            i64::from(counts),
            x.reverse_bits(),
            i64::from(x as i32) * i64::from(y as i32),
        ]
    });
}

/// Returns the position of the lowest set bit, from 1; 0 if there is none.
fn first_set(x: u32) -> u32 {
    if x == 0 { 0 } else { x.trailing_zeros() + 1 }
}

fn results_u32(x: u32, y: u32) -> [u32; 24] {
    let wide = u64::from(x) * u64::from(y);
    [
        x.checked_div(y).unwrap_or(1),
        x.checked_rem(y).unwrap_or(2),
        x / 7,
        x % 1000,
        (wide >> 32) as u32,
        wide as u32,
        x.count_ones(),
        x.leading_zeros(),
        first_set(x),
        x.reverse_bits(),
        x.rotate_left(y & 31),
        x >> 5 & 0x7ff,
        (x & 0x00ff_00ff) | (y & 0xff00_ff00),
        x.min(y),
        x.max(y),
        (x & 0xff_ffff).wrapping_mul(y & 0xff_ffff),
        x.abs_diff(y).wrapping_add(5),
        ((u64::from(x) + u64::from(y)) >> 1) as u32,
        x.saturating_add(y),
        (((u64::from(y) << 32 | u64::from(x)) << (y >> 27)) >> 32) as u32,
        x ^ (x >> 13) ^ (y << 7),
        x.wrapping_add(3).wrapping_mul(y.wrapping_sub(5)).wrapping_add(x & !y),
        if x == y || x < 5 { x } else { y },
        (wide.wrapping_add(12_345) >> 17) as u32,
    ]
}

fn results_i32(x: i32, y: i32) -> [i32; 24] {
    let y = if x == i32::MIN && y == -1 { 1 } else { y };
    let wide = i64::from(x) * i64::from(y);
    let low24 = |v: i32| v << 8 >> 8;
    [
        x.checked_div(y).unwrap_or(1),
        x.checked_rem(y).unwrap_or(2),
        x / -7,
        x % 1000,
        (wide >> 32) as i32,
        x >> (y & 31),
        x.checked_abs().unwrap_or(0),
        x.min(y),
        x.max(y),
        x.clamp(-1000, 1000),
        low24(x).wrapping_mul(low24(y)),
        ((i64::from(x) + i64::from(y)) >> 1) as i32,
        x << 9 >> 20,
        i32::from(x as i8) + i32::from(y as i16),
        x.signum(),
        x / 16 + y / 1024,
        wide.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
        (wide >> 21) as i32,
        (x >> 2).abs_diff(y >> 2) as i32 + 9,
        i32::from(x > y) + i32::from(x >= 0) * 2 + i32::from(y != 0) * 4,
        i32::from(x >= y),
        x & x.wrapping_neg(),
        ((!x).leading_zeros() + y.count_ones()) as i32,
        x ^ y,
    ]
}

pub(crate) fn integers(gpu: &mut Gpu) {
    const N: usize = 2000;
    let mut random = Random(23);
    let mut magnitudes = || (0..N).map(|_| random.u32() >> random.below(32)).collect::<Vec<u32>>();
    let (mut a, mut b) = (magnitudes(), magnitudes());
    a.iter_mut().skip(49).step_by(3).for_each(|a| *a = !*a);
    b.iter_mut().skip(50).step_by(5).for_each(|b| *b = !*b);
    let edges = [0, 1, 2, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffffu32];
    for i in 0..49 {
        (a[i], b[i]) = (edges[i / 7], edges[i % 7]);
    }
    each_pair(gpu, "arithmetic_u32", &a, &b, results_u32);
    let (a, b): (&[i32], &[i32]) = (bytemuck::cast_slice(&a), bytemuck::cast_slice(&b));
    each_pair(gpu, "arithmetic_i32", a, b, results_i32);
    {
        const NUMBERS: usize = 200;
        let (mut p, q): (Vec<u32>, Vec<u32>) = (random.bits(8 * NUMBERS), random.bits(8 * NUMBERS));
        // Long carries.
        p.iter_mut().zip(&q).step_by(3).for_each(|(p, q)| *p = !q);
        let (mut sum, mut difference) = (Vec::new(), Vec::new());
        for (p, q) in p.chunks(8).zip(q.chunks(8)) {
            let (mut carry, mut borrow) = (false, false);
            for (p, q) in p.iter().zip(q) {
                let total = u64::from(*p) + u64::from(*q) + u64::from(carry);
                let rest = i64::from(*p) - i64::from(*q) - i64::from(borrow);
                (carry, borrow) = (total >> 32 != 0, rest < 0);
                sum.push(total as u32);
                difference.push(rest as u32);
            }
        }
        let (dp, dq) = (gpu.upload(&p), gpu.upload(&q));
        let (dsum, ddifference) = (gpu.zeroed::<u32>(sum.len()), gpu.zeroed::<u32>(sum.len()));
        let args = args![dp, dq, dsum, ddifference, NUMBERS as i32];
        gpu.launch("wide_add", blocks(NUMBERS, 64), 64, 0, args);
        equal("256-bit sum", &gpu.download(dsum), &sum);
        equal("256-bit difference", &gpu.download(ddifference), &difference);
    }
    // "abc", padded, and its published digest.
    let mut block = [0u8; 64];
    block[..4].copy_from_slice(b"abc\x80");
    block[63] = 24;
    let digest: [u32; 8] = [
        0xba78_16bf,
        0x8f01_cfea,
        0x4141_40de,
        0x5dae_2223,
        0xb003_61a3,
        0x9617_7a9c,
        0xb410_ff61,
        0xf200_15ad,
    ];
    let (dblocks, digests) = (gpu.upload(&[block; 64]), gpu.zeroed::<[u32; 8]>(64));
    gpu.launch("sha256_blocks", 1, 64, 0, args![dblocks, digests, 64i32]);
    equal("SHA-256", &gpu.download(digests), &[digest; 64]);
}

/// Computes the twelve results for a pair of integers of at most 16 bits.
macro_rules! small_results {
    ($integer:ty) => {
        |a: $integer, b: $integer| -> [$integer; 12] {
            // C++ computes in int; more bits give the same low ones.
            let (x, y) = (i64::from(a), i64::from(b));
            let shift = y & (<$integer>::BITS as i64 - 1);
            [
                x + y,
                x - y,
                x * y,
                if y == 0 { 77 } else { x / y },
                if y == 0 { 78 } else { x % y },
                x << shift,
                x >> shift,
                x.min(y),
                x.max(y),
                (x & y) ^ !x,
                -x,
                if x == y {
                    1
                } else if x > y {
                    2
                } else {
                    3
                },
            ]
            .map(|result| result as $integer)
        }
    };
}

pub(crate) fn small_ints(gpu: &mut Gpu) {
    const N: usize = 2000;
    let mut random = Random(19);
    macro_rules! check {
        ($kernel:literal, $integer:ty) => {
            let a: Vec<$integer> = random.bits(N);
            let mut b: Vec<$integer> = random.bits(N);
            // Small divisors.
            b.iter_mut().step_by(5).for_each(|b| *b = random.below(7) as $integer);
            each_pair(gpu, $kernel, &a, &b, small_results!($integer));
        };
    }
    check!("arithmetic_u8", u8);
    check!("arithmetic_i8", i8);
    check!("arithmetic_u16", u16);
    check!("arithmetic_i16", i16);
    {
        let (a, b): (Vec<u8>, Vec<u8>) = (random.bits(4 * N), random.bits(4 * N));
        let want: Vec<u8> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| ((u32::from(*a) * 90 + u32::from(*b) * 100) >> 7).min(255) as u8)
            .collect();
        let (da, db, dout) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<u8>(4 * N));
        gpu.launch("blend", blocks(N, 64), 64, 0, args![da, db, dout, 90i32, N as i32]);
        equal("blend", &gpu.download(dout), &want);
    }
    {
        let (a, b): (Vec<i16>, Vec<i16>) = (random.bits(2 * N), random.bits(2 * N));
        let want: Vec<i16> = a
            .chunks(2)
            .zip(b.chunks(2))
            .flat_map(|(x, y)| {
                let both = |f: fn(i16, i16) -> i16| [f(x[0], y[0]), f(x[1], y[1])];
                let ends = [x[0].max(y[0]), x[1].min(y[1])];
                [both(i16::wrapping_add), both(i16::wrapping_sub), both(i16::wrapping_mul), ends]
            })
            .flatten()
            .collect();
        let (da, db, dout) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<i16>(8 * N));
        gpu.launch("packed_shorts", blocks(N, 128), 128, 0, args![da, db, dout, N as i32]);
        equal("packed shorts", &gpu.download(dout), &want);
    }
    let bytes: Vec<u8> = random.bits(N + 8);
    let want: Vec<u32> = bytes
        .windows(8)
        .take(N)
        .flat_map(|at| {
            let word = u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
            let weighed = [1, 3, 5, 7].iter().zip(at).map(|(weight, byte)| weight * u32::from(*byte)).sum();
            [
                word,
                u32::from(u16::from_le_bytes([at[1], at[2]])),
                u32::from_le_bytes([at[3], at[4], at[5], at[6]]),
                word.swap_bytes(),
                weighed,
                u32::from_le_bytes([at[0], at[4], at[2], at[6]]), // selector 0x6240
            ]
        })
        .collect();
    let (dbytes, dout) = (gpu.upload(&bytes), gpu.zeroed::<u32>(want.len()));
    gpu.launch("bytes_of_words", blocks(N, 128), 128, 0, args![dbytes, dout, N as i32]);
    equal("bytes of words", &gpu.download(dout), &want);
}
