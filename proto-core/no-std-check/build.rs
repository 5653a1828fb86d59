//! Links the program with its own entry point and without a C library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for arg in ["-nostartfiles", "-nostdlib", "-static", "-no-pie"] {
        println!("cargo::rustc-link-arg-bins={arg}");
    }
}
