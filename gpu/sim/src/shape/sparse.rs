//! Sparse matrix multiply-accumulate: of each four elements of a row of A, two are there, and two bits of an index for each of them
//! say which.
//!
//! A lane holds parts of one row of A and of one column of B, as for dense matrices; the index register of the lane that holds
//! elements of A says where those are.

use crate::enc::vop::{Mai, VGPR};
use crate::sem::matrix::{Elements, Sum};
use crate::shape::matrix::{place, result_place};
use crate::shape::operand::Width;
use crate::step::{Insn, Machine};
use crate::wave::{LANES, Wave};

/// M by M by K, where A has K / 2 elements to a row.
#[inline(always)]
pub(crate) fn smfmac<const M: usize, const K: usize, T: Elements>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
) {
    multiply::<M, K, T>(wave, insn);
}

/// Apart, to be compiled once.
#[inline(never)]
fn multiply<const M: usize, const K: usize, T: Elements>(wave: &mut Wave, insn: &Insn) {
    let code = Mai(insn.code);
    let a = place(wave, code.src0(), code.acc() & 1 != 0, Width::W32);
    let b = place(wave, code.src1(), code.acc() & 2 != 0, Width::W32);
    // Elements of A, and of B, in a lane.
    let (kept, each) = (K * M / LANES / 2, K * M / LANES);
    let index_bits = kept * 2;
    let index_set = if code.cbsz() == 0 { code.abid() % (32 / index_bits) } else { 0 };
    let indices = *wave.row(code.src2().saturating_sub(usize::from(VGPR)));
    let first = code.vdst() + if code.acc_cd() != 0 { wave.accum_offset } else { 0 };

    let mut sums = [[T::Sum::default(); M]; M];
    for (i, row) in sums.iter_mut().enumerate() {
        let (register, lane) = result_place::<T::Sum, M, M>(i, 0);
        for (j, sum) in row.iter_mut().enumerate() {
            *sum = T::Sum::from_bits(u64::from(wave.row(first + register)[lane + j]));
        }
    }
    for (lane, index) in indices.into_iter().enumerate() {
        let (i, group) = (lane % M, lane / M);
        for element in 0..kept {
            let select = index as usize >> (index_set * index_bits + element * 2) & 3;
            let within = element / 2 * 4 + select;
            let factor = T::a(a.element(wave, lane, element, T::BITS));
            for (j, sum) in sums[i].iter_mut().enumerate() {
                let other = T::b(b.element(wave, group * M + j, within % each, T::BITS));
                *sum = T::multiply_add(factor, other, *sum);
            }
        }
    }
    for (i, row) in sums.iter().enumerate() {
        let (register, lane) = result_place::<T::Sum, M, M>(i, 0);
        let target = wave.row_mut(first + register);
        for (target, sum) in target[lane..lane + M].iter_mut().zip(row) {
            *target = sum.bits() as u32;
        }
    }
}
