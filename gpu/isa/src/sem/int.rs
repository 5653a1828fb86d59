//! Integers.

/// Returns a result, and whether it is not 0, which logic and shift instructions write to SCC.
#[inline(always)]
pub(crate) fn nonzero<T: Default + PartialEq>(value: T) -> (T, bool) {
    let scc = value != T::default();
    (value, scc)
}
