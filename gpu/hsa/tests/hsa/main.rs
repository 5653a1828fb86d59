//! Tests of the built library through its C interface, in one process: signals, queues and dispatches.

mod library;
mod queues;
mod signals;
