//! Executes the calls of the stream layer with a real worker and real threads: **the** way from a HIP function to the worker
//! for all work that has an order.

mod times;
mod value;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hipr_proto::{HipError, HipResult};

use crate::command::{Command, HostFunction, KernelLaunch, MemoryCopy, MemoryFill};
use crate::convert::Ptr;
use crate::process;
use crate::session::Session;
use crate::stream::host_functions::{QueuedCommand, Threads};
use crate::stream::{Call, Caller, Next, Streams, WaitCall};
use crate::thread;
use crate::worker::{Port, Wait};

/// The threads that call functions of the program.
struct HostThreads;

impl Threads for HostThreads {
    fn start(&self, queue: u64) -> HipResult<()> {
        let session = process::session()?;
        let thread = std::thread::Builder::new().name("hipr-host-func".to_owned());
        let started = thread.spawn(move || {
            thread::become_host_thread();
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
    fn next(&mut self, streams: &Streams, caller: &Caller<'_>) -> Next;
    fn resume(&mut self, result: HipResult<()>);
}

impl Phases for Call {
    fn next(&mut self, streams: &Streams, caller: &Caller<'_>) -> Next {
        Self::next(self, streams, caller)
    }

    fn resume(&mut self, result: HipResult<()>) {
        Self::resume(self, result);
    }
}

impl Phases for WaitCall {
    fn next(&mut self, streams: &Streams, caller: &Caller<'_>) -> Next {
        Self::next(self, streams, caller)
    }

    fn resume(&mut self, result: HipResult<()>) {
        Self::resume(self, result);
    }
}

impl Session {
    /// Returns the calling thread as the stream layer sees it.
    pub(crate) fn caller(&self) -> Caller<'_> {
        let thread::Identity { number, device, capture_mode, is_host_thread } = thread::identity();
        Caller {
            port: self.worker(),
            threads: &HostThreads,
            thread: number,
            device,
            call: thread::call(),
            capture_mode,
            is_host_thread,
        }
    }

    /// Puts a command on a stream.
    ///
    /// # Errors
    /// What HIP says of the command, or what the worker answers.
    pub(crate) fn submit(&self, stream: u64, command: Command) -> HipResult<()> {
        self.submit_blocking(stream, command, false)
    }

    /// Puts a command on a stream; if it `is_blocking`, returns when it has finished.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub(crate) fn submit_blocking(&self, stream: u64, command: Command, is_blocking: bool) -> HipResult<()> {
        self.drive(&mut Call::new(command, stream, is_blocking))
    }

    /// Launches a kernel on a stream.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    #[inline]
    pub(crate) fn submit_launch(&self, stream: u64, kernel: KernelLaunch) -> HipResult<()> {
        match self.streams().launch_at_once(self.worker(), &kernel, stream) {
            Some(result) => result,
            None => self.submit(stream, Command::Kernel(kernel)),
        }
    }

    /// Puts a copy on a stream; if it `is_blocking`, returns when it has finished.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    #[inline]
    pub(crate) fn submit_copy(&self, stream: u64, copy: &MemoryCopy, is_blocking: bool) -> HipResult<()> {
        if is_blocking {
            self.ask_times_before_wait()?;
        }
        match self.streams().copy_at_once(self.worker(), copy, stream, is_blocking) {
            Some(result) => result,
            None => self.drive(&mut Call::new(Command::Copy(*copy), stream, is_blocking)),
        }
    }

    /// Puts a fill on a stream.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    #[inline]
    pub(crate) fn submit_fill(&self, stream: u64, fill: &MemoryFill) -> HipResult<()> {
        match self.streams().fill_at_once(self.worker(), fill, stream) {
            Some(result) => result,
            None => self.submit(stream, Command::Fill(*fill)),
        }
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
        if !wait.is_query() {
            self.ask_times_before_wait()?;
        }
        self.drive(&mut WaitCall::new(wait))
    }

    /// Waits for a stream at the end of a synchronous call.
    ///
    /// # Errors
    /// What the worker answers.
    pub(crate) fn end_call(&self, stream: u64) -> HipResult<()> {
        self.drive(&mut WaitCall::end_of_call(stream))
    }

    /// Waits for the host functions of a stream, and the commands behind them, at the end of a synchronous call.
    ///
    /// # Errors
    /// What a host function failed with.
    pub(crate) fn wait_for_functions(&self, stream: u64) -> HipResult<()> {
        self.drive(&mut WaitCall::functions(stream))
    }

    /// Waits for all host functions and the commands queued behind them.
    ///
    /// # Errors
    /// What such work failed with.
    pub(crate) fn wait_for_host_functions(&self) -> HipResult<()> {
        let functions = &self.streams().host_functions;
        if !functions.is_idle() && !thread::identity().is_host_thread {
            functions.wait_for(&functions.all());
        }
        functions.take_error()
    }

    fn drive(&self, call: &mut impl Phases) -> HipResult<()> {
        let (streams, caller) = (self.streams(), self.caller());
        loop {
            match call.next(streams, &caller) {
                Next::Continue => {}
                Next::WaitForSteps(steps) => streams.host_functions.wait_for(&steps),
                Next::Wait(wait) => call.resume(self.worker().wait(wait)),
                Next::Answer(question) => {
                    let (result, answers) = self.worker().answers(question);
                    streams.mirrors.answered(self.worker(), question, answers);
                    call.resume(result);
                }
                Next::WaitForAnswers(question) => streams.mirrors.wait_for_answers(question),
                Next::Receive(transfer) => call.resume(self.worker().receive(&transfer)),
                Next::CallHost(function, result) => call.resume(self.call_host(function, result)),
                Next::Done(result) => return result,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn call_host(&self, function: HostFunction, result: HipResult<()>) -> HipResult<()> {
        match function {
            HostFunction::Value(op) => result.and(self.carry_out_value(&op)),
            HostFunction::Await(event) => result.and(self.await_event(event)),
            function => call_host(function, result),
        }
    }

    /// Executes a step of a queue.
    fn carry_out(&self, step: QueuedCommand) {
        let QueuedCommand { number, device, call, command, stream, .. } = step;
        thread::set_device(device);
        thread::set_call(call);
        // A function that unwinds must not leave the stream blocked for ever.
        let done = catch_unwind(AssertUnwindSafe(|| self.drive(&mut Call::held(number, command, stream))));
        let result = done.unwrap_or_else(|_| {
            tracing::error!("a host function panicked");
            Ok(())
        });
        self.streams().host_functions.finished(number, result);
    }
}

/// Calls a function of the program; returns the error that no call has reported yet.
pub(crate) fn call_host(function: HostFunction, result: HipResult<()>) -> HipResult<()> {
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
        // They are no functions of the program.
        HostFunction::Value(_) | HostFunction::Await(_) => result,
    }
}
