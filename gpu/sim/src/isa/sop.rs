//! Scalar ALU and program control.

use crate::isa::rows;
use crate::sem::int::nonzero;
use crate::shape::scalar::{branch, nothing, sop1_quiet, sop2, sop2_quiet, sopc, sopk_quiet, stop};
use crate::step::Stop;

/// Opcode of the SOPK instruction that a literal follows.
pub(crate) const S_SETREG_IMM32: usize = 0x14;

rows! {
    /// Two sources.
    SOP2 [128] {
        0x00 s_add_u32 = sop2(u32::overflowing_add);
        0x0c s_and_b32 = sop2(|a: u32, b: u32| nonzero(a & b));
        0x24 s_mul_i32 = sop2_quiet(u32::wrapping_mul);
    }
}
rows! {
    /// One source.
    SOP1 [256] {
        0x00 s_mov_b32 = sop1_quiet(|a: u32| a);
        0x01 s_mov_b64 = sop1_quiet(|a: u64| a);
    }
}
rows! {
    /// Comparisons.
    SOPC [128] {
        0x06 s_cmp_eq_u32 = sopc(|a: u32, b: u32| a == b);
    }
}
rows! {
    /// With a 16-bit constant.
    SOPK [32] {
        0x00 s_movk_i32 = sopk_quiet(|k| i32::from(k) as u32);
    }
}
rows! {
    /// Program control.
    SOPP [128] {
        0x00 s_nop = nothing();
        0x01 s_endpgm = stop(Stop::End);
        0x02 s_branch = branch(|_| true);
        0x04 s_cbranch_scc0 = branch(|wave| !wave.scc);
        0x05 s_cbranch_scc1 = branch(|wave| wave.scc);
        0x0a s_barrier = stop(Stop::Barrier);
        0x0c s_waitcnt = nothing();
    }
}
