//! Runs `hipr worker --device hip` with AMD's own runtime on a machine without a GPU: it serves, and reports to everyone
//! that there is no device.

use hipr_proto::HipError;
use hipr_proto::op;
use hipr_rocm_tests::Rocm;
use hipr_tests::{WireClient, WorkerProcess, eventually};
use std::fs;
use std::path::Path;
use std::process::Command;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");

/// Starts a worker on each installed release of the runtime, with and without processes for sessions.
fn workers() -> Vec<(String, WorkerProcess)> {
    let mut workers = Vec::new();
    for rocm in Rocm::releases() {
        let library = rocm.hip.to_str().expect("a path in UTF-8");
        for how in ["none", "process"] {
            let command = rocm.command(Path::new(HIPR));
            // A process that a dynamic loader was told to start cannot start itself again.
            if how == "process" && command.get_program() != HIPR {
                continue;
            }
            let options = ["--device", "hip", "--hip-library", library, "--isolate", how];
            let worker = WorkerProcess::start_command(command, &options);
            workers.push((format!("{} --isolate {how}", rocm.release), worker));
        }
    }
    workers
}

#[test]
fn clients_are_told_that_there_is_no_device() {
    for (name, worker) in workers() {
        assert!(worker.log().contains("HIP runtime loaded"), "{name}:\n{}", worker.log());
        let mut client = WireClient::connect(worker.address());
        let none = Some(HipError::NO_DEVICE);
        assert_eq!(client.call(&op::GetDeviceCount {}).err(), none, "{name}");
        assert_eq!(client.call(&op::SetDevice { device_id: 0 }).err(), none, "{name}");
        assert_eq!(client.call(&op::Malloc { size: 64, flags: 0 }).err(), none, "{name}");
        assert_eq!(client.call(&op::StreamCreate { flags: 0, priority: 0 }).err(), none, "{name}");
        assert_eq!(client.call(&op::DeviceSynchronize {}).err(), none, "{name}");
        assert_eq!(client.call(&op::Ping {}), Ok(()), "{name}");
        let version = client.call(&op::RuntimeGetVersion {}).expect("a version").version;
        assert_eq!(version / 10_000_000, name[..1].parse::<i32>().expect("a release"), "{name}");
    }
}

#[test]
fn info_shows_a_runtime_without_devices() {
    for (name, worker) in workers() {
        let address = worker.address().to_string();
        let output = Command::new(HIPR).args(["info", "--worker", &address]).output().expect("hipr runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("devices     none"), "{name}: {text}");
    }
}

#[test]
fn the_supervisor_does_not_load_the_runtime() {
    for (name, worker) in workers().into_iter().filter(|(name, _)| name.ends_with("process")) {
        let has_runtime = |pid: u32| {
            fs::read_to_string(format!("/proc/{pid}/maps"))
                .expect("the process lives")
                .contains("libamdhip64")
        };
        let mut client = WireClient::connect(worker.address());
        assert_eq!(client.call(&op::Ping {}), Ok(()), "{name}");
        let children = worker.children();
        assert_eq!(children.len(), 1);
        assert!(has_runtime(children[0]) && !has_runtime(worker.pid()), "{name}");
        drop(client);
        eventually("the process ends in order", || worker.log().contains("exit code 0"));
    }
}

#[test]
fn auto_takes_the_emulated_gpu() {
    for rocm in Rocm::releases() {
        // The runtime is found by its usual names, where the loader looks.
        let command = rocm.command(Path::new(HIPR));
        let worker = WorkerProcess::start_command(command, &["--isolate", "none"]);
        let log = worker.log();
        assert!(
            log.contains("serving the emulated GPU: the HIP runtime found no GPU"),
            "{}: {log}",
            rocm.release
        );
        let mut client = WireClient::open(worker.address());
        assert_eq!(client.call(&op::GetDeviceCount {}).map(|reply| reply.count), Ok(1));
    }
}
