//! Tests the texts of errors.

use hipr_proto::{Fatal, HipError, HipResult, Misuse, Opcode, Text, WireError};

fn said<T: std::error::Error + Copy>(cases: &[(T, &str)]) {
    for (error, text) in cases {
        assert_eq!(&error.to_string(), text);
    }
}

#[test]
fn what_the_peer_did_wrong() {
    let op = Opcode::MALLOC;
    said(&[
        (Fatal::BadMagic { magic: 0x1234 }, "bad magic 0x00001234: the peer does not speak HIPR"),
        (Fatal::BadVersion { version: 0x0203 }, "the peer speaks protocol version 2.3 instead of 1.x"),
        (Fatal::TooLong { op, length: 9, max: 8 }, "the payload of MALLOC has 9 bytes; the limit is 8"),
        (Fatal::NotARequest { op }, "received a response (MALLOC) instead of a request"),
        (Fatal::NotAReply { op }, "received a request (MALLOC) instead of a response"),
        (
            Fatal::UnexpectedReply { id: 7, op },
            "received a response (MALLOC, id 7) that no request waits for",
        ),
        (
            Fatal::WrongReply { expected_id: 7, expected: op, id: 8, op: Opcode(0x0fff) },
            "received a response to Opcode(0x0fff) (id 8) instead of MALLOC (id 7)",
        ),
        (
            Fatal::ShortReply { op, need: 12, have: 11 },
            "the payload of a response to MALLOC has 11 bytes instead of 12",
        ),
        (Fatal::EofInsideMessage, "the connection ended inside a message"),
        (
            Fatal::EofBeforeReply { waiting: 3 },
            "the connection ended while 3 requests waited for their responses",
        ),
    ]);
}

#[test]
fn what_the_caller_did_wrong() {
    let op = Opcode::MEMCPY;
    said(&[
        (Misuse::OutOfOrder { expected: 1, got: 2 }, "ticket 2 was completed before ticket 1"),
        (Misuse::StreamUnfinished { left: 5 }, "5 inline bytes of the last reply are missing"),
        (Misuse::StreamTooLong { left: 5, given: 6 }, "6 inline bytes were pushed to a reply that lacks 5"),
        (
            Misuse::ReplySize { op, need: 0, given: 8 },
            "the fixed part of a reply to MEMCPY has 8 bytes instead of 0",
        ),
        (
            Misuse::TailSize { op, need: 4, given: 3 },
            "MEMCPY was given 3 bytes after its fixed part instead of 4",
        ),
        (
            Misuse::Unflushed { queued: 65536 },
            "a request was made although 65536 queued bytes had to be sent first",
        ),
        (Misuse::TooManyCalls { max: 2 }, "more than 2 requests wait for responses"),
    ]);
}

#[test]
fn what_is_wrong_with_bytes() {
    said(&[
        (WireError::Short { need: 8, have: 7 }, "the layout needs 8 bytes, the message has 7"),
        (WireError::Long { have: 9, max: 8 }, "a part of the message has 9 bytes, at most 8 are allowed"),
        (WireError::Argument { index: 2 }, "argument 2 lies outside the argument data"),
        (WireError::Name, "the name is empty or not UTF-8"),
        (WireError::Value, "a field has an undefined value"),
    ]);
}

#[test]
fn what_the_device_said() {
    said(&[
        (HipError::OUT_OF_MEMORY, "hipErrorOutOfMemory: out of memory (2)"),
        (HipError(-7), "hipErrorUnknown: unknown error (-7)"),
    ]);
    assert_eq!(format!("{:?}", HipError::OUT_OF_MEMORY), "hipErrorOutOfMemory(2)");
    let outcomes: [HipResult<()>; 2] = [Ok(()), Err(HipError::OUT_OF_MEMORY)];
    assert_eq!(outcomes.map(|outcome| HipError::code_of(&outcome)), [0, 2]);
}

#[test]
fn text_is_padded_like_any_other() {
    let name: Text<16> = "gfx942".into();
    assert_eq!(format!("{name}|{name:>8}|{name:?}"), "gfx942|  gfx942|\"gfx942\"");
}
