//! Tests a link without a socket; the test supplies bytes and clock.

use hipr_io::{
    Batch, Body, Config, ConnId, End, Event, Finish, Item, Link, Notice, Peer, Pool, Slots, Stats,
};
use hipr_proto::{
    FLAG_NO_REPLY, Fatal, Header, Limits, Opcode, Outbox, Outcome, Responder, Ticket, Wire,
    op::{Malloc, Memcpy, Ping, kind},
};

/// A link, the events it emitted, and what it needs to run.
struct Rig {
    link: Link,
    config: Config,
    pool: Pool,
    stats: Stats,
    buffer: Vec<u8>,
    events: Vec<Event>,
    now_ms: u64,
}

fn id() -> ConnId {
    Slots::default().insert(|_| ()).unwrap()
}

impl Rig {
    fn new(config: Config) -> Self {
        let mut pool = Pool::default();
        let link = Link::new(id(), Peer::Local, &config, 0);
        let buffer = pool.buffer();
        Self { link, config, pool, stats: Stats::default(), buffer, events: Vec::new(), now_ms: 0 }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Fatal> {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        let Self { link, pool, stats, buffer, events, now_ms, .. } = self;
        link.handle_read(buffer, bytes.len(), *now_ms, pool, stats, &mut |event| events.push(event))
    }

    fn apply(&mut self, notice: Notice) -> Option<Fatal> {
        let Self { link, pool, stats, events, now_ms, .. } = self;
        link.apply(notice, *now_ms, pool, stats, &mut |event| events.push(event)).fatal
    }

    fn notice(&self) -> Notice {
        Notice::new(self.link.conn())
    }

    fn wants_read(&self) -> usize {
        self.link.wants_read(&self.config, &self.pool)
    }

    fn overdue(&mut self) -> Option<End> {
        self.link.overdue(self.now_ms, &self.config, &self.pool)
    }

    fn batches(&mut self) -> Vec<Batch> {
        let events = std::mem::take(&mut self.events);
        events
            .into_iter()
            .filter_map(|event| if let Event::Batch { batch, .. } = event { Some(batch) } else { None })
            .collect()
    }
}

fn message(op: Opcode, fixed: &impl Wire, tail: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    fixed.put(&mut payload);
    payload.extend_from_slice(tail);
    let mut bytes = Vec::new();
    Header::new(op, 1, payload.len() as u64, FLAG_NO_REPLY).put(&mut bytes);
    bytes.extend(payload);
    bytes
}

fn copy(len: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 256) as u8).collect();
    let fixed = Memcpy { dst: 1, src: 0, size: len as u64, kind: kind::HOST_TO_DEVICE, stream: 0 };
    message(Opcode::MEMCPY, &fixed, &bytes)
}

/// A request of a batch, with its pieces of data joined.
#[derive(Debug, PartialEq)]
struct Said {
    op: Opcode,
    fixed: Vec<u8>,
    tail: u64,
    data: Vec<u8>,
    whole: bool,
}

fn said(batches: Vec<Batch>) -> Vec<Said> {
    let mut said = Vec::<Said>::new();
    for mut batch in batches {
        while let Some(item) = batch.pop() {
            match item {
                Item::Request { ticket, fixed, tail, follows } => {
                    assert_eq!(ticket.sequence(), said.len() as u64);
                    let (op, fixed) = (ticket.op(), batch.bytes(fixed).to_vec());
                    let (data, len, whole) =
                        (batch.bytes(tail).to_vec(), tail.len() as u64 + follows, follows == 0);
                    said.push(Said { op, fixed, tail: len, data, whole });
                }
                Item::Data { span, last } => {
                    let Said { data, whole, .. } = said.last_mut().unwrap();
                    data.extend_from_slice(batch.bytes(span));
                    assert!(!std::mem::replace(whole, last), "data after the last");
                }
            }
        }
    }
    said
}

#[test]
fn how_bytes_are_cut_is_invisible() {
    let malloc = message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[]);
    let unknown = message(Opcode(0x7777), &9u64, &[1; 500]);
    let named = message(Opcode::MODULE_GET_FUNCTION, &7u64, &[b'k'; 300]);
    let stream =
        [malloc.clone(), copy(100_000), named.clone(), unknown, named, copy(10), copy(30_000), malloc]
            .concat();
    let cut = |sizes: &[usize]| {
        let mut rig = Rig::new(Config::default());
        let mut left = stream.as_slice();
        for size in sizes.iter().cycle() {
            let (now, rest) = left.split_at(*size.min(&left.len()));
            rig.read(now).unwrap();
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        said(rig.batches())
    };
    let whole = cut(&[stream.len()]);
    assert_eq!(whole.len(), 8);
    assert_eq!(whole[4].data, [b'k'; 300]);
    assert!(whole.iter().all(|said| said.whole));
    assert_eq!(whole[1].data, copy(100_000)[Header::SIZE + Memcpy::SIZE..]);
    for sizes in [&[1][..], &[23, 1, 2], &[24], &[61], &[16 << 10], &[(16 << 10) + 1, 3], &[40_000, 7]] {
        assert_eq!(cut(sizes), whole, "{sizes:?}");
    }
}

#[test]
fn what_is_in_flight_has_a_limit_and_comes_back() {
    let mut rig = Rig::new(Config { in_flight_max_bytes: 300_000, ..Config::default() });
    let bytes = copy(30_000);
    rig.read(&bytes).unwrap();
    assert_eq!(rig.wants_read(), Config::READ_BYTES);
    rig.read(&bytes).unwrap();
    assert_eq!(rig.wants_read(), 0);
    // Each keeps a whole buffer, and its two items.
    let held_bytes = 2 * (Config::READ_BYTES + 2 * size_of::<Item>());
    assert_eq!(rig.pool.in_flight_bytes(), held_bytes);
    let returned = rig.batches();
    assert_eq!(returned.iter().map(Batch::cost_bytes).sum::<usize>(), held_bytes);
    let notice = Notice { returned, completed: 2, ..rig.notice() };
    assert!(rig.apply(notice).is_none());
    assert_eq!((rig.wants_read(), rig.pool.in_flight_bytes()), (Config::READ_BYTES, 0));
    rig.read(&bytes).unwrap();
    let mut events = Vec::new();
    rig.link.close(&mut rig.pool, &mut |event| events.push(event));
    assert!(matches!(events[..], [Event::Closed { .. }]));
    assert_eq!(rig.pool.in_flight_bytes(), 0, "what a closed connection had does not count");
}

#[test]
fn what_a_batch_costs_is_what_it_holds() {
    for len in [1, 100, 340, 341, 680, 681, 682, 683, 2000, 10_000] {
        let mut rig = Rig::new(Config::default());
        let bytes = message(Opcode::PING, &Ping {}, &[]).repeat(len);
        rig.read(&bytes).unwrap();
        let batches = rig.batches();
        let buffer = if bytes.len() > Config::SMALL_READ_BYTES { Config::READ_BYTES } else { bytes.len() };
        assert_eq!(batches[0].cost_bytes(), buffer + len * size_of::<Item>());
        assert!(batches[0].cost_bytes() <= Batch::most_cost_bytes(bytes.len()));
    }
}

#[test]
fn above_the_common_limit_a_connection_reads_little_and_only_if_it_has_nothing_in_flight() {
    let mut rig = Rig::new(Config { in_flight_total_max_bytes: 40_000, ..Config::default() });
    rig.read(&copy(50_000)).unwrap();
    assert_eq!(rig.wants_read(), 0);
    let other = Link::new(id(), Peer::Local, &rig.config, 0);
    assert_eq!(other.wants_read(&rig.config, &rig.pool), Config::SMALL_READ_BYTES);
}

#[test]
fn requests_above_the_limit_wait_in_the_link() {
    let protocol = Limits { open_max: 2, ..Limits::default() };
    let mut rig = Rig::new(Config { protocol, ..Config::default() });
    let malloc = message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[]);
    rig.read(&malloc.repeat(5)).unwrap();
    assert_eq!((said(rig.batches()).len(), rig.wants_read()), (2, 0));
    for more in [2, 1] {
        assert!(rig.apply(Notice { completed: 2, ..rig.notice() }).is_none());
        let batches = rig.batches();
        assert_eq!(batches.iter().map(Batch::len).sum::<usize>(), more);
    }
    assert_eq!(rig.wants_read(), Config::READ_BYTES);
    // What waited may turn out to be no message.
    rig.read(&[malloc.clone(), malloc, b"garbage and more garbage".to_vec()].concat()).unwrap();
    assert_eq!(rig.wants_read(), 0);
    assert!(matches!(rig.apply(Notice { completed: 2, ..rig.notice() }), Some(Fatal::BadMagic { .. })));
}

/// Returns the replies to requests for allocations, as the dispatch makes them.
fn outbox(tickets: Vec<Ticket>) -> Option<Outbox<Body>> {
    let mut responder = Responder::new();
    for ticket in tickets {
        responder.complete(ticket, Outcome::ok(&0u64)).unwrap();
    }
    let mut outbox = Outbox::new();
    responder.poll_transmit(&mut outbox).then_some(outbox)
}

#[test]
fn unsent_bytes_stop_reading_and_are_reported_when_half_are_gone() {
    let mut rig = Rig::new(Config { unsent_max_bytes: 100, ..Config::default() });
    let mut request = Vec::new();
    Header::new(Opcode::MALLOC, 1, Malloc::SIZE as u64, 0).put(&mut request);
    Malloc { size: 5, flags: 0 }.put(&mut request);
    rig.read(&request.repeat(3)).unwrap();
    let mut tickets = Vec::new();
    for mut batch in rig.batches() {
        while let Some(Item::Request { ticket, .. }) = batch.pop() {
            tickets.push(ticket);
        }
    }
    let notice = Notice { outbox: outbox(tickets), completed: 3, wants_drain: Some(50), ..rig.notice() };
    assert!(rig.apply(notice).is_none());
    assert_eq!(rig.link.slices().map(<[u8]>::len).sum::<usize>(), 3 * 36);
    let report = |rig: &mut Rig| {
        let Rig { link, events, .. } = rig;
        link.report_drain(&mut |event| events.push(event));
        std::mem::take(events)
    };
    assert_eq!(rig.wants_read(), 0);
    rig.link.handle_written(50, 0, &rig.stats);
    assert!(report(&mut rig).is_empty());
    assert_eq!(rig.wants_read(), Config::READ_BYTES);
    rig.link.handle_written(8, 0, &rig.stats);
    assert!(matches!(report(&mut rig)[..], [Event::Drained { sent_bytes: 58, .. }]));
    rig.link.handle_written(50, 0, &rig.stats);
    assert!(report(&mut rig).is_empty(), "asked for once");
    assert!(!rig.link.wants_write());
    assert_eq!(rig.link.finish(0), Finish::No);
    assert!(rig.apply(Notice { close: true, ..rig.notice() }).is_none());
    assert_eq!(rig.link.finish(0), Finish::HalfClose);
}

#[test]
fn silence_has_limits() {
    let config = Config { first_message_timeout_ms: 100, mid_message_timeout_ms: 50, ..Config::default() };
    let mut rig = Rig::new(config.clone());
    let malloc = message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[]);
    rig.now_ms = 99;
    // A byte now and then does not help.
    rig.read(&malloc[..1]).unwrap();
    assert!(rig.overdue().is_none() && rig.link.has_deadline());
    rig.now_ms = 100;
    assert!(matches!(rig.overdue(), Some(End::FirstMessageTimeout)));

    let mut rig = Rig::new(config.clone());
    rig.read(&malloc).unwrap();
    rig.now_ms = 1_000_000;
    assert!(
        rig.overdue().is_none() && !rig.link.has_deadline(),
        "between messages one may be silent for ever"
    );
    rig.read(&malloc[..30]).unwrap();
    rig.now_ms += 49;
    assert!(rig.overdue().is_none() && rig.link.has_deadline());
    rig.now_ms += 1;
    assert!(matches!(rig.overdue(), Some(End::MidMessageTimeout)));

    // While it is us who do not read, nobody is silent.
    let mut rig = Rig::new(Config { in_flight_max_bytes: 1, ..config });
    rig.read(&malloc).unwrap();
    rig.read(&copy(1000)[..100]).unwrap();
    rig.now_ms = 1000;
    assert!(rig.overdue().is_none());
    let returned = rig.batches();
    assert!(rig.apply(Notice { returned, completed: 1, ..rig.notice() }).is_none());
    rig.now_ms += 49;
    assert!(rig.overdue().is_none());
    rig.now_ms += 1;
    assert!(matches!(rig.overdue(), Some(End::MidMessageTimeout)));
}

#[test]
fn who_is_idle_for_too_long_ends_and_who_is_owed_something_is_not_idle() {
    let config = Config { idle_timeout_ms: Some(1000), ..Config::default() };
    let malloc = message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[]);
    let mut asked = Vec::new();
    Header::new(Opcode::MALLOC, 1, Malloc::SIZE as u64, 0).put(&mut asked);
    Malloc { size: 5, flags: 0 }.put(&mut asked);
    let mut rig = Rig::new(config.clone());
    rig.read(&asked).unwrap();
    assert!(rig.link.has_deadline(), "the loop has to look at it");
    rig.now_ms = 5000;
    assert!(rig.overdue().is_none(), "its request is not done");
    let mut returned = rig.batches();
    let Some(Item::Request { ticket, .. }) = returned[0].pop() else { panic!("no request") };
    let reply = outbox(vec![ticket]);
    let len = reply.as_ref().map_or(0, Outbox::len_bytes);
    assert!(rig.apply(Notice { returned, completed: 1, outbox: reply, ..rig.notice() }).is_none());
    rig.now_ms = 9000;
    assert!(rig.overdue().is_none(), "its reply is not sent");
    rig.link.handle_written(len, 9000, &rig.stats);
    rig.now_ms = 9999;
    assert!(rig.overdue().is_none());
    rig.read(&malloc).unwrap();
    let returned = rig.batches();
    assert!(rig.apply(Notice { returned, completed: 1, ..rig.notice() }).is_none());
    rig.now_ms = 10_998;
    assert!(rig.overdue().is_none());
    rig.now_ms = 10_999;
    assert!(matches!(rig.overdue(), Some(End::IdleTimeout)));

    let mut rig = Rig::new(Config { idle_timeout_ms: None, ..config });
    rig.read(&malloc).unwrap();
    let returned = rig.batches();
    assert!(rig.apply(Notice { returned, completed: 1, ..rig.notice() }).is_none());
    rig.now_ms = u64::MAX;
    assert!(rig.overdue().is_none() && !rig.link.has_deadline());
}

#[test]
fn a_connection_that_said_nothing_is_not_announced_and_one_that_ends_lingers() {
    let mut rig = Rig::new(Config { linger_ms: 100, ..Config::default() });
    let mut nothing = |event| panic!("{event:?}");
    assert!(matches!(rig.link.handle_eof(), End::Eof));
    assert!(!rig.link.end(0, &mut nothing), "it can be closed at once");

    let mut rig = Rig::new(rig.config);
    rig.read(&message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[])).unwrap();
    rig.read(b"RPIH").unwrap();
    assert!(matches!(rig.link.handle_eof(), End::Protocol(Fatal::EofInsideMessage)));
    let mut events = std::mem::take(&mut rig.events);
    assert!(rig.link.end(1000, &mut |event| events.push(event)));
    assert!(rig.link.end(1050, &mut |event| events.push(event)), "said once");
    assert!(matches!(events[..], [Event::Opened { .. }, Event::Batch { .. }, Event::Ended { .. }]));
    assert_eq!(rig.wants_read(), 0);
    rig.now_ms = 1099;
    assert!(rig.overdue().is_none());
    rig.link.handle_written(1, 1099, &rig.stats);
    rig.now_ms = 1198;
    assert!(rig.overdue().is_none(), "it takes what it is owed");
    rig.now_ms = 1199;
    assert!(rig.overdue().is_some());
}

#[test]
fn a_peer_that_was_told_everything_is_read_until_it_goes() {
    let malloc = message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[]);
    let closing = || {
        let mut rig = Rig::new(Config { linger_ms: 100, in_flight_max_bytes: 1, ..Config::default() });
        rig.read(&malloc).unwrap();
        assert_eq!(rig.wants_read(), 0);
        assert!(rig.apply(Notice { close: true, completed: 1, ..rig.notice() }).is_none());
        assert_eq!(rig.link.finish(1000), Finish::HalfClose);
        assert_eq!(rig.link.finish(1000), Finish::No, "said once");
        rig.events.clear();
        rig
    };
    let mut rig = closing();
    for bytes in [&malloc[..], b"garbage and more garbage", &[0; 20_000]] {
        assert_eq!(rig.wants_read(), Config::READ_BYTES);
        assert_eq!(rig.read(bytes), Ok(()));
    }
    rig.now_ms = 1099;
    assert!(rig.link.has_deadline() && rig.overdue().is_none());
    rig.now_ms = 1100;
    assert!(rig.overdue().is_some(), "not for ever");

    let mut rig = closing();
    assert!(matches!(rig.link.handle_eof(), End::Eof));
    let Rig { link, events, .. } = &mut rig;
    assert!(!link.end(1010, &mut |event| events.push(event)), "then it can be closed");
    assert!(rig.events.is_empty(), "the dispatch has nothing to do with it");

    // One that said so before need not be waited for.
    let mut rig = Rig::new(Config::default());
    rig.read(&malloc).unwrap();
    assert!(matches!(rig.link.handle_eof(), End::Eof));
    assert!(rig.apply(Notice { close: true, completed: 1, ..rig.notice() }).is_none());
    assert_eq!(rig.link.finish(0), Finish::Close);
}

#[test]
fn a_peer_that_is_gone_behind_what_is_not_read_is_not_waited_for_for_ever() {
    let mut rig = Rig::new(Config { linger_ms: 100, in_flight_max_bytes: 1, ..Config::default() });
    rig.read(&message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[])).unwrap();
    assert_eq!(rig.wants_read(), 0, "more is not wanted while the device has that");
    rig.now_ms = 100_000;
    assert!(!rig.link.has_deadline() && rig.overdue().is_none(), "a device may take its time");
    rig.link.handle_peer_closed(100_000);
    rig.link.handle_peer_closed(100_090);
    rig.now_ms = 100_099;
    assert!(rig.link.has_deadline() && rig.overdue().is_none());
    // Something is done: the rest gets its time too.
    let returned = rig.batches();
    assert!(rig.apply(Notice { completed: 1, returned, ..rig.notice() }).is_none());
    rig.now_ms = 100_150;
    rig.read(&message(Opcode::MALLOC, &Malloc { size: 5, flags: 0 }, &[])).unwrap();
    rig.now_ms = 100_249;
    assert!(rig.overdue().is_none());
    rig.now_ms = 100_250;
    assert!(matches!(rig.overdue(), Some(End::Eof)));
}
