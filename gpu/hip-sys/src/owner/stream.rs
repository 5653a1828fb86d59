//! Streams, events, and the markers that tell what is done.

use core::ptr::null_mut;

use super::memory::Memory;
use super::module::Module;
use super::{HipCode, Owner, number, ptr};
use crate::{hipErrorInvalidHandle, hipErrorNotReady, hipEventDisableTiming};

/// The last number that means the null stream.
const NULL_MAX: u64 = 1;
/// The number of the stream that stands for the per-thread stream.
const PER_THREAD: u64 = 2;

/// A place in a stream. Given back with [`Owner::finish`] or [`Owner::discard`].
#[derive(Debug)]
pub struct Marker {
    pub(super) event: u64,
    pub(super) device: i32,
}

/// What is released when the work before the markers is done.
pub(super) struct Retired {
    markers: Vec<Marker>,
    what: Thing,
}

pub(super) enum Thing {
    Stream(u64, i32),
    Module(u64, Module),
    Memory(u64, Memory),
}

impl Owner {
    /// The C handle of a stream, and its device.
    pub(super) fn stream(&mut self, stream: u64) -> HipCode<(u64, i32)> {
        match stream {
            0..=NULL_MAX => {
                if !self.null_used.contains(&self.device) {
                    self.null_used.push(self.device);
                }
                Ok((0, self.device))
            }
            PER_THREAD => {
                if let Some(&own) = self.per_thread.get(&self.device) {
                    return Ok((own, self.device));
                }
                let own = self.create_stream(0, 0)?;
                self.per_thread.insert(self.device, own);
                Ok((own, self.device))
            }
            _ => self.streams.get(&stream).map(|&device| (stream, device)).ok_or(hipErrorInvalidHandle),
        }
    }

    /// As [`Owner::stream`], with the stream's device made current.
    pub(super) fn enter_stream(&mut self, stream: u64) -> HipCode<u64> {
        let (handle, device) = self.stream(stream)?;
        self.enter_device(device)?;
        Ok(handle)
    }

    /// A stream that exists already, for questions.
    fn known_stream(&self, stream: u64) -> HipCode<(u64, i32)> {
        match stream {
            0..=NULL_MAX => Ok((0, self.device)),
            PER_THREAD => Ok((self.per_thread.get(&self.device).copied().unwrap_or(0), self.device)),
            _ => self.streams.get(&stream).map(|&device| (stream, device)).ok_or(hipErrorInvalidHandle),
        }
    }

    fn create_stream(&self, flags: u32, priority: i32) -> HipCode<u64> {
        self.enter()?;
        let mut stream = null_mut();
        // SAFETY: the place outlives the call.
        self.check(unsafe {
            if self.hip.hipStreamCreateWithPriority.is_some() {
                self.hip.hipStreamCreateWithPriority(&mut stream, flags, priority)
            } else {
                self.hip.hipStreamCreateWithFlags(&mut stream, flags)
            }
        })?;
        Ok(number(stream))
    }

    /// HIP API: hipStreamCreateWithPriority.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn stream_create(&mut self, flags: u32, priority: i32) -> HipCode<u64> {
        let stream = self.create_stream(flags, priority)?;
        self.streams.insert(stream, self.device);
        Ok(stream)
    }

    /// Destroys a stream when its work is done.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn stream_destroy(&mut self, stream: u64) -> HipCode {
        let device = *self.streams.get(&stream).ok_or(hipErrorInvalidHandle)?;
        let marker = self.mark(stream)?;
        self.streams.remove(&stream);
        self.retire(vec![marker], Thing::Stream(stream, device))
    }

    pub(super) fn destroy_stream(&self, stream: u64, device: i32) -> HipCode {
        self.enter_device(device)?;
        // SAFETY: made by this owner and destroyed once.
        self.check(unsafe { self.hip.hipStreamDestroy(ptr(stream)) })
    }

    /// HIP API: hipStreamGetFlags.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn stream_flags(&self, stream: u64) -> HipCode<u32> {
        let (stream, device) = self.known_stream(stream)?;
        self.enter_device(device)?;
        let mut flags = 0;
        // SAFETY: the stream exists, the place outlives the call.
        self.check(unsafe { self.hip.hipStreamGetFlags(ptr(stream), &mut flags) })?;
        Ok(flags)
    }

    /// HIP API: hipStreamGetPriority.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn stream_priority(&self, stream: u64) -> HipCode<i32> {
        let (stream, device) = self.known_stream(stream)?;
        self.enter_device(device)?;
        let mut priority = 0;
        // SAFETY: the stream exists, the place outlives the call.
        self.check(unsafe { self.hip.hipStreamGetPriority(ptr(stream), &mut priority) })?;
        Ok(priority)
    }

    /// HIP API: hipStreamQuery.
    ///
    /// # Errors
    /// `NOT_READY`, `INVALID_HANDLE`; those of HIP.
    pub fn stream_query(&mut self, stream: u64) -> HipCode {
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        self.check(unsafe { self.hip.hipStreamQuery(ptr(stream)) })
    }

    /// HIP API: hipStreamWaitEvent.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn stream_wait_event(&mut self, stream: u64, event: u64, flags: u32) -> HipCode {
        self.check_event(event)?;
        let stream = self.enter_stream(stream)?;
        // SAFETY: stream and event exist.
        self.check(unsafe { self.hip.hipStreamWaitEvent(ptr(stream), ptr(event), flags) })
    }

    // ---- events ------------------------------------------------------------------------------------------------------

    fn create_event(&self, flags: u32) -> HipCode<u64> {
        let mut event = null_mut();
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipEventCreateWithFlags(&mut event, flags) })?;
        Ok(number(event))
    }

    /// HIP API: hipEventCreateWithFlags.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn event_create(&mut self, flags: u32) -> HipCode<u64> {
        self.enter()?;
        let event = self.create_event(flags)?;
        self.events.insert(event, self.device);
        Ok(event)
    }

    /// The device of an event.
    pub(super) fn check_event(&self, event: u64) -> HipCode<i32> {
        self.events.get(&event).copied().ok_or(hipErrorInvalidHandle)
    }

    /// HIP API: hipEventDestroy.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn event_destroy(&mut self, event: u64) -> HipCode {
        let device = self.events.remove(&event).ok_or(hipErrorInvalidHandle)?;
        self.destroy_event(event, device)
    }

    pub(super) fn destroy_event(&self, event: u64, device: i32) -> HipCode {
        self.enter_device(device)?;
        // SAFETY: made by this owner and destroyed once; HIP keeps what work still needs of it.
        self.check(unsafe { self.hip.hipEventDestroy(ptr(event)) })
    }

    /// HIP API: hipEventRecord.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn event_record(&mut self, event: u64, stream: u64) -> HipCode {
        self.check_event(event)?;
        let stream = self.enter_stream(stream)?;
        // SAFETY: stream and event exist.
        self.check(unsafe { self.hip.hipEventRecord(ptr(event), ptr(stream)) })
    }

    /// HIP API: hipEventQuery.
    ///
    /// # Errors
    /// `NOT_READY`, `INVALID_HANDLE`; those of HIP.
    pub fn event_query(&self, event: u64) -> HipCode {
        let device = self.check_event(event)?;
        self.query_event(event, device)
    }

    /// What the work before an event that has happened has to report (HIP API: hipEventSynchronize). Waits for one that has
    /// not.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn event_synchronize(&self, event: u64) -> HipCode {
        let device = self.check_event(event)?;
        self.synchronize_event(event, device)
    }

    fn query_event(&self, event: u64, device: i32) -> HipCode {
        self.enter_device(device)?;
        // SAFETY: the event exists.
        self.check(unsafe { self.hip.hipEventQuery(ptr(event)) })
    }

    fn synchronize_event(&self, event: u64, device: i32) -> HipCode {
        self.enter_device(device)?;
        // SAFETY: the event exists.
        self.check(unsafe { self.hip.hipEventSynchronize(ptr(event)) })
    }

    /// HIP API: hipEventElapsedTime, in milliseconds.
    ///
    /// # Errors
    /// `NOT_READY`, `INVALID_HANDLE`; those of HIP.
    pub fn event_elapsed_ms(&self, start: u64, stop: u64) -> HipCode<f32> {
        self.check_event(start)?;
        let device = self.check_event(stop)?;
        self.enter_device(device)?;
        let mut elapsed_ms = 0.0;
        // SAFETY: the events exist, the place outlives the call.
        self.check(unsafe { self.hip.hipEventElapsedTime(&mut elapsed_ms, ptr(start), ptr(stop)) })?;
        Ok(elapsed_ms)
    }

    // ---- markers -----------------------------------------------------------------------------------------------------

    /// Marks the end of what a stream has to do now.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub fn mark(&mut self, stream: u64) -> HipCode<Marker> {
        let (stream, device) = self.stream(stream)?;
        self.mark_handle(stream, device)
    }

    fn mark_handle(&mut self, stream: u64, device: i32) -> HipCode<Marker> {
        self.enter_device(device)?;
        let marker = match self.spare.iter().position(|spare| spare.device == device) {
            Some(at) => self.spare.swap_remove(at),
            None => Marker { event: self.create_event(hipEventDisableTiming)?, device },
        };
        // SAFETY: stream and event exist.
        match self.check(unsafe { self.hip.hipEventRecord(ptr(marker.event), ptr(stream)) }) {
            Ok(()) => Ok(marker),
            Err(code) => {
                self.discard(marker);
                Err(code)
            }
        }
    }

    /// Marks the end of everything that the owner has enqueued.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn mark_all(&mut self) -> HipCode<Vec<Marker>> {
        let null = self.null_used.iter().map(|&device| (0, device));
        let own = self.per_thread.iter().map(|(&device, &stream)| (stream, device));
        let streams: Vec<_> =
            null.chain(own).chain(self.streams.iter().map(|(&stream, &device)| (stream, device))).collect();
        let mut markers = Vec::with_capacity(streams.len());
        for (stream, device) in streams {
            match self.mark_handle(stream, device) {
                Ok(marker) => markers.push(marker),
                Err(code) => {
                    markers.into_iter().for_each(|marker| self.discard(marker));
                    return Err(code);
                }
            }
        }
        Ok(markers)
    }

    /// Whether the work before a marker is done.
    ///
    /// # Errors
    /// Those of HIP.
    pub fn is_reached(&self, marker: &Marker) -> HipCode<bool> {
        let result = self.query_event(marker.event, marker.device);
        if result == Err(hipErrorNotReady) { Ok(false) } else { result.map(|()| true) }
    }

    /// What the work before a marker that was reached has to report; waits for one that was not.
    ///
    /// # Errors
    /// What surfaced in the work; those of HIP.
    pub fn finish(&mut self, marker: Marker) -> HipCode {
        let result = self.synchronize_event(marker.event, marker.device);
        self.discard(marker);
        result
    }

    /// The marker means nothing any more.
    pub fn discard(&mut self, marker: Marker) {
        self.spare.push(marker);
    }

    // ---- what is released later --------------------------------------------------------------------------------------

    /// Releases something once the markers are reached; now, if they are.
    ///
    /// # Errors
    /// Those of a release now.
    pub(super) fn retire(&mut self, markers: Vec<Marker>, what: Thing) -> HipCode {
        let retired = Retired { markers, what };
        if self.is_over(&retired) {
            return self.release_retired(retired);
        }
        self.retired.push(retired);
        Ok(())
    }

    /// Whether the device is done with something. What a device does not tell is not over.
    fn is_over(&self, retired: &Retired) -> bool {
        retired.markers.iter().all(|marker| self.is_reached(marker) == Ok(true))
    }

    /// Releases what was retired and is not used any more. Cheap when there is nothing.
    pub fn collect(&mut self) {
        while self.retired.first().is_some_and(|first| self.is_over(first)) {
            let first = self.retired.remove(0);
            Self::note(self.release_retired(first));
        }
    }

    pub(super) fn retired_all(&mut self) {
        for retired in std::mem::take(&mut self.retired) {
            Self::note(self.release_retired(retired));
        }
    }

    /// Nobody waits for this error any more.
    pub(super) fn note(result: HipCode) {
        if let Err(code) = result {
            tracing::warn!(code, "something that is not used any more is not released");
        }
    }

    fn release_retired(&mut self, retired: Retired) -> HipCode {
        retired.markers.into_iter().for_each(|marker| self.discard(marker));
        match retired.what {
            Thing::Stream(stream, device) => self.destroy_stream(stream, device),
            Thing::Module(handle, module) => self.unload(handle, &module),
            Thing::Memory(ptr, memory) => self.free_now(ptr, &memory),
        }
    }
}
