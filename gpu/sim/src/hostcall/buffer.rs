//! The buffer through which a kernel calls the host, as AMD's device library lays it out.
//!
//! A wave takes a packet from the stack of free ones and writes into it what each lane wants, in a slot of its own. It pushes the packet on the stack
//! of ready ones and sends an interrupt. Then it waits until the packet's flag is clear, reads the answers and gives the packet back. Both stacks are linked by
//! numbers of packets; the bits above a number count how often it was used.

use std::sync::Arc;

use hipr_isa::mem::{Block, Space};

/// Lanes of a wave, each of which has a slot in a packet.
const LANES: u64 = 64;
/// 64-bit words of a slot.
pub(super) const SLOT_WORDS: usize = 8;

// Offsets in the buffer: what AMD's library reads, then the signal and its mailbox, then headers and payloads.
const HEADERS: usize = 0;
const PAYLOADS: usize = 8;
const DOORBELL: usize = 16;
const FREE_STACK: usize = 24;
const READY_STACK: usize = 32;
const INDEX_MASK: usize = 40;
/// The signal, an `amd_signal_t` (HSA), and the word that it names as its mailbox.
const SIGNAL: usize = 64;
const SIGNAL_KIND: usize = SIGNAL;
const SIGNAL_MAILBOX: usize = SIGNAL + 16;
const SIGNAL_EVENT: usize = SIGNAL + 24;
const MAILBOX: usize = 128;
const FIRST_HEADER: usize = 192;

// Offsets in a packet's header.
const NEXT: usize = 0;
const ACTIVE: usize = 8;
const SERVICE: usize = 16;
const CONTROL: usize = 20;
const HEADER_BYTES: usize = 24;
/// Bit of the control word: the packet waits for its answer.
const READY: u32 = 1;

const PAYLOAD_BYTES: usize = LANES as usize * SLOT_WORDS * 8;
const PAYLOAD_ALIGN: usize = 64;

/// Number of packets that a buffer has at least: enough for most launches, and for any if fewer of its groups are executed at the same time.
pub(super) const PACKETS_MIN: u64 = 256;
/// Number of waves that no GPU exceeds.
const PACKETS_MAX: u64 = 64 << 10;

/// Returns the packets that a launch's buffer needs: one for each wave of the workgroups that may be executed at the same time.
pub(crate) fn packets(waves_per_group: u64, groups: u64) -> u64 {
    waves_per_group.max(1).saturating_mul(groups).clamp(PACKETS_MIN, PACKETS_MAX)
}

/// Returns for how many workgroups the least number of packets is enough.
pub(super) fn least_groups(waves_per_group: u64) -> u32 {
    (PACKETS_MIN / waves_per_group.max(1)).max(1) as u32
}

/// A buffer in device memory.
#[derive(Debug)]
pub(super) struct Buffer {
    block: Arc<Block>,
    /// The block as what it is changed through atomically.
    space: Space,
    packets: u64,
    /// The number of the device.
    pub(super) device: usize,
}

/// What a lane asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) service: u32,
    pub(super) slot: [u64; SLOT_WORDS],
}

fn payloads(packets: u64) -> usize {
    (FIRST_HEADER + packets as usize * HEADER_BYTES).next_multiple_of(PAYLOAD_ALIGN)
}

impl Buffer {
    /// Returns the bytes of a buffer.
    pub(super) fn len_bytes(packets: u64) -> u64 {
        (payloads(packets) + packets as usize * PAYLOAD_BYTES) as u64
    }

    /// Lays out a buffer of so many packets, more than 1, in zeroed memory of [`len_bytes`](Self::len_bytes).
    pub(super) fn new(block: Arc<Block>, packets: u64, device: usize) -> Self {
        let base = block.base();
        block.store_u64(HEADERS, base + FIRST_HEADER as u64);
        block.store_u64(PAYLOADS, base + payloads(packets) as u64);
        block.store_u64(DOORBELL, base + SIGNAL as u64);
        let mask = packets.next_power_of_two() - 1;
        block.store_u64(INDEX_MASK, mask);
        block.store_u64(SIGNAL_KIND, 1);
        block.store_u64(SIGNAL_MAILBOX, base + MAILBOX as u64);
        block.store_u32(SIGNAL_EVENT, 1);
        let space = Space::new(Arc::default(), Arc::clone(&block));
        let buffer = Self { block, space, packets, device };
        // The link to packet 0 has a count of 1, because 0 ends the stack.
        for packet in 1..packets {
            let next = if packet == 1 { mask + 1 } else { packet - 1 };
            buffer.block.store_u64(buffer.header(packet) + NEXT, next);
        }
        buffer.block.store_u64(FREE_STACK, packets - 1);
        buffer
    }

    pub(super) fn address(&self) -> u64 {
        self.block.base()
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns which packet a link names; some packet for whatever a kernel has written there.
    fn index(&self, packet: u64) -> usize {
        (packet & (self.packets.next_power_of_two() - 1)).min(self.packets - 1) as usize
    }

    fn header(&self, packet: u64) -> usize {
        FIRST_HEADER + self.index(packet) * HEADER_BYTES
    }

    fn slot(&self, packet: u64, lane: u64) -> usize {
        let payload = payloads(self.packets) + self.index(packet) * PAYLOAD_BYTES;
        payload + lane as usize * SLOT_WORDS * 8
    }

    /// Takes the packets that are ready, the last one first. A kernel may have written anything where they are linked: there are no more of them
    /// than the buffer has.
    pub(super) fn take_ready(&self) -> Vec<u64> {
        let top = self.space.fetch_update_u64(self.block.base() + READY_STACK as u64, |_| 0);
        let (mut packet, mut ready) = (top.unwrap_or(0), Vec::new());
        while packet != 0 && ready.len() < self.packets as usize {
            ready.push(packet);
            packet = self.block.load_u64(self.header(packet) + NEXT);
        }
        ready
    }

    /// Returns the lanes of a packet that ask for something, a bit for each.
    pub(super) fn active(&self, packet: u64) -> u64 {
        self.block.load_u64(self.header(packet) + ACTIVE)
    }

    /// Returns what a lane asks for.
    pub(super) fn asked(&self, packet: u64, lane: u64) -> Asked {
        let at = self.slot(packet, lane);
        let slot = std::array::from_fn(|word| self.block.load_u64(at + word * 8));
        Asked { service: self.block.load_u32(self.header(packet) + SERVICE), slot }
    }

    /// Writes the first word of a lane's answer.
    pub(super) fn answer(&self, packet: u64, lane: u64, value: u64) {
        self.block.store_u64(self.slot(packet, lane), value);
    }

    /// Lets the wave of a packet go on: it sees the answers.
    pub(super) fn done(&self, packet: u64) {
        let control = self.block.base() + (self.header(packet) + CONTROL) as u64;
        let cleared = self.space.fetch_update_u32(control, |control| control & !READY);
        debug_assert!(cleared.is_ok(), "a header is in the buffer");
    }
}

#[cfg(test)]
impl Buffer {
    /// Does what a wave does whose lane 0 asks for something.
    pub(super) fn push(&self, packet: u64, asked: &Asked) {
        let at = self.slot(packet, 0);
        asked.slot.iter().enumerate().for_each(|(word, value)| self.block.store_u64(at + word * 8, *value));
        let header = self.header(packet);
        self.block.store_u32(header + SERVICE, asked.service);
        self.block.store_u32(header + CONTROL, READY);
        self.block.store_u64(header + ACTIVE, 1);
        self.block.store_u64(header + NEXT, self.block.load_u64(READY_STACK));
        self.block.store_u64(READY_STACK, packet);
    }

    /// Returns the first word of the answer, if there is one.
    pub(super) fn answered(&self, packet: u64) -> Option<u64> {
        let is_done = self.block.load_u32(self.header(packet) + CONTROL) & READY == 0;
        is_done.then(|| self.block.load_u64(self.slot(packet, 0)))
    }
}

/// Returns the lanes of a mask, the first one first.
pub(super) fn lanes(mask: u64) -> impl Iterator<Item = u64> {
    (0..LANES).filter(move |lane| mask >> lane & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(packets: u64) -> Buffer {
        let base = hipr_isa::map::FIRST_ADDRESS;
        Buffer::new(Arc::new(Block::new(base, Buffer::len_bytes(packets)).expect("memory")), packets, 0)
    }

    #[test]
    fn each_packet_is_free_once() {
        for packets in [2, 3, 8, 256, 9728] {
            let buffer = buffer(packets);
            let (mut packet, mut seen) = (buffer.block.load_u64(FREE_STACK), vec![false; packets as usize]);
            while packet != 0 {
                let index = buffer.index(packet);
                assert!(!std::mem::replace(&mut seen[index], true), "{packets}: {index} twice");
                packet = buffer.block.load_u64(buffer.header(packet) + NEXT);
            }
            assert!(seen.iter().all(|seen| *seen), "{packets}: {seen:?}");
        }
    }

    #[test]
    fn a_stack_that_a_kernel_has_made_a_circle_ends() {
        let buffer = buffer(7);
        for packet in 0..7 {
            buffer.block.store_u64(buffer.header(packet) + NEXT, u64::MAX - packet);
        }
        buffer.block.store_u64(READY_STACK, 0x7fff_ffff_ffff_ffff);
        assert_eq!(buffer.take_ready().len(), 7);
        assert!(buffer.take_ready().is_empty());
        // Whatever their numbers are, packets and slots are in the buffer.
        assert_eq!(buffer.asked(u64::MAX, 63).service, 0);
        buffer.answer(u64::MAX, 63, 1);
        buffer.done(u64::MAX);
    }

    #[test]
    fn each_wave_that_is_executed_has_a_packet() {
        assert_eq!(packets(16, 608), 9728);
        assert_eq!(packets(1, 100), PACKETS_MIN);
        assert_eq!(packets(0, 1), PACKETS_MIN);
        assert_eq!(packets(16, u64::MAX), PACKETS_MAX);
        assert_eq!([0, 1, 4, 16].map(least_groups), [256, 256, 64, 16]);
    }
}
