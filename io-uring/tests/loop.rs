//! Tests the completion loop on real sockets, as far as it differs from other loops; `tests/tests/loop_conformance` tests
//! what all loops have in common.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hipr_io::{Body, Config, ConnId, Event, Item, Listener, Mailbox, Notice, Stats};
use hipr_io_uring::Loop;
use hipr_proto::op::{Malloc, Memcpy, Ping, kind};
use hipr_proto::{Header, Opcode, Outbox, Outcome, Responder, Wire};
use socket2::SockRef;

/// Length of the reply to [`Malloc`].
const REPLY_BYTES: usize = Header::SIZE + 12;

/// A loop on a thread, whose handler lets every request succeed: an allocation returns its size as address, so that replies
/// can be told apart.
struct Served {
    mailbox: Arc<Mailbox>,
    stats: Arc<Stats>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Served {
    /// Starts a loop; prints a message and returns `None` where io_uring cannot be used.
    fn start(make: impl FnOnce(Config, Arc<Stats>) -> io::Result<Loop>) -> Option<Self> {
        let stats = Arc::new(Stats::default());
        let event_loop = match make(Config::default(), stats.clone()) {
            Err(why) if matches!(why.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                eprintln!("SKIPPED: {why}");
                return None;
            }
            made => made.unwrap(),
        };
        let mailbox = event_loop.mailbox();
        let thread = Some(thread::spawn({
            let mailbox = mailbox.clone();
            move || {
                let mut responders = BTreeMap::new();
                event_loop.run(move |event| answer(event, &mut responders, &mailbox))
            }
        }));
        Some(Self { mailbox, stats, thread })
    }

    /// Starts a loop that listens, and returns it with a function that connects to it.
    fn listen() -> Option<(Self, impl Fn() -> TcpStream)> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let served =
            Self::start(|config, stats| hipr_io_uring::serve(Listener::Tcp(listener), config, stats))?;
        let connect = move || {
            let stream = TcpStream::connect(addr).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream
        };
        Some((served, connect))
    }

    fn join(&mut self) -> io::Result<()> {
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.mailbox.stop();
        let ended = self.join();
        if !thread::panicking() {
            ended.unwrap();
        }
    }
}

fn answer(event: Event, responders: &mut BTreeMap<ConnId, Responder<Body>>, mailbox: &Mailbox) {
    match event {
        Event::Opened { conn, .. } => drop(responders.insert(conn, Responder::new())),
        Event::Batch { conn, mut batch } => {
            let responder = responders.get_mut(&conn).unwrap();
            let mut notice = Notice::new(conn);
            while let Some(item) = batch.pop() {
                let Item::Request { ticket, fixed, .. } = item else { continue };
                let outcome = match ticket.op() {
                    Opcode::MALLOC => Outcome::ok(&Malloc::take(&mut batch.bytes(fixed)).unwrap().size),
                    _ => Outcome::ok(&()),
                };
                responder.complete(ticket, outcome).unwrap();
                notice.completed += 1;
            }
            let mut outbox = Outbox::new();
            responder.poll_transmit(&mut outbox);
            notice.outbox = Some(outbox);
            notice.returned.push(batch);
            mailbox.post(notice);
        }
        Event::Ended { conn } => mailbox.post(Notice { close: true, ..Notice::new(conn) }),
        Event::Drained { .. } => {}
        Event::Parked { .. } | Event::Resumed { .. } => unreachable!("no client claims a session"),
        Event::Closed { conn, .. } => drop(responders.remove(&conn)),
    }
}

fn request(op: Opcode, id: u32, fixed: &impl Wire, tail: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    fixed.put(&mut payload);
    let mut bytes = Vec::new();
    Header::new(op, id, (payload.len() + tail.len()) as u64, 0).put(&mut bytes);
    bytes.extend(payload);
    bytes.extend_from_slice(tail);
    bytes
}

fn malloc(size: u64) -> Vec<u8> {
    request(Opcode::MALLOC, size as u32 + 1, &Malloc { size, flags: 0 }, &[])
}

fn copy(id: u32, len: usize) -> Vec<u8> {
    let fixed = Memcpy { dst: 1, src: 0, size: len as u64, kind: kind::HOST_TO_DEVICE, stream: 0 };
    request(Opcode::MEMCPY, id, &fixed, &vec![7; len])
}

/// Reads the replies to allocations of these sizes, in order.
fn read_replies(stream: &mut impl Read, sizes: impl Iterator<Item = u64>) {
    for size in sizes {
        let mut reply = [0; REPLY_BYTES];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[REPLY_BYTES - 8..], size.to_le_bytes());
    }
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// Sends replies that fail to be sent at once because the socket is full.
#[test]
fn small_replies_that_do_not_fit_into_the_socket_arrive_in_order() {
    const COUNT: u64 = 3000;
    let (mut stream, end) = UnixStream::pair().unwrap();
    SockRef::from(&end).set_send_buffer_size(4096).unwrap();
    let served = Served::start(|config, stats| hipr_io_uring::serve_connection(end.into(), config, stats));
    let Some(mut served) = served else { return };
    // One at a time, so that each reply is sent on its own.
    let ask = |stream: &mut UnixStream, sizes: std::ops::Range<u64>| {
        for size in sizes {
            stream.write_all(&malloc(size)).unwrap();
            until(|| served.stats.snapshot().requests > size);
        }
    };
    ask(&mut stream, 0..COUNT);
    let all = COUNT * REPLY_BYTES as u64;
    assert!(served.stats.snapshot().sent_bytes < all, "the socket holds everything: nothing was tested");
    read_replies(&mut stream, 0..COUNT);
    // It is empty again.
    ask(&mut stream, COUNT..COUNT + 10);
    read_replies(&mut stream, COUNT..COUNT + 10);
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    served.join().unwrap();
    assert_eq!(served.stats.snapshot().sent_bytes, all + 10 * REPLY_BYTES as u64);
}

/// Makes each connection change several times between shared receive buffers and direct reads.
#[test]
fn bulk_and_small_messages_alternate_on_many_connections() {
    const CONNECTIONS: u64 = 40;
    const ROUNDS: u64 = 3;
    const LEN: usize = 1 << 20;
    let Some((served, connect)) = Served::listen() else { return };
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    let copied = copy(1, LEN);
    for round in 0..ROUNDS {
        for stream in &mut streams {
            stream.write_all(&malloc(round)).unwrap();
        }
        for stream in &mut streams {
            stream.write_all(&copied).unwrap();
            stream.write_all(&malloc(round + 100)).unwrap();
        }
        for stream in &mut streams {
            read_replies(stream, std::iter::once(round));
            let mut reply = [0; Header::SIZE + 4];
            stream.read_exact(&mut reply).unwrap();
            read_replies(stream, std::iter::once(round + 100));
        }
    }
    let stats = served.stats.snapshot();
    assert_eq!(stats.requests, CONNECTIONS * ROUNDS * 3);
    let each = ROUNDS * (2 * malloc(0).len() + copied.len()) as u64;
    assert_eq!(stats.received_bytes, CONNECTIONS * each);
}

/// Checks that requests in flight complete before their memory is freed when the loop ends.
#[test]
fn the_loop_ends_with_everything_in_flight() {
    let Some((served, connect)) = Served::listen() else { return };
    let mut idle: Vec<_> = (0..10).map(|_| connect()).collect();
    let mut bulk = connect();
    // In the middle of a message.
    let copied = copy(1, 1 << 20);
    bulk.write_all(&copied[..copied.len() - 1]).unwrap();
    // Replies that nobody reads.
    let mut deaf = connect();
    let pings: Vec<u8> = (0..200_000).flat_map(|id| request(Opcode::PING, id, &Ping {}, &[])).collect();
    deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let _ = deaf.write_all(&pings);
    for stream in &mut idle {
        stream.write_all(&malloc(1)).unwrap();
        read_replies(stream, std::iter::once(1));
    }
    drop(served);
    for stream in &mut idle {
        assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
    }
}

#[test]
fn one_connection_that_somebody_else_accepted_is_served_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let served = Served::start(|config, stats| hipr_io_uring::serve_connection(stream.into(), config, stats));
    let Some(mut served) = served else { return };
    client.write_all(&malloc(5)).unwrap();
    read_replies(&mut client, std::iter::once(5));
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
    served.join().unwrap();
}

/// Checks that dropping a ring does not interrupt the thread that created it, as the kernel does with threads that used it.
#[test]
fn the_thread_that_made_a_loop_is_not_interrupted_when_the_loop_goes() {
    let Some((served, connect)) = Served::listen() else { return };
    let mut stream = connect();
    stream.write_all(&malloc(1)).unwrap();
    read_replies(&mut stream, std::iter::once(1));
    drop(served);
    let (mut silent, _other) = UnixStream::pair().unwrap();
    silent.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}
