//! Turns the events of threads into the items of a trace, and writes them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use hipr_client::Requested;
use hipr_lines::demangled;
use hipr_proto::op::{TraceEntry, trace_kind};
use hipr_proto::{HipError, Opcode};
use hipr_trace::{
    Clocks, Exchange, File, Item, RECEIVED, Slice, Track, TrackKind, Value, arg, category, track,
};

use super::ShownAs;
use super::events::{Call, Event, Wait};
use crate::calls;
use crate::maps::Maps;

/// Number of requests that are remembered, for what the worker tells of them.
const REQUESTS_KEPT: usize = 1 << 16;
/// Most flows that lead through a slice.
const FLOWS_MAX: usize = 64;
/// Most streams that have a track and a number of their own.
const STREAMS_MAX: usize = 1024;
/// Most entries of the worker that wait for the clocks to be brought together.
const TOLD_MAX: usize = 1 << 16;

/// A request, and what is known of it.
#[derive(Clone, Copy, Debug)]
struct Known {
    requested: Requested,
    sent_ns: u64,
    heard_ns: u64,
}

/// Events of a thread, with its number and name.
pub(super) type OfThread = (u32, String, Vec<Event>);

/// Writes the trace of a process.
#[derive(Debug)]
pub(super) struct Writer {
    file: Option<File>,
    pid: u32,
    items: Vec<Item>,
    /// The tracks of threads, by their numbers, with the requests that their current calls have made.
    threads: BTreeMap<u32, (u64, Vec<Requested>)>,
    /// The tracks of streams, by their handles.
    streams: BTreeMap<u64, u64>,
    stream_numbers: BTreeMap<u64, usize>,
    next_track: u32,
    requests: Vec<Option<Known>>,
    /// The names of kernels as programmers write them, by their handles.
    kernels: BTreeMap<u64, String>,
    last_sent: u32,
    sent_bytes: u64,
    received_bytes: u64,
    clocks: Clocks,
    /// What the worker has told and is not written.
    told: VecDeque<TraceEntry>,
    /// When the last slice of a track of the worker ended.
    ends_ns: BTreeMap<u64, u64>,
    maps: Maps,
    lost: u64,
    /// When the program ended.
    program_end_ns: Option<u64>,
}

impl Writer {
    /// Opens the file.
    pub(super) fn open(path: &Path, last: Option<Duration>) -> io::Result<Self> {
        let pid = std::process::id();
        let file = File::open(path, pid, last)?;
        let mut writer = Self {
            file: Some(file),
            pid,
            items: Vec::new(),
            threads: BTreeMap::new(),
            streams: BTreeMap::new(),
            stream_numbers: BTreeMap::new(),
            next_track: track::OTHERS,
            requests: Vec::new(),
            kernels: BTreeMap::new(),
            last_sent: 0,
            sent_bytes: 0,
            received_bytes: 0,
            clocks: Clocks::default(),
            told: VecDeque::new(),
            ends_ns: BTreeMap::new(),
            maps: Maps::default(),
            lost: 0,
            program_end_ns: None,
        };
        let command = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&command).file_name().unwrap_or(&command).to_string_lossy().into_owned();
        writer.track(track::PROCESS, 0, TrackKind::Process { pid }, name);
        for (track, kind, name) in [
            (track::SENDING, TrackKind::Slices, "network: sending"),
            (track::SENT, TrackKind::Bytes, "network: bytes sent"),
            (track::RECEIVED, TrackKind::Bytes, RECEIVED),
            (track::WORKER, TrackKind::Slices, "worker: requests"),
        ] {
            writer.track(track, track::PROCESS, kind, name.to_owned());
        }
        Ok(writer)
    }

    fn id(&self, track: u32) -> u64 {
        track::id(self.pid, track)
    }

    fn track(&mut self, track: u32, parent: u32, kind: TrackKind, name: String) -> u64 {
        let id = self.id(track);
        let parent = if parent == 0 { 0 } else { self.id(parent) };
        self.items.push(Item::Track(Track { id, parent, kind, name }));
        id
    }

    fn new_track(&mut self, kind: TrackKind, name: String) -> u64 {
        self.next_track += 1;
        self.track(self.next_track, track::PROCESS, kind, name)
    }

    fn flow(&self, request: u32) -> u64 {
        u64::from(self.pid) << 32 | u64::from(request)
    }

    /// Returns the name of a request that no other of the trace has.
    fn name(&self, request: u32) -> Value {
        Value::Text(format!("{}:{request}", self.pid))
    }

    /// Writes events, and how many are lost.
    pub(super) fn write(&mut self, threads: Vec<OfThread>, lost: u64) {
        self.lost += lost;
        // What the worker tells comes after the requests that it is of, which other threads may have made.
        for event in threads.iter().flat_map(|(.., events)| events) {
            match event {
                Event::Requested(requested) => self.remember(*requested),
                Event::Named { function, symbol } => {
                    self.kernels.insert(*function, demangled(symbol));
                }
                _ => {}
            }
        }
        let mut told = Vec::new();
        for (tid, name, events) in threads {
            let track = match self.threads.get(&tid) {
                Some((track, _)) => *track,
                None => {
                    let track = self.new_track(TrackKind::Thread { pid: self.pid, tid }, name);
                    self.threads.insert(tid, (track, Vec::new()));
                    track
                }
            };
            for event in events {
                match event {
                    Event::Told { entries, lost } => {
                        told.extend(entries);
                        self.lost += u64::from(lost);
                    }
                    Event::Requested(requested) => {
                        if let Some((_, made)) = self.threads.get_mut(&tid)
                            && made.len() < FLOWS_MAX
                        {
                            made.push(requested);
                        }
                    }
                    Event::Call(call) => self.call(tid, track, call),
                    Event::Waited(wait) => self.waited(track, &wait),
                    event => self.happened(track, event),
                }
            }
        }
        self.told.extend(told);
        self.worker();
        self.put();
    }

    fn put(&mut self) {
        let items = std::mem::take(&mut self.items);
        if let Some(file) = &mut self.file
            && !items.is_empty()
            && let Err(why) = file.write(&items)
        {
            tracing::error!("cannot write the trace: {why}; the rest of it is not written");
            self.file = None;
        }
    }

    /// Notes the end of the program.
    pub(super) fn end_program(&mut self, now_ns: u64) {
        self.program_end_ns = Some(now_ns);
    }

    /// Writes the end of the trace.
    pub(super) fn finish(&mut self, now_ns: u64) {
        let args = if self.lost > 0 { vec![(arg::LOST.to_owned(), self.lost.into())] } else { Vec::new() };
        let id = self.new_track(TrackKind::Slices, "trace".to_owned());
        self.items.push(Item::Slice(Slice {
            track: id,
            name: "end of the trace".to_owned(),
            category: category::TRACE.to_owned(),
            start_ns: self.program_end_ns.unwrap_or(now_ns),
            end_ns: now_ns,
            flows: Vec::new(),
            args,
        }));
        self.put();
    }

    /// Returns the category of what began then: it is the trace's own if the program had ended.
    fn category(&self, began_ns: u64, category: &str) -> String {
        let is_over = self.program_end_ns.is_some_and(|end_ns| began_ns >= end_ns);
        if is_over { category::TRACE } else { category }.to_owned()
    }

    // ---- requests ----------------------------------------------------------------------------------------------------

    fn remember(&mut self, requested: Requested) {
        if self.requests.is_empty() {
            self.requests = vec![None; REQUESTS_KEPT];
        }
        let place = requested.request as usize % REQUESTS_KEPT;
        if let Some(slot) = self.requests.get_mut(place) {
            *slot = Some(Known { requested, sent_ns: 0, heard_ns: 0 });
        }
    }

    fn known(&mut self, request: u32) -> Option<&mut Known> {
        let slot = self.requests.get_mut(request as usize % REQUESTS_KEPT)?.as_mut();
        slot.filter(|known| known.requested.request == request)
    }

    fn op_name(&mut self, request: u32) -> &'static str {
        self.known(request).map_or("request", |known| op_name(known.requested.op))
    }

    /// Returns the name of a kernel.
    fn kernel(&self, function: u64) -> String {
        self.kernels.get(&function).cloned().unwrap_or_else(|| "kernel".to_owned())
    }

    // ---- the client --------------------------------------------------------------------------------------------------

    fn call(&mut self, tid: u32, track: u64, call: Call) {
        let Call { function, call, began_ns, ended_ns, code, shown, stack } = call;
        let made = self.threads.get_mut(&tid).map_or_else(Vec::new, |(_, made)| std::mem::take(made));
        let mut args = vec![(arg::CALL.to_owned(), calls::number_of(call).into())];
        for ((name, what), number) in function.shown().zip(shown) {
            let value = match what {
                ShownAs::Number => Value::Number(number),
                ShownAs::Event => Value::Text(format!("{number:#x}")),
                ShownAs::Stream => Value::Text(self.stream_name(number)),
            };
            args.push((name.to_owned(), value));
        }
        if let Some(function) = made.iter().map(|made| made.function).find(|function| *function != 0) {
            args.push((arg::KERNEL.to_owned(), self.kernel(function).into()));
        }
        let sent_bytes = made.iter().map(|made| made.len_bytes).sum::<u64>();
        if sent_bytes > 0 {
            args.push((arg::SENT_BYTES.to_owned(), sent_bytes.into()));
        }
        if code != 0 {
            args.push((arg::ERROR.to_owned(), HipError(code).to_string().into()));
        }
        if let Some(stack) = stack.and_then(|stack| self.stack(&stack)) {
            args.push((arg::STACK.to_owned(), stack.into()));
        }
        self.items.push(Item::Slice(Slice {
            track,
            name: function.name().to_owned(),
            category: category::CALL.to_owned(),
            start_ns: began_ns,
            end_ns: ended_ns,
            flows: made.iter().map(|made| self.flow(made.request)).collect(),
            args,
        }));
    }

    /// Returns the calls on a stack, without those of this library.
    fn stack(&mut self, addresses: &[usize]) -> Option<String> {
        let calls: Vec<_> = addresses.iter().filter_map(|address| self.maps.call(*address)).collect();
        // The innermost call is of this library.
        let (library, _) = *calls.first()?;
        let others = calls.into_iter().skip_while(|(module, _)| *module == library);
        let modules = self.maps.modules();
        let calls: Vec<_> = others
            .filter_map(|(module, offset)| Some(format!("{}+{offset:#x}", modules.get(module)?)))
            .collect();
        (!calls.is_empty()).then(|| calls.join(";"))
    }

    fn waited(&mut self, track: u64, wait: &Wait) {
        let Wait { request, len_bytes, began_ns, ended_ns, call } = *wait;
        if let Some(known) = self.known(request) {
            known.heard_ns = ended_ns;
        }
        let mut args = vec![
            (arg::CALL.to_owned(), calls::number_of(call).into()),
            (arg::REQUEST.to_owned(), self.name(request)),
        ];
        if len_bytes > 0 {
            args.push((arg::RECEIVED_BYTES.to_owned(), len_bytes.into()));
        }
        let name = format!("wait for {}", self.op_name(request));
        self.items.push(Item::Slice(Slice {
            track,
            name,
            category: self.category(began_ns, category::WAIT),
            start_ns: began_ns,
            end_ns: ended_ns,
            flows: vec![self.flow(request)],
            args,
        }));
    }

    fn happened(&mut self, track: u64, event: Event) {
        match event {
            Event::Connected { began_ns, ended_ns, call } => self.items.push(Item::Slice(Slice {
                track,
                name: "connect to the worker".to_owned(),
                category: category::WAIT.to_owned(),
                start_ns: began_ns,
                end_ns: ended_ns,
                flows: Vec::new(),
                args: vec![(arg::CALL.to_owned(), calls::number_of(call).into())],
            })),
            Event::Sent { began_ns, ended_ns, len_bytes, last_request } => {
                let first = self.last_sent.wrapping_add(1);
                let ahead = last_request.wrapping_sub(self.last_sent);
                // What another thread has sent before may be told later: its requests were counted with what came behind them.
                let is_late = ahead > u32::MAX / 2;
                let count = if is_late { 0 } else { ahead.min(REQUESTS_KEPT as u32) };
                let requests = (0..count).map(|n| first.wrapping_add(n));
                for request in requests.clone() {
                    if let Some(known) = self.known(request) {
                        known.sent_ns = began_ns;
                    }
                }
                if !is_late {
                    self.last_sent = last_request;
                }
                self.sent_bytes += len_bytes;
                self.items.push(Item::Slice(Slice {
                    track: self.id(track::SENDING),
                    name: format!("send {count} requests"),
                    category: category::SEND.to_owned(),
                    start_ns: began_ns,
                    end_ns: ended_ns,
                    flows: requests.take(FLOWS_MAX).map(|request| self.flow(request)).collect(),
                    args: vec![(arg::SENT_BYTES.to_owned(), len_bytes.into())],
                }));
                let (track, value) = (self.id(track::SENT), self.sent_bytes);
                self.items.push(Item::Count { track, at_ns: ended_ns, value });
            }
            Event::Received { at_ns, len_bytes } => {
                self.received_bytes += len_bytes;
                let (track, value) = (self.id(track::RECEIVED), self.received_bytes);
                self.items.push(Item::Count { track, at_ns, value });
            }
            Event::Reconnected { at_ns } => {
                self.items.push(Item::Instant(Slice {
                    track: self.id(track::SENDING),
                    name: "the connection is there again".to_owned(),
                    start_ns: at_ns,
                    end_ns: at_ns,
                    ..Slice::default()
                }));
            }
            Event::Call(_)
            | Event::Requested(_)
            | Event::Waited(_)
            | Event::Told { .. }
            | Event::Named { .. } => {}
        }
    }

    // ---- the worker --------------------------------------------------------------------------------------------------

    /// Writes what the worker has told, as soon as its clock is known.
    fn worker(&mut self) {
        for place in 0..self.told.len() {
            let Some(entry) = self.told.get(place).copied() else { break };
            if entry.kind == trace_kind::REQUEST
                && let Some(Known { requested, sent_ns, heard_ns }) = self.known(entry.request).copied()
                && requested.is_answered
                && sent_ns != 0
                && heard_ns != 0
            {
                self.clocks.measure(Exchange {
                    sent_ns,
                    received_ns: entry.first_ns,
                    answered_ns: entry.end_ns,
                    heard_ns,
                });
            }
        }
        let Some(offset) = self.clocks.offset() else {
            let too_many = self.told.len().saturating_sub(TOLD_MAX);
            self.told.drain(..too_many);
            self.lost += too_many as u64;
            return;
        };
        for entry in std::mem::take(&mut self.told) {
            let [first_ns, start_ns, end_ns] =
                [entry.first_ns, entry.begin_ns, entry.end_ns].map(|ns| offset.client_ns(ns));
            let mut args = vec![
                (arg::REQUEST.to_owned(), self.name(entry.request)),
                (arg::QUEUED_NS.to_owned(), start_ns.saturating_sub(first_ns).into()),
            ];
            let (track, name, kind) = if entry.kind == trace_kind::REQUEST {
                args.push((arg::UNCERTAINTY_NS.to_owned(), offset.uncertainty_ns.into()));
                (self.id(track::WORKER), self.op_name(entry.request).to_owned(), category::REQUEST)
            } else {
                let name = match entry.function {
                    0 => self.op_name(entry.request).to_owned(),
                    function => self.kernel(function),
                };
                (self.stream(entry.stream), name, category::WORK)
            };
            // A better measurement of the clocks may move a slice into the one before it.
            let before_ns = self.ends_ns.get(&track).copied().unwrap_or(0);
            let (start_ns, end_ns) = (start_ns.max(before_ns), end_ns.max(before_ns));
            self.ends_ns.insert(track, end_ns);
            self.items.push(Item::Slice(Slice {
                track,
                name,
                category: kind.to_owned(),
                start_ns,
                end_ns,
                flows: vec![self.flow(entry.request)],
                args,
            }));
        }
    }

    fn stream(&mut self, stream: u64) -> u64 {
        // What further streams do at the same time is not told apart.
        let (key, name) = match self.streams.get(&stream) {
            Some(track) => return *track,
            None if self.streams.len() < STREAMS_MAX => {
                (stream, format!("device: {}", self.stream_name(stream)))
            }
            None => (u64::MAX, "device: further streams".to_owned()),
        };
        if let Some(track) = self.streams.get(&key) {
            return *track;
        }
        let track = self.new_track(TrackKind::Slices, name);
        self.streams.insert(key, track);
        track
    }

    /// Returns the name of a stream: streams are numbered in the order in which the trace meets them.
    fn stream_name(&mut self, stream: u64) -> String {
        match stream {
            0 | 1 => "null stream".to_owned(),
            2 => "stream of the thread".to_owned(),
            stream => {
                let count = self.stream_numbers.len();
                if count < STREAMS_MAX {
                    self.stream_numbers.entry(stream).or_insert(count + 1);
                }
                let known = self.stream_numbers.get(&stream);
                known.map_or_else(|| format!("stream {stream:#x}"), |number| format!("stream {number}"))
            }
        }
    }
}

fn op_name(op: Opcode) -> &'static str {
    op.info().map_or("request", |info| info.name)
}
