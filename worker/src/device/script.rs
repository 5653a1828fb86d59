//! A device for tests: memory is real, kernels are only noted, and a test says what fails, what takes time and when it ends.
//!
//! Handles and addresses differ between all contexts, so that one session's are wrong in another; those of one context
//! depend on nothing but its own calls. Work is done at once unless its stream is [held](Script::hold); then it waits, and
//! with it everything that waits for it, until it is [released](Script::release).
//!
//! What goes wrong is said while the device runs ([`Script::fail_next`], [`Script::surface`]) or before, so that it does not
//! depend on when anything happens ([`Script::plan`], [`Script::spoil`]).

mod context;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use hipr_proto::{HipError, HipResult};

use self::context::{ContextState, ScriptContext};
use super::{Context, Device, Param, Waker};

/// The device and, cloned, the test's hand on it.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<State>>);

/// What becomes of a call instead of what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails.
    Fail(HipError),
    /// It panics.
    Panic,
    /// The device is gone: it fails, and so does everything after it in this context.
    Die(HipError),
    /// A wait (`poll_*`) that is not over before it was asked for so many times more; it sees to it itself that it is asked
    /// again. Other calls take no time.
    Slow(u32),
    /// A wait that is never over.
    Hang,
}

#[derive(Default)]
struct State {
    opened: usize,
    acts: VecDeque<(&'static str, Fault)>,
    plans: BTreeMap<(usize, &'static str, u64), Fault>,
    spoiled: BTreeMap<usize, Vec<(Range<u64>, HipError)>>,
    journals: BTreeMap<usize, Vec<&'static str>>,
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
    /// The first address or handle that context number `context` gives out. Each takes as many as its length in bytes,
    /// rounded up to [`Script::ALIGN`], and [`Script::ALIGN`] more; the next comes behind them.
    pub const fn first_address(context: usize) -> u64 {
        /// Addresses that one context has for itself.
        const SPACE: u64 = 1 << 40;
        0x5000_0000_0000_u64.wrapping_add((context as u64).wrapping_mul(SPACE))
    }

    /// What addresses are multiples of.
    pub const ALIGN: u64 = 256;

    /// A device without any instructions: everything succeeds at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// The next call of [`Context`]'s method `call` fails; a wait when it is over.
    pub fn fail_next(&self, call: &'static str, error: HipError) {
        self.lock().acts.push_back((call, Fault::Fail(error)));
    }

    /// The next call of [`Context`]'s method `call` panics; a wait when it is over.
    pub fn panic_next(&self, call: &'static str) {
        self.lock().acts.push_back((call, Fault::Panic));
    }

    /// What becomes of call number `nth`, from 0, of the method `call` in context number `context`, which need not be open
    /// yet. Waits (`poll_*`) are counted when they are over, however often they were asked for.
    pub fn plan(&self, context: usize, call: &'static str, nth: u64, fault: Fault) {
        self.lock().plans.insert((context, call, nth), fault);
    }

    /// What touches these addresses in context number `context`, which need not be open yet, fails: a transfer at once, work
    /// when it runs.
    pub fn spoil(&self, context: usize, addresses: Range<u64>, error: HipError) {
        self.lock().spoiled.entry(context).or_default().push((addresses, error));
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

    /// The methods that were called in context number `context`, in order; waits where they were over. Transfers are left
    /// out: into how many pieces one is cut depends on how its bytes arrive.
    pub fn journal(&self, context: usize) -> Vec<&'static str> {
        self.lock().journals.get(&context).cloned().unwrap_or_default()
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

    /// Notes a call of context number `id` and does what a test wants of it.
    fn enter(&self, id: usize, call: &'static str) -> HipResult<MutexGuard<'_, State>> {
        let mut state = self.lock();
        *state.calls.entry(call).or_default() += 1;
        match state.fault(id, call) {
            None | Some(Fault::Slow(_) | Fault::Hang) => Ok(state),
            Some(Fault::Fail(error) | Fault::Die(error)) => Err(error),
            Some(Fault::Panic) => Self::panic(state, call),
        }
    }

    /// As [`Script::enter`] for a wait for something that `is_busy` tells about; `Pending` if it is not over.
    fn enter_wait(
        &self,
        id: usize,
        call: &'static str,
        is_busy: impl FnOnce(&ContextState) -> bool,
    ) -> Poll<HipResult<MutexGuard<'_, State>>> {
        let mut state = self.lock();
        *state.calls.entry(call).or_default() += 1;
        let Some(context) = state.contexts.get(&id) else {
            return Poll::Ready(Err(HipError::INVALID_CONTEXT));
        };
        if is_busy(context) {
            return Poll::Pending;
        }
        match state.fault(id, call) {
            None => Poll::Ready(Ok(state)),
            Some(Fault::Fail(error) | Fault::Die(error)) => Poll::Ready(Err(error)),
            Some(Fault::Panic) => Self::panic(state, call),
            Some(Fault::Hang) => Poll::Pending,
            Some(Fault::Slow(_)) => {
                let waker = state.contexts.get(&id).map(ContextState::waker);
                drop(state);
                waker.iter().for_each(Waker::wake);
                Poll::Pending
            }
        }
    }

    /// With the lock released, so that the state stays whole for the others.
    fn panic(state: MutexGuard<'_, State>, call: &str) -> ! {
        drop(state);
        panic!("the script wants {call} to panic");
    }
}

impl State {
    /// What is to become of this call, which is counted unless it is a wait that goes on.
    fn fault(&mut self, id: usize, call: &'static str) -> Option<Fault> {
        let acted = self.acts.iter().position(|(name, _)| *name == call);
        let acted = acted.and_then(|at| self.acts.remove(at)).map(|(_, fault)| fault);
        // `open` comes before its context.
        let Some(context) = self.contexts.get_mut(&id) else {
            return acted.or_else(|| self.plans.remove(&(id, call, 0)));
        };
        let nth = context.count(call);
        let plan = (id, call, *nth);
        let fault = acted.or(context.dead.map(Fault::Fail)).or_else(|| self.plans.get(&plan).copied());
        match fault {
            Some(Fault::Hang) => return fault,
            Some(Fault::Slow(left)) if left > 0 => {
                self.plans.insert(plan, Fault::Slow(left - 1));
                return fault;
            }
            Some(Fault::Die(error)) => context.dead = Some(error),
            _ => {}
        }
        *context.count(call) += 1;
        self.plans.remove(&plan);
        if !PIECES.contains(&call) {
            self.journals.entry(id).or_default().push(call);
        }
        fault.filter(|fault| !matches!(fault, Fault::Slow(_)))
    }
}

/// Methods that are called as often as a transfer has pieces.
const PIECES: [&str; 4] = ["poll_ready", "poll_write", "write", "read"];

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
        let id = self.opened();
        let mut state = self.enter(id, "open")?;
        state.opened += 1;
        let spoiled = state.spoiled.get(&id).cloned().unwrap_or_default();
        state.contexts.insert(id, ContextState::new(id, waker, spoiled));
        drop(state);
        Ok(Box::new(ScriptContext::new(self.clone(), id)))
    }
}
