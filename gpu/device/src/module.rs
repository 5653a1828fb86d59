//! Loading of modules.

/// What became of a code object that was to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleLoad {
    /// It is loaded.
    Loaded {
        /// The module's handle.
        module: u64,
        /// Bytes that it takes of the worker's and the device's memory until it is unloaded, together.
        memory_bytes: u64,
    },
    /// It needs more memory than it may have. The image is given back.
    NoRoom(Vec<u8>),
}
