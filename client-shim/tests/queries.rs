//! Tests that a program which asks again and again whether something is done waits for the worker at most twice for each: once that it is
//! not, and once to fetch what was written to memory on both sides.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::ptr::null_mut;

use hipr_proto::{Features, Opcode};
use hipr_worker::device::script::Script;
use hipr_worker::{Config, Handle, Worker};
use support::hip::*;
use support::{is_program, program, scripted, tell_test};

const NOT_READY: i32 = 600;
const POLLS: usize = 1000;

/// Asks until something is done, as programs do that never wait.
fn poll(mut query: impl FnMut() -> i32) {
    loop {
        match query() {
            0 => return,
            code => assert_eq!(code, NOT_READY),
        }
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_polls() {
    if !is_program() {
        return;
    }
    let (mut ptr, mut events) = (null_mut(), [null_mut(); 4]);
    // SAFETY: C calls with good pointers and handles.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 64), 0);
        for event in &mut events {
            assert_eq!(hipEventCreateWithFlags(event, 2), 0);
        }
        assert_eq!(hipDeviceSynchronize(), 0);
        for _ in 0..3 {
            tell_test();
            for event in events {
                assert_eq!(hipMemcpyAsync(ptr, ptr.cast_const(), 32, D2D, null_mut()), 0);
                assert_eq!(hipEventRecord(event, null_mut()), 0);
            }
            for _ in 0..POLLS {
                assert!(events.iter().all(|event| hipEventQuery(*event) == NOT_READY));
                assert_eq!(hipStreamQuery(null_mut()), NOT_READY);
            }
            tell_test();
            for event in events {
                poll(|| hipEventQuery(event));
            }
            poll(|| hipStreamQuery(null_mut()));
            for event in events {
                (0..POLLS).for_each(|_| assert_eq!(hipEventQuery(event), 0));
            }
        }
    }
}

/// Lets a program go on when it says that it is ready.
fn take_turn(
    child: &mut Child,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    deed: impl FnOnce(),
) {
    assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")), "the program gets there");
    deed();
    child.stdin.as_mut().expect("piped").write_all(b"g").expect("the program reads");
}

/// Runs the program that polls with a worker whose null stream is held while it asks; returns its counter `round_trips`.
fn flights_of_polling(worker: &Handle, script: &Script) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("stats.json");
    let mut command = program("program_that_polls", worker.local_addr());
    let mut child = command.env("HIPR_STATS_FILE", &file).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    for _ in 0..3 {
        take_turn(&mut child, &mut lines, || script.hold(0, 0));
        take_turn(&mut child, &mut lines, || script.release(0, 0));
    }
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("1 passed"))), "the program ran");
    drop(lines);
    assert!(child.wait().expect("it ends").success());
    let line = std::fs::read_to_string(&file).expect("the file was written");
    let (_, rest) = line.split_once("\"round_trips\":").expect("the counter");
    rest.split([',', '}']).next().and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn polling_costs_one_flight_for_each_thing_that_is_not_done() {
    let (worker, script) = scripted();
    let flights = flights_of_polling(&worker, &script);
    let asked = [Opcode::EVENT_WATCH, Opcode::STREAM_WATCH].map(|op| worker.stats().requests_of(op));
    let old = [Opcode::EVENT_QUERY, Opcode::STREAM_QUERY].map(|op| worker.stats().requests_of(op));
    assert_eq!(old, [0, 0]);
    // All events come behind the first, and so does the stream. When that is done the next is asked for, if it is not done, too.
    let [events, streams] = asked;
    assert!((3..=3 * 4).contains(&events), "{events} questions about events");
    assert!(streams <= 3 * 2, "{streams} questions about the stream");
    // Opening, one synchronization, the good-bye.
    assert!(flights <= events + streams + 6, "{flights} round trips, {events} and {streams} questions");
}

#[test]
fn a_worker_that_does_not_tell_is_asked_each_time() {
    for lacking in [Features::WATCHES, Features::NOTIFICATIONS] {
        let script = Script::new();
        let mut config =
            Config { listen: "127.0.0.1:0".into(), ..Config::new(std::sync::Arc::new(script.clone())) };
        config.session.features = config.session.features.map(|all| all.without(lacking));
        let worker = Worker::bind(config).and_then(Worker::spawn).expect("a worker");
        flights_of_polling(&worker, &script);
        let asked = [Opcode::EVENT_QUERY, Opcode::STREAM_QUERY].map(|op| worker.stats().requests_of(op));
        assert!(asked[0] >= 3 * 4 * POLLS as u64 && asked[1] >= 3 * POLLS as u64, "{asked:?}");
    }
}

#[test]
#[ignore = "a program that other tests run"]
fn program_whose_kernel_fails_while_it_polls() {
    if !is_program() {
        return;
    }
    let mut ptr = null_mut();
    // SAFETY: C calls with good pointers and handles.
    unsafe {
        assert_eq!(hipMalloc(&mut ptr, 64), 0);
        assert_eq!(hipDeviceSynchronize(), 0);
        tell_test();
        assert_eq!(hipMemcpyAsync(ptr, ptr.cast_const(), 32, D2D, null_mut()), 0);
        assert_eq!(hipStreamQuery(null_mut()), NOT_READY);
        tell_test();
        poll(|| hipStreamQuery(null_mut()));
        assert_eq!(hipStreamQuery(null_mut()), 0, "a query does not tell of errors of the work");
        assert_eq!(hipStreamSynchronize(null_mut()), 700, "a wait does");
        assert_eq!(hipStreamSynchronize(null_mut()), 0, "once");
    }
}

#[test]
fn errors_of_the_work_come_with_a_wait() {
    let (worker, script) = scripted();
    let mut child =
        program("program_whose_kernel_fails_while_it_polls", worker.local_addr()).spawn().expect("it starts");
    let out = child.stdout.take().expect("piped");
    let mut lines = BufReader::new(out).lines();
    take_turn(&mut child, &mut lines, || script.hold(0, 0));
    take_turn(&mut child, &mut lines, || {
        script.surface(0, 0, hipr_proto::HipError::ILLEGAL_ADDRESS);
        script.release(0, 0);
    });
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("1 passed"))), "the program ran");
    drop(lines);
    assert!(child.wait().expect("it ends").success());
}
