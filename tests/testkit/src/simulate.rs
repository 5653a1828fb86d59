//! Runs many cases in parallel, and shrinks and describes the first that fails.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::invariants::Violation;
use crate::script::{Call, Case, Device, Kind};

/// A kind of world: runs a case and fails with the violated invariants.
pub type World = fn(&Case) -> Result<(), Failure>;

/// The violated invariants of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The violations, at least one.
    pub violations: Vec<Violation>,
}

impl Failure {
    /// Returns whether `invariant` is among the violated ones.
    pub fn names(&self, invariant: &str) -> bool {
        self.violations.iter().any(|violation| violation.invariant == invariant)
    }

    /// Returns the invariant that a smaller case has to violate too.
    fn first(&self) -> &'static str {
        self.violations.first().map_or("", |violation| violation.invariant)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Violation { invariant, call, what }) in self.violations.iter().enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            match call {
                Some(call) => write!(f, "{line}{invariant}: call {call}: {what}")?,
                None => write!(f, "{line}{invariant}: {what}")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// The first seed that fails.
#[derive(Debug)]
pub struct Found {
    /// The seed.
    pub seed: u64,
    /// The violations of its case.
    pub failure: Failure,
    /// A smaller case that violates the same invariant.
    pub smallest: Case,
    /// The violations of the smaller case.
    pub smallest_failure: Failure,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = Case::from_seed(self.seed);
        writeln!(f, "seed {} fails:\n{}", self.seed, self.failure)?;
        writeln!(f, "\noptions:\n{}", case.options)?;
        let (all, few) = (case.script.0.len(), self.smallest.script.0.len());
        writeln!(f, "\nscript, {few} of {all} calls, {} bytes of schedule:", self.smallest.schedule.len())?;
        write!(f, "{}", self.smallest.script)?;
        write!(f, "\nin which:\n{}", self.smallest_failure)
    }
}

/// Runs the cases of `seeds` on `jobs` threads until one fails, and shrinks that one.
pub fn simulate(
    seeds: Range<u64>,
    jobs: usize,
    world: World,
    progress: impl Fn(u64) + Sync,
) -> Option<Found> {
    let (seed, failure) = first_failure(seeds, jobs, |seed| world(&Case::from_seed(seed)), progress)?;
    let (smallest, smallest_failure) = shrink(Case::from_seed(seed), failure.clone(), world);
    Some(Found { seed, failure, smallest, smallest_failure })
}

/// Checks `seeds` on `jobs` threads until one fails; returns the least failing seed that was found. Calls `progress` now
/// and then with the number of checked seeds.
pub fn first_failure<F: Send>(
    seeds: Range<u64>,
    jobs: usize,
    check: impl Fn(u64) -> Result<(), F> + Sync,
    progress: impl Fn(u64) + Sync,
) -> Option<(u64, F)> {
    /// Number of seeds that a thread takes at once.
    const SHARE: u64 = 256;
    let next = AtomicU64::new(seeds.start);
    let done = AtomicU64::new(0);
    let found: Mutex<Option<(u64, F)>> = Mutex::new(None);
    let work = || {
        loop {
            let start = next.fetch_add(SHARE, Ordering::Relaxed);
            let end = start.saturating_add(SHARE).min(seeds.end);
            if start >= end {
                return;
            }
            for seed in start..end {
                if let Err(failure) = check(seed) {
                    // Nobody begins anything new; what is less than this is being run by somebody.
                    next.store(seeds.end, Ordering::Relaxed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    if found.as_ref().is_none_or(|(least, _)| seed < *least) {
                        *found = Some((seed, failure));
                    }
                    return;
                }
            }
            progress(done.fetch_add(end - start, Ordering::Relaxed) + (end - start));
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Shrinks a case by leaving things out, as long as it violates the first invariant of `failure`.
pub fn shrink(case: Case, failure: Failure, world: World) -> (Case, Failure) {
    let invariant = failure.first();
    let mut best = (case, failure);
    let mut tries_left = 4000;
    let mut try_case = |best: &mut (Case, Failure), case: Case| {
        if tries_left == 0 || case == best.0 {
            return false;
        }
        tries_left -= 1;
        match world(&case) {
            Err(failure) if failure.names(invariant) => {
                *best = (case, failure);
                true
            }
            _ => false,
        }
    };
    loop {
        let mut is_smaller = false;
        // Calls, in shares that become smaller.
        let mut share = best.0.script.0.len().div_ceil(2);
        while share > 0 {
            let mut start = 0;
            while start < best.0.script.0.len() {
                let mut case = best.0.clone();
                case.script.0.drain(start..case.script.0.len().min(start + share));
                let has_shrunk = !case.script.0.is_empty() && try_case(&mut best, case);
                is_smaller |= has_shrunk;
                start += if has_shrunk { 0 } else { share };
            }
            share /= 2;
        }
        // The schedule: its first half, or without its last byte.
        for len in [0, best.0.schedule.len() / 2, best.0.schedule.len().saturating_sub(1)] {
            let mut case = best.0.clone();
            case.schedule.truncate(len);
            is_smaller |= try_case(&mut best, case);
        }
        for index in 0..best.0.script.0.len() {
            for simpler in SIMPLER {
                let mut case = best.0.clone();
                if let Some(call) = case.script.0.get_mut(index) {
                    simpler(call);
                }
                is_smaller |= try_case(&mut best, case);
            }
        }
        let mut case = best.0.clone();
        case.options.fault = None;
        is_smaller |= try_case(&mut best, case);
        if !is_smaller {
            return best;
        }
    }
}

/// Simplifications of a call.
const SIMPLER: &[fn(&mut Call)] = &[
    |call| call.device = Device::Ok,
    |call| call.surfaces = None,
    |call| call.slow_ms = 0,
    |call| call.streamed = false,
    |call| call.typed = call.kind == Kind::Good,
    |call| call.loud = true,
];

/// Suppresses the messages of panics inside worlds, which report them themselves.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}
