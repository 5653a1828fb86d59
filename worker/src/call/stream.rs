//! Operations on streams and events.

use hipr_abi::hipStreamNonBlocking;
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Wire};

use super::{Call, Continuation};
use crate::owned::AskedTimes;
use hipr_device::WaitFor;

fn create_one(call: &mut Call<'_>, flags: u32, priority: i32) -> HipResult<u64> {
    if flags & !hipStreamNonBlocking != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    call.check_room(1)?;
    let stream = call.context()?.stream_create(flags, priority)?;
    Ok(call.owned.add_stream(stream))
}

fn destroy_one(call: &mut Call<'_>, stream: u64) -> HipResult<()> {
    call.owned.check_own_stream(stream)?;
    let graphs = &mut call.owned.graphs;
    graphs.captures.forget_stream(&mut graphs.graphs, stream);
    call.owned.remove_stream(stream);
    let (pools, context) = call.owned.pools()?;
    pools.forget_stream(stream);
    context.stream_destroy(stream)
}

pub(super) fn create(call: &mut Call<'_>, r: StreamCreate) -> HipResult<Continuation> {
    let stream = create_one(call, r.flags, r.priority)?;
    call.reply(StreamCreateReply { stream })
}

/// Calls `make` for the first `count` handles; if one fails, calls `undo` for those before it.
fn batch<const N: usize>(
    call: &mut Call<'_>,
    kind: Handle,
    count: u32,
    make: impl Fn(&mut Call<'_>) -> HipResult<u64>,
    undo: impl Fn(&mut Call<'_>, u64) -> HipResult<()>,
) -> HipResult<[u64; N]> {
    let mut handles = [0; N];
    let places =
        handles.get_mut(..usize::try_from(count).unwrap_or(usize::MAX)).ok_or(HipError::INVALID_VALUE)?;
    for i in 0..places.len() {
        let made = make(call);
        match (made, places.get_mut(i)) {
            (Ok(handle), Some(place)) => *place = handle,
            (result, _) => {
                for &handle in places.iter().take(i) {
                    let handle = call.owned.names.resolve(kind, handle);
                    undo(call, handle)?;
                }
                return Err(result.err().unwrap_or(HipError::INVALID_VALUE));
            }
        }
    }
    Ok(handles)
}

pub(super) fn create_batch(call: &mut Call<'_>, r: StreamCreateBatch) -> HipResult<Continuation> {
    let handles = batch(call, Handle::Stream, r.count, |call| create_one(call, r.flags, 0), destroy_one)?;
    call.reply(StreamCreateBatchReply { count: r.count, pad: 0, handles })
}

pub(super) fn destroy(call: &mut Call<'_>, r: StreamDestroy) -> HipResult<Continuation> {
    destroy_one(call, r.stream)?;
    call.done()
}

pub(super) fn synchronize(call: &mut Call<'_>, r: StreamSynchronize) -> HipResult<Continuation> {
    call.check_uncaptured_stream(r.stream)?;
    Ok(Continuation::Wait(WaitFor::Stream(r.stream)))
}

pub(super) fn query(call: &mut Call<'_>, r: StreamQuery) -> HipResult<Continuation> {
    call.check_uncaptured_stream(r.stream)?;
    call.context()?.query(WaitFor::Stream(r.stream))?;
    call.done()
}

/// Does what a query does, and notes that the client is to be told when it would do something else, if it finds that `what` is not done.
fn query_and_watch(call: &mut Call<'_>, what: WaitFor, number: u64) -> HipResult<Continuation> {
    let result = call.context()?.query(what);
    if result == Err(HipError::NOT_READY) {
        call.owned.queried.add(what, number);
    }
    result?;
    call.done()
}

pub(super) fn watch(call: &mut Call<'_>, r: StreamWatch) -> HipResult<Continuation> {
    call.check_feature(Features::WATCHES)?;
    call.check_uncaptured_stream(r.stream)?;
    query_and_watch(call, WaitFor::Stream(r.stream), r.number)
}

pub(super) fn wait_event(call: &mut Call<'_>, r: StreamWaitEvent) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    call.owned.check_event(r.event)?;
    if !call.owned.graphs.captures.is_empty() {
        let is_blocking = call.is_blocking(r.stream)?;
        if call.owned.graphs.captures.wait_event(r.stream, r.event, is_blocking)? {
            return call.done();
        }
    }
    call.owned.wait_event(r.stream, r.event, r.flags)?;
    call.done()
}

pub(super) fn flags(call: &mut Call<'_>, r: StreamGetFlags) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let flags = call.context_ref()?.stream_flags(r.stream)?;
    call.reply(StreamGetFlagsReply { flags })
}

pub(super) fn priority(call: &mut Call<'_>, r: StreamGetPriority) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let priority = call.context_ref()?.stream_priority(r.stream)?;
    call.reply(StreamGetPriorityReply { priority })
}

// ---- events ----------------------------------------------------------------------------------------------------------

fn event_create_one(call: &mut Call<'_>, flags: u32) -> HipResult<u64> {
    call.check_room(1)?;
    let event = call.context()?.event_create(flags)?;
    Ok(call.owned.add_event(event))
}

fn event_destroy_one(call: &mut Call<'_>, event: u64) -> HipResult<()> {
    call.owned.check_event(event)?;
    call.owned.graphs.captures.forget_event(event);
    call.owned.remove_event(event);
    call.context()?.event_destroy(event)
}

pub(super) fn event_create(call: &mut Call<'_>, r: EventCreate) -> HipResult<Continuation> {
    let event = event_create_one(call, r.flags)?;
    call.reply(EventCreateReply { event })
}

pub(super) fn event_create_batch(call: &mut Call<'_>, r: EventCreateBatch) -> HipResult<Continuation> {
    let make = |call: &mut Call<'_>| event_create_one(call, r.flags);
    let handles = batch(call, Handle::Event, r.count, make, event_destroy_one)?;
    call.reply(EventCreateBatchReply { count: r.count, pad: 0, handles })
}

pub(super) fn event_destroy(call: &mut Call<'_>, r: EventDestroy) -> HipResult<Continuation> {
    event_destroy_one(call, r.event)?;
    call.done()
}

pub(super) fn event_record(call: &mut Call<'_>, r: EventRecord) -> HipResult<Continuation> {
    call.owned.check_event(r.event)?;
    call.owned.check_stream(r.stream)?;
    // The null stream may not be used now; an event that is recorded outside belongs to no capture any more.
    call.is_captured(r.stream)?;
    if call.owned.graphs.captures.record_event(r.event, r.stream)? {
        return call.done();
    }
    call.owned.record_event(r.event, r.stream)?;
    call.done()
}

pub(super) fn event_synchronize(call: &mut Call<'_>, r: EventSynchronize) -> HipResult<Continuation> {
    call.check_uncaptured_event(r.event)?;
    Ok(Continuation::Wait(WaitFor::Event(r.event)))
}

pub(super) fn event_query(call: &mut Call<'_>, r: EventQuery) -> HipResult<Continuation> {
    call.check_uncaptured_event(r.event)?;
    call.context()?.query(WaitFor::Event(r.event))?;
    call.done()
}

pub(super) fn event_watch(call: &mut Call<'_>, r: EventWatch) -> HipResult<Continuation> {
    call.check_feature(Features::WATCHES)?;
    call.check_uncaptured_event(r.event)?;
    query_and_watch(call, WaitFor::Event(r.event), r.number)
}

pub(super) fn event_elapsed_time(call: &mut Call<'_>, r: EventElapsedTime) -> HipResult<Continuation> {
    let milliseconds = call.owned.event_elapsed_ms(r.start_event, r.stop_event)?;
    call.reply(EventElapsedTimeReply { milliseconds })
}

/// Notes the events between which the client wants to be told the times (`session/watched.rs`).
pub(super) fn event_times(call: &mut Call<'_>, r: EventTimes, mut tail: &[u8]) -> HipResult<Continuation> {
    call.check_feature(Features::TIMES)?;
    if r.count as usize > TIMES_MAX {
        return Err(HipError::INVALID_VALUE);
    }
    let pairs: Result<_, _> = (0..r.count).map(|_| EventPair::take(&mut tail)).collect();
    call.owned.asked_times = Some(AskedTimes { number: r.number, pairs: pairs? });
    call.done()
}
