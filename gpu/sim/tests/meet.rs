//! Tests of kernels that depend on others: workgroups at barriers of the grid, and code of one module that calls code of
//! another.

mod session;

use std::num::NonZero;

use hipr_device::{Context as _, Launch};
use hipr_proto::HipError;
use hipr_sim::{Arch, Config, Gpu};
use session::{Session, Values};

const IMAGES: [(Arch, &[u8]); 2] = [
    (Arch::Gfx90a, include_bytes!("data/meet-gfx90a.co")),
    (Arch::Gfx942, include_bytes!("data/meet-gfx942.co")),
];

fn gpu(arch: Arch, threads: usize) -> Gpu {
    let config =
        Config { arch, threads: NonZero::new(threads), memory_bytes: Some(64 << 20), ..Config::default() };
    Gpu::new(config).unwrap()
}

/// Returns the result of the kernel `mix` for `cells`.
fn mixed(mut cells: Vec<u32>, rounds: u32) -> Vec<u32> {
    for round in 0..rounds {
        let next = cells.iter().cycle().skip(1);
        cells = cells
            .iter()
            .zip(next)
            .map(|(cell, next)| cell.wrapping_mul(3).wrapping_add(*next).wrapping_add(round))
            .collect();
    }
    cells
}

#[test]
fn workgroups_of_a_cooperative_launch_meet() {
    const ROUNDS: u32 = 20;
    for (arch, image) in IMAGES {
        for threads in [1, 2, 4] {
            let gpu = gpu(arch, threads);
            let mut session = Session::open(&gpu);
            let mix = session.kernel(image, "mix");
            // More groups than are begun at first, and one that is alone; each launch finds its barriers as new.
            for (groups, block) in [(1, 64), (2, 192), (7, 64), (64, 256), (7, 64)] {
                let cells: Vec<u32> = (0..groups).map(|group| group * 77 + 5).collect();
                let buffer = session.buffer(&cells);
                let values = Values::new().u64(buffer).u32(ROUNDS);
                let launch = values.launch(mix, [groups, 1, 1], [block, 1, 1]);
                session.context.launch(&Launch { cooperative: true, ..launch }).unwrap();
                session.sync_all().unwrap();
                let result = session.read(buffer, groups as usize);
                assert_eq!(
                    result,
                    mixed(cells, ROUNDS),
                    "{arch}, {threads} threads, {groups} groups of {block}"
                );
            }
        }
    }
}

#[test]
fn cooperative_launches_of_two_streams_do_not_meet_each_other() {
    const ROUNDS: u32 = 20;
    for (arch, image) in IMAGES {
        let gpu = gpu(arch, 2);
        let mut session = Session::open(&gpu);
        let mix = session.kernel(image, "mix");
        let runs: Vec<_> = [3u32, 8, 5]
            .map(|groups| {
                let stream = session.context.stream_create(1, 0).unwrap();
                let cells: Vec<u32> = (0..groups).collect();
                let buffer = session.buffer(&cells);
                let values = Values::new().u64(buffer).u32(ROUNDS);
                let launch = values.launch(mix, [groups, 1, 1], [128, 1, 1]);
                session.context.launch(&Launch { stream, cooperative: true, ..launch }).unwrap();
                (buffer, cells)
            })
            .into();
        session.sync_all().unwrap();
        for (buffer, cells) in runs {
            assert_eq!(session.read(buffer, cells.len()), mixed(cells, ROUNDS), "{arch}");
        }
    }
}

#[test]
fn without_a_cooperative_launch_there_is_no_global_wave_sync() {
    let gpu = gpu(Arch::Gfx90a, 2);
    let mut session = Session::open(&gpu);
    let mix = session.kernel(IMAGES[0].1, "mix");
    let cells = session.buffer(&[0; 4]);
    session.launch(mix, 4, 64, &Values::new().u64(cells).u32(1)).unwrap();
    assert_eq!(session.sync_all(), Err(HipError::LAUNCH_FAILURE));
}

#[test]
fn a_kernel_calls_functions_of_other_modules() {
    for (arch, image) in IMAGES {
        let gpu = gpu(arch, 2);
        let mut session = Session::open(&gpu);
        // The caller's module is loaded before the other ones, between them, and after them.
        let modules = [0; 3].map(|_| session.context.module_load(image.to_vec()).unwrap());
        let function = session.malloc(8);
        let out = session.malloc(4 * 256);
        for (callee, salt) in modules.into_iter().zip([1000, 2000, 3000]) {
            let (variable, len_bytes) = session.context.global(callee, "salt").unwrap();
            assert_eq!(len_bytes, 4);
            session.write(variable, &[salt]);
            let address = session.context.function(callee, "address").unwrap().handle;
            session.launch(address, 1, 1, &Values::new().u64(function)).unwrap();
            for caller in modules {
                let call = session.context.function(caller, "call").unwrap().handle;
                session.launch(call, 4, 64, &Values::new().u64(function).u64(out)).unwrap();
                session.sync_all().unwrap();
                let expected: Vec<u32> = (0..256).map(|i| 3 * i + salt + 1).collect();
                assert_eq!(session.read(out, 256), expected, "{arch}");
            }
        }
        // What is called lives until the work that was enqueued before is done, not longer.
        let [caller, callee, _] = modules;
        let address = session.context.function(callee, "address").unwrap().handle;
        session.launch(address, 1, 1, &Values::new().u64(function)).unwrap();
        let call = session.context.function(caller, "call").unwrap().handle;
        session.launch(call, 4, 64, &Values::new().u64(function).u64(out)).unwrap();
        session.context.module_unload(callee).unwrap();
        session.sync_all().unwrap();
        assert_eq!(session.read(out, 1), [2001], "{arch}");
        session.launch(call, 4, 64, &Values::new().u64(function).u64(out)).unwrap();
        assert_eq!(session.sync_all(), Err(HipError::LAUNCH_FAILURE), "{arch}");
    }
}
