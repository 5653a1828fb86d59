//! Real HIP programs, compiled by hipcc, unmodified, under `hipr run`: with the embedded worker, with one in a process of its own,
//! and with one whose GPU is behind the C API of HIP. Without the compiler (`tests/toolchain/setup.sh`) these are skipped and say
//! so; where HIPR_REQUIRE_COMPILER is set they fail instead. `tests/tests/committed_kernels` runs their kernels everywhere.

use hipr_tests::WorkerProcess;
use hipr_tests::toolchain::{folder, toolchain};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// The contract of this suite: so many programs, each at two optimization levels.
const PROGRAMS_MIN: usize = 20;

/// The folder of executables, compiled once; None where there is no compiler.
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

/// The executables: NAME.O0 and NAME.O3.
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

fn run(program: &Path, worker: Option<&str>) -> Output {
    let mut command = Command::new(HIPR);
    command.arg("run");
    if let Some(worker) = worker {
        command.args(["--worker", worker]);
    }
    // Some programs load code objects from the folder that they are in.
    command.arg("--").arg(program).current_dir(program.parent().expect("a folder"));
    command.output().expect("hipr runs")
}

/// Programs that compile kernels while they run. AMD's compiler is in the folder of ours and needs that folder's libraries, which the
/// `hipr` program cannot use: so they are given to the program's own loader, behind the folder that `hipr run` makes.
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
                let output = run(program, worker);
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

#[test]
fn programs_pass_with_a_separate_worker() {
    let Some(folder) = built() else { return };
    let mut worker = WorkerProcess::start(Path::new(HIPR), "sim");
    run_all(&programs(folder), Some(&worker.address().to_string()), 2);
    assert!(worker.lives());
}

/// Over what only clients on the same machine can use.
fn run_all_at_a_path(kind: &str) {
    let Some(folder) = built() else { return };
    let socket = tempfile::tempdir().expect("a folder");
    let address = format!("{kind}:{}", socket.path().join("worker").display());
    let options = ["--device", "sim", "--listen", &address];
    let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
    run_all(&programs(folder), Some(&address), 2);
    assert!(worker.lives(), "{}", worker.log());
}

#[test]
fn programs_pass_over_a_unix_socket() {
    run_all_at_a_path("unix");
}

#[test]
fn programs_pass_over_shared_memory() {
    run_all_at_a_path("shm");
}

/// Through a chain: the program, a worker on the device `hip` that has loaded hipr's own client library as its HIP runtime, and the
/// worker with the emulated GPU behind that.
fn run_all_through_a_chain(programs: &[PathBuf], isolation: &str, jobs: usize) {
    let mut back = WorkerProcess::start(Path::new(HIPR), "sim");
    let mut front = WorkerProcess::start_in_front(Path::new(HIPR), &back, isolation);
    run_all(programs, Some(&front.address().to_string()), jobs);
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
