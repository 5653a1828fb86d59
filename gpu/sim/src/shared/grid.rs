//! Executes a launch: its workgroups are spread over the executor threads and take turns.
//!
//! A group runs on one thread at a time, wave after wave, until it ends or has used up its slice. Then it waits its turn again,
//! so that groups which wait for each other (grid barriers, locks) all go on. Not all groups of a grid are begun at once, as
//! that would cost memory: the number of groups under way starts small and grows, up to what the hardware would hold, only
//! while no group ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use hipr_device::WorkFailure;
use hipr_proto::HipError;

use super::Shared;
use super::residents::{First, Share};
use crate::executor::{Job, Owner, lock};
use crate::launch::{Needs, Setup};
use crate::stream::Failed;
use hipr_isa::fault::{Cause, Fault};
use hipr_isa::lds::{Lds, Scratch};
use hipr_isa::mem::Space;
use hipr_isa::step::{Machine, Stop, run};
use hipr_isa::wave::Wave;

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
    /// The memory of all this; `None` if the grid has it as a whole.
    _share: Option<Share>,
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
    fn start(setup: &Setup, number: u64, place: Place) -> Box<Self> {
        let mut group = match place {
            Place::Of(ended) => ended,
            Place::New(share) => Self::new(setup, share),
        };
        group.next = 0;
        group.lds.reset(setup.lds_bytes);
        for (index, member) in (0..).zip(&mut group.members) {
            setup.start(&mut member.wave, number, index);
            member.stage = Stage::Ready;
        }
        group
    }

    fn new(setup: &Setup, share: Option<Share>) -> Box<Self> {
        let member = || Member {
            wave: setup.new_wave(),
            scratch: Scratch::new(setup.scratch_bytes),
            stage: Stage::Ready,
        };
        let members = (0..setup.waves()).map(|_| member()).collect();
        Box::new(Self { members, next: 0, lds: Lds::default(), _share: share })
    }

    /// Executes a slice, and subtracts the executed instructions from `left`. If other sessions wait, the slice is as short as a wave's
    /// turn; the next one goes on behind that wave.
    fn run(&mut self, setup: &Setup, space: &Space, shared: &Shared, left: &mut u64) -> Result<Slice, Fault> {
        let (mut rounds, mut barriers, begun) = (0, 0, *left);
        loop {
            while let Some(member) = self.members.get_mut(self.next) {
                self.next += 1;
                if member.stage != Stage::Ready {
                    continue;
                }
                let mut machine = Machine {
                    space,
                    lds: &mut self.lds,
                    scratch: &mut member.scratch,
                    program: &setup.function.program,
                    wave_sync: setup.wave_sync.as_ref(),
                    clock_start: shared.epoch,
                    interrupts: None,
                };
                if *left == 0 {
                    let cause = Cause::InstructionLimit(shared.kernel_instructions_max);
                    return Err(Fault { cause, pc: member.wave.pc, mnemonic: None, kernel: None });
                }
                let mut budget = WAVE_INSTRUCTIONS.min(*left);
                *left -= budget;
                let stop = run(&mut member.wave, &mut machine, &mut budget)?;
                *left += budget;
                match stop {
                    Stop::End => member.stage = Stage::Ended,
                    Stop::Barrier => member.stage = Stage::AtBarrier,
                    Stop::Budget => {}
                }
                let is_last = self.next == self.members.len() && matches!(stop, Stop::End);
                if !is_last && begun - *left >= WAVE_INSTRUCTIONS && shared.others_wait() {
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
                return Ok(Slice::Ended);
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
    /// Whether the stream has been notified of the end.
    finished: bool,
    error: Option<Failed>,
}

/// A launch that is running.
pub(crate) struct GridJob {
    me: Weak<Self>,
    shared: Arc<Shared>,
    stream: u64,
    setup: Setup,
    /// Time of its first instruction.
    started: OnceLock<Instant>,
    /// Instructions of all its waves so far.
    executed: AtomicU64,
    progress: Mutex<Progress>,
}

impl GridJob {
    pub(crate) fn new(shared: &Arc<Shared>, stream: u64, setup: Setup) -> Arc<Self> {
        let limit = 2 * shared.threads;
        let progress = Mutex::new(Progress { limit, ..Progress::default() });
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            shared: Arc::clone(shared),
            stream,
            setup,
            started: OnceLock::new(),
            executed: AtomicU64::new(0),
            progress,
        })
    }

    /// Returns the maximum number of threads that can work on it.
    pub(crate) fn entries(&self) -> usize {
        usize::try_from(self.setup.groups()).unwrap_or(usize::MAX).clamp(1, self.shared.threads)
    }

    /// Returns a workgroup to execute: a new one while more may be unfinished, else the longest-waiting.
    fn next_group(&self, spare: Option<Box<Group>>) -> Option<Box<Group>> {
        let mut progress = lock(&self.progress);
        if progress.stopped {
            return None;
        }
        if progress.begun < self.setup.groups()
            && progress.alive < progress.limit
            && let Some(place) = self.place(&mut progress, spare)
        {
            let number = progress.begun;
            progress.begun += 1;
            progress.alive += 1;
            drop(progress);
            return Some(Group::start(&self.setup, number, place));
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
        let is_whole = self.setup.wave_sync.is_some();
        let groups = if is_whole { self.setup.groups() } else { 1 };
        let needs = self.setup.group_needs().times(groups);
        if progress.alive > 0 {
            return self.shared.residents.reserve_more(needs).map(|share| Place::New(Some(share)));
        }
        let entry = self.me.upgrade().map(|me| me as Arc<dyn Job>);
        match self.shared.residents.reserve_first(needs, entry) {
            First::Has(share) if is_whole => {
                progress.share = Some(share);
                Some(Place::New(None))
            }
            First::Has(share) => Some(Place::New(Some(share))),
            First::Waits => None,
            First::Never => {
                let kernel = &*self.setup.function.name;
                let Needs { chip_bytes, scratch_bytes } = needs;
                tracing::warn!(
                    kernel,
                    groups,
                    chip_bytes,
                    scratch_bytes,
                    "there is no memory to execute the kernel"
                );
                let too_large = HipError::COOPERATIVE_LAUNCH_TOO_LARGE;
                let error = if is_whole { too_large } else { HipError::LAUNCH_OUT_OF_RESOURCES };
                let text = format!(
                    "no memory to execute {groups} workgroups: {chip_bytes} bytes of registers and LDS, {scratch_bytes} of scratch"
                );
                progress.error = Some(self.failed(error, text));
                progress.stopped = true;
                None
            }
        }
    }

    /// Executes a slice of `group`.
    fn carry_on(&self, group: &mut Group, space: &Space) -> Result<Slice, Fault> {
        if let Some(timeout) = self.shared.kernel_timeout()
            && self.started.get_or_init(Instant::now).elapsed() > timeout
        {
            let pc = group.members.first().map_or(0, |member| member.wave.pc);
            return Err(Fault { cause: Cause::TimeOut(timeout), pc, mnemonic: None, kernel: None });
        }
        let most = self.shared.kernel_instructions_max.saturating_sub(self.executed.load(Ordering::Relaxed));
        let mut left = most;
        let result = group.run(&self.setup, space, &self.shared, &mut left);
        self.executed.fetch_add(most - left, Ordering::Relaxed);
        result
    }

    fn pause(&self, group: Box<Group>, is_whole: bool) {
        let mut progress = lock(&self.progress);
        progress.paused.push_back(group);
        let turns = ROUNDS as usize * self.setup.waves() as usize;
        progress.idle_turns += if is_whole { turns } else { 1 };
        if progress.idle_turns >= 2 * progress.limit * turns {
            progress.idle_turns = 0;
            let most = self.setup.resident_groups as usize;
            progress.limit = (progress.limit + progress.limit / 2).min(most).max(progress.limit);
        }
    }

    fn end_group(&self, error: Option<Failed>) {
        let mut progress = lock(&self.progress);
        progress.alive = progress.alive.saturating_sub(1);
        progress.idle_turns = 0;
        if progress.error.is_none() {
            progress.error = error;
        }
        progress.stopped |= progress.error.is_some();
    }

    /// Notifies the stream if all work is done; returns whether it is.
    fn settle(&self) -> bool {
        let mut progress = lock(&self.progress);
        progress.stopped |= self.shared.is_closed();
        let (mut dropped, mut share) = (VecDeque::new(), None);
        if progress.stopped {
            dropped = std::mem::take(&mut progress.paused);
            progress.alive = progress.alive.saturating_sub(dropped.len());
        }
        let all_begun = progress.stopped || progress.begun == self.setup.groups();
        if !all_begun || progress.alive > 0 {
            return false;
        }
        let first = !std::mem::replace(&mut progress.finished, true);
        share = share.or(progress.share.take());
        let result = progress.error.take().map_or(Ok(()), Err);
        drop(progress);
        drop((dropped, share));
        if first {
            self.shared.finish(self.stream, result);
        }
        true
    }

    /// Returns an error of this launch.
    fn failed(&self, error: HipError, text: String) -> Failed {
        let Setup { function, handle, origin, .. } = &self.setup;
        let (kernel, stream) = (function.name.to_string(), self.stream);
        let work = WorkFailure { origin: *origin, function: *handle, stream, kernel, text };
        Failed { error, work: Some(Box::new(work)) }
    }

    fn report(&self, fault: Fault) -> Failed {
        let error = match fault.cause {
            Cause::IllegalAddress { .. } | Cause::MisalignedAtomic { .. } => HipError::ILLEGAL_ADDRESS,
            Cause::Unknown { .. } | Cause::BadPc | Cause::Trap(_) | Cause::NoGlobalWaveSync(_) => {
                HipError::LAUNCH_FAILURE
            }
            Cause::InstructionLimit(_) | Cause::TimeOut(_) => HipError::LAUNCH_TIME_OUT,
        };
        let name = Arc::clone(&self.setup.function.name);
        let offset = fault.pc.wrapping_sub(self.setup.function.entry);
        let failed = self.failed(error, fault.to_string());
        let fault = fault.in_kernel(name);
        tracing::error!(%fault, offset_bytes = offset as i64, stream = self.stream, "kernel failed");
        failed
    }
}

impl Job for GridJob {
    fn owner(&self) -> Owner {
        self.shared.owner(self.stream)
    }

    fn executed(&self) -> u64 {
        self.executed.load(Ordering::Relaxed)
    }

    fn note_time(&self, taken_ns: u64) {
        self.shared.device_ns.fetch_add(taken_ns, Ordering::Relaxed);
    }

    fn turn(&self) -> bool {
        let space = Space::new(self.shared.snapshot(), Arc::clone(&self.setup.memory));
        let (started, mut spare) = (Instant::now(), None);
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
                Err(fault) => self.end_group(Some(self.report(fault))),
            }
            if started.elapsed() > if self.shared.others_wait() { SHORT_TURN } else { TURN } {
                return !self.settle();
            }
        }
        false
    }

    fn abandon(&self) {
        self.end_group(Some(self.failed(HipError::LAUNCH_FAILURE, "the emulator panicked".to_owned())));
        self.settle();
    }
}
