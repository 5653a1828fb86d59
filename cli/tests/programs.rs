//! Runs real HIP programs, compiled by hipcc and unmodified, under `hipr run`: with the embedded worker, with a worker
//! process, and with a worker whose GPU is behind HIP's C API. Without the compiler (`tests/toolchain/setup.sh`) the tests
//! are skipped, or fail if HIPR_REQUIRE_COMPILER is set. `tests/tests/committed_kernels` runs their kernels everywhere.

use hipr_tests::WorkerProcess;
use hipr_tests::toolchain::{folder, toolchain};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Minimum number of programs, each at two optimization levels.
const PROGRAMS_MIN: usize = 20;

/// Returns the folder of executables, compiled once; `None` without a compiler.
fn built() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    toolchain("the HIP programs did not run")?;
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
    let result =
        Command::new(folder().join("programs/build.sh")).arg(&out).output().expect("the build script runs");
    assert!(
        result.status.success(),
        "the programs do not compile:\n{}",
        String::from_utf8_lossy(&result.stderr)
    );
    Some(out)
}

/// Returns the executables, NAME.O0 and NAME.O3.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let mut programs: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|level| level == "O0" || level == "O3"))
        .collect();
    programs.sort();
    assert!(programs.len() >= 2 * PROGRAMS_MIN, "{} executables", programs.len());
    programs
}

fn run(program: &Path, worker: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(HIPR);
    command.arg("run");
    if let Some(worker) = worker {
        command.args(["--worker", worker]);
    }
    // Some programs load code objects from the folder that they are in.
    command.arg("--").arg(program).args(arguments).current_dir(program.parent().expect("a folder"));
    command.output().expect("hipr runs")
}

/// Runs programs that compile kernels at run time. AMD's compiler needs the libraries of its folder, which the `hipr`
/// program must not load: only the tested program's loader is given that folder.
#[test]
fn programs_that_compile_kernels_pass() {
    let Some(folder) = built() else { return };
    let lab = toolchain("the programs that compile kernels did not run").expect("there, as they are built");
    let with_libraries = "exec \"$0\" --library-path \"$LD_LIBRARY_PATH:$1\" \"$2\"";
    for linked in ["O0.inside", "O3.inside", "O3.before", "O3.behind"] {
        let output = Command::new(HIPR)
            .args(["run", "--", "sh", "-c", with_libraries])
            // What cargo adds to it has an LLVM of its own.
            .env_remove("LD_LIBRARY_PATH")
            .arg(lab.join("lib64/ld-linux-x86-64.so.2"))
            .arg(lab.join("usr/lib/x86_64-linux-gnu"))
            .arg(folder.join(format!("runtime_compiler.{linked}")))
            .output()
            .expect("hipr runs");
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{linked}: {}\n{}", output.status, text.concat());
        assert!(text[0].starts_with("PASS runtime_compiler"), "{linked}: {}", text[0]);
    }
}

/// Runs every program, `jobs` at a time; fails with the output of each that failed.
fn run_all(programs: &[PathBuf], worker: Option<&str>, jobs: usize) {
    let next = AtomicUsize::new(0);
    let failures: Vec<String> = thread::scope(|scope| {
        let work = || {
            let mut failures = Vec::new();
            while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let output = run(program, worker, &[]);
                if !output.status.success() {
                    failures.push(format!(
                        "{}: {}\n{}{}",
                        program.file_name().unwrap_or_default().to_string_lossy(),
                        output.status,
                        String::from_utf8_lossy(&output.stdout),
                        String::from_utf8_lossy(&output.stderr)
                    ));
                }
            }
            failures
        };
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), programs.len(), failures.join("\n"));
}

#[test]
fn programs_pass_with_an_embedded_worker() {
    let Some(folder) = built() else { return };
    run_all(&programs(folder), None, 2);
}

/// What kernels print comes with what the worker sends in any case, over each transport and loop, isolated or not.
#[test]
fn kernels_print_over_each_transport_and_loop() {
    let Some(built) = built() else { return };
    let programs = ["device_printf.O0", "device_printf.O3"].map(|name| built.join(name));
    let folder = tempfile::tempdir().expect("a folder");
    let ways = ["tcp", "unix", "shm"].into_iter().flat_map(|transport| {
        [("mio", "none"), ("auto", "none"), ("auto", "process")].map(|way| (transport, way))
    });
    for (index, (transport, (io, isolation))) in ways.enumerate() {
        let address = match transport {
            "tcp" => "127.0.0.1:0".to_owned(),
            _ => format!("{transport}:{}", folder.path().join(index.to_string()).display()),
        };
        let options = ["--device", "sim", "--io", io, "--isolate", isolation, "--listen", &address];
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        run_all(&programs, Some(&worker.listens_at().to_string()), 2);
        assert!(worker.lives(), "{}", worker.log());
    }
}

/// A client that cannot be told what kernels print loses that, and its kernels go on.
#[test]
fn kernels_that_print_for_a_client_of_hipr_1_0_go_on() {
    let Some(built) = built() else { return };
    let mut worker = WorkerProcess::start(Path::new(HIPR), "sim");
    let run = |name: &str| {
        let mut command = Command::new(HIPR);
        command.args(["run", "--worker", &worker.address().to_string(), "--"]).arg(built.join(name));
        command.env("HIPR_EXTENSION", "off").output().expect("hipr runs")
    };
    let printed = run("device_printf.O3");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(text.contains("FAIL device_printf: ") && !text.contains("round"), "{text}");
    let heap = run("device_heap.O3");
    assert!(heap.status.success(), "{heap:?}");
    assert!(worker.lives());
}

/// Programs about memory that host and kernels have in common.
const OF_HOST_MEMORY: [&str; 4] = ["coherent", "host_memory", "mirrored_writes", "mirrored_lifetimes"];

#[test]
fn programs_with_host_memory_pass_over_each_transport_within_a_machine() {
    let Some(built) = built() else { return };
    let programs: Vec<PathBuf> = OF_HOST_MEMORY.iter().map(|name| built.join(format!("{name}.O3"))).collect();
    let folder = tempfile::tempdir().expect("a folder");
    for (index, (io, transport, isolate)) in [
        ("mio", "unix", "none"),
        ("mio", "shm", "none"),
        ("auto", "unix", "none"),
        ("auto", "shm", "none"),
        ("auto", "unix", "process"),
    ]
    .into_iter()
    .enumerate()
    {
        let listen = format!("{transport}:{}", folder.path().join(index.to_string()).display());
        let options = ["--device", "sim", "--io", io, "--isolate", isolate];
        let mut worker = WorkerProcess::start_at(Path::new(HIPR), &listen, &options);
        run_all(&programs, Some(&listen), 2);
        assert!(worker.lives());
    }
}

/// What both sides map can be written by a kernel until it is over: also a lazy synchronization waits for that.
#[test]
fn programs_with_host_memory_pass_with_lazy_synchronization() {
    let Some(built) = built() else { return };
    for name in OF_HOST_MEMORY {
        let program = built.join(format!("{name}.O3"));
        let output = Command::new(HIPR)
            .args(["run", "--lazy-sync", "--"])
            .arg(&program)
            .current_dir(built)
            .output()
            .expect("hipr runs");
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{name}: {}\n{}", output.status, text.concat());
        assert_eq!(text[0].contains("shared"), name == "coherent", "{name}: {}", text[0]);
    }
}

#[test]
fn a_program_says_whether_it_shares_memory_with_its_kernels() {
    let Some(built) = built() else { return };
    let program = built.join("coherent.O3");
    let compared = |command: &mut Command| {
        let output = command.arg("--").arg(&program).output().expect("hipr runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).contains("shared")
    };
    assert!(compared(Command::new(HIPR).arg("run")), "with a worker of its own");
    assert!(!compared(Command::new(HIPR).arg("run").env("HIPR_EXTENSION", "off")));
    let worker = WorkerProcess::start(Path::new(HIPR), "sim");
    assert!(
        !compared(Command::new(HIPR).args(["run", "--worker", &worker.address().to_string()])),
        "over TCP"
    );
}

#[test]
fn programs_pass_with_a_separate_worker() {
    let Some(folder) = built() else { return };
    let mut worker = WorkerProcess::start(Path::new(HIPR), "sim");
    run_all(&programs(folder), Some(&worker.address().to_string()), 2);
    assert!(worker.lives());
}

/// Runs all programs over a unix socket or shared memory.
fn run_all_at_a_path(kind: &str) {
    let Some(folder) = built() else { return };
    let socket = tempfile::tempdir().expect("a folder");
    let address = format!("{kind}:{}", socket.path().join("worker").display());
    let options = ["--device", "sim", "--listen", &address];
    let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
    run_all(&programs(folder), Some(&address), 2);
    assert!(worker.lives(), "{}", worker.log());
}

/// The program runs ahead of the worker, which has yet to clear what was freed: all of it together may not be more than the session may
/// have.
#[test]
fn pinned_memory_comes_and_goes_where_there_is_little() {
    let Some(folder) = built() else { return };
    let socket = tempfile::tempdir().expect("a folder");
    let address = format!("unix:{}", socket.path().join("worker").display());
    for max in ["1M", "3M"] {
        let options = ["--device", "sim", "--memory-max", max, "--listen", &address];
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        let output = run(&folder.join("pinned_churn.O3"), Some(&address), &["1048576", "500"]);
        assert!(output.status.success(), "{max}: {output:?}");
        assert!(worker.lives(), "{}", worker.log());
    }
}

#[test]
fn programs_pass_over_a_unix_socket() {
    run_all_at_a_path("unix");
}

#[test]
fn programs_pass_over_shared_memory() {
    run_all_at_a_path("shm");
}

/// The whole table of the order of streams, over each transport and each event loop; the tests above do a part of it.
#[test]
fn the_order_of_streams_is_kept_over_every_transport_and_loop() {
    let Some(folder) = built() else { return };
    let program = folder.join("stream_order.O3");
    let sockets = tempfile::tempdir().expect("a folder");
    // auto is io_uring where it can be had.
    for (kind, event_loop) in ["tcp", "unix", "shm"]
        .into_iter()
        .flat_map(|kind| ["mio", "auto"].map(|event_loop| (kind, event_loop)))
    {
        let address = match kind {
            "tcp" => "127.0.0.1:0".to_owned(),
            _ => format!("{kind}:{}", sockets.path().join(format!("{kind}.{event_loop}")).display()),
        };
        let options = ["--device", "sim", "--io", event_loop, "--listen", &address];
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        let output = run(&program, Some(&worker.listens_at().to_string()), &["all"]);
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success(), "{kind}, {event_loop}: {}\n{}", output.status, text.concat());
        assert!(worker.lives(), "{}", worker.log());
    }
}

/// Programs that see what kernels print on a stream that is not the program's where a worker has the HIP runtime: standard output is that of a
/// process for one session only, and standard error is the worker's log.
fn prints_elsewhere(program: &Path, isolation: &str) -> bool {
    let stem = program.file_stem().unwrap_or_default();
    stem == "device_assert" || isolation == "none" && stem == "device_printf"
}

/// Runs all programs through a chain: a worker on the device `hip` with hipr's own client library as its HIP runtime, and
/// behind it a worker with the emulated GPU.
fn run_all_through_a_chain(programs: &[PathBuf], isolation: &str, jobs: usize) {
    let mut programs = programs.to_vec();
    programs.retain(|program| !prints_elsewhere(program, isolation));
    let mut back = WorkerProcess::start(Path::new(HIPR), "sim");
    let mut front = WorkerProcess::start_in_front(Path::new(HIPR), &back, isolation);
    run_all(&programs, Some(&front.address().to_string()), jobs);
    assert!(front.lives() && back.lives(), "{}", front.log());
}

#[test]
fn programs_pass_through_a_chain() {
    let Some(folder) = built() else { return };
    run_all_through_a_chain(&programs(folder), "process", 2);
}

#[test]
fn optimized_programs_pass_through_a_chain_in_one_process() {
    let Some(folder) = built() else { return };
    let mut programs = programs(folder);
    programs.retain(|program| program.extension().is_some_and(|level| level == "O3"));
    // A HIP runtime reports a kernel's fault to whoever asks it next: in one process one program at a time.
    run_all_through_a_chain(&programs, "none", 1);
}
