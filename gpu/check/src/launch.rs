//! A launch that is executed under the checkers.

use std::collections::BTreeSet;
use std::sync::Arc;

use hipr_grid::{Dispatch, Failure, GroupStart};
use hipr_isa::Arch;
use hipr_isa::fault::Cause;
use hipr_isa::watch::{Access as Accesses, Kind as AccessKind, Memory};
use hipr_sim::watch::Order;

use crate::context::Context;
use crate::finding::{Accessed, Finding, Kind, Near, Other, Place, Tool};
use crate::kernel::{At, Kernel};
use crate::lock::{Lock, lock};
use crate::race::clock::Grid;
use crate::race::doubt::{Doubts, Race};
use crate::race::shadow::{Access, Atomicity};
use crate::race::transfer::NO_ORDER;
use crate::report::Report;

/// What is said of two stores of one instruction.
const ONE_INSTRUCTION: &str = "two threads of one wave store different values with one instruction";

/// A wave that has not ended when its launch was given up.
pub(crate) struct GivenUp {
    pub(crate) start: GroupStart,
    pub(crate) wave: usize,
    pub(crate) lane: usize,
    /// Its last access, and the calls around it.
    pub(crate) pc: u64,
    pub(crate) callers: Vec<u64>,
    pub(crate) accessed: Option<Accessed>,
}

/// What all workgroups of a launch have in common.
pub(crate) struct Launch {
    pub(crate) context: Arc<Context>,
    pub(crate) tools: BTreeSet<Tool>,
    pub(crate) report: Arc<Report>,
    pub(crate) kernel: Arc<Kernel>,
    /// Its place among all work of the context.
    pub(crate) order: Option<Order>,
    /// The addresses of the launch's own memory: arguments and packet.
    pub(crate) own: (u64, u64),
    /// What is known of the order of its workgroups.
    pub(crate) grid: Grid,
    /// Races that may be meant.
    pub(crate) doubts: Doubts,
    /// Waves that were given up.
    pub(crate) given_up: Lock<Vec<GivenUp>>,
    arch: Arch,
}

impl Launch {
    pub(crate) fn new(
        context: Arc<Context>,
        tools: BTreeSet<Tool>,
        report: Arc<Report>,
        dispatch: &Dispatch,
        order: Option<Order>,
    ) -> Self {
        let own = (dispatch.memory.base(), dispatch.memory.base() + dispatch.memory.len_bytes());
        let number = order.as_ref().map_or(1, |order| order.number as u32);
        let kernel = Arc::new(Kernel::new(dispatch, context.map.module(dispatch.entry), number));
        Self {
            context,
            tools,
            report,
            kernel,
            order,
            own,
            grid: Grid::default(),
            doubts: Doubts::default(),
            given_up: Lock::default(),
            arch: dispatch.program.arch(),
        }
    }

    /// Returns whether atomics release what their wave has stored, without a fence: on the gfx90a the memory of a device has one cache.
    pub(crate) fn atomics_release(&self) -> bool {
        self.arch == Arch::Gfx90a
    }

    /// Returns whether stores do not say if they are atomic, as on the gfx90a.
    pub(crate) fn stores_do_not_say(&self) -> bool {
        self.arch == Arch::Gfx90a
    }

    /// Returns whether all of the launch or transfer of this number comes before this launch.
    pub(crate) fn is_behind(&self, number: u32) -> bool {
        let Some((order, stream)) = self.order.as_ref().zip(self.context.stream(number)) else { return true };
        order.is_behind(stream, number.into())
    }

    /// Returns the place of an access that was noted, of this launch or one before it, if that is still known.
    pub(crate) fn place_of_old(&self, old: &Access) -> Option<Place> {
        if old.launch == self.kernel.launch {
            return Some(self.kernel.place_of_old(old));
        }
        self.context.kernel(old.launch).map(|kernel| kernel.place_of_old(old))
    }

    /// Returns the allocation or variable at an address of device memory.
    pub(crate) fn near(&self, memory: Memory, address: u64) -> Option<Near> {
        (memory == Memory::Device).then(|| self.context.map.at(address)).flatten()
    }

    /// Reports what was found at an instruction.
    pub(crate) fn found(
        &self,
        kind: Kind,
        at: At<'_>,
        count: u64,
        more: impl FnOnce() -> (Option<Accessed>, Option<Near>, Option<Other>, String),
    ) {
        self.report.add((kind, self.context.id, at.pc), count, || {
            let (accessed, near, other, note) = more();
            Finding { kind, place: Some(self.kernel.place_of(at)), accessed, near, other, note, count }
        });
    }

    /// Reports a race, unless it is one of AMD's device library: the host puts in order what waves do with the memory that only they know of.
    pub(crate) fn raced(&self, race: &Race) {
        let &Race { kind, pc, ref callers, start, wave, lane, accessed, ref old, is_old_store } = race;
        if self.context.map.is_of_kernels(accessed.address) {
            return;
        }
        self.found(kind, At { pc, callers, start, wave, lane }, 1, || {
            let other_kind = match (old.atomicity == Atomicity::Atomic && is_old_store, is_old_store) {
                (true, _) => AccessKind::Atomic,
                (_, true) => AccessKind::Store,
                _ => AccessKind::Load,
            };
            // What one wave does with two instructions is in order.
            let is_one_instruction = old.launch == self.kernel.launch
                && (u64::from(old.group), usize::from(old.wave)) == (start.number, wave);
            let (place, note) = match kind {
                _ if is_one_instruction => {
                    let other = At { pc, callers, start, wave, lane: old.lane.into() };
                    (Some(self.kernel.place_of(other)), ONE_INSTRUCTION)
                }
                Kind::StreamRace => (self.place_of_old(old), NO_ORDER),
                _ => (self.place_of_old(old), ""),
            };
            let other = Other { place, kind: other_kind };
            (Some(accessed), self.near(accessed.memory, accessed.address), Some(other), note.to_owned())
        });
    }

    /// Reports what was no mistake as long as it could still be meant.
    pub(crate) fn settle(&self) {
        self.doubts.take().iter().for_each(|race| self.raced(race));
    }

    /// Reports why the kernel was ended, as far as that is a mistake that nothing else reports.
    pub(crate) fn failed(&self, failure: &Failure) {
        let Failure::Fault(fault) = failure else { return };
        let is_wait = matches!(fault.cause, Cause::TimeOut(_) | Cause::InstructionLimit(_));
        if !is_wait || !self.tools.contains(&Tool::Sync) {
            return;
        }
        self.report.add((Kind::EndlessWait, self.context.id, fault.pc), 1, || {
            let given_up = lock(&self.given_up);
            let waits = given_up.iter().find(|waits| waits.pc == fault.pc).or(given_up.first());
            let blocks: BTreeSet<_> = given_up.iter().map(|waits| waits.start.number).collect();
            let note = format!(
                "the kernel was {}; {} waves of {} blocks had not ended",
                fault.cause,
                given_up.len(),
                blocks.len()
            );
            let start = GroupStart { number: 0, ids: [0; 3], size: [1; 3], waves: 0 };
            let at = At { pc: fault.pc, callers: &[], start, wave: 0, lane: 0 };
            let at = waits.map_or(at, |waits| At {
                pc: waits.pc,
                callers: &waits.callers,
                start: waits.start,
                wave: waits.wave,
                lane: waits.lane,
            });
            let accessed = waits.and_then(|waits| waits.accessed);
            let near = accessed.and_then(|accessed| self.near(accessed.memory, accessed.address));
            let place = Some(self.kernel.place_of(at));
            Finding { kind: Kind::EndlessWait, place, accessed, near, other: None, note, count: 1 }
        });
    }
}

/// Returns what a lane has accessed.
pub(crate) fn accessed(access: &Accesses<'_>, address: u64) -> Accessed {
    Accessed { kind: access.kind, memory: access.memory, address, len_bytes: access.len_bytes }
}
