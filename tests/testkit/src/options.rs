//! The options of a world. They are drawn first, so that worlds differ much from each other (swarm testing): some never
//! fail, some only copy, some allow one open request.

use std::fmt;

use hipr_proto::{Limits, OPS};

use crate::choices::Choices;

/// The options of a world and of its script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Maximum number of calls.
    pub calls_max: usize,
    /// Indices of the operation table's rows that occur; at least one.
    pub rows: Vec<u8>,
    /// Percentage of malformed calls: unknown, too short, too long.
    pub odd_percent: u8,
    /// Percentage of calls that are answered.
    pub loud_percent: u8,
    /// Percentage of calls that the device fails.
    pub error_percent: u8,
    /// Percentage of calls before or during which an error of earlier work appears.
    pub surface_percent: u8,
    /// Percentage of calls that take the device time.
    pub slow_percent: u8,
    /// Whether the device may fail for good.
    pub may_die: bool,
    /// Whether the device may hang, and how that ends.
    pub hang: Option<Hang>,
    /// Maximum length of a valid request's or reply's tail in bytes.
    pub size_max_bytes: u64,
    /// Maximum number of bytes moved at once.
    pub chunk_max_bytes: u64,
    /// Capacity of one direction of the pipe in bytes.
    pub window_bytes: usize,
    /// Maximum delay of bytes in the pipe.
    pub delay_max_ms: u64,
    /// The server's limits.
    pub limits: Limits,
    /// Maximum number of calls that may wait at the client.
    pub client_open_max: usize,
    /// Whether the program waits for each reply before the next call.
    pub waits: bool,
    /// Whether the client leaves its coalescing buffer alone until it has to.
    pub flushes_late: bool,
    /// Whether the client is split into its halves.
    pub client_in_halves: bool,
    /// Whether the server is split into its halves, with batches of requests that are retired later.
    pub server_in_halves: bool,
    /// The fault of the connection, if there is one.
    pub fault: Option<Fault>,
    /// Percentage of calls after which the server notifies the client, which accepts that if it is not 0.
    pub notify_percent: u8,
}

/// How a hanging device ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hang {
    /// The worker gives up after this many milliseconds, and the call fails.
    TimeOutMs(u64),
    /// The client gives up and closes the connection.
    ForEver,
}

/// A direction of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
}

/// A fault at one byte of one direction of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The direction.
    pub direction: Direction,
    /// Number of messages before the fault.
    pub message: usize,
    /// Number of bytes after the end of those messages.
    pub byte: u64,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultKind {
    /// The stream ends there.
    HalfClose,
    /// The connection is reset in both directions when the byte would be delivered.
    Reset,
    /// These bytes are inserted.
    Insert(Vec<u8>),
    /// One byte is exclusive-ored with this.
    Flip(u8),
}

impl Options {
    /// Draws the options of a world.
    pub fn draw(choices: &mut Choices<'_>) -> Self {
        let server_limits = Limits {
            payload_max: 150_000,
            small_tail_max: *choices.pick(&[64 << 10, 4096, 300, 24]).unwrap_or(&4096),
            open_max: *choices.pick(&[1000, 1, 2, 3, 7, 20]).unwrap_or(&7),
        };
        let hang = [None, None, None, Some(Hang::TimeOutMs(50)), Some(Hang::ForEver)];
        let percents = [0, 0, 5, 20, 60];
        let percent = |choices: &mut Choices<'_>| choices.pick(&percents).copied().unwrap_or(0);
        Self {
            calls_max: *choices.pick(&[12, 4, 30, 60]).unwrap_or(&12),
            rows: draw_rows(choices),
            odd_percent: percent(choices),
            loud_percent: *choices.pick(&[50, 0, 10, 30, 90]).unwrap_or(&50),
            error_percent: percent(choices),
            surface_percent: percent(choices),
            slow_percent: percent(choices),
            may_die: choices.one_in(8),
            hang: *choices.pick(&hang).unwrap_or(&None),
            size_max_bytes: *choices.pick(&[100, 0, 1, 20, 600, 5000, 9000, 70_000]).unwrap_or(&100),
            chunk_max_bytes: *choices.pick(&[1 << 20, 1, 3, 30, 200, 1000, 5000, 40_000]).unwrap_or(&30),
            window_bytes: *choices.pick(&[1 << 20, 1, 30, 500, 8000]).unwrap_or(&8000),
            delay_max_ms: *choices.pick(&[0, 0, 3, 40]).unwrap_or(&0),
            limits: server_limits,
            client_open_max: *choices.pick(&[1000, 1, 2, 5]).unwrap_or(&5),
            waits: choices.one_in(4),
            flushes_late: choices.one_in(3),
            client_in_halves: choices.one_in(2),
            server_in_halves: choices.one_in(2),
            fault: if choices.one_in(3) { Some(Fault::draw(choices)) } else { None },
            notify_percent: *choices.pick(&[0, 10, 60]).unwrap_or(&0),
        }
    }
}

/// Draws some rows of the table, often few, so that they interact.
fn draw_rows(choices: &mut Choices<'_>) -> Vec<u8> {
    let len = OPS.len();
    if choices.one_in(4) {
        return (0..len as u8).collect();
    }
    let count = choices.between(1, 8);
    (0..count).map(|_| choices.index(len) as u8).collect()
}

impl Fault {
    fn draw(choices: &mut Choices<'_>) -> Self {
        let direction = if choices.one_in(2) { Direction::Down } else { Direction::Up };
        let message = choices.index(12);
        let byte = match choices.below(3) {
            0 => 0,
            1 => choices.below(40),
            _ => choices.below(700),
        };
        let kind = match choices.below(5) {
            0 => FaultKind::HalfClose,
            1 => FaultKind::Reset,
            2 => FaultKind::Insert((0..choices.between(1, 40)).map(|_| choices.below(256) as u8).collect()),
            3 => FaultKind::Insert(draw_header(choices)),
            _ => FaultKind::Flip(choices.between(1, 255) as u8),
        };
        Self { direction, message, byte, kind }
    }
}

/// Draws a header that is nearly valid.
fn draw_header(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut header = hipr_proto::Header::new(hipr_proto::Opcode::PING, 1, 0, 0);
    match choices.below(5) {
        0 => header.magic ^= 1 << choices.below(32),
        1 => header.version = choices.below(0x400) as u16,
        2 => header.flags = choices.below(16) as u32,
        3 => header.payload_length = choices.below(1 << 22),
        _ => header.op = hipr_proto::Opcode(choices.below(0x1000) as u16),
    }
    header.to_bytes().to_vec()
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.rows.iter().filter_map(|row| OPS.get(usize::from(*row))).map(|info| info.name);
        let rows = if self.rows.len() < 20 {
            names.collect::<Vec<_>>().join(" ")
        } else {
            format!("{} rows of the table", self.rows.len())
        };
        writeln!(f, "  operations      {rows}")?;
        writeln!(
            f,
            "  calls           up to {}, {} % answered, {} % odd, tails up to {} bytes",
            self.calls_max, self.loud_percent, self.odd_percent, self.size_max_bytes
        )?;
        writeln!(
            f,
            "  device          {} % errors, {} % surface later, {} % slow, may die: {}, hangs: {:?}",
            self.error_percent, self.surface_percent, self.slow_percent, self.may_die, self.hang
        )?;
        writeln!(
            f,
            "  pipe            pieces up to {} bytes, window {} bytes, delay up to {} ms, fault: {:?}",
            self.chunk_max_bytes, self.window_bytes, self.delay_max_ms, self.fault
        )?;
        writeln!(
            f,
            "  client          {} open, waits: {}, flushes late: {}, in halves: {}",
            self.client_open_max, self.waits, self.flushes_late, self.client_in_halves
        )?;
        write!(
            f,
            "  server          {:?}, in halves: {}, {} % notifications",
            self.limits, self.server_in_halves, self.notify_percent
        )
    }
}
