//! Tests the record of sessions (`hipr worker --audit FILE`) with real worker processes.

use hipr_proto::op;
use hipr_tests::{WireClient, WorkerProcess, eventually};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Map, Value};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Options of a worker with each loop, and with sessions in one process and in processes of their own.
const WORKERS: [&[&str]; 3] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "auto", "--isolate", "none"],
    &["--isolate", "process"],
];

type Record = Map<String, Value>;

/// A worker that records its sessions.
struct Recorded {
    worker: WorkerProcess,
    folder: TempDir,
}

fn file(folder: &TempDir) -> PathBuf {
    folder.path().join("records")
}

impl Recorded {
    fn start(options: &[&str]) -> Self {
        Self::start_command(Command::new(HIPR), tempfile::tempdir().expect("a folder"), options)
    }

    fn start_command(command: Command, folder: TempDir, options: &[&str]) -> Self {
        let path = file(&folder);
        let all = [&["--device", "sim", "--audit", path.to_str().expect("text")], options].concat();
        Self { worker: WorkerProcess::start_command(command, &all), folder }
    }

    fn records(&self) -> Vec<Record> {
        records(&file(&self.folder))
    }

    /// Waits for so many records of an event, and returns them.
    fn wait_for(&self, event: &str, count: usize) -> Vec<Record> {
        let of_event = || {
            let mut records = self.records();
            records.retain(|record| record["event"] == event);
            records
        };
        eventually(&format!("{count} records of {event}"), || of_event().len() >= count);
        let records = of_event();
        assert_eq!(records.len(), count, "{records:?}");
        records
    }
}

/// Reads the lines that have been written whole.
fn records(path: &Path) -> Vec<Record> {
    let text = fs::read_to_string(path).expect("text");
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{line}: {why}")))
        .collect()
}

fn number(record: &Record, name: &str) -> u64 {
    record.get(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("no number {name} in {record:?}"))
}

fn check_time(record: &Record) {
    let time = record["time"].as_str().expect("text");
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
}

#[test]
fn begin_and_end_say_who_and_how_much() {
    for options in WORKERS {
        let recorded = Recorded::start(options);
        let mode = fs::metadata(file(&recorded.folder)).expect("made at start").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = WireClient::open(recorded.worker.address());
        let peer = client.stream().local_addr().expect("an address").to_string();
        let size = 3 << 20;
        let dst = client.call(&op::Malloc { size, flags: 0 }).expect("memory").device_ptr;
        let kind = op::kind::HOST_TO_DEVICE;
        let write = op::Memcpy { dst, src: 0, size, kind, stream: 0 };
        client.call_with(&write, &[], Some(vec![7; size as usize])).result.expect("copied");
        client.call(&op::Memset { dst, value: 1, size, stream: 0 }).expect("set");
        client.call(&op::DeviceSynchronize {}).expect("synchronized");
        let begun = recorded.wait_for("begin", 1).remove(0);
        drop(client);
        let ended = recorded.wait_for("end", 1).remove(0);
        for record in [&begun, &ended] {
            check_time(record);
            assert_eq!((number(record, "session"), &record["listener"]), (1, &"tcp".into()), "{options:?}");
            assert_eq!(record["peer"], peer.as_str());
            assert!(!record.contains_key("key") && !record.contains_key("tenant"), "{record:?}");
        }
        assert_eq!(number(&ended, "requests"), 5, "{ended:?}");
        let (received, sent) = (number(&ended, "received_bytes"), number(&ended, "sent_bytes"));
        assert!((size..size + 1024).contains(&received) && (5 * 24..1024).contains(&sent), "{ended:?}");
        assert!(number(&ended, "device_ns") > 0, "{ended:?}");
        assert_eq!(ended["reason"], "the peer closed the connection");
        assert_eq!(ended["kind"], "closed");
        // Sessions have numbers of their own, and what breaks the protocol is the reason of the end.
        let mut client = WireClient::open(recorded.worker.address());
        client.stream().write_all(b"GET / HTTP/1.1\r\n\r\n12345678901234").expect("sent");
        let ended = recorded.wait_for("end", 2).remove(1);
        assert_eq!(number(&ended, "session"), 2);
        assert!(ended["reason"].as_str().expect("text").starts_with("protocol error"), "{ended:?}");
        assert_eq!(ended["kind"], "protocol");
        drop(client);
    }
}

#[test]
fn sessions_that_run_at_the_end_are_recorded_and_the_file_is_gone_on_with() {
    for options in WORKERS {
        let mut recorded = Recorded::start(options);
        let clients: Vec<_> = (0..3).map(|_| WireClient::open(recorded.worker.address())).collect();
        recorded.worker.terminate();
        assert_eq!(recorded.worker.wait().code(), Some(0));
        drop(clients);
        let before = recorded.records();
        let count = |event| before.iter().filter(|record| record["event"] == event).count();
        assert_eq!((count("begin"), count("end")), (3, 3), "{options:?}: {before:?}");
        let again = Recorded::start_command(Command::new(HIPR), recorded.folder, options);
        drop(WireClient::open(again.worker.address()));
        again.wait_for("end", 4);
        assert_eq!(again.records()[..before.len()], before);
    }
}

#[test]
fn who_gets_no_session_is_recorded() {
    for options in WORKERS {
        let recorded = Recorded::start(&[options, &["--sessions-max", "1"]].concat());
        let mut client = WireClient::open(recorded.worker.address());
        let mut refused = WireClient::connect(recorded.worker.address());
        let peer = refused.stream().local_addr().expect("an address").to_string();
        // With processes the first message decides.
        refused.forget(&op::Init {});
        let record = recorded.wait_for("refused", 1).remove(0);
        check_time(&record);
        assert_eq!((&record["reason"], &record["peer"]), (&"no-seat".into(), &peer.into()), "{options:?}");
        assert!(record["words"].as_str().expect("text").contains("there may be 1"), "{record:?}");
        assert!(!record.contains_key("session"), "{record:?}");
        client.call(&op::DeviceSynchronize {}).expect("the others go on");
    }
}

#[test]
fn a_process_that_is_killed_has_an_end() {
    let recorded = Recorded::start(&["--isolate", "process"]);
    let client = WireClient::open(recorded.worker.address());
    recorded.wait_for("begin", 1);
    let child = recorded.worker.children()[0];
    kill_process(Pid::from_raw(child.cast_signed()).expect("a process"), Signal::KILL).expect("killed");
    let ended = recorded.wait_for("end", 1).remove(0);
    assert_eq!(ended["reason"], "the session's process has ended: SIGKILL");
    assert_eq!(ended["kind"], "process-ended");
    assert!(!ended.contains_key("received_bytes"), "nobody knows: {ended:?}");
    drop(client);
}

fn hipr(home: &Path, args: &[&str]) -> String {
    let mut command = Command::new(HIPR);
    let output = command.args(args).env("XDG_CONFIG_HOME", home).output().expect("hipr runs");
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    String::from_utf8(text).expect("text").trim().to_owned()
}

#[test]
fn keys_and_tenants_are_recorded_also_of_those_who_are_refused() {
    for options in WORKERS {
        let homes: Vec<_> = (0..3).map(|_| tempfile::tempdir().expect("a folder")).collect();
        let [user, stranger, owner] = [0, 1, 2].map(|at| homes[at].path());
        let line = hipr(user, &["key"]);
        hipr(stranger, &["key"]);
        let authorized = owner.join("authorized");
        fs::write(&authorized, format!("{line} tenant=lab\n")).expect("written");
        let mut command = Command::new(HIPR);
        command.env("XDG_CONFIG_HOME", owner);
        let with_keys = ["--authorized", authorized.to_str().expect("text")];
        let folder = tempfile::tempdir().expect("a folder");
        let recorded = Recorded::start_command(command, folder, &[options, &with_keys].concat());
        let url = format!("hipr://{}", recorded.worker.address());
        hipr(user, &["info", "--worker", &url]);
        let ended = recorded.wait_for("end", 1).remove(0);
        let begun = recorded.wait_for("begin", 1).remove(0);
        let key = begun["key"].as_str().expect("text");
        assert!(key.starts_with("SHA256:"), "{begun:?}");
        assert_eq!((&begun["tenant"], &begun["listener"]), (&"lab".into(), &"tls".into()));
        assert_eq!((&ended["tenant"], ended["key"].as_str()), (&"lab".into(), Some(key)));
        // A key that is not authorized.
        let told = hipr(stranger, &["info", "--worker", &url]);
        assert!(told.contains("not authorized"), "{told}");
        let refused = recorded.wait_for("refused", 1).remove(0);
        assert_eq!(refused["reason"], "wrong-key", "{options:?}: {refused:?}");
        assert!(refused["key"].as_str().is_some_and(|other| other != key) && !refused.contains_key("tenant"));
        // Who does not speak TLS at all.
        let mut plain = TcpStream::connect(recorded.worker.address()).expect("connected");
        plain.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
        // A reset is an end as well.
        let _ = plain.read_to_end(&mut Vec::new());
        let refused = recorded.wait_for("refused", 2).remove(1);
        assert_eq!(refused["reason"], "not-tls", "{options:?}: {refused:?}");
    }
}

#[test]
fn a_file_that_cannot_be_had_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("text");
    for how in ["none", "process"] {
        for (file, why) in
            [(path, "directory"), ("/dev/null", "not a file"), ("/dev/null/x", "Not a directory")]
        {
            let options =
                ["worker", "--device", "sim", "--listen", "127.0.0.1:0", "--isolate", how, "--audit", file];
            let output = Command::new(HIPR).args(options).output().expect("hipr runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{how}: {said}");
            assert!(said.contains("--audit") && said.contains(file) && said.contains(why), "{said}");
            assert!(output.stdout.is_empty(), "it does not listen");
        }
    }
}

/// A disk that is full holds up nobody, and nothing of what happened meanwhile is missing afterwards.
#[test]
fn a_full_disk_holds_up_nobody_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    // Longer than the log, to which the limit applies as well.
    let earlier = "{\"event\":\"earlier\"}\n".repeat(10_000);
    fs::write(file(&folder), &earlier).expect("written");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", HIPR]);
    let recorded = Recorded::start_command(command, folder, &["--isolate", "none"]);
    let pid = Pid::from_raw(recorded.worker.pid().cast_signed());
    let limit = |current| {
        prlimit(pid, Resource::Fsize, Rlimit { current, maximum: None }).expect("set");
    };
    // The first record does not fit as a whole.
    limit(Some(earlier.len() as u64 + 50));
    let mut first = WireClient::open(recorded.worker.address());
    eventually("the log says so", || recorded.worker.log().contains("cannot write records"));
    for _ in 0..20 {
        drop(WireClient::open(recorded.worker.address()));
    }
    first.call(&op::DeviceSynchronize {}).expect("nobody waits for the disk");
    assert_eq!(recorded.records().len(), 10_000);
    limit(None);
    recorded.wait_for("begin", 21);
    recorded.wait_for("end", 20);
    recorded.worker.says("written again");
}
