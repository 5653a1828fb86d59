//! An HSA runtime whose GPUs are emulated: `libhsa-runtime64.so.1` for programs, and for AMD's HIP runtime, in the process that loads it.
//!
//! ```text
//!  program, AMD's libamdhip64 ──C ABI──▶ api (the table of functions)
//!                                         │
//!     ┌──────────┬───────────┬────────────┼─────────────┬───────────────┐
//!   agent      pool        signal_op    queue        executable       copy
//!   isa        allocation  wait, watch    │  packet    reader           │
//!   system     lock, vmem  handlers       ▼            loader           │
//!   init       ipc, svm    doorbell    dispatch ◀── kernels             │
//!     │           │           │           │             │               │
//!     ▼           ▼           ▼           ▼             ▼               ▼
//!   runtime (agents, threads, memory, what the modules above keep), facts
//!                 │                       │
//!                 ▼                       ▼
//!              memory: one address ◀── hipr-grid: workgroups on the executors' threads ──▶ hipr-isa
//! ```
//!
//! - Each function is a row of `api.rs`; `export.rs` says what becomes of a row.
//! - Memory of pools, locked memory and memory of other processes has one address for host and kernels; what a kernel can reach is said
//!   in `memory.rs`, and an access to anything else is a memory fault of its queue, never a crash of the process.
//! - What the GPUs claim to be is in `agent.rs`, their limits in `facts.rs`.
//! - What a change of a signal does is said in `signal_op.rs`: a queue whose doorbell it is looks at its packets, and who waits wakes.

mod addresses;
mod agent;
mod allocation;
pub mod api;
mod clock;
mod config;
mod copy;
mod dispatch;
mod doorbell;
mod event;
mod executable;
pub mod export;
mod facts;
mod foreign;
mod handlers;
mod host_memory;
mod init;
mod ipc;
mod isa;
mod loaded;
mod loader;
mod lock;
mod memory;
mod packet;
pub mod pointer;
mod pointer_info;
mod pool;
mod profiling;
mod queue;
mod queue_index;
mod reader;
#[cfg(feature = "rig")]
pub mod rig;
mod runtime;
mod segment;
mod signal;
mod signal_op;
pub mod status;
mod svm;
mod symbol;
mod system;
pub mod types;
mod vmem;
mod wait;
mod watch;
