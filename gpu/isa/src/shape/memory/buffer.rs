//! Buffers: memory described by a resource with its base and its size.

use super::flat::out_of_scratch;
use super::window::Window;
use super::{
    ALL, Bits, Family, Linear, Memory, Operands, Place, Unit, ZERO, data_register, load, load_to_lds,
    load_words,
};
use crate::aperture::PRIVATE_BUFFER;
use crate::enc::mubuf::Mubuf;
use crate::fault::Cause;
use crate::lds::Scratch;
use crate::machine::{Insn, Machine};
use crate::shape::operand::scalar32;
use crate::shape::scalar::unimplemented;
use crate::wave::{LANES, Row, Wave};

/// A buffer resource in four scalar registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource([u32; 4]);

impl Resource {
    /// Returns the resource in scalar register `number` and the three after it.
    #[inline(always)]
    pub(super) fn at(wave: &Wave, number: usize) -> Self {
        Self(std::array::from_fn(|index| wave.sgpr[(number + index) & 127]))
    }

    /// Returns the address of the first byte.
    #[inline(always)]
    pub(super) fn base(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1] & 0xffff) << 32
    }

    /// Returns the size of a record in bytes, or 0 if there are no records.
    #[inline(always)]
    pub(super) fn stride(self) -> u64 {
        u64::from(self.0[1] >> 16 & 0x3fff)
    }

    /// Returns the number of records, or of bytes if accesses have no index or records no size.
    #[inline(always)]
    pub(super) fn records(self) -> u64 {
        u64::from(self.0[2])
    }

    /// Returns the data format, the number format, and the source of each component of a load.
    pub(super) fn format(self) -> (usize, usize, [usize; 4]) {
        let field = |shift: u32, bits: u32| (self.0[3] >> shift & ((1 << bits) - 1)) as usize;
        (field(15, 4), field(12, 3), [0, 3, 6, 9].map(|shift| field(shift, 3)))
    }

    /// Returns whether the lane number is added to the index, so that records may be interleaved.
    #[inline(always)]
    fn adds_lane(self) -> bool {
        self.0[3] >> 23 & 1 != 0
    }

    /// Returns the offset in a lane's scratch at which the buffer begins, or `None` if it is not scratch. Its scalar offsets
    /// count the bytes of all lanes.
    fn in_scratch(self, scalar: u64) -> Option<u32> {
        let offset = self.base().checked_sub(PRIVATE_BUFFER)?;
        Some(((offset + scalar) / LANES as u64) as u32)
    }
}

/// The buffer accesses of MUBUF.
pub(crate) struct Buffer;

pub(crate) struct BufferMemory<'a> {
    window: Window<'a>,
    /// The address of offset 0.
    base: u64,
    /// Offsets of the lanes, and the constant that is added to them in 32 bits.
    offset: Row,
    constant: u32,
    index: Row,
    stride: u64,
    /// First index outside of the buffer.
    index_end: u64,
    /// First offset outside of the buffer.
    end: u64,
    /// The scratch memory, if the buffer is not in device memory.
    scratch: Option<&'a mut Scratch>,
}

/// Returns whether the instruction loads from a buffer to LDS, as a load of at most one word does if its LDS bit is set.
fn is_load_to_lds(code: Mubuf) -> bool {
    code.lds() != 0 && matches!(code.op(), 0x10..=0x14)
}

/// Loads a unit for each lane and converts it to a word, in a register or in LDS.
#[inline(always)]
pub(crate) fn load_unit<U: Unit>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(U) -> u32,
) -> Result<(), Cause> {
    let code = Mubuf(insn.code);
    if is_load_to_lds(code) {
        load_to_lds::<Buffer, U>(wave, machine, insn, code.offset() as u32, f)
    } else {
        load::<Buffer, U>(wave, machine, insn, f)
    }
}

/// Loads a word for each lane, to a register or to LDS.
#[inline(always)]
pub(crate) fn load_word(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    let code = Mubuf(insn.code);
    if is_load_to_lds(code) {
        load_to_lds::<Buffer, u32>(wave, machine, insn, code.offset() as u32, |word| word)
    } else {
        load_words::<Buffer, 1>(wave, machine, insn)
    }
}

/// An address outside of every buffer.
const OUTSIDE: u64 = u64::MAX;

impl BufferMemory<'_> {
    /// Returns the number of bytes that the buffer has from `offset` on.
    #[inline(always)]
    fn available(&self, offset: u64) -> u64 {
        self.end.saturating_sub(offset)
    }

    /// Returns the address of the first lane's access, if those of all lanes follow each other in steps of `stride` bytes and
    /// lie inside.
    #[inline(always)]
    fn consecutive(&self, stride: u32) -> Option<u64> {
        if self.stride != 0 || self.scratch.is_some() {
            return None;
        }
        let offsets = Linear::narrow(&self.offset, 0);
        let offset = u64::from((offsets.consecutive(stride)? as u32).wrapping_add(self.constant));
        (self.available(offset) >= u64::from(stride) * 64).then(|| self.base.wrapping_add(offset))
    }
}

impl Family for Buffer {
    type Memory<'a> = BufferMemory<'a>;

    #[inline(always)]
    fn open<'a>(wave: &Wave, machine: &'a mut Machine<'_>, insn: &Insn) -> Result<BufferMemory<'a>, Cause> {
        let code = Mubuf(insn.code);
        let resource = Resource::at(wave, code.srsrc() * 4);
        if code.lds() != 0 && !is_load_to_lds(code) {
            return Err(unimplemented(insn));
        }
        let (has_index, has_offset) = (code.idxen() != 0, code.offen() != 0);
        let index = if has_index { wave.row(code.vaddr()) } else { &ZERO };
        let offset = if has_offset { wave.row(code.vaddr() + usize::from(has_index)) } else { &ZERO };
        let scalar = u64::from(scalar32(wave, code.soffset(), insn.literal));
        if resource.adds_lane() {
            let first = resource.in_scratch(scalar).ok_or_else(|| unimplemented(insn))?;
            return Ok(BufferMemory {
                window: Window::new(machine.space, machine.program.level()),
                base: 0,
                offset: *offset,
                constant: (code.offset() as u32).wrapping_add(first),
                index: ZERO,
                stride: 0,
                index_end: OUTSIDE,
                end: OUTSIDE,
                scratch: Some(machine.scratch),
            });
        }
        // Without an index, or without records, the limit counts bytes, and the scalar offset takes part.
        let structured = has_index && resource.stride() != 0;
        let (index_end, end) = if structured {
            (resource.records(), OUTSIDE)
        } else {
            (OUTSIDE, resource.records().saturating_sub(scalar))
        };
        Ok(BufferMemory {
            window: Window::new(machine.space, machine.program.level()),
            base: resource.base().wrapping_add(scalar),
            offset: *offset,
            constant: code.offset() as u32,
            index: *index,
            stride: if structured { resource.stride() } else { 0 },
            index_end,
            end,
            scratch: None,
        })
    }

    #[inline(always)]
    fn operands(wave: &Wave, insn: &Insn) -> Operands {
        let code = Mubuf(insn.code);
        let data = data_register(wave, code.vdata(), code.acc());
        Operands { from: data, second: None, to: data, returns: code.sc0() != 0 }
    }

    fn place(memory: &Self::Memory<'_>, lane: usize, len_bytes: u64) -> Place {
        let offset = memory.addr(lane);
        if memory.scratch.is_some() {
            Place::Scratch(offset as u32)
        } else if memory.available(offset) < len_bytes {
            Place::Nowhere
        } else {
            Place::Device(memory.base.wrapping_add(offset))
        }
    }
}

impl Memory for BufferMemory<'_> {
    #[inline(always)]
    fn addr(&self, lane: usize) -> u64 {
        let index = u64::from(self.index[lane]);
        let offset = u64::from(self.offset[lane].wrapping_add(self.constant));
        if index >= self.index_end { OUTSIDE } else { offset + index * self.stride }
    }

    #[inline(always)]
    fn peek<U: Unit>(&self, offset: u64) -> Option<U> {
        if self.available(offset) < U::BYTES || self.scratch.is_some() {
            None
        } else {
            self.window.peek(self.base.wrapping_add(offset))
        }
    }

    #[inline(always)]
    fn load<U: Unit>(&mut self, lane: usize, offset: u64) -> Result<U, Cause> {
        if let Some(scratch) = &self.scratch {
            let addr = offset as u32;
            return U::load_scratch(scratch, lane, addr)
                .ok_or_else(|| out_of_scratch(lane, addr, U::BYTES, false));
        }
        let (addr, len_bytes) = (self.base.wrapping_add(offset), self.available(offset));
        if len_bytes >= U::BYTES {
            self.window.load(lane, addr)
        } else {
            self.window.load_clipped(lane, addr, len_bytes)
        }
    }

    #[inline(always)]
    fn store<U: Unit>(&mut self, lane: usize, offset: u64, value: U) -> Result<(), Cause> {
        if let Some(scratch) = &mut self.scratch {
            let addr = offset as u32;
            return value
                .store_scratch(scratch, lane, addr)
                .ok_or_else(|| out_of_scratch(lane, addr, U::BYTES, true));
        }
        let (addr, len_bytes) = (self.base.wrapping_add(offset), self.available(offset));
        if len_bytes >= U::BYTES {
            self.window.store(lane, addr, value)
        } else {
            self.window.store_clipped(lane, addr, value, len_bytes)
        }
    }

    #[inline(always)]
    fn update<B: Bits>(&mut self, lane: usize, offset: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        if self.scratch.is_some() {
            let old = self.load(lane, offset)?;
            self.store(lane, offset, f(old))?;
            return Ok(old);
        }
        if self.available(offset) < B::BYTES {
            return Ok(B::ZERO);
        }
        self.window.update(lane, self.base.wrapping_add(offset), f)
    }

    #[inline(always)]
    fn load_span(&mut self, lanes: u64, step: u32, out: &mut [u32]) -> bool {
        lanes == ALL && self.consecutive(step).is_some_and(|addr| self.window.load_span(addr, out))
    }

    #[inline(always)]
    fn store_span(&mut self, lanes: u64, step: u32, words: &[u32]) -> bool {
        lanes == ALL && self.consecutive(step).is_some_and(|addr| self.window.store_span(addr, words))
    }

    #[inline(always)]
    fn load_rows<const N: usize>(&mut self, lanes: u64, out: &mut [&mut Row; N]) -> bool {
        lanes == ALL
            && self.consecutive(N as u32 * 4).is_some_and(|addr| self.window.load_rows(addr, 0, LANES, out))
    }

    #[inline(always)]
    fn store_rows<const N: usize>(&mut self, lanes: u64, rows: [&Row; N]) -> bool {
        lanes == ALL && self.consecutive(N as u32 * 4).is_some_and(|addr| self.window.store_rows(addr, rows))
    }
}
