//! Executes the calls of the stream layer with a real worker and real threads: **the** way from a HIP function to the worker
//! for all work that has an order.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hipr_proto::{HipError, HipResult};

use crate::command::{Command, HostFunction};
use crate::convert::Ptr;
use crate::process;
use crate::session::Session;
use crate::stream::host_functions::{QueuedCommand, Threads};
use crate::stream::{Call, Caller, Next, WaitCall};
use crate::thread;
use crate::worker::{Port, Wait};

thread_local! {
    /// Whether this thread executes queued steps, and so must not wait for them.
    static IS_HOST_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// The threads that call functions of the program.
struct HostThreads;

impl Threads for HostThreads {
    fn start(&self, queue: u64) -> HipResult<()> {
        let session = process::session()?;
        let thread = std::thread::Builder::new().name("hipr-host-func".to_owned());
        let started = thread.spawn(move || {
            IS_HOST_THREAD.set(true);
            while let Some(step) = session.streams().host_functions.wait_for_next(queue) {
                session.carry_out(step);
            }
        });
        started.map(drop).map_err(|error| {
            tracing::error!("cannot start a thread for a host function: {error}");
            HipError::OPERATING_SYSTEM
        })
    }
}

/// A state machine of the stream layer.
trait Phases {
    fn next(&mut self, session: &Session) -> Next;
    fn resume(&mut self, result: HipResult<()>);
}

impl Phases for Call {
    #[inline]
    fn next(&mut self, session: &Session) -> Next {
        Self::next(self, session.streams(), &session.caller())
    }

    fn resume(&mut self, result: HipResult<()>) {
        Self::resume(self, result);
    }
}

impl Phases for WaitCall {
    fn next(&mut self, session: &Session) -> Next {
        Self::next(self, session.streams(), &session.caller())
    }

    fn resume(&mut self, result: HipResult<()>) {
        Self::resume(self, result);
    }
}

impl Session {
    /// Returns the calling thread as the stream layer sees it.
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller {
            port: self.worker(),
            threads: &HostThreads,
            thread: thread::number(),
            device: thread::device(),
            capture_mode: thread::capture_mode(),
            is_host_thread: IS_HOST_THREAD.get(),
        }
    }

    /// Puts a command on a stream.
    ///
    /// # Errors
    /// What HIP says of the command, or what the worker answers.
    pub(crate) fn submit(&self, stream: u64, command: Command) -> HipResult<()> {
        self.drive(&mut Call::new(command, stream, false))
    }

    /// Puts a command on a stream, and returns when it has finished.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub(crate) fn submit_blocking(&self, stream: u64, command: Command) -> HipResult<()> {
        self.drive(&mut Call::new(command, stream, true))
    }

    /// Makes calls one after the other, up to the first error.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub(crate) fn submit_all(&self, calls: Vec<Call>) -> HipResult<()> {
        calls.into_iter().try_for_each(|mut call| self.drive(&mut call))
    }

    /// Waits for work, or queries whether it has finished; fetches what the device wrote to mirrored memory.
    ///
    /// # Errors
    /// What the worker answers; what a host function failed with.
    pub(crate) fn wait(&self, wait: Wait) -> HipResult<()> {
        self.drive(&mut WaitCall::new(wait))
    }

    /// Waits for a stream at the end of a synchronous call.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn end_call(&self, stream: u64) -> HipResult<()> {
        self.drive(&mut WaitCall::end_of_call(stream))
    }

    /// Waits for all host functions and the commands queued behind them.
    ///
    /// # Errors
    /// What such work failed with.
    pub(crate) fn wait_for_host_functions(&self) -> HipResult<()> {
        let functions = &self.streams().host_functions;
        if !functions.is_idle() && !IS_HOST_THREAD.get() {
            functions.wait_for(&functions.all());
        }
        functions.take_error()
    }

    #[inline]
    fn drive(&self, call: &mut impl Phases) -> HipResult<()> {
        loop {
            match call.next(self) {
                Next::Continue => {}
                Next::WaitForSteps(steps) => self.streams().host_functions.wait_for(&steps),
                Next::Wait(wait) => call.resume(self.worker().wait(wait)),
                Next::Receive(transfer) => call.resume(self.worker().receive(&transfer)),
                Next::CallHost(function, result) => call.resume(call_host(function, result)),
                Next::Done(result) => return result,
            }
        }
    }

    /// Executes a step of a queue.
    fn carry_out(&self, step: QueuedCommand) {
        let QueuedCommand { number, device, command, stream, .. } = step;
        thread::set_device(device);
        // A function that unwinds must not leave the stream blocked for ever.
        let done = catch_unwind(AssertUnwindSafe(|| self.drive(&mut Call::held(command, stream))));
        let result = done.unwrap_or_else(|_| {
            tracing::error!("a host function panicked");
            Ok(())
        });
        self.streams().host_functions.finished(number, result);
    }
}

/// Calls a host function; returns the error that no call has reported yet.
fn call_host(function: HostFunction, result: HipResult<()>) -> HipResult<()> {
    match function {
        HostFunction::Plain(function, data) => {
            if let Some(function) = function {
                // SAFETY: the program gives the function and what it is called with; HIP API: it runs once, on a thread of the runtime.
                unsafe { function(data.as_mut_ptr()) };
            }
            result
        }
        HostFunction::Callback(callback, stream, data) => {
            let status = result.err().map_or(0, |error| error.0);
            if let Some(callback) = callback {
                // SAFETY: as above.
                unsafe { callback(Ptr(stream.0).as_mut_ptr(), status, data.as_mut_ptr()) };
            }
            Ok(())
        }
    }
}
