//! What an event loop and the worker's dispatch say to each other.
//!
//! ```text
//!            loop                                            dispatch
//!  socket ─► read ─► Link::handle_read ─► Batch ── Event ──► Handler ─► session ─► device
//!  socket ◄─ write ◄─ Link (outbox) ◄───────────── Notice ── Mailbox
//! ```
//!
//! A loop owns sockets and the receiving half of the protocol; it turns bytes into whole [`Batch`]es of parsed requests, so
//! that a message costs no allocation, no lock and no system call. The dispatch, a [`Handler`], owns sessions and the answering
//! half; what it has to say goes back through the [`Mailbox`] as one [`Notice`] per connection and turn. It may be on the loop's
//! thread or on one of its own: neither side waits for the other, and every queue between them has a limit in [`Config`]: past it
//! the loop stops reading that socket, and TCP pushes back.
//!
//! Loops are interchangeable. A loop crate has
//! `Loop::new(Listener, Config, Arc<Stats>) -> io::Result<Loop>`, `Loop::for_connection(Stream, …)`, `Loop::mailbox() -> Arc<Mailbox>` and
//! `Loop::run(self, handler: impl Handler) -> io::Result<()>`, and uses [`Link`] for everything that is not a socket.
//!
//! One turn of a loop: wait for sockets, unless there is something to do ([`Turns::is_idle`], [`Mailbox::prepare_sleep`]); read,
//! and pass on what was said; give the handler its turn ([`Turns::turn`]); take the mailbox, [`Link::apply`] each notice, and
//! write. So a request is read, carried out and answered in one turn where the handler is on the loop's thread.

#![forbid(unsafe_code)]

mod address;
mod batch;
mod body;
mod config;
mod handler;
mod link;
mod listener;
mod mailbox;
mod slots;
mod stats;

pub use address::{Address, Peer};
pub use batch::{Batch, Item, Pool, Span};
pub use body::{Body, BodyPool};
pub use config::Config;
pub use handler::{Handler, Turns};
pub use link::{Applied, Finish, Link};
pub use listener::{Listener, SocketFile, Stream};
pub use mailbox::{ConnId, End, Event, Mailbox, Notice};
pub use slots::Slots;
pub use stats::{Stats, StatsSnapshot};
