//! Tests of the tables against LLVM's lists of all opcodes.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::bench::Random;
use hipr_isa::Arch;
use hipr_isa::isa::{assemble, identify, implemented};

static GFX90A: &str = include_str!("data/opcodes_gfx90a.tsv");
static GFX942: &str = include_str!("data/opcodes_gfx942.tsv");

/// Returns LLVM's mnemonic (without suffixes such as `_e32`) by encoding and opcode.
fn list(arch: Arch) -> HashMap<(&'static str, u32), &'static str> {
    let text = match arch {
        Arch::Gfx90a => GFX90A,
        Arch::Gfx942 => GFX942,
    };
    let row = |line: &'static str| {
        let mut columns = line.split('\t');
        let encoding = columns.next().unwrap();
        let op = u32::from_str_radix(columns.next().unwrap().trim_start_matches("0x"), 16).unwrap();
        let name = columns.next().unwrap();
        let name = name.strip_suffix("_e32").or(name.strip_suffix("_e64")).unwrap_or(name);
        ((encoding, op), name)
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn every_row_is_an_instruction_of_that_number_and_name() {
    for arch in Arch::ALL {
        let list = list(arch);
        for (encoding, op, name) in implemented(arch) {
            assert_eq!(list.get(&(encoding, op)), Some(&name), "{arch} {encoding} {op:#x}");
        }
    }
}

#[test]
fn every_instruction_has_a_row() {
    for arch in Arch::ALL {
        let rows: HashSet<_> = implemented(arch).map(|(encoding, op, _)| (encoding, op)).collect();
        let missing: BTreeSet<_> = list(arch).into_iter().filter(|(key, _)| !rows.contains(key)).collect();
        assert!(missing.is_empty(), "{arch}: {missing:x?}");
    }
}

#[test]
fn what_is_assembled_is_decoded() {
    let mut random = Random::new(3);
    for (arch, (encoding, op, name)) in
        Arch::ALL.into_iter().flat_map(|arch| implemented(arch).map(move |row| (arch, row)))
    {
        let operands = (0..50).map(|_| random.u64()).chain([0, u64::MAX]);
        for operands in operands {
            let words = assemble(arch, encoding, op, operands).expect("an instruction of the table");
            let (found, len_words) = identify(arch, &[words[0], words[1], 0])
                .unwrap_or_else(|cause| panic!("{arch} {encoding} {name}: {cause}"));
            assert_eq!(found, name, "{arch} {encoding} {op:#x} {operands:#x}");
            assert!((1..=3).contains(&len_words), "{encoding} {name}: {len_words} words");
        }
    }
    assert_eq!(assemble(Arch::Gfx942, "SOP9", 0, 0), None);
    assert_eq!(assemble(Arch::Gfx942, "SOP2", 0x7f, 0), None);
    assert_eq!(assemble(Arch::Gfx942, "SOP2", u32::MAX, 0), None);
}

#[test]
fn the_document_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/instructions.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    let same = written == hipr_isa::isa::document();
    assert!(
        same,
        "docs/instructions.md: write it anew with `cargo run -p hipr-isa --example instruction-doc`"
    );
}
