//! Tests a link with encryption, without a socket: what holds for bytes in the open holds for them encrypted.

use std::fs;
use std::io::IoSlice;
use std::sync::Arc;

use hipr_io::{
    Batch, Body, Config, ConnId, End, Event, Finish, Item, Link, Notice, Peer, Pool, Slots, Stats,
};
use hipr_proto::op::{Malloc, Memcpy, kind};
use hipr_proto::{FLAG_NO_REPLY, Header, Limits, Opcode, Outbox, Wire};
use hipr_tls::{ClientChannel, ClientIdentity, Expected, Fault, SecretKey, WorkerIdentity, is_alert};

/// A client and the link of its connection.
struct Rig {
    client: ClientChannel,
    link: Link,
    config: Config,
    pool: Pool,
    stats: Stats,
    events: Vec<Event>,
    now_ms: u64,
    /// What the client has received.
    heard: Vec<u8>,
}

fn id() -> ConnId {
    Slots::default().insert(|_| ()).unwrap()
}

impl Rig {
    fn new(mut config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (user, worker) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let file = folder.path().join("authorized");
        fs::write(&file, format!("{} tenant=lab memory-max=1M\n", user.public())).unwrap();
        let identity = WorkerIdentity::new(&worker, &file).unwrap();
        config.identity = Some(Arc::new(identity));
        let peer = Peer::Tcp(([127, 0, 0, 1], 1).into());
        let link = Link::new(id(), peer, &config, 0);
        let client = ClientIdentity::new(&user).unwrap();
        let expected = Expected::Known(worker.public().fingerprint());
        let client = ClientChannel::new(&client, expected, None).unwrap();
        let (stats, events, now_ms, heard) = Default::default();
        let mut rig = Self { client, link, config, pool: Pool::default(), stats, events, now_ms, heard };
        // The file is there until both know each other.
        while !rig.client.is_in() {
            let said = rig.said();
            rig.read(&said).unwrap();
            rig.hear(usize::MAX);
        }
        rig
    }

    /// Returns what the client wants to send.
    fn said(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        self.client.channel().take_output(&mut said);
        said
    }

    /// Returns bytes, encrypted by the client.
    fn sealed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.client.channel().send(&[IoSlice::new(bytes)]);
        self.said()
    }

    fn read(&mut self, sealed: &[u8]) -> Result<(), End> {
        let mut buffer = sealed.to_vec();
        let Self { link, pool, stats, events, now_ms, .. } = self;
        link.receive(&mut buffer, sealed.len(), *now_ms, pool, stats, &mut |event| events.push(event))
    }

    /// Sends at most `max` bytes of the link to the client.
    fn hear(&mut self, max: usize) {
        let mut sent: Vec<u8> = self.link.slices().flatten().copied().collect();
        sent.truncate(max);
        self.link.handle_written(sent.len(), self.now_ms, &self.stats);
        let (mut left, mut buffer) = (sent.as_slice(), [0; 1000]);
        loop {
            let len = self.client.receive(&mut left, &mut buffer).unwrap();
            self.heard.extend_from_slice(&buffer[..len]);
            if left.is_empty() && len < buffer.len() {
                return;
            }
        }
    }

    fn apply(&mut self, notice: Notice) {
        let Self { link, pool, stats, events, now_ms, .. } = self;
        let applied = link.apply(notice, *now_ms, pool, stats, &mut |event| events.push(event));
        assert!(applied.fatal.is_none());
    }

    fn notice(&self) -> Notice {
        Notice::new(self.link.conn())
    }

    fn wants_read(&self) -> usize {
        self.link.wants_read(&self.config, &self.pool)
    }

    fn batches(&mut self) -> Vec<Batch> {
        let events = std::mem::take(&mut self.events);
        let batch = |event| if let Event::Batch { batch, .. } = event { Some(batch) } else { None };
        events.into_iter().filter_map(batch).collect()
    }
}

fn message(op: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header::new(op, 1, payload.len() as u64, FLAG_NO_REPLY).put(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn malloc() -> Vec<u8> {
    let mut fixed = Vec::new();
    Malloc { size: 5, flags: 0 }.put(&mut fixed);
    message(Opcode::MALLOC, &fixed)
}

/// A copy of so many bytes to the device.
fn long(len: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    Memcpy { dst: 1, src: 0, size: len as u64, kind: kind::HOST_TO_DEVICE, stream: 0 }.put(&mut payload);
    payload.extend((0..len).map(|i| (i * 7 + i / 256) as u8));
    message(Opcode::MEMCPY, &payload)
}

/// Returns the operations of batches, and all their bytes.
fn said(batches: Vec<Batch>) -> (Vec<Opcode>, Vec<u8>) {
    let (mut ops, mut bytes) = (Vec::new(), Vec::new());
    for mut batch in batches {
        while let Some(item) = batch.pop() {
            match item {
                Item::Request { ticket, fixed, tail, .. } => {
                    ops.push(ticket.op());
                    bytes.extend_from_slice(batch.bytes(fixed));
                    bytes.extend_from_slice(batch.bytes(tail));
                }
                Item::Data { span, .. } => bytes.extend_from_slice(batch.bytes(span)),
            }
        }
    }
    (ops, bytes)
}

fn outbox(bytes: &[u8]) -> Option<Outbox<Body>> {
    let mut outbox = Outbox::new();
    outbox.put_inline(Body::from(bytes.to_vec()));
    Some(outbox)
}

#[test]
fn how_encrypted_bytes_are_cut_is_invisible() {
    let stream = [malloc(), long(100_000), malloc(), long(10), long(600_000), malloc()].concat();
    let plain = {
        let config = Config::default();
        let mut link = Link::new(id(), Peer::Local, &config, 0);
        let (mut pool, stats, mut events) = (Pool::default(), Stats::default(), Vec::new());
        for piece in stream.chunks(Config::READ_BYTES) {
            let mut buffer = piece.to_vec();
            let sink = &mut |event| events.push(event);
            link.receive(&mut buffer, piece.len(), 0, &mut pool, &stats, sink).unwrap();
        }
        let batch = |event| if let Event::Batch { batch, .. } = event { Some(batch) } else { None };
        said(events.into_iter().filter_map(batch).collect())
    };
    assert_eq!((plain.0.len(), plain.1.len() > 700_000), (6, true));
    for sizes in
        [&[1 << 30][..], &[262_144], &[1, 4, 5, 2000], &[16_406], &[16_407, 3], &[70_000, 7], &[300_000]]
    {
        // Records of many lengths, too.
        for piece in [usize::MAX, 16_384, 1000] {
            let mut rig = Rig::new(Config::default());
            let sealed: Vec<u8> =
                stream.chunks(piece.min(stream.len())).flat_map(|piece| rig.sealed(piece)).collect();
            let mut left = sealed.as_slice();
            for size in sizes.iter().cycle() {
                let (now, rest) = left.split_at(*size.min(&left.len()));
                rig.read(now).unwrap();
                left = rest;
                if left.is_empty() {
                    break;
                }
            }
            let opened = rig.events.first();
            let Some(Event::Opened { grant: Some(grant), .. }) = opened else { panic!("{opened:?}") };
            assert_eq!((&*grant.tenant, grant.memory_max_bytes), ("lab", Some(1 << 20)));
            assert!(said(rig.batches()) == plain, "{sizes:?}, records of {piece}");
        }
    }
}

#[test]
fn requests_above_the_limit_wait_in_the_link_in_their_order() {
    let protocol = Limits { open_max: 2, ..Limits::default() };
    let mut rig = Rig::new(Config { protocol, ..Config::default() });
    // One read that is more than one buffer, and stops being parsed in the first.
    let stream = [malloc().repeat(5), long(300_000), malloc(), long(200_000)].concat();
    let sealed = rig.sealed(&stream);
    rig.read(&sealed).unwrap();
    let mut all = rig.batches();
    assert_eq!(rig.wants_read(), 0);
    while rig.wants_read() == 0 {
        rig.apply(Notice { completed: 1, ..rig.notice() });
        all.extend(rig.batches());
    }
    let (ops, bytes) = said(all);
    assert_eq!(ops.len(), 8);
    let payloads = [malloc()[Header::SIZE..].repeat(5), long(300_000)[Header::SIZE..].to_vec()].concat();
    let expected =
        [payloads, malloc()[Header::SIZE..].to_vec(), long(200_000)[Header::SIZE..].to_vec()].concat();
    assert_eq!(bytes.len(), expected.len());
    assert_eq!(bytes.iter().zip(&expected).position(|(byte, expected)| byte != expected), None);
}

#[test]
fn replies_arrive_and_are_counted_as_the_dispatch_counts_them() {
    let mut rig = Rig::new(Config { unsent_max_bytes: 100_000, ..Config::default() });
    let sealed = rig.sealed(&malloc());
    rig.read(&sealed).unwrap();
    rig.batches();
    let reply: Vec<u8> = (0..150_000).map(|i| (i % 251) as u8).collect();
    rig.apply(Notice { outbox: outbox(&reply[..100_000]), wants_drain: Some(50_000), ..rig.notice() });
    rig.apply(Notice { outbox: outbox(&reply[100_000..]), ..rig.notice() });
    assert!(rig.link.unsent_bytes() > reply.len(), "encrypted bytes are more");
    assert_eq!(rig.wants_read(), 0, "the queue counts");
    let report = |rig: &mut Rig| {
        let Rig { link, events, .. } = rig;
        link.report_drain(&mut |event| events.push(event));
        std::mem::take(events)
    };
    let mut told = Vec::new();
    while rig.link.wants_write() {
        told.extend(report(&mut rig));
        rig.hear(777);
    }
    told.extend(report(&mut rig));
    let [Event::Drained { sent_bytes, .. }] = told[..] else { panic!("{told:?}") };
    assert_eq!(sent_bytes, 100_000, "the dispatch's bytes, not the socket's");
    assert!(rig.heard == reply);
    assert_eq!(rig.wants_read(), Config::READ_BYTES);
    // The end is said inside the encryption as well.
    assert_eq!(rig.link.finish(0), Finish::No);
    rig.apply(Notice { close: true, ..rig.notice() });
    assert_eq!(rig.link.finish(0), Finish::No, "the good-bye is not sent");
    rig.hear(usize::MAX);
    assert_eq!(rig.link.finish(0), Finish::HalfClose);
    assert!(rig.client.channel().is_ended());
}

#[test]
fn an_end_with_a_good_bye_is_told_from_one_that_was_cut_off() {
    let mut rig = Rig::new(Config::default());
    let sealed = [rig.sealed(&malloc()), {
        rig.client.channel().close();
        rig.said()
    }]
    .concat();
    assert!(matches!(rig.read(&sealed), Err(End::Eof)));
    assert_eq!(said(rig.batches()).0, [Opcode::MALLOC], "what came before it counts");

    let mut rig = Rig::new(Config::default());
    let sealed = rig.sealed(&malloc());
    rig.read(&sealed).unwrap();
    assert!(matches!(rig.link.handle_eof(), End::Channel(Fault::Truncated)));

    // In the middle of a message an orderly end is none.
    let mut rig = Rig::new(Config::default());
    let sealed = [rig.sealed(&malloc()[..30]), {
        rig.client.channel().close();
        rig.said()
    }]
    .concat();
    assert!(matches!(rig.read(&sealed), Err(End::Protocol(_))));
}

#[test]
fn a_changed_record_ends_the_session_and_passes_nothing() {
    let mut rig = Rig::new(Config::default());
    let sealed = rig.sealed(&malloc());
    rig.read(&sealed).unwrap();
    rig.batches();
    let mut sealed = rig.sealed(&malloc());
    let last = sealed.len() - 1;
    sealed[last] ^= 1;
    assert!(matches!(rig.read(&sealed), Err(End::Channel(Fault::Tls(_)))));
    assert!(rig.events.is_empty());
    // The peer is told; replies of earlier requests are not sent into a connection that somebody changes.
    let unsent = rig.link.unsent_bytes();
    assert!(unsent > 0);
    rig.apply(Notice { outbox: outbox(&[1; 5000]), close: true, ..rig.notice() });
    assert_eq!(rig.link.unsent_bytes(), unsent);
}

#[test]
fn a_client_that_speaks_in_the_open_is_told_with_an_alert() {
    let mut rig = Rig::new(Config::default());
    rig.link = Link::new(id(), Peer::Tcp(([127, 0, 0, 1], 1).into()), &rig.config, 0);
    assert!(matches!(rig.read(&malloc()), Err(End::Channel(Fault::NotTls))));
    let told: Vec<u8> = rig.link.slices().flatten().copied().collect();
    assert!(is_alert(&told), "{told:?}");
    assert!(!rig.link.end(0, &mut |event| panic!("{event:?}")), "the dispatch knows nothing of it");
    rig.link.refuse();
    assert_eq!(rig.link.finish(0), Finish::No);
    rig.link.handle_written(told.len(), 0, &rig.stats);
    assert_eq!(rig.link.finish(0), Finish::HalfClose);
}

#[test]
fn a_handshake_has_the_time_of_a_first_message() {
    let mut rig = Rig::new(Config { first_message_timeout_ms: 100, ..Config::default() });
    // It is over here, but no message has come.
    rig.now_ms = 99;
    assert!(rig.link.overdue(rig.now_ms, &rig.config, &rig.pool).is_none() && rig.link.has_deadline());
    rig.now_ms = 100;
    let late = rig.link.overdue(rig.now_ms, &rig.config, &rig.pool);
    assert!(matches!(late, Some(End::FirstMessageTimeout)));
}
