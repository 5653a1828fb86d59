//! The beginning and the end of the library for the program.

use std::sync::Mutex;

use hipr_grid::lock;
use hipr_log::Style;

use crate::handlers::Handlers;
use crate::status::{HsaResult, Status};
use crate::{queue, runtime, signal, watch};

/// How often `hsa_init` has been called without `hsa_shut_down`.
static INIT_COUNT: Mutex<u32> = Mutex::new(0);

/// Most calls of `hsa_init` without `hsa_shut_down`.
const INIT_COUNT_MAX: u32 = i32::MAX as u32;

/// `hsa_init`.
pub(crate) fn init() -> HsaResult {
    let mut count = lock(&INIT_COUNT);
    if *count >= INIT_COUNT_MAX {
        return Err(Status::ERROR_REFCOUNT_OVERFLOW);
    }
    if *count == 0 {
        hipr_log::start(Style::Named, "warn");
        runtime::start()?;
    }
    *count += 1;
    Ok(())
}

/// `hsa_shut_down`.
pub(crate) fn shut_down() -> HsaResult {
    let mut count = lock(&INIT_COUNT);
    *count = count.checked_sub(1).ok_or(Status::ERROR_NOT_INITIALIZED)?;
    if *count == 0
        && let Some(runtime) = runtime::end()
    {
        runtime.part::<Handlers>().stop();
        queue::forget_all();
        watch::forget_all();
        signal::forget_all();
    }
    Ok(())
}
