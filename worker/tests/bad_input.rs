//! Tests of a worker that receives malformed requests, or requests whose fields contradict each other.

mod common;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use common::*;
use hipr_proto::op::*;
use hipr_proto::{
    FLAG_NO_REPLY, FLAG_RESPONSE, Header, HipError, HipResult, MAGIC, Opcode, ReplyMode, VERSION, Wire,
};
use hipr_worker::device::script::{Live, Script};
use hipr_worker::{Address, Config, Handle};
use socket2::{Domain, Socket, Type};

const INVALID: HipResult<()> = Err(HipError::INVALID_VALUE);

fn header(magic: u32, version: u16, payload_length: u64, flags: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header { magic, version, op: Opcode::MALLOC, request_id: 1, payload_length, flags }.put(&mut bytes);
    bytes
}

/// Timeouts of the worker, short enough to wait for and long enough for a busy machine.
const TIMEOUT_MS: u64 = 700;

fn impatient() -> (Handle, Script) {
    scripted(|config: &mut Config| {
        config.limits.first_message_timeout_ms = TIMEOUT_MS;
        config.limits.mid_message_timeout_ms = TIMEOUT_MS;
    })
}

/// Checks that the worker still serves clients and has released everything of this one.
fn is_sound(worker: &Handle, script: &Script) {
    until("everything is released", || script.live() == Live::default());
    let mut peer = Peer::hello(worker.local_addr());
    let ptr = peer.malloc(100);
    assert_eq!(peer.d2h(ptr, 100, 0), Ok(vec![0; 100]));
    drop(peer);
    until("all connections are closed", || worker.stats().io().connections() == 0);
    assert_eq!(script.live(), Live::default());
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let (worker, script) = scripted(|_| {});
    let garbage = pattern(1000, 42);
    let cases = [
        ("garbage", garbage.clone()),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: worker\r\n\r\n".to_vec()),
        ("wrong magic", header(MAGIC + 1, VERSION, 12, 0)),
        ("magic in the other byte order", header(MAGIC.swap_bytes(), VERSION, 12, 0)),
        ("another major version", header(MAGIC, VERSION + 0x100, 12, 0)),
        ("a length of 2^63", header(MAGIC, VERSION, 1 << 63, 0)),
        ("the longest length", header(MAGIC, VERSION, u64::MAX, FLAG_NO_REPLY)),
        ("a response", header(MAGIC, VERSION, 12, FLAG_RESPONSE)),
    ];
    for (errors, (what, bytes)) in (1..).zip(cases) {
        let mut peer = Peer::connect(worker.local_addr());
        peer.stream.write_all(&bytes).unwrap();
        assert!(peer.sees_end(), "{what}");
        assert_eq!(worker.stats().io().protocol_errors, errors, "{what}");
    }
    // The same after good requests, whose answers come first.
    let mut peer = Peer::hello(worker.local_addr());
    peer.malloc(4096);
    let last = peer.send(&MemGetInfo {}, &[], hipr_proto::ReplyMode::Always).unwrap();
    peer.flush();
    peer.stream.write_all(&garbage).unwrap();
    assert!(peer.reply::<MemGetInfo>(last).is_ok());
    assert!(peer.sees_end());
    is_sound(&worker, &script);
}

#[test]
fn another_minor_version_is_served() {
    let (worker, _) = scripted(|_| {});
    let mut peer = Peer::connect(worker.local_addr());
    let mut bytes = Vec::new();
    let op = Opcode::PING;
    Header { magic: MAGIC, version: VERSION + 7, op, request_id: 9, payload_length: 0, flags: 0 }
        .put(&mut bytes);
    peer.stream.write_all(&bytes).unwrap();
    let mut reply = [0; 28];
    std::io::Read::read_exact(&mut peer.stream, &mut reply).unwrap();
    assert_eq!(reply[4..12], [0x00, 0x01, 0x03, 0x00, 9, 0, 0, 0], "version 1.0, PING, the request's id");
    assert_eq!(reply[24..], [0; 4]);
}

#[test]
fn silence_before_the_first_message_ends_the_connection() {
    let (worker, script) = impatient();
    let silent = Peer::connect(worker.local_addr());
    let mut slow = Peer::connect(worker.local_addr());
    slow.stream.write_all(&header(MAGIC, VERSION, 12, 0)[..10]).unwrap();
    let mut patient = Peer::hello(worker.local_addr());
    assert!(silent.sees_end() && slow.sees_end());
    assert_eq!(worker.stats().io().timeouts, 2);
    // Whoever has said something may be silent between messages.
    assert!(patient.call(&Ping {}).is_ok());
    drop(patient);
    is_sound(&worker, &script);
}

#[test]
fn silence_in_the_middle_of_a_message_ends_the_connection() {
    let (worker, script) = impatient();
    let mut peers = Vec::new();
    for cut in [10, 24, 30, 24 + Memcpy::SIZE, 24 + Memcpy::SIZE + 1000] {
        let mut peer = Peer::hello(worker.local_addr());
        let dst = peer.malloc(1 << 20);
        let mut payload = Vec::new();
        h2d(dst, 1 << 20, 0).put(&mut payload);
        payload.resize(payload.len() + (1 << 20), 1);
        let bytes = message(Opcode::MEMCPY, 100, FLAG_NO_REPLY, &payload);
        peer.stream.write_all(&bytes[..cut]).unwrap();
        peers.push((cut, peer));
    }
    for (cut, peer) in peers {
        assert!(peer.sees_end(), "{cut}");
    }
    assert_eq!(worker.stats().io().timeouts, 5);
    is_sound(&worker, &script);
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_message_is_released() {
    let (worker, script) = scripted(|_| {});
    for cut in [10, 30, 60, 5000] {
        let mut peer = Peer::hello(worker.local_addr());
        let mut payload = Vec::new();
        ModuleLoadData { data_size: 1 << 20 }.put(&mut payload);
        payload.resize(payload.len() + (1 << 20), 1);
        peer.malloc(1000);
        peer.stream.write_all(&message(Opcode::MODULE_LOAD_DATA, 100, 0, &payload)[..cut]).unwrap();
        peer.stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert!(peer.sees_end(), "{cut}");
    }
    assert_eq!(worker.stats().io().protocol_errors, 4);
    is_sound(&worker, &script);
}

#[test]
fn a_connection_that_waits_for_the_worker_is_not_silent() {
    let (worker, script) = impatient();
    let mut peer = Peer::hello(worker.local_addr());
    let dst = peer.malloc(16 << 20);
    script.hold(0, 0);
    peer.forget(&Memset { dst, value: 0, size: 1, stream: 0 }, &[]);
    // More than the worker takes while the stream is busy; the rest is sent from another thread.
    let bytes = pattern(16 << 20, 6);
    peer.forget(&h2d(dst, 0, 0), &[]);
    peer.flush();
    let mut stream = peer.stream.try_clone().unwrap();
    let mut payload = Vec::new();
    h2d(dst, 16 << 20, 0).put(&mut payload);
    payload.extend_from_slice(&bytes);
    let sending = std::thread::spawn(move || {
        stream.write_all(&message(Opcode::MEMCPY, 5, FLAG_NO_REPLY, &payload)).unwrap();
    });
    until("the worker is full", reads_no_more(&worker));
    std::thread::sleep(std::time::Duration::from_millis(TIMEOUT_MS * 2));
    script.release(0, 0);
    sending.join().unwrap();
    assert_eq!(peer.d2h(dst, 16 << 20, 0).unwrap(), bytes);
    assert_eq!(worker.stats().io().timeouts, 0);
}

#[test]
fn requests_that_are_too_short_get_an_answer_and_the_connection_goes_on() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    for info in hipr_proto::OPS.iter().filter(|info| info.request.size > 0) {
        for len in [0, info.request.size - 1] {
            let mut stream = &peer.stream;
            stream.write_all(&message(info.code, 7, 0, &vec![0xff; len])).unwrap();
            let mut reply = vec![0; Header::SIZE + 4 + info.reply.size];
            std::io::Read::read_exact(&mut stream, &mut reply).unwrap();
            assert_eq!(reply[24..28], 1i32.to_le_bytes(), "{} with {len} bytes", info.name);
            assert!(reply[28..].iter().all(|&byte| byte == 0), "{}", info.name);
        }
    }
    assert!(peer.call(&Ping {}).is_ok());
    drop(peer);
    is_sound(&worker, &script);
}

#[test]
fn unknown_operations_are_not_supported_and_their_payload_is_skipped() {
    let (worker, _) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    for (op, len) in [(0x0000, 0), (0x00ff, 5), (0x7777, 300_000), (0xffff, 70_000)] {
        let mut stream = &peer.stream;
        stream.write_all(&message(Opcode(op), 7, 0, &pattern(len, 3))).unwrap();
        let mut reply = [0; 28];
        std::io::Read::read_exact(&mut stream, &mut reply).unwrap();
        assert_eq!(reply[24..28], 801i32.to_le_bytes(), "{op:#06x}");
    }
    assert_eq!(worker.stats().unknown_requests(), 4);
    assert_eq!(peer.call(&SmiGetGpuMetrics { processor_index: 0 }).map(drop), Err(HipError::NOT_SUPPORTED));
    assert!(peer.call(&Ping {}).is_ok());
}

#[test]
fn counts_that_lie_are_invalid() {
    let (worker, script) = scripted(|_| {});
    let mut peer = Peer::hello(worker.local_addr());
    let dst = peer.malloc(100);
    // Fewer bytes than the fixed part says. The client half would not send that, so: raw messages.
    let mut cases = Vec::new();
    let mut add = |op, put: &dyn Fn(&mut Vec<u8>), tail: usize| {
        let mut payload = Vec::new();
        put(&mut payload);
        payload.resize(payload.len() + tail, 1);
        cases.push((op, payload));
    };
    add(Opcode::MEMCPY, &|out| h2d(dst, 100, 0).put(out), 99);
    add(Opcode::MEMCPY, &|out| h2d(dst, u64::MAX, 0).put(out), 99);
    add(Opcode::MODULE_LOAD_DATA, &|out| ModuleLoadData { data_size: 1 << 40 }.put(out), 10);
    add(Opcode::MODULE_LOAD_DATA, &|out| ModuleLoadData { data_size: u64::MAX }.put(out), 10);
    let both = ModuleLoadAndGetFunction { data_size: u64::MAX, name_length: u32::MAX, pad: 0 };
    add(Opcode::MODULE_LOAD_AND_GET_FUNCTION, &|out| both.put(out), 10);
    add(Opcode::SET_VALID_DEVICES, &|out| SetValidDevices { len: -1 }.put(out), 10);
    add(Opcode::SET_VALID_DEVICES, &|out| SetValidDevices { len: i32::MAX }.put(out), 10);
    add(Opcode::LAUNCH_KERNEL, &|out| LaunchKernel { num_args: u32::MAX, ..launch(1) }.put(out), 100);
    for (op, payload) in cases {
        let mut stream = &peer.stream;
        stream.write_all(&message(op, 7, 0, &payload)).unwrap();
        let size = op.info().unwrap().reply.size;
        let mut reply = vec![0; Header::SIZE + 4 + size];
        std::io::Read::read_exact(&mut stream, &mut reply).unwrap();
        assert_eq!(reply[24..28], 1i32.to_le_bytes(), "{op}");
    }
    assert_eq!((script.calls("write"), script.calls("module_load")), (0, 0));
    // More bytes than it says: the rest means nothing.
    let mut payload = Vec::new();
    h2d(dst, 4, 0).put(&mut payload);
    payload.extend_from_slice(b"1234 and more");
    peer.stream.write_all(&message(Opcode::MEMCPY, 7, FLAG_NO_REPLY, &payload)).unwrap();
    assert_eq!(peer.d2h(dst, 8, 0).unwrap(), b"1234\0\0\0\0");
}

#[test]
fn launches_whose_arguments_lie_are_refused() {
    let (worker, script) = scripted(|_| {});
    script.define_kernel("k", 280, &[(0, 8), (8, 4)]);
    let mut peer = Peer::hello(worker.local_addr());
    let module = peer.module_load();
    let function = peer.function(module, "k");
    let tail = |params: &[(u32, u32)], data: &[u8]| {
        let params: Vec<_> = params.iter().map(|&(offset, size)| Param { offset, size }).collect();
        let mut tail = Vec::new();
        LaunchArgs::put(&params, data, &mut tail);
        tail
    };
    let good = LaunchKernel { num_args: 2, ..launch(function) };
    let data = pattern(16, 1);
    let mut try_args =
        |params: &[(u32, u32)], request: LaunchKernel| peer.call_with(&request, &tail(params, &data));
    for lie in [
        [(0, 8), (13, 4)],              // past the end of the data
        [(0, 8), (u32::MAX, 4)],        // far past it
        [(0, 8), (12, u32::MAX)],       // too long
        [(0, u32::MAX), (u32::MAX, 1)], // both
        [(0, 4), (8, 4)],               // smaller than the parameter
        [(0, 8), (8, 8)],               // larger
    ] {
        assert_eq!(try_args(&lie, good), INVALID, "{lie:?}");
    }
    assert_eq!(try_args(&[(0, 8)], LaunchKernel { num_args: 1, ..good }), INVALID, "one too few");
    assert_eq!(
        try_args(&[(0, 8), (8, 4), (12, 4)], LaunchKernel { num_args: 3, ..good }),
        INVALID,
        "one too many"
    );
    assert_eq!(try_args(&[(0, 8), (8, 4)], LaunchKernel { launch_flags: 2, ..good }), INVALID);
    let flat = LaunchKernel { launch_flags: 1, num_args: 1, ..good };
    assert_eq!(try_args(&[(0, 11)], flat), INVALID, "a parameter is missing");
    assert_eq!(try_args(&[(8, 12)], flat), INVALID, "past the end");
    assert_eq!(try_args(&[(0, 8), (8, 4)], LaunchKernel { grid_dim_y: 0, ..good }), INVALID);
    assert_eq!(try_args(&[(0, 8), (8, 4)], LaunchKernel { block_dim_z: 0, ..good }), INVALID);
    assert_eq!(script.launches(), []);

    assert_eq!(try_args(&[(8, 8), (0, 4)], LaunchKernel { grid_dim_x: 5, shared_mem: 77, ..good }), Ok(()));
    assert_eq!(try_args(&[(4, 12)], flat), Ok(()));
    assert_eq!(peer.call_with(&LaunchCooperativeKernel(LaunchKernel { num_args: 0, ..flat }), &data), Ok(()));
    let launches = script.launches();
    assert_eq!(launches[0].args, [data[8..].to_vec(), data[..4].to_vec()]);
    assert_eq!(
        (launches[0].grid, launches[0].shared_mem_bytes, launches[0].cooperative),
        ([5, 1, 1], 77, false)
    );
    assert_eq!(launches[1].args, [data[4..].to_vec()]);
    let long = tail(&[(0, 300)], &pattern(300, 2));
    assert_eq!(peer.call_with(&flat, &long), Ok(()), "longer than the kernarg segment");
    assert_eq!(script.launches()[3].args, [pattern(280, 2)]);
    assert_eq!((&launches[2].args, launches[2].cooperative), (&vec![data.clone()], true));
}

#[test]
fn names_that_are_none_are_invalid() {
    let (worker, script) = scripted(|_| {});
    script.define_kernel(&"n".repeat(1000), 0, &[]);
    let mut peer = Peer::hello(worker.local_addr());
    let module = peer.module_load();
    for name in [&[0; 256][..], &[0xff; 256], &[b'x'; 1025]] {
        assert_eq!(peer.call_with(&ModuleGetFunction { module }, name).map(drop), INVALID);
        assert_eq!(peer.call_with(&ModuleGetGlobal { module }, name).map(drop), INVALID);
    }
    let missing = peer.call_with(&ModuleGetFunction { module }, b"missing\0");
    assert_eq!(missing.map(drop), Err(HipError::NOT_FOUND));
    peer.function(module, &"n".repeat(1000));
}

#[test]
fn one_connection_too_many_is_closed_and_the_others_are_served() {
    let (worker, _) = scripted(|config| config.limits.connections_max = 2);
    let (mut a, b) = (Peer::hello(worker.local_addr()), Peer::hello(worker.local_addr()));
    assert!(Peer::connect(worker.local_addr()).sees_end());
    assert_eq!(worker.stats().io().connections_refused, 1);
    assert!(a.call(&Ping {}).is_ok());
    drop(b);
    until("there is room", || worker.stats().io().connections() == 1);
    Peer::hello(worker.local_addr());
}

/// Connects from an address of this machine.
fn connect_from(source: &str, worker: &Address) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(source.parse().unwrap(), 0).into()).unwrap();
    socket.connect(&worker.tcp().unwrap().into()).unwrap();
    socket.into()
}

#[test]
fn one_address_does_not_get_all_seats() {
    let (worker, _) = scripted(|config| {
        config.limits.connections_max = 4;
        config.limits.connections_per_address_max = Some(2);
    });
    let from = |source| Peer::over(connect_from(source, &worker.local_addr()));
    let mut seated: Vec<Peer> = ["127.0.0.1", "127.0.0.1", "127.0.0.2"].map(from).into();
    for _ in 0..10 {
        assert!(from("127.0.0.1").sees_end(), "the address has two seats");
    }
    seated.push(from("127.0.0.2"));
    assert!(from("127.0.0.3").sees_end(), "all seats are taken");
    for peer in &mut seated {
        peer.call(&Init {}).unwrap();
    }
    assert_eq!(worker.stats().io().connections_refused, 11);
    seated.remove(0);
    until("a seat is free", || worker.stats().io().connections() == 3);
    from("127.0.0.1").call(&Init {}).unwrap();
}

#[test]
fn who_is_idle_loses_the_seat_and_who_waits_does_not() {
    let (worker, script) = scripted(|config| config.limits.idle_timeout_ms = Some(2 * TIMEOUT_MS));
    let mut waits = Peer::hello(worker.local_addr());
    // A context is opened with the first memory, and nothing waits for a fill of no bytes.
    let dst = waits.malloc(64);
    script.hold(0, 0);
    waits.forget(&MemsetAsync(Memset { dst, value: 7, size: 64, stream: 0 }), &[]);
    let waiting = waits.send(&DeviceSynchronize {}, &[], ReplyMode::Always).unwrap();
    waits.flush();
    let idle = Peer::hello(worker.local_addr());
    assert!(idle.sees_end());
    assert_eq!(worker.stats().io().timeouts, 1);
    script.release(0, 0);
    waits.reply::<DeviceSynchronize>(waiting).unwrap();
    assert!(waits.sees_end(), "now it is idle, too");
}
