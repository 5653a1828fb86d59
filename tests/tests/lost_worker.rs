//! Tests programs whose worker is missing or disappears: they get a HIP error and a clear message, and neither crash nor
//! hang.

use hipr_tests::{library_folder, start_worker};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

fn program(folder: &tempfile::TempDir, worker: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_launch-many"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker)
        .env("HIPR_CONNECT_TIMEOUT_MS", "2000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Returns the program's output; it has to end with the exit code of a HIP error.
fn failure(mut program: Child) -> String {
    let mut text = String::new();
    program.stderr.take().expect("piped").read_to_string(&mut text).expect("text");
    let status = program.wait().expect("the program ends");
    assert_eq!(status.code(), Some(1), "a HIP error, not a crash: {status}\n{text}");
    text
}

#[test]
fn a_wrong_address_is_an_error_and_one_line() {
    let folder = library_folder();
    let nobody =
        TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").to_string();
    let text = failure(program(&folder, &nobody));
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(&nobody)).collect();
    assert_eq!(lines.len(), 1, "one line of ours:\n{text}");
    assert!(text.contains("hipError"), "the program sees a HIP error:\n{text}");
}

#[test]
fn a_worker_that_never_answers_is_given_up() {
    let folder = library_folder();
    // Connections are accepted by the kernel; nobody ever reads.
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = silent.local_addr().expect("an address").to_string();
    let text = failure(program(&folder, &address));
    assert!(text.contains(&address), "{text}");
}

#[test]
fn a_worker_that_goes_is_an_error() {
    let folder = library_folder();
    let worker = start_worker();
    let address = worker.address().to_string();
    let mut program = program(&folder, &address);
    let mut line = String::new();
    BufReader::new(program.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    drop(worker);
    program.stdin.take().expect("piped").write_all(b"go\n").expect("the program reads");
    let text = failure(program);
    assert!(text.contains(&address) && text.contains("hipError"), "{text}");
}
