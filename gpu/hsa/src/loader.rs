//! AMD's loader extension, `hsa_ven_amd_loader` 1.03: what debuggers and profilers ask of executables.

use std::ffi::c_void;
use std::sync::Arc;

use crate::agent::handle_of;
use crate::executable::Executables;
use crate::executable::{State, until_stopped};
use crate::export;
use crate::loaded::Loaded;
use crate::pointer::{Out, Ptr};
use crate::reader::{self, Origin};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, CodeObjectReader, EachCodeObject, Executable, LoadedCodeObject};

/// Where a code object lies (`hsa_ven_amd_loader_code_object_storage_type_t`).
mod storage {
    pub(super) const FILE: u32 = 1;
    pub(super) const MEMORY: u32 = 2;
}

/// Attributes of a loaded code object (`hsa_ven_amd_loader_loaded_code_object_info_t`).
mod attribute {
    pub(super) const EXECUTABLE: u32 = 1;
    pub(super) const KIND: u32 = 2;
    pub(super) const AGENT: u32 = 3;
    pub(super) const STORAGE_TYPE: u32 = 4;
    pub(super) const STORAGE_MEMORY_BASE: u32 = 5;
    pub(super) const STORAGE_MEMORY_SIZE: u32 = 6;
    pub(super) const STORAGE_FILE: u32 = 7;
    pub(super) const LOAD_DELTA: u32 = 8;
    pub(super) const LOAD_BASE: u32 = 9;
    pub(super) const LOAD_SIZE: u32 = 10;
    pub(super) const URI_LENGTH: u32 = 11;
    pub(super) const URI: u32 = 12;
}

/// `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT`.
const KIND_AGENT: u32 = 2;

/// `hsa_ven_amd_loader_segment_descriptor_t`: a code object is one segment of memory.
#[repr(C)]
#[derive(Clone, Copy)]
struct SegmentDescriptor {
    agent: Agent,
    executable: Executable,
    storage_type: u32,
    storage_base: Ptr,
    storage_bytes: usize,
    storage_offset: usize,
    segment_base: Ptr,
    segment_bytes: usize,
}

impl SegmentDescriptor {
    fn of(state: &State, loaded: &Loaded) -> Self {
        let (storage_type, storage_base, storage_bytes) = match &loaded.origin {
            Origin::Memory { base, len_bytes } => (storage::MEMORY, *base, *len_bytes as usize),
            Origin::File { path, .. } => {
                let name = Ptr::at(path.as_ptr().expose_provenance() as u64);
                (storage::FILE, name, path.count_bytes() + 1)
            }
        };
        Self {
            agent: handle_of(loaded.agent),
            executable: state.handle(),
            storage_type,
            storage_base,
            storage_bytes,
            storage_offset: loaded.first_offset as usize,
            segment_base: Ptr::at(loaded.base()),
            segment_bytes: loaded.len_bytes as usize,
        }
    }
}

impl Runtime {
    /// Returns the executable that has this address in one of its code objects.
    fn executable_at(&self, addr: u64) -> Option<Arc<State>> {
        self.part::<Executables>().all().into_iter().find(|state| {
            let mut is_inside = false;
            state.each_loaded(|_, loaded| is_inside |= addr.wrapping_sub(loaded.base()) < loaded.len_bytes);
            is_inside
        })
    }
}

/// `hsa_ven_amd_loader_query_host_address`: the same address, for what the runtime has allocated.
fn query_host_address(device_address: Ptr, host_address: Out<Ptr>) -> HsaResult {
    let runtime = runtime()?;
    if device_address.is_null() || host_address.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    runtime.memory.find(device_address.addr()).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    host_address.put(device_address)
}

/// `hsa_ven_amd_loader_query_segment_descriptors`.
fn query_segment_descriptors(descriptors: Out<SegmentDescriptor>, count: Out<usize>) -> HsaResult {
    let runtime = runtime()?;
    let room = count.get()?;
    if descriptors.is_null() != (room == 0) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let mut all = Vec::new();
    for state in runtime.part::<Executables>().all() {
        state.each_loaded(|_, loaded| all.push(SegmentDescriptor::of(&state, loaded)));
    }
    if descriptors.is_null() {
        return count.put(all.len());
    }
    if room != all.len() {
        return Err(Status::ERROR_INCOMPATIBLE_ARGUMENTS);
    }
    all.into_iter().enumerate().try_for_each(|(index, descriptor)| descriptors.offset(index).put(descriptor))
}

/// `hsa_ven_amd_loader_query_executable`.
fn query_executable(device_address: Ptr, executable: Out<Executable>) -> HsaResult {
    let runtime = runtime()?;
    if executable.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let found = runtime.executable_at(device_address.addr()).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    executable.put(found.handle())
}

/// `hsa_ven_amd_loader_executable_iterate_loaded_code_objects`.
fn iterate_loaded_code_objects(executable: Executable, callback: EachCodeObject, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let state = runtime.part::<Executables>().get(executable)?;
    let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let mut handles = Vec::new();
    state.each_loaded(|handle, _| handles.push(handle));
    until_stopped(handles, |loaded| {
        // SAFETY: the program's function, called with its own data as the interface says.
        unsafe { callback(executable, loaded, data.raw()) }
    })
}

/// `hsa_ven_amd_loader_loaded_code_object_get_info`.
fn loaded_code_object_info(loaded: LoadedCodeObject, attribute: u32, value: Ptr) -> HsaResult {
    let runtime = runtime()?;
    runtime
        .part::<Executables>()
        .with_loaded(loaded, |state, loaded| info(state, loaded, attribute, value))?
}

fn info(state: &State, loaded: &Loaded, attribute: u32, value: Ptr) -> HsaResult {
    use self::attribute as a;
    match (attribute, &loaded.origin) {
        (a::EXECUTABLE, _) => value.put(state.handle()),
        (a::KIND, _) => value.put(KIND_AGENT),
        (a::AGENT, _) => value.put(handle_of(loaded.agent)),
        (a::STORAGE_TYPE, Origin::Memory { .. }) => value.put(storage::MEMORY),
        (a::STORAGE_TYPE, Origin::File { .. }) => value.put(storage::FILE),
        (a::STORAGE_MEMORY_BASE, Origin::Memory { base, .. }) => value.put(base.addr()),
        (a::STORAGE_MEMORY_SIZE, Origin::Memory { len_bytes, .. }) => value.put(*len_bytes),
        (a::STORAGE_MEMORY_BASE | a::STORAGE_MEMORY_SIZE, Origin::File { .. }) => value.put(0u64),
        (a::STORAGE_FILE, Origin::File { file, .. }) => value.put(*file),
        (a::STORAGE_FILE, Origin::Memory { .. }) => value.put(-1i32),
        (a::LOAD_DELTA, _) => value.put(loaded.delta() as i64),
        (a::LOAD_BASE, _) => value.put(loaded.base()),
        (a::LOAD_SIZE, _) => value.put(loaded.len_bytes),
        (a::URI_LENGTH, origin) => value.put(origin.uri().len() as u32),
        // There is room for the text and nothing behind it.
        (a::URI, origin) => value.put_bytes(origin.uri().as_bytes()),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// A callback that is given an executable.
type EachExecutable = Option<unsafe extern "C" fn(Executable, *mut c_void) -> Status>;

/// `hsa_ven_amd_loader_iterate_executables`: those that there are when it is called.
fn iterate_executables(callback: EachExecutable, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let callback = callback.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let handles = runtime.part::<Executables>().all().iter().map(|state| state.handle()).collect();
    until_stopped(handles, |executable| {
        // SAFETY: the program's function, called with its own data as the interface says.
        unsafe { callback(executable, data.raw()) }
    })
}

/// Defines the table of function pointers from its rows.
macro_rules! table {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) = $($target:ident)::+;)*) => {
        $(unsafe extern "C" fn $name($($arg: $ty),*) -> Status {
            export::status(stringify!($name), || $($target)::+($($arg),*))
        })*

        /// The extension's functions, in the order of its versions.
        #[repr(C)]
        struct Table {
            $($name: unsafe extern "C" fn($($ty),*) -> Status,)*
        }

        static TABLE: Table = Table { $($name,)* };
    };
}

table! {
    fn hsa_ven_amd_loader_query_host_address(device_address: Ptr, host_address: Out<Ptr>) = query_host_address;
    fn hsa_ven_amd_loader_query_segment_descriptors(descriptors: Out<SegmentDescriptor>, count: Out<usize>) = query_segment_descriptors;
    fn hsa_ven_amd_loader_query_executable(device_address: Ptr, executable: Out<Executable>) = query_executable;
    fn hsa_ven_amd_loader_executable_iterate_loaded_code_objects(executable: Executable, callback: EachCodeObject, data: Ptr) = iterate_loaded_code_objects;
    fn hsa_ven_amd_loader_loaded_code_object_get_info(loaded: LoadedCodeObject, attribute: u32, value: Ptr) = loaded_code_object_info;
    fn hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size(file: i32, offset: usize, size: usize, reader: Out<CodeObjectReader>) = reader::reader_from_part_of_file;
    fn hsa_ven_amd_loader_iterate_executables(callback: EachExecutable, data: Ptr) = iterate_executables;
}

/// Bytes of a function's pointer.
const POINTER_BYTES: usize = size_of::<fn()>();

/// Returns the extension's table: as many whole pointers as `len_bytes` bytes have room for, at most all.
pub(crate) fn table(len_bytes: usize) -> &'static [u8] {
    let len_bytes = len_bytes.min(size_of::<Table>()) / POINTER_BYTES * POINTER_BYTES;
    // SAFETY: the table is never written, and consists of pointers, without bytes between them.
    unsafe { std::slice::from_raw_parts((&raw const TABLE).cast(), len_bytes) }
}

/// Returns the length in bytes of the table of version 1.`minor`; `None` if there is no such version.
pub(crate) fn table_bytes(minor: u16) -> Option<usize> {
    let functions = match minor {
        0 => 3,
        1 => 5,
        2 => 6,
        3 => 7,
        _ => return None,
    };
    Some(functions * POINTER_BYTES)
}
