//! Flat, global and scratch memory encoding.

use super::fields;

fields! {
    /// FLAT, GLOBAL and SCRATCH.
    Flat {
        offset 12:0 "byte offset";
        sve 13:13 "scratch: whether the address VGPR is used";
        seg 15:14 "0 flat, 1 scratch, 2 global";
        sc0 16:16 "atomics: return the old value";
        nt 17:17 "cache hint";
        op 24:18 "opcode";
        sc1 25:25 "cache scope";
        addr 39:32 "address VGPR";
        data 47:40 "data VGPR";
        saddr 54:48 "scalar address, 127 for none";
        acc 55:55 "data are AccVGPRs";
        vdst 63:56 "destination VGPR";
    }
}

impl Flat {
    /// Converts a gfx90a access to the gfx942's encoding; returns `None` if there is none. The gfx90a's scratch accesses
    /// have either an address VGPR or a scalar address.
    pub(crate) const fn as_gfx942(self) -> Option<Self> {
        const SVE: u64 = 1 << 13;
        const SCRATCH: usize = 1;
        if self.sve() != 0 {
            None
        } else if self.seg() == SCRATCH && self.saddr() == 127 {
            Some(Self(self.0 | SVE))
        } else {
            Some(self)
        }
    }

    /// Returns the signed byte offset of global and scratch instructions.
    pub(crate) const fn signed_offset(self) -> i64 {
        ((self.0 as i64) << 51) >> 51
    }

    /// Returns the unsigned byte offset of flat instructions.
    pub(crate) const fn unsigned_offset(self) -> u64 {
        self.0 & 0xfff
    }
}
