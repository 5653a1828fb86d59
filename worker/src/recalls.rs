//! Who waits for memory that other sessions may give back, and for whose answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hipr_io::ConnId;

/// Time that clients have to answer. One that does not, because it is stopped or its network is, holds up nobody longer; it keeps its
/// lease, and who needs memory is told that there is none.
const PATIENCE: Duration = Duration::from_secs(2);

/// Number of ticks of the timer in that time.
const PATIENCE_TICKS: u32 = 8;

/// Number of ticks that the timer lets other processes have besides, where those are asked as well. They are the worker's own and answer when
/// their clients' time is over, so that this much passes only where one hangs.
const LENDER_TICKS: u32 = 24;

/// Number of ticks by which a process waits less for its clients where other processes have asked it, so that what it then withdraws comes before
/// those stop waiting.
const OTHERS_TICKS: u32 = 2;

/// Who needs memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Short {
    /// A session.
    Session(ConnId),
    /// Other processes.
    Others,
}

/// Who is asked to give memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// A session.
    Session(ConnId),
    /// Other processes, through the lender.
    Lender,
}

/// The recalls whose answers are awaited, by who needs memory.
#[derive(Debug, Default)]
pub(crate) struct Recalls {
    /// Those that have not answered.
    asked: BTreeMap<Short, BTreeSet<Asked>>,
    number: u64,
    timer: Arc<Mutex<Timer>>,
}

/// The time that passes while sessions wait. One thread serves all of them, and ends when none waits.
#[derive(Debug, Default)]
struct Timer {
    /// For each that waits, the ticks that it will still wait, and the session that is woken then.
    ticks_left: BTreeMap<Short, (u32, ConnId)>,
    is_running: bool,
}

fn lock(timer: &Mutex<Timer>) -> MutexGuard<'_, Timer> {
    timer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recalls {
    /// Returns a number for the next recall, from 1 on.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Begins to wait for the answers of `asked` on behalf of `short`; calls `wake` with `woken` when their time is over.
    pub(crate) fn begin(
        &mut self,
        short: Short,
        asked: BTreeSet<Asked>,
        woken: ConnId,
        wake: impl Fn(ConnId) + Send + 'static,
    ) {
        let ticks = match short {
            Short::Others => PATIENCE_TICKS - OTHERS_TICKS,
            Short::Session(_) if asked.contains(&Asked::Lender) => PATIENCE_TICKS + LENDER_TICKS,
            Short::Session(_) => PATIENCE_TICKS,
        };
        self.asked.insert(short, asked);
        let mut timer = lock(&self.timer);
        timer.ticks_left.insert(short, (ticks, woken));
        if timer.is_running {
            return;
        }
        let shared = Arc::clone(&self.timer);
        let started =
            std::thread::Builder::new().name("hipr-recall".to_owned()).spawn(move || run(&shared, &wake));
        match started {
            Ok(_) => timer.is_running = true,
            Err(error) => {
                tracing::warn!(%error, "cannot start a timer; who needs memory is not kept waiting");
                timer.ticks_left.insert(short, (0, woken));
            }
        }
    }

    /// Handles that somebody has answered, or will not; returns who tries again, and whether for the last time.
    pub(crate) fn answered(&mut self, by: Asked) -> Vec<(Short, bool)> {
        let mut again = Vec::new();
        for (&short, asked) in &mut self.asked {
            if asked.remove(&by) {
                again.push((short, asked.is_empty()));
            }
        }
        for (short, _) in again.iter().filter(|(_, is_last)| *is_last) {
            self.forget(*short);
        }
        again
    }

    /// Returns who has not answered, if the time to do so is over; `short` then waits for nobody any more.
    pub(crate) fn take_late(&mut self, short: Short) -> Option<BTreeSet<Asked>> {
        let is_late = !self.asked.is_empty()
            && lock(&self.timer).ticks_left.get(&short).is_some_and(|(left, _)| *left == 0);
        if is_late { self.forget(short) } else { None }
    }

    /// Handles that `short` does not wait any more; returns who has not answered.
    pub(crate) fn forget(&mut self, short: Short) -> Option<BTreeSet<Asked>> {
        let silent = self.asked.remove(&short)?;
        lock(&self.timer).ticks_left.remove(&short);
        Some(silent)
    }
}

fn run(timer: &Mutex<Timer>, wake: &impl Fn(ConnId)) {
    loop {
        std::thread::sleep(PATIENCE / PATIENCE_TICKS);
        let mut timer = lock(timer);
        if timer.ticks_left.is_empty() {
            timer.is_running = false;
            return;
        }
        timer.ticks_left.values_mut().for_each(|(left, _)| *left = left.saturating_sub(1));
        let late: Vec<ConnId> =
            timer.ticks_left.values().filter(|(left, _)| *left == 0).map(|(_, woken)| *woken).collect();
        drop(timer);
        late.into_iter().for_each(wake);
    }
}
