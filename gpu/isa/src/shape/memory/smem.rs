//! Scalar memory accesses: one address, scalar registers.

use super::buffer::Resource;
use crate::enc::smem::Smem;
use crate::fault::Cause;
use crate::machine::{Insn, Machine};
use crate::mem::BadAddress;
use crate::shape::memory::{Bits, Unit, Word};
use crate::shape::scalar::Scalar;
use crate::wave::Wave;

fn illegal(access: BadAddress, write: bool) -> Cause {
    Cause::IllegalAddress { lane: None, access, write }
}

/// Mask that clears the low two bits of an address part, which the hardware ignores.
const ALIGNED: u64 = !3;

/// Returns the offset that is added to the base: a constant, a register, or both.
#[inline(always)]
fn offset(wave: &Wave, code: Smem) -> u64 {
    let constant = if code.imm() != 0 { code.signed_offset() as u64 } else { 0 };
    (constant & ALIGNED).wrapping_add(register_offset(wave, code) & ALIGNED)
}

#[inline(always)]
fn register_offset(wave: &Wave, code: Smem) -> u64 {
    if code.soffset_en() != 0 {
        u64::from(wave.sgpr[code.soffset()])
    } else if code.imm() == 0 {
        u64::from(wave.sgpr[code.offset() & 127])
    } else {
        0
    }
}

/// Returns the address in scratch, where a register's offset counts dwords of 64 lanes.
pub(crate) fn scratch_address(wave: &Wave, code: Smem) -> u64 {
    const LANES_SHIFT: u32 = 6;
    let base = wave.pair(code.sbase() * 2) & ALIGNED;
    let constant = if code.imm() != 0 { code.signed_offset() as u64 } else { 0 };
    base.wrapping_add(constant & ALIGNED).wrapping_add((register_offset(wave, code) & ALIGNED) << LANES_SHIFT)
}

#[inline(always)]
pub(crate) fn address(wave: &Wave, code: Smem) -> u64 {
    (wave.pair(code.sbase() * 2) & ALIGNED).wrapping_add(offset(wave, code))
}

/// Returns the address of an access to a buffer, and the number of bytes from there to the buffer's end.
#[inline(always)]
pub(crate) fn buffer_address(wave: &Wave, code: Smem) -> (u64, u64) {
    let resource = Resource::at(wave, code.sbase() * 2);
    let len_bytes = resource.records() * resource.stride().max(1);
    let offset = offset(wave, code);
    ((resource.base() & ALIGNED).wrapping_add(offset), len_bytes.saturating_sub(offset))
}

fn put<const N: usize>(wave: &mut Wave, number: usize, words: [u32; N]) {
    for (index, word) in words.into_iter().enumerate() {
        wave.sgpr[(number + index) & 127] = word;
    }
}

fn registers<const N: usize>(wave: &Wave, number: usize) -> [u32; N] {
    std::array::from_fn(|index| wave.sgpr[(number + index) & 127])
}

macro_rules! loads_and_stores {
    ($($(#[$doc:meta])* $load:ident $store:ident $address:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $load<const N: usize>(
            wave: &mut Wave,
            machine: &mut Machine<'_>,
            insn: &Insn,
        ) -> Result<(), Cause> {
            let code = Smem(insn.code);
            let mut words = [0; N];
            let loaded = machine.space.load_words($address(wave, code), &mut words);
            loaded.map_err(|access| illegal(access, false))?;
            put(wave, code.sdata(), words);
            Ok(())
        }

        /// Stores `N` words.
        pub(crate) fn $store<const N: usize>(
            wave: &mut Wave,
            machine: &mut Machine<'_>,
            insn: &Insn,
        ) -> Result<(), Cause> {
            let code = Smem(insn.code);
            let words: [u32; N] = registers(wave, code.sdata());
            machine.space.store_words($address(wave, code), &words).map_err(|access| illegal(access, true))
        }
    )*};
}
loads_and_stores! {
    /// Loads `N` words.
    s_load s_store address;
    /// Loads `N` words of scratch.
    s_scratch_load s_scratch_store scratch_address;
}

/// Loads `N` words of a buffer; words beyond its end are 0.
pub(crate) fn s_buffer_load<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    let code = Smem(insn.code);
    let (addr, len_bytes) = buffer_address(wave, code);
    let mut words = [0; N];
    let inside = N.min((len_bytes / 4) as usize);
    if inside > 0 {
        let loaded = machine.space.load_words(addr, &mut words[..inside]);
        loaded.map_err(|access| illegal(access, false))?;
    }
    put(wave, code.sdata(), words);
    Ok(())
}

/// Stores `N` words to a buffer; words beyond its end are dropped.
pub(crate) fn s_buffer_store<const N: usize>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
) -> Result<(), Cause> {
    let code = Smem(insn.code);
    let (addr, len_bytes) = buffer_address(wave, code);
    let words: [u32; N] = registers(wave, code.sdata());
    let inside = N.min((len_bytes / 4) as usize);
    if inside == 0 {
        return Ok(());
    }
    machine.space.store_words(addr, &words[..inside]).map_err(|access| illegal(access, true))
}

/// Updates memory at `addr`; writes the old value to the data registers if the instruction returns it.
fn update<W: Word>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    code: Smem,
    addr: u64,
    f: impl Fn(W, W, W) -> W,
) -> Result<(), Cause>
where
    W::Bits: Scalar,
{
    let first = W::from_bits(W::Bits::fetch(wave, code.sdata(), 0));
    let second = W::from_bits(W::Bits::fetch(wave, (code.sdata() + W::Bits::WORDS) & 127, 0));
    let update = |old| f(W::from_bits(old), first, second).to_bits();
    let old = W::Bits::update_device(&mut machine.space.cursor(), addr, update);
    let old = old.map_err(|access| illegal(access, true))?;
    if code.glc() != 0 {
        Scalar::put(wave, code.sdata(), old);
    }
    Ok(())
}

/// Executes an atomic: memory becomes `f(memory, data, second data operand)`.
pub(crate) fn s_atomic<W: Word>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(W, W, W) -> W,
) -> Result<(), Cause>
where
    W::Bits: Scalar,
{
    let code = Smem(insn.code);
    let addr = address(wave, code);
    update(wave, machine, code, addr, f)
}

/// Executes an atomic on a buffer; beyond the buffer's end it does nothing and returns 0.
pub(crate) fn s_buffer_atomic<W: Word>(
    wave: &mut Wave,
    machine: &mut Machine<'_>,
    insn: &Insn,
    f: impl Fn(W, W, W) -> W,
) -> Result<(), Cause>
where
    W::Bits: Scalar,
{
    let code = Smem(insn.code);
    let (addr, len_bytes) = buffer_address(wave, code);
    if len_bytes < W::Bits::BYTES {
        if code.glc() != 0 {
            Scalar::put(wave, code.sdata(), W::Bits::ZERO);
        }
        return Ok(());
    }
    update(wave, machine, code, addr, f)
}

/// Reads a clock that counts `hz` times a second from the device's start on.
pub(crate) fn clock(wave: &mut Wave, machine: &mut Machine<'_>, insn: &Insn, hz: u64) {
    let elapsed = machine.clock_start.elapsed();
    let ticks = elapsed.as_nanos() * u128::from(hz) / 1_000_000_000;
    wave.set_pair(Smem(insn.code).sdata(), ticks as u64);
}
