//! Functions of the program that are called when a signal has a value. One thread of its own calls them, one after the other: they may take
//! their time and call the library.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use hipr_grid::lock;

use crate::pointer::Ptr;
use crate::runtime::runtime;
use crate::status::{HsaResult, Status};
use crate::types::{AsyncFunction, Condition, Signal, SignalHandler, SignalValue};
use crate::{signal, watch};

type Call = Box<dyn FnOnce() + Send>;

/// The calls that are to be made, and the thread that makes them.
#[derive(Default)]
pub(crate) struct Handlers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    has_thread: bool,
    stopped: bool,
}

impl Handlers {
    fn clone_shared(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Has a function called by the thread.
    pub(crate) fn push(&self, call: Call) {
        let mut state = lock(&self.0.state);
        if state.stopped {
            return;
        }
        state.calls.push_back(call);
        if !state.has_thread {
            state.has_thread = true;
            let shared = Arc::clone(&self.0);
            if let Err(error) =
                std::thread::Builder::new().name("hsa-handlers".to_owned()).spawn(move || shared.run())
            {
                tracing::error!(%error, "there is no thread to call the handlers of signals");
                state.has_thread = false;
            }
        }
        drop(state);
        self.0.wake.notify_one();
    }

    /// Ends the thread after the call that it makes, and forgets the others.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.0.state);
        state.stopped = true;
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        self.0.wake.notify_all();
        drop(calls);
    }
}

impl Shared {
    fn run(&self) {
        let mut state = lock(&self.state);
        while !state.stopped {
            match state.calls.pop_front() {
                Some(call) => {
                    drop(state);
                    call();
                    state = lock(&self.state);
                }
                None => state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// A handler of a signal.
#[derive(Clone, Copy)]
struct Handler {
    signal: Signal,
    condition: Condition,
    than: SignalValue,
    function: unsafe extern "C" fn(SignalValue, *mut std::ffi::c_void) -> bool,
    data: Ptr,
}

impl Handler {
    /// Has the handler called when its condition holds, and again as often as it returns true.
    fn arm(self, handlers: Handlers) {
        let Self { signal, condition, than, .. } = self;
        watch::when(signal, !0, condition, than, move |value| {
            let Some(value) = value else {
                return;
            };
            let again = handlers.clone_shared();
            handlers.push(Box::new(move || {
                // SAFETY: the program's function, with the value and the data that it was registered with.
                if unsafe { (self.function)(value, self.data.raw()) } {
                    self.arm(again);
                }
            }));
        });
    }
}

/// `hsa_amd_signal_async_handler`.
pub(crate) fn signal_handler(
    signal: Signal,
    condition: u32,
    than: SignalValue,
    function: SignalHandler,
    data: Ptr,
) -> HsaResult {
    let runtime = runtime()?;
    let function = function.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    let condition = Condition::of(condition).ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    signal::check(signal)?;
    Handler { signal, condition, than, function, data }.arm(runtime.part::<Handlers>().clone_shared());
    Ok(())
}

/// `hsa_amd_async_function`.
pub(crate) fn async_function(function: AsyncFunction, data: Ptr) -> HsaResult {
    let runtime = runtime()?;
    let function = function.ok_or(Status::ERROR_INVALID_ARGUMENT)?;
    runtime.part::<Handlers>().push(Box::new(move || {
        // SAFETY: the program's function, with the data that it was given with.
        unsafe { function(data.raw()) };
    }));
    Ok(())
}
