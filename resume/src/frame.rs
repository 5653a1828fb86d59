//! The head of a frame.

/// Length of a frame's head.
pub const HEADER_BYTES: usize = 8;
/// Maximum number of a stream's bytes in one frame.
pub const FRAME_MAX_BYTES: usize = 256 << 10;

/// The bit of the first word that marks the last frame of a stream.
const LAST: u32 = 1 << 31;

/// The head of a frame, behind which are its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of bytes.
    pub len: u32,
    /// Whether the stream ends behind them.
    pub is_last: bool,
    /// The offset up to which the sender has taken the other direction's bytes: its lower 32 bits.
    pub taken: u32,
}

impl Header {
    /// Returns the head's bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let word = self.len | if self.is_last { LAST } else { 0 };
        let ([a, b, c, d], [e, f, g, h]) = (word.to_le_bytes(), self.taken.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// Reads a head; `None` if its frame is longer than one may be.
    pub fn from_bytes(bytes: [u8; HEADER_BYTES]) -> Option<Self> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let word = u32::from_le_bytes([a, b, c, d]);
        let header =
            Self { len: word & !LAST, is_last: word & LAST != 0, taken: u32::from_le_bytes([e, f, g, h]) };
        (header.len as usize <= FRAME_MAX_BYTES).then_some(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back() {
        for len in [0, 1, FRAME_MAX_BYTES as u32] {
            for is_last in [false, true] {
                for taken in [0, 1, u32::MAX] {
                    let header = Header { len, is_last, taken };
                    assert_eq!(Header::from_bytes(header.to_bytes()), Some(header));
                }
            }
        }
        assert_eq!(Header { len: 0x102, is_last: true, taken: 3 }.to_bytes(), [2, 1, 0, 0x80, 3, 0, 0, 0]);
    }

    #[test]
    fn a_frame_that_is_too_long_is_none() {
        for len in [FRAME_MAX_BYTES as u32 + 1, LAST - 1] {
            assert_eq!(Header::from_bytes(Header { len, is_last: false, taken: 0 }.to_bytes()), None);
        }
    }
}
