//! Conversions, comparisons, and functions that are approximated.

use hipr_isa::wave::{LANES, Mode};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use super::numbers::{Format, Numbers};
use super::reference::Modes;
use super::{Modifiers, RESULT, SOURCES, encode};
use crate::bench::{Bench, Random};

/// The bits of MODE that keep denormals.
const DENORMALS: u32 = 0xf0;
/// Number of random operands that each instruction gets where not all are tried.
const CASES: usize = 32_000;

fn half(bits: u64) -> Half {
    Half::from_bits(bits.into())
}

fn single(bits: u64) -> Single {
    Single::from_bits(bits.into())
}

fn double(bits: u64) -> Double {
    Double::from_bits(bits.into())
}

fn convert<F: FloatConvert<T>, T: Float>(from: F, round: Round) -> u64 {
    from.convert_r(round, &mut false).value.to_bits() as u64
}

/// Converts toward zero, to the nearest integer of the type that there is; NaN to 0.
fn integer<F: Float>(from: F, bits: u32, is_signed: bool) -> u64 {
    let toward = from.round_to_integral(Round::TowardZero).value;
    floored(toward, bits, is_signed)
}

/// Converts what is integral already.
fn floored<F: Float>(from: F, bits: u32, is_signed: bool) -> u64 {
    if from.is_nan() {
        return 0;
    }
    let wide = from.to_i128(120).value;
    let (least, most) = if is_signed {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    };
    low(wide.clamp(least, most) as u64, bits)
}

/// Returns the exponent that belongs to a fraction from 0.5 to 1; 0 for what has none.
fn exponent<F: Float>(of: F) -> i32 {
    let mut exponent = 0;
    if of.is_finite_non_zero() {
        let _ = of.frexp_r(&mut exponent, Round::NearestTiesToEven);
    }
    exponent
}

/// Returns the low bits of a number.
fn low(value: u64, bits: u32) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

/// A conversion: its name, the operand's format or number of bits, the result's, what it does.
type Conversion = (&'static str, Kind, Kind, fn(u64, Round) -> u64);

/// What an instruction reads or writes: a number, or an integer of so many bits.
#[derive(Clone, Copy)]
enum Kind {
    Float(Format),
    Integer(u32),
}

use Format::{F16, F32, F64};
use Kind::{Float as Number, Integer};

const CONVERSIONS: &[Conversion] = &[
    ("v_cvt_f16_f32", Number(F32), Number(F16), |x, round| convert::<_, Half>(single(x), round)),
    ("v_cvt_f32_f16", Number(F16), Number(F32), |x, round| convert::<_, Single>(half(x), round)),
    ("v_cvt_f32_f64", Number(F64), Number(F32), |x, round| convert::<_, Single>(double(x), round)),
    ("v_cvt_f64_f32", Number(F32), Number(F64), |x, round| convert::<_, Double>(single(x), round)),
    ("v_cvt_f32_i32", Integer(32), Number(F32), |x, round| {
        Single::from_i128_r((x as i32).into(), round).value.to_bits() as u64
    }),
    ("v_cvt_f32_u32", Integer(32), Number(F32), |x, round| {
        Single::from_u128_r(x.into(), round).value.to_bits() as u64
    }),
    ("v_cvt_f64_i32", Integer(32), Number(F64), |x, round| {
        Double::from_i128_r((x as i32).into(), round).value.to_bits() as u64
    }),
    ("v_cvt_f64_u32", Integer(32), Number(F64), |x, round| {
        Double::from_u128_r(x.into(), round).value.to_bits() as u64
    }),
    ("v_cvt_f16_i16", Integer(16), Number(F16), |x, round| {
        Half::from_i128_r((x as i16).into(), round).value.to_bits() as u64
    }),
    ("v_cvt_f16_u16", Integer(16), Number(F16), |x, round| {
        Half::from_u128_r(x.into(), round).value.to_bits() as u64
    }),
    ("v_cvt_i32_f32", Number(F32), Integer(32), |x, _| integer(single(x), 32, true)),
    ("v_cvt_u32_f32", Number(F32), Integer(32), |x, _| integer(single(x), 32, false)),
    ("v_cvt_i32_f64", Number(F64), Integer(32), |x, _| integer(double(x), 32, true)),
    ("v_cvt_u32_f64", Number(F64), Integer(32), |x, _| integer(double(x), 32, false)),
    ("v_cvt_i16_f16", Number(F16), Integer(16), |x, _| integer(half(x), 16, true)),
    ("v_cvt_u16_f16", Number(F16), Integer(16), |x, _| integer(half(x), 16, false)),
    ("v_cvt_flr_i32_f32", Number(F32), Integer(32), |x, _| {
        floored(single(x).round_to_integral(Round::TowardNegative).value, 32, true)
    }),
    ("v_frexp_exp_i32_f32", Number(F32), Integer(32), |x, _| low(exponent(single(x)) as u64, 32)),
    ("v_frexp_exp_i32_f64", Number(F64), Integer(32), |x, _| low(exponent(double(x)) as u64, 32)),
    ("v_frexp_exp_i16_f16", Number(F16), Integer(16), |x, _| low(exponent(half(x)) as u64, 16)),
];

/// Runs an instruction with one operand on all lanes; returns the results.
fn run(bench: &mut Bench, name: &str, operands: &[u64]) -> [u64; LANES] {
    bench.fill64(SOURCES[0] as usize, |lane| operands[lane % operands.len()]);
    bench.run(&encode(name, Modifiers::default()));
    bench.row64(RESULT as usize)
}

/// Returns all operands of 16 bits; of others the special ones, and random ones.
fn operands(from: Kind, seed: u64) -> Vec<u64> {
    match from {
        Number(F16) | Integer(16) => (0..1 << 16).collect(),
        Number(format) => {
            let mut numbers = Numbers::new(format, seed);
            let mut all = format.specials();
            // About as large as the integers that it is converted to, and as the numbers of the next format.
            let bias = i64::try_from(format.one() >> format.fraction()).unwrap_or(0);
            let like = |random: &mut Random| {
                let bits = random.u64();
                let exponent = (bias + (bits >> 56) as i64 % 80 - 40) as u64;
                bits & format.sign()
                    | exponent << format.fraction()
                    | (bits >> 4 & ((1 << format.fraction()) - 1))
            };
            for _ in 0..CASES / 2 {
                all.push(numbers.number(format.one()));
                all.push(like(&mut numbers.random));
            }
            all
        }
        Integer(_) => {
            let mut random = Random::new(seed);
            let few = |random: &mut Random| u64::from(random.u32() >> (random.u32() % 32));
            let mut all: Vec<u64> = (0..CASES).map(|_| few(&mut random)).collect();
            all.extend(
                (0..32).flat_map(|bit| {
                    [1u64 << bit, (1 << bit) - 1, (1 << bit) + 1, !(1u64 << bit) & 0xffff_ffff]
                }),
            );
            all
        }
    }
}

#[test]
fn conversions_are_those_of_the_reference() {
    for ((name, from, to, reference), seed) in CONVERSIONS.iter().zip(1..) {
        let mut bench = Bench::default();
        let all = operands(*from, seed);
        for rounding in 0..4 {
            let modes = Modes::rounding(rounding);
            for operands in all.chunks(LANES) {
                let format = match to {
                    Number(format) => *format,
                    Integer(_) => F32,
                };
                // The rounding of the result's format counts, and denormals of both are kept.
                bench.wave.mode = Mode(modes.register(format).0 | DENORMALS);
                let results = run(&mut bench, name, operands);
                for (x, got) in operands.iter().zip(results) {
                    let expected = reference(*x, modes.round());
                    let is_right = match to {
                        Number(format) => format.is_same(got & format.mask(), expected),
                        Integer(bits) => low(got, *bits) == expected,
                    };
                    assert!(is_right, "{name} of {x:#x}, {modes:?}: {got:#x}, not {expected:#x}");
                }
            }
        }
    }
}

/// `v_cvt_pkrtz_f16_f32` rounds toward zero whatever MODE says.
#[test]
fn packing_to_f16_rounds_toward_zero() {
    let mut bench = Bench::default();
    for operands in operands(Number(F32), 77).chunks(2 * LANES) {
        let (first, second) = operands.split_at(operands.len() / 2);
        bench.fill(SOURCES[0] as usize, |lane| first[lane % first.len()] as u32);
        bench.fill(SOURCES[1] as usize, |lane| second[lane % second.len()] as u32);
        bench.run(&encode("v_cvt_pkrtz_f16_f32", Modifiers::default()));
        for lane in 0..first.len() {
            let got = u64::from(bench.wave.row(RESULT as usize)[lane]);
            for (x, got) in [(first[lane], got & 0xffff), (second[lane % second.len()], got >> 16)] {
                let expected = convert::<_, Half>(single(x), Round::TowardZero);
                assert!(F16.is_same(got, expected), "{x:#x}: {got:#x}, not {expected:#x}");
            }
        }
    }
}

/// A function: the part of the instruction's name before the format, and what it approximates. The arguments of sine and cosine are
/// revolutions.
type Function = (&'static str, fn(f64) -> f64);

const FUNCTIONS: &[Function] = &[
    ("v_rcp", |x| 1.0 / x),
    ("v_sqrt", f64::sqrt),
    ("v_rsq", |x| if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }),
    ("v_exp", f64::exp2),
    ("v_log", f64::log2),
    ("v_sin", turned),
    ("v_cos", |x| turned(0.25 - (x - x.round()).abs())),
];

/// Returns the sine of so many revolutions.
fn turned(x: f64) -> f64 {
    let part = x - x.round();
    let folded = if part.abs() > 0.25 { 0.5f64.copysign(part) - part } else { part };
    (folded * std::f64::consts::TAU).sin()
}

/// Returns the distance of a result from the exact one, in units of the last place of the format.
fn error(format: Format, got: f64, exact: f64) -> f64 {
    if got == exact {
        return 0.0;
    }
    let fraction = format.fraction() as i32;
    let least = 1 - (format.one() >> fraction) as i32;
    let power = if exact == 0.0 { least } else { (exponent(double(exact.to_bits())) - 1).max(least) };
    (got - exact).abs() / 2f64.powi(power - fraction)
}

/// AMD's instruction set documents give f16 0.51 units of the last place, f32 one; of f64 only reciprocal and root, far fewer bits than
/// the host's correctly rounded ones. Sine and cosine of f32 are only as near as numbers around 1 are.
#[test]
fn functions_are_as_accurate_as_is_published() {
    for (function, reference) in FUNCTIONS {
        for format in [F16, F32, F64] {
            let name = format!("{function}_f{}", format.bits());
            let is_turn = matches!(*function, "v_sin" | "v_cos");
            if format == F64 && !matches!(*function, "v_rcp" | "v_sqrt") {
                continue;
            }
            let mut bench = Bench::default();
            for operands in operands(Number(format), 9).chunks(LANES) {
                let results = run(&mut bench, &name, operands);
                for (bits, got) in operands.iter().zip(results) {
                    let value = |bits: u64| match format {
                        F16 => f64::from_bits(convert::<_, Double>(
                            half(bits & 0xffff),
                            Round::NearestTiesToEven,
                        )),
                        F32 => f64::from(f32::from_bits(bits as u32)),
                        F64 => f64::from_bits(bits),
                    };
                    let (x, got) = (value(*bits), value(got));
                    let exact = reference(x);
                    // AMD gives no accuracy for more revolutions.
                    if is_turn && x.is_finite() && x.abs() > 256.0 {
                        continue;
                    }
                    let most = value(format.infinity() - 1);
                    let is_right = if exact.is_nan() {
                        got.is_nan()
                    } else if exact.abs() > most {
                        // What is too large for the format is infinite, or just not yet.
                        got.is_sign_negative() == exact.is_sign_negative() && got.abs() >= most
                    } else if is_turn && format == F32 {
                        (got - exact).abs() <= 2f64.powi(-23)
                    } else {
                        error(format, got, exact) <= if format == F16 { 0.51 } else { 1.0 }
                    };
                    assert!(is_right, "{name} of {bits:#x}, {x:e}: {got:e}, exactly {exact:e}");
                }
            }
        }
    }
}

/// The relations that comparisons test, by their names, and whether they hold for a first operand that is less than the second, equal to
/// it, greater, or unordered, in this order.
const RELATIONS: [(&str, [bool; 4]); 16] = [
    ("f", [false, false, false, false]),
    ("lt", [true, false, false, false]),
    ("eq", [false, true, false, false]),
    ("le", [true, true, false, false]),
    ("gt", [false, false, true, false]),
    ("lg", [true, false, true, false]),
    ("ge", [false, true, true, false]),
    ("o", [true, true, true, false]),
    ("u", [false, false, false, true]),
    ("nge", [true, false, false, true]),
    ("nlg", [false, true, false, true]),
    ("ngt", [true, true, false, true]),
    ("nle", [false, false, true, true]),
    ("neq", [true, false, true, true]),
    ("nlt", [false, true, true, true]),
    ("tru", [true, true, true, true]),
];

fn order<F: Float>(a: u64, b: u64) -> usize {
    match F::from_bits(a.into()).partial_cmp(&F::from_bits(b.into())) {
        Some(std::cmp::Ordering::Less) => 0,
        Some(std::cmp::Ordering::Equal) => 1,
        Some(std::cmp::Ordering::Greater) => 2,
        None => 3,
    }
}

#[test]
fn numbers_compare_as_in_the_reference() {
    for format in [F16, F32, F64] {
        let mut numbers = Numbers::new(format, 3);
        let specials = format.specials();
        let mut pairs: Vec<[u64; 2]> =
            specials.iter().flat_map(|a| specials.iter().map(move |b| [*a, *b])).collect();
        pairs.extend((0..CASES / 8).map(|_| {
            let [a, b, _] = numbers.operands(2, false);
            [a, b]
        }));
        for (relation, fulfil) in RELATIONS {
            let name = format!("v_cmp_{relation}_f{}", format.bits());
            let mut bench = Bench::default();
            for pairs in pairs.chunks(LANES) {
                for index in 0..2 {
                    bench.fill64(SOURCES[index] as usize, |lane| pairs[lane % pairs.len()][index]);
                }
                bench.run(&encode(&name, Modifiers::default()));
                let result = bench.wave.pair(RESULT as usize);
                for (lane, [a, b]) in pairs.iter().enumerate() {
                    let order = match format {
                        F16 => order::<Half>(*a, *b),
                        F32 => order::<Single>(*a, *b),
                        F64 => order::<Double>(*a, *b),
                    };
                    assert_eq!(result >> lane & 1 == 1, fulfil[order], "{name} of {a:#x}, {b:#x}");
                }
            }
        }
    }
}

/// `v_fma_mix` takes each operand as f32 or as one half of a register.
#[test]
fn mixed_operands_are_widened_exactly() {
    let mut bench = Bench::default();
    let mut narrow = Numbers::new(F16, 21);
    let mut wide = Numbers::new(F32, 22);
    for turn in 0..CASES / LANES {
        let bits = narrow.random.u32();
        let (is_half, is_high, neg, abs) = (bits & 7, bits >> 3 & 7, bits >> 6 & 7, bits >> 9 & 7);
        let operands: Vec<[u64; 3]> = (0..LANES)
            .map(|_| {
                let (low, high, wide) =
                    (narrow.operands(3, false), narrow.operands(3, false), wide.operands(3, false));
                std::array::from_fn(|n| if is_half >> n & 1 == 1 { low[n] | high[n] << 16 } else { wide[n] })
            })
            .collect();
        for (index, register) in SOURCES.into_iter().enumerate() {
            bench.fill(register as usize, |lane| operands[lane][index] as u32);
        }
        const OLD: u32 = 0x1234_5678;
        bench.fill(RESULT as usize, |_| OLD);
        let name = ["v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"][turn % 3];
        let [mut first, mut second] = encode(name, Modifiers { neg, abs, clamp: false });
        first |= is_high << 11 | (is_half >> 2 & 1) << 14;
        second |= (is_half & 3) << 27;
        bench.wave.mode = Mode(DENORMALS | 0x300);
        bench.run(&[first, second]);
        for (lane, operands) in operands.iter().enumerate() {
            let [a, b, c]: [Single; 3] = std::array::from_fn(|n| {
                let half_at = u32::from(is_high >> n & 1 == 1) * 16;
                let value = match is_half >> n & 1 {
                    1 => half(operands[n] >> half_at & 0xffff).convert(&mut false).value,
                    _ => single(operands[n]),
                };
                let value: Single = if abs >> n & 1 == 1 { value.abs() } else { value };
                if neg >> n & 1 == 1 { -value } else { value }
            });
            let sum = a.mul_add(b, c).value;
            let got = u64::from(bench.wave.row(RESULT as usize)[lane]);
            let is_right = match turn % 3 {
                0 => F32.is_same(got, sum.to_bits() as u64),
                1 => {
                    F16.is_same(got & 0xffff, convert::<_, Half>(sum, Round::NearestTiesToEven))
                        && got >> 16 == u64::from(OLD >> 16)
                }
                _ => {
                    F16.is_same(got >> 16, convert::<_, Half>(sum, Round::NearestTiesToEven))
                        && got & 0xffff == u64::from(OLD & 0xffff)
                }
            };
            assert!(is_right, "{name} of {operands:x?}, halves {is_half:#b}, high {is_high:#b}: {got:#x}");
        }
    }
}

/// Returns the value of the FNUZ format with these numbers of bits: no infinities, no negative zero, one NaN.
fn small(bits: u8, fraction: i32, bias: i32) -> f64 {
    let (sign, magnitude) = (if bits & 0x80 != 0 { -1.0 } else { 1.0 }, i32::from(bits & 0x7f));
    if bits == 0x80 {
        return f64::NAN;
    }
    let (exponent, fraction_bits) = (magnitude >> fraction, f64::from(magnitude & ((1 << fraction) - 1)));
    let ones = f64::from(u8::from(exponent > 0));
    sign * (ones + fraction_bits / f64::from(1 << fraction)) * 2f64.powi(exponent.max(1) - bias)
}

/// The formats of 8 bits: their names, bits of the fraction, bias.
const SMALL: [(&str, i32, i32); 2] = [("fp8", 3, 8), ("bf8", 2, 16)];

#[test]
fn numbers_of_8_bits_have_their_values_and_are_the_nearest() {
    for (name, fraction, bias) in SMALL {
        let mut bench = Bench::default();
        let all: Vec<u64> = (0..256).collect();
        for operands in all.chunks(LANES) {
            let results = run(&mut bench, &format!("v_cvt_f32_{name}"), operands);
            for (bits, got) in operands.iter().zip(results) {
                let (got, expected) =
                    (f64::from(f32::from_bits(got as u32)), small(*bits as u8, fraction, bias));
                let is_right =
                    if expected.is_nan() { got.is_nan() } else { got.to_bits() == expected.to_bits() };
                assert!(is_right, "{name} {bits:#x}: {got}, not {expected}");
            }
        }
        // The numbers in order, and behind them the one that would come next.
        let values: Vec<f64> = (0..128).map(|bits| small(bits, fraction, bias)).collect();
        let most = values[127];
        let beyond = most + (most - values[126]);
        let mut random = Random::new(11);
        let cases: Vec<f32> = (0..CASES)
            .map(|_| {
                let index = random.u32() as usize % 127;
                let (low, high) = (values[index], values[index + 1]);
                let part = match random.u32() % 4 {
                    0 => 0.5,
                    1 => 0.5 + 1e-5,
                    2 => 0.5 - 1e-5,
                    _ => f64::from(random.u32()) / f64::from(u32::MAX),
                };
                let value = (low + (high - low) * part) as f32;
                if random.u32() & 1 == 1 { -value } else { value }
            })
            .chain([most as f32, beyond as f32, f32::MAX, f32::INFINITY, f32::NAN, 0.0, -0.0, -1e-30])
            .chain([(most + (beyond - most) / 2.0) as f32, (most + (beyond - most) * 0.49) as f32])
            .collect();
        for cases in cases.chunks(LANES) {
            bench.fill(SOURCES[0] as usize, |lane| cases[lane % cases.len()].to_bits());
            bench.fill(SOURCES[1] as usize, |lane| (-cases[lane % cases.len()]).to_bits());
            bench.run(&encode(&format!("v_cvt_pk_{name}_f32"), Modifiers::default()));
            for (lane, value) in cases.iter().enumerate() {
                let got = bench.wave.row(RESULT as usize)[lane];
                for (got, value) in [(got as u8, *value), ((got >> 8) as u8, -*value)] {
                    let magnitude = f64::from(value.abs()).min(beyond);
                    // Even numbers are even bits; what would be the next number is NaN.
                    let distance = |bits: u8| {
                        (values.get(usize::from(bits)).copied().unwrap_or(beyond) - magnitude).abs()
                    };
                    let nearest = (0..=128u8)
                        .min_by(|a, b| distance(*a).total_cmp(&distance(*b)).then((a & 1).cmp(&(b & 1))));
                    let expected = match nearest {
                        Some(0) => 0,
                        Some(bits @ ..128) if value.is_finite() => bits | u8::from(value < 0.0) << 7,
                        _ => 0x80,
                    };
                    assert_eq!(got, expected, "{value:e} as {name}");
                }
            }
        }
    }
}
