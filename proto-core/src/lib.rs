#![no_std]
#![forbid(unsafe_code)]
//! HIPR 1.0, the protocol between a HIP program and a worker that has the GPU, without input or output: bytes go in, bytes
//! come out. There is no socket, no clock, no thread and no async in here, so any transport can carry it, and tests can run
//! both ends in one function.
//!
//! ```text
//!             Client                                               Server
//!          ┌───────────────┐                                     ┌───────────┐
//! request ▶│ Sender        │▶ poll_transmit ═ bytes ▶ handle_input ▶│ Receiver  │▶ Request, Data
//!          │               │                                     │           │    (carried out)
//!   Reply ◀│ ReplyReceiver │◀ handle_input ◀ bytes ═ poll_transmit ◀│ Responder │◀ complete, push_data
//!          └───────────────┘                                     └───────────┘
//! ```
//!
//! * [`op`] is the table of operations: types, codecs, reply rules, the worker's visitor.
//! * [`Server`] is a [`Receiver`] (where the socket is read) and a [`Responder`] (where requests are carried out);
//!   [`Client`] is a [`Sender`] and a [`ReplyReceiver`]. The halves can live on two threads.
//! * [`deferred`] tells when the error of an unanswered request is reported.
//! * [`transport`] (`docs/transport.md`) tells how to carry it over something new; `examples/pipe-transport.rs` does so.
//!
//! Methods come in four kinds: getters; handlers (`handle_*`), which take what came in; commands; polling (`poll_*`), which
//! gives what has to go out and is called after handlers and commands. Incoming bytes are borrowed, bulk bytes are handed on
//! in the pieces in which they arrive, and outgoing bulk bytes stay where they are until the transport has written them.
//!
//! Three kinds of failure are kept apart: [`Fatal`] the peer broke the protocol, [`Misuse`] our caller has a bug, and
//! [`HipError`] the device said no, which is plain data.
//!
//! # Example
//!
//! A client allocates and fills memory on a server; a `Vec` is the network.
//!
//! ```
//! use hipr_proto::{Answer, Client, Limits, Opcode, Outbox, Outcome, Rx, Server, Wire, op};
//!
//! let mut client = Client::<Vec<u8>>::new(Limits::default());
//! let mut server = Server::<Vec<u8>>::new(Limits::default());
//!
//! // Setting memory is not answered, so it waits for something that is; the allocation makes both leave.
//! let set = op::Memset { dst: 0x1000, value: 0, size: 16, stream: 0 };
//! assert!(client.request(&set, &[], None)?.is_none());
//! assert!(!client.wants_flush());
//! let malloc = client.request(&op::Malloc { size: 4096, flags: 0 }, &[], None)?.expect("an answer");
//! assert!(client.wants_flush());
//! let mut network = Vec::new();
//! let mut outbox = Outbox::new();
//! client.poll_transmit(&mut outbox);
//! for bytes in outbox.slices() {
//!     network.extend_from_slice(bytes);
//! }
//!
//! // The server carries out what comes in.
//! let mut input = network.as_slice();
//! while let Rx::Request { ticket, op, mut fixed, .. } = server.handle_input(&mut input)? {
//!     let outcome = match op {
//!         Opcode::MEMSET => Outcome::ok(&()),
//!         Opcode::MALLOC => {
//!             assert_eq!(op::Malloc::take(&mut fixed)?.size, 4096);
//!             Outcome::ok(&op::MallocReply { device_ptr: 0x7f00_0000 })
//!         }
//!         other => panic!("{other} was not sent"),
//!     };
//!     server.complete(ticket, outcome)?;
//! }
//! let mut outbox = Outbox::new();
//! server.poll_transmit(&mut outbox);
//! let network = outbox.slices().flatten().copied().collect::<Vec<u8>>();
//! assert_eq!(network.len(), 24 + 4 + 8, "one reply: header, error code, pointer");
//!
//! let mut input = network.as_slice();
//! let Answer::Reply(reply) = client.handle_input(&mut input)? else { panic!("a reply") };
//! assert_eq!(reply.call, malloc);
//! assert_eq!(reply.read::<op::Malloc>()??.device_ptr, 0x7f00_0000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

extern crate alloc;

/// The port that workers listen on and clients look for if nothing else is said (HIPR 1.0, Connection Lifecycle).
pub const DEFAULT_PORT: u16 = 18515;

pub mod deferred;
pub mod op;

// A page of documentation: `cargo doc` shows it, `cargo test` compiles and runs its code.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../../docs/transport.md")]
pub mod transport {}

mod client;
mod error;
mod header;
mod hip_error;
mod outbox;
mod receiver;
mod reply_receiver;
mod responder;
mod rx;
mod sender;
mod server;
mod wire;

pub use client::Client;
pub use error::{Fatal, Misuse};
pub use header::{FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, Header, MAGIC, VERSION};
pub use hip_error::{HipError, HipResult, error_message, error_name};
pub use op::{Class, Info, OPS, Op, Opcode, Tail, TailLen, Visit, visit};
pub use outbox::Outbox;
pub use receiver::{Limits, Receiver, Rx, Ticket};
pub use reply_receiver::{Answer, Reply, ReplyReceiver};
pub use responder::{Inline, Outcome, Responder};
pub use sender::{Answered, COALESCE_BYTES, COALESCE_INLINE_BYTES, Call, Sender};
pub use server::Server;
pub use wire::{Array, Field, Layout, Sink, Text, Wire, WireError};
