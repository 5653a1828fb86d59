//! Tests that a process has one library, whichever of its names is asked for.

use std::env;
use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Opens a library; null if there is none.
fn open(name: &Path, flags: i32) -> *mut c_void {
    let name = CString::new(name.as_os_str().as_bytes()).expect("no zero byte");
    // SAFETY: a string that ends with a zero; what the library does when it is loaded it does in every program.
    unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | flags) }
}

#[test]
fn a_library_that_was_loaded_by_its_path_is_known_by_the_names_beside_it() {
    let names = ["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"];
    let built = env::current_exe().expect("a running test has a file").with_file_name("libamdhip64.so");
    let folder = tempfile::tempdir().expect("a folder");
    for name in names {
        symlink(&built, folder.path().join(name)).expect("a link");
    }
    let loaded = open(&folder.path().join(names[0]), 0);
    assert!(!loaded.is_null(), "{} is loaded", built.display());
    for name in names {
        assert_eq!(open(Path::new(name), libc::RTLD_NOLOAD), loaded, "{name}");
    }
    assert!(open(Path::new("libamdhip64.so.4"), libc::RTLD_NOLOAD).is_null(), "no name beside it is no name");
}
