//! What kind of instruction a mnemonic is, and how many floating-point operations it does.

/// A kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It computes for each lane.
    Vector,
    /// It multiplies matrices.
    Matrix,
    /// It computes for the whole wave.
    Scalar,
    /// It accesses memory for each lane; scratch by the instructions of memory too.
    Memory,
    /// It accesses memory for the whole wave.
    ScalarMemory,
    /// It accesses LDS, or moves values between lanes by way of it.
    Lds,
    /// It accesses scratch.
    Scratch,
    /// It jumps, calls or returns.
    Branch,
    /// A barrier, a fence, a message, the end.
    Other,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Vector,
        Self::Matrix,
        Self::Scalar,
        Self::Memory,
        Self::ScalarMemory,
        Self::Lds,
        Self::Scratch,
        Self::Branch,
        Self::Other,
    ];

    /// Returns the name: lower case, with underscores.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Matrix => "matrix",
            Self::Scalar => "scalar",
            Self::Memory => "memory",
            Self::ScalarMemory => "scalar_memory",
            Self::Lds => "lds",
            Self::Scratch => "scratch",
            Self::Branch => "branch",
            Self::Other => "other",
        }
    }

    /// Returns the class of the instruction with this mnemonic.
    pub fn of(mnemonic: &str) -> Self {
        const RULES: [(&str, Class); 26] = [
            ("v_mfma_", Class::Matrix),
            ("v_smfmac_", Class::Matrix),
            ("v_", Class::Vector),
            ("ds_gws_", Class::Other),
            ("ds_", Class::Lds),
            ("scratch_", Class::Scratch),
            ("buffer_wb", Class::Other),
            ("buffer_inv", Class::Other),
            ("global_", Class::Memory),
            ("flat_", Class::Memory),
            ("buffer_", Class::Memory),
            ("tbuffer_", Class::Memory),
            ("s_load_", Class::ScalarMemory),
            ("s_buffer_", Class::ScalarMemory),
            ("s_store_", Class::ScalarMemory),
            ("s_atomic_", Class::ScalarMemory),
            ("s_scratch_", Class::Scratch),
            ("s_branch", Class::Branch),
            ("s_cbranch", Class::Branch),
            ("s_setpc", Class::Branch),
            ("s_swappc", Class::Branch),
            ("s_call", Class::Branch),
            ("s_barrier", Class::Other),
            ("s_endpgm", Class::Other),
            ("s_sendmsg", Class::Other),
            ("s_dcache", Class::Other),
        ];
        let rule = RULES.iter().find(|(begin, _)| mnemonic.starts_with(begin));
        match rule {
            Some((_, class)) => *class,
            None if mnemonic.starts_with("s_") => Self::Scalar,
            None => Self::Other,
        }
    }
}

/// The numbers that floating-point operations compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// 16 bits or fewer.
    Half,
    /// 32 bits, and matrices of numbers of fewer bits in that format.
    Single,
    /// 64 bits.
    Double,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Half, Self::Single, Self::Double];

    /// Returns the name: `f16`, `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Half => "f16",
            Self::Single => "f32",
            Self::Double => "f64",
        }
    }
}

/// The floating-point operations of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flops {
    /// The numbers.
    pub precision: Precision,
    /// The number of operations. An addition, a multiplication, a root or a power counts as one, a fused multiply-add as two.
    pub count: u32,
    /// Whether these are the operations of the whole wave, all its lanes together, active or not: a product of matrices.
    pub is_wave: bool,
}

impl Flops {
    /// Returns the operations of the instruction with this mnemonic, if it does any. Conversions, comparisons, minima, roundings and
    /// operations of integers are none.
    pub fn of(mnemonic: &str) -> Option<Self> {
        if let Some(shape) = mnemonic.strip_prefix("v_mfma_") {
            return matrix(shape, false);
        }
        if let Some(shape) = mnemonic.strip_prefix("v_smfmac_") {
            return matrix(shape, true);
        }
        let name = mnemonic.strip_prefix("v_")?;
        if name.starts_with("dot2_f32_f16") || name.starts_with("dot2c_f32_f16") {
            return Some(Self { precision: Precision::Half, count: 4, is_wave: false });
        }
        let (name, lanes) = name.strip_prefix("pk_").map_or((name, 1), |name| (name, 2));
        let precision = match name.rsplit('_').next()? {
            "f16" => Precision::Half,
            "f32" => Precision::Single,
            "f64" => Precision::Double,
            _ => return None,
        };
        let count = match name.split('_').next()? {
            "add" | "sub" | "subrev" | "mul" | "rcp" | "rsq" | "sqrt" | "exp" | "log" | "sin" | "cos" => 1,
            "fma" | "fmac" | "fmaak" | "fmamk" | "mac" | "mad" | "madak" | "madmk" => 2,
            // Of a division's steps v_div_fmas multiplies and adds; the others scale and mend.
            "div" if name.starts_with("div_fmas") => 2,
            _ => return None,
        };
        Some(Self { precision, count: count * lanes, is_wave: false })
    }
}

/// Returns the operations of a product of matrices whose mnemonic ends with `shape`, such as `f32_32x32x8_f16` or `f32_4x4x4_16b_f16`.
fn matrix(shape: &str, is_sparse: bool) -> Option<Flops> {
    let (result, rest) = shape.split_once('_')?;
    if !result.starts_with('f') {
        return None;
    }
    let mut sizes = rest.splitn(3, 'x');
    let (rows, columns, last) = (sizes.next()?, sizes.next()?, sizes.next()?);
    let digits = last.find(|letter: char| !letter.is_ascii_digit())?;
    let (depth, operands) = last.split_at(digits);
    let [rows, columns, depth] = [rows, columns, depth].map(|number| number.parse::<u32>().ok());
    let (rows, columns, depth) = (rows?, columns?, depth?);
    let named = operands.strip_prefix('_').and_then(|rest| rest.split_once("b_"));
    let blocks = match named.and_then(|(count, _)| count.parse::<u32>().ok()) {
        Some(blocks) => blocks,
        None if is_sparse => 1,
        // The first operand has all rows of all blocks: so many numbers of each lane.
        None => 64 * numbers_per_lane(operands) / (rows * depth),
    };
    let precision = match operands {
        _ if operands.ends_with("f64") => Precision::Double,
        _ if operands.ends_with("f32") => Precision::Single,
        _ => Precision::Half,
    };
    // A multiplication and an addition each; half of a sparse matrix is left out.
    let count = rows * columns * depth * blocks.max(1) * if is_sparse { 1 } else { 2 };
    Some(Flops { precision, count, is_wave: true })
}

/// Returns how many numbers of the first matrix a lane has.
fn numbers_per_lane(operands: &str) -> u32 {
    match operands {
        _ if operands.ends_with("xf32") => 2,
        _ if operands.ends_with("f32") || operands.ends_with("f64") => 1,
        // Older instructions take two numbers of this format, with `_1k` and with an underscore before it four.
        "bf16" => 2,
        _ if operands.ends_with('8') => 8,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_have_classes() {
        let classes = [
            ("v_add_f32", Class::Vector),
            ("v_mfma_f32_32x32x8_f16", Class::Matrix),
            ("s_add_u32", Class::Scalar),
            ("global_load_dword", Class::Memory),
            ("flat_atomic_add", Class::Memory),
            ("s_load_dwordx4", Class::ScalarMemory),
            ("ds_read_b32", Class::Lds),
            ("ds_bpermute_b32", Class::Lds),
            ("scratch_load_dword", Class::Scratch),
            ("s_cbranch_execz", Class::Branch),
            ("s_barrier", Class::Other),
            ("buffer_wbl2", Class::Other),
        ];
        for (mnemonic, class) in classes {
            assert_eq!(Class::of(mnemonic), class, "{mnemonic}");
        }
    }

    #[test]
    fn every_instruction_that_is_emulated_has_a_class_by_a_rule() {
        for (_, _, mnemonic) in hipr_isa::isa::implemented(hipr_isa::Arch::Gfx942) {
            let is_other = Class::of(mnemonic) == Class::Other;
            let is_known = ["s_barrier", "s_endpgm", "s_sendmsg", "s_dcache", "buffer_", "ds_gws_"]
                .iter()
                .any(|begin| mnemonic.starts_with(begin));
            assert!(!is_other || is_known, "{mnemonic}");
        }
    }

    #[test]
    fn operations_are_counted_as_the_field_does() {
        use Precision::{Double, Half, Single};
        let of = |mnemonic| Flops::of(mnemonic).map(|flops| (flops.precision, flops.count, flops.is_wave));
        assert_eq!(of("v_add_f32"), Some((Single, 1, false)));
        assert_eq!(of("v_fma_f64"), Some((Double, 2, false)));
        assert_eq!(of("v_pk_fma_f32"), Some((Single, 4, false)));
        assert_eq!(of("v_pk_add_f16"), Some((Half, 2, false)));
        assert_eq!(of("v_dot2_f32_f16"), Some((Half, 4, false)));
        assert_eq!(of("v_rsq_f32"), Some((Single, 1, false)));
        assert_eq!(of("v_div_fmas_f32"), Some((Single, 2, false)));
        assert_eq!(of("v_div_scale_f32"), None);
        assert_eq!(of("v_max_f32"), None);
        assert_eq!(of("v_cvt_f32_u32"), None);
        assert_eq!(of("v_add_u32"), None);
        assert_eq!(of("v_cmp_lt_f32"), None);
    }

    /// A product of one block of `rows`x`columns`x`depth` has twice as many operations; AMD's ISA documents say how many blocks.
    #[test]
    fn products_of_matrices_count_all_their_blocks() {
        let blocks = [
            ("v_mfma_f32_32x32x1f32", 2 * 32 * 32, 2),
            ("v_mfma_f32_32x32x1_2b_f32", 2 * 32 * 32, 2),
            ("v_mfma_f32_32x32x2f32", 2 * 32 * 32 * 2, 1),
            ("v_mfma_f32_16x16x1f32", 2 * 16 * 16, 4),
            ("v_mfma_f32_4x4x1f32", 2 * 4 * 4, 16),
            ("v_mfma_f32_32x32x4f16", 2 * 32 * 32 * 4, 2),
            ("v_mfma_f32_32x32x8_f16", 2 * 32 * 32 * 8, 1),
            ("v_mfma_f32_16x16x16f16", 2 * 16 * 16 * 16, 1),
            ("v_mfma_f32_32x32x2bf16", 2 * 32 * 32 * 2, 2),
            ("v_mfma_f32_32x32x4bf16", 2 * 32 * 32 * 4, 1),
            ("v_mfma_f32_32x32x4bf16_1k", 2 * 32 * 32 * 4, 2),
            ("v_mfma_f32_16x16x16_bf16", 2 * 16 * 16 * 16, 1),
            ("v_mfma_f32_16x16x8_xf32", 2 * 16 * 16 * 8, 1),
            ("v_mfma_f32_16x16x32_fp8_bf8", 2 * 16 * 16 * 32, 1),
            ("v_mfma_f64_16x16x4f64", 2 * 16 * 16 * 4, 1),
            ("v_mfma_f64_4x4x4_4b_f64", 2 * 4 * 4 * 4, 4),
            ("v_mfma_f64_4x4x4f64", 2 * 4 * 4 * 4, 4),
            ("v_smfmac_f32_32x32x16_f16", 32 * 32 * 16, 1),
        ];
        for (mnemonic, of_block, count) in blocks {
            let flops = Flops::of(mnemonic).expect(mnemonic);
            assert_eq!((flops.count, flops.is_wave), (of_block * count, true), "{mnemonic}");
        }
        assert_eq!(Flops::of("v_mfma_i32_32x32x8i8"), None);
    }
}
