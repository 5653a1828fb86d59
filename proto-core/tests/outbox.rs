//! Tests the outbox's chunks and its cursor for partial writes, through a client and a server.

mod support;

use hipr_proto::{
    FLAG_HAS_INLINE_DATA, FLAG_RESPONSE, Inline, Opcode, Outbox, Outcome, Responder, Sender, op,
};
use proptest::prelude::*;
use proptest::sample::Index;
use support::{Desk, flat, proptest_config, raw, request};

fn d2h(size: u64) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 }
}

fn h2d(size: usize) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size: size as u64, kind: op::kind::HOST_TO_DEVICE, stream: 0 }
}

/// Returns an outbox that several requests filled with collected bytes and inline chunks in turn.
fn filled() -> Outbox<Vec<u8>> {
    let mut sender = Sender::new();
    let mut outbox = Outbox::new();
    for n in 0..2u8 {
        sender.request(&op::Free { device_ptr: n.into() }, &[], None).expect("room");
        sender.request(&h2d(4100), &[], Some((0..4100).map(|i| i as u8 ^ n).collect())).expect("room");
    }
    sender.request(&op::Ping {}, &[], None).expect("room");
    sender.poll_transmit(&mut outbox);
    outbox
}

/// An action on two outboxes and a server that fills them.
#[derive(Debug, Clone)]
enum Action {
    /// The server sends a reply with inline bytes in chunks of these lengths.
    Reply(Vec<usize>),
    /// The server's queued bytes are moved to this outbox.
    Poll(usize),
    /// The other outbox is appended to this one.
    Append(usize),
    /// Some bytes of this outbox are written.
    Write(usize, Index),
    /// The first slice of this outbox is written, or a byte less or more.
    WriteSlice(usize, i64),
}

fn action() -> impl Strategy<Value = Action> {
    let chunks = proptest::collection::vec(prop_oneof![0..4usize, 20..5000usize], 0..4);
    prop_oneof![
        3 => chunks.prop_map(Action::Reply),
        2 => (0..2usize).prop_map(Action::Poll),
        1 => (0..2usize).prop_map(Action::Append),
        1 => (0..2usize, any::<Index>()).prop_map(|(which, n)| Action::Write(which, n)),
        2 => (0..2usize, -1..=1i64).prop_map(|(which, n)| Action::WriteSlice(which, n)),
    ]
}

/// A server that replies to copies with consecutive bytes.
struct Source {
    desk: Desk,
    replies: u32,
    counter: u8,
}

impl Source {
    /// Completes the next request; returns the bytes that have to be sent.
    fn reply(&mut self, chunks: &[usize]) -> Vec<u8> {
        self.replies += 1;
        let len: usize = chunks.iter().sum();
        let got = self.desk.one(&request(&d2h(len as u64), self.replies, 0, &[]));
        let outcome = Outcome::ok(&()).with_inline(Inline::Stream(len as u64));
        self.desk.complete(got.ticket, outcome).expect("in order");
        let mut body = vec![0; 4];
        for len in chunks {
            let chunk: Vec<u8> = (0..*len).map(|_| self.count()).collect();
            body.extend_from_slice(&chunk);
            self.desk.server.push_data(chunk).expect("owed");
        }
        let flags = if len > 0 { FLAG_RESPONSE | FLAG_HAS_INLINE_DATA } else { FLAG_RESPONSE };
        raw(Opcode::MEMCPY, self.replies, flags, &body)
    }

    fn count(&mut self) -> u8 {
        self.counter = self.counter.wrapping_mul(5).wrapping_add(1);
        self.counter
    }
}

proptest! {
    #![proptest_config(proptest_config(500))]

    #[test]
    fn bytes_leave_in_order_and_once(actions in proptest::collection::vec(action(), 0..40)) {
        let mut source = Source { desk: Desk::new(), replies: 0, counter: 0 };
        let (mut outboxes, mut models) = ([Outbox::new(), Outbox::new()], [vec![], vec![]]);
        let mut queued = Vec::new();
        for action in actions {
            match action {
                Action::Reply(chunks) => queued.extend(source.reply(&chunks)),
                Action::Poll(to) => {
                    models[to].append(&mut queued);
                    let something = source.desk.server.poll_transmit(&mut outboxes[to]);
                    prop_assert_eq!(something, !models[to].is_empty());
                }
                Action::Append(to) => {
                    let ([first, second], [model, other]) = (&mut outboxes, &mut models);
                    let (first, second) = if to == 0 { (first, second) } else { (second, first) };
                    let (model, other) = if to == 0 { (model, other) } else { (other, model) };
                    first.append(second);
                    model.append(other);
                }
                Action::Write(of, n) => {
                    let n = n.index(models[of].len() + 1);
                    outboxes[of].advance(n);
                    models[of].drain(..n);
                }
                Action::WriteSlice(of, more) => {
                    let n = outboxes[of].slices().next().map_or(0, <[u8]>::len).saturating_add_signed(more as isize);
                    let n = n.min(models[of].len());
                    outboxes[of].advance(n);
                    models[of].drain(..n);
                }
            }
            for (outbox, model) in outboxes.iter().zip(&models) {
                prop_assert_eq!(&flat(outbox), model);
                prop_assert_eq!((outbox.len_bytes(), outbox.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(outbox.slices().all(|slice| !slice.is_empty()), "no empty slice is given to the kernel");
            }
        }
    }
}

/// Returns an outbox with replies, some of them with inline bytes, and the bytes it has to send.
fn replies() -> (Outbox<Vec<u8>>, Vec<u8>) {
    let mut source = Source { desk: Desk::new(), replies: 0, counter: 0 };
    let bytes = [&[3, 1, 7][..], &[], &[2]].map(|chunks| source.reply(chunks)).concat();
    let mut outbox = Outbox::new();
    source.desk.server.poll_transmit(&mut outbox);
    (outbox, bytes)
}

#[test]
fn a_write_may_end_at_every_byte() {
    let len = replies().1.len();
    for (first, second) in (0..=len).flat_map(|first| (0..=len).map(move |second| (first, second))) {
        let ((mut outbox, bytes), (mut later, _)) = (replies(), replies());
        outbox.advance(first);
        assert!(flat(&outbox) == bytes[first..], "{first}");
        // Behind what is partly written comes what is partly written.
        later.advance(second);
        outbox.append(&mut later);
        assert!(flat(&outbox) == [&bytes[first..], &bytes[second..]].concat(), "{first}, {second}");
        assert_eq!((later.len_bytes(), later.slices().count()), (0, 0));
    }
}

#[test]
fn appending_to_nothing_moves() {
    let (mut first, mut second) = (Outbox::new(), filled());
    let inline = second.slices().nth(1).map(<[u8]>::as_ptr);
    first.append(&mut second);
    assert_eq!(first.slices().nth(1).map(<[u8]>::as_ptr), inline, "inline bytes stay where they are");
    assert!(second.is_empty());
    first.append(&mut filled());
    assert_eq!(first.slices().nth(1).map(<[u8]>::as_ptr), inline);
}

#[test]
fn small_replies_leave_in_one_write_and_inline_bytes_from_where_they_are() {
    let mut desk = Desk::new();
    for id in 0..100 {
        desk.carry_out(&request(&op::DeviceSynchronize {}, id, 0, &[]), Ok(()));
    }
    let bytes = vec![3; 9];
    let inline = bytes.as_ptr();
    let got = desk.one(&request(&d2h(9), 100, 0, &[]));
    desk.complete(got.ticket, Outcome::ok(&()).with_inline(Inline::Whole(bytes))).expect("in order");
    desk.carry_out(&request(&op::DeviceSynchronize {}, 101, 0, &[]), Ok(()));
    let mut outbox = Outbox::new();
    assert!(desk.server.poll_transmit(&mut outbox));
    let slices: Vec<&[u8]> = outbox.slices().collect();
    assert_eq!(slices.iter().map(|slice| slice.len()).collect::<Vec<_>>(), [101 * 28, 9, 28]);
    assert_eq!(slices[1].as_ptr(), inline);
}

#[test]
fn nothing_to_send() {
    let mut outbox = Outbox::<Vec<u8>>::new();
    assert!(!Responder::new().poll_transmit(&mut outbox));
    outbox.advance(0);
    assert!(outbox.is_empty());
}
