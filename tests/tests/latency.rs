//! Counts round trips, which determine the cost of latency without measuring time.

use hipr_tests::{Chain, Link, Proxy, library_folder, start_worker};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
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

#[test]
fn memory_on_both_sides_moves_by_the_pages_that_changed() {
    const ROUNDS: u64 = 10;
    let worker = start_worker();
    let folder = library_folder();
    let stats = folder.path().join("stats.json");
    let received = |extension: &str, mib: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_few-bytes"))
            .arg(mib)
            .env("LD_LIBRARY_PATH", folder.path())
            .env("HIPR_WORKER", worker.address().to_string())
            .env("HIPR_STATS_FILE", &stats)
            .env("HIPR_EXTENSION", extension)
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let line = std::fs::read_to_string(&stats).expect("the file was written");
        std::fs::remove_file(&stats).expect("a file");
        ["bytes_received", "bytes_sent", "pages_compared"].map(|name| counter(&line, name))
    };
    let [here, there, compared] = received("on", "64");
    // In each round three pages come here, and two go there with three launches; before that a module.
    assert!((ROUNDS * 3 * 4096..ROUNDS * (3 * 4096 + 2000) + 4096).contains(&here), "{here} bytes here");
    assert!(there < ROUNDS * (2 * 4096 + 2000) + (256 << 10), "{there} bytes there");
    // All of it before the first launch, where the kernel does not tell what was written, and then before each of three.
    let (pages, launches) = ((64 << 20) / 4096, 3 * ROUNDS);
    if tells_written_pages() {
        // Pages that were never used count as written once; then those are compared that program or kernel wrote.
        assert!((1..=pages + launches * 16).contains(&compared), "{compared} pages compared");
    } else {
        assert!(compared >= launches * pages, "{compared} pages compared");
    }
    let [whole, _, _] = received("off", "64");
    assert!(whole > ROUNDS * (64 << 20), "{whole} bytes: without the extension all of it is fetched");
    // No more of 1 GiB, if nobody has to compare all of it.
    if tells_written_pages() {
        let [here, there, compared] = received("on", "1024");
        assert!(
            here / ROUNDS < 64 << 10 && there < ROUNDS * (64 << 10) + (256 << 10),
            "{here}, {there} bytes"
        );
        assert!(compared <= (1 << 30) / 4096 + launches * 16, "{compared} pages compared");
    }
}

/// Returns whether the kernel tells which pages were written: whether a program with the library says so in its log.
fn tells_written_pages() -> bool {
    let (worker, folder) = (start_worker(), library_folder());
    let output = Command::new(env!("CARGO_BIN_EXE_few-bytes"))
        .arg("copy")
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker.address().to_string())
        .env("HIPR_LOG", "info")
        .output()
        .expect("the program starts");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let [told, compared] = ["the kernel tells which pages were written", "is compared before each launch"]
        .map(|text| log.matches(text).count());
    assert_eq!(told + compared, 1, "it is said once: {log}");
    told == 1
}

/// Returns a counter of the library from the file that it has written.
fn counter(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).expect("the counter");
    rest.split([',', '}']).next().and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn what_changed_on_both_sides_comes_in_the_flight_of_a_copy() {
    const ROUNDS: u64 = 10;
    // To open, and what the set-up waits for.
    const OTHERS: u64 = 6;
    let worker = start_worker();
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    // A worker that does not let the client place memory is asked for each piece.
    for (device, address, more) in
        [("emulated", worker.address(), 0), ("in front of another worker", chain.address(), 3)]
    {
        let folder = library_folder();
        let stats = folder.path().join("stats.json");
        let output = Command::new(env!("CARGO_BIN_EXE_few-bytes"))
            .arg("copy")
            .env("LD_LIBRARY_PATH", folder.path())
            .env("HIPR_WORKER", address.to_string())
            .env("HIPR_STATS_FILE", &stats)
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{device}: {}", String::from_utf8_lossy(&output.stderr));
        let flights = counter(&std::fs::read_to_string(&stats).expect("the file was written"), "round_trips");
        let most = ROUNDS + OTHERS + more;
        assert!((ROUNDS..=most).contains(&flights), "{device}: {flights} round trips");
    }
}

/// Runs the program that asks for an event until it is done; returns how often it was told that it is not, and how often the worker was
/// waited for.
fn flights_of_polling(worker: SocketAddr) -> (u64, u64) {
    let folder = library_folder();
    let stats = folder.path().join("stats.json");
    let output = Command::new(env!("CARGO_BIN_EXE_polls"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker.to_string())
        .env("HIPR_STATS_FILE", &stats)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let polls = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
    let line = std::fs::read_to_string(&stats).expect("the file was written");
    (polls, counter(&line, "round_trips"))
}

#[test]
fn asking_again_and_again_costs_one_flight() {
    const ROUNDS: u64 = 10;
    // To open, to load and to allocate, to wait once, for the result.
    const OTHERS: u64 = 12;
    let worker = start_worker();
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    for (device, address) in [("emulated", worker.address()), ("in front of another worker", chain.address())]
    {
        let (polls, flights) = flights_of_polling(address);
        assert!(polls > 0, "{device}: kernels take time");
        assert!(flights <= ROUNDS + OTHERS, "{device}: {flights} round trips for {polls} polls");
    }
}

#[test]
fn times_between_events_cost_one_flight() {
    // To open, to load, to ask for a time for the first time, and at the end.
    const OTHERS: u64 = 6;
    let worker = start_worker();
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    for (device, address, more) in
        [("emulated", worker.address(), 0), ("in front of another worker", chain.address(), 4)]
    {
        let flights = |way: &str, extension: &str| {
            let folder = library_folder();
            let stats = folder.path().join("stats.json");
            let output = Command::new(env!("CARGO_BIN_EXE_event-times"))
                .arg(way)
                .env("LD_LIBRARY_PATH", folder.path())
                .env("HIPR_WORKER", address.to_string())
                .env("HIPR_STATS_FILE", &stats)
                .env("HIPR_EXTENSION", extension)
                .output()
                .expect("the program starts");
            assert!(output.status.success(), "{way}: {}", String::from_utf8_lossy(&output.stderr));
            counter(&std::fs::read_to_string(&stats).expect("the file was written"), "round_trips")
        };
        // 20 rounds with a wait each, in which the times come along, or one wait.
        for (way, waits) in
            [("event", 20), ("stream", 20), ("device", 20), ("copy", 20), ("pairs", 1), ("first", 1)]
        {
            let counted = flights(way, "on");
            assert!(counted <= waits + OTHERS + more, "{device}: {counted} round trips with {way}");
            assert!(flights(way, "off") >= waits + 20, "{device}: without the extension each time waits");
        }
    }
}

#[test]
fn what_io_uring_writes_to_pinned_memory_reaches_kernels() {
    let (worker, folder) = (start_worker(), library_folder());
    let output = Command::new(env!("CARGO_BIN_EXE_ring-reads"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker.address().to_string())
        .env("HIPR_LOG", "info")
        .output()
        .expect("the program starts");
    let log = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(3) => eprintln!("not tested: this machine lets nobody use io_uring"),
        code => assert_eq!(code, Some(0), "{log}"),
    }
    if tells_written_pages() && output.status.code() == Some(0) {
        assert!(
            log.contains("compared before each launch from now on: the process has an io_uring"),
            "{log}"
        );
    }
}

#[test]
fn a_child_of_a_fork_changes_nothing_of_its_parents_memory() {
    let (worker, folder) = (start_worker(), library_folder());
    let output = Command::new(env!("CARGO_BIN_EXE_forks"))
        .env("LD_LIBRARY_PATH", folder.path())
        .env("HIPR_WORKER", worker.address().to_string())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
