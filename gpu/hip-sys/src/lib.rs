//! The C API of libamdhip64, loaded at run time.
//!
//! Nothing here links against ROCm: [`Hip::load`] opens the library with `dlopen`, so that one binary
//! runs with and without it. What it opens is whatever the loader finds under the usual names: AMD's
//! runtime, or hipr's own client, which exports the same functions.
//!
//! `table.rs` is the table: one row per function, its C prototype. The struct of function pointers, the
//! look-ups, the methods and [`Hip::FUNCTIONS`] all come from it. The C types and constants are those of `hipr-abi`.
//!
//! A field is a function pointer, a method calls it: `hip.hipLaunchHostFunc.is_some()` says whether the library has
//! the function, `unsafe { hip.hipLaunchHostFunc(stream, function, data) }` calls it and is hipErrorNotSupported where it is absent.

mod safe;
mod table;

pub use hipr_abi::*;
pub use hipr_dynlib::{Function as Row, LoadError, Need};
pub use safe::{Call, DeviceBuffer, Error, Function, Module};
pub use table::{Hip, NAMES};
