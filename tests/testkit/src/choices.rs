//! Where all randomness comes from: bytes. A seed makes them for `simulate`, libFuzzer for the fuzz targets, proptest for
//! its own driver; the same bytes give the same world.

use arbitrary::Unstructured;

/// Decisions, taken from bytes until they are used up. After that every decision is the first of its possibilities, so
/// that whatever is being decided comes to an end.
#[derive(Debug)]
pub struct Choices<'a>(Unstructured<'a>);

impl<'a> Choices<'a> {
    /// Decisions from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    /// Whether the bytes are used up.
    pub fn is_exhausted(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes that no decision has used.
    pub fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }

    /// A number below `end`; 0 when the bytes are used up, and for an `end` of 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.int_in_range(0..=end.saturating_sub(1)).unwrap_or(0)
    }

    /// An index of a slice of that length.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number from `min` to `max`, both included; `min` when the bytes are used up.
    pub fn between(&mut self, min: u64, max: u64) -> u64 {
        min + self.below((max - min) + 1)
    }

    /// True in `percent` of 100 cases; false when the bytes are used up.
    pub fn percent(&mut self, percent: u8) -> bool {
        // The last of 100 numbers, because exhausted bytes give the first.
        self.below(100) >= 100 - u64::from(percent.min(99))
    }

    /// True once in `n` cases; false when the bytes are used up (unless `n` is 1).
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) + 1 >= n
    }

    /// One of `all`, the first when the bytes are used up; `None` of nothing.
    pub fn pick<'s, T>(&mut self, all: &'s [T]) -> Option<&'s T> {
        all.get(self.index(all.len()))
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
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

/// The bytes of a seed. Their number differs from seed to seed: few bytes are short scripts and calm worlds.
pub fn seed_bytes(seed: u64) -> Vec<u8> {
    let mut numbers = SplitMix64(seed);
    let words = 8 << (numbers.next() % 7);
    (0..words).flat_map(|_| numbers.next().to_le_bytes()).collect()
}

/// Bytes that look like nothing else: a part of them that is moved, cut or exchanged is noticed.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut numbers = SplitMix64(0x4849_5052);
    (0..len.div_ceil(8)).flat_map(|_| numbers.next().to_le_bytes()).take(len).collect()
}
