//! Counts round trips, which determine the cost of latency without measuring time.

use hipr_tests::{Link, Proxy, library_folder, start_worker};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn streams_events_and_launches_cost_at_most_three_round_trips() {
    let worker = start_worker();
    let proxy = Proxy::start(worker.address(), Link::default()).expect("a proxy");
    let folder = library_folder();
    let mut program = Command::new(env!("CARGO_BIN_EXE_launch-many"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", proxy.address().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(program.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let before = proxy.traffic().flights;
    assert!(before > 0, "set-up waits for answers, and they pass the proxy");
    program.stdin.take().expect("piped").write_all(b"go\n").expect("the program reads");
    let status = program.wait().expect("the program ends");
    assert!(status.success(), "the program's result: {status}");
    let traffic = proxy.traffic();
    let flights = traffic.flights - before;
    assert!((1..=3).contains(&flights), "{flights} round trips\n{traffic}");
}
