//! The table of the code object manager's functions that hipr calls, each with its C prototype. All exist since interface
//! version 2.0, so that all are required.

use std::ffi::{c_char, c_int};

use hipr_dynlib::{Names, c_types, functions};

/// Names of the library from the newest release to the oldest, and the folder where ROCm installs it.
pub const NAMES: Names = Names {
    what: "code object manager",
    files: &["libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"],
    folders: &["/opt/rocm/lib"],
};

/// The status that functions return; 0 is success.
#[allow(non_camel_case_types, reason = "the name is that of the C header")]
pub type amd_comgr_status_t = c_int;

/// `AMD_COMGR_STATUS_SUCCESS`
pub(crate) const SUCCESS: amd_comgr_status_t = 0;
/// `AMD_COMGR_STATUS_ERROR`: also returned for a map that does not have a key.
pub(crate) const ERROR: amd_comgr_status_t = 1;
/// `AMD_COMGR_STATUS_ERROR_INVALID_ARGUMENT`: also returned for data that the library does not know.
pub(crate) const INVALID_ARGUMENT: amd_comgr_status_t = 2;

/// `AMD_COMGR_DATA_KIND_EXECUTABLE`: a linked ELF file.
pub(crate) const KIND_EXECUTABLE: c_int = 8;

/// `AMD_COMGR_METADATA_KIND_STRING`
pub(crate) const KIND_STRING: c_int = 1;
/// `AMD_COMGR_METADATA_KIND_MAP`
pub(crate) const KIND_MAP: c_int = 2;
/// `AMD_COMGR_METADATA_KIND_LIST`
pub(crate) const KIND_LIST: c_int = 3;

/// A handle to data.
#[allow(non_camel_case_types, reason = "the name is that of the C header")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct amd_comgr_data_t {
    /// Opaque value of the library.
    pub handle: u64,
}

/// A handle to a node of metadata.
#[allow(non_camel_case_types, reason = "the name is that of the C header")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct amd_comgr_metadata_node_t {
    /// Opaque value of the library.
    pub handle: u64,
}

c_types! { opaque {} declared { amd_comgr_data_t, amd_comgr_metadata_node_t } }

functions! {
    /// The loaded library: one function pointer per row of the table, and a method of the same name that calls it.
    pub struct Comgr, names NAMES, absent ERROR;

    required amd_comgr_get_version(major: *mut usize, minor: *mut usize) -> ();
    required amd_comgr_status_string(status: amd_comgr_status_t, string: *mut *const c_char) -> amd_comgr_status_t;

    // Data.
    required amd_comgr_create_data(kind: c_int, data: *mut amd_comgr_data_t) -> amd_comgr_status_t;
    required amd_comgr_release_data(data: amd_comgr_data_t) -> amd_comgr_status_t;
    required amd_comgr_set_data(data: amd_comgr_data_t, size: usize, bytes: *const c_char) -> amd_comgr_status_t;
    required amd_comgr_get_data_isa_name(data: amd_comgr_data_t, size: *mut usize, isa_name: *mut c_char) -> amd_comgr_status_t;

    // Metadata: a tree of maps, lists and strings. Numbers are strings, too.
    required amd_comgr_get_data_metadata(data: amd_comgr_data_t, metadata: *mut amd_comgr_metadata_node_t) -> amd_comgr_status_t;
    required amd_comgr_destroy_metadata(metadata: amd_comgr_metadata_node_t) -> amd_comgr_status_t;
    required amd_comgr_get_metadata_kind(metadata: amd_comgr_metadata_node_t, kind: *mut c_int) -> amd_comgr_status_t;
    required amd_comgr_get_metadata_string(metadata: amd_comgr_metadata_node_t, size: *mut usize, string: *mut c_char) -> amd_comgr_status_t;
    required amd_comgr_metadata_lookup(metadata: amd_comgr_metadata_node_t, key: *const c_char, value: *mut amd_comgr_metadata_node_t) -> amd_comgr_status_t;
    required amd_comgr_get_metadata_list_size(metadata: amd_comgr_metadata_node_t, size: *mut usize) -> amd_comgr_status_t;
    required amd_comgr_index_list_metadata(metadata: amd_comgr_metadata_node_t, index: usize, value: *mut amd_comgr_metadata_node_t) -> amd_comgr_status_t;
}
