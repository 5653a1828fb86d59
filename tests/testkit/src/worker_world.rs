//! The worker world: `hipr-proto`'s client, a connection in memory, `hipr-io`'s [`Link`](hipr_io::Link) in an event loop
//! without sockets, the worker's [`Dispatch`] with its sessions, and the scripted device. All run on one thread, one step
//! at a time, in a drawn order.
//!
//! ```text
//!  Peer ─► wire ─► event loop ─► Link ─► Event ─► inbox ─► Dispatch ─► Session ─► Script
//!   ▲                 │  ▲                                    │
//!   └───── wire ◄─────┘  └─────── Mailbox, Notice ◄───────────┘
//! ```
//!
//! A [`Plan`] says what everybody does, and what comes of it in a right worker; [`run`] carries it out here, and
//! `tests/tests/loop_conformance.rs` over sockets. Both give a [`Transcript`]. What has to hold besides:
//!
//! * `transcript_is_the_models`: what clients learn and the device does is what the model says.
//! * `limits_hold`: requests open, bytes in flight and bytes unsent are never above their limits by more than one read or
//!   one reply.
//! * `everything_is_released`: when all have gone there is no connection, no session and no buffer left.
//! * `world_does_not_stand_still`: somebody can always do something until all is done; no wake-up is lost, and nothing waits
//!   for a time-out that does not have to.
//! * `what_is_carried_out_is_a_beginning`: of a client that breaks off, what was carried out is a beginning of its calls.
//! * `worker_speaks_the_protocol`: clients understand everything they are sent.

pub mod draw;
pub mod model;
pub mod peer;
pub mod places;
pub mod plan;
pub mod request;

mod event_loop;
mod wire;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use hipr_io::{ConnId, Event, Mailbox};
use hipr_worker::device::script::{Live, Script};
use hipr_worker::{Dispatch, Stats};

use crate::choices::{Choices, seed_bytes};
use crate::invariants::Violation;

pub use draw::Clock;
use event_loop::{EventLoop, Slack};
pub use peer::{Leave, Peer, Stage};
pub use plan::{Plan, Transcript};
use wire::{Read, Wire};

/// A plan with an unexpected result.
#[derive(Debug)]
pub struct Failure {
    /// The violated expectation.
    pub violation: Violation,
    /// The plan.
    pub plan: Plan,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}\n{}", self.violation.invariant, self.violation.what, self.plan)
    }
}

impl std::error::Error for Failure {}

/// Draws a plan and a schedule from bytes and runs the plan.
///
/// # Errors
/// What did not hold.
pub fn check(bytes: &[u8]) -> Result<(), Box<Failure>> {
    let mut choices = Choices::new(bytes);
    let plan = Plan::draw(&mut choices, Clock::Virtual);
    match run(&plan, &mut choices).and_then(|transcript| compare(&transcript, &plan.expected())) {
        Ok(()) => Ok(()),
        Err(violation) => Err(Box::new(Failure { violation, plan })),
    }
}

/// Runs [`check`] with the bytes of a seed.
///
/// # Errors
/// What did not hold.
pub fn check_seed(seed: u64) -> Result<(), Box<Failure>> {
    check(&seed_bytes(seed))
}

/// Compares the results of a plan with the expected ones.
///
/// # Errors
/// The first difference.
pub fn compare(transcript: &Transcript, expected: &Transcript) -> Result<(), Violation> {
    let Some(client) = transcript.0.iter().zip(&expected.0).position(|(seen, expected)| seen != expected)
    else {
        return Ok(());
    };
    let (Some(seen), Some(expected)) = (transcript.0.get(client), expected.0.get(client)) else {
        return Ok(());
    };
    let call = seen.learned.iter().zip(&expected.learned).position(|(seen, expected)| seen != expected);
    let what = match call {
        Some(call) => format!(
            "client {client}, answered call {call}: {:?} instead of {:?}",
            seen.learned.get(call),
            expected.learned.get(call)
        ),
        None => format!("client {client} has {seen:?} instead of {expected:?}"),
    };
    Err(violation("transcript_is_the_models", what))
}

fn violation(invariant: &'static str, what: impl Into<String>) -> Violation {
    Violation { invariant, call: None, what: what.into() }
}

/// Runs a plan in memory.
///
/// # Errors
/// What did not hold, apart from the transcript.
pub fn run(plan: &Plan, choices: &mut Choices<'_>) -> Result<Transcript, Violation> {
    World::new(plan, choices).run(choices)
}

/// A message in the dispatch thread's channel.
#[derive(Debug)]
enum Message {
    Event(Event),
    Wake(ConnId),
}

type Inbox = Arc<Mutex<VecDeque<Message>>>;

struct World<'p> {
    plan: &'p Plan,
    script: Script,
    peers: Vec<Peer<'p>>,
    wires: Vec<Wire>,
    connected: usize,
    event_loop: EventLoop,
    woken: Arc<AtomicBool>,
    inbox: Inbox,
    dispatch: Option<Dispatch>,
    /// Whether sessions wait for their turns.
    has_turns: bool,
    stats: Stats,
    input: Vec<u8>,
}

impl<'p> World<'p> {
    /// Number of steps without decisions after which a world counts as endless.
    const STEPS_MAX: u32 = 100_000;

    fn new(plan: &'p Plan, choices: &mut Choices<'_>) -> Self {
        let script = plan.device();
        let woken = Arc::new(AtomicBool::new(false));
        let mailbox = {
            let woken = woken.clone();
            Arc::new(Mailbox::new(move || woken.store(true, SeqCst)))
        };
        let inbox = Inbox::default();
        let wake = {
            let inbox = inbox.clone();
            move |conn| inbox.lock().unwrap_or_else(PoisonError::into_inner).push_back(Message::Wake(conn))
        };
        let stats = Stats::default();
        let device = Arc::new(script.clone());
        let dispatch = Dispatch::new(device, plan.session.clone(), mailbox.clone(), wake, &stats);
        // A byte at a time costs as much for few bytes as for many.
        let least = 1 + plan.travelling_bytes() / 2000;
        let room = choices.pick(&[64 << 10, 1, 200, 5000]).copied().unwrap_or(5000).max(least);
        // One step of a session sends a chunk, or a reply of the longest fixed part.
        const REPLY_MAX_BYTES: usize = 4096;
        let slack = Slack { read_bytes: room, reply_bytes: plan.session.chunk_bytes + REPLY_MAX_BYTES };
        let event_loop = EventLoop::new(plan.io.clone(), mailbox, stats.io_counters(), slack);
        Self {
            plan,
            script,
            peers: plan.clients.iter().map(Peer::new).collect(),
            wires: plan.clients.iter().map(|_| Wire::new(room)).collect(),
            connected: 0,
            event_loop,
            woken,
            inbox,
            dispatch: Some(dispatch),
            has_turns: false,
            stats,
            input: vec![0; 64 << 10],
        }
    }

    fn run(mut self, choices: &mut Choices<'_>) -> Result<Transcript, Violation> {
        let mut steps = 0;
        while !self.is_over() {
            if choices.is_exhausted() {
                steps += 1;
                if steps > Self::STEPS_MAX {
                    return Err(violation("world_does_not_stand_still", "it never comes to an end"));
                }
                let moved = (0..Self::ACTORS).fold(false, |moved, actor| moved | self.step(actor, choices));
                if !moved && !self.let_time_pass(choices) {
                    return Err(violation("world_does_not_stand_still", self.describe()));
                }
            } else {
                let actor = choices.below(Self::ACTORS);
                self.step(actor, choices);
            }
            if let Some(what) = self.event_loop.over_limit.take() {
                return Err(violation("limits_hold", what));
            }
        }
        self.check_released()?;
        let seen = std::mem::take(&mut self.peers).into_iter().map(Peer::into_seen).collect::<Result<_, _>>();
        let seen = seen.map_err(|why| violation("worker_speaks_the_protocol", why))?;
        self.plan.transcript(seen, &self.script)
    }

    /// Returns whether all clients have gone and the worker has noticed.
    fn is_over(&self) -> bool {
        self.peers.iter().all(Peer::is_done)
            && self.connected == self.peers.len()
            && self.event_loop.is_empty()
            && self.inbox().is_empty()
            && !self.has_turns
    }

    fn describe(&self) -> String {
        let waiting: Vec<usize> =
            self.peers.iter().enumerate().filter(|(_, peer)| !peer.is_done()).map(|(i, _)| i).collect();
        format!("nobody moves; clients {waiting:?} are not done; the device holds {:?}", self.script.live())
    }

    fn inbox(&self) -> std::sync::MutexGuard<'_, VecDeque<Message>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const ACTORS: u64 = 6;

    /// Lets one actor do a step; returns false if it had nothing to do.
    fn step(&mut self, actor: u64, choices: &mut Choices<'_>) -> bool {
        match actor {
            0 => self.connect() | self.each_peer(choices, Self::write),
            1 => self.each_peer(choices, Self::read),
            2 => self.turn_loop(choices),
            3 => self.deliver(choices),
            4 => self.take_turn(),
            _ => self.stop(choices),
        }
    }

    /// Lets one client do a step, or all when the decisions are used up.
    fn each_peer(
        &mut self,
        choices: &mut Choices<'_>,
        work: fn(&mut Self, usize, &mut Choices<'_>) -> bool,
    ) -> bool {
        if choices.is_exhausted() {
            return (0..self.connected).fold(false, |moved, i| moved | work(self, i, choices));
        }
        let i = choices.index(self.connected);
        i < self.connected && work(self, i, choices)
    }

    fn connect(&mut self) -> bool {
        let ready = match self.connected.checked_sub(1) {
            Some(last) => self.peers.get(last).is_some_and(|peer| peer.stage() > Stage::Opening),
            None => true,
        };
        if !ready || self.connected == self.peers.len() {
            return false;
        }
        if self.dispatch.is_some() {
            self.event_loop.accept(self.connected);
        }
        self.connected += 1;
        true
    }

    fn write(&mut self, i: usize, choices: &mut Choices<'_>) -> bool {
        let stages: Vec<Stage> = self.peers.iter().map(Peer::stage).collect();
        let (Some(peer), Some(wire)) = (self.peers.get_mut(i), self.wires.get_mut(i)) else { return false };
        if peer.is_done() {
            return false;
        }
        let mut moved = peer.go_on(&stages);
        let n = if wire.is_reset() { 0 } else { wire.write_up(peer.output(), choices) };
        peer.advance(n);
        moved |= n > 0;
        let leave = peer.leave(!wire.is_up_writable());
        match leave {
            Leave::No => {}
            Leave::HalfClose => wire.up.end(),
            Leave::Close => wire.close_by_client(),
            Leave::Reset => wire.break_off(),
        }
        if matches!(leave, Leave::Close | Leave::Reset) {
            peer.handle_left();
            moved = true;
        }
        moved
    }

    fn read(&mut self, i: usize, choices: &mut Choices<'_>) -> bool {
        let (Some(peer), Some(wire)) = (self.peers.get_mut(i), self.wires.get_mut(i)) else { return false };
        if peer.is_done() || !peer.reads(!wire.is_up_writable()) {
            return false;
        }
        match wire.read_down(&mut self.input, choices) {
            Read::Nothing => return false,
            Read::Bytes(n) => peer.handle_input(self.input.get(..n).unwrap_or_default()),
            Read::End | Read::Reset => {
                peer.handle_end();
                wire.close_by_client();
            }
        }
        true
    }

    fn turn_loop(&mut self, choices: &mut Choices<'_>) -> bool {
        if self.woken.swap(false, SeqCst) {
            self.event_loop.wake();
        }
        let inbox = self.inbox.clone();
        let mut sink = |event| push(&inbox, event);
        self.event_loop.turn(&mut self.wires, choices, &mut sink)
    }

    /// Delivers messages from the channel to the dispatch thread.
    fn deliver(&mut self, choices: &mut Choices<'_>) -> bool {
        let waiting = self.inbox().len();
        let count = if choices.is_exhausted() { waiting } else { waiting.min(1 + choices.index(3)) };
        for _ in 0..count {
            let message = self.inbox().pop_front();
            let Some(dispatch) = &mut self.dispatch else { continue };
            match message {
                Some(Message::Event(event)) => dispatch.handle_event(event),
                Some(Message::Wake(conn)) => dispatch.handle_wake(conn),
                None => {}
            }
            self.has_turns = true;
        }
        count > 0
    }

    /// Lets the dispatch thread run a session's turn.
    fn take_turn(&mut self) -> bool {
        let had_turns = self.has_turns;
        if let Some(dispatch) = &mut self.dispatch {
            self.has_turns = dispatch.step();
        }
        had_turns
    }

    /// Stops the worker if a client's plan says so.
    fn stop(&mut self, choices: &mut Choices<'_>) -> bool {
        let wanted = self.peers.iter_mut().fold(false, |wanted, peer| wanted | peer.take_stop());
        if wanted {
            let inbox = self.inbox.clone();
            self.event_loop.stop(&mut self.wires, choices, &mut |event| push(&inbox, event));
            self.dispatch = None;
            self.has_turns = false;
            self.inbox().clear();
        }
        wanted
    }

    /// Advances the clock, where the plan waits for a timeout.
    fn let_time_pass(&mut self, choices: &mut Choices<'_>) -> bool {
        if !self.plan.waits_for_time() {
            return false;
        }
        let inbox = self.inbox.clone();
        self.event_loop.let_time_pass(&mut self.wires, choices, &mut |event| push(&inbox, event))
    }

    fn check_released(&self) -> Result<(), Violation> {
        let live = self.script.live();
        let held_bytes = self.event_loop.in_flight_bytes();
        let stats = self.stats.io();
        if live == Live::default() && held_bytes == 0 && stats.connections() == 0 {
            return Ok(());
        }
        let what = format!("{live:?}, {held_bytes} bytes in flight, {stats:?}");
        Err(violation("everything_is_released", what))
    }
}

fn push(inbox: &Inbox, event: Event) {
    inbox.lock().unwrap_or_else(PoisonError::into_inner).push_back(Message::Event(event));
}
