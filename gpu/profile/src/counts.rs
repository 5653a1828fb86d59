//! What is counted of an instruction, a line or a kernel.

use crate::class::{Class, Precision};

/// Sums over executed instructions of waves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions that waves have executed, by [`Class`]. Waits and hints, which only concern time, are not counted.
    pub instructions: [u64; Class::ALL.len()],
    /// Instructions that work for each lane: vector, matrix, memory, LDS and scratch.
    pub vector_instructions: u64,
    /// The active lanes of those.
    pub lanes: u64,
    /// How often a wave has gone on with fewer of its lanes, but some: it was divided by a condition.
    pub splits: u64,
    /// Floating-point operations, by [`Precision`].
    pub flops: [u64; Precision::ALL.len()],
    /// Those of them that products of matrices do.
    pub matrix_flops: [u64; Precision::ALL.len()],
    /// Instructions that have accessed device memory for their lanes.
    pub memory_accesses: u64,
    /// Bytes that lanes have loaded from device memory.
    pub loaded_bytes: u64,
    /// Bytes that lanes have stored to device memory.
    pub stored_bytes: u64,
    /// Bytes that lanes have changed in device memory with atomics.
    pub atomic_bytes: u64,
    /// Cache lines that the lanes of each instruction have touched: as few as possible if they are neighbours.
    pub cache_lines: u64,
    /// Bytes that whole waves have loaded from device memory.
    pub scalar_bytes: u64,
    /// Bytes that lanes have loaded from LDS and stored to it.
    pub lds_bytes: u64,
    /// Cycles that the banks of LDS need for that.
    pub lds_cycles: u64,
    /// Those of them that are needed since lanes have accessed different words of one bank.
    pub lds_conflicts: u64,
    /// Bytes that lanes have loaded from scratch and stored to it.
    pub scratch_bytes: u64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        for (own, other) in self.instructions.iter_mut().zip(other.instructions) {
            *own += other;
        }
        for (own, other) in self.flops.iter_mut().zip(other.flops) {
            *own += other;
        }
        for (own, other) in self.matrix_flops.iter_mut().zip(other.matrix_flops) {
            *own += other;
        }
        self.vector_instructions += other.vector_instructions;
        self.lanes += other.lanes;
        self.splits += other.splits;
        self.memory_accesses += other.memory_accesses;
        self.loaded_bytes += other.loaded_bytes;
        self.stored_bytes += other.stored_bytes;
        self.atomic_bytes += other.atomic_bytes;
        self.cache_lines += other.cache_lines;
        self.scalar_bytes += other.scalar_bytes;
        self.lds_bytes += other.lds_bytes;
        self.lds_cycles += other.lds_cycles;
        self.lds_conflicts += other.lds_conflicts;
        self.scratch_bytes += other.scratch_bytes;
    }

    /// Returns all instructions.
    pub fn executed(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Returns the instructions of a class.
    pub fn of(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    /// Returns all floating-point operations.
    pub fn flops_total(&self) -> u64 {
        self.flops.iter().sum()
    }

    /// Returns the bytes that lanes and waves have loaded from device memory and stored to it.
    pub fn memory_bytes(&self) -> u64 {
        self.loaded_bytes + self.stored_bytes + self.atomic_bytes + self.scalar_bytes
    }

    /// Returns how many of 64 lanes work on average, if any instruction works for each lane.
    pub fn lanes_average(&self) -> Option<f64> {
        (self.vector_instructions > 0).then(|| self.lanes as f64 / self.vector_instructions as f64)
    }

    /// Returns which part of the touched cache lines the lanes have asked for; more than 1 where lanes ask for the same bytes.
    pub fn line_use(&self, line_bytes: u64) -> Option<f64> {
        let bytes = self.loaded_bytes + self.stored_bytes + self.atomic_bytes;
        (self.cache_lines > 0).then(|| bytes as f64 / (self.cache_lines * line_bytes) as f64)
    }

    /// Returns the floating-point operations for each byte of the cache lines that are touched.
    pub fn intensity(&self, line_bytes: u64) -> Option<f64> {
        let bytes = self.cache_lines * line_bytes + self.scalar_bytes;
        (bytes > 0).then(|| self.flops_total() as f64 / bytes as f64)
    }
}
