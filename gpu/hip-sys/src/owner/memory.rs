//! Memory: allocating, freeing, and what lies in what was allocated.

use core::ptr::null_mut;

use super::stream::Thing;
use super::{HipCode, Owner, number, ptr, size, void};
use crate::hipErrorInvalidValue;

/// Flags of an allocation that asks for nothing.
pub const MEMORY_FLAGS_NONE: u32 = 0;

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// `hipMalloc`.
    Device,
    /// `hipHostMalloc`.
    Host,
    /// `hipMallocManaged`.
    Managed,
    /// `hipMallocAsync`, `hipMallocFromPoolAsync`.
    Pool,
    /// Another process's, opened with `hipIpcOpenMemHandle`.
    Foreign,
}

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) len_bytes: u64,
    pub(super) kind: MemoryKind,
    pub(super) device: i32,
}

impl Owner {
    /// HIP API: hipMalloc (with flags hipExtMallocWithFlags), hipHostMalloc, hipMallocManaged; memory of a pool is
    /// [`Owner::malloc_async`]'s and [`Owner::malloc_from_pool`]'s, that of other processes [`Owner::open_memory`]'s.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn malloc(&mut self, len_bytes: u64, kind: MemoryKind, flags: u32) -> HipCode<u64> {
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
                MemoryKind::Pool | MemoryKind::Foreign => hipErrorInvalidValue,
            }
        };
        self.check(result)?;
        Ok(self.add_memory(number(address), len_bytes, kind, self.device))
    }

    /// HIP API: hipMallocAsync; a release without it allocates at once.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn malloc_async(&mut self, len_bytes: u64, stream: u64) -> HipCode<u64> {
        let (mut address, len) = (null_mut(), size(len_bytes)?);
        if self.hip.hipMallocAsync.is_none() || self.hip.hipFreeAsync.is_none() {
            self.stream(stream)?;
            return self.malloc(len_bytes, MemoryKind::Device, MEMORY_FLAGS_NONE);
        }
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists, the place outlives the call.
        self.check(unsafe { self.hip.hipMallocAsync(&mut address, len, ptr(stream)) })?;
        Ok(self.add_memory(number(address), len_bytes, MemoryKind::Pool, self.device))
    }

    pub(super) fn add_memory(&mut self, address: u64, len_bytes: u64, kind: MemoryKind, device: i32) -> u64 {
        self.memory.insert(address, Memory { len_bytes, kind, device });
        address
    }

    /// Frees memory, at once: the library waits for work that may use it.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what was not allocated; those of HIP.
    pub fn free(&mut self, address: u64) -> HipCode {
        let memory = self.memory.remove(&address).ok_or(hipErrorInvalidValue)?;
        let result = self.free_now(address, &memory);
        if result.is_err() {
            self.memory.insert(address, memory);
        }
        result
    }

    pub(super) fn free_now(&self, address: u64, memory: &Memory) -> HipCode {
        self.enter_device(memory.device)?;
        // SAFETY: allocated by this owner, and freed once.
        self.check(unsafe {
            match memory.kind {
                MemoryKind::Host => self.hip.hipHostFree(void(address)),
                MemoryKind::Device | MemoryKind::Managed | MemoryKind::Pool => {
                    self.hip.hipFree(void(address))
                }
                MemoryKind::Foreign => self.hip.hipIpcCloseMemHandle(void(address)),
            }
        })
    }

    /// Frees memory in the order of a stream (HIP API: hipFreeAsync). What is not a pool's is freed when the stream's work is
    /// done: for it, some releases' function waits.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what was not allocated, `INVALID_HANDLE`; those of HIP.
    pub fn free_async(&mut self, address: u64, stream: u64) -> HipCode {
        let kind = self.memory.get(&address).ok_or(hipErrorInvalidValue)?.kind;
        if kind == MemoryKind::Pool {
            let stream = self.enter_stream(stream)?;
            // SAFETY: the stream exists; allocated by this owner, and freed once.
            self.check(unsafe { self.hip.hipFreeAsync(void(address), ptr(stream)) })?;
            self.memory.remove(&address);
            return Ok(());
        }
        let marker = self.mark(stream)?;
        match self.memory.remove(&address) {
            Some(memory) => self.retire(vec![marker], Thing::Memory(address, memory)),
            None => Ok(()),
        }
    }

    /// Checks that bytes lie in one allocation or one variable of a module.
    pub(super) fn check_range(&self, address: u64, len_bytes: u64) -> HipCode {
        let allocated =
            self.memory.range(..=address).next_back().map(|(&base, memory)| (base, memory.len_bytes));
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
            Err(hipErrorInvalidValue)
        }
    }

    /// Free and total bytes of the current device (HIP API: hipMemGetInfo).
    ///
    /// # Errors
    /// Those of HIP.
    pub fn mem_info(&self) -> HipCode<(u64, u64)> {
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
    pub fn advise(&mut self, address: u64, len_bytes: u64, advice: i32, device: i32) -> HipCode {
        self.check_range(address, len_bytes)?;
        self.enter()?;
        // SAFETY: the range is allocated.
        self.check(unsafe { self.hip.hipMemAdvise(void(address), size(len_bytes)?, advice, device) })
    }

    /// HIP API: hipMemPrefetchAsync.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not allocated, `INVALID_HANDLE`; those of HIP.
    pub fn prefetch(&mut self, address: u64, len_bytes: u64, device: i32, stream: u64) -> HipCode {
        self.check_range(address, len_bytes)?;
        let stream = self.enter_stream(stream)?;
        // SAFETY: the range is allocated, the stream exists.
        self.check(unsafe {
            self.hip.hipMemPrefetchAsync(void(address), size(len_bytes)?, device, ptr(stream))
        })
    }
}
