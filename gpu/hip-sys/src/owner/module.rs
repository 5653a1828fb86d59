//! Modules, their kernels and variables, and launches.

use core::ffi::c_void;
use core::ptr::null_mut;
use std::ffi::CString;

use super::stream::Thing;
use super::{HipCode, Owner, number, ptr, size, void};
use crate::{
    HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END,
    hipErrorInvalidHandle, hipErrorInvalidImage, hipErrorInvalidValue, hipErrorNotFound,
};

#[derive(Debug)]
pub(super) struct Module {
    device: i32,
    /// Variables that were asked for: address and size.
    pub(super) globals: Vec<(u64, u64)>,
    /// The library may read the image for as long as the module is loaded.
    _image: Vec<u8>,
}

/// A launch's explicit arguments.
#[derive(Clone, Copy, Debug)]
pub enum Arguments<'a> {
    /// Argument `i` is the `table[i].1` bytes of `data` from `table[i].0` on; sizes are those of the kernel's parameters.
    Each {
        /// Offset and size of each.
        table: &'a [(u32, u32)],
        /// The values.
        data: &'a [u8],
    },
    /// The explicit part of the kernarg segment.
    Buffer(&'a [u8]),
}

/// A kernel launch; see `hipModuleLaunchKernel`.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel, of [`Owner::function`].
    pub function: u64,
    /// Workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a group in x, y, z.
    pub block: [u32; 3],
    /// Dynamic LDS in bytes.
    pub shared_mem_bytes: u32,
    /// Where it is enqueued.
    pub stream: u64,
    /// The explicit arguments.
    pub arguments: Arguments<'a>,
    /// Takes the time at which the kernel starts.
    pub start_event: Option<u64>,
    /// Takes the time at which the kernel ends.
    pub stop_event: Option<u64>,
    /// All groups must be resident at once.
    pub cooperative: bool,
}

impl Owner {
    /// HIP API: hipModuleLoadData. Takes as long as the library needs to bring the code to the device.
    ///
    /// # Errors
    /// `INVALID_IMAGE` for what is not a whole code object or bundle; those of HIP.
    pub fn module_load(&mut self, image: Vec<u8>) -> HipCode<u64> {
        // The library is told no length: it reads as far as the image's own headers say.
        if !hipr_code_object::image_len(&image).is_ok_and(|len| len <= image.len()) {
            return Err(hipErrorInvalidImage);
        }
        self.enter()?;
        let mut module = null_mut();
        // SAFETY: the image is as long as its headers say, and lives as long as the module.
        self.check(unsafe { self.hip.hipModuleLoadData(&mut module, image.as_ptr().cast()) })?;
        let module = number(module);
        self.modules.insert(module, Module { device: self.device, globals: Vec::new(), _image: image });
        Ok(module)
    }

    /// Unloads a module when everything that was enqueued is done; its functions and variables end now.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn module_unload(&mut self, module: u64) -> HipCode {
        if !self.modules.contains_key(&module) {
            return Err(hipErrorInvalidHandle);
        }
        let markers = self.mark_all()?;
        self.functions.retain(|_, of| *of != module);
        match self.modules.remove(&module) {
            Some(unloaded) => self.retire(markers, Thing::Module(module, unloaded)),
            None => Ok(()),
        }
    }

    pub(super) fn unload(&self, handle: u64, module: &Module) -> HipCode {
        self.enter_device(module.device)?;
        // SAFETY: loaded by this owner, and unloaded once.
        self.check(unsafe { self.hip.hipModuleUnload(ptr(handle)) })
    }

    /// HIP API: hipModuleGetFunction.
    ///
    /// # Errors
    /// `INVALID_HANDLE`, `NOT_FOUND`; those of HIP.
    pub fn function(&mut self, module: u64, name: &str) -> HipCode<u64> {
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
    pub fn global(&mut self, module: u64, name: &str) -> HipCode<(u64, u64)> {
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

    /// A name as C has it, and the device of the module.
    fn named(&self, module: u64, name: &str) -> HipCode<(CString, i32)> {
        let device = self.modules.get(&module).ok_or(hipErrorInvalidHandle)?.device;
        Ok((CString::new(name).map_err(|_| hipErrorNotFound)?, device))
    }

    fn enter_function(&self, function: u64) -> HipCode {
        let module = self.functions.get(&function).ok_or(hipErrorInvalidHandle)?;
        self.enter_device(self.modules.get(module).ok_or(hipErrorInvalidHandle)?.device)
    }

    /// HIP API: hipFuncGetAttribute; `attribute` is a `hipFunction_attribute`.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn function_attribute(&self, function: u64, attribute: i32) -> HipCode<i32> {
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
    pub fn set_function_attribute(&mut self, function: u64, attribute: i32, value: i32) -> HipCode {
        self.enter_function(function)?;
        // SAFETY: the function exists.
        self.check(unsafe { self.hip.hipFuncSetAttribute(void(function), attribute, value) })
    }

    /// HIP API: hipModuleOccupancyMaxActiveBlocksPerMultiprocessor.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn max_active_blocks(&self, function: u64, block_size: i32, shared_mem_bytes: u64) -> HipCode<i32> {
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

    /// Least grid and the block size that fill the device (HIP API: hipModuleOccupancyMaxPotentialBlockSize).
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn max_potential_block_size(
        &self,
        function: u64,
        shared_mem_bytes: u64,
        limit: i32,
    ) -> HipCode<(i32, i32)> {
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
        Ok((grid, block))
    }

    /// Enqueues a kernel. With events, hipExtModuleLaunchKernel takes them where the library has it and can count the grid;
    /// else they are recorded before and after.
    ///
    /// # Errors
    /// `INVALID_HANDLE`, `INVALID_VALUE` for arguments outside of their data; those of HIP.
    pub fn launch(&mut self, launch: &Launch<'_>) -> HipCode {
        if !self.functions.contains_key(&launch.function) {
            return Err(hipErrorInvalidHandle);
        }
        for event in [launch.start_event, launch.stop_event].into_iter().flatten() {
            self.check_event(event)?;
        }
        let stream = self.enter_stream(launch.stream)?;
        let mut pointers = Vec::new();
        let (mut len, mut extra) = (0_usize, [null_mut(); 5]);
        match launch.arguments {
            Arguments::Each { table, data } => {
                for &(offset, size) in table {
                    let bytes = data.get(offset as usize..).and_then(|data| data.get(..size as usize));
                    pointers.push(bytes.ok_or(hipErrorInvalidValue)?.as_ptr().cast_mut().cast::<c_void>());
                }
            }
            Arguments::Buffer(bytes) => {
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
        let items = (gx.checked_mul(bx), gy.checked_mul(by), gz.checked_mul(bz));
        if let (Some(x), Some(y), Some(z)) = items
            && timed
            && !launch.cooperative
            && self.hip.hipExtModuleLaunchKernel.is_some()
        {
            let (start, stop) = (start.map_or(null_mut(), ptr), stop.map_or(null_mut(), ptr));
            // SAFETY: function, stream and events exist; the arguments outlive the call, which copies them, and have the
            // sizes of the kernel's parameters.
            return self.check(unsafe {
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
                    start,
                    stop,
                    0,
                )
            });
        }
        if let Some(start) = start {
            self.event_record(start, launch.stream)?;
        }
        // SAFETY: as above.
        self.check(unsafe {
            if launch.cooperative {
                if !extra.is_null() {
                    return Err(hipErrorInvalidValue);
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
