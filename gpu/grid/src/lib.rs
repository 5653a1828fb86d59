//! Executes grids of kernels: workgroups are spread over threads and take turns, on the interpreter of `hipr-isa`.
//!
//! ```text
//!  Dispatch: the kernel, the grid's size, the first registers      Host: whose time it takes, its limits, who is told of its end
//!       └───────────────────────┬───────────────────────────────────────────┘
//!                               ▼
//!                           GridJob ──▶ RunQueue ──▶ Executors: threads, which give tenants, sessions and streams their turns
//!                                                        │ a turn: groups ─▶ waves
//!                                                        ▼
//!                                            hipr_isa::step::run: decode, execute, 64 lanes at a time
//! ```
//!
//! - [`Dispatch`] says what is executed. [`GridJob`] executes it; [`Host`] is what it asks of the one who started it.
//! - [`RunQueue`] and [`Executors`] are the threads, which do other [`Job`]s, too.
//! - [`Gate`] lets the threads of several processes work in turn, and [`permits`] has the rule for that.
//! - [`Residents`] bounds the memory of the workgroups that are under way.
//! - [`model`] has the numbers of the emulated GPUs.
//!
//! It knows nothing of HIP or HSA, of allocations, streams and queues, nor of any protocol.

#![forbid(unsafe_code)]

mod dispatch;
mod executor;
mod fair;
mod gate;
mod grid;
pub mod model;
pub mod permits;
mod residents;
mod watch;

pub use dispatch::{Addresses, Dispatch, GridSize, GroupStart, user_sgprs};
pub use executor::{Executors, Job, Owner, RunQueue, lock};
pub use gate::Gate;
pub use grid::{Failure, GridJob, Host};
pub use residents::{DeviceMemory, Needs, Residents};
pub use watch::{GridWatch, GroupWatch};
