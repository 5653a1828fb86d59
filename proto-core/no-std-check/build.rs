//! The program brings its own entry point and needs nothing that a C library starts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for arg in ["-nostartfiles", "-nostdlib", "-static", "-no-pie"] {
        println!("cargo::rustc-link-arg-bins={arg}");
    }
}
