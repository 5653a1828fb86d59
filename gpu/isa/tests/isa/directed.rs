//! Tests of arithmetic in the rounding direction that MODE asks for, against results that the host rounds to nearest.

use hipr_isa::sem::half::F16;
use hipr_isa::sem::rounding::{Rounding, add, convert, fma, ldexp, mul, of_integer, sub};

/// A double that f32 cannot represent is rounded to one of its two neighbours.
#[test]
fn directions_enclose_the_exact_result() {
    let mut bits = 0x0123_4567_89ab_cdefu64;
    for _ in 0..20_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (a, b) = (f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32));
        if !a.is_finite() || !b.is_finite() {
            continue;
        }
        let exact = f64::from(a) * f64::from(b);
        let [down, near, up, zero] = [Rounding::Down, Rounding::Nearest, Rounding::Up, Rounding::Zero]
            .map(|rounding| mul(a, b, rounding));
        assert_eq!(near.to_bits(), (a * b).to_bits(), "{a:e} * {b:e}");
        assert!(f64::from(down) <= exact && exact <= f64::from(up), "{a:e} * {b:e}");
        let neighbours = up.to_bits() == down.to_bits() || up == down.next_up() || down == 0.0 && up == 0.0;
        assert!(neighbours, "{a:e} * {b:e}: {down:e}, {up:e}");
        assert_eq!(zero.to_bits(), if exact < 0.0 { up } else { down }.to_bits(), "{a:e} * {b:e}");
    }
}

#[test]
fn nearest_is_what_the_host_computes() {
    let mut bits = 0xfeed_5eed_0bad_cafeu64;
    let mut next = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bits ^ bits >> 29
    };
    for round in 0..20_000u64 {
        // Every other round exponents are near each other, so that much cancels.
        let wide = |bits: u64| if round % 2 == 0 { bits } else { bits & !(0x7e0 << 52) | 0x3c0 << 52 };
        let [a, b, c] = [next(), next(), next()].map(|bits| f64::from_bits(wide(bits)));
        if [a, b, c].iter().all(|x| x.is_finite()) {
            let near = Rounding::Nearest;
            assert_eq!(fma(a, b, c, near).to_bits(), a.mul_add(b, c).to_bits(), "{a:e} * {b:e} + {c:e}");
            assert_eq!(add(a, b, near).to_bits(), (a + b).to_bits(), "{a:e} + {b:e}");
            assert_eq!(sub(a, b, near).to_bits(), (a - b).to_bits(), "{a:e} - {b:e}");
            let narrow: f32 = convert(a, near, |a| a as f32);
            assert_eq!(narrow.to_bits(), (a as f32).to_bits(), "{a:e}");
        }
    }
}

#[test]
fn what_is_too_large_or_nothing_has_the_sign_that_the_direction_wants() {
    let max = f32::MAX;
    assert_eq!(add(max, max, Rounding::Up), f32::INFINITY);
    assert_eq!(add(max, max, Rounding::Down), max);
    assert_eq!(add(max, max, Rounding::Zero), max);
    assert_eq!(add(-max, -max, Rounding::Down), f32::NEG_INFINITY);
    assert_eq!(add(-max, -max, Rounding::Up), -max);
    assert_eq!(sub(1.0f32, 1.0, Rounding::Down).to_bits(), (-0.0f32).to_bits());
    assert_eq!(sub(1.0f32, 1.0, Rounding::Up).to_bits(), 0);
    let least = f32::from_bits(1);
    assert_eq!(mul(least, least, Rounding::Up), least);
    assert_eq!(mul(-least, least, Rounding::Down), -least);
    assert_eq!(mul(-least, least, Rounding::Up).to_bits(), (-0.0f32).to_bits());
    assert!(add(f32::NAN, 1.0, Rounding::Up).is_nan());
    assert_eq!(add(f32::INFINITY, -1.0, Rounding::Down), f32::INFINITY);
    assert_eq!(ldexp(1.0f32, -200, Rounding::Up), least);
    assert_eq!(of_integer::<f32>(i64::from(u32::MAX), Rounding::Zero), 4_294_967_040.0);
    assert_eq!(convert::<f32, F16>(65_519.0, Rounding::Zero, F16::from_f32).0, 0x7bff);
    assert_eq!(convert::<f32, F16>(65_504.01, Rounding::Up, F16::from_f32).0, 0x7c00);
}
