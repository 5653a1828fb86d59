//! The memory that exists on both sides, and how the two are brought together.

use std::collections::{BTreeMap, HashSet};

use hipr_proto::op::{self, kind};
use hipr_proto::{HipError, HipResult};

use super::diff::{PAGE, WORD, changes, merge};
use super::uses::Uses;
use super::{Origin, RegionInfo};
use crate::client::{Extra, Rows};
use crate::convert::Ptr;
use crate::session::Session;

/// `hipHostMallocMapped`, `hipHostRegisterMapped`.
const MAPPED: u32 = 2;

/// Memory on the worker that has to be given back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Release {
    /// `FREE`.
    Device(u64),
    /// `FREE_HOST`.
    Host(u64),
}

#[derive(Debug)]
pub(super) struct Region {
    pub(super) info: RegionInfo,
    /// Address on the worker; None before it is needed.
    pub(super) remote: Option<u64>,
    pub(super) release: Option<Release>,
    /// Pages to be unmapped in the end.
    pub(super) mapped: bool,
    /// What both sides last agreed on; None as long as only the host uses the memory.
    pub(super) twin: Option<Vec<u8>>,
    /// Whether the device cannot have written to it yet.
    pub(super) is_fresh: bool,
}

impl Region {
    /// Memory that only the host uses, for the time being.
    pub(super) fn new(info: RegionInfo, remote: Option<u64>, release: Option<Release>, mapped: bool) -> Self {
        Self { info, remote, release, mapped, twin: None, is_fresh: false }
    }

    /// Whether kernels can know of it although no argument names it.
    fn is_known_to_kernels(&self) -> bool {
        match self.info.origin {
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
    /// Device address to host address, where they differ.
    pub(super) by_remote: BTreeMap<u64, usize>,
    /// Work that may be writing to the memory.
    pub(super) uses: Uses,
    /// The stream on which changes left last, and the streams that have to come after it no more.
    pub(super) pushed_on: Option<u64>,
    /// How often changes left.
    pub(super) pushes: u64,
    pub(super) ordered: HashSet<u64>,
    /// Orders streams after a push; made when first needed.
    pub(super) event: Option<u64>,
    /// The stream on which changes are fetched; made when first needed.
    pub(super) pull_stream: Option<u64>,
}

/// Gives memory on the worker back.
pub(super) fn free(session: &Session, release: Release) -> HipResult<()> {
    match release {
        Release::Device(device_ptr) => session.tell(&op::Free { device_ptr }),
        Release::Host(device_ptr) => session.tell(&op::FreeHost { device_ptr }),
    }
}

impl Regions {
    /// The region that `ptr`, a host or a device address, is in, and the offset in it.
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

    /// The device address of a region, which gets one if it has none.
    pub(super) fn remote(&mut self, session: &Session, base: usize) -> HipResult<u64> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if let Some(remote) = region.remote {
            return Ok(remote);
        }
        let remote = session.ask(&op::Malloc { size: region.info.len as u64, flags: 0 })?.device_ptr;
        region.remote = Some(remote);
        region.release = Some(Release::Device(remote));
        self.by_remote.insert(remote, base);
        Ok(remote)
    }

    /// From now on the device may use a region: both sides begin with zeros, and what the host has is a change.
    pub(super) fn expose(&mut self, session: &Session, base: usize, stream: u64) -> HipResult<()> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if region.twin.is_some() {
            return Ok(());
        }
        let Some(remote) = region.remote else { return Err(HipError::INVALID_VALUE) };
        let len = region.info.len;
        region.twin = Some(vec![0; len]);
        region.is_fresh = true;
        self.order(session, stream)?;
        session.tell(&op::MemsetAsync(op::Memset { dst: remote, value: 0, size: len as u64, stream }))?;
        self.pushed(stream);
        Ok(())
    }

    /// The device is told an address: what it is in is exposed. The address as the device has it; None for one that is in no
    /// region.
    pub(super) fn tell(&mut self, session: &Session, address: u64, stream: u64) -> HipResult<Option<u64>> {
        let Some((region, offset)) = self.find(Ptr::from_wire(address)) else { return Ok(None) };
        let base = region.info.host.0;
        let remote = self.remote(session, base)?;
        self.expose(session, base, stream)?;
        Ok(Some(remote + offset as u64))
    }

    /// Exposes what kernels know of anyway.
    pub(super) fn expose_known(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        let hidden = |region: &Region| region.twin.is_none() && region.is_known_to_kernels();
        let bases: Vec<usize> =
            self.by_host.iter().filter(|(_, region)| hidden(region)).map(|(base, _)| *base).collect();
        for base in bases {
            self.remote(session, base)?;
            self.expose(session, base, stream)?;
        }
        Ok(())
    }

    /// The addresses between which all regions lie that the device has not been told of; None if it has been told of all.
    pub(super) fn hidden_range(&self) -> Option<(usize, usize)> {
        let hidden = || self.by_host.values().filter(|region| region.twin.is_none());
        let start = hidden().map(|region| region.info.host.0).min()?;
        let end = hidden().map(|region| region.info.host.0 + region.info.len).max()?;
        Some((start, end))
    }

    /// The device is about to write to what it may use, on a stream.
    pub(super) fn use_on(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        self.bring(session, stream)?;
        self.uses.begin(stream);
        Ok(())
    }

    /// Makes what the program wrote be there for what comes next on a stream.
    pub(super) fn bring(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        // First, because changes that leave on this stream may be of what another one still has to zero or to receive.
        self.order(session, stream)?;
        self.push(session, stream)
    }

    /// Changes left on `stream`, which came after all earlier ones: see [`order`](Self::order).
    fn pushed(&mut self, stream: u64) {
        self.pushed_on = Some(stream);
        self.pushes += 1;
        self.ordered.clear();
        self.ordered.insert(stream);
    }

    /// Makes `stream` come after the changes that were sent on another one.
    pub(super) fn order(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        let Some(other) = self.pushed_on else { return Ok(()) };
        if !self.ordered.insert(stream) {
            return Ok(());
        }
        let event = match self.event {
            Some(event) => event,
            // hipEventDisableTiming.
            None => *self.event.insert(session.ask(&op::EventCreate { flags: 2 })?.event),
        };
        session.tell(&op::EventRecord { event, stream: other })?;
        session.tell(&op::StreamWaitEvent { stream, event, flags: 0 })
    }

    /// Sends what the program wrote.
    fn push(&mut self, session: &Session, stream: u64) -> HipResult<()> {
        let is_idle = self.uses.are_over();
        let mut sent = false;
        for region in self.by_host.values_mut() {
            let (Some(twin), Some(remote)) = (&mut region.twin, region.remote) else { continue };
            // While the device cannot have written, it has what the twin has, and whole pages may go.
            let unit = if is_idle || region.is_fresh { PAGE } else { WORD };
            region.is_fresh = false;
            // SAFETY: memory that was given to the program or registered by it, and not freed: `take` removes it
            // from the table first, under the lock that is held here.
            unsafe {
                changes(region.info.host, twin, unit, |offset, bytes| {
                    sent = true;
                    let request = op::Memcpy {
                        dst: remote + offset as u64,
                        src: region.info.host.wire() + offset as u64,
                        size: bytes.len() as u64,
                        kind: kind::HOST_TO_DEVICE,
                        stream,
                    };
                    let extra = Extra { inline: bytes, ..session.extra() };
                    Ok(session.connection().tell_with(&op::MemcpyAsync(request), extra)?)
                })?;
            }
        }
        if sent {
            self.pushed(stream);
        }
        Ok(())
    }

    /// Fetches what the device wrote.
    pub(super) fn pull(&mut self, session: &Session) -> HipResult<()> {
        let exposed: Vec<(u64, usize)> = self
            .by_host
            .values()
            .filter(|region| region.twin.is_some())
            .filter_map(|region| Some((region.remote?, region.info.len)))
            .collect();
        if exposed.is_empty() {
            return Ok(());
        }
        let stream = match self.pull_stream {
            Some(stream) => stream,
            // Of its own and not blocking, so that it waits for nothing: what matters is done.
            None => {
                *self.pull_stream.insert(session.ask(&op::StreamCreate { flags: 1, priority: 0 })?.stream)
            }
        };
        let mut copies: Vec<Vec<u8>> = exposed.iter().map(|(_, len)| vec![0; *len]).collect();
        let reads: Vec<_> = exposed
            .iter()
            .zip(&mut copies)
            .map(|((remote, len), copy)| {
                let size = *len as u64;
                let request = op::Memcpy { dst: 0, src: *remote, size, kind: kind::DEVICE_TO_HOST, stream };
                (op::MemcpyAsync(request), Rows::one(copy.as_mut_ptr(), *len))
            })
            .collect();
        // SAFETY: the copies are ours during the call.
        unsafe { session.connection().read_all(&reads) }?;
        let regions = self.by_host.values_mut().filter(|region| region.twin.is_some());
        for (region, copy) in regions.zip(&copies) {
            let Some(twin) = &mut region.twin else { continue };
            // SAFETY: as in `push`.
            unsafe { merge(region.info.host, twin, copy) };
        }
        Ok(())
    }
}
