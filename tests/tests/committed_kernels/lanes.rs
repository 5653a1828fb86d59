//! Tests communication of threads: atomic operations, and the lanes of a wave.

use crate::check::{Random, equal, near};
use hipr_tests::{Gpu, args};

const BLOCKS: u32 = 5;
const THREADS: u32 = 128;
const N: usize = (BLOCKS * THREADS) as usize;

pub(crate) fn atomics(gpu: &mut Gpu) {
    let mut random = Random(16);
    let values: Vec<u32> = random.bits(N);
    words(gpu, &values);
    wide_words(gpu, &random.bits(N));
    {
        let (next, next64) = (gpu.zeroed::<u32>(1), gpu.zeroed::<u64>(1));
        let (owner, owner64) = (gpu.filled::<u32>(N, 0xff), gpu.filled::<u32>(N, 0xff));
        gpu.launch("tickets", BLOCKS, THREADS, 0, args![next, next64, owner, owner64]);
        for owner in [owner, owner64] {
            let mut owner = gpu.download(owner);
            owner.sort_unstable();
            equal("every ticket once", &owner, &(0..N as u32).collect::<Vec<_>>());
        }
        equal("tickets", &gpu.download(next), &[N as u32]);
        equal("64-bit tickets", &gpu.download(next64), &[N as u64]);
    }
    {
        // Sums are exact.
        let floats: Vec<f32> = (0..N).map(|_| random.below(1000) as f32 * 0.25).collect();
        let sum: f32 = floats.iter().sum();
        let high = floats.iter().copied().fold(0.0, f32::max);
        let product: f64 = (0..N).map(|i| 1.0 + 1e-3 * (i % 8) as f64).product();
        let dvalues = gpu.upload(&floats);
        let (single, double) = (gpu.zeroed::<f32>(2), gpu.zeroed::<f64>(2));
        gpu.launch("atomics_float", BLOCKS, THREADS, 0, args![single, double, dvalues]);
        equal("f32 sums", &gpu.download(single), &[sum, sum]);
        equal("f64 sums", &gpu.download(double), &[f64::from(sum), 2.0 * f64::from(sum)]);
        let (dhigh, dproduct) = (gpu.zeroed::<f32>(1), gpu.upload(&[1.0f64]));
        gpu.launch("cas_loops", BLOCKS, THREADS, 0, args![dhigh, dproduct, dvalues]);
        equal("maximum by compare-and-swap", &gpu.download(dhigh), &[high]);
        near("product by compare-and-swap", &gpu.download(dproduct), &[product], 1e-12, 0.0);
    }
    in_lds(gpu, &values);
    let (lock, value) = (gpu.zeroed::<i32>(1), gpu.zeroed::<i32>(1));
    gpu.launch("with_lock", 40, 64, 0, args![lock, value]);
    equal("under a lock", &gpu.download(value), &[(0..40).fold(0, |value, _| value * 3 % 1009 + 1)]);
}

fn words(gpu: &mut Gpu, values: &[u32]) {
    let start = [0, 0, u32::MAX, 0, u32::MAX, 0, 0, 0, 50, 5, 1u32];
    let mut want = start;
    for x in values {
        want[0] = want[0].wrapping_add(*x);
        want[1] = want[1].wrapping_sub(*x);
        want[2] = want[2].min(*x);
        want[3] = want[3].max(*x);
        want[4] &= x | 0xff00_ff00;
        want[5] |= x & 0x0102_0304;
        want[6] ^= x;
        want[7] = if want[7] >= 99 { 0 } else { want[7] + 1 };
        want[8] = if want[8] == 0 || want[8] > 77 { 77 } else { want[8] - 1 };
    }
    want[9] = 17;
    want[10] = 4242;
    let (dwords, dvalues) = (gpu.upload(&start), gpu.upload(values));
    gpu.launch("atomics_u32", BLOCKS, THREADS, 0, args![dwords, dvalues]);
    equal("u32", &gpu.download(dwords), &want);

    let signed: &[i32] = bytemuck::cast_slice(values);
    let want = signed.iter().fold([i32::MAX, i32::MIN, 7], |[low, high, sum], x| {
        [low.min(*x), high.max(*x), sum.wrapping_add(*x)]
    });
    let (dwords, dvalues) = (gpu.upload(&[i32::MAX, i32::MIN, 7]), gpu.upload(signed));
    gpu.launch("atomics_i32", BLOCKS, THREADS, 0, args![dwords, dvalues]);
    equal("i32", &gpu.download(dwords), &want);
}

fn wide_words(gpu: &mut Gpu, values: &[u64]) {
    let start = [1, u64::MAX, 0, u64::MAX, 0, 0, 5, 1u64];
    let mut want = start;
    for x in values {
        want[0] = want[0].wrapping_add(*x);
        want[1] = want[1].min(*x);
        want[2] = want[2].max(*x);
        want[3] &= x | 0xff00_ff00_ff00_ff00;
        want[4] |= x & 0x0102_0304_0102_0304;
        want[5] ^= x;
    }
    want[6] = 17;
    want[7] = 0x1234_5678_9abc_def0;
    let (dwords, dvalues) = (gpu.upload(&start), gpu.upload(values));
    gpu.launch("atomics_u64", BLOCKS, THREADS, 0, args![dwords, dvalues]);
    equal("u64", &gpu.download(dwords), &want);
}

fn in_lds(gpu: &mut Gpu, values: &[u32]) {
    let (mut want, mut want64, mut wantf, mut wantd) = (vec![], vec![], vec![], vec![]);
    for block in values.chunks(THREADS as usize) {
        let (mut w, mut q) = ([0, u32::MAX, 0, 0, 0], [0, u64::MAX, 0, 1]);
        for x in block {
            let wide = u64::from(*x) << 16;
            w = [w[0].wrapping_add(*x), w[1].min(*x), w[2].max(*x), w[3] ^ x, w[4] | 1 << (x % 32)];
            q = [q[0] + (u64::from(*x) << 20), q[1].min(wide), q[2].max(wide), 1];
        }
        want.extend(w);
        want64.extend(q);
        wantf.push(block.iter().map(|x| (x >> 24) as f32).sum::<f32>());
        wantd.push(block.iter().map(|x| f64::from(*x)).sum::<f64>());
    }
    let dvalues = gpu.upload(values);
    let (out, out64) = (gpu.zeroed::<u32>(want.len()), gpu.zeroed::<u64>(want64.len()));
    let (outf, outd) = (gpu.zeroed::<f32>(wantf.len()), gpu.zeroed::<f64>(wantd.len()));
    gpu.launch("atomics_lds", BLOCKS, THREADS, 0, args![out, out64, outf, outd, dvalues]);
    equal("LDS u32", &gpu.download(out), &want);
    equal("LDS u64", &gpu.download(out64), &want64);
    equal("LDS f32", &gpu.download(outf), &wantf);
    equal("LDS f64", &gpu.download(outd), &wantd);
}

pub(crate) fn warp(gpu: &mut Gpu) {
    let mut random = Random(15);
    {
        let values: Vec<i32> = random.bits(4 * 128);
        let shuffled = |wave: &[i32], lane: usize| {
            [
                wave[(lane * 7 + 3) % 64],
                wave[lane.checked_sub(5).unwrap_or(lane)],
                *wave.get(lane + 9).unwrap_or(&wave[lane]),
                wave[lane ^ 33],
                wave[lane / 16 * 16 + 2],
                wave[if lane % 8 + 3 < 8 { lane + 3 } else { lane }],
                wave[if lane % 32 >= 1 { lane - 1 } else { lane }],
                wave[lane ^ 1],
            ]
        };
        let want: Vec<i32> =
            values.chunks(64).flat_map(|wave| (0..64).flat_map(move |lane| shuffled(wave, lane))).collect();
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(want.len()));
        gpu.launch("shuffles", 4, 128, 0, args![din, dout]);
        equal("shuffles", &gpu.download(dout), &want);
    }
    {
        let values: Vec<f64> = random.reals(64, 0.0, 1.0);
        let integers: Vec<i64> = random.bits(64);
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<f64>(64));
        let (din64, dout64) = (gpu.upload(&integers), gpu.zeroed::<i64>(64));
        gpu.launch("shuffles_wide", 1, 64, 0, args![din, dout, din64, dout64]);
        near("sum by shuffles", &gpu.download(dout), &[values.iter().sum::<f64>(); 64], 1e-14, 0.0);
        let want: Vec<i64> = (0..64usize).map(|lane| integers[lane ^ 17]).collect();
        equal("64-bit shuffle", &gpu.download(dout64), &want);
    }
    votes(gpu, &mut random);
    {
        let want: Vec<u32> = (0..192u32)
            .flat_map(|thread| {
                let first = thread / 64 * 64;
                [thread % 64, first * 3 + 1, (first + 9) * (first + 9), 64]
            })
            .collect();
        let dout = gpu.zeroed::<u32>(want.len());
        gpu.launch("lane_numbers", 1, 192, 0, args![dout]);
        equal("lane numbers", &gpu.download(dout), &want);
    }
    let values: Vec<i32> = random.bits(3 * 64);
    let sums: Vec<i32> =
        values.chunks(64).map(|wave| wave.iter().fold(0i32, |sum, v| sum.wrapping_add(*v))).collect();
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(3));
    gpu.launch("dpp_sum", 3, 64, 0, args![din, dout]);
    equal("sum by DPP", &gpu.download(dout), &sums);
    let moves: Vec<i32> = (0..64usize)
        .flat_map(|lane| {
            [
                values[lane ^ 3],
                if lane % 16 == 15 { -1 } else { values[lane + 1] },
                values[if lane % 16 == 0 { lane + 15 } else { lane - 1 }],
                values[lane ^ 15],
                values[lane ^ 7],
                if lane % 16 == 0 { 0 } else { values[lane - 1] },
                values[lane ^ 1],
                values[lane * 5 % 64],
            ]
        })
        .collect();
    let dout = gpu.zeroed::<i32>(moves.len());
    gpu.launch("dpp_moves", 1, 64, 0, args![din, dout]);
    equal("DPP moves", &gpu.download(dout), &moves);
}

fn votes(gpu: &mut Gpu, random: &mut Random) {
    let values: Vec<i32> = (0..512).map(|_| random.below(186) as i32 - 93).collect();
    let (mut ballots, mut flags) = (Vec::new(), Vec::new());
    for wave in values.chunks(64) {
        let lanes = |of: &dyn Fn(i32) -> bool| {
            wave.iter().enumerate().fold(0u64, |mask, (lane, v)| mask | u64::from(of(*v)) << lane)
        };
        let positive = lanes(&|v| v > 0);
        let odd = lanes(&|v| v & 1 == 1);
        let any = i32::from(wave.iter().any(|v| *v > 90));
        let all = i32::from(wave.iter().all(|v| *v > -90));
        let of_odd = odd.count_ones() as i32 * 100 + odd.trailing_zeros() as i32 + 1;
        for (lane, v) in wave.iter().enumerate() {
            let below = (positive & ((1 << lane) - 1)).count_ones() as i32;
            flags.extend([any, all, below, if v & 1 == 1 { of_odd } else { -1 }]);
        }
        ballots.push(positive);
    }
    let (din, dflags) = (gpu.upload(&values), gpu.zeroed::<i32>(flags.len()));
    let dballots = gpu.zeroed::<u64>(ballots.len());
    gpu.launch("votes", 2, 256, 0, args![din, dballots, dflags]);
    equal("ballots", &gpu.download(dballots), &ballots);
    equal("votes", &gpu.download(dflags), &flags);
}
