//! Kernel launches: the argument table is checked against the data and, where the device knows them, against the kernel's
//! parameters.

use hipr_proto::op::{LaunchArgs, LaunchKernel, LaunchMode, Param};
use hipr_proto::{HipError, HipResult};

use super::{Call, Step};
use crate::device::{Args, FunctionInfo, Launch};

/// HIP API: hipModuleLaunchKernel, hipModuleLaunchCooperativeKernel, hipExtModuleLaunchKernel.
pub(super) fn launch(
    call: &mut Call<'_>,
    r: &LaunchKernel,
    tail: &[u8],
    cooperative: bool,
) -> HipResult<Step> {
    let function = call.owned.function(r.function)?;
    call.owned.check_stream(r.stream)?;
    let event =
        |event| if event == 0 { Ok(None) } else { call.owned.check_event(event).map(|()| Some(event)) };
    let (start_event, stop_event) = (event(r.start_event)?, event(r.stop_event)?);
    let grid = [r.grid_dim_x, r.grid_dim_y, r.grid_dim_z];
    let block = [r.block_dim_x, r.block_dim_y, r.block_dim_z];
    if grid.contains(&0) || block.contains(&0) {
        return Err(HipError::INVALID_CONFIGURATION);
    }
    let args = LaunchArgs::parse(r, tail)?;
    let table: Vec<Param>;
    let args = match args.mode() {
        LaunchMode::Params => {
            table = args.params().iter().collect();
            check_table(&function.info, &table)?;
            Args::Params { table: &table, data: args.data() }
        }
        LaunchMode::Flat => {
            check_flat(&function.info, args.flat())?;
            Args::Flat(args.flat())
        }
    };
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
    };
    call.context()?.launch(&launch)?;
    call.done()
}

/// One argument per parameter, each of the parameter's size.
fn check_table(info: &FunctionInfo, table: &[Param]) -> HipResult<()> {
    let Some(params) = &info.params else { return Ok(()) };
    let sizes = |params: &[Param]| params.iter().map(|param| param.size).collect::<Vec<_>>();
    if params.len() == table.len() && sizes(params) == sizes(table) {
        Ok(())
    } else {
        Err(HipError::INVALID_VALUE)
    }
}

/// All parameters lie in the buffer, and the buffer in the kernarg segment.
fn check_flat(info: &FunctionInfo, flat: &[u8]) -> HipResult<()> {
    let Some(params) = &info.params else { return Ok(()) };
    let end = params.iter().map(|param| u64::from(param.offset) + u64::from(param.size)).max().unwrap_or(0);
    if (end..=u64::from(info.kernarg_size_bytes)).contains(&(flat.len() as u64)) {
        Ok(())
    } else {
        Err(HipError::INVALID_VALUE)
    }
}
