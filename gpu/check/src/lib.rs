//! Finds mistakes in kernels while an emulated device executes them.

#![forbid(unsafe_code)]

mod finding;

pub use finding::{Accessed, Finding, Kind, Near, Other, Place, Tool};
