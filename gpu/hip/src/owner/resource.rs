//! The resources that an owner has created and has to release.

use hipr_device::MemoryKind;

/// The origin of memory, which decides how it is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// `hipMalloc`, `hipHostMalloc` or `hipMallocManaged`.
    Malloc(MemoryKind),
    /// `hipMallocAsync`, `hipMallocFromPoolAsync`.
    Pool,
    /// Memory of another process, opened with `hipIpcOpenMemHandle`.
    Foreign,
    /// Physical memory with this handle, which is mapped.
    Mapped(u64),
}

/// An allocation.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) len_bytes: u64,
    pub(super) origin: Origin,
    pub(super) device: i32,
}

/// A loaded module.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) device: i32,
    /// Address and size of the variables that were looked up.
    pub(super) globals: Vec<(u64, u64)>,
    /// The image, which the library may read while the module is loaded.
    #[expect(dead_code, reason = "it is kept for the library")]
    pub(super) image: Vec<u8>,
}

/// A resource, which is released once the device has finished with it.
pub(super) enum Resource {
    Stream(u64, i32),
    Module(u64, Module),
    Memory(u64, Memory),
}
