//! Tests element-wise operations, matrix products and transposes.

use crate::check::{Random, blocks, equal, near};
use bytemuck::Pod;
use hipr_tests::{Argument, Gpu, args};
use std::fmt::Debug;

pub(crate) fn saxpy(gpu: &mut Gpu) {
    const N: usize = 1 << 14;
    let mut random = Random(2);
    let (x, y): (Vec<f32>, Vec<f32>) = (random.reals(N, -4.0, 4.0), random.reals(N, -4.0, 4.0));
    let (dx, dy) = (gpu.upload(&x), gpu.upload(&y));
    let factors = [2.5f32, -0.125, 3.0];
    for a in factors {
        gpu.launch("saxpy", blocks(N, 256), 256, 0, args![a, dx, dy, N as u32]);
    }
    let want: Vec<f32> =
        x.iter().zip(&y).map(|(x, y)| factors.iter().fold(*y, |y, a| a.mul_add(*x, y))).collect();
    near("saxpy", &gpu.download(dy), &want, 1e-6, 1e-5);

    let (x, y): (Vec<f64>, Vec<f64>) = (random.reals(N, -4.0, 4.0), random.reals(N, -4.0, 4.0));
    let (dx, dy) = (gpu.upload(&x), gpu.upload(&y));
    let third = 1.0f64 / 3.0;
    gpu.launch("daxpy", blocks(N, 64), 64, 0, args![third, dx, dy, N as u32]);
    let want: Vec<f64> = x.iter().zip(&y).map(|(x, y)| third.mul_add(*x, *y)).collect();
    near("daxpy", &gpu.download(dy), &want, 1e-15, 1e-15);
}

pub(crate) fn vector_add(gpu: &mut Gpu) {
    const N: usize = 10_007;
    let mut random = Random(1);
    let all = blocks(N, 256);
    let (a, b) = (random.bits(N), random.bits(N));
    add(gpu, "add_i32", (all, 256), &a, &b, i32::wrapping_add, &(N as i32));
    let (a, b) = (random.reals(N, -1e3, 1e3), random.reals(N, -1.0, 1.0));
    add(gpu, "add_f32", (7, 192), &a, &b, |a: f32, b| a + b, &(N as i32));
    let (a, b) = (random.bits(N), random.bits(N));
    add(gpu, "add_i64", (all, 256), &a, &b, i64::wrapping_add, &(N as u64));
    let (a, b) = (random.reals(N, -1e3, 1e3), random.reals(N, -1e-3, 1e-3));
    add(gpu, "add_f64", (all, 256), &a, &b, |a: f64, b| a + b, &(N as i32));
}

fn add<T: Pod + Debug>(
    gpu: &mut Gpu,
    kernel: &str,
    (grid, block): (u32, u32),
    a: &[T],
    b: &[T],
    sum: impl Fn(T, T) -> T,
    n: &impl Argument,
) {
    let (da, db, dc) = (gpu.upload(a), gpu.upload(b), gpu.zeroed::<T>(a.len()));
    gpu.launch(kernel, grid, block, 0, &[da.bytes(), db.bytes(), dc.bytes(), n.bytes()]);
    let want: Vec<T> = a.iter().zip(b).map(|(a, b)| sum(*a, *b)).collect();
    equal(kernel, &gpu.download(dc), &want);
}

/// Computes c (m by n) = a (m by k) * b (k by n).
fn product(a: &[f32], b: &[f32], n: usize, k: usize) -> Vec<f64> {
    let dot = |row: &[f32], j: usize| -> f64 {
        row.iter().enumerate().map(|(l, a)| f64::from(*a) * f64::from(b[l * n + j])).sum()
    };
    a.chunks(k).flat_map(|row| (0..n).map(move |j| dot(row, j))).collect()
}

pub(crate) fn matmul(gpu: &mut Gpu) {
    let mut random = Random(4);
    {
        let (m, n, k) = (70, 90, 53);
        let (a, b): (Vec<f32>, Vec<f32>) = (random.reals(m * k, -1.0, 1.0), random.reals(k * n, -1.0, 1.0));
        let want = product(&a, &b, n, k);
        let (da, db, dc) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<f32>(m * n));
        let sizes = (m as i32, n as i32, k as i32);
        let args = args![da, db, dc, sizes.0, sizes.1, sizes.2];
        gpu.launch("matmul_tiled", (blocks(n, 16), blocks(m, 16)), (16, 16), 0, args);
        near("tiled with edges", &gpu.download(dc), &want, 1e-5, 1e-5);
        gpu.fill(dc, 0xff);
        let args = args![da, db, dc, sizes.0, sizes.1, sizes.2];
        gpu.launch("matmul_plain", (blocks(n, 32), blocks(m, 4)), (32, 4), 0, args);
        near("plain", &gpu.download(dc), &want, 1e-5, 1e-5);
    }
    {
        const N: usize = 96;
        let (a, b): (Vec<f32>, Vec<f32>) = (random.reals(N * N, -1.0, 1.0), random.reals(N * N, -1.0, 1.0));
        let want = product(&a, &b, N, N);
        let (da, db, dc) = (gpu.upload(&a), gpu.upload(&b), gpu.zeroed::<f32>(N * N));
        let n = N as i32;
        gpu.launch("matmul_tiled", (N as u32 / 16, N as u32 / 16), (16, 16), 0, args![da, db, dc, n, n, n]);
        near("tiled", &gpu.download(dc), &want, 1e-5, 1e-5);
        gpu.fill(dc, 0xff);
        gpu.launch("matmul_blocked", (N as u32 / 32, N as u32 / 32), (8, 8), 0, args![da, db, dc, n, n]);
        near("blocked", &gpu.download(dc), &want, 1e-5, 1e-5);
    }
}

const WIDTH: usize = 150;
const HEIGHT: usize = 97;

pub(crate) fn transpose(gpu: &mut Gpu) {
    const LEN: usize = WIDTH * HEIGHT;
    let mut random = Random(5);
    transposed(gpu, "transpose_f32", (32, 32), (32, 8), &random.reals::<f32>(LEN, -1.0, 1.0));
    transposed(gpu, "transpose_u64", (16, 16), (16, 16), &random.bits::<u64>(LEN));
    let vectors = random.reals::<f32>(4 * LEN, -1.0, 1.0);
    transposed::<[f32; 4]>(gpu, "transpose_f32x4", (64, 1), (64, 1), bytemuck::cast_slice(&vectors));
}

fn transposed<T: Pod + Debug>(
    gpu: &mut Gpu,
    kernel: &str,
    tile: (usize, usize),
    block: (u32, u32),
    values: &[T],
) {
    let (din, dout) = (gpu.upload(values), gpu.filled::<T>(values.len(), 0xff));
    let grid = (blocks(WIDTH, tile.0), blocks(HEIGHT, tile.1));
    gpu.launch(kernel, grid, block, 0, args![din, dout, WIDTH as i32, HEIGHT as i32]);
    let column = |x: usize| (0..HEIGHT).map(move |y| values[y * WIDTH + x]);
    equal(kernel, &gpu.download(dout), &(0..WIDTH).flat_map(column).collect::<Vec<T>>());
}
