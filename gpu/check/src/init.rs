//! Use of what nobody wrote.
//!
//! [`memory`] knows which bytes of device memory nobody wrote. A load of such bytes marks the registers that they go to, byte by byte and
//! lane by lane; a scalar register has a mark for each bit, as it may be a mask of lanes. All that follows from a marked value is marked as
//! well: sums, comparisons, selections. What is reported, at the load that brought the value, is a jump or a mask of active lanes that
//! depends on it, an address, and a computed value that is stored to device memory. So what compilers load and compute ahead and then
//! throw away is no mistake, nor are copies of bytes that nobody wrote, of padding above all: a store of a value as it was loaded marks
//! the memory.

pub(crate) mod memory;
mod wave;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hipr_isa::watch::{Access, Kind as AccessKind, Memory, Register, Step};
use hipr_isa::wave::{LANES, Wave};

use self::memory::{Marks, Recent};
use self::wave::{Loaded, Mark, WaveMarks};

/// The lanes in which each of the four bytes of a register or a word is marked.
type Lanes = [u64; 4];

/// The most bytes of LDS between the first and the last lane's accesses that are looked at at once.
const LDS_SPAN_MAX_BYTES: u64 = 4096;

/// An instruction that accesses memory.
pub(crate) struct Instruction<'a> {
    pub(crate) pc: u64,
    /// The calls that it is in.
    pub(crate) callers: &'a [u64],
    /// The first vector register of its addresses.
    pub(crate) address_register: Option<usize>,
    /// Whether it stores whatever was there before, and returns that.
    pub(crate) is_exchange: bool,
}

/// Where marked bytes have come from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) pc: u64,
    pub(crate) callers: Vec<u64>,
    pub(crate) lane: usize,
    pub(crate) memory: Memory,
    pub(crate) address: u64,
    pub(crate) len_bytes: u32,
}

/// The marks of one workgroup.
pub(crate) struct Init {
    marks: Arc<Marks>,
    recent: Recent,
    waves: Vec<WaveMarks>,
    /// The bytes of LDS that were written, a bit each.
    lds: Vec<u64>,
    /// Where computed values of words in LDS come from, of whose bytes some count as not written.
    lds_computed: HashMap<u64, Arc<Origin>>,
}

impl Init {
    pub(crate) fn new(marks: &Arc<Marks>, waves: u32) -> Self {
        let (recent, lds, lds_computed) = Default::default();
        let waves = vec![WaveMarks::default(); waves as usize];
        Self { marks: Arc::clone(marks), recent, waves, lds, lds_computed }
    }

    /// Handles an instruction that accesses no memory. Calls `report` for marked bytes that it uses.
    #[inline]
    pub(crate) fn computes(
        &mut self,
        number: usize,
        wave: &Wave,
        step: &Step<'_, '_>,
        report: &mut dyn FnMut(&Origin),
    ) {
        if let Some(own) = self.waves.get_mut(number)
            && !(own.registers.is_empty() && own.scc.is_none())
        {
            own.computes(wave, step, report);
        }
    }

    /// Handles an access.
    pub(crate) fn access(
        &mut self,
        number: usize,
        wave: &Wave,
        instruction: &Instruction<'_>,
        access: &Access<'_>,
        report: &mut dyn FnMut(&Origin),
    ) {
        let &Instruction { pc, callers, address_register, is_exchange } = instruction;
        let Some(own) = self.waves.get_mut(number) else { return };
        if let Some(first) = address_register
            && let Some(mark) = own.registers.get(&Register::Vector(first))
            && mark.lanes.iter().any(|lanes| lanes & access.lanes != 0)
        {
            report(&Arc::clone(&mark.origin));
            own.registers.remove(&Register::Vector(first));
        }
        match access.kind {
            AccessKind::Store => self.store(number, access, report),
            AccessKind::Load | AccessKind::Atomic => {
                let marked = self.load(number, access);
                let first_lane = marked.as_ref().map(|words| {
                    let any = words.iter().flatten().fold(0, |all, lanes| all | lanes);
                    any.trailing_zeros() as usize % LANES
                });
                // What lay in scratch meanwhile has come from where it was loaded first, and so has what was computed and lay in LDS.
                let from_before = first_lane.and_then(|lane| {
                    let words = access.addresses[lane] / 4
                        ..=(access.addresses[lane] + u64::from(access.len_bytes) - 1) / 4;
                    let find = |word| match access.memory {
                        Memory::Scratch => {
                            let mark = self.waves.get(number)?.scratch.get(&word)?;
                            Some((Arc::clone(&mark.origin), mark.is_computed))
                        }
                        Memory::Lds => self.lds_computed.get(&word).map(|origin| (Arc::clone(origin), true)),
                        Memory::Device => None,
                    };
                    words.filter_map(find).next()
                });
                let loaded_here = |lane: usize| {
                    let (memory, address, len_bytes) =
                        (access.memory, access.addresses[lane], access.len_bytes);
                    Arc::new(Origin { pc, callers: callers.to_vec(), lane, memory, address, len_bytes })
                };
                let from = from_before.or_else(|| first_lane.map(|lane| (loaded_here(lane), false)));
                let loaded = marked.zip(from).map(|(words, (origin, is_computed))| Loaded {
                    words,
                    origin,
                    is_computed,
                });
                if access.kind == AccessKind::Load {
                    let Some(own) = self.waves.get_mut(number) else { return };
                    own.load(wave, access, loaded);
                    return;
                }
                // What an exchange returns is used where it is used; other atomics compute with it.
                let mut returned = None;
                if is_exchange {
                    returned = loaded;
                    self.store(number, access, report);
                } else {
                    if let Some(loaded) = loaded {
                        report(&loaded.origin);
                    }
                    if let Some(own) = self.waves.get_mut(number) {
                        own.stored(access).iter().flatten().for_each(|mark| report(&mark.origin));
                    }
                    self.store_written(number, access);
                }
                if let Some((data, own)) = access.returned.zip(self.waves.get_mut(number)) {
                    own.load(wave, &Access { data, ..*access }, returned);
                }
            }
        }
    }

    /// Returns whether all bytes between the first and the last lane's accesses are known to be written. That is so for most accesses, and
    /// takes less time than to look at those of each lane.
    fn is_written(&mut self, number: usize, access: &Access<'_>) -> bool {
        match access.memory {
            Memory::Scratch => self.waves.get(number).is_none_or(|own| own.scratch.is_empty()),
            Memory::Lds => {
                let Range { start, end } = access.span();
                end.saturating_sub(start) <= LDS_SPAN_MAX_BYTES && are_set(&self.lds, start, end)
            }
            Memory::Device => {
                let Range { start, end } = access.span();
                start < end && self.marks.is_written(&mut self.recent, start, end)
            }
        }
    }

    /// Returns the marks of the words that an access loads; `None` if it loads no marked byte.
    fn load(&mut self, number: usize, access: &Access<'_>) -> Option<Vec<Lanes>> {
        if self.is_written(number, access) {
            return None;
        }
        let mut words: Option<Vec<Lanes>> = None;
        let count = access.len_bytes.div_ceil(4) as usize;
        let len_bytes = u64::from(access.len_bytes);
        let own = self.waves.get(number)?;
        let (marks, recent, lds) = (&self.marks, &mut self.recent, &self.lds);
        access.each_lane(|lane, address| {
            let mut note = |offset: u64| {
                let words = words.get_or_insert_with(|| vec![[0; 4]; count]);
                words[(offset / 4) as usize][(offset % 4) as usize] |= 1 << lane;
            };
            match access.memory {
                Memory::Device => marks.unwritten(recent, address, len_bytes, &mut note),
                Memory::Lds => (0..len_bytes).filter(|offset| !bit(lds, address + offset)).for_each(note),
                Memory::Scratch => {
                    let is_marked = |offset: &u64| {
                        let mark = own.scratch.get(&((address + offset) / 4));
                        mark.is_some_and(|mark| {
                            mark.lanes[((address + offset) % 4) as usize] >> lane & 1 != 0
                        })
                    };
                    (0..len_bytes).filter(is_marked).for_each(note);
                }
            }
        });
        words
    }

    fn store_written(&mut self, number: usize, access: &Access<'_>) {
        if access.memory == Memory::Scratch || self.is_written(number, access) {
            return;
        }
        let len_bytes = u64::from(access.len_bytes);
        let (marks, recent, lds) = (&self.marks, &mut self.recent, &mut self.lds);
        let computed = &mut self.lds_computed;
        access.each_lane(|_, address| match access.memory {
            Memory::Device => marks.write(recent, address, len_bytes),
            Memory::Lds => {
                (address..address + len_bytes).for_each(|byte| set_bit(lds, byte, true));
                if !computed.is_empty() {
                    let words = address / 4..=(address + len_bytes - 1) / 4;
                    words.for_each(|word| drop(computed.remove(&word)));
                }
            }
            Memory::Scratch => {}
        });
    }

    /// Handles a store: what is stored is written, but for the bytes of registers that are marked. Computed ones are reported if they go to
    /// device memory.
    fn store(&mut self, number: usize, access: &Access<'_>, report: &mut dyn FnMut(&Origin)) {
        let Some(own) = self.waves.get_mut(number) else { return };
        let mut marked = own.stored(access);
        if access.memory == Memory::Scratch {
            own.store_scratch(access, &marked);
            return;
        }
        if access.memory == Memory::Device {
            for mark in &mut marked {
                if let Some(computed) = mark.take_if(|mark| mark.is_computed) {
                    report(&computed.origin);
                }
            }
        }
        self.store_written(number, access);
        if marked.iter().all(Option::is_none) {
            return;
        }
        let (marks, recent, lds) = (&self.marks, &mut self.recent, &mut self.lds);
        let computed = &mut self.lds_computed;
        access.each_lane(|lane, address| {
            for offset in 0..u64::from(access.len_bytes) {
                let mark = marked.get((offset / 4) as usize).and_then(Option::as_ref);
                let lane = if access.is_scalar { 0 } else { lane };
                let is_marked = |mark: &&Mark| mark.lanes[(offset % 4) as usize] >> lane & 1 != 0;
                let Some(mark) = mark.filter(is_marked) else { continue };
                match access.memory {
                    Memory::Lds => {
                        set_bit(lds, address + offset, false);
                        if mark.is_computed {
                            let origin = || Arc::clone(&mark.origin);
                            computed.entry((address + offset) / 4).or_insert_with(origin);
                        }
                    }
                    _ => marks.unwrite(recent, address + offset),
                }
            }
        });
    }
}

/// Returns whether all bits from `start` to `end` are set.
fn are_set(bits: &[u64], start: u64, end: u64) -> bool {
    memory::masks(start, end).all(|(word, mask)| bits.get(word).is_some_and(|bits| !bits & mask == 0))
}

fn bit(bits: &[u64], index: u64) -> bool {
    bits.get((index / 64) as usize).is_some_and(|word| word >> (index % 64) & 1 != 0)
}

fn set_bit(bits: &mut Vec<u64>, index: u64, is_set: bool) {
    let word = (index / 64) as usize;
    if word >= bits.len() {
        bits.resize(word + 1, 0);
    }
    if is_set {
        bits[word] |= 1 << (index % 64);
    } else {
        bits[word] &= !(1 << (index % 64));
    }
}
