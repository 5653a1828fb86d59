//! Tests of packed bytes end to end: a HIP program, the library, a proxy that counts, a worker.

use hipr_tests::{Link, Proxy, library_folder, start_worker, start_worker_with_cache};
use std::net::SocketAddr;
use std::process::Command;

const MIB: u64 = 1 << 20;
/// What the programs copy, in each direction.
const SENT: u64 = 16 * MIB;

/// What a program moved.
struct Moved {
    to_worker: u64,
    to_program: u64,
    flights: u64,
    /// What its own statistics say was not moved.
    saved: u64,
}

/// Runs a program with these variables, behind a proxy.
fn run(worker: SocketAddr, program: &str, args: &[&str], variables: &[(&str, &str)]) -> Moved {
    let proxy = Proxy::start(worker, Link::default()).expect("a proxy");
    let folder = library_folder();
    let stats = folder.path().join("stats.json");
    let output = Command::new(program)
        .args(args)
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", proxy.address().to_string())
        .env("HIPR_STATS_FILE", &stats)
        .env_remove("HIPR_COMPRESS")
        .env("HIPR_CACHE", "off")
        .envs(variables.iter().copied())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = std::fs::read_to_string(&stats).expect("the file was written");
    let (_, saved) = line.split_once("\"packed_bytes_saved\":").expect("the counter");
    let saved = saved.split([',', '}']).next().and_then(|n| n.parse().ok()).expect("a number");
    let traffic = proxy.traffic();
    let (to_worker, to_program) = (traffic.bytes_to_worker, traffic.bytes_to_client);
    Moved { to_worker, to_program, flights: traffic.flights, saved }
}

const WEIGHTS: &str = env!("CARGO_BIN_EXE_upload-weights");
const FEW_BYTES: &str = env!("CARGO_BIN_EXE_few-bytes");
const TWELVE: &str = env!("CARGO_BIN_EXE_twelve-calls");

#[test]
fn copies_that_can_be_packed_move_less_than_half() {
    let worker = start_worker();
    let plain = run(worker.address(), WEIGHTS, &["16", "all", "small"], &[]);
    assert!(plain.to_worker > SENT && plain.to_program > SENT && plain.saved == 0);
    let packed = run(worker.address(), WEIGHTS, &["16", "all", "small"], &[("HIPR_COMPRESS", "always")]);
    assert!(packed.to_worker < SENT / 2 && packed.to_program < SENT / 2);
    assert!(packed.saved > SENT, "both directions: {}", packed.saved);
    assert_eq!(packed.flights, plain.flights, "nobody waits for it");
}

#[test]
fn what_cannot_be_packed_moves_as_before() {
    let worker = start_worker();
    let packed = run(worker.address(), WEIGHTS, &["16", "all"], &[("HIPR_COMPRESS", "always")]);
    let most = SENT + SENT / 1000 + 64 * 1024;
    assert!((SENT..most).contains(&packed.to_worker) && (SENT..most).contains(&packed.to_program));
}

#[test]
fn code_is_packed() {
    let worker = start_worker();
    let plain = run(worker.address(), TWELVE, &[], &[]);
    let packed = run(worker.address(), TWELVE, &[], &[("HIPR_COMPRESS", "always")]);
    assert!(packed.to_worker < plain.to_worker / 2, "{} and {}", packed.to_worker, plain.to_worker);
    assert!(packed.to_program <= plain.to_program);
    assert_eq!(packed.flights, plain.flights);
}

#[test]
fn who_has_no_use_for_it_moves_as_before() {
    let worker = start_worker();
    let plain = run(worker.address(), WEIGHTS, &["16", "all", "small"], &[("HIPR_COMPRESS", "off")]);
    for variables in [
        &[][..],
        &[("HIPR_COMPRESS", "auto")],
        &[("HIPR_COMPRESS", "a word")],
        &[("HIPR_COMPRESS", "always"), ("HIPR_EXTENSION", "off")],
    ] {
        let moved = run(worker.address(), WEIGHTS, &["16", "all", "small"], variables);
        assert!(moved.to_worker > SENT && moved.to_program > SENT && moved.saved == 0, "{variables:?}");
        if !variables.iter().any(|(name, _)| *name == "HIPR_EXTENSION") {
            assert_eq!(moved.flights, plain.flights, "{variables:?}");
        }
    }
}

/// A copy that goes through the cache of uploads is packed where the cache does not have it, and kept under its own name.
#[test]
fn the_cache_keeps_what_was_packed() {
    let worker = start_worker_with_cache();
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let variables = [
        ("HIPR_COMPRESS", "always"),
        ("HIPR_CACHE", "on"),
        ("HIPR_CACHE_KEY_FILE", key.to_str().expect("a path that is text")),
    ];
    let first = run(worker.address(), WEIGHTS, &["16", "all", "small"], &variables);
    assert!(first.to_worker < SENT / 2);
    assert_eq!(worker.stats().cache().kept_bytes, SENT);
    let second = run(worker.address(), WEIGHTS, &["16", "all", "small"], &variables);
    assert!(second.to_worker < SENT / 100, "{} bytes", second.to_worker);
    assert_eq!(worker.stats().cache().saved_bytes, SENT);
}

#[test]
fn pages_that_kernels_have_changed_are_packed() {
    let worker = start_worker();
    let plain = run(worker.address(), FEW_BYTES, &[], &[]);
    let packed = run(worker.address(), FEW_BYTES, &[], &[("HIPR_COMPRESS", "always")]);
    // Ten times three pages of which a word is written.
    assert!(plain.to_program > 30 * 4096 && plain.saved == 0, "{} bytes", plain.to_program);
    assert!(packed.to_program < plain.to_program / 3, "{} bytes", packed.to_program);
    assert_eq!(packed.flights, plain.flights, "nobody waits for it");
}
