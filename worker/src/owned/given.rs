//! The memory for which a session has given capabilities: what is allocated where it was is other memory.

use super::Allocation;

/// The ranges of a session's capabilities, as long as their memory may be there.
#[derive(Debug, Default)]
pub(crate) struct Given {
    ranges: Vec<Range>,
    /// Number of capabilities that were given.
    count: u64,
}

#[derive(Debug)]
struct Range {
    number: u64,
    start: u64,
    end: u64,
}

impl Given {
    /// Notes a capability for the range from `start` to `end`, and forgets all but those with the numbers `open`; returns its number.
    pub(crate) fn add(&mut self, start: u64, end: u64, open: &[u64]) -> u64 {
        self.ranges.retain(|range| open.contains(&range.number));
        self.count += 1;
        let number = self.count;
        self.ranges.push(Range { number, start, end });
        number
    }

    /// Ends the capabilities for memory that was where a new allocation is.
    #[inline]
    pub(super) fn handle_new(&mut self, new: &Allocation) {
        if !self.ranges.is_empty() {
            let end = new.base.saturating_add(new.size_bytes);
            self.ranges.retain(|range| range.end <= new.base || end <= range.start);
        }
    }

    /// Returns whether nothing was allocated where the memory of a capability was.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.ranges.iter().any(|range| range.number == number)
    }
}
