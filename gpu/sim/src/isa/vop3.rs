//! Three sources, or things that only this encoding has.

use crate::isa::rows;
use crate::sem::float::fma32;
use crate::shape::vector::v3;

rows! {
    /// VOP3's own.
    VOP3 [1024] {
        0x1cb v_fma_f32 = v3(fma32);
    }
}
