//! Tests of decoding, against LLVM's disassembly of code that compilers (clang, IREE, tinygrad, Triton) generated.

use std::collections::BTreeSet;

use crate::bench::{Bench, CODE, Random};
use hipr_isa::Arch;
use hipr_isa::fault::Cause;
use hipr_isa::isa::identify;

/// Mnemonics and encodings: for each mnemonic and length, some that occur in real kernels.
static ENCODINGS: &str = include_str!("data/encodings.tsv");

#[test]
fn real_instructions_have_their_name_and_length() {
    let mut names = BTreeSet::new();
    for line in ENCODINGS.lines().skip(1) {
        let (name, words) = line.split_once('\t').unwrap();
        let words: Vec<u32> = words.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        assert_eq!(identify(Arch::Gfx942, &words), Ok((name, words.len())), "{line}");
        names.insert(name);
    }
    assert!(names.len() > 450, "{} mnemonics", names.len());
}

#[test]
fn what_only_another_gpu_has_is_named() {
    // v_mad_f32 v1, v2, v3, v4, which the gfx90a has.
    let Err(fault) = Bench::default().try_run(&[0xbf800000, 0xd1c1_0001, 0x0412_0702]) else {
        panic!("v_mad_f32 is no gfx942 instruction");
    };
    assert_eq!(fault.pc, CODE + 4);
    assert_eq!(fault.cause, Cause::Unknown { word: 0x0412_0702_d1c1_0001, mnemonic: Some("v_mad_f32") });
    assert!(fault.to_string().contains("v_mad_f32"), "{fault}");
}

#[test]
fn what_is_no_instruction_is_shown() {
    for words in [[0xffff_ffff, 0], [0x9e00_0000, 0], [0xf000_0000, 0]] {
        let Err(fault) = Bench::default().try_run(&words) else { panic!("{words:x?} ran") };
        assert!(matches!(fault.cause, Cause::Unknown { mnemonic: None, .. }), "{fault}");
    }
}

#[test]
fn code_that_ends_too_early_is_a_fault() {
    // The first word of v_fma_f32 with nothing but s_endpgm's word behind it is an instruction; without that it is none.
    assert_eq!(identify(Arch::Gfx942, &[0xd1cb_0003]), Err(Cause::BadPc));
    assert_eq!(identify(Arch::Gfx942, &[]), Err(Cause::BadPc));
    let Err(fault) = Bench::default().try_run(&[0xbf82_7fff]) else { panic!("a wild branch ran") };
    assert_eq!(fault.cause, Cause::BadPc);
}

/// Whatever operands, modifiers and registers an instruction has, the emulator answers with a stop or a fault.
#[test]
fn any_operands_end_in_a_stop_or_a_fault() {
    let mut random = Random::new(9);
    let mut bench = Bench::default();
    for line in ENCODINGS.lines().skip(1) {
        let words = line.split_once('\t').unwrap().1.split(' ');
        let words: Vec<u32> = words.map(|word| u32::from_str_radix(word, 16).unwrap()).collect();
        for _ in 0..40 {
            let mut words = words.clone();
            for word in &mut words {
                // Few bits at a time, so that it often stays the same instruction.
                *word ^= random.u32() & random.u32() & random.u32();
            }
            for register in 0..100 {
                let bits = random.u32();
                bench.wave.sgpr[register] = bits;
                bench.fill(register, |lane| bits.rotate_left(lane as u32));
            }
            bench.wave.mode.0 = random.u32();
            bench.wave.set_exec(random.u64());
            let _ = bench.try_run_for(&words, 50);
        }
    }
}

/// Encodings that LLVM writes for each opcode that it knows, for both GPUs.
static SAMPLES: &str = include_str!("data/samples.tsv");

#[test]
fn every_opcode_is_decoded_as_llvm_encodes_it() {
    let mut count = 0;
    for line in SAMPLES.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (arch, name) = (columns[0].parse::<Arch>().expect("a GPU"), columns[1]);
        let words: Vec<u32> =
            columns[2].split(' ').map(|word| u32::from_str_radix(word, 16).expect("a word")).collect();
        assert_eq!(identify(arch, &words), Ok((name, words.len())), "{line}");
        count += 1;
    }
    assert!(count > 2900, "{count} opcodes");
}
