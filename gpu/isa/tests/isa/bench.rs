//! Runs literal instruction words on one wave.

use std::time::Instant;

use hipr_isa::Arch;
use hipr_isa::fault::Fault;
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Interrupts, Machine, Program, Stop, run};
use hipr_isa::wave::{LANES, Wave};

/// Address of the code of a test.
pub(crate) const CODE: u64 = 0x7000_0000_0000;
/// Address of the memory of a test.
pub(crate) const MEMORY: u64 = 0x2000_0000_0000;
/// An EXEC in which every row of 16 lanes has active and inactive ones.
pub(crate) const SOME: u64 = 0xf0f0_8001_0000_fff1;
const S_ENDPGM: u32 = 0xbf81_0000;
const BUDGET: u64 = 1_000_000;

/// Returns whether `lane` is active in `exec`.
pub(crate) fn is_on(exec: u64, lane: usize) -> bool {
    exec >> lane & 1 == 1
}

/// A wave with its memory, LDS, scratch and program.
pub(crate) struct Bench {
    pub(crate) wave: Wave,
    pub(crate) space: Space,
    pub(crate) lds: Lds,
    pub(crate) scratch: Scratch,
    pub(crate) arch: Arch,
    pub(crate) level: Level,
}

impl Default for Bench {
    fn default() -> Self {
        let block = Block::new(MEMORY, 1 << 16).expect("64 KiB of host memory");
        Self {
            wave: Wave::new(128, 64),
            space: Space::of_block(block),
            lds: Lds::new(4096),
            scratch: Scratch::new(256),
            arch: Arch::default(),
            level: Level::chosen().expect("a level of this processor"),
        }
    }
}

impl Bench {
    /// Runs `words`, followed by an `s_endpgm`.
    pub(crate) fn try_run(&mut self, words: &[u32]) -> Result<Stop, Fault> {
        self.try_run_for(words, BUDGET)
    }

    /// Runs at most `budget` instructions of `words`, followed by an `s_endpgm`.
    pub(crate) fn try_run_for(&mut self, words: &[u32], budget: u64) -> Result<Stop, Fault> {
        self.try_run_with(words, budget, None)
    }

    /// Does the same with somebody who takes interrupts.
    pub(crate) fn try_run_with(
        &mut self,
        words: &[u32],
        budget: u64,
        interrupts: Option<&dyn Interrupts>,
    ) -> Result<Stop, Fault> {
        let code: Vec<u8> = words.iter().chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
        let program = Program::new(&code, CODE, self.arch, self.level);
        self.wave.pc = CODE;
        let mut machine = Machine {
            space: &self.space,
            lds: &mut self.lds,
            scratch: &mut self.scratch,
            program: &program,
            wave_sync: None,
            clock_start: Instant::now(),
            interrupts,
            watch: None,
        };
        run(&mut self.wave, &mut machine, &mut { budget })
    }

    /// Runs `words` to their end; panics if they fault.
    pub(crate) fn run(&mut self, words: &[u32]) {
        match self.try_run(words) {
            Ok(Stop::End) => {}
            other => panic!("{other:x?} after {words:x?}"),
        }
    }

    /// Sets a vector register from a function of the lane.
    pub(crate) fn fill(&mut self, register: usize, value: impl Fn(usize) -> u32) {
        *self.wave.row_mut(register) = std::array::from_fn(value);
    }

    /// Sets a pair of vector registers from a function of the lane.
    pub(crate) fn fill64(&mut self, register: usize, value: impl Fn(usize) -> u64) {
        self.fill(register, |lane| value(lane) as u32);
        self.fill(register + 1, |lane| (value(lane) >> 32) as u32);
    }

    /// Returns the values of a pair of vector registers.
    pub(crate) fn row64(&self, register: usize) -> [u64; LANES] {
        std::array::from_fn(|lane| {
            u64::from(self.wave.row(register)[lane]) | u64::from(self.wave.row(register + 1)[lane]) << 32
        })
    }
}

/// A generator of reproducible random numbers (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator whose sequence depends on `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns 64 random bits.
    pub(crate) fn u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns 32 random bits.
    pub(crate) fn u32(&mut self) -> u32 {
        (self.u64() >> 32) as u32
    }
}

/// Value of v3 before an instruction writes it.
const OLD: u32 = 0xdead_beef;

/// Checks one instruction on every case, which gives v1, v2, v4 and the expected v3. With all lanes, with some, with none.
pub(crate) fn check(words: &[u32], text: &str, cases: &[(u32, u32, u32, u32)]) {
    for exec in [u64::MAX, 0xaaaa_5555_0ff0_8001, 0] {
        let mut bench = Bench::default();
        for chunk in cases.chunks(LANES) {
            let case = |lane: usize| chunk[lane % chunk.len()];
            bench.wave.set_exec(exec);
            bench.fill(1, |lane| case(lane).0);
            bench.fill(2, |lane| case(lane).1);
            bench.fill(4, |lane| case(lane).2);
            bench.fill(3, |_| OLD);
            bench.run(words);
            for lane in 0..LANES {
                let (a, b, c, result) = case(lane);
                let expected = if exec >> lane & 1 == 1 { result } else { OLD };
                let got = bench.wave.row(3)[lane];
                assert_eq!(
                    got, expected,
                    "{text}: v1 {a:#x}, v2 {b:#x}, v4 {c:#x}: {got:#x}, not {expected:#x}"
                );
            }
        }
    }
}

/// Checks an instruction with one source, v1, on every case.
pub(crate) fn check1(words: &[u32], text: &str, cases: &[(u32, u32)]) {
    check(words, text, &cases.iter().map(|&(a, result)| (a, 0, 0, result)).collect::<Vec<_>>());
}

/// Checks an instruction with two sources, v1 and v2, on every case.
pub(crate) fn check2(words: &[u32], text: &str, cases: &[(u32, u32, u32)]) {
    check(words, text, &cases.iter().map(|&(a, b, result)| (a, b, 0, result)).collect::<Vec<_>>());
}

/// Operands of an instruction with a 64-bit result.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wide {
    pub(crate) v1: u32,
    pub(crate) v2: u32,
    pub(crate) v4: u64,
    pub(crate) v6: u64,
    pub(crate) v10: u64,
}

/// Checks one instruction on every case, which gives the operands and the expected v[8:9].
pub(crate) fn check_wide(words: &[u32], text: &str, cases: &[(Wide, u64)]) {
    const OLD_WIDE: u64 = 0x0123_4567_89ab_cdef;
    for exec in [u64::MAX, 0xaaaa_5555_0ff0_8001, 0] {
        let mut bench = Bench::default();
        for chunk in cases.chunks(LANES) {
            let case = |lane: usize| chunk[lane % chunk.len()];
            bench.wave.set_exec(exec);
            bench.fill(1, |lane| case(lane).0.v1);
            bench.fill(2, |lane| case(lane).0.v2);
            bench.fill64(4, |lane| case(lane).0.v4);
            bench.fill64(6, |lane| case(lane).0.v6);
            bench.fill64(10, |lane| case(lane).0.v10);
            bench.fill64(8, |_| OLD_WIDE);
            bench.run(words);
            let results = bench.row64(8);
            for (lane, &got) in results.iter().enumerate() {
                let (operands, result) = case(lane);
                let expected = if exec >> lane & 1 == 1 { result } else { OLD_WIDE };
                assert_eq!(got, expected, "{text}: {operands:x?}: {got:#x}, not {expected:#x}");
            }
        }
    }
}

/// Returns the bits of an f32.
pub(crate) fn f(value: f32) -> u32 {
    value.to_bits()
}

/// Returns the bits of an f64.
pub(crate) fn d(value: f64) -> u64 {
    value.to_bits()
}

/// A signalling NaN.
pub(crate) const SNAN: u32 = 0x7f80_0001;
/// The quiet NaN that [`SNAN`] becomes.
pub(crate) const QUIETED: u32 = 0x7fc0_0001;
/// A quiet NaN.
pub(crate) const QNAN: u32 = 0x7fc0_0123;
