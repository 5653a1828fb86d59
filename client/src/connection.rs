//! One connection and its session.

mod capability;
mod inner;
mod opening;
mod packing;
mod started;
mod times;
mod transfers;
mod uploading;
mod variables;

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use hipr_proto::op::Handles;
use hipr_proto::{Call, Features, HipError, HipResult, Limits, Op, Outbox, ReplyMode, Sender, Wire, op};

use crate::flusher::Flusher;
use crate::identity;
use crate::listener::Listener;
use crate::names::Names;
use crate::notifications::Failure;
use crate::observer::Observer;
use crate::packing::{CompressUse, Packing, Press};
use crate::replies::{Bulk, Replies, Rows, Whole};
use crate::statics::{Question, Statics, check_device_count};
use crate::stats::{Counters, Stats};
use crate::transport::Transport;
use crate::uploads::{CacheUse, LinkSpeed, UploadCache, Uploads};
use crate::{CallError, ConnectError, WorkerAddress};
pub use capability::{Capability, CopyEnd, Place};
use opening::Opening;
pub use packing::ChangesWithTail;
pub use started::{Flight, Started};
pub use transfers::{Download, Upload};

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
    /// Whether the caller keeps account of what the request can fail with, so that [`Connection::may_owe_errors`] does not.
    pub is_noted: bool,
}

/// How a connection is to be made.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The features of the extension that are offered; none at all, as by a client of HIPR 1.0, with `None`.
    pub offer: Option<Features>,
    /// Which part of its addresses the worker is to give, and how many parts there are, for programs that have several workers. A worker that
    /// cannot do so does not accept [`Features::APART`]. [`Features::CAPABILITIES`] are offered as well.
    pub part: Option<(u32, u32)>,
    /// The use of the worker's cache of uploads.
    pub cache: UploadCache,
    /// The use of packed bytes.
    pub compress: CompressUse,
    /// Who sees all that the connection does, and what the worker tells of its requests.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for ConnectOptions {
    /// Offers all [`FEATURES`](crate::FEATURES), no cache and no packed bytes.
    fn default() -> Self {
        Self {
            offer: Some(crate::FEATURES),
            part: None,
            cache: UploadCache { when: CacheUse::Off, key_file: None },
            compress: CompressUse::Off,
            observer: None,
        }
    }
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
    packing: Packing,
    observer: Option<Arc<dyn Observer>>,
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
    /// What packs bytes.
    press: Press,
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

    /// Does what [`connect_offering`](Self::connect_offering) does as the options say, and offers the use of the worker's cache of uploads and
    /// packed bytes as well, if anything is offered.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        address: &WorkerAddress,
        timeout: Duration,
        mut options: ConnectOptions,
    ) -> Result<Self, ConnectError> {
        options.offer = options.offer.map(|features| {
            let traced = if options.observer.is_some() { Features::TRACE } else { Features::NONE };
            let of_several = Features::APART.union(Features::CAPABILITIES);
            let apart = if options.part.is_some() { of_several } else { Features::NONE };
            let cached = match options.cache.when {
                CacheUse::Off => Features::NONE,
                CacheUse::Auto | CacheUse::On => Features::CACHE,
            };
            features.union(traced).union(apart).union(cached)
        });
        Self::open(address, timeout, &options)
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
        Self::open(address, timeout, &ConnectOptions { offer, ..ConnectOptions::default() })
    }

    fn open(
        address: &WorkerAddress,
        timeout: Duration,
        options: &ConnectOptions,
    ) -> Result<Self, ConnectError> {
        let end = Instant::now() + timeout;
        let resume = identity::resume_timeout(address.address());
        match Self::open_within(address, timeout, options, resume) {
            // A worker that knows no sessions which outlive their connections ends the connection, and is used as it is.
            Err((_, true)) if Instant::now() < end => {
                let left = end.saturating_duration_since(Instant::now());
                Self::open_within(address, left, options, None).map_err(|(error, _)| error)
            }
            opened => opened.map_err(|(error, _)| error),
        }
    }

    /// Connects and opens a session; fails with the reason, and whether the worker may not know what it was asked for below HIPR.
    fn open_within(
        address: &WorkerAddress,
        timeout: Duration,
        options: &ConnectOptions,
        resume: Option<Duration>,
    ) -> Result<Self, (ConnectError, bool)> {
        let connect = || identity::connect(address.address(), timeout, resume);
        Self::open_over(address, timeout, options, connect)
    }

    /// Opens a session over the transport that `connect` makes; fails as [`open_within`](Self::open_within).
    fn open_over(
        address: &WorkerAddress,
        timeout: Duration,
        options: &ConnectOptions,
        connect: impl FnOnce() -> io::Result<Transport>,
    ) -> Result<Self, (ConnectError, bool)> {
        let ConnectOptions { offer, part, cache, compress, observer } = options.clone();
        let since = Instant::now();
        let end = since + timeout;
        let failed = |reason: String| (ConnectError { address: address.clone(), reason }, false);
        let no_answer = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                failed(format!("no answer within {} ms", timeout.as_millis()))
            }
            _ => failed(error.to_string()),
        };
        let transport = connect().map_err(no_answer)?;
        observer.iter().for_each(|observer| observer.connected(since));
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        transport.set_timeout(Some(left)).map_err(no_answer)?;
        let offer = match offer {
            Some(features) if compress.may_pay(transport.is_local()) => {
                Some(features.union(Features::PACKED).union(Features::PACKED_CHANGES))
            }
            offer => offer,
        };
        let transport = Arc::new(transport);
        let writer = Writer {
            sender: Sender::new(),
            outbox: Outbox::new(),
            device: 0,
            names: Names::default(),
            speed: LinkSpeed::default(),
            press: Press::default(),
            closed: false,
        };
        let inner = Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            address: address.clone(),
            transport: Arc::clone(&transport),
            writer: Mutex::new(writer),
            replies: Replies::new(transport, Limits::default(), observer.clone()),
            lost: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            flusher: Flusher::default(),
            listener: Listener::default(),
            counters: Counters::default(),
            statics: Statics::default(),
            listing: Mutex::default(),
            first_lease: Mutex::default(),
            uploads: Uploads::new(cache),
            packing: Packing::new(compress),
            observer,
        });
        let (number, parts) = part.unwrap_or_default();
        let features = match inner.open_session(offer, u64::from(parts) << 32 | u64::from(number)) {
            Ok(features) => features,
            Err(Opening::Refused(error)) => {
                return Err(failed(format!("the worker refuses the session: {error}")));
            }
            Err(Opening::Failed(reason)) => {
                let late = Instant::now() >= end;
                let reason =
                    if late { format!("no answer within {} ms", timeout.as_millis()) } else { reason };
                return Err((failed(reason).0, inner.transport.is_unanswered()));
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

    /// Returns whether a reply may still report the error of an unanswered request: of any that no reply has followed yet, apart from
    /// those whose caller [keeps account](Extra::is_noted) of them; or of what uses a name that may stand for nothing. Replies that
    /// report no kept errors do not count.
    pub fn may_owe_errors(&self) -> bool {
        self.inner.unanswered().may_owe_errors()
    }

    /// Returns how many requests and bytes have been sent since the last request that was answered.
    pub fn ahead(&self) -> (u64, u64) {
        self.inner.unanswered().ahead(&self.inner.counters)
    }

    /// Returns whether what a client counts may differ from what the worker has, because a request failed that was to make something
    /// with a name, or memory at an address of the client's choice.
    pub fn is_in_doubt(&self) -> bool {
        self.inner.unanswered().is_in_doubt()
    }

    /// Returns how many requests have left that may have changed the free memory of the device, other than by memory that is counted in
    /// the lease. A failed request of which the worker has told counts as well. While the number stays the same, and what the worker
    /// said [holds](Self::memory_info_holds), free memory differs from what was told by the account of the lease alone.
    pub fn memory_changes(&self) -> u64 {
        self.inner.replies.listeners().memory.changes()
    }

    /// Returns whether the reply to the `MEM_INFO` with this number (at least 1) still holds, as far as the worker has said so.
    /// [`hear_arrived`](Self::hear_arrived) takes in what it has said.
    pub fn memory_info_holds(&self, number: u64) -> bool {
        self.inner.replies.listeners().memory.holds(number)
    }

    /// Reads what has arrived from the worker, without waiting for anything.
    pub fn hear_arrived(&self) {
        self.inner.hear_arrived();
    }

    /// Returns the file descriptors that the connection has open; -1 stands for none.
    pub fn raw_fds(&self) -> [RawFd; 2] {
        self.inner.transport.raw_fds()
    }

    /// Calls `told` with the file descriptors of each connection that takes the place of one that was cut. Has no effect the second time.
    pub fn on_reconnect(&self, told: impl Fn([RawFd; 2]) + Send + Sync + 'static) {
        self.inner.transport.on_reconnect(told);
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
            Ok(reply) => Ok(Ok(reply)),
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

    /// Begins to note who makes each request: `caller` returns a number for the calling thread's call, which [`Failure::caller`] has.
    /// Has no effect the second time.
    pub fn note_callers(&self, caller: fn() -> u64) {
        self.inner.replies.listeners().callers.start(caller);
    }

    /// Passes what the worker tells of failed requests and failed work to `listener` instead of writing it to the log. It is called on a thread that
    /// waits for a reply, and must not use the connection. Has no effect the second time.
    pub fn on_failure(&self, listener: impl Fn(&Failure) + Send + Sync + 'static) {
        self.inner.replies.listeners().on_failure(Box::new(listener));
    }

    /// Starts a thread that calls `answer` with the number of each recall of the lease (`MEM_RECALL`), also while no thread waits for a
    /// reply. Has no effect the second time, or without [`Features::NOTIFICATIONS`].
    pub fn on_recall(&self, answer: impl Fn(u64) + Send + 'static) {
        if !self.features().contains(Features::NOTIFICATIONS) {
            return;
        }
        let inner = self.inner.this.clone();
        self.inner.replies.listeners().on_recall(Box::new(move |number| {
            if let Some(inner) = inner.upgrade() {
                inner.listener.recall(number);
            }
        }));
        self.inner.listener.start(self.inner.this.clone(), answer);
    }

    /// Calls `listener` with the number of each watch (`STREAM_WATCH`, `EVENT_WATCH`) that is over, and with what a query would return if that
    /// is an error: on a thread that reads, before any later reply is known, so it may wait for nothing. A worker may say any number, at
    /// any time. Has no effect the second time.
    pub fn on_watch_over(&self, listener: impl Fn(u64, Option<HipError>) + Send + Sync + 'static) {
        self.inner.replies.listeners().on_watch_over(Box::new(listener));
    }

    /// Calls `listener` with what kernels print, which otherwise goes to this process's streams: the first argument is true for standard error, the
    /// second has the bytes. The listener runs on a thread that reads, before any call returns that finds the kernels' work done, and must not use
    /// the connection. Has no effect the second time, or without [`Features::PRINTF`].
    pub fn on_printed(&self, listener: impl Fn(bool, &[u8]) + Send + Sync + 'static) {
        self.inner.replies.listeners().on_printed(Box::new(listener));
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
        let _ = self.inner.close::<op::Ping>(timeout, ReplyMode::Always, None);
    }

    /// Does what [`close`](Self::close) does, with one request more before SHUTDOWN, in the same round trip.
    ///
    /// # Errors
    /// What the worker answers to that request, in time: its own error, or one that no reply has reported yet.
    pub fn close_asking<O: Op>(&self, last: &O, timeout: Duration) -> HipResult<()> {
        self.inner.close(timeout, ReplyMode::Always, Some(last))
    }

    /// Sends all buffered requests and SHUTDOWN, to which it wants no reply; takes at most `timeout`. The worker executes everything
    /// that it was sent. Every later call fails.
    pub fn leave(&self, timeout: Duration) {
        let _ = self.inner.close::<op::Ping>(timeout, ReplyMode::Never, None);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close(Duration::from_secs(1));
        self.inner.flusher.end();
        self.inner.listener.end();
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
