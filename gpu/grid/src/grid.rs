//! Executes a dispatch: its workgroups are spread over the executor threads and take turns.
//!
//! A group runs on one thread at a time, wave after wave, until it ends or has used up its slice. Then it waits its turn again,
//! so that groups which wait for each other (grid barriers, locks) all go on. Not all groups of a grid are begun at once, as
//! that would cost memory: the number of groups under way starts small and grows, up to what the hardware would hold, only
//! while no group ends.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use hipr_isa::fault::{Cause, Fault};
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::map::Map;
use hipr_isa::mem::{Newer, Space};
use hipr_isa::step::{Interrupts, Machine, Stop, run};
use hipr_isa::wave::Wave;

use crate::dispatch::Dispatch;
use crate::executor::{Job, Owner, lock};
use crate::residents::{First, Needs, Residents, Share};
use crate::watch::{GridWatch, GroupWatch};

/// Number of instructions that a wave executes before the next one of its workgroup.
const WAVE_INSTRUCTIONS: u64 = 2048;
/// Number of turns of a workgroup's waves before another workgroup continues.
const ROUNDS: u32 = 2;
/// Maximum number of barriers that a workgroup passes in one slice.
const BARRIERS: u32 = 512;
/// Time that a thread works on a grid before other work.
const TURN: Duration = Duration::from_millis(4);
/// The same if other sessions wait.
const SHORT_TURN: Duration = Duration::from_micros(50);
/// Seconds after which the log says that a grid still runs; again whenever this has doubled.
const LONG_RUN_S: u64 = 10;

/// What a grid asks of the one who has started it. It is asked often, from several threads at a time, and has to answer at once.
pub trait Host: Send + Sync + 'static {
    /// Returns whose time the grid takes.
    fn owner(&self) -> Owner;

    /// Returns whether work of others waits for a thread, so that this grid has to make room soon: see
    /// [`RunQueue::others_wait`](crate::RunQueue::others_wait).
    fn others_wait(&self) -> bool;

    /// Returns whether the grid has to end now, because nobody wants it any more.
    fn is_closed(&self) -> bool;

    /// Returns the number of threads that work on grids.
    fn threads(&self) -> usize;

    /// Returns the maximum number of instructions of the grid's waves together.
    fn instructions_max(&self) -> u64;

    /// Returns the maximum time from the first instruction on.
    fn timeout(&self) -> Option<Duration>;

    /// Returns where the memory of workgroups is reserved.
    fn residents(&self) -> &Arc<Residents>;

    /// Returns the current page table. A turn keeps it as it is for some milliseconds.
    fn snapshot(&self) -> Arc<Map>;

    /// Returns where there are newer page tables than a turn's, for a kernel that may get memory while it runs.
    fn newer(&self) -> Option<Arc<dyn Newer>> {
        None
    }

    /// Returns the time at which the device's clocks started.
    fn clock_start(&self) -> Instant;

    /// Returns whom the kernel's interrupts go to, if anybody.
    fn interrupts(&self) -> Option<&dyn Interrupts> {
        None
    }

    /// Returns what sees the grid's workgroups, if anything does; asked for each of them when it begins.
    fn watch(&self) -> Option<&dyn GridWatch> {
        None
    }

    /// Notes that a turn of the grid has taken so long.
    fn note_time(&self, taken_ns: u64);

    /// Takes the end of the grid, exactly once, from the thread that has executed the last group. No wave of it runs any more. What its
    /// waves have stored is visible to every thread that learns of the end.
    fn finished(&self, dispatch: &Dispatch, result: Result<(), Failure>);
}

/// Why a grid has ended before all its workgroups had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A wave cannot go on: the first one that could not. [`Fault::kernel`] is empty.
    Fault(Fault),
    /// There is no memory to execute even this, although no other grid of the context has any.
    NoMemory {
        /// The number of workgroups that have to be executed together: all of a cooperative launch, else 1.
        groups: u64,
        /// What they need.
        needs: Needs,
    },
    /// The emulator has panicked, which was reported where it did.
    Panicked,
    /// [`Host::is_closed`] was true.
    Closed,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::NoMemory { groups, needs: Needs { chip_bytes, scratch_bytes } } => write!(
                f,
                "no memory to execute {groups} workgroups: {chip_bytes} bytes of registers and LDS, {scratch_bytes} of scratch"
            ),
            Self::Panicked => f.write_str("the emulator panicked"),
            Self::Closed => f.write_str("ended before it was done, as nobody wants it any more"),
        }
    }
}

impl std::error::Error for Failure {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Ready,
    AtBarrier,
    Ended,
}

#[derive(Debug)]
struct Member {
    wave: Wave,
    scratch: Scratch,
    stage: Stage,
}

/// A workgroup that is being executed.
#[derive(Debug)]
struct Group {
    members: Vec<Member>,
    /// The number of the wave that comes next.
    next: usize,
    lds: Lds,
    /// What sees its instructions, if anything does.
    watch: Option<Box<dyn GroupWatch>>,
    /// The memory of all this; `None` if the grid has it as a whole.
    _share: Option<Share>,
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(mut watch) = self.watch.take() {
            watch.ended(false);
        }
    }
}

/// The memory in which a workgroup begins.
enum Place {
    /// That of a group that has ended.
    Of(Box<Group>),
    /// New memory, and the share that is reserved for it.
    New(Option<Share>),
}

#[derive(Debug, PartialEq, Eq)]
enum Slice {
    Ended,
    Paused,
    /// It was not over, but others wait.
    Cut,
}

impl Group {
    /// Starts workgroup number `number` in the memory of another one.
    fn start(dispatch: &Dispatch, watch: Option<&dyn GridWatch>, number: u64, place: Place) -> Box<Self> {
        let mut group = match place {
            Place::Of(ended) => ended,
            Place::New(share) => Self::new(dispatch, share),
        };
        group.next = 0;
        group.lds.reset(dispatch.lds_bytes);
        let workgroup = dispatch.workgroup(number);
        let waves = workgroup.waves();
        group.watch = watch.map(|watch| watch.group(dispatch, &workgroup.start()));
        for (index, member) in (0..).zip(&mut group.members) {
            // A group at the edge may have fewer waves than there is memory for.
            member.stage = Stage::Ended;
            if index < waves {
                dispatch.start(&mut member.wave, &workgroup, index);
                member.stage = Stage::Ready;
            }
        }
        group
    }

    fn new(dispatch: &Dispatch, share: Option<Share>) -> Box<Self> {
        let member = || Member {
            wave: dispatch.new_wave(),
            scratch: Scratch::new(dispatch.scratch_bytes),
            stage: Stage::Ready,
        };
        let members = (0..dispatch.size.waves()).map(|_| member()).collect();
        Box::new(Self { members, next: 0, lds: Lds::default(), watch: None, _share: share })
    }

    /// Executes a slice, and subtracts the executed instructions from `left`. If other sessions wait, the slice is as short as a wave's
    /// turn; the next one goes on behind that wave.
    fn run(
        &mut self,
        dispatch: &Dispatch,
        space: &Space,
        host: &dyn Host,
        left: &mut u64,
    ) -> Result<Slice, Fault> {
        let (clock_start, interrupts) = (host.clock_start(), host.interrupts());
        let (mut rounds, mut barriers, begun) = (0, 0, *left);
        loop {
            while let Some(member) = self.members.get_mut(self.next) {
                self.next += 1;
                if member.stage != Stage::Ready {
                    continue;
                }
                let wave = self.next as u32 - 1;
                if let Some(watch) = &mut self.watch {
                    watch.turn(wave);
                }
                let mut machine = Machine {
                    space,
                    lds: &mut self.lds,
                    scratch: &mut member.scratch,
                    program: &dispatch.program,
                    wave_sync: dispatch.wave_sync.as_deref(),
                    clock_start,
                    interrupts,
                    watch: self.watch.as_mut().map(|watch| watch.as_watch()),
                };
                if *left == 0 {
                    let cause = Cause::InstructionLimit(host.instructions_max());
                    return Err(Fault { cause, pc: member.wave.pc, mnemonic: None, kernel: None });
                }
                let mut budget = WAVE_INSTRUCTIONS.min(*left);
                *left -= budget;
                let stop = run(&mut member.wave, &mut machine, &mut budget)?;
                *left += budget;
                match stop {
                    Stop::End => {
                        member.stage = Stage::Ended;
                        if let Some(watch) = &mut self.watch {
                            watch.wave_ended(wave);
                        }
                    }
                    Stop::Barrier => {
                        member.stage = Stage::AtBarrier;
                        if let Some(watch) = &mut self.watch {
                            watch.at_barrier(wave, &member.wave);
                        }
                    }
                    Stop::Budget => {}
                }
                let is_last = self.next == self.members.len() && matches!(stop, Stop::End);
                if !is_last && begun - *left >= WAVE_INSTRUCTIONS && host.others_wait() {
                    return Ok(Slice::Cut);
                }
            }
            self.next = 0;
            if self.members.iter().any(|member| member.stage == Stage::Ready) {
                rounds += 1;
                if rounds == ROUNDS {
                    return Ok(Slice::Paused);
                }
                continue;
            }
            let waiting = self.members.iter_mut().filter(|member| member.stage == Stage::AtBarrier);
            if waiting.map(|member| member.stage = Stage::Ready).count() == 0 {
                if let Some(mut watch) = self.watch.take() {
                    watch.ended(true);
                }
                return Ok(Slice::Ended);
            }
            if let Some(watch) = &mut self.watch {
                watch.barrier();
            }
            barriers += 1;
            if barriers == BARRIERS {
                return Ok(Slice::Paused);
            }
        }
    }
}

/// The state shared by the threads that work on a grid.
#[derive(Debug, Default)]
struct Progress {
    /// Number of workgroups that were started.
    begun: u64,
    /// Number of workgroups that were started and have not ended.
    alive: usize,
    /// Workgroups that wait for a thread, the longest-waiting first.
    paused: VecDeque<Box<Group>>,
    /// Maximum number of unfinished workgroups.
    limit: usize,
    /// Number of waves' turns since a workgroup ended.
    idle_turns: usize,
    /// The memory of all workgroups, if they have to be executed together.
    share: Option<Share>,
    /// Whether no workgroup is started or continued any more.
    stopped: bool,
    /// Whether the host has been told of the end.
    finished: bool,
    error: Option<Failure>,
}

/// A grid that is being executed: a [`Job`] to be queued [`entries`](Self::entries) times.
pub struct GridJob<H> {
    me: Weak<Self>,
    host: H,
    dispatch: Dispatch,
    /// Time of its first instruction.
    started: OnceLock<Instant>,
    /// Instructions of all its waves so far.
    executed: AtomicU64,
    /// Seconds from the first instruction on after which the log says next that it still runs.
    long_run_s: AtomicU64,
    progress: Mutex<Progress>,
}

impl<H: Host> GridJob<H> {
    /// Creates the job that executes `dispatch`.
    pub fn new(host: H, dispatch: Dispatch) -> Arc<Self> {
        let limit = (2 * host.threads()).min(dispatch.resident_groups.max(1) as usize);
        let progress = Mutex::new(Progress { limit, ..Progress::default() });
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            host,
            dispatch,
            started: OnceLock::new(),
            executed: AtomicU64::new(0),
            long_run_s: AtomicU64::new(LONG_RUN_S),
            progress,
        })
    }

    /// Returns the maximum number of threads that can work on it.
    pub fn entries(&self) -> usize {
        usize::try_from(self.dispatch.size.groups()).unwrap_or(usize::MAX).clamp(1, self.host.threads())
    }

    /// Returns a workgroup to execute: a new one while more may be unfinished, else the longest-waiting.
    fn next_group(&self, spare: Option<Box<Group>>) -> Option<Box<Group>> {
        let mut progress = lock(&self.progress);
        if progress.stopped {
            return None;
        }
        if progress.begun < self.dispatch.size.groups()
            && progress.alive < progress.limit
            && let Some(place) = self.place(&mut progress, spare)
        {
            let number = progress.begun;
            progress.begun += 1;
            progress.alive += 1;
            drop(progress);
            return Some(Group::start(&self.dispatch, self.host.watch(), number, place));
        }
        progress.paused.pop_front()
    }

    /// Returns memory for one more workgroup. Without any the grid goes on with those that it has; if it has none, it waits, or fails if
    /// there will never be enough.
    fn place(&self, progress: &mut Progress, spare: Option<Box<Group>>) -> Option<Place> {
        if let Some(ended) = spare {
            return Some(Place::Of(ended));
        }
        if progress.share.is_some() {
            return Some(Place::New(None));
        }
        let is_whole = self.dispatch.wave_sync.is_some();
        let groups = if is_whole { self.dispatch.size.groups() } else { 1 };
        let needs = self.dispatch.group_needs().times(groups);
        if progress.alive > 0 {
            return self.host.residents().reserve_more(needs).map(|share| Place::New(Some(share)));
        }
        let entry = self.me.upgrade().map(|me| me as Arc<dyn Job>);
        match self.host.residents().reserve_first(needs, entry) {
            First::Has(share) if is_whole => {
                progress.share = Some(share);
                Some(Place::New(None))
            }
            First::Has(share) => Some(Place::New(Some(share))),
            First::Waits => None,
            First::Never => {
                progress.error = Some(Failure::NoMemory { groups, needs });
                progress.stopped = true;
                None
            }
        }
    }

    /// Executes a slice of `group`.
    fn carry_on(&self, group: &mut Group, space: &Space) -> Result<Slice, Fault> {
        if let Some(timeout) = self.host.timeout()
            && self.started.get_or_init(Instant::now).elapsed() > timeout
        {
            let pc = group.members.first().map_or(0, |member| member.wave.pc);
            return Err(Fault { cause: Cause::TimeOut(timeout), pc, mnemonic: None, kernel: None });
        }
        let most = self.host.instructions_max().saturating_sub(self.executed.load(Ordering::Relaxed));
        let mut left = most;
        let result = group.run(&self.dispatch, space, &self.host, &mut left);
        self.executed.fetch_add(most - left, Ordering::Relaxed);
        result
    }

    /// Says in the log that the grid still runs, if it has done so for long.
    fn tell_long_run(&self, ran: Duration) {
        let due_s = self.long_run_s.load(Ordering::Relaxed);
        let is_due = ran.as_secs() >= due_s;
        let next_s = due_s.saturating_mul(2);
        let order = Ordering::Relaxed;
        if !is_due || self.long_run_s.compare_exchange(due_s, next_s, order, order).is_err() {
            return;
        }
        let progress = lock(&self.progress);
        let ended_groups = progress.begun - progress.alive as u64;
        drop(progress);
        let (groups, instructions) = (self.dispatch.size.groups(), self.executed.load(Ordering::Relaxed));
        let (kernel, ran_s) = (&*self.dispatch.name, ran.as_secs());
        tracing::info!(kernel, ran_s, ended_groups, groups, instructions, "a kernel still runs");
    }

    fn pause(&self, group: Box<Group>, is_whole: bool) {
        let mut progress = lock(&self.progress);
        progress.paused.push_back(group);
        let turns = ROUNDS as usize * self.dispatch.size.waves() as usize;
        progress.idle_turns += if is_whole { turns } else { 1 };
        if progress.idle_turns >= 2 * progress.limit * turns {
            progress.idle_turns = 0;
            let most = self.dispatch.resident_groups as usize;
            progress.limit = (progress.limit + progress.limit / 2).min(most).max(progress.limit);
        }
    }

    fn end_group(&self, error: Option<Failure>) {
        let mut progress = lock(&self.progress);
        progress.alive = progress.alive.saturating_sub(1);
        progress.idle_turns = 0;
        if progress.error.is_none() {
            progress.error = error;
        }
        progress.stopped |= progress.error.is_some();
    }

    /// Tells the host if all work is done; returns whether it is.
    fn settle(&self) -> bool {
        let mut progress = lock(&self.progress);
        let is_closed = self.host.is_closed();
        progress.stopped |= is_closed;
        let (mut dropped, mut share) = (VecDeque::new(), None);
        if progress.stopped {
            dropped = std::mem::take(&mut progress.paused);
            progress.alive = progress.alive.saturating_sub(dropped.len());
        }
        let is_cut = is_closed && (!dropped.is_empty() || progress.begun < self.dispatch.size.groups());
        if is_cut && progress.error.is_none() {
            progress.error = Some(Failure::Closed);
        }
        let all_begun = progress.stopped || progress.begun == self.dispatch.size.groups();
        if !all_begun || progress.alive > 0 {
            return false;
        }
        let first = !std::mem::replace(&mut progress.finished, true);
        share = share.or(progress.share.take());
        let result = progress.error.take().map_or(Ok(()), Err);
        drop(progress);
        drop((dropped, share));
        if first {
            self.host.finished(&self.dispatch, result);
        }
        true
    }
}

impl<H: Host> Job for GridJob<H> {
    fn owner(&self) -> Owner {
        self.host.owner()
    }

    fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    fn note_time(&self, taken_ns: u64) {
        self.host.note_time(taken_ns);
    }

    fn turn(&self) -> bool {
        let space = Space::new(self.host.snapshot(), Arc::clone(&self.dispatch.memory));
        let space = space.with_newer(self.host.newer());
        let (started, mut spare) = (Instant::now(), None);
        self.tell_long_run(started.saturating_duration_since(*self.started.get_or_init(|| started)));
        while !self.settle() {
            let Some(mut group) = self.next_group(spare.take()) else {
                // What is left is with other threads; whoever ends the last group settles it.
                self.settle();
                return false;
            };
            match self.carry_on(&mut group, &space) {
                Ok(Slice::Ended) => {
                    self.end_group(None);
                    spare = Some(group);
                }
                Ok(slice) => {
                    self.pause(group, slice == Slice::Paused);
                    return !self.settle();
                }
                Err(fault) => self.end_group(Some(Failure::Fault(fault))),
            }
            if started.elapsed() > if self.host.others_wait() { SHORT_TURN } else { TURN } {
                return !self.settle();
            }
        }
        false
    }

    fn abandon(&self) {
        self.end_group(Some(Failure::Panicked));
        self.settle();
    }
}
