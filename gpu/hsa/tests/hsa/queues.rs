//! Queues: packets by one and by several producers, barriers, kernels, and what is wrong with packets and kernels.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::thread;

use crate::library::{
    INVALID_AGENT, INVALID_ARGUMENT, INVALID_PACKET_FORMAT, INVALID_QUEUE, INVALID_QUEUE_CREATION,
    MEMORY_FAULT, Memory, SUCCESS, Signal, agents, gpu, hsa,
};

pub(crate) const DISPATCH: u16 = 2;
pub(crate) const BARRIER_AND: u16 = 3;
pub(crate) const BARRIER_OR: u16 = 5;
/// A packet of AMD's format, of which the tests use the barrier on a value only.
const BARRIER_VALUE: u16 = 0;
pub(crate) const BARRIER_BIT: u16 = 1 << 8;

pub(crate) type QueueCallback = Option<unsafe extern "C" fn(u32, *mut c_void, *mut c_void)>;

pub(crate) fn create(
    agent: u64,
    size: u32,
    kind: u32,
    callback: QueueCallback,
    data: *mut c_void,
    queue: *mut u64,
) -> u32 {
    hsa!(hsa_queue_create(
        agent => u64, size => u32, kind => u32, callback => QueueCallback, data => *mut c_void, u32::MAX => u32, u32::MAX => u32,
        queue => *mut u64) -> u32)
}

/// A queue, destroyed when dropped.
pub(crate) struct Queue(pub(crate) u64);

impl Queue {
    pub(crate) fn new(size: u32) -> Self {
        Self::with(size, None, std::ptr::null_mut())
    }

    pub(crate) fn with(size: u32, callback: QueueCallback, data: *mut c_void) -> Self {
        Self::of(gpu(), size, callback, data)
    }

    pub(crate) fn of(agent: u64, size: u32, callback: QueueCallback, data: *mut c_void) -> Self {
        let mut queue = 0;
        assert_eq!(create(agent, size, 0, callback, data, &raw mut queue), SUCCESS);
        Self(queue)
    }

    pub(crate) fn field<T: Copy>(&self, offset: u64) -> T {
        // SAFETY: a field of `hsa_queue_t`, which nobody changes.
        unsafe { std::ptr::with_exposed_provenance::<T>((self.0 + offset) as usize).read() }
    }

    /// Fills the next packet and rings the doorbell.
    pub(crate) fn push(&self, header: u16, body: &[u8; 62]) {
        let index = hsa!(hsa_queue_add_write_index_screlease(self.0 => u64, 1 => u64) -> u64);
        let size: u32 = self.field(24);
        while index - hsa!(hsa_queue_load_read_index_scacquire(self.0 => u64) -> u64) >= u64::from(size) {
            thread::yield_now();
        }
        let at = self.field::<u64>(8) + index % u64::from(size) * 64;
        // SAFETY: the packet with this index, which is this thread's until its header is stored.
        unsafe {
            std::ptr::with_exposed_provenance_mut::<[u8; 62]>(at as usize + 2).write(*body);
            let word = &*std::ptr::with_exposed_provenance::<AtomicU16>(at as usize);
            word.store(header, Ordering::Release);
        }
        let doorbell: u64 = self.field(16);
        hsa!(hsa_signal_store_screlease(doorbell => u64, index as i64 => i64) -> ());
    }

    pub(crate) fn barrier(&self, kind: u16, dependencies: &[&Signal], completion: Option<&Signal>) {
        let mut body = [0; 62];
        for (place, signal) in body[6..].chunks_mut(8).zip(dependencies) {
            place.copy_from_slice(&signal.0.to_le_bytes());
        }
        body[54..].copy_from_slice(&completion.map_or(0, |signal| signal.0).to_le_bytes());
        self.push(kind, &body);
    }

    /// Waits until all bits of a signal are `than`.
    fn barrier_value(&self, signal: &Signal, than: i64, completion: Option<&Signal>) {
        let mut body = [0; 62];
        body[0] = 2; // HSA_AMD_PACKET_TYPE_BARRIER_VALUE; the condition at 30 is HSA_SIGNAL_CONDITION_EQ
        let completion = completion.map_or(0, |signal| signal.0);
        for (at, long) in [(6, signal.0), (14, than as u64), (22, u64::MAX), (54, completion)] {
            body[at..at + 8].copy_from_slice(&long.to_le_bytes());
        }
        self.push(BARRIER_VALUE, &body);
    }

    pub(crate) fn dispatch(
        &self,
        header: u16,
        kernel: &Kernel,
        items: u32,
        group: u16,
        kernarg: u64,
        completion: Option<&Signal>,
    ) {
        let mut body = [0; 62];
        body[0] = 1;
        for (at, half) in [(2, group), (4, 1), (6, 1)] {
            body[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        for (at, word) in
            [(10, items), (14, 1), (18, 1), (22, kernel.private_bytes), (26, kernel.group_bytes)]
        {
            body[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        for (at, long) in [(30, kernel.object), (38, kernarg), (54, completion.map_or(0, |signal| signal.0))]
        {
            body[at..at + 8].copy_from_slice(&long.to_le_bytes());
        }
        self.push(header, &body);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        assert_eq!(hsa!(hsa_queue_destroy(self.0 => u64) -> u32), SUCCESS);
    }
}

/// A kernel of the emulated GPU's tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) object: u64,
    pub(crate) group_bytes: u32,
    pub(crate) private_bytes: u32,
}

/// Returns a code object of other crates' tests.
pub(crate) fn image(name: &str) -> Vec<u8> {
    let file = image_path(name);
    fs::read(&file).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

/// Returns where a code object is, by its path below `gpu`.
pub(crate) fn image_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Kernels for a gfx942.
pub(crate) const KERNELS: &str = "sim/tests/data/kernels-O3.co";

pub(crate) fn kernel(name: &str) -> Kernel {
    kernel_on(gpu(), name)
}

/// Returns a kernel of an agent of the first kind.
pub(crate) fn kernel_on(agent: u64, name: &str) -> Kernel {
    /// Executables that were loaded for agents; they stay for as long as the tests run.
    static LOADED: Mutex<BTreeMap<(u64, String), Kernel>> = Mutex::new(BTreeMap::new());
    let key = (agent, name.to_owned());
    let mut loaded = LOADED.lock().expect("no panic");
    *loaded.entry(key).or_insert_with(|| load_kernel(agent, name))
}

fn load_kernel(agent: u64, name: &str) -> Kernel {
    let image = image(KERNELS);
    let (mut reader, mut executable, mut symbol) = (0u64, 0u64, 0u64);
    let name = CString::new(format!("{name}.kd")).expect("no zero byte");
    let none = std::ptr::null::<c_char>();
    let steps = [
        hsa!(hsa_code_object_reader_create_from_memory(image.as_ptr() => *const u8, image.len() => usize, &raw mut reader => *mut u64) -> u32),
        hsa!(hsa_executable_create_alt(0 => u32, 0 => u32, none => *const c_char, &raw mut executable => *mut u64) -> u32),
        hsa!(hsa_executable_load_agent_code_object(
            executable => u64, agent => u64, reader => u64, none => *const c_char, std::ptr::null_mut() => *mut u64) -> u32),
        hsa!(hsa_executable_freeze(executable => u64, none => *const c_char) -> u32),
        hsa!(hsa_executable_get_symbol_by_name(
            executable => u64, name.as_ptr() => *const c_char, &raw const agent => *const u64, &raw mut symbol => *mut u64) -> u32),
    ];
    assert_eq!(steps, [SUCCESS; 5]);
    let mut kernel = Kernel { object: 0, group_bytes: 0, private_bytes: 0 };
    let info = |attribute: u32, value: *mut c_void| {
        assert_eq!(
            hsa!(hsa_executable_symbol_get_info(symbol => u64, attribute => u32, value => *mut c_void) -> u32),
            SUCCESS
        );
    };
    info(22, (&raw mut kernel.object).cast());
    info(13, (&raw mut kernel.group_bytes).cast());
    info(14, (&raw mut kernel.private_bytes).cast());
    kernel
}

/// Memory with a kernel's explicit arguments and zeros behind them, where hidden ones would be.
pub(crate) fn arguments(values: &[u64]) -> Memory {
    let memory = Memory::new(4096);
    for (words, value) in memory.words().chunks_mut(2).zip(values) {
        words.copy_from_slice(&[*value as u32, (value >> 32) as u32]);
    }
    memory
}

#[test]
fn queues_have_sizes_kinds_and_agents() {
    let (host, gpu, null) = (agents()[0], gpu(), std::ptr::null_mut());
    let mut queue = 0;
    for (agent, size, kind, expected) in [
        (gpu, 0, 0, INVALID_ARGUMENT),
        (gpu, 100, 0, INVALID_ARGUMENT),
        (gpu, 1 << 18, 0, INVALID_ARGUMENT),
        (gpu, 64, 3, INVALID_ARGUMENT),
        (0, 64, 0, INVALID_AGENT),
        (99, 64, 0, INVALID_AGENT),
        (host, 64, 0, INVALID_QUEUE_CREATION),
    ] {
        assert_eq!(
            create(agent, size, kind, None, null, &raw mut queue),
            expected,
            "{agent}, {size}, {kind}"
        );
    }
    assert_eq!(create(gpu, 64, 0, None, null, null.cast()), INVALID_ARGUMENT);
    for size in [64, 1 << 10, 1 << 17] {
        let queue = Queue::new(size);
        assert_eq!(queue.field::<u32>(24), size);
    }
    assert_eq!(hsa!(hsa_queue_destroy(4096 => u64) -> u32), INVALID_QUEUE);
}

#[test]
fn a_kernel_runs_over_the_whole_grid_and_partial_groups() {
    let kernel = kernel("saxpy");
    let queue = Queue::new(64);
    for n in [1u32, 63, 64, 65, 100, 256, 1000] {
        let (x, y, done) = (Memory::new(4 * 1000), Memory::new(4 * 1001), Signal::new(1));
        x.words().iter_mut().zip(0u32..).for_each(|(x, i)| *x = (i as f32).to_bits());
        y.words().fill(1f32.to_bits());
        // a, x, y, n; the kernel knows the size of its groups from the hidden arguments behind them.
        let kernarg = arguments(&[u64::from(2f32.to_bits()), x.addr, y.addr, u64::from(n)]);
        let hidden = kernarg.words();
        (hidden[8], hidden[9], hidden[10]) = (n.div_ceil(64), 1, 1);
        hidden[11] = 64 | 1 << 16;
        hidden[12] = 1;
        queue.dispatch(DISPATCH, &kernel, n, 64, kernarg.addr, Some(&done));
        done.wait_lt(1);
        for (i, &bits) in y.words().iter().enumerate() {
            let expected = if i < n as usize { 2.0 * i as f32 + 1.0 } else { 1.0 };
            assert_eq!(f32::from_bits(bits), expected, "element {i} of {n}");
        }
    }
}

#[test]
fn barriers_wait_for_each_of_five_signals_or_for_one() {
    let queue = Queue::new(64);
    for count in 1..=5 {
        for last in 0..count {
            let (signals, done): (Vec<_>, _) = ((0..count).map(|_| Signal::new(1)).collect(), Signal::new(1));
            let all: Vec<_> = signals.iter().collect();
            queue.barrier(BARRIER_AND, &all, Some(&done));
            for (index, signal) in signals.iter().enumerate().filter(|(index, _)| *index != last) {
                signal.store(0);
                assert_eq!(done.load(), 1, "signal {last} of {count} is open after {index}");
            }
            signals[last].store(0);
            done.wait_lt(1);
            done.store(1);
            signals.iter().for_each(|signal| signal.store(1));
            queue.barrier(BARRIER_OR, &all, Some(&done));
            assert_eq!(done.load(), 1);
            signals[last].store(0);
            done.wait_lt(1);
        }
    }
}

/// Returns the system's time, whose unit and origin are those of profiling times.
fn now() -> u64 {
    let mut time = 0u64;
    assert_eq!(hsa!(hsa_system_get_info(2 => u32, &raw mut time => *mut u64) -> u32), SUCCESS);
    time
}

/// Returns when the packet that completed a signal began and ended.
fn times(signal: &Signal) -> [u64; 2] {
    let mut times = [0u64; 2];
    let status = hsa!(hsa_amd_profiling_get_dispatch_time(gpu() => u64, signal.0 => u64, &raw mut times => *mut [u64; 2]) -> u32);
    assert_eq!(status, SUCCESS);
    times
}

#[test]
fn every_kind_of_packet_has_times_in_its_completion_signal() {
    let (spin, queue) = (kernel("spin"), Queue::new(64));
    let flag = Memory::new(64);
    flag.words()[0] = 1; // the kernel ends at once
    let kernarg = arguments(&[flag.addr]);
    for is_open in [false, true] {
        for kind in [DISPATCH, BARRIER_AND, BARRIER_OR, BARRIER_VALUE] {
            let (open, done) = (Signal::new(is_open.into()), Signal::new(1));
            let mut spans = vec![now()];
            match kind {
                DISPATCH => queue.dispatch(DISPATCH, &spin, 64, 64, kernarg.addr, Some(&done)),
                BARRIER_VALUE => queue.barrier_value(&open, 0, Some(&done)),
                _ => queue.barrier(kind, &[&open], Some(&done)),
            }
            if is_open && kind != DISPATCH {
                let opened = now();
                open.store(0);
                done.wait_lt(1);
                assert!(times(&done)[1] >= opened, "kind {kind}: ended before its signal was 0");
            }
            done.wait_lt(1);
            spans.extend(times(&done));
            spans.push(now());
            assert!(
                spans.is_sorted(),
                "kind {kind}, is_open {is_open}: began and ended outside of {spans:?}"
            );
        }
    }
}

#[test]
fn more_packets_than_places_by_four_producers_are_all_done() {
    const EACH: i64 = 1000;
    let queue = Queue::new(64);
    let done = Signal::new(4 * EACH);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..EACH).for_each(|_| queue.barrier(BARRIER_AND, &[], Some(&done))));
        }
    });
    done.wait_lt(1);
    assert_eq!(done.load(), 0);
}

#[test]
fn a_barrier_bit_waits_for_the_kernels_before_it() {
    let (spin, queue) = (kernel("spin"), Queue::new(64));
    let (stop, spun, after) = (Memory::new(64), Signal::new(1), Signal::new(1));
    let kernarg = arguments(&[stop.addr]);
    queue.dispatch(DISPATCH, &spin, 64, 64, kernarg.addr, Some(&spun));
    queue.barrier(BARRIER_AND | BARRIER_BIT, &[], Some(&after));
    let again = Queue::new(64);
    let other = Signal::new(1);
    again.barrier(BARRIER_AND, &[], Some(&other));
    other.wait_lt(1);
    assert_eq!((spun.load(), after.load()), (1, 1), "the kernel spins, and other queues go on");
    let flag = stop.words();
    // SAFETY: the word that the kernel reads.
    unsafe { AtomicU32::from_ptr(&raw mut flag[0]) }.store(1, Ordering::Release);
    after.wait_lt(1);
    assert_eq!(spun.load(), 0);
}

/// Stores the status of a queue's end.
pub(crate) unsafe extern "C" fn note(status: u32, _queue: *mut c_void, data: *mut c_void) {
    // SAFETY: the variable of the test, which outlives the queue.
    unsafe { &*data.cast::<AtomicU32>() }.store(status, Ordering::SeqCst);
}

/// Returns whether a kernel of an agent of the first kind can store a word at an address.
pub(crate) fn reaches(agent: u64, addr: u64) -> bool {
    let status = AtomicU32::new(0);
    let queue = Queue::of(agent, 64, Some(note), (&raw const status).cast_mut().cast());
    let (kernarg, done) = (arguments(&[addr, 0]), Signal::new(1));
    queue.dispatch(DISPATCH, &kernel_on(agent, "wild"), 64, 64, kernarg.addr, Some(&done));
    while done.load() > 0 && status.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    // Destroyed first: a callback may still be on its way to the status.
    drop(queue);
    match status.load(Ordering::SeqCst) {
        0 => true,
        status => {
            assert_eq!(status, MEMORY_FAULT);
            false
        }
    }
}

/// Pushes something wrong and returns the status that the queue ends with.
pub(crate) fn end_of(push: impl FnOnce(&Queue)) -> u32 {
    let status = AtomicU32::new(0);
    let queue = Queue::with(64, Some(note), (&raw const status).cast_mut().cast());
    push(&queue);
    while status.load(Ordering::SeqCst) == 0 {
        thread::yield_now();
    }
    // What comes behind is not begun.
    let done = Signal::new(1);
    queue.barrier(BARRIER_AND, &[], Some(&done));
    let other = Queue::new(64);
    let others = Signal::new(1);
    other.barrier(BARRIER_AND, &[], Some(&others));
    others.wait_lt(1);
    assert_eq!(done.load(), 1);
    status.into_inner()
}

#[test]
fn malformed_packets_end_their_queue_and_no_other() {
    for kind in [0u16, 4, 6, 7, 100, 255] {
        assert_eq!(end_of(|queue| queue.push(kind, &[0; 62])), INVALID_PACKET_FORMAT, "type {kind}");
    }
    let good = kernel("saxpy");
    let with = |change: &dyn Fn(&mut [u8; 62])| {
        let mut body = [0; 62];
        body[0] = 1;
        for (at, half) in [(2, 64u16), (4, 1), (6, 1), (10, 64), (14, 1), (18, 1)] {
            body[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        body[30..38].copy_from_slice(&good.object.to_le_bytes());
        change(&mut body);
        end_of(|queue| queue.push(DISPATCH, &body))
    };
    assert_eq!(with(&|body| body[0] = 0), INVALID_PACKET_FORMAT, "no dimensions");
    assert_eq!(with(&|body| body[2] = 0), INVALID_PACKET_FORMAT, "an empty workgroup");
    assert_eq!(with(&|body| body[10] = 0), INVALID_PACKET_FORMAT, "an empty grid");
    assert_eq!(with(&|body| body[3] = 5), INVALID_PACKET_FORMAT, "1344 work-items in a workgroup");
    assert_eq!(with(&|body| body[30..38].fill(0xab)), 0x1010, "no kernel");
    assert_eq!(with(&|body| body[29] = 1), 0x1003, "16 MiB of LDS");
    assert_eq!(with(&|body| body[25] = 1), 0x1003, "16 MiB of scratch for a lane");
}

#[test]
fn a_wild_store_is_a_memory_fault_of_its_queue() {
    let kernel = kernel("wild");
    for addr in [0, 0x1234_5678_9000, 1 << 46, u64::MAX - 4096] {
        let kernarg = arguments(&[addr, 0]);
        let status = end_of(|queue| queue.dispatch(DISPATCH, &kernel, 64, 64, kernarg.addr, None));
        assert_eq!(status, 43, "{addr:#x}");
    }
}

#[test]
fn an_unknown_instruction_ends_its_queue() {
    let (kernel, kernarg) = (kernel("refuse"), arguments(&[]));
    assert_eq!(end_of(|queue| queue.dispatch(DISPATCH, &kernel, 1, 1, kernarg.addr, None)), 42);
}

#[test]
fn a_queue_is_destroyed_with_packets_in_it() {
    let blocked = Signal::new(1);
    for _ in 0..20 {
        let queue = Queue::new(64);
        let done = Signal::new(1);
        queue.barrier(BARRIER_AND, &[&blocked], None);
        queue.barrier(BARRIER_AND, &[], Some(&done));
        drop(queue);
        assert_eq!(done.load(), 1, "it was not begun");
    }
    blocked.store(0);
}
