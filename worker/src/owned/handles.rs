//! Tables by handle, optimized for the look-ups of every launch.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map by handle.
type HandleMap<V> = HashMap<u64, V, BuildHasherDefault<HandleHasher>>;
/// A set of handles.
pub(super) type HandleSet = HashSet<u64, BuildHasherDefault<HandleHasher>>;

/// A table by handle that remembers the last look-up, because programs launch the same kernel repeatedly.
pub(super) struct HandleTable<V> {
    rows: Vec<(u64, V)>,
    /// Indices into `rows`.
    places: HandleMap<usize>,
    last: Cell<usize>,
}

impl<V> Default for HandleTable<V> {
    fn default() -> Self {
        Self { rows: Vec::new(), places: HandleMap::default(), last: Cell::new(0) }
    }
}

impl<V> HandleTable<V> {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Inserts a value, replacing that of the same handle.
    pub(super) fn insert(&mut self, handle: u64, value: V) {
        let place = *self.places.entry(handle).or_insert(self.rows.len());
        match self.rows.get_mut(place) {
            Some(row) => row.1 = value,
            None => self.rows.push((handle, value)),
        }
    }

    /// Returns the value of a handle.
    #[inline]
    pub(super) fn get(&self, handle: u64) -> Option<&V> {
        match self.rows.get(self.last.get()) {
            Some((last, value)) if *last == handle => Some(value),
            _ => self.find(handle),
        }
    }

    fn find(&self, handle: u64) -> Option<&V> {
        let place = *self.places.get(&handle)?;
        self.last.set(place);
        self.rows.get(place).map(|(_, value)| value)
    }

    /// Removes the values for which `keeps` returns false.
    pub(super) fn retain(&mut self, mut keeps: impl FnMut(&V) -> bool) {
        self.rows.retain(|(_, value)| keeps(value));
        self.places = self.rows.iter().enumerate().map(|(place, (handle, _))| (*handle, place)).collect();
    }
}

/// Hashes handles, which are mostly addresses or consecutive numbers. The device creates them, so that clients cannot
/// choose colliding ones.
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
        /// 2^64 divided by the golden ratio, odd, so that consecutive numbers are spread.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let spread = (self.0 ^ handle).wrapping_mul(FACTOR);
        self.0 = spread ^ (spread >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_finds_what_is_there_and_nothing_else() {
        let mut table = HandleTable::default();
        assert_eq!(table.get(0), None::<&u32>);
        (0..100u32).for_each(|n| table.insert(u64::from(n) << 12, n));
        let has = |table: &HandleTable<u32>, n: u32| table.get(u64::from(n) << 12) == Some(&n);
        assert!((0..100).all(|n| has(&table, n) && has(&table, n)) && table.get(1).is_none());
        table.insert(7 << 12, 700);
        assert_eq!((table.get(7 << 12), table.len()), (Some(&700), 100));
        assert!(has(&table, 99));
        table.retain(|n| n % 2 == 0);
        assert!(
            (0..100).all(|n| (n == 7 || has(&table, n)) == (n % 2 == 0 || n == 7)),
            "the last one looked for is gone too"
        );
        assert_eq!((table.get(7 << 12), table.get(99 << 12), table.len()), (Some(&700), None, 51));
    }

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
