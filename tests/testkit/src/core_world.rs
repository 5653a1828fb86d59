//! The core world: a client and a server of `hipr-proto`, a pipe between them, and a device that follows the script.
//!
//! Seven parts take turns: the program makes a call, the client writes, the server reads, the device works, the receiver
//! learns of completions, the server writes, the client reads; an eighth turn is time that passes. While the schedule has
//! bytes, they choose whose turn it is and how much is moved. When it is used up, the world is healed: delays are over, the
//! window is wide, everybody gets turns, and what is still owed has to arrive.

mod client;
mod pipe;
mod server;
mod tap;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hipr_proto::Outbox;
use hipr_proto::op::RequestFailed;

use self::client::{ClientSide, Inline};
use self::pipe::{Found, Pipe};
use self::server::ServerSide;
use crate::choices::Choices;
use crate::invariants;
use crate::model::Model;
use crate::options::{Direction, FaultKind, Options};
use crate::script::{Bytes, Case, pattern};
use crate::simulate::Failure;
use crate::trace::{Event, Trace};

/// Runs a case, and its script a second time with bytes cut into other pieces. Fails with the violated invariants.
///
/// # Errors
/// The invariants that did not hold.
pub fn check(case: &Case) -> Result<(), Failure> {
    let model = Model::of(&case.script, &case.options);
    let trace = run(case);
    let mut violations = invariants::violations(case, &model, &trace);
    let whole = Case { schedule: Vec::new(), ..case.clone() };
    violations.extend(invariants::chunking_is_invisible(case, &trace, &run(&whole)).err());
    if violations.is_empty() { Ok(()) } else { Err(Failure { violations }) }
}

/// Runs a case and returns its trace.
pub fn run(case: &Case) -> Trace {
    let mut trace = Trace::default();
    // A panic is a finding like any other: what happened before it is kept.
    let lived = catch_unwind(AssertUnwindSafe(|| Life::new(case).live(&mut trace)));
    if let Err(panic) = lived {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        trace.panic = Some(text.unwrap_or("something that is no text").into());
    }
    trace
}

/// Input for an end after its peer broke the protocol, which must not change its error.
static PROBES: &[&[u8]] = &[
    b"",
    // A ping, as a request and as a reply.
    b"RPIH\x00\x01\x03\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    b"RPIH\x00\x01\x03\x00\x01\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
    b"anything else",
];

/// The fixed part of a reply with an error.
static ZEROS: &[u8] = &[0; 2048];

/// Returns the notification after a call of the script, with `len` bytes of text.
fn notification(call: usize, len: u64) -> (RequestFailed, &'static [u8]) {
    let text = pattern(call, Bytes::Notification, 0, len);
    let (request, text_length) = (call as u32, text.len() as u32);
    let (operation, error_code, function, stream) = (0x0500, 1, u64::MAX, 7);
    let failed = RequestFailed { request, operation, error_code, text_length, function, stream };
    (failed, text)
}

/// Maximum number of turns until a world has to be at rest.
const TURNS_MAX: usize = 200_000;

/// Decides how many bytes are moved, and when they arrive.
struct Moves<'c> {
    choices: Choices<'c>,
    now_ms: u64,
    is_healed: bool,
    chunk_max_bytes: u64,
    delay_max_ms: u64,
}

impl<'c> Moves<'c> {
    fn new(case: &'c Case) -> Self {
        Self {
            choices: Choices::new(&case.schedule),
            now_ms: 0,
            is_healed: false,
            chunk_max_bytes: case.options.chunk_max_bytes,
            delay_max_ms: case.options.delay_max_ms,
        }
    }

    /// Moves everything at once.
    fn all() -> Moves<'static> {
        let choices = Choices::new(&[]);
        Moves { choices, now_ms: u64::MAX, is_healed: true, chunk_max_bytes: 0, delay_max_ms: 0 }
    }

    fn perhaps(&mut self) -> bool {
        !self.is_healed && self.choices.one_in(3)
    }

    /// Returns a number from 1 to `n`.
    fn some_of(&mut self, n: usize) -> usize {
        if self.is_healed { n } else { n.min(1 + self.choices.below(self.chunk_max_bytes) as usize) }
    }

    /// Writes a part of `outbox`; returns whether anything was written. `look` is called with the bytes first.
    fn write(
        &mut self,
        outbox: &mut Outbox<Inline>,
        pipe: &mut Pipe,
        mut look: impl FnMut(&mut Pipe, &[u8]),
    ) -> bool {
        if outbox.is_empty() {
            return false;
        }
        let n = self.some_of(outbox.len_bytes()).min(pipe.room());
        let due_ms = self.now_ms + if self.is_healed { 0 } else { self.choices.below(self.delay_max_ms + 1) };
        let mut left = n;
        for slice in outbox.slices() {
            let part = slice.get(..left.min(slice.len())).unwrap_or(slice);
            look(pipe, part);
            pipe.write(part, due_ms);
            left -= part.len();
            if left == 0 {
                break;
            }
        }
        outbox.advance(n);
        n > 0
    }

    fn read(&mut self, pipe: &mut Pipe, buffer: &mut Vec<u8>) -> Found {
        let most = self.some_of(usize::MAX);
        pipe.read(buffer, most, self.now_ms)
    }
}

/// The state of a world.
struct Life<'c> {
    options: &'c Options,
    moves: Moves<'c>,
    client: ClientSide<'c>,
    up: Pipe,
    down: Pipe,
    server: ServerSide<'c>,
    has_given_up: bool,
}

/// Number of actors that can take a turn.
const TURNS: u64 = 8;

impl<'c> Life<'c> {
    fn new(case: &'c Case) -> Self {
        let options = &case.options;
        let pipe = |direction| {
            let fault = options.fault.as_ref().filter(|fault| fault.direction == direction);
            Pipe::new(options.window_bytes, fault.cloned())
        };
        Self {
            options,
            moves: Moves::new(case),
            client: ClientSide::new(&case.script, options),
            up: pipe(Direction::Up),
            down: pipe(Direction::Down),
            server: ServerSide::new(&case.script, options),
            has_given_up: false,
        }
    }

    fn live(&mut self, trace: &mut Trace) {
        while !self.moves.choices.is_exhausted() {
            let turn = self.moves.choices.below(TURNS);
            self.turn(turn, trace);
        }
        self.moves.is_healed = true;
        self.up.heal();
        self.down.heal();
        for _ in 0..TURNS_MAX {
            let mut has_moved = false;
            for turn in 0..TURNS {
                has_moved |= self.turn(turn, trace);
            }
            if has_moved {
                continue;
            }
            if self.client.has_ended() && self.server.has_ended() {
                trace.fault_at_byte = self.up.struck_at().or(self.down.struck_at());
                trace.events.push(self.server.at_rest());
                return;
            }
            if !self.go_on(trace) {
                break;
            }
        }
        trace.fault_at_byte = self.up.struck_at().or(self.down.struck_at());
        trace.events.push(Event::Stuck);
    }

    /// Advances the clock, or ends the connection, when no actor can do anything. Returns false if nothing can happen.
    fn go_on(&mut self, trace: &mut Trace) -> bool {
        if let Some(due_ms) = self.server.next_due_ms().filter(|due_ms| *due_ms > self.moves.now_ms) {
            self.moves.now_ms = due_ms;
            return true;
        }
        if !self.client.has_ended() && self.client.has_said_all() && self.client.half_close(&mut self.up) {
            return true;
        }
        // Patience ends only where something happened that nobody can make good.
        let is_excused = self.server.hangs()
            || self.options.fault.as_ref().is_some_and(|fault| {
                matches!(fault.kind, FaultKind::Insert(_) | FaultKind::Flip(_))
                    && self.up.struck_at().or(self.down.struck_at()).is_some()
            });
        if is_excused && !std::mem::replace(&mut self.has_given_up, true) {
            self.client.lose(&mut self.up, &mut self.down, trace);
            // A session whose client is gone does not wait for its device.
            self.server.lose(&mut self.up, &mut self.down, trace);
            return true;
        }
        false
    }

    /// Lets one actor take its turn; returns whether anything changed.
    fn turn(&mut self, turn: u64, trace: &mut Trace) -> bool {
        let Self { options, moves, client, up, down, server, .. } = self;
        let found = match turn {
            0 => return client.ask(options.waits, up, trace),
            1 => return client.write(moves, options.flushes_late, up),
            2 => server.read(moves, up, trace),
            3 => return server.work(moves, trace),
            4 => return server.retire(moves, trace),
            5 => return server.write(moves, down, trace),
            6 => client.read(moves, (up, down), trace),
            _ => {
                if !moves.is_healed {
                    moves.now_ms += 1 + moves.choices.below(10);
                }
                return false;
            }
        };
        match found {
            Found::Bytes(n) => n > 0,
            Found::End => true,
            Found::Reset => {
                client.lose(up, down, trace);
                server.lose(up, down, trace);
                true
            }
        }
    }
}
