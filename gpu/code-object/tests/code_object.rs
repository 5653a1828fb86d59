//! Compares what this crate reads from code objects with what LLVM's own tools read from the same files.

mod common;

use std::collections::BTreeMap;

use common::{data, target, text};
use hipr_code_object::{AbiVersion, Arg, CodeObject, Kernel, ParseError, ValueKind};

const COMPILED: [(&str, AbiVersion, &str); 4] = [
    ("kernels-v4", AbiVersion::V4, "gfx942"),
    ("kernels-v5", AbiVersion::V5, "gfx942"),
    ("kernels-v6", AbiVersion::V6, "gfx942"),
    ("kernels-gfx1100", AbiVersion::V6, "gfx1100"),
];

fn parse(name: &str) -> CodeObject {
    CodeObject::parse(&data(&format!("{name}.elf"))).unwrap()
}

type Fields = BTreeMap<String, String>;

/// Parses the kernels that `llvm-readelf --notes` prints: each one's fields and its arguments' fields.
fn printed_kernels(name: &str) -> Vec<(Fields, Vec<Fields>)> {
    let mut kernels: Vec<(Fields, Vec<Fields>)> = Vec::new();
    let mut in_args = false;
    for line in text(&format!("{name}.notes")).lines() {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        let (starts_item, body) = match body.strip_prefix("- ") {
            Some(rest) => (true, rest),
            None => (false, body),
        };
        if starts_item && indent == 2 {
            kernels.push(Default::default());
        }
        let Some((key, value)) = body.split_once(':') else { continue };
        let (key, value) = (key.to_owned(), value.trim().trim_matches('\'').to_owned());
        let Some((fields, args)) = kernels.last_mut() else { continue };
        if !key.starts_with('.') {
            break;
        }
        match (indent, starts_item) {
            (2, true) | (4, false) => {
                in_args = key == ".args";
                fields.insert(key, value);
            }
            _ if in_args => {
                if starts_item {
                    args.push(Fields::new());
                }
                args.last_mut().unwrap().insert(key, value);
            }
            _ => {}
        }
    }
    kernels
}

fn fields_of_arg(arg: &Arg) -> Fields {
    let mut fields = Fields::new();
    fields.insert(".offset".to_owned(), arg.offset.to_string());
    fields.insert(".size".to_owned(), arg.size.to_string());
    fields.insert(".value_kind".to_owned(), arg.kind.as_str().to_owned());
    for (key, value) in
        [(".address_space", &arg.address_space), (".name", &arg.name), (".actual_access", &arg.access)]
    {
        if let Some(value) = value {
            fields.insert(key.to_owned(), value.clone());
        }
    }
    fields
}

fn check_fields(kernel: &Kernel, printed: &Fields) {
    for (key, value) in [
        (".name", kernel.name.clone()),
        (".symbol", kernel.symbol.clone()),
        (".kernarg_segment_size", kernel.kernarg_bytes.to_string()),
        (".kernarg_segment_align", kernel.kernarg_align.to_string()),
        (".group_segment_fixed_size", kernel.group_segment_bytes.to_string()),
        (".private_segment_fixed_size", kernel.private_segment_bytes.to_string()),
        (".wavefront_size", kernel.wavefront_size.to_string()),
        (".max_flat_workgroup_size", kernel.max_flat_workgroup_size.to_string()),
        (".sgpr_count", kernel.sgpr_count.to_string()),
        (".vgpr_count", kernel.vgpr_count.to_string()),
        (".sgpr_spill_count", kernel.sgpr_spill_count.to_string()),
        (".vgpr_spill_count", kernel.vgpr_spill_count.to_string()),
        (".language", kernel.language.clone().unwrap()),
    ] {
        assert_eq!(printed.get(key), Some(&value), "{} {key}", kernel.name);
    }
    // Keys that not every version and processor has.
    for (key, value) in [
        (".agpr_count", kernel.agpr_count.to_string()),
        (".uniform_work_group_size", u32::from(kernel.uniform_work_group_size).to_string()),
        (".uses_dynamic_stack", kernel.uses_dynamic_stack.to_string()),
    ] {
        assert!(printed.get(key).is_none_or(|printed| *printed == value), "{} {key}", kernel.name);
    }
}

#[test]
fn metadata_is_what_readelf_prints() {
    for (name, ..) in COMPILED {
        let code = parse(name);
        let mut printed = printed_kernels(name);
        printed.sort_by_key(|(fields, _)| fields[".name"].clone());
        assert_eq!(printed.len(), 7, "{name}");
        assert_eq!(code.kernels().len(), printed.len(), "{name}");
        for (kernel, (fields, args)) in code.kernels().iter().zip(&printed) {
            check_fields(kernel, fields);
            assert_eq!(
                &kernel.args.iter().map(fields_of_arg).collect::<Vec<_>>(),
                args,
                "{name} {}",
                kernel.name
            );
            assert_eq!(code.kernel(&kernel.name), Some(kernel));
        }
        assert_eq!(code.kernel("saxp"), None);
    }
}

#[test]
fn symbols_are_what_readelf_prints() {
    for (name, ..) in COMPILED {
        let code = parse(name);
        let mut globals = 0;
        for line in text(&format!("{name}.symbols")).lines() {
            let [symbol, vaddr, size] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let vaddr = u64::from_str_radix(vaddr.trim_start_matches("0x"), 16).unwrap();
            if let Some(kernel) = symbol.strip_suffix(".kd") {
                assert_eq!(code.kernel(kernel).unwrap().descriptor_vaddr, vaddr, "{name} {symbol}");
                assert_eq!(code.global(symbol), None);
            } else {
                let global = code.global(symbol).unwrap();
                assert_eq!((global.vaddr, global.size), (vaddr, size.parse().unwrap()), "{name} {symbol}");
                globals += 1;
            }
        }
        assert_eq!(code.globals().len(), globals, "{name}");
        assert_eq!(globals, 5, "{name}");
    }
}

#[test]
fn versions_and_targets_are_told_apart() {
    for (name, abi, processor) in COMPILED {
        let code = parse(name);
        assert_eq!((code.abi(), code.target()), (abi, &target(processor)), "{name}");
        assert_eq!(code.generic_version(), None);
    }
}

#[test]
fn descriptors_agree_with_metadata() {
    for (name, _, processor) in COMPILED {
        let code = parse(name);
        for kernel in code.kernels() {
            let descriptor = &kernel.descriptor;
            assert_eq!(descriptor.kernarg_bytes, kernel.kernarg_bytes, "{name} {}", kernel.name);
            assert_eq!(descriptor.group_segment_bytes, kernel.group_segment_bytes);
            assert_eq!(descriptor.private_segment_bytes, kernel.private_segment_bytes);
            assert_eq!(
                descriptor.uses_scratch(),
                kernel.private_segment_bytes > 0 || kernel.uses_dynamic_stack
            );
            assert_eq!(descriptor.wave32(), kernel.wavefront_size == 32);
            assert_eq!(descriptor.uses_dynamic_stack(), kernel.uses_dynamic_stack);
            // Registers come in granules, and a wave has one granule at least.
            assert_eq!(
                descriptor.vgprs(processor),
                kernel.vgpr_count.max(1).next_multiple_of(8),
                "{}",
                kernel.name
            );
            assert!(
                descriptor.has_kernarg_segment_ptr() || kernel.kernarg_bytes == 0,
                "{name} {}",
                kernel.name
            );
            assert!(descriptor.workgroup_id_x());
            // Round to nearest; f32 and f64 denormals are kept.
            let mode = descriptor.float_mode();
            assert_eq!((mode.round_32, mode.round_16_64, mode.denorm_32, mode.denorm_16_64), (0, 0, 3, 3));
            // The entry is where instructions are.
            let text = code.segments().iter().find(|segment| segment.executable).unwrap();
            assert!(
                (text.vaddr..text.vaddr + text.memory_bytes).contains(&kernel.entry_vaddr),
                "{name} {}",
                kernel.name
            );
            assert_eq!(kernel.entry_vaddr % 256, 0);
        }
        assert!(code.kernel("recursion").unwrap().uses_dynamic_stack, "{name}");
        assert_eq!(code.kernel("local_memory").unwrap().max_flat_workgroup_size, 64, "{name}");
        assert_eq!(code.kernel("local_memory").unwrap().group_segment_bytes, 256, "{name}");
    }
    // Block sizes come from the dispatch packet in v4 and from hidden arguments later.
    assert!(parse("kernels-v4").kernel("saxpy").unwrap().descriptor.has_dispatch_ptr());
    assert!(!parse("kernels-v5").kernel("saxpy").unwrap().descriptor.has_dispatch_ptr());
}

#[test]
fn every_field_of_a_descriptor_is_read() {
    let code = parse("descriptor");
    let kernel = code.kernel("all").unwrap();
    let descriptor = &kernel.descriptor;
    assert_eq!(
        (descriptor.group_segment_bytes, descriptor.private_segment_bytes, descriptor.kernarg_bytes),
        (96, 36, 120)
    );
    assert_eq!(kernel.descriptor_vaddr.wrapping_add_signed(descriptor.entry_offset), kernel.entry_vaddr);
    assert_eq!((descriptor.user_sgprs(), descriptor.workitem_id_dims()), (16, 3));
    assert_eq!((descriptor.preload_dwords(), descriptor.preload_offset_dwords()), (5, 3));
    assert_eq!(
        (descriptor.vgprs("gfx942"), descriptor.accum_offset(), descriptor.sgprs_gfx9()),
        (72, 44, 48)
    );
    let mode = descriptor.float_mode();
    assert_eq!((mode.round_32, mode.round_16_64, mode.denorm_32, mode.denorm_16_64), (1, 2, 1, 2));
    for (name, set) in [
        ("dispatch_ptr", descriptor.has_dispatch_ptr()),
        ("queue_ptr", descriptor.has_queue_ptr()),
        ("kernarg_segment_ptr", descriptor.has_kernarg_segment_ptr()),
        ("dispatch_id", descriptor.has_dispatch_id()),
        ("private_segment_size", descriptor.has_private_segment_size()),
        ("dynamic_stack", descriptor.uses_dynamic_stack()),
        ("scratch", descriptor.uses_scratch()),
        ("workgroup_id_x", descriptor.workgroup_id_x()),
        ("workgroup_id_y", descriptor.workgroup_id_y()),
        ("workgroup_id_z", descriptor.workgroup_id_z()),
        ("workgroup_info", descriptor.workgroup_info()),
        ("fp16_overflow", descriptor.fp16_overflow()),
        ("tg_split", descriptor.tg_split()),
        ("not private_segment_buffer", !descriptor.has_private_segment_buffer()),
        ("not flat_scratch_init", !descriptor.has_flat_scratch_init()),
        ("not dx10_clamp", !descriptor.dx10_clamp()),
        ("not ieee_mode", !descriptor.ieee_mode()),
        ("not wave32", !descriptor.wave32()),
    ] {
        assert!(set, "{name}");
    }
    // What HIP kernels have where that one differs.
    let saxpy = parse("kernels-v6").kernel("saxpy").unwrap().descriptor;
    assert!(saxpy.dx10_clamp() && saxpy.ieee_mode() && !saxpy.tg_split() && !saxpy.workgroup_id_y());
    let saxpy = parse("kernels-gfx1100").kernel("saxpy").unwrap().descriptor;
    assert!(saxpy.mem_ordered() && saxpy.forward_progress());
}

#[test]
fn what_hip_does_not_use_is_read_too() {
    let code = parse("descriptor");
    assert_eq!(code.printf_formats(), ["1:1:4:%d\\n"]);
    let kernel = code.kernel("all").unwrap();
    assert_eq!(
        (kernel.kind.as_deref(), kernel.kernarg_align, kernel.language.as_deref()),
        (Some("init"), 16, None)
    );
    let [local, queue] = kernel.args.as_slice() else { panic!("{:?}", kernel.args) };
    assert_eq!((local.name.as_deref(), local.pointee_align), (Some("local"), Some(16)));
    assert_eq!(local.kind, ValueKind::DynamicSharedPointer);
    assert_eq!(queue.kind, ValueKind::HiddenQueuePtr);

    // A kind of a later compiler stays readable.
    let mut elf = data("descriptor.elf");
    let at = elf.windows(16).position(|bytes| bytes == b"hidden_queue_ptr").unwrap();
    elf[at..at + 16].copy_from_slice(b"hidden_of_future");
    let code = CodeObject::parse(&elf).unwrap();
    assert_eq!(code.kernel("all").unwrap().args[1].kind, ValueKind::Unknown("hidden_of_future".to_owned()));
}

#[test]
fn notes_of_all_linked_objects_are_merged() {
    let code = parse("notes");
    let names: Vec<_> = code.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["one", "three", "two"]);
    assert_eq!(code.kernel("two").unwrap().param_layout(), [(0, 8), (8, 8)]);
    assert!(code.global("mark").is_some());
}

/// Returns the file with `to` instead of `from` in the type field of the first header of a table that has it.
fn with_type(elf: &[u8], table: usize, stride: usize, field: usize, from: u32, to: u32) -> Vec<u8> {
    let mut elf = elf.to_vec();
    let mut at = (table + field..elf.len()).step_by(stride);
    let at = at.find(|at| elf[*at..*at + 4] == from.to_le_bytes()).unwrap();
    elf[at..at + 4].copy_from_slice(&to.to_le_bytes());
    elf
}

#[test]
fn sections_stand_in_for_segments_and_static_symbols_for_dynamic_ones() {
    for name in ["kernels-v6", "relocations"] {
        let elf = data(&format!("{name}.elf"));
        let code = CodeObject::parse(&elf).unwrap();
        // PT_NOTE becomes PT_NULL.
        let no_note_segment = with_type(&elf, 64, 56, 0, 4, 0);
        assert_eq!(CodeObject::parse(&no_note_segment).unwrap().kernels(), code.kernels(), "{name}");
        // SHT_DYNSYM becomes a type that nobody knows.
        let sections = u64::from_le_bytes(elf[40..48].try_into().unwrap()) as usize;
        let no_dynamic_symbols = with_type(&elf, sections, 64, 4, 11, 0x6fff_0000);
        let other = CodeObject::parse(&no_dynamic_symbols)
            .map(|code| (code.kernels().to_vec(), code.globals().to_vec()));
        match name {
            // Its relocations have symbols, which are dynamic ones.
            "relocations" => assert!(matches!(other, Err(ParseError::Elf(_))), "{other:?}"),
            _ => assert_eq!(other, Ok((code.kernels().to_vec(), code.globals().to_vec()))),
        }
        // Neither local nor undefined symbols are variables.
        assert_eq!((code.global("inner"), parse("undefined").global("elsewhere")), (None, None));
    }
}

#[test]
fn sizes_that_must_be_kept_are_read() {
    let code = parse("relocations");
    let tiny = code.kernel("tiny").unwrap();
    assert_eq!(tiny.reqd_workgroup_size, Some([16, 4, 2]));
    assert_eq!((tiny.max_flat_workgroup_size, tiny.kernarg_bytes, tiny.args.len()), (256, 0, 0));
}

#[test]
fn code_may_start_at_any_byte() {
    let elf = data("kernels-v6.elf");
    let shifted = [&[0][..], &elf].concat();
    assert_eq!(
        CodeObject::parse(&shifted[1..]).unwrap().kernels(),
        CodeObject::parse(&elf).unwrap().kernels()
    );
}

#[test]
fn other_files_are_refused_with_their_reason() {
    let patched = |at: usize, value: u8| {
        let mut elf = data("kernels-v6.elf");
        elf[at] = value;
        CodeObject::parse(&elf).unwrap_err()
    };
    assert_eq!(patched(7, 0), ParseError::OsAbi(0));
    // Code object v3, and one after v6.
    assert_eq!(patched(8, 1), ParseError::AbiVersion(1));
    assert_eq!(patched(8, 5), ParseError::AbiVersion(5));
    assert_eq!(patched(16, 2), ParseError::NotLinked(2));
    assert!(matches!(patched(0, 0), ParseError::Elf(_)));
    // A processor that the table does not have is named by the metadata.
    let mut elf = data("kernels-v6.elf");
    elf[48] = 0xff;
    assert_eq!(CodeObject::parse(&elf).unwrap().target(), &target("gfx942"));
}
