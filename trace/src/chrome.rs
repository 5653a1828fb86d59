//! Chrome's JSON ("Trace Event Format"): one event a line, so that what was written of a file can be read when the rest is missing.
//!
//! It knows processes and threads only, so a track that is neither gets a number of a thread that no thread has.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::item::{Item, Slice, Track, TrackKind, Value};

/// How a file begins.
pub(crate) const BEGIN: &str = "[\n";

/// The first number of what is shown as a thread and is none: Linux has no thread with such a number.
const FIRST_TID: u32 = 1 << 23;

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Event {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    cat: String,
    ph: String,
    /// Microseconds.
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<String>,
    args: BTreeMap<String, serde_json::Value>,
}

/// What the writer of a file knows of it.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Process and thread of each track, and its name.
    tracks: HashMap<u64, (u32, u32, String)>,
    /// The flows that have begun.
    flows: std::collections::HashSet<u64>,
}

/// Most flows that are remembered, so that a long trace costs a bounded amount of memory.
const FLOWS_MAX: usize = 1 << 16;

fn line(event: &Event, out: &mut Vec<u8>) {
    // Writing to a Vec does not fail, and the keys are texts.
    let _ = serde_json::to_writer(&mut *out, event);
    out.extend_from_slice(b",\n");
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn ns(us: f64) -> u64 {
    (us * 1000.0).round() as u64
}

fn of(slice: &Slice, (pid, tid): (u32, u32), ph: &str) -> Event {
    let value = |value: &Value| match value {
        Value::Number(number) => (*number).into(),
        Value::Text(text) => text.clone().into(),
    };
    Event {
        name: slice.name.clone(),
        cat: slice.category.clone(),
        ph: ph.to_owned(),
        ts: us(slice.start_ns),
        pid,
        tid,
        args: slice.args.iter().map(|(name, known)| (name.clone(), value(known))).collect(),
        ..Event::default()
    }
}

impl Writer {
    /// Appends items.
    pub(crate) fn write(&mut self, items: &[Item], out: &mut Vec<u8>) {
        for item in items {
            match item {
                Item::Track(track) => self.track(track, out),
                Item::Slice(slice) => {
                    let place = self.place(slice.track);
                    let dur = Some(us(slice.end_ns) - us(slice.start_ns));
                    line(&Event { dur, ..of(slice, place, "X") }, out);
                    self.flows(slice, place, out);
                }
                Item::Instant(slice) => {
                    line(&Event { s: Some("t".to_owned()), ..of(slice, self.place(slice.track), "i") }, out);
                }
                Item::Count { track, at_ns, value } => {
                    let (pid, _) = self.place(*track);
                    let name = self.tracks.get(track).map_or_else(String::new, |(.., name)| name.clone());
                    let args = BTreeMap::from([("bytes".to_owned(), (*value).into())]);
                    line(
                        &Event { name, ph: "C".to_owned(), ts: us(*at_ns), pid, args, ..Event::default() },
                        out,
                    );
                }
            }
        }
    }

    fn place(&self, track: u64) -> (u32, u32) {
        self.tracks.get(&track).map_or((0, 0), |(pid, tid, _)| (*pid, *tid))
    }

    fn track(&mut self, track: &Track, out: &mut Vec<u8>) {
        let (of_parent, _) = self.place(track.parent);
        let next = FIRST_TID + u32::try_from(self.tracks.len()).unwrap_or(0);
        let (pid, tid, kind) = match track.kind {
            TrackKind::Process { pid } => (pid, 0, "process_name"),
            TrackKind::Thread { pid, tid } => (pid, tid, "thread_name"),
            TrackKind::Slices => (of_parent, next, "thread_name"),
            TrackKind::Bytes => (of_parent, next, ""),
        };
        self.tracks.insert(track.id, (pid, tid, track.name.clone()));
        if !kind.is_empty() {
            let args = BTreeMap::from([("name".to_owned(), track.name.clone().into())]);
            line(
                &Event { name: kind.to_owned(), ph: "M".to_owned(), pid, tid, args, ..Event::default() },
                out,
            );
        }
    }

    fn flows(&mut self, slice: &Slice, (pid, tid): (u32, u32), out: &mut Vec<u8>) {
        for flow in &slice.flows {
            if self.flows.len() >= FLOWS_MAX {
                self.flows.clear();
            }
            let is_first = self.flows.insert(*flow);
            let event = Event {
                name: "request".to_owned(),
                cat: "flow".to_owned(),
                ph: if is_first { "s" } else { "t" }.to_owned(),
                ts: us(slice.start_ns),
                pid,
                tid,
                id: Some(format!("{flow:#x}")),
                ..Event::default()
            };
            line(&event, out);
        }
    }
}

/// Reads a file up to the first line that is not whole. Flows are left out.
pub(crate) fn read(bytes: &[u8]) -> Vec<Item> {
    let text = String::from_utf8_lossy(bytes);
    let (mut items, mut tracks) = (Vec::new(), HashMap::new());
    let mut next = 0;
    for text in text.lines() {
        let text = text.trim().trim_end_matches(',');
        if matches!(text, "" | "[" | "]") {
            continue;
        }
        let Ok(event) = serde_json::from_str::<Event>(text) else { break };
        let mut known = |pid, tid, kind, name: String, items: &mut Vec<Item>| {
            *tracks.entry((pid, tid, name.clone())).or_insert_with(|| {
                next += 1;
                items.push(Item::Track(Track { id: next, parent: 0, kind, name }));
                next
            })
        };
        let (pid, tid) = (event.pid, event.tid);
        match &*event.ph {
            "M" => {
                let name = event.args.get("name").and_then(|name| name.as_str()).unwrap_or_default();
                let kind = match (&*event.name, tid >= FIRST_TID) {
                    ("process_name", _) => TrackKind::Process { pid },
                    (_, true) => TrackKind::Slices,
                    (_, false) => TrackKind::Thread { pid, tid },
                };
                // Slices name their thread by its number.
                let id = known(pid, tid, kind, String::new(), &mut items);
                if let Some(Item::Track(track)) =
                    items.iter_mut().rev().find(|item| matches!(item, Item::Track(track) if track.id == id))
                {
                    name.clone_into(&mut track.name);
                }
            }
            "X" | "i" => {
                let kind = if tid >= FIRST_TID { TrackKind::Slices } else { TrackKind::Thread { pid, tid } };
                let track = known(pid, tid, kind, String::new(), &mut items);
                let start_ns = ns(event.ts);
                let slice = Slice {
                    track,
                    start_ns,
                    end_ns: ns(event.ts + event.dur.unwrap_or(0.0)),
                    args: event.args.into_iter().map(|(name, value)| (name, said(&value))).collect(),
                    name: event.name,
                    category: event.cat,
                    flows: Vec::new(),
                };
                items.push(if event.ph == "X" { Item::Slice(slice) } else { Item::Instant(slice) });
            }
            "C" => {
                let track = known(pid, u32::MAX, TrackKind::Bytes, event.name, &mut items);
                let value = event.args.get("bytes").and_then(serde_json::Value::as_u64).unwrap_or(0);
                items.push(Item::Count { track, at_ns: ns(event.ts), value });
            }
            _ => {}
        }
    }
    items
}

fn said(value: &serde_json::Value) -> Value {
    match (value.as_u64(), value.as_str()) {
        (Some(number), _) => Value::Number(number),
        (None, Some(text)) => Value::Text(text.to_owned()),
        (None, None) => Value::Text(value.to_string()),
    }
}
