#![no_std]
#![forbid(unsafe_code)]
//! HIPR 1.0, the protocol between a HIP program and a worker with the GPU, as a library without input and output: it takes
//! received bytes and returns bytes to send. It uses no socket, clock, thread or async runtime, so that any transport can
//! carry it and a test can run both ends in one function.
//!
//! ```text
//!             Client                                               Server
//!          ┌───────────────┐                                     ┌───────────┐
//! request ▶│ Sender        │▶ poll_transmit ═ bytes ▶ handle_input ▶│ Receiver  │▶ Request, Data
//!          │               │                                     │           │    (executed)
//!   Reply ◀│ ReplyReceiver │◀ handle_input ◀ bytes ═ poll_transmit ◀│ Responder │◀ complete, push_data
//!          └───────────────┘                                     └───────────┘
//! ```
//!
//! * [`op`] is the table of operations: types, codecs, reply rules, the worker's visitor.
//! * [`Server`] is one end of a connection: a [`Receiver`] (where the socket is read) and a [`Responder`] (where requests
//!   are executed). [`Client`] is the other: a [`Sender`] and a [`ReplyReceiver`]. Their documentation says which methods
//!   there are and when each may be called. The halves can live on two threads.
//! * [`Lease`] is the account of the memory that a client places itself.
//! * [`deferred`] defines when the error of an unanswered request is reported.
//! * [`transport`] (`docs/transport.md`) explains how to carry HIPR over a new transport; `examples/pipe-transport.rs` is one.
//!
//! Received bytes are borrowed and bulk bytes are passed on in the pieces in which they arrive; bulk bytes to be sent stay
//! where they are until the transport has written them.
//!
//! Three kinds of failure are kept apart: [`Fatal`], the peer broke the protocol; [`Misuse`], the caller has a bug; and
//! [`HipError`], a HIP operation failed, which is plain data.
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

/// The port that workers listen on and clients connect to by default (HIPR 1.0, Connection Lifecycle).
pub const DEFAULT_PORT: u16 = 18515;

pub mod deferred;
pub mod op;

// A page of documentation: `cargo doc` shows it, `cargo test` compiles and runs its code.
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/transport.md")]
pub mod transport {}

mod client;
mod error;
mod features;
mod header;
mod hip_error;
mod lease;
mod outbox;
mod partial;
mod receiver;
mod reply_receiver;
mod responder;
mod sender;
mod server;
mod wire;

pub use client::Client;
pub use error::{Fatal, Misuse};
pub use features::Features;
pub use header::{FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, Header, MAGIC, VERSION};
pub use hip_error::{HipError, HipResult, error_message, error_name};
pub use lease::{Lease, PITCH_BYTES, PLACE_PAGE_BYTES};
pub use op::{Class, Info, OPS, Op, Opcode, Source, Tail, TailLen, Visit, visit};
pub use outbox::Outbox;
pub use receiver::{Limits, Receiver, Rx, Ticket};
pub use reply_receiver::{Answer, Notification, Reply, ReplyReceiver};
pub use responder::{Inline, Outcome, Responder};
pub use sender::{COALESCE_BYTES, COALESCE_INLINE_BYTES, Call, ReplyMode, Sender};
pub use server::Server;
pub use wire::{Array, Field, Layout, Sink, Text, Wire, WireError};
