//! A kernel of one launch, as findings name it.

use std::sync::Arc;

use hipr_grid::{Dispatch, GroupStart};

use crate::finding::Place;
use crate::module::Module;
use crate::race::shadow::Access;

/// Where in a grid something was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(crate) pc: u64,
    /// The addresses to which the functions that it is in return, the innermost last.
    pub(crate) callers: &'a [u64],
    pub(crate) start: GroupStart,
    pub(crate) wave: usize,
    pub(crate) lane: usize,
}

impl At<'_> {
    /// Returns the thread's place in its block.
    fn thread(&self) -> [u32; 3] {
        let [x, y, _] = self.start.size.map(|size| size.max(1) as usize);
        let number = self.wave * 64 + self.lane;
        [number % x, number / x % y, number / x / y].map(|id| id as u32)
    }
}

/// A kernel of one launch.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// The number of the launch in its context, from 1 on.
    pub(crate) launch: u32,
    /// The kernel's name.
    name: Arc<str>,
    /// The address of its first instruction.
    pub(crate) entry: u64,
    /// Its code, if it is known.
    module: Option<Arc<Module>>,
    /// The size of a whole workgroup.
    group: [u32; 3],
    /// Workgroups of each dimension.
    groups: [u32; 3],
}

impl Kernel {
    pub(crate) fn new(dispatch: &Dispatch, module: Option<Arc<Module>>, launch: u32) -> Self {
        let (items, group) = (dispatch.size.items(), dispatch.size.group());
        let groups = std::array::from_fn(|dimension| items[dimension].div_ceil(group[dimension].max(1)));
        Self { launch, name: Arc::clone(&dispatch.name), entry: dispatch.entry, module, group, groups }
    }

    /// Returns the place of an instruction, of a thread if it is known.
    fn place(&self, pc: u64, callers: &[u64], block: Option<[u32; 3]>, thread: Option<[u32; 3]>) -> Place {
        let module = self.module.as_ref();
        let frames = |pc| module.map(|module| module.frames(pc)).unwrap_or_default();
        // A call is before the address that it returns to.
        let calls = callers.iter().rev().map(|back| back.wrapping_sub(4));
        let frames = [pc].into_iter().chain(calls).flat_map(frames).collect();
        Place {
            kernel: self.name.to_string(),
            offset_bytes: pc.wrapping_sub(self.entry) as i64,
            frames,
            block,
            thread,
        }
    }

    /// Returns the place of a thread's instruction.
    pub(crate) fn place_of(&self, at: At<'_>) -> Place {
        self.place(at.pc, at.callers, Some(at.start.ids), Some(at.thread()))
    }

    /// Returns the address of the instruction of an access that was noted.
    pub(crate) fn pc_of(&self, old: &Access) -> u64 {
        self.entry.wrapping_add((i64::from(old.offset_words) * 4) as u64)
    }

    /// Returns the place of an access of this launch that was noted.
    pub(crate) fn place_of_old(&self, old: &Access) -> Place {
        let [x, y, _] = self.groups.map(|groups| groups.max(1));
        let ids = [old.group % x, old.group / x % y, old.group / x / y];
        let start = GroupStart { number: old.group.into(), ids, size: self.group, waves: 0 };
        self.place_of(At {
            pc: self.pc_of(old),
            callers: &[],
            start,
            wave: old.wave.into(),
            lane: old.lane.into(),
        })
    }
}
