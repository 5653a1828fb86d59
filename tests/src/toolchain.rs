//! The HIP compiler that `tests/toolchain/setup.sh` makes, and what else of the system a test may need.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the set-up script ends with when there is no compiler.
const NO_COMPILER: i32 = 77;

/// This folder of the repository, `tests`.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The system in a folder that has hipcc and HIP's headers. Where there is none, `skipped` is what does not run: it says so and
/// gives None; where HIPR_REQUIRE_COMPILER is set it fails instead.
pub fn toolchain(skipped: &str) -> Option<PathBuf> {
    // Only looks: a test does not install a compiler.
    let check = Command::new(folder().join("toolchain/setup.sh")).arg("--check").output();
    let check = check.expect("the script runs");
    let text = String::from_utf8_lossy(&check.stderr);
    if check.status.code() == Some(NO_COMPILER) {
        return skip(&format!(
            "no HIP compiler here (tests/toolchain/setup.sh makes one): {skipped}\n{text}"
        ));
    }
    assert!(check.status.success(), "the compiler does not work:\n{text}");
    Some(PathBuf::from(String::from_utf8_lossy(&check.stdout).trim()))
}

/// A program of the system; as [`toolchain`] where it is not installed.
pub fn installed(program: &str, skipped: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file());
    found.or_else(|| skip(&format!("{program} is not installed: {skipped}")))
}

fn skip(why: &str) -> Option<PathBuf> {
    assert!(
        env::var_os("HIPR_REQUIRE_COMPILER").is_none(),
        "required, as HIPR_REQUIRE_COMPILER is set: {why}"
    );
    eprintln!("SKIPPED: {why}");
    None
}
