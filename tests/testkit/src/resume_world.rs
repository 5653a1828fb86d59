//! The world of sessions that outlive their connections: two ends of `hipr-resume`, and links that nobody can rely on.
//!
//! ```text
//!  program ─► Endpoint ─► link ─► the worker's door ─► Registry ─► Endpoint ─► session
//!             (one link at a time)   (a claim)          (all links that reach it, late ones too)
//! ```
//!
//! Links are cut at any byte, on both sides or unheard by one; claims come late, twice, or from others; either end may stop taking bytes,
//! crash, or end its stream; the worker gives up what nobody claims. When the schedule is used up, links hold and everything goes on until
//! nothing moves.
//!
//! * [`play`] carries out a schedule. What both ends took, and what they were told, is judged while it goes on.
//! * [`INVARIANTS`] names what has to hold.

mod link;
mod program;
mod server;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::choices::{Choices, seed_bytes};
use crate::invariants::Violation;
use crate::simulate::Failure;
use link::Link;
use program::Program;
use server::Server;

/// What has to hold.
pub static INVARIANTS: &[&str] = &[
    "bytes_arrive_once_and_in_order",
    "an_end_is_learned_as_an_end",
    "an_honest_end_is_believed",
    "late_and_strange_claims_are_refused",
    "memory_is_bounded",
    "links_that_hold_bring_everything",
    "acknowledgements_are_few",
    "nothing_panics",
];

/// What was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    invariant: &'static str,
    what: String,
}

pub(crate) fn broken<T>(invariant: &'static str, what: impl Into<String>) -> Result<T, Broken> {
    Err(Broken { invariant, what: what.into() })
}

/// The options of a world.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Size of each end's ring.
    pub ring_bytes: [usize; 2],
    /// Number of bytes that each end has to say.
    pub say_bytes: [u64; 2],
    /// Number of bytes under way at which an end sends no more.
    pub link_bytes: usize,
    /// The most bytes that are moved at once.
    pub piece_bytes: u64,
    /// How often links are cut: one act of so many.
    pub cut_one_in: u64,
    /// Whether an end may crash, and the worker give up.
    pub may_end: bool,
}

/// What a world has met, so that tests can see what seeds cover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Connections over which a session went on.
    pub resumed: u32,
    /// Links that were cut.
    pub cut: u32,
    /// Links of which one end did not hear that they were cut.
    pub half_open: u32,
    /// Claims that were refused because they came late or twice.
    pub late: u32,
    /// Claims of others.
    pub strange: u32,
    /// Times that a full ring held up an end.
    pub full: u32,
    /// Bytes that were sent again.
    pub again_bytes: u64,
    /// Bytes that were stowed.
    pub stowed_bytes: u64,
    /// Sessions that were over before everything was said.
    pub lost: u32,
    /// Sessions in which everything was said.
    pub complete: u32,
}

impl Options {
    fn draw(choices: &mut Choices<'_>) -> Self {
        let rings = [64, 1, 7, 300, 4096, 70_000];
        let say = [200, 0, 1, 50, 3000, 100_000];
        let mut ring = || *choices.pick(&rings).unwrap_or(&64);
        let ring_bytes = [ring(), ring()];
        let mut bytes = |ring: usize| (*choices.pick(&say).unwrap_or(&200)).min(200 * ring as u64);
        let [one, two] = ring_bytes;
        Self {
            ring_bytes,
            say_bytes: [bytes(one), bytes(two)],
            link_bytes: *choices.pick(&[100, 1, 9, 4000, 1 << 20]).unwrap_or(&100),
            piece_bytes: *choices.pick(&[20, 1, 8, 9, 500, 1 << 20]).unwrap_or(&20),
            cut_one_in: *choices.pick(&[20, 5, 60, 1000]).unwrap_or(&20),
            may_end: choices.one_in(3),
        }
    }
}

/// The byte with this offset in the stream of an end.
pub(crate) fn byte_at(end: usize, offset: u64) -> u8 {
    let mixed = (offset ^ ((end as u64) << 60))
        .wrapping_add(0x9e37_79b9_7f4a_7c15)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 56) as u8
}

struct World<'a> {
    options: Options,
    choices: Choices<'a>,
    met: Met,
    links: Vec<Link>,
    program: Program,
    server: Server,
}

/// Carries out the schedule in `bytes`; returns what was met.
///
/// # Errors
/// The invariants that did not hold.
pub fn play(bytes: &[u8]) -> Result<Met, Failure> {
    let fail = |invariant, what| Failure { violations: vec![Violation { invariant, call: None, what }] };
    match catch_unwind(AssertUnwindSafe(|| World::new(bytes).run())) {
        Ok(Ok(met)) => Ok(met),
        Ok(Err(Broken { invariant, what })) => Err(fail(invariant, what)),
        Err(_) => Err(fail("nothing_panics", "an end panics".to_owned())),
    }
}

/// Runs the world of a seed.
///
/// # Errors
/// As [`play`].
pub fn check_seed(seed: u64) -> Result<(), Failure> {
    play(&seed_bytes(seed)).map(drop)
}

impl<'a> World<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut choices = Choices::new(bytes);
        let options = Options::draw(&mut choices);
        let program = Program::new(&options);
        Self { options, choices, met: Met::default(), links: Vec::new(), program, server: Server::default() }
    }

    fn run(mut self) -> Result<Met, Broken> {
        self.program.connect(&mut self.links);
        while !self.choices.is_exhausted() {
            self.act()?;
            self.check()?;
        }
        self.settle()?;
        Ok(self.met)
    }

    fn act(&mut self) -> Result<(), Broken> {
        let piece = self.choices.between(1, self.options.piece_bytes) as usize;
        if self.choices.one_in(self.options.cut_one_in) {
            return self.fault();
        }
        let link = self.choices.index(self.links.len());
        match self.choices.below(12) {
            0 | 1 => self.program.say(piece, &mut self.met),
            2 | 3 => self.server.say(piece, &mut self.met),
            4 => self.program.transmit(piece, self.options.link_bytes, &mut self.links, &mut self.met),
            5 => self.server.transmit(piece, self.options.link_bytes, &mut self.links),
            6 | 7 => return self.deliver_up(link, piece),
            8 | 9 => return self.program.hear(link, piece, &mut self.links, &mut self.met),
            10 => self.program.connect_if_cut(&mut self.links),
            _ => match self.choices.below(6) {
                0 => self.program.is_slow ^= true,
                1 => self.server.is_slow ^= true,
                2 => return self.program.take_stowed(),
                3 => return self.server.take_stowed(),
                4 if self.choices.one_in(4) => self.program.finish(),
                5 if self.choices.one_in(4) => self.server.finish(),
                _ => {}
            },
        }
        Ok(())
    }

    fn deliver_up(&mut self, link: usize, piece: usize) -> Result<(), Broken> {
        self.server.hear(link, piece, &mut self.links, &self.options, &mut self.met)
    }

    fn fault(&mut self) -> Result<(), Broken> {
        // Mostly the one that is used.
        let last = self.links.len().saturating_sub(1);
        let link = if self.choices.one_in(3) { self.choices.index(self.links.len()) } else { last };
        match self.choices.below(10) {
            0..=3 => {
                self.met.cut += 1;
                self.program.cut(link);
                self.server.cut(link);
            }
            4 => {
                // The worker hears nothing of it, and what was under way still arrives.
                self.met.half_open += 1;
                self.program.cut(link);
            }
            5 => {
                self.met.half_open += 1;
                self.server.cut(link);
                if let Some(link) = self.links.get_mut(link) {
                    link.is_dead = true;
                }
            }
            6 => self.program.connect_again(&mut self.links),
            7 => {
                // A socket that was on its way for long, or what somebody has written down.
                if let Some(claim) = self.program.earlier_claim(&mut self.choices)
                    && (claim.epoch > 0 || self.server.session().is_some())
                {
                    self.links.push(Link::new(&claim, program::KEY));
                }
            }
            8 => {
                if let Some(mut claim) = self.program.earlier_claim(&mut self.choices) {
                    claim.epoch += 1000;
                    self.links.push(Link::new(&claim, program::KEY + 1));
                    self.met.strange += 1;
                }
            }
            _ if self.options.may_end && self.choices.one_in(4) => match self.choices.below(3) {
                0 => {
                    self.server.crash();
                    self.links.iter_mut().for_each(|link| link.is_dead = true);
                }
                1 => self.server.give_up(),
                _ => self.program.crash(),
            },
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Broken> {
        self.program.end.check()?;
        self.server.check()?;
        self.server.check_against(&self.program.end)
    }

    /// Returns numbers that change when anything moves.
    fn moved(&self) -> ([u64; 6], Option<[u64; 6]>, usize, usize) {
        let dead = self.links.iter().filter(|link| link.is_dead).count();
        (self.program.end.moved(), self.server.moved(), self.links.len(), dead)
    }

    /// Links hold from now on: everything goes on until nothing moves.
    fn settle(&mut self) -> Result<(), Broken> {
        (self.program.is_slow, self.server.is_slow) = (false, false);
        self.program.finish_all();
        self.server.finish_all();
        let steps = 4 * (self.options.say_bytes.iter().sum::<u64>() + 1000);
        for _ in 0..steps {
            let before = self.moved();
            self.program.connect_if_dead(&mut self.links);
            self.program.say(usize::MAX, &mut self.met);
            self.server.say(usize::MAX, &mut self.met);
            self.program.transmit(usize::MAX, usize::MAX, &mut self.links, &mut self.met);
            for link in 0..self.links.len() {
                self.deliver_up(link, usize::MAX)?;
            }
            self.server.transmit(usize::MAX, usize::MAX, &mut self.links);
            for link in 0..self.links.len() {
                self.program.hear(link, usize::MAX, &mut self.links, &mut self.met)?;
            }
            self.program.take_stowed()?;
            self.server.take_stowed()?;
            self.check()?;
            if before == self.moved() {
                break;
            }
        }
        // Who was cut off before the worker had answered has no session to go on with.
        if self.program.is_gone || (self.program.is_lost && !self.program.is_begun()) {
            self.met.lost += 1;
            return Ok(());
        }
        let Some(session) = self.server.session() else {
            self.met.lost += 1;
            // Who has lost a session knows it, unless all was said before.
            return if self.program.is_lost || self.program.end.heard_end {
                Ok(())
            } else {
                broken(
                    "an_end_is_learned_as_an_end",
                    "the worker has no session any more, and the program waits",
                )
            };
        };
        for (end, other) in [(&self.program.end, session), (session, &self.program.end)] {
            if end.taken != other.said || other.said != other.goal || !end.heard_end {
                return broken(
                    "links_that_hold_bring_everything",
                    format!("{end:?} has not what {other:?} had to say; {}", self.program.state()),
                );
            }
        }
        self.met.complete += 1;
        Ok(())
    }
}
