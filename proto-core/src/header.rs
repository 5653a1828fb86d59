//! The header of 24 bytes before every message.

use crate::error::Fatal;
use crate::op::Opcode;
use crate::wire::{Sink, Wire, WireError, split};

/// `"HIPR"` as a number; on the wire its bytes are `R P I H`.
pub const MAGIC: u32 = 0x4849_5052;
/// HIPR 1.0: major version in the high byte, minor in the low.
pub const VERSION: u16 = 0x0100;

/// Set in responses only.
pub const FLAG_RESPONSE: u32 = 0x01;
/// Set in a response that carries an error: exactly when its `error_code` is not 0.
pub const FLAG_ERROR: u32 = 0x02;
/// Set when bulk bytes end the message.
pub const FLAG_HAS_INLINE_DATA: u32 = 0x04;
/// Set in a request that must not be answered.
pub const FLAG_NO_REPLY: u32 = 0x08;

/// A message's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// [`MAGIC`] in every valid message.
    pub magic: u32,
    /// Protocol version; all minor versions of [`VERSION`]'s major version are accepted.
    pub version: u16,
    /// The operation that is requested or answered.
    pub op: Opcode,
    /// The client's number for the request, repeated in the response.
    pub request_id: u32,
    /// Bytes after the header, bulk bytes included.
    pub payload_length: u64,
    /// `FLAG_*` bits; unknown bits are ignored.
    pub flags: u32,
}

impl Header {
    /// Size of a header in bytes.
    pub const SIZE: usize = 24;

    /// Creates a header with this crate's magic and version.
    pub fn new(op: Opcode, request_id: u32, payload_length: u64, flags: u32) -> Self {
        Self { magic: MAGIC, version: VERSION, op, request_id, payload_length, flags }
    }

    /// Returns whether all bits of `flag` are set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag == flag
    }

    /// Appends the encoded header to `out`.
    pub fn put(&self, out: &mut impl Sink) {
        out.put_bytes(&self.to_bytes());
    }

    /// Returns the encoded header.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.op.0.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.request_id.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.payload_length.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.flags.to_le_bytes());
        bytes
    }

    /// Decodes a header from the front of `input` without checking its fields.
    ///
    /// # Errors
    /// [`WireError::Short`] when fewer than 24 bytes are there.
    #[inline]
    pub fn take(input: &mut &[u8]) -> Result<Self, WireError> {
        let mut fields = split(input, Self::SIZE)?;
        Ok(Self {
            magic: Wire::take(&mut fields)?,
            version: Wire::take(&mut fields)?,
            op: Opcode(Wire::take(&mut fields)?),
            request_id: Wire::take(&mut fields)?,
            payload_length: Wire::take(&mut fields)?,
            flags: Wire::take(&mut fields)?,
        })
    }

    /// Checks that the rest of the message can be read (HIPR 1.0, rule 3).
    ///
    /// # Errors
    /// A wrong magic, another major version, or a payload longer than `payload_max` bytes.
    pub(crate) fn check(&self, payload_max: u64) -> Result<(), Fatal> {
        if self.magic != MAGIC {
            return Err(Fatal::BadMagic { magic: self.magic });
        }
        if self.version >> 8 != VERSION >> 8 {
            return Err(Fatal::BadVersion { version: self.version });
        }
        if self.payload_length > payload_max {
            return Err(Fatal::TooLong { op: self.op, length: self.payload_length, max: payload_max });
        }
        Ok(())
    }
}
