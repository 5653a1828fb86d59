//! What the process of a session tells the supervisor for the record of sessions: a JSON object a line, through a pipe.
//!
//! The process says what it alone knows: key, tenant, bytes, device time. Time, number and address are the supervisor's, so whoever has
//! taken over a process can lie about that session only.

use super::audit::json;
use super::records::Records;
use hipr_io::{Audit, AuditEvent, Detail, Peer, Who};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::warn;

/// Maximum length of a line in bytes, and maximum number of lines of a session.
const LINE_MAX_BYTES: usize = 8 << 10;
const LINES_MAX: u64 = 4096;
/// What is said when the client was let in.
const ENTRY: &str = "entry";

// ---- the process's side ----------------------------------------------------------------------------------------------

/// The end of the pipe that standard output was: tells the supervisor that the client was let in, and, if sessions are recorded, all else.
#[derive(Debug)]
pub(super) struct Reporter {
    pipe: Mutex<Option<File>>,
    is_recorded: bool,
}

impl Reporter {
    /// Takes the pipe from standard output, which is then nothing for all libraries in this process.
    pub(super) fn new(is_recorded: bool) -> io::Result<Self> {
        let pipe: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
        Ok(Self { pipe: Mutex::new(Some(pipe.into())), is_recorded })
    }

    /// Tells that the client was let in.
    pub(super) fn tell_entry(&self) {
        if self.is_recorded {
            self.say(Map::from_iter([("event".to_owned(), ENTRY.into())]));
        } else {
            self.pipe.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    fn say(&self, line: Map<String, Value>) {
        let line = format!("{}\n", Value::Object(line));
        let pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        // It takes more than a session has to say. A supervisor that is gone takes this process along.
        if let Some(Err(why)) = pipe.as_ref().map(|mut pipe| pipe.write_all(line.as_bytes())) {
            warn!(%why, "cannot tell the supervisor what to record");
        }
    }
}

impl Audit for Reporter {
    fn record(&self, who: &Who, event: AuditEvent) {
        let mut line = Map::from_iter([("event".to_owned(), event.name().into())]);
        line.extend(who.key.map(|key| ("key".to_owned(), key.to_string().into())));
        line.extend(who.tenant.clone().map(|tenant| ("tenant".to_owned(), tenant.into())));
        line.extend(event.details().into_iter().map(|(name, detail)| (name.to_owned(), json(detail))));
        self.say(line);
    }
}

// ---- the supervisor's side -------------------------------------------------------------------------------------------

/// What was heard of a session.
#[derive(Debug)]
pub(super) struct Reports {
    records: Arc<Records>,
    who: Who,
    partial: Vec<u8>,
    lines: u64,
    is_admitted: bool,
    has_begun: bool,
    has_ended: bool,
}

impl Reports {
    pub(super) fn new(records: Arc<Records>, number: u64, peer: Peer) -> Self {
        let who = Who { session: Some(number), ..Who::at(peer) };
        let (partial, lines, is_admitted, has_begun, has_ended) = Default::default();
        Self { records, who, partial, lines, is_admitted, has_begun, has_ended }
    }

    /// Returns whether the client was let in.
    pub(super) fn is_admitted(&self) -> bool {
        self.is_admitted
    }

    /// Handles bytes of the process.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                // A line that is too long is nothing that can be read.
                if self.partial.len() < LINE_MAX_BYTES {
                    self.partial.push(byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.partial);
            self.lines += 1;
            if self.lines > LINES_MAX {
                self.records.count_lost(1);
            } else if let Ok(said) = serde_json::from_slice(&line) {
                self.hear(&said);
            }
            // What is no object is a library's word on its way to start.
        }
    }

    fn hear(&mut self, said: &Map<String, Value>) {
        let text = |name: &str| said.get(name).and_then(Value::as_str);
        if text("event") == Some(ENTRY) {
            self.is_admitted = true;
            return;
        }
        let detail = |name: &'static str| match said.get(name)? {
            Value::Number(number) => number.as_u64().map(Detail::Number),
            Value::String(words) => Some(Detail::Text(words.clone().into())),
            _ => None,
        };
        let Some(event) = text("event").and_then(|name| AuditEvent::parse(name, detail)) else { return };
        let key = text("key").and_then(|key| key.parse().ok());
        let tenant = text("tenant").map(str::to_owned);
        match event {
            AuditEvent::Refused { .. } if !self.has_begun => {
                self.records.record(&Who { key, tenant, ..Who::at(self.who.peer) }, event);
            }
            AuditEvent::Begin {} if !self.has_begun => {
                (self.has_begun, self.who.key, self.who.tenant) = (true, key, tenant);
                self.records.record(&self.who, event);
            }
            AuditEvent::Park { .. } | AuditEvent::Resume { .. } if self.has_begun && !self.has_ended => {
                self.records.record(&self.who, event);
            }
            AuditEvent::End { .. } if self.has_begun && !self.has_ended => {
                self.has_ended = true;
                self.records.record(&self.who, event);
            }
            // These are not a session's, or it has none.
            _ => {}
        }
    }

    /// Handles the end of the process: how it ended is recorded if it could not say so itself.
    pub(super) fn end(&mut self, how: &str) {
        if self.has_begun && !std::mem::replace(&mut self.has_ended, true) {
            let reason = Some(format!("the session's process has ended: {how}").into());
            let kind = Some("process-ended".into());
            let (received_bytes, sent_bytes, requests, device_ns) = Default::default();
            let event = AuditEvent::End { kind, reason, received_bytes, sent_bytes, requests, device_ns };
            self.records.record(&self.who, event);
        }
    }

    /// Records that the client is turned away, because others have waited for less time to be let in.
    pub(super) fn turn_away(&self) {
        refuse(&self.records, self.who.peer, "no-proof", "too many clients that have not proved their keys");
    }
}

/// Records a client for whom no process was started.
pub(super) fn refuse(records: &Records, peer: Peer, word: &'static str, words: impl Into<String>) {
    let words = Some(words.into().into());
    records.record(&Who::at(peer), AuditEvent::Refused { reason: Some(word.into()), words });
}

#[cfg(test)]
mod tests {
    use super::super::audit::AuditFile;
    use super::*;
    use hipr_io::Address;

    #[test]
    fn a_process_can_say_nothing_of_others_and_nothing_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        let audit = AuditFile::open(&path, &Address::new("unix:x"), false).expect("a file");
        let records = Records::new(Some(Arc::clone(&audit)), None).expect("a file");
        let mut reports = Reports::new(Arc::clone(&records), 7, Peer::Local);
        for line in [
            r#"{"event":"end","reason":"before it began"}"#,
            r#"{"event":"lost","count":7}"#,
            "words of a library",
            r#"{"event":"begin","session":8,"peer":"somebody","time":"never","tenant":"a\nb","more":1}"#,
            r#"{"event":"begin","tenant":"another"}"#,
            r#"{"event":"refused","reason":"x"}"#,
            r#"{"event":"end","reason":["no text"],"sent_bytes":-1,"requests":3}"#,
            r#"{"event":"end","reason":"again"}"#,
        ] {
            assert!(!reports.is_admitted());
            line.bytes().chain(*b"\n").for_each(|byte| reports.push(&[byte]));
        }
        reports.push(b"{\"event\":\"entry\"}\n");
        assert!(reports.is_admitted());
        reports.push(&[b'x'; 3 * LINE_MAX_BYTES]);
        assert!(reports.partial.len() <= LINE_MAX_BYTES);
        reports.end("SIGKILL");
        let mut crashed = Reports::new(records, 8, Peer::Local);
        crashed.push(b"{\"event\":\"begin\"}\n");
        crashed.end("SIGKILL");
        (0..LINES_MAX + 5).for_each(|_| crashed.push(b"\n"));
        audit.close();
        let text = std::fs::read_to_string(&path).expect("text");
        let records: Vec<Map<String, Value>> =
            text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        let of = |record: &Map<String, Value>, name: &str| {
            let value = record.get(name).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
            value.unwrap_or_default()
        };
        // How many records they are is a matter of when the file is written.
        let (lost, records): (Vec<_>, Vec<_>) =
            records.into_iter().partition(|record| of(record, "event") == "lost");
        assert_eq!(lost.iter().filter_map(|record| record.get("count")?.as_u64()).sum::<u64>(), 6);
        let short: Vec<_> = records
            .iter()
            .map(|record| {
                ["event", "session", "peer", "tenant", "requests", "reason"]
                    .map(|name| of(record, name))
                    .join("|")
            })
            .collect();
        let expected = [
            "begin|7|a local process|a\nb||",
            "end|7|a local process|a\nb|3|",
            "begin|8|a local process|||",
            "end|8|a local process|||the session's process has ended: SIGKILL",
        ];
        assert_eq!(short, expected);
    }
}
