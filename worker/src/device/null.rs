//! A device that computes nothing: every request succeeds at once. It serves to measure the transport and the worker.

use std::collections::BTreeMap;
use std::task::Poll;

use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult, Text, Wire};

use hipr_device::{
    BlockSize, Context, Device, FunctionInfo, Launch, MemoryKind, ModuleLoad, Region, WaitFor, Waker,
};

/// Size of its memory: that of an MI300X.
const TOTAL_BYTES: u64 = 192 << 30;
/// First address that it allocates.
const BASE: u64 = 0x7f00_0000_0000;
const ALIGN: u64 = 4096;

/// The null device. Handles and addresses are plausible and distinct, memory reads as zeros, nothing takes time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Null;

impl Device for Null {
    fn name(&self) -> &str {
        "null"
    }

    fn open(&self, _waker: Waker) -> HipResult<Box<dyn Context>> {
        Ok(Box::new(NullContext { next: BASE, used_bytes: 0, sizes: BTreeMap::new() }))
    }
}

struct NullContext {
    next: u64,
    used_bytes: u64,
    sizes: BTreeMap<u64, u64>,
}

impl NullContext {
    fn handle(&mut self) -> u64 {
        self.next += ALIGN;
        self.next
    }

    fn free(&mut self, ptr: u64) -> HipResult<()> {
        self.used_bytes -= self.sizes.remove(&ptr).ok_or(HipError::INVALID_VALUE)?;
        Ok(())
    }
}

impl Context for NullContext {
    fn device_count(&self) -> HipResult<i32> {
        Ok(1)
    }

    fn device(&self) -> i32 {
        0
    }

    fn set_device(&mut self, device: i32) -> HipResult<()> {
        if device == 0 { Ok(()) } else { Err(HipError::INVALID_DEVICE) }
    }

    fn properties(&self, _device: i32) -> HipResult<GetDevicePropertiesReply> {
        Ok(GetDevicePropertiesReply {
            name: Text::new("hipr null device (computes nothing)"),
            total_global_mem: TOTAL_BYTES,
            shared_mem_per_block: 64 << 10,
            regs_per_block: 64 << 10,
            warp_size: 64,
            max_threads_per_block: 1024,
            max_threads_dim: [1024; 3],
            max_grid_size: [i32::MAX, 65_536, 65_536],
            major: 9,
            minor: 4,
            multi_processor_count: 304,
            max_threads_per_multi_processor: 2048,
            concurrent_kernels: 1,
            gcn_arch_name: Text::new("gfx942"),
            ..Wire::ZERO
        })
    }

    fn attribute(&self, _device: i32, attribute: i32) -> HipResult<i32> {
        if attribute == hipr_abi::hipDeviceAttributeWarpSize { Ok(64) } else { Ok(0) }
    }

    fn version(&self) -> HipResult<i32> {
        Ok(hipr_abi::HIP_VERSION)
    }

    fn limit(&self, _limit: i32) -> HipResult<u64> {
        Ok(0)
    }

    fn set_limit(&mut self, _limit: i32, _value: u64) -> HipResult<()> {
        Ok(())
    }

    fn mem_info(&self) -> HipResult<(u64, u64)> {
        Ok((TOTAL_BYTES - self.used_bytes, TOTAL_BYTES))
    }

    fn reset(&mut self) -> HipResult<()> {
        *self = Self { next: self.next, used_bytes: 0, sizes: BTreeMap::new() };
        Ok(())
    }

    fn malloc(&mut self, size_bytes: u64, _kind: MemoryKind, _flags: u32) -> HipResult<u64> {
        if size_bytes > TOTAL_BYTES - self.used_bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        let ptr = self.handle();
        self.next += size_bytes.next_multiple_of(ALIGN);
        self.sizes.insert(ptr, size_bytes);
        self.used_bytes += size_bytes;
        Ok(ptr)
    }

    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        Poll::Ready(self.free(ptr))
    }

    fn malloc_async(&mut self, size_bytes: u64, _stream: u64) -> HipResult<u64> {
        self.malloc(size_bytes, MemoryKind::Device, 0)
    }

    fn free_async(&mut self, ptr: u64, _stream: u64) -> HipResult<()> {
        self.free(ptr)
    }

    fn enqueue_write(&mut self, _dst: Region, _bytes: Box<[u8]>, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    fn poll_ready(&mut self, _stream: u64) -> Poll<()> {
        Poll::Ready(())
    }

    fn write(&mut self, _dst: &Region, _offset: u64, _bytes: &[u8]) -> HipResult<()> {
        Ok(())
    }

    /// Returns true: reading from this device costs no processor time, as from a device that writes into the sender's buffers
    /// itself.
    fn reads_zeros(&self) -> bool {
        true
    }

    fn read(&mut self, _src: &Region, _offset: u64, out: &mut [u8]) -> HipResult<()> {
        out.fill(0);
        Ok(())
    }

    fn copy(&mut self, _dst: Region, _src: Region, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    fn fill(&mut self, _dst: Region, _value: u32, _element_bytes: u32, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    fn poll_sync(&mut self, _what: WaitFor) -> Poll<HipResult<()>> {
        Poll::Ready(Ok(()))
    }

    fn query(&mut self, _what: WaitFor) -> HipResult<()> {
        Ok(())
    }

    fn poll_query(&mut self, _what: WaitFor) -> Poll<HipResult<()>> {
        Poll::Ready(Ok(()))
    }

    fn stream_create(&mut self, _flags: u32, _priority: i32) -> HipResult<u64> {
        Ok(self.handle())
    }

    fn stream_destroy(&mut self, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    fn stream_wait_event(&mut self, _stream: u64, _event: u64, _flags: u32) -> HipResult<()> {
        Ok(())
    }

    fn stream_flags(&self, _stream: u64) -> HipResult<u32> {
        Ok(0)
    }

    fn stream_priority(&self, _stream: u64) -> HipResult<i32> {
        Ok(0)
    }

    fn event_create(&mut self, _flags: u32) -> HipResult<u64> {
        Ok(self.handle())
    }

    fn event_destroy(&mut self, _event: u64) -> HipResult<()> {
        Ok(())
    }

    fn event_record(&mut self, _event: u64, _stream: u64) -> HipResult<()> {
        Ok(())
    }

    fn event_elapsed_ms(&mut self, _start: u64, _stop: u64) -> HipResult<f32> {
        Ok(0.0)
    }

    fn module_load_within(&mut self, image: Vec<u8>, room_bytes: u64) -> HipResult<ModuleLoad> {
        let memory_bytes = image.len() as u64;
        if memory_bytes > room_bytes {
            return Ok(ModuleLoad::NoRoom(image));
        }
        Ok(ModuleLoad::Loaded { module: self.handle(), memory_bytes })
    }

    fn module_unload(&mut self, _module: u64) -> HipResult<()> {
        Ok(())
    }

    fn function(&mut self, _module: u64, _name: &str) -> HipResult<FunctionInfo> {
        Ok(FunctionInfo { handle: self.handle(), kernarg_size_bytes: 0, params: None })
    }

    fn global(&mut self, _module: u64, _name: &str) -> HipResult<(u64, u64)> {
        Ok((self.handle(), ALIGN))
    }

    fn function_attributes(&self, _function: u64) -> HipResult<FuncGetAttributesReply> {
        Ok(FuncGetAttributesReply { max_threads_per_block: 1024, ..Wire::ZERO })
    }

    fn set_function_attribute(&mut self, _function: u64, _attribute: i32, _value: i32) -> HipResult<()> {
        Ok(())
    }

    fn max_active_blocks(&self, _function: u64, _block_size: i32, _shared_mem_bytes: u64) -> HipResult<i32> {
        Ok(1)
    }

    fn max_potential_block_size(
        &self,
        _function: u64,
        _shared_mem_bytes: u64,
        _limit: i32,
    ) -> HipResult<BlockSize> {
        Ok(BlockSize { min_grid_size: 304, block_size: 1024 })
    }

    fn launch(&mut self, _launch: &Launch<'_>) -> HipResult<()> {
        Ok(())
    }
}
