//! Tests of a worker's memory and file descriptors under load, measured from another process.

mod common;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

use common::*;
use hipr_proto::op::*;
use hipr_proto::{FLAG_NO_REPLY, Header, Opcode, Wire};
use hipr_worker::{Config, Worker};

const MIB: u64 = 1 << 20;

/// Runs a worker for [`Process::start`]; not a test itself. Serves until its input ends.
#[test]
#[ignore = "started by the other tests"]
fn serve() {
    let Ok(name) = std::env::var("HIPR_TEST_DEVICE") else { return };
    let mut config = Config { listen: "127.0.0.1:0".into(), io: event_loop(), ..Config::new(device(&name)) };
    if let Ok(timeout) = std::env::var("HIPR_TEST_FIRST_MESSAGE_MS") {
        config.limits.first_message_timeout_ms = timeout.parse().unwrap();
    }
    let worker = Worker::bind(config).unwrap().spawn().unwrap();
    println!("\nserving on {}", worker.local_addr());
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).unwrap();
    println!("timeouts {}", worker.stats().io().timeouts);
    worker.stop();
    worker.join().unwrap();
}

/// A worker in its own process.
struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    addr: SocketAddr,
}

impl Process {
    fn start(device: &str, environment: &[(&str, &str)], shell_prefix: &str) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", &format!("{shell_prefix} exec \"$0\" \"$@\"")])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "serve", "--ignored", "--nocapture"])
            .env("HIPR_TEST_DEVICE", device)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, output, addr: ([0; 4], 0).into() };
        process.addr = process.line("serving on ").parse().unwrap();
        process
    }

    /// Returns the rest of the next line that begins with `start`.
    fn line(&mut self, start: &str) -> String {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.trim().strip_prefix(start) {
                return rest.into();
            }
            line.clear();
        }
        panic!("no line '{start}'");
    }

    /// Returns a field of `/proc/PID/status` in bytes.
    fn status(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap() * 1024
    }

    fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// Returns the peak resident memory since the last [`Process::forget_peak`].
    fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn forget_peak(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Shuts the worker down and returns its number of timeouts.
    fn end(mut self) -> u64 {
        drop(self.child.stdin.take());
        let timeouts = self.line("timeouts ").parse().unwrap();
        assert!(self.child.wait().unwrap().success());
        timeouts
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn copy_a_gibibyte_there_and_back(device: &str, device_bytes: u64) {
    let process = Process::start(device, &[], "");
    let mut peer = Peer::hello(process.addr);
    let size = 1024 * MIB;
    let ptr = peer.malloc(size);
    let before = process.resident();
    process.forget_peak();

    let piece = pattern(MIB as usize, 11);
    let mut request = Vec::new();
    Header::new(Opcode::MEMCPY, 90, Memcpy::SIZE as u64 + size, FLAG_NO_REPLY).put(&mut request);
    h2d(ptr, size, 0).put(&mut request);
    peer.stream.write_all(&request).unwrap();
    for _ in 0..1024 {
        peer.stream.write_all(&piece).unwrap();
    }
    peer.call(&DeviceSynchronize {}).unwrap();
    let grown = process.peak().saturating_sub(before);
    assert!(grown <= device_bytes + 32 * MIB, "{device}, to the device: {} MiB more", grown / MIB);

    process.forget_peak();
    let mut request = Vec::new();
    Header::new(Opcode::MEMCPY, 91, Memcpy::SIZE as u64, 0).put(&mut request);
    d2h(ptr, size, 0).put(&mut request);
    peer.stream.write_all(&request).unwrap();
    let mut reply = [0; Header::SIZE + 4];
    peer.stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[12..20], (4 + size).to_le_bytes());
    let expected = if device == "null" { vec![0; MIB as usize] } else { piece };
    let mut bytes = vec![0; MIB as usize];
    for at in 0..1024 {
        peer.stream.read_exact(&mut bytes).unwrap();
        assert!(bytes == expected, "{device}: MiB {at} differs");
    }
    let grown = process.peak().saturating_sub(before);
    assert!(grown <= device_bytes + 32 * MIB, "{device}, from the device: {} MiB more", grown / MIB);
    peer.call(&Free { device_ptr: ptr }).unwrap();
    process.end();
}

#[test]
fn a_gibibyte_passes_through_32_mebibytes() {
    copy_a_gibibyte_there_and_back("null", 0);
}

#[test]
fn a_gibibyte_is_held_once_by_the_emulator() {
    copy_a_gibibyte_there_and_back("sim", 1024 * MIB);
}

#[test]
fn an_idle_connection_costs_little() {
    let process = Process::start("null", &[], "");
    let talk = |peer: &mut Peer| {
        let ptr = peer.malloc(4096);
        peer.h2d(ptr, &[1; 4096], 0);
        peer.call(&DeviceSynchronize {}).unwrap();
    };
    // The first ones fill the buffers that all share.
    let mut warm: Vec<_> = (0..50).map(|_| Peer::hello(process.addr)).collect();
    warm.iter_mut().for_each(talk);
    let before = process.resident();
    let mut idle: Vec<_> = (0..500).map(|_| Peer::hello(process.addr)).collect();
    idle.iter_mut().for_each(talk);
    let each = process.resident().saturating_sub(before) / 500;
    assert!(each <= 64 << 10, "{each} bytes for a connection");
    drop((warm, idle));
    process.end();
}

#[test]
fn connections_that_all_speak_at_once_share_what_is_received() {
    const CONNECTIONS: usize = 300;
    let process = Process::start("null", &[], "");
    let mut peers: Vec<_> = (0..CONNECTIONS).map(|_| Peer::hello(process.addr)).collect();
    let before = process.resident();
    process.forget_peak();
    // Somewhat more than what is copied, far less than a read takes.
    let said = message(Opcode::PING, 90, FLAG_NO_REPLY, &[]).repeat(2000);
    for _ in 0..3 {
        peers.iter_mut().for_each(|peer| peer.stream.write_all(&said).unwrap());
        peers.iter_mut().for_each(|peer| assert!(peer.call(&DeviceSynchronize {}).is_ok()));
    }
    let grown = process.peak().saturating_sub(before);
    assert!(grown <= 32 * MIB, "{} MiB more", grown / MIB);
    process.end();
}

/// Raises this process's limit of open files as far as possible, and returns it.
fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}

#[test]
fn ten_thousand_half_open_connections_are_survived() {
    let count = raise_open_files().saturating_sub(200).min(10_000);
    assert!(count >= 1000, "this machine allows too few open files");
    let process = Process::start("null", &[("HIPR_TEST_FIRST_MESSAGE_MS", "5000")], "");
    let mut served = Peer::hello(process.addr);
    let before = process.resident();
    let silent: Vec<_> = (0..count)
        .map(|i| {
            let mut peer = Peer::connect(process.addr);
            // Some say half a header.
            peer.stream.write_all(&b"RPIH\0\x01"[..(i % 7) as usize]).unwrap();
            peer
        })
        .collect();
    assert!(served.call(&Ping {}).is_ok());
    let mut late = Peer::hello(process.addr);
    let each = process.resident().saturating_sub(before) / count;
    assert!(each <= 64 << 10, "{each} bytes for a connection");
    // Those that say nothing are closed; the others are not.
    until("the silent ones are closed", || process.descriptors() < 100);
    assert!(silent.into_iter().all(Peer::sees_end));
    assert!(served.call(&Ping {}).is_ok() && late.call(&Ping {}).is_ok());
    drop((served, late));
    assert_eq!(process.end(), count);
}

#[test]
fn a_worker_without_descriptors_serves_those_it_has() {
    let process = Process::start("null", &[], "ulimit -n 40;");
    let mut served = Peer::hello(process.addr);
    let waiting: Vec<_> = (0..100).map(|_| Peer::connect(process.addr)).collect();
    until("there are no descriptors left", || process.descriptors() >= 40);
    for _ in 0..10 {
        assert!(served.call(&Ping {}).is_ok());
    }
    drop(waiting);
    // Who comes when others have gone is served.
    assert!(Peer::hello(process.addr).call(&MemGetInfo {}).is_ok());
    process.end();
}
