//! Tests of virtual memory over a socket: physical memory that is mapped at reserved addresses, against a model, and what is refused.

mod common;

use std::collections::BTreeMap;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};
use hipr_worker::Handle;

const INVALID: HipError = HipError::INVALID_VALUE;
const DEVICE_BYTES: u64 = 1 << 30;
const READ_WRITE: u32 = 3;

/// A session that maps memory.
struct Mapper {
    peer: Peer,
    unit: u64,
}

impl Mapper {
    fn new(worker: &Handle) -> Self {
        let (mut peer, accepted) = Peer::offering(worker.local_addr(), Features::MAPPINGS);
        assert_eq!(accepted, Features::MAPPINGS);
        let unit = peer.call(&MemGranularity { device: 0 }).expect("a granularity").granularity;
        assert!(unit.is_power_of_two() && unit >= 4096);
        Self { peer, unit }
    }

    fn reserve(&mut self, units: u64) -> u64 {
        let request = AddressReserve { size: units * self.unit, alignment: 0, wanted: 0 };
        self.peer.call(&request).expect("addresses").device_ptr
    }

    fn create(&mut self, units: u64) -> HipResult<u64> {
        let request = PhysicalCreate { size: units * self.unit, device: 0, reserved: 0 };
        self.peer.call(&request).map(|reply| reply.physical)
    }

    fn map(&mut self, device_ptr: u64, units: u64, physical: u64) -> HipResult<()> {
        self.peer.call(&MemMap { device_ptr, size: units * self.unit, physical })
    }

    fn access(&mut self, device_ptr: u64, units: u64, access: u32) -> HipResult<()> {
        self.peer.call(&MemSetAccess { device_ptr, size: units * self.unit, device: 0, access })
    }

    fn unmap(&mut self, device_ptr: u64, units: u64) -> HipResult<()> {
        self.peer.call(&MemUnmap { device_ptr, size: units * self.unit })
    }

    fn fill(&mut self, dst: u64, size: u64, value: i32) -> HipResult<()> {
        self.peer.call(&Memset { dst, value, size, stream: 0 })
    }

    fn bytes(&mut self, src: u64, size: u64) -> HipResult<Vec<u8>> {
        self.peer.d2h(src, size, 0)
    }

    fn free_bytes(&mut self) -> u64 {
        self.peer.call(&MemGetInfo {}).expect("free memory").free_bytes
    }
}

#[test]
fn a_session_without_the_feature_maps_nothing() {
    let worker = emulated(DEVICE_BYTES, |_| {});
    let (mut peer, accepted) = Peer::offering(worker.local_addr(), Features::NAMES);
    assert_eq!(accepted, Features::NAMES);
    let refused = Err(HipError::NOT_SUPPORTED);
    assert_eq!(peer.call(&MemGranularity { device: 0 }).map(drop), refused);
    assert_eq!(peer.call(&AddressReserve { size: 1 << 21, alignment: 0, wanted: 0 }).map(drop), refused);
    assert_eq!(peer.call(&AddressFree { device_ptr: 0, size: 0 }), refused);
    assert_eq!(peer.call(&PhysicalCreate { size: 1 << 21, device: 0, reserved: 0 }).map(drop), refused);
    assert_eq!(peer.call(&PhysicalRelease { physical: 1 }), refused);
    assert_eq!(peer.call(&PhysicalExport { physical: 1 }).map(drop), refused);
    assert_eq!(peer.call(&PhysicalImport { handle: [0; 64] }).map(drop), refused);
    assert_eq!(peer.call(&MemMap { device_ptr: 0, size: 1 << 21, physical: 1 }), refused);
    assert_eq!(peer.call(&MemSetAccess { device_ptr: 0, size: 1 << 21, device: 0, access: 3 }), refused);
    assert_eq!(peer.call(&MemUnmap { device_ptr: 0, size: 1 << 21 }), refused);
}

/// Every number of every request at its limits: refused or not, the worker lives, and what is refused changes nothing.
#[test]
fn numbers_at_their_limits_are_refused_or_right() {
    let worker = emulated(DEVICE_BYTES, |_| {});
    let mut it = Mapper::new(&worker);
    let unit = it.unit;
    let base = it.reserve(4);
    let physical = it.create(2).expect("memory");
    it.map(base, 2, physical).expect("a place");
    it.access(base, 2, READ_WRITE).expect("a mapping");
    it.fill(base, 2 * unit, 7).expect("accessible");
    let free_bytes = it.free_bytes();
    let numbers = [
        0,
        1,
        3,
        unit - 1,
        unit,
        unit + 1,
        4 * unit,
        1 << 31,
        1 << 43,
        1 << 44,
        1 << 63,
        u64::MAX - unit + 1,
        u64::MAX,
        base - unit,
        base,
        base + 1,
        base + unit,
        base + 2 * unit,
        base + 4 * unit,
        physical,
    ];
    let peer = &mut it.peer;
    for a in numbers {
        peer.call(&MemGranularity { device: (a as i32).max(1) }).expect_err("one device");
        for b in numbers {
            if let Ok(reply) = peer.call(&AddressReserve { size: a, alignment: b, wanted: base }) {
                let got = reply.device_ptr;
                assert!(a.is_multiple_of(unit) && got.is_multiple_of(b.max(1)), "{a:#x} {b:#x} {got:#x}");
                assert_eq!(peer.call(&AddressFree { device_ptr: got, size: a }), Ok(()));
            }
            peer.call(&AddressFree { device_ptr: a, size: b })
                .map(|()| panic!("{a:#x} {b:#x}"))
                .unwrap_or(());
            if let Ok(reply) = peer.call(&PhysicalCreate { size: a, device: b as i32, reserved: 0 }) {
                assert!(b as i32 == 0 && a.is_multiple_of(unit) && a <= DEVICE_BYTES, "{a:#x} {b:#x}");
                assert_eq!(peer.call(&PhysicalRelease { physical: reply.physical }), Ok(()));
            }
            for c in [0, physical, physical + 1, u64::MAX] {
                if peer.call(&MemMap { device_ptr: a, size: b, physical: c }).is_ok() {
                    assert_eq!((a, b, c), (base + 2 * unit, 2 * unit, physical));
                }
                let access = MemSetAccess { device_ptr: a, size: b, device: c as i32, access: 3 };
                if peer.call(&access).is_ok() {
                    assert_eq!((a, b, c as i32), (base, 2 * unit, 0));
                }
            }
            if (a, b) != (base, 2 * unit) {
                assert_eq!(peer.call(&MemUnmap { device_ptr: a, size: b }), Err(INVALID), "{a:#x} {b:#x}");
            }
        }
        if a != physical {
            assert_eq!(peer.call(&PhysicalRelease { physical: a }), Err(HipError::INVALID_HANDLE));
            assert_eq!(peer.call(&PhysicalExport { physical: a }).map(drop), Err(HipError::INVALID_HANDLE));
        }
    }
    for access in [4, 5, 1 << 31, u32::MAX] {
        assert_eq!(it.access(base, 2, access), Err(INVALID));
    }
    assert_eq!(it.peer.call(&PhysicalImport { handle: [7; 64] }).map(drop), Err(INVALID));
    assert_eq!(it.free_bytes(), free_bytes);
    assert_eq!(it.bytes(base, 2 * unit), Ok(vec![7; 2 * unit as usize]));
    for refused in [
        it.peer.call(&Free { device_ptr: base }),
        it.peer.call(&FreeAsync { device_ptr: base, stream: 0 }),
        it.peer.call(&IpcGetMemHandle { device_ptr: base }).map(drop),
        it.peer.call(&IpcCloseMemHandle { device_ptr: base }),
    ] {
        assert_eq!(refused, Err(INVALID), "it is no allocation");
    }
}

#[test]
fn what_is_unanswered_fails_where_the_next_reply_is() {
    let worker = emulated(DEVICE_BYTES, |_| {});
    let mut it = Mapper::new(&worker);
    let (base, unit) = (it.reserve(2), it.unit);
    let physical = it.create(1).expect("memory");
    it.peer.forget(&MemMap { device_ptr: base, size: unit, physical }, &[]);
    it.peer.forget(&MemSetAccess { device_ptr: base, size: unit, device: 0, access: READ_WRITE }, &[]);
    it.peer.forget(&Memset { dst: base, value: 5, size: unit, stream: 0 }, &[]);
    assert_eq!(it.bytes(base + unit - 3, 3), Ok(vec![5; 3]));
    for wrong in [
        MemMap { device_ptr: base, size: unit, physical },
        MemMap { device_ptr: base + unit, size: unit, physical: physical + 9 },
    ] {
        it.peer.forget(&wrong, &[]);
        assert!(it.peer.call(&GetLastError {}).is_err(), "{wrong:?}");
    }
    it.peer.forget(&MemUnmap { device_ptr: base, size: unit }, &[]);
    it.peer.forget(&PhysicalRelease { physical }, &[]);
    it.peer.forget(&AddressFree { device_ptr: base, size: 2 * unit }, &[]);
    assert_eq!(it.peer.call(&GetLastError {}), Ok(()));
    assert_eq!(it.free_bytes(), DEVICE_BYTES);
}

#[test]
fn limits_hold_for_physical_memory_and_for_mappings() {
    let worker = emulated(DEVICE_BYTES, |config| config.session.memory_max_bytes = 64 << 20);
    let mut it = Mapper::new(&worker);
    let most = (64 << 20) / it.unit - 2;
    let first = it.create(most).expect("within the limit");
    assert_eq!(it.create(8), Err(HipError::OUT_OF_MEMORY));
    let base = it.reserve(most);
    it.map(base, most, first).expect("a place");
    it.peer.call(&PhysicalRelease { physical: first }).expect("a handle");
    assert_eq!(it.create(8), Err(HipError::OUT_OF_MEMORY), "it is mapped");
    it.unmap(base, most).expect("a mapping");
    it.create(8).expect("it is given back");
    drop(it);
    let worker = emulated(DEVICE_BYTES, |config| config.session.handles_max = 20);
    let mut it = Mapper::new(&worker);
    let (base, physical) = (it.reserve(100), it.create(1).expect("memory"));
    let unit = it.unit;
    let mapped = (0..100).take_while(|index| it.map(base + index * unit, 1, physical).is_ok()).count();
    assert!((5..20).contains(&mapped), "{mapped}");
}

#[test]
fn sessions_share_physical_memory_by_its_name_only() {
    let worker = emulated(DEVICE_BYTES, |_| {});
    let (mut owner, mut other) = (Mapper::new(&worker), Mapper::new(&worker));
    let physical = owner.create(2).expect("memory");
    let base = owner.reserve(2);
    owner.map(base, 2, physical).expect("a place");
    owner.access(base, 2, READ_WRITE).expect("a mapping");
    owner.fill(base, 100, 9).expect("accessible");
    assert_eq!(other.bytes(base, 1).map(drop), Err(INVALID), "another's address");
    let there = other.reserve(2);
    assert_eq!(other.map(there, 2, physical), Err(HipError::INVALID_HANDLE), "another's handle");
    let handle = owner.peer.call(&PhysicalExport { physical }).expect("a name").handle;
    assert_eq!(owner.peer.call(&PhysicalExport { physical }).map(|reply| reply.handle), Ok(handle));
    let imported = other.peer.call(&PhysicalImport { handle }).expect("memory");
    assert_eq!(imported.size, 2 * other.unit);
    other.map(there, 2, imported.physical).expect("a place");
    other.access(there, 2, READ_WRITE).expect("a mapping");
    assert_eq!(other.bytes(there, 100), Ok(vec![9; 100]));
    other.fill(there + 50, 50, 3).expect("accessible");
    other.peer.call(&DeviceSynchronize {}).expect("a wait");
    assert_eq!(owner.bytes(base + 49, 2), Ok(vec![9, 3]));
    drop(owner);
    assert_eq!(other.bytes(there + 49, 2), Ok(vec![9, 3]), "the owner's end takes nothing");
    other.unmap(there, 2).expect("a mapping");
    other.peer.call(&PhysicalRelease { physical: imported.physical }).expect("a handle");
    assert_eq!(other.peer.call(&PhysicalImport { handle }).map(drop), Err(INVALID), "nobody has it");
    until("all memory is given back", || other.free_bytes() == DEVICE_BYTES);
}

#[test]
fn a_reset_and_an_end_give_everything_back() {
    let worker = emulated(DEVICE_BYTES, |_| {});
    let mut watcher = Mapper::new(&worker);
    let mut it = Mapper::new(&worker);
    for round in 0..2 {
        let (base, physical) = (it.reserve(4), it.create(3).expect("memory"));
        it.map(base, 3, physical).expect("a place");
        it.access(base, 3, READ_WRITE).expect("a mapping");
        it.fill(base, 10, 1).expect("accessible");
        assert_eq!(watcher.free_bytes(), DEVICE_BYTES - 3 * watcher.unit);
        if round == 0 {
            it.peer.call(&DeviceReset {}).expect("a reset");
            assert_eq!(it.bytes(base, 1).map(drop), Err(INVALID));
            assert_eq!(it.unmap(base, 3), Err(INVALID));
            assert_eq!(watcher.free_bytes(), DEVICE_BYTES);
        }
    }
    drop(it);
    until("the session's memory is given back", || watcher.free_bytes() == DEVICE_BYTES);
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// What is at a unit of the model's range.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Page {
    /// Number of the memory, and of the unit of it.
    memory: usize,
    unit: u64,
    /// The first unit of the mapping.
    start: u64,
    is_accessible: bool,
}

/// Calls at random on one range, against a model that knows a byte for each unit of memory: what is accessible reads as what was written
/// last, through whichever mapping, and every other access is refused.
#[test]
fn what_is_mapped_is_as_a_model_says() {
    const UNITS: u64 = 12;
    const STEPS: u32 = 250;
    let worker = emulated(DEVICE_BYTES, |_| {});
    for seed in 0..2 {
        let mut it = Mapper::new(&worker);
        let (base, unit) = (it.reserve(UNITS), it.unit);
        let mut rng = Rng(seed);
        let mut pages: Vec<Option<Page>> = vec![None; UNITS as usize];
        // For each piece of memory its handle, or none once it was released, and the byte of each of its units.
        let mut memories: Vec<(Option<u64>, Vec<u8>)> = Vec::new();
        for step in 0..STEPS {
            let at = rng.below(UNITS);
            let device_ptr = base + at * unit;
            let live: Vec<usize> = (0..memories.len()).filter(|&index| memories[index].0.is_some()).collect();
            let mapping = |pages: &[Option<Page>], at: u64| {
                let start = pages.get(at as usize).copied().flatten()?.start;
                let len = pages.iter().flatten().filter(|page| page.start == start).count() as u64;
                Some((start, len))
            };
            match rng.below(7) {
                0 if live.len() < 4 => {
                    let units = 1 + rng.below(3);
                    let handle = it.create(units).expect("memory");
                    memories.push((Some(handle), vec![0; units as usize]));
                }
                1 if !live.is_empty() => {
                    let memory = live[rng.below(live.len() as u64) as usize];
                    let physical = memories[memory].0.take().expect("a handle");
                    assert_eq!(it.peer.call(&PhysicalRelease { physical }), Ok(()));
                }
                2 | 3 if !live.is_empty() => {
                    let memory = live[rng.below(live.len() as u64) as usize];
                    let units = memories[memory].1.len() as u64;
                    let is_free = at + units <= UNITS
                        && pages[at as usize..(at + units) as usize].iter().all(Option::is_none);
                    let got = it.map(device_ptr, units, memories[memory].0.expect("a handle"));
                    assert_eq!(got.is_ok(), is_free, "seed {seed} step {step}");
                    for index in 0..if is_free { units } else { 0 } {
                        pages[(at + index) as usize] =
                            Some(Page { memory, unit: index, start: at, is_accessible: false });
                    }
                }
                4 => {
                    let units = 1 + rng.below(4);
                    let last = (at + units - 1).min(UNITS - 1);
                    let is_whole = at + units <= UNITS
                        && (at..=last).all(|index| pages[index as usize].is_some())
                        && mapping(&pages, at).is_some_and(|(start, _)| start == at)
                        && mapping(&pages, last).is_some_and(|(start, len)| start + len == at + units);
                    let access = if rng.below(4) == 0 { 0 } else { READ_WRITE };
                    assert_eq!(
                        it.access(device_ptr, units, access).is_ok(),
                        is_whole,
                        "seed {seed} step {step}"
                    );
                    for index in at..if is_whole { at + units } else { at } {
                        if let Some(page) = &mut pages[index as usize] {
                            page.is_accessible = access != 0;
                        }
                    }
                }
                5 => {
                    let is_one = mapping(&pages, at).filter(|(start, _)| *start == at);
                    let units = is_one.map_or(1, |(_, len)| len);
                    assert_eq!(
                        it.unmap(device_ptr, units).is_ok(),
                        is_one.is_some(),
                        "seed {seed} step {step}"
                    );
                    if is_one.is_some() {
                        pages
                            .iter_mut()
                            .filter(|page| page.is_some_and(|page| page.start == at))
                            .for_each(|page| *page = None);
                    }
                }
                _ => {
                    let units = 1 + rng.below(5);
                    let value = rng.below(256) as u8;
                    let is_accessible = at + units <= UNITS
                        && pages[at as usize..(at + units) as usize]
                            .iter()
                            .all(|page| page.is_some_and(|page| page.is_accessible));
                    let filled = it.fill(device_ptr, units * unit, value.into());
                    assert_eq!(filled.is_ok(), is_accessible, "seed {seed} step {step}");
                    if is_accessible {
                        for page in pages[at as usize..(at + units) as usize].iter().flatten() {
                            memories[page.memory].1[page.unit as usize] = value;
                        }
                    }
                }
            }
            // The first and the last byte of each unit.
            for (index, page) in pages.iter().enumerate() {
                let first = base + index as u64 * unit;
                for at in [first, first + unit - 1] {
                    let expected = match page {
                        Some(page) if page.is_accessible => {
                            Ok(vec![memories[page.memory].1[page.unit as usize]])
                        }
                        _ => Err(INVALID),
                    };
                    assert_eq!(it.bytes(at, 1), expected, "seed {seed} step {step} unit {index}");
                }
            }
        }
        let used: BTreeMap<usize, u64> = pages
            .iter()
            .flatten()
            .map(|page| page.memory)
            .chain((0..memories.len()).filter(|&index| memories[index].0.is_some()))
            .map(|memory| (memory, memories[memory].1.len() as u64 * unit))
            .collect();
        assert_eq!(it.free_bytes(), DEVICE_BYTES - used.values().sum::<u64>(), "seed {seed}");
        it.peer.call(&DeviceReset {}).expect("a reset");
    }
}
