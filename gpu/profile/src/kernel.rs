//! A kernel and what was counted of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hipr_code_object::rules::{KernelNeeds, SIMDS_PER_CU, WAVES_PER_SIMD};
use hipr_grid::Dispatch;
use hipr_isa::Arch;
use hipr_lines::{Frame, Lines};

use crate::class::Class;
use crate::counts::Counts;
use crate::memory::cache_line_bytes;
use crate::table::Table;

/// Locks a mutex, also behind a panic: what is counted is never half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The code object that a kernel is in.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) base: u64,
    pub(crate) elf: Box<[u8]>,
}

/// What bounds the number of waves that a compute unit holds of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The waves that a compute unit holds of any kernel.
    Waves,
    /// The vector registers of a lane.
    Vgprs,
    /// The LDS of a workgroup.
    Lds,
    /// Only whole workgroups fit.
    Groups,
}

impl Limit {
    /// Returns the name: lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waves => "waves",
            Self::Vgprs => "vgprs",
            Self::Lds => "lds",
            Self::Groups => "groups",
        }
    }
}

/// The sums over a kernel's launches, and what its last one was.
#[derive(Clone, Copy, Debug, Default)]
struct Launches {
    count: u64,
    groups: u64,
    waves: u64,
    work_items: u64,
    group: [u32; 3],
    lds_bytes: u32,
    scratch_bytes: u32,
}

/// A kernel that was launched.
#[derive(Debug)]
pub(crate) struct Kernel {
    name: Arc<str>,
    arch: Arch,
    entry: u64,
    vgprs: u32,
    pub(crate) line_bytes: u64,
    module: Option<Arc<Module>>,
    launches: Mutex<Launches>,
    /// The tables that no workgroup counts in now.
    tables: Mutex<Vec<Table>>,
}

impl Kernel {
    pub(crate) fn new(dispatch: &Dispatch, module: Option<Arc<Module>>) -> Self {
        let arch = dispatch.program.arch();
        Self {
            name: Arc::clone(&dispatch.name),
            arch,
            entry: dispatch.entry,
            vgprs: dispatch.vgprs,
            line_bytes: cache_line_bytes(arch),
            module,
            launches: Mutex::default(),
            tables: Mutex::default(),
        }
    }

    /// Returns whether it has this name, and its first instruction this address.
    pub(crate) fn is(&self, name: &str, entry: u64) -> bool {
        self.entry == entry && *self.name == *name
    }

    pub(crate) fn note_launch(&self, dispatch: &Dispatch) {
        let size = &dispatch.size;
        let work_items = size.items().iter().map(|&items| u64::from(items)).product::<u64>();
        let mut launches = lock(&self.launches);
        launches.count += 1;
        launches.groups += size.groups();
        launches.waves += size.groups() * u64::from(size.waves());
        launches.work_items += work_items;
        launches.group = size.group();
        launches.lds_bytes = dispatch.lds_bytes;
        launches.scratch_bytes = dispatch.scratch_bytes;
    }

    /// Returns a table to count a workgroup in.
    pub(crate) fn take_table(&self) -> Table {
        lock(&self.tables).pop().unwrap_or_default()
    }

    pub(crate) fn give_table(&self, table: Table) {
        lock(&self.tables).push(table);
    }

    /// Returns what was counted.
    pub(crate) fn profile(&self) -> KernelProfile {
        let launches = *lock(&self.launches);
        let mut by_pc: BTreeMap<u64, (&'static str, Class, Counts)> = BTreeMap::new();
        for table in &*lock(&self.tables) {
            table.each(|pc, row| {
                let new = || (row.mnemonic, row.class, Counts::default());
                by_pc.entry(pc).or_insert_with(new).2.add(&row.counts);
            });
        }
        let lines = self.module.as_ref().map(|module| (module.base, Lines::new(&module.elf)));
        let frames = |pc: u64| {
            lines.as_ref().map_or_else(Vec::new, |(base, lines)| lines.frames(pc.wrapping_sub(*base)))
        };
        let mut total = Counts::default();
        let mut instructions = Vec::with_capacity(by_pc.len());
        for (pc, (mnemonic, class, counts)) in by_pc {
            total.add(&counts);
            let offset_bytes = pc.wrapping_sub(self.entry) as i64;
            instructions.push(Instruction { offset_bytes, mnemonic, class, counts, frames: frames(pc) });
        }
        let (groups_per_cu, limit) = self.occupancy(&launches);
        let waves_per_group = launches.group.iter().product::<u32>().div_ceil(64).max(1);
        KernelProfile {
            name: self.name.to_string(),
            arch: self.arch,
            launches: launches.count,
            groups: launches.groups,
            waves: launches.waves,
            work_items: launches.work_items,
            group: launches.group,
            vgprs: self.vgprs,
            lds_bytes: launches.lds_bytes,
            scratch_bytes: launches.scratch_bytes,
            waves_per_cu: groups_per_cu * waves_per_group,
            limit,
            total,
            instructions,
        }
    }

    /// Returns how many workgroups a compute unit holds, and what bounds that.
    fn occupancy(&self, launches: &Launches) -> (u32, Limit) {
        let block_size = launches.group.iter().product::<u32>().max(1);
        let groups = |vgprs, lds_bytes| {
            let (named_vgprs, private_bytes, max_block_size) = (vgprs, launches.scratch_bytes, block_size);
            KernelNeeds { named_vgprs, vgprs, lds_bytes, private_bytes, max_block_size }
                .groups_per_cu(block_size, 0)
        };
        let all = groups(self.vgprs, launches.lds_bytes);
        let limit = match () {
            () if groups(self.vgprs, 0) > all => Limit::Lds,
            () if groups(1, launches.lds_bytes) > all => Limit::Vgprs,
            () if all * block_size.div_ceil(64) == WAVES_PER_SIMD * SIMDS_PER_CU => Limit::Waves,
            () => Limit::Groups,
        };
        (all, limit)
    }
}

/// An instruction of a kernel, or of a function that it calls.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// The distance in bytes from the kernel's first instruction.
    pub offset_bytes: i64,
    /// The mnemonic.
    pub mnemonic: &'static str,
    /// Its kind.
    pub class: Class,
    /// What was counted of it.
    pub counts: Counts,
    /// Where it is in the source, the innermost function first; empty without debug information.
    pub frames: Vec<Frame>,
}

/// What was counted of a kernel.
#[derive(Clone, Debug)]
pub struct KernelProfile {
    /// The kernel's name, as the code object has it.
    pub name: String,
    /// The GPU that was emulated.
    pub arch: Arch,
    /// How often it was launched.
    pub launches: u64,
    /// Workgroups of all launches.
    pub groups: u64,
    /// Waves of whole workgroups of all launches.
    pub waves: u64,
    /// Work-items of all launches.
    pub work_items: u64,
    /// The size of a workgroup of the last launch.
    pub group: [u32; 3],
    /// Vector registers of a lane.
    pub vgprs: u32,
    /// LDS of a workgroup of the last launch, in bytes.
    pub lds_bytes: u32,
    /// Scratch of a lane, in bytes.
    pub scratch_bytes: u32,
    /// The waves that a compute unit holds at a time, of 32.
    pub waves_per_cu: u32,
    /// What bounds them.
    pub limit: Limit,
    /// The sum over all instructions.
    pub total: Counts,
    /// The instructions that were executed, by their address.
    pub instructions: Vec<Instruction>,
}
