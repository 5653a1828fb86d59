//! The state of one wave: registers, nothing else.

use crate::flow::{Flow, Outcome};
use crate::gws::Ticket;

/// Lanes of a wave.
pub const LANES: usize = 64;
/// The 32 bits that a vector register holds for each lane.
pub type Row = [u32; LANES];

/// A value at the beginning of a cache line, so that none of its SIMD vectors crosses one.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aligned<T>(pub(crate) T);

/// Scalar operand number of FLAT_SCRATCH (low half).
pub const FLAT_SCRATCH: usize = 102;
/// Scalar operand number of VCC (low half).
pub const VCC: usize = 106;
/// Scalar operand number of the first trap temporary.
pub const TTMP: usize = 108;
/// Scalar operand number of M0.
pub const M0: usize = 124;
/// Scalar operand number of EXEC (low half).
pub const EXEC: usize = 126;

/// Number of temporary rows: a pair for each operand slot, which are three sources and the destination as a source.
const TEMPORARY_ROWS: usize = 8;
/// Index in the register file of the two rows for results that need more than a copy to a register.
pub(crate) const RESULT: usize = TEMPORARY_ROWS;
/// Index of vector register 0 in the register file.
pub(crate) const FIRST: usize = RESULT + 2;

/// For each 4-bit number, all ones for each bit that is set in it.
static MASKS: [[u32; 4]; 16] = {
    let mut masks = [[0; 4]; 16];
    let mut index = 0;
    while index < 64 {
        masks[index / 4][index % 4] = 0u32.wrapping_sub(((index / 4) >> (index % 4) & 1) as u32);
        index += 1;
    }
    masks
};

/// The MODE register in the layout of `s_getreg` and `s_setreg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Mode {
    /// The mode that compilers request: round to nearest even, denormals kept everywhere, DX10 clamp, IEEE.
    pub const DEFAULT: Self = Self(0x3f0);
    const GPR_INDEX: u32 = 1 << 27;
    /// Bits that affect how operands are read and results written: rounding, denormals, the shifting of register numbers.
    const OPERANDS: u32 = Self::GPR_INDEX | 0xff;
    /// The bit of [`Self::vector_skip`], which `s_setreg` does not change.
    pub(crate) const VECTOR_SKIP: u32 = 1 << 28;

    /// Returns the mode that bits 19:12, 21 and 23 of a kernel descriptor's rsrc1 request.
    pub fn from_rsrc1(rsrc1: u32) -> Self {
        Self(rsrc1 >> 12 & 0xff | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9)
    }

    /// Returns the rounding of f32 results: 0 to nearest even, 1 up, 2 down, 3 toward zero.
    #[inline(always)]
    pub fn round_f32(self) -> u32 {
        self.0 & 3
    }

    /// Returns the rounding of f16 and f64 results, numbered as in [`round_f32`](Self::round_f32).
    #[inline(always)]
    pub fn round_f16_f64(self) -> u32 {
        self.0 >> 2 & 3
    }

    /// Returns the handling of f32 denormals: bit 0 keeps them in operands, bit 1 in results.
    #[inline(always)]
    pub fn denormals_f32(self) -> u32 {
        self.0 >> 4 & 3
    }

    /// Returns the handling of f16 and f64 denormals, in the bits of [`denormals_f32`](Self::denormals_f32).
    #[inline(always)]
    pub fn denormals_f16_f64(self) -> u32 {
        self.0 >> 6 & 3
    }

    /// Returns whether operands are read and results written unchanged: rounded to nearest even, denormals kept.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & Self::OPERANDS == Self::DEFAULT.0 & Self::OPERANDS
    }

    /// Returns whether clamping turns NaN into 0.
    #[inline(always)]
    pub fn dx10_clamp(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// Returns whether signalling NaNs are quieted as IEEE 754 requires.
    #[inline(always)]
    pub fn ieee(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// Returns whether M0 shifts vector register numbers (`s_set_gpr_idx_on`).
    #[inline(always)]
    pub fn gpr_index(self) -> bool {
        self.0 & Self::GPR_INDEX != 0
    }

    /// Returns whether vector instructions are skipped (`s_setvskip`).
    #[inline(always)]
    pub fn vector_skip(self) -> bool {
        self.0 & Self::VECTOR_SKIP != 0
    }

    /// Turns the skipping of vector instructions on or off.
    pub fn set_vector_skip(&mut self, on: bool) {
        self.0 = self.0 & !Self::VECTOR_SKIP | if on { Self::VECTOR_SKIP } else { 0 };
    }

    /// Turns the shifting of vector register numbers on or off.
    pub fn set_gpr_index(&mut self, on: bool) {
        self.0 = self.0 & !Self::GPR_INDEX | if on { Self::GPR_INDEX } else { 0 };
    }
}

/// One wave's registers.
#[derive(Clone, Debug)]
pub struct Wave {
    /// Scalar registers by operand number: s0 to s101, then [`FLAT_SCRATCH`], XNACK_MASK, [`VCC`], [`TTMP`]s, [`M0`], [`EXEC`].
    pub sgpr: [u32; 128],
    /// The register file: temporary rows, then the wave's `vgpr_count` vector registers from index [`FIRST`] on, then two rows
    /// that take accesses beyond them.
    rows: Box<[Aligned<Row>]>,
    vgpr_count: usize,
    /// Number of the first AccVGPR, a0, among the vector registers.
    pub accum_offset: usize,
    /// The scalar condition code.
    pub scc: bool,
    /// Rounding, handling of denormals, clamping.
    pub mode: Mode,
    /// Address of the instruction to execute next.
    pub pc: u64,
    /// The value that `s_getreg` returns for HW_ID.
    pub hardware_id: u32,
    /// The EXEC that `lane_mask` was computed from.
    lane_mask_of: u64,
    lane_mask: Aligned<Row>,
    /// Outcome of the last instruction that did not continue with the next one.
    outcome: Outcome,
    /// The ticket with which the wave waits at a `ds_gws_*` instruction, if it waits.
    pub(crate) ticket: Option<Ticket>,
}

impl Wave {
    /// Creates a wave with `vgpr_count` vector registers (VGPRs and AccVGPRs together), of which those from `accum_offset` on
    /// are AccVGPRs. Every register is 0, EXEC is all ones.
    pub fn new(vgpr_count: usize, accum_offset: usize) -> Self {
        let mut wave = Self {
            sgpr: [0; 128],
            rows: vec![Aligned([0; LANES]); FIRST + vgpr_count + 2].into_boxed_slice(),
            vgpr_count,
            accum_offset,
            scc: false,
            mode: Mode::DEFAULT,
            pc: 0,
            hardware_id: 0,
            lane_mask_of: u64::MAX,
            lane_mask: Aligned([u32::MAX; LANES]),
            outcome: Ok(Flow::Next),
            ticket: None,
        };
        wave.set_exec(u64::MAX);
        wave
    }

    /// Returns the bytes of memory for the lanes of a wave with this many vector registers.
    pub fn rows_bytes(vgpr_count: usize) -> u64 {
        ((FIRST + vgpr_count + 2) * size_of::<Aligned<Row>>()) as u64
    }

    /// Returns the number of vector registers.
    pub fn vgpr_count(&self) -> usize {
        self.vgpr_count
    }

    /// Returns EXEC, the mask of active lanes.
    #[inline(always)]
    pub fn exec(&self) -> u64 {
        self.pair(EXEC)
    }

    /// Sets EXEC, the mask of active lanes.
    #[inline(always)]
    pub fn set_exec(&mut self, lanes: u64) {
        self.set_pair(EXEC, lanes);
    }

    /// Returns VCC, one bit for each lane.
    #[inline(always)]
    pub fn vcc(&self) -> u64 {
        self.pair(VCC)
    }

    /// Sets VCC.
    #[inline(always)]
    pub fn set_vcc(&mut self, value: u64) {
        self.set_pair(VCC, value);
    }

    /// Returns M0.
    #[inline(always)]
    pub fn m0(&self) -> u32 {
        self.sgpr[M0]
    }

    /// Returns the 64-bit value of scalar registers `number` and `number + 1`.
    #[inline(always)]
    pub fn pair(&self, number: usize) -> u64 {
        u64::from(self.sgpr[number & 127]) | u64::from(self.sgpr[(number + 1) & 127]) << 32
    }

    /// Sets scalar registers `number` and `number + 1`.
    #[inline(always)]
    pub fn set_pair(&mut self, number: usize, value: u64) {
        self.sgpr[number & 127] = value as u32;
        self.sgpr[(number + 1) & 127] = (value >> 32) as u32;
    }

    /// Returns vector register `number`, counted over VGPRs and AccVGPRs. Numbers beyond the wave's registers share one spare
    /// row.
    #[inline(always)]
    pub fn row(&self, number: usize) -> &Row {
        &self.rows[self.index_of(number)].0
    }

    /// Returns vector register `number` for writing, not masked by EXEC.
    #[inline(always)]
    pub fn row_mut(&mut self, number: usize) -> &mut Row {
        let index = self.index_of(number);
        &mut self.rows[index].0
    }

    /// Returns the index in the register file where results for `count` vector registers from `number` on are to be written:
    /// the registers' own, if all lanes are active and the wave has them all, else that of temporaries, from which
    /// [`settle`](Self::settle) copies them.
    #[inline(always)]
    pub(crate) fn target(&self, number: usize, count: usize) -> usize {
        let straight = self.exec() == u64::MAX && number + count <= self.vgpr_count;
        if straight { FIRST + number } else { 0 }
    }

    /// Returns `N` rows of the register file from `index` on, for writing.
    #[inline(always)]
    pub(crate) fn rows_at_mut<const N: usize>(&mut self, index: usize) -> [&mut Row; N] {
        let (rows, _) = self.rows[index..].as_chunks_mut::<N>();
        rows[0].each_mut().map(|row| &mut row.0)
    }

    /// Copies the results that were written at index `target` to the vector registers from `number` on, in the active lanes.
    #[inline(always)]
    pub(crate) fn settle<const N: usize>(&mut self, target: usize, number: usize) {
        if target == 0 {
            self.take_temporaries(number, N);
        }
    }

    #[inline(never)]
    fn take_temporaries(&mut self, number: usize, count: usize) {
        let lanes = self.exec();
        for index in 0..count {
            let row = self.rows[index];
            self.write_row(number + index, lanes, &row.0);
        }
    }

    /// Returns the rows of the vector registers from `number` on, and what follows them in the register file.
    #[inline(always)]
    pub(crate) fn rows_from(&self, number: usize) -> &[Aligned<Row>] {
        &self.rows[self.index_of(number)..]
    }

    /// Returns the rows of the vector registers from `number` on, and what follows them, for writing.
    #[inline(always)]
    pub(crate) fn rows_from_mut(&mut self, number: usize) -> &mut [Aligned<Row>] {
        let index = self.index_of(number);
        &mut self.rows[index..]
    }

    /// Returns the row at `index` of the register file, which includes temporaries.
    #[inline(always)]
    pub(crate) fn row_at(&self, index: usize) -> &Row {
        &self.rows[index].0
    }

    /// Returns the row at `index` of the register file for writing.
    #[inline(always)]
    pub(crate) fn row_at_mut(&mut self, index: usize) -> &mut Row {
        &mut self.rows[index].0
    }

    /// Returns the number of rows in the register file.
    #[inline(always)]
    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the index of vector register `number` in the register file.
    #[inline(always)]
    pub(crate) fn index_of(&self, number: usize) -> usize {
        FIRST + number.min(self.vgpr_count)
    }

    /// Returns the index of the temporary row pair of operand slot `slot` (0 to 3) in the register file.
    #[inline(always)]
    pub(crate) fn temporary(&self, slot: usize) -> usize {
        (slot & 3) * 2
    }

    /// Sets `lane_mask` to all ones for each lane that is set in `lanes`, and to 0 for the others.
    #[inline(never)]
    fn make_mask(&mut self, lanes: u64) {
        self.lane_mask_of = lanes;
        for (four, out) in self.lane_mask.0.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *out = MASKS[(lanes >> (four * 4)) as usize % MASKS.len()];
        }
    }

    /// Writes `values` to the row at `index` of the register file, in the active lanes. By value: so they stay in
    /// registers.
    #[inline(always)]
    pub(crate) fn put_row(&mut self, index: usize, mut values: Row) {
        let lanes = self.exec();
        if lanes != u64::MAX {
            if self.lane_mask_of != lanes {
                self.make_mask(lanes);
            }
            let (old, mask) = (&self.rows[index].0, &self.lane_mask.0);
            for lane in 0..LANES {
                values[lane] = old[lane] & !mask[lane] | values[lane] & mask[lane];
            }
        }
        self.rows[index].0 = values;
    }

    /// Stores the outcome of an instruction that does not continue with the next one.
    #[inline(always)]
    pub(crate) fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// Returns the stored outcome.
    pub(crate) fn take_outcome(&mut self) -> Outcome {
        std::mem::replace(&mut self.outcome, Ok(Flow::Next))
    }

    /// Writes `values` to vector register `number` in the lanes that are set in `lanes`.
    #[inline(always)]
    pub fn write_row(&mut self, number: usize, lanes: u64, values: &Row) {
        let index = self.index_of(number);
        if lanes == u64::MAX {
            self.rows[index].0 = *values;
        } else {
            if self.lane_mask_of != lanes {
                self.make_mask(lanes);
            }
            let mask = &self.lane_mask.0;
            for ((old, new), mask) in self.rows[index].0.iter_mut().zip(values).zip(mask) {
                *old = *old & !mask | new & mask;
            }
        }
    }
}
