//! The file of the keys that may use a worker.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::certificate::{Certificate, CertificateError};
use crate::files::{self, FileError, Stamp, each_line};
use crate::grant::{Bounds, Grant, Grants};
use crate::revoked::Revoked;
use crate::{Fingerprint, PublicKey};

/// The most keys of a file.
const KEYS_MAX: usize = 10_000;

/// What the first word of a line is that names an authority, and of one that revokes a key or a certificate.
const AUTHORITY: &str = "authority";
const REVOKED: &str = "revoked";

/// The keys and authorities of a file, and what each may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorized {
    keys: HashMap<PublicKey, Grant>,
    /// The least `memory-total` of the lines of each tenant that says one.
    totals_bytes: HashMap<String, u64>,
    authorities: HashMap<PublicKey, Bounds>,
    revoked: Revoked,
}

/// Reason why a key is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAuthorized {
    /// No line has the key, and it comes without a certificate.
    Unknown,
    /// The key was revoked.
    Revoked,
    /// No line has the key, and this is wrong with its certificate.
    Certificate(CertificateError),
}

impl Authorized {
    /// Reads lines such as `hipr-ed25519 KEY tenant=NAME memory-max=16G`, with `authority` before it if the key is one that signs
    /// certificates, and lines such as `revoked SHA256:…`; `#` begins a comment. A line that names no tenant makes the key's fingerprint
    /// the tenant. The least `memory-total` of a tenant's lines holds for all its keys.
    ///
    /// # Errors
    /// The number of a line that is none of these, or has a key that another has, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut all = Self::default();
        each_line(text, |words| {
            let first = words.next().unwrap_or_default();
            if first == REVOKED {
                return all.revoked.add(words);
            }
            let is_authority = first == AUTHORITY;
            let name = if is_authority { words.next().unwrap_or_default() } else { first };
            let key = PublicKey::from_words(name, words.next().unwrap_or_default());
            let key = key.map_err(|why| why.to_string())?;
            if all.keys.len() + all.authorities.len() >= KEYS_MAX {
                return Err(format!("the file has more than {KEYS_MAX} keys"));
            }
            let is_new = if is_authority {
                all.authorities.insert(key, Bounds::parse(words)?).is_none()
            } else {
                let grant = Grants::parse(words)?.for_key(key);
                if let Some(bytes) = grant.memory_total_bytes {
                    let least = all.totals_bytes.entry(grant.tenant.clone()).or_insert(bytes);
                    *least = bytes.min(*least);
                }
                all.keys.insert(key, grant).is_none()
            };
            if is_new { Ok(()) } else { Err("an earlier line has this key".to_owned()) }
        })?;
        let Self { keys, totals_bytes, .. } = &mut all;
        keys.values_mut().for_each(|grant| grant.bound_total(totals_bytes.get(&grant.tenant).copied()));
        Ok(all)
    }

    /// Returns what a key may do that comes with this certificate, or without one. A line of its own says it before a certificate does.
    ///
    /// # Errors
    /// It may do nothing at this time, in seconds since 1970.
    pub fn admit(
        &self,
        key: &PublicKey,
        certificate: Option<&[u8]>,
        now_s: u64,
    ) -> Result<Grant, NotAuthorized> {
        if self.revoked.has_key(key.fingerprint()) {
            return Err(NotAuthorized::Revoked);
        }
        if let Some(grant) = self.grant(key) {
            return Ok(grant.clone());
        }
        let bytes = certificate.ok_or(NotAuthorized::Unknown)?;
        self.certified(key, bytes, now_s).map_err(NotAuthorized::Certificate)
    }

    fn certified(&self, key: &PublicKey, bytes: &[u8], now_s: u64) -> Result<Grant, CertificateError> {
        let certificate = Certificate::from_bytes(bytes)?;
        let given = certificate.user()?;
        let unknown = CertificateError::UnknownAuthority(certificate.authority.fingerprint());
        let bounds = self.authorities.get(&certificate.authority).ok_or(unknown)?;
        certificate.check(key, &self.revoked, now_s)?;
        let given = bounds.within(given.clone()).map_err(CertificateError::Tenant)?;
        let mut grant = Grant { serial: Some(certificate.serial), ..given.for_key(*key) };
        grant.bound_total(self.totals_bytes.get(&grant.tenant).copied());
        Ok(grant)
    }

    /// Returns what the line of a key says, and those of its tenant's other keys for all of them.
    pub fn grant(&self, key: &PublicKey) -> Option<&Grant> {
        self.keys.get(key)
    }

    /// Returns the number of keys with a line of their own.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether nobody is authorized.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.authorities.is_empty()
    }

    /// Returns the fingerprints of the authorities.
    pub fn authorities(&self) -> Vec<Fingerprint> {
        self.authorities.keys().map(PublicKey::fingerprint).collect()
    }
}

/// A file of authorized keys, which is read again when it has changed.
#[derive(Debug)]
pub struct AuthorizedFile {
    path: PathBuf,
    last: Mutex<Option<(Stamp, Authorized)>>,
}

impl AuthorizedFile {
    /// Names a file, which is read when it is first asked for a key.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), last: Mutex::default() }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what [`Authorized::admit`] says at present.
    ///
    /// # Errors
    /// It cannot be read, others than its owner may change it, or a line is wrong, which the error names. Then it authorizes nobody.
    pub fn admit(
        &self,
        key: &PublicKey,
        certificate: Option<&[u8]>,
        now_s: u64,
    ) -> Result<Result<Grant, NotAuthorized>, FileError> {
        self.read(|authorized| authorized.admit(key, certificate, now_s))
    }

    /// Returns the number of authorized keys with a line of their own, and of authorities.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    pub fn count(&self) -> Result<(usize, usize), FileError> {
        self.read(|authorized| (authorized.keys.len(), authorized.authorities.len()))
    }

    fn read<T>(&self, look: impl FnOnce(&Authorized) -> T) -> Result<T, FileError> {
        // What is kept is whole whenever the lock is free, so poison says nothing.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.stamp()?;
        if let Some((_, authorized)) = last.as_ref().filter(|(read, _)| *read == stamp) {
            return Ok(look(authorized));
        }
        *last = None;
        let text = files::read(&self.path)?;
        let authorized = Authorized::parse(&text).map_err(|why| FileError::in_line(&self.path, why))?;
        let said = look(&authorized);
        // A change while it was read shows in the stamp, and the file is then read again.
        *last = Some((stamp, authorized));
        Ok(said)
    }

    fn stamp(&self) -> Result<Stamp, FileError> {
        let file = fs::metadata(&self.path).map_err(|why| FileError::new(&self.path, why))?;
        if file.mode() & 0o022 != 0 {
            let mode = file.mode() & 0o7777;
            return Err(FileError::new(
                &self.path,
                format!("others may change this file (mode {mode:04o}): chmod go-w it"),
            ));
        }
        Ok(Stamp::of(&file))
    }

    /// Adds a key, unless it is there.
    pub(crate) fn add(&self, key: PublicKey, given: &Grants) -> Result<(), FileError> {
        let added = files::open_alone(&self.path).and_then(|file| {
            let text = files::read_text(&file)?;
            let is_there = Authorized::parse(&text).is_ok_and(|authorized| authorized.grant(&key).is_some());
            if is_there { Ok(()) } else { files::append_line(&file, &text, &format!("{key}{given}")) }
        });
        added.map_err(|why| FileError::new(&self.path, why))
    }
}
