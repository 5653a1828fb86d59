//! Counts the instructions of one workgroup.

use std::sync::Arc;

use hipr_grid::{Dispatch, GridWatch, GroupStart, GroupWatch};
use hipr_isa::watch::{Access, Kind, Memory, Step, Watch};
use hipr_isa::wave::Wave;

use crate::class::{Class, Flops};
use crate::counts::Counts;
use crate::kernel::Kernel;
use crate::memory::{cache_lines, lds_cycles};
use crate::table::Table;

/// Makes what counts the workgroups of a launch.
pub(crate) struct Groups(pub(crate) Arc<Kernel>);

impl GridWatch for Groups {
    fn group(&self, _dispatch: &Dispatch, start: &GroupStart) -> Box<dyn GroupWatch> {
        let table = self.0.take_table();
        let before = vec![None; start.waves as usize];
        Box::new(Group { kernel: Arc::clone(&self.0), table, wave: 0, before })
    }
}

struct Group {
    kernel: Arc<Kernel>,
    table: Table,
    /// The wave whose instructions come next.
    wave: usize,
    /// Address and active lanes of each wave's last instruction.
    before: Vec<Option<(u64, u64)>>,
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kernel.give_table(std::mem::take(&mut self.table));
    }
}

impl Watch for Group {
    fn instruction(&mut self, wave: &Wave, step: &mut Step<'_, '_>) {
        let exec = wave.exec();
        if let Some(before) = self.before.get_mut(self.wave) {
            if let Some((pc, lanes)) = *before
                && exec != lanes
                && exec != 0
                && exec & !lanes == 0
            {
                self.table.row(pc).counts.splits += 1;
            }
            *before = Some((wave.pc, exec));
        }
        let line_bytes = self.kernel.line_bytes;
        let row = self.table.row(wave.pc);
        if row.mnemonic.is_empty() {
            row.mnemonic = step.mnemonic();
            row.class = Class::of(row.mnemonic);
            row.flops = Flops::of(row.mnemonic);
        }
        let counts = &mut row.counts;
        counts.instructions[row.class as usize] += 1;
        if step.is_vector() {
            counts.vector_instructions += 1;
            counts.lanes += u64::from(exec.count_ones());
        }
        if let Some(Flops { precision, count, is_wave }) = row.flops {
            let times = if is_wave { 1 } else { u64::from(exec.count_ones()) };
            let flops = u64::from(count) * times;
            counts.flops[precision as usize] += flops;
            counts.matrix_flops[precision as usize] += if is_wave { flops } else { 0 };
        }
        if step.has_accesses() {
            step.accesses(wave, &mut |access| note(counts, access, line_bytes));
        }
    }
}

/// Notes the accesses of an instruction's lanes to one memory.
fn note(counts: &mut Counts, access: &Access<'_>, line_bytes: u64) {
    let bytes = u64::from(access.lanes.count_ones()) * u64::from(access.len_bytes);
    match access.memory {
        Memory::Device if access.is_scalar => counts.scalar_bytes += bytes,
        Memory::Device => {
            let sum = match access.kind {
                Kind::Load => &mut counts.loaded_bytes,
                Kind::Store => &mut counts.stored_bytes,
                Kind::Atomic => &mut counts.atomic_bytes,
            };
            *sum += bytes;
            counts.memory_accesses += 1;
            counts.cache_lines += cache_lines(access, line_bytes);
        }
        Memory::Lds => {
            let (cycles, conflicts) = lds_cycles(access);
            counts.lds_bytes += bytes;
            counts.lds_cycles += cycles;
            counts.lds_conflicts += conflicts;
        }
        Memory::Scratch => counts.scratch_bytes += bytes,
    }
}

impl GroupWatch for Group {
    fn turn(&mut self, wave: u32) {
        self.wave = wave as usize;
    }

    fn at_barrier(&mut self, _wave: u32, _state: &Wave) {}

    fn barrier(&mut self) {}

    fn wave_ended(&mut self, _wave: u32) {}

    fn ended(&mut self, _is_whole: bool) {}

    fn as_watch(&mut self) -> &mut dyn Watch {
        self
    }
}
