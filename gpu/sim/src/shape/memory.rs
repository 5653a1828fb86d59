//! Memory: addresses from registers, data between registers and memory.

use crate::enc::ds::Ds;
use crate::enc::flat::Flat;
use crate::enc::smem::Smem;
use crate::fault::Cause;
use crate::mem::BadAddress;
use crate::step::{Insn, Machine};
use crate::wave::{Row, Wave};

/// `SADDR` that means: no scalar address.
const NO_SADDR: usize = 127;

/// Loads `N` words from scalar memory. The low two bits of the address are ignored.
#[inline(always)]
pub(crate) fn s_load<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    let code = Smem(insn.code);
    let mut addr = wave.pair(code.sbase() * 2);
    if code.imm() != 0 {
        addr = addr.wrapping_add_signed(code.signed_offset());
        if code.soffset_en() != 0 {
            addr = addr.wrapping_add(u64::from(wave.sgpr[code.soffset()]));
        }
    } else {
        addr = addr.wrapping_add(u64::from(wave.sgpr[code.offset() & 127]));
    }
    let mut words = [0; N];
    machine.space.load_words(addr & !3, &mut words).map_err(|access| Cause::IllegalAddress {
        lane: None,
        access,
        write: false,
    })?;
    for (index, word) in words.into_iter().enumerate() {
        wave.sgpr[(code.sdata() + index) & 127] = word;
    }
    Ok(())
}

/// Unified register number of a data operand.
fn data_register(wave: &Wave, number: usize, acc: usize) -> usize {
    if acc == 0 { number } else { wave.accum_offset + number }
}

/// The active lanes, lowest first.
pub(crate) fn active(mut lanes: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}

fn illegal(lane: usize, access: BadAddress, write: bool) -> Cause {
    Cause::IllegalAddress { lane: Some(lane as u32), access, write }
}

/// The address of each lane of a GLOBAL instruction.
#[inline(always)]
fn global_address(wave: &Wave, code: Flat, lane: usize) -> u64 {
    let low = wave.row(code.addr())[lane];
    let base = if code.saddr() == NO_SADDR {
        u64::from(low) | u64::from(wave.row(code.addr() + 1)[lane]) << 32
    } else {
        wave.pair(code.saddr()).wrapping_add(u64::from(low))
    };
    base.wrapping_add_signed(code.signed_offset())
}

/// Loads a word from device memory.
pub(crate) fn global_load(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    let code = Flat(insn.code);
    let mut cursor = machine.space.cursor();
    let lanes = wave.exec();
    let mut out: Row = [0; 64];
    for lane in active(lanes) {
        let addr = global_address(wave, code, lane);
        out[lane] = cursor.load_u32(addr).map_err(|access| illegal(lane, access, false))?;
    }
    let number = data_register(wave, code.vdst(), code.acc());
    wave.write_row(number, lanes, &out);
    Ok(())
}

/// Stores a word to device memory.
pub(crate) fn global_store(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    let code = Flat(insn.code);
    let mut cursor = machine.space.cursor();
    let number = data_register(wave, code.data(), code.acc());
    for lane in active(wave.exec()) {
        let addr = global_address(wave, code, lane);
        let value = wave.row(number)[lane];
        cursor.store_u32(addr, value).map_err(|access| illegal(lane, access, true))?;
    }
    Ok(())
}

/// Loads a word from LDS.
pub(crate) fn ds_read(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let code = Ds(insn.code);
    let lanes = wave.exec();
    let addresses = wave.row(code.addr());
    let mut out: Row = [0; 64];
    for lane in active(lanes) {
        out[lane] = machine.lds.load_u32(addresses[lane].wrapping_add(code.offset() as u32));
    }
    let number = data_register(wave, code.vdst(), code.acc());
    wave.write_row(number, lanes, &out);
}

/// Stores a word to LDS.
pub(crate) fn ds_write(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) {
    let code = Ds(insn.code);
    let number = data_register(wave, code.data0(), code.acc());
    let (addresses, values) = (wave.row(code.addr()), wave.row(number));
    for lane in active(wave.exec()) {
        machine.lds.store_u32(addresses[lane].wrapping_add(code.offset() as u32), values[lane]);
    }
}
