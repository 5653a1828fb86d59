//! Attacks on a worker: what a hostile client sends, and what it costs the worker and a client beside it.
//!
//! [`cases`] is the table of them. The tests run it against a worker with limits; `hipr-tests attack` runs it against any.

mod code_objects;
mod elf;
mod log;
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

/// Something that a hostile client does.
pub struct Case {
    /// What it is, in a line.
    pub name: &'static str,
    /// Does it to a worker, in a session that has ended then; returns what was sent and answered.
    pub attack: Box<dyn Fn(SocketAddr) -> Sent>,
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
}

impl Default for Sent {
    fn default() -> Self {
        Self { bytes: 0, answers: BTreeMap::new(), is_right: true }
    }
}

impl Sent {
    fn answered(&mut self, answer: HipResult<()>) {
        *self.answers.entry(answer.err().map(|HipError(code)| code)).or_default() += 1;
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
        Ok(())
    }
}

/// Returns all cases.
pub fn cases() -> Vec<Case> {
    let load = |image| Box::new(move |worker| code_objects::load(&mut WireClient::open(worker), image));
    let images = IMAGES.iter().map(|image| Case { name: image.name, attack: load(image) });
    images.chain(log::cases()).chain(work::cases()).collect()
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
pub fn run(worker: SocketAddr, case: &Case) -> Attacked {
    let mut gpu = Gpu::open(worker, KERNELS);
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
