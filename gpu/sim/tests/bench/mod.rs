//! Runs literal instruction words on one wave.
#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Instant;

use hipr_sim::fault::Fault;
use hipr_sim::lds::{Lds, Scratch};
use hipr_sim::mem::{Block, Space};
use hipr_sim::step::{Machine, Program, Stop, run};
use hipr_sim::wave::{LANES, Wave};

/// Where the code of a test is.
pub const CODE: u64 = 0x7000_0000_0000;
/// Where the memory of a test is.
pub const MEMORY: u64 = 0x2000_0000_0000;
const S_ENDPGM: u32 = 0xbf81_0000;
const BUDGET: u64 = 1_000_000;

/// A wave and what is around it.
pub struct Bench {
    pub wave: Wave,
    pub space: Space,
    pub lds: Lds,
    pub scratch: Scratch,
}

impl Default for Bench {
    fn default() -> Self {
        let block = Block::new(MEMORY, 1 << 16).expect("64 KiB of host memory");
        Self {
            wave: Wave::new(128, 64),
            space: Space::of_block(block),
            lds: Lds::new(4096),
            scratch: Scratch::new(256),
        }
    }
}

impl Bench {
    /// Runs `words` and an `s_endpgm`.
    pub fn try_run(&mut self, words: &[u32]) -> Result<Stop, Fault> {
        let code: Vec<u8> = words.iter().chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
        let program = Program::new(&code, CODE);
        self.wave.pc = CODE;
        let mut machine = Machine {
            space: &self.space,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            program: &program,
            clock_start: Instant::now(),
        };
        run(&mut self.wave, &mut machine, BUDGET)
    }

    /// Runs `words` to their end.
    pub fn run(&mut self, words: &[u32]) {
        match self.try_run(words) {
            Ok(Stop::End) => {}
            other => panic!("{other:x?} after {words:x?}"),
        }
    }

    /// Sets a vector register from a function of the lane.
    pub fn fill(&mut self, register: usize, value: impl Fn(usize) -> u32) {
        *self.wave.row_mut(register) = std::array::from_fn(value);
    }

    /// Sets a pair of vector registers.
    pub fn fill64(&mut self, register: usize, value: impl Fn(usize) -> u64) {
        self.fill(register, |lane| value(lane) as u32);
        self.fill(register + 1, |lane| (value(lane) >> 32) as u32);
    }

    /// The values of a pair of vector registers.
    pub fn row64(&self, register: usize) -> [u64; LANES] {
        std::array::from_fn(|lane| {
            u64::from(self.wave.row(register)[lane]) | u64::from(self.wave.row(register + 1)[lane]) << 32
        })
    }
}

/// Reproducible numbers (xorshift64*).
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 bits.
    pub fn u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// 32 bits.
    pub fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }
}
