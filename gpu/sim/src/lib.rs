//! The emulated GPU: a gfx942 that runs the machine code of real compilers on any Linux host.

#![forbid(unsafe_code)]

mod map;
pub mod mem;
