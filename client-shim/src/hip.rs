//! HIP functions that are more than one operation of the protocol, in one file for each family; the export table names them.
//!
//! A function is given the session and the C parameters and judges what can be judged here, so that an error comes at once
//! and from the call that caused it, as HIP has it. What has an order becomes a [`Command`](crate::command::Command) that is submitted; the
//! rest is asked of the worker. Outputs are written only when all went well.

pub(crate) mod absent;
pub(crate) mod advice;
mod allocation;
pub(crate) mod array;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod fill;
pub(crate) mod graph;
pub(crate) mod graphics;
pub(crate) mod host;
pub(crate) mod hostfn;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod mapping;
pub(crate) mod memory;
pub(crate) mod misc;
pub(crate) mod module;
pub(crate) mod occupancy;
pub(crate) mod pointer;
pub(crate) mod pool;
pub(crate) mod properties;
pub(crate) mod register;
mod shareable;
pub(crate) mod stream;
pub(crate) mod symbol;
pub(crate) mod texture;
pub(crate) mod value;
