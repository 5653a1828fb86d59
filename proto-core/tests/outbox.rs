//! Outgoing chunks and the cursor of partial writes, by way of both ends.

mod support;

use hipr_proto::{Inline, Outbox, Outcome, Responder, Sender, op};
use support::{Desk, Random, flat, request};

fn d2h(size: u64) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 }
}

fn h2d(size: usize) -> op::Memcpy {
    op::Memcpy { dst: 1, src: 2, size: size as u64, kind: op::kind::HOST_TO_DEVICE, stream: 0 }
}

/// Fills an outbox with what several requests leave: gathered bytes and inline chunks in turn.
fn filled() -> Outbox<Vec<u8>> {
    let mut sender = Sender::new();
    let mut outbox = Outbox::new();
    for n in 0..5u8 {
        sender.request(&op::Free { device_ptr: n.into() }, &[], None).expect("room");
        sender.request(&h2d(5000), &[], Some(vec![n; 5000])).expect("room");
    }
    sender.request(&op::Ping {}, &[], None).expect("room");
    sender.poll_transmit(&mut outbox);
    outbox
}

#[test]
fn partial_writes_lose_and_repeat_nothing() {
    let whole = flat(&filled());
    assert_eq!(whole.len(), 5 * (32 + 60 + 5000) + 24);
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let max = [10, 6000, 100_000][random.below(3) as usize];
        let mut outbox = filled();
        let mut written = Vec::<u8>::new();
        while !outbox.is_empty() {
            assert_eq!(outbox.len_bytes(), whole.len() - written.len());
            let n = (1 + random.below(max) as usize).min(outbox.len_bytes());
            written.extend(outbox.slices().flatten().take(n));
            outbox.advance(n);
            assert!(outbox.slices().all(|slice| !slice.is_empty()), "no empty slice is given to the kernel");
        }
        assert_eq!((outbox.slices().count(), outbox.len_bytes()), (0, 0));
        assert!(written == whole, "seed {seed}");
    }
}

#[test]
fn what_is_appended_comes_behind_what_is_there() {
    let whole = flat(&filled());
    for written in 0..whole.len() {
        if written % 97 != 0 && written > 200 {
            continue;
        }
        // One that is partly written behind one that is partly written.
        let (mut first, mut second) = (filled(), filled());
        first.advance(written);
        second.advance(whole.len() - 1 - written);
        let expected = [&whole[written..], &whole[whole.len() - 1 - written..]].concat();
        first.append(&mut second);
        assert!(flat(&first) == expected, "{written}");
        assert_eq!((first.len_bytes(), second.len_bytes()), (expected.len(), 0));
        assert_eq!(flat(&second), []);
        first.advance(expected.len());
        assert!(first.is_empty());
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
