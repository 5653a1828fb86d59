//! What an event loop and the worker's dispatch thread say to each other.
//!
//! ```text
//!            loop thread                                     dispatch thread
//!  socket ─► read ─► Link::ingest ─► Batch ──── Event ─────► session ─► device
//!  socket ◄─ write ◄─ Link (outbox) ◄────────── Notice ───── Mailbox
//! ```
//!
//! A loop owns sockets and the receiving half of the protocol; it turns bytes into whole [`Batch`]es of parsed requests, so
//! that a message costs no allocation, no lock and no system call. The dispatch thread owns sessions and the answering half;
//! what it has to say goes back through the [`Mailbox`] as one [`Notice`] per connection and turn. Neither side waits for the
//! other, and every queue between them has a limit in [`Config`]: past it the loop stops reading that socket, and TCP pushes
//! back.
//!
//! Loops are interchangeable. A loop crate has
//! `Loop::new(listener, Config, Arc<Stats>) -> io::Result<Loop>`, `Loop::mailbox() -> Arc<Mailbox>` and
//! `Loop::run(self, sink: impl FnMut(Event)) -> io::Result<()>`, and uses [`Link`] for everything that is not a socket.

#![forbid(unsafe_code)]

mod batch;
mod body;
mod config;
mod link;
mod mailbox;
mod slots;
mod stats;

pub use batch::{Batch, Item, Pool, Span};
pub use body::{Body, BodyPool};
pub use config::Config;
pub use link::{Applied, Finish, Link};
pub use mailbox::{ConnId, End, Event, Mailbox, Notice};
pub use slots::Slots;
pub use stats::{Stats, StatsSnapshot};
