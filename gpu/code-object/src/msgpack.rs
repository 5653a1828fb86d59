//! A MessagePack reader that builds no tree: values that are not needed are skipped without recursion, so that neither
//! depth nor counts of the input cost memory.

use rmp::Marker;

use crate::error::MetadataError;

/// A position in a note.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

type Result<T> = std::result::Result<T, MetadataError>;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let len = usize::try_from(len).map_err(|_| MetadataError::Truncated)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(MetadataError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads a big-endian number of `len` bytes, at most 8.
    fn number(&mut self, len: u64) -> Result<u64> {
        Ok(self.take(len)?.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte)))
    }

    fn marker(&mut self) -> Result<Marker> {
        Ok(Marker::from_u8(self.number(1)? as u8))
    }

    /// Reads the header of a map; returns the number of its pairs.
    pub(crate) fn map(&mut self) -> Result<u64> {
        match self.marker()? {
            Marker::FixMap(len) => Ok(u64::from(len)),
            Marker::Map16 => self.number(2),
            Marker::Map32 => self.number(4),
            _ => Err(MetadataError::Kind("a map")),
        }
    }

    /// Reads the header of an array; returns the number of its items.
    pub(crate) fn array(&mut self) -> Result<u64> {
        match self.marker()? {
            Marker::FixArray(len) => Ok(u64::from(len)),
            Marker::Array16 => self.number(2),
            Marker::Array32 => self.number(4),
            _ => Err(MetadataError::Kind("an array")),
        }
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        let len = match self.marker()? {
            Marker::FixStr(len) => u64::from(len),
            Marker::Str8 => self.number(1)?,
            Marker::Str16 => self.number(2)?,
            Marker::Str32 => self.number(4)?,
            _ => return Err(MetadataError::Kind("a text")),
        };
        std::str::from_utf8(self.take(len)?).map_err(|_| MetadataError::Kind("a text in UTF-8"))
    }

    /// Reads a number that is not negative.
    pub(crate) fn unsigned(&mut self) -> Result<u64> {
        let (value, bits) = match self.marker()? {
            Marker::FixPos(value) => return Ok(u64::from(value)),
            Marker::U8 => return self.number(1),
            Marker::U16 => return self.number(2),
            Marker::U32 => return self.number(4),
            Marker::U64 => return self.number(8),
            Marker::I8 => (self.number(1)?, 8),
            Marker::I16 => (self.number(2)?, 16),
            Marker::I32 => (self.number(4)?, 32),
            Marker::I64 => (self.number(8)?, 64),
            _ => return Err(MetadataError::Kind("a number that is not negative")),
        };
        if (value >> (bits - 1)) & 1 == 1 {
            return Err(MetadataError::Kind("a number that is not negative"));
        }
        Ok(value)
    }

    pub(crate) fn narrow(&mut self) -> Result<u32> {
        u32::try_from(self.unsigned()?).map_err(|_| MetadataError::Kind("a number below 2^32"))
    }

    /// Reads a boolean; assemblers also write 0 and 1.
    pub(crate) fn flag(&mut self) -> Result<bool> {
        let mut ahead = self.clone();
        match ahead.marker()? {
            marker @ (Marker::True | Marker::False) => {
                *self = ahead;
                Ok(marker == Marker::True)
            }
            _ => Ok(self.unsigned()? != 0),
        }
    }

    /// Skips one value with everything in it.
    pub(crate) fn skip(&mut self) -> Result<()> {
        let mut pending = 1u64;
        while pending > 0 {
            pending -= 1;
            let (bytes, values) = match self.marker()? {
                Marker::FixPos(_) | Marker::FixNeg(_) | Marker::Null | Marker::True | Marker::False => (0, 0),
                Marker::U8 | Marker::I8 => (1, 0),
                Marker::U16 | Marker::I16 | Marker::FixExt1 => (2, 0),
                Marker::FixExt2 => (3, 0),
                Marker::U32 | Marker::I32 | Marker::F32 => (4, 0),
                Marker::FixExt4 => (5, 0),
                Marker::U64 | Marker::I64 | Marker::F64 => (8, 0),
                Marker::FixExt8 => (9, 0),
                Marker::FixExt16 => (17, 0),
                Marker::FixStr(len) => (u64::from(len), 0),
                Marker::Str8 | Marker::Bin8 => (self.number(1)?, 0),
                Marker::Str16 | Marker::Bin16 => (self.number(2)?, 0),
                Marker::Str32 | Marker::Bin32 => (self.number(4)?, 0),
                Marker::Ext8 => (self.number(1)? + 1, 0),
                Marker::Ext16 => (self.number(2)? + 1, 0),
                Marker::Ext32 => (self.number(4)? + 1, 0),
                Marker::FixArray(len) => (0, u64::from(len)),
                Marker::Array16 => (0, self.number(2)?),
                Marker::Array32 => (0, self.number(4)?),
                Marker::FixMap(len) => (0, 2 * u64::from(len)),
                Marker::Map16 => (0, 2 * self.number(2)?),
                Marker::Map32 => (0, 2 * self.number(4)?),
                Marker::Reserved => return Err(MetadataError::Kind("MessagePack")),
            };
            self.take(bytes)?;
            // Each pending value takes a byte at least, so a count that lies ends with the input.
            pending = pending.saturating_add(values);
        }
        Ok(())
    }
}
