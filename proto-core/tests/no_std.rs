//! Builds and runs a program without the standard library that uses the crate.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::Path;
use std::process::Command;

#[test]
fn a_program_without_std_links_and_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("no-std-check");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-std-check");
    let build = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", &target)
        // Flags of the outer build (coverage, sanitizers) need a runtime that is not there.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .expect("cargo runs");
    assert!(build.success(), "{} does not build", folder.display());
    let run = Command::new(target.join("debug/hipr-proto-no-std-check")).status().expect("the program runs");
    assert_eq!(run.code(), Some(0), "the exchange failed");
}
