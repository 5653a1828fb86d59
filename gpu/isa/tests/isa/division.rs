//! The instruction sequences that compilers emit for division give what IEEE 754 says, to the bit.

use crate::bench::{Bench, Random};

/// Instructions for v3 = v1 / v2 in 32 bits.
const DIVIDE_F32: &[u32] = &[
    0xd1e0000a, 0x04060502, // v_div_scale_f32 v10, s[0:1], v2, v2, v1
    0x7e16450a, // v_rcp_f32_e32 v11, v10
    0xd1cb000c, 0x23ca170a, // v_fma_f32 v12, -v10, v11, 1.0
    0x7616170c, // v_fmac_f32_e32 v11, v12, v11
    0xd1e06a0c, 0x04060501, // v_div_scale_f32 v12, vcc, v1, v2, v1
    0x0a1a170c, // v_mul_f32_e32 v13, v12, v11
    0xd1cb000e, 0x24321b0a, // v_fma_f32 v14, -v10, v13, v12
    0x761a170e, // v_fmac_f32_e32 v13, v14, v11
    0xd1cb000a, 0x24321b0a, // v_fma_f32 v10, -v10, v13, v12
    0xd1e2000a, 0x0436170a, // v_div_fmas_f32 v10, v10, v11, v13
    0xd1de0003, 0x0406050a, // v_div_fixup_f32 v3, v10, v2, v1
];

/// Instructions for v[6:7] = v[2:3] / v[4:5] in 64 bits.
const DIVIDE_F64: &[u32] = &[
    0xd1e1000a, 0x040a0904, // v_div_scale_f64 v[10:11], s[0:1], v[4:5], v[4:5], v[2:3]
    0x7e184b0a, // v_rcp_f64_e32 v[12:13], v[10:11]
    0xd1cc000e, 0x23ca190a, // v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
    0x08181d0c, // v_fmac_f64_e32 v[12:13], v[12:13], v[14:15]
    0xd1cc000e, 0x23ca190a, // v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0
    0x08181d0c, // v_fmac_f64_e32 v[12:13], v[12:13], v[14:15]
    0xd1e16a0e, 0x040a0902, // v_div_scale_f64 v[14:15], vcc, v[2:3], v[4:5], v[2:3]
    0xd2810010, 0x0002190e, // v_mul_f64 v[16:17], v[14:15], v[12:13]
    0xd1cc000a, 0x243a210a, // v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]
    0xd1e3000a, 0x0442190a, // v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]
    0xd1df0006, 0x040a090a, // v_div_fixup_f64 v[6:7], v[10:11], v[4:5], v[2:3]
];

const SPECIAL_F32: [f32; 16] = [
    0.0,
    -0.0,
    1.0,
    -3.0,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MAX,
    -f32::MAX,
    f32::MIN_POSITIVE,
    1e-45,
    -1e-45,
    1e-40,
    1.7e38,
    0.333_333_34,
    8.507_059e37,
];

fn check_f32(bench: &mut Bench, numerators: [f32; 64], denominators: [f32; 64]) {
    bench.fill(1, |lane| numerators[lane].to_bits());
    bench.fill(2, |lane| denominators[lane].to_bits());
    bench.run(DIVIDE_F32);
    for lane in 0..64 {
        let (n, d) = (numerators[lane], denominators[lane]);
        let (got, expected) = (f32::from_bits(bench.wave.row(3)[lane]), n / d);
        assert!(
            got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
            "{n:e} / {d:e} ({:#x} / {:#x}) is {expected:e}, not {got:e}",
            n.to_bits(),
            d.to_bits()
        );
    }
}

fn check_f64(bench: &mut Bench, numerators: [f64; 64], denominators: [f64; 64]) {
    bench.fill64(2, |lane| numerators[lane].to_bits());
    bench.fill64(4, |lane| denominators[lane].to_bits());
    bench.run(DIVIDE_F64);
    let results = bench.row64(6);
    for lane in 0..64 {
        let (n, d) = (numerators[lane], denominators[lane]);
        let (got, expected) = (f64::from_bits(results[lane]), n / d);
        assert!(
            got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
            "{n:e} / {d:e} ({:#x} / {:#x}) is {expected:e}, not {got:e}",
            n.to_bits(),
            d.to_bits()
        );
    }
}

#[test]
fn special_operands() {
    let mut bench = Bench::default();
    for n in SPECIAL_F32 {
        check_f32(&mut bench, [n; 64], std::array::from_fn(|lane| SPECIAL_F32[lane % 16]));
    }
    let special: [f64; 16] = SPECIAL_F32.map(|x| match x {
        f32::MAX => f64::MAX,
        1e-45 => 5e-324,
        1e-40 => 1e-310,
        x => f64::from(x),
    });
    for n in special {
        check_f64(&mut bench, [n; 64], std::array::from_fn(|lane| special[lane % 16]));
    }
}

#[test]
fn any_bits_f32() {
    let mut bench = Bench::default();
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let n = std::array::from_fn(|_| f32::from_bits(random.u32()));
        let d = std::array::from_fn(|_| f32::from_bits(random.u32()));
        check_f32(&mut bench, n, d);
    }
}

/// Quotients that are denormals, have few bits, or lie near the middle between two representable numbers.
#[test]
fn hard_quotients_f32() {
    let mut bench = Bench::default();
    let mut random = Random::new(2);
    for _ in 0..20_000 {
        let d: [f32; 64] = std::array::from_fn(|_| f32::from_bits(random.u32() & 0x7fff_ffff))
            .map(|d: f32| if d.is_finite() { d } else { 3.0 });
        let n = d.map(|d| {
            let short = f64::from(random.u32() >> (random.u32() % 32))
                * 2f64.powi(-(random.u32() as i32 % 170).abs());
            let nudge = (random.u32() % 3) as i32 - 1;
            let product = (f64::from(d) * short) as f32;
            f32::from_bits((product.to_bits() as i32 + nudge).max(0) as u32)
        });
        check_f32(&mut bench, n, d);
    }
}

#[test]
fn any_bits_f64() {
    let mut bench = Bench::default();
    let mut random = Random::new(3);
    for _ in 0..10_000 {
        let n = std::array::from_fn(|_| f64::from_bits(random.u64()));
        let d = std::array::from_fn(|_| f64::from_bits(random.u64()));
        check_f64(&mut bench, n, d);
    }
}

#[test]
fn hard_quotients_f64() {
    let mut bench = Bench::default();
    let mut random = Random::new(4);
    for _ in 0..10_000 {
        let d: [f64; 64] = std::array::from_fn(|_| {
            let exponent = 900 + random.u64() % 1100;
            f64::from_bits(exponent << 52 | random.u64() >> 12)
        });
        let n = d.map(|d| {
            let short = (random.u64() >> (random.u32() % 60)) as f64;
            let scaled = short * 2f64.powi(-(random.u32() as i32 % 1020).abs());
            let product = d * scaled * if random.u32().is_multiple_of(2) { 1.0 } else { 2f64.powi(-100) };
            let nudge = (random.u32() % 3) as i64 - 1;
            f64::from_bits((product.to_bits() as i64 + nudge).max(0) as u64)
        });
        check_f64(&mut bench, n, d);
    }
}
