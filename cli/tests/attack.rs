//! Runs the table of attacks (`tests/src/attack`) against a worker with limits, in a process whose address space is limited too.

use hipr_proto::op;
use hipr_tests::attack::{Scale, Target};
use hipr_tests::{WireClient, WorkerProcess, attack};
use std::process::Command;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");

/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../demo/kernels.co");

const MIB: u64 = 1 << 20;
/// The limit of each session.
const MEMORY_MAX: u64 = 64 * MIB;
/// What a session may cost beside that.
const BESIDE: u64 = 64 * MIB;

/// Starts a worker that may have 4 GiB of addresses.
fn worker(options: &[&str]) -> WorkerProcess {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 4194304 && exec \"$0\" \"$@\"", HIPR]);
    WorkerProcess::start_command(command, &[&["--device", "sim", "--memory-max", "64M"], options].concat())
}

#[test]
fn each_code_object_is_refused_for_what_is_wrong_with_it() {
    let device = "gfx942:sramecc+:xnack-".parse().expect("a target");
    for image in attack::IMAGES {
        let bytes = (image.image)();
        match (hipr_code_object::loadable(&bytes, &device), image.why) {
            (Ok(found), None) => assert!(found.code.cost_bytes() > 0, "{}", image.name),
            (Err(found), Some(why)) => assert!(found.to_string().contains(why), "{}: {found}", image.name),
            (Ok(_), Some(why)) => panic!("{}: loaded in spite of {why:?}", image.name),
            (Err(found), None) => panic!("{}: {found}", image.name),
        }
    }
}

/// Checks that each line of a log is the worker's own, and that a flood was cut.
fn check_log(log: &str) {
    assert!(log.contains("the descriptor of kernel kernel0\\n2026"), "names are in it, escaped:\n{log}");
    for line in log.lines() {
        let begins = line.split_once("Z ").is_some_and(|(time, _)| time.len() == 26 && time.contains('T'));
        let level = line.get(27..).map(str::trim_start).and_then(|rest| rest.split(' ').next());
        assert!(
            begins && matches!(level, Some("INFO" | "WARN" | "ERROR")),
            "not a line of the worker's: {line:?}"
        );
        assert!(
            !line.contains(|c: char| c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c)),
            "{line:?}"
        );
    }
    assert!(
        log.contains(" (1024 times)") && log.contains("left out"),
        "what is not written is counted:\n{log}"
    );
    assert!(log.len() < 128 << 10, "{} bytes", log.len());
}

#[test]
fn no_attack_costs_more_than_a_session_may_cost() {
    let mut worker = worker(&[]);
    let target = Target { address: worker.address(), pid: worker.pid() };
    let mut wrong = Vec::new();
    for case in attack::cases(&Scale::SHORT) {
        worker.reset_peak().expect("the worker lives");
        let before = worker.resident_bytes();
        let attacked = attack::run(target, &case);
        assert!(worker.lives(), "{}", case.name);
        let grown = worker.peak_resident_bytes().saturating_sub(before);
        println!("{}: {} MiB, {:?}, {}", case.name, grown / MIB, attacked.slowest, attacked.sent);
        if !attacked.sent.is_right || grown > MEMORY_MAX + BESIDE {
            wrong.push(format!("{}: {} MiB more, {}", case.name, grown / MIB, attacked.sent));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    check_log(&worker.log());
    let mut client = WireClient::open(worker.address());
    let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
    client.call_with(&load, &[], Some(KERNELS.to_vec())).result.expect("what is right is loaded");
}
