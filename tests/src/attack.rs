//! Attacks on a worker: what a hostile client sends, and what it costs the worker and a client beside it.
//!
//! [`cases`] is the table of them. The tests run it against a worker with limits and at a small [`Scale`]; `hipr-tests attack` runs it
//! against any worker, at full scale.

mod code_objects;
mod elf;
mod guesses;
mod log;
mod random;
mod raw;
mod sessions;
mod stale;
mod work;

pub use code_objects::{IMAGES, Image};
pub use work::{large_launch, request};

use crate::{Buffer, Gpu, WireClient, args};
use hipr_proto::op::Ping;
use hipr_proto::{HipError, HipResult};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The worker that is attacked.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its address.
    pub address: SocketAddr,
    /// Its process, of the same user.
    pub pid: u32,
}

/// How many of something the attacks do that are about numbers.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Seed of what is random: the same seed sends the same requests, as far as the worker's answers are the same.
    pub seed: u64,
    /// Random requests.
    pub requests: usize,
    /// Sessions that are open at a time.
    pub sessions: usize,
    /// Sessions one after another.
    pub reconnects: usize,
    /// Guessed handles.
    pub guesses: usize,
    /// Copies whose bytes nobody reads.
    pub unread: usize,
}

impl Scale {
    /// What `hipr-tests attack` does.
    pub const FULL: Self = Self {
        seed: 0,
        requests: 2_100_000,
        sessions: 10_000,
        reconnects: 10_000,
        guesses: 20_000,
        unread: 300,
    };
    /// What takes seconds without optimization.
    pub const SHORT: Self =
        Self { seed: 0, requests: 30_000, sessions: 300, reconnects: 500, guesses: 4_000, unread: 50 };
}

/// Something that a hostile client does.
pub struct Case {
    /// What it is, in a line.
    pub name: String,
    /// Does it to a worker, in sessions that have ended then; returns what was sent and answered.
    pub attack: Box<dyn Fn(Target) -> Sent>,
}

impl Case {
    fn new(name: impl Into<String>, attack: impl Fn(Target) -> Sent + 'static) -> Self {
        Self { name: name.into(), attack: Box::new(attack) }
    }
}

/// What a case sent, and the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Bytes that were sent.
    pub bytes: u64,
    /// How often each answer came; `None` is success.
    pub answers: BTreeMap<Option<i32>, usize>,
    /// Whether the answers are those that the case has to get.
    pub is_right: bool,
    /// What was measured besides, and what is wrong; empty if there is nothing to say.
    pub note: String,
}

impl Default for Sent {
    fn default() -> Self {
        Self { bytes: 0, answers: BTreeMap::new(), is_right: true, note: String::new() }
    }
}

impl Sent {
    fn answered(&mut self, answer: HipResult<()>) {
        *self.answers.entry(answer.err().map(|HipError(code)| code)).or_default() += 1;
    }

    /// Notes something.
    fn say(&mut self, what: impl fmt::Display) {
        let comma = if self.note.is_empty() { "" } else { ", " };
        self.note += &format!("{comma}{what}");
    }

    /// Notes that something does not hold, unless it does.
    fn expect(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.is_right = false;
            self.say(format!("WRONG: {}", what()));
        }
    }

    /// Returns how many requests were refused.
    fn refused(&self) -> usize {
        self.answers.iter().filter(|(answer, _)| answer.is_some()).map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (answer, count)) in self.answers.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            match answer {
                None => write!(f, "{comma}{count} x done")?,
                Some(code) => write!(f, "{comma}{count} x {}", HipError(*code))?,
            }
        }
        let space = if self.answers.is_empty() || self.note.is_empty() { "" } else { "; " };
        write!(f, "{space}{}", self.note)
    }
}

/// Returns all cases; those that exhaust something of the worker come last.
pub fn cases(scale: &Scale) -> Vec<Case> {
    let images = IMAGES.iter().map(|image| {
        Case::new(image.name, |worker| code_objects::load(&mut WireClient::open(worker.address), image))
    });
    let counted = [random::cases(scale), guesses::cases(scale), stale::cases(), sessions::cases(scale)];
    images.chain(log::cases()).chain(work::cases(scale)).chain(counted.into_iter().flatten()).collect()
}

/// What an attack came to.
#[derive(Debug)]
pub struct Attacked {
    /// What was sent and answered.
    pub sent: Sent,
    /// The longest time that a bystander waited for the answer to a ping, until the attacker's session had ended.
    pub slowest: Duration,
    /// The median time of a small kernel of the bystander with the wait for it, during the attack and before it.
    pub kernel: [Duration; 2],
}

/// Kernels of the attacks and of the bystander.
static KERNELS: &[u8] = include_bytes!("../../cli/tests/bounds/kernels.co");

/// How often the bystander asks before an attack, and after it, when the session may be ending.
const ROUNDS: usize = 50;

/// Somebody who is served beside an attack.
struct Bystander {
    gpu: Gpu,
    total: Buffer<u32>,
    slowest: Duration,
    kernels: Vec<Duration>,
}

impl Bystander {
    /// Asks for a ping, then for a small kernel.
    fn ask(&mut self) {
        let asked = Instant::now();
        self.gpu.wire().call(&Ping {}).expect("a bystander is answered");
        self.slowest = self.slowest.max(asked.elapsed());
        let asked = Instant::now();
        let total = self.total;
        self.gpu.launch("count", 1, 1, 0, args![total]);
        self.gpu.synchronize().expect("a bystander's kernel is executed");
        self.kernels.push(asked.elapsed());
        thread::sleep(Duration::from_millis(1));
    }

    /// Returns the median time of the kernels so far, and begins anew.
    fn take_kernel(&mut self) -> Duration {
        self.kernels.sort_unstable();
        let median = self.kernels.get(self.kernels.len() / 2).copied().unwrap_or_default();
        self.kernels.clear();
        median
    }
}

/// Runs a case in a session of its own, while a bystander asks for something all the time. Panics if either connection fails.
pub fn run(worker: Target, case: &Case) -> Attacked {
    let mut gpu = Gpu::open(worker.address, KERNELS);
    let total = gpu.zeroed(1);
    let mut bystander = Bystander { gpu, total, slowest: Duration::ZERO, kernels: Vec::new() };
    (0..ROUNDS).for_each(|_| bystander.ask());
    let before = bystander.take_kernel();
    bystander.slowest = Duration::ZERO;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bystander.ask();
            }
            let during = bystander.take_kernel();
            (0..ROUNDS).for_each(|_| bystander.ask());
            (bystander.slowest, [during, before])
        });
        // Also if the attack panics, so that the thread ends.
        let sent = catch_unwind(AssertUnwindSafe(|| (case.attack)(worker)));
        is_over.store(true, Ordering::Relaxed);
        let (slowest, kernel) = watch.join().expect("a bystander is answered");
        let sent = sent.unwrap_or_else(|_| panic!("{}: the worker does not answer", case.name));
        Attacked { sent, slowest, kernel }
    })
}
