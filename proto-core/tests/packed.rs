//! The bytes of packed copies and code objects on the wire, written by hand from the layout of rule 14's operations.

use hipr_proto::op::{self, purpose};
use hipr_proto::{Answer, Client, Inline, Limits, Op, Outbox, Outcome, Rx, Server};

/// Returns the bytes of hexadecimal digits, between which there are spaces.
fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).expect("digits")).collect()
}

/// Checks a request's bytes, that a server reads the request from them, a reply's bytes, and that the client reads that.
fn golden<O: Op + PartialEq + std::fmt::Debug>(
    request: &O,
    inline: &[u8],
    asks: &str,
    reply: &O::Reply,
    data: &[u8],
    answers: &str,
) where
    O::Reply: PartialEq + std::fmt::Debug,
{
    let (asks, answers) = (bytes(asks), bytes(answers));
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    let sent = (!inline.is_empty()).then(|| inline.to_vec());
    client.request_with(request, &[], sent, hipr_proto::ReplyMode::Always).expect("a good request");
    let mut outbox = Outbox::new();
    client.poll_transmit(&mut outbox);
    assert_eq!(outbox.slices().flatten().copied().collect::<Vec<u8>>(), asks, "{}", O::OPCODE);

    let mut server = Server::<Vec<u8>>::new(Limits::default());
    let mut input = asks.as_slice();
    let ticket = match server.handle_input(&mut input) {
        Ok(Rx::Request { ticket, op, mut fixed, tail }) => {
            assert_eq!((op, tail), (O::OPCODE, inline.len() as u64));
            assert_eq!(O::take(&mut fixed).as_ref(), Ok(request));
            ticket
        }
        other => panic!("{other:?} instead of a request"),
    };
    if !inline.is_empty() {
        let data = server.handle_input(&mut input).expect("data");
        assert!(matches!(data, Rx::Data { bytes, last: true } if bytes == inline), "{data:?}");
    }
    let inline = if data.is_empty() { Inline::None } else { Inline::Whole(data.to_vec()) };
    server.complete(ticket, Outcome::ok(reply).with_inline(inline)).expect("a good reply");
    let mut outbox = Outbox::new();
    server.poll_transmit(&mut outbox);
    assert_eq!(outbox.slices().flatten().copied().collect::<Vec<u8>>(), answers, "{}", O::OPCODE);
    let mut input = answers.as_slice();
    match client.handle_input(&mut input) {
        Ok(Answer::Reply(answer)) => assert_eq!(answer.read::<O>().expect("whole").as_ref(), Ok(reply)),
        other => panic!("{other:?} instead of a reply"),
    }
    if !data.is_empty() {
        assert_eq!(client.handle_input(&mut input), Ok(Answer::Data { bytes: data, last: true }));
    }
}

#[test]
fn packed_copies_and_code_have_golden_bytes() {
    golden(
        &op::PutPacked {
            dst: 0x1000,
            size: 0x20_0000,
            offset: 0x10_0000,
            length: 0x8000,
            packed: 3,
            stream: 0x77,
            waits: 1,
            purpose: purpose::KNOWN,
        },
        &[1, 2, 3],
        "52504948 0001 d002 01000000 3b00000000000000 04000000
         0010000000000000 0000200000000000 0000100000000000 0080000000000000 0300000000000000 7700000000000000
         01000000 01000000 010203",
        &(),
        &[],
        "52504948 0001 d002 01000000 0400000000000000 01000000 00000000",
    );
    golden(
        &op::GetPacked { src: 0x1000, size: 0x20_0000, offset: 0x10_0000, length: 0x8000, stream: 0x77 },
        &[],
        "52504948 0001 d102 01000000 2800000000000000 00000000
         0010000000000000 0000200000000000 0000100000000000 0080000000000000 7700000000000000",
        &op::GetPackedReply { is_packed: 1, reserved: 0 },
        &[4, 5],
        "52504948 0001 d102 01000000 0e00000000000000 05000000 00000000 01000000 00000000 0405",
    );
    golden(
        &op::ModuleLoadPacked { data_size: 0x4000, packed: 2 },
        &[6, 7],
        "52504948 0001 d202 01000000 1200000000000000 04000000 0040000000000000 0200000000000000 0607",
        &op::ModuleLoadDataReply { module: 0x88 },
        &[],
        "52504948 0001 d202 01000000 0c00000000000000 01000000 00000000 8800000000000000",
    );
}

/// The table has these operations for the feature, and the words by which a client knows what a part is for.
#[test]
fn numbers_are_those_of_the_protocol() {
    assert_eq!([purpose::WRITTEN, purpose::KNOWN, purpose::KEPT], [0, 1, 2]);
    assert_eq!(hipr_proto::Features::PACKED.bits(), 128);
    assert_eq!((op::PACKED_PART_MAX_BYTES, op::PACKED_WINDOW_LOG), (4 << 20, 20));
}
