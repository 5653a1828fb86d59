//! Tests how a session and its client agree on features of the extension.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use common::{Peer, message, scripted, worker};
use hipr_proto::op::*;
use hipr_proto::{Features, Header, HipError, HipResult, ReplyMode, Wire};

const ALL: u64 = u64::MAX;

fn offer(features: u64) -> Offer {
    Offer { features, part: 0 }
}

#[test]
fn a_worker_accepts_what_both_sides_have() {
    let ours = Features::STATIC.union(Features::PAGES);
    let (worker, _) = scripted(|config| config.session.features = Some(ours));
    let both = |features: Features| {
        let mut peer = Peer::hello(worker.local_addr());
        peer.call(&offer(features.bits())).map(|reply| Features::from_bits(reply.features))
    };
    assert_eq!(both(Features::from_bits(ALL)), Ok(ours));
    assert_eq!(both(Features::NAMES.union(Features::PAGES)), Ok(Features::PAGES));
    assert_eq!(both(Features::NONE), Ok(Features::NONE));
    // Bits that nobody knows.
    assert_eq!(both(Features::from_bits(1 << 63 | 1 << 40)), Ok(Features::NONE));
}

#[test]
fn features_are_offered_once() {
    let (worker, _) = scripted(|config| config.session.features = Some(Features::PAGES));
    let mut peer = Peer::hello(worker.local_addr());
    assert_eq!(peer.call(&offer(0)).map(|reply| reply.features), Ok(0));
    assert_eq!(peer.call(&offer(ALL)), Err(HipError::INVALID_VALUE), "what was agreed on stays");
    peer.call(&DeviceReset {}).unwrap();
    assert_eq!(peer.call(&offer(ALL)), Err(HipError::INVALID_VALUE), "a reset takes what the session owns");
    let mut other = Peer::hello(worker.local_addr());
    assert_eq!(other.call(&offer(ALL)).map(|reply| reply.features), Ok(Features::PAGES.bits()));
}

#[test]
fn an_offer_neither_takes_nor_hides_a_kept_error() {
    let worker = worker("script");
    let mut peer = Peer::hello(worker.local_addr());
    peer.forget(&Free { device_ptr: 0xdead_0000 }, &[]);
    assert!(peer.call(&offer(ALL)).is_ok());
    assert_eq!(peer.call(&GetDevice {}).map(drop), Err(HipError::INVALID_VALUE));
}

#[test]
fn a_worker_without_the_extension_knows_no_offer() {
    let (worker, _) = scripted(|config| config.session.features = None);
    let mut peer = Peer::hello(worker.local_addr());
    assert_eq!(peer.call(&offer(ALL)), Err(HipError::NOT_SUPPORTED));
    assert_eq!(peer.call(&offer(ALL)), Err(HipError::NOT_SUPPORTED));
    peer.malloc(16);
}

/// Opens a session that has the feature STATIC.
fn with_static(address: hipr_worker::Address) -> Peer {
    let mut peer = Peer::hello(address);
    assert_eq!(peer.call(&offer(Features::STATIC.bits())).map(|reply| reply.features), Ok(1));
    peer
}

fn list_of(max_bytes: u32) -> Static {
    Static { max_bytes, reserved: 0 }
}

/// Reads a list, which has to be whole.
fn read(count: u32, mut list: &[u8]) -> Vec<StaticEntry<'_>> {
    let entries = (0..count).map(|_| StaticEntry::take(&mut list).expect("a whole entry")).collect();
    assert!(list.is_empty(), "nothing follows the last entry");
    entries
}

/// Sends the encoded fixed part of a request and returns its reply.
fn ask_raw(peer: &mut Peer, op: Opcode, fixed: &[u8]) -> HipResult<Vec<u8>> {
    peer.stream.write_all(&message(op, 7, 0, fixed)).unwrap();
    let mut header = [0; Header::SIZE];
    peer.stream.read_exact(&mut header).unwrap();
    let header = Header::take(&mut &header[..]).unwrap();
    let mut payload = vec![0; usize::try_from(header.payload_length).unwrap()];
    peer.stream.read_exact(&mut payload).unwrap();
    let (code, reply) = payload.split_first_chunk().unwrap();
    HipError::check(i32::from_le_bytes(*code)).map(|()| reply.to_vec())
}

#[test]
fn the_list_says_what_each_request_says() {
    for name in ["sim", "script", "null"] {
        let worker = worker(name);
        let mut peer = with_static(worker.local_addr());
        let (head, list) = peer.call_inline(&list_of(u32::MAX), &[]).unwrap();
        let entries = read(head.count, &list);
        let mut other = Peer::hello(worker.local_addr());
        for entry in &entries {
            let asked = ask_raw(&mut other, entry.op, entry.request);
            assert_eq!(entry.reply.map(<[u8]>::to_vec), asked, "{name}: {entry:?}");
        }
        let listed: BTreeSet<Opcode> = entries.iter().map(|entry| entry.op).collect();
        let listable = |info: &&Info| info.statics.is_some_and(|mark| !mark.fields.contains(&Domain::Asked));
        let expected: BTreeSet<Opcode> = OPS.iter().filter(listable).map(|info| info.code).collect();
        assert_eq!(listed, expected, "{name}");
        let different: BTreeSet<_> =
            entries.iter().map(|entry| (entry.op, entry.device, entry.request)).collect();
        assert_eq!(different.len(), entries.len(), "{name}: each once");
        let attributes = entries.iter().filter(|entry| entry.op == Opcode::DEVICE_GET_ATTRIBUTE);
        assert!(attributes.clone().count() > 100, "{name}: all attributes");
        let refused = attributes.filter(|entry| entry.reply.is_err()).count();
        assert_eq!(refused > 0, name == "sim", "{name}: refused attributes are listed with their error");
    }
}

#[test]
fn each_device_has_its_replies() {
    let (worker, script) = scripted(|_| {});
    script.set_devices(3);
    let mut peer = with_static(worker.local_addr());
    peer.call(&SetDevice { device_id: 1 }).unwrap();
    let (head, list) = peer.call_inline(&list_of(u32::MAX), &[]).unwrap();
    let mut counts = BTreeMap::new();
    for entry in read(head.count, &list) {
        *counts.entry(entry.op).or_insert(0) += 1;
        if entry.op == Opcode::DEVICE_GET_STREAM_PRIORITY_RANGE {
            let mut reply = entry.reply.unwrap();
            let range = DeviceGetStreamPriorityRangeReply::take(&mut reply).unwrap();
            assert_eq!(Some(-range.greatest_priority), entry.device, "the range of its device");
        } else {
            assert_eq!(entry.device, None);
        }
    }
    let count = |op: Opcode| counts.get(&op).copied().unwrap_or(0);
    assert_eq!(count(Opcode::GET_DEVICE_COUNT), 1);
    assert_eq!(count(Opcode::GET_DEVICE_PROPERTIES), 3);
    assert_eq!(count(Opcode::DEVICE_CAN_ACCESS_PEER), 9);
    assert_eq!(count(Opcode::DEVICE_GET_STREAM_PRIORITY_RANGE), 3);
    assert_eq!(
        peer.call(&GetDevice {}).map(|reply| reply.device_id),
        Ok(1),
        "the current device is as before"
    );
}

#[test]
fn a_list_has_a_bound_and_comes_once() {
    let worker = worker("sim");
    let list = |max_bytes| {
        let mut peer = with_static(worker.local_addr());
        let (head, list) = peer.call_inline(&list_of(max_bytes), &[]).unwrap();
        read(head.count, &list);
        list
    };
    let whole = list(u32::MAX);
    assert!(whole.len() <= STATIC_LIST_MAX_BYTES as usize);
    for max_bytes in [0, 1, 15, 16, 100, 1000, whole.len() as u32 - 1, whole.len() as u32] {
        let part = list(max_bytes);
        assert!(part.len() <= max_bytes as usize && whole.starts_with(&part), "{max_bytes}");
    }
    assert_eq!(list(whole.len() as u32), whole);
    let mut peer = with_static(worker.local_addr());
    assert!(peer.call_inline(&list_of(100), &[]).is_ok());
    assert_eq!(peer.call(&list_of(100)).map(drop), Err(HipError::INVALID_VALUE), "it is much work");
    peer.call(&DeviceReset {}).unwrap();
    assert_eq!(peer.call(&list_of(100)).map(drop), Err(HipError::INVALID_VALUE));
}

#[test]
fn only_a_session_with_the_feature_has_the_list() {
    let (worker, _) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    assert_eq!(peer.call(&list_of(1000)).map(drop), Err(HipError::NOT_SUPPORTED), "nothing was offered");
    peer.call(&offer(!Features::STATIC.bits())).unwrap();
    assert_eq!(peer.call(&list_of(1000)).map(drop), Err(HipError::NOT_SUPPORTED), "it was not offered");
    // In one flight, as clients ask: the offer takes effect for what comes behind it.
    let mut peer = Peer::hello(worker.local_addr());
    let offered = peer.send(&offer(ALL), &[], ReplyMode::Always).unwrap();
    let listed = peer.send(&list_of(1000), &[], ReplyMode::Always).unwrap();
    peer.flush();
    assert!(peer.reply::<Offer>(offered).is_ok());
    assert!(peer.reply::<Static>(listed).is_ok_and(|(head, _)| head.count > 0));
}

#[test]
fn an_error_that_may_not_come_again_is_no_answer() {
    for call in ["open", "device_count", "properties", "attribute", "version", "stream_priority_range"] {
        let (worker, script) = scripted(|_| {});
        let mut peer = with_static(worker.local_addr());
        script.fail_next(call, HipError(205));
        assert_eq!(peer.call(&list_of(u32::MAX)).map(drop), Err(HipError(205)), "{call}");
        assert!(
            peer.call(&GetDeviceProperties { device_id: 0 }).is_ok(),
            "{call}: what is asked has its own answer"
        );
    }
    // A lasting one is part of the list.
    let (worker, script) = scripted(|_| {});
    let mut peer = with_static(worker.local_addr());
    script.fail_next("attribute", HipError::INVALID_VALUE);
    let (head, list) = peer.call_inline(&list_of(u32::MAX), &[]).unwrap();
    let refused = |entry: &&StaticEntry<'_>| {
        entry.op == Opcode::DEVICE_GET_ATTRIBUTE && entry.reply == Err(HipError::INVALID_VALUE)
    };
    assert_eq!(read(head.count, &list).iter().filter(refused).count(), 1);
}
