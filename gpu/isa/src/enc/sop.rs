//! Scalar ALU encodings.

use super::fields;

fields! {
    /// Two scalar sources.
    Sop2 {
        ssrc0 7:0 "first source";
        ssrc1 15:8 "second source";
        sdst 22:16 "destination";
        op 29:23 "opcode";
    }
}
fields! {
    /// One scalar source.
    Sop1 {
        ssrc0 7:0 "source";
        op 15:8 "opcode";
        sdst 22:16 "destination";
    }
}
fields! {
    /// Scalar comparison.
    Sopc {
        ssrc0 7:0 "first source";
        ssrc1 15:8 "second source";
        op 22:16 "opcode";
    }
}
fields! {
    /// A destination and a 16-bit constant.
    Sopk {
        simm16 15:0 "constant";
        sdst 22:16 "destination, which some read first";
        op 27:23 "opcode";
    }
}
fields! {
    /// Program control.
    Sopp {
        simm16 15:0 "constant";
        op 22:16 "opcode";
    }
}
