//! A queue and signals for tests in safe Rust, such as fuzz targets: packets are bytes, and what became of them is told.
//!
//! The library is initialized when the first rig is made, with the GPUs that the environment names, and stays.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use hipr_grid::lock;

use crate::agent::handle_of;
use crate::facts::{Agents, QUEUE_PACKETS_MIN};
use crate::packet::PACKET_BYTES;
use crate::pointer::{In, Out, Ptr, Str};
use crate::runtime::runtime;
use crate::status::Status;
use crate::types::{
    Agent, CodeObjectReader, Executable, ExecutableSymbol, Queue, QueuePtr, Signal, SignalValue,
};
use crate::{executable, init, pool, queue, queue_index, reader, signal, signal_op};

/// Packets that a rig's queue has places for.
pub const PACKETS: u64 = QUEUE_PACKETS_MIN as u64;

/// Length of the page of [`memory`] in bytes.
const MEMORY_BYTES: u64 = 4096;

/// A queue of the first GPU, and signals.
#[allow(missing_debug_implementations, reason = "pointers say nothing")]
pub struct Rig {
    queue: QueuePtr,
    public: Queue,
    signals: Vec<Signal>,
    /// Key of [`ENDED`].
    number: u64,
}

/// The statuses that queues of rigs have ended with, by the rigs' numbers; 0 until then. A callback may come when its rig is gone.
static ENDED: Mutex<BTreeMap<u64, u32>> = Mutex::new(BTreeMap::new());
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// A page that kernels reach.
static MEMORY: OnceLock<u64> = OnceLock::new();

/// Makes the first call of the library.
fn initialize() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| init::init().expect("the library can be initialized"));
}

unsafe extern "C" fn note(status: Status, _queue: *mut Queue, data: *mut c_void) {
    if let Some(ended) = lock(&ENDED).get_mut(&(data.expose_provenance() as u64)) {
        *ended = status.0;
    }
}

impl Rig {
    /// Makes an empty queue, and signals with these values.
    ///
    /// # Panics
    /// If there is no room for them, or if the library cannot be initialized.
    #[must_use]
    pub fn new(values: &[SignalValue]) -> Self {
        initialize();
        let made = |&value: &SignalValue| {
            let mut made = Signal(0);
            signal::create(value, 0, In::at(0), out(&mut made)).expect("a signal");
            made
        };
        let signals = values.iter().map(made).collect();
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        lock(&ENDED).insert(number, 0);
        let mut queue = QueuePtr::at(0);
        queue::create(handle_of(1), QUEUE_PACKETS_MIN, 0, Some(note), Ptr::at(number), 0, 0, out(&mut queue))
            .expect("a queue");
        // SAFETY: the structure of the queue that was just created, whose public fields nobody changes.
        let public = unsafe { queue.raw().read() };
        Self { queue, public, signals, number }
    }

    /// Returns the handle of a signal.
    ///
    /// # Panics
    /// If there is none with this index.
    #[must_use]
    pub fn signal(&self, index: usize) -> u64 {
        self.signals[index].0
    }

    /// Returns the value of a signal.
    #[must_use]
    pub fn load(&self, index: usize) -> SignalValue {
        signal::load(self.signals[index])
    }

    /// Stores a value in a signal, as a program does.
    pub fn store(&self, index: usize, value: SignalValue) {
        signal_op::store(self.signals[index], value);
    }

    /// Returns how many packets were taken.
    #[must_use]
    pub fn read_index(&self) -> u64 {
        queue_index::read_index(self.queue)
    }

    /// Returns the number of the status that the queue has ended with.
    #[must_use]
    pub fn ended(&self) -> Option<u32> {
        lock(&ENDED).get(&self.number).copied().filter(|&status| status != 0)
    }

    /// Fills the next place with a packet and rings the doorbell; returns false, and does nothing, if the queue is full.
    pub fn push(&self, packet: &[u8; PACKET_BYTES as usize]) -> bool {
        let index = queue_index::write_index(self.queue);
        if index - self.read_index() >= PACKETS {
            return false;
        }
        queue_index::store_write_index(self.queue, index + 1);
        let at = self.public.base_address + index % PACKETS * PACKET_BYTES;
        let [low, high, body @ ..] = packet;
        // SAFETY: a free place of the ring, which is this thread's until its header is stored.
        unsafe {
            Ptr::at(at + 2).raw().cast::<[u8; PACKET_BYTES as usize - 2]>().write(*body);
            let header = &*Ptr::at(at).raw().cast::<AtomicU16>();
            header.store(u16::from_le_bytes([*low, *high]), Ordering::Release);
        }
        signal_op::store(self.public.doorbell_signal, index as i64);
        true
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        queue::destroy(self.queue).expect("the rig's queue");
        lock(&ENDED).remove(&self.number);
        for &signal in &self.signals {
            signal_op::destroy(signal).expect("the rig's signal");
        }
    }
}

/// Loads a code object for the first GPU and returns the handle of a kernel of it, as dispatches name it. It stays loaded.
///
/// # Panics
/// If the code object cannot be loaded, or has no such kernel.
#[must_use]
pub fn kernel(image: &'static [u8], name: &'static CStr) -> u64 {
    initialize();
    let (mut reader, mut executable) = (CodeObjectReader(0), Executable(0));
    let image_at = Ptr::at(image.as_ptr().expose_provenance() as u64);
    reader::reader_from_memory(image_at, image.len(), out(&mut reader)).expect("a reader");
    executable::create_alt(0, 0, Str::NULL, out(&mut executable)).expect("an executable");
    executable::load_agent_code_object(executable, handle_of(1), reader, Str::NULL, Out::at(0))
        .and_then(|()| executable::freeze(executable, Str::NULL))
        .expect("a code object for the first GPU");
    let mut found = ExecutableSymbol(0);
    let agent: Agent = handle_of(1);
    let agent = In::at((&raw const agent).expose_provenance() as u64);
    executable::symbol_by_name(executable, Str::of(name), agent, out(&mut found)).expect("the kernel");
    let mut object = 0u64;
    executable::symbol_info(found, 22, Ptr::at((&raw mut object).expose_provenance() as u64))
        .expect("the kernel's handle");
    object
}

/// Returns the words of a page that kernels of all GPUs reach, and its address. All rigs share it.
///
/// # Panics
/// If there is no memory for it.
#[must_use]
pub fn memory() -> (u64, &'static [AtomicU64]) {
    initialize();
    let allocate = || {
        let runtime = runtime().expect("the library is initialized");
        runtime.memory.allocate(MEMORY_BYTES, 0, None, pool::FINE, Agents::ALL).expect("a page")
    };
    let addr = *MEMORY.get_or_init(allocate);
    // SAFETY: memory that stays while the process lives, of which only atomics are taken.
    (addr, unsafe { std::slice::from_raw_parts(Ptr::at(addr).raw().cast(), MEMORY_BYTES as usize / 8) })
}

fn out<T: Copy>(place: &mut T) -> Out<T> {
    Out::at((&raw mut *place).expose_provenance() as u64)
}
