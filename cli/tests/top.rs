//! `hipr top` with real workers: as text, and in a terminal.

use hipr_proto::op;
use hipr_tests::metrics::{ask, metrics_of, wait_for_metric};
use hipr_tests::toolchain::installed;
use hipr_tests::{WireClient, WorkerProcess, eventually};
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SIZE: u64 = 256 << 20;

fn start(isolation: &str) -> (WorkerProcess, SocketAddr) {
    let options = ["--device", "sim", "--metrics", "0", "--isolate", isolation];
    let worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
    let address = metrics_of(&worker);
    (worker, address)
}

/// A session with memory, and a stream with work for longer than a test takes.
fn busy(worker: &WorkerProcess) -> WireClient {
    let mut client = WireClient::open(worker.address());
    let dst = client.call(&op::Malloc { size: SIZE, flags: 0 }).expect("memory").device_ptr;
    let stream = client.call(&op::StreamCreate { flags: 1, priority: 0 }).expect("a stream").stream;
    for value in 0..2000 {
        client.forget(&op::MemsetAsync(op::Memset { dst, value, size: SIZE, stream }));
    }
    client.call(&op::GetDevice {}).expect("an answer");
    client
}

fn top(options: &[&str]) -> Output {
    Command::new(HIPR).arg("top").args(options).output().expect("hipr runs")
}

#[test]
fn sessions_and_their_work_are_shown() {
    for isolation in ["none", "process"] {
        let (worker, at) = start(isolation);
        let mut idle = WireClient::open(worker.address());
        idle.call(&op::Ping {}).expect("an answer");
        let _busy = busy(&worker);
        // What a session's process has counted is there a little later.
        wait_for_metric(at, "hipr_busy_streams", 1.0);
        let page: Value = serde_json::from_str(&ask(at, "/sessions").1).expect("JSON");
        let sessions = page["sessions"].as_array().expect("sessions");
        assert_eq!(sessions.len(), 2, "{isolation}: {page}");
        let number = |session: usize, name: &str| sessions[session][name].as_u64().expect("a number");
        assert_eq!([0, 1].map(|session| number(session, "number")), [1, 2]);
        assert_eq!([0, 1].map(|session| number(session, "memory_bytes")), [0, SIZE]);
        assert_eq!([0, 1].map(|session| number(session, "busy_streams")), [0, 1]);
        assert!(number(1, "queued_commands") > 1000 && number(1, "requests") == 2004, "{isolation}: {page}");
        assert!(
            sessions[0]["tenant"].is_null()
                && sessions[0]["from"].as_str().is_some_and(|from| from.contains("127.0.0.1"))
        );

        let shown = top(&["--worker", &at.to_string(), "--once", "--interval", "0.6"]);
        assert!(shown.status.success(), "{shown:?}");
        let text = String::from_utf8_lossy(&shown.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let [head, columns, first, second] = lines[..] else { panic!("{isolation}: {text}") };
        assert!(head.starts_with("2 of ") && head.ends_with("268 MB of memory, 1 streams at work"), "{head}");
        assert!(
            columns.starts_with("SESSION") && first.starts_with("2 ") && second.starts_with("1 "),
            "{text}"
        );
        assert!(first.contains("268 MB") && second.contains(" 0 B "), "{text}");
    }
}

#[test]
fn what_cannot_be_shown_is_said() {
    let said = |options: &[&str]| {
        let output = top(options);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, why) = said(&["--worker", "127.0.0.1:1", "--once"]);
    assert!(code == Some(1) && why.contains("cannot ask 127.0.0.1:1 for its sessions"), "{why}");
    // A port without the machine is this machine's.
    assert!(said(&["--worker", "1", "--once"]).1.contains("127.0.0.1:1"));
    let (worker, at) = start("none");
    // The worker's own port, which does not speak HTTP.
    let port = worker.address().to_string();
    let (code, why) = said(&["--worker", &port, "--once"]);
    assert!(code == Some(1) && why.contains("cannot ask"), "{why}");
    let (code, why) = said(&["--worker", &at.to_string()]);
    assert!(code == Some(1) && why.contains("needs a terminal"), "{why}");
    assert_eq!(said(&["--worker", "1", "--interval", "0"]).0, Some(2));
    assert_eq!(said(&[]).0, Some(2));
    // A server of something else.
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address").to_string();
    let answering = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = other.accept().expect("a connection");
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").expect("it is sent");
    });
    let (code, why) = said(&["--worker", &address, "--once"]);
    assert!(code == Some(1) && why.contains("it answers something else"), "{why}");
    answering.join().expect("it has answered");
}

/// A terminal of tmux; ends with it.
struct Terminal(String);

impl Terminal {
    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.0]).args(args).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn shows(&self, text: &str) -> bool {
        self.tmux(&["capture-pane", "-p"]).contains(text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
#[ignore = "needs tmux"]
fn a_terminal_shows_sessions_come_work_and_go() {
    if installed("tmux", "hipr top was not tried in a terminal").is_none() {
        return;
    }
    let (worker, at) = start("none");
    let mut idle = WireClient::open(worker.address());
    idle.call(&op::Ping {}).expect("an answer");
    let terminal = Terminal(format!("hipr-top-{}", std::process::id()));
    let command = format!("{HIPR} top --worker {at} --interval 0.2; echo ended with $?; sleep 60");
    terminal.tmux(&["new-session", "-d", "-x", "130", "-y", "20", &command]);
    eventually("one session", || terminal.shows("1 of ") && terminal.shows("SESSION"));
    let client = busy(&worker);
    eventually("a session with work", || terminal.shows("2 of ") && terminal.shows("1 streams at work"));
    let first = || {
        let screen = terminal.tmux(&["capture-pane", "-p"]);
        let mut lines = screen.lines().skip_while(|line| !line.starts_with("SESSION"));
        lines.nth(1).and_then(|line| line.split_whitespace().next().map(str::to_owned))
    };
    eventually("the one with work first", || first().as_deref() == Some("2"));
    terminal.tmux(&["send-keys", "n"]);
    eventually("by number", || first().as_deref() == Some("1"));
    terminal.tmux(&["resize-window", "-x", "60", "-y", "8"]);
    eventually("a small terminal", || terminal.shows("QUEUE") && !terminal.shows("QUEUED"));
    terminal.tmux(&["resize-window", "-x", "130", "-y", "20"]);
    drop(client);
    eventually("one session again", || terminal.shows("1 of "));
    drop((idle, worker));
    eventually("the worker has gone", || terminal.shows("cannot ask"));
    terminal.tmux(&["send-keys", "q"]);
    eventually("it ends", || terminal.shows("ended with 0"));
}
