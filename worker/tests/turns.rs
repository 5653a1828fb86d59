//! Tests how much one session may do before another's turn, without threads and sockets.

mod common;

use std::sync::Arc;

use common::*;
use hipr_io::{Config, Event, Link, Mailbox, Pool, Slots};
use hipr_proto::op::*;
use hipr_proto::{Opcode, Wire};
use hipr_worker::device::script::Script;
use hipr_worker::{Dispatch, SessionLimits, Stats};

/// Two connections whose peers receive at once, with the worker's parts behind them.
struct Rig {
    script: Script,
    dispatch: Dispatch,
    mailbox: Arc<Mailbox>,
    links: Slots<Link>,
    conns: [hipr_io::ConnId; 2],
    pool: Pool,
    stats: Stats,
    buffer: Vec<u8>,
    /// Requests that were completed.
    completed: usize,
}

impl Rig {
    fn new() -> Self {
        let (script, stats, mut pool) = (Script::new(), Stats::default(), Pool::default());
        let mailbox = Arc::new(Mailbox::new(|| ()));
        let device = Arc::new(script.clone());
        let dispatch = Dispatch::new(device, SessionLimits::default(), mailbox.clone(), |_| (), &stats);
        let mut links = Slots::default();
        let conns = [(); 2].map(|()| {
            let link = links.insert(|conn| Link::new(conn, hipr_io::Peer::Local, &Config::default(), 0));
            link.expect("there is room")
        });
        let buffer = pool.buffer();
        Self { script, dispatch, mailbox, links, conns, pool, stats, buffer, completed: 0 }
    }

    fn say(&mut self, at: usize, op: Opcode, request: &impl Wire) {
        self.say_with(at, op, request, &[]);
    }

    fn say_with(&mut self, at: usize, op: Opcode, request: &impl Wire, tail: &[u8]) {
        let mut payload = Vec::new();
        request.put(&mut payload);
        payload.extend_from_slice(tail);
        let bytes = message(op, 1, 0, &payload);
        self.buffer[..bytes.len()].copy_from_slice(&bytes);
        let Self { dispatch, links, pool, stats, buffer, .. } = self;
        let link = links.get_mut(self.conns[at]).expect("it is open");
        let counters = stats.io_counters();
        let mut sink = |event| dispatch.handle_event(event);
        link.handle_read(buffer, bytes.len(), 0, pool, &counters, &mut sink).expect("a request");
    }

    /// Executes a turn; returns the number of bytes that were read from device memory.
    fn turn(&mut self) -> u64 {
        let before = self.script.calls("read");
        self.dispatch.turn();
        let read = self.script.calls("read") - before;
        let mut notices = Vec::new();
        self.mailbox.take(&mut notices);
        let (counters, mut events) = (self.stats.io_counters(), Vec::<Event>::new());
        for notice in notices {
            self.completed += notice.completed;
            let link = self.links.get_mut(notice.conn).expect("it is open");
            let mut sink = |event| events.push(event);
            assert!(link.apply(notice, 0, &mut self.pool, &counters, &mut sink).fatal.is_none());
            let len = link.slices().map(<[u8]>::len).sum();
            link.handle_written(len, 0, &counters);
            link.report_drain(&mut sink);
        }
        events.into_iter().for_each(|event| self.dispatch.handle_event(event));
        read * SessionLimits::default().chunk_bytes as u64
    }
}

#[test]
fn a_copy_has_short_turns_beside_others_and_long_ones_alone() {
    let mut rig = Rig::new();
    let size = 32 << 20;
    rig.say(0, Opcode::MALLOC, &Malloc { size, flags: 0 });
    rig.turn();
    rig.say(0, Opcode::MEMCPY, &d2h(Script::first_address(0), size, 0));
    let turn_max_bytes = SessionLimits::default().turn_max_bytes as u64;
    let mut beside = 0;
    for _ in 0..20 {
        rig.say(1, Opcode::PING, &Ping {});
        let read = rig.turn();
        assert!(read <= turn_max_bytes / 4, "{read} bytes while another waits");
        beside += read;
    }
    assert!(beside >= turn_max_bytes, "the copy goes on, too");
    // In between it asks the loop how far sending got, and reads nothing.
    let alone: Vec<u64> = (0..20).map(|_| rig.turn()).collect();
    assert_eq!(alone.iter().max(), Some(&turn_max_bytes), "nobody else has asked for a while: {alone:?}");
}

/// Checks that requests which take long end a turn, although there are few of them and they move no bytes.
#[test]
fn a_turn_ends_by_time() {
    const NODES: u64 = 20_000;
    const QUESTIONS: usize = 200;
    let mut rig = Rig::new();
    rig.say(0, Opcode::GRAPH_CREATE, &GraphCreate { flags: 0 });
    rig.turn();
    // Handles are counted from the graph's, 1, and each node but the first comes after the one before it.
    for last in 1..=NODES {
        let dependency = (last > 1).then(|| last.to_le_bytes());
        let num_deps = u32::from(dependency.is_some());
        let add = GraphAddEmptyNode { graph: 1, num_deps };
        rig.say_with(0, Opcode::GRAPH_ADD_EMPTY_NODE, &add, dependency.as_ref().map_or(&[], |bytes| bytes));
        rig.turn();
    }
    assert_eq!(rig.completed as u64, NODES + 1);
    for _ in 0..QUESTIONS {
        // There is no second one, so all nodes are looked at.
        rig.say(0, Opcode::GRAPH_GET_ROOT_NODES, &GraphGetRootNodes { graph: 1, max_nodes: 2 });
    }
    rig.completed = 0;
    rig.turn();
    assert!((1..QUESTIONS / 2).contains(&rig.completed), "{} answers in one turn", rig.completed);
    while rig.completed < QUESTIONS {
        rig.turn();
    }
}
