//! The record of sessions (`--audit FILE`): one JSON object a line, appended by a thread of its own, so that a slow disk holds up nobody.

use hipr_io::{Address, Audit, AuditEvent, Bucket, Detail, Rate, Who};
use hipr_tls::date_and_time;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tracing::{error, info, warn};

/// Maximum number of records that wait to be written; those that come then are lost, and counted.
const WAITING_MAX: usize = 4096;
/// Maximum length of words in a record, in bytes.
const WORDS_MAX_BYTES: usize = 512;
/// How many refusals are recorded one by one; those beyond are counted.
const REFUSALS: Rate = Rate { per_second: 10, burst: 100 };
/// Maximum number of reasons by which refusals are counted.
const REASONS_MAX: usize = 32;
/// Interval between records of refusals that were only counted.
const COUNTED_EVERY: Duration = Duration::from_secs(10);
/// Time after which what could not be written is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// Time that the last records may take at the end of the worker.
const END: Duration = Duration::from_secs(5);

/// An open file of records. The end of the worker has to [`close`](Self::close) it.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    listener: &'static str,
    started: Instant,
    state: Mutex<State>,
    /// Says that there is something to write, or that the writer has ended.
    changed: Condvar,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<String>,
    /// Number of records that were lost since it was last written.
    lost: u64,
    refusals: Bucket,
    /// Refusals that were only counted, by reason.
    counted: BTreeMap<Cow<'static, str>, u64>,
    /// Whether no more will come.
    is_closing: bool,
    /// Whether everything was written, after the last has come.
    is_done: bool,
}

/// Returns the word for the kind of a listener.
fn kind_of(listen: &Address, has_identity: bool) -> &'static str {
    match listen {
        Address::Tcp(_) if has_identity => "tls",
        Address::Tcp(_) | Address::Secured(_) => "tcp",
        Address::Unix(_) => "unix",
        Address::Shm(_) => "shm",
    }
}

impl AuditFile {
    /// Opens a file of records, and makes it for its owner only if there is none.
    ///
    /// # Errors
    /// It cannot be opened, or is not a file; the writer's thread cannot be made.
    pub(super) fn open(path: &Path, listen: &Address, has_identity: bool) -> Result<Arc<Self>, String> {
        let file = open(path)
            .map_err(|why| format!("cannot open the file of --audit, {}: {why}", path.display()))?;
        let state = State {
            waiting: VecDeque::new(),
            lost: 0,
            refusals: Bucket::new(REFUSALS, 0),
            counted: BTreeMap::new(),
            is_closing: false,
            is_done: false,
        };
        let audit = Arc::new(Self {
            path: path.to_owned(),
            listener: kind_of(listen, has_identity),
            started: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            writer: Mutex::default(),
        });
        let writing = Arc::clone(&audit);
        let writer = thread::Builder::new().name("hipr-audit".into()).spawn(move || writing.write(file));
        let writer = writer.map_err(|why| format!("cannot make the thread that writes records: {why}"))?;
        *audit.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        info!(file = %path.display(), "sessions are recorded");
        Ok(audit)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a record's line. JSON escapes what came from outside.
    fn line(&self, who: Option<&Who>, event: AuditEvent) -> String {
        let mut record = Map::new();
        record.insert("time".into(), time(SystemTime::now()).into());
        record.insert("event".into(), event.name().into());
        if let Some(who) = who {
            record.extend(who.session.map(|number| ("session".into(), number.into())));
            record.insert("peer".into(), who.peer.to_string().into());
            record.insert("listener".into(), self.listener.into());
            record.extend(who.key.map(|key| ("key".into(), key.to_string().into())));
            record.extend(who.tenant.as_deref().map(|tenant| ("tenant".into(), cut(tenant).into())));
        }
        record.extend(event.details().into_iter().map(|(name, detail)| (name.to_owned(), json(detail))));
        let mut line = Value::Object(record).to_string();
        line.push('\n');
        line
    }

    /// Keeps count of records that came and cannot be written.
    pub(super) fn count_lost(&self, count: u64) {
        self.lock().lost += count;
        self.changed.notify_all();
    }

    /// Writes what is left and ends the writer; says how many records could not be written.
    pub(super) fn close(&self) {
        self.lock().is_closing = true;
        self.changed.notify_all();
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, END, |state| !state.is_done);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if !state.is_done {
            let records = state.waiting.len() as u64 + state.lost;
            error!(records, file = %self.path.display(), "the last records of sessions could not be written");
            return;
        }
        drop(state);
        if let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It has ended; a panic was reported when it happened.
            let _ = writer.join();
        }
    }

    // ---- the writer --------------------------------------------------------------------------------------------------

    fn write(&self, mut file: File) {
        let mut counted = Instant::now();
        while let Some(lines) = self.next(&mut counted) {
            self.append(&mut file, lines.as_bytes());
        }
        self.lock().is_done = true;
        self.changed.notify_all();
    }

    /// Waits for records; `None` when there will be no more.
    fn next(&self, counted: &mut Instant) -> Option<String> {
        let mut state = self.lock();
        loop {
            let is_due = state.is_closing || counted.elapsed() >= COUNTED_EVERY;
            let mut lines: String = state.waiting.drain(..).collect();
            let lost = std::mem::take(&mut state.lost);
            let refused = if is_due { std::mem::take(&mut state.counted) } else { BTreeMap::new() };
            if is_due {
                *counted = Instant::now();
            }
            for (reason, count) in refused {
                let event = AuditEvent::Refusals { reason: Some(reason), count: Some(count) };
                lines.push_str(&self.line(None, event));
            }
            if lost > 0 {
                lines.push_str(&self.line(None, AuditEvent::Lost { count: Some(lost) }));
                warn!(
                    records = lost,
                    "records of sessions were lost: they came faster than they could be written"
                );
            }
            if !lines.is_empty() {
                return Some(lines);
            }
            if state.is_closing {
                return None;
            }
            // Something that is only counted is due without another record.
            let waits = if state.counted.is_empty() { Duration::from_secs(3600) } else { COUNTED_EVERY };
            let waited = self.changed.wait_timeout(state, waits);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Appends bytes, however long that takes; what was written of a line that did not fit is gone on with.
    fn append(&self, file: &mut File, mut bytes: &[u8]) {
        let mut has_failed = false;
        while !bytes.is_empty() {
            match file.write(bytes) {
                Ok(len) if len > 0 => {
                    bytes = bytes.get(len..).unwrap_or_default();
                    if std::mem::take(&mut has_failed) {
                        info!(file = %self.path.display(), "records of sessions are written again");
                    }
                    continue;
                }
                Err(why) if why.kind() == io::ErrorKind::Interrupted => continue,
                Ok(_) => self.fail(&mut has_failed, &io::ErrorKind::WriteZero.into()),
                Err(why) => self.fail(&mut has_failed, &why),
            }
            thread::sleep(RETRY);
        }
    }

    fn fail(&self, has_failed: &mut bool, why: &io::Error) {
        if !std::mem::replace(has_failed, true) {
            error!(file = %self.path.display(), %why, "cannot write records of sessions; they wait");
        }
    }
}

impl Audit for AuditFile {
    fn record(&self, who: &Who, event: AuditEvent) {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let AuditEvent::Refused { reason, .. } = &event {
            let state = &mut *self.lock();
            if !state.refusals.take(REFUSALS, now_ms) {
                // What a session's process says is a reason may be anything.
                let reason = reason.clone().unwrap_or_default();
                let is_known = state.counted.len() < REASONS_MAX || state.counted.contains_key(&reason);
                let reason = if is_known { reason } else { "other".into() };
                if state.counted.is_empty() {
                    self.changed.notify_all();
                }
                *state.counted.entry(reason).or_default() += 1;
                return;
            }
        }
        let line = self.line(Some(who), event);
        let mut state = self.lock();
        if state.waiting.len() < WAITING_MAX {
            state.waiting.push_back(line);
        } else {
            state.lost += 1;
        }
        drop(state);
        self.changed.notify_all();
    }
}

/// Opens the file to append to it, with a new line if it ends within one.
fn open(path: &Path) -> io::Result<File> {
    // A pipe would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let options =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).clone();
    let mut file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    if metadata.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// Returns the value of a detail.
pub(super) fn json(detail: Detail) -> Value {
    match detail {
        Detail::Number(number) => number.into(),
        Detail::Text(words) => cut(&words).into(),
    }
}

/// Cuts words that are too long.
fn cut(words: &str) -> &str {
    words.get(..words.floor_char_boundary(WORDS_MAX_BYTES)).unwrap_or(words)
}

/// Writes a time as RFC 3339 says, in UTC, with milliseconds.
fn time(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    format!("{}.{millis:03}Z", date_and_time(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hipr_io::Peer;

    #[test]
    fn times_are_those_of_rfc_3339() {
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (951_868_800, 1, "2000-03-01T00:00:00.001Z"),
            (1_709_164_800, 50, "2024-02-29T00:00:00.050Z"),
            (1_735_689_599, 0, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis);
            assert_eq!(time(at), expected);
        }
    }

    fn lines(path: &Path) -> Vec<Map<String, Value>> {
        let text = std::fs::read_to_string(path).expect("text");
        assert!(text.ends_with('\n'), "{text}");
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
    }

    fn refused(reason: &'static str) -> AuditEvent {
        AuditEvent::Refused { reason: Some(reason.into()), words: Some("x\n\"\u{1b}[2J".into()) }
    }

    #[test]
    fn what_came_from_outside_stays_in_its_line_and_many_refusals_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        std::fs::write(&path, "{\"half\":1}").expect("written");
        let audit = AuditFile::open(&path, &Address::new("unix:x"), false).expect("a file");
        let who = Who { tenant: Some("\n{}".repeat(1000)), ..Who::at(Peer::Local) };
        (0..1000).for_each(|_| audit.record(&who, refused("no-seat")));
        (0..100).for_each(|number| {
            let reason = format!("reason {number}").into();
            audit.record(&who, AuditEvent::Refused { reason: Some(reason), words: None });
        });
        audit.close();
        let lines = lines(&path);
        let one_by_one = lines.iter().filter(|line| line.get("event") == Some(&"refused".into())).count();
        assert!((100..150).contains(&one_by_one), "{one_by_one} refusals were recorded one by one");
        let counted = lines.iter().filter(|line| line.get("event") == Some(&"refusals".into()));
        let counts: Vec<_> = counted.map(|line| line["count"].as_u64().expect("a number")).collect();
        assert_eq!(counts.iter().sum::<u64>() + one_by_one as u64, 1100, "none is missing");
        assert!(counts.len() <= REASONS_MAX + 1, "{} reasons", counts.len());
        assert_eq!(lines[1]["words"], "x\n\"\u{1b}[2J");
        assert_eq!(lines[1]["tenant"].as_str().expect("text").len(), WORDS_MAX_BYTES);
        assert_eq!(lines[0]["half"], 1, "a line that was not ended is ended");
    }

    #[test]
    fn what_cannot_be_written_in_time_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let audit = AuditFile::open(&path, &Address::new("127.0.0.1"), true).expect("a file");
        let count = 3 * WAITING_MAX as u64;
        let who = Who::at(Peer::Local);
        {
            // The writer waits as for a disk that takes nothing.
            let mut state = audit.lock();
            let line = audit.line(Some(&who), AuditEvent::Begin {});
            state.waiting.extend(std::iter::repeat_n(line, WAITING_MAX));
        }
        (0..count).for_each(|_| audit.record(&who, AuditEvent::Begin {}));
        audit.close();
        let lines = lines(&path);
        let begun = lines.iter().filter(|line| line["event"] == "begin").count() as u64;
        let lost: u64 = lines.iter().filter_map(|line| line.get("count")?.as_u64()).sum();
        assert_eq!(begun + lost, count + WAITING_MAX as u64);
        assert!(lines.iter().all(|line| line["event"] != "begin" || line["listener"] == "tls"));
    }

    #[test]
    fn only_a_file_that_can_be_written_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("no folder").join("records");
        for path in [folder.path(), &missing, Path::new("/dev/null")] {
            let why = AuditFile::open(path, &Address::new("127.0.0.1"), true).expect_err("an error");
            assert!(why.contains(&path.display().to_string()), "{why}");
        }
    }
}
