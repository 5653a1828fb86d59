//! Buffer encodings.

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
        srsrc 52:48 "number of the first SGPR of the buffer resource, divided by 4";
        acc 55:55 "data are AccVGPRs";
        soffset 63:56 "scalar offset operand";
    }
}
fields! {
    /// Typed buffer loads and stores. The fields that are missing here are those of MUBUF.
    Mtbuf {
        op 18:15 "opcode";
        dfmt 22:19 "data format";
        nfmt 25:23 "number format";
        sc1 53:53 "cache scope";
        nt 54:54 "cache hint";
    }
}

impl Mtbuf {
    /// Returns the encoding with those bits cleared in which MUBUF has other fields, so that the operands can be read as
    /// MUBUF's.
    pub(crate) const fn as_mubuf(self) -> u64 {
        self.0 & !(0b111 << 15)
    }
}
