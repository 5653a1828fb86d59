//! Counts the instructions of launches in the worker: connection, dispatch and session in memory, and the null device.

use std::sync::Arc;

use hipr_io::{Config, Event, Link, Mailbox, Peer, Pool, Slots};
use hipr_proto::op::{Init, ModuleGetFunction, ModuleLoadData, StreamSynchronize};
use hipr_proto::{Answer, Client, Limits, Op, Outbox};
use hipr_worker::device::null::Null;
use hipr_worker::{Dispatch, SessionLimits, Stats};

use super::protocol::launch_of;

/// A kernel with six arguments.
pub(super) static KERNEL: &[u8] = include_bytes!("../../../cli/bench/six.co");
/// Number of launches that are sent together.
const LAUNCHES: u64 = 100;

/// Makes `operations` launches in groups of 100, each followed by a synchronization.
pub(super) fn launch(operations: u64) {
    let mut worker = Memory::new();
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
}

impl Memory {
    fn new() -> Self {
        let mailbox = Arc::new(Mailbox::new(|| ()));
        let stats = Stats::default();
        let limits = SessionLimits::default();
        // The null device never makes anybody wait, so nobody has to be woken.
        let dispatch = Dispatch::new(Arc::new(Null), limits, mailbox.clone(), |_| (), &stats);
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
        }
    }

    /// Makes a call that is answered and returns its reply.
    fn call<O: Op>(&mut self, op: &O, inline: Option<Vec<u8>>) -> O::Reply {
        let call = self.client.request(op, &[], inline).expect("there is room").expect("an answer");
        self.client.poll_transmit(&mut self.outbox);
        let sent: Vec<u8> = self.outbox.slices().flatten().copied().collect();
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
        let answers: Vec<u8> = self.link.slices().flatten().copied().collect();
        self.link.handle_written(answers.len(), 0, &io);
        match self.client.handle_input(&mut answers.as_slice()).expect("a worker's bytes") {
            Answer::Reply(reply) => {
                assert_eq!(reply.call, call, "the answer to this call");
                let result = reply.read::<O>().expect("a reply of this operation");
                result.expect("the null device refuses nothing")
            }
            _ => panic!("no answer"),
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
