//! The accesses of an instruction, with the addresses of its lanes.

use std::ops::Range;

use super::shape::{Encoded, Kind, Memory, Shape};
use crate::aperture::Aperture;
use crate::enc::ds::Ds;
use crate::enc::flat::Flat as FlatCode;
use crate::enc::mubuf::Mubuf;
use crate::enc::smem::Smem;
use crate::machine::{Insn, Machine};
use crate::shape::memory::buffer::Buffer;
use crate::shape::memory::ds::Local;
use crate::shape::memory::flat::{Flat, Global, Private};
use crate::shape::memory::{Family, Place, active, smem};
use crate::wave::{LANES, Wave};

/// Who is to see an access or a fence, as far as the instruction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The wave.
    Wave,
    /// The workgroup.
    Workgroup,
    /// The device.
    Agent,
    /// Everybody.
    System,
}

impl Scope {
    /// Returns the scope that the bits SC0 and SC1 say.
    pub(super) fn of(sc0: usize, sc1: usize) -> Self {
        [Self::Wave, Self::Workgroup, Self::Agent, Self::System][(sc0 & 1) | (sc1 & 1) << 1]
    }
}

/// The first register of an access's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    /// A vector register, counted over VGPRs and AccVGPRs.
    Vector(usize),
    /// A scalar register by its operand number.
    Scalar(usize),
    /// LDS.
    Lds,
}

/// Accesses of one instruction's lanes to one memory.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// The memory.
    pub memory: Memory,
    /// What is done to it.
    pub kind: Kind,
    /// Bytes that each lane accesses.
    pub len_bytes: u32,
    /// The lanes that access it; lane 0 alone for a scalar access.
    pub lanes: u64,
    /// Each lane's address.
    pub addresses: &'a [u64; LANES],
    /// Where the data come from or go to.
    pub data: Register,
    /// Whether it is one access for the whole wave.
    pub is_scalar: bool,
    /// For [`Kind::Atomic`], the first register that the old value is returned to, if it is.
    pub returned: Option<Register>,
    /// Who is to see it: [`Scope::Wave`] for one that is neither atomic nor volatile. Of [`Kind::Atomic`] only whether it is the system.
    pub scope: Scope,
}

impl Access<'_> {
    /// Calls `each` with the lanes that access the memory and their addresses.
    pub fn each_lane(&self, mut each: impl FnMut(usize, u64)) {
        for lane in active(self.lanes) {
            each(lane, self.addresses[lane]);
        }
    }

    /// Returns the range from the first byte that a lane accesses to the end of the last one; empty if no lane does.
    pub fn span(&self) -> Range<u64> {
        let (mut first, mut last) = (u64::MAX, 0);
        for (lane, &address) in self.addresses.iter().enumerate() {
            let is_active = self.lanes >> lane & 1 != 0;
            first = first.min(if is_active { address } else { u64::MAX });
            last = last.max(if is_active { address } else { 0 });
        }
        first..last.saturating_add(self.len_bytes.into())
    }
}

/// An access whose lanes' places are not known yet.
struct Unplaced {
    kind: Kind,
    len_bytes: u32,
    data: Register,
    is_scalar: bool,
    returned: Option<Register>,
    scope: Scope,
}

impl Unplaced {
    /// Calls `each` for each memory in which some of `lanes` have their place.
    fn place(&self, lanes: u64, mut place: impl FnMut(usize) -> Place, each: &mut dyn FnMut(&Access<'_>)) {
        const MEMORIES: [Memory; 3] = [Memory::Device, Memory::Lds, Memory::Scratch];
        let (mut of, mut addresses) = ([0; 3], [0; LANES]);
        for lane in active(lanes) {
            let (memory, address) = match place(lane) {
                Place::Device(address) => (0, address),
                Place::Lds(address) => (1, u64::from(address)),
                Place::Scratch(address) => (2, u64::from(address)),
                Place::Nowhere => continue,
            };
            of[memory] |= 1 << lane;
            addresses[lane] = address;
        }
        for (memory, lanes) in MEMORIES.into_iter().zip(of) {
            if lanes != 0 {
                let &Self { kind, len_bytes, data, is_scalar, returned, scope } = self;
                let addresses = &addresses;
                each(&Access { memory, kind, len_bytes, lanes, addresses, data, is_scalar, returned, scope });
            }
        }
    }
}

/// Calls `each` with the accesses of `insn`.
pub(super) fn each(
    shape: Shape,
    wave: &Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    each: &mut dyn FnMut(&Access<'_>),
) {
    let (flat, buffer) = (FlatCode(insn.code), Mubuf(insn.code));
    match shape.encoded {
        Encoded::Global => vector::<Global>(shape, [flat.sc0(), flat.sc1()], wave, machine, insn, each),
        Encoded::Flat => vector::<Flat>(shape, [flat.sc0(), flat.sc1()], wave, machine, insn, each),
        Encoded::Private => vector::<Private>(shape, [0, 0], wave, machine, insn, each),
        Encoded::Buffer => {
            let shape = Shape { to_lds: buffer.lds() != 0, ..shape };
            vector::<Buffer>(shape, [buffer.sc0(), buffer.sc1()], wave, machine, insn, each);
        }
        Encoded::Local if shape.step_bytes == 0 => {
            vector::<Local>(shape, [0, 0], wave, machine, insn, each);
        }
        Encoded::Local => twice(shape, wave, insn, each),
        Encoded::LocalByM0 | Encoded::LocalByLane => {
            let code = Ds(insn.code);
            let first = (wave.m0() & 0xffff) + code.offset() as u32;
            let stride = if shape.encoded == Encoded::LocalByM0 { 0 } else { 4 };
            let data = Local::operands(wave, insn).to();
            let unplaced = Unplaced {
                kind: shape.kind,
                len_bytes: 4,
                data: Register::Vector(data),
                is_scalar: stride == 0,
                returned: (shape.kind == Kind::Atomic).then_some(Register::Vector(data)),
                scope: Scope::Wave,
            };
            // The counter is changed once for all lanes.
            let lanes = if stride == 0 { wave.exec().min(1) } else { wave.exec() };
            unplaced.place(lanes, |lane| Place::Lds(first + lane as u32 * stride), each);
        }
        Encoded::Scalar | Encoded::ScalarBuffer | Encoded::ScalarScratch => {
            let code = Smem(insn.code);
            let (address, available) = match shape.encoded {
                Encoded::ScalarBuffer => smem::buffer_address(wave, code),
                Encoded::ScalarScratch => (smem::scratch_address(wave, code), u64::MAX),
                _ => (smem::address(wave, code), u64::MAX),
            };
            let len_bytes = u64::from(shape.len_bytes).min(available / 4 * 4) as u32;
            let unplaced = Unplaced {
                kind: shape.kind,
                len_bytes,
                data: Register::Scalar(code.sdata()),
                is_scalar: true,
                returned: (shape.kind == Kind::Atomic && code.glc() != 0)
                    .then_some(Register::Scalar(code.sdata())),
                scope: Scope::Wave,
            };
            let lanes = u64::from(len_bytes > 0);
            unplaced.place(lanes, |_| Place::Device(address), each);
        }
    }
}

/// The accesses of a family, one for each lane.
fn vector<F: Family>(
    shape: Shape,
    [sc0, sc1]: [usize; 2],
    wave: &Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    each: &mut dyn FnMut(&Access<'_>),
) {
    let operands = F::operands(wave, insn);
    let data = match shape.kind {
        _ if shape.to_lds => Register::Lds,
        Kind::Load => Register::Vector(operands.to()),
        Kind::Store | Kind::Atomic => Register::Vector(operands.from()),
    };
    let is_atomic = shape.kind == Kind::Atomic;
    let unplaced = Unplaced {
        kind: shape.kind,
        len_bytes: u32::from(shape.len_bytes),
        data,
        is_scalar: false,
        returned: (is_atomic && operands.returns()).then_some(Register::Vector(operands.to())),
        // An atomic's SC0 asks for the old value.
        scope: if is_atomic { Scope::of(0, sc1).max(Scope::of(sc1, sc1)) } else { Scope::of(sc0, sc1) },
    };
    let len_bytes = u64::from(shape.len_bytes);
    // What cannot be opened fails when it is executed.
    if let Ok(memory) = F::open(wave, machine, insn) {
        unplaced.place(wave.exec(), |lane| F::place(&memory, lane, len_bytes), each);
    }
    if shape.to_lds {
        let offset = match shape.encoded {
            Encoded::Buffer => Mubuf(insn.code).offset() as u32,
            _ => FlatCode(insn.code).signed_offset() as u32,
        };
        let first = (wave.m0() & 0xffff).wrapping_add(offset);
        let unplaced = Unplaced { kind: Kind::Store, len_bytes: 4, ..unplaced };
        unplaced.place(wave.exec(), |lane| Place::Lds(first.wrapping_add(lane as u32 * 4)), each);
    }
}

/// The accesses of a DS instruction with two offsets.
fn twice(shape: Shape, wave: &Wave, insn: &Insn, each: &mut dyn FnMut(&Access<'_>)) {
    let code = Ds(insn.code);
    let operands = Local::operands(wave, insn);
    let words = usize::from(shape.len_bytes) / 4;
    let (from, to) = ([Some(operands.from()), operands.second()], operands.to());
    for (index, (offset, from)) in [code.offset0(), code.offset1()].into_iter().zip(from).enumerate() {
        let data = match (shape.kind, from) {
            (Kind::Load, _) | (_, None) => to + index * words,
            (_, Some(from)) => from,
        };
        let unplaced = Unplaced {
            kind: shape.kind,
            len_bytes: u32::from(shape.len_bytes),
            data: Register::Vector(data),
            is_scalar: false,
            returned: (shape.kind == Kind::Atomic).then_some(Register::Vector(to + index * words)),
            scope: Scope::Wave,
        };
        let row = wave.row(code.addr());
        let offset = offset as u32 * u32::from(shape.step_bytes);
        unplaced.place(wave.exec(), |lane| Place::Lds(row[lane].wrapping_add(offset)), each);
    }
}

impl From<Aperture> for Place {
    fn from(aperture: Aperture) -> Self {
        match aperture {
            Aperture::Memory(address) => Self::Device(address),
            Aperture::Shared(address) => Self::Lds(address),
            Aperture::Private(address) => Self::Scratch(address),
        }
    }
}
