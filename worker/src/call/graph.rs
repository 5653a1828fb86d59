//! Operations on graphs. Devices do not know graphs: a launch executes the nodes' work one after another in the order of
//! its stream.

use std::sync::Arc;

use hipr_abi::{
    LaunchFamily, hipGraphInstantiateFlagAutoFreeOnLaunch, hipGraphInstantiateFlagDeviceLaunch,
    hipGraphInstantiateFlagUpload, hipGraphInstantiateFlagUseNodePriority,
};
use hipr_graph::{Exec, UpdateResult, Work};
use hipr_proto::op::*;
use hipr_proto::{Array, HipError, HipResult, Wire};

use super::launch::{check_flat, check_size, check_table};
use super::{Call, Continuation};
use crate::owned::{GraphTables, KernelNode, NodeWork, Owned};
use hipr_device::{Args, FunctionInfo, Launch, Region};

/// The flags of instantiation that HIP defines.
const INSTANTIATE_FLAGS: u32 = (hipGraphInstantiateFlagAutoFreeOnLaunch
    | hipGraphInstantiateFlagUpload
    | hipGraphInstantiateFlagDeviceLaunch
    | hipGraphInstantiateFlagUseNodePriority) as u32;
/// The flag for launches from the device, which is not supported.
const INSTANTIATE_DEVICE_LAUNCH: u32 = hipGraphInstantiateFlagDeviceLaunch as u32;
/// Size in bytes of a slot in `GRAPH_ADD_KERNEL_NODE`'s arguments.
const SLOT_BYTES: u32 = 8;

/// Number of nodes up to which the nodes of a launch are checked at once.
const CHECKED_AT_ONCE: usize = 256;

/// What is done with the nodes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// All are checked before the first is carried out.
    Check,
    /// They are enqueued.
    Enqueue,
    /// They are added to the graph that is being captured.
    Capture,
}

// ---- what looks at all nodes -----------------------------------------------------------------------------------------

/// What is done with the graphs of a session; it returns a handle.
type WorkOnGraphs = dyn FnOnce(&mut GraphTables) -> HipResult<u64> + Send;

/// Something that is done with the graphs of a session and may take long. It needs nothing else of the session, so the graphs can be lent
/// to another thread.
pub(crate) struct GraphWork {
    /// Does it; returns a handle.
    pub(crate) work: Box<WorkOnGraphs>,
    /// Continues with the handle when the graphs are back.
    pub(crate) then: fn(&mut Call<'_>, u64) -> HipResult<Continuation>,
}

impl std::fmt::Debug for GraphWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphWork").finish_non_exhaustive()
    }
}

/// Does something with the graphs, now if they are small.
fn with_graphs(
    call: &mut Call<'_>,
    work: impl FnOnce(&mut GraphTables) -> HipResult<u64> + Send + 'static,
    then: fn(&mut Call<'_>, u64) -> HipResult<Continuation>,
) -> HipResult<Continuation> {
    if call.owned.graphs.are_long() {
        return Ok(Continuation::Lend(GraphWork { work: Box::new(work), then }));
    }
    let result = work(&mut call.owned.graphs);
    finish_work(call, result, then)
}

/// Continues with the result of what was done with the graphs.
pub(crate) fn finish_work(
    call: &mut Call<'_>,
    result: HipResult<u64>,
    then: fn(&mut Call<'_>, u64) -> HipResult<Continuation>,
) -> HipResult<Continuation> {
    match result {
        Ok(handle) => then(call, handle),
        // There is nothing else of which there may not be enough.
        Err(HipError::OUT_OF_MEMORY) => {
            Err(call.refuse("handles_max", call.limits.handles_max as u64, false))
        }
        Err(error) => Err(error),
    }
}

/// Returns how many handles the session may still have, for a copy or an instance of one of its graphs.
fn room(call: &mut Call<'_>) -> HipResult<usize> {
    let needed = call.owned.graphs.weight();
    let left = |call: &Call<'_>| call.owned.handles_left(0, call.limits);
    if left(call) < needed {
        // What is done on another thread is not tried again.
        let is_own = call.owned.claimed_handles().saturating_add(needed) > call.limits.handles_max;
        if call.more.is_there && !is_own {
            return Err(HipError::OUT_OF_MEMORY);
        }
        let (pools, context) = call.owned.pools()?;
        pools.release_idle(context)?;
    }
    Ok(left(call))
}

/// Checks that there is room for a copy or an instance of a graph.
fn check_weight(tables: &GraphTables, graph: u64, room: usize) -> HipResult<()> {
    if tables.graphs.weight_of(graph)? <= room { Ok(()) } else { Err(HipError::OUT_OF_MEMORY) }
}

// ---- graphs ----------------------------------------------------------------------------------------------------------

pub(super) fn create(call: &mut Call<'_>, r: GraphCreate) -> HipResult<Continuation> {
    if r.flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    call.check_room(1)?;
    let graph = call.owned.graphs.graphs.create();
    let graph = call.owned.names.made(Handle::Graph, graph);
    call.reply(GraphCreateReply { graph })
}

pub(super) fn destroy(call: &mut Call<'_>, r: GraphDestroy) -> HipResult<Continuation> {
    let destroy = move |tables: &mut GraphTables| tables.graphs.destroy(r.graph).map(|()| r.graph);
    with_graphs(call, destroy, |call, graph| {
        call.owned.names.forget(Handle::Graph, graph);
        call.done()
    })
}

pub(super) fn clone(call: &mut Call<'_>, r: GraphClone) -> HipResult<Continuation> {
    let room = room(call)?;
    let copy = move |tables: &mut GraphTables| {
        check_weight(tables, r.original_graph, room)?;
        tables.graphs.copy(r.original_graph)
    };
    with_graphs(call, copy, |call, copy| {
        let cloned_graph = call.owned.names.made(Handle::Graph, copy);
        call.reply(GraphCloneReply { cloned_graph })
    })
}

// ---- nodes -----------------------------------------------------------------------------------------------------------

/// Adds a node with work; `None` adds an empty node.
fn add(
    call: &mut Call<'_>,
    graph: u64,
    num_deps: u32,
    tail: &mut &[u8],
    work: impl FnOnce(&mut Call<'_>, &[u8]) -> HipResult<Option<NodeWork>>,
) -> HipResult<u64> {
    let dependencies: Vec<u64> = Array::take(tail, num_deps.into())?.iter().collect();
    let work = work(call, tail)?;
    call.check_room(work.as_ref().map_or(1, Work::weight) + dependencies.len())?;
    call.owned.graphs.graphs.add(graph, &dependencies, work)
}

pub(super) fn add_memcpy(
    call: &mut Call<'_>,
    r: GraphAddMemcpyNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let region = |ptr, pitch| Region { ptr, pitch, slice: 0, width: r.width, height: r.height, depth: 1 };
    let (dst, src) = (region(r.dst, r.dst_pitch), region(r.src, r.src_pitch));
    let node = add(call, r.graph, r.num_deps, &mut tail, |call, _| copy(call, dst, src, r.kind))?;
    call.reply(GraphAddMemcpyNodeReply { node })
}

pub(super) fn add_memcpy_1d(
    call: &mut Call<'_>,
    r: GraphAddMemcpyNode1D,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let (dst, src) = (Region::flat(r.dst, r.count), Region::flat(r.src, r.count));
    let node = add(call, r.graph, r.num_deps, &mut tail, |call, _| copy(call, dst, src, r.kind))?;
    call.reply(GraphAddMemcpyNode1DReply { node })
}

/// Returns the work of a copy. Both ends have to be the client's memory on the worker, even if `direction` says host.
fn copy(call: &Call<'_>, dst: Region, src: Region, direction: i32) -> HipResult<Option<NodeWork>> {
    if !(kind::HOST_TO_HOST..=kind::DEFAULT).contains(&direction) {
        return Err(HipError::INVALID_MEMCPY_DIRECTION);
    }
    if dst.height > 1 && (dst.pitch < dst.width || src.pitch < src.width) {
        return Err(HipError::INVALID_PITCH_VALUE);
    }
    let work = NodeWork::Copy { dst, src };
    check_work(call.owned, &work)?;
    Ok(Some(work))
}

pub(super) fn add_memset(
    call: &mut Call<'_>,
    r: GraphAddMemsetNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let node = add(call, r.graph, r.num_deps, &mut tail, |call, _| {
        if ![1, 2, 4].contains(&r.element_size) {
            return Err(HipError::INVALID_VALUE);
        }
        let width = r.width.checked_mul(r.element_size.into()).ok_or(HipError::INVALID_VALUE)?;
        if r.height > 1 && r.pitch < width {
            return Err(HipError::INVALID_PITCH_VALUE);
        }
        let dst = Region { ptr: r.dst, pitch: r.pitch, slice: 0, width, height: r.height, depth: 1 };
        let value = r.value.cast_unsigned();
        let work = NodeWork::Fill { dst, value, element_bytes: r.element_size };
        check_work(call.owned, &work)?;
        Ok(Some(work))
    })?;
    call.reply(GraphAddMemsetNodeReply { node })
}

pub(super) fn add_kernel(
    call: &mut Call<'_>,
    r: GraphAddKernelNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let node = add(call, r.graph, r.num_deps, &mut tail, |call, slots| {
        kernel(call, r.func, (r.grid_dim, r.block_dim), r.shared_mem_bytes, r.num_args, slots).map(Some)
    })?;
    call.reply(GraphAddKernelNodeReply { node })
}

/// Returns the work of a launch whose arguments are in slots of 8 bytes, each in as many as its size needs.
fn kernel(
    call: &Call<'_>,
    function: u64,
    (grid, block): ([u32; 3], [u32; 3]),
    shared_mem_bytes: u32,
    num_slots: u32,
    mut slots: &[u8],
) -> HipResult<NodeWork> {
    check_size(grid, block, LaunchFamily::Runtime)?;
    let info = &call.owned.function(function)?.info;
    let table = slot_table(info, num_slots)?;
    let data = Array::<u64>::take(&mut slots, num_slots.into())?.iter().flat_map(u64::to_le_bytes).collect();
    let table = Some(table);
    let node = KernelNode { function, grid, block, shared_mem_bytes, table, data, cooperative: false };
    Ok(NodeWork::Kernel(Arc::new(node)))
}

/// Returns the position of each parameter in the slots.
fn slot_table(info: &FunctionInfo, num_slots: u32) -> HipResult<Vec<Param>> {
    let of = |slot: u32| slot.checked_mul(SLOT_BYTES).ok_or(HipError::INVALID_VALUE);
    let Some(params) = &info.params else {
        return (0..num_slots).map(|slot| Ok(Param { offset: of(slot)?, size: SLOT_BYTES })).collect();
    };
    let mut next: u32 = 0;
    let mut table = Vec::with_capacity(params.len());
    for param in params {
        table.push(Param { offset: of(next)?, size: param.size });
        let slots = param.size.div_ceil(SLOT_BYTES).max(1);
        next = next.checked_add(slots).ok_or(HipError::INVALID_VALUE)?;
    }
    if next == num_slots { Ok(table) } else { Err(HipError::INVALID_VALUE) }
}

pub(super) fn add_empty(
    call: &mut Call<'_>,
    r: GraphAddEmptyNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let node = add(call, r.graph, r.num_deps, &mut tail, |_, _| Ok(None))?;
    call.reply(GraphAddEmptyNodeReply { node })
}

pub(super) fn add_host(call: &mut Call<'_>, r: GraphAddHostNode, mut tail: &[u8]) -> HipResult<Continuation> {
    let node = add(call, r.graph, r.num_deps, &mut tail, |_, _| Ok(Some(NodeWork::Host)))?;
    call.reply(GraphAddHostNodeReply { node })
}

pub(super) fn add_event_record(
    call: &mut Call<'_>,
    r: GraphAddEventRecordNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let node = add(call, r.graph, r.num_deps, &mut tail, |call, _| {
        call.owned.check_event(r.event).map(|()| Some(NodeWork::Record(r.event)))
    })?;
    call.reply(GraphAddEventRecordNodeReply { node })
}

pub(super) fn add_event_wait(
    call: &mut Call<'_>,
    r: GraphAddEventWaitNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let node = add(call, r.graph, r.num_deps, &mut tail, |call, _| {
        call.owned.check_event(r.event).map(|()| Some(NodeWork::Wait(r.event)))
    })?;
    call.reply(GraphAddEventWaitNodeReply { node })
}

/// Adds a copy of a graph as one node; later changes of the graph do not affect it (HIP API: hipGraphAddChildGraphNode).
pub(super) fn add_child(
    call: &mut Call<'_>,
    r: GraphAddChildGraphNode,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let dependencies: Vec<u64> = Array::take(&mut tail, r.num_deps.into())?.iter().collect();
    let room = room(call)?.saturating_sub(1 + dependencies.len());
    let add = move |tables: &mut GraphTables| {
        check_weight(tables, r.child, room)?;
        tables.graphs.add_child(r.graph, &dependencies, r.child)
    };
    with_graphs(call, add, |call, node| call.reply(GraphAddChildGraphNodeReply { node }))
}

pub(super) fn add_dependencies(
    call: &mut Call<'_>,
    r: GraphAddDependencies,
    mut tail: &[u8],
) -> HipResult<Continuation> {
    let edges: Array<'_, Edge> = Array::take(&mut tail, r.num_deps.into())?;
    let edges: Vec<_> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    call.check_room(edges.len())?;
    call.owned.graphs.graphs.add_edges(r.graph, &edges)?;
    call.done()
}

pub(super) fn destroy_node(call: &mut Call<'_>, r: GraphDestroyNode) -> HipResult<Continuation> {
    call.owned.graphs.graphs.destroy_node(r.node)?;
    call.done()
}

// ---- questions -------------------------------------------------------------------------------------------------------

/// Encodes at most `max` values as replies contain them; returns the number of all values and the encoding.
fn list<T: Wire>(all: impl Iterator<Item = T> + Clone, max: u32) -> (u32, Vec<u8>) {
    let shown = all.take(usize::try_from(max).unwrap_or(usize::MAX));
    let count = u32::try_from(shown.clone().count()).unwrap_or(u32::MAX);
    let mut bytes = Vec::new();
    shown.for_each(|item| item.put(&mut bytes));
    (count, bytes)
}

/// Replies with a fixed part and a tail.
fn reply_list<R: Wire>(call: &mut Call<'_>, reply: R, tail: Vec<u8>) -> HipResult<Continuation> {
    reply.put(call.reply);
    Ok(Continuation::List(tail))
}

pub(super) fn nodes(call: &mut Call<'_>, r: GraphGetNodes) -> HipResult<Continuation> {
    let (num_nodes, tail) = list(call.owned.graphs.graphs.nodes(r.graph)?, r.max_nodes);
    reply_list(call, GraphGetNodesReply { num_nodes, reserved: 0 }, tail)
}

pub(super) fn roots(call: &mut Call<'_>, r: GraphGetRootNodes) -> HipResult<Continuation> {
    let (num_nodes, tail) = list(call.owned.graphs.graphs.roots(r.graph)?, r.max_nodes);
    reply_list(call, GraphGetRootNodesReply { num_nodes, reserved: 0 }, tail)
}

pub(super) fn edges(call: &mut Call<'_>, r: GraphGetEdges) -> HipResult<Continuation> {
    let edges = call.owned.graphs.graphs.edges(r.graph)?.map(|(from, to)| Edge { from, to });
    let (num_edges, tail) = list(edges, r.max_edges);
    reply_list(call, GraphGetEdgesReply { num_edges, reserved: 0 }, tail)
}

pub(super) fn dependencies(call: &mut Call<'_>, r: GraphNodeGetDependencies) -> HipResult<Continuation> {
    let (num_nodes, tail) = list(call.owned.graphs.graphs.dependencies(r.node)?, r.max_nodes);
    reply_list(call, GraphNodeGetDependenciesReply { num_nodes, reserved: 0 }, tail)
}

pub(super) fn dependents(call: &mut Call<'_>, r: GraphNodeGetDependentNodes) -> HipResult<Continuation> {
    let (num_nodes, tail) = list(call.owned.graphs.graphs.dependents(r.node)?, r.max_nodes);
    reply_list(call, GraphNodeGetDependentNodesReply { num_nodes, reserved: 0 }, tail)
}

pub(super) fn node_type(call: &mut Call<'_>, r: GraphNodeGetType) -> HipResult<Continuation> {
    let r#type = call.owned.graphs.graphs.content(r.node)?.node_type();
    call.reply(GraphNodeGetTypeReply { r#type })
}

// ---- ready graphs ----------------------------------------------------------------------------------------------------

pub(super) fn instantiate(call: &mut Call<'_>, r: GraphInstantiate) -> HipResult<Continuation> {
    if r.flags & !INSTANTIATE_FLAGS != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    if r.flags & INSTANTIATE_DEVICE_LAUNCH != 0 {
        return Err(HipError::NOT_SUPPORTED);
    }
    let room = room(call)?;
    let instantiate = move |tables: &mut GraphTables| {
        let exec = make_ready(tables, r.graph, room)?;
        Ok(tables.add_exec(exec))
    };
    with_graphs(call, instantiate, |call, exec| {
        let graph_exec = call.owned.names.made(Handle::Exec, exec);
        call.reply(GraphInstantiateReply { graph_exec })
    })
}

fn make_ready(tables: &GraphTables, graph: u64, room: usize) -> HipResult<Exec<NodeWork>> {
    check_weight(tables, graph, room)?;
    tables.graphs.instantiate(graph)
}

pub(super) fn exec_destroy(call: &mut Call<'_>, r: GraphExecDestroy) -> HipResult<Continuation> {
    let destroy = move |tables: &mut GraphTables| tables.remove_exec(r.graph_exec).map(|()| r.graph_exec);
    with_graphs(call, destroy, |call, exec| {
        call.owned.names.forget(Handle::Exec, exec);
        call.done()
    })
}

/// Updates an instantiated graph. A failed reply contains nothing but the error, so the difference is only logged.
pub(super) fn exec_update(call: &mut Call<'_>, r: GraphExecUpdate) -> HipResult<Continuation> {
    let (conn, room) = (call.conn, room(call)?);
    let update = move |tables: &mut GraphTables| {
        tables.exec(r.graph_exec)?;
        let other = make_ready(tables, r.graph, room)?;
        tables.change_exec(r.graph_exec, |exec| {
            exec.update(&other).map_err(|mismatch| {
                tracing::debug!(%conn, ?mismatch, "cannot update an instantiated graph");
                HipError::GRAPH_EXEC_UPDATE_FAILURE
            })
        })?;
        Ok(r.graph_exec)
    };
    with_graphs(call, update, |call, _| {
        call.reply(GraphExecUpdateReply { update_result: UpdateResult::Success as i32 })
    })
}

pub(super) fn exec_set_kernel(
    call: &mut Call<'_>,
    r: GraphExecKernelNodeSetParams,
    tail: &[u8],
) -> HipResult<Continuation> {
    let work = kernel(call, r.func, (r.grid_dim, r.block_dim), r.shared_mem, r.num_params, tail)?;
    call.check_room(work.weight())?;
    call.owned.graphs.change_exec(r.graph_exec, |exec| exec.set_work(r.node, work))?;
    call.done()
}

/// Launches a graph, or adds its nodes to the graph that is being captured. Checks all nodes before the first one is
/// executed.
pub(super) fn launch(call: &mut Call<'_>, r: GraphLaunch) -> HipResult<Continuation> {
    call.owned.check_stream(r.stream)?;
    let exec = call.owned.graphs.exec(r.graph_exec)?.clone();
    let mut stage = Stage::Check;
    if exec.steps().len() <= CHECKED_AT_ONCE {
        exec.steps()
            .iter()
            .filter_map(|step| step.work())
            .try_for_each(|work| check_work(call.owned, work))?;
        stage = launch_stage(call, &exec, r.stream)?;
    } else if call.more.is_there {
        // What lacks memory when all nodes are checked is not tried again.
        launch_stage(call, &exec, r.stream)?;
    }
    Ok(Continuation::Replay { exec, stream: r.stream, stage })
}

/// Returns what a launch does with the nodes when they are checked.
pub(crate) fn launch_stage(call: &mut Call<'_>, exec: &Exec<NodeWork>, stream: u64) -> HipResult<Stage> {
    if !call.is_captured(stream)? {
        return Ok(Stage::Enqueue);
    }
    call.check_room(exec.weight() + exec.steps().len())?;
    Ok(Stage::Capture)
}

/// Adds a node's work to the graph that is being captured.
pub(crate) fn capture_node(owned: &mut Owned, work: &NodeWork, stream: u64) -> HipResult<()> {
    let graphs = &mut owned.graphs;
    graphs.captures.record_work(&mut graphs.graphs, stream, Some(work.clone())).map(drop)
}

// ---- what nodes do ---------------------------------------------------------------------------------------------------

/// Checks all handles and addresses of a node.
pub(crate) fn check_work(owned: &Owned, work: &NodeWork) -> HipResult<()> {
    match work {
        NodeWork::Kernel(kernel) => {
            let info = &owned.function(kernel.function)?.info;
            match &kernel.table {
                Some(table) => check_table(info, table),
                None => check_flat(info, &kernel.data).map(drop),
            }
        }
        NodeWork::Copy { dst, src } => {
            owned.check_region(dst)?;
            owned.check_region(src)
        }
        NodeWork::Fill { dst, .. } => owned.check_region(dst),
        NodeWork::Record(event) | NodeWork::Wait(event) => owned.check_event(*event),
        NodeWork::Host => Ok(()),
    }
}

/// Enqueues a node's work in the order of a stream. Its handles and addresses have been checked and cannot have changed
/// since, because a session executes nothing else during a launch.
pub(crate) fn enqueue(owned: &mut Owned, work: &NodeWork, stream: u64) -> HipResult<()> {
    let launch_args = |kernel: &KernelNode| owned.function(kernel.function).map(|found| found.info.clone());
    match work {
        NodeWork::Kernel(kernel) => {
            let info = launch_args(kernel)?;
            let args = match &kernel.table {
                Some(table) => Args::Params { table, data: &kernel.data },
                None => Args::Flat(check_flat(&info, &kernel.data)?),
            };
            let origin = owned.launches.begin(kernel.function, stream);
            owned.context()?.launch(&Launch {
                function: kernel.function,
                grid: kernel.grid,
                block: kernel.block,
                shared_mem_bytes: kernel.shared_mem_bytes,
                stream,
                args,
                start_event: None,
                stop_event: None,
                cooperative: kernel.cooperative,
                origin,
            })
        }
        NodeWork::Copy { dst, .. } if dst.len_bytes() == Some(0) => Ok(()),
        NodeWork::Copy { dst, src } => owned.context()?.copy(*dst, *src, stream),
        NodeWork::Fill { dst, .. } if dst.len_bytes() == Some(0) => Ok(()),
        NodeWork::Fill { dst, value, element_bytes } => {
            owned.context()?.fill(*dst, *value, *element_bytes, stream)
        }
        NodeWork::Record(event) => owned.record_event(*event, stream),
        NodeWork::Wait(event) => owned.wait_event(stream, *event, 0),
        NodeWork::Host => Ok(()),
    }
}
