//! Tests private memory of threads, and function calls.

use crate::check::{Random, blocks, equal, near};
use bytemuck::Pod;
use hipr_tests::{Argument, Gpu, args};
use std::fmt::Debug;

pub(crate) fn scratch(gpu: &mut Gpu) {
    let mut random = Random(18);
    {
        let mut values: Vec<i32> = random.bits(128 * 24);
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(values.len()));
        gpu.launch("insertion_sort", 2, 64, 0, args![din, dout]);
        values.chunks_mut(24).for_each(<[i32]>::sort_unstable);
        equal("insertion sort", &gpu.download(dout), &values);
    }
    {
        let mut values: Vec<u8> = random.bits(64 * 64);
        let (din, dout) = (gpu.upload(&values), gpu.zeroed::<u8>(values.len()));
        gpu.launch("quick_sort_bytes", 1, 64, 0, args![din, dout]);
        values.chunks_mut(64).for_each(<[u8]>::sort_unstable);
        equal("quick sort", &gpu.download(dout), &values);
    }
    {
        let program = [0, 4, 3, 1, 7, 0, 3, 2, 4, 0, 5, 6, 1, 3, 3, 0, 0, 0, 1, 1, 2, 3, 2, 2, 6, 4, 2u8];
        let inputs: Vec<f64> = random.reals(128, -3.0, 3.0);
        let want: Vec<f64> = inputs.iter().map(|input| run(&program, *input)).collect();
        let (dprogram, dinputs, dout) = (gpu.upload(&program), gpu.upload(&inputs), gpu.zeroed::<f64>(128));
        gpu.launch("stack_machine", 2, 64, 0, args![dprogram, program.len() as i32, dinputs, dout]);
        near("stack machine", &gpu.download(dout), &want, 1e-13, 1e-12);
    }
    {
        let seeds: Vec<u32> = random.bits(128);
        let want: Vec<f64> = seeds.iter().map(|seed| records(*seed)).collect();
        let (dseeds, dout) = (gpu.upload(&seeds), gpu.zeroed::<f64>(128));
        gpu.launch("shuffle_records", 2, 64, 0, args![dseeds, dout]);
        near("records", &gpu.download(dout), &want, 1e-6, 0.0);
    }
    let values: Vec<i32> = (0..64).map(|_| random.below(1000) as i32).collect();
    let first: i32 = values[..8].iter().sum();
    let want: Vec<i32> = (0..64)
        .map(|i| match i % 3 {
            0 => first,
            1 => 2 * first,
            _ => (0..8).map(|k| values[(i + k) % 64]).sum(),
        })
        .collect();
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<i32>(64));
    gpu.launch("generic_pointer", 1, 64, 0, args![din, dout]);
    equal("generic pointer", &gpu.download(dout), &want);
}

/// Runs the stack machine: 0 push input, 1 push half of the next byte, 2 add, 3 multiply, 4 duplicate, 5 exchange, 6
/// subtract.
fn run(program: &[u8], input: f64) -> f64 {
    let mut stack = Vec::new();
    let mut codes = program.iter();
    while let Some(code) = codes.next() {
        let mut pop = || stack.pop().expect("a value");
        let pushed = match code {
            0 => vec![input],
            1 => vec![0.5 * f64::from(*codes.next().expect("a constant"))],
            4 => {
                let a = pop();
                vec![a, a]
            }
            5 => {
                let (b, a) = (pop(), pop());
                vec![b, a]
            }
            2 => vec![pop() + pop()],
            3 => vec![pop() * pop()],
            _ => {
                let b = pop();
                vec![pop() - b]
            }
        };
        stack.extend(pushed);
    }
    stack.pop().expect("a result")
}

/// Exchanges elements of an array of sixteen records and returns their sum.
fn records(mut seed: u32) -> f64 {
    #[derive(Clone, Copy)]
    struct Record {
        key: u16,
        small: [u8; 3],
        weight: f32,
        heavy: f64,
        id: u64,
    }
    let mut records: [Record; 16] = std::array::from_fn(|i| Record {
        key: (seed >> i) as u16,
        small: std::array::from_fn(|k| seed.wrapping_mul((k + i) as u32) as u8),
        weight: i as f32 * 0.5,
        heavy: 1.0 / (i + 1) as f64,
        id: u64::from(seed) << i,
    });
    for _ in 0..40 {
        let (a, b) = ((seed & 15) as usize, (seed >> 4 & 15) as usize);
        records.swap(a, b);
        records[a].heavy += f64::from(records[b].weight);
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    let value = |r: &Record| {
        let [s, t, u] = r.small.map(f64::from);
        let id = (r.id % 1_000_003) as f64;
        f64::from(r.key) + s + 2.0 * t + 3.0 * u + f64::from(r.weight) + r.heavy + id
    };
    records.iter().enumerate().map(|(i, r)| (i + 1) as f64 * value(r)).sum()
}

pub(crate) fn functions(gpu: &mut Gpu) {
    const LEN: usize = 700;
    let mut random = Random(17);
    clamp(gpu, "i", &random.bits::<i32>(LEN), -1_000_000_000, 1_000_000_000);
    clamp(gpu, "h", &random.bits::<u8>(LEN), 50, 200);
    clamp(gpu, "d", &random.reals::<f64>(LEN, -2.0, 2.0), -1.0, 1.0);
    clamp(gpu, "x", &random.bits::<i64>(LEN), -(1 << 62), 1 << 62);
    {
        let mut fibonacci = vec![0, 1];
        (2..11).for_each(|i| fibonacci.push(fibonacci[i - 1] + fibonacci[i - 2]));
        let want: Vec<i32> = (0..64usize)
            .flat_map(|i| {
                let even = i32::from(i % 23 % 2 == 0);
                [fibonacci[i % 11], ackermann(i as i32 % 3, i as i32 % 4), even]
            })
            .collect();
        let out = gpu.zeroed::<i32>(want.len());
        gpu.set_stack(16 << 10);
        gpu.launch("recursion", 1, 64, 0, args![out]);
        equal("recursion", &gpu.download(out), &want);
    }
    {
        const N: usize = 500;
        let which: Vec<i32> = random.bits(N);
        let mut small = || (0..N).map(|_| random.below(20_000) as i32 - 10_000).collect::<Vec<i32>>();
        let (a, b) = (small(), small());
        let want: Vec<i32> = (0..N)
            .map(|i| match which[i] & 3 {
                0 => a[i] + b[i],
                1 => a[i] - b[i],
                2 => a[i] * b[i],
                _ => a[i].max(b[i]),
            })
            .collect();
        let (dwhich, da, db) = (gpu.upload(&which), gpu.upload(&a), gpu.upload(&b));
        let out = gpu.zeroed::<i32>(N);
        gpu.launch("call_by_pointer", blocks(N, 128), 128, 0, args![dwhich, da, db, out, N as i32]);
        equal("by pointer", &gpu.download(out), &want);
    }
    {
        let sizes: Vec<f32> = random.reals(64, 0.0, 4.0);
        let want: Vec<f32> =
            (0..).zip(&sizes).map(|(i, s)| if i % 3 == 0 { 3.0 * s * s } else { s * 2.0 }).collect();
        let (din, out) = (gpu.upload(&sizes), gpu.zeroed::<f32>(64));
        gpu.launch("virtual_calls", 1, 64, 0, args![din, out]);
        equal("virtual", &gpu.download(out), &want);
    }
    {
        let values: Vec<f32> = random.reals(64, 0.0, 1.0);
        let want: Vec<f64> = (0..)
            .zip(&values)
            .flat_map(|(i, value)| {
                let i = f64::from(i);
                let added = [i, 0.5, 0.25, 2f64.powi(40), -i, f64::from(97.0 + value)];
                let last = [1.0, 2.0, 3.0, 4.0, 5.0, 0.0];
                let r: [f64; 6] = std::array::from_fn(|k| i * 10.0 + k as f64 + added[k] + last[k]);
                [r[0], r[1], r[2], r[3], r[4], r[5], 2.0 * r[0]]
            })
            .collect();
        let (din, out) = (gpu.upload(&values), gpu.zeroed::<f64>(want.len()));
        gpu.launch("many_arguments", 1, 64, 0, args![din, out]);
        near("many arguments", &gpu.download(out), &want, 1e-7, 0.0);
    }
    let factors: Vec<i32> = (0..64).map(|_| random.below(20) as i32).collect();
    let want: Vec<i32> = (0..)
        .zip(&factors)
        .map(|(i, factor)| {
            let product = (0..i % 7).fold(1, |v, k| v * factor + k);
            product + (0..3).fold(*factor, |v, k| v ^ (k << 3))
        })
        .collect();
    let (din, out) = (gpu.upload(&factors), gpu.zeroed::<i32>(64));
    gpu.launch("lambdas", 1, 64, 0, args![din, out]);
    equal("lambdas", &gpu.download(out), &want);
}

/// Tests `clamp_all<T, 3>`, with T by its letter in mangled names.
fn clamp<T: Pod + PartialOrd + Debug + Argument>(gpu: &mut Gpu, letter: &str, values: &[T], low: T, high: T) {
    let kernel = format!("_Z9clamp_allI{letter}Li3EEvPKT_PS0_iS0_S0_");
    let (din, dout) = (gpu.upload(values), gpu.zeroed::<T>(values.len()));
    gpu.launch(&kernel, 4, 64, 0, args![din, dout, values.len() as i32, low, high]);
    let limited = |v: &T| {
        if *v < low {
            low
        } else if *v > high {
            high
        } else {
            *v
        }
    };
    equal(&kernel, &gpu.download(dout), &values.iter().map(limited).collect::<Vec<T>>());
}

fn ackermann(m: i32, n: i32) -> i32 {
    match (m, n) {
        (0, _) => n + 1,
        (_, 0) => ackermann(m - 1, 1),
        _ => ackermann(m - 1, ackermann(m, n - 1)),
    }
}
