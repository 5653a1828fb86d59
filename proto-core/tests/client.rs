//! Tests a client: which requests it collects, when it sends them, and how it reads replies.

mod support;

use hipr_proto::{
    Answer, COALESCE_BYTES, COALESCE_INLINE_BYTES, Call, Client, FLAG_ERROR, FLAG_RESPONSE, Fatal, Header,
    HipError, Limits, Misuse, Opcode, Outbox, ReplyMode, ReplyReceiver, Sender, Wire, WireError, op,
};
use support::{flat, raw};

const FREE: op::Free = op::Free { device_ptr: 8 };
const FREE_BYTES: usize = 24 + 8;
const MALLOC: op::Malloc = op::Malloc { size: 64, flags: 0 };

fn h2d(size: usize) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size: size as u64, kind: op::kind::HOST_TO_DEVICE, stream: 0 }
}

fn d2h(size: u64) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 }
}

fn ids(mut bytes: &[u8]) -> Vec<u32> {
    let mut all = Vec::new();
    while let Ok(header) = Header::take(&mut bytes) {
        all.push(header.request_id);
        bytes = &bytes[header.payload_length as usize..];
    }
    all
}

#[test]
fn unanswered_requests_gather_until_one_waits() {
    let mut sender = Sender::<Vec<u8>>::new();
    for _ in 0..300 {
        assert_eq!(sender.request(&FREE, &[], None), Ok(None));
    }
    assert!(!sender.wants_flush());
    let call = sender.request(&MALLOC, &[], None).expect("a good request").expect("it waits");
    assert_eq!((call.id(), call.op()), (301, Opcode::MALLOC));
    assert!(sender.wants_flush());
    let mut outbox = Outbox::new();
    assert!(sender.poll_transmit(&mut outbox));
    assert!(!sender.wants_flush());
    assert_eq!(outbox.slices().count(), 1, "one write");
    assert_eq!(ids(&flat(&outbox)), (1..=301).collect::<Vec<_>>());
    assert_eq!(sender.queued_bytes(), 0);
}

#[test]
fn a_full_buffer_leaves() {
    let mut sender = Sender::<Vec<u8>>::new();
    let mut outbox = Outbox::new();
    for n in 1..=COALESCE_BYTES / FREE_BYTES {
        assert!(!sender.wants_flush(), "{n}");
        assert_eq!(sender.request(&FREE, &[], None), Ok(None));
    }
    assert_eq!(sender.queued_bytes(), COALESCE_BYTES);
    assert!(sender.wants_flush());
    // Going on without a flush would be a buffer without a limit.
    assert_eq!(sender.request(&FREE, &[], None), Err(Misuse::Unflushed { queued: COALESCE_BYTES }));
    sender.poll_transmit(&mut outbox);
    assert_eq!(sender.request(&FREE, &[], None), Ok(None));
    assert!(!sender.wants_flush());
}

#[test]
fn an_explicit_flush_is_asked_for_once() {
    let mut sender = Sender::<Vec<u8>>::new();
    sender.flush();
    assert!(!sender.wants_flush(), "nothing is there");
    assert!(!sender.poll_transmit(&mut Outbox::new()));
    sender.request(&FREE, &[], None).expect("a good request");
    sender.flush();
    assert!(sender.wants_flush());
    sender.poll_transmit(&mut Outbox::new());
    assert!(!sender.wants_flush());
}

#[test]
fn small_inline_bytes_are_gathered_and_large_ones_leave_from_where_they_are() {
    let memory = vec![7u8; COALESCE_INLINE_BYTES + 1];
    let mut sender = Sender::<&[u8]>::new();
    sender.request(&FREE, &[], None).expect("a good request");
    sender.request(&h2d(memory.len() - 1), &[], Some(&memory[1..])).expect("a good request");
    assert!(!sender.wants_flush());
    sender.request(&h2d(memory.len()), &[], Some(&memory)).expect("a good request");
    assert!(sender.wants_flush(), "the memory is the caller's");
    sender.request(&FREE, &[], None).expect("a good request");

    let mut outbox = Outbox::new();
    sender.poll_transmit(&mut outbox);
    let slices: Vec<&[u8]> = outbox.slices().collect();
    assert_eq!(slices.len(), 3, "what was gathered, the caller's memory, the rest");
    assert_eq!(slices[1].as_ptr(), memory.as_ptr());
    assert_eq!(slices[0].len(), FREE_BYTES + (24 + 36 + COALESCE_INLINE_BYTES) + (24 + 36));
    assert_eq!(ids(&flat(&outbox)), [1, 2, 3, 4]);
}

#[test]
fn inline_bytes_that_do_not_fit_are_not_gathered() {
    let memory = [7u8; 64];
    let mut sender = Sender::<&[u8]>::new();
    while sender.queued_bytes() + FREE_BYTES < COALESCE_BYTES {
        sender.request(&FREE, &[], None).expect("room");
    }
    assert!(!sender.wants_flush());
    sender.request(&h2d(64), &[], Some(&memory)).expect("a good request");
    let mut outbox = Outbox::new();
    sender.poll_transmit(&mut outbox);
    assert_eq!(outbox.slices().last().map(<[u8]>::as_ptr), Some(memory.as_ptr()));
}

#[test]
fn bytes_after_the_fixed_part_have_to_be_as_many_as_it_says() {
    let mut sender = Sender::<&[u8]>::new();
    let refused = |op, need, given| Err(Misuse::TailSize { op, need, given });
    assert_eq!(sender.request(&h2d(4), &[], Some(b"abc")), refused(Opcode::MEMCPY, 4, 3));
    assert_eq!(sender.request(&h2d(2), &[], Some(b"abc")), refused(Opcode::MEMCPY, 2, 3));
    assert_eq!(sender.request(&h2d(2), &[], None), refused(Opcode::MEMCPY, 2, 0));
    assert_eq!(sender.request(&d2h(2), &[], Some(b"ab")), refused(Opcode::MEMCPY, 0, 2));
    assert_eq!(sender.request(&FREE, b"x", None), refused(Opcode::FREE, 0, 1));
    assert_eq!(
        sender.request(&op::SetValidDevices { len: 2 }, &[0; 4], None),
        refused(Opcode::SET_VALID_DEVICES, 8, 4)
    );
    let launch = op::LaunchKernel { num_args: 2, ..Wire::ZERO };
    assert_eq!(sender.request(&launch, &[0; 15], None), refused(Opcode::LAUNCH_KERNEL, 16, 15));
    assert_eq!(sender.queued_bytes(), 0);
    assert_eq!(sender.request(&launch, &[0; 99], None), Ok(None));
}

#[test]
fn who_asks_for_an_answer_gets_a_call() {
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    assert!(matches!(client.request_with(&FREE, &[], None, ReplyMode::Always), Ok(Some(_))));
    assert_eq!(client.request_with(&MALLOC, &[], None, ReplyMode::Never), Ok(None));
    assert!(matches!(client.request(&d2h(1), &[], None), Ok(Some(_))));
    assert_eq!(client.request(&h2d(1), &[], Some(vec![1])), Ok(None));
    assert!(matches!(
        client.request(&op::LaunchKernel { stop_event: 1, ..Wire::ZERO }, &[], None),
        Ok(Some(_))
    ));
    assert_eq!(client.request(&op::LaunchKernel { stop_event: 0, ..Wire::ZERO }, &[], None), Ok(None));
    assert_eq!(client.waiting(), 3);
}

#[test]
fn raw_requests_are_requests() {
    let [mut raw, mut typed] = [(); 2].map(|()| Client::<Vec<u8>>::new(Limits::default()));
    let (mut raw_out, mut typed_out) = (Outbox::new(), Outbox::new());
    assert_eq!(raw.request_raw(Opcode::FREE, &8u64.to_le_bytes(), None, false), Ok(None));
    assert_eq!(typed.request(&FREE, &[], None), Ok(None));
    // Nothing waits for it, so it leaves only because somebody says so.
    assert!(!raw.wants_flush());
    raw.flush();
    assert!(raw.wants_flush());
    let call = raw.request_raw(Opcode::MALLOC, &[64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None, true);
    let like = typed.request(&MALLOC, &[], None).expect("a good request").expect("it waits");
    assert!(matches!(call, Ok(Some(call)) if (call.id(), call.op()) == (like.id(), like.op())));
    assert_eq!(raw.waiting(), 1);
    assert!(raw.poll_transmit(&mut raw_out) && typed.poll_transmit(&mut typed_out));
    assert_eq!(flat(&raw_out), flat(&typed_out));
}

#[test]
fn calls_that_wait_have_a_limit() {
    let mut client = Client::<Vec<u8>>::new(Limits { open_max: 1, ..Limits::default() });
    assert!(client.request(&MALLOC, &[], None).is_ok());
    assert_eq!(client.request(&MALLOC, &[], None), Err(Misuse::TooManyCalls { max: 1 }));
    let raw = client.request_raw(Opcode::MALLOC, &[0; 12], None, true);
    assert_eq!(raw, Err(Misuse::TooManyCalls { max: 1 }));
    assert_eq!(client.request(&FREE, &[], None), Ok(None), "it does not wait");
    let mut outbox = Outbox::new();
    client.poll_transmit(&mut outbox);
    assert_eq!(ids(&flat(&outbox)), [1, 2], "the refused requests did not leave");
}

type Ask = fn(&mut Sender<Vec<u8>>) -> Call;

/// Returns a receiver that waits for the replies to `ops`, with ids from 1.
fn waiting(ops: &[Ask]) -> ReplyReceiver {
    let mut sender = Sender::new();
    let mut receiver = ReplyReceiver::new(Limits::default());
    for op in ops {
        receiver.expect(op(&mut sender)).expect("room");
    }
    receiver
}

fn malloc(sender: &mut Sender<Vec<u8>>) -> Call {
    sender.request(&MALLOC, &[], None).expect("a good request").expect("it waits")
}

fn copy(sender: &mut Sender<Vec<u8>>) -> Call {
    sender.request(&d2h(5), &[], None).expect("a good request").expect("it waits")
}

fn nodes(sender: &mut Sender<Vec<u8>>) -> Call {
    let request = op::GraphGetNodes { graph: 1, max_nodes: 2 };
    sender.request(&request, &[], None).expect("a good request").expect("it waits")
}

fn reply(op: Opcode, id: u32, error: i32, body: &[u8]) -> Vec<u8> {
    let flags = if error == 0 { FLAG_RESPONSE } else { FLAG_RESPONSE | FLAG_ERROR };
    raw(op, id, flags, &[&error.to_le_bytes(), body].concat())
}

#[test]
fn replies_say_what_their_bytes_say() {
    let bytes = [
        reply(Opcode::MALLOC, 1, 0, &[8, 7, 6, 5, 4, 3, 2, 1]),
        reply(Opcode::MEMCPY, 2, 0, b"hello"),
        reply(Opcode::MALLOC, 3, 2, &[0; 8]),
        reply(Opcode::MALLOC, 4, 2, &[]),
        reply(Opcode::MALLOC, 5, 2, &[0; 3]),
        reply(Opcode::MEMCPY, 6, 719, b"not data"),
        reply(Opcode::MALLOC, 7, 0, b"12345678 and more"),
        reply(Opcode::MEMCPY, 8, 0, b"hello and more"),
        reply(Opcode::GRAPH_GET_NODES, 9, 0, &[1; 16]),
        reply(Opcode::GRAPH_GET_NODES, 10, 0, &[1; 8 + 3 * 8]),
    ]
    .concat();
    let read = |piece: usize| {
        let mut receiver = waiting(&[malloc, copy, malloc, malloc, malloc, copy, malloc, copy, nodes, nodes]);
        let (mut all, mut data) = (Vec::new(), Vec::new());
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (mut input, later) = rest.split_at(piece.min(rest.len()));
            loop {
                match receiver.handle_input(&mut input).expect("good replies") {
                    Answer::Reply(reply) => {
                        let error = reply.error.map_or(0, |error| error.0);
                        all.push((reply.call.id(), error, reply.fixed.to_vec(), reply.inline, Vec::new()));
                    }
                    Answer::Data { bytes, last } => {
                        data.extend_from_slice(bytes);
                        if last {
                            all.last_mut().expect("data belongs to a reply").4 = std::mem::take(&mut data);
                        }
                    }
                    Answer::Notification(other) => panic!("nobody accepts it: {other:?}"),
                    Answer::NeedMore => break,
                }
            }
            rest = later;
        }
        assert_eq!((receiver.waiting(), receiver.handle_eof()), (0, Ok(())));
        all
    };
    let whole = [
        (1, 0, vec![8, 7, 6, 5, 4, 3, 2, 1], 0, vec![]),
        (2, 0, vec![], 5, b"hello".to_vec()),
        (3, 2, vec![0; 8], 0, vec![]),
        (4, 2, vec![], 0, vec![]),
        (5, 2, vec![0; 3], 0, vec![]),
        (6, 719, vec![], 0, vec![]),
        (7, 0, b"12345678".to_vec(), 0, vec![]),
        (8, 0, vec![], 5, b"hello".to_vec()),
        (9, 0, vec![1; 8], 8, vec![1; 8]),
        (10, 0, vec![1; 8], 16, vec![1; 16]),
    ];
    for piece in [usize::MAX, 1, 17] {
        assert_eq!(read(piece), whole, "{piece}");
    }
}

#[test]
fn replies_are_decoded() {
    let mut receiver = waiting(&[malloc, malloc]);
    let bytes =
        [reply(Opcode::MALLOC, 1, 0, &[9, 0, 0, 0, 0, 0, 0, 0]), reply(Opcode::MALLOC, 2, 2, &[0; 8])]
            .concat();
    let mut input = bytes.as_slice();
    let Ok(Answer::Reply(reply)) = receiver.handle_input(&mut input) else { panic!("a reply") };
    assert_eq!(reply.read::<op::Malloc>(), Ok(Ok(op::MallocReply { device_ptr: 9 })));
    let too_small = Err(WireError::Short { need: 16, have: 8 });
    assert_eq!(reply.read::<op::MemGetInfo>(), too_small, "a reply to something else");
    let Ok(Answer::Reply(reply)) = receiver.handle_input(&mut input) else { panic!("a reply") };
    assert_eq!(reply.read::<op::Malloc>(), Ok(Err(HipError::OUT_OF_MEMORY)));
}

fn fatal(receiver: &mut ReplyReceiver, bytes: &[u8]) -> Fatal {
    let mut input = bytes;
    let why = loop {
        match receiver.handle_input(&mut input) {
            Ok(Answer::NeedMore) => panic!("no failure in {bytes:?}"),
            Ok(_) => {}
            Err(why) => break why,
        }
    };
    assert_eq!(receiver.handle_input(&mut &bytes[..]), Err(why), "it stays so");
    assert_eq!(receiver.handle_eof(), Err(why));
    why
}

#[test]
fn what_is_no_reply_to_the_next_call_ends_the_connection() {
    let op = Opcode::MALLOC;
    let wrong = |id, op| Fatal::WrongReply { expected_id: 1, expected: Opcode::MALLOC, id, op };
    let two = || waiting(&[malloc, malloc]);
    assert_eq!(fatal(&mut two(), &reply(op, 2, 0, &[0; 8])), wrong(2, op));
    assert_eq!(fatal(&mut two(), &reply(Opcode::FREE, 1, 0, &[])), wrong(1, Opcode::FREE));
    assert_eq!(fatal(&mut waiting(&[]), &reply(op, 1, 0, &[0; 8])), Fatal::UnexpectedReply { id: 1, op });
    let twice = [reply(op, 1, 0, &[0; 8]), reply(op, 1, 0, &[0; 8])].concat();
    assert_eq!(
        fatal(&mut two(), &twice),
        Fatal::WrongReply { expected_id: 2, expected: op, id: 1, op },
        "a reply twice"
    );
    assert_eq!(fatal(&mut two(), &raw(op, 1, 0, &[0; 12])), Fatal::NotAReply { op });
    assert_eq!(fatal(&mut two(), b"HTTP/1.1 400 Bad Request"), Fatal::BadMagic { magic: 0x5054_5448 });
    let other = Header { version: 0x0200, ..Header::new(op, 1, 12, FLAG_RESPONSE) };
    assert_eq!(fatal(&mut two(), &other.to_bytes()), Fatal::BadVersion { version: 0x0200 });
    let long = Header::new(op, 1, u64::MAX, FLAG_RESPONSE);
    let max = Limits::default().payload_max;
    assert_eq!(fatal(&mut two(), &long.to_bytes()), Fatal::TooLong { op, length: u64::MAX, max });
}

#[test]
fn a_successful_reply_has_to_be_whole() {
    let short = |op, need, have| Fatal::ShortReply { op, need, have };
    let one = || waiting(&[malloc]);
    assert_eq!(fatal(&mut one(), &raw(Opcode::MALLOC, 1, FLAG_RESPONSE, &[])), short(Opcode::MALLOC, 12, 0));
    assert_eq!(
        fatal(&mut one(), &raw(Opcode::MALLOC, 1, FLAG_RESPONSE, &[0; 3])),
        short(Opcode::MALLOC, 12, 3)
    );
    assert_eq!(fatal(&mut one(), &reply(Opcode::MALLOC, 1, 0, &[0; 7])), short(Opcode::MALLOC, 12, 11));
    assert_eq!(
        fatal(&mut waiting(&[copy]), &reply(Opcode::MEMCPY, 1, 0, b"hell")),
        short(Opcode::MEMCPY, 9, 8)
    );
}

#[test]
fn the_end_may_be_told_before_more_is_asked_for() {
    for (body, end) in [(&[0; 8][..], Ok(())), (&[0; 9], Err(Fatal::EofInsideMessage))] {
        let mut receiver = waiting(&[malloc]);
        let bytes = reply(Opcode::MALLOC, 1, 0, body);
        assert!(matches!(receiver.handle_input(&mut bytes.as_slice()), Ok(Answer::Reply(_))));
        assert_eq!(receiver.handle_eof(), end);
    }
}

#[test]
fn the_halves_work_apart() {
    let (mut sender, mut receiver) = Client::<Vec<u8>>::new(Limits::default()).into_halves();
    let (give, take) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for call in take {
            receiver.expect(call).expect("room");
        }
        let bytes = [reply(Opcode::MALLOC, 1, 0, &[7; 8]), reply(Opcode::MALLOC, 2, 2, &[])].concat();
        let mut input = bytes.as_slice();
        let mut learned = Vec::new();
        while let Answer::Reply(reply) = receiver.handle_input(&mut input).expect("good replies") {
            learned.push(reply.read::<op::Malloc>().expect("whole").map(|reply| reply.device_ptr));
        }
        learned
    });
    for _ in 0..2 {
        give.send(malloc(&mut sender)).expect("the other thread listens");
    }
    drop(give);
    let learned = reader.join().expect("no panic");
    assert_eq!(learned, [Ok(0x0707_0707_0707_0707), Err(HipError::OUT_OF_MEMORY)]);
}

#[test]
fn raw_requests_are_what_they_are() {
    let mut sender = Sender::<Vec<u8>>::new();
    let unknown = Opcode(0x7001);
    let call =
        sender.request_raw(unknown, b"any", Some(b"thing".to_vec()), true).expect("room").expect("it waits");
    let mut outbox = Outbox::new();
    sender.poll_transmit(&mut outbox);
    assert_eq!(flat(&outbox), raw(unknown, 1, 0, b"anything"));
    let mut receiver = ReplyReceiver::new(Limits::default());
    receiver.expect(call).expect("room");
    let bytes = reply(unknown, 1, 0, b"something");
    let mut input = bytes.as_slice();
    let Ok(Answer::Reply(reply)) = receiver.handle_input(&mut input) else { panic!("a reply") };
    assert_eq!((reply.error, reply.fixed, reply.inline), (None, &b""[..], 9));
}
