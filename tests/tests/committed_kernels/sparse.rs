//! Tests sparse matrices and graphs, sorting, prices of options.

use crate::check::{Random, blocks, equal, near};
use hipr_tests::{Gpu, args};
use std::f64::consts::FRAC_1_SQRT_2;

pub(crate) fn spmv(gpu: &mut Gpu) {
    const ROWS: usize = 500;
    let mut random = Random(28);
    let (mut starts, mut columns, mut values) = (vec![0i32], Vec::<i32>::new(), Vec::<f32>::new());
    for row in 0..ROWS {
        // Some rows are long, some empty.
        for _ in 0..random.below(if row % 50 == 0 { 200 } else { 8 }) {
            columns.push(random.below(ROWS as u32) as i32);
            values.push(random.real(-1.0, 1.0) as f32);
        }
        starts.push(columns.len() as i32);
    }
    let x: Vec<f32> = random.reals(ROWS, -1.0, 1.0);
    let x64: Vec<f64> = x.iter().copied().map(f64::from).collect();
    let values64: Vec<f64> = values.iter().copied().map(f64::from).collect();
    let row = |row: usize| starts[row] as usize..starts[row + 1] as usize;
    let want: Vec<f64> =
        (0..ROWS).map(|r| row(r).map(|k| values64[k] * x64[columns[k] as usize]).sum()).collect();

    let (dstarts, dcolumns) = (gpu.upload(&starts), gpu.upload(&columns));
    let (dvalues, dx, dy) = (gpu.upload(&values), gpu.upload(&x), gpu.filled::<f32>(ROWS, 0xff));
    let args = args![dstarts, dcolumns, dvalues, dx, dy, ROWS as i32];
    gpu.launch("spmv_thread", blocks(ROWS, 128), 128, 0, args);
    near("thread a row", &gpu.download(dy), &want, 1e-5, 1e-5);
    let (dvalues, dx, dy) = (gpu.upload(&values64), gpu.upload(&x64), gpu.filled::<f64>(ROWS, 0xff));
    let args = args![dstarts, dcolumns, dvalues, dx, dy, ROWS as i32];
    gpu.launch("spmv_wave", blocks(ROWS, 4), 256, 0, args);
    near("wave a row", &gpu.download(dy), &want, 1e-12, 1e-13);

    let mut distance = vec![-1i32; ROWS];
    distance[0] = 0;
    let (ddistance, changed) = (gpu.upload(&distance), gpu.zeroed::<i32>(1));
    let mut queue = std::collections::VecDeque::from([0usize]);
    while let Some(vertex) = queue.pop_front() {
        for k in row(vertex) {
            let next = columns[k] as usize;
            if distance[next] < 0 {
                distance[next] = distance[vertex] + 1;
                queue.push_back(next);
            }
        }
    }
    let deepest = distance.iter().copied().max().unwrap_or(0);
    for level in 0..=deepest {
        gpu.fill(changed, 0);
        let args = args![dstarts, dcolumns, ddistance, level, changed, ROWS as i32];
        gpu.launch("bfs_level", blocks(ROWS, 256), 256, 0, args);
        equal("a vertex was reached", &gpu.download(changed), &[i32::from(level < deepest)]);
    }
    equal("distances", &gpu.download(ddistance), &distance);

    const N: usize = 3000;
    let mut to: Vec<u16> = (0..N as u16).collect();
    for i in (1..N).rev() {
        to.swap(i, random.below(i as u32 + 1) as usize);
    }
    let bytes: Vec<u8> = random.bits(N);
    let mut scattered = vec![0u8; N];
    to.iter().zip(&bytes).for_each(|(to, byte)| scattered[usize::from(*to)] = *byte);
    let (dto, dbytes, dout) = (gpu.upload(&to), gpu.upload(&bytes), gpu.zeroed::<u8>(N));
    gpu.launch("scatter_bytes", blocks(N, 256), 256, 0, args![dto, dbytes, dout, N as i32]);
    equal("scattered bytes", &gpu.download(dout), &scattered);
}

pub(crate) fn bitonic_sort(gpu: &mut Gpu) {
    let mut random = Random(26);
    /// Iterates over size and stride of the steps that follow sorted runs of `from` values.
    fn steps(from: u32, n: u32) -> impl Iterator<Item = (u32, u32)> {
        let doubled = |from: u32| std::iter::successors(Some(from), |size| Some(size * 2));
        doubled(2 * from).take_while(move |size| *size <= n).flat_map(|size| {
            std::iter::successors(Some(size / 2), |stride| Some(stride / 2))
                .take_while(|stride| *stride > 0)
                .map(move |stride| (size, stride))
        })
    }
    {
        const N: u32 = 4096;
        let mut keys: Vec<u32> = random.bits(N as usize);
        let dkeys = gpu.upload(&keys);
        gpu.launch("sort_block", N / 256, 256, 0, args![dkeys]);
        for (size, stride) in steps(256, N) {
            gpu.launch("merge_step", N / 256, 256, 0, args![dkeys, size, stride]);
        }
        keys.sort_unstable();
        equal("keys", &gpu.download(dkeys), &keys);
    }
    const N: u32 = 512;
    let keys: Vec<f32> = random.reals(N as usize, -100.0, 100.0);
    // The key's bits, and the value.
    let mut pairs: Vec<[u32; 2]> = keys.iter().zip(0..).map(|(key, i)| [key.to_bits(), i]).collect();
    let dpairs = gpu.upload(&pairs);
    for (size, stride) in steps(1, N) {
        gpu.launch("merge_step_pairs", N / 128, 128, 0, args![dpairs, size, stride]);
    }
    pairs.sort_by(|a, b| f32::from_bits(a[0]).total_cmp(&f32::from_bits(b[0])));
    equal("pairs", &gpu.download(dpairs), &pairs);
}

pub(crate) fn black_scholes(gpu: &mut Gpu) {
    const N: usize = 1000;
    let (rate, volatility) = (0.02f64, 0.3f64);
    let mut random = Random(30);
    let spot: Vec<f64> = random.reals(N, 5.0, 30.0);
    let strike: Vec<f64> = random.reals(N, 1.0, 100.0);
    let years: Vec<f64> = random.reals(N, 0.25, 10.0);
    let below = |d: f64| 0.5 * libm::erfc(-d * FRAC_1_SQRT_2);
    let (calls, puts): (Vec<f64>, Vec<f64>) = (0..N)
        .map(|i| {
            let (s, k, t) = (spot[i], strike[i], years[i]);
            let spread = volatility * t.sqrt();
            let d1 = ((s / k).ln() + (rate + 0.5 * volatility * volatility) * t) / spread;
            let (n1, n2, discount) = (below(d1), below(d1 - spread), (-rate * t).exp());
            (s * n1 - k * discount * n2, k * discount * (1.0 - n2) - s * (1.0 - n1))
        })
        .unzip();
    {
        let narrow = |values: &[f64]| values.iter().map(|v| *v as f32).collect::<Vec<f32>>();
        let (a, b) = (gpu.upload(&narrow(&spot)), gpu.upload(&narrow(&strike)));
        let (c, dcalls, dputs) = (gpu.upload(&narrow(&years)), gpu.zeroed::<f32>(N), gpu.zeroed::<f32>(N));
        let (rate, volatility) = (rate as f32, volatility as f32);
        let args = args![a, b, c, dcalls, dputs, rate, volatility, N as i32];
        gpu.launch("prices_f32", blocks(N, 128), 128, 0, args);
        near("calls in f32", &gpu.download(dcalls), &calls, 1e-5, 5e-5);
        near("puts in f32", &gpu.download(dputs), &puts, 1e-5, 5e-5);
    }
    let (a, b, c) = (gpu.upload(&spot), gpu.upload(&strike), gpu.upload(&years));
    let dcalls = gpu.zeroed::<f64>(N);
    let args = args![a, b, c, dcalls, rate, volatility, N as i32];
    gpu.launch("prices_f64", blocks(N, 128), 128, 0, args);
    near("calls in f64", &gpu.download(dcalls), &calls, 1e-12, 1e-13);

    const THREADS: u32 = 1024;
    const PER_THREAD: u32 = 20;
    const KEY: u32 = 2024;
    let is_inside = |counter: u32| {
        let (mut a, mut b, mut key) = (counter, 0x1234_5678u32, KEY);
        for _ in 0..10 {
            let product = u64::from(a) * 0xd256_d193;
            (a, b) = ((product >> 32) as u32 ^ key ^ b, product as u32);
            key = key.wrapping_add(0x9e37_79b9);
        }
        let (x, y) = (u64::from(a >> 1), u64::from(b >> 1));
        x * x + y * y < 1 << 62
    };
    let want = (0..THREADS * PER_THREAD).filter(|i| is_inside(*i)).count() as u64;
    let inside = gpu.zeroed::<u64>(1);
    gpu.launch("points_inside", THREADS / 256, 256, 0, args![KEY, PER_THREAD, inside]);
    equal("points inside", &gpu.download(inside), &[want]);
    let pi = 4.0 * want as f64 / f64::from(THREADS * PER_THREAD);
    assert!((3.08..3.20).contains(&pi), "the generator is uniform: {pi}");
}
