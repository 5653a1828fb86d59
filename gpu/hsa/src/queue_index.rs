//! The structure of a queue that kernels and the host see, and its indices.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_isa::aperture::{PRIVATE_HIGH, SHARED_HIGH};

use crate::types::{Queue, QueuePtr, Signal};

/// `amd_queue_t`: what kernels and the host see of a queue.
#[repr(C)]
pub(crate) struct AmdQueue {
    public: Queue,
    caps: u32,
    reserved1: [u32; 3],
    pub(crate) write_dispatch_id: AtomicU64,
    group_segment_aperture_base_hi: u32,
    private_segment_aperture_base_hi: u32,
    max_cu_id: u32,
    max_wave_id: u32,
    max_legacy_doorbell_dispatch_id_plus_1: u64,
    legacy_doorbell_lock: u32,
    reserved2: [u32; 9],
    pub(crate) read_dispatch_id: AtomicU64,
    read_dispatch_id_field_base_byte_offset: u32,
    compute_tmpring_size: u32,
    scratch_resource_descriptor: [u32; 4],
    scratch_backing_memory_location: u64,
    scratch_backing_memory_byte_size: u64,
    scratch_wave64_lane_byte_size: u32,
    queue_properties: u32,
    reserved3: [u32; 2],
    queue_inactive_signal: Signal,
    reserved4: [u32; 14],
}

const _: () = assert!(size_of::<AmdQueue>() == 256);
const _: () = assert!(offset_of!(AmdQueue, write_dispatch_id) == 56);
const _: () = assert!(offset_of!(AmdQueue, read_dispatch_id) == 128);

/// `AMD_QUEUE_PROPERTIES_IS_PTR64` and `AMD_QUEUE_PROPERTIES_ENABLE_PROFILING`: pointers have 64 bits, times are always kept.
const PROPERTIES: u32 = 1 << 1 | 1 << 3;

impl AmdQueue {
    /// Creates the structure of an empty queue.
    pub(crate) fn new(public: Queue) -> Self {
        Self {
            public,
            caps: 0,
            reserved1: [0; 3],
            write_dispatch_id: AtomicU64::new(0),
            group_segment_aperture_base_hi: SHARED_HIGH,
            private_segment_aperture_base_hi: PRIVATE_HIGH,
            max_cu_id: 0,
            max_wave_id: 0,
            max_legacy_doorbell_dispatch_id_plus_1: 0,
            legacy_doorbell_lock: 0,
            reserved2: [0; 9],
            read_dispatch_id: AtomicU64::new(0),
            read_dispatch_id_field_base_byte_offset: offset_of!(Self, read_dispatch_id) as u32,
            compute_tmpring_size: 0,
            scratch_resource_descriptor: [0; 4],
            scratch_backing_memory_location: 0,
            scratch_backing_memory_byte_size: 0,
            scratch_wave64_lane_byte_size: 0,
            queue_properties: PROPERTIES,
            reserved3: [0; 2],
            queue_inactive_signal: Signal(0),
            reserved4: [0; 14],
        }
    }
}

/// Returns the structure behind a queue's pointer.
fn indices<'a>(queue: QueuePtr) -> Option<&'a AmdQueue> {
    if queue.is_null() {
        return None;
    }
    // SAFETY: the caller's queue, of which only the atomic indices are used.
    Some(unsafe { &*queue.raw().cast::<AmdQueue>() })
}

/// `hsa_queue_load_read_index_*`.
pub(crate) fn read_index(queue: QueuePtr) -> u64 {
    indices(queue).map_or(0, |queue| queue.read_dispatch_id.load(Ordering::SeqCst))
}

/// `hsa_queue_load_write_index_*`.
pub(crate) fn write_index(queue: QueuePtr) -> u64 {
    indices(queue).map_or(0, |queue| queue.write_dispatch_id.load(Ordering::SeqCst))
}

/// `hsa_queue_store_write_index_*`.
pub(crate) fn store_write_index(queue: QueuePtr, value: u64) {
    if let Some(queue) = indices(queue) {
        queue.write_dispatch_id.store(value, Ordering::SeqCst);
    }
}

/// `hsa_queue_store_read_index_*`: the emulated GPUs move the index themselves, so that a program's value means nothing.
pub(crate) fn store_read_index(_queue: QueuePtr, _value: u64) {}

/// `hsa_queue_add_write_index_*`: returns the index before.
pub(crate) fn add_write_index(queue: QueuePtr, value: u64) -> u64 {
    indices(queue).map_or(0, |queue| queue.write_dispatch_id.fetch_add(value, Ordering::SeqCst))
}

/// `hsa_queue_cas_write_index_*`: returns the index before.
pub(crate) fn cas_write_index(queue: QueuePtr, expected: u64, value: u64) -> u64 {
    indices(queue).map_or(0, |queue| {
        let exchange =
            queue.write_dispatch_id.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst);
        let (Ok(old) | Err(old)) = exchange;
        old
    })
}
