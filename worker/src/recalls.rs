//! Who waits for memory that other sessions may give back, and for whose answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use hipr_io::ConnId;

/// Time that clients have to answer. One that does not, because it is stopped or its network is, holds up nobody longer; it keeps its
/// lease, and who needs memory is told that there is none.
const PATIENCE: Duration = Duration::from_secs(2);

/// The recalls whose answers are awaited, by the session that needs memory.
#[derive(Debug, Default)]
pub(crate) struct Recalls {
    waits: BTreeMap<ConnId, Wait>,
    number: u64,
}

#[derive(Debug)]
struct Wait {
    /// The sessions that have not answered.
    asked: BTreeSet<ConnId>,
    /// Whether their time is over.
    is_late: Arc<AtomicBool>,
}

impl Recalls {
    /// Returns a number for the next recall, from 1 on.
    pub(crate) fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Begins to wait for the answers of `asked` on behalf of `short`; calls `wake` when their time is over.
    pub(crate) fn begin(
        &mut self,
        short: ConnId,
        asked: BTreeSet<ConnId>,
        wake: impl FnOnce() + Send + 'static,
    ) {
        let is_late = Arc::new(AtomicBool::new(false));
        let flag = Arc::downgrade(&is_late);
        let alarm = std::thread::Builder::new().name("hipr-recall".to_owned()).spawn(move || {
            std::thread::sleep(PATIENCE);
            // Nobody waits any more when the flag is gone.
            if let Some(flag) = flag.upgrade() {
                flag.store(true, SeqCst);
                wake();
            }
        });
        if let Err(error) = alarm {
            tracing::warn!(%error, "cannot start a timer; who needs memory is not kept waiting");
            is_late.store(true, SeqCst);
        }
        self.waits.insert(short, Wait { asked, is_late });
    }

    /// Handles that a session has answered, or will not; returns who tries again, and whether for the last time.
    pub(crate) fn answered(&mut self, conn: ConnId) -> Vec<(ConnId, bool)> {
        let mut again = Vec::new();
        self.waits.retain(|&short, wait| {
            if !wait.asked.remove(&conn) {
                return true;
            }
            again.push((short, wait.asked.is_empty()));
            !wait.asked.is_empty()
        });
        again
    }

    /// Returns whether the time of those that a session waits for is over; it then waits for nobody any more.
    pub(crate) fn is_late(&mut self, short: ConnId) -> bool {
        let is_late = self.waits.get(&short).is_some_and(|wait| wait.is_late.load(SeqCst));
        if is_late {
            self.waits.remove(&short);
        }
        is_late
    }

    /// Handles that a session does not wait any more, because it has ended.
    pub(crate) fn forget(&mut self, short: ConnId) {
        self.waits.remove(&short);
    }
}
