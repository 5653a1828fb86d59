#![forbid(unsafe_code)]
//! A deterministic simulator that tests the protocol in seeded worlds.
//!
//! ```text
//!  bytes ─► Options ─► Script ─► world ──► Trace ──► invariants ──► Failure
//!  (a seed,     swarm    calls      │ client, pipe,       ▲
//!   a fuzzer,                       │ server, device,     │
//!   proptest)                       │ virtual clock       │
//!                        └──────────┴─────► Model ────────┘
//! ```
//!
//! One generator has three drivers: `cargo run -p hipr-tests -- simulate` makes the bytes from a seed, the fuzz targets in
//! `fuzz/` take libFuzzer's, and `tests/property.rs` lets proptest choose and shrink them. Nothing in a world knows the time of
//! day or the order of a hash map, so the same bytes give the same world.
//!
//! * [`Options`] what the world is like, [`Script`] which calls are made and what the device says to them.
//! * [`Model`] what a right server does with the script: a plain fold, without bytes, pieces or time.
//! * [`core_world`] the smallest world: `hipr-proto` and a pipe. What happened at its public doors is a [`Trace`].
//! * `worker_world` the world whose server is the worker, and the plans that `loop_conformance` carries out over sockets.
//! * `shim_world` the world of the client library's stream layer: several threads, streams, mirrored memory, host functions.
//! * `resume_world` the world of sessions that outlive their connections.
//! * [`invariants`] judge a trace, each a function with a name; [`mutation`] lists the bugs that they have to catch.

pub mod choices;
pub mod core_world;
pub mod fuzz;
pub mod invariants;
pub mod model;
pub mod mutation;
pub mod options;
pub mod script;
pub mod simulate;
pub mod trace;

#[cfg(feature = "resume")]
pub mod resume_world;
#[cfg(feature = "shim")]
pub mod shim_world;
#[cfg(feature = "worker")]
pub mod worker_world;

mod shape;

pub use choices::{Choices, seed_bytes};
pub use invariants::{Invariant, Violation};
pub use model::{Learned, Model};
pub use options::{Direction, Fault, FaultKind, Hang, Options};
pub use script::{Bytes, Call, Case, Device, Kind, Script, When};
pub use simulate::{Failure, World};
pub use trace::{Event, Pieces, Trace};
