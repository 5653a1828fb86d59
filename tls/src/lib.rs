//! Who may use a worker, and what keeps others from reading along: keys, their files, invitations, and an encrypted channel without a
//! socket.
//!
//! As with ssh there are no certificates: both ends have an Ed25519 key, and each knows the other's. A worker has a file of the
//! [authorized](AuthorizedFile) clients' keys, a client a file of the [known workers](KnownWorkers)' fingerprints. The channel is TLS 1.3
//! with raw public keys (RFC 7250), by rustls. Inside of it a [`preamble`] comes first, then HIPR.

#![forbid(unsafe_code)]

mod authorized;
mod bucket;
mod channel;
mod client;
mod fault;
mod files;
mod invitation;
mod key;
mod known;
mod lent;
pub mod preamble;
mod server;
mod size;
mod tenants;
mod verify;

pub use authorized::{Authorized, AuthorizedFile, Grant};
pub use bucket::{Bucket, Rate};
pub use channel::{Channel, REFUSAL_OF_PLAIN, is_alert, is_hello};
pub use client::{ClientChannel, ClientIdentity, Expected};
pub use fault::{Changed, Fault};
pub use files::{FileError, config_folder, make_key, read_key};
pub use invitation::{Invitations, Token};
pub use key::{Fingerprint, KeyError, PublicKey, SecretKey, random_bytes};
pub use known::KnownWorkers;
pub use lent::{LentCipher, LentKey};
pub use server::{ServerChannel, TurnedAway, WorkerIdentity};
pub use size::Size;
pub use tenants::{Admission, TenantCounter};
