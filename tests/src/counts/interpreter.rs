//! Counts the instructions of a step of the interpreter.

use std::time::Instant;

use hipr_isa::Arch;
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Machine, Program, Stop, run};
use hipr_isa::wave::Wave;

const CODE: u64 = 0x7000_0000_0000;
const MEMORY: u64 = 0x2000_0000_0000;

/// The instructions of a loop: s4 counts down to 0, v1 and v3 change each time.
const LOOP: [u32; 6] = [
    0x8084_8104, // s_sub_u32 s4, s4, 1
    0x6802_0501, // v_add_u32 v1, v1, v2
    0xd1cb_0003,
    0x040e_0501, // v_fma_f32 v3, v1, v2, v3
    0xbf07_8004, // s_cmp_lg_u32 s4, 0
    0xbf85_fffa, // s_cbranch_scc1, back to the first
];
/// Number of instructions of one iteration of [`LOOP`].
const INSTRUCTIONS: u64 = 5;

/// Executes `operations` instructions of the loop.
pub(super) fn step(operations: u64) {
    let times = u32::try_from(operations / INSTRUCTIONS).expect("a number of operations that fits");
    // s_mov_b32 s4, times … s_endpgm
    let words = [0xbe84_00ff, times].into_iter().chain(LOOP).chain([0xbf81_0000]);
    let code: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let program =
        Program::new(&code, CODE, Arch::default(), Level::chosen().expect("a level of this processor"));
    let space = Space::of_block(Block::new(MEMORY, 1 << 16).expect("64 KiB of host memory"));
    let (mut lds, mut scratch) = (Lds::new(4096), Scratch::new(256));
    let mut wave = Wave::new(128, 64);
    wave.pc = CODE;
    wave.set_exec(u64::MAX);
    *wave.row_mut(2) = [3; 64];
    let mut machine = Machine {
        space: &space,
        lds: &mut lds,
        scratch: &mut scratch,
        program: &program,
        wave_sync: None,
        clock_start: Instant::now(),
        interrupts: None,
        watch: None,
    };
    let stop = run(&mut wave, &mut machine, &mut { u64::MAX }).expect("instructions that do nothing wrong");
    assert_eq!(stop, Stop::End);
    assert_eq!(wave.row(1), &[times.wrapping_mul(3); 64], "the loop was run as often as it should");
}
