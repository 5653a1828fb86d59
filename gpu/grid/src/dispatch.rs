//! What is executed: a kernel, the size of its grid, and how the hardware starts the waves.

use std::sync::Arc;

use hipr_code_object::KernelDescriptor;
use hipr_isa::aperture::PRIVATE_BUFFER;
use hipr_isa::gws::WaveSync;
use hipr_isa::mem::Block;
use hipr_isa::step::Program;
use hipr_isa::wave::{Mode, Wave};

use crate::model::{LDS_BYTES, THREADS_PER_GROUP, WAVE_LANES};
use crate::residents::Needs;

/// A workgroup that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStart {
    /// Its number in the grid; x counts fastest.
    pub number: u64,
    /// Its place in the grid: `blockIdx`.
    pub ids: [u32; 3],
    /// Its own work-items in x, y and z.
    pub size: [u32; 3],
    /// The number of its waves.
    pub waves: u32,
}

/// The size of a grid: work-items, and how they are divided into workgroups. The last group of a dimension has the work-items that are
/// left, which may be fewer than those of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GridSize {
    items: [u32; 3],
    group: [u32; 3],
    /// Workgroups of each dimension.
    groups: [u32; 3],
}

impl GridSize {
    /// Returns the size of a grid of `items` work-items in x, y and z, whose workgroups have `group` of them; `None` if one of these is
    /// 0, or if a workgroup would have more than [`THREADS_PER_GROUP`] work-items.
    pub fn new(items: [u32; 3], group: [u32; 3]) -> Option<Self> {
        let is_group =
            volume(group).is_some_and(|threads| (1..=u64::from(THREADS_PER_GROUP)).contains(&threads));
        if !is_group || items.contains(&0) {
            return None;
        }
        Some(Self {
            items,
            group,
            groups: std::array::from_fn(|dimension| items[dimension].div_ceil(group[dimension])),
        })
    }

    /// Returns the work-items in x, y and z.
    pub fn items(&self) -> [u32; 3] {
        self.items
    }

    /// Returns the work-items of a whole workgroup in x, y and z.
    pub fn group(&self) -> [u32; 3] {
        self.group
    }

    /// Returns the number of workgroups; `u64::MAX` if there are more.
    pub fn groups(&self) -> u64 {
        volume(self.groups).unwrap_or(u64::MAX)
    }

    /// Returns the number of waves of a whole workgroup.
    pub fn waves(&self) -> u32 {
        waves(self.group)
    }

    /// Returns workgroup number `number`; x counts fastest.
    fn workgroup(&self, number: u64) -> Workgroup {
        let [nx, ny, _] = self.groups.map(u64::from);
        let ids = [number % nx, number / nx % ny, number / nx / ny].map(|id| id as u32);
        let size = std::array::from_fn(|dimension| {
            let whole = self.group[dimension];
            whole.min(self.items[dimension].saturating_sub(ids[dimension].saturating_mul(whole)))
        });
        Workgroup { number, ids, size }
    }
}

/// Returns the product of three sizes.
fn volume(size: [u32; 3]) -> Option<u64> {
    size.iter().try_fold(1u64, |product, &n| product.checked_mul(u64::from(n)))
}

/// Returns the number of waves of a workgroup with at most [`THREADS_PER_GROUP`] work-items.
fn waves(size: [u32; 3]) -> u32 {
    threads(size).div_ceil(WAVE_LANES)
}

fn threads(size: [u32; 3]) -> u32 {
    size.iter().product()
}

/// A workgroup of a grid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workgroup {
    number: u64,
    ids: [u32; 3],
    /// Its own work-items in x, y and z.
    size: [u32; 3],
}

impl Workgroup {
    /// Returns what is told of it to who watches.
    pub(crate) fn start(&self) -> GroupStart {
        GroupStart { number: self.number, ids: self.ids, size: self.size, waves: self.waves() }
    }

    /// Returns the number of its waves.
    pub(crate) fn waves(&self) -> u32 {
        waves(self.size)
    }
}

/// A kernel and its grid: what all waves have in common.
#[derive(Debug)]
pub struct Dispatch {
    /// Name of the kernel, for errors and the log.
    pub name: Arc<str>,
    /// The code that contains the first instruction.
    pub program: Arc<Program>,
    /// Address of the first instruction.
    pub entry: u64,
    /// The kernel's descriptor: which registers a wave begins with.
    pub descriptor: KernelDescriptor,
    /// Number of vector registers of a lane, AccVGPRs among them: [`KernelDescriptor::vgprs`], or more.
    pub vgprs: u32,
    /// The size of the grid.
    pub size: GridSize,
    /// LDS of a workgroup, in bytes; at most [`LDS_BYTES`].
    pub lds_bytes: u32,
    /// Scratch of a lane, in bytes; at most [`SCRATCH_MAX_BYTES`](crate::model::SCRATCH_MAX_BYTES).
    pub scratch_bytes: u32,
    /// Number of workgroups that the device holds at a time, and at most begins before others have ended; at least 1.
    pub resident_groups: u32,
    /// The block in which its memory is looked for where the host's page table has none: the kernarg segment, say.
    pub memory: Arc<Block>,
    /// What the first scalar registers hold, as [`user_sgprs`] returns it.
    pub user_sgprs: Vec<u32>,
    /// The barriers and semaphores between the workgroups of a cooperative launch, whose groups are all begun before one ends.
    pub wave_sync: Option<Arc<WaveSync>>,
}

impl Dispatch {
    /// Returns the host memory that one of its workgroups takes while it is executed.
    pub(crate) fn group_needs(&self) -> Needs {
        let registers = size_of::<Wave>() as u64 + Wave::rows_bytes(self.vgprs as usize);
        let scratch = u64::from(self.scratch_bytes) * u64::from(WAVE_LANES);
        let waves = u64::from(self.size.waves());
        Needs { chip_bytes: waves * registers + u64::from(LDS_BYTES), scratch_bytes: waves * scratch }
    }

    /// Returns workgroup number `number`.
    pub(crate) fn workgroup(&self, number: u64) -> Workgroup {
        self.size.workgroup(number)
    }

    /// Creates a wave with zeroed registers.
    pub(crate) fn new_wave(&self) -> Wave {
        Wave::new(self.vgprs as usize, self.descriptor.accum_offset() as usize)
    }

    /// Makes `wave` wave `index` of `group`, as the hardware starts it: user SGPRs, then the group's id in the dimensions that the kernel
    /// asks for; packed work-item ids in v0; lanes beyond the group's end switched off. The other vector registers stay as they are: on
    /// the hardware, too, they hold what a wave before has left.
    pub(crate) fn start(&self, wave: &mut Wave, group: &Workgroup, index: u32) {
        let descriptor = &self.descriptor;
        wave.sgpr.fill(0);
        wave.scc = false;
        wave.mode = Mode::from_rsrc1(descriptor.rsrc1);
        wave.pc = self.entry;
        wave.hardware_id = (group.number as u32 & 0xffff) | (index << 16);
        for (register, &value) in wave.sgpr.iter_mut().zip(&self.user_sgprs) {
            *register = value;
        }
        let wanted = [descriptor.workgroup_id_x(), descriptor.workgroup_id_y(), descriptor.workgroup_id_z()];
        let ids = group.ids.into_iter().zip(wanted).filter_map(|(id, wanted)| wanted.then_some(id));
        for (register, id) in wave.sgpr.iter_mut().skip(descriptor.user_sgprs() as usize).zip(ids) {
            *register = id;
        }
        let first = index * WAVE_LANES;
        let lanes = threads(group.size).saturating_sub(first).min(WAVE_LANES);
        wave.set_exec(u64::MAX >> (64 - lanes.clamp(1, 64)));
        let [bx, by, _] = group.size;
        let [mut x, mut y, mut z] = [first % bx, first / bx % by, first / bx / by];
        if x + WAVE_LANES <= bx {
            for (id, x) in wave.row_mut(0).iter_mut().zip(x..) {
                *id = x | y << 10 | z << 20;
            }
            return;
        }
        for id in wave.row_mut(0).iter_mut().take(lanes as usize) {
            *id = x | y << 10 | z << 20;
            x += 1;
            if x == bx {
                (x, y) = (0, y + 1);
            }
            if y == by {
                (y, z) = (0, z + 1);
            }
        }
    }
}

/// What a kernel's first registers point to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Address of the AQL packet of the dispatch.
    pub dispatch_packet: u64,
    /// Address of the queue, `amd_queue_t`.
    pub queue: u64,
    /// Address of the kernarg segment.
    pub kernarg: u64,
    /// The number of the dispatch in its queue.
    pub dispatch_id: u64,
}

/// Returns the values of the user SGPRs that the kernel's properties request, in their order (LLVM's AMDGPU usage guide, "Initial Kernel
/// Execution State"). `scratch_bytes` is a lane's. Preloaded kernarg dwords stay 0: such code starts with a prologue that loads them.
pub fn user_sgprs(descriptor: &KernelDescriptor, scratch_bytes: u32, addresses: &Addresses) -> Vec<u32> {
    let pair = |value: u64| [value as u32, (value >> 32) as u32];
    let mut sgprs = Vec::with_capacity(16);
    let mut add = |wanted: bool, values: &[u32]| {
        if wanted {
            sgprs.extend_from_slice(values);
        }
    };
    add(descriptor.has_private_segment_buffer(), &private_segment_buffer(scratch_bytes));
    add(descriptor.has_dispatch_ptr(), &pair(addresses.dispatch_packet));
    add(descriptor.has_queue_ptr(), &pair(addresses.queue));
    add(descriptor.has_kernarg_segment_ptr(), &pair(addresses.kernarg));
    add(descriptor.has_dispatch_id(), &pair(addresses.dispatch_id));
    add(descriptor.has_flat_scratch_init(), &[0; 2]);
    add(descriptor.has_private_segment_size(), &[scratch_bytes]);
    sgprs
}

/// Returns the buffer resource of scratch: swizzled, so that lanes' dwords are adjacent, with the lane's number as index.
/// (LLVM's AMDGPU usage guide, "Private Segment Buffer".)
fn private_segment_buffer(scratch_bytes: u32) -> [u32; 4] {
    const SWIZZLE: u32 = 1 << 31;
    const DWORD_ELEMENTS: u32 = 1 << 19;
    const STRIDE_64: u32 = 3 << 21;
    const ADD_LANE: u32 = 1 << 23;
    let bytes = scratch_bytes.saturating_mul(WAVE_LANES);
    [
        PRIVATE_BUFFER as u32,
        (PRIVATE_BUFFER >> 32) as u32 | SWIZZLE,
        bytes,
        DWORD_ELEMENTS | STRIDE_64 | ADD_LANE,
    ]
}
