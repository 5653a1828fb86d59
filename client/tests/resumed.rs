//! Tests that a session goes on over one connection after another, with a worker whose links are cut at the worst times.
//!
//! Whether a session outlives its connection is read from the environment, so that the client is this program again.

mod support;

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hipr_client::{Connection, Extra, WorkerAddress};
use hipr_proto::Opcode;
use hipr_proto::op::{self, kind};
use hipr_resume::{Endpoint, FIRST_BYTES, Terms};
use hipr_tls::preamble::{Answer, Collected, Hello};
use support::{Asked, FakeWorker, Reaction, easy};

/// Bytes of a copy.
const MUCH: usize = 256 << 10;
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long a link may be silent while the client has something to send.
const SILENCE: Duration = Duration::from_secs(60);

/// Copies to the worker or from it, again and again, until links are no longer cut; then waits for an answer.
#[test]
#[ignore = "a part of the other tests"]
fn copies_until_no_link_is_cut() {
    let connection = Connection::connect(&WorkerAddress::from_env(), TIMEOUT).expect("a worker is there");
    let sends = env::var("SENDS").expect("whether it sends") == "true";
    let over = env::var("OVER").expect("a path");
    let mut bytes = vec![7; MUCH];
    while !Path::new(&over).exists() {
        let size = MUCH as u64;
        if sends {
            let copy = op::Memcpy { dst: 1, src: 0, size, kind: kind::HOST_TO_DEVICE, stream: 0 };
            connection.tell_with(&copy, Extra { inline: &bytes, ..Extra::default() }).expect("sent");
        } else {
            let copy = op::Memcpy { dst: 0, src: 1, size, kind: kind::DEVICE_TO_HOST, stream: 0 };
            bytes.fill(0);
            connection.read(&copy, Extra::default(), &mut bytes).expect("an answer");
            assert!(bytes.iter().all(|byte| *byte == 7));
        }
    }
    connection.ask(&op::DeviceSynchronize {}).expect("an answer");
    println!("all is right");
}

/// Answers a copy to the client with [`MUCH`] bytes, and anything else as [`easy`] does.
fn react(asked: &Asked) -> Reaction {
    let copies = asked.op == Opcode::MEMCPY && asked.as_op::<op::Memcpy>().kind == kind::DEVICE_TO_HOST;
    if copies { Reaction::GoodWith(Vec::new(), vec![7; MUCH]) } else { easy(asked) }
}

/// One session, as a worker has it: takes frames off links that it cuts, and carries what is in them to a worker.
struct Relay {
    end: Endpoint,
    worker: TcpStream,
    seed: u64,
}

impl Relay {
    /// Returns a number below `most`.
    fn random(&mut self, most: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % most
    }

    /// Answers the claim of a new link; fails if the client has given that up meanwhile.
    fn welcome(&mut self, link: &mut TcpStream) -> io::Result<()> {
        let mut hello = Collected::default();
        while let wanted @ 1.. = hello.wanted().expect("a claim") {
            let mut bytes = vec![0; wanted];
            link.read_exact(&mut bytes)?;
            hello.push(&bytes);
        }
        let claim = Hello::from_fields(hello.fields()).expect("a claim").claim.expect("a claim");
        if claim.epoch > 0 {
            self.end.cut();
            self.end.resume(claim.taken).expect("a client that knows what it has");
        }
        let max_bytes = FIRST_BYTES as u32;
        let terms = Terms {
            timeout_ms: 60_000,
            to_worker_max_bytes: max_bytes,
            to_client_max_bytes: max_bytes,
            taken: self.end.taken(),
            route: 0,
        };
        link.write_all(&Answer { refusal: None, terms: Some(terms) }.to_bytes())
    }

    /// Carries what the link brings, both ways, at most about so many bytes; returns false at the client's end.
    fn carry(&mut self, link: &mut TcpStream, most_bytes: usize) -> bool {
        link.set_nonblocking(true).expect("a socket");
        let (mut input, mut plain, mut output) = (vec![0; 4096], vec![0; 64 << 10], Vec::new());
        let (mut left, mut last) = (most_bytes, Instant::now());
        while left > 0 {
            let mut is_idle = true;
            match link.read(&mut input) {
                Ok(0) => return !self.end.is_ended(),
                Ok(len) => {
                    let mut frames = input.get(..len).unwrap_or_default();
                    let taken = self.end.receive(&mut frames, &mut plain).expect("frames");
                    self.pass_on(&plain[..taken]);
                    left = left.saturating_sub(len);
                    is_idle = false;
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return true,
            }
            let room = self.end.room().min(plain.len());
            if let Ok(len) = self.worker.read(&mut plain[..room]) {
                self.end.push(&plain[..len]);
            }
            left = left.saturating_sub(self.end.take_output(&mut output, usize::MAX));
            match link.write(&output) {
                Ok(len) => _ = output.drain(..len),
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return true,
            }
            if is_idle {
                assert!(last.elapsed() < SILENCE, "the client says no more over a link that is good");
                thread::sleep(Duration::from_micros(20));
            } else {
                last = Instant::now();
            }
        }
        true
    }

    /// Writes to the worker, whose socket does not wait.
    fn pass_on(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.worker.write(bytes) {
                Ok(len) => bytes = &bytes[len..],
                Err(why) if why.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_micros(20)),
                Err(why) => panic!("the worker is gone: {why}"),
            }
        }
    }

    /// Serves one session: cuts link after link, then keeps one until the client ends the session. Calls `over` when that one begins.
    fn run(listener: &TcpListener, worker: SocketAddr, over: impl FnOnce()) {
        // Links over which the session goes on before they are no longer cut.
        let links = env::var("HIPR_RESUME_LINKS").map_or(3000, |links| links.parse().expect("a number"));
        let worker = TcpStream::connect(worker).expect("the worker lives");
        worker.set_nonblocking(true).expect("a socket");
        let mut relay = Self { end: Endpoint::new(FIRST_BYTES, FIRST_BYTES), worker, seed: 1 };
        let mut over = Some(over);
        for number in 0.. {
            let mut link = listener.accept().expect("the client comes").0;
            if relay.welcome(&mut link).is_err() {
                continue;
            }
            let most_bytes = match number {
                _ if number >= links => {
                    over.take().into_iter().for_each(|over| over());
                    usize::MAX
                }
                // So that the session has begun.
                0 => 100_000,
                // It is cut while the client begins to use it.
                _ if number % 2 == 1 => {
                    let pause_us = relay.random(100);
                    thread::sleep(Duration::from_micros(pause_us));
                    // Whoever sends hears of it at once.
                    socket2::SockRef::from(&link).set_linger(Some(Duration::ZERO)).expect("a socket");
                    continue;
                }
                _ => 1 + relay.random(2 * FIRST_BYTES as u64) as usize,
            };
            if !relay.carry(&mut link, most_bytes) {
                return;
            }
        }
    }
}

/// Runs a client whose links are cut, which sends or takes.
fn goes_on(sends: bool) {
    let worker = FakeWorker::start(react);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let over = folder.path().join("over");
    let mut client = Command::new(env::current_exe().expect("this program"))
        .args(["--ignored", "--exact", "copies_until_no_link_is_cut", "--nocapture"])
        .env("HIPR_WORKER", listener.local_addr().expect("an address").to_string())
        .env("HIPR_RESUME_TIMEOUT_MS", "60000")
        .env("SENDS", sends.to_string())
        .env("OVER", &over)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let relay = thread::spawn(move || {
        Relay::run(&listener, worker.address, || std::fs::write(over, "").expect("written"));
    });
    if let Err(why) = relay.join() {
        client.kill().expect("it can be killed");
        std::panic::resume_unwind(why);
    }
    let output = client.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("all is right"), "{said}");
}

#[test]
fn whoever_sends_is_never_left_waiting_for_a_link_that_brings_nothing() {
    goes_on(true);
}

#[test]
fn whoever_takes_always_says_so() {
    goes_on(false);
}
