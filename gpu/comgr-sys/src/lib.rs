//! The C API of libamd_comgr, AMD's code object manager, loaded at run time.
//!
//! It reads kernel metadata the way AMD's own runtime does. hipr's parser (`hipr-code-object`) does the same
//! job without it; where ROCm is installed the two can be held against each other.

use std::fmt;
use std::path::{Path, PathBuf};

/// The names under which ROCm releases install the library, newest first.
pub const LIBRARY_NAMES: &[&str] = &["libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"];

/// The loaded library.
pub struct Comgr {
    get_version: unsafe extern "C" fn(*mut usize, *mut usize),
    path: PathBuf,
    // Last, so that the pointer above never outlives the mapping it points into.
    _library: libloading::Library,
}

/// Why the library could not be used.
#[derive(Debug)]
pub enum LoadError {
    /// No library was found; what was tried and what the loader said to each.
    NotFound(Vec<(PathBuf, String)>),
    /// The library lacks a function.
    MissingFunction {
        /// The library.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(tried) => {
                write!(f, "no libamd_comgr found:")?;
                tried.iter().try_for_each(|(path, why)| write!(f, "\n  {}: {why}", path.display()))
            }
            Self::MissingFunction { path, function } => {
                write!(f, "{} does not export {function}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}

impl Comgr {
    /// Opens the library under the first of [`LIBRARY_NAMES`] that the dynamic loader finds.
    pub fn load() -> Result<Self, LoadError> {
        let mut tried = Vec::new();
        for name in LIBRARY_NAMES {
            match Self::open(Path::new(name)) {
                Err(LoadError::NotFound(why)) => tried.extend(why),
                other => return other,
            }
        }
        Err(LoadError::NotFound(tried))
    }

    /// Opens the library at `path`.
    pub fn load_from(path: &Path) -> Result<Self, LoadError> {
        Self::open(path)
    }

    fn open(path: &Path) -> Result<Self, LoadError> {
        // SAFETY: comgr's constructors only set up its own state.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|why| LoadError::NotFound(vec![(path.to_owned(), why.to_string())]))?;
        // SAFETY: the prototype is amd_comgr_get_version's.
        let symbol = unsafe {
            library.get::<unsafe extern "C" fn(*mut usize, *mut usize)>(b"amd_comgr_get_version\0")
        };
        let get_version = *symbol.map_err(|_| LoadError::MissingFunction {
            path: path.to_owned(),
            function: "amd_comgr_get_version",
        })?;
        Ok(Self { get_version, path: path.to_owned(), _library: library })
    }

    /// Interface version: major, minor.
    pub fn version(&self) -> (usize, usize) {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers outlive the call.
        unsafe { (self.get_version)(&mut major, &mut minor) };
        (major, minor)
    }

    /// The name under which the library was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_tried() {
        let error = Comgr::load_from(Path::new("/nonexistent/libamd_comgr.so")).err().expect("cannot load");
        assert!(error.to_string().contains("/nonexistent/libamd_comgr.so"), "{error}");
    }

    #[test]
    fn a_library_without_the_functions_is_named() {
        let error = Comgr::load_from(Path::new("libc.so.6")).err().expect("libc is not comgr");
        assert_eq!(error.to_string(), "libc.so.6 does not export amd_comgr_get_version");
    }
}
