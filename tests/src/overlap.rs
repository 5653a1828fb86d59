//! Checks that network and device copy at the same time, through a bounded number of pinned buffers, by the order of calls
//! to the HIP runtime instead of a clock.

use crate::faults::{EVERY, Plan, Rig, called};
use crate::{Chain, WireClient, eventually};
use hipr_proto::{ReplyMode, op};
use std::fs;
use std::path::PathBuf;
use std::thread;
use tempfile::TempDir;

/// hipErrorNotReady.
const NOT_READY: i32 = 600;
/// Number of a session's pinned buffers.
const BUFFERS: usize = 8;
const BUFFER_BYTES: usize = 512 << 10;

/// A chain whose calls of the runtime are recorded.
struct Bench {
    chain: Chain,
    folder: TempDir,
}

impl Bench {
    fn start(rig: &Rig<'_>) -> Self {
        let (chain, folder) = rig.start(&[]);
        Self { chain, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn plan(&self, function: &str, call: u64, error: i32) {
        self.start_plan(&Plan { function: function.into(), call, error, spared: 0 });
    }

    fn start_plan(&self, plan: &Plan) {
        fs::write(self.file("new"), plan.text()).expect("the plan is written");
        fs::rename(self.file("new"), self.file("plan")).expect("the plan appears");
    }

    fn end_plan(&self) {
        fs::remove_file(self.file("plan")).expect("the plan is there");
    }

    /// Returns the functions that were called since recording began, in order.
    fn calls(&self) -> Vec<String> {
        let trace = fs::read_to_string(self.file("trace")).unwrap_or_default();
        trace.lines().map(|line| called(line).0.to_owned()).collect()
    }

    fn copies(&self) -> usize {
        self.calls().iter().filter(|call| *call == "hipMemcpyAsync").count()
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 13 + i / 509) as u8).collect()
}

fn upload(dst: u64, size: u64) -> op::MemcpyHtodAsync {
    op::MemcpyHtodAsync(op::Memcpy { dst, src: 0, size, kind: op::kind::HOST_TO_DEVICE, stream: 0 })
}

fn download(wire: &mut WireClient, src: u64, size: u64) -> Vec<u8> {
    let read = op::Memcpy { dst: 0, src, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 };
    let read = wire.call_with(&read, &[], None);
    assert_eq!(read.result, Ok(()));
    read.inline
}

/// Checks that a copy to the device is received to its end while the device is done with no part of it.
pub fn bytes_are_received_while_the_device_copies_those_before_them(rig: &Rig<'_>) {
    let bench = Bench::start(rig);
    let bytes = pattern((BUFFERS - 2) * BUFFER_BYTES + 5);
    let size = bytes.len() as u64;
    let mut wire = WireClient::open(bench.chain.address());
    let dst = wire.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    // From now on the device is done with nothing, as far as anybody can tell.
    bench.plan("hipEventQuery", EVERY, NOT_READY);
    assert_eq!(wire.call_with(&upload(dst, size), &[], Some(bytes.clone())).result, Ok(()));
    assert!(bench.copies() >= BUFFERS - 2, "all was received and asked for: {} copies", bench.copies());
    bench.end_plan();
    assert!(download(&mut wire, dst, size) == bytes);
}

/// Checks that a session has no more pinned buffers for copies than it may have.
pub fn no_more_is_received_than_there_are_buffers_for(rig: &Rig<'_>) {
    let bench = Bench::start(rig);
    let bytes = pattern(64 << 20);
    let size = bytes.len() as u64;
    let mut wire = WireClient::open(bench.chain.address());
    let dst = wire.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    bench.plan("hipEventQuery", EVERY, NOT_READY);
    let sent = bytes.clone();
    let sender = thread::spawn(move || {
        let result = wire.call_with(&upload(dst, size), &[], Some(sent)).result;
        (wire, result)
    });
    eventually("all buffers are the device's", || {
        bench.calls().iter().filter(|call| *call == "hipHostMalloc").count() == BUFFERS
    });
    assert!(!sender.is_finished(), "the sender is held up");
    bench.end_plan();
    let (mut wire, result) = sender.join().expect("no panic");
    assert_eq!(result, Ok(()));
    assert!(download(&mut wire, dst, size) == bytes);
    let buffers = bench.calls().iter().filter(|call| *call == "hipHostMalloc").count();
    assert_eq!(buffers, BUFFERS, "in all");
}

/// Checks that the device copies to all buffers before any is sent.
pub fn the_device_copies_ahead_of_what_is_sent(rig: &Rig<'_>) {
    let bench = Bench::start(rig);
    let bytes = pattern(2 * BUFFERS * BUFFER_BYTES);
    let size = bytes.len() as u64;
    let mut writer = WireClient::open(bench.chain.address());
    let dst = writer.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    assert_eq!(writer.call_with(&upload(dst, size), &[], Some(bytes.clone())).result, Ok(()));
    writer.call(&op::DeviceReset {}).expect("its buffers go");
    let dst = writer.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    writer.call(&op::Memset { dst, value: 0x21, size, stream: 0 }).expect("a fill");
    writer.call(&op::DeviceSynchronize {}).expect("filled");
    bench.plan("none", 0, 0);
    let read = op::Memcpy { dst: 0, src: dst, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 };
    writer.send(&read, &[], None, ReplyMode::Always);
    let read = writer.wait::<op::Memcpy>();
    assert!(read.inline.iter().all(|byte| *byte == 0x21) && read.inline.len() == bytes.len());
    let calls = bench.calls();
    let first = calls.iter().position(|call| call == "hipMemcpyAsync").expect("a copy");
    let before_any_is_done = calls[first..].iter().take_while(|call| *call != "hipEventQuery");
    let asked = before_any_is_done.filter(|call| *call == "hipMemcpyAsync").count();
    assert_eq!(asked, BUFFERS, "asked for before it is looked whether one is done: {:?}", &calls[first..]);
}

/// Checks that bytes are on the network while the device still copies those behind them.
pub fn bytes_are_sent_while_the_device_copies_those_behind_them(rig: &Rig<'_>) {
    let bench = Bench::start(rig);
    let size = (BUFFERS * BUFFER_BYTES) as u64;
    let mut wire = WireClient::open(bench.chain.address());
    let src = wire.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    wire.call(&op::Memset { dst: src, value: 0x42, size, stream: 0 }).expect("a fill");
    wire.call(&op::DeviceSynchronize {}).expect("filled");
    // The device is done with the work before and with one chunk, as far as anybody can tell: with the one that is sent, since no
    // buffer is read before it is asked for.
    bench.start_plan(&Plan { function: "hipEventQuery".into(), call: EVERY, error: NOT_READY, spared: 2 });
    let read = op::Memcpy { dst: 0, src, size, kind: op::kind::DEVICE_TO_HOST, stream: 0 };
    wire.send(&read, &[], None, ReplyMode::Always);
    // Of the first chunk as much as a socket holds that nobody reads from.
    let mut arrived = vec![0; 32 << 10];
    eventually("the first bytes are on the network", || {
        wire.stream().peek(&mut arrived).expect("the worker sends") == arrived.len()
    });
    assert!(arrived.ends_with(&[0x42; 16 << 10]), "what the device copied");
    assert_eq!(bench.copies(), BUFFERS, "all others are asked for: {:?}", bench.calls());
    bench.end_plan();
    let read = wire.wait::<op::Memcpy>();
    assert!(read.result.is_ok() && read.inline == vec![0x42; BUFFERS * BUFFER_BYTES]);
}
