//! Copies between workers: which way their bytes go, what a cut costs, and what a capability is good for.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Duration;

use hipr_client::{CallError, Capability, Connection};
use hipr_proto::{Features, HipError, HipResult, op};
use hipr_tests::metrics::{ask, metrics_of, value};
use hipr_tests::{Cuts, Link, Proxy, WireClient, WorkerProcess, eventually};
use hipr_tls::{ClientIdentity, Fingerprint, SecretKey};

use super::workers::{Keys, over_tcp, start};
use super::{compiled, hipr_run, pass, text};

/// Size of the largest copy of the program, in MiB.
const MIB: u64 = 3;
/// What the program's connections carry at most where no copied bytes are among it.
const REQUESTS_MAX_BYTES: u64 = 1 << 20;

/// Runs the program without and with optimization; passes the bytes that its connections have carried to `check`.
fn run(what: &str, workers: &str, change: impl Fn(&mut Command), check: impl Fn(u64)) {
    let Some(programs) = compiled("direct_copies") else { return };
    for program in programs {
        let folder = tempfile::tempdir().expect("a folder");
        let stats = folder.path().join("stats");
        let mut command = hipr_run(&["--worker", workers]);
        command.env("HIPR_STATS_FILE", &stats);
        change(&mut command);
        pass(what, &mut command, &program, &MIB.to_string());
        let stats = fs::read_to_string(&stats).expect("the program counts");
        let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
        let count = |name: &str| stats[name].as_u64().expect("a number");
        check(count("bytes_sent") + count("bytes_received"));
    }
}

/// Returns how many bytes a worker has from others, as its metrics say.
fn peer_bytes(worker: &WorkerProcess) -> f64 {
    let text = ask(metrics_of(worker), "/metrics").1;
    value(&text, "hipr_peer_bytes_total").expect("it is counted")
}

fn pair(first: &WorkerProcess, second: &WorkerProcess) -> String {
    format!("{},{}", first.listens_at(), second.listens_at())
}

#[test]
fn bytes_go_from_worker_to_worker_and_none_through_the_program() {
    let few = |what: &'static str| {
        move |bytes| assert!(bytes < REQUESTS_MAX_BYTES, "{what}: {bytes} bytes went through the program")
    };
    for io in ["mio", "auto"] {
        let workers = [0, 1].map(|_| over_tcp(&["--io", io, "--metrics", "0"]));
        run("tcp", &pair(&workers[0], &workers[1]), |_| (), few("tcp"));
        // The large copy of both programs is one to the second worker.
        if compiled("direct_copies").is_some() {
            assert!(peer_bytes(&workers[1]) >= ((2 * MIB) << 20) as f64, "{io}");
        }
    }
    let threads = [0, 1].map(|_| over_tcp(&["--dispatch", "thread", "--peers", "127.0.0.*"]));
    run("threads", &pair(&threads[0], &threads[1]), |_| (), few("threads"));
    let keys = Keys::new();
    let secured = ["a", "b"].map(|name| keys.worker(name, &["--memory-total", "512M"]));
    let all = format!("hipr://{},hipr://{}", secured[0].address(), secured[1].address());
    run("keys", &all, |command| keys.use_in(command), few("keys"));
    let resumed = |command: &mut Command| {
        keys.use_in(command);
        command.env("HIPR_RESUME_TIMEOUT_MS", "60000");
    };
    run("keys, outliving links", &all, resumed, few("keys, outliving links"));
    let mixed = format!("hipr://{},{}", secured[0].address(), threads[0].listens_at());
    run("one with keys", &mixed, |command| keys.use_in(command), few("one with keys"));
}

#[test]
fn bytes_go_through_the_program_where_workers_do_not_reach_each_other() {
    let sockets = tempfile::tempdir().expect("a folder");
    let socket = format!("unix:{}", sockets.path().join("a").display());
    let open = over_tcp(&["--metrics", "0"]);
    let through = |what: &str, workers: &str| {
        run(
            what,
            workers,
            |_| (),
            |bytes| {
                assert!(bytes > MIB << 20, "{what}: {bytes} bytes went through the program");
            },
        );
    };
    for (what, other) in [
        ("a socket of this machine", start(&["--listen", &socket])),
        ("a worker that may reach nobody", over_tcp(&["--peers", "none"])),
        ("processes of their own", over_tcp(&["--isolate", "process"])),
    ] {
        through(what, &pair(&open, &other));
        through(what, &pair(&other, &open));
    }
    assert!(peer_bytes(&open).abs() < 1.0, "it has asked no worker");
    // The large copy is one to the second worker.
    through("a worker that may reach others", &pair(&open, &over_tcp(&["--peers", "gpu*.example,10.*"])));
    // It is said once for each direction, not for each copy.
    let Some([_, program]) = compiled("direct_copies") else { return };
    let other = over_tcp(&["--peers", "none"]);
    let output = hipr_run(&["--worker", &pair(&open, &other)])
        .env("HIPR_LOG", "info")
        .arg(program)
        .arg("1")
        .output()
        .expect("hipr runs");
    let said = text(&output);
    assert_eq!(said.matches("copies go through this process").count(), 2, "{said}");
}

/// The proxy is in front of one worker for the program and for the other worker, and cuts whatever passes.
#[test]
fn copies_are_right_wherever_links_between_workers_are_cut() {
    let workers = [0, 1].map(|_| over_tcp(&[]));
    for most in [18, 22] {
        let link = Link { cuts: Some(Cuts::Within(most)), ..Link::default() };
        let proxies = workers.each_ref().map(|worker| Proxy::start(worker.address(), link).expect("a port"));
        let all = proxies.each_ref().map(|proxy| proxy.address().to_string()).join(",");
        let resumed = |command: &mut Command| {
            command.env("HIPR_RESUME_TIMEOUT_MS", "60000");
        };
        run(&format!("cut within 2^{most} bytes"), &all, resumed, |_| ());
        assert!(proxies.iter().any(|proxy| proxy.cuts() > 0), "nothing was cut within 2^{most} bytes");
    }
}

/// A session with the feature, and memory that has a pattern.
struct Session {
    wire: WireClient,
    memory: u64,
}

const LEN: u64 = 5 << 20;

fn byte_at(at: usize) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 11) as u8
}

impl Session {
    fn open(worker: &WorkerProcess) -> Self {
        let mut wire = WireClient::open(worker.address());
        let features = Features::CAPABILITIES.bits();
        assert_eq!(wire.call(&op::Offer { features, part: 0 }), Ok(op::OfferReply { features }));
        let memory = wire.call(&op::Malloc { size: LEN, flags: 0 }).expect("memory").device_ptr;
        let bytes: Vec<_> = (0..LEN as usize).map(byte_at).collect();
        let kind = op::kind::HOST_TO_DEVICE;
        let copy = op::Memcpy { dst: memory, src: 0, size: LEN, kind, stream: 0 };
        wire.call_with(&copy, &[], Some(bytes)).result.expect("a copy");
        Self { wire, memory }
    }

    fn capability(&mut self, token: u8, change: impl Fn(&mut op::CapabilityGive)) -> HipResult<()> {
        let mut capability = op::CapabilityGive {
            token: [token; 32],
            address: self.memory,
            pitch: LEN,
            slice: LEN,
            width: LEN,
            height: 1,
            depth: 1,
            stream: 0,
            timeout_ms: 60_000,
            reserved: 0,
        };
        change(&mut capability);
        self.wire.call(&capability)
    }

    fn read(&mut self, token: u8, offset: u64, length: u64) -> HipResult<Vec<u8>> {
        let read = self.wire.call_with(&op::CapabilityRead { token: [token; 32], offset, length }, &[], None);
        read.result.map(|()| read.inline)
    }
}

#[test]
fn a_capability_is_good_for_one_reader_one_time_and_those_bytes() {
    let worker = over_tcp(&[]);
    let (mut owner, mut reader, mut thief) =
        (Session::open(&worker), Session::open(&worker), Session::open(&worker));
    let expected = |range: std::ops::Range<usize>| -> HipResult<Vec<u8>> { Ok(range.map(byte_at).collect()) };
    let refused = Err(HipError::INVALID_HANDLE);

    owner.capability(1, |_| ()).expect("a capability");
    assert_eq!(thief.read(2, 0, 1), refused, "a guess");
    assert_eq!(owner.read(1, 0, 1), refused, "it is for others");
    assert_eq!(reader.read(1, 0, 4 << 20), expected(0..4 << 20));
    assert_eq!(thief.read(1, 4 << 20, 1), refused, "stolen");
    for (offset, length) in
        [(0, 1), (1, 1), (4 << 20, 2 << 20), (4 << 20, 0), (u64::MAX, 2), (4 << 20, u64::MAX)]
    {
        // A reply of so many bytes is none that a client takes.
        if length <= op::CAPABILITY_PIECE_MAX_BYTES {
            assert_eq!(reader.read(1, offset, length), Err(HipError::INVALID_VALUE), "{offset}, {length}");
        }
    }
    assert_eq!(reader.read(1, 4 << 20, 1 << 20), expected(4 << 20..5 << 20));
    assert_eq!(reader.read(1, LEN, 0), Ok(Vec::new()), "the end");
    assert_eq!(reader.read(1, 0, 1), refused, "replayed by the same");
    assert_eq!(thief.read(1, 0, 1), refused, "replayed by another");

    // Rows and slices, and a reader that goes before the end.
    let shape = |capability: &mut op::CapabilityGive| {
        (capability.address, capability.pitch, capability.slice) = (capability.address + 3, 10, 100);
        (capability.width, capability.height, capability.depth) = (4, 3, 2);
    };
    owner.capability(3, shape).expect("a capability");
    let rows: Vec<_> =
        (0..6).flat_map(|row| (0..4).map(move |x| byte_at(3 + row / 3 * 100 + row % 3 * 10 + x))).collect();
    assert_eq!(reader.read(3, 0, 11), Ok(rows[..11].to_vec()));
    assert_eq!(reader.read(3, 11, 13), Ok(rows[11..].to_vec()));
    owner.capability(4, |_| ()).expect("a capability");
    assert_eq!(reader.read(4, 0, 1), expected(0..1));
    drop(reader);
    let mut reader = Session::open(&worker);
    eventually("the capability ends with its reader", || {
        reader.read(4, 1, 1) == refused && reader.read(4, 0, 1) == refused
    });

    // Memory that is not there, and the other numbers of a request.
    let invalid = HipError::INVALID_VALUE;
    type Change = fn(&mut op::CapabilityGive);
    let wrong: [(Change, HipError); 11] = [
        (|p| p.width += 1, invalid),
        (|p| p.address += 1, invalid),
        (|p| p.address = 0, invalid),
        (|p| p.width = 0, invalid),
        (|p| p.depth = 0, invalid),
        (|p| p.height = u64::MAX, invalid),
        (|p| (p.height, p.pitch) = (2, LEN - 1), HipError::INVALID_PITCH_VALUE),
        (
            |p| (p.width, p.height, p.depth, p.pitch, p.slice) = (4, 4, 2, 10, 39),
            HipError::INVALID_PITCH_VALUE,
        ),
        (|p| (p.width, p.height, p.pitch) = (u64::MAX, 2, u64::MAX), invalid),
        (|p| p.stream = 0xdead_0000, HipError::INVALID_HANDLE),
        (|p| p.timeout_ms = 60_001, invalid),
    ];
    for (number, (change, error)) in wrong.into_iter().enumerate() {
        assert_eq!(owner.capability(9, change), Err(error), "case {number}");
    }
    assert_eq!(reader.read(9, 0, 1), refused, "nothing of that is a capability");

    // Each end of a capability.
    owner.capability(5, |capability| capability.timeout_ms = 1).expect("a capability");
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(reader.read(5, 0, 1), refused, "its time is over");
    owner.capability(6, |_| ()).expect("a capability");
    assert_eq!(owner.capability(6, |_| ()), Err(invalid), "the same token");
    assert_eq!(reader.read(6, 0, 1), expected(0..1));
    owner.wire.call(&op::Free { device_ptr: owner.memory }).expect("the end of the memory");
    assert_eq!(reader.read(6, 1, 1), Err(HipError::CONTEXT_IS_DESTROYED), "the memory is gone");
    let mut owner = Session::open(&worker);
    for token in 20..36 {
        owner.capability(token, |_| ()).expect("a capability");
    }
    assert_eq!(owner.capability(36, |_| ()), Err(HipError::NOT_READY), "it has as many as it may have");
    assert_eq!(reader.read(20, 0, 1), expected(0..1));
    drop(owner);
    eventually("the owner is gone", || reader.read(21, 0, 1) == refused);
    assert_eq!(reader.read(20, 1, 1), refused);

    // The session of a reader is as good as any other, and one without the feature has none of it.
    assert_eq!(reader.wire.call(&op::Free { device_ptr: reader.memory }), Ok(()));
    let mut plain = WireClient::open(worker.address());
    let read = op::CapabilityRead { token: [20; 32], offset: 0, length: 1 };
    assert_eq!(plain.call(&read), Err(HipError::NOT_SUPPORTED));
}

/// The read waits for the work of the stream, the owner goes on meanwhile, and what fails there is the reader's to hear.
#[test]
fn a_copy_from_nowhere_says_so_and_copies_nothing() {
    let worker = over_tcp(&[]);
    let mut session = Session::open(&worker);
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = nobody.local_addr().expect("an address").to_string();
    let other = over_tcp(&[]).address().to_string();
    for address in [
        "",
        "nonsense",
        "127.0.0.1",
        "127.0.0.1:1",
        &other,
        "[::1]:0",
        &silent,
        &worker.address().to_string(),
    ] {
        let copy = op::CapabilityCopy {
            token: [1; 32],
            worker: [0; 32],
            dst: session.memory,
            pitch: LEN,
            slice: LEN,
            width: LEN,
            height: 1,
            depth: 1,
            stream: 0,
            address_length: address.len() as u32,
            reserved: 0,
        };
        let refused = session.wire.call_with(&copy, address.as_bytes(), None).result;
        assert_eq!(refused, Err(HipError::PEER_ACCESS_UNSUPPORTED), "{address}");
        for (change, error) in [
            (op::CapabilityCopy { width: LEN + 1, ..copy }, HipError::INVALID_VALUE),
            (op::CapabilityCopy { stream: 0xdead_0000, ..copy }, HipError::INVALID_HANDLE),
        ] {
            assert_eq!(session.wire.call_with(&change, address.as_bytes(), None).result, Err(error));
        }
    }
    let long = vec![b'a'; 257];
    let copy = op::CapabilityCopy {
        dst: session.memory,
        width: 1,
        height: 1,
        depth: 1,
        address_length: 257,
        ..hipr_proto::Wire::ZERO
    };
    assert_eq!(session.wire.call_with(&copy, &long, None).result, Err(HipError::INVALID_VALUE));
    let kind = op::kind::DEVICE_TO_HOST;
    let copy = op::Memcpy { dst: 0, src: session.memory, size: LEN, kind, stream: 0 };
    let bytes = session.wire.call_with(&copy, &[], None).inline;
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == byte_at(at)), "the memory has changed");
}

/// Who comes with a capability needs no authorized key, and may do nothing else.
#[test]
fn who_was_let_in_by_a_capability_reads_what_it_is_for_and_nothing_else() {
    let keys = Keys::new();
    let worker = keys.worker("a", &[]);
    let stranger = ClientIdentity::new(&SecretKey::generate().expect("a key")).expect("an identity");
    let host_and_port = worker.address().to_string();
    let there = keys.fingerprint("a");
    let capability = |token: u8, worker: Option<Fingerprint>| Capability {
        host_and_port: &host_and_port,
        worker,
        token: [token; 32],
        len_bytes: 100,
    };
    let enter = |capability: &Capability<'_>| {
        Connection::for_capability(capability, &stranger, Duration::from_secs(10))
    };
    let refusal = |capability: &Capability<'_>| enter(capability).expect_err("nobody is let in").reason;
    assert!(refusal(&capability(1, Some(there))).contains("there is no such capability"));

    // A user of the worker gives a capability.
    let user = ClientIdentity::new(&keys.user()).expect("an identity");
    let time = Duration::from_secs(10);
    let owner = Connection::connect_as(&host_and_port, Some(there), &user, None, time).expect("a session");
    let memory = owner.ask(&op::Malloc { size: 100, flags: 0 }).expect("memory").device_ptr;
    owner.ask(&op::Memset { dst: memory, value: 7, size: 100, stream: 0 }).expect("a fill");
    let give = |owner: &Connection, address: u64, token: u8| {
        let request = op::CapabilityGive {
            token: [token; 32],
            address,
            width: 100,
            height: 1,
            depth: 1,
            timeout_ms: 60_000,
            ..hipr_proto::Wire::ZERO
        };
        owner.ask(&request).expect("a capability");
    };
    give(&owner, memory, 1);
    // Another worker than the expected one is sent no token.
    let wrong = SecretKey::generate().expect("a key").public().fingerprint();
    assert!(refusal(&capability(1, Some(wrong))).contains("key"));
    assert!(!refusal(&capability(1, None)).is_empty(), "it speaks nothing but TLS");
    assert!(refusal(&capability(2, Some(there))).contains("there is no such capability"), "a guess");

    let connection = enter(&capability(1, Some(there))).expect("the capability lets it in");
    let unsupported = |result: Result<(), CallError>| {
        assert_eq!(result, Err(CallError::Hip(HipError::NOT_SUPPORTED)));
    };
    unsupported(connection.ask(&op::GetDeviceCount {}).map(drop));
    unsupported(connection.ask(&op::Malloc { size: 1, flags: 0 }).map(drop));
    let kind = op::kind::DEVICE_TO_HOST;
    let copy = op::Memcpy { dst: 0, src: memory, size: 1, kind, stream: 0 };
    unsupported(connection.read(&copy, Default::default(), &mut [0]).map(drop));
    let mut read = Vec::new();
    let all = connection.read_capability(&capability(1, Some(there)), &mut |piece| {
        read.extend_from_slice(&piece);
        Some(piece)
    });
    assert_eq!((all, read), (Ok(()), vec![7; 100]));
    assert!(refusal(&capability(1, Some(there))).contains("there is no such capability"), "it was used");

    // One that is in use lets nobody else in, and goes with its owner.
    give(&owner, memory, 3);
    let connection = enter(&capability(3, Some(there))).expect("the capability lets it in");
    let mut byte = [0];
    let next = op::CapabilityRead { token: [3; 32], offset: 0, length: 1 };
    connection.read(&next, Default::default(), &mut byte).expect("a byte");
    assert!(refusal(&capability(3, Some(there))).contains("there is no such capability"));
    drop(owner);
    let next = op::CapabilityRead { token: [3; 32], offset: 1, length: 1 };
    eventually("the owner is gone", || connection.read(&next, Default::default(), &mut byte).is_err());

    // A reader is one more session of the tenant.
    keys.authorize("sessions-max=1");
    let owner = Connection::connect_as(&host_and_port, Some(there), &user, None, time).expect("a session");
    let memory = owner.ask(&op::Malloc { size: 100, flags: 0 }).expect("memory").device_ptr;
    give(&owner, memory, 4);
    assert!(refusal(&capability(4, Some(there))).contains("sessions-max"));
}

// ---- a model of capabilities -----------------------------------------------------------------------------------------

const SESSIONS: usize = 4;
const TOKENS: u64 = 8;
const BUFFER_BYTES: u64 = 4096;

/// A capability, as the model has it.
struct Given {
    owner: usize,
    /// The memory's number, which no other memory has, and the range of it.
    memory: u64,
    start: u64,
    len: u64,
    is_late: bool,
    reader: Option<usize>,
    read: u64,
}

/// A session with memory that comes and goes: its number and address, if it is there.
struct Owner {
    wire: WireClient,
    memory: Option<(u64, u64)>,
}

/// Capabilities of several sessions for each other's memory: given, used by the right and the wrong one, late, used up, and without the
/// memory or the session that they need.
struct Model {
    worker: WorkerProcess,
    random: u64,
    sessions: Vec<Owner>,
    given: BTreeMap<u8, Given>,
    memories: u64,
}

fn pattern(memory: u64, at: u64) -> u8 {
    (memory.wrapping_mul(0x9e37_79b9).wrapping_add(at.wrapping_mul(2_654_435_761)) >> 7) as u8
}

impl Model {
    fn new(seed: u64) -> Self {
        let (given, memories) = Default::default();
        let mut model = Self { worker: over_tcp(&[]), random: seed, sessions: Vec::new(), given, memories };
        model.sessions = (0..SESSIONS).map(|_| model.open()).collect();
        model
    }

    fn draw(&mut self, below: u64) -> u64 {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn open(&self) -> Owner {
        let mut wire = WireClient::open(self.worker.address());
        let features = Features::CAPABILITIES.bits();
        assert!(wire.call(&op::Offer { features, part: 0 }).is_ok());
        Owner { wire, memory: None }
    }

    fn allocate(&mut self, session: usize) {
        self.memories += 1;
        let (memory, size) = (self.memories, BUFFER_BYTES);
        let Some(owner) = self.sessions.get_mut(session) else { return };
        let address = owner.wire.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
        let bytes = (0..size).map(|at| pattern(memory, at)).collect();
        let copy = op::Memcpy { dst: address, src: 0, size, kind: op::kind::HOST_TO_DEVICE, stream: 0 };
        owner.wire.call_with(&copy, &[], Some(bytes)).result.expect("a copy");
        owner.memory = Some((memory, address));
    }

    fn give(&mut self, owner: usize) {
        let Some((memory, address)) = self.sessions[owner].memory else { return };
        let token = self.draw(TOKENS) as u8;
        let start = self.draw(BUFFER_BYTES);
        let len = 1 + self.draw(BUFFER_BYTES - start);
        let is_late = self.draw(8) == 0;
        let request = op::CapabilityGive {
            token: [token; 32],
            address: address + start,
            pitch: len,
            slice: len,
            width: len,
            height: 1,
            depth: 1,
            stream: 0,
            timeout_ms: if is_late { 0 } else { 60_000 },
            reserved: 0,
        };
        // Those whose time is over are nothing any more.
        self.given.retain(|_, given| given.reader.is_some() || !given.is_late);
        let expected = if self.given.contains_key(&token) { Err(HipError::INVALID_VALUE) } else { Ok(()) };
        assert_eq!(self.sessions[owner].wire.call(&request), expected);
        if expected.is_ok() {
            self.given.insert(token, Given { owner, memory, start, len, is_late, reader: None, read: 0 });
        }
    }

    fn read(&mut self, reader: usize) {
        let token = self.draw(TOKENS) as u8;
        let (any_offset, any_len, choice) = (self.draw(BUFFER_BYTES), self.draw(BUFFER_BYTES), self.draw(8));
        let next = self.given.get(&token).map_or((0, 0), |given| (given.read, given.len - given.read));
        let (offset, length) = match choice {
            0 => (any_offset, any_len),
            1 => (next.0, any_len),
            2 => (next.0, 0),
            3..=5 => next,
            _ => (next.0, any_len.min(next.1)),
        };
        let expected = self.expect(token, reader, offset, length);
        let request = op::CapabilityRead { token: [token; 32], offset, length };
        let read = self.sessions[reader].wire.call_with(&request, &[], None);
        let found = read.result.map(|()| read.inline);
        assert_eq!(found, expected, "token {token}, reader {reader}, offset {offset}, length {length}");
    }

    fn expect(&mut self, token: u8, reader: usize, offset: u64, length: u64) -> HipResult<Vec<u8>> {
        let given = self.given.get_mut(&token).ok_or(HipError::INVALID_HANDLE)?;
        let may = match given.reader {
            None => given.owner != reader && !given.is_late,
            Some(of) => of == reader,
        };
        if !may {
            return Err(HipError::INVALID_HANDLE);
        }
        given.reader = Some(reader);
        let is_end = length == 0 && offset == given.len;
        if offset != given.read || offset + length > given.len || (length == 0 && !is_end) {
            return Err(HipError::INVALID_VALUE);
        }
        given.read += length;
        let bytes = (offset..offset + length).map(|at| pattern(given.memory, given.start + at)).collect();
        let is_there = self.sessions[given.owner].memory.is_some_and(|(memory, _)| memory == given.memory);
        if is_end {
            self.given.remove(&token);
        } else if !is_there {
            return Err(HipError::CONTEXT_IS_DESTROYED);
        }
        Ok(bytes)
    }

    fn step(&mut self) {
        let session = self.draw(SESSIONS as u64) as usize;
        match self.draw(16) {
            0..=3 => self.give(session),
            4 => match self.sessions[session].memory.take() {
                Some((_, device_ptr)) => {
                    self.sessions[session].wire.call(&op::Free { device_ptr }).expect("a free")
                }
                None => self.allocate(session),
            },
            5 if self.draw(8) == 0 => {
                self.sessions[session].wire.call(&op::Shutdown {}).expect("the end of a session");
                self.given.retain(|_, given| given.owner != session && given.reader != Some(session));
                self.sessions[session] = self.open();
            }
            5 => {
                if self.sessions[session].memory.is_none() {
                    self.allocate(session);
                }
            }
            _ => self.read(session),
        }
    }
}

#[test]
fn what_capabilities_allow_is_as_a_model_says() {
    for seed in 1..=4_u64 {
        let mut model = Model::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        (0..3000).for_each(|_| model.step());
    }
}
