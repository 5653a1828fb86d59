//! The emulated GPU: a gfx942 or a gfx90a that runs the machine code of real compilers on any Linux host.
//!
//! ```text
//!  SimContext (one client)       Gpu (all clients)
//!  handles, events, modules      executor threads, memory budget
//!       │ commands                    ▲ jobs, in turns
//!       ▼                             │
//!  streams: what waits for what ──────┘
//!                                     │ a launch
//!                                     ▼
//!                       hipr_grid: groups ─▶ waves, 64 lanes at a time on hipr_isa
//! ```
//!
//! - [`Gpu`] is a [`Device`](hipr_device::Device). It gives each client a [`SimContext`]: an address space, streams, events and
//!   modules of its own. What the contract leaves open about the emulated GPU is said there.
//! - A kernel's wild access or unknown instruction ends the kernel with an error on its stream and one line in the log that
//!   names kernel, address and lane. Nothing that a kernel or a code object does brings the host down.
//! - What the device claims to be is in [`property`] and [`attribute`].
//!
//! ```
//! use std::task::Poll;
//!
//! use hipr_device::{Context, MemoryKind, Region, WaitFor, Waker};
//! use hipr_sim::{Config, Gpu};
//!
//! let gpu = Gpu::new(Config { memory_bytes: Some(1 << 20), ..Config::default() })?;
//! let (waker, woken) = std::sync::mpsc::channel();
//! let mut context = gpu.context(Waker::new(move || drop(waker.send(()))));
//! let region = Region::flat(context.malloc(4096, MemoryKind::Device, 0)?, 4096);
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

mod alloc;
pub mod attribute;
mod before;
mod budget;
mod context;
pub mod coverage;
mod device;
mod event;
mod fence;
mod gpu;
mod host_file;
mod hostcall;
mod launch;
mod loan;
mod module;
mod name;
mod order;
mod physical;
pub mod property;
mod rounds;
mod shared;
pub mod stream;
mod times;
mod transfer;
mod unused;
pub mod watch;
mod windows;

pub use context::SimContext;
pub use gpu::{Config, Gpu};
pub use hipr_isa::{Arch, UnknownArch};
