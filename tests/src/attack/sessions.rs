//! Sessions as many as there can be: at a time, one after another, and when the worker has no descriptors left.

use super::raw::{Raw, Stop};
use super::{Case, Scale, Sent, Target};
use crate::{WireClient, WorkerProcess, eventually, process_status_bytes};
use hipr_proto::{Opcode, ReplyMode, op};
use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Descriptors that a process has besides those of sessions.
const BESIDE: usize = 200;
/// Sessions before a measurement, which fill what all share.
const WARM: usize = 100;
/// Sessions that speak at once.
const AT_ONCE: usize = 1_000;
/// How much more memory a worker may have after many sessions than before them.
const GROWTH_MAX_BYTES: u64 = 8 << 20;
/// Descriptors that are not counted exactly: connections that are ending, or somebody else's.
const LEFT: usize = 10;
/// Descriptors of a worker that has few, sessions that it has first, and connections that it gets then.
const DESCRIPTORS: usize = 40;
const SERVED: usize = 5;
const CONNECTIONS: usize = 100;
/// How long one of these waits for an answer.
const PATIENCE: Duration = Duration::from_millis(20);

/// Returns the cases.
pub(super) fn cases(scale: &Scale) -> Vec<Case> {
    let (sessions, reconnects) = (scale.sessions, scale.reconnects);
    vec![
        Case::new("connections to a worker without descriptors", without_descriptors),
        Case::new(format!("{reconnects} sessions one after another"), move |worker| {
            one_after_another(worker, reconnects)
        }),
        Case::new(format!("{sessions} sessions at a time"), move |worker| at_a_time(worker, sessions)),
    ]
}

fn resident_bytes(worker: Target) -> u64 {
    process_status_bytes(worker.pid, "VmRSS:").expect("the worker lives")
}

/// Returns how many descriptors the worker has.
fn descriptors(worker: Target) -> usize {
    fs::read_dir(format!("/proc/{}/fd", worker.pid)).expect("the worker lives").count()
}

fn at_a_time(worker: Target, wanted: usize) -> Sent {
    let mut sent = Sent::default();
    let ours = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: ours.maximum, ..ours }).expect("a limit that is allowed");
    let most = [ours.maximum, descriptors_max(worker)].into_iter().flatten().min().unwrap_or(u64::MAX);
    let count = wanted.min(usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(BESIDE));
    if count < wanted {
        sent.say(format!(
            "only {count} sessions, because a process may have no more than {most} descriptors"
        ));
    }
    let warm: Vec<_> = (0..WARM.min(count)).map(|_| WireClient::open(worker.address)).collect();
    let before = resident_bytes(worker);
    let mut clients: Vec<_> = (warm.len()..count).map(|_| WireClient::open(worker.address)).collect();
    let all = clients.len();
    clients.extend(warm);
    // All of them are served. Who speaks waits for one turn of each that speaks at the same time.
    for some in clients.chunks_mut(AT_ONCE) {
        for client in &mut *some {
            client.send(&op::Ping {}, &[], None, ReplyMode::Always);
        }
        for client in some {
            sent.answered(client.wait::<op::Ping>().result);
        }
    }
    let grown = resident_bytes(worker).saturating_sub(before);
    if all > 0 {
        sent.say(format!("{:.1} KiB of memory for each session", grown as f64 / all as f64 / 1024.0));
    }
    let before = descriptors(worker);
    for client in &mut clients {
        // Otherwise their ports would be taken for a minute.
        set_socket_linger(client.stream(), Some(Duration::ZERO)).expect("a TCP socket");
    }
    drop(clients);
    eventually("the sessions have ended", || descriptors(worker) + count <= before + LEFT);
    sent.is_right &= sent.refused() == 0;
    sent
}

fn one_after_another(worker: Target, count: usize) -> Sent {
    let mut sent = Sent::default();
    let first = descriptors(worker);
    let mut session = |number: usize| {
        let mut client = WireClient::open(worker.address);
        let answer = client.call(&op::Malloc { size: 100_000, flags: 0 });
        if let Ok(reply) = answer {
            client.forget(&op::Memset { dst: reply.device_ptr, value: 1, size: 100_000, stream: 0 });
        }
        sent.answered(answer.map(drop));
        // Some say that they go, some go, and some are cut off.
        match number % 3 {
            0 => sent.answered(client.call(&op::Shutdown {})),
            1 => {}
            _ => set_socket_linger(client.stream(), Some(Duration::ZERO)).expect("a TCP socket"),
        }
    };
    let ended = || eventually("the sessions have ended", || descriptors(worker) <= first + 1);
    (0..WARM).for_each(&mut session);
    ended();
    let before = resident_bytes(worker);
    (0..count).for_each(&mut session);
    ended();
    let grown = resident_bytes(worker).saturating_sub(before);
    sent.say(format!("{} KiB more memory after them", grown >> 10));
    sent.is_right &= sent.refused() == 0;
    sent.expect(grown <= GROWTH_MAX_BYTES, || format!("more than {} KiB", GROWTH_MAX_BYTES >> 10));
    sent
}

/// Returns how many descriptors the worker may have; `None` if there is no limit.
fn descriptors_max(worker: Target) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{}/limits", worker.pid)).expect("the worker lives");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the limit is there");
    line.split_whitespace().nth(3).and_then(|number| number.parse().ok())
}

/// Takes another worker of the same program, which may have few descriptors.
fn without_descriptors(worker: Target) -> Sent {
    let program = fs::read_link(format!("/proc/{}/exe", worker.pid)).expect("a worker of the same user");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\"")]).arg(program);
    let few = WorkerProcess::start_command(command, &["--device", "sim", "--isolate", "none"]);
    let mut sent = Sent::default();
    let mut served: Vec<_> = (0..SERVED).map(|_| WireClient::open(few.address())).collect();
    let mut refused = 0;
    let mut others = Vec::new();
    for number in 0..CONNECTIONS {
        let mut raw = Raw::connect(few.address(), PATIENCE);
        raw.push(Opcode::INIT, &[], 0);
        match raw.send().and_then(|_| raw.answer()) {
            Ok(_) => {}
            Err(Stop::Silence | Stop::End) => refused += 1,
            Err(Stop::Nonsense(what)) => sent.expect(false, || what.into()),
        }
        others.push(raw);
        // Those that there are go on.
        sent.answered(served[number % SERVED].call(&op::Ping {}));
    }
    sent.say(format!("{refused} of {CONNECTIONS} connections got no session"));
    sent.expect(refused >= CONNECTIONS - DESCRIPTORS, || "more sessions than descriptors".into());
    sent.expect(refused < CONNECTIONS, || "no session although there were descriptors".into());
    drop(others);
    // Who comes when others have gone is served.
    sent.answered(WireClient::open(few.address()).call(&op::MemGetInfo {}).map(drop));
    sent.is_right &= sent.refused() == 0;
    sent
}
