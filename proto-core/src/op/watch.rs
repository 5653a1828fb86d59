//! Watches: of which streams and events the worker tells when they are done.

/// Number of streams and events that a session may watch at a time, at least.
pub const WATCHES_MAX: usize = 64;
