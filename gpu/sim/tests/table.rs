//! The tables against the list of all gfx942 opcodes.

use std::collections::HashMap;

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
    for (encoding, op, name) in hipr_sim::isa::implemented() {
        assert_eq!(list.get(&(encoding, op)), Some(&name), "{encoding} {op:#x}");
        count += 1;
    }
    assert!(count > 20, "only {count} rows");
}
