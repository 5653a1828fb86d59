//! Pools of memory in stream order.

use core::ptr::null_mut;

use hipr_proto::{HipError, HipResult};

use super::resource::Origin;
use super::{Owner, number, ptr, size};
use hip_sys::*;

impl Owner {
    /// Returns the device of a pool and makes it current.
    fn enter_pool(&self, pool: u64) -> HipResult<i32> {
        let device = *self.pools.get(&pool).ok_or(HipError::INVALID_HANDLE)?;
        self.enter_device(device)?;
        Ok(device)
    }

    /// Creates a pool of a device's memory that holds at most `max_len_bytes` bytes, 0 for no limit (HIP API:
    /// hipMemPoolCreate).
    ///
    /// # Errors
    /// `NOT_SUPPORTED` of a release without; those of HIP.
    pub(crate) fn pool_create(&mut self, device: i32, max_len_bytes: u64) -> HipResult<u64> {
        self.enter_device(device)?;
        let props = hipMemPoolProps {
            allocType: hipMemAllocationTypePinned,
            handleTypes: hipMemHandleTypeNone,
            location: hipMemLocation { r#type: hipMemLocationTypeDevice, id: device },
            win32SecurityAttributes: null_mut(),
            maxSize: size(max_len_bytes)?,
            reserved: [0; 56],
        };
        let mut pool = null_mut();
        // SAFETY: the place and the structure outlive the call.
        self.check(unsafe { self.hip.hipMemPoolCreate(&mut pool, &props) })?;
        let pool = number(pool);
        self.pools.insert(pool, device);
        Ok(pool)
    }

    /// Destroys a pool; what is allocated from it lives on (HIP API: hipMemPoolDestroy).
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn pool_destroy(&mut self, pool: u64) -> HipResult<()> {
        self.enter_pool(pool)?;
        // SAFETY: made by this owner, and destroyed once.
        self.check(unsafe { self.hip.hipMemPoolDestroy(ptr(pool)) })?;
        self.pools.remove(&pool);
        Ok(())
    }

    /// HIP API: hipMemPoolGetAttribute.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn pool_attribute(&self, pool: u64, attribute: i32) -> HipResult<u64> {
        self.enter_pool(pool)?;
        // The longest that an attribute is; of a shorter one the first bytes.
        let mut value = 0u64;
        // SAFETY: the pool exists, the place outlives the call and has room for every attribute.
        self.check(unsafe {
            self.hip.hipMemPoolGetAttribute(ptr(pool), attribute, (&raw mut value).cast())
        })?;
        Ok(value)
    }

    /// HIP API: hipMemPoolSetAttribute.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn set_pool_attribute(&mut self, pool: u64, attribute: i32, mut value: u64) -> HipResult<()> {
        self.enter_pool(pool)?;
        // SAFETY: the pool exists, the value outlives the call and is as long as the longest attribute.
        self.check(unsafe { self.hip.hipMemPoolSetAttribute(ptr(pool), attribute, (&raw mut value).cast()) })
    }

    /// HIP API: hipMemPoolTrimTo.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn trim_pool(&mut self, pool: u64, min_bytes_to_hold: u64) -> HipResult<()> {
        self.enter_pool(pool)?;
        // SAFETY: the pool exists.
        self.check(unsafe { self.hip.hipMemPoolTrimTo(ptr(pool), size(min_bytes_to_hold)?) })
    }

    /// HIP API: hipMallocFromPoolAsync.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn malloc_from_pool(&mut self, len_bytes: u64, pool: u64, stream: u64) -> HipResult<u64> {
        let device = *self.pools.get(&pool).ok_or(HipError::INVALID_HANDLE)?;
        let (mut address, len) = (null_mut(), size(len_bytes)?);
        let stream = self.enter_stream(stream)?;
        // SAFETY: pool and stream exist, the place outlives the call.
        self.check(unsafe { self.hip.hipMallocFromPoolAsync(&mut address, len, ptr(pool), ptr(stream)) })?;
        self.clear_in_stream(number(address), len_bytes, stream)?;
        Ok(self.add_memory(number(address), len_bytes, Origin::Pool, device))
    }

    /// Destroys the remaining pools, whose allocations have been freed.
    pub(super) fn release_pools(&mut self) {
        for (pool, device) in std::mem::take(&mut self.pools) {
            let destroyed = self.enter_device(device).and_then(|()| {
                // SAFETY: made by this owner, and destroyed once.
                self.check(unsafe { self.hip.hipMemPoolDestroy(ptr(pool)) })
            });
            Self::note(destroyed);
        }
    }
}
