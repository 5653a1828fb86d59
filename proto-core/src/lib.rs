#![no_std]
#![forbid(unsafe_code)]
//! To be described.
