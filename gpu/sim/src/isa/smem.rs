//! Scalar memory.

use crate::isa::rows;
use crate::shape::memory::s_load;
use crate::shape::scalar::nothing;

rows! {
    /// SMEM.
    SMEM [256] {
        0x00 s_load_dword = s_load::<1>();
        0x01 s_load_dwordx2 = s_load::<2>();
        0x20 s_dcache_inv = nothing();
    }
}
