//! Runs the client library's exports under valgrind's memcheck: a C program (`tests/memcheck`), compiled with AMD's own
//! headers, calls each of them with good and bad arguments. Invalid accesses, use of uninitialized memory, also on the
//! wire, and leaks make it fail.
//!
//! What is left at the end on purpose is the state of the process: the session with its tables, its connection and its
//! threads, the registered binaries, and the names that functions returned. All of it can still be reached, which memcheck calls
//! `still reachable`, or `possibly lost` where a table keeps a pointer to the middle of its memory; neither grows with the calls.

use amdhip64::api::EXPORTS;
use amdhip64::export::Route;
use hipr_tests::toolchain::{folder, installed, toolchain};
use hipr_tests::{library, library_folder, start_worker};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SKIPPED: &str = "the client library's exports did not run under memcheck";

/// Returns what a program printed; panics with all of it if it failed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout
}

/// Compiles the program into `out`; returns `None` without the headers or tools.
fn compiled(out: &Path) -> Option<PathBuf> {
    let headers = toolchain(SKIPPED)?.join("usr/include");
    let compiler = installed("cc", SKIPPED)?;
    let entries = fs::read_dir(folder().join("memcheck")).expect("the program's folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let sources: BTreeSet<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|kind| kind == "c")).collect();
    let program = out.join("memcheck");
    output(
        Command::new(compiler)
            .args(["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"])
            // After this system's own folders: only HIP is to be found there.
            .args([OsStr::new("-idirafter"), headers.as_os_str(), OsStr::new("-o"), program.as_os_str()])
            .args(sources)
            .arg(library()),
    );
    Some(program)
}

#[test]
fn exports_use_memory_as_they_should() {
    let build = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(build.path()) else { return };
    let Some(valgrind) = installed("valgrind", SKIPPED) else { return };
    let (worker, libraries) = (start_worker(), library_folder());
    output(
        Command::new(valgrind)
            .args(["--quiet", "--error-exitcode=9", "--num-callers=30", "--leak-check=full"])
            .args(["--show-leak-kinds=definite,indirect", "--errors-for-leak-kinds=definite,indirect"])
            .arg(program)
            .arg(folder().join("../cli/demo/kernels.co"))
            .arg(folder().join("programs/prebuilt/symbols.O3.co"))
            .env("LD_LIBRARY_PATH", libraries.path())
            .env("HIPR_WORKER", worker.address().to_string()),
    );
}

#[test]
fn every_working_export_is_called() {
    let build = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(build.path()) else { return };
    let Some(nm) = installed("nm", SKIPPED) else { return };
    let symbols = output(Command::new(nm).args(["--dynamic", "--undefined-only"]).arg(program));
    // " U hipMalloc@hip_4.2"
    let names = symbols.lines().filter_map(|line| line.split_whitespace().last()?.split('@').next());
    let called: BTreeSet<&str> = names.collect();
    // AMD's compiler is not what is checked here; `tests/rocm` calls it.
    let works = |route| !matches!(route, Route::Unsupported | Route::Rtc);
    let missing: Vec<&str> = EXPORTS
        .iter()
        .filter(|export| works(export.route) && !called.contains(export.name))
        .map(|export| export.name)
        .collect();
    assert!(missing.is_empty(), "exports that the program does not call: {missing:?}");
}
