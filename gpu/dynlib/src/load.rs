//! Finds and opens a library.

use std::ffi::c_void;
use std::fmt;
use std::path::{Path, PathBuf};

use libloading::os::unix;

/// The names under which a library may be found.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Name of the library in messages, such as "HIP runtime".
    pub what: &'static str,
    /// File names in order of preference.
    pub files: &'static [&'static str],
    /// Folders that are searched if the dynamic loader finds none of the files.
    pub folders: &'static [&'static str],
}

impl Names {
    /// Opens the first file that the dynamic loader finds, else the first one in the folders.
    ///
    /// # Errors
    /// [`LoadError::NotFound`] with everything that was tried.
    pub fn open(&self) -> Result<Library, LoadError> {
        let by_name = self.files.iter().map(PathBuf::from);
        let in_folders =
            self.folders.iter().flat_map(|folder| self.files.iter().map(|f| Path::new(folder).join(f)));
        open(self.what, by_name.chain(in_folders))
    }
}

/// Opens the first of `paths` that can be opened; the dynamic loader searches for a path without a slash.
///
/// # Errors
/// [`LoadError::NotFound`] if there is none.
pub fn open(what: &'static str, paths: impl IntoIterator<Item = PathBuf>) -> Result<Library, LoadError> {
    let mut tried = Vec::new();
    for path in paths {
        // SAFETY: constructors of the library run; that it is loaded at all is what the caller asked for. All its symbols are
        // bound now: one that is missing is an error here, not the end of the process in the middle of a call.
        match unsafe { unix::Library::open(Some(&path), unix::RTLD_NOW | unix::RTLD_LOCAL) } {
            Ok(library) => {
                // Never closed: a GPU runtime has threads and exit handlers that run its code, and function pointers are copied.
                let library = std::mem::ManuallyDrop::new(library);
                return Ok(Library { path, library });
            }
            Err(why) => tried.push((path, reason(&why))),
        }
    }
    Err(LoadError::NotFound { what, tried })
}

/// Returns the loader's error text without the name of the call.
fn reason(why: &libloading::Error) -> String {
    use std::error::Error;
    match why {
        libloading::Error::DlOpen { .. } => {
            why.source().map_or_else(|| why.to_string(), |source| source.to_string())
        }
        _ => why.to_string(),
    }
}

/// An open library. It stays open until the process ends.
pub struct Library {
    path: PathBuf,
    library: std::mem::ManuallyDrop<unix::Library>,
}

impl Library {
    /// Returns the path under which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the function with the first of `names` that the library exports.
    ///
    /// # Safety
    /// `F` is a function pointer type that fits each of the symbols.
    pub unsafe fn function<F: Copy>(&self, names: &[&str]) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "not a function pointer") };
        names.iter().find_map(|name| {
            // SAFETY: only the address is taken here.
            let symbol = unsafe { self.library.get::<*mut c_void>(name.as_bytes()) };
            let address = symbol.ok()?.into_raw();
            // SAFETY: the address is not null, and the caller says that an `F` fits what is there.
            (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
        })
    }
}

/// Why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// No library could be opened.
    NotFound {
        /// Name of the library in messages.
        what: &'static str,
        /// Each path that was tried, with the loader's error.
        tried: Vec<(PathBuf, String)>,
    },
    /// The library does not export all required functions.
    MissingFunctions {
        /// Name of the library in messages.
        what: &'static str,
        /// Path of the library.
        path: PathBuf,
        /// The missing functions.
        functions: Vec<&'static str>,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { what, tried } => {
                write!(f, "no {what} found:")?;
                tried.iter().try_for_each(|(path, why)| write!(f, "\n  {}: {why}", path.display()))
            }
            Self::MissingFunctions { what, path, functions } => {
                write!(
                    f,
                    "{} is not a usable {what}: it does not export {}",
                    path.display(),
                    functions.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for LoadError {}
