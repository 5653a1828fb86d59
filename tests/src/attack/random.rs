//! Random requests over all operations of the table: bounds of numbers, what the session has, and what it does not have.

use super::raw::{Answered, Raw, Stop};
use super::{Case, KERNELS, Scale, Sent, Target};
use hipr_proto::op::{self, ClientName, Handle, ReplyRule, TailLen};
use hipr_proto::{FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, Info, Layout, OPS, Op, Opcode, Tail, Wire};
use hipr_testkit::{Choices, seed_bytes};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Random requests of a session.
const OF_A_SESSION: usize = 1_000;
/// Requests that are sent together.
const TOGETHER: usize = 32;
/// Bytes from which a session's requests are made; what is beyond them is not sent.
const CHOICES_BYTES: usize = 128 << 10;
/// How long a session waits for the worker before it goes: what it has asked for may wait for a kernel or a callback of its own.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest tail; of a longer one only the first bytes are sent.
const TAIL_MAX_BYTES: u64 = 64 << 10;
/// Objects of a kind that a session remembers.
const REMEMBERED: usize = 32;

pub(super) fn cases(scale: &Scale) -> Vec<Case> {
    let (seed, count) = (scale.seed, scale.requests);
    let name = format!("{count} random requests of all operations, seed {seed}");
    vec![Case::new(name, move |worker| requests(worker, seed, count))]
}

fn requests(worker: Target, seed: u64, count: usize) -> Sent {
    let mut sent = Sent::default();
    let (mut done, mut asked) = (BTreeSet::new(), BTreeSet::new());
    let (mut requests, mut sessions, mut silent, mut ended) = (0, 0u64, 0, 0);
    while requests < count {
        let bytes = bytes_of(seed.wrapping_add(sessions << 20));
        let mut session = Session::begin(worker, &bytes);
        let stop = session.run(OF_A_SESSION.min(count - requests), &mut sent, &mut done);
        match stop {
            Ok(()) => {}
            Err(Stop::Silence) => silent += 1,
            // It may have asked for its end, and for no answer.
            Err(Stop::End) if session.asked.contains(&Opcode::SHUTDOWN) => {}
            Err(Stop::End) => ended += 1,
            Err(Stop::Nonsense(what)) => sent.expect(false, || format!("session {sessions} got {what}")),
        }
        requests += session.requests;
        asked.append(&mut session.asked);
        sessions += 1;
    }
    sent.say(format!(
        "{requests} requests in {sessions} sessions; {silent} of them waited for themselves and went"
    ));
    sent.expect(ended == 0, || format!("the worker ended {ended} sessions"));
    let all = OPS.iter().filter(|info| !is_notification(info)).count();
    sent.say(format!("{} of {all} operations asked for, {} succeeded", asked.len(), done.len()));
    sent.expect(asked.len() == all, || "not every operation was asked for".into());
    // Otherwise nothing but checks of fields was tried.
    sent.expect(2 * done.len() > all, || "most operations never succeed".into());
    sent
}

fn is_notification(info: &Info) -> bool {
    info.reply_rule == ReplyRule::Notification
}

fn bytes_of(seed: u64) -> Vec<u8> {
    let pieces = (0..u64::MAX).map(|piece| seed_bytes(seed.wrapping_add(piece)));
    let mut bytes = Vec::with_capacity(CHOICES_BYTES + 4096);
    for piece in pieces {
        bytes.extend(piece);
        if bytes.len() >= CHOICES_BYTES {
            break;
        }
    }
    bytes
}

/// What a session has, as far as its answers say.
#[derive(Default)]
struct Own {
    handles: BTreeMap<Handle, Vec<u64>>,
    pointers: Vec<u64>,
    nodes: Vec<u64>,
    shared: Vec<Vec<u8>>,
}

fn remember<T>(all: &mut Vec<T>, one: T) {
    if all.len() == REMEMBERED {
        all.remove(0);
    }
    all.push(one);
}

impl Own {
    /// Takes what an answer has of handles and addresses.
    fn learn(&mut self, answered: &Answered) {
        let (Some(info), Ok(reply)) = (answered.op.info(), &answered.result) else { return };
        let mut at = 0;
        for field in info.reply.fields {
            let bytes = reply.get(at..at + len_bytes(&field.layout)).unwrap_or(&[]);
            at += len_bytes(&field.layout);
            let Some(number) = bytes.first_chunk().map(|first| u64::from_le_bytes(*first)) else { continue };
            let batch = match answered.op {
                Opcode::STREAM_CREATE_BATCH => Some(Handle::Stream),
                Opcode::EVENT_CREATE_BATCH => Some(Handle::Event),
                _ => None,
            };
            match field.name {
                "device_ptr" | "dptr" | "ptrs" | "window_start" => remember(&mut self.pointers, number),
                "node" => remember(&mut self.nodes, number),
                "handle" => remember(&mut self.shared, bytes.to_vec()),
                "handles" => {
                    if let Some(kind) = batch {
                        remember(self.handles.entry(kind).or_default(), number);
                    }
                }
                name => {
                    if let Some(kind) = Handle::of_field(name) {
                        remember(self.handles.entry(kind).or_default(), number);
                    }
                }
            }
        }
    }
}

struct Session<'a> {
    raw: Raw,
    own: Own,
    choices: Choices<'a>,
    asked: BTreeSet<Opcode>,
    requests: usize,
}

impl<'a> Session<'a> {
    /// Opens a session that has a code object, memory, and in half of the cases all features that the worker has.
    fn begin(worker: Target, bytes: &'a [u8]) -> Self {
        let mut choices = Choices::new(bytes);
        let mut raw = Raw::connect(worker.address, PATIENCE);
        raw.push(Opcode::INIT, &[], 0);
        if choices.percent(50) {
            let (features, part) = (u64::MAX, 0);
            raw.push(Opcode::OFFER, &encoded(&op::Offer { features, part }), 0);
        }
        let load = encoded(&op::ModuleLoadData { data_size: KERNELS.len() as u64 });
        raw.push(Opcode::MODULE_LOAD_DATA, &[&load, KERNELS].concat(), FLAG_HAS_INLINE_DATA);
        for size in [4096, 64 << 10] {
            raw.push(Opcode::MALLOC, &encoded(&op::Malloc { size, flags: 0 }), 0);
        }
        Self { raw, own: Own::default(), choices, asked: BTreeSet::new(), requests: 0 }
    }

    /// Sends requests; stops before if the worker does not answer.
    fn run(&mut self, count: usize, sent: &mut Sent, done: &mut BTreeSet<Opcode>) -> Result<(), Stop> {
        loop {
            let bytes = self.raw.send();
            sent.bytes += bytes? as u64;
            while self.raw.unanswered() > 0 {
                let Some(answered) = self.raw.answer()? else { break };
                sent.answered(answered.result.as_ref().map(drop).map_err(|why| *why));
                self.own.learn(&answered);
                if answered.result.is_ok() {
                    done.insert(answered.op);
                }
                if (answered.op, answered.result.is_ok()) == (Opcode::SHUTDOWN, true) {
                    return Ok(());
                }
            }
            if self.requests >= count || self.choices.is_exhausted() {
                return Ok(());
            }
            for _ in 0..TOGETHER.min(count - self.requests) {
                self.push();
            }
        }
    }

    /// Appends a random request.
    fn push(&mut self) {
        let Some(info) = self.choices.pick(OPS) else { return };
        // What ends everything is rare.
        let rare = match info.code {
            Opcode::SHUTDOWN => 50,
            Opcode::DEVICE_RESET => 8,
            _ => 1,
        };
        if is_notification(info) && !self.choices.one_in(8) || !self.choices.one_in(rare) {
            return;
        }
        let mut payload = Vec::new();
        for field in info.request.fields {
            self.field(info, field.name, &field.layout, &mut payload);
        }
        let tail_len = match info.tail_len(&payload) {
            Ok(TailLen::Exact(len) | TailLen::AtLeast(len) | TailLen::AtMost(len)) => len,
            Err(_) => 0,
        };
        self.tail(info, tail_len, &mut payload);
        let mut flags =
            if info.request.tail == Tail::Bulk && tail_len > 0 { FLAG_HAS_INLINE_DATA } else { 0 };
        if self.choices.percent(10) {
            flags |= FLAG_NO_REPLY;
        }
        if self.choices.one_in(64) {
            payload.truncate(self.choices.index(payload.len() + 1));
        }
        if self.choices.one_in(64) {
            payload.resize(payload.len() + self.choices.index(300), 0xee);
        }
        let op =
            if self.choices.one_in(128) { Opcode(self.choices.below(1 << 16) as u16) } else { info.code };
        if !op.info().is_some_and(is_notification) && op.info().is_some() {
            self.asked.insert(op);
        }
        self.requests += 1;
        self.raw.push(op, &payload, flags);
    }

    fn field(&mut self, info: &Info, name: &str, layout: &Layout, out: &mut Vec<u8>) {
        match layout {
            Layout::Number(kind) => {
                let value = self.number(info, name);
                let len = number_bytes(kind);
                out.extend_from_slice(&value.to_le_bytes()[..len]);
            }
            Layout::Array(Layout::Number("u8"), 64) if self.choices.percent(60) => {
                let own = self.choices.pick(&self.own.shared).cloned();
                out.extend(own.unwrap_or_else(|| vec![0; 64]));
            }
            Layout::Text(len) | Layout::Array(Layout::Number("u8"), len) => {
                let byte = self.choices.below(256) as u8;
                out.extend(std::iter::repeat_n(byte, *len));
            }
            Layout::Array(of, len) => (0..*len).for_each(|_| self.field(info, name, of, out)),
            Layout::Fields(fields) => {
                fields.iter().for_each(|field| self.field(info, field.name, &field.layout, out));
            }
        }
    }

    /// Returns a number for a field with this name.
    fn number(&mut self, info: &Info, name: &str) -> u64 {
        const SIZES: [u64; 12] = [0, 1, 3, 4, 8, 16, 64, 255, 256, 4095, 4096, 4097];
        const LARGE: [u64; 10] = [
            65_535,
            65_536,
            1 << 20,
            (1 << 31) - 1,
            1 << 31,
            (1 << 32) - 1,
            1 << 32,
            1 << 40,
            1 << 63,
            u64::MAX,
        ];
        const DIMS: [u64; 10] = [1, 1, 1, 1, 2, 3, 64, 0, 1024, 1025];
        const COUNTS: [u64; 8] = [0, 0, 1, 1, 2, 3, 32, 64];
        if self.choices.one_in(24) {
            return self.any();
        }
        if let Some(kind) = Handle::of_field(name) {
            // The null stream, and no event, are good too.
            if matches!(kind, Handle::Stream | Handle::Event) && self.choices.percent(40) {
                return 0;
            }
            let own = self.own.handles.get(&kind).map_or(&[][..], Vec::as_slice);
            let own = self.choices.pick(own).copied();
            return own.filter(|_| self.choices.percent(85)).unwrap_or_else(|| self.guess());
        }
        let pick = |choices: &mut Choices<'_>, all: &[u64]| choices.pick(all).copied().unwrap_or(0);
        match name {
            "dst" | "src" | "ptr" | "dptr" | "dev_ptr" | "device_ptr" | "host_ptr" | "src_ptr"
            | "dst_ptr" | "address" => {
                let own = self.choices.pick(&self.own.pointers).copied();
                match own.filter(|_| self.choices.percent(85)) {
                    Some(own) if self.choices.percent(70) => own,
                    Some(own) => own.wrapping_add(self.choices.below(1 << 16)),
                    None => self.guess(),
                }
            }
            "node" => {
                let own = self.choices.pick(&self.own.nodes).copied();
                own.filter(|_| self.choices.percent(85)).unwrap_or_else(|| self.guess())
            }
            // Code objects are sent whole, mostly.
            "data_size" if self.choices.percent(80) => KERNELS.len() as u64,
            "name_length" if self.choices.percent(80) => NAME.len() as u64,
            "size" | "sizes" | "size_bytes" | "data_size" | "length" | "width" | "height" | "depth"
            | "pitch" | "dpitch" | "spitch" | "src_pitch" | "dst_pitch" | "src_height" | "dst_height"
            | "width_in_bytes" | "packed" | "offset" | "want_bytes" | "max_bytes" | "bytes" => {
                let all = if self.choices.percent(90) { &SIZES[..] } else { &LARGE[..] };
                pick(&mut self.choices, all)
            }
            "grid_dim_x" | "grid_dim_y" | "grid_dim_z" | "block_dim_x" | "block_dim_y" | "block_dim_z"
            | "grid_dim" | "block_dim" | "block_size" => pick(&mut self.choices, &DIMS),
            "count" | "num_args" | "num_deps" | "num_params" | "num_dependencies" | "max_nodes"
            | "max_edges" | "len" => pick(&mut self.choices, &COUNTS),
            "name" if info.code == Opcode::NAME => self.name(),
            // There is a device 0 everywhere.
            "device" | "device_id" | "ordinal" | "processor_index" if self.choices.percent(80) => 0,
            _ => self.choices.below(6),
        }
    }

    /// Returns a number at a bound, or any.
    fn any(&mut self) -> u64 {
        match self.choices.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => i32::MAX as u64,
            3 => i32::MIN as u64,
            4 => u64::from(u32::MAX),
            5 => 1 << self.choices.below(64),
            6 => self.guess(),
            _ => self.choices.below(u64::MAX),
        }
    }

    /// Returns what may be a handle or an address of somebody.
    fn guess(&mut self) -> u64 {
        match self.choices.below(4) {
            0 => self.choices.below(4096),
            1 => self.name(),
            2 => 0x7f00_0000_0000 + (self.choices.below(1 << 20) << 12),
            _ => self.choices.below(u64::MAX),
        }
    }

    fn name(&mut self) -> u64 {
        let (turn, place) = (self.choices.below(3), self.choices.index(16));
        ClientName::new(turn, place).map_or(ClientName::FIRST, ClientName::number)
    }

    /// Appends what follows the fixed part, as far as that says how much it is.
    fn tail(&mut self, info: &Info, len: u64, out: &mut Vec<u8>) {
        match info.code {
            Opcode::MODULE_GET_FUNCTION | Opcode::MODULE_GET_GLOBAL => {
                let names: [&[u8]; 5] = [NAME, b"take\0", b"none\0", b"\0", b"\xff\xfe"];
                out.extend_from_slice(self.choices.pick(&names).copied().unwrap_or(NAME));
                return;
            }
            Opcode::MODULE_LOAD_DATA | Opcode::MODULE_LOAD_DATA_EX | Opcode::MODULE_LOAD_AND_GET_FUNCTION
                if len <= TAIL_MAX_BYTES =>
            {
                let name = if info.code == Opcode::MODULE_LOAD_AND_GET_FUNCTION { NAME } else { &[] };
                let from = out.len();
                out.extend(name.iter().chain(KERNELS).copied().take(len as usize));
                out.resize(from + len as usize, 0);
                if self.choices.percent(60) {
                    let at = from + self.choices.index(len as usize);
                    if let Some(byte) = out.get_mut(at) {
                        *byte = self.choices.below(256) as u8;
                    }
                }
                return;
            }
            _ => {}
        }
        let len = len.min(TAIL_MAX_BYTES) as usize;
        let from = out.len();
        // Numbers that mean something wherever the tail has numbers.
        while out.len() < from + len.min(512) {
            let number = match self.choices.below(4) {
                0 => self.choices.pick(&self.own.nodes).copied().unwrap_or(0),
                1 => self.choices.pick(&self.own.pointers).copied().unwrap_or(0),
                2 => self.choices.below(16) | self.choices.below(16) << 32,
                _ => self.any(),
            };
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.resize(from + len, 0x77);
        if matches!(
            info.code,
            Opcode::LAUNCH_KERNEL | Opcode::LAUNCH_COOPERATIVE_KERNEL | Opcode::MODULE_LAUNCH_KERNEL
        ) {
            let pointer = self.choices.pick(&self.own.pointers).copied().unwrap_or(0);
            out.extend_from_slice(&pointer.to_le_bytes());
        }
    }
}

/// The kernel that is launched; what it does ends.
const NAME: &[u8] = b"count\0";

fn encoded(request: &impl Op) -> Vec<u8> {
    let mut out = Vec::new();
    Wire::put(request, &mut out);
    out
}

fn number_bytes(kind: &str) -> usize {
    match kind {
        "u64" => 8,
        "u16" => 2,
        "u8" => 1,
        _ => 4,
    }
}

/// Returns the size of a field in bytes.
pub(super) fn len_bytes(layout: &Layout) -> usize {
    match layout {
        Layout::Number(kind) => number_bytes(kind),
        Layout::Text(len) => *len,
        Layout::Array(of, len) => len_bytes(of) * len,
        Layout::Fields(fields) => fields.iter().map(|field| len_bytes(&field.layout)).sum(),
    }
}
