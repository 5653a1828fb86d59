//! A connection through shared memory between a client and a worker on one machine: two rings carry the bytes that a socket
//! would.
//!
//! ```text
//!  client                      one mapping                      worker
//!  Client::write ──copy──► ring of the client's bytes ──copy──► Served::read
//!  Client::read  ◄──copy── ring of the worker's bytes ◄──copy── Served::write
//!                control socket: hello, the mapping, bells, the end
//! ```
//!
//! **Handshake.** The client connects to the worker's unix socket and says [`HELLO`]. The worker makes the rings (`memfd_create`,
//! sealed so that nobody can cut it short under the other) and passes them over the socket, together with a second socket.
//!
//! **Bells.** Who finds its ring empty, or full, looks again for a moment and then sleeps, and says so in the ring; the other
//! one, when it has changed that, sends one byte over a socket. Between two sides that are awake there is no system call.
//! The protocol of indices and sleeping is [`positions`], which knows nothing of memory and is checked by a model checker.
//! A bell is a socket and no eventfd because a peer that shares an eventfd can make writing to it block.
//!
//! **Descriptors** go from the worker to the client with a bell ([`Served::pass_from`], [`Client::take_descriptor`]). A client that expects
//! none does not notice.
//!
//! **The end** of a connection is the end of the control socket. What was written before it is still read.
//!
//! **Trust.** Neither side trusts the other. Positions that the other one writes are checked against this side's own, which are
//! kept in private memory; an impossible one is an error. Bytes are copied out before anybody looks at them.

mod busy_poller;
mod client;
mod descriptor;
mod memory;
mod number;
pub mod positions;
mod ring;
mod served;

pub use busy_poller::{BusyPoller, Shared, SharedMemory};
pub use client::Client;
pub use descriptor::{Waits, pass, receive};
pub use memory::check_sealed;
pub use number::{NumberReader, NumberWriter, Numbers};
pub use served::{HELLO, Served};

/// Size in bytes of one of a connection's two rings. Memory is allocated when the rings are first filled.
pub const RING_BYTES: u32 = 1 << 20;

/// Number of bytes that are copied before the other side is told, so that the copies of both sides overlap.
const PIECE_BYTES: usize = 64 << 10;

/// Default time for which an idle side polls before it sleeps: longer than an awake peer takes to answer, and not much
/// longer than waking one up takes.
pub const SPIN: std::time::Duration = std::time::Duration::from_micros(50);
