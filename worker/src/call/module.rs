//! Operations on modules, their kernels and variables.

use hipr_proto::op::*;
use hipr_proto::{HipError, HipResult};

use super::device::check_cache_config;
use super::{Call, Continuation};
use hipr_device::{FunctionInfo, ModuleLoad};

/// Loads a module; returns its handle and the number by which the client knows it.
fn load_image(call: &mut Call<'_>, image: Vec<u8>) -> HipResult<(u64, u64)> {
    call.check_memory(image.len() as u64)?;
    let room_bytes = call.memory_left();
    let mut loaded = call.context()?.module_load_within(image, room_bytes)?;
    if let ModuleLoad::NoRoom(image) = loaded {
        call.release_idle()?;
        let room_bytes = call.memory_left();
        loaded = call.context()?.module_load_within(image, room_bytes)?;
    }
    match loaded {
        ModuleLoad::Loaded { module, memory_bytes } => {
            let number = call.owned.add_module(module, memory_bytes);
            call.owned.make_room(0, call.limits);
            Ok((module, number))
        }
        ModuleLoad::NoRoom(_) => Err(call.refuse_memory()),
    }
}

fn unload_one(call: &mut Call<'_>, module: u64) -> HipResult<()> {
    call.owned.check_module(module)?;
    call.owned.remove_module(module);
    call.context()?.module_unload(module)
}

/// Finds a kernel; the handle that is returned is the number by which the client knows it.
fn find(call: &mut Call<'_>, module: u64, name: &str) -> HipResult<FunctionInfo> {
    call.check_room(1)?;
    let info = call.context()?.function(module, name)?;
    let handle = call.owned.add_function(module, info.clone());
    Ok(FunctionInfo { handle, ..info })
}

/// Returns a function's parameters as replies contain them: their number, and the first 64.
fn params(info: &FunctionInfo) -> (u32, [Param; 64]) {
    let known = info.params.as_deref().unwrap_or_default();
    let mut params = [Param { offset: 0, size: 0 }; 64];
    params.iter_mut().zip(known).for_each(|(place, param)| *place = *param);
    (u32::try_from(known.len()).unwrap_or(u32::MAX), params)
}

/// Begins to collect an image of so many bytes, if the session can have as much memory once its client gives its lease back.
fn collect(call: &mut Call<'_>, size_bytes: u64) -> HipResult<Continuation> {
    let max = call.limits.memory_max_bytes;
    call.check_limit("memory_max_bytes", max, |owned| {
        owned.memory_bytes().saturating_add(size_bytes) <= max
    })?;
    Ok(Continuation::Collect)
}

pub(super) fn load(call: &mut Call<'_>, r: ModuleLoadData) -> HipResult<Continuation> {
    let Some(image) = call.collected.take() else { return collect(call, r.data_size) };
    let (_, module) = load_image(call, image)?;
    call.reply(ModuleLoadDataReply { module })
}

/// Loads a module and looks up a function; if there is no such function, unloads the module again.
pub(super) fn load_and_find(call: &mut Call<'_>, r: ModuleLoadAndGetFunction) -> HipResult<Continuation> {
    let Some(mut name) = call.collected.take() else { return collect(call, r.data_size) };
    let name_len = usize::try_from(r.name_length).map_err(|_| HipError::INVALID_VALUE)?;
    if name_len > name.len() {
        return Err(HipError::INVALID_VALUE);
    }
    let image = name.split_off(name_len);
    let name = name_of(&name)?;
    let (loaded, module) = load_image(call, image)?;
    match find(call, loaded, name) {
        Ok(info) => {
            let (num_params, params) = params(&info);
            let (function, num_args) = (info.handle, info.kernarg_size_bytes);
            call.reply(ModuleLoadAndGetFunctionReply { module, function, num_args, num_params, params })
        }
        Err(why) => {
            unload_one(call, loaded)?;
            Err(why)
        }
    }
}

pub(super) fn unload(call: &mut Call<'_>, r: ModuleUnload) -> HipResult<Continuation> {
    unload_one(call, r.module)?;
    call.done()
}

pub(super) fn function(call: &mut Call<'_>, r: ModuleGetFunction, tail: &[u8]) -> HipResult<Continuation> {
    call.owned.check_module(r.module)?;
    let info = find(call, r.module, name_of(tail)?)?;
    let (num_params, params) = params(&info);
    let (function, num_args) = (info.handle, info.kernarg_size_bytes);
    call.reply(ModuleGetFunctionReply { function, num_args, num_params, params })
}

pub(super) fn global(call: &mut Call<'_>, r: ModuleGetGlobal, tail: &[u8]) -> HipResult<Continuation> {
    call.owned.check_module(r.module)?;
    call.check_room(1)?;
    let (device_ptr, size) = call.context()?.global(r.module, name_of(tail)?)?;
    call.owned.add_global(r.module, device_ptr, size)?;
    call.reply(ModuleGetGlobalReply { device_ptr, size })
}

// ---- what a kernel needs ---------------------------------------------------------------------------------------------

pub(super) fn function_attributes(call: &mut Call<'_>, r: FuncGetAttributes) -> HipResult<Continuation> {
    call.owned.function(r.function)?;
    let attributes = call.context_ref()?.function_attributes(r.function)?;
    call.reply(attributes)
}

pub(super) fn set_function_attribute(call: &mut Call<'_>, r: FuncSetAttribute) -> HipResult<Continuation> {
    call.owned.function(r.function)?;
    call.context()?.set_function_attribute(r.function, r.attribute, r.value)?;
    call.done()
}

/// Accepts a cache configuration, which has no effect on AMD GPUs.
pub(super) fn set_function_cache_config(
    call: &mut Call<'_>,
    r: FuncSetCacheConfig,
) -> HipResult<Continuation> {
    call.owned.function(r.function)?;
    check_cache_config(r.cache_config)?;
    call.done()
}

pub(super) fn max_active_blocks(
    call: &mut Call<'_>,
    r: OccupancyMaxActiveBlocksPerSm,
) -> HipResult<Continuation> {
    call.owned.function(r.function)?;
    if r.block_size <= 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let num_blocks = call.context_ref()?.max_active_blocks(r.function, r.block_size, r.dyn_shared_mem)?;
    call.reply(OccupancyMaxActiveBlocksPerSmReply { num_blocks })
}

pub(super) fn max_potential_block_size(
    call: &mut Call<'_>,
    r: OccupancyMaxPotentialBlockSize,
) -> HipResult<Continuation> {
    call.owned.function(r.function)?;
    if r.block_size_limit < 0 {
        return Err(HipError::INVALID_VALUE);
    }
    let context = call.context_ref()?;
    let best = context.max_potential_block_size(r.function, r.dyn_shared_mem, r.block_size_limit)?;
    call.reply(OccupancyMaxPotentialBlockSizeReply {
        min_grid_size: best.min_grid_size,
        block_size: best.block_size,
    })
}
