//! What connections and big copies cost the worker in resident memory.

use hipr_proto::op::{self, kind};
use hipr_proto::{FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, Header, Op, Opcode};
use hipr_tests::{WireClient, WorkerProcess};
use std::io::{Read, Write};
use std::path::Path;

const GIB: u64 = 1 << 30;
const ALLOWED: u64 = 32 << 20;

fn worker() -> WorkerProcess {
    WorkerProcess::start(Path::new(env!("CARGO_BIN_EXE_hipr")), "sim")
}

fn request<O: Op>(op: &O, inline: u64, flags: u32) -> Vec<u8> {
    let mut message = Vec::new();
    Header::new(O::OPCODE, 1, O::SIZE as u64 + inline, flags).put(&mut message);
    op.put(&mut message);
    message
}

#[test]
fn a_big_copy_costs_its_device_memory_and_little_more() {
    let worker = worker();
    let mut client = WireClient::open(worker.address());
    let buffer = client.call(&op::Malloc { size: GIB, flags: 0 }).expect("memory").device_ptr;
    let before = worker.resident_bytes();

    worker.reset_peak().expect("the kernel measures peaks");
    let up = op::Memcpy { dst: buffer, src: 0, size: GIB, kind: kind::HOST_TO_DEVICE, stream: 0 };
    let piece: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8 | 1).collect();
    let stream = client.stream();
    stream.write_all(&request(&up, GIB, FLAG_HAS_INLINE_DATA | FLAG_NO_REPLY)).expect("the worker reads");
    for _ in 0..GIB / piece.len() as u64 {
        stream.write_all(&piece).expect("the worker reads");
    }
    assert_eq!(client.call(&op::DeviceSynchronize {}), Ok(()));
    let grown = worker.peak_resident_bytes() - before;
    assert!(grown <= GIB + ALLOWED, "host to device: {} MiB", grown >> 20);
    assert!(grown >= GIB, "the bytes are there: {} MiB", grown >> 20);

    let before = worker.resident_bytes();
    worker.reset_peak().expect("the kernel measures peaks");
    let down = op::Memcpy { dst: 0, src: buffer, size: GIB, kind: kind::DEVICE_TO_HOST, stream: 0 };
    let stream = client.stream();
    stream.write_all(&request(&down, 0, 0)).expect("the worker reads");
    let mut head = [0; Header::SIZE + 4];
    stream.read_exact(&mut head).expect("an answer");
    let header = Header::take(&mut head.as_slice()).expect("a header");
    assert_eq!((header.op, header.payload_length), (Opcode::MEMCPY, 4 + GIB));
    let mut received = vec![0; piece.len()];
    for _ in 0..GIB / piece.len() as u64 {
        stream.read_exact(&mut received).expect("the bytes");
        assert!(received == piece, "the bytes that were sent");
    }
    let grown = worker.peak_resident_bytes().saturating_sub(before);
    assert!(grown <= ALLOWED, "device to host: {} MiB", grown >> 20);
}

/// A reader that takes its time must not make the worker pile up what it has not taken.
#[test]
fn a_slow_reader_costs_no_memory() {
    let worker = worker();
    let mut client = WireClient::open(worker.address());
    let size = GIB / 4;
    let buffer = client.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    client.call(&op::Memset { dst: buffer, value: 3, size, stream: 0 }).expect("set");
    assert_eq!(client.call(&op::DeviceSynchronize {}), Ok(()));
    let before = worker.resident_bytes();
    worker.reset_peak().expect("the kernel measures peaks");
    let down = op::Memcpy { dst: 0, src: buffer, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
    client.stream().write_all(&request(&down, 0, 0)).expect("the worker reads");
    // Another session's round trips show that the worker has had its turns, while the reader took nothing.
    let mut other = WireClient::open(worker.address());
    for _ in 0..1000 {
        other.call(&op::Ping {}).expect("the worker serves others");
    }
    let grown = worker.peak_resident_bytes().saturating_sub(before);
    assert!(grown <= ALLOWED, "{} MiB", grown >> 20);
}

#[test]
fn an_idle_connection_costs_little() {
    const CONNECTIONS: u64 = 1000;
    let worker = worker();
    let _first = WireClient::open(worker.address());
    let before = worker.resident_bytes();
    let clients: Vec<WireClient> = (0..CONNECTIONS).map(|_| WireClient::open(worker.address())).collect();
    let each = worker.resident_bytes().saturating_sub(before) / CONNECTIONS;
    assert!(each <= 64 << 10, "{each} bytes a connection");
    drop(clients);
}
