//! The programs of `tests/programs/pairs`, each in four ways: on one worker with two devices, on two workers, with keys, and far away; what that
//! costs; and each with a worker that is lost in the middle.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hipr_tests::toolchain::{folder, toolchain};
use hipr_tests::{Link, Proxy, WorkerProcess};

use super::workers::{Keys, list, over_tcp};
use super::{SEVERAL, hipr_run, text};

/// Number of programs, each at two optimization levels.
const PROGRAMS: usize = 19;
/// Time after which a program that has lost a device hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the programs of one optimization level, by name; none without a compiler. All are compiled once.
fn pairs(level: &str) -> Vec<(String, PathBuf)> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        toolchain("the programs for two devices did not run")?;
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pairs");
        let mut build = Command::new(folder().join("programs/build.sh"));
        let result = build.arg(&out).arg("--pairs").output().expect("the build script runs");
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        Some(out)
    };
    let Some(out) = FOLDER.get_or_init(build) else { return Vec::new() };
    let entries = fs::read_dir(out).expect("the folder").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let mut programs: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|found| found == level))
        .filter_map(|path| Some((name(&path)?, path)))
        .collect();
    programs.sort();
    assert_eq!(programs.len(), PROGRAMS);
    programs
}

/// Calls `check` with each program, several at a time.
fn each(
    programs: &[(String, PathBuf)],
    jobs: usize,
    check: impl Fn(&str, &Path) -> Result<(), String> + Sync,
) {
    let next = AtomicUsize::new(0);
    let failures: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut failures = Vec::new();
            while let Some((name, path)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                failures.extend(check(name, path).err().map(|failure| format!("{name}: {failure}")));
            }
            failures
        };
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

/// Runs a program; returns the line with its verdict.
fn verdict(command: &mut Command, program: &Path) -> Result<String, String> {
    let output = command.arg(program).output().expect("hipr runs");
    let said = text(&output);
    let is_good = output.status.success() && output.stdout.starts_with(b"PASS");
    if is_good { Ok(said) } else { Err(said) }
}

fn pass(programs: &[(String, PathBuf)], jobs: usize, command: impl Fn() -> Command + Sync) {
    each(programs, jobs, |_, program| verdict(&mut command(), program).map(drop));
}

#[test]
fn programs_for_two_devices_pass_on_one_worker_on_two_and_with_keys() {
    let one = over_tcp(&SEVERAL[1..]);
    let two = [0, 1].map(|_| over_tcp(&[]));
    let keys = Keys::new();
    let asking = ["a", "b"].map(|name| keys.worker(name, &[]));
    let asking = asking.each_ref().map(|worker| format!("hipr://{}", worker.address())).join(",");
    for level in ["O0", "O3"] {
        let programs = pairs(level);
        pass(&programs, 2, || hipr_run(&["--worker", &one.listens_at().to_string()]));
        pass(&programs, 2, || hipr_run(&["--worker", &list(&two)]));
        pass(&programs, 2, || {
            let mut command = hipr_run(&["--worker", &asking]);
            keys.use_in(&mut command);
            command
        });
    }
}

/// More programs at a time than the machine has processors, often: orders that are wrong only now and then show.
#[test]
#[ignore = "takes minutes"]
fn programs_for_two_devices_pass_again_and_again_on_a_busy_machine() {
    let one = over_tcp(&SEVERAL[1..]);
    let two = [0, 1].map(|_| over_tcp(&[]));
    let programs: Vec<_> = (0..20).flat_map(|_| pairs("O3")).collect();
    for workers in [one.listens_at().to_string(), list(&two)] {
        pass(&programs, 6, || hipr_run(&["--worker", &workers]));
    }
}

#[test]
fn programs_for_two_devices_pass_on_workers_that_are_far_away() {
    let workers = [0, 1].map(|_| over_tcp(&[]));
    let link = Link { delay: Duration::from_millis(25), ..Link::default() };
    let proxies = workers.each_ref().map(|worker| Proxy::start(worker.address(), link).expect("a port"));
    let all = proxies.each_ref().map(|proxy| proxy.address().to_string()).join(",");
    pass(&pairs("O3"), 6, || hipr_run(&["--worker", &all]));
}

/// A worker that ends in the middle of a program: a call says so, and the other device goes on.
#[test]
fn programs_for_two_devices_lose_one_and_go_on_with_the_other() {
    for lost in [0, 1] {
        each(&pairs("O3"), 2, |_, program| {
            let mut workers = [0, 1].map(|_| over_tcp(&[]));
            let mut command = hipr_run(&["--worker", &list(&workers)]);
            command.arg(program).args(["lose", &lost.to_string()]);
            lose(&mut command, &mut workers[lost])
        });
    }
}

/// Runs a program, and ends a worker when it says that it is in the middle.
fn lose(command: &mut Command, worker: &mut WorkerProcess) -> Result<(), String> {
    let [input, output, errors] = [(); 3].map(|()| Stdio::piped());
    let mut child = command.stdin(input).stdout(output).stderr(errors).spawn().expect("hipr runs");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut said = String::new();
    output.read_line(&mut said).expect("a line");
    let is_there = said == "MIDDLE\n";
    if is_there {
        worker.kill();
        child.stdin.take().expect("a pipe").write_all(b"go on\n").expect("it reads");
    }
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("it is waited for") {
            Some(status) => break Some(status),
            None if start.elapsed() > PATIENCE => {
                child.kill().expect("it is ended");
                break None;
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    output.read_to_string(&mut said).expect("text");
    let mut errors = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut errors).expect("text");
    let names_the_worker = errors.contains(&worker.listens_at().to_string());
    let is_good = is_there && status.is_some_and(|status| status.success()) && names_the_worker;
    if is_good { Ok(()) } else { Err(format!("{status:?}: {said}{errors}")) }
}

/// Programs whose host memory both devices use. Each time that one device waits for the other, the worker is also asked what has changed in it.
const WITH_HOST_MEMORY: [&str; 2] = ["managed_list", "pinned_halves"];

/// On two workers a program needs at most the round trips that it needs on one, and in addition one for each result that it looks at, one for each
/// time that one device waits for the other, and three for each copy between the devices (docs/several-workers.md). No thread of the program
/// waits for those of the last two kinds.
#[test]
fn what_programs_for_two_devices_cost_on_two_workers_has_a_bound() {
    let one = over_tcp(&SEVERAL[1..]);
    let two = [0, 1].map(|_| over_tcp(&[]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counts");
    // It does not say how often its graph goes from device to device.
    for (name, program) in pairs("O3").into_iter().filter(|(name, _)| name != "graph_nodes") {
        let [(on_one, _), (on_two, said)] = [one.listens_at().to_string(), list(&two)].map(|workers| {
            let mut command = hipr_run(&["--worker", &workers]);
            let said = verdict(command.env("HIPR_STATS_FILE", &file), &program).expect("it passes");
            let line = fs::read_to_string(&file).expect("the counts");
            fs::remove_file(&file).expect("it is there");
            let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            (line["round_trips"].as_u64().expect("a number"), said)
        });
        let count = |what: &str| {
            let part = said.split(", ").find(|part| part.trim_end().ends_with(what));
            part.and_then(|part| part.split(' ').next()?.parse::<u64>().ok()).expect("a number")
        };
        let [looks, orders, copies] = ["looks", "orders", "copies"].map(count);
        let each_order = if WITH_HOST_MEMORY.contains(&name.as_str()) { 3 } else { 1 };
        let most = on_one + looks + each_order * orders + 3 * copies;
        assert!(
            on_two <= most,
            "{name}: {on_two} round trips, at most {most}; {on_one} on one worker: {said}"
        );
    }
}
