//! Tests which requests are answered and which error a reply carries (HIPR 1.0, wire rule 2).

mod support;

use hipr_proto::{
    FLAG_ERROR, FLAG_NO_REPLY, FLAG_RESPONSE, HipError, Inline, Limits, Misuse, Opcode, Outbox, Outcome, Rx,
    Server, op,
};
use support::{Desk, errors, raw, request, seen};

const FREE: op::Free = op::Free { device_ptr: 8 };
const SYNCHRONIZE: op::DeviceSynchronize = op::DeviceSynchronize {};
const MALLOC: op::Malloc = op::Malloc { size: 64, flags: 0 };
const D2H: op::Memcpy = op::Memcpy { dst: 1, src: 2, size: 6, kind: op::kind::DEVICE_TO_HOST, stream: 0 };

const FIRST: HipError = HipError::INVALID_VALUE;
const SECOND: HipError = HipError::INVALID_HANDLE;

/// Returns a server that keeps the error `FIRST` for the next reply that may report it.
fn keeping() -> Desk {
    let mut desk = Desk::new();
    desk.carry_out(&request(&FREE, 1, FLAG_NO_REPLY, &[]), Err(FIRST));
    assert_eq!(desk.sent(), []);
    desk
}

#[test]
fn success_is_answered_only_when_asked_for() {
    let mut desk = Desk::new();
    desk.carry_out(&request(&FREE, 1, FLAG_NO_REPLY, &[]), Ok(()));
    assert_eq!(desk.sent(), []);
    desk.carry_out(&request(&FREE, 2, 0, &[]), Ok(()));
    assert_eq!(errors(&desk.sent()), [(2, 0)]);
}

#[test]
fn an_unanswered_failure_is_reported_once_by_the_next_answer() {
    let mut desk = keeping();
    desk.carry_out(&request(&FREE, 2, FLAG_NO_REPLY, &[]), Ok(()));
    assert_eq!(desk.sent(), []);
    desk.carry_out(&request(&SYNCHRONIZE, 3, 0, &[]), Ok(()));
    let reply = seen(&desk.sent()).remove(0);
    assert_eq!((reply.id, reply.error, reply.flags), (3, FIRST.0, FLAG_RESPONSE | FLAG_ERROR));
    desk.carry_out(&request(&SYNCHRONIZE, 4, 0, &[]), Ok(()));
    let reply = seen(&desk.sent()).remove(0);
    assert_eq!((reply.id, reply.error, reply.flags), (4, 0, FLAG_RESPONSE));
}

#[test]
fn the_first_failure_wins() {
    let mut desk = keeping();
    desk.carry_out(&request(&FREE, 2, FLAG_NO_REPLY, &[]), Err(SECOND));
    desk.carry_out(&request(&SYNCHRONIZE, 3, 0, &[]), Ok(()));
    desk.carry_out(&request(&SYNCHRONIZE, 4, 0, &[]), Ok(()));
    assert_eq!(errors(&desk.sent()), [(3, FIRST.0), (4, 0)]);
}

#[test]
fn the_first_failure_wins_over_that_of_the_request_that_reports_it() {
    let mut desk = keeping();
    desk.carry_out(&request(&SYNCHRONIZE, 2, 0, &[]), Err(SECOND));
    desk.carry_out(&request(&SYNCHRONIZE, 3, 0, &[]), Ok(()));
    assert_eq!(errors(&desk.sent()), [(2, FIRST.0), (3, 0)]);
}

#[test]
fn an_answered_failure_is_not_kept() {
    let mut desk = Desk::new();
    desk.carry_out(&request(&FREE, 1, 0, &[]), Err(FIRST));
    desk.carry_out(&request(&FREE, 2, 0, &[]), Ok(()));
    assert_eq!(errors(&desk.sent()), [(1, FIRST.0), (2, 0)]);
}

#[test]
fn init_ping_and_shutdown_report_only_themselves() {
    let mut desk = keeping();
    desk.carry_out(&request(&op::Init {}, 2, 0, &[]), Ok(()));
    desk.carry_out(&request(&op::Ping {}, 3, 0, &[]), Err(SECOND));
    desk.carry_out(&request(&op::Shutdown {}, 4, 0, &[]), Ok(()));
    desk.carry_out(&request(&SYNCHRONIZE, 5, 0, &[]), Ok(()));
    assert_eq!(errors(&desk.sent()), [(2, 0), (3, SECOND.0), (4, 0), (5, FIRST.0)]);
}

#[test]
fn what_would_create_is_not_executed_when_it_reports_a_kept_error() {
    let mut desk = keeping();
    let got = desk.one(&request(&MALLOC, 2, 0, &[]));
    assert_eq!(desk.server.admit(&got.ticket), Some(FIRST));
    // Whatever is given then, the kept error leaves, with a fixed part of zeros.
    desk.complete(got.ticket, Outcome::ok(&op::MallocReply { device_ptr: 7 })).expect("in order");
    let reply = seen(&desk.sent()).remove(0);
    assert_eq!((reply.error, reply.body), (FIRST.0, vec![0; 8]));

    let got = desk.one(&request(&MALLOC, 3, 0, &[]));
    assert_eq!(desk.server.admit(&got.ticket), None);
    desk.complete(got.ticket, Outcome::ok(&op::MallocReply { device_ptr: 7 })).expect("in order");
    let reply = seen(&desk.sent()).remove(0);
    assert_eq!((reply.error, reply.body), (0, vec![7, 0, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn what_reports_nothing_is_executed() {
    let mut desk = keeping();
    // A creation that is not answered, and requests that create nothing.
    for (id, bytes) in [
        (2, request(&MALLOC, 2, FLAG_NO_REPLY, &[])),
        (3, request(&FREE, 3, FLAG_NO_REPLY, &[])),
        (4, request(&op::Ping {}, 4, 0, &[])),
        (5, request(&SYNCHRONIZE, 5, 0, &[])),
    ] {
        let got = desk.one(&bytes);
        assert_eq!(desk.server.admit(&got.ticket), None, "{id}");
        let reply = vec![0; got.op.info().expect("known").reply.size];
        desk.complete(got.ticket, Outcome::ok_raw(&reply)).expect("in order");
    }
    assert_eq!(errors(&desk.sent()), [(4, 0), (5, FIRST.0)]);
}

#[test]
fn errors_that_surface_by_themselves_are_kept() {
    let mut desk = Desk::new();
    desk.server.keep(FIRST);
    desk.server.keep(SECOND);
    desk.carry_out(&request(&op::Ping {}, 1, 0, &[]), Ok(()));
    desk.carry_out(&request(&SYNCHRONIZE, 2, 0, &[]), Ok(()));
    desk.carry_out(&request(&SYNCHRONIZE, 3, 0, &[]), Ok(()));
    assert_eq!(errors(&desk.sent()), [(1, 0), (2, FIRST.0), (3, 0)]);
}

#[test]
fn what_cannot_be_carried_out_fails_like_any_other_request() {
    // Kept when it is unanswered, reported when it is answered.
    let mut desk = Desk::new();
    let unknown = Opcode(0x0fff);
    let got = desk.one(&raw(unknown, 1, FLAG_NO_REPLY, b"whatever"));
    assert_eq!(got.ticket.refusal(), Some(HipError::NOT_SUPPORTED));
    assert_eq!(desk.server.admit(&got.ticket), Some(HipError::NOT_SUPPORTED));
    desk.complete(got.ticket, Outcome::ok(&())).expect("in order");
    let got = desk.one(&raw(Opcode::FREE, 2, 0, &[1, 2, 3]));
    assert_eq!(got.ticket.refusal(), Some(HipError::INVALID_VALUE));
    desk.complete(got.ticket, Outcome::ok(&())).expect("in order");
    let got = desk.one(&raw(unknown, 3, 0, &[]));
    desk.complete(got.ticket, Outcome::ok(&())).expect("in order");
    assert_eq!(errors(&desk.sent()), [(1 + 1, HipError::NOT_SUPPORTED.0), (3, HipError::NOT_SUPPORTED.0)]);
}

#[test]
fn a_failed_copy_to_the_host_brings_no_bytes() {
    for inline in [Inline::Whole(b"secret".to_vec()), Inline::Stream(6)] {
        let mut desk = keeping();
        let got = desk.one(&request(&D2H, 2, 0, &[]));
        desk.complete(got.ticket, Outcome::ok(&()).with_inline(inline)).expect("in order");
        assert_eq!(desk.server.stream_left(), 0);
        assert_eq!(desk.server.push_data(vec![1]), Err(Misuse::StreamTooLong { left: 0, given: 1 }));
        let reply = seen(&desk.sent()).remove(0);
        assert_eq!((reply.error, reply.flags, reply.body), (FIRST.0, FLAG_RESPONSE | FLAG_ERROR, vec![]));
    }
}

#[test]
fn an_unanswered_copy_to_the_host_brings_no_bytes() {
    let mut desk = Desk::new();
    let got = desk.one(&request(&D2H, 1, FLAG_NO_REPLY, &[]));
    desk.complete(got.ticket, Outcome::ok(&()).with_inline(Inline::Stream(6))).expect("in order");
    assert_eq!(desk.server.stream_left(), 0);
    assert_eq!(desk.sent(), []);
}

#[test]
fn replies_leave_in_the_order_of_their_requests() {
    let mut desk = Desk::new();
    let bytes = [request(&MALLOC, 10, 0, &[]), request(&SYNCHRONIZE, 11, 0, &[])].concat();
    let mut all = desk.feed(&bytes);
    assert_eq!(desk.server.open(), 2);
    let (later, earlier) = (all.remove(1).ticket, all.remove(0).ticket);
    assert_eq!((earlier.sequence(), later.sequence()), (0, 1));
    assert_eq!(desk.complete(later, Outcome::ok(&())), Err(Misuse::OutOfOrder { expected: 0, got: 1 }));
    assert_eq!(desk.sent(), []);
    desk.complete(earlier, Outcome::ok(&op::MallocReply { device_ptr: 1 })).expect("in order");
    assert_eq!(errors(&desk.sent()), [(10, 0)]);
    assert_eq!(desk.server.open(), 1);
}

#[test]
fn a_streamed_reply_is_announced_whole_and_given_in_pieces() {
    let mut desk = Desk::new();
    let bytes = [request(&D2H, 1, 0, &[]), request(&SYNCHRONIZE, 2, 0, &[])].concat();
    let mut all = desk.feed(&bytes);
    let (second, first) = (all.remove(1).ticket, all.remove(0).ticket);
    desk.complete(first, Outcome::ok(&()).with_inline(Inline::Stream(6))).expect("in order");
    let mut sent = desk.sent();
    assert_eq!(sent.len(), 24 + 4);
    desk.server.push_data(b"abcd".to_vec()).expect("owed");
    assert_eq!(desk.server.stream_left(), 2);
    assert_eq!(desk.server.push_data(b"xyz".to_vec()), Err(Misuse::StreamTooLong { left: 2, given: 3 }));
    desk.server.push_data(b"ef".to_vec()).expect("owed");
    desk.complete(second, Outcome::ok(&())).expect("in order");
    sent.extend(desk.sent());
    let replies = seen(&sent);
    assert_eq!(replies[0].body, b"abcdef");
    assert_eq!((replies[1].id, replies[1].error), (2, 0));
}

#[test]
fn nothing_overtakes_a_streamed_reply() {
    let mut desk = Desk::new();
    let got = desk.one(&request(&D2H, 1, 0, &[]));
    desk.complete(got.ticket, Outcome::ok(&()).with_inline(Inline::Stream(6))).expect("in order");
    let got = desk.one(&request(&SYNCHRONIZE, 2, 0, &[]));
    assert_eq!(desk.complete(got.ticket, Outcome::ok(&())), Err(Misuse::StreamUnfinished { left: 6 }));
}

#[test]
fn a_reply_of_the_wrong_size_does_not_leave() {
    let mut desk = Desk::new();
    let got = desk.one(&request(&MALLOC, 1, 0, &[]));
    let wrong = Misuse::ReplySize { op: Opcode::MALLOC, need: 8, given: 0 };
    assert_eq!(desk.complete(got.ticket, Outcome::ok(&())), Err(wrong));
    assert_eq!(desk.sent(), []);
    assert_eq!(wrong.to_string(), "the fixed part of a reply to MALLOC has 0 bytes instead of 8");
}

/// Uses the two halves of a server on two threads, as the event loops do.
#[test]
fn the_halves_work_apart() {
    let (mut receiver, mut responder) = Server::<Vec<u8>>::new(Limits::default()).into_halves();
    let (give, take) = std::sync::mpsc::channel();
    let dispatch = std::thread::spawn(move || {
        let mut outbox = Outbox::new();
        for ticket in take {
            responder.complete(ticket, Err::<(), _>(FIRST).into()).expect("in order");
        }
        responder.poll_transmit(&mut outbox);
        support::flat(&outbox)
    });
    let bytes = [request(&FREE, 1, FLAG_NO_REPLY, &[]), request(&SYNCHRONIZE, 2, 0, &[])].concat();
    let mut input = bytes.as_slice();
    while let Ok(Rx::Request { ticket, .. }) = receiver.handle_input(&mut input) {
        give.send(ticket).expect("the other thread listens");
    }
    assert_eq!(receiver.open(), 2);
    receiver.retire(2);
    assert_eq!(receiver.open(), 0);
    drop(give);
    assert_eq!(errors(&dispatch.join().expect("no panic")), [(2, FIRST.0)]);
}
