//! Checks which crates of the workspace each crate depends on, directly or through others: dependencies point down only, as
//! ARCHITECTURE.md shows. What is not in the table is not allowed.

use std::collections::BTreeSet;
use std::process::Command;

/// A crate, and all crates of the workspace that it may depend on.
const LAYERS: [(&str, &[&str]); 29] = [
    ("hipr-proto", &[]),
    ("hipr-ctype", &[]),
    ("hipr-log", &[]),
    // Sessions that outlive their connections know neither the protocol inside nor a socket.
    ("hipr-resume", &[]),
    // Keys and encryption know neither the protocol inside nor a socket.
    ("hipr-tls", &["hipr-resume"]),
    // The interpreter knows neither HIP nor the protocol.
    ("hipr-isa", &[]),
    ("hipr-abi", &["hipr-ctype"]),
    ("hipr-code-object", &["hipr-abi", "hipr-ctype"]),
    // What executes grids knows neither HIP's functions, HSA's, nor the protocol.
    ("hipr-grid", &["hipr-abi", "hipr-code-object", "hipr-ctype", "hipr-isa"]),
    ("hipr-dynlib", &["hipr-ctype"]),
    ("hipr-graph", &["hipr-abi", "hipr-ctype", "hipr-proto"]),
    // The contract for GPUs knows no GPU.
    ("hipr-device", &["hipr-proto"]),
    ("hipr-io", &["hipr-proto", "hipr-resume", "hipr-tls"]),
    ("hipr-io-shm", &["hipr-io", "hipr-proto", "hipr-resume", "hipr-tls"]),
    ("hipr-io-mio", &["hipr-io", "hipr-io-shm", "hipr-proto", "hipr-resume", "hipr-tls"]),
    ("hipr-io-uring", &["hipr-io", "hipr-io-shm", "hipr-proto", "hipr-resume", "hipr-tls"]),
    // The connection knows nothing of HIP's C boundary.
    ("hipr-client", &["hipr-io", "hipr-io-shm", "hipr-proto", "hipr-resume", "hipr-tls"]),
    ("comgr-sys", &["hipr-ctype", "hipr-dynlib"]),
    ("hip-sys", &["hipr-abi", "hipr-code-object", "hipr-ctype", "hipr-dynlib"]),
    (
        "hipr-sim",
        &["hipr-abi", "hipr-ctype", "hipr-code-object", "hipr-device", "hipr-grid", "hipr-isa", "hipr-proto"],
    ),
    // Debug information is read without knowing what the code is for.
    ("hipr-lines", &[]),
    // Files of traces, and what they say, are read without knowing how they came about.
    ("hipr-trace", &[]),
    (
        "hipr-profile",
        &[
            "hipr-abi",
            "hipr-code-object",
            "hipr-ctype",
            "hipr-device",
            "hipr-grid",
            "hipr-isa",
            "hipr-lines",
            "hipr-proto",
            "hipr-sim",
        ],
    ),
    (
        "hipr-check",
        &[
            "hipr-abi",
            "hipr-code-object",
            "hipr-ctype",
            "hipr-device",
            "hipr-grid",
            "hipr-isa",
            "hipr-lines",
            "hipr-proto",
            "hipr-sim",
        ],
    ),
    // AMD's runtime is a guest of it: it knows neither HIP's functions, the contract for GPUs, nor the protocol.
    ("hipr-hsa", &["hipr-abi", "hipr-code-object", "hipr-ctype", "hipr-grid", "hipr-isa", "hipr-log"]),
    (
        "hipr-hip",
        &[
            "comgr-sys",
            "hip-sys",
            "hipr-abi",
            "hipr-code-object",
            "hipr-ctype",
            "hipr-device",
            "hipr-dynlib",
            "hipr-proto",
        ],
    ),
    // The worker knows the contract and no GPU.
    (
        "hipr-worker",
        &[
            "hipr-abi",
            "hipr-code-object",
            "hipr-ctype",
            "hipr-device",
            "hipr-graph",
            "hipr-io",
            "hipr-io-mio",
            "hipr-io-shm",
            "hipr-io-uring",
            "hipr-proto",
            "hipr-resume",
            "hipr-tls",
        ],
    ),
    (
        "hipr-shim",
        &[
            "hipr-abi",
            "hipr-client",
            "hipr-code-object",
            "hipr-ctype",
            "hipr-dynlib",
            "hipr-graph",
            "hipr-io",
            "hipr-io-shm",
            "hipr-lines",
            "hipr-log",
            "hipr-proto",
            "hipr-resume",
            "hipr-tls",
            "hipr-trace",
        ],
    ),
    // The program puts all together. That it names the shim and the HSA runtime makes cargo build these libraries for other programs;
    // nothing of them is linked.
    (
        "hipr",
        &[
            "comgr-sys",
            "hip-sys",
            "hipr-abi",
            "hipr-check",
            "hipr-client",
            "hipr-code-object",
            "hipr-ctype",
            "hipr-device",
            "hipr-dynlib",
            "hipr-graph",
            "hipr-grid",
            "hipr-hip",
            "hipr-hsa",
            "hipr-io",
            "hipr-io-mio",
            "hipr-io-shm",
            "hipr-io-uring",
            "hipr-isa",
            "hipr-lines",
            "hipr-log",
            "hipr-profile",
            "hipr-proto",
            "hipr-shim",
            "hipr-sim",
            "hipr-resume",
            "hipr-tls",
            "hipr-trace",
            "hipr-worker",
        ],
    ),
];

/// Returns what `cargo tree` prints in the root of the workspace.
fn tree(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none", "--edges", "normal"])
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("names in ASCII")
}

/// Returns the crates of the workspace in the output of `cargo tree`, which prints them as `name v0.1.0 (/folder)`.
fn own(tree: &str) -> BTreeSet<&str> {
    tree.lines().filter(|line| line.contains(" (/")).filter_map(|line| line.split(' ').next()).collect()
}

#[test]
fn dependencies_only_point_down() {
    for (name, allowed) in LAYERS {
        let tree = tree(&["--package", name]);
        let mut reached = own(&tree);
        assert!(reached.remove(name), "{name} is in its own tree:\n{tree}");
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let forbidden: Vec<_> = reached.difference(&allowed).collect();
        assert!(forbidden.is_empty(), "{name} depends on {forbidden:?}, directly or through others");
    }
}

#[test]
fn every_crate_has_its_place() {
    let tree = tree(&["--workspace", "--depth", "0"]);
    let tests = ["faulty-hip", "hipr-kernel-tests", "hipr-rocm-tests", "hipr-testkit", "hipr-tests"];
    let placed: BTreeSet<&str> = LAYERS.iter().map(|(name, _)| *name).chain(tests).collect();
    assert_eq!(own(&tree), placed);
}
