//! The session of this process with a worker: the worker, the state of its streams, and the code that the program has loaded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hipr_proto::{HipError, HipResult};

use crate::command::Function;
use crate::convert::{Ptr, Stream};
use crate::program::module::Numbered;
use crate::program::{Loader, Program, recent, register};
use crate::stream::Streams;
use crate::stream::order::{legacy, per_thread};
use crate::stream::sync_mode::SyncMode;
use crate::thread;
use crate::trace;
use crate::worker::Worker;

/// A session with a worker. Locks are taken one at a time, except that the mirrors' may be held while others are taken.
#[derive(Debug)]
pub struct Session {
    worker: Worker,
    streams: Streams,
    program: Program,
    /// Whether operations on some memory were ever made to wait, so that memory has to be asked.
    has_synchronous: AtomicBool,
}

impl Session {
    /// Connects to the worker that the environment names; logs one line on success or failure.
    ///
    /// # Errors
    /// `hipErrorNoDevice`: without a worker there is no device.
    pub(crate) fn open() -> HipResult<Self> {
        let worker = Worker::connect(trace::observer())?;
        let streams = Streams::of_workers(SyncMode::from_env(), worker.workers());
        Ok(Self { worker, streams, program: Program::default(), has_synchronous: AtomicBool::new(false) })
    }

    /// Returns the worker.
    pub fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Returns the state of streams, events, graphs and mirrored memory.
    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Notes that a thread makes a device its current one, before it does.
    pub(crate) fn uses_device(&self, device: i32) {
        if device != 0 {
            self.streams.share();
        }
    }

    /// Notes whether operations on the memory at `ptr` wait, of a copy or a fill that need not, too. Returns false for memory unknown to HIP.
    pub(crate) fn set_synchronous(&self, ptr: Ptr, is_synchronous: bool) -> bool {
        if is_synchronous {
            self.has_synchronous.store(true, Ordering::Relaxed);
        }
        self.worker.memory().set_synchronous(ptr, is_synchronous)
            || self.streams.mirrors.set_synchronous(ptr, is_synchronous)
    }

    /// Returns whether operations on the memory at `ptr` wait.
    #[inline]
    pub(crate) fn is_synchronous(&self, ptr: Ptr) -> bool {
        let is_it = || self.worker.memory().is_synchronous(ptr) || self.streams.mirrors.is_synchronous(ptr);
        self.has_synchronous.load(Ordering::Relaxed) && is_it()
    }

    /// Returns the code that the program has loaded.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the state that is needed to load code.
    pub(crate) fn loader(&self) -> Loader<'_> {
        Loader { worker: &self.worker, mirrors: &self.streams.mirrors, program: &self.program }
    }

    /// Returns the kernel with this host address; loads its code if necessary.
    ///
    /// # Errors
    /// `hipErrorInvalidDeviceFunction` for an address that was not registered, or what the worker answers.
    pub(crate) fn find_function(&self, host_function: Ptr) -> HipResult<Arc<Function>> {
        register::find_function(self.loader(), host_function)
    }

    /// Does what [`find_function`](Self::find_function) does, for a device that need not be the calling thread's.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn find_function_of(&self, device: i32, host_function: Ptr) -> HipResult<Arc<Function>> {
        match thread::device() == device {
            true => self.find_function(host_function),
            false => thread::with_device(device, || self.find_function(host_function)),
        }
    }

    /// Returns address and size of the device variable with this host address.
    ///
    /// # Errors
    /// `hipErrorInvalidSymbol` for an address that was not registered, or what the worker answers.
    pub(crate) fn find_variable(&self, shadow: Ptr) -> HipResult<(Ptr, usize)> {
        register::find_variable(self.loader(), shadow)
    }

    /// Returns the device variable with this host address by its number if its address is not known, although the worker knows it by that.
    ///
    /// # Errors
    /// As [`find_variable`](Self::find_variable).
    pub(crate) fn find_numbered(&self, shadow: Ptr) -> HipResult<Option<Numbered>> {
        register::find_numbered(self.loader(), shadow)
    }

    /// Returns what [`handle`](Self::handle) returns, with the error of functions that do not tell streams that ended from others.
    ///
    /// # Errors
    /// `hipErrorInvalidHandle` for what is no stream.
    pub(crate) fn valid_handle(&self, stream: Stream) -> HipResult<u64> {
        self.handle(stream).map_err(|_| HipError::INVALID_HANDLE)
    }

    /// Returns the number of the stream that `stream` means to the calling thread ([`order`](crate::stream::order)).
    ///
    /// # Errors
    /// `hipErrorContextIsDestroyed` for what is no stream, as HIP has it.
    #[inline(always)]
    pub(crate) fn handle(&self, stream: Stream) -> HipResult<u64> {
        match stream.0 {
            0 if thread::is_stream_per_thread() => Ok(per_thread(thread::device())),
            0 | 1 => Ok(legacy(thread::device())),
            2 => Ok(per_thread(thread::device())),
            _ if recent::stream(stream.0, || self.worker.stream_table().contains_key(&stream)) => {
                Ok(stream.wire())
            }
            _ => Err(HipError::CONTEXT_IS_DESTROYED),
        }
    }
}
