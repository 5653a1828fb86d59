//! Tests of untyped buffers.

use crate::bench::{Bench, MEMORY, SOME, is_on};
use hipr_isa::fault::Cause;
use hipr_isa::mem::BadAddress;
use hipr_isa::wave::LANES;

/// Word 3 of a resource for a raw buffer.
const RAW: u32 = 0x27000;

/// Returns the word at byte `offset` of the memory of [`bench`].
fn word(offset: u64) -> u32 {
    0x8000_0000 | offset as u32
}

/// Creates a wave with memory in which words derive from their addresses; s[8:11] is a resource of it from byte 0x1000 on, v4
/// to v7 are 0.
fn bench(stride: u32, records: u32) -> Bench {
    let mut bench = Bench::default();
    for offset in (0..1 << 16).step_by(4) {
        bench.space.store_u32(MEMORY + offset, word(offset)).unwrap();
    }
    let base = MEMORY + 0x1000;
    bench.wave.sgpr[8..12].copy_from_slice(&[base as u32, (base >> 32) as u32 | stride << 16, records, RAW]);
    bench
}

fn read_word(bench: &Bench, offset: u64) -> u32 {
    bench.space.load_u32(MEMORY + offset).unwrap()
}

/// The offset of a lane's access in the buffer.
type Offset = fn(u64) -> u64;

#[test]
fn addresses_are_sums_of_what_there_is() {
    let code: [(&[u32], Offset); 9] = [
        (&[0xe0500000, 0x80020a00 /* buffer_load_dword v10, off, s[8:11], 0 */], |_| 0),
        (&[0xe0500ffc, 0x80020a00 /* buffer_load_dword v10, off, s[8:11], 0 offset:4092 */], |_| 4092),
        (&[0xe0500008, 0x03020a00 /* buffer_load_dword v10, off, s[8:11], s3 offset:8 */], |_| 0x108),
        (&[0xe0500000, 0x90020a00 /* buffer_load_dword v10, off, s[8:11], 16 */], |_| 16),
        (&[0xe0501000, 0x80020a04 /* buffer_load_dword v10, v4, s[8:11], 0 offen */], |lane| lane * 4),
        (&[0xe050100c, 0x03020a04 /* buffer_load_dword v10, v4, s[8:11], s3 offen offset:12 */], |lane| {
            lane * 4 + 0x10c
        }),
        (&[0xe0502004, 0x80020a06 /* buffer_load_dword v10, v6, s[8:11], 0 idxen offset:4 */], |lane| {
            lane / 2 * 16 + 4
        }),
        (&[0xe0503000, 0x80020a06 /* buffer_load_dword v10, v[6:7], s[8:11], 0 idxen offen */], |lane| {
            lane / 2 * 16 + lane % 2 * 8
        }),
        (
            &[
                0xe0503004,
                0x03020a06, /* buffer_load_dword v10, v[6:7], s[8:11], s3 idxen offen offset:4 */
            ],
            |lane| lane / 2 * 16 + lane % 2 * 8 + 0x104,
        ),
    ];
    for (code, offset) in code {
        for exec in [u64::MAX, SOME, 0] {
            let mut bench = bench(16, 0x4000);
            bench.wave.sgpr[3] = 0x100;
            bench.fill(4, |lane| lane as u32 * 4);
            bench.fill(6, |lane| lane as u32 / 2);
            bench.fill(7, |lane| lane as u32 % 2 * 8);
            bench.fill(10, |_| 7);
            bench.wave.set_exec(exec);
            bench.run(code);
            for lane in 0..LANES {
                let expected = if is_on(exec, lane) { word(0x1000 + offset(lane as u64)) } else { 7 };
                assert_eq!(bench.wave.row(10)[lane], expected, "{code:x?}, lane {lane}");
            }
        }
    }
}

#[test]
fn loads_beyond_the_end_give_zero() {
    let code: [&[u32]; 4] = [
        &[0xe0501004, 0x03020a04 /* buffer_load_dword v10, v4, s[8:11], s3 offen offset:4 */],
        &[0xe0541004, 0x03020a04 /* buffer_load_dwordx2 v[10:11], v4, s[8:11], s3 offen offset:4 */],
        &[0xe0581004, 0x03020a04 /* buffer_load_dwordx3 v[10:12], v4, s[8:11], s3 offen offset:4 */],
        &[0xe05c1004, 0x03020a04 /* buffer_load_dwordx4 v[10:13], v4, s[8:11], s3 offen offset:4 */],
    ];
    // Lanes next to each other or all over; the last ones are the compilers' way to mask a lane.
    let spreads: [fn(usize, u32) -> u32; 5] = [
        |lane, size| lane as u32 * size,
        |lane, size| 64 * size - lane as u32 * size,
        |lane, _| if lane % 3 == 0 { 0x8000_0000 } else { lane as u32 * 4 },
        |lane, _| if lane % 3 == 0 { 0xffff_fff8 } else { lane as u32 * 4 },
        |lane, size| (lane as u32 * size).wrapping_sub(64),
    ];
    for (index, code) in code.into_iter().enumerate() {
        let len = index + 1;
        for records in
            [0, 7, 8, 9, 15, 16, 100, 128, 64 * 4 * len as u32 + 7, 64 * 4 * len as u32 + 8, 0x4000]
        {
            for spread in spreads {
                let mut bench = bench(0, records);
                bench.wave.sgpr[3] = 4;
                bench.fill(4, |lane| spread(lane, len as u32 * 4));
                (10..14).for_each(|register| bench.fill(register, |_| 7));
                bench.run(code);
                for lane in 0..LANES {
                    for register in 0..4 {
                        // Offset and constant are added in 32 bits; the scalar offset is not, and counts too.
                        let offset = spread(lane, len as u32 * 4).wrapping_add(4);
                        let at = u64::from(offset) + 4 + register as u64 * 4;
                        let expected = match (register < len, at + 4 <= u64::from(records)) {
                            (false, _) => 7,
                            (true, false) => 0,
                            (true, true) => word(0x1000 + at),
                        };
                        let found = bench.wave.row(10 + register)[lane];
                        assert_eq!(found, expected, "{code:x?} of {records}, lane {lane}, word {register}");
                    }
                }
            }
        }
    }
}

#[test]
fn stores_beyond_the_end_are_dropped() {
    let code: [&[u32]; 4] = [
        &[0xe0701004, 0x80020a04 /* buffer_store_dword v10, v4, s[8:11], 0 offen offset:4 */],
        &[0xe0741004, 0x80020a04 /* buffer_store_dwordx2 v[10:11], v4, s[8:11], 0 offen offset:4 */],
        &[0xe0781004, 0x80020a04 /* buffer_store_dwordx3 v[10:12], v4, s[8:11], 0 offen offset:4 */],
        &[0xe07c1004, 0x80020a04 /* buffer_store_dwordx4 v[10:13], v4, s[8:11], 0 offen offset:4 */],
    ];
    for (index, code) in code.into_iter().enumerate() {
        let size = 4 * (index as u32 + 1);
        for records in [0, 4, 8, 11, 100, 64 * size + 3, 64 * size + 4, 0x4000] {
            for exec in [u64::MAX, SOME, 0] {
                let mut bench = bench(0, records);
                bench.fill(4, |lane| lane as u32 * size);
                for register in 0..4 {
                    bench.fill(10 + register, |lane| (register * 0x100 + lane) as u32);
                }
                bench.wave.set_exec(exec);
                bench.run(code);
                for at in (0..65 * u64::from(size)).step_by(4) {
                    let (lane, register) = match at.checked_sub(4) {
                        Some(at) => ((at / u64::from(size)) as usize, at % u64::from(size) / 4),
                        None => (LANES, 0),
                    };
                    let stored = lane < LANES && is_on(exec, lane) && at + 4 <= u64::from(records);
                    let expected =
                        if stored { register as u32 * 0x100 + lane as u32 } else { word(0x1000 + at) };
                    assert_eq!(read_word(&bench, 0x1000 + at), expected, "{code:x?} of {records}, byte {at}");
                }
            }
        }
    }
}

#[test]
fn with_an_index_records_are_counted() {
    let mut bench = bench(16, 10);
    bench.fill(4, |lane| lane as u32 / 2);
    bench.fill(5, |lane| lane as u32 % 2 * 20);
    bench.run(&[
        0xe0543000, 0x80020a04, // buffer_load_dwordx2 v[10:11], v[4:5], s[8:11], 0 idxen offen
        0xe0703000, 0x80020404, // buffer_store_dword v4, v[4:5], s[8:11], 0 idxen offen
    ]);
    for lane in 0..LANES {
        let at = 0x1000 + lane as u64 / 2 * 16 + lane as u64 % 2 * 20;
        let expected = if lane / 2 < 10 { [word(at), word(at + 4)] } else { [0; 2] };
        assert_eq!([10, 11].map(|register| bench.wave.row(register)[lane]), expected, "lane {lane}");
        if lane / 2 < 10 {
            assert_eq!(read_word(&bench, at), lane as u32 / 2);
        }
    }
    assert_eq!(read_word(&bench, 0x1000 + 160), word(0x1000 + 160));
    // Without one, bytes: compilers set a stride for the cache's sake.
    bench.fill(4, |lane| lane as u32 * 4);
    bench.run(&[0xe0501000, 0x80020a04 /* buffer_load_dword v10, v4, s[8:11], 0 offen */]);
    assert_eq!(bench.wave.row(10)[..3], [0, read_word(&bench, 0x1004), 0]);
}

#[test]
fn parts_of_words() {
    let mut bench = bench(0, 30);
    bench.fill(4, |lane| lane as u32);
    (10..18).for_each(|register| bench.fill(register, |_| 0xaaaa_bbbb));
    bench.run(&[
        0xe0401000, 0x80020a04, // buffer_load_ubyte v10, v4, s[8:11], 0 offen
        0xe0441000, 0x80020b04, // buffer_load_sbyte v11, v4, s[8:11], 0 offen
        0xe0481000, 0x80020c04, // buffer_load_ushort v12, v4, s[8:11], 0 offen
        0xe04c1000, 0x80020d04, // buffer_load_sshort v13, v4, s[8:11], 0 offen
        0xe0801000, 0x80020e04, // buffer_load_ubyte_d16 v14, v4, s[8:11], 0 offen
        0xe08c1000, 0x80020f04, // buffer_load_sbyte_d16_hi v15, v4, s[8:11], 0 offen
        0xe0901000, 0x80021004, // buffer_load_short_d16 v16, v4, s[8:11], 0 offen
        0xe0941000, 0x80021104, // buffer_load_short_d16_hi v17, v4, s[8:11], 0 offen
    ]);
    for lane in 0..LANES {
        let byte = |at: usize| word(0x1000 + at as u64 / 4 * 4).to_le_bytes()[at % 4];
        let (one, two) = (if lane < 30 { byte(lane) } else { 0 }, lane + 2 <= 30);
        let two = if two { u16::from_le_bytes([byte(lane), byte(lane + 1)]) } else { 0 };
        let row: [u32; 8] = std::array::from_fn(|index| bench.wave.row(10 + index)[lane]);
        assert_eq!(row[..2], [u32::from(one), i32::from(one as i8) as u32], "lane {lane}");
        assert_eq!(row[2..4], [u32::from(two), i32::from(two as i16) as u32]);
        assert_eq!(row[4..6], [u32::from(one), u32::from(one as i8 as u16) << 16]);
        assert_eq!(row[6..], [u32::from(two), u32::from(two) << 16]);
    }
    bench.fill(4, |lane| lane as u32 * 4);
    bench.fill(10, |_| 0x1122_3344);
    bench.run(&[
        0xe0601000, 0x80020a04, // buffer_store_byte v10, v4, s[8:11], 0 offen
        0xe0641001, 0x80020a04, // buffer_store_byte_d16_hi v10, v4, s[8:11], 0 offen offset:1
        0xe06c1002, 0x80020a04, // buffer_store_short_d16_hi v10, v4, s[8:11], 0 offen offset:2
    ]);
    // The last word begins inside but its high half does not.
    assert_eq!(read_word(&bench, 0x1018), 0x1122_2244);
    assert_eq!(read_word(&bench, 0x101c), word(0x101c) & 0xffff_0000 | 0x2244);
    bench.run(&[0xe0681000, 0x80020a04 /* buffer_store_short v10, v4, s[8:11], 0 offen */]);
    assert_eq!(read_word(&bench, 0x1018), 0x1122_3344);
    assert_eq!(read_word(&bench, 0x101c), word(0x101c) & 0xffff_0000 | 0x3344);
    assert_eq!(read_word(&bench, 0x1020), word(0x1020));
}

#[test]
fn atomics_inside_and_outside() {
    let mut bench = bench(0, 20);
    bench.fill(4, |lane| lane as u32 * 4);
    bench.fill(10, |_| 1);
    bench.fill(12, |_| 100);
    bench.fill64(14, |_| 7);
    bench.fill(16, |lane| word(0x1000 + lane as u64 * 8));
    bench.fill(17, |lane| word(0x1004 + lane as u64 * 8));
    bench.fill(5, |lane| lane as u32 * 8);
    bench.run(&[
        0xe1845000, 0x80020e05, /* buffer_atomic_cmpswap_x2 v[14:17], v5, s[8:11], 0 offen sc0 */
    ]);
    for lane in 0..LANES {
        let old =
            if lane < 2 { [word(0x1000 + lane as u64 * 8), word(0x1004 + lane as u64 * 8)] } else { [0; 2] };
        assert_eq!([14, 15].map(|register| bench.wave.row(register)[lane]), old, "lane {lane}");
    }
    assert_eq!(
        [0x1000, 0x1004, 0x1008, 0x100c, 0x1010].map(|at| read_word(&bench, at)),
        [7, 0, 7, 0, word(0x1010)]
    );
    bench.run(&[
        0xe1085000, 0x80020a04, // buffer_atomic_add v10, v4, s[8:11], 0 offen sc0
        0xe1081000, 0x80020c04, // buffer_atomic_add v12, v4, s[8:11], 0 offen
    ]);
    for lane in 0..LANES {
        let old = [7, 0, 7, 0, word(0x1010)].get(lane).copied().unwrap_or(0);
        assert_eq!((bench.wave.row(10)[lane], bench.wave.row(12)[lane]), (old, 100), "lane {lane}");
    }
    assert_eq!(
        [0x1000, 0x1004, 0x1010, 0x1014].map(|at| read_word(&bench, at)),
        [108, 101, word(0x1010) + 101, word(0x1014)]
    );
    bench.fill(4, |lane| if lane == 2 { 2 } else { 0 });
    let fault = bench
        .try_run(&[0xe1081000, 0x80020a04 /* buffer_atomic_add v10, v4, s[8:11], 0 offen */])
        .unwrap_err();
    assert_eq!(fault.cause, Cause::MisalignedAtomic { lane: 2, addr: MEMORY + 0x1002 });
}

#[test]
fn every_atomic() {
    /// Runs code on memory with the value `old` and data in v[10:11]; returns v[10:11] and memory afterwards.
    fn run(code: &[u32], old: u64, data: u64) -> (u64, u64) {
        let mut bench = bench(0, 0x100);
        bench.space.store_u64(MEMORY + 0x1000, old).unwrap();
        bench.fill64(10, |_| data);
        bench.wave.set_exec(1);
        bench.run(code);
        (bench.row64(10)[0], bench.space.load_u64(MEMORY + 0x1000).unwrap())
    }
    let code: [(&[u32], u32, u32, u32); 15] = [
        (&[0xe1004000, 0x80020a00 /* buffer_atomic_swap v10, off, s[8:11], 0 sc0 */], 5, 7, 7),
        (&[0xe1084000, 0x80020a00 /* buffer_atomic_add v10, off, s[8:11], 0 sc0 */], 5, 7, 12),
        (&[0xe10c4000, 0x80020a00 /* buffer_atomic_sub v10, off, s[8:11], 0 sc0 */], 7, 5, 2),
        (&[0xe1104000, 0x80020a00 /* buffer_atomic_smin v10, off, s[8:11], 0 sc0 */], 5, u32::MAX, u32::MAX),
        (&[0xe1144000, 0x80020a00 /* buffer_atomic_umin v10, off, s[8:11], 0 sc0 */], 5, u32::MAX, 5),
        (&[0xe1184000, 0x80020a00 /* buffer_atomic_smax v10, off, s[8:11], 0 sc0 */], 5, u32::MAX, 5),
        (&[0xe11c4000, 0x80020a00 /* buffer_atomic_umax v10, off, s[8:11], 0 sc0 */], 5, u32::MAX, u32::MAX),
        (&[0xe1204000, 0x80020a00 /* buffer_atomic_and v10, off, s[8:11], 0 sc0 */], 3, 5, 1),
        (&[0xe1244000, 0x80020a00 /* buffer_atomic_or v10, off, s[8:11], 0 sc0 */], 3, 5, 7),
        (&[0xe1284000, 0x80020a00 /* buffer_atomic_xor v10, off, s[8:11], 0 sc0 */], 3, 5, 6),
        (&[0xe12c4000, 0x80020a00 /* buffer_atomic_inc v10, off, s[8:11], 0 sc0 */], 5, 5, 0),
        (&[0xe1304000, 0x80020a00 /* buffer_atomic_dec v10, off, s[8:11], 0 sc0 */], 0, 5, 5),
        (
            &[0xe1344000, 0x80020a00 /* buffer_atomic_add_f32 v10, off, s[8:11], 0 sc0 */],
            0x3f80_0000,
            0x3f80_0000,
            0x4000_0000,
        ),
        (
            &[0xe1384000, 0x80020a00 /* buffer_atomic_pk_add_f16 v10, off, s[8:11], 0 sc0 */],
            0x3c00_3c00,
            0x4000_3c00,
            0x4200_4000,
        ),
        (&[0xe1044000, 0x80020a00 /* buffer_atomic_cmpswap v[10:11], off, s[8:11], 0 sc0 */], 0, 9, 9),
    ];
    for (code, old, data, new) in code {
        assert_eq!(run(code, u64::from(old), u64::from(data)), (u64::from(old), u64::from(new)), "{code:x?}");
    }
    let f = f64::to_bits;
    const BIG: u64 = 5 << 32;
    let code: [(&[u32], u64, u64, u64); 15] = [
        (&[0xe1804000, 0x80020a00 /* buffer_atomic_swap_x2 v[10:11], off, s[8:11], 0 sc0 */], BIG, 7, 7),
        (
            &[0xe1884000, 0x80020a00 /* buffer_atomic_add_x2 v[10:11], off, s[8:11], 0 sc0 */],
            u64::from(u32::MAX),
            1,
            1 << 32,
        ),
        (
            &[0xe18c4000, 0x80020a00 /* buffer_atomic_sub_x2 v[10:11], off, s[8:11], 0 sc0 */],
            1 << 32,
            1,
            u64::from(u32::MAX),
        ),
        (
            &[0xe1904000, 0x80020a00 /* buffer_atomic_smin_x2 v[10:11], off, s[8:11], 0 sc0 */],
            BIG,
            u64::MAX,
            u64::MAX,
        ),
        (
            &[0xe1944000, 0x80020a00 /* buffer_atomic_umin_x2 v[10:11], off, s[8:11], 0 sc0 */],
            BIG,
            u64::MAX,
            BIG,
        ),
        (
            &[0xe1984000, 0x80020a00 /* buffer_atomic_smax_x2 v[10:11], off, s[8:11], 0 sc0 */],
            BIG,
            u64::MAX,
            BIG,
        ),
        (
            &[0xe19c4000, 0x80020a00 /* buffer_atomic_umax_x2 v[10:11], off, s[8:11], 0 sc0 */],
            BIG,
            u64::MAX,
            u64::MAX,
        ),
        (
            &[0xe1a04000, 0x80020a00 /* buffer_atomic_and_x2 v[10:11], off, s[8:11], 0 sc0 */],
            3 << 40,
            5 << 40,
            1 << 40,
        ),
        (
            &[0xe1a44000, 0x80020a00 /* buffer_atomic_or_x2 v[10:11], off, s[8:11], 0 sc0 */],
            3 << 40,
            5 << 40,
            7 << 40,
        ),
        (
            &[0xe1a84000, 0x80020a00 /* buffer_atomic_xor_x2 v[10:11], off, s[8:11], 0 sc0 */],
            3 << 40,
            5 << 40,
            6 << 40,
        ),
        (
            &[0xe1ac4000, 0x80020a00 /* buffer_atomic_inc_x2 v[10:11], off, s[8:11], 0 sc0 */],
            u64::from(u32::MAX),
            BIG,
            1 << 32,
        ),
        (&[0xe1b04000, 0x80020a00 /* buffer_atomic_dec_x2 v[10:11], off, s[8:11], 0 sc0 */], 0, BIG, BIG),
        (
            &[0xe13c4000, 0x80020a00 /* buffer_atomic_add_f64 v[10:11], off, s[8:11], 0 sc0 */],
            f(1.5),
            f(2.0),
            f(3.5),
        ),
        (
            &[0xe1404000, 0x80020a00 /* buffer_atomic_min_f64 v[10:11], off, s[8:11], 0 sc0 */],
            f(1.5),
            f(-2.0),
            f(-2.0),
        ),
        (
            &[0xe1444000, 0x80020a00 /* buffer_atomic_max_f64 v[10:11], off, s[8:11], 0 sc0 */],
            f(1.5),
            f(-2.0),
            f(1.5),
        ),
    ];
    for (code, old, data, new) in code {
        assert_eq!(run(code, old, data), (old, new), "{code:x?}");
    }
}

#[test]
fn data_may_be_in_accumulation_registers() {
    let mut bench = bench(0, 0x1000);
    bench.fill(4, |lane| lane as u32 * 4);
    // a4 is register 68.
    bench.fill(68, |lane| lane as u32);
    bench.run(&[
        0xe0701000, 0x80820404, // buffer_store_dword a4, v4, s[8:11], 0 offen
        0xe0501004, 0x80820604, // buffer_load_dword a6, v4, s[8:11], 0 offen offset:4
    ]);
    for lane in 0..LANES - 1 {
        assert_eq!(read_word(&bench, 0x1000 + lane as u64 * 4), lane as u32);
        assert_eq!(bench.wave.row(70)[lane], lane as u32 + 1);
    }
}

#[test]
fn inside_the_buffer_but_outside_of_memory_is_a_fault() {
    for (code, write) in [
        ([0xe0541000, 0x80020a04 /* buffer_load_dwordx2 v[10:11], v4, s[8:11], 0 offen */], false),
        ([0xe0741000, 0x80020a04 /* buffer_store_dwordx2 v[10:11], v4, s[8:11], 0 offen */], true),
        ([0xe1881000, 0x80020a04 /* buffer_atomic_add_x2 v[10:11], v4, s[8:11], 0 offen */], true),
    ] {
        let mut bench = bench(0, u32::MAX);
        bench.fill(4, |lane| if lane == 9 { 0x8000_0000 } else { lane as u32 * 8 });
        let fault = bench.try_run(&code).unwrap_err();
        let access = BadAddress { addr: MEMORY + 0x8000_1000, len_bytes: 8 };
        assert_eq!(fault.cause, Cause::IllegalAddress { lane: Some(9), access, write });
    }
}

#[test]
fn what_is_not_emulated_is_a_fault() {
    let load = [0xe0501000, 0x80020a04 /* buffer_load_dword v10, v4, s[8:11], 0 offen */];
    let mut bench = bench(4, 10);
    bench.wave.sgpr[11] |= 1 << 23;
    let fault = bench.try_run(&load).unwrap_err();
    assert!(matches!(fault.cause, Cause::Unknown { mnemonic: Some("buffer_load_dword"), .. }), "{fault}");
}

#[test]
fn cache_operations_do_nothing_to_see() {
    let mut bench = bench(0, 100);
    let before = bench.wave.sgpr;
    bench.run(&[
        0xe0a08000, 0x00000000, // buffer_wbl2 sc1
        0xe0a48000, 0x00000000, // buffer_inv sc1
        0xe0a0c000, 0x00000000, // buffer_wbl2 sc0 sc1
        0xe0a4c000, 0x00000000, // buffer_inv sc0 sc1
    ]);
    assert_eq!(bench.wave.sgpr, before);
    assert_eq!(read_word(&bench, 0), word(0));
}
