//! What the functions do that are more than one operation of the protocol. One file per subject; the export table
//! names them.
//!
//! A body is given the session and the C parameters, judges what can be judged here (so that an error comes at once
//! and from the call that caused it, as HIP has it), and asks the worker for the rest. What it returns for the
//! program is written only when all went well.

pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod fill;
pub(crate) mod graph;
pub(crate) mod host;
pub(crate) mod hostfn;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod misc;
pub(crate) mod module;
pub(crate) mod occupancy;
pub(crate) mod pointer;
pub(crate) mod pool;
pub(crate) mod properties;
pub(crate) mod stream;
pub(crate) mod symbol;
