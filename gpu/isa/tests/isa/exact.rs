//! Floating-point instructions against references that are not this project's: `rustc_apfloat` for what is rounded correctly, the
//! mathematical library for the rest. Every pair of special values, random numbers of all kinds, all 65,536 arguments of f16, in all
//! rounding directions, with and without denormals, with all modifiers.

mod functions;
mod numbers;
mod reference;

use std::sync::LazyLock;

use hipr_isa::simd::Level;
use hipr_isa::wave::LANES;

use crate::bench::{Bench, Random};
use numbers::{Format, Numbers};
use reference::{Modes, Op};

/// Number of random operands that each instruction gets.
const CASES: usize = 24_000;
/// Number of random operands in the long run.
const CASES_LONG: usize = 10_000_000;

/// The encodings with modifiers: opcode by name.
static OPCODES: LazyLock<Vec<(String, String, u32)>> = LazyLock::new(|| {
    let table = include_str!("data/opcodes_gfx942.tsv")
        .lines()
        .chain(include_str!("data/opcodes_gfx90a.tsv").lines());
    table
        .filter_map(|line| {
            let mut fields = line.split('\t');
            let (encoding, opcode, name) = (fields.next()?, fields.next()?, fields.next()?);
            let opcode = u32::from_str_radix(opcode.strip_prefix("0x")?, 16).ok()?;
            Some((encoding.to_owned(), name.trim_end_matches("_e64").to_owned(), opcode))
        })
        .collect()
});

/// Modifiers of an instruction: bits for each operand, and whether the result is clamped.
#[derive(Clone, Copy, Debug, Default)]
struct Modifiers {
    neg: u32,
    abs: u32,
    clamp: bool,
}

/// Registers of the operands and of the result; pairs for f64.
const SOURCES: [u32; 3] = [4, 6, 10];
const RESULT: u32 = 8;

/// Encodes an instruction that reads v4, v6, v10 and writes v8, or the pairs that begin there.
fn encode(name: &str, modifiers: Modifiers) -> [u32; 2] {
    let found = |encoding: &str| {
        OPCODES.iter().find(|(of, other, _)| of == encoding && other == name).map(|(_, _, opcode)| *opcode)
    };
    let Modifiers { neg, abs, clamp } = modifiers;
    let [a, b, c] = SOURCES.map(|register| 256 + register);
    let clamp = u32::from(clamp) << 15;
    if let Some(opcode) = found("VOP3") {
        return [0xd000_0000 | opcode << 16 | clamp | abs << 8 | RESULT, a | b << 9 | c << 18 | neg << 29];
    }
    let opcode = found("VOP3P").unwrap_or_else(|| panic!("{name} is in no table"));
    // Both halves are as they are; bits 8 to 10 negate the high ones, or are the absolutes of v_fma_mix.
    let high = if name.starts_with("v_fma_mix") { abs } else { neg };
    let op_sel_hi = if name.starts_with("v_fma_mix") { 0 } else { 7 };
    [
        0xd380_0000 | opcode << 16 | clamp | (op_sel_hi >> 2) << 14 | high << 8 | RESULT,
        a | b << 9 | c << 18 | (op_sel_hi & 3) << 27 | neg << 29,
    ]
}

/// An instruction: its name, the format of operands and result, how often it computes in a register, what it does.
struct Row {
    name: &'static str,
    format: Format,
    packed: u32,
    arity: usize,
    op: Op,
    /// Whether the last operand is the old value of the result.
    accumulates: bool,
}

const fn row(name: &'static str, format: Format, arity: usize, op: Op) -> Row {
    Row { name, format, packed: 1, arity, op, accumulates: false }
}

const fn packed(name: &'static str, format: Format, arity: usize, op: Op) -> Row {
    Row { packed: 2, ..row(name, format, arity, op) }
}

const fn accumulating(name: &'static str, format: Format, op: Op) -> Row {
    Row { accumulates: true, ..row(name, format, 3, op) }
}

/// What is rounded correctly, or not at all.
const ARITHMETIC: &[Row] = &[
    row("v_add_f32", Format::F32, 2, Op::Add),
    row("v_sub_f32", Format::F32, 2, Op::Sub),
    row("v_subrev_f32", Format::F32, 2, Op::SubReversed),
    row("v_mul_f32", Format::F32, 2, Op::Mul),
    row("v_fma_f32", Format::F32, 3, Op::Fma),
    row("v_fma_mix_f32", Format::F32, 3, Op::Fma),
    accumulating("v_fmac_f32", Format::F32, Op::Fma),
    row("v_min_f32", Format::F32, 2, Op::Min),
    row("v_max_f32", Format::F32, 2, Op::Max),
    row("v_min3_f32", Format::F32, 3, Op::Min3),
    row("v_max3_f32", Format::F32, 3, Op::Max3),
    row("v_med3_f32", Format::F32, 3, Op::Med3),
    row("v_trunc_f32", Format::F32, 1, Op::Trunc),
    row("v_ceil_f32", Format::F32, 1, Op::Ceil),
    row("v_floor_f32", Format::F32, 1, Op::Floor),
    row("v_rndne_f32", Format::F32, 1, Op::Rndne),
    row("v_fract_f32", Format::F32, 1, Op::Fract),
    row("v_frexp_mant_f32", Format::F32, 1, Op::FrexpMant),
    row("v_ldexp_f32", Format::F32, 2, Op::Ldexp),
    packed("v_pk_add_f32", Format::F32, 2, Op::Add),
    packed("v_pk_mul_f32", Format::F32, 2, Op::Mul),
    packed("v_pk_fma_f32", Format::F32, 3, Op::Fma),
    row("v_add_f16", Format::F16, 2, Op::Add),
    row("v_sub_f16", Format::F16, 2, Op::Sub),
    row("v_subrev_f16", Format::F16, 2, Op::SubReversed),
    row("v_mul_f16", Format::F16, 2, Op::Mul),
    row("v_fma_f16", Format::F16, 3, Op::Fma),
    row("v_mad_f16", Format::F16, 3, Op::Mad),
    accumulating("v_mac_f16", Format::F16, Op::Mad),
    row("v_min_f16", Format::F16, 2, Op::Min),
    row("v_max_f16", Format::F16, 2, Op::Max),
    row("v_min3_f16", Format::F16, 3, Op::Min3),
    row("v_max3_f16", Format::F16, 3, Op::Max3),
    row("v_med3_f16", Format::F16, 3, Op::Med3),
    row("v_trunc_f16", Format::F16, 1, Op::Trunc),
    row("v_ceil_f16", Format::F16, 1, Op::Ceil),
    row("v_floor_f16", Format::F16, 1, Op::Floor),
    row("v_rndne_f16", Format::F16, 1, Op::Rndne),
    row("v_fract_f16", Format::F16, 1, Op::Fract),
    row("v_frexp_mant_f16", Format::F16, 1, Op::FrexpMant),
    row("v_ldexp_f16", Format::F16, 2, Op::Ldexp),
    packed("v_pk_add_f16", Format::F16, 2, Op::Add),
    packed("v_pk_mul_f16", Format::F16, 2, Op::Mul),
    packed("v_pk_fma_f16", Format::F16, 3, Op::Fma),
    packed("v_pk_min_f16", Format::F16, 2, Op::Min),
    packed("v_pk_max_f16", Format::F16, 2, Op::Max),
    row("v_add_f64", Format::F64, 2, Op::Add),
    row("v_mul_f64", Format::F64, 2, Op::Mul),
    row("v_fma_f64", Format::F64, 3, Op::Fma),
    accumulating("v_fmac_f64", Format::F64, Op::Fma),
    row("v_min_f64", Format::F64, 2, Op::Min),
    row("v_max_f64", Format::F64, 2, Op::Max),
    row("v_trunc_f64", Format::F64, 1, Op::Trunc),
    row("v_ceil_f64", Format::F64, 1, Op::Ceil),
    row("v_floor_f64", Format::F64, 1, Op::Floor),
    row("v_rndne_f64", Format::F64, 1, Op::Rndne),
    row("v_fract_f64", Format::F64, 1, Op::Fract),
    row("v_frexp_mant_f64", Format::F64, 1, Op::FrexpMant),
    row("v_ldexp_f64", Format::F64, 2, Op::Ldexp),
];

/// Puts the operands of the lanes into the registers of the sources; those of packed ones twice.
fn fill(bench: &mut Bench, row: &Row, operands: &[[u64; 3]]) {
    for (index, register) in SOURCES.into_iter().enumerate() {
        let is_integer = row.op == Op::Ldexp && index == 1;
        let spread = |bits: u64| match (row.format, row.packed) {
            (Format::F16, 2) => bits | bits << 16,
            (Format::F32, 2) => bits | bits << 32,
            // What an instruction for one number does not read.
            (Format::F16, _) if !is_integer => bits | 0xabcd_0000,
            _ => bits,
        };
        let register = if row.accumulates && index == 2 { RESULT } else { register };
        bench.fill64(register as usize, |lane| spread(operands[lane % operands.len()][index]));
    }
}

/// Runs an instruction on some operands and compares.
fn check(bench: &mut Bench, row: &Row, operands: &[[u64; 3]], modes: Modes, modifiers: Modifiers) {
    bench.wave.mode = modes.register(row.format);
    fill(bench, row, operands);
    bench.run(&encode(row.name, modifiers));
    let results = bench.row64(RESULT as usize);
    for (lane, operands) in operands.iter().enumerate() {
        let mut modified = *operands;
        for (index, bits) in modified.iter_mut().enumerate().take(row.arity) {
            if row.op == Op::Ldexp && index == 1 {
                continue;
            }
            let sign = row.format.sign();
            *bits &= if modifiers.abs >> index & 1 == 1 { !sign } else { u64::MAX };
            *bits ^= if modifiers.neg >> index & 1 == 1 { sign } else { 0 };
        }
        let expected = row.op.result(row.format, modified, modes);
        let expected =
            if modifiers.clamp { row.format.clamped(expected, modes.dx10_clamp) } else { expected };
        for part in 0..row.packed {
            let bits = row.format.bits();
            let got = results[lane] >> (part * bits) & row.format.mask();
            assert!(
                row.format.is_same(got, expected),
                "{} of {operands:x?} with {modes:?}, {modifiers:?}: {got:#x}, not {expected:#x}",
                row.name,
            );
        }
    }
}

/// Returns modifiers that an instruction can have.
fn modifiers(row: &Row, random: &mut Random) -> Modifiers {
    let bits = random.u32();
    let all = (1 << row.arity) - 1;
    let has_absolute = row.packed == 1;
    let floats = match row.op {
        // The second operand is no number.
        Op::Ldexp => 1,
        // The third is no source.
        _ if row.accumulates => 3,
        _ => all,
    };
    Modifiers {
        neg: bits & floats,
        abs: if has_absolute { bits >> 3 & floats } else { 0 },
        clamp: bits >> 6 & 3 == 0,
    }
}

/// Returns a bench for each SIMD level that this processor has.
fn benches() -> impl Iterator<Item = Bench> {
    Level::available().map(|level| Bench { level, ..Bench::default() })
}

/// Checks operands plainly in each rounding direction.
fn check_directions(bench: &mut Bench, row: &Row, all: &[[u64; 3]]) {
    for rounding in 0..4 {
        for operands in all.chunks(LANES) {
            check(bench, row, operands, Modes::rounding(rounding), Modifiers::default());
        }
    }
}

/// Returns all special values, or all pairs of them, or each pair with some third ones.
fn special_operands(row: &Row) -> Vec<[u64; 3]> {
    let specials = row.format.specials();
    let with_each = |seconds: &[u64]| -> Vec<[u64; 3]> {
        specials.iter().flat_map(|a| seconds.iter().map(move |b| [*a, *b, 0])).collect()
    };
    let mut random = Random::new(5);
    match (row.op, row.arity) {
        (Op::Ldexp, _) => {
            with_each(&numbers::EXPONENTS.iter().map(|exponent| *exponent as u32 as u64).collect::<Vec<_>>())
        }
        (_, 1) => with_each(&[0]),
        (_, 2) => with_each(&specials),
        _ => with_each(&specials)
            .into_iter()
            .flat_map(|[a, b, _]| {
                let thirds: [u64; 6] =
                    std::array::from_fn(|_| specials[random.u32() as usize % specials.len()]);
                thirds.map(|c| [a, b, c])
            })
            .collect(),
    }
}

/// Checks random operands, each group of lanes with modes and modifiers of its own, the SIMD levels in turn.
fn check_random(row: &Row, cases: usize, seed: u64) {
    let mut benches: Vec<Bench> = benches().collect();
    let mut numbers = Numbers::new(row.format, seed);
    for turn in 0..cases.div_ceil(LANES) {
        let level = turn % benches.len();
        let operands: Vec<[u64; 3]> =
            (0..LANES).map(|_| numbers.operands(row.arity, row.op == Op::Ldexp)).collect();
        let modes = Modes::draw(&mut numbers.random, row.op.has_denormal_rules());
        let modifiers = modifiers(row, &mut numbers.random);
        check(&mut benches[level], row, &operands, modes, modifiers);
    }
}

#[test]
fn special_values_are_computed_with_as_the_reference_does() {
    for row in ARITHMETIC {
        let all = special_operands(row);
        benches().for_each(|mut bench| check_directions(&mut bench, row, &all));
    }
}

#[test]
fn random_numbers_are_computed_with_as_the_reference_does() {
    (1..).zip(ARITHMETIC).for_each(|(seed, row)| check_random(row, CASES, seed));
}

/// All arguments of instructions with one f16 operand, in all rounding directions.
#[test]
fn every_f16_is_computed_with_as_the_reference_does() {
    let mut bench = Bench::default();
    let all: Vec<[u64; 3]> = (0..1 << 16).map(|bits| [bits, 0, 0]).collect();
    for row in ARITHMETIC.iter().filter(|row| row.format == Format::F16 && row.arity == 1) {
        check_directions(&mut bench, row, &all);
    }
}

#[test]
#[ignore = "takes minutes"]
fn ten_million_random_numbers_are_computed_with_as_the_reference_does() {
    std::thread::scope(|scope| {
        let (even, odd): (Vec<_>, Vec<_>) = (1..).zip(ARITHMETIC).partition(|(seed, _)| seed % 2 == 0);
        for rows in [even, odd] {
            scope.spawn(move || {
                rows.into_iter().for_each(|(seed, row)| check_random(row, CASES_LONG, seed + 1000))
            });
        }
    });
}
