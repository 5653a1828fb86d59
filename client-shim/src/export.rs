//! Turns a row of the export table into a C function.
//!
//! `exports!` makes of each row an `extern "C"` function with an ELF version, and of all rows the list
//! `EXPORTS`. A row's route says what the function does:
//!
//! | route | what it does |
//! |---|---|
//! | `send { Op { … } }` | one operation of the protocol, and nothing else |
//! | `body path` | a function in `hip/` that is given the session and the parameters |
//! | `body path { … }` | the same with other arguments than the parameters: those in braces |
//! | `spt path` | the same, with the null stream meaning the calling thread's own stream |
//! | `local path` | a function that needs no session: no worker, no connection |
//! | `rtc` | the function of AMD's runtime compiler that has this name, see `rtc.rs` |
//! | `unsupported` | `hipErrorNotSupported`, and one warning in the log that names the function |
//! | `unsupported path` | the same, but for what the function in `hip/` finds wrong with the parameters |
//!
//! Whatever a body does, it does not unwind into C: a panic is logged and becomes `hipErrorUnknown`.

use crate::types::RtcResult;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use hipr_abi::hipChannelFormatDesc;
use hipr_proto::{HipError, HipResult};

use crate::calls::Exported;
use crate::convert::{Ptr, Str};
use crate::hip::capture;
use crate::process;
use crate::session::Session;
use crate::thread;
use crate::trace::{self, SHOWN_MAX};

/// The implementation of a row's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It sends one operation of the protocol.
    Send,
    /// It calls a function in `hip/` with a session.
    Body,
    /// It calls a function in `hip/` with a session; the null stream is the calling thread's own.
    PerThread,
    /// It calls a function that needs no session.
    Local,
    /// It calls AMD's runtime compiler.
    Rtc,
    /// It returns `hipErrorNotSupported`.
    Unsupported,
}

/// The address of an exported function.
#[derive(Clone, Copy, Debug)]
pub struct Address(*const ());

// SAFETY: the address of code.
unsafe impl Sync for Address {}
// SAFETY: the address of code.
unsafe impl Send for Address {}

impl Address {
    pub(crate) const fn of(code: *const ()) -> Self {
        Self(code)
    }

    /// Returns the address as a C pointer.
    pub fn ptr(self) -> Ptr {
        Ptr(self.0.expose_provenance())
    }
}

/// One row of the export table.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    /// Name of the symbol.
    pub name: &'static str,
    /// ELF version node of the symbol, such as `hip_4.2`.
    pub node: &'static str,
    /// Implementation of the function.
    pub route: Route,
    /// Address of the function.
    pub address: Address,
}

/// Defines the C functions and `EXPORTS` from the table in `api.rs`.
macro_rules! exports {
    ($($node:literal {$(
        fn $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)? = $route:ident $($target:path)? $({ $($op:tt)* })?;
    )*})*) => {
        $($(
            $crate::export::row! {
                $route $node $name ($($arg: $ty),*) ($($ret)?) ($($target)?) ($($($op)*)?)
            }
        )*)*

        /// The functions of the table, in its order.
        #[allow(non_camel_case_types, reason = "names are those of the C headers")]
        #[derive(Clone, Copy)]
        enum Index { $($($name),*),* }

        impl Index {
            #[inline(always)]
            fn exported(self) -> $crate::calls::Exported {
                $crate::calls::Exported { table: SIGNATURES, index: self as u16 }
            }
        }

        static SIGNATURES: &[$crate::calls::Signature] = &[$($(
            $crate::calls::Signature {
                name: stringify!($name),
                arguments: &[$((stringify!($arg), <$ty as $crate::trace::Shown>::AS)),*],
            },
        )*)*];

        /// The export table, row by row.
        pub static EXPORTS: &[$crate::export::Export] = &[$($(
            $crate::export::Export {
                name: stringify!($name),
                node: $node,
                route: $crate::export::route!($route),
                address: $crate::export::Address::of($name as *const ()),
            },
        )*)*];
    };
}

macro_rules! route {
    (send) => {
        $crate::export::Route::Send
    };
    (body) => {
        $crate::export::Route::Body
    };
    (spt) => {
        $crate::export::Route::PerThread
    };
    (local) => {
        $crate::export::Route::Local
    };
    (rtc) => {
        $crate::export::Route::Rtc
    };
    (unsupported) => {
        $crate::export::Route::Unsupported
    };
}

macro_rules! row {
    (send $node:literal $name:ident ($($arg:ident: $ty:ty),*) () () ($($op:tt)*)) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) i32 {
            $crate::export::call(Index::$name.exported(), $crate::trace::shown!($($arg),*), |session| {
                session.worker().call(&hipr_proto::op::$($op)*).map(drop)
            })
        } }
    };
    (body $node:literal $name:ident ($($arg:ident: $ty:ty),*) () ($target:path) ()) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) i32 {
            $crate::export::call(Index::$name.exported(), $crate::trace::shown!($($arg),*), |session| $target(session, $($arg),*))
        } }
    };
    (body $node:literal $name:ident ($($arg:ident: $ty:ty),*) () ($target:path) ($($values:tt)+)) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) i32 {
            $crate::export::call(Index::$name.exported(), $crate::trace::shown!($($arg),*), |session| $target(session, $($values)+))
        } }
    };
    (spt $node:literal $name:ident ($($arg:ident: $ty:ty),*) () ($target:path) ()) => {
        $crate::export::row! { spt $node $name ($($arg: $ty),*) () ($target) ($($arg),*) }
    };
    (spt $node:literal $name:ident ($($arg:ident: $ty:ty),*) () ($target:path) ($($values:tt)+)) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) i32 {
            $crate::export::call(Index::$name.exported(), $crate::trace::shown!($($arg),*), |session| {
                $crate::thread::with_stream_per_thread(|| $target(session, $($values)+))
            })
        } }
    };
    (local $node:literal $name:ident ($($arg:ident: $ty:ty),*) () ($target:path) ()) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) i32 {
            $crate::export::local(Index::$name.exported(), $crate::trace::shown!($($arg),*), || $target($($arg),*))
        } }
    };
    (local $node:literal $name:ident ($($arg:ident: $ty:ty),*) ($ret:ty) ($target:path) ()) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) $ret {
            $crate::export::boundary(Index::$name.exported(), $crate::trace::shown!($($arg),*), || $target($($arg),*))
        } }
    };
    (rtc $node:literal $name:ident ($($arg:ident: $ty:ty),*) ($ret:ty) () ()) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) $ret {
            $crate::export::boundary(Index::$name.exported(), $crate::trace::shown!($($arg),*), || {
                // SAFETY: the row states the C prototype, which is the same in every release.
                let function = unsafe {
                    $crate::rtc::function::<unsafe extern "C" fn($($ty),*) -> $ret>(stringify!($name))
                };
                match function {
                    // SAFETY: what the C caller promises this function it promises that one.
                    Some(function) => unsafe { function($($arg),*) },
                    None => <$ret as $crate::export::Returned>::UNSUPPORTED,
                }
            })
        } }
    };
    (unsupported $node:literal $name:ident ($($arg:ident: $ty:ty),*) () () ()) => {
        $crate::export::row! { unsupported $node $name ($($arg: $ty),*) (i32) () () }
    };
    (unsupported $node:literal $name:ident ($($arg:ident: $ty:ty),*) () ($check:path) ()) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) i32 {
            static SAID: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
            match $crate::export::local(Index::$name.exported(), $crate::trace::shown!($($arg),*), || $check($($arg),*)) {
                0 => $crate::export::unsupported(Index::$name.exported(), $crate::trace::shown!($($arg),*), &SAID),
                error => error,
            }
        } }
    };
    (unsupported $node:literal $name:ident ($($arg:ident: $ty:ty),*) ($ret:ty) () ()) => {
        $crate::export::function! { $node $name ($($arg: $ty),*) $ret {
            static SAID: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
            $(let _ = $arg;)*
            $crate::export::unsupported(Index::$name.exported(), $crate::trace::shown!($($arg),*), &SAID)
        } }
    };
}

macro_rules! function {
    ($node:literal $name:ident ($($arg:ident: $ty:ty),*) $ret:ty $body:block) => {
        #[cfg_attr(not(test), unsafe(no_mangle))]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret $body

        #[cfg(all(not(test), target_os = "linux"))]
        core::arch::global_asm!(concat!(
            ".symver ", stringify!($name), ",", stringify!($name), "@@@", $node
        ));
    };
}

pub(crate) use {exports, function, route, row};

/// A return type of C functions, with the values for failures.
pub(crate) trait Returned {
    /// The value returned after a panic.
    const PANICKED: Self;
    /// The value returned by a function that hipr does not support.
    const UNSUPPORTED: Self;
    /// The thread's last error after such a failure; None for functions that are not HIP's own.
    const LAST_ERROR: Option<HipError> = None;

    /// Returns the error that the value stands for; 0 if it is none.
    fn error_code(&self) -> i32 {
        0
    }
}

impl Returned for i32 {
    const PANICKED: Self = HipError::UNKNOWN.0;
    const UNSUPPORTED: Self = HipError::NOT_SUPPORTED.0;
    const LAST_ERROR: Option<HipError> = Some(HipError::NOT_SUPPORTED);

    fn error_code(&self) -> i32 {
        *self
    }
}

impl Returned for RtcResult {
    /// `HIPRTC_ERROR_INTERNAL_ERROR`.
    const PANICKED: Self = Self(11);
    /// `HIPRTC_ERROR_INTERNAL_ERROR`, because HIPRTC has no code for a missing compiler.
    const UNSUPPORTED: Self = Self(11);
}

impl Returned for () {
    const PANICKED: Self = ();
    const UNSUPPORTED: Self = ();
}

impl Returned for Str {
    const PANICKED: Self = Self::NULL;
    const UNSUPPORTED: Self = Self::NULL;
}

impl Returned for Ptr {
    const PANICKED: Self = Self::NULL;
    const UNSUPPORTED: Self = Self::NULL;
}

impl Returned for usize {
    const PANICKED: Self = 0;
    const UNSUPPORTED: Self = 0;
}

impl Returned for u16 {
    const PANICKED: Self = 0;
    const UNSUPPORTED: Self = 0;
}

impl Returned for f32 {
    const PANICKED: Self = 0.0;
    const UNSUPPORTED: Self = 0.0;
}

impl Returned for hipChannelFormatDesc {
    const PANICKED: Self = Self { x: 0, y: 0, z: 0, w: 0, f: 0 };
    const UNSUPPORTED: Self = Self::PANICKED;
}

/// Runs `body`; catches a panic, which must not unwind into C.
/// `shown` are those of its arguments that a trace shows, if there is one.
pub(crate) fn boundary<R: Returned>(
    function: Exported,
    shown: Option<[u64; SHOWN_MAX]>,
    body: impl FnOnce() -> R,
) -> R {
    process::enter(function);
    let open = shown.and_then(trace::begin);
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        tracing::error!("{} failed inside hipr; this is a bug of hipr", function.name());
        R::PANICKED
    });
    if let Some(open) = open {
        open.end(function, result.error_code());
    }
    result
}

/// Executes a function of the `local` route, which returns a `hipError_t`, and records it as the thread's last error.
pub(crate) fn local(
    function: Exported,
    shown: Option<[u64; SHOWN_MAX]>,
    body: impl FnOnce() -> HipResult<()>,
) -> i32 {
    let code = boundary(function, shown, || code_of(body()));
    thread::record(code);
    code
}

/// Executes a function of a route that needs a session, opening it if necessary, and records the thread's last error.
pub(crate) fn call(
    function: Exported,
    shown: Option<[u64; SHOWN_MAX]>,
    body: impl FnOnce(&'static Session) -> HipResult<()>,
) -> i32 {
    let checked = |session: &'static Session| capture::check(session, function).and_then(|()| body(session));
    let code = boundary(function, shown, || code_of(process::session().and_then(checked)));
    if code != 0 {
        tracing::debug!("{} = {}", function.name(), HipError(code));
    }
    thread::record(code);
    code
}

/// Executes a function of the `unsupported` route: logs a warning the first time and returns an error. `said` is the row's own.
pub(crate) fn unsupported<R: Returned>(
    function: Exported,
    shown: Option<[u64; SHOWN_MAX]>,
    said: &AtomicBool,
) -> R {
    let result = boundary(function, shown, || {
        if !said.swap(true, Ordering::Relaxed) {
            tracing::warn!("{} is not supported by hipr; it returns an error", function.name());
        }
        R::UNSUPPORTED
    });
    if let Some(error) = R::LAST_ERROR {
        thread::record(error.0);
    }
    result
}

/// Returns the error code that C sees.
fn code_of(result: HipResult<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.0,
    }
}
