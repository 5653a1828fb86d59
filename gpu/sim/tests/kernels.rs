//! Tests of real kernels, compiled without and with optimization: launch state, hidden arguments, LDS, barriers, scratch,
//! atomics, groups that wait for each other, and faults.

mod session;

use hipr_device::{Args, Context as _, Launch, WaitFor};
use hipr_proto::HipError;
use session::{Gate, LEVELS, Session, Values, gpu};

#[test]
fn saxpy_with_a_partial_last_group() {
    let gpu = gpu(2);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "saxpy");
        let n = 1000;
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let y: Vec<f32> = (0..n + 24).map(|i| 100.0 - i as f32).collect();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        let (px, py) = (session.buffer(&bits(&x)), session.buffer(&bits(&y)));
        let values = Values::new().f32(3.0).u64(px).u64(py).u32(n);
        // 100 work-items: two waves, the second one with 36 lanes.
        session.launch(kernel, 11, 100, &values).unwrap();
        session.sync_all().unwrap();
        let out = session.read(py, y.len());
        for (i, (&bits, &before)) in out.iter().zip(&y).enumerate() {
            let expected = if i < n as usize { 3.0 * x[i] + before } else { before };
            assert_eq!(f32::from_bits(bits), expected, "{level} element {i}");
        }
    }
}

#[test]
fn lds_and_barriers_reduce() {
    let gpu = gpu(2);
    for (level, image) in LEVELS {
        for block in [1, 64, 128, 1024] {
            let mut session = Session::open(&gpu);
            let kernel = session.kernel(image, "reduce");
            let groups = 5;
            let x: Vec<u32> = (0..groups * block).map(|i| i * i).collect();
            let (px, out) = (session.buffer(&x), session.malloc(4 * u64::from(groups)));
            session.launch(kernel, groups, block, &Values::new().u64(px).u64(out)).unwrap();
            session.sync_all().unwrap();
            let expected: Vec<u32> = x
                .chunks(block as usize)
                .map(|part| part.iter().fold(0u32, |sum, x| sum.wrapping_add(*x)))
                .collect();
            assert_eq!(session.read(out, groups as usize), expected, "{level} block {block}");
        }
    }
}

#[test]
fn dynamic_lds_has_the_size_of_the_launch() {
    let gpu = gpu(2);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "reverse");
        let x: Vec<u32> = (0..600).collect();
        let px = session.buffer(&x);
        let values = Values::new().u64(px);
        let launch = Launch { shared_mem_bytes: 200 * 4, ..values.launch(kernel, [3, 1, 1], [200, 1, 1]) };
        session.context.launch(&launch).unwrap();
        session.sync_all().unwrap();
        let expected: Vec<u32> = x.chunks(200).flat_map(|part| part.iter().rev().copied()).collect();
        assert_eq!(session.read(px, 600), expected, "{level}");
        let too_much = Launch { shared_mem_bytes: (64 << 10) + 1, ..launch };
        assert_eq!(session.context.launch(&too_much), Err(HipError::INVALID_VALUE));
    }
}

#[test]
fn atomics_count_from_all_threads() {
    let gpu = gpu(4);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "count");
        let (total, wide) = (session.buffer(&[0]), session.buffer(&[u32::MAX, 0]));
        session.launch(kernel, 300, 96, &Values::new().u64(total).u64(wide).u64(1 << 31)).unwrap();
        session.sync_all().unwrap();
        let items = 300 * 96;
        assert_eq!(session.read(total, 1), [items], "{level}");
        let expected = u64::from(u32::MAX) + (u64::from(items) << 31);
        assert_eq!(session.read(wide, 2), [expected as u32, (expected >> 32) as u32], "{level}");
    }
}

#[test]
fn every_work_item_knows_its_place() {
    let gpu = gpu(2);
    let (grid, block) = ([3u32, 4, 2], [5u32, 7, 3]);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "place");
        let items = (3 * 4 * 2) * (5 * 7 * 3);
        let out = session.malloc(16 * items);
        session.context.launch(&Values::new().u64(out).launch(kernel, grid, block)).unwrap();
        session.sync_all().unwrap();
        let pack = |[x, y, z]: [u32; 3]| x | y << 8 | z << 16;
        let mut expected = Vec::new();
        let ids = |[nx, ny, nz]: [u32; 3]| {
            (0..nz).flat_map(move |z| (0..ny).flat_map(move |y| (0..nx).map(move |x| [x, y, z])))
        };
        for group in ids(grid) {
            for item in ids(block) {
                expected.extend([pack(group), pack(item), pack(block), pack(grid)]);
            }
        }
        assert_eq!(session.read(out, expected.len()), expected, "{level}");
    }
}

#[test]
fn scratch_belongs_to_the_lane() {
    let gpu = gpu(2);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "shuffle");
        let order: Vec<u32> = (0..64).map(|k| (k * 37 + 11) % 64).collect();
        let (items, groups) = (192, 7);
        let (po, out) = (session.buffer(&order), session.malloc(u64::from(4 * items * groups)));
        session.launch(kernel, groups, items, &Values::new().u64(po).u64(out)).unwrap();
        session.sync_all().unwrap();
        let sum = |i: u32| order.iter().fold(0u32, |sum, k| sum.wrapping_mul(3).wrapping_add(i * 64 + k));
        let expected: Vec<u32> = (0..items * groups).map(sum).collect();
        assert_eq!(session.read(out, expected.len()), expected, "{level}");
    }
}

#[test]
fn groups_that_wait_for_each_other_go_on() {
    for threads in [1, 3] {
        let gpu = gpu(threads);
        for (level, image) in LEVELS {
            let mut session = Session::open(&gpu);
            let kernel = session.kernel(image, "meet");
            let (arrived, wrong) = (session.buffer(&[0]), session.buffer(&[0]));
            session.launch(kernel, 40, 128, &Values::new().u64(arrived).u64(wrong).u32(3)).unwrap();
            session.sync_all().unwrap();
            assert_eq!(
                (session.read(arrived, 1), session.read(wrong, 1)),
                (vec![120], vec![0]),
                "{level} {threads}"
            );
        }
    }
}

#[test]
fn a_cooperative_grid_synchronizes() {
    let gpu = gpu(2);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "rotate");
        let n = 20 * 64;
        let x: Vec<u32> = (0..n).map(|i| i * 1000).collect();
        let px = session.buffer(&x);
        let [a, b] = [(); 2].map(|()| session.malloc(4 * u64::from(n)));
        let rounds = 4;
        let values = Values::new().u64(px).u64(a).u64(b).u32(rounds);
        let launch = Launch { cooperative: true, ..values.launch(kernel, [20, 1, 1], [64, 1, 1]) };
        session.context.launch(&launch).unwrap();
        session.sync_all().unwrap();
        let expected: Vec<u32> = (0..n).map(|i| x[((i + rounds) % n) as usize] + rounds).collect();
        assert_eq!(session.read(a, n as usize), expected, "{level}");
        let too_large = Launch { grid: [304 * 32 + 1, 1, 1], ..launch };
        assert_eq!(session.context.launch(&too_large), Err(HipError::COOPERATIVE_LAUNCH_TOO_LARGE));
    }
}

#[test]
fn a_lock_passes_from_group_to_group() {
    let gpu = gpu(3);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "locked");
        let (mutex, value) = (session.buffer(&[0]), session.buffer(&[0]));
        session.launch(kernel, 200, 64, &Values::new().u64(mutex).u64(value)).unwrap();
        session.sync_all().unwrap();
        assert_eq!((session.read(mutex, 1), session.read(value, 1)), (vec![0], vec![200]), "{level}");
    }
}

#[test]
fn wild_accesses_are_errors_of_their_launch() {
    let gpu = gpu(2);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "wild");
        let ptr = session.malloc(64);
        let freed = session.malloc(4096);
        session.wait(|context| context.poll_free(freed)).unwrap();
        // Near and far behind the end, before the beginning, null, a freed address, an address with high bits.
        let bad = [
            (ptr, 64),
            (ptr, 1 << 21),
            (ptr, 1 << 40),
            (ptr, (-4i64) as u64),
            (0, 0),
            (freed, 8),
            (1 << 63, 0),
        ];
        for (base, offset) in bad {
            session.launch(kernel, 1, 64, &Values::new().u64(base).u64(offset)).unwrap();
            assert_eq!(session.sync_all(), Err(HipError::ILLEGAL_ADDRESS), "{level} {base:#x} + {offset:#x}");
        }
        session.launch(kernel, 1, 64, &Values::new().u64(ptr).u64(60)).unwrap();
        assert_eq!(session.sync_all(), Ok(()), "{level}");
        assert_eq!(session.read(ptr, 16)[15], 1);
    }
}

#[test]
fn an_unknown_instruction_is_an_error_of_its_launch() {
    let gpu = gpu(1);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let kernel = session.kernel(image, "refuse");
        session.launch(kernel, 100, 64, &Values::new()).unwrap();
        assert_eq!(session.sync_all(), Err(HipError::LAUNCH_FAILURE), "{level}");
        assert_eq!(session.sync_all(), Ok(()));
    }
}

#[test]
fn an_endless_kernel_hinders_nobody_and_ends_with_its_context() {
    let gpu = gpu(2);
    let total = gpu.mem_info().1;
    let mut stuck = Session::open(&gpu);
    let spin = stuck.kernel(LEVELS[1].1, "spin");
    let never = stuck.buffer(&[0]);
    stuck.launch(spin, 5000, 1024, &Values::new().u64(never)).unwrap();
    stuck.launch(spin, 1, 64, &Values::new().u64(never)).unwrap();
    let mut other = Session::open(&gpu);
    let kernel = other.kernel(LEVELS[1].1, "count");
    let (count, wide) = (other.buffer(&[0]), other.buffer(&[0, 0]));
    for _ in 0..20 {
        other.launch(kernel, 10, 64, &Values::new().u64(count).u64(wide).u64(1)).unwrap();
    }
    other.sync_all().unwrap();
    assert_eq!(other.read(count, 1), [20 * 640]);
    assert_eq!(stuck.context.query(WaitFor::Device), Err(HipError::NOT_READY));
    drop(stuck);
    drop(other);
    // The last thread that works on the kernel gives its memory back.
    while gpu.mem_info().0 != total {
        std::thread::yield_now();
    }
}

#[test]
fn a_reset_ends_an_endless_kernel() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let _never = Gate::close(&mut session, 0);
    session.context.reset().unwrap();
    assert_eq!(session.sync_all(), Ok(()));
    let kernel = session.kernel(LEVELS[1].1, "narrow");
    let out = session.malloc(256);
    session.launch(kernel, 1, 64, &Values::new().u64(out)).unwrap();
    session.sync_all().unwrap();
    assert_eq!(session.read(out, 64), vec![1; 64]);
}

#[test]
fn variables_are_found_and_relocated() {
    let gpu = gpu(1);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let module = session.context.module_load(image.to_vec()).unwrap();
        let kernel = session.context.function(module, "globals").unwrap().handle;
        let (counter, counter_bytes) = session.context.global(module, "counter").unwrap();
        let (table, table_bytes) = session.context.global(module, "table").unwrap();
        let (pointer, _) = session.context.global(module, "pointer").unwrap();
        assert_eq!((counter_bytes, table_bytes), (4, 16));
        assert_eq!(session.context.global(module, "nothing"), Err(HipError::NOT_FOUND));
        assert_eq!(session.read(counter, 1), [40]);
        assert_eq!(session.read(pointer, 2), [counter as u32, (counter >> 32) as u32]);
        assert_eq!(session.read(table, 4), [1, 2, 3, 4]);
        session.write(table, &[10, 20, 30, 40]);
        let out = session.malloc(4);
        session.launch(kernel, 1, 1, &Values::new().u64(out).u32(2)).unwrap();
        session.sync_all().unwrap();
        assert_eq!((session.read(out, 1), session.read(counter, 1)), (vec![70], vec![70]), "{level}");
        // A second load has variables of its own.
        let again = session.context.module_load(image.to_vec()).unwrap();
        let (other, _) = session.context.global(again, "counter").unwrap();
        assert_eq!(session.read(other, 1), [40]);
    }
}

#[test]
fn managed_variables_have_their_first_value() {
    let gpu = gpu(1);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let module = session.context.module_load(image.to_vec()).unwrap();
        let kernel = session.context.function(module, "take").unwrap().handle;
        let (pointer, pointer_bytes) = session.context.global(module, "managed").unwrap();
        let (value, _) = session.context.global(module, "managed.managed").unwrap();
        assert_eq!(pointer_bytes, 8);
        assert_eq!(session.read(pointer, 2), [value as u32, (value >> 32) as u32]);
        let out = session.malloc(4);
        for expected in [6, 7] {
            session.launch(kernel, 1, 1, &Values::new().u64(out)).unwrap();
            session.sync_all().unwrap();
            assert_eq!(session.read(out, 1), [expected], "{level}");
        }
        // The host may move it.
        let elsewhere = session.buffer(&[100]);
        session.write(pointer, &[elsewhere as u32, (elsewhere >> 32) as u32]);
        session.launch(kernel, 1, 1, &Values::new().u64(out)).unwrap();
        session.sync_all().unwrap();
        assert_eq!((session.read(out, 1), session.read(elsewhere, 1)), (vec![100], vec![101]), "{level}");
    }
}

#[test]
fn modules_go_after_their_work() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let module = session.context.module_load(LEVELS[1].1.to_vec()).unwrap();
    let kernel = session.context.function(module, "globals").unwrap().handle;
    assert_eq!(session.context.function(module, "globals").unwrap().handle, kernel);
    assert_eq!(session.context.function(module, "nothing"), Err(HipError::NOT_FOUND));
    let out = session.malloc(4);
    let gate = Gate::close(&mut session, 0);
    session.launch(kernel, 1, 1, &Values::new().u64(out).u32(0)).unwrap();
    session.context.module_unload(module).unwrap();
    assert_eq!(session.context.module_unload(module), Err(HipError::INVALID_HANDLE));
    assert_eq!(session.launch(kernel, 1, 1, &Values::new().u64(out).u32(0)), Err(HipError::INVALID_HANDLE));
    gate.open(&mut session);
    session.sync_all().unwrap();
    assert_eq!(session.read(out, 1), [41]);
}

#[test]
fn arguments_of_every_alignment() {
    let gpu = gpu(1);
    for (level, image) in LEVELS {
        let mut session = Session::open(&gpu);
        let module = session.context.module_load(image.to_vec()).unwrap();
        let info = session.context.function(module, "arguments").unwrap();
        let layout: Vec<(u32, u32)> =
            info.params.iter().flatten().map(|param| (param.offset, param.size)).collect();
        assert_eq!(layout, [(0, 1), (2, 2), (8, 16), (24, 1), (32, 8)]);
        let out = session.malloc(40);
        let mut pair = 2.5f64.to_le_bytes().to_vec();
        pair.extend([9, 0, 0, 0, 0, 0, 0, 0]);
        let values = Values::new().bytes(&[7]).bytes(&[1, 2]).bytes(&pair).bytes(&[200]).u64(out);
        let mut flat = vec![7, 0, 1, 2, 0, 0, 0, 0];
        flat.extend(&pair);
        flat.extend([200, 0, 0, 0, 0, 0, 0, 0]);
        flat.extend(out.to_le_bytes());
        let launch = values.launch(info.handle, [1; 3], [1; 3]);
        for args in [launch.args, Args::Flat(&flat)] {
            session.write(out, &[0; 10]);
            session.context.launch(&Launch { args, ..launch }).unwrap();
            session.sync_all().unwrap();
            let words = session.read(out, 10);
            let read: Vec<f64> =
                words.chunks(2).map(|w| f64::from_bits(u64::from(w[0]) | u64::from(w[1]) << 32)).collect();
            assert_eq!(read, [7.0, 513.0, 2.5, 9.0, 200.0], "{level}");
        }
        // Too few, of another size, too short.
        let invalid = Err(HipError::INVALID_VALUE);
        assert_eq!(session.launch(info.handle, 1, 1, &Values::new().bytes(&[7])), invalid);
        let wrong = Values::new().bytes(&[7]).bytes(&[1]).bytes(&pair).bytes(&[200]).u64(out);
        assert_eq!(session.launch(info.handle, 1, 1, &wrong), invalid);
        assert_eq!(session.context.launch(&Launch { args: Args::Flat(&flat[..39]), ..launch }), invalid);
    }
}

#[test]
fn wrong_dimensions_are_refused_at_once() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let kernel = session.kernel(LEVELS[1].1, "narrow");
    let wide = session.kernel(LEVELS[1].1, "count");
    let out = session.malloc(256);
    let values = Values::new().u64(out);
    let mut launch = |grid, block| session.context.launch(&values.launch(kernel, grid, block));
    assert_eq!(launch([0, 1, 1], [64, 1, 1]), Err(HipError::INVALID_VALUE));
    assert_eq!(launch([1, 1, 1], [64, 0, 1]), Err(HipError::INVALID_VALUE));
    assert_eq!(launch([1, 1, 1], [1025, 1, 1]), Err(HipError::INVALID_VALUE));
    assert_eq!(launch([1, 1, 1], [u32::MAX, u32::MAX, u32::MAX]), Err(HipError::INVALID_VALUE));
    assert_eq!(launch([1 << 30, 1, 1], [64, 1, 1]), Err(HipError::INVALID_VALUE));
    // Larger than its launch bounds.
    assert_eq!(launch([1, 1, 1], [65, 1, 1]), Err(HipError::LAUNCH_FAILURE));
    assert_eq!(session.launch(77, 1, 1, &values), Err(HipError::INVALID_HANDLE));
    assert_eq!(session.launch_on(77, kernel, 1, 1, &values), Err(HipError::INVALID_HANDLE));
    let context = &session.context;
    assert_eq!(context.function_attributes(kernel).unwrap().max_threads_per_block, 64);
    assert_eq!(context.max_active_blocks(kernel, 64, 0), Ok(32));
    // As AMD's runtime says it, which does not look at launch bounds there: two waves for each block.
    assert_eq!(context.max_active_blocks(kernel, 65, 0), Ok(16));
    assert_eq!(context.max_active_blocks(kernel, 0, 0), Err(HipError::INVALID_VALUE));
    assert_eq!(context.max_active_blocks(wide, 1024, 0), Ok(2));
    let best = context.max_potential_block_size(wide, 0, 0).unwrap();
    assert_eq!((best.min_grid_size, best.block_size), (608, 1024));
}

#[test]
fn what_is_no_code_object_is_refused() {
    let gpu = gpu(1);
    let mut session = Session::open(&gpu);
    let free = gpu.mem_info().0;
    assert_eq!(session.context.module_load(Vec::new()), Err(HipError::INVALID_IMAGE));
    assert_eq!(session.context.module_load(vec![0x7f; 4096]), Err(HipError::INVALID_IMAGE));
    let image = LEVELS[1].1;
    for len in (0..image.len()).step_by(97) {
        assert!(session.context.module_load(image[..len].to_vec()).is_err(), "{len} bytes");
    }
    let mut other = image.to_vec();
    // e_flags: a gfx950.
    other[48] = 0x4f;
    assert_eq!(session.context.module_load(other), Err(HipError::NO_BINARY_FOR_GPU));
    assert_eq!(gpu.mem_info().0, free);
}
