//! The programs for two devices on AMD's runtime: linked to it, and over a worker that serves it.

use std::path::PathBuf;
use std::process::Command;

use hipr_tests::toolchain::toolchain;

use super::{GUARD_S, HIPR, Release, SKIPPED, System, Way, compiled, run_all, run_on_amds_runtime, serve};

/// Programs that launch graphs with kernels of two devices. AMD's runtime launches all these kernels on the stream's device
/// (docs/differences.md).
const ON_ONE_DEVICE: [&str; 2] = ["captured", "graph_nodes"];
/// The program that checks the order of synchronous copies between devices and later work. AMD's runtime does not keep that order for all of
/// them (docs/differences.md).
const NOT_WAITED_FOR: &str = "synchronous_between";

fn pairs(release: Release) -> Vec<PathBuf> {
    compiled("pairs", release, &["--pairs"])
}

fn run_linked(release: Release) {
    if toolchain(SKIPPED).is_none() {
        return;
    }
    let mut programs = pairs(release);
    let is_left_out = |name: &str| ON_ONE_DEVICE.contains(&name) || name == NOT_WAITED_FOR;
    programs.retain(|program| !program.file_stem().is_some_and(|name| is_left_out(&name.to_string_lossy())));
    run_on_amds_runtime(release, &programs);
}

fn run_over_a_worker(release: Release, isolation: &str) {
    run_over(release, isolation, Way::Worker, 1);
}

/// Runs the programs with two devices in all, of so many workers.
fn run_over(release: Release, isolation: &str, way: Way, worker_count: usize) {
    let Some(system) = System::new() else { return };
    let start = |_| {
        let mut command = system.hipr(release);
        command.env("HIPR_SIM_DEVICES", (2 / worker_count).to_string());
        serve(command, release, isolation, &[])
    };
    let mut workers: Vec<_> = (0..worker_count).map(start).collect();
    let addresses: Vec<_> = workers.iter().map(|worker| worker.address().to_string()).collect();
    let addresses = addresses.join(",");
    run_all(release, way, &pairs(release), |program| {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", GUARD_S, HIPR, "run", "--worker", &addresses, "--"]).arg(program);
        command.output().expect("timeout runs")
    });
    for worker in &mut workers {
        assert!(worker.lives(), "{}", worker.log());
    }
}

/// Both runtimes choose the same addresses for their memory.
#[test]
fn programs_for_two_devices_pass_over_two_workers_with_hip_6() {
    run_over(Release::Hip6, "process", Way::Workers, 2);
}

#[test]
fn programs_for_two_devices_pass_over_a_worker_with_hip_6_and_processes() {
    run_over_a_worker(Release::Hip6, "process");
}

#[test]
fn programs_for_two_devices_pass_over_a_worker_with_hip_6() {
    run_over_a_worker(Release::Hip6, "none");
}

#[test]
fn programs_for_two_devices_pass_over_a_worker_with_hip_7() {
    run_over_a_worker(Release::Hip7, "process");
}

#[test]
fn programs_for_two_devices_pass_on_hip_6() {
    run_linked(Release::Hip6);
}

#[test]
fn programs_for_two_devices_pass_on_hip_7() {
    run_linked(Release::Hip7);
}
