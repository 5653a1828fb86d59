//! Allocations: creating, freeing and checking them.

use core::ptr::null_mut;

use hip_sys::hipMallocSignalMemory;
use hipr_device::MemoryKind;
use hipr_proto::{HipError, HipResult};

use super::resource::{Memory, Origin, Resource};
use super::{Owner, number, ptr, size, void};

/// The flags of an ordinary allocation.
const MEMORY_FLAGS_NONE: u32 = 0;

impl Owner {
    /// HIP API: hipMalloc (with flags hipExtMallocWithFlags), hipHostMalloc, hipMallocManaged; memory of a pool is
    /// [`Owner::malloc_async`]'s and [`Owner::malloc_from_pool`]'s, that of other processes [`Owner::open_memory`]'s.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn malloc(&mut self, len_bytes: u64, kind: MemoryKind, flags: u32) -> HipResult<u64> {
        self.enter()?;
        self.collect();
        let (mut address, len) = (null_mut(), size(len_bytes)?);
        // SAFETY: the place outlives the call.
        let result = unsafe {
            match kind {
                MemoryKind::Device if flags == MEMORY_FLAGS_NONE => self.hip.hipMalloc(&mut address, len),
                MemoryKind::Device => self.hip.hipExtMallocWithFlags(&mut address, len, flags),
                MemoryKind::Host => self.hip.hipHostMalloc(&mut address, len, flags),
                MemoryKind::Managed => self.hip.hipMallocManaged(&mut address, len, flags),
            }
        };
        self.check(result)?;
        let address = number(address);
        // What signals are is the library's.
        if flags != hipMallocSignalMemory || kind != MemoryKind::Device {
            self.clear_new(address, len_bytes, kind)?;
        }
        Ok(self.add_memory(address, len_bytes, Origin::Malloc(kind), self.device))
    }

    /// HIP API: hipMallocAsync; a release without it allocates at once.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn malloc_async(&mut self, len_bytes: u64, stream: u64) -> HipResult<u64> {
        let (mut address, len) = (null_mut(), size(len_bytes)?);
        if self.hip.hipMallocAsync.is_none() || self.hip.hipFreeAsync.is_none() {
            self.stream(stream)?;
            return self.malloc(len_bytes, MemoryKind::Device, MEMORY_FLAGS_NONE);
        }
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists, the place outlives the call.
        self.check(unsafe { self.hip.hipMallocAsync(&mut address, len, ptr(stream)) })?;
        self.clear_in_stream(number(address), len_bytes, stream)?;
        Ok(self.add_memory(number(address), len_bytes, Origin::Pool, self.device))
    }

    pub(super) fn add_memory(&mut self, address: u64, len_bytes: u64, origin: Origin, device: i32) -> u64 {
        self.memory.insert(address, Memory { len_bytes, origin, device });
        address
    }

    /// Frees memory immediately; the library waits for work that may use it.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what was not allocated; those of HIP.
    pub(crate) fn free(&mut self, address: u64) -> HipResult<()> {
        let memory = self.memory.remove(&address).ok_or(HipError::INVALID_VALUE)?;
        let result = self.free_now(address, &memory);
        if result.is_err() {
            self.memory.insert(address, memory);
        }
        result
    }

    pub(super) fn free_now(&self, address: u64, memory: &Memory) -> HipResult<()> {
        self.enter_device(memory.device)?;
        // SAFETY: allocated by this owner, and freed once.
        self.check(unsafe {
            match memory.origin {
                Origin::Malloc(MemoryKind::Host) => self.hip.hipHostFree(void(address)),
                Origin::Malloc(MemoryKind::Device | MemoryKind::Managed) | Origin::Pool => {
                    self.hip.hipFree(void(address))
                }
                Origin::Foreign => self.hip.hipIpcCloseMemHandle(void(address)),
                Origin::Mapped(_) => self.hip.hipMemUnmap(void(address), memory.len_bytes as usize),
            }
        })
    }

    /// Frees memory in the order of a stream (HIP API: hipFreeAsync). What is not a pool's is freed when the stream's work is
    /// done: for it, some releases' function waits.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what was not allocated, `INVALID_HANDLE`; those of HIP.
    pub(crate) fn free_async(&mut self, address: u64, stream: u64) -> HipResult<()> {
        let origin = self.memory.get(&address).ok_or(HipError::INVALID_VALUE)?.origin;
        if origin == Origin::Pool {
            let stream = self.enter_stream(stream)?;
            // SAFETY: the stream exists; allocated by this owner, and freed once.
            self.check(unsafe { self.hip.hipFreeAsync(void(address), ptr(stream)) })?;
            self.memory.remove(&address);
            return Ok(());
        }
        let marker = self.mark(stream)?;
        match self.memory.remove(&address) {
            Some(memory) => self.retire(vec![marker], Resource::Memory(address, memory)),
            None => Ok(()),
        }
    }

    /// Checks that bytes lie in one allocation or one variable of a module.
    pub(super) fn check_range(&self, address: u64, len_bytes: u64) -> HipResult<()> {
        let allocated = self
            .memory
            .range(..=address)
            .next_back()
            .map(|(&base, memory)| (base, self.extent(base, memory)));
        let variables = self.modules.values().flat_map(|module| module.globals.iter().copied());
        let lies_in = |(base, len): (u64, u64)| {
            address
                .checked_sub(base)
                .and_then(|offset| len.checked_sub(offset))
                .is_some_and(|left| len_bytes <= left)
        };
        if allocated.into_iter().any(lies_in) || variables.into_iter().any(lies_in) {
            Ok(())
        } else {
            Err(HipError::INVALID_VALUE)
        }
    }

    /// Returns the free and total bytes of the current device (HIP API: hipMemGetInfo).
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn mem_info(&self) -> HipResult<(u64, u64)> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the places outlive the call.
        self.check(unsafe { self.hip.hipMemGetInfo(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// HIP API: hipMemAdvise.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not allocated; those of HIP.
    pub(crate) fn advise(&mut self, address: u64, len_bytes: u64, advice: i32, device: i32) -> HipResult<()> {
        self.check_range(address, len_bytes)?;
        self.enter()?;
        // SAFETY: the range is allocated.
        self.check(unsafe { self.hip.hipMemAdvise(void(address), size(len_bytes)?, advice, device) })
    }

    /// HIP API: hipMemPrefetchAsync.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not allocated, `INVALID_HANDLE`; those of HIP.
    pub(crate) fn prefetch(
        &mut self,
        address: u64,
        len_bytes: u64,
        device: i32,
        stream: u64,
    ) -> HipResult<()> {
        self.check_range(address, len_bytes)?;
        let stream = self.enter_stream(stream)?;
        // SAFETY: the range is allocated, the stream exists.
        self.check(unsafe {
            self.hip.hipMemPrefetchAsync(void(address), size(len_bytes)?, device, ptr(stream))
        })
    }
}
