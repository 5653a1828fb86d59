//! Two sources.

use crate::isa::rows;
use crate::shape::vector::v2;

rows! {
    /// VOP2, and VOP3 from 0x100 on.
    VOP2 [64] {
        0x01 v_add_f32 = v2(|a: f32, b: f32| a + b);
        0x13 v_and_b32 = v2(|a: u32, b: u32| a & b);
        0x34 v_add_u32 = v2(u32::wrapping_add);
    }
}
