//! The port to a real worker: each method is a request of the protocol, or an access to the process's own memory.

use std::borrow::Cow;
use std::ops::Range;

use hipr_abi::{
    hipEventDisableTiming, hipMemAttachGlobal, hipStreamCaptureModeRelaxed, hipStreamNonBlocking,
};
use hipr_client::{Connection, Download, Extra, Rows, UPLOAD_MIN_BYTES, Upload};
use hipr_proto::op::{self, LaunchKernel, PACKED_MIN_BYTES, kind};
use hipr_proto::{Features, HipError, HipResult, Op};

use super::links::Link;
use super::memory::Allocation;
use super::placer::Kind;
use super::port::{Ahead, ChangesAnswer, HostMemory, Port, Release, Wait, Writes, WrittenPages};
use super::{Worker, lock};
use crate::command::{Arguments, KernelLaunch, MemoryCopy, Pattern, Transfer};
use crate::convert::{Event, Ptr};
use crate::stream::order::{PER_THREAD, on_wire};
use crate::thread;

/// Passes `$with` the request for a transfer: its layout depends on the copy's shape, its name on whether the caller waits.
macro_rules! request {
    ($transfer:expr, |$request:ident| $with:expr) => {{
        let t = $transfer;
        let (dst, src, size) = (t.copy.dst, t.copy.src, t.copy.size);
        if size.depth > 1 {
            let all = op::Memcpy3D {
                src_ptr: t.from,
                src_pitch: src.pitch as u64,
                src_height: src.rows as u64,
                src_x: 0,
                src_y: 0,
                src_z: 0,
                dst_ptr: t.to,
                dst_pitch: dst.pitch as u64,
                dst_height: dst.rows as u64,
                dst_x: 0,
                dst_y: 0,
                dst_z: 0,
                width: size.width as u64,
                height: size.height as u64,
                depth: size.depth as u64,
                kind: t.kind,
                reserved: 0,
                stream: on_wire(t.stream).0,
            };
            if t.is_blocking {
                let $request = &all;
                $with
            } else {
                let $request = &op::Memcpy3DAsync(all);
                $with
            }
        } else if size.height > 1 {
            let all = op::Memcpy2D {
                dst: t.to,
                dpitch: dst.pitch as u64,
                src: t.from,
                spitch: src.pitch as u64,
                width: size.width as u64,
                height: size.height as u64,
                kind: t.kind,
                reserved: 0,
                stream: on_wire(t.stream).0,
            };
            if t.is_blocking {
                let $request = &all;
                $with
            } else {
                let $request = &op::Memcpy2DAsync(all);
                $with
            }
        } else {
            let size = size.width as u64;
            let all = op::Memcpy { dst: t.to, src: t.from, size, kind: t.kind, stream: on_wire(t.stream).0 };
            if t.is_blocking {
                let $request = &all;
                $with
            } else {
                let $request = &op::MemcpyAsync(all);
                $with
            }
        }
    }};
}

/// Returns the program's memory that a copy from the device writes to.
///
/// # Errors
/// `hipErrorInvalidValue`: it goes beyond all memory.
fn rows_of(transfer: &Transfer) -> HipResult<Rows> {
    let MemoryCopy { dst, size, .. } = transfer.copy;
    Ok(Rows {
        start: dst.at.as_mut_ptr(),
        width: size.width,
        height: size.height,
        pitch: dst.pitch,
        slice: dst.slice().ok_or(HipError::INVALID_VALUE)?,
    })
}

impl Worker {
    /// Returns the handle of a stream on the wire, and the part that a request for it needs besides its fields.
    #[inline]
    pub(crate) fn on<'a>(&self, stream: u64) -> (u64, Extra<'a>) {
        let (handle, device) = on_wire(stream);
        let device = device.unwrap_or_else(thread::device);
        (handle, Extra { device: Some(device), ..Extra::default() })
    }

    /// Returns the link to the worker of a stream, the stream's handle there, and the device that has to be current for it there.
    fn link_on(&self, stream: u64) -> (&Link, u64, Option<i32>) {
        let (handle, extra) = self.on(stream);
        let device = extra.device.unwrap_or(0);
        let links = self.links();
        let link = if handle > PER_THREAD { links.of_handle(handle) } else { links.of_device(device) };
        let is_there = link.number() == links.of_device(device).number();
        (link, link.unmarked(handle), is_there.then(|| self.there(device)))
    }

    /// Asks about a stream, as [`ask`](Self::ask) does.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub(crate) fn ask_on<O: Op>(&self, stream: u64, op: impl FnOnce(u64) -> O) -> HipResult<O::Reply> {
        let (stream, extra) = self.on(stream);
        Ok(self.links().ask_with(&op(stream), extra)?)
    }

    /// Sends work of a stream, as [`put`](Self::put) does.
    ///
    /// # Errors
    /// A lost connection.
    #[inline]
    fn put_on<O: Op>(&self, stream: u64, op: impl FnOnce(u64) -> O) -> HipResult<()> {
        let (stream, extra) = self.on(stream);
        Ok(self.links().tell_with(&op(stream), Extra { is_noted: true, ..extra })?)
    }

    /// Copies consecutive bytes to the device by name or packed, where that pays; returns false, and has done nothing, if it does not.
    fn upload(&self, transfer: &Transfer, bytes: &[u8]) -> HipResult<bool> {
        let size = transfer.copy.size;
        if transfer.kind != kind::HOST_TO_DEVICE || (size.height, size.depth) != (1, 1) {
            return Ok(false);
        }
        let &Transfer { to: dst, is_blocking: waits, .. } = transfer;
        let (link, stream, device) = self.link_on(transfer.stream);
        let upload = Upload { dst, stream, waits, device };
        let is_named = bytes.len() >= UPLOAD_MIN_BYTES && link.connection.upload(&upload, bytes)?;
        Ok(is_named || link.connection.upload_packed(&upload, bytes, false, true)?)
    }

    /// Copies consecutive bytes to the program packed, where that pays; returns false, and has done nothing, if it does not.
    fn download(&self, transfer: &Transfer) -> HipResult<bool> {
        let MemoryCopy { dst, size, .. } = transfer.copy;
        if transfer.kind != kind::DEVICE_TO_HOST
            || (size.height, size.depth) != (1, 1)
            || size.width < PACKED_MIN_BYTES
            || !self.features().contains(Features::PACKED)
        {
            return Ok(false);
        }
        let (link, stream, device) = self.link_on(transfer.stream);
        let download = Download { src: transfer.from, stream, device };
        // SAFETY: host memory that the caller names as the destination of this copy.
        let into = unsafe { dst.at.host_bytes_mut(size.width) };
        Ok(link.connection.download_packed(&download, into)?)
    }

    /// Frees memory of a device on its worker.
    ///
    /// # Errors
    /// A lost connection.
    pub(crate) fn release(&self, device: i32, release: Release) -> HipResult<()> {
        thread::with_device(device, || match release {
            Release::Device(device_ptr) => self.free(device_ptr, &op::Free { device_ptr }),
            Release::Host(device_ptr) => self.free(device_ptr, &op::FreeHost { device_ptr }),
        })
    }
}

impl HostMemory for Worker {
    fn read_host(&self, at: Ptr, into: &mut [u8]) {
        // Memory is read page by page, to be compared.
        self.written.count_compared();
        // SAFETY: mirrored memory: it was given to the program or registered by it, and is not freed as long as the mirror, whose lock
        // the caller has, knows of it.
        unsafe { core::ptr::copy_nonoverlapping(at.as_mut_ptr(), into.as_mut_ptr(), into.len()) };
    }

    fn write_host(&self, at: Ptr, bytes: &[u8]) {
        // SAFETY: as in `read_host`; the bytes are not part of that memory.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at.as_mut_ptr(), bytes.len()) };
    }
}

impl WrittenPages for Worker {
    fn track(&self, at: Ptr, len: usize, is_own: bool) -> Option<Range<usize>> {
        // Each worker's copy is compared with what was written since that worker was told, and notes are of the last time.
        if self.links().are_several() { None } else { self.written.track(at, len, is_own) }
    }

    fn untrack(&self, range: Range<usize>) {
        self.written.untrack(range);
    }

    fn writes(&self) -> Writes {
        self.written.writes()
    }

    fn take(&self, range: Range<usize>) -> Option<Vec<Range<usize>>> {
        self.written.take(range)
    }
}

impl Port for Worker {
    fn allocation(&self, ptr: Ptr) -> Option<Allocation> {
        self.memory().extent(ptr)
    }

    fn forget_allocation(&self, ptr: Ptr) {
        self.memory().remove(ptr);
    }

    fn host_bytes(&self, at: Ptr, len: usize) -> Cow<'_, [u8]> {
        // SAFETY: host memory that the caller names as the source of a copy; it may not change before the copy returns, and we are
        // done with it then.
        Cow::Borrowed(unsafe { at.host_bytes(len) })
    }

    fn copy_host(&self, copy: &MemoryCopy) {
        let MemoryCopy { dst, src, size } = *copy;
        for z in 0..size.depth {
            for y in 0..size.height {
                let to = dst.at.offset((z * dst.rows + y) * dst.pitch);
                let from = src.at.offset((z * src.rows + y) * src.pitch);
                // SAFETY: host memory that the caller names as source and destination of this copy; the rows may overlap.
                unsafe { core::ptr::copy(from.as_mut_ptr::<u8>(), to.as_mut_ptr(), size.width) };
            }
        }
    }

    fn allocate(&self, device: i32, host: Ptr, len: usize) -> HipResult<u64> {
        // All devices may be told of it, and each reaches its own memory only.
        let (kind, flags) = match self.device_count()? {
            ..=1 => (Kind::Device, 0),
            _ => (Kind::Managed, hipMemAttachGlobal),
        };
        thread::with_device(device, || {
            if self.links().are_several() && self.place_at(kind, host.wire(), len as u64, flags)? {
                return Ok(host.wire());
            }
            Worker::allocate(self, kind, len as u64, flags)
        })
    }

    fn create_event(&self, device: i32) -> HipResult<Event> {
        let create = || self.create(&op::EventCreate { flags: hipEventDisableTiming });
        thread::with_device(device, create).map(Event::from_wire)
    }

    fn create_stream(&self, device: i32) -> HipResult<u64> {
        let create = || self.create(&op::StreamCreate { flags: hipStreamNonBlocking, priority: 0 });
        thread::with_device(device, create)
    }

    fn fetch(&self, ranges: &[(u64, usize)], stream: u64) -> HipResult<Vec<Vec<u8>>> {
        let (link, stream, _) = self.link_on(stream);
        let mut copies: Vec<Vec<u8>> = ranges.iter().map(|(_, len)| vec![0; *len]).collect();
        let reads: Vec<_> = ranges
            .iter()
            .zip(&mut copies)
            .map(|((src, len), copy)| {
                let size = *len as u64;
                let request = op::Memcpy { dst: 0, src: *src, size, kind: kind::DEVICE_TO_HOST, stream };
                (op::MemcpyAsync(request), Rows::one(copy.as_mut_ptr(), *len))
            })
            .collect();
        // SAFETY: the copies are ours during the call.
        unsafe { link.connection.read_all(&reads) }?;
        Ok(copies)
    }

    fn tells_changes(&self) -> bool {
        self.features().contains(Features::PAGES)
    }

    fn changes(&self, ranges: &[op::MemChanges]) -> HipResult<Vec<ChangesAnswer>> {
        Ok(self.links().ask_changes(ranges)?)
    }

    fn can_ask_behind(&self, copy: &Transfer) -> bool {
        !self.link_on(copy.stream).0.connection.packs_reads(copy.copy.size.width)
    }

    fn ask(&self, question: u64, ahead: Ahead<'_>, ranges: &[op::MemChanges]) -> HipResult<()> {
        let (links, extra) = (self.links(), self.extra());
        let wait = match ahead {
            Ahead::Nothing => None,
            Ahead::Wait(wait) => Some(wait),
            Ahead::Copy(transfer) => {
                let (rows, (_, extra)) = (rows_of(transfer)?, self.on(transfer.stream));
                let begun = request!(transfer, |request| {
                    // SAFETY: host memory that the caller names as the destination of this copy, until it has taken the answers.
                    unsafe { links.start_read(request, extra, rows, ranges) }
                })?;
                lock(&self.questions).insert(question, begun);
                return Ok(());
            }
        };
        let flight = match wait {
            None => links.start_changes(ranges),
            Some(Wait::Device(device)) => {
                let extra = Extra { device: Some(device), ..extra };
                links.start_all(&op::DeviceSynchronize {}, extra, ranges)
            }
            Some(Wait::Stream(stream)) => {
                let (stream, extra) = self.on(stream);
                links.start_all(&op::StreamSynchronize { stream }, extra, ranges)
            }
            Some(Wait::Event(event)) => {
                let event = event.wire();
                links.start_all(&op::EventSynchronize { event }, extra, ranges)
            }
            Some(Wait::QueryStream(stream)) => {
                let (stream, extra) = self.on(stream);
                links.start_all(&op::StreamQuery { stream }, extra, ranges)
            }
            Some(Wait::QueryEvent(event)) => {
                let event = event.wire();
                links.start_all(&op::EventQuery { event }, extra, ranges)
            }
            Some(Wait::WatchStream(stream, number)) => {
                let (stream, extra) = self.on(stream);
                links.start_all(&op::StreamWatch { stream, number }, extra, ranges)
            }
            Some(Wait::WatchEvent(event, number)) => {
                let event = event.wire();
                links.start_all(&op::EventWatch { event, number }, extra, ranges)
            }
        }?;
        lock(&self.questions).insert(question, flight);
        Ok(())
    }

    fn answers(&self, question: u64) -> (HipResult<()>, Vec<ChangesAnswer>) {
        let flight = lock(&self.questions).remove(&question);
        let landed = flight.ok_or(HipError::UNKNOWN).and_then(|flight| Ok(self.links().finish(flight)?));
        landed.unwrap_or_else(|error| (Err(error), Vec::new()))
    }

    fn begin_capture(&self, stream: u64) -> HipResult<()> {
        self.ask(&op::StreamBeginCapture { stream, mode: hipStreamCaptureModeRelaxed })
    }

    fn end_capture(&self, stream: u64) -> HipResult<u64> {
        Ok(self.ask(&op::StreamEndCapture { stream })?.graph)
    }

    fn instantiate(&self, graph: u64) -> HipResult<u64> {
        self.create(&op::GraphInstantiate { graph, flags: 0 })
    }

    fn wait(&self, wait: Wait) -> HipResult<()> {
        match wait {
            Wait::Device(device) => thread::with_device(device, || self.ask(&op::DeviceSynchronize {})),
            Wait::Stream(stream) => self.ask_on(stream, |stream| op::StreamSynchronize { stream }),
            Wait::Event(event) => self.ask(&op::EventSynchronize { event: event.wire() }),
            Wait::QueryStream(stream) => self.ask_on(stream, |stream| op::StreamQuery { stream }),
            Wait::QueryEvent(event) => self.ask(&op::EventQuery { event: event.wire() }),
            Wait::WatchStream(stream, number) => {
                self.ask_on(stream, |stream| op::StreamWatch { stream, number })
            }
            Wait::WatchEvent(event, number) => self.ask(&op::EventWatch { event: event.wire(), number }),
        }
    }

    fn can_watch(&self) -> bool {
        // Where program and kernels use the same memory, a kernel may tell the program sooner than the worker does.
        let features = self.features();
        features.contains(Features::WATCHES) && !features.contains(Features::SHARED)
    }

    fn hear(&self) {
        self.links().with_each(Connection::hear_arrived, |(), ()| ());
    }

    fn is_quiet(&self) -> bool {
        !self.links().with_each(Connection::may_owe_errors, |any, more| any || more)
    }

    fn ahead(&self) -> (u64, u64) {
        self.links().with_each(Connection::ahead, |(requests, bytes), (more, longer)| {
            (requests + more, bytes + longer)
        })
    }

    fn flush(&self) -> HipResult<()> {
        // A worker that is lost holds up nothing for the others.
        Ok(self.links().with_each(Connection::flush, Result::and)?)
    }

    fn wait_in_order(&self, wait: Wait) -> HipResult<()> {
        match wait {
            Wait::Device(device) => thread::with_device(device, || self.put(&op::DeviceSynchronize {})),
            Wait::Stream(stream) | Wait::QueryStream(stream) | Wait::WatchStream(stream, _) => {
                self.put_on(stream, |stream| op::StreamSynchronize { stream })
            }
            Wait::Event(event) | Wait::QueryEvent(event) | Wait::WatchEvent(event, _) => {
                self.put(&op::EventSynchronize { event: event.wire() })
            }
        }?;
        self.flush()
    }

    fn receive(&self, transfer: &Transfer) -> HipResult<()> {
        if self.download(transfer)? {
            return Ok(());
        }
        let (rows, (_, extra)) = (rows_of(transfer)?, self.on(transfer.stream));
        // SAFETY: host memory that the caller names as the destination of this copy.
        request!(transfer, |request| Ok(unsafe { self.links().read_rows(request, extra, rows) }?))
    }

    fn launch(&self, kernel: &KernelLaunch, arguments: &Arguments, stream: u64) -> HipResult<()> {
        let KernelLaunch { function, config, .. } = kernel;
        let [grid_dim_x, grid_dim_y, grid_dim_z] = config.grid;
        let [block_dim_x, block_dim_y, block_dim_z] = config.block;
        let (stream, extra) = self.on(stream);
        let request = LaunchKernel {
            function: function.handle,
            grid_dim_x,
            grid_dim_y,
            grid_dim_z,
            block_dim_x,
            block_dim_y,
            block_dim_z,
            shared_mem: config.shared_mem_bytes,
            stream,
            num_args: arguments.num_args(),
            launch_flags: arguments.launch_flags(),
            start_event: config.start.wire(),
            stop_event: config.stop.wire(),
            ext_flags: config.ext_flags,
        };
        tracing::trace!("launch {} {:?} x {:?}", function.name, config.grid, config.block);
        let extra = Extra { tail: &arguments.tail, is_noted: true, ..extra };
        let links = self.links();
        if config.is_cooperative {
            links.call(&op::LaunchCooperativeKernel(request), extra)?;
        } else if request.is_timed() || config.ext_flags != 0 {
            links.call(&op::ModuleLaunchKernel(request), extra)?;
        } else {
            links.call(&request, extra)?;
        }
        Ok(())
    }

    fn copy(&self, transfer: &Transfer, inline: &[u8]) -> HipResult<()> {
        if inline.len() >= PACKED_MIN_BYTES && self.upload(transfer, inline)? {
            return Ok(());
        }
        let (_, extra) = self.on(transfer.stream);
        let extra = Extra { inline, is_noted: true, ..extra };
        request!(transfer, |request| Ok(self.links().tell_with(request, extra)?))
    }

    fn copy_peer(&self, copy: &op::MemcpyPeer, is_blocking: bool) -> HipResult<()> {
        let (dst_device, src_device) = (self.there(copy.dst_device), self.there(copy.src_device));
        let request = |stream| op::MemcpyPeer { stream, dst_device, src_device, ..*copy };
        if is_blocking {
            return self.put_on(copy.stream, request);
        }
        self.put_on(copy.stream, |stream| op::MemcpyPeerAsync(request(stream)))
    }

    fn copy_between(&self, copy: &MemoryCopy, dst_stream: u64, src_stream: u64) -> HipResult<bool> {
        self.copy_from_worker_to_worker(copy, dst_stream, src_stream)
    }

    fn write(&self, to: u64, from: Ptr, bytes: &[u8], stream: u64) -> HipResult<()> {
        let (size, kind) = (bytes.len() as u64, kind::HOST_TO_DEVICE);
        if self.tells_changes() && bytes.len() >= PACKED_MIN_BYTES {
            let (link, stream, device) = self.link_on(stream);
            let upload = Upload { dst: to, stream, waits: false, device };
            if link.connection.upload_packed(&upload, bytes, true, false)? {
                return Ok(());
            }
        }
        let (stream, extra) = self.on(stream);
        let extra = Extra { inline: bytes, ..extra };
        if self.tells_changes() {
            let request = op::MemPush { address: to, length: size, stream };
            return Ok(self.links().tell_with(&request, extra)?);
        }
        let request = op::MemcpyAsync(op::Memcpy { dst: to, src: from.wire(), size, kind, stream });
        Ok(self.links().tell_with(&request, extra)?)
    }

    fn watch(&self, at: u64, len: usize, device: i32) -> HipResult<()> {
        let request = op::MemWatch { address: at, length: len as u64 };
        thread::with_device(device, || self.tell(&request))
    }

    fn fill(&self, to: u64, pattern: Pattern, count: usize, stream: u64) -> HipResult<()> {
        let fill = |value, stream| op::Memset { dst: to, value, size: count as u64, stream };
        match pattern {
            Pattern::Byte(value) => self.put_on(stream, |stream| op::MemsetAsync(fill(value.into(), stream))),
            Pattern::Half(value) => self.put_on(stream, |stream| op::MemsetD16(fill(value.into(), stream))),
            Pattern::Word(value) => {
                self.put_on(stream, |stream| op::MemsetD32(fill(value.cast_signed(), stream)))
            }
        }
    }

    fn record(&self, event: Event, stream: u64, is_shared: bool) -> HipResult<()> {
        let request = |stream| op::EventRecord { event: event.wire(), stream };
        if is_shared { self.ask_on(stream, request) } else { self.put_on(stream, request) }
    }

    fn await_event(&self, event: Event, stream: u64, flags: u32) -> HipResult<()> {
        self.put_on(stream, |stream| op::StreamWaitEvent { stream, event: event.wire(), flags })
    }

    fn launch_graph(&self, graph_exec: u64, stream: u64) -> HipResult<()> {
        self.put_on(stream, |stream| op::GraphLaunch { graph_exec, stream })
    }

    fn free_async(&self, ptr: Ptr, stream: u64) -> HipResult<()> {
        let device_ptr = ptr.wire();
        self.accounted(
            self.link_on(stream).0,
            |placer| placer.free_async(device_ptr),
            || self.put_on(stream, |stream| op::FreeAsync { device_ptr, stream }),
        )
    }

    fn destroy_stream(&self, stream: u64) -> HipResult<()> {
        self.destroy(&op::StreamDestroy { stream }, stream)
    }

    fn destroy_event(&self, event: Event) -> HipResult<()> {
        self.destroy(&op::EventDestroy { event: event.wire() }, event.wire())
    }

    fn destroy_graph(&self, graph: u64) -> HipResult<()> {
        self.destroy(&op::GraphDestroy { graph }, graph)
    }

    fn destroy_exec(&self, graph_exec: u64) -> HipResult<()> {
        self.destroy(&op::GraphExecDestroy { graph_exec }, graph_exec)
    }
}
