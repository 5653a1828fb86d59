//! One source.

use crate::isa::rows;
use crate::shape::scalar::nothing;
use crate::shape::vector::v1;

rows! {
    /// VOP1, and VOP3 from 0x140 on.
    VOP1 [128] {
        0x00 v_nop e32 = nothing();
        0x01 v_mov_b32 = v1(|a: u32| a);
        0x2b v_not_b32 = v1(|a: u32| !a);
        0x38 v_mov_b64 = v1(|a: u64| a);
    }
}
