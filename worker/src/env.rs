//! The parts of the worker that a session uses.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use hipr_device::{Device, Waker};
use hipr_io::{BodyPool, Budget, Lender};

use crate::SessionLimits;
use crate::apart::Apart;
use crate::cache::Cache;
use crate::peers::Peers;
use crate::stats::Requests;

/// The parts of the worker that a session uses.
pub(crate) struct Env<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) limits: &'a SessionLimits,
    /// What the session could have beyond the limits.
    pub(crate) more: More<'a>,
    /// The cache of uploads, if the worker has one.
    pub(crate) cache: Option<&'a Cache>,
    /// What copies between workers need, if there may be any.
    pub(crate) peers: Option<&'a Peers>,
    /// The thread for what takes long.
    pub(crate) apart: &'a Apart,
    pub(crate) requests: &'a Requests,
    /// Bytes transferred to or from the device in one turn.
    pub(crate) turn_max_bytes: usize,
    /// What the session may have with others, in which what it collects of requests counts.
    pub(crate) budget: &'a Arc<Budget>,
    /// Number of sessions that have a lease of memory and can be asked to give back what they do not use.
    pub(crate) leases: &'a Rc<Cell<usize>>,
    pub(crate) waker: &'a dyn Fn() -> Waker,
    /// The buffers for reading device memory.
    pub(crate) bodies: &'a BodyPool,
}

/// What a session could have beyond its limits, where memory is lent.
#[derive(Clone, Copy)]
pub(crate) struct More<'a> {
    /// Whether a request that lacks memory is tried again with more of it.
    pub(crate) is_there: bool,
    /// The most bytes that the session may have allocated when enough memory is lent.
    pub(crate) memory_max_bytes: u64,
    /// Who lends the memory.
    pub(crate) lender: Option<&'a dyn Lender>,
}

impl More<'_> {
    /// Returns the bytes that the session could have allocated now.
    pub(crate) fn could_have_bytes(&self, limits: &SessionLimits) -> u64 {
        let left = self.lender.map_or(0, Lender::left_bytes);
        limits.with_aside_bytes().saturating_add(left).min(self.memory_max_bytes.max(limits.memory_max_bytes))
    }
}
