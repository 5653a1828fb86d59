//! A session's context on real GPUs.

use std::sync::Arc;
use std::task::Poll;

use crate::owner::Owner;
use hipr_proto::op::{FuncGetAttributesReply, GetDevicePropertiesReply};
use hipr_proto::{HipError, HipResult};

use super::backlog::Backlog;
use super::kernel::Kernels;
use super::leftovers::Leftovers;
use super::printed::Output;
use super::sharing::Sharing;
use super::staging::Staging;
use super::times::{Timed, Times};
use super::wait::{Purpose, Sleeper, Wait};
use hipr_device::{
    Args, BlockSize, Context, FunctionInfo, Launch, Mappings, MemPools, MemoryKind, ModuleLoad, Origin,
    Printed, Region, Room, WaitFor, WorkTimes,
};

pub(super) struct HipContext {
    /// `None` only while the context is dropped.
    owner: Option<Owner>,
    devices: HipResult<i32>,
    version: HipResult<i32>,
    kernels: Kernels,
    staging: Staging,
    backlog: Backlog,
    times: Times,
    wait: Wait,
    sleeper: Sleeper,
    leftovers: Arc<Leftovers>,
    sharing: Sharing,
    output: Option<Arc<Output>>,
}

impl HipContext {
    pub(super) fn new(
        owner: Owner,
        devices: HipResult<i32>,
        version: HipResult<i32>,
        kernels: Kernels,
        sleeper: Sleeper,
        leftovers: Arc<Leftovers>,
        sharing: Sharing,
    ) -> Self {
        let (staging, backlog, times, wait) = Default::default();
        Self {
            owner: Some(owner),
            devices,
            version,
            kernels,
            staging,
            backlog,
            times,
            wait,
            sleeper,
            leftovers,
            sharing,
            output: None,
        }
    }

    /// Sets where to find what the runtime prints for this session's kernels.
    pub(super) fn set_output(&mut self, output: Option<Arc<Output>>) {
        self.output = output;
    }

    fn owner(&mut self) -> HipResult<&mut Owner> {
        self.owner.as_mut().ok_or(HipError::DEINITIALIZED)
    }

    fn owner_ref(&self) -> HipResult<&Owner> {
        self.owner.as_ref().ok_or(HipError::DEINITIALIZED)
    }

    fn poll_wait(&mut self, purpose: Purpose) -> Poll<HipResult<()>> {
        match &mut self.owner {
            Some(owner) => self.wait.poll(owner, &mut self.sleeper, purpose),
            None => Poll::Ready(Err(HipError::DEINITIALIZED)),
        }
    }
}

impl Drop for HipContext {
    fn drop(&mut self) {
        if let Some(mut owner) = self.owner.take() {
            self.backlog.forget(&mut owner);
            self.times.forget(&mut owner);
            self.wait.forget(&mut owner);
            self.leftovers.take(owner);
        }
    }
}

/// Implemented also for a release without pools, whose errors are returned.
impl MemPools for HipContext {
    fn create(&mut self, device: i32, max_size_bytes: u64) -> HipResult<u64> {
        self.owner()?.pool_create(device, max_size_bytes)
    }

    fn destroy(&mut self, pool: u64) -> HipResult<()> {
        self.owner()?.pool_destroy(pool)
    }

    fn attribute(&mut self, pool: u64, attribute: i32) -> HipResult<u64> {
        self.owner_ref()?.pool_attribute(pool, attribute)
    }

    fn set_attribute(&mut self, pool: u64, attribute: i32, value: u64) -> HipResult<()> {
        self.owner()?.set_pool_attribute(pool, attribute, value)
    }

    fn trim(&mut self, pool: u64, min_bytes_to_hold: u64) -> HipResult<()> {
        self.owner()?.trim_pool(pool, min_bytes_to_hold)
    }

    fn malloc(&mut self, size_bytes: u64, pool: u64, stream: u64) -> HipResult<u64> {
        self.backlog.add(stream, 1, 0);
        self.owner()?.malloc_from_pool(size_bytes, pool, stream)
    }
}

impl Mappings for HipContext {
    fn granularity(&self, device: i32) -> HipResult<u64> {
        self.owner_ref()?.granularity(device)
    }

    fn reserve(&mut self, size_bytes: u64, alignment: u64, wanted: u64) -> HipResult<u64> {
        self.owner()?.reserve(size_bytes, alignment, wanted)
    }

    fn free(&mut self, ptr: u64, size_bytes: u64) -> HipResult<()> {
        self.owner()?.free_range(ptr, size_bytes)
    }

    fn create(&mut self, size_bytes: u64, device: i32) -> HipResult<u64> {
        self.owner()?.create(size_bytes, device)
    }

    fn release(&mut self, physical: u64) -> HipResult<()> {
        self.sharing.forget_physical(physical);
        self.owner()?.release_physical(physical)
    }

    fn export(&mut self, physical: u64) -> HipResult<[u8; 64]> {
        let owner = self.owner.as_ref().ok_or(HipError::DEINITIALIZED)?;
        self.sharing.share_physical(owner, physical)
    }

    fn import(&mut self, name: &[u8; 64], room_bytes: u64) -> HipResult<(u64, u64)> {
        let owner = self.owner.as_mut().ok_or(HipError::DEINITIALIZED)?;
        self.sharing.open_physical(owner, name, room_bytes)
    }

    fn map(&mut self, ptr: u64, size_bytes: u64, physical: u64) -> HipResult<()> {
        self.owner()?.map(ptr, size_bytes, physical)
    }

    fn poll_set_access(
        &mut self,
        ptr: u64,
        size_bytes: u64,
        device: i32,
        access: u32,
    ) -> Poll<HipResult<()>> {
        let waited = if access == 0 { self.poll_wait(Purpose::Free) } else { Poll::Ready(Ok(())) };
        waited.map(|waited| waited.and_then(|()| self.owner()?.set_access(ptr, size_bytes, device, access)))
    }

    fn poll_unmap(&mut self, ptr: u64, size_bytes: u64) -> Poll<HipResult<()>> {
        self.poll_wait(Purpose::Free).map(|waited| waited.and_then(|()| self.owner()?.unmap(ptr, size_bytes)))
    }
}

impl Context for HipContext {
    fn available(&self) -> HipResult<()> {
        self.devices.and_then(|count| if count > 0 { Ok(()) } else { Err(HipError::NO_DEVICE) })
    }

    fn device_count(&self) -> HipResult<i32> {
        self.devices
    }

    fn device(&self) -> i32 {
        self.owner.as_ref().map_or(0, Owner::device)
    }

    fn set_device(&mut self, device: i32) -> HipResult<()> {
        self.owner()?.set_device(device)
    }

    fn poll_room(&mut self, room: Room) -> Poll<()> {
        match &mut self.owner {
            Some(owner) => self.backlog.poll(owner, &mut self.sleeper, room),
            None => Poll::Ready(()),
        }
    }

    fn properties(&self, device: i32) -> HipResult<GetDevicePropertiesReply> {
        self.owner_ref()?.properties(device)
    }

    fn attribute(&self, device: i32, attribute: i32) -> HipResult<i32> {
        self.owner_ref()?.attribute(device, attribute)
    }

    fn uuid(&self, device: i32) -> HipResult<[u8; 16]> {
        self.owner_ref()?.uuid(device)
    }

    fn version(&self) -> HipResult<i32> {
        self.version
    }

    fn limit(&self, limit: i32) -> HipResult<u64> {
        self.owner_ref()?.limit(limit)
    }

    fn set_limit(&mut self, limit: i32, value: u64) -> HipResult<()> {
        self.owner()?.set_limit(limit, value)
    }

    fn mem_info(&self) -> HipResult<(u64, u64)> {
        self.owner_ref()?.mem_info()
    }

    fn can_access_peer(&self, device: i32, peer: i32) -> HipResult<bool> {
        self.owner_ref()?.can_access_peer(device, peer)
    }

    fn set_peer_access(&mut self, peer: i32, enabled: bool) -> HipResult<()> {
        self.owner()?.set_peer_access(peer, enabled)
    }

    fn stream_priority_range(&self) -> HipResult<(i32, i32)> {
        self.owner_ref()?.stream_priority_range()
    }

    /// Releases what belongs to the session; hipDeviceReset would also release what other sessions of the process have.
    fn reset(&mut self) -> HipResult<()> {
        self.staging.clear();
        self.kernels.clear();
        self.sharing.clear();
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        self.backlog.forget(owner);
        self.times.forget(owner);
        self.wait.forget(owner);
        owner.release();
        Ok(())
    }

    fn malloc(&mut self, size_bytes: u64, kind: MemoryKind, flags: u32) -> HipResult<u64> {
        self.owner()?.malloc(size_bytes, kind, flags)
    }

    fn poll_free(&mut self, ptr: u64) -> Poll<HipResult<()>> {
        match self.poll_wait(Purpose::Free) {
            Poll::Pending => Poll::Pending,
            // A device that is lost says so itself when memory is freed.
            Poll::Ready(_) => {
                self.sharing.forget_memory(ptr);
                Poll::Ready(self.owner().and_then(|owner| owner.free(ptr)))
            }
        }
    }

    fn malloc_async(&mut self, size_bytes: u64, stream: u64) -> HipResult<u64> {
        self.backlog.add(stream, 1, 0);
        self.owner()?.malloc_async(size_bytes, stream)
    }

    fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()> {
        self.sharing.forget_memory(ptr);
        self.backlog.add(stream, 1, 0);
        self.owner()?.free_async(ptr, stream)
    }

    fn mappings(&mut self) -> Option<&mut dyn Mappings> {
        Some(self)
    }

    fn mem_pools(&mut self) -> Option<&mut dyn MemPools> {
        Some(self)
    }

    fn advise(&mut self, ptr: u64, len_bytes: u64, advice: i32, device: i32) -> HipResult<()> {
        self.owner()?.advise(ptr, len_bytes, advice, device)
    }

    fn prefetch(&mut self, ptr: u64, len_bytes: u64, device: i32, stream: u64) -> HipResult<()> {
        self.backlog.add(stream, 1, 0);
        self.owner()?.prefetch(ptr, len_bytes, device, stream)
    }

    fn share_memory(&mut self, ptr: u64, size_bytes: u64) -> HipResult<[u8; 64]> {
        let owner = self.owner.as_ref().ok_or(HipError::DEINITIALIZED)?;
        self.sharing.share_memory(owner, ptr, size_bytes)
    }

    fn open_memory(&mut self, handle: &[u8; 64], flags: u32, room_bytes: u64) -> HipResult<(u64, u64)> {
        let owner = self.owner.as_mut().ok_or(HipError::DEINITIALIZED)?;
        self.sharing.open_memory(owner, handle, flags, room_bytes)
    }

    fn share_event(&mut self, event: u64) -> HipResult<[u8; 64]> {
        let owner = self.owner.as_ref().ok_or(HipError::DEINITIALIZED)?;
        self.sharing.share_event(owner, event)
    }

    fn open_event(&mut self, handle: &[u8; 64]) -> HipResult<u64> {
        let owner = self.owner.as_mut().ok_or(HipError::DEINITIALIZED)?;
        self.sharing.open_event(owner, handle)
    }

    fn poll_write(&mut self, dst: &Region, offset: u64, bytes: &[u8], stream: u64) -> Poll<HipResult<usize>> {
        match &mut self.owner {
            Some(owner) => {
                let (timed, sleeper) = (Timed { owner, times: &mut self.times }, &mut self.sleeper);
                let taken = self.staging.poll_write(timed, sleeper, dst, offset, bytes, stream);
                if taken.is_ready() {
                    self.backlog.add(stream, 1 + self.times.events(), 0);
                }
                taken
            }
            None => Poll::Ready(Err(HipError::DEINITIALIZED)),
        }
    }

    fn has_printed(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.is_there())
    }

    fn take_printed(&mut self) -> Vec<Printed> {
        self.output.as_ref().map(|output| output.read()).unwrap_or_default()
    }

    fn printed_was_sent(&mut self) {
        if let Some(output) = &self.output {
            output.was_sent();
        }
    }

    fn poll_written(&mut self, stream: u64) -> Poll<HipResult<()>> {
        self.poll_wait(Purpose::Written(stream))
    }

    fn poll_fetched(&mut self, src: &Region, offset: u64, len: usize, stream: u64) -> Poll<HipResult<usize>> {
        match &mut self.owner {
            Some(owner) => {
                let (timed, sleeper) = (Timed { owner, times: &mut self.times }, &mut self.sleeper);
                self.staging.poll_fetched(timed, sleeper, src, offset, len, stream)
            }
            None => Poll::Ready(Err(HipError::DEINITIALIZED)),
        }
    }

    fn read(&mut self, src: &Region, offset: u64, out: &mut [u8]) -> HipResult<()> {
        match &mut self.owner {
            Some(owner) => self.staging.read(owner, &mut self.times, src, offset, out),
            None => Err(HipError::DEINITIALIZED),
        }
    }

    fn copy(&mut self, dst: Region, src: Region, stream: u64) -> HipResult<()> {
        self.backlog.add(stream, 1 + self.times.events(), 0);
        let owner = self.owner.as_mut().ok_or(HipError::DEINITIALIZED)?;
        self.times.around(owner, stream, 0, |owner| owner.copy(&dst, &src, stream))
    }

    fn fill(&mut self, dst: Region, value: u32, element_bytes: u32, stream: u64) -> HipResult<()> {
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        let len = dst.len_bytes().ok_or(HipError::INVALID_VALUE)?;
        let (backlog, events) = (&mut self.backlog, self.times.events());
        backlog.add(stream, events, 0);
        self.times.around(owner, stream, 0, |owner| {
            for (ptr, _, run) in dst.runs(0, len) {
                backlog.add(stream, 1, 0);
                owner.fill(ptr, run, value, element_bytes, stream)?;
            }
            Ok(())
        })
    }

    fn note_times(&mut self, origin: Origin) {
        self.times.note(origin);
    }

    fn take_times(&mut self, into: &mut Vec<WorkTimes>) -> u32 {
        self.owner.as_mut().map_or(0, |owner| self.times.take(owner, into))
    }

    fn poll_sync(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        self.poll_wait(Purpose::Sync(what))
    }

    fn query(&mut self, what: WaitFor) -> HipResult<()> {
        match what {
            WaitFor::Stream(stream) => self.owner()?.stream_query(stream),
            WaitFor::Event(event) => self.owner()?.event_query(event),
            WaitFor::Device => match self.owner()?.is_device_idle()? {
                true => Ok(()),
                false => Err(HipError::NOT_READY),
            },
        }
    }

    fn poll_query(&mut self, what: WaitFor) -> Poll<HipResult<()>> {
        match self.query(what) {
            Err(HipError::NOT_READY) => self.sleeper.pending(),
            result => Poll::Ready(result),
        }
    }

    fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64> {
        self.owner()?.stream_create(flags, priority)
    }

    fn stream_destroy(&mut self, stream: u64) -> HipResult<()> {
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        self.backlog.handle_destroyed(owner, stream);
        owner.stream_destroy(stream)
    }

    fn stream_wait_event(&mut self, stream: u64, event: u64, flags: u32) -> HipResult<()> {
        self.backlog.add(stream, 1, 0);
        self.owner()?.stream_wait_event(stream, event, flags)
    }

    fn stream_flags(&self, stream: u64) -> HipResult<u32> {
        self.owner_ref()?.stream_flags(stream)
    }

    fn stream_priority(&self, stream: u64) -> HipResult<i32> {
        self.owner_ref()?.stream_priority(stream)
    }

    fn event_create(&mut self, flags: u32) -> HipResult<u64> {
        self.owner()?.event_create(flags)
    }

    fn event_destroy(&mut self, event: u64) -> HipResult<()> {
        self.sharing.forget_event(event);
        self.owner()?.event_destroy(event)
    }

    fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()> {
        self.backlog.add(stream, 1, 0);
        self.owner()?.event_record(event, stream)
    }

    fn event_elapsed_ms(&mut self, start: u64, stop: u64) -> HipResult<f32> {
        self.owner_ref()?.event_elapsed_ms(start, stop)
    }

    fn module_load_within(&mut self, image: Vec<u8>, room_bytes: u64) -> HipResult<ModuleLoad> {
        let arch = self.properties(self.device())?.gcn_arch_name.to_string();
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        self.kernels.load(owner, &arch, image, room_bytes)
    }

    fn module_unload(&mut self, module: u64) -> HipResult<()> {
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        self.kernels.unload(owner, module)
    }

    fn function(&mut self, module: u64, name: &str) -> HipResult<FunctionInfo> {
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        self.kernels.function(owner, module, name)
    }

    fn global(&mut self, module: u64, name: &str) -> HipResult<(u64, u64)> {
        self.owner()?.global(module, name)
    }

    fn function_attributes(&self, function: u64) -> HipResult<FuncGetAttributesReply> {
        let owner = self.owner_ref()?;
        let get = |attribute| owner.function_attribute(function, attribute);
        Ok(FuncGetAttributesReply {
            shared_size_bytes: get(hip_sys::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            const_size_bytes: get(hip_sys::HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            local_size_bytes: get(hip_sys::HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            num_regs: get(hip_sys::HIP_FUNC_ATTRIBUTE_NUM_REGS)?,
            max_threads_per_block: get(hip_sys::HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            ptx_version: get(hip_sys::HIP_FUNC_ATTRIBUTE_PTX_VERSION)?,
            binary_version: get(hip_sys::HIP_FUNC_ATTRIBUTE_BINARY_VERSION)?,
            cache_mode_ca: get(hip_sys::HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA)?,
            max_dynamic_shared_size_bytes: get(hip_sys::HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
            preferred_shared_memory_carveout: get(
                hip_sys::HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
            )?,
        })
    }

    fn set_function_attribute(&mut self, function: u64, attribute: i32, value: i32) -> HipResult<()> {
        self.owner()?.set_function_attribute(function, attribute, value)
    }

    fn max_active_blocks(&self, function: u64, block_size: i32, shared_mem_bytes: u64) -> HipResult<i32> {
        self.owner_ref()?.max_active_blocks(function, block_size, shared_mem_bytes)
    }

    fn max_potential_block_size(
        &self,
        function: u64,
        shared_mem_bytes: u64,
        limit: i32,
    ) -> HipResult<BlockSize> {
        self.owner_ref()?.max_potential_block_size(function, shared_mem_bytes, limit)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> HipResult<()> {
        let Some(owner) = &mut self.owner else { return Err(HipError::DEINITIALIZED) };
        let (Args::Flat(args) | Args::Params { data: args, .. }) = launch.args;
        let events = launch.start_event.iter().chain(&launch.stop_event).count() + self.times.events();
        self.backlog.add(launch.stream, 1 + events, args.len());
        let kernels = &mut self.kernels;
        self.times.around(owner, launch.stream, launch.function, |owner| kernels.launch(owner, launch))
    }
}
