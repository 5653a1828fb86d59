//! Tests of the built library through its C interface, in one process.

mod info;
mod library;
mod queues;
mod signals;
