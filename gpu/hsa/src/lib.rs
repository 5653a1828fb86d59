//! An HSA runtime whose GPUs are emulated: `libhsa-runtime64.so.1` for programs, and for AMD's HIP runtime, in the process that loads it.
//!
//! ```text
//!  program, AMD's libamdhip64 ──C ABI──▶ api (the table of functions)
//!                                         │
//!     ┌──────────┬───────────┬────────────┼─────────────┬───────────────┐
//!   agent      pool        signal       queue        executable       copy
//!   isa        allocation  wait           │  packets   reader           │
//!   system     lock, vmem  watch          ▼            loader           │
//!              ipc, svm    handlers    dispatch ◀── kernels             │
//!                 │                       │                             │
//!                 ▼                       ▼                             ▼
//!              memory: one address ◀── hipr-grid: workgroups on the executors' threads ──▶ hipr-isa
//! ```
//!
//! - Each function is a row of `api.rs`; `export.rs` says what becomes of a row.
//! - Memory of pools, locked memory and memory of other processes has one address for host and kernels; what a kernel can reach is said
//!   in `memory.rs`, and an access to anything else is a memory fault of its queue, never a crash of the process.
//! - What the GPUs claim to be is in `agent.rs`.

mod agent;
mod allocation;
pub mod api;
mod config;
mod copy;
mod dispatch;
mod executable;
pub mod export;
mod foreign;
mod handlers;
mod host_memory;
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
mod reader;
mod runtime;
mod segment;
mod signal;
pub mod status;
mod svm;
mod symbol;
mod system;
pub mod types;
mod vmem;
mod wait;
mod watch;
