//! Untyped buffers.

use crate::isa::rows;
use crate::shape::scalar::nothing;

rows! {
    /// MUBUF.
    MUBUF [128] {
        0x28 buffer_wbl2 = nothing();
        0x29 buffer_inv = nothing();
    }
}
