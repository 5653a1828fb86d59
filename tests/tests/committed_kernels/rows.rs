//! Tests reductions, histograms, prefix sums, and computations from sums over rows.

use crate::check::{Random, blocks, equal, near};
use hipr_tests::{Gpu, args};

pub(crate) fn reduce(gpu: &mut Gpu) {
    const N: usize = 20_000;
    let mut random = Random(3);
    let x: Vec<u32> = random.bits(N);
    let sum = x.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    let (dx, total) = (gpu.upload(&x), gpu.zeroed::<u32>(1));
    for threads in [32u32, 64, 128, 256] {
        gpu.fill(total, 0);
        gpu.launch("reduce_sum_u32", 13, threads, 0, args![dx, total, N as u32]);
        equal("sum of u32", &gpu.download(total), &[sum]);
    }

    let x: Vec<f32> = random.reals(N, -1.0, 1.0);
    let sum: f64 = x.iter().map(|x| f64::from(*x)).sum();
    let grid = blocks(N, 256);
    let (dx, sums, result) = (gpu.upload(&x), gpu.zeroed::<f32>(grid as usize), gpu.zeroed::<f32>(1));
    gpu.launch("reduce_sum_f32", grid, 256, 0, args![dx, sums, N as u32]);
    gpu.launch("reduce_sum_f32", 1, 256, 0, args![sums, result, grid]);
    near("sum of f32", &gpu.download(result), &[sum], 1e-5, 1e-3);

    let x: Vec<i32> = random.bits(N);
    let ends = [x.iter().copied().min().unwrap_or(0), x.iter().copied().max().unwrap_or(0)];
    let (dx, minmax) = (gpu.upload(&x), gpu.upload(&[i32::MAX, i32::MIN]));
    gpu.launch("reduce_minmax_i32", 5, 256, 0, args![dx, minmax, N as u32]);
    equal("minimum and maximum", &gpu.download(minmax), &ends);
}

pub(crate) fn histogram(gpu: &mut Gpu) {
    const N: usize = 30_000;
    let mut random = Random(6);
    // Far from uniform.
    let data: Vec<u8> = (0..N).map(|_| (random.below(16) * random.below(16)) as u8).collect();
    let mut want = vec![0u32; 256];
    data.iter().for_each(|byte| want[usize::from(*byte)] += 1);
    let ddata = gpu.upload(&data);
    let bins = gpu.zeroed::<u32>(256);
    gpu.launch("histogram_global", 9, 128, 0, args![ddata, bins, N as u32]);
    equal("global atomics", &gpu.download(bins), &want);
    gpu.fill(bins, 0);
    gpu.launch("histogram_lds", 11, 256, 0, args![ddata, bins, N as u32]);
    equal("LDS atomics", &gpu.download(bins), &want);

    let ends: Vec<u32> = want
        .iter()
        .scan(0, |end, count| {
            *end += count;
            Some(*end)
        })
        .collect();
    let starts: Vec<u32> = ends.iter().zip(&want).map(|(end, count)| end - count).collect();
    let (next, order) = (gpu.upload(&starts), gpu.filled::<u32>(N, 0xff));
    gpu.launch("group_by_value", blocks(N, 256), 256, 0, args![ddata, next, order, N as u32]);
    equal("ends of groups", &gpu.download(next), &ends);
    let mut order = gpu.download(order);
    assert!(order.is_sorted_by_key(|i| data[*i as usize]), "indices are grouped by value");
    order.sort_unstable();
    equal("every index once", &order, &(0..N as u32).collect::<Vec<_>>());
}

pub(crate) fn scan(gpu: &mut Gpu) {
    const N: usize = 30_001;
    const NOWHERE: u64 = 0;
    let mut random = Random(7);
    let values: Vec<u32> = (0..N).map(|_| random.below(1000)).collect();
    let mut sum = 0;
    let want: Vec<u32> = values
        .iter()
        .map(|value| {
            sum += value;
            sum - value
        })
        .collect();
    let grid = blocks(N, 512);
    let (din, dout) = (gpu.upload(&values), gpu.filled::<u32>(N, 0xff));
    let (sums, offsets) = (gpu.zeroed::<u32>(grid as usize), gpu.zeroed::<u32>(grid as usize));
    gpu.launch("scan_blocks", grid, 256, 0, args![din, dout, sums, N as u32]);
    gpu.launch("scan_blocks", 1, 64, 0, args![sums, offsets, NOWHERE, grid]);
    gpu.launch("add_block_sums", grid, 256, 0, args![dout, offsets, N as u32]);
    equal("exclusive sum", &gpu.download(dout), &want);

    const SHORT: usize = 200;
    let values: Vec<f64> = random.reals(SHORT, 0.0, 1.0);
    let mut sum = 0.0;
    let want: Vec<f64> = values
        .iter()
        .map(|value| {
            sum += value;
            sum
        })
        .collect();
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<f64>(SHORT));
    gpu.launch("scan_inclusive_f64", 1, 256, 0, args![din, dout, SHORT as u32]);
    near("inclusive sum", &gpu.download(dout), &want, 1e-13, 0.0);
}

pub(crate) fn softmax(gpu: &mut Gpu) {
    const ROWS: usize = 48;
    const COLUMNS: usize = 300;
    let values: Vec<f32> = Random(8).reals(ROWS * COLUMNS, -20.0, 20.0);
    let want: Vec<f64> = values
        .chunks(COLUMNS)
        .flat_map(|row| {
            let high = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f64> = row.iter().map(|x| (f64::from(*x) - f64::from(high)).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(move |power| power / sum)
        })
        .collect();
    let (din, dout) = (gpu.upload(&values), gpu.filled::<f32>(values.len(), 0xff));
    gpu.launch("softmax_rows", ROWS as u32, 128, 0, args![din, dout, COLUMNS as i32]);
    near("block a row", &gpu.download(dout), &want, 2e-5, 1e-12);
    gpu.fill(dout, 0xff);
    gpu.launch("softmax_wave", ROWS as u32, 64, 0, args![din, dout, COLUMNS as i32]);
    near("wave a row", &gpu.download(dout), &want, 2e-5, 1e-12);
}

pub(crate) fn layernorm(gpu: &mut Gpu) {
    const ROWS: usize = 30;
    const COLUMNS: usize = 333;
    const EPSILON: f64 = 1e-5;
    let mut random = Random(9);
    let values: Vec<f32> = random.reals(ROWS * COLUMNS, -3.0, 5.0);
    let scale: Vec<f32> = random.reals(COLUMNS, 0.5, 2.0);
    let shift: Vec<f32> = random.reals(COLUMNS, -1.0, 1.0);
    let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
    let (mut plain, mut layer, mut rms) = (Vec::new(), Vec::new(), Vec::new());
    for row in wide.chunks(COLUMNS) {
        let mean_of = |f: &dyn Fn(f64) -> f64| row.iter().map(|x| f(*x)).sum::<f64>() / COLUMNS as f64;
        let mean = mean_of(&|x| x);
        let deviation = (mean_of(&|x| (x - mean) * (x - mean)) + EPSILON).sqrt();
        let root = (mean_of(&|x| x * x) + EPSILON).sqrt();
        for ((x, scale), shift) in row.iter().zip(&scale).zip(&shift) {
            let (scale, shift) = (f64::from(*scale), f64::from(*shift));
            plain.push((x - mean) / deviation);
            layer.push((x - mean) / deviation * scale + shift);
            rms.push(x / root * scale);
        }
    }
    let (din, dscale, dshift) = (gpu.upload(&values), gpu.upload(&scale), gpu.upload(&shift));
    let dout = gpu.filled::<f32>(values.len(), 0xff);
    let (columns, epsilon) = (COLUMNS as i32, EPSILON as f32);
    gpu.launch("layernorm_f32", ROWS as u32, 256, 0, args![din, dscale, dshift, dout, columns, epsilon]);
    near("layernorm", &gpu.download(dout), &layer, 1e-5, 1e-5);
    gpu.launch("rmsnorm_f32", ROWS as u32, 128, 0, args![din, dscale, dout, columns, epsilon]);
    near("rmsnorm", &gpu.download(dout), &rms, 1e-5, 1e-6);
    let (din, dout) = (gpu.upload(&wide), gpu.zeroed::<f64>(wide.len()));
    gpu.launch("layernorm_f64", 1, 64, 0, args![din, dout, ROWS as i32, columns, EPSILON]);
    near("layernorm in f64", &gpu.download(dout), &plain, 1e-12, 1e-13);
}
