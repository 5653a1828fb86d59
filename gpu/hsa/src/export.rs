//! Turns a row of the table of functions into a C function.
//!
//! `exports!` makes of each row an `extern "C"` function with AMD's symbol version, and of all rows the list `EXPORTS`.
//!
//! | route | what the function does |
//! |---|---|
//! | `= path;` | it calls a function of this crate with its parameters; `Err` is the status that it returns |
//! | `-> type = path;` | the same for a function that returns something else than a status |
//! | `= unsupported;` | it returns `HSA_STATUS_ERROR`, and the log says once that the program asked for it |
//!
//! Nothing unwinds into C: a panic is logged and becomes `HSA_STATUS_ERROR`, or zero.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::status::{HsaResult, Status};

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export {
    /// Name of the symbol.
    pub name: &'static str,
    /// Whether the function works; one that does not returns `HSA_STATUS_ERROR`.
    pub is_supported: bool,
}

/// Defines the C functions and `EXPORTS` from the table in `api.rs`.
macro_rules! exports {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $($target:ident)::+;)*) => {
        $($crate::export::row! { $name ($($arg: $ty),*) ($($ret)?) ($($target)::+) })*

        /// The table of functions, row by row.
        pub static EXPORTS: &[$crate::export::Export] = &[$(
            $crate::export::Export {
                name: stringify!($name),
                is_supported: $crate::export::is_supported!($($target)::+),
            },
        )*];
    };
}

macro_rules! is_supported {
    (unsupported) => {
        false
    };
    ($($target:ident)::+) => {
        true
    };
}

macro_rules! row {
    ($name:ident ($($arg:ident: $ty:ty),*) () (unsupported)) => {
        $crate::export::function! { $name ($($arg: $ty),*) $crate::status::Status {
            static SAID: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
            $(let _ = $arg;)*
            $crate::export::unsupported(stringify!($name), &SAID)
        } }
    };
    ($name:ident ($($arg:ident: $ty:ty),*) () ($($target:ident)::+)) => {
        $crate::export::function! { $name ($($arg: $ty),*) $crate::status::Status {
            $crate::export::status(stringify!($name), || $($target)::+($($arg),*))
        } }
    };
    ($name:ident ($($arg:ident: $ty:ty),*) ($ret:ty) ($($target:ident)::+)) => {
        $crate::export::function! { $name ($($arg: $ty),*) $ret {
            $crate::export::value(stringify!($name), || $($target)::+($($arg),*))
        } }
    };
}

macro_rules! function {
    ($name:ident ($($arg:ident: $ty:ty),*) $ret:ty $body:block) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $ret $body

        #[cfg(all(not(test), target_os = "linux"))]
        core::arch::global_asm!(concat!(".symver ", stringify!($name), ",", stringify!($name), "@@@ROCR_1"));
    };
}

pub(crate) use {exports, function, is_supported, row};

/// Calls the body of a function that returns a status.
pub(crate) fn status(name: &'static str, body: impl FnOnce() -> HsaResult) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::SUCCESS,
        Ok(Err(status)) => {
            if status != Status::INFO_BREAK {
                tracing::debug!("{name} returns {status:?}");
            }
            status
        }
        Err(_) => {
            tracing::error!("{name} failed inside hipr; this is a bug of hipr");
            Status::ERROR
        }
    }
}

/// Calls the body of a function that returns a value.
pub(crate) fn value<R: Default>(name: &'static str, body: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        tracing::error!("{name} failed inside hipr; this is a bug of hipr");
        R::default()
    })
}

/// Returns what a function that is not offered returns, and says so in the log the first time.
pub(crate) fn unsupported(name: &'static str, said: &AtomicBool) -> Status {
    if !said.swap(true, Ordering::Relaxed) {
        tracing::warn!("{name} is not offered by the emulated GPUs' HSA runtime");
    }
    Status::ERROR
}
