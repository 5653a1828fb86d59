//! Tests that a session goes on when its connection is cut: a worker's process with each event loop, with sessions in one process and in
//! processes of their own, with and without encryption, behind a proxy that cuts links at random bytes.
//!
//! What the library reads from the environment is the process's, so that each client is this program again.

use std::env;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use hipr_client::{CallError, Connection, Extra, WorkerAddress};
use hipr_proto::PLACE_PAGE_BYTES;
use hipr_proto::op::{self, kind};
use hipr_resume::{Claim, Name};
use hipr_tests::items::next_random;
use hipr_tests::metrics::{ask, metrics_of, value, wait_for_metric};
use hipr_tests::{Cuts, Link, Proxy, WireClient, WorkerProcess, eventually, open_door};
use hipr_tls::preamble::{Answer, Collected, Hello};
use hipr_tls::{make_key, read_key};
use tempfile::TempDir;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const TIMEOUT: Duration = Duration::from_secs(30);
/// The loops, and sessions in one process and in processes of their own. What keeps a session's process from harm keeps it from io_uring.
const WORKERS: [&[&str]; 4] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "auto", "--isolate", "none"],
    &["--isolate", "process"],
    &["--io", "auto", "--isolate", "process", "--sandbox", "off"],
];
/// Bytes that take a while over a slow link.
const MUCH: usize = 32 << 20;
/// What a worker's log says of a session whose link was cut, and of one that goes on.
const PARKED: &str = "the session is kept for its client";
const WENT_ON: &str = "the session goes on over another connection";

/// A worker, and a folder with the keys that let a client in if it asks for any.
struct Served {
    worker: WorkerProcess,
    folder: TempDir,
    is_encrypted: bool,
}

impl Served {
    fn start(options: &[&str], is_encrypted: bool) -> Self {
        Self::start_with(options, is_encrypted, "")
    }

    /// Starts a worker; the line of a client's key, if it asks for keys, has these words.
    fn start_with(options: &[&str], is_encrypted: bool, words: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = folder.path().join("hipr");
        let mut options = options.to_vec();
        let authorized = folder.path().join("authorized");
        if is_encrypted {
            let user = make_key(&settings.join("key"), false).expect("a key");
            fs::write(&authorized, format!("{} {words}\n", user.public())).expect("written");
            options.extend(["--authorized", authorized.to_str().expect("text")]);
        }
        let audit = folder.path().join("audit");
        options.extend(["--audit", audit.to_str().expect("text")]);
        let mut command = Command::new(HIPR);
        command.env("XDG_CONFIG_HOME", folder.path()).env_remove("HIPR_LOG");
        let options = [&["--device", "sim"], options.as_slice()].concat();
        Self { worker: WorkerProcess::start_command(command, &options), folder, is_encrypted }
    }

    /// Makes a command that runs a part of this program as a client behind a proxy.
    fn client(&self, proxy: &Proxy, part: &str) -> Command {
        let scheme = if self.is_encrypted { "hipr://" } else { "" };
        let mut command = Command::new(env::current_exe().expect("this program"));
        command
            .args(["--ignored", "--exact", part, "--nocapture"])
            .env("HIPR_WORKER", format!("{scheme}{}", proxy.address()))
            .env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    /// Returns where clients without a key connect that are to be those of the client's key, if the worker asks for one.
    fn door(&self) -> SocketAddr {
        if !self.is_encrypted {
            return self.worker.address();
        }
        let key = read_key(&self.folder.path().join("hipr/key")).expect("the client's key");
        open_door(self.worker.address(), &key).expect("a door")
    }

    /// Returns the worker's records of sessions so far.
    fn recorded(&self) -> String {
        fs::read_to_string(self.folder.path().join("audit")).unwrap_or_default()
    }

    /// Counts the lines of the worker's log that have these words.
    fn said(&self, words: &str) -> usize {
        self.worker.log().lines().filter(|line| line.contains(words)).count()
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

// ---- what clients do -------------------------------------------------------------------------------------------------

fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    (0..len.div_ceil(8)).flat_map(|_| next_random(&mut seed).to_le_bytes()).take(len).collect()
}

fn connect() -> Connection {
    Connection::connect(&WorkerAddress::from_env(), TIMEOUT).expect("a worker is there")
}

fn upload(connection: &Connection, dst: u64, bytes: &[u8]) {
    let copy = op::Memcpy { dst, src: 0, size: bytes.len() as u64, kind: kind::HOST_TO_DEVICE, stream: 0 };
    connection.tell_with(&copy, Extra { inline: bytes, ..Extra::default() }).expect("sent");
}

fn download(connection: &Connection, src: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let copy = op::Memcpy { dst: 0, src, size: len as u64, kind: kind::DEVICE_TO_HOST, stream: 0 };
    connection.read(&copy, Extra::default(), &mut bytes).expect("read");
    bytes
}

/// Copies bytes to the device and back, on two threads, with many small requests between.
#[test]
#[ignore = "a part of the other tests"]
fn copies_and_compares() {
    let rounds: u64 = env::var("ROUNDS").expect("a number of rounds").parse().expect("a number");
    let connection = connect();
    let work = |number: u64| {
        let place = connection.ask(&op::Malloc { size: 4 << 20, flags: 0 }).expect("memory").device_ptr;
        for round in 0..rounds {
            let mut seed = number << 32 | round;
            let most = next_random(&mut seed);
            let len = usize::try_from(most % (1 << (4 + next_random(&mut seed) % 18))).expect("small") + 1;
            let bytes = noise(len, round);
            upload(&connection, place, &bytes);
            for _ in 0..next_random(&mut seed) % 50 {
                let set = op::Memset { dst: place + (3 << 20), value: 7, size: 16, stream: 0 };
                connection.tell(&set).expect("sent");
            }
            if round % 3 == 0 {
                assert_eq!(connection.ask(&op::GetDeviceCount {}).expect("an answer").count, 1);
            }
            assert!(download(&connection, place, len) == bytes, "round {round}, {len} bytes");
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| work(1));
        work(2);
    });
    connection.close(TIMEOUT);
    println!("all is right");
}

/// Sends much that nobody has time for, and takes much at the same time.
#[test]
#[ignore = "a part of the other tests"]
fn sends_and_takes_at_once() {
    let connection = connect();
    let place = connection.ask(&op::Malloc { size: 16 << 20, flags: 0 }).expect("memory").device_ptr;
    let bytes = noise(8 << 20, 5);
    upload(&connection, place, &bytes);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3 {
                upload(&connection, place + (8 << 20), &bytes);
            }
        });
        for _ in 0..3 {
            assert!(download(&connection, place, 8 << 20) == bytes);
        }
    });
    connection.close(TIMEOUT);
    println!("all is right");
}

/// Says when it is there, and then what becomes of its next call.
#[test]
#[ignore = "a part of the other tests"]
fn waits_and_asks() {
    let connection = connect();
    assert_eq!(connection.ask(&op::GetDeviceCount {}).expect("an answer").count, 1);
    fs::write(env::var("READY").expect("a path"), "").expect("written");
    while !Path::new(&env::var("GO").expect("a path")).exists() {
        thread::sleep(Duration::from_millis(5));
    }
    match connection.ask(&op::Malloc { size: 64, flags: 0 }) {
        Ok(_) => println!("answered"),
        Err(CallError::Lost) => println!("lost"),
        Err(CallError::Hip(error)) => println!("{error:?}"),
    }
}

/// Says when it has a lease of nearly half the memory. Then places an eighth, and a quarter, and says what becomes of each.
#[test]
#[ignore = "a part of the other tests"]
fn places_by_its_lease() {
    let connection = connect();
    let lease = connection.first_lease().expect("it was asked for").expect("a lease");
    let total: u64 = env::var("TOTAL").expect("a size").parse().expect("a number");
    let missing = (total / 16 * 7).saturating_sub(lease.added_bytes);
    connection.ask(&op::MemLease { want_bytes: missing }).expect("a longer lease");
    fs::write(env::var("READY").expect("a path"), "").expect("written");
    while !Path::new(&env::var("GO").expect("a path")).exists() {
        thread::sleep(Duration::from_millis(5));
    }
    // Addresses begin with pages.
    let [eighth, quarter] = [8, 4].map(|part| (total / part).next_multiple_of(PLACE_PAGE_BYTES));
    for (offset, size) in [(0, eighth), (quarter, quarter)] {
        let place = op::MallocAt { device_ptr: lease.window_start + offset, size, kind: 2, flags: 0 };
        connection.tell(&place).expect("sent");
        match connection.ask(&op::DeviceSynchronize {}) {
            Ok(()) => println!("placed"),
            Err(why) => println!("not placed: {why}"),
        }
    }
}

/// Says when its memory has bytes, and then takes them.
#[test]
#[ignore = "a part of the other tests"]
fn takes_much() {
    let connection = connect();
    let place = connection.ask(&op::Malloc { size: MUCH as u64, flags: 0 }).expect("memory").device_ptr;
    let bytes = noise(MUCH, 5);
    upload(&connection, place, &bytes);
    assert!(download(&connection, place, 64) == bytes[..64]);
    fs::write(env::var("READY").expect("a path"), "").expect("written");
    while !Path::new(&env::var("GO").expect("a path")).exists() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(download(&connection, place, MUCH) == bytes);
    println!("all is right");
    while !Path::new(&env::var("END").expect("a path")).exists() {
        thread::sleep(Duration::from_millis(5));
    }
}

// ---- tests -----------------------------------------------------------------------------------------------------------

/// Runs a part of this program over links that are cut; returns how many were.
fn right_over(served: &Served, most: u32, part: &str) -> u64 {
    let rounds = env::var("HIPR_RESUME_ROUNDS").unwrap_or_else(|_| "6".to_owned());
    let link = Link { cuts: Some(Cuts::Within(most)), ..Link::default() };
    let proxy = Proxy::start(served.worker.address(), link).expect("a proxy");
    let mut client = served.client(&proxy, part);
    // Most links are cut before a session has gone on over them.
    let output = client.env("ROUNDS", rounds).env("HIPR_RESUME_TIMEOUT_MS", "600000").output();
    let said = text(&output.expect("the client runs"));
    assert!(said.contains("all is right"), "{said}\n{}", served.worker.log());
    proxy.cuts()
}

fn each_worker(test: impl Fn(&[&str], bool) + Sync) {
    thread::scope(|scope| {
        for options in WORKERS {
            let test = &test;
            scope.spawn(move || [false, true].map(|is_encrypted| test(options, is_encrypted)));
        }
    });
}

#[test]
fn no_byte_is_lost_or_doubled_or_wrong_wherever_links_are_cut() {
    each_worker(|options, is_encrypted| {
        let served = Served::start(&[options, &["--resume-timeout", "600"]].concat(), is_encrypted);
        let cuts = right_over(&served, 18, "copies_and_compares");
        let went_on = served.said(WENT_ON);
        println!("{options:?}, encrypted: {is_encrypted}: {cuts} cuts, {went_on} sessions went on");
        assert!(cuts >= 10 && went_on >= 5, "{options:?}: {cuts} cuts, {went_on} sessions went on");
        eventually("the session is over with its client", || served.worker.children().is_empty());
    });
}

#[test]
fn both_directions_go_on_when_neither_end_has_room() {
    each_worker(|options, is_encrypted| {
        let served = Served::start(&[options, &["--resume-buffer", "64K"]].concat(), is_encrypted);
        assert!(right_over(&served, 24, "sends_and_takes_at_once") > 0, "{options:?}");
    });
}

#[test]
fn a_session_whose_requests_are_held_up_still_hears_what_its_client_has() {
    let few = ["--resume-buffer", "64K", "--requests-per-second", "200"];
    each_worker(|options, is_encrypted| {
        let served = Served::start(&[options, &few].concat(), is_encrypted);
        assert!(right_over(&served, 20, "copies_and_compares") > 0, "{options:?}");
    });
}

/// Runs a client whose link is cut, lets `change` happen, and returns what its next call says.
fn after_a_cut(served: &mut Served, change: impl FnOnce(&mut Served, &Proxy)) -> String {
    after_cuts(served, 1, change).swap_remove(0)
}

/// Runs clients whose links are cut at the same time, lets `change` happen, and returns what the next call of each says.
fn after_cuts(served: &mut Served, count: usize, change: impl FnOnce(&mut Served, &Proxy)) -> Vec<String> {
    Clients { count, ..Clients::default() }.after_cuts(served, change)
}

/// Clients that do a part of this program.
struct Clients {
    part: &'static str,
    count: usize,
    /// The memory that there is in all, in bytes.
    total: u64,
    /// How long their calls wait for another connection. By default longer than a busy machine takes to make one.
    patience_ms: u64,
}

impl Default for Clients {
    fn default() -> Self {
        Self { part: "waits_and_asks", count: 1, total: 0, patience_ms: 600_000 }
    }
}

impl Clients {
    /// Cuts the clients' links when they are ready, lets `change` happen, and returns what each says behind that.
    fn after_cuts(&self, served: &mut Served, change: impl FnOnce(&mut Served, &Proxy)) -> Vec<String> {
        let proxy = Proxy::start(served.worker.address(), Link::default()).expect("a proxy");
        let folder = tempfile::tempdir().expect("a folder");
        let go = folder.path().join("go");
        let start = |number| {
            let ready = folder.path().join(format!("ready {number}"));
            let mut command = served.client(&proxy, self.part);
            command.env("HIPR_RESUME_TIMEOUT_MS", self.patience_ms.to_string());
            command.env("READY", &ready).env("GO", &go).env("TOTAL", self.total.to_string());
            let child = command.stdout(Stdio::piped()).spawn().expect("the client runs");
            eventually("the client has begun", || ready.exists());
            child
        };
        let children: Vec<_> = (0..self.count).map(start).collect();
        proxy.set_refuses(true);
        proxy.cut_all();
        change(served, &proxy);
        fs::write(&go, "").expect("written");
        let output = |child: Child| child.wait_with_output().expect("its output").stdout;
        children.into_iter().map(|child| String::from_utf8_lossy(&output(child)).into_owned()).collect()
    }
}

/// Others get the unused part of the lease of a client without a connection, whether the GPU's memory is short or what all sessions may have
/// together. An allocation of the client fails when it has come back and there is not enough any more.
#[test]
fn memory_that_a_client_only_might_use_is_no_lack_for_others_while_it_is_away() {
    each_worker(|options, is_encrypted| {
        // The emulated GPU of a session's process has all its memory for itself.
        let totals = if options.contains(&"process") { &[true][..] } else { &[false, true] };
        for &has_total in totals {
            let more: &[&str] = if has_total { &["--memory-total", "4G"] } else { &[] };
            let mut served = Served::start(&[options, more].concat(), is_encrypted);
            let mut other = WireClient::open(served.door());
            let total = match has_total {
                true => 4 << 30,
                false => other.call(&op::DeviceTotalMem { device: 0 }).expect("an answer").bytes,
            };
            let clients = Clients { part: "places_by_its_lease", total, ..Clients::default() };
            let said = clients.after_cuts(&mut served, |served, proxy| {
                eventually("it is kept", || served.said(PARKED) == 1);
                let taken = other.call(&op::Malloc { size: total / 4 * 3, flags: 0 });
                assert!(taken.is_ok(), "{options:?}, {more:?}: {taken:?}{}", served.worker.log());
                proxy.set_refuses(false);
            });
            let said: Vec<_> = said[0].lines().filter(|line| line.contains("placed")).collect();
            assert!(
                matches!(said[..], ["placed", other] if other.contains("hipErrorOutOfMemory")),
                "{options:?}, {more:?}: {said:?}{}",
                served.worker.log()
            );
        }
    });
}

/// Of a tenant's sessions that are cut off at the same time only as many wait as may; places are free again when their sessions go on or end.
#[test]
fn no_more_sessions_wait_than_their_tenant_may_have() {
    const ENDED: &str = "as many wait for their clients as may";
    const WHY: &str = "its tenant has as many sessions without one as it may have";
    each_worker(|options, is_encrypted| {
        // What the line says comes before what the worker does.
        let (option, words) = if is_encrypted { ("64", "parked-max=2") } else { ("2", "") };
        let mut served = Served::start_with(
            &[options, &["--parked-max", option, "--metrics", "0"]].concat(),
            is_encrypted,
            words,
        );
        let metrics = metrics_of(&served.worker);
        for round in 1..=2 {
            let said = after_cuts(&mut served, 3, |served, proxy| {
                eventually("two are kept", || served.said(PARKED) == 2 * round);
                eventually("one has ended", || served.said(ENDED) == round);
                wait_for_metric(metrics, "hipr_parked_sessions", 2.0);
                wait_for_metric(metrics, "hipr_sessions", 2.0);
                proxy.set_refuses(false);
            });
            let of = |word| said.iter().filter(|said| said.contains(word)).count();
            assert_eq!((of("answered"), of("lost")), (2, 1), "{options:?}: {said:?}{}", served.worker.log());
            eventually("it is logged that two went on", || served.said(WENT_ON) == 2 * round);
            wait_for_metric(metrics, "hipr_sessions_resumed_total", 2.0 * round as f64);
            wait_for_metric(metrics, "hipr_sessions_ended_total{reason=\"parked-max\"}", round as f64);
            wait_for_metric(metrics, "hipr_parked_sessions", 0.0);
        }
        eventually("both ends are recorded", || served.recorded().matches(WHY).count() == 2);
    });
}

#[test]
fn a_call_waits_until_there_is_a_link_again() {
    each_worker(|options, is_encrypted| {
        let mut served = Served::start(options, is_encrypted);
        let said = after_a_cut(&mut served, |served, proxy| {
            eventually("it is kept", || served.said(PARKED) == 1);
            proxy.set_refuses(false);
        });
        assert!(said.contains("answered"), "{options:?}: {said}{}", served.worker.log());
        eventually("the end is recorded", || served.recorded().contains(r#""event":"end""#));
        let recorded = served.recorded();
        let events: Vec<_> = recorded.lines().filter_map(|line| line.split(r#""event":""#).nth(1)).collect();
        let events: Vec<_> = events.iter().filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(events, ["begin", "park", "resume", "end"], "{options:?}: {recorded}");
        eventually("both are logged", || (served.said(PARKED), served.said(WENT_ON)) == (1, 1));
    });
}

#[test]
fn a_session_that_the_worker_has_given_up_is_lost() {
    each_worker(|options, is_encrypted| {
        let mut served = Served::start(&[options, &["--resume-timeout", "1"]].concat(), is_encrypted);
        let said = after_a_cut(&mut served, |served, proxy| {
            eventually("it is given up", || served.said("its client did not come back in time") == 1);
            eventually("its process is gone", || served.worker.children().is_empty());
            proxy.set_refuses(false);
        });
        assert!(said.contains("lost"), "{options:?}: {said}");
        eventually("the client was told", || served.said("a session cannot go on") > 0);
    });
}

#[test]
fn a_worker_that_is_gone_is_waited_for_no_longer_than_was_said() {
    let mut served = Served::start(WORKERS[0], false);
    let clients = Clients { patience_ms: 2000, ..Clients::default() };
    let said = clients.after_cuts(&mut served, |served, _| served.worker.kill());
    assert!(said[0].contains("lost"), "{said:?}");
}

#[test]
fn a_worker_without_resumption_is_used_as_before() {
    each_worker(|options, is_encrypted| {
        let mut served = Served::start(&[options, &["--resume-timeout", "0"]].concat(), is_encrypted);
        let said = after_a_cut(&mut served, |_, proxy| proxy.set_refuses(false));
        assert!(said.contains("lost"), "{options:?}: {said}");
        assert_eq!((served.said(PARKED), served.said(WENT_ON)), (0, 0), "{options:?}");
    });
}

/// What a session keeps until its client has it counts as memory of all sessions, or of its tenant's, while it is there; where there is none left, the bytes come
/// all the same.
#[test]
fn what_is_kept_for_a_client_counts_as_memory_of_all() {
    let kinds = ["none", "process"].into_iter().flat_map(|how| {
        [(false, false), (true, false), (false, true)]
            .map(|(is_used_up, is_tenants)| (how, is_used_up, is_tenants))
    });
    for (how, is_used_up, is_tenants) in kinds {
        let mut options = vec!["--isolate", how, "--resume-buffer", "64M"];
        options.extend(["--memory-total", "512M"].iter().filter(|_| !is_tenants));
        let served = Served::start_with(&options, is_tenants, "tenant=a memory-total=512M");
        let door = served.door();
        let link = Link { bits_per_s: NonZeroU64::new(128_000_000), ..Link::default() };
        let proxy = Proxy::start(served.worker.address(), link).expect("a proxy");
        let [ready, go, end] = ["ready", "go", "end"].map(|name| served.folder.path().join(name));
        let mut command = served.client(&proxy, "takes_much");
        command.env("HIPR_RESUME_TIMEOUT_MS", "60000").env("READY", &ready).env("GO", &go).env("END", &end);
        let child = command.stdout(Stdio::piped()).spawn().expect("the client runs");
        eventually("the client has begun", || ready.exists());
        let mut greedy = WireClient::open(door);
        let mut other = WireClient::open(door);
        let mut free = || other.call(&op::MemGetInfo {}).expect("information").free_bytes;
        let before = free();
        assert!(before > 64 << 20, "{before} bytes are free");
        let mut size = if is_used_up { 64 << 20 } else { 0 };
        while size >= 4096 {
            while greedy.call(&op::Malloc { size, flags: 0 }).is_ok() {}
            size /= 2;
        }
        fs::write(&go, "").expect("written");
        if !is_used_up {
            eventually("what waits for the client is counted", || free() < before - (MUCH as u64) / 2);
            // A process is lent somewhat in advance.
            let close = before - if how == "none" { 2 << 20 } else { 16 << 20 };
            eventually("what the client has is not", || free() > close);
        }
        fs::write(&end, "").expect("written");
        let said = child.wait_with_output().expect("its output").stdout;
        let said = String::from_utf8_lossy(&said);
        assert!(
            said.contains("all is right"),
            "{how}, {is_used_up}, {is_tenants}: {said}{}",
            served.worker.log()
        );
    }
}

/// Metrics say whose memory it is, also while the client has no connection, and nothing of who has gone.
#[test]
fn metrics_count_memory_for_its_tenant() {
    let memory = "hipr_memory_bytes{tenant=\"lab\"}";
    thread::scope(|scope| {
        for options in WORKERS {
            scope.spawn(move || {
                let options = [options, &["--metrics", "0"]].concat();
                let served = Served::start_with(&options, true, "tenant=lab");
                let metrics = metrics_of(&served.worker);
                let proxy = Proxy::start(served.worker.address(), Link::default()).expect("a proxy");
                let [ready, go, end] = ["ready", "go", "end"].map(|name| served.folder.path().join(name));
                let mut command = served.client(&proxy, "takes_much");
                command
                    .env("HIPR_RESUME_TIMEOUT_MS", "60000")
                    .env("READY", &ready)
                    .env("GO", &go)
                    .env("END", &end);
                let child = command.stdout(Stdio::piped()).spawn().expect("the client runs");
                eventually("the client has begun", || ready.exists());
                wait_for_metric(metrics, memory, MUCH as f64);
                proxy.set_refuses(true);
                proxy.cut_all();
                wait_for_metric(metrics, "hipr_parked_sessions", 1.0);
                wait_for_metric(metrics, memory, MUCH as f64);
                proxy.set_refuses(false);
                [&go, &end].into_iter().for_each(|path| fs::write(path, "").expect("written"));
                let said = text(&child.wait_with_output().expect("its output"));
                assert!(said.contains("all is right"), "{options:?}: {said}{}", served.worker.log());
                wait_for_metric(metrics, "hipr_sessions", 0.0);
                wait_for_metric(metrics, "hipr_sessions_resumed_total", 1.0);
                let (_, text) = ask(metrics, "/metrics");
                assert_eq!(value(&text, memory), None, "{options:?}: {text}");
            });
        }
    });
}

/// A connection with a route that nobody has, or with that of another's session, gets no session.
#[test]
fn a_route_alone_opens_nothing() {
    for options in WORKERS {
        let served = Served::start(options, false);
        let begin = |hellos: &[Hello]| {
            let mut stream = TcpStream::connect(served.worker.address()).expect("connected");
            stream.set_read_timeout(Some(TIMEOUT)).expect("set");
            hellos.iter().for_each(|hello| stream.write_all(&hello.to_bytes()).expect("sent"));
            stream
        };
        let name = |byte| Name::new([byte; 32]);
        let claim = |byte, epoch| Hello {
            claim: Some(Claim { name: name(byte), epoch, taken: 0 }),
            ..Hello::default()
        };
        let route = |route| Hello { route: Some(route), ..Hello::default() };
        let mut first = begin(&[claim(1, 0)]);
        let terms = answer(&mut first).and_then(|answer| answer.terms).expect("terms");
        let has_processes = options.contains(&"process");
        assert_eq!(terms.route != 0, has_processes, "{options:?}");
        if has_processes {
            for (number, byte, epoch) in [(terms.route ^ 1, 1, 1), (terms.route, 2, 1), (terms.route, 2, 0)] {
                let said = answer(&mut begin(&[route(number), claim(byte, epoch)]));
                assert!(
                    said.is_none_or(|said| said.terms.is_none() && said.refusal.is_some()),
                    "{options:?}: session {byte}, connection {epoch}"
                );
            }
            // With its name it goes on.
            let again = answer(&mut begin(&[route(terms.route), claim(1, 1)])).expect("an answer");
            assert_eq!(again.terms, Some(terms), "{options:?}");
        } else {
            assert_eq!(answer(&mut begin(&[route(7), claim(1, 1)])), None, "there are no routes");
        }
    }
}

/// Reads a worker's preamble; `None` if the connection ends before.
fn answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut said = Collected::default();
    while said.wanted().expect("a preamble") > 0 {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        said.push(&byte);
    }
    Some(Answer::from_fields(said.fields()).expect("an answer"))
}

/// The program of the demo, which sends and takes some megabytes.
#[test]
fn a_hip_program_does_not_notice_that_its_link_is_cut() {
    each_worker(|options, is_encrypted| {
        let served = Served::start(options, is_encrypted);
        let link = Link { cuts: Some(Cuts::Within(20)), ..Link::default() };
        let proxy = Proxy::start(served.worker.address(), link).expect("a proxy");
        let scheme = if is_encrypted { "hipr://" } else { "" };
        let address = format!("{scheme}{}", proxy.address());
        let mut command = Command::new(HIPR);
        command.args(["run", "--worker", &address, "--", HIPR, "demo-program"]);
        command.env("HIPR_RESUME_TIMEOUT_MS", "60000").env("XDG_CONFIG_HOME", served.folder.path());
        let output = command.output().expect("hipr runs");
        assert!(
            output.status.success() && text(&output).contains("matmul"),
            "{options:?}: {}",
            text(&output)
        );
        assert!(served.said(WENT_ON) > 0, "{options:?}: {} cuts: {}", proxy.cuts(), served.worker.log());
    });
}
