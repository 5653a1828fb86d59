//! Packed and matrix instructions.

use crate::isa::rows;

rows! {
    /// VOP3P.
    VOP3P [128] {}
}
