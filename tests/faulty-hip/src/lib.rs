//! A HIP runtime that forwards to another and fails calls as a plan says, for tests.
//!
//! It exports every function of [`hip_sys::Hip`]'s table and hands each call on to a real runtime, the library that
//! [`LIBRARY`] names. When a plan is there, it counts the calls of each function from then on, and one of them fails: nothing
//! is done, and the plan's error is returned and is the calling thread's last error, as HIP has it. A call for an event whose stream is destroyed
//! always fails: AMD's runtime would read the memory of that stream.
//!
//! The environment is read at the first call, the plan whenever it is not there yet:
//!
//! | variable | |
//! |---|---|
//! | [`LIBRARY`] | path of the real runtime |
//! | [`PLAN`] | path of the plan, a file that appears complete: see [`Plan`]. A call fails only as long as it is there |
//! | [`BREAK_OUT`] | where to try out what the process may do, when the library is used first: see `break_out.rs` |
//! | [`SOILED`] | new memory has bytes in it, as if somebody had had it before |
//! | [`TRACE`] | path of a file to which each call that is counted appends a line: see [`called`] |

mod break_out;
mod plan;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{OsString, c_char, c_int, c_uint, c_void};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::{env, process, thread};

use hip_sys::*;

pub use plan::{
    BREAK_OUT, EVERY, FAILED, HANG, LIBRARY, PLAN, Plan, SECRET, SERVICE, SOIL, SOILED, TRACE, called,
};

/// The settings from the environment, and the real runtime.
struct Runtime {
    real: Hip,
    soils: bool,
    plan_file: Option<PathBuf>,
    plan: OnceLock<Plan>,
    trace: Option<File>,
    counts: [AtomicU64; COUNT],
    /// Number of calls of the plan's function that the real runtime has executed since the plan was set.
    succeeded: AtomicU64,
}

impl Runtime {
    fn load() -> Result<Self, String> {
        break_out::try_all();
        let library = env::var_os(LIBRARY).ok_or_else(|| format!("{LIBRARY} is not set"))?;
        let real = Hip::load_from(library.as_ref()).map_err(|why| why.to_string())?;
        let open = |path: OsString| {
            let file = File::options().append(true).create(true).open(&path);
            file.map_err(|why| format!("{}: {why}", path.display()))
        };
        let trace = env::var_os(TRACE).map(open).transpose()?;
        let plan_file = env::var_os(PLAN).map(PathBuf::from);
        Ok(Self {
            real,
            soils: env::var_os(SOILED).is_some(),
            plan_file,
            plan: OnceLock::new(),
            trace,
            counts: [const { AtomicU64::new(0) }; COUNT],
            succeeded: AtomicU64::new(0),
        })
    }

    /// Returns the plan, once it is set.
    fn plan(&self) -> Option<&Plan> {
        if let Some(plan) = self.plan.get() {
            return Some(plan);
        }
        let text = fs::read_to_string(self.plan_file.as_ref()?).ok()?;
        let plan = text.parse().unwrap_or_else(|why: String| stop(&why));
        Some(self.plan.get_or_init(|| plan))
    }

    /// Counts a call; returns the error if it has to fail.
    fn count(&self, index: usize, name: &str) -> Option<hipError_t> {
        let plan = self.plan()?;
        let number = self.counts[index].fetch_add(1, Ordering::SeqCst) + 1;
        let is_meant = plan.function == name
            && [number, EVERY].contains(&plan.call)
            && self.succeeded.load(Ordering::SeqCst) >= plan.spared;
        let fails = is_meant && self.plan_file.as_ref().is_some_and(|file| file.exists());
        if let Some(mut trace) = self.trace.as_ref() {
            let line = format!("{name}{}\n", if fails { FAILED } else { "" });
            if let Err(why) = trace.write_all(line.as_bytes()) {
                stop(&format!("the trace cannot be written: {why}"));
            }
        }
        if fails && plan.error == HANG {
            loop {
                thread::park();
            }
        }
        fails.then_some(plan.error)
    }

    /// Notes that the real runtime executed a call.
    fn note_success(&self, name: &str) {
        if self.plan().is_some_and(|plan| plan.function == name) {
            self.succeeded.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// `hipErrorCapturedEvent`.
const STALE: hipError_t = 907;

/// Ends the process, so that a test notices that this library does not work.
fn stop(why: &str) -> ! {
    eprintln!("faulty-hip: {why}");
    process::abort()
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::load().unwrap_or_else(|why| stop(&why)))
}

thread_local! {
    /// The error of this thread's last failed call that has not been queried.
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

/// The return type of a function.
trait Returned: Sized {
    /// Returns the value for a failure; `None` for functions that cannot fail.
    fn failure(error: hipError_t) -> Option<Self>;

    /// Returns whether the value stands for success.
    fn is_success(&self) -> bool;

    /// Replaces the real runtime's value, for functions that return the last error.
    fn told(self, name: &str) -> Self;
}

impl Returned for hipError_t {
    fn failure(error: hipError_t) -> Option<Self> {
        Some(error)
    }

    fn is_success(&self) -> bool {
        *self == hipSuccess
    }

    fn told(self, name: &str) -> Self {
        let last = match name {
            "hipGetLastError" => LAST.replace(hipSuccess),
            "hipPeekAtLastError" => LAST.get(),
            _ => hipSuccess,
        };
        if last == hipSuccess { self } else { last }
    }
}

impl Returned for *const c_char {
    fn failure(_: hipError_t) -> Option<Self> {
        None
    }

    fn is_success(&self) -> bool {
        true
    }

    fn told(self, _: &str) -> Self {
        self
    }
}

/// Makes one call: fails it as planned, or forwards it to the real runtime.
fn call<R: Returned>(index: usize, name: &str, real: impl FnOnce(&Hip) -> R) -> R {
    let runtime = runtime();
    if let Some(error) = runtime.count(index, name)
        && let Some(failure) = R::failure(error)
    {
        LAST.set(error);
        return failure;
    }
    let answer = real(&runtime.real);
    if answer.is_success() {
        runtime.note_success(name);
    }
    answer.told(name)
}

/// Leaves bytes in new memory, as of somebody who had it before.
macro_rules! soil {
    (hipMalloc $real:ident $place:ident, $len:ident) => { soil!(@ $real $place $len) };
    (hipExtMallocWithFlags $real:ident $place:ident, $len:ident, $flags:ident) => { soil!(@ $real $place $len) };
    (hipHostMalloc $real:ident $place:ident, $len:ident, $flags:ident) => { soil!(@ $real $place $len) };
    (hipMallocManaged $real:ident $place:ident, $len:ident, $flags:ident) => { soil!(@ $real $place $len) };
    (hipMallocAsync $real:ident $place:ident, $len:ident, $stream:ident) => { soil!(@ $real $place $len) };
    (hipMallocFromPoolAsync $real:ident $place:ident, $len:ident, $pool:ident, $stream:ident) => {
        soil!(@ $real $place $len)
    };
    (@ $real:ident $place:ident $len:ident) => {
        if runtime().soils {
            // SAFETY: the call before this one allocated so many bytes, and has returned their address in the place.
            let soiled = unsafe { [$real.hipMemset(*$place, SOIL, $len), $real.hipDeviceSynchronize()] };
            if soiled != [hipSuccess; 2] {
                stop("new memory cannot be written");
            }
        }
    };
    ($($other:tt)*) => {};
}

/// The stream on which each event was recorded last; `None` once that is destroyed.
static RECORDED: Mutex<BTreeMap<usize, Option<usize>>> = Mutex::new(BTreeMap::new());

fn recorded() -> MutexGuard<'static, BTreeMap<usize, Option<usize>>> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether the stream on which an event was recorded is destroyed. AMD's library reads the memory of such a stream, and what it answers
/// depends on what is there by then.
fn is_stale(event: hipEvent_t) -> bool {
    recorded().get(&event.addr()) == Some(&None)
}

/// Refuses what asks for an event whose stream is destroyed.
macro_rules! refuse {
    (hipEventQuery $event:ident) => { refuse!(@ $event) };
    (hipEventSynchronize $event:ident) => { refuse!(@ $event) };
    (hipStreamWaitEvent $stream:ident, $event:ident, $flags:ident) => { refuse!(@ $event) };
    (@ $event:ident) => {
        if is_stale($event) {
            LAST.set(STALE);
            return STALE;
        }
    };
    ($($other:tt)*) => {};
}

/// Notes which event is recorded on which stream, and which streams are destroyed.
macro_rules! note {
    (hipEventRecord $event:ident, $stream:ident) => {
        recorded().insert($event.addr(), Some($stream.addr()))
    };
    (hipExtModuleLaunchKernel $f:ident, $x:ident, $y:ident, $z:ident, $bx:ident, $by:ident, $bz:ident, $shared:ident, $stream:ident,
     $params:ident, $extra:ident, $start:ident, $stop:ident, $flags:ident) => {
        recorded().extend([$start, $stop].map(|event| (event.addr(), Some($stream.addr()))))
    };
    (hipEventDestroy $event:ident) => {
        recorded().remove(&$event.addr())
    };
    (hipStreamDestroy $stream:ident) => {
        recorded().values_mut().filter(|on| **on == Some($stream.addr())).for_each(|on| *on = None)
    };
    ($($other:tt)*) => {};
}

macro_rules! exports {
    ($($need:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $(as $alias:literal)?;)+) => {
        /// A number for each function.
        #[allow(non_camel_case_types, reason = "the names are those of the C headers")]
        #[derive(Clone, Copy)]
        enum Index { $($name),+ }

        /// Number of functions.
        const COUNT: usize = [$(Index::$name),+].len();

        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "the C function's")]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                call(Index::$name as usize, stringify!($name), |real| {
                    refuse!($name $($arg),*);
                    // SAFETY: the caller's arguments, as they are.
                    let returned = unsafe { real.$name($($arg),*) };
                    if returned.is_success() {
                        soil!($name real $($arg),*);
                        note!($name $($arg),*);
                    }
                    returned
                })
            }
        )+
    };
}

hip_functions! { exports! {} }
