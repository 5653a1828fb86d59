//! Device settings that a client has changed.

use std::collections::BTreeMap;

/// Settings that a client made. HIP on AMD stores them without effect.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The flags of devices.
    pub(crate) flags: BTreeMap<i32, u32>,
    pub(crate) cache_config: i32,
    pub(crate) shared_mem_config: i32,
}

impl Default for Settings {
    fn default() -> Self {
        // HIP API: hipFuncCachePreferNone, hipSharedMemBankSizeFourByte.
        Self { flags: BTreeMap::new(), cache_config: 0, shared_mem_config: 1 }
    }
}
