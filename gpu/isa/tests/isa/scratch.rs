//! Tests of scratch, the lanes' own memory.

use crate::bench::{Bench, SOME, is_on};
use hipr_isa::aperture::PRIVATE_BASE;
use hipr_isa::fault::Cause;
use hipr_isa::wave::LANES;

/// Returns word `index` of a lane's scratch in [`bench`].
fn word(lane: usize, index: usize) -> u32 {
    0x8182_8000 | ((index as u32) << 8) | lane as u32
}

/// Creates a wave with 256 bytes of scratch for each lane, whose values derive from lane and address; s3 is 64, v2 differs
/// between lanes.
fn bench() -> Bench {
    let mut bench = Bench::default();
    for (index, row) in bench.scratch.rows_mut().iter_mut().enumerate() {
        *row = std::array::from_fn(|lane| word(lane, index));
    }
    bench.wave.sgpr[3] = 64;
    bench.fill(2, |lane| (lane % 4 * 4) as u32);
    bench
}

/// The word of its scratch that a lane reads.
type Index = fn(usize) -> usize;

#[test]
fn addresses_are_sums_of_what_there_is() {
    let code: [(&[u32], Index); 6] = [
        (&[0xdc504014, 0x0a7f0000 /* scratch_load_dword v10, off, off offset:20 */], |_| 5),
        (&[0xdc504000, 0x0a030000 /* scratch_load_dword v10, off, s3 */], |_| 16),
        (&[0xdc505ff8, 0x0a030000 /* scratch_load_dword v10, off, s3 offset:-8 */], |_| 14),
        (&[0xdc506000, 0x0a7f0002 /* scratch_load_dword v10, v2, off */], |lane| lane % 4),
        (&[0xdc506064, 0x0a7f0002 /* scratch_load_dword v10, v2, off offset:100 */], |lane| lane % 4 + 25),
        (&[0xdc507fc0, 0x0a030002 /* scratch_load_dword v10, v2, s3 offset:-64 */], |lane| lane % 4),
    ];
    for (code, index) in code {
        for exec in [u64::MAX, SOME, 1 << 63, 0] {
            let mut bench = bench();
            bench.fill(10, |_| 7);
            bench.wave.set_exec(exec);
            bench.run(code);
            for lane in 0..LANES {
                let expected = if is_on(exec, lane) { word(lane, index(lane)) } else { 7 };
                assert_eq!(bench.wave.row(10)[lane], expected, "{code:x?}, lane {lane}");
            }
        }
    }
}

#[test]
fn words_come_and_go() {
    let loads: [&[u32]; 8] = [
        &[0xdc504000, 0x0a030000 /* scratch_load_dword v10, off, s3 */],
        &[0xdc544000, 0x0a030000 /* scratch_load_dwordx2 v[10:11], off, s3 */],
        &[0xdc584000, 0x0a030000 /* scratch_load_dwordx3 v[10:12], off, s3 */],
        &[0xdc5c4000, 0x0a030000 /* scratch_load_dwordx4 v[10:13], off, s3 */],
        &[0xdc506000, 0x0a030002 /* scratch_load_dword v10, v2, s3 */],
        &[0xdc546000, 0x0a030002 /* scratch_load_dwordx2 v[10:11], v2, s3 */],
        &[0xdc586000, 0x0a030002 /* scratch_load_dwordx3 v[10:12], v2, s3 */],
        &[0xdc5c6000, 0x0a030002 /* scratch_load_dwordx4 v[10:13], v2, s3 */],
    ];
    let stores: [&[u32]; 8] = [
        &[0xdc704000, 0x00030a00 /* scratch_store_dword off, v10, s3 */],
        &[0xdc744000, 0x00030a00 /* scratch_store_dwordx2 off, v[10:11], s3 */],
        &[0xdc784000, 0x00030a00 /* scratch_store_dwordx3 off, v[10:12], s3 */],
        &[0xdc7c4000, 0x00030a00 /* scratch_store_dwordx4 off, v[10:13], s3 */],
        &[0xdc706000, 0x00030a02 /* scratch_store_dword v2, v10, s3 */],
        &[0xdc746000, 0x00030a02 /* scratch_store_dwordx2 v2, v[10:11], s3 */],
        &[0xdc786000, 0x00030a02 /* scratch_store_dwordx3 v2, v[10:12], s3 */],
        &[0xdc7c6000, 0x00030a02 /* scratch_store_dwordx4 v2, v[10:13], s3 */],
    ];
    for (code, (load, store)) in loads.into_iter().zip(stores).enumerate() {
        let len = code % 4 + 1;
        let first = |lane: usize| 16 + if code < 4 { 0 } else { lane % 4 };
        for exec in [u64::MAX, SOME, 0] {
            let mut bench = bench();
            bench.wave.set_exec(exec);
            bench.run(load);
            for lane in 0..LANES {
                for register in 0..4 {
                    let loaded = register < len && is_on(exec, lane);
                    let expected = if loaded { word(lane, first(lane) + register) } else { 0 };
                    assert_eq!(bench.wave.row(10 + register)[lane], expected, "{load:x?}, lane {lane}");
                }
            }
            for register in 0..4 {
                bench.fill(10 + register, |lane| (register * 0x100 + lane) as u32);
            }
            bench.run(store);
            for lane in 0..LANES {
                for index in 0..64 {
                    let register = usize::wrapping_sub(index, first(lane));
                    let stored = register < len && is_on(exec, lane);
                    let expected = if stored { (register * 0x100 + lane) as u32 } else { word(lane, index) };
                    let found = bench.scratch.load_u32(lane, index as u32 * 4);
                    assert_eq!(found, Some(expected), "{store:x?}, lane {lane}, word {index}");
                }
            }
        }
    }
}

#[test]
fn parts_of_words() {
    let mut bench = bench();
    (10..16).for_each(|register| bench.fill(register, |_| 0xaaaa_bbbb));
    bench.wave.set_exec(SOME);
    bench.run(&[
        0xdc404005, 0x0a7f0000, // scratch_load_ubyte v10, off, off offset:5
        0xdc444007, 0x0b7f0000, // scratch_load_sbyte v11, off, off offset:7
        0xdc484003, 0x0c7f0000, // scratch_load_ushort v12, off, off offset:3
        0xdc4c6002, 0x0d7f0002, // scratch_load_sshort v13, v2, off offset:2
        0xdc844001, 0x0e030000, // scratch_load_ubyte_d16_hi v14, off, s3 offset:1
        0xdc904000, 0x0f030000, // scratch_load_short_d16 v15, off, s3
    ]);
    for lane in 0..LANES {
        let row: [u32; 6] = std::array::from_fn(|index| bench.wave.row(10 + index)[lane]);
        let expected = if is_on(SOME, lane) {
            // Bytes 1 to 3 of a word: 0x80 with the index, 0x82, 0x81.
            [0x81, 0xffff_ff81, (lane as u32) << 8 | 0x81, 0xffff_8182, 0x0090_0000, 0x9000 | lane as u32]
        } else {
            [0xaaaa_bbbb; 6]
        };
        assert_eq!(row, expected, "lane {lane}");
    }
    bench.fill(10, |lane| 0x1122_3300 + lane as u32);
    bench.run(&[
        0xdc604009, 0x007f0a00, // scratch_store_byte off, v10, off offset:9
        0xdc68400f, 0x007f0a00, // scratch_store_short off, v10, off offset:15
        0xdc644000, 0x00030a00, // scratch_store_byte_d16_hi off, v10, s3
        0xdc6c6020, 0x007f0a02, // scratch_store_short_d16_hi v2, v10, off offset:32
    ]);
    for lane in 0..LANES {
        let on = is_on(SOME, lane);
        let load = |index: usize| bench.scratch.load_u32(lane, index as u32 * 4).unwrap();
        let low = lane as u32;
        let pick = |index: usize, stored: u32| if on { stored } else { word(lane, index) };
        assert_eq!(load(2), pick(2, word(lane, 2) & !0xff00 | low << 8));
        assert_eq!(load(3), pick(3, word(lane, 3) & 0x00ff_ffff | low << 24));
        assert_eq!(load(4), pick(4, word(lane, 4) & !0xff | 0x33));
        assert_eq!(load(16), pick(16, word(lane, 16) & !0xff | 0x22));
        let index = 8 + lane % 4;
        assert_eq!(load(index), pick(index, word(lane, index) & 0xffff_0000 | 0x1122));
    }
}

#[test]
fn data_may_be_in_accumulation_registers() {
    let mut bench = bench();
    // a4 is register 68.
    bench.fill(68, |lane| lane as u32);
    bench.run(&[
        0xdc704000, 0x00830400, // scratch_store_dword off, a4, s3
        0xdc504000, 0x05830000, // scratch_load_dword a5, off, s3
        0xdc504000, 0x05030000, // scratch_load_dword v5, off, s3
    ]);
    for lane in 0..LANES {
        assert_eq!((bench.wave.row(69)[lane], bench.wave.row(5)[lane]), (lane as u32, lane as u32));
    }
}

#[test]
fn unaligned_words() {
    let mut bench = bench();
    bench.run(&[
        0xdc544006, 0x0a7f0000, // scratch_load_dwordx2 v[10:11], off, off offset:6
        0xdc70400d, 0x007f0a00, // scratch_store_dword off, v10, off offset:13
    ]);
    for lane in 0..LANES {
        let at = |index| word(lane, index);
        assert_eq!(bench.wave.row(10)[lane], at(1) >> 16 | at(2) << 16);
        assert_eq!(bench.wave.row(11)[lane], at(2) >> 16 | at(3) << 16);
        let stored = bench.wave.row(10)[lane];
        assert_eq!(bench.scratch.load_u32(lane, 12), Some(at(3) & 0xff | stored << 8));
        assert_eq!(bench.scratch.load_u32(lane, 16), Some(at(4) & 0xffff_ff00 | stored >> 24));
    }
}

#[test]
fn beyond_the_end_is_a_fault() {
    let code: [(&[u32], u64, u64, bool); 6] = [
        (&[0xdc504100, 0x0a7f0000 /* scratch_load_dword v10, off, off offset:256 */], 256, 4, false),
        (&[0xdc5c40b8, 0x0a030000 /* scratch_load_dwordx4 v[10:13], off, s3 offset:184 */], 248, 16, false),
        (&[0xdc7440bc, 0x00030a00 /* scratch_store_dwordx2 off, v[10:11], s3 offset:188 */], 252, 8, true),
        (&[0xdc404100, 0x0a7f0000 /* scratch_load_ubyte v10, off, off offset:256 */], 256, 1, false),
        (&[0xdc6840ff, 0x007f0a00 /* scratch_store_short off, v10, off offset:255 */], 255, 2, true),
        // Below the beginning.
        (&[0xdc505fbc, 0x0a030000 /* scratch_load_dword v10, off, s3 offset:-68 */], 0xffff_fffc, 4, false),
    ];
    for (code, addr, bytes, writes) in code {
        let mut bench = bench();
        bench.wave.set_exec(!0xff);
        let fault = bench.try_run(code).unwrap_err();
        let Cause::IllegalAddress { lane, access, write } = fault.cause else { panic!("{fault}") };
        let expected = (Some(8), PRIVATE_BASE + addr, bytes, writes);
        assert_eq!((lane, access.addr, access.len_bytes, write), expected, "{code:x?}");
        // No lane, no access.
        bench.wave.set_exec(0);
        bench.run(code);
    }
    let mut bench = bench();
    bench.fill(2, |lane| if lane == 5 { 4000 } else { 0 });
    let fault = bench.try_run(&[0xdc506000, 0x0a7f0002 /* scratch_load_dword v10, v2, off */]).unwrap_err();
    assert!(matches!(fault.cause, Cause::IllegalAddress { lane: Some(5), .. }), "{fault}");
}
