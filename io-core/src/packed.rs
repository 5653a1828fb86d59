//! Packed bytes: one frame of zstd for each message, and no dictionary, so that no message tells anything of another.
//!
//! Both ends pack and unpack here. What unpacks knows how many bytes there have to be: it makes no more, and needs no more memory than a
//! window and what it is given to write to.

use std::fmt;

use hipr_proto::op::{PACKED_WINDOW_LOG, packed_worth_bytes};
use zstd::zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

/// The level of zstd: its fastest but one, as what is saved has to be worth more than the time.
const LEVEL: i32 = 1;
/// Room in bytes that is made for packed bytes at a time.
const ROOM_BYTES: usize = 64 << 10;
/// Bytes that are unpacked at a time where all are wanted.
const STEP_BYTES: usize = 1 << 20;
/// Size in bytes of a sample.
const SAMPLE_BYTES: usize = 16 << 10;

/// The reason why bytes could not be packed or unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackError {
    /// They are no frame of the length that was expected.
    Damaged,
    /// There is no memory.
    Memory,
}

/// Packs bytes.
pub struct Packer(CCtx<'static>);

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    /// Maximum memory of a packer, in bytes.
    pub const MAX_BYTES: usize = 3 << 19;

    /// Creates a packer.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new() -> Result<Self, PackError> {
        let mut context = CCtx::try_create().ok_or(PackError::Memory)?;
        context.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(|_| PackError::Memory)?;
        Ok(Self(context))
    }

    /// Packs `bytes` into `packed`, whose content it replaces; returns whether that pays. If not, `packed` has no meaning.
    pub fn pack(&mut self, bytes: &[u8], packed: &mut Vec<u8>) -> bool {
        let worth_bytes = packed_worth_bytes(bytes.len());
        packed.clear();
        // zstd gives up where the room ends.
        packed.try_reserve_exact(worth_bytes).is_ok()
            && self.0.compress2(packed, bytes).is_ok()
            && packed.len() <= worth_bytes
    }

    /// Returns whether it is likely that packing pays, by a sample from the middle of the bytes.
    pub fn is_worth(&mut self, bytes: &[u8], scratch: &mut Vec<u8>) -> bool {
        let len = bytes.len().min(SAMPLE_BYTES);
        let from = (bytes.len() - len) / 2;
        bytes.get(from..from + len).is_some_and(|sample| self.pack(sample, scratch))
    }

    /// Begins a frame of `length` bytes, which come in pieces.
    ///
    /// # Errors
    /// There is no memory.
    pub fn begin(&mut self, length: u64) -> Result<(), PackError> {
        let begun = self.0.reset(ResetDirective::SessionOnly);
        begun.and_then(|_| self.0.set_pledged_src_size(Some(length))).map_err(|_| PackError::Memory)?;
        Ok(())
    }

    /// Appends a piece to the frame, as far as it is complete, to `packed`.
    ///
    /// # Errors
    /// There is no memory.
    pub fn push(&mut self, piece: &[u8], packed: &mut Vec<u8>) -> Result<(), PackError> {
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            packed.try_reserve(ROOM_BYTES).map_err(|_| PackError::Memory)?;
            let at = packed.len();
            let mut output = OutBuffer::around_pos(packed, at);
            self.0.compress_stream(&mut output, &mut input).map_err(|_| PackError::Memory)?;
        }
        Ok(())
    }

    /// Ends the frame.
    ///
    /// # Errors
    /// There is no memory, or the pieces were not as long as announced.
    pub fn finish(&mut self, packed: &mut Vec<u8>) -> Result<(), PackError> {
        loop {
            packed.try_reserve(ROOM_BYTES).map_err(|_| PackError::Memory)?;
            let at = packed.len();
            let mut output = OutBuffer::around_pos(packed, at);
            if self.0.end_stream(&mut output).map_err(|_| PackError::Memory)? == 0 {
                return Ok(());
            }
        }
    }
}

/// Unpacks a frame of a length that is known, piece by piece.
pub struct Unpacker {
    context: DCtx<'static>,
    left: u64,
    is_begun: bool,
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacker").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Unpacker {
    /// Maximum memory of an unpacker, in bytes, its window included.
    pub const MAX_BYTES: usize = 3 << 19;

    /// Creates what unpacks a frame to `length` bytes.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(length: u64) -> Result<Self, PackError> {
        let mut context = DCtx::try_create().ok_or(PackError::Memory)?;
        context.set_parameter(DParameter::WindowLogMax(PACKED_WINDOW_LOG)).map_err(|_| PackError::Memory)?;
        Ok(Self { context, left: length, is_begun: false })
    }

    /// Returns how many bytes are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Unpacks bytes from the front of `packed`, which holds all that has not been unpacked, into `out`; returns how many: all for which
    /// there is room, or all that were left. The frame has been checked to its end when none is left.
    ///
    /// # Errors
    /// The frame is damaged, needs a larger window than it may, or is longer or shorter than expected, or bytes follow it.
    pub fn unpack(&mut self, packed: &mut &[u8], out: &mut [u8]) -> Result<usize, PackError> {
        if !self.is_begun {
            // Given a whole frame and room for all its bytes, zstd takes a shorter way, which does not look at the window and does not notice
            // the same damage. It never sees a whole frame if the first byte comes alone.
            let mut first = InBuffer::around(packed.get(..1).unwrap_or_default());
            self.step(&mut OutBuffer::around(&mut [][..]), &mut first)?;
            *packed = packed.get(first.pos()..).unwrap_or_default();
            self.is_begun = true;
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let out = out.get_mut(..room).unwrap_or_default();
        let mut input = InBuffer::around(packed);
        let mut output = OutBuffer::around(out);
        let mut is_over = false;
        while output.pos() < room && !is_over {
            is_over = self.step(&mut output, &mut input)?;
        }
        let len = output.pos();
        self.left -= len as u64;
        // The last bytes may be there before the end of the frame is.
        while self.left == 0 && !is_over {
            let mut beyond = [0];
            let mut output = OutBuffer::around(&mut beyond[..]);
            is_over = self.step(&mut output, &mut input)?;
            if output.pos() > 0 {
                return Err(PackError::Damaged);
            }
        }
        let rest = packed.get(input.pos()..).unwrap_or_default();
        if is_over && (self.left > 0 || !rest.is_empty()) {
            return Err(PackError::Damaged);
        }
        *packed = rest;
        Ok(len)
    }

    /// Unpacks some bytes; returns whether the frame is over.
    fn step(
        &mut self,
        output: &mut OutBuffer<'_, [u8]>,
        input: &mut InBuffer<'_>,
    ) -> Result<bool, PackError> {
        let before = (output.pos(), input.pos());
        let wanted = self.context.decompress_stream(output, input).map_err(|_| PackError::Damaged)?;
        if wanted > 0 && (output.pos(), input.pos()) == before {
            // It is cut off.
            return Err(PackError::Damaged);
        }
        Ok(wanted == 0)
    }
}

/// Unpacks a frame into `out`, all of it.
///
/// # Errors
/// The frame is not one of this length, or there is no memory.
pub fn unpack_into(mut packed: &[u8], out: &mut [u8]) -> Result<(), PackError> {
    Unpacker::new(out.len() as u64)?.unpack(&mut packed, out).map(drop)
}

/// Unpacks a frame of `length` bytes; the memory for them is taken as they come.
///
/// # Errors
/// The frame is not one of this length, or there is no memory.
pub fn unpack_all(mut packed: &[u8], length: u64) -> Result<Vec<u8>, PackError> {
    let mut unpacker = Unpacker::new(length)?;
    let mut bytes = Vec::new();
    loop {
        let step = usize::try_from(unpacker.left()).unwrap_or(usize::MAX).min(STEP_BYTES);
        bytes.try_reserve(step).map_err(|_| PackError::Memory)?;
        let at = bytes.len();
        bytes.resize(at + step, 0);
        unpacker.unpack(&mut packed, bytes.get_mut(at..).unwrap_or_default())?;
        if unpacker.left() == 0 {
            return Ok(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn text(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 300) as u8 ^ (i % 7) as u8).collect()
    }

    /// A frame, whether or not that pays.
    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        let mut packer = Packer::new().expect("memory");
        packer.begin(bytes.len() as u64).expect("begun");
        bytes.chunks(100_000).for_each(|piece| packer.push(piece, &mut packed).expect("packed"));
        packer.finish(&mut packed).expect("finished");
        packed
    }

    #[test]
    fn bytes_of_every_size_come_back() {
        for len in [0, 1, 2, 4095, 4096, 128 << 10, (128 << 10) + 1, MIB - 1, MIB, MIB + 1, 4 * MIB] {
            for bytes in [noise(len), text(len), vec![0; len]] {
                let packed = frame(&bytes);
                assert!(packed.len() as u64 <= hipr_proto::op::packed_max_bytes(len as u64), "{len}");
                assert_eq!(unpack_all(&packed, len as u64).as_ref(), Ok(&bytes), "{len}");
                let mut out = vec![7; len];
                assert_eq!(unpack_into(&packed, &mut out), Ok(()));
                assert!(out == bytes);
                let mut at_once = Vec::new();
                if Packer::new().expect("memory").pack(&bytes, &mut at_once) {
                    assert_eq!(unpack_all(&at_once, len as u64), Ok(bytes));
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_made_fewer_is_left_alone() {
        let mut packer = Packer::new().expect("memory");
        let mut packed = Vec::new();
        for len in [1, 100, 4096, MIB] {
            assert!(!packer.pack(&noise(len), &mut packed), "{len} of noise");
            assert!(!packer.is_worth(&noise(len), &mut packed));
        }
        for len in [4096, MIB] {
            assert!(packer.pack(&text(len), &mut packed) && packed.len() < len / 2, "{len} of text");
            assert!(packer.is_worth(&text(len), &mut packed));
        }
    }

    #[test]
    fn damage_is_noticed_and_nothing_is_written_beyond_the_length() {
        let bytes = text(300_000);
        let packed = frame(&bytes);
        let damaged = |packed: &[u8], len: u64| unpack_all(packed, len) == Err(PackError::Damaged);
        let len = bytes.len() as u64;
        for cut in (0..packed.len()).step_by(packed.len() / 50) {
            assert!(damaged(&packed[..cut], len), "cut at {cut}");
        }
        for wrong in [0, 1, len - 1, len + 1, 2 * len, 1 << 40] {
            assert!(damaged(&packed, wrong), "{wrong} bytes");
        }
        assert!(damaged(&[&packed[..], b"x"].concat(), len), "bytes behind it");
        assert!(damaged(&[packed.clone(), packed.clone()].concat(), 2 * len), "two frames");
        assert!(
            damaged(&[&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], &packed[..]].concat(), len),
            "a skippable frame"
        );
        assert!(damaged(&[], len) && damaged(&[], 0));
        let mut out = [9; 8];
        let mut unpacker = Unpacker::new(4).expect("memory");
        assert_eq!(unpacker.unpack(&mut &frame(b"abcd")[..], &mut out), Ok(4));
        assert_eq!(&out, b"abcd\x09\x09\x09\x09");
    }

    /// Returns the outcome of unpacking a frame at once, which has to be that of unpacking it byte by byte.
    fn either_way(packed: &[u8], len: usize) -> Result<Vec<u8>, PackError> {
        let at_once = unpack_all(packed, len as u64);
        let mut unpacker = Unpacker::new(len as u64).expect("memory");
        let (mut input, mut out) = (packed, vec![0; len]);
        let in_pieces = out.chunks_mut(1).try_for_each(|byte| unpacker.unpack(&mut input, byte).map(drop));
        assert_eq!(in_pieces.map(|()| out), at_once);
        at_once
    }

    /// A frame of `len` bytes with this window in its header and these blocks, each with its header's three bytes.
    fn frame_of(window: u8, len: usize, blocks: &[&[u8]]) -> Vec<u8> {
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x80, window][..], &(len as u32).to_le_bytes(), &blocks.concat()].concat()
    }

    #[test]
    fn damage_is_noticed_in_the_same_way_at_once_and_in_pieces() {
        let last_as_they_are = [0x21, 0, 0, b'a', b'b', b'c', b'd'];
        for window in 0..=255 {
            let is_small = window <= (PACKED_WINDOW_LOG as u8 - 10) << 3;
            let expected = if is_small { Ok(b"abcd".to_vec()) } else { Err(PackError::Damaged) };
            let packed = frame_of(window, 4, &[&last_as_they_are]);
            assert_eq!(either_way(&packed, 4), expected, "window {window}");
        }
        // A block without bytes, of each kind: as they are, one byte many times, packed, reserved.
        for kind in 0..4 {
            let empty = [kind << 1, 0, 0];
            let packed = frame_of(0, 4, &[&empty[..], if kind == 1 { b"x" } else { b"" }, &last_as_they_are]);
            let outcome = either_way(&packed, 4);
            assert_eq!(outcome.is_ok(), kind != 3, "kind {kind}: {outcome:?}");
        }
        let packed = frame(&text(100));
        for at in 0..packed.len() {
            for bit in 0..8 {
                let mut damaged = packed.clone();
                damaged[at] ^= 1 << bit;
                let _ = either_way(&damaged, 100);
            }
        }
    }

    /// What a frame can ask for is bounded by the window, whatever it announces.
    #[test]
    fn memory_is_bounded() {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::CompressionLevel(1)).expect("a level");
        context.set_parameter(CParameter::WindowLog(PACKED_WINDOW_LOG + 1)).expect("a window");
        let bytes = noise(5 * MIB);
        let mut wide = Vec::with_capacity(6 * MIB);
        context.compress2(&mut wide, &bytes).expect("packed");
        assert_eq!(unpack_all(&wide, bytes.len() as u64), Err(PackError::Damaged), "a wider window");
        context.set_parameter(CParameter::WindowLog(PACKED_WINDOW_LOG)).expect("a window");
        context.compress2(&mut wide, &bytes).expect("packed");
        assert_eq!(unpack_all(&wide, bytes.len() as u64).as_ref(), Ok(&bytes));
        let mut unpacker = Unpacker::new(bytes.len() as u64).expect("memory");
        let (mut input, mut out) = (&wide[..], vec![0; 128 << 10]);
        while unpacker.left() > 0 {
            unpacker.unpack(&mut input, &mut out).expect("unpacked");
            assert!(unpacker.context.sizeof() <= Unpacker::MAX_BYTES, "{}", unpacker.context.sizeof());
        }
        let mut packer = Packer::new().expect("memory");
        let mut packed = Vec::new();
        packer.begin(bytes.len() as u64).expect("begun");
        packer.push(&bytes, &mut packed).expect("packed");
        assert!(packer.0.sizeof() <= Packer::MAX_BYTES, "{}", packer.0.sizeof());
    }
}
