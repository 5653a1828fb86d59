//! Observers of a connection: a trace is made from what they see.

use std::fmt;
use std::time::Instant;

use hipr_proto::Opcode;
use hipr_proto::op::{Handle, Op, TraceEntry};

/// A request that was put into the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    /// Its number on the connection, from 1 on; modulo 2^32.
    pub request: u32,
    /// The operation.
    pub op: Opcode,
    /// Its length in bytes, without the header.
    pub len_bytes: u64,
    /// Whether it is answered.
    pub is_answered: bool,
    /// The handle of the stream that it names; 0 if it names none.
    pub stream: u64,
    /// The handle of the kernel that it names; 0 if it names none.
    pub function: u64,
}

impl Requested {
    /// Describes a request with so many bytes behind its fixed part.
    pub(crate) fn new<O: Op>(request: u32, op: &O, behind_bytes: usize, is_answered: bool) -> Self {
        let (mut stream, mut function) = (0, 0);
        let mut fixed = Vec::with_capacity(O::SIZE);
        op.put(&mut fixed);
        if let Ok(mut op) = O::take(&mut fixed.as_slice()) {
            op.handles(|kind, handle| match kind {
                Handle::Stream => stream = *handle,
                Handle::Function => function = *handle,
                _ => {}
            });
        }
        let len_bytes = (O::SIZE + behind_bytes) as u64;
        Self { request, op: O::OPCODE, len_bytes, is_answered, stream, function }
    }
}

/// An observer of a connection. Its methods are called by whatever thread does it, some while the connection is locked: they have
/// to be quick, and must not use the connection.
pub trait Observer: Send + Sync + fmt::Debug {
    /// The connection was made, from `since` on.
    fn connected(&self, since: Instant);

    /// A request was put into the buffer.
    fn requested(&self, request: &Requested);

    /// Bytes were given to the network, from `since` on; `last_request` is the last request that was put into the buffer before.
    fn sent(&self, len_bytes: u64, last_request: u32, since: Instant);

    /// Bytes have arrived.
    fn received(&self, len_bytes: u64);

    /// A thread has waited for the answer to a request, from `since` on; `len_bytes` came behind the fixed part of the answer.
    fn waited(&self, request: u32, len_bytes: u64, since: Instant);

    /// The worker tells when it has carried out requests, and the device their work; `lost` entries were left out.
    fn told(&self, entries: &[TraceEntry], lost: u32);
}
