//! The table of functions against the lists of what AMD's HSA library exports and what its users import, and the built library against
//! the table.

use std::collections::BTreeSet;
use std::env;
use std::ffi::CString;

use hsa_runtime64::api::EXPORTS;

/// Symbols of AMD's libhsa-runtime64 6.4.3.
const EXPORTED: &str = include_str!("data/libhsa-runtime64-6.4.3.exports");
/// What programs import of it.
const IMPORTED: [(&str, &str); 3] = [
    ("libamdhip64 6.4.3", include_str!("data/libamdhip64-6.4.3.imports")),
    ("libamdhip64 7.2.4", include_str!("data/libamdhip64-7.2.4.imports")),
    ("rocminfo", include_str!("data/rocminfo.imports")),
];
/// The version node, and a variable for debuggers of real GPUs.
const NO_FUNCTIONS: [&str; 2] = ["ROCR_1", "_amdgpu_r_debug"];
/// What AMD's HIP runtime imports and is not offered: images, memory of graphics, reading files into a GPU's memory.
const NOT_OFFERED: [&str; 14] = [
    "hsa_amd_ais_file_read",
    "hsa_amd_ais_file_write",
    "hsa_amd_image_create",
    "hsa_amd_interop_map_buffer",
    "hsa_amd_interop_unmap_buffer",
    "hsa_ext_image_create",
    "hsa_ext_image_create_with_layout",
    "hsa_ext_image_data_get_info",
    "hsa_ext_image_destroy",
    "hsa_ext_image_export",
    "hsa_ext_image_import",
    "hsa_ext_sampler_create",
    "hsa_ext_sampler_create_v2",
    "hsa_ext_sampler_destroy",
];

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines().map(str::trim).filter(|name| !name.is_empty() && !NO_FUNCTIONS.contains(name))
}

#[test]
fn every_function_of_amds_library_has_one_row() {
    let rows: BTreeSet<&str> = EXPORTS.iter().map(|export| export.name).collect();
    assert_eq!(rows.len(), EXPORTS.len(), "no function has two rows");
    let wanted: BTreeSet<&str> = names(EXPORTED).collect();
    assert_eq!(wanted.len(), 256, "the list is whole");
    assert_eq!(wanted.difference(&rows).collect::<Vec<_>>(), Vec::<&&str>::new());
    // What is beyond them is of a later release, and imported.
    let imported: BTreeSet<&str> = IMPORTED.iter().flat_map(|(_, list)| names(list)).collect();
    let beyond: Vec<&&str> = rows.difference(&wanted).filter(|name| !imported.contains(*name)).collect();
    assert_eq!(beyond, Vec::<&&str>::new());
}

#[test]
fn what_programs_import_works_but_for_what_is_listed() {
    let mut refused = BTreeSet::new();
    for (program, list) in IMPORTED {
        for name in names(list) {
            let row = EXPORTS.iter().find(|export| export.name == name);
            if !row.unwrap_or_else(|| panic!("{program}: {name} has no row")).is_supported {
                refused.insert(name);
            }
        }
    }
    assert_eq!(refused, BTreeSet::from(NOT_OFFERED));
}

#[test]
fn the_library_has_the_functions_with_amds_version() {
    let path = env::current_exe().expect("a running test has a file").with_file_name("libhsa_runtime64.so");
    let text = |text: &str| CString::new(text).expect("no zero byte");
    let path = text(path.to_str().expect("a path in UTF-8"));
    // SAFETY: hipr's library, whose initialization does nothing.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null(), "{path:?}");
    for export in EXPORTS {
        // SAFETY: an open library and two texts.
        let found = unsafe { libc::dlvsym(library, text(export.name).as_ptr(), c"ROCR_1".as_ptr()) };
        assert!(!found.is_null(), "{}@ROCR_1", export.name);
    }
}
