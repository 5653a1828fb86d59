//! The client library, and a folder that shows it under the names that HIP programs look for.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Name of the library file that cargo builds.
const LIBRARY: &str = "libamdhip64.so";

/// The names under which programs of various ROCm releases look for the library. All of them are the same file, so that a
/// process that uses two names still gets one library with one state.
const NAMES: &[&str] = &["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"];

/// Finds libamdhip64.so: `HIPR_LIBRARY`, else the file beside this program (in cargo's target folder the newest one may be
/// in `deps`), else the file in `../lib/hipr`.
pub(crate) fn find() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("HIPR_LIBRARY") {
        let path = PathBuf::from(path);
        return match fs::canonicalize(&path) {
            Ok(path) => Ok(path),
            Err(why) => Err(format!("HIPR_LIBRARY={}: {why}", path.display())),
        };
    }
    let program =
        env::current_exe().map_err(|why| format!("cannot find this program's executable: {why}"))?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let candidates =
        [folder.join("deps").join(LIBRARY), folder.join(LIBRARY), folder.join("../lib/hipr").join(LIBRARY)];
    candidates.iter().find_map(|path| fs::canonicalize(path).ok()).ok_or_else(|| {
        let looked: Vec<String> = candidates.iter().map(|path| format!("\n  {}", path.display())).collect();
        format!("the client library is missing; looked for{}\nbuild it with `cargo build --release`, or set HIPR_LIBRARY", looked.concat())
    })
}

/// A folder with the library under all its names; removed when dropped.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates the folder for `library`.
    pub(crate) fn new(library: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("hipr-").tempdir()?;
        for name in NAMES {
            std::os::unix::fs::symlink(library, folder.path().join(name))?;
        }
        Ok(Self(folder))
    }

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
