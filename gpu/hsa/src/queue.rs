//! Queues: rings of packets that host and kernels fill, and that the executors' threads empty.
//!
//! A queue is a job of the executors. Ringing its doorbell queues the job; a turn takes packets in their order until there are none, or until
//! one has to wait: then what it waits for queues the job again. Kernels are jobs of their own, so several of a queue run at a time
//! unless a packet's barrier bit forbids it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use hipr_grid::{Job, Owner, lock};
use hipr_isa::gws::WaveSync;
use hipr_isa::mem::Block;

use crate::agent::handle_of;
use crate::clock::now;
use crate::dispatch::{self, Ended, Origin};
use crate::doorbell::{self, Doorbell};
use crate::facts::{AgentIndex, Agents, QUEUE_PACKETS_MAX, QUEUE_PACKETS_MIN, QUEUES_MAX};
use crate::handlers::Handlers;
use crate::packet::{self, Packet, Work};
use crate::pointer::{In, Out, Ptr};
use crate::queue_index::AmdQueue;
use crate::runtime::{Runtime, runtime};
use crate::signal::AmdSignal;
use crate::status::{HsaResult, Status};
use crate::types::{
    Agent, Condition, ProfilingTime, Queue, QueueCallback, QueuePtr, Region, Signal, queue_type,
};
use crate::{signal_op, watch};

/// Packets that a turn takes before other jobs have theirs.
const TURN_PACKETS: u32 = 256;

/// A queue.
pub(crate) struct HsaQueue {
    me: Weak<Self>,
    runtime: Weak<Runtime>,
    agent: AgentIndex,
    /// Address of the [`AmdQueue`].
    addr: u64,
    /// The packets.
    ring: Arc<Block>,
    size: u32,
    /// A number that no other queue has; the stream of its jobs.
    id: u64,
    doorbell: Signal,
    callback: QueueCallback,
    data: Ptr,
    /// The barriers between workgroups of cooperative launches, if the queue has them.
    wave_sync: Option<Arc<WaveSync>>,
    priority: AtomicU32,
    cu_mask: Mutex<Vec<u32>>,
    progress: Mutex<Progress>,
    /// One of [`state`].
    state: AtomicU32,
    /// Number of the next packet.
    next: AtomicU64,
    /// No packet is begun any more.
    is_inactive: AtomicBool,
}

/// What the job of a queue does.
mod state {
    /// Nothing, until the doorbell is rung.
    pub(super) const IDLE: u32 = 0;
    /// It waits for a thread.
    pub(super) const QUEUED: u32 = 1;
    /// A thread takes packets.
    pub(super) const RUNNING: u32 = 2;
    /// A thread takes packets, and looks again before it ends.
    pub(super) const RUNNING_AGAIN: u32 = 3;
}

#[derive(Debug, Default)]
struct Progress {
    /// Kernels that were begun and have not ended.
    running: u32,
    /// The packet at the read index waits for its signals.
    awaits_signals: bool,
    /// The packet at the read index has had its signals.
    has_signals: bool,
    /// The next packet waits until no kernel runs.
    awaits_kernels: bool,
    /// When the barrier at the read index began to wait, in nanoseconds of the system's clock.
    barrier_begun_ns: Option<u64>,
}

/// The queues by the addresses of their structures.
static QUEUES: RwLock<BTreeMap<u64, Arc<HsaQueue>>> = RwLock::new(BTreeMap::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

fn queue_at(addr: u64) -> Option<Arc<HsaQueue>> {
    QUEUES.read().unwrap_or_else(PoisonError::into_inner).get(&addr).map(Arc::clone)
}

fn queue_of(queue: QueuePtr) -> HsaResult<Arc<HsaQueue>> {
    if queue.is_null() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    queue_at(queue.addr()).ok_or(Status::ERROR_INVALID_QUEUE)
}

/// Checks that a pointer is a queue's.
///
/// # Errors
/// `INVALID_ARGUMENT` for the null pointer, `INVALID_QUEUE` if there is no such queue.
pub(crate) fn check(queue: QueuePtr) -> HsaResult {
    queue_of(queue).map(drop)
}

/// Ends all queues, because the runtime ends.
pub(crate) fn forget_all() {
    let queues = std::mem::take(&mut *QUEUES.write().unwrap_or_else(PoisonError::into_inner));
    doorbell::disconnect_all();
    for queue in queues.values() {
        queue.is_inactive.store(true, Ordering::SeqCst);
    }
}

impl HsaQueue {
    fn shared(&self) -> &AmdQueue {
        // SAFETY: the structure that the queue was created with, in memory that is freed after the queue; both indices are atomics, and
        // what else is read here is written by nobody.
        unsafe { &*Ptr::at(self.addr).raw().cast::<AmdQueue>() }
    }

    /// Returns whether the place at the read index was filled.
    fn has_packet(&self) -> bool {
        let next = self.next.load(Ordering::SeqCst);
        next < self.shared().write_dispatch_id.load(Ordering::SeqCst) && self.type_at(next) != packet::INVALID
    }

    fn offset(&self, index: u64) -> usize {
        (index % u64::from(self.size) * packet::PACKET_BYTES) as usize
    }

    fn type_at(&self, index: u64) -> u8 {
        let words = self.ring.words();
        let header = words
            .get(self.offset(index) / 4)
            .map_or(u32::from(packet::INVALID), |word| word.load(Ordering::Acquire));
        packet::type_of(header as u16)
    }

    /// Queues the job, unless it is queued or will look again.
    fn look(&self) {
        let change = |now| match now {
            state::IDLE => Some(state::QUEUED),
            state::RUNNING => Some(state::RUNNING_AGAIN),
            _ => None,
        };
        if self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change) != Ok(state::IDLE) {
            return;
        }
        if let (Some(me), Some(runtime)) = (self.me.upgrade(), self.runtime.upgrade()) {
            runtime.run_queue.push(&(me as Arc<dyn Job>), 1);
        }
    }

    /// Takes packets until there are none, one has to wait, or the turn is over; returns whether there are more for the next turn.
    fn take_packets(self: &Arc<Self>) -> bool {
        for _ in 0..TURN_PACKETS {
            if self.is_inactive.load(Ordering::SeqCst) {
                return false;
            }
            if !self.has_packet() {
                return false;
            }
            let next = self.next.load(Ordering::SeqCst);
            let mut bytes = [0; packet::PACKET_BYTES as usize];
            self.ring.read(self.offset(next), &mut bytes);
            match packet::parse(&bytes) {
                Ok(packet) => {
                    if !self.begin(packet, next) {
                        return false;
                    }
                }
                Err(why) => {
                    tracing::error!(
                        queue = self.id,
                        index = next,
                        "a queue has a malformed packet: {}",
                        why.0
                    );
                    self.stop(Status::ERROR_INVALID_PACKET_FORMAT);
                    return false;
                }
            }
        }
        true
    }

    /// Begins a packet; returns false if it has to wait, for what queues the job again.
    fn begin(self: &Arc<Self>, packet: Packet, index: u64) -> bool {
        if packet.barrier {
            let mut progress = lock(&self.progress);
            if progress.running > 0 {
                progress.awaits_kernels = true;
                return false;
            }
        }
        let Packet { work, completion, .. } = packet;
        if let Work::Dispatch(dispatch) = work {
            lock(&self.progress).running += 1;
            let addr = self.ring.base() + self.offset(index) as u64;
            let runtime = self.runtime.upgrade().ok_or(Status::ERROR_NOT_INITIALIZED);
            let origin = Arc::clone(self) as Arc<dyn Origin>;
            let started = runtime
                .and_then(|runtime| dispatch::start(runtime, origin, &dispatch, addr, index, completion));
            match started {
                Ok(()) => self.consume(index),
                Err(status) => {
                    lock(&self.progress).running -= 1;
                    self.stop(status);
                    return false;
                }
            }
            return true;
        }
        // As of a dispatch, the times are those of the packet's active phase, in which a barrier waits for its signals.
        let begun_ns = *lock(&self.progress).barrier_begun_ns.get_or_insert_with(now);
        if !self.has_signals(&work) {
            return false;
        }
        lock(&self.progress).barrier_begun_ns = None;
        self.consume(index);
        signal_op::complete(completion, ProfilingTime { start: begun_ns, end: now() });
        true
    }

    /// Returns whether a barrier's condition holds; if it does not, the job is queued again when it may.
    fn has_signals(self: &Arc<Self>, work: &Work) -> bool {
        let mut progress = lock(&self.progress);
        if progress.awaits_signals {
            return false;
        }
        if std::mem::take(&mut progress.has_signals) {
            return true;
        }
        let is_zero = |signal: &&Signal| {
            AmdSignal::of(**signal).is_none_or(|found| found.value.load(Ordering::SeqCst) == 0)
        };
        let named = |signals: &[Signal]| -> Vec<Signal> {
            signals.iter().filter(|signal| signal.0 != 0).copied().collect()
        };
        let me = Weak::clone(&self.me);
        let again = move || {
            if let Some(queue) = me.upgrade() {
                let mut progress = lock(&queue.progress);
                progress.awaits_signals = false;
                progress.has_signals = true;
                drop(progress);
                queue.look();
            }
        };
        match work {
            Work::BarrierAnd(signals) => {
                let open: Vec<_> =
                    signals.iter().filter(|signal| signal.0 != 0 && !is_zero(signal)).copied().collect();
                if open.is_empty() {
                    return true;
                }
                progress.awaits_signals = true;
                drop(progress);
                watch::after(open, again);
            }
            Work::BarrierOr(signals) => {
                let signals = named(signals);
                if signals.is_empty() || signals.iter().any(|signal| is_zero(&signal)) {
                    return true;
                }
                progress.awaits_signals = true;
                drop(progress);
                // The first one of them is enough; the others find that nobody waits any more.
                let again = Arc::new(Mutex::new(Some(again)));
                for signal in signals {
                    let again = Arc::clone(&again);
                    watch::when(signal, !0, Condition::Eq, 0, move |_| {
                        let first = lock(&again).take();
                        if let Some(again) = first {
                            again();
                        }
                    });
                }
            }
            &Work::BarrierValue { signal, mask, condition, than } => {
                let holds =
                    |found: &AmdSignal| condition.holds(found.value.load(Ordering::SeqCst) & mask, than);
                if AmdSignal::of(signal).is_none_or(holds) {
                    return true;
                }
                progress.awaits_signals = true;
                drop(progress);
                watch::when(signal, mask, condition, than, move |_| again());
            }
            Work::Dispatch(_) => return true,
        }
        false
    }

    /// Makes a packet's place free.
    fn consume(&self, index: u64) {
        let words = self.ring.words();
        if let Some(word) = words.get(self.offset(index) / 4) {
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |old| {
                Some(old & !0xffff | u32::from(packet::INVALID))
            });
        }
        self.next.store(index + 1, Ordering::SeqCst);
        self.shared().read_dispatch_id.store(index + 1, Ordering::SeqCst);
    }

    /// Ends the queue because of an error, and tells the program, once.
    fn stop(&self, status: Status) {
        if self.is_inactive.swap(true, Ordering::SeqCst) {
            return;
        }
        let (Some(callback), Some(runtime)) = (self.callback, self.runtime.upgrade()) else {
            tracing::error!(
                queue = self.id,
                ?status,
                "a queue has ended by an error that the program does not handle"
            );
            return;
        };
        let (queue, data) = (Ptr::at(self.addr), self.data);
        runtime.part::<Handlers>().push(Box::new(move || {
            // SAFETY: the program's function, with its queue and the data that it was registered with.
            unsafe { callback(status, queue.raw().cast(), data.raw()) };
        }));
    }
}

impl Doorbell for HsaQueue {
    fn has_work(&self) -> bool {
        self.has_packet()
    }

    fn ring(&self) {
        self.look();
    }
}

impl Origin for HsaQueue {
    fn agent(&self) -> AgentIndex {
        self.agent
    }

    fn addr(&self) -> u64 {
        self.addr
    }

    fn owner(&self) -> Owner {
        Owner { tenant: self.agent as u64, weight: 1, session: self.agent as u64, stream: self.id }
    }

    fn wave_sync(&self) -> Option<Arc<WaveSync>> {
        self.wave_sync.clone()
    }

    fn ended(&self, ended: Ended) {
        if let Ended::Failed(status) = ended {
            self.stop(status);
        }
        let mut progress = lock(&self.progress);
        progress.running -= 1;
        let looks = progress.running == 0 && std::mem::take(&mut progress.awaits_kernels);
        drop(progress);
        if looks {
            self.look();
        }
    }
}

impl Job for HsaQueue {
    fn owner(&self) -> Owner {
        Origin::owner(self)
    }

    fn turn(&self) -> bool {
        self.state.store(state::RUNNING, Ordering::SeqCst);
        let is_left = self.me.upgrade().is_some_and(|me| me.take_packets());
        let change =
            |now| Some(if is_left || now == state::RUNNING_AGAIN { state::QUEUED } else { state::IDLE });
        let before = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        is_left || before == Ok(state::RUNNING_AGAIN)
    }

    fn abandon(&self) {
        self.stop(Status::ERROR);
    }
}

/// `hsa_queue_create`.
#[allow(clippy::too_many_arguments, reason = "those of the C function")]
pub(crate) fn create(
    agent: Agent,
    size: u32,
    kind: u32,
    callback: QueueCallback,
    data: Ptr,
    _private_bytes: u32,
    _group_bytes: u32,
    queue: Out<QueuePtr>,
) -> HsaResult {
    let runtime = runtime()?;
    let index = runtime.agent(agent)?;
    let is_size = size.is_power_of_two() && size <= QUEUE_PACKETS_MAX;
    if queue.is_null() || !is_size || kind > queue_type::COOPERATIVE {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if runtime.agents[index].arch.is_none() {
        return Err(Status::ERROR_INVALID_QUEUE_CREATION);
    }
    let created = runtime.new_queue(index, size.max(QUEUE_PACKETS_MIN), kind, callback, data)?;
    queue.put(QueuePtr::at(created))
}

impl Runtime {
    fn new_queue(
        self: &Arc<Self>,
        agent: AgentIndex,
        size: u32,
        kind: u32,
        callback: QueueCallback,
        data: Ptr,
    ) -> HsaResult<u64> {
        let mut queues = QUEUES.write().unwrap_or_else(PoisonError::into_inner);
        if queues.values().filter(|queue| queue.agent == agent).count() >= QUEUES_MAX as usize {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        let allocate =
            |len_bytes: u64| self.memory.allocate(len_bytes, 0, None, crate::pool::FINE, Agents::ALL);
        let addr = allocate(size_of::<AmdQueue>() as u64)?;
        let freed = |status| {
            let _ = self.memory.free(addr);
            status
        };
        let ring_addr = allocate(u64::from(size) * packet::PACKET_BYTES).map_err(freed)?;
        let freed = |status| {
            let _ = self.memory.free(ring_addr);
            freed(status)
        };
        let ring = self.memory.find(ring_addr).and_then(|found| found.block);
        let ring = ring.ok_or(Status::ERROR_OUT_OF_RESOURCES).map_err(freed)?;
        for number in 0..size as usize {
            ring.store_u32(number * packet::PACKET_BYTES as usize, packet::INVALID.into());
        }
        let doorbell = self.new_signal(0, false, addr).map_err(freed)?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let public = Queue {
            queue_type: kind,
            features: 1,
            base_address: ring_addr,
            doorbell_signal: doorbell,
            size,
            reserved1: 0,
            id,
        };
        let structure = AmdQueue::new(public);
        // SAFETY: memory of at least this size that nobody else knows.
        unsafe { Ptr::at(addr).raw().cast::<AmdQueue>().write(structure) };
        let wave_sync = (kind == queue_type::COOPERATIVE).then(|| Arc::new(WaveSync::for_groups(1)));
        let created = Arc::new_cyclic(|me| HsaQueue {
            me: Weak::clone(me),
            runtime: Arc::downgrade(self),
            agent,
            addr,
            ring,
            size,
            id,
            doorbell,
            callback,
            data,
            wave_sync,
            priority: AtomicU32::new(1),
            cu_mask: Mutex::new(Vec::new()),
            progress: Mutex::default(),
            state: AtomicU32::new(state::IDLE),
            next: AtomicU64::new(0),
            is_inactive: AtomicBool::new(false),
        });
        doorbell::connect(addr, Arc::clone(&created) as Arc<dyn Doorbell>);
        queues.insert(addr, created);
        Ok(addr)
    }
}

/// `hsa_soft_queue_create`: queues that the program empties itself are not offered.
pub(crate) fn soft_create(
    _region: Region,
    _size: u32,
    _kind: u32,
    _features: u32,
    _doorbell: Signal,
    _queue: Out<QueuePtr>,
) -> HsaResult {
    runtime()?;
    Err(Status::ERROR_INVALID_QUEUE_CREATION)
}

/// `hsa_queue_destroy`: packets that were not begun are dropped; kernels that run are waited for.
pub(crate) fn destroy(queue: QueuePtr) -> HsaResult {
    let runtime = runtime()?;
    let found = queue_of(queue)?;
    QUEUES.write().unwrap_or_else(PoisonError::into_inner).remove(&found.addr);
    doorbell::disconnect(found.addr);
    found.is_inactive.store(true, Ordering::SeqCst);
    loop {
        let progress = lock(&found.progress);
        let is_running = matches!(found.state.load(Ordering::SeqCst), state::RUNNING | state::RUNNING_AGAIN);
        if progress.running == 0 && !is_running {
            break;
        }
        drop(progress);
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    signal_op::retire(found.doorbell);
    let ring_addr = found.ring.base();
    runtime.memory.free(ring_addr)?;
    runtime.memory.free(found.addr)
}

/// `hsa_queue_inactivate`.
pub(crate) fn inactivate(queue: QueuePtr) -> HsaResult {
    runtime()?;
    queue_of(queue)?.is_inactive.store(true, Ordering::SeqCst);
    Ok(())
}

/// `hsa_amd_queue_cu_set_mask`: is kept; the emulated GPUs' compute units are all the same threads.
pub(crate) fn set_cu_mask(queue: QueuePtr, count: u32, mask: In<u32>) -> HsaResult {
    runtime()?;
    let found = queue_of(queue)?;
    if !count.is_multiple_of(32) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    *lock(&found.cu_mask) = mask.list(count as usize / 32)?;
    Ok(())
}

/// `hsa_amd_queue_cu_get_mask`: all ones if none was set.
pub(crate) fn cu_mask(queue: QueuePtr, count: u32, mask: Out<u32>) -> HsaResult {
    runtime()?;
    let found = queue_of(queue)?;
    if count == 0 || !count.is_multiple_of(32) {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    let set = lock(&found.cu_mask).clone();
    (0..count as usize / 32).try_for_each(|index| {
        let word = if set.is_empty() { u32::MAX } else { set.get(index).copied().unwrap_or(0) };
        mask.offset(index).put(word)
    })
}

/// `hsa_amd_queue_get_info`.
pub(crate) fn info(queue: QueuePtr, attribute: u32, value: Ptr) -> HsaResult {
    runtime()?;
    let found = queue_of(queue)?;
    match attribute {
        0 => value.put(handle_of(found.agent)),
        1 => value.put(found.id),
        _ => Err(Status::ERROR_INVALID_ARGUMENT),
    }
}

/// `hsa_amd_queue_set_priority`: is kept; queues share the threads' time evenly.
pub(crate) fn set_priority(queue: QueuePtr, priority: u32) -> HsaResult {
    runtime()?;
    let found = queue_of(queue)?;
    if priority > 2 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    found.priority.store(priority, Ordering::Relaxed);
    Ok(())
}
