//! A thin safe layer over the raw functions: enough for a small HIP program.

use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of_val;
use std::ptr::null_mut;

use hipr_abi::*;

use crate::Hip;

/// A HIP call that failed: the function, the error code and the runtime's text for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The HIP function.
    pub call: Call,
    /// The error code.
    pub code: hipError_t,
    /// The texts of `hipGetErrorName` and `hipGetErrorString` for the code.
    pub text: String,
}

/// Name of the HIP function that was called.
pub type Call = &'static str;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: error {}: {}", self.call, self.code, self.text)
    }
}

impl std::error::Error for Error {}

impl Hip {
    /// Converts the error code that `call` returned to a result.
    ///
    /// # Errors
    /// Any code but `hipSuccess`, with the runtime's words for it.
    pub fn check(&self, call: Call, code: hipError_t) -> Result<(), Error> {
        if code == hipSuccess {
            return Ok(());
        }
        // SAFETY: both functions take any code and return static strings.
        let (name, text) = unsafe { (self.hipGetErrorName(code), self.hipGetErrorString(code)) };
        let read = |p: *const std::ffi::c_char| {
            if p.is_null() {
                return String::from("?");
            }
            // SAFETY: not null, and HIP returns NUL-terminated static strings.
            unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
        };
        Err(Error { call, code, text: format!("{} ({})", read(name), read(text)) })
    }

    /// Returns the release of the runtime: major * 10^7 + minor * 10^5 + patch.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn runtime_version(&self) -> Result<c_int, Error> {
        let mut version = 0;
        // SAFETY: `version` outlives the call.
        let code = unsafe { self.hipRuntimeGetVersion(&mut version) };
        self.check("hipRuntimeGetVersion", code).map(|()| version)
    }

    /// Returns the number of devices.
    pub fn device_count(&self) -> Result<i32, Error> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        let code = unsafe { self.hipGetDeviceCount(&mut count) };
        self.check("hipGetDeviceCount", code).map(|()| count)
    }

    /// Returns the name of a device.
    pub fn device_name(&self, device: i32) -> Result<String, Error> {
        let mut name = [0u8; 256];
        // SAFETY: the buffer has the length that is passed.
        let code = unsafe { self.hipDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, device) };
        self.check("hipDeviceGetName", code)?;
        let len = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..len]).into_owned())
    }

    /// Waits for all work of the device; fails if some of it failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: no arguments.
        let code = unsafe { self.hipDeviceSynchronize() };
        self.check("hipDeviceSynchronize", code)
    }

    /// Loads a code object or a bundle of code objects.
    pub fn module(&self, image: &[u8]) -> Result<Module<'_>, Error> {
        let mut handle = null_mut();
        // SAFETY: `image` is a whole image and outlives the call.
        let code = unsafe { self.hipModuleLoadData(&mut handle, image.as_ptr().cast()) };
        self.check("hipModuleLoadData", code)?;
        Ok(Module { hip: self, handle })
    }

    /// Allocates a device buffer of `len` elements, all bytes zero.
    pub fn zeroed<T: bytemuck::Pod>(&self, len: usize) -> Result<DeviceBuffer<'_, T>, Error> {
        let len_bytes = len * size_of::<T>();
        let mut pointer = null_mut();
        // SAFETY: `pointer` outlives the call.
        let code = unsafe { self.hipMalloc(&mut pointer, len_bytes) };
        self.check("hipMalloc", code)?;
        let buffer = DeviceBuffer { hip: self, pointer, len, element: PhantomData };
        // SAFETY: the allocation has this length.
        let code = unsafe { self.hipMemset(pointer, 0, len_bytes) };
        self.check("hipMemset", code)?;
        Ok(buffer)
    }

    /// Allocates a device buffer with a copy of `data`.
    pub fn upload<T: bytemuck::Pod>(&self, data: &[T]) -> Result<DeviceBuffer<'_, T>, Error> {
        let mut pointer = null_mut();
        // SAFETY: `pointer` outlives the call.
        let code = unsafe { self.hipMalloc(&mut pointer, size_of_val(data)) };
        self.check("hipMalloc", code)?;
        let buffer = DeviceBuffer { hip: self, pointer, len: data.len(), element: PhantomData };
        // SAFETY: source and destination have the length that is passed.
        let code = unsafe {
            self.hipMemcpy(pointer, data.as_ptr().cast(), size_of_val(data), hipMemcpyHostToDevice)
        };
        self.check("hipMemcpy", code)?;
        Ok(buffer)
    }
}

/// A loaded module, which is unloaded when dropped.
pub struct Module<'hip> {
    hip: &'hip Hip,
    handle: hipModule_t,
}

impl Module<'_> {
    /// Finds a kernel by its name in the code object.
    pub fn function(&self, name: &str) -> Result<Function<'_>, Error> {
        let name = CString::new(name).unwrap_or_default();
        let mut handle = null_mut();
        // SAFETY: the module is loaded and the name is NUL-terminated.
        let code = unsafe { self.hip.hipModuleGetFunction(&mut handle, self.handle, name.as_ptr()) };
        self.hip.check("hipModuleGetFunction", code)?;
        Ok(Function { hip: self.hip, handle, module: PhantomData })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once; functions borrow the module.
        unsafe { self.hip.hipModuleUnload(self.handle) };
    }
}

/// A kernel of a module.
pub struct Function<'module> {
    hip: &'module Hip,
    handle: hipFunction_t,
    module: PhantomData<&'module ()>,
}

impl Function<'_> {
    /// Launches on the null stream: `grid` in workgroups, `block` in threads, `args` with a pointer to the value of each
    /// parameter.
    ///
    /// # Safety
    /// `args` has one pointer per parameter of the kernel, each to a value of the parameter's size, and what the
    /// kernel does with the device addresses among them is right.
    pub unsafe fn launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        shared_len_bytes: u32,
        args: &mut [*mut c_void],
    ) -> Result<(), Error> {
        // SAFETY: the caller vouches for the arguments.
        let code = unsafe {
            self.hip.hipModuleLaunchKernel(
                self.handle,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_len_bytes,
                null_mut(),
                args.as_mut_ptr(),
                null_mut(),
            )
        };
        self.hip.check("hipModuleLaunchKernel", code)
    }
}

/// Device memory for `len` elements of `T`, which is freed when dropped.
pub struct DeviceBuffer<'hip, T> {
    hip: &'hip Hip,
    pointer: hipDeviceptr_t,
    len: usize,
    element: PhantomData<T>,
}

impl<T: bytemuck::Pod> DeviceBuffer<'_, T> {
    /// Returns the device address.
    pub fn pointer(&self) -> hipDeviceptr_t {
        self.pointer
    }

    /// Copies the content to the host, after waiting for everything launched before.
    pub fn download(&self) -> Result<Vec<T>, Error> {
        let mut data = vec![T::zeroed(); self.len];
        let len_bytes = size_of_val(data.as_slice());
        // SAFETY: source and destination have the length that is passed.
        let code = unsafe {
            self.hip.hipMemcpy(data.as_mut_ptr().cast(), self.pointer, len_bytes, hipMemcpyDeviceToHost)
        };
        self.hip.check("hipMemcpy", code).map(|()| data)
    }
}

impl<T> Drop for DeviceBuffer<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated once, freed once.
        unsafe { self.hip.hipFree(self.pointer) };
    }
}
