//! Parameters of nodes: given back as they would be given, and those of a node of any kind.

use std::sync::Arc;

use hipr_graph::{Content, node_type};
use hipr_proto::{HipError, HipResult};

use super::{
    add_child, add_empty, add_event_record, add_event_wait, add_host, add_kernel, add_memcpy, add_memset,
};
use crate::convert::{In, Out, Ptr};
use crate::graphs::Task;
use crate::session::Session;
use crate::types::{HostFn, KernelNodeParams, Memcpy3D, MemsetParams};

/// Where the parameters of its kind begin in `hipGraphNodeParams`, behind the kind.
const OWN_AT: usize = 16;
/// Where `hipMemcpy3DParms` begins in `hipMemcpyNodeParams`, behind flags.
const COPY_AT: usize = 16;

/// What `find` finds in the work of a node.
///
/// # Errors
/// `hipErrorInvalidValue`: there is no such node, or it does something else.
pub(super) fn of_work<T>(
    session: &Session,
    node: Ptr,
    find: impl FnOnce(&Task) -> Option<T>,
) -> HipResult<T> {
    session.graphs().with(|tables| match tables.graphs.content(node.wire())? {
        Content::Work(task) => find(task).ok_or(HipError::INVALID_VALUE),
        _ => Err(HipError::INVALID_VALUE),
    })
}

/// `hipGraphKernelNodeGetParams`: pointers are the node's, until it has other parameters.
pub(crate) fn kernel_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<KernelNodeParams>::at_address(params).check()?;
    let find = |task: &Task| if let Task::Kernel(kernel) = task { Some(Arc::clone(kernel)) } else { None };
    out.set(of_work(session, node, find)?.node_params(session));
    Ok(())
}

/// `hipGraphMemcpyNodeGetParams`: the places that are copied, without positions in something larger.
pub(crate) fn memcpy_params(session: &Session, node: Ptr, params: Out<Memcpy3D>) -> HipResult<()> {
    let out = params.check()?;
    let find = |task: &Task| if let Task::Copy(copy) = task { Some(copy.node_params()) } else { None };
    out.set(of_work(session, node, find)?);
    Ok(())
}

/// `hipGraphMemsetNodeGetParams`.
pub(crate) fn memset_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<MemsetParams>::at_address(params).check()?;
    let find = |task: &Task| if let Task::Fill(fill) = task { Some(fill.node_params()) } else { None };
    out.set(of_work(session, node, find)?);
    Ok(())
}

/// `hipGraphHostNodeGetParams`.
pub(crate) fn host_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<HostFn>::at_address(params).check()?;
    let find =
        |task: &Task| if let Task::Host(function, data) = task { Some((*function, *data)) } else { None };
    let (function, data) = of_work(session, node, find)?;
    out.set(function);
    Out::<Ptr>::at_address(params.offset(size_of::<HostFn>())).set(data);
    Ok(())
}

/// `hipGraphAddNode`: of memory and semaphores there are no nodes.
pub(crate) fn add_node(
    session: &Session,
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
    params: Ptr,
) -> HipResult<()> {
    let kind = In::<i32>::at_address(params).check()?;
    let own = params.offset(OWN_AT);
    match kind {
        node_type::KERNEL => add_kernel(session, node, graph, dependencies, count, own),
        node_type::MEMCPY => {
            let copy = In::at_address(own.offset(COPY_AT));
            add_memcpy(session, node, graph, dependencies, count, copy)
        }
        node_type::MEMSET => add_memset(session, node, graph, dependencies, count, own),
        node_type::HOST => add_host(session, node, graph, dependencies, count, own),
        node_type::GRAPH => {
            add_child(session, node, graph, dependencies, count, In::at_address(own).check()?)
        }
        node_type::EMPTY => add_empty(session, node, graph, dependencies, count),
        node_type::WAIT_EVENT => {
            add_event_wait(session, node, graph, dependencies, count, In::at_address(own).check()?)
        }
        node_type::EVENT_RECORD => {
            add_event_record(session, node, graph, dependencies, count, In::at_address(own).check()?)
        }
        // hipGraphNodeTypeExtSemaphoreSignal to hipGraphNodeTypeMemFree.
        8..=11 => Err(HipError::NOT_SUPPORTED),
        _ => Err(HipError::INVALID_VALUE),
    }
}
