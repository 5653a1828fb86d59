//! Comparisons.

use crate::isa::rows;
use crate::shape::vector::vcmp;

rows! {
    /// VOPC, and VOP3 from 0 on.
    VOPC [256] {
        0xca v_cmp_eq_u32 = vcmp(|a: u32, b: u32| a == b);
    }
}
