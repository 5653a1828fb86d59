//! The calls of the program: which function each is of, and its number, in one word that a request's error leads back to.

use std::sync::OnceLock;

use crate::trace::ShownAs;

/// How a function of the export table is called.
#[derive(Debug)]
pub(crate) struct Signature {
    /// Its name.
    pub(crate) name: &'static str,
    /// The names of its arguments, and how a trace shows them, if it does.
    pub(crate) arguments: &'static [(&'static str, Option<ShownAs>)],
}

/// A function of the export table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exported {
    /// All functions of the table.
    pub(crate) table: &'static [Signature],
    /// Which one it is.
    pub(crate) index: u16,
}

/// Number of bits of a call's number; those above have the function.
const NUMBER_BITS: u32 = 48;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// The exported functions, once one was called.
static TABLE: OnceLock<&'static [Signature]> = OnceLock::new();

impl Exported {
    /// Returns the name of the function.
    pub(crate) fn name(self) -> &'static str {
        self.table.get(usize::from(self.index)).map_or("", |signature| signature.name)
    }

    /// Returns the names of those arguments that a trace shows, and how.
    pub(crate) fn shown(self) -> impl Iterator<Item = (&'static str, ShownAs)> {
        let arguments = self.table.get(usize::from(self.index)).map_or(&[][..], |known| known.arguments);
        arguments.iter().filter_map(|(name, shown)| Some((*name, (*shown)?)))
    }

    /// Makes the names of all functions known to [`name_of`].
    pub(crate) fn learn_names(self) {
        let _ = TABLE.set(self.table);
    }

    /// Returns the word for the call of this function that is the `number`th of the process, from 1 on.
    #[inline]
    pub(crate) fn call(self, number: u64) -> u64 {
        u64::from(self.index) << NUMBER_BITS | number & NUMBER_MASK
    }
}

/// Returns the function and the number of a call; `None` for the word 0, which is no call.
pub(crate) fn name_of(call: u64) -> Option<(&'static str, u64)> {
    let signature = TABLE.get()?.get((call >> NUMBER_BITS) as usize)?;
    let number = number_of(call);
    (number > 0).then_some((signature.name, number))
}

/// Returns the number of a call; 0 for the word 0, which is no call.
pub(crate) fn number_of(call: u64) -> u64 {
    call & NUMBER_MASK
}
