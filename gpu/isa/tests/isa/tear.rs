//! Tests with two threads on one memory: aligned accesses of up to 16 bytes are never torn, those of the host of up to 8.
//!
//! One thread stores values whose bytes are all the same, another one loads them: what has two kinds of bytes is a half of one
//! store and a half of another one. All loads, stores and exchanges of the tables take part, and the host's copies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::bench::{CODE, MEMORY, Random, SOME, is_on};
use hipr_isa::Arch;
use hipr_isa::isa::{assemble, implemented};
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Machine, Program, Stop, run};
use hipr_isa::wave::{LANES, Wave};

/// Number of slots in memory, of which each takes one access.
const SLOTS: usize = 128;
/// Number of tries of each load.
const ROUNDS: usize = 1000;
const S_ENDPGM: u32 = 0xbf81_0000;
/// First register that holds data, vector or scalar.
const DATA: usize = 16;

/// Distributions of the lanes over the slots: all in a row, eight in a row, backwards, scattered.
const SPREADS: [fn(usize) -> usize; 5] = [
    |lane| lane,
    |lane| lane + 32,
    |lane| lane / 8 * 16 + lane % 8,
    |lane| 100 - lane,
    |lane| lane * 37 % 101,
];

/// An instruction that loads, stores or exchanges.
#[derive(Clone, Debug)]
struct Access {
    name: &'static str,
    words: [u32; 2],
    /// Size of a lane's access in bytes, or of the wave's.
    len_bytes: usize,
    stores: bool,
    loads: bool,
    scalar: bool,
}

impl Access {
    /// Returns the access of a row of a table, or `None` if the row is no such access.
    fn of(arch: Arch, encoding: &str, op: u32, name: &'static str) -> Option<Self> {
        const NO_SADDR: u64 = 127 << 48;
        let data = DATA as u64;
        let (operands, returns) = match encoding {
            // v[0:1]
            "FLAT" | "GLOBAL" => (data << 40 | data << 56 | NO_SADDR, 1 << 16),
            // v2 as an offset, s[8:11]
            "MUBUF" => (1 << 12 | 2 << 32 | data << 40 | 2 << 48 | 128 << 56, 1 << 14),
            // s[4:5] or s[8:11], and the constant 0 as offset
            "SMEM" if name.starts_with("s_buffer") => (4 | data << 6 | 1 << 17, 0),
            "SMEM" => (2 | data << 6 | 1 << 17, 0),
            _ => return None,
        };
        let (_, what) = name.split_once("buffer_").or(name.split_once('_'))?;
        let (loads, stores, what) = if let Some(what) = what.strip_prefix("load_") {
            (true, false, what)
        } else if let Some(what) = what.strip_prefix("store_") {
            (false, true, what)
        } else {
            let what = what.strip_prefix("atomic_").filter(|_| encoding != "SMEM")?;
            match what {
                "swap" => (true, true, "dword"),
                "swap_x2" => (true, true, "dwordx2"),
                _ => return None,
            }
        };
        let len_bytes = match what {
            "ushort" | "short" => 2,
            "dword" => 4,
            "dwordx2" => 8,
            "dwordx3" => 12,
            "dwordx4" => 16,
            "dwordx8" => 32,
            "dwordx16" => 64,
            _ => return None,
        };
        let operands = if loads && stores { operands | returns } else { operands };
        let words = assemble(arch, encoding, op, operands)?;
        Some(Self { name, words, len_bytes, stores, loads, scalar: encoding == "SMEM" })
    }

    fn registers(&self) -> usize {
        self.len_bytes.div_ceil(4)
    }
}

/// A thread's wave with one access as its program.
struct Runner<'a> {
    access: &'a Access,
    wave: Wave,
    program: Program,
    lds: Lds,
    scratch: Scratch,
}

impl<'a> Runner<'a> {
    fn new(access: &'a Access, arch: Arch, level: Level) -> Self {
        let code: Vec<u8> =
            access.words.iter().chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
        let mut wave = Wave::new(64, 32);
        wave.set_pair(4, MEMORY);
        wave.sgpr[8..12].copy_from_slice(&[MEMORY as u32, (MEMORY >> 32) as u32, 1 << 16, 0x27000]);
        Self {
            access,
            wave,
            program: Program::new(&code, CODE, arch, level),
            lds: Lds::new(0),
            scratch: Scratch::new(0),
        }
    }

    /// Runs the access with lane `n` at slot `spread(n)`; slots are `step` bytes apart.
    fn run(&mut self, space: &Space, spread: fn(usize) -> usize, step: usize, exec: u64) {
        for lane in 0..LANES {
            let offset = (spread(lane) * step) as u64;
            self.wave.row_mut(0)[lane] = (MEMORY + offset) as u32;
            self.wave.row_mut(1)[lane] = ((MEMORY + offset) >> 32) as u32;
            self.wave.row_mut(2)[lane] = offset as u32;
        }
        self.wave.set_exec(exec);
        self.wave.pc = CODE;
        let mut machine = Machine {
            space,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            program: &self.program,
            wave_sync: None,
            clock_start: Instant::now(),
            interrupts: None,
            watch: None,
        };
        assert_eq!(run(&mut self.wave, &mut machine, &mut 4), Ok(Stop::End), "{}", self.access.name);
    }

    fn fill(&mut self, value: u32) {
        for register in DATA..DATA + self.access.registers() {
            if self.access.scalar {
                self.wave.sgpr[register] = value;
            } else {
                self.wave.row_mut(register).fill(value);
            }
        }
    }

    /// Returns the bytes that a lane has loaded.
    fn loaded(&self, lane: usize) -> Vec<u8> {
        let register = |number: usize| match self.access.scalar {
            true => self.wave.sgpr[number],
            false => self.wave.row(number)[lane],
        };
        let registers = DATA..DATA + self.access.registers();
        let bytes = registers.flat_map(|number| register(number).to_le_bytes());
        bytes.take(self.access.len_bytes).collect()
    }
}

/// Panics if bytes of the same access, from `offset` on, differ.
fn check(bytes: &[u8], offset: usize, one: usize, what: &dyn std::fmt::Debug) {
    let first = offset.next_multiple_of(one) - offset;
    for granule in bytes.get(first..).unwrap_or_default().chunks_exact(one) {
        assert!(granule.iter().all(|byte| *byte == granule[0]), "{granule:x?} of {what:?}");
    }
}

/// Lets two threads store to and load from slots of `step` bytes.
fn hammer(arch: Arch, level: Level, step: usize) {
    let all: Vec<Access> =
        implemented(arch).filter_map(|(encoding, op, name)| Access::of(arch, encoding, op, name)).collect();
    // Wider scalar accesses are to several slots.
    let fits = |access: &&Access| {
        access.len_bytes == step || access.scalar && step == 8 && access.len_bytes.is_multiple_of(8)
    };
    let stores: Vec<_> = all.iter().filter(fits).filter(|access| access.stores).collect();
    let loads: Vec<_> = all.iter().filter(fits).filter(|access| access.loads).collect();
    assert!(stores.len() >= 3 && loads.len() >= 3, "{step}: {stores:?} {loads:?}");
    // What of a slot is one access.
    let one = match step {
        12 => 8,
        _ if cfg!(target_arch = "x86_64") => step,
        _ => step.min(8),
    };
    let space = Space::of_block(Block::new(MEMORY, 1 << 16).expect("64 KiB of host memory"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(step as u64);
            let mut runners: Vec<_> = stores.iter().map(|access| Runner::new(access, arch, level)).collect();
            while !done.load(Ordering::Relaxed) {
                let choice = random.u32();
                let byte = (choice >> 24) as u8;
                let which = choice as usize % (runners.len() + 1);
                let Some(runner) = runners.get_mut(which) else {
                    space.write(MEMORY, &[byte; SLOTS * 16]).unwrap();
                    continue;
                };
                let spread = SPREADS[(choice >> 8) as usize % SPREADS.len()];
                for repeated in 0..16 {
                    runner.fill(u32::from_ne_bytes([byte ^ repeated; 4]));
                    runner.run(&space, spread, step, if choice & 1 << 23 == 0 { u64::MAX } else { SOME });
                }
            }
        });
        let _done = Done(&done);
        for access in &loads {
            let mut runner = Runner::new(access, arch, level);
            for (spread, exec) in SPREADS.into_iter().flat_map(|spread| [(spread, u64::MAX), (spread, SOME)])
            {
                for _ in 0..ROUNDS / SPREADS.len() {
                    runner.fill(0);
                    runner.run(&space, spread, step, exec);
                    let lanes = if access.scalar { 0..1 } else { 0..LANES };
                    for lane in lanes.filter(|&lane| access.scalar || is_on(exec, lane)) {
                        let offset = if access.scalar { 0 } else { spread(lane) * step };
                        check(&runner.loaded(lane), offset, one, &(arch, level, access.name));
                    }
                }
            }
        }
        let mut bytes = [0; SLOTS * 8];
        for _ in 0..if step == 12 { 0 } else { ROUNDS } {
            space.read(MEMORY, &mut bytes).unwrap();
            check(&bytes, 0, one.min(8), &(arch, level, "the host's copy"));
        }
    });
}

/// A guard that stops the storing thread, even if a check fails.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn hammer_all(arch: Arch) {
    for level in Level::available() {
        [2, 4, 8, 12, 16].into_iter().for_each(|step| hammer(arch, level, step));
    }
}

#[test]
fn aligned_accesses_do_not_tear_on_gfx90a() {
    hammer_all(Arch::Gfx90a);
}

#[test]
fn aligned_accesses_do_not_tear_on_gfx942() {
    hammer_all(Arch::Gfx942);
}
