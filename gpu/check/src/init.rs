//! Use of what nobody wrote.
//!
//! [`memory`] knows which bytes of device memory nobody wrote. A load of such bytes marks the registers that they go to, byte by byte and
//! lane by lane. Moves, shifts and masks carry marks along, and so do stores, into device memory, LDS and scratch; what computes with a
//! marked byte, compares it or uses it as an address is reported, at the load that brought it. Copies and padding are never reported.

pub(crate) mod memory;

use std::collections::HashMap;
use std::sync::Arc;

use hipr_isa::watch::{Access, Kind as AccessKind, Memory, Register, Role, Step};
use hipr_isa::wave::{LANES, Wave};

use self::memory::{Marks, Recent};

/// The lanes in which each of the four bytes of a register or a word is marked.
type Lanes = [u64; 4];

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

#[derive(Clone, Debug)]
struct Mark {
    lanes: Lanes,
    origin: Arc<Origin>,
}

#[derive(Clone, Debug, Default)]
struct WaveMarks {
    registers: HashMap<Register, Mark>,
    /// By words of scratch.
    scratch: HashMap<u64, Mark>,
}

/// The marks of one workgroup.
pub(crate) struct Init {
    marks: Arc<Marks>,
    recent: Recent,
    waves: Vec<WaveMarks>,
    /// The bytes of LDS that were written, a bit each.
    lds: Vec<u64>,
}

impl Init {
    pub(crate) fn new(marks: &Arc<Marks>, waves: u32) -> Self {
        let (recent, lds) = Default::default();
        Self { marks: Arc::clone(marks), recent, waves: vec![WaveMarks::default(); waves as usize], lds }
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
            && !own.registers.is_empty()
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
            AccessKind::Store => self.store(number, access),
            AccessKind::Load | AccessKind::Atomic => {
                let marked = self.load(number, access);
                let first_lane = marked.as_ref().map(|words| {
                    let any = words.iter().flatten().fold(0, |all, lanes| all | lanes);
                    any.trailing_zeros() as usize % LANES
                });
                // What lay in scratch meanwhile has come from where it was loaded first.
                let in_scratch = first_lane.filter(|_| access.memory == Memory::Scratch);
                let from_scratch = in_scratch.and_then(|lane| {
                    let scratch = &self.waves.get(number)?.scratch;
                    let words = access.addresses[lane] / 4
                        ..=(access.addresses[lane] + u64::from(access.len_bytes) - 1) / 4;
                    words.filter_map(|word| scratch.get(&word)).map(|mark| Arc::clone(&mark.origin)).next()
                });
                let loaded_here = |lane: usize| {
                    let (memory, address, len_bytes) =
                        (access.memory, access.addresses[lane], access.len_bytes);
                    Arc::new(Origin { pc, callers: callers.to_vec(), lane, memory, address, len_bytes })
                };
                let origin = from_scratch.or_else(|| first_lane.map(loaded_here));
                if access.kind == AccessKind::Load {
                    let Some(own) = self.waves.get_mut(number) else { return };
                    own.load(wave, access, marked, origin);
                    return;
                }
                // What an exchange returns is used where it is used; other atomics compute with it.
                let mut returned = None;
                if is_exchange {
                    returned = marked.zip(origin);
                    self.store(number, access);
                } else {
                    if let Some(origin) = origin {
                        report(&origin);
                    }
                    self.store_written(access);
                }
                if let Some((data, own)) = access.returned.zip(self.waves.get_mut(number)) {
                    let (marked, origin) = returned.unzip();
                    own.load(wave, &Access { data, ..*access }, marked, origin);
                }
            }
        }
    }

    /// Returns the marks of the words that an access loads; `None` if it loads no marked byte.
    fn load(&mut self, number: usize, access: &Access<'_>) -> Option<Vec<Lanes>> {
        let mut words: Option<Vec<Lanes>> = None;
        let count = access.len_bytes.div_ceil(4) as usize;
        let own = self.waves.get(number)?;
        let (marks, recent, lds) = (&self.marks, &mut self.recent, &self.lds);
        access.each_lane(|lane, address| {
            let is_marked = |offset: u64| match access.memory {
                Memory::Lds => !bit(lds, address + offset),
                Memory::Device => false,
                Memory::Scratch => own
                    .scratch
                    .get(&((address + offset) / 4))
                    .is_some_and(|mark| mark.lanes[((address + offset) % 4) as usize] >> lane & 1 != 0),
            };
            let len_bytes = u64::from(access.len_bytes);
            let mut note = |offset: u64| {
                let words = words.get_or_insert_with(|| vec![[0; 4]; count]);
                words[(offset / 4) as usize][(offset % 4) as usize] |= 1 << lane;
            };
            match access.memory {
                Memory::Device => marks.unwritten(recent, address, len_bytes, &mut note),
                Memory::Scratch if own.scratch.is_empty() => {}
                Memory::Lds | Memory::Scratch => {
                    (0..len_bytes).filter(|offset| is_marked(*offset)).for_each(note)
                }
            }
        });
        words
    }

    fn store_written(&mut self, access: &Access<'_>) {
        let len_bytes = u64::from(access.len_bytes);
        let (marks, recent, lds) = (&self.marks, &mut self.recent, &mut self.lds);
        access.each_lane(|_, address| match access.memory {
            Memory::Device => marks.write(recent, address, len_bytes),
            Memory::Lds => (address..address + len_bytes).for_each(|byte| set_bit(lds, byte, true)),
            Memory::Scratch => {}
        });
    }

    /// Handles a store: what is stored is written, but for the bytes of registers that are marked.
    fn store(&mut self, number: usize, access: &Access<'_>) {
        let Some(own) = self.waves.get_mut(number) else { return };
        let words = access.len_bytes.div_ceil(4) as usize;
        let data = |word: usize| match access.data {
            Register::Vector(first) => Some(Register::Vector(first + word)),
            Register::Scalar(first) => Some(Register::Scalar(first + word)),
            Register::Lds => None,
        };
        let marked: Vec<Option<Mark>> = if own.registers.is_empty() {
            Vec::new()
        } else {
            (0..words).map(|word| own.registers.get(&data(word)?).cloned()).collect()
        };
        if access.memory == Memory::Scratch {
            own.store_scratch(access, &marked);
            return;
        }
        self.store_written(access);
        if marked.iter().all(Option::is_none) {
            return;
        }
        let (marks, recent, lds) = (&self.marks, &mut self.recent, &mut self.lds);
        access.each_lane(|lane, address| {
            for offset in 0..u64::from(access.len_bytes) {
                let mark = marked.get((offset / 4) as usize).and_then(Option::as_ref);
                let lane = if access.is_scalar { 0 } else { lane };
                if mark.is_none_or(|mark| mark.lanes[(offset % 4) as usize] >> lane & 1 == 0) {
                    continue;
                }
                match access.memory {
                    Memory::Lds => set_bit(lds, address + offset, false),
                    _ => marks.unwrite(recent, address + offset),
                }
            }
        });
    }
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

impl WaveMarks {
    /// Notes what a load leaves in its registers.
    fn load(
        &mut self,
        wave: &Wave,
        access: &Access<'_>,
        marked: Option<Vec<Lanes>>,
        origin: Option<Arc<Origin>>,
    ) {
        if marked.is_none() && self.registers.is_empty() {
            return;
        }
        let words = access.len_bytes.div_ceil(4) as usize;
        for word in 0..words {
            let register = match access.data {
                Register::Vector(first) => Register::Vector(first + word),
                Register::Scalar(first) => Register::Scalar(first + word),
                Register::Lds => continue,
            };
            let lanes = marked.as_ref().map_or([0; 4], |marked| marked[word]);
            let written = if access.is_scalar { u64::MAX } else { wave.exec() };
            self.set(register, written, lanes, origin.as_ref());
        }
    }

    /// Replaces the marks of a register in the lanes `written`.
    fn set(&mut self, register: Register, written: u64, lanes: Lanes, origin: Option<&Arc<Origin>>) {
        let is_marked = lanes.iter().any(|lanes| lanes & written != 0);
        match (self.registers.get_mut(&register), origin) {
            (Some(mark), origin) => {
                for (own, new) in mark.lanes.iter_mut().zip(lanes) {
                    *own = *own & !written | new & written;
                }
                if mark.lanes == [0; 4] {
                    self.registers.remove(&register);
                } else if let Some(origin) = origin.filter(|_| is_marked) {
                    mark.origin = Arc::clone(origin);
                }
            }
            (None, Some(origin)) if is_marked => {
                let lanes = lanes.map(|lanes| lanes & written);
                self.registers.insert(register, Mark { lanes, origin: Arc::clone(origin) });
            }
            (None, _) => {}
        }
    }

    fn store_scratch(&mut self, access: &Access<'_>, marked: &[Option<Mark>]) {
        if marked.iter().all(Option::is_none) && self.scratch.is_empty() {
            return;
        }
        access.each_lane(|lane, address| {
            for offset in 0..u64::from(access.len_bytes) {
                let mark = marked.get((offset / 4) as usize).and_then(Option::as_ref);
                let mark = mark.filter(|mark| mark.lanes[(offset % 4) as usize] >> lane & 1 != 0);
                let (word, byte) = ((address + offset) / 4, ((address + offset) % 4) as usize);
                match mark {
                    Some(mark) => {
                        let new = || Mark { lanes: [0; 4], origin: Arc::clone(&mark.origin) };
                        self.scratch.entry(word).or_insert_with(new).lanes[byte] |= 1 << lane;
                    }
                    None => {
                        if let Some(old) = self.scratch.get_mut(&word) {
                            old.lanes[byte] &= !(1 << lane);
                            if old.lanes == [0; 4] {
                                self.scratch.remove(&word);
                            }
                        }
                    }
                }
            }
        });
    }

    fn computes(&mut self, wave: &Wave, step: &Step<'_, '_>, report: &mut dyn FnMut(&Origin)) {
        let exec = if step.is_vector() { wave.exec() } else { u64::MAX };
        let role = step.role();
        let mut used: Option<Arc<Origin>> = None;
        let mut carried: Option<Mark> = None;
        let mut reported = Vec::new();
        step.sources(wave, &mut |source| {
            for word in 0..source.words {
                let register = match source.register {
                    Register::Vector(first) => Register::Vector(first + word),
                    Register::Scalar(first) => Register::Scalar(first + word),
                    Register::Lds => return,
                };
                let Some(mark) = self.registers.get(&register) else { continue };
                let bytes = |byte: usize| source.bytes >> byte & 1 != 0;
                let lanes: Lanes =
                    std::array::from_fn(|byte| if bytes(byte) { mark.lanes[byte] & exec } else { 0 });
                if lanes == [0; 4] {
                    continue;
                }
                if role == Role::Use {
                    used.get_or_insert_with(|| Arc::clone(&mark.origin));
                    reported.push(register);
                    continue;
                }
                let new = || Mark { lanes: [0; 4], origin: Arc::clone(&mark.origin) };
                let carried = carried.get_or_insert_with(new);
                for (all, lanes) in carried.lanes.iter_mut().zip(lanes) {
                    *all |= lanes;
                }
            }
        });
        if let Some(origin) = used {
            report(&origin);
            // It is known now; what follows from it is no other mistake.
            for register in reported {
                self.registers.remove(&register);
            }
        }
        if role == Role::Bits
            && let Some(mark) = &mut carried
        {
            mark.lanes = step.moved_bytes(wave, mark.lanes);
        }
        step.results(wave, &mut |register, words| {
            for word in 0..words {
                let register = match register {
                    Register::Vector(first) => Register::Vector(first + word),
                    Register::Scalar(first) => Register::Scalar(first + word),
                    Register::Lds => continue,
                };
                let (lanes, origin) =
                    carried.as_ref().map_or(([0; 4], None), |mark| (mark.lanes, Some(&mark.origin)));
                self.set(register, exec, lanes, origin);
            }
        });
    }
}
