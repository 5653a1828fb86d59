//! Compares what the client library says of kernels with what workers answer when it asks them.

use hipr_tests::{Chain, library_folder, start_worker};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Returns what a program prints that asks everything about every committed kernel, with the extension `on` or `off`.
fn facts(worker: SocketAddr, extension: &str) -> String {
    let folder = library_folder();
    let output = Command::new(env!("CARGO_BIN_EXE_kernel-facts"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker.to_string())
        .env("HIPR_EXTENSION", extension)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let facts = String::from_utf8(output.stdout).expect("text");
    assert!(facts.lines().count() > 250, "every kernel at two levels: {facts}");
    facts
}

fn assert_same(known: &str, asked: &str) {
    for (known, asked) in known.lines().zip(asked.lines()) {
        assert_eq!(known, asked);
    }
    assert_eq!(known.lines().count(), asked.lines().count());
}

#[test]
fn what_the_library_knows_of_kernels_is_what_the_worker_answers() {
    let worker = start_worker();
    assert_same(&facts(worker.address(), "on"), &facts(worker.address(), "off"));
}

/// A GPU with a runtime is asked itself. The runtime is the library, which knows the answers.
#[test]
fn every_kernel_is_the_same_through_a_chain() {
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    let worker = start_worker();
    assert_same(&facts(worker.address(), "on"), &facts(chain.address(), "on"));
}
