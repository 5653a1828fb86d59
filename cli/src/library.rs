//! The libraries that hipr puts below programs, and a folder that shows one under the names that programs look for.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Returns the path of this program's executable.
///
/// # Errors
/// The system does not tell.
pub(crate) fn this_program() -> Result<PathBuf, String> {
    env::current_exe().map_err(|why| format!("cannot find this program's executable: {why}"))
}

/// A library that is built and installed with this program.
#[derive(Debug)]
pub(crate) struct Library {
    /// What it is, in messages.
    what: &'static str,
    /// Name of the file that cargo builds.
    file: &'static str,
    /// Environment variable with its path.
    variable: &'static str,
    /// The names under which programs look for it. All of them are the same file, so that a process that uses two names still
    /// gets one library with one state.
    names: &'static [&'static str],
}

/// The client library: HIP's interface, for the names of various ROCm releases.
pub(crate) const CLIENT: Library = Library {
    what: "client library",
    file: "libamdhip64.so",
    variable: "HIPR_LIBRARY",
    names: &["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"],
};

/// The HSA library whose GPUs are emulated, for AMD's HIP runtime.
pub(crate) const HSA: Library = Library {
    what: "HSA library",
    file: "libhsa_runtime64.so",
    variable: "HIPR_HSA_LIBRARY",
    names: &["libhsa-runtime64.so.1", "libhsa-runtime64.so"],
};

impl Library {
    /// Finds the file: the one that the variable names, else the one beside this program (in cargo's target folder the newest
    /// one may be in `deps`), else the one in `../lib/hipr`, else the one in `../libexec/hipr`, where Python's wheels bring it: `pip install
    /// --target` drops what a wheel has for `lib`.
    ///
    /// # Errors
    /// There is none; says where it was looked for.
    pub(crate) fn find(&self) -> Result<PathBuf, String> {
        if let Some(path) = env::var_os(self.variable) {
            let path = PathBuf::from(path);
            return match fs::canonicalize(&path) {
                Ok(path) => Ok(path),
                Err(why) => Err(format!("{}={}: {why}", self.variable, path.display())),
            };
        }
        let program = this_program()?;
        let folder = program.parent().unwrap_or(Path::new("."));
        let folders = [
            folder.join("deps"),
            folder.to_owned(),
            folder.join("../lib/hipr"),
            folder.join("../libexec/hipr"),
        ];
        let candidates: Vec<PathBuf> = folders.iter().map(|folder| folder.join(self.file)).collect();
        candidates.iter().find_map(|path| fs::canonicalize(path).ok()).ok_or_else(|| {
            let looked: Vec<String> =
                candidates.iter().map(|path| format!("\n  {}", path.display())).collect();
            let (what, variable) = (self.what, self.variable);
            format!(
                "the {what} is missing; looked for{}\nbuild it with `cargo build --release`, or set {variable}",
                looked.concat()
            )
        })
    }

    /// Finds the file and creates the folder that shows it.
    ///
    /// # Errors
    /// There is no such file, or the folder cannot be created.
    pub(crate) fn folder(&self) -> Result<Folder, String> {
        let library = self.find()?;
        self.folder_of(&library).map_err(|why| format!("cannot create a folder for the {}: {why}", self.what))
    }

    fn folder_of(&self, library: &Path) -> io::Result<Folder> {
        let folder = tempfile::Builder::new().prefix("hipr-").tempdir()?;
        for name in self.names {
            std::os::unix::fs::symlink(library, folder.path().join(name))?;
        }
        Ok(Folder(folder))
    }
}

/// A folder with a library under all its names; removed when dropped.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns `LD_LIBRARY_PATH` with this folder first.
    pub(crate) fn search_path(&self) -> std::ffi::OsString {
        let mut path = self.0.path().as_os_str().to_owned();
        if let Some(rest) = env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
            path.push(":");
            path.push(rest);
        }
        path
    }
}
