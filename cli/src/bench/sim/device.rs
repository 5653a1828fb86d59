//! The emulated GPU that executes the kernels, used directly or through a HIP library: memory, kernels, waiting.

use hip_sys::{DeviceBuffer, Function, Hip, Module};
use hipr_device::{Args, Context, Launch, MemoryKind, Origin, Region, WaitFor, Waker};
use hipr_isa::simd::Level;
use hipr_proto::HipError;
use hipr_sim::watch::DeviceWatch;
use hipr_sim::{Config, Gpu, SimContext};
use std::ffi::c_void;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::task::Poll;

/// The kernels, compiled by sim/build.sh.
static KERNELS: &[u8] = include_bytes!("kernels.co");

/// A GPU used by this benchmark alone.
pub(super) trait Device {
    /// Allocates device memory with a copy of `bytes`; returns its address.
    fn buffer(&mut self, bytes: &[u8]) -> Result<u64, String>;

    /// Reads the first `out.len()` bytes of the buffer at `ptr`.
    fn read(&mut self, ptr: u64, out: &mut [u8]) -> Result<(), String>;

    /// Returns a handle of the kernel `name`.
    fn function(&mut self, name: &str) -> Result<u64, String>;

    /// Prepares a call of the kernel `name` with pointers and a number.
    fn call(
        &mut self,
        name: &str,
        grid: [u32; 3],
        block: [u32; 3],
        pointers: &[u64],
        number: u32,
    ) -> Result<Call, String> {
        let function = self.function(name)?;
        let pointers = pointers.iter().flat_map(|pointer| pointer.to_le_bytes());
        let arguments = pointers.chain(number.to_le_bytes()).collect();
        Ok(Call { function, grid, block, arguments })
    }

    /// Runs a kernel and waits for its end.
    fn run(&mut self, call: &Call) -> Result<(), String>;
}

/// The emulated GPU, used directly.
pub(super) struct Direct {
    context: SimContext,
    module: u64,
    woken: Receiver<()>,
}

/// The GPU of the HIP library that a program would load.
pub(super) struct Through {
    hip: &'static Hip,
    module: &'static Module<'static>,
    /// The kernels of calls; a handle is the index.
    functions: Vec<Function<'static>>,
    buffers: Vec<DeviceBuffer<'static, u8>>,
}

/// A kernel with its arguments.
pub(super) struct Call {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: Vec<u8>,
}

fn failed(what: &str, error: HipError) -> String {
    format!("{what}: {error:?}")
}

impl Direct {
    /// Opens a device, whose work `watch` sees if there is one.
    pub(super) fn open(
        threads: NonZero<usize>,
        simd: Level,
        watch: Option<Arc<dyn DeviceWatch>>,
    ) -> Result<Self, String> {
        let config = Config { threads: Some(threads), simd: Some(simd), ..Config::default() };
        let gpu = match watch {
            Some(watch) => Gpu::watched(config, watch),
            None => Gpu::new(config),
        };
        let gpu = gpu.map_err(|why| format!("cannot start the emulated GPU: {why}"))?;
        let (waker, woken) = channel();
        let mut context = gpu.context(Waker::new(move || {
            // Once nobody waits any more, nobody has to be woken.
            let _ = waker.send(());
        }));
        let module = context.module_load(KERNELS.to_vec()).map_err(|error| failed("the kernels", error))?;
        Ok(Self { context, module, woken })
    }
}

impl Device for Direct {
    fn buffer(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let len_bytes = bytes.len() as u64;
        let ptr =
            self.context.malloc(len_bytes, MemoryKind::Device, 0).map_err(|error| failed("memory", error))?;
        let written = self.context.write(&Region::flat(ptr, len_bytes), 0, bytes);
        written.map_err(|error| failed("writing", error))?;
        Ok(ptr)
    }

    fn read(&mut self, ptr: u64, out: &mut [u8]) -> Result<(), String> {
        let read = self.context.read(&Region::flat(ptr, out.len() as u64), 0, out);
        read.map_err(|error| failed("reading", error))
    }

    fn function(&mut self, name: &str) -> Result<u64, String> {
        let function = self.context.function(self.module, name).map_err(|error| failed(name, error))?;
        Ok(function.handle)
    }

    fn run(&mut self, call: &Call) -> Result<(), String> {
        let launch = Launch {
            function: call.function,
            grid: call.grid,
            block: call.block,
            shared_mem_bytes: 0,
            stream: 0,
            args: Args::Flat(&call.arguments),
            start_event: None,
            stop_event: None,
            cooperative: false,
            origin: Origin::NONE,
        };
        self.context.launch(&launch).map_err(|error| failed("a launch", error))?;
        loop {
            match self.context.poll_sync(WaitFor::Stream(0)) {
                Poll::Ready(result) => return result.map_err(|error| failed("a kernel", error)),
                Poll::Pending => self.woken.recv().map_err(|_| "the emulated GPU stopped".to_owned())?,
            }
        }
    }
}

impl Through {
    /// Loads the kernels with the library `libamdhip64.so` that a program would get.
    pub(super) fn open() -> Result<Self, String> {
        let hip = Hip::load().map_err(|why| why.to_string())?;
        // The process ends with the benchmark.
        let hip: &'static Hip = Box::leak(Box::new(hip));
        let module = Box::leak(Box::new(hip.module(KERNELS).map_err(|why| why.to_string())?));
        Ok(Self { hip, module, functions: Vec::new(), buffers: Vec::new() })
    }
}

impl Device for Through {
    fn buffer(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let buffer = self.hip.upload(bytes).map_err(|why| why.to_string())?;
        let ptr = buffer.pointer().addr() as u64;
        self.buffers.push(buffer);
        Ok(ptr)
    }

    fn read(&mut self, ptr: u64, out: &mut [u8]) -> Result<(), String> {
        let buffer = self.buffers.iter().find(|buffer| buffer.pointer().addr() as u64 == ptr);
        let content = buffer.ok_or("no such memory")?.download().map_err(|why| why.to_string())?;
        out.copy_from_slice(content.get(..out.len()).ok_or("less memory")?);
        Ok(())
    }

    fn function(&mut self, name: &str) -> Result<u64, String> {
        self.functions.push(self.module.function(name).map_err(|why| why.to_string())?);
        Ok(self.functions.len() as u64 - 1)
    }

    #[allow(unsafe_code, reason = "a launch takes what the kernel does for right")]
    fn run(&mut self, call: &Call) -> Result<(), String> {
        let function = self.functions.get(call.function as usize).ok_or("no such kernel")?;
        let parameters = call.arguments.chunks(8);
        let mut parameters: Vec<*mut c_void> =
            parameters.map(|parameter| parameter.as_ptr().cast_mut().cast()).collect();
        // SAFETY: all parameters but the last have 8 bytes, and that has 4; the kernels write to the buffers that they are given.
        let launched = unsafe { function.launch(call.grid, call.block, 0, &mut parameters) };
        launched.and_then(|()| self.hip.synchronize()).map_err(|why| why.to_string())
    }
}
