//! Sessions of a worker that serves AMD's runtime on the emulated GPUs: what each operation answers, what a kernel that faults ends, and
//! what sessions share.

use super::{Release, System, serve};
use hipr_proto::op::{self, kind};
use hipr_proto::{HipError, Opcode, ReplyMode};
use hipr_tests::suite::{self, Failure};
use hipr_tests::{Gpu, WireClient, WorkerProcess, args, eventually, start_worker_with_cache};
use std::collections::BTreeSet;

/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../../demo/kernels.co");
/// Has `spin`, which ends when another than 0 is written.
static ENDLESS: &[u8] = include_bytes!("../bounds/kernels.co");
/// How AMD's runtime names a kernel's access to memory that is not there.
const FAULT: &str = "HSA_STATUS_ERROR_MEMORY_FAULT";

/// Operations that AMD's runtime 6.4.3 answers otherwise than the emulated GPU, and why.
const OTHERWISE: &[(Opcode, &str)] = &[
    (Opcode::STATIC, "it has the next two in it"),
    (Opcode::DEVICE_GET_UUID, "each runtime makes its own of what the device has"),
    (Opcode::FUNC_GET_ATTRIBUTES, "the runtime counts registers and sizes otherwise"),
    (Opcode::IPC_OPEN_EVENT_HANDLE, "the runtime refuses an event of the same process"),
    (Opcode::EVENT_SYNCHRONIZE, "of the event that was not opened"),
    (Opcode::STREAM_WAIT_EVENT, "of the event that was not opened"),
    (Opcode::EVENT_QUERY, "of the event that was not opened"),
    (Opcode::EVENT_DESTROY, "of the event that was not opened"),
    (Opcode::DEVICE_SYNCHRONIZE, "a memory fault ends the process"),
];
/// Those that the sandbox of a session's process refuses, as the emulated GPUs share memory by a socket.
const WITHOUT_SOCKETS: [Opcode; 2] = [Opcode::IPC_GET_MEM_HANDLE, Opcode::IPC_OPEN_MEM_HANDLE];

fn worker(system: &System, release: Release, isolation: &str, more: &[&str]) -> WorkerProcess {
    serve(system.hipr(release), release, isolation, more)
}

/// Runs every operation, of which the last one is a memory fault.
fn operations(isolation: &str) {
    let Some(system) = System::new() else { return };
    let expected = suite::run(start_worker_with_cache().address());
    let mut worker = worker(&system, Release::Hip6, isolation, &["--cache", "256M"]);
    let outcomes = suite::run(worker.address());
    let differ = expected.iter().zip(&outcomes).filter(|(expected, outcome)| expected != outcome);
    let (mut otherwise, mut text) = (BTreeSet::new(), String::new());
    for (expected, outcome) in differ {
        otherwise.insert(outcome.op);
        text += &format!("{}: {:?} instead of {:?}\n", outcome.op, outcome.result, expected.result);
    }
    let mut listed: BTreeSet<Opcode> = OTHERWISE.iter().map(|(op, _)| *op).collect();
    if isolation == "process" {
        listed.extend(WITHOUT_SOCKETS);
    }
    assert_eq!(otherwise, listed, "{text}{}", worker.log());
    let last = outcomes.last().expect("outcomes");
    assert_eq!((last.op, &last.result), (Opcode::DEVICE_SYNCHRONIZE, &Err(Failure::Lost)), "the fault");
    if isolation == "process" {
        assert!(worker.lives(), "{}", worker.log());
    } else {
        eventually("the runtime ends the process of all sessions", || !worker.lives());
        assert!(worker.log().contains(FAULT), "{}", worker.log());
    }
}

#[test]
fn operations_in_a_process_of_their_own_answer_as_the_emulated_gpu_does() {
    operations("process");
}

#[test]
fn operations_in_the_process_of_all_answer_as_the_emulated_gpu_does() {
    operations("none");
}

fn filled(client: &mut WireClient, value: i32) -> u64 {
    let dst = client.call(&op::Malloc { size: 4096, flags: 0 }).expect("memory").device_ptr;
    client.call(&op::Memset { dst, value, size: 4096, stream: 0 }).expect("set");
    dst
}

fn read(client: &mut WireClient, src: u64) -> Vec<u8> {
    let read = op::Memcpy { dst: 0, src, size: 16, kind: kind::DEVICE_TO_HOST, stream: 0 };
    client.call_with(&read, &[], None).inline
}

/// Two sessions, one after the other, have a kernel that reads where nothing is; a third one is there all the time.
fn faults(release: Release) {
    let Some(system) = System::new() else { return };
    let mut worker = worker(&system, release, "process", &["--sandbox", "required"]);
    let mut other = WireClient::open(worker.address());
    let kept = filled(&mut other, 0x5a);
    for round in 1..=2 {
        let mut gpu = Gpu::open(worker.address(), KERNELS);
        let y = gpu.upload(&[1.0f32; 64]);
        gpu.launch("saxpy", 1, 64, 0, args![2.0f32, 0x1234_5678_9000u64, y, 64u32]);
        gpu.wire().send(&op::DeviceSynchronize {}, &[], None, ReplyMode::Always);
        let told = gpu.wire().try_wait::<op::DeviceSynchronize>().ok().map(|reply| reply.result.map(drop));
        // 6.4.3 aborts; 7.2.4 lives on, and says what it was.
        let expected = (release == Release::Hip7).then_some(Err(HipError(700)));
        assert_eq!(told, expected, "{}", worker.log());
        drop(gpu);
        // 7.2.4 has told the client before it logs anything itself, and the session may have ended by then.
        let is_reason = |line: &&str| match release {
            Release::Hip6 => line.contains(FAULT) && line.contains("end=\"SIGABRT\" last_words="),
            Release::Hip7 => line.contains("kernel failed fault=illegal load: no memory at 0x123456789000"),
        };
        eventually("the log has the reason", || worker.log().lines().filter(is_reason).count() >= round);
        assert_eq!(read(&mut other, kept), [0x5a; 16], "another session goes on");
    }
    assert!(worker.lives());
}

#[test]
fn a_kernel_that_faults_ends_its_session_only_on_hip_6() {
    faults(Release::Hip6);
}

#[test]
fn a_kernel_that_faults_is_told_to_its_session_only_on_hip_7() {
    faults(Release::Hip7);
}

/// When its process ends, AMD's runtime waits for the kernels on the GPU; the worker does not.
#[test]
fn a_worker_ends_although_a_kernel_does_not() {
    let Some(system) = System::new() else { return };
    for isolation in ["none", "process"] {
        let mut worker = worker(&system, Release::Hip6, isolation, &[]);
        let mut gpu = Gpu::open(worker.address(), ENDLESS);
        let stop = gpu.zeroed::<u32>(64);
        gpu.launch("spin", 1, 64, 0, args![stop]);
        gpu.wire().call(&op::GetDevice {}).expect("the kernel does not keep the session from answering");
        worker.terminate();
        eventually("the worker ends", || !worker.lives());
        assert!(worker.wait().success(), "{}", worker.log());
    }
}

#[test]
fn sessions_share_memory_unless_the_sandbox_forbids_sockets() {
    let Some(system) = System::new() else { return };
    for release in [Release::Hip6, Release::Hip7] {
        for sandbox in ["off", "required"] {
            let worker = worker(&system, release, "process", &["--sandbox", sandbox]);
            let [mut lender, mut borrower] = [(); 2].map(|()| WireClient::open(worker.address()));
            let device_ptr = filled(&mut lender, 0x5a);
            let handle = lender.call(&op::IpcGetMemHandle { device_ptr }).map(|reply| reply.handle);
            if sandbox == "required" {
                assert_eq!(handle, Err(HipError::INVALID_VALUE));
                eventually("the log says why", || worker.log().contains("the system has no socket for it"));
                continue;
            }
            let open = op::IpcOpenMemHandle { handle: handle.expect("a handle"), flags: 1 };
            let there = borrower.call(&open).expect("the other's memory").device_ptr;
            assert_eq!(read(&mut borrower, there), [0x5a; 16]);
        }
    }
}
