//! The emulated GPU: a gfx942 that runs the machine code of real compilers on any Linux host.

#![forbid(unsafe_code)]

mod map;
pub mod mem;

// The interpreter.
pub mod aperture;
pub mod fault;
pub mod lds;
pub mod step;
pub mod wave;
mod enc;
pub mod isa;
mod sem;
mod shape;
