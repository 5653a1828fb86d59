//! Work that costs a worker, or those beside, far more than its bytes.

use super::{Case, KERNELS, Scale, Sent, Target};
use crate::{Gpu, args};
use hipr_proto::op::{self, LaunchArgs, Param};
use hipr_proto::{Client, Header, HipError, Limits, Op, Outbox, ReplyMode, Wire};
use rustix::net::sockopt::set_socket_linger;
use std::io::{ErrorKind, Write};
use std::thread;
use std::time::Duration;

/// Bytes of a flood, which a worker with bounds does not take as long as its device does not go on.
const FLOOD_BYTES: usize = 128 << 20;
/// A flood has had its effect when so many milliseconds bring nothing.
const STILL_MS: u32 = 200;
/// Nodes of a large graph.
const NODES: usize = 20_000;
/// A copy that is not read, what is in it, and how long nobody reads it.
const UNREAD_BYTES: usize = 1 << 20;
const UNREAD_BYTE: u8 = 0x5a;
const UNREAD_FOR: Duration = Duration::from_millis(500);

/// Returns the cases.
pub(super) fn cases(scale: &Scale) -> Vec<Case> {
    let case = |name, attack: fn(&mut Gpu) -> Sent| Case::new(name, move |worker| with_gpu(worker, attack));
    let count = scale.unread;
    vec![
        case("sets of a byte behind an endless kernel", sets),
        case("launches with 64 KB behind an endless kernel", launches),
        case("10,000 groups that hoard scratch", hoard),
        case("1,000 streams with a huge endless grid each", grids),
        case("60 updates of a graph of 20,000 nodes", updates),
        case("100,000 streams, and sets behind them", streams),
        case("100,000 allocations, and the end of the session", allocations),
        case("500,000 allocations of 16 bytes", many_allocations),
        case("500,000 events", many_events),
        case("a graph of 500,000 nodes", many_nodes),
        Case::new(format!("{count} copies of 1 MiB that nobody reads"), move |worker| {
            with_gpu(worker, |gpu| unread(gpu, count))
        }),
    ]
}

fn with_gpu(worker: Target, attack: impl FnOnce(&mut Gpu) -> Sent) -> Sent {
    let mut gpu = Gpu::open(worker.address, KERNELS);
    let sent = attack(&mut gpu);
    // What the worker did not take is dropped; the system would keep it, and the end of the connection behind it.
    set_socket_linger(gpu.wire().stream(), Some(Duration::ZERO)).expect("a TCP socket");
    sent
}

/// Returns a request without a reply as it is sent.
pub fn request<O: Op>(op: &O, tail: &[u8]) -> Vec<u8> {
    let mut client = Client::<Vec<u8>>::new(Limits::default());
    client.request_with(op, tail, None, ReplyMode::Never).expect("a well-formed request");
    client.flush();
    let mut outbox = Outbox::new();
    client.poll_transmit(&mut outbox);
    outbox.slices().flatten().copied().collect()
}

/// Sends a request over and over, as often as the worker takes it; it has to stop taking it.
fn flood(gpu: &mut Gpu, one: &[u8]) -> Sent {
    let bytes: Vec<u8> = one.iter().copied().cycle().take(FLOOD_BYTES / one.len() * one.len()).collect();
    let (mut taken, mut still_ms) = (0, 0);
    let stream = gpu.wire().stream();
    stream.set_nonblocking(true).expect("a socket");
    while taken < bytes.len() && still_ms < STILL_MS {
        match stream.write(&bytes[taken..]) {
            Ok(len) => (taken, still_ms) = (taken + len, 0),
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
                still_ms += 1;
            }
            Err(why) => panic!("the worker ends the connection: {why}"),
        }
    }
    Sent { bytes: taken as u64, is_right: taken < bytes.len(), ..Sent::default() }
}

/// Sends requests that are all carried out, then waits for that.
fn done(gpu: &mut Gpu, requests: &[u8]) -> Sent {
    gpu.wire().stream().write_all(requests).expect("the worker reads");
    let mut sent = Sent { bytes: requests.len() as u64, ..Sent::default() };
    sent.answered(gpu.wire().call(&op::DeviceSynchronize {}));
    sent.is_right = sent.refused() == 0;
    sent
}

/// Starts a kernel that does not end; returns where it waits.
fn spin(gpu: &mut Gpu) -> u64 {
    let stop = gpu.zeroed::<u32>(64);
    gpu.synchronize().expect("nothing has happened yet");
    gpu.launch("spin", 1, 64, 0, args![stop]);
    stop.address()
}

fn sets(gpu: &mut Gpu) -> Sent {
    let dst = spin(gpu) + 32;
    flood(gpu, &request(&op::MemsetAsync(op::Memset { dst, value: 1, size: 1, stream: 0 }), &[]))
}

/// Returns a launch with nearly 64 KiB of arguments as it is sent.
pub fn large_launch(gpu: &mut Gpu) -> Vec<u8> {
    let mut arguments = Vec::new();
    let (large, total) = (Param { offset: 0, size: 64_000 }, Param { offset: 64_000, size: 8 });
    LaunchArgs::put(&[large, total], &[0; 64_008], &mut arguments);
    let launch = op::LaunchKernel {
        function: gpu.function("take"),
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x: 1,
        block_dim_y: 1,
        block_dim_z: 1,
        num_args: 2,
        ..Wire::ZERO
    };
    request(&launch, &arguments)
}

fn launches(gpu: &mut Gpu) -> Sent {
    spin(gpu);
    let launch = large_launch(gpu);
    flood(gpu, &launch)
}

fn hoard(gpu: &mut Gpu) -> Sent {
    let stop = gpu.zeroed::<u32>(64);
    gpu.launch("hoard", 10_000, 64, 0, args![stop, stop.part(8, 8)]);
    thread::sleep(Duration::from_secs(1));
    Sent::default()
}

fn grids(gpu: &mut Gpu) -> Sent {
    let stop = gpu.zeroed::<u32>(64);
    gpu.synchronize().expect("nothing has happened yet");
    for _ in 0..1_000 {
        let stream = gpu.wire().call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
        gpu.launch_on(stream, "spin", 1 << 20, 64, 0, args![stop]);
    }
    thread::sleep(Duration::from_secs(1));
    Sent::default()
}

fn updates(gpu: &mut Gpu) -> Sent {
    let dst = gpu.zeroed::<u32>(1).address();
    let wire = gpu.wire();
    let graph = wire.call(&op::GraphCreate { flags: 0 }).expect("a graph").graph;
    let (pitch, value, element_size, width, height) = (0, 1, 1, 1, 1);
    let node = op::GraphAddMemsetNode { graph, dst, pitch, value, element_size, width, height, ..Wire::ZERO };
    wire.stream().write_all(&request(&node, &[]).repeat(NODES)).expect("the worker reads");
    let graph_exec = wire.call(&op::GraphInstantiate { graph, flags: 0 }).expect("an instance").graph_exec;
    done(gpu, &request(&op::GraphExecUpdate { graph_exec, graph }, &[]).repeat(60))
}

fn streams(gpu: &mut Gpu) -> Sent {
    let dst = gpu.zeroed::<u32>(1).address();
    let create = request(&op::StreamCreate { flags: 0, priority: 0 }, &[]).repeat(100_000);
    let set = request(&op::MemsetAsync(op::Memset { dst, value: 1, size: 1, stream: 0 }), &[]).repeat(2_000);
    done(gpu, &[create, set].concat())
}

/// Sends a request so often that what names its results takes more than a session may have, where that has a limit.
fn many(gpu: &mut Gpu, one: &[u8]) -> Sent {
    let mut sent = done(gpu, &one.repeat(500_000));
    // The first error of all is reported, once.
    sent.is_right =
        sent.answers.keys().all(|answer| answer.is_none_or(|code| HipError(code) == HipError::OUT_OF_MEMORY));
    sent
}

fn many_allocations(gpu: &mut Gpu) -> Sent {
    many(gpu, &request(&op::Malloc { size: 16, flags: 0 }, &[]))
}

fn many_events(gpu: &mut Gpu) -> Sent {
    many(gpu, &request(&op::EventCreate { flags: 0 }, &[]))
}

fn many_nodes(gpu: &mut Gpu) -> Sent {
    let graph = gpu.wire().call(&op::GraphCreate { flags: 0 }).expect("a graph").graph;
    many(gpu, &request(&op::GraphAddEmptyNode { graph, ..Wire::ZERO }, &[]))
}

/// Asks for copies and reads none of them for a while; then every byte comes.
fn unread(gpu: &mut Gpu, count: usize) -> Sent {
    let from = gpu.filled::<u8>(UNREAD_BYTES, UNREAD_BYTE);
    let (src, size, kind) = (from.address(), from.len_bytes(), op::kind::DEVICE_TO_HOST);
    let copy = op::Memcpy { dst: 0, src, size, kind, stream: 0 };
    for _ in 0..count {
        gpu.wire().send(&copy, &[], None, ReplyMode::Always);
    }
    thread::sleep(UNREAD_FOR);
    let mut sent = Sent { bytes: (count * (Header::SIZE + op::Memcpy::SIZE)) as u64, ..Sent::default() };
    for _ in 0..count {
        let copied = gpu.wire().wait::<op::Memcpy>();
        sent.is_right &= copied.inline.len() == UNREAD_BYTES;
        sent.is_right &= copied.inline.iter().all(|&byte| byte == UNREAD_BYTE);
        sent.answered(copied.result);
    }
    sent.is_right &= sent.refused() == 0;
    sent
}

fn allocations(gpu: &mut Gpu) -> Sent {
    done(gpu, &request(&op::Malloc { size: 16, flags: 0 }, &[]).repeat(100_000))
}
