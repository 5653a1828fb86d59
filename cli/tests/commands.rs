//! Tests the `hipr` program's exit codes, messages and output.

use hipr_tests::WorkerProcess;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");

fn hipr(args: &[&str]) -> Output {
    Command::new(HIPR).args(args).env_remove("HIPR_WORKER").output().expect("hipr runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns an address on which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").to_string()
}

#[test]
fn the_demo_computes_right_results() {
    let output = hipr(&[]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    for word in ["MI300X", "emulated", "saxpy", "matmul", "round trips", "max error"] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let worker = WorkerProcess::start(Path::new(HIPR), "sim");
    let address = worker.address().to_string();
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/kernels.co");
    let commands: [&[&str]; 4] = [
        &["info", "--worker", &address],
        &["info", "--worker", &address, "--json"],
        &["isa-coverage", kernels],
        &["demo"],
    ];
    for args in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(HIPR).args(args).stdout(writer).output().expect("hipr runs");
        assert!(output.status.success(), "{args:?}: {}", output.status);
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn without_slurm_a_job_cannot_be_had() {
    // A shell, and nothing else.
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("sh")).expect("a link");
    for (options, expected) in [
        ("--gres=gpu:1", "there is no srun on this machine"),
        ("--comment=\"a", "--slurm --comment=\"a: there is a quotation mark without its other one"),
    ] {
        let output = Command::new(HIPR)
            .args(["run", "--slurm", options, "--", "true"])
            .env("PATH", folder.path())
            .output()
            .expect("hipr runs");
        assert_eq!(output.status.code(), Some(1), "{options}");
        assert!(stderr(&output).contains(expected), "{options}: {}", stderr(&output));
    }
    let output = hipr(&["run", "--slurm", "--gres=gpu:1", "--worker", "127.0.0.1:1", "--", "true"]);
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
}

#[test]
fn the_exit_code_is_the_programs_own() {
    for code in [0, 1, 7, 255] {
        let output = hipr(&["run", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
    }
    let output = hipr(&["run", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(output.status.code(), Some(128 + 15), "ended by a signal, as shells say it");
}

#[test]
fn the_program_finds_the_library_and_the_worker() {
    let script = "for n in .so .so.5 .so.6 .so.7; do test -e ${LD_LIBRARY_PATH%%:*}/libamdhip64$n || exit 9; done; \
                  echo $HIPR_WORKER; echo \"$1\"";
    let output = hipr(&["run", "--worker", "127.0.0.1:7", "--", "sh", "-c", script, "sh", "--an-option"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "127.0.0.1:7\n--an-option\n", "arguments reach the program as they are");
}

#[test]
fn users_mistakes_get_one_clear_line() {
    let address = nobody();
    for (args, part) in [
        (vec!["run", "--", "/nonexistent/program"], "/nonexistent/program"),
        (vec!["info", "--worker", &address], address.as_str()),
        (vec!["worker", "--device", "toaster"], "toaster"),
        (vec!["worker", "--listen", "unix:/nowhere/socket"], "/nowhere/socket"),
        (vec!["info", "--worker", "unix:/nowhere/socket"], "/nowhere/socket"),
        (vec!["worker", "--io", "steam"], "steam"),
        (vec!["worker", "--dispatch", "somewhere"], "somewhere"),
    ] {
        let output = hipr(&args);
        let text = stderr(&output);
        assert!(!output.status.success(), "{args:?}");
        assert!(text.contains(part), "{args:?} names what is wrong: {text}");
        assert!(!text.contains("panicked") && !text.contains("backtrace"), "{args:?}: {text}");
    }
}

#[test]
fn a_taken_port_is_said() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let output = hipr(&["worker", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&address), "{}", stderr(&output));
}

#[test]
fn a_socket_in_the_file_system_serves_and_is_left_to_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("worker");
    for (kind, isolation) in [("unix", "none"), ("unix", "process"), ("shm", "none"), ("shm", "process")] {
        let address = format!("{kind}:{}", path.display());
        let options = ["--device", "sim", "--isolate", isolation, "--listen", &address];
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        assert_eq!(worker.listens_at().to_string(), address);
        let info = hipr(&["info", "--worker", &address]);
        assert!(stdout(&info).contains("MI300X"), "{address}, {isolation}: {}", stderr(&info));
        let second = hipr(&["worker", "--device", "null", "--listen", &address]);
        assert_eq!(second.status.code(), Some(1));
        assert!(stderr(&second).contains(&address), "{}", stderr(&second));
        // The file of a worker that was killed is no obstacle for the next.
        worker.kill();
        assert!(path.exists());
        let mut worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        assert!(hipr(&["info", "--worker", &address]).status.success());
        worker.terminate();
        worker.wait();
        assert!(!path.exists(), "a worker that ends in order takes its socket along");
    }
}

#[test]
fn info_tells_what_the_worker_has() {
    let worker = WorkerProcess::start(Path::new(HIPR), "sim");
    let address = worker.address().to_string();
    let text = stdout(&hipr(&["info", "--worker", &address]));
    assert!(text.contains("MI300X") && text.contains("emulated") && text.contains("gfx942"), "{text}");
    let json = hipr(&["info", "--worker", &address, "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["protocol"], "HIPR 1.0");
    assert_eq!(report["devices"][0]["wavefront_size"], 64);
    assert!(report["devices"][0]["total_memory_bytes"].as_u64() > Some(1 << 30));
    assert!(report["round_trip_us"].as_f64() > Some(0.0));
}

#[test]
fn what_kernels_need_is_said() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = |file: &str| repository.join(file).display().to_string();
    let output = hipr(&["isa-coverage", &path("cli/demo/kernels.co")]);
    assert!(output.status.success(), "{}", stdout(&output));
    assert!(stdout(&output).contains("16 of 16 kernels complete, in 2 code objects"), "{}", stdout(&output));
    // A kernel that has a word which is no instruction.
    let output = hipr(&["isa-coverage", &path("gpu/sim/tests/data/kernels-O3.co")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("refuse: 0xbfff0000, 1 times"), "{}", stdout(&output));
    let output = hipr(&["isa-coverage", "--json", &path("README.md")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("\"error\": \"neither an ELF file"), "{}", stdout(&output));
    let output = hipr(&["demo", "--sim-arch", "gfx90a"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("MI210"), "{}", stdout(&output));
    let output = hipr(&["demo", "--sim-arch", "gfx1100"]);
    assert!(stderr(&output).contains("gfx90a and gfx942 can"), "{}", stderr(&output));
}
