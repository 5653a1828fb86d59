//! What a client asks for, and what the device will say to it.

use std::fmt;
use std::sync::LazyLock;

use hipr_proto::{Class, HipError, OPS, Opcode, Tail, TailLen};

use crate::choices::{Choices, noise};
use crate::options::{Hang, Options};
use crate::shape::{SHAPES, Shape};

/// Everything that determines a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// What the world is like.
    pub options: Options,
    /// The calls.
    pub script: Script,
    /// The decisions on the way: who acts next, how much is moved. When they are used up, faults and delays are over, all
    /// get their turn, and what is still owed has to arrive.
    pub schedule: Vec<u8>,
}

/// Calls in the order in which they are made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script(pub Vec<Call>);

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub op: Opcode,
    /// How the request is made.
    pub kind: Kind,
    /// The request's fixed part; all that there is of it.
    pub fixed: Vec<u8>,
    /// Bytes after the fixed part. Which ones is settled by the call's place: [`pattern`].
    pub tail_len: u64,
    /// How many of them are given as bytes to copy; the others are given as inline bytes.
    pub copied_len: u64,
    /// Whether the request is made from a struct of the table instead of from bytes.
    pub typed: bool,
    /// Whether it is answered.
    pub loud: bool,
    /// What the device says.
    pub device: Device,
    /// How long the device takes, in milliseconds.
    pub slow_ms: u64,
    /// Bytes after the fixed part of a successful reply.
    pub reply_len: u64,
    /// Whether they are streamed.
    pub streamed: bool,
    /// An error of earlier work that surfaces around this call.
    pub surfaces: Option<(When, HipError)>,
}

/// How a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// As the table asks.
    Good,
    /// With so many bytes too many.
    Trailing(u64),
    /// An operation that is not in the table.
    Unknown,
    /// With an incomplete fixed part.
    ShortFixed,
    /// With a tail that is shorter than the fixed part says.
    ShortTail,
    /// With a small tail above the server's limit.
    LongTail,
    /// With a payload above the server's limit: the connection ends.
    TooLong,
}

/// What the device says to a call that is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// It worked.
    Ok,
    /// It failed.
    Error(HipError),
    /// It failed and so will everything later that needs the device.
    Death(HipError),
    /// Nothing, until somebody's patience ends ([`Options::hang`]); then it failed.
    Hang(HipError),
}

/// When an error of earlier work surfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before it is decided whether the call is carried out.
    Before,
    /// While it is carried out.
    During,
}

/// Errors of scripts: each occurs once, so that whoever reports one can be asked whose it is.
const OWN_ERROR_BASE: i32 = 10_000;
const SURFACED_ERROR_BASE: i32 = 20_000;

/// An operation that is not in the table, and will not be: these numbers lie between its blocks.
const UNKNOWN_CODES: [u16; 4] = [0x0000, 0x0fff, 0x01ff, 0xffff];

impl Case {
    /// The case that a seed stands for.
    pub fn from_seed(seed: u64) -> Self {
        Self::from_bytes(&crate::choices::seed_bytes(seed))
    }

    /// The case that these bytes stand for.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::draw(bytes, Options::draw)
    }

    /// The case that these bytes stand for in a world with options of its own.
    pub fn draw(bytes: &[u8], options: impl FnOnce(&mut Choices<'_>) -> Options) -> Self {
        let mut choices = Choices::new(bytes);
        let options = options(&mut choices);
        let script = Script::draw(&options, &mut choices);
        Self { options, script, schedule: choices.rest().to_vec() }
    }
}

impl Script {
    /// Draws a script for a world.
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
        }
    }

    fn good(shape: &Shape, options: &Options, choices: &mut Choices<'_>) -> Self {
        let info = shape.info;
        let small_max = options.limits.small_tail_max;
        let most = match info.request.tail {
            Tail::Small => options.size_max_bytes.min(small_max),
            Tail::Bulk | Tail::None => options.size_max_bytes,
        };
        // A unit is 16 bytes at most: an edge of a graph, or its counterpart in the reply.
        let units = if info.request.tail == Tail::Small || info.reply.tail == Tail::Small {
            choices.below(most / 16 + 1)
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
            TailLen::AtMost(max) => choices.below(max + 1),
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

    /// A request that is not as the table asks; a good one where the row has no such possibility.
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
                let mut units = limits.small_tail_max / 16;
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

    /// What it has to do with kept errors. What nobody knows is nothing special.
    pub fn class(&self) -> Class {
        self.op.info().map_or(Class::Plain, |info| info.class)
    }

    /// Why it cannot be carried out.
    pub fn refusal(&self) -> Option<HipError> {
        match self.kind {
            Kind::Good | Kind::Trailing(_) => None,
            Kind::Unknown => Some(HipError::NOT_SUPPORTED),
            Kind::ShortFixed | Kind::ShortTail | Kind::LongTail | Kind::TooLong => {
                Some(HipError::INVALID_VALUE)
            }
        }
    }

    /// Bytes of its tail that a server delivers.
    pub fn delivered_len(&self) -> u64 {
        match self.kind {
            Kind::Good => self.tail_len,
            Kind::Trailing(extra) => self.tail_len - extra,
            _ => 0,
        }
    }

    /// Bytes of the fixed part of a successful reply.
    pub fn reply_size(&self) -> usize {
        self.op.info().map_or(0, |info| info.reply.size)
    }

    /// Whether nobody ever ends it in a world like this.
    pub fn hangs_for_ever(&self, options: &Options) -> bool {
        matches!(self.device, Device::Hang(_)) && options.hang == Some(Hang::ForEver)
    }
}

/// A length up to `most`; the boundaries are more frequent than others.
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

/// The call that an error of a script belongs to.
pub fn call_of(error: HipError) -> Option<usize> {
    let base = if error.0 >= SURFACED_ERROR_BASE { SURFACED_ERROR_BASE } else { OWN_ERROR_BASE };
    usize::try_from(error.0.checked_sub(base)?).ok()
}

/// Bytes that belong to a call. They differ from call to call and from place to place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// The request's tail.
    RequestTail,
    /// The fixed part of a successful reply.
    ReplyFixed,
    /// What follows it.
    ReplyTail,
}

/// The longest of them.
const BYTES_MAX: usize = 160_000;

/// `len` of a call's bytes, from `offset` on. Empty beyond what any call has.
pub fn pattern(call: usize, bytes: Bytes, offset: u64, len: u64) -> &'static [u8] {
    /// Where calls begin: a prime apart, in this many places.
    const STEP: usize = 509;
    const PLACES: usize = 64;
    static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| noise(2 * BYTES_MAX + STEP * PLACES));
    let base = match bytes {
        Bytes::RequestTail => 0,
        Bytes::ReplyTail => BYTES_MAX / 2,
        Bytes::ReplyFixed => BYTES_MAX,
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
        Ok(())
    }
}

/// The rows whose numbers these operations have.
pub fn rows_of(ops: &[Opcode]) -> Vec<u8> {
    (0..).zip(OPS).filter(|(_, info)| ops.contains(&info.code)).map(|(row, _)| row).collect()
}
