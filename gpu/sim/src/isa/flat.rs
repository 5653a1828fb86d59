//! Flat, global and scratch memory.

use crate::isa::rows;
use crate::shape::memory::{global_load, global_store};

rows! {
    /// FLAT: the address decides which memory.
    FLAT [128] {}
}
rows! {
    /// GLOBAL: device memory.
    GLOBAL [128] {
        0x14 global_load_dword = global_load();
        0x1c global_store_dword = global_store();
    }
}
rows! {
    /// SCRATCH: the lane's own memory.
    SCRATCH [128] {}
}
