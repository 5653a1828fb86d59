//! Tests the marks of static operations and the list of their replies.

mod support;

use hipr_proto::op::{Domain, StaticEntry};
use hipr_proto::{Class, HipError, OPS, Opcode, Wire, WireError, op};
use proptest::prelude::*;
use support::proptest_config;

#[test]
fn static_operations_are_answered_and_change_nothing() {
    let marked: Vec<_> = OPS.iter().filter(|info| info.statics.is_some()).collect();
    assert!(marked.len() > 10);
    for info in marked {
        assert_eq!(info.class, Class::Plain, "{}", info.name);
        let reads =
            ["GET_", "_GET", "CHOOSE", "CAPABILITY", "TOTAL_MEM", "CAN_ACCESS", "RANGE", "GRANULARITY"];
        assert!(reads.iter().any(|word| info.name.contains(word)), "{} sets something", info.name);
        assert!(info.reply.size > 0, "{} says nothing", info.name);
    }
}

#[test]
fn requests_are_made_from_the_marks() {
    let requests = |op: Opcode, devices: i32| op.info().expect("a row").static_requests(devices, &[7, 93]);
    assert_eq!(requests(Opcode::GET_DEVICE_COUNT, 3), [Vec::<u8>::new()]);
    assert_eq!(requests(Opcode::GET_DEVICE_PROPERTIES, 2), [vec![0, 0, 0, 0], vec![1, 0, 0, 0]]);
    let attribute = |device: u8, number: u8| vec![device, 0, 0, 0, number, 0, 0, 0];
    let expected = [attribute(0, 7), attribute(0, 93), attribute(1, 7), attribute(1, 93)];
    assert_eq!(requests(Opcode::DEVICE_GET_ATTRIBUTE, 2), expected);
    assert_eq!(requests(Opcode::DEVICE_CAN_ACCESS_PEER, 3).len(), 9);
    assert_eq!(requests(Opcode::DEVICE_GET_UUID, 2), [vec![0; 8], vec![1, 0, 0, 0, 0, 0, 0, 0]]);
    for info in OPS {
        let requests = info.static_requests(2, &[1]);
        assert!(requests.iter().all(|request| request.len() == info.request.size), "{}", info.name);
        let listed = info.statics.is_some_and(|mark| !mark.fields.contains(&Domain::Asked));
        assert_eq!(!requests.is_empty(), listed, "{}", info.name);
        let without = info.static_requests(0, &[]);
        assert_eq!(without.is_empty(), info.request.size > 0 || !listed, "{}", info.name);
    }
}

fn encoded(entry: &StaticEntry<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry.put(&mut bytes).expect("a short entry");
    assert_eq!(bytes.len(), entry.len_bytes());
    bytes
}

#[test]
fn an_entry_that_is_cut_is_noticed_at_every_byte() {
    let reply = Ok(&b"reply"[..]);
    let entry = StaticEntry { op: Opcode::GET_DEVICE_PROPERTIES, device: Some(3), request: b"asked", reply };
    let bytes = encoded(&entry);
    for len in 0..bytes.len() {
        let cut = StaticEntry::take(&mut &bytes[..len]);
        assert!(matches!(cut, Err(WireError::Short { .. })), "{len} bytes: {cut:?}");
    }
    assert_eq!(StaticEntry::take(&mut bytes.as_slice()), Ok(entry));
}

#[test]
fn an_entry_that_cannot_be_is_refused() {
    let head = |device, error_code, reply_length| {
        let head = op::StaticHead { op: 1, request_length: 0, device, error_code, reply_length };
        let mut bytes = Vec::new();
        head.put(&mut bytes);
        bytes.resize(bytes.len() + 4, 0);
        bytes
    };
    for bytes in [head(-2, 0, 4), head(i32::MIN, 0, 0), head(-1, 1, 4), head(0, -1, 1)] {
        assert_eq!(StaticEntry::take(&mut bytes.as_slice()), Err(WireError::Value));
    }
    let long = vec![0; usize::from(u16::MAX) + 1];
    let mut out = Vec::new();
    let entry = StaticEntry { op: Opcode(1), device: None, request: &long, reply: Ok(&[]) };
    assert!(matches!(entry.put(&mut out), Err(WireError::Long { .. })));
    assert!(out.is_empty());
}

proptest! {
    #![proptest_config(proptest_config(300))]

    #[test]
    fn lists_are_read_as_they_were_written(
        entries in proptest::collection::vec(
            (any::<u16>(), proptest::option::of(0..i32::MAX), proptest::collection::vec(any::<u8>(), 0..40),
             prop_oneof![proptest::collection::vec(any::<u8>(), 0..40).prop_map(Ok), (1..999i32).prop_map(Err)]),
            0..20,
        ),
    ) {
        let mut list = Vec::new();
        for (op, device, request, reply) in &entries {
            let reply = reply.as_deref().map_err(|code| HipError(*code));
            list.extend(encoded(&StaticEntry { op: Opcode(*op), device: *device, request, reply }));
        }
        let mut rest = list.as_slice();
        for (op, device, request, reply) in &entries {
            let reply = reply.as_deref().map_err(|code| HipError(*code));
            let entry = StaticEntry { op: Opcode(*op), device: *device, request, reply };
            prop_assert_eq!(StaticEntry::take(&mut rest), Ok(entry));
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut rest = bytes.as_slice();
        while let Ok(entry) = StaticEntry::take(&mut rest) {
            prop_assert!(entry.request.len() <= bytes.len());
        }
    }
}
