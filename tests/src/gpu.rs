//! A session that launches the kernels of one code object, with arrays on the device and arguments by value.

use crate::WireClient;
use bytemuck::Pod;
use hipr_proto::op::{self, Param};
use hipr_proto::{HipResult, ReplyMode};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::net::SocketAddr;

/// A session with one loaded module. Methods panic with the reason if the worker refuses something.
pub struct Gpu {
    worker: SocketAddr,
    code_object: Vec<u8>,
    wire: WireClient,
    module: u64,
    kernels: BTreeMap<String, Kernel>,
    /// Names of the kernels launched since the last request that waited.
    unconfirmed: BTreeSet<String>,
}

struct Kernel {
    function: u64,
    params: Vec<Param>,
    launched: bool,
}

/// An array of `len` values in device memory. The session owns the memory, so that this can be copied freely.
#[derive(Debug, Clone, Copy)]
pub struct Buffer<T> {
    address: u64,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Returns the device address.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size in bytes.
    pub fn len_bytes(&self) -> u64 {
        (self.len * size_of::<T>()) as u64
    }

    /// Returns the `len` values from `start` on.
    pub fn part(&self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len, "{start} + {len} of {} values", self.len);
        Self { address: self.address + (start * size_of::<T>()) as u64, len, values: PhantomData }
    }

    /// Returns the same bytes as values of another type.
    pub fn cast<U: Pod>(&self) -> Buffer<U> {
        let len = self.len * size_of::<T>() / size_of::<U>();
        Buffer { address: self.address, len, values: PhantomData }
    }
}

/// An argument of a kernel: its bytes, as C++ lays them out.
pub trait Argument {
    /// Returns the bytes that the kernel reads.
    fn bytes(&self) -> &[u8];
}

macro_rules! scalars {
    ($($scalar:ty)*) => {
        $(impl Argument for $scalar {
            fn bytes(&self) -> &[u8] {
                bytemuck::bytes_of(self)
            }
        })*
    };
}

scalars! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

/// A vector, or a structure whose members all have one type.
impl<T: Pod, const N: usize> Argument for [T; N] {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

/// A structure, laid out by hand.
impl Argument for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The address of the buffer.
impl<T: Pod> Argument for Buffer<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(&self.address)
    }
}

/// Collects the arguments of a launch: `args![buffer, 2.5f32, n]`.
#[macro_export]
macro_rules! args {
    ($($value:expr),* $(,)?) => { &[$($crate::Argument::bytes(&$value)),*] };
}

/// Blocks of a grid, or threads of a block, in three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim {
    /// Number along x, the fastest dimension.
    pub x: u32,
    /// Number along y.
    pub y: u32,
    /// Number along z.
    pub z: u32,
}

impl From<u32> for Dim {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl Gpu {
    /// Opens a session and loads a code object, or a bundle of them.
    pub fn open(worker: SocketAddr, code_object: &[u8]) -> Self {
        let mut wire = WireClient::open(worker);
        let load = op::ModuleLoadData { data_size: code_object.len() as u64 };
        let loaded = wire.call_with(&load, &[], Some(code_object.to_vec()));
        let module = loaded.result.expect("the code object loads").module;
        let code_object = code_object.to_vec();
        Self { worker, code_object, wire, module, kernels: BTreeMap::new(), unconfirmed: BTreeSet::new() }
    }

    /// Opens a second session with the same worker and the same code object.
    pub fn another(&self) -> Self {
        Self::open(self.worker, &self.code_object)
    }

    /// Returns the connection, for requests that have no method here.
    pub fn wire(&mut self) -> &mut WireClient {
        &mut self.wire
    }

    /// Returns the names of all kernels that were launched.
    pub fn launched(&self) -> BTreeSet<&str> {
        self.kernels.iter().filter(|(_, kernel)| kernel.launched).map(|(name, _)| name.as_str()).collect()
    }

    /// Allocates device memory for `len` values and sets each byte to `byte`.
    pub fn filled<T: Pod>(&mut self, len: usize, byte: u8) -> Buffer<T> {
        let size = (len * size_of::<T>()) as u64;
        let reply = self.wire.call(&op::Malloc { size, flags: 0 }).expect("device memory");
        let buffer = Buffer { address: reply.device_ptr, len, values: PhantomData };
        self.fill(buffer, byte);
        buffer
    }

    /// Allocates zeroed device memory for `len` values.
    pub fn zeroed<T: Pod>(&mut self, len: usize) -> Buffer<T> {
        self.filled(len, 0)
    }

    /// Allocates device memory with these values.
    pub fn upload<T: Pod>(&mut self, values: &[T]) -> Buffer<T> {
        let buffer = self.zeroed(values.len());
        self.write(buffer, values);
        buffer
    }

    /// Sets every byte of a buffer.
    pub fn fill<T: Pod>(&mut self, buffer: Buffer<T>, byte: u8) {
        let size = buffer.len_bytes();
        self.wire.forget(&op::Memset { dst: buffer.address, value: i32::from(byte), size, stream: 0 });
    }

    /// Copies values to device memory.
    pub fn write<T: Pod>(&mut self, buffer: Buffer<T>, values: &[T]) {
        self.write_on(0, buffer, values);
    }

    /// Copies values to device memory in the order of a stream.
    pub fn write_on<T: Pod>(&mut self, stream: u64, buffer: Buffer<T>, values: &[T]) {
        assert_eq!(values.len(), buffer.len, "values for the whole buffer");
        let (dst, size, kind) = (buffer.address, buffer.len_bytes(), op::kind::HOST_TO_DEVICE);
        let copy = op::Memcpy { dst, src: 0, size, kind, stream };
        self.wire.forget_with(&copy, &[], Some(bytemuck::cast_slice(values).to_vec()));
    }

    /// Copies from one place in device memory to another, in the order of a stream.
    pub fn copy_on<T: Pod>(&mut self, stream: u64, to: Buffer<T>, from: Buffer<T>) {
        assert_eq!(to.len, from.len, "as much there as here");
        let (size, kind) = (from.len_bytes(), op::kind::DEVICE_TO_DEVICE);
        self.wire.forget(&op::Memcpy { dst: to.address, src: from.address, size, kind, stream });
    }

    /// Waits for all launches and copies values from device memory.
    pub fn download<T: Pod>(&mut self, buffer: Buffer<T>) -> Vec<T> {
        self.download_on(0, buffer)
    }

    /// Copies values from device memory in the order of a stream.
    pub fn download_on<T: Pod>(&mut self, stream: u64, buffer: Buffer<T>) -> Vec<T> {
        let (src, size, kind) = (buffer.address, buffer.len_bytes(), op::kind::DEVICE_TO_HOST);
        let copied = self.wire.call_with(&op::Memcpy { dst: 0, src, size, kind, stream }, &[], None);
        if let Err(error) = copied.result {
            panic!("{error:?} after launches of {:?}", self.unconfirmed);
        }
        self.unconfirmed.clear();
        let values = bytemuck::pod_collect_to_vec(&copied.inline);
        assert_eq!(values.len(), buffer.len, "all values come back");
        values
    }

    /// Sets the stack of kernels whose depth the compiler does not know (hipLimitStackSize), in bytes.
    pub fn set_stack(&mut self, bytes: u64) {
        self.wire.forget(&op::DeviceSetLimit { limit: 0, value: bytes });
    }

    /// Waits for all work; returns its first error.
    pub fn synchronize(&mut self) -> HipResult<()> {
        self.unconfirmed.clear();
        self.wire.call(&op::DeviceSynchronize {})
    }

    /// Returns a variable of the module.
    pub fn global<T: Pod>(&mut self, name: &str) -> Buffer<T> {
        let request = op::ModuleGetGlobal { module: self.module };
        let reply = self.wire.call_with(&request, &padded(name), None).result;
        let reply = reply.unwrap_or_else(|error| panic!("variable {name}: {error:?}"));
        let size = usize::try_from(reply.size).expect("a size in memory");
        assert_eq!(size % size_of::<T>(), 0, "variable {name} of {size} bytes");
        Buffer { address: reply.device_ptr, len: size / size_of::<T>(), values: PhantomData }
    }

    /// Returns the handle of a kernel.
    pub fn function(&mut self, kernel: &str) -> u64 {
        self.kernel(kernel).function
    }

    /// Launches a kernel on the null stream without waiting.
    pub fn launch(
        &mut self,
        kernel: &str,
        grid: impl Into<Dim>,
        block: impl Into<Dim>,
        shared_bytes: u32,
        args: &[&[u8]],
    ) {
        self.launch_on(0, kernel, grid, block, shared_bytes, args);
    }

    /// Launches a kernel on a stream without waiting.
    pub fn launch_on(
        &mut self,
        stream: u64,
        kernel: &str,
        grid: impl Into<Dim>,
        block: impl Into<Dim>,
        shared_bytes: u32,
        args: &[&[u8]],
    ) {
        let (launch, tail) = self.request(stream, kernel, grid.into(), block.into(), shared_bytes, args);
        self.wire.forget_with(&launch, &tail, None);
        self.unconfirmed.insert(kernel.into());
    }

    /// Launches a kernel on the null stream; returns whether the worker accepted it.
    pub fn try_launch(
        &mut self,
        kernel: &str,
        grid: impl Into<Dim>,
        block: impl Into<Dim>,
        shared_bytes: u32,
        args: &[&[u8]],
    ) -> HipResult<()> {
        let (launch, tail) = self.request(0, kernel, grid.into(), block.into(), shared_bytes, args);
        self.wire.send(&launch, &tail, None, ReplyMode::Always);
        self.wire.wait::<op::LaunchKernel>().result
    }

    fn request(
        &mut self,
        stream: u64,
        name: &str,
        grid: Dim,
        block: Dim,
        shared_bytes: u32,
        args: &[&[u8]],
    ) -> (op::LaunchKernel, Vec<u8>) {
        let kernel = self.kernel(name);
        kernel.launched = true;
        let sizes: Vec<usize> = kernel.params.iter().map(|param| param.size as usize).collect();
        let given: Vec<usize> = args.iter().map(|arg| arg.len()).collect();
        assert_eq!(given, sizes, "bytes of {name}'s arguments");
        let end = kernel.params.iter().map(|param| (param.offset + param.size) as usize).max().unwrap_or(0);
        let mut values = vec![0; end];
        for (param, arg) in kernel.params.iter().zip(args) {
            let start = param.offset as usize;
            values[start..start + arg.len()].copy_from_slice(arg);
        }
        let mut tail = Vec::new();
        op::LaunchArgs::put(&kernel.params, &values, &mut tail);
        let launch = op::LaunchKernel {
            function: kernel.function,
            grid_dim_x: grid.x,
            grid_dim_y: grid.y,
            grid_dim_z: grid.z,
            block_dim_x: block.x,
            block_dim_y: block.y,
            block_dim_z: block.z,
            shared_mem: shared_bytes,
            stream,
            num_args: kernel.params.len() as u32,
            launch_flags: 0,
            start_event: 0,
            stop_event: 0,
            ext_flags: 0,
        };
        (launch, tail)
    }

    fn kernel(&mut self, name: &str) -> &mut Kernel {
        self.kernels.entry(name.into()).or_insert_with(|| {
            let request = op::ModuleGetFunction { module: self.module };
            let reply = self.wire.call_with(&request, &padded(name), None).result;
            let reply = reply.unwrap_or_else(|error| panic!("kernel {name}: {error:?}"));
            let params = reply.params[..reply.num_params as usize].to_vec();
            Kernel { function: reply.function, params, launched: false }
        })
    }
}

fn padded(name: &str) -> Vec<u8> {
    let mut tail = Vec::new();
    op::put_name(name, &mut tail).expect("a short name");
    tail
}
