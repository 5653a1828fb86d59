//! The emulated GPU: a gfx942 or a gfx90a that runs the machine code of real compilers on any Linux host.
//!
//! ```text
//!  Context (one client)          Gpu (all clients)
//!  handles, events, modules      executor threads, memory budget
//!       │ commands                    ▲ jobs, in turns
//!       ▼                             │
//!  streams: what waits for what ──────┘
//!                                     │ a launch: groups ─▶ waves
//!                                     ▼
//!                       step::run: decode, execute, 64 lanes at a time
//! ```
//!
//! - [`Gpu::open`] gives a client a [`Context`]: an address space, streams, events and modules of its own. No method of it
//!   blocks: work is queued, waits are polled, and the [`Waker`] says when to poll again.
//! - A kernel's wild access or unknown instruction ends the kernel with an error on its stream and one line in the log that
//!   names kernel, address and lane. Nothing that a kernel or a code object does brings the host down.
//! - What the device claims to be is in [`property`] and [`attribute`].
//!
//! ```
//! use std::sync::Arc;
//! use std::task::Poll;
//!
//! use hipr_sim::{Config, Gpu, MemoryKind, Region, WaitFor};
//!
//! let gpu = Gpu::new(Config { memory_bytes: Some(1 << 20), ..Config::default() })?;
//! let (waker, woken) = std::sync::mpsc::channel();
//! let mut context = gpu.open(Arc::new(move || drop(waker.send(()))));
//! let region = Region::flat(context.malloc(4096, MemoryKind::Device)?, 4096);
//! context.fill(region, 7, 1, 0)?;
//! while context.poll_sync(WaitFor::Stream(0)) == Poll::Pending {
//!     woken.recv()?;
//! }
//! let mut bytes = [0; 4096];
//! context.read(&region, 0, &mut bytes)?;
//! assert_eq!(bytes, [7; 4096]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_code)]

// The device: memory, streams, launches.
mod alloc;
mod arch;
pub mod attribute;
mod context;
pub mod coverage;
mod event;
mod executor;
mod fence;
mod gpu;
mod grid;
mod launch;
mod loan;
mod map;
pub mod mem;
mod module;
pub mod occupancy;
pub mod property;
mod shared;
pub mod stream;
mod transfer;

pub use arch::{Arch, UnknownArch};
pub use context::{BlockSize, Context, FunctionInfo, MemoryKind, Waker};
pub use gpu::{Config, Gpu};
pub use launch::{Args, Launch, Param};
pub use loan::LoanHandle;
pub use stream::WaitFor;
pub use transfer::Region;

// The interpreter.
pub mod aperture;
mod enc;
pub mod fault;
pub mod isa;
pub mod lds;
mod sem;
mod shape;
pub mod simd;
pub mod step;
pub mod wave;
