//! Tests that the kernel encrypts what a worker sends (kTLS), where it can: with each event loop, and with sessions in one process and in
//! processes of their own. `tests/ktls/run.sh` runs them in an emulated machine whose kernel can; with `HIPR_REQUIRE_KTLS` none is skipped.
//!
//! What the library reads from the environment is the process's, so that each of its clients is this program again.

use std::env;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

use hipr_client::{Connection, Extra, WorkerAddress};
use hipr_proto::op::{self, kind};
use hipr_proto::{Answer, Limits, Op, Outbox, ReplyMode};
use hipr_tests::items::next_random;
use hipr_tests::{WorkerProcess, eventually};
use hipr_tls::preamble::{Collected, Hello};
use hipr_tls::{ClientIdentity, SecretKey, make_key};
use rustls::{AlertDescription, CipherSuite, ClientConnection, Error, StreamOwned};
use tempfile::TempDir;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const TIMEOUT: Duration = Duration::from_secs(120);
/// The loops, and sessions in one process and in processes of their own. What keeps a session's process from harm keeps it from io_uring.
const WORKERS: [&[&str]; 4] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "uring", "--isolate", "none"],
    &["--isolate", "process"],
    &["--io", "uring", "--isolate", "process", "--sandbox", "off"],
];
/// What a worker's log says of a connection that the kernel encrypts, and of a session that goes on.
const IN_KERNEL: &str = "the kernel encrypts what is sent (kTLS)";
const WENT_ON: &str = "the session goes on over another connection";

/// Returns whether the kernel can encrypt.
fn has_ktls() -> bool {
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").unwrap_or_default();
    known.split_whitespace().any(|name| name == "tls")
}

/// Returns whether the kernel can encrypt; says so if not.
fn can() -> bool {
    let can = has_ktls();
    let is_required = env::var_os("HIPR_REQUIRE_KTLS").is_some();
    assert!(can || !is_required, "HIPR_REQUIRE_KTLS is set, and the kernel has no kTLS");
    if !can {
        // Past the test harness, which shows what is printed only of tests that fail.
        let why = "the kernel has no kTLS, or its module is not loaded (modprobe tls); tests/ktls/run.sh emulates one that has";
        writeln!(io::stderr(), "SKIPPED: {why}").expect("standard error is open");
    }
    can
}

/// A worker that asks for keys, and the folder with the key of a client that it lets in.
struct Served {
    worker: WorkerProcess,
    folder: TempDir,
    user: SecretKey,
}

impl Served {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let user = make_key(&folder.path().join("hipr/key"), false).expect("a key");
        let authorized = folder.path().join("authorized");
        fs::write(&authorized, user.public().to_string()).expect("written");
        let authorized = authorized.to_str().expect("text");
        let options = [&["--device", "sim", "--authorized", authorized], options].concat();
        let mut command = Command::new(HIPR);
        command.env("XDG_CONFIG_HOME", folder.path()).env("HIPR_LOG", "debug");
        Self { worker: WorkerProcess::start_command(command, &options), folder, user }
    }

    /// Runs a part of this program as a client whose session outlives its connections, and expects it to say that all is right.
    fn right(&self, part: &str) {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command
            .args(["--ignored", "--exact", part, "--nocapture"])
            .env("HIPR_WORKER", format!("hipr://{}", self.worker.address()))
            .env("HIPR_RESUME_TIMEOUT_MS", "600000")
            .env("XDG_CONFIG_HOME", self.folder.path());
        let output = command.output().expect("the client runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("all is right"), "{said}{errors}\n{}", self.worker.log());
    }

    /// Counts the lines of the worker's log that have these words.
    fn said(&self, words: &str) -> usize {
        self.worker.log().lines().filter(|line| line.contains(words)).count()
    }

    /// Connects without the library: a session that ends with its connection, and a cipher whose keys have no limit.
    fn connect(&self) -> Client {
        let cipher = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;
        let identity = ClientIdentity::with_cipher(&self.user, cipher).expect("a key");
        let name = "hipr".try_into().expect("a name");
        let tls = ClientConnection::new(identity.rustls(), name).expect("a connection");
        let socket = TcpStream::connect(self.worker.address()).expect("a worker is there");
        socket.set_read_timeout(Some(TIMEOUT)).expect("set");
        let proto = hipr_proto::Client::new(Limits::default());
        let mut client = Client { tls: StreamOwned::new(tls, socket), proto };
        client.tls.write_all(&Hello::default().to_bytes()).expect("sent");
        client
    }
}

/// A client that is no library.
struct Client {
    tls: StreamOwned<ClientConnection, TcpStream>,
    proto: hipr_proto::Client<Vec<u8>>,
}

impl Client {
    /// Reads the worker's preamble, and asks twice: the kernel has the key behind the first answer, if not before.
    fn enter(&mut self) {
        let mut answer = Collected::default();
        loop {
            let mut piece = vec![0; answer.wanted().expect("a preamble").min(64)];
            if piece.is_empty() {
                break;
            }
            self.tls.read_exact(&mut piece).expect("a preamble");
            answer.push(&piece);
        }
        for _ in 0..2 {
            assert_eq!(self.call(&op::GetDeviceCount {}).count, 1);
        }
    }

    fn send(&mut self, op: &impl Op) {
        self.proto.request_with(op, &[], None, ReplyMode::Always).expect("a well-formed request");
        self.proto.flush();
        let mut outbox = Outbox::new();
        self.proto.poll_transmit(&mut outbox);
        outbox.slices().try_for_each(|bytes| self.tls.write_all(bytes)).expect("sent");
    }

    fn call<O: Op>(&mut self, op: &O) -> O::Reply {
        self.send(op);
        let mut buffer = [0; 4096];
        loop {
            let len = self.tls.read(&mut buffer).expect("an answer");
            let mut bytes = &buffer[..len];
            if let Answer::Reply(reply) = self.proto.handle_input(&mut bytes).expect("an answer") {
                return reply.read::<O>().expect("a reply").expect("success");
            }
        }
    }
}

// ---- what clients do -------------------------------------------------------------------------------------------------

fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    (0..len.div_ceil(8)).flat_map(|_| next_random(&mut seed).to_le_bytes()).take(len).collect()
}

fn copy_and_compare(connection: &Connection, sizes: &[usize]) {
    let most = sizes.iter().max().copied().unwrap_or_default();
    let place = connection.ask(&op::Malloc { size: most as u64, flags: 0 }).expect("memory").device_ptr;
    for (round, &size) in sizes.iter().enumerate() {
        let bytes = noise(size, round as u64 + 1);
        let (size, stream) = (size as u64, 0);
        let up = op::Memcpy { dst: place, src: 0, size, kind: kind::HOST_TO_DEVICE, stream };
        connection.tell_with(&up, Extra { inline: &bytes, ..Extra::default() }).expect("sent");
        let mut back = vec![0; bytes.len()];
        let down = op::Memcpy { dst: 0, src: place, size, kind: kind::DEVICE_TO_HOST, stream };
        connection.read(&down, Extra::default(), &mut back).expect("read");
        assert!(back == bytes, "{size} bytes");
    }
}

/// Copies of many sizes both ways, many small requests, and many that wait.
#[test]
#[ignore = "a part of the other tests"]
fn copies_and_launches() {
    let connection = Connection::connect(&WorkerAddress::from_env(), TIMEOUT).expect("a worker is there");
    let edges = [1 << 14, 1 << 17, 1 << 18].map(|edge: usize| [edge - 1, edge, edge + 1]).concat();
    copy_and_compare(&connection, &[&[1, 15, 1000, 5 << 20], &edges[..], &[1 << 20, 1]].concat());
    let place = connection.ask(&op::Malloc { size: 4096, flags: 0 }).expect("memory").device_ptr;
    for round in 0..4_000_u32 {
        let dst = place + u64::from(round % 64) * 16;
        connection.tell(&op::Memset { dst, value: 7, size: 16, stream: 0 }).expect("sent");
        if round % 40 == 0 {
            assert_eq!(connection.ask(&op::GetDeviceCount {}).expect("an answer").count, 1);
        }
    }
    copy_and_compare(&connection, &[100_000]);
    connection.close(TIMEOUT);
    println!("all is right");
}

// ---- tests -----------------------------------------------------------------------------------------------------------

#[test]
fn every_byte_arrives_that_the_kernel_has_encrypted() {
    if !can() {
        return;
    }
    for options in WORKERS {
        let served = Served::start(options);
        served.right("copies_and_launches");
        eventually("it is logged", || served.said(IN_KERNEL) == 1);
        assert_eq!(served.said(WENT_ON), 0, "{options:?}: {}", served.worker.log());
        println!("{options:?}: right");
        eventually("the session is over with its client", || {
            served.worker.children().is_empty() && !served.worker.log().contains("kept for its client")
        });
    }
}

/// The kernel cannot change its key: a session whose key has encrypted as much as it may goes on over another connection.
#[test]
fn a_session_outlives_its_key() {
    if !can() {
        return;
    }
    for options in WORKERS {
        let served = Served::start(&[options, &["--ktls-key-max", "512K"]].concat());
        served.right("copies_and_launches");
        let (in_kernel, went_on) = (served.said(IN_KERNEL), served.said(WENT_ON));
        println!("{options:?}: {in_kernel} connections, {went_on} times gone on");
        // The worker encrypts what waits when a connection begins; then the kernel does.
        assert!(went_on >= 2 && in_kernel >= 2, "{options:?}: {}", served.worker.log());
    }
}

#[test]
fn a_good_bye_is_told_from_a_cut_and_from_a_fault() {
    if !can() {
        return;
    }
    for options in WORKERS {
        let mut served = Served::start(options);
        // Who says good-bye is told everything that is due first.
        let size = 8 << 20;
        let mut client = served.connect();
        client.enter();
        let src = client.call(&op::Malloc { size, flags: 0 }).device_ptr;
        client.send(&op::Memcpy { dst: 0, src, size, kind: kind::DEVICE_TO_HOST, stream: 0 });
        client.tls.conn.send_close_notify();
        client.tls.flush().expect("sent");
        thread::sleep(Duration::from_millis(300));
        let mut rest = Vec::new();
        client
            .tls
            .read_to_end(&mut rest)
            .unwrap_or_else(|why| panic!("{options:?}: {why}: {}", served.worker.log()));
        assert!(rest.len() as u64 > size, "{options:?}: {} bytes", rest.len());
        eventually("it is logged", || served.said(IN_KERNEL) == 1);
        drop(client);

        // Who changes a byte is told so, inside the encryption.
        let mut client = served.connect();
        client.enter();
        client.tls.conn.writer().write_all(&[0; 100]).expect("encrypted");
        let mut record = Vec::new();
        client.tls.conn.write_tls(&mut record).expect("written");
        *record.last_mut().expect("a record") ^= 1;
        client.tls.sock.write_all(&record).expect("sent");
        let told = client.tls.read(&mut [0; 64]).expect_err("an alert");
        let told = told.into_inner().and_then(|why| why.downcast::<Error>().ok());
        let expected = Error::AlertReceived(AlertDescription::BadRecordMac);
        assert_eq!(told.as_deref(), Some(&expected), "{options:?}: {}", served.worker.log());
        eventually("it is logged", || served.said(IN_KERNEL) == 2);

        // A worker that is killed says nothing.
        let mut client = served.connect();
        client.enter();
        for child in served.worker.children() {
            Command::new("kill").args(["-9", &child.to_string()]).status().expect("kill runs");
        }
        served.worker.kill();
        let cut = client.tls.read(&mut [0; 64]).expect_err("no good-bye").kind();
        assert!(matches!(cut, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{options:?}: {cut}");
    }
}

#[test]
fn what_the_kernel_is_not_to_encrypt_this_process_does() {
    // Elsewhere io_uring may not be there either.
    for options in WORKERS.iter().filter(|options| has_ktls() || !options.contains(&"uring")) {
        let served = Served::start(&[options, &["--ktls", "off"][..]].concat());
        let mut client = served.connect();
        client.enter();
        assert_eq!(served.said(IN_KERNEL), 0, "{options:?}: {}", served.worker.log());
    }
}

/// Where the kernel cannot, a worker says so once, and serves as before.
#[test]
fn a_kernel_without_it_is_no_obstacle() {
    if has_ktls() {
        return;
    }
    let served = Served::start(WORKERS[0]);
    for _ in 0..3 {
        let mut client = served.connect();
        client.enter();
    }
    assert_eq!(
        (served.said(IN_KERNEL), served.said("this process encrypts")),
        (0, 1),
        "{}",
        served.worker.log()
    );
}
