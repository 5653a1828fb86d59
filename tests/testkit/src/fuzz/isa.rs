//! A fuzz target that decodes instructions.

use std::sync::LazyLock;

use hipr_isa::fault::Cause;
use hipr_isa::{Arch, isa};

/// Encoding, opcode and mnemonic of every instruction that the emulator has.
pub(super) static INSTRUCTIONS: LazyLock<Vec<(&str, u32, &str)>> =
    LazyLock::new(|| isa::implemented(Arch::default()).collect());

/// Length of the longest instruction: two words and a literal.
const INSTRUCTION_WORDS_MAX: usize = 3;
/// Maximum number of words that are decoded of an input.
const WORDS_MAX: usize = 96;

/// Decodes any words: an instruction has a length and does not depend on the words behind it. Instructions assembled from
/// the tables have to be decodable.
pub fn isa_decode(data: &[u8]) {
    let words = data.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    let words: Vec<u32> = words.take(WORDS_MAX).collect();
    let mut at = 0;
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        at += Arch::ALL.map(|arch| decode(arch, rest)).into_iter().max().unwrap_or(1);
    }
    for [index, low, high] in words.as_chunks::<3>().0 {
        assembled(*index, u64::from(*low) | u64::from(*high) << 32);
    }
}

/// Decodes the first instruction; returns how many words to skip.
fn decode(arch: Arch, words: &[u32]) -> usize {
    match isa::identify(arch, words) {
        Ok((name, len)) => {
            assert!((1..=INSTRUCTION_WORDS_MAX.min(words.len())).contains(&len), "{name}: {len} words");
            assert_eq!(isa::identify(arch, &words[..len]), Ok((name, len)), "alone");
            let mut other = words[..len].to_vec();
            other.extend([!0; INSTRUCTION_WORDS_MAX]);
            assert_eq!(isa::identify(arch, &other), Ok((name, len)), "before something else");
            for short in 0..len {
                assert_eq!(
                    isa::identify(arch, &words[..short]),
                    Err(Cause::BadPc),
                    "{short} words of {name}"
                );
            }
            len
        }
        Err(cause) => {
            assert!(!cause.to_string().is_empty());
            1
        }
    }
}

fn assembled(index: u32, operands: u64) {
    let (encoding, op, name) = INSTRUCTIONS[index as usize % INSTRUCTIONS.len()];
    let [first, second] =
        isa::assemble(Arch::default(), encoding, op, operands).expect("an instruction of the table");
    let decoded = isa::identify(Arch::default(), &[first, second, 0]);
    assert!(matches!(decoded, Ok((found, _)) if found == name), "{encoding} {name}: {decoded:?}");
}
