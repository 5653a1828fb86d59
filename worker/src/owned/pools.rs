//! A session's memory pools (HIP API: hipMemPool_t).
//!
//! A device that has pools keeps them itself ([`MemPools`](hipr_device::MemPools)); here are their handles then. For all others
//! the session keeps them. What is freed into a pool stays with it, and is given out again to
//!
//! - the stream that freed it, whose own order is enough;
//! - a stream whose later work comes behind the free because of events or of the null stream
//!   (hipMemPoolReuseFollowEventDependencies);
//! - any stream once the work before the free is done (hipMemPoolReuseAllowOpportunistic);
//! - any stream that is made to wait for that work (hipMemPoolReuseAllowInternalDependencies), where there is no other memory.
//!
//! A synchronization gives back to the device what a pool holds above its release threshold, hipMemPoolTrimTo what it holds above
//! what it is told: both only memory that nobody uses and whose work is done. Where there is no room for something else, freed
//! memory goes back in the order of the stream that freed it.
//!
//! Every device of a session has a default pool of the session's own, also where the device has a pool for the whole process: what
//! one session sets must not reach another.

mod order;

use std::collections::BTreeMap;

use hipr_abi::*;
use hipr_device::{Context, WaitFor};
use hipr_proto::{HipError, HipResult};

use self::order::FreeOrder;

/// A block serves an allocation of at least its size divided by this.
const SLACK: u64 = 2;
/// The per-thread stream, which always exists and for which only the null stream waits.
const PER_THREAD_STREAM: u64 = hipStreamPerThread as u64;
/// First handle of pools that the session creates.
const FIRST_HANDLE: u64 = 0x1000;

/// A number and its maximum so far.
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

/// A memory pool. Of a pool that the device manages only the first two fields are used.
#[derive(Clone, Debug)]
struct Pool {
    device: i32,
    is_default: bool,
    /// Maximum size in bytes; 0 for no limit.
    max_size_bytes: u64,
    release_threshold_bytes: u64,
    reuses_after_events: bool,
    reuses_what_is_done: bool,
    reuses_by_waiting: bool,
    /// Bytes of device memory that the pool holds.
    reserved: Gauge,
    /// Bytes of device memory that are allocated from the pool.
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

/// An allocation from a pool.
#[derive(Clone, Copy, Debug)]
struct Live {
    pool: u64,
    block_bytes: u64,
    used_bytes: u64,
}

/// An idle block: memory that a pool holds and no allocation uses.
#[derive(Clone, Copy, Debug)]
struct Idle {
    pool: u64,
    base: u64,
    block_bytes: u64,
    /// The number of the stream that freed it; `None` if that was destroyed.
    stream: Option<u64>,
    /// Sequence number of the call that freed it.
    free: u64,
    /// An event that was recorded after the free.
    event: u64,
}

impl Idle {
    /// Returns whether the work before the free is done.
    fn is_done(&self, context: &mut dyn Context) -> bool {
        context.query(WaitFor::Event(self.event)).is_ok()
    }

    /// Releases the memory to the device, after the work before the free.
    fn release(self, context: &mut dyn Context) -> HipResult<()> {
        let result = match self.stream.filter(|stream| *stream < OF_DEVICES) {
            Some(stream) => context.free_async(self.base, stream),
            None => context
                .stream_wait_event(PER_THREAD_STREAM, self.event, 0)
                .and_then(|()| context.free_async(self.base, PER_THREAD_STREAM)),
        };
        result.and(context.event_destroy(self.event))
    }
}

/// All pools of a session.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pools: BTreeMap<u64, Pool>,
    /// The default pool of each device.
    defaults: BTreeMap<i32, u64>,
    /// The current pool of each device, if it was set.
    current: BTreeMap<i32, u64>,
    live: BTreeMap<u64, Live>,
    /// Idle blocks in the order of their frees.
    idle: Vec<Idle>,
    order: FreeOrder,
    /// Bytes of idle blocks.
    spare_bytes: u64,
    made: u64,
}

/// The first number of the streams that devices have by themselves, where there are several devices; handles are less.
const OF_DEVICES: u64 = 1 << 63;

fn has_several_devices(context: &dyn Context) -> bool {
    context.device_count().is_ok_and(|count| count > 1)
}

/// Returns one number for each stream: the legacy null stream has two handles, and each device has one of its own.
fn number_of(context: &dyn Context, stream: u64) -> u64 {
    let stream = if stream == 1 { 0 } else { stream };
    if stream > PER_THREAD_STREAM || !has_several_devices(context) {
        return stream;
    }
    OF_DEVICES + u64::from(context.device().unsigned_abs()) * (PER_THREAD_STREAM + 1) + stream
}

/// Returns whether a stream and the legacy null stream are known to wait for each other. Of several devices only one has that stream, and
/// which is not known here.
fn is_blocking(context: &dyn Context, stream: u64) -> bool {
    let is_blocking = context.stream_flags(stream).is_ok_and(|flags| flags & hipStreamNonBlocking == 0);
    is_blocking && !has_several_devices(context)
}

impl Pools {
    /// Returns the number of pools and idle blocks.
    pub(crate) fn len(&self) -> usize {
        self.pools.len() + self.idle.len()
    }

    /// Returns whether a pool exists.
    pub(crate) fn contains(&self, pool: u64) -> bool {
        self.pools.contains_key(&pool)
    }

    /// Returns the bytes of idle blocks.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.spare_bytes
    }

    /// Returns the pool of an allocation, if it has one.
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

    /// Creates a pool (HIP API: hipMemPoolCreate). `max_size_bytes` of 0 is no limit.
    pub(crate) fn create(
        &mut self,
        context: &mut dyn Context,
        device: i32,
        max_size_bytes: u64,
    ) -> HipResult<u64> {
        self.make(context, device, false, max_size_bytes)
    }

    /// Returns the default pool of a device (HIP API: hipDeviceGetDefaultMemPool).
    pub(crate) fn default_of(&mut self, context: &mut dyn Context, device: i32) -> HipResult<u64> {
        if let Some(&pool) = self.defaults.get(&device) {
            return Ok(pool);
        }
        let pool = self.make(context, device, true, 0)?;
        self.defaults.insert(device, pool);
        Ok(pool)
    }

    /// Returns the current pool of a device (HIP API: hipDeviceGetMemPool).
    pub(crate) fn current_of(&mut self, context: &mut dyn Context, device: i32) -> HipResult<u64> {
        match self.current.get(&device) {
            Some(&pool) => Ok(pool),
            None => self.default_of(context, device),
        }
    }

    /// Sets the current pool of a device, which has to be a pool of that device (HIP API: hipDeviceSetMemPool).
    pub(crate) fn set_current(&mut self, device: i32, pool: u64) -> HipResult<()> {
        if self.pool(pool)?.device != device {
            return Err(HipError::INVALID_DEVICE);
        }
        self.current.insert(device, pool);
        Ok(())
    }

    /// Destroys a pool (HIP API: hipMemPoolDestroy). Its allocations stay valid; devices whose current pool it was use
    /// their default pool again.
    pub(crate) fn destroy(&mut self, context: &mut dyn Context, pool: u64) -> HipResult<()> {
        if self.pool(pool)?.is_default {
            return Err(HipError::INVALID_VALUE);
        }
        match context.mem_pools() {
            Some(pools) => pools.destroy(pool)?,
            None => self.release(context, |_, idle| idle.pool == pool)?,
        }
        self.pools.remove(&pool);
        self.current.retain(|_, current| *current != pool);
        Ok(())
    }

    /// Returns an attribute of a pool (HIP API: hipMemPoolGetAttribute).
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
            hipMemPoolReuseFollowEventDependencies => known.reuses_after_events.into(),
            hipMemPoolReuseAllowOpportunistic => known.reuses_what_is_done.into(),
            hipMemPoolReuseAllowInternalDependencies => known.reuses_by_waiting.into(),
            hipMemPoolAttrReleaseThreshold => known.release_threshold_bytes,
            hipMemPoolAttrReservedMemCurrent => known.reserved.current,
            hipMemPoolAttrReservedMemHigh => known.reserved.high,
            hipMemPoolAttrUsedMemCurrent => known.used.current,
            hipMemPoolAttrUsedMemHigh => known.used.high,
            _ => return Err(HipError::INVALID_VALUE),
        })
    }

    /// Sets an attribute of a pool (HIP API: hipMemPoolSetAttribute). Setting a high-water mark to 0 makes it 0,
    /// as on AMD's runtime, until the pool next grows or gives out memory.
    pub(crate) fn set_attribute(
        &mut self,
        context: &mut dyn Context,
        pool: u64,
        attribute: i32,
        value: u64,
    ) -> HipResult<()> {
        let known = self.pool(pool)?;
        check_pool_attribute(attribute, value).map_err(HipError)?;
        if let Some(pools) = context.mem_pools() {
            return pools.set_attribute(pool, attribute, value);
        }
        match attribute {
            hipMemPoolReuseFollowEventDependencies => known.reuses_after_events = value != 0,
            hipMemPoolReuseAllowOpportunistic => known.reuses_what_is_done = value != 0,
            hipMemPoolReuseAllowInternalDependencies => known.reuses_by_waiting = value != 0,
            hipMemPoolAttrReleaseThreshold => known.release_threshold_bytes = value,
            hipMemPoolAttrReservedMemHigh => known.reserved.high = 0,
            hipMemPoolAttrUsedMemHigh => known.used.high = 0,
            _ => return Err(HipError::INVALID_VALUE),
        }
        Ok(())
    }

    /// Releases idle blocks, the oldest first, until the pool holds at most the given bytes (HIP API: hipMemPoolTrimTo).
    /// Blocks that a stream may still use are kept.
    pub(crate) fn trim(
        &mut self,
        context: &mut dyn Context,
        pool: u64,
        min_bytes_to_hold: u64,
    ) -> HipResult<()> {
        self.pool(pool)?;
        if let Some(pools) = context.mem_pools() {
            return pools.trim(pool, min_bytes_to_hold);
        }
        self.release_above(context, pool, min_bytes_to_hold, true)
    }

    /// Handles that a stream, an event or the device was synchronized: releases idle blocks beyond the pools' thresholds.
    pub(crate) fn synchronized(&mut self, context: &mut dyn Context) -> HipResult<()> {
        if self.idle.is_empty() {
            return Ok(());
        }
        let above = |pool: &Pool| pool.reserved.current > pool.release_threshold_bytes;
        let pools = self.pools.iter().filter(|(_, pool)| above(pool));
        let thresholds: Vec<_> =
            pools.map(|(&handle, pool)| (handle, pool.release_threshold_bytes)).collect();
        let release = |(pool, threshold)| self.release_above(context, pool, threshold, true);
        thresholds.into_iter().map(release).fold(Ok(()), HipResult::and)
    }

    /// Releases idle blocks, the oldest first, until the pool holds at most `max_bytes`: all of them, or only those that no
    /// stream uses.
    fn release_above(
        &mut self,
        context: &mut dyn Context,
        pool: u64,
        max_bytes: u64,
        only_done: bool,
    ) -> HipResult<()> {
        let mut excess = self.pool(pool)?.reserved.current.saturating_sub(max_bytes);
        self.release(context, |context, idle| {
            let goes = idle.pool == pool && excess > 0 && (!only_done || idle.is_done(context));
            if goes {
                excess = excess.saturating_sub(idle.block_bytes);
            }
            goes
        })
    }

    /// Releases all idle blocks.
    pub(crate) fn release_idle(&mut self, context: &mut dyn Context) -> HipResult<()> {
        self.release(context, |_, _| true)
    }

    fn release(
        &mut self,
        context: &mut dyn Context,
        mut goes: impl FnMut(&mut dyn Context, &Idle) -> bool,
    ) -> HipResult<()> {
        let gone: Vec<Idle> = self.idle.extract_if(.., |idle| goes(context, idle)).collect();
        let mut result = Ok(());
        for idle in gone {
            self.spare_bytes = self.spare_bytes.saturating_sub(idle.block_bytes);
            if let Some(pool) = self.pools.get_mut(&idle.pool) {
                pool.reserved.sub(idle.block_bytes);
            }
            result = result.and(idle.release(context));
        }
        self.forget_order();
        result
    }

    // ---- the order of streams ----------------------------------------------------------------------------------------

    fn forget_order(&mut self) {
        if self.idle.is_empty() {
            self.order.clear();
        }
    }

    /// Notes that an event was recorded on a stream.
    pub(crate) fn event_recorded(&mut self, context: &dyn Context, event: u64, stream: u64) {
        if !self.idle.is_empty() {
            self.order.record(event, number_of(context, stream), is_blocking(context, stream));
        }
    }

    /// Notes that later work of a stream waits for an event.
    pub(crate) fn event_waited(&mut self, context: &dyn Context, stream: u64, event: u64) {
        if !self.idle.is_empty() {
            self.order.wait(number_of(context, stream), is_blocking(context, stream), event);
        }
    }

    /// Notes that other sessions may record the event from now on.
    pub(crate) fn event_shared(&mut self, event: u64) {
        self.order.share_event(event);
    }

    /// Removes a destroyed event.
    pub(crate) fn forget_event(&mut self, event: u64) {
        self.order.forget_event(event);
    }

    /// Removes a destroyed stream; other streams may use what it freed when its work is done.
    pub(crate) fn forget_stream(&mut self, stream: u64) {
        self.order.forget_stream(stream);
        for idle in self.idle.iter_mut().filter(|idle| idle.stream == Some(stream)) {
            idle.stream = None;
        }
    }

    // ---- memory ------------------------------------------------------------------------------------------------------

    /// Allocates an idle block that work of `stream` may use from now on; returns its address.
    pub(crate) fn reuse(
        &mut self,
        context: &mut dyn Context,
        size_bytes: u64,
        pool: u64,
        stream: u64,
    ) -> HipResult<Option<u64>> {
        let known = self.pool(pool)?;
        let (after_events, when_done) = (known.reuses_after_events, known.reuses_what_is_done);
        if self.idle.is_empty() {
            return Ok(None);
        }
        let (stream, is_blocking) = (number_of(context, stream), is_blocking(context, stream));
        let order = &self.order;
        let is_behind = |idle: &Idle| {
            idle.stream.is_some_and(|other| order.is_behind(stream, is_blocking, other, idle.free))
        };
        let at = self.fitting(size_bytes, pool, stream).into_iter().find(|&at| {
            self.idle.get(at).is_some_and(|idle| {
                idle.stream == Some(stream)
                    || (after_events && is_behind(idle))
                    || (when_done && idle.is_done(context))
            })
        });
        match at {
            Some(at) => self.give_out(context, at, size_bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the idle blocks that can serve an allocation: first those that the stream freed, then the shorter, then the
    /// older ones.
    fn fitting(&self, size_bytes: u64, pool: u64, stream: u64) -> Vec<usize> {
        let lengths = size_bytes..=size_bytes.saturating_mul(SLACK);
        let fits = |idle: &Idle| idle.pool == pool && lengths.contains(&idle.block_bytes);
        let fitting = self.idle.iter().enumerate().filter(|(_, idle)| fits(idle));
        let mut ranked: Vec<_> =
            fitting.map(|(at, idle)| (idle.stream != Some(stream), idle.block_bytes, at)).collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, _, at)| at).collect()
    }

    /// Turns an idle block into an allocation.
    fn give_out(&mut self, context: &mut dyn Context, at: usize, size_bytes: u64) -> HipResult<u64> {
        let Idle { pool, base, block_bytes, event, .. } = self.idle.remove(at);
        self.spare_bytes = self.spare_bytes.saturating_sub(size_bytes);
        self.live.insert(base, Live { pool, block_bytes, used_bytes: size_bytes });
        self.pool(pool)?.used.add(size_bytes);
        self.forget_order();
        context.event_destroy(event)?;
        Ok(base)
    }

    /// Allocates an idle block that `stream` may use after waiting for other work, and makes it wait.
    fn reuse_by_waiting(
        &mut self,
        context: &mut dyn Context,
        size_bytes: u64,
        pool: u64,
        stream: u64,
    ) -> HipResult<Option<u64>> {
        let waits = self.pool(pool)?.reuses_by_waiting;
        let number = number_of(context, stream);
        let Some(at) = self.fitting(size_bytes, pool, number).first().copied().filter(|_| waits) else {
            return Ok(None);
        };
        if let Some(idle) = self.idle.get(at) {
            context.stream_wait_event(stream, idle.event, 0)?;
        }
        self.give_out(context, at, size_bytes).map(Some)
    }

    /// Allocates more than 0 bytes from the device when no block can be [reused](Self::reuse) (HIP API:
    /// hipMallocFromPoolAsync).
    pub(crate) fn malloc(
        &mut self,
        context: &mut dyn Context,
        size_bytes: u64,
        pool: u64,
        stream: u64,
    ) -> HipResult<u64> {
        let known = self.pool(pool)?;
        let (device, max_size_bytes) = (known.device, known.max_size_bytes);
        if let Some(pools) = context.mem_pools() {
            let base = pools.malloc(size_bytes, pool, stream)?;
            self.live.insert(base, Live { pool, block_bytes: size_bytes, used_bytes: size_bytes });
            return Ok(base);
        }
        if max_size_bytes > 0 {
            let room = max_size_bytes.checked_sub(size_bytes).ok_or(HipError::OUT_OF_MEMORY)?;
            self.release_above(context, pool, room, true)?;
            if self.pool(pool)?.reserved.current > room {
                if let Some(base) = self.reuse_by_waiting(context, size_bytes, pool, stream)? {
                    return Ok(base);
                }
                self.release_above(context, pool, room, false)?;
                if self.pool(pool)?.reserved.current > room {
                    return Err(HipError::OUT_OF_MEMORY);
                }
            }
        }
        let base = match malloc_on(context, device, size_bytes, stream) {
            Err(HipError::OUT_OF_MEMORY) if !self.idle.is_empty() => {
                if let Some(base) = self.reuse_by_waiting(context, size_bytes, pool, stream)? {
                    return Ok(base);
                }
                self.release_idle(context)?;
                malloc_on(context, device, size_bytes, stream)?
            }
            result => result?,
        };
        self.live.insert(base, Live { pool, block_bytes: size_bytes, used_bytes: size_bytes });
        let known = self.pool(pool)?;
        known.reserved.add(size_bytes);
        known.used.add(size_bytes);
        Ok(base)
    }

    /// Frees any allocation of the session in stream order (HIP API: hipFreeAsync).
    pub(crate) fn free(&mut self, context: &mut dyn Context, base: u64, stream: u64) -> HipResult<()> {
        let keeps_pools = context.mem_pools().is_some();
        let live = self.live.get(&base).copied();
        let Some(live) = live
            .filter(|live| !keeps_pools && !context.frees_at_once() && self.pools.contains_key(&live.pool))
        else {
            context.free_async(base, stream)?;
            self.forget(base, keeps_pools);
            return Ok(());
        };
        let Live { pool, block_bytes, used_bytes } = live;
        let event = context.event_create(hipEventDisableTiming)?;
        if let Err(error) = context.event_record(event, stream) {
            return context.event_destroy(event).and(Err(error));
        }
        let (stream, is_blocking) = (number_of(context, stream), is_blocking(context, stream));
        let free = self.order.free(stream, is_blocking);
        self.live.remove(&base);
        self.idle.push(Idle { pool, base, block_bytes, stream: Some(stream), free, event });
        self.spare_bytes = self.spare_bytes.saturating_add(used_bytes);
        self.pool(pool)?.used.sub(used_bytes);
        Ok(())
    }

    /// Removes an allocation whose memory was released to the device.
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

    /// Handles that hipFree freed an allocation.
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
