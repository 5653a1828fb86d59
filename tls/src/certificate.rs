//! Certificates of an authority: small, and signed by an ordinary key of hipr's. `docs/identity.md` has every byte.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::files::{self, FileError, each_line};
use crate::grant::Grants;
use crate::pattern::HostPatterns;
use crate::revoked::Revoked;
use crate::time::date_and_time;
use crate::{Fingerprint, PublicKey, SecretKey};

/// What a line with a certificate begins with.
const NAME: &str = "hipr-certificate";
/// What the bytes of a certificate begin with, and their version.
const MAGIC: [u8; 4] = *b"HIPC";
const VERSION: u16 = 1;
/// What is signed before the statement, so that a signature for anything else is none for a certificate, and the other way round.
const DOMAIN: &[u8] = b"hipr certificate, version 1\0";
const SIGNATURE_BYTES: usize = 64;
/// Whose certificate it is.
const USER: u16 = 1;
const WORKER: u16 = 2;
/// Kind of the field with what a user gets, as a line of authorized keys says it.
const GRANTS: u16 = 1;
/// Kind of the field with the hosts of a worker.
const HOSTS: u16 = 2;
/// Kinds from here on may be passed over by those that do not know them.
const OPTIONAL: u16 = 0x8000;

/// Reason why a certificate is of no use; it follows "your certificate" or "the worker's certificate".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// There is none.
    Missing,
    /// The bytes or the text are none.
    Malformed(&'static str),
    /// The signature is not that of the authority it names.
    Signature,
    /// It is a worker's where a user's is wanted, or the other way round.
    Kind {
        /// Whose is wanted.
        wanted: &'static str,
    },
    /// It is for another key than the one that was proved.
    OtherKey(Fingerprint),
    /// Who has signed it is not trusted here.
    UnknownAuthority(Fingerprint),
    /// It was revoked, or its authority was.
    Revoked,
    /// It begins later, at this number of seconds since 1970.
    NotYet(u64),
    /// It has ended, at this number of seconds since 1970.
    Ended(u64),
    /// It names a tenant that its authority may not name here, or none.
    Tenant(String),
    /// It is for other hosts.
    Host {
        /// The host that was asked for.
        wanted: String,
        /// Those of the certificate.
        named: HostPatterns,
    },
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is missing: it has shown none"),
            Self::Malformed(why) => write!(f, "cannot be read: {why}"),
            Self::Signature => f.write_str("was changed, or was not signed by the authority that it names"),
            Self::Kind { wanted } => write!(f, "is not one of a {wanted}"),
            Self::OtherKey(key) => write!(f, "is for another key, {key}"),
            Self::UnknownAuthority(key) => write!(f, "is signed by {key}, which is no authority here"),
            Self::Revoked => f.write_str("was revoked"),
            Self::NotYet(at) => {
                write!(f, "begins on {}Z only; if that is past, a clock is wrong", date_and_time(*at))
            }
            Self::Ended(at) => {
                write!(
                    f,
                    "ended on {}Z; its authority makes a new one with `hipr key sign`",
                    date_and_time(*at)
                )
            }
            Self::Tenant(name) if name.is_empty() => {
                f.write_str("names no tenant, and its authority may name only certain ones here")
            }
            Self::Tenant(name) => write!(f, "names the tenant {name}, which its authority may not name here"),
            Self::Host { wanted, named } => write!(f, "is for {named} and not for {wanted}"),
        }
    }
}

impl std::error::Error for CertificateError {}

/// What a certificate says of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// It is a user's, and what that one gets.
    User(Grants),
    /// It is a worker's, which is at these hosts.
    Worker(HostPatterns),
}

/// What an authority signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The number by which the certificate can be revoked.
    pub serial: u64,
    /// The first second since 1970 at which it holds.
    pub not_before_s: u64,
    /// The first second since 1970 at which it holds no longer.
    pub not_after_s: u64,
    /// The key that it is for.
    pub key: PublicKey,
    /// The key of who signs it.
    pub authority: PublicKey,
    /// What it says of the key.
    pub says: Says,
}

impl Statement {
    /// Returns the bytes that are signed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, field, text) = match &self.says {
            Says::User(grants) => (USER, GRANTS, grants.to_string().trim_start().to_owned()),
            Says::Worker(hosts) => (WORKER, HOSTS, hosts.to_string()),
        };
        // Texts are at most a few hundred bytes long.
        let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
        [
            &MAGIC[..],
            &VERSION.to_le_bytes(),
            &kind.to_le_bytes(),
            &self.serial.to_le_bytes(),
            &self.not_before_s.to_le_bytes(),
            &self.not_after_s.to_le_bytes(),
            self.key.bytes(),
            self.authority.bytes(),
            &field.to_le_bytes(),
            &len.to_le_bytes(),
            text.as_bytes(),
        ]
        .concat()
    }

    /// Reads the bytes that are signed. Fields of a kind from 0x8000 on that are not known are passed over.
    ///
    /// # Errors
    /// They are not well-formed, of another version, or have a field that is not known.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, CertificateError> {
        let from = &mut bytes;
        let malformed = CertificateError::Malformed;
        if take(from)? != MAGIC {
            return Err(malformed("it does not begin as a certificate does"));
        }
        if u16::from_le_bytes(take(from)?) != VERSION {
            return Err(malformed("its version is not 1"));
        }
        let kind = u16::from_le_bytes(take(from)?);
        let [serial, not_before_s, not_after_s] =
            [take(from)?, take(from)?, take(from)?].map(u64::from_le_bytes);
        let [key, authority] = [take(from)?, take(from)?].map(PublicKey::from_bytes);
        if not_before_s >= not_after_s {
            return Err(malformed("it ends before it begins"));
        }
        let mut says = None;
        while !from.is_empty() {
            let field = u16::from_le_bytes(take(from)?);
            let len = u16::from_le_bytes(take(from)?);
            let (value, rest) = from.split_at_checked(len.into()).ok_or(malformed(CUT_OFF))?;
            *from = rest;
            let text = || std::str::from_utf8(value).map_err(|_| malformed("a text is not UTF-8"));
            let said = match (kind, field) {
                (USER, GRANTS) => Says::User(parse_grants(text()?)?),
                (WORKER, HOSTS) => Says::Worker(parse_hosts(text()?)?),
                (_, OPTIONAL..) => continue,
                _ => return Err(malformed("a field is not known")),
            };
            if says.replace(said).is_some() {
                return Err(malformed("a field is there twice"));
            }
        }
        let says = says.ok_or(malformed("it does not say what it is for"))?;
        Ok(Self { serial, not_before_s, not_after_s, key, authority, says })
    }
}

const CUT_OFF: &str = "it is cut off";

fn take<const N: usize>(from: &mut &[u8]) -> Result<[u8; N], CertificateError> {
    let (taken, rest) = from.split_first_chunk().ok_or(CertificateError::Malformed(CUT_OFF))?;
    *from = rest;
    Ok(*taken)
}

/// Reads grants as [`Statement::to_bytes`] writes them, and no other way.
fn parse_grants(text: &str) -> Result<Grants, CertificateError> {
    let grants = text.parse::<Grants>().ok();
    let same = grants.filter(|grants| grants.to_string().trim_start() == text);
    same.ok_or(CertificateError::Malformed("what it gives is not known here"))
}

fn parse_hosts(text: &str) -> Result<HostPatterns, CertificateError> {
    let hosts = text.parse::<HostPatterns>().ok();
    hosts
        .filter(|hosts| hosts.to_string() == text)
        .ok_or(CertificateError::Malformed("a host's name is none"))
}

/// A statement that its authority has signed. It is written `hipr-certificate` and its bytes in the base64 of URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    statement: Statement,
    bytes: Vec<u8>,
}

impl Certificate {
    /// Maximum length in bytes: with a token and a claim it fits into a preamble.
    pub const MAX_BYTES: usize = 896;

    /// Signs a statement; its authority becomes the one with this key.
    ///
    /// # Errors
    /// It ends before it begins, or the key cannot sign.
    pub fn sign(authority: &SecretKey, statement: Statement) -> Result<Self, CertificateError> {
        let statement = Statement { authority: authority.public(), ..statement };
        let signed = statement.to_bytes();
        let signature = authority.sign(&[DOMAIN, &signed].concat());
        let signature = signature.map_err(|_| CertificateError::Signature)?;
        // As everybody else will read it.
        Self::from_bytes(&[signed, signature].concat())
    }

    /// Reads a certificate and checks its signature. Whether its authority is anybody's is not asked here.
    ///
    /// # Errors
    /// The bytes are none, or the signature is not that of the authority they name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertificateError> {
        if bytes.len() > Self::MAX_BYTES {
            return Err(CertificateError::Malformed("it is too long"));
        }
        let (signed, signature) =
            bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or(CertificateError::Malformed(CUT_OFF))?;
        let statement = Statement::from_bytes(signed)?;
        if !statement.authority.has_signed(&[DOMAIN, signed].concat(), signature) {
            return Err(CertificateError::Signature);
        }
        Ok(Self { statement, bytes: bytes.to_vec() })
    }

    /// Returns the certificate's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads the file of a certificate, a line; `None` if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or has anything but one certificate.
    pub fn read(path: &Path) -> Result<Option<Self>, FileError> {
        if !path.try_exists().map_err(|why| FileError::new(path, why))? {
            return Ok(None);
        }
        let text = files::read(path)?;
        let mut found = None;
        let wrong = each_line(&text, |words| {
            let (name, digits) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let certificate =
                Self::from_words(name, digits).map_err(|why| format!("the certificate {why}"))?;
            if words.next().is_some() || found.replace(certificate).is_some() {
                return Err("the file of a certificate has one, and nothing else".to_owned());
            }
            Ok(())
        });
        wrong.map_err(|why| FileError::in_line(path, why))?;
        found.map(Some).ok_or_else(|| FileError::new(path, "the file has no certificate"))
    }

    /// Returns the file of the certificate of a key in this file: beside it, `FILE-cert`.
    pub fn beside(key: &Path) -> PathBuf {
        let mut path = key.as_os_str().to_owned();
        path.push("-cert");
        path.into()
    }

    fn from_words(name: &str, digits: &str) -> Result<Self, CertificateError> {
        let malformed = CertificateError::Malformed;
        if name != NAME {
            return Err(malformed(
                "a certificate is written 'hipr-certificate' and letters, digits, - and _",
            ));
        }
        // A longer text is not decoded at all.
        if digits.len() > Self::MAX_BYTES.div_ceil(3) * 4 {
            return Err(malformed("it is too long"));
        }
        let bytes =
            URL_SAFE_NO_PAD.decode(digits).map_err(|_| malformed("its text was changed or cut off"))?;
        Self::from_bytes(&bytes)
    }

    /// Returns what a user's certificate gives.
    ///
    /// # Errors
    /// It is a worker's.
    pub fn user(&self) -> Result<&Grants, CertificateError> {
        match &self.statement.says {
            Says::User(grants) => Ok(grants),
            Says::Worker(_) => Err(CertificateError::Kind { wanted: "user" }),
        }
    }

    /// Returns the hosts of a worker's certificate.
    ///
    /// # Errors
    /// It is a user's.
    pub fn worker(&self) -> Result<&HostPatterns, CertificateError> {
        match &self.statement.says {
            Says::Worker(hosts) => Ok(hosts),
            Says::User(_) => Err(CertificateError::Kind { wanted: "worker" }),
        }
    }

    /// Checks that the certificate is for this key, which its owner has proved, and holds at this time, in seconds since 1970.
    ///
    /// # Errors
    /// It is for another key, was revoked, has ended, or has not begun.
    pub fn check(&self, key: &PublicKey, revoked: &Revoked, now_s: u64) -> Result<(), CertificateError> {
        if self.key != *key {
            return Err(CertificateError::OtherKey(self.key.fingerprint()));
        }
        let keys = [self.key, self.authority].map(|key| key.fingerprint());
        if revoked.has_serial(self.serial) || keys.into_iter().any(|key| revoked.has_key(key)) {
            return Err(CertificateError::Revoked);
        }
        if now_s < self.not_before_s {
            return Err(CertificateError::NotYet(self.not_before_s));
        }
        if now_s >= self.not_after_s {
            return Err(CertificateError::Ended(self.not_after_s));
        }
        Ok(())
    }

    /// Checks a worker's certificate, shown as these bytes by who has proved this key, for a host at this time.
    ///
    /// # Errors
    /// There is none; none of these authorities has signed it; it is not for this worker, or as [`check`](Self::check).
    pub fn check_worker(
        shown: &[u8],
        key: &PublicKey,
        authorities: &[PublicKey],
        revoked: &Revoked,
        (host, now_s): (&str, u64),
    ) -> Result<(), CertificateError> {
        if shown.is_empty() {
            return Err(CertificateError::Missing);
        }
        let certificate = Self::from_bytes(shown)?;
        let named = certificate.worker()?;
        if !authorities.contains(&certificate.authority) {
            return Err(CertificateError::UnknownAuthority(certificate.authority.fingerprint()));
        }
        certificate.check(key, revoked, now_s)?;
        if !named.matches(host) {
            return Err(CertificateError::Host { wanted: host.to_owned(), named: named.clone() });
        }
        Ok(())
    }
}

impl Deref for Certificate {
    type Target = Statement;

    fn deref(&self) -> &Statement {
        &self.statement
    }
}

impl FromStr for Certificate {
    type Err = CertificateError;

    fn from_str(text: &str) -> Result<Self, CertificateError> {
        let (name, digits) = text.trim().split_once(' ').unwrap_or((text, ""));
        Self::from_words(name, digits.trim())
    }
}

impl fmt::Display for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} {}", URL_SAFE_NO_PAD.encode(&self.bytes))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.statement.fmt(f)
    }
}
