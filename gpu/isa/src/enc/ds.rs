//! LDS encoding.

use super::fields;

fields! {
    /// LDS access or cross-lane operation.
    Ds {
        offset0 7:0 "first offset of two";
        offset1 15:8 "second offset of two";
        offset 15:0 "the one offset in bytes";
        gds 16:16 "global data share";
        op 24:17 "opcode";
        acc 25:25 "data are AccVGPRs";
        addr 39:32 "address VGPR";
        data0 47:40 "first data VGPR";
        data1 55:48 "second data VGPR";
        vdst 63:56 "destination VGPR";
    }
}
