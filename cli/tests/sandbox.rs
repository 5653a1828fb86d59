//! What the process of a session may do on the worker's machine: nothing but serve its client.

use hipr_tests::faults::{BREAK_OUT, LIBRARY, SECRET, SERVICE};
use hipr_tests::{WireClient, WorkerProcess, built_library, eventually, library, start_worker};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");

/// What a HIP runtime needs.
const NEEDED: &[&str] = &[
    "thread",
    "library",
    "system",
    "own-maps",
    "temporary",
    "remove-temporary",
    "null",
    "file-in-memory",
    "signal-self",
];
/// What nothing but an attack needs.
const FORBIDDEN: &[&str] = &[
    "read",
    "write",
    "list",
    "list-shared",
    "passwords",
    "tcp",
    "unix",
    "run",
    "environment-of-other",
    "memory-of-other",
    "signal-other",
    "fork",
    "trace",
    "new-namespace",
    "shared-segment",
    "ring",
    "core-dumps",
    "group",
];

/// Returns what code in the process of a session was able to do, by name, on a worker with these options.
fn attempts(options: &[&str]) -> BTreeMap<String, bool> {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join(SECRET), "a").expect("a file");
    let _service = UnixListener::bind(folder.path().join(SERVICE)).expect("a socket");
    let service = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let place = format!("{},{}", folder.path().display(), service.local_addr().expect("an address"));
    let runtime = built_library("libfaulty_hip.so");
    let mut command = Command::new(HIPR);
    // The runtime behind the one that tries is hipr's own library, which cannot reach its worker from a sandbox.
    let back = start_worker();
    command.env(BREAK_OUT, place).env(LIBRARY, library()).env("HIPR_WORKER", back.address().to_string());
    let hip = ["--device", "hip", "--isolate", "process", "--hip-library", runtime.to_str().expect("text")];
    let worker = WorkerProcess::start_command(command, &[&hip, options].concat());
    let _client = WireClient::open(worker.address());
    let done = || {
        let log = worker.log();
        // The process that looks for a GPU loads the library, too, and has no client.
        let lines = log
            .lines()
            .filter(|line| line.starts_with("session "))
            .filter_map(|line| line.split_once("break-out: "))
            .map(|(_, line)| line.to_owned());
        lines.collect::<Vec<_>>()
    };
    eventually("everything was tried", || done().len() >= NEEDED.len() + FORBIDDEN.len());
    let results = done().into_iter().map(|line| {
        let (name, result) = line.split_once(' ').expect("a name and a result");
        (name.to_owned(), result == "done")
    });
    results.collect()
}

#[test]
fn code_in_a_session_reaches_nothing_but_its_client_and_the_gpu() {
    let done = attempts(&["--sandbox", "required"]);
    for name in NEEDED {
        assert!(done[*name], "{name} is refused, and runtimes need it");
    }
    for name in FORBIDDEN {
        assert!(!done[*name], "{name} is not refused");
    }
}

/// Otherwise the other test could say nothing: what is refused there is refused by the sandbox.
#[test]
fn without_the_sandbox_it_reaches_what_the_workers_user_can() {
    let done = attempts(&["--sandbox", "off"]);
    for name in
        ["read", "write", "list", "list-shared", "tcp", "unix", "run", "fork", "signal-other", "core-dumps"]
    {
        assert!(done[name], "{name} is refused");
    }
}

#[test]
fn more_can_be_allowed_to_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    let worker = WorkerProcess::start_logged(
        Path::new(HIPR),
        &[
            "--device",
            "sim",
            "--isolate",
            "process",
            "--sandbox-read",
            path,
            "--sandbox-read",
            "/nonexistent",
        ],
    );
    WireClient::open(worker.address());
    assert!(attempts(&["--sandbox-read", "/etc/shadow"])["passwords"]);
}

#[test]
fn the_kernel_says_that_a_session_is_confined() {
    let options = ["--device", "sim", "--isolate", "process"];
    for (more, privileges, filters) in [(&[][..], "1", "2"), (&["--sandbox", "off"], "0", "0")] {
        let worker = WorkerProcess::start_logged(Path::new(HIPR), &[&options, more].concat());
        let _client = WireClient::open(worker.address());
        let status = fs::read_to_string(format!("/proc/{}/status", worker.children()[0])).expect("a process");
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of Linux");
            line.trim().to_owned()
        };
        assert_eq!(value("NoNewPrivs:"), privileges, "{more:?}");
        assert_eq!(value("Seccomp:"), filters, "{more:?}");
        if more.is_empty() {
            for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
                assert_eq!(u64::from_str_radix(&value(set), 16), Ok(0), "{set}");
            }
        }
        assert_eq!(worker.log().contains("not confined"), !more.is_empty(), "{}", worker.log());
    }
}
