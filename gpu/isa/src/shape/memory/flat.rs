//! Flat, global and scratch memory.

use super::window::{Window, check_aligned};
use super::{
    ALL, Bits, Family, Linear, Memory, Operands, Pattern, Place, SEGMENT, Unit, ZERO, are_consecutive,
    data_register, illegal, load_lds_rows, load_lds_span, load_scratch_rows, load_to_lds, put,
    store_lds_rows, store_lds_span, store_scratch_rows,
};
use crate::aperture::{Aperture, PRIVATE_BASE};
use crate::enc::flat::Flat as Code;
use crate::fault::Cause;
use crate::lds::{Lds, Scratch};
use crate::machine::{Insn, Machine};
use crate::mem::BadAddress;
use crate::wave::{LANES, Row, Wave};

/// The `SADDR` code for no scalar address.
const NO_SADDR: usize = 127;

fn operands(wave: &Wave, insn: &Insn) -> Operands {
    let code = Code(insn.code);
    Operands {
        from: data_register(wave, code.data(), code.acc()),
        second: None,
        to: data_register(wave, code.vdst(), code.acc()),
        returns: code.sc0() != 0,
    }
}

/// Returns the fault of an access beyond the lane's scratch.
#[cold]
pub(super) fn out_of_scratch(lane: usize, addr: u32, len_bytes: u64, write: bool) -> Cause {
    illegal(lane, BadAddress { addr: PRIVATE_BASE | u64::from(addr), len_bytes }, write)
}

/// The accesses of GLOBAL: device memory.
pub(crate) struct Global;

pub(crate) struct GlobalMemory<'a> {
    addresses: Linear,
    window: Window<'a>,
}

impl Family for Global {
    type Memory<'a> = GlobalMemory<'a>;

    #[inline(always)]
    fn open<'a>(wave: &Wave, machine: &'a mut Machine<'_>, insn: &Insn) -> Result<GlobalMemory<'a>, Cause> {
        let code = Code(insn.code);
        let low = wave.row(code.addr());
        let offset = code.signed_offset() as u64;
        let addresses = if code.saddr() == NO_SADDR {
            Linear::wide(low, wave.row(code.addr() + 1), offset)
        } else {
            Linear::wide(low, &ZERO, wave.pair(code.saddr()).wrapping_add(offset))
        };
        Ok(GlobalMemory { addresses, window: Window::new(machine.space, machine.program.level()) })
    }

    #[inline(always)]
    fn load_straight<const N: usize>(
        wave: &mut Wave,
        machine: &Machine<'_>,
        insn: &Insn,
        target: usize,
    ) -> bool {
        let code = Code(insn.code);
        let low = wave.row(code.addr());
        let (high, base) = if code.saddr() == NO_SADDR {
            (wave.row(code.addr() + 1), 0)
        } else {
            (&ZERO, wave.pair(code.saddr()))
        };
        if !are_consecutive(low, &high, N as u32 * 4) {
            return false;
        }
        let first = u64::from(low[0]) | u64::from(high[0]) << 32;
        let addr = first.wrapping_add(base).wrapping_add(code.signed_offset() as u64);
        Window::new(machine.space, machine.program.level()).load_rows(
            addr,
            0,
            LANES,
            &mut wave.rows_at_mut::<N>(target),
        )
    }

    #[inline(always)]
    fn operands(wave: &Wave, insn: &Insn) -> Operands {
        operands(wave, insn)
    }

    fn place(memory: &Self::Memory<'_>, lane: usize, _: u64) -> Place {
        Place::Device(memory.addr(lane))
    }
}

impl Memory for GlobalMemory<'_> {
    #[inline(always)]
    fn addr(&self, lane: usize) -> u64 {
        self.addresses.at(lane)
    }

    #[inline(always)]
    fn peek<U: Unit>(&self, addr: u64) -> Option<U> {
        self.window.peek(addr)
    }

    #[inline(always)]
    fn load<U: Unit>(&mut self, lane: usize, addr: u64) -> Result<U, Cause> {
        self.window.load(lane, addr)
    }

    #[inline(always)]
    fn store<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause> {
        self.window.store(lane, addr, value)
    }

    #[inline(always)]
    fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        self.window.update(lane, addr, f)
    }

    #[inline(always)]
    fn load_span(&mut self, lanes: u64, step: u32, out: &mut [u32]) -> bool {
        lanes == ALL && self.addresses.consecutive(step).is_some_and(|addr| self.window.load_span(addr, out))
    }

    #[inline(always)]
    fn store_span(&mut self, lanes: u64, step: u32, words: &[u32]) -> bool {
        lanes == ALL
            && self.addresses.consecutive(step).is_some_and(|addr| self.window.store_span(addr, words))
    }

    #[inline(always)]
    fn load_rows<const N: usize>(&mut self, lanes: u64, out: &mut [&mut Row; N]) -> bool {
        if lanes != ALL {
            return false;
        }
        let consecutive = self.addresses.consecutive(N as u32 * 4);
        consecutive.is_some_and(|addr| self.window.load_rows(addr, 0, LANES, out))
            || load_segments(&mut self.window, &self.addresses, out)
    }

    #[inline(always)]
    fn store_rows<const N: usize>(&mut self, lanes: u64, rows: [&Row; N]) -> bool {
        lanes == ALL
            && self.addresses.consecutive(N as u32 * 4).is_some_and(|addr| self.window.store_rows(addr, rows))
    }
}

/// Loads `N` words for each lane, segment by segment; returns false if one of them cannot be loaded.
#[inline(always)]
fn load_segments<const N: usize>(
    window: &mut Window<'_>,
    addresses: &Linear,
    out: &mut [&mut Row; N],
) -> bool {
    let relations = addresses.relations(N as u32 * 4);
    for first in (0..LANES).step_by(SEGMENT) {
        if let Pattern::Consecutive(addr) = addresses.pattern(relations, first, N as u32 * 4)
            && window.load_rows(addr, first, SEGMENT, out)
        {
            continue;
        }
        if gather_segment(window, addresses, first, out) {
            continue;
        }
        for lane in first..first + SEGMENT {
            let addr = addresses.at(lane);
            let Some(words) = window.peek(addr).or_else(|| window.load(lane, addr).ok()) else {
                return false;
            };
            put(out, lane, words);
        }
    }
    true
}

/// Loads `N` words for each lane of the segment that begins with lane `first`; returns false if one of them is not aligned or not
/// in the block that was accessed last.
///
/// The block cannot change on the way, so its address and length stay in registers. The results are written to a row together: a
/// processor is slow to read a vector of words that were just written one by one.
#[inline(always)]
fn gather_segment<const N: usize>(
    window: &Window<'_>,
    addresses: &Linear,
    first: usize,
    out: &mut [&mut Row; N],
) -> bool {
    let mut values = [[0; SEGMENT]; N];
    for index in 0..SEGMENT {
        let Some(words) = window.peek::<[u32; N]>(addresses.at(first + index)) else { return false };
        for (values, word) in values.iter_mut().zip(words) {
            values[index] = word;
        }
    }
    for (row, values) in out.iter_mut().zip(&values) {
        row[first..first + SEGMENT].copy_from_slice(values);
    }
    true
}

/// The accesses of FLAT: the address determines the memory.
pub(crate) struct Flat;

pub(crate) struct FlatMemory<'a> {
    addresses: Linear,
    window: Window<'a>,
    lds: &'a mut Lds,
    scratch: &'a mut Scratch,
}

impl Family for Flat {
    type Memory<'a> = FlatMemory<'a>;

    #[inline(always)]
    fn open<'a>(wave: &Wave, machine: &'a mut Machine<'_>, insn: &Insn) -> Result<FlatMemory<'a>, Cause> {
        let code = Code(insn.code);
        let (low, high) = (wave.row(code.addr()), wave.row(code.addr() + 1));
        Ok(FlatMemory {
            addresses: Linear::wide(low, high, code.unsigned_offset()),
            window: Window::new(machine.space, machine.program.level()),
            lds: machine.lds,
            scratch: machine.scratch,
        })
    }

    #[inline(always)]
    fn operands(wave: &Wave, insn: &Insn) -> Operands {
        operands(wave, insn)
    }

    fn place(memory: &Self::Memory<'_>, lane: usize, _: u64) -> Place {
        Aperture::of(memory.addr(lane)).into()
    }
}

impl Memory for FlatMemory<'_> {
    #[inline(always)]
    fn addr(&self, lane: usize) -> u64 {
        self.addresses.at(lane)
    }

    /// Loads from device memory only, because no allocation lies in an aperture.
    #[inline(always)]
    fn peek<U: Unit>(&self, addr: u64) -> Option<U> {
        self.window.peek(addr)
    }

    #[inline(always)]
    fn load<U: Unit>(&mut self, lane: usize, addr: u64) -> Result<U, Cause> {
        match Aperture::of(addr) {
            Aperture::Memory(addr) => self.window.load(lane, addr),
            Aperture::Shared(addr) => Ok(U::load_lds(self.lds, addr)),
            Aperture::Private(addr) => U::load_scratch(self.scratch, lane, addr)
                .ok_or_else(|| out_of_scratch(lane, addr, U::BYTES, false)),
        }
    }

    #[inline(always)]
    fn store<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause> {
        match Aperture::of(addr) {
            Aperture::Memory(addr) => self.window.store(lane, addr, value),
            Aperture::Shared(addr) => {
                value.store_lds(self.lds, addr);
                Ok(())
            }
            Aperture::Private(addr) => value
                .store_scratch(self.scratch, lane, addr)
                .ok_or_else(|| out_of_scratch(lane, addr, U::BYTES, true)),
        }
    }

    #[inline(always)]
    fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        if let Aperture::Memory(addr) = Aperture::of(addr) {
            return self.window.update(lane, addr, f);
        }
        check_aligned::<B>(lane, addr)?;
        // What is not device memory is this thread's own.
        let old = self.load(lane, addr)?;
        self.store(lane, addr, f(old))?;
        Ok(old)
    }

    #[inline(always)]
    fn load_span(&mut self, lanes: u64, step: u32, out: &mut [u32]) -> bool {
        lanes == ALL
            && self.addresses.consecutive(step).is_some_and(|addr| match Aperture::of(addr) {
                Aperture::Memory(addr) => self.window.load_span(addr, out),
                Aperture::Shared(addr) => load_lds_span(self.lds, addr, out),
                Aperture::Private(_) => false,
            })
    }

    #[inline(always)]
    fn store_span(&mut self, lanes: u64, step: u32, words: &[u32]) -> bool {
        lanes == ALL
            && self.addresses.consecutive(step).is_some_and(|addr| match Aperture::of(addr) {
                Aperture::Memory(addr) => self.window.store_span(addr, words),
                Aperture::Shared(addr) => store_lds_span(self.lds, addr, words),
                Aperture::Private(_) => false,
            })
    }

    #[inline(always)]
    fn load_rows<const N: usize>(&mut self, lanes: u64, out: &mut [&mut Row; N]) -> bool {
        match Aperture::of(self.addresses.at(0)) {
            Aperture::Private(_) => self.addresses.uniform().is_some_and(|addr| match Aperture::of(addr) {
                Aperture::Private(addr) => load_scratch_rows(self.scratch, addr, out),
                _ => false,
            }),
            _ if lanes != ALL => false,
            _ => self.addresses.consecutive(N as u32 * 4).is_some_and(|addr| match Aperture::of(addr) {
                Aperture::Shared(addr) => load_lds_rows(self.lds, addr, out),
                _ => self.window.load_rows(addr, 0, LANES, out),
            }),
        }
    }

    #[inline(always)]
    fn store_rows<const N: usize>(&mut self, lanes: u64, rows: [&Row; N]) -> bool {
        match Aperture::of(self.addresses.at(0)) {
            Aperture::Private(_) => self.addresses.uniform().is_some_and(|addr| match Aperture::of(addr) {
                Aperture::Private(addr) => store_scratch_rows(self.scratch, addr, lanes, rows),
                _ => false,
            }),
            _ if lanes != ALL => false,
            _ => self.addresses.consecutive(N as u32 * 4).is_some_and(|addr| match Aperture::of(addr) {
                Aperture::Shared(addr) => store_lds_rows(self.lds, addr, rows),
                _ => self.window.store_rows(addr, rows),
            }),
        }
    }
}

/// The accesses of SCRATCH: the lane's own memory.
pub(crate) struct Private;

pub(crate) struct PrivateMemory<'a> {
    addresses: Linear<()>,
    scratch: &'a mut Scratch,
    /// Whether there is no address register, so that all lanes have the same address.
    uniform: bool,
}

impl PrivateMemory<'_> {
    #[inline(always)]
    fn uniform(&self) -> Option<u32> {
        let addr = if self.uniform { Some(self.addresses.base) } else { self.addresses.uniform() };
        addr.map(|addr| addr as u32)
    }
}

impl Family for Private {
    type Memory<'a> = PrivateMemory<'a>;

    #[inline(always)]
    fn open<'a>(wave: &Wave, machine: &'a mut Machine<'_>, insn: &Insn) -> Result<PrivateMemory<'a>, Cause> {
        let code = Code(insn.code);
        let mut base = code.signed_offset() as u64;
        if code.saddr() != NO_SADDR {
            base = base.wrapping_add(u64::from(wave.sgpr[code.saddr()]));
        }
        let uniform = code.sve() == 0;
        let low = if uniform { &ZERO } else { wave.row(code.addr()) };
        Ok(PrivateMemory { addresses: Linear::narrow(low, base), scratch: machine.scratch, uniform })
    }

    #[inline(always)]
    fn operands(wave: &Wave, insn: &Insn) -> Operands {
        operands(wave, insn)
    }

    fn place(memory: &Self::Memory<'_>, lane: usize, _: u64) -> Place {
        Place::Scratch(memory.addr(lane) as u32)
    }
}

impl Memory for PrivateMemory<'_> {
    #[inline(always)]
    fn addr(&self, lane: usize) -> u64 {
        self.addresses.at(lane)
    }

    #[inline(always)]
    fn load<U: Unit>(&mut self, lane: usize, addr: u64) -> Result<U, Cause> {
        let addr = addr as u32;
        U::load_scratch(self.scratch, lane, addr).ok_or_else(|| out_of_scratch(lane, addr, U::BYTES, false))
    }

    #[inline(always)]
    fn store<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause> {
        let addr = addr as u32;
        let stored = value.store_scratch(self.scratch, lane, addr);
        stored.ok_or_else(|| out_of_scratch(lane, addr, U::BYTES, true))
    }

    #[inline(always)]
    fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause> {
        check_aligned::<B>(lane, addr)?;
        let old = self.load(lane, addr)?;
        self.store(lane, addr, f(old))?;
        Ok(old)
    }

    #[inline(always)]
    fn load_rows<const N: usize>(&mut self, _: u64, out: &mut [&mut Row; N]) -> bool {
        self.uniform().is_some_and(|addr| load_scratch_rows(self.scratch, addr, out))
    }

    #[inline(always)]
    fn store_rows<const N: usize>(&mut self, lanes: u64, rows: [&Row; N]) -> bool {
        self.uniform().is_some_and(|addr| store_scratch_rows(self.scratch, addr, lanes, rows))
    }
}

/// Loads a unit for each lane, converts it to a word and stores that to LDS.
#[inline(always)]
pub(crate) fn load_lds<F: Family, U: Unit>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(U) -> u32,
) -> Result<(), Cause> {
    load_to_lds::<F, U>(wave, machine, insn, Code(insn.code).signed_offset() as u32, f)
}
