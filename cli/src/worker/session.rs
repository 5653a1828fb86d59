//! A session in a process of its own: the supervisor's handle, and the process itself.

use super::Worker;
use super::borrowing::{Borrowing, Telling};
use super::device_time::{DeviceTime, Turnstile};
use super::ledger::{Asked, Asking, Books};
use super::metrics::{Counted, Counting, Metrics};
use super::records::Records;
use super::report::{Reporter, Reports};
use crate::device::{self, DeviceChoice, DeviceKind};
use hipr_io::{Address, Budget, Grant, Peer, Stream};
use hipr_io_shm::{Waits, pass, receive};
use hipr_tls::random_bytes;
use hipr_worker::{Io, Stats};
use mio::unix::pipe;
use mio::{Interest, Registry, Token};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;
use tracing::{debug, error, info, warn};

/// This program's executable, even if its file has been replaced since.
const PROGRAM: &str = "/proc/self/exe";
/// Raises the chance that the kernel kills a session's process, not the supervisor, when memory runs out.
const OOM_SCORE_ADJ: &str = "500";
/// Interval between checks whether the session has ended.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Interval at which a session's process writes what it has counted: what is counted in between is lost if it is killed.
const COUNT_EVERY: Duration = Duration::from_millis(500);

/// Returns the command that runs this program again with the same arguments and some more.
pub(super) fn again(more: impl IntoIterator<Item = OsString>) -> Command {
    let mut args = std::env::args_os();
    let mut command = Command::new(PROGRAM);
    command.arg0(args.next().unwrap_or_else(|| "hipr".into())).args(args).args(more);
    command
}

// ---- the supervisor's side -------------------------------------------------------------------------------------------

/// What the processes of sessions have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    /// The folder for what sessions share.
    pub(super) exchange: &'a Path,
    /// Who hears of what happens to sessions.
    pub(super) records: Option<&'a Arc<Records>>,
    /// What is counted, if somebody wants to know.
    pub(super) metrics: Option<&'a Arc<Metrics>>,
    /// Whether the supervisor may lend them their memory.
    pub(super) may_be_lent: bool,
    /// Who gives them their time of the emulated GPU.
    pub(super) device_time: Option<&'a DeviceTime>,
}

/// The process of a session. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Session {
    number: u64,
    peer: Peer,
    child: Child,
    /// The process's standard error.
    pub(super) words: pipe::Receiver,
    /// Whether its standard error may have something to read.
    pub(super) readable: bool,
    lines: Lines,
    told: bool,
    /// The pipe through which the process says when the client has proved its key, and what is to be recorded. It closes it when it has no
    /// more to say, or ends.
    entry: Option<pipe::Receiver>,
    /// Whether `entry` may have something to read.
    pub(super) speaks: bool,
    /// What it has said, if sessions are recorded.
    reports: Option<Reports>,
    /// The socket through which the process gets connections.
    control: UnixStream,
    /// The socket through which the process asks what the session may have of what all have together.
    pub(super) asked: Asked,
    /// The socket through which it is told that others need memory, if there may be a limit for several sessions.
    telling: Option<Telling>,
    /// What a connection says that is to be passed to the process; nobody can guess it.
    route: u64,
    /// The folder of the process's temporary files, which goes with it.
    _temporary: TempDir,
}

impl Session {
    /// Bytes of a session's output that are read in one turn.
    const TURN_BYTES: usize = 64 << 10;
    /// Maximum bytes of output that are read from an ended session.
    const LAST_BYTES: usize = 1 << 20;

    /// Starts a process for the client at the other end of `stream`; this process keeps no copy of the connection. Temporary files of the
    /// process are in a folder of its own within `shared.exchange`.
    pub(super) fn start(
        number: u64,
        peer: Peer,
        stream: OwnedFd,
        shared: Shared<'_>,
        more: impl IntoIterator<Item = OsString>,
    ) -> io::Result<Self> {
        let mut command = again(more);
        let temporary = tempfile::Builder::new().prefix("temporary-").tempdir_in(shared.exchange)?;
        command.env("TMPDIR", temporary.path());
        command.args(["--session-of", &std::process::id().to_string()]);
        let (control, given) = UnixStream::pair()?;
        let (asked, asking) = Asked::pair(peer)?;
        let route = random_route()?;
        // What is not given here is closed in the child: all descriptors are opened close-on-exec.
        let mut child = command
            .stdin(Stdio::from(OwnedFd::from(given)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        drop(command);
        let words = child.stderr.take().ok_or(ErrorKind::BrokenPipe)?;
        let words = pipe::Receiver::from(words);
        words.set_nonblocking(true)?;
        let entry = child.stdout.take().map(pipe::Receiver::from);
        entry.as_ref().map_or(Ok(()), |entry| entry.set_nonblocking(true))?;
        pass(&control, &[IoSlice::new(&route.to_le_bytes())], &stream)?;
        pass(&control, &[IoSlice::new(&route.to_le_bytes())], &asking)?;
        let mut telling = None;
        if shared.may_be_lent {
            let (socket, told) = Telling::pair()?;
            pass(&control, &[IoSlice::new(&route.to_le_bytes())], &told)?;
            telling = Some(socket);
        }
        if let Some(device_time) = shared.device_time {
            let given = device_time.admit(number)?;
            pass(&control, &[IoSlice::new(&route.to_le_bytes())], &given.socket)?;
            pass(&control, &[IoSlice::new(&route.to_le_bytes())], given.page)?;
        }
        let counted = shared.metrics.map(|_| Counted::make()).transpose()?;
        if let Some((_, given)) = &counted {
            pass(&control, &[IoSlice::new(&route.to_le_bytes())], given)?;
        }
        if let (Some(metrics), Some((counted, _))) = (shared.metrics, counted) {
            metrics.add_process(number, counted);
        }
        info!(session = number, %peer, pid = child.id(), "session started");
        let (readable, lines, told, speaks) = (true, Lines::default(), false, true);
        let reports = shared.records.map(|records| Reports::new(Arc::clone(records), number, peer));
        Ok(Self {
            number,
            peer,
            child,
            words,
            readable,
            lines,
            told,
            entry,
            speaks,
            reports,
            control,
            asked,
            telling,
            route,
            _temporary: temporary,
        })
    }

    /// Has the poll notice what the process says.
    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.words, token, Interest::READABLE)?;
        if let Some(socket) = &mut self.asked.socket {
            registry.register(socket, token, Interest::READABLE)?;
        }
        match self.entry.as_mut().filter(|_| self.reports.is_some()) {
            Some(entry) => registry.register(entry, token, Interest::READABLE),
            None => Ok(()),
        }
    }

    /// Returns the route of connections that go on with the session.
    pub(super) fn route(&self) -> u64 {
        self.route
    }

    /// Passes the process a connection that is to go on with the session; this process keeps no copy.
    ///
    /// # Errors
    /// The process does not take it.
    pub(super) fn hand(&self, stream: OwnedFd) -> io::Result<()> {
        pass(&self.control, &[IoSlice::new(&self.route.to_le_bytes())], &stream).map(drop)
    }

    /// Returns whether the client has not yet been let in, as far as the process has said.
    pub(super) fn is_at_door(&mut self) -> bool {
        self.listen(Self::TURN_BYTES);
        self.entry.is_some() && !self.reports.as_ref().is_some_and(Reports::is_admitted)
    }

    /// Reads what the process has to say to the supervisor.
    fn listen(&mut self, mut budget: usize) {
        let mut bytes = [0; 1024];
        while budget > 0 {
            match self.entry.as_mut().map(|entry| entry.read(&mut bytes)) {
                // It may also be a library's words on its way to start.
                Some(Ok(len)) if len > 0 => {
                    budget = budget.saturating_sub(len);
                    self.reports
                        .iter_mut()
                        .for_each(|reports| reports.push(bytes.get(..len).unwrap_or_default()));
                }
                Some(Err(why)) if why.kind() == ErrorKind::Interrupted => {}
                Some(Err(why)) if why.kind() == ErrorKind::WouldBlock => {
                    self.speaks = false;
                    return;
                }
                _ => {
                    (self.entry, self.speaks) = (None, false);
                    return;
                }
            }
        }
    }

    /// Passes on the session's output and answers what its process asks, at most a turn's worth.
    pub(super) fn relay(&mut self, books: &mut Books, now_ms: u64) {
        self.asked.turn(books, now_ms);
        self.read(Self::TURN_BYTES);
        if self.speaks && self.reports.is_some() {
            self.listen(Self::TURN_BYTES);
        }
    }

    /// Tells the process whether others need memory.
    pub(super) fn tell(&mut self, books: &mut Books) {
        if let Some(telling) = &mut self.telling {
            telling.tell(books.memory.take_words(self.asked.borrower()));
        }
    }

    /// Returns whether there may be something to pass on.
    pub(super) fn is_ready(&self) -> bool {
        let is_asked = self.asked.is_ready && self.asked.socket.is_some();
        self.readable || is_asked || self.speaks && self.reports.is_some()
    }

    fn read(&mut self, mut budget: usize) {
        let mut buffer = [0; 8 << 10];
        while self.readable && budget > 0 {
            match self.words.read(&mut buffer) {
                Ok(0) => self.readable = false,
                Ok(len) => {
                    budget = budget.saturating_sub(len);
                    self.lines.push(buffer.get(..len).unwrap_or_default(), |line| say(self.number, line));
                }
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.readable = false,
            }
        }
    }

    /// Asks the process to end.
    pub(super) fn terminate(&mut self) {
        self.told = true;
        // It was not waited for, so the number is still its own; it may be dead already.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) {
        self.told = true;
        warn!(session = self.number, peer = %self.peer, "killing a session that did not end when asked to");
        let _ = self.child.kill();
    }

    /// Kills the process of a client that has not proved its key.
    pub(super) fn turn_away(&mut self) {
        self.told = true;
        self.reports.iter().for_each(Reports::turn_away);
        info!(session = self.number, peer = %self.peer, "connection closed: too many clients that have not proved their keys");
        let _ = self.child.kill();
    }

    /// Returns the client.
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Returns the number of the session, from 1 on.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Checks whether the process has ended; if so, logs how, and removes it from the system's process table.
    pub(super) fn reap(&mut self) -> bool {
        let status = match self.child.try_wait() {
            Ok(None) => return false,
            Ok(Some(status)) => status,
            Err(why) => {
                warn!(session = self.number, %why, "cannot wait for a session's process");
                return true;
            }
        };
        self.readable = true;
        self.read(Self::LAST_BYTES);
        self.lines.end(|line| say(self.number, line));
        self.listen(Self::LAST_BYTES);
        let (session, peer, end) = (self.number, self.peer, describe(status));
        self.reports.iter_mut().for_each(|reports| reports.end(&end));
        if status.success() || self.told {
            info!(session, %peer, end, "session ended");
        } else {
            let last_words = self.lines.last();
            warn!(session, %peer, end, last_words, "session process failed");
        }
        true
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Both do nothing for one that was reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints a line of a session on standard error.
fn say(session: u64, line: &str) {
    // A log that cannot be written is no reason to end sessions.
    let _ = writeln!(io::stderr().lock(), "session {session}: {line}");
}

/// Describes how a process ended.
pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal);
            let core = if status.core_dumped() { ", with a core dump" } else { "" };
            name.map_or_else(|| format!("signal {signal}{core}"), |name| format!("{name}{core}"))
        }
        (None, None) => status.to_string(),
    }
}

/// Splits a process's output into lines and keeps the last ones.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
    last: VecDeque<String>,
}

impl Lines {
    const LINE_MAX_BYTES: usize = 2048;
    const LAST: usize = 4;

    fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        for &byte in bytes {
            if byte == b'\n' || self.partial.len() >= Self::LINE_MAX_BYTES {
                self.flush(&mut line);
            }
            if byte != b'\n' {
                self.partial.push(byte);
            }
        }
    }

    /// Handles the end of the output.
    fn end(&mut self, mut line: impl FnMut(&str)) {
        self.flush(&mut line);
    }

    fn flush(&mut self, line: &mut impl FnMut(&str)) {
        let text = String::from_utf8_lossy(&self.partial);
        // A terminal must not take orders from a client.
        let clean = |c: char| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c };
        let text: String = text.trim_end().chars().map(clean).collect();
        self.partial.clear();
        if text.is_empty() {
            return;
        }
        line(&text);
        if self.last.len() == Self::LAST {
            self.last.pop_front();
        }
        self.last.push_back(text);
    }

    /// Joins the last lines.
    fn last(&self) -> String {
        self.last.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }
}

// ---- the process itself ----------------------------------------------------------------------------------------------

/// Serves the client whose connection comes through standard input, until it disconnects, a signal arrives, or the supervisor ends.
pub(super) fn serve(options: &Worker, supervisor: i32) -> Result<ExitCode, String> {
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|why| format!("cannot tie the process's end to the supervisor's: {why}"))?;
    if getppid().map(Pid::as_raw_nonzero).is_none_or(|pid| pid.get() != supervisor) {
        return Err("the supervisor has ended".into());
    }
    if let Err(why) = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ) {
        debug!(%why, "cannot set oom_score_adj");
    }
    let lost = |why: io::Error| format!("cannot take over the connection: {why}");
    let control = take_stdin().map_err(lost)?;
    let (route, stream) = take_connection(&control, &options.listen).map_err(lost)?;
    let (_, asking) = take_passed(&control).map_err(lost)?;
    let asking = Arc::new(Asking::new(asking));
    let told = options
        .may_lend_memory()
        .then(|| take_passed(&control).map(|(_, told)| told))
        .transpose()
        .map_err(lost)?;
    let turnstile = take_turnstile(&control, options.device).map_err(lost)?.map(Arc::new);
    let counting = options.metrics.is_some().then(|| take_passed(&control)).transpose().map_err(lost)?;
    let counting = counting.map(|(_, given)| Counting::new(&given)).transpose().map_err(lost)?.map(Arc::new);
    let is_recorded = options.has_records();
    let reporter =
        Reporter::new(is_recorded).map_err(|why| format!("cannot tell the supervisor of a client: {why}"))?;
    let reporter = Arc::new(reporter);
    let (tells, named, bounded) = (Arc::clone(&reporter), turnstile.clone(), Arc::clone(&asking));
    let on_entry = move |grant: &Grant| {
        grant
            .memory_total_bytes
            .into_iter()
            .for_each(|bytes| bounded.bound_memory(grant.tenant_number(), bytes));
        named.iter().for_each(|turnstile| turnstile.name(grant.tenant_number(), grant.weight));
        tells.tell_entry();
    };
    let identity = options.access.identity(Some(Box::new(on_entry)), Some(asking.clone()), None)?;
    options.sandbox.enter(options.reach())?;
    let choice = DeviceChoice { is_one_session: true, ..options.device_choice() };
    let device = match turnstile {
        Some(turnstile) => device::open_sim(&choice, Some(turnstile)),
        None => device::open(&choice),
    };
    let device = device.map_err(|why| why.to_string())?;
    let mut config = options.config(device, identity);
    if is_recorded {
        config.limits.audit = Some(reporter);
    }
    if options.sandbox.is_on() && config.io == Io::Auto {
        // A ring's requests pass by the filter of system calls.
        config.io = Io::Mio;
    }
    if let Some(told) = told {
        let asks = Arc::clone(&asking);
        let ask = Box::new(move |kind, amount| asks.ask_plainly(kind, amount));
        let lender = Borrowing::start(ask, told);
        config.limits.budget = Arc::new(match options.limits.memory_total_bytes() {
            Some(_) => Budget::lent_by(lender),
            None => Budget::lent_to_tenants_by(lender),
        });
    }
    config.limits.ledger = Some(asking);
    config.limits.resume_route = route;
    // Further ones only go on with its session.
    config.limits.connections_max = 1;
    match hipr_worker::Worker::for_connection(config, stream) {
        Err(why) if why.kind() == ErrorKind::NotConnected => Ok(ExitCode::SUCCESS),
        Err(why) => Err(format!("cannot serve the connection: {why}")),
        Ok(worker) => {
            let (door, accepted_at) = (worker.door(), options.listen.clone());
            thread::spawn(move || {
                while let Ok((_, stream)) = take_connection(&control, &accepted_at) {
                    door.hand(stream);
                }
            });
            let stats = worker.stats();
            watch(stats.clone(), Duration::from_millis(options.release_timeout_ms));
            counting.iter().for_each(|counting| count(Arc::clone(counting), stats.clone()));
            let served = super::serve(worker, None);
            counting.iter().for_each(|counting| counting.write(&stats));
            served.map(|()| super::end(options.device))
        }
    }
}

/// Returns whether the sessions' processes share the time of a device among themselves; else its driver does, or there is none to share.
pub(super) fn shares_time(kind: DeviceKind) -> bool {
    kind == DeviceKind::Sim
}

fn take_turnstile(control: &UnixStream, kind: DeviceKind) -> io::Result<Option<Turnstile>> {
    if !shares_time(kind) {
        return Ok(None);
    }
    let (_, socket) = take_passed(control)?;
    let (_, page) = take_passed(control)?;
    Turnstile::new(socket, &page).map(Some)
}

/// Kills this process when it outlives its connection for too long, because a driver can hang while it releases what the
/// session owned.
fn watch(stats: Stats, timeout: Duration) {
    thread::spawn(move || {
        let is_over = || {
            let counts = stats.io();
            counts.connections_closed > 0 && counts.connections_closed >= counts.connections_opened
        };
        while !is_over() {
            thread::sleep(WATCH_EVERY);
        }
        thread::sleep(timeout);
        error!(?timeout, "killing the session process: releasing its resources takes too long");
        let _ = kill_process(getpid(), Signal::KILL);
    });
}

/// Tells the supervisor again and again what was counted so far; what was counted at the end is told besides.
fn count(counting: Arc<Counting>, stats: Stats) {
    thread::spawn(move || {
        loop {
            counting.write(&stats);
            thread::sleep(COUNT_EVERY);
        }
    });
}

/// Takes the supervisor's socket from standard input, which is then empty for all libraries in this process.
fn take_stdin() -> io::Result<UnixStream> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(socket.into())
}

/// Waits for a connection that the supervisor passes; returns it with the session's route.
fn take_connection(control: &UnixStream, accepted_at: &Address) -> io::Result<(u64, Stream)> {
    let (route, socket) = take_passed(control)?;
    let stream = match accepted_at {
        Address::Tcp(_) | Address::Secured(_) => TcpStream::from(socket).into(),
        Address::Unix(_) => UnixStream::from(socket).into(),
        Address::Shm(_) => Stream::Shm(socket.into()),
    };
    Ok((route, stream))
}

/// Waits for a socket that the supervisor passes; returns it with the session's route.
fn take_passed(control: &UnixStream) -> io::Result<(u64, OwnedFd)> {
    let (mut route, mut socket) = ([0; 8], None);
    let len = receive(control, &mut route, &mut socket, Waits::ForAll)?;
    let socket = socket.filter(|_| len == route.len()).ok_or(ErrorKind::UnexpectedEof)?;
    Ok((u64::from_le_bytes(route), socket))
}

/// Returns a number that nobody can guess, and that is not 0.
fn random_route() -> io::Result<u64> {
    Ok(u64::from_le_bytes(random_bytes()?).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_into_lines_and_the_last_are_kept() {
        let mut lines = Lines::default();
        let mut heard = Vec::new();
        for piece in ["one\ntw", "o\n\n", "three\nfour\nfi", "ve\nevil \x1b[2Jline\r\nsix"] {
            lines.push(piece.as_bytes(), |line| heard.push(line.to_owned()));
        }
        lines.end(|line| heard.push(line.to_owned()));
        assert_eq!(heard, ["one", "two", "three", "four", "five", "evil \u{fffd}[2Jline", "six"]);
        assert_eq!(lines.last(), "four | five | evil \u{fffd}[2Jline | six");
    }

    #[test]
    fn a_line_without_an_end_is_cut() {
        let mut lines = Lines::default();
        let mut lengths = Vec::new();
        lines.push(&[b'x'; 5000], |line| lengths.push(line.len()));
        lines.push(&[0xff; 3], |_| ());
        assert_eq!(lengths, [2048, 2048]);
        assert_eq!(lines.partial.len(), 5000 - 4096 + 3);
    }

    #[test]
    fn ends_are_named() {
        assert_eq!(describe(ExitStatus::from_raw(0x0700)), "exit code 7");
        assert_eq!(describe(ExitStatus::from_raw(11)), "SIGSEGV");
        assert_eq!(describe(ExitStatus::from_raw(0x80 | 6)), "SIGABRT, with a core dump");
        assert_eq!(describe(ExitStatus::from_raw(60)), "signal 60");
    }
}
