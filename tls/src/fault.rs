//! Why a channel is of no more use.

use std::fmt;

use crate::{CertificateError, Fingerprint};

/// Reason why an encrypted connection ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The peer does not speak TLS.
    NotTls,
    /// The peer breaks the rules of TLS, has no key, or does not prove that the key is its own.
    Tls(rustls::Error),
    /// The peer sends more before the session than belongs there.
    TooLong,
    /// The bytes before HIPR are not a preamble.
    Preamble(&'static str),
    /// The peer may not come in; what it is told.
    Refused(String),
    /// The worker has another key than the one it is known by.
    Changed(Box<Changed>),
    /// The worker has to have a certificate; what is wrong with the one that it shows.
    Uncertified(Box<CertificateError>),
    /// The worker's key was revoked.
    Revoked(Fingerprint),
    /// The connection ends without a good-bye: what was to come after was cut off.
    Truncated,
    /// The keys of this side cannot be used.
    Setup(String),
    /// This side's key is with the kernel, and has to be another from now on: it has encrypted as much as one key may, or the peer wants it.
    KeyIsOver,
}

/// A worker's key that is not the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The key it is known by.
    pub expected: Fingerprint,
    /// The key it has.
    pub found: Fingerprint,
}

impl Fault {
    /// Returns a word for the reason, which does not change.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NotTls => "not-tls",
            Self::Tls(rustls::Error::NoCertificatesPresented) => "no-key",
            Self::Tls(_) => "tls",
            Self::TooLong | Self::Preamble(_) => "preamble",
            Self::Refused(_) => "not-let-in",
            Self::Changed(_) => "changed-key",
            Self::Uncertified(_) => "uncertified",
            Self::Revoked(_) => "revoked",
            Self::Truncated => "cut-off",
            Self::Setup(_) => "setup",
            Self::KeyIsOver => "key-over",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTls => f.write_str("the other end does not speak TLS"),
            Self::Tls(why) => write!(f, "TLS: {why}"),
            Self::TooLong => f.write_str("too many bytes before the session"),
            Self::Preamble(why) => write!(f, "preamble: {why}"),
            Self::Refused(why) => f.write_str(why),
            Self::Changed(changed) => {
                let Changed { expected, found } = **changed;
                write!(f, "the worker's key has changed: it is {found}, and was expected to be {expected}")
            }
            Self::Uncertified(why) => write!(f, "the worker's certificate {why}"),
            Self::Revoked(key) => write!(f, "the worker's key {key} was revoked"),
            Self::Truncated => f.write_str("the encrypted connection was cut off, without a good-bye"),
            Self::Setup(why) => write!(f, "the keys cannot be used: {why}"),
            Self::KeyIsOver => f.write_str(
                "the kernel that encrypts this connection cannot change its key, and would have to",
            ),
        }
    }
}

impl std::error::Error for Fault {}

impl From<rustls::Error> for Fault {
    fn from(why: rustls::Error) -> Self {
        Self::Tls(why)
    }
}
