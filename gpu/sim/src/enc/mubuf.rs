//! Untyped buffer encoding.

use super::fields;

fields! {
    /// Buffer loads, stores, atomics and cache operations.
    Mubuf {
        offset 11:0 "byte offset";
        offen 12:12 "the address VGPR has an offset";
        idxen 13:13 "the address VGPR has an index";
        sc0 14:14 "atomics: return the old value";
        sc1 15:15 "cache scope";
        lds 16:16 "data go to LDS";
        nt 17:17 "cache hint";
        op 24:18 "opcode";
        vaddr 39:32 "address VGPR";
        vdata 47:40 "data VGPR";
        srsrc 52:48 "resource, in fours of registers";
        acc 55:55 "data are AccVGPRs";
        soffset 63:56 "scalar offset operand";
    }
}

impl Mubuf {
    /// The opcode of a typed buffer instruction, whose layout differs.
    pub(crate) const fn mtbuf_op(code: u64) -> usize {
        super::bits(code, 18, 15) as usize
    }
}
