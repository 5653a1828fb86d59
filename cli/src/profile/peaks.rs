//! What a real GPU can do at most, as AMD publishes it.

use hipr_profile::Precision;
use hipr_sim::Arch;

/// A bound of a GPU's operations.
pub(super) struct Peak {
    pub(super) name: &'static str,
    pub(super) precision: Precision,
    /// Whether products of matrices reach it, and nothing else.
    pub(super) is_matrix: bool,
    /// The rate, in 10¹² floating-point operations a second.
    pub(super) tflops: f64,
}

/// The bounds of a GPU.
pub(super) struct Peaks {
    pub(super) gpu: &'static str,
    /// Memory, in 10¹² bytes a second.
    pub(super) memory_tbytes: f64,
    pub(super) flops: [Peak; 5],
}

const fn peak(name: &'static str, precision: Precision, is_matrix: bool, tflops: f64) -> Peak {
    Peak { name, precision, is_matrix, tflops }
}

/// AMD Instinct MI300X, data sheet of 2023.
const MI300X: Peaks = Peaks {
    gpu: "MI300X",
    memory_tbytes: 5.3,
    flops: [
        peak("f16 matrix", Precision::Half, true, 1307.4),
        peak("f32 matrix", Precision::Single, true, 163.4),
        peak("f64 matrix", Precision::Double, true, 163.4),
        peak("f32", Precision::Single, false, 163.4),
        peak("f64", Precision::Double, false, 81.7),
    ],
};

/// AMD Instinct MI210, data sheet of 2022.
const MI210: Peaks = Peaks {
    gpu: "MI210",
    memory_tbytes: 1.6,
    flops: [
        peak("f16 matrix", Precision::Half, true, 181.0),
        peak("f32 matrix", Precision::Single, true, 45.3),
        peak("f64 matrix", Precision::Double, true, 45.3),
        peak("f32", Precision::Single, false, 22.6),
        peak("f64", Precision::Double, false, 22.6),
    ],
};

impl Peaks {
    /// Returns the published peak rates of the GPU that is emulated.
    pub(super) const fn of(arch: Arch) -> &'static Self {
        match arch {
            Arch::Gfx90a => &MI210,
            Arch::Gfx942 => &MI300X,
        }
    }
}
