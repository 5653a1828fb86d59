//! The worker: performs the requests of HIPR clients on a device.
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
//! - [`device`] is the trait of what a GPU must do, and the devices there are.
//! - The session owns what its client made and checks every handle and address before a device sees it; it goes with its
//!   connection.
//!
//! ```
//! use hipr_worker::{Config, Worker, device};
//!
//! let config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device::by_name("null")?) };
//! let worker = Worker::bind(config)?.spawn()?;
//! println!("serving on {}", worker.local_addr());
//! worker.stop();
//! worker.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod actor;
mod config;
pub mod device;
mod dispatch;
mod rlimit;
mod session;
mod stand;
mod stats;
mod worker;

pub use actor::Dispatch;
pub use config::{Config, DispatchOn, Io, SessionLimits};
pub use hipr_io::{Address, Config as IoConfig, StatsSnapshot as IoStats};
pub use hipr_proto::DEFAULT_PORT;
pub use stats::Stats;
pub use worker::{Handle, Stopper, Worker};
