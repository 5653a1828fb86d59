//! Counts what a program costs that asks everything about its devices: nothing beyond the first flight where client and worker
//! have the extension, and each question once where one of them does not have it.

use hipr_proto::{Features, Opcode};
use hipr_tests::{Chain, library_folder};
use hipr_worker::{Config, FEATURES, Handle, Worker};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

fn worker(features: Option<Features>) -> Handle {
    let device = Arc::new(hipr_sim::Gpu::new(hipr_sim::Config::default()).expect("the emulated GPU"));
    let mut config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device) };
    config.session.features = features;
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

/// The output of a program, and its number of round trips with the one that opens the session.
struct Ran {
    said: String,
    round_trips: u64,
}

fn ask_everything(worker: impl Display, rounds: u32, extension: &str) -> Ran {
    let library = library_folder();
    let stats = library.path().join("stats.json");
    let output = Command::new(env!("CARGO_BIN_EXE_ask-everything"))
        .arg(rounds.to_string())
        .env("LD_LIBRARY_PATH", library.path())
        .env("HIPR_WORKER", worker.to_string())
        .env("HIPR_STATS_FILE", &stats)
        .env("HIPR_EXTENSION", extension)
        .env_remove("HIPR_LOG")
        .output()
        .expect("the program starts");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    assert_eq!(error, "", "nothing is logged");
    let counts: serde_json::Value =
        serde_json::from_slice(&std::fs::read(stats).expect("the file is written")).expect("JSON");
    let round_trips = counts["round_trips"].as_u64().expect("a number");
    Ran { said: String::from_utf8(output.stdout).expect("text"), round_trips }
}

/// Returns how often each operation was asked for, without those that open and close a session.
fn asked(worker: &Handle) -> BTreeMap<Opcode, u64> {
    let around = [Opcode::INIT, Opcode::OFFER, Opcode::STATIC, Opcode::MEM_LEASE, Opcode::SHUTDOWN];
    worker.stats().requests().filter(|(op, _)| !around.contains(op)).collect()
}

/// Reads the last line: the number of calls and of those that fail.
fn calls(said: &str) -> (u64, u64) {
    let last = said.lines().last().expect("a last line");
    let mut numbers = last.split(' ').filter_map(|word| word.parse().ok());
    (numbers.next().expect("calls"), numbers.next().expect("failures"))
}

#[test]
fn asking_everything_costs_the_first_flight() {
    let worker = worker(Some(FEATURES));
    let ran = ask_everything(worker.local_addr(), 2, "on");
    assert!(calls(&ran.said).0 > 100, "{}", ran.said);
    // What is in no list is asked for: in each round the attribute that does not exist.
    let left: BTreeMap<_, _> = [(Opcode::DEVICE_GET_ATTRIBUTE, 2)].into();
    assert_eq!(asked(&worker), left);
    assert_eq!(worker.stats().requests_of(Opcode::STATIC), 1);
    assert!(ran.round_trips <= 2 + 2, "the first flight, two questions, good-bye: {}", ran.round_trips);
}

#[test]
fn an_old_side_answers_each_question_once() {
    let new = ask_everything(worker(Some(FEATURES)).local_addr(), 1, "on");
    for (features, extension) in [(None, "on"), (Some(FEATURES), "off"), (None, "off")] {
        let mut counts = Vec::new();
        for rounds in [1, 3] {
            let worker = worker(features);
            let ran = ask_everything(worker.local_addr(), rounds, extension);
            // Whether memory can be mapped depends on both sides.
            let can_map = |can: i32| format!("hipDeviceAttributeVirtualMemoryManagementSupported: 0 {can}\n");
            let expected = new.said.replacen(&can_map(1), &can_map(0), 1);
            assert_eq!(ran.said, expected, "{features:?}, {extension}: the same answers");
            assert_ne!(ran.said, new.said, "{features:?}, {extension}");
            let asked = asked(&worker);
            assert!(asked[&Opcode::DEVICE_GET_ATTRIBUTE] > 50, "{asked:?}");
            assert_eq!(worker.stats().requests_of(Opcode::OFFER), u64::from(extension == "on"));
            counts.push(asked);
        }
        let (first, later) = (&counts[0], &counts[1]);
        for (op, count) in later {
            // Answers are remembered, refusals are not: they could be of something earlier.
            let again = if *op == Opcode::DEVICE_GET_ATTRIBUTE { 2 * refusals(&new.said) } else { 0 };
            assert_eq!(*count, first[op] + again, "{features:?}, {extension}: {op}");
        }
    }
}

/// How many questions about attributes a round asks that the library refuses by itself.
const REFUSED_HERE: u64 = 18;

/// Returns how many questions about attributes a round asks that the worker refuses.
fn refusals(said: &str) -> u64 {
    calls(said).1 - REFUSED_HERE
}

#[test]
fn a_chain_passes_everything_on() {
    let direct = ask_everything(worker(Some(FEATURES)).local_addr(), 1, "on");
    let chain = Chain::start(Path::new(env!("CARGO_BIN_EXE_chain-worker")));
    let chained = ask_everything(chain.address(), 1, "on");
    assert_eq!(chained.said, direct.said);
    assert!(chained.round_trips <= 2 + 1, "{}", chained.round_trips);
}
