//! Bytes that are kept until the other end has them.

use std::collections::VecDeque;

/// Capacity below which memory is not given back.
const KEEP_BYTES: usize = 16 << 10;

/// Maximum number of bytes by which memory grows beyond what is needed.
const STEP_MAX_BYTES: usize = 1 << 20;

/// A queue of bytes whose memory follows what is in it.
#[derive(Debug, Default)]
pub(crate) struct Ring(VecDeque<u8>);

impl Ring {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.0.capacity() - self.0.len() < bytes.len() {
            // A large one does not grow to twice of what is in it.
            self.0.reserve_exact(bytes.len().max(self.0.len().min(STEP_MAX_BYTES)));
        }
        self.0.extend(bytes);
    }

    /// Removes the first bytes.
    pub(crate) fn drop_front(&mut self, len: usize) {
        self.0.drain(..len.min(self.0.len()));
        let (len, capacity) = (self.0.len(), self.0.capacity());
        if capacity > KEEP_BYTES && len < capacity / 8 {
            self.0.shrink_to((2 * len).max(KEEP_BYTES));
        }
    }

    /// Returns `len` bytes from `start` on, which are there, in one or two pieces.
    pub(crate) fn range(&self, start: usize, len: usize) -> (&[u8], &[u8]) {
        let (first, second) = self.0.as_slices();
        let end = start + len;
        let split = first.len();
        (
            first.get(start.min(split)..end.min(split)).unwrap_or_default(),
            second.get(start.max(split) - split..end.max(split) - split).unwrap_or_default(),
        )
    }

    /// Moves bytes from the front to `into`; returns how many.
    pub(crate) fn take(&mut self, into: &mut [u8]) -> usize {
        let len = into.len().min(self.0.len());
        let (first, second) = self.range(0, len);
        let (one, two) = into.split_at_mut(first.len());
        one.copy_from_slice(first);
        two.iter_mut().zip(second).for_each(|(place, byte)| *place = *byte);
        self.drop_front(len);
        len
    }

    pub(crate) fn clear(&mut self) {
        self.drop_front(self.0.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_was_pushed_however_the_memory_is_cut() {
        let mut ring = Ring::default();
        let mut next = 0_u8;
        let mut first = 0_u8;
        for step in 0..5000_usize {
            let more: Vec<u8> = (0..step % 7).map(|at| next.wrapping_add(at as u8)).collect();
            next = next.wrapping_add(more.len() as u8);
            ring.push(&more);
            for start in [0, ring.len() / 3] {
                let (one, two) = ring.range(start, ring.len() - start);
                let all = [one, two].concat();
                let expected: Vec<u8> = (start..ring.len()).map(|at| first.wrapping_add(at as u8)).collect();
                assert_eq!(all, expected);
            }
            let gone = (step % 5).min(ring.len());
            let mut taken = vec![0; gone];
            assert_eq!(ring.take(&mut taken), gone);
            assert!(taken.iter().enumerate().all(|(at, byte)| *byte == first.wrapping_add(at as u8)));
            first = first.wrapping_add(gone as u8);
            if ring.len() > 200 {
                first = first.wrapping_add(ring.len() as u8);
                ring.clear();
            }
        }
    }

    #[test]
    fn memory_is_little_more_than_what_is_in_it() {
        let mut ring = Ring::default();
        for _ in 0..200 {
            ring.push(&[1; 50_000]);
            assert!(ring.capacity() <= ring.len() + STEP_MAX_BYTES.min(ring.len()), "{}", ring.capacity());
        }
    }

    #[test]
    fn memory_is_given_back() {
        let mut ring = Ring::default();
        ring.push(&vec![1; 4 << 20]);
        ring.drop_front((4 << 20) - 100);
        assert_eq!(ring.len(), 100);
        assert!(ring.0.capacity() <= 2 * KEEP_BYTES, "{}", ring.0.capacity());
    }
}
