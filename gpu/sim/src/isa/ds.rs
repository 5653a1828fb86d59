//! LDS.

use crate::isa::rows;
use crate::shape::memory::{ds_read, ds_write};

rows! {
    /// DS.
    DS [256] {
        0x0d ds_write_b32 = ds_write();
        0x36 ds_read_b32 = ds_read();
    }
}
