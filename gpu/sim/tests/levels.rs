//! On every SIMD level an instruction, and a kernel, does the same, to the bit.

mod bench;
mod session;

use std::time::Instant;

use bench::{CODE, MEMORY, Random, SOME};
use hipr_sim::lds::{Lds, Scratch};
use hipr_sim::mem::{Block, Space};
use hipr_sim::simd::Level;
use hipr_sim::step::{Machine, Program, run};
use hipr_sim::wave::{LANES, Mode, Wave};
use hipr_sim::{Arch, Config, Gpu, isa};
use session::{LEVELS, Session, Values};

const VGPRS: usize = 96;
const ACCUM_OFFSET: usize = 64;
const S_ENDPGM: u32 = 0xbf81_0000;
/// As a literal, -1.0.
const S_NOP: u32 = 0xbf80_0000;

/// Values at which arithmetic has its corners, and any. No NaNs and infinities of f16, bf16, f32 or f64: there are enough that
/// instructions make of these.
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

/// What an instruction leaves behind: registers, LDS, memory, and how it ended.
type Left = (Vec<u32>, Vec<u32>, Vec<u8>, String);

/// Runs `words` on a wave that `seed` makes.
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
        clock_start: Instant::now(),
    };
    let end = format!("{:?}", run(&mut wave, &mut machine, &mut { 4 }));
    let mut registers: Vec<u32> = (0..VGPRS).flat_map(|register| *wave.row(register)).collect();
    registers.extend(wave.sgpr);
    let mut memory = vec![0; 1 << 14];
    space.read(MEMORY, &mut memory).expect("the block");
    (registers, lds.words().to_vec(), memory, end)
}

/// Instructions that say what time it is.
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

/// Whether what follows the first word is the next instruction, if there is no literal.
fn is_one_word(encoding: &str) -> bool {
    ["SOP1", "SOP2", "SOPC", "SOPK", "SOPP", "VOP1", "VOP2", "VOPC"].contains(&encoding)
}

/// Whether words are the same, or NaNs, of f32 or in the same halves of f16, of which an instruction may keep any.
fn is_same(a: u32, b: u32) -> bool {
    let is_nan32 = |word: u32| word & 0x7fff_ffff > 0x7f80_0000;
    let is_nan16 = |half: u32| half & 0x7fff > 0x7c00;
    let half = |a: u32, b: u32| a == b || is_nan16(a) && is_nan16(b);
    is_nan32(a) && is_nan32(b) || half(a & 0xffff, b & 0xffff) && half(a >> 16, b >> 16)
}

/// Bits of an encoding's operands, of which the registers are the wave's first ones and the modifiers none.
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

/// Where two runs differ first.
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

#[test]
fn kernels_leave_the_same_memory_on_every_level() {
    let x: Vec<u32> = (0..4096u32).map(|i| (i as f32 * 0.37 - 600.0).to_bits()).collect();
    for (optimization, image) in LEVELS {
        let memory = |level: Level| {
            let config = Config { memory_bytes: Some(64 << 20), simd: Some(level), ..Config::default() };
            let gpu = Gpu::new(config).expect("a thread");
            assert_eq!(gpu.simd(), level);
            let mut session = Session::open(&gpu);
            let (from, to) = (session.buffer(&x), session.buffer(&x));
            let saxpy = session.kernel(image, "saxpy");
            let values = Values::new().f32(1.1).u64(from).u64(to).u32(4000);
            session.launch(saxpy, 42, 100, &values).expect("a launch");
            let reduce = session.kernel(image, "reduce");
            let sums = session.malloc(4 * 16);
            session.launch(reduce, 16, 256, &Values::new().u64(from).u64(sums)).expect("a launch");
            session.sync_all().expect("no fault");
            let mut memory = session.read(to, x.len());
            memory.extend(session.read(sums, 16));
            memory
        };
        let on_base = memory(Level::BASE);
        assert_ne!(on_base[..x.len()], x, "the kernel has run");
        for level in Level::available() {
            assert!(memory(level) == on_base, "{optimization} on {level:?}");
        }
    }
}
