//! The library that HIP programs load as `libamdhip64.so`: it has the symbols, versions and structures of AMD's, and forwards a
//! program's calls to a worker that has the GPU.
//!
//! ```text
//! program ──C──▶ api, export (panic boundary, last error) ──▶ hip ──▶ submit ──▶ stream ──▶ worker ──▶ hipr-client
//! ```
//!
//! * [`api`] is the export table: a row per function of HIP; `hip` has one file per family of functions. It turns C parameters into
//!   [commands](command).
//! * `submit` is the only way out for everything that has an order: it drives the state machines of [`stream`].
//! * [`stream`] decides the order: captures, host functions, mirrored memory. It has no threads, clocks or sockets.
//! * [`worker`] has the connection and what need not be asked twice; [`program`] what the program registered and loaded.
//! * [`process`] and [`thread`] have what a process and its threads remember between calls.
//!
//! **Errors.** Without a worker every call returns `hipErrorNoDevice`, as on a machine without a GPU. When the connection
//! is lost every call returns `hipErrorContextIsDestroyed`. Either way one line on standard error says why.
//!
//! **Environment.** `HIPR_WORKER=host:port` (else `TF_WORKER_HOST`, `TF_WORKER_PORT`, else 127.0.0.1:18515) says where
//! the worker is, `HIPR_CONNECT_TIMEOUT_MS` (5000) how long a connection may take, `HIPR_EXTENSION=off` that no feature
//! of the extension is offered, `HIPR_SYNC=lazy` that synchronizations wait only for what the program can see, `HIPR_AHEAD_MAX`
//! (67108864) how many bytes it may then be ahead of the worker, `HIPR_DIRTY=compare` that memory which exists twice is compared instead of
//! asking the kernel which pages were written, `HIPR_LOG` (`warn`) what is logged to standard error, `HIPR_STATS_FILE` a file to which
//! each process adds a line of JSON when it ends, `HIPR_TRACE` a file for a trace of the process and `HIPR_TRACE_LAST_S` how many seconds of
//! it are kept, `HIPR_HIPRTC_LIBRARY` the library that has AMD's runtime compiler.

#![allow(
    non_upper_case_globals,
    reason = "HIP's constants have the names of the C headers, in patterns as well"
)]

pub mod api;
pub mod command;
pub mod convert;
pub mod export;
pub mod process;
pub mod program;
pub mod session;
pub mod stream;
pub mod thread;
pub mod types;
pub mod worker;

mod calls;
mod hip;
mod host_log;
mod log;
mod maps;
mod names;
mod rtc;
mod stats;
mod submit;
mod trace;
