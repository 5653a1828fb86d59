//! Functions about user objects: what a program wants destroyed when the last graph that uses it is gone.

use hipr_abi::{hipGraphUserObjectMove, hipHostFn_t, hipUserObjectNoDestructorSync};
use hipr_proto::{HipError, HipResult};

use crate::command::HostFunction;
use crate::convert::{Out, Ptr};
use crate::session::Session;
use crate::stream::graphs::Tables;
use crate::submit::call_host;

/// Changes graphs and user objects, then calls the destructors of the objects whose last reference is gone.
pub(super) fn change<T>(session: &Session, change: impl FnOnce(&mut Tables) -> T) -> T {
    let (result, destructors) = session.streams().graphs.with(|tables| {
        let result = change(tables);
        (result, tables.take_destructors())
    });
    for destructor in destructors {
        // A destructor has no status to pass on.
        let _ = call_host(destructor, Ok(()));
    }
    result
}

/// Checks the number of references that a call names.
fn check_count(count: u32) -> HipResult<u64> {
    if (1..=i32::MAX as u32).contains(&count) { Ok(count.into()) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipUserObjectCreate`: HIP has no other destructors than those that no call waits for.
pub(crate) fn create(
    session: &Session,
    object: Out<Ptr>,
    data: Ptr,
    destroy: hipHostFn_t,
    count: u32,
    flags: u32,
) -> HipResult<()> {
    let out = object.check()?;
    destroy.ok_or(HipError::INVALID_VALUE)?;
    let count = check_count(count)?;
    if flags != hipUserObjectNoDestructorSync as u32 {
        return Err(HipError::INVALID_VALUE);
    }
    let handle = session.streams().graphs.with(|tables| {
        let handle = tables.graphs.new_handle();
        tables.graphs.objects.insert(handle, count);
        tables.destructors.insert(handle, HostFunction::Plain(destroy, data));
        handle
    });
    out.set(Ptr::from_wire(handle));
    Ok(())
}

/// `hipUserObjectRetain`.
pub(crate) fn retain(session: &Session, object: Ptr, count: u32) -> HipResult<()> {
    let count = check_count(count)?;
    session.streams().graphs.with(|tables| tables.graphs.objects.retain(object.wire(), count))
}

/// `hipUserObjectRelease`: the destructor runs before the call returns.
pub(crate) fn release(session: &Session, object: Ptr, count: u32) -> HipResult<()> {
    let count = check_count(count)?;
    change(session, |tables| tables.graphs.objects.release(object.wire(), count))
}

/// `hipGraphRetainUserObject`.
pub(crate) fn graph_retain(
    session: &Session,
    graph: Ptr,
    object: Ptr,
    count: u32,
    flags: u32,
) -> HipResult<()> {
    let count = check_count(count)?;
    let is_moved = flags == hipGraphUserObjectMove as u32;
    if flags != 0 && !is_moved {
        return Err(HipError::INVALID_VALUE);
    }
    session.streams().graphs.with(|tables| tables.graphs.keep(graph.wire(), object.wire(), count, is_moved))
}

/// `hipGraphReleaseUserObject`: references that the graph does not have are ignored.
pub(crate) fn graph_release(session: &Session, graph: Ptr, object: Ptr, count: u32) -> HipResult<()> {
    let count = check_count(count)?;
    if object.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    change(session, |tables| tables.graphs.let_go(graph.wire(), object.wire(), count))
}
