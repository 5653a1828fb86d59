//! Counts by the address of the instruction.

use std::collections::HashMap;

use crate::class::{Class, Flops};
use crate::counts::Counts;

/// Instructions whose counts are kept together: those of 1 KiB of code.
const PAGE_WORDS: u64 = 256;

/// What is known of an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Empty if it was never executed.
    pub(crate) mnemonic: &'static str,
    pub(crate) class: Class,
    pub(crate) flops: Option<Flops>,
    pub(crate) counts: Counts,
}

const UNKNOWN: Row = Row { mnemonic: "", class: Class::Other, flops: None, counts: ZERO };
const ZERO: Counts = Counts {
    instructions: [0; Class::ALL.len()],
    vector_instructions: 0,
    lanes: 0,
    splits: 0,
    flops: [0; 3],
    matrix_flops: [0; 3],
    memory_accesses: 0,
    loaded_bytes: 0,
    stored_bytes: 0,
    atomic_bytes: 0,
    cache_lines: 0,
    scalar_bytes: 0,
    lds_bytes: 0,
    lds_cycles: 0,
    lds_conflicts: 0,
    scratch_bytes: 0,
};

/// The counts of instructions.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pages: Vec<(u64, Box<[Row]>)>,
    by_number: HashMap<u64, usize>,
    /// The page that was used last.
    last: usize,
}

impl Table {
    /// Returns the row of the instruction at an address.
    pub(crate) fn row(&mut self, pc: u64) -> &mut Row {
        let (number, word) = (pc / 4 / PAGE_WORDS, (pc / 4 % PAGE_WORDS) as usize);
        if self.pages.get(self.last).is_none_or(|(known, _)| *known != number) {
            let pages = &mut self.pages;
            self.last = *self.by_number.entry(number).or_insert_with(|| {
                pages.push((number, vec![UNKNOWN; PAGE_WORDS as usize].into_boxed_slice()));
                pages.len() - 1
            });
        }
        &mut self.pages[self.last].1[word]
    }

    /// Calls `each` with the address and the row of each instruction that was executed.
    pub(crate) fn each(&self, mut each: impl FnMut(u64, &Row)) {
        for (number, rows) in &self.pages {
            for (word, row) in (0..).zip(rows.iter()).filter(|(_, row)| !row.mnemonic.is_empty()) {
                each((number * PAGE_WORDS + word) * 4, row);
            }
        }
    }
}
