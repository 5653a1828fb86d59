//! Partition of the screen among shader engines.

/// Returns one bit for each shader engine that has a tile of a rectangle. `bounds` has two bits each of, from bit 0 on: the
/// upper end of the rectangle in y and in x, the lower end in y and in x, as numbers of tiles modulo 4. Engines have tiles in a
/// pattern of 4 by 4.
#[inline(always)]
pub(crate) fn screen_partition(bounds: u32) -> u32 {
    let field = |shift: u32| bounds >> shift & 3;
    let ([y_max, x_max, y_min, x_min], mut engines) = ([0, 2, 4, 6].map(field), 0);
    let steps = |min: u32, max: u32| (0..=max.wrapping_sub(min) & 3).map(move |step| (min + step) & 3);
    for x in steps(x_min, x_max) {
        for y in steps(y_min, y_max) {
            let engine = ((x & 1) ^ (y >> 1)) << 1 | ((y & 1) ^ (x >> 1));
            engines |= 1 << engine;
        }
    }
    engines
}
