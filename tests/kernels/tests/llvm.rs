//! Compares decoding with LLVM in both directions, with random operands: what LLVM reads in words, and what it writes for
//! that text.

use hipr_isa::isa::identify;
use hipr_kernel_tests::{Compiler, Random};
use hipr_sim::Arch;

/// Sample words of every opcode.
static SAMPLES: &str = include_str!("../../../gpu/isa/tests/isa/data/samples.tsv");
/// Number of random variants of each sample.
const VARIANTS: usize = 12;
/// Number of instructions that LLVM is given at a time; their numbers are encoded between them as 16-bit constants.
const BATCH: usize = 50_000;
/// Comes behind each sample: LLVM 21.1.8 crashes where a block ends before the constant of its last instruction.
const S_ENDPGM: u32 = 0xbf81_0000;

fn s_nop(number: usize) -> u32 {
    0xbf80_0000 | number as u32
}

/// Parses the number in `s_nop 0x1f`.
fn number_of(line: &str) -> Option<usize> {
    let constant = line.strip_prefix("s_nop ")?.split_whitespace().next()?;
    match constant.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).ok(),
        None => constant.parse().ok(),
    }
}

/// Returns a mnemonic without the suffix for its encoding.
fn mnemonic(text: &str) -> &str {
    let name = text.split_whitespace().next().unwrap_or_default();
    ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"]
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}

/// Returns the first instruction that LLVM reads in each of these words, if it is one.
fn disassembled(compiler: &Compiler, arch: Arch, batch: &[[u32; 3]]) -> Vec<Option<String>> {
    let block = |words: &[u32]| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:#04x}"));
        format!("[{}]\n", bytes.collect::<Vec<_>>().join(" "))
    };
    let input: String = batch
        .iter()
        .enumerate()
        .flat_map(|(number, &[first, second, third])| {
            [block(&[first, second, third, S_ENDPGM]), block(&[s_nop(number)])]
        })
        .collect();
    let output = compiler.assembler(&["-disassemble", &format!("-mcpu={arch}")], &input);
    let (mut found, mut first) = (Vec::new(), None);
    for line in output.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('.')) {
        if number_of(line) == Some(found.len()) {
            found.push(first.take());
        } else if first.is_none() {
            first = Some(line.to_owned());
        }
    }
    assert_eq!(found.len(), batch.len(), "{arch}: LLVM's output");
    found
}

/// Returns the words that LLVM writes for each text, if it accepts it.
fn assembled(compiler: &Compiler, arch: Arch, texts: &[String]) -> Vec<Option<Vec<u32>>> {
    let input: String =
        texts.iter().enumerate().map(|(number, text)| format!("{text}\ns_nop {number}\n")).collect();
    let output = compiler.assembler(&["-show-encoding", &format!("-mcpu={arch}")], &input);
    let (mut found, mut last) = (Vec::new(), None);
    for line in output.lines().map(str::trim) {
        let Some((text, encoding)) = line.split_once("encoding: [") else { continue };
        let bytes: Option<Vec<u8>> = encoding
            .trim_end_matches(']')
            .split(',')
            .map(|byte| u8::from_str_radix(byte.trim_start_matches("0x"), 16).ok())
            .collect();
        match number_of(text) {
            Some(number) if number == found.len() => found.push(last.take()),
            _ => {
                let words = |bytes: Vec<u8>| {
                    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
                };
                last = bytes.map(words);
            }
        }
    }
    assert_eq!(found.len(), texts.len(), "{arch}: LLVM's output");
    found
}

/// Returns variants of a sample with some bits of the operands, and sometimes of the opcode, changed.
fn variants(words: &[u32], random: &mut Random) -> Vec<[u32; 3]> {
    let mut all = Vec::new();
    for variant in 0..VARIANTS {
        let mut out = [0, 1, 2].map(|index| words.get(index).copied().unwrap_or(random.u64() as u32));
        for _ in 0..variant {
            let bit = random.below(words.len() * 32);
            out[bit / 32] ^= 1 << (bit % 32);
        }
        all.push(out);
    }
    all
}

#[test]
fn llvm_reads_and_writes_what_is_decoded() {
    let Some(compiler) = Compiler::first("llvm-mc", "only committed samples are decoded") else { return };
    let mut random = Random::new(17);
    for arch in Arch::ALL {
        let samples =
            SAMPLES.lines().filter_map(|line| line.strip_prefix(arch.processor())?.strip_prefix('\t'));
        let samples: Vec<Vec<u32>> = samples
            .filter_map(|line| line.split_once('\t'))
            // Their output is what numbers the others.
            .filter(|(name, _)| *name != "s_nop")
            .map(|(_, words)| {
                words.split(' ').filter_map(|word| u32::from_str_radix(word, 16).ok()).collect()
            })
            .collect();
        assert!(samples.len() > 1400, "{arch}: {} samples", samples.len());
        let all: Vec<[u32; 3]> = samples.iter().flat_map(|words| variants(words, &mut random)).collect();
        let (mut read, mut written, mut wrong) = (0, 0, Vec::new());
        for batch in all.chunks(BATCH) {
            let texts = disassembled(&compiler, arch, batch);
            let known: Vec<(&[u32; 3], &String)> =
                batch.iter().zip(&texts).filter_map(|(words, text)| Some((words, text.as_ref()?))).collect();
            // A gfx90a's loads to LDS, which are a bit there and not implemented for flat and global addresses.
            let to_lds = |text: &str| text.ends_with(" lds") && !text.starts_with("buffer");
            // LLVM reads image instructions, for which these GPUs have no unit. The gfx90a's stores from LDS are not implemented.
            let is_left_out = |text: &str| {
                to_lds(text) || text.starts_with("image_") || text.starts_with("buffer_store_lds_dword")
            };
            for (words, text) in known.iter().filter(|(_, text)| !is_left_out(text)) {
                let found = identify(arch, *words).map(|(name, _)| name);
                if found != Ok(mnemonic(text)) {
                    wrong.push(format!("{arch} {words:x?}: {text}: {found:?}"));
                }
                read += 1;
            }
            let texts: Vec<String> =
                known.iter().map(|(_, text)| (*text).clone()).filter(|text| !is_left_out(text)).collect();
            for (text, words) in texts.iter().zip(assembled(&compiler, arch, &texts)) {
                let Some(words) = words else { continue };
                let found = identify(arch, &words);
                if found != Ok((mnemonic(text), words.len())) {
                    wrong.push(format!("{arch} {text}: {words:x?}: {found:?}"));
                }
                written += 1;
            }
        }
        assert!(wrong.is_empty(), "{} of {read} and {written}:\n{}", wrong.len(), wrong.join("\n"));
        println!("{arch}: {read} read, {written} written");
        assert!(
            read > 2 * samples.len() && written > samples.len(),
            "{arch}: {read} read, {written} written"
        );
    }
}
