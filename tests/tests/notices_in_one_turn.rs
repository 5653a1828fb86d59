//! Everything that a dispatch posts reaches its client, however much of it the loop finds in one turn, and although nothing else
//! happens to the loop afterwards.
//!
//! A dispatch on a thread of its own may post many notices before the loop runs. Here the handler posts them itself, from the
//! loop's thread, so that they are in one turn for certain: all sequences of up to three replies, small, long or in many pieces,
//! with each way in which a connection goes on, on each loop and kind of socket.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use hipr_io::{
    Address, Body, Carrier, Config, ConnId, Driver, Event, Item, Listener, Mailbox, Notice, Stats,
};
use hipr_proto::op::{Memcpy, kind};
use hipr_proto::{Header, Inline, Opcode, Outbox, Outcome, Responder, Ticket, Wire};

/// A reply, posted with a notice of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    /// A few bytes.
    Small,
    /// More bytes than a loop sends without asking whether the socket has room.
    Long,
    /// Many replies, each with bytes of its own.
    Pieces,
}

/// What is posted behind the replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Nothing.
    Stay,
    /// A notice that asks for an event when everything is sent; then one more reply is posted.
    Drain,
    /// The same together with the last reply.
    DrainWithLast,
    /// A notice that closes the connection.
    Close,
    /// The same together with the last reply.
    CloseWithLast,
}

const REPLIES: [Reply; 3] = [Reply::Small, Reply::Long, Reply::Pieces];
const ENDS: [End; 5] = [End::Stay, End::Drain, End::DrainWithLast, End::Close, End::CloseWithLast];
/// Most replies in a sequence.
const REPLIES_MAX: u32 = 3;

const LONG_BYTES: usize = 1 << 20;
/// More pieces than one system call sends, together fewer bytes than a loop sends at once.
const PIECES: usize = 100;
const PIECE_BYTES: usize = 40;
/// Bytes of a reply before those that were copied: the header and the status.
const REPLY_BYTES: usize = Header::SIZE + 4;
/// A client that has waited so long for its bytes will not get them.
const TIMEOUT: Duration = Duration::from_secs(60);
/// After this time a loop has no reason to look at connections to which nothing happens.
const DEADLINES_OVER: Duration = Duration::from_millis(2500);

/// The notices that a connection asks for.
#[derive(Clone, Debug)]
struct Sequence {
    replies: Vec<Reply>,
    end: End,
}

impl Sequence {
    /// Returns all sequences.
    fn all() -> Vec<Self> {
        let counts = 1..=REPLIES_MAX;
        let replies = counts.flat_map(|count| (0..3_usize.pow(count)).map(move |code| (count, code)));
        let replies =
            replies.map(|(count, code)| (0..count).map(move |at| REPLIES[code / 3_usize.pow(at) % 3]));
        let replies = replies.map(Iterator::collect::<Vec<_>>).collect::<Vec<_>>();
        ENDS.into_iter()
            .flat_map(|end| replies.iter().map(move |replies| Self { replies: replies.clone(), end }))
            .collect()
    }

    /// Returns the lengths of the copies in the notice of each reply.
    fn lens(&self) -> impl Iterator<Item = Vec<usize>> {
        self.replies.iter().map(|reply| match reply {
            Reply::Small => vec![8],
            Reply::Long => vec![LONG_BYTES],
            Reply::Pieces => vec![PIECE_BYTES; PIECES],
        })
    }

    /// Returns the lengths of all copies, with the one that is answered after the event.
    fn copies(&self) -> Vec<usize> {
        let last = matches!(self.end, End::Drain | End::DrainWithLast).then_some(8);
        self.lens().flatten().chain(last).collect()
    }

    /// Returns the requests: copies to the host that name the sequence and how many of them follow.
    fn requests(&self, number: usize) -> Vec<u8> {
        let copies = self.copies();
        let mut bytes = Vec::new();
        for (at, len) in copies.iter().enumerate() {
            let (size, left) = (*len as u64, (copies.len() - at - 1) as u64);
            let fixed = Memcpy { dst: left, src: 1, size, kind: kind::DEVICE_TO_HOST, stream: number as u64 };
            let mut payload = Vec::new();
            fixed.put(&mut payload);
            Header::new(Opcode::MEMCPY, at as u32 + 1, payload.len() as u64, 0).put(&mut bytes);
            bytes.extend(payload);
        }
        bytes
    }
}

/// The requests of a connection.
#[derive(Default)]
struct Session {
    responder: Responder<Body>,
    copies: VecDeque<(Ticket, usize)>,
}

impl Session {
    /// Answers the next requests, with one notice.
    fn answer(&mut self, conn: ConnId, count: usize) -> Notice {
        for (ticket, len) in self.copies.drain(..count) {
            let outcome = Outcome::ok(&()).with_inline(Inline::Whole(vec![7; len].into()));
            self.responder.complete(ticket, outcome).expect("a reply of the length asked for");
        }
        let mut outbox = Outbox::new();
        self.responder.poll_transmit(&mut outbox);
        Notice { outbox: Some(outbox), completed: count, ..Notice::new(conn) }
    }

    /// Returns the notices of a sequence.
    fn notices(&mut self, conn: ConnId, sequence: &Sequence) -> Vec<Notice> {
        let mut notices: Vec<_> = sequence.lens().map(|lens| self.answer(conn, lens.len())).collect();
        if matches!(sequence.end, End::Drain | End::Close) {
            notices.push(Notice::new(conn));
        }
        let last = notices.last_mut().expect("a sequence has a reply");
        last.wants_drain = matches!(sequence.end, End::Drain | End::DrainWithLast).then_some(0);
        last.close = matches!(sequence.end, End::Close | End::CloseWithLast);
        notices
    }
}

/// Returns the handler of a loop: it posts the notices of a sequence together, when the last request has arrived.
fn handler(mailbox: Arc<Mailbox>) -> impl FnMut(Event) {
    let (all, mut sessions) = (Sequence::all(), BTreeMap::<ConnId, Session>::new());
    move |event| match event {
        Event::Opened { conn, .. } => drop(sessions.insert(conn, Session::default())),
        Event::Batch { conn, mut batch } => {
            let session = sessions.get_mut(&conn).expect("an open session");
            let mut asked = None;
            while let Some(item) = batch.pop() {
                let Item::Request { ticket, fixed, .. } = item else { panic!("no request has a tail") };
                let copy = Memcpy::take(&mut batch.bytes(fixed)).expect("a whole request");
                session.copies.push_back((ticket, copy.size as usize));
                asked = (copy.dst == 0).then(|| &all[copy.stream as usize]);
            }
            let mut notices = asked.map(|sequence| session.notices(conn, sequence)).unwrap_or_default();
            match notices.first_mut() {
                Some(first) => first.returned.push(batch),
                None => notices.push(Notice { returned: vec![batch], ..Notice::new(conn) }),
            }
            notices.into_iter().for_each(|notice| mailbox.post(notice));
        }
        Event::Drained { conn, .. } => {
            let notice = sessions.get_mut(&conn).expect("an open session").answer(conn, 1);
            mailbox.post(notice);
        }
        Event::Ended { conn } => mailbox.post(Notice { close: true, ..Notice::new(conn) }),
        Event::Parked { .. } | Event::Resumed { .. } => unreachable!("no client claims a session"),
        Event::Closed { conn, .. } => drop(sessions.remove(&conn)),
    }
}

/// Asks for a sequence and reads what comes, sending nothing more.
fn check(stream: &mut impl Socket, number: usize, sequence: &Sequence) {
    stream.write_all(&sequence.requests(number)).expect("the loop reads");
    for (at, len) in sequence.copies().into_iter().enumerate() {
        let mut reply = vec![0; REPLY_BYTES + len];
        let read = stream.read_exact(&mut reply);
        read.unwrap_or_else(|why| panic!("{sequence:?}: reply {at} does not arrive: {why}"));
        assert!(
            reply[REPLY_BYTES..].iter().all(|byte| *byte == 7),
            "{sequence:?}: reply {at} has other bytes"
        );
    }
    if matches!(sequence.end, End::Close | End::CloseWithLast) {
        let end = stream.read(&mut [0]);
        assert!(matches!(end, Ok(0)), "{sequence:?}: the connection is not closed: {end:?}");
    }
}

trait Socket: Read + Write {}
impl<S: Read + Write> Socket for S {}

/// Connects with a timeout for reading.
fn connect(address: &Address, path: &Path) -> io::Result<Box<dyn Socket>> {
    Ok(match address.tcp() {
        Some(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Box::new(stream)
        }
        None => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Box::new(stream)
        }
    })
}

/// Stops the loop when it is dropped, so that a check that fails ends the test.
struct StopLoop<'a>(&'a Mailbox);

impl Drop for StopLoop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs all sequences on a loop, a connection each, over both kinds of sockets.
fn check_loop<C: Carrier<Socket: Send> + Send>(make: impl Fn(Listener) -> io::Result<Driver<C>>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    for address in [Address::new("127.0.0.1:0"), Address::new(&format!("unix:{}", path.display()))] {
        let listener = Listener::bind(&address).expect("an address");
        let address = listener.address().expect("a bound listener");
        let event_loop = match make(listener) {
            Err(why) if matches!(why.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                eprintln!("SKIPPED: {why}");
                return;
            }
            made => made.expect("a loop"),
        };
        let mailbox = event_loop.mailbox();
        thread::scope(|scope| {
            let handler = handler(mailbox.clone());
            let serving = scope.spawn(|| event_loop.run(handler));
            let stop = StopLoop(&mailbox);
            let all = Sequence::all();
            let mut streams: Vec<_> =
                all.iter().map(|_| connect(&address, &path).expect("the loop accepts")).collect();
            streams.iter_mut().for_each(|stream| check(stream, 0, &all[0]));
            // A loop checks the deadlines of new connections every second, and would find then what it has forgotten.
            thread::sleep(DEADLINES_OVER);
            for (number, (sequence, stream)) in all.iter().zip(&mut streams).enumerate() {
                check(stream, number, sequence);
            }
            drop((streams, stop));
            serving.join().expect("no panic").expect("the loop ends in order");
        });
    }
}

#[test]
fn the_mio_loop_sends_everything() {
    check_loop(|listener| hipr_io_mio::serve(listener, Config::default(), Arc::<Stats>::default()));
}

#[test]
fn the_io_uring_loop_sends_everything() {
    check_loop(|listener| hipr_io_uring::serve(listener, Config::default(), Arc::<Stats>::default()));
}
