//! Finding and opening the library.

use crate::Hip;
use std::fmt;
use std::path::{Path, PathBuf};

/// The names under which ROCm releases install the runtime, newest first.
pub const LIBRARY_NAMES: &[&str] =
    &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];

/// Why the library could not be used.
#[derive(Debug)]
pub enum LoadError {
    /// No library was found; what was tried and what the loader said to each.
    NotFound(Vec<(PathBuf, String)>),
    /// The library lacks a function that every HIP runtime has.
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
                write!(f, "no HIP runtime found:")?;
                tried.iter().try_for_each(|(path, why)| write!(f, "\n  {}: {why}", path.display()))
            }
            Self::MissingFunction { path, function } => {
                write!(f, "{} does not export {function}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}

pub(crate) fn first_of<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Hip, LoadError> {
    let mut tried = Vec::new();
    for path in paths {
        // SAFETY: the constructors of a HIP runtime may run in any process; that is what the caller asked for.
        match unsafe { libloading::Library::new(path) } {
            Ok(library) => return Hip::resolve(path.to_owned(), library),
            Err(why) => tried.push((path.to_owned(), why.to_string())),
        }
    }
    Err(LoadError::NotFound(tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_tried() {
        let error = Hip::load_from(Path::new("/nonexistent/libamdhip64.so.9")).err().expect("cannot load");
        let text = error.to_string();
        assert!(text.contains("/nonexistent/libamdhip64.so.9"), "{text}");
    }

    #[test]
    fn a_library_without_the_functions_is_named() {
        let error = Hip::load_from(Path::new("libc.so.6")).err().expect("libc is not HIP");
        assert_eq!(error.to_string(), "libc.so.6 does not export hipGetDeviceCount");
    }
}
