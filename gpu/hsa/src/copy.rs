//! Copies: by the calling thread, or as work of the executors that begins after signals and completes one.
//!
//! Source and destination may be any memory that the program has. What kernels may access at the same time is copied without torn words;
//! what only the program has is copied by the system, which finds that memory is not there without ending the process. Overlapping ranges
//! are copied as if all bytes were read first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use hipr_grid::{Job, Owner, lock};
use hipr_isa::mem::Route;

use crate::clock::now;
use crate::facts::AgentIndex;
use crate::host_memory::{self, NoMemory};
use crate::memory::{Memory, Place};
use crate::pointer::{In, Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, Dim3, PitchedPtr, ProfilingTime, Signal};
use crate::{signal, signal_op, watch};

/// Bytes of a turn, some hundred microseconds.
const TURN_BYTES: u64 = 4 << 20;
/// Rows of a turn, however short they are.
const TURN_ROWS: u64 = 1024;
/// Bytes that are read before they are written, where they cannot go straight from one block to another.
const PIECE_BYTES: u64 = 256 << 10;

/// Rows of bytes that are copied; a plain copy has one row.
#[derive(Clone, Copy, Debug)]
struct Rows {
    to: u64,
    from: u64,
    row_bytes: u64,
    /// Rows of a layer, and layers.
    counts: [u64; 2],
    /// Bytes from row to row and from layer to layer, of the destination and of the source.
    steps: [[u64; 2]; 2],
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    row: u64,
    /// Bytes of the row.
    done: u64,
    start_ns: u64,
}

impl Rows {
    fn one(to: u64, from: u64, row_bytes: u64) -> Self {
        Self { to, from, row_bytes, counts: [1, 1], steps: [[0; 2]; 2] }
    }

    /// Returns the first address and the length in bytes of all that the rows touch, of the destination and of the source; `None` if they
    /// wrap around.
    fn spans(&self) -> Option<[(u64, u64); 2]> {
        let span = |base: u64, steps: [u64; 2]| {
            let rows = (self.counts[0] - 1).checked_mul(steps[0])?;
            let layers = (self.counts[1] - 1).checked_mul(steps[1])?;
            let len_bytes = rows.checked_add(layers)?.checked_add(self.row_bytes)?;
            base.checked_add(len_bytes)?;
            Some((base, len_bytes))
        };
        Some([span(self.to, self.steps[0])?, span(self.from, self.steps[1])?])
    }

    /// Returns where a row is written to and read from.
    fn row(&self, number: u64) -> [u64; 2] {
        let (row, layer) = (number % self.counts[0], number / self.counts[0]);
        let at = |base: u64, steps: [u64; 2]| base + row * steps[0] + layer * steps[1];
        [at(self.to, self.steps[0]), at(self.from, self.steps[1])]
    }

    /// Copies some bytes more; returns whether there are others left.
    fn advance(&self, memory: &Memory, progress: &mut Progress) -> Result<bool, NoMemory> {
        let (mut bytes, mut rows) = (TURN_BYTES, TURN_ROWS);
        let count = self.counts[0] * self.counts[1];
        while progress.row < count && bytes > 0 && rows > 0 {
            let [to, from] = self.row(progress.row);
            let len_bytes = bytes.min(self.row_bytes - progress.done);
            // What lies before its destination is read from its end on, before it is overwritten.
            let is_backward = from < to && to - from < self.row_bytes;
            let overlaps = is_backward || (to <= from && from - to < self.row_bytes);
            let first = if is_backward { self.row_bytes - progress.done - len_bytes } else { progress.done };
            if overlaps {
                move_bytes(memory, to + first, from + first, len_bytes, is_backward)?;
            } else {
                copy_bytes(memory, to + first, from + first, len_bytes)?;
            }
            progress.done += len_bytes;
            bytes -= len_bytes;
            if progress.done == self.row_bytes {
                *progress = Progress { row: progress.row + 1, done: 0, ..*progress };
                rows -= 1;
            }
        }
        Ok(progress.row < count)
    }
}

/// Copies bytes that do not overlap.
fn copy_bytes(memory: &Memory, mut to: u64, mut from: u64, mut len_bytes: u64) -> Result<(), NoMemory> {
    let mut buffer = Vec::new();
    while len_bytes > 0 {
        let [into, out_of] = memory.places([to, from]);
        let most = len_bytes.min(reach(&into, to)?).min(reach(&out_of, from)?);
        let moved = match (&into, &out_of) {
            (Place::Known(into), Place::Known(out_of)) => {
                let offset = |base: u64, addr: u64| (addr - base) as usize;
                let (at, source) = (offset(into.base(), to), offset(out_of.base(), from));
                into.copy_by(Route::Cache, at, out_of, source, most as usize);
                most
            }
            _ => {
                let most = most.min(PIECE_BYTES);
                buffer.resize(most as usize, 0);
                read_place(&out_of, from, &mut buffer)?;
                write_place(&into, to, &buffer)?;
                most
            }
        };
        to += moved;
        from += moved;
        len_bytes -= moved;
    }
    Ok(())
}

/// Copies bytes that may overlap, in pieces each of which is read before it is written, from the first on or from the last.
fn move_bytes(
    memory: &Memory,
    to: u64,
    from: u64,
    len_bytes: u64,
    is_backward: bool,
) -> Result<(), NoMemory> {
    let mut buffer = vec![0; len_bytes.min(PIECE_BYTES) as usize];
    let mut done = 0;
    while done < len_bytes {
        let count = PIECE_BYTES.min(len_bytes - done);
        let first = if is_backward { len_bytes - done - count } else { done };
        let piece = &mut buffer[..count as usize];
        pieces(memory, from + first, piece, read_place)?;
        pieces(memory, to + first, piece, |place, addr, bytes| write_place(place, addr, bytes))?;
        done += count;
    }
    Ok(())
}

/// Calls `each` with every part of the memory at `addr` and the bytes that belong to it.
fn pieces(
    memory: &Memory,
    mut addr: u64,
    mut bytes: &mut [u8],
    each: impl Fn(&Place, u64, &mut [u8]) -> Result<(), NoMemory>,
) -> Result<(), NoMemory> {
    while !bytes.is_empty() {
        let [place, _] = memory.places([addr, addr]);
        let count = reach(&place, addr)?.min(bytes.len() as u64);
        let (piece, rest) = bytes.split_at_mut(count as usize);
        each(&place, addr, piece)?;
        bytes = rest;
        addr += count;
    }
    Ok(())
}

/// Returns how many bytes are the same kind of memory from `addr` on.
fn reach(place: &Place, addr: u64) -> Result<u64, NoMemory> {
    match place {
        Place::Known(block) => Ok(block.base() + block.len_bytes() - addr),
        Place::Program(end) => Ok(end - addr),
        Place::Nothing => Err(NoMemory(addr)),
    }
}

fn read_place(place: &Place, addr: u64, out: &mut [u8]) -> Result<(), NoMemory> {
    match place {
        Place::Known(block) => {
            block.read((addr - block.base()) as usize, out);
            Ok(())
        }
        Place::Program(_) => host_memory::read(addr, out),
        Place::Nothing => Err(NoMemory(addr)),
    }
}

fn write_place(place: &Place, addr: u64, bytes: &[u8]) -> Result<(), NoMemory> {
    match place {
        Place::Known(block) => {
            block.write((addr - block.base()) as usize, bytes);
            Ok(())
        }
        Place::Program(_) => host_memory::write(addr, bytes),
        Place::Nothing => Err(NoMemory(addr)),
    }
}

/// A copy that executors carry on.
struct CopyJob {
    runtime: Weak<Runtime>,
    rows: Rows,
    completion: Signal,
    owner: Owner,
    progress: Mutex<Progress>,
}

impl Job for CopyJob {
    fn owner(&self) -> Owner {
        self.owner
    }

    fn turn(&self) -> bool {
        let Some(runtime) = self.runtime.upgrade() else { return false };
        let mut progress = lock(&self.progress);
        if progress.start_ns == 0 {
            progress.start_ns = now();
        }
        match self.rows.advance(&runtime.memory, &mut progress) {
            Ok(true) => true,
            Ok(false) => {
                let times = ProfilingTime { start: progress.start_ns, end: now() };
                signal_op::complete(self.completion, times);
                false
            }
            Err(NoMemory(addr)) => {
                tracing::warn!("a copy has failed: there is no memory at {addr:#x} that it may access");
                signal_op::fail(self.completion);
                false
            }
        }
    }

    fn abandon(&self) {
        signal_op::fail(self.completion);
    }
}

/// Distinguishes copies where executors share out their time.
static NEXT_STREAM: AtomicU64 = AtomicU64::new(0);
/// The bit that copies have in their streams' numbers and kernels' queues do not.
const COPIES: u64 = 1 << 63;

impl Runtime {
    /// Returns the number of an agent of a copy, which may be left to the runtime.
    fn copy_agent(&self, agent: Agent) -> HsaResult<Option<AgentIndex>> {
        if agent.0 == 0 { Ok(None) } else { self.agent(agent).map(Some) }
    }

    /// Begins a copy of rows once its signals are at 0.
    fn begin_copy(
        self: &Arc<Self>,
        rows: Rows,
        agent: AgentIndex,
        dependencies: Vec<Signal>,
        completion: Signal,
    ) -> HsaResult {
        let spans = rows.spans().ok_or(Status::ERROR_INVALID_ARGUMENT)?;
        if !spans.iter().all(|&(addr, len_bytes)| self.memory.may_copy(addr, len_bytes)) {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        let stream = COPIES | NEXT_STREAM.fetch_add(1, Ordering::Relaxed);
        let owner = Owner { tenant: agent as u64, weight: 1, session: agent as u64, stream };
        let runtime = Arc::downgrade(self);
        let progress = Mutex::default();
        let job: Arc<dyn Job> = Arc::new(CopyJob { runtime, rows, completion, owner, progress });
        let run_queue = Arc::clone(&self.run_queue);
        watch::after(dependencies, move || run_queue.push(&job, 1));
        Ok(())
    }

    /// Returns the signals of a copy.
    fn copy_signals(
        &self,
        count: u32,
        dependencies: In<Signal>,
        completion: Signal,
    ) -> HsaResult<Vec<Signal>> {
        let dependencies = dependencies.list(count as usize)?;
        if completion.0 == 0 {
            return Err(Status::ERROR_INVALID_ARGUMENT);
        }
        dependencies.iter().try_for_each(|&dependency| signal::check(dependency))?;
        signal::check(completion)?;
        Ok(dependencies)
    }

    /// Returns the copy engines between two agents, a bit for each.
    fn engines(&self, to: Agent, from: Agent) -> HsaResult<u32> {
        let [to, from] = [self.agent(to)?, self.agent(from)?];
        if to == from { Err(Status::ERROR_INVALID_AGENT) } else { Ok(ENGINES) }
    }
}

/// The copy engines of a GPU, a bit for each. All of them are the executors' threads, so that none is ever busy.
const ENGINES: u32 = 0b11;

/// `hsa_memory_copy`: by the calling thread.
pub(crate) fn copy(to: Ptr, from: Ptr, len_bytes: usize) -> HsaResult {
    let runtime = runtime()?;
    if to.is_null() || from.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let rows = Rows::one(to.addr(), from.addr(), len_bytes as u64);
    let spans = rows.spans().ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    if len_bytes > 0 && !spans.iter().all(|&(addr, len_bytes)| runtime.memory.may_copy(addr, len_bytes)) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let mut progress = Progress::default();
    loop {
        match rows.advance(&runtime.memory, &mut progress) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(NoMemory(addr)) => {
                tracing::warn!("a copy has failed: there is no memory at {addr:#x} that it may access");
                return Err(Status::ERROR_INVALID_ARGUMENT);
            }
        }
    }
}

/// `hsa_amd_memory_async_copy`. As AMD's, a copy of nothing leaves its signal as it is.
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub(crate) fn copy_async(
    to: Ptr,
    to_agent: Agent,
    from: Ptr,
    from_agent: Agent,
    len_bytes: usize,
    count: u32,
    dependencies: In<Signal>,
    completion: Signal,
) -> HsaResult {
    let runtime = runtime()?;
    if to.is_null() || from.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let agents = [runtime.copy_agent(to_agent)?, runtime.copy_agent(from_agent)?];
    let dependencies = runtime.copy_signals(count, dependencies, completion)?;
    if len_bytes == 0 {
        return Ok(());
    }
    // A GPU's time, if one has to do with it.
    let agent = agents.into_iter().flatten().max().unwrap_or(0);
    runtime.begin_copy(Rows::one(to.addr(), from.addr(), len_bytes as u64), agent, dependencies, completion)
}

/// `hsa_amd_memory_async_copy_on_engine`.
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub(crate) fn copy_on_engine(
    to: Ptr,
    to_agent: Agent,
    from: Ptr,
    from_agent: Agent,
    len_bytes: usize,
    count: u32,
    dependencies: In<Signal>,
    completion: Signal,
    engine: u32,
    _force: bool,
) -> HsaResult {
    runtime()?;
    if !engine.is_power_of_two() || engine & ENGINES == 0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    copy_async(to, to_agent, from, from_agent, len_bytes, count, dependencies, completion)
}

/// The last of `hsa_amd_copy_direction_t`.
const DIRECTION_MAX: u32 = 3;
/// What addresses, pitches and slices of a copy of rows are multiples of, in bytes.
const RECT_ALIGN_BYTES: u64 = 4;

/// `hsa_amd_memory_async_copy_rect`.
#[expect(clippy::too_many_arguments, reason = "the C function has them")]
pub(crate) fn copy_rect(
    to: In<PitchedPtr>,
    to_offset: In<Dim3>,
    from: In<PitchedPtr>,
    from_offset: In<Dim3>,
    range: In<Dim3>,
    agent: Agent,
    direction: u32,
    count: u32,
    dependencies: In<Signal>,
    completion: Signal,
) -> HsaResult {
    let runtime = runtime()?;
    let (to, to_offset, from, from_offset, range) =
        (to.get()?, to_offset.get()?, from.get()?, from_offset.get()?, range.get()?);
    let (agent, _) = runtime.gpu(agent)?;
    let dependencies = runtime.copy_signals(count, dependencies, completion)?;
    let is_aligned = |place: &PitchedPtr| {
        let parts = [place.base.addr(), place.pitch as u64, place.slice as u64];
        parts.iter().all(|part| part.is_multiple_of(RECT_ALIGN_BYTES)) && !place.base.is_null()
    };
    if direction > DIRECTION_MAX || !is_aligned(&to) || !is_aligned(&from) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if range.x == 0 || range.y == 0 || range.z == 0 {
        return Ok(());
    }
    let begin = |place: &PitchedPtr, offset: Dim3| {
        let rows = u64::from(offset.y).checked_mul(place.pitch as u64)?;
        let layers = u64::from(offset.z).checked_mul(place.slice as u64)?;
        place.base.addr().checked_add(rows)?.checked_add(layers)?.checked_add(offset.x.into())
    };
    let steps = |place: &PitchedPtr| [place.pitch as u64, place.slice as u64];
    let rows = Rows {
        to: begin(&to, to_offset).ok_or(Status::ERROR_INVALID_ARGUMENT)?,
        from: begin(&from, from_offset).ok_or(Status::ERROR_INVALID_ARGUMENT)?,
        row_bytes: range.x.into(),
        counts: [range.y.into(), range.z.into()],
        steps: [steps(&to), steps(&from)],
    };
    runtime.begin_copy(rows, agent, dependencies, completion)
}

/// `hsa_amd_memory_copy_engine_status`.
pub(crate) fn engine_status(to: Agent, from: Agent, engines: Out<u32>) -> HsaResult {
    let mask = runtime()?.engines(to, from)?;
    engines.put(mask)
}

/// `hsa_amd_memory_get_preferred_copy_engine`: all are the same.
pub(crate) fn preferred_engine(to: Agent, from: Agent, engines: Out<u32>) -> HsaResult {
    engine_status(to, from, engines)
}
