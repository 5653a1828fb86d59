//! Tests how sessions that have processes of their own share the emulated GPU's time, with real processes.

use hipr_proto::op;
use hipr_tests::{Buffer, Gpu, WorkerProcess, args, open_door};
use hipr_tls::SecretKey;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Kernels of the emulated GPU's own tests.
static KERNELS: &[u8] = include_bytes!("../../gpu/sim/tests/data/kernels-O3.co");
/// Number of threads that have run when shares are compared: many turns of whoever has fewest.
const LONG_THREADS: u64 = 4_000_000;

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

/// Grids that have the device for as long as their session lives.
struct Hog {
    /// Number of their threads that have run.
    total: Buffer<u32>,
    /// A stream that waits for none of them.
    other: u64,
}

impl Hog {
    fn done(&self, gpu: &mut Gpu) -> u64 {
        gpu.download_on(self.other, self.total)[0].into()
    }
}

/// Queues grids on streams of their own, and waits until one has begun.
fn hog(gpu: &mut Gpu) -> Hog {
    let (total, wide) = (gpu.zeroed::<u32>(1), gpu.zeroed::<u64>(1));
    let mut stream =
        || gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    let (streams, other) = ([(); 4].map(|()| stream()), stream());
    for stream in streams {
        gpu.launch_on(stream, "count", u32::MAX / 64, 64u32, 0, args![total, wide, 1u64]);
    }
    let hog = Hog { total, other };
    while hog.done(gpu) == 0 {}
    hog
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

/// What is written beside a key decides how much of the device its sessions get, in one process and in processes of their own.
#[test]
fn a_key_has_the_share_that_its_line_says() {
    const HEAVY: u64 = 8;
    for isolate in ["none", "process"] {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, key] = ["authorized", "worker-key"].map(|name| folder.path().join(name));
        let keys = [1, HEAVY].map(|weight| (SecretKey::generate().expect("a key"), weight));
        let line =
            |(key, weight): &(SecretKey, u64)| format!("{} tenant=t{weight} weight={weight}\n", key.public());
        fs::write(&file, keys.each_ref().map(line).concat()).expect("written");
        let [file, key] = [&file, &key].map(|path| path.to_str().expect("text"));
        let options = ["--device", "sim", "--isolate", isolate, "--authorized", file, "--key", key];
        let worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        let [mut light, mut heavy] = keys.map(|(key, _)| {
            let mut gpu = Gpu::open(open_door(worker.address(), &key).expect("a door"), KERNELS);
            let hog = hog(&mut gpu);
            move || hog.done(&mut gpu)
        });
        let before = [light(), heavy()];
        let done = loop {
            let done = [light() - before[0], heavy() - before[1]];
            if done[0] >= LONG_THREADS {
                break done;
            }
        };
        // With the same weight they have about the same. How far a share is off is the machine's business, which has other work.
        assert!(
            done[1] >= HEAVY / 3 * done[0],
            "{isolate}: {done:?} threads have run, for weights of 1 and {HEAVY}"
        );
    }
}
