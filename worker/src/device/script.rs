//! A device for tests: memory is real, kernels are only noted, and a test says what fails, what takes time and when it ends.
//!
//! Handles and addresses differ between all contexts, so that one session's are wrong in another. Work is done at once
//! unless its stream is [held](Script::hold); then it waits, and with it everything that waits for it, until it is
//! [released](Script::release).

mod context;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hipr_proto::{HipError, HipResult};

use self::context::{ContextState, ScriptContext};
use super::{Context, Device, Param, Waker};

/// The device and, cloned, the test's hand on it.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<State>>);

/// What a call that a test waited for is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Fail(HipError),
    Panic,
}

#[derive(Default)]
struct State {
    opened: usize,
    next: u64,
    acts: VecDeque<(&'static str, Act)>,
    calls: BTreeMap<&'static str, u64>,
    functions: BTreeMap<String, (u32, Vec<Param>)>,
    globals: BTreeMap<String, u64>,
    contexts: BTreeMap<usize, ContextState>,
    launches: Vec<Launched>,
}

/// A kernel launch that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The context, counted from 0 in the order of opening.
    pub context: usize,
    /// The kernel's name.
    pub kernel: String,
    /// Workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a group in x, y, z.
    pub block: [u32; 3],
    /// Dynamic LDS in bytes.
    pub shared_mem_bytes: u32,
    /// The arguments' bytes: one entry each, or one in all for a flat buffer.
    pub args: Vec<Vec<u8>>,
    /// Whether it was a cooperative launch.
    pub cooperative: bool,
}

/// What the device holds for all contexts together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Contexts.
    pub contexts: usize,
    /// Allocations.
    pub allocations: usize,
    /// Streams.
    pub streams: usize,
    /// Events.
    pub events: usize,
    /// Modules.
    pub modules: usize,
}

impl Script {
    /// A device without any instructions: everything succeeds at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next call of [`Context`]'s method `call` fails.
    pub fn fail_next(&self, call: &'static str, error: HipError) {
        self.lock().acts.push_back((call, Act::Fail(error)));
    }

    /// The next call of [`Context`]'s method `call` panics.
    pub fn panic_next(&self, call: &'static str) {
        self.lock().acts.push_back((call, Act::Panic));
    }

    /// Work on `stream` of context number `context` waits from now on.
    pub fn hold(&self, context: usize, stream: u64) {
        self.with(context, |state| state.hold(stream));
    }

    /// The work that waits is done, and later work is done at once.
    pub fn release(&self, context: usize, stream: u64) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(context) = state.contexts.get_mut(&context) {
            context.release(stream, &mut state.launches);
            let waker = context.waker();
            drop(guard);
            waker.wake();
        }
    }

    /// An error surfaces in the work of `stream`: the next wait that covers it reports it.
    pub fn surface(&self, context: usize, stream: u64, error: HipError) {
        self.with(context, |state| state.surface(stream, error));
    }

    /// Every module has a kernel of this name.
    pub fn define_kernel(&self, name: &str, kernarg_size_bytes: u32, params: &[(u32, u32)]) {
        let params = params.iter().map(|&(offset, size)| Param { offset, size }).collect();
        self.lock().functions.insert(name.into(), (kernarg_size_bytes, params));
    }

    /// Every module has a variable of this name and size.
    pub fn define_global(&self, name: &str, size_bytes: u64) {
        self.lock().globals.insert(name.into(), size_bytes);
    }

    /// How often a method of [`Context`] was called.
    pub fn calls(&self, call: &str) -> u64 {
        self.lock().calls.get(call).copied().unwrap_or(0)
    }

    /// The launches that were carried out, in order.
    pub fn launches(&self) -> Vec<Launched> {
        self.lock().launches.clone()
    }

    /// What the device holds.
    pub fn live(&self) -> Live {
        let state = self.lock();
        let mut live = Live { contexts: state.contexts.len(), ..Live::default() };
        state.contexts.values().for_each(|context| context.add_to(&mut live));
        live
    }

    /// Contexts opened so far, those that are gone included.
    pub fn opened(&self) -> usize {
        self.lock().opened
    }

    fn with(&self, context: usize, change: impl FnOnce(&mut ContextState)) {
        self.lock().contexts.get_mut(&context).map(change);
    }

    /// Tests make calls panic with the lock released, so a poisoned state is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call and does what a test wants of it.
    fn enter(&self, call: &'static str) -> HipResult<MutexGuard<'_, State>> {
        let mut state = self.lock();
        *state.calls.entry(call).or_default() += 1;
        match state.acts.iter().position(|(name, _)| *name == call).and_then(|at| state.acts.remove(at)) {
            None => Ok(state),
            Some((_, Act::Fail(error))) => Err(error),
            Some((_, Act::Panic)) => {
                drop(state);
                panic!("the script wants {call} to panic");
            }
        }
    }
}

impl State {
    /// A number that nobody has: addresses and handles of all contexts come from here.
    fn handle(&mut self, room: u64) -> u64 {
        const BASE: u64 = 0x5000_0000_0000;
        const ALIGN: u64 = 256;
        let handle = BASE + self.next;
        self.next += room.next_multiple_of(ALIGN) + ALIGN;
        handle
    }
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Script").field(&self.live()).finish()
    }
}

impl Device for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>> {
        let mut state = self.enter("open")?;
        let id = state.opened;
        state.opened += 1;
        state.contexts.insert(id, ContextState::new(id, waker));
        drop(state);
        Ok(Box::new(ScriptContext::new(self.clone(), id)))
    }
}
