//! C libraries that are loaded at run time: finding a library, and the table of its functions.
//!
//! [`functions!`](crate::functions!) turns one row per C function into a struct of function pointers, methods that call them,
//! and [`Function`]s that describe the rows, so that a test can hold them against the C prototypes. `hip-sys` and
//! `comgr-sys` are two such tables.

mod functions;
mod load;

pub use functions::{Function, Need};
pub use hipr_ctype::{CType, Type, c_types};
pub use load::{Library, LoadError, Names, open};
