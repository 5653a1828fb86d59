//! What sees the instructions of a wave before they are executed: checkers and profilers.
//!
//! A [`Watch`] in the [`Machine`](crate::step::Machine) is shown each instruction as a [`Step`], with its wave as it is before that. Waits and
//! hints, which mean nothing to an emulator, are not shown. Execution without a watch pays one test for a page of code.
//!
//! Which memory an instruction accesses follows from its mnemonic (`watch/shape.rs`, worked out while the tables are compiled) and from its
//! registers, by the same code that executes it.

mod access;
mod operands;
mod shape;

pub use self::access::{Access, Register, Scope};
pub use self::operands::{Role, Source};
pub(crate) use self::shape::{Effect, Encoded, Shape, effect, shape};
pub use self::shape::{Kind, Memory};
use crate::enc::mubuf::Mubuf;
use crate::enc::sop::Sop1;
pub use crate::machine::{Step, Watch};
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

    /// Returns which bytes of the result come from the lanes' marked bytes of the sources, for each byte of a register, if the instruction's
    /// role is [`Role::Bits`].
    pub fn moved_bytes(&self, wave: &Wave, marked: [u64; 4]) -> [u64; 4] {
        operands::moved_bytes(self.insn, wave, marked)
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
