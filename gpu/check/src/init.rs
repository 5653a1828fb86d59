//! Use of what nobody wrote.
//!
//! [`memory`] knows which bytes of device memory nobody wrote. A load of such bytes marks the registers that they go to, byte by byte and
//! lane by lane; a scalar register has a mark for each bit, as it may be a mask of lanes. All that follows from a marked value is marked as
//! well: sums, comparisons, selections. What is reported, at the load that brought the value, is a jump or a mask of active lanes that
//! depends on it, an address, and a computed value that is stored to device memory. So what compilers load and compute ahead and then
//! throw away is no mistake, nor are copies of bytes that nobody wrote, of padding above all: a store of a value as it was loaded marks
//! the memory.

pub(crate) mod memory;

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hipr_isa::watch::{Access, Kind as AccessKind, Lanes as ByLane, Memory, Register, Role, Step};
use hipr_isa::wave::{LANES, Wave};

use self::memory::{Marks, Recent};

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

/// The marks of a register: of a vector register the bytes of lanes, of a scalar one its bits, in the first number.
#[derive(Clone, Debug)]
struct Mark {
    lanes: Lanes,
    origin: Arc<Origin>,
    /// Whether the value was computed from what was loaded, and is not a copy of it.
    is_computed: bool,
}

impl Mark {
    fn new(origin: &Arc<Origin>, is_computed: bool) -> Self {
        Self { lanes: [0; 4], origin: Arc::clone(origin), is_computed }
    }

    /// Returns the bits of a scalar register.
    fn bits(&self) -> u32 {
        self.lanes[0] as u32
    }
}

#[derive(Clone, Debug, Default)]
struct WaveMarks {
    registers: HashMap<Register, Mark>,
    /// Where SCC comes from, if it is marked.
    scc: Option<Arc<Origin>>,
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
                let is_computed = from_before.as_ref().is_some_and(|(_, is_computed)| *is_computed);
                let loaded_here = |lane: usize| {
                    let (memory, address, len_bytes) =
                        (access.memory, access.addresses[lane], access.len_bytes);
                    Arc::new(Origin { pc, callers: callers.to_vec(), lane, memory, address, len_bytes })
                };
                let origin = from_before.map(|(origin, _)| origin).or_else(|| first_lane.map(loaded_here));
                let loaded = marked.zip(origin).map(|(words, origin)| Loaded { words, origin, is_computed });
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

/// What a load has brought that is marked: the words, where they come from, and whether they were computed before they lay in scratch.
struct Loaded {
    words: Vec<Lanes>,
    origin: Arc<Origin>,
    is_computed: bool,
}

/// Returns the bytes of a scalar register in which a bit is set, as the marks of lane 0.
fn bytes_of(bits: u32) -> Lanes {
    std::array::from_fn(|byte| u64::from(bits >> (byte * 8) & 0xff != 0))
}

/// Returns the bits of the bytes that are marked in a lane.
fn bits_of(lanes: Lanes, lane: usize) -> u32 {
    (0..4).filter(|byte| lanes[*byte] >> lane & 1 != 0).fold(0, |bits, byte| bits | 0xff << (byte * 8))
}

fn any_of(lanes: Lanes) -> u64 {
    lanes.iter().fold(0, |all, lanes| all | lanes)
}

/// Returns whether all bits from `start` to `end` are set.
fn are_set(bits: &[u64], start: u64, end: u64) -> bool {
    let mut at = start;
    while at < end {
        let (first, next) = (at % 64, (at / 64 + 1) * 64);
        let count = next.min(end) - at;
        let mask = (u64::MAX >> (64 - count)) << first;
        if bits.get((at / 64) as usize).is_none_or(|word| !word & mask != 0) {
            return false;
        }
        at = next;
    }
    true
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
    /// Returns the marks of the registers that an access stores, by words, in the lanes that store; nothing if there are none.
    fn stored(&self, access: &Access<'_>) -> Vec<Option<Mark>> {
        if self.registers.is_empty() {
            return Vec::new();
        }
        let words = access.len_bytes.div_ceil(4) as usize;
        let mark = |word: usize| match access.data {
            Register::Vector(first) => {
                let mark = self.registers.get(&Register::Vector(first + word))?;
                let lanes = mark.lanes.map(|lanes| lanes & access.lanes);
                (any_of(lanes) != 0).then(|| Mark { lanes, ..mark.clone() })
            }
            Register::Scalar(first) => {
                let mark = self.registers.get(&Register::Scalar(first + word))?;
                Some(Mark { lanes: bytes_of(mark.bits()), ..mark.clone() })
            }
            Register::Lds => None,
        };
        (0..words).map(mark).collect()
    }

    /// Notes what a load leaves in its registers.
    fn load(&mut self, wave: &Wave, access: &Access<'_>, loaded: Option<Loaded>) {
        if loaded.is_none() && self.registers.is_empty() {
            return;
        }
        let words = access.len_bytes.div_ceil(4) as usize;
        for word in 0..words {
            let lanes = loaded.as_ref().map_or([0; 4], |loaded| loaded.words[word]);
            let from = loaded.as_ref().map(|loaded| (&loaded.origin, loaded.is_computed));
            match access.data {
                Register::Vector(first) => self.set(Register::Vector(first + word), wave.exec(), lanes, from),
                Register::Scalar(first) => self.set_bits(first + word, bits_of(lanes, 0), from),
                Register::Lds => {}
            }
        }
    }

    /// Replaces the marks of a vector register in the lanes `written`; says where they come from, and whether they were computed.
    fn set(&mut self, register: Register, written: u64, lanes: Lanes, from: Option<(&Arc<Origin>, bool)>) {
        let is_marked = any_of(lanes) & written != 0;
        match (self.registers.get_mut(&register), from) {
            (Some(mark), from) => {
                for (own, new) in mark.lanes.iter_mut().zip(lanes) {
                    *own = *own & !written | new & written;
                }
                if mark.lanes == [0; 4] {
                    self.registers.remove(&register);
                } else if let Some((origin, is_computed)) = from.filter(|_| is_marked) {
                    (mark.origin, mark.is_computed) = (Arc::clone(origin), is_computed);
                }
            }
            (None, Some((origin, is_computed))) if is_marked => {
                let lanes = lanes.map(|lanes| lanes & written);
                self.registers.insert(register, Mark { lanes, ..Mark::new(origin, is_computed) });
            }
            (None, _) => {}
        }
    }

    /// Replaces the marks of a scalar register.
    fn set_bits(&mut self, code: usize, bits: u32, from: Option<(&Arc<Origin>, bool)>) {
        self.set(Register::Scalar(code), u64::MAX, [bits.into(), 0, 0, 0], from);
    }

    /// Returns the marked bits of a scalar register.
    fn bits(&self, code: usize) -> u32 {
        self.registers.get(&Register::Scalar(code)).map_or(0, Mark::bits)
    }

    /// Returns the marked lanes of a mask.
    fn mask_bits(&self, code: usize) -> u64 {
        u64::from(self.bits(code)) | u64::from(self.bits(code + 1)) << 32
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
                        let new = || Mark::new(&mark.origin, mark.is_computed);
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
        if step.is_vector() {
            self.computes_vector(wave, step, report);
        } else {
            self.computes_scalar(wave, step, report);
        }
    }

    fn computes_scalar(&mut self, wave: &Wave, step: &Step<'_, '_>, report: &mut dyn FnMut(&Origin)) {
        let used = Cell::new(None);
        let unknown = |code: usize| {
            let bits = self.bits(code);
            if bits != 0 {
                used.set(Some(code));
            }
            bits
        };
        let scalar = step.scalar(wave, &unknown, self.scc.is_some());
        let used = used.get().map(Register::Scalar);
        let mark = used.and_then(|register| self.registers.get(&register));
        let is_copy = step.role() == Role::Move && mark.is_some_and(|mark| !mark.is_computed);
        let origin = mark.map(|mark| Arc::clone(&mark.origin)).or_else(|| self.scc.clone());
        if let Some(origin) = origin.as_ref().filter(|_| scalar.decides || scalar.exec != 0) {
            report(origin);
            // It is known now; what follows from it is no other mistake.
            used.iter().for_each(|register| drop(self.registers.remove(register)));
            self.scc = None;
            return;
        }
        let from = origin.as_ref().map(|origin| (origin, !is_copy));
        if let Some((first, words, bits)) = scalar.result {
            for word in 0..words {
                self.set_bits(first + word, (bits >> (word * 32)) as u32, from);
            }
        }
        match scalar.scc {
            Some(true) => self.scc = origin,
            Some(false) => self.scc = None,
            None => {}
        }
    }

    fn computes_vector(&mut self, wave: &Wave, step: &Step<'_, '_>, report: &mut dyn FnMut(&Origin)) {
        let (exec, kind) = (wave.exec(), step.lanes());
        let mut sources = [[0; 4]; 3];
        let mut from: Option<(Arc<Origin>, bool)> = None;
        let mut used = Vec::new();
        let mask_of_lanes = step.mask(wave);
        step.sources(wave, &mut |source| {
            if source.index == 2 && mask_of_lanes.is_some() {
                return;
            }
            for word in 0..source.words {
                let register = match source.register {
                    Register::Vector(first) => Register::Vector(first + word),
                    Register::Scalar(first) => Register::Scalar(first + word),
                    Register::Lds => return,
                };
                let Some(mark) = self.registers.get(&register) else { continue };
                let is_read = |byte: usize| source.bytes >> byte & 1 != 0;
                let lanes: Lanes = std::array::from_fn(|byte| match register {
                    _ if !is_read(byte) => 0,
                    Register::Scalar(_) if mark.bits() >> (byte * 8) & 0xff != 0 => u64::MAX,
                    Register::Scalar(_) | Register::Lds => 0,
                    Register::Vector(_) if kind == ByLane::Read => mark.lanes[byte],
                    Register::Vector(_) if source.index == 0 => step.arriving(wave, mark.lanes[byte]) & exec,
                    Register::Vector(_) => mark.lanes[byte] & exec,
                });
                if any_of(lanes) == 0 {
                    continue;
                }
                from.get_or_insert_with(|| (Arc::clone(&mark.origin), mark.is_computed));
                used.push(register);
                let Some(all) = sources.get_mut(source.index.min(2)) else { continue };
                all.iter_mut().zip(lanes).for_each(|(all, lanes)| *all |= lanes);
            }
        });
        let mut mask = 0;
        let mut selects = None;
        if let Some((code, value)) = mask_of_lanes {
            selects = Some(value);
            mask = self.mask_bits(code) & exec;
            let registers = [code, code + 1].map(Register::Scalar);
            if let Some(mark) = registers.iter().filter_map(|register| self.registers.get(register)).next() {
                from.get_or_insert_with(|| (Arc::clone(&mark.origin), true));
            }
        }
        if kind == ByLane::Mixed {
            if let Some((origin, _)) = &from {
                report(origin);
                used.iter().for_each(|register| drop(self.registers.remove(register)));
            }
            from = None;
        }
        let all: Lanes =
            std::array::from_fn(|byte| sources.iter().fold(mask, |all, lanes| all | lanes[byte]));
        let role = step.role();
        let is_copy = matches!(role, Role::Move | Role::Bits) && mask == 0;
        let is_computed = from.as_ref().is_some_and(|(_, is_computed)| *is_computed) || !is_copy;
        let origin = from.as_ref().map(|(origin, _)| (origin, is_computed));
        let lanes = match (kind, role) {
            _ if from.is_none() => [0; 4],
            (ByLane::Select, _) => {
                let chosen = selects.unwrap_or(0);
                std::array::from_fn(|byte| sources[0][byte] & !chosen | sources[1][byte] & chosen | mask)
            }
            (ByLane::Count, _) => [any_of(sources[1]) | step.counted_lanes(&|code| self.bits(code)); 4],
            (_, Role::Move) => all,
            (_, Role::Bits) => step.moved_bytes(wave, &sources),
            (_, Role::Use) => [any_of(all); 4],
        };
        match kind {
            ByLane::Compare => {
                let unknown = any_of(lanes) & exec;
                if unknown != 0 && step.mnemonic().starts_with("v_cmpx") {
                    if let Some((origin, _)) = &from {
                        report(origin);
                    }
                    used.iter().for_each(|register| drop(self.registers.remove(register)));
                }
                self.set_masks(wave, step, unknown, origin);
            }
            ByLane::Read => {
                let bits = bits_of(lanes, step.named_lane(wave));
                step.results(wave, &mut |register, _| {
                    if let Register::Scalar(code) = register {
                        self.set_bits(code, bits, origin);
                    }
                });
            }
            _ => {
                let written = match kind {
                    ByLane::Write => 1 << step.named_lane(wave),
                    _ => step.written_lanes(wave),
                };
                step.results(wave, &mut |register, words| {
                    if let Register::Vector(first) = register {
                        (0..words).for_each(|word| {
                            self.set(Register::Vector(first + word), written, lanes, origin)
                        });
                    }
                });
                self.set_masks(wave, step, any_of(lanes) & exec, origin);
            }
        }
    }

    /// Replaces the marks of the masks that an instruction writes.
    fn set_masks(
        &mut self,
        wave: &Wave,
        step: &Step<'_, '_>,
        lanes: u64,
        from: Option<(&Arc<Origin>, bool)>,
    ) {
        step.results(wave, &mut |register, words| {
            if let Register::Scalar(first) = register {
                (0..words).for_each(|word| self.set_bits(first + word, (lanes >> (word * 32)) as u32, from));
            }
        });
    }
}
