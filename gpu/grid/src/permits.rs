//! How many threads of which process may execute at a time, where several processes have executors on the same processors.
//!
//! There are as many permits as processors. A thread asks for one, gets it by the same rule that gives jobs their threads within a
//! process (`fair.rs`): tenants get time by their weights, and of a tenant's time its processes the same; it keeps the permit while nobody
//! else wants one. Time is what passes between the grant and the return, by the clock of whoever grants: no process says what it has used.
//!
//! A process that does not return a permit, because it was stopped or somebody has taken it over, holds others up for [`OVERDUE_NS`], and
//! pays for that as for time that it has used. It gets no other permit until it returns that one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::fair::{Fair, SEVERAL};

/// Time for which a thread keeps its permit although others wait.
pub const LEASE: Duration = Duration::from_micros(250);
/// Time after which a permit that others wait for is taken as lost.
pub const OVERDUE_NS: u64 = 100_000_000;
/// The most permits that a process has and asks for.
const PROCESS_MAX: usize = 4096;

/// A permit that a process was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// The process.
    pub process: u64,
    /// The number of the permit, by which the process returns it.
    pub permit: u32,
}

/// The permits of all processes. Times are nanoseconds of any clock that only goes forward.
#[derive(Debug)]
pub struct Permits {
    free: usize,
    /// Those who wait, by tenant, then by process. An entry stands for a thread; that of a process which has ended for nothing.
    waiting: Fair<Fair<VecDeque<Waiting>>>,
    processes: BTreeMap<u64, Process>,
    /// The time since when somebody waits at any time.
    waited_since_ns: Option<u64>,
    /// Number of permits that are taken as lost.
    overdue: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    tenant: u64,
    process: u64,
}

#[derive(Debug)]
struct Process {
    tenant: u64,
    weight: u32,
    /// Number of threads that wait.
    waiting: usize,
    /// Number of threads that do not wait because a permit is overdue.
    put_off: usize,
    held: BTreeMap<u32, Held>,
    overdue: usize,
    next_permit: u32,
}

#[derive(Debug)]
struct Held {
    since_ns: u64,
    is_overdue: bool,
}

impl Permits {
    /// Creates the permits for so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            free: threads.max(1),
            waiting: Fair::default(),
            processes: BTreeMap::new(),
            waited_since_ns: None,
            overdue: 0,
        }
    }

    /// Adds a process, which is a tenant of its own with weight 1 until it is [named](Self::name). Numbers are less than `u64::MAX - 1`.
    pub fn add(&mut self, process: u64) {
        let new = Process {
            tenant: process,
            weight: 1,
            waiting: 0,
            put_off: 0,
            held: BTreeMap::new(),
            overdue: 0,
            next_permit: 0,
        };
        self.processes.insert(process, new);
    }

    /// Notes whose time a process takes. Nothing changes for one that has already asked for some, or that was named.
    pub fn name(&mut self, process: u64, tenant: u64, weight: u32) {
        if let Some(known) = self.processes.get_mut(&process)
            && known.tenant == process
            && known.asked() == 0
            && known.next_permit == 0
        {
            (known.tenant, known.weight) = (tenant, weight);
        }
    }

    /// Notes that one more thread of a process waits.
    pub fn ask(&mut self, process: u64, now_ns: u64) {
        let Some(asking) = self.processes.get_mut(&process).filter(|known| known.asked() < PROCESS_MAX)
        else {
            return;
        };
        if asking.overdue > 0 {
            asking.put_off += 1;
            return;
        }
        asking.waiting += 1;
        let (tenant, weight) = (asking.tenant, asking.weight);
        self.waiting.add(tenant, weight, |processes| {
            processes.add(process, 1, |threads| threads.push_back(Waiting { tenant, process }));
        });
        self.waited_since_ns.get_or_insert(now_ns);
    }

    /// Takes a permit back, from a thread that asks for another if it `asks`. A permit that the process does not have is ignored, and so is
    /// what it asks for then.
    pub fn take_back(&mut self, grant: Grant, asks: bool, now_ns: u64) {
        let Grant { process, permit } = grant;
        let Some(returning) = self.processes.get_mut(&process) else { return };
        let Some(held) = returning.held.remove(&permit) else { return };
        let tenant = returning.tenant;
        let mut again = usize::from(asks);
        if held.is_overdue {
            returning.overdue -= 1;
            self.overdue -= 1;
            if returning.overdue == 0 {
                again += std::mem::take(&mut returning.put_off);
            }
        }
        // In this order, as whoever has nothing to do is forgotten with what it owes.
        (0..again).for_each(|_| self.ask(process, now_ns));
        if !held.is_overdue {
            self.free += 1;
            self.charge(Waiting { tenant, process }, held.since_ns, now_ns);
        }
    }

    /// Removes a process, which has ended, with all its permits.
    pub fn end(&mut self, process: u64, now_ns: u64) {
        let Some(Process { tenant, held, overdue, .. }) = self.processes.remove(&process) else { return };
        self.overdue -= overdue;
        for held in held.into_values().filter(|held| !held.is_overdue) {
            self.free += 1;
            self.charge(Waiting { tenant, process }, held.since_ns, now_ns);
        }
    }

    /// Takes the permits as lost that were not returned although others have waited for [`OVERDUE_NS`].
    pub fn expire(&mut self, now_ns: u64) {
        let Some(waited_since_ns) = self.waited_since_ns else { return };
        let mut lost = Vec::new();
        for (&process, known) in &mut self.processes {
            for held in known.held.values_mut().filter(|held| !held.is_overdue) {
                if now_ns.saturating_sub(held.since_ns.max(waited_since_ns)) >= OVERDUE_NS {
                    held.is_overdue = true;
                    known.overdue += 1;
                    lost.push((Waiting { tenant: known.tenant, process }, held.since_ns));
                }
            }
        }
        for (whose, since_ns) in lost {
            self.free += 1;
            self.overdue += 1;
            self.charge(whose, since_ns, now_ns);
        }
    }

    /// Gives a permit to the thread whose turn it is, if there is one of each.
    pub fn grant(&mut self, now_ns: u64) -> Option<Grant> {
        while self.free > 0 {
            let Some(whose) = self.pop() else {
                self.waited_since_ns = None;
                return None;
            };
            let Waiting { process, .. } = whose;
            match self.processes.get_mut(&process) {
                Some(known) if known.overdue == 0 => {
                    known.waiting -= 1;
                    let permit = known.next_permit;
                    known.next_permit = permit.wrapping_add(1);
                    known.held.insert(permit, Held { since_ns: now_ns, is_overdue: false });
                    self.free -= 1;
                    if self.waiting.is_empty() {
                        self.waited_since_ns = None;
                    }
                    return Some(Grant { process, permit });
                }
                Some(known) => {
                    known.waiting -= 1;
                    known.put_off += 1;
                }
                None => {}
            }
            self.charge(whose, now_ns, now_ns);
        }
        None
    }

    /// Returns who waits, as [`others_wait`] reads it: several if a permit is overdue, as who has it has to return it if it goes on.
    pub fn waiting(&self) -> u64 {
        if self.overdue > 0 { SEVERAL } else { self.waiting.waiting() }
    }

    /// Returns whether anybody waits.
    pub fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn pop(&mut self) -> Option<Waiting> {
        self.waiting.begin(|processes| {
            let whose = processes.begin(|threads| (threads.pop_front(), !threads.is_empty()));
            (whose, !processes.is_empty())
        })
    }

    /// Charges what a process has had. What nobody else wanted costs no more than a lease, for which whoever comes then goes before.
    fn charge(&mut self, Waiting { tenant, process }: Waiting, since_ns: u64, now_ns: u64) {
        let wanted_ns =
            self.waited_since_ns.map_or(0, |waited_since_ns| now_ns.saturating_sub(waited_since_ns));
        let taken_ns = now_ns.saturating_sub(since_ns).min(wanted_ns.max(LEASE.as_nanos() as u64));
        self.waiting.charge(tenant, taken_ns, |processes| processes.charge(process, taken_ns, |_| ()));
    }
}

impl Process {
    /// Returns the number of permits that it has and waits for.
    fn asked(&self) -> usize {
        self.waiting + self.put_off + self.held.len()
    }
}

/// Returns whether anybody but `process` waits, by what [`Permits::waiting`] has returned.
pub fn others_wait(waiting: u64, process: u64) -> bool {
    crate::fair::others_wait(waiting, process)
}
