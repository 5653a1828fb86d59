//! Tests loading code objects: segments, zeroed ends and relocations.

mod common;

use common::{data, text};
use hipr_code_object::{CodeObject, LoadError, RelocationKind, RelocationTarget};

const BASE: u64 = 0x7f12_3456_7000;

fn loaded(elf: &[u8]) -> (CodeObject, Vec<u8>) {
    let code = CodeObject::parse(elf).unwrap();
    let mut memory = vec![0xee; code.image_bytes() as usize];
    code.load(elf, BASE, &mut memory).unwrap();
    (code, memory)
}

fn at(memory: &[u8], vaddr: u64) -> u64 {
    u64::from_le_bytes(memory[vaddr as usize..][..8].try_into().unwrap())
}

#[test]
fn variables_have_their_first_values() {
    for name in ["kernels-v4.elf", "kernels-v5.elf", "kernels-v6.elf", "kernels-gfx1100.elf"] {
        let (code, memory) = loaded(&data(name));
        let vaddr = |name| code.global(name).unwrap().vaddr;
        assert_eq!(at(&memory, vaddr("counter")) as u32, 7, "{name}");
        let scale = &memory[vaddr("scale") as usize..][..16];
        assert_eq!(scale, [1f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes).as_flattened(), "{name}");
        let table = code.global("table").unwrap();
        assert!(
            memory[table.vaddr as usize..][..table.size as usize].iter().all(|byte| *byte == 0),
            "{name}"
        );
        // A pointer to another variable: where it is loaded.
        assert_eq!(at(&memory, vaddr("first")), BASE + table.vaddr, "{name}");
        assert_eq!(code.relocations().len(), 1);
    }
}

#[test]
fn every_kind_of_relocation_is_computed() {
    let elf = data("relocations.elf");
    let (code, memory) = loaded(&elf);
    let vaddr = |name| code.global(name).unwrap().vaddr;
    let value = |name| at(&memory, vaddr(name));
    assert_eq!(value("value"), 0x1122_3344_5566_7788);
    assert_eq!(value("absolute"), BASE + vaddr("value") + 4);
    assert_eq!(value("relative"), BASE + vaddr("absolute") + 8 + 1);
    assert_eq!(value("distance"), vaddr("value").wrapping_sub(16).wrapping_sub(vaddr("distance")));
    assert_eq!(value("weak_pointer"), 0);

    // The linker writes few of the kinds that loaders know: give the absolute one other numbers.
    let place = vaddr("absolute");
    let entry = elf.windows(8).rposition(|bytes| bytes == place.to_le_bytes()).unwrap();
    let entries = elf.windows(8).filter(|bytes| *bytes == place.to_le_bytes()).count();
    assert!(entries >= 1);
    let rela = (0..entry + 1)
        .rev()
        .find(|at| elf[*at..].starts_with(&place.to_le_bytes()) && elf[*at + 8] == 3)
        .unwrap();
    let target = BASE + vaddr("value") + 4;
    let distance = target.wrapping_sub(BASE + place);
    let low = |value: u64| value as u32 as u64;
    for (number, expected) in [
        (1, low(target)),
        (2, target >> 32),
        (4, low(distance)),
        (5, distance),
        (6, low(target)),
        (10, low(distance)),
        (11, distance >> 32),
    ] {
        let mut elf = elf.clone();
        elf[rela + 8] = number;
        let (code, memory) = loaded(&elf);
        let kind = RelocationKind::of(number.into()).unwrap();
        assert!(
            code.relocations().iter().any(|relocation| relocation.kind == kind && relocation.vaddr == place)
        );
        assert_eq!(at(&memory, place), expected, "type {number}");
    }
    let mut unknown = elf.clone();
    unknown[rela + 8] = 99;
    assert_eq!(CodeObject::parse(&unknown).unwrap_err(), hipr_code_object::ParseError::Relocation(99));
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let elf = data("undefined.elf");
    let code = CodeObject::parse(&elf).unwrap();
    assert!(
        code.relocations().iter().any(|r| r.target == RelocationTarget::Undefined("elsewhere".to_owned()))
    );
    let mut memory = vec![0; code.image_bytes() as usize];
    assert_eq!(code.load(&elf, BASE, &mut memory), Err(LoadError::Undefined("elsewhere".to_owned())));

    let elf = data("kernels-v6.elf");
    let code = CodeObject::parse(&elf).unwrap();
    let needed = code.image_bytes();
    let mut memory = vec![0; needed as usize - 1];
    assert_eq!(code.load(&elf, BASE, &mut memory), Err(LoadError::Memory { len: needed - 1, needed }));
    let mut memory = vec![0; needed as usize];
    assert!(matches!(code.load(&elf[..5000], BASE, &mut memory), Err(LoadError::File(_))));
    // A relocated place far outside.
    let place = code.relocations()[0].vaddr;
    let rela = elf.windows(8).position(|bytes| bytes == place.to_le_bytes()).unwrap();
    let mut moved = elf.clone();
    let at = (rela..elf.len())
        .find(|at| elf[*at..].starts_with(&place.to_le_bytes()) && elf[*at + 8] == 13)
        .unwrap();
    moved[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    let code = CodeObject::parse(&moved).unwrap();
    assert_eq!(code.load(&moved, BASE, &mut memory), Err(LoadError::Place(u64::MAX)));
}

/// Checks that a file that is not linked is laid out in memory as the linker would do it.
#[test]
fn what_is_not_linked_is_laid_out() {
    let (unlinked, memory) = loaded(&data("unlinked.elf"));
    let linked = CodeObject::parse(&data("one-gfx942.elf")).unwrap();
    let names = |code: &CodeObject| {
        code.kernels().iter().map(|kernel| (kernel.name.clone(), kernel.kernarg_bytes)).collect::<Vec<_>>()
    };
    assert_eq!(names(&unlinked), names(&linked));
    assert_eq!(unlinked.target(), linked.target());
    for kernel in unlinked.kernels() {
        let code = unlinked.segments().iter().find(|segment| segment.executable).unwrap();
        assert!((code.vaddr..code.vaddr + code.memory_bytes).contains(&kernel.entry_vaddr), "{kernel:?}");
        assert_eq!(kernel.entry_vaddr % 256, 0);
        let offset = kernel.entry_vaddr.wrapping_sub(kernel.descriptor_vaddr);
        assert_eq!(at(&memory, kernel.descriptor_vaddr + 16), offset, "the relocated descriptor");
        let original = linked.kernel(&kernel.name).unwrap();
        let entry = |code: &CodeObject, elf: &[u8], vaddr: u64| {
            let segment = code.segments().iter().find(|segment| segment.executable).unwrap();
            elf[segment.file.start + (vaddr - segment.vaddr) as usize..][..4].to_vec()
        };
        assert_eq!(
            entry(&unlinked, &data("unlinked.elf"), kernel.entry_vaddr),
            entry(&linked, &data("one-gfx942.elf"), original.entry_vaddr),
            "the first instruction"
        );
    }
    assert!(!unlinked.kernels().is_empty());
}

/// Checks that who defines a symbol that the code object does not gets its address relocated, and only there.
#[test]
fn undefined_symbols_are_relocated_with_given_addresses() {
    let elf = data("undefined.elf");
    let code = CodeObject::parse(&elf).unwrap();
    assert_eq!(code.undefined().collect::<Vec<_>>(), ["elsewhere"]);
    assert_eq!(code.check_relocations(|_| None), Err(LoadError::Undefined("elsewhere".to_owned())));
    assert_eq!(code.check_relocations(|name| (name == "elsewhere").then_some(1)), Ok(()));
    let placed = |address: Option<u64>| {
        let mut memory = vec![0; code.image_bytes() as usize];
        let mut store = |vaddr: u64, bytes: &[u8]| {
            memory[vaddr as usize..][..bytes.len()].copy_from_slice(bytes);
            true
        };
        code.place(&elf, code.image_bytes(), &mut store).unwrap();
        let result = code.relocate(BASE, |name| address.filter(|_| name == "elsewhere"), store);
        (result, memory)
    };
    let (result, first) = placed(Some(0xaaaa_bbbb_cccc_dddd));
    assert_eq!(result, Ok(()));
    let pointer = code.global("undefined_pointer").unwrap().vaddr;
    assert_eq!(at(&first, pointer), 0xaaaa_bbbb_cccc_dddd);
    let (_, second) = placed(Some(0x1111_2222_3333_4444));
    let differs: Vec<_> = (0..first.len()).filter(|&place| first[place] != second[place]).collect();
    assert_eq!(differs, (pointer as usize..pointer as usize + 8).collect::<Vec<_>>());
    assert_eq!(placed(None).0, Err(LoadError::Undefined("elsewhere".to_owned())));

    let short = code.image_bytes() - 1;
    let error = LoadError::Memory { len: short, needed: code.image_bytes() };
    assert_eq!(code.place(&elf, short, |_, _| true), Err(error));
    assert_eq!(code.undefined().count(), 1);
    for name in ["kernels-v6.elf", "relocations.elf", "unlinked.elf"] {
        assert_eq!(CodeObject::parse(&data(name)).unwrap().undefined().count(), 0, "{name}");
    }
}

/// Checks the symbols against what llvm-readelf prints, in its order.
#[test]
fn symbols_are_those_of_the_file() {
    for name in ["kernels-v4", "kernels-v5", "kernels-v6", "kernels-gfx1100", "relocations"] {
        let elf = data(&format!("{name}.elf"));
        let code = CodeObject::parse(&elf).unwrap();
        let symbols = code.symbols(&elf).unwrap();
        let lines: Vec<_> =
            symbols.iter().map(|s| format!("{} {:#018x} {}", s.name, s.vaddr, s.size)).collect();
        assert_eq!(lines.join("\n"), text(&format!("{name}.symbols")).trim_end(), "{name}");
        for symbol in &symbols {
            let known = code.kernels().iter().find(|kernel| kernel.symbol == symbol.name);
            assert_eq!(symbol.kernel.as_ref(), known, "{name}");
            let constant = symbol.kernel.is_some() || symbol.name == "scale";
            assert_eq!(symbol.writable, !constant, "{name}: {}", symbol.name);
            assert!(
                symbol.align.is_power_of_two() && symbol.vaddr.is_multiple_of(symbol.align),
                "{symbol:?}"
            );
        }
    }
}

/// Checks that a kernel which the metadata does not name has what its descriptor says.
#[test]
fn a_descriptor_without_metadata_is_a_kernel() {
    for name in ["kernels-v6.elf", "descriptor.elf", "unlinked.elf"] {
        let elf = data(name);
        let named = CodeObject::parse(&elf).unwrap();
        let mut bare = elf.clone();
        // The note becomes one of another owner.
        let notes = elf.windows(7).enumerate().filter(|(_, bytes)| *bytes == b"AMDGPU\0");
        notes.for_each(|(at, _)| bare[at] = b'B');
        let code = CodeObject::parse(&bare).unwrap();
        assert_eq!(code.kernels().len(), 0, "{name}");
        let symbols = code.symbols(&bare).unwrap();
        let kernels: Vec<_> = symbols.iter().filter_map(|symbol| symbol.kernel.as_ref()).collect();
        assert_eq!(kernels.len(), named.kernels().len(), "{name}");
        for kernel in kernels {
            let known = named.kernel(&kernel.name).unwrap();
            assert_eq!(kernel.descriptor, known.descriptor);
            assert_eq!(
                (kernel.descriptor_vaddr, kernel.entry_vaddr),
                (known.descriptor_vaddr, known.entry_vaddr)
            );
            assert_eq!(kernel.kernarg_bytes, known.descriptor.kernarg_bytes);
            assert_eq!(kernel.private_segment_bytes, known.descriptor.private_segment_bytes);
            assert_eq!(code.is_launchable(kernel), named.is_launchable(known));
        }
    }
}
