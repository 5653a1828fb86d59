//! Sparse matrix multiply-accumulate (`v_smfmac_*`): A stores only two of each four elements of a row, with a two-bit index for
//! each of the two that says which it is.
//!
//! A lane holds parts of one row of A and of one column of B, as for dense matrices; the index register of the lane that holds
//! elements of A says where those are.

use crate::enc::vop::{Mai, VGPR};
use crate::machine::{Insn, Machine};
use crate::sem::matrix::{Elements, Sum};
use crate::shape::matrix::{result_position, source};
use crate::shape::operand::Width;
use crate::wave::{LANES, Wave};

/// Multiplies a sparse M×K matrix A, which stores K / 2 elements of each row, by a K×M matrix B, and adds the product to D.
#[inline(always)]
pub(crate) fn smfmac<const M: usize, const K: usize, T: Elements>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
) {
    multiply::<M, K, T>(wave, insn);
}

/// Computes the product; a function of its own so that it is compiled once.
#[inline(never)]
fn multiply<const M: usize, const K: usize, T: Elements>(wave: &mut Wave, insn: &Insn) {
    let code = Mai(insn.code);
    let a = source(wave, code.src0(), code.acc() & 1 != 0, Width::W32);
    let b = source(wave, code.src1(), code.acc() & 2 != 0, Width::W32);
    // Elements of A, and of B, in a lane.
    let (kept, each) = (K * M / LANES / 2, K * M / LANES);
    let index_bits = kept * 2;
    let index_set = if code.cbsz() == 0 { code.abid() % (32 / index_bits) } else { 0 };
    let indices = *wave.row(code.src2().saturating_sub(usize::from(VGPR)));
    let first = code.vdst() + if code.acc_cd() != 0 { wave.accum_offset } else { 0 };

    let mut sums = [[T::Sum::default(); M]; M];
    for (i, row) in sums.iter_mut().enumerate() {
        let (register, lane) = result_position::<T::Sum, M, M>(i, 0);
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
        let (register, lane) = result_position::<T::Sum, M, M>(i, 0);
        let target = wave.row_mut(first + register);
        for (target, sum) in target[lane..lane + M].iter_mut().zip(row) {
            *target = sum.bits() as u32;
        }
    }
}
