//! Gives the shared library AMD's soname and the version of its symbols.

use std::path::Path;
use std::{env, fs};

/// The version node, declared empty: which symbols belong to it is said beside each (`.symver` directives, see `src/export.rs`). What
/// has none is nobody's: rustc's own script says the same, but some linkers heed only the last one.
const SCRIPT: &str = "ROCR_1 { local: *; };\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let path = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("hsa.map");
    fs::write(&path, SCRIPT).expect("OUT_DIR is writable");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", path.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsa-runtime64.so.1");
    // Threads of the emulated GPUs execute its code: it must not be unloaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
