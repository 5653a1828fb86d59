//! Tests that a wait asks the worker when a request without a reply may have failed: for every operation of the table, and every kind of
//! wait and query.

mod support;

use std::ptr::null_mut;

use hipr_proto::Opcode;
use hipr_proto::op::{ForOp, Info, OPS, Op, ReplyRule, TailLen, with_op};
use support::hip::*;
use support::{FakeWorker, Reaction, easy, is_program, log_lines, program, run};

/// Tells the worker the request of an operation whose fields are all zero.
struct Tell;

impl ForOp for Tell {
    type Out = i32;

    fn call<O: Op>(self) -> i32 {
        let op = O::ZERO;
        let (TailLen::Exact(0) | TailLen::AtLeast(0) | TailLen::AtMost(_)) = op.tail_len() else { return -1 };
        let session = amdhip64::process::session().expect("a session");
        session.worker().tell(&op).map_or_else(|error| error.0, |()| 0)
    }
}

fn round_trips() -> u64 {
    amdhip64::process::session().expect("a session").worker().stats().round_trips
}

#[test]
#[ignore = "a program that other tests run"]
fn program_that_waits_after_every_request() {
    if !is_program() {
        return;
    }
    let (mut stream, mut event) = (null_mut(), null_mut());
    // SAFETY: C calls with good pointers.
    unsafe {
        assert_eq!(hipStreamCreateWithFlags(&mut stream, 1), 0);
        assert_eq!(hipEventCreate(&mut event), 0);
        assert_eq!(hipEventRecord(event, stream), 0);
        assert_eq!(hipDeviceSynchronize(), 0);
    }
    // SAFETY: C calls with handles that were created above.
    let waits: [(&str, &dyn Fn() -> i32); 7] = unsafe {
        [
            ("hipDeviceSynchronize", &|| hipDeviceSynchronize()),
            ("hipStreamSynchronize of the null stream", &|| hipStreamSynchronize(null_mut())),
            ("hipStreamSynchronize", &|| hipStreamSynchronize(stream)),
            ("hipStreamQuery of the null stream", &|| hipStreamQuery(null_mut())),
            ("hipStreamQuery", &|| hipStreamQuery(stream)),
            ("hipEventSynchronize", &|| hipEventSynchronize(event)),
            ("hipEventQuery", &|| hipEventQuery(event)),
        ]
    };
    let of_sessions = [Opcode::INIT, Opcode::OFFER, Opcode::SHUTDOWN];
    let mut told = 0;
    let is_request = |info: &&Info| info.reply_rule != ReplyRule::Notification;
    for info in OPS.iter().filter(is_request).filter(|info| !of_sessions.contains(&info.code)) {
        for (name, wait) in waits {
            match with_op(info.code, Tell).expect("an operation of the table") {
                0 => {}
                // Its tail cannot be empty.
                -1 => break,
                error => panic!("{}: error {error}", info.name),
            }
            told += 1;
            let before = round_trips();
            assert_eq!(wait(), 0);
            assert_eq!(round_trips() - before, 1, "{}, then {name}: the worker is asked", info.name);
            assert_eq!(wait(), 0);
            assert_eq!(round_trips() - before, 1, "{}, then {name}: and once is enough", info.name);
        }
    }
    assert!(told > waits.len() * OPS.len() / 2, "{told} cases");
}

#[test]
fn every_wait_asks_for_every_request_that_may_have_failed() {
    let worker = FakeWorker::start(|asked| match asked.op {
        Opcode::STREAM_CREATE | Opcode::EVENT_CREATE => Reaction::Good(0x1000_u64.to_le_bytes().to_vec()),
        _ => easy(asked),
    });
    let stderr = run(program("program_that_waits_after_every_request", worker.address));
    assert_eq!(log_lines(&stderr), Vec::<&str>::new());
}
