//! Packets of queues, as the HSA Platform System Architecture and AMD's extension lay them out: pure parsing.

use hipr_grid::model::THREADS_PER_GROUP;

use crate::types::{Condition, Signal, SignalValue};

/// Size of a packet in bytes.
pub(crate) const PACKET_BYTES: u64 = 64;
/// Signals that a barrier packet can wait for.
pub(crate) const DEPENDENCIES: usize = 5;

/// `HSA_PACKET_TYPE_INVALID`: a place that nobody has filled.
pub(crate) const INVALID: u8 = 1;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Whether it begins only when all packets before it are complete.
    pub(crate) barrier: bool,
    pub(crate) work: Work,
    pub(crate) completion: Signal,
}

/// What a packet asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// To execute a kernel.
    Dispatch(DispatchPacket),
    /// To wait until all signals are 0; those with handle 0 do not count.
    BarrierAnd([Signal; DEPENDENCIES]),
    /// To wait until one signal is 0.
    BarrierOr([Signal; DEPENDENCIES]),
    /// To wait until a signal's bits have a value.
    BarrierValue {
        /// Which signal; 0 waits for nothing.
        signal: Signal,
        /// Bits that count.
        mask: SignalValue,
        condition: Condition,
        than: SignalValue,
    },
}

/// What a kernel dispatch packet says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DispatchPacket {
    /// Work-items of a workgroup.
    pub(crate) workgroup: [u16; 3],
    /// Work-items of the grid.
    pub(crate) grid: [u32; 3],
    /// Scratch of a lane in bytes.
    pub(crate) private_bytes: u32,
    /// LDS of a workgroup in bytes.
    pub(crate) group_bytes: u32,
    /// Address of the kernel descriptor.
    pub(crate) kernel_object: u64,
    /// Address of the arguments.
    pub(crate) kernarg: u64,
}

/// A packet that does not say what is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Returns a packet's type, which is stored last and atomically: all else is there when it is not [`INVALID`].
pub(crate) fn type_of(header: u16) -> u8 {
    header as u8
}

/// Reads a packet whose type is not [`INVALID`].
pub(crate) fn parse(bytes: &[u8; PACKET_BYTES as usize]) -> Result<Packet, Malformed> {
    let header = u16::from_le_bytes([bytes[0], bytes[1]]);
    let barrier = header >> 8 & 1 != 0;
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let completion = Signal(long(56));
    let dependencies = || std::array::from_fn(|index| Signal(long(8 + index * 8)));
    let work = match type_of(header) {
        0 => match bytes[2] {
            2 => {
                let condition =
                    Condition::of(word(32)).ok_or(Malformed("a condition that does not exist"))?;
                let (signal, than, mask) = (Signal(long(8)), long(16) as i64, long(24) as i64);
                Work::BarrierValue { signal, mask, condition, than }
            }
            _ => return Err(Malformed("a format of AMD's that the emulated GPUs do not have")),
        },
        2 => Work::Dispatch(dispatch(half(2), half, word, long)?),
        3 => Work::BarrierAnd(dependencies()),
        5 => Work::BarrierOr(dependencies()),
        4 => return Err(Malformed("an agent dispatch, which GPUs do not carry out")),
        _ => return Err(Malformed("a type that does not exist")),
    };
    Ok(Packet { barrier, work, completion })
}

fn dispatch(
    setup: u16,
    half: impl Fn(usize) -> u16,
    word: impl Fn(usize) -> u32,
    long: impl Fn(usize) -> u64,
) -> Result<DispatchPacket, Malformed> {
    let dimensions = usize::from(setup & 3);
    if dimensions == 0 {
        return Err(Malformed("a dispatch without dimensions"));
    }
    let mut workgroup = [half(4), half(6), half(8)];
    let mut grid = [word(12), word(16), word(20)];
    // Dimensions that the packet does not have are 1, whatever is stored for them.
    workgroup[dimensions..].fill(1);
    grid[dimensions..].fill(1);
    if workgroup.contains(&0) || grid.contains(&0) {
        return Err(Malformed("a dispatch whose grid or workgroup is empty"));
    }
    if workgroup.iter().map(|&size| u64::from(size)).product::<u64>() > u64::from(THREADS_PER_GROUP) {
        return Err(Malformed("a dispatch with too many work-items in a workgroup"));
    }
    Ok(DispatchPacket {
        workgroup,
        grid,
        private_bytes: word(24),
        group_bytes: word(28),
        kernel_object: long(32),
        kernarg: long(40),
    })
}
