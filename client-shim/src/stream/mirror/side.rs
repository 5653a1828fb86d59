//! Mirrored memory as one worker has it: twins, work that uses the memory, what is sent and fetched.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hipr_proto::{HipError, HipResult};

use super::questions::{Fetching, Need, Questions};
use super::region::{Region, Regions};
use super::{Origin, Place, RegionInfo, Target, Waited, warn_once};
use crate::command::Transfer;
use crate::convert::{Event, Ptr};
use crate::stream::Next;
use crate::stream::order::{Order, gone, legacy};
use crate::worker::{Ahead, ChangesAnswer, HostMemory, Port, Wait, WrittenPages, lock};

static POINTER_COPIED: AtomicBool = AtomicBool::new(false);

/// The regions of this process on one worker. Every worker of the program has a side with all regions.
#[derive(Debug, Default)]
pub(in crate::stream) struct Side {
    regions: Mutex<Regions>,
    /// Number of regions, to skip all work if there are none. While there are none, nothing is remembered of streams and events
    /// either, so that what happens to them then need not be noted.
    count: AtomicUsize,
    /// Signalled when answers to questions have been applied.
    applied: Condvar,
}

impl Side {
    /// Creates the side of a worker for a process without memory, whose streams have this order. `home` is a device of the worker.
    pub(super) fn new(order: &Arc<Order>, number: usize, home: i32) -> Self {
        let mut side = Self::default();
        let regions = side.regions.get_mut().unwrap_or_else(PoisonError::into_inner);
        regions.rule = Arc::clone(order);
        regions.home = home;
        regions.questions = Questions::of_side(number);
        side
    }

    /// Locks the regions.
    pub(super) fn regions(&self) -> MutexGuard<'_, Regions> {
        lock(&self.regions)
    }

    /// Returns whether there is no mirrored memory.
    pub(in crate::stream) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Adds a region.
    pub(super) fn insert(&self, regions: &mut Regions, mut region: Region) {
        regions.made += 1;
        region.number = regions.made;
        if let Some(remote) = region.remote
            && remote != region.info.host.wire()
        {
            regions.by_remote.insert(remote, region.info.host.0);
        }
        regions.by_host.insert(region.info.host.0, region);
        self.count.store(regions.by_host.len(), Ordering::Release);
    }

    /// Returns the kind of the `len` bytes at `ptr`. `is_device` decides about an address that could be either.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` when they go beyond the memory they begin in.
    pub(in crate::stream) fn place(
        &self,
        port: &dyn Port,
        ptr: Ptr,
        len: usize,
        is_device: Option<bool>,
    ) -> HipResult<Place> {
        let found = port.allocation(ptr);
        match found {
            Some(allocation) if allocation.is_ambiguous && is_device == Some(false) => {}
            Some(allocation) if allocation.bytes_from(ptr) < len => return Err(HipError::INVALID_VALUE),
            Some(_) => return Ok(Place::Device(ptr.wire())),
            None => {}
        }
        if self.is_empty() {
            return Ok(Place::Unknown);
        }
        let regions = self.regions();
        let Some((region, offset)) = regions.find(ptr) else { return Ok(Place::Unknown) };
        if region.info.len - offset < len {
            return Err(HipError::INVALID_VALUE);
        }
        Ok(match (&region.twin, region.remote) {
            (_, Some(remote)) if region.is_shared => Place::Shared(remote + offset as u64),
            (Some(_), Some(remote)) => Place::Mirrored(remote + offset as u64),
            _ => Place::Host,
        })
    }

    /// Returns the attributes of the memory that contains `ptr`, the offset in it, and its device address if it has one.
    pub(super) fn info(&self, ptr: Ptr) -> Option<(RegionInfo, usize, Option<u64>)> {
        let regions = self.regions();
        let (region, offset) = regions.find(ptr)?;
        Some((region.info, offset, region.remote))
    }

    /// Returns a device of the worker.
    pub(super) fn home(&self) -> i32 {
        self.regions().home
    }

    /// Returns the device address of a region for a device, allocating it if it has none.
    ///
    /// # Errors
    /// What the worker says.
    pub(super) fn remote(&self, port: &dyn Port, base: Ptr, device: i32) -> HipResult<u64> {
        self.regions().remote(port, base.0, device)
    }

    /// Fetches what the device wrote to memory of the program that is about to be removed; [`keep`](Self::keep) has to follow if it is not.
    ///
    /// # Errors
    /// What the worker answers.
    pub(super) fn settle(&self, port: &dyn Port, ptr: Ptr) -> HipResult<()> {
        let mut regions = self.regions();
        // What others have asked about it comes first.
        if let Some(last) = regions.questions.last() {
            regions.by_host.entry(ptr.0).and_modify(|region| region.is_leaving = true);
            regions = self.await_answers(regions, last);
        }
        regions.pull(port, Some(ptr.0))
    }

    /// Notes that memory which was [settled](Self::settle) is not removed.
    pub(super) fn keep(&self, ptr: Ptr) {
        self.regions().by_host.entry(ptr.0).and_modify(|region| region.is_leaving = false);
    }

    /// Removes the region that begins at `ptr`; `None` if there is none of this origin.
    pub(super) fn remove(&self, port: &dyn Port, ptr: Ptr, origin: Origin) -> Option<Region> {
        let mut regions = self.regions();
        regions.by_host.get(&ptr.0).filter(|region| region.info.origin == origin)?;
        let mut region = regions.by_host.remove(&ptr.0)?;
        region.unseen.untrack(port);
        if regions.by_host.is_empty() {
            regions.forget_work();
        }
        self.count.store(regions.by_host.len(), Ordering::Release);
        if let Some(remote) = region.remote {
            regions.by_remote.remove(&remote);
        }
        Some(region)
    }

    /// Returns the address of host memory for a device, making it available to kernels.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub(super) fn device_pointer(&self, port: &dyn Port, ptr: Ptr, device: i32) -> HipResult<u64> {
        self.regions().tell(port, ptr.wire(), legacy(device))?.ok_or(HipError::INVALID_VALUE)
    }

    /// Returns the address of host memory for a device without making it available to kernels.
    ///
    /// # Errors
    /// `hipErrorInvalidValue` for memory that is not on both sides.
    pub(super) fn device_address(&self, port: &dyn Port, ptr: Ptr, device: i32) -> HipResult<u64> {
        let mut regions = self.regions();
        let (region, offset) = regions.find(ptr).ok_or(HipError::INVALID_VALUE)?;
        let base = region.info.host.0;
        Ok(regions.remote(port, base, device)? + offset as u64)
    }

    /// Makes memory available to kernels whose address is among bytes that are about to be copied to the device.
    ///
    /// # Errors
    /// What the worker says.
    pub(in crate::stream) fn note_pointers(
        &self,
        port: &dyn Port,
        stream: u64,
        bytes: &[u8],
    ) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        let Some((start, end)) = regions.hidden_range() else { return Ok(()) };
        for word in bytes.chunks_exact(8) {
            let Ok(word) = <[u8; 8]>::try_from(word) else { continue };
            let address = u64::from_le_bytes(word);
            if !(start..end).contains(&(address as usize)) {
                continue;
            }
            if let Some(remote) = regions.tell(port, address, stream)?
                && remote != address
            {
                warn_once(&POINTER_COPIED, || {
                    tracing::warn!(
                        "a pointer to host memory ({address:#x}) is copied to the device, where that memory has \
                         another address: a kernel that follows it fails; use hipHostGetDevicePointer"
                    );
                });
            }
        }
        Ok(())
    }

    /// Removes the memory of a device that was reset. The program's own memory stays as it is; memory allocated for it stays
    /// mapped.
    pub(super) fn clear(&self, pages: &dyn WrittenPages, device: i32) {
        let mut regions = self.regions();
        for (_, mut region) in regions.by_host.extract_if(.., |_, region| region.info.device == device) {
            region.unseen.untrack(pages);
        }
        let Regions { by_host, by_remote, .. } = &mut *regions;
        by_remote.retain(|_, host| by_host.contains_key(host));
        regions.forget_work();
        regions.events.clear();
        regions.pull_stream = None;
        self.count.store(regions.by_host.len(), Ordering::Release);
    }

    /// Announces work that may write to mirrored memory, before [`before_launch`](Self::before_launch) or
    /// [`before_use`](Self::before_use). It has to be followed by [`sent`](Self::sent) or [`retract`](Self::retract).
    pub(in crate::stream) fn announce(&self) {
        self.regions().uses.announce();
    }

    /// Notes that announced work will not be sent.
    pub(in crate::stream) fn retract(&self) {
        self.regions().uses.retract();
    }

    /// Prepares an announced launch with these arguments: sends what the program wrote, and replaces host addresses by device
    /// addresses where they differ.
    ///
    /// # Errors
    /// What the worker says.
    pub(in crate::stream) fn before_launch(
        &self,
        port: &dyn Port,
        stream: u64,
        args: &mut [u8],
    ) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        // Pointers are aligned, also in structures.
        for word in args.chunks_exact_mut(8) {
            let Ok(bytes) = <[u8; 8]>::try_from(&*word) else { continue };
            if let Some(remote) = regions.tell(port, u64::from_le_bytes(bytes), stream)? {
                word.copy_from_slice(&remote.to_le_bytes());
            }
        }
        regions.expose_known(port, stream)?;
        regions.bring(port, stream, 1)
    }

    /// Prepares an announced write to mirrored memory by something other than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub(in crate::stream) fn before_use(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        self.regions().bring(port, stream, 1)
    }

    /// Prepares a read of mirrored memory by something other than a kernel.
    ///
    /// # Errors
    /// What the worker says.
    pub(in crate::stream) fn before_read(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        self.regions().bring(port, stream, 0)
    }

    /// Prepares work that uses no mirrored memory: what a synchronous copy from mirrored memory brings to the device is there when
    /// anything comes after it, on whatever stream.
    ///
    /// # Errors
    /// What the worker says.
    pub(in crate::stream) fn before_other(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if self.is_empty() { Ok(()) } else { self.regions().order(port, stream) }
    }

    /// Notes that a synchronous copy from mirrored memory has been sent. When it returns the program may change that memory, which the
    /// worker may not have read: what is sent from now on has to come behind it.
    pub(in crate::stream) fn has_been_read(&self, port: &dyn Port, stream: u64) -> HipResult<()> {
        if !self.is_empty() {
            let mut regions = self.regions();
            // Another thread may have sent something on another stream since.
            regions.order(port, stream)?;
            regions.pushed(stream);
        }
        Ok(())
    }

    /// Notes that announced work has been sent.
    pub(in crate::stream) fn sent(&self, stream: u64) {
        let mut regions = self.regions();
        regions.uses.begin(stream);
        regions.uses.retract();
    }

    /// Notes that an event is about to be recorded behind the work that `stream` has. Every way to record one goes through here.
    pub(in crate::stream) fn event_recorded(&self, order: &Order, event: Event, stream: u64) {
        if !self.is_empty() {
            let includes = |other| order.includes(stream, other);
            self.regions().uses.record(event.wire(), stream, includes);
        }
    }

    /// Notes that another event is recorded behind what an event comes behind now.
    pub(in crate::stream) fn event_copied(&self, event: Event, copy: Event) {
        if !self.is_empty() {
            self.regions().uses.copy_event(event.wire(), copy.wire());
        }
    }

    /// Notes that a stream is about to wait for an event.
    pub(in crate::stream) fn event_awaited(&self, stream: u64, event: Event) {
        if !self.is_empty() {
            self.regions().uses.wait(stream, event.wire());
        }
    }

    /// Removes an event.
    pub(in crate::stream) fn forget_event(&self, event: Event) {
        if !self.is_empty() {
            self.regions().uses.forget_event(event.wire());
        }
    }

    /// Returns the state that a wait needs, just before it begins.
    pub(in crate::stream) fn before_wait(&self, order: &Order, target: Target) -> Waited {
        if self.is_empty() {
            return Waited::default();
        }
        let regions = self.regions();
        let (clock, pushes) = match target {
            Target::Device(device) => {
                let is_own = |stream| order.device_of(stream) == device;
                let has_all = regions.pushed_on.is_none_or(is_own);
                (regions.uses.before_all(is_own), has_all.then_some(regions.pushes))
            }
            Target::Stream(stream) => {
                let includes = |other| order.includes(stream, other);
                let has_all = regions.pushed_on.is_some_and(includes);
                (regions.uses.before(stream, includes), has_all.then_some(regions.pushes))
            }
            Target::Event(event) => (regions.uses.before_event(event.wire()), None),
        };
        Waited(Some(Box::new(Fetching { clock, pushes, ..Fetching::default() })))
    }

    /// Returns the state of a wait that was not needed because what it is for is over: what has not been fetched of that is.
    pub(in crate::stream) fn instead_of_wait(&self) -> Waited {
        let is_due = !self.is_empty() && self.regions().unfetched.is_some();
        Waited(is_due.then(|| Box::new(Fetching { need: Need::Any, ..Fetching::default() })))
    }

    /// Sends a wait together with the question what the device wrote before it, if that has to be fetched. Returns what comes next: the
    /// answers to both, or the wait alone, which then has not been sent.
    ///
    /// # Errors
    /// What the worker says; a lost connection.
    pub(in crate::stream) fn wait(
        &self,
        port: &dyn Port,
        wait: Wait,
        waited: &mut Waited,
    ) -> HipResult<Next> {
        let Some(fetching) = &mut waited.0 else { return Ok(Next::Wait(wait)) };
        let mut regions = self.regions();
        if regions.uses.are_over() {
            // What begins from now on is not what the wait is for.
            fetching.need = Need::Nothing;
            return Ok(Next::Wait(wait));
        }
        // What is not over for a query need not be fetched.
        if wait.is_query() {
            return Ok(Next::Wait(wait));
        }
        fetching.question = regions.ask(port, Ahead::Wait(wait), fetching)?;
        Ok(fetching.question.map_or(Next::Wait(wait), Next::Answer))
    }

    /// Sends a copy to memory of the program that is no mirror, together with the question what the device wrote before it, if that has to
    /// be fetched: what came before bytes that arrived is there as well. Returns what comes next: the answers to both, or the copy
    /// alone, which then has not been sent.
    ///
    /// # Errors
    /// What the worker says; a lost connection.
    pub(in crate::stream) fn receive(
        &self,
        port: &dyn Port,
        copy: Transfer,
        waited: &mut Waited,
    ) -> HipResult<Next> {
        if let Some(fetching) = &mut waited.0
            && port.can_ask_behind(&copy)
        {
            let mut regions = self.regions();
            if !regions.uses.are_over() {
                fetching.question = regions.ask(port, Ahead::Copy(&copy), fetching)?;
            }
        }
        let question = waited.0.as_ref().and_then(|fetching| fetching.question);
        Ok(question.map_or_else(|| Next::Receive(Box::new(copy)), Next::Answer))
    }

    /// Does the next step of fetching what the device wrote, after a wait. Returns what the step waits for; `None` if everything is there.
    ///
    /// # Errors
    /// What the worker answers.
    pub(in crate::stream) fn fetch(&self, port: &dyn Port, waited: &mut Waited) -> HipResult<Option<Next>> {
        let Some(fetching) = &mut waited.0 else { return Ok(None) };
        if self.is_empty() && fetching.question.is_none() {
            return Ok(None);
        }
        let mut regions = self.regions();
        if fetching.pushes.take() == Some(regions.pushes) {
            // What was sent has arrived, whatever comes next.
            regions.pushed_on = None;
        }
        if fetching.need == Need::Nothing {
            return Ok(None);
        }
        if let Some(question) = fetching.question {
            let Some(told) = regions.questions.take_told(question) else {
                return Ok(Some(Next::WaitForAnswers(question)));
            };
            fetching.question = None;
            let told = told?;
            if told.knows_all && told.left.is_empty() {
                regions.finish(fetching);
                return Ok(None);
            }
            fetching.left = told.left;
            fetching.need = Need::Any;
        }
        if fetching.need == Need::OfUses && regions.uses.are_over() {
            return Ok(None);
        }
        fetching.question = regions.ask(port, Ahead::Nothing, fetching)?;
        if let Some(question) = fetching.question {
            return Ok(Some(Next::Answer(question)));
        }
        if let Some(last) = regions.questions.last() {
            return Ok(Some(Next::WaitForAnswers(last)));
        }
        fetching.unfetched = regions.unfetched.clone();
        regions.pull(port, None)?;
        regions.finish(fetching);
        Ok(None)
    }

    /// Forgets what a wait has asked for, as it has failed.
    pub(in crate::stream) fn forget(&self, waited: &Waited) {
        if let Some(question) = waited.0.as_ref().and_then(|fetching| fetching.question) {
            self.regions().questions.forget(question);
        }
    }

    /// Takes the answers to a question ([`Next::Answer`]), whatever was answered to the wait that it came with.
    pub(super) fn answered(&self, memory: &dyn HostMemory, question: u64, answers: Vec<ChangesAnswer>) {
        self.regions().answered(memory, question, answers);
        self.applied.notify_all();
    }

    /// Returns whether the answers to a question, and to all earlier ones, have been applied.
    pub(super) fn is_answered(&self, question: u64) -> bool {
        !self.regions().questions.is_open(question)
    }

    /// Waits until the answers to a question, and to all earlier ones, have been applied ([`Next::WaitForAnswers`]).
    pub(super) fn wait_for_answers(&self, question: u64) {
        drop(self.await_answers(self.regions(), question));
    }

    /// Waits until the answers to a question, and to all earlier ones, have been applied; the regions are unlocked meanwhile.
    pub(super) fn await_answers<'a>(
        &self,
        regions: MutexGuard<'a, Regions>,
        question: u64,
    ) -> MutexGuard<'a, Regions> {
        let is_open = |regions: &mut Regions| regions.questions.is_open(question);
        self.applied.wait_while(regions, is_open).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no work is under way that can write to memory which the program can read.
    pub(in crate::stream) fn show_nothing(&self) -> bool {
        if self.is_empty() {
            return true;
        }
        let regions = self.regions();
        // What both sides map the device may be writing by any work.
        regions.by_host.values().all(|region| !region.is_shared)
            && regions.unfetched.is_none()
            && (regions.uses.are_over() || regions.by_host.values().all(|region| region.twin.is_none()))
    }

    /// Notes that what a wait would be for is over, as an answer to something else was behind it, and that nothing was fetched.
    pub(in crate::stream) fn over(&self, waited: &Waited) {
        if self.is_empty() {
            return;
        }
        let mut regions = self.regions();
        if !regions.uses.are_over() {
            // What the streams wait for by themselves is over, too, and not in the clock.
            let clock = waited.0.as_ref().map(|fetching| fetching.clock.clone());
            regions.unfetched.get_or_insert_default().extend(clock.unwrap_or_default());
        }
    }

    /// Removes a stream that is about to be destroyed.
    ///
    /// # Errors
    /// What the worker says.
    pub(in crate::stream) fn forget_stream(
        &self,
        port: &dyn Port,
        order: &Order,
        stream: u64,
    ) -> HipResult<()> {
        if self.is_empty() {
            return Ok(());
        }
        let mut regions = self.regions();
        if regions.pushed_on == Some(stream) {
            // What was sent on it has arrived before whatever comes after this.
            let legacy = legacy(order.device_of(stream));
            regions.order(port, legacy)?;
            regions.pushed_on = Some(legacy);
        }
        regions.ordered.remove(&stream);
        // Its work may still be under way: it is done when that of the legacy stream is, if that waits for it, or when the device is.
        let heir = if order.is_blocking(stream) { legacy } else { gone };
        regions.uses.bequeath(stream, heir(order.device_of(stream)));
        Ok(())
    }
}
