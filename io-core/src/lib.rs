//! The contract between the event loops and the worker's dispatch: events, batches, notices, limits.
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
//! Loops are interchangeable. A loop crate has a [`Carrier`] of sockets, and `serve(Listener, Config, Arc<Stats>)` and
//! `serve_connection(Stream, …)`, which make a [`Driver`] of it: everything else is the driver's, which says what a turn is, and
//! what a connection is without its socket, a [`Link`].

#![forbid(unsafe_code)]

mod address;
mod audit;
mod backoff;
mod batch;
mod below;
mod body;
mod budget;
mod config;
mod driver;
mod gather;
mod handler;
mod ktls;
mod ledger;
mod lender;
mod link;
mod listener;
mod mailbox;
mod packed;
mod payer;
mod rates;
mod readiness;
mod resumed;
mod seats;
mod secured;
mod slots;
mod stats;

pub use address::{Address, Peer, SecuredAddress};
pub use audit::{Account, Audit, AuditEvent, Detail, Who, WrongKind};
pub use backoff::Backoff;
pub use batch::{Batch, Item, Pool, Span};
pub use body::{Body, BodyPool};
pub use budget::Budget;
pub use config::Config;
pub use driver::{Carrier, Driver, Read, Table, WriteContext};
pub use gather::{gather, gather_some};
pub use handler::{Handler, Turns};
pub use hipr_resume::{RING_MAX_BYTES, RING_MIN_BYTES};
pub use hipr_tls::{Admission, Bucket, Fault, Grant, LentKey, Rate, WorkerIdentity};
pub use ktls::send_alert;
pub use ledger::{Ledger, Places};
pub use lender::{Lack, Lender, LenderWords};
pub use link::{Applied, Finish, Link, Output};
pub use listener::{Listener, SocketFile, Stream, local_peer, tune};
pub use mailbox::{ConnId, End, Event, Mailbox, Notice};
pub use packed::{PackError, Packer, Unpacker, unpack_all, unpack_into};
pub use payer::Payer;
pub use rates::Rates;
pub use readiness::Readiness;
pub use seats::{NoSeat, Seats};
pub use slots::Slots;
pub use stats::{Stats, StatsSnapshot};
