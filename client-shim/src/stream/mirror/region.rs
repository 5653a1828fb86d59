//! Mirrored memory regions, and how host and device copies are brought together.

use std::collections::{BTreeMap, HashSet};

use hipr_abi::{hipHostMallocMapped, hipHostRegisterMapped};
use hipr_proto::op::MemChanges;
use hipr_proto::{HipError, HipResult};

use super::changes::apply;
use super::diff::{PAGE, WORD, changes, merge};
use super::uses::{Clock, Uses};
use super::{Origin, RegionInfo};
use crate::command::Pattern;
use crate::convert::{Event, Ptr};
use crate::worker::{Port, Release};

/// The flag of pinned or registered memory that kernels can access, at a device address of its own.
const MAPPED: u32 = hipHostMallocMapped;
const _: () = assert!(hipHostMallocMapped == hipHostRegisterMapped);

#[derive(Debug)]
pub(super) struct Region {
    pub(super) info: RegionInfo,
    /// Address on the worker; None until it is needed.
    pub(super) remote: Option<u64>,
    pub(super) release: Option<Release>,
    /// Whether both sides map the same memory, so that there is nothing to bring together.
    pub(super) is_shared: bool,
    /// Whether this library mapped the region's pages, which then have to be unmapped.
    pub(super) mapped: bool,
    /// The twin: the contents on which both sides last agreed; None while only the host uses the memory.
    pub(super) twin: Option<Vec<u8>>,
    /// Whether the device cannot have written to the region yet.
    pub(super) is_fresh: bool,
    /// Whether the worker tells what changes in the region; without that, all of it is fetched.
    pub(super) is_watched: bool,
}

impl Region {
    /// Creates a region that only the host uses so far.
    pub(super) fn new(info: RegionInfo, remote: Option<u64>, release: Option<Release>, mapped: bool) -> Self {
        let (is_shared, twin, is_fresh, is_watched) = (false, None, false, false);
        Self { info, remote, release, is_shared, mapped, twin, is_fresh, is_watched }
    }

    /// Returns whether the region has to be made available to kernels although no argument names it, because they can reach it.
    fn is_known_to_kernels(&self) -> bool {
        match self.info.origin {
            _ if self.is_shared => false,
            Origin::Managed => true,
            Origin::Pinned | Origin::Registered => self.info.flags & MAPPED != 0,
        }
    }

    fn contains(&self, address: usize) -> bool {
        (self.info.host.0..self.info.host.0 + self.info.len).contains(&address)
    }
}

#[derive(Debug, Default)]
pub(super) struct Regions {
    pub(super) by_host: BTreeMap<usize, Region>,
    /// Regions by device address, where it differs from the host address.
    pub(super) by_remote: BTreeMap<u64, usize>,
    /// Work that may be writing to the regions.
    pub(super) uses: Uses,
    /// Uses that an answer to something else was behind, so that they are over, since memory was fetched last.
    pub(super) unfetched: Option<Clock>,
    /// The stream on which changes were sent last; further streams that already follow them are in `ordered`.
    pub(super) pushed_on: Option<u64>,
    /// Number of pushes.
    pub(super) pushes: u64,
    pub(super) ordered: HashSet<u64>,
    /// Event that orders streams behind a push; created when first needed.
    pub(super) event: Option<Event>,
    /// Stream on which changes are fetched; created when first needed.
    pub(super) pull_stream: Option<u64>,
}

impl Regions {
    /// Returns the region that contains `ptr`, a host or a device address, and the offset in it.
    pub(super) fn find(&self, ptr: Ptr) -> Option<(&Region, usize)> {
        if let Some(found) = self.find_host(ptr.0) {
            return Some(found);
        }
        let (remote, host) = self.by_remote.range(..=ptr.wire()).next_back()?;
        let region = self.by_host.get(host)?;
        let offset = usize::try_from(ptr.wire() - remote).ok()?;
        (offset < region.info.len).then_some((region, offset))
    }

    pub(super) fn find_host(&self, address: usize) -> Option<(&Region, usize)> {
        let (base, region) = self.by_host.range(..=address).next_back()?;
        region.contains(address).then_some((region, address - base))
    }

    /// Returns the device address of a region, allocating it if it has none.
    pub(super) fn remote(&mut self, port: &dyn Port, base: usize) -> HipResult<u64> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if let Some(remote) = region.remote {
            return Ok(remote);
        }
        let remote = port.allocate(region.info.len)?;
        region.remote = Some(remote);
        region.release = Some(Release::Device(remote));
        self.by_remote.insert(remote, base);
        Ok(remote)
    }

    /// Makes a region available to the device: both sides begin with zeros, and the host's contents count as a change.
    pub(super) fn expose(&mut self, port: &dyn Port, base: usize, stream: u64) -> HipResult<()> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if region.twin.is_some() || region.is_shared {
            return Ok(());
        }
        let Some(remote) = region.remote else { return Err(HipError::INVALID_VALUE) };
        let len = region.info.len;
        region.twin = Some(vec![0; len]);
        region.is_fresh = true;
        region.is_watched = port.tells_changes();
        if region.is_watched {
            // Before the zeros, so that whatever is there once they are is told.
            port.watch(remote, len)?;
        }
        self.order(port, stream)?;
        port.fill(remote, Pattern::Byte(0), len, stream)?;
        self.pushed(stream);
        Ok(())
    }

    /// Makes the region that contains an address available to the device. Returns the device address; None if no region
    /// contains it.
    pub(super) fn tell(&mut self, port: &dyn Port, address: u64, stream: u64) -> HipResult<Option<u64>> {
        let Some((region, offset)) = self.find(Ptr::from_wire(address)) else { return Ok(None) };
        let base = region.info.host.0;
        let remote = self.remote(port, base)?;
        self.expose(port, base, stream)?;
        Ok(Some(remote + offset as u64))
    }

    /// Makes the regions that kernels can reach without an argument available to the device.
    pub(super) fn expose_known(&mut self, port: &dyn Port, stream: u64) -> HipResult<()> {
        let hidden = |region: &Region| region.twin.is_none() && region.is_known_to_kernels();
        let bases: Vec<usize> =
            self.by_host.iter().filter(|(_, region)| hidden(region)).map(|(base, _)| *base).collect();
        for base in bases {
            self.remote(port, base)?;
            self.expose(port, base, stream)?;
        }
        Ok(())
    }

    /// Returns the address range that contains all regions not yet available to the device; None if there are none.
    pub(super) fn hidden_range(&self) -> Option<(usize, usize)> {
        let hidden = || self.by_host.values().filter(|region| region.twin.is_none() && !region.is_shared);
        let start = hidden().map(|region| region.info.host.0).min()?;
        let end = hidden().map(|region| region.info.host.0 + region.info.len).max()?;
        Some((start, end))
    }

    /// Sends what the program wrote to the regions, before the next work on a stream. So many of the announced uses are the caller's own.
    pub(super) fn bring(&mut self, port: &dyn Port, stream: u64, own: usize) -> HipResult<()> {
        // First, because changes that leave on this stream may be of what another one still has to zero or to receive.
        self.order(port, stream)?;
        self.push(port, stream, own)
    }

    /// Forgets all uses and pushes, because the memory or the streams no longer exist.
    pub(super) fn forget_work(&mut self) {
        self.uses.clear();
        self.unfetched = None;
        self.pushed_on = None;
        self.ordered.clear();
    }

    /// Notes that changes were sent on `stream`, behind all earlier ones, or that something there has to come before all later ones: see
    /// [`order`](Self::order).
    pub(super) fn pushed(&mut self, stream: u64) {
        self.pushed_on = Some(stream);
        self.pushes += 1;
        self.ordered.clear();
        self.ordered.insert(stream);
    }

    /// Makes `stream` wait for changes that were sent on another stream.
    pub(super) fn order(&mut self, port: &dyn Port, stream: u64) -> HipResult<()> {
        let Some(other) = self.pushed_on.filter(|_| !self.ordered.contains(&stream)) else { return Ok(()) };
        let event = match self.event {
            Some(event) => event,
            None => *self.event.insert(port.create_event()?),
        };
        port.record(event, other, false)?;
        port.await_event(event, stream, 0)?;
        self.ordered.insert(stream);
        Ok(())
    }

    /// Sends what the program wrote to the regions.
    fn push(&mut self, port: &dyn Port, stream: u64, own: usize) -> HipResult<()> {
        let is_idle = self.uses.are_over_but_for(own);
        let mut sent = false;
        for region in self.by_host.values_mut() {
            let (Some(twin), Some(remote)) = (&mut region.twin, region.remote) else { continue };
            // While the device cannot have written, it has what the twin has, and whole pages may go.
            let unit = if is_idle || region.is_fresh { PAGE } else { WORD };
            region.is_fresh = false;
            changes(port, region.info.host, twin, unit, |offset, bytes| {
                sent = true;
                port.write(remote + offset as u64, region.info.host.offset(offset), bytes, stream)
            })?;
        }
        if sent {
            self.pushed(stream);
        }
        Ok(())
    }

    /// Fetches what the device wrote to the regions, and forgets the uses that are over, by this clock and by what was noted.
    pub(super) fn fetch(&mut self, port: &dyn Port, clock: &Clock) -> HipResult<()> {
        self.pull(port)?;
        self.uses.finish(clock);
        if let Some(clock) = self.unfetched.take() {
            self.uses.finish(&clock);
        }
        Ok(())
    }

    /// Fetches what the device wrote to the regions: what has changed in those where the worker tells it, all of the others.
    pub(super) fn pull(&mut self, port: &dyn Port) -> HipResult<()> {
        if self.by_host.values().all(|region| region.twin.is_none()) {
            return Ok(());
        }
        let stream = match self.pull_stream {
            Some(stream) => stream,
            // Of its own and not blocking, so that it waits for nothing but what was sent: the rest of what matters is done.
            None => *self.pull_stream.insert(port.create_stream()?),
        };
        // What the twins have and the device does not would be taken for changes that the device made.
        self.order(port, stream)?;
        self.pull_changes(port, stream)?;
        let mut regions: Vec<_> = self.by_host.values_mut().filter(|region| !region.is_watched).collect();
        regions.retain(|region| region.twin.is_some());
        let ranges: Vec<_> =
            regions.iter().filter_map(|region| Some((region.remote?, region.info.len))).collect();
        if ranges.is_empty() {
            return Ok(());
        }
        let copies = port.fetch(&ranges, stream)?;
        for (region, copy) in regions.into_iter().zip(&copies) {
            let Some(twin) = &mut region.twin else { continue };
            merge(port, region.info.host, twin, copy);
        }
        Ok(())
    }

    /// Fetches the changed pages of the regions of which the worker tells them. Those of which it can tell nothing any more are
    /// not watched afterwards.
    ///
    /// # Errors
    /// The first of what the worker answers. What it has told of other regions it does not tell again, so that is there nevertheless.
    fn pull_changes(&mut self, port: &dyn Port, stream: u64) -> HipResult<()> {
        let watched = |region: &Region| region.is_watched && region.twin.is_some();
        // The begins of regions on both sides, and how much of each has been told.
        let mut open: Vec<(usize, MemChanges)> = Vec::new();
        for region in self.by_host.values().filter(|region| watched(region)) {
            let Some(address) = region.remote else { continue };
            open.push((region.info.host.0, MemChanges { address, length: region.info.len as u64, stream }));
        }
        let mut result = Ok(());
        while !open.is_empty() {
            let requests: Vec<MemChanges> = open.iter().map(|(_, request)| *request).collect();
            let answers = port.changes(&requests)?;
            let mut left = Vec::new();
            for ((base, request), answer) in open.into_iter().zip(answers) {
                let Some(region) = self.by_host.get_mut(&base) else { continue };
                let told = region.info.len - request.length as usize;
                let Some(twin) = region.twin.as_mut().and_then(|twin| twin.get_mut(told..)) else { continue };
                match apply(port, region.info.host.offset(told), twin, &request, answer) {
                    Ok(Some(more)) if more as u64 == request.length => {}
                    Ok(Some(more)) => {
                        let (address, length) = (request.address + more as u64, request.length - more as u64);
                        left.push((base, MemChanges { address, length, stream }));
                    }
                    Ok(None) => region.is_watched = false,
                    Err(error) => result = result.and(Err(error)),
                }
            }
            open = left;
        }
        result
    }
}
