//! Tests that computations for many lanes at once are the same on each SIMD level, and of the choice of the level.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::bench::Bench;
use hipr_isa::sem::half::F16;
use hipr_isa::simd::Level;
use hipr_isa::simd::halves::{narrowed, widened};
use hipr_isa::simd::words::{load_words, store_words};
use hipr_isa::wave::LANES;

#[test]
fn each_lane_gives_its_bit_of_a_mask() {
    for lane in 0..LANES {
        let mut bench = Bench::default();
        let mask = |bench: &mut Bench, value: fn(bool) -> u32| {
            bench.fill(1, |index| value(index == lane));
            bench.run(&[0x7d9a0280]); // v_cmp_ne_u32_e32 vcc, 0, v1
            bench.wave.vcc()
        };
        assert_eq!(mask(&mut bench, u32::from), 1 << lane);
        assert_eq!(mask(&mut bench, |is_lane| u32::from(!is_lane)), !(1 << lane));
    }
}

#[test]
fn levels_are_found_by_their_names() {
    for level in Level::available() {
        assert_eq!(level.name().parse(), Ok(level));
    }
    assert_eq!(Level::available().next(), Some(Level::BASE));
    let error = "v9".parse::<Level>().unwrap_err();
    assert!(error.to_string().starts_with("HIPR_SIM_SIMD: \"v9\" is none"), "{error}");
}

#[test]
fn every_word_is_moved_and_no_other() {
    for level in Level::available() {
        for len in 0..70 {
            let words: Vec<AtomicU32> = (0..len).map(|_| AtomicU32::new(7)).collect();
            let values: Vec<u32> = (100..165).collect();
            store_words(level, &words, &values);
            let stored: Vec<u32> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            let moved = values.len().min(len);
            assert_eq!(stored[..moved], values[..moved], "{level:?}, {len} words");
            assert!(stored[moved..].iter().all(|word| *word == 7), "{level:?}, {len} words");

            let mut loaded = [9; 65];
            load_words(level, &words, &mut loaded);
            assert_eq!(loaded[..moved], values[..moved], "{level:?}, {len} words");
            assert!(loaded[moved..].iter().all(|word| *word == 9), "{level:?}, {len} words");
        }
    }
}

#[test]
fn all_halves_are_widened_on_each_level() {
    for level in Level::available() {
        for first in (0..=u16::MAX - 63).step_by(LANES) {
            let row = std::array::from_fn(|lane| u32::from(first + lane as u16) << 16 | 0x1234);
            for (lane, wide) in widened(level, &row, 16).into_iter().enumerate() {
                let expected = F16(first + lane as u16).to_f32();
                let same = wide.to_bits() == expected.to_bits() || wide.is_nan() && expected.is_nan();
                assert!(same, "{level:?}: {:#x}", first + lane as u16);
            }
            let low = widened(level, &row, 0);
            assert_eq!(low, [F16(0x1234).to_f32(); LANES], "{level:?}");
        }
    }
}

#[test]
fn rows_are_narrowed_alike_on_each_level() {
    let mut bits = 1u32;
    for _ in 0..20_000 {
        let row: [f32; LANES] = std::array::from_fn(|lane| {
            bits = bits.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            // Every other one where f16 has numbers, denormals included.
            let exponent = if lane % 2 == 0 { bits >> 23 } else { 100 + (bits >> 16) % 45 };
            f32::from_bits(bits & 0x807f_ffff | (exponent & 0xff) << 23)
        });
        let expected = narrowed(Level::BASE, &row);
        for level in Level::available() {
            assert_eq!(narrowed(level, &row), expected, "{level:?}: {row:?}");
        }
    }
}
