//! Tests that an instruction has bit-equal results on every SIMD level.

use std::time::Instant;

use crate::bench::{CODE, MEMORY, Random, SOME};
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Machine, Program, run};
use hipr_isa::wave::{LANES, Mode, Wave};
use hipr_isa::{Arch, isa};

const VGPRS: usize = 96;
const ACCUM_OFFSET: usize = 64;
const S_ENDPGM: u32 = 0xbf81_0000;
/// The word of `s_nop`, which as a literal is -1.0.
const S_NOP: u32 = 0xbf80_0000;

/// Returns a random value, often one that is an edge case of arithmetic. No NaNs and infinities of f16, bf16, f32 or f64: there
/// are enough that instructions make of these.
fn value(random: &mut Random) -> u32 {
    const CORNERS: [u32; 12] = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_fbff,
        0x0080_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x7bff_7bff,
        0x3c00_7bff,
        0x0001_8001,
        0x33ff_0400,
    ];
    let any = random.u32();
    let value = match any >> 28 {
        0..=3 => CORNERS[any as usize % CORNERS.len()],
        4..=7 => 0x3f80_0000 ^ any & 0x81ff_ffff,
        _ => any,
    };
    // The exponent's lowest bit goes where all of it is set.
    [0x7c00, 0x7c00_0000].iter().fold(value, |value, exponent| {
        if value & exponent == *exponent { value & !(exponent & exponent.wrapping_neg()) } else { value }
    })
}

/// The state after an instruction: registers, LDS, memory, and how execution ended.
type Left = (Vec<u32>, Vec<u32>, Vec<u8>, String);

/// Runs `words` on a wave initialised from `seed`, and returns the state afterwards.
fn left(words: &[u32], seed: u64, exec: u64, arch: Arch, level: Level) -> Left {
    let mut random = Random::new(seed);
    let mut wave = Wave::new(VGPRS, ACCUM_OFFSET);
    wave.mode = Mode::DEFAULT;
    for register in 0..VGPRS {
        *wave.row_mut(register) = std::array::from_fn(|_| value(&mut random));
    }
    // Addresses: of LDS in v1, of memory in v[2:3] and s[2:3].
    *wave.row_mut(1) = std::array::from_fn(|lane| random.u32() % 3840 / 4 * 4 + (lane == 63) as u32);
    *wave.row_mut(2) = std::array::from_fn(|lane| MEMORY as u32 + 4096 + lane as u32 * 8);
    *wave.row_mut(3) = [(MEMORY >> 32) as u32; LANES];
    for register in 0..102 {
        wave.sgpr[register] = value(&mut random);
    }
    wave.set_pair(2, MEMORY + 4096);
    wave.set_vcc(random.u64());
    wave.set_exec(exec);
    wave.pc = CODE;
    let code: Vec<u8> = words.iter().chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
    let program = Program::new(&code, CODE, arch, level);
    let space = Space::of_block(Block::new(MEMORY, 1 << 14).expect("16 KiB of host memory"));
    let (mut lds, mut scratch) = (Lds::new(4096), Scratch::new(256));
    for word in lds.words_mut() {
        *word = random.u32();
    }
    let data: Vec<u8> = (0..1 << 14).map(|_| random.u32() as u8).collect();
    space.write(MEMORY, &data).expect("the block");
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
    let end = format!("{:?}", run(&mut wave, &mut machine, &mut { 4 }));
    let mut registers: Vec<u32> = (0..VGPRS).flat_map(|register| *wave.row(register)).collect();
    registers.extend(wave.sgpr);
    let mut memory = vec![0; 1 << 14];
    space.read(MEMORY, &mut memory).expect("the block");
    (registers, lds.words().to_vec(), memory, end)
}

/// Returns whether an instruction reads a clock.
fn is_clock(mnemonic: &str) -> bool {
    matches!(mnemonic, "s_memtime" | "s_memrealtime")
}

#[test]
fn every_instruction_does_the_same_on_every_level() {
    let levels: Vec<Level> = Level::available().collect();
    let mut random = Random::new(7);
    let mut compared = 0;
    let of = |arch| isa::implemented(arch).map(move |row| (arch, row));
    for (arch, (encoding, op, mnemonic)) in Arch::ALL.into_iter().flat_map(of) {
        if is_clock(mnemonic) {
            continue;
        }
        for turn in 0..12 {
            // Operands that are mostly the first registers; every third time anything.
            let any = random.u64();
            let operands = if turn % 3 == 2 { any } else { operands(encoding, any) };
            let mut words =
                isa::assemble(arch, encoding, op, operands).expect("an instruction that there is");
            if is_one_word(encoding) {
                words[1] = S_NOP;
            }
            let exec = [u64::MAX, SOME, u64::MAX >> 20, 0][turn % 4];
            let seed = random.u64();
            let on_base = left(&words, seed, exec, arch, Level::BASE);
            for &level in &levels {
                let on_level = left(&words, seed, exec, arch, level);
                let registers = on_level.0.iter().zip(&on_base.0).position(|(a, b)| !is_same(*a, *b));
                assert!(
                    registers.is_none()
                        && on_level.1 == on_base.1
                        && on_level.2 == on_base.2
                        && on_level.3 == on_base.3,
                    "{mnemonic} ({encoding}, {words:x?}, seed {seed:#x}, exec {exec:#x}) on {level:?}: {}",
                    difference(registers, &on_level, &on_base)
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 10_000 || levels.len() == 1, "{compared} comparisons");
}

/// Returns whether instructions of `encoding` have one word, if no literal follows.
fn is_one_word(encoding: &str) -> bool {
    ["SOP1", "SOP2", "SOPC", "SOPK", "SOPP", "VOP1", "VOP2", "VOPC"].contains(&encoding)
}

/// Returns whether two words are equal or both NaN, as an f32 or in the same half as f16; an instruction may return any of
/// several NaNs.
fn is_same(a: u32, b: u32) -> bool {
    let is_nan32 = |word: u32| word & 0x7fff_ffff > 0x7f80_0000;
    let is_nan16 = |half: u32| half & 0x7fff > 0x7c00;
    let half = |a: u32, b: u32| a == b || is_nan16(a) && is_nan16(b);
    is_nan32(a) && is_nan32(b) || half(a & 0xffff, b & 0xffff) && half(a >> 16, b >> 16)
}

/// Returns random operand bits for `encoding`, limited to the wave's first registers and without modifiers.
fn operands(encoding: &str, any: u64) -> u64 {
    let vgpr = |shift: u32| (any >> shift & 15) + 4;
    match encoding {
        "VOP1" | "VOP2" | "VOPC" => (vgpr(0) + 256) | vgpr(8) << 9 | vgpr(16) << 17,
        "VOP3" | "VOP3P" => {
            vgpr(0) | (vgpr(8) + 256) << 32 | (vgpr(16) + 256) << 41 | (vgpr(24) + 256) << 50 | 3 << 59 & any
        }
        "DS" => 1 << 32 | vgpr(0) << 40 | vgpr(8) << 48 | vgpr(16) << 56 | any & 0x3c,
        "GLOBAL" => 2 << 32 | vgpr(0) << 40 | 127 << 48 | vgpr(16) << 56 | any & 0x3c,
        _ => any,
    }
}

/// Returns the first difference between two runs.
fn difference(register: Option<usize>, on_level: &Left, on_base: &Left) -> String {
    match register {
        Some(index) => format!(
            "v{} lane {}: {:#x}, not {:#x}",
            index / LANES,
            index % LANES,
            on_level.0[index],
            on_base.0[index]
        ),
        None => format!("LDS, memory, or the end: {} and {}", on_level.3, on_base.3),
    }
}
