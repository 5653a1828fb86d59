//! The HIP compiler that `tests/toolchain/setup.sh` makes, and other programs that tests need.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Exit code of a set-up script if there is not what it makes.
const NOT_THERE: i32 = 77;

/// Returns this folder of the repository, `tests`.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the root folder of the system with hipcc and HIP's headers. Without it prints that `skipped` does not run and
/// returns `None`, or panics if HIPR_REQUIRE_COMPILER is set.
pub fn toolchain(skipped: &str) -> Option<PathBuf> {
    made_by("toolchain/setup.sh", "HIP compiler", skipped)
}

/// Compiles `source` with debug information for the gfx942; returns the program, which is `name` in `out`. The source's folder is named in
/// it as it is here. Without the compiler it behaves like [`toolchain`].
pub fn compile(source: &Path, level: &str, out: &Path, name: &str, skipped: &str) -> Option<PathBuf> {
    let lab = toolchain(skipped)?;
    let work = tempfile::tempdir_in(lab.join("tmp")).expect("a folder");
    let file = source.file_name().expect("a file");
    fs::copy(source, work.path().join(file)).expect("the source is copied");
    let inside = Path::new("/").join(work.path().strip_prefix(&lab).expect("a folder of the lab"));
    let libraries = lab.join("usr/lib/x86_64-linux-gnu");
    let folder = source.parent().expect("a folder");
    let output = Command::new("chroot")
        .arg(&lab)
        .args(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "hipcc"])
        .args(["--offload-arch=gfx942", "-std=c++17", level, "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-Wno-deprecated-declarations")
        .arg(format!("-ffile-prefix-map={}={}", inside.display(), folder.display()))
        .arg(format!("-Wl,--dynamic-linker={}", lab.join("lib64/ld-linux-x86-64.so.2").display()))
        .arg(format!("-Wl,--enable-new-dtags,-rpath,{}", libraries.display()))
        .arg("-o")
        .arg(inside.join("program"))
        .arg(inside.join(file))
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let program = out.join(name);
    fs::copy(work.path().join("program"), &program).expect("the program is copied");
    Some(program)
}

/// Returns the folder with Prometheus (`usr/bin/prometheus` and `usr/bin/promtool`); without it behaves like [`toolchain`].
pub fn prometheus(skipped: &str) -> Option<PathBuf> {
    made_by("toolchain/prometheus.sh", "Prometheus", skipped)
}

/// Returns the folder that a script has made.
fn made_by(script: &str, what: &str, skipped: &str) -> Option<PathBuf> {
    // Only looks: a test does not install anything.
    let check = Command::new(folder().join(script)).arg("--check").output();
    let check = check.expect("the script runs");
    let text = String::from_utf8_lossy(&check.stderr);
    if check.status.code() == Some(NOT_THERE) {
        return skip(&format!("no {what} here (tests/{script} makes it): {skipped}\n{text}"));
    }
    assert!(check.status.success(), "{what}: it does not work:\n{text}");
    Some(PathBuf::from(String::from_utf8_lossy(&check.stdout).trim()))
}

/// Returns the path of an installed program; without it behaves like [`toolchain`].
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
