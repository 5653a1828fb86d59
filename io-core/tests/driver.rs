//! Tests a loop over connections in memory, with a handler that does a little in each turn.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hipr_io::{
    Batch, Carrier, Config, ConnId, Driver, Event, Handler, Link, Mailbox, Notice, Peer, Pool, Read, Stats,
    Stream, Table, WriteContext,
};
use hipr_proto::{FLAG_NO_REPLY, Header, Opcode};

/// Connections that have said everything at once.
struct Said {
    arrivals: VecDeque<Vec<u8>>,
    opened: Vec<ConnId>,
    buffer: Vec<u8>,
}

impl Carrier for Said {
    type Arrival = Vec<u8>;
    type Socket = VecDeque<u8>;

    fn wait(&mut self, timeout: Option<Duration>, table: &mut Table<Self::Socket>) -> io::Result<()> {
        assert!(timeout.is_some(), "nothing else will happen");
        for conn in self.opened.drain(..) {
            table.make_ready(conn);
        }
        Ok(())
    }

    fn is_listening(&self) -> bool {
        true
    }

    fn accept_at_ms(&self, now_ms: u64) -> Option<u64> {
        (!self.arrivals.is_empty()).then_some(now_ms)
    }

    fn accept(&mut self, _: u64) -> Option<(Self::Arrival, Peer)> {
        self.arrivals.pop_front().map(|said| (said, Peer::Local))
    }

    fn handle_descriptor_free(&mut self) {}

    fn open(&mut self, conn: ConnId, arrival: Self::Arrival) -> io::Result<Self::Socket> {
        self.opened.push(conn);
        Ok(arrival.into())
    }

    fn adopt(&mut self, _: Stream) -> io::Result<(Vec<u8>, Peer)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rebind(&mut self, _: &mut Self::Socket, _: ConnId) -> io::Result<()> {
        Ok(())
    }

    fn failure(&mut self, _: &mut Self::Socket) -> Option<io::Error> {
        None
    }

    fn write(&mut self, _: &mut Self::Socket, _: &mut Link, _: WriteContext<'_>) -> io::Result<()> {
        Ok(())
    }

    fn read<R>(
        &mut self,
        socket: &mut Self::Socket,
        want_bytes: usize,
        pool: &mut Pool,
        take: impl FnOnce(&mut Vec<u8>, usize, &mut Pool) -> R,
    ) -> io::Result<Read<R>> {
        let len = want_bytes.min(socket.len());
        if len == 0 {
            return Ok(Read::Nothing);
        }
        for (to, from) in self.buffer.iter_mut().zip(socket.drain(..len)) {
            *to = from;
        }
        Ok(Read::Bytes(len, take(&mut self.buffer, len, pool)))
    }

    fn pause(&mut self, _: &mut Self::Socket) {}
    fn half_close(&mut self, _: &mut Self::Socket) {}
    fn close(&mut self, _: Self::Socket) {}
}

/// A handler that is behind until it has been told everything, and finishes with a batch in each `turns_each` turns.
struct Slow {
    mailbox: Arc<Mailbox>,
    turns_each: usize,
    turns: usize,
    queue: VecDeque<(ConnId, Batch)>,
    held_bytes: usize,
    most_held_bytes: usize,
    /// For each batch the turns before it was heard, and its items.
    heard: Vec<(usize, usize)>,
    expected_items: usize,
}

impl Handler for &mut Slow {
    fn handle_event(&mut self, event: Event) {
        if let Event::Batch { conn, batch } = event {
            self.held_bytes += batch.cost_bytes();
            self.most_held_bytes = self.most_held_bytes.max(self.held_bytes);
            self.heard.push((self.turns, batch.len()));
            self.queue.push_back((conn, batch));
        }
    }

    fn turn(&mut self) -> bool {
        self.turns += 1;
        assert!(self.turns < 100_000, "the loop goes on");
        if self.turns.is_multiple_of(self.turns_each)
            && let Some((conn, batch)) = self.queue.pop_front()
        {
            self.held_bytes -= batch.cost_bytes();
            let completed = batch.len();
            self.mailbox.post(Notice { completed, returned: vec![batch], ..Notice::new(conn) });
        }
        if self.queue.is_empty()
            && self.heard.iter().map(|(_, items)| items).sum::<usize>() == self.expected_items
        {
            self.mailbox.stop();
        }
        true
    }
}

/// Returns `count` messages.
fn messages(count: usize) -> Vec<u8> {
    let mut one = Vec::new();
    Header::new(Opcode::PING, 1, 0, FLAG_NO_REPLY).put(&mut one);
    one.repeat(count)
}

/// Runs a loop until everything is handled that each connection says.
fn run(config: Config, counts: &[usize], turns_each: usize) -> Slow {
    let arrivals = counts.iter().map(|&count| messages(count)).collect();
    let carrier = Said { arrivals, opened: Vec::new(), buffer: Pool::default().buffer() };
    let driver = Driver::new(carrier, Mailbox::new(|| ()), config, Arc::new(Stats::default()));
    let mut slow = Slow {
        mailbox: driver.mailbox(),
        turns_each,
        turns: 0,
        queue: VecDeque::new(),
        held_bytes: 0,
        most_held_bytes: 0,
        heard: Vec::new(),
        expected_items: counts.iter().sum(),
    };
    driver.run(&mut slow).expect("nothing fails");
    slow
}

/// More than what is copied, far less than a read takes.
const MANY: usize = 2000;

#[test]
fn what_all_say_at_once_waits_in_their_sockets_while_the_handler_is_behind() {
    let config = Config::default();
    let each = Batch::most_cost_bytes(MANY * Header::SIZE);
    let at_first = config.turn_total_max_bytes.div_ceil(MANY * Header::SIZE) * each;
    let slow = run(config, &[MANY; 300], 1);
    assert_eq!(slow.heard.len(), 300);
    assert!(slow.most_held_bytes <= at_first + each, "{} bytes held", slow.most_held_bytes);
}

#[test]
fn who_says_little_is_heard_at_once_although_the_handler_is_behind() {
    let counts = [vec![MANY; 30], vec![1; 100]].concat();
    let slow = run(Config::default(), &counts, 100);
    let last = slow.heard.iter().filter(|(_, items)| *items == 1).map(|(turns, _)| *turns).max();
    // A turn for each of those that say much and came before.
    assert!(last.is_some_and(|turns| turns <= 40), "the last one is heard after {last:?} turns");
}

#[test]
fn what_is_held_stays_within_the_limit_of_all_connections() {
    let config = Config { in_flight_total_max_bytes: 4 << 20, ..Config::default() };
    let slow = run(config.clone(), &[MANY; 300], 50);
    let each = Batch::most_cost_bytes(Config::SMALL_READ_BYTES);
    let most = config.in_flight_total_max_bytes + Batch::most_cost_bytes(MANY * Header::SIZE) + 300 * each;
    assert!(slow.most_held_bytes <= most, "{} bytes held", slow.most_held_bytes);
}
