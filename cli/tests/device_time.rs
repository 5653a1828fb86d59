//! Tests how sessions that have processes of their own share the emulated GPU's time, with real processes.

use hipr_proto::op;
use hipr_tests::{Gpu, WorkerProcess, args};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Kernels of the emulated GPU's own tests.
static KERNELS: &[u8] = include_bytes!("../../gpu/sim/tests/data/kernels-O3.co");

fn worker() -> WorkerProcess {
    WorkerProcess::start_logged(Path::new(HIPR), &["--device", "sim", "--isolate", "process"])
}

/// Opens a session; returns it with its process.
fn session(worker: &WorkerProcess) -> (Gpu, Pid) {
    let before = worker.children();
    let gpu = Gpu::open(worker.address(), KERNELS);
    let new = worker.children().into_iter().find(|pid| !before.contains(pid)).expect("a process");
    (gpu, i32::try_from(new).ok().and_then(Pid::from_raw).expect("a process number"))
}

/// Queues grids that have the device for as long as the session lives, on streams of their own.
fn hog(gpu: &mut Gpu) {
    let (total, wide) = (gpu.zeroed::<u32>(1), gpu.zeroed::<u64>(1));
    for _ in 0..4 {
        let stream = gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
        gpu.launch_on(stream, "count", u32::MAX / 64, 64u32, 0, args![total, wide, 1u64]);
    }
    // On a stream that waits for none of these.
    let other = gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    while gpu.download_on(other, total) == [0] {}
}

/// Runs small kernels one after another; each of them has to get its turn.
fn small_kernels(gpu: &mut Gpu, count: u32) {
    let (total, wide) = (gpu.zeroed::<u32>(1), gpu.zeroed::<u64>(1));
    for done in 1..=count {
        gpu.launch("count", 1u32, 64u32, 0, args![total, wide, 1u64]);
        assert_eq!(gpu.synchronize(), Ok(()));
        assert_eq!(gpu.download(total), [64 * done]);
    }
}

#[test]
fn a_session_has_its_turns_beside_others_that_never_rest() {
    let worker = worker();
    let (mut first, _) = session(&worker);
    let (mut second, _) = session(&worker);
    let (mut victim, _) = session(&worker);
    hog(&mut first);
    hog(&mut second);
    small_kernels(&mut victim, 50);
}

/// What has the device when it stops does not keep it, and has it again when it goes on.
#[test]
fn a_process_that_is_stopped_or_killed_holds_up_nobody() {
    let worker = worker();
    let (mut stopped, stopped_pid) = session(&worker);
    let (mut killed, killed_pid) = session(&worker);
    let (mut victim, _) = session(&worker);
    hog(&mut stopped);
    hog(&mut killed);
    kill_process(stopped_pid, Signal::STOP).expect("the process is there");
    small_kernels(&mut victim, 20);
    kill_process(killed_pid, Signal::KILL).expect("the process is there");
    small_kernels(&mut victim, 20);
    kill_process(stopped_pid, Signal::CONT).expect("the process is there");
    let (mut late, _) = session(&worker);
    small_kernels(&mut late, 20);
    small_kernels(&mut victim, 20);
    assert_eq!(stopped.wire().call(&op::Ping {}), Ok(()), "it goes on");
}
