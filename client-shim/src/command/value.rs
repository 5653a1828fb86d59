//! Values in memory that a stream waits for and writes.

use std::sync::Arc;

use hipr_abi::{
    hipStreamMemOpWaitValue32, hipStreamMemOpWaitValue64, hipStreamMemOpWaitValueParams_t,
    hipStreamMemOpWriteValue32, hipStreamMemOpWriteValue64, hipStreamWaitValueAnd, hipStreamWaitValueEq,
    hipStreamWaitValueGte, hipStreamWaitValueNor,
};
use hipr_proto::{HipError, HipResult};

use super::{Command, HostFunction, MemoryFill, Pattern};
use crate::convert::Ptr;

/// The width of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueWidth {
    /// 32 bits.
    Word,
    /// 64 bits.
    Double,
}

/// When a wait for a value is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    AtLeast,
    Equal,
    And,
    Nor,
}

/// A wait for a value in memory (HIP API: hipStreamWaitValue64).
#[derive(Clone, Copy, Debug)]
pub struct ValueWait {
    /// The address of the value.
    pub at: Ptr,
    /// Its width.
    pub width: ValueWidth,
    value: u64,
    mask: u64,
    condition: Condition,
}

impl ValueWait {
    /// Describes a wait with the flags of HIP's functions.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no such condition.
    pub fn new(at: Ptr, width: ValueWidth, value: u64, flags: u32, mask: u64) -> HipResult<Self> {
        let condition = match flags {
            hipStreamWaitValueGte => Condition::AtLeast,
            hipStreamWaitValueEq => Condition::Equal,
            hipStreamWaitValueAnd => Condition::And,
            hipStreamWaitValueNor => Condition::Nor,
            _ => return Err(HipError::INVALID_VALUE),
        };
        let mask = if width == ValueWidth::Word { mask & u64::from(u32::MAX) } else { mask };
        Ok(Self { at, width, value, mask, condition })
    }

    /// Returns whether the wait is over when memory has this value.
    pub fn is_over(&self, found: u64) -> bool {
        let Self { value, mask, .. } = *self;
        match self.condition {
            Condition::AtLeast => found & mask >= value,
            Condition::Equal => found & mask == value,
            Condition::And => found & mask & value != 0,
            Condition::Nor => !(found | value) & mask != 0,
        }
    }
}

impl ValueWidth {
    /// Returns the number of bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Word => 4,
            Self::Double => 8,
        }
    }
}

/// A wait for a value, or a write of one.
#[derive(Clone, Copy, Debug)]
pub enum ValueOp {
    /// A wait.
    Wait(ValueWait),
    /// A write of the low bytes of a value.
    Write(Ptr, ValueWidth, u64),
}

impl ValueOp {
    /// Reads an operation of `hipStreamBatchMemOp`.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no such operation, or no address.
    pub fn of_batch(params: &hipStreamMemOpWaitValueParams_t) -> HipResult<Self> {
        let at = Ptr::from(params.address).check()?;
        let low = params.value64 & u64::from(u32::MAX);
        let wait = |width, value| ValueWait::new(at, width, value, params.flags, u64::MAX).map(Self::Wait);
        match params.operation {
            hipStreamMemOpWaitValue32 => wait(ValueWidth::Word, low),
            hipStreamMemOpWaitValue64 => wait(ValueWidth::Double, params.value64),
            hipStreamMemOpWriteValue32 => Ok(Self::Write(at, ValueWidth::Word, low)),
            hipStreamMemOpWriteValue64 => Ok(Self::Write(at, ValueWidth::Double, params.value64)),
            _ => Err(HipError::INVALID_VALUE),
        }
    }

    /// Returns the address and the number of bytes.
    pub fn place(&self) -> (Ptr, usize) {
        match self {
            Self::Wait(wait) => (wait.at, wait.width.bytes()),
            Self::Write(at, width, _) => (*at, width.bytes()),
        }
    }

    /// Returns the commands, in order, where the worker `has` the memory. A value whose words differ, or that is not aligned to them, is
    /// written by several fills, one behind the other in the stream: whoever is ordered behind them sees all of it.
    pub fn commands(&self, has: bool) -> Vec<Command> {
        let (at, width, value) = match *self {
            Self::Write(at, width, value) if has => (at, width, value),
            op => return vec![Command::Host(HostFunction::Value(op))],
        };
        let fill = |offset: usize, pattern, width| {
            Command::Fill(MemoryFill { dst: at.offset(offset), pitch: 0, pattern, width, height: 1 })
        };
        let bytes = value.to_le_bytes();
        if !at.0.is_multiple_of(4) {
            let each = bytes.iter().take(width.bytes()).enumerate();
            return each.map(|(offset, byte)| fill(offset, Pattern::Byte(*byte), 1)).collect();
        }
        match (width, [value as u32, (value >> 32) as u32]) {
            (ValueWidth::Word, [low, _]) => vec![fill(0, Pattern::Word(low), 1)],
            (ValueWidth::Double, [low, high]) if low == high => vec![fill(0, Pattern::Word(low), 2)],
            (ValueWidth::Double, [low, high]) => {
                vec![fill(0, Pattern::Word(low), 1), fill(4, Pattern::Word(high), 1)]
            }
        }
    }
}

/// The operations of a graph node (HIP API: hipBatchMemOpNodeParams).
#[derive(Clone, Debug)]
pub struct ValueOps {
    /// The operations, which are done one after the other.
    pub ops: Arc<[ValueOp]>,
    /// The context and the array that the program has named, as it gets them back.
    pub named: [Ptr; 2],
}
