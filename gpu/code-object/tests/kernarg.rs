//! Tests kernarg segments: explicit parameters and hidden arguments of each code object version.

mod common;

use common::data;
use hipr_code_object::{CodeObject, KernargError, Kernel, LaunchFacts, ValueKind};

fn kernel(file: &str, name: &str) -> Kernel {
    CodeObject::parse(&data(file)).unwrap().kernel(name).unwrap().clone()
}

fn number(segment: &[u8], at: u32, len: usize) -> u64 {
    segment[at as usize..][..len].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[test]
fn parameters_follow_the_c_layout() {
    for file in ["kernels-v4.elf", "kernels-v5.elf", "kernels-v6.elf", "kernels-gfx1100.elf"] {
        let mixed = kernel(file, "mixed");
        assert_eq!(mixed.param_layout(), [(0, 24), (24, 1), (26, 2), (32, 8), (40, 8)], "{file}");
        assert_eq!(mixed.explicit_bytes(), 48);
        assert_eq!(kernel(file, "nothing").param_layout(), []);
        assert_eq!(kernel(file, "nothing").explicit_bytes(), 0);
    }
}

fn facts() -> LaunchFacts {
    LaunchFacts {
        global_offset: [1, 2, 3],
        hostcall_buffer: 0x1111_2222_3333_4444,
        ..LaunchFacts::blocks([300, 70_000, 5], [64, 2, 3], 256)
    }
}

#[test]
fn v5_and_v6_hidden_arguments_are_at_their_offsets() {
    for file in ["kernels-v5.elf", "kernels-v6.elf", "kernels-gfx1100.elf"] {
        let local_memory = kernel(file, "local_memory");
        let pointer = 0xabcd_0000_1234_u64.to_le_bytes();
        let segment = local_memory.kernarg_of_params(&[&pointer], &facts()).unwrap();
        // The base is where the parameters end; 256 bytes are reserved.
        assert_eq!((local_memory.explicit_bytes(), segment.len()), (8, 8 + 256), "{file}");
        assert_eq!(segment[..8], pointer);
        for (offset, len, value) in [
            (0, 4, 300),
            (4, 4, 70_000),
            (8, 4, 5),
            (12, 2, 64),
            (14, 2, 2),
            (16, 2, 3),
            (18, 2, 0),
            (20, 2, 0),
            (22, 2, 0),
            (40, 8, 1),
            (48, 8, 2),
            (56, 8, 3),
            (64, 2, 3),
            (120, 4, 256),
        ] {
            assert_eq!(number(&segment, 8 + offset, len), value, "{file} +{offset}");
        }
        // Not asked for, so not filled.
        assert!(!local_memory.uses(&ValueKind::HiddenHostcallBuffer));
        assert_eq!(number(&segment, 8 + 80, 8), 0);
        let prints = kernel(file, "prints");
        assert!(prints.uses(&ValueKind::HiddenHostcallBuffer), "{file}");
        let segment = prints.kernarg_of_params(&[&5u32.to_le_bytes()], &facts()).unwrap();
        assert_eq!(number(&segment, 8 + 80, 8), 0x1111_2222_3333_4444, "{file}");
    }
}

#[test]
fn v4_hidden_arguments_are_at_their_offsets() {
    let saxpy = kernel("kernels-v4.elf", "saxpy");
    assert_eq!((saxpy.kernarg_bytes, saxpy.hidden_args().count()), (24, 0));
    let prints = kernel("kernels-v4.elf", "prints");
    let segment = prints.kernarg_of_params(&[&5u32.to_le_bytes()], &facts()).unwrap();
    assert_eq!(segment.len(), 8 + 56);
    for (offset, value) in [(0, 1), (8, 2), (16, 3), (24, 0x1111_2222_3333_4444), (32, 0), (40, 0), (48, 0)] {
        assert_eq!(number(&segment, 8 + offset, 8), value, "+{offset}");
    }
}

#[test]
fn partial_workgroups_are_counted_apart() {
    let facts = LaunchFacts::work_items([1000, 64, 7], [64, 64, 0], 0);
    assert_eq!(facts.block_count, [15, 1, 7]);
    assert_eq!(facts.remainder, [40, 0, 0]);
    assert_eq!(facts.group_size, [64, 64, 0]);
    assert_eq!(facts.grid_dims, 3);
}

#[test]
fn a_ready_buffer_is_taken_as_it_is() {
    let mixed = kernel("kernels-v6.elf", "mixed");
    let buffer: Vec<u8> = (1..=60).collect();
    let segment = mixed.kernarg_of_buffer(&buffer, &facts()).unwrap();
    assert_eq!(segment.len(), mixed.kernarg_bytes as usize);
    assert_eq!(segment[..48], buffer[..48]);
    assert!(segment[48..].iter().all(|byte| *byte == 0) || mixed.hidden_args().count() > 0);
    assert_eq!(
        mixed.kernarg_of_buffer(&buffer[..47], &facts()),
        Err(KernargError::Flat { len: 47, needed: 48 })
    );
    // The hidden arguments come after it as they do after single values.
    let saxpy = kernel("kernels-v6.elf", "saxpy");
    let values: [&[u8]; 4] = [&[1, 0, 0, 0], &[2, 0, 0, 0], &[3; 8], &[4; 8]];
    let from_params = saxpy.kernarg_of_params(&values, &facts()).unwrap();
    assert_eq!(saxpy.kernarg_of_buffer(&values.concat(), &facts()).unwrap(), from_params);
    assert_eq!(number(&from_params, 24, 4), 300);
}

#[test]
fn hidden_arguments_touch_nothing_else() {
    for file in ["kernels-v4.elf", "kernels-v6.elf"] {
        let prints = kernel(file, "prints");
        let mut segment = vec![0xee; prints.kernarg_bytes as usize + 8];
        prints.write_hidden(&mut segment, &facts()).unwrap();
        for (at, byte) in segment.iter().enumerate() {
            let hidden =
                prints.hidden_args().any(|arg| (arg.offset..arg.offset + arg.size).contains(&(at as u32)));
            assert!(hidden || *byte == 0xee, "{file} byte {at}");
        }
    }
    // A lone argument that is shorter than the number it holds.
    let mut lone = kernel("kernels-v6.elf", "prints");
    lone.args.retain(|arg| arg.kind == ValueKind::HiddenGridDims);
    let mut segment = vec![0xee; lone.kernarg_bytes as usize];
    lone.write_hidden(&mut segment, &facts()).unwrap();
    let at = lone.args[0].offset as usize;
    assert_eq!(segment[at..at + 4], [3, 0, 0xee, 0xee]);
}

#[test]
fn arguments_must_match_the_parameters() {
    let saxpy = kernel("kernels-v6.elf", "saxpy");
    let (four, eight) = (&[0; 4][..], &[0; 8][..]);
    assert_eq!(
        saxpy.kernarg_of_params(&[four, four, eight], &facts()),
        Err(KernargError::Count { given: 3, params: 4 })
    );
    assert_eq!(
        saxpy.kernarg_of_params(&[four, four, eight, four], &facts()),
        Err(KernargError::Size { index: 3, len: 4, size: 8 })
    );
    let needed = saxpy.kernarg_bytes as usize;
    assert_eq!(
        saxpy.write_hidden(&mut vec![0; needed - 1], &facts()),
        Err(KernargError::Segment { len: needed - 1, needed })
    );
}

#[test]
fn every_hidden_kind_has_its_value() {
    let facts = LaunchFacts {
        block_count: [1, 2, 3],
        group_size: [4, 5, 6],
        remainder: [7, 8, 9],
        global_offset: [10, 11, 12],
        grid_dims: 13,
        dynamic_lds_bytes: 14,
        hostcall_buffer: 15,
        printf_buffer: 16,
        multigrid_sync_arg: 17,
        heap_v1: 18,
        default_queue: 19,
        completion_action: 20,
        queue_ptr: 21,
        private_base: 22,
        shared_base: 23,
    };
    // The names and the order of LLVM's AMDGPU usage guide.
    let names = [
        "block_count_x",
        "block_count_y",
        "block_count_z",
        "group_size_x",
        "group_size_y",
        "group_size_z",
        "remainder_x",
        "remainder_y",
        "remainder_z",
        "global_offset_x",
        "global_offset_y",
        "global_offset_z",
        "grid_dims",
        "dynamic_lds_size",
        "hostcall_buffer",
        "printf_buffer",
        "multigrid_sync_arg",
        "heap_v1",
        "default_queue",
        "completion_action",
        "queue_ptr",
        "private_base",
        "shared_base",
    ];
    for (value, name) in (1..).zip(names) {
        let kind = ValueKind::of(&format!("hidden_{name}"));
        assert!(kind.is_hidden() && !matches!(kind, ValueKind::Unknown(_)), "{name}");
        assert_eq!(facts.value(&kind), Some(value), "{name}");
    }
    assert_eq!(facts.value(&ValueKind::HiddenNone), None);
    let unknown = ValueKind::of("hidden_of_tomorrow");
    assert_eq!((unknown.is_hidden(), facts.value(&unknown)), (true, None));
    assert!(!ValueKind::of("by_value").is_hidden());
    assert!(!ValueKind::of("global_buffer").is_hidden());
}
