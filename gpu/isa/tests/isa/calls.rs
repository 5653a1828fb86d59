//! Tests of jumps between programs: in the same program, to other blocks of memory, and to addresses without code.

use std::sync::Arc;
use std::time::Instant;

use hipr_isa::Arch;
use hipr_isa::fault::{Cause, Fault};
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::map::{FIRST_ADDRESS, Map, PAGE_BYTES};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Machine, Program, Stop, run};
use hipr_isa::wave::Wave;

const S_ENDPGM: u32 = 0xbf81_0000;
/// Offset of a module's code in its block.
const CODE_OFFSET: u64 = 0x100;

/// Modules with one program each, in pages of their own, and one block without code.
struct Modules {
    space: Space,
    programs: Vec<Arc<Program>>,
}

impl Modules {
    fn new(arch: Arch, codes: &[&[u32]]) -> Self {
        let mut map = Map::default();
        let mut programs = Vec::new();
        for (index, words) in (0..).zip(codes) {
            let block = Arc::new(Block::new(Self::base(index), 0x1000).unwrap());
            let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let program = Arc::new(Program::new(&code, Self::code(index), arch, Level::BASE));
            block.set_code(&[Arc::clone(&program)]);
            map.insert(&block).unwrap();
            programs.push(program);
        }
        let data = Arc::new(Block::new(Self::base(codes.len() as u64), 0x1000).unwrap());
        map.insert(&data).unwrap();
        Self { space: Space::new(Arc::new(map), data), programs }
    }

    fn base(index: u64) -> u64 {
        FIRST_ADDRESS + index * 2 * PAGE_BYTES
    }

    fn code(index: u64) -> u64 {
        Self::base(index) + CODE_OFFSET
    }

    /// Runs a wave that begins in the first module, `budget` instructions at a time, and returns it after its end. s[4:5] has
    /// `target`.
    fn run(&self, target: u64, budget: u64) -> Result<Wave, Fault> {
        let mut wave = Wave::new(8, 4);
        wave.pc = Self::code(0);
        wave.set_pair(4, target);
        for _ in 0..100 {
            let mut machine = Machine {
                space: &self.space,
                lds: &mut Lds::new(0),
                scratch: &mut Scratch::new(0),
                program: &self.programs[0],
                wave_sync: None,
                clock_start: Instant::now(),
                interrupts: None,
                watch: None,
            };
            if run(&mut wave, &mut machine, &mut { budget })? == Stop::End {
                return Ok(wave);
            }
        }
        panic!("it does not end");
    }
}

/// Jumps to s[4:5], and returns if that is a call.
const SWAPPC: u32 = 0xbe9e_1e04; // s_swappc_b64 s[30:31], s[4:5]
const SETPC: u32 = 0xbe80_1d04; // s_setpc_b64 s[4:5]
const RETURN: u32 = 0xbe80_1d1e; // s_setpc_b64 s[30:31]

/// Encodes `s_movk_i32 sREGISTER, value`.
fn movk(register: u32, value: u32) -> u32 {
    0xb000_0000 | register << 16 | value
}

#[test]
fn code_of_every_module_can_be_reached_and_left() {
    for arch in Arch::ALL {
        let caller: &[u32] = &[SWAPPC, movk(7, 70), S_ENDPGM];
        let leaf: &[u32] = &[movk(6, 60), movk(6, 61), RETURN];
        let modules = Modules::new(arch, &[caller, leaf, leaf]);
        for budget in [1, 2, 100] {
            for target in [1, 2] {
                for (offset, first) in [(0, 61), (4, 61), (8, 0)] {
                    let wave = modules.run(Modules::code(target) + offset, budget).unwrap();
                    assert_eq!((wave.sgpr[6], wave.sgpr[7]), (first, 70), "{arch}, {budget} at a time");
                }
            }
        }
        let jumper: &[u32] = &[SETPC];
        let modules = Modules::new(arch, &[jumper, &[movk(6, 60), S_ENDPGM]]);
        assert_eq!(modules.run(Modules::code(1), 1).unwrap().sgpr[6], 60);
    }
}

#[test]
fn where_there_is_no_code_is_a_fault() {
    for arch in Arch::ALL {
        let modules = Modules::new(arch, &[&[SETPC], &[movk(6, 60), S_ENDPGM]]);
        let code = Modules::code(1);
        // Beside the code, between its words, in a block of data, between blocks, nowhere.
        for target in
            [code - 4, code + 8, code + 2, Modules::base(2), Modules::base(1) + PAGE_BYTES, 0, u64::MAX - 3]
        {
            let fault = modules.run(target, 100).unwrap_err();
            assert_eq!((fault.cause, fault.pc), (Cause::BadPc, target), "{arch}");
        }
        // Off the end of another module's code.
        let modules = Modules::new(arch, &[&[SETPC], &[movk(6, 60)]]);
        let fault = modules.run(Modules::code(1), 100).unwrap_err();
        assert_eq!((fault.cause, fault.pc), (Cause::BadPc, Modules::code(1) + 4), "{arch}");
    }
}
