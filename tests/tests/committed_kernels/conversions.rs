//! Tests conversions between integers of all widths, f32 and f64.

use crate::check::{Random, blocks, equal};
use hipr_tests::{Gpu, args};

const N: usize = 1500;

/// Returns values of many magnitudes up to 2^30, beginning with `first`.
fn magnitudes(random: &mut Random, first: &[f64]) -> Vec<f64> {
    let mut some = || random.real(-1.0, 1.0) * 2f64.powi(random.below(33) as i32 - 2);
    first.iter().copied().chain(std::iter::from_fn(|| Some(some()))).take(N).collect()
}

pub(crate) fn conversions(gpu: &mut Gpu) {
    let mut random = Random(24);
    {
        let edges = [0.0, -0.0, 2_147_483_520.0, -2_147_483_648.0, 0.999_999_94, -0.999_999_94];
        let x: Vec<f32> = magnitudes(&mut random, &edges).iter().map(|x| *x as f32).collect();
        let want: Vec<i64> = x
            .iter()
            .flat_map(|x| {
                let a = x.abs();
                [
                    i64::from(*x as i32),
                    i64::from(a as u32),
                    (x * 4e8) as i64,
                    (a * 8e8) as u64 as i64,
                    i64::from(*x as i32 as i16),
                    i64::from(a as i32 as u8),
                    i64::from(x.to_bits() as i32),
                    f64::from(*x).to_bits() as i64,
                ]
            })
            .collect();
        let (dx, dout) = (gpu.upload(&x), gpu.zeroed::<i64>(want.len()));
        gpu.launch("from_f32", blocks(N, 128), 128, 0, args![dx, dout, N as i32]);
        equal("from f32", &gpu.download(dout), &want);
    }
    {
        let edges = [
            0.0,
            -0.0,
            2_147_483_647.0,
            -2_147_483_648.0,
            0.5,
            1.5,
            2.5,
            -2.5,
            1e-300,
            1e-40,
            1.0 + 2f64.powi(-24),
        ];
        let x = magnitudes(&mut random, &edges);
        let want: Vec<i64> = x
            .iter()
            .flat_map(|x| {
                let a = x.abs();
                [
                    i64::from(*x as i32),
                    i64::from(a as u32),
                    (x * 4e9) as i64,
                    (a * 8e9) as u64 as i64,
                    i64::from((*x as f32).to_bits() as i32),
                    i64::from((x.to_bits() >> 32) as i32),
                    i64::from(x.to_bits() as i32),
                    i64::from(x.round_ties_even() as i32),
                ]
            })
            .collect();
        let (dx, dout) = (gpu.upload(&x), gpu.zeroed::<i64>(want.len()));
        gpu.launch("from_f64", blocks(N, 128), 128, 0, args![dx, dout, N as i32]);
        equal("from f64", &gpu.download(dout), &want);
    }
    from_integers(gpu, &mut random);

    // Out of range: what the conversion instructions give.
    let x = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3e9, -3e9, 5e9, -1.0, 1e30, 2_147_483_648.0, 0.5];
    let (dx, dout, dunsigned) = (gpu.upload(&x), gpu.zeroed::<i32>(10), gpu.zeroed::<u32>(10));
    gpu.launch("saturating", 1, 64, 0, args![dx, dout, dunsigned, 10i32]);
    let (low, high) = (i32::MIN, i32::MAX);
    equal("saturating", &gpu.download(dout), &[0, high, low, high, low, high, -1, high, high, 0]);
    let high = u32::MAX;
    let want = [0, high, 0, 3_000_000_000, 0, high, 0, high, 1 << 31, 0];
    equal("saturating unsigned", &gpu.download(dunsigned), &want);
}

fn from_integers(gpu: &mut Gpu, random: &mut Random) {
    let edges =
        [0, -1, i64::MAX, i64::MIN, (1 << 53) + 1, (1 << 24) + 1, (1 << 54) + 2, (1 << 62) + (1 << 38) + 1];
    let mut some = || random.u64() as i64 >> random.below(64);
    let v: Vec<i64> = edges.into_iter().chain(std::iter::from_fn(|| Some(some()))).take(N).collect();
    let (mut want, mut wantf) = (Vec::new(), Vec::new());
    for v in &v {
        let unsigned = *v as u64;
        want.extend([
            *v as f64,
            unsigned as f64,
            f64::from(*v as i32),
            f64::from(*v as u32),
            f64::from_bits(unsigned & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000),
            f64::from((v >> 8) as u8) + f64::from(*v as i8),
        ]);
        wantf.extend([
            *v as f32,
            unsigned as f32,
            *v as i32 as f32,
            *v as u32 as f32,
            f32::from((v >> 16) as u8),
            f32::from(*v as i16),
        ]);
    }
    let (dv, dout, doutf) = (gpu.upload(&v), gpu.zeroed::<f64>(6 * N), gpu.zeroed::<f32>(6 * N));
    gpu.launch("from_integers", blocks(N, 128), 128, 0, args![dv, dout, doutf, N as i32]);
    equal("to f64", &gpu.download(dout), &want);
    equal("to f32", &gpu.download(doutf), &wantf);
}
