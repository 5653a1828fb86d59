//! Tests who may use a worker, with the `hipr` program on both sides: keys, invitations, encryption, and what is said to those who are not
//! let in.

#[path = "identity/authority.rs"]
mod authority;

use hipr_tests::{WorkerProcess, eventually};
use hipr_tls::{ClientChannel, ClientIdentity, Expected, SecretKey, read_key};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Options of a worker with each loop, and with sessions in one process and in processes of their own.
const WORKERS: [&[&str]; 3] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "auto", "--isolate", "none"],
    &["--isolate", "process"],
];

/// A user's or a worker's folder of settings.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join("hipr").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(HIPR);
        for name in ["HIPR_WORKER", "HIPR_LOG", "HIPR_TRUST_NEW"] {
            command.env_remove(name);
        }
        command.env("XDG_CONFIG_HOME", self.0.path());
        command
    }

    fn hipr(&self, args: &[&str]) -> Output {
        self.command().args(args).output().expect("hipr runs")
    }

    /// Runs `hipr key`; returns the line that it prints.
    fn key(&self) -> String {
        let output = self.hipr(&["key"]);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().to_owned()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A worker with the emulated GPU that asks for keys.
struct Safe {
    home: Home,
    worker: WorkerProcess,
    fingerprint: String,
}

impl Safe {
    fn start(lines: &str, options: &[&str]) -> Self {
        let home = Home::new();
        let key = home.path("worker-key");
        let made = home.hipr(&["key", "--worker", key.to_str().expect("text")]);
        let fingerprint = stdout(&made).trim().to_owned();
        fs::write(home.path("authorized"), lines).expect("written");
        let file = home.path("authorized");
        let all = [&["--device", "sim", "--authorized", file.to_str().expect("text")], options].concat();
        let worker = WorkerProcess::start_command(home.command(), &all);
        Self { home, worker, fingerprint }
    }

    fn authorize(&self, lines: &str) {
        fs::write(self.home.path("authorized"), lines).expect("written");
    }

    fn place(&self) -> String {
        self.worker.address().to_string()
    }

    /// Returns the address with the worker's fingerprint.
    fn pinned(&self) -> String {
        format!("hipr://{}@{}", self.fingerprint, self.place())
    }
}

/// Runs the demo's program over a worker, which computes and compares what eight kernels do.
fn run_program(home: &Home, worker: &str) -> Output {
    home.hipr(&["run", "--worker", worker, "--", HIPR, "demo-program"])
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}{}", stdout(output), stderr(output));
    assert!(stdout(output).contains("matmul"), "{}", stdout(output));
}

fn refused(output: &Output, why: &str) {
    let said = stderr(output);
    assert!(!output.status.success() && said.contains(why), "'{why}' is missing: {said}");
}

#[test]
fn three_commands_make_a_safe_worker() {
    for options in WORKERS {
        let user = Home::new();
        let line = user.key();
        assert_eq!(user.key(), line, "made once");
        assert_eq!(fs::metadata(user.path("key")).expect("a key").permissions().mode() & 0o777, 0o600);
        let safe = Safe::start(&format!("{line} tenant=lab memory-max=512M\n"), options);
        let output = run_program(&user, &safe.pinned());
        succeeds(&output);
        assert_eq!(stderr(&output), "", "{options:?}: who names the key is told nothing");
        let report = stdout(&user.hipr(&["info", "--json", "--worker", &safe.pinned()]));
        assert!(report.contains(&format!("{}", 512 << 20)), "the line's limit holds: {report}");
        let log = || safe.worker.log();
        eventually("the log names the tenant", || {
            log().contains("tenant=\"lab\"") || log().contains("tenant=lab")
        });
        let log = log();
        assert!(!log.contains("cut off"), "all ends were in order: {log}");
    }
}

#[test]
fn who_is_not_authorized_is_told_what_to_do() {
    for options in WORKERS {
        let (user, stranger) = (Home::new(), Home::new());
        let line = user.key();
        let safe = Safe::start(&line, options);
        refused(&stranger.hipr(&["info", "--worker", &safe.pinned()]), "`hipr key` makes one");
        let other = stranger.key();
        refused(&stranger.hipr(&["info", "--worker", &safe.pinned()]), &other);
        // One is struck off, one is added.
        succeeds(&run_program(&user, &safe.pinned()));
        safe.authorize(&other);
        refused(&user.hipr(&["info", "--worker", &safe.pinned()]), &line);
        succeeds(&run_program(&stranger, &safe.pinned()));
        // A file that is wrong lets nobody in, and the log says where.
        safe.authorize("nonsense\n");
        refused(&stranger.hipr(&["info", "--worker", &safe.pinned()]), "cannot read who is authorized");
        eventually("the log names the line", || safe.worker.log().contains("authorized:1: "));
    }
}

#[test]
fn a_worker_is_trusted_at_first_use_and_known_afterwards() {
    let user = Home::new();
    let safe = Safe::start(&user.key(), WORKERS[0]);
    let open = format!("hipr://{}", safe.place());
    let scripted = user.command().args(["info", "--worker", &open]).env("HIPR_TRUST_NEW", "off").output();
    refused(&scripted.expect("hipr runs"), "HIPR_TRUST_NEW=off");
    let first = user.hipr(&["info", "--worker", &open]);
    assert!(first.status.success() && stderr(&first).contains(&safe.fingerprint), "{}", stderr(&first));
    assert_eq!(user.text("known_workers"), format!("{} {}\n", safe.place(), safe.fingerprint));
    let second = run_program(&user, &open);
    succeeds(&second);
    assert_eq!(stderr(&second), "", "it is known");

    // Another worker at the same address.
    let other = SecretKey::generate().expect("a key").public().fingerprint();
    fs::write(user.path("known_workers"), format!("{} {other}\n", safe.place())).expect("written");
    for said in [safe.fingerprint.as_str(), &other.to_string(), "remove the line"] {
        refused(&user.hipr(&["info", "--worker", &open]), said);
    }
    succeeds(&run_program(&user, &safe.pinned()));
    let wrong = format!("hipr://{other}@{}", safe.place());
    refused(&user.hipr(&["info", "--worker", &wrong]), "ask its owner");
    refused(&user.hipr(&["info", "--worker", &format!("hipr://SHA256:x@{}", safe.place())]), "43 letters");
}

#[test]
fn an_invitation_becomes_keys_once() {
    for options in WORKERS {
        let safe = Safe::start("", options);
        let file = safe.home.path("authorized");
        let file = file.to_str().expect("text");
        let invite =
            ["invite", "--authorized", file, "--tenant", "guest", "--memory-max", "256M", &safe.place()];
        let url = stdout(&safe.home.hipr(&invite)).trim().to_owned();
        assert!(url.starts_with(&safe.pinned()), "{url}");
        let (guest, late) = (Home::new(), Home::new());
        let output = run_program(&guest, &url);
        succeeds(&output);
        assert_eq!(safe.home.text("authorized"), format!("{} tenant=guest memory-max=256M\n", guest.key()));
        let token = url.split_once('#').expect("a token").1;
        assert!(
            !safe.home.text("authorized.invitations").contains(token) && !safe.worker.log().contains(token)
        );
        // From now on the address is enough.
        succeeds(&run_program(&guest, &format!("hipr://{}", safe.place())));
        refused(&run_program(&late, &url), "this invitation was used");
        refused(&run_program(&guest, &url), "this invitation was used");
    }
}

#[test]
fn a_worker_can_begin_with_an_invitation() {
    let (home, guest) = (Home::new(), Home::new());
    fs::create_dir(home.path("")).expect("a folder");
    let file = home.path("authorized");
    let mut command = home.command();
    command
        .args(["worker", "--device", "sim", "--listen", "127.0.0.1:0", "--invite", "--authorized"])
        .arg(&file);
    let mut worker = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("hipr starts");
    let lines = BufReader::new(worker.stdout.take().expect("piped")).lines();
    let lines: Vec<String> = lines.take(2).map(|line| line.expect("a line")).collect();
    let url = lines[1].strip_prefix("invitation: ").unwrap_or_else(|| panic!("{lines:?}"));
    succeeds(&run_program(&guest, url));
    worker.kill().expect("killed");
    worker.wait().expect("it ends");
}

#[test]
fn encrypted_and_open_ends_tell_each_other_apart() {
    let user = Home::new();
    let line = user.key();
    for options in WORKERS {
        let safe = Safe::start(&line, options);
        refused(&user.hipr(&["info", "--worker", &safe.place()]), "write hipr:// before its address");
        let open = WorkerProcess::start_command(user.command(), &[&["--device", "sim"], options].concat());
        let address = format!("hipr://{}", open.address());
        refused(&user.hipr(&["info", "--worker", &address]), "without hipr://");
        assert!(!user.path("known_workers").exists(), "who has proved no key is not noted");
        // What is neither is told, too, and the others are still served.
        for said in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\0\x05hello", b"\x16"] {
            let mut stranger = TcpStream::connect(safe.worker.address()).expect("connected");
            stranger.write_all(said).expect("sent");
            stranger.shutdown(std::net::Shutdown::Write).expect("shut down");
            let mut told = Vec::new();
            // A reset is an end as well.
            let _ = stranger.read_to_end(&mut told);
            assert!(told.is_empty() || hipr_tls::is_alert(&told), "{told:?}");
        }
        succeeds(&run_program(&user, &safe.pinned()));
    }
}

/// Tries to start a worker; returns what it printed, if it did not start.
fn not_started(home: &Home, options: &[&str]) -> String {
    let output = home.hipr(&[&["worker", "--device", "sim"], options].concat());
    assert!(!output.status.success() && output.stdout.is_empty(), "it starts: {options:?}");
    stderr(&output)
}

#[test]
fn a_worker_that_strangers_can_reach_does_not_start_without_keys() {
    let home = Home::new();
    for isolation in ["none", "process"] {
        let said = not_started(&home, &["--listen", "0.0.0.0:0", "--isolate", isolation]);
        for word in ["--authorized", "--invite", "SSH", "--insecure-no-auth"] {
            assert!(said.contains(word), "{word} is missing: {said}");
        }
        let mut command = home.command();
        command.args(["worker", "--device", "sim", "--listen", "0.0.0.0:0", "--insecure-no-auth"]);
        let command = command.args(["--isolate", isolation]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut worker = command.spawn().expect("hipr starts");
        let mut line = String::new();
        BufReader::new(worker.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        assert!(line.starts_with("listening on 0.0.0.0:"), "{line}");
        worker.kill().expect("killed");
        let said = stderr(&worker.wait_with_output().expect("it ends"));
        assert!(said.contains("WARN") && said.contains("--insecure-no-auth"), "{said}");
    }
}

#[test]
fn files_that_are_wrong_are_named() {
    let home = Home::new();
    let line = home.key();
    let listen = "127.0.0.1:0";
    let file = home.path("authorized");
    let file = file.to_str().expect("text");
    let with = |options: &[&str]| {
        not_started(&home, &[&["--listen", listen, "--authorized", file], options].concat())
    };
    assert!(with(&[]).contains("authorized: No such file"));
    fs::write(file, format!("{line}\n{line} tenant=a b\n")).expect("written");
    assert!(with(&[]).contains("authorized:2: "));
    fs::write(file, &line).expect("written");
    fs::set_permissions(home.path("worker-key"), Permissions::from_mode(0o644)).expect("a key was made");
    assert!(with(&[]).contains("chmod 600"));
    assert!(with(&["--insecure-no-auth"]).contains("cannot be used with"));
    fs::remove_file(home.path("worker-key")).expect("removed");
    let socket = home.path("socket");
    let said = not_started(&home, &["--listen", &format!("unix:{}", socket.display()), "--authorized", file]);
    assert!(said.contains("permissions"), "{said}");
    // A client's key, too.
    fs::set_permissions(home.path("key"), Permissions::from_mode(0o640)).expect("changed");
    let output = home.hipr(&["info", "--worker", "hipr://127.0.0.1:1"]);
    refused(&output, "chmod 600");
    refused(&home.hipr(&["key"]), "chmod 600");
    assert_ne!(stdout(&home.hipr(&["key", "--force"])).trim(), line, "only who asks for it gets another key");
}

/// Connects and says hello, as a client does that then proves nothing.
fn at_the_door(worker: SocketAddr) -> TcpStream {
    let identity = ClientIdentity::new(&SecretKey::generate().expect("a key")).expect("an identity");
    let mut channel = ClientChannel::new(&identity, Expected::Any, None).expect("a channel");
    let mut hello = Vec::new();
    channel.channel().take_output(&mut hello);
    let mut stream = TcpStream::connect(worker).expect("connected");
    stream.write_all(&hello).expect("sent");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    stream
}

#[test]
fn who_proves_nothing_takes_no_seats_from_who_does() {
    let user = Home::new();
    let safe = Safe::start(&user.key(), &["--isolate", "process", "--sessions-max", "8"]);
    let mut strangers: Vec<_> = (0..8).map(|_| at_the_door(safe.worker.address())).collect();
    for stranger in &mut strangers {
        // Each is answered or turned away; a process that was killed may reset the connection.
        let _ = stranger.read(&mut [0; 1]);
    }
    eventually("two at most stay at the door", || safe.worker.children().len() <= 2);
    succeeds(&run_program(&user, &safe.pinned()));
}

#[test]
fn a_worker_that_says_nothing_is_not_waited_for() {
    let user = Home::new();
    user.key();
    // It accepts, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("hipr://{}", silent.local_addr().expect("an address"));
    refused(&user.hipr(&["info", "--worker", &address]), "no answer within");
}

#[test]
fn a_local_client_is_logged_as_the_kernel_names_it() {
    let home = Home::new();
    fs::create_dir(home.path("")).expect("a folder");
    for (kind, isolation) in [("unix", "none"), ("shm", "none"), ("unix", "process"), ("shm", "process")] {
        let address = format!("{kind}:{}", home.path("socket").display());
        let mut worker = WorkerProcess::start_command(
            home.command(),
            &["--device", "sim", "--isolate", isolation, "--listen", &address],
        );
        succeeds(&run_program(&home, &address));
        let user = format!(
            "of user {}",
            fs::metadata(Path::new("/proc/self"))
                .map(|me| std::os::unix::fs::MetadataExt::uid(&me))
                .expect("Linux")
        );
        eventually("the log names the user", || worker.log().contains(&user));
        worker.terminate();
        worker.wait();
    }
}

/// Connects with a user's key; returns the connection once the worker has let it in, or what it was told.
fn let_in(user: &Home, worker: SocketAddr) -> Result<TcpStream, String> {
    let key = read_key(&user.path("key")).expect("a key");
    let identity = ClientIdentity::new(&key).expect("an identity");
    let mut channel = ClientChannel::new(&identity, Expected::Any, None).expect("a channel");
    let mut stream = TcpStream::connect(worker).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
    let mut sealed = [0; 4096];
    while !channel.is_in() {
        let mut output = Vec::new();
        channel.channel().take_output(&mut output);
        stream.write_all(&output).expect("sent");
        let len = stream.read(&mut sealed).expect("an answer");
        assert!(len > 0, "the connection has ended");
        channel.receive(&mut &sealed[..len], &mut [0; 64]).map_err(|why| why.to_string())?;
    }
    Ok(stream)
}

#[test]
fn a_tenant_has_as_many_sessions_at_a_time_as_its_line_says() {
    for options in WORKERS {
        let (user, other) = (Home::new(), Home::new());
        let (line, others) = (user.key(), other.key());
        let folder = tempfile::tempdir().expect("a folder");
        let records = folder.path().join("records");
        let options = [options, &["--audit", records.to_str().expect("text")]].concat();
        let safe =
            Safe::start(&format!("{line} tenant=lab sessions-max=2\n{others} sessions-max=1\n"), &options);
        let place = safe.worker.address();
        let mut held: Vec<_> = (0..2).map(|_| let_in(&user, place).expect("a seat")).collect();
        let told = let_in(&user, place).expect_err("a third session");
        assert!(told.contains("lab has 2 sessions at this worker already"), "{told}");
        eventually("it is recorded, with the tenant and its key", || {
            let text = fs::read_to_string(&records).expect("text");
            text.lines().any(|line| {
                ["\"refused\"", "\"tenant-sessions\"", "\"lab\"", "\"SHA256:"]
                    .iter()
                    .all(|part| line.contains(part))
            })
        });
        refused(&user.hipr(&["info", "--worker", &safe.pinned()]), "lab has 2 sessions");
        succeeds(&run_program(&other, &safe.pinned()));
        held.pop();
        eventually("a seat is free", || let_in(&user, place).is_ok());
    }
}
