//! Mirrored memory regions, and how host and device copies are brought together.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use hipr_abi::{hipHostMallocMapped, hipHostRegisterMapped};
use hipr_proto::op::MemChanges;
use hipr_proto::{HipError, HipResult};

use super::changes::apply;
use super::diff::{PAGE, WORD, changes, merge};
use super::questions::{Asked, Fetching, Questions, Ranges, Told};
use super::said::Said;
use super::unseen::Unseen;
use super::uses::{Clock, Uses};
use super::{Order, Origin, RegionInfo};
use crate::command::Pattern;
use crate::convert::{Event, Ptr};
use crate::worker::{Ahead, ChangesAnswer, HostMemory, Port, Release, Writes};

/// The flag of pinned or registered memory that kernels can access, at a device address of its own.
const MAPPED: u32 = hipHostMallocMapped;
const _: () = assert!(hipHostMallocMapped == hipHostRegisterMapped);

#[derive(Debug)]
pub(super) struct Region {
    pub(super) info: RegionInfo,
    /// Number of the region among all that there were.
    pub(super) number: u64,
    /// Address on the worker; None until it is needed.
    pub(super) remote: Option<u64>,
    pub(super) release: Option<Release>,
    /// The device for which the worker has it.
    pub(super) device: i32,
    /// Whether both sides map the same memory, so that there is nothing to bring together.
    pub(super) is_shared: bool,
    /// Whether this library mapped the region's pages, which then have to be unmapped.
    pub(super) mapped: bool,
    /// The twin: the contents on which both sides last agreed; None while only the host uses the memory.
    pub(super) twin: Option<Vec<u8>>,
    /// What the program may have written since it was compared with the twin.
    pub(super) unseen: Unseen,
    /// Whether the device cannot have written to the region yet.
    pub(super) is_fresh: bool,
    /// Whether the worker tells what changes in the region; without that, all of it is fetched.
    pub(super) is_watched: bool,
    /// Whether the region is being removed, so that no new question is about it.
    pub(super) is_leaving: bool,
    /// What the program said of the region.
    pub(super) said: Said,
}

impl Region {
    /// Creates a region that only the host uses so far.
    pub(super) fn new(info: RegionInfo, remote: Option<u64>, release: Option<Release>, mapped: bool) -> Self {
        Self {
            info,
            number: 0,
            remote,
            release,
            device: info.device,
            is_shared: false,
            mapped,
            twin: None,
            unseen: Unseen::default(),
            is_fresh: false,
            is_watched: false,
            is_leaving: false,
            said: Said::default(),
        }
    }

    /// Returns whether the region has to be made available to kernels although no argument names it, because they can reach it.
    fn is_known_to_kernels(&self) -> bool {
        match self.info.origin {
            _ if self.is_shared => false,
            Origin::Managed | Origin::Signal => true,
            Origin::Pinned | Origin::Registered => self.info.flags & MAPPED != 0,
        }
    }

    /// Returns the question about all of the region; `None` if the worker does not have it.
    fn asked(&self, stream: u64) -> Option<Asked> {
        let request = MemChanges { address: self.remote?, length: self.info.len as u64, stream };
        Some(Asked { base: self.info.host.0, number: self.number, offset: 0, request })
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
    /// Number of regions that there were so far.
    pub(super) made: u64,
    /// The program's last write when it was asked what it has written; `None` if there are regions of which it was not.
    looked: Option<Writes>,
    /// Work that may be writing to the regions.
    pub(super) uses: Uses,
    /// Questions what has changed that are under way.
    pub(super) questions: Questions,
    /// Uses that an answer to something else was behind, so that they are over, since memory was fetched last.
    pub(super) unfetched: Option<Clock>,
    /// The stream on which changes were sent last; further streams that already follow them are in `ordered`.
    pub(super) pushed_on: Option<u64>,
    /// Number of pushes.
    pub(super) pushes: u64,
    pub(super) ordered: HashSet<u64>,
    /// Tells which device a stream is of.
    pub(super) rule: Arc<Order>,
    /// For each device, the event that orders streams behind a push on a stream of it; created when first needed.
    pub(super) events: HashMap<i32, Event>,
    /// Stream on which changes are fetched; created when first needed.
    pub(super) pull_stream: Option<u64>,
    /// A device of the worker.
    pub(super) home: i32,
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

    /// Returns the device address of a region, allocating it for a device if it has none: at the host address if that can be.
    pub(super) fn remote(&mut self, port: &dyn Port, base: usize, device: i32) -> HipResult<u64> {
        let region = self.by_host.get_mut(&base).ok_or(HipError::INVALID_VALUE)?;
        if let Some(remote) = region.remote {
            return Ok(remote);
        }
        let remote = port.allocate(device, region.info.host, region.info.len)?;
        region.remote = Some(remote);
        region.release = Some(Release::Device(remote));
        region.device = device;
        if remote != region.info.host.wire() {
            self.by_remote.insert(remote, base);
        }
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
        region.unseen.track(port, region.info.host, len, region.mapped);
        self.looked = None;
        region.is_fresh = true;
        region.is_watched = port.tells_changes();
        if region.is_watched {
            // Before the zeros, so that whatever is there once they are is told.
            port.watch(remote, len, self.rule.device_of(stream))?;
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
        let remote = self.remote(port, base, self.rule.device_of(stream))?;
        self.expose(port, base, stream)?;
        Ok(Some(remote + offset as u64))
    }

    /// Makes the regions that kernels can reach without an argument available to the device.
    pub(super) fn expose_known(&mut self, port: &dyn Port, stream: u64) -> HipResult<()> {
        let hidden = |region: &Region| region.twin.is_none() && region.is_known_to_kernels();
        let bases: Vec<usize> =
            self.by_host.iter().filter(|(_, region)| hidden(region)).map(|(base, _)| *base).collect();
        let device = self.rule.device_of(stream);
        for base in bases {
            self.remote(port, base, device)?;
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
        let device = self.rule.device_of(other);
        let event = match self.events.entry(device) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => *place.insert(port.create_event(device)?),
        };
        port.record(event, other, false)?;
        port.await_event(event, stream, 0)?;
        self.ordered.insert(stream);
        Ok(())
    }

    /// Asks what the program has written to the regions since the last time.
    fn look(&mut self, port: &dyn Port) {
        // Before the pages are taken: a write that comes between is newer than this, and found the next time.
        let writes = port.writes();
        let is_new = self.looked != Some(writes);
        for region in self.by_host.values_mut().filter(|region| region.twin.is_some()) {
            region.unseen.look(port, region.info.host, region.info.len, is_new);
        }
        self.looked = Some(writes);
    }

    /// Sends what the program wrote to the regions.
    fn push(&mut self, port: &dyn Port, stream: u64, own: usize) -> HipResult<()> {
        let is_idle = self.uses.are_over_but_for(own);
        self.look(port);
        let mut sent = false;
        for region in self.by_host.values_mut() {
            let (Some(twin), Some(remote)) = (&mut region.twin, region.remote) else { continue };
            // While the device cannot have written, it has what the twin has, and whole pages may go.
            let unit = if is_idle || region.is_fresh { PAGE } else { WORD };
            region.is_fresh = false;
            for part in region.unseen.open() {
                let (host, remote) = (region.info.host.offset(part.start), remote + part.start as u64);
                changes(port, host, twin.get_mut(part).unwrap_or_default(), unit, |offset, bytes| {
                    sent = true;
                    self.questions.sent(host.0 + offset, bytes.len());
                    port.write(remote + offset as u64, host.offset(offset), bytes, stream)
                })?;
            }
            region.unseen.compared();
        }
        if sent {
            self.pushed(stream);
        }
        Ok(())
    }

    /// Forgets the uses that are over after a wait, as what they wrote has been fetched.
    pub(super) fn finish(&mut self, fetching: &Fetching) {
        self.uses.finish(&fetching.clock);
        if let Some(clock) = &fetching.unfetched {
            self.uses.finish(clock);
            if self.unfetched.as_ref() == Some(clock) {
                self.unfetched = None;
            }
        }
    }

    /// Sends the question what has changed in all regions, or in what earlier answers have left open; with a wait, behind it in the same
    /// flight. Returns the number of the question; `None` if the worker does not tell it of all of them.
    ///
    /// # Errors
    /// What the worker says; a lost connection.
    pub(super) fn ask(
        &mut self,
        port: &dyn Port,
        ahead: Ahead<'_>,
        fetching: &mut Fetching,
    ) -> HipResult<Option<u64>> {
        let is_meant = |region: &&Region| region.twin.is_some() && !region.is_leaving;
        if self.by_host.values().filter(is_meant).any(|region| !region.is_watched) {
            return Ok(None);
        }
        if !self.by_host.values().any(|region| is_meant(&region)) {
            return Ok(None);
        }
        let stream = self.pull_stream(port)?;
        let mut ranges = std::mem::take(&mut fetching.left);
        if ranges.is_empty() {
            let regions = self.by_host.values().filter(is_meant);
            ranges.extend(regions.filter_map(|region| region.asked(stream)));
            fetching.unfetched = self.unfetched.clone();
        }
        let requests: Vec<MemChanges> = ranges.iter().map(|asked| asked.request).collect();
        // Noted before it is sent, and both while the regions are locked: what is sent later is newer than the answers.
        let number = self.questions.add(ranges);
        match port.ask(number, ahead, &requests) {
            Ok(()) => Ok(Some(number)),
            Err(error) => {
                self.questions.retract(number);
                Err(error)
            }
        }
    }

    /// Takes the answers to a question, and applies all that can be applied in the order of the questions.
    pub(super) fn answered(&mut self, memory: &dyn HostMemory, number: u64, answers: Vec<ChangesAnswer>) {
        self.questions.answer(number, answers);
        while let Some((question, answers)) = self.questions.next_answered() {
            let told = self.apply(memory, &question.ranges, &question.sent, answers);
            self.questions.tell(&question, told);
        }
    }

    /// Applies the answers to a question.
    ///
    /// # Errors
    /// The first of what the worker answers. What it has told of other regions it does not tell again, so that is there nevertheless.
    fn apply(
        &mut self,
        memory: &dyn HostMemory,
        ranges: &[Asked],
        sent: &Ranges,
        answers: Vec<ChangesAnswer>,
    ) -> HipResult<Told> {
        let (mut left, mut knows_all, mut result) = (Vec::new(), true, Ok(()));
        if answers.len() != ranges.len() {
            result = Err(HipError::INVALID_VALUE);
        }
        for (asked, answer) in ranges.iter().zip(answers) {
            let region = self.by_host.get_mut(&asked.base).filter(|region| region.number == asked.number);
            let Some(region) = region else { continue };
            let host = region.info.host.offset(asked.offset);
            let len = asked.request.length as usize;
            let twin = region.twin.as_mut().and_then(|twin| twin.get_mut(asked.offset..asked.offset + len));
            let Some(twin) = twin else { continue };
            match apply(memory, host, twin, &asked.request, sent, answer) {
                Ok(Some(told)) if told == len => {}
                Ok(Some(told)) => left.push(asked.after(told)),
                Ok(None) => {
                    region.is_watched = false;
                    knows_all = false;
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        result.map(|()| Told { left, knows_all })
    }

    /// Returns the stream on which changes are fetched, behind all changes that were sent.
    fn pull_stream(&mut self, port: &dyn Port) -> HipResult<u64> {
        let stream = match self.pull_stream {
            Some(stream) => stream,
            // Of its own and not blocking, so that it waits for nothing but what was sent: the rest of what matters is done.
            None => *self.pull_stream.insert(port.create_stream(self.home)?),
        };
        // What the twins have and the device does not would be taken for changes that the device made.
        self.order(port, stream)?;
        Ok(stream)
    }

    /// Fetches what the device wrote to one region, or to all of them: what has changed in those where the worker tells it, all of the
    /// others. No question may be under way about them.
    ///
    /// # Errors
    /// What the worker answers.
    pub(super) fn pull(&mut self, port: &dyn Port, only: Option<usize>) -> HipResult<()> {
        let is_meant =
            |region: &Region| region.twin.is_some() && only.is_none_or(|base| base == region.info.host.0);
        if !self.by_host.values().any(is_meant) {
            return Ok(());
        }
        let stream = self.pull_stream(port)?;
        let watched = self.by_host.values().filter(|region| region.is_watched && is_meant(region));
        let mut open: Vec<Asked> = watched.filter_map(|region| region.asked(stream)).collect();
        while !open.is_empty() {
            let requests: Vec<MemChanges> = open.iter().map(|asked| asked.request).collect();
            let answers = port.changes(&requests)?;
            open = self.apply(port, &open, &Ranges::default(), answers)?.left;
        }
        let regions = self.by_host.values_mut();
        let regions: Vec<_> = regions.filter(|region| !region.is_watched && is_meant(region)).collect();
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
}
