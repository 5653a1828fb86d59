//! Tests of sessions in processes of their own: a session that crashes does not affect the others, and leaves nothing behind.

use hipr_client::{CallError, Connection, WorkerAddress};
use hipr_proto::op::{self, kind};
use hipr_proto::{Features, Header, HipError, Opcode};
use hipr_tests::faults::{HANG, LIBRARY, PLAN, Plan, Rig};
use hipr_tests::{
    WireClient, WorkerProcess, built_library, eventually, library, process_lives, soiled, start_worker,
};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");

fn worker_with(options: &[&str]) -> WorkerProcess {
    let isolated = [&["--device", "sim", "--isolate", "process"], options].concat();
    WorkerProcess::start_logged(Path::new(HIPR), &isolated)
}

fn worker() -> WorkerProcess {
    worker_with(&[])
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process number");
    kill_process(pid, signal).expect("the process is there");
}

/// Opens a session; returns it with the id of its process.
fn session(worker: &WorkerProcess) -> (WireClient, u32) {
    let before = worker.children();
    let client = WireClient::open(worker.address());
    let mut new = worker.children();
    new.retain(|pid| !before.contains(pid));
    assert_eq!(new.len(), 1, "one process for one session");
    (client, new[0])
}

/// Allocates memory and fills it with a byte.
fn filled(client: &mut WireClient, value: i32) -> u64 {
    let dst = client.call(&op::Malloc { size: 4096, flags: 0 }).expect("memory").device_ptr;
    client.call(&op::Memset { dst, value, size: 4096, stream: 0 }).expect("set");
    // Sessions of other processes may look at it.
    client.call(&op::DeviceSynchronize {}).expect("done");
    dst
}

fn read(client: &mut WireClient, src: u64) -> Vec<u8> {
    let read = op::Memcpy { dst: 0, src, size: 16, kind: kind::DEVICE_TO_HOST, stream: 0 };
    client.call_with(&read, &[], None).inline
}

#[test]
fn a_session_that_crashes_takes_nobody_along() {
    let mut worker = worker();
    let (mut other, other_pid) = session(&worker);
    let kept = filled(&mut other, 0x5a);
    // As the HIP runtime ends a process after a fault of the GPU, as a broken library does, as the system does for memory.
    for (signal, name) in [(Signal::ABORT, "SIGABRT"), (Signal::ILL, "SIGILL"), (Signal::KILL, "SIGKILL")] {
        let (mut client, pid) = session(&worker);
        filled(&mut client, 1);
        let peer = client.stream().local_addr().expect("connected").to_string();
        send(pid, signal);
        assert!(client.closed(), "{name}: its client sees the end");
        eventually("the process is gone, no zombie", || worker.children() == [other_pid]);
        eventually("its end is in the log", || {
            let log = worker.log();
            log.lines().any(|line| [name, "WARN", &peer].iter().all(|part| line.contains(part)))
        });
        assert_eq!(read(&mut other, kept), [0x5a; 16], "{name}: the other goes on undisturbed");
    }
    let (mut late, _) = session(&worker);
    assert_eq!(late.call(&op::Ping {}), Ok(()));
    assert!(worker.lives());
}

/// Uses hipr's own client library as HIP runtime, whose worker has the emulated GPU.
#[test]
fn with_a_hip_runtime_each_session_has_a_process_unless_that_is_switched_off() {
    let back = start_worker();
    let library = library();
    // What is a runtime here reaches its worker by a socket.
    let library = library.to_str().expect("a path in UTF-8");
    let hip = ["--device", "hip", "--hip-library", library, "--sandbox", "off"];
    for (options, processes) in [(&[][..], 2), (&["--isolate", "none"], 0)] {
        let mut command = Command::new(HIPR);
        command.env("HIPR_WORKER", back.address().to_string());
        let worker = WorkerProcess::start_command(command, &[&hip, options].concat());
        let mut first = WireClient::open(worker.address());
        let process = worker.children().first().copied();
        let mut second = WireClient::open(worker.address());
        let kept = filled(&mut second, 0x33);
        filled(&mut first, 0x44);
        assert_eq!(worker.children().len(), processes);
        if let Some(pid) = process {
            send(pid, Signal::ABORT);
            assert!(first.closed());
        }
        assert_eq!(read(&mut second, kept), [0x33; 16]);
    }
}

#[test]
fn a_crash_is_to_a_program_what_a_lost_worker_is() {
    let worker = worker();
    let address = WorkerAddress::new(&worker.address().to_string());
    let connection = Connection::connect(&address, Duration::from_secs(60)).expect("a session");
    assert_eq!(connection.device_count(), Ok(1));
    assert_eq!(connection.stats().round_trips, 1, "the session's process lists what does not change");
    connection.ask(&op::Ping {}).expect("an answer");
    send(worker.children()[0], Signal::ABORT);
    let lost = connection.ask(&op::Ping {}).expect_err("the session is gone");
    assert_eq!(HipError::from(lost), HipError::CONTEXT_IS_DESTROYED);
    Connection::connect(&address, Duration::from_secs(60)).expect("a new session");
}

#[test]
fn sessions_one_after_another_leave_nothing_behind() {
    let worker = worker();
    let files = worker.open_files();
    for value in 0..20 {
        let (mut client, _) = session(&worker);
        let ptr = filled(&mut client, value);
        assert_eq!(read(&mut client, ptr)[0], value as u8);
    }
    eventually("all processes are gone", || worker.children().is_empty());
    eventually("all descriptors are closed", || worker.open_files() <= files);
    eventually("all ends are in the log", || worker.log().matches("session ended").count() == 20);
    assert!(!worker.log().contains("WARN"), "{}", worker.log());
}

#[test]
fn a_process_starts_with_the_first_complete_message() {
    let worker = worker();
    let files = worker.open_files();
    let ping = Header::new(Opcode::PING, 1, 0, 0).to_bytes();
    let mut silent: Vec<_> = (0..30)
        .map(|said| {
            let mut client = WireClient::connect(worker.address());
            client
                .stream()
                .write_all(&ping[..said.min(ping.len() - 1)])
                .expect("a new connection takes bytes");
            client
        })
        .collect();
    // Accepted in order: when this one is served, those before it were looked at.
    let (served, pid) = session(&worker);
    assert_eq!(worker.children(), [pid], "who says nothing complete costs no process");
    // The rest of a message opens.
    let rest = &ping[23..];
    silent[29].stream().write_all(rest).expect("the connection stands");
    eventually("its process starts", || worker.children().len() == 2);
    // The end of the connection without it does not.
    silent[5].stream().shutdown(Shutdown::Write).expect("a connection");
    assert!(silent[5].closed());
    drop((served, silent));
    eventually("all is closed", || worker.children().is_empty() && worker.open_files() <= files);
}

#[test]
fn strangers_and_the_silent_are_sent_away_at_the_door() {
    let worker = worker();
    let mut stranger = WireClient::connect(worker.address());
    stranger
        .stream()
        .write_all(b"GET / HTTP/1.1\r\nHost: gpu\r\n\r\n")
        .expect("a new connection takes bytes");
    let mut silent = WireClient::connect(worker.address());
    assert!(stranger.closed());
    assert!(silent.closed(), "after the time for a first message");
    worker.says("protocol error");
    worker.says("no first message");
    assert!(!worker.log().contains("session started"), "{}", worker.log());
}

#[test]
fn many_that_are_silent_do_not_keep_others_out() {
    let worker = worker();
    let mut silent: Vec<_> = (0..300).map(|_| WireClient::connect(worker.address())).collect();
    assert_eq!(WireClient::open(worker.address()).call(&op::Ping {}), Ok(()));
    assert!(silent[0].closed(), "the one that has been silent for the longest goes first");
    let too_many = || worker.log().matches("too many connections without a first message").count();
    eventually("as many went as were too many", || too_many() == 300 + 1 - 256);
}

#[test]
fn a_session_more_than_there_may_be_is_refused() {
    let worker = worker_with(&["--sessions-max", "2"]);
    let (first, pid) = session(&worker);
    let (mut second, _) = session(&worker);
    let mut third = WireClient::connect(worker.address());
    third.forget(&op::Init {});
    assert!(third.closed());
    worker.says("too many sessions");
    drop(first);
    eventually("the first is over", || !worker.children().contains(&pid));
    assert_eq!(WireClient::open(worker.address()).call(&op::Ping {}), Ok(()));
    assert_eq!(second.call(&op::Ping {}), Ok(()));
}

#[test]
fn one_address_has_so_many_sessions_and_no_more() {
    let worker = worker_with(&["--sessions-per-address-max", "1"]);
    let (first, pid) = session(&worker);
    let mut second = WireClient::connect(worker.address());
    second.forget(&op::Init {});
    assert!(second.closed());
    worker.says("too many sessions of one address");
    drop(first);
    eventually("the first is over", || !worker.children().contains(&pid));
    assert_eq!(WireClient::open(worker.address()).call(&op::Ping {}), Ok(()));
}

#[test]
fn a_session_that_is_idle_ends() {
    let worker = worker_with(&["--idle-timeout", "1"]);
    let (mut idle, pid) = session(&worker);
    assert!(idle.closed());
    eventually("its process has ended", || !worker.children().contains(&pid));
    worker.says("idle for too long");
}

/// Returns the sockets that a process has open.
fn sockets(pid: u32) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process lives").flatten();
    let names = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    names.map(|name| name.display().to_string()).filter(|name| name.starts_with("socket:")).collect()
}

#[test]
fn a_session_has_no_descriptor_of_another() {
    let worker = worker();
    let (_first, a) = session(&worker);
    let (_second, b) = session(&worker);
    let (supervisor, a, b) = (sockets(worker.pid()), sockets(a), sockets(b));
    assert!(!supervisor.is_empty() && !a.is_empty() && !b.is_empty());
    assert!(a.is_disjoint(&supervisor) && b.is_disjoint(&supervisor) && a.is_disjoint(&b));
}

#[test]
fn a_signal_ends_the_worker_and_all_sessions() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut worker = worker();
        let mut sessions: Vec<_> = (0..3).map(|_| session(&worker)).collect();
        let mut silent = WireClient::connect(worker.address());
        send(worker.pid(), signal);
        assert_eq!(worker.wait().code(), Some(0), "{signal:?}: in order");
        assert!(sessions.iter_mut().all(|(client, _)| client.closed()) && silent.closed());
        assert!(sessions.iter().all(|(_, pid)| !process_lives(*pid)));
        let log = worker.log();
        assert_eq!(log.matches("exit code 0").count(), 3, "{log}");
    }
}

#[test]
fn a_second_signal_ends_sessions_that_do_not_end_themselves() {
    let mut worker = worker();
    let (mut client, pid) = session(&worker);
    // As one that hangs in a driver.
    send(pid, Signal::STOP);
    send(worker.pid(), Signal::TERM);
    eventually("the first is seen", || worker.log().contains("worker stopping"));
    send(worker.pid(), Signal::TERM);
    assert_eq!(worker.wait().code(), Some(0));
    assert!(client.closed() && !process_lives(pid));
    assert!(worker.log().contains("killing a session"), "{}", worker.log());
}

#[test]
fn sessions_do_not_outlive_the_supervisor() {
    let mut worker = worker();
    let (mut client, pid) = session(&worker);
    worker.kill();
    assert!(client.closed());
    eventually("its process ends", || !process_lives(pid));
}

#[test]
fn info_works_and_a_session_has_an_emulated_gpu_of_its_own() {
    let worker = worker();
    let address = worker.address().to_string();
    let output = Command::new(HIPR).args(["info", "--worker", &address]).output().expect("hipr runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("MI300X"), "{text}");
    let mut a = WireClient::open(worker.address());
    let free = |client: &mut WireClient| client.call(&op::MemGetInfo {}).expect("information").free_bytes;
    let before = free(&mut a);
    filled(&mut WireClient::open(worker.address()), 1);
    assert_eq!(free(&mut a), before);
}

#[test]
fn the_end_of_work_is_told() {
    let worker = worker();
    let address = WorkerAddress::new(&worker.address().to_string());
    let wanted = Features::NOTIFICATIONS.union(Features::WATCHES);
    let connection =
        Connection::connect_offering(&address, Duration::from_secs(20), Some(wanted)).expect("a worker");
    assert_eq!(connection.features(), wanted);
    let (sender, told) = std::sync::mpsc::channel();
    connection.on_watch_over(move |number, error| {
        // The test may be over.
        let _ = sender.send((number, error));
    });
    const SIZE: u64 = 64 << 20;
    let dst = connection.ask(&op::Malloc { size: SIZE, flags: 0 }).expect("memory").device_ptr;
    let mut number = 0;
    loop {
        for value in 0..8 {
            let set = op::Memset { dst, value, size: SIZE, stream: 0 };
            connection.tell(&op::MemsetAsync(set)).expect("a connection");
        }
        number += 1;
        match connection.ask(&op::StreamWatch { stream: 0, number }) {
            Ok(()) => {}
            Err(CallError::Hip(HipError::NOT_READY)) => break,
            Err(other) => panic!("{other:?}"),
        }
    }
    // It is told without being asked.
    eventually("the end of the work is told", || {
        connection.hear_arrived();
        told.try_recv() == Ok((number, None))
    });
    assert_eq!(connection.ask(&op::StreamQuery { stream: 0 }), Ok(()));
}

/// Shares memory and events between two sessions, through two processes and the C API.
#[test]
fn memory_and_events_are_shared_between_processes() {
    const INTERPROCESS: u32 = 2 | 4;
    let back = WorkerProcess::start(Path::new(HIPR), "sim");
    let worker = WorkerProcess::start_in_front(Path::new(HIPR), &back, "process");
    let (mut lender, lender_pid) = session(&worker);
    let (mut borrower, _) = session(&worker);
    let ptr = filled(&mut lender, 0x5a);
    let handle = lender.call(&op::IpcGetMemHandle { device_ptr: ptr }).expect("a handle").handle;
    let again = lender.call(&op::IpcGetMemHandle { device_ptr: ptr }).expect("a handle").handle;
    assert_eq!(handle, again);
    let own = lender.call(&op::IpcOpenMemHandle { handle, flags: 1 });
    assert_eq!(own.map(drop), Err(HipError::INVALID_CONTEXT), "not in the process that has it");
    let open = op::IpcOpenMemHandle { handle, flags: 1 };
    let there = borrower.call(&open).expect("the other's memory").device_ptr;
    assert_eq!(read(&mut borrower, there), [0x5a; 16]);
    assert_eq!(borrower.call(&op::MemPtrGetInfo { ptr: there }).expect("known").size, 4096);

    let event = lender.call(&op::EventCreateWithFlags { flags: INTERPROCESS }).expect("an event").event;
    let shared = lender.call(&op::IpcGetEventHandle { event }).expect("a handle").handle;
    let waited = borrower.call(&op::IpcOpenEventHandle { handle: shared }).expect("the other's event").event;
    lender.forget(&op::Memset { dst: ptr, value: 0x77, size: 4096, stream: 0 });
    lender.call(&op::EventRecord { event, stream: 0 }).expect("recorded");
    borrower.call(&op::EventSynchronize { event: waited }).expect("passed");
    assert_eq!(read(&mut borrower, there), [0x77; 16]);

    // A handle is for who was given it: what is like it is none, and memory is no event.
    let mut other = handle;
    other[63] ^= 1;
    let guessed = borrower.call(&op::IpcOpenMemHandle { handle: other, flags: 0 });
    assert_eq!(guessed.map(drop), Err(HipError::INVALID_VALUE));
    let mixed = borrower.call(&op::IpcOpenEventHandle { handle });
    assert_eq!(mixed.map(drop), Err(HipError::INVALID_VALUE));

    // It is not the borrower's to free or to lend, but to close.
    let free = borrower.call(&op::Free { device_ptr: there });
    assert_eq!(free, Err(HipError::INVALID_VALUE));
    let lent = borrower.call(&op::IpcGetMemHandle { device_ptr: there });
    assert_eq!(lent.map(drop), Err(HipError::INVALID_VALUE));
    borrower.call(&op::IpcCloseMemHandle { device_ptr: there }).expect("closed");
    let gone = op::Memcpy { dst: 0, src: there, size: 16, kind: kind::DEVICE_TO_HOST, stream: 0 };
    assert_eq!(borrower.call_with(&gone, &[], None).result, Err(HipError::INVALID_VALUE));
    assert_eq!(read(&mut lender, ptr), [0x77; 16], "its maker has it");
    let there = borrower.call(&open).expect("open again").device_ptr;
    borrower.call(&op::IpcCloseMemHandle { device_ptr: there }).expect("closed");

    // When its maker crashes, nothing of it can be found any more.
    send(lender_pid, Signal::KILL);
    assert!(lender.closed());
    eventually("the handle is void", || borrower.call(&open).map(drop) == Err(HipError::INVALID_VALUE));
    assert_eq!(borrower.call(&op::Ping {}), Ok(()));
}

/// Makes the runtime hang while it releases something.
#[test]
fn a_process_that_hangs_in_releasing_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = Plan { function: "hipFree".into(), call: 1, error: HANG, spared: 0 };
    fs::write(folder.path().join("plan"), plan.text()).expect("the plan is written");
    let back = start_worker();
    let mut command = Command::new(HIPR);
    command.env("HIPR_WORKER", back.address().to_string());
    command.env(LIBRARY, library()).env(PLAN, folder.path().join("plan"));
    let runtime = built_library("libfaulty_hip.so");
    let runtime = runtime.to_str().expect("a path in UTF-8");
    let options =
        ["--device", "hip", "--hip-library", runtime, "--sandbox", "off", "--release-timeout-ms", "200"];
    let mut worker = WorkerProcess::start_command(command, &options);
    let (mut other, other_pid) = session(&worker);
    let (mut client, _) = session(&worker);
    filled(&mut client, 1);
    drop(client);
    eventually("the process is gone", || worker.children() == [other_pid]);
    worker.says("killing the session process: releasing its resources takes too long");
    worker.says("SIGKILL");
    assert_eq!(other.call(&op::Ping {}), Ok(()));
    assert!(worker.lives());
}

#[test]
fn new_memory_has_nothing_of_another_session() {
    for (isolation, is_cleared) in [("none", true), ("process", false)] {
        let front = |runtime: &Path| {
            let mut command = Command::new(HIPR);
            command.args(["worker", "--listen", "127.0.0.1:0", "--device", "hip", "--sandbox", "off"]);
            command.args(["--isolate", isolation, "--hip-library"]).arg(runtime);
            command
        };
        soiled::check(&Rig::new(&front), is_cleared);
    }
}
