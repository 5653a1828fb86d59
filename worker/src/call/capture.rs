//! Operations on stream captures, and their checks. How other operations behave on a captured stream stands with those.
//! Copies from and to the client's own memory cannot be captured here, because each launch of the graph would need their
//! bytes again.

use hipr_graph::{Mode, Work};
use hipr_proto::op::*;
use hipr_proto::{Array, HipError, HipResult};

use super::{Call, Continuation};
use crate::owned::NodeWork;
use hipr_device::WaitFor;

/// The last handle of the null stream, which cannot be captured.
const LEGACY_MAX: u64 = hipr_abi::hipStreamLegacy as u64;
const DEPENDENCIES_ADD: u32 = hipr_abi::hipStreamAddCaptureDependencies;
const DEPENDENCIES_SET: u32 = hipr_abi::hipStreamSetCaptureDependencies;
/// Number of the thread in all calls: the worker cannot tell a client's threads apart.
const THREAD: u64 = 0;

/// Returns whether only relaxed captures allow an operation, because it could wait for the captured streams.
pub(super) fn is_unsafe(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::DEVICE_SYNCHRONIZE
            | Opcode::MALLOC
            | Opcode::MALLOC_HOST
            | Opcode::MALLOC_MANAGED
            | Opcode::MALLOC_BATCH
            | Opcode::MALLOC_AT
            | Opcode::MALLOC_SHARED
            | Opcode::MEM_LEASE
            | Opcode::MEM_ALLOC_PITCH
            | Opcode::FREE
            | Opcode::FREE_HOST
    )
}

impl Call<'_> {
    /// Checks that the current captures allow an operation.
    pub(crate) fn check_capture(&self, op: Opcode) -> HipResult<()> {
        let captures = &self.owned.graphs.captures;
        if captures.is_empty() || !is_unsafe(op) { Ok(()) } else { captures.check_safe(THREAD, Mode::Global) }
    }

    /// Returns whether a stream is being captured.
    pub(super) fn is_captured(&self, stream: u64) -> HipResult<bool> {
        let captures = &self.owned.graphs.captures;
        if captures.is_empty() {
            return Ok(false);
        }
        if stream <= LEGACY_MAX {
            captures.check_legacy()?;
        }
        Ok(captures.is_capturing(stream))
    }

    /// Adds work of a captured stream to its graph.
    pub(super) fn record(&mut self, stream: u64, work: NodeWork) -> HipResult<Continuation> {
        let (_, dependencies) = self.owned.graphs.captures.next(stream)?;
        self.check_room(work.weight() + dependencies.len())?;
        let graphs = &mut self.owned.graphs;
        graphs.captures.record_work(&mut graphs.graphs, stream, Some(work))?;
        self.done()
    }

    /// Checks that a stream exists and is not being captured, for work that cannot be captured and for waits.
    pub(super) fn check_uncaptured_stream(&mut self, stream: u64) -> HipResult<()> {
        self.owned.check_stream(stream)?;
        if stream <= LEGACY_MAX {
            self.owned.graphs.captures.check_legacy()?;
        }
        self.owned.graphs.captures.check_idle(stream)
    }

    /// Checks that the client may wait for or query an event.
    pub(super) fn check_uncaptured_event(&mut self, event: u64) -> HipResult<()> {
        self.owned.check_event(event)?;
        self.owned.graphs.captures.check_event(event)
    }

    /// Returns whether the stream and the legacy null stream wait for each other.
    pub(super) fn is_blocking(&self, stream: u64) -> HipResult<bool> {
        Ok(self.context_ref()?.stream_flags(stream)? & hipr_abi::hipStreamNonBlocking == 0)
    }
}

pub(super) fn begin(call: &mut Call<'_>, r: StreamBeginCapture) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let mode = Mode::try_from(r.mode)?;
    if r.stream <= LEGACY_MAX {
        return Err(HipError::STREAM_CAPTURE_UNSUPPORTED);
    }
    call.check_room(1)?;
    let is_blocking = call.is_blocking(r.stream)?;
    let graphs = &mut call.owned.graphs;
    graphs.captures.begin(&mut graphs.graphs, r.stream, is_blocking, mode, THREAD, None)?;
    call.done()
}

pub(super) fn end(call: &mut Call<'_>, r: StreamEndCapture) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let graphs = &mut call.owned.graphs;
    let graph = graphs.captures.end(&mut graphs.graphs, r.stream, THREAD)?;
    let graph = call.owned.names.made(Handle::Graph, graph);
    call.reply(StreamEndCaptureReply { graph })
}

pub(super) fn info(call: &mut Call<'_>, r: StreamGetCaptureInfo) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let info = call.owned.graphs.captures.info(r.stream);
    let (capture_status, graph) = info.map_or((0, 0), |info| (info.status as i32, info.graph));
    let graph = call.owned.names.number_of(Handle::Graph, graph);
    call.reply(StreamGetCaptureInfoReply { capture_status, graph, reserved: 0 })
}

pub(super) fn is_capturing(call: &mut Call<'_>, r: StreamIsCapturing) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let capture_status = call.owned.graphs.captures.status(r.stream) as i32;
    call.reply(StreamIsCapturingReply { capture_status })
}

pub(super) fn update_dependencies(
    call: &mut Call<'_>,
    r: StreamUpdateCaptureDependencies,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let nodes: Vec<u64> = Array::take(&mut tail, r.num_dependencies.into())?.iter().collect();
    let adds = match r.flags {
        DEPENDENCIES_ADD => true,
        DEPENDENCIES_SET => false,
        _ => return Err(HipError::INVALID_VALUE),
    };
    let graphs = &mut call.owned.graphs;
    graphs.captures.update_dependencies(&graphs.graphs, r.stream, &nodes, adds)?;
    call.done()
}

/// Replies when the work that the stream has now is done, with its error: the client then calls the callback.
pub(super) fn add_callback(call: &mut Call<'_>, r: StreamAddCallback) -> HipResult<Continuation> {
    if r.flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.check_stream(r.stream)?;
    if call.is_captured(r.stream)? {
        return call.record(r.stream, NodeWork::Host);
    }
    Ok(Continuation::Wait(WaitFor::Stream(r.stream)))
}
