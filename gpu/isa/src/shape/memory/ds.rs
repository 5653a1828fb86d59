//! LDS accesses, and the exchanges between lanes that the DS instructions offer.

use super::window::check_aligned;
use super::{
    ALL, Bits, Family, Linear, Memory, Operands, Place, Unit, active, data_register, gather_lds_rows,
    load_lds_span, put, scatter_lds_rows, store_lds_rows, store_lds_span,
};
use crate::enc::ds::Ds;
use crate::fault::Cause;
use crate::flow::Flow;
use crate::gws::Action;
use crate::lds::Lds;
use crate::machine::{Insn, Machine};
use crate::shape::scalar::unimplemented;
use crate::wave::{LANES, Row, Wave};

/// The LDS accesses of DS.
pub(crate) struct Local;

pub(crate) struct LocalMemory<'a> {
    addresses: Linear<()>,
    lds: &'a mut Lds,
}

impl<'a> LocalMemory<'a> {
    /// Returns the LDS accesses at each lane's address plus `offset`.
    #[inline(always)]
    fn at(addresses: &Row, machine: &'a mut Machine<'_>, offset: usize) -> Self {
        Self { addresses: Linear::narrow(addresses, offset as u64), lds: machine.lds }
    }
}

/// Returns a fault if the instruction accesses the global data share, which is not emulated.
#[inline(always)]
fn check_local(insn: &Insn) -> Result<(), Cause> {
    if Ds(insn.code).gds() == 0 { Ok(()) } else { Err(unimplemented(insn)) }
}

impl Family for Local {
    type Memory<'a> = LocalMemory<'a>;

    #[inline(always)]
    fn open<'a>(wave: &Wave, machine: &'a mut Machine<'_>, insn: &Insn) -> Result<LocalMemory<'a>, Cause> {
        check_local(insn)?;
        let code = Ds(insn.code);
        Ok(LocalMemory::at(wave.row(code.addr()), machine, code.offset()))
    }

    #[inline(always)]
    fn operands(wave: &Wave, insn: &Insn) -> Operands {
        let code = Ds(insn.code);
        Operands {
            from: data_register(wave, code.data0(), code.acc()),
            second: Some(data_register(wave, code.data1(), code.acc())),
            to: data_register(wave, code.vdst(), code.acc()),
            // Atomics are there twice, 0x20 apart: without and with result.
            returns: code.op() & 0x20 != 0,
        }
    }

    fn place(memory: &Self::Memory<'_>, lane: usize, _: u64) -> Place {
        Place::Lds(memory.addr(lane) as u32)
    }
}

impl Memory for LocalMemory<'_> {
    #[inline(always)]
    fn addr(&self, lane: usize) -> u64 {
        self.addresses.at(lane)
    }

    #[inline(always)]
    fn load<U: Unit>(&mut self, _: usize, addr: u64) -> Result<U, Cause> {
        Ok(U::load_lds(self.lds, addr as u32))
    }

    #[inline(always)]
    fn store<U: Unit>(&mut self, _: usize, addr: u64, value: U) -> Result<(), Cause> {
        value.store_lds(self.lds, addr as u32);
        Ok(())
    }

    #[inline(always)]
    fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        check_aligned::<B>(lane, addr)?;
        let old = B::load_lds(self.lds, addr as u32);
        f(old).store_lds(self.lds, addr as u32);
        Ok(old)
    }

    #[inline(always)]
    fn load_span(&mut self, lanes: u64, step: u32, out: &mut [u32]) -> bool {
        lanes == ALL
            && self.addresses.consecutive(step).is_some_and(|addr| load_lds_span(self.lds, addr as u32, out))
    }

    #[inline(always)]
    fn store_span(&mut self, lanes: u64, step: u32, words: &[u32]) -> bool {
        lanes == ALL
            && self
                .addresses
                .consecutive(step)
                .is_some_and(|addr| store_lds_span(self.lds, addr as u32, words))
    }

    #[inline(always)]
    fn store_rows<const N: usize>(&mut self, lanes: u64, rows: [&Row; N]) -> bool {
        let consecutive = |addresses: &Linear<()>| addresses.consecutive(N as u32 * 4);
        lanes == ALL
            && (consecutive(&self.addresses).is_some_and(|addr| store_lds_rows(self.lds, addr as u32, rows))
                || scatter_lds_rows(self.lds, &self.addresses, rows))
    }
}

/// Returns the two offsets of an instruction, which count in steps of `step_bytes`.
#[inline(always)]
fn offsets(code: Ds, step_bytes: usize) -> [usize; 2] {
    [code.offset0() * step_bytes, code.offset1() * step_bytes]
}

/// Loads `N` words.
#[inline(always)]
pub(crate) fn read<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    read_each::<N>(wave, machine, insn, &[Ds(insn.code).offset()])
}

/// Loads `N` words each from two addresses, whose offsets count in steps of `STEP` bytes.
#[inline(always)]
pub(crate) fn read2<const N: usize, const STEP: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    read_each::<N>(wave, machine, insn, &offsets(Ds(insn.code), STEP))
}

/// Loads `N` words from each of the offsets on.
#[inline(always)]
fn read_each<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    offsets: &[usize],
) -> Result<(), Cause> {
    check_local(insn)?;
    let lanes = wave.exec();
    let code = Ds(insn.code);
    // A copy: the result may go to the very register that has the addresses.
    let addresses = Linear::narrow(wave.row(code.addr()), 0);
    let spread = addresses.spread(N as u32 * 4);
    let mut number = data_register(wave, code.vdst(), code.acc());
    for &offset in offsets {
        let target = wave.target(number, N);
        let mut rows = wave.rows_at_mut::<N>(target);
        if !gather_lds_rows(machine.lds, &addresses, &spread, offset as u32, &mut rows) {
            read_singly(machine.lds, &addresses, offset as u32, lanes, &mut rows);
        }
        wave.settle::<N>(target, number);
        number += N;
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn read_singly<const N: usize>(
    lds: &Lds,
    addresses: &Linear<()>,
    offset: u32,
    lanes: u64,
    out: &mut [&mut Row; N],
) {
    for lane in active(lanes) {
        put(out, lane, Unit::load_lds(lds, addresses.low()[lane].wrapping_add(offset)));
    }
}

/// Stores `N` words each to two addresses, whose offsets count in steps of `STEP` bytes.
#[inline(always)]
pub(crate) fn write2<const N: usize, const STEP: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    check_local(insn)?;
    let lanes = wave.exec();
    let code = Ds(insn.code);
    for (number, offset) in [code.data0(), code.data1()].into_iter().zip(offsets(code, STEP)) {
        let number = data_register(wave, number, code.acc());
        let rows: [&Row; N] = std::array::from_fn(|index| wave.row(number + index));
        let mut memory = LocalMemory::at(wave.row(code.addr()), machine, offset);
        if !memory.store_rows(lanes, rows) {
            for lane in active(lanes) {
                let words: [u32; N] = std::array::from_fn(|index| rows[index][lane]);
                words.store_lds(memory.lds, memory.addr(lane) as u32);
            }
        }
    }
    Ok(())
}

/// Exchanges values at two addresses, whose offsets count in steps of `STEP` bytes.
#[inline(always)]
pub(crate) fn exchange2<B: Bits, const STEP: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    check_local(insn)?;
    let lanes = wave.exec();
    let code = Ds(insn.code);
    let numbers = [code.data0(), code.data1()].map(|number| data_register(wave, number, code.acc()));
    let mut out = [[[0; LANES]; 2]; 2];
    for lane in active(lanes) {
        for ((number, offset), out) in numbers.into_iter().zip(offsets(code, STEP)).zip(&mut out) {
            let mut memory = LocalMemory::at(wave.row(code.addr()), machine, offset);
            let value = B::register(wave, number, lane);
            memory.update(lane, memory.addr(lane), |_: B| value)?.put(out, lane);
        }
    }
    let number = data_register(wave, code.vdst(), code.acc());
    let rows = out.iter().flat_map(|rows| rows.iter().take(B::WORDS));
    for (index, row) in rows.enumerate() {
        wave.write_row(number + index, lanes, row);
    }
    Ok(())
}

/// Loads a word for each lane from consecutive addresses, the first of which is M0 plus the offset.
#[inline(always)]
pub(crate) fn read_by_lane(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    check_local(insn)?;
    let code = Ds(insn.code);
    let first = (wave.m0() & 0xffff) + code.offset() as u32;
    let out = std::array::from_fn(|lane| machine.lds.load_u32(first + lane as u32 * 4));
    let number = data_register(wave, code.vdst(), code.acc());
    wave.write_row(number, wave.exec(), &out);
    Ok(())
}

/// Changes the counter at M0 plus the offset by the number of active lanes; all of them receive its old value.
pub(crate) fn count_lanes(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32, u32) -> u32,
) -> Result<(), Cause> {
    check_local(insn)?;
    let lanes = wave.exec();
    if lanes == 0 {
        return Ok(());
    }
    let code = Ds(insn.code);
    let addr = ((wave.m0() & 0xffff) + code.offset() as u32) & !3;
    let old = machine.lds.load_u32(addr);
    machine.lds.store_u32(addr, f(old, lanes.count_ones()));
    let number = data_register(wave, code.vdst(), code.acc());
    wave.write_row(number, lanes, &[old; LANES]);
    Ok(())
}

/// Sends each lane's value to the lane that its address names; lanes that receive none get 0, and of several values the one
/// from the highest lane counts.
#[inline(always)]
pub(crate) fn permute(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    check_local(insn)?;
    let lanes = wave.exec();
    let code = Ds(insn.code);
    let addresses = wave.row(code.addr());
    let data = wave.row(data_register(wave, code.data0(), code.acc()));
    let mut out = [0; LANES];
    for lane in active(lanes) {
        out[lane_at(addresses[lane], code)] = data[lane];
    }
    let number = data_register(wave, code.vdst(), code.acc());
    wave.write_row(number, lanes, &out);
    Ok(())
}

/// Returns the lane that an address names: lanes are 4 bytes apart.
#[inline(always)]
fn lane_at(addr: u32, code: Ds) -> usize {
    addr.wrapping_add(code.offset() as u32) as usize / 4 % LANES
}

/// Gives each lane the value of the lane that `source(offset, lane)` or its address names; inactive lanes supply 0.
#[inline(always)]
fn pull(
    wave: &mut Wave,
    insn: &Insn,
    data: usize,
    source: impl Fn(&Wave, usize) -> usize,
) -> Result<(), Cause> {
    check_local(insn)?;
    let lanes = wave.exec();
    let code = Ds(insn.code);
    let data = wave.row(data_register(wave, data, code.acc()));
    let mut out = [0; LANES];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = data[source(wave, lane) % LANES];
    }
    if lanes != ALL {
        for (lane, out) in out.iter_mut().enumerate() {
            *out &= 0u32.wrapping_sub((lanes >> (source(wave, lane) % LANES)) as u32 & 1);
        }
    }
    let index = wave.index_of(data_register(wave, code.vdst(), code.acc()));
    wave.put_row(index, out);
    Ok(())
}

/// Gives each lane the value of the lane that its address names.
#[inline(always)]
pub(crate) fn permute_back(wave: &mut Wave, _: &mut Machine<'_>, insn: &Insn) -> Result<(), Cause> {
    let code = Ds(insn.code);
    pull(wave, insn, code.data0(), |wave, lane| lane_at(wave.row(code.addr())[lane], code))
}

/// Gives each lane the value of the lane that the offset's pattern names.
#[inline(always)]
pub(crate) fn swizzle(
    wave: &mut Wave,
    _: &mut Machine<'_>,
    insn: &Insn,
    source: impl Fn(usize, usize) -> usize,
) -> Result<(), Cause> {
    let code = Ds(insn.code);
    pull(wave, insn, code.addr(), |_, lane| source(code.offset(), lane))
}

/// Executes a `ds_gws_*` instruction: a barrier or semaphore between workgroups, on the resource that M0 and the offset name,
/// with the first active lane's value as operand.
pub(crate) fn global_wave_sync(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    action: Action,
) -> Result<Flow, Cause> {
    let sync = machine.wave_sync.ok_or(Cause::NoGlobalWaveSync(insn.row.name))?;
    let Some(lane) = active(wave.exec()).next() else { return Ok(Flow::Next) };
    let code = Ds(insn.code);
    let operand = wave.row(data_register(wave, code.addr(), code.acc()))[lane];
    let number = (wave.m0() >> 16) as usize + code.offset();
    wave.ticket = sync.act(action, number, operand, wave.ticket);
    Ok(if wave.ticket.is_none() { Flow::Next } else { Flow::Again })
}
