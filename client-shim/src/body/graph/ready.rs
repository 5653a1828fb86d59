//! Graphs made ready: instantiated, updated, launched.

use hipr_graph::{Exec, UpdateResult};
use hipr_proto::{HipError, HipResult};

use crate::convert::{Chars, Out, Ptr, Stream};
use crate::graphs::{Tables, Task};
use crate::session::Session;
use crate::types::InstantiateParams;

/// `hipGraphInstantiateFlags`: free on launch, upload, device launch, node priority.
const INSTANTIATE_FLAGS: u64 = 1 | 2 | 4 | 8;
/// Upload when it is made ready.
const INSTANTIATE_UPLOAD: u64 = 2;
/// Launches from the device.
const INSTANTIATE_DEVICE_LAUNCH: u64 = 4;
/// `hipGraphInstantiateResult`.
const INSTANTIATE_SUCCESS: i32 = 0;
const INSTANTIATE_ERROR: i32 = 1;
/// Such as circles.
const INSTANTIATE_INVALID_STRUCTURE: i32 = 2;

/// `hipGraphNodeSetEnabled`.
pub(crate) fn set_enabled(session: &Session, exec: Ptr, node: Ptr, is_enabled: u32) -> HipResult<()> {
    session.graphs().change_exec(session, exec, |exec| exec.set_enabled(node.wire(), is_enabled != 0))
}

/// `hipGraphNodeGetEnabled`.
pub(crate) fn is_enabled(session: &Session, exec: Ptr, node: Ptr, is_enabled: Out<u32>) -> HipResult<()> {
    let out = is_enabled.check()?;
    out.set(session.graphs().with(|tables| tables.exec(exec)?.is_enabled(node.wire()))?.into());
    Ok(())
}

/// `hipGraphInstantiate`: the node and the text of an error are not told.
pub(crate) fn instantiate(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    error_node: Out<Ptr>,
    log: Chars,
    log_bytes: usize,
) -> HipResult<()> {
    error_node.set(Ptr::NULL);
    log.set(b"", log_bytes);
    instantiate_with_flags(session, exec, graph, 0)
}

/// `hipGraphInstantiateWithFlags`.
pub(crate) fn instantiate_with_flags(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    flags: u64,
) -> HipResult<()> {
    let out = exec.check()?;
    if flags & !INSTANTIATE_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    if flags & INSTANTIATE_DEVICE_LAUNCH != 0 {
        return Err(HipError::NOT_SUPPORTED);
    }
    let make = |tables: &mut Tables| -> HipResult<Ptr> {
        let exec = tables.graphs.instantiate(graph.wire())?;
        Ok(tables.add_exec(exec))
    };
    out.set(session.graphs().with(make)?);
    Ok(())
}

/// `hipGraphInstantiateWithParams`.
pub(crate) fn instantiate_with_params(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    params: Ptr,
) -> HipResult<()> {
    let place = Out::<InstantiateParams>::at_address(params);
    let params = place.value().ok_or(HipError::INVALID_VALUE)?;
    let result = instantiate_and_upload(session, exec, graph, &params);
    let result_out = match result {
        Ok(()) => INSTANTIATE_SUCCESS,
        Err(_) if is_circle(session, graph) => INSTANTIATE_INVALID_STRUCTURE,
        Err(_) => INSTANTIATE_ERROR,
    };
    place.set(InstantiateParams { error_node: Ptr::NULL, result_out, ..params });
    result
}

fn instantiate_and_upload(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    params: &InstantiateParams,
) -> HipResult<()> {
    let uploads = params.flags & INSTANTIATE_UPLOAD != 0;
    if uploads {
        session.stream(params.upload_stream)?;
    }
    instantiate_with_flags(session, exec, graph, params.flags)?;
    match exec.value() {
        Some(ready) if uploads => upload(session, ready, params.upload_stream),
        _ => Ok(()),
    }
}

/// Whether it is a graph that cannot be made ready.
fn is_circle(session: &Session, graph: Ptr) -> bool {
    let graph = graph.wire();
    session
        .graphs()
        .with(|tables| tables.graphs.check(graph).is_ok() && tables.graphs.instantiate(graph).is_err())
}

/// `hipGraphExecDestroy`.
pub(crate) fn exec_destroy(session: &Session, exec: Ptr) -> HipResult<()> {
    session.graphs().destroy_exec(session, exec)
}

/// `hipGraphExecUpdate`: what differs is told also, and just, when there is an error.
pub(crate) fn exec_update(
    session: &Session,
    exec: Ptr,
    graph: Ptr,
    error_node: Out<Ptr>,
    result: Out<i32>,
) -> HipResult<()> {
    let result = result.check()?;
    let other: HipResult<Exec<Task>> = session.graphs().with(|tables| {
        tables.graphs.check(graph.wire())?;
        HipResult::Ok(tables.graphs.instantiate(graph.wire()))
    })?;
    let updated = session.graphs().change_exec(session, exec, |mine| {
        Ok(match other {
            Ok(other) => mine.update(&other).map_err(|differs| (differs.result, differs.node)),
            Err(_) => Err((UpdateResult::Error, None)),
        })
    })?;
    let (said, node) = updated.err().unwrap_or((UpdateResult::Success, None));
    result.set(said as i32);
    error_node.set(Ptr::from_wire(node.unwrap_or(0)));
    updated.map_err(|_| HipError::GRAPH_EXEC_UPDATE_FAILURE)
}

/// `hipGraphLaunch`.
pub(crate) fn launch(session: &Session, exec: Ptr, stream: Stream) -> HipResult<()> {
    session.graphs().launch(session, exec, stream)
}

/// `hipGraphUpload`.
pub(crate) fn upload(session: &Session, exec: Ptr, stream: Stream) -> HipResult<()> {
    session.graphs().upload(session, exec, stream)
}
