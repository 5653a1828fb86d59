//! Sends malformed input to a worker in its own process: each gets the answer that the protocol prescribes or a closed
//! connection, and other clients are still served.

use hipr_proto::op::{self, Param, kind};
use hipr_proto::{FLAG_NO_REPLY, Header, HipError, Opcode, VERSION};
use hipr_tests::{WireClient, WorkerProcess, eventually};
use std::io::Write;
use std::net::Shutdown;
use std::path::Path;

/// The demo's kernels.
static KERNELS: &[u8] = include_bytes!("../demo/kernels.co");

fn worker() -> WorkerProcess {
    WorkerProcess::start(Path::new(env!("CARGO_BIN_EXE_hipr")), "sim")
}

fn header(payload_length: u64) -> Header {
    Header::new(Opcode::PING, 1, payload_length, 0)
}

/// Checks that `bytes` on a new connection make the worker close it without an answer, while another client is served.
fn closes(worker: &WorkerProcess, what: &str, bytes: &[u8]) {
    let mut neighbour = WireClient::open(worker.address());
    let mut client = WireClient::connect(worker.address());
    client.stream().write_all(bytes).expect("a new connection takes bytes");
    assert!(client.closed(), "{what}: the connection is closed");
    assert_eq!(neighbour.call(&op::Ping {}), Ok(()), "{what}: others are served");
}

#[test]
fn what_breaks_the_framing_ends_the_connection() {
    let mut worker = worker();
    closes(&worker, "garbage", &[0xa5; 4096]);
    closes(&worker, "text", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    closes(&worker, "wrong magic", &Header { magic: 0x4849_5053, ..header(0) }.to_bytes());
    closes(&worker, "another major version", &Header { version: 0x0200, ..header(0) }.to_bytes());
    closes(&worker, "a length of 2^63", &header(1 << 63).to_bytes());
    closes(&worker, "the largest length", &header(u64::MAX).to_bytes());
    assert!(worker.lives());
}

#[test]
fn a_minor_version_is_served() {
    let worker = worker();
    let mut client = WireClient::open(worker.address());
    assert_eq!(client.call(&op::Ping {}), Ok(()));
    let minor = Header { version: VERSION | 1, ..Header::new(Opcode::PING, 77, 0, FLAG_NO_REPLY) };
    client.stream().write_all(&minor.to_bytes()).expect("the worker reads");
    assert_eq!(client.call(&op::Ping {}), Ok(()));
}

#[test]
fn a_truncated_frame_and_silence_end_in_a_closed_connection() {
    let worker = worker();
    let mut client = WireClient::open(worker.address());
    let bytes = Header::new(Opcode::MALLOC, 1, 12, 0).to_bytes();
    client.stream().write_all(&bytes[..17]).expect("the worker reads");
    assert!(client.closed(), "silence inside a header");
    let mut client = WireClient::open(worker.address());
    client.stream().write_all(&bytes).expect("the worker reads");
    client.stream().write_all(&[0; 5]).expect("the worker reads");
    client.stream().shutdown(Shutdown::Write).expect("a connection");
    assert!(client.closed(), "the end inside a request");
}

#[test]
fn a_launch_whose_argument_table_lies_is_invalid() {
    let worker = worker();
    let mut client = WireClient::open(worker.address());
    let mut name = Vec::new();
    op::put_name("saxpy", &mut name).expect("a name");
    let load = op::ModuleLoadData { data_size: KERNELS.len() as u64 };
    let module = client.call_with(&load, &[], Some(KERNELS.to_vec())).result.expect("a module").module;
    let found = client.call_with(&op::ModuleGetFunction { module }, &name, None).result.expect("a function");
    let launch = op::LaunchKernel {
        function: found.function,
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x: 1,
        block_dim_y: 1,
        block_dim_z: 1,
        shared_mem: 0,
        stream: 0,
        num_args: 1,
        launch_flags: 0,
        start_event: 0,
        stop_event: 0,
        ext_flags: 0,
    };
    for lie in [
        Param { offset: 0, size: 9 },
        Param { offset: 8, size: 1 },
        Param { offset: u32::MAX, size: u32::MAX },
    ] {
        let mut tail = Vec::new();
        op::LaunchArgs::put(&[lie], &[0; 8], &mut tail);
        let replied = client.call_with(&launch, &tail, None);
        assert_eq!(replied.result.err(), Some(HipError::INVALID_VALUE), "{lie:?}");
    }
    // A count that promises more descriptors than there are bytes.
    let mut bytes = Header::new(Opcode::LAUNCH_KERNEL, 900, 76, FLAG_NO_REPLY).to_bytes().to_vec();
    let mut fixed = Vec::new();
    hipr_proto::Wire::put(&op::LaunchKernel { num_args: u32::MAX, ..launch }, &mut fixed);
    fixed.resize(76, 0);
    bytes.extend(fixed);
    client.stream().write_all(&bytes).expect("the worker reads");
    assert_eq!(client.call(&op::GetDevice {}).err(), Some(HipError::INVALID_VALUE), "kept, then reported");
    assert_eq!(client.call(&op::GetDevice {}).err(), None, "once");
}

#[test]
fn short_requests_and_unknown_operations_do_not_end_the_connection() {
    let worker = worker();
    let mut client = WireClient::open(worker.address());
    let mut short = Header::new(Opcode::MALLOC, 1, 5, FLAG_NO_REPLY).to_bytes().to_vec();
    short.extend([1, 2, 3, 4, 5]);
    client.stream().write_all(&short).expect("the worker reads");
    assert_eq!(client.call(&op::GetDevice {}).err(), Some(HipError::INVALID_VALUE));
    let mut unknown = Header::new(Opcode(0x7abc), 2, 100_000, FLAG_NO_REPLY).to_bytes().to_vec();
    unknown.resize(unknown.len() + 100_000, 0x11);
    client.stream().write_all(&unknown).expect("the worker reads");
    assert_eq!(client.call(&op::GetDevice {}).err(), Some(HipError::NOT_SUPPORTED));
    assert_eq!(client.call(&op::GetDevice {}).err(), None);
}

#[test]
fn what_another_session_owns_cannot_be_named() {
    let worker = worker();
    let mut owner = WireClient::open(worker.address());
    let pointer = owner.call(&op::Malloc { size: 4096, flags: 0 }).expect("memory").device_ptr;
    let stream = owner.call(&op::StreamCreate { flags: 0, priority: 0 }).expect("a stream").stream;
    let event = owner.call(&op::EventCreate { flags: 0 }).expect("an event").event;
    owner.call(&op::Memset { dst: pointer, value: 0x5a, size: 4096, stream: 0 }).expect("set");

    let mut thief = WireClient::open(worker.address());
    let read = op::Memcpy { dst: 0, src: pointer, size: 16, kind: kind::DEVICE_TO_HOST, stream: 0 };
    let replied = thief.call_with(&read, &[], None);
    assert_eq!((replied.result.err(), replied.inline.len()), (Some(HipError::INVALID_VALUE), 0));
    assert_eq!(
        thief.call(&op::Memset { dst: pointer, value: 0, size: 16, stream: 0 }).err(),
        Some(HipError::INVALID_VALUE)
    );
    assert_eq!(thief.call(&op::Free { device_ptr: pointer }).err(), Some(HipError::INVALID_VALUE));
    assert_eq!(thief.call(&op::StreamDestroy { stream }).err(), Some(HipError::INVALID_HANDLE));
    assert_eq!(thief.call(&op::EventSynchronize { event }).err(), Some(HipError::INVALID_HANDLE));

    let replied = owner.call_with(&read, &[], None);
    assert_eq!((replied.result, replied.inline), (Ok(()), vec![0x5a; 16]));
}

#[test]
fn a_client_that_goes_leaves_nothing_behind() {
    let worker = worker();
    let mut watcher = WireClient::open(worker.address());
    let free =
        |client: &mut WireClient| client.call(&op::MemGetInfo {}).expect("memory information").free_bytes;
    let before = free(&mut watcher);
    let files = worker.open_files();
    for _ in 0..20 {
        let mut client = WireClient::open(worker.address());
        client.call(&op::Malloc { size: 64 << 20, flags: 0 }).expect("memory");
        client.call(&op::StreamCreate { flags: 0, priority: 0 }).expect("a stream");
    }
    eventually("sockets are closed", || worker.open_files() <= files);
    eventually("memory is free", || free(&mut watcher) == before);
}
