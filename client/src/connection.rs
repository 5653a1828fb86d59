//! One connection and its session.

mod opening;
mod started;
mod uploading;

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use hipr_io::gather;
use hipr_proto::op::Handles;
use hipr_proto::{Call, Features, HipError, Limits, Misuse, Op, Outbox, ReplyMode, Sender, Wire, op};

use crate::flusher::{Buffered, Flusher};
use crate::listener::{Heard, Listener};
use crate::names::Names;
use crate::notifications::Failure;
use crate::replies::{Bulk, Replies, Rows, Whole};
use crate::statics::{Question, Statics, check_device_count};
use crate::stats::{Counters, Stats};
use crate::transport::Transport;
use crate::uploads::{CacheUse, LinkSpeed, UploadCache, Uploads};
use crate::{CallError, ConnectError, WorkerAddress};
use opening::Opening;
pub use started::Started;

pub use uploading::Upload;

/// The answer to a request: the reply with the bytes behind its fixed part, or the worker's error.
pub type AnswerWithTail<O> = Result<(<O as Op>::Reply, Vec<u8>), HipError>;

/// The parts of a request behind its fixed part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extra<'a> {
    /// Bytes of the tail (names, arrays, arguments), which are copied.
    pub tail: &'a [u8],
    /// Inline bytes behind the tail, which are sent without a copy.
    pub inline: &'a [u8],
    /// The device that has to be current for the request; None if it does not matter.
    pub device: Option<i32>,
}

/// A pointer to the caller's inline bytes; the call returns only after they have been sent.
#[derive(Debug)]
struct Borrowed(*const [u8]);

// SAFETY: only read, and only while the caller who lent them waits in `Inner::submit`.
unsafe impl Send for Borrowed {}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: see the type: `submit` returns when the outbox is empty, or drops what is in it.
        unsafe { &*self.0 }
    }
}

/// A connection to a worker: one session, shared by the threads of a process.
///
/// Dropping it closes the session with SHUTDOWN.
#[derive(Debug)]
pub struct Connection {
    inner: Arc<Inner>,
    features: Features,
}

#[derive(Debug)]
pub(crate) struct Inner {
    this: Weak<Inner>,
    address: WorkerAddress,
    transport: Arc<Transport>,
    writer: Mutex<Writer>,
    replies: Replies,
    lost: OnceLock<()>,
    /// Whether SHUTDOWN is being sent, or was.
    is_closing: AtomicBool,
    flusher: Flusher,
    listener: Listener,
    counters: Counters,
    statics: Statics,
    /// The request for the list of static replies, until somebody has waited for its reply.
    listing: Mutex<Option<Call>>,
    /// The request for the first lease, until somebody has waited for its reply.
    first_lease: Mutex<Option<Call>>,
    uploads: Uploads,
}

#[derive(Debug)]
struct Writer {
    sender: Sender<Borrowed>,
    outbox: Outbox<Borrowed>,
    /// The device that is current in the worker's session.
    device: i32,
    /// The names of what this side has made.
    names: Names,
    /// How fast the link takes bytes.
    speed: LinkSpeed,
    /// Whether SHUTDOWN has been sent.
    closed: bool,
}

impl Connection {
    /// Connects to a worker and opens a session, all within `timeout`; offers all [`FEATURES`](crate::FEATURES).
    ///
    /// # Errors
    /// The worker cannot be reached, does not speak the protocol, does not answer in time, or refuses the session.
    pub fn connect(address: &WorkerAddress, timeout: Duration) -> Result<Self, ConnectError> {
        Self::connect_offering(address, timeout, Some(crate::FEATURES))
    }

    /// Does what [`connect_offering`](Self::connect_offering) does, and offers the use of the worker's cache of uploads as well, if
    /// anything is offered.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with_cache(
        address: &WorkerAddress,
        timeout: Duration,
        offer: Option<Features>,
        cache: UploadCache,
    ) -> Result<Self, ConnectError> {
        let offer = offer.map(|features| match cache.when {
            CacheUse::Off => features,
            CacheUse::Auto | CacheUse::On => features.union(Features::CACHE),
        });
        Self::open(address, timeout, offer, cache)
    }

    /// Does what [`connect`](Self::connect) does, and offers the worker these features of the extension; none at all, as a client
    /// of HIPR 1.0, with `None`. The offer costs no round trip of its own.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_offering(
        address: &WorkerAddress,
        timeout: Duration,
        offer: Option<Features>,
    ) -> Result<Self, ConnectError> {
        Self::open(address, timeout, offer, UploadCache { when: CacheUse::Off, key_file: None })
    }

    fn open(
        address: &WorkerAddress,
        timeout: Duration,
        offer: Option<Features>,
        cache: UploadCache,
    ) -> Result<Self, ConnectError> {
        let end = Instant::now() + timeout;
        let failed = |reason: String| ConnectError { address: address.clone(), reason };
        let no_answer = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                failed(format!("no answer within {} ms", timeout.as_millis()))
            }
            _ => failed(error.to_string()),
        };
        let transport = Transport::connect(address.address(), timeout).map_err(no_answer)?;
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        transport.set_timeout(Some(left)).map_err(no_answer)?;
        let transport = Arc::new(transport);
        let writer = Writer {
            sender: Sender::new(),
            outbox: Outbox::new(),
            device: 0,
            names: Names::default(),
            speed: LinkSpeed::default(),
            closed: false,
        };
        let inner = Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            address: address.clone(),
            transport: Arc::clone(&transport),
            writer: Mutex::new(writer),
            replies: Replies::new(transport, Limits::default()),
            lost: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            flusher: Flusher::default(),
            listener: Listener::default(),
            counters: Counters::default(),
            statics: Statics::default(),
            listing: Mutex::default(),
            first_lease: Mutex::default(),
            uploads: Uploads::new(cache),
        });
        let features = match inner.open_session(offer) {
            Ok(features) => features,
            Err(Opening::Refused(error)) => {
                return Err(failed(format!("the worker refuses the session: {error}")));
            }
            Err(Opening::Failed(reason)) => {
                let late = Instant::now() >= end;
                return Err(failed(if late {
                    format!("no answer within {} ms", timeout.as_millis())
                } else {
                    reason
                }));
            }
        };
        inner.transport.set_timeout(None).map_err(no_answer)?;
        Ok(Self { inner, features })
    }

    /// Returns the worker's address.
    pub fn address(&self) -> &WorkerAddress {
        &self.inner.address
    }

    /// Returns the features of the extension that the worker has accepted.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Returns the connection's counters.
    pub fn stats(&self) -> Stats {
        self.inner.counters.snapshot()
    }

    /// Returns whether the connection is lost. A lost connection never comes back.
    pub fn is_lost(&self) -> bool {
        self.inner.lost.get().is_some()
    }

    /// Returns the file descriptors that the connection has open; -1 stands for none.
    pub fn raw_fds(&self) -> [RawFd; 2] {
        self.inner.transport.raw_fds()
    }

    /// Returns the number of the worker's devices.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `hipErrorUnknown` for a number that no machine has.
    pub fn device_count(&self) -> Result<i32, CallError> {
        let count = self.ask(&op::GetDeviceCount {})?.count;
        check_device_count(count).map_err(|error| {
            tracing::error!("the worker at {} says that it has {count} devices", self.inner.address);
            CallError::Hip(error)
        })
    }

    /// Sends a request and waits for its answer. That of a static operation ([`Op::STATICS`]) is asked for only once, and not at all
    /// if the worker has listed it.
    ///
    /// # Errors
    /// What the worker says: this request's own error, or one of an unanswered request before it (HIPR 1.0,
    /// Error Handling). Or the connection is lost.
    pub fn ask<O: Op>(&self, op: &O) -> Result<O::Reply, CallError> {
        self.ask_with(op, Extra::default())
    }

    /// Does what [`ask`](Self::ask) does for a request with more than a fixed part.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_with<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<O::Reply, CallError> {
        self.ask_tail(op, extra).map(|(reply, _)| reply)
    }

    /// Does what [`ask_with`](Self::ask_with) does and returns the bytes behind the reply's fixed part, too.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn ask_tail<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<(O::Reply, Vec<u8>), CallError> {
        let question = Question::of(op, extra.device);
        let whole = match self.inner.known(question.as_ref()) {
            Some(whole) => whole,
            None => {
                let whole = self.inner.ask(op, extra, Bulk::Collect(Vec::new()))?;
                if let Some(question) = question {
                    self.inner.statics.remember(question, &whole);
                }
                whole
            }
        };
        let reply = decode::<O>(&whole)?;
        Ok((reply, whole.tail))
    }

    /// Sends many requests of one kind, waits once and returns the answers in order.
    ///
    /// # Errors
    /// The connection is lost. Errors of single requests are in the list.
    pub fn ask_all<O: Op>(
        &self,
        ops: &[O],
        device: Option<i32>,
    ) -> Result<Vec<Result<O::Reply, HipError>>, CallError> {
        let answers = self.ask_all_tails(ops, device)?;
        Ok(answers.into_iter().map(|answer| answer.map(|(reply, _)| reply)).collect())
    }

    /// Does what [`ask_all`](Self::ask_all) does and returns the bytes behind the replies' fixed parts, too.
    ///
    /// # Errors
    /// As [`ask_all`](Self::ask_all).
    pub fn ask_all_tails<O: Op>(
        &self,
        ops: &[O],
        device: Option<i32>,
    ) -> Result<Vec<AnswerWithTail<O>>, CallError> {
        let questions: Vec<_> = ops.iter().map(|op| Question::of(op, device)).collect();
        let mut answers: Vec<_> =
            questions.iter().map(|question| self.inner.known(question.as_ref())).collect();
        let unknown = ops.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
        let requests = unknown.map(|(op, _)| (op, Bulk::Collect(Vec::new()))).collect();
        let asked = self.inner.ask_all(requests, device)?;
        let open = questions.iter().zip(&mut answers).filter(|(_, answer)| answer.is_none());
        for ((question, answer), whole) in open.zip(asked) {
            if let Some(question) = question {
                self.inner.statics.remember(*question, &whole);
            }
            *answer = Some(whole);
        }
        let answer = |whole: Whole| match decode::<O>(&whole) {
            Ok(reply) => Ok(Ok((reply, whole.tail))),
            Err(CallError::Hip(error)) => Ok(Err(error)),
            Err(CallError::Lost) => Err(CallError::Lost),
        };
        answers.into_iter().flatten().map(answer).collect()
    }

    /// Sends a request whose reply has inline bytes and receives them into `into`, whose length `op` names.
    ///
    /// # Errors
    /// As [`ask`](Self::ask); `into` may then have been written in part.
    pub fn read<O: Op>(&self, op: &O, extra: Extra<'_>, into: &mut [u8]) -> Result<O::Reply, CallError> {
        let rows = Rows::one(into.as_mut_ptr(), into.len());
        // SAFETY: `into` is ours during the call.
        unsafe { self.read_rows(op, extra, rows) }
    }

    /// Sends a request whose reply has inline bytes and receives them into rows of memory, whose total length `op` names.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    ///
    /// # Safety
    /// The rows are writable and used by nobody else during the call.
    pub unsafe fn read_rows<O: Op>(
        &self,
        op: &O,
        extra: Extra<'_>,
        rows: Rows,
    ) -> Result<O::Reply, CallError> {
        decode::<O>(&self.inner.ask(op, extra, Bulk::Into(rows))?)
    }

    /// Sends many requests that read memory and waits once for all replies.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    ///
    /// # Safety
    /// As for [`read_rows`](Self::read_rows), for each.
    pub unsafe fn read_all<O: Op>(&self, reads: &[(O, Rows)]) -> Result<(), CallError> {
        let requests = reads.iter().map(|(op, rows)| (op, Bulk::Into(*rows))).collect();
        for whole in self.inner.ask_all(requests, None)? {
            decode::<O>(&whole)?;
        }
        Ok(())
    }

    /// Sends a request without waiting for a reply (`NO_REPLY`; HIPR 1.0, Fire-and-Forget). The worker reports its error
    /// with a later reply. Inline bytes have been sent or copied when this returns.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn tell<O: Op>(&self, op: &O) -> Result<(), CallError> {
        self.tell_with(op, Extra::default())
    }

    /// Does what [`tell`](Self::tell) does for a request with more than a fixed part.
    ///
    /// # Errors
    /// As [`tell`](Self::tell).
    pub fn tell_with<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<(), CallError> {
        let mut writer = self.inner.writer()?;
        self.inner.queue(&mut writer, op, extra, None)?;
        self.inner.send_if_wanted(&mut writer)
    }

    /// Sends a request and waits for its reply if the operation has one; returns None otherwise.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn call<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<Option<O::Reply>, CallError> {
        if op.wants_reply() {
            self.ask_with(op, extra).map(Some)
        } else {
            self.tell_with(op, extra).map(|()| None)
        }
    }

    /// Makes an object and returns its handle. If the worker has accepted [`Features::NAMES`], that is a name which is chosen here, and
    /// nothing is waited for: an error of the request comes with a later reply, and the name then stands for nothing. Otherwise
    /// waits for the worker's handle. A name is [freed](Self::free_name) when its object is destroyed.
    ///
    /// # Errors
    /// The connection is lost; without names, what the worker says.
    pub fn create<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<u64, CallError> {
        debug_assert!(O::OPCODE.makes().is_some(), "{} makes nothing that has a name", O::OPCODE);
        if self.features().contains(Features::NAMES) {
            let mut writer = self.inner.writer()?;
            if let Some(name) = writer.names.choose() {
                let name = name.number();
                // Nothing may come between the two: the device is set before the name is told.
                let device = Extra { device: extra.device, ..Extra::default() };
                self.inner.queue(&mut writer, &op::Name { name }, device, None)?;
                self.inner.queue(&mut writer, op, extra, None)?;
                self.inner.send_if_wanted(&mut writer)?;
                return Ok(name);
            }
        }
        self.ask_with(op, extra).map(Handles::first_handle)
    }

    /// Allows a name to be chosen anew, after the request that destroys its object was sent; does nothing for other handles.
    pub fn free_name(&self, handle: u64) {
        if let Ok(mut writer) = self.inner.writer() {
            writer.names.free(handle);
        }
    }

    /// Sends a request that destroys all objects of the session, and waits for its answer; their names may be chosen anew.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn destroy_all<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<O::Reply, CallError> {
        // What another thread makes meanwhile may come behind the request.
        let turn = self.inner.writer()?.names.turn();
        let reply = self.ask_with(op, extra)?;
        self.inner.writer()?.names.free_before(turn);
        Ok(reply)
    }

    /// Passes what the worker tells of failed requests to `listener` instead of writing it to the log. It is called on a thread that
    /// waits for a reply, and must not use the connection. Has no effect the second time.
    pub fn on_failure(&self, listener: impl Fn(&Failure) + Send + Sync + 'static) {
        self.inner.replies.listeners().on_failure(Box::new(listener));
    }

    /// Starts a thread that calls `answer` with the number of each recall of the lease (`MEM_RECALL`), also while no thread waits for a
    /// reply. Has no effect the second time, or without [`Features::NOTIFICATIONS`].
    pub fn on_recall(&self, answer: impl Fn(u64) + Send + Sync + 'static) {
        if !self.features().contains(Features::NOTIFICATIONS) {
            return;
        }
        let inner = self.inner.this.clone();
        self.inner.replies.listeners().on_recall(Box::new(move |number| {
            if let Some(inner) = inner.upgrade() {
                inner.listener.recall(number);
            }
        }));
        self.inner.listener.start(self.inner.this.clone(), Box::new(answer));
    }

    /// Sends all buffered requests.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn flush(&self) -> Result<(), CallError> {
        let mut writer = self.inner.writer()?;
        self.inner.send(&mut writer)
    }

    /// Sends all buffered requests and SHUTDOWN; waits at most `timeout` for the reply, after which the worker has executed
    /// everything. Every later call fails.
    pub fn close(&self, timeout: Duration) {
        self.inner.close(timeout, ReplyMode::Always);
    }

    /// Sends all buffered requests and SHUTDOWN, to which it wants no reply; takes at most `timeout`. The worker executes everything
    /// that it was sent. Every later call fails.
    pub fn leave(&self, timeout: Duration) {
        self.inner.close(timeout, ReplyMode::Never);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.inner.close(Duration::from_secs(1), ReplyMode::Always);
        self.inner.flusher.end();
        self.inner.listener.end();
    }
}

impl Heard for Inner {
    fn listener(&self) -> &Listener {
        &self.listener
    }

    fn reads(&self) -> u64 {
        self.replies.reads()
    }

    fn listen(&self) -> bool {
        self.replies.listen(&self.counters).unwrap_or_else(|reason| {
            // After a good-bye the worker ends the connection.
            if !self.is_closing.load(Ordering::SeqCst) {
                self.lose(&reason);
            }
            false
        })
    }
}

impl Buffered for Inner {
    fn flusher(&self) -> &Flusher {
        &self.flusher
    }

    fn flush(&self) {
        if let Ok(mut writer) = self.writer() {
            // A failure is kept: the next call says it.
            let _ = self.send(&mut writer);
        }
    }
}

impl Inner {
    /// Locks the sending side; fails if the connection is closed or lost.
    #[inline]
    fn writer(&self) -> Result<MutexGuard<'_, Writer>, CallError> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.closed || self.lost.get().is_some() { Err(CallError::Lost) } else { Ok(writer) }
    }

    fn ask<O: Op>(&self, op: &O, extra: Extra<'_>, bulk: Bulk) -> Result<Whole, CallError> {
        let mut writer = self.writer()?;
        let id = self.queue(&mut writer, op, extra, Some(bulk))?;
        let sent = self.send_if_wanted(&mut writer);
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        // Memory was lent: the wait has to be over before this returns, even where nothing was sent.
        let whole = self.wait(id);
        sent.and(whole)
    }

    fn ask_all<O: Op>(
        &self,
        requests: Vec<(&O, Bulk)>,
        device: Option<i32>,
    ) -> Result<Vec<Whole>, CallError> {
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let mut writer = self.writer()?;
        let mut ids = Vec::with_capacity(requests.len());
        let extra = Extra { device, ..Extra::default() };
        let mut queued = Ok(());
        for (op, bulk) in requests {
            match self.queue(&mut writer, op, extra, Some(bulk)) {
                Ok(id) => ids.push(id),
                Err(error) => {
                    queued = Err(error);
                    break;
                }
            }
            if writer.sender.queued_bytes() >= hipr_proto::COALESCE_BYTES / 2 {
                queued = self.send(&mut writer);
            }
        }
        let sent = queued.and_then(|()| self.send(&mut writer));
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        // Memory was lent for each: all waits have to be over before this returns.
        let wholes: Vec<_> = ids.into_iter().map(|id| self.wait(id)).collect();
        sent?;
        wholes.into_iter().collect()
    }

    fn wait(&self, id: u32) -> Result<Whole, CallError> {
        self.replies.wait(id, &self.counters).map_err(|reason| {
            if let Some(reason) = reason {
                self.lose(&reason);
            }
            CallError::Lost
        })
    }

    /// Encodes a request, behind the `SET_DEVICE` that it may need. With `bulk` it is answered, and the call's id is
    /// returned; otherwise it is not answered. The sender may then hold borrowed bytes, so the caller has to call
    /// `send_if_wanted` next.
    fn queue<O: Op>(
        &self,
        writer: &mut Writer,
        op: &O,
        extra: Extra<'_>,
        bulk: Option<Bulk>,
    ) -> Result<u32, CallError> {
        if let Some(device) = extra.device
            && device != writer.device
        {
            // The caller knows that the device exists, so nothing is waited for.
            let set = op::SetDevice { device_id: device };
            let queued = writer.sender.request_with(&set, &[], None, ReplyMode::Never);
            self.queued(queued.map(drop))?;
            writer.device = device;
            if writer.sender.wants_flush() {
                self.send(writer)?;
            }
        }
        let reply_mode = if bulk.is_some() { ReplyMode::Always } else { ReplyMode::Never };
        let inline = (!extra.inline.is_empty()).then_some(Borrowed(extra.inline));
        let queued = writer.sender.request_with(op, extra.tail, inline, reply_mode);
        let call = self.queued(queued)?;
        tracing::trace!("request {}", O::OPCODE);
        match (call, bulk) {
            (Some(call), Some(bulk)) => {
                self.replies.expect(call, bulk);
                Ok(call.id())
            }
            _ => Ok(0),
        }
    }

    #[inline]
    fn queued<T>(&self, queued: Result<T, Misuse>) -> Result<T, CallError> {
        match queued {
            Ok(value) => {
                self.counters.add_locked(|c| &c.frames_sent, 1);
                Ok(value)
            }
            Err(misuse) => {
                tracing::error!("cannot encode a request: {misuse}; this is a bug of hipr");
                Err(CallError::Hip(HipError::UNKNOWN))
            }
        }
    }

    /// Sends the buffered requests that cannot wait; leaves others to the flusher.
    #[inline]
    fn send_if_wanted(&self, writer: &mut Writer) -> Result<(), CallError> {
        if writer.sender.wants_flush() {
            self.send(writer)
        } else {
            self.flusher.due(&self.this);
            Ok(())
        }
    }

    #[inline(never)]
    fn send(&self, writer: &mut Writer) -> Result<(), CallError> {
        self.transmit(writer).map_err(|error| {
            self.lose(&error.to_string());
            CallError::Lost
        })
    }

    /// Writes everything that is queued. Afterwards the sender holds no borrowed bytes, even after an error.
    fn transmit(&self, writer: &mut Writer) -> io::Result<()> {
        let Writer { sender, outbox, speed, .. } = writer;
        while sender.poll_transmit(outbox) {
            // Who launches kernels does not pay for two looks at the clock.
            let start = (outbox.len_bytes() >= LinkSpeed::WRITE_MIN_BYTES).then(Instant::now);
            match gather(outbox.slices(), |slices| self.transport.write(slices)) {
                Ok(n) => {
                    if let Some(start) = start {
                        speed.note(n as u64, start, Instant::now());
                    }
                    self.counters.add_locked(|c| &c.writes, 1);
                    self.counters.add_locked(|c| &c.bytes_sent, n as u64);
                    outbox.advance(n);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    *outbox = Outbox::new();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Marks the connection as lost: logs the reason once and wakes all waiting threads.
    fn lose(&self, reason: &str) {
        if self.lost.set(()).is_ok() {
            tracing::error!(
                "lost the connection to the worker at {}: {reason}; every further HIP call fails",
                self.address
            );
        }
        // Whoever reads wakes up as well.
        self.transport.shutdown();
        self.replies.close();
    }

    fn close(&self, timeout: Duration, reply_mode: ReplyMode) {
        let end = Instant::now() + timeout;
        // At the end of a process other threads may hold the lock for ever.
        let mut writer = loop {
            match self.writer.try_lock() {
                Ok(writer) => break writer,
                Err(std::sync::TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) if Instant::now() >= end => return,
                Err(std::sync::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if writer.closed || self.lost.get().is_some() {
            return;
        }
        writer.closed = true;
        self.is_closing.store(true, Ordering::SeqCst);
        for unread in [&self.listing, &self.first_lease] {
            if let Ok(Some(call)) = unread.try_lock().map(|mut unread| unread.take()) {
                self.replies.abandon(call.id());
            }
        }
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let _ = self.transport.set_timeout(Some(left));
        let call = writer.sender.request_with(&op::Shutdown {}, &[], None, reply_mode).ok();
        if let Some(call) = call {
            self.counters.add_locked(|c| &c.frames_sent, 1);
            if let Some(call) = call {
                self.replies.expect(call, Bulk::Collect(Vec::new()));
            }
            let sent = self.transmit(&mut writer);
            drop(writer);
            // Another thread that waits for a reply reads instead of us, for as long as its reply takes.
            if let Some(call) = call
                && sent.is_ok()
                && self.replies.waiting() == 1
            {
                self.counters.add(|c| &c.round_trips, 1);
                if let Err(Some(reason)) = self.replies.wait_until(call.id(), &self.counters, Some(end)) {
                    tracing::debug!("no reply to SHUTDOWN: {reason}");
                }
            }
        }
        self.transport.shutdown();
        let _ = self.lost.set(());
        self.replies.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn decode<O: Op>(whole: &Whole) -> Result<O::Reply, CallError> {
    if let Some(error) = whole.error {
        return Err(CallError::Hip(error));
    }
    // The receiver has checked that a good reply has its whole fixed part.
    O::Reply::take(&mut whole.fixed.as_slice()).map_err(|error| CallError::Hip(error.into()))
}
