//! Tests how a session and its client agree on features of the extension.

mod common;

use common::{Peer, scripted, worker};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError};

const ALL: u64 = u64::MAX;

fn offer(features: u64) -> Offer {
    Offer { features, reserved: 0 }
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
