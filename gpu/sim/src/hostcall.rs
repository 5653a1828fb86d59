//! Calls of kernels to the host: what they print, and memory for their heap.
//!
//! A kernel that may call has the address of a [`Buffer`] among its hidden arguments. A call ends with an interrupt, and the thread that executes
//! the wave carries out all calls that are ready. While there is more printed text than the owner of the context has taken, the waves that print
//! wait. Memory of a heap counts as that of running kernels.

mod buffer;
mod format;
mod message;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hipr_device::Printed;
use hipr_grid::lock;
use hipr_isa::mem::Block;

pub(crate) use self::buffer::packets;
use self::buffer::{Asked, Buffer, PACKETS_MIN, lanes, least_groups};
use self::message::{Messages, Piece};

/// Calls to a function of the host, whose address the kernel says.
const FUNCTION_CALL: u32 = 1;
/// A piece of a message that is printed.
const PRINTF: u32 = 2;
/// Memory: word 0 is what is given up, or 0 and word 1 says how many bytes are wanted.
const DEVICE_MEMORY: u32 = 3;

/// Bytes of the heap's own state, all zeros at first.
const HEAP_BYTES: u64 = 128 << 10;
/// Bytes of printed text that wait for the owner of the context; a text is put there whole.
const PRINTED_BYTES: usize = 1 << 20;

/// What carries out calls needs of its context.
pub(crate) trait Home {
    /// Allocates memory of a device that only kernels know of; `None` if the device, or the session, has not so much.
    fn allocate(&self, device: usize, len_bytes: u64) -> Option<Arc<Block>>;

    /// Frees such memory.
    fn free(&self, ptr: u64, len_bytes: u64);

    /// Wakes the owner of the context: there is printed text.
    fn wake(&self);
}

/// Where in its memory a launch has the address of its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferPlace {
    pub(crate) at: usize,
    /// The packets that the buffer needs.
    pub(crate) packets: u64,
    pub(crate) waves_per_group: u64,
}

/// Where in its memory a launch has the addresses of what its kernel calls the host with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Places {
    pub(crate) buffer: Option<BufferPlace>,
    /// Of the address of the heap.
    pub(crate) heap: Option<usize>,
}

impl Places {
    /// Returns whether the kernel may call the host, or has a heap.
    pub(crate) fn is_some(self) -> bool {
        self.buffer.is_some() || self.heap.is_some()
    }
}

/// What a running launch calls the host with.
#[derive(Debug)]
pub(crate) struct Calls(Arc<Buffer>);

/// The calls of a context's kernels.
#[derive(Debug, Default)]
pub(crate) struct Hostcalls {
    state: Mutex<State>,
    /// Whether there is text that the owner has not taken.
    has_printed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Buffers that no launch has.
    idle: Vec<Arc<Buffer>>,
    /// Addresses of the heaps, by device.
    heaps: BTreeMap<usize, u64>,
    /// Memory that heaps have asked for, by its address.
    taken: BTreeMap<u64, u64>,
    messages: Messages,
    /// Packets that wait until text has been taken.
    waiting: VecDeque<(Arc<Buffer>, u64)>,
    printed: Vec<Printed>,
    printed_bytes: usize,
    /// Whether the log has it that a kernel has called what there is not.
    has_complained: bool,
}

impl Hostcalls {
    /// Gives a launch that starts what its kernel calls the host with. Where there is no memory for a packet for each wave, `groups_max`, the workgroups
    /// that may be executed at the same time, becomes less; where it must not, or there is no memory at all, the kernel gets null pointers,
    /// as it need not call.
    pub(crate) fn begin(
        &self,
        home: &impl Home,
        device: usize,
        places: Places,
        memory: &Block,
        groups_max: Option<&mut u32>,
    ) -> Option<Calls> {
        if let Some(at) = places.heap
            && let Some(address) = self.heap(home, device)
        {
            memory.store_u64(at, address);
        }
        let BufferPlace { at, packets, waves_per_group } = places.buffer?;
        let buffer = self.buffer(home, device, packets).or_else(|| {
            let groups_max = groups_max?;
            *groups_max = (*groups_max).min(least_groups(waves_per_group));
            self.buffer(home, device, PACKETS_MIN)
        })?;
        memory.store_u64(at, buffer.address());
        Some(Calls(buffer))
    }

    fn buffer(&self, home: &impl Home, device: usize, packets: u64) -> Option<Arc<Buffer>> {
        let suits = |idle: &Arc<Buffer>| idle.device == device && idle.packets() >= packets;
        let mut state = lock(&self.state);
        let idle = state.idle.iter().position(suits).map(|index| state.idle.swap_remove(index));
        drop(state);
        idle.or_else(|| {
            let block = home.allocate(device, Buffer::len_bytes(packets))?;
            Some(Arc::new(Buffer::new(block, packets, device)))
        })
    }

    fn heap(&self, home: &impl Home, device: usize) -> Option<u64> {
        let mut state = lock(&self.state);
        if let Some(heap) = state.heaps.get(&device) {
            return Some(*heap);
        }
        let address = home.allocate(device, HEAP_BYTES)?.base();
        state.heaps.insert(device, address);
        Some(address)
    }

    /// Takes back what an ended launch has called with.
    pub(crate) fn end(&self, calls: &Calls) {
        let mut state = lock(&self.state);
        // A kernel that failed may have left packets anywhere.
        state.waiting.retain(|(buffer, _)| !Arc::ptr_eq(buffer, &calls.0));
        state.messages.forget(calls.0.address());
        state.idle.push(Arc::clone(&calls.0));
    }

    /// Frees the buffers that no launch has; returns whether there was one.
    pub(crate) fn release_idle(&self, home: &impl Home) -> bool {
        let idle = std::mem::take(&mut lock(&self.state).idle);
        idle.iter().for_each(|buffer| home.free(buffer.address(), Buffer::len_bytes(buffer.packets())));
        !idle.is_empty()
    }

    /// Carries out the calls of a launch that are ready.
    pub(crate) fn carry_out(&self, home: &impl Home, calls: &Calls) {
        let mut state = lock(&self.state);
        let ready = calls.0.take_ready();
        state.waiting.extend(ready.into_iter().map(|packet| (Arc::clone(&calls.0), packet)));
        let has_printed = state.go_on(home);
        self.has_printed.store(has_printed, Ordering::Release);
        drop(state);
        if has_printed {
            home.wake();
        }
    }

    /// Returns whether there is text to be taken.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed.load(Ordering::Acquire)
    }

    /// Puts text back that was taken, before there is any other.
    pub(crate) fn put_back(&self, printed: Vec<Printed>) {
        let mut state = lock(&self.state);
        self.has_printed.store(!printed.is_empty(), Ordering::Release);
        state.printed = printed;
    }

    /// Takes what kernels have printed, in order.
    pub(crate) fn take_printed(&self, home: &impl Home) -> Vec<Printed> {
        let mut state = lock(&self.state);
        state.printed_bytes = 0;
        let taken = std::mem::take(&mut state.printed);
        let has_printed = state.go_on(home);
        self.has_printed.store(has_printed, Ordering::Release);
        drop(state);
        if has_printed {
            home.wake();
        }
        taken
    }
}

impl State {
    /// Carries out calls while there is room for what they print; returns whether there is text for the owner.
    fn go_on(&mut self, home: &impl Home) -> bool {
        while self.printed_bytes < PRINTED_BYTES {
            let Some((buffer, packet)) = self.waiting.pop_front() else { break };
            for lane in lanes(buffer.active(packet)) {
                let answer = self.answer(home, &buffer, &buffer.asked(packet, lane));
                buffer.answer(packet, lane, answer);
            }
            buffer.done(packet);
        }
        !self.printed.is_empty()
    }

    fn answer(&mut self, home: &impl Home, buffer: &Buffer, asked: &Asked) -> u64 {
        match asked.service {
            PRINTF => match self.messages.take(buffer.address(), &asked.slot) {
                Piece::Part(descriptor) => descriptor,
                Piece::Whole(message) => self.print(&message),
                Piece::Lost => u64::MAX,
            },
            DEVICE_MEMORY => match asked.slot {
                [0, len_bytes, ..] => self.allocate(home, buffer.device, len_bytes),
                [ptr, ..] => {
                    if let Some(len_bytes) = self.taken.remove(&ptr) {
                        home.free(ptr, len_bytes);
                    }
                    0
                }
            },
            service => {
                if !std::mem::replace(&mut self.has_complained, true) {
                    let is_function = service == FUNCTION_CALL;
                    tracing::warn!(
                        service,
                        is_function,
                        "a kernel calls a service of the host that there is not"
                    );
                }
                0
            }
        }
    }

    /// Prints a message; returns what `printf` does.
    fn print(&mut self, message: &[u64]) -> u64 {
        let Some(format::Printed { is_error, text }) = format::print(message) else { return u64::MAX };
        let len_bytes = text.len();
        self.printed_bytes += len_bytes;
        match self.printed.last_mut().filter(|last| last.is_error == is_error) {
            Some(last) => last.text.extend_from_slice(&text),
            None if len_bytes > 0 => self.printed.push(Printed { is_error, text }),
            None => {}
        }
        len_bytes as u64
    }

    fn allocate(&mut self, home: &impl Home, device: usize, len_bytes: u64) -> u64 {
        let Some(block) = home.allocate(device, len_bytes) else { return 0 };
        self.taken.insert(block.base(), len_bytes);
        block.base()
    }
}

#[cfg(test)]
mod tests {
    use hipr_device::{Context, MemoryKind, Waker};

    use super::*;
    use crate::{Config, Gpu, SimContext};

    /// A context with so much memory, and what a launch of it calls with.
    fn context(memory_bytes: u64) -> (SimContext, Calls) {
        let gpu =
            Gpu::new(Config { memory_bytes: Some(memory_bytes), ..Config::default() }).expect("a device");
        let context = gpu.context(Waker::new(|| {}));
        let shared = context.shared();
        let block = shared.allocate(0, Buffer::len_bytes(256)).expect("memory");
        (context, Calls(Arc::new(Buffer::new(block, 256, 0))))
    }

    /// A message of one piece that prints a text of 6,000 bytes.
    fn print() -> Asked {
        let format = u64::from_le_bytes(*b"%06000d\0");
        Asked { service: PRINTF, slot: [3 | 3 << 5, 0, format, 7, 0, 0, 0, 0] }
    }

    #[test]
    fn who_prints_more_than_is_taken_waits() {
        let (context, calls) = context(1 << 30);
        let (shared, buffer) = (context.shared(), &calls.0);
        (1..=250).for_each(|packet| buffer.push(packet, &print()));
        shared.hostcalls.carry_out(&**shared, &calls);
        let done =
            |buffer: &Buffer| (1..=250).filter(|packet| buffer.answered(*packet) == Some(6000)).count();
        let first = done(buffer);
        assert_eq!(first, PRINTED_BYTES.div_ceil(6000), "a text is printed whole");
        assert!(shared.hostcalls.has_printed());
        let len_bytes = |taken: Vec<Printed>| taken.iter().map(|part| part.text.len()).sum::<usize>();
        assert_eq!(len_bytes(shared.hostcalls.take_printed(&**shared)), first * 6000);
        // What was taken makes room for those that wait.
        assert_eq!(done(buffer), 250);
        assert_eq!(len_bytes(shared.hostcalls.take_printed(&**shared)), (250 - first) * 6000);
        assert!(!shared.hostcalls.has_printed());
        // A launch that ends, because it failed, leaves nobody waiting.
        for _ in 0..2 {
            (1..=250).for_each(|packet| buffer.push(packet, &print()));
            shared.hostcalls.carry_out(&**shared, &calls);
        }
        shared.hostcalls.end(&calls);
        assert_eq!(len_bytes(shared.hostcalls.take_printed(&**shared)), first * 6000);
        assert!(!shared.hostcalls.has_printed());
    }

    #[test]
    fn heaps_have_what_the_session_leaves() {
        const MIB: u64 = 1 << 20;
        let (mut context, calls) = context(256 * MIB);
        assert!(context.limit_working(64 * MIB));
        let (shared, buffer) = (Arc::clone(context.shared()), &calls.0);
        let ask = |slot: [u64; 2]| {
            let [ptr, len_bytes] = slot;
            buffer.push(1, &Asked { service: DEVICE_MEMORY, slot: [ptr, len_bytes, 0, 0, 0, 0, 0, 0] });
            shared.hostcalls.carry_out(&*shared, &calls);
            buffer.answered(1).expect("an answer")
        };
        let slabs: Vec<u64> =
            std::iter::from_fn(|| Some(ask([0, 2 * MIB])).filter(|ptr| *ptr != 0)).collect();
        assert_eq!(slabs.len(), 31, "of 64 MiB, beside the buffer");
        assert!(slabs.iter().all(|ptr| ptr.is_multiple_of(2 * MIB)));
        assert!(!context.limit_working(40 * MIB), "they have more");
        assert_eq!(ask([slabs[0], 0]), 0);
        assert_ne!(ask([0, 2 * MIB]), 0, "what was given back is there again");
        assert_eq!(ask([0, 0]), 0);
        assert_eq!(ask([0, u64::MAX]), 0);
        // What was no heap's memory is not freed.
        let own = context.malloc(4096, MemoryKind::Device, 0).expect("memory");
        assert_eq!(ask([own, 0]), 0);
        assert!(context.write(&hipr_device::Region::flat(own, 4096), 0, &[1; 4096]).is_ok());
    }

    #[test]
    fn buffers_that_no_launch_has_make_room_for_the_program() {
        const MIB: u64 = 1 << 20;
        let (mut context, calls) = context(64 * MIB);
        let shared = Arc::clone(context.shared());
        let large = shared.hostcalls.buffer(&*shared, 0, 9728).expect("a buffer");
        shared.hostcalls.end(&Calls(large));
        shared.hostcalls.end(&calls);
        let ptr = context.malloc(60 * MIB, MemoryKind::Device, 0).expect("the memory of both");
        assert_eq!(context.malloc(60 * MIB, MemoryKind::Device, 0), Err(hipr_proto::HipError::OUT_OF_MEMORY));
        assert!(context.poll_free(ptr).is_ready());
        let large = shared.hostcalls.buffer(&*shared, 0, 9728).expect("a buffer");
        assert!(!context.limit_working(32 * MIB), "a launch has it");
        shared.hostcalls.end(&Calls(large));
        assert!(context.limit_working(32 * MIB));
    }

    #[test]
    fn services_that_there_are_not_answer() {
        let (context, calls) = context(64 << 20);
        let (shared, buffer) = (context.shared(), &calls.0);
        for service in [0, FUNCTION_CALL, 4, u32::MAX] {
            buffer.push(7, &Asked { service, slot: [u64::MAX; 8] });
            shared.hostcalls.carry_out(&**shared, &calls);
            assert_eq!(buffer.answered(7), Some(0), "{service}");
        }
    }
}
