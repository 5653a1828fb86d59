//! Who may use a worker, and what keeps others from reading along: keys, their files, invitations, and an encrypted channel without a
//! socket.
//!
//! It works as ssh does: both ends have an Ed25519 key, and each knows the other's. A worker has a file of the
//! [authorized](AuthorizedFile) clients' keys, a client a file of the [known workers](KnownWorkers)' fingerprints. Either may have a key of
//! an authority instead, whose [`Certificate`]s say of other keys whose they are. The channel is TLS 1.3 with raw public keys (RFC 7250), by rustls. Inside of it a [`preamble`] comes first, then HIPR.

#![forbid(unsafe_code)]

mod authorized;
mod bucket;
mod certificate;
mod channel;
mod client;
mod fault;
mod files;
mod grant;
mod invitation;
mod key;
mod known;
mod lent;
mod pattern;
pub mod preamble;
mod revoked;
mod server;
mod shown;
mod size;
mod tenants;
mod time;
mod verify;

pub use authorized::{Authorized, AuthorizedFile, NotAuthorized};
pub use bucket::{Bucket, Rate};
pub use certificate::{Certificate, CertificateError, Says, Statement};
pub use channel::{Channel, PIECE_BYTES, REFUSAL_OF_PLAIN, is_alert, is_hello};
pub use client::{ClientChannel, ClientIdentity, Expected};
pub use fault::{Changed, Fault};
pub use files::{FileError, config_folder, make_key, read_key};
pub use grant::{Grant, Grants};
pub use invitation::{Invitations, Token};
pub use key::{Fingerprint, KeyError, PublicKey, SecretKey, random_bytes};
pub use known::{Known, KnownWorkers};
pub use lent::{LentCipher, LentKey};
pub use pattern::{HostPatterns, host_of};
pub use revoked::Revoked;
pub use server::{ServerChannel, TurnedAway, WorkerIdentity};
pub use size::Size;
pub use tenants::{Admission, TenantCounter};
pub use time::date_and_time;
