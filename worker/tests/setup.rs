//! Tests of starting, configuring and stopping a worker, and of its counters.

mod common;

use std::io::ErrorKind;
use std::net::TcpListener;

use common::*;
use hipr_proto::op::*;
use hipr_proto::{HipError, Opcode};
use hipr_worker::device::null::Null;
use hipr_worker::device::script::Fault;
use hipr_worker::{Config, DEFAULT_PORT, DispatchOn, Io, Worker};

fn null() -> Config {
    Config { listen: "127.0.0.1:0".into(), ..Config::new(std::sync::Arc::new(Null)) }
}

#[test]
fn event_loops_are_chosen_by_name() {
    assert_eq!(["mio", "uring", "auto"].map(|name| name.parse()), [Ok(Io::Mio), Ok(Io::Uring), Ok(Io::Auto)]);
    assert!("epoll".parse::<Io>().unwrap_err().contains("mio, uring or auto"));
    for io in [Io::Mio, Io::Uring, Io::Auto] {
        let worker = match Worker::bind(Config { io, ..null() }) {
            Err(why) if io == Io::Uring => {
                // Where the kernel lacks it or does not allow it, that is said.
                assert!(why.to_string().contains("io_uring cannot be used"), "{why}");
                continue;
            }
            bound => bound.unwrap().spawn().unwrap(),
        };
        assert!(Peer::hello(worker.local_addr()).call(&Ping {}).is_ok());
    }
}

#[test]
fn the_thread_that_carries_requests_out_is_chosen_by_name() {
    for dispatch in [DispatchOn::Inline, DispatchOn::Thread, DispatchOn::Auto] {
        assert_eq!(dispatch.to_string().parse(), Ok(dispatch));
        let (worker, script) = scripted(|config| config.dispatch = dispatch);
        // It wants to be asked again before it has said so.
        script.plan(0, "poll_sync", 0, Fault::Slow(3));
        assert_eq!(Peer::hello(worker.local_addr()).call(&DeviceSynchronize {}), Ok(()));
    }
    assert!("nowhere".parse::<DispatchOn>().unwrap_err().contains("nowhere"));
}

#[test]
fn an_address_that_cannot_be_had_is_named() {
    assert_eq!(
        Config::new(std::sync::Arc::new(Null)).listen.to_string(),
        format!("127.0.0.1:{DEFAULT_PORT}")
    );
    let first = Worker::bind(null()).unwrap();
    let taken = first.local_addr();
    let error = Worker::bind(Config { listen: taken.clone(), ..null() }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&taken.to_string()));
    assert!(Worker::bind(Config { listen: "unix:".into(), ..null() }).is_err());
}

/// Starts a worker for a single client, and returns both.
fn alone(config: Config) -> (Peer, Worker) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer::connect(listener.local_addr().unwrap());
    let (stream, _) = listener.accept().unwrap();
    (peer, Worker::for_connection(config, stream).unwrap())
}

#[test]
fn a_worker_for_one_connection_ends_with_it() {
    let (mut peer, worker) = alone(null());
    let stats = worker.stats();
    let worker = worker.spawn().unwrap();
    peer.call(&Init {}).unwrap();
    peer.malloc(64);
    drop(peer);
    worker.join().unwrap();
    let io = stats.io();
    assert_eq!((io.connections_opened, io.connections_closed), (1, 1));
    assert_eq!(stats.requests_of(Opcode::MALLOC), 1);
}

#[test]
fn a_worker_for_one_connection_can_be_stopped() {
    let (mut peer, worker) = alone(null());
    let stopper = worker.stopper();
    let worker = worker.spawn().unwrap();
    peer.call(&Init {}).unwrap();
    stopper.stop();
    worker.join().unwrap();
    assert!(peer.sees_end());
}

#[test]
fn stopping_closes_connections_and_frees_the_port() {
    let worker = Worker::bind(null()).unwrap().spawn().unwrap();
    let addr = worker.local_addr();
    let peer = Peer::hello(addr.clone());
    worker.stop();
    worker.join().unwrap();
    assert!(peer.sees_end());
    assert!(Worker::bind(Config { listen: addr, ..null() }).is_ok());
}

#[test]
fn requests_are_counted() {
    let worker = worker("null");
    let mut peer = Peer::hello(worker.local_addr());
    let ptr = peer.malloc(100);
    for _ in 0..5 {
        peer.forget(&Memset { dst: ptr, value: 0, size: 100, stream: 0 }, &[]);
    }
    peer.d2h(ptr, 100, 0).unwrap();
    let stats = worker.stats();
    assert_eq!(stats.requests_of(Opcode::MEMSET), 5);
    let expected = [(Opcode::INIT, 1), (Opcode::MALLOC, 1), (Opcode::MEMCPY, 1), (Opcode::MEMSET, 5)];
    assert!(stats.requests().eq(expected));
    assert_eq!((stats.answered_requests(), stats.unknown_requests()), (3, 0));
    let io = stats.io();
    assert_eq!((io.connections(), io.requests), (1, 8));
    let sizes = [0, 12, 36, 5 * 28];
    assert_eq!(io.received_bytes, 8 * 24 + sizes.iter().sum::<u64>());
    // Counted when they are written, which the peer may see first.
    until("all bytes are counted", || stats.io().sent_bytes == 3 * 28 + 8 + 100);
}

#[test]
fn the_null_device_accepts_everything() {
    let worker = worker("null");
    let mut peer = Peer::hello(worker.local_addr());
    assert_eq!(peer.call(&GetDeviceCount {}).unwrap().count, 1);
    let properties = peer.call(&GetDeviceProperties { device_id: 0 }).unwrap();
    assert!(properties.name.as_str().contains("null"), "it says what it is");
    assert_eq!(peer.call(&SetDevice { device_id: 1 }), Err(HipError::INVALID_DEVICE));
    let (x, y) = (peer.malloc(1000), peer.malloc(1000));
    assert!(x.abs_diff(y) >= 1000);
    assert_eq!(peer.call(&Malloc { size: 1 << 60, flags: 0 }).map(drop), Err(HipError::OUT_OF_MEMORY));
    peer.h2d(x, &[1; 1000], 0);
    assert_eq!(peer.d2h(x, 1000, 0).unwrap(), [0; 1000]);
    let module = peer.module_load();
    let function = peer.function(module, "anything");
    let (start_event, stop_event) = (peer.event_create(), peer.event_create());
    peer.call_with(&LaunchKernel { start_event, stop_event, ..launch(function) }, b"any arguments").unwrap();
    assert!(peer.call(&EventElapsedTime { start_event, stop_event }).is_ok());
    let before = peer.call(&MemGetInfo {}).unwrap();
    peer.call(&Free { device_ptr: x }).unwrap();
    assert_eq!(peer.call(&MemGetInfo {}).unwrap().free_bytes, before.free_bytes + 1000);
}
