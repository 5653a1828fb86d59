//! Semantics: pure functions on numbers.

pub(crate) mod float;
pub(crate) mod int;
pub(crate) mod salu;
