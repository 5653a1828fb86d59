//! Which registers of a wave have what nobody wrote, and what becomes of that in its instructions.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use hipr_isa::watch::{Access, Lanes as ByLane, Register, Role, Step};
use hipr_isa::wave::Wave;

use super::{Lanes, Origin};

/// The marks of a register: of a vector register the bytes of lanes, of a scalar one its bits, in the first number.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) lanes: Lanes,
    pub(super) origin: Arc<Origin>,
    /// Whether the value was computed from what was loaded, and is not a copy of it.
    pub(super) is_computed: bool,
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

/// What is marked in the registers and the scratch memory of one wave.
#[derive(Clone, Debug, Default)]
pub(super) struct WaveMarks {
    pub(super) registers: HashMap<Register, Mark>,
    /// Where SCC comes from, if it is marked.
    pub(super) scc: Option<Arc<Origin>>,
    /// The marks of scratch memory, by address divided by 4.
    pub(super) scratch: HashMap<u64, Mark>,
}

/// What a load has brought that is marked: the words, where they come from, and whether they were computed before they lay in scratch.
pub(super) struct Loaded {
    pub(super) words: Vec<Lanes>,
    pub(super) origin: Arc<Origin>,
    pub(super) is_computed: bool,
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

/// What a vector instruction reads that is marked.
#[derive(Default)]
struct Read {
    /// Of each source, the lanes of each byte.
    sources: [Lanes; 3],
    /// The lanes of the mask that it reads, and the mask's value.
    mask: u64,
    chosen: u64,
    /// Where it comes from, and whether it was computed.
    from: Option<(Arc<Origin>, bool)>,
    registers: Vec<Register>,
}

impl WaveMarks {
    /// Returns the marks of the registers that an access stores, by words, in the lanes that store; nothing if there are none.
    pub(super) fn stored(&self, access: &Access<'_>) -> Vec<Option<Mark>> {
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
    pub(super) fn load(&mut self, wave: &Wave, access: &Access<'_>, loaded: Option<Loaded>) {
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

    /// Notes what a store leaves in scratch: the marks of its words.
    pub(super) fn store_scratch(&mut self, access: &Access<'_>, marked: &[Option<Mark>]) {
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

    /// Handles an instruction that accesses no memory. Calls `report` for marked bytes that it uses.
    pub(super) fn computes(&mut self, wave: &Wave, step: &Step<'_, '_>, report: &mut dyn FnMut(&Origin)) {
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

    /// Collects the marked bytes that an instruction reads.
    fn read(&self, wave: &Wave, step: &Step<'_, '_>) -> Read {
        let (exec, kind, select) = (wave.exec(), step.lanes(), step.mask(wave));
        let mut read = Read::default();
        step.sources(wave, &mut |source| {
            if source.index == 2 && select.is_some() {
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
                read.from.get_or_insert_with(|| (Arc::clone(&mark.origin), mark.is_computed));
                read.registers.push(register);
                let Some(all) = read.sources.get_mut(source.index.min(2)) else { continue };
                all.iter_mut().zip(lanes).for_each(|(all, lanes)| *all |= lanes);
            }
        });
        if let Some((code, chosen)) = select {
            read.chosen = chosen;
            read.mask = self.mask_bits(code) & exec;
            let registers = [code, code + 1].map(Register::Scalar);
            if let Some(mark) = registers.iter().filter_map(|register| self.registers.get(register)).next() {
                read.from.get_or_insert_with(|| (Arc::clone(&mark.origin), true));
            }
        }
        read
    }

    /// Reports what an instruction has used. It is known now; what follows from it is no other mistake.
    fn report(&mut self, read: &Read, report: &mut dyn FnMut(&Origin)) {
        if let Some((origin, _)) = &read.from {
            report(origin);
        }
        read.registers.iter().for_each(|register| drop(self.registers.remove(register)));
    }

    fn computes_vector(&mut self, wave: &Wave, step: &Step<'_, '_>, report: &mut dyn FnMut(&Origin)) {
        let (exec, kind, role) = (wave.exec(), step.lanes(), step.role());
        let mut read = self.read(wave, step);
        if kind == ByLane::Mixed {
            self.report(&read, report);
            read.from = None;
        }
        let Read { ref sources, ref from, mask, chosen, .. } = read;
        let all: Lanes =
            std::array::from_fn(|byte| sources.iter().fold(mask, |all, lanes| all | lanes[byte]));
        let is_copy = matches!(role, Role::Move | Role::Bits) && mask == 0;
        let is_computed = from.as_ref().is_some_and(|(_, is_computed)| *is_computed) || !is_copy;
        let origin = from.as_ref().map(|(origin, _)| (origin, is_computed));
        let lanes = match (kind, role) {
            _ if from.is_none() => [0; 4],
            (ByLane::Select, _) => {
                std::array::from_fn(|byte| sources[0][byte] & !chosen | sources[1][byte] & chosen | mask)
            }
            (ByLane::Count, _) => [any_of(sources[1]) | step.counted_lanes(&|code| self.bits(code)); 4],
            (_, Role::Move) => all,
            (_, Role::Bits) => step.moved_bytes(wave, sources),
            (_, Role::Use) => [any_of(all); 4],
        };
        match kind {
            ByLane::Compare => {
                let unknown = any_of(lanes) & exec;
                if unknown != 0 && step.mnemonic().starts_with("v_cmpx") {
                    self.report(&read, report);
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
