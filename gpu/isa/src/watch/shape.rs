//! Which memory an instruction accesses, and how: a function of its mnemonic, evaluated while the tables are compiled.

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads and writes in one.
    Atomic,
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Device memory; addresses are the device's.
    Device,
    /// The workgroup's LDS; addresses count from its first byte.
    Lds,
    /// The lane's scratch; addresses count from its first byte.
    Scratch,
}

/// How an instruction encodes the addresses of its accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoded {
    Global,
    Flat,
    Private,
    Buffer,
    Local,
    /// LDS at M0 plus the offset, the same for all lanes.
    LocalByM0,
    /// LDS at M0 plus the offset plus 4 bytes for each lane.
    LocalByLane,
    Scalar,
    ScalarBuffer,
    ScalarScratch,
}

/// The accesses of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) encoded: Encoded,
    pub(crate) kind: Kind,
    /// Bytes of one access.
    pub(crate) len_bytes: u8,
    /// Distance in bytes that the two offsets of an instruction count in; 0 if it has one offset.
    pub(crate) step_bytes: u16,
    /// Whether what is loaded goes to LDS. (Of a buffer's loads, the encoding says that.)
    pub(crate) to_lds: bool,
}

const fn begins(name: &[u8], at: usize, with: &str) -> bool {
    let with = with.as_bytes();
    if name.len() < at + with.len() {
        return false;
    }
    let mut index = 0;
    while index < with.len() {
        if name[at + index] != with[index] {
            return false;
        }
        index += 1;
    }
    true
}

const fn has(name: &[u8], part: &str) -> bool {
    let mut at = 0;
    while at + part.len() <= name.len() {
        if begins(name, at, part) {
            return true;
        }
        at += 1;
    }
    false
}

/// The bytes that a part of a mnemonic stands for; the first that fits counts.
const SIZES: [(&str, u8); 29] = [
    ("dwordx16", 64),
    ("dwordx8", 32),
    ("dwordx4", 16),
    ("dwordx3", 12),
    ("dwordx2", 8),
    ("dword", 4),
    ("ubyte", 1),
    ("sbyte", 1),
    ("byte", 1),
    ("ushort", 2),
    ("sshort", 2),
    ("short", 2),
    ("_b128", 16),
    ("_b96", 12),
    ("_b64", 8),
    ("_u64", 8),
    ("_i64", 8),
    ("_f64", 8),
    ("_x2", 8),
    ("_b32", 4),
    ("_u32", 4),
    ("_i32", 4),
    ("_f32", 4),
    ("_u16", 2),
    ("_i16", 2),
    ("_b16", 2),
    ("_u8", 1),
    ("_i8", 1),
    ("_b8", 1),
];

const fn len_bytes(name: &[u8], otherwise: u8) -> u8 {
    let mut index = 0;
    while index < SIZES.len() {
        if has(name, SIZES[index].0) {
            return SIZES[index].1;
        }
        index += 1;
    }
    otherwise
}

/// Returns the accesses of the instruction `name`; `None` if it accesses no memory, or as a buffer's format says.
pub(crate) const fn shape(name: &str) -> Option<Shape> {
    let name = name.as_bytes();
    if begins(name, 0, "ds_") {
        return of_lds(name);
    }
    let (encoded, rest) = if begins(name, 0, "global_") {
        (Encoded::Global, 7)
    } else if begins(name, 0, "flat_") {
        (Encoded::Flat, 5)
    } else if begins(name, 0, "scratch_") {
        (Encoded::Private, 8)
    } else if begins(name, 0, "buffer_") {
        (Encoded::Buffer, 7)
    } else if begins(name, 0, "s_buffer_") {
        (Encoded::ScalarBuffer, 9)
    } else if begins(name, 0, "s_scratch_") {
        (Encoded::ScalarScratch, 10)
    } else if begins(name, 0, "s_load_") || begins(name, 0, "s_store_") || begins(name, 0, "s_atomic_") {
        (Encoded::Scalar, 2)
    } else {
        return None;
    };
    let kind = if begins(name, rest, "load_") {
        Kind::Load
    } else if begins(name, rest, "store_") {
        Kind::Store
    } else if begins(name, rest, "atomic_") {
        Kind::Atomic
    } else {
        return None;
    };
    if has(name, "_format_") {
        return None;
    }
    let to_lds = begins(name, rest, "load_lds_");
    Some(Shape { encoded, kind, len_bytes: len_bytes(name, 4), step_bytes: 0, to_lds })
}

/// What an instruction does beside computing and accessing memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    None,
    /// It orders accesses.
    Fence,
    /// It calls a function.
    Call,
    /// It jumps to an address in a register: returns from a function, mostly.
    Return,
}

/// Returns what the instruction `name` does beside computing and accessing memory.
pub(crate) const fn effect(name: &str) -> Effect {
    let name = name.as_bytes();
    if begins(name, 0, "buffer_wbl2")
        || begins(name, 0, "buffer_wbinv")
        || begins(name, 0, "buffer_inv")
        || begins(name, 0, "ds_gws_")
    {
        Effect::Fence
    } else if begins(name, 0, "s_swappc_b64") || begins(name, 0, "s_call_b64") {
        Effect::Call
    } else if begins(name, 0, "s_setpc_b64") {
        Effect::Return
    } else {
        Effect::None
    }
}

/// The same for DS instructions.
const fn of_lds(name: &[u8]) -> Option<Shape> {
    if has(name, "permute") || has(name, "swizzle") || has(name, "_gws_") || has(name, "_nop") {
        return None;
    }
    let kind = if begins(name, 3, "read") {
        Kind::Load
    } else if begins(name, 3, "write") {
        Kind::Store
    } else {
        Kind::Atomic
    };
    let len_bytes = if begins(name, 3, "condxchg32") { 8 } else { len_bytes(name, 4) };
    let encoded = if begins(name, 3, "append") || begins(name, 3, "consume") {
        Encoded::LocalByM0
    } else if has(name, "_addtid_") {
        Encoded::LocalByLane
    } else {
        Encoded::Local
    };
    let step_bytes = if has(name, "2st64_") {
        len_bytes as u16 * 64
    } else if begins(name, 3, "read2_") || begins(name, 3, "write2_") || begins(name, 3, "wrxchg2_") {
        len_bytes as u16
    } else {
        0
    };
    Some(Shape { encoded, kind, len_bytes, step_bytes, to_lds: false })
}
