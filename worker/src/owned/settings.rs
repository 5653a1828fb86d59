//! Device settings that a client has changed.

/// Settings that a client made for its device. HIP on AMD stores them without effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) flags: u32,
    pub(crate) cache_config: i32,
    pub(crate) shared_mem_config: i32,
}

impl Default for Settings {
    fn default() -> Self {
        // HIP API: hipDeviceScheduleAuto, hipFuncCachePreferNone, hipSharedMemBankSizeFourByte.
        Self { flags: 0, cache_config: 0, shared_mem_config: 1 }
    }
}
