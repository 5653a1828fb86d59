//! A fuzz target that runs random programs on the emulator: each has to end with a result or an error.

use std::sync::LazyLock;
use std::time::Instant;

use hipr_code_object::{CodeObject, KernelDescriptor};
use hipr_device::{Args, Context as _, Launch, MemoryKind, Origin, Param, Region};
use hipr_isa::gws::WaveSync;
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::{Block, Space};
use hipr_isa::simd::Level;
use hipr_isa::step::{Machine, Program, Stop, run};
use hipr_isa::wave::{EXEC, LANES, M0, Mode, Wave};
use hipr_isa::{Arch, isa};
use hipr_proto::HipError;

use super::device::{Client, INSTRUCTIONS_MAX};
use super::isa::INSTRUCTIONS;
use crate::choices::Choices;

/// Address of a single wave's code.
const CODE: u64 = 0x7000_0000_0000;
/// Address of a single wave's memory.
const MEMORY: u64 = 0x2000_0000_0000;
const MEMORY_BYTES: u32 = 1 << 14;
/// Maximum number of instructions of a single wave.
const WAVE_INSTRUCTIONS_MAX: u64 = 1024;
const PROGRAM_WORDS_MAX: usize = 512;
const S_ENDPGM: u32 = 0xbf81_0000;
/// The last word of a buffer resource: 32-bit data, not swizzled.
const BUFFER_FORMAT: u32 = 0x0002_0000;

/// Runs a random program of known instructions and arbitrary words, as one wave with useful addresses in its registers, or
/// as a kernel with a descriptor, a grid and buffers.
pub fn kernel_step(data: &[u8]) {
    let mut choices = Choices::new(data);
    match choices.below(4) {
        0 => launch(&mut choices),
        _ => wave(&mut choices),
    }
}

/// Draws a program.
fn program(choices: &mut Choices<'_>) -> Vec<u32> {
    let mut words = Vec::new();
    while !choices.is_exhausted() && words.len() < PROGRAM_WORDS_MAX {
        match choices.below(16) {
            0 => words.push(any_u32(choices)),
            1 => words.extend(control(choices)),
            _ => words.extend(instruction(choices)),
        }
    }
    words
}

fn any_u32(choices: &mut Choices<'_>) -> u32 {
    choices.below(1 << 32) as u32
}

/// Draws an instruction of the table with arbitrary operands.
fn instruction(choices: &mut Choices<'_>) -> Vec<u32> {
    let (encoding, op, _) = INSTRUCTIONS[choices.index(INSTRUCTIONS.len())];
    let operands = u64::from(any_u32(choices)) | u64::from(any_u32(choices)) << 32;
    let [first, second] =
        isa::assemble(Arch::default(), encoding, op, operands).expect("an instruction of the table");
    let mut words = vec![first, second, 0];
    let (_, len) = isa::identify(Arch::default(), &words).expect("an instruction of the table");
    if len == 3 {
        words[2] = any_u32(choices);
    }
    words.truncate(len);
    words
}

/// Draws a control instruction: a short jump, a barrier, a sleep, or a change of MODE or EXEC.
fn control(choices: &mut Choices<'_>) -> Option<u32> {
    let all: Vec<_> = INSTRUCTIONS.iter().filter(|(encoding, _, _)| *encoding == "SOPP").collect();
    let (encoding, op, _) = choices.pick(&all)?;
    let constant = choices.between(0, 31) as i16 - 16;
    Some(isa::assemble(Arch::default(), encoding, *op, u64::from(constant as u16))?[0])
}

/// Returns an initial register value: an address of memory, a size, a lane number, a float of either width, or `rubbish`.
fn value(register: usize, lane: usize, base: u64, rubbish: u32) -> u32 {
    let addr = base + (register as u64 * 64 + lane as u64 * 16) % u64::from(MEMORY_BYTES / 2);
    match register % 12 {
        0 | 4 | 8 => addr as u32,
        1 | 5 | 9 => (addr >> 32) as u32,
        2 => MEMORY_BYTES,
        3 => BUFFER_FORMAT,
        6 => lane as u32 * 4,
        7 => (lane as f32 * 0.5 - 3.0).to_bits(),
        10 => ((lane as f64 - 7.25).to_bits() >> 32) as u32,
        _ => rubbish.rotate_left(lane as u32).wrapping_mul(register as u32 | 1),
    }
}

/// Runs a program as one wave in a random state.
fn wave(choices: &mut Choices<'_>) {
    let [vgprs, accum_offset] =
        [choices.between(1, 512), choices.between(0, 512)].map(|count| count as usize);
    let lds_bytes = *choices.pick(&[4096, 0, 1, 3, 64, 65536]).expect("not empty");
    let scratch_bytes = *choices.pick(&[256, 0, 4, 7, 8192]).expect("not empty");
    let rubbish = any_u32(choices);
    let mut wave = Wave::new(vgprs, accum_offset.min(vgprs));
    for register in 0..M0 {
        wave.sgpr[register] = value(register, 0, MEMORY, rubbish);
    }
    for register in 0..vgprs {
        *wave.row_mut(register) =
            std::array::from_fn::<_, LANES, _>(|lane| value(register, lane, MEMORY, rubbish));
    }
    wave.sgpr[M0] = *choices.pick(&[u32::MAX, 0, 5, rubbish]).expect("not empty");
    wave.set_pair(EXEC, *choices.pick(&[u64::MAX, 0, 1, 0x5555_0ff0_8001_aaaa, 1 << 63]).expect("not empty"));
    wave.mode = if choices.one_in(4) { Mode(rubbish) } else { Mode::DEFAULT };
    wave.scc = choices.one_in(2);
    wave.pc = CODE;

    let words = program(choices);
    let code: Vec<u8> = words.iter().chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
    let level = Level::chosen().expect("a level of this processor");
    let program = Program::new(&code, CODE, Arch::default(), level);
    let space = Space::of_block(Block::new(MEMORY, MEMORY_BYTES.into()).expect("16 KiB of host memory"));
    let wave_sync = WaveSync::for_groups(1);
    let (mut lds, mut scratch) = (Lds::new(lds_bytes), Scratch::new(scratch_bytes));
    let clock_start = Instant::now();
    let mut left = WAVE_INSTRUCTIONS_MAX;
    while left > 0 {
        let before = left;
        let mut machine = Machine {
            space: &space,
            lds: &mut lds,
            scratch: &mut scratch,
            program: &program,
            wave_sync: Some(&wave_sync),
            clock_start,
            interrupts: None,
            watch: None,
        };
        match run(&mut wave, &mut machine, &mut left) {
            Ok(Stop::End) => break,
            Ok(Stop::Barrier | Stop::Budget) => assert!(left < before, "a stop without an instruction"),
            Err(fault) => {
                assert!(!fault.to_string().is_empty());
                break;
            }
        }
    }
    assert_eq!(wave.vgpr_count(), vgprs);
    assert_eq!(
        (lds.len_bytes(), scratch.bytes_per_lane()),
        (lds_bytes, u64::from(scratch_bytes).next_multiple_of(4))
    );
}

/// A code object of the emulator's own tests, whose code is replaced.
static TEMPLATE: &[u8] = include_bytes!("../../../../gpu/sim/tests/data/kernels-O3.co");
/// Its kernel whose code and descriptor are replaced: `(float, const float *, float *, unsigned)`.
const VICTIM: &str = "saxpy";
/// The last kernel of the code object, whose code is not changed: 64 work-items write 1 to the address in its argument.
const WITNESS: &str = "narrow";
const BUFFER_BYTES: u64 = 4096;

/// Offsets in the template.
struct Places {
    /// Offset of the replaced kernel's descriptor.
    descriptor: usize,
    /// Offset of the replaced kernel's code.
    code: usize,
    /// Number of bytes available for code.
    code_bytes: usize,
}

static PLACES: LazyLock<Places> = LazyLock::new(|| {
    let code = CodeObject::parse(TEMPLATE).expect("a committed code object");
    let offset = |vaddr: u64| {
        let segment = code
            .segments()
            .iter()
            .find(|segment| (segment.vaddr..segment.vaddr + segment.file.len() as u64).contains(&vaddr));
        let segment = segment.expect("it is in the file");
        segment.file.start + (vaddr - segment.vaddr) as usize
    };
    let kernel = |name| code.kernel(name).expect("a kernel of the file");
    let (victim, witness) = (kernel(VICTIM), kernel(WITNESS));
    let code_bytes = (witness.entry_vaddr - victim.entry_vaddr) as usize;
    assert!(code_bytes / 4 > PROGRAM_WORDS_MAX + PROLOGUE.len(), "{code_bytes} bytes of code");
    Places { descriptor: offset(victim.descriptor_vaddr), code: offset(victim.entry_vaddr), code_bytes }
});

/// Code that loads the two pointer arguments into s8 to s11 and v2 to v5, a buffer resource into s16 to s19 and an offset
/// into v1.
const PROLOGUE: [u32; 15] = [
    0xc00a_0200,
    0x0000_0008, // s_load_dwordx4 s[8:11], s[0:1], 0x8
    0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
    0xbe90_0108, // s_mov_b64 s[16:17], s[8:9]
    0xb012_1000, // s_movk_i32 s18, 0x1000
    0xbe93_00ff,
    0x0002_0000, // s_mov_b32 s19, 0x20000
    0x2402_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x7e04_0208, // v_mov_b32_e32 v2, s8
    0x7e06_0209, // v_mov_b32_e32 v3, s9
    0x7e08_020a, // v_mov_b32_e32 v4, s10
    0x7e0a_020b, // v_mov_b32_e32 v5, s11
    0xd208_0006,
    0x0409_0008, // v_lshl_add_u64 v[6:7], s[8:9], 0, v[2:3]
    0xbefc_00c1, // s_mov_b32 m0, -1
];

/// Returns the template with another descriptor and another program.
fn image(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut image = TEMPLATE.to_vec();
    let descriptor = &mut image[PLACES.descriptor..][..KernelDescriptor::SIZE_BYTES];
    if choices.one_in(2) {
        let lds_bytes = choices.below(1 << 17) as u32;
        let scratch_bytes = choices.below(1 << 14) as u32;
        descriptor[0..4].copy_from_slice(&lds_bytes.to_le_bytes());
        descriptor[4..8].copy_from_slice(&scratch_bytes.to_le_bytes());
        for word in descriptor[44..60].as_chunks_mut::<4>().0 {
            *word = (u32::from_le_bytes(*word) ^ any_u32(choices) & any_u32(choices)).to_le_bytes();
        }
    }
    let prologue: &[u32] = if choices.one_in(8) { &[] } else { &PROLOGUE };
    let words = program(choices);
    let code: Vec<u8> =
        prologue.iter().chain(&words).chain([&S_ENDPGM]).flat_map(|word| word.to_le_bytes()).collect();
    image[PLACES.code..][..PLACES.code_bytes][..code.len()].copy_from_slice(&code);
    image
}

/// Draws three sizes, mostly small ones.
fn size(choices: &mut Choices<'_>, max: [u64; 3]) -> [u32; 3] {
    if choices.one_in(16) {
        return std::array::from_fn(|_| any_u32(choices));
    }
    max.map(|max| choices.between(1, max) as u32)
}

/// Runs a program as a kernel on the whole device.
fn launch(choices: &mut Choices<'_>) {
    let (grid, block) = (size(choices, [4, 2, 2]), size(choices, [130, 3, 2]));
    let shared_mem_bytes = if choices.one_in(4) { any_u32(choices) % (1 << 17) } else { 0 };
    let cooperative = choices.one_in(8);
    let image = image(choices);

    let mut client = Client::new();
    let module = client.context.module_load(image).expect("only code and a descriptor are changed");
    let [x, y] =
        [(); 2].map(|()| client.context.malloc(BUFFER_BYTES, MemoryKind::Device, 0).expect("some memory"));
    let mut values = Values::default();
    values.add(&1.5f32.to_le_bytes());
    values.add(&x.to_le_bytes());
    values.add(&y.to_le_bytes());
    values.add(&1000u32.to_le_bytes());
    if let Ok(victim) = client.context.function(module, VICTIM) {
        let plain = values.launch(victim.handle, grid, block);
        if client.context.launch(&Launch { shared_mem_bytes, cooperative, ..plain }).is_ok() {
            match client.sync() {
                Ok(())
                | Err(HipError::LAUNCH_FAILURE | HipError::ILLEGAL_ADDRESS | HipError::LAUNCH_TIME_OUT) => {}
                // There is no memory for the registers and the scratch of a group, or of all groups that have to begin together.
                Err(HipError::LAUNCH_OUT_OF_RESOURCES) if !cooperative => {}
                Err(HipError::COOPERATIVE_LAUNCH_TOO_LARGE) if cooperative => {}
                Err(error) => panic!("{error:?} is not an error of a kernel"),
            }
        }
    }

    // Whatever it did, the next kernel runs.
    let witness = client.context.function(module, WITNESS).expect("a kernel of the file").handle;
    let mut values = Values::default();
    values.add(&y.to_le_bytes());
    client.context.launch(&values.launch(witness, [1; 3], [64, 1, 1])).expect("a valid launch");
    client.sync().expect("a kernel without a fault");
    let mut out = [0; 4 * LANES];
    client.context.read(&Region::flat(y, out.len() as u64), 0, &mut out).expect("it is allocated");
    assert!(out.as_chunks::<4>().0.iter().all(|word| u32::from_le_bytes(*word) == 1), "{out:?}");
    const { assert!(INSTRUCTIONS_MAX > 1000, "the witness needs some instructions") };
}

/// Arguments of a kernel.
#[derive(Default)]
struct Values {
    table: Vec<Param>,
    data: Vec<u8>,
}

impl Values {
    fn add(&mut self, bytes: &[u8]) {
        self.table.push(Param { offset: self.data.len() as u32, size: bytes.len() as u32 });
        self.data.extend(bytes);
    }

    fn launch(&self, function: u64, grid: [u32; 3], block: [u32; 3]) -> Launch<'_> {
        Launch {
            function,
            grid,
            block,
            shared_mem_bytes: 0,
            stream: 0,
            args: Args::Params { table: &self.table, data: &self.data },
            start_event: None,
            stop_event: None,
            cooperative: false,
            origin: Origin::NONE,
        }
    }
}
