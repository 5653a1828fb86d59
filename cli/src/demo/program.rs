//! The demo's HIP program: a process of its own that does not know hipr. It opens libamdhip64.so as any HIP program does,
//! launches the kernels of `demo/kernels.hip` and compares each result with the CPU.

use super::report::{CaseReport, ProgramReport};
use hip_sys::{DeviceBuffer, Hip, Module};
use std::ffi::c_void;
use std::ptr::from_mut;
use std::time::Instant;

/// `demo/kernels.hip`, compiled by hipcc for gfx942; `demo/build.sh` rebuilds it.
static KERNELS: &[u8] = include_bytes!("../../demo/kernels.co");

/// The result of a case: the largest error against the CPU, and the largest acceptable error.
struct Checked {
    size: String,
    max_error: f64,
    tolerance: f64,
}

type CaseResult = Result<Checked, hip_sys::Error>;
type Case = fn(&Hip, &Module<'_>) -> CaseResult;

/// The cases: the name of a kernel, and the function that runs and checks it.
const CASES: &[(&str, Case)] = &[
    ("saxpy", saxpy),
    ("reduce_sum", reduce_sum),
    ("matmul", matmul),
    ("softmax", softmax),
    ("histogram", histogram),
    ("mandelbrot", mandelbrot),
    ("hash64", hash64),
    ("nbody", nbody),
];

/// Runs every case with the HIP library that the loader finds.
pub(crate) fn run() -> Result<ProgramReport, Box<dyn std::error::Error>> {
    let hip = Hip::load()?;
    let device = hip.device_name(0)?;
    let module = hip.module(KERNELS)?;
    let mut cases = Vec::new();
    for (kernel, case) in CASES {
        let start = Instant::now();
        let checked = case(&hip, &module).map_err(|why| format!("{kernel}: {why}"))?;
        cases.push(CaseReport {
            kernel: (*kernel).into(),
            size: checked.size,
            max_error: checked.max_error,
            tolerance: checked.tolerance,
            elapsed_ms: start.elapsed().as_secs_f64() * 1e3,
        });
    }
    Ok(ProgramReport { device, library: hip.path().display().to_string(), cases })
}

/// A SplitMix64 generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number that is uniform in [-1, 1).
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    fn units(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.unit()).collect()
    }
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn arg<T>(value: &mut T) -> *mut c_void {
    from_mut(value).cast()
}

fn pointer<T: bytemuck::Pod>(buffer: &DeviceBuffer<'_, T>) -> *mut c_void {
    buffer.pointer()
}

fn launch(
    module: &Module<'_>,
    kernel: &str,
    grid: [u32; 3],
    block: [u32; 3],
    args: &mut [*mut c_void],
) -> Result<(), hip_sys::Error> {
    let function = module.function(kernel)?;
    // SAFETY: each case passes one value per parameter of its kernel in demo/kernels.hip, and buffers of the
    // sizes that the kernel indexes.
    unsafe { function.launch(grid, block, 0, args) }
}

/// Returns the largest absolute difference; a NaN counts as infinite.
fn max_error(got: impl IntoIterator<Item = f64>, expected: impl IntoIterator<Item = f64>) -> f64 {
    got.into_iter()
        .zip(expected)
        .map(|(g, e)| (g - e).abs())
        .fold(0.0, |worst, error| if error.is_nan() { f64::INFINITY } else { worst.max(error) })
}

/// Returns the number of unequal elements.
fn mismatches<T: PartialEq>(got: &[T], expected: &[T]) -> f64 {
    got.iter().zip(expected).filter(|(g, e)| g != e).count() as f64
        + got.len().abs_diff(expected.len()) as f64
}

fn saxpy(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const LEN: usize = 1 << 18;
    let mut random = Random(1);
    let (x, y) = (random.units(LEN), random.units(LEN));
    let (device_x, device_y) = (hip.upload(&x)?, hip.upload(&y)?);
    let (mut a, mut px, mut py, mut n) = (2.5f32, pointer(&device_x), pointer(&device_y), LEN as u32);
    let args = &mut [arg(&mut a), arg(&mut px), arg(&mut py), arg(&mut n)];
    launch(module, "saxpy", [LEN as u32 / 256, 1, 1], [256, 1, 1], args)?;
    let expected = x.iter().zip(&y).map(|(x, y)| f64::from(a) * f64::from(*x) + f64::from(*y));
    let error = max_error(device_y.download()?.into_iter().map(f64::from), expected);
    Ok(Checked { size: format!("{LEN} floats"), max_error: error, tolerance: 1e-6 })
}

fn reduce_sum(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const LEN: usize = 200_000;
    let mut random = Random(2);
    let x: Vec<u32> = (0..LEN).map(|_| random.next() as u32).collect();
    let (device_x, total) = (hip.upload(&x)?, hip.zeroed::<u32>(1)?);
    let (mut px, mut pt, mut n) = (pointer(&device_x), pointer(&total), LEN as u32);
    let args = &mut [arg(&mut px), arg(&mut pt), arg(&mut n)];
    launch(module, "reduce_sum", [LEN.div_ceil(256) as u32, 1, 1], [256, 1, 1], args)?;
    let expected = x.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    let error = mismatches(&total.download()?, &[expected]);
    Ok(Checked { size: format!("{LEN} integers"), max_error: error, tolerance: 0.0 })
}

fn matmul(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const N: usize = 128;
    let mut random = Random(3);
    let (a, b) = (random.units(N * N), random.units(N * N));
    let (device_a, device_b, device_c) = (hip.upload(&a)?, hip.upload(&b)?, hip.zeroed::<f32>(N * N)?);
    let (mut pa, mut pb, mut pc, mut n) =
        (pointer(&device_a), pointer(&device_b), pointer(&device_c), N as u32);
    let args = &mut [arg(&mut pa), arg(&mut pb), arg(&mut pc), arg(&mut n)];
    launch(module, "matmul", [N as u32 / 16, N as u32 / 16, 1], [16, 16, 1], args)?;
    let expected = (0..N * N).map(|i| {
        let (row, column) = (i / N, i % N);
        (0..N).map(|k| f64::from(a[row * N + k]) * f64::from(b[k * N + column])).sum::<f64>()
    });
    let error = max_error(device_c.download()?.into_iter().map(f64::from), expected);
    Ok(Checked { size: format!("{N} x {N} floats"), max_error: error, tolerance: 1e-4 })
}

fn softmax(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const ROWS: usize = 64;
    const COLUMNS: usize = 1000;
    let x: Vec<f32> = Random(4).units(ROWS * COLUMNS).iter().map(|x| x * 8.0).collect();
    let (device_x, device_y) = (hip.upload(&x)?, hip.zeroed::<f32>(ROWS * COLUMNS)?);
    let (mut px, mut py, mut columns) = (pointer(&device_x), pointer(&device_y), COLUMNS as u32);
    let args = &mut [arg(&mut px), arg(&mut py), arg(&mut columns)];
    launch(module, "softmax", [ROWS as u32, 1, 1], [64, 1, 1], args)?;
    let expected = x.chunks(COLUMNS).flat_map(|row| {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let powers: Vec<f64> = row.iter().map(|x| f64::from(x - top).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |power| power / sum)
    });
    let error = max_error(device_y.download()?.into_iter().map(f64::from), expected);
    Ok(Checked { size: format!("{ROWS} rows of {COLUMNS} floats"), max_error: error, tolerance: 1e-6 })
}

fn histogram(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const LEN: usize = 100_000;
    let mut random = Random(5);
    let data: Vec<u8> = (0..LEN).map(|_| (random.next() & random.next()) as u8).collect();
    let (device_data, bins) = (hip.upload(&data)?, hip.zeroed::<u32>(256)?);
    let (mut pd, mut pb, mut n) = (pointer(&device_data), pointer(&bins), LEN as u32);
    let args = &mut [arg(&mut pd), arg(&mut pb), arg(&mut n)];
    launch(module, "histogram", [32, 1, 1], [256, 1, 1], args)?;
    let mut expected = vec![0u32; 256];
    data.iter().for_each(|&byte| expected[usize::from(byte)] += 1);
    let error = mismatches(&bins.download()?, &expected);
    Ok(Checked { size: format!("{LEN} bytes"), max_error: error, tolerance: 0.0 })
}

fn mandelbrot(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const WIDTH: u32 = 160;
    const HEIGHT: u32 = 120;
    const LIMIT: u32 = 200;
    let image = hip.zeroed::<u32>((WIDTH * HEIGHT) as usize)?;
    let (mut pi, mut width, mut height, mut limit) = (pointer(&image), WIDTH, HEIGHT, LIMIT);
    let args = &mut [arg(&mut pi), arg(&mut width), arg(&mut height), arg(&mut limit)];
    launch(module, "mandelbrot", [WIDTH / 16, HEIGHT / 8, 1], [16, 8, 1], args)?;
    // hipcc contracts `a * b + c` into fused operations, the CPU side does not: a pixel on the edge of the set
    // may leave it a few iterations apart, so what is compared is how many pixels differ.
    let expected: Vec<u32> = (0..WIDTH * HEIGHT)
        .map(|i| {
            let (cx, cy) = (
                -2.0 + 2.5 * f64::from(i % WIDTH) / f64::from(WIDTH),
                -1.25 + 2.5 * f64::from(i / WIDTH) / f64::from(HEIGHT),
            );
            let (mut x, mut y, mut n) = (0.0f64, 0.0f64, 0);
            while n < LIMIT && x * x + y * y <= 4.0 {
                (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
                n += 1;
            }
            n
        })
        .collect();
    let error = mismatches(&image.download()?, &expected) / f64::from(WIDTH * HEIGHT);
    Ok(Checked { size: format!("{WIDTH} x {HEIGHT} doubles"), max_error: error, tolerance: 0.01 })
}

fn hash64(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const LEN: usize = 50_000;
    let mut random = Random(6);
    let x: Vec<u64> = (0..LEN).map(|_| random.next()).collect();
    let (device_x, device_y) = (hip.upload(&x)?, hip.zeroed::<u64>(LEN)?);
    let (mut px, mut py, mut n) = (pointer(&device_x), pointer(&device_y), LEN as u32);
    let args = &mut [arg(&mut px), arg(&mut py), arg(&mut n)];
    launch(module, "hash64", [LEN.div_ceil(256) as u32, 1, 1], [256, 1, 1], args)?;
    let expected: Vec<u64> = x.iter().map(|x| mix(x.wrapping_add(0x9e37_79b9_7f4a_7c15))).collect();
    let error = mismatches(&device_y.download()?, &expected);
    Ok(Checked { size: format!("{LEN} 64-bit integers"), max_error: error, tolerance: 0.0 })
}

fn nbody(hip: &Hip, module: &Module<'_>) -> CaseResult {
    const BODIES: usize = 256;
    let bodies: Vec<[f32; 4]> =
        Random(7).units(BODIES * 4).chunks(4).map(|b| [b[0], b[1], b[2], b[3].abs()]).collect();
    let (device_bodies, acceleration) = (hip.upload(&bodies)?, hip.zeroed::<[f32; 4]>(BODIES)?);
    let (mut pb, mut pa, mut n) = (pointer(&device_bodies), pointer(&acceleration), BODIES as u32);
    let args = &mut [arg(&mut pb), arg(&mut pa), arg(&mut n)];
    launch(module, "nbody", [BODIES.div_ceil(128) as u32, 1, 1], [128, 1, 1], args)?;
    let expected = bodies.iter().flat_map(|me| {
        let mut sum = [0.0f64; 4];
        for other in &bodies {
            let d: Vec<f64> = (0..3).map(|k| f64::from(other[k]) - f64::from(me[k])).collect();
            let scale = f64::from(other[3]) * (d.iter().map(|d| d * d).sum::<f64>() + 0.01).powf(-1.5);
            (0..3).for_each(|k| sum[k] += d[k] * scale);
        }
        sum
    });
    let got = acceleration.download()?;
    let scale = got.iter().flatten().map(|a| f64::from(a.abs())).fold(1.0, f64::max);
    let error = max_error(got.into_iter().flatten().map(f64::from), expected) / scale;
    Ok(Checked { size: format!("{BODIES} bodies"), max_error: error, tolerance: 1e-5 })
}
