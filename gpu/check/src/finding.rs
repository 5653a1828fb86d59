//! What the checkers find.

use hipr_isa::watch::{Kind as AccessKind, Memory};
use hipr_lines::Frame;

/// A group of checks that can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Addresses of accesses, and what the program frees.
    Memory,
    /// Use of what nobody wrote.
    Init,
    /// Accesses without an order.
    Race,
    /// Barriers and waits.
    Sync,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Init, Self::Race, Self::Sync];

    /// Returns its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Init => "init",
            Self::Race => "race",
            Self::Sync => "sync",
        }
    }
}

/// What kind of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An access that leaves its allocation, variable, LDS or scratch.
    OutOfBounds,
    /// An access to memory that the program has freed.
    UseAfterFree,
    /// An access at an address that is no multiple of what the instruction needs.
    Misaligned,
    /// An access to the first page of addresses.
    NullPointer,
    /// An access to memory of the host that no kernel can access.
    HostPointer,
    /// An access to what never was memory of the device.
    WildPointer,
    /// The program has freed the same memory twice.
    DoubleFree,
    /// The program has freed what it cannot free: the inside of an allocation, another kind of memory.
    WrongFree,
    /// Memory that was not freed when the program ended.
    Leak,
    /// Bytes that nobody wrote are used.
    UninitializedRead,
    /// Two threads of one block access the same bytes without an order.
    BlockRace,
    /// Two blocks of one kernel access the same bytes without an order.
    GridRace,
    /// Two kernels, or a kernel and a copy, access the same bytes without an order.
    StreamRace,
    /// Not all threads of a wave are at a barrier, or not all waves at the same.
    DivergentBarrier,
    /// A wait that cannot end.
    EndlessWait,
    /// A cooperative launch whose blocks do not fit onto the device at once.
    CooperativeTooLarge,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::OutOfBounds,
        Self::UseAfterFree,
        Self::Misaligned,
        Self::NullPointer,
        Self::HostPointer,
        Self::WildPointer,
        Self::DoubleFree,
        Self::WrongFree,
        Self::Leak,
        Self::UninitializedRead,
        Self::BlockRace,
        Self::GridRace,
        Self::StreamRace,
        Self::DivergentBarrier,
        Self::EndlessWait,
        Self::CooperativeTooLarge,
    ];

    /// Returns its name in reports and suppressions.
    pub fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out-of-bounds",
            Self::UseAfterFree => "use-after-free",
            Self::Misaligned => "misaligned",
            Self::NullPointer => "null-pointer",
            Self::HostPointer => "host-pointer",
            Self::WildPointer => "wild-pointer",
            Self::DoubleFree => "double-free",
            Self::WrongFree => "wrong-free",
            Self::Leak => "leak",
            Self::UninitializedRead => "uninitialized-read",
            Self::BlockRace => "block-race",
            Self::GridRace => "grid-race",
            Self::StreamRace => "stream-race",
            Self::DivergentBarrier => "divergent-barrier",
            Self::EndlessWait => "endless-wait",
            Self::CooperativeTooLarge => "cooperative-too-large",
        }
    }

    /// Returns the checks that find it.
    pub fn tool(self) -> Tool {
        match self {
            Self::OutOfBounds
            | Self::UseAfterFree
            | Self::Misaligned
            | Self::NullPointer
            | Self::HostPointer
            | Self::WildPointer
            | Self::DoubleFree
            | Self::WrongFree
            | Self::Leak => Tool::Memory,
            Self::UninitializedRead => Tool::Init,
            Self::BlockRace | Self::GridRace | Self::StreamRace => Tool::Race,
            Self::DivergentBarrier | Self::EndlessWait | Self::CooperativeTooLarge => Tool::Sync,
        }
    }
}

/// Where an instruction was executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The kernel's name, as its symbol has it.
    pub kernel: String,
    /// Byte offset of the instruction from the kernel's first one.
    pub offset_bytes: i64,
    /// The instruction's frames: where it is first, then where that was inlined. Empty without debug information and symbols.
    pub frames: Vec<Frame>,
    /// The block: `blockIdx`.
    pub block: Option<[u32; 3]>,
    /// The thread: `threadIdx`.
    pub thread: Option<[u32; 3]>,
}

/// What an instruction has accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accessed {
    /// Read, written or both.
    pub kind: AccessKind,
    /// The memory.
    pub memory: Memory,
    /// The first byte's address: of the device, or from the beginning of LDS or scratch.
    pub address: u64,
    /// How many bytes a thread has accessed.
    pub len_bytes: u32,
}

/// A piece of memory that a finding is about, or near to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Address of its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub len_bytes: u64,
    /// The variable's name, if it is a variable of a module.
    pub variable: Option<String>,
    /// How often an allocation had begun at the address before this one: with it, what the host knows of the allocation is found.
    pub earlier: u64,
    /// Whether the program has freed it.
    pub is_freed: bool,
}

/// The other one of two accesses without an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Where it was executed; `None` for a copy.
    pub place: Option<Place>,
    /// Read, written or both.
    pub kind: AccessKind,
}

/// A mistake that was found in the work of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: Kind,
    /// Where; `None` if no instruction of a kernel has done it.
    pub place: Option<Place>,
    /// The access, if it is about one.
    pub accessed: Option<Accessed>,
    /// The memory that it is about, or the next before or behind it.
    pub near: Option<Near>,
    /// The other access, for races.
    pub other: Option<Other>,
    /// More that is known, as a sentence; empty if there is nothing.
    pub note: String,
    /// How often it was found at this instruction.
    pub count: u64,
}
