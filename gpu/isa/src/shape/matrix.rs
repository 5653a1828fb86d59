//! Matrix instructions: D = A * B + C, of `B` independent blocks spread over the lanes. EXEC does not matter.
//!
//! A is M rows of K, B is K rows of N, C and D are M rows of N. A lane holds some consecutive k of one row of A (one column of B)
//! of one block; a register of C or D holds four rows' parts. The layouts are those of AMD's matrix instruction calculator.

use std::marker::PhantomData;

use crate::enc::vop::{Mai, VGPR};
use crate::machine::{Insn, Machine};
use crate::sem::matrix::{Elements, Sum};
use crate::shape::operand::{Width, scalar};
use crate::simd::{Level, Task};
use crate::wave::{Aligned, LANES, Row, Wave};

/// A source operand of a matrix instruction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// In consecutive vector registers from this one on, counted over VGPRs and AccVGPRs.
    Rows(usize),
    /// A constant that all elements have.
    Constant(u64),
}

/// Returns the source operand with number `code`, among the AccVGPRs if `acc`.
pub(super) fn source(wave: &Wave, code: usize, acc: bool, width: Width) -> Source {
    match code.checked_sub(usize::from(VGPR)) {
        Some(number) => Source::Rows(number + if acc { wave.accum_offset } else { 0 }),
        None => Source::Constant(scalar(wave, code, 0, width)),
    }
}

impl Source {
    /// Returns element `index` of the elements of `bits` bits that `lane` holds.
    #[inline(always)]
    pub(super) fn element(self, wave: &Wave, lane: usize, index: usize, bits: usize) -> u64 {
        match self {
            Self::Constant(value) => value,
            Self::Rows(first) if bits == 64 => {
                let word = |word: usize| u64::from(wave.row(first + index * 2 + word)[lane]);
                word(0) | word(1) << 32
            }
            Self::Rows(first) => {
                let word = wave.row(first + index * bits / 32)[lane];
                u64::from(word >> (index * bits % 32))
            }
        }
    }

    /// Returns the results of `f` for element `index` (of `bits` bits) of each lane from `lane` on.
    #[inline(always)]
    fn elements<const N: usize, E>(
        self,
        wave: &Wave,
        lane: usize,
        index: usize,
        bits: usize,
        out: &mut [E; N],
        f: impl Fn(u64) -> E,
    ) {
        let first = match self {
            Self::Constant(value) => return out.iter_mut().for_each(|out| *out = f(value)),
            Self::Rows(first) => first,
        };
        let rows = wave.rows_from(first);
        if bits == 64 {
            let (low, high) = (row_at(rows, index * 2), row_at(rows, index * 2 + 1));
            for ((out, low), high) in out.iter_mut().zip(&low[lane..]).zip(&high[lane..]) {
                *out = f(u64::from(*low) | u64::from(*high) << 32);
            }
        } else {
            let row = row_at(rows, index * bits / 32);
            let shift = index * bits % 32;
            for (out, word) in out.iter_mut().zip(&row[lane..lane + N]) {
                *out = f(u64::from(word >> shift));
            }
        }
    }
}

/// Returns row `index` of a matrix operand, or zeros beyond the wave's registers.
#[inline(always)]
fn row_at(rows: &[Aligned<Row>], index: usize) -> &Row {
    static ZERO: Row = [0; LANES];
    rows.get(index).map_or(&ZERO, |row| &row.0)
}

/// Returns the lane whose elements of B replace those of `lane`.
fn permuted(lane: usize, blgp: usize) -> usize {
    match blgp {
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % 64,
        4..=7 => lane % 16 + (blgp - 4) * 16,
        _ => lane,
    }
}

/// Returns the location of element (`i`, 0) of block `block` of D: the number of the element among those of its lane, and the
/// lane.
#[inline(always)]
pub(super) fn result_position<S: Sum, const M: usize, const N: usize>(
    i: usize,
    block: usize,
) -> (usize, usize) {
    let groups = LANES / N;
    match (S::WORDS, M) {
        (2, 4) => (0, i * 16 + block * N),
        (2, _) => (i / groups, i % groups * N),
        (_, 4) => (i, block * N),
        _ => (block * M * N / LANES + i / (4 * groups) * 4 + i % 4, i / 4 % groups * N),
    }
}

/// Multiplies M×K by K×N matrices, in `B` blocks.
#[inline(always)]
pub(crate) fn mfma<const M: usize, const N: usize, const K: usize, const B: usize, T: Elements>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) {
    machine.program.level().run(Mfma::<M, N, K, B, T> { wave, insn, elements: PhantomData });
}

struct Mfma<'a, const M: usize, const N: usize, const K: usize, const B: usize, T> {
    wave: &'a mut Wave,
    insn: &'a Insn,
    elements: PhantomData<T>,
}

impl<const M: usize, const N: usize, const K: usize, const B: usize, T: Elements> Task
    for Mfma<'_, M, N, K, B, T>
{
    type Output = ();

    #[inline(always)]
    fn run(self, level: Level) {
        let wave = self.wave;
        let code = Mai(self.insn.code);
        let is_double = <T::Sum as Sum>::WORDS == 2;
        let width = if is_double { Width::Double } else { Width::W32 };
        let a = source(wave, code.src0(), code.acc() & 1 != 0, width);
        let b = source(wave, code.src1(), code.acc() & 2 != 0, width);
        let c = source(wave, code.src2(), code.acc_cd() != 0, width);
        // Doubles have sign modifiers in place of the permutation of B.
        let (permutation, signs) = if is_double { (0, code.blgp()) } else { (code.blgp(), 0) };
        let sign = |n: usize| if signs >> n & 1 != 0 { 1u64 << 63 } else { 0 };
        let each = K * M * B / LANES;
        let (mut held_a, mut held_b) = (Aligned(T::NONE), Aligned(T::NONE));
        hold::<T>(level, wave, a, &mut held_a.0.as_mut()[..each], |bits| T::a(bits ^ sign(0)));
        hold::<T>(level, wave, b, &mut held_b.0.as_mut()[..each], |bits| T::b(bits ^ sign(1)));
        if permutation != 0 {
            for factors in held_b.0.as_mut() {
                permute(factors, permutation);
            }
        }
        let (a, b) = (held_a.0.as_ref(), held_b.0.as_ref());

        let mut result = Aligned([[[T::Sum::default(); N]; M]; B]);
        for (block, sums) in result.0.iter_mut().enumerate() {
            let shared = (block >> code.cbsz() << code.cbsz()) + code.abid();
            let a_block = if code.cbsz() == 0 || is_double { block } else { shared % B };
            for (i, row) in sums.iter_mut().enumerate() {
                let (index, lane) = result_position::<T::Sum, M, N>(i, block);
                c.elements(wave, lane, index, T::Sum::WORDS * 32, row, T::Sum::from_bits);
                if sign(2) != 0 {
                    row.iter_mut().for_each(|sum| *sum = sum.negated());
                }
            }
            add_product::<M, N, K, B, T>(level.has_fma(), a, a_block, b, block, sums);
        }

        let first = code.vdst() + if code.acc_cd() != 0 { wave.accum_offset } else { 0 };
        let rows = wave.rows_from_mut(first);
        for (block, sums) in result.0.iter().enumerate() {
            for (i, row) in sums.iter().enumerate() {
                let (index, lane) = result_position::<T::Sum, M, N>(i, block);
                for word in 0..T::Sum::WORDS {
                    let mut words = [0; N];
                    for (word_of, sum) in words.iter_mut().zip(row) {
                        *word_of = (sum.bits() >> (word * 32)) as u32;
                    }
                    if let Some(target) = rows.get_mut(index * T::Sum::WORDS + word) {
                        target.0[lane..lane + N].copy_from_slice(&words);
                    }
                }
            }
        }
    }
}

/// Returns the elements of A or B that all lanes hold, converted by `f`.
#[inline(always)]
fn hold<T: Elements>(
    level: Level,
    wave: &Wave,
    source: Source,
    held: &mut [[T::Factor; LANES]],
    f: impl Fn(u64) -> T::Factor,
) {
    for (index, factors) in held.iter_mut().enumerate() {
        if let Source::Rows(first) = source
            && T::take_row(level, row_at(wave.rows_from(first), index * T::BITS / 32), index, factors)
        {
            continue;
        }
        source.elements(wave, 0, index, T::BITS, factors, &f);
    }
}

/// Gives each lane the elements of B of the lane that replaces it.
#[inline(never)]
fn permute<F: Copy>(factors: &mut [F; LANES], permutation: usize) {
    let old = *factors;
    for (lane, factor) in factors.iter_mut().enumerate() {
        *factor = old[permuted(lane, permutation)];
    }
}

/// Adds the product of block `a_block` of A and block `b_block` of B. Some rows of sums at a time: one after the other would wait for
/// its own last addition.
#[inline(always)]
fn add_product<const M: usize, const N: usize, const K: usize, const B: usize, T: Elements>(
    fused: bool,
    a: &[[T::Factor; LANES]],
    a_block: usize,
    b: &[[T::Factor; LANES]],
    b_block: usize,
    sums: &mut [[T::Sum; N]; M],
) {
    const TOGETHER: usize = 4;
    let each = K * M * B / LANES;
    let (a, b) = (a.as_flattened(), b.as_flattened());
    for (first, sums) in (0..).step_by(TOGETHER).zip(sums.as_chunks_mut::<TOGETHER>().0) {
        let mut together = *sums;
        for k in 0..K {
            let at = k % each * LANES + k / each * M * B;
            let column = a.get(at + a_block * M + first..).and_then(<[_]>::first_chunk::<TOGETHER>);
            let row = b.get(at + b_block * N..).and_then(<[_]>::first_chunk::<N>);
            let (Some(column), Some(row)) = (column, row) else { continue };
            for (sums, a) in together.iter_mut().zip(column) {
                T::add_products(fused, *a, row, sums);
            }
        }
        *sums = together;
    }
}
