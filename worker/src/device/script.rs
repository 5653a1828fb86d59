//! A scripted device for tests: memory is real, kernels are only recorded, and the test decides what fails, what takes time
//! and when it ends.
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

use hipr_proto::{HipError, HipResult, PLACE_PAGE_BYTES};

use self::context::{ContextState, ScriptContext};
use hipr_device::{Context, Device, Param, Waker};

/// Memory of the device in bytes: each context has all of it.
pub const TOTAL_BYTES: u64 = 8 << 30;

/// The scripted device; its clones let the test control it.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<State>>);

/// The effect of a scripted fault on a call, in place of its usual effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails.
    Fail(HipError),
    /// The call panics.
    Panic,
    /// The device is lost: this call and every later one in the context fail.
    Die(HipError),
    /// The wait (`poll_*`) has to be polled this many times more until it is over, and wakes its session each time. Other
    /// calls take no time.
    Slow(u32),
    /// The wait never ends.
    Hang,
}

#[derive(Default)]
struct State {
    opened: usize,
    /// Devices beside the first one.
    more_devices: i32,
    acts: VecDeque<(&'static str, Fault)>,
    plans: BTreeMap<(usize, &'static str, u64), Fault>,
    spoiled: BTreeMap<usize, Vec<(Range<u64>, HipError)>>,
    journals: BTreeMap<usize, Vec<&'static str>>,
    calls: BTreeMap<&'static str, u64>,
    functions: BTreeMap<String, (u32, Vec<Param>)>,
    globals: BTreeMap<String, u64>,
    contexts: BTreeMap<usize, ContextState>,
    launches: Vec<Launched>,
    /// The bytes in use by context when [`Device::memory_changes`] was asked for last, and how often they had changed by then.
    used_bytes: (BTreeMap<usize, u64>, u64),
    memory_watcher: Option<Waker>,
    /// Whether modules are loaded on another thread, and whether that waits for the test.
    loads_apart: bool,
    loads_held: bool,
    /// Whether the release of a context waits for the test.
    ends_held: bool,
}

/// An executed kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The context, counted from 0 in the order of opening.
    pub context: usize,
    /// The kernel's name.
    pub kernel: String,
    /// Number of workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub block: [u32; 3],
    /// Dynamic LDS in bytes.
    pub shared_mem_bytes: u32,
    /// The arguments: one entry each, or a single one for a flat buffer.
    pub args: Vec<Vec<u8>>,
    /// Whether it was a cooperative launch.
    pub cooperative: bool,
}

/// The number of objects that exist in all contexts of the device.
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
    /// Returns the first address or handle of context number `context`. Each takes its length in bytes, rounded up to
    /// [`Script::ALIGN`], and [`Script::ALIGN`] more; the next one follows.
    pub const fn first_address(context: usize) -> u64 {
        /// Size of a context's range of addresses.
        const SPACE: u64 = 1 << 40;
        0x5000_0000_0000_u64.wrapping_add((context as u64).wrapping_mul(SPACE))
    }

    /// Returns the addresses at which memory can be placed in context number `context`.
    pub const fn window(context: usize) -> Range<u64> {
        /// Distance of the window from the context's first address.
        const OFFSET: u64 = 1 << 39;
        let start = Self::first_address(context).wrapping_add(OFFSET);
        start..start + Self::WINDOW_BYTES
    }

    /// Size of a window in bytes.
    pub const WINDOW_BYTES: u64 = 16 * PLACE_PAGE_BYTES;

    /// Alignment of addresses.
    pub const ALIGN: u64 = 256;

    /// Creates a device on which everything succeeds at once.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of devices, at first 1, of contexts that are opened from now on.
    pub fn set_devices(&self, count: i32) {
        self.lock().more_devices = count - 1;
    }

    /// Makes the next call of [`Context`]'s method `call` fail; a wait fails when it is over.
    pub fn fail_next(&self, call: &'static str, error: HipError) {
        self.lock().acts.push_back((call, Fault::Fail(error)));
    }

    /// Makes the next call of [`Context`]'s method `call` panic; a wait panics when it is over.
    pub fn panic_next(&self, call: &'static str) {
        self.lock().acts.push_back((call, Fault::Panic));
    }

    /// Sets the fault of call number `nth`, from 0, of the method `call` in context number `context`, which need not be
    /// open yet. Waits (`poll_*`) are counted when they are over.
    pub fn plan(&self, context: usize, call: &'static str, nth: u64, fault: Fault) {
        self.lock().plans.insert((context, call, nth), fault);
    }

    /// Makes accesses to these addresses in context number `context`, which need not be open yet, fail: a transfer at once,
    /// work when it runs.
    pub fn spoil(&self, context: usize, addresses: Range<u64>, error: HipError) {
        self.lock().spoiled.entry(context).or_default().push((addresses, error));
    }

    /// Makes all contexts load modules on a thread other than the dispatch's from now on. Whatever is loaded there waits until
    /// [`release_loads`](Self::release_loads).
    pub fn hold_loads(&self) {
        let mut state = self.lock();
        (state.loads_apart, state.loads_held) = (true, true);
    }

    /// Makes contexts wait until [`release_ends`](Self::release_ends) before they are released. From now on they may be released on a
    /// thread other than the dispatch's.
    pub fn hold_ends(&self) {
        let mut state = self.lock();
        (state.loads_apart, state.ends_held) = (true, true);
    }

    /// Releases the contexts that wait for it.
    pub fn release_ends(&self) {
        self.lock().ends_held = false;
    }

    /// Loads what waits to be loaded.
    pub fn release_loads(&self) {
        self.lock().loads_held = false;
    }

    /// Queues work on `stream` of context number `context` from now on, without executing it.
    pub fn hold(&self, context: usize, stream: u64) {
        self.with(context, |state| state.hold(stream));
    }

    /// Executes the queued work of a stream; later work is executed at once.
    pub fn release(&self, context: usize, stream: u64) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if let Some(context) = state.contexts.get_mut(&context) {
            context.release(stream, &mut state.launches);
            let waker = context.waker();
            let watcher = state.memory_watcher.take();
            drop(guard);
            waker.wake();
            watcher.iter().for_each(Waker::wake);
        }
    }

    /// Lets work on `stream` fail with `error`: the next wait that includes it reports the error.
    pub fn surface(&self, context: usize, stream: u64, error: HipError) {
        self.with(context, |state| state.surface(stream, error));
    }

    /// Adds a kernel to every module.
    pub fn define_kernel(&self, name: &str, kernarg_size_bytes: u32, params: &[(u32, u32)]) {
        let params = params.iter().map(|&(offset, size)| Param { offset, size }).collect();
        self.lock().functions.insert(name.into(), (kernarg_size_bytes, params));
    }

    /// Adds a variable to every module.
    pub fn define_global(&self, name: &str, size_bytes: u64) {
        self.lock().globals.insert(name.into(), size_bytes);
    }

    /// Returns how often a method of [`Context`] was called.
    pub fn calls(&self, call: &str) -> u64 {
        self.lock().calls.get(call).copied().unwrap_or(0)
    }

    /// Returns the methods that were called in context number `context`, in order; waits when they were over. Transfers are
    /// left out, because the number of their pieces depends on how the bytes arrive.
    pub fn journal(&self, context: usize) -> Vec<&'static str> {
        self.lock().journals.get(&context).cloned().unwrap_or_default()
    }

    /// Returns the executed launches in order.
    pub fn launches(&self) -> Vec<Launched> {
        self.lock().launches.clone()
    }

    /// Returns the number of objects that exist.
    pub fn live(&self) -> Live {
        let state = self.lock();
        let mut live = Live { contexts: state.contexts.len(), ..Live::default() };
        state.contexts.values().for_each(|context| context.add_to(&mut live));
        live
    }

    /// Returns the number of contexts opened so far, including closed ones.
    pub fn opened(&self) -> usize {
        self.lock().opened
    }

    fn with(&self, context: usize, change: impl FnOnce(&mut ContextState)) {
        self.lock().contexts.get_mut(&context).map(change);
    }

    /// Locks the state. Poisoning is ignored, because scripted panics release the lock first.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call in context number `id` and applies its fault.
    fn enter(&self, id: usize, call: &'static str) -> HipResult<MutexGuard<'_, State>> {
        let mut state = self.lock();
        *state.calls.entry(call).or_default() += 1;
        match state.fault(id, call) {
            None | Some(Fault::Slow(_) | Fault::Hang) => Ok(state),
            Some(Fault::Fail(error) | Fault::Die(error)) => Err(error),
            Some(Fault::Panic) => Self::panic(state, call),
        }
    }

    /// Records a wait like [`Script::enter`]; returns `Pending` while `is_busy` returns true or the fault says so.
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

    /// Panics with the lock released, so that the state stays usable.
    fn panic(state: MutexGuard<'_, State>, call: &str) -> ! {
        drop(state);
        panic!("the script wants {call} to panic");
    }
}

impl State {
    /// Returns how often the bytes in use have been others than the time before.
    fn memory_changes(&mut self) -> u64 {
        let now: BTreeMap<usize, u64> =
            self.contexts.iter().map(|(id, context)| (*id, context.used_bytes())).collect();
        let (before, changes) = &mut self.used_bytes;
        if *before != now {
            *changes += 1;
            *before = now;
        }
        *changes
    }

    /// Counts a call, unless it is a wait that continues, and returns its fault.
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

/// Methods that are called once per piece of a transfer.
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

    fn can_place(&self) -> bool {
        true
    }

    fn memory_changes(&self) -> u64 {
        self.lock().memory_changes()
    }

    /// Keeps the waker, for [`Script::release`]: other changes are calls of the worker.
    fn watch_memory(&self, seen: u64, waker: Waker) {
        let mut state = self.lock();
        if state.memory_changes() == seen {
            state.memory_watcher = Some(waker);
        } else {
            drop(state);
            waker.wake();
        }
    }

    fn loads_apart(&self) -> bool {
        self.lock().loads_apart
    }

    fn open(&self, waker: Waker) -> HipResult<Box<dyn Context>> {
        let id = self.opened();
        let mut state = self.enter(id, "open")?;
        state.opened += 1;
        let spoiled = state.spoiled.get(&id).cloned().unwrap_or_default();
        let devices = state.more_devices + 1;
        state.contexts.insert(id, ContextState::new(id, devices, waker, spoiled));
        drop(state);
        Ok(Box::new(ScriptContext::new(self.clone(), id)))
    }
}
