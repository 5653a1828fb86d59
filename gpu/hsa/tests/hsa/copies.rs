//! Copies: between every two kinds of memory, after signals, in rows, with their times, and what is wrong with them.

use std::ffi::c_void;
use std::sync::LazyLock;
use std::thread;

use crate::library::{
    INVALID_AGENT, INVALID_ARGUMENT, INVALID_SIGNAL, Memory, SUCCESS, Signal, agents, answer, gpu, hsa, pools,
};
use crate::memory::Pages;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Memory of some kind.
enum Place {
    Pool(Memory),
    /// The program's own.
    Own(Pages),
    /// The program's own, locked.
    Locked(Pages),
}

impl Place {
    fn addr(&self) -> u64 {
        match self {
            Self::Pool(memory) => memory.addr,
            Self::Own(pages) | Self::Locked(pages) => pages.addr,
        }
    }

    #[allow(clippy::mut_from_ref, reason = "copies write it, too")]
    fn bytes(&self) -> &mut [u8] {
        match self {
            Self::Pool(memory) => memory.bytes(),
            Self::Own(pages) | Self::Locked(pages) => pages.bytes(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Self::Locked(pages) = self {
            assert_eq!(hsa!(hsa_amd_memory_unlock(pages.addr => u64) -> u32), SUCCESS);
        }
    }
}

/// Returns memory of every kind, with a name and its agent.
fn places(len_bytes: usize) -> Vec<(&'static str, u64, Place)> {
    let agents = agents();
    let locked = Pages::new(len_bytes);
    let mut addr = 0u64;
    let status = hsa!(hsa_amd_memory_lock(
        locked.addr => u64, len_bytes => usize, std::ptr::null() => *const u64, 0 => i32, &raw mut addr => *mut u64) -> u32);
    assert_eq!(status, SUCCESS);
    let of = |agent: usize, pool: usize| Place::Pool(Memory::of(pools(agents[agent])[pool], len_bytes));
    vec![
        ("the program's", agents[0], Place::Own(Pages::new(len_bytes))),
        ("locked", agents[0], Place::Locked(locked)),
        ("the host's pool", agents[0], of(0, 0)),
        ("the first GPU's", agents[1], of(1, 0)),
        ("the second GPU's", agents[2], of(2, 2)),
        ("the third GPU's", agents[3], of(3, 1)),
    ]
}

/// Returns bytes that differ from their neighbours, and from those of another salt.
fn pattern(len_bytes: usize, salt: u8) -> Vec<u8> {
    static BYTES: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..3 * MIB).map(|at| (at * 7 + at / 251) as u8).collect());
    BYTES[usize::from(salt)..][..len_bytes].to_vec()
}

struct Copy<'a> {
    to: u64,
    to_agent: u64,
    from: u64,
    from_agent: u64,
    len_bytes: usize,
    after: &'a [&'a Signal],
    done: u64,
}

impl Copy<'_> {
    fn begin(&self) -> u32 {
        let list: Vec<u64> = self.after.iter().map(|signal| signal.0).collect();
        let list_at = if list.is_empty() { std::ptr::null() } else { list.as_ptr() };
        hsa!(hsa_amd_memory_async_copy(
            self.to => u64, self.to_agent => u64, self.from => u64, self.from_agent => u64, self.len_bytes => usize,
            list.len() as u32 => u32, list_at => *const u64, self.done => u64) -> u32)
    }

    fn begin_on(&self, engine: u32) -> u32 {
        hsa!(hsa_amd_memory_async_copy_on_engine(
            self.to => u64, self.to_agent => u64, self.from => u64, self.from_agent => u64, self.len_bytes => usize,
            0 => u32, std::ptr::null() => *const u64, self.done => u64, engine => u32, 0 => u8) -> u32)
    }
}

fn copy_now(to: u64, from: u64, len_bytes: usize) -> u32 {
    hsa!(hsa_memory_copy(to => u64, from => u64, len_bytes => usize) -> u32)
}

#[test]
fn every_kind_of_memory_is_copied_to_every_other() {
    const ROOM: usize = 2 * MIB;
    let (sources, targets) = (places(ROOM), places(ROOM));
    let mut salt = 0u8;
    for (from_name, from_agent, from) in &sources {
        for (to_name, to_agent, to) in &targets {
            for (offset, to_offset, len_bytes) in [
                (0, 0, 1),
                (1, 2, 3),
                (0, 0, 4 * KIB),
                (5, 4095, 4 * KIB + 1),
                (64, 3, MIB + 5),
                (0, 0, ROOM),
            ] {
                for way in ["by the host", "with a signal", "by an engine"] {
                    salt = salt.wrapping_add(1);
                    let bytes = pattern(len_bytes, salt);
                    from.bytes()[offset..offset + len_bytes].copy_from_slice(&bytes);
                    let rest = to.bytes();
                    rest[..to_offset].fill(0xee);
                    rest[to_offset + len_bytes..].iter_mut().take(64).for_each(|byte| *byte = 0xee);
                    let (to_addr, from_addr) = (to.addr() + to_offset as u64, from.addr() + offset as u64);
                    let done = Signal::new(1);
                    let copy = Copy {
                        to: to_addr,
                        to_agent: *to_agent,
                        from: from_addr,
                        from_agent: *from_agent,
                        len_bytes,
                        after: &[],
                        done: done.0,
                    };
                    let status = match way {
                        "by the host" => copy_now(to_addr, from_addr, len_bytes),
                        "with a signal" => copy.begin(),
                        _ => copy.begin_on(1),
                    };
                    assert_eq!(status, SUCCESS, "{len_bytes} bytes from {from_name} to {to_name} {way}");
                    if way != "by the host" {
                        assert_eq!(done.wait_lt(1), 0);
                    }
                    let found = to.bytes();
                    assert!(
                        found[to_offset..to_offset + len_bytes] == bytes,
                        "{len_bytes} bytes from {from_name} to {to_name} {way}"
                    );
                    let around =
                        found[..to_offset].iter().chain(found[to_offset + len_bytes..].iter().take(64));
                    assert!(
                        around.copied().all(|byte| byte == 0xee),
                        "bytes beside those from {from_name} to {to_name}"
                    );
                }
            }
        }
    }
}

#[test]
fn overlapping_ranges_are_copied_as_if_read_first() {
    const ROOM: usize = 700 * KIB;
    for (name, agent, place) in places(ROOM) {
        for len_bytes in [2, 100, 4 * KIB, 300 * KIB + 1] {
            for distance in [1, 2, 63, 4 * KIB, 256 * KIB] {
                for (to, from) in [(0, distance), (distance, 0)] {
                    let bytes = pattern(ROOM, 3);
                    let mut expected = bytes.clone();
                    expected.copy_within(from..from + len_bytes, to);
                    place.bytes().copy_from_slice(&bytes);
                    let at = |offset: usize| place.addr() + offset as u64;
                    assert_eq!(copy_now(at(to), at(from), len_bytes), SUCCESS);
                    assert!(place.bytes() == expected, "{name}: {len_bytes} bytes by {distance}");
                    place.bytes().copy_from_slice(&bytes);
                    let done = Signal::new(1);
                    let copy = Copy {
                        to: at(to),
                        to_agent: agent,
                        from: at(from),
                        from_agent: agent,
                        len_bytes,
                        after: &[],
                        done: done.0,
                    };
                    assert_eq!(copy.begin(), SUCCESS);
                    done.wait_lt(1);
                    assert!(
                        place.bytes() == expected,
                        "{name}: {len_bytes} bytes by {distance}, with a signal"
                    );
                }
            }
        }
    }
}

#[test]
fn a_copy_begins_when_all_its_signals_are_zero() {
    let (to, from) = (Memory::new(64), Memory::new(64));
    let agent = gpu();
    for count in 0..=9 {
        let signals: Vec<_> = (0..count).map(|index| Signal::new(1 + index)).collect();
        let after: Vec<&Signal> = signals.iter().collect();
        from.words().fill(count as u32 + 1);
        to.words().fill(0);
        // The completion signal is counted down by one, whatever it was.
        let done = Signal::new(10);
        let copy = Copy {
            to: to.addr,
            to_agent: agent,
            from: from.addr,
            from_agent: agent,
            len_bytes: 64,
            after: &after,
            done: done.0,
        };
        assert_eq!(copy.begin(), SUCCESS);
        for (index, signal) in signals.iter().enumerate() {
            assert_eq!((done.load(), to.words()[0]), (10, 0), "signal {index} of {count} is open");
            signal.store(0);
        }
        assert_eq!(done.wait_lt(10), 9);
        assert!(to.words().iter().all(|&word| word == count as u32 + 1));
    }
}

#[test]
fn copies_wait_for_each_other_in_a_chain() {
    const STEPS: usize = 50;
    let memory: Vec<_> = (0..=STEPS).map(|_| Memory::new(256)).collect();
    let signals: Vec<_> = (0..=STEPS).map(|_| Signal::new(1)).collect();
    let agent = gpu();
    memory[0].words().fill(0xabcd);
    // The last one first: each waits for the one before it.
    for step in (1..=STEPS).rev() {
        let copy = Copy {
            to: memory[step].addr,
            to_agent: agent,
            from: memory[step - 1].addr,
            from_agent: agent,
            len_bytes: 256,
            after: &[&signals[step - 1]],
            done: signals[step].0,
        };
        assert_eq!(copy.begin(), SUCCESS);
    }
    assert_eq!(signals[STEPS].load(), 1);
    signals[0].store(0);
    signals[STEPS].wait_lt(1);
    assert!(memory.iter().all(|memory| memory.words().iter().all(|&word| word == 0xabcd)));
}

#[test]
fn copies_of_nothing_do_nothing() {
    let (to, from) = (Memory::new(64), Memory::new(64));
    let agent = gpu();
    let done = Signal::new(1);
    assert_eq!(copy_now(to.addr, from.addr, 0), SUCCESS);
    let copy = Copy {
        to: to.addr,
        to_agent: agent,
        from: from.addr,
        from_agent: agent,
        len_bytes: 0,
        after: &[],
        done: done.0,
    };
    assert_eq!([copy.begin(), copy.begin_on(1)], [SUCCESS; 2]);
    assert_eq!(done.load(), 1, "as AMD's, the signal stays as it is");
}

#[test]
fn wrong_copies_are_refused() {
    let (to, from, done) = (Memory::new(64), Memory::new(64), Signal::new(1));
    let agent = gpu();
    let with = |change: &dyn Fn(&mut Copy<'_>)| {
        let mut copy = Copy {
            to: to.addr,
            to_agent: agent,
            from: from.addr,
            from_agent: agent,
            len_bytes: 64,
            after: &[],
            done: done.0,
        };
        change(&mut copy);
        [copy.begin(), copy.begin_on(2)]
    };
    assert_eq!(with(&|copy| copy.to = 0), [INVALID_ARGUMENT; 2]);
    assert_eq!(with(&|copy| copy.from = 0), [INVALID_ARGUMENT; 2]);
    assert_eq!(with(&|copy| copy.done = 0), [INVALID_ARGUMENT; 2]);
    assert_eq!(with(&|copy| copy.done = 64), [INVALID_SIGNAL; 2]);
    assert_eq!(with(&|copy| copy.done = u64::MAX), [INVALID_SIGNAL; 2]);
    assert_eq!(with(&|copy| copy.to_agent = 99), [INVALID_AGENT; 2]);
    assert_eq!(with(&|copy| copy.from_agent = 99), [INVALID_AGENT; 2]);
    assert_eq!(
        with(&|copy| copy.len_bytes = usize::MAX),
        [INVALID_ARGUMENT; 2],
        "addresses that wrap around"
    );
    assert_eq!(
        with(&|copy| copy.len_bytes = 1 << 30),
        [INVALID_ARGUMENT; 2],
        "more than the allocations have"
    );
    assert_eq!(done.load(), 1, "none was begun");
    for engine in [0, 3, 4, 1 << 31, u32::MAX] {
        let copy = Copy {
            to: to.addr,
            to_agent: agent,
            from: from.addr,
            from_agent: agent,
            len_bytes: 64,
            after: &[],
            done: done.0,
        };
        assert_eq!(copy.begin_on(engine), INVALID_ARGUMENT, "engine {engine:#x}");
    }
    let raw = |count: u32, list: *const u64| {
        hsa!(hsa_amd_memory_async_copy(
            to.addr => u64, agent => u64, from.addr => u64, agent => u64, 64 => usize, count => u32, list => *const u64, done.0 => u64) -> u32)
    };
    assert_eq!(raw(1, std::ptr::null()), INVALID_ARGUMENT, "signals without a list");
    assert_eq!(raw(1, [64u64].as_ptr()), INVALID_SIGNAL, "a signal that never was");
    for (to, from, len_bytes) in
        [(0, from.addr, 1), (to.addr, 0, 1), (to.addr, from.addr, 1 << 30), (to.addr, from.addr, usize::MAX)]
    {
        assert_eq!(copy_now(to, from, len_bytes), INVALID_ARGUMENT);
    }
}

#[test]
fn memory_that_is_not_there_ends_a_copy_and_nothing_else() {
    let memory = Memory::new(64 * KIB);
    let own = Pages::new(64 * KIB);
    let hole = std::ptr::with_exposed_provenance_mut::<c_void>(own.addr as usize + 32 * KIB);
    // SAFETY: memory of this test; nothing is unmapped that somebody else could be given.
    assert_eq!(unsafe { libc::mprotect(hole, 4 * KIB, libc::PROT_NONE) }, 0);
    let agent = gpu();
    for (to, from) in [(memory.addr, own.addr), (own.addr, memory.addr)] {
        assert_eq!(copy_now(to, from, 64 * KIB), INVALID_ARGUMENT);
        let done = Signal::new(1);
        let copy = Copy {
            to,
            to_agent: agent,
            from,
            from_agent: agent,
            len_bytes: 64 * KIB,
            after: &[],
            done: done.0,
        };
        assert_eq!(copy.begin(), SUCCESS);
        assert!(done.wait_lt(0) < 0, "a negative value says that it has failed");
    }
    assert_eq!(copy_now(memory.addr, own.addr, 32 * KIB), SUCCESS, "what is there is copied");
}

#[test]
fn copies_have_times() {
    #[derive(Clone, Copy, Debug, Default)]
    #[repr(C)]
    struct Times {
        start: u64,
        end: u64,
    }
    let clock = || {
        let mut now = 0u64;
        assert_eq!(hsa!(hsa_system_get_info(2 => u32, (&raw mut now).cast() => *mut c_void) -> u32), SUCCESS);
        now
    };
    let (to, from) = (Memory::new(MIB), Memory::new(MIB));
    let agent = gpu();
    let of = |signal: u64| {
        let mut times = Times::default();
        let status =
            hsa!(hsa_amd_profiling_get_async_copy_time(signal => u64, &raw mut times => *mut Times) -> u32);
        answer(status, times)
    };
    assert_eq!(hsa!(hsa_amd_profiling_async_copy_enable(1 => u8) -> u32), SUCCESS);
    let mut last_end = 0;
    let done = Signal::new(1);
    for _ in 0..5 {
        done.store(1);
        let before = clock();
        let copy = Copy {
            to: to.addr,
            to_agent: agent,
            from: from.addr,
            from_agent: agent,
            len_bytes: MIB,
            after: &[],
            done: done.0,
        };
        assert_eq!(copy.begin(), SUCCESS);
        done.wait_lt(1);
        let times = of(done.0).expect("a signal");
        assert!(
            before <= times.start && times.start < times.end && times.end <= clock(),
            "{before}, {times:?}"
        );
        assert!(times.start >= last_end, "one after the other");
        last_end = times.end;
    }
    assert_eq!(of(0).map(drop), Err(INVALID_SIGNAL));
    assert_eq!(of(64).map(drop), Err(INVALID_SIGNAL));
    let nowhere =
        hsa!(hsa_amd_profiling_get_async_copy_time(done.0 => u64, std::ptr::null_mut() => *mut Times) -> u32);
    assert_eq!(nowhere, INVALID_ARGUMENT);
    let mut tick = 0u64;
    assert_eq!(
        hsa!(hsa_amd_profiling_convert_tick_to_system_domain(agent => u64, last_end => u64, &raw mut tick => *mut u64) -> u32),
        SUCCESS
    );
    assert_eq!(tick, last_end);
    assert_eq!(
        hsa!(hsa_amd_profiling_convert_tick_to_system_domain(99 => u64, 1 => u64, &raw mut tick => *mut u64) -> u32),
        INVALID_AGENT
    );
    assert_eq!(
        hsa!(hsa_amd_profiling_convert_tick_to_system_domain(agent => u64, 1 => u64, std::ptr::null_mut() => *mut u64) -> u32),
        INVALID_ARGUMENT
    );
    assert_eq!(hsa!(hsa_amd_profiling_async_copy_enable(0 => u8) -> u32), SUCCESS);
}

/// `hsa_pitched_ptr_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Pitched {
    base: u64,
    pitch: usize,
    slice: usize,
}

type Dim3 = [u32; 3];

/// A copy of rows.
#[derive(Clone, Copy, Debug)]
struct Rect {
    to: Pitched,
    to_offset: Dim3,
    from: Pitched,
    from_offset: Dim3,
    range: Dim3,
    agent: u64,
    direction: u32,
    done: u64,
}

impl Rect {
    fn begin(&self) -> u32 {
        hsa!(hsa_amd_memory_async_copy_rect(
            &raw const self.to => *const Pitched, &raw const self.to_offset => *const Dim3, &raw const self.from => *const Pitched,
            &raw const self.from_offset => *const Dim3, &raw const self.range => *const Dim3, self.agent => u64, self.direction => u32,
            0 => u32, std::ptr::null() => *const u64, self.done => u64) -> u32)
    }
}

#[test]
fn rows_are_copied_with_any_pitch_and_offset() {
    const ROOM: usize = 64 * KIB;
    let agents = agents();
    for (from_name, _, from) in places(ROOM) {
        for (to_name, _, to) in places(ROOM) {
            for (range, pitches, slices, to_offset, from_offset) in [
                ([1, 1, 1], [4, 4], [4, 4], [0, 0, 0], [0, 0, 0]),
                ([16, 4, 1], [16, 16], [64, 64], [0, 0, 0], [0, 0, 0]),
                ([100, 7, 3], [128, 256], [1024, 2048], [0, 0, 0], [0, 0, 0]),
                ([5, 6, 7], [64, 32], [512, 256], [3, 1, 2], [9, 2, 1]),
                ([256, 60, 1], [512, 256], [0, 0], [0, 2, 0], [0, 1, 0]),
                // Slices that are no multiples of pitches, and rows that lie closer than they are long.
                ([4, 3, 3], [8, 12], [100, 36], [1, 0, 1], [0, 1, 0]),
            ] {
                let (bytes, mut expected) = (pattern(ROOM, 1), vec![0xee; ROOM]);
                from.bytes().copy_from_slice(&bytes);
                to.bytes().fill(0xee);
                for (z, y) in (0..range[2]).flat_map(|z| (0..range[1]).map(move |y| (z as usize, y as usize)))
                {
                    let at = |offset: Dim3, side: usize| {
                        let [x0, y0, z0] = offset.map(|part| part as usize);
                        x0 + (y0 + y) * pitches[side] + (z0 + z) * slices[side]
                    };
                    let (into, out_of, len) = (at(to_offset, 0), at(from_offset, 1), range[0] as usize);
                    expected[into..into + len].copy_from_slice(&bytes[out_of..out_of + len]);
                }
                let done = Signal::new(1);
                let rect = Rect {
                    to: Pitched { base: to.addr(), pitch: pitches[0], slice: slices[0] },
                    to_offset,
                    from: Pitched { base: from.addr(), pitch: pitches[1], slice: slices[1] },
                    from_offset,
                    range,
                    agent: agents[1],
                    direction: 3,
                    done: done.0,
                };
                assert_eq!(rect.begin(), SUCCESS, "{rect:?}");
                done.wait_lt(1);
                assert!(to.bytes() == expected, "{range:?} from {from_name} to {to_name}");
            }
        }
    }
}

#[test]
fn wrong_rows_are_refused() {
    let (to, from, done) = (Memory::new(4 * KIB), Memory::new(4 * KIB), Signal::new(1));
    let place = |base| Pitched { base, pitch: 64, slice: 1024 };
    let good = Rect {
        to: place(to.addr),
        to_offset: [0; 3],
        from: place(from.addr),
        from_offset: [0; 3],
        range: [4, 4, 4],
        agent: gpu(),
        direction: 3,
        done: done.0,
    };
    let with = |change: &dyn Fn(&mut Rect)| {
        let mut rect = good;
        change(&mut rect);
        rect.begin()
    };
    assert_eq!(with(&|rect| rect.to.base = 0), INVALID_ARGUMENT);
    assert_eq!(with(&|rect| rect.from.base = 0), INVALID_ARGUMENT);
    for misaligned in 1..4 {
        assert_eq!(with(&|rect| rect.to.base += misaligned), INVALID_ARGUMENT);
        assert_eq!(with(&|rect| rect.from.base += misaligned), INVALID_ARGUMENT);
        assert_eq!(with(&|rect| rect.to.pitch += misaligned as usize), INVALID_ARGUMENT);
        assert_eq!(with(&|rect| rect.from.slice += misaligned as usize), INVALID_ARGUMENT);
    }
    assert_eq!(with(&|rect| rect.direction = 4), INVALID_ARGUMENT);
    assert_eq!(with(&|rect| rect.agent = 99), INVALID_AGENT);
    assert_eq!(with(&|rect| rect.agent = agents()[0]), INVALID_AGENT, "the host has no engines");
    assert_eq!(with(&|rect| rect.done = 0), INVALID_ARGUMENT);
    assert_eq!(with(&|rect| rect.done = 64), INVALID_SIGNAL);
    for part in 0..3 {
        assert_eq!(with(&|rect| rect.to_offset[part] = u32::MAX), INVALID_ARGUMENT, "beyond the allocation");
        assert_eq!(with(&|rect| rect.range[part] = u32::MAX), INVALID_ARGUMENT);
        assert_eq!(with(&|rect| rect.range[part] = 0), SUCCESS, "nothing is copied");
    }
    assert_eq!(with(&|rect| rect.to.pitch = usize::MAX - 3), INVALID_ARGUMENT);
    assert_eq!(with(&|rect| rect.from.slice = 1 << 62), INVALID_ARGUMENT);
    assert_eq!(done.load(), 1, "none was begun");
    for direction in 0..=3 {
        assert_eq!(with(&|rect| rect.direction = direction), SUCCESS);
        done.wait_lt(1);
        done.store(1);
    }
}

#[test]
fn engines_are_between_two_agents() {
    let agents = agents();
    for name in ["hsa_amd_memory_copy_engine_status", "hsa_amd_memory_get_preferred_copy_engine"] {
        let function: unsafe extern "C" fn(u64, u64, *mut u32) -> u32 = crate::library::symbol(name);
        for (&to, &from) in agents.iter().flat_map(|to| agents.iter().map(move |from| (to, from))) {
            let mut mask = 0u32;
            // SAFETY: the C prototype.
            let status = unsafe { function(to, from, &raw mut mask) };
            let expected = if to == from { Err(INVALID_AGENT) } else { Ok(true) };
            assert_eq!(answer(status, mask != 0), expected, "{name} of {to} and {from}");
        }
        let mut mask = 0u32;
        // SAFETY: as above.
        unsafe {
            assert_eq!(function(99, agents[0], &raw mut mask), INVALID_AGENT);
            assert_eq!(function(agents[1], agents[0], std::ptr::null_mut()), INVALID_ARGUMENT);
        }
    }
}

#[test]
fn sixteen_threads_copy_at_once() {
    const LEN: usize = 300 * KIB;
    thread::scope(|scope| {
        for salt in 0..16u8 {
            scope.spawn(move || {
                let (one, other) = (Memory::new(LEN), Memory::of(pools(gpu())[0], LEN));
                let bytes = pattern(LEN, salt);
                one.bytes().copy_from_slice(&bytes);
                for (to, from) in [(&other, &one), (&one, &other)].repeat(5) {
                    to.bytes().fill(0);
                    let done = Signal::new(1);
                    let agent = gpu();
                    let copy = Copy {
                        to: to.addr,
                        to_agent: agent,
                        from: from.addr,
                        from_agent: agent,
                        len_bytes: LEN,
                        after: &[],
                        done: done.0,
                    };
                    assert_eq!(copy.begin(), SUCCESS);
                    done.wait_lt(1);
                    assert!(to.bytes() == bytes);
                }
            });
        }
    });
}
