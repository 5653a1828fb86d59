//! Tests of typed buffers: elements in each format.

use hipr_isa::sem::format::Format;

#[test]
fn elements_survive_a_round_trip() {
    let mut random = 0x1234_5678_9abc_def1u64;
    for data in 0..16 {
        for number in 0..8 {
            let Some(format) = Format::new(data, number) else { continue };
            for _ in 0..200 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let words = [0, 7, 19, 31].map(|shift: u32| (random >> shift) as u32);
                let canonical = format.decode(format.encode(format.decode(words)));
                let decoded = format.decode(words);
                for (a, b) in canonical.into_iter().zip(decoded) {
                    let nan = |bits: u32| !format.is_integer() && f32::from_bits(bits).is_nan();
                    assert!(a == b || (nan(a) && nan(b)), "{format:?}: {decoded:x?} and {canonical:x?}");
                }
            }
        }
    }
}

#[test]
fn components_mean_what_their_format_says() {
    let decode = |data, number, word: u32| Format::new(data, number).unwrap().decode([word, 0, 0, 0]);
    let f = |values: [f32; 4]| values.map(f32::to_bits);
    assert_eq!(decode(10, 0, 0xff80_3300), f([0.0, 0.2, 128.0 / 255.0, 1.0]));
    assert_eq!(decode(10, 1, 0x8081_7f00), f([0.0, 1.0, -1.0, -1.0]));
    assert_eq!(decode(3, 5, 0x80ff), [u32::MAX, -128i32 as u32, 0, 1]);
    assert_eq!(decode(5, 7, 0xc000_3c00), f([1.0, -2.0, 0.0, 1.0]));
    assert_eq!(decode(9, 4, 0xc030_0802), [2, 2, 3, 3]);
    assert_eq!(decode(6, 7, 0x3c0 | 0x3c0 << 11 | 0x1e0 << 22), f([1.0, 1.0, 1.0, 1.0]));
    assert_eq!(decode(1, 3, 0xfe), f([-2.0, 0.0, 0.0, 1.0]));
    let encode = |data, number, values| Format::new(data, number).unwrap().encode(f(values))[0];
    assert_eq!(encode(10, 0, [2.0, -1.0, 0.5, f32::NAN]), 0x0080_00ff);
    assert_eq!(encode(3, 1, [-2.0, 1.0, 0.0, 0.0]), 0x7f81);
    assert_eq!(encode(6, 7, [1.0, -1.0, 1.0, 0.0]), 0x3c0 | 0x1e0 << 22);
    assert_eq!(Format::new(1, 4).unwrap().encode([256, 0, 0, 0])[0], 0xff);
    assert_eq!(Format::new(1, 5).unwrap().encode([-300i32 as u32, 0, 0, 0])[0], 0x80);
    assert_eq!(Format::new(0, 4), None);
    assert_eq!(Format::new(15, 4), None);
    assert_eq!(Format::new(1, 7), None, "no float of 8 bits");
    assert_eq!(Format::new(4, 6), None);
}
