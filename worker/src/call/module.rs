//! Operations on modules, their kernels and variables.

use hipr_io::{PackError, unpack_all};
use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult, Wire};

use super::device::check_cache_config;
use super::{Call, Continuation};
use hipr_device::{Context, FunctionInfo, ModuleLoad};

/// A code object that is to be loaded.
#[derive(Debug)]
pub(crate) struct Load {
    /// The bytes of a request, and how many of them are before the code object.
    pub(crate) image: Vec<u8>,
    pub(crate) before_bytes: usize,
    /// Number of bytes of the code object, if it is packed.
    pub(crate) unpacked_bytes: Option<u64>,
    /// Bytes of memory that it may take.
    pub(crate) room_bytes: u64,
    /// The function that is to be found in it.
    name: Option<String>,
    /// All bytes of the request, if it can be tried again when others have given back memory.
    pub(crate) again: Option<Vec<u8>>,
}

impl Load {
    /// Takes the bytes, to be loaded on any thread.
    pub(crate) fn take(&mut self) -> impl FnOnce(&mut dyn Context) -> HipResult<ModuleLoad> + Send + 'static {
        let (mut image, room_bytes) = (std::mem::take(&mut self.image), self.room_bytes);
        let before_bytes = std::mem::take(&mut self.before_bytes);
        let unpacked_bytes = self.unpacked_bytes.take();
        move |context| {
            if let Some(length) = unpacked_bytes {
                image = unpack_all(&image, length).map_err(|why| match why {
                    PackError::Damaged => HipError::INVALID_VALUE,
                    PackError::Memory => HipError::OUT_OF_MEMORY,
                })?;
            }
            if before_bytes > 0 {
                image = image.split_off(before_bytes);
            }
            context.module_load_within(image, room_bytes)
        }
    }
}

/// Loads a module, and finds a function in it if one is named, by so many bytes before it; on another thread if that takes long.
fn begin_load(
    call: &mut Call<'_>,
    image: Vec<u8>,
    before_bytes: usize,
    name: Option<String>,
) -> HipResult<Continuation> {
    call.check_memory((image.len() - before_bytes) as u64)?;
    let room_bytes = call.memory_left();
    load_or_lend(call, Load { image, before_bytes, unpacked_bytes: None, room_bytes, name, again: None })
}

fn load_or_lend(call: &mut Call<'_>, mut load: Load) -> HipResult<Continuation> {
    if call.owned.loads_apart {
        return Ok(Continuation::Load(Box::new(load)));
    }
    let loaded = load.take()(call.context()?);
    finish_load(call, load, loaded)
}

/// Continues with a loaded module. If there was no room for it, it is tried once more without the idle memory of pools.
pub(crate) fn finish_load(
    call: &mut Call<'_>,
    load: Load,
    loaded: HipResult<ModuleLoad>,
) -> HipResult<Continuation> {
    match loaded? {
        ModuleLoad::Loaded { module, memory_bytes } => {
            let number = call.owned.add_module(module, memory_bytes);
            call.owned.make_room(0, call.limits);
            match load.name {
                Some(name) => find_in_loaded(call, module, number, &name),
                None => call.reply(ModuleLoadDataReply { module: number }),
            }
        }
        ModuleLoad::NoRoom(image) => {
            if !call.asks_first() {
                call.release_idle()?;
            }
            let room_bytes = call.memory_left();
            if room_bytes <= load.room_bytes {
                return Err(call.refuse_memory());
            }
            load_or_lend(call, Load { image, room_bytes, ..load })
        }
    }
}

/// Looks up a function of a module that was just loaded; if there is no such function, unloads the module again.
fn find_in_loaded(call: &mut Call<'_>, loaded: u64, module: u64, name: &str) -> HipResult<Continuation> {
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
    // What has not arrived cannot be tried again.
    let max = call.more.could_have_bytes(call.limits);
    call.check_limit("memory_max_bytes", max, true, |owned| {
        owned.memory_bytes().saturating_add(size_bytes) <= max
    })?;
    Ok(Continuation::Collect)
}

pub(super) fn load(call: &mut Call<'_>, r: ModuleLoadData) -> HipResult<Continuation> {
    let Some(image) = call.collected.take() else { return collect(call, r.data_size) };
    begin_load(call, image, 0, None)
}

/// Loads a module whose code object is packed, and not longer than one that is not packed may be.
pub(super) fn load_packed(call: &mut Call<'_>, r: ModuleLoadPacked) -> HipResult<Continuation> {
    call.check_feature(Features::PACKED)?;
    let ModuleLoadPacked { data_size, packed } = r;
    let Some(image) = call.collected.take() else {
        if packed >= data_size {
            return Err(HipError::INVALID_VALUE);
        }
        let max = call.limits.collect_max_bytes as u64;
        if data_size > max {
            return Err(call.refuse("collect_max_bytes", max, true));
        }
        return collect(call, data_size);
    };
    call.check_memory(data_size)?;
    let (unpacked_bytes, room_bytes) = (Some(data_size), call.memory_left());
    load_or_lend(call, Load { image, before_bytes: 0, unpacked_bytes, room_bytes, name: None, again: None })
}

/// Loads a module and looks up a function; if there is no such function, unloads the module again.
pub(super) fn load_and_find(call: &mut Call<'_>, r: ModuleLoadAndGetFunction) -> HipResult<Continuation> {
    let Some(image) = call.collected.take() else { return collect(call, r.data_size) };
    let name_len = usize::try_from(r.name_length).map_err(|_| HipError::INVALID_VALUE)?;
    let name = name_of(image.get(..name_len).ok_or(HipError::INVALID_VALUE)?)?.to_owned();
    begin_load(call, image, name_len, Some(name))
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

/// Finds the variables that a client may come to use. What keeps one from being found is the error of whatever is done with it.
pub(super) fn variables(call: &mut Call<'_>, r: ModuleVariables, tail: &[u8]) -> HipResult<Continuation> {
    call.check_feature(Features::VARIABLES)?;
    call.owned.check_module(r.module)?;
    let mut found = Vec::new();
    for name in variable_names(tail, r.count)? {
        let variable = call.context()?.global(r.module, name);
        found.push(variable.map(|(address, size)| Variable { address, size }));
    }
    let nothing = Variable { address: 0, size: 0 };
    let mut list = Vec::with_capacity(found.len() * Variable::SIZE);
    found.iter().for_each(|variable| variable.unwrap_or(nothing).put(&mut list));
    call.owned.set_variables(r.module, found)?;
    Ok(Continuation::Variables(VariablesTold { number: r.number, count: r.count, reserved: 0 }, list))
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
