//! Counts the instructions of launches and copies in the worker: connection, dispatch and session in memory. Launches end at the
//! null device, copies at the scripted device, which has memory.

use std::sync::Arc;

use hipr_device::Device;
use hipr_io::{Config, Event, Link, Mailbox, Peer, Pool, Slots};
use hipr_proto::op::{Init, Malloc, Memcpy, ModuleGetFunction, ModuleLoadData, StreamSynchronize, kind};
use hipr_proto::{Answer, Client, Limits, Op, Outbox, ReplyMode};
use hipr_worker::device::null::Null;
use hipr_worker::device::script::Script;
use hipr_worker::{Dispatch, SessionLimits, Stats};

use super::protocol::launch_of;

/// A kernel with six arguments.
pub(super) static KERNEL: &[u8] = include_bytes!("../../../cli/bench/six.co");
/// Number of launches that are sent together.
const LAUNCHES: u64 = 100;

/// Makes `operations` launches in groups of 100, each followed by a synchronization.
pub(super) fn launch(operations: u64) {
    let mut worker = Memory::new(Arc::new(Null));
    worker.call(&Init {}, None);
    let module =
        worker.call(&ModuleLoadData { data_size: KERNEL.len() as u64 }, Some(KERNEL.to_vec())).module;
    let function = worker.call(&ModuleGetFunction { module }, Some(b"six\0".to_vec())).function;
    let (launch, args) = launch_of(function);
    for _ in 0..operations / LAUNCHES {
        for _ in 0..LAUNCHES {
            let call = worker.client.request(&launch, &args, None).expect("there is room");
            assert!(call.is_none(), "a launch is not answered");
        }
        worker.call(&StreamSynchronize { stream: 0 }, None);
    }
}

/// Copies 20 KiB to the device and back, `operations` times. That is more than a small read, so that the buffer read into is passed on.
pub(super) fn copy(operations: u64) {
    const LEN_BYTES: usize = 20 << 10;
    let bytes: Vec<u8> = (0..LEN_BYTES).map(|index| index as u8).collect();
    let mut worker = Memory::new(Arc::new(Script::new()));
    worker.call(&Init {}, None);
    let ptr = worker.call(&Malloc { size: LEN_BYTES as u64, flags: 0 }, None).device_ptr;
    for _ in 0..operations {
        let write =
            Memcpy { dst: ptr, src: 0, size: LEN_BYTES as u64, kind: kind::HOST_TO_DEVICE, stream: 0 };
        worker.call(&write, Some(bytes.clone()));
        worker.read_back(ptr, LEN_BYTES);
    }
    assert_eq!(worker.inline, bytes, "what was written is read");
}

/// Copies 64 bytes from the device, `operations` times.
pub(super) fn read(operations: u64) {
    let mut worker = Memory::new(Arc::new(Script::new()));
    worker.call(&Init {}, None);
    let ptr = worker.call(&Malloc { size: 64, flags: 0 }, None).device_ptr;
    for _ in 0..operations {
        worker.read_back(ptr, 64);
    }
    assert_eq!(worker.inline.len(), 64, "all bytes are read");
}

/// A client and a worker that exchange bytes in memory.
struct Memory {
    client: Client<Vec<u8>>,
    outbox: Outbox<Vec<u8>>,
    link: Link,
    pool: Pool,
    buffer: Vec<u8>,
    mailbox: Arc<Mailbox>,
    stats: Stats,
    dispatch: Dispatch,
    /// The inline bytes of the last reply.
    inline: Vec<u8>,
}

impl Memory {
    fn new(device: Arc<dyn Device>) -> Self {
        let mailbox = Arc::new(Mailbox::new(|| ()));
        let stats = Stats::default();
        let limits = SessionLimits::default();
        // Neither device makes anybody wait, so nobody has to be woken.
        let dispatch = Dispatch::new(device, limits, mailbox.clone(), |_| (), &stats);
        let conn = Slots::default().insert(|_| ()).expect("an empty table has room");
        let mut pool = Pool::default();
        Self {
            client: Client::new(Limits::default()),
            outbox: Outbox::new(),
            link: Link::new(conn, Peer::Local, &Config::default(), 0),
            buffer: pool.buffer(),
            pool,
            mailbox,
            stats,
            dispatch,
            inline: Vec::new(),
        }
    }

    /// Reads `len` bytes of device memory into `inline`.
    fn read_back(&mut self, src: u64, len: usize) {
        self.call(&Memcpy { dst: 0, src, size: len as u64, kind: kind::DEVICE_TO_HOST, stream: 0 }, None);
    }

    /// Makes a call and returns its reply.
    fn call<O: Op>(&mut self, op: &O, inline: Option<Vec<u8>>) -> O::Reply {
        let call = self.client.request_with(op, &[], inline, ReplyMode::Always).expect("there is room");
        let call = call.expect("a call that is answered");
        self.client.poll_transmit(&mut self.outbox);
        let sent = self.outbox.slices().collect::<Vec<_>>().concat();
        self.outbox.advance(sent.len());
        let io = self.stats.io_counters();
        for piece in sent.chunks(Config::READ_BYTES) {
            self.buffer
                .get_mut(..piece.len())
                .expect("a buffer takes what is read at once")
                .copy_from_slice(piece);
            let mut events = Vec::new();
            let mut sink = |event| events.push(event);
            self.link
                .handle_read(&mut self.buffer, piece.len(), 0, &mut self.pool, &io, &mut sink)
                .expect("a client's bytes");
            self.carry_out(events);
        }
        self.inline.clear();
        let (mut result, mut left) = (None, 0);
        loop {
            let answers = self.link.slices().collect::<Vec<_>>().concat();
            assert!(!answers.is_empty(), "no answer");
            self.link.handle_written(answers.len(), 0, &io);
            let mut rest = answers.as_slice();
            loop {
                match self.client.handle_input(&mut rest).expect("a worker's bytes") {
                    Answer::Reply(reply) => {
                        assert_eq!(reply.call, call, "the answer to this call");
                        left = reply.inline;
                        let reply = reply.read::<O>().expect("a reply of this operation");
                        result = Some(reply.expect("the device refuses nothing"));
                    }
                    Answer::Data { bytes, last } => {
                        self.inline.extend_from_slice(bytes);
                        left = if last { 0 } else { left };
                    }
                    Answer::Notification(other) => panic!("nobody accepts it: {other:?}"),
                    Answer::NeedMore => break,
                }
            }
            match result {
                Some(reply) if left == 0 => return reply,
                found => result = found,
            }
            let mut events = Vec::new();
            self.link.report_drain(&mut |event| events.push(event));
            self.carry_out(events);
        }
    }

    fn carry_out(&mut self, mut events: Vec<Event>) {
        let io = self.stats.io_counters();
        let mut notices = Vec::new();
        while !events.is_empty() {
            events.drain(..).for_each(|event| self.dispatch.handle_event(event));
            while self.dispatch.turn() {}
            self.mailbox.take(&mut notices);
            for notice in notices.drain(..) {
                let applied =
                    self.link.apply(notice, 0, &mut self.pool, &io, &mut |event| events.push(event));
                assert!(applied.fatal.is_none(), "a client's bytes");
            }
        }
    }
}
