//! Gives the shared library its soname and its ELF version nodes.
//!
//! The nodes are declared empty by a version script; which symbol belongs to which node is said in the export
//! table (`.symver` directives, see `src/export.rs`). The list of nodes is read from that table.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/api.rs");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let table = fs::read_to_string("src/api.rs").expect("src/api.rs is readable");
    // A group of rows starts with a line such as `    "hip_4.2" {`.
    let nodes: BTreeSet<(u32, u32)> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"hip_")?.strip_suffix("\" {")?.split_once('.'))
        .map(|(major, minor)| (major.parse().expect("a number"), minor.parse().expect("a number")))
        .collect();
    assert!(!nodes.is_empty(), "no version node found in src/api.rs");

    let mut script = String::new();
    let mut parent = String::new();
    for (major, minor) in nodes {
        // What the table does not name is nobody's. rustc's own script says the same, but some linkers heed only the last one.
        let local = if parent.is_empty() { " local: *; " } else { "" };
        script.push_str(&format!("hip_{major}.{minor} {{{local}}}{parent};\n"));
        parent = format!(" hip_{major}.{minor}");
    }
    let path = Path::new(&env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("hip.map");
    fs::write(&path, script).expect("OUT_DIR is writable");

    println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", path.display());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libamdhip64.so.6");
    // The library finds itself under its other names beside its file, before any other library of that name (`src/names.rs`). It has to be the
    // older kind of search path, which comes before LD_LIBRARY_PATH.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--disable-new-dtags,-rpath,$ORIGIN");
    // Thread-local state and a background thread live in the library: it must not be unloaded.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
