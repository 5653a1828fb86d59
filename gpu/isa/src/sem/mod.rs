//! Semantics of instructions: pure functions on numbers.

pub(crate) mod atomic;
pub(crate) mod bits;
pub(crate) mod convert;
pub(crate) mod cube;
pub(crate) mod divide;
pub(crate) mod dot;
pub(crate) mod float;
pub mod format;
pub(crate) mod fp8;
pub mod half;
pub(crate) mod int;
pub(crate) mod matrix;
pub(crate) mod preop;
pub mod rounding;
pub(crate) mod salu;
pub(crate) mod screen;
pub(crate) mod transcendental;
