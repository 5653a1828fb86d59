//! A launch that is executed, as the grid sees its context and its stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hipr_device::{Origin, WorkFailure};
use hipr_grid::{Dispatch, Failure, GridWatch, Host, Needs, Owner, Residents};
use hipr_isa::fault::{Cause, Fault};
use hipr_isa::map::Map;
use hipr_isa::mem::Newer;
use hipr_isa::step::Interrupts;
use hipr_proto::HipError;

use super::Shared;
use crate::hostcall::Calls;
use crate::stream::{Failed, handle_of};
use crate::watch::Started;

/// A launch on a stream.
pub(super) struct Launched {
    pub(super) shared: Arc<Shared>,
    /// The number of the stream.
    pub(super) stream: u64,
    /// The handle of the function, and the client's request, to say which launch has failed.
    pub(super) handle: u64,
    pub(super) origin: Origin,
    /// What sees its workgroups, if anything does.
    pub(super) watch: Option<Arc<dyn GridWatch>>,
    /// What its kernel calls the host with, if it may call.
    pub(super) calls: Option<Calls>,
}

/// The page table of a stream's device as it is now.
struct Current {
    shared: Arc<Shared>,
    stream: u64,
}

impl Newer for Current {
    fn newer(&self) -> Arc<Map> {
        self.shared.snapshot(self.stream)
    }
}

impl Interrupts for Launched {
    fn interrupt(&self, _m0: u32) {
        if let Some(calls) = &self.calls {
            self.shared.hostcalls.carry_out(&*self.shared, calls);
        }
    }
}

impl Launched {
    /// Returns HIP's error for what has ended the launch, and writes it to the log.
    fn error(&self, dispatch: &Dispatch, failure: &Failure) -> HipError {
        match failure {
            Failure::Fault(fault) => {
                let offset = fault.pc.wrapping_sub(dispatch.entry);
                let named = fault.clone().in_kernel(Arc::clone(&dispatch.name));
                tracing::error!(fault = %named, offset_bytes = offset as i64, stream = handle_of(self.stream), "kernel failed");
                error_of(fault)
            }
            Failure::NoMemory { groups, needs: Needs { chip_bytes, scratch_bytes } } => {
                let kernel = &*dispatch.name;
                tracing::warn!(
                    kernel,
                    groups,
                    chip_bytes,
                    scratch_bytes,
                    "there is no memory to execute the kernel"
                );
                match dispatch.wave_sync {
                    Some(_) => HipError::COOPERATIVE_LAUNCH_TOO_LARGE,
                    None => HipError::LAUNCH_OUT_OF_RESOURCES,
                }
            }
            Failure::Panicked | Failure::Closed => HipError::LAUNCH_FAILURE,
        }
    }

    fn failed(&self, dispatch: &Dispatch, failure: &Failure) -> Failed {
        let error = self.error(dispatch, failure);
        let (kernel, text) = (dispatch.name.to_string(), failure.to_string());
        let work = WorkFailure {
            origin: self.origin,
            function: self.handle,
            stream: handle_of(self.stream),
            kernel,
            text,
        };
        Failed { error, work: Some(Box::new(work)) }
    }
}

fn error_of(fault: &Fault) -> HipError {
    match fault.cause {
        Cause::IllegalAddress { .. } | Cause::MisalignedAtomic { .. } => HipError::ILLEGAL_ADDRESS,
        Cause::Unknown { .. } | Cause::BadPc | Cause::Trap(_) | Cause::NoGlobalWaveSync(_) => {
            HipError::LAUNCH_FAILURE
        }
        Cause::InstructionLimit(_) | Cause::TimeOut(_) => HipError::LAUNCH_TIME_OUT,
    }
}

impl Host for Launched {
    fn owner(&self) -> Owner {
        self.shared.owner(self.stream)
    }

    fn others_wait(&self) -> bool {
        self.shared.others_wait()
    }

    fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    fn threads(&self) -> usize {
        self.shared.threads
    }

    fn instructions_max(&self) -> u64 {
        self.shared.kernel_instructions_max
    }

    fn timeout(&self) -> Option<Duration> {
        self.shared.kernel_timeout()
    }

    fn residents(&self) -> &Arc<Residents> {
        &self.shared.residents
    }

    fn snapshot(&self) -> Arc<Map> {
        self.shared.snapshot(self.stream)
    }

    fn newer(&self) -> Option<Arc<dyn Newer>> {
        let current = || Current { shared: Arc::clone(&self.shared), stream: self.stream };
        self.calls.as_ref().map(|_| Arc::new(current()) as Arc<dyn Newer>)
    }

    fn clock_start(&self) -> Instant {
        self.shared.epoch
    }

    fn interrupts(&self) -> Option<&dyn Interrupts> {
        self.calls.as_ref().map(|_| self as &dyn Interrupts)
    }

    fn watch(&self) -> Option<&dyn GridWatch> {
        self.watch.as_deref()
    }

    fn note_time(&self, taken_ns: u64) {
        self.shared.device_ns.fetch_add(taken_ns, Ordering::Relaxed);
    }

    fn finished(&self, dispatch: &Dispatch, result: Result<(), Failure>) {
        if let Some(calls) = &self.calls {
            self.shared.hostcalls.end(calls);
        }
        if let Some(watch) = &self.shared.watch {
            let started =
                Started { context: self.shared.id, stream: handle_of(self.stream), order: None, dispatch };
            watch.ended(&started, result.as_ref().err());
        }
        let result = match result {
            // Nobody learns of it: the context has ended.
            Ok(()) | Err(Failure::Closed) => Ok(()),
            Err(failure) => Err(self.failed(dispatch, &failure)),
        };
        self.shared.finish(self.stream, result);
    }
}
