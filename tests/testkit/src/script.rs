//! Scripts: the calls of a client, and the device's results.

use std::fmt;
use std::sync::LazyLock;

use hipr_proto::{Class, HipError, OPS, Opcode, Tail, TailLen};

use crate::choices::{Choices, noise};
use crate::options::{Hang, Options};
use crate::shape::{SHAPES, Shape};

/// Everything that determines a run of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// The options of the world.
    pub options: Options,
    /// The calls.
    pub script: Script,
    /// Decisions during the run: who acts next, and how much is moved. When they are used up, faults and delays end, every
    /// actor gets its turn, and everything still owed has to arrive.
    pub schedule: Vec<u8>,
}

/// Calls in the order in which they are made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script(pub Vec<Call>);

/// A call of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub op: Opcode,
    /// Whether the request is valid.
    pub kind: Kind,
    /// The request's fixed part, which may be incomplete.
    pub fixed: Vec<u8>,
    /// Number of bytes after the fixed part; [`pattern`] defines them by the call's index.
    pub tail_len: u64,
    /// How many of them are passed as bytes to copy; the others are passed as inline bytes.
    pub copied_len: u64,
    /// Whether the request is made from a typed struct instead of bytes.
    pub typed: bool,
    /// Whether it is answered.
    pub loud: bool,
    /// The device's result.
    pub device: Device,
    /// Time that the device takes.
    pub slow_ms: u64,
    /// Number of bytes after the fixed part of a successful reply.
    pub reply_len: u64,
    /// Whether those bytes are streamed.
    pub streamed: bool,
    /// An error of earlier work that appears around this call.
    pub surfaces: Option<(When, HipError)>,
    /// The length of the text of a notification that the server sends when the call is completed, before its streamed bytes are.
    pub notifies: Option<u64>,
}

/// Whether a request is valid, or in which way it is malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request is valid.
    Good,
    /// The payload has this many superfluous bytes.
    Trailing(u64),
    /// Its operation is not in the table.
    Unknown,
    /// Its fixed part is incomplete.
    ShortFixed,
    /// Its tail is shorter than the fixed part says.
    ShortTail,
    /// Its small tail exceeds the server's limit.
    LongTail,
    /// Its payload exceeds the server's limit, which ends the connection.
    TooLong,
}

/// The device's result for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The call succeeds.
    Ok,
    /// The call fails.
    Error(HipError),
    /// The call fails, and so does every later call that needs the device.
    Death(HipError),
    /// The call hangs until [`Options::hang`] ends it with this error.
    Hang(HipError),
}

/// The time at which an error of earlier work appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before it is decided whether the call is executed.
    Before,
    /// While the call is executed.
    During,
}

/// First error code of scripts. Each code occurs once, so that it identifies the failed call.
const OWN_ERROR_BASE: i32 = 10_000;
const SURFACED_ERROR_BASE: i32 = 20_000;

/// Operation codes that are not in the table and never will be.
const UNKNOWN_CODES: [u16; 4] = [0x0000, 0x0fff, 0x01ff, 0xffff];

impl Case {
    /// Draws the case of a seed.
    pub fn from_seed(seed: u64) -> Self {
        Self::from_bytes(&crate::choices::seed_bytes(seed))
    }

    /// Draws a case from bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::draw(bytes, Options::draw)
    }

    /// Draws a case from bytes, with options that `options` draws.
    pub fn draw(bytes: &[u8], options: impl FnOnce(&mut Choices<'_>) -> Options) -> Self {
        let mut choices = Choices::new(bytes);
        let options = options(&mut choices);
        let script = Script::draw(&options, &mut choices);
        Self { options, script, schedule: choices.rest().to_vec() }
    }
}

impl Script {
    /// Draws a script for a world with these options.
    pub fn draw(options: &Options, choices: &mut Choices<'_>) -> Self {
        let len = choices.index(options.calls_max) + 1;
        let mut calls = Vec::with_capacity(len);
        while calls.len() < len {
            let call = Call::draw(calls.len(), options, choices);
            let is_last = call.kind == Kind::TooLong;
            calls.push(call);
            if is_last && choices.one_in(2) {
                break;
            }
        }
        Self(calls)
    }
}

/// Returns how many bytes of a tail one more of what its length field counts has at most: 16, as an edge of a graph or its counterpart in
/// the reply, unless it is more.
fn unit_max(shape: &Shape) -> u64 {
    match shape.request(1).1.request {
        TailLen::Exact(len) => len.max(16),
        TailLen::AtLeast(_) | TailLen::AtMost(_) => 16,
    }
}

impl Call {
    fn draw(index: usize, options: &Options, choices: &mut Choices<'_>) -> Self {
        let row = choices.pick(&options.rows).copied().unwrap_or(0);
        let shapes = SHAPES.get(usize::from(row)).or(SHAPES.first()).map_or(&[][..], Vec::as_slice);
        let mut call = match choices.pick(shapes) {
            Some(shape) if choices.percent(options.odd_percent) => Self::odd(shape, options, choices),
            Some(shape) => Self::good(shape, options, choices),
            None => Self::unknown(options, choices),
        };
        call.loud = choices.percent(options.loud_percent);
        call.streamed = choices.one_in(2);
        if call.kind == Kind::Good && call.tail_len <= options.limits.small_tail_max.max(call.copied_len) {
            call.typed = !choices.one_in(3);
        }
        if choices.percent(options.slow_percent) {
            call.slow_ms = choices.between(1, 30);
        }
        if choices.percent(options.error_percent) {
            call.device = Device::Error(own_error(index));
        }
        if options.may_die && choices.one_in(16) {
            call.device = Device::Death(own_error(index));
        }
        if options.hang.is_some() && choices.one_in(8) {
            call.device = Device::Hang(own_error(index));
        }
        if choices.percent(options.surface_percent) {
            let when = if choices.one_in(2) { When::During } else { When::Before };
            call.surfaces = Some((when, surfaced_error(index)));
        }
        if choices.percent(options.notify_percent) {
            call.notifies =
                Some(choices.below(options.size_max_bytes.min(options.limits.small_tail_max) + 1));
        }
        call
    }

    fn new(op: Opcode, kind: Kind, fixed: Vec<u8>, tail_len: u64) -> Self {
        Self {
            op,
            kind,
            fixed,
            tail_len,
            copied_len: tail_len,
            typed: false,
            loud: false,
            device: Device::Ok,
            slow_ms: 0,
            reply_len: 0,
            streamed: false,
            surfaces: None,
            notifies: None,
        }
    }

    fn good(shape: &Shape, options: &Options, choices: &mut Choices<'_>) -> Self {
        let info = shape.info;
        let small_max = options.limits.small_tail_max;
        let most = match info.request.tail {
            Tail::Small => options.size_max_bytes.min(small_max),
            Tail::Bulk | Tail::None => options.size_max_bytes,
        };
        let units = if info.request.tail == Tail::Small || info.reply.tail == Tail::Small {
            choices.below(most / unit_max(shape) + 1)
        } else {
            size(most, choices)
        };
        let (fixed, tails) = shape.request(if shape.has_knob() { units } else { 0 });
        let tail_len = match tails.request {
            TailLen::Exact(len) => len,
            TailLen::AtLeast(min) => min + size(most.saturating_sub(min), choices),
            TailLen::AtMost(max) => choices.below(max + 1),
        };
        let mut call = Self::new(info.code, Kind::Good, fixed, tail_len);
        call.reply_len = match tails.reply {
            TailLen::Exact(len) | TailLen::AtLeast(len) => len,
            TailLen::AtMost(max) => choices.below(max.min(options.size_max_bytes) + 1),
        };
        call.copied_len = match (info.request.tail, choices.below(4)) {
            (_, 0) => choices.below(tail_len + 1),
            (Tail::Bulk, _) => 0,
            _ => tail_len,
        };
        call
    }

    fn unknown(options: &Options, choices: &mut Choices<'_>) -> Self {
        let op = Opcode(choices.pick(&UNKNOWN_CODES).copied().unwrap_or(0xffff));
        let mut call = Self::new(op, Kind::Unknown, Vec::new(), size(options.size_max_bytes, choices));
        call.copied_len = choices.below(call.tail_len + 1);
        call
    }

    /// Draws a malformed request; a valid one if the operation cannot be malformed.
    fn odd(shape: &Shape, options: &Options, choices: &mut Choices<'_>) -> Self {
        let info = shape.info;
        let limits = &options.limits;
        match choices.below(8) {
            0 | 1 => Self::unknown(options, choices),
            2 | 3 if info.request.size > 0 => {
                let (mut fixed, _) = shape.request(0);
                fixed.truncate(choices.index(info.request.size));
                Self::new(info.code, Kind::ShortFixed, fixed, 0)
            }
            4 if shape.has_knob() => {
                let (fixed, tails) = shape.request(1 + choices.below(8));
                match tails.request {
                    TailLen::Exact(need) | TailLen::AtLeast(need) if need > 0 => {
                        Self::new(info.code, Kind::ShortTail, fixed, choices.below(need))
                    }
                    _ => Self::good(shape, options, choices),
                }
            }
            5 if info.request.tail == Tail::Small => {
                // The first length above the limit that the row can say, or a little more.
                let mut units = limits.small_tail_max / unit_max(shape);
                loop {
                    let (fixed, tails) = shape.request(units);
                    let len = match tails.request {
                        TailLen::Exact(len) => len,
                        TailLen::AtLeast(min) => min.max(limits.small_tail_max + 1 + choices.below(2)),
                        TailLen::AtMost(_) => 0,
                    };
                    if len > limits.small_tail_max {
                        break Self::new(info.code, Kind::LongTail, fixed, len);
                    }
                    units += 1;
                }
            }
            6 if choices.one_in(3) => {
                let (fixed, _) = shape.request(0);
                let len = limits.payload_max + 1 + choices.below(2) - fixed.len() as u64;
                Self { copied_len: 0, ..Self::new(info.code, Kind::TooLong, fixed, len) }
            }
            _ => {
                let mut call = Self::good(shape, options, choices);
                // Where the length is not exact, more bytes are a longer tail.
                if matches!(shape.request(0).1.request, TailLen::Exact(_)) {
                    let extra = choices.between(1, 50);
                    call.kind = Kind::Trailing(extra);
                    call.tail_len += extra;
                    call.copied_len = choices.below(call.tail_len + 1);
                }
                call
            }
        }
    }

    /// Returns the class of the operation; unknown operations are `Plain`.
    pub fn class(&self) -> Class {
        self.op.info().map_or(Class::Plain, |info| info.class)
    }

    /// Returns the error with which a server refuses the request, if it does.
    pub fn refusal(&self) -> Option<HipError> {
        match self.kind {
            Kind::Good | Kind::Trailing(_) => None,
            Kind::Unknown => Some(HipError::NOT_SUPPORTED),
            Kind::ShortFixed | Kind::ShortTail | Kind::LongTail | Kind::TooLong => {
                Some(HipError::INVALID_VALUE)
            }
        }
    }

    /// Returns how many bytes of the tail a server delivers.
    pub fn delivered_len(&self) -> u64 {
        match self.kind {
            Kind::Good => self.tail_len,
            Kind::Trailing(extra) => self.tail_len - extra,
            _ => 0,
        }
    }

    /// Returns the size of a successful reply's fixed part.
    pub fn reply_size(&self) -> usize {
        self.op.info().map_or(0, |info| info.reply.size)
    }

    /// Returns whether the call hangs until the client gives up.
    pub fn hangs_for_ever(&self, options: &Options) -> bool {
        matches!(self.device, Device::Hang(_)) && options.hang == Some(Hang::ForEver)
    }
}

/// Draws a length up to `most`; the limits are more frequent.
fn size(most: u64, choices: &mut Choices<'_>) -> u64 {
    match choices.below(8) {
        0 => 0,
        1 => most,
        2 => most.min(1),
        _ => choices.below(most + 1),
    }
}

fn own_error(index: usize) -> HipError {
    HipError(OWN_ERROR_BASE + index as i32)
}

fn surfaced_error(index: usize) -> HipError {
    HipError(SURFACED_ERROR_BASE + index as i32)
}

/// Returns the index of the call that an error of a script belongs to.
pub fn call_of(error: HipError) -> Option<usize> {
    let base = if error.0 >= SURFACED_ERROR_BASE { SURFACED_ERROR_BASE } else { OWN_ERROR_BASE };
    usize::try_from(error.0.checked_sub(base)?).ok()
}

/// The parts of a call that consist of generated bytes, which differ from call to call and from position to position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// The request's tail.
    RequestTail,
    /// The fixed part of a successful reply.
    ReplyFixed,
    /// The tail of a successful reply.
    ReplyTail,
    /// The text of a notification.
    Notification,
}

/// Maximum length of such a part in bytes.
const BYTES_MAX: usize = 160_000;

/// Returns `len` bytes of a part of a call, from `offset` on; empty beyond the maximum length.
pub fn pattern(call: usize, bytes: Bytes, offset: u64, len: u64) -> &'static [u8] {
    /// Offset between the bytes of two calls, a prime.
    const STEP: usize = 509;
    const PLACES: usize = 64;
    static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| noise(2 * BYTES_MAX + STEP * PLACES));
    let base = match bytes {
        Bytes::RequestTail => 0,
        Bytes::ReplyTail => BYTES_MAX / 2,
        Bytes::ReplyFixed => BYTES_MAX,
        Bytes::Notification => BYTES_MAX / 3,
    };
    let start = (base + call % PLACES * STEP).saturating_add(usize::try_from(offset).unwrap_or(usize::MAX));
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    NOISE.get(start..start.saturating_add(len)).unwrap_or(&[])
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, call) in self.0.iter().enumerate() {
            writeln!(f, "  {index:3}  {call}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.loud { "ask " } else { "tell" }, self.op)?;
        if self.kind != Kind::Good {
            write!(f, " {:?}", self.kind)?;
        }
        if self.tail_len > 0 {
            write!(f, " tail {}", self.tail_len)?;
        }
        if self.reply_len > 0 {
            write!(f, " reply {}{}", self.reply_len, if self.streamed { " streamed" } else { "" })?;
        }
        match self.device {
            Device::Ok => {}
            Device::Error(error) => write!(f, " fails with {}", error.0)?,
            Device::Death(error) => write!(f, " kills the device with {}", error.0)?,
            Device::Hang(error) => write!(f, " hangs, then {}", error.0)?,
        }
        if self.slow_ms > 0 {
            write!(f, " after {} ms", self.slow_ms)?;
        }
        if let Some((when, error)) = self.surfaces {
            write!(f, "; {} surfaces {}", error.0, format!("{when:?}").to_lowercase())?;
        }
        if let Some(len) = self.notifies {
            write!(f, "; notifies {len}")?;
        }
        Ok(())
    }
}

/// Returns the rows of the table that have these codes.
pub fn rows_of(ops: &[Opcode]) -> Vec<u8> {
    (0..).zip(OPS).filter(|(_, info)| ops.contains(&info.code)).map(|(row, _)| row).collect()
}
