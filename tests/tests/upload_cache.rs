//! Tests of the cache of uploads end to end: a HIP program, the library, a proxy that counts, a worker.

use hipr_tests::{Link, Proxy, library_folder, start_worker, start_worker_with_cache};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;
/// What the program uploads.
const SENT: u64 = 32 * MIB;

/// Runs the program with these variables; returns the bytes that it sent, and those that its own statistics say it saved.
fn upload(worker: SocketAddr, variables: &[(&str, &str)]) -> (u64, u64) {
    let proxy = Proxy::start(worker, Link::default()).expect("a proxy");
    let folder = library_folder();
    let stats = folder.path().join("stats.json");
    let output = Command::new(env!("CARGO_BIN_EXE_upload-weights"))
        .args(["32", "all"])
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", proxy.address().to_string())
        .env("HIPR_STATS_FILE", &stats)
        .env_remove("HIPR_CACHE")
        .envs(variables.iter().copied())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = std::fs::read_to_string(&stats).expect("the file was written");
    let (_, saved) = line.split_once("\"cache_bytes_saved\":").expect("the counter");
    let saved = saved.split([',', '}']).next().and_then(|n| n.parse().ok()).expect("a number");
    (proxy.traffic().bytes_to_worker, saved)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

#[test]
fn the_second_upload_moves_less_than_a_hundredth() {
    let worker = start_worker_with_cache();
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let on = [("HIPR_CACHE", "on"), ("HIPR_CACHE_KEY_FILE", text(&key))];
    let (first, saved) = upload(worker.address(), &on);
    assert!((SENT..SENT + SENT / 100).contains(&first), "{first} bytes");
    assert_eq!(saved, 0);
    let (second, saved) = upload(worker.address(), &on);
    assert!(second < SENT / 100, "{second} bytes");
    assert_eq!(saved, SENT);
    let stats = worker.stats().cache();
    assert_eq!((stats.kept_bytes, stats.saved_bytes), (SENT, SENT));
    // Another user's key finds nothing.
    let other = folder.path().join("other");
    let (third, saved) = upload(worker.address(), &[on[0], ("HIPR_CACHE_KEY_FILE", text(&other))]);
    assert!(third > SENT && saved == 0, "{third} bytes");
}

#[test]
fn who_has_no_use_for_the_cache_sends_as_before() {
    let worker = start_worker_with_cache();
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let file = ("HIPR_CACHE_KEY_FILE", text(&key));
    for variables in [
        &[file][..],
        &[file, ("HIPR_CACHE", "auto")],
        &[file, ("HIPR_CACHE", "off")],
        &[file, ("HIPR_CACHE", "on"), ("HIPR_EXTENSION", "off")],
    ] {
        for _ in 0..2 {
            let (sent, saved) = upload(worker.address(), variables);
            assert!(sent > SENT && saved == 0, "{variables:?}: {sent} bytes");
        }
        assert!(!key.exists(), "{variables:?}: no key is made");
    }
    assert_eq!(worker.stats().cache().kept_bytes, 0);
    // A worker without a cache, and a key that is none.
    let plain = start_worker();
    let (sent, _) = upload(plain.address(), &[file, ("HIPR_CACHE", "on")]);
    assert!(sent > SENT);
    std::fs::write(&key, "short").expect("written");
    let (sent, _) = upload(worker.address(), &[file, ("HIPR_CACHE", "on")]);
    assert!(sent > SENT);
}
