//! The calls of the program: which function each is of, and its number, in one word that a request's error leads back to.

use std::sync::OnceLock;

/// A function of the export table.
#[derive(Clone, Copy)]
pub(crate) struct Exported {
    /// The names of all functions of the table.
    pub(crate) names: &'static [&'static str],
    /// Which one it is.
    pub(crate) index: u16,
}

/// Number of bits of a call's number; those above have the function.
const NUMBER_BITS: u32 = 48;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The names of the exported functions, once one was called.
static NAMES: OnceLock<&'static [&'static str]> = OnceLock::new();

impl Exported {
    /// Returns the name of the function.
    pub(crate) fn name(self) -> &'static str {
        self.names.get(usize::from(self.index)).copied().unwrap_or("")
    }

    /// Makes the names of all functions known to [`name_of`].
    pub(crate) fn learn_names(self) {
        let _ = NAMES.set(self.names);
    }

    /// Returns the word for the call of this function that is the `number`th of the process, from 1 on.
    #[inline]
    pub(crate) fn call(self, number: u64) -> u64 {
        u64::from(self.index) << NUMBER_BITS | number & NUMBER_MASK
    }
}

/// Returns the function and the number of a call; `None` for the word 0, which is no call.
pub(crate) fn name_of(call: u64) -> Option<(&'static str, u64)> {
    let name = NAMES.get()?.get((call >> NUMBER_BITS) as usize)?;
    let number = call & NUMBER_MASK;
    (number > 0).then_some((*name, number))
}
