//! LDS, which the waves of a workgroup share, and scratch, which each lane has for itself.

use crate::wave::Row;

/// Size of a compute unit's LDS in bytes; one workgroup may use all of it.
pub const LDS_BYTES: u32 = 64 << 10;
/// Number of words of the largest LDS.
pub(crate) const WORDS: usize = LDS_BYTES as usize / 4;

/// The LDS of one workgroup. Reads beyond its end give 0 and writes there are dropped, as on the hardware.
#[derive(Clone, Debug)]
pub struct Lds {
    /// The words; those beyond the end of the LDS are 0. Every LDS has the maximum number, so that indices modulo a constant
    /// need no checks.
    words: Box<[u32; WORDS]>,
    len_bytes: u32,
}

impl Default for Lds {
    fn default() -> Self {
        Self { words: bytemuck::zeroed_box(), len_bytes: 0 }
    }
}

impl Lds {
    /// Creates an LDS of `len_bytes` zeroed bytes, at most 64 KiB.
    pub fn new(len_bytes: u32) -> Self {
        let mut lds = Self::default();
        lds.reset(len_bytes);
        lds
    }

    /// Resizes the LDS to `len_bytes` zeroed bytes, at most 64 KiB.
    pub fn reset(&mut self, len_bytes: u32) {
        self.words_mut().fill(0);
        self.len_bytes = len_bytes.min(LDS_BYTES);
    }

    /// Returns the size of the LDS in bytes.
    pub fn len_bytes(&self) -> u32 {
        self.len_bytes
    }

    /// Returns the words, for aligned accesses.
    #[inline(always)]
    pub fn words(&self) -> &[u32] {
        &self.words[..self.len_bytes.div_ceil(4) as usize % (WORDS + 1)]
    }

    /// Returns all words, including those beyond the end of the LDS, which are 0.
    #[inline(always)]
    pub(crate) fn all_words(&self) -> &[u32; WORDS] {
        &self.words
    }

    /// Returns the words for writing.
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words[..self.len_bytes.div_ceil(4) as usize % (WORDS + 1)]
    }

    /// Returns all words for writing. Those beyond its end must stay 0.
    #[inline(always)]
    pub(crate) fn all_words_mut(&mut self) -> &mut [u32; WORDS] {
        &mut self.words
    }

    /// Returns the byte at `addr`.
    #[inline(always)]
    pub fn load_u8(&self, addr: u32) -> u8 {
        if addr >= self.len_bytes {
            return 0;
        }
        (self.words[addr as usize / 4] >> (addr % 4 * 8)) as u8
    }

    /// Stores `value` as the byte at `addr`.
    #[inline(always)]
    pub fn store_u8(&mut self, addr: u32, value: u8) {
        if addr < self.len_bytes {
            let word = &mut self.words[addr as usize / 4];
            let shift = addr % 4 * 8;
            *word = *word & !(0xff << shift) | u32::from(value) << shift;
        }
    }

    /// Returns the two bytes at `addr`, aligned or not.
    #[inline(always)]
    pub fn load_u16(&self, addr: u32) -> u16 {
        u16::from(self.load_u8(addr)) | u16::from(self.load_u8(addr.wrapping_add(1))) << 8
    }

    /// Stores two bytes at `addr`, aligned or not.
    #[inline(always)]
    pub fn store_u16(&mut self, addr: u32, value: u16) {
        self.store_u8(addr, value as u8);
        self.store_u8(addr.wrapping_add(1), (value >> 8) as u8);
    }

    /// Returns the four bytes at `addr`, aligned or not.
    #[inline(always)]
    pub fn load_u32(&self, addr: u32) -> u32 {
        if addr.is_multiple_of(4) {
            self.words.get(addr as usize / 4).copied().unwrap_or(0)
        } else {
            u32::from(self.load_u16(addr)) | u32::from(self.load_u16(addr.wrapping_add(2))) << 16
        }
    }

    /// Stores four bytes at `addr`, aligned or not.
    #[inline(always)]
    pub fn store_u32(&mut self, addr: u32, value: u32) {
        if addr.is_multiple_of(4) {
            if let Some(word) = self.words_mut().get_mut(addr as usize / 4) {
                *word = value;
            }
        } else {
            self.store_u16(addr, value as u16);
            self.store_u16(addr.wrapping_add(2), (value >> 16) as u16);
        }
    }
}

/// The scratch of one wave: each lane has its own bytes. Word `n` of all lanes is one row, so that accesses at one offset in all
/// lanes, which is what compilers emit for spilled registers, touch one row.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    rows: Vec<Row>,
}

impl Scratch {
    /// Creates scratch of `bytes_per_lane` zeroed bytes per lane. Rows that are never used cost no host memory if there are
    /// many: kernels request far more stack than they use.
    pub fn new(bytes_per_lane: u32) -> Self {
        Self { rows: bytemuck::zeroed_vec(bytes_per_lane.div_ceil(4) as usize) }
    }

    /// Returns the number of bytes that each lane has.
    pub fn bytes_per_lane(&self) -> u64 {
        self.rows.len() as u64 * 4
    }

    /// Returns the rows: row `n` holds word `n` of each lane.
    #[inline(always)]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the rows for writing.
    #[inline(always)]
    pub fn rows_mut(&mut self) -> &mut [Row] {
        &mut self.rows
    }

    /// Returns the byte at `addr` of a lane, or `None` if it lies beyond the lane's end.
    #[inline(always)]
    pub fn load_u8(&self, lane: usize, addr: u32) -> Option<u8> {
        let row = self.rows.get(addr as usize / 4)?;
        Some((row.get(lane)? >> (addr % 4 * 8)) as u8)
    }

    /// Stores the byte at `addr` of a lane; returns `None` beyond its end.
    #[inline(always)]
    pub fn store_u8(&mut self, lane: usize, addr: u32, value: u8) -> Option<()> {
        let word = self.rows.get_mut(addr as usize / 4)?.get_mut(lane)?;
        let shift = addr % 4 * 8;
        *word = *word & !(0xff << shift) | u32::from(value) << shift;
        Some(())
    }

    /// Returns the four bytes at `addr` of a lane, aligned or not, or `None` if they reach beyond the lane's end.
    #[inline(always)]
    pub fn load_u32(&self, lane: usize, addr: u32) -> Option<u32> {
        if addr.is_multiple_of(4) {
            return self.rows.get(addr as usize / 4)?.get(lane).copied();
        }
        let mut value = 0;
        for byte in 0..4 {
            value |= u32::from(self.load_u8(lane, addr.checked_add(byte)?)?) << (byte * 8);
        }
        Some(value)
    }

    /// Stores four bytes at `addr` of a lane, aligned or not; returns `None` beyond its end.
    #[inline(always)]
    pub fn store_u32(&mut self, lane: usize, addr: u32, value: u32) -> Option<()> {
        if addr.is_multiple_of(4) {
            *self.rows.get_mut(addr as usize / 4)?.get_mut(lane)? = value;
            return Some(());
        }
        for byte in 0..4 {
            self.store_u8(lane, addr.checked_add(byte)?, (value >> (byte * 8)) as u8)?;
        }
        Some(())
    }
}
