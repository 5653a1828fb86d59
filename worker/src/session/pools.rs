//! The session's pools of memory in stream order (HIP API: hipMemPool_t).
//!
//! A device that has pools keeps them itself ([`MemPools`](crate::device::MemPools)); here are their handles then. For all others
//! the session keeps them: what is freed into a pool stays with it as long as the pool holds no more than its release threshold,
//! and is given out again to
//!
//! - the stream that freed it, whose own order is enough;
//! - another stream, when the freeing one is done (hipMemPoolReuseAllowOpportunistic), or made to wait for it
//!   (hipMemPoolReuseAllowInternalDependencies). hipMemPoolReuseFollowEventDependencies allows less than these two and is only kept.
//!
//! What a pool would hold above its threshold goes back to the device in the order of the stream that freed it. The threshold is 0
//! at first: such a pool holds what is in use and nothing else.
//!
//! Every device of a session has a default pool of the session's own, also where the device has a pool for the whole process: what
//! one session sets must not reach another.

use std::collections::BTreeMap;

use hipr_proto::{HipError, HipResult};

use crate::device::{Context, WaitFor};

/// HIP API: hipMemPoolAttr.
mod attribute {
    pub(super) const REUSE_FOLLOW_EVENT_DEPENDENCIES: i32 = 1;
    pub(super) const REUSE_ALLOW_OPPORTUNISTIC: i32 = 2;
    pub(super) const REUSE_ALLOW_INTERNAL_DEPENDENCIES: i32 = 3;
    pub(super) const RELEASE_THRESHOLD: i32 = 4;
    pub(super) const RESERVED_MEM_CURRENT: i32 = 5;
    pub(super) const RESERVED_MEM_HIGH: i32 = 6;
    pub(super) const USED_MEM_CURRENT: i32 = 7;
    pub(super) const USED_MEM_HIGH: i32 = 8;
}

/// HIP API: hipEventDisableTiming.
const EVENT_DISABLE_TIMING: u32 = 2;
/// A block serves an allocation of at least its length divided by this.
const SLACK: u64 = 2;
/// Where the handles of pools begin that the session keeps.
const FIRST_HANDLE: u64 = 0x1000;

/// A number and the highest that it was.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    current: u64,
    high: u64,
}

impl Gauge {
    fn add(&mut self, bytes: u64) {
        self.current = self.current.saturating_add(bytes);
        self.high = self.high.max(self.current);
    }

    fn sub(&mut self, bytes: u64) {
        self.current = self.current.saturating_sub(bytes);
    }
}

/// A pool. Of one that the device keeps, only the first two are known here.
#[derive(Clone, Debug)]
struct Pool {
    device: i32,
    is_default: bool,
    /// 0: no limit.
    max_size_bytes: u64,
    release_threshold_bytes: u64,
    reuses_after_events: bool,
    reuses_what_is_done: bool,
    reuses_by_waiting: bool,
    /// What it holds of the device's memory.
    reserved: Gauge,
    /// What of that is allocated.
    used: Gauge,
}

impl Pool {
    fn new(device: i32, is_default: bool, max_size_bytes: u64) -> Self {
        let (reserved, used) = Default::default();
        Self {
            device,
            is_default,
            max_size_bytes,
            release_threshold_bytes: 0,
            reuses_after_events: true,
            reuses_what_is_done: true,
            reuses_by_waiting: true,
            reserved,
            used,
        }
    }
}

/// An allocation out of a pool.
#[derive(Clone, Copy, Debug)]
struct Live {
    pool: u64,
    block_bytes: u64,
    used_bytes: u64,
}

/// Memory that a pool holds and nobody uses.
#[derive(Clone, Copy, Debug)]
struct Idle {
    pool: u64,
    base: u64,
    block_bytes: u64,
    /// The stream that freed it.
    stream: u64,
}

/// All pools of a session.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pools: BTreeMap<u64, Pool>,
    /// Device to default pool.
    defaults: BTreeMap<i32, u64>,
    /// Device to the pool that was made its current one.
    current: BTreeMap<i32, u64>,
    live: BTreeMap<u64, Live>,
    idle: Vec<Idle>,
    /// Bytes of blocks of the session's that no allocation uses.
    spare_bytes: u64,
    made: u64,
}

/// The legacy null stream has two numbers.
fn one_number(stream: u64) -> u64 {
    if stream == 1 { 0 } else { stream }
}

impl Pools {
    /// How many there are, and blocks that they hold for nobody.
    pub(crate) fn len(&self) -> usize {
        self.pools.len() + self.idle.len()
    }

    /// Whether it is one of them.
    pub(crate) fn contains(&self, pool: u64) -> bool {
        self.pools.contains_key(&pool)
    }

    /// Bytes that are held for nobody.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.spare_bytes
    }

    /// The pool of an allocation, if it has one.
    pub(crate) fn pool_of(&self, base: u64) -> Option<u64> {
        self.live.get(&base).map(|live| live.pool).filter(|pool| self.pools.contains_key(pool))
    }

    fn pool(&mut self, pool: u64) -> HipResult<&mut Pool> {
        self.pools.get_mut(&pool).ok_or(HipError::INVALID_HANDLE)
    }

    // ---- pools -------------------------------------------------------------------------------------------------------

    fn make(
        &mut self,
        context: &mut dyn Context,
        device: i32,
        is_default: bool,
        max_size_bytes: u64,
    ) -> HipResult<u64> {
        let handle = match context.mem_pools() {
            Some(pools) => pools.create(device, max_size_bytes)?,
            None => {
                self.made += 1;
                FIRST_HANDLE + self.made
            }
        };
        self.pools.insert(handle, Pool::new(device, is_default, max_size_bytes));
        Ok(handle)
    }

    /// HIP API: hipMemPoolCreate. `max_size_bytes` of 0 is no limit.
    pub(crate) fn create(
        &mut self,
        context: &mut dyn Context,
        device: i32,
        max_size_bytes: u64,
    ) -> HipResult<u64> {
        self.make(context, device, false, max_size_bytes)
    }

    /// HIP API: hipDeviceGetDefaultMemPool.
    pub(crate) fn default_of(&mut self, context: &mut dyn Context, device: i32) -> HipResult<u64> {
        if let Some(&pool) = self.defaults.get(&device) {
            return Ok(pool);
        }
        let pool = self.make(context, device, true, 0)?;
        self.defaults.insert(device, pool);
        Ok(pool)
    }

    /// HIP API: hipDeviceGetMemPool.
    pub(crate) fn current_of(&mut self, context: &mut dyn Context, device: i32) -> HipResult<u64> {
        match self.current.get(&device) {
            Some(&pool) => Ok(pool),
            None => self.default_of(context, device),
        }
    }

    /// HIP API: hipDeviceSetMemPool; the pool must be one of the device.
    pub(crate) fn set_current(&mut self, device: i32, pool: u64) -> HipResult<()> {
        if self.pool(pool)?.device != device {
            return Err(HipError::INVALID_DEVICE);
        }
        self.current.insert(device, pool);
        Ok(())
    }

    /// HIP API: hipMemPoolDestroy. What is allocated from it lives on; devices whose current one it was have their default one again.
    pub(crate) fn destroy(&mut self, context: &mut dyn Context, pool: u64) -> HipResult<()> {
        if self.pool(pool)?.is_default {
            return Err(HipError::INVALID_VALUE);
        }
        match context.mem_pools() {
            Some(pools) => pools.destroy(pool)?,
            None => self.release(context, |idle| idle.pool == pool)?,
        }
        self.pools.remove(&pool);
        self.current.retain(|_, current| *current != pool);
        Ok(())
    }

    /// HIP API: hipMemPoolGetAttribute.
    pub(crate) fn attribute(
        &mut self,
        context: &mut dyn Context,
        pool: u64,
        attribute: i32,
    ) -> HipResult<u64> {
        let known = self.pool(pool)?;
        if let Some(pools) = context.mem_pools() {
            return pools.attribute(pool, attribute);
        }
        Ok(match attribute {
            attribute::REUSE_FOLLOW_EVENT_DEPENDENCIES => known.reuses_after_events.into(),
            attribute::REUSE_ALLOW_OPPORTUNISTIC => known.reuses_what_is_done.into(),
            attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES => known.reuses_by_waiting.into(),
            attribute::RELEASE_THRESHOLD => known.release_threshold_bytes,
            attribute::RESERVED_MEM_CURRENT => known.reserved.current,
            attribute::RESERVED_MEM_HIGH => known.reserved.high,
            attribute::USED_MEM_CURRENT => known.used.current,
            attribute::USED_MEM_HIGH => known.used.high,
            _ => return Err(HipError::INVALID_VALUE),
        })
    }

    /// HIP API: hipMemPoolSetAttribute. The highest values can be set to 0, which means to what is now.
    pub(crate) fn set_attribute(
        &mut self,
        context: &mut dyn Context,
        pool: u64,
        attribute: i32,
        value: u64,
    ) -> HipResult<()> {
        let known = self.pool(pool)?;
        if let Some(pools) = context.mem_pools() {
            return pools.set_attribute(pool, attribute, value);
        }
        match (attribute, value) {
            (attribute::REUSE_FOLLOW_EVENT_DEPENDENCIES, _) => known.reuses_after_events = value != 0,
            (attribute::REUSE_ALLOW_OPPORTUNISTIC, _) => known.reuses_what_is_done = value != 0,
            (attribute::REUSE_ALLOW_INTERNAL_DEPENDENCIES, _) => known.reuses_by_waiting = value != 0,
            (attribute::RELEASE_THRESHOLD, _) => {
                known.release_threshold_bytes = value;
                return self.trim(context, pool, value);
            }
            (attribute::RESERVED_MEM_HIGH, 0) => known.reserved.high = known.reserved.current,
            (attribute::USED_MEM_HIGH, 0) => known.used.high = known.used.current,
            _ => return Err(HipError::INVALID_VALUE),
        }
        Ok(())
    }

    /// HIP API: hipMemPoolTrimTo: gives back what is not in use until the pool holds no more than that, the oldest first.
    pub(crate) fn trim(
        &mut self,
        context: &mut dyn Context,
        pool: u64,
        min_bytes_to_hold: u64,
    ) -> HipResult<()> {
        let mut excess = self.pool(pool)?.reserved.current.saturating_sub(min_bytes_to_hold);
        if let Some(pools) = context.mem_pools() {
            return pools.trim(pool, min_bytes_to_hold);
        }
        self.release(context, |idle| {
            let goes = idle.pool == pool && excess > 0;
            if goes {
                excess = excess.saturating_sub(idle.block_bytes);
            }
            goes
        })
    }

    /// Gives back everything that is held for nobody.
    pub(crate) fn release_idle(&mut self, context: &mut dyn Context) -> HipResult<()> {
        self.release(context, |_| true)
    }

    /// Gives back what is held in the order of a stream that will be no more.
    pub(crate) fn forget_stream(&mut self, context: &mut dyn Context, stream: u64) -> HipResult<()> {
        self.release(context, |idle| idle.stream == stream)
    }

    fn release(&mut self, context: &mut dyn Context, mut goes: impl FnMut(&Idle) -> bool) -> HipResult<()> {
        let (gone, kept) = std::mem::take(&mut self.idle).into_iter().partition(|idle| goes(idle));
        self.idle = kept;
        let gone: Vec<Idle> = gone;
        let mut result = Ok(());
        for idle in gone {
            self.spare_bytes = self.spare_bytes.saturating_sub(idle.block_bytes);
            if let Some(pool) = self.pools.get_mut(&idle.pool) {
                pool.reserved.sub(idle.block_bytes);
            }
            result = result.and(context.free_async(idle.base, idle.stream));
        }
        result
    }

    // ---- memory ------------------------------------------------------------------------------------------------------

    /// HIP API: hipMallocFromPoolAsync, of more than 0 bytes.
    pub(crate) fn malloc(
        &mut self,
        context: &mut dyn Context,
        size_bytes: u64,
        pool: u64,
        stream: u64,
    ) -> HipResult<u64> {
        self.pool(pool)?;
        let (base, block_bytes) = match context.mem_pools() {
            Some(pools) => (pools.malloc(size_bytes, pool, stream)?, size_bytes),
            None => self.block(context, size_bytes, pool, one_number(stream))?,
        };
        self.live.insert(base, Live { pool, block_bytes, used_bytes: size_bytes });
        Ok(base)
    }

    /// A block of a pool that the session keeps: its address and its length.
    fn block(
        &mut self,
        context: &mut dyn Context,
        size_bytes: u64,
        pool: u64,
        stream: u64,
    ) -> HipResult<(u64, u64)> {
        if let Some(idle) = self.reuse(context, size_bytes, pool, stream) {
            self.spare_bytes = self.spare_bytes.saturating_sub(size_bytes);
            self.pool(pool)?.used.add(size_bytes);
            return Ok((idle.base, idle.block_bytes));
        }
        let known = self.pool(pool)?;
        let (device, max_size_bytes) = (known.device, known.max_size_bytes);
        if max_size_bytes > 0 {
            let room = max_size_bytes.checked_sub(size_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
            self.trim(context, pool, room)?;
            if self.pool(pool)?.reserved.current > room {
                return Err(HipError::OUT_OF_MEMORY);
            }
        }
        let base = match malloc_on(context, device, size_bytes, stream) {
            Err(HipError::OUT_OF_MEMORY) if !self.idle.is_empty() => {
                self.release_idle(context)?;
                malloc_on(context, device, size_bytes, stream)?
            }
            result => result?,
        };
        let known = self.pool(pool)?;
        known.reserved.add(size_bytes);
        known.used.add(size_bytes);
        Ok((base, size_bytes))
    }

    /// A block that the pool holds and that work of `stream` may use from now on.
    fn reuse(&mut self, context: &mut dyn Context, size_bytes: u64, pool: u64, stream: u64) -> Option<Idle> {
        let known = self.pools.get(&pool)?;
        let lengths = size_bytes..=size_bytes.saturating_mul(SLACK);
        let fits = |idle: &Idle| idle.pool == pool && lengths.contains(&idle.block_bytes);
        let candidates = self.idle.iter().enumerate().filter(|(_, idle)| fits(idle));
        let (at, idle) = candidates.min_by_key(|(_, idle)| (idle.stream != stream, idle.block_bytes))?;
        let may = idle.stream == stream
            || (known.reuses_what_is_done && context.query(WaitFor::Stream(idle.stream)).is_ok())
            || (known.reuses_by_waiting && wait_for(context, stream, idle.stream).is_ok());
        may.then(|| self.idle.remove(at))
    }

    /// HIP API: hipFreeAsync, of any allocation of the session's.
    pub(crate) fn free(&mut self, context: &mut dyn Context, base: u64, stream: u64) -> HipResult<()> {
        let keeps_pools = context.mem_pools().is_some();
        let live = self.live.get(&base).copied().filter(|_| !keeps_pools);
        let held = live.and_then(|live| self.pools.get(&live.pool).map(|pool| (live, pool)));
        let Some((Live { pool, block_bytes, used_bytes }, known)) = held else {
            context.free_async(base, stream)?;
            self.forget(base, keeps_pools);
            return Ok(());
        };
        if known.reserved.current > known.release_threshold_bytes {
            context.free_async(base, stream)?;
            self.forget(base, keeps_pools);
            return Ok(());
        }
        self.live.remove(&base);
        self.idle.push(Idle { pool, base, block_bytes, stream: one_number(stream) });
        self.spare_bytes = self.spare_bytes.saturating_add(used_bytes);
        if let Some(known) = self.pools.get_mut(&pool) {
            known.used.sub(used_bytes);
        }
        Ok(())
    }

    /// An allocation is no more, and its memory is the device's again.
    fn forget(&mut self, base: u64, keeps_pools: bool) {
        let Some(live) = self.live.remove(&base) else { return };
        if keeps_pools {
            return;
        }
        self.spare_bytes = self.spare_bytes.saturating_sub(live.block_bytes - live.used_bytes);
        if let Some(pool) = self.pools.get_mut(&live.pool) {
            pool.reserved.sub(live.block_bytes);
            pool.used.sub(live.used_bytes);
        }
    }

    /// hipFree freed an allocation.
    pub(crate) fn freed(&mut self, context: &mut dyn Context, base: u64) {
        let keeps_pools = context.mem_pools().is_some();
        self.forget(base, keeps_pools);
    }
}

/// Allocates on a device that need not be the current one.
fn malloc_on(context: &mut dyn Context, device: i32, size_bytes: u64, stream: u64) -> HipResult<u64> {
    let current = context.device();
    if device == current {
        return context.malloc_async(size_bytes, stream);
    }
    context.set_device(device)?;
    let result = context.malloc_async(size_bytes, stream);
    context.set_device(current)?;
    result
}

/// Makes later work of `stream` wait for what `other` has to do now.
fn wait_for(context: &mut dyn Context, stream: u64, other: u64) -> HipResult<()> {
    let event = context.event_create(EVENT_DISABLE_TIMING)?;
    let result =
        context.event_record(event, other).and_then(|()| context.stream_wait_event(stream, event, 0));
    result.and(context.event_destroy(event))
}
