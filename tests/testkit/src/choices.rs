//! Random decisions made from bytes. A seed supplies the bytes for `simulate`, libFuzzer for the fuzz targets, proptest for
//! its own driver; the same bytes give the same world.

use arbitrary::Unstructured;

/// A source of random decisions made from bytes. When the bytes are used up, every decision is the first of its
/// alternatives, so that everything drawn comes to an end.
#[derive(Debug)]
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// Creates decisions from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// Returns whether the bytes are used up.
    pub fn is_exhausted(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that no decision has used.
    pub fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }

    /// Returns a number below `end`; 0 when the bytes are used up or `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.int_in_range(0..=end.saturating_sub(1)).unwrap_or(0)
    }

    /// Returns an index of a slice of that length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns a number from `min` to `max` inclusive; `min` when the bytes are used up.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below((max - min) + 1)
    }

    /// Returns true in `percent` of 100 cases; false when the bytes are used up.
    pub fn percent(&mut self, percent: u8) -> bool {
        // The last of 100 numbers, because exhausted bytes give the first.
        self.below(100) >= 100 - u64::from(percent.min(99))
    }

    /// Returns true once in `n` cases; false when the bytes are used up (unless `n` is 1).
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) + 1 >= n
    }

    /// Returns one of `all`, the first when the bytes are used up; `None` if `all` is empty.
    pub fn pick<'s, T>(&mut self, all: &'s [T]) -> Option<&'s T> {
        all.get(self.index(all.len()))
    }
}

/// The SplitMix64 generator: the same numbers for the same seed.
#[derive(Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Returns the bytes of a seed. Their number varies: few bytes give short scripts and simple worlds.
pub fn seed_bytes(seed: u64) -> Vec<u8> {
    let mut numbers = SplitMix64(seed);
    let words = 8 << (numbers.next() % 7);
    (0..words).flat_map(|_| numbers.next().to_le_bytes()).collect()
}

/// Returns pseudo-random bytes, so that a piece that is moved, lost or exchanged is noticed.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut numbers = SplitMix64(0x4849_5052);
    (0..len.div_ceil(8)).flat_map(|_| numbers.next().to_le_bytes()).take(len).collect()
}
