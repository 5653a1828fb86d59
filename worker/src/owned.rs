//! The resources that one session owns: its context on the device, and its handles and addresses.
//!
//! Everything here is checked before a device sees it (HIPR 1.0, rule 7): a handle that is not in these tables is
//! `INVALID_HANDLE`, an address that is not inside an allocation is `INVALID_VALUE`.

mod given;
mod graphs;
mod handles;
mod launches;
mod lease;
mod limits;
mod mappings;
mod modules;
mod names;
mod pools;
mod queried;
mod recall;
mod settings;
mod times;
mod told;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hipr_proto::op::Handle;
use hipr_proto::{Features, HipError, HipResult, Lease};

use hipr_device::{Context, Device, FunctionInfo, MemoryKind, Region, Share, Waker};

use self::given::Given;
pub(crate) use self::graphs::{GraphTables, KernelNode, NodeWork};
use self::handles::{HandleSet, HandleTable};
use self::launches::Launches;
use self::mappings::Mappings;
pub(crate) use self::mappings::Remap;
use self::modules::Module;
use self::names::Names;
pub(crate) use self::names::Unfit;
use self::pools::Pools;
use self::queried::Queried;
use self::recall::Recall;
pub(crate) use self::recall::Sought;
use self::settings::Settings;
pub(crate) use self::times::AskedTimes;
use self::told::Told;
pub(crate) use self::watches::{Difference, Watch, Watches};
use crate::cache::Tenant;

/// The last stream handle that exists without being created: two of the null stream and one of the per-thread stream.
const STREAM_PREDEFINED_MAX: u64 = hipr_abi::hipStreamPerThread as u64;

/// Number of requests for which the device is not asked whether it has room: asking takes a tenth of a short one.
const UNASKED: u32 = 7;

/// The origin of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The client allocated it and may free it.
    Client,
    /// A variable of a module.
    Module(u64),
    /// Host memory in place of registered memory of the client's process.
    Registered,
    /// Memory of another session, opened by this one.
    Opened,
    /// An accessible mapping of physical memory.
    Mapped,
}

/// A range of memory that the session may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocation {
    pub(crate) base: u64,
    pub(crate) size_bytes: u64,
    pub(crate) kind: MemoryKind,
    pub(crate) flags: u32,
    pub(crate) device: i32,
    pub(crate) origin: Origin,
}

impl Allocation {
    /// Returns the bytes that count against the session's limit; a module's variables count with the module, and what is mapped as
    /// physical memory.
    fn counted_bytes(&self) -> u64 {
        if matches!(self.origin, Origin::Module(_) | Origin::Mapped) { 0 } else { self.size_bytes }
    }
}

/// A kernel whose handle the client has.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) info: FunctionInfo,
}

/// The resources that a session owns. Its context is opened when it is first needed, so that a connection that only says hello
/// costs nothing on the device.
#[derive(Default)]
pub(crate) struct Owned {
    context: Option<Box<dyn Context>>,
    /// Where the time is counted that the session's work has had on the device.
    pub(crate) device_ns: Option<Arc<AtomicU64>>,
    /// Whether the context may be lent to another thread, to load modules and to be released.
    pub(crate) loads_apart: bool,
    allocations: BTreeMap<u64, Allocation>,
    streams: HandleSet,
    events: HandleSet,
    modules: BTreeMap<u64, Module>,
    /// Number of the allocations that are variables of which the client is told with the module.
    uncounted: usize,
    functions: HandleTable<Function>,
    pools: Pools,
    /// Physical memory, reserved addresses and mappings.
    pub(crate) mappings: Mappings,
    /// Registered memory of the client's process: its address there, with its length and its address here.
    registered: BTreeMap<u64, (u64, u64)>,
    staged: BTreeMap<u64, usize>,
    staged_bytes: usize,
    /// Bytes of the session's allocations and modules.
    memory_bytes: u64,
    /// The bytes that running kernels may have for their workgroups, as the context was told.
    working_max: Option<u64>,
    /// Number of requests before the device is asked again whether it has room.
    unasked: u32,
    /// Names of the limits that have been reached.
    refused: BTreeSet<&'static str>,
    /// The graphs and captures.
    pub(crate) graphs: GraphTables,
    /// What the client knows of memory on both sides.
    pub(crate) watches: Watches,
    /// Whose chunks the session finds in the cache of uploads, and those that it was promised.
    pub(crate) tenant: Tenant,
    /// The settings of the device.
    pub(crate) settings: Settings,
    /// The features that the session has; `None` until the client offers some.
    pub(crate) features: Option<Features>,
    /// Which part of the device's addresses the session has, and how many parts there are; `None` for all of them.
    pub(crate) part: Option<(u32, u32)>,
    /// The numbers that stand for objects in place of the device's handles.
    pub(crate) names: Names,
    /// The account of the memory that the client may place, and of what it has placed. The context has the unused bytes reserved, except
    /// `withdrawn_bytes`.
    pub(crate) lease: Lease,
    /// Unused bytes of the lease that the worker has taken back without the client knowing, as it had no connection when they were recalled.
    pub(crate) withdrawn_bytes: u64,
    /// The device of the lease; `None` before there is one.
    pub(crate) lease_device: Option<i32>,
    /// Whether the client can be passed descriptors.
    pub(crate) takes_descriptors: bool,
    /// Whether there is memory that client and device have in common.
    pub(crate) shares: bool,
    /// The descriptor that is to be passed to the client ahead of what is sent next.
    pub(crate) passing: Option<OwnedFd>,
    /// What the client was asked to give back of its lease.
    pub(crate) recall: Recall,
    /// What the client was told of free memory, until it is told that this no longer holds.
    pub(crate) told: Option<Told>,
    /// Of which streams and events the client is told when they are done.
    pub(crate) queried: Queried,
    /// Between which events the client is told the times with the next reply.
    pub(crate) asked_times: Option<AskedTimes>,
    /// Whether the client has asked for the list of static replies.
    pub(crate) has_listed: bool,
    /// Which request launches belong to.
    pub(crate) launches: Launches,
    /// For which memory the session has given capabilities.
    pub(crate) given: Given,
}

impl Owned {
    /// Creates the resources of a session that owns nothing.
    pub(crate) fn new(takes_descriptors: bool) -> Self {
        Self { takes_descriptors, ..Self::default() }
    }

    /// Creates what a session owns that has nothing but graphs.
    pub(crate) fn with_graphs(graphs: GraphTables) -> Self {
        Self { graphs, ..Self::default() }
    }

    /// Returns whether the client is told which launch an error comes from.
    pub(crate) fn tells_work(&self) -> bool {
        self.features.is_some_and(|features| features.contains(Features::WORK_ERRORS))
    }

    /// Opens the context if it is not open.
    pub(crate) fn open(
        &mut self,
        device: &dyn Device,
        share: Option<Share>,
        waker: impl FnOnce() -> Waker,
    ) -> HipResult<()> {
        if self.context.is_none() {
            let mut context = device.open(waker())?;
            if let Some(share) = share {
                context.set_share(share);
            }
            if let Some((number, parts)) = self.part {
                context.keep_apart(number, parts);
            }
            self.device_ns = context.device_ns();
            self.context = Some(context);
            self.loads_apart = device.loads_apart();
            if !device.tells_failures() && self.tells_work() {
                self.launches.note();
            }
        }
        Ok(())
    }

    /// Returns the context; fails with `NOT_INITIALIZED` before [`Owned::open`].
    pub(crate) fn context(&mut self) -> HipResult<&mut dyn Context> {
        self.context
            .as_deref_mut()
            .ok_or(HipError::NOT_INITIALIZED)
            .map(|context| context as &mut dyn Context)
    }

    /// Takes the context, to lend it to another thread; [`Owned::take_back`] has to follow before anything else needs it.
    pub(crate) fn lend_context(&mut self) -> HipResult<Box<dyn Context>> {
        self.context.take().ok_or(HipError::NOT_INITIALIZED)
    }

    /// Takes the context back.
    pub(crate) fn take_back(&mut self, context: Box<dyn Context>) {
        self.context = Some(context);
    }

    /// Returns the context for queries.
    pub(crate) fn context_ref(&self) -> HipResult<&dyn Context> {
        self.context.as_deref().ok_or(HipError::NOT_INITIALIZED).map(|context| context as &dyn Context)
    }

    /// Removes all handles and addresses, which the context has released.
    pub(crate) fn clear(&mut self) {
        let (context, refused) = (self.context.take(), std::mem::take(&mut self.refused));
        let recall = std::mem::take(&mut self.recall);
        let mut names = std::mem::take(&mut self.names);
        names.clear();
        let mut launches = std::mem::take(&mut self.launches);
        launches.clear();
        let device_ns = self.device_ns.take();
        *self = Self {
            context,
            device_ns,
            refused,
            names,
            recall,
            launches,
            loads_apart: self.loads_apart,
            features: self.features,
            part: self.part,
            takes_descriptors: self.takes_descriptors,
            has_listed: self.has_listed,
            ..Self::default()
        };
    }

    // ---- memory ------------------------------------------------------------------------------------------------------

    /// Adds an allocation of the session.
    pub(crate) fn add_allocation(&mut self, allocation: Allocation) {
        self.memory_bytes = self.memory_bytes.saturating_add(allocation.counted_bytes());
        self.given.handle_new(&allocation);
        let replaced = self.allocations.insert(allocation.base, allocation);
        if replaced.is_none() {
            self.watches.remove(allocation.base);
        }
        self.uncount(replaced);
    }

    fn uncount(&mut self, gone: Option<Allocation>) {
        self.memory_bytes = self.memory_bytes.saturating_sub(gone.map_or(0, |gone| gone.counted_bytes()));
    }

    /// Adds a module's variable; of several at one address, the largest counts.
    pub(crate) fn add_global(&mut self, module: u64, base: u64, size_bytes: u64) -> HipResult<()> {
        let device = self.context_ref()?.device();
        let known = self.allocations.get(&base).map_or(0, |known| known.size_bytes);
        if known < size_bytes {
            let origin = Origin::Module(module);
            let kind = MemoryKind::Device;
            self.add_allocation(Allocation { base, size_bytes, kind, flags: 0, device, origin });
        }
        Ok(())
    }

    /// Returns the allocation that contains an address.
    pub(crate) fn allocation_at(&self, ptr: u64) -> HipResult<&Allocation> {
        let (base, allocation) = self.allocations.range(..=ptr).next_back().ok_or(HipError::INVALID_VALUE)?;
        if ptr - base < allocation.size_bytes { Ok(allocation) } else { Err(HipError::INVALID_VALUE) }
    }

    /// Returns the allocation that starts at an address and may be freed by the client.
    pub(crate) fn freeable(&self, ptr: u64) -> HipResult<&Allocation> {
        let found = self.allocations.get(&ptr).filter(|allocation| allocation.origin == Origin::Client);
        found.ok_or(HipError::INVALID_VALUE)
    }

    /// Removes an allocation that the device has freed.
    pub(crate) fn remove_allocation(&mut self, ptr: u64) {
        self.watches.remove(ptr);
        self.lease.free(ptr);
        let gone = self.allocations.remove(&ptr);
        if gone.is_some_and(|gone| gone.origin == Origin::Registered) {
            self.registered.retain(|_, (_, base)| *base != ptr);
        }
        self.uncount(gone);
        if let Ok((pools, context)) = self.pools() {
            pools.freed(context, ptr);
        }
    }

    /// Returns the pools and the context that they allocate from.
    pub(crate) fn pools(&mut self) -> HipResult<(&mut Pools, &mut dyn Context)> {
        let context = self.context.as_deref_mut().ok_or(HipError::NOT_INITIALIZED)?;
        Ok((&mut self.pools, context))
    }

    /// Frees an allocation in stream order.
    pub(crate) fn free_async(&mut self, ptr: u64, stream: u64) -> HipResult<()> {
        let (pools, context) = self.pools()?;
        pools.free(context, ptr, stream)?;
        self.lease.free_async(ptr);
        self.watches.remove(ptr);
        let gone = self.allocations.remove(&ptr);
        self.uncount(gone);
        Ok(())
    }

    /// Records an event of the session.
    pub(crate) fn record_event(&mut self, event: u64, stream: u64) -> HipResult<()> {
        let (pools, context) = self.pools()?;
        context.event_record(event, stream)?;
        pools.event_recorded(context, event, stream);
        Ok(())
    }

    /// Makes later work of a stream wait for an event of the session.
    pub(crate) fn wait_event(&mut self, stream: u64, event: u64, flags: u32) -> HipResult<()> {
        let (pools, context) = self.pools()?;
        context.stream_wait_event(stream, event, flags)?;
        pools.event_waited(context, stream, event);
        Ok(())
    }

    /// Handles that a stream, an event or the device was synchronized.
    pub(crate) fn synchronized(&mut self) -> HipResult<()> {
        let (pools, context) = self.pools()?;
        pools.synchronized(context)
    }

    /// Returns the pool of an allocation, as the client knows it; 0 for none.
    pub(crate) fn pool_of(&mut self, base: u64) -> u64 {
        self.pools.pool_of(base).map_or(0, |pool| self.names.number_of(Handle::Pool, pool))
    }

    /// Returns the address here of the byte at `host_ptr` in the client's process, if that is registered.
    pub(crate) fn registered_at(&self, host_ptr: u64) -> Option<u64> {
        let (start, &(size_bytes, base)) = self.registered.range(..=host_ptr).next_back()?;
        let offset = host_ptr - start;
        (offset < size_bytes).then(|| base + offset)
    }

    /// Returns whether any of these bytes (more than 0) of the client's process is registered.
    pub(crate) fn is_registered(&self, host_ptr: u64, size_bytes: u64) -> bool {
        let last = host_ptr.saturating_add(size_bytes - 1);
        let before = self.registered.range(..=last).next_back();
        before.is_some_and(|(start, &(size_bytes, _))| start + (size_bytes - 1) >= host_ptr)
    }

    /// Registers memory of the client's process, for which the allocation at `base` stands.
    pub(crate) fn register(&mut self, host_ptr: u64, size_bytes: u64, base: u64) {
        self.registered.insert(host_ptr, (size_bytes, base));
    }

    /// Returns the allocation for the memory that was registered at this address; it stands for it until it is freed.
    pub(crate) fn registered_from(&self, host_ptr: u64) -> Option<u64> {
        self.registered.get(&host_ptr).map(|&(_, base)| base)
    }

    /// Checks that a region lies in one allocation, or in accessible mappings that follow each other. An empty one may lie anywhere.
    pub(crate) fn check_region(&self, region: &Region) -> HipResult<()> {
        let span = region.span_bytes().ok_or(HipError::INVALID_VALUE)?;
        if span == 0 {
            return Ok(());
        }
        let allocation = self.allocation_at(region.ptr)?;
        let offset = region.ptr - allocation.base;
        let mut left_bytes = allocation.size_bytes - offset;
        if allocation.origin == Origin::Mapped {
            let mut end = allocation.base + allocation.size_bytes;
            while left_bytes < span
                && let Some(next) = self.allocations.get(&end).filter(|next| next.origin == Origin::Mapped)
            {
                left_bytes += next.size_bytes;
                end += next.size_bytes;
            }
        }
        if span <= left_bytes { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }

    // ---- handles -----------------------------------------------------------------------------------------------------

    /// Returns the number of handles and allocations.
    pub(crate) fn handles(&self) -> usize {
        // What the client is told of a module comes with it, so that it has no fewer handles for what it asks for.
        let memory = self.allocations.len().saturating_sub(self.uncounted);
        let modules = self.modules.len() + self.functions.len();
        let (pools, graphs) = (self.pools.len(), self.graphs.weight());
        let memory = memory + self.mappings.len();
        memory + modules + self.streams.len() + self.events.len() + pools + graphs
    }

    /// Returns whether releasing all of it may take longer than a turn.
    pub(crate) fn is_long(&self) -> bool {
        /// Number of handles, each of which takes some microseconds.
        const HANDLES: usize = 1024;
        /// Bytes of code objects, from which more is made.
        const CODE_BYTES: u64 = 1 << 20;
        self.handles() >= HANDLES
            || self.modules.values().map(|module| module.size_bytes).sum::<u64>() >= CODE_BYTES
    }

    /// Checks that a stream exists.
    pub(crate) fn check_stream(&self, stream: u64) -> HipResult<()> {
        if stream <= STREAM_PREDEFINED_MAX { Ok(()) } else { self.check_own_stream(stream) }
    }

    /// Checks that a stream was created by the client.
    pub(crate) fn check_own_stream(&self, stream: u64) -> HipResult<()> {
        if self.streams.contains(&stream) { Ok(()) } else { Err(HipError::INVALID_HANDLE) }
    }

    /// Adds a stream; returns the number by which the client knows it.
    pub(crate) fn add_stream(&mut self, stream: u64) -> u64 {
        self.streams.insert(stream);
        self.names.made(Handle::Stream, stream)
    }

    /// Removes a stream.
    pub(crate) fn remove_stream(&mut self, stream: u64) {
        self.streams.remove(&stream);
        self.names.forget(Handle::Stream, stream);
        self.unstage(Some(stream));
    }

    /// Checks that an event exists.
    pub(crate) fn check_event(&self, event: u64) -> HipResult<()> {
        if self.events.contains(&event) { Ok(()) } else { Err(HipError::INVALID_HANDLE) }
    }

    /// Adds an event; returns the number by which the client knows it.
    pub(crate) fn add_event(&mut self, event: u64) -> u64 {
        self.events.insert(event);
        self.names.made(Handle::Event, event)
    }

    /// Removes an event.
    pub(crate) fn remove_event(&mut self, event: u64) {
        self.events.remove(&event);
        self.names.forget(Handle::Event, event);
        self.pools.forget_event(event);
    }

    /// Checks that a pool exists.
    pub(crate) fn check_pool(&self, pool: u64) -> HipResult<()> {
        if self.pools.contains(pool) { Ok(()) } else { Err(HipError::INVALID_HANDLE) }
    }

    /// Adds a function of a module; returns the number by which the client knows it.
    pub(crate) fn add_function(&mut self, module: u64, info: FunctionInfo) -> u64 {
        let handle = info.handle;
        self.functions.insert(handle, Function { module, info });
        self.names.made(Handle::Function, handle)
    }

    /// Returns the function with this handle.
    pub(crate) fn function(&self, function: u64) -> HipResult<&Function> {
        self.functions.get(function).ok_or(HipError::INVALID_HANDLE)
    }

    // ---- staged bytes ------------------------------------------------------------------------------------------------

    /// Returns the bytes that were enqueued to be written and that the device may still hold.
    pub(crate) fn staged_bytes(&self) -> usize {
        self.staged_bytes
    }

    /// Adds bytes that were enqueued on a stream to be written.
    pub(crate) fn stage(&mut self, stream: u64, len_bytes: usize) {
        *self.staged.entry(stream).or_default() += len_bytes;
        self.staged_bytes += len_bytes;
    }

    /// Handles that a stream, or (`None`) the whole device, is idle: it holds no enqueued bytes.
    pub(crate) fn unstage(&mut self, stream: Option<u64>) {
        match stream {
            Some(stream) => self.staged_bytes -= self.staged.remove(&stream).unwrap_or(0),
            None => {
                self.staged.clear();
                self.staged_bytes = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(ranges: &[(u64, u64)]) -> Owned {
        let mut owned = Owned::default();
        for &(base, size_bytes) in ranges {
            let (kind, origin) = (MemoryKind::Device, Origin::Client);
            owned.add_allocation(Allocation { base, size_bytes, kind, flags: 0, device: 0, origin });
        }
        owned
    }

    #[test]
    fn a_region_lies_in_one_allocation_or_nowhere() {
        let owned = owned(&[(0x1000, 0x100), (0x1100, 0x100)]);
        let check = |region| owned.check_region(&region);
        assert_eq!(check(Region::flat(0x1000, 0x100)), Ok(()));
        assert_eq!(check(Region::flat(0x10ff, 1)), Ok(()));
        assert_eq!(check(Region::flat(0x5000, 0)), Ok(()));
        for (ptr, len) in
            [(0xfff, 1), (0x10ff, 2), (0x1000, 0x200), (0x1200, 1), (0x1000, u64::MAX), (u64::MAX, 2)]
        {
            assert_eq!(check(Region::flat(ptr, len)), Err(HipError::INVALID_VALUE), "{ptr:#x} {len:#x}");
        }
        let rows = Region { ptr: 0x1000, pitch: 0x40, slice: 0x80, width: 0x20, height: 2, depth: 2 };
        assert_eq!(check(rows), Ok(()));
        assert_eq!(check(Region { width: 0x41, ..rows }), Err(HipError::INVALID_VALUE));
        assert_eq!(check(Region { depth: 3, ..rows }), Err(HipError::INVALID_VALUE));
        assert_eq!(check(Region { pitch: u64::MAX, ..rows }), Err(HipError::INVALID_VALUE));
        assert_eq!(check(Region { slice: u64::MAX / 2, depth: 3, ..rows }), Err(HipError::INVALID_VALUE));
        assert_eq!(owned.handles(), 2);
    }

    #[test]
    fn a_module_takes_its_variables_and_functions_along() {
        let mut owned = owned(&[(0x1000, 0x100)]);
        owned.add_module(7, 0x40);
        let origin = Origin::Module(7);
        let global = Allocation {
            base: 0x8000,
            size_bytes: 16,
            kind: MemoryKind::Device,
            flags: 0,
            device: 0,
            origin,
        };
        owned.add_allocation(global);
        assert_eq!(owned.memory_bytes(), 0x140, "a variable is part of its module");
        owned.add_function(7, FunctionInfo { handle: 70, kernarg_size_bytes: 8, params: None });
        assert_eq!(owned.freeable(0x8000), Err(HipError::INVALID_VALUE), "a variable cannot be freed");
        assert_eq!(owned.freeable(0x1008), Err(HipError::INVALID_VALUE), "nor the middle of an allocation");
        assert!(owned.freeable(0x1000).is_ok() && owned.function(70).is_ok());
        owned.remove_module(7);
        assert_eq!(owned.check_region(&Region::flat(0x8000, 16)), Err(HipError::INVALID_VALUE));
        assert_eq!(owned.function(70).map(|_| ()), Err(HipError::INVALID_HANDLE));
        assert_eq!(owned.check_module(7), Err(HipError::INVALID_HANDLE));
        assert_eq!(owned.check_region(&Region::flat(0x1000, 0x100)), Ok(()));
        assert_eq!(owned.memory_bytes(), 0x100);
        owned.remove_allocation(0x1000);
        assert_eq!(owned.memory_bytes(), 0);
    }

    #[test]
    fn staged_bytes_are_counted_by_stream() {
        let mut owned = Owned::default();
        owned.stage(0, 10);
        owned.stage(9, 20);
        owned.unstage(Some(0));
        assert_eq!(owned.staged_bytes(), 20);
        owned.unstage(Some(3));
        owned.unstage(None);
        assert_eq!(owned.staged_bytes(), 0);
    }
}
