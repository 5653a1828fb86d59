//! Tests the output of `hipr bench`, not how fast anything is.

use serde_json::Value;
use std::process::Command;

const SHORT: [&str; 5] = ["--json", "--rounds", "2", "--seconds", "0.05"];

/// Returns the report of a short run, after checking every figure and ratio in it.
fn report(args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_hipr")).arg("bench").args(args).args(SHORT).output();
    let output = output.expect("hipr runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {text}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(report["bench"], args[0]);
    assert_eq!((&report["rounds"], &report["seconds"]), (&2.into(), &0.05.into()));
    assert!(report["host"]["cores"].as_u64() > Some(0));
    for figure in list(&report["figures"]) {
        spread(&figure["value"]);
        for compared in list(&figure["compared"]) {
            spread(&compared["value"]);
            spread(&compared["ratio"]);
        }
    }
    report
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// Checks that the numbers are plausible measurements: above 0 and in order.
fn spread(value: &Value) {
    let [min, median, max] = ["min", "median", "max"].map(|key| value[key].as_f64().expect("a number"));
    assert!(0.0 < min && min <= median && median <= max && max.is_finite(), "{value}");
}

fn names(report: &Value) -> Vec<&str> {
    list(&report["figures"]).iter().map(|figure| figure["name"].as_str().expect("text")).collect()
}

/// Returns the names of the references of a figure.
fn compared<'r>(report: &'r Value, figure: &str) -> Vec<&'r str> {
    let figures = list(&report["figures"]);
    let figure = figures.iter().find(|found| found["name"] == figure).expect("the figure is there");
    list(&figure["compared"]).iter().map(|compared| compared["to"].as_str().expect("text")).collect()
}

#[test]
fn launches_have_a_limit_and_a_contract_style_worker_beside_them() {
    let report = report(&["launch", "--client", "rust,c", "--io", "mio"]);
    let (rust, c) = ("launches, Rust API, io mio", "launches, C API, io mio");
    assert_eq!(names(&report), [rust, c, "peak memory of the worker, io mio"]);
    for figure in [rust, c] {
        let others = ["raw tcp stream with the same bytes", "contract-style worker over tcp"];
        assert_eq!(compared(&report, figure), others);
    }
    assert_eq!(report["figures"][0]["at_least"], 5e6, "goals are in the report");
    assert!(report["figures"][0]["holds"].is_boolean());
}

#[test]
fn launches_on_the_emulated_device_are_carried_out() {
    let report = report(&["launch", "--device", "sim", "--io", "mio"]);
    assert_eq!(report["settings"]["device"], "sim");
    assert!(report["figures"][0]["holds"].is_null(), "goals are for the null device");
}

#[test]
fn round_trips_have_percentiles() {
    let report = report(&["rtt", "--io", "mio"]);
    let columns = ["p50", "p99", "p99.9", "longest"].map(|column| format!("synchronize, io mio, {column}"));
    let expected: Vec<&str> =
        columns.iter().map(String::as_str).chain(["peak memory of the worker, io mio"]).collect();
    assert_eq!(names(&report), expected);
    for column in &columns {
        assert_eq!(compared(&report, column), ["raw ping-pong", "contract-style worker over tcp"]);
    }
}

#[test]
fn copies_are_compared_with_a_stream() {
    for (bench, what) in [("h2d", "host to device"), ("d2h", "device to host")] {
        let report = report(&[bench, "--size", "1M", "--client", "c,rust", "--io", "mio"]);
        assert_eq!(report["settings"]["size"], "1M");
        for api in ["Rust", "C"] {
            let figure = format!("{what}, {api} API, io mio");
            assert_eq!(compared(&report, &figure), ["raw tcp stream", "contract-style worker over tcp"]);
        }
    }
}

#[test]
fn copies_between_workers_are_compared_with_a_stream_and_with_the_way_through_the_program() {
    let report = report(&["between", "--size", "1M"]);
    assert_eq!(compared(&report, "worker to worker"), ["raw tcp stream", "through the program"]);
    let note = report["notes"][0].as_str().expect("a note");
    let bytes = note.split(' ').find_map(|word| word.parse::<u64>().ok()).expect("a number of bytes");
    assert!(bytes < 2000, "{note}");
}

#[test]
fn several_workers_are_compared_with_one_and_idle_ones_are_counted() {
    let several = report(&["scale", "--workers", "2"]);
    for what in ["launches", "copies to the host", "kernels on emulated GPUs"] {
        assert_eq!(compared(&several, &format!("{what}, 2 workers")), ["one worker"]);
    }
    let idle = report(&["scale", "--idle", "5,20"]);
    let names = names(&idle);
    assert!(names.contains(&"memory of a session in its worker") && names.len() == 7, "{names:?}");
}

#[test]
fn many_clients_are_served_alike() {
    let report = report(&["clients", "--connections", "20", "--io", "mio"]);
    let names = names(&report);
    for depth in [1, 16] {
        let crowd = format!("20 connections, unanswered calls on each: {depth}, io mio");
        for figure in [
            "call, CROWD, p99",
            "p99 divided by the median, CROWD",
            "least served connection divided by the mean, CROWD",
        ] {
            let name = figure.replace("CROWD", &crowd);
            assert!(names.contains(&name.as_str()), "{name} is missing: {names:?}");
        }
        let compared = compared(&report, &format!("requests, {crowd}"));
        assert!(compared[0].starts_with("one connection, "), "a single one: {compared:?}");
        assert_eq!(compared.contains(&"contract-style worker over tcp"), depth == 1, "{compared:?}");
    }
}

#[test]
fn processes_are_placed_as_told() {
    for place in ["free", "apart", "together"] {
        let report = report(&["rtt", "--io", "mio", "--place", place]);
        assert_eq!(report["settings"]["place"], place);
    }
}

#[test]
fn a_neighbour_is_measured_alone_and_beside_copies() {
    let report = report(&["neighbour", "--size", "64M", "--io", "mio"]);
    for direction in ["to the device", "to the host"] {
        let figure = format!("synchronize beside copies {direction}, io mio, p50");
        assert_eq!(compared(&report, &figure), ["synchronize, alone"]);
    }
}

#[test]
fn shares_of_the_device_are_measured_with_and_without_processes() {
    let report = report(&["fair"]);
    for isolate in ["none", "process"] {
        let beside = format!("small kernel beside 1000 queued huge grids, isolate {isolate}, p50");
        assert_eq!(compared(&report, &beside), ["alone"]);
        let shares = format!("groups of weight 3 for each of weight 1, isolate {isolate}");
        assert!(names(&report).contains(&shares.as_str()), "{shares}");
    }
}

#[test]
fn event_loops_are_compared_with_the_first() {
    let report = report(&["rtt", "--io", "mio,auto"]);
    assert_eq!(compared(&report, "synchronize, io auto, p50").last(), Some(&"the same with io mio"));
}

#[test]
fn reports_become_a_table() {
    let report = report(&["rtt", "--io", "mio"]);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    serde_json::to_writer(&mut file, &report).expect("it is written");
    for (options, with_details) in [(vec!["bench", "table"], false), (vec!["bench", "table", "--all"], true)]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_hipr")).args(options).arg(file.path()).output();
        let output = output.expect("hipr runs");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for name in names(&report) {
            let is_detail = name.ends_with("p99.9") || name.ends_with("longest");
            let row = format!("| rtt: tcp null apart | {name} |");
            assert_eq!(table.contains(&row), with_details || !is_detail, "{row}\n{table}");
        }
    }
}

#[test]
fn wrong_options_are_refused() {
    for (args, part) in [
        (["rtt", "--rounds", "0"], "0"),
        (["rtt", "--seconds", "nan"], "length of a turn"),
        (["h2d", "--size", "0"], "size of a copy"),
        (["launch", "--client", "cobol"], "cobol"),
        (["launch", "--transport", "pigeon"], "pigeon"),
        (["clients", "--transport", "shm"], "sockets"),
        (["table", "/nonexistent/report", "/nonexistent/other"], "/nonexistent/report"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_hipr")).arg("bench").args(args).output().expect("hipr runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{args:?}");
        assert!(text.contains(part), "{args:?} names what is wrong: {text}");
    }
}
