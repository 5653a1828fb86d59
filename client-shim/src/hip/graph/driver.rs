//! Functions of the driver API about graph nodes. The addresses determine the device, so which context it is means nothing.

use hipr_abi::{
    HIP_MEMCPY3D, HIP_MEMSET_NODE_PARAMS, hipMemoryTypeDevice, hipMemoryTypeHost, hipMemoryTypeUnified,
    hipMemsetParams,
};
use hipr_proto::{HipError, HipResult};

use super::{NewNode, NodeOf, checked, memset, of_work};
use crate::command::{Command, MemoryBox, MemoryCopy, Node};
use crate::convert::{Context, In, Out, Ptr};
use crate::hip::copy::of_driver;
use crate::session::Session;

fn copy(session: &Session, params: In<HIP_MEMCPY3D>) -> HipResult<Node> {
    let copy = of_driver(params)?;
    if copy.has_narrow_pitch() {
        return Err(HipError::INVALID_VALUE);
    }
    checked(session, copy)
}

/// `hipDrvGraphAddMemcpyNode`.
pub(crate) fn add_memcpy(
    session: &Session,
    node: NewNode,
    params: In<HIP_MEMCPY3D>,
    context: Context,
) -> HipResult<()> {
    if context.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    node.add(session, Some(copy(session, params)?))
}

/// `hipDrvGraphMemcpyNodeSetParams`.
pub(crate) fn set_memcpy(session: &Session, node: Ptr, params: In<HIP_MEMCPY3D>) -> HipResult<()> {
    NodeOf::Graph(node).set(session, copy(session, params)?)
}

/// `hipDrvGraphExecMemcpyNodeSetParams`.
pub(crate) fn set_exec_memcpy(
    session: &Session,
    exec: Ptr,
    node: Ptr,
    params: In<HIP_MEMCPY3D>,
    _context: Context,
) -> HipResult<()> {
    let node = NodeOf::Exec(exec, node);
    node.set(session, copy(session, params).map_err(|error| node.error(error))?)
}

/// Returns the parameters of a copy, which [`of_driver`] reads.
fn params_of(copy: MemoryCopy) -> HIP_MEMCPY3D {
    let MemoryCopy { dst, src, size } = copy;
    let end = |place: MemoryBox| match place.is_device {
        Some(true) => (hipMemoryTypeDevice, Ptr::NULL, place.at),
        Some(false) => (hipMemoryTypeHost, place.at, Ptr::NULL),
        None => (hipMemoryTypeUnified, Ptr::NULL, place.at),
    };
    let (to, from) = (end(dst), end(src));
    HIP_MEMCPY3D {
        srcMemoryType: from.0,
        srcHost: from.1.as_mut_ptr::<core::ffi::c_void>(),
        srcDevice: from.2.as_mut_ptr(),
        srcPitch: src.pitch,
        srcHeight: src.rows,
        dstMemoryType: to.0,
        dstHost: to.1.as_mut_ptr(),
        dstDevice: to.2.as_mut_ptr(),
        dstPitch: dst.pitch,
        dstHeight: dst.rows,
        WidthInBytes: size.width,
        Height: size.height,
        Depth: size.depth,
        ..HIP_MEMCPY3D::default()
    }
}

/// `hipDrvGraphMemcpyNodeGetParams`.
pub(crate) fn memcpy_params(session: &Session, node: Ptr, params: Out<HIP_MEMCPY3D>) -> HipResult<()> {
    let out = params.check()?;
    let find = |command: &Command| if let Command::Copy(copy) = command { Some(*copy) } else { None };
    out.set(params_of(of_work(session, node, find)?));
    Ok(())
}

/// Reads the parameters of a fill: release 6 has a structure of its own for them, release 7 that of the other functions. Where the one has
/// the size of an element, the other has the upper half of a number of rows, which no memory has.
fn fill_params(params: Ptr) -> HipResult<hipMemsetParams> {
    let newer = In::<hipMemsetParams>::at_address(params);
    let older = In::<HIP_MEMSET_NODE_PARAMS>::at_address(params).check()?;
    if older.elementSize == 0 {
        return newer.check();
    }
    let HIP_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize, width, height } = older;
    Ok(hipMemsetParams { dst, elementSize, height, pitch, value, width })
}

/// `hipDrvGraphAddMemsetNode`.
pub(crate) fn add_memset(session: &Session, node: NewNode, params: Ptr, _context: Context) -> HipResult<()> {
    node.add(session, Some(memset(session, &fill_params(params)?)?))
}

/// `hipDrvGraphExecMemsetNodeSetParams`.
pub(crate) fn set_exec_memset(
    session: &Session,
    exec: Ptr,
    node: Ptr,
    params: Ptr,
    _context: Context,
) -> HipResult<()> {
    NodeOf::Exec(exec, node).set(session, memset(session, &fill_params(params)?)?)
}
