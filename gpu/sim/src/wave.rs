//! The state of one wave: registers, nothing else.

use crate::step::{Flow, Outcome};

/// Lanes of a wave.
pub const LANES: usize = 64;
/// One vector register: 32 bits for each lane.
pub type Row = [u32; LANES];

/// What lies at the beginning of a cache line, so that no vector of it lies in two.
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

/// Operand slots that may need a temporary row pair: three sources, and the destination as a source.
const TEMPORARY_ROWS: usize = 8;
/// Where results lie that are not just written to a register: two rows.
pub(crate) const RESULT: usize = TEMPORARY_ROWS;
/// Where vector register 0 lies.
pub(crate) const FIRST: usize = RESULT + 2;

/// All ones for each bit that is set in a number of four.
static MASKS: [[u32; 4]; 16] = {
    let mut masks = [[0; 4]; 16];
    let mut index = 0;
    while index < 64 {
        masks[index / 4][index % 4] = 0u32.wrapping_sub(((index / 4) >> (index % 4) & 1) as u32);
        index += 1;
    }
    masks
};

/// The MODE register, as `s_getreg`/`s_setreg` see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Mode {
    /// Round to nearest even, denormals kept everywhere, DX10 clamp, IEEE: what compilers ask for.
    pub const DEFAULT: Self = Self(0x3f0);
    const GPR_INDEX: u32 = 1 << 27;
    /// What decides how operands are read and results written: rounding, denormals, the shifting of register numbers.
    const OPERANDS: u32 = Self::GPR_INDEX | 0xff;
    /// The bit of [`Self::vector_skip`], which `s_setreg` leaves alone.
    pub(crate) const VECTOR_SKIP: u32 = 1 << 28;

    /// The mode that bits 19:12, 21 and 23 of a kernel descriptor's rsrc1 ask for.
    pub fn from_rsrc1(rsrc1: u32) -> Self {
        Self(rsrc1 >> 12 & 0xff | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9)
    }

    /// Rounding of f32 results: 0 nearest even, 1 up, 2 down, 3 to zero.
    #[inline(always)]
    pub fn round_f32(self) -> u32 {
        self.0 & 3
    }

    /// Rounding of f16 and f64 results, in the same numbers.
    #[inline(always)]
    pub fn round_f16_f64(self) -> u32 {
        self.0 >> 2 & 3
    }

    /// Denormals of f32: bit 0 keeps them in operands, bit 1 in results.
    #[inline(always)]
    pub fn denormals_f32(self) -> u32 {
        self.0 >> 4 & 3
    }

    /// Denormals of f16 and f64, in the same bits.
    #[inline(always)]
    pub fn denormals_f16_f64(self) -> u32 {
        self.0 >> 6 & 3
    }

    /// Whether operands are read and results written as they are, to nearest even, denormals kept.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.0 & Self::OPERANDS == Self::DEFAULT.0 & Self::OPERANDS
    }

    /// Whether clamping turns NaN into 0.
    #[inline(always)]
    pub fn dx10_clamp(self) -> bool {
        self.0 & 1 << 8 != 0
    }

    /// Whether signalling NaNs are quieted as IEEE 754 wants it.
    #[inline(always)]
    pub fn ieee(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// Whether M0 shifts vector register numbers (`s_set_gpr_idx_on`).
    #[inline(always)]
    pub fn gpr_index(self) -> bool {
        self.0 & Self::GPR_INDEX != 0
    }

    /// Whether vector instructions are skipped (`s_setvskip`).
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
    /// Temporaries, then the wave's `vgpr_count` vector registers from [`FIRST`] on, then two rows that take accesses beyond them.
    rows: Box<[Aligned<Row>]>,
    vgpr_count: usize,
    /// Where AccVGPRs start in the file: a0 is this row.
    pub accum_offset: usize,
    /// The scalar condition code.
    pub scc: bool,
    /// Rounding, denormals, clamping.
    pub mode: Mode,
    /// Address of the instruction to execute next.
    pub pc: u64,
    /// What `s_getreg` HW_ID answers.
    pub hardware_id: u32,
    /// The EXEC that `lane_mask` was made from.
    lane_mask_of: u64,
    lane_mask: Aligned<Row>,
    /// Of the last instruction that did not just go on to the next one.
    outcome: Outcome,
}

impl Wave {
    /// A wave with `vgpr_count` vector registers (both kinds together), of which those from `accum_offset` on are AccVGPRs.
    /// Every register is 0, EXEC is all ones.
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
        };
        wave.set_exec(u64::MAX);
        wave
    }

    /// How many vector registers the wave has.
    pub fn vgpr_count(&self) -> usize {
        self.vgpr_count
    }

    /// The active lanes, one bit each.
    #[inline(always)]
    pub fn exec(&self) -> u64 {
        self.pair(EXEC)
    }

    /// Sets the active lanes.
    #[inline(always)]
    pub fn set_exec(&mut self, lanes: u64) {
        self.set_pair(EXEC, lanes);
    }

    /// VCC, one bit a lane.
    #[inline(always)]
    pub fn vcc(&self) -> u64 {
        self.pair(VCC)
    }

    /// Sets VCC.
    #[inline(always)]
    pub fn set_vcc(&mut self, value: u64) {
        self.set_pair(VCC, value);
    }

    /// M0.
    #[inline(always)]
    pub fn m0(&self) -> u32 {
        self.sgpr[M0]
    }

    /// The 64-bit value of scalar registers `number` and `number + 1`.
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

    /// The row of vector register `number` of the unified file. Numbers beyond the wave's registers share one spare row.
    #[inline(always)]
    pub fn row(&self, number: usize) -> &Row {
        &self.rows[self.place_of(number)].0
    }

    /// The row of vector register `number`, to change; not masked by EXEC.
    #[inline(always)]
    pub fn row_mut(&mut self, number: usize) -> &mut Row {
        let place = self.place_of(number);
        &mut self.rows[place].0
    }

    /// Where results for `count` vector registers from `number` on are to be put: there, if all lanes run and they are all the wave's,
    /// else to the temporaries, from which [`settle`](Self::settle) takes them.
    #[inline(always)]
    pub(crate) fn target(&self, number: usize, count: usize) -> usize {
        let straight = self.exec() == u64::MAX && number + count <= self.vgpr_count;
        if straight { FIRST + number } else { 0 }
    }

    /// The rows of `N` places from `place` on, to change.
    #[inline(always)]
    pub(crate) fn places_mut<const N: usize>(&mut self, place: usize) -> [&mut Row; N] {
        let (rows, _) = self.rows[place..].as_chunks_mut::<N>();
        rows[0].each_mut().map(|row| &mut row.0)
    }

    /// Makes the results that were put to `target` those of the vector registers from `number` on, in the active lanes.
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

    /// The rows of the vector registers from `number` on, and what follows them.
    #[inline(always)]
    pub(crate) fn rows_from(&self, number: usize) -> &[Aligned<Row>] {
        &self.rows[self.place_of(number)..]
    }

    /// The same, to change.
    #[inline(always)]
    pub(crate) fn rows_from_mut(&mut self, number: usize) -> &mut [Aligned<Row>] {
        let place = self.place_of(number);
        &mut self.rows[place..]
    }

    /// A row by its place in the file, temporaries included.
    #[inline(always)]
    pub(crate) fn place(&self, place: usize) -> &Row {
        &self.rows[place].0
    }

    /// A row by its place, to change.
    #[inline(always)]
    pub(crate) fn place_mut(&mut self, place: usize) -> &mut Row {
        &mut self.rows[place].0
    }

    /// How many places there are.
    #[inline(always)]
    pub(crate) fn places(&self) -> usize {
        self.rows.len()
    }

    /// Where register `number` is.
    #[inline(always)]
    pub(crate) fn place_of(&self, number: usize) -> usize {
        FIRST + number.min(self.vgpr_count)
    }

    /// Where the temporary row pair of operand slot `slot` (0 to 3) is.
    #[inline(always)]
    pub(crate) fn temporary(&self, slot: usize) -> usize {
        (slot & 3) * 2
    }

    /// Makes `lane_mask` all ones for each lane that is set in `lanes`, 0 for the others.
    #[inline(never)]
    fn make_mask(&mut self, lanes: u64) {
        self.lane_mask_of = lanes;
        for (four, out) in self.lane_mask.0.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *out = MASKS[(lanes >> (four * 4)) as usize % MASKS.len()];
        }
    }

    /// Makes `values` the row at `place` in the active lanes. By value: so they stay in registers.
    #[inline(always)]
    pub(crate) fn put_row(&mut self, place: usize, mut values: Row) {
        let lanes = self.exec();
        if lanes != u64::MAX {
            if self.lane_mask_of != lanes {
                self.make_mask(lanes);
            }
            let (old, mask) = (&self.rows[place].0, &self.lane_mask.0);
            for lane in 0..LANES {
                values[lane] = old[lane] & !mask[lane] | values[lane] & mask[lane];
            }
        }
        self.rows[place].0 = values;
    }

    /// Keeps what an instruction did that is not followed by the next one.
    #[inline(always)]
    pub(crate) fn set_outcome(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }

    /// What was kept.
    pub(crate) fn take_outcome(&mut self) -> Outcome {
        std::mem::replace(&mut self.outcome, Ok(Flow::Next))
    }

    /// Writes `values` to vector register `number` in the lanes that are set in `lanes`.
    #[inline(always)]
    pub fn write_row(&mut self, number: usize, lanes: u64, values: &Row) {
        let place = self.place_of(number);
        if lanes == u64::MAX {
            self.rows[place].0 = *values;
        } else {
            if self.lane_mask_of != lanes {
                self.make_mask(lanes);
            }
            let mask = &self.lane_mask.0;
            for ((old, new), mask) in self.rows[place].0.iter_mut().zip(values).zip(mask) {
                *old = *old & !mask | new & mask;
            }
        }
    }
}
