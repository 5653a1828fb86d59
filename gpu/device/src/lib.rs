//! The contract of GPUs: what a worker requires of a device.
//!
//! [`Device`] is one source of GPUs (the emulator, a machine's real ones, a test's script); [`Context`] is one client's view of it:
//! its own address space, handles and errors. A session owns one context and drops it when the client goes.
//!
//! Three rules hold for every implementation:
//!
//! - **Nothing blocks.** Every method is called on the dispatch's thread, which serves all sessions. Work that takes time is
//!   enqueued; a wait is a `poll_*` method that returns [`Poll::Pending`](std::task::Poll::Pending) and is asked again after the [`Waker`] was called.
//! - **Handles and addresses come checked.** The session table refuses what the session does not own and what leaves an
//!   allocation. A context still answers an unknown handle with an error (never a panic), because a kernel computes its own.
//! - **Errors come in two kinds.** What a method can judge at once is its result. What surfaces while work runs (a wild
//!   access in a kernel) is kept and is the result of the next [`Context::poll_sync`] that covers that work, once.
//!
//! Stream handles 0 and 1 are the legacy null stream of the current device, 2 is its per-thread stream (HIP API: hipStreamLegacy,
//! hipStreamPerThread); all others were made by [`Context::stream_create`], and are of the device that was current then.
//!
//! Nothing is implemented here: `hipr-sim` is the emulated GPU, `hipr-hip` the real ones.

#![forbid(unsafe_code)]

mod context;
mod failure;
mod launch;
mod load;
mod mappings;
mod module;
mod region;
mod room;
mod times;
mod waker;

pub use context::{Context, Device, MemPools, MemoryKind, Share, WaitFor};
pub use failure::{Origin, Printed, WorkFailure};
pub use hipr_proto::op::Param;
pub use launch::{Args, BlockSize, FunctionInfo, Launch};
pub use load::Load;
pub use mappings::Mappings;
pub use module::ModuleLoad;
pub use region::Region;
pub use room::Room;
pub use times::{TIMES_MAX, WorkTimes};
pub use waker::Waker;
