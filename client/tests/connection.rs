//! Tests of the connection through its Rust API.

mod support;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hipr_client::{CallError, Connection, Extra, WorkerAddress};
use hipr_proto::op::{self, kind};
use hipr_proto::{HipError, Opcode};
use hipr_worker::{Address, Handle};
use support::{FakeWorker, Reaction, easy, nobody, scripted, scripted_at};

const TIMEOUT: Duration = Duration::from_secs(20);

fn connect(address: impl ToString) -> Connection {
    Connection::connect(&WorkerAddress::new(&address.to_string()), TIMEOUT).expect("a worker is there")
}

#[test]
fn an_address_without_a_worker_is_an_error() {
    let address = nobody();
    let error =
        Connection::connect(&WorkerAddress::new(&address.to_string()), TIMEOUT).expect_err("nobody is there");
    assert_eq!(error.address.to_string(), address.to_string());
    assert!(!error.reason.is_empty());
}

/// Runs a test over TCP, a Unix socket and shared memory.
fn over_everything(test: fn(&Handle)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("worker");
    for address in [Address::new("127.0.0.1:0"), Address::Unix(path.clone()), Address::Shm(path)] {
        let (worker, _script) = scripted_at(address);
        test(&worker);
    }
}

#[test]
fn requests_are_answered() {
    over_everything(requests_and_answers);
}

fn requests_and_answers(worker: &Handle) {
    let connection = connect(worker.local_addr());
    assert_eq!(connection.ask(&op::GetDeviceCount {}).map(|reply| reply.count), Ok(1));
    let dst = connection.ask(&op::Malloc { size: 1 << 20, flags: 0 }).expect("memory").device_ptr;
    let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 253) as u8).collect();
    let copy = op::Memcpy { dst, src: 0, size: 1 << 20, kind: kind::HOST_TO_DEVICE, stream: 0 };
    connection.tell_with(&copy, Extra { inline: &bytes, ..Extra::default() }).expect("sent");
    let mut back = vec![0; 1 << 20];
    let copy = op::Memcpy { dst: 0, src: dst, size: 1 << 20, kind: kind::DEVICE_TO_HOST, stream: 0 };
    connection.read(&copy, Extra::default(), &mut back).expect("read");
    assert_eq!(back, bytes);
}

#[test]
fn an_error_that_nobody_waited_for_comes_with_the_next_answer() {
    let (worker, _script) = scripted();
    let connection = connect(worker.local_addr());
    connection.tell(&op::Free { device_ptr: 0xdead_0000 }).expect("sent");
    assert_eq!(connection.ask(&op::DeviceSynchronize {}), Err(CallError::Hip(HipError::INVALID_VALUE)));
    assert_eq!(connection.ask(&op::DeviceSynchronize {}), Ok(()));
}

#[test]
fn many_answers_cost_one_round_trip() {
    let (worker, _script) = scripted();
    let connection = connect(worker.local_addr());
    let before = connection.stats();
    let requests: Vec<_> = (0..200).map(|size| op::Malloc { size: size % 7, flags: 0 }).collect();
    let answers = connection.ask_all(&requests, None).expect("answers");
    assert_eq!(answers.len(), 200);
    assert!(answers.iter().all(Result::is_ok));
    let after = connection.stats();
    assert_eq!(after.frames_sent - before.frames_sent, 200);
    assert_eq!(after.round_trips - before.round_trips, 1);
}

#[test]
fn unanswered_requests_leave_together() {
    let worker = FakeWorker::start(easy);
    let connection = connect(worker.address);
    let before = connection.stats();
    for _ in 0..20 {
        connection.tell(&op::Memset { dst: 1, value: 0, size: 1, stream: 0 }).expect("sent");
    }
    connection.ask(&op::Ping {}).expect("an answer");
    let after = connection.stats();
    assert_eq!(after.round_trips - before.round_trips, 1);
    // One write, or a few if the background flush came in between.
    assert!(after.writes - before.writes < 20, "{} writes", after.writes - before.writes);
    let all = worker.until(Opcode::PING);
    assert_eq!(all.iter().filter(|asked| asked.op == Opcode::MEMSET).count(), 20);
}

#[test]
fn a_client_that_leaves_has_said_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("worker");
    for address in [Address::new("127.0.0.1:0"), Address::Unix(path.clone()), Address::Shm(path)] {
        let (worker, script) = scripted_at(address);
        let connection = connect(worker.local_addr());
        let dst = connection.ask(&op::Malloc { size: 1 << 20, flags: 0 }).expect("memory").device_ptr;
        let before = connection.stats();
        let bytes = vec![7; 1 << 20];
        for _ in 0..20 {
            let copy = op::Memcpy { dst, src: 0, size: 1 << 20, kind: kind::HOST_TO_DEVICE, stream: 0 };
            connection.tell_with(&copy, Extra { inline: &bytes, ..Extra::default() }).expect("sent");
            connection.tell(&op::Memset { dst, value: 1, size: 1 << 20, stream: 0 }).expect("sent");
        }
        connection.leave(TIMEOUT);
        assert_eq!(connection.stats().round_trips, before.round_trips, "nobody waits");
        assert_eq!(connection.ask(&op::Ping {}), Err(CallError::Lost));
        assert_eq!(connection.flush(), Err(CallError::Lost));
        drop(connection);
        // The worker has read everything when the session is over.
        while script.live().contexts > 0 {
            thread::yield_now();
        }
        assert_eq!(script.calls("fill"), 20);
    }
}

#[test]
fn threads_share_a_connection() {
    over_everything(eight_threads);
}

fn eight_threads(worker: &Handle) {
    let connection = Arc::new(connect(worker.local_addr()));
    let threads: Vec<_> = (0..8u8)
        .map(|number| {
            let connection = Arc::clone(&connection);
            thread::spawn(move || {
                let size = 50_000 + u64::from(number);
                for round in 0..20u8 {
                    let dst = connection.ask(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
                    let value = i32::from(number) * 20 + i32::from(round);
                    connection.tell(&op::Memset { dst, value, size, stream: 0 }).expect("sent");
                    let copy = op::Memcpy { dst: 0, src: dst, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
                    let mut back = vec![0u8; size as usize];
                    connection.read(&copy, Extra::default(), &mut back).expect("read");
                    assert!(back.iter().all(|byte| *byte == value as u8), "thread {number}, round {round}");
                    connection.tell(&op::Free { device_ptr: dst }).expect("sent");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

#[test]
fn a_lost_connection_is_lost_for_all_and_for_ever() {
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::DEVICE_SYNCHRONIZE => Reaction::Close,
        _ => easy(asked),
    });
    let connection = Arc::new(connect(worker.address));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let connection = Arc::clone(&connection);
            thread::spawn(move || connection.ask(&op::DeviceSynchronize {}))
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), Err(CallError::Lost));
    }
    assert!(connection.is_lost());
    assert_eq!(connection.tell(&op::Memset { dst: 1, value: 0, size: 1, stream: 0 }), Err(CallError::Lost));
    assert_eq!(HipError::from(CallError::Lost), HipError::CONTEXT_IS_DESTROYED);
}

#[test]
fn a_dropped_connection_says_good_bye() {
    let worker = FakeWorker::start(easy);
    let connection = connect(worker.address);
    connection.tell(&op::Memset { dst: 1, value: 0, size: 1, stream: 0 }).expect("sent");
    drop(connection);
    let ops: Vec<_> = worker.until(Opcode::SHUTDOWN).into_iter().map(|asked| asked.op).collect();
    let opening = [Opcode::INIT, Opcode::OFFER, Opcode::STATIC, Opcode::MEM_LEASE];
    assert_eq!(ops, [&opening[..], &[Opcode::MEMSET, Opcode::SHUTDOWN]].concat());
}
