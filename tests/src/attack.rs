//! Attacks on a worker: what a hostile client sends, and what it costs the worker and a client beside it.
//!
//! [`cases`] is the table of them. The tests run it against a worker with limits; `hipr-tests attack` runs it against any.

mod code_objects;
mod elf;
mod log;

pub use code_objects::{IMAGES, Image};

use crate::WireClient;
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
    /// Does it on an open session; returns what was sent and answered.
    pub attack: Box<dyn Fn(&mut WireClient) -> Sent>,
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
    let load = |image| Box::new(move |client: &mut WireClient| code_objects::load(client, image));
    let images = IMAGES.iter().map(|image| Case { name: image.name, attack: load(image) });
    images.chain(log::cases()).collect()
}

/// What an attack came to.
#[derive(Debug)]
pub struct Attacked {
    /// What was sent and answered.
    pub sent: Sent,
    /// The longest time that a bystander waited for the answer to a ping.
    pub slowest: Duration,
}

/// Runs a case in a session of its own, while a bystander asks something all the time. Panics if either connection fails.
pub fn run(worker: SocketAddr, case: &Case) -> Attacked {
    let mut bystander = WireClient::open(worker);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                bystander.call(&Ping {}).expect("a bystander is answered");
                slowest = slowest.max(asked.elapsed());
                thread::sleep(Duration::from_millis(1));
            }
            slowest
        });
        // Also if the attack panics, so that the thread ends.
        let sent = catch_unwind(AssertUnwindSafe(|| (case.attack)(&mut WireClient::open(worker))));
        is_over.store(true, Ordering::Relaxed);
        let slowest = watch.join().expect("a bystander is answered");
        let sent = sent.unwrap_or_else(|_| panic!("{}: the worker does not answer", case.name));
        Attacked { sent, slowest }
    })
}
