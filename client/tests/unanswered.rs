//! Tests what a connection knows of requests that nobody waits for: whether one may still have left an error.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use hipr_client::{Connection, Extra, WorkerAddress};
use hipr_proto::op::{self, Class, ForOp, OPS, OfferReply, Op, ReplyRule, TailLen, with_op};
use hipr_proto::{Features, HipError, Opcode};
use support::{Asked, FakeWorker, Reaction, bytes, easy};

/// The operations that belong to a session's beginning and end.
const OF_SESSIONS: [Opcode; 3] = [Opcode::INIT, Opcode::OFFER, Opcode::SHUTDOWN];

fn connect(worker: &FakeWorker) -> Connection {
    let address = WorkerAddress::new(&worker.address.to_string());
    Connection::connect(&address, Duration::from_secs(20)).expect("a worker is there")
}

/// Sends the request of an operation whose fields are all zero: unanswered, or answered.
struct Send<'a> {
    connection: &'a Connection,
    is_asked: bool,
    is_noted: bool,
}

impl ForOp for Send<'_> {
    type Out = ();

    fn call<O: Op>(self) {
        let op = O::ZERO;
        let (TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) = op.tail_len();
        let tail = vec![0; len as usize];
        let extra = Extra { tail: &tail, is_noted: self.is_noted, ..Extra::default() };
        if self.is_asked {
            // What the reply says does not matter.
            let _ = self.connection.ask_with(&op, extra);
        } else {
            self.connection.tell_with(&op, extra).expect("it is sent");
        }
    }
}

fn send(connection: &Connection, op: Opcode, is_asked: bool, is_noted: bool) {
    with_op(op, Send { connection, is_asked, is_noted }).expect("an operation of the table");
}

fn operations() -> impl Iterator<Item = &'static op::Info> {
    let is_request = |info: &&op::Info| info.reply_rule != ReplyRule::Notification;
    OPS.iter().filter(is_request).filter(|info| !OF_SESSIONS.contains(&info.code))
}

#[test]
fn every_unanswered_request_may_owe_an_error_until_a_reply_follows_it() {
    let worker = FakeWorker::start(easy);
    let connection = connect(&worker);
    let answers: Vec<_> = operations().filter(|info| info.statics.is_none()).collect();
    for (number, info) in operations().enumerate() {
        assert!(!connection.may_owe_errors(), "before {}", info.name);
        send(&connection, info.code, false, false);
        assert!(connection.may_owe_errors(), "{} was told", info.name);
        // Replies that report no kept errors do not count; any other does.
        let answer = answers[number % answers.len()];
        for (op, class) in [(Opcode::PING, Class::Exempt), (answer.code, answer.class)] {
            send(&connection, op, true, false);
            assert_eq!(connection.may_owe_errors(), class == Class::Exempt, "{}, then {op}", info.name);
            if class == Class::Exempt {
                continue;
            }
        }
        if answer.class == Class::Exempt {
            send(&connection, Opcode::DEVICE_SYNCHRONIZE, true, false);
        }
        send(&connection, info.code, false, true);
        assert!(!connection.may_owe_errors(), "{} is noted by its caller", info.name);
    }
}

#[test]
fn an_answer_that_was_known_already_follows_nothing() {
    let worker = FakeWorker::start(easy);
    let connection = connect(&worker);
    for _ in 0..2 {
        assert_eq!(connection.device_count(), Ok(2));
    }
    connection.tell(&op::Free { device_ptr: 1 }).expect("it is sent");
    assert_eq!(connection.device_count(), Ok(2), "it is not asked for");
    assert!(connection.may_owe_errors());
    let answers = connection.ask_all(&[op::StreamQuery { stream: 0 }; 2], None);
    assert_eq!(answers, Ok(vec![Ok(()); 2]));
    assert!(!connection.may_owe_errors());
}

/// An error does not say whose it is: if something with a name may not have been made, what uses the name may fail.
#[test]
fn after_an_error_names_may_stand_for_nothing() {
    let code = Arc::new(AtomicI32::new(0));
    let reply = Arc::clone(&code);
    let worker = FakeWorker::start(move |asked: &Asked| match (asked.op, reply.load(Ordering::Relaxed)) {
        (Opcode::OFFER, _) => Reaction::Good(bytes(&OfferReply { features: Features::NAMES.bits() })),
        (Opcode::STREAM_QUERY, error) if error != 0 => Reaction::Bad(HipError(error)),
        _ => easy(asked),
    });
    let cases = [
        (HipError(0), true, false),
        (HipError::NOT_READY, true, false),
        (HipError::OUT_OF_MEMORY, false, false),
        (HipError::OUT_OF_MEMORY, true, true),
    ];
    let cases = cases.into_iter().flat_map(|(error, makes, in_doubt)| {
        [(error, makes, false, in_doubt), (error, makes, true, in_doubt)]
    });
    for (error, makes, is_noted, is_in_doubt) in cases {
        let connection = connect(&worker);
        match (makes, is_noted) {
            (true, false) => {
                connection.create(&op::EventCreate { flags: 0 }, Extra::default()).expect("it is sent");
            }
            // Memory at an address of the client's choice.
            (true, true) => send(&connection, Opcode::MALLOC_AT, false, true),
            (false, _) => send(&connection, Opcode::EVENT_DESTROY, false, is_noted),
        }
        assert_eq!(connection.may_owe_errors(), !is_noted);
        code.store(error.0, Ordering::Relaxed);
        let _ = connection.ask(&op::StreamQuery { stream: 0 });
        code.store(0, Ordering::Relaxed);
        for _ in 0..2 {
            assert_eq!(
                connection.may_owe_errors(),
                is_in_doubt,
                "{error}, something was made: {makes}, noted: {is_noted}"
            );
            connection.ask(&op::StreamQuery { stream: 0 }).expect("a good answer");
        }
    }
}

/// What the worker has told of is asked for, also if it is of work that cannot fail as far as its caller knows.
#[test]
fn a_failure_that_was_told_is_asked_for_once() {
    let worker = FakeWorker::start(|asked: &Asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features: Features::NOTIFICATIONS.bits() })),
        Opcode::MEMSET_ASYNC => Reaction::Refused(HipError::INVALID_VALUE, String::new()),
        _ => easy(asked),
    });
    let connection = connect(&worker);
    for _ in 0..2 {
        send(&connection, Opcode::MEMSET_ASYNC, false, true);
        assert!(!connection.may_owe_errors(), "nothing was heard of it");
        connection.ask(&op::Ping {}).expect("it reports nothing");
        assert!(connection.may_owe_errors());
        let asked = connection.ask(&op::StreamQuery { stream: 0 });
        assert_eq!(asked, Err(hipr_client::CallError::Hip(HipError::INVALID_VALUE)));
        assert!(!connection.may_owe_errors(), "once");
    }
}
