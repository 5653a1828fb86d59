//! The interpreter: runs the machine code of a gfx942 or a gfx90a, 64 lanes at a time.
//!
//! ```text
//!  words ──▶ isa: which row ──▶ shape: operands, lanes, results ──▶ sem: the arithmetic
//!              ▲                        │
//!  step::run: decode, execute           ▼
//!              │               mem (device memory), lds (LDS, scratch)
//!              ▼
//!  wave: registers of 64 lanes
//! ```
//!
//! - [`step::run`] carries a [`wave::Wave`] through a [`step::Program`] until it ends, waits at a barrier or has used up its budget.
//!   What it may touch is a [`step::Machine`]: a snapshot of device memory, the workgroup's LDS, its lanes' scratch.
//! - What an instruction does wrong is a [`fault::Fault`], never a panic.
//! - Which instructions there are is in [`isa`], a row each.
//!
//! It knows nothing of HIP, of streams and launches, nor of any protocol: those are `hipr-sim`'s.

#![deny(unsafe_code)]

pub mod aperture;
mod arch;
pub mod coverage;
mod enc;
pub mod fault;
mod flow;
pub mod gws;
pub mod isa;
pub mod lds;
mod machine;
pub mod map;
pub mod marks;
pub mod mem;
mod pairs;
pub mod sem;
mod shape;
pub mod simd;
pub mod step;
pub mod watch;
pub mod wave;

pub use arch::{Arch, UnknownArch};
