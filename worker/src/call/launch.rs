//! Operations that launch kernels. The argument table is checked against the data and, if the device knows them, against the
//! kernel's parameters.

use std::sync::Arc;

use hipr_abi::{LaunchFamily, LaunchLimits, LaunchSize};
use hipr_proto::op::{LaunchArgs, LaunchKernel, LaunchMode, Param};
use hipr_proto::{HipError, HipResult, Wire};

use super::{Call, Continuation};
use crate::owned::{KernelNode, NodeWork};
use hipr_device::{Args, FunctionInfo, Launch};

/// Number of arguments of a launch that are checked without allocating.
const TABLE_LEN: usize = 16;

/// Checks the size of a launch by the rules that hold on every device; the device has limits of its own.
pub(super) fn check_size(grid: [u32; 3], block: [u32; 3], family: LaunchFamily) -> HipResult<()> {
    let size = LaunchSize { grid, block, shared_mem_bytes: 0 };
    size.check(family, &LaunchLimits::default()).map(drop).map_err(HipError)
}

/// Launches a kernel (HIP API: hipModuleLaunchKernel, hipModuleLaunchCooperativeKernel, hipExtModuleLaunchKernel).
pub(super) fn launch(
    call: &mut Call<'_>,
    r: &LaunchKernel,
    tail: &[u8],
    cooperative: bool,
) -> HipResult<Continuation> {
    let function = call.owned.function(r.function)?;
    call.owned.check_stream(r.stream)?;
    let event =
        |event| if event == 0 { Ok(None) } else { call.owned.check_event(event).map(|()| Some(event)) };
    let (start_event, stop_event) = (event(r.start_event)?, event(r.stop_event)?);
    let grid = [r.grid_dim_x, r.grid_dim_y, r.grid_dim_z];
    let block = [r.block_dim_x, r.block_dim_y, r.block_dim_z];
    check_size(grid, block, LaunchFamily::Module)?;
    let args = LaunchArgs::parse(r, tail)?;
    let mut table = [Param::ZERO; TABLE_LEN];
    let longer: Vec<Param>;
    let args = match args.mode() {
        LaunchMode::Params => {
            let params = args.params();
            let table = match table.get_mut(..params.len()) {
                Some(table) => {
                    table.iter_mut().zip(params.iter()).for_each(|(to, param)| *to = param);
                    &*table
                }
                None => {
                    longer = params.iter().collect();
                    &longer
                }
            };
            check_table(&function.info, table)?;
            Args::Params { table, data: args.data() }
        }
        LaunchMode::Flat => Args::Flat(check_flat(&function.info, args.flat())?),
    };
    if call.is_captured(r.stream)? {
        if start_event.or(stop_event).is_some() {
            return Err(HipError::STREAM_CAPTURE_UNSUPPORTED);
        }
        let (function, shared_mem_bytes) = (r.function, r.shared_mem);
        let (table, data) = match args {
            Args::Params { table, data } => (Some(table.to_vec()), data.to_vec()),
            Args::Flat(data) => (None, data.to_vec()),
        };
        let node = KernelNode { function, grid, block, shared_mem_bytes, table, data, cooperative };
        return call.record(r.stream, NodeWork::Kernel(Arc::new(node)));
    }
    let launch = Launch {
        function: r.function,
        grid,
        block,
        shared_mem_bytes: r.shared_mem,
        stream: r.stream,
        args,
        start_event,
        stop_event,
        cooperative,
        origin: call.owned.launches.begin(r.function, r.stream),
    };
    call.context()?.launch(&launch)?;
    for event in [start_event, stop_event].into_iter().flatten() {
        let (pools, context) = call.owned.pools()?;
        pools.event_recorded(context, event, r.stream);
    }
    call.done()
}

/// Checks that there is one argument per parameter, each of the parameter's size.
pub(super) fn check_table(info: &FunctionInfo, table: &[Param]) -> HipResult<()> {
    let Some(params) = &info.params else { return Ok(()) };
    if params.iter().map(|param| param.size).eq(table.iter().map(|param| param.size)) {
        Ok(())
    } else {
        Err(HipError::INVALID_VALUE)
    }
}

/// Checks that the buffer contains all parameters; returns it without what exceeds the kernarg segment.
pub(super) fn check_flat<'a>(info: &FunctionInfo, flat: &'a [u8]) -> HipResult<&'a [u8]> {
    let Some(params) = &info.params else { return Ok(flat) };
    let end = params.iter().map(|param| u64::from(param.offset) + u64::from(param.size)).max().unwrap_or(0);
    if (flat.len() as u64) < end {
        return Err(HipError::INVALID_VALUE);
    }
    let segment = usize::try_from(info.kernarg_size_bytes).unwrap_or(usize::MAX);
    Ok(flat.get(..segment).unwrap_or(flat))
}
