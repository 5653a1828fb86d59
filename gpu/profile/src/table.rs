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

impl Row {
    /// Returns the row of an instruction that was never executed.
    fn unknown() -> Self {
        Self { mnemonic: "", class: Class::Other, flops: None, counts: Counts::default() }
    }
}

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
                pages.push((number, vec![Row::unknown(); PAGE_WORDS as usize].into_boxed_slice()));
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
