//! Collects findings: one for each kind and instruction.

use std::collections::HashMap;

use crate::finding::{Finding, Kind};
use crate::lock::{Lock, lock};

/// What a finding is the same as: its kind, its context, and the address of its instruction or of what else it is about.
pub(crate) type Key = (Kind, u64, u64);

#[derive(Debug, Default)]
struct Found {
    findings: Vec<Finding>,
    /// The number of the finding of each key; `None` for those that there was no room for.
    by_key: HashMap<Key, Option<usize>>,
}

/// The findings of a device.
#[derive(Debug)]
pub(crate) struct Report {
    findings_max: usize,
    found: Lock<Found>,
}

impl Report {
    pub(crate) fn new(findings_max: usize) -> Self {
        Self { findings_max, found: Lock::default() }
    }

    /// Adds a finding, or counts it if there is one with its key.
    pub(crate) fn add(&self, key: Key, count: u64, finding: impl FnOnce() -> Finding) {
        let mut found = lock(&self.found);
        if let Some(known) = found.by_key.get(&key).copied() {
            if let Some(known) = known.and_then(|index| found.findings.get_mut(index)) {
                known.count = known.count.saturating_add(count);
            }
            return;
        }
        if found.findings.len() == self.findings_max {
            // A bound on keys as well: what is left out is not counted by kind.
            if found.by_key.len() < self.findings_max.saturating_mul(2) {
                found.by_key.insert(key, None);
            }
            return;
        }
        let index = found.findings.len();
        found.by_key.insert(key, Some(index));
        found.findings.push(Finding { count, ..finding() });
    }

    /// Returns the findings in the order in which they were found first.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        lock(&self.found).findings.clone()
    }
}
