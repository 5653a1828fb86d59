//! The emulated GPU: a gfx942 that runs the machine code of real compilers on any Linux host.

#![forbid(unsafe_code)]

// The device: memory, streams, launches.
mod alloc;
pub mod attribute;
mod context;
mod event;
mod executor;
mod fence;
mod gpu;
mod grid;
mod launch;
mod map;
pub mod mem;
mod module;
pub mod occupancy;
pub mod property;
mod shared;
pub mod stream;
mod transfer;

pub use context::{BlockSize, Context, FunctionInfo, MemoryKind, Waker};
pub use gpu::{Config, Gpu};
pub use launch::{Args, Launch, Param};
pub use stream::WaitFor;
pub use transfer::Region;

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
