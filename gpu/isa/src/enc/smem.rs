//! Scalar memory encoding.

use super::fields;

fields! {
    /// Scalar loads, stores and cache operations.
    Smem {
        sbase 5:0 "address pair, in pairs of registers";
        sdata 12:6 "data";
        soffset_en 14:14 "whether soffset is added";
        glc 16:16 "atomics: return the old value";
        imm 17:17 "whether offset is an immediate";
        op 25:18 "opcode";
        offset 52:32 "signed byte offset, or a scalar register number if imm is 0";
        soffset 63:57 "scalar register with an offset";
    }
}

impl Smem {
    /// Returns the immediate byte offset.
    pub(crate) const fn signed_offset(self) -> i64 {
        ((self.0 as i64) << 11) >> 43
    }
}
