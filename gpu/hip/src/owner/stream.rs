//! Streams, events, and markers that show what is done.

use core::ptr::null_mut;

use hipr_proto::{HipError, HipResult};

use super::resource::Resource;
use super::{Owner, number, ptr};
use hip_sys::{hipEventDisableTiming, hipEventWaitDefault, hipEventWaitExternal};

/// The last handle of the null stream.
const NULL_MAX: u64 = 1;
/// The handle of the per-thread stream.
const PER_THREAD: u64 = 2;

/// A stream that the owner has created. The library gives the handle of a destroyed stream to a new one; the number is given once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Created {
    handle: u64,
    number: u64,
}

/// What the owner knows of an event of the library.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) device: i32,
    /// The stream on which it was recorded last; `None` if that is not one which the program creates and destroys.
    on: Option<Created>,
}

/// A point in a stream. [`Owner::finish`] or [`Owner::discard`] releases it.
#[derive(Debug)]
pub(crate) struct Marker {
    pub(super) event: u64,
    pub(super) info: Event,
    /// Whether it has a time when it is reached.
    is_timed: bool,
}

impl Marker {
    /// Returns the device of its stream.
    pub(crate) fn device(&self) -> i32 {
        self.info.device
    }
}

/// Something that is released when the work before its markers is done.
pub(super) struct Retired {
    markers: Vec<Marker>,
    what: Resource,
}

impl Owner {
    /// Returns the C handle and the device of a stream.
    pub(super) fn stream(&mut self, stream: u64) -> HipResult<(u64, i32)> {
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
            _ => self.streams.get(&stream).map(|&device| (stream, device)).ok_or(HipError::INVALID_HANDLE),
        }
    }

    /// Returns the C handle of a stream, and makes its device current.
    pub(super) fn enter_stream(&mut self, stream: u64) -> HipResult<u64> {
        let (handle, device) = self.stream(stream)?;
        self.enter_device(device)?;
        Ok(handle)
    }

    /// Returns the C handle and the device of an existing stream, for queries.
    fn known_stream(&self, stream: u64) -> HipResult<(u64, i32)> {
        match stream {
            0..=NULL_MAX => Ok((0, self.device)),
            PER_THREAD => Ok((self.per_thread.get(&self.device).copied().unwrap_or(0), self.device)),
            _ => self.streams.get(&stream).map(|&device| (stream, device)).ok_or(HipError::INVALID_HANDLE),
        }
    }

    pub(super) fn create_stream(&self, flags: u32, priority: i32) -> HipResult<u64> {
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
    pub(crate) fn stream_create(&mut self, flags: u32, priority: i32) -> HipResult<u64> {
        let stream = self.create_stream(flags, priority)?;
        self.last_created += 1;
        self.created.insert(stream, self.last_created);
        self.streams.insert(stream, self.device);
        Ok(stream)
    }

    /// Destroys a stream when its work is done.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn stream_destroy(&mut self, stream: u64) -> HipResult<()> {
        let device = *self.streams.get(&stream).ok_or(HipError::INVALID_HANDLE)?;
        let marker = self.mark(stream)?;
        self.streams.remove(&stream);
        self.retire(vec![marker], Resource::Stream(stream, device))
    }

    pub(super) fn destroy_stream(&mut self, stream: u64, device: i32) -> HipResult<()> {
        self.enter_device(device)?;
        // SAFETY: made by this owner and destroyed once.
        self.check(unsafe { self.hip.hipStreamDestroy(ptr(stream)) })?;
        self.created.remove(&stream);
        Ok(())
    }

    fn created(&self, handle: u64) -> Option<Created> {
        self.created.get(&handle).map(|&number| Created { handle, number })
    }

    /// Returns whether the stream on which an event was recorded is destroyed. Such an event has happened, because the owner destroys a stream
    /// when its work is done. The library must not be asked about it: it reads the memory of the destroyed stream, and 6.4.3 sometimes returns
    /// `hipErrorCapturedEvent`.
    fn is_gone(&self, on: Option<Created>) -> bool {
        on.is_some_and(|on| self.created(on.handle) != Some(on))
    }

    /// HIP API: hipStreamGetFlags.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn stream_flags(&self, stream: u64) -> HipResult<u32> {
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
    pub(crate) fn stream_priority(&self, stream: u64) -> HipResult<i32> {
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
    pub(crate) fn stream_query(&mut self, stream: u64) -> HipResult<()> {
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        self.check(unsafe { self.hip.hipStreamQuery(ptr(stream)) })
    }

    /// HIP API: hipStreamSynchronize, of a stream that the program has created.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; what surfaced in the work; those of HIP.
    pub(crate) fn stream_synchronize(&mut self, stream: u64) -> HipResult<()> {
        let stream = self.enter_stream(stream)?;
        // SAFETY: the stream exists.
        self.check(unsafe { self.hip.hipStreamSynchronize(ptr(stream)) })
    }

    /// Returns whether the program has created the stream.
    pub(crate) fn is_created(&self, stream: u64) -> bool {
        self.streams.contains_key(&stream)
    }

    /// HIP API: hipStreamWaitEvent.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn stream_wait_event(&mut self, stream: u64, event: u64, flags: u32) -> HipResult<()> {
        let Event { on, .. } = self.event(event)?;
        let stream = self.enter_stream(stream)?;
        if self.is_gone(on) {
            return Ok(());
        }
        // The flag is about captures, which are the client's; without one AMD's runtime crashes with it.
        let flags = if flags == hipEventWaitExternal { hipEventWaitDefault } else { flags };
        // SAFETY: stream and event exist.
        self.check(unsafe { self.hip.hipStreamWaitEvent(ptr(stream), ptr(event), flags) })
    }

    // ---- events ------------------------------------------------------------------------------------------------------

    fn create_event(&self, flags: u32) -> HipResult<u64> {
        let mut event = null_mut();
        // SAFETY: the place outlives the call.
        self.check(unsafe { self.hip.hipEventCreateWithFlags(&mut event, flags) })?;
        Ok(number(event))
    }

    /// HIP API: hipEventCreateWithFlags.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn event_create(&mut self, flags: u32) -> HipResult<u64> {
        self.enter()?;
        let event = self.create_event(flags)?;
        self.add_event(event);
        Ok(event)
    }

    /// Adds an event of the current device that was not recorded on a stream of the owner.
    pub(super) fn add_event(&mut self, event: u64) {
        self.events.insert(event, Event { device: self.device, on: None });
    }

    fn event(&self, event: u64) -> HipResult<Event> {
        self.events.get(&event).copied().ok_or(HipError::INVALID_HANDLE)
    }

    /// Returns the device of an event.
    pub(super) fn check_event(&self, event: u64) -> HipResult<i32> {
        self.event(event).map(|event| event.device)
    }

    /// Handles that an event was recorded on a stream with this C handle.
    pub(super) fn recorded(&mut self, event: u64, stream: u64) {
        let on = self.created(stream);
        if let Some(event) = self.events.get_mut(&event) {
            event.on = on;
        }
    }

    /// HIP API: hipEventDestroy.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn event_destroy(&mut self, event: u64) -> HipResult<()> {
        let Event { device, .. } = self.events.remove(&event).ok_or(HipError::INVALID_HANDLE)?;
        self.destroy_event(event, device)
    }

    pub(super) fn destroy_event(&self, event: u64, device: i32) -> HipResult<()> {
        self.enter_device(device)?;
        // SAFETY: made by this owner and destroyed once; HIP keeps what work still needs of it.
        self.check(unsafe { self.hip.hipEventDestroy(ptr(event)) })
    }

    /// HIP API: hipEventRecord.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn event_record(&mut self, event: u64, stream: u64) -> HipResult<()> {
        self.check_event(event)?;
        let stream = self.enter_stream(stream)?;
        // SAFETY: stream and event exist.
        self.check(unsafe { self.hip.hipEventRecord(ptr(event), ptr(stream)) })?;
        self.recorded(event, stream);
        Ok(())
    }

    /// HIP API: hipEventQuery.
    ///
    /// # Errors
    /// `NOT_READY`, `INVALID_HANDLE`; those of HIP.
    pub(crate) fn event_query(&self, event: u64) -> HipResult<()> {
        self.query_event(event, self.event(event)?)
    }

    /// Returns the error of the work before a complete event; waits for one that is not complete (HIP API:
    /// hipEventSynchronize).
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn event_synchronize(&self, event: u64) -> HipResult<()> {
        self.synchronize_event(event, self.event(event)?)
    }

    fn query_event(&self, event: u64, Event { device, on }: Event) -> HipResult<()> {
        if self.is_gone(on) {
            return Ok(());
        }
        self.enter_device(device)?;
        // SAFETY: the event exists.
        self.check(unsafe { self.hip.hipEventQuery(ptr(event)) })
    }

    fn synchronize_event(&self, event: u64, Event { device, on }: Event) -> HipResult<()> {
        if self.is_gone(on) {
            return Ok(());
        }
        self.enter_device(device)?;
        // SAFETY: the event exists.
        self.check(unsafe { self.hip.hipEventSynchronize(ptr(event)) })
    }

    /// HIP API: hipEventElapsedTime, in milliseconds.
    ///
    /// # Errors
    /// `NOT_READY`, `INVALID_HANDLE`; those of HIP.
    pub(crate) fn event_elapsed_ms(&self, start: u64, stop: u64) -> HipResult<f32> {
        self.check_event(start)?;
        let device = self.check_event(stop)?;
        self.enter_device(device)?;
        let mut elapsed_ms = 0.0;
        // SAFETY: the events exist, the place outlives the call.
        self.check(unsafe { self.hip.hipEventElapsedTime(&mut elapsed_ms, ptr(start), ptr(stop)) })?;
        Ok(elapsed_ms)
    }

    // ---- markers -----------------------------------------------------------------------------------------------------

    /// Sets a marker behind the current work of a stream.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn mark(&mut self, stream: u64) -> HipResult<Marker> {
        let (stream, device) = self.stream(stream)?;
        self.mark_handle(stream, device, false)
    }

    /// Sets a marker as [`mark`](Self::mark) does, which has a time when it is reached.
    ///
    /// # Errors
    /// `INVALID_HANDLE`; those of HIP.
    pub(crate) fn mark_timed(&mut self, stream: u64) -> HipResult<Marker> {
        let (stream, device) = self.stream(stream)?;
        self.mark_handle(stream, device, true)
    }

    fn mark_handle(&mut self, stream: u64, device: i32, is_timed: bool) -> HipResult<Marker> {
        self.enter_device(device)?;
        let fits = |spare: &Marker| (spare.info.device, spare.is_timed) == (device, is_timed);
        let event = match self.spare.iter().position(fits) {
            Some(at) => self.spare.swap_remove(at).event,
            None => self.create_event(if is_timed { 0 } else { hipEventDisableTiming })?,
        };
        let marker = Marker { event, info: Event { device, on: self.created(stream) }, is_timed };
        // SAFETY: stream and event exist.
        match self.check(unsafe { self.hip.hipEventRecord(ptr(marker.event), ptr(stream)) }) {
            Ok(()) => Ok(marker),
            Err(error) => {
                self.discard(marker);
                Err(error)
            }
        }
    }

    /// Returns the time between two markers with times that are reached, in seconds; less than 0 if `to` was reached first.
    ///
    /// # Errors
    /// `INVALID_HANDLE` if one is on a stream that is destroyed; those of HIP.
    pub(crate) fn elapsed_s(&self, from: &Marker, to: &Marker) -> HipResult<f64> {
        if self.is_gone(from.info.on) || self.is_gone(to.info.on) {
            return Err(HipError::INVALID_HANDLE);
        }
        self.enter_device(to.info.device)?;
        let mut elapsed_ms = 0.0;
        // SAFETY: the events exist, the place outlives the call.
        self.check(unsafe { self.hip.hipEventElapsedTime(&mut elapsed_ms, ptr(from.event), ptr(to.event)) })?;
        Ok(f64::from(elapsed_ms) / 1e3)
    }

    /// Sets markers behind everything that the owner has enqueued.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn mark_all(&mut self) -> HipResult<Vec<Marker>> {
        self.mark_those(|_| true)
    }

    /// Sets markers behind everything that the owner has enqueued on the current device.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn mark_device(&mut self) -> HipResult<Vec<Marker>> {
        let current = self.device;
        self.mark_those(|device| device == current)
    }

    fn mark_those(&mut self, is_meant: impl Fn(i32) -> bool) -> HipResult<Vec<Marker>> {
        let null = self.null_used.iter().map(|&device| (0, device));
        let own = self.per_thread.iter().map(|(&device, &stream)| (stream, device));
        let streams: Vec<_> = null
            .chain(own)
            .chain(self.streams.iter().map(|(&stream, &device)| (stream, device)))
            .filter(|(_, device)| is_meant(*device))
            .collect();
        let mut markers = Vec::with_capacity(streams.len());
        for (stream, device) in streams {
            match self.mark_handle(stream, device, false) {
                Ok(marker) => markers.push(marker),
                Err(error) => {
                    markers.into_iter().for_each(|marker| self.discard(marker));
                    return Err(error);
                }
            }
        }
        Ok(markers)
    }

    /// Returns whether the work before a marker is done.
    ///
    /// # Errors
    /// Those of HIP.
    pub(crate) fn is_reached(&self, marker: &Marker) -> HipResult<bool> {
        let result = self.query_event(marker.event, marker.info);
        if result == Err(HipError::NOT_READY) { Ok(false) } else { result.map(|()| true) }
    }

    /// Returns the error of the work before a marker, waiting for it if necessary, and releases the marker.
    ///
    /// # Errors
    /// What surfaced in the work; those of HIP.
    pub(crate) fn finish(&mut self, marker: Marker) -> HipResult<()> {
        let result = self.synchronize_event(marker.event, marker.info);
        self.discard(marker);
        result
    }

    /// Releases a marker that is not needed.
    pub(crate) fn discard(&mut self, marker: Marker) {
        self.spare.push(marker);
    }

    // ---- what is released later --------------------------------------------------------------------------------------

    /// Releases something once the markers are reached, possibly now.
    ///
    /// # Errors
    /// Those of a release now.
    pub(super) fn retire(&mut self, markers: Vec<Marker>, what: Resource) -> HipResult<()> {
        let retired = Retired { markers, what };
        if self.is_over(&retired) {
            return self.release_retired(retired);
        }
        self.retired.push(retired);
        Ok(())
    }

    /// Returns whether the device has finished with something; false if that cannot be found out.
    fn is_over(&self, retired: &Retired) -> bool {
        retired.markers.iter().all(|marker| self.is_reached(marker) == Ok(true))
    }

    /// Releases what was retired and is no longer used.
    pub(crate) fn collect(&mut self) {
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

    /// Logs an error that no caller waits for.
    pub(super) fn note(result: HipResult<()>) {
        if let Err(error) = result {
            tracing::warn!(%error, "cannot release an unused object of the HIP runtime");
        }
    }

    fn release_retired(&mut self, retired: Retired) -> HipResult<()> {
        retired.markers.into_iter().for_each(|marker| self.discard(marker));
        match retired.what {
            Resource::Stream(stream, device) => self.destroy_stream(stream, device),
            Resource::Module(handle, module) => self.unload(handle, &module),
            Resource::Memory(ptr, memory) => self.free_now(ptr, &memory),
        }
    }
}
