//! The emulated GPU as a [`Device`]: a thin adaptor, as `hipr-sim` has the same contract under its own types.

use std::task::Poll;

use hipr_proto::HipResult;
use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_sim as sim;

use super::{Args, BlockSize, Context, Device, FunctionInfo, Launch, MemoryKind, Region, WaitFor, Waker};

/// The emulated GPU; contexts share its threads and memory.
#[derive(Debug)]
pub struct Sim(sim::Gpu);

impl Sim {
    /// An emulated GPU as `config` wants it; starts its threads.
    ///
    /// # Errors
    /// What the operating system says when it gives no thread.
    pub fn new(config: sim::Config) -> std::io::Result<Self> {
        sim::Gpu::new(config).map(Self)
    }
}

impl Device for Sim {
    fn name(&self) -> &str {
        "sim"
    }

    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>> {
        Ok(Box::new(SimContext(self.0.open(waker.into_inner()))))
    }
}

struct SimContext(sim::Context);

fn region(region: &Region) -> sim::Region {
    let Region { ptr, pitch, slice, width, height, depth } = *region;
    sim::Region { ptr, pitch, slice, width, height, depth }
}

fn wait_for(what: WaitFor) -> sim::WaitFor {
    match what {
        WaitFor::Device => sim::WaitFor::Device,
        WaitFor::Stream(stream) => sim::WaitFor::Stream(stream),
        WaitFor::Event(event) => sim::WaitFor::Event(event),
    }
}

impl Context for SimContext {
    fn device_count(&self) -> HipResult<i32> {
        Ok(self.0.device_count())
    }

    fn device(&self) -> i32 {
        self.0.device()
    }

    fn set_device(&mut self, device: i32) -> HipResult<()> {
        self.0.set_device(device)
    }

    fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply> {
        self.0.properties(device)
    }

    fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32> {
        self.0.attribute(device, attribute)
    }

    fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        self.0.uuid(device)
    }

    fn version(&self) -> HipResult<i32> {
        Ok(sim::property::VERSION)
    }

    fn limit(&self, limit: i32) -> HipResult<u64> {
        self.0.limit(limit)
    }

    fn set_limit(&mut self, limit: i32, value: u64) -> HipResult<()> {
        self.0.set_limit(limit, value)
    }

    fn mem_info(&self) -> HipResult<(u64, u64)> {
        Ok(self.0.mem_info())
    }

    fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        Ok(sim::property::STREAM_PRIORITIES)
    }

    fn reset(&mut self) -> HipResult<()> {
        self.0.reset();
        Ok(())
    }

    fn malloc(&mut self, size_bytes: u64, kind: MemoryKind, _flags: u32) -> HipResult<u64> {
        let kind = match kind {
            MemoryKind::Device => sim::MemoryKind::Device,
            MemoryKind::Host => sim::MemoryKind::Host,
            MemoryKind::Managed => sim::MemoryKind::Managed,
        };
        self.0.malloc(size_bytes, kind)
    }

    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        self.0.poll_free(ptr)
    }

    fn malloc_async(&mut self, size_bytes: u64, stream: u64) -> HipResult<u64> {
        self.0.malloc_async(size_bytes, stream)
    }

    fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()> {
        self.0.free_async(ptr, stream)
    }

    fn share_memory(&mut self, ptr: u64, _size_bytes: u64) -> HipResult<[u8; 64]> {
        self.0.lend_memory(ptr)
    }

    fn open_memory(&mut self, handle: &[u8; 64], _flags: u32, room_bytes: u64) -> HipResult<(u64, u64)> {
        self.0.borrow_memory(handle, room_bytes)
    }

    fn share_event(&mut self, event: u64) -> HipResult<[u8; 64]> {
        self.0.lend_event(event)
    }

    fn open_event(&mut self, handle: &[u8; 64]) -> HipResult<u64> {
        self.0.borrow_event(handle)
    }

    fn enqueue_write(&mut self, dst: Region, bytes: Box<[u8]>, stream: u64) -> HipResult<()> {
        self.0.enqueue_write(region(&dst), bytes, stream)
    }

    fn poll_ready(&mut self, stream: u64) -> Poll<()> {
        self.0.poll_ready(stream)
    }

    fn write(&mut self, dst: &Region, offset: u64, bytes: &[u8]) -> HipResult<()> {
        self.0.write(&region(dst), offset, bytes)
    }

    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()> {
        self.0.read(&region(src), offset, out)
    }

    fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()> {
        self.0.copy(region(&dst), region(&src), stream)
    }

    fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()> {
        self.0.fill(region(&dst), value, element_bytes, stream)
    }

    fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        self.0.poll_sync(wait_for(what))
    }

    fn query(&mut self, what: WaitFor) -> HipResult<()> {
        self.0.query(wait_for(what))
    }

    fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64> {
        self.0.stream_create(flags, priority)
    }

    fn stream_destroy(&mut self, stream: u64) -> HipResult<()> {
        self.0.stream_destroy(stream)
    }

    fn stream_wait_event(&mut self, stream: u64, event: u64, _flags: u32) -> HipResult<()> {
        self.0.stream_wait_event(stream, event)
    }

    fn stream_flags(&self, stream: u64) -> HipResult<u32> {
        self.0.stream_flags(stream)
    }

    fn stream_priority(&self, stream: u64) -> HipResult<i32> {
        self.0.stream_priority(stream)
    }

    fn event_create(&mut self, flags: u32) -> HipResult<u64> {
        self.0.event_create(flags)
    }

    fn event_destroy(&mut self, event: u64) -> HipResult<()> {
        self.0.event_destroy(event)
    }

    fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()> {
        self.0.event_record(event, stream)
    }

    fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32> {
        self.0.event_elapsed_ms(start, stop)
    }

    fn module_load(&mut self, image: Vec<u8>) -> HipResult<u64> {
        self.0.module_load(&image)
    }

    fn module_unload(&mut self, module: u64) -> HipResult<()> {
        self.0.module_unload(module)
    }

    fn function(&mut self, module: u64, name: &str) -> HipResult<FunctionInfo> {
        let sim::FunctionInfo { handle, kernarg_size_bytes, params } = self.0.function(module, name)?;
        Ok(FunctionInfo { handle, kernarg_size_bytes, params: Some(params) })
    }

    fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)> {
        self.0.global(module, name)
    }

    fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply> {
        self.0.function_attributes(function)
    }

    fn set_function_attribute(&mut self, function: u64, attribute: i32, value: i32) -> HipResult<()> {
        self.0.set_function_attribute(function, attribute, value)
    }

    fn max_active_blocks(&self, function: u64, block_size: i32, shared_mem_bytes: u64) -> HipResult<i32> {
        self.0.max_active_blocks(function, block_size, shared_mem_bytes)
    }

    fn max_potential_block_size(
        &self,
        function: u64,
        shared_mem_bytes: u64,
        limit: i32,
    ) -> HipResult<BlockSize> {
        let sim::BlockSize { min_grid_size, block_size } =
            self.0.max_potential_block_size(function, shared_mem_bytes, limit)?;
        Ok(BlockSize { min_grid_size, block_size })
    }

    fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()> {
        let Launch {
            function,
            grid,
            block,
            shared_mem_bytes,
            stream,
            args,
            start_event,
            stop_event,
            cooperative,
        } = *launch;
        let args = match args {
            Args::Params { table, data } => sim::Args::Params { table, data },
            Args::Flat(bytes) => sim::Args::Flat(bytes),
        };
        self.0.launch(&sim::Launch {
            function,
            grid,
            block,
            shared_mem_bytes,
            stream,
            args,
            start_event,
            stop_event,
            cooperative,
        })
    }
}
