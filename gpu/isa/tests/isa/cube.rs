//! Tests of cube maps, screen tiles, and sums of differences in four registers.

use crate::bench::{Bench, check, check1, f};

/// Directions with the results of the four cube map instructions.
const DIRECTIONS: [([f32; 3], [f32; 4]); 10] = [
    ([3.0, 1.0, 2.0], [0.0, -2.0, -1.0, 6.0]),
    ([-3.0, 1.0, 2.0], [1.0, 2.0, -1.0, -6.0]),
    ([1.0, 5.0, -2.0], [2.0, 1.0, -2.0, 10.0]),
    ([1.0, -5.0, -2.0], [3.0, 1.0, 2.0, -10.0]),
    ([1.0, 2.0, 7.0], [4.0, 1.0, -2.0, 14.0]),
    ([1.0, 2.0, -7.0], [5.0, -1.0, -2.0, -14.0]),
    // Ties: z before y before x.
    ([1.0, 1.0, 1.0], [4.0, 1.0, -1.0, 2.0]),
    ([-1.0, -1.0, 0.5], [3.0, -1.0, -0.5, -2.0]),
    ([0.0, 0.0, -0.0], [4.0, 0.0, -0.0, -0.0]),
    ([f32::NAN, 1.0, 0.5], [0.0, -0.5, -1.0, f32::NAN]),
];

#[test]
fn a_direction_has_a_face() {
    let instructions = [
        (0xd1c4_0003, "v_cubeid_f32 v3, v1, v2, v4"),
        (0xd1c5_0003, "v_cubesc_f32 v3, v1, v2, v4"),
        (0xd1c6_0003, "v_cubetc_f32 v3, v1, v2, v4"),
        (0xd1c7_0003, "v_cubema_f32 v3, v1, v2, v4"),
    ];
    for (index, (word, text)) in instructions.into_iter().enumerate() {
        let cases = DIRECTIONS.map(|([x, y, z], results)| (f(x), f(y), f(z), f(results[index])));
        check(&[word, 0x0412_0501], text, &cases);
    }
}

#[test]
fn a_rectangle_is_drawn_by_engines() {
    // x_min, y_min, x_max, y_max in tiles modulo 4, the last in the lowest bits.
    let bounds =
        |x_min: u32, y_min: u32, x_max: u32, y_max: u32| x_min << 6 | y_min << 4 | x_max << 2 | y_max;
    check1(
        &[0x7e066f01],
        "v_screen_partition_4se_b32 v3, v1",
        &[
            (bounds(0, 0, 0, 0), 0b0001),
            (bounds(0, 0, 0, 1), 0b0011),
            (bounds(0, 0, 1, 0), 0b0101),
            (bounds(1, 1, 1, 1), 0b1000),
            (bounds(2, 0, 2, 0), 0b0010),
            (bounds(0, 2, 0, 2), 0b0100),
            (bounds(0, 0, 1, 1), 0b1111),
            // From the last tile to the first: one further, not back over all.
            (bounds(3, 0, 0, 0), 0b1001),
            (0xffff_ff00 | bounds(0, 0, 0, 0), 0b0001),
        ],
    );
}

#[test]
fn four_sums_of_masked_differences() {
    for exec in [u64::MAX, 0xf00f, 0] {
        let mut bench = Bench::default();
        bench.wave.set_exec(exec);
        bench.fill64(4, |_| 0x0807_0605_0403_0201);
        bench.fill(1, |lane| 0xff00_0010 + lane as u32 % 2);
        for (register, sum) in (16..).zip([0, 100, u32::MAX, 0x8000_0000]) {
            bench.fill(register, |_| sum);
        }
        (12..16).for_each(|register| bench.fill(register, |_| 9));
        // v_mqsad_u32_u8 v[12:15], v[4:5], v1, v[16:19]
        bench.run(&[0xd1e7_000c, 0x0442_0304]);
        for lane in 0..64 {
            let reference = [0x10 + lane as u32 % 2, 0, 0, 0xff];
            let expected = [0, 100, u32::MAX, 0x8000_0000u32].iter().enumerate().map(|(first, sum)| {
                let bytes = (0..4).filter(|&index| reference[index] != 0);
                bytes.fold(*sum, |sum, index| {
                    sum.wrapping_add(((first + index + 1) as u32).abs_diff(reference[index]))
                })
            });
            for (register, expected) in (12..).zip(expected) {
                let expected = if exec >> lane & 1 == 1 { expected } else { 9 };
                assert_eq!(bench.wave.row(register)[lane], expected, "v{register}, lane {lane}");
            }
        }
    }
}
