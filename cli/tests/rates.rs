//! Tests the rates of connections and requests with real worker processes.

use hipr_proto::op;
use hipr_tests::{WireClient, WorkerProcess, eventually};
use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
/// Options of a worker with each loop, and with sessions in one process and in processes of their own.
const WORKERS: [&[&str]; 3] = [
    &["--io", "mio", "--isolate", "none"],
    &["--io", "auto", "--isolate", "none"],
    &["--isolate", "process"],
];

fn start(options: &[&str], more: &[&str]) -> WorkerProcess {
    WorkerProcess::start_logged(Path::new(HIPR), &[&["--device", "sim"], options, more].concat())
}

/// Returns the processor time of a process and its children that live, in clock ticks, of which a second has 100.
fn ticks(worker: &WorkerProcess) -> u64 {
    let of = |pid: u32| -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    };
    worker.children().into_iter().chain([worker.pid()]).filter_map(of).sum()
}

/// Requests beyond the rate are carried out later, all of them and in order, and the worker sleeps meanwhile.
#[test]
fn requests_beyond_the_rate_wait_and_none_is_lost() {
    const RATE: u64 = 500;
    const REQUESTS: u64 = 3000;
    for options in WORKERS {
        let worker = start(options, &["--requests-per-second", "500", "--handles-max", "2000"]);
        let mut client = WireClient::open(worker.address());
        let (begun, before) = (Instant::now(), ticks(&worker));
        for _ in 0..REQUESTS {
            client.forget(&op::EventCreate { flags: 0 });
        }
        // The first error is that of the 2,001st, and is reported once all of them were carried out.
        assert!(client.call(&op::DeviceSynchronize {}).is_err(), "{options:?}");
        let (took, used) = (begun.elapsed(), ticks(&worker) - before);
        // What may happen at once, and what one read may have more than that.
        let least = Duration::from_secs((REQUESTS - 2 * RATE - 200) / RATE);
        assert!(took >= least, "{options:?}: {took:?}");
        let most = u64::try_from(took.as_millis()).expect("a number") / 10 / 2;
        assert!(used <= most, "{options:?}: {used} of {most} ticks in {took:?}: it does not sleep");
        client.call(&op::Ping {}).expect("it goes on");
    }
}

/// Sessions of one address have its rate together, in one process and in several, and each gets some of it.
#[test]
fn sessions_of_an_address_share_its_rate() {
    const RATE: u64 = 400;
    const EACH: u64 = 800;
    const SESSIONS: u64 = 4;
    for options in WORKERS {
        let worker = start(options, &["--requests-per-second", "400", "--handles-max", "600"]);
        let mut clients: Vec<_> = (0..SESSIONS).map(|_| WireClient::open(worker.address())).collect();
        let (begun, before) = (Instant::now(), ticks(&worker));
        for client in &mut clients {
            for _ in 0..EACH {
                client.forget(&op::EventCreate { flags: 0 });
            }
        }
        for client in &mut clients {
            assert!(client.call(&op::DeviceSynchronize {}).is_err(), "{options:?}: all were carried out");
        }
        let (took, used) = (begun.elapsed(), ticks(&worker) - before);
        // What may happen at once, and what the last read of each session may have more than that. With a rate of its own each session would
        // have been done in a second.
        let least = Duration::from_secs((SESSIONS * EACH - 2 * RATE - SESSIONS * 200) / RATE);
        assert!(took >= least, "{options:?}: {took:?}");
        let most = u64::try_from(took.as_millis()).expect("a number") / 10 / 2;
        assert!(used <= most, "{options:?}: {used} of {most} ticks in {took:?}: it does not sleep");
        for client in &mut clients {
            client.call(&op::Ping {}).expect("it goes on");
        }
    }
}

/// A client that has sent what it had to say, and waits, is neither late nor idle while the worker does not read.
#[test]
fn who_is_held_up_is_not_late() {
    for options in WORKERS {
        let worker = start(options, &["--requests-per-second", "100", "--idle-timeout", "1"]);
        let mut client = WireClient::open(worker.address());
        let begun = Instant::now();
        for _ in 0..500 {
            client.forget(&op::Ping {});
        }
        client.call(&op::DeviceSynchronize {}).expect("it is answered");
        // One read may have brought all of them; then it is this one that waits.
        client.call(&op::Ping {}).expect("it is answered");
        assert!(begun.elapsed() >= Duration::from_secs(2), "{options:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn connections_beyond_the_rate_are_refused_and_later_ones_are_not() {
    for options in WORKERS {
        let folder = tempfile::tempdir().expect("a folder");
        let records = folder.path().join("records");
        let more = ["--connections-per-second", "2", "--audit", records.to_str().expect("text")];
        let worker = start(options, &more);
        let mut first = WireClient::open(worker.address());
        let mut streams: Vec<_> =
            (0..20).map(|_| TcpStream::connect(worker.address()).expect("the system accepts")).collect();
        // The worker says nothing first, so what ends was refused.
        let refused = streams
            .iter_mut()
            .filter_map(|stream| {
                stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
                match stream.read(&mut [0]) {
                    Ok(0) => Some(()),
                    Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => Some(()),
                    _ => None,
                }
            })
            .count();
        assert!(refused >= 10, "{options:?}: {refused} of 20 were refused");
        let text = || fs::read_to_string(&records).expect("text");
        eventually("refusals are recorded", || text().contains("\"reason\":\"connection-rate\""));
        first.call(&op::Ping {}).expect("who is there goes on");
        drop(streams);
        eventually("there is room again", || {
            std::thread::sleep(Duration::from_millis(600));
            let mut client = WireClient::connect(worker.address());
            client.try_send(&op::Init {}, &[], None, hipr_proto::ReplyMode::Always).is_ok()
                && client.try_wait::<op::Init>().is_ok()
        });
    }
}

fn hipr(home: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new(HIPR).args(args).env("XDG_CONFIG_HOME", home).output().expect("hipr runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).trim().to_owned())
}

/// A tenant's line says its rates, whatever the others have.
#[test]
fn a_tenant_has_the_rates_of_its_line() {
    for options in WORKERS {
        let homes: Vec<_> = (0..3).map(|_| tempfile::tempdir().expect("a folder")).collect();
        let [slow, fast, owner] = [0, 1, 2].map(|at| homes[at].path());
        let authorized = owner.join("authorized");
        let lines = format!(
            "{} tenant=slow connections-per-second=1\n{} tenant=fast requests-per-second=1000000\n",
            hipr(slow, &["key"]).1,
            hipr(fast, &["key"]).1
        );
        fs::write(&authorized, lines).expect("written");
        let mut command = Command::new(HIPR);
        command.env("XDG_CONFIG_HOME", owner);
        let all =
            [&["--device", "sim", "--authorized", authorized.to_str().expect("text")], options].concat();
        let worker = WorkerProcess::start_command(command, &all);
        let url = format!("hipr://{}", worker.address());
        let info = |home| hipr(home, &["info", "--worker", &url]);
        let refused = (0..20).map(|_| info(slow)).find(|(is_served, _)| !is_served);
        let (_, said) = refused.expect("one of twenty in a row comes too soon");
        assert!(said.contains("slow begins more than 1 sessions a second"), "{options:?}: {said}");
        for _ in 0..3 {
            let (is_served, said) = info(fast);
            assert!(is_served, "{options:?}: {said}");
        }
        eventually("it may come again", || {
            std::thread::sleep(Duration::from_millis(1100));
            info(slow).0
        });
    }
}
