//! The library that HIP programs load as `libamdhip64.so`: it has the symbols, versions and structures of AMD's, and
//! carries what a program asks for to a worker that has the GPU.
//!
//! ```text
//! program ──C──▶ api (export table) ──▶ export (panic boundary, last error) ──▶ body ──▶ session ──▶ client ──▶ worker
//! ```
//!
//! * [`api`] is the export table: a row per function of HIP.
//! * [`client`] is the connection, which can be used from Rust without the rest.
//! * [`mirror`] is about memory that host and device can both reach.
//!
//! **Errors.** Without a worker every call returns `hipErrorNoDevice`, as on a machine without a GPU. When the connection
//! is lost every call returns `hipErrorContextIsDestroyed`. Either way one line on standard error says why.
//!
//! **Environment.** `HIPR_WORKER=host:port` (else `TF_WORKER_HOST`, `TF_WORKER_PORT`, else 127.0.0.1:18515) says where
//! the worker is, `HIPR_CONNECT_TIMEOUT_MS` (5000) how long a connection may take, `HIPR_LOG` (`warn`) what is logged
//! to standard error, `HIPR_STATS_FILE` a file to which each process adds a line of JSON when it ends,
//! `HIPR_HIPRTC_LIBRARY` the library that has AMD's runtime compiler.

pub mod api;
pub mod client;
pub mod convert;
pub mod export;
pub mod memory;
pub mod mirror;
pub mod module;
pub mod session;
pub mod state;
pub mod types;

mod body;
mod callbacks;
mod graphs;
mod log;
mod map;
mod recent;
mod register;
mod reserve;
mod rtc;
mod stats;
