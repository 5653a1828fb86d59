//! Buffers whose elements have a format, with conversion between memory and registers.

use super::buffer::{Buffer, BufferMemory, Resource};
use super::{Family, Memory, active};
use crate::enc::mubuf::{Mtbuf, Mubuf};
use crate::fault::Cause;
use crate::machine::{Insn, Machine};
use crate::sem::format::Format;
use crate::sem::half::F16;
use crate::shape::scalar::unimplemented;
use crate::wave::{LANES, Row, Wave};

/// What determines the format of a buffer's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// The buffer resource: MUBUF.
    Resource,
    /// The instruction: MTBUF.
    Instruction,
}

/// How components are stored in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum In {
    /// One component per register.
    Words,
    /// Two components of 16 bits per register.
    Halves,
    /// One component in the upper half; the lower one becomes 0.
    UpperHalf,
}

/// Returns the format, and for each component what a load delivers: 0, 1, or from 4 on a component of the element.
fn format(wave: &Wave, insn: &Insn, by: By) -> Result<(Format, [usize; 4]), Cause> {
    let (data, number, selects) = match by {
        By::Resource => Resource::at(wave, Mubuf(insn.code).srsrc() * 4).format(),
        By::Instruction => (Mtbuf(insn.code).dfmt(), Mtbuf(insn.code).nfmt(), [4, 5, 6, 7]),
    };
    Format::new(data, number).map(|format| (format, selects)).ok_or_else(|| unimplemented(insn))
}

/// Loads the element at `addr`.
fn load_element(
    memory: &mut BufferMemory<'_>,
    lane: usize,
    addr: u64,
    len_bytes: u32,
) -> Result<[u32; 4], Cause> {
    Ok(match len_bytes {
        1 => [memory.load::<u8>(lane, addr)?.into(), 0, 0, 0],
        2 => [memory.load::<u16>(lane, addr)?.into(), 0, 0, 0],
        4 => [memory.load::<u32>(lane, addr)?, 0, 0, 0],
        8 => {
            let [x, y] = memory.load(lane, addr)?;
            [x, y, 0, 0]
        }
        12 => {
            let [x, y, z] = memory.load(lane, addr)?;
            [x, y, z, 0]
        }
        _ => memory.load(lane, addr)?,
    })
}

fn store_element(
    memory: &mut BufferMemory<'_>,
    lane: usize,
    addr: u64,
    len_bytes: u32,
    element: [u32; 4],
) -> Result<(), Cause> {
    let [x, y, z, _] = element;
    match len_bytes {
        1 => memory.store(lane, addr, x as u8),
        2 => memory.store(lane, addr, x as u16),
        4 => memory.store(lane, addr, x),
        8 => memory.store(lane, addr, [x, y]),
        12 => memory.store(lane, addr, [x, y, z]),
        _ => memory.store(lane, addr, element),
    }
}

/// Loads the first `N` components of an element.
pub(crate) fn load_format<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    by: By,
    registers: In,
) -> Result<(), Cause> {
    let (format, selects) = format(wave, insn, by)?;
    let (lanes, operands) = (wave.exec(), Buffer::operands(wave, insn));
    let mut rows = [[0; LANES]; N];
    let mut memory = Buffer::open(wave, machine, insn)?;
    for lane in active(lanes) {
        let addr = memory.addr(lane);
        let components = format.decode(load_element(&mut memory, lane, addr, format.len_bytes())?);
        for (row, select) in rows.iter_mut().zip(selects) {
            row[lane] = match select {
                0 => 0,
                1 => format.one(),
                _ => components[select & 3],
            };
        }
    }
    let half = |bits: u32| {
        if format.is_integer() { bits & 0xffff } else { F16::from_f32(f32::from_bits(bits)).0.into() }
    };
    match registers {
        In::Words => {
            for (index, row) in rows.iter().enumerate() {
                wave.write_row(operands.to + index, lanes, row);
            }
        }
        In::Halves => {
            for (index, pair) in rows.chunks(2).enumerate() {
                let out: Row = std::array::from_fn(|lane| {
                    half(pair[0][lane]) | pair.get(1).map_or(0, |high| half(high[lane])) << 16
                });
                wave.write_row(operands.to + index, lanes, &out);
            }
        }
        In::UpperHalf => {
            let out = std::array::from_fn(|lane| half(rows[0][lane]) << 16);
            wave.write_row(operands.to, lanes, &out);
        }
    }
    Ok(())
}

/// Stores `N` components as an element; further components of the format are stored as 0.
pub(crate) fn store_format<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    by: By,
    registers: In,
) -> Result<(), Cause> {
    let (format, _) = format(wave, insn, by)?;
    let (lanes, operands) = (wave.exec(), Buffer::operands(wave, insn));
    let widened = |half: u32| {
        let half = half as u16;
        match format.is_integer() {
            true if format.is_signed() => i32::from(half as i16) as u32,
            true => half.into(),
            false => F16(half).to_f32().to_bits(),
        }
    };
    let component = |lane: usize, index: usize| match registers {
        _ if index >= N => 0,
        In::Words => wave.row(operands.from + index)[lane],
        In::Halves => widened(wave.row(operands.from + index / 2)[lane] >> (index % 2 * 16)),
        In::UpperHalf => widened(wave.row(operands.from)[lane] >> 16),
    };
    let mut memory = Buffer::open(wave, machine, insn)?;
    for lane in active(lanes) {
        let addr = memory.addr(lane);
        let element = format.encode([0, 1, 2, 3].map(|index| component(lane, index)));
        store_element(&mut memory, lane, addr, format.len_bytes(), element)?;
    }
    Ok(())
}
