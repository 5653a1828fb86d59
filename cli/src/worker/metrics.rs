//! What a worker counts, for Prometheus (`--metrics ADDR:PORT`), and whether it lives and takes sessions.
//!
//! Nothing is counted here while requests are carried out: the worker's counters are read when somebody asks. What happens to sessions is
//! heard as the record of sessions hears it ([`super::records`]). Where each session has a process, the process writes its numbers into
//! memory that the supervisor reads ([`counts`]).

mod counts;
mod http;
mod sessions;
mod table;

use counts::Counts;
pub(super) use counts::{Counted, Counting};
use hipr_io::{AuditEvent, Who};
use hipr_worker::Stats;
pub(crate) use sessions::{SessionRow, Sessions};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{io, thread};
use tracing::{error, info};

/// Maximum number of reasons by which ends or refusals are counted, and maximum length of one in bytes.
const REASONS_MAX: usize = 32;
const REASON_MAX_BYTES: usize = 32;
/// Reason of what has none of those.
const OTHER: &str = "other";
/// Maximum number of tenants whose memory is said, and maximum length of a name in characters.
const TENANTS_MAX: usize = 100;
const TENANT_MAX: usize = 128;
/// What stands for sessions of nobody who has a name, and for the tenants beyond those: no name of a tenant has parentheses.
pub(crate) const NOBODY: &str = "(none)";
const OTHERS: &str = "(others)";

/// Reads the address of `--metrics`. Without one it is this machine's own.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse().ok();
    let address = port.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    address.or_else(|| text.parse().ok()).ok_or_else(|| "it is ADDR:PORT, or PORT on loopback".into())
}

/// What is known of a worker's sessions and of its numbers.
#[derive(Debug)]
pub(super) struct Metrics {
    state: Mutex<State>,
    seats: usize,
    /// The seats that are taken, as the supervisor has said.
    seats_taken: AtomicUsize,
    is_draining: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    begun: u64,
    resumed: u64,
    ended: Reasons,
    refused: Reasons,
    /// By the number of the session.
    sessions: BTreeMap<u64, Living>,
    source: Source,
}

/// Where numbers come from.
#[derive(Debug, Default)]
enum Source {
    /// There are none, as the worker does not serve yet.
    #[default]
    Nothing,
    /// From the worker, which has all sessions.
    Worker(Stats),
    /// From the processes of sessions.
    Processes {
        /// By the number of the session.
        living: BTreeMap<u64, Counted>,
        /// The sum of those that have ended.
        ended: Box<Counts>,
    },
}

/// A session that has begun and not ended.
#[derive(Debug)]
struct Living {
    tenant: Option<String>,
    /// The client's end.
    from: String,
    since: Instant,
    is_parked: bool,
}

/// Counts by reason, of which a session's process can make up any.
#[derive(Clone, Debug, Default)]
struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    fn count(&mut self, reason: &str) {
        let is_word = (1..=REASON_MAX_BYTES).contains(&reason.len())
            && reason.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        let is_known = self.0.len() < REASONS_MAX || self.0.contains_key(reason);
        let reason = if is_word && is_known { reason } else { OTHER };
        *self.0.entry(reason.to_owned()).or_default() += 1;
    }

    fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(reason, count)| (reason.as_str(), *count))
    }
}

/// What is known at one time.
#[derive(Debug, Default)]
struct Snapshot {
    counts: Counts,
    sessions: u64,
    parked: u64,
    begun: u64,
    resumed: u64,
    ended: Reasons,
    refused: Reasons,
    /// Bytes of memory by tenant.
    memory: BTreeMap<String, u64>,
    seats: usize,
    seats_taken: usize,
    /// Why no sessions are taken, if so.
    unready: Option<&'static str>,
}

/// Returns the bytes of memory by tenant, those of the tenants that have most of it by name.
fn by_tenant(memory: impl Iterator<Item = (String, u64)>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::<_, u64>::new();
    for (tenant, bytes) in memory {
        let sum = sums.entry(tenant).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let mut most: Vec<_> = sums.into_iter().collect();
    most.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let rest = most.split_off(most.len().min(TENANTS_MAX));
    let others = rest.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes));
    most.into_iter().chain((!rest.is_empty()).then(|| (OTHERS.to_owned(), others))).collect()
}

impl Metrics {
    /// Listens at an address, for a worker with so many seats; what is asked there is answered by a thread of its own.
    ///
    /// # Errors
    /// The address is in use, or may not be used; there can be no thread.
    pub(super) fn serve(at: SocketAddr, seats: usize) -> Result<Arc<Self>, String> {
        let fails = |why: io::Error| format!("cannot listen at {at} for --metrics: {why}");
        let listener = TcpListener::bind(at).map_err(fails)?;
        let address = listener.local_addr().map_err(fails)?;
        let mut server = http::Server::new(listener).map_err(fails)?;
        let metrics = Arc::new(Self::new(seats));
        let known = Arc::clone(&metrics);
        let run = move || {
            if let Err(why) = server.run(&|path| known.page(path)) {
                error!(%why, "metrics are no longer served");
            }
        };
        thread::Builder::new().name("hipr-metrics".into()).spawn(run).map_err(fails)?;
        info!("metrics at http://{address}/metrics");
        Ok(metrics)
    }

    fn new(seats: usize) -> Self {
        let (state, seats_taken, is_draining) = Default::default();
        Self { state, seats, seats_taken, is_draining }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the numbers of a worker that has all sessions, and that serves from now on.
    pub(super) fn read_worker(&self, stats: Stats) {
        self.lock().source = Source::Worker(stats);
    }

    /// Reads the numbers of processes, which are started from now on.
    pub(super) fn read_processes(&self) {
        self.lock().source = Source::Processes { living: BTreeMap::new(), ended: Box::default() };
    }

    /// Adds the process of a session.
    pub(super) fn add_process(&self, session: u64, counted: Counted) {
        if let Source::Processes { living, .. } = &mut self.lock().source {
            living.insert(session, counted);
        }
    }

    /// Handles that the process of a session has ended.
    pub(super) fn end_process(&self, session: u64) {
        if let Source::Processes { living, ended } = &mut self.lock().source
            && let Some(counted) = living.remove(&session)
        {
            ended.add(counted.read_last());
        }
    }

    /// Says how many seats are taken, where the worker's loop does not count them.
    pub(super) fn set_seats_taken(&self, count: usize) {
        self.seats_taken.store(count, Relaxed);
    }

    /// Says that the worker shuts down.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
    }

    /// Counts what happens to sessions.
    pub(super) fn count(&self, who: &Who, event: &AuditEvent) {
        let mut state = self.lock();
        let state = &mut *state;
        let mut session = who.session.and_then(|number| state.sessions.get_mut(&number));
        match event {
            AuditEvent::Begin {} => {
                state.begun += 1;
                let tenant = who.tenant.as_ref().map(|name| name.chars().take(TENANT_MAX).collect());
                let living =
                    Living { tenant, from: who.peer.to_string(), since: Instant::now(), is_parked: false };
                state.sessions.extend(who.session.map(|number| (number, living)));
            }
            AuditEvent::Park { .. } => session.iter_mut().for_each(|session| session.is_parked = true),
            AuditEvent::Resume { .. } => {
                state.resumed += 1;
                session.iter_mut().for_each(|session| session.is_parked = false);
            }
            AuditEvent::End { kind, .. } => {
                state.ended.count(kind.as_deref().unwrap_or_default());
                who.session.iter().for_each(|number| drop(state.sessions.remove(number)));
            }
            AuditEvent::Refused { reason, .. } => {
                state.refused.count(reason.as_deref().unwrap_or_default());
            }
            // These are of the file.
            AuditEvent::Refusals { .. } | AuditEvent::Lost { .. } => {}
        }
    }

    fn snapshot(&self) -> Snapshot {
        let mut state = self.lock();
        let state = &mut *state;
        let mut seats_taken = self.seats_taken.load(Relaxed);
        let (counts, sessions) = match &mut state.source {
            Source::Nothing => Default::default(),
            Source::Worker(stats) => {
                seats_taken = usize::try_from(stats.io().connections()).unwrap_or(usize::MAX);
                (Counts::of(stats), stats.sessions())
            }
            Source::Processes { living, ended } => {
                let (mut counts, mut sessions) = (Counts::clone(ended), Vec::new());
                for (&session, counted) in living {
                    let read = counted.read();
                    sessions.push(read.of_session(session));
                    counts.add(read);
                }
                (counts, sessions)
            }
        };
        let tenant = |session| state.sessions.get(&session)?.tenant.clone();
        let memory = sessions
            .iter()
            .map(|session| (tenant(session.number).unwrap_or(NOBODY.into()), session.memory_bytes));
        let memory = by_tenant(memory);
        Snapshot {
            counts,
            sessions: state.sessions.len() as u64,
            parked: state.sessions.values().filter(|session| session.is_parked).count() as u64,
            begun: state.begun,
            resumed: state.resumed,
            ended: state.ended.clone(),
            refused: state.refused.clone(),
            memory,
            seats: self.seats,
            seats_taken,
            unready: if self.is_draining.load(Relaxed) {
                Some("draining: the worker shuts down")
            } else if matches!(state.source, Source::Nothing) {
                Some("starting: the worker does not listen yet")
            } else {
                (seats_taken >= self.seats).then_some("full: all seats are taken")
            },
        }
    }

    /// Returns what is known of each session.
    fn sessions(&self) -> sessions::Sessions {
        let mut state = self.lock();
        let state = &mut *state;
        let counts = match &mut state.source {
            Source::Nothing => Vec::new(),
            Source::Worker(stats) => stats.sessions(),
            Source::Processes { living, .. } => {
                living.iter_mut().map(|(&session, counted)| counted.read().of_session(session)).collect()
            }
        };
        let counts = counts.into_iter().map(|counts| (counts.number, counts)).collect();
        sessions::Sessions::new(self.seats, &state.sessions, &counts)
    }

    /// Answers who asks for a page.
    fn page(&self, path: &str) -> http::Answer {
        match path {
            "/metrics" => match table::text(&self.snapshot()) {
                Ok(text) => http::Answer::metrics(text),
                Err(why) => http::Answer::words(500, &why.to_string()),
            },
            "/sessions" => match serde_json::to_vec(&self.sessions()) {
                Ok(text) => http::Answer::json(text),
                Err(why) => http::Answer::words(500, &why.to_string()),
            },
            "/healthz" => http::Answer::words(200, "live"),
            "/readyz" => match self.snapshot().unready {
                None => http::Answer::words(200, "ready"),
                Some(why) => http::Answer::words(503, why),
            },
            _ => http::Answer::words(404, "there are /metrics, /sessions, /healthz and /readyz"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hipr_io::Peer;

    fn who(session: u64, tenant: &str) -> Who {
        Who { session: Some(session), tenant: Some(tenant.to_owned()), ..Who::at(Peer::Local) }
    }

    fn end(kind: &str) -> AuditEvent {
        let (reason, received_bytes, sent_bytes, requests, device_ns) = Default::default();
        let kind = Some(kind.to_owned().into());
        AuditEvent::End { kind, reason, received_bytes, sent_bytes, requests, device_ns }
    }

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(table::text(&metrics.snapshot()).expect("names")).expect("text")
    }

    #[test]
    fn an_address_without_a_machine_is_this_machines_own() {
        for (said, expected) in [
            ("9100", Some("127.0.0.1:9100")),
            (":9100", Some("127.0.0.1:9100")),
            ("0.0.0.0:9100", Some("0.0.0.0:9100")),
            ("[::1]:9100", Some("[::1]:9100")),
            ("10.0.0.7:0", Some("10.0.0.7:0")),
            ("", None),
            (":", None),
            ("70000", None),
            ("gpu:9100", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(address(said).ok().map(|at| at.to_string()).as_deref(), expected, "{said}");
        }
    }

    #[test]
    fn sessions_are_counted_from_begin_to_end() {
        let metrics = Metrics::new(8);
        let (from, reason) = (None, None);
        // What happens, and how many sessions there are, how many of them parked, and how often one went on.
        for (session, event, expected) in [
            (1, AuditEvent::Begin {}, (1, 0, 0)),
            (2, AuditEvent::Begin {}, (2, 0, 0)),
            (1, AuditEvent::Park { reason: reason.clone() }, (2, 1, 0)),
            (1, AuditEvent::Park { reason: reason.clone() }, (2, 1, 0)),
            (1, AuditEvent::Resume { from }, (2, 0, 1)),
            (2, AuditEvent::Park { reason }, (2, 1, 1)),
            (2, end("not-resumed"), (1, 0, 1)),
            (1, end("closed"), (0, 0, 1)),
        ] {
            metrics.count(&who(session, "ann"), &event);
            let now = metrics.snapshot();
            assert_eq!((now.sessions, now.parked, now.resumed), expected, "{event:?}");
        }
        let text = text(&metrics);
        for line in [
            "hipr_sessions_begun_total 2",
            "hipr_sessions_ended_total{reason=\"closed\"} 1",
            "hipr_sessions_ended_total{reason=\"not-resumed\"} 1",
        ] {
            assert!(text.lines().any(|said| said == line), "{line} is missing:\n{text}");
        }
    }

    /// What comes from a session's process can be anything.
    #[test]
    fn labels_are_few_short_and_escaped() {
        let metrics = Metrics::new(8);
        metrics.read_processes();
        for number in 0..1000 {
            let made_up: String = format!("{number}").bytes().map(|digit| char::from(digit + 49)).collect();
            metrics.count(
                &Who::at(Peer::Local),
                &AuditEvent::Refused { reason: Some(made_up.into()), words: None },
            );
        }
        for reason in ["", "x y", "\"} 1\nhipr_ready 7", "\u{e4}", &"x".repeat(REASON_MAX_BYTES + 1)] {
            metrics.count(&who(1, "ann"), &end(reason));
        }
        let mut kept = Vec::new();
        for number in 0..300 {
            let (counted, given) = Counted::make().expect("memory");
            metrics.add_process(number, counted);
            let name = format!("{number}\"}} 1\nhipr_ready 7\\ {}", "x".repeat(600));
            metrics.count(&who(number, &name), &AuditEvent::Begin {});
            kept.push(given);
        }
        let text = text(&metrics);
        let of = |name: &str| text.lines().filter(|line| line.starts_with(&format!("{name}{{"))).count();
        assert_eq!(of("hipr_refusals_total"), REASONS_MAX + 1);
        assert!(text.contains("hipr_sessions_ended_total{reason=\"other\"} 5\n"), "{text}");
        assert_eq!(of("hipr_memory_bytes"), TENANTS_MAX + 1);
        let ready: Vec<_> = text.lines().filter(|line| line.starts_with("hipr_ready ")).collect();
        assert_eq!(ready, ["hipr_ready 1"], "a line was forged");
        assert!(text.lines().all(|line| line.len() < 512));
    }

    #[test]
    fn what_ended_processes_have_counted_stays() {
        let metrics = Metrics::new(8);
        metrics.read_processes();
        let stats = Stats::default();
        let sent = stats.io_counters();
        let mut expected = 0;
        for session in 1..5 {
            let (counted, given) = Counted::make().expect("memory");
            let counting = Counting::new(&given).expect("mapped");
            metrics.add_process(session, counted);
            hipr_io::Stats::add(&sent.sent_bytes, session);
            counting.write(&stats);
            expected += stats.io().sent_bytes;
            assert_eq!(metrics.snapshot().counts.io.sent_bytes, expected);
            if session % 2 == 0 {
                metrics.end_process(session);
                metrics.end_process(session);
            }
            assert_eq!(metrics.snapshot().counts.io.sent_bytes, expected);
        }
    }

    #[test]
    fn who_begins_or_drains_or_is_full_is_not_ready() {
        let metrics = Metrics::new(2);
        assert_eq!(metrics.page("/readyz").status, 503, "it does not listen yet");
        metrics.read_processes();
        // The seats that are taken, whether the worker shuts down, and what is answered.
        for (taken, drains, status, words) in [
            (0, false, 200, "ready"),
            (1, false, 200, "ready"),
            (2, false, 503, "full"),
            (1, false, 200, "ready"),
            (3, false, 503, "full"),
            (1, true, 503, "draining"),
            (2, true, 503, "draining"),
        ] {
            metrics.set_seats_taken(taken);
            if drains {
                metrics.drain();
            }
            let answer = metrics.page("/readyz");
            assert!(answer.status == status && answer.text.starts_with(words.as_bytes()), "{answer:?}");
            assert_eq!(metrics.page("/healthz").status, 200);
            let line = format!("hipr_ready {}\n", u8::from(status == 200));
            assert!(text(&metrics).contains(&line), "{line}");
        }
    }
}
