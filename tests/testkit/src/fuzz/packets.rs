//! A fuzz target that writes packets into a queue of HSA's and compares what becomes of them with a model: a fold over the packets, in order.

use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use hsa_runtime64::rig::{self, PACKETS, Rig};

use crate::choices::Choices;

type Packet = [u8; 64];

/// Signals of a world.
const SIGNALS: usize = 6;
/// Most work-items of a dispatch, so that a world stays short.
const ITEMS_MAX: u64 = 4096;
/// How long the queue may take for what it can do; it takes microseconds.
const TIMEOUT: Duration = Duration::from_secs(20);

/// `hsa_status_t`: what queues end with.
const MEMORY_FAULT: u32 = 43;
const INVALID_ALLOCATION: u32 = 0x1003;
const INVALID_PACKET_FORMAT: u32 = 0x1009;
const INVALID_CODE_OBJECT: u32 = 0x1010;
const ILLEGAL_INSTRUCTION: u32 = 42;

/// `hsa_packet_type_t`.
const VENDOR: u8 = 0;
const INVALID: u8 = 1;
const DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;
const BARRIER_OR: u8 = 5;
/// The high byte of a header whose packet waits for the kernels before it.
const BARRIER_BIT: u8 = 1;
/// `HSA_AMD_PACKET_TYPE_BARRIER_VALUE`.
const BARRIER_VALUE: u8 = 2;

/// Most LDS of a workgroup in bytes.
const LDS_MAX_BYTES: u32 = 64 << 10;

static IMAGE: &[u8] = include_bytes!("../../../../gpu/sim/tests/data/kernels-O3.co");
/// Adds 1 to the word at its first argument for each work-item.
static COUNT: LazyLock<u64> = LazyLock::new(|| rig::kernel(IMAGE, c"count.kd"));
/// Has an instruction that does not exist.
static REFUSE: LazyLock<u64> = LazyLock::new(|| rig::kernel(IMAGE, c"refuse.kd"));

/// Places in the page of all worlds, in 64-bit words: the kernel's counters.
const TOTAL: usize = 64;
const WIDE: usize = 72;

/// Writes any packets but such that execute a kernel into a queue; or kernels with barriers that wait for them.
pub fn packets(data: &[u8]) {
    let mut choices = Choices::new(data);
    if choices.one_in(2) { kernels(&mut choices) } else { exact(&mut choices) }
}

fn u16_at(packet: &Packet, at: usize) -> u16 {
    u16::from_le_bytes([packet[at], packet[at + 1]])
}

fn u32_at(packet: &Packet, at: usize) -> u32 {
    u32::from(u16_at(packet, at)) | u32::from(u16_at(packet, at + 2)) << 16
}

fn u64_at(packet: &Packet, at: usize) -> u64 {
    u64::from(u32_at(packet, at)) | u64::from(u32_at(packet, at + 4)) << 32
}

fn put(packet: &mut Packet, at: usize, bytes: &[u8]) {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
}

/// What a right queue does with its packets, one after the other.
struct Model {
    handles: [u64; SIGNALS],
    values: [i64; SIGNALS],
    packets: Vec<Packet>,
    /// Number of the next packet.
    next: usize,
    ended: Option<u32>,
    /// Work-items that the counting kernel was executed for.
    counted: u64,
}

impl Model {
    fn value(&self, handle: u64) -> Option<i64> {
        let index = self.handles.iter().position(|&known| known == handle)?;
        Some(self.values[index])
    }

    /// Takes packets until there are none, one waits, or the queue has ended.
    fn run(&mut self) {
        while self.ended.is_none()
            && let Some(&packet) = self.packets.get(self.next)
        {
            // What does not exist is not waited for.
            let is_zero = |handle: u64| self.value(handle).is_none_or(|value| value == 0);
            let mut named = (8..48).step_by(8).map(|at| u64_at(&packet, at)).filter(|&handle| handle != 0);
            let goes_on = match packet[0] {
                INVALID => return,
                VENDOR if packet[2] == BARRIER_VALUE => match self.value_barrier(&packet) {
                    Ok(goes_on) => goes_on,
                    Err(status) => return self.ended = Some(status),
                },
                DISPATCH => match dispatch(&packet) {
                    Ok(items) => {
                        self.counted += items;
                        true
                    }
                    Err(status) => return self.ended = Some(status),
                },
                BARRIER_AND => named.all(is_zero),
                BARRIER_OR => {
                    let named: Vec<u64> = named.collect();
                    named.is_empty() || named.into_iter().any(is_zero)
                }
                _ => return self.ended = Some(INVALID_PACKET_FORMAT),
            };
            if !goes_on {
                return;
            }
            self.next += 1;
            if let Some(index) = self.handles.iter().position(|&known| known == u64_at(&packet, 56)) {
                self.values[index] = self.values[index].wrapping_sub(1);
            }
        }
    }

    fn value_barrier(&self, packet: &Packet) -> Result<bool, u32> {
        let [than, mask] = [16, 24].map(|at| u64_at(packet, at) as i64);
        let condition: fn(i64, i64) -> bool = match u32_at(packet, 32) {
            0 => |value, than| value == than,
            1 => |value, than| value != than,
            2 => |value, than| value < than,
            3 => |value, than| value >= than,
            _ => return Err(INVALID_PACKET_FORMAT),
        };
        Ok(self.value(u64_at(packet, 8)).is_none_or(|value| condition(value & mask, than)))
    }
}

/// Returns the work-items of a dispatch, or the status that it ends its queue with.
fn dispatch(packet: &Packet) -> Result<u64, u32> {
    let dimensions = usize::from(packet[2] & 3);
    let size = |at: usize, step: usize, dimension: usize| match step {
        _ if dimension >= dimensions => 1,
        2 => u64::from(u16_at(packet, at + dimension * step)),
        _ => u64::from(u32_at(packet, at + dimension * step)),
    };
    let product = |at: usize, step: usize| -> u64 {
        (0..3).map(|dimension| size(at, step, dimension)).fold(1, u64::saturating_mul)
    };
    let (group, grid) = (product(4, 2), product(12, 4));
    if dimensions == 0 || grid == 0 || group == 0 || group > 1024 {
        return Err(INVALID_PACKET_FORMAT);
    }
    let kernel = u64_at(packet, 32);
    if kernel == *REFUSE {
        return Err(ILLEGAL_INSTRUCTION);
    }
    if kernel != *COUNT {
        return Err(INVALID_CODE_OBJECT);
    }
    if u32_at(packet, 28) > LDS_MAX_BYTES {
        return Err(INVALID_ALLOCATION);
    }
    if u64_at(packet, 40) == 0 {
        return Err(MEMORY_FAULT);
    }
    Ok(grid)
}

/// A queue and its model.
struct World {
    rig: Rig,
    model: Model,
    /// What the counter was before.
    counted_before: u64,
}

fn counter() -> u64 {
    // The kernel adds to a word of 32 bits.
    rig::memory().1[TOTAL].load(Ordering::SeqCst) & 0xffff_ffff
}

impl World {
    fn new(values: [i64; SIGNALS]) -> Self {
        let rig = Rig::new(&values);
        let handles = std::array::from_fn(|index| rig.signal(index));
        let model = Model { handles, values, packets: Vec::new(), next: 0, ended: None, counted: 0 };
        Self { rig, model, counted_before: counter() }
    }

    fn push(&mut self, packet: Packet) {
        assert!(self.rig.push(&packet), "there are more places than packets");
        self.model.packets.push(packet);
    }

    /// Stores a value, unless the queue waits for several signals to be 0 and this is one of them: whether each was at 0 once is enough, so
    /// that it would matter when the queue has looked.
    fn store(&mut self, index: usize, value: i64) -> bool {
        let waiting = self.model.packets.get(self.model.next).filter(|packet| packet[0] == BARRIER_AND);
        let named =
            |packet: &Packet| (8..48).step_by(8).any(|at| u64_at(packet, at) == self.model.handles[index]);
        if value != 0 && waiting.is_some_and(named) {
            return false;
        }
        self.rig.store(index, value);
        self.model.values[index] = value;
        true
    }

    /// Waits until the queue has done what the model says.
    fn settle(&mut self) {
        self.model.run();
        let begun = Instant::now();
        let model = &self.model;
        loop {
            let values: [i64; SIGNALS] = std::array::from_fn(|index| self.rig.load(index));
            let counted = counter().wrapping_sub(self.counted_before) & 0xffff_ffff;
            let found = (self.rig.ended(), self.rig.read_index(), values, counted);
            let expected = (model.ended, model.next as u64, model.values, model.counted & 0xffff_ffff);
            // The index of a packet whose kernel was begun is no matter when the kernel fails.
            let is_fault = matches!(model.ended, Some(MEMORY_FAULT | ILLEGAL_INSTRUCTION));
            if found == expected || (is_fault && found.0 == expected.0) {
                return;
            }
            assert!(begun.elapsed() < TIMEOUT, "the queue: {found:?}, the model: {expected:?}");
            thread::sleep(Duration::from_micros(20));
        }
    }
}

/// Draws a handle: of a signal, of none, or of nothing.
fn handle(choices: &mut Choices<'_>, world: &World) -> u64 {
    match choices.below(10) {
        0 => 0,
        1 => *choices.pick(&[1, 64, u64::MAX, !63, 1 << 47]).expect("not empty"),
        2 => world.rig.signal(choices.index(SIGNALS)) + choices.between(1, 63),
        _ => world.rig.signal(choices.index(SIGNALS)),
    }
}

fn any_value(choices: &mut Choices<'_>) -> i64 {
    *choices.pick(&[1, 0, -1, 2, i64::MAX, i64::MIN, 0x100]).expect("not empty")
}

/// Draws a packet of any type, mostly well-formed; a dispatch names no kernel that is executed.
fn any_packet(choices: &mut Choices<'_>, world: &World) -> Packet {
    let mut packet = [0; 64];
    packet[0] =
        *choices.pick(&[BARRIER_AND, BARRIER_OR, VENDOR, DISPATCH, INVALID, 4, 6, 255]).expect("not empty");
    packet[1] = choices.below(256) as u8;
    match packet[0] {
        VENDOR => {
            packet[2] = if choices.one_in(16) { choices.below(256) as u8 } else { BARRIER_VALUE };
            put(&mut packet, 8, &handle(choices, world).to_le_bytes());
            put(&mut packet, 16, &any_value(choices).to_le_bytes());
            put(&mut packet, 24, &if choices.one_in(4) { any_value(choices) } else { !0 }.to_le_bytes());
            put(&mut packet, 32, &(choices.below(5) as u32).to_le_bytes());
        }
        DISPATCH => {
            packet[2] = choices.below(5) as u8;
            for at in [4, 6, 8] {
                let size = *choices.pick(&[1u16, 0, 64, 1024, 33, u16::MAX]).expect("not empty");
                put(&mut packet, at, &size.to_le_bytes());
            }
            for at in [12, 16, 20] {
                let size = *choices.pick(&[1u32, 0, 64, u32::MAX]).expect("not empty");
                put(&mut packet, at, &size.to_le_bytes());
            }
            let object = *choices.pick(&[0, 1, *COUNT + 4, u64::MAX, 1 << 47]).expect("not empty");
            put(&mut packet, 32, &object.to_le_bytes());
        }
        _ => {
            for at in (8..48).step_by(8).take(choices.index(6)) {
                put(&mut packet, at, &handle(choices, world).to_le_bytes());
            }
        }
    }
    put(&mut packet, 56, &handle(choices, world).to_le_bytes());
    if choices.one_in(8) {
        let (at, byte) = (choices.index(64), choices.below(256) as u8);
        // A changed byte may not make a kernel of what is none: that is executed without the queue waiting for it.
        if !(32..40).contains(&at) || packet[0] != DISPATCH {
            packet[at] = byte;
        }
    }
    packet
}

/// Writes packets that are done one after the other, so that the model says after each step how everything is.
fn exact(choices: &mut Choices<'_>) {
    let values = std::array::from_fn(|_| any_value(choices));
    let mut world = World::new(values);
    while !choices.is_exhausted() && (world.model.packets.len() as u64) < PACKETS {
        if choices.one_in(4) {
            let (index, value) = (choices.index(SIGNALS), any_value(choices));
            world.settle();
            world.store(index, value);
        } else {
            let packet = any_packet(choices, &world);
            world.push(packet);
        }
    }
    world.settle();
}

/// Draws a dispatch of the counting kernel.
fn count(choices: &mut Choices<'_>) -> Packet {
    let mut packet = [0; 64];
    packet[0] = DISPATCH;
    let dimensions = choices.between(1, 3) as usize;
    packet[2] = dimensions as u8;
    let (mut group, mut grid) = (1024, ITEMS_MAX);
    for dimension in 0..dimensions {
        let (of_group, of_grid) = (choices.between(1, group.min(96)), choices.between(1, grid.min(700)));
        (group, grid) = (group / of_group, grid / of_grid);
        put(&mut packet, 4 + dimension * 2, &(of_group as u16).to_le_bytes());
        put(&mut packet, 12 + dimension * 4, &(of_grid as u32).to_le_bytes());
    }
    put(&mut packet, 32, &COUNT.to_le_bytes());
    put(&mut packet, 40, &rig::memory().0.to_le_bytes());
    packet
}

/// Writes kernels, which run beside each other, and barriers. Each signal goes from 1 to 0 once between two stores of the program, so that
/// it does not matter when a kernel ends.
fn kernels(choices: &mut Choices<'_>) {
    let (page, words) = rig::memory();
    for (word, value) in words.iter().zip([page + TOTAL as u64 * 8, page + WIDE as u64 * 8, 1]) {
        word.store(value, Ordering::SeqCst);
    }
    let mut world = World::new([1; SIGNALS]);
    let mut is_used = [false; SIGNALS];
    while !choices.is_exhausted() && (world.model.packets.len() as u64) < PACKETS {
        if choices.one_in(8) {
            world.settle();
            let index = choices.index(SIGNALS);
            let waiting = &world.model.packets[world.model.next..];
            if waiting.iter().all(|packet| u64_at(packet, 56) != world.rig.signal(index)) {
                let value = choices.below(2) as i64;
                if world.store(index, value) {
                    is_used[index] = value == 0;
                }
            }
            continue;
        }
        let mut packet = match choices.below(4) {
            0 => {
                let mut packet = [0; 64];
                packet[0] = *choices.pick(&[BARRIER_AND, BARRIER_OR]).expect("not empty");
                for at in (8..48).step_by(8).take(choices.index(6)) {
                    put(&mut packet, at, &world.rig.signal(choices.index(SIGNALS)).to_le_bytes());
                }
                packet
            }
            1 => {
                let mut packet = [0; 64];
                packet[2] = BARRIER_VALUE;
                put(&mut packet, 8, &world.rig.signal(choices.index(SIGNALS)).to_le_bytes());
                put(&mut packet, 16, &1i64.to_le_bytes());
                put(&mut packet, 24, &u64::MAX.to_le_bytes());
                put(&mut packet, 32, &2u32.to_le_bytes());
                packet
            }
            _ => count(choices),
        };
        packet[1] = if choices.one_in(2) { BARRIER_BIT } else { 0 };
        let index = choices.index(SIGNALS + 1);
        if index < SIGNALS && !std::mem::replace(&mut is_used[index], true) {
            put(&mut packet, 56, &world.rig.signal(index).to_le_bytes());
        }
        world.push(packet);
    }
    world.settle();
    if world.model.next == world.model.packets.len()
        && (world.model.next as u64) < PACKETS
        && choices.one_in(2)
    {
        fail(choices, &mut world);
    }
}

/// Ends the queue by a kernel that fails.
fn fail(choices: &mut Choices<'_>, world: &mut World) {
    let mut packet = count(choices);
    match choices.below(3) {
        0 => put(&mut packet, 40, &[0; 8]),
        1 => put(&mut packet, 32, &REFUSE.to_le_bytes()),
        _ => put(&mut packet, 28, &(LDS_MAX_BYTES + 1).to_le_bytes()),
    }
    world.push(packet);
    world.settle();
}
