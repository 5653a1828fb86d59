//! A HIP runtime that fails when it is told to, for tests of what loads one.
//!
//! It exports every function of [`hip_sys::Hip`]'s table and hands each call on to a real runtime, the library that
//! [`LIBRARY`] names. When a plan is there, it counts the calls of each function from then on, and one of them fails: nothing
//! is done, and the plan's error is returned and is the calling thread's last error, as HIP has it.
//!
//! The environment is read at the first call, the plan whenever it is not there yet:
//!
//! | variable | |
//! |---|---|
//! | [`LIBRARY`] | path of the real runtime |
//! | [`PLAN`] | path of the plan, a file that appears complete: see [`Plan`]. A call fails only as long as it is there |
//! | [`TRACE`] | path of a file to which each call that is counted appends a line: see [`called`] |

use std::cell::Cell;
use std::ffi::{OsString, c_char, c_int, c_uint, c_void};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, process};

use hip_sys::*;

/// Names the real runtime.
pub const LIBRARY: &str = "FAULTY_HIP_LIBRARY";
/// Names the plan.
pub const PLAN: &str = "FAULTY_HIP_PLAN";
/// Names the trace.
pub const TRACE: &str = "FAULTY_HIP_TRACE";

/// Which call fails: `hipMalloc 3 2` in the file is the third call of hipMalloc, with error 2. A call number 0 is none: then
/// calls are only counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The function's name.
    pub function: String,
    /// Which of its calls, from 1 on; 0 for none.
    pub call: u64,
    /// What it returns.
    pub error: hipError_t,
}

impl Plan {
    /// The text of the file.
    pub fn text(&self) -> String {
        format!("{} {} {}\n", self.function, self.call, self.error)
    }
}

impl FromStr for Plan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no plan: a function, a number and an error are");
        let [function, call, error] = text.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(wrong());
        };
        let (call, error) = (call.parse().map_err(|_| wrong())?, error.parse().map_err(|_| wrong())?);
        Ok(Self { function: function.into(), call, error })
    }
}

/// What a line of the trace says: the function, and whether the call failed by plan.
pub fn called(line: &str) -> (&str, bool) {
    line.strip_suffix(FAILED).map_or((line, false), |function| (function, true))
}

/// What is appended to the name of a call that failed by plan.
const FAILED: &str = " failed";

/// What the environment says, and what is behind it.
struct Runtime {
    real: Hip,
    plan_file: Option<PathBuf>,
    plan: OnceLock<Plan>,
    trace: Option<File>,
    counts: [AtomicU64; COUNT],
}

impl Runtime {
    fn load() -> Result<Self, String> {
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
            plan_file,
            plan: OnceLock::new(),
            trace,
            counts: [const { AtomicU64::new(0) }; COUNT],
        })
    }

    /// The plan, once it is there.
    fn plan(&self) -> Option<&Plan> {
        if let Some(plan) = self.plan.get() {
            return Some(plan);
        }
        let text = fs::read_to_string(self.plan_file.as_ref()?).ok()?;
        let plan = text.parse().unwrap_or_else(|why: String| stop(&why));
        Some(self.plan.get_or_init(|| plan))
    }

    /// Counts a call; the error with which it fails by plan.
    fn count(&self, index: usize, name: &str) -> Option<hipError_t> {
        let plan = self.plan()?;
        let number = self.counts[index].fetch_add(1, Ordering::SeqCst) + 1;
        let is_meant = plan.function == name && plan.call == number;
        let fails = is_meant && self.plan_file.as_ref().is_some_and(|file| file.exists());
        if let Some(mut trace) = self.trace.as_ref() {
            let line = format!("{name}{}\n", if fails { FAILED } else { "" });
            if let Err(why) = trace.write_all(line.as_bytes()) {
                stop(&format!("the trace cannot be written: {why}"));
            }
        }
        fails.then_some(plan.error)
    }
}

/// This library cannot do what it is for; a test has to notice.
fn stop(why: &str) -> ! {
    eprintln!("faulty-hip: {why}");
    process::abort()
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::load().unwrap_or_else(|why| stop(&why)))
}

thread_local! {
    /// The error of the last call of this thread that failed by plan and that nobody asked for.
    static LAST: Cell<hipError_t> = const { Cell::new(hipSuccess) };
}

/// What a function returns.
trait Returned: Sized {
    /// What it returns when it fails; None for functions that cannot.
    fn failure(error: hipError_t) -> Option<Self>;

    /// What it returns instead of the real runtime's answer, for functions that tell of the last error.
    fn told(self, name: &str) -> Self;
}

impl Returned for hipError_t {
    fn failure(error: hipError_t) -> Option<Self> {
        Some(error)
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

    fn told(self, _: &str) -> Self {
        self
    }
}

/// One call: by plan or by the real runtime.
fn call<R: Returned>(index: usize, name: &str, real: impl FnOnce(&Hip) -> R) -> R {
    let runtime = runtime();
    if let Some(error) = runtime.count(index, name)
        && let Some(failure) = R::failure(error)
    {
        LAST.set(error);
        return failure;
    }
    real(&runtime.real).told(name)
}

macro_rules! exports {
    ($($need:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $(as $alias:literal)?;)+) => {
        /// A number for each function.
        #[allow(non_camel_case_types, reason = "the names are those of the C headers")]
        #[derive(Clone, Copy)]
        enum Index { $($name),+ }

        /// How many there are.
        const COUNT: usize = [$(Index::$name),+].len();

        $(
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, clippy::too_many_arguments, reason = "the C function's")]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                call(Index::$name as usize, stringify!($name), |real| {
                    // SAFETY: the caller's arguments, as they are.
                    unsafe { real.$name($($arg),*) }
                })
            }
        )+
    };
}

hip_functions! { exports! {} }
