//! The tables against the list of all gfx942 opcodes.

mod bench;

use std::collections::HashMap;

use bench::Random;
use hipr_sim::isa::{assemble, identify, implemented};

static OPCODES: &str = include_str!("data/opcodes_gfx942.tsv");

/// Encoding and opcode to mnemonic, without `_e32` and the like.
fn list() -> HashMap<(&'static str, u32), &'static str> {
    OPCODES
        .lines()
        .skip(1)
        .map(|line| {
            let mut columns = line.split('\t');
            let encoding = columns.next().unwrap();
            let op = u32::from_str_radix(columns.next().unwrap().trim_start_matches("0x"), 16).unwrap();
            let name = columns.next().unwrap();
            let name = name.strip_suffix("_e32").or(name.strip_suffix("_e64")).unwrap_or(name);
            ((encoding, op), name)
        })
        .collect()
}

#[test]
fn every_row_is_an_instruction_of_that_number_and_name() {
    let list = list();
    let mut count = 0;
    for (encoding, op, name) in implemented() {
        assert_eq!(list.get(&(encoding, op)), Some(&name), "{encoding} {op:#x}");
        count += 1;
    }
    assert!(count > 20, "only {count} rows");
}

#[test]
fn what_is_assembled_is_decoded() {
    let mut random = Random::new(3);
    for (encoding, op, name) in implemented() {
        let operands = (0..50).map(|_| random.u64()).chain([0, u64::MAX]);
        for operands in operands {
            let words = assemble(encoding, op, operands).expect("an instruction of the table");
            let (found, len_words) = identify(&[words[0], words[1], 0])
                .unwrap_or_else(|cause| panic!("{encoding} {name}: {cause}"));
            assert_eq!(found, name, "{encoding} {op:#x} {operands:#x}");
            assert!((1..=3).contains(&len_words), "{encoding} {name}: {len_words} words");
        }
    }
    assert_eq!(assemble("SOP9", 0, 0), None);
    assert_eq!(assemble("SOP2", 0x7f, 0), None);
    assert_eq!(assemble("SOP2", u32::MAX, 0), None);
}
