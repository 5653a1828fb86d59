//! Functions that return the parameters of graph nodes, and that add nodes of any type.

use std::sync::Arc;

use hipr_abi::{
    hipGraphNodeParams, hipGraphNodeTypeExtSemaphoreSignal, hipGraphNodeTypeMemAlloc,
    hipGraphNodeTypeMemFree, hipHostNodeParams, hipKernelNodeParams, hipMemcpy3DParms, hipMemcpyNodeParams,
    hipMemsetParams,
};
use hipr_graph::node_type;
use hipr_proto::{HipError, HipResult};

use super::{
    NewNode, NodeOf, add_child, add_empty, add_event_record, add_event_wait, add_host, add_kernel,
    add_memcpy, add_memset, memory, of_work, set_child, set_event_record, set_event_wait, set_host,
    set_kernel, set_memcpy, set_memset,
};
use crate::command::{Command, HostFunction};
use crate::convert::{In, Out, Ptr};
use crate::program::register;
use crate::session::Session;

/// Offset of a node's own parameters in `hipGraphNodeParams`, after its type.
const OWN_AT: usize = core::mem::offset_of!(hipGraphNodeParams, reserved1);
/// Offset of the copy in `hipMemcpyNodeParams`, after the flags.
const COPY_AT: usize = core::mem::offset_of!(hipMemcpyNodeParams, copyParams);

/// `hipGraphKernelNodeGetParams`: the returned pointers stay valid until the node's parameters change.
pub(crate) fn kernel_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<hipKernelNodeParams>::at_address(params).check()?;
    let find = |command: &Command| match command {
        Command::Kernel(kernel) => Some((Arc::clone(&kernel.function), kernel.node_params(Ptr::NULL))),
        _ => None,
    };
    let (function, params) = of_work(session, node, find)?;
    // What the program launches it by: no other lock is taken while the graphs' is held.
    out.set(hipKernelNodeParams {
        func: register::launched_as(session.loader(), &function).as_mut_ptr(),
        ..params
    });
    Ok(())
}

/// `hipGraphMemcpyNodeGetParams`: returns the addresses that are copied, with positions of 0.
pub(crate) fn memcpy_params(session: &Session, node: Ptr, params: Out<hipMemcpy3DParms>) -> HipResult<()> {
    let out = params.check()?;
    let find = |task: &Command| if let Command::Copy(copy) = task { Some(copy.node_params()) } else { None };
    out.set(of_work(session, node, find)?);
    Ok(())
}

/// `hipGraphMemsetNodeGetParams`.
pub(crate) fn memset_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<hipMemsetParams>::at_address(params).check()?;
    let find = |task: &Command| if let Command::Fill(fill) = task { Some(fill.node_params()) } else { None };
    out.set(of_work(session, node, find)?);
    Ok(())
}

/// `hipGraphHostNodeGetParams`.
pub(crate) fn host_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<hipHostNodeParams>::at_address(params).check()?;
    let find = |command: &Command| match command {
        Command::Host(HostFunction::Plain(function, data)) => Some((*function, *data)),
        _ => None,
    };
    let (function, data) = of_work(session, node, find)?;
    out.set(hipHostNodeParams { r#fn: function, userData: data.as_mut_ptr() });
    Ok(())
}

/// `hipGraphNodeSetParams`, `hipGraphExecNodeSetParams`.
pub(crate) fn set_node(session: &Session, node: NodeOf, params: Ptr) -> HipResult<()> {
    let kind = In::<i32>::at_address(params).check()?;
    let own = params.offset(OWN_AT);
    match (kind, node) {
        (node_type::KERNEL, _) => set_kernel(session, node, own),
        (node_type::MEMCPY, _) => set_memcpy(session, node, In::at_address(own.offset(COPY_AT))),
        (node_type::MEMSET, _) => set_memset(session, node, own),
        (node_type::HOST, _) => set_host(session, node, own),
        (node_type::GRAPH, NodeOf::Exec(exec, node)) => {
            set_child(session, exec, node, In::at_address(own).check()?)
        }
        (node_type::WAIT_EVENT, _) => set_event_wait(session, node, In::at_address(own).check()?),
        (node_type::EVENT_RECORD, _) => set_event_record(session, node, In::at_address(own).check()?),
        (hipGraphNodeTypeExtSemaphoreSignal..=hipGraphNodeTypeMemFree, _) => {
            node.check(session)?;
            Err(HipError::NOT_SUPPORTED)
        }
        // Others have nothing that could be set.
        _ => Err(HipError::INVALID_VALUE),
    }
}

/// `hipGraphAddNode`: nodes for semaphores are not supported.
pub(crate) fn add_node(session: &Session, node: NewNode, params: Ptr) -> HipResult<()> {
    let kind = In::<i32>::at_address(params).check()?;
    let own = params.offset(OWN_AT);
    match kind {
        node_type::KERNEL => add_kernel(session, node, own),
        node_type::MEMCPY => add_memcpy(session, node, In::at_address(own.offset(COPY_AT))),
        node_type::MEMSET => add_memset(session, node, own),
        node_type::HOST => add_host(session, node, own),
        node_type::GRAPH => add_child(session, node, In::at_address(own).check()?),
        node_type::EMPTY => add_empty(session, node),
        node_type::WAIT_EVENT => add_event_wait(session, node, In::at_address(own).check()?),
        node_type::EVENT_RECORD => add_event_record(session, node, In::at_address(own).check()?),
        hipGraphNodeTypeMemAlloc => memory::add_allocation(session, node, own),
        hipGraphNodeTypeMemFree => memory::add_free(session, node, In::at_address(own).check()?),
        hipGraphNodeTypeExtSemaphoreSignal..hipGraphNodeTypeMemAlloc => Err(HipError::NOT_SUPPORTED),
        _ => Err(HipError::INVALID_VALUE),
    }
}
