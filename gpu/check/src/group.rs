//! The checks of one workgroup: sees its instructions, barriers and ends.

use std::collections::HashSet;
use std::sync::Arc;

use hipr_grid::{Dispatch, GridWatch, GroupStart, GroupWatch};
use hipr_isa::watch::{Access, Exchange, Jump, Kind as AccessKind, Memory, Step, Watch};
use hipr_isa::wave::{LANES, Wave};

use crate::finding::{Accessed, Kind, Near, Tool};
use crate::init::{Init, Instruction, Origin};
use crate::kernel::At;
use crate::launch::{GivenUp, Launch, accessed};
use crate::lock::lock;
use crate::map::Known;
use crate::race::order::GroupOrder;
use crate::sync::Barriers;

/// What an access that leaves LDS or scratch is said to have left.
fn of_group(len_bytes: u64, what: &str) -> Near {
    Near { address: 0, len_bytes, variable: Some(what.to_owned()), earlier: 0, is_freed: false }
}

/// Makes the checkers of a launch's workgroups.
pub(crate) struct Groups(pub(crate) Arc<Launch>);

impl GridWatch for Groups {
    fn group(&self, _dispatch: &Dispatch, start: &GroupStart) -> Box<dyn GroupWatch> {
        Box::new(Group::new(Arc::clone(&self.0), *start))
    }
}

/// The most calls of a wave that are kept.
const CALLS_MAX: usize = 64;

#[derive(Clone, Debug, Default)]
struct WaveState {
    /// The addresses to which the functions that it is in return, the innermost last.
    callers: Vec<u64>,
    last: Option<Last>,
    is_ended: bool,
}

/// The last access of a wave.
#[derive(Clone, Debug)]
struct Last {
    pc: u64,
    lane: usize,
    accessed: Accessed,
    /// How many of the wave's callers it had.
    depth: usize,
    /// Its callers, if the wave has returned to one of them.
    callers: Option<Vec<u64>>,
}

impl WaveState {
    fn jump(&mut self, jump: Jump) {
        match jump {
            Jump::Call { back } if self.callers.len() < CALLS_MAX => self.callers.push(back),
            Jump::Call { .. } => {}
            // What is no return is a jump within a function.
            Jump::Return { to } => {
                if let Some(depth) = self.callers.iter().rposition(|back| *back == to) {
                    if let Some(last) = &mut self.last
                        && last.callers.is_none()
                        && depth < last.depth
                    {
                        last.callers = Some(self.callers[..last.depth].to_vec());
                    }
                    self.callers.truncate(depth);
                }
            }
        }
    }

    /// Returns the callers of its last access.
    fn last_callers(&self) -> &[u64] {
        match &self.last {
            Some(Last { callers: Some(callers), .. }) => callers,
            Some(Last { depth, .. }) => &self.callers[..*depth],
            None => &[],
        }
    }
}

/// The checks of one workgroup.
struct Group {
    launch: Arc<Launch>,
    start: GroupStart,
    /// The wave whose instructions come next.
    wave: usize,
    waves: Vec<WaveState>,
    memory: Option<MemoryCheck>,
    init: Option<Init>,
    race: Option<GroupOrder>,
    sync: Option<Barriers>,
}

impl Group {
    fn new(launch: Arc<Launch>, start: GroupStart) -> Self {
        let has = |tool| launch.tools.contains(&tool);
        let memory = has(Tool::Memory).then(MemoryCheck::default);
        let init = has(Tool::Init).then(|| Init::new(&launch.context.marks, start.waves));
        let race = has(Tool::Race).then(|| GroupOrder::new(&launch, start));
        let sync = has(Tool::Sync).then(|| Barriers::new(start));
        let waves = vec![WaveState::default(); start.waves as usize];
        Self { launch, start, wave: 0, waves, memory, init, race, sync }
    }
}

impl Watch for Group {
    fn instruction(&mut self, wave: &Wave, step: &mut Step<'_, '_>) {
        let Self { launch, start, waves, memory, init, race, sync, .. } = self;
        let Some(own) = waves.get_mut(self.wave) else { return };
        if !step.has_accesses() {
            if let Some(jump) = step.jump(wave) {
                own.jump(jump);
            } else if let Some(race) = race
                && let Some(fence) = step.fence()
            {
                race.fence(launch, self.wave, fence);
            }
            if let Some(init) = init {
                init.computes(self.wave, wave, step, &mut |origin| {
                    unwritten(launch, *start, self.wave, origin, wave.pc)
                });
            }
            return;
        }
        if let Some(sync) = sync
            && !step.is_scratch()
        {
            sync.active(launch, self.wave, wave.exec());
        }
        let WaveState { callers, last, .. } = own;
        let at = At { pc: wave.pc, callers, start: *start, wave: self.wave, lane: 0 };
        let (lds_len_bytes, scratch_len_bytes) =
            (u64::from(step.lds_len_bytes()), step.scratch_bytes_per_lane());
        let (address_register, exchange) = (step.address_register(), step.exchange());
        let is_exchange = exchange == Some(Exchange::Always);
        let instruction = Instruction { pc: at.pc, callers, address_register, is_exchange };
        step.accesses(wave, &mut |access| {
            let lane = access.lanes.trailing_zeros() as usize % LANES;
            let accessed = accessed(access, access.addresses[lane]);
            *last = Some(Last { pc: at.pc, lane, accessed, depth: callers.len(), callers: None });
            let is_right = memory
                .as_mut()
                .is_none_or(|memory| memory.check(launch, at, access, lds_len_bytes, scratch_len_bytes));
            if let Some(init) = init
                && is_right
            {
                let mut report = |origin: &Origin| unwritten(launch, at.start, at.wave, origin, at.pc);
                init.access(at.wave, wave, &instruction, access, &mut report);
            }
            if let Some(race) = race
                && is_right
            {
                race.access(launch, at, wave, access, exchange == Some(Exchange::IfEqual));
            }
        });
    }
}

/// Reports the use of bytes that nobody wrote, at the load that brought them.
fn unwritten(launch: &Launch, start: GroupStart, wave: usize, origin: &Origin, used_at: u64) {
    let at = At { pc: origin.pc, callers: &origin.callers, start, wave, lane: origin.lane };
    launch.found(Kind::UninitializedRead, at, 1, || {
        let &Origin { memory, address, len_bytes, .. } = origin;
        let accessed = Accessed { kind: AccessKind::Load, memory, address, len_bytes };
        let used = launch.kernel.place_of(At { pc: used_at, callers: &[], ..at });
        let line = used.frames.first().filter(|frame| frame.line > 0);
        let note = match line {
            Some(frame) => format!("they are used in {frame}"),
            None => format!("they are used at byte {:#x} of its code", used.offset_bytes),
        };
        (Some(accessed), launch.near(memory, address), None, note)
    });
}

impl GroupWatch for Group {
    fn turn(&mut self, wave: u32) {
        self.wave = wave as usize;
    }

    fn at_barrier(&mut self, wave: u32, state: &Wave) {
        if let Some(sync) = &mut self.sync {
            let callers = self.waves.get(wave as usize).map_or(&[] as &[u64], |own| &own.callers);
            sync.at_barrier(&self.launch, wave as usize, callers, state);
        }
    }

    fn barrier(&mut self) {
        if let Some(sync) = &mut self.sync {
            sync.barrier(&self.launch);
        }
        if let Some(race) = &mut self.race {
            race.barrier(&self.launch);
        }
    }

    fn wave_ended(&mut self, wave: u32) {
        if let Some(own) = self.waves.get_mut(wave as usize) {
            own.is_ended = true;
        }
    }

    fn ended(&mut self, is_whole: bool) {
        if is_whole {
            return;
        }
        let mut given_up = lock(&self.launch.given_up);
        for (wave, own) in self.waves.iter().enumerate().filter(|(_, own)| !own.is_ended) {
            if let Some(&Last { pc, lane, accessed, .. }) = own.last.as_ref() {
                let callers = own.last_callers().to_vec();
                given_up.push(GivenUp {
                    start: self.start,
                    wave,
                    lane,
                    pc,
                    callers,
                    accessed: Some(accessed),
                });
            }
        }
    }

    fn as_watch(&mut self) -> &mut dyn Watch {
        self
    }
}

/// Checks the addresses of accesses.
#[derive(Default)]
struct MemoryCheck {
    known: Known,
    /// Instructions of which something was reported.
    reported: HashSet<(u64, Kind)>,
}

impl MemoryCheck {
    /// Checks an access; returns whether it is right.
    fn check(
        &mut self,
        launch: &Launch,
        at: At<'_>,
        access: &Access<'_>,
        lds_len_bytes: u64,
        scratch_len_bytes: u64,
    ) -> bool {
        let len_bytes = u64::from(access.len_bytes);
        let (mut first, mut last, mut low) = (u64::MAX, 0, 0);
        access.each_lane(|_, address| {
            first = first.min(address);
            last = last.max(address);
            low |= address;
        });
        let end = last.saturating_add(len_bytes);
        let alignment_bytes = match (access.kind, access.is_scalar) {
            (AccessKind::Atomic, _) => len_bytes.min(8),
            (_, true) if access.memory == Memory::Device => 4,
            _ => 1,
        };
        let is_aligned = !alignment_bytes.is_power_of_two() || low & (alignment_bytes - 1) == 0;
        let is_inside = match access.memory {
            Memory::Device => {
                let (own, own_end) = launch.own;
                own <= first && end <= own_end || launch.context.map.contains(&mut self.known, first, end)
            }
            Memory::Lds => end <= lds_len_bytes,
            Memory::Scratch => end <= scratch_len_bytes,
        };
        if is_aligned && is_inside {
            return true;
        }
        self.wrong(launch, at, access, alignment_bytes, lds_len_bytes, scratch_len_bytes)
    }

    /// Reports the first lane of each kind of mistake; returns whether there was none.
    #[cold]
    fn wrong(
        &mut self,
        launch: &Launch,
        at: At<'_>,
        access: &Access<'_>,
        alignment_bytes: u64,
        lds_len_bytes: u64,
        scratch_len_bytes: u64,
    ) -> bool {
        let len_bytes = u64::from(access.len_bytes);
        let mut wrong = Vec::new();
        let mut lanes = [0u32; LANES];
        access.each_lane(|lane, address| {
            lanes[lane] = 1;
            let inside = match access.memory {
                Memory::Device => {
                    let (own, own_end) = launch.own;
                    if own <= address && address < own_end {
                        None
                    } else {
                        launch
                            .context
                            .map
                            .check(address, len_bytes)
                            .filter(|wrong| {
                                // The compiler reads more words than it needs where they cannot lie on another page.
                                let begins_inside = wrong.near.as_ref().is_some_and(|near| {
                                    near.address <= address && address < near.address + near.len_bytes
                                });
                                !(access.is_scalar
                                    && access.kind == AccessKind::Load
                                    && begins_inside
                                    && wrong.kind == Kind::OutOfBounds)
                            })
                            .map(|wrong| (wrong.kind, wrong.near))
                    }
                }
                Memory::Lds => (address + len_bytes > lds_len_bytes)
                    .then(|| (Kind::OutOfBounds, Some(of_group(lds_len_bytes, "LDS")))),
                Memory::Scratch => (address + len_bytes > scratch_len_bytes)
                    .then(|| (Kind::OutOfBounds, Some(of_group(scratch_len_bytes, "scratch")))),
            };
            let is_misaligned = alignment_bytes > 1 && address % alignment_bytes != 0;
            let found = inside.or_else(|| is_misaligned.then_some((Kind::Misaligned, None)));
            if let Some((kind, near)) = found {
                wrong.push((kind, lane, address, near));
            }
        });
        let mut kinds: Vec<Kind> = wrong.iter().map(|(kind, ..)| *kind).collect();
        kinds.sort();
        kinds.dedup();
        for kind in kinds {
            let count = wrong.iter().filter(|(found, ..)| *found == kind).count() as u64;
            let Some((_, lane, address, near)) = wrong.iter().find(|(found, ..)| *found == kind) else {
                continue;
            };
            let at = At { lane: *lane, ..at };
            self.reported.insert((at.pc, kind));
            launch.found(kind, at, count, || {
                (Some(accessed(access, *address)), near.clone(), None, String::new())
            });
        }
        wrong.is_empty()
    }
}
