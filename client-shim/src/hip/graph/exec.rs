//! Functions about instantiated graphs: instantiate, update, launch.

use std::collections::BTreeSet;

use hipr_abi::*;
use hipr_graph::{Exec, UpdateResult};
use hipr_proto::{HipError, HipResult};

use super::objects;
use crate::command::{Command, Node};
use crate::convert::{Chars, Out, Ptr, Stream};
use crate::hip::allocation;
use crate::session::Session;
use crate::stream::graphs::released;
use crate::thread;
use crate::worker::Wait;

/// All flags that `hipGraphInstantiateWithFlags` takes. To upload needs parameters; graphs are not launched from the device.
const INSTANTIATE_FLAGS: u64 =
    (hipGraphInstantiateFlagAutoFreeOnLaunch | hipGraphInstantiateFlagUseNodePriority) as u64;
/// The flag to upload the graph when it is instantiated.
const INSTANTIATE_UPLOAD: u64 = hipGraphInstantiateFlagUpload as u64;

/// Changes an instantiated graph, and destroys the worker's copy.
pub(super) fn change<T>(
    session: &Session,
    exec: Ptr,
    change: impl FnOnce(&mut Exec<Node>) -> HipResult<T>,
) -> HipResult<T> {
    let (remote, result) = session.streams().graphs.change_exec(exec, change)?;
    session.submit_all(released(remote))?;
    result
}

/// `hipGraphNodeSetEnabled`.
pub(crate) fn set_enabled(session: &Session, exec: Ptr, node: Ptr, is_enabled: u32) -> HipResult<()> {
    change(session, exec, |exec| {
        check_switchable(exec.work(node.wire())?)?;
        exec.set_enabled(node.wire(), is_enabled != 0)
    })
}

/// Checks that a node can be switched off. HIP API: kernels, copies and fills can.
fn check_switchable(node: &Node) -> HipResult<()> {
    match **node {
        Command::Kernel(_) | Command::Copy(_) | Command::PeerCopy(_) | Command::Fill(_) => Ok(()),
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipGraphNodeGetEnabled`.
pub(crate) fn is_enabled(session: &Session, exec: Ptr, node: Ptr, is_enabled: Out<u32>) -> HipResult<()> {
    let out = is_enabled.check()?;
    let is_enabled = session.streams().graphs.with(|tables| {
        let exec = tables.exec(exec)?;
        check_switchable(exec.work(node.wire())?)?;
        exec.is_enabled(node.wire())
    })?;
    out.set(is_enabled.into());
    Ok(())
}

/// `hipGraphInstantiate`: as AMD's runtime does not report the node and the text of an error.
pub(crate) fn instantiate(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    _error_node: Out<Ptr>,
    _log: Chars,
    _log_bytes: usize,
) -> HipResult<()> {
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
    out.set(session.streams().graphs.with(|tables| tables.instantiate(graph.wire(), flags))?);
    Ok(())
}

/// `hipGraphInstantiateWithParams`.
pub(crate) fn instantiate_with_params(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    params: Ptr,
) -> HipResult<()> {
    let place = Out::<hipGraphInstantiateParams>::at_address(params);
    let params = place.value().ok_or(HipError::INVALID_VALUE)?;
    let result = instantiate_and_upload(session, exec, graph, &params);
    let result_out = match result {
        Ok(()) => hipGraphInstantiateSuccess,
        Err(_) if is_circle(session, graph) => hipGraphInstantiateInvalidStructure,
        Err(_) => hipGraphInstantiateError,
    };
    place.set(hipGraphInstantiateParams { errNode_out: core::ptr::null_mut(), result_out, ..params });
    result
}

fn instantiate_and_upload(
    session: &Session,
    exec: Out<Ptr>,
    graph: Ptr,
    params: &hipGraphInstantiateParams,
) -> HipResult<()> {
    let uploads = params.flags & INSTANTIATE_UPLOAD != 0;
    if uploads {
        session.handle(params.uploadStream.into())?;
    }
    // HIP API: this function takes the flag that a kernel may launch the graph; on these devices none can.
    let ignored = INSTANTIATE_UPLOAD | hipGraphInstantiateFlagDeviceLaunch as u64;
    instantiate_with_flags(session, exec, graph, params.flags & !ignored)?;
    match exec.value() {
        Some(exec) if uploads => upload(session, exec, params.uploadStream.into()),
        _ => Ok(()),
    }
}

/// Returns whether the graph has a cycle, so that it cannot be instantiated.
fn is_circle(session: &Session, graph: Ptr) -> bool {
    let graph = graph.wire();
    session
        .streams()
        .graphs
        .with(|tables| tables.graphs.check(graph).is_ok() && tables.graphs.instantiate(graph).is_err())
}

/// Waits for the work of streams; returns its first error, which no other call reports then.
fn wait_for_all(session: &Session, streams: &BTreeSet<u64>) -> HipResult<()> {
    if streams.iter().any(|stream| session.handle(Stream::from_wire(*stream)).is_err()) {
        // The work of a destroyed stream goes on.
        return session.wait(Wait::Device(thread::device()));
    }
    let wait = |stream: &u64| session.wait_for_functions(*stream).and(session.end_call(*stream));
    streams.iter().map(wait).fold(Ok(()), HipResult::and)
}

/// `hipGraphExecDestroy`: waits for the launches of a graph that keeps user objects.
pub(crate) fn exec_destroy(session: &Session, exec: Ptr) -> HipResult<()> {
    let gone = session.streams().graphs.destroy_exec(exec)?;
    let result = session.submit_all(released(gone.remote));
    let waited = wait_for_all(session, &gone.launched_on);
    objects::change(session, |tables| tables.graphs.release(&gone.kept));
    result.and(waited).and(allocation::give_back_all(session, gone.memory))
}

/// `hipGraphExecGetFlags`.
pub(crate) fn exec_flags(session: &Session, exec: Ptr, flags: Out<u64>) -> HipResult<()> {
    let out = flags.check()?;
    out.set(session.streams().graphs.with(|tables| tables.flags(exec))?);
    Ok(())
}

/// Returns a graph as a launch would execute it now; the inner result is an error for a graph with a cycle.
fn snapshot(session: &Session, graph: Ptr) -> HipResult<HipResult<Exec<Node>>> {
    session.streams().graphs.with(|tables| {
        tables.graphs.check(graph.wire())?;
        Ok(tables.graphs.instantiate(graph.wire()))
    })
}

/// `hipGraphExecChildGraphNodeSetParams`: reads the parameters of the child graph's nodes now.
pub(crate) fn set_child(session: &Session, exec: Ptr, node: Ptr, child: Ptr) -> HipResult<()> {
    let other = snapshot(session, child)?;
    change(session, exec, |exec| exec.set_child(node.wire(), &other.map_err(|_| HipError::UNKNOWN)?))
}

/// `hipGraphExecUpdate`: what differs is told also, and just, when there is an error.
pub(crate) fn exec_update(
    session: &Session,
    exec: Ptr,
    graph: Ptr,
    error_node: Out<Ptr>,
    result: Out<i32>,
) -> HipResult<()> {
    let (error_node, result) = (error_node.check()?, result.check()?);
    let other = snapshot(session, graph)?;
    let updated = change(session, exec, |mine| {
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
    let stream = session.handle(stream)?;
    session.submit_all(session.streams().launch_graph(&session.caller(), exec, stream)?)
}

/// `hipGraphUpload`.
pub(crate) fn upload(session: &Session, exec: Ptr, stream: Stream) -> HipResult<()> {
    let stream = session.handle(stream)?;
    let (_, in_vain) = session.streams().upload_graph(session.worker(), exec, stream)?;
    session.submit_all(in_vain)
}
