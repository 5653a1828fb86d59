//! Which accesses of a grid come before others.
//!
//! Each workgroup counts ticks: a barrier begins one, and so does each release. A wave knows of each workgroup up to which tick all of its
//! accesses, and those of each of its waves, come before its own next one ([`Clock`]).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use hipr_grid::GroupStart;
use hipr_isa::watch::{Access as Accesses, Fence, Kind as AccessKind, Memory, Register, Scope};
use hipr_isa::wave::{LANES, Wave};

use super::clock::{Clock, WAVES, join};
use super::doubt::{Loads, Race};
use super::shadow::{Access, Atomicity, PAGE_BYTES, Recent, Word};
use super::transfer::{NO_ORDER, Transfer};
use crate::finding::{Kind, Other};
use crate::kernel::At;
use crate::launch::{Launch, accessed};
use crate::lock::lock;

/// The most lanes of a store that may order accesses although it does not say that it is atomic.
const FLAG_LANES_MAX: u32 = 4;

#[derive(Debug, Default)]
struct WaveOrder {
    known: Arc<Clock>,
    /// What it knew at its last release fence.
    released: Option<Arc<Clock>>,
    /// Whether it is at a meeting of all workgroups.
    is_meeting: bool,
    /// Words of memory and of LDS that its last instruction has read as atomics. They are seen before it reads them: what it then knows, it
    /// knows from its next access on.
    reads: Vec<(Memory, u64)>,
    loads: Loads,
}

/// An earlier access that one of a lane's races with.
struct Raced {
    old: Access,
    is_old_store: bool,
    lane: usize,
    address: u64,
}

/// Notes the accesses of an instruction's lanes.
struct Noting<'a> {
    launch: &'a Launch,
    wave: &'a Wave,
    accesses: &'a Accesses<'a>,
    /// What they have in common.
    new: Access,
    group: u32,
    barrier_tick: u32,
    /// What the wave knows.
    known: &'a mut Arc<Clock>,
    behind: &'a mut [(u32, bool); 4],
    /// What was released by atomics to words of LDS, if the accesses are to LDS.
    lds_released: Option<&'a HashMap<u64, Arc<Clock>>>,
    /// Those that race with earlier ones.
    races: Vec<Raced>,
}

impl Noting<'_> {
    /// Notes that a lane accesses bytes of a page.
    fn words_of_page(&mut self, lane: usize, bytes: Range<u64>, words: &mut [Word]) {
        let first = (bytes.start % PAGE_BYTES / 4) as usize;
        let count = (bytes.end.div_ceil(4) - bytes.start / 4) as usize;
        if let Some(words) = words.get_mut(first..first + count) {
            self.words(lane, bytes, words);
        }
    }

    /// Notes that a lane accesses these bytes, which the words have.
    fn words(&mut self, lane: usize, bytes: Range<u64>, words: &mut [Word]) {
        let is_store = self.accesses.kind != AccessKind::Load;
        let mut from = bytes.start;
        for word in words {
            let to = ((from / 4 + 1) * 4).min(bytes.end);
            let mask = ((1u8 << (to - from)) - 1) << (from % 4);
            let new = Access { lane: lane as u8, bytes: mask, ..self.new };
            // Another lane of the instruction has loaded it.
            if is_store || !word.has_load(&new) {
                self.word(lane, from, new, is_store, word);
            }
            from = to;
        }
    }

    fn word(&mut self, lane: usize, from: u64, new: Access, is_store: bool, word: &mut Word) {
        let address = self.accesses.addresses[lane];
        let value = if is_store { value(self.wave, self.accesses, lane, address, from) } else { 0 };
        let new = Access { value, ..new };
        match self.lds_released {
            // A load of what an atomic has stored waits for it: LDS has no scopes that tell a load of an atomic from another.
            Some(released) if !is_store && word.store().atomicity == Atomicity::Atomic => {
                if let Some(released) = released.get(&(from / 4)) {
                    join(self.known, released);
                }
            }
            Some(_) => {}
            None => {
                if self.launch.stores_do_not_say()
                    && let Some(store) = word.proved(&new, is_store)
                {
                    self.launch.doubts.proved(store);
                }
            }
        }
        let Self { launch, behind, group, barrier_tick, known, .. } = self;
        let mut ordered = |old: &Access| is_ordered(launch, behind, *group, *barrier_tick, known, &new, old);
        // With an atomic each race counts: some may be meant, and others not.
        if let Some((old, is_old_store)) = word.note(new, is_store, &mut ordered)
            && (self.races.is_empty()
                || new.atomicity != Atomicity::Plain
                || old.atomicity != Atomicity::Plain)
        {
            self.races.push(Raced { old, is_old_store, lane, address });
        }
    }
}

/// The order of one workgroup's accesses.
pub(crate) struct GroupOrder {
    group: u32,
    launch: u32,
    entry: u64,
    tick: u32,
    /// The tick that the last barrier began.
    barrier_tick: u32,
    waves: Vec<WaveOrder>,
    recent: Recent,
    lds: Vec<Word>,
    /// What was released by atomics to words of LDS.
    lds_released: HashMap<u64, Arc<Clock>>,
    /// Number of transfers when `beside` was made.
    transfers_seen: u64,
    /// The transfers without an order before or behind the launch.
    beside: Vec<Arc<Transfer>>,
    /// Launches of which it was asked last whether they come before this one.
    behind: [(u32, bool); 4],
}

impl GroupOrder {
    pub(crate) fn new(launch: &Launch, start: GroupStart) -> Self {
        let waves = (0..start.waves).map(|_| WaveOrder::default()).collect();
        Self {
            group: start.number as u32,
            launch: launch.kernel.launch,
            entry: launch.kernel.entry,
            tick: 1,
            barrier_tick: 1,
            waves,
            recent: Recent::default(),
            lds: Vec::new(),
            lds_released: HashMap::new(),
            transfers_seen: 0,
            beside: Vec::new(),
            behind: [(0, true); 4],
        }
    }

    /// Handles a barrier of the workgroup.
    pub(crate) fn barrier(&mut self, launch: &Launch) {
        for wave in 0..self.waves.len() {
            self.learn(launch, wave);
        }
        self.tick += 1;
        self.barrier_tick = self.tick;
        let mut all: Arc<Clock> = Arc::default();
        for wave in &self.waves {
            join(&mut all, &wave.known);
        }
        // What one wave has released before the barrier, with a fence, an atomic of another one publishes behind it.
        let mut released: Arc<Clock> = Arc::default();
        for wave in &self.waves {
            if let Some(own) = &wave.released {
                join(&mut released, own);
            }
        }
        for wave in &mut self.waves {
            wave.known = Arc::clone(&all);
            if !released.0.is_empty() {
                wave.released = Some(Arc::clone(&released));
            }
        }
    }

    /// Returns what wave `wave` knows, and what it has done itself; what it does from now on belongs to another tick.
    fn release(&mut self, wave: usize) -> Arc<Clock> {
        let Some(own) = self.waves.get(wave) else { return Arc::default() };
        let mut clock = Clock::clone(&own.known);
        let seen = clock.0.entry(self.group).or_default();
        seen.below = seen.below.max(self.barrier_tick);
        seen.waves[wave % WAVES] = self.tick;
        self.tick += 1;
        Arc::new(clock)
    }

    /// Handles a fence.
    pub(crate) fn fence(&mut self, launch: &Launch, wave: usize, fence: Fence) {
        self.learn(launch, wave);
        match fence {
            Fence::Release(scope) if scope >= Scope::Agent => {
                let released = self.release(wave);
                if let Some(own) = self.waves.get_mut(wave) {
                    own.released = Some(released);
                }
            }
            Fence::Meeting => {
                let released = self.release(wave);
                join(&mut lock(&launch.grid.met), &released);
                if let Some(own) = self.waves.get_mut(wave) {
                    own.is_meeting = true;
                }
            }
            Fence::Release(_) | Fence::Acquire(_) => {}
        }
    }

    /// Handles that a wave has read the words that it read as atomics.
    fn learn(&mut self, launch: &Launch, wave: usize) {
        let Some(own) = self.waves.get_mut(wave).filter(|own| !own.reads.is_empty()) else { return };
        let by_word = lock(&launch.grid.released);
        for (memory, word) in own.reads.drain(..) {
            if memory == Memory::Lds {
                if let Some(before) = self.lds_released.get(&word) {
                    join(&mut own.known, before);
                }
            } else if let Some(before) = by_word.get(&word) {
                join(&mut own.known, &before.all);
                if let Some(own_group) = before.own.get(&self.group) {
                    join(&mut own.known, own_group);
                }
            }
        }
    }

    /// Handles that a wave goes on behind a meeting of all workgroups.
    fn leave_meeting(&mut self, launch: &Launch, wave: usize) {
        if let Some(own) = self.waves.get_mut(wave).filter(|own| own.is_meeting) {
            own.is_meeting = false;
            join(&mut own.known, &lock(&launch.grid.met));
        }
    }

    /// Returns how many words an address is behind the kernel's first instruction.
    fn offset_words(&self, pc: u64) -> i32 {
        (pc.wrapping_sub(self.entry) as i64 / 4) as i32
    }

    /// Notes the accesses of an instruction's lanes, and reports those that race. `is_compare` says that it is a compare-and-swap.
    pub(crate) fn access(
        &mut self,
        launch: &Launch,
        at: At<'_>,
        wave: &Wave,
        accesses: &Accesses<'_>,
        is_compare: bool,
    ) {
        if at.wave >= self.waves.len() || accesses.memory == Memory::Scratch {
            return;
        }
        self.leave_meeting(launch, at.wave);
        self.learn(launch, at.wave);
        let is_device = accesses.memory == Memory::Device;
        if is_device {
            self.check_transfers(launch, at, accesses);
        }
        let atomicity = match accesses.kind {
            AccessKind::Atomic => Atomicity::Atomic,
            _ if accesses.scope >= Scope::Workgroup => Atomicity::Atomic,
            AccessKind::Store if launch.stores_do_not_say() && is_device && accesses.len_bytes <= 16 => {
                Atomicity::Unknown
            }
            _ => Atomicity::Plain,
        };
        if accesses.kind == AccessKind::Store && atomicity != Atomicity::Atomic {
            self.check_one_instruction(launch, at, wave, accesses, atomicity);
        }
        let is_atomic = atomicity == Atomicity::Atomic;
        // Flags are stored by one lane, or a few.
        let is_flag = atomicity == Atomicity::Unknown && accesses.lanes.count_ones() <= FLAG_LANES_MAX;
        if is_atomic || is_flag {
            self.synchronize(launch, at.wave, accesses);
        }
        let offset_words = self.offset_words(at.pc);
        if let Some(own) = self.waves.get_mut(at.wave) {
            if is_compare {
                own.loads.proved(accesses, &launch.doubts);
            } else if accesses.kind == AccessKind::Load && !is_atomic {
                own.loads.note(offset_words, accesses);
            }
        }
        let new = self.own_access(at, atomicity);
        for race in self.note(launch, wave, accesses, new) {
            self.race(launch, At { lane: race.lane, ..at }, accesses, atomicity, race);
        }
    }

    /// Notes the accesses of an instruction's lanes. Returns those that race with earlier ones.
    fn note(&mut self, launch: &Launch, wave: &Wave, accesses: &Accesses<'_>, new: Access) -> Vec<Raced> {
        let Self { group, barrier_tick, waves, recent, lds, lds_released, behind, .. } = self;
        let Some(own) = waves.get_mut(usize::from(new.wave)) else { return Vec::new() };
        let is_device = accesses.memory == Memory::Device;
        let mut noting = Noting {
            launch,
            wave,
            accesses,
            new,
            group: *group,
            barrier_tick: *barrier_tick,
            known: &mut own.known,
            behind,
            lds_released: (!is_device).then_some(&*lds_released),
            races: Vec::new(),
        };
        let end = |address: u64| address + u64::from(accesses.len_bytes);
        // What another lane of the instruction loads as well says nothing new: mostly the one before, or that of a row of 16 or 32 lanes.
        let is_again = |lane: usize, address: u64| {
            let is_by = |distance: usize| {
                let other = lane.wrapping_sub(distance);
                other < LANES && accesses.lanes >> other & 1 != 0 && accesses.addresses[other] == address
            };
            accesses.kind == AccessKind::Load && (is_by(1) || is_by(16) || is_by(32))
        };
        if !is_device {
            accesses.each_lane(|lane, address| {
                if is_again(lane, address) {
                    return;
                }
                let words = end(address).div_ceil(4) as usize;
                if words > lds.len() {
                    lds.resize(words, Word::default());
                }
                noting.words(lane, address..end(address), &mut lds[(address / 4) as usize..words]);
            });
            return noting.races;
        }
        let (own, own_end) = launch.own;
        let mut left = 0u64;
        accesses.each_lane(|lane, address| {
            left |= u64::from((address < own || own_end <= address) && !is_again(lane, address)) << lane;
        });
        let mut beyond = 0u64;
        // The words of a page are locked once for all lanes that begin there.
        while left != 0 {
            let page = accesses.addresses[left.trailing_zeros() as usize] / PAGE_BYTES;
            let mut words = lock(&launch.context.shadow.page(recent, page).0);
            for lane in set_lanes(left) {
                let address = accesses.addresses[lane];
                if address / PAGE_BYTES == page {
                    left &= !(1 << lane);
                    let page_end = (page + 1) * PAGE_BYTES;
                    beyond |= u64::from(end(address) > page_end) << lane;
                    noting.words_of_page(lane, address..end(address).min(page_end), &mut words[..]);
                }
            }
        }
        for lane in set_lanes(beyond) {
            let end = end(accesses.addresses[lane]);
            let page = end / PAGE_BYTES;
            let mut words = lock(&launch.context.shadow.page(recent, page).0);
            noting.words_of_page(lane, page * PAGE_BYTES..end, &mut words[..]);
        }
        noting.races
    }

    /// Handles that atomics read and store what orders accesses.
    fn synchronize(&mut self, launch: &Launch, wave: usize, accesses: &Accesses<'_>) {
        let loads = accesses.kind != AccessKind::Store;
        let stores = accesses.kind != AccessKind::Load;
        let mut words = Vec::new();
        accesses.each_lane(|_, address| {
            if words.last() != Some(&(address / 4)) {
                words.push(address / 4);
            }
        });
        let released = if stores { Some(self.release(wave)) } else { None };
        let group = self.group;
        let Some(own) = self.waves.get_mut(wave) else { return };
        if loads {
            own.reads.extend(words.iter().map(|word| (accesses.memory, *word)));
        }
        let Some(released) = released else { return };
        if accesses.memory == Memory::Lds {
            for word in words {
                join(self.lds_released.entry(word).or_default(), &released);
            }
            return;
        }
        let to_all = if launch.atomics_release() { Some(&released) } else { own.released.as_ref() };
        let mut by_word = lock(&launch.grid.released);
        for word in words {
            let before = by_word.entry(word).or_default();
            if let Some(to_all) = to_all {
                join(&mut before.all, to_all);
            }
            join(before.own.entry(group).or_default(), &released);
        }
    }

    /// Reports lanes of one instruction that store different values to the same word, unless the store may turn out to be atomic.
    fn check_one_instruction(
        &self,
        launch: &Launch,
        at: At<'_>,
        wave: &Wave,
        accesses: &Accesses<'_>,
        atomicity: Atomicity,
    ) {
        let len_bytes = u64::from(accesses.len_bytes);
        let (mut is_rising, mut end) = (true, 0);
        accesses.each_lane(|_, address| {
            is_rising &= address >= end;
            end = address + len_bytes;
        });
        if is_rising {
            return;
        }
        let mut lanes = [(0, 0); LANES];
        let mut count = 0;
        accesses.each_lane(|lane, address| {
            lanes[count] = (address, lane);
            count += 1;
        });
        let lanes = &mut lanes[..count];
        lanes.sort_unstable();
        let differ = |first: usize, second: usize, address: u64| {
            (address..address + len_bytes).step_by(4).any(|from| {
                value(wave, accesses, first, address, from) != value(wave, accesses, second, address, from)
            })
        };
        let conflict = lanes.windows(2).find(|pair| match *pair {
            [(first, one), (second, other)] => first == second && differ(*one, *other, *first),
            _ => false,
        });
        let Some(&[(address, one), (_, lane)]) = conflict.and_then(|pair| <&[_; 2]>::try_from(pair).ok())
        else {
            return;
        };
        let own = self.offset_words(at.pc);
        let race = || Race {
            kind: Kind::BlockRace,
            pc: at.pc,
            callers: at.callers.to_vec(),
            start: at.start,
            wave: at.wave,
            lane,
            accessed: accessed(accesses, address),
            old: Access { lane: one as u8, ..self.own_access(at, atomicity) },
            is_old_store: true,
        };
        match atomicity {
            Atomicity::Unknown => launch.doubts.keep((Kind::BlockRace, own, [own; 2]), race),
            Atomicity::Plain | Atomicity::Atomic => launch.raced(&race()),
        }
    }

    /// Returns an access of the instruction at `at`, but for its lane, value and bytes.
    fn own_access(&self, at: At<'_>, atomicity: Atomicity) -> Access {
        Access {
            launch: self.launch,
            group: self.group,
            tick: self.tick,
            offset_words: self.offset_words(at.pc),
            wave: at.wave as u8,
            atomicity,
            ..Access::default()
        }
    }

    /// Reports a race, unless it may turn out to be meant.
    fn race(&self, launch: &Launch, at: At<'_>, accesses: &Accesses<'_>, atomicity: Atomicity, race: Raced) {
        let Raced { old, is_old_store, address, .. } = race;
        let kind = match () {
            () if old.launch != self.launch => Kind::StreamRace,
            () if old.group != self.group => Kind::GridRace,
            () => Kind::BlockRace,
        };
        let own = self.offset_words(at.pc);
        let is_load = accesses.kind == AccessKind::Load;
        let unless = match (atomicity, old.atomicity) {
            _ if kind == Kind::StreamRace => None,
            (Atomicity::Plain, Atomicity::Atomic) if is_load => Some([own; 2]),
            (Atomicity::Atomic, Atomicity::Plain) if !is_old_store => Some([old.offset_words; 2]),
            (Atomicity::Unknown, Atomicity::Unknown) => Some([own, old.offset_words]),
            _ => None,
        };
        let race = || Race {
            kind,
            pc: at.pc,
            callers: at.callers.to_vec(),
            start: at.start,
            wave: at.wave,
            lane: at.lane,
            accessed: accessed(accesses, address),
            old,
            is_old_store,
        };
        match unless {
            Some(unless) => launch.doubts.keep((kind, own, unless), race),
            None => launch.raced(&race()),
        }
    }

    /// Reports an access that races with a transfer.
    fn check_transfers(&mut self, launch: &Launch, at: At<'_>, accesses: &Accesses<'_>) {
        let Some(order) = &launch.order else { return };
        let count = launch.context.transfers.count();
        if count != self.transfers_seen {
            (self.transfers_seen, self.beside) = (count, launch.context.transfers.beside(order));
        }
        if self.beside.is_empty() {
            return;
        }
        let is_store = accesses.kind != AccessKind::Load;
        let mut race = None;
        accesses.each_lane(|lane, address| {
            let conflict = self.beside.iter().find(|transfer| {
                (is_store || transfer.is_store)
                    && transfer.has(address, address + u64::from(accesses.len_bytes))
            });
            if race.is_none()
                && let Some(transfer) = conflict
            {
                race = Some((lane, address, transfer.is_store));
            }
        });
        let Some((lane, address, is_other_store)) = race else { return };
        launch.found(Kind::StreamRace, At { lane, ..at }, 1, || {
            let kind = if is_other_store { AccessKind::Store } else { AccessKind::Load };
            let near = launch.near(accesses.memory, address);
            (Some(accessed(accesses, address)), near, Some(Other { place: None, kind }), NO_ORDER.to_owned())
        });
    }
}

fn set_lanes(lanes: u64) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| lanes >> lane & 1 != 0)
}

/// Returns whether `old` comes before `new`, which a wave of workgroup `group` that knows `known` does.
fn is_ordered(
    launch: &Launch,
    behind: &mut [(u32, bool); 4],
    group: u32,
    barrier_tick: u32,
    known: &Clock,
    new: &Access,
    old: &Access,
) -> bool {
    if old.launch != new.launch {
        let slot = &mut behind[old.launch as usize % 4];
        if slot.0 != old.launch {
            *slot = (old.launch, launch.is_behind(old.launch));
        }
        return slot.1;
    }
    let is_before_barrier = old.group == group && old.tick < barrier_tick;
    is_before_barrier || known.0.get(&old.group).is_some_and(|seen| seen.has(old))
}

/// Returns what lane `lane` stores to the bytes from `from` to the end of its word.
fn value(wave: &Wave, accesses: &Accesses<'_>, lane: usize, address: u64, from: u64) -> u32 {
    let word = |index: u64| match accesses.data {
        Register::Vector(first) => wave.row(first + index as usize)[lane],
        Register::Scalar(first) => wave.sgpr.get(first + index as usize).copied().unwrap_or(0),
        Register::Lds => lane as u32,
    };
    let offset = from - address;
    let (index, shift) = (offset / 4, offset % 4 * 8);
    let low = u64::from(word(index));
    let high = if shift == 0 || offset / 4 * 4 + 4 >= u64::from(accesses.len_bytes) {
        0
    } else {
        u64::from(word(index + 1))
    };
    let bytes = (((high << 32) | low) >> shift) as u32;
    match accesses.len_bytes {
        1 => bytes & 0xff,
        2 => bytes & 0xffff,
        _ => bytes,
    }
}
