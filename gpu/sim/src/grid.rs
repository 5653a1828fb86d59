//! Running a launch: its workgroups spread over the executor threads and take turns.
//!
//! A group runs on one thread at a time, wave after wave, until it ends or has used up its slice. Then it waits its turn again,
//! so that groups which wait for each other (grid barriers, locks) all go on. Not all groups of a grid are begun at once, as
//! that would cost memory: the number of groups under way starts small and grows, up to what the hardware would hold, only
//! while no group ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use hipr_proto::HipError;

use crate::executor::{Job, lock};
use crate::fault::{Cause, Fault};
use crate::launch::Setup;
use crate::lds::{Lds, Scratch};
use crate::mem::Space;
use crate::shared::Shared;
use crate::step::{Machine, Stop, run};
use crate::wave::Wave;

/// Instructions that a wave executes before the next one of its group has its turn.
const WAVE_INSTRUCTIONS: u64 = 2048;
/// How often the waves of a group have their turn before another group has its one.
const ROUNDS: u32 = 2;
/// Barriers that a group may pass in one slice.
const BARRIERS: u32 = 512;
/// How long a thread works on a grid before other work has its turn.
const TURN: Duration = Duration::from_millis(4);

/// A launch that waits in its stream.
#[derive(Debug)]
pub(crate) struct Grid(pub(crate) Setup);

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

/// A workgroup under way.
#[derive(Debug)]
struct Group {
    members: Vec<Member>,
    lds: Lds,
}

#[derive(Debug, PartialEq, Eq)]
enum Slice {
    Ended,
    Paused,
}

impl Group {
    /// Group number `number`, in the memory of one that has ended if there is one.
    fn start(setup: &Setup, number: u64, spare: Option<Box<Self>>) -> Box<Self> {
        let mut group = spare.unwrap_or_else(|| {
            let member = || Member {
                wave: setup.new_wave(),
                scratch: Scratch::new(setup.scratch_bytes),
                stage: Stage::Ready,
            };
            let members = (0..setup.waves()).map(|_| member()).collect();
            Box::new(Self { members, lds: Lds::default() })
        });
        group.lds.reset(setup.lds_bytes);
        for (index, member) in (0..).zip(&mut group.members) {
            setup.start(&mut member.wave, number, index);
            member.stage = Stage::Ready;
        }
        group
    }

    /// Runs a slice, and takes the instructions that it executes off `left`.
    fn run(&mut self, setup: &Setup, space: &Space, shared: &Shared, left: &mut u64) -> Result<Slice, Fault> {
        let mut rounds = 0;
        for _ in 0..BARRIERS {
            let mut yielded = true;
            while yielded {
                yielded = false;
                for member in self.members.iter_mut().filter(|member| member.stage == Stage::Ready) {
                    let mut machine = Machine {
                        space,
                        lds: &mut self.lds,
                        scratch: &mut member.scratch,
                        program: &setup.function.program,
                        clock_start: shared.epoch,
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
                        Stop::Budget => yielded = true,
                    }
                }
                rounds += u32::from(yielded);
                if rounds == ROUNDS {
                    return Ok(Slice::Paused);
                }
            }
            let waiting = self.members.iter_mut().filter(|member| member.stage == Stage::AtBarrier);
            if waiting.map(|member| member.stage = Stage::Ready).count() == 0 {
                return Ok(Slice::Ended);
            }
        }
        Ok(Slice::Paused)
    }
}

/// What the threads that work on a grid share.
#[derive(Debug, Default)]
struct Progress {
    /// Groups that were begun.
    begun: u64,
    /// Groups that were begun and have not ended.
    alive: usize,
    /// Groups that wait for a thread, the one that has waited longest first.
    paused: VecDeque<Box<Group>>,
    /// How many groups may be alive.
    limit: usize,
    /// Slices that were used up since a group ended.
    idle_slices: usize,
    /// No group is begun or continued any more.
    stopped: bool,
    /// The stream has been told.
    finished: bool,
    error: Option<HipError>,
}

/// A launch that is running.
pub(crate) struct GridJob {
    shared: Arc<Shared>,
    stream: u64,
    setup: Setup,
    /// When its first instruction was executed.
    started: OnceLock<Instant>,
    /// Instructions of all its waves so far.
    executed: AtomicU64,
    progress: Mutex<Progress>,
}

impl GridJob {
    pub(crate) fn new(shared: &Arc<Shared>, stream: u64, grid: Grid) -> Self {
        let limit = 2 * shared.threads;
        let progress = Mutex::new(Progress { limit, ..Progress::default() });
        Self {
            shared: Arc::clone(shared),
            stream,
            setup: grid.0,
            started: OnceLock::new(),
            executed: AtomicU64::new(0),
            progress,
        }
    }

    /// How many threads can work on it.
    pub(crate) fn entries(&self) -> usize {
        usize::try_from(self.setup.groups()).unwrap_or(usize::MAX).clamp(1, self.shared.threads)
    }

    /// A group to run: a fresh one while there may be more, else the one that has waited longest.
    fn next_group(&self, spare: Option<Box<Group>>) -> Option<Box<Group>> {
        let mut progress = lock(&self.progress);
        if progress.stopped {
            return None;
        }
        if progress.begun < self.setup.groups() && progress.alive < progress.limit {
            let number = progress.begun;
            progress.begun += 1;
            progress.alive += 1;
            drop(progress);
            return Some(Group::start(&self.setup, number, spare));
        }
        progress.paused.pop_front()
    }

    /// Carries `group` on for a slice.
    fn carry_on(&self, group: &mut Group, space: &Space) -> Result<Slice, Fault> {
        if let Some(timeout) = self.shared.kernel_timeout
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

    fn pause(&self, group: Box<Group>) {
        let mut progress = lock(&self.progress);
        progress.paused.push_back(group);
        progress.idle_slices += 1;
        if progress.idle_slices >= 2 * progress.limit {
            progress.idle_slices = 0;
            let most = self.setup.resident_groups as usize;
            progress.limit = (progress.limit + progress.limit / 2).min(most).max(progress.limit);
        }
    }

    fn end_group(&self, error: Option<HipError>) {
        let mut progress = lock(&self.progress);
        progress.alive = progress.alive.saturating_sub(1);
        progress.idle_slices = 0;
        if progress.error.is_none() {
            progress.error = error;
        }
        progress.stopped |= progress.error.is_some();
    }

    /// Tells the stream if nothing is left to do. `true` if so.
    fn settle(&self) -> bool {
        let mut progress = lock(&self.progress);
        progress.stopped |= self.shared.is_closed();
        let mut dropped = VecDeque::new();
        if progress.stopped {
            dropped = std::mem::take(&mut progress.paused);
            progress.alive = progress.alive.saturating_sub(dropped.len());
        }
        let all_begun = progress.stopped || progress.begun == self.setup.groups();
        if !all_begun || progress.alive > 0 {
            return false;
        }
        let first = !std::mem::replace(&mut progress.finished, true);
        let result = progress.error.map_or(Ok(()), Err);
        drop(progress);
        drop(dropped);
        if first {
            self.shared.finish(self.stream, result);
        }
        true
    }

    fn report(&self, fault: Fault) -> HipError {
        let error = match fault.cause {
            Cause::IllegalAddress { .. } | Cause::MisalignedAtomic { .. } => HipError::ILLEGAL_ADDRESS,
            Cause::Unknown { .. } | Cause::BadPc | Cause::Trap(_) | Cause::NoGlobalWaveSync(_) => {
                HipError::LAUNCH_FAILURE
            }
            Cause::InstructionLimit(_) | Cause::TimeOut(_) => HipError::LAUNCH_TIME_OUT,
        };
        let name = Arc::clone(&self.setup.function.name);
        let offset = fault.pc.wrapping_sub(self.setup.function.entry);
        let fault = fault.in_kernel(name);
        tracing::error!(%fault, offset_bytes = offset as i64, stream = self.stream, "a kernel failed");
        error
    }
}

impl Job for GridJob {
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
                Ok(Slice::Paused) => {
                    self.pause(group);
                    return !self.settle();
                }
                Err(fault) => self.end_group(Some(self.report(fault))),
            }
            if started.elapsed() > TURN {
                return !self.settle();
            }
        }
        false
    }

    fn abandon(&self) {
        self.end_group(Some(HipError::LAUNCH_FAILURE));
        self.settle();
    }
}
