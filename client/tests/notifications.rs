//! Tests what a connection hears that it has not asked for.

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hipr_client::{CallError, Connection, Failure, WorkerAddress};
use hipr_proto::op::{Free, GetDevice, Memset, Ping};
use hipr_proto::{Features, HipError, Op};
use support::scripted;

const NOWHERE: u64 = 0xdead_0000_0000;

/// Connects and offers these features; returns what is heard of failures, too.
fn connect(offer: Option<Features>) -> (hipr_worker::Handle, Connection, Arc<Mutex<Vec<Failure>>>) {
    let (worker, _) = scripted();
    let address = WorkerAddress::new(&worker.local_addr().to_string());
    let connection =
        Connection::connect_offering(&address, Duration::from_secs(20), offer).expect("a worker");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&heard);
    connection.on_failure(move |failure| into.lock().expect("no panic").push(failure.clone()));
    (worker, connection, heard)
}

#[test]
fn a_failure_is_told_once_and_says_what_failed() {
    let (_worker, connection, heard) = connect(Some(Features::NOTIFICATIONS));
    let invalid = HipError::INVALID_VALUE;
    connection.tell(&Free { device_ptr: 0 }).expect("a connection");
    connection.tell(&Memset { dst: NOWHERE, value: 7, size: 16, stream: 0 }).expect("a connection");
    connection.tell(&Free { device_ptr: NOWHERE }).expect("a connection");
    assert_eq!(connection.ask(&Ping {}), Ok(()), "it reports nothing");
    {
        let heard = heard.lock().expect("no panic");
        let [failure] = heard.as_slice() else { panic!("{heard:?}") };
        // INIT, OFFER and the first FREE come before.
        assert_eq!((failure.request, failure.op, failure.error), (4, Memset::OPCODE, invalid));
        assert_eq!((failure.function, failure.stream), (0, 0));
        let text = failure.to_string();
        assert!(text.starts_with("hipMemset failed on the worker with hipErrorInvalidValue"), "{text}");
        assert!(text.contains("request 4: Memset { dst: ") && text.contains("size: 16"), "{text}");
    }
    assert_eq!(connection.ask(&GetDevice {}).map(drop), Err(CallError::Hip(invalid)), "it is still reported");
    connection.tell(&Free { device_ptr: NOWHERE }).expect("a connection");
    assert_eq!(connection.ask(&GetDevice {}).map(drop), Err(CallError::Hip(invalid)));
    assert_eq!(heard.lock().expect("no panic").len(), 2, "the next one is told again");
}

#[test]
fn nothing_is_told_to_a_client_that_does_not_offer_to_hear_it() {
    for offer in [None, Some(Features::NONE), Some(Features::NAMES)] {
        let (_worker, connection, heard) = connect(offer);
        connection.tell(&Free { device_ptr: NOWHERE }).expect("a connection");
        let asked = connection.ask(&GetDevice {}).map(drop);
        assert_eq!(asked, Err(CallError::Hip(HipError::INVALID_VALUE)));
        assert!(heard.lock().expect("no panic").is_empty());
    }
}
