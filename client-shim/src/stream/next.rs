//! What the phases of a call ask their caller for.

use hipr_proto::HipResult;

use crate::command::{HostFunction, Transfer};
use crate::worker::Wait;

/// The action that the caller takes before the next phase of a call.
#[derive(Debug)]
pub enum Next {
    /// Continue with the next phase.
    Continue,
    /// Wait until these steps of host functions have finished.
    WaitForSteps(Vec<u64>),
    /// Wait for the worker, or query it, and pass the result to [`resume`](super::Call::resume).
    Wait(Wait),
    /// Wait for the answers to this question, hand them to [`Mirrors::answered`](super::mirror::Mirrors::answered), and pass the result of
    /// the wait that was sent with it to [`resume`](super::Call::resume).
    Answer(u64),
    /// Wait until the answers to this question, and to all earlier ones, have been applied.
    WaitForAnswers(u64),
    /// Copy from the device to the program's memory, wait, and pass the result to [`resume`](super::Call::resume).
    Receive(Box<Transfer>),
    /// Call a function of the program with the result of the work before it; pass to [`resume`](super::Call::resume) that result for a plain
    /// function, and success for a callback.
    CallHost(HostFunction, HipResult<()>),
    /// Return this result from the call.
    Done(HipResult<()>),
}
