//! A kernel that is executed under the checkers.

use std::collections::BTreeSet;
use std::sync::Arc;

use hipr_grid::{Dispatch, Failure, GridWatch, GroupStart, GroupWatch};
use hipr_isa::Arch;
use hipr_isa::fault::Cause;
use hipr_isa::watch::{Access as Accesses, Memory};

use crate::checker::Context;
use crate::finding::{Accessed, Finding, Kind, Near, Other, Place, Tool};
use crate::group::Group;
use crate::module::Module;
use crate::race::order::Grid;
use crate::race::shadow::Access;
use crate::report::Report;

/// What all workgroups of a kernel have in common.
pub(crate) struct Launch {
    pub(crate) context: Arc<Context>,
    pub(crate) tools: BTreeSet<Tool>,
    pub(crate) report: Arc<Report>,
    /// The kernel's name.
    name: Arc<str>,
    /// The address of its first instruction.
    pub(crate) entry: u64,
    /// Its code, if it is known.
    module: Option<Arc<Module>>,
    /// The addresses of the launch's own memory: arguments and packet.
    pub(crate) own: (u64, u64),
    /// The number of the launch on its device, from 1 on.
    pub(crate) number: u32,
    /// Workgroups of each dimension.
    groups: [u32; 3],
    /// What is known of the order of its workgroups.
    pub(crate) order: Grid,
    /// Whether atomics release what their wave has stored, without a fence: on the gfx90a the memory of a device has one cache.
    pub(crate) atomics_release: bool,
}

/// Where in a grid something was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub(crate) pc: u64,
    pub(crate) start: GroupStart,
    pub(crate) wave: usize,
    pub(crate) lane: usize,
}

impl At {
    /// Returns the thread's place in its block.
    fn thread(&self) -> [u32; 3] {
        let [x, y, _] = self.start.size.map(|size| size.max(1) as usize);
        let number = self.wave * 64 + self.lane;
        [number % x, number / x % y, number / x / y].map(|id| id as u32)
    }
}

impl Launch {
    pub(crate) fn new(
        context: Arc<Context>,
        tools: BTreeSet<Tool>,
        report: Arc<Report>,
        dispatch: &Dispatch,
        number: u32,
    ) -> Self {
        let own = (dispatch.memory.base(), dispatch.memory.base() + dispatch.memory.len_bytes());
        let module = context.map.module(dispatch.entry);
        let (name, entry) = (Arc::clone(&dispatch.name), dispatch.entry);
        let atomics_release = dispatch.program.arch() == Arch::Gfx90a;
        let (items, group) = (dispatch.size.items(), dispatch.size.group());
        let groups = std::array::from_fn(|dimension| items[dimension].div_ceil(group[dimension].max(1)));
        let order = Grid::default();
        Self { context, tools, report, name, entry, module, own, number, groups, order, atomics_release }
    }

    /// Returns whether all of the launch or transfer of this number comes before this launch.
    pub(crate) fn is_behind(&self, _number: u32) -> bool {
        true
    }

    /// Returns the allocation or variable at an address of device memory.
    pub(crate) fn near(&self, memory: Memory, address: u64) -> Option<Near> {
        (memory == Memory::Device).then(|| self.context.map.at(address)).flatten()
    }

    /// Returns the place of a thread's instruction.
    pub(crate) fn place_of(&self, at: At) -> Place {
        self.place(at.pc, Some(at.start.ids), Some(at.thread()))
    }

    /// Returns the place of an access that was noted. `start` is a workgroup of the same grid.
    pub(crate) fn place_of_old(&self, old: &Access, start: GroupStart) -> Option<Place> {
        if old.launch != self.number {
            return None;
        }
        let pc = self.entry.wrapping_add((i64::from(old.offset_words) * 4) as u64);
        let ids = self.ids(old.group);
        let start = GroupStart { ids, number: old.group.into(), ..start };
        Some(self.place_of(At { pc, start, wave: old.wave.into(), lane: old.lane.into() }))
    }

    /// Returns the place of a workgroup in the grid.
    fn ids(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.groups.map(|groups| groups.max(1));
        [number % x, number / x % y, number / x / y]
    }

    /// Returns the place of an instruction, of a thread if it is known.
    pub(crate) fn place(&self, pc: u64, block: Option<[u32; 3]>, thread: Option<[u32; 3]>) -> Place {
        Place {
            kernel: self.name.to_string(),
            offset_bytes: pc.wrapping_sub(self.entry) as i64,
            frames: self.module.as_ref().map(|module| module.frames(pc)).unwrap_or_default(),
            block,
            thread,
        }
    }

    /// Reports what was found at an instruction.
    pub(crate) fn found(
        &self,
        kind: Kind,
        at: At,
        count: u64,
        more: impl FnOnce() -> (Option<Accessed>, Option<Near>, Option<Other>, String),
    ) {
        self.report.add((kind, self.context.id, at.pc), count, || {
            let (accessed, near, other, note) = more();
            let place = Some(self.place_of(at));
            Finding { kind, place, accessed, near, other, note, count }
        });
    }
}

impl Launch {
    /// Reports why the kernel was ended, as far as that is a mistake that nothing else reports.
    pub(crate) fn failed(&self, failure: &Failure) {
        let Failure::Fault(fault) = failure else { return };
        let wait = matches!(fault.cause, Cause::TimeOut(_) | Cause::InstructionLimit(_));
        if !wait || !self.tools.contains(&Tool::Sync) {
            return;
        }
        self.report.add((Kind::EndlessWait, self.context.id, fault.pc), 1, || {
            let place = Some(self.place(fault.pc, None, None));
            let note = format!("the kernel was {}", fault.cause);
            Finding {
                kind: Kind::EndlessWait,
                place,
                accessed: None,
                near: None,
                other: None,
                note,
                count: 1,
            }
        });
    }
}

/// Returns what a lane has accessed.
pub(crate) fn accessed(access: &Accesses<'_>, address: u64) -> Accessed {
    Accessed { kind: access.kind, memory: access.memory, address, len_bytes: access.len_bytes }
}

/// Makes the checkers of a kernel's workgroups.
pub(crate) struct Groups(pub(crate) Arc<Launch>);

impl GridWatch for Groups {
    fn group(&self, dispatch: &Dispatch, start: &GroupStart) -> Box<dyn GroupWatch> {
        Box::new(Group::new(Arc::clone(&self.0), dispatch, *start))
    }
}
