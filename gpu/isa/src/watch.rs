//! What sees the instructions of a wave before they are executed: checkers and profilers.
//!
//! A [`Watch`] in the [`Machine`](crate::step::Machine) is shown each instruction as a [`Step`], with its wave as it is before that. Waits and
//! hints, which mean nothing to an emulator, are not shown. Execution without a watch pays one test for a page of code.
//!
//! Which memory an instruction accesses follows from its mnemonic (`watch/shape.rs`, worked out while the tables are compiled) and from its
//! registers, by the same code that executes it.

mod access;
mod bits;
mod operands;
mod shape;
mod unknown;

pub use self::access::{Access, Register, Scope};
pub use self::operands::{Role, Source};
pub(crate) use self::shape::{Effect, Encoded, Shape, effect, shape};
pub use self::shape::{Kind, Memory};
pub use self::unknown::{Lanes, Scalar};
use crate::enc::mubuf::Mubuf;
use crate::enc::sop::Sop1;
use crate::enc::vop::{Dpp, Extra};
pub use crate::machine::{Step, Watch};
use crate::shape::source::dpp_lanes;
use crate::wave::Wave;

/// An instruction that orders a wave's accesses and those of other waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// What the wave has stored can be seen by others.
    Release(Scope),
    /// The wave sees what others have stored.
    Acquire(Scope),
    /// The wave waits at a barrier or a semaphore of all workgroups; it is shown again until it may go on.
    Meeting,
}

/// When an atomic exchanges what is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// In any case.
    Always,
    /// If what is there equals one of its operands.
    IfEqual,
}

/// A jump between functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// A call, which returns to the address `back`.
    Call {
        /// The address behind the call.
        back: u64,
    },
    /// A jump to an address in a register: a return, if a call has left the address.
    Return {
        /// The address.
        to: u64,
    },
}

impl Step<'_, '_> {
    /// Returns the mnemonic, without `_e32` and the like.
    pub fn mnemonic(&self) -> &'static str {
        self.insn.row.name
    }

    /// Returns the length in bytes, the literal included.
    pub fn len_bytes(&self) -> u64 {
        u64::from(self.insn.len_words) * 4
    }

    /// Returns whether it is a vector instruction: one that computes for lanes, or accesses memory or LDS for them.
    pub fn is_vector(&self) -> bool {
        self.insn.is_vector()
    }

    /// Returns the size of the workgroup's LDS in bytes.
    pub fn lds_len_bytes(&self) -> u32 {
        self.machine.lds.len_bytes()
    }

    /// Returns the size of a lane's scratch in bytes.
    pub fn scratch_bytes_per_lane(&self) -> u64 {
        self.machine.scratch.bytes_per_lane()
    }

    /// Returns how it orders accesses, if it does only that.
    pub fn fence(&self) -> Option<Fence> {
        if self.insn.row.effect != Effect::Fence {
            return None;
        }
        let code = Mubuf(self.insn.code);
        let scope = || Scope::of(code.sc0(), code.sc1());
        match self.insn.row.name {
            "buffer_wbl2" => Some(Fence::Release(scope())),
            "buffer_inv" => Some(Fence::Acquire(scope())),
            "buffer_invl2" | "buffer_wbinvl1" | "buffer_wbinvl1_vol" => Some(Fence::Acquire(Scope::Agent)),
            _ => Some(Fence::Meeting),
        }
    }

    /// Returns what the instruction does with what it reads.
    pub fn role(&self) -> Role {
        operands::role(self.insn.row.name)
    }

    /// Calls `each` with the registers that it reads, those of addresses and data of memory left out.
    pub fn sources(&self, wave: &Wave, each: &mut dyn FnMut(Source)) {
        operands::sources(self.insn, wave.accum_offset, each);
    }

    /// Calls `each` with the first register and the number of registers of each result, those of loads left out.
    pub fn results(&self, wave: &Wave, each: &mut dyn FnMut(Register, usize)) {
        operands::results(self.insn, wave.accum_offset, each);
    }

    /// Returns the lanes whose bytes of the result are marked, for each of the four bytes of a register; `sources` has the same of each source.
    /// For instructions whose role is [`Role::Bits`].
    pub fn moved_bytes(&self, wave: &Wave, sources: &[[u64; 4]; 3]) -> [u64; 4] {
        bits::moved_bytes(self.insn, wave, sources)
    }

    /// Returns what it does with its lanes, if it is a vector instruction that accesses no memory.
    pub fn lanes(&self) -> Lanes {
        unknown::lanes(self.insn)
    }

    /// Returns the first register of the mask that it reads for its lanes, and the mask's value, if it does: of a selection or a carry.
    pub fn mask(&self, wave: &Wave) -> Option<(usize, u64)> {
        unknown::mask(self.insn).map(|code| (code, wave.pair(code)))
    }

    /// Returns the lanes that get their value of source 0 from one of `lanes`: DPP and addresses move values between lanes.
    pub fn arriving(&self, wave: &Wave, lanes: u64) -> u64 {
        match self.lanes() {
            Lanes::Gather => unknown::gathered(self.insn, wave, lanes),
            _ => unknown::arriving(self.insn, wave.exec(), lanes),
        }
    }

    /// Returns the lanes that it writes.
    pub fn written_lanes(&self, wave: &Wave) -> u64 {
        match self.insn.valu.extra {
            Extra::Dpp => dpp_lanes(Dpp(self.insn.code), wave.exec()),
            _ => wave.exec(),
        }
    }

    /// Returns the lane that it reads or writes, if [`lanes`](Self::lanes) is [`Lanes::Read`] or [`Lanes::Write`].
    pub fn named_lane(&self, wave: &Wave) -> usize {
        unknown::named_lane(self.insn, wave)
    }

    /// Returns the lanes whose count depends on unknown bits, which `unknown` returns for a scalar register, if [`lanes`](Self::lanes) is
    /// [`Lanes::Count`].
    pub fn counted_lanes(&self, unknown: &dyn Fn(usize) -> u32) -> u64 {
        unknown::counted(self.insn, unknown)
    }

    /// Returns what becomes of unknown bits in a scalar instruction. `unknown` returns those of a register, `scc` says whether SCC is.
    pub fn scalar(&self, wave: &Wave, unknown: &dyn Fn(usize) -> u32, scc: bool) -> Scalar {
        unknown::scalar(self.insn, wave, unknown, scc)
    }

    /// Returns the first vector register of the address, if the instruction accesses memory for each lane.
    pub fn address_register(&self) -> Option<usize> {
        let encoded = self.insn.row.access.map(|shape| shape.encoded);
        let is_vector =
            !matches!(encoded, Some(Encoded::Scalar | Encoded::ScalarBuffer | Encoded::ScalarScratch));
        (encoded.is_some() && is_vector).then_some((self.insn.code >> 32 & 0xff) as usize)
    }

    /// Returns how it jumps, if it calls a function or jumps to an address in a register.
    pub fn jump(&self, wave: &Wave) -> Option<Jump> {
        match self.insn.row.effect {
            Effect::Call => Some(Jump::Call { back: wave.pc.wrapping_add(self.len_bytes()) }),
            Effect::Return => Some(Jump::Return { to: wave.pair(Sop1(self.insn.code).ssrc0()) }),
            Effect::None | Effect::Fence => None,
        }
    }

    /// Calls `each` with the accesses of the instruction: for each memory that it accesses, the active lanes that do. What the hardware
    /// leaves out, as it lies outside of a buffer's resource, is no access. Nothing is reported of accesses by a resource's format.
    pub fn accesses(&mut self, wave: &Wave, each: &mut dyn FnMut(&Access<'_>)) {
        if let Some(shape) = self.insn.row.access {
            access::each(shape, wave, self.machine, self.insn, each);
        }
    }

    /// Returns whether the instruction accesses scratch by its encoding: what a function has there of its own, registers that are saved
    /// among it.
    pub fn is_scratch(&self) -> bool {
        let encoded = self.insn.row.access.map(|shape| shape.encoded);
        matches!(encoded, Some(Encoded::Private | Encoded::Buffer | Encoded::ScalarScratch))
    }

    /// Returns when it exchanges what is in memory, if it is an atomic that does not compute with that.
    pub fn exchange(&self) -> Option<Exchange> {
        let name = self.insn.row.name;
        let has = |part: &str| name.contains(part);
        match () {
            () if self.insn.row.access.is_none_or(|shape| shape.kind != Kind::Atomic) => None,
            () if has("_swap") || has("wrxchg") => Some(Exchange::Always),
            () if has("_cmpswap") || has("cmpst") => Some(Exchange::IfEqual),
            () => None,
        }
    }

    /// Returns whether the instruction accesses memory.
    pub fn has_accesses(&self) -> bool {
        self.insn.row.access.is_some()
    }
}
