//! Functions about memory that graphs allocate and free.

use hipr_abi::{
    hipGraphMemAttributeType, hipMemAllocNodeParams, hipMemAllocationTypePinned, hipMemLocation,
    hipMemLocationTypeDevice, hipMemPoolProps,
};
use hipr_graph::Content;
use hipr_proto::{HipError, HipResult};

use super::{NewNode, of_work};
use crate::command::{Command, GraphAllocation, Node};
use crate::convert::{In, Out, Ptr};
use crate::hip::allocation;
use crate::session::Session;
use crate::thread;

/// Allocates the memory of a node and makes the node, which `add` adds to a graph; returns its address.
pub(in crate::hip) fn allocate(
    session: &Session,
    bytes: usize,
    device: i32,
    add: impl FnOnce(Node) -> HipResult<()>,
) -> HipResult<Ptr> {
    let at = thread::with_device(device, || allocation::allocate(session, bytes, 0))?;
    session.streams().graphs.with(|tables| tables.memory.add(at, bytes as u64, device));
    let added = add(Node::new(Command::GraphAllocate(GraphAllocation { at, bytes, device })));
    if added.is_err() {
        let unused = session.streams().graphs.with(|tables| tables.memory.forget_graph(&[at]));
        allocation::give_back_all(session, unused)?;
    }
    added.map(|()| at)
}

/// `hipGraphAddMemAllocNode`.
pub(crate) fn add_allocation(session: &Session, node: NewNode, params: Ptr) -> HipResult<()> {
    let out = Out::<hipMemAllocNodeParams>::at_address(params).check()?;
    let params = out.value().ok_or(HipError::INVALID_VALUE)?;
    let hipMemPoolProps { allocType, location, .. } = params.poolProps;
    let is_right = allocType == hipMemAllocationTypePinned
        && location.r#type == hipMemLocationTypeDevice
        && session.worker().check_device(location.id).is_ok();
    if !is_right || params.bytesize == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    node.check(session)?;
    let at = allocate(session, params.bytesize, location.id, |work| node.add(session, Some(work)))?;
    out.set(hipMemAllocNodeParams { dptr: at.as_mut_ptr(), ..params });
    Ok(())
}

/// `hipGraphAddMemFreeNode`, `hipDrvGraphAddMemFreeNode`.
pub(crate) fn add_free(session: &Session, node: NewNode, at: Ptr) -> HipResult<()> {
    let can_free = session.streams().graphs.with(|tables| {
        // HIP API: no graph frees memory twice.
        let frees = |node| match tables.graphs.content(node) {
            Ok(Content::Work(work)) => matches!(**work, Command::GraphFree(freed) if freed == at),
            _ => false,
        };
        HipResult::Ok(tables.memory.has(at) && !tables.graphs.nodes(node.graph())?.any(frees))
    })?;
    if !can_free {
        return Err(HipError::INVALID_VALUE);
    }
    node.add(session, Some(Node::new(Command::GraphFree(at))))
}

/// `hipGraphMemAllocNodeGetParams`.
pub(crate) fn allocation_params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<hipMemAllocNodeParams>::at_address(params).check()?;
    let find = |command: &Command| {
        if let Command::GraphAllocate(allocation) = command { Some(*allocation) } else { None }
    };
    let GraphAllocation { at, bytes, device } = of_work(session, node, find)?;
    out.set(hipMemAllocNodeParams {
        poolProps: hipMemPoolProps {
            allocType: hipMemAllocationTypePinned,
            location: hipMemLocation { r#type: hipMemLocationTypeDevice, id: device },
            ..hipMemPoolProps::default()
        },
        bytesize: bytes,
        dptr: at.as_mut_ptr(),
        ..hipMemAllocNodeParams::default()
    });
    Ok(())
}

/// `hipGraphMemFreeNodeGetParams`.
pub(crate) fn free_params(session: &Session, node: Ptr, at: Ptr) -> HipResult<()> {
    let out = Out::<Ptr>::at_address(at).check()?;
    let find = |command: &Command| match command {
        Command::GraphFree(at) | Command::Free(at) => Some(*at),
        _ => None,
    };
    out.set(of_work(session, node, find)?);
    Ok(())
}

/// `hipDeviceGetGraphMemAttribute`.
pub(crate) fn attribute(
    session: &Session,
    device: i32,
    attribute: hipGraphMemAttributeType,
    value: Ptr,
) -> HipResult<()> {
    session.worker().check_device(device)?;
    let out = Out::<u64>::at_address(value).check()?;
    out.set(session.streams().graphs.with(|tables| tables.memory.attribute(device, attribute))?);
    Ok(())
}

/// `hipDeviceSetGraphMemAttribute`: the most bytes can be set to 0, and nothing else.
pub(crate) fn set_attribute(
    session: &Session,
    device: i32,
    attribute: hipGraphMemAttributeType,
    value: Ptr,
) -> HipResult<()> {
    session.worker().check_device(device)?;
    if In::<u64>::at_address(value).check()? != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    session.streams().graphs.with(|tables| tables.memory.reset_attribute(device, attribute))
}

/// `hipDeviceGraphMemTrim`: what no graph needs any more was given back.
pub(crate) fn trim(session: &Session, device: i32) -> HipResult<()> {
    session.worker().check_device(device)
}
