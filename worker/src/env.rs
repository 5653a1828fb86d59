//! The parts of the worker that a session uses.

use std::cell::Cell;
use std::rc::Rc;

use hipr_device::{Device, Waker};
use hipr_io::BodyPool;

use crate::SessionLimits;
use crate::apart::Apart;
use crate::cache::Cache;
use crate::stats::Requests;

/// The parts of the worker that a session uses.
pub(crate) struct Env<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) limits: &'a SessionLimits,
    /// The cache of uploads, if the worker has one.
    pub(crate) cache: Option<&'a Cache>,
    /// The thread for what takes long.
    pub(crate) apart: &'a Apart,
    pub(crate) requests: &'a Requests,
    /// Bytes transferred to or from the device in one turn.
    pub(crate) turn_max_bytes: usize,
    /// Bytes of tails that all sessions have collected.
    pub(crate) collected_bytes: &'a Rc<Cell<usize>>,
    /// Number of sessions that have a lease of memory and can be asked to give back what they do not use.
    pub(crate) leases: &'a Rc<Cell<usize>>,
    pub(crate) waker: &'a dyn Fn() -> Waker,
    /// The buffers for reading device memory.
    pub(crate) bodies: &'a BodyPool,
}
