//! Compares what the client library says of kernels with what workers answer when it asks them.

use hipr_tests::{Chain, library_folder, start_worker};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// Returns what a program prints that asks everything about every committed kernel.
fn facts(worker: SocketAddr) -> String {
    let folder = library_folder();
    let output = Command::new(env!("CARGO_BIN_EXE_kernel-facts"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker.to_string())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let facts = String::from_utf8(output.stdout).expect("text");
    assert!(facts.lines().count() > 250, "every kernel at two levels: {facts}");
    facts
}

#[test]
fn every_kernel_is_the_same_through_a_chain() {
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    let worker = start_worker();
    let (direct, chained) = (facts(worker.address()), facts(chain.address()));
    for (direct, chained) in direct.lines().zip(chained.lines()) {
        assert_eq!(direct, chained);
    }
    assert_eq!(direct.lines().count(), chained.lines().count());
}
