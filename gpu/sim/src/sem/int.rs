//! Integers.

/// A result, and whether it is not 0: what logic and shifts put in SCC.
#[inline(always)]
pub(crate) fn nonzero<T: Default + PartialEq>(value: T) -> (T, bool) {
    let scc = value != T::default();
    (value, scc)
}
