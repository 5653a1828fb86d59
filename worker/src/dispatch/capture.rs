//! Stream captures: which streams record instead of working. What a capture does to the operations that put work on a
//! stream stands with those; copies from and to the client's own memory cannot be recorded here, because a graph that is
//! launched again would need those bytes again.

use hipr_graph::{Mode, Work};
use hipr_proto::op::*;
use hipr_proto::{Array, HipError, HipResult};

use super::{Call, Step};
use crate::device::WaitFor;
use crate::session::NodeWork;

/// HIP API: hipStreamLegacy and the null stream, which cannot be captured.
const LEGACY_MAX: u64 = 1;
/// HIP API: hipStreamNonBlocking.
const STREAM_NON_BLOCKING: u32 = 1;
/// HIP API: hipStreamAddCaptureDependencies, hipStreamSetCaptureDependencies.
const DEPENDENCIES_ADD: u32 = 0;
const DEPENDENCIES_SET: u32 = 1;
/// A session has no threads that the worker could tell apart.
const THREAD: u64 = 0;

/// Operations that a capture forbids unless it is relaxed: they could wait for the streams that capture.
pub(super) fn is_unsafe(op: Opcode) -> bool {
    matches!(
        op,
        Opcode::DEVICE_SYNCHRONIZE
            | Opcode::MALLOC
            | Opcode::MALLOC_HOST
            | Opcode::MALLOC_MANAGED
            | Opcode::MALLOC_BATCH
            | Opcode::MEM_ALLOC_PITCH
            | Opcode::FREE
            | Opcode::FREE_HOST
    )
}

impl Call<'_> {
    /// Checks an operation against captures.
    pub(crate) fn check_capture(&self, op: Opcode) -> HipResult<()> {
        let captures = &self.owned.graphs.captures;
        if captures.is_empty() || !is_unsafe(op) { Ok(()) } else { captures.check_safe(THREAD, Mode::Global) }
    }

    /// Whether work on a stream is recorded instead of done.
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

    /// Records work of a capturing stream.
    pub(super) fn record(&mut self, stream: u64, work: NodeWork) -> HipResult<Step> {
        let (_, dependencies) = self.owned.graphs.captures.next(stream)?;
        self.check_room(work.weight() + dependencies.len())?;
        let graphs = &mut self.owned.graphs;
        graphs.captures.record_work(&mut graphs.graphs, stream, Some(work))?;
        self.done()
    }

    /// Checks a stream that work can be put on which cannot be recorded, or that is waited for.
    pub(super) fn check_uncaptured_stream(&mut self, stream: u64) -> HipResult<()> {
        self.owned.check_stream(stream)?;
        if stream <= LEGACY_MAX {
            self.owned.graphs.captures.check_legacy()?;
        }
        self.owned.graphs.captures.check_idle(stream)
    }

    /// Checks an event that the client waits for or asks for.
    pub(super) fn check_uncaptured_event(&mut self, event: u64) -> HipResult<()> {
        self.owned.check_event(event)?;
        self.owned.graphs.captures.check_event(event)
    }

    /// Whether the stream and the legacy null stream wait for each other.
    pub(super) fn is_blocking(&self, stream: u64) -> HipResult<bool> {
        Ok(self.context_ref()?.stream_flags(stream)? & STREAM_NON_BLOCKING == 0)
    }
}

pub(super) fn begin(call: &mut Call<'_>, r: StreamBeginCapture) -> HipResult<Step> {
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

pub(super) fn end(call: &mut Call<'_>, r: StreamEndCapture) -> HipResult<Step> {
    call.owned.check_stream(r.stream)?;
    let graphs = &mut call.owned.graphs;
    let graph = graphs.captures.end(&mut graphs.graphs, r.stream, THREAD)?;
    call.reply(StreamEndCaptureReply { graph })
}

pub(super) fn info(call: &mut Call<'_>, r: StreamGetCaptureInfo) -> HipResult<Step> {
    call.owned.check_stream(r.stream)?;
    let info = call.owned.graphs.captures.info(r.stream);
    let (capture_status, graph) = info.map_or((0, 0), |info| (info.status as i32, info.graph));
    call.reply(StreamGetCaptureInfoReply { capture_status, graph, reserved: 0 })
}

pub(super) fn is_capturing(call: &mut Call<'_>, r: StreamIsCapturing) -> HipResult<Step> {
    call.owned.check_stream(r.stream)?;
    let capture_status = call.owned.graphs.captures.status(r.stream) as i32;
    call.reply(StreamIsCapturingReply { capture_status })
}

pub(super) fn update_dependencies(
    call: &mut Call<'_>,
    r: StreamUpdateCaptureDependencies,
    mut tail: &[u8],
) -> HipResult<Step> {
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

/// The answer is the callback: it leaves when the work that the stream has now is done, and says whether that went well.
pub(super) fn add_callback(call: &mut Call<'_>, r: StreamAddCallback) -> HipResult<Step> {
    if r.flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    call.owned.check_stream(r.stream)?;
    if call.is_captured(r.stream)? {
        return call.record(r.stream, NodeWork::Host);
    }
    Ok(Step::Wait(WaitFor::Stream(r.stream)))
}
