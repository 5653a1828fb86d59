//! The names under which programs look for the library.
//!
//! The dynamic loader takes a library that is loaded already for another only if it knows it by the name that is asked for. It knows this
//! one by its soname and by the name under which it was loaded; a program and the libraries that it loads may use others of ROCm's releases.
//! So the library looks for itself under each name in the folder that it was loaded from, where `hipr run` and `hipr.use()` of Python show it
//! under all of them: the loader sees that it is the same file and notes the name. From then on a process has one library with one
//! state, whichever name is asked for.

use std::ffi::CStr;

/// The names in ROCm's releases. `hipr run` shows the library under the same ones.
const NAMES: [&CStr; 4] = [c"libamdhip64.so", c"libamdhip64.so.5", c"libamdhip64.so.6", c"libamdhip64.so.7"];

/// Makes the loader know this library by all names under which its file lies in its folder.
pub(crate) fn note() {
    for name in NAMES {
        // Loads nothing: the answer is a library that is there already, or none. The library's search path (build.rs) leads to its folder
        // first. What is found stays loaded as this library does, so that there is nothing to close.
        // SAFETY: a string that ends with a zero.
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    }
}
