//! Traces of programs whose GPU is somewhere else: what is in them, their files, and what they say about where the time went.
//!
//! A trace is a list of [`Item`]s. [`File`] writes them, as Perfetto's protobuf messages or as Chrome's JSON, so that what was
//! written so far can be read at any time; [`read`] reads both back. [`Summary`] says how long a program computed and
//! waited, and which of its calls cost most.

#![forbid(unsafe_code)]

mod advice;
mod call;
mod chrome;
mod clock;
mod file;
mod item;
mod perfetto;
mod summary;
mod units;

pub use call::Call;
pub use clock::{Clocks, Exchange, Offset};
pub use file::{File, Format, read};
pub use item::{Item, RECEIVED, Slice, Track, TrackKind, Value, arg, category, track};
pub use summary::Summary;
