//! Tests of memory accesses whose lanes address several allocations.

use std::sync::Arc;

use crate::bench::Bench;
use hipr_isa::fault::Cause;
use hipr_isa::map::{FIRST_ADDRESS, Map, PAGE_BYTES};
use hipr_isa::mem::{Block, Space};

const LEN_BYTES: u64 = 1 << 20;

/// Creates a wave with three blocks of 1 MiB of memory, two pages apart, and returns their addresses, too.
fn bench() -> (Bench, [u64; 3]) {
    let addresses = [0, 1, 2].map(|index| FIRST_ADDRESS + index * 2 * PAGE_BYTES);
    let [first, second, third] = addresses.map(|addr| Arc::new(Block::new(addr, LEN_BYTES).unwrap()));
    let mut map = Map::default();
    map.insert(&first).unwrap();
    map.insert(&second).unwrap();
    (Bench { space: Space::new(Arc::new(map), third), ..Bench::default() }, addresses)
}

#[test]
fn lanes_may_be_in_several_blocks() {
    let (mut bench, addresses) = bench();
    let addr = |lane: usize| addresses[lane % 3] + lane as u64 * 16;
    bench.fill64(0, addr);
    for (register, value) in [(11, 1), (12, 2), (13, 0x55), (14, 0x6677)] {
        bench.fill(register, |_| value);
    }
    bench.fill(10, |lane| lane as u32);
    bench.run(&[
        0xdc788000, 0x007f0a00, // global_store_dwordx3 v[0:1], v[10:12], off
        0xdc60800c, 0x007f0d00, // global_store_byte v[0:1], v13, off offset:12
        0xdc68800d, 0x007f0e00, // global_store_short v[0:1], v14, off offset:13
    ]);
    // Each lane reads what another one has written.
    let writer = |lane: usize| lane * 7 % 64;
    bench.fill64(0, |lane| addr(writer(lane)));
    bench.run(&[0xdc5c8000, 0x147f0000]); // global_load_dwordx4 v[20:23], v[0:1], off
    for lane in 0..64 {
        let read = [20, 21, 22, 23].map(|register| bench.wave.row(register)[lane]);
        assert_eq!(read, [writer(lane) as u32, 1, 2, 0x66_7755], "lane {lane}");
    }
}

#[test]
fn between_blocks_there_is_nothing() {
    let (_, addresses) = bench();
    let beyond = [addresses[0] - 4, addresses[0] + LEN_BYTES - 2, addresses[1] - 4, addresses[2] + LEN_BYTES];
    let accesses = [
        ([0xdc508000, 0x0a7f0000 /* global_load_dword v10, v[0:1], off */], 4, false),
        ([0xdc748000, 0x007f0a00 /* global_store_dwordx2 v[0:1], v[10:11], off */], 8, true),
    ];
    for addr in beyond {
        for (code, len_bytes, is_store) in accesses {
            let (mut bench, _) = bench();
            bench.fill64(0, |lane| if lane == 7 { addr } else { addresses[0] + lane as u64 * 8 });
            let fault = bench.try_run(&code).unwrap_err();
            let Cause::IllegalAddress { lane: Some(7), access, write } = fault.cause else {
                panic!("{fault}")
            };
            assert_eq!((access.addr, access.len_bytes, write), (addr, len_bytes, is_store));
        }
    }
}
