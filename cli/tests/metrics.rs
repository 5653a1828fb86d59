//! Tests metrics and health of real worker processes (`hipr worker --metrics ADDR:PORT`), with Debian's Prometheus and by hand.

#[path = "metrics/prometheus.rs"]
mod prometheus;

use hipr_proto::op;
use hipr_tests::metrics::{ask, ask_in_time, exchange, metrics_of, value, wait_for_metric as wait_for};
use hipr_tests::{WireClient, WorkerProcess, eventually};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Options of a worker with each loop, and with sessions in one process and in processes of their own.
const WORKERS: [&[&str]; 3] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "auto", "--isolate", "none"],
    &["--isolate", "process"],
];

/// Starts a worker with metrics; returns it with their address.
fn start(options: &[&str], more: &[&str]) -> (WorkerProcess, SocketAddr) {
    let all = [&["--device", "sim", "--metrics", "0"], options, more].concat();
    let worker = WorkerProcess::start_logged(Path::new(HIPR), &all);
    let address = metrics_of(&worker);
    (worker, address)
}

/// Sends requests of several kinds, of which one fails; returns how many.
fn send_some(client: &mut WireClient, size: u64) -> u64 {
    let dst = client.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
    let kind = op::kind::HOST_TO_DEVICE;
    let write = op::Memcpy { dst, src: 0, size, kind, stream: 0 };
    client.call_with(&write, &[], Some(vec![7; size as usize])).result.expect("copied");
    for value in 0..100 {
        client.forget(&op::Memset { dst, value, size, stream: 0 });
    }
    client.call(&op::DeviceSynchronize {}).expect("synchronized");
    assert!(client.call(&op::Free { device_ptr: dst + 1 }).is_err());
    104
}

#[test]
fn what_sessions_do_is_counted() {
    const SIZE: u64 = 1 << 20;
    for options in WORKERS {
        let (worker, at) = start(options, &[]);
        assert!(value(&ask(at, "/metrics").1, "hipr_sessions") == Some(0.0), "{options:?}");
        let mut clients: Vec<_> = (0..3).map(|_| WireClient::open(worker.address())).collect();
        // Each has opened its session with one.
        let sent: u64 = clients.iter_mut().map(|client| 1 + send_some(client, SIZE)).sum();
        // What a session's process has counted is there a little later.
        wait_for(at, "hipr_requests_total{operation=\"MEMSET\"}", 300.0);
        wait_for(at, "hipr_errors_total{error=\"hipErrorInvalidValue\"}", 3.0);
        for (metric, expected) in [
            ("hipr_sessions", 3.0),
            ("hipr_sessions_begun_total", 3.0),
            ("hipr_parked_sessions", 0.0),
            ("hipr_memory_bytes{tenant=\"(none)\"}", 3.0 * SIZE as f64),
            ("hipr_unfinished_requests", 0.0),
            ("hipr_seats_taken", 3.0),
            ("hipr_ready", 1.0),
        ] {
            wait_for(at, metric, expected);
        }
        let text = ask(at, "/metrics").1;
        let received = value(&text, "hipr_received_bytes_total").expect("counted");
        let least = (3 * SIZE + 24 * sent) as f64;
        assert!((least..least + 65536.0).contains(&received), "{options:?}: {received} of {least}");
        assert!(value(&text, "hipr_device_seconds_total") > Some(0.0), "{text}");
        drop(clients);
        wait_for(at, "hipr_sessions", 0.0);
        wait_for(at, "hipr_seats_taken", 0.0);
        let text = ask(at, "/metrics").1;
        for (metric, expected) in [
            ("hipr_sessions_ended_total{reason=\"closed\"}", Some(3.0)),
            ("hipr_requests_total{operation=\"MEMSET\"}", Some(300.0)),
            ("hipr_unfinished_requests", Some(0.0)),
            ("hipr_memory_bytes{tenant=\"(none)\"}", None),
        ] {
            assert_eq!(value(&text, metric), expected, "{options:?}: {metric}\n{text}");
        }
        assert!(value(&text, "hipr_received_bytes_total") >= Some(received), "{options:?}");
    }
}

/// What the process of a session has counted stays when it is killed, and how it ended is told apart.
#[test]
fn a_killed_process_takes_nothing_along() {
    let (worker, at) = start(&["--isolate", "process"], &[]);
    let mut client = WireClient::open(worker.address());
    send_some(&mut client, 4096);
    wait_for(at, "hipr_requests_total{operation=\"MEMSET\"}", 100.0);
    let child = worker.children().first().copied().expect("a process");
    let pid = Pid::from_raw(child.cast_signed()).expect("a process");
    kill_process(pid, Signal::KILL).expect("killed");
    wait_for(at, "hipr_sessions_ended_total{reason=\"process-ended\"}", 1.0);
    wait_for(at, "hipr_seats_taken", 0.0);
    wait_for(at, "hipr_requests_total{operation=\"MEMSET\"}", 100.0);
    wait_for(at, "hipr_unfinished_requests", 0.0);
    wait_for(at, "hipr_sessions", 0.0);
}

#[test]
fn a_worker_without_a_seat_is_not_ready_and_says_why() {
    for options in WORKERS {
        let (worker, at) = start(options, &["--sessions-max", "1"]);
        assert_eq!(ask(at, "/readyz"), (200, "ready\n".into()), "{options:?}");
        let mut client = WireClient::open(worker.address());
        client.call(&op::Ping {}).expect("served");
        eventually("the worker is full", || {
            ask(at, "/readyz") == (503, "full: all seats are taken\n".into())
        });
        assert_eq!(ask(at, "/healthz"), (200, "live\n".into()));
        // Who comes now is sent away, and counted.
        let mut refused = WireClient::connect(worker.address());
        // With processes the first message decides.
        refused.forget(&op::Init {});
        wait_for(at, "hipr_refusals_total{reason=\"no-seat\"}", 1.0);
        wait_for(at, "hipr_ready", 0.0);
        drop(refused);
        client.call(&op::Ping {}).expect("served still");
        drop(client);
        eventually("the worker is ready again", || ask(at, "/readyz").0 == 200);
    }
}

#[test]
fn who_is_refused_is_counted_by_reason() {
    for options in WORKERS {
        let (worker, at) = start(options, &["--connections-per-second", "1"]);
        let connected: Vec<_> =
            (0..4).map(|_| TcpStream::connect(worker.address()).expect("connected")).collect();
        eventually("refusals are counted", || {
            value(&ask(at, "/metrics").1, "hipr_refusals_total{reason=\"connection-rate\"}") >= Some(1.0)
        });
        drop(connected);
    }
}

/// A worker that shuts down says so while its sessions end.
#[test]
fn a_worker_that_shuts_down_is_not_ready() {
    let (mut worker, at) = start(&["--isolate", "process"], &[]);
    let mut client = WireClient::open(worker.address());
    client.call(&op::Ping {}).expect("served");
    // It cannot end until it goes on.
    let child = worker.children().first().copied().expect("a process");
    let pid = Pid::from_raw(child.cast_signed()).expect("a process");
    kill_process(pid, Signal::STOP).expect("stopped");
    worker.terminate();
    eventually("the worker says that it drains", || {
        ask(at, "/readyz") == (503, "draining: the worker shuts down\n".into())
    });
    assert_eq!(ask(at, "/healthz").0, 200);
    kill_process(pid, Signal::CONT).expect("it goes on");
    assert!(worker.wait().success(), "{}", worker.log());
}

#[test]
fn an_address_in_use_is_an_error_at_the_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    for isolation in ["none", "process"] {
        let options = ["worker", "--device", "null", "--listen", "127.0.0.1:0", "--isolate", isolation];
        let output =
            Command::new(HIPR).args(options).args(["--metrics", &address]).output().expect("hipr runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("--metrics"), "{isolation}: {said}");
        assert!(output.stdout.is_empty(), "{isolation}: it says that it listens");
    }
}

/// Whatever strangers send to the port, the answer is clear, and the worker serves its clients and Prometheus.
#[test]
fn each_bad_request_has_a_clear_answer() {
    let (worker, at) = start(&["--isolate", "none"], &[]);
    let mut client = WireClient::open(worker.address());
    let header = |name: &str, len: usize| format!("{name}: {}\r\n", "x".repeat(len));
    let long = format!("GET /metrics HTTP/1.1\r\n{}", header("a", 9000));
    let endless = format!("GET /metrics HTTP/1.1\r\n{}", header("a", 4 << 20));
    let many: String = (0..200).map(|number| header(&format!("h{number}"), 1)).collect();
    let many = format!("GET /metrics HTTP/1.1\r\n{many}\r\n");
    let posted = format!("POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n{}", "x".repeat(100_000));
    let cases: &[(&str, &[u8], u16)] = &[
        ("a request", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        ("an old one", b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        ("with a query", b"GET /healthz?verbose HTTP/1.1\r\n\r\n", 200),
        ("two", b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", 200),
        ("another path", b"GET / HTTP/1.1\r\n\r\n", 404),
        ("a path out of here", b"GET /../../etc/passwd HTTP/1.1\r\n\r\n", 404),
        ("a proxy's", b"GET http://example.org/metrics HTTP/1.1\r\n\r\n", 404),
        ("POST", posted.as_bytes(), 405),
        ("HEAD", b"HEAD /metrics HTTP/1.1\r\n\r\n", 405),
        ("CONNECT", b"CONNECT example.org:443 HTTP/1.1\r\n\r\n", 405),
        ("no HTTP", b"\0\x01\x02\x03\x04\x05\x06\x07", 400),
        ("TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        ("no version", b"GET /metrics\r\n\r\n", 400),
        ("a bad header", b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", 400),
        ("a long head", long.as_bytes(), 431),
        ("a head without an end", endless.as_bytes(), 431),
        ("many headers", many.as_bytes(), 431),
        ("a head that does not go on", b"GET /metrics HTTP/1.1\r\nHost", 408),
        ("nothing", b"", 408),
    ];
    for (name, sent, status) in cases {
        let (answered, text) = exchange(at, sent);
        assert_eq!(answered, *status, "{name}: {text}");
        assert!(!text.is_empty(), "{name} is answered without a word");
        client.call(&op::Ping {}).unwrap_or_else(|why| panic!("after {name}: {why}"));
    }
    assert_eq!(ask_in_time(at, "GET /healthz HTTP/1.1\r\n\r\n".bytes().map(|byte| vec![byte])), 200);
}

/// Connections that ask nothing take no more than there is for them, and do not keep others from asking.
#[test]
fn many_connections_keep_nobody_out() {
    for options in WORKERS {
        let (worker, at) = start(options, &[]);
        let mut client = WireClient::open(worker.address());
        client.call(&op::Ping {}).expect("served");
        let before = worker.open_files();
        let mut idle: Vec<_> = (0..200).map(|_| TcpStream::connect(at).expect("connected")).collect();
        assert_eq!(ask(at, "/readyz").0, 200, "{options:?}");
        let more = worker.open_files().saturating_sub(before);
        assert!(more <= 16, "{options:?}: {more} descriptors");
        let mut text = String::new();
        idle.remove(0).read_to_string(&mut text).expect("an answer");
        assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("too many connections"), "{text}");
        client.call(&op::Ping {}).expect("served");
    }
}
