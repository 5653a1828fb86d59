//! Functions by which streams wait for values in memory and write them.

use std::sync::Arc;

use hipr_abi::{hipBatchMemOpNodeParams, hipStreamMemOpWaitValueParams_t};
use hipr_proto::{HipError, HipResult};

use super::graph::{NewNode, NodeOf, of_work};
use crate::command::{Command, Node, ValueOp, ValueOps, ValueWait, ValueWidth};
use crate::convert::{In, Out, Ptr, Stream};
use crate::session::Session;
use crate::stream::mirror::Place;

/// Largest number of operations of `hipStreamBatchMemOp`.
const OPS_MAX: u32 = 256;
/// Size of `hipStreamBatchMemOpParams`, a union.
const PARAMS_BYTES: usize = 48;
const _: () = assert!(size_of::<hipStreamMemOpWaitValueParams_t>() <= PARAMS_BYTES);

/// Checks that the value of an operation lies in memory that HIP knows.
fn check(session: &Session, op: &ValueOp) -> HipResult<()> {
    let (at, len) = op.place();
    match session.streams().mirrors.place(session.worker(), at.check()?, len, Some(true))? {
        Place::Unknown => Err(HipError::INVALID_VALUE),
        _ => Ok(()),
    }
}

/// Puts operations on a stream, one behind the other.
fn put(session: &Session, stream: u64, ops: &[ValueOp]) -> HipResult<()> {
    let mut commands =
        ops.iter().flat_map(|op| session.streams().value_commands(session.worker(), op, stream));
    commands.try_for_each(|command| session.submit(stream, command))
}

fn submit(session: &Session, stream: Stream, op: ValueOp) -> HipResult<()> {
    let stream = session.handle(stream)?;
    check(session, &op)?;
    put(session, stream, &[op])
}

fn wait(
    session: &Session,
    stream: Stream,
    ptr: Ptr,
    width: ValueWidth,
    value: u64,
    (flags, mask): (u32, u64),
) -> HipResult<()> {
    let wait = ValueWait::new(ptr.check()?, width, value, flags, mask)?;
    submit(session, stream, ValueOp::Wait(wait))
}

/// `hipStreamWaitValue32`.
pub(crate) fn wait_32(
    session: &Session,
    stream: Stream,
    ptr: Ptr,
    value: u32,
    flags: u32,
    mask: u32,
) -> HipResult<()> {
    wait(session, stream, ptr, ValueWidth::Word, value.into(), (flags, mask.into()))
}

/// `hipStreamWaitValue64`.
pub(crate) fn wait_64(
    session: &Session,
    stream: Stream,
    ptr: Ptr,
    value: u64,
    flags: u32,
    mask: u64,
) -> HipResult<()> {
    wait(session, stream, ptr, ValueWidth::Double, value, (flags, mask))
}

/// `hipStreamWriteValue32`: no flag has a meaning.
pub(crate) fn write_32(
    session: &Session,
    stream: Stream,
    ptr: Ptr,
    value: u32,
    _flags: u32,
) -> HipResult<()> {
    submit(session, stream, ValueOp::Write(ptr.check()?, ValueWidth::Word, value.into()))
}

/// `hipStreamWriteValue64`: no flag has a meaning.
pub(crate) fn write_64(
    session: &Session,
    stream: Stream,
    ptr: Ptr,
    value: u64,
    _flags: u32,
) -> HipResult<()> {
    submit(session, stream, ValueOp::Write(ptr.check()?, ValueWidth::Double, value))
}

/// Reads operations; all are checked before the first is done.
fn read(session: &Session, count: u32, params: Ptr, flags: u32) -> HipResult<Vec<ValueOp>> {
    if count == 0 || count > OPS_MAX || flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    params.check()?;
    let read = |index: u32| {
        let params = In::at_address(params.offset(index as usize * PARAMS_BYTES));
        let op = ValueOp::of_batch(&params.check()?)?;
        check(session, &op).map(|()| op)
    };
    (0..count).map(read).collect()
}

/// `hipStreamBatchMemOp`: flushes and barriers, which HIP refuses as well, are no operations.
pub(crate) fn batch(session: &Session, stream: Stream, count: u32, params: Ptr, flags: u32) -> HipResult<()> {
    let stream = session.handle(stream)?;
    let ops = read(session, count, params, flags)?;
    put(session, stream, &ops)
}

/// Reads the parameters of a graph node. Unlike AMD's runtime, which keeps the program's array, they are read now.
fn values(session: &Session, params: Ptr) -> HipResult<Node> {
    let params = In::<hipBatchMemOpNodeParams>::at_address(params).check()?;
    let (ctx, array) = (Ptr::from(params.ctx).check()?, Ptr::from(params.paramArray));
    let ops = read(session, params.count, array, params.flags)?;
    Ok(Node::new(Command::Values(ValueOps { ops: Arc::from(ops), named: [ctx, array] })))
}

/// `hipGraphAddBatchMemOpNode`.
pub(crate) fn add(session: &Session, node: NewNode, params: Ptr) -> HipResult<()> {
    node.add(session, Some(values(session, params)?))
}

/// `hipGraphBatchMemOpNodeGetParams`.
pub(crate) fn params(session: &Session, node: Ptr, params: Ptr) -> HipResult<()> {
    let out = Out::<hipBatchMemOpNodeParams>::at_address(params).check()?;
    let find =
        |command: &Command| if let Command::Values(values) = command { Some(values.clone()) } else { None };
    let ValueOps { ops, named: [ctx, array] } = of_work(session, node, find)?;
    let count = u32::try_from(ops.len()).unwrap_or(OPS_MAX);
    out.set(hipBatchMemOpNodeParams {
        ctx: ctx.as_mut_ptr(),
        count,
        paramArray: array.as_mut_ptr(),
        flags: 0,
    });
    Ok(())
}

/// `hipGraphBatchMemOpNodeSetParams`, `hipGraphExecBatchMemOpNodeSetParams`.
pub(crate) fn set(session: &Session, node: NodeOf, params: Ptr) -> HipResult<()> {
    let values = values(session, params)?;
    node.change(session, |known| match &**known {
        Command::Values(_) => Ok(values),
        _ => Err(HipError::INVALID_VALUE),
    })
}
