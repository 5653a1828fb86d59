//! Shapes whose result takes four registers.

use crate::enc::vop::VGPR;
use crate::machine::{Insn, Machine};
use crate::shape::operand::{Width, scalar};
use crate::shape::source::{destination, register, source};
use crate::shape::vector::Value;
use crate::wave::{LANES, Row, Wave};

/// Computes a result in four registers from two sources and a third one in four registers. Of a scalar third source the other
/// registers are 0 where it is a constant.
#[inline(always)]
pub(crate) fn v3_quad<A: Value, B: Value>(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(A, B, [u32; 4]) -> [u32; 4],
) {
    let a = source(wave, insn, 0, A::KIND);
    let b = source(wave, insn, 1, B::KIND);
    let code = usize::from(insn.valu.src[2]);
    let c: [Row; 4] = std::array::from_fn(|word| match code.checked_sub(usize::from(VGPR)) {
        Some(number) => *wave.row(register(wave, number, 2) + word),
        None if code < 128 => [wave.sgpr[(code + word) & 127]; LANES],
        None => [(scalar(wave, code, insn.literal, Width::W64) >> (word % 2 * 32)) as u32; LANES]
            .map(|bits| if word < 2 { bits } else { 0 }),
    });
    let (a, b) = (A::view(wave, a), B::view(wave, b));
    let mut out = [[0; LANES]; 4];
    for lane in 0..LANES {
        let words = f(A::at(a, lane), B::at(b, lane), [0, 1, 2, 3].map(|word: usize| c[word][lane]));
        for (row, word) in out.iter_mut().zip(words) {
            row[lane] = word;
        }
    }
    let (number, lanes) = (destination(wave, insn), wave.exec());
    for (word, row) in out.iter().enumerate() {
        wave.write_row(number + word, lanes, row);
    }
}
