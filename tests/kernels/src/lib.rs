//! Generated kernels that are compiled for the emulated GPU and for the host, run on both with the same random inputs, and
//! compared bit for bit.
//!
//! A kernel is C made from a theme and a seed ([`Unit::source`]); the same text is a kernel on the GPU and a function of lane and
//! group on the host. What C leaves open is avoided: no undefined shifts, divisions or conversions, no contraction, one NaN.

#![forbid(unsafe_code)]

mod compile;
mod generate;
mod inputs;
mod random;
mod run;
mod themes;

pub use compile::{Compiler, Level};
pub use generate::Unit;
pub use inputs::inputs;
pub use random::Random;
pub use run::{Results, on_emulator, on_host};
pub use themes::THEMES;
