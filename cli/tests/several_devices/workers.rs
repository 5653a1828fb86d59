//! Several workers whose devices are one list: programs for two devices over each transport, with encryption, far away, with more than one
//! device each; a worker that is lost; and what is said of workers that cannot be used.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use hipr_tests::{Link, Proxy, WorkerProcess};
use hipr_tls::{Fingerprint, SecretKey};

use super::{HIPR, compiled, hipr_run, pass, text};

/// The programs with what makes them expect devices of different workers.
const PROGRAMS: [(&str, &str); 2] = [("several_devices", "2 apart"), ("across_workers", "")];

pub(super) fn start(options: &[&str]) -> WorkerProcess {
    WorkerProcess::start_logged(HIPR.as_ref(), &[&["--device", "sim"], options].concat())
}

pub(super) fn over_tcp(options: &[&str]) -> WorkerProcess {
    start(&[&["--listen", "127.0.0.1:0"], options].concat())
}

pub(super) fn list(workers: &[WorkerProcess]) -> String {
    workers.iter().map(|worker| worker.listens_at().to_string()).collect::<Vec<_>>().join(",")
}

/// Runs all programs, without and with optimization.
fn pass_all(what: &str, workers: &str, change: impl Fn(&mut Command)) {
    for (name, arguments) in PROGRAMS {
        let Some(programs) = compiled(name) else { return };
        for program in programs {
            let mut command = hipr_run(&["--worker", workers]);
            change(&mut command);
            pass(what, &mut command, &program, arguments);
        }
    }
}

#[test]
fn a_program_uses_two_workers_over_each_transport_and_loop() {
    let sockets = tempfile::tempdir().expect("a folder");
    let socket = |scheme: &str, name: &str| format!("{scheme}:{}", sockets.path().join(name).display());
    let (unix, shm) = (socket("unix", "a"), socket("shm", "b"));
    for (what, first, second) in [
        ("tcp, mio", ["127.0.0.1:0", "mio", "none"], ["127.0.0.1:0", "mio", "process"]),
        ("tcp, auto", ["127.0.0.1:0", "auto", "process"], ["127.0.0.1:0", "auto", "none"]),
        ("unix and shm", [&unix, "auto", "none"], [&shm, "auto", "none"]),
    ] {
        let worker =
            |[listen, io, isolate]: [&str; 3]| start(&["--listen", listen, "--io", io, "--isolate", isolate]);
        let workers = [worker(first), worker(second)];
        pass_all(what, &list(&workers), |_| ());
    }
}

#[test]
fn devices_of_workers_with_several_are_one_list() {
    let workers = [0, 1].map(|_| over_tcp(&["--sim-devices", "2"]));
    let all = list(&workers);
    // A device that is not its worker's first one has its memory where the worker chooses.
    for visible in ["0,2", "1,3", "3,0", "GPU-hipr1emulated-01,GPU-hipr-emulated-01"] {
        pass_all(visible, &all, |command| {
            command.env("HIP_VISIBLE_DEVICES", visible);
        });
    }
    let Some([_, program]) = compiled("several_devices") else { return };
    pass("all", &mut hipr_run(&["--worker", &all]), &program, "4");
    let mut lazy = hipr_run(&["--worker", &all]);
    lazy.env("HIPR_SYNC", "lazy").env("HIP_VISIBLE_DEVICES", "2,1");
    pass("lazy", &mut lazy, &program, "2 apart");
    // Workers of HIPR 1.0 choose all addresses.
    let mut plain = hipr_run(&["--worker", &all]);
    plain.env("HIPR_EXTENSION", "off").env("HIP_VISIBLE_DEVICES", "1,2");
    pass("without the extension", &mut plain, &program, "2 apart");
    let info = Command::new(HIPR).args(["info", "--worker", &all]).output().expect("hipr runs");
    let said = text(&info);
    for expected in ["device 0 ", "device 3 ", &workers[1].listens_at().to_string()] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let json = Command::new(HIPR).args(["info", "--json", "--worker", &all]).output().expect("hipr runs");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(2));
}

/// A user's key, and workers that know it.
pub(super) struct Keys {
    home: tempfile::TempDir,
    /// The line that authorizes the key.
    line: String,
}

impl Keys {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(HIPR);
        let output = command.env("XDG_CONFIG_HOME", home.path()).arg("key").output().expect("hipr runs");
        let keys = Self { line: text(&output).trim_end().to_owned(), home };
        keys.authorize("");
        keys
    }

    /// Lets the user's key in, with these words behind it.
    pub(super) fn authorize(&self, words: &str) {
        fs::write(self.authorized(), format!("{} {words}\n", self.line)).expect("a file");
    }

    fn authorized(&self) -> PathBuf {
        self.home.path().join("authorized")
    }

    /// Starts a worker with a key of its own.
    pub(super) fn worker(&self, name: &str, options: &[&str]) -> WorkerProcess {
        let mut command = Command::new(HIPR);
        command.env("XDG_CONFIG_HOME", self.home.path().join(name));
        let authorized = self.authorized();
        let authorized = authorized.to_str().expect("text");
        let fixed = ["--device", "sim", "--listen", "127.0.0.1:0", "--authorized", authorized];
        WorkerProcess::start_command(command, &[&fixed, options].concat())
    }

    /// Returns the fingerprint of a worker that was started.
    pub(super) fn fingerprint(&self, name: &str) -> Fingerprint {
        let key = hipr_tls::read_key(&self.home.path().join(name).join("hipr/worker-key"));
        key.expect("the worker has made its key").public().fingerprint()
    }

    /// Lets a program use the user's key, and trust workers at first use.
    pub(super) fn use_in(&self, command: &mut Command) {
        command.env("XDG_CONFIG_HOME", self.home.path()).env("HIPR_TRUST_NEW", "yes");
    }

    /// Returns the user's key.
    pub(super) fn user(&self) -> SecretKey {
        hipr_tls::read_key(&self.home.path().join("hipr/key")).expect("the user's key")
    }
}

#[test]
fn a_program_uses_two_workers_that_ask_for_keys() {
    let keys = Keys::new();
    let workers = ["a", "b"].map(|name| keys.worker(name, &[]));
    let all: Vec<_> = workers.iter().map(|worker| format!("hipr://{}", worker.address())).collect();
    let file = keys.home.path().join("workers");
    fs::write(&file, format!("# Two machines.\n{}\n\n{}\n", all[0], all[1])).expect("a file");
    for workers in [all.join(","), format!("@{}", file.display())] {
        pass_all(&workers, &workers, |command| keys.use_in(command));
    }
}

#[test]
fn a_program_uses_two_workers_that_are_far_away() {
    let workers = [0, 1].map(|_| over_tcp(&[]));
    let link = Link { delay: Duration::from_millis(25), ..Link::default() };
    let proxies = workers.each_ref().map(|worker| Proxy::start(worker.address(), link).expect("a port"));
    let all = proxies.each_ref().map(|proxy| proxy.address().to_string()).join(",");
    let Some([_, program]) = compiled("several_devices") else { return };
    pass("50 ms", &mut hipr_run(&["--worker", &all]), &program, "2 apart");
}

/// What one device loses is its own: calls for it fail, the other device goes on.
#[test]
fn a_worker_that_is_lost_takes_its_own_devices_and_no_others() {
    for lost in [0, 1] {
        let Some([_, program]) = compiled("lost_worker") else { return };
        let mut workers = [0, 1].map(|_| over_tcp(&[]));
        let mut command = hipr_run(&["--worker", &list(&workers)]);
        command.arg(&program).arg(lost.to_string());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("hipr runs");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        workers[lost].kill();
        child.stdin.take().expect("a pipe").write_all(b"go on\n").expect("it reads");
        output.read_to_string(&mut line).expect("text");
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(child.wait().expect("it ends").success(), "{lost}: {line}{said}");
        let address = workers[lost].listens_at().to_string();
        assert!(line.contains("PASS") && said.contains(&address), "{lost}: {line}{said}");
    }
}

#[test]
fn workers_that_cannot_be_used_are_named() {
    let worker = over_tcp(&[]);
    let there = worker.listens_at().to_string();
    let Some([_, program]) = compiled("several_devices") else { return };
    let refusal = |workers: &str| {
        // The library reads the list by itself.
        let mut command = hipr_run(&[]);
        command.args(["sh", "-c", "HIPR_WORKER=\"$1\" exec \"$0\""]).arg(&program).arg(workers);
        let output = command.output().expect("hipr runs");
        assert!(!output.status.success());
        text(&output)
    };
    let many = vec![there.as_str(); 17].join(",");
    for (workers, why) in [
        (format!("{there},127.0.0.1:9"), "cannot reach the worker at 127.0.0.1:9"),
        (format!("{there},"), "has an empty address"),
        ("@/nowhere/workers".to_owned(), "cannot read the list of workers /nowhere/workers"),
        (many, "names 17 workers; a program can have 16"),
    ] {
        let said = refusal(&workers);
        assert!(said.contains(why) && said.contains("hipErrorNoDevice"), "{workers}: {said}");
    }
}
