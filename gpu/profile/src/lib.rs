//! Counts what kernels do while an emulated device executes them, for each instruction: how often, for how many lanes, which memory.
//!
//! ```text
//!  hipr_sim ──modules, launches──▶ Profiler ──▶ Kernel: its launches, its registers and LDS
//!  hipr_grid ──workgroups──▶ Group ◀──instructions, accesses── hipr_isa
//!                             ▼
//!                            Table: Counts by address ──▶ Profiler::kernels
//! ```
//!
//! The counts are those of the machine code, so they are the same in each run of a kernel that does the same. They are no times.

#![forbid(unsafe_code)]

mod class;
mod counts;
mod group;
mod kernel;
mod memory;
mod profiler;
mod table;

pub use class::{Class, Flops, Precision};
pub use counts::Counts;
pub use kernel::{Instruction, KernelProfile, Limit};
pub use memory::{LDS_BANKS, cache_line_bytes};
pub use profiler::Profiler;
