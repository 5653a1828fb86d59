//! A session that outlives its connection: what each end keeps until the other has it, and how they go on over a new connection.
//!
//! ```text
//!  bytes ─► Endpoint (ring of what the other end has not acknowledged) ─► frames ─► any connection
//!  bytes ◄─ Endpoint (offset of what has arrived)                      ◄─ frames ◄─
//! ```
//!
//! Each direction is a stream of bytes with offsets. An [`Endpoint`] cuts it into [frames](Header), which also say how far the other
//! direction has arrived. When the connection is cut, the client makes another and [claims](Claim) its session by a name that nobody can
//! guess, with the offset up to which it has everything; the worker finds the session in its [`Registry`] and answers with its own. Both
//! go on from what the other has: nothing is lost, and nothing comes twice. `docs/resume.md` has every byte.
//!
//! There is no socket, clock or thread here.

#![forbid(unsafe_code)]

mod claim;
mod endpoint;
mod frame;
mod registry;
mod ring;

pub use claim::{CLAIM_BYTES, Claim, Name, TERMS_BYTES, Terms};
pub use endpoint::{Endpoint, Fault, SAY_EVERY_BYTES};
pub use frame::{FRAME_MAX_BYTES, HEADER_BYTES, Header};
pub use registry::{Refusal, Registry};

/// Number of bytes that a client may have sent before it knows what the worker takes.
pub const FIRST_BYTES: usize = 64 << 10;
/// Maximum size of a ring: offsets are told by their lower 32 bits.
pub const RING_MAX_BYTES: usize = 1 << 30;
/// Minimum size of a ring.
pub const RING_MIN_BYTES: usize = 64 << 10;
