//! Tables by handle, which every launch looks into.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table by handle.
pub(super) type HandleMap<V> = HashMap<u64, V, BuildHasherDefault<HandleHasher>>;
/// A set of handles.
pub(super) type HandleSet = HashSet<u64, BuildHasherDefault<HandleHasher>>;

/// Spreads handles, which are mostly addresses or numbers in a row. A device makes them, so nobody can choose handles that
/// collide; a client only looks them up.
#[derive(Default)]
pub(super) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, handle: u64) {
        /// 2^64 divided by the golden ratio, odd: neighbours end up far apart.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let spread = (self.0 ^ handle).wrapping_mul(FACTOR);
        self.0 = spread ^ (spread >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_in_a_row_and_addresses_are_spread() {
        for step in [1, 8, 256, 4096, 1 << 20] {
            let mut places = [0u32; 1024];
            for n in 0..1024u64 {
                let mut hasher = HandleHasher::default();
                hasher.write_u64(0x7f00_0000_0000 + n * step);
                places[(hasher.finish() % 1024) as usize] += 1;
            }
            assert!(places.iter().all(|count| *count <= 12), "steps of {step}");
        }
    }
}
