//! Encodings of vector instructions, and the common form that all of them are decoded to.

use super::fields;
use crate::wave::FIRST;

fields! {
    /// One source.
    Vop1 {
        src0 8:0 "source, or 249 for SDWA and 250 for DPP";
        op 16:9 "opcode";
        vdst 24:17 "destination";
    }
}
fields! {
    /// Two sources.
    Vop2 {
        src0 8:0 "first source, or 249 for SDWA and 250 for DPP";
        vsrc1 16:9 "second source, a VGPR";
        vdst 24:17 "destination";
        op 30:25 "opcode";
    }
}
fields! {
    /// Comparison to VCC.
    Vopc {
        src0 8:0 "first source, or 249 for SDWA";
        vsrc1 16:9 "second source, a VGPR";
        op 24:17 "opcode";
    }
}
fields! {
    /// Three sources, modifiers; VOP3B has a scalar destination in place of `abs` and `op_sel`.
    Vop3 {
        vdst 7:0 "destination";
        abs 10:8 "absolute values of sources";
        op_sel 14:11 "high halves: sources, then destination";
        sdst 14:8 "VOP3B: scalar destination";
        clamp 15:15 "clamp the result";
        op 25:16 "opcode";
        src0 40:32 "first source";
        src1 49:41 "second source";
        src2 58:50 "third source";
        omod 60:59 "output modifier";
        neg 63:61 "negated sources";
    }
}
fields! {
    /// Packed.
    Vop3p {
        vdst 7:0 "destination";
        neg_hi 10:8 "negated high halves";
        op_sel 13:11 "what the low result takes";
        op_sel_hi2 14:14 "what the high result takes of the third source";
        clamp 15:15 "clamp the result";
        op 22:16 "opcode";
        src0 40:32 "first source";
        src1 49:41 "second source";
        src2 58:50 "third source";
        op_sel_hi 60:59 "what the high result takes of the first two sources";
        neg 63:61 "negated low halves";
    }
}
fields! {
    /// Matrix instructions, a layout of VOP3P.
    Mai {
        vdst 7:0 "destination";
        cbsz 10:8 "broadcast of A: log2 of the blocks that share one";
        abid 14:11 "broadcast of A: which one";
        acc_cd 15:15 "C and D are AccVGPRs";
        op 22:16 "opcode";
        src0 40:32 "A";
        src1 49:41 "B";
        src2 58:50 "C";
        acc 60:59 "A, B are AccVGPRs";
        blgp 63:61 "permutation of B's lane groups, or negation (f64)";
    }
}
fields! {
    /// The second word of an SDWA instruction, as the high half of an encoding.
    Sdwa {
        src0 39:32 "first source";
        dst_sel 42:40 "what part of the destination is written";
        dst_unused 44:43 "what happens to the rest: 0 zero, 1 sign, 2 kept";
        sdst 46:40 "VOPC: scalar destination";
        sd 47:47 "VOPC: whether sdst is used";
        clamp 45:45 "clamp the result";
        omod 47:46 "output modifier";
        src0_sel 50:48 "part of the first source";
        src0_sext 51:51 "sign-extended";
        src0_neg 52:52 "negated";
        src0_abs 53:53 "absolute";
        s0 55:55 "the first source is scalar";
        src1_sel 58:56 "part of the second source";
        src1_sext 59:59 "sign-extended";
        src1_neg 60:60 "negated";
        src1_abs 61:61 "absolute";
        s1 63:63 "the second source is scalar";
    }
}
fields! {
    /// The second word of a DPP instruction, as the high half of an encoding.
    Dpp {
        src0 39:32 "first source, a VGPR";
        ctrl 48:40 "the lane that each lane reads";
        bound_ctrl 51:51 "lanes without a source read 0 in place of being left alone";
        src0_neg 52:52 "negated";
        src0_abs 53:53 "absolute";
        src1_neg 54:54 "negated";
        src1_abs 55:55 "absolute";
        bank_mask 59:56 "banks that are written";
        row_mask 63:60 "rows that are written";
    }
}

/// Source operand number of the first VGPR.
pub(crate) const VGPR: u16 = 256;
/// Source operand number of a literal, which follows the instruction.
pub(crate) const LITERAL: u16 = 255;
const SDWA: usize = 249;
const DPP: usize = 250;
const VCC: u16 = crate::wave::VCC as u16;

/// The word that follows the first one of a 32-bit vector encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extra {
    /// None, or a literal.
    #[default]
    None,
    /// [`Sdwa`]: the sources and the destination are parts of registers.
    Sdwa,
    /// [`Dpp`]: the first source comes from other lanes.
    Dpp,
}

/// Operands and modifiers of a vector instruction, whatever its encoding.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Valu {
    /// Source operand numbers.
    pub(crate) src: [u16; 3],
    /// Indices of the VGPR sources in the register file; for other sources, an index beyond its end.
    pub(crate) src_rows: [u16; 3],
    /// Index in the register file of the destination.
    pub(crate) result: u16,
    /// Destination VGPR.
    pub(crate) vdst: u16,
    /// Scalar destination: of comparisons, carries, lane reads.
    pub(crate) sdst: u8,
    /// Negated sources, one bit each (VOP3P: of the low half).
    pub(crate) neg: u8,
    /// Absolute sources, one bit each (VOP3P: negated high halves).
    pub(crate) abs: u8,
    /// Half selection: sources in bits 0 to 2, destination in bit 3.
    pub(crate) op_sel: u8,
    /// VOP3P: half selection of the high result.
    pub(crate) op_sel_hi: u8,
    /// Clamp the result.
    pub(crate) clamp: bool,
    /// Output modifier: 1 multiplies by 2, 2 multiplies by 4, 3 divides by 2.
    pub(crate) omod: u8,
    /// Whether SDWA or DPP applies.
    pub(crate) extra: Extra,
    /// Whether a 16-bit result is written to the half that op_sel selects, keeping the other one.
    pub(crate) keeps_half: bool,
    /// Whether reading the sources involves modifiers, SDWA or DPP.
    pub(crate) modified: bool,
    /// Whether writing the result involves modifiers, SDWA, DPP or halves.
    pub(crate) altered: bool,
    /// Whether the sources are read, and the result is written, without any of these.
    pub(crate) plain: bool,
}

impl Valu {
    fn finish(mut self) -> Self {
        let extra = self.extra != Extra::None;
        self.modified = extra || self.neg | self.abs | self.op_sel != 0;
        self.altered = extra || self.clamp || self.omod != 0 || self.keeps_half;
        self.plain = !self.modified && !self.altered;
        for (row, source) in self.src_rows.iter_mut().zip(self.src) {
            *row = source.checked_sub(VGPR).map_or(u16::MAX, |number| number + FIRST as u16);
        }
        self.result = self.vdst + FIRST as u16;
        self
    }

    /// Returns the operands with SDWA or DPP applied, if source operand 0 asks for it.
    fn with_extra(mut self, code: u64, comparison: bool) -> Self {
        match usize::from(self.src[0]) {
            SDWA => {
                let sdwa = Sdwa(code);
                let vgpr = |scalar: usize| if scalar == 0 { VGPR } else { 0 };
                self.src[0] = sdwa.src0() as u16 + vgpr(sdwa.s0());
                self.src[1] = self.src[1] % VGPR + vgpr(sdwa.s1());
                self.neg = (sdwa.src0_neg() | sdwa.src1_neg() << 1) as u8;
                self.abs = (sdwa.src0_abs() | sdwa.src1_abs() << 1) as u8;
                if comparison {
                    if sdwa.sd() != 0 {
                        self.sdst = sdwa.sdst() as u8;
                    }
                } else {
                    self.clamp = sdwa.clamp() != 0;
                    self.omod = sdwa.omod() as u8;
                }
                self.extra = Extra::Sdwa;
            }
            DPP => {
                let dpp = Dpp(code);
                self.src[0] = dpp.src0() as u16 + VGPR;
                self.neg = (dpp.src0_neg() | dpp.src1_neg() << 1) as u8;
                self.abs = (dpp.src0_abs() | dpp.src1_abs() << 1) as u8;
                self.extra = Extra::Dpp;
            }
            _ => {}
        }
        self.finish()
    }
}

impl From<Vop1> for Valu {
    fn from(code: Vop1) -> Self {
        let vdst = code.vdst();
        Self { src: [code.src0() as u16, 0, 0], vdst: vdst as u16, sdst: vdst as u8, ..Self::default() }
            .with_extra(code.0, false)
    }
}

impl From<Vop2> for Valu {
    fn from(code: Vop2) -> Self {
        let src = [code.src0() as u16, code.vsrc1() as u16 + VGPR, VCC];
        Self { src, vdst: code.vdst() as u16, sdst: VCC as u8, ..Self::default() }.with_extra(code.0, false)
    }
}

impl From<Vopc> for Valu {
    fn from(code: Vopc) -> Self {
        let src = [code.src0() as u16, code.vsrc1() as u16 + VGPR, 0];
        Self { src, sdst: VCC as u8, ..Self::default() }.with_extra(code.0, true)
    }
}

impl Vop3 {
    fn sources(self) -> [u16; 3] {
        [self.src0() as u16, self.src1() as u16, self.src2() as u16]
    }

    /// Returns whether the instruction selects halves of sources and result by op_sel.
    fn keeps_half(self) -> bool {
        matches!(self.op(), 0x1f4..=0x1fc | 0x203..=0x207 | 0x29e | 0x29f | 0x2a2 | 0x2a3)
    }

    /// Decodes the operands of VOP3A.
    pub(crate) fn a(self) -> Valu {
        let vdst = self.vdst();
        Valu {
            src: self.sources(),
            vdst: vdst as u16,
            sdst: vdst as u8,
            neg: self.neg() as u8,
            abs: self.abs() as u8,
            op_sel: self.op_sel() as u8,
            keeps_half: self.keeps_half(),
            clamp: self.clamp() != 0,
            omod: self.omod() as u8,
            ..Valu::default()
        }
        .finish()
    }

    /// Decodes the operands of VOP3B.
    pub(crate) fn b(self) -> Valu {
        Valu {
            src: self.sources(),
            vdst: self.vdst() as u16,
            sdst: self.sdst() as u8,
            neg: self.neg() as u8,
            clamp: self.clamp() != 0,
            omod: self.omod() as u8,
            ..Valu::default()
        }
        .finish()
    }
}

impl From<Vop3p> for Valu {
    fn from(code: Vop3p) -> Self {
        Self {
            src: [code.src0() as u16, code.src1() as u16, code.src2() as u16],
            vdst: code.vdst() as u16,
            neg: code.neg() as u8,
            abs: code.neg_hi() as u8,
            op_sel: code.op_sel() as u8,
            op_sel_hi: (code.op_sel_hi() | code.op_sel_hi2() << 2) as u8,
            clamp: code.clamp() != 0,
            ..Self::default()
        }
        .finish()
    }
}
