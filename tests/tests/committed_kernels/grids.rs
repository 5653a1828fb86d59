//! Tests kernels that compute pictures, bodies, grids in many steps, and transforms.

use crate::check::{Random, blocks, equal, near};
use hipr_tests::{Gpu, args};
use std::f64::consts::PI;

pub(crate) fn mandelbrot(gpu: &mut Gpu) {
    const WIDTH: usize = 120;
    const HEIGHT: usize = 84;
    const LIMIT: i32 = 96;
    // Additions, subtractions and multiplications only, without contraction: no rounding may differ.
    macro_rules! iterations {
        ($x0:expr, $y0:expr, $step:expr, $real:ty) => {{
            let pixel = |px: usize, py: usize| {
                let (cx, cy) = ($x0 + px as $real * $step, $y0 + py as $real * $step);
                let (mut x, mut y, mut i): ($real, $real, i32) = (0.0, 0.0, 0);
                while i < LIMIT && x * x + y * y <= 4.0 {
                    (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
                    i += 1;
                }
                i
            };
            (0..HEIGHT).flat_map(|py| (0..WIDTH).map(move |px| pixel(px, py))).collect::<Vec<i32>>()
        }};
    }
    let out = gpu.filled::<i32>(WIDTH * HEIGHT, 0xff);
    let grid = (blocks(WIDTH, 16), blocks(HEIGHT, 16));
    let (width, height) = (WIDTH as i32, HEIGHT as i32);
    let (x0, y0, step) = (-2.2f64, -1.2f64, 0.027f64);
    gpu.launch("mandelbrot_f64", grid, (16, 16), 0, args![out, width, height, x0, y0, step, LIMIT]);
    equal("f64", &gpu.download(out), &iterations!(x0, y0, step, f64));
    let (x0, y0, step) = (-0.8f32, -0.2f32, 0.003f32);
    gpu.launch("mandelbrot_f32", grid, (16, 16), 0, args![out, width, height, x0, y0, step, LIMIT]);
    equal("f32", &gpu.download(out), &iterations!(x0, y0, step, f32));
}

pub(crate) fn nbody(gpu: &mut Gpu) {
    const N: usize = 300;
    const STEPS: usize = 2;
    let (step, softening) = (0.01f32, 0.01f32);
    let mut random = Random(10);
    let bodies: Vec<[f32; 4]> = (0..N)
        .map(|_| {
            let mut place = || random.real(-1.0, 1.0) as f32;
            let (x, y, z) = (place(), place(), place());
            [x, y, z, random.real(0.1, 1.0) as f32]
        })
        .collect();
    let (dbodies, dvelocities) = (gpu.upload(&bodies), gpu.zeroed::<[f32; 4]>(N));
    let grid = blocks(N, 128);
    for _ in 0..STEPS {
        let args = args![dbodies, dvelocities, N as i32, step, softening];
        gpu.launch("nbody_accelerate", grid, 128, 0, args);
        gpu.launch("nbody_move", grid, 128, 0, args![dbodies, dvelocities, N as i32, step]);
    }
    let (step, softening) = (f64::from(step), f64::from(softening));
    let mut places: Vec<[f64; 3]> = bodies.iter().map(|b| [b[0], b[1], b[2]].map(f64::from)).collect();
    let mut velocities = vec![[0.0f64; 3]; N];
    for _ in 0..STEPS {
        for (place, velocity) in places.iter().zip(&mut velocities) {
            for (other, body) in places.iter().zip(&bodies) {
                let d: [f64; 3] = std::array::from_fn(|k| other[k] - place[k]);
                let square = softening + d.iter().map(|d| d * d).sum::<f64>();
                let pull = f64::from(body[3]) / (square * square.sqrt());
                (0..3).for_each(|k| velocity[k] += d[k] * pull * step);
            }
        }
        for (place, velocity) in places.iter_mut().zip(&velocities) {
            (0..3).for_each(|k| place[k] += velocity[k] * step);
        }
    }
    let got: Vec<f32> = gpu.download(dbodies).iter().flat_map(|b| [b[0], b[1], b[2]]).collect();
    near("positions", &got, places.as_flattened(), 1e-4, 1e-4);
}

pub(crate) fn stencil(gpu: &mut Gpu) {
    let mut random = Random(27);
    heat(gpu, &mut random);
    life(gpu, &mut random);
    convolution(gpu, &mut random);
    laplace(gpu, &mut random);
}

fn heat(gpu: &mut Gpu, random: &mut Random) {
    const WIDTH: usize = 70;
    const HEIGHT: usize = 50;
    const STEPS: usize = 20;
    let mut cells: Vec<f32> = random.reals(WIDTH * HEIGHT, 0.0, 100.0);
    let (mut from, mut to) = (gpu.upload(&cells), gpu.zeroed::<f32>(cells.len()));
    let grid = (blocks(WIDTH, 16), blocks(HEIGHT, 16));
    for _ in 0..STEPS {
        gpu.launch("heat_step", grid, (16, 16), 0, args![from, to, WIDTH as i32, HEIGHT as i32]);
        (from, to) = (to, from);
        let mut next = cells.clone();
        for i in (1..HEIGHT - 1).flat_map(|y| (1..WIDTH - 1).map(move |x| y * WIDTH + x)) {
            next[i] = 0.25 * (cells[i - 1] + cells[i + 1] + cells[i - WIDTH] + cells[i + WIDTH]);
        }
        cells = next;
    }
    near("heat", &gpu.download(from), &cells, 1e-5, 0.0);
}

fn life(gpu: &mut Gpu, random: &mut Random) {
    const WIDTH: usize = 64;
    const HEIGHT: usize = 48;
    let mut cells: Vec<u8> = (0..WIDTH * HEIGHT).map(|_| u8::from(random.below(3) == 0)).collect();
    let (mut from, mut to) = (gpu.upload(&cells), gpu.filled::<u8>(cells.len(), 0xff));
    for _ in 0..8 {
        let grid = (WIDTH as u32 / 32, HEIGHT as u32 / 8);
        gpu.launch("life_step", grid, (32, 8), 0, args![from, to, WIDTH as i32, HEIGHT as i32]);
        (from, to) = (to, from);
        let at = |x: usize, y: usize| cells[y % HEIGHT * WIDTH + x % WIDTH];
        let step = |x: usize, y: usize| {
            // Three by three cells, wrapped around the edges, the one in the middle among them.
            let square = (0..9).map(|k| at(x + WIDTH - 1 + k % 3, y + HEIGHT - 1 + k / 3)).sum::<u8>();
            u8::from(square == 3 || (square == 4 && at(x, y) == 1))
        };
        cells = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| step(x, y))).collect();
    }
    equal("life", &gpu.download(from), &cells);
}

fn convolution(gpu: &mut Gpu, random: &mut Random) {
    const WIDTH: usize = 75;
    const HEIGHT: usize = 41;
    let values: Vec<f32> = random.reals(WIDTH * HEIGHT, -1.0, 1.0);
    let weights: Vec<f32> = random.reals(9, -1.0, 1.0);
    let variable = gpu.global::<f32>("weights");
    gpu.write(variable, &weights);
    let (din, dout) = (gpu.upload(&values), gpu.filled::<f32>(values.len(), 0xff));
    let grid = (blocks(WIDTH, 16), blocks(HEIGHT, 16));
    gpu.launch("convolve", grid, (16, 16), 0, args![din, dout, WIDTH as i32, HEIGHT as i32]);
    let mut want = vec![0.0f64; values.len()];
    for (y, x) in (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (y, x))) {
        for (k, weight) in weights.iter().enumerate() {
            let (gx, gy) = ((x + k % 3).wrapping_sub(1), (y + k / 3).wrapping_sub(1));
            if gx < WIDTH && gy < HEIGHT {
                want[y * WIDTH + x] += f64::from(values[gy * WIDTH + gx]) * f64::from(*weight);
            }
        }
    }
    near("convolution", &gpu.download(dout), &want, 1e-5, 1e-6);
}

fn laplace(gpu: &mut Gpu, random: &mut Random) {
    const N: usize = 20;
    let values: Vec<f64> = random.reals(N * N * N, -1.0, 1.0);
    let (din, dout) = (gpu.upload(&values), gpu.zeroed::<f64>(values.len()));
    gpu.launch("laplace_3d", (3, 5, 5), (8, 4, 4), 0, args![din, dout, N as i32]);
    let is_inner = |i: usize| [i % N, i / N % N, i / N / N].iter().all(|k| (1..N - 1).contains(k));
    let want: Vec<f64> = (0..values.len())
        .map(|i| {
            if !is_inner(i) {
                return 0.0;
            }
            let around: f64 = [1, N, N * N].iter().map(|step| values[i - step] + values[i + step]).sum();
            around - 6.0 * values[i]
        })
        .collect();
    near("3-D", &gpu.download(dout), &want, 1e-13, 1e-14);
}

/// Computes the discrete Fourier transform by its definition, of re, im, re, im ...
fn transform(values: &[f64]) -> Vec<f64> {
    let n = values.len() / 2;
    let roots: Vec<(f64, f64)> =
        (0..n).map(|k| (-2.0 * PI * k as f64 / n as f64).sin_cos()).map(|(s, c)| (c, s)).collect();
    (0..n)
        .flat_map(|f| {
            let (mut re, mut im) = (0.0, 0.0);
            for (i, value) in values.chunks(2).enumerate() {
                let (c, s) = roots[f * i % n];
                re += value[0] * c - value[1] * s;
                im += value[0] * s + value[1] * c;
            }
            [re, im]
        })
        .collect()
}

pub(crate) fn fft(gpu: &mut Gpu) {
    let mut random = Random(29);
    {
        let values: Vec<f32> = random.reals(4 * 512, -1.0, 1.0);
        let wide: Vec<f64> = values.iter().copied().map(f64::from).collect();
        let data = gpu.upload(&values);
        gpu.launch("fft_block", 4, 128, 0, args![data]);
        let want: Vec<f64> = wide.chunks(512).flat_map(transform).collect();
        near("f32", &gpu.download(data), &want, 1e-5, 5e-5);
    }
    const BITS: u32 = 10;
    const N: u32 = 1 << BITS;
    let values: Vec<f64> = random.reals(2 * N as usize, -1.0, 1.0);
    let roots: Vec<[f64; 2]> = (0..N)
        .map(|k| {
            let (s, c) = (-2.0 * PI * f64::from(k) / f64::from(N)).sin_cos();
            [c, s]
        })
        .collect();
    let (din, droots) = (gpu.upload(&values), gpu.upload(&roots));
    let data = gpu.zeroed::<f64>(values.len());
    gpu.launch("bit_reverse", N / 128, 128, 0, args![din, data, BITS]);
    for stage in 0..BITS {
        gpu.launch("fft_stage", N / 256, 128, 0, args![data, droots, 1u32 << stage, N]);
    }
    near("f64", &gpu.download(data), &transform(&values), 1e-10, 1e-10);
}
