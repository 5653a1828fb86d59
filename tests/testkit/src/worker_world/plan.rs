//! Plans: the worker's limits, the acts of each client, the device's faults, and the expected results.
//!
//! A plan says nothing about pieces, threads or times, and everything that a right worker does with it is known before:
//! whoever carries it out, over sockets or in the simulator, gets the same [`Transcript`].
//!
//! What is comparable, precisely:
//!
//! * All that a client learns of its calls, in order, if it stays until it has the answers or until the worker closes the
//!   connection; and that the worker closes it, where it has to.
//! * What the device did for it ([`Script::journal`], launches).
//! * Not: whether an end is seen as an end or as a reset. TCP makes a reset of it when something was on its way.
//! * Of a client that breaks off with a reset, nothing in particular: how far it came depends on who is faster. What it
//!   learned and what the device did have to be a beginning of what would have been, and that is all; the transcript has
//!   nothing of it.
//! * Of a call in which the device panics, and of one that never ends: that it, and what comes after it, is not answered. A
//!   plan waits for earlier answers first, because the panic takes along those that are under way.

use std::fmt;

use hipr_io::Config;
use hipr_proto::{HipError, Limits};
use hipr_worker::SessionLimits;
use hipr_worker::device::script::{Fault, Script};

use super::model::{Learned, Model, settled};
use super::request::{Call, KERNARG_BYTES, KERNEL, KERNEL_PARAMS, Request, VARIABLES};
use crate::invariants::Violation;

/// An act of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Makes a call, which may be sent later.
    Call(Call),
    /// Sends everything, and then these bytes, which are not a complete call.
    Bytes(Vec<u8>),
    /// Sends everything and waits for all replies.
    Await,
    /// Allows the next client to connect.
    Opened,
    /// Waits until another client has only to close its connection.
    AwaitClient(usize),
    /// Stops reading, except while it cannot write.
    ReadLate,
    /// Starts reading again.
    Read,
    /// Sends everything and closes its sending side.
    HalfClose,
    /// Waits until the worker closes the connection.
    AwaitEnd,
    /// Sends what it can and resets the connection.
    Reset,
    /// Stops the worker.
    StopWorker,
}

/// A client: its acts in order, after which it waits for its replies and closes the connection.
#[derive(Debug)]
pub struct Client {
    /// The number of its device context, if it opens one.
    pub context: Option<usize>,
    /// Its acts.
    pub acts: Vec<Act>,
    /// The expected results.
    pub model: Model,
}

/// The plan of a world.
#[derive(Debug)]
pub struct Plan {
    /// The loop's limits.
    pub io: Config,
    /// The sessions' limits.
    pub session: SessionLimits,
    /// Half the size of the buffer that each client with a context has.
    pub half_bytes: u64,
    /// The clients, in the order in which they connect.
    pub clients: Vec<Client>,
}

/// The results of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript(pub Vec<Seen>);

/// The results of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The results of its calls that are answered, in order.
    pub learned: Vec<Learned>,
    /// Whether the worker closed the connection before the client did.
    pub closed: bool,
    /// The calls of the device.
    pub journal: Vec<&'static str>,
    /// The arguments of the launches.
    pub launches: Vec<u64>,
}

/// Error of accesses to the failing half of a buffer.
const SPOILED: HipError = HipError::ILLEGAL_ADDRESS;

impl Default for Plan {
    fn default() -> Self {
        Self::new(1 << 12)
    }
}

impl Plan {
    /// Creates a plan without clients, with timeouts too long to happen.
    pub fn new(half_bytes: u64) -> Self {
        const NEVER_MS: u64 = 3_600_000;
        let io = Config {
            first_message_timeout_ms: NEVER_MS,
            mid_message_timeout_ms: NEVER_MS,
            linger_ms: NEVER_MS,
            ..Config::default()
        };
        Self { io, session: SessionLimits::default(), half_bytes, clients: Vec::new() }
    }

    /// Returns the limits of the protocol.
    pub fn protocol(&mut self) -> &mut Limits {
        &mut self.io.protocol
    }

    /// Adds a client, which has a buffer, a module and its kernel when `acts` begins. Clients with a context connect one
    /// after another, so that the number of the context is known.
    pub fn client(&mut self, acts: impl FnOnce(&mut Client)) {
        let context = self.clients.iter().filter(|client| client.context.is_some()).count();
        let model = Model::new(context, self.half_bytes, SPOILED, self.io.protocol.small_tail_max);
        let mut client = Client { context: Some(context), acts: Vec::new(), model };
        client.ask(Request::Init);
        client.ask(Request::Malloc(2 * self.half_bytes));
        client.ask(Request::Load(16));
        client.ask(Request::Function(client.model.module(), KERNEL.into()));
        client.acts.extend([Act::Await, Act::Opened]);
        acts(&mut client);
        self.clients.push(client);
    }

    /// Adds a client that sends nothing before `acts` begins and must not need the device.
    pub fn bare_client(&mut self, acts: impl FnOnce(&mut Client)) {
        let model = Model::new(usize::MAX, 0, SPOILED, self.io.protocol.small_tail_max);
        let mut client = Client { context: None, acts: vec![Act::Opened], model };
        acts(&mut client);
        self.clients.push(client);
    }

    /// Returns whether a timeout has to end something: a wait that never ends, or an incomplete message.
    pub fn waits_for_time(&self) -> bool {
        self.clients.iter().any(|client| {
            let hangs = client.model.plans.iter().any(|(_, _, fault)| *fault == Fault::Hang);
            let part = client.acts.iter().rposition(|act| matches!(act, Act::Bytes(_)));
            let rest = part.and_then(|part| client.acts.get(part..)).unwrap_or_default();
            hangs || (part.is_some() && !rest.iter().any(|act| matches!(act, Act::HalfClose | Act::Reset)))
        })
    }

    /// Returns about how many bytes are transmitted in both directions.
    pub fn travelling_bytes(&self) -> usize {
        /// Minimum number of bytes of a call.
        const CALL_BYTES: usize = 100;
        let bytes = |act: &Act| match act {
            Act::Call(call) => CALL_BYTES + call.request.bulk_bytes(),
            Act::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        self.clients.iter().flat_map(|client| &client.acts).map(bytes).sum()
    }

    /// Returns the scripted device with its faults.
    pub fn device(&self) -> Script {
        let script = Script::new();
        script.define_kernel(KERNEL, KERNARG_BYTES, &KERNEL_PARAMS);
        for (name, size) in VARIABLES.into_iter().filter(|(_, size)| *size > 0) {
            script.define_global(name, size);
        }
        for Client { context, model, .. } in &self.clients {
            let Some(context) = *context else { continue };
            let spoiled = model.base() + self.half_bytes..model.base() + 2 * self.half_bytes;
            script.spoil(context, spoiled, SPOILED);
            for &(call, nth, fault) in &model.plans {
                script.plan(context, call, nth, fault);
            }
        }
        script
    }

    /// Returns the expected results.
    pub fn expected(&self) -> Transcript {
        Transcript(self.clients.iter().map(Client::expected).collect())
    }

    /// Builds the transcript of a run from what its clients saw and `device` recorded, without what may differ between
    /// runs.
    ///
    /// # Errors
    /// What a client that broke off saw, or what the device did for it, is no beginning of what would have been.
    pub fn transcript(
        &self,
        seen: Vec<(Vec<Learned>, bool)>,
        device: &Script,
    ) -> Result<Transcript, Violation> {
        let launches = device.launches();
        let seen = self.clients.iter().zip(seen).map(|(client, (learned, closed))| {
            let Some(context) = client.context else { return Seen { learned, closed, ..Seen::default() } };
            let of_context = launches.iter().filter(|launch| launch.context == context);
            let argument = |args: &Vec<Vec<u8>>| {
                let bytes = args.first().and_then(|arg| arg.as_slice().try_into().ok());
                bytes.map_or(u64::MAX, u64::from_le_bytes)
            };
            let launches = of_context.map(|launch| argument(&launch.args)).collect();
            Seen { learned, closed, journal: device.journal(context), launches }
        });
        let seen: Vec<Seen> = seen.collect();
        for (i, (client, seen)) in self.clients.iter().zip(&seen).enumerate() {
            client.check_beginning(i, seen)?;
        }
        let comparable =
            |(client, seen): (&Client, Seen)| if client.breaks_off() { Seen::default() } else { seen };
        Ok(Transcript(self.clients.iter().zip(seen).map(comparable).collect()))
    }
}

impl Client {
    /// Makes a call that is answered.
    pub fn ask(&mut self, request: Request) {
        self.call(Call { request, loud: true, fault: None });
    }

    /// Makes a call that is not answered.
    pub fn tell(&mut self, request: Request) {
        self.call(Call { request, loud: false, fault: None });
    }

    /// Makes a call that is answered and for which the device has a fault.
    pub fn ask_in_vain(&mut self, request: Request, fault: Fault) {
        self.call(Call { request, loud: true, fault: Some(fault) });
    }

    /// Makes a call.
    pub fn call(&mut self, call: Call) {
        self.model.call(&call);
        self.acts.push(Act::Call(call));
    }

    /// Sends bytes that end the session: garbage, or an incomplete message.
    pub fn bytes(&mut self, bytes: Vec<u8>) {
        self.model.over = true;
        self.acts.push(Act::Bytes(bytes));
    }

    /// Adds an act other than a call.
    pub fn act(&mut self, act: Act) {
        self.acts.push(act);
    }

    /// Returns whether the client ends without waiting for its replies.
    fn breaks_off(&self) -> bool {
        self.acts.contains(&Act::Reset)
    }

    fn expected(&self) -> Seen {
        if self.breaks_off() {
            return Seen::default();
        }
        let Model { learned, journal, launches, .. } = &self.model;
        Seen {
            learned: settled(learned),
            closed: self.acts.contains(&Act::AwaitEnd),
            journal: journal.clone(),
            launches: launches.clone(),
        }
    }

    fn check_beginning(&self, index: usize, seen: &Seen) -> Result<(), Violation> {
        let learned: Vec<_> = seen.learned.iter().filter(|learned| **learned != Learned::Closed).collect();
        let begins = self.model.learned.iter().take(learned.len()).eq(learned.iter().copied())
            && self.model.journal.starts_with(&seen.journal)
            && self.model.launches.starts_with(&seen.launches);
        if begins || !self.breaks_off() {
            return Ok(());
        }
        let what = format!("client {index} broke off and saw {seen:?}, no beginning of {:?}", self.model);
        Err(Violation { invariant: "what_is_carried_out_is_a_beginning", call: None, what })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {:?}\n  {:?}\n  buffers of 2 * {} bytes", self.io, self.session, self.half_bytes)?;
        for (i, client) in self.clients.iter().enumerate() {
            writeln!(f, "client {i}, context {:?}", client.context)?;
            let is_told = |learned: &&Learned| matches!(learned, Learned::Told(..));
            let mut replies = client.model.learned.iter().filter(|learned| !is_told(learned));
            for act in &client.acts {
                match act {
                    Act::Call(call) if call.loud => match replies.next() {
                        Some(learned) => writeln!(f, "  {call} -> {learned:?}")?,
                        None => writeln!(f, "  {call}")?,
                    },
                    Act::Call(call) => writeln!(f, "  {call}")?,
                    Act::Bytes(bytes) => writeln!(f, "  {} bytes that are no call", bytes.len())?,
                    act => writeln!(f, "  {act:?}")?,
                }
            }
        }
        Ok(())
    }
}
