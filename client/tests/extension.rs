//! Tests what a connection offers a worker, and that each pair of an old and a new side works.

mod support;

use std::sync::Arc;
use std::time::Duration;

use hipr_client::{CallError, Connection, Extra, FEATURES, WorkerAddress};
use hipr_proto::op::{self, OfferReply};
use hipr_proto::{Features, HipError, Opcode};
use hipr_worker::device::script::Script;
use hipr_worker::{Config, Worker};
use support::{Asked, FakeWorker, Reaction, bytes, easy};

const TIMEOUT: Duration = Duration::from_secs(20);
const ALL: Features = Features::from_bits(u64::MAX);

fn connect(address: impl ToString, offer: Option<Features>) -> Connection {
    let address = WorkerAddress::new(&address.to_string());
    Connection::connect_offering(&address, TIMEOUT, offer).expect("a worker is there")
}

/// Returns the reaction of a worker that accepts these features, whatever is offered.
fn accepting(features: Features) -> impl Fn(&Asked) -> Reaction {
    move |asked| match asked.op {
        Opcode::OFFER => Reaction::Good(bytes(&OfferReply { features: features.bits() })),
        _ => easy(asked),
    }
}

#[test]
fn an_offer_costs_no_round_trip() {
    let worker = FakeWorker::start(easy);
    let connection = Connection::connect(&WorkerAddress::new(&worker.address.to_string()), TIMEOUT);
    let stats = connection.expect("a worker is there").stats();
    assert_eq!((stats.round_trips, stats.writes), (1, 1), "one write, and one wait for both replies");
    let asked = worker.until(Opcode::OFFER);
    assert_eq!(asked.iter().map(|asked| asked.op).collect::<Vec<_>>(), [Opcode::INIT, Opcode::OFFER]);
    assert_eq!(asked[1].as_op::<op::Offer>(), op::Offer { features: FEATURES.bits(), part: 0 });
}

#[test]
fn the_first_lease_comes_with_the_first_flight() {
    let lease = op::MemLeaseReply {
        window_start: 1 << 40,
        window_bytes: 1 << 30,
        added_bytes: 1000,
        added_allocations: 10,
    };
    for refused in [false, true] {
        let accepted = if refused { Features::NONE } else { Features::PLACES };
        let accepting = accepting(accepted);
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::MEM_LEASE if refused => Reaction::Bad(HipError::NOT_SUPPORTED),
            Opcode::MEM_LEASE => Reaction::Good(bytes(&lease)),
            _ => accepting(asked),
        });
        let connection = connect(worker.address, Some(Features::PLACES));
        assert_eq!(connection.features(), accepted);
        let expected = if refused { Err(CallError::Hip(HipError::NOT_SUPPORTED)) } else { Ok(lease) };
        assert_eq!(connection.first_lease(), Some(expected));
        assert_eq!(connection.first_lease(), None, "there is one");
        assert_eq!(connection.stats().round_trips, 1);
        let asked = worker.until(Opcode::MEM_LEASE);
        assert_eq!(asked.last().map(Asked::as_op), Some(op::MemLease { want_bytes: 0 }));
        assert_eq!(connection.ask(&op::Ping {}), Ok(()));
        let started = connection.start(&op::MemLease { want_bytes: 5 }, Extra::default());
        assert_eq!(started.and_then(|started| connection.finish(started)), expected);
    }
    let worker = FakeWorker::start(easy);
    let connection = connect(worker.address, Some(FEATURES.without(Features::PLACES)));
    assert_eq!(connection.first_lease(), None, "it was not asked for");
}

#[test]
fn a_connection_has_what_was_offered_and_accepted() {
    let some = Features::STATIC.union(Features::PAGES);
    let cases = [
        (ALL, some, some),
        (Features::PAGES, some, Features::PAGES),
        (some, Features::NONE, Features::NONE),
        // What was not offered is not used, whatever the worker says.
        (Features::NAMES, ALL, Features::NAMES),
        (Features::NONE, ALL, Features::NONE),
    ];
    for (offered, accepted, expected) in cases {
        let worker = FakeWorker::start(accepting(accepted));
        let connection = connect(worker.address, Some(offered));
        assert_eq!(connection.features(), expected, "{offered} offered, {accepted} accepted");
        assert_eq!(connection.ask(&op::Ping {}), Ok(()));
    }
}

#[test]
fn a_worker_that_refuses_the_offer_is_used_without_it() {
    for error in [HipError::NOT_SUPPORTED, HipError::INVALID_VALUE, HipError::UNKNOWN] {
        let worker = FakeWorker::start(move |asked| match asked.op {
            Opcode::OFFER => Reaction::Bad(error),
            _ => easy(asked),
        });
        let connection = connect(worker.address, Some(ALL));
        assert_eq!(connection.features(), Features::NONE, "{error}");
        assert_eq!(connection.ask(&op::GetDeviceCount {}).map(|reply| reply.count), Ok(2));
    }
}

#[test]
fn a_refused_session_is_refused_with_the_workers_error() {
    let worker = FakeWorker::start(|_| Reaction::Bad(HipError::OUT_OF_MEMORY));
    let refused = Connection::connect(&WorkerAddress::new(&worker.address.to_string()), TIMEOUT);
    let reason = refused.expect_err("refused").reason;
    assert!(reason.contains("hipErrorOutOfMemory"), "{reason}");
}

#[test]
fn a_worker_that_goes_away_before_its_answer_is_an_error() {
    for gone in [Opcode::INIT, Opcode::OFFER] {
        let worker = FakeWorker::start(move |asked| match asked.op {
            op if op == gone => Reaction::Close,
            _ => easy(asked),
        });
        let lost = Connection::connect(&WorkerAddress::new(&worker.address.to_string()), TIMEOUT);
        assert!(!lost.expect_err("gone").reason.is_empty(), "{gone}");
    }
}

/// Starts a real worker whose sessions may have these features.
fn worker(features: Option<Features>) -> hipr_worker::Handle {
    let mut config = Config { listen: "127.0.0.1:0".into(), ..Config::new(Arc::new(Script::new())) };
    config.session.features = features;
    Worker::bind(config).and_then(Worker::spawn).expect("a worker")
}

#[test]
fn old_and_new_sides_work_together() {
    for (offer, features, expected) in [
        (Some(ALL), Some(Features::PAGES), Features::PAGES),
        (Some(ALL), None, Features::NONE),
        (None, Some(Features::PAGES), Features::NONE),
        (None, None, Features::NONE),
    ] {
        let worker = worker(features);
        let connection = connect(worker.local_addr(), offer);
        assert_eq!(connection.features(), expected, "{offer:?} offered to {features:?}");
        assert_eq!(worker.stats().requests_of(Opcode::OFFER), u64::from(offer.is_some()));
        assert_eq!(connection.ask(&op::GetDeviceCount {}).map(|reply| reply.count), Ok(1));
        connection.ask(&op::Malloc { size: 64, flags: 0 }).expect("memory");
    }
}
