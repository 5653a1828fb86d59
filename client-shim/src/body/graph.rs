//! Graphs.

use std::sync::Arc;

use hipr_graph::{Content, Exec, UpdateResult};
use hipr_proto::{HipError, HipResult};

use super::copy::CopyTask;
use super::fill::FillTask;
use super::launch::KernelTask;
use crate::convert::{Chars, Context, Event, In, Out, Ptr, Stream};
use crate::graphs::{Tables, Task};
use crate::session::Session;
use crate::types::{DrvMemcpy3D, HostFn, InstantiateParams, KernelNodeParams, Memcpy3D, MemsetParams};

/// `hipGraphInstantiateFlags`: free on launch, upload, device launch, node priority.
const INSTANTIATE_FLAGS: u64 = 1 | 2 | 4 | 8;
/// Launches from the device.
const INSTANTIATE_DEVICE_LAUNCH: u64 = 4;

/// `hipGraphCreate`.
pub(crate) fn create(session: &Session, graph: Out<Ptr>, flags: u32) -> HipResult<()> {
    let out = graph.check()?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(Ptr::from_wire(session.graphs().with(|tables| tables.graphs.create())));
    Ok(())
}

/// `hipGraphDestroy`.
pub(crate) fn destroy(session: &Session, graph: Ptr) -> HipResult<()> {
    session.graphs().with(|tables| tables.graphs.destroy(graph.wire()))
}

/// `hipGraphClone`.
pub(crate) fn clone(session: &Session, copy: Out<Ptr>, graph: Ptr) -> HipResult<()> {
    let out = copy.check()?;
    out.set(Ptr::from_wire(session.graphs().with(|tables| tables.graphs.copy(graph.wire()))?));
    Ok(())
}

/// `hipGraphNodeFindInClone`.
pub(crate) fn find_in_clone(session: &Session, node: Out<Ptr>, original: Ptr, copy: Ptr) -> HipResult<()> {
    let out = node.check()?;
    let found = session.graphs().with(|tables| tables.graphs.find_in_copy(original.wire(), copy.wire()))?;
    out.set(Ptr::from_wire(found));
    Ok(())
}

// ---- nodes -----------------------------------------------------------------------------------------------------------

pub(super) fn handles(list: In<Ptr>, count: usize) -> HipResult<Vec<u64>> {
    (0..count).map(|index| list.at(index).map(Ptr::wire).ok_or(HipError::INVALID_VALUE)).collect()
}

fn add(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    (dependencies, count): (In<Ptr>, usize),
    task: Option<Task>,
) -> HipResult<()> {
    let out = node.check()?;
    let dependencies = handles(dependencies, count)?;
    let node = session.graphs().with(|tables| tables.graphs.add(graph.wire(), &dependencies, task))?;
    out.set(Ptr::from_wire(node));
    Ok(())
}

fn kernel(session: &Session, params: Ptr) -> HipResult<Task> {
    let params = In::<KernelNodeParams>::at_address(params).check()?;
    Ok(Task::Kernel(Arc::new(KernelTask::of_node(session, &params)?)))
}

fn memset(session: &Session, params: Ptr) -> HipResult<Task> {
    let params = In::<MemsetParams>::at_address(params).check()?;
    Ok(Task::Fill(FillTask::of_node(session, &params)?))
}

fn memcpy(params: In<Memcpy3D>) -> HipResult<Task> {
    Ok(Task::Copy(CopyTask::of_node(params.check()?)?))
}

/// `hipHostNodeParams` is a function and what it is given.
fn host(params: Ptr) -> HipResult<Task> {
    let function = In::<HostFn>::at_address(params).check()?;
    function.ok_or(HipError::INVALID_VALUE)?;
    let data = In::<Ptr>::at_address(params.offset(size_of::<HostFn>())).check()?;
    Ok(Task::Host(function, data))
}

fn check_event(session: &Session, event: Event) -> HipResult<Event> {
    if session.events().contains_key(&event) { Ok(event) } else { Err(HipError::INVALID_VALUE) }
}

/// `hipGraphAddKernelNode`: the arguments are read now.
pub(crate) fn add_kernel(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    params: Ptr,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(kernel(session, params)?))
}

/// `hipGraphAddMemcpyNode`: the bytes are read when the graph is launched.
pub(crate) fn add_memcpy(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    params: In<Memcpy3D>,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(memcpy(params)?))
}

/// `hipDrvGraphAddMemcpyNode`: there is one context per device, and the addresses say which device.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn add_drv_memcpy(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    params: In<DrvMemcpy3D>,
    _context: Context,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(Task::Copy(CopyTask::of_driver(params)?)))
}

/// `hipGraphAddMemcpyNode1D`.
#[allow(clippy::too_many_arguments, reason = "the C function's parameters")]
pub(crate) fn add_memcpy_1d(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
) -> HipResult<()> {
    let task = Task::Copy(CopyTask::linear(dst, src, len, kind)?);
    add(session, node, graph, (dependencies, count), Some(task))
}

/// `hipGraphAddMemsetNode`.
pub(crate) fn add_memset(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    params: Ptr,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(memset(session, params)?))
}

/// `hipGraphAddHostNode`.
pub(crate) fn add_host(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    params: Ptr,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(host(params)?))
}

/// `hipGraphAddEmptyNode`.
pub(crate) fn add_empty(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), None)
}

/// `hipGraphAddEventRecordNode`.
pub(crate) fn add_event_record(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    event: Event,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(Task::Record(check_event(session, event)?)))
}

/// `hipGraphAddEventWaitNode`.
pub(crate) fn add_event_wait(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    event: Event,
) -> HipResult<()> {
    add(session, node, graph, (dependencies, count), Some(Task::Wait(check_event(session, event)?)))
}

/// `hipGraphAddChildGraphNode`: the child is copied now.
pub(crate) fn add_child(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    child: Ptr,
) -> HipResult<()> {
    let out = node.check()?;
    let dependencies = handles(dependencies, count)?;
    let add = |tables: &mut Tables| tables.graphs.add_child(graph.wire(), &dependencies, child.wire());
    out.set(Ptr::from_wire(session.graphs().with(add)?));
    Ok(())
}

/// `hipGraphChildGraphNodeGetGraph`.
pub(crate) fn child(session: &Session, node: Ptr, graph: Out<Ptr>) -> HipResult<()> {
    let out = graph.check()?;
    session.graphs().with(|tables| match tables.graphs.content(node.wire())? {
        Content::Child(child) => {
            out.set(Ptr::from_wire(*child));
            Ok(())
        }
        _ => Err(HipError::INVALID_VALUE),
    })
}

/// `hipGraphDestroyNode`.
pub(crate) fn destroy_node(session: &Session, node: Ptr) -> HipResult<()> {
    session.graphs().with(|tables| tables.graphs.destroy_node(node.wire()))
}

fn edge_list(from: In<Ptr>, to: In<Ptr>, count: usize) -> HipResult<Vec<(u64, u64)>> {
    Ok(handles(from, count)?.into_iter().zip(handles(to, count)?).collect())
}

/// `hipGraphAddDependencies`.
pub(crate) fn add_dependencies(
    session: &Session,
    graph: Ptr,
    from: In<Ptr>,
    to: In<Ptr>,
    count: usize,
) -> HipResult<()> {
    let edges = edge_list(from, to, count)?;
    session.graphs().with(|tables| tables.graphs.add_edges(graph.wire(), &edges))
}

/// `hipGraphRemoveDependencies`.
pub(crate) fn remove_dependencies(
    session: &Session,
    graph: Ptr,
    from: In<Ptr>,
    to: In<Ptr>,
    count: usize,
) -> HipResult<()> {
    let edges = edge_list(from, to, count)?;
    session.graphs().with(|tables| tables.graphs.remove_edges(graph.wire(), &edges))
}

// ---- questions -------------------------------------------------------------------------------------------------------

/// HIP API: without an array only the number is wanted; an array that is too long ends with null handles.
fn list(places: &[Out<Ptr>], count: Out<usize>, all: &[&[u64]]) -> HipResult<()> {
    let count = count.check()?;
    let have = all.first().map_or(0, |all| all.len());
    if places.iter().all(|place| place.is_null()) {
        count.set(have);
        return Ok(());
    }
    let room = count.value().unwrap_or(0);
    for (place, all) in places.iter().zip(all) {
        (0..room).for_each(|index| {
            place.set_at(index, all.get(index).map_or(Ptr::NULL, |handle| Ptr::from_wire(*handle)));
        });
    }
    count.set(room.min(have));
    Ok(())
}

fn list_nodes(
    session: &Session,
    nodes: Out<Ptr>,
    count: Out<usize>,
    all: impl FnOnce(&mut Tables) -> HipResult<Vec<u64>>,
) -> HipResult<()> {
    let all = session.graphs().with(all)?;
    list(&[nodes], count, &[&all])
}

/// `hipGraphGetNodes`.
pub(crate) fn nodes(session: &Session, graph: Ptr, nodes: Out<Ptr>, count: Out<usize>) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.nodes(graph.wire())?.collect()))
}

/// `hipGraphGetRootNodes`.
pub(crate) fn roots(session: &Session, graph: Ptr, nodes: Out<Ptr>, count: Out<usize>) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.roots(graph.wire())?.collect()))
}

/// `hipGraphGetEdges`.
pub(crate) fn edges(
    session: &Session,
    graph: Ptr,
    from: Out<Ptr>,
    to: Out<Ptr>,
    count: Out<usize>,
) -> HipResult<()> {
    if from.is_null() != to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let all: (Vec<u64>, Vec<u64>) =
        session.graphs().with(|tables| HipResult::Ok(tables.graphs.edges(graph.wire())?.unzip()))?;
    list(&[from, to], count, &[&all.0, &all.1])
}

/// `hipGraphNodeGetDependencies`.
pub(crate) fn dependencies(
    session: &Session,
    node: Ptr,
    nodes: Out<Ptr>,
    count: Out<usize>,
) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.dependencies(node.wire())?.collect()))
}

/// `hipGraphNodeGetDependentNodes`.
pub(crate) fn dependents(session: &Session, node: Ptr, nodes: Out<Ptr>, count: Out<usize>) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.dependents(node.wire())?.collect()))
}

/// `hipGraphNodeGetType`.
pub(crate) fn node_type(session: &Session, node: Ptr, node_type: Out<i32>) -> HipResult<()> {
    let out = node_type.check()?;
    out.set(session.graphs().with(|t| t.graphs.content(node.wire()).map(Content::node_type))?);
    Ok(())
}

/// `hipGraphEventRecordNodeGetEvent`, `hipGraphEventWaitNodeGetEvent`.
pub(crate) fn event(session: &Session, node: Ptr, event: Out<Event>) -> HipResult<()> {
    let out = event.check()?;
    session.graphs().with(|tables| match tables.graphs.content(node.wire())? {
        Content::Work(Task::Record(event) | Task::Wait(event)) => {
            out.set(*event);
            Ok(())
        }
        _ => Err(HipError::INVALID_VALUE),
    })
}

// ---- other parameters ------------------------------------------------------------------------------------------------

fn set(session: &Session, node: Ptr, task: Task) -> HipResult<()> {
    session.graphs().with(|tables| tables.graphs.set_work(node.wire(), task))
}

fn exec_set(session: &Session, exec: Ptr, node: Ptr, task: Task) -> HipResult<()> {
    session.graphs().change_exec(session, exec, |exec| exec.set_work(node.wire(), task))
}

/// `hipGraphKernelNodeSetParams`.
pub(crate) fn set_kernel(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    set(session, node, kernel(session, params)?)
}

/// `hipGraphExecKernelNodeSetParams`.
pub(crate) fn exec_set_kernel(session: &Session, exec: Ptr, node: Ptr, params: Ptr) -> HipResult<()> {
    exec_set(session, exec, node, kernel(session, params)?)
}

/// `hipGraphMemsetNodeSetParams`.
pub(crate) fn set_memset(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    set(session, node, memset(session, params)?)
}

/// `hipGraphExecMemsetNodeSetParams`.
pub(crate) fn exec_set_memset(session: &Session, exec: Ptr, node: Ptr, params: Ptr) -> HipResult<()> {
    exec_set(session, exec, node, memset(session, params)?)
}

/// `hipGraphMemcpyNodeSetParams`.
pub(crate) fn set_memcpy(session: &Session, node: Ptr, params: In<Memcpy3D>) -> HipResult<()> {
    set(session, node, memcpy(params)?)
}

/// `hipGraphExecMemcpyNodeSetParams`.
pub(crate) fn exec_set_memcpy(
    session: &Session,
    exec: Ptr,
    node: Ptr,
    params: Out<Memcpy3D>,
) -> HipResult<()> {
    exec_set(session, exec, node, memcpy(In::at_address(params.address()))?)
}

/// `hipGraphMemcpyNodeSetParams1D`.
pub(crate) fn set_memcpy_1d(
    session: &Session,
    node: Ptr,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
) -> HipResult<()> {
    set(session, node, Task::Copy(CopyTask::linear(dst, src, len, kind)?))
}

/// `hipGraphExecMemcpyNodeSetParams1D`.
pub(crate) fn exec_set_memcpy_1d(
    session: &Session,
    exec: Ptr,
    node: Ptr,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
) -> HipResult<()> {
    exec_set(session, exec, node, Task::Copy(CopyTask::linear(dst, src, len, kind)?))
}

/// `hipGraphHostNodeSetParams`.
pub(crate) fn set_host(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    set(session, node, host(params)?)
}

/// `hipGraphExecHostNodeSetParams`.
pub(crate) fn exec_set_host(session: &Session, exec: Ptr, node: Ptr, params: Ptr) -> HipResult<()> {
    exec_set(session, exec, node, host(params)?)
}

/// `hipGraphEventRecordNodeSetEvent`.
pub(crate) fn set_event_record(session: &Session, node: Ptr, event: Event) -> HipResult<()> {
    set(session, node, Task::Record(check_event(session, event)?))
}

/// `hipGraphEventWaitNodeSetEvent`.
pub(crate) fn set_event_wait(session: &Session, node: Ptr, event: Event) -> HipResult<()> {
    set(session, node, Task::Wait(check_event(session, event)?))
}

/// `hipGraphExecEventRecordNodeSetEvent`.
pub(crate) fn exec_set_event_record(session: &Session, exec: Ptr, node: Ptr, event: Event) -> HipResult<()> {
    exec_set(session, exec, node, Task::Record(check_event(session, event)?))
}

/// `hipGraphExecEventWaitNodeSetEvent`.
pub(crate) fn exec_set_event_wait(session: &Session, exec: Ptr, node: Ptr, event: Event) -> HipResult<()> {
    exec_set(session, exec, node, Task::Wait(check_event(session, event)?))
}

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

// ---- ready graphs ----------------------------------------------------------------------------------------------------

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
    let result = instantiate_with_flags(session, exec, graph, params.flags);
    // hipGraphInstantiateSuccess, hipGraphInstantiateError.
    let result_out = i32::from(result.is_err());
    place.set(InstantiateParams { error_node: Ptr::NULL, result_out, ..params });
    result
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
    let other: HipResult<Exec<Task>> =
        session.graphs().with(|tables| tables.graphs.instantiate(graph.wire()));
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
pub(crate) fn launch(session: &'static Session, exec: Ptr, stream: Stream) -> HipResult<()> {
    session.graphs().launch(session, exec, stream)
}

/// `hipGraphUpload`.
pub(crate) fn upload(session: &Session, exec: Ptr, stream: Stream) -> HipResult<()> {
    session.graphs().upload(session, exec, stream)
}
