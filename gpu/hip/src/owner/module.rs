//! Modules, their kernels and variables, and launches.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::ffi::CString;

use hipr_device::{Args, BlockSize, Launch, Param};
use hipr_proto::{HipError, HipResult};

use super::resource::{Module, Resource};
use super::{Owner, number, ptr, size, void};
use hip_sys::{HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END};

/// The most workgroups in y and z that hipModuleLaunchKernel takes.
const MODULE_GRID_YZ_MAX: u32 = 65_536;

impl Owner {
    /// HIP API: hipModuleLoadData. Takes as long as the library needs to bring the code to the device.
    ///
    /// # Errors
    /// `INVALID_IMAGE` for what is not a whole code object or bundle; those of HIP.
    pub(crate) fn module_load(&mut self, image: Vec<u8>) -> HipResult<u64> {
        // The library is told no length: it reads as far as the image's own headers say.
        if !hipr_code_object::image_len(&image).is_ok_and(|len| len <= image.len()) {
            return Err(HipError::INVALID_IMAGE);
        }
        self.enter()?;
        let mut module = null_mut();
        // SAFETY: the image is as long as its headers say, and lives as long as the module.
        self.check(unsafe { self.hip.hipModuleLoadData(&mut module, image.as_ptr().cast()) })?;
        let module = number(module);
        self.modules.insert(module, Module { device: self.device, globals: Vec::new(), image });
        Ok(module)
    }

    /// Unloads a module when all enqueued work is done; its functions and variables cannot be used from now on.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn module_unload(&mut self, module: u64) -> HipResult<()> {
        if !self.modules.contains_key(&module) {
            return Err(HipError::INVALID_HANDLE);
        }
        let markers = self.mark_all()?;
        self.functions.retain(|_, of| *of != module);
        match self.modules.remove(&module) {
            Some(unloaded) => self.retire(markers, Resource::Module(module, unloaded)),
            None => Ok(()),
        }
    }

    pub(super) fn unload(&self, handle: u64, module: &Module) -> HipResult<()> {
        self.enter_device(module.device)?;
        // SAFETY: loaded by this owner, and unloaded once.
        self.check(unsafe { self.hip.hipModuleUnload(ptr(handle)) })
    }

    /// HIP API: hipModuleGetFunction.
    ///
    /// # Errors
    /// `INVALID_HANDLE`, `NOT_FOUND`; those of HIP.
    pub(crate) fn function(&mut self, module: u64, name: &str) -> HipResult<u64> {
        let (name, device) = self.named(module, name)?;
        self.enter_device(device)?;
        let mut function = null_mut();
        // SAFETY: the module is loaded, name and place outlive the call.
        self.check(unsafe { self.hip.hipModuleGetFunction(&mut function, ptr(module), name.as_ptr()) })?;
        let function = number(function);
        self.functions.insert(function, module);
        Ok(function)
    }

    /// Address and size in bytes of a variable (HIP API: hipModuleGetGlobal).
    ///
    /// # Errors
    /// `INVALID_HANDLE`, `NOT_FOUND`; those of HIP.
    pub(crate) fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)> {
        let (name, device) = self.named(module, name)?;
        self.enter_device(device)?;
        let (mut address, mut len) = (null_mut::<c_void>(), 0);
        // SAFETY: the module is loaded, name and places outlive the call.
        self.check(unsafe {
            self.hip.hipModuleGetGlobal(&mut address, &mut len, ptr(module), name.as_ptr())
        })?;
        let global = (number(address), len as u64);
        if let Some(module) = self.modules.get_mut(&module)
            && !module.globals.contains(&global)
        {
            module.globals.push(global);
        }
        Ok(global)
    }

    /// Returns a name as a C string, and the module's device.
    fn named(&self, module: u64, name: &str) -> HipResult<(CString, i32)> {
        let device = self.modules.get(&module).ok_or(HipError::INVALID_HANDLE)?.device;
        Ok((CString::new(name).map_err(|_| HipError::NOT_FOUND)?, device))
    }

    fn enter_function(&self, function: u64) -> HipResult<()> {
        let module = self.functions.get(&function).ok_or(HipError::INVALID_HANDLE)?;
        self.enter_device(self.modules.get(module).ok_or(HipError::INVALID_HANDLE)?.device)
    }

    /// HIP API: hipFuncGetAttribute; `attribute` is a `hipFunction_attribute`.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn function_attribute(&self, function: u64, attribute: i32) -> HipResult<i32> {
        self.enter_function(function)?;
        let mut value = 0;
        // SAFETY: the function exists, the place outlives the call.
        self.check(unsafe { self.hip.hipFuncGetAttribute(&mut value, attribute, ptr(function)) })?;
        Ok(value)
    }

    /// HIP API: hipFuncSetAttribute, which takes a module's function as well as a host function.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn set_function_attribute(
        &mut self,
        function: u64,
        attribute: i32,
        value: i32,
    ) -> HipResult<()> {
        self.enter_function(function)?;
        // SAFETY: the function exists.
        self.check(unsafe { self.hip.hipFuncSetAttribute(void(function), attribute, value) })
    }

    /// HIP API: hipModuleOccupancyMaxActiveBlocksPerMultiprocessor.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn max_active_blocks(
        &self,
        function: u64,
        block_size: i32,
        shared_mem_bytes: u64,
    ) -> HipResult<i32> {
        self.enter_function(function)?;
        let (mut blocks, shared) = (0, size(shared_mem_bytes)?);
        // SAFETY: the function exists, the place outlives the call.
        self.check(unsafe {
            self.hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                ptr(function),
                block_size,
                shared,
            )
        })?;
        Ok(blocks)
    }

    /// Returns the least grid size and the block size that fill the device (HIP API: hipModuleOccupancyMaxPotentialBlockSize).
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn max_potential_block_size(
        &self,
        function: u64,
        shared_mem_bytes: u64,
        limit: i32,
    ) -> HipResult<BlockSize> {
        self.enter_function(function)?;
        let (mut grid, mut block, shared) = (0, 0, size(shared_mem_bytes)?);
        // SAFETY: the function exists, the places outlive the call.
        self.check(unsafe {
            self.hip.hipModuleOccupancyMaxPotentialBlockSize(
                &mut grid,
                &mut block,
                ptr(function),
                shared,
                limit,
            )
        })?;
        Ok(BlockSize { min_grid_size: grid, block_size: block })
    }

    /// Enqueues a kernel. One with events, or with a grid that hipModuleLaunchKernel refuses, is for hipExtModuleLaunchKernel where the
    /// library has it and can count the grid; else events are recorded before and after.
    ///
    /// # Errors
    /// `INVALID_HANDLE`, `INVALID_VALUE` for arguments outside of their data; those of HIP.
    pub(crate) fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()> {
        if !self.functions.contains_key(&launch.function) {
            return Err(HipError::INVALID_HANDLE);
        }
        for event in [launch.start_event, launch.stop_event].into_iter().flatten() {
            self.check_event(event)?;
        }
        let stream = self.enter_stream(launch.stream)?;
        let mut pointers = Vec::new();
        let (mut len, mut extra) = (0_usize, [null_mut(); 5]);
        match launch.args {
            Args::Params { table, data } => {
                for &Param { offset, size } in table {
                    let bytes = data.get(offset as usize..).and_then(|data| data.get(..size as usize));
                    pointers.push(bytes.ok_or(HipError::INVALID_VALUE)?.as_ptr().cast_mut().cast::<c_void>());
                }
            }
            Args::Flat(bytes) => {
                len = bytes.len();
                extra = [
                    void(HIP_LAUNCH_PARAM_BUFFER_POINTER as u64),
                    bytes.as_ptr().cast_mut().cast(),
                    void(HIP_LAUNCH_PARAM_BUFFER_SIZE as u64),
                    (&raw mut len).cast(),
                    void(HIP_LAUNCH_PARAM_END as u64),
                ];
            }
        }
        let params = if pointers.is_empty() { null_mut() } else { pointers.as_mut_ptr() };
        let extra = if len == 0 { null_mut() } else { extra.as_mut_ptr() };
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let (function, queue, shared) = (ptr(launch.function), ptr(stream), launch.shared_mem_bytes);
        let (start, stop) = (launch.start_event, launch.stop_event);
        let timed = start.is_some() || stop.is_some();
        // HIP API: hipModuleLaunchKernel alone has limits for the workgroups of a grid.
        let large = gx > i32::MAX.cast_unsigned() || gy > MODULE_GRID_YZ_MAX || gz > MODULE_GRID_YZ_MAX;
        let items = (gx.checked_mul(bx), gy.checked_mul(by), gz.checked_mul(bz));
        if let (Some(x), Some(y), Some(z)) = items
            && (timed || large)
            && !launch.cooperative
            && self.hip.hipExtModuleLaunchKernel.is_some()
        {
            let (from, to) = (start.map_or(null_mut(), ptr), stop.map_or(null_mut(), ptr));
            // SAFETY: function, stream and events exist; the arguments outlive the call, which copies them, and have the
            // sizes of the kernel's parameters.
            self.check(unsafe {
                self.hip.hipExtModuleLaunchKernel(
                    function,
                    x,
                    y,
                    z,
                    bx,
                    by,
                    bz,
                    shared as usize,
                    queue,
                    params,
                    extra,
                    from,
                    to,
                    0,
                )
            })?;
            [start, stop].into_iter().flatten().for_each(|event| self.recorded(event, stream));
            return Ok(());
        }
        if let Some(start) = start {
            self.event_record(start, launch.stream)?;
        }
        // SAFETY: as above.
        self.check(unsafe {
            if launch.cooperative {
                if !extra.is_null() {
                    return Err(HipError::INVALID_VALUE);
                }
                self.hip
                    .hipModuleLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, queue, params)
            } else {
                self.hip.hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, queue, params, extra)
            }
        })?;
        match stop {
            Some(stop) => self.event_record(stop, launch.stream),
            None => Ok(()),
        }
    }
}
