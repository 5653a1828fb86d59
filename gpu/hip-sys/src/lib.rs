//! The C API of libamdhip64, loaded at run time.
//!
//! Nothing here links against ROCm: [`Hip::load`] opens the library with `dlopen`, so that one binary
//! runs with and without it. What it opens is whatever the loader finds under the usual names: AMD's
//! runtime, or hipr's own client, which exports the same functions.
//!
//! `hip_functions!` is the table: one row per function, its C signature. The struct of function
//! pointers, the look-ups and [`Hip::NAMES`] all come from it.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

mod load;
mod safe;

pub use load::{LIBRARY_NAMES, LoadError};
pub use safe::{Call, DeviceBuffer, Error, Function, Module};

/// `hipError_t`: 0 is hipSuccess.
pub type HipError = c_int;
/// `hipStream_t`, `hipEvent_t`, `hipModule_t`, `hipFunction_t` and device addresses: opaque to us.
pub type Handle = *mut c_void;

macro_rules! hip_functions {
    ($($(#[doc = $doc:literal])+ fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)+) => {
        /// The loaded library: one function pointer per row of the table.
        pub struct Hip {
            path: PathBuf,
            $($(#[doc = $doc])+ pub $name: unsafe extern "C" fn($($arg: $ty),*) -> $ret,)+
            // Last, so that the pointers above never outlive the mapping they point into.
            _library: libloading::Library,
        }

        impl Hip {
            /// The functions that a library must export to be used.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            fn resolve(path: PathBuf, library: libloading::Library) -> Result<Self, LoadError> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the row states the C prototype of this function.
                        let symbol = unsafe { library.get::<unsafe extern "C" fn($($arg: $ty),*) -> $ret>(concat!(stringify!($name), "\0").as_bytes()) };
                        *symbol.map_err(|_| LoadError::MissingFunction { path: path.clone(), function: stringify!($name) })?
                    },)+
                    path,
                    _library: library,
                })
            }
        }
    };
}

hip_functions! {
    /// Number of devices.
    fn hipGetDeviceCount(count: *mut c_int) -> HipError;
    /// Makes a device current for the calling thread.
    fn hipSetDevice(device: c_int) -> HipError;
    /// NUL-terminated device name, at most `len` bytes.
    fn hipDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> HipError;
    /// One attribute (`hipDeviceAttribute_t`).
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> HipError;
    /// Bytes of device memory.
    fn hipDeviceTotalMem(len_bytes: *mut usize, device: c_int) -> HipError;
    /// Version of the runtime: major * 10^7 + minor * 10^5 + patch.
    fn hipRuntimeGetVersion(version: *mut c_int) -> HipError;
    /// Waits for everything that the device has to do.
    fn hipDeviceSynchronize() -> HipError;
    /// Allocates device memory.
    fn hipMalloc(pointer: *mut Handle, len_bytes: usize) -> HipError;
    /// Frees device memory.
    fn hipFree(pointer: Handle) -> HipError;
    /// Copies; `kind` is hipMemcpyKind.
    fn hipMemcpy(dst: Handle, src: *const c_void, len_bytes: usize, kind: c_int) -> HipError;
    /// Sets bytes.
    fn hipMemset(dst: Handle, value: c_int, len_bytes: usize) -> HipError;
    /// Loads a code object, a bundle or a compressed bundle from memory.
    fn hipModuleLoadData(module: *mut Handle, image: *const c_void) -> HipError;
    /// Unloads a module.
    fn hipModuleUnload(module: Handle) -> HipError;
    /// Finds a kernel by name.
    fn hipModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) -> HipError;
    /// Launches a kernel: grid in workgroups, block in threads.
    fn hipModuleLaunchKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_len_bytes: c_uint, stream: Handle, params: *mut *mut c_void, extra: *mut *mut c_void) -> HipError;
    /// Name of an error, static.
    fn hipGetErrorName(error: HipError) -> *const c_char;
    /// Description of an error, static.
    fn hipGetErrorString(error: HipError) -> *const c_char;
}

impl Hip {
    /// Opens the library under the first of [`LIBRARY_NAMES`] that the dynamic loader finds.
    pub fn load() -> Result<Self, LoadError> {
        load::first_of(LIBRARY_NAMES.iter().map(Path::new))
    }

    /// Opens the library at `path`.
    pub fn load_from(path: &Path) -> Result<Self, LoadError> {
        load::first_of(std::iter::once(path))
    }

    /// The name under which the library was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
