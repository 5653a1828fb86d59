//! The C API of libamd_comgr, AMD's code object manager, loaded at run time. hipr uses it to read the metadata of code
//! objects.
//!
//! It reads kernel metadata the way AMD's own runtime does. `hipr-code-object` reads the same without it; `tests/rocm` holds
//! the two to the same answers.
//!
//! `table.rs` is the table of functions, `metadata.rs` the safe way to use them: [`Comgr::metadata`].

mod metadata;
mod table;

pub use hipr_dynlib::{LoadError, Need};
pub use metadata::{Argument, Error, Kernel, Metadata};
pub use table::{Comgr, NAMES, amd_comgr_data_t, amd_comgr_metadata_node_t, amd_comgr_status_t};
