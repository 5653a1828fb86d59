//! Tests of buffers with formats: MUBUF's format instructions, MTBUF, and loads to LDS.

use crate::bench::{Bench, MEMORY, SOME, f, is_on};
use crate::global::{bench, read_word};
use hipr_isa::fault::Cause;

/// Sets s[8:11] to a resource for `records` bytes of the test's memory, with these formats and with components in their order.
fn describe(bench: &mut Bench, stride: u32, records: u32, data: u32, number: u32) {
    const SELECT_XYZW: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;
    let words = [
        MEMORY as u32,
        (MEMORY >> 32) as u32 | stride << 16,
        records,
        SELECT_XYZW | number << 12 | data << 15,
    ];
    bench.wave.sgpr[8..12].copy_from_slice(&words);
}

fn set_word(bench: &Bench, offset: u64, value: u32) {
    bench.space.write(MEMORY + offset, &value.to_le_bytes()).expect("in memory");
}

#[test]
fn a_resource_says_what_an_element_is() {
    let mut bench = bench();
    describe(&mut bench, 0, 256, 10, 0);
    (0..64).for_each(|lane| set_word(&bench, lane * 4, 0xff80_3300 | lane as u32));
    bench.wave.set_exec(SOME);
    bench.fill(1, |lane| lane as u32 * 4);
    (4..8).for_each(|register| bench.fill(register, |_| 9));
    // buffer_load_format_xyzw v[4:7], v1, s[8:11], 0 offen: unorm of bytes.
    bench.run(&[0xe00c_1000, 0x8002_0401]);
    for lane in 0..64 {
        let expected = [lane as f32 / 255.0, 0.2, 128.0 / 255.0, 1.0].map(f);
        for (register, expected) in (4..).zip(expected) {
            let expected = if is_on(SOME, lane) { expected } else { 9 };
            assert_eq!(bench.wave.row(register)[lane], expected, "v{register}, lane {lane}");
        }
    }
}

#[test]
fn components_are_selected_and_what_is_missing_is_filled_in() {
    let mut bench = bench();
    describe(&mut bench, 0, 256, 3, 4);
    // Of two bytes: y, 1, x, 0.
    bench.wave.sgpr[11] = bench.wave.sgpr[11] & !0xfff | 5 | 1 << 3 | 4 << 6;
    set_word(&bench, 0, 0x0000_abcd);
    bench.fill(1, |_| 0);
    bench.run(&[0xe00c_1000, 0x8002_0401]);
    assert_eq!([4, 5, 6, 7].map(|register| bench.wave.row(register)[3]), [0xab, 1, 0xcd, 0]);
    describe(&mut bench, 0, 256, 3, 4);
    bench.run(&[0xe00c_1000, 0x8002_0401]);
    assert_eq!([4, 5, 6, 7].map(|register| bench.wave.row(register)[3]), [0xcd, 0xab, 0, 1]);
}

#[test]
fn halves_are_packed() {
    let mut bench = bench();
    // Records of 8 bytes, by index: four f16.
    describe(&mut bench, 8, 64, 12, 7);
    for lane in 0..64 {
        set_word(&bench, lane * 8, 0x4000_3c00);
        set_word(&bench, lane * 8 + 4, 0x4400_4200);
    }
    bench.fill(1, |lane| lane as u32 + 32);
    (4..6).for_each(|register| bench.fill(register, |_| 9));
    // buffer_load_format_d16_xyz v[4:5], v1, s[8:11], 0 idxen
    bench.run(&[0xe028_2000, 0x8002_0401]);
    for lane in 0..64 {
        // Of a record that is not there, every component is 0.
        let inside = lane < 32;
        assert_eq!(bench.wave.row(4)[lane], if inside { 0x4000_3c00 } else { 0 }, "lane {lane}");
        assert_eq!(bench.wave.row(5)[lane], if inside { 0x4200 } else { 0 }, "lane {lane}");
    }
    // One component to the upper half, and from there: buffer_load_format_d16_hi_x, buffer_store_format_d16_hi_x.
    describe(&mut bench, 0, 256, 1, 0);
    set_word(&bench, 16, 0xff);
    bench.fill(1, |_| 16);
    bench.fill(4, |_| 0x1234_5678);
    bench.run(&[0xe098_1000, 0x8002_0401]);
    assert_eq!(bench.wave.row(4)[0], 0x3c00_0000);
    bench.fill(4, |_| 0x3800_0000);
    bench.run(&[0xe09c_1000, 0x8002_0401]);
    assert_eq!(read_word(&bench, 16), 0x80);
}

#[test]
fn components_are_stored() {
    let mut bench = bench();
    describe(&mut bench, 0, 64, 5, 1);
    bench.fill(1, |lane| lane as u32 * 4);
    bench.fill(4, |_| f(1.0));
    bench.fill(5, |_| f(-0.5));
    set_word(&bench, 64, 0x5555_5555);
    // buffer_store_format_xy v[4:5], v1, s[8:11], 0 offen: snorm of 16 bits.
    bench.run(&[0xe014_1000, 0x8002_0401]);
    assert_eq!(read_word(&bench, 0), 0xc000_7fff);
    assert_eq!(read_word(&bench, 60), 0xc000_7fff);
    assert_eq!(read_word(&bench, 64), 0x5555_5555, "beyond the end");
}

#[test]
fn an_instruction_says_what_an_element_is() {
    let mut bench = bench();
    // The resource's own format means nothing.
    describe(&mut bench, 0, 256, 0, 0);
    set_word(&bench, 0, 0xff00_0033);
    bench.fill(1, |_| 0);
    // tbuffer_load_format_xyzw v[4:7], v1, s[8:11], 0 format:[BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_UNORM] offen
    bench.run(&[0xe851_9000, 0x8002_0401]);
    assert_eq!([4, 5, 6, 7].map(|register| bench.wave.row(register)[63]), [0.2, 0.0, 0.0, 1.0].map(f));
    (4..8).zip([1u32, 5000, 3, 2]).for_each(|(register, value)| bench.fill(register, |_| value));
    // tbuffer_store_format_xyzw v[4:7], v1, s[8:11], 0 format:[BUF_DATA_FORMAT_10_10_10_2,BUF_NUM_FORMAT_UINT] offen
    bench.run(&[0xea43_9000, 0x8002_0401]);
    assert_eq!(read_word(&bench, 0), 1 | 1023 << 2 | 3 << 12 | 2 << 22);
    bench.fill(4, |_| 0x4000_3c00);
    bench.fill(5, |_| 0x8001_7c00);
    // tbuffer_store_format_d16_xyzw v[4:5], v1, s[8:11], 0 format:[BUF_DATA_FORMAT_16_16_16_16,BUF_NUM_FORMAT_FLOAT] offen
    bench.run(&[0xebe7_9000, 0x8002_0401]);
    assert_eq!([read_word(&bench, 0), read_word(&bench, 4)], [0x4000_3c00, 0x8001_7c00]);
}

#[test]
fn what_is_no_format_is_a_fault() {
    let mut bench = bench();
    describe(&mut bench, 0, 256, 0, 0);
    let Err(fault) = bench.try_run(&[0xe00c_1000, 0x8002_0401]) else { panic!("there is no format 0") };
    assert!(
        matches!(fault.cause, Cause::Unknown { mnemonic: Some("buffer_load_format_xyzw"), .. }),
        "{fault}"
    );
}

#[test]
fn buffers_are_loaded_to_lds() {
    let mut bench = bench();
    describe(&mut bench, 0, 100, 4, 4);
    bench.wave.sgpr[hipr_isa::wave::M0] = 0x40;
    bench.fill(1, |lane| lane as u32 * 2);
    // buffer_load_ubyte v1, s[8:11], 0 offen offset:4 lds
    bench.run(&[0xe041_1004, 0x8002_0001]);
    for lane in 0..64u64 {
        let offset = lane * 2 + 4;
        let byte = if offset < 100 { u32::from(crate::global::byte(offset)) } else { 0 };
        assert_eq!(bench.lds.load_u32(0x44 + lane as u32 * 4), byte, "lane {lane}");
    }
    bench.fill(1, |lane| lane as u32);
    // buffer_load_dword v1, s[8:11], 0 offen lds
    bench.run(&[0xe051_1000, 0x8002_0001]);
    let expected = u32::from_le_bytes([8, 9, 10, 11].map(crate::global::byte));
    assert_eq!(bench.lds.load_u32(0x40 + 8 * 4), expected);
}
