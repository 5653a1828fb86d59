//! Tests what a client sees when there is no room: at `--sessions-max`, and when there is no memory left to keep what it sends while it takes
//! nothing. Worker processes with each event loop.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use hipr_proto::op::{self, kind};
use hipr_proto::{Answer, Client, Limits, Op, Outbox, ReplyMode};
use hipr_resume::{Claim, Endpoint, Name, Terms};
use hipr_tests::{WireClient, WorkerProcess, eventually};
use hipr_tls::preamble::{self, Collected, Hello};
use tempfile::TempDir;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a client waits for bytes before it looks whether it has some to send, and how often in a row.
const PAUSE: Duration = Duration::from_millis(10);
const SILENT_MAX: u32 = 6000;
/// The loops, and sessions in one process and in processes of their own.
const WORKERS: [&[&str]; 4] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "auto", "--isolate", "none"],
    &["--isolate", "process"],
    &["--io", "auto", "--isolate", "process", "--sandbox", "off"],
];
/// What the worker says of a client that sends more than there is room for.
const NO_ROOM: &str = "its client has sent more than there is memory to keep while it takes nothing";

struct Served {
    worker: WorkerProcess,
    folder: TempDir,
}

impl Served {
    fn start(options: &[&str], more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let audit = folder.path().join("audit");
        let own = ["--device", "sim", "--audit", audit.to_str().expect("text")];
        let worker = WorkerProcess::start_logged(Path::new(HIPR), &[&own, options, more].concat());
        Self { worker, folder }
    }

    /// Counts the records that have these words.
    fn recorded(&self, words: &[&str]) -> usize {
        let text = fs::read_to_string(self.folder.path().join("audit")).unwrap_or_default();
        text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

/// Reads a worker's preamble; `None` if the connection ends before.
fn answer(stream: &mut TcpStream) -> Option<preamble::Answer> {
    let mut said = Collected::default();
    while said.wanted().expect("a preamble") > 0 {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        said.push(&byte);
    }
    Some(preamble::Answer::from_fields(said.fields()).expect("an answer"))
}

fn has_ended(why: &std::io::Error) -> bool {
    matches!(why.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// A client whose session outlives its connections, and that sends and takes only what a test wants.
struct Resuming {
    worker: SocketAddr,
    stream: TcpStream,
    name: Name,
    epoch: u32,
    endpoint: Endpoint,
    client: Client<Vec<u8>>,
    /// Bytes of the session that the endpoint had no room for.
    unsent: Vec<u8>,
    /// Bytes of the session that have arrived and are no whole message yet.
    input: Vec<u8>,
    /// Replies that have arrived, and the bytes behind their fields.
    replies: usize,
    inline: Vec<u8>,
    /// The fields of the last reply.
    fixed: Vec<u8>,
    /// How often nothing has come in a row.
    silent: u32,
}

impl Resuming {
    fn begin(worker: SocketAddr, name: u8) -> (Self, Terms) {
        let name = Name::new([name; 32]);
        let (stream, terms) = Self::claim(worker, Claim { name, epoch: 0, taken: 0 }, 0);
        let terms = terms.expect("terms");
        let sizes = [terms.to_worker_max_bytes, terms.to_client_max_bytes].map(|bytes| bytes as usize);
        let (unsent, input, inline, fixed) = Default::default();
        let (endpoint, client) = (Endpoint::new(sizes[0], sizes[1]), Client::new(Limits::default()));
        let (epoch, replies, silent) = (0, 0, 0);
        let own = Self {
            worker,
            stream,
            name,
            epoch,
            endpoint,
            client,
            unsent,
            input,
            replies,
            inline,
            fixed,
            silent,
        };
        (own, terms)
    }

    /// Connects and claims a session; returns the connection and the terms, if the worker has the session.
    fn claim(worker: SocketAddr, claim: Claim, route: u64) -> (TcpStream, Option<Terms>) {
        let mut stream = TcpStream::connect(worker).expect("the worker listens");
        stream.set_nodelay(true).expect("a TCP socket");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a TCP socket");
        let mut bytes = Vec::new();
        if route != 0 {
            bytes.extend(Hello { route: Some(route), ..Hello::default() }.to_bytes());
        }
        bytes.extend(Hello { claim: Some(claim), ..Hello::default() }.to_bytes());
        stream.write_all(&bytes).expect("sent");
        let terms = answer(&mut stream).expect("an answer").terms;
        stream.set_read_timeout(Some(PAUSE)).expect("a TCP socket");
        (stream, terms)
    }

    /// Goes on over another connection; returns false if the worker does not have the session any more.
    fn go_on(&mut self, route: u64) -> bool {
        self.epoch += 1;
        self.endpoint.cut();
        let claim = Claim { name: self.name, epoch: self.epoch, taken: self.endpoint.taken() };
        let (stream, terms) = Self::claim(self.worker, claim, route);
        self.stream = stream;
        let Some(terms) = terms else { return false };
        self.endpoint.resume(terms.taken).expect("an offset that can be");
        true
    }

    /// Says that nothing more comes behind what was put.
    fn finish(&mut self) {
        let pushed = self.endpoint.push(&self.unsent);
        self.unsent.drain(..pushed);
        self.endpoint.finish();
    }

    fn put<O: Op>(&mut self, op: &O, reply_mode: ReplyMode) {
        self.client.request_with(op, &[], None, reply_mode).expect("a request");
        self.client.flush();
        let mut outbox = Outbox::new();
        self.client.poll_transmit(&mut outbox);
        outbox.slices().for_each(|bytes| self.unsent.extend_from_slice(bytes));
    }

    /// Sends at most so many bytes of the session; returns false if the connection has ended.
    fn send(&mut self, most: usize) -> bool {
        let pushed = self.endpoint.push(&self.unsent);
        self.unsent.drain(..pushed);
        let mut frames = Vec::new();
        self.endpoint.take_output(&mut frames, most);
        self.stream.write_all(&frames).is_ok()
    }

    /// Takes what has arrived, and waits a while for something if nothing has; returns false if the connection has ended.
    fn take(&mut self) -> bool {
        let mut raw = vec![0; 64 << 10];
        let len = match self.stream.read(&mut raw) {
            Ok(0) => return false,
            Ok(len) => len,
            Err(why) if has_ended(&why) => return false,
            // There may be something to send first.
            Err(why) if why.kind() == ErrorKind::WouldBlock && self.silent < SILENT_MAX => {
                self.silent += 1;
                return true;
            }
            Err(why) => panic!("nothing arrives: {why}"),
        };
        self.silent = 0;
        let (mut frames, mut bytes) = (&raw[..len], vec![0; 64 << 10]);
        loop {
            let taken = self.endpoint.receive(&mut frames, &mut bytes).expect("frames");
            self.input.extend_from_slice(&bytes[..taken]);
            if taken < bytes.len() {
                break;
            }
        }
        let mut rest = self.input.as_slice();
        loop {
            match self.client.handle_input(&mut rest).expect("a message") {
                Answer::Reply(reply) => {
                    assert_eq!(reply.error, None, "reply {}", self.replies);
                    self.replies += 1;
                    self.fixed = reply.fixed.to_vec();
                }
                Answer::Data { bytes, .. } => self.inline.extend_from_slice(bytes),
                _ => break,
            }
        }
        let left = rest.len();
        self.input.drain(..self.input.len() - left);
        true
    }

    /// Sends requests and waits until there are so many replies in all, with so many bytes; returns false if the connection has ended.
    fn until(&mut self, replies: usize, inline: usize) -> bool {
        while self.replies < replies || self.inline.len() < inline {
            if !self.send(16 << 10) || !self.take() {
                return false;
            }
        }
        true
    }

    /// Says that so many bytes of the session have arrived, which have to be more than were said and no more than have.
    fn acknowledge(&mut self, bytes: u32) -> bool {
        let frame = [0_u32.to_le_bytes(), bytes.to_le_bytes()].concat();
        self.stream.write_all(&frame).is_ok()
    }

    /// Returns whether the worker has read all that was sent over the connection, as the kernel says.
    fn is_read(&self) -> bool {
        let [own, other] =
            [self.stream.local_addr(), self.stream.peer_addr()].map(|end| end.expect("connected").port());
        let table = fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
        let port = |end: &str| end.rsplit(':').next().and_then(|port| u16::from_str_radix(port, 16).ok());
        let queue = |from, to, at: usize| {
            let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let line = lines.find(|line| port(line[1]) == Some(from) && port(line[2]) == Some(to))?;
            u64::from_str_radix(line[4].split(':').nth(at)?, 16).ok()
        };
        queue(own, other, 0) == Some(0) && queue(other, own, 1) == Some(0)
    }
}

/// Takes all memory that there is for sessions, and more: the worker owes it a reply besides.
fn greedy(worker: SocketAddr) -> WireClient {
    let mut client = WireClient::open(worker);
    let large = op::Malloc { size: 64 << 20, flags: 0 };
    let src = client.call(&large).expect("memory").device_ptr;
    let mut size = large.size;
    while size >= 256 {
        while client.call(&op::Malloc { size, flags: 0 }).is_ok() {}
        size /= 2;
    }
    let read = op::Memcpy { dst: 0, src, size: large.size, kind: kind::DEVICE_TO_HOST, stream: 0 };
    client.send(&read, &[], None, ReplyMode::Always);
    client
}

/// A client sends more than there is memory for while it takes nothing. If it can send it again, its link is cut, and all of it comes over
/// the next ones; else its session ends.
#[test]
fn who_sends_more_than_there_is_memory_for_is_cut_off() {
    const MUCH: usize = 4 << 20;
    const PINGS: usize = 30_000;
    // Whether the client has said that nothing more comes, how long sessions are kept without a link, and whether the session goes on.
    for (is_over, resume_timeout, goes_on) in [(false, "60", true), (true, "60", false), (false, "0", false)]
    {
        for options in WORKERS.into_iter().filter(|options| options.contains(&"none")) {
            let what = format!("{options:?}, over: {is_over}, kept for {resume_timeout} s");
            let few = ["--memory-total", "256M", "--resume-buffer", "1M", "--requests-open-max", "16"];
            let few = [&few[..], &["--resume-timeout", resume_timeout]].concat();
            let served = Served::start(options, &few);
            let (mut client, terms) = Resuming::begin(served.worker.address(), 1);
            client.put(&op::Init {}, ReplyMode::Always);
            client.put(&op::Malloc { size: MUCH as u64, flags: 0 }, ReplyMode::Always);
            assert!(client.until(2, 0), "{what}");
            let src = u64::from_le_bytes(client.fixed.clone().try_into().expect("an address"));
            let read = op::Memcpy { dst: 0, src, size: MUCH as u64, kind: kind::DEVICE_TO_HOST, stream: 0 };
            client.put(&read, ReplyMode::Always);
            for _ in 0..PINGS {
                client.put(&op::Ping {}, ReplyMode::Never);
            }
            if is_over {
                client.finish();
            }
            let len = client.unsent.len();
            assert!(client.send(usize::MAX) && client.unsent.is_empty(), "{what}: {len} bytes");
            eventually("the worker has read all of it", || client.is_read());
            let _greedy = greedy(served.worker.address());
            // What it has of the reply it says byte by byte, so that the worker looks again.
            let before = client.endpoint.taken();
            while client.endpoint.taken() < before + (64 << 10) {
                assert!(client.take(), "{what}: there is no reason to end it yet");
            }
            // Offsets that were said with the requests are behind these.
            let mut said = u32::try_from(before).expect("few bytes");
            eventually("the link is cut", || {
                said += 1;
                !client.acknowledge(said)
            });
            while client.take() {}
            let cut = |event| served.recorded(&[event, NO_ROOM]);
            let event = if goes_on { r#""event":"park""# } else { r#""event":"end""# };
            eventually("it is recorded why", || cut(event) == 1);
            if goes_on {
                client.put(&op::DeviceSynchronize {}, ReplyMode::Always);
                let mut links = 1;
                while !client.go_on(terms.route) || !client.until(4, MUCH) {
                    links += 1;
                    assert!(links < 1000, "{what}: nothing goes on: {}", served.worker.log());
                }
                assert_eq!(client.inline.len(), MUCH, "{what}");
            } else {
                assert!(!client.go_on(terms.route), "{what}: there is no such session any more");
            }
        }
    }
}

/// One session more than there may be gets none, whether it is to outlive its connection or not; a session that has its place goes on
/// although all are taken.
#[test]
fn one_session_too_many_gets_none_and_none_is_lost_for_it() {
    for options in WORKERS {
        let served = Served::start(options, &["--sessions-max", "2"]);
        let (mut first, terms) = Resuming::begin(served.worker.address(), 1);
        first.put(&op::Init {}, ReplyMode::Always);
        assert!(first.until(1, 0), "{options:?}");
        let mut second = WireClient::open(served.worker.address());
        for round in 1..=3 {
            let mut more = WireClient::connect(served.worker.address());
            // It may be closed before it has sent anything.
            let sent = more.try_send(&op::Init {}, &[], None, ReplyMode::Always);
            assert!(sent.is_err() || more.try_wait::<op::Init>().is_err(), "{options:?}");
            let name = Name::new([7; 32]);
            let mut stream = TcpStream::connect(served.worker.address()).expect("the system accepts");
            stream.set_read_timeout(Some(TIMEOUT)).expect("a TCP socket");
            let claim = Hello { claim: Some(Claim { name, epoch: 0, taken: 0 }), ..Hello::default() };
            let _ = stream.write_all(&claim.to_bytes());
            let said = answer(&mut stream);
            assert!(said.is_none_or(|said| said.terms.is_none()), "{options:?}: no session was begun");
            // The first one loses its link meanwhile.
            first.stream.shutdown(std::net::Shutdown::Both).expect("connected");
            assert!(first.go_on(terms.route), "{options:?}: it has its place");
            first.put(&op::DeviceSynchronize {}, ReplyMode::Always);
            assert!(first.until(1 + round, 0), "{options:?}");
            second.call(&op::Ping {}).expect("it goes on");
        }
        let refused = || served.recorded(&[r#""event":"refused""#, r#""reason":"no-seat""#]);
        eventually("all who were refused are recorded", || refused() == 6);
        drop(second);
        eventually("there is a place again", || {
            let mut third = WireClient::connect(served.worker.address());
            third.try_send(&op::Init {}, &[], None, ReplyMode::Always).is_ok()
                && third.try_wait::<op::Init>().is_ok()
        });
    }
}
