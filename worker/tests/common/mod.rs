//! Shared parts of the tests: a worker in this process, and clients that use real sockets and the client half of the protocol
//! core.

#![allow(dead_code)] // each test file uses a part

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hipr_device::Device;
use hipr_proto::op::*;
use hipr_proto::{
    Answer, Call, Client, Features, Header, HipResult, Limits, Op, Opcode, Outbox, ReplyMode, Wire,
};
use hipr_sim::Gpu;
use hipr_worker::device::null::Null;
use hipr_worker::device::script::Script;
use hipr_worker::{Address, Config, Handle, Io, Worker};

/// Timeout of the tests, longer than any of them takes unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the event loop to test with: that of `HIPR_TEST_IO`, or the worker's default.
pub(crate) fn event_loop() -> Io {
    std::env::var("HIPR_TEST_IO").map_or(Io::Auto, |name| name.parse().unwrap())
}

/// Starts a worker with a scripted device.
pub(crate) fn scripted(configure: impl FnOnce(&mut Config)) -> (Handle, Script) {
    let script = Script::new();
    let mut config = Config::new(Arc::new(script.clone()));
    config.listen = "127.0.0.1:0".into();
    config.io = event_loop();
    configure(&mut config);
    (Worker::bind(config).unwrap().spawn().unwrap(), script)
}

/// Returns the device `sim`, `null` or `script`.
pub(crate) fn device(name: &str) -> Arc<dyn Device> {
    match name {
        "sim" => Arc::new(Gpu::new(hipr_sim::Config::default()).unwrap()),
        "null" => Arc::new(Null),
        "script" => Arc::new(Script::new()),
        _ => panic!("no device {name}"),
    }
}

/// Starts a worker with the named device.
pub(crate) fn worker(name: &str) -> Handle {
    let mut config = Config::new(device(name));
    config.listen = "127.0.0.1:0".into();
    config.io = event_loop();
    Worker::bind(config).unwrap().spawn().unwrap()
}

/// Starts a worker with an emulated GPU that has so many bytes of memory.
pub(crate) fn emulated(memory_bytes: u64, configure: impl FnOnce(&mut Config)) -> Handle {
    let gpu = Gpu::new(hipr_sim::Config { memory_bytes: Some(memory_bytes), ..Default::default() });
    let mut config = Config::new(Arc::new(gpu.unwrap()));
    config.listen = "127.0.0.1:0".into();
    config.io = event_loop();
    configure(&mut config);
    Worker::bind(config).unwrap().spawn().unwrap()
}

/// Returns a condition for [`until`]: a worker that is sent bytes has not read any for a while.
pub(crate) fn reads_no_more(worker: &Handle) -> impl FnMut() -> bool {
    let (mut received, mut still) = (0, 0);
    move || {
        let now = worker.stats().io().received_bytes;
        still = if now == received { still + 1 } else { 0 };
        received = now;
        received > 1 << 18 && still > 100
    }
}

/// Waits until `is_so` returns true; panics after the timeout.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A client on a real socket.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    client: Client<Vec<u8>>,
    input: Vec<u8>,
    start: usize,
    /// The notifications that have come: operation, fixed part and tail.
    pub(crate) heard: Vec<(Opcode, Vec<u8>, Vec<u8>)>,
    /// Whether the tail of the last one is arriving.
    hears: bool,
}

impl Peer {
    /// Connects without sending anything.
    pub(crate) fn connect(address: impl Into<Address>) -> Self {
        Self::over(TcpStream::connect(address.into().tcp().unwrap()).unwrap())
    }

    /// Uses a connection to a worker.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let (input, start, heard, hears) = Default::default();
        Self { stream, client: Client::new(Limits::default()), input, start, heard, hears }
    }

    /// Accepts notifications from now on.
    pub(crate) fn accept_notifications(&mut self) {
        self.client.accept_notifications();
    }

    /// Connects, opens a session that hears notifications, and offers these features; returns those that are accepted.
    pub(crate) fn offering(address: impl Into<Address>, features: Features) -> (Self, Features) {
        let mut peer = Self::connect(address);
        peer.accept_notifications();
        peer.call(&Init {}).expect("a session");
        let offer = Offer { features: features.bits(), part: 0 };
        let accepted = peer.call(&offer).expect("an answer").features;
        (peer, Features::from_bits(accepted))
    }

    /// Connects and opens a session.
    pub(crate) fn hello(address: impl Into<Address>) -> Self {
        let mut peer = Self::connect(address);
        peer.call(&Init {}).unwrap();
        peer
    }

    /// Sends a request and waits for the reply, even if the operation needs none.
    pub(crate) fn call<O: Op>(&mut self, op: &O) -> HipResult<O::Reply> {
        self.call_with(op, &[])
    }

    /// Sends a request with bytes after the fixed part, and waits for the reply.
    pub(crate) fn call_with<O: Op>(&mut self, op: &O, tail: &[u8]) -> HipResult<O::Reply> {
        self.call_inline(op, tail).map(|(reply, _)| reply)
    }

    /// Sends a request with bytes after the fixed part, and waits for the reply; returns its inline bytes, too.
    pub(crate) fn call_inline<O: Op>(&mut self, op: &O, tail: &[u8]) -> HipResult<(O::Reply, Vec<u8>)> {
        let call = self.send(op, tail, ReplyMode::Always);
        self.flush();
        self.reply::<O>(call.unwrap())
    }

    /// Sends a request that is not answered.
    pub(crate) fn forget<O: Op>(&mut self, op: &O, tail: &[u8]) {
        self.send(op, tail, ReplyMode::Never);
    }

    /// Queues a request, which is sent with the next [`Peer::flush`] or when the buffer is full.
    pub(crate) fn send<O: Op>(&mut self, op: &O, tail: &[u8], reply_mode: ReplyMode) -> Option<Call> {
        let call = self.client.request_with(op, &[], Some(tail.to_vec()), reply_mode).unwrap();
        if self.client.wants_flush() {
            self.flush();
        }
        call
    }

    /// Sends the queued requests.
    pub(crate) fn flush(&mut self) {
        let mut outbox = Outbox::new();
        self.client.flush();
        self.client.poll_transmit(&mut outbox);
        for bytes in outbox.slices() {
            self.stream.write_all(bytes).unwrap();
        }
    }

    /// Waits for the reply to a call.
    pub(crate) fn reply<O: Op>(&mut self, expected: Call) -> HipResult<(O::Reply, Vec<u8>)> {
        let mut result = None;
        let mut inline = Vec::new();
        loop {
            let mut bytes = &self.input[self.start..];
            let done = match self.client.handle_input(&mut bytes).unwrap() {
                Answer::Reply(reply) => {
                    assert_eq!(reply.call, expected);
                    result = Some(reply.read::<O>().unwrap());
                    reply.inline == 0
                }
                Answer::Data { bytes, last } if self.hears => {
                    self.heard.last_mut().expect("what is heard").2.extend_from_slice(bytes);
                    self.hears = !last;
                    false
                }
                Answer::Data { bytes, last } => {
                    inline.extend_from_slice(bytes);
                    last
                }
                Answer::Notification(notification) if result.is_none() => {
                    self.heard.push((notification.op, notification.fixed.to_vec(), Vec::new()));
                    self.hears = notification.inline > 0;
                    false
                }
                Answer::Notification(notification) => panic!("inside a reply: {notification:?}"),
                Answer::NeedMore => {
                    self.input.resize(256 << 10, 0);
                    let n = self.stream.read(&mut self.input).unwrap();
                    assert!(n > 0, "the worker closed the connection");
                    self.input.truncate(n);
                    self.start = 0;
                    continue;
                }
            };
            self.start = self.input.len() - bytes.len();
            if done {
                return result.unwrap().map(|reply| (reply, inline));
            }
        }
    }

    /// Waits until the worker has sent something that was not read yet.
    pub(crate) fn wait_for_bytes(&mut self) {
        if self.start == self.input.len() {
            assert_eq!(self.stream.peek(&mut [0]).expect("bytes of the worker"), 1, "while nobody asks");
        }
    }

    /// Returns whether the worker closes the connection without sending anything more.
    pub(crate) fn sees_end(mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => true,
            Ok(_) => false,
            Err(why) => why.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    // ---- shorthands --------------------------------------------------------------------------------------------------

    pub(crate) fn malloc(&mut self, size: u64) -> u64 {
        self.call(&Malloc { size, flags: 0 }).unwrap().device_ptr
    }

    pub(crate) fn stream_create(&mut self) -> u64 {
        self.call(&StreamCreate { flags: 0, priority: 0 }).unwrap().stream
    }

    pub(crate) fn event_create(&mut self) -> u64 {
        self.call(&EventCreate { flags: 0 }).unwrap().event
    }

    pub(crate) fn module_load(&mut self) -> u64 {
        self.call_with(&ModuleLoadData { data_size: 4 }, b"code").unwrap().module
    }

    pub(crate) fn function(&mut self, module: u64, name: &str) -> u64 {
        let mut tail = Vec::new();
        put_name(name, &mut tail).unwrap();
        self.call_with(&ModuleGetFunction { module }, &tail).unwrap().function
    }

    /// Sends bytes to device memory, unanswered.
    pub(crate) fn h2d(&mut self, dst: u64, bytes: &[u8], stream: u64) {
        self.forget(&h2d(dst, bytes.len() as u64, stream), bytes);
    }

    /// Reads device memory.
    pub(crate) fn d2h(&mut self, src: u64, size: u64, stream: u64) -> HipResult<Vec<u8>> {
        self.call_inline(&d2h(src, size, stream), &[]).map(|(_, bytes)| bytes)
    }
}

pub(crate) fn h2d(dst: u64, size: u64, stream: u64) -> Memcpy {
    Memcpy { dst, src: 0, size, kind: kind::HOST_TO_DEVICE, stream }
}

pub(crate) fn d2h(src: u64, size: u64, stream: u64) -> Memcpy {
    Memcpy { dst: 0, src, size, kind: kind::DEVICE_TO_HOST, stream }
}

pub(crate) fn d2d(dst: u64, src: u64, size: u64, stream: u64) -> Memcpy {
    Memcpy { dst, src, size, kind: kind::DEVICE_TO_DEVICE, stream }
}

pub(crate) fn launch(function: u64) -> LaunchKernel {
    LaunchKernel {
        function,
        grid_dim_x: 1,
        grid_dim_y: 1,
        grid_dim_z: 1,
        block_dim_x: 64,
        block_dim_y: 1,
        block_dim_z: 1,
        ..Wire::ZERO
    }
}

/// Encodes a message.
pub(crate) fn message(op: Opcode, id: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header::new(op, id, payload.len() as u64, flags).put(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns `len` pseudo-random bytes that depend on `seed` only.
pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut x = seed | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        bytes.extend_from_slice(&(x >> 8).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
