//! Tests messages that a server sends without being asked: where they may come, and who takes them.

mod support;

use hipr_proto::op::{ReplyRule, RequestFailed, kind};
use hipr_proto::{
    Answer, Client, Fatal, Header, Inline, Limits, Misuse, OPS, Op, Opcode, Outbox, Outcome, Responder, Rx,
    Server, Wire, op,
};
use support::flat;

const TEXT: &[u8] = b"what failed";

fn failed(request: u32, text_length: usize) -> RequestFailed {
    RequestFailed { request, text_length: text_length as u32, error_code: 1, ..RequestFailed::ZERO }
}

/// What a client reads.
#[derive(Debug, PartialEq)]
enum Read {
    Reply(u32, u64),
    Notification(Option<RequestFailed>, u64),
    Data(Vec<u8>),
}

fn client(accepts: bool) -> Client<Vec<u8>> {
    let mut client = Client::new(Limits { small_tail_max: 64, ..Limits::default() });
    if accepts {
        client.accept_notifications();
    }
    client
}

/// Reads bytes in pieces; bytes that belong together are put together.
fn read(client: &mut Client<Vec<u8>>, bytes: &[u8], piece: usize) -> Result<Vec<Read>, Fatal> {
    let mut all = Vec::new();
    for mut input in bytes.chunks(piece) {
        loop {
            match client.handle_input(&mut input)? {
                Answer::NeedMore => break,
                Answer::Reply(reply) => all.push(Read::Reply(reply.call.id(), reply.inline)),
                Answer::Notification(it) => all.push(Read::Notification(it.read(), it.inline)),
                Answer::Data { bytes, .. } => match all.last_mut() {
                    Some(Read::Data(before)) => before.extend_from_slice(bytes),
                    _ => all.push(Read::Data(bytes.to_vec())),
                },
            }
        }
    }
    Ok(all)
}

#[test]
fn notifications_come_between_replies_however_bytes_are_cut() {
    let mut asking = client(true);
    let d2h = op::Memcpy { dst: 1, src: 2, size: 5, kind: kind::DEVICE_TO_HOST, stream: 0 };
    let mut requests = Outbox::new();
    for request in [&op::Ping {} as &dyn Ask, &d2h, &op::Ping {}] {
        request.ask(&mut asking, &mut requests);
    }
    let mut server = Server::<Vec<u8>>::new(Limits::default());
    let bytes = flat(&requests);
    let mut input = bytes.as_slice();
    let mut tickets = Vec::new();
    while let Ok(Rx::Request { ticket, .. }) = server.handle_input(&mut input) {
        tickets.push(ticket);
    }
    let mut tickets = tickets.into_iter();
    let mut next = || tickets.next().expect("three requests");
    server.notify(&failed(7, 0), &[]).expect("at any time");
    server.complete(next(), Outcome::ok(&())).expect("the oldest");
    server.complete(next(), Outcome::ok(&()).with_inline(Inline::Stream(5))).expect("the oldest");
    server.push_data(b"he".to_vec()).expect("it owes five");
    server.notify(&failed(8, TEXT.len()), TEXT).expect("at any time");
    server.notify(&failed(9, 0), &[]).expect("at any time");
    server.push_data(b"llo".to_vec()).expect("it owes three");
    server.complete(next(), Outcome::ok(&())).expect("the oldest");
    let mut replies = Outbox::new();
    server.poll_transmit(&mut replies);
    let expected = || {
        [
            Read::Notification(Some(failed(7, 0)), 0),
            Read::Reply(1, 0),
            Read::Reply(2, 5),
            Read::Data(b"hello".to_vec()),
            Read::Notification(Some(failed(8, TEXT.len())), TEXT.len() as u64),
            Read::Data(TEXT.to_vec()),
            Read::Notification(Some(failed(9, 0)), 0),
            Read::Reply(3, 0),
        ]
    };
    let bytes = flat(&replies);
    for piece in 1..=bytes.len() {
        let mut asking = client(true);
        let mut requests = Outbox::new();
        for request in [&op::Ping {} as &dyn Ask, &d2h, &op::Ping {}] {
            request.ask(&mut asking, &mut requests);
        }
        assert_eq!(read(&mut asking, &bytes, piece).as_deref(), Ok(&expected()[..]), "pieces of {piece}");
        assert_eq!((asking.waiting(), asking.handle_eof()), (0, Ok(())));
    }
}

/// A request of any type.
trait Ask {
    fn ask(&self, client: &mut Client<Vec<u8>>, into: &mut Outbox<Vec<u8>>);
}

impl<O: Op> Ask for O {
    fn ask(&self, client: &mut Client<Vec<u8>>, into: &mut Outbox<Vec<u8>>) {
        assert!(client.request(self, &[], None).is_ok_and(|call| call.is_some()));
        client.poll_transmit(into);
    }
}

/// Returns a message with this operation, flags and payload.
fn message(op: Opcode, flags: u32, payload_len: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Header::new(op, 0, payload_len, flags).to_bytes().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

fn payload(request: &RequestFailed, text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.put(&mut bytes);
    bytes.extend_from_slice(text);
    bytes
}

#[test]
fn only_rows_that_are_notifications_are_taken_and_only_where_they_are_accepted() {
    for info in OPS {
        let (op, len) = (info.code, info.request.size);
        let bytes = message(op, 0, len as u64, &vec![0; len]);
        let refused = Err(Fatal::NotAReply { op });
        assert_eq!(read(&mut client(false), &bytes, usize::MAX), refused, "{op}");
        let is_taken = read(&mut client(true), &bytes, usize::MAX).is_ok();
        assert_eq!(is_taken, info.reply_rule == ReplyRule::Notification, "{op}");
    }
    let unknown = message(Opcode(0x7777), 0, 0, &[]);
    assert_eq!(read(&mut client(true), &unknown, 9), Err(Fatal::NotAReply { op: Opcode(0x7777) }));
}

#[test]
fn lengths_are_checked() {
    let (op, size) = (RequestFailed::OPCODE, RequestFailed::SIZE as u64);
    let send = |text_length: usize, have: u64, text: &[u8]| {
        let bytes = payload(&failed(1, text_length), text);
        let len = have.min(bytes.len() as u64) as usize;
        let bytes = message(op, 8, have, &bytes[..len]);
        let one = read(&mut client(true), &bytes, 1);
        assert_eq!(read(&mut client(true), &bytes, usize::MAX), one, "however it is cut");
        one
    };
    for have in 0..size {
        assert_eq!(send(0, have, &[]), Err(Fatal::ShortNotification { op, need: size, have }));
    }
    let short = Fatal::ShortNotification { op, need: size + 3, have: size + 2 };
    assert_eq!(send(3, size + 2, b"ab"), Err(short));
    let whole = |len: usize| Read::Notification(Some(failed(1, len)), len as u64);
    assert_eq!(send(2, size + 2, b"ab"), Ok(vec![whole(2), Read::Data(b"ab".to_vec())]));
    assert_eq!(
        send(2, size + 3, b"abc"),
        Ok(vec![whole(2), Read::Data(b"ab".to_vec())]),
        "the rest is skipped"
    );
    assert_eq!(send(64, size + 64, &[b'x'; 64]), Ok(vec![whole(64), Read::Data(vec![b'x'; 64])]));
    let long = Fatal::TooLong { op, length: size + 65, max: size + 64 };
    assert_eq!(send(65, size + 65, &[b'x'; 65]), Err(long), "more than the client collects");
    let huge = Fatal::ShortNotification { op, need: size + u64::from(u32::MAX), have: size };
    assert_eq!(send(u32::MAX as usize, size, &[]), Err(huge));
}

#[test]
fn a_notification_needs_the_text_that_it_announces() {
    let mut responder = Responder::<Vec<u8>>::new();
    let refused = |given| Err(Misuse::TailSize { op: RequestFailed::OPCODE, need: 3, given });
    assert_eq!(responder.notify(&failed(1, 3), b"ab"), refused(2));
    assert_eq!(responder.notify(&failed(1, 3), b"abcd"), refused(4));
    assert!(!responder.poll_transmit(&mut Outbox::new()), "nothing is queued");
}

#[test]
fn the_stream_may_not_end_inside_a_notification() {
    let text = payload(&failed(1, TEXT.len()), TEXT);
    let bytes = message(RequestFailed::OPCODE, 8, text.len() as u64, &text);
    for len in 0..=bytes.len() {
        let mut client = client(true);
        read(&mut client, &bytes[..len], usize::MAX).expect("nothing is wrong so far");
        let expected = if len % bytes.len() == 0 { Ok(()) } else { Err(Fatal::EofInsideMessage) };
        assert_eq!(client.handle_eof(), expected, "after {len} bytes");
    }
}
