//! HIP's C types, constants and attribute numbers: the one table of them in this workspace.
//!
//! `types.rs` has the structures, unions, handles and enumerations, checked against `data/structs.tsv` while compiling;
//! `constants.rs` the constants and the numbers of attributes, whose values come from `data/enums.tsv`; `properties.rs` the fields
//! that both layouts of `hipDeviceProp_t` have; `launch.rs` which sizes of a launch, `pool.rs` which memory pools are refused, and with which
//! error. Both data files were read from the headers of releases 6.4.3 and 7.2.4.
//!
//! Names are those of the C headers, so that looking for one finds every place that uses it.

#![no_std]
#![forbid(unsafe_code)]

mod constants;
mod data;
mod launch;
mod layout;
mod pool;
mod properties;
#[allow(non_camel_case_types, non_snake_case, reason = "the names are those of the C headers")]
mod types;
mod zero;

pub use constants::*;
pub use launch::{LaunchFamily, LaunchLimits, LaunchSize, blocks_of_threads};
pub use pool::{check_pool, check_pool_attribute};
pub use properties::{bytes_of, chars_of};
pub use types::*;
