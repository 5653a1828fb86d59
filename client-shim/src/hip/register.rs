//! Functions that are called by the constructors and destructors that the compiler generates.

use crate::convert::Ptr;
use crate::process;
use crate::program::register;

pub(crate) use crate::program::register::{
    fat_binary, function, managed_variable, pop, push, surface, texture, variable,
};

/// `__hipUnregisterFatBinary`.
pub(crate) fn unregister(binary: Ptr) {
    let Some(index) = register::forget_binary(binary) else { return };
    if let Some(session) = process::session_if_open() {
        register::unload_binary(session.loader(), index);
    }
}
