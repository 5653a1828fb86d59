//! The worker: executes the requests of HIPR clients on a device.
//!
//! ```text
//!  sockets ⇄ event loop (one thread) ── Event ──▶ Dispatch ──▶ Session ──▶ device::Context
//!                  ▲                                  │   one turn each, never blocks
//!                  └────────── Mailbox, Notice ◀──────┘
//! ```
//!
//! The dispatch is on the loop's thread, or on one of its own where calls of the device may block ([`DispatchOn`]).
//!
//! - [`Worker::bind`] opens the port, [`Worker::for_connection`] takes over one client; [`Worker::run`] serves on the calling
//!   thread, [`Worker::spawn`] on its own.
//! - [`Dispatch`] is what stands behind the loop, for loops and transports of your own.
//! - What a GPU must do is [`hipr_device::Device`]; no GPU is here, only [`device`]s without one.
//! - The session owns what its client made and checks every handle and address before a device sees it; it goes with its
//!   connection.
//!
//! ```
//! use std::sync::Arc;
//!
//! use hipr_worker::device::null::Null;
//! use hipr_worker::{Config, Worker};
//!
//! let config = Config { listen: "127.0.0.1:0".into(), ..Config::new(Arc::new(Null)) };
//! let worker = Worker::bind(config)?.spawn()?;
//! println!("serving on {}", worker.local_addr());
//! worker.stop();
//! worker.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![allow(
    non_upper_case_globals,
    reason = "HIP's constants have the names of the C headers, in patterns as well"
)]

mod apart;
mod cache;
mod call;
mod capabilities;
mod config;
pub mod device;
mod dispatch;
mod dispatch_thread;
mod env;
mod lending;
mod memory_watch;
mod owned;
mod peers;
mod recalls;
mod rlimit;
mod session;
mod stats;
mod worker;

pub use cache::{CacheConfig, CacheStats};
pub use capabilities::{Capabilities, CapabilityToken};
pub use config::{Config, DispatchOn, FEATURES, Io, SessionLimits};
pub use dispatch::Dispatch;
pub use hipr_io::{Address, Config as IoConfig, RING_MAX_BYTES, RING_MIN_BYTES, StatsSnapshot as IoStats};
pub use hipr_proto::DEFAULT_PORT;
pub use peers::{CapabilityReader, PeerCapability, Peers};
pub use rlimit::raise_open_files;
pub use stats::{SessionCounts, Stats};
pub use worker::{Door, Handle, Stopper, Worker};
