//! Memory instructions: addresses from registers, data between registers and memory.
//!
//! A [`Family`] (global, flat, scratch, buffer, LDS) says where each lane's access goes; what kind of access it is comes from
//! the row. Lanes are served one after the other, lowest first. Where all lanes together touch one piece of memory, that piece
//! is checked and copied at once.

mod addresses;
pub(crate) mod buffer;
pub(crate) mod ds;
pub(crate) mod flat;
pub(crate) mod format;
pub(crate) mod smem;
mod unit;
mod window;

use addresses::{Linear, Pattern, SEGMENT, Spread, WITHIN, are_consecutive};
pub(crate) use unit::{Bits, Unit, Word};

use crate::fault::Cause;
use crate::lds::{self, Lds, Scratch};
use crate::machine::{Insn, Machine};
use crate::mem::BadAddress;
use crate::wave::{Aligned, LANES, Row, Wave};

/// The mask of all lanes.
const ALL: u64 = u64::MAX;
static ZERO: Row = [0; LANES];

/// Iterates over the lanes that are set in `lanes`, lowest first.
#[inline(always)]
pub(crate) fn active(mut lanes: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = lanes.trailing_zeros() as usize;
        lanes &= lanes.wrapping_sub(1);
        (lane < LANES).then_some(lane)
    })
}

#[inline(always)]
fn every_lane() -> std::ops::Range<usize> {
    0..LANES
}

/// Runs a block for each lane in `lanes`, lowest first. It is written out for all lanes and for some, because a closure for
/// both would not be inlined, which costs half the speed.
macro_rules! for_each {
    ($lane:ident in $lanes:expr, $body:block) => {
        if $lanes == ALL {
            for $lane in every_lane() $body
        } else {
            for $lane in active($lanes) $body
        }
    };
}

#[cold]
fn illegal(lane: usize, access: BadAddress, write: bool) -> Cause {
    Cause::IllegalAddress { lane: Some(lane as u32), access, write }
}

/// Returns the register number of a data operand, counted over VGPRs and AccVGPRs.
#[inline(always)]
fn data_register(wave: &Wave, number: usize, acc: usize) -> usize {
    if acc == 0 { number } else { wave.accum_offset + number }
}

/// The data operands of an instruction, as register numbers counted over VGPRs and AccVGPRs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    /// First register of the data to store.
    from: usize,
    /// First register of the second operand, if it does not directly follow the first.
    second: Option<usize>,
    /// First register of the result.
    to: usize,
    /// Whether an atomic returns a result.
    returns: bool,
}

/// The memory that one instruction accesses, at one address for each lane.
pub(crate) trait Memory {
    /// Returns the address of a lane's access.
    fn addr(&self, lane: usize) -> u64;
    /// Loads the value at `addr` in simple cases; returns `None` in others. Apart from [`load`](Self::load), so that
    /// several words stay in registers.
    #[inline(always)]
    fn peek<U: Unit>(&self, _addr: u64) -> Option<U> {
        None
    }
    fn load<U: Unit>(&mut self, lane: usize, addr: u64) -> Result<U, Cause>;
    fn store<U: Unit>(&mut self, lane: usize, addr: u64, value: U) -> Result<(), Cause>;
    /// Replaces the value at `addr` by the result of `f` and returns the old value.
    fn update<B: Bits>(&mut self, lane: usize, addr: u64, f: impl Fn(B) -> B) -> Result<B, Cause>;

    /// Loads the words of all lanes at once, `step` bytes each, if their addresses are consecutive; returns false if it cannot.
    #[inline(always)]
    fn load_span(&mut self, _lanes: u64, _step: u32, _out: &mut [u32]) -> bool {
        false
    }
    /// Stores the words of all lanes at once, `step` bytes each, if their addresses are consecutive; returns false if it
    /// cannot.
    #[inline(always)]
    fn store_span(&mut self, _lanes: u64, _step: u32, _words: &[u32]) -> bool {
        false
    }
    /// Loads `N` words for each lane in `lanes` at once; returns false if it cannot. Other lanes' results mean nothing.
    #[inline(always)]
    fn load_rows<const N: usize>(&mut self, _lanes: u64, _out: &mut [&mut Row; N]) -> bool {
        false
    }
    /// Stores `N` words for each lane in `lanes` at once; returns false if it cannot.
    fn store_rows<const N: usize>(&mut self, lanes: u64, rows: [&Row; N]) -> bool;
}

impl Operands {
    /// Returns the first register of the data to store.
    pub(crate) fn from(&self) -> usize {
        self.from
    }

    /// Returns the first register of the second operand, if it does not directly follow the first.
    pub(crate) fn second(&self) -> Option<usize> {
        self.second
    }

    /// Returns the first register of the result.
    pub(crate) fn to(&self) -> usize {
        self.to
    }

    /// Returns whether an atomic returns a result.
    pub(crate) fn returns(&self) -> bool {
        self.returns
    }
}

/// The memory that a lane's access goes to, and where in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Device memory, at this address.
    Device(u64),
    /// LDS, at this byte.
    Lds(u32),
    /// The lane's scratch, at this byte.
    Scratch(u32),
    /// It is left out.
    Nowhere,
}

/// A family of memory instructions: how it encodes addresses and registers.
pub(crate) trait Family {
    type Memory<'a>: Memory;
    fn open<'a>(wave: &Wave, machine: &'a mut Machine<'_>, insn: &Insn) -> Result<Self::Memory<'a>, Cause>;
    fn operands(wave: &Wave, insn: &Insn) -> Operands;
    /// Returns where the lane's access of `len_bytes` bytes goes.
    fn place(memory: &Self::Memory<'_>, lane: usize, len_bytes: u64) -> Place;
    /// Loads `N` words for every lane to the rows from `target` on, in the simplest case, which is recognised without copying
    /// addresses; returns false in other cases.
    #[inline(always)]
    fn load_straight<const N: usize>(
        _wave: &mut Wave,
        _machine: &Machine<'_>,
        _insn: &Insn,
        _target: usize,
    ) -> bool {
        false
    }
}

/// Loads words from LDS at `addr` on; returns false if they are not aligned or not inside.
#[inline(always)]
fn load_lds_span(lds: &Lds, addr: u32, out: &mut [u32]) -> bool {
    let first = addr as usize / 4;
    let words = lds.words().get(first..first + out.len()).filter(|_| addr.is_multiple_of(4));
    words.inspect(|words| out.copy_from_slice(words)).is_some()
}

/// Stores words to LDS at `addr` on; returns false if they are not aligned or not inside.
#[inline(always)]
fn store_lds_span(lds: &mut Lds, addr: u32, words: &[u32]) -> bool {
    let first = addr as usize / 4;
    let target = lds.words_mut().get_mut(first..first + words.len()).filter(|_| addr.is_multiple_of(4));
    target.map(|target| target.copy_from_slice(words)).is_some()
}

/// Loads `N` words for each lane from LDS at `addr` on; returns false if they are not aligned or not inside.
#[inline(always)]
fn load_lds_rows<const N: usize>(lds: &Lds, addr: u32, out: &mut [&mut Row; N]) -> bool {
    let first = addr as usize / 4;
    let Some(words) = lds.words().get(first..first + LANES * N).filter(|_| addr.is_multiple_of(4)) else {
        return false;
    };
    for (n, row) in out.iter_mut().enumerate() {
        for (value, words) in row.iter_mut().zip(words.as_chunks::<N>().0) {
            *value = words[n];
        }
    }
    true
}

/// Stores `N` words for each lane to LDS at `addr` on; returns false if they are not aligned or not inside.
#[inline(always)]
fn store_lds_rows<const N: usize>(lds: &mut Lds, addr: u32, rows: [&Row; N]) -> bool {
    let first = addr as usize / 4;
    let words = lds.words_mut().get_mut(first..first + LANES * N).filter(|_| addr.is_multiple_of(4));
    let Some(words) = words else { return false };
    for (lane, words) in words.as_chunks_mut::<N>().0.iter_mut().enumerate().take(LANES) {
        for (row, word) in rows.iter().zip(words) {
            *word = row[lane];
        }
    }
    true
}

/// Returns whether all bytes that the lanes access, `len_bytes` each, are aligned and in LDS. Addresses must have no high half.
#[inline(always)]
fn inside_lds(lds: &Lds, addresses: &Linear<()>, len_bytes: u64) -> bool {
    let (mut greatest, mut bits) = (0, addresses.base as u32);
    for &low in addresses.low() {
        greatest = low.max(greatest);
        bits |= low;
    }
    let end = addresses.base.saturating_add(u64::from(greatest) + len_bytes);
    bits.is_multiple_of(4) && end <= lds.words().len() as u64 * 4
}

/// Loads `N` words for each lane from LDS, `offset` bytes behind its address, if one check suffices for all lanes; returns
/// false otherwise.
#[inline(always)]
fn gather_lds_rows<const N: usize>(
    lds: &Lds,
    addresses: &Linear<()>,
    spread: &Spread,
    offset: u32,
    out: &mut [&mut Row; N],
) -> bool {
    let end = u64::from(offset) + u64::from(spread.greatest) + N as u64 * 4;
    if !spread.aligned || !offset.is_multiple_of(4) || end > lds.words().len() as u64 * 4 {
        return false;
    }
    let words = lds.all_words();
    if spread.relations.step >> 1 == ALL >> 1 {
        return load_lds_rows(lds, addresses.low.0[0].wrapping_add(offset), out);
    }
    for lane in (0..LANES).step_by(SEGMENT) {
        let first = addresses.low.0[lane].wrapping_add(offset) as usize / 4;
        if spread.relations.same >> lane & WITHIN == WITHIN {
            for (n, row) in out.iter_mut().enumerate() {
                row[lane..lane + SEGMENT].fill(words[(first + n) % lds::WORDS]);
            }
        } else if spread.relations.step >> lane & WITHIN == WITHIN {
            let Some(words) = words.get(first..first + SEGMENT * N) else { return false };
            for (n, row) in out.iter_mut().enumerate() {
                let mut values = [0; SEGMENT];
                for (value, words) in values.iter_mut().zip(words.as_chunks::<N>().0) {
                    *value = words[n];
                }
                row[lane..lane + SEGMENT].copy_from_slice(&values);
            }
        } else {
            gather_lds_segment(words, addresses, offset, lane, out);
        }
    }
    true
}

#[inline(always)]
fn gather_lds_segment<const N: usize>(
    words: &[u32; lds::WORDS],
    addresses: &Linear<()>,
    offset: u32,
    lane: usize,
    out: &mut [&mut Row; N],
) {
    let mut values = [[0; SEGMENT]; N];
    for (index, low) in addresses.low.0[lane..lane + SEGMENT].iter().enumerate() {
        let first = low.wrapping_add(offset) as usize / 4;
        // All lanes' are there: this is how the compiler knows.
        let Some(words) = words.get(first..).and_then(<[u32]>::first_chunk::<N>) else { continue };
        for (values, word) in values.iter_mut().zip(words) {
            values[index] = *word;
        }
    }
    for (row, values) in out.iter_mut().zip(&values) {
        row[lane..lane + SEGMENT].copy_from_slice(values);
    }
}

/// Stores `N` words of every lane to LDS if one check suffices for all lanes; returns false otherwise.
#[inline(always)]
fn scatter_lds_rows<const N: usize>(lds: &mut Lds, addresses: &Linear<()>, rows: [&Row; N]) -> bool {
    if !inside_lds(lds, addresses, N as u64 * 4) {
        return false;
    }
    let words = lds.all_words_mut();
    for lane in 0..LANES {
        let first = addresses.at(lane) as usize / 4;
        for (n, row) in rows.iter().enumerate() {
            words[(first + n) % lds::WORDS] = row[lane];
        }
    }
    true
}

/// Loads `N` words of each lane's scratch, all at `addr`; returns false if it cannot.
#[inline(always)]
fn load_scratch_rows<const N: usize>(scratch: &Scratch, addr: u32, out: &mut [&mut Row; N]) -> bool {
    let first = addr as usize / 4;
    let Some(rows) = scratch.rows().get(first..first + N).filter(|_| addr.is_multiple_of(4)) else {
        return false;
    };
    for (out, row) in out.iter_mut().zip(rows) {
        **out = *row;
    }
    true
}

/// Stores `N` words of each lane in `lanes` to its scratch, all at `addr`; returns false if it cannot.
#[inline(always)]
fn store_scratch_rows<const N: usize>(scratch: &mut Scratch, addr: u32, lanes: u64, rows: [&Row; N]) -> bool {
    let first = addr as usize / 4;
    let targets = scratch.rows_mut().get_mut(first..first + N).filter(|_| addr.is_multiple_of(4));
    let Some(targets) = targets else { return false };
    for (target, row) in targets.iter_mut().zip(rows) {
        if lanes == ALL {
            *target = *row;
        } else {
            for (lane, (old, new)) in target.iter_mut().zip(row).enumerate() {
                let mask = 0u32.wrapping_sub((lanes >> lane) as u32 & 1);
                *old = *old & !mask | new & mask;
            }
        }
    }
    true
}

/// Returns the number of units in a word, or 1 if they are no smaller.
#[inline(always)]
const fn parts<U: Unit>() -> usize {
    if U::BYTES < 4 { 4 / U::BYTES as usize } else { 1 }
}

/// Returns the bit of a word at which a lane's unit begins.
#[inline(always)]
const fn shift<U: Unit>(lane: usize) -> u32 {
    (lane % parts::<U>()) as u32 * U::BYTES as u32 * 8
}

/// Loads a unit for each lane and converts it to a register.
#[inline(always)]
pub(crate) fn load<F: Family, U: Unit>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(U) -> u32,
) -> Result<(), Cause> {
    let lanes = wave.exec();
    let operands = F::operands(wave, insn);
    let mut memory = F::open(wave, machine, insn)?;
    let target = wave.target(operands.to, 1);
    let [row] = wave.rows_at_mut(target);
    load_row(&mut memory, lanes, row, f)?;
    drop(memory);
    wave.settle::<1>(target, operands.to);
    Ok(())
}

#[inline(always)]
fn load_row<U: Unit>(
    memory: &mut impl Memory,
    lanes: u64,
    out: &mut Row,
    f: impl Fn(U) -> u32,
) -> Result<(), Cause> {
    let (mut buffer, len) = (Aligned([0; LANES]), LANES / parts::<U>());
    if parts::<U>() > 1 && memory.load_span(lanes, U::BYTES as u32, &mut buffer.0[..len]) {
        for (out, &word) in out.chunks_exact_mut(parts::<U>()).zip(&buffer.0) {
            for (lane, out) in out.iter_mut().enumerate() {
                *out = f(U::from_part(word >> shift::<U>(lane)));
            }
        }
        return Ok(());
    }
    for_each!(lane in lanes, {
        let addr = memory.addr(lane);
        out[lane] = f(memory.load(lane, addr)?);
    });
    Ok(())
}

/// Writes a lane's words to its elements of the rows.
#[inline(always)]
fn put<const N: usize>(rows: &mut [&mut Row; N], lane: usize, words: [u32; N]) {
    for (row, word) in rows.iter_mut().zip(words) {
        row[lane] = word;
    }
}

/// Loads `N` words to `N` registers.
#[inline(always)]
pub(crate) fn load_words<F: Family, const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    let lanes = wave.exec();
    let operands = F::operands(wave, insn);
    let target = wave.target(operands.to, N);
    if lanes == ALL && F::load_straight::<N>(wave, machine, insn, target) {
        wave.settle::<N>(target, operands.to);
        return Ok(());
    }
    let mut memory = F::open(wave, machine, insn)?;
    load_rows(&mut memory, lanes, &mut wave.rows_at_mut::<N>(target))?;
    drop(memory);
    wave.settle::<N>(target, operands.to);
    Ok(())
}

#[inline(always)]
fn load_rows<const N: usize>(
    memory: &mut impl Memory,
    lanes: u64,
    out: &mut [&mut Row; N],
) -> Result<(), Cause> {
    if !memory.load_rows(lanes, out) {
        for_each!(lane in lanes, {
            let addr = memory.addr(lane);
            match memory.peek::<[u32; N]>(addr) {
                Some(words) => put(out, lane, words),
                None => put(out, lane, memory.load(lane, addr)?),
            }
        });
    }
    Ok(())
}

/// Stores a unit of each lane that is converted from a register.
#[inline(always)]
pub(crate) fn store<F: Family, U: Unit>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(u32) -> U,
) -> Result<(), Cause> {
    let from = wave.row(F::operands(wave, insn).from);
    let mut memory = F::open(wave, machine, insn)?;
    let lanes = wave.exec();
    if parts::<U>() > 1 && lanes == ALL {
        let (mut buffer, len) = ([0; LANES], LANES / parts::<U>());
        for (lane, &from) in from.iter().enumerate() {
            buffer[lane / parts::<U>()] |= f(from).to_part() << shift::<U>(lane);
        }
        if memory.store_span(lanes, U::BYTES as u32, &buffer[..len]) {
            return Ok(());
        }
    }
    for_each!(lane in lanes, {
        let addr = memory.addr(lane);
        memory.store(lane, addr, f(from[lane]))?;
    });
    Ok(())
}

/// Stores `N` registers as `N` words.
#[inline(always)]
pub(crate) fn store_words<F: Family, const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    let lanes = wave.exec();
    let operands = F::operands(wave, insn);
    let rows: [&Row; N] = std::array::from_fn(|index| wave.row(operands.from + index));
    let mut memory = F::open(wave, machine, insn)?;
    if !memory.store_rows(lanes, rows) {
        for_each!(lane in lanes, {
            let addr = memory.addr(lane);
            memory.store::<[u32; N]>(lane, addr, std::array::from_fn(|index| rows[index][lane]))?;
        });
    }
    Ok(())
}

/// Executes an atomic: memory becomes `f(memory, data)`.
#[inline(always)]
pub(crate) fn atomic<F: Family, W: Word>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(W, W) -> W,
) -> Result<(), Cause> {
    atomic2::<F, W>(wave, machine, insn, |old, data, _| f(old, data))
}

/// Executes an atomic with two data operands: memory becomes `f(memory, first, second)`.
#[inline(always)]
pub(crate) fn atomic2<F: Family, W: Word>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(W, W, W) -> W,
) -> Result<(), Cause> {
    let lanes = wave.exec();
    let operands = F::operands(wave, insn);
    let second = operands.second.unwrap_or(operands.from + W::Bits::WORDS);
    let mut out = [[0; LANES]; 2];
    let mut memory = F::open(wave, machine, insn)?;
    for lane in active(lanes) {
        let addr = memory.addr(lane);
        let data = [operands.from, second].map(|number| W::from_bits(W::Bits::register(wave, number, lane)));
        let update = |old| f(W::from_bits(old), data[0], data[1]).to_bits();
        memory.update::<W::Bits>(lane, addr, update)?.put(&mut out, lane);
    }
    drop(memory);
    if operands.returns {
        for (index, row) in out.iter().take(W::Bits::WORDS).enumerate() {
            wave.write_row(operands.to + index, lanes, row);
        }
    }
    Ok(())
}

/// Loads a unit for each lane, converts it to a word and stores that to LDS, at M0 plus `offset` plus 4 bytes for each lane.
#[inline(always)]
pub(crate) fn load_to_lds<F: Family, U: Unit>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    offset: u32,
    f: impl Fn(U) -> u32,
) -> Result<(), Cause> {
    let first = (wave.m0() & 0xffff).wrapping_add(offset);
    for lane in active(wave.exec()) {
        let mut memory = F::open(wave, machine, insn)?;
        let addr = memory.addr(lane);
        let value = f(memory.load(lane, addr)?);
        drop(memory);
        machine.lds.store_u32(first.wrapping_add(lane as u32 * 4), value);
    }
    Ok(())
}
