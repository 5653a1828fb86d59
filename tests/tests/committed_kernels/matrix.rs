//! Tests matrix instructions: products of small matrices of all element types, one wave each.

use crate::check::{Random, near};
use bytemuck::Pod;
use hipr_tests::{Gpu, args};

/// Columns of a, and rows of b, which is passed transposed.
const K: usize = 64;

/// Launches `kernel` for a (m by K) times b (K by m) and compares with the product in f64 of the elements' values.
fn product<T: Pod, C: Pod + Into<f64>>(
    gpu: &mut Gpu,
    kernel: &str,
    m: usize,
    mut element: impl FnMut() -> T,
    value: impl Fn(T) -> f64,
    tolerance: f64,
) {
    let mut matrix = || (0..m * K).map(|_| element()).collect::<Vec<T>>();
    let (a, b) = (matrix(), matrix());
    let values = |matrix: &[T]| matrix.iter().map(|element| value(*element)).collect::<Vec<f64>>();
    let (wide_a, wide_b) = (values(&a), values(&b));
    let dot = |row: &[f64], column: &[f64]| row.iter().zip(column).map(|(x, y)| x * y).sum::<f64>();
    let want: Vec<f64> =
        wide_a.chunks(K).flat_map(|row| wide_b.chunks(K).map(move |column| dot(row, column))).collect();
    let (da, db, dc) = (gpu.upload(&a), gpu.upload(&b), gpu.filled::<C>(m * m, 0xff));
    gpu.launch(kernel, 1, 64, 0, args![da, db, dc, K as i32]);
    near(kernel, &gpu.download(dc), &want, tolerance, tolerance);
}

pub(crate) fn matrix_cores(gpu: &mut Gpu) {
    let mut random = Random(37);
    for (kernel, m) in [("mfma_f32_16", 16), ("mfma_f32_32", 32)] {
        let element = || random.real(-1.0, 1.0) as f32;
        product::<f32, f32>(gpu, kernel, m, element, f64::from, 1e-5);
    }
    // Ten bits of mantissa.
    let element = || random.real(-1.0, 1.0) as f32;
    product::<f32, f32>(gpu, "mfma_xf32_16", 16, element, f64::from, 2e-2);
    product::<f64, f64>(gpu, "mfma_f64_16", 16, || random.real(-1.0, 1.0), |v| v, 1e-13);
    for (kernel, m) in [("mfma_f16_16", 16), ("mfma_f16_32", 32)] {
        // Sixteen bits: sign, exponents of 2^-14 to 2^-1, mantissa.
        let element = || (random.below(2) << 15 | (1 + random.below(14)) << 10 | random.below(1024)) as u16;
        let value = |bits: u16| {
            let magnitude = f64::from(1024 + (bits & 1023)) * 2f64.powi(i32::from(bits >> 10 & 31) - 25);
            if bits >> 15 == 0 { magnitude } else { -magnitude }
        };
        product::<u16, f32>(gpu, kernel, m, element, value, 1e-5);
    }
    for (kernel, m) in [("mfma_i8_16", 16), ("mfma_i8_32", 32)] {
        product::<i8, i32>(gpu, kernel, m, || random.u32() as i8, f64::from, 0.0);
    }
    // The upper halves of f32.
    let element = || ((random.real(-1.0, 1.0) as f32).to_bits() >> 16) as u16;
    let value = |bits: u16| f64::from(f32::from_bits(u32::from(bits) << 16));
    product::<u16, f32>(gpu, "mfma_bf16_16", 16, element, value, 1e-5);
    // fp8 of gfx942: sign, 4 bits of exponent with bias 8, 3 of mantissa; 0x80 would be NaN.
    let element = || {
        let bits = (random.below(0x60) | random.u32() & 0x80) as u8;
        if bits == 0x80 { 0 } else { bits }
    };
    let value = |bits: u8| {
        let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
        let (leading, exponent) = if exponent == 0 { (0.0, 1) } else { (8.0, exponent) };
        let magnitude = (leading + mantissa) * 2f64.powi(exponent - 11);
        if bits & 0x80 == 0 { magnitude } else { -magnitude }
    };
    product::<u8, f32>(gpu, "mfma_fp8_16", 16, element, value, 1e-5);
}
