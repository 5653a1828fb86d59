//! Tests of the built library through its C interface, in one process.

mod copies;
mod executables;
mod info;
mod library;
mod memory;
mod queues;
mod signals;
mod svm;
mod vmem;
