//! Finds mistakes in kernels while an emulated device executes them: accesses outside of their memory, races, wrong barriers.
//!
//! ```text
//!  hipr_sim ──allocations, modules, launches, copies──▶ Checker ──▶ Context: Map (what is at which address), Shadow (who accessed it last)
//!  hipr_grid ──workgroups, barriers──▶ Group ◀──instructions, accesses── hipr_isa
//!                                       ├─ memory: each lane's address, against the Map
//!                                       ├─ race: each lane's words, against the Shadow and what the wave knows to be before it
//!                                       └─ sync: who is at which barrier
//!                                       ▼
//!                                     Report ──▶ Checker::findings
//! ```

#![forbid(unsafe_code)]

mod checker;
mod context;
mod finding;
mod group;
pub mod host;
mod init;
mod kernel;
mod launch;
mod lock;
mod map;
mod module;
mod race;
mod report;
mod sync;

pub use checker::{Checker, Options};
pub use hipr_isa::watch::{Kind as Access, Memory};

pub use finding::{Accessed, Finding, Kind, Near, Other, Place, Tool};
