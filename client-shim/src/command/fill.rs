//! Fills of memory.

use hipr_abi::hipMemsetParams;
use hipr_proto::{HipError, HipResult};

use crate::convert::Ptr;

/// The value of one element of a fill.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// One byte.
    Byte(u8),
    /// Two bytes.
    Half(u16),
    /// Four bytes.
    Word(u32),
}

impl Pattern {
    /// Returns the size of an element in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no element is empty")]
    pub fn len(self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Half(_) => 2,
            Self::Word(_) => 4,
        }
    }
}

/// A fill of memory in rows of elements.
#[derive(Clone, Copy, Debug)]
pub struct MemoryFill {
    /// Address of the first byte.
    pub dst: Ptr,
    /// Distance between the starts of two rows, in bytes.
    pub pitch: usize,
    /// The value of the elements.
    pub pattern: Pattern,
    /// Number of elements in a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
}

impl MemoryFill {
    /// Creates a fill as `hipMemsetParams` describes it.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: no such elements, or nothing to fill.
    pub fn of_node(p: &hipMemsetParams) -> HipResult<Self> {
        let pattern = match p.elementSize {
            1 => Pattern::Byte(p.value as u8),
            2 => Pattern::Half(p.value as u16),
            4 => Pattern::Word(p.value),
            _ => return Err(HipError::INVALID_VALUE),
        };
        let row_bytes = p.width.checked_mul(pattern.len()).ok_or(HipError::INVALID_VALUE)?;
        if row_bytes == 0 || p.height == 0 || (p.height > 1 && p.pitch < row_bytes) {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(Self { dst: Ptr::from(p.dst).check()?, pitch: p.pitch, pattern, width: p.width, height: p.height })
    }

    /// Returns the parameters of a graph node for this fill, which [`of_node`](Self::of_node) reads.
    pub fn node_params(self) -> hipMemsetParams {
        let Self { dst, pitch, pattern, width, height } = self;
        let value = match pattern {
            Pattern::Byte(value) => value.into(),
            Pattern::Half(value) => value.into(),
            Pattern::Word(value) => value,
        };
        hipMemsetParams {
            dst: dst.as_mut_ptr(),
            elementSize: pattern.len() as u32,
            height,
            pitch,
            value,
            width,
        }
    }

    /// Returns the size of a row in bytes.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: more than any memory has.
    pub fn row_bytes(&self) -> HipResult<usize> {
        self.width.checked_mul(self.pattern.len()).ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the distance from the first to the last byte that is filled, in bytes.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: more than any memory has.
    pub fn span(&self) -> HipResult<usize> {
        let rows = self.pitch.checked_mul(self.height.saturating_sub(1));
        rows.and_then(|rows| rows.checked_add(self.row_bytes().ok()?)).ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the address of a row.
    pub fn row(&self, y: usize) -> Ptr {
        self.dst.offset(y * self.pitch)
    }

    /// Returns whether the destination is aligned to the size of the elements.
    pub fn is_aligned(&self) -> bool {
        self.dst.0.is_multiple_of(self.pattern.len())
    }
}
